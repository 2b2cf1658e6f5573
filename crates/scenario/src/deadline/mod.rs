//! Room: laws of deadlines. What time a flow of a workload may take; drawn before the run, so that all systems see the same.
//!
//! Stream, with the workload's index: `workload/deadlines`. Sizes, arrivals and pairs do not depend on it.

use base::{Dur, Rng};

/// A law of deadlines.
pub trait Law {
    /// The time that a flow may take from its start, at least 1 ps. `ideal` is its completion time alone in the network.
    fn draw(&self, ideal: &dyn Fn() -> Dur, rng: &mut Rng) -> Dur;
}

/// What a law knows of the scenario.
pub type Env = ();

pub mod exponential;
pub mod fixed;
pub mod slack;
pub mod uniform;

base::registry! {
    room AnyLaw: Law, env Env;
    named "deadline", "deadlines", "law of deadlines": "how long a workload's flows may take";
    entries { fixed: Fixed, uniform: Uniform, exponential: Exponential, slack: Slack }
    methods {
        fn draw(&self, ideal: &dyn Fn() -> Dur, rng: &mut Rng) -> Dur;
    }
}

/// For the tests of the room's files.
#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// What a law allows `n` flows whose ideal completion time is 1 ms.
    pub fn draw(law: &impl Law, n: usize) -> Vec<Dur> {
        let mut rng = Rng::stream(1, "deadline", &[]);
        (0..n).map(|_| law.draw(&|| Dur::from_ms(1), &mut rng)).collect()
    }
}

//! Room: laws of deadlines. What time a flow of a workload may take; drawn before the run, so that all systems see the same.
//!
//! Stream, with the workload's index: `workload/deadlines`. Sizes, arrivals and pairs do not depend on it.

use base::{Dur, Fraction, Rng};

/// A law of deadlines.
pub trait Law {
    /// The time that a flow may take from its start, at least 1 ps. `ideal` is its completion time alone in the network.
    fn draw(&self, ideal: &dyn Fn() -> Dur, rng: &mut Rng) -> Dur;
    /// Which flows have a deadline.
    fn share(&self) -> &Share;
}

base::params! {
    /// What every law of deadlines has.
    pub struct Share {
        /// Share of the workload's bytes in flows with a deadline: in the order of starts, a flow gets a deadline while such flows have less than
        /// this share of the bytes so far. The first flow gets one; with `0` no flow does, with `1` every flow.
        share: Fraction = "1" in Fraction(0)..=ALL, "every flow has a deadline; STAM section 5.2 has 0.8", quiet;
    }
}

/// The share of a law that gives every flow a deadline.
const ALL: Fraction = Fraction(1_000_000_000);

impl Share {
    /// Whether the next flow gets a deadline, when flows with a deadline have `with` of the `all` bytes before it.
    pub fn wants(&self, with: u128, all: u128) -> bool {
        let below = with * u128::from(ALL.0) < all * u128::from(self.share.0);
        self.share == ALL || below || all == 0 && self.share.0 > 0
    }
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
        fn share(&self) -> &Share;
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
    /// Every flow has a deadline.
    pub const EVERY: Share = Share { share: ALL };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_flow_gets_a_deadline_below_the_share() {
        let wants = |share, with, all| Share { share: Fraction(share) }.wants(with, all);
        // 0.8: the first flow; then while below, not at, four fifths.
        assert!(wants(800_000_000, 0, 0) && wants(800_000_000, 799, 1000));
        assert!(!wants(800_000_000, 800, 1000) && !wants(800_000_000, 5, 5));
        assert!(wants(1_000_000_000, 5, 5) && !wants(0, 0, 0) && !wants(0, 0, 5));
        assert!(wants(1_000_000_000, u128::from(u64::MAX), u128::from(u64::MAX)));
    }
}

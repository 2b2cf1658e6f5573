//! Room: laws of deadlines. A law gives the time that a flow of a workload may take. Deadlines are
//! drawn before the run, so that all systems see the same deadlines.
//!
//! Random stream, by index of the workload: `workload/deadlines`. Sizes, arrivals and pairs do not
//! depend on this stream.

use base::{Dur, Fraction, Rng};

/// A law of deadlines.
pub trait Law {
    /// Returns the time that a flow may take from its start, at least 1 ps. `ideal` is the
    /// completion time of the flow in an unloaded network.
    fn draw(&self, ideal: &dyn Fn() -> Dur, rng: &mut Rng) -> Dur;
    /// Returns which flows have a deadline.
    fn share(&self) -> &Share;
}

base::params! {
    /// Parameters of every law of deadlines.
    pub struct Share {
        /// Share of the workload's bytes in flows with a deadline. In the order of their starts, a
        /// flow gets a deadline while flows with a deadline have less than this share of the bytes
        /// so far; the first flow gets a deadline. With `0` no flow has a deadline, with `1` every
        /// flow has.
        share: Fraction = "1" in Fraction(0)..=ALL, "every flow has a deadline; STAM section 5.2 has 0.8", quiet;
    }
}

/// The share of a law that gives every flow a deadline.
const ALL: Fraction = Fraction(1_000_000_000);

impl Share {
    /// Returns whether the next flow gets a deadline if flows with a deadline have `with` of the
    /// `all` bytes before it.
    pub fn wants(&self, with: u128, all: u128) -> bool {
        let below = with * u128::from(ALL.0) < all * u128::from(self.share.0);
        self.share == ALL || below || all == 0 && self.share.0 > 0
    }
}

/// The environment of a law: laws know nothing of the scenario.
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

    /// Returns the times of `n` flows whose ideal completion time is 1 ms.
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
        // Share 0.8: the first flow gets a deadline; later flows only if the share so far is below
        // 0.8.
        assert!(wants(800_000_000, 0, 0) && wants(800_000_000, 799, 1000));
        assert!(!wants(800_000_000, 800, 1000) && !wants(800_000_000, 5, 5));
        assert!(wants(1_000_000_000, 5, 5) && !wants(0, 0, 0) && !wants(0, 0, 5));
        assert!(wants(1_000_000_000, u128::from(u64::MAX), u128::from(u64::MAX)));
    }
}

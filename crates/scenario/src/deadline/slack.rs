//! A multiple of the time that the flow takes in an unloaded network.
//!
//! Source: Karuna (Chen et al., SIGCOMM 2016), whose generator gives a flow twice the sum of 0.2 ms
//! and its transmission time.
//!
//! Assumed: in an unloaded network a flow takes the ideal completion time of the results: store and
//! forward at line rate on its shortest path in the healthy network. No deadline is below this time
//! unless the factor is below 1.

use super::{Env, Law, Share};
use crate::workload::MAX_TIME;
use base::params::Problem;
use base::registry::Meta;
use base::{Dur, Fraction, Rng};

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "`factor` times the sum of the flow's ideal completion time and `extra`",
    source: "generator of Karuna (SIGCOMM 2016)",
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of deadlines with slack.
    pub struct Params {
        ..of: Share {}
        /// Factor of the ideal completion time.
        factor: Fraction = "2" in Fraction(1)..=Fraction(1_000_000_000_000), "Karuna's generator";
        /// Time added to the ideal completion time before the multiplication.
        extra: Dur = "0s" in Dur::ZERO..=MAX_TIME, "nothing; Karuna's generator has 0.2 ms";
    }
}

/// Returns no problems: all combinations of values are valid.
pub fn check(_params: &Params, _env: &Env) -> Vec<Problem> {
    Vec::new()
}

/// The law.
pub struct Slack(Params);

impl Slack {
    /// Creates the law with these parameters.
    pub fn new(params: &Params, _env: &Env) -> Self {
        Slack(params.clone())
    }
}

impl Law for Slack {
    fn draw(&self, ideal: &dyn Fn() -> Dur, _rng: &mut Rng) -> Dur {
        (self.0.extra + ideal()).times(self.0.factor).clamp(Dur(1), MAX_TIME)
    }
    fn share(&self) -> &Share {
        &self.0.of
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{EVERY, draw};
    use super::*;

    #[test]
    fn times_are_multiples_of_the_ideal() {
        let factor = Fraction(1_500_000_000);
        assert_eq!(draw(&Slack(Params { of: EVERY, factor, extra: Dur::ZERO }), 1), [Dur::from_us(1500)]);
        assert_eq!(draw(&Slack(Params { of: EVERY, factor, extra: Dur::from_us(200) }), 1), [Dur::from_us(1800)]);
    }
}

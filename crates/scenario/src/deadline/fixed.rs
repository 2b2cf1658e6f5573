//! The same deadline for every flow, relative to its start.
//!
//! Source: own.

use super::{Env, Law, Share};
use crate::workload::MAX_TIME;
use base::params::Problem;
use base::registry::Meta;
use base::{Dur, Rng};

/// The META of this entry, for `list` and `check`.
pub const META: Meta =
    Meta { summary: "the same time for every flow; short form: `deadline = \"20ms\"`", source: "own", ..Meta::PLAIN };

base::params! {
    /// Parameters of fixed deadlines.
    pub struct Params {
        ..of: Share {}
        /// The time that a flow may take.
        after: Dur = "" in Dur(1)..=MAX_TIME, "";
    }
}

/// Returns no problems: all combinations of values are valid.
pub fn check(_params: &Params, _env: &Env) -> Vec<Problem> {
    Vec::new()
}

/// The law.
pub struct Fixed(Params);

impl Fixed {
    /// Creates the law with these parameters.
    pub fn new(params: &Params, _env: &Env) -> Self {
        Fixed(params.clone())
    }
}

impl Law for Fixed {
    fn draw(&self, _ideal: &dyn Fn() -> Dur, _rng: &mut Rng) -> Dur {
        self.0.after
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
    fn all_flows_have_the_same_time() {
        assert_eq!(draw(&Fixed(Params { of: EVERY, after: Dur::from_ms(20) }), 3), [Dur::from_ms(20); 3]);
    }
}

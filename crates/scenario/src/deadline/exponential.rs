//! Exponentially distributed deadlines with a minimum.
//!
//! Source: D3 (Wilson et al., SIGCOMM 2011) and PDQ (Hong et al., SIGCOMM 2012) section 5.1: mean 20 ms, at least 3 ms.
//!
//! Assumed: a time below the minimum is raised to it, so that the mean of all times is slightly
//! above `mean`.

use super::{Env, Law, Share};
use crate::workload::MAX_TIME;
use base::params::Problem;
use base::registry::Meta;
use base::{Dur, Rng, math};

/// The META of this entry, for `list` and `check`.
pub const META: Meta =
    Meta { summary: "exponential with `mean`, at least `min`", source: "PDQ (SIGCOMM 2012) section 5.1", ..Meta::PLAIN };

base::params! {
    /// Parameters of exponential deadlines.
    pub struct Params {
        ..of: Share {}
        /// Mean before times are raised to `min`.
        mean: Dur = "20ms" in Dur(1)..=MAX_TIME, "PDQ section 5.1";
        /// The shortest time.
        min: Dur = "3ms" in Dur(1)..=MAX_TIME, "PDQ section 5.1";
    }
}

/// Returns no problems: all combinations of values are valid.
pub fn check(_params: &Params, _env: &Env) -> Vec<Problem> {
    Vec::new()
}

/// The law.
pub struct Exponential(Params);

impl Exponential {
    /// Creates the law with these parameters.
    pub fn new(params: &Params, _env: &Env) -> Self {
        Exponential(params.clone())
    }
}

impl Law for Exponential {
    fn draw(&self, _ideal: &dyn Fn() -> Dur, rng: &mut Rng) -> Dur {
        let time = math::floor(rng.exponential(self.0.mean.0 as f64) + 0.5) as u64;
        Dur(time).max(self.0.min).min(MAX_TIME)
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
    fn times_follow_the_law_above_the_floor() {
        let ms = Dur::from_ms;
        let times = draw(&Exponential(Params { of: EVERY, mean: ms(20), min: ms(3) }), 40_000);
        assert!(times.iter().all(|t| *t >= ms(3)));
        // P(X > t) = exp(-t / 20 ms), four standard errors.
        for t in [3, 10, 20, 60] {
            let p = math::exp(-(t as f64) / 20.0);
            let share = times.iter().filter(|x| **x > ms(t)).count() as f64 / 40_000.0;
            assert!((share - p).abs() < 4.0 * (p * (1.0 - p) / 40_000.0).sqrt(), "{t}: {share} for {p}");
        }
    }
}

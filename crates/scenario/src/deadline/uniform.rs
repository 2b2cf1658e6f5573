//! Deadlines uniformly distributed between two bounds.
//!
//! Source: STAM (Zang, Lan, Hu, Acta Electronica Sinica 47(10), 2019), section 5: 5 ms to 25 ms.

use super::{Env, Law, Share};
use crate::workload::MAX_TIME;
use base::params::Problem;
use base::registry::Meta;
use base::{Dur, Rng};

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta { summary: "uniform between `min` and `max`", source: "STAM (2019) section 5", ..Meta::PLAIN };

base::params! {
    /// Parameters of uniform deadlines.
    pub struct Params {
        ..of: Share {}
        /// The shortest time.
        min: Dur = "5ms" in Dur(1)..=MAX_TIME, "STAM section 5";
        /// The longest time.
        max: Dur = "25ms" in Dur(1)..=MAX_TIME, "STAM section 5";
    }
}

/// Returns the problems that depend on several parameters.
pub fn check(params: &Params, _env: &Env) -> Vec<Problem> {
    let problem = || Problem {
        key: "min",
        message: format!("`{}` is above `max`, `{}`", params.min, params.max),
        hint: "write a `min` that is at most `max`: deadlines are uniform from `min` to `max`".to_owned(),
    };
    (params.min > params.max).then(problem).into_iter().collect()
}

/// The law.
pub struct Uniform(Params);

impl Uniform {
    /// Creates the law with these parameters.
    pub fn new(params: &Params, _env: &Env) -> Self {
        Uniform(params.clone())
    }
}

impl Law for Uniform {
    fn draw(&self, _ideal: &dyn Fn() -> Dur, rng: &mut Rng) -> Dur {
        self.0.min + Dur(rng.below(self.0.max.0 - self.0.min.0 + 1))
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
    fn times_are_uniform_between_the_bounds() {
        let times = draw(&Uniform(Params { of: EVERY, min: Dur::from_ms(5), max: Dur::from_ms(25) }), 20_000);
        assert!(times.iter().all(|t| (Dur::from_ms(5)..=Dur::from_ms(25)).contains(t)));
        // Quarters of the range, four standard errors of 20000 / 4 counts.
        for quarter in 0..4 {
            let low = Dur::from_ms(5 + 5 * quarter);
            let count = times.iter().filter(|t| (low..low + Dur::from_ms(5)).contains(t)).count();
            assert!(count.abs_diff(5000) < 245, "{quarter}: {count}");
        }
        let one = draw(&Uniform(Params { of: EVERY, min: Dur(7), max: Dur(7) }), 5);
        assert_eq!(one, [Dur(7); 5]);
    }
}

//! Seeds of a scenario: given, or as many as the precision of a metric needs.

use crate::text::diag::{Diagnostics, Place};
use base::Fraction;
use base::params::{Param, Raw};
use base::units::parse_fraction;

/// The value of `seed` with which a precision determines the number of seeds.
pub(crate) const AUTO: &str = "auto";

base::params! {
    /// Top-level keys of a scenario with `seed = "auto"`.
    pub struct AutoSeeds {
        /// Seeds are added until the 95 % confidence interval of `metric` is at most this far from
        /// the mean, for every system and swept value.
        precision: Precision = "5%" in Precision(Fraction(100_000))..=Precision(Fraction::ONE), "flowloom: differences of a tenth can be seen";
        /// The metric whose precision counts; `flowloom list metrics` prints all names.
        metric: String = "mean_slowdown", "the measure that most papers plot";
        /// Maximum number of seeds, whatever the precision.
        max_seeds: u32 = "20" in FEWEST..=10_000, "flowloom: an eighth of the width of the interval of three seeds";
    }
}

/// Minimum number of seeds: the interval of fewer seeds is not reliable.
const FEWEST: u32 = 3;

/// A precision as a share of the mean: `5%`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Precision(pub Fraction);

impl Param for Precision {
    fn expects() -> String {
        "a percentage, like `5%`".to_owned()
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        let wrong = || format!("is not {}", Self::expects());
        let Raw::Str(text) = raw else { return Err(wrong()) };
        let percent = text.trim().strip_suffix('%').ok_or_else(wrong)?;
        let Fraction(billionths) = parse_fraction(percent.trim()).map_err(|_| wrong())?;
        Ok(Precision(Fraction(billionths / 100)))
    }
    fn show(&self) -> String {
        format!("{}%", Fraction(self.0.0.saturating_mul(100)))
    }
}

/// The rule by which a plan adds seeds. The points of the plan have all seeds up to the maximum.
#[derive(Clone, Debug)]
pub struct AutoSeedRule {
    /// The keys.
    pub params: AutoSeeds,
    /// The error for an unknown metric, which cannot be checked when the scenario is read.
    pub no_such_metric: Diagnostics,
}

impl AutoSeedRule {
    /// Returns the number of seeds to run if `done` seeds are not enough, or `None` if the maximum
    /// is reached. The number starts at three and grows by half, so that threads have work.
    pub fn next(&self, done: u32) -> Option<u32> {
        let next = (done + done / 2).max(FEWEST).min(self.params.max_seeds);
        (next > done).then_some(next)
    }
}

/// The seeds of a draft.
#[derive(Clone, Debug)]
pub(crate) struct Seeds {
    pub list: Vec<u64>,
    /// The keys with `seed = "auto"`, and the place of `metric`.
    pub auto: Option<(AutoSeeds, Place)>,
    /// A key of [`AutoSeeds`] without effect.
    pub unused: Option<(&'static str, Place)>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::params::Params as _;

    #[test]
    fn a_precision_is_a_percentage() {
        for (text, billionths) in [("5%", 50_000_000), ("0.5 %", 5_000_000), ("100%", 1_000_000_000)] {
            let found = Precision::parse(&Raw::Str(text.into())).unwrap();
            assert_eq!((found.0.0, found.show()), (billionths, text.replace(' ', "")));
        }
        for bad in [Raw::Str("5".into()), Raw::Str("x%".into()), Raw::Int(5), Raw::Str("-1%".into())] {
            assert!(Precision::parse(&bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn seeds_grow_by_half_up_to_the_limit() {
        let auto = AutoSeedRule { params: AutoSeeds::defaults(), no_such_metric: Diagnostics::default() };
        let rounds: Vec<u32> = std::iter::successors(auto.next(0), |done| auto.next(*done)).collect();
        assert_eq!(rounds, [3, 4, 6, 9, 13, 19, 20]);
    }
}

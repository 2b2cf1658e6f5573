//! The parameters of `[seek]`, of its settings and of its claims.

use base::Fraction;
use base::params::{Param, Raw, Shape};

base::choice! {
    /// The objective of a search.
    pub enum Objective {
        /// Finds the settings under which claims hold.
        Claims = "claims",
        /// Finds the settings under which a system is worst, or best, compared with another system.
        Ratio = "ratio",
    }
}

base::choice! {
    /// The ratios to search for.
    pub enum Want {
        /// The largest ratio.
        Largest = "largest",
        /// The smallest ratio.
        Smallest = "smallest",
    }
}

base::params! {
    /// A search over open settings.
    pub struct SeekParams {
        /// `claims`: finds where the claims hold; `ratio`: finds where `metric` of `system` divided
        /// by that of `versus` is largest or smallest.
        objective: Objective = "claims", "flowloom: the question about most papers";
        /// Profiles that are applied to the scenarios first, like `"small"` or `"a,b"`: use sizes
        /// at which a point takes seconds.
        profile: Option<String> = "none", "flowloom: the scenarios as they are";
        /// Number of places that fill the space evenly (a scrambled Sobol sequence); rounded up to
        /// a power of two.
        points: u32 = "64" in 2..=65_536, "flowloom: a share of a tenth is known to 4 points in 100";
        /// Number of additional places that an optimiser chooses near the claims or near the
        /// extreme ratio; not used for shares of the space.
        refine: u32 = "32" in 0..=65_536, "flowloom: half of the design";
        /// Number of places, among those where most claims hold, at which scenarios that only claims
        /// with `fit = false` need are run.
        confirm: u32 = "4" in 1..=65_536, "flowloom: enough to see whether they agree";
        /// Seed of the design and of the optimiser.
        draw: u32 = "1", "flowloom: any";
        /// The metric of `ratio`; `flowloom list metrics` prints all names.
        metric: Option<String> = "none", "needed by `objective = \"ratio\"`";
        /// The system in the numerator of `ratio`.
        system: Option<String> = "none", "needed by `objective = \"ratio\"`";
        /// The system in the denominator of `ratio`.
        versus: Option<String> = "none", "needed by `objective = \"ratio\"`";
        /// The ratios to search for.
        want: Want = "largest", "flowloom: metrics are mostly better when small, so this is where `system` is worst";
        /// Minimum share of the logarithm of a ratio that must remain when its scenario is made
        /// smaller.
        keep: Fraction = "0.8" in Fraction(0)..=Fraction::ONE, "flowloom: the same finding, in a smaller scenario";
    }
}

base::params! {
    /// An open setting.
    pub struct SettingParams {
        /// Name of the setting in tables and figures.
        name: String = "", "";
        /// Smallest value, in any unit of its keys. Values are whole numbers if `low` and `high` are
        /// written without a decimal point and have no unit of time.
        low: Option<Literal> = "none", "needed unless there are `choices`";
        /// Largest value.
        high: Option<Literal> = "none", "needed unless there are `choices`";
        /// Whether values are spread evenly by their logarithm.
        log: bool = "false", "flowloom: evenly by value";
        /// The usual value in other work: in the range, or one of the `choices`. If every setting has
        /// one, the place of the usual values is run, and figures mark it.
        usual: Option<Literal> = "none", "flowloom: nothing is marked";
        /// Source of the range: another paper, a default of a program or product.
        source: String = "", "";
    }
}

base::choice! {
    /// How a number is computed from a metric. `claims.toml` has more kinds, which need keys that a
    /// claim of a search does not have.
    pub enum ClaimKind {
        /// The metric of `system`.
        Value = "value",
        /// The metric of `system`, divided by that of `versus`.
        Ratio = "ratio",
        /// 1 minus the ratio.
        Reduction = "reduction",
        /// The ratio minus 1.
        Increase = "increase",
        /// The metric of `system` minus that of `versus`.
        Difference = "difference",
        /// A number that `figures.py` of the paper in the same folder computes.
        Measured = "measured",
    }
}

impl ClaimKind {
    /// Returns the keys that a number of this kind needs besides `metric`; all others of `system` and
    /// `versus` have no effect on it.
    pub fn needs(self) -> &'static [&'static str] {
        match self {
            ClaimKind::Value => &["system"],
            ClaimKind::Ratio | ClaimKind::Reduction | ClaimKind::Increase | ClaimKind::Difference => &["system", "versus"],
            ClaimKind::Measured => &[],
        }
    }
}

base::params! {
    /// A claim of a search.
    pub struct ClaimParams {
        /// Name of the claim. Without `metric`, the name of a claim in the `claims.toml` of the
        /// same folder.
        id: String = "", "";
        /// Whether to search for the claim; if `false`, the claim is judged afterwards, where the
        /// other claims hold.
        fit: bool = "true", "flowloom: a claim is listed to be looked for";
        /// The value printed in the paper, as text; only with `metric`.
        printed: Literal = "-", "that of the claim in `claims.toml`";
        /// How the number is computed from the metric. Claims of other kinds (`spread`, `order`,
        /// `growth`, `contrast`) can only be written in the `claims.toml` of a paper.
        kind: Option<ClaimKind> = "none", "`value`; without `metric`, that of the claim in `claims.toml`";
        /// The metric. Without it, the claim is the one with this `id` in `claims.toml`.
        metric: Option<String> = "none", "that of the claim in `claims.toml`";
        /// The system that the claim is about.
        system: Option<String> = "none", "that of the claim in `claims.toml`";
        /// The system that `system` is compared with.
        versus: Option<String> = "none", "that of the claim in `claims.toml`";
        /// The scenario on which the claim is judged: the name of its file without the extension.
        scenario: Option<String> = "none", "the first, or that of the claim's figure";
        /// The smallest number with which the claim holds.
        at_least: Option<ClaimBound> = "none", "that of the claim in `claims.toml`";
        /// The largest number with which the claim holds.
        at_most: Option<ClaimBound> = "none", "that of the claim in `claims.toml`";
    }
}

/// A value as written after `--set KEY=`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd)]
pub struct Literal(pub String);

impl Param for Literal {
    fn expects() -> String {
        "a number or a text".to_owned()
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        match raw {
            Raw::Int(n) => Ok(Literal(n.to_string())),
            Raw::Float(text) if text.parse().is_ok_and(|x: f64| !x.is_finite()) => Err("is not finite".to_owned()),
            Raw::Float(text) | Raw::Str(text) => Ok(Literal(text.clone())),
            Raw::Bool(b) => Ok(Literal(b.to_string())),
            Raw::Table(_) | Raw::Other(_) => Err(format!("is not {}", Self::expects())),
        }
    }
    fn show(&self) -> String {
        self.0.clone()
    }
}

/// A bound of a claim: a number, or a quotient of two whole numbers like `1/3`.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub struct ClaimBound {
    /// Its value.
    pub value: f64,
    text: String,
}

impl Param for ClaimBound {
    fn expects() -> String {
        "a number, like `0.8` or `1/3`".to_owned()
    }
    fn shape() -> Shape {
        Shape::Literal
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        let Literal(text) = match raw {
            Raw::Bool(_) => return Err(format!("is not {}", Self::expects())),
            _ => Literal::parse(raw).map_err(|_| format!("is not {}", Self::expects()))?,
        };
        let text = text.trim().to_owned();
        let value = match text.split_once('/') {
            Some((above, below)) => {
                above.parse::<u32>().ok().zip(below.parse::<u32>().ok()).map(|(a, b)| f64::from(a) / f64::from(b))
            }
            // Digits, sign, point and exponent only: `nan` and `inf` are numbers of Rust too.
            None if text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b)) => text.parse().ok(),
            None => None,
        };
        match value.filter(|value| value.is_finite()) {
            Some(value) => Ok(ClaimBound { value, text }),
            None => Err(match text.strip_suffix('%').and_then(|percent| percent.trim().parse::<f64>().ok()) {
                Some(percent) => format!("is not {}; did you mean `{}`?", Self::expects(), percent / 100.0),
                None => format!("is not {}", Self::expects()),
            }),
        }
    }
    fn show(&self) -> String {
        self.text.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_finite_numbers() {
        let read = |text: &str| ClaimBound::parse(&Raw::Str(text.to_owned())).map(|bound| bound.value);
        for (text, value) in [("0.8", 0.8), ("-1e-3", -0.001), ("1/4", 0.25), (" 3 ", 3.0)] {
            assert_eq!(read(text), Ok(value));
        }
        assert_eq!(read("80%").unwrap_err(), "is not a number, like `0.8` or `1/3`; did you mean `0.8`?");
        for text in ["1/0", "0/0", "nan", "inf", "-inf", "1e999", "", "a", "1/2/3", "-1/2", "0x10", "true"] {
            assert_eq!(read(text).unwrap_err(), "is not a number, like `0.8` or `1/3`", "{text}");
        }
        for raw in [Raw::Bool(true), Raw::Other("a list"), Raw::Table(Vec::new()), Raw::Float("nan".to_owned())] {
            assert_eq!(ClaimBound::parse(&raw).unwrap_err(), "is not a number, like `0.8` or `1/3`");
        }
        assert_eq!(ClaimBound::parse(&Raw::Int(0)).map(|bound| bound.show()), Ok("0".to_owned()));
    }
}

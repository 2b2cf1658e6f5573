//! The plain types that a parameter can have: times, rates, sizes, limits, fractions, numbers, truth values and texts.

use super::{Param, Raw, Shape};
use crate::time::Dur;
use crate::units::{self, Bytes, Fraction, Limit, OUT_OF_RANGE, Rate, RateOr};

macro_rules! literal {
    ($ty:ty, $parse:path, $expects:expr) => {
        impl Param for $ty {
            fn expects() -> String {
                $expects.to_owned()
            }
            fn parse(raw: &Raw) -> Result<Self, String> {
                let text = raw.text().ok_or_else(|| format!("is not {}", $expects))?;
                $parse(&text)
            }
            fn show(&self) -> String {
                self.to_string()
            }
        }
    };
}

literal!(Dur, units::parse_dur, "a time, like `10us`");
literal!(Rate, units::parse_rate, "a rate, like `10Gbps`");
literal!(Bytes, units::parse_bytes, "a size, like `150KB`");
literal!(Limit, units::parse_limit, "a limit, like `100pkt`, `150KB` or `unlimited`");

impl Param for Fraction {
    fn expects() -> String {
        "a fraction, like `0.8`".to_owned()
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        let text = raw.text().ok_or_else(|| format!("is not {}", Self::expects()))?;
        units::parse_fraction(&text)
    }
    fn show(&self) -> String {
        self.to_string()
    }
    fn of_percent(&self) -> Option<Self> {
        // A little more than one is a fraction that is too large.
        (self.0 >= 5 * Fraction::ONE.0).then_some(Fraction(self.0 / 100))
    }
}

impl Param for RateOr {
    fn expects() -> String {
        "a rate, like `0.8Gbps`, or a fraction of the line rate, like `0.8`".to_owned()
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        let text = raw.text().ok_or_else(|| format!("is not {}", Self::expects()))?;
        if let Ok(fraction) = units::parse_fraction(&text) {
            return Ok(RateOr::Fraction(fraction));
        }
        units::parse_rate(&text).map(RateOr::Rate)
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

impl PartialOrd for RateOr {
    /// Compares values of the same kind only.
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        match (self, other) {
            (RateOr::Rate(a), RateOr::Rate(b)) => a.partial_cmp(b),
            (RateOr::Fraction(a), RateOr::Fraction(b)) => a.partial_cmp(b),
            _ => None,
        }
    }
}
impl PartialOrd for Limit {
    /// Compares values of the same kind only; `Unlimited` is above every limit.
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        use std::cmp::Ordering::{Equal, Greater, Less};
        match (self, other) {
            (Limit::Packets(a), Limit::Packets(b)) => a.partial_cmp(b),
            (Limit::Bytes(a), Limit::Bytes(b)) => a.partial_cmp(b),
            (Limit::Unlimited, Limit::Unlimited) => Some(Equal),
            (Limit::Unlimited, _) => Some(Greater),
            (_, Limit::Unlimited) => Some(Less),
            _ => None,
        }
    }
}

macro_rules! integer {
    ($($ty:ty),*) => {$(
        impl Param for $ty {
            fn expects() -> String {
                "a whole number".to_owned()
            }
            fn shape() -> Shape {
                Shape::Integer
            }
            fn parse(raw: &Raw) -> Result<Self, String> {
                let text = raw.text().ok_or("is not a whole number")?;
                let n: i128 = text.parse().map_err(|_| "is not a whole number".to_owned())?;
                <$ty>::try_from(n).map_err(|_| format!("{OUT_OF_RANGE}: from {} to {}", <$ty>::MIN, <$ty>::MAX))
            }
            fn show(&self) -> String {
                self.to_string()
            }
        }
    )*};
}
integer!(u8, u16, u32, u64, i64);

impl Param for f64 {
    fn expects() -> String {
        "a number".to_owned()
    }
    fn shape() -> Shape {
        Shape::Number
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        let text = raw.text().ok_or("is not a number")?;
        match text.parse::<f64>() {
            Ok(x) if x.is_finite() => Ok(x),
            Ok(_) => Err("is not finite".to_owned()),
            Err(_) => Err("is not a number".to_owned()),
        }
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Param for bool {
    fn expects() -> String {
        "`true` or `false`".to_owned()
    }
    fn shape() -> Shape {
        Shape::Bool
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        match raw {
            Raw::Bool(b) => Ok(*b),
            Raw::Str(s) if s == "true" => Ok(true),
            Raw::Str(s) if s == "false" => Ok(false),
            _ => Err("is neither `true` nor `false`".to_owned()),
        }
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Param for String {
    fn expects() -> String {
        "a text".to_owned()
    }
    fn shape() -> Shape {
        Shape::Text
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        match raw {
            Raw::Str(s) => Ok(s.clone()),
            _ => Err("is not a text in quotes".to_owned()),
        }
    }
    fn show(&self) -> String {
        self.clone()
    }
}

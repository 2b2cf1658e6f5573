//! Ranges of settings: exact decimal numbers with a unit.

use base::units::{parse_bytes, parse_dur, parse_rate};
use std::cmp::Ordering;
use std::fmt;

/// Maximum number of digits of a number, before and after its point.
const MOST_DIGITS: usize = 18;

/// Decimals of the values of a range without a unit of its own, unless its ends have more: a
/// fraction of a scenario has nine.
const FEWEST_DECIMALS: u32 = 9;

/// An exact decimal number.
#[derive(Clone, Copy, Debug)]
pub struct Decimal {
    /// The number is `mantissa / 10^decimals`. Its size is at most `2^64 * 10^18`, so that two
    /// numbers can be compared.
    mantissa: i128,
    decimals: u32,
}

impl Decimal {
    fn whole(mantissa: u64) -> Decimal {
        Decimal { mantissa: i128::from(mantissa), decimals: 0 }
    }
    /// Reads digits with an optional sign and an optional point: `-0.5`, `1_000`.
    fn read(text: &str) -> Option<Decimal> {
        let (sign, digits) = match text.strip_prefix('-') {
            Some(digits) => (-1, digits),
            None => (1, text.strip_prefix('+').unwrap_or(text)),
        };
        let digits = digits.replace('_', "");
        let (whole, decimals) = digits.split_once('.').unwrap_or((&digits, ""));
        let digits = format!("{whole}{decimals}");
        let plain = !whole.is_empty() && digits.len() <= MOST_DIGITS && digits.bytes().all(|b| b.is_ascii_digit());
        plain.then(|| Some(Decimal { mantissa: sign * digits.parse::<i128>().ok()?, decimals: decimals.len() as u32 }))?
    }
    /// Returns whether it is a multiple of `10^-decimals`.
    fn has_at_most(self, decimals: u32) -> bool {
        self.decimals <= decimals || self.mantissa % 10i128.pow(self.decimals - decimals) == 0
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Decimal) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Decimal {}
impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Decimal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Decimal {
    fn cmp(&self, other: &Decimal) -> Ordering {
        (self.mantissa * 10i128.pow(other.decimals)).cmp(&(other.mantissa * 10i128.pow(self.decimals)))
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{:0>width$}", self.mantissa.unsigned_abs(), width = self.decimals as usize + 1);
        let (whole, decimals) = digits.split_at(digits.len() - self.decimals as usize);
        let decimals = decimals.trim_end_matches('0');
        let point = if decimals.is_empty() { "" } else { "." };
        write!(f, "{}{whole}{point}{decimals}", if self.mantissa < 0 { "-" } else { "" })
    }
}

/// A number with its unit. Sizes are in bytes, times in nanoseconds and rates in bits per second,
/// so that numbers with different units of the same quantity can be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Quantity {
    number: Decimal,
    unit: String,
    /// Number of decimals that a value in this unit may have: a time has picoseconds.
    decimals: u32,
}

impl Quantity {
    /// Reads a number with any unit: `8KB`, `20pkt`, `5%`, `0.5`. Returns `None` if the text is none.
    pub fn read(text: &str) -> Option<Quantity> {
        let text = text.trim();
        let quantity = |number, unit: &str, decimals| Some(Quantity { number, unit: unit.to_owned(), decimals });
        if let Ok(bytes) = parse_bytes(text) {
            return quantity(Decimal::whole(bytes.0), "B", 0);
        }
        if let Ok(time) = parse_dur(text) {
            return quantity(Decimal { mantissa: i128::from(time.0), decimals: 3 }, "ns", 3);
        }
        if let Ok(rate) = parse_rate(text) {
            return quantity(Decimal::whole(rate.0), "bps", 0);
        }
        let end = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | '_'))).unwrap_or(text.len());
        let (number, unit) = (Decimal::read(&text[..end])?, text[end..].trim());
        if unit.contains(|c: char| c.is_ascii_digit()) {
            return None; // such as an exponent
        }
        quantity(number, unit, if number.decimals == 0 { 0 } else { number.decimals.max(FEWEST_DECIMALS) })
    }
}

/// The numbers that a setting may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// Smallest number, in `unit`.
    pub low: Decimal,
    /// Largest number, in `unit`.
    pub high: Decimal,
    /// The unit that is written after a number; may be empty.
    pub unit: String,
    /// Maximum number of decimals of a number; 0 if only whole numbers are allowed.
    pub decimals: u32,
}

impl Range {
    /// Returns the range between two numbers with compatible units. Does not compare them.
    pub(super) fn between(low: &str, high: &str) -> Option<Range> {
        let (low, high) = (Quantity::read(low)?, Quantity::read(high)?);
        let decimals = low.decimals.max(high.decimals);
        (low.unit == high.unit).then_some(Range { low: low.number, high: high.number, unit: low.unit, decimals })
    }
    /// Returns a value of the range as the search writes it: in the unit of the range. The error
    /// completes a sentence that begins with the value.
    pub(super) fn value(&self, text: &str) -> Result<String, String> {
        let value = Quantity::read(text).filter(|value| value.unit == self.unit).ok_or("is not in the unit of `low` and `high`")?;
        if value.number < self.low || value.number > self.high {
            return Err("is out of the range from `low` to `high`".to_owned());
        }
        if !value.number.has_at_most(self.decimals) {
            return Err(match self.decimals {
                0 => "is not a whole number, as `low` and `high` are".to_owned(),
                decimals => format!("has more than {decimals} decimals"),
            });
        }
        Ok(format!("{}{}", value.number, self.unit))
    }
    /// Returns whether all numbers have a logarithm.
    pub(super) fn is_positive(&self) -> bool {
        self.low.mantissa > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_exact_and_in_the_smallest_unit() {
        let both = |low, high| Range::between(low, high).map(|r| (r.low.to_string(), r.high.to_string(), r.unit, r.decimals));
        let found =
            |low: &str, high: &str, unit: &str, decimals| Some((low.to_owned(), high.to_owned(), unit.to_owned(), decimals));
        assert_eq!(both("8KB", "1MiB"), found("8000", "1048576", "B", 0));
        assert_eq!(both("999999999999999B", "1000000GB").unwrap().0, "999999999999999");
        assert_eq!(both("0.5ns", "2ms"), found("0.5", "2000000", "ns", 3));
        assert_eq!(both("1Gbps", "10Gb/s"), found("1000000000", "10000000000", "bps", 0));
        assert_eq!(both("20pkt", " 400 pkt"), found("20", "400", "pkt", 0));
        assert_eq!(both("0.5%", "4%"), found("0.5", "4", "%", 9));
        assert_eq!(both("-3", "1_600"), found("-3", "1600", "", 0));
        assert_eq!(both("0.1", "1.0"), found("0.1", "1", "", 9));
        assert_eq!(both("-0.0000000000125", "1"), found("-0.0000000000125", "1", "", 13));
        for (low, high) in
            [("1us", "1KB"), ("1pkt", "1KB"), ("a", "b"), ("nan", "1"), ("1", "inf"), ("", ""), ("1e99", "2e99"), ("1.2.3", "2")]
        {
            assert_eq!(both(low, high), None, "{low} {high}");
        }
    }

    #[test]
    fn a_value_is_within_its_range_and_in_its_unit() {
        let within = |low, high, value| Range::between(low, high).unwrap().value(value);
        for (low, high, value, written) in [
            ("8KB", "1MB", "128KiB", "131072B"),
            ("0", "1.0", "0.50", "0.5"),
            ("1ns", "2us", "1.5us", "1500ns"),
            ("1", "10", "2.0", "2"),
            ("-2.5", "-1", "-2.5", "-2.5"),
        ] {
            assert_eq!(within(low, high, value), Ok(written.to_owned()));
        }
        for (low, high, value, error) in [
            ("2pkt", "60pkt", "61pkt", "is out of the range from `low` to `high`"),
            ("-2.5", "-1", "-2.5000000001", "is out of the range from `low` to `high`"),
            ("0.2", "0.8", "0.5000000001", "has more than 9 decimals"),
            ("1", "10", "2.5", "is not a whole number, as `low` and `high` are"),
            ("2pkt", "60pkt", "20KB", "is not in the unit of `low` and `high`"),
            ("2pkt", "60pkt", "20", "is not in the unit of `low` and `high`"),
            ("2pkt", "60pkt", "many", "is not in the unit of `low` and `high`"),
        ] {
            assert_eq!(within(low, high, value), Err(error.to_owned()), "{value}");
        }
    }
}

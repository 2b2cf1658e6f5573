//! Rates, times and probabilities in files of ns-3 programs, as ns-3 reads them.
//!
//! Source: ns-3, `src/network/utils/data-rate.cc` (`DoParse`) and `src/core/model/time.cc`
//! (`Time::Time (const std::string&)`); numbers are those of C++ (`std::istream >> double`).
//!
//! A rate without a unit is in bits per second, a time without a unit in seconds. Fractions of a
//! bit per second are cut off, as in ns-3. Times are rounded to picoseconds, where ns-3 keeps
//! nanoseconds by default. ns-3 refuses rates with exponents; here they are read.

use base::params::nearest;
use base::{Dur, Fraction, Rate};

/// A number as written: `mantissa` times ten to the power of `exponent`.
struct Decimal {
    mantissa: u128,
    exponent: i32,
}

/// Prefixes of units of rates, with their factors.
const PREFIXES: [(&str, u128); 10] = [
    ("", 1),
    ("k", 1_000),
    ("K", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
];

/// Units of times, with mantissa and exponent in picoseconds. A year has 365 days.
const TIMES: [(&str, u128, i32); 10] = [
    ("s", 1, 12),
    ("ms", 1, 9),
    ("us", 1, 6),
    ("ns", 1, 3),
    ("ps", 1, 0),
    ("fs", 1, -3),
    ("min", 60, 12),
    ("h", 3_600, 12),
    ("d", 86_400, 12),
    ("y", 31_536_000, 12),
];

/// Reads a rate such as `100Gbps`, `2.5MB/s` or `25000000000.0`. The error completes a sentence that
/// begins with the text.
pub(crate) fn rate(text: &str) -> Result<Rate, String> {
    let (number, unit) = number(text)?;
    let rates = || {
        PREFIXES.iter().flat_map(|(prefix, factor)| {
            [("bps", 1), ("b/s", 1), ("Bps", 8), ("B/s", 8)].map(|(base, bits)| (format!("{prefix}{base}"), factor * bits))
        })
    };
    let factor = if unit.is_empty() { Some(1) } else { rates().find(|(name, _)| name == unit).map(|(_, factor)| factor) };
    let Some(factor) = factor else {
        let names: Vec<String> = rates().map(|(name, _)| name).collect();
        return Err(unknown(unit, &names, "`bps`, `b/s`, `Bps` and `B/s`, with a prefix like `M`, `G` or `Gi`"));
    };
    number.times(factor, 0)?.floor().map(Rate)
}

/// Reads a time such as `1us`, `1e-6s` or `0.000001`, rounded to picoseconds. The error completes a
/// sentence that begins with the text.
pub(crate) fn time(text: &str) -> Result<Dur, String> {
    let (number, unit) = number(text)?;
    let unit = if unit.is_empty() { "s" } else { unit };
    let Some((_, factor, exponent)) = TIMES.iter().find(|(name, ..)| *name == unit) else {
        let names = TIMES.map(|(name, ..)| name.to_owned());
        return Err(unknown(unit, &names, "`s`, `ms`, `us`, `ns`, `ps`, `fs`, `min`, `h`, `d` and `y`"));
    };
    number.times(*factor, *exponent)?.round().map(Dur)
}

/// Reads a probability such as `0.001` or `1e-6`, rounded to nine places; one that would be rounded
/// to 0 is an error. The error completes a sentence that begins with the text.
pub(crate) fn fraction(text: &str) -> Result<Fraction, String> {
    let (number, unit) = number(text)?;
    if !unit.is_empty() {
        return Err("is not a number, like `0.001`".to_owned());
    }
    match (number.mantissa, number.times(1, 9)?.round()?) {
        (1.., 0) => Err("is less than 0.000000001".to_owned()),
        (_, parts) => Ok(Fraction(parts)),
    }
}

/// Reads a number of seconds such as `2.000010` or `1e-05`, rounded to picoseconds. The error
/// completes a sentence that begins with the text.
pub(crate) fn seconds(text: &str) -> Result<Dur, String> {
    match number(text)? {
        (number, "") => number.times(1, 12)?.round().map(Dur),
        _ => Err("is not a number, like `2.00001`".to_owned()),
    }
}

fn unknown(unit: &str, names: &[String], known: &str) -> String {
    let names = || names.iter().map(String::as_str);
    let near = names().find(|name| name.eq_ignore_ascii_case(unit)).or_else(|| nearest(unit, names()));
    let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    format!("has the unit `{unit}`, but ns-3 knows {known}{near}")
}

/// Splits a text into a number and what follows.
fn number(text: &str) -> Result<(Decimal, &str), String> {
    let bad = || "does not begin with a number".to_owned();
    let signed = text.strip_prefix('+').unwrap_or(text);
    if signed.starts_with('-') {
        return Err("is negative".to_owned());
    }
    let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (whole, rest) = signed.split_at(digits(signed));
    let (decimals, rest) = match rest.strip_prefix('.') {
        Some(after) => after.split_at(digits(after)),
        None => ("", rest),
    };
    if whole.is_empty() && decimals.is_empty() {
        return Err(bad());
    }
    // An exponent, unless the letter begins a unit.
    let (written, rest) = match rest.strip_prefix(['e', 'E']) {
        Some(after) => {
            let sign = usize::from(after.starts_with(['+', '-']));
            match digits(&after[sign..]) {
                0 => (0, rest),
                some => (after[..sign + some].parse().map_err(|_| bad())?, &after[sign + some..]),
            }
        }
        None => (0i32, rest),
    };
    let decimals = decimals.trim_end_matches('0');
    let mut digits = whole.bytes().chain(decimals.bytes()).map(|digit| u128::from(digit - b'0'));
    let mantissa = digits.try_fold(0u128, |sum, digit| sum.checked_mul(10)?.checked_add(digit)).ok_or("has too many digits")?;
    let exponent = i32::try_from(decimals.len()).ok().and_then(|places| written.checked_sub(places)).ok_or_else(bad)?;
    Ok((Decimal { mantissa, exponent }, rest))
}

impl Decimal {
    fn times(self, factor: u128, exponent: i32) -> Result<Decimal, String> {
        let mantissa = self.mantissa.checked_mul(factor).ok_or("has too many digits")?;
        Ok(Decimal { mantissa, exponent: self.exponent.saturating_add(exponent) })
    }
    /// Returns the whole part.
    fn floor(self) -> Result<u64, String> {
        self.divided(0)
    }
    /// Returns the nearest whole number; halves are rounded up.
    fn round(self) -> Result<u64, String> {
        self.divided(1)
    }
    /// Returns the whole part of the number plus `halves` halves.
    fn divided(self, halves: u128) -> Result<u64, String> {
        let power = 10u128.checked_pow(self.exponent.unsigned_abs());
        let whole = match (self.mantissa, power) {
            (0, _) => Some(0),
            (mantissa, Some(power)) if self.exponent >= 0 => mantissa.checked_mul(power),
            (_, None) if self.exponent >= 0 => None,
            (mantissa, Some(power)) => mantissa.checked_add(power / 2 * halves).map(|sum| sum / power),
            (_, None) => Some(0),
        };
        whole.and_then(|whole| u64::try_from(whole).ok()).ok_or_else(|| "is too large".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_the_units_of_ns3() {
        for (text, bps) in [
            ("25000000000.0", 25_000_000_000),
            ("25000000000", 25_000_000_000),
            ("100Gbps", 100_000_000_000),
            ("25e9", 25_000_000_000),
            ("2.5E3Mb/s", 2_500_000_000),
            ("10bps", 10),
            ("10b/s", 10),
            ("10Bps", 80),
            ("10B/s", 80),
            ("1kbps", 1_000),
            ("1Kbps", 1_000),
            ("1kb/s", 1_000),
            ("1Kb/s", 1_000),
            ("1kBps", 8_000),
            ("1KB/s", 8_000),
            ("1Kib/s", 1_024),
            ("1KiB/s", 8_192),
            ("1MBps", 8_000_000),
            ("1MB/s", 8_000_000),
            ("1Mib/s", 1_048_576),
            ("1MiB/s", 8_388_608),
            ("1GB/s", 8_000_000_000),
            ("1Gib/s", 1_073_741_824),
            ("1GiB/s", 8_589_934_592),
            (".5Gbps", 500_000_000),
            ("5.Mbps", 5_000_000),
            ("1.9", 1),
        ] {
            assert_eq!(rate(text), Ok(Rate(bps)), "{text}");
        }
    }

    #[test]
    fn times_have_the_units_of_ns3_and_are_rounded_to_picoseconds() {
        const S: u64 = 1_000_000_000_000;
        for (text, ps) in [
            ("1us", 1_000_000),
            ("0.000001", 1_000_000),
            ("1e-6s", 1_000_000),
            ("1E-6", 1_000_000),
            ("+0.001ms", 1_000_000),
            ("1000ns", 1_000_000),
            ("0.000025ms", 25_000),
            ("3ps", 3),
            ("1500fs", 2),
            ("1499fs", 1),
            ("0.4ps", 0),
            ("1e-400s", 0),
            ("2s", 2 * S),
            ("2min", 120 * S),
            ("2h", 7_200 * S),
            ("2d", 172_800 * S),
            ("0.5y", 15_768_000 * S),
            ("0e99999s", 0),
        ] {
            assert_eq!(time(text), Ok(Dur(ps)), "{text}");
        }
        assert_eq!(["2.000010", "1e-05", "2"].map(seconds), [Ok(Dur(2 * S + 10_000_000)), Ok(Dur(10_000_000)), Ok(Dur(2 * S))]);
    }

    #[test]
    fn probabilities_have_nine_places() {
        assert_eq!(
            ["0.000000", "0", "1e-6", "0.25", "0.0000000014"].map(fraction),
            [0, 0, 1_000, 250_000_000, 1].map(|n| Ok(Fraction(n)))
        );
        assert_eq!(fraction("1e-10"), Err("is less than 0.000000001".to_owned()));
        assert!(fraction("1%").is_err());
    }

    #[test]
    fn what_ns3_does_not_know_is_refused() {
        for (text, why) in [
            ("1Gb", "has the unit `Gb`, but ns-3 knows `bps`"),
            ("1gbps", "did you mean `Gbps`?"),
            ("Gbps", "does not begin with a number"),
            (".bps", "does not begin with a number"),
            ("-1Gbps", "is negative"),
            ("1e400", "is too large"),
            ("99999999999999999999999999999999999999999", "too many digits"),
            ("0.12345678901234567890123456789012345Gbps", "too many digits"),
            ("1e99999999999", "does not begin with a number"),
        ] {
            assert!(rate(text).unwrap_err().contains(why), "{text}: {:?}", rate(text));
        }
        for (text, why) in [("1sec", "has the unit `sec`, but ns-3 knows `s`"), ("1e9y", "is too large"), ("", "does not begin")] {
            assert!(time(text).unwrap_err().contains(why), "{text}: {:?}", time(text));
        }
        assert!(seconds("2s").is_err());
    }
}

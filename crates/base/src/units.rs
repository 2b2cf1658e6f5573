//! Rates, sizes, fractions and queue limits: exact integers, read and written as the literals of
//! scenario files.

use crate::time::Dur;
use std::fmt;

/// A rate in bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Rate(pub u64);

/// A size in bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Bytes(pub u64);

/// A fraction in parts per billion, so that products with rates are whole numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Fraction(pub u64);

/// A queue limit, in waiting packets or waiting bytes. The packet in transmission does not count.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Limit {
    /// `"100pkt"`
    Packets(u32),
    /// `"150KB"`
    Bytes(u64),
    /// `"unlimited"`
    #[default]
    Unlimited,
}

impl Limit {
    /// Returns whether `packets` packets with `bytes` bytes in total exceed the limit.
    #[inline]
    pub fn exceeded_by(self, packets: u32, bytes: u64) -> bool {
        match self {
            Limit::Packets(n) => packets > n,
            Limit::Bytes(n) => bytes > n,
            Limit::Unlimited => false,
        }
    }
    /// Returns the limit in bytes if every packet has `packet` bytes, or `None` if there is no limit.
    pub fn in_bytes(self, packet: Bytes) -> Option<Bytes> {
        match self {
            Limit::Packets(n) => Some(Bytes(u64::from(n).saturating_mul(packet.0))),
            Limit::Bytes(n) => Some(Bytes(n)),
            Limit::Unlimited => None,
        }
    }
}

/// A rate, or a fraction of the rate of a link.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum RateOr {
    /// `"0.8Gbps"`
    Rate(Rate),
    /// `0.8`
    Fraction(Fraction),
}

/// Picoseconds in a second.
const PS_PER_SEC: u128 = 1_000_000_000_000;

impl Rate {
    /// Returns bits per second.
    pub const fn bps(self) -> u64 {
        self.0
    }
    /// Returns `n` gigabits per second.
    pub const fn from_gbps(n: u64) -> Rate {
        Rate(n * 1_000_000_000)
    }
    /// Returns picoseconds per byte with 16 fractional bits, rounded down: exact for every standard
    /// rate.
    pub const fn ps_per_byte_fp16(self) -> u64 {
        (((8 * PS_PER_SEC) << 16) / self.0 as u128) as u64
    }
    /// Returns the transmission time of `bytes`: `ceil(8e12 * bytes / rate)` ps, from
    /// [`ps_per_byte_fp16`](Self::ps_per_byte_fp16).
    pub fn tx_time(self, bytes: u64) -> Dur {
        let ps = (u128::from(bytes) * u128::from(self.ps_per_byte_fp16())).div_ceil(1 << 16);
        Dur(u64::try_from(ps).expect("a transmission shorter than 213 days"))
    }
    /// Returns the pacing gap after `bytes` at this rate: `ceil(bits * 1e12 / rate)` ps.
    pub fn gap(self, bytes: u64) -> Dur {
        Dur((u128::from(bytes) * 8 * PS_PER_SEC).div_ceil(u128::from(self.0)) as u64)
    }
    /// Returns the whole bytes sent in `d`, rounded down.
    pub fn bytes_in(self, d: Dur) -> u64 {
        (u128::from(self.0) * u128::from(d.0) / (8 * PS_PER_SEC)) as u64
    }
    /// Returns `fraction` of this rate, rounded down.
    pub fn times(self, fraction: Fraction) -> Rate {
        let product = u128::from(self.0) * u128::from(fraction.0);
        // Ports call this for every packet, and a 64-bit division takes only a few instructions.
        Rate(match u64::try_from(product) {
            Ok(product) => product / Fraction::ONE.0,
            Err(_) => (product / u128::from(Fraction::ONE.0)) as u64,
        })
    }
}

impl Dur {
    /// Returns `fraction` of this time, rounded down, or [`Dur::MAX`] if the product is out of range.
    pub fn times(self, fraction: Fraction) -> Dur {
        let product = u128::from(self.0) * u128::from(fraction.0) / u128::from(Fraction::ONE.0);
        Dur(u64::try_from(product).unwrap_or(u64::MAX))
    }
}

impl Fraction {
    /// One.
    pub const ONE: Fraction = Fraction(1_000_000_000);
    /// Returns `n` percent.
    pub const fn from_percent(n: u64) -> Fraction {
        Fraction(n * 10_000_000)
    }
    /// Returns parts per billion.
    pub const fn ppb(self) -> u64 {
        self.0
    }
    /// Returns `1 - self`. Panics if `self` is above one.
    pub fn complement(self) -> Fraction {
        Fraction(Self::ONE.0 - self.0)
    }
}

impl RateOr {
    /// Returns the rate on a link with the rate `line`.
    pub fn on(self, line: Rate) -> Rate {
        match self {
            RateOr::Rate(rate) => rate,
            RateOr::Fraction(fraction) => line.times(fraction),
        }
    }
}

/// Splits a decimal literal into mantissa, number of decimals and unit: `12.5us` is (125, 1, "us").
fn split(text: &str) -> Option<(u128, u32, &str)> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let digits: String = number.chars().filter(|c| *c != '_').collect();
    let (whole, decimals) = digits.split_once('.').unwrap_or((&digits, ""));
    if whole.is_empty() || decimals.contains('.') || (digits.contains('.') && decimals.is_empty()) || digits.len() > 30 {
        return None;
    }
    let mantissa = format!("{whole}{decimals}").parse().ok()?;
    Some((mantissa, decimals.len() as u32, unit.trim()))
}

/// Returns `mantissa / 10^decimals * scale` as a whole number in 64 bits.
fn whole(mantissa: u128, decimals: u32, scale: u128) -> Result<u64, String> {
    let product = mantissa.checked_mul(scale).ok_or(TOO_LARGE)?;
    let divisor = 10u128.pow(decimals);
    if product % divisor != 0 {
        return Err("is not a whole multiple of the smallest unit".to_owned());
    }
    u64::try_from(product / divisor).map_err(|_| TOO_LARGE.to_owned())
}

fn refuse_negative(text: &str) -> Result<(), String> {
    if text.trim().starts_with('-') { Err("is negative".to_owned()) } else { Ok(()) }
}

/// The largest time, size and rate of a scenario. Sums of thousands of them fit into 64 bits: those of the headroom
/// of all ports, of a limit and a packet, of the time now and a timeout.
pub const LARGEST: (Dur, Bytes, Rate) = (Dur::from_secs(1_000_000), Bytes(1_000_000_000_000_000), Rate(1_000_000_000_000_000));

fn with_unit(text: &str, units: &[(&str, u128)], example: &str, most: u64) -> Result<u64, String> {
    let names = || units.iter().map(|u| format!("`{}`", u.0)).collect::<Vec<_>>().join(", ");
    refuse_negative(text)?;
    let (mantissa, decimals, unit) = split(text.trim()).ok_or_else(|| format!("is not a number with a unit, like `{example}`"))?;
    if unit.is_empty() {
        return Err(format!("has no unit: write one of {}, like `{example}`", names()));
    }
    let scale = units.iter().find(|u| u.0 == unit).ok_or_else(|| format!("has the unit `{unit}`, but allowed are {}", names()))?;
    let number = whole(mantissa, decimals, scale.1)?;
    if number > most { Err(TOO_LARGE.to_owned()) } else { Ok(number) }
}

const TOO_LARGE: &str = "is too large";

/// The prefix of errors about a number that the type cannot hold.
pub(crate) const OUT_OF_RANGE: &str = "is out of range";

/// Names the largest value of a type in the error about a value that exceeds it.
fn at_most<T>(read: Result<u64, String>, make: fn(u64) -> T, most: &impl fmt::Display) -> Result<T, String> {
    read.map(make).map_err(|why| if why == TOO_LARGE { format!("{OUT_OF_RANGE}: the largest value is `{most}`") } else { why })
}

/// Reads a duration such as `1.5us`. The error completes a sentence that begins with the value.
pub fn parse_dur(text: &str) -> Result<Dur, String> {
    const UNITS: [(&str, u128); 5] = [("ps", 1), ("ns", 1_000), ("us", 1_000_000), ("ms", 1_000_000_000), ("s", PS_PER_SEC)];
    at_most(with_unit(text, &UNITS, "10us", LARGEST.0.0), Dur, &LARGEST.0)
}

/// Reads a rate such as `10Gbps` or `40Gb/s`.
pub fn parse_rate(text: &str) -> Result<Rate, String> {
    const UNITS: [(&str, u128); 10] = [
        ("bps", 1),
        ("kbps", 1_000),
        ("Mbps", 1_000_000),
        ("Gbps", 1_000_000_000),
        ("Tbps", PS_PER_SEC),
        ("b/s", 1),
        ("kb/s", 1_000),
        ("Mb/s", 1_000_000),
        ("Gb/s", 1_000_000_000),
        ("Tb/s", PS_PER_SEC),
    ];
    at_most(with_unit(text, &UNITS, "10Gbps", LARGEST.2.0), Rate, &LARGEST.2)
}

/// Reads a size such as `150KB` (10^3) or `64KiB` (2^10).
pub fn parse_bytes(text: &str) -> Result<Bytes, String> {
    const UNITS: [(&str, u128); 9] = [
        ("B", 1),
        ("kB", 1_000),
        ("KB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", PS_PER_SEC),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
    ];
    at_most(with_unit(text, &UNITS, "150KB", LARGEST.1.0), Bytes, &LARGEST.1)
}

/// Reads a queue limit: `100pkt`, `150KB` or `unlimited`.
pub fn parse_limit(text: &str) -> Result<Limit, String> {
    let text = text.trim();
    if text == "unlimited" {
        return Ok(Limit::Unlimited);
    }
    if let Some(number) = text.strip_suffix("pkt") {
        return number.trim().parse().map(Limit::Packets).map_err(|_| "is not a whole number of packets, like `100pkt`".to_owned());
    }
    parse_bytes(text).map(|bytes| Limit::Bytes(bytes.0)).map_err(|why| match why.starts_with(OUT_OF_RANGE) {
        true => why,
        false => "is not a limit: write packets (`100pkt`), bytes (`150KB`) or `unlimited`".to_owned(),
    })
}

/// Reads a fraction written as a decimal, to nine places.
pub fn parse_fraction(text: &str) -> Result<Fraction, String> {
    refuse_negative(text)?;
    match split(text.trim()) {
        Some((mantissa, decimals, "")) => whole(mantissa, decimals, 1_000_000_000).map(Fraction),
        _ => Err("is not a number, like `0.8`".to_owned()),
    }
}

/// Writes `value` in the largest unit that divides it.
fn show(f: &mut fmt::Formatter<'_>, value: u64, units: &[(u64, &str)]) -> fmt::Result {
    for &(scale, unit) in units {
        if value >= scale && value.is_multiple_of(scale) {
            return write!(f, "{}{unit}", value / scale);
        }
    }
    write!(f, "{value}{}", units.last().expect("at least one unit").1)
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(f, self.0, &[(1_000_000_000, "Gbps"), (1_000_000, "Mbps"), (1_000, "kbps"), (1, "bps")])
    }
}
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(f, self.0, &[(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "KB"), (1, "B")])
    }
}
impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{}.{:09}", self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        f.write_str(digits.trim_end_matches('0').trim_end_matches('.'))
    }
}
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Limit::Packets(n) => write!(f, "{n}pkt"),
            Limit::Bytes(n) => Bytes(n).fmt(f),
            Limit::Unlimited => f.write_str("unlimited"),
        }
    }
}
impl fmt::Display for RateOr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RateOr::Rate(rate) => rate.fmt(f),
            RateOr::Fraction(fraction) => fraction.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_rates_have_whole_byte_times() {
        for (gbps, ps) in [(1, 8000), (10, 800), (25, 320), (40, 200), (100, 80), (400, 20), (800, 10)] {
            assert_eq!(Rate::from_gbps(gbps).tx_time(1500), Dur(ps * 1500));
        }
    }

    #[test]
    fn odd_rates_round_up() {
        // 3 Gb/s: 8000/3 ps a byte.
        assert_eq!(Rate::from_gbps(3).tx_time(1), Dur(2667));
        assert_eq!(Rate::from_gbps(3).tx_time(1500), Dur(4_000_000));
        // alpha C of MERP's vector U1: 1500 B at 0.999 Gb/s is 12.012012... us.
        assert_eq!(Rate(999_000_000).gap(1500), Dur(12_012_013));
    }

    #[test]
    fn literals_round_trip() {
        for text in ["10us", "1.5us", "129.28us", "200ms", "10s", "800ps"] {
            assert_eq!(parse_dur(text).unwrap().to_string(), text);
        }
        for text in ["10Gbps", "40Gbps", "800Mbps", "1bps"] {
            assert_eq!(parse_rate(text).unwrap().to_string(), text);
        }
        for text in ["150KB", "1500B", "1GB"] {
            assert_eq!(parse_bytes(text).unwrap().to_string(), text);
        }
        for text in ["100pkt", "150KB", "unlimited"] {
            assert_eq!(parse_limit(text).unwrap().to_string(), text);
        }
        for text in ["0.999", "1", "0.000000001"] {
            assert_eq!(parse_fraction(text).unwrap().to_string(), text);
        }
        let in_bytes = |text: &str| parse_limit(text).unwrap().in_bytes(Bytes(1500));
        assert_eq!(["20pkt", "30KB", "unlimited"].map(in_bytes), [Some(Bytes(30_000)), Some(Bytes(30_000)), None]);
        assert_eq!(parse_rate("0.8Gb/s"), Ok(Rate(800_000_000)));
        assert_eq!(parse_bytes("64KiB"), Ok(Bytes(65_536)));
    }

    #[test]
    fn bad_literals_say_what_is_allowed() {
        for bad in ["", "us", "1.", "1..2us", "-1us", "1 parsec", "5", "nan", "1e3us", "0.5ps"] {
            assert!(parse_dur(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_fraction("-0.5"), Err("is negative".to_owned()));
        assert!(parse_rate("10GB").unwrap_err().contains("`Gbps`"));
        assert!(parse_limit("100").unwrap_err().contains("`100pkt`"));
        assert!(parse_bytes("99999999999TB").unwrap_err().contains("the largest value is `1000000GB`"));
    }
}

//! Simulated time: whole picoseconds in 64 bits, which last 213 days.
//!
//! A byte at 100 Gb/s takes 80 ps, so every standard rate has whole byte times. No float is ever a time.

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub};

/// An instant, in picoseconds since the start of the run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(pub u64);

/// A span of time, in picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Dur(pub u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Time = Time(0);
    /// Later than every event; means never.
    pub const MAX: Time = Time(u64::MAX);

    /// Returns the picoseconds since the start.
    pub const fn ps(self) -> u64 {
        self.0
    }
    /// Returns seconds, for output and for floating-point statistics only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-12
    }
    /// Returns the time from `earlier` to `self`, or zero if `earlier` is later.
    pub fn since(self, earlier: Time) -> Dur {
        Dur(self.0.saturating_sub(earlier.0))
    }
    /// Returns the instant `d` before this instant, but not before the start.
    pub fn before(self, d: Dur) -> Time {
        Time(self.0.saturating_sub(d.0))
    }
    /// Returns `self + d`, or [`Time::MAX`] if the sum is out of range.
    pub fn after(self, d: Dur) -> Time {
        Time(self.0.saturating_add(d.0))
    }
}

impl Dur {
    /// Zero.
    pub const ZERO: Dur = Dur(0);
    /// Longer than every run.
    pub const MAX: Dur = Dur(u64::MAX);

    /// Returns picoseconds.
    pub const fn ps(self) -> u64 {
        self.0
    }
    /// Returns `n` nanoseconds.
    pub const fn from_ns(n: u64) -> Dur {
        Dur(n * 1_000)
    }
    /// Returns `n` microseconds.
    pub const fn from_us(n: u64) -> Dur {
        Dur(n * 1_000_000)
    }
    /// Returns `n` milliseconds.
    pub const fn from_ms(n: u64) -> Dur {
        Dur(n * 1_000_000_000)
    }
    /// Returns `n` seconds.
    pub const fn from_secs(n: u64) -> Dur {
        Dur(n * 1_000_000_000_000)
    }
    /// Returns seconds, for output and for floating-point statistics only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-12
    }
}

impl Add<Dur> for Time {
    type Output = Time;
    fn add(self, d: Dur) -> Time {
        Time(self.0 + d.0)
    }
}
impl AddAssign<Dur> for Time {
    fn add_assign(&mut self, d: Dur) {
        self.0 += d.0;
    }
}
impl Sub<Time> for Time {
    type Output = Dur;
    fn sub(self, t: Time) -> Dur {
        Dur(self.0 - t.0)
    }
}
impl Add for Dur {
    type Output = Dur;
    fn add(self, d: Dur) -> Dur {
        Dur(self.0 + d.0)
    }
}
impl AddAssign for Dur {
    fn add_assign(&mut self, d: Dur) {
        self.0 += d.0;
    }
}
impl Sub for Dur {
    type Output = Dur;
    fn sub(self, d: Dur) -> Dur {
        Dur(self.0 - d.0)
    }
}
impl Mul<u64> for Dur {
    type Output = Dur;
    fn mul(self, n: u64) -> Dur {
        Dur(self.0 * n)
    }
}
impl Div<u64> for Dur {
    type Output = Dur;
    fn div(self, n: u64) -> Dur {
        Dur(self.0 / n)
    }
}

impl fmt::Display for Dur {
    /// Writes the time in the largest unit that needs at most three decimals: `129.28us`, `10ms`,
    /// `800ps`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 4] = [(1_000_000_000_000, "s"), (1_000_000_000, "ms"), (1_000_000, "us"), (1_000, "ns")];
        for (scale, unit) in UNITS {
            if self.0 >= scale && self.0.is_multiple_of(scale / 1000) {
                let (whole, rest) = (self.0 / scale, self.0 % scale / (scale / 1000));
                if rest == 0 {
                    return write!(f, "{whole}{unit}");
                }
                let digits = format!("{rest:03}");
                return write!(f, "{whole}.{}{unit}", digits.trim_end_matches('0'));
            }
        }
        write!(f, "{}ps", self.0)
    }
}
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Dur(self.0).fmt(f)
    }
}
impl fmt::Debug for Dur {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "@{}", Dur(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_the_largest_exact_unit() {
        let shown: Vec<String> = [0, 800, 1_500, 129_280_000, 10_000_000_000, 1_234_567].map(|ps| Dur(ps).to_string()).to_vec();
        assert_eq!(shown, ["0ps", "800ps", "1.5ns", "129.28us", "10ms", "1234.567ns"]);
    }
}

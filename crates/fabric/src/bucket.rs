//! A token bucket: bytes may pass at a rate, with a burst at once. It is exact: no time and no byte
//! is rounded away, however often it is read.

use base::{Bytes, Hold, Rate, Time};

/// Tokens that one byte costs. A rate in bits per second makes this many tokens in 8e12 ps, so that
/// the tokens of any time span are an integer.
const BYTE: u128 = 8_000_000_000_000;

/// The bucket. Tokens arrive continuously at its rate until it is full.
#[derive(Clone, Copy, Debug)]
pub struct Bucket {
    rate: Rate,
    most: u128,
    tokens: u128,
    /// When the bucket held `tokens`.
    at: Time,
}

impl Bucket {
    /// Returns a full bucket that holds the tokens of `burst` bytes.
    pub fn new(rate: Rate, burst: Bytes) -> Bucket {
        let most = u128::from(burst.0) * BYTE;
        Bucket { rate, most, tokens: most, at: Time::ZERO }
    }
    /// Fills the bucket.
    pub fn fill(&mut self, now: Time) {
        (self.tokens, self.at) = (self.most, now);
    }
    fn tokens(&self, now: Time) -> u128 {
        self.most.min(self.tokens + u128::from(self.rate.0) * u128::from(now.since(self.at).0))
    }
    /// Returns the first time at which the bucket has the tokens of `bytes`, if none are taken
    /// before. If it already had them at its last change, that is the time of the last change.
    /// `Time::MAX` if it never holds so many.
    pub fn ready(&self, bytes: u16) -> Time {
        let cost = u128::from(bytes) * BYTE;
        if self.tokens >= cost {
            return self.at;
        }
        if self.most < cost || self.rate.0 == 0 {
            return Time::MAX;
        }
        let wait = (cost - self.tokens).div_ceil(u128::from(self.rate.0));
        u64::try_from(wait + u128::from(self.at.0)).map_or(Time::MAX, Time)
    }
    /// Returns until when a packet of this length must wait for its tokens.
    pub fn hold(&self, wire_len: u16) -> Hold {
        Hold { until: self.ready(wire_len), wire_len: u32::from(wire_len) }
    }
    /// Takes the tokens of `bytes` at `now` if they are available, and returns whether they were.
    pub fn try_take(&mut self, bytes: u16, now: Time) -> bool {
        let rest = self.tokens(now).checked_sub(u128::from(bytes) * BYTE);
        if let Some(rest) = rest {
            (self.tokens, self.at) = (rest, now);
        }
        rest.is_some()
    }
    /// Takes the tokens of `bytes` at `now`. Panics if they are not available.
    pub fn take(&mut self, bytes: u16, now: Time) {
        assert!(self.try_take(bytes, now), "the tokens are there");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_full_bucket_passes_a_burst_and_then_its_rate() {
        // 1 byte in 8 ns.
        let mut bucket = Bucket::new(Rate::from_gbps(1), Bytes(3000));
        for (bytes, from, at) in [(1500, 0, 0), (1500, 0, 0), (1500, 0, 12_000), (40, 12_000, 12_320), (1500, 60_000, 60_000)] {
            let (from, at) = (Time(from * 1000), Time(at * 1000));
            assert_eq!(bucket.ready(bytes).max(from), at, "{bytes} bytes at {from}");
            assert_eq!({ bucket }.try_take(bytes, from), at == from);
            bucket.take(bytes, at);
        }
        // At 36.32 us the bucket has filled up to 3000 bytes, then 1500 were taken.
        assert_eq!(bucket.ready(1501), Time(60_008_000));
        bucket.fill(Time(60_000_000));
        assert_eq!(bucket.ready(3000), Time(60_000_000));
    }

    #[test]
    fn what_never_fits_never_passes() {
        assert_eq!(Bucket::new(Rate::from_gbps(1), Bytes(1499)).ready(1500), Time::MAX);
        assert_eq!(Bucket { tokens: 0, ..Bucket::new(Rate(0), Bytes(1500)) }.ready(1500), Time::MAX);
    }

    proptest! {
        /// At a rate that divides nothing evenly: after the burst, packet `n` passes at the
        /// picosecond at which the tokens of all bytes have arrived, and reading the bucket in
        /// between changes nothing.
        #[test]
        fn nothing_is_rounded_away(rate in 1u64..400_000_000_000, sizes in prop::collection::vec(1u16..1500, 1..60), looks in 0u64..4) {
            let mut bucket = Bucket::new(Rate(rate), Bytes(1500));
            let (mut now, mut bytes) = (Time::ZERO, 0u128);
            for size in sizes {
                bytes += u128::from(size);
                let due = Time((bytes.saturating_sub(1500) * BYTE).div_ceil(u128::from(rate)) as u64);
                prop_assert_eq!(bucket.ready(size).max(now), due.max(now));
                for look in 0..looks {
                    let between = Time(now.0 + (due.0.saturating_sub(now.0)) * look / 4);
                    prop_assert_eq!({ bucket }.try_take(size, between), due <= between);
                }
                now = now.max(due);
                bucket.take(size, now);
            }
        }
    }
}

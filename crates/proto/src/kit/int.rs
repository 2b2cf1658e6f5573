//! In-band network telemetry: what the ports on the path of a packet wrote into it.
//!
//! Source: Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, section 4.1 and Fig. 7; `int-header.h` of its simulator
//! (alibaba-edu/High-Precision-Congestion-Control) for units and their wrap-around.
//!
//! Model: a block of the extension slab holds up to [`HOPS`] hops, as many as a packet crosses
//! switches. Ports beyond them write nothing.
//!
//! Assumed:
//! - A hop has its time in ns modulo 2^24, the bytes that its port has sent in units of 128 B modulo
//!   2^22, and the bytes that wait there in units of 80 B, at most 2^18 - 1. The units are those of
//!   the simulator; its fields are two bits and one bit shorter, since it numbers five line rates
//!   where this file writes any rate.
//! - A line rate is written as seven bits times a power of ten, rounded down: exact for 10, 25, 40,
//!   100, 400 and 800 Gb/s.

use base::{Dur, Rate, Time};

/// Maximum number of hops in a stack.
pub const HOPS: usize = crate::packet::ROUTE_HOPS;

const TIME_BITS: u32 = 24;
const SENT_BITS: u32 = 22;
const QUEUE_BITS: u32 = 18;
const _: () = assert!(TIME_BITS + SENT_BITS + QUEUE_BITS == 64);
/// Bits of a line rate, and those of its power of ten.
const RATE_BITS: u32 = 10;
const POWER_BITS: u32 = 3;
/// The powers of ten.
const POWERS: [u64; 1 << POWER_BITS] =
    [1_000_000, 10_000_000, 100_000_000, 1_000_000_000, 10_000_000_000, 100_000_000_000, 1_000_000_000_000, 10_000_000_000_000];

/// Unit of sent bytes.
const SENT_UNIT: u64 = 128;
/// Unit of waiting bytes.
const QUEUE_UNIT: u64 = 80;

base::header! {
    /// The stack of hops that a packet has crossed, the first hop first. Line rates are in `rates`,
    /// ten bits each, below the number of hops in the highest four bits.
    pub struct IntStack {
        /// The number of hops, and the line rates.
        rates: u64,
        /// The first hop.
        a: u64,
        /// The second hop.
        b: u64,
        /// The third hop.
        c: u64,
        /// The fourth hop.
        d: u64,
        /// The fifth hop.
        e: u64,
        /// The sixth hop.
        f: u64,
    }
}

/// What a port writes when a packet starts on its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntHop {
    /// When, in ns modulo 2^24.
    pub time_ns: u64,
    /// Bytes that the port had sent before, modulo 2^22 units.
    pub sent_bytes: u64,
    /// Bytes that wait behind the packet.
    pub queue_bytes: u64,
    /// Line rate.
    pub rate: Rate,
}

impl IntHop {
    /// Returns what a port writes: the fields as they are read again.
    pub fn new(now: Time, sent_bytes: u64, queue_bytes: u64, rate: Rate) -> IntHop {
        unpack(pack(now, sent_bytes, queue_bytes), LineRate::new(rate).0)
    }
    /// Returns the time since an earlier hop of the same port, at most 16.7 ms.
    pub fn since(&self, earlier: &IntHop) -> Dur {
        Dur::from_ns(self.time_ns.wrapping_sub(earlier.time_ns) & ((1 << TIME_BITS) - 1))
    }
    /// Returns the bytes that the port has sent since an earlier hop, at most 536 MB.
    pub fn sent_since(&self, earlier: &IntHop) -> u64 {
        (self.sent_bytes / SENT_UNIT).wrapping_sub(earlier.sent_bytes / SENT_UNIT) % (1 << SENT_BITS) * SENT_UNIT
    }
}

/// A line rate in the ten bits that a stack has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineRate(u64);

impl LineRate {
    /// Returns a line rate, rounded down. A slower link than 1 Mb/s counts as one of 1 Mb/s, so that
    /// no rate is zero.
    pub fn new(rate: Rate) -> LineRate {
        let most = (1 << (RATE_BITS - POWER_BITS)) - 1;
        let (mut digits, mut power) = (rate.bps() / POWERS[0], 0);
        while digits > most && power < (1 << POWER_BITS) - 1 {
            (digits, power) = (digits / 10, power + 1);
        }
        LineRate(digits.clamp(1, most) << POWER_BITS | power)
    }
}

fn pack(now: Time, sent_bytes: u64, queue_bytes: u64) -> u64 {
    let time = now.0 / 1000 % (1 << TIME_BITS);
    let sent = sent_bytes / SENT_UNIT % (1 << SENT_BITS);
    let queue = (queue_bytes / QUEUE_UNIT).min((1 << QUEUE_BITS) - 1);
    time << (SENT_BITS + QUEUE_BITS) | sent << QUEUE_BITS | queue
}

fn unpack(word: u64, rate: u64) -> IntHop {
    let field = |shift: u32, bits: u32| word >> shift & ((1 << bits) - 1);
    IntHop {
        time_ns: field(SENT_BITS + QUEUE_BITS, TIME_BITS),
        sent_bytes: field(QUEUE_BITS, SENT_BITS) * SENT_UNIT,
        queue_bytes: field(0, QUEUE_BITS) * QUEUE_UNIT,
        rate: Rate((rate >> POWER_BITS) * POWERS[rate as usize % POWERS.len()]),
    }
}

impl IntStack {
    /// Returns the number of hops.
    pub fn len(&self) -> usize {
        (self.rates >> 60) as usize
    }
    /// Returns whether no port has written anything.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    fn words_mut(&mut self) -> [&mut u64; HOPS] {
        [&mut self.a, &mut self.b, &mut self.c, &mut self.d, &mut self.e, &mut self.f]
    }
    fn words(&self) -> [u64; HOPS] {
        [self.a, self.b, self.c, self.d, self.e, self.f]
    }
    /// Returns the line rate of a hop, as it is written.
    fn rate(&self, at: usize) -> u64 {
        self.rates >> (RATE_BITS * at as u32) & ((1 << RATE_BITS) - 1)
    }
    /// Adds a hop, if there is room.
    pub fn push(&mut self, now: Time, sent_bytes: u64, queue_bytes: u64, rate: LineRate) {
        let at = self.len();
        if at < HOPS {
            *self.words_mut()[at] = pack(now, sent_bytes, queue_bytes);
            self.rates = (self.rates | rate.0 << (RATE_BITS * at as u32)) + (1 << 60);
        }
    }
    /// Returns the hops, the first one first.
    pub fn hops(self) -> impl Iterator<Item = IntHop> {
        let words = self.words();
        (0..self.len().min(HOPS)).map(move |at| unpack(words[at], self.rate(at)))
    }
    /// Returns each hop with the hop of an earlier packet at the same port; nothing if that packet
    /// took another path, which has more or fewer hops or another rate at some hop.
    pub fn after(self, earlier: &IntStack) -> impl Iterator<Item = (IntHop, IntHop)> + use<> {
        let same = self.rates == earlier.rates;
        let (now, before) = (self.words(), earlier.words());
        (0..if same { self.len().min(HOPS) } else { 0 }).map(move |at| {
            let rate = self.rate(at);
            (unpack(now[at], rate), unpack(before[at], rate))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hops_are_read_as_they_were_written() {
        let mut stack = IntStack::default();
        assert!(stack.is_empty());
        let rates = [1, 10, 25, 40, 100, 400, 800].map(Rate::from_gbps);
        for (at, rate) in (0u64..).zip(rates) {
            stack.push(Time(1_234_567 * (at + 1)), 128_000 * at, 8_000 * at, LineRate::new(rate));
        }
        // The seventh hop has no room.
        let hops: Vec<IntHop> = stack.hops().collect();
        assert_eq!(hops.len(), HOPS);
        for (at, hop) in (0u64..).zip(hops) {
            let time_ns = 1_234_567 * (at + 1) / 1000;
            assert_eq!(hop, IntHop { time_ns, sent_bytes: 128_000 * at, queue_bytes: 8_000 * at, rate: rates[at as usize] });
        }
    }

    #[test]
    fn units_are_rounded_down_and_queues_have_a_largest_value() {
        let hop = IntHop::new(Time(1_999), 255, 159, Rate::from_gbps(112));
        assert_eq!(hop, IntHop { time_ns: 1, sent_bytes: 128, queue_bytes: 80, rate: Rate::from_gbps(112) });
        // 128 Gb/s has more than seven bits, and 1 kb/s fewer than one.
        assert_eq!(IntHop::new(Time(0), 0, 0, Rate::from_gbps(128)).rate, Rate::from_gbps(120));
        assert_eq!(IntHop::new(Time(0), 0, u64::MAX, Rate(1_000)).rate, Rate(1_000_000));
        assert_eq!(IntHop::new(Time(0), 0, u64::MAX, Rate(1_000)).queue_bytes, ((1 << 18) - 1) * 80);
    }

    #[test]
    fn differences_survive_a_wrap() {
        let hop = |us: u64, bytes: u64| IntHop::new(Time::ZERO + Dur::from_us(us), bytes, 0, Rate::from_gbps(100));
        // 2^24 ns are 16.777 ms, 2^22 units 536.9 MB.
        let (before, after) = (hop(16_777, 536_870_400), hop(16_780, 536_871_936));
        assert_eq!((after.since(&before), after.sent_since(&before)), (Dur::from_us(3), 1536));
        assert!(after.time_ns < before.time_ns && after.sent_bytes < before.sent_bytes);
    }
}

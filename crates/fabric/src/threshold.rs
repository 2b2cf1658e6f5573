//! Marking thresholds. With one threshold, packets are marked while the queue is longer; most
//! marking disciplines use it. With two thresholds, the probability of a mark rises between them.

use crate::queue::Backlog;
use base::{Limit, Rng, Wire as _};
use proto::Packet;

/// A marking threshold (K), and the packets marked so far.
#[derive(Clone, Debug)]
pub struct Threshold {
    mark: Limit,
    marks: u64,
}

impl Threshold {
    /// Returns a threshold with no packet marked so far.
    pub fn new(mark: Limit) -> Threshold {
        Threshold { mark, marks: 0 }
    }
    /// Returns the threshold.
    pub fn mark(&self) -> Limit {
        self.mark
    }
    /// Returns whether the threshold can ever mark a packet.
    #[inline(always)]
    pub fn can_mark(&self) -> bool {
        self.mark != Limit::Unlimited
    }
    /// Returns whether a packet in an otherwise empty queue may exceed the threshold, whatever its
    /// size, so that the discipline must see every packet.
    pub fn watches(&self) -> bool {
        self.mark.exceeded_by(1, u64::from(u16::MAX))
    }
    /// Returns the number of packets marked so far.
    pub fn marks(&self) -> u64 {
        self.marks
    }
    /// Marks `packet` if it is ECN-capable and `waits`, the backlog with the packet, exceeds the
    /// threshold.
    pub fn compare(&mut self, waits: Backlog, packet: &mut Packet) {
        if waits.exceeds(self.mark) {
            self.marks += u64::from(packet.mark());
        }
    }
    /// Like [`Threshold::compare`] for an arriving packet: `waits` is the backlog without it. A
    /// queue without a threshold pays one comparison.
    #[inline(always)]
    pub fn on_arrival(&mut self, mut waits: Backlog, packet: &mut Packet) {
        if self.can_mark() {
            waits.add(packet);
            self.compare(waits, packet);
        }
    }
}

/// Two marking thresholds in the same unit, and the packets marked so far. The probability of a
/// mark rises from 0 at the lower threshold to 1 at the upper one.
#[derive(Clone, Debug)]
pub struct Ramp {
    low: Limit,
    high: Limit,
    marks: u64,
}

impl Ramp {
    /// Returns thresholds with no packet marked so far.
    pub fn new(low: Limit, high: Limit) -> Ramp {
        Ramp { low, high, marks: 0 }
    }
    /// Returns the number of packets marked so far.
    pub fn marks(&self) -> u64 {
        self.marks
    }
    /// Returns whether a packet is chosen for a mark while `waits` is the backlog. Draws a random
    /// number only between the thresholds.
    pub fn chooses(&self, waits: Backlog, rng: &mut Rng) -> bool {
        let (waits, low, high) = match (self.low, self.high) {
            (Limit::Packets(low), Limit::Packets(high)) => (waits.packets.into(), low.into(), high.into()),
            (Limit::Bytes(low), Limit::Bytes(high)) => (waits.bytes, low, high),
            _ => return waits.exceeds(self.high),
        };
        waits > high || waits > low && rng.below(high - low) < waits - low
    }
    /// Marks a packet that was chosen, if it is ECN-capable.
    pub fn mark(&mut self, packet: &mut Packet) {
        self.marks += u64::from(packet.mark());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::FlowId;

    /// Between 10 and 30 packets, 15 packets have a probability of a quarter.
    #[test]
    fn the_probability_rises_between_two_thresholds() {
        let mut rng = Rng::stream(1, "ramp", &[]);
        let mut chosen = |ramp: &Ramp, packets| {
            let waits = Backlog { packets, bytes: 1500 * u64::from(packets) };
            (0..4000).filter(|_| ramp.chooses(waits, &mut rng)).count()
        };
        for ramp in [Ramp::new(Limit::Packets(10), Limit::Packets(30)), Ramp::new(Limit::Bytes(15_000), Limit::Bytes(45_000))] {
            assert_eq!([0, 10].map(|packets| chosen(&ramp, packets)), [0, 0]);
            // Within five standard deviations.
            let (quarter, half) = (chosen(&ramp, 15), chosen(&ramp, 20));
            assert!((863..=1137).contains(&quarter) && (1842..=2158).contains(&half), "{quarter} {half}");
            assert_eq!([30, 31, 1000].map(|packets| chosen(&ramp, packets)), [4000; 3]);
        }
        // Two equal thresholds are one.
        let step = Ramp::new(Limit::Packets(10), Limit::Packets(10));
        assert_eq!([10, 11].map(|packets| chosen(&step, packets)), [0, 4000]);
    }

    #[test]
    fn marks_capable_packets_above_the_threshold() {
        let mut threshold = Threshold::new(Limit::Packets(2));
        let mut compare = |packets, flags| {
            let mut packet = Packet { flags, ..Packet::data(FlowId(0), 0, 1460, 40) };
            threshold.on_arrival(Backlog { packets, bytes: 0 }, &mut packet);
            packet.has(Packet::CE)
        };
        assert_eq!([compare(1, Packet::ECT), compare(2, 0), compare(2, Packet::ECT)], [false, false, true]);
        assert_eq!(threshold.marks(), 1);
    }

    /// The size of the packet that waits is not known.
    #[test]
    fn a_threshold_says_whether_it_marks_and_watches() {
        for (mark, marks, watches) in [
            (Limit::Unlimited, false, false),
            (Limit::Packets(0), true, true),
            (Limit::Packets(1), true, false),
            (Limit::Bytes(1499), true, true),
            (Limit::Bytes(65_535), true, false),
        ] {
            let threshold = Threshold::new(mark);
            assert_eq!((threshold.can_mark(), threshold.watches()), (marks, watches), "{mark}");
        }
    }
}

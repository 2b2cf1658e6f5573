//! A marking threshold: packets are marked while the queue is longer. Most marking disciplines use
//! it.

use crate::queue::Backlog;
use base::{Limit, Wire as _};
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

#[cfg(test)]
mod tests {
    use super::*;
    use base::FlowId;

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

//! The state that a leaf keeps about another leaf, and the header that carries it.

use super::TAGS;
use super::dre::METRIC_BITS;
use crate::paths::is_live;
use crate::router::SwitchCx;
use base::{Dur, HostId, LinkId, Time};
use proto::Packet;

/// Congestion from and to another leaf, by tag.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    /// The paths to the other leaf.
    pub(super) ways: Vec<Vec<LinkId>>,
    /// Congestion-To-Leaf: the congestion of these paths as the other leaf reported it.
    to: [Option<Entry>; TAGS],
    /// Congestion-From-Leaf: the congestion that packets from the other leaf met.
    from: [Option<Entry>; TAGS],
    /// Where the search for the next feedback starts.
    turn: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    metric: u8,
    /// Whether the metric changed since it was last fed back.
    changed: bool,
    set_at: Time,
}

impl Peer {
    pub(super) fn new(ways: Vec<Vec<LinkId>>) -> Peer {
        Peer { ways, to: [None; TAGS], from: [None; TAGS], turn: 0 }
    }

    /// Returns whether every link of a path is a live next hop.
    pub(super) fn is_live(&self, tag: u8, cx: &SwitchCx<'_>, dst: HostId) -> bool {
        self.ways.get(usize::from(tag)).is_some_and(|way| is_live(cx.net, cx.routes, way, dst))
    }

    /// Returns the tags of the live paths with the least congestion, as bits. The congestion of a
    /// path is the larger one of its uplink's and of the value that the other leaf reported.
    pub(super) fn least_congested(&self, cx: &SwitchCx<'_>, dst: HostId, age: Dur, mut local: impl FnMut(LinkId) -> u8) -> u16 {
        let (mut least, mut best) = (u8::MAX, 0);
        for tag in (0..self.ways.len() as u8).filter(|&tag| self.is_live(tag, cx, dst)) {
            let remote = fresh(self.to[usize::from(tag)], cx.now, age).map_or(0, |entry| entry.metric);
            let cost = remote.max(local(self.ways[usize::from(tag)][0]));
            if cost < least {
                (least, best) = (cost, 0);
            }
            if cost == least {
                best |= 1 << tag;
            }
        }
        best
    }

    /// Records the header of a packet from the other leaf.
    pub(super) fn learn(&mut self, overlay: Overlay, now: Time, age: Dur) {
        let from = &mut self.from[usize::from(overlay.tag)];
        let (metric, changed) = fresh(*from, now, age).map_or((0, false), |old| (old.metric, old.changed));
        *from = Some(Entry { metric: overlay.ce, changed: changed || overlay.ce != metric, set_at: now });
        if let Some((tag, metric)) = overlay.feedback {
            self.to[usize::from(tag)] = Some(Entry { metric, changed: false, set_at: now });
        }
    }

    /// Returns the feedback for the other leaf, the (tag, metric) of one path. Paths take turns;
    /// paths whose metric has changed since come first (section 3.3).
    pub(super) fn feedback(&mut self, now: Time, age: Dur) -> Option<(u8, u8)> {
        let entry = |i: usize| fresh(self.from[i % TAGS], now, age);
        let turns = || self.turn..self.turn + TAGS;
        let unsaid = turns().find(|&i| entry(i).is_some_and(|entry| entry.changed));
        let chosen = unsaid.or_else(|| turns().find(|&i| entry(i).is_some()))? % TAGS;
        self.turn = (chosen + 1) % TAGS;
        let entry = self.from[chosen].as_mut()?;
        entry.changed = false;
        Some((chosen as u8, entry.metric))
    }
}

fn fresh(entry: Option<Entry>, now: Time, age: Dur) -> Option<Entry> {
    entry.filter(|entry| now.since(entry.set_at) <= age)
}

/// The header between leaves, in the packet's `path_tag`: tag (4 bits), CE (3), whether there is
/// feedback (1), tag of the feedback (4), metric of the feedback (3), whether there is a header
/// (1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Overlay {
    pub(super) tag: u8,
    pub(super) ce: u8,
    pub(super) feedback: Option<(u8, u8)>,
}

const TAG: u16 = TAGS as u16 - 1;
const METRIC: u16 = (1 << METRIC_BITS) - 1;
const CE_AT: u32 = 4;
const FEEDBACK: u16 = 1 << 7;
const FEEDBACK_TAG_AT: u32 = 8;
const FEEDBACK_METRIC_AT: u32 = 12;
const PRESENT: u16 = 1 << 15;

impl Overlay {
    pub(super) fn write(self, packet: &mut Packet) {
        let feedback = self
            .feedback
            .map_or(0, |(tag, metric)| FEEDBACK | u16::from(tag) << FEEDBACK_TAG_AT | u16::from(metric) << FEEDBACK_METRIC_AT);
        packet.path_tag = PRESENT | u16::from(self.tag) | u16::from(self.ce) << CE_AT | feedback;
    }
    pub(super) fn read(packet: &Packet) -> Option<Overlay> {
        let bits = packet.path_tag;
        let feedback = ((bits >> FEEDBACK_TAG_AT & TAG) as u8, (bits >> FEEDBACK_METRIC_AT & METRIC) as u8);
        (bits & PRESENT != 0).then_some(Overlay {
            tag: (bits & TAG) as u8,
            ce: (bits >> CE_AT & METRIC) as u8,
            feedback: (bits & FEEDBACK != 0).then_some(feedback),
        })
    }
    /// Raises CE to the congestion of a port on the path if that is larger.
    pub(super) fn raise(packet: &mut Packet, metric: u8) {
        let ce = (packet.path_tag >> CE_AT & METRIC).max(u16::from(metric));
        packet.path_tag = packet.path_tag & !(METRIC << CE_AT) | ce << CE_AT;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::FlowId;
    use proto::Kind;

    const MS: u64 = 1_000_000_000;
    const AGE: Dur = Dur(10 * MS);

    fn overlay(tag: u8, ce: u8, feedback: Option<(u8, u8)>) -> Overlay {
        Overlay { tag, ce, feedback }
    }

    #[test]
    fn the_header_round_trips() {
        let mut packet = Packet::new(FlowId(0), Kind::DATA, 40);
        assert_eq!(Overlay::read(&packet), None);
        for tag in 0..16 {
            for (ce, feedback) in [(0, None), (7, Some((0, 0))), (3, Some((15, 7))), (1, Some((tag, 2)))] {
                overlay(tag, ce, feedback).write(&mut packet);
                assert_eq!(Overlay::read(&packet), Some(overlay(tag, ce, feedback)));
            }
        }
        overlay(5, 3, Some((9, 4))).write(&mut packet);
        for (metric, ce) in [(2, 3), (6, 6), (7, 7), (0, 7)] {
            Overlay::raise(&mut packet, metric);
            assert_eq!(Overlay::read(&packet), Some(overlay(5, ce, Some((9, 4)))));
        }
    }

    /// Congestion-From-Leaf {0: 3, already fed back; 1: 5; 2: 1}, and the search starts at 0.
    #[test]
    fn golden_order_of_feedback() {
        let mut peer = Peer::new(Vec::new());
        peer.learn(overlay(0, 3, None), Time(1), AGE);
        assert_eq!(peer.feedback(Time(1), AGE), Some((0, 3)));
        peer.turn = 0;
        peer.learn(overlay(1, 5, None), Time(2), AGE);
        peer.learn(overlay(2, 1, None), Time(3), AGE);
        let sent: Vec<_> = (0..4).map(|_| peer.feedback(Time(4), AGE)).collect();
        assert_eq!(sent, [Some((1, 5)), Some((2, 1)), Some((0, 3)), Some((1, 5))]);
    }

    /// Path 0 reports the same metric with every packet; path 1 reports another one.
    #[test]
    fn only_another_metric_is_a_change() {
        let mut peer = Peer::new(Vec::new());
        [(0, 3), (1, 5), (2, 0)].into_iter().for_each(|(tag, ce)| peer.learn(overlay(tag, ce, None), Time(0), AGE));
        assert_eq!([0; 3].map(|_| peer.feedback(Time(0), AGE)), [Some((0, 3)), Some((1, 5)), Some((2, 0))]);
        // A change that was not fed back yet is not forgotten.
        [(0, 3), (1, 6), (1, 6)].into_iter().for_each(|(tag, ce)| peer.learn(overlay(tag, ce, None), Time(1), AGE));
        assert_eq!([0; 2].map(|_| peer.feedback(Time(1), AGE)), [Some((1, 6)), Some((2, 0))]);
        // Expired entries count as 0.
        let later = Time(2 + AGE.0);
        [(2, 0), (1, 6)].into_iter().for_each(|(tag, ce)| peer.learn(overlay(tag, ce, None), later, AGE));
        peer.turn = 2;
        assert_eq!(peer.feedback(later, AGE), Some((1, 6)));
    }

    #[test]
    fn an_old_entry_is_not_fed_back() {
        let mut peer = Peer::new(Vec::new());
        assert_eq!(peer.feedback(Time(0), AGE), None);
        peer.learn(overlay(4, 6, None), Time(MS), AGE);
        assert_eq!(peer.feedback(Time(11 * MS), AGE), Some((4, 6)));
        assert_eq!(peer.feedback(Time(11 * MS + 1), AGE), None);
    }
}

//! The packet trace: the time that each packet occupies each link.

use super::Probe;
use base::{FlowId, LinkId, Time};
use proto::Packet;
use std::collections::BTreeSet;

/// One transmission or drop.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Start of transmission, or the time of the drop.
    pub start: Time,
    /// The first time that the link went down after the start; `Time::MAX` if it did not.
    pub until: Time,
    /// The link.
    pub link: LinkId,
    /// The packet.
    pub packet: Packet,
    /// Whether the packet was dropped or lost on the link.
    pub dropped: bool,
}

/// Keeps every transmission and drop, or those of a few flows and links.
#[derive(Default)]
pub struct Packets {
    seen: Vec<Seen>,
    only: Option<Only>,
}

/// What alone is kept: all packets of these flows, and all packets on these links.
struct Only {
    flows: BTreeSet<FlowId>,
    links: BTreeSet<LinkId>,
}

impl Probe for Packets {
    const WATCHES: bool = true;
    fn join(mut self, other: Packets) -> Packets {
        self.seen.extend(other.seen);
        self
    }
    fn on_start(&mut self, link: LinkId, start: Time, packet: &Packet) {
        self.keep(Seen { start, until: Time::MAX, link, packet: *packet, dropped: false });
    }
    fn on_link_down(&mut self, link: LinkId, now: Time) {
        self.seen.retain(|seen| seen.link != link || seen.start < now || seen.dropped);
        for seen in self.seen.iter_mut().filter(|seen| seen.link == link) {
            seen.until = seen.until.min(now);
        }
    }
    fn on_drop(&mut self, link: LinkId, now: Time, packet: &Packet) {
        self.keep(Seen { start: now, until: Time::MAX, link, packet: *packet, dropped: true });
    }
}

impl Packets {
    /// Keeps the packets of these flows, and all packets on these links.
    pub fn of(flows: impl IntoIterator<Item = FlowId>, links: impl IntoIterator<Item = LinkId>) -> Packets {
        let only = Only { flows: flows.into_iter().collect(), links: links.into_iter().collect() };
        Packets { seen: Vec::new(), only: Some(only) }
    }
    fn keep(&mut self, seen: Seen) {
        let wanted = |only: &Only| only.flows.contains(&seen.packet.flow) || only.links.contains(&seen.link);
        if self.only.as_ref().is_none_or(wanted) {
            self.seen.push(seen);
        }
    }
    /// All transmissions and drops, by time and link. Ports are served lazily, so calls do not come in the order of times. What a link loses its far
    /// end may see in another part than its port.
    pub fn sorted(mut self) -> Vec<Seen> {
        self.seen.sort_by_key(|Seen { start, link, dropped, packet, .. }| (*start, *link, *dropped, packet.flow, packet.offset));
        self.seen
    }
}

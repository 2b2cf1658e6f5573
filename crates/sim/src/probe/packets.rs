//! The packet trace: the time that each packet occupies each link.

use super::Probe;
use base::{FlowId, LinkId, Time};
use proto::Packet;
use scenario::{FlowSet, Sample};
use std::collections::BTreeSet;
use std::ops::Range;

/// One transmission or drop.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Start of transmission, or the time of the drop.
    pub start: Time,
    /// The first time after the start at which the link went down; `Time::MAX` if it did not.
    pub until: Time,
    /// The link.
    pub link: LinkId,
    /// The packet.
    pub packet: Packet,
    /// Whether the packet was dropped or lost on the link.
    pub dropped: bool,
}

/// A probe that keeps all transmissions and drops, or a selection of them.
#[derive(Clone, Default)]
pub struct PacketTrace {
    seen: Vec<Seen>,
    only: Only,
}

/// The transmissions and drops that are kept.
#[derive(Clone, Default)]
enum Only {
    /// All of them.
    #[default]
    All,
    /// Those of some flows, on some links, in one time interval.
    Within { flows: FlowSet, links: Option<BTreeSet<LinkId>>, time: Range<Time> },
    /// Those of some flows, and by link those of all flows in some time intervals.
    Either { flows: BTreeSet<FlowId>, times: Vec<Vec<Range<Time>>> },
}

impl Only {
    fn has(&self, seen: &Seen) -> bool {
        match self {
            Only::All => true,
            Only::Within { flows, links, time } => {
                time.contains(&seen.start)
                    && flows.has(seen.packet.flow)
                    && links.as_ref().is_none_or(|links| links.contains(&seen.link))
            }
            Only::Either { flows, times } => {
                let on_link = times.get(seen.link.index()).is_some_and(|times| times.iter().any(|time| time.contains(&seen.start)));
                on_link || flows.contains(&seen.packet.flow)
            }
        }
    }
}

impl Probe for PacketTrace {
    const WATCHES: bool = true;
    fn join(mut self, other: PacketTrace) -> PacketTrace {
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

impl PacketTrace {
    /// Creates a trace of the packets that a scenario selects.
    pub fn sampled(sample: &Sample) -> PacketTrace {
        let links = sample.only_ports.as_ref().map(|links| links.iter().copied().collect());
        let only = Only::Within { flows: sample.only_flows.clone(), links, time: sample.start..sample.end };
        PacketTrace { seen: Vec::new(), only }
    }
    /// Creates a trace of the packets of `flows` and, on each link in `links`, of all packets in a time
    /// interval.
    pub fn of(flows: impl IntoIterator<Item = FlowId>, links: impl IntoIterator<Item = (LinkId, Range<Time>)>) -> PacketTrace {
        let mut times: Vec<Vec<Range<Time>>> = Vec::new();
        for (link, time) in links {
            if times.len() <= link.index() {
                times.resize(link.index() + 1, Vec::new());
            }
            times[link.index()].push(time);
        }
        PacketTrace { seen: Vec::new(), only: Only::Either { flows: flows.into_iter().collect(), times } }
    }
    fn keep(&mut self, seen: Seen) {
        if self.only.has(&seen) {
            self.seen.push(seen);
        }
    }
    /// Returns all transmissions and drops, by time and link. They must be sorted: ports are served lazily,
    /// so calls do not come in order of time, and the far end of a link, which sees the packets that the link
    /// loses, may be in another part than its port.
    pub fn sorted(mut self) -> Vec<Seen> {
        self.seen.sort_by_key(|Seen { start, link, dropped, packet, .. }| (*start, *link, *dropped, packet.flow, packet.offset));
        self.seen
    }
}

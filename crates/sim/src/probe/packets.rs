//! The packet trace: the time that each packet occupies each link.

use super::Probe;
use base::{LinkId, Time};
use proto::Packet;

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

/// Keeps every transmission and drop.
#[derive(Default)]
pub struct Packets(Vec<Seen>);

impl Probe for Packets {
    const WATCHES: bool = true;
    fn on_start(&mut self, link: LinkId, start: Time, packet: &Packet) {
        self.0.push(Seen { start, until: Time::MAX, link, packet: *packet, dropped: false });
    }
    fn on_link_down(&mut self, link: LinkId, now: Time) {
        self.0.retain(|seen| seen.link != link || seen.start < now || seen.dropped);
        for seen in self.0.iter_mut().filter(|seen| seen.link == link) {
            seen.until = seen.until.min(now);
        }
    }
    fn on_drop(&mut self, link: LinkId, now: Time, packet: &Packet) {
        self.0.push(Seen { start: now, until: Time::MAX, link, packet: *packet, dropped: true });
    }
}

impl Packets {
    /// All transmissions and drops, by time and link. Ports are served lazily, so calls do not come in the order of times.
    pub fn sorted(mut self) -> Vec<Seen> {
        self.0.sort_by_key(|seen| (seen.start, seen.link));
        self.0
    }
}

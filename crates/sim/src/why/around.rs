//! The packets around some flows: all packets that passed the ports of their paths while the flows
//! were open, with the previous hop of each packet, which shows since when it waited at the port.

use crate::outcome::PacketRow;
use crate::probe::{PacketTrace, Seen};
use crate::progress::{Continue, Progress, RunError};
use crate::run::{packet_rows, run_with};
use crate::why::Watched;
use base::{Dur, FlowId, LinkId, Time};
use engine::Engine;
use proto::Packet;
use scenario::RunSpec;
use std::collections::BTreeSet;
use std::ops::Range;

/// The ports of a flow's path, and the time in which packets that the flow may have met leave these
/// ports.
struct Around {
    links: BTreeSet<LinkId>,
    time: Range<Time>,
    /// The longest time from the start of a packet's transmission at a port to the start of its
    /// transmission at the next port, where the next port is one of `links`.
    wait: Dur,
}

/// Identifies a packet on its whole path, although ports may change its kind, payload and direction.
type Identity = (FlowId, Time, u64);

fn identity(packet: &Packet) -> Identity {
    (packet.flow, packet.sent_at, packet.offset)
}

impl Watched<'_> {
    /// Repeats the run and returns the rows of all packets that passed the ports of the traced flows while
    /// these flows were open, by time, and whether the run is complete. Each packet has rows at these
    /// ports and at the ports that lead to them.
    pub fn around(&self, control: &mut dyn FnMut(Progress) -> Continue) -> Result<(Vec<PacketRow>, bool), RunError> {
        let arounds: Vec<Around> = self.lives.iter().filter_map(|life| self.around_one(life.flow, life.open.start)).collect();
        let mut kept = Vec::new();
        for around in &arounds {
            let from = around.time.start.before(around.wait);
            let feeders = around.links.iter().flat_map(|link| self.feeders(*link));
            let links: BTreeSet<LinkId> = around.links.iter().copied().chain(feeders).collect();
            kept.extend(links.into_iter().map(|link| (link, from..around.time.end)));
        }
        let plain = RunSpec { sample: None, ..self.spec.clone() };
        let (outcome, packets) = run_with::<Engine<_>, _>(&plain, PacketTrace::of([], kept), control)?;
        let mut seen = packets.sorted();
        let inside = |seen: &&Seen| arounds.iter().any(|a| a.time.contains(&seen.start) && a.links.contains(&seen.link));
        let mut passed: Vec<Identity> = seen.iter().filter(inside).map(|seen| identity(&seen.packet)).collect();
        passed.sort_unstable();
        passed.dedup();
        seen.retain(|seen| passed.binary_search(&identity(&seen.packet)).is_ok());
        Ok((packet_rows(self.spec, seen), outcome.complete))
    }

    /// Returns the ports and the time to record around a flow; `None` if the flow sent nothing.
    fn around_one(&self, flow: FlowId, start: Time) -> Option<Around> {
        let own: Vec<&Seen> = self.seen.iter().filter(|seen| seen.packet.flow == flow).collect();
        let last = own.iter().map(|seen| seen.start).max()?;
        let links: BTreeSet<LinkId> = own.iter().map(|seen| seen.link).collect();
        let wait = self.longest_wait(&links);
        // Packets that wait behind the flow's last packet leave later.
        Some(Around { links, time: start..last.after(wait + Dur(1)), wait })
    }

    /// Returns the links that lead to the switch of a port; none for a port of a host.
    fn feeders(&self, link: LinkId) -> impl Iterator<Item = LinkId> + '_ {
        let net = &self.spec.net;
        let node = net.link(link).from;
        net.out_links(node).filter(move |_| net.host(node).is_none()).map(|out| net.link(out).reverse)
    }

    /// Returns [`Around::wait`] for a first-in first-out queue. Where ranks decide the order, packets may
    /// wait longer.
    fn longest_wait(&self, links: &BTreeSet<LinkId>) -> Dur {
        let (net, mtu) = (&self.spec.net, u64::from(self.spec.mtu_bytes));
        let wait = |link: &LinkId| {
            let way = self.feeders(*link).map(|from| net.link(from).rate.tx_time(mtu) + net.link(from).delay).max()?;
            let queue = self.outcome.ports[link.index()].max_queue_bytes;
            Some(way + net.link(*link).rate.tx_time(queue + 2 * mtu))
        };
        links.iter().filter_map(wait).max().unwrap_or_default()
    }
}

//! The packets around some flows: what passed the ports of their paths while the flows were open, with the way of each packet to these
//! ports, so that it is known since when it waited there.

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

/// The ports of a flow's path, and the time in which packets leave them that the flow may have met there.
struct Around {
    links: BTreeSet<LinkId>,
    time: Range<Time>,
    /// The longest time from the start of a packet's transmission at a port to its start at the next one, which is among `links`.
    wait: Dur,
}

/// Identifies a packet on its whole way, whatever ports make of its kind, its payload and its direction.
type Identity = (FlowId, Time, u64);

fn identity(packet: &Packet) -> Identity {
    (packet.flow, packet.sent_at, packet.offset)
}

impl Watched<'_> {
    /// Does the run once more and returns the rows of all packets that passed the ports of the watched flows while these were open, by time.
    /// Each packet has its rows at these ports and at the ports that lead to them.
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

    /// What is around a flow: `None` if it sent nothing.
    fn around_one(&self, flow: FlowId, start: Time) -> Option<Around> {
        let own: Vec<&Seen> = self.seen.iter().filter(|seen| seen.packet.flow == flow).collect();
        let last = own.iter().map(|seen| seen.start).max()?;
        let links: BTreeSet<LinkId> = own.iter().map(|seen| seen.link).collect();
        let wait = self.longest_wait(&links);
        // What waits behind the last packet leaves later.
        Some(Around { links, time: start..last.after(wait + Dur(1)), wait })
    }

    /// The links that lead to the switch at which a port is; none for a port of a host.
    fn feeders(&self, link: LinkId) -> impl Iterator<Item = LinkId> + '_ {
        let net = &self.spec.net;
        let node = net.link(link).from;
        net.out_links(node).filter(move |_| net.host(node).is_none()).map(|out| net.link(out).reverse)
    }

    /// See [`Around::wait`]. Where ranks decide, packets may wait for longer.
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

//! A switch: its flow table, and how it handles packets of elephants.

use super::load::Loads;
use super::table::{Entry, Table};
use crate::net::{Net, Tier};
use crate::router::SwitchCx;
use crate::routes::Routes;
use base::{FlowId, FlowMap, HostId, LinkId, NodeId, Rng, Time};
use proto::Packet;
use std::collections::VecDeque;

/// The counters of a port, in the order of META's counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// EARs created because of an imbalance and sent through the port.
    Ears,
    /// EARs created because of a failure and sent through the port.
    FailureEars,
    /// Bytes of both kinds of EARs, counted as in the paper.
    EarBytes,
    /// EARs of other switches forwarded through the port.
    Forwarded,
    /// EARs that arrived through the port and changed nothing.
    Ignored,
    /// SIMO flows that the path allocation assigned to the port.
    Allocated,
    /// Flows that an EAR moved to the port.
    Moved,
    /// Flows that an EAR moved to the port in exchange for another flow.
    Swapped,
    /// Flows that rebalancing moved to the port.
    Rebalanced,
}

/// Number of counters.
pub const COUNTS: usize = Count::Rebalanced as usize + 1;

/// A switch. It knows only its own ports, the next hops of the network, and what packets carry.
pub struct Switch {
    /// Tier of the switch.
    pub tier: Tier,
    /// The ports to the tier above, in the order of their numbers. EARs name a port by its index
    /// here.
    pub ups: Vec<LinkId>,
    /// Whether the port is alive, as far as the switch knows; by index in `ups`.
    pub alive: Vec<bool>,
    /// The flows that pass the switch.
    pub table: Table,
    /// Bytes so far of the flows that start at hosts of the switch, to find elephants.
    bytes: FlowMap<u64>,
    /// The random numbers of the switch.
    pub rng: Rng,
    /// When the present iteration of the control loop is due, without jitter.
    pub due: Time,
    /// When the last iteration took place.
    pub last: Time,
    /// Flows that have no live port left, for which EARs are sent one after the other.
    pub stranded: VecDeque<FlowId>,
    /// Whether a timer is set for the next of these EARs.
    pub pacing: bool,
    first: LinkId,
    counts: Vec<[u64; COUNTS]>,
}

impl Switch {
    /// Returns a switch without flows.
    pub fn new(net: &Net, at: NodeId, seed: u64) -> Switch {
        let (first, ports) = (LinkId(net.out_base(at)), net.out_links(at).len());
        let ups = ups(net, at);
        Switch {
            tier: net.node(at).tier,
            alive: vec![true; ups.len()],
            ups,
            table: Table::new(first, ports),
            bytes: FlowMap::default(),
            rng: Rng::stream(seed, "router/difs", &[u64::from(at.0)]),
            due: Time::ZERO,
            last: Time::ZERO,
            stranded: VecDeque::new(),
            pacing: false,
            first,
            counts: vec![[0; COUNTS]; ports],
        }
    }

    /// Returns the counters of a port.
    pub fn counts(&self, port: LinkId) -> &[u64] {
        self.counts.get((port.0 - self.first.0) as usize).map_or(&[], |counts| &counts[..])
    }
    /// Adds `n` to a counter of a port.
    pub fn count(&mut self, port: LinkId, what: Count, n: u64) {
        self.counts[(port.0 - self.first.0) as usize][what as usize] += n;
    }

    /// Adds bytes of a flow that starts at a host of this switch. Returns whether the flow has more
    /// than `threshold` bytes (section III-B).
    pub fn is_elephant(&mut self, flow: FlowId, bytes: u64, threshold: u64) -> bool {
        let all = self.bytes.or_insert_with(flow, || 0);
        *all = all.saturating_add(bytes);
        *all > threshold
    }

    /// Handles a marked packet. Returns the port of its flow, if the port is alive, and `None` if
    /// the switch does not know the flow.
    #[inline]
    pub fn pass(&mut self, packet: &Packet, cx: &SwitchCx<'_>) -> Option<Option<LinkId>> {
        let bytes = cx.payload_bytes;
        let entry = self.table.get_mut(packet.flow)?;
        // A late packet of the old path does not change the entry.
        let moved = cx.from.is_some_and(|from| from != entry.from) && packet.sent_at > entry.stamp;
        entry.stamp = entry.stamp.max(packet.sent_at);
        entry.bytes += bytes;
        match entry.out {
            Some(_) => entry.seen = cx.now,
            None => entry.stuck = true,
        }
        let out = entry.out;
        if let (true, Some(from)) = (moved, cx.from) {
            self.enters_over(packet.flow, from, cx.net);
        }
        Some(out)
    }

    #[cold]
    fn enters_over(&mut self, flow: FlowId, from: LinkId, net: &Net) {
        self.table.change(flow, |entry| (entry.from, entry.back) = (from, net.link(from).reverse));
    }

    /// Allocates a port for a flow that the switch does not know; the flow's marked packet is a
    /// path allocation request (PAR). `kept` is the port of the flow so far, if the flow must keep
    /// it. Returns `None` if no port of a shortest path is alive.
    #[cold]
    pub fn allocate(
        &mut self,
        packet: &Packet,
        kept: Option<LinkId>,
        ways: &Ways<'_>,
        loads: &Loads,
        cx: &SwitchCx<'_>,
    ) -> Option<LinkId> {
        let (from, (src, dst)) = (cx.from?, cx.ends(packet));
        let ports = ways.live(cx, dst);
        let simo = ways.healthy.candidates(cx.at, dst).len() > 1;
        let out = match kept.filter(|kept| ports.contains(kept)) {
            Some(kept) => kept,
            None => self.least_loaded(&ports)?,
        };
        let entry = Entry {
            from,
            back: cx.net.link(from).reverse,
            out: Some(out),
            seen: cx.now,
            stamp: packet.sent_at,
            load: if ways.counts(cx, src, dst) { loads.first() } else { 0 },
            bytes: cx.payload_bytes,
            simo,
            miso: ways.healthy.candidates(cx.at, src).len() > 1,
            stuck: false,
        };
        self.table.insert(packet.flow, entry);
        if simo {
            self.count(out, Count::Allocated, 1);
        }
        Some(out)
    }

    /// Returns a random port among those through which the fewest flows leave (Alg. 2).
    pub fn least_loaded(&mut self, ports: &[LinkId]) -> Option<LinkId> {
        let least = ports.iter().map(|&port| self.table.leaving(port)).min()?;
        let best: Vec<LinkId> = ports.iter().copied().filter(|&port| self.table.leaving(port) == least).collect();
        self.any(&best)
    }

    /// Returns one of the elements, each with equal probability. No random number is drawn where
    /// there is no choice.
    pub fn any<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        match all {
            [] | [_] => all.first().copied(),
            _ => Some(all[self.rng.below(all.len() as u64) as usize]),
        }
    }
}

/// The paths of flows through the network, known to every switch from configuration and link state.
pub struct Ways<'a> {
    /// The next hops while all links are up. They determine whether a flow has one port or several.
    pub healthy: &'a Routes,
    /// Whether flows within a pod are counted.
    pub intra_pod: bool,
    /// The highest tier.
    pub top: Tier,
}

impl Ways<'_> {
    /// Returns the live ports that lead to a host (S), in the order of their numbers. Detours are
    /// not included: a switch where all shortest paths of the healthy network end would send flows
    /// back down.
    pub fn live(&self, cx: &SwitchCx<'_>, host: HostId) -> Vec<LinkId> {
        let live = cx.routes.candidates(cx.at, host);
        self.healthy.candidates(cx.at, host).iter().copied().filter(|port| live.contains(port)).collect()
    }
    /// Returns whether a flow is counted.
    pub fn counts(&self, cx: &SwitchCx<'_>, src: HostId, dst: HostId) -> bool {
        // A path from host to host over the top has as many links up as down.
        let over_the_top = self.healthy.distance(cx.net.hosts()[src.index()], dst) == Some(2 * u32::from(self.top));
        self.intra_pod || over_the_top
    }
}

/// Returns the ports of a switch to the tier above.
pub fn ups(net: &Net, at: NodeId) -> Vec<LinkId> {
    let tier = |node: NodeId| net.node(node).tier;
    net.out_links(at).filter(|&link| tier(net.link(link).to) > tier(at)).collect()
}

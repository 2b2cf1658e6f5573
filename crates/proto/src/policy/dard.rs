//! DARD: hosts watch the paths to those they send elephants to, and move one elephant at a time to a better path.
//!
//! Source: Wu and Yang, "DARD: Distributed Adaptive Routing for Datacenter Networks", ICDCS 2012; the simulator of the authors of DiFS (Cui
//! and Qian, arXiv 1307.7416), github.com/cwz920716/NSim, which has DARD as a baseline; DiFS section IV-A for the size of an elephant.
//!
//! A flow that has sent more than `elephant` bytes is an elephant: its host gives it a path of its own. Once per `poll` the host asks every
//! switch on the paths to the destinations of its elephants how many elephants leave through each port (router `dard`). What a link offers is
//! its bandwidth over the number of its elephants (BoNF); a path offers what the least of its links between switches does. Once per round the
//! host compares, for each destination, the path that offers most with the one of those in use that offers least, and moves one elephant
//! from this to that if the elephant gains more than `delta`.
//!
//! Model: a host knows the links of its paths and their bandwidths, as by DARD's hierarchical addresses, and nothing of the load but by replies.
//! No sizes are known. ACKs stay on the router's paths.
//!
//! | parameter | default | from |
//! |---|---|---|
//! | `interval`, `jitter` | 5 s, and up to 5 s more | NSim; ICDCS 2012 |
//! | `delta` | 0.01 of the NIC's rate | NSim: 10 Mb/s at 1 Gb/s; ICDCS 2012 |
//! | `poll` | 1 s | ICDCS 2012; NSim sees all links at once |
//! | `elephant` | 100 KB | DiFS section IV-A |
//! | `initial` | `hash` | NSim |
//!
//! Assumed:
//! - The paper was known and not at hand: the random part of a round, `delta` and `poll` are to be checked against it.
//! - An elephant's bytes are those of its data packets, with what was sent again.
//! - A link without elephants offers its bandwidth. Of links or paths that offer as much, the one with fewer elephants is the better one, then the
//!   one with the lower index. An elephant that moves there would get the bandwidth over one elephant more.
//! - One query and one reply per switch and poll, 64 bytes each; a switch with more than 48 ports is asked by parts. A query travels on the
//!   first path of an elephant that leads over the switch and is not known to be dead.
//! - A dead port offers nothing. A switch that has not replied within a poll is not known, and no elephant moves to a path over it.
//! - The first query leaves with the first elephant of a host, and its first round ends an interval later; a host without elephants rests.
//! - Of several elephants on the path to be left, the first by id moves. A moved elephant still counts on its old path until the switches
//!   forget it (`expiry` of the router).
//! - `hash` takes any path with the same probability; `turn` gives a host's elephants the paths in turn.

use super::{Cx, Policy};
use crate::contract::Env;
use crate::hops::{Hop, Hops};
use crate::host::Path;
use crate::packet::{Kind, Packet};
use base::header::Header;
use base::params::Problem;
use base::registry::{Counter, Meta, Needs};
use base::{Bytes, Dur, FlowId, FlowMap, Fraction, HostId, NodeId, PortId, TimerKey};
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What `list` and `check` know of it.
pub const META: Meta = Meta {
    summary: "DARD: hosts ask switches for elephants and move their own to better paths",
    source: "Wu and Yang, ICDCS 2012",
    needs: Needs { router: &["dard"], ..Needs::NONE },
    implies: &[("router.kind", "dard")],
    knows: &["paths"],
    many_paths: true,
    counters: &[
        Counter { name: "queries", unit: "packets", about: "Queries that its sender sent for the paths to its destination." },
        Counter { name: "replies", unit: "packets", about: "Replies to these that arrived." },
        Counter { name: "moves", unit: "paths", about: "Times that it was moved to another path." },
    ],
    ..Meta::PLAIN
};

const QUERIES: usize = 0;
const REPLIES: usize = 1;
const MOVES: usize = 2;

/// A host asks a switch how many elephants leave through each of its ports. One of the router's kinds.
pub const QUERY: Kind = Kind(Kind::ROUTER);
/// The switch's reply.
pub const REPLY: Kind = Kind(Kind::ROUTER + 1);

base::header! {
    /// A query.
    pub struct Query {
        /// The switch.
        switch: u64,
        /// The first port that is asked for; [`PORTS`] in all.
        first: u64,
    }
}

/// How many ports one reply tells of.
pub const PORTS: u32 = 48;
/// In a reply: the port's link is down.
pub const DOWN: u8 = u8::MAX;

/// A reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The switch.
    pub switch: NodeId,
    /// The port of the first entry.
    pub first: u32,
    /// How many elephants leave through each port, 254 for more; [`DOWN`] for a dead one.
    pub elephants: [u8; PORTS as usize],
}

impl Header for Reply {
    const WORDS: usize = 7;
    fn pack(self, words: &mut [u64]) {
        words[0] = u64::from(self.switch.0) << 32 | u64::from(self.first);
        for (word, bytes) in words[1..].iter_mut().zip(self.elephants.chunks(8)) {
            *word = bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        }
    }
    fn unpack(words: &[u64]) -> Self {
        let mut elephants = [0; PORTS as usize];
        for (bytes, word) in elephants.chunks_mut(8).zip(&words[1..]) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        Reply { switch: NodeId((words[0] >> 32) as u32), first: words[0] as u32, elephants }
    }
}

base::choice! {
    /// The first path of an elephant.
    pub enum Initial {
        /// Any, with the same probability.
        Hash = "hash",
        /// One after the other.
        Turn = "turn",
    }
}

base::params! {
    /// Parameters of DARD.
    pub struct Params {
        /// The least time from one round of a host to the next.
        interval: Dur = "5s" in Dur::from_us(1)..=Dur::from_secs(1000), "NSim";
        /// A round takes up to so much longer, drawn anew for each.
        jitter: Dur = "5s" in Dur(0)..=Dur::from_secs(1000), "ICDCS 2012";
        /// What an elephant must gain to be moved, as a share of the NIC's rate.
        delta: Fraction = "0.01" in Fraction(0)..=Fraction::ONE, "NSim; ICDCS 2012";
        /// From one query to the next.
        poll: Dur = "1s" in Dur::from_us(1)..=Dur::from_secs(1000), "ICDCS 2012";
        /// A flow that has sent more payload is an elephant.
        elephant: Bytes = "100KB", "DiFS section IV-A";
        /// The first path of an elephant.
        initial: Initial = "hash", "NSim";
        /// Size of a query on the wire.
        query_bytes: u16 = "64" in 40..=1500, "the least Ethernet frame";
    }
}

/// Problems that show only against the network.
pub fn check(_params: &Params, _env: &Env<'_>) -> Vec<Problem> {
    Vec::new()
}

/// Timer of a host: the next queries.
const POLL: u8 = 0;
/// Timer of a host: the end of a round.
const ROUND: u8 = 1;

/// The machine of one host.
pub struct Dard {
    params: Params,
    /// What an elephant must gain, bits per second.
    delta: u64,
    /// Payload that each open flow has sent.
    sent: FlowMap<u64>,
    peers: BTreeMap<HostId, Peer>,
    /// What switches have replied, by the switch and the first port of the reply.
    states: BTreeMap<(NodeId, u32), State>,
    /// Elephants so far.
    elephants: u64,
}

/// A host that elephants go to.
struct Peer {
    hops: Arc<Hops>,
    /// The elephants with their paths.
    elephants: BTreeMap<FlowId, u16>,
}

/// What is known of ports of a switch.
#[derive(Default)]
struct State {
    /// The last query is not answered yet.
    asked: bool,
    /// `None`: not known.
    elephants: Option<[u8; PORTS as usize]>,
}

/// What the worst link of a path offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Its bandwidth, bits per second; 0 if it is dead.
    pub bps: u64,
    /// Its elephants.
    pub elephants: u8,
}

impl Offer {
    /// By bandwidth over elephants; of links alike, by fewer elephants.
    fn order(&self, other: &Offer) -> Ordering {
        let share = |own: &Offer, over: &Offer| u128::from(own.bps) * u128::from(over.elephants.max(1));
        share(self, other).cmp(&share(other, self)).then(Reverse(self.elephants).cmp(&Reverse(other.elephants)))
    }
}

/// From which path an elephant moves to which, by what the paths offer (`None`: not known) and those in use: only if it gains more than
/// `delta`, in bits per second.
pub fn select(offers: &[Option<Offer>], used: &BTreeSet<u16>, delta: u64) -> Option<(u16, u16)> {
    let known = || offers.iter().zip(0..).filter_map(|(offer, index)| Some(((*offer)?, index)));
    let order = |a: &(Offer, u16), b: &(Offer, u16)| a.0.order(&b.0).then(b.1.cmp(&a.1));
    let (most, to) = known().max_by(order)?;
    // Of several that offer as little, the first.
    let (least, from) = known().filter(|(_, index)| used.contains(index)).min_by(|a, b| a.0.order(&b.0).then(a.1.cmp(&b.1)))?;
    let [bps, present_bps] = [most.bps, least.bps].map(i128::from);
    let (elephants, present) = (i128::from(most.elephants) + 1, i128::from(least.elephants.max(1)));
    let gains = bps * present - present_bps * elephants > i128::from(delta) * elephants * present;
    (to != from && gains).then_some((from, to))
}

impl Dard {
    /// A host that has sent nothing.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let delta = u128::from(env.nic_rate.bps()) * u128::from(params.delta.0) / u128::from(Fraction::ONE.0);
        Dard {
            params: params.clone(),
            delta: delta as u64,
            sent: FlowMap::default(),
            peers: BTreeMap::new(),
            states: BTreeMap::new(),
            elephants: 0,
        }
    }

    /// A flow has become an elephant: it gets a path of its own, unless it stays at one switch.
    fn adopt(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        let Some(hops) = cx.hops(flow).filter(|hops| hops.first().is_some_and(|path| !path.is_empty())) else { return };
        let paths = hops.len() as u64;
        let index = match self.params.initial {
            Initial::Hash => cx.rng.below(paths),
            Initial::Turn => self.elephants % paths,
        } as u16;
        if self.peers.is_empty() {
            cx.arm_host(POLL, cx.now);
            self.arm_round(cx);
        }
        self.elephants += 1;
        let peer = self.peers.entry(cx.flow(flow).dst()).or_insert_with(|| Peer { hops, elephants: BTreeMap::new() });
        peer.elephants.insert(flow, index);
        cx.ask_path(flow, Path::Index(index));
    }

    fn arm_round(&self, cx: &mut Cx<'_>) {
        let more = Dur(cx.rng.below(self.params.jitter.ps() + 1));
        cx.arm_host(ROUND, cx.now.after(self.params.interval + more));
    }

    /// Asks every switch on the paths to all peers.
    fn poll(&mut self, cx: &mut Cx<'_>) {
        let mut queries = BTreeMap::new();
        for peer in self.peers.values() {
            let Some((&flow, _)) = peer.elephants.first_key_value() else { continue };
            for (path, index) in peer.hops.iter().zip(0u16..) {
                let live = path.iter().take_while(|hop| self.port(hop).is_none_or(|elephants| elephants != DOWN)).count();
                // A dead port belongs to a switch that can be asked; what lies behind it cannot.
                for hop in &path[..path.len().min(live + 1)] {
                    queries.entry(place(hop)).or_insert((flow, index));
                }
            }
        }
        self.states.retain(|place, _| queries.contains_key(place));
        for ((switch, first), (flow, index)) in queries {
            let state = self.states.entry((switch, first)).or_default();
            if std::mem::replace(&mut state.asked, true) {
                state.elephants = None;
            }
            let mut query = Packet { path_tag: index + 1, ..Packet::new(flow, QUERY, self.params.query_bytes) };
            query.set(Query { switch: switch.0.into(), first: first.into() });
            cx.count(flow, QUERIES, 1);
            cx.control(query);
        }
    }

    /// How many elephants leave through a port, or [`DOWN`]; `None`: not known.
    fn port(&self, hop: &Hop) -> Option<u8> {
        let (switch, first) = place(hop);
        Some(self.states.get(&(switch, first))?.elephants?[(hop.port.0 - first) as usize])
    }

    /// What a path offers; `None`: not known.
    fn offer(&self, path: &[Hop]) -> Option<Offer> {
        let ports: Vec<Option<u8>> = path.iter().map(|hop| self.port(hop)).collect();
        if ports.contains(&Some(DOWN)) {
            return Some(Offer { bps: 0, elephants: 0 });
        }
        let offers: Option<Vec<Offer>> =
            path.iter().zip(ports).map(|(hop, port)| Some(Offer { bps: hop.rate.bps(), elephants: port? })).collect();
        offers?.into_iter().min_by(Offer::order)
    }

    /// Moves an elephant for each peer, where it gains.
    fn round(&mut self, cx: &mut Cx<'_>) {
        let mut moves = Vec::new();
        for (host, peer) in &self.peers {
            let offers: Vec<Option<Offer>> = peer.hops.iter().map(|path| self.offer(path)).collect();
            let used = peer.elephants.values().copied().collect();
            let Some((from, to)) = select(&offers, &used, self.delta) else { continue };
            moves.extend(peer.elephants.iter().find(|(_, index)| **index == from).map(|(flow, _)| (*host, *flow, to)));
        }
        for (host, flow, to) in moves {
            self.peers.get_mut(&host).and_then(|peer| peer.elephants.insert(flow, to));
            cx.count(flow, MOVES, 1);
            cx.ask_path(flow, Path::Index(to));
        }
    }
}

/// The switch of a port, and the first port of the replies that tell of it.
fn place(hop: &Hop) -> (NodeId, u32) {
    let PortId(port) = hop.port;
    (hop.switch, port / PORTS * PORTS)
}

impl Policy for Dard {
    fn on_send(&mut self, packet: &mut Packet, cx: &mut Cx<'_>) {
        if packet.payload == 0 || cx.flow(packet.flow).src() != cx.host {
            return;
        }
        let sent = self.sent.or_insert_with(packet.flow, || 0);
        let before = *sent;
        *sent += u64::from(packet.payload);
        if before <= self.params.elephant.0 && *sent > self.params.elephant.0 {
            self.adopt(packet.flow, cx);
        }
    }

    fn on_receive(&mut self, packet: &mut Packet, cx: &mut Cx<'_>) -> bool {
        if packet.kind == REPLY {
            let Reply { switch, first, elephants } = packet.get_ext(cx.ext);
            cx.count(packet.flow, REPLIES, 1);
            if let Some(state) = self.states.get_mut(&(switch, first)) {
                *state = State { asked: false, elephants: Some(elephants) };
            }
        }
        // A query that missed its switch has come here.
        packet.kind != REPLY && packet.kind != QUERY
    }

    fn on_close(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        self.sent.remove(flow);
        let dst = cx.flow(flow).dst();
        if let Some(peer) = self.peers.get_mut(&dst) {
            peer.elephants.remove(&flow);
            if peer.elephants.is_empty() {
                self.peers.remove(&dst);
            }
        }
        if self.peers.is_empty() {
            self.states.clear();
            cx.disarm_host(POLL);
            cx.disarm_host(ROUND);
        }
    }

    fn on_timer(&mut self, key: TimerKey, cx: &mut Cx<'_>) {
        if key.kind == POLL {
            self.poll(cx);
            cx.arm_host(POLL, cx.now.after(self.params.poll));
        } else {
            self.round(cx);
            self.arm_round(cx);
        }
    }
}

#[cfg(test)]
mod tests;

//! DARD: a host monitors the paths to the destinations of its elephant flows and moves one elephant
//! at a time to a better path.
//!
//! Source: Wu and Yang, "DARD: Distributed Adaptive Routing for Datacenter Networks", ICDCS 2012; the simulator of the authors of DiFS (Cui
//! and Qian, arXiv 1307.7416), github.com/cwz920716/NSim, which has DARD as a baseline; DiFS section IV-A for the size of an elephant.
//!
//! A flow that has sent more than `elephant` bytes is an elephant: its host gives it a path of its
//! own. Once per `poll` the host asks every switch on the paths to the destinations of its
//! elephants how many elephants leave through each port (router `dard`). A link offers its
//! bandwidth divided by the number of its elephants (BoNF); a path offers the minimum over its
//! links between switches. Once per round, for each destination, the host compares the path that
//! offers most with the path in use that offers least. It moves one elephant from the latter to the
//! former if the elephant gains more than `delta`.
//!
//! Model: a host knows the links of its paths and their bandwidths, as DARD's hierarchical
//! addresses give them. It learns of the load only from replies. Sizes are not known. ACKs stay on
//! the router's paths.
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
//! - The text of the paper was not available: check the random part of a round, `delta` and `poll`
//!   against it.
//! - The bytes of an elephant are those of its data packets, retransmissions included.
//! - A link without elephants offers its bandwidth. Among links or paths that offer the same, the
//!   better is the one with fewer elephants, then the one with the lower index. An elephant that
//!   moves to a link with elephants would get the bandwidth divided by one elephant more.
//! - One query and one reply per switch and poll, 64 bytes each; a switch with more than 48 ports
//!   is queried in parts. A query travels on the first path of an elephant that crosses the switch
//!   and is not known to be dead.
//! - A dead port offers nothing. A switch that has not replied within a poll counts as unknown, and
//!   no elephant moves to a path that crosses it.
//! - A host sends its first query with its first elephant, and its first round ends an interval
//!   later. A host without elephants sends no queries.
//! - If several elephants are on the path to be left, the one with the lowest id moves. A moved
//!   elephant still counts on its old path until the switches forget it (`expiry` of the router).
//! - `hash` draws any path with equal probability; `turn` gives the paths to a host's elephants in
//!   turn.

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

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "DARD: hosts query switches for counts of elephant flows and move their own elephants to better paths",
    source: "Wu and Yang, ICDCS 2012",
    needs: Needs { router: &["dard"], ..Needs::NONE },
    implies: &[("router.kind", "dard")],
    knows: &["paths"],
    many_paths: true,
    counters: &[
        Counter {
            name: "queries",
            unit: "packets",
            about: "Queries that the sender sent about the paths to the flow's destination.",
        },
        Counter { name: "replies", unit: "packets", about: "Replies to these queries that arrived." },
        Counter { name: "moves", unit: "paths", about: "Moves of the flow to another path." },
    ],
    host: "that of the transport; the policy orders no packets",
    ..Meta::PLAIN
};

const QUERIES: usize = 0;
const REPLIES: usize = 1;
const MOVES: usize = 2;

/// A query: a host asks a switch how many elephants leave through each of its ports. A packet kind
/// of the router.
pub const QUERY: Kind = Kind(Kind::ROUTER);
/// The switch's reply.
pub const REPLY: Kind = Kind(Kind::ROUTER + 1);

base::header! {
    /// A query.
    pub struct Query {
        /// The switch.
        switch: u64,
        /// The first port of the query, which covers [`PORTS`] ports.
        first: u64,
    }
}

/// Number of ports that one reply covers.
pub const PORTS: u32 = 48;
/// Entry of a reply for a port whose link is down.
pub const DOWN: u8 = u8::MAX;

/// A reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The switch.
    pub switch: NodeId,
    /// The port of the first entry.
    pub first: u32,
    /// How many elephants leave through each port; 254 for 254 or more, [`DOWN`] for a dead port.
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
    /// How the first path of an elephant is chosen.
    pub enum Initial {
        /// Any path, with equal probability.
        Hash = "hash",
        /// The paths in turn.
        Turn = "turn",
    }
}

base::params! {
    /// Parameters of DARD.
    pub struct Params {
        /// Shortest time between two rounds of a host.
        interval: Dur = "5s" in Dur::from_us(1)..=Dur::from_secs(1000), "NSim";
        /// A round takes up to this much longer; drawn for each round.
        jitter: Dur = "5s" in Dur(0)..=Dur::from_secs(1000), "ICDCS 2012";
        /// Gain that an elephant needs to be moved, as a share of the NIC's rate.
        delta: Fraction = "0.01" in Fraction(0)..=Fraction::ONE, "NSim; ICDCS 2012";
        /// Time between two queries.
        poll: Dur = "1s" in Dur::from_us(1)..=Dur::from_secs(1000), "ICDCS 2012";
        /// A flow that has sent more payload than this is an elephant.
        elephant: Bytes = "100KB", "DiFS section IV-A";
        /// How the first path of an elephant is chosen.
        initial: Initial = "hash", "NSim";
        /// Size of a query on the wire, in bytes.
        query_bytes: u16 = "64" in 40..=1500, "smallest Ethernet frame";
    }
}

/// Returns the problems that depend on the network: none.
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
    /// Gain that an elephant needs, in bits per second.
    delta: u64,
    /// Payload that each open flow has sent.
    sent: FlowMap<u64>,
    peers: BTreeMap<HostId, Peer>,
    /// The last replies of switches, by switch and first port of the reply.
    states: BTreeMap<(NodeId, u32), State>,
    /// Number of elephants so far.
    elephants: u64,
}

/// A destination of elephants.
struct Peer {
    hops: Arc<Hops>,
    /// The elephants to this host, with their paths.
    elephants: BTreeMap<FlowId, u16>,
}

/// The known state of some ports of a switch.
#[derive(Default)]
struct State {
    /// The last query has not been answered.
    asked: bool,
    /// Elephants by port; `None` if not known.
    elephants: Option<[u8; PORTS as usize]>,
}

/// The offer of a path: that of its worst link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Its bandwidth, bits per second; 0 if it is dead.
    pub bps: u64,
    /// Its elephants.
    pub elephants: u8,
}

impl Offer {
    /// Compares bandwidth per elephant; ties go to fewer elephants.
    fn order(&self, other: &Offer) -> Ordering {
        let share = |own: &Offer, over: &Offer| u128::from(own.bps) * u128::from(over.elephants.max(1));
        share(self, other).cmp(&share(other, self)).then(Reverse(self.elephants).cmp(&Reverse(other.elephants)))
    }
}

/// Chooses the move of an elephant, as (old path, new path): only if it gains more than `delta`, in
/// bits per second. `offers` has the offer of each path (`None`: not known), `used` the paths in
/// use.
pub fn select(offers: &[Option<Offer>], used: &BTreeSet<u16>, delta: u64) -> Option<(u16, u16)> {
    let known = || offers.iter().zip(0..).filter_map(|(offer, index)| Some(((*offer)?, index)));
    let order = |a: &(Offer, u16), b: &(Offer, u16)| a.0.order(&b.0).then(b.1.cmp(&a.1));
    let (most, to) = known().max_by(order)?;
    // Ties go to the first path.
    let (least, from) = known().filter(|(_, index)| used.contains(index)).min_by(|a, b| a.0.order(&b.0).then(a.1.cmp(&b.1)))?;
    let [bps, present_bps] = [most.bps, least.bps].map(i128::from);
    let (elephants, present) = (i128::from(most.elephants) + 1, i128::from(least.elephants.max(1)));
    let gains = bps * present - present_bps * elephants > i128::from(delta) * elephants * present;
    (to != from && gains).then_some((from, to))
}

impl Dard {
    /// Creates a host that has sent nothing.
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

    /// Gives a path of its own to a flow that has become an elephant, unless all of the flow's
    /// paths stay within one switch.
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

    /// Queries every switch on the paths to all destinations.
    fn poll(&mut self, cx: &mut Cx<'_>) {
        let mut queries = BTreeMap::new();
        for peer in self.peers.values() {
            let Some((&flow, _)) = peer.elephants.first_key_value() else { continue };
            for (path, index) in peer.hops.iter().zip(0u16..) {
                let live = path.iter().take_while(|hop| self.port(hop).is_none_or(|elephants| elephants != DOWN)).count();
                // The switch of a dead port can still be queried; the switches behind the port
                // cannot.
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

    /// Returns how many elephants leave through a port, or [`DOWN`]; `None` if not known.
    fn port(&self, hop: &Hop) -> Option<u8> {
        let (switch, first) = place(hop);
        Some(self.states.get(&(switch, first))?.elephants?[(hop.port.0 - first) as usize])
    }

    /// Returns the offer of a path; `None` if not known.
    fn offer(&self, path: &[Hop]) -> Option<Offer> {
        let ports: Vec<Option<u8>> = path.iter().map(|hop| self.port(hop)).collect();
        if ports.contains(&Some(DOWN)) {
            return Some(Offer { bps: 0, elephants: 0 });
        }
        let offers: Option<Vec<Offer>> =
            path.iter().zip(ports).map(|(hop, port)| Some(Offer { bps: hop.rate.bps(), elephants: port? })).collect();
        offers?.into_iter().min_by(Offer::order)
    }

    /// Moves one elephant per destination if it gains enough.
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

/// Returns the switch of a port, and the first port of the replies that cover it.
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
        // A query that missed its switch ends here.
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

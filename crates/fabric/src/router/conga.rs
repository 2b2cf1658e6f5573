//! CONGA: leaves send flowlets over the least congested path, as reported by the destination leaf.
//!
//! Source: Alizadeh et al., "CONGA: Distributed Congestion-Aware Load Balancing for Datacenters", SIGCOMM 2014, sections 3.2 to 3.6.
//!
//! A switch with hosts is a leaf. Between leaves, packets carry the tag of their path, the largest
//! congestion on it so far (CE), and one entry of what the sending leaf knows about the reverse
//! direction (feedback). Congestion is measured by a discounting rate estimator (`conga/dre.rs`) at
//! every port between switches. A flowlet, a burst of packets with gaps of at most `flowlet_gap`,
//! keeps its path; a new flowlet takes the path for which the larger one of local and remote
//! congestion is smallest.
//!
//! Model: the overlay header adds no bytes on the wire (CONGA reuses those of VXLAN).
//!
//! | parameter | default | from |
//! |---|---|---|
//! | `flowlet_gap` | 500 us | section 3.6 (T_fl; 13 ms makes it CONGA-Flow) |
//! | `age` | 10 ms | section 3.3 |
//! | `dre_interval`, `dre_alpha` | 32 us, 0.2: tau = 160 us; in networks below 10 Gb/s 200 us, 0.2: tau = 1 ms | section 3.6 |
//! | metrics, tags | 3 bits, 4 bits | section 3.6, 3.1 |
//!
//! Assumed:
//! - Gaps are measured exactly. The hardware has a bit that a timer clears, so its gaps are between
//!   one and two periods.
//! - CE does not include the sending leaf's own uplink, whose congestion that leaf knows, as in the
//!   program of Hermes' authors. That of ConWeave's authors includes it, as section 3.3 may be read
//!   (`uplink_in_ce`): a leaf then gets its own old load back. On 4 leaves and 4 spines at load 0.6,
//!   with one slow cable, this lengthens the mean completion time of messages of 10 KB by 21 +/- 3 %
//!   (in their program by 18 +/- 3 %), and changes that of flows of web search by -1 +/- 4 % in their
//!   program.
//! - The estimator counts a packet when its transmission starts (section 3.2: sent over the link),
//!   before CE is written. Both programs count it when it is routed, before the queue. In the program
//!   of ConWeave's authors, in the same network, counting at arrival changed mean completion times by
//!   -12 +/- 2 % for messages of 10 KB and by -5 +/- 3 % for flows of web search.
//! - All estimators of a network have one interval, so that metrics of all links describe the same
//!   time. If the fastest cable between switches is below 10 Gb/s, tau is 1 ms: 160 us are 13 packets
//!   at 1 Gb/s, too coarse for eight levels.
//! - Estimators of a switch tick at the same time. The time differs between switches, at random,
//!   since they have no common clock. In both programs all estimators tick together; in that of
//!   ConWeave's authors this changed mean completion times by at most 3 %.
//! - An entry that was not refreshed for `age` counts as 0 and is no longer fed back. In the paper
//!   it decays gradually.
//! - Every flow has its own flowlet entry unless `flowlets` limits the table (64 K in the paper);
//!   then flows share entries by hash.
//! - A flowlet whose path fails takes another path at once. Tags number the paths at the start of
//!   the run; when none of these paths is left, packets follow ECMP without a tag.
//!
//! Deviates: the paper does not cover three tiers. `mode = "path"` gives every shortest path
//! between two leaves a tag, which the sending leaf turns into a source route; `mode = "edge"`
//! gives each uplink a tag and leaves the rest to ECMP with `mix`, and CE is that of the path
//! taken. With two tiers both modes equal the paper's algorithm.

use super::{Decides, Duties, Env, PortAccess, Router, SwitchCx, ecmp};
use crate::flowlets::{COUNTERS, FlowletCounts, FlowletTable};
use crate::net::{Link, Net};
use crate::paths::{Counts, FiveTuple};
use crate::routes::Routes;
use base::params::{Auto, Params as _};
use base::registry::Meta;
use base::{Dur, Fraction, HostId, LinkId, NodeId, Rate, Rng, Time};
use dre::Dre;
use proto::Packet;
use proto::packet::ASK;
use std::collections::BTreeMap;

mod check;
mod dre;
mod peer;

pub use check::check;
use peer::{Overlay, Peer};

/// The description of this entry, for `list`, `explain` and `check`.
pub const META: Meta = Meta {
    summary: "CONGA: sends flowlets over the least congested path, known from feedback between leaves",
    source: "Alizadeh et al., SIGCOMM 2014",
    counters: &COUNTERS,
    packets_only: "it measures the packets that leave ports",
    ..Meta::PLAIN
};

base::choice! {
    /// What a tag identifies.
    pub enum Mode {
        /// A whole path between two leaves.
        Path = "path",
        /// An uplink of the sending leaf.
        Edge = "edge",
    }
}

base::params! {
    /// Parameters of CONGA.
    pub struct Params {
        /// What a tag identifies; makes a difference only with three tiers.
        mode: Mode = "path", "flowloom, see Deviates: the paper has two tiers";
        /// Idle time of a flow after which its next packet may take another path.
        flowlet_gap: Dur = "500us" in Dur(0)..=Dur::from_secs(60), "section 3.6";
        /// Entries of each leaf's flowlet table; `auto`: one per flow.
        flowlets: Auto<u32> = "auto" in Auto::Set(1)..=Auto::Set(1 << 24), "flowloom: no collisions; the paper has 64 K";
        /// How long a leaf's information about a path is valid.
        age: Dur = "10ms" in Dur(1)..=Dur::from_secs(60), "section 3.3";
        /// Whether the congestion that packets report (CE) includes that of the sending leaf's uplink.
        uplink_in_ce: bool = "false", "Hermes' authors; ConWeave's authors: true; see Assumed";
        /// Interval between two decays of the rate estimators; `auto`: 32us if the fastest cable
        /// between switches has at least 10 Gb/s, otherwise 200us.
        dre_interval: Auto<Dur> = "auto" in Auto::Set(Dur::from_us(1))..=Auto::Set(Dur::from_secs(1)), "section 3.6; see Assumed";
        /// Fraction of the estimate that a decay removes.
        dre_alpha: Fraction = "0.2" in Fraction(10_000_000)..=Fraction(990_000_000), "section 3.2; ns-3 implementations";
    }
}

/// Tags have 4 bits.
const TAGS: usize = 16;

/// The state of all leaves and ports.
pub struct Conga {
    params: Params,
    /// Routes packets without a tag, and packets whose tag names no port of the switch.
    rest: ecmp::Ecmp,
    /// The switch of each host.
    home: Vec<NodeId>,
    /// The leaves, by node; `None` for other nodes.
    leaves: Vec<Option<Leaf>>,
    /// The estimators, by link.
    estimators: Vec<Dre>,
    /// Whether packets that leave over a link report its congestion, by link.
    reports: Vec<bool>,
    counters: FlowletCounts,
    /// The next hops by which paths are numbered.
    routes: Routes,
    counts: Counts,
}

/// A leaf.
struct Leaf {
    /// The tag of each flowlet's path.
    flowlets: FlowletTable<u8>,
    /// The other leaves, by node.
    peers: BTreeMap<NodeId, Peer>,
    rng: Rng,
}

impl Conga {
    /// Returns the router of a network.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let home: Vec<NodeId> = homes(env.net).collect();
        let mut leaves: Vec<Option<Leaf>> = env.net.nodes().iter().map(|_| None).collect();
        for node in &home {
            leaves[node.index()].get_or_insert_with(|| Leaf {
                flowlets: FlowletTable::new(params.flowlet_gap, params.flowlets),
                peers: BTreeMap::new(),
                rng: Rng::stream(env.seed, "router/pick", &[u64::from(node.0)]),
            });
        }
        let links = env.net.links();
        let interval = params.dre_interval.or(interval(env.net));
        let phase = |node: u32| Dur(Rng::stream(env.seed, "router/phase", &[node.into()]).below(interval.ps()));
        let phases: Vec<Dur> = (0..env.net.nodes().len() as u32).map(phase).collect();
        Conga {
            params: params.clone(),
            reports: links.iter().map(|link| params.uplink_in_ce || leaves[link.from.index()].is_none()).collect(),
            counters: FlowletCounts::new(links.len()),
            rest: ecmp::Ecmp::new(&ecmp::Params::defaults(), env),
            home,
            leaves,
            estimators: links
                .iter()
                .map(|link| Dre::new(link.rate, interval, params.dre_alpha, phases[link.from.index()]))
                .collect(),
            routes: env.routes.clone(),
            counts: Counts::default(),
        }
    }
    /// Returns that switches decide on packets in both directions, and read and write a header in
    /// every packet between leaves.
    pub fn duties(_params: &Params, _env: &Env<'_>) -> Duties {
        Duties { decides: Decides::BothWays, ports: PortAccess::Watches, ..Duties::PLAN }
    }

    /// Sends a packet from a host of this leaf to another leaf (section 3.5). Returns its uplink,
    /// or `None` if no path with a tag is alive.
    fn send(&mut self, packet: &mut Packet, cx: &SwitchCx<'_>, to: NodeId) -> Option<LinkId> {
        let (_, dst) = cx.ends(packet);
        let Conga { params, rest, leaves, estimators, counters, routes, counts, .. } = self;
        let Leaf { flowlets, peers, rng } = leaves[cx.at.index()].as_mut().expect("hosts hang on leaves");
        let peer = peers.entry(to).or_insert_with(|| Peer::new(ways(cx.net, counts, routes, params.mode, cx.at, dst)));
        let entry = flowlets.entry(packet, || rest.hash(&cx.tuple(packet)));
        let old = flowlets.find(entry, cx.now);
        let tag = match old {
            Some((tag, true)) if peer.is_live(tag, cx, dst) => tag,
            _ => {
                let local = |uplink: LinkId| estimators[uplink.index()].metric(cx.now);
                let best = peer.least_congested(cx, dst, params.age, local);
                let old = old.map(|(tag, _)| tag);
                let tag = pick(best, old, rng)?;
                counters.count(peer.ways[usize::from(tag)][0], old.is_some_and(|old| old != tag));
                tag
            }
        };
        flowlets.put(entry, tag, cx.now);
        Overlay { tag, ce: 0, feedback: peer.feedback(cx.now, params.age) }.write(packet);
        let way = &peer.ways[usize::from(tag)];
        // The rest of the path is a source route; the last leaf decides by itself.
        for (byte, &link) in packet.route.iter_mut().zip(&way[1..]) {
            *byte = u8::try_from(cx.net.link(link).port.0).unwrap_or(ASK);
        }
        Some(way[0])
    }

    /// Handles a packet from another leaf to a host of this leaf (section 3.3).
    fn receive(&mut self, packet: &Packet, cx: &SwitchCx<'_>, from: NodeId) {
        let (Some(overlay), (src, _)) = (Overlay::read(packet), cx.ends(packet)) else { return };
        let Conga { params, leaves, routes, counts, .. } = self;
        let peers = &mut leaves[cx.at.index()].as_mut().expect("hosts hang on leaves").peers;
        let peer = peers.entry(from).or_insert_with(|| Peer::new(ways(cx.net, counts, routes, params.mode, cx.at, src)));
        peer.learn(overlay, cx.now, params.age);
    }
}

impl Router for Conga {
    fn choose(&mut self, at: NodeId, path: &FiveTuple, candidates: &[LinkId]) -> u32 {
        self.rest.choose(at, path, candidates)
    }
    fn decide(&mut self, packet: &mut Packet, candidates: &[LinkId], cx: &mut SwitchCx<'_>) -> u32 {
        let (src, dst) = cx.ends(packet);
        let (from, to) = (self.home[src.index()], self.home[dst.index()]);
        if from == to {
            return 0;
        }
        packet.path_tag = if cx.at == from { 0 } else { packet.path_tag };
        if cx.at == from
            && let Some(uplink) = self.send(packet, cx, to)
        {
            return candidates.iter().position(|&link| link == uplink).expect("a live path begins with a next hop") as u32;
        }
        if cx.at == to {
            self.receive(packet, cx, from);
        }
        if candidates.len() == 1 { 0 } else { self.choose(cx.at, &cx.tuple(packet), candidates) }
    }
    fn on_depart(&mut self, link: LinkId, packet: &mut Packet, now: Time) {
        let estimator = &mut self.estimators[link.index()];
        estimator.count(packet.wire_len, now);
        if self.reports[link.index()] {
            Overlay::raise(packet, estimator.metric(now));
        }
    }
    fn counts(&self, link: LinkId) -> &[u64] {
        self.counters.of(link)
    }
}

/// Returns the default interval between two decays of the estimators of a network.
fn interval(net: &Net) -> Dur {
    let between = |link: &&Link| net.host(link.from).is_none() && net.host(link.to).is_none();
    let fastest = net.links().iter().filter(between).map(|link| link.rate).max();
    if fastest < Some(Rate::from_gbps(10)) { Dur::from_us(200) } else { Dur::from_us(32) }
}

/// Returns the switch of each host, which has one NIC.
fn homes(net: &Net) -> impl Iterator<Item = NodeId> {
    (0..net.hosts().len() as u32).map(|host| net.link(net.first_nic(HostId(host))).to)
}

/// Returns the paths from a leaf to the leaf of `dst`, in the order of their ports. The index of a
/// path is its tag.
fn ways(net: &Net, counts: &mut Counts, routes: &Routes, mode: Mode, at: NodeId, dst: HostId) -> Vec<Vec<LinkId>> {
    if mode == Mode::Edge {
        return routes.candidates(at, dst).iter().take(TAGS).map(|&uplink| vec![uplink]).collect();
    }
    let mut paths: Vec<_> = (0..TAGS as u32).map_while(|rank| counts.path(net, routes, at, dst, rank)).collect();
    for links in &mut paths {
        links.pop(); // From the other leaf to its host.
    }
    paths
}

/// Returns one of the tags in `best`: the present one if it is among them, so that a flow moves
/// only to a better path (section 3.5).
fn pick(best: u16, present: Option<u8>, rng: &mut Rng) -> Option<u8> {
    if best == 0 {
        return None;
    }
    present.filter(|&tag| best & 1 << tag != 0).or_else(|| {
        let skip = rng.below(u64::from(best.count_ones()));
        let rest = (0..skip).fold(best, |rest, _| rest & (rest - 1));
        Some(rest.trailing_zeros() as u8)
    })
}

#[cfg(test)]
mod tests;

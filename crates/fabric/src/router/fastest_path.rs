//! Fastest path: leaves probe the paths to the leaves that they send to, and a new flow takes the
//! path with the smallest measured delay.
//!
//! Source: flowloom. Katta et al., "HULA: Scalable Load Balancing Using Programmable Data Planes",
//! SOSR 2016, section 3, has leaves that find paths by their own periodic probes; here probes
//! measure delay, and flows keep their paths.
//!
//! A switch with hosts is a leaf. With its first packet to another leaf, and then once per `period`
//! while packets go there, a leaf sends one probe over each path to that leaf. The other leaf
//! consumes the probe and returns the probe's travel time in an answer, which takes any path. A
//! flow that is new to a leaf, or whose path has failed, takes the path with the smallest delay;
//! the leaf writes that path into the flow's packets.
//!
//! Model: a leaf keeps one entry per flow, without limit. Flows that start within one period may all take the same path.
//!
//! | parameter | default | from |
//! |---|---|---|
//! | `period` | 100 us | flowloom: some round trips of a data center |
//! | `paths` | 16 | flowloom: 16 probes of 64 bytes per leaf every 100 us are 82 Mb/s |
//! | `probe_bytes` | 64 | the smallest Ethernet frame |
//!
//! Assumed:
//! - If there are more than `paths` paths, that many are probed and used, evenly spread over the
//!   path indices.
//! - A path counts as empty until its first probe is answered, and again after its first link has
//!   come up. A path whose last probe was not answered within the period counts as the slowest.
//!   Ties are broken by the flow's hash (ECMP with `mix`).
//! - The clocks of two leaves may differ: the error is the same for all paths between the two
//!   leaves.
//! - Paths of more than 7 switches are never probed. Where no path is left, packets follow ECMP.

use super::{Decides, Duties, Env, Router, SwitchCx, ecmp, needs_one_nic};
use crate::net::Net;
use crate::paths::{Counts, FiveTuple, Path, is_live};
use crate::routes::Routes;
use base::params::{Params as _, Problem};
use base::registry::Meta;
use base::{Dur, FlowId, FlowMap, HostId, LinkId, NodeId};
use proto::packet::{ASK, ROUTE_HOPS};
use proto::{Kind, Packet};
use std::collections::BTreeMap;

/// The description of this entry, for `list`, `explain` and `check`.
pub const META: Meta = Meta {
    summary: "leaves probe paths; a new flow takes the path with the smallest measured delay",
    source: "flowloom, after Katta et al., SOSR 2016",
    kinds: &["path_probe", "path_answer"],
    ..Meta::PLAIN
};

/// From leaf to leaf over one path. `offset` is the index of the path, word 0 the time of sending,
/// in ps.
const PROBE: Kind = Kind(Kind::ROUTER);
/// Back to the leaf that sent the probe. `offset` is the index of the path, word 0 the travel time
/// of the probe, in ps.
const ANSWER: Kind = Kind(Kind::ROUTER + 1);

base::params! {
    /// Parameters of probes.
    pub struct Params {
        /// Time between two probes of a path.
        period: Dur = "100us" in Dur::from_us(1)..=Dur::from_secs(1), "flowloom: some round trips of a data center";
        /// Largest number of paths to one leaf that are probed.
        paths: u16 = "16" in 1..=256, "flowloom";
        /// Size of a probe and of an answer on the wire.
        probe_bytes: u16 = "64" in 40..=1500, "the smallest Ethernet frame";
    }
}

/// Returns the problems of parameters that depend on the network.
pub fn check(_params: &Params, env: &Env<'_>) -> Vec<Problem> {
    needs_one_nic(env, "fastest_path", "the leaf of the source chooses the path to the leaf of the destination")
        .into_iter()
        .collect()
}

/// The state of all leaves.
pub struct FastestPath {
    params: Params,
    /// Routes packets for which no measured path exists.
    rest: ecmp::Ecmp,
    /// The switch of each host.
    home: Vec<NodeId>,
    /// The leaves, by node.
    leaves: Vec<Leaf>,
    /// The next hops while all links are up.
    routes: Routes,
}

/// A leaf.
#[derive(Default)]
struct Leaf {
    /// The other leaves, by node.
    peers: BTreeMap<NodeId, Peer>,
    /// The index of each flow's path.
    taken: FlowMap<usize>,
}

/// The paths from a leaf to another leaf.
struct Peer {
    ways: Vec<Way>,
    /// A flow and a direction ([`Packet::BACK`]) with packets to the other leaf. Probes carry them.
    flow: (FlowId, bool),
    /// Whether packets have been sent to the other leaf since the last probes.
    active: bool,
    /// Whether a timer is set for the next probes.
    armed: bool,
}

/// A path to another leaf.
struct Way {
    /// The links between the two leaves.
    links: Vec<LinkId>,
    /// Travel time of the last probe that arrived, in ps; `u64::MAX` if a later probe was lost.
    delay: u64,
    /// Whether the last probe is still unanswered.
    asked: bool,
}

impl FastestPath {
    /// Returns the router of a network.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let nic = |host: u32| env.net.link(env.net.first_nic(HostId(host))).to;
        FastestPath {
            params: params.clone(),
            rest: ecmp::Ecmp::new(&ecmp::Params::defaults(), env),
            home: (0..env.net.hosts().len() as u32).map(nic).collect(),
            leaves: env.net.nodes().iter().map(|_| Leaf::default()).collect(),
            routes: env.routes.clone(),
        }
    }
    /// Returns that leaves decide on packets in both directions, and probe by timers.
    pub fn duties(_params: &Params, _env: &Env<'_>) -> Duties {
        Duties { decides: Decides::BothWays, timers: true, ..Duties::PLAN }
    }

    /// Sends a packet from a host of this leaf to another leaf. Returns the first link of its path,
    /// or `None` if no path is alive.
    fn send(&mut self, packet: &mut Packet, cx: &mut SwitchCx<'_>, to: NodeId) -> Option<LinkId> {
        let (_, dst) = cx.ends(packet);
        let Leaf { peers, taken } = &mut self.leaves[cx.at.index()];
        let peer = peers.entry(to).or_insert_with(|| Peer::new(&self.params, cx.net, &self.routes, cx.at, dst));
        if !peer.armed {
            cx.arm(to.0, cx.now);
        }
        (peer.active, peer.armed, peer.flow) = (true, true, (packet.flow, packet.has(Packet::BACK)));
        let live = |way: &Way| is_live(cx.net, cx.routes, &way.links, dst);
        let place = match taken.get(packet.flow).copied().filter(|&place| live(&peer.ways[place])) {
            Some(place) => place,
            None => {
                let place = peer.fastest(self.rest.hash(&cx.tuple(packet)), live)?;
                taken.insert(packet.flow, place);
                place
            }
        };
        let links = &peer.ways[place].links;
        lead(packet, cx.net, links);
        Some(links[0])
    }
}

impl Router for FastestPath {
    fn choose(&mut self, at: NodeId, path: &FiveTuple, candidates: &[LinkId]) -> u32 {
        self.rest.choose(at, path, candidates)
    }
    fn decide(&mut self, packet: &mut Packet, candidates: &[LinkId], cx: &mut SwitchCx<'_>) -> u32 {
        let (src, dst) = cx.ends(packet);
        let [from, to] = [src, dst].map(|host| self.home[host.index()]);
        if cx.at == from
            && from != to
            && packet.kind < PROBE
            && let Some(link) = self.send(packet, cx, to)
        {
            return candidates.iter().position(|&candidate| candidate == link).expect("a live path begins with a next hop") as u32;
        }
        if candidates.len() == 1 { 0 } else { self.choose(cx.at, &cx.tuple(packet), candidates) }
    }

    fn on_timer(&mut self, key: u32, cx: &mut SwitchCx<'_>) {
        let Some(peer) = self.leaves[cx.at.index()].peers.get_mut(&NodeId(key)) else { return };
        peer.armed = std::mem::take(&mut peer.active);
        if !peer.armed {
            return;
        }
        let (flow, back) = peer.flow;
        let (_, dst) = cx.flows[flow.index()].ends(back);
        for (place, way) in peer.ways.iter_mut().enumerate() {
            if way.asked {
                way.delay = u64::MAX;
            }
            if !is_live(cx.net, cx.routes, &way.links, dst) {
                continue;
            }
            let mut probe = Packet::new(flow, PROBE, self.params.probe_bytes);
            (probe.offset, probe.words[0], probe.flags) = (place as u64, cx.now.ps(), u16::from(back) * Packet::BACK);
            lead(&mut probe, cx.net, &way.links);
            way.asked = true;
            cx.send_via(way.links[0], probe);
        }
        cx.arm(key, cx.now + self.params.period);
    }

    fn on_link(&mut self, link: LinkId, up: bool, cx: &mut SwitchCx<'_>) {
        let ways = self.leaves[cx.at.index()].peers.values_mut().flat_map(|peer| &mut peer.ways);
        for way in ways.filter(|way| up && way.links[0] == link) {
            (way.delay, way.asked) = (0, false);
        }
    }

    fn take(&mut self, packet: &Packet, cx: &mut SwitchCx<'_>) -> bool {
        let (src, dst) = cx.ends(packet);
        let [from, to] = [src, dst].map(|host| self.home[host.index()]);
        match packet.kind {
            PROBE if cx.at == to => {
                let mut answer = Packet::new(packet.flow, ANSWER, self.params.probe_bytes);
                (answer.offset, answer.words[0]) = (packet.offset, cx.now.ps() - packet.words[0]);
                answer.flags = !packet.flags & Packet::BACK;
                cx.send(answer);
                true
            }
            // A failure has diverted the probe, so its delay is that of another path.
            PROBE => true,
            // The answer is on its way to the leaf that sent the probe.
            _ if cx.at != to => false,
            _ => {
                let peer = self.leaves[cx.at.index()].peers.get_mut(&from);
                if let Some(way) = peer.and_then(|peer| peer.ways.get_mut(packet.offset as usize)) {
                    (way.delay, way.asked) = (packet.words[0], false);
                }
                true
            }
        }
    }
}

impl Peer {
    /// Returns the paths from a leaf to the leaf of `dst`.
    fn new(params: &Params, net: &Net, routes: &Routes, at: NodeId, dst: HostId) -> Peer {
        let mut counts = Counts::default();
        let all = u64::from(counts.count(net, routes, at, dst));
        let probed = all.min(u64::from(params.paths));
        let way = |i: u64| {
            let mut links = counts.path(net, routes, at, dst, (i * all / probed) as u32)?;
            links.pop(); // From the other leaf to its host.
            let fits = links.len() <= ROUTE_HOPS && Path::new(net, links.clone()).route.is_some();
            fits.then_some(Way { links, delay: 0, asked: false })
        };
        Peer { ways: (0..probed).filter_map(way).collect(), flow: (FlowId(0), false), active: false, armed: false }
    }

    /// Returns the index of the fastest `live` path; ties are broken by `hash`.
    fn fastest(&self, hash: u32, live: impl Fn(&Way) -> bool) -> Option<usize> {
        let live = || self.ways.iter().enumerate().filter(|(_, way)| live(way));
        let least = live().map(|(_, way)| way.delay).min()?;
        let best = || live().filter(|(_, way)| way.delay == least).map(|(place, _)| place);
        best().nth(hash as usize % best().count())
    }
}

/// Writes the rest of a path into a packet that is about to take its first link. The switch at the
/// end of the path decides by itself.
fn lead(packet: &mut Packet, net: &Net, links: &[LinkId]) {
    packet.route = [ASK; ROUTE_HOPS];
    for (byte, &link) in packet.route.iter_mut().zip(&links[1..]) {
        *byte = net.link(link).port.0 as u8;
    }
}

#[cfg(test)]
mod tests;

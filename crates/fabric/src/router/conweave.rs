//! ConWeave: leaves measure the round trip of every flow continuously, reroute flows whose replies
//! are late, and hold packets of the new path until those of the old path have arrived.
//!
//! Source: Song et al., "Network Load Balancing with In-network Reordering Support for RDMA",
//! SIGCOMM 2023, sections 3.1 to 3.4, Tables 1 and 2, Appendix A; the authors' program
//! (`conweave-routing.cc`, `conweave-voq.cc`, `run.py` of conweave-ns3).
//!
//! A switch with hosts is a leaf. The leaf of a flow's source (`conweave/sender.rs`) divides the flow
//! into epochs. The first packet of an epoch requests a reply. If the reply does not arrive within
//! `theta_reply`, the flow is rerouted: the next packet is the last one on the present path (TAIL),
//! and later packets take a path that is drawn at random and is not busy (REROUTED). The reply, or
//! after rerouting the answer to the TAIL (CLEAR), or a silence of `theta_inactive` begins the next
//! epoch, so a flow is rerouted once until its old path is known to be empty. The leaf of the
//! destination (`conweave/receiver.rs`) holds rerouted packets that arrive before the TAIL. It
//! releases them behind the TAIL, or when the TAIL is overdue. A packet with an ECN mark makes the leaf
//! of the destination report its path (NOTIFY), and the path is busy for `theta_path_busy`.
//!
//! Model: held packets are released at once into the queue of the port, as in the authors' program.
//! The switch of the paper holds them in a queue of the port, which it pauses and resumes.
//!
//! | parameter | default | from |
//! |---|---|---|
//! | `theta_reply` | 1 round trip | 8 us |
//! | `theta_path_busy` | 2 round trips | 16 us |
//! | `theta_inactive` | 40 round trips | 300 us |
//! | `resume_extra` | 2 round trips | 16 us |
//! | `resume_default` | 25 round trips | 200 us |
//! | `queues` | no limit | the program has none |
//!
//! Assumed:
//! - The authors' values are those of their leaf-spine network of 100 Gb/s with a round trip of about
//!   8 us between hosts. Defaults scale with the longest unloaded round trip between two hosts. In fat
//!   trees their program has `theta_inactive` = 1 ms and, on lossless Ethernet, `resume_extra` = 64 us.
//!   Pauses of PFC may delay the TAIL for longer; packets are then reordered.
//! - `theta_reply` is the same for all pairs of leaves. The program adds 4 us to the unloaded round
//!   trip of 4 us between leaves.
//! - Two paths are drawn independently, and the first good one is taken. The present path is not good
//!   for rerouting. If none is good, the flow stays on its path, and the late reply begins the next
//!   epoch; the program sends a TAIL without a new path. A flow that is new, or was silent, takes the
//!   first good path, else its old path, else any live path.
//! - A flow whose path fails begins a new epoch on another path at once.
//! - CLEAR answers a TAIL, as in the program. If the TAIL or an answer is lost, the next epoch begins
//!   after a silence.
//! - Each packet on the old path moves the resume timer. If no packet of the epoch has arrived on the
//!   old path, the TAIL is expected after `resume_default`.
//! - `queues` counts the hold queues of one port to a host. A packet that finds none is sent on. If
//!   the buffer of the switch has no room for a held packet, the packet is dropped.
//! - Packets of a new epoch that arrive while packets of an earlier epoch are held follow these at
//!   once. Packets of an earlier epoch pass and are not answered, as in the program.
//! - Only packets from a flow's source are rerouted. ACKs, and packets for which no path fits into a
//!   source route, follow ECMP with `mix`.
//! - Replies, CLEAR and NOTIFY have 64 bytes and class 0, the highest of `strict`; other disciplines
//!   queue them with data. They follow ECMP.
//! - More than 255 paths: 255 are used, evenly spread over the path indices.
//!
//! Deviates:
//! - The header of 47 bits adds no bytes on the wire, as in the authors' program. It would be 6 bytes,
//!   0.4 % of a packet of 1500 bytes and 0.6 % of 1048 bytes.
//! - The header has one timestamp of 12 bits, in units of `theta_inactive` / 4095, instead of two of 16
//!   bits: rerouted packets need only that of the TAIL, other packets only their own. The resume timer
//!   is late by at most two units, and never early.

use super::{Decides, Duties, Env, Router, SwitchCx, ecmp, needs_one_nic};
use crate::paths::{Counts, FiveTuple, is_live};
use crate::routes::Routes;
use base::params::{Auto, Params as _, Problem};
use base::registry::{Counter, Meta};
use base::{Dur, FlowId, FlowMap, HostId, LinkId, NodeId, Rng};
use header::{StampClock, WeaveHeader, WeaveMark};
use paths::LeafPaths;
use proto::{Kind, Packet};
use receiver::EpochReceiver;
use sender::EpochSender;
use std::collections::BTreeMap;

mod header;
mod paths;
mod receiver;
mod sender;

/// The description of this entry, for `list`, `explain` and `check`.
pub const META: Meta = Meta {
    summary: "ConWeave: leaves reroute flows whose replies are late, and restore the order of their packets",
    source: "Song et al., SIGCOMM 2023",
    kinds: &["rtt_reply", "clear", "notify"],
    counters: &[
        Counter { name: "rerouted", unit: "flows", about: "flows that the leaf rerouted to a path through the port" },
        Counter { name: "held", unit: "packets", about: "packets that the leaf held in front of the port" },
        Counter { name: "unheld", unit: "packets", about: "packets that the leaf would have held, but no hold queue was left" },
    ],
    packets_only: "it measures the round trips of packets, and holds packets",
    ..Meta::PLAIN
};

/// Answers a request: `offset` is the epoch.
const RTT_REPLY: Kind = Kind(Kind::ROUTER);
/// Answers a TAIL: `offset` is the epoch.
const CLEAR: Kind = Kind(Kind::ROUTER + 1);
/// Reports a busy path: `offset` is its index.
const NOTIFY: Kind = Kind(Kind::ROUTER + 2);

/// Bytes of a reply: the smallest Ethernet frame.
const REPLY_BYTES: u16 = 64;

base::params! {
    /// Parameters of ConWeave. Round trips are the longest unloaded round trip.
    pub struct Params {
        /// Time within which a request must be answered; `auto`: 1 round trip.
        theta_reply: Auto<Dur> = "auto" in Auto::Set(Dur(1))..=Auto::Set(Dur::from_secs(60)), "8us of the authors at a round trip of 8us; see Assumed";
        /// Time for which a path is busy after an ECN mark; `auto`: 2 round trips.
        theta_path_busy: Auto<Dur> = "auto" in Auto::Set(Dur(0))..=Auto::Set(Dur::from_secs(60)), "16us of the authors at a round trip of 8us";
        /// Silence of a flow after which an epoch begins; `auto`: 40 round trips.
        theta_inactive: Auto<Dur> = "auto" in Auto::Set(Dur(1))..=Auto::Set(Dur::from_secs(60)), "300us of the authors at a round trip of 8us";
        /// Time for which packets are held longer than the TAIL is expected to take; `auto`: 2 round
        /// trips.
        resume_extra: Auto<Dur> = "auto" in Auto::Set(Dur(0))..=Auto::Set(Dur::from_secs(60)), "16us of the authors at a round trip of 8us";
        /// Time that the TAIL is expected to take if no packet of the old path has arrived; `auto`: 25
        /// round trips.
        resume_default: Auto<Dur> = "auto" in Auto::Set(Dur(0))..=Auto::Set(Dur::from_secs(60)), "200us of the authors at a round trip of 8us";
        /// Hold queues of each port to a host; `auto`: no limit.
        queues: Auto<u32> = "auto" in Auto::Set(0)..=Auto::Set(1 << 24), "the authors' program has no limit";
    }
}

/// Returns the problems of parameters that depend on the network.
pub fn check(_params: &Params, env: &Env<'_>) -> Vec<Problem> {
    needs_one_nic(env, "conweave", "the leaf of the destination restores the order of the packets of a flow").into_iter().collect()
}

/// The state of all leaves.
pub struct ConWeave {
    theta_path_busy: Dur,
    /// `theta_reply` and `theta_inactive`.
    send_times: [Dur; 2],
    /// `resume_extra` and `resume_default`.
    resume_times: [Dur; 2],
    queues: u32,
    clock: StampClock,
    /// Routes packets without a path.
    rest: ecmp::Ecmp,
    /// The switch of each host.
    home: Vec<NodeId>,
    /// The leaves, by node.
    leaves: Vec<Leaf>,
    /// By host: the hold queues of its port that are in use.
    in_use: Vec<u32>,
    /// The flows to release at the switch that is being handled.
    released: Vec<FlowId>,
    /// The counters of each link.
    counters: Vec<[u64; 3]>,
    /// The next hops while all links are up, by which paths are numbered.
    routes: Routes,
    counts: Counts,
}

/// A leaf.
struct Leaf {
    /// The paths to other leaves, by node.
    peers: BTreeMap<NodeId, LeafPaths>,
    /// Flows from hosts of this leaf.
    senders: FlowMap<EpochSender>,
    /// Flows to hosts of this leaf.
    receivers: FlowMap<EpochReceiver>,
    rng: Rng,
}

impl ConWeave {
    /// Returns the router of a network.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let times = |time: Auto<Dur>, round_trips: u64| time.or(env.max_rtt * round_trips);
        let theta_inactive = times(params.theta_inactive, 40);
        let nic = |host: u32| env.net.link(env.net.first_nic(HostId(host))).to;
        let hosts = env.net.hosts().len();
        let leaf = |node| Leaf {
            peers: BTreeMap::new(),
            senders: FlowMap::default(),
            receivers: FlowMap::default(),
            rng: Rng::stream(env.seed, "router/pick", &[node]),
        };
        ConWeave {
            theta_path_busy: times(params.theta_path_busy, 2),
            send_times: [times(params.theta_reply, 1), theta_inactive],
            resume_times: [times(params.resume_extra, 2), times(params.resume_default, 25)],
            queues: params.queues.or(u32::MAX),
            clock: StampClock::new(theta_inactive),
            rest: ecmp::Ecmp::new(&ecmp::Params::defaults(), env),
            home: (0..hosts as u32).map(nic).collect(),
            leaves: (0..env.net.nodes().len() as u64).map(leaf).collect(),
            in_use: vec![0; hosts],
            released: Vec::new(),
            counters: vec![[0; 3]; env.net.links().len()],
            routes: env.routes.clone(),
            counts: Counts::default(),
        }
    }
    /// Returns that switches decide on packets from a flow's source, have timers and hold packets.
    pub fn duties(_params: &Params, _env: &Env<'_>) -> Duties {
        Duties { decides: Decides::There, timers: true, holds: true, ..Duties::PLAN }
    }

    /// Returns the leaves of a flow's source and destination.
    fn ends(&self, flow: FlowId, cx: &SwitchCx<'_>) -> [NodeId; 2] {
        let (src, dst) = cx.flows[flow.index()].ends(false);
        [src, dst].map(|host| self.home[host.index()])
    }

    /// Sends a packet from a host of this leaf to another leaf. Returns the first link of its path,
    /// or `None` if no path is alive.
    fn send(&mut self, packet: &mut Packet, cx: &SwitchCx<'_>, to: NodeId) -> Option<LinkId> {
        let (_, dst) = cx.ends(packet);
        let ConWeave { send_times, clock, leaves, counters, routes, counts, .. } = self;
        let Leaf { peers, senders, rng, .. } = &mut leaves[cx.at.index()];
        let paths = peers.entry(to).or_insert_with(|| LeafPaths::new(cx.net, counts, routes, cx.at, dst));
        let sender = senders.or_insert_with(packet.flow, EpochSender::new);
        let live = |links: &[LinkId]| is_live(cx.net, cx.routes, links, dst);
        let header = sender.send(cx.now, *send_times, *clock, paths, live, rng)?;
        header.write(packet);
        if header.mark == WeaveMark::Tail
            && let Some(next) = sender.path()
        {
            counters[paths.links(next)[0].index()][0] += 1;
        }
        Some(paths.lead(packet, cx.net, header.path))
    }
}

/// Sends a packet of the router's own back to the leaf of a flow's source.
fn answer(flow: FlowId, kind: Kind, offset: u8, cx: &mut SwitchCx<'_>) {
    cx.send(Packet { offset: offset.into(), flags: Packet::BACK, ..Packet::new(flow, kind, REPLY_BYTES) });
}

impl Router for ConWeave {
    fn choose(&mut self, at: NodeId, path: &FiveTuple, candidates: &[LinkId]) -> u32 {
        self.rest.choose(at, path, candidates)
    }
    fn decide(&mut self, packet: &mut Packet, candidates: &[LinkId], cx: &mut SwitchCx<'_>) -> u32 {
        let [from, to] = self.ends(packet.flow, cx);
        if cx.at == from
            && from != to
            && !packet.has(Packet::BACK)
            && let Some(link) = self.send(packet, cx, to)
        {
            return candidates.iter().position(|&candidate| candidate == link).expect("a live path begins with a next hop") as u32;
        }
        if candidates.len() == 1 { 0 } else { self.choose(cx.at, &cx.tuple(packet), candidates) }
    }

    fn hold(&mut self, packet: &mut Packet, cx: &mut SwitchCx<'_>) -> bool {
        let [from, to] = self.ends(packet.flow, cx);
        if cx.at != to || from == to || packet.has(Packet::BACK) {
            return false;
        }
        let Some(header) = WeaveHeader::take(packet) else { return false };
        let (flow, (_, dst)) = (packet.flow, cx.ends(packet));
        let receivers = &mut self.leaves[cx.at.index()].receivers;
        let receiver = receivers.or_insert_with(flow, || EpochReceiver::new(header.epoch));
        let queue_left = self.in_use[dst.index()] < self.queues;
        let ruling = receiver.receive(header, cx.now, self.resume_times, self.clock, queue_left);
        self.in_use[dst.index()] += u32::from(ruling.opens);
        let [_, held, unheld] = &mut self.counters[cx.net.link(cx.net.first_nic(dst)).reverse.index()];
        *held += u64::from(ruling.held);
        *unheld += u64::from(ruling.unheld);
        if let Some(at) = ruling.timer {
            cx.arm(flow.0, at);
        }
        if ruling.current {
            if packet.has(Packet::CE) {
                answer(flow, NOTIFY, header.path, cx);
            }
            match header.mark {
                WeaveMark::Request => answer(flow, RTT_REPLY, header.epoch, cx),
                WeaveMark::Tail => answer(flow, CLEAR, header.epoch, cx),
                WeaveMark::Plain | WeaveMark::Rerouted => {}
            }
        }
        ruling.held
    }

    fn on_timer(&mut self, key: u32, cx: &mut SwitchCx<'_>) {
        let flow = FlowId(key);
        let (_, dst) = cx.flows[flow.index()].ends(false);
        if self.leaves[cx.at.index()].receivers.get_mut(flow).is_some_and(EpochReceiver::release) {
            self.in_use[dst.index()] -= 1;
            self.released.push(flow);
        }
    }

    fn next_release(&mut self) -> Option<FlowId> {
        self.released.pop()
    }

    fn take(&mut self, packet: &Packet, cx: &mut SwitchCx<'_>) -> bool {
        let [from, to] = self.ends(packet.flow, cx);
        if cx.at != from {
            return false;
        }
        let Leaf { peers, senders, .. } = &mut self.leaves[from.index()];
        let epoch = packet.offset as u8;
        match packet.kind {
            NOTIFY => {
                if let Some(paths) = peers.get_mut(&to) {
                    paths.set_busy(packet.offset as usize, cx.now, self.theta_path_busy);
                }
            }
            kind => {
                if let Some(sender) = senders.get_mut(packet.flow) {
                    if kind == CLEAR { sender.on_clear(epoch) } else { sender.on_reply(epoch, cx.now) }
                }
            }
        }
        true
    }

    fn counts(&self, link: LinkId) -> &[u64] {
        &self.counters[link.index()]
    }
}

#[cfg(test)]
mod tests;

//! NDP: switches cut the payload off data that does not fit, and receivers pull packets at the rate of the downlink.
//!
//! Source: Handley et al., "Re-architecting datacenter networks and stacks for low latency and high performance", SIGCOMM 2017; the
//! authors' simulator (csg-htsim at 841d9e7, sim/ndp.cpp and sim/fairpullqueue.cpp) for what the paper leaves open.
//!
//! Model: there is no handshake, sizes are not known beforehand, and there is no congestion window
//! after the first one. Ports must trim (`trim`), and the router must plan paths, since hosts
//! choose among them.
//!
//! | rule | from |
//! |---|---|
//! | a sender sends its initial window at line rate without pulls | section 3 |
//! | each packet takes the next path of a random permutation, which is drawn again after each pass | ndp.cpp, choose_route |
//! | data is answered by an ACK, a trimmed header by a NACK; each answer adds one pull | section 3 |
//! | a host sends one pull per `MTU / (pull_rate C)`, the time of a full packet on the wire, to its flows in turn | ndp.cpp, NdpPullPacer; fairpullqueue.cpp |
//! | if no pull waits and the spacing has passed, the ACK or NACK itself is the pull | ndp.cpp, sendPacket |
//! | pulls of a flow are numbered, and the largest number counts: the next pull makes up for a lost one | ndp.cpp, pull_packets |
//! | a pull sends the lowest packet to be retransmitted, or else a new one | ndp.cpp, send_packet |
//! | a returned packet waits for a pull, unless no pull is expected or a quarter of recent answers are ACKs | ndp.cpp, processRTS |
//! | a packet without an answer for the retransmission timeout is retransmitted at once | ndp.cpp, retransmit_packet |
//! | when a flow is complete, its pulls leave the queue of its receiver | ndp.cpp, release_pulls |
//! | with `penalty`, paths with many NACKs are excluded | ndp.cpp, count_feedback and choose_route |
//!
//! Assumed:
//! - Every ACK, NACK and PULL carries the number of the flow's last pull, and the byte below which
//!   everything has arrived.
//! - A pull that arrives when no packet can be sent counts for the next packet: a PULL may overtake
//!   a NACK.
//! - New packets of the initial window go before packets to be retransmitted.
//! - A sender that has packets left, none in flight and no pull sends one packet after the
//!   retransmission timeout: pulls may be lost too.
//! - The timeout doubles with each expiry, up to 64 times the smallest one, until an ACK arrives.
//!   Only packets sent once give round-trip samples.
//! - A header whose packet has arrived by another transmission is answered by an ACK.
//! - The flows of a host take turns to send.
//!
//! Deviates: in ndp.cpp the smallest timeout is 5 ms and varies at random by a quarter, and it is
//! off if packets are returned.

use crate::contract::{Cx, Env, Timeout, Timers, Transport};
use crate::flow::Sample;
use crate::kit::pull_pacer::PullPacer;
use crate::kit::rtt::RttConfig;
use crate::packet::{Kind, Packet};
use crate::turns::RoundRobin;
use base::params::{Auto, Problem};
use base::registry::{Counter, Meta, Needs};
use base::{Bytes, Dur, FlowId, FlowMap, Fraction, Rate, TimerKey};
use paths::Spray;
use sender::Sender;
use std::ops::Range;

mod paths;
mod sender;

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "NDP: ports trim data that does not fit, and receivers pull packets at the rate of the downlink",
    source: "Handley et al., SIGCOMM 2017; csg-htsim ndp.cpp",
    needs: Needs { qdisc: &["trim"], ..Needs::NONE },
    many_paths: true,
    kinds: &["nack", "pull"],
    takes: &["trimmed", "returned"],
    counters: &[
        Counter { name: "trims", unit: "packets", about: "trimmed packets at the receiver" },
        Counter { name: "pulls", unit: "packets", about: "pulls sent by the receiver, in ACKs and NACKs or as PULLs" },
        Counter { name: "nacks", unit: "packets", about: "NACKs received by the sender" },
        Counter { name: "returned", unit: "packets", about: "packets that ports sent back to the sender" },
        Counter { name: "first_window_bytes", unit: "bytes", about: "payload sent without a pull, in the initial window" },
    ],
    host: "htsim: flows take turns; pull packets pace all but the first window",
    ..Meta::PLAIN
};

const NACK: Kind = Kind(Kind::OWN);
const PULL: Kind = Kind(Kind::OWN + 1);

/// Indices of the counters.
const TRIMS: usize = 0;
const PULLS: usize = 1;
const NACKS: usize = 2;
const RETURNED: usize = 3;
const FIRST_WINDOW: usize = 4;

base::params! {
    /// Parameters of NDP.
    pub struct Params {
        /// Packets that a flow may send without pulls; `auto`: one bandwidth-delay product of the
        /// longest path, plus two packets.
        init_window: Auto<u32> = "auto" in Auto::Set(1)..=Auto::Set(1_000_000), "flowloom; NDP: 30 of 9 KB, main_ndp.cpp: 15";
        /// The rate at which a host pulls full packets, as a share of its link's rate.
        pull_rate: Fraction = "0.99" in Fraction(10_000_000)..=Fraction::ONE, "main_ndp.cpp";
        /// Length of an ACK, a NACK and a PULL on the wire.
        control: Bytes = "64B" in Bytes(1)..=Bytes(65_535), "NDP";
        /// Smallest retransmission timeout; `auto`: 1 ms, at least three unloaded round trips of the longest path.
        min_rto: Auto<Dur> = "auto" in Auto::Set(Dur::from_ns(100))..=Auto::Set(Dur::from_secs(60)), "flowloom; ndp.h: 5 ms";
        /// Whether paths with far more NACKs than others are excluded.
        penalty: bool = "false", "NDP and ndp.cpp: an option";
    }
}

/// Returns the problems that depend on the network.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    if params.control.0 > u64::from(env.mtu_bytes) {
        let message = format!("`{}` is longer than a full packet of {}", params.control, Bytes(u64::from(env.mtu_bytes)));
        problems.push(Problem { key: "control", message, hint: "write the size of a bare header, like `64B`".to_owned() });
    }
    if let Auto::Set(rto) = params.min_rto {
        problems.extend(env.too_short("min_rto", rto, "every packet would be retransmitted: write a longer time or `auto`"));
    }
    problems
}

base::header! {
    /// The header of ACKs, NACKs and PULLs. The offset of an ACK or a NACK is that of the packet
    /// that it answers.
    pub struct Answer {
        /// All bytes below have arrived.
        next: u64,
        /// The number of the flow's last pull.
        pulls: u32,
    }
}

/// Timer of a flow at its sender: retransmission.
const RTO: u8 = 0;
/// Timer of a host: the next pull.
const PACED: u8 = 1;

/// The configuration of a host.
#[derive(Clone, Debug)]
struct Config {
    mss: u64,
    header: u16,
    control: u16,
    window: u64,
    rtt: RttConfig,
    penalty: bool,
}

impl Config {
    fn new(params: &Params, env: &Env<'_>) -> Config {
        let bdp = u32::try_from(env.bdp_bytes().div_ceil(env.mtu_bytes.into())).unwrap_or(u32::MAX);
        let rto = env.auto("min_rto", params.min_rto, Dur::from_ms(1).max(env.max_rtt * 3));
        Config {
            mss: env.mss().into(),
            header: env.header_bytes,
            control: u16::try_from(params.control.0).unwrap_or(u16::MAX),
            window: env.auto("init_window", params.init_window, bdp.saturating_add(2)).into(),
            rtt: RttConfig { init_rto: rto, min_rto: rto, max_rto: rto * 64, clock: Dur::ZERO },
            penalty: params.penalty,
        }
    }
    /// Returns the time between two pulls of a host. In ndp.cpp a packet has `data_packet_size() +
    /// ACKSIZE` bytes on the wire; here `mtu` includes the header.
    fn gap(params: &Params, env: &Env<'_>) -> Dur {
        env.host_rate.times(params.pull_rate).gap(env.mtu_bytes.into())
    }
}

/// A flow at its receiver, until it is complete.
#[derive(Clone, Debug)]
struct Receiver {
    /// All bytes below have arrived.
    next: u64,
    /// Pulls sent.
    pulls: u32,
    /// Pulls that wait; the flow takes turns while it has any.
    waiting: u32,
    spray: Spray,
}

/// The machine of one host.
pub struct Ndp {
    config: Config,
    senders: FlowMap<Sender>,
    // Flows that may send. A sender's `ready` says whether it is in; closed flows are skipped when
    // their turn comes.
    ready: RoundRobin,
    receivers: FlowMap<Receiver>,
    pacer: PullPacer,
    // Flows with waiting pulls; complete ones are skipped when their turn comes.
    turns: RoundRobin,
    /// Number of waiting pulls of all flows.
    waiting: u64,
}

impl Ndp {
    /// Creates a host without flows.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let config = Config::new(params, env);
        let pacer = PullPacer::new(Config::gap(params, env));
        Ndp {
            config,
            senders: FlowMap::default(),
            ready: RoundRobin::default(),
            receivers: FlowMap::default(),
            pacer,
            turns: RoundRobin::default(),
            waiting: 0,
        }
    }

    // The sender.

    /// Updates the queue and the timer after a change of a flow: a flow that may send takes its
    /// turn.
    fn settle(ready: &mut RoundRobin, flow: FlowId, sender: &mut Sender, cx: &mut Cx<'_>) {
        if sender.may_send() && !sender.ready {
            sender.ready = true;
            ready.add(flow);
        }
        match sender.oldest() {
            Some(at) => cx.arm(flow, RTO, at.after(sender.rtt.rto())),
            None if sender.starves() => cx.arm(flow, RTO, cx.now.after(sender.rtt.rto())),
            None => cx.disarm(flow, RTO),
        }
    }

    /// Handles an ACK, a NACK, a PULL or a returned packet.
    fn on_answer(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        let (flow, config) = (packet.flow, &self.config);
        // Answers after the end are late duplicates.
        let Some(sender) = self.senders.get_mut(flow) else { return };
        let number = packet.offset / config.mss;
        match packet.kind {
            Kind::ACK => sender.on_ack(number, cx.now, &config.rtt),
            NACK => {
                sender.on_nack(number);
                cx.count(flow, NACKS, 1);
            }
            Kind::RETURNED => {
                sender.on_returned(number);
                cx.count(flow, RETURNED, 1);
            }
            _ => {}
        }
        if packet.kind != Kind::RETURNED {
            let answer: Answer = packet.get();
            sender.on_progress(answer.next.div_ceil(config.mss), answer.pulls.into());
        }
        if sender.is_done() {
            self.senders.remove(flow);
            cx.close(flow);
            return;
        }
        Self::settle(&mut self.ready, flow, sender, cx);
    }

    fn on_rto(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        let Some(sender) = self.senders.get_mut(flow) else { return };
        if sender.on_timeout(cx.now, &self.config.rtt) {
            cx.note_timeout(flow);
        }
        Self::settle(&mut self.ready, flow, sender, cx);
    }

    // The receiver.

    /// Handles data, trimmed or not.
    fn on_arrival(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        let flow = packet.flow;
        let trimmed = packet.kind == Kind::TRIMMED;
        cx.count(flow, TRIMS, trimmed.into());
        let before = cx.has_finished(flow);
        let next = if trimmed { None } else { Some(cx.deliver(flow, packet.offset, packet.payload).next) };
        if cx.has_finished(flow) {
            if !before && let Some(receiver) = self.receivers.remove(flow) {
                self.waiting -= u64::from(receiver.waiting);
            }
            let mut ack = Packet { offset: packet.offset, ..Packet::new(flow, Kind::ACK, self.config.control) };
            ack.set(Answer { next: cx.flow(flow).size_bytes, pulls: 0 });
            return cx.control(ack);
        }
        let receiver = self.receivers.or_insert_with(flow, || Receiver { next: 0, pulls: 0, waiting: 0, spray: Spray::default() });
        receiver.next = next.unwrap_or(receiver.next);
        let lacks = trimmed && packet.offset >= receiver.next;
        if self.waiting == 0 && self.pacer.is_free(cx.now) {
            receiver.pulls += 1;
            cx.count(flow, PULLS, 1);
            self.pacer.take(cx.now);
        } else {
            self.pacer.arm(PACED, cx);
            if receiver.waiting == 0 {
                self.turns.add(flow);
            }
            receiver.waiting += 1;
            self.waiting += 1;
        }
        let answer = Packet::new(flow, if lacks { NACK } else { Kind::ACK }, self.config.control);
        Self::send(receiver, Packet { offset: packet.offset, ..answer }, cx);
    }

    /// Sends the next pull.
    fn on_paced(&mut self, cx: &mut Cx<'_>) {
        while let Some(flow) = self.turns.take() {
            let Some(receiver) = self.receivers.get_mut(flow) else { continue };
            receiver.waiting -= 1;
            self.waiting -= 1;
            receiver.pulls += 1;
            cx.count(flow, PULLS, 1);
            if receiver.waiting > 0 {
                self.turns.add(flow);
            }
            self.pacer.take(cx.now);
            if self.waiting > 0 {
                self.pacer.arm(PACED, cx);
            }
            return Self::send(receiver, Packet::new(flow, PULL, self.config.control), cx);
        }
    }

    /// Sends an ACK, a NACK or a PULL over the next path.
    fn send(receiver: &mut Receiver, mut packet: Packet, cx: &mut Cx<'_>) {
        packet.path_tag = receiver.spray.next(cx.paths(packet.flow), cx.rng);
        packet.set(Answer { next: receiver.next, pulls: receiver.pulls });
        cx.control(packet);
    }
}

impl Transport for Ndp {
    fn on_flow(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        let mut sender = Sender::new(cx.flow(flow).size_bytes, &self.config);
        Self::settle(&mut self.ready, flow, &mut sender, cx);
        self.senders.insert(flow, sender);
    }

    fn on_packet(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        match packet.kind {
            Kind::DATA | Kind::TRIMMED => self.on_arrival(packet, cx),
            Kind::ACK | NACK | PULL | Kind::RETURNED => self.on_answer(packet, cx),
            // No other kind is sent.
            _ => {}
        }
    }

    fn on_timer(&mut self, key: TimerKey, cx: &mut Cx<'_>) {
        if key.kind == PACED { self.on_paced(cx) } else { self.on_rto(key.flow, cx) }
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        while let Some(flow) = self.ready.take() {
            let Some(sender) = self.senders.get_mut(flow) else { continue };
            sender.ready = false;
            let paths = cx.paths(flow);
            let Some(sent) = sender.take(cx.now, paths, cx.rng) else { continue };
            let mut data = Packet::data(flow, sent.number * self.config.mss, sent.payload, self.config.header);
            data.path_tag = sent.path_tag;
            if sent.again {
                data.flags |= Packet::RETX;
            }
            if sent.unasked {
                cx.count(flow, FIRST_WINDOW, sent.payload.into());
            }
            Self::settle(&mut self.ready, flow, sender, cx);
            return Some(data);
        }
        None
    }

    fn turns(&mut self) -> Option<&mut RoundRobin> {
        Some(&mut self.ready)
    }

    fn next_of(&self, turn: FlowId) -> Option<(FlowId, Range<u64>)> {
        let sender = self.senders.get(turn).filter(|sender| sender.may_send())?;
        Some((turn, sender.next_bytes()))
    }

    fn remove_sender(&mut self, flow: FlowId) -> bool {
        self.senders.remove(flow).is_some()
    }

    fn sample(&self, flow: FlowId) -> Option<Sample> {
        let sender = self.senders.get(flow)?;
        let in_flight_bytes = sender.in_flight_bytes();
        // The window is the bytes in flight and those that may follow at once.
        let cwnd_bytes = in_flight_bytes + sender.permitted() * self.config.mss;
        Some(Sample { cwnd_bytes, ssthresh_bytes: 0, srtt: sender.rtt.srtt(), rate: Rate(0), in_flight_bytes })
    }

    fn timers(&self) -> Timers {
        let rto = Timeout::new("min_rto", self.config.rtt.min_rto);
        Timers { handshake: false, first: rto, least: rto, fixed: true }
    }
}

#[cfg(test)]
mod tests;

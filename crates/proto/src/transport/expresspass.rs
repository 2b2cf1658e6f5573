//! ExpressPass: the receiver of a flow sends credits, which the network shapes and drops, and the
//! sender answers each credit with one data packet.
//!
//! Source: I. Cho et al., "Credit-Scheduled Delay-Bounded Congestion Control for Datacenters", SIGCOMM 2017; the ns-2 code of its authors
//! (github.com/kaist-ina/ns2-xpass, xpass/xpass.cc and scripts/large-scale-fattree.tcl) for states and timers.
//!
//! Model: only the sender knows the size of a flow. Ports must shape credits (`credit`), and data
//! must return over the cables of its credits.
//!
//! | rule | from |
//! |---|---|
//! | a flow begins with a CREDIT_REQUEST, repeated after `retx` until a credit arrives | ns2-xpass |
//! | the receiver paces credits at a rate that follows the share of lost credits, once per round trip | section 3.2, Algorithm 1 |
//! | the sender answers a credit with the next segment, which carries the credit's number and time | section 3.1 |
//! | when no data is left, the sender sends a CREDIT_STOP; credits that still arrive are wasted | section 3.1 |
//! | the receiver answers data after a gap with a NACK of the first missing byte, repeated after `retx`; the sender goes back to it | ns2-xpass |
//!
//! Assumed:
//! - The receiver answers a CREDIT_STOP with an ACK if all bytes have arrived, which closes the
//!   flow, otherwise with a NACK. The CREDIT_STOP is repeated after `retx` until then. In the ns-2
//!   code a sender closes two round trips after a CREDIT_STOP if no more credits arrive.
//! - A CREDIT_STOP follows the last segment (section 3.1). The ns-2 code also stops the credits
//!   when those of a round trip are as many as the packets that are left, and requests more if they
//!   do not suffice.
//! - A CREDIT_STOP is queued with data, since it would otherwise overtake the last packets.
//! - A receiver that receives no packet of a flow for `idle` stops its credits, and a sender that
//!   receives no credit for `idle` sends its request again.
//! - Segments wait for the NIC in the order of their credits.

use crate::contract::{Cx, Env, Timeout, Timers, Transport};
use crate::flow::Sample;
use crate::kit::credits::{self, CreditConfig as Pacing, Credits, Params as Pace};
use crate::packet::{Kind, Packet};
use base::params::{Auto, Problem};
use base::registry::{Counter, Meta, Needs};
use base::{Dur, FlowId, FlowMap, Rate, Time, TimerKey};
use std::collections::VecDeque;

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "ExpressPass: receivers send credits, which the network shapes, and senders answer each with one packet",
    source: "Cho et al., SIGCOMM 2017; ns2-xpass",
    needs: Needs { qdisc: &["credit"], reverse_path: true, ..Needs::NONE },
    kinds: &["request", "nack"],
    counters: &[
        Counter { name: "credits", unit: "packets", about: "credits received by the sender" },
        Counter { name: "wasted", unit: "packets", about: "credits that arrived when the sender had nothing to send" },
    ],
    knows: &["size"],
    host: "ns-2: all packets wait at the NIC in a queue like those of the switches; credits keep it short",
    ..Meta::PLAIN
};

const REQUEST: Kind = Kind(Kind::OWN);
/// CREDIT_STOP: queued with data, like a FIN.
const STOP: Kind = Kind::FIN;
const NACK: Kind = Kind(Kind::OWN + 1);

/// Indices of the counters.
const CREDITS: usize = 0;
const WASTED: usize = 1;

base::params! {
    /// Parameters of ExpressPass.
    pub struct Params {
        ..pace: Pace {}
        /// Time until a CREDIT_REQUEST, CREDIT_STOP or NACK is repeated; `auto`: 100 us, at least
        /// two unloaded round trips of the longest path.
        retx: Auto<Dur> = "auto" in Auto::Set(Dur::from_ns(100))..=Auto::Set(Dur::from_secs(60)), "ns2-xpass large-scale-fattree.tcl: 100 us at 52 us";
        /// A flow of fewer packets starts at `alpha` times its number of packets divided by this
        /// number; 0: every flow starts at `alpha`.
        alpha_packets: u32 = "0" in 0..=100_000, "not in the paper; ns2-xpass: 40";
        /// Time without packets of a flow after which a receiver stops its credits, and without
        /// credits after which a sender sends its request again; `auto`: 10 ms, at least three
        /// unloaded round trips of the longest path.
        idle: Auto<Dur> = "auto" in Auto::Set(Dur::from_us(1))..=Auto::Set(Dur::from_secs(60)), "flowloom";
    }
}

/// Returns the problems that depend on the network, and contradictions between parameters.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    let mut problems = credits::check(&params.pace);
    for (key, time) in [("idle", params.idle), ("retx", params.retx)] {
        if let Auto::Set(time) = time {
            problems.extend(env.too_short(key, time, "write a longer time or `auto`"));
        }
    }
    problems
}

base::header! {
    /// The header of a CREDIT_REQUEST.
    pub struct Request {
        /// Bytes that the sender still has to send.
        left: u64,
    }
}

base::header! {
    /// The header of a credit, and of a data packet that answers the credit.
    pub struct Number {
        /// The number of the credit.
        number: u32,
        /// When the credit left its host, in picoseconds; only in data.
        sent_ps: u64,
    }
}

/// Timer of a sender: repeats a CREDIT_REQUEST or CREDIT_STOP, or ends a wait for credits.
const RETX: u8 = 0;
/// Timers of a receiver: the next credit, and the next NACK.
const PACED: u8 = 1;
const MISSING: u8 = 2;

/// The configuration of a host.
#[derive(Clone, Debug)]
struct Config {
    pacing: Pacing,
    retx: Dur,
    /// A flow with fewer bytes left starts at a part of the first rate.
    alpha_bytes: u64,
    idle: Dur,
    mss: u64,
    header: u16,
}

/// What a sender waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Its first credit.
    Asking,
    /// Credits.
    Sending,
    /// The answer to its CREDIT_STOP.
    Ending,
}

/// A flow at its sender.
#[derive(Clone, Debug)]
struct Sender {
    size: u64,
    /// The next byte to be sent.
    next: u64,
    /// No byte from here on was sent.
    most: u64,
    /// All bytes below are known to have arrived.
    acked: u64,
    /// Segments of the flow that wait for the NIC.
    waiting: u64,
    phase: Phase,
}

/// A flow at its receiver.
#[derive(Clone, Debug)]
struct Receiver {
    credits: Credits,
    /// All bytes below have arrived.
    next: u64,
    /// When the last packet of the flow arrived.
    last_arrival: Time,
}

/// An entry of the queue to the NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// A segment that answers this credit.
    Segment(FlowId, Number),
    /// A CREDIT_STOP.
    Stop(FlowId),
}

/// The machine of one host.
pub struct ExpressPass {
    config: Config,
    senders: FlowMap<Sender>,
    receivers: FlowMap<Receiver>,
    turns: VecDeque<Turn>,
}

impl ExpressPass {
    /// Creates a host without flows.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let config = Config {
            pacing: Pacing::new(&params.pace, env),
            retx: env.auto("retx", params.retx, Dur::from_us(100).max(env.max_rtt * 2)),
            alpha_bytes: u64::from(params.alpha_packets) * u64::from(env.mss()),
            idle: env.auto("idle", params.idle, env.timeout(Dur::from_ms(10))),
            mss: env.mss().into(),
            header: env.header_bytes,
        };
        ExpressPass { config, senders: FlowMap::default(), receivers: FlowMap::default(), turns: VecDeque::new() }
    }

    fn control(&self, flow: FlowId, kind: Kind) -> Packet {
        Packet::new(flow, kind, self.config.header)
    }

    // The sender.

    fn ask(&self, flow: FlowId, cx: &mut Cx<'_>) {
        let mut request = self.control(flow, REQUEST);
        request.set(Request { left: self.senders.get(flow).map_or(0, |sender| sender.size - sender.next) });
        cx.control(request);
        cx.arm(flow, RETX, cx.now.after(self.config.retx));
    }

    fn on_credit(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        let flow = packet.flow;
        // A credit of a closed flow is late.
        let Some(sender) = self.senders.get_mut(flow) else { return };
        cx.count(flow, CREDITS, 1);
        sender.acked = sender.acked.max(packet.offset);
        if sender.phase == Phase::Asking {
            sender.phase = Phase::Sending;
        }
        if sender.phase == Phase::Sending {
            cx.arm(flow, RETX, cx.now.after(self.config.idle));
        }
        if sender.next + sender.waiting * self.config.mss >= sender.size {
            return cx.count(flow, WASTED, 1);
        }
        sender.waiting += 1;
        let number = Number { sent_ps: packet.sent_at.0, ..packet.get() };
        self.turns.push_back(Turn::Segment(flow, number));
    }

    /// Handles a NACK: the receiver lacks the byte at the packet's offset.
    fn on_nack(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        let Some(sender) = self.senders.get_mut(packet.flow) else { return };
        sender.acked = sender.acked.max(packet.offset);
        sender.next = sender.next.min(packet.offset).max(sender.acked);
        if sender.phase == Phase::Ending && sender.next < sender.size {
            sender.phase = Phase::Asking;
            self.ask(packet.flow, cx);
        }
    }

    fn on_ack(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        let flow = packet.flow;
        if self.senders.get(flow).is_some_and(|sender| packet.offset == sender.size) {
            self.senders.remove(flow);
            cx.close(flow);
        }
    }

    fn on_retx(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        let Some(sender) = self.senders.get_mut(flow) else { return };
        cx.note_timeout(flow);
        if sender.phase == Phase::Ending {
            self.turns.push_back(Turn::Stop(flow));
            return;
        }
        sender.phase = Phase::Asking;
        self.ask(flow, cx);
    }

    /// Returns the segment for a credit, if data is left to send.
    fn segment(&mut self, flow: FlowId, number: Number, cx: &mut Cx<'_>) -> Option<Packet> {
        let sender = self.senders.get_mut(flow)?;
        sender.waiting -= 1;
        if sender.next == sender.size {
            cx.count(flow, WASTED, 1);
            return None;
        }
        let payload = (sender.size - sender.next).min(self.config.mss);
        let mut data = Packet::data(flow, sender.next, payload as u16, self.config.header);
        data.set(number);
        if sender.next < sender.most {
            data.flags |= Packet::RETX;
        }
        sender.next += payload;
        sender.most = sender.most.max(sender.next);
        if sender.next == sender.size {
            sender.phase = Phase::Ending;
            self.turns.push_front(Turn::Stop(flow));
        }
        Some(data)
    }

    fn stop(&mut self, flow: FlowId, cx: &mut Cx<'_>) -> Option<Packet> {
        let sender = self.senders.get(flow)?;
        if sender.phase != Phase::Ending {
            return None;
        }
        cx.arm(flow, RETX, cx.now.after(self.config.retx));
        Some(Packet::new(flow, STOP, self.config.header))
    }

    // The receiver.

    fn on_request(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        let flow = packet.flow;
        if cx.has_finished(flow) {
            return self.confirm(flow, cx);
        }
        let (now, config) = (cx.now, &self.config);
        let new = || {
            let left = packet.get::<Request>().left;
            // ns2-xpass, recv_credit_request: `alpha_ * sendbuffer_ / 40.0`.
            let share = if left < config.alpha_bytes { left.max(1) as f64 / config.alpha_bytes as f64 } else { 1.0 };
            Receiver { credits: Credits::new(&config.pacing, share, now), next: 0, last_arrival: now }
        };
        let receiver = self.receivers.or_insert_with(flow, new);
        receiver.last_arrival = now;
        if !cx.is_armed(flow, PACED) {
            cx.arm(flow, PACED, now);
        }
    }

    fn on_data(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        let (flow, answer) = (packet.flow, packet.get::<Number>());
        let delivery = cx.deliver(flow, packet.offset, packet.payload);
        let Some(receiver) = self.receivers.get_mut(flow) else { return };
        receiver.credits.on_answer(answer.number, Time(answer.sent_ps), cx.now);
        (receiver.next, receiver.last_arrival) = (delivery.next, cx.now);
        let missing = delivery.next < packet.offset + u64::from(packet.payload);
        if !missing {
            cx.disarm(flow, MISSING);
        } else if !cx.is_armed(flow, MISSING) {
            self.complain(flow, cx);
        }
    }

    /// Sends a NACK of the first missing byte.
    fn complain(&self, flow: FlowId, cx: &mut Cx<'_>) {
        let next = self.receivers.get(flow).map_or(0, |receiver| receiver.next);
        cx.control(Packet { offset: next, ..self.control(flow, NACK) });
        cx.arm(flow, MISSING, cx.now.after(self.config.retx));
    }

    /// Handles a CREDIT_STOP: the sender has sent all its data.
    fn on_stop(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        cx.disarm(flow, PACED);
        cx.disarm(flow, MISSING);
        if cx.has_finished(flow) {
            self.receivers.remove(flow);
            return self.confirm(flow, cx);
        }
        let next = self.receivers.get(flow).map_or(0, |receiver| receiver.next);
        cx.control(Packet { offset: next, ..self.control(flow, NACK) });
    }

    fn confirm(&self, flow: FlowId, cx: &mut Cx<'_>) {
        let all = cx.flow(flow).size_bytes;
        cx.control(Packet { offset: all, ..self.control(flow, Kind::ACK) });
    }

    fn on_paced(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        let (config, now) = (&self.config, cx.now);
        let Some(receiver) = self.receivers.get_mut(flow) else { return };
        if now.since(receiver.last_arrival) >= config.idle {
            return;
        }
        let credit = receiver.credits.take(&config.pacing, now, cx.rng);
        let mut packet = Packet { offset: receiver.next, ..Packet::new(flow, Kind::CREDIT, credit.wire_len) };
        packet.set(Number { number: credit.number, sent_ps: 0 });
        cx.control(packet);
        cx.arm(flow, PACED, now.after(credit.gap));
    }
}

impl Transport for ExpressPass {
    fn on_flow(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        let size = cx.flow(flow).size_bytes;
        self.senders.insert(flow, Sender { size, next: 0, most: 0, acked: 0, waiting: 0, phase: Phase::Asking });
        self.ask(flow, cx);
    }

    fn on_packet(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        match packet.kind {
            Kind::DATA => self.on_data(packet, cx),
            Kind::CREDIT => self.on_credit(packet, cx),
            REQUEST => self.on_request(packet, cx),
            STOP => self.on_stop(packet.flow, cx),
            NACK => self.on_nack(packet, cx),
            Kind::ACK => self.on_ack(packet, cx),
            // No other kind is sent.
            _ => {}
        }
    }

    fn on_timer(&mut self, key: TimerKey, cx: &mut Cx<'_>) {
        match key.kind {
            RETX => self.on_retx(key.flow, cx),
            PACED => self.on_paced(key.flow, cx),
            _ => self.complain(key.flow, cx),
        }
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        while let Some(turn) = self.turns.pop_front() {
            let packet = match turn {
                Turn::Segment(flow, number) => self.segment(flow, number, cx),
                Turn::Stop(flow) => self.stop(flow, cx),
            };
            if packet.is_some() {
                return packet;
            }
        }
        None
    }

    fn remove_sender(&mut self, flow: FlowId) -> bool {
        self.senders.remove(flow).is_some()
    }

    fn sample(&self, flow: FlowId) -> Option<Sample> {
        let sender = self.senders.get(flow)?;
        let in_flight_bytes = sender.next.saturating_sub(sender.acked);
        // The window is the bytes that credits have requested.
        let cwnd_bytes = in_flight_bytes + sender.waiting * self.config.mss;
        Some(Sample { cwnd_bytes, ssthresh_bytes: 0, srtt: Dur::ZERO, rate: Rate(0), in_flight_bytes })
    }

    fn timers(&self) -> Timers {
        let retx = Timeout::new("retx", self.config.retx);
        // The round trip before the first credit is part of the protocol and cannot be left out.
        Timers { handshake: false, first: retx, least: retx, fixed: true }
    }
}

#[cfg(test)]
mod tests;

//! One machine for every transport of RDMA over Ethernet whose rate a controller sets: [`Roce`].
//!
//! Source: InfiniBand Architecture Specification, volume 1, section 9.7 (reliable connections: ACKs, NACKs, go-back-N) and 9.9.2 (timeouts);
//! Mittal et al., "Revisiting Network Support for RDMA", SIGCOMM 2018, section 3 (IRN); `rdma-hw.cc` of HPCC's simulator
//! (alibaba-edu/High-Precision-Congestion-Control) for pacing and receivers. Congestion notification packets: Zhu et al., "Congestion Control
//! for Large-Scale RDMA Deployments", SIGCOMM 2015, section 3.1.
//!
//! Model: a flow is a message. It has a queue pair of its own, which is connected before the message
//! and starts with the controller's first rate, or with `queue_pairs = "peer"` shares one with the
//! other messages to the same host. A queue pair never fails: the timeout is fixed, and retries are
//! not counted.
//!
//! Assumed:
//! - The next packet of a queue pair leaves one gap, its predecessor's length at the present rate,
//!   after its predecessor. Queue pairs that may send take turns.
//! - A receiver with go-back-N answers a packet that it already has with an ACK, so that a message
//!   whose last ACK was lost ends. It asks again for the same packet no sooner than `nack_interval`.
//! - The last packet of a message is acknowledged whatever `ack_every` says.
//! - An ACK or NACK has the time at which the answered packet was handed to the NIC, and that
//!   packet's telemetry. It is as long as a bare header, with telemetry if the packet had any.
//! - The retransmission timer starts with the first packet in flight, and restarts with every
//!   acknowledgment of new bytes.
//! - Congestion notifications are as long as a bare header, and leave before data, as ACKs do.
//! - A shared queue pair sends its next message when the previous one is acknowledged as a whole.
//!   While it is idle its timers go on.
//! - IRN: a NACK names the packet that it answers, so that the sender learns which packets have
//!   arrived. Recovery begins with a NACK or a timeout, and a timeout resends the first missing
//!   packet and those below the last one that has arrived.

mod control;
mod options;
mod sender;
#[cfg(test)]
mod tests;

use super::int::IntStack;
use super::order::RoundRobin;
use crate::contract::{Bursts, Cx, Timeout, Timers, Transport};
use crate::flow::Sample;
use crate::packet::{Kind, Packet};
use base::{Dur, FlowId, FlowMap, HostId, Time, TimerKey};
pub use control::{Acked, RateControl};
pub use options::{Bound, Options, QueuePairs, Recovery, RoceConfig};
use sender::MessageSender;
use std::collections::{BTreeMap, VecDeque};

/// The text of this file, whose header holds for every transport on this machine.
pub const TEXT: &str = include_str!("mod.rs");

/// Names of the machine's own kinds of packets, for the `META` of its entries.
pub const KINDS: &[&str] = &["nack", "cnp"];
/// Negative acknowledgment: a packet is missing.
pub const NACK: Kind = Kind(Kind::OWN);
/// Congestion notification.
pub const CNP: Kind = Kind(Kind::OWN + 1);

/// Timer: the next packet is due.
const NEXT: u8 = 0;
/// Timer: retransmission.
const RTO: u8 = 1;
/// Timer: the controller's deadline.
const CONTROL: u8 = 2;

/// IRN's N: with fewer packets in flight the timeout is `rto_low`.
const FEW: u64 = 3;

/// The word of an answer that describes the answered packet: when it was handed to the NIC, in ps
/// modulo 2^40 (1.1 s), and above that, in a NACK, how many packets it lies beyond the first missing
/// one. The other word is the handle of the telemetry.
const ECHO: usize = 1;
const ECHO_BITS: u32 = 40;
const ECHO_TIME: u64 = (1 << ECHO_BITS) - 1;

/// A message at its receiver.
#[derive(Clone, Copy, Debug, Default)]
struct Receiver {
    /// The first byte that has not arrived.
    next: u64,
    /// In-order packets since the last ACK.
    unacked: u32,
    /// The byte that the last NACK asked for, and when it may be asked for again.
    nacked: Option<(u64, Time)>,
    /// When the next congestion notification may leave.
    notify: Time,
}

/// The RoCE machine of one host.
pub struct Roce<C: RateControl> {
    config: RoceConfig,
    control: C,
    /// Least time between two congestion notifications of a queue pair.
    cnp_interval: Dur,
    senders: FlowMap<MessageSender<C::State>>,
    receivers: FlowMap<Receiver>,
    ready: RoundRobin,
    /// The shared queue pairs by peer.
    pairs: BTreeMap<HostId, Pair<C::State>>,
}

/// A queue pair that the messages to one host share.
struct Pair<S> {
    /// The controller's state while no message is being sent.
    idle: Option<S>,
    /// The messages that wait for their turn.
    waiting: VecDeque<FlowId>,
}

impl<C: RateControl> Roce<C> {
    /// Creates a host without messages.
    pub fn with(config: RoceConfig, control: C) -> Self {
        Roce {
            config,
            control,
            cnp_interval: Dur::ZERO,
            senders: FlowMap::default(),
            receivers: FlowMap::default(),
            ready: RoundRobin::default(),
            pairs: BTreeMap::new(),
        }
    }
    /// Sets the least time between two congestion notifications of a queue pair.
    pub fn notify_every(mut self, interval: Dur) -> Self {
        self.cnp_interval = interval;
        self
    }

    /// Queues a message if it may send now. If its next packet is due later, the timer does so.
    #[inline]
    fn wake(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        let Some(sender) = self.senders.get_mut(flow) else { return };
        let rate = self.control.rate(&sender.control);
        let due = sender.due(rate);
        let waits = sender.ready || (due > cx.now && due == sender.armed);
        if waits || sender.next_piece(&self.config, self.config.window(rate)).is_none() {
            return;
        }
        if due > cx.now {
            sender.armed = due;
            return cx.arm(flow, NEXT, due);
        }
        sender.ready = true;
        self.ready.add(flow);
    }

    /// Starts a message with the state of its queue pair.
    fn start(&mut self, flow: FlowId, state: C::State, cx: &mut Cx<'_>) {
        let sender = MessageSender::new(cx.flow(flow).size_bytes, state);
        Self::set_deadline(&self.control, flow, &sender, cx);
        self.senders.insert(flow, sender);
        self.wake(flow, cx);
    }

    /// Hands the queue pair of a message that has ended to the next one.
    fn release(&mut self, peer: HostId, mut state: C::State, cx: &mut Cx<'_>) {
        let Some(pair) = self.pairs.get_mut(&peer) else { return };
        match pair.waiting.pop_front() {
            Some(next) => {
                self.control.restart(&mut state);
                self.start(next, state, cx);
            }
            None => pair.idle = Some(state),
        }
    }

    /// Arms the controller's timer.
    #[inline]
    fn set_deadline(control: &C, flow: FlowId, sender: &MessageSender<C::State>, cx: &mut Cx<'_>) {
        let at = control.deadline(&sender.control);
        if at < Time::MAX {
            cx.arm(flow, CONTROL, at);
        }
    }

    fn start_timer(config: &RoceConfig, flow: FlowId, sender: &mut MessageSender<C::State>, cx: &mut Cx<'_>) {
        let few = sender.flight() < FEW * config.mss;
        cx.arm(flow, RTO, cx.now.after(if few { config.rto_low } else { config.rto }));
        sender.timer = true;
    }

    fn on_data(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        let (flow, config) = (packet.flow, self.config);
        let end = packet.offset + u64::from(packet.payload);
        if cx.has_finished(flow) {
            // The last ACK was lost.
            let size = cx.flow(flow).size_bytes;
            return self.answer(Kind::ACK, size, packet, cx);
        }
        let mut receiver = self.receivers.get(flow).copied().unwrap_or_default();
        if C::NOTIFIES && packet.has(Packet::CE) && cx.now >= receiver.notify {
            // Zhu et al. section 3.1, NP: at most one notification per interval.
            receiver.notify = cx.now.after(self.cnp_interval);
            cx.control(Packet::new(flow, CNP, config.header));
        }
        let in_order = packet.offset == receiver.next;
        if in_order || (config.irn && packet.offset > receiver.next) {
            let delivery = cx.deliver(flow, packet.offset, packet.payload);
            if in_order {
                receiver.next = delivery.next;
                receiver.unacked += 1;
            }
        }
        let done = cx.has_finished(flow);
        let kind = if in_order {
            (receiver.unacked >= config.ack_every || done).then_some(Kind::ACK)
        } else if end <= receiver.next {
            Some(Kind::ACK)
        } else {
            let again = |(next, after): (u64, Time)| next != receiver.next || cx.now >= after;
            let asks = config.irn || receiver.nacked.is_none_or(again);
            if asks {
                receiver.nacked = Some((receiver.next, cx.now.after(config.nack_interval)));
            }
            asks.then_some(NACK)
        };
        if kind == Some(Kind::ACK) {
            receiver.unacked = 0;
        }
        if done {
            self.receivers.remove(flow);
        } else {
            self.receivers.insert(flow, receiver);
        }
        if let Some(kind) = kind {
            self.answer(kind, receiver.next, packet, cx);
        }
    }

    /// Answers a packet: all bytes below `next` have arrived.
    fn answer(&self, kind: Kind, next: u64, packet: &Packet, cx: &mut Cx<'_>) {
        let mut answer = Packet::new(packet.flow, kind, self.config.header);
        answer.offset = next;
        if packet.has(Packet::EXT) {
            answer.set_ext(packet.get_ext::<IntStack>(cx.ext), cx.ext);
        }
        let beyond = packet.offset.saturating_sub(next) / self.config.mss;
        answer.words[ECHO] = packet.sent_at.0 & ECHO_TIME | beyond << ECHO_BITS;
        cx.control(answer);
    }

    fn on_answer(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        let (flow, config) = (packet.flow, self.config);
        // An answer of a closed message is a late duplicate.
        let Some(sender) = self.senders.get_mut(flow) else { return };
        let echoed = packet.words[ECHO];
        let rtt = Dur(cx.now.0.wrapping_sub(echoed) & ECHO_TIME);
        sender.rtt = rtt;
        let advanced = sender.on_acked(packet.offset);
        if packet.kind == NACK && sender.flight() > 0 {
            let begins = if config.irn {
                sender.on_selective(packet.offset + (echoed >> ECHO_BITS) * config.mss, config.mss)
            } else {
                sender.go_back();
                true
            };
            if begins {
                cx.note_fast_retransmit(flow);
            }
        }
        if sender.is_done() {
            let sender = self.senders.remove(flow).expect("seen above");
            cx.close(flow);
            return self.release(cx.flow(flow).dst, sender.control, cx);
        }
        let stack = if packet.has(Packet::EXT) { packet.get_ext(cx.ext) } else { IntStack::default() };
        let acked = Acked { now: cx.now, next: packet.offset, snd_nxt: sender.nxt(), rtt, stack };
        self.control.on_ack(&mut sender.control, &acked);
        if advanced && sender.flight() > 0 {
            Self::start_timer(&config, flow, sender, cx);
        } else if advanced {
            cx.disarm(flow, RTO);
            sender.timer = false;
        }
        self.wake(flow, cx);
    }
}

impl<C: RateControl> Transport for Roce<C> {
    fn on_flow(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        if !self.config.shared {
            return self.start(flow, self.control.open(cx.now), cx);
        }
        let new = || Pair { idle: Some(self.control.open(cx.now)), waiting: VecDeque::new() };
        let pair = self.pairs.entry(cx.flow(flow).dst).or_insert_with(new);
        let Some(mut state) = pair.idle.take() else { return pair.waiting.push_back(flow) };
        while self.control.deadline(&state) <= cx.now {
            let due = self.control.deadline(&state);
            self.control.on_deadline(&mut state, due);
        }
        self.control.restart(&mut state);
        self.start(flow, state, cx);
    }

    fn on_packet(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        match packet.kind {
            Kind::DATA => self.on_data(packet, cx),
            Kind::ACK | NACK => self.on_answer(packet, cx),
            CNP => {
                if let Some(sender) = self.senders.get_mut(packet.flow) {
                    self.control.on_notification(&mut sender.control, cx.now);
                    Self::set_deadline(&self.control, packet.flow, sender, cx);
                }
            }
            // No other kind is sent.
            _ => {}
        }
    }

    fn on_timer(&mut self, key: TimerKey, cx: &mut Cx<'_>) {
        let flow = key.flow;
        let Some(sender) = self.senders.get_mut(flow) else { return };
        match key.kind {
            CONTROL => {
                self.control.on_deadline(&mut sender.control, cx.now);
                Self::set_deadline(&self.control, flow, sender, cx);
            }
            RTO => {
                sender.timer = false;
                cx.note_timeout(flow);
                if self.config.irn {
                    sender.on_timeout();
                } else {
                    sender.go_back();
                }
            }
            _ => {}
        }
        self.wake(flow, cx);
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        loop {
            let (flow, config) = (self.ready.take()?, self.config);
            let Some(sender) = self.senders.get_mut(flow) else { continue };
            sender.ready = false;
            let rate = self.control.rate(&sender.control);
            let Some(piece) = sender.next_piece(&config, config.window(rate)) else { continue };
            let due = sender.due(rate);
            if due > cx.now {
                sender.armed = due;
                cx.arm(flow, NEXT, due);
                continue;
            }
            let mut packet = Packet::data(flow, piece.offset, piece.len, config.header);
            packet.flags = (u16::from(C::NOTIFIES) * Packet::ECT) | (u16::from(piece.resent) * Packet::RETX);
            if C::INT {
                packet.set_ext(IntStack::default(), cx.ext);
            }
            sender.on_sent(piece, packet.wire_len.into(), cx.now);
            self.control.on_sent(&mut sender.control, packet.wire_len.into(), cx.now);
            if !sender.timer {
                Self::start_timer(&config, flow, sender, cx);
            }
            self.wake(flow, cx);
            return Some(packet);
        }
    }

    fn remove_sender(&mut self, flow: FlowId) -> bool {
        let waits = self.pairs.values_mut().any(|pair| {
            let before = pair.waiting.len();
            pair.waiting.retain(|waiting| *waiting != flow);
            pair.waiting.len() < before
        });
        self.senders.remove(flow).is_some() || waits
    }

    fn give_up(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        let state = self.senders.remove(flow).map(|sender| sender.control);
        if state.is_some() || self.remove_sender(flow) {
            cx.terminate(flow);
        }
        if let Some(state) = state {
            self.release(cx.flow(flow).dst, state, cx);
        }
    }

    fn sample(&self, flow: FlowId) -> Option<Sample> {
        self.senders.get(flow).map(|sender| {
            let rate = self.control.rate(&sender.control);
            let window = self.config.window(rate);
            Sample {
                cwnd_bytes: if window == u64::MAX { 0 } else { window },
                ssthresh_bytes: 0,
                srtt: sender.rtt,
                rate,
                in_flight_bytes: sender.flight(),
            }
        })
    }

    fn timers(&self) -> Timers {
        let RoceConfig { rto, rto_low, irn, .. } = self.config;
        let (first, low) = (Timeout::new("rto", rto), Timeout::new("rto_low", rto_low));
        Timers { handshake: false, first, least: if irn { low } else { first }, fixed: true }
    }

    fn bursts(&self) -> Bursts {
        // What the first round trip carries at the NIC's rate.
        let first = self.config.line.bytes_in(self.config.base_rtt);
        Bursts { first_bytes: first.min(self.config.window(self.config.line)), granted_bytes: 0 }
    }
}

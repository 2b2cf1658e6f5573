//! One machine for every transport of RDMA over Ethernet whose rate a controller sets: [`Roce`].
//!
//! Source: InfiniBand Architecture Specification, volume 1, section 9.7 (reliable connections: ACKs, NACKs, go-back-N) and 9.9.2 (timeouts);
//! Mittal et al., "Revisiting Network Support for RDMA", SIGCOMM 2018, section 3 (IRN); `rdma-hw.cc` of HPCC's simulator
//! (alibaba-edu/High-Precision-Congestion-Control) for pacing and receivers. Congestion notification packets: Zhu et al., "Congestion Control
//! for Large-Scale RDMA Deployments", SIGCOMM 2015, section 3.1.
//!
//! Model: a flow is a message. It has a queue pair of its own, which is connected before the message
//! and starts with the controller's first rate, or shares a queue pair with other messages to the
//! same host: with `queue_pairs = "peer"` all of them, with `"port"` those that have its source port.
//! A shared queue pair has one rate, one bound of the bytes in flight and one sequence of bytes: its
//! messages follow one another without a gap, in the order in which they are opened, and one ACK may
//! complete several. A queue pair never fails: the timeout is fixed, and retries are not counted.
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
//! - While a shared queue pair is idle its timers go on.
//! - The packets of a shared queue pair take the paths of their own messages. If routers hash ports,
//!   messages with several ports take several paths, and may overtake each other.
//! - Messages of a shared queue pair arrive in their order, also with IRN: packets of a later message
//!   wait at the receiver (Mittal et al. section 5).
//! - When a message of a shared queue pair is given up, the queue pair goes on with positions that it
//!   has not used, and retransmits what other messages had in flight.
//! - IRN: a NACK names the packet that it answers, so that the sender learns which packets have
//!   arrived. Recovery begins with a NACK or a timeout, and a timeout resends the first missing
//!   packet and those below the last one that has arrived.
//! - A bound of the bytes in flight counts the wire, as rates and queues do: the payload in flight is that of full packets
//!   which take the bound with their headers. HPCC's simulator bounds payload by bytes of the wire (`window_unit = "payload"`); for HPCC
//!   this changes mean completion times by 1 %.

mod control;
mod options;
mod sender;
#[cfg(test)]
mod tests;

use super::int::IntStack;
use crate::contract::{Bursts, Cx, SharedSequence, Timeout, Timers, Transport};
use crate::flow::{Flow, Sample};
use crate::packet::{Kind, Packet};
use crate::turns::RoundRobin;
use base::{Dur, FlowId, FlowMap, HostId, Time, TimerKey};
pub use control::{Acked, RateControl};
pub use options::{Bound, Options, QueuePairs, Recovery, RoceConfig, WindowUnit};
use sender::QueuePair;
use std::collections::BTreeMap;
use std::ops::Range;

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
/// one, or beyond the first one of its message if that is later. The other word is the handle of the
/// telemetry.
const ECHO: usize = 1;
const ECHO_BITS: u32 = 40;
const ECHO_TIME: u64 = (1 << ECHO_BITS) - 1;

/// The word of a packet of a shared queue pair: twice the position of its first byte in the sequence,
/// plus 1 if the receiver need not wait for any byte before.
const POSITION: usize = 1;

/// A queue pair at its receiver. Positions are those of its sequence.
#[derive(Clone, Debug, Default)]
struct Receiver {
    /// The first byte that has not arrived.
    next: u64,
    /// In-order packets since the last ACK.
    unacked: u32,
    /// The byte that the last NACK asked for, and when it may be asked for again.
    nacked: Option<(u64, Time)>,
    /// When the next congestion notification may leave.
    notify: Time,
    /// IRN, shared queue pairs: the packets beyond `next`, by position.
    early: BTreeMap<u64, EarlyPacket>,
}

/// A packet that waits for earlier packets of its queue pair.
#[derive(Clone, Copy, Debug)]
struct EarlyPacket {
    flow: FlowId,
    offset: u64,
    len: u16,
}

/// The RoCE machine of one host. A queue pair has the id of the first flow that uses it, and its
/// timers are those of its oldest open flow.
pub struct Roce<C: RateControl> {
    config: RoceConfig,
    control: C,
    /// Least time between two congestion notifications of a queue pair.
    cnp_interval: Dur,
    senders: FlowMap<QueuePair<C::State>>,
    receivers: FlowMap<Receiver>,
    /// The shared queue pairs by source, destination and, if it matters, source port.
    shared: BTreeMap<(HostId, HostId, u16), FlowId>,
    /// Queue pairs that may send, in turn.
    ready: RoundRobin,
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
            shared: BTreeMap::new(),
            ready: RoundRobin::default(),
        }
    }
    /// Sets the least time between two congestion notifications of a queue pair.
    pub fn notify_every(mut self, interval: Dur) -> Self {
        self.cnp_interval = interval;
        self
    }

    /// Returns whether messages share queue pairs.
    #[inline]
    fn shares(&self) -> bool {
        self.config.queue_pairs != QueuePairs::Message
    }
    /// Returns the queue pair of a flow.
    #[inline]
    fn pair(&mut self, flow: FlowId, cx: &Cx<'_>) -> FlowId {
        if self.shares() { self.shared_pair(flow, cx) } else { flow }
    }
    #[inline(never)]
    fn shared_pair(&mut self, flow: FlowId, cx: &Cx<'_>) -> FlowId {
        let Flow { src, dst, src_port, .. } = *cx.flow(flow);
        let port = if self.config.queue_pairs == QueuePairs::Port { src_port } else { 0 };
        *self.shared.entry((src, dst, port)).or_insert(flow)
    }
    /// Returns the queue pair that sends an open flow.
    fn pair_of_open(&self, flow: FlowId) -> Option<(FlowId, &QueuePair<C::State>)> {
        if self.shares() {
            return self.senders.iter().find(|(_, sender)| sender.holds(flow));
        }
        Some((flow, self.senders.get(flow)?))
    }

    /// Queues a queue pair if it may send now. If its next packet is due later, the timer does so.
    #[inline]
    fn wake(&mut self, pair: FlowId, cx: &mut Cx<'_>) {
        let Some(sender) = self.senders.get_mut(pair) else { return };
        let rate = self.control.rate(&sender.control);
        let due = sender.due(rate);
        let waits = sender.ready || (due > cx.now && due == sender.armed);
        if waits || sender.next_position(self.config.window(rate)).is_none() {
            return;
        }
        if due > cx.now {
            let Some(oldest) = sender.first_open() else { return };
            sender.armed = due;
            return cx.arm(oldest, NEXT, due);
        }
        sender.ready = true;
        self.ready.add(pair);
    }

    /// Handles the controller's deadlines that have passed while a queue pair was idle.
    fn catch_up(control: &C, sender: &mut QueuePair<C::State>, now: Time) {
        while control.deadline(&sender.control) <= now {
            let due = control.deadline(&sender.control);
            control.on_deadline(&mut sender.control, due);
        }
    }

    /// Sets the timers of a queue pair whose oldest open flow has changed, except for the
    /// retransmission timer.
    #[inline]
    fn move_timers(control: &C, sender: &mut QueuePair<C::State>, cx: &mut Cx<'_>) {
        (sender.timer, sender.armed) = (false, Time::ZERO);
        if let Some(flow) = sender.first_open() {
            Self::set_deadline(control, flow, sender, cx);
        }
    }

    /// Arms the controller's timer.
    #[inline]
    fn set_deadline(control: &C, flow: FlowId, sender: &QueuePair<C::State>, cx: &mut Cx<'_>) {
        let at = control.deadline(&sender.control);
        if at < Time::MAX {
            cx.arm(flow, CONTROL, at);
        }
    }

    fn start_timer(config: &RoceConfig, flow: FlowId, sender: &mut QueuePair<C::State>, cx: &mut Cx<'_>) {
        let few = sender.flight() < FEW * config.mss;
        cx.arm(flow, RTO, cx.now.after(if few { config.rto_low } else { config.rto }));
        sender.timer = true;
    }

    fn on_data(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        let (flow, config, shares) = (packet.flow, self.config, self.shares());
        if !shares && cx.has_finished(flow) {
            // The last ACK was lost.
            let size = cx.flow(flow).size_bytes;
            return self.answer(Kind::ACK, size, packet, packet.offset, cx);
        }
        let pair = self.pair(flow, cx);
        let position = if shares { packet.words[POSITION] >> 1 } else { packet.offset };
        let end = position + u64::from(packet.payload);
        let receiver = self.receivers.or_insert_with(pair, Receiver::default);
        if C::NOTIFIES && packet.has(Packet::CE) && cx.now >= receiver.notify {
            // Zhu et al. section 3.1, NP: at most one notification per interval.
            receiver.notify = cx.now.after(self.cnp_interval);
            cx.control(Packet::new(flow, CNP, config.header));
        }
        if shares && packet.words[POSITION] & 1 == 1 && position > receiver.next {
            // A message was given up.
            (receiver.next, receiver.early) = (position, receiver.early.split_off(&position));
        }
        let in_order = position == receiver.next;
        if position > receiver.next && (!config.irn || shares && !receiver.early.contains_key(&position)) {
            // Go-back-N drops the packet; with IRN a shared queue pair keeps it.
            cx.note_undelivered(packet);
        }
        if shares {
            receiver.take_in_turn(packet, position, &config, cx);
        } else if in_order || (config.irn && position > receiver.next) {
            let delivery = cx.deliver(flow, packet.offset, packet.payload);
            if in_order {
                receiver.next = delivery.next;
            }
        }
        receiver.unacked += u32::from(in_order);
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
        let next = receiver.next;
        if done && !shares {
            self.receivers.remove(pair);
        }
        if let Some(kind) = kind {
            self.answer(kind, next, packet, position, cx);
        }
    }

    /// Answers a packet at a position: all bytes below `next` have arrived.
    fn answer(&self, kind: Kind, next: u64, packet: &Packet, position: u64, cx: &mut Cx<'_>) {
        let mut answer = Packet::new(packet.flow, kind, self.config.header);
        answer.offset = next;
        if packet.has(Packet::EXT) {
            answer.set_ext(packet.get_ext::<IntStack>(cx.ext), cx.ext);
        }
        let start = position.saturating_sub(packet.offset);
        let beyond = if kind == NACK { position.saturating_sub(next.max(start)) / self.config.mss } else { 0 };
        answer.words[ECHO] = packet.sent_at.0 & ECHO_TIME | beyond << ECHO_BITS;
        cx.control(answer);
    }

    fn on_answer(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        let (config, shares, pair) = (self.config, self.shares(), self.pair(packet.flow, cx));
        // An answer to a queue pair without open messages is a late duplicate.
        let Some(sender) = self.senders.get_mut(pair) else { return };
        let Some(oldest) = sender.first_open() else { return };
        let echoed = packet.words[ECHO];
        let rtt = Dur(cx.now.0.wrapping_sub(echoed) & ECHO_TIME);
        sender.rtt = rtt;
        let advanced = sender.on_acked(packet.offset);
        if packet.kind == NACK && sender.flight() > 0 {
            let begins = if config.irn {
                sender.on_selective(packet.flow, packet.offset, echoed >> ECHO_BITS, config.mss)
            } else {
                sender.go_back();
                true
            };
            if begins {
                cx.note_fast_retransmit(sender.first_missing().unwrap_or(oldest));
            }
        }
        if advanced && let Some(done) = sender.pop_done() {
            cx.close(done);
            if !shares {
                self.senders.remove(pair);
                return;
            }
            while let Some(done) = sender.pop_done() {
                cx.close(done);
            }
            Self::move_timers(&self.control, sender, cx);
        }
        let stack = if packet.has(Packet::EXT) { packet.get_ext(cx.ext) } else { IntStack::default() };
        let acked = Acked { now: cx.now, next: packet.offset, snd_nxt: sender.nxt(), rtt, stack };
        self.control.on_ack(&mut sender.control, &acked);
        if advanced && let Some(oldest) = sender.first_open() {
            if sender.flight() > 0 {
                Self::start_timer(&config, oldest, sender, cx);
            } else {
                cx.disarm(oldest, RTO);
                sender.timer = false;
            }
        }
        self.wake(pair, cx);
    }
}

impl Receiver {
    /// Takes in a packet of a shared queue pair: delivers it and what has waited for it, or with IRN
    /// keeps it until its turn.
    fn take_in_turn(&mut self, packet: &Packet, position: u64, config: &RoceConfig, cx: &mut Cx<'_>) {
        let Packet { flow, offset, payload: len, .. } = *packet;
        if position > self.next && config.irn {
            self.early.insert(position, EarlyPacket { flow, offset, len });
        }
        let mut in_turn = (position == self.next).then_some(EarlyPacket { flow, offset, len });
        while let Some(EarlyPacket { flow, offset, len }) = in_turn {
            cx.deliver(flow, offset, len);
            self.next += u64::from(len);
            in_turn = self.early.remove(&self.next);
        }
    }
}

impl<C: RateControl> Transport for Roce<C> {
    fn on_flow(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        let pair = self.pair(flow, cx);
        let sender = self.senders.or_insert_with(pair, || QueuePair::new(self.control.open(cx.now)));
        let idle = sender.first_open().is_none();
        sender.push(flow, cx.flow(flow).size_bytes);
        if idle {
            Self::catch_up(&self.control, sender, cx.now);
            self.control.restart(&mut sender.control);
            Self::move_timers(&self.control, sender, cx);
        }
        self.wake(pair, cx);
    }

    fn on_packet(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        match packet.kind {
            Kind::DATA => self.on_data(packet, cx),
            Kind::ACK | NACK => self.on_answer(packet, cx),
            CNP => {
                let pair = self.pair(packet.flow, cx);
                let Some(sender) = self.senders.get_mut(pair) else { return };
                let Some(oldest) = sender.first_open() else {
                    Self::catch_up(&self.control, sender, cx.now);
                    return self.control.on_notification(&mut sender.control, cx.now);
                };
                self.control.on_notification(&mut sender.control, cx.now);
                Self::set_deadline(&self.control, oldest, sender, cx);
            }
            // No other kind is sent.
            _ => {}
        }
    }

    fn on_timer(&mut self, key: TimerKey, cx: &mut Cx<'_>) {
        let pair = self.pair(key.flow, cx);
        let Some(sender) = self.senders.get_mut(pair) else { return };
        match key.kind {
            CONTROL => {
                self.control.on_deadline(&mut sender.control, cx.now);
                Self::set_deadline(&self.control, key.flow, sender, cx);
            }
            RTO => {
                sender.timer = false;
                cx.note_timeout(key.flow);
                if self.config.irn {
                    sender.on_timeout();
                } else {
                    sender.go_back();
                }
            }
            _ => {}
        }
        self.wake(pair, cx);
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        loop {
            let (pair, config, shares) = (self.ready.take()?, self.config, self.shares());
            let Some(sender) = self.senders.get_mut(pair) else { continue };
            sender.ready = false;
            let rate = self.control.rate(&sender.control);
            let Some(piece) = sender.next_piece(&config, config.window(rate)) else { continue };
            let Some(oldest) = sender.first_open() else { continue };
            let due = sender.due(rate);
            if due > cx.now {
                sender.armed = due;
                cx.arm(oldest, NEXT, due);
                continue;
            }
            let mut packet = Packet::data(piece.flow, piece.offset, piece.len, config.header);
            packet.flags = (u16::from(C::NOTIFIES) * Packet::ECT) | (u16::from(piece.resent) * Packet::RETX);
            if shares {
                packet.words[POSITION] = piece.position << 1 | u64::from(piece.first);
            }
            if C::INT {
                packet.set_ext(IntStack::default(), cx.ext);
            }
            sender.on_sent(piece, packet.wire_len.into(), cx.now);
            self.control.on_sent(&mut sender.control, packet.wire_len.into(), cx.now);
            if !sender.timer {
                Self::start_timer(&config, oldest, sender, cx);
            }
            self.wake(pair, cx);
            return Some(packet);
        }
    }

    fn turns(&mut self) -> Option<&mut RoundRobin> {
        Some(&mut self.ready)
    }

    fn next_of(&self, turn: FlowId) -> Option<(FlowId, Range<u64>)> {
        let sender = self.senders.get(turn)?;
        let piece = sender.next_piece(&self.config, self.config.window(self.control.rate(&sender.control)))?;
        Some((piece.flow, piece.offset..piece.offset + u64::from(piece.len)))
    }

    fn remove_sender(&mut self, flow: FlowId) -> bool {
        if !self.shares() {
            return self.senders.remove(flow).is_some();
        }
        let pair = self.pair_of_open(flow).map(|(pair, _)| pair);
        pair.and_then(|pair| self.senders.get_mut(pair)).is_some_and(|sender| sender.remove(flow))
    }

    fn give_up(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        let pair = self.pair(flow, cx);
        let oldest = self.senders.get(pair).and_then(QueuePair::first_open);
        if !self.remove_sender(flow) {
            return;
        }
        cx.terminate(flow);
        let (Some(sender), Some(oldest)) = (self.senders.get_mut(pair), oldest) else { return };
        if oldest != flow {
            cx.disarm(oldest, RTO);
        }
        Self::move_timers(&self.control, sender, cx);
        if sender.flight() > 0
            && let Some(oldest) = sender.first_open()
        {
            Self::start_timer(&self.config, oldest, sender, cx);
        }
        self.wake(pair, cx);
    }

    fn sample(&self, flow: FlowId) -> Option<Sample> {
        self.pair_of_open(flow).map(|(_, sender)| {
            let rate = self.control.rate(&sender.control);
            let window = self.config.window(rate);
            Sample {
                cwnd_bytes: if window == u64::MAX { 0 } else { window },
                ssthresh_bytes: 0,
                srtt: sender.rtt,
                rate,
                in_flight_bytes: sender.flight_of(flow),
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

    fn shared_sequence(&self) -> Option<SharedSequence> {
        let shared = SharedSequence { key: "queue_pairs", value: "peer", apart: "port" };
        (self.config.queue_pairs == QueuePairs::Peer).then_some(shared)
    }
}

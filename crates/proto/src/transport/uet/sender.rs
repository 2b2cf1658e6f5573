//! The sender's side of a host: connections and the packets of their messages. Functions of
//! `uec.cpp` are cited in brackets.

use super::config::UetConfig;
use super::header::{Sack, SackWords, UetData, path_tag};
use super::message::OutMessage;
use super::nscc::{Nscc, WindowAck};
use super::rccc::{Demand, SenderCredit};
use super::{GAP, INFERRED, NACKS, PROBES, QUICK_ADAPTS, RETURNED, RTS, RTSS, SPECULATIVE};
use crate::contract::{Bursts, Cx, Timeout, Timers};
use crate::flow::Sample;
use crate::kit::multipath::{Multipath, PathFeedback};
use crate::packet::{Kind, Packet};
use base::{Dur, FlowId, FlowMap, HostId, Rate, Time};
use std::collections::{BTreeMap, VecDeque};

/// Timer of a flow: retransmission.
pub(super) const RTO: u8 = 0;

/// Timer of a flow: the next probe.
pub(super) const PROBE: u8 = 2;

/// Number of timeouts for which a sender without credit waits for pulls.
const SILENCE: u64 = 16;

/// A connection at its sender, with the messages that share it.
#[derive(Clone, Debug)]
pub(super) struct UetConnection {
    nscc: Nscc,
    credit: SenderCredit,
    multipath: Multipath,
    /// Bytes in flight of all messages.
    pub(super) in_flight: u64,
    /// Packets sent, without retransmissions.
    sent: u64,
    last_rts: Option<Time>,
    /// The messages that are not acknowledged, in their order.
    pub(super) open: VecDeque<FlowId>,
    /// Whether the connection is in the queue of those that may send.
    ready: bool,
}

impl UetConnection {
    /// Returns whether a packet may be sent.
    fn permits(&self, config: &UetConfig, next: NextPacket) -> bool {
        let room = !config.sender_cc || next.urgent || self.nscc.cwnd() >= self.in_flight + next.wire;
        room && (!config.receiver_cc || self.credit.bytes() > 0)
    }
    /// Returns the window in packets, for the load balancer.
    fn window(&self, config: &UetConfig) -> u64 {
        self.nscc.cwnd() / config.mss
    }
    /// Returns the next packet of the first message that has one.
    fn next(&self, messages: &mut FlowMap<OutMessage>) -> Option<NextPacket> {
        self.open.iter().find_map(|&flow| NextPacket::of(flow, messages.get_mut(flow)?))
    }
}

/// The next packet of a connection.
#[derive(Clone, Copy, Debug)]
struct NextPacket {
    flow: FlowId,
    /// Its size.
    wire: u64,
    /// Whether it may be sent without room in the window.
    urgent: bool,
}

impl NextPacket {
    /// Returns the next packet of a message, if it has one.
    fn of(flow: FlowId, message: &mut OutMessage) -> Option<NextPacket> {
        let wire = message.next_wire()?;
        Some(NextPacket { flow, wire, urgent: message.is_urgent() })
    }
}

/// The connections and messages that a host sends.
pub(super) struct UetSender {
    config: UetConfig,
    pub(super) messages: FlowMap<OutMessage>,
    /// Connections by the flow that opened them.
    pub(super) connections: FlowMap<UetConnection>,
    /// The flow that opened the connection to a host, if messages share connections.
    peers: BTreeMap<HostId, FlowId>,
    /// Connections that may send, in turn. Closed ones are skipped when their turn comes.
    ready: VecDeque<FlowId>,
}

impl UetSender {
    /// Creates a sender without messages.
    pub(super) fn new(config: UetConfig) -> UetSender {
        UetSender {
            config,
            messages: FlowMap::default(),
            connections: FlowMap::default(),
            peers: BTreeMap::new(),
            ready: VecDeque::new(),
        }
    }

    /// Returns the flow that opened the connection of a flow.
    #[inline]
    fn leader(&self, flow: FlowId, cx: &Cx<'_>) -> FlowId {
        if !self.config.peer {
            return flow;
        }
        self.peers.get(&cx.flow(flow).dst).copied().unwrap_or(flow)
    }

    /// Puts a connection that may send into the queue.
    #[inline]
    fn wake(&mut self, leader: FlowId) {
        let Some(connection) = self.connections.get_mut(leader) else { return };
        if !connection.ready
            && let Some(next) = connection.next(&mut self.messages)
            && connection.permits(&self.config, next)
        {
            connection.ready = true;
            self.ready.push_back(leader);
        }
    }

    /// Sets the retransmission timer of a message.
    #[inline]
    fn set_timer(&mut self, flow: FlowId, leader: FlowId, cx: &mut Cx<'_>) {
        let (Some(message), Some(connection)) = (self.messages.get_mut(flow), self.connections.get(leader)) else { return };
        let config = &self.config;
        let silent = message.oldest().is_none() && config.receiver_cc && connection.credit.bytes() == 0;
        match message.oldest() {
            Some(at) => cx.arm(flow, RTO, at.after(config.rto)),
            // The wait for credit goes on.
            None if silent && message.is_silent => {}
            None if silent => cx.arm(flow, RTO, cx.now.after(config.rto * SILENCE)),
            None => cx.disarm(flow, RTO),
        }
        message.is_silent = silent;
    }

    /// Handles an ACK (processAck).
    pub(super) fn on_ack(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        let (flow, config) = (packet.flow, &self.config);
        let leader = self.leader(flow, cx);
        // ACKs after the end are late duplicates.
        let (Some(message), Some(connection)) = (self.messages.get_mut(flow), self.connections.get_mut(leader)) else { return };
        let sack = Sack::unpack(packet.get::<SackWords>(), packet.offset.div_ceil(config.mss));
        let (marked, before) = (packet.has(Packet::ECE), message.in_flight());
        let received = message.on_told(received_wire(message, &sack));
        let (is_probe, again) = (packet.kind == Kind::PROBEACK, packet.has(Packet::RETX));
        let sent_at = if sack.control { None } else { message.sent_at(sack.answered, again) };
        let probed_at = message.probe.filter(|(_, odd)| is_probe && *odd == again).map(|(at, _)| at);
        let delay = match sent_at {
            Some(at) => {
                let rtt = cx.now - at;
                message.rtt = rtt;
                if message.wire(sack.answered) == config.nscc.mtu {
                    connection.nscc.lower_base(&config.nscc, rtt);
                }
                connection.nscc.on_rtt(&config.nscc, rtt, marked)
            }
            None => match probed_at.map(|at| cx.now - at) {
                Some(rtt) if rtt < connection.nscc.base_rtt() => Dur::ZERO,
                Some(rtt) => connection.nscc.on_rtt(&config.nscc, rtt, marked),
                None => connection.nscc.mean_delay(),
            },
        };
        message.on_acked(sack.next, sack.base(), sack.bitmap);
        let after = message.in_flight();
        connection.in_flight = (connection.in_flight + after).saturating_sub(before);
        connection.multipath.heard(sack.entropy, if marked { PathFeedback::Marked } else { PathFeedback::Good }, cx.now);
        if config.sender_cc {
            let in_flight = connection.in_flight;
            let adapted = connection.nscc.on_ack(&config.nscc, WindowAck { now: cx.now, received, marked, delay, in_flight });
            cx.count(flow, QUICK_ADAPTS, adapted.into());
        }
        connection.credit.stop_speculating();
        if config.sleek && !message.is_done() {
            if is_probe && delay < config.nscc.target {
                message.start_recovery();
            }
            let least = connection.nscc.inference_bytes(config.mss) / config.mss;
            let lost = message.infer_losses(sack.early, least, connection.window(config));
            connection.in_flight = (connection.in_flight + message.in_flight()).saturating_sub(after);
            cx.count(flow, INFERRED, lost);
            // probe_first_trial_time.
            let base_rtt = connection.nscc.base_rtt();
            let silence = if message.backlog() == 0 { base_rtt + config.nscc.target } else { base_rtt * 3 };
            cx.arm(flow, PROBE, cx.now.after(silence));
        }
        if message.is_done() {
            self.close(flow, leader);
            cx.close(flow);
        } else {
            self.set_timer(flow, leader, cx);
        }
        self.wake(leader);
    }

    /// Handles a NACK or a returned packet (processNack). The NACK of a packet that arrived out of
    /// order names the first missing packet.
    pub(super) fn on_nack(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        let (flow, config) = (packet.flow, &self.config);
        let leader = self.leader(flow, cx);
        let (Some(message), Some(connection)) = (self.messages.get_mut(flow), self.connections.get_mut(leader)) else { return };
        cx.count(flow, if packet.kind == Kind::RETURNED { RETURNED } else { NACKS }, 1);
        let (number, gap) = (packet.offset / config.mss, packet.kind == GAP);
        if config.rtt_of_nacks
            && !gap
            && let Some(at) = message.sent_at(number, packet.has(Packet::RETX))
        {
            connection.nscc.lower_base(&config.nscc, cx.now - at);
        }
        let (before, in_flight) = (message.in_flight(), connection.in_flight);
        let lost = match (gap, config.ordered) {
            (true, _) => message.on_gap(number),
            (false, true) => message.on_trimmed(number, packet.has(Packet::RETX)),
            (false, false) => message.lose(number).map(|lost| lost.wire),
        };
        let Some(wire) = lost else { return };
        let last_hop = packet.has(Packet::LAST_HOP);
        if config.sender_cc {
            let other = config.receiver_cc && last_hop;
            let adapted = connection.nscc.on_nack(&config.nscc, wire, in_flight, cx.now, other);
            cx.count(flow, QUICK_ADAPTS, adapted.into());
        }
        connection.in_flight = (connection.in_flight + message.in_flight()).saturating_sub(before);
        // No other path avoids the last hop.
        let marked = if packet.has(Packet::ECE) { PathFeedback::Marked } else { PathFeedback::Good };
        let feedback = if last_hop { marked } else { PathFeedback::Trimmed };
        connection.multipath.heard(packet.get::<UetData>().entropy(), feedback, cx.now);
        connection.credit.stop_speculating();
        self.set_timer(flow, leader, cx);
        self.wake(leader);
    }

    /// Handles credit (processPull).
    pub(super) fn on_pull(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        let leader = self.leader(packet.flow, cx);
        let Some(connection) = self.connections.get_mut(leader) else { return };
        connection.credit.stop_speculating();
        connection.credit.on_pull(&self.config.rccc, packet.get::<UetData>().pull_target);
        self.set_timer(packet.flow, leader, cx);
        self.wake(leader);
    }

    /// Handles the expiry of the retransmission timer (rtxTimerExpired).
    pub(super) fn on_rto(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        let config = &self.config;
        let leader = self.leader(flow, cx);
        let (Some(message), Some(connection)) = (self.messages.get_mut(flow), self.connections.get_mut(leader)) else { return };
        let (before, waits) = (message.in_flight(), message.lost_wire() > 0);
        let starves = message.oldest().is_none();
        message.is_silent = false;
        let (mut found, mut first) = (starves, None);
        while let Some(number) = message.overdue(config.rto, cx.now)
            && let Some(lost) = message.lose(number)
        {
            found = true;
            first.get_or_insert(number);
            connection.multipath.heard(lost.entropy, PathFeedback::Timeout, cx.now);
            if config.sender_cc {
                connection.nscc.on_timeout(&config.nscc, lost.wire);
            }
        }
        if config.ordered
            && let Some(number) = first
        {
            message.go_back(number);
        }
        connection.in_flight = (connection.in_flight + message.in_flight()).saturating_sub(before);
        if found {
            cx.note_timeout(flow);
            let late = connection.last_rts.is_none_or(|at| cx.now.since(at) >= config.nscc.network_rtt);
            if waits && config.receiver_cc {
                connection.credit.stop_speculating();
            }
            // If other lost packets wait already, only credit may be missing.
            let stuck = if waits {
                config.receiver_cc
            } else {
                NextPacket::of(flow, message).is_some_and(|next| !connection.permits(config, next))
            };
            if late && stuck {
                connection.last_rts = Some(cx.now);
                let demand = demand(config, connection, message, self.ready.len());
                let target = connection.credit.target(&config.rccc, demand);
                let entropy = connection.multipath.next(connection.sent, connection.window(config), cx.rng);
                let mut rts = Packet::new(flow, RTS, config.header);
                rts.path_tag = path_tag(entropy, flow, cx);
                rts.set(UetData::new(entropy, true, target));
                cx.control(rts);
                cx.count(flow, RTSS, 1);
            }
        }
        self.set_timer(flow, leader, cx);
        self.wake(leader);
    }

    /// Sends a probe, which measures the delay (sendProbe).
    pub(super) fn on_probe_timer(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        let config = &self.config;
        let leader = self.leader(flow, cx);
        let (Some(message), Some(connection)) = (self.messages.get_mut(flow), self.connections.get_mut(leader)) else { return };
        let odd = !message.probe.is_some_and(|(_, odd)| odd);
        message.probe = Some((cx.now, odd));
        let entropy = connection.multipath.next(connection.sent, connection.window(config), cx.rng);
        let mut probe = Packet::new(flow, Kind::PROBE, config.header);
        probe.flags = if odd { Packet::RETX } else { 0 };
        probe.path_tag = path_tag(entropy, flow, cx);
        probe.set(UetData::new(entropy, true, 0));
        cx.control(probe);
        cx.count(flow, PROBES, 1);
        // probe_retry_time.
        cx.arm(flow, PROBE, cx.now.after(connection.nscc.base_rtt() * 5));
    }

    /// Forgets a message, and its connection if no other message can use it.
    fn close(&mut self, flow: FlowId, leader: FlowId) -> bool {
        let Some(message) = self.messages.remove(flow) else { return false };
        if !self.config.peer {
            self.connections.remove(leader);
        } else if let Some(connection) = self.connections.get_mut(leader) {
            connection.in_flight = connection.in_flight.saturating_sub(message.in_flight());
            connection.open.retain(|&open| open != flow);
        }
        true
    }

    /// Opens a flow (startConnection).
    pub(super) fn on_flow(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        let config = &self.config;
        let leader = if config.peer { *self.peers.entry(cx.flow(flow).dst).or_insert(flow) } else { flow };
        let base_rtt = if config.own_rtt { cx.flow(flow).rtt } else { config.nscc.network_rtt };
        let connection = self.connections.or_insert_with(leader, || UetConnection {
            nscc: Nscc::new(&config.nscc, base_rtt, cx.now),
            credit: SenderCredit::new(&config.rccc),
            multipath: if config.ordered {
                Multipath::single(&config.multipath, cx.rng)
            } else {
                Multipath::new(&config.multipath, cx.rng)
            },
            in_flight: 0,
            sent: 0,
            last_rts: None,
            open: VecDeque::new(),
            ready: false,
        });
        connection.open.push_back(flow);
        self.messages.insert(flow, OutMessage::new(cx.flow(flow).size_bytes, config.mss, config.header.into()));
        self.wake(leader);
    }

    /// Returns the next packet (sendNewPacket, sendRtxPacket).
    pub(super) fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        while let Some(leader) = self.ready.pop_front() {
            let config = &self.config;
            let Some(connection) = self.connections.get_mut(leader) else { continue };
            connection.ready = false;
            let Some(next) = connection.next(&mut self.messages).filter(|&next| connection.permits(config, next)) else { continue };
            let NextPacket { flow, wire, .. } = next;
            let Some(message) = self.messages.get_mut(flow) else { continue };
            let entropy = connection.multipath.next(connection.sent, connection.window(config), cx.rng);
            let (before, speculative) = (message.in_flight(), connection.credit.is_speculating());
            let Some(leaving) = message.take(entropy, cx.now) else { continue };
            connection.in_flight = (connection.in_flight + message.in_flight()).saturating_sub(before);
            connection.sent += u64::from(!leaving.again);
            let (mut target, mut asks) = (0, leaving.again || message.backlog() == 0);
            if config.receiver_cc {
                connection.credit.spend(wire);
                target = connection.credit.target(&config.rccc, demand(config, connection, message, self.ready.len()));
                asks |= connection.credit.bytes() == 0;
                cx.count(flow, SPECULATIVE, u64::from(speculative) * u64::from(leaving.payload));
            }
            asks |= config.sender_cc && connection.in_flight + wire >= connection.nscc.cwnd();
            let mut data = Packet::data(flow, leaving.number * config.mss, leaving.payload, config.header);
            data.flags = Packet::ECT | if leaving.again { Packet::RETX } else { 0 };
            data.path_tag = path_tag(entropy, flow, cx);
            data.set(UetData::new(entropy, asks, target));
            self.set_timer(flow, leader, cx);
            self.wake(leader);
            return Some(data);
        }
        None
    }

    /// Returns the connection of an open message, and the flow that opened it.
    fn connection_of(&self, flow: FlowId) -> Option<(FlowId, &UetConnection)> {
        if !self.config.peer {
            return Some((flow, self.connections.get(flow)?));
        }
        self.connections.iter().find(|(_, connection)| connection.open.contains(&flow))
    }
    /// Forgets a message. Returns whether it was open.
    pub(super) fn remove_sender(&mut self, flow: FlowId) -> bool {
        let leader = self.connection_of(flow).map_or(flow, |(leader, _)| leader);
        let removed = self.close(flow, leader);
        self.wake(leader);
        removed
    }

    /// Returns the sample of a message, if it is open.
    pub(super) fn sample(&self, flow: FlowId) -> Option<Sample> {
        let message = self.messages.get(flow)?;
        let connection = self.connection_of(flow)?.1;
        let credit = connection.in_flight + connection.credit.bytes();
        let cwnd_bytes = if self.config.sender_cc { connection.nscc.cwnd() } else { credit };
        let in_flight_bytes = message.payload_in_flight();
        Some(Sample { cwnd_bytes, ssthresh_bytes: 0, srtt: message.rtt, rate: Rate(0), in_flight_bytes })
    }

    /// Returns the retransmission timeout.
    pub(super) fn timers(&self) -> Timers {
        let rto = Timeout::new("min_rto", self.config.rto);
        Timers { handshake: false, first: rto, least: rto, fixed: true }
    }

    /// Returns the bytes of the first window.
    pub(super) fn bursts(&self) -> Bursts {
        let UetConfig { nscc, rccc, sender_cc, receiver_cc, .. } = &self.config;
        let window = if *sender_cc { Nscc::new(nscc, nscc.network_rtt, Time::ZERO).cwnd() } else { u64::MAX };
        let credit = if *receiver_cc { rccc.most } else { u64::MAX };
        Bursts { first_bytes: window.min(credit), granted_bytes: 0 }
    }
}

/// Returns the bytes that have arrived according to an ACK.
pub(super) fn received_wire(message: &OutMessage, sack: &Sack) -> u64 {
    let full = message.wire(0);
    let short = if sack.last { full - message.wire(message.packets() - 1) } else { 0 };
    (message.wire_below(sack.next) + sack.early * full).saturating_sub(short)
}

/// Returns what a connection has to send.
fn demand(config: &UetConfig, connection: &UetConnection, message: &OutMessage, others: usize) -> Demand {
    Demand {
        new: message.backlog(),
        lost: message.lost_wire(),
        window: config.sender_cc.then(|| connection.nscc.cwnd()),
        busy: others as u64 + 1,
    }
}

//! The receiver's side of a host: answers to data, and credit. Functions of `uec.cpp` are cited in
//! brackets.

use super::arrivals::{Arrival, InMessage, Reply};
use super::config::UetConfig;
use super::header::{Sack, UetData, path_tag};
use super::rccc::{PullQueue, PullState, QUANTUM};
use super::{ACKS, CREDIT, DUPLICATES, GAP, NACK, OUT_OF_ORDER, PULL, PULLS, RTS, TRIMS};
use crate::contract::Cx;
use crate::kit::pull_pacer::PullPacer;
use crate::packet::{Kind, Packet};
use base::FlowMap;

/// Timer of a host: the next pull.
pub(super) const PACED: u8 = 1;

/// The messages that a host receives.
pub(super) struct UetReceiver {
    config: UetConfig,
    pub(super) messages: FlowMap<InMessage>,
    /// The pulls of messages, with RCCC, and their order.
    pub(super) granted: FlowMap<PullState>,
    pulls: PullQueue,
}

impl UetReceiver {
    /// Creates a receiver without messages.
    pub(super) fn new(config: UetConfig) -> UetReceiver {
        let pulls = PullQueue::new(PullPacer::new(config.quantum_gap));
        UetReceiver { config, messages: FlowMap::default(), granted: FlowMap::default(), pulls }
    }

    /// Handles data, trimmed data, an RTS and a probe.
    pub(super) fn on_arrival(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        let (flow, config) = (packet.flow, &self.config);
        let header = packet.get::<UetData>();
        let number = packet.offset / config.mss;
        let size = cx.flow(flow).size_bytes;
        cx.count(flow, TRIMS, (packet.kind == Kind::TRIMMED).into());
        if cx.has_finished(flow) {
            cx.count(flow, DUPLICATES, (packet.kind == Kind::DATA).into());
            return Self::acknowledge(config, None, Reply::Around, packet, cx);
        }
        let message = self.messages.or_insert_with(flow, InMessage::default);
        let mut lost = false;
        match packet.kind {
            Kind::DATA if config.ordered && number > message.next() => {
                cx.count(flow, OUT_OF_ORDER, 1);
                cx.note_undelivered(packet);
                let gap = Packet { offset: message.next() * config.mss, ..Packet::new(flow, GAP, config.header) };
                Self::refuse(gap, packet, cx);
                lost = true;
            }
            Kind::DATA => {
                let known = message.has(number);
                let last = packet.offset + u64::from(packet.payload) == size;
                let arrival =
                    Arrival { number, wire: packet.wire_len.into(), last, marked: packet.has(Packet::CE), asks: header.asks() };
                let reply = message.on_data(arrival, config.ack_bytes);
                cx.count(flow, DUPLICATES, known.into());
                cx.deliver(flow, packet.offset, packet.payload);
                if cx.has_finished(flow) {
                    self.messages.remove(flow);
                    self.granted.remove(flow);
                    return Self::acknowledge(config, None, reply, packet, cx);
                }
                Self::acknowledge(config, Some(message), reply, packet, cx);
            }
            Kind::TRIMMED if !message.has(number) => {
                let mut nack = Packet { offset: packet.offset, ..Packet::new(flow, NACK, config.header) };
                nack.flags = packet.flags & Packet::LAST_HOP;
                Self::refuse(nack, packet, cx);
                lost = true;
            }
            _ => {
                Self::acknowledge(config, Some(message), Reply::Around, packet, cx);
                lost = packet.kind == RTS;
            }
        }
        if config.receiver_cc {
            let pull = self.granted.or_insert_with(flow, PullState::default);
            if pull.on_target(header.pull_target) || lost {
                self.pulls.request(flow, pull);
                if !cx.is_host_armed(PACED) {
                    self.pulls.pacer.arm(PACED, cx);
                }
            }
        }
    }

    /// Sends the NACK of a packet (processTrimmed).
    fn refuse(mut nack: Packet, packet: &Packet, cx: &mut Cx<'_>) {
        let entropy = packet.get::<UetData>().entropy();
        nack.flags |= echo(packet);
        nack.path_tag = path_tag(entropy, packet.flow, cx);
        nack.set(UetData::new(entropy, false, 0));
        cx.control(nack);
    }

    /// Sends an ACK; without a message, all its packets have arrived (sack).
    fn acknowledge(config: &UetConfig, message: Option<&InMessage>, reply: Reply, packet: &Packet, cx: &mut Cx<'_>) {
        if reply == Reply::Nothing && message.is_some() {
            return;
        }
        let (flow, size) = (packet.flow, cx.flow(packet.flow).size_bytes);
        let next = message.map_or(size.div_ceil(config.mss), InMessage::next);
        let (early, last) = message.map_or((0, false), InMessage::early);
        let control = [RTS, Kind::PROBE].contains(&packet.kind);
        let answered = if control { next } else { packet.offset / config.mss };
        let entropy = packet.get::<UetData>().entropy();
        let mut sack = Sack { next, answered, from: reply == Reply::From, control, entropy, early, last, bitmap: 0 };
        sack.bitmap = message.map_or(0, |message| message.bitmap(sack.base()));
        let kind = if packet.kind == Kind::PROBE { Kind::PROBEACK } else { Kind::ACK };
        let mut ack = Packet { offset: (next * config.mss).min(size), ..Packet::new(flow, kind, config.header) };
        ack.flags = echo(packet);
        ack.path_tag = path_tag(entropy, flow, cx);
        ack.set(sack.pack());
        cx.control(ack);
        cx.count(flow, ACKS, 1);
    }

    /// Sends the next pull.
    pub(super) fn on_paced(&mut self, cx: &mut Cx<'_>) {
        let Some(granted) = self.pulls.next(&self.config.rccc, &mut self.granted, cx.now) else { return };
        let mut pull = Packet::new(granted.flow, PULL, self.config.header);
        let entropy = (granted.count & (self.config.multipath.entropies - 1)) as u16;
        pull.path_tag = path_tag(entropy, granted.flow, cx);
        pull.set(UetData::new(entropy, false, granted.number));
        cx.control(pull);
        cx.count(granted.flow, PULLS, 1);
        cx.count(granted.flow, CREDIT, granted.quanta * QUANTUM);
        self.pulls.pacer.arm(PACED, cx);
    }
}

/// Returns the flags of an answer: whether the answered packet was marked, and a retransmission.
fn echo(packet: &Packet) -> u16 {
    let marked = if packet.has(Packet::CE) { Packet::ECE } else { 0 };
    marked | (packet.flags & Packet::RETX)
}

//! The sending half: bytes sent set the class until a receiver assigns one, and each data packet
//! carries the state of its flow.

use super::super::Cx;
use super::header::{CLASS_CHANGES, END, LAS_PACKETS, NO_DEADLINE, Order, State};
use crate::kit::demotion;
use crate::packet::{Kind, Packet};
use base::{Dur, FlowId, FlowMap, Fraction, Time};

/// The sending half of a host.
pub(super) struct Sender {
    /// Thresholds in bytes sent between the classes of flows without a class from the receiver.
    pub(super) thresholds: Vec<u64>,
    /// The weight of a round-trip sample.
    pub(super) omega: Fraction,
    /// The round trip before the first sample.
    pub(super) init_rtt: Dur,
    /// Bytes that the header adds to a packet.
    pub(super) header: u16,
    pub(super) flows: FlowMap<Outgoing>,
}

/// A flow that a host sends.
pub(super) struct Outgoing {
    /// The last class that the receiver assigned.
    class: Option<u8>,
    /// Weighted round trip.
    rtt: Dur,
    /// The packet that is timed: its end, and when the NIC took it.
    timed: Option<(u64, Time)>,
    /// The size of a flow with a deadline; zero for other flows.
    size: u64,
    deadline: u64,
}

impl Outgoing {
    /// Returns the class of the packet at `offset`.
    #[inline]
    fn class(&self, thresholds: &[u64], offset: u64) -> u8 {
        let class = self.class.unwrap_or_else(|| demotion::class(thresholds, offset));
        2 * class + u8::from(self.deadline == NO_DEADLINE)
    }
}

impl Sender {
    /// Returns the class of the packet of a flow at `offset`.
    pub(super) fn class(&self, flow: FlowId, offset: u64) -> u8 {
        self.flows.get(flow).map_or(0, |out| out.class(&self.thresholds, offset))
    }

    pub(super) fn open(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        let seen = cx.flow(flow);
        let (size, deadline) = seen.deadline().map_or((0, NO_DEADLINE), |deadline| (seen.size_bytes(), deadline.ps()));
        self.flows.insert(flow, Outgoing { class: None, rtt: self.init_rtt, timed: None, size, deadline });
    }

    pub(super) fn close(&mut self, flow: FlowId) {
        self.flows.remove(flow);
    }

    /// Handles a data packet that the NIC takes.
    #[inline]
    pub(super) fn on_data(&mut self, packet: &mut Packet, cx: &mut Cx<'_>) {
        let Some(out) = self.flows.get_mut(packet.flow) else { return };
        if out.class.is_none() {
            cx.count(packet.flow, LAS_PACKETS, 1);
        }
        packet.prio = out.class(&self.thresholds, packet.offset);
        let sent = packet.offset + u64::from(packet.payload);
        // Karn's rule: a retransmission makes the sample ambiguous.
        if packet.has(Packet::RETX) {
            out.timed = None;
        } else if out.timed.is_none() {
            out.timed = Some((sent, cx.now));
        }
        let window = cx.sample(packet.flow).map_or(0, |sample| match sample.cwnd_bytes {
            0 => sample.rate.bytes_in(out.rtt).max(sample.in_flight_bytes),
            cwnd => cwnd,
        });
        let (left, rtt) = (out.size.saturating_sub(sent), out.rtt.0);
        packet.set_tag(State { sent, left, deadline: out.deadline, window, rtt }, cx.ext);
        packet.wire_len += self.header;
    }

    /// Handles an answer of the receiver.
    #[inline]
    pub(super) fn on_answer(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        let Some(out) = self.flows.get_mut(packet.flow) else { return };
        if packet.kind == Kind::ACK
            && let Some((_, at)) = out.timed.take_if(|(end, _)| packet.offset >= *end)
        {
            // Eq. 3; the next packet sent begins the next round.
            out.rtt = out.rtt.times(self.omega.complement()) + cx.now.since(at).times(self.omega);
        }
        if !packet.has(Packet::TAGGED) {
            return;
        }
        match packet.get_tag::<Order>(cx.ext).class {
            END => cx.terminate(packet.flow),
            class if out.class != Some(class) => {
                out.class = Some(class);
                cx.count(packet.flow, CLASS_CHANGES, 1);
            }
            _ => {}
        }
    }
}

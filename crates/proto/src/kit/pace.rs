//! Flows paced by a rate: when the next packet of each may leave, whose turn it is, and when
//! packets count as lost.
//!
//! The next packet leaves one gap after the departure of the previous packet; the departure is the
//! time at which the NIC took the packet. A packet is lost when its ACK has not arrived one
//! retransmission timeout after it left. When the timer expires, all packets that have been in
//! flight for longer than the timeout before any doubling are lost: the losses of one burst are
//! found together.

use super::rtt::{Rtt, RttConfig};
use super::scoreboard::Scoreboard;
use crate::contract::Cx;
use crate::flow::Flow;
use crate::packet::Packet;
use base::{FlowId, Rate, Time};
use std::collections::VecDeque;

/// Timer of a paced flow: its next packet is due. The transport's own timers have numbers above
/// these two.
pub const NEXT: u8 = 0;
/// Timer of a paced flow: retransmission.
pub const RTO: u8 = 1;

/// The flows of a host whose next packet is due, the longest due first. When its turn comes, a flow
/// may be closed, or its packet due later.
#[derive(Clone, Debug, Default)]
pub struct Ready(VecDeque<FlowId>);

impl Ready {
    /// Removes the flow whose turn it is.
    #[inline]
    pub fn pop(&mut self) -> Option<FlowId> {
        self.0.pop_front()
    }
}

/// The state of a paced flow at its sender.
pub struct Sender {
    /// The flow.
    pub flow: FlowId,
    /// The state of its packets.
    pub packets: Scoreboard,
    /// Its round-trip estimate.
    pub rtt: Rtt,
    /// Timeouts: expiries that found packets lost, and calls of [`Sender::back_off`].
    pub timeouts: u32,
    /// Departure of the previous packet, and the length in bytes that the next packet has to wait
    /// for.
    pub last: Option<(Time, u16)>,
    /// Whether the flow is in the queue of due flows.
    ready: bool,
    size_bytes: u64,
    mss: u64,
}

impl Sender {
    /// Creates a flow that has sent nothing, in packets of `mss` bytes of payload.
    pub fn new(flow: &Flow, mss: u64, config: &RttConfig) -> Sender {
        let packets = Scoreboard::new(flow.size_bytes.div_ceil(mss));
        Sender {
            flow: flow.id,
            packets,
            rtt: Rtt::new(config),
            timeouts: 0,
            last: None,
            ready: false,
            size_bytes: flow.size_bytes,
            mss,
        }
    }
    /// Returns whether the flow waits for its turn.
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.ready
    }
    /// Returns when the next packet may leave at `rate`.
    #[inline]
    pub fn due(&self, rate: Rate) -> Time {
        self.last.map_or(Time::ZERO, |(at, len)| at.after(rate.gap(u64::from(len))))
    }
    /// Queues the flow at `due`, when it has a packet to send.
    #[inline]
    pub fn wait(&mut self, due: Time, ready: &mut Ready, cx: &mut Cx<'_>) {
        if due > cx.now {
            cx.arm(self.flow, NEXT, due);
        } else {
            self.ready = true;
            ready.0.push_back(self.flow);
        }
    }
    /// Records that the flow's turn has come.
    #[inline]
    pub fn on_turn(&mut self) {
        self.ready = false;
    }
    /// Returns the bytes of payload in flight.
    pub fn in_flight_bytes(&self) -> u64 {
        let short = if self.packets.last_is_in_flight() { self.size_bytes.next_multiple_of(self.mss) - self.size_bytes } else { 0 };
        self.packets.in_flight() * self.mss - short
    }
    /// Returns the DATA packet that leaves now, lost packets first, without the transport's header.
    #[inline(always)]
    pub fn take(&mut self, header_bytes: u16, cx: &mut Cx<'_>) -> Packet {
        let (number, resent) = self.packets.take(cx.now).expect("a flow that is due has DATA");
        let offset = number * self.mss;
        let payload = (self.size_bytes - offset).min(self.mss) as u16;
        let mut data = Packet::data(self.flow, offset, payload, header_bytes);
        if resent {
            data.flags |= Packet::RETX;
        }
        if !cx.is_armed(self.flow, RTO) {
            self.arm_rto(cx);
        }
        self.last = Some((cx.now, data.wire_len));
        data
    }
    /// Sets the retransmission timer to the time at which the oldest packet in flight counts as
    /// lost.
    #[inline]
    pub fn arm_rto(&self, cx: &mut Cx<'_>) {
        match self.packets.oldest() {
            Some(at) => cx.arm(self.flow, RTO, at.after(self.rtt.rto())),
            None => cx.disarm(self.flow, RTO),
        }
    }
    /// Handles the expiry of the retransmission timer: finds lost packets, doubles the timeout if
    /// there are any, and sets the timer again. Returns whether there are any.
    pub fn on_rto(&mut self, config: &RttConfig, cx: &mut Cx<'_>) -> bool {
        let lost = self.packets.lose(self.rtt.base_rto(config), cx.now);
        if lost {
            self.back_off(config, cx);
        }
        self.arm_rto(cx);
        lost
    }
    /// Counts a timeout of an unanswered packet, and doubles the next timeout.
    pub fn back_off(&mut self, config: &RttConfig, cx: &mut Cx<'_>) {
        cx.note_timeout(self.flow);
        self.timeouts += 1;
        self.rtt.on_timeout(config);
    }
}

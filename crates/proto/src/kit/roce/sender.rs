//! The sender's side of a queue pair.

use super::options::RoceConfig;
use crate::ranges::Ranges;
use base::{Dur, FlowId, Rate, Time};
use std::collections::VecDeque;
use std::mem::take;

/// A queue pair at its sender. Its messages have consecutive bytes in one sequence, in the order in
/// which they were opened; all positions are those of the sequence.
pub struct QueuePair<S> {
    /// The state of the rate controller.
    pub control: S,
    /// Whether the queue pair is in the queue of those that may send.
    pub ready: bool,
    /// Whether the retransmission timer is armed.
    pub timer: bool,
    /// What the timer of the next packet was last armed for.
    pub armed: Time,
    /// The last round trip; zero before the first ACK.
    pub rtt: Dur,
    /// The oldest message that is not acknowledged as a whole. All packets of a message that has the
    /// queue pair for itself need only this message.
    first: Option<OpenMessage>,
    /// The messages after it that are not acknowledged as a whole, in their order.
    later: VecDeque<OpenMessage>,
    /// The end of the last message.
    end: u64,
    /// The first position after a message was given up; answers below it are from before.
    floor: u64,
    /// The first byte that is not acknowledged, and the next one to send.
    una: u64,
    nxt: u64,
    /// The first byte that was never sent.
    max: u64,
    /// Departure of the previous packet, and its length on the wire.
    last: Option<(Time, u64)>,
    /// The gap after a packet of this length at this rate.
    gap: (u64, Rate, Dur),
    /// IRN: acknowledged bytes above `una`.
    acked: Ranges,
    /// IRN: the present recovery.
    recovery: Option<Recovering>,
}

/// A message that is not acknowledged as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OpenMessage {
    flow: FlowId,
    /// Its first byte, and the byte after its last.
    start: u64,
    end: u64,
}

/// A recovery of IRN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Recovering {
    /// It ends when the bytes below are acknowledged: all that were sent when it began.
    until: u64,
    /// Bytes below were resent, or need not be.
    resent: u64,
    /// Bytes below count as lost although no later ones have arrived: a timeout found them.
    lost: u64,
}

/// A packet to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its message.
    pub flow: FlowId,
    /// Its first byte within the message.
    pub offset: u64,
    /// Its first byte within the sequence.
    pub position: u64,
    /// Whether it is the first byte that is not acknowledged.
    pub first: bool,
    /// Its length.
    pub len: u16,
    /// Whether its first byte was sent before.
    pub resent: bool,
}

impl<S> QueuePair<S> {
    /// Creates a queue pair without messages.
    pub fn new(control: S) -> Self {
        QueuePair {
            control,
            ready: false,
            timer: false,
            armed: Time::ZERO,
            rtt: Dur::ZERO,
            first: None,
            later: VecDeque::new(),
            end: 0,
            floor: 0,
            una: 0,
            nxt: 0,
            max: 0,
            last: None,
            gap: (0, Rate(1), Dur::ZERO),
            acked: Ranges::default(),
            recovery: None,
        }
    }
    /// Returns the next new byte to send.
    pub fn nxt(&self) -> u64 {
        self.nxt
    }
    /// Returns the bytes in flight.
    pub fn flight(&self) -> u64 {
        self.nxt - self.una
    }
    /// Returns the oldest message that is not acknowledged as a whole.
    #[inline]
    pub fn first_open(&self) -> Option<FlowId> {
        self.first.map(|message| message.flow)
    }
    /// Returns the messages that are not acknowledged as a whole, in their order.
    fn open(&self) -> impl Iterator<Item = &OpenMessage> {
        self.first.iter().chain(&self.later)
    }
    /// Returns the message of the first byte that is not acknowledged.
    pub fn first_missing(&self) -> Option<FlowId> {
        self.open().find(|message| message.end > self.una).map(|message| message.flow)
    }
    /// Returns whether a message is not acknowledged as a whole.
    pub fn holds(&self, flow: FlowId) -> bool {
        self.open().any(|message| message.flow == flow)
    }
    /// Returns the bytes of a message in flight.
    pub fn flight_of(&self, flow: FlowId) -> u64 {
        let message = self.open().find(|message| message.flow == flow);
        message.map_or(0, |message| message.end.min(self.nxt).saturating_sub(message.start.max(self.una)))
    }
    /// Adds a message after all others.
    pub fn push(&mut self, flow: FlowId, size: u64) {
        let start = self.end;
        self.end += size;
        let message = OpenMessage { flow, start, end: self.end };
        if self.first.is_none() {
            self.first = Some(message);
        } else {
            self.later.push_back(message);
        }
    }
    /// Removes the oldest message if it is acknowledged as a whole.
    #[inline]
    pub fn pop_done(&mut self) -> Option<FlowId> {
        let done = self.first.filter(|message| message.end <= self.una)?;
        self.first = self.later.pop_front();
        Some(done.flow)
    }
    /// Removes a message that is given up. If bytes of it may have been sent, the other messages get
    /// positions that were never used, and all their bytes that are not acknowledged are
    /// retransmitted. Returns whether the message was open.
    pub fn remove(&mut self, flow: FlowId) -> bool {
        let Some(at) = self.open().position(|message| message.flow == flow) else { return false };
        let mut open = take(&mut self.later);
        self.first.into_iter().for_each(|first| open.push_front(first));
        let gone = open.remove(at).expect("found above");
        if gone.start >= self.max {
            // No later message has been sent either.
            let size = gone.end - gone.start;
            open.range_mut(at..).for_each(|message| (message.start, message.end) = (message.start - size, message.end - size));
            self.end -= size;
        } else {
            let (floor, mut sent) = (self.max, 0);
            self.end = floor;
            for message in &mut open {
                let acked = self.una.saturating_sub(message.start);
                let size = message.end - message.start;
                sent += self.max.clamp(message.start + acked, message.end) - (message.start + acked);
                message.start = self.end - acked;
                message.end = message.start + size;
                self.end = message.end;
            }
            (self.floor, self.una, self.nxt, self.max) = (floor, floor, floor, floor + sent);
            (self.acked, self.recovery) = (Ranges::default(), None);
        }
        (self.first, self.later) = (open.pop_front(), open);
        true
    }
    /// Returns when the next packet may leave at `rate`: one gap after the previous packet left.
    pub fn due(&mut self, rate: Rate) -> Time {
        let Some((at, len)) = self.last else { return Time::ZERO };
        if (self.gap.0, self.gap.1) != (len, rate) {
            self.gap = (len, rate, rate.gap(len));
        }
        at.after(self.gap.2)
    }
    /// Returns the position of the next packet and whether its first byte was sent before, if the
    /// bound of the bytes in flight allows a packet.
    pub fn next_position(&self, window: u64) -> Option<(u64, bool)> {
        // Mittal et al. section 3.1: in recovery, lost packets go first. A packet is lost if a later
        // one was acknowledged, or if a timeout found it.
        let lost = self.recovery.and_then(|recovery| {
            let beyond = self.acked.iter().next_back().map_or(0, |range| range.start);
            let end = beyond.max(recovery.lost).min(recovery.until);
            self.acked.holes(recovery.resent.max(self.una)..end).next().map(|hole| hole.start)
        });
        match lost {
            Some(position) => Some((position, true)),
            None if self.nxt < self.end && self.flight() < window => Some((self.nxt, self.nxt < self.max)),
            None => None,
        }
    }
    /// Returns the next packet, if the bound of the bytes in flight allows one. A packet has bytes of
    /// one message.
    pub fn next_piece(&self, config: &RoceConfig, window: u64) -> Option<Piece> {
        let (position, resent) = self.next_position(window)?;
        let message = match &self.first {
            Some(first) if position < first.end => first,
            _ => self.later.get(self.later.partition_point(|message| message.end <= position))?,
        };
        let len = (message.end - position).min(config.mss) as u16;
        let (flow, offset) = (message.flow, position - message.start);
        Some(Piece { flow, offset, position, first: position == self.una, len, resent })
    }
    /// Records that a packet was handed to the NIC.
    pub fn on_sent(&mut self, piece: Piece, wire_bytes: u64, now: Time) {
        self.last = Some((now, wire_bytes));
        let end = piece.position + u64::from(piece.len);
        match &mut self.recovery {
            Some(recovery) if piece.position < self.nxt => recovery.resent = end,
            _ => self.nxt = end,
        }
        self.max = self.max.max(end);
    }
    /// Handles an acknowledgment of all bytes below `next`. Returns whether it is new.
    pub fn on_acked(&mut self, next: u64) -> bool {
        let new = next > self.una;
        if new {
            self.una = next;
            // After going back, bytes that were in flight before may still be acknowledged.
            self.nxt = self.nxt.max(next);
            self.acked.remove_below(next);
            // Section 3.1: recovery ends when all that was sent before it is acknowledged.
            self.recovery = self.recovery.filter(|recovery| next < recovery.until);
        }
        new
    }
    /// Go-back-N: sends everything again from the first missing byte on.
    pub fn go_back(&mut self) {
        self.nxt = self.una;
    }
    /// IRN: handles a NACK, which also acknowledges a packet of at most `mss` bytes: that of `flow`
    /// which lies `beyond` packets after `next`, or after the first one of the flow if that is later.
    /// Returns whether a recovery begins.
    pub fn on_selective(&mut self, flow: FlowId, next: u64, beyond: u64, mss: u64) -> bool {
        let message = self.open().find(|message| message.flow == flow && next >= self.floor).copied();
        if let Some(message) = message {
            let position = next.max(message.start) + beyond * mss;
            if position > self.una {
                self.acked.insert(position..(position + mss).min(message.end));
            }
        }
        let begins = self.recovery.is_none() && self.flight() > 0;
        if begins {
            self.recovery = Some(Recovering { until: self.nxt, resent: self.una, lost: 0 });
        }
        begins
    }
    /// IRN: the first missing packet counts as lost, and with it every packet that was resent
    /// before.
    pub fn on_timeout(&mut self) {
        self.recovery = Some(Recovering { until: self.nxt, resent: self.una, lost: self.una + 1 });
    }
}

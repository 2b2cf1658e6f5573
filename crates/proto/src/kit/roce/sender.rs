//! The sender's side of a queue pair.

use super::options::RoceConfig;
use crate::ranges::Ranges;
use base::{Dur, Rate, Time};

/// A message at its sender.
pub struct MessageSender<S> {
    /// The state of the rate controller.
    pub control: S,
    /// Whether the message is in the queue of those that may send.
    pub ready: bool,
    /// Whether the retransmission timer is armed.
    pub timer: bool,
    /// What the timer of the next packet was last armed for.
    pub armed: Time,
    /// The last round trip; zero before the first ACK.
    pub rtt: Dur,
    size: u64,
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
    /// Its first byte.
    pub offset: u64,
    /// Its length.
    pub len: u16,
    /// Whether its first byte was sent before.
    pub resent: bool,
}

impl<S> MessageSender<S> {
    /// Creates a message without sent bytes.
    pub fn new(size: u64, control: S) -> Self {
        MessageSender {
            control,
            ready: false,
            timer: false,
            armed: Time::ZERO,
            rtt: Dur::ZERO,
            size,
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
    /// Returns whether all bytes are acknowledged.
    pub fn is_done(&self) -> bool {
        self.una == self.size
    }
    /// Returns when the next packet may leave at `rate`: one gap after the previous packet left.
    pub fn due(&mut self, rate: Rate) -> Time {
        let Some((at, len)) = self.last else { return Time::ZERO };
        if (self.gap.0, self.gap.1) != (len, rate) {
            self.gap = (len, rate, rate.gap(len));
        }
        at.after(self.gap.2)
    }
    /// Returns the next packet, if the bound of the bytes in flight allows one.
    pub fn next_piece(&self, config: &RoceConfig, window: u64) -> Option<Piece> {
        // Mittal et al. section 3.1: in recovery, lost packets go first. A packet is lost if a later
        // one was acknowledged, or if a timeout found it.
        let lost = self.recovery.and_then(|recovery| {
            let beyond = self.acked.iter().next_back().map_or(0, |range| range.start);
            let end = beyond.max(recovery.lost).min(recovery.until);
            self.acked.holes(recovery.resent.max(self.una)..end).next().map(|hole| hole.start)
        });
        let (offset, resent) = match lost {
            Some(offset) => (offset, true),
            None if self.nxt < self.size && self.flight() < window => (self.nxt, self.nxt < self.max),
            None => return None,
        };
        Some(Piece { offset, len: (self.size - offset).min(config.mss) as u16, resent })
    }
    /// Records that a packet was handed to the NIC.
    pub fn on_sent(&mut self, piece: Piece, wire_bytes: u64, now: Time) {
        self.last = Some((now, wire_bytes));
        let end = piece.offset + u64::from(piece.len);
        match &mut self.recovery {
            Some(recovery) if piece.offset < self.nxt => recovery.resent = end,
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
    /// IRN: handles a NACK, which also acknowledges the packet of at most `mss` bytes at `offset`.
    /// Returns whether a recovery begins.
    pub fn on_selective(&mut self, offset: u64, mss: u64) -> bool {
        if offset > self.una {
            self.acked.insert(offset..(offset + mss).min(self.size));
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

//! A flow at its receiver: which packets have arrived, which tokens were answered, and which packet
//! the next token requests.

use crate::ranges::Ranges;
use base::Time;

/// What a flow waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// A turn to get a token.
    Ready,
    /// Packets for which it has tokens: all that it needs.
    Resend,
    /// Answers of its source, which has left too many tokens unanswered.
    Downgraded,
    /// Any packet of its source, which has sent none for a long time.
    Parked,
}

/// A flow at its receiver.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// What the flow waits for.
    pub phase: Phase,
    /// Number of packets that have not arrived.
    pub missing: u64,
    /// Number of tokens sent, free ones included.
    pub issued: u64,
    /// Number of tokens at which the wait for missing packets begins.
    pub goal: u64,
    /// When the last token was sent; before the first token, when the flow became known.
    pub issued_at: Time,
    /// When the last packet of the flow arrived.
    pub last_arrival: Time,
    /// The source has reported that it has more flows than it can serve.
    pub blocked: bool,
    /// The largest number of an answered token.
    answered: u64,
    /// The packet after the one that the last token requested.
    next: u64,
    packets: u64,
    received: Ranges,
}

impl Receiver {
    /// Creates a flow of `packets` packets; the first `free` need no tokens.
    pub fn new(packets: u64, free: u64, now: Time) -> Receiver {
        Receiver {
            phase: Phase::Ready,
            missing: packets,
            issued: free,
            goal: packets,
            issued_at: now,
            last_arrival: now,
            blocked: false,
            answered: 0,
            next: free,
            packets,
            received: Ranges::default(),
        }
    }
    /// Handles a packet that answers the token with this number.
    pub fn on_data(&mut self, packet: u64, number: u64) {
        self.missing -= self.received.insert(packet..packet + 1);
        self.answered = self.answered.max(number);
    }
    /// Returns the largest possible number of unanswered tokens.
    pub fn gap(&self) -> u64 {
        self.issued - self.answered
    }
    /// Counts all tokens but `window` as answered.
    pub fn forgive(&mut self, window: u64) {
        self.answered = self.answered.max(self.issued.saturating_sub(window));
    }
    /// Takes a token for the next missing packet after the last one, starting again at the
    /// beginning after the end. Returns its number and the packet.
    pub fn issue(&mut self, now: Time) -> (u64, u64) {
        let behind = self.received.containing(self.next).map_or(self.next, |range| range.end);
        let packet = if behind < self.packets { behind } else { self.received.containing(0).map_or(0, |range| range.end) };
        debug_assert!(packet < self.packets, "a token for a complete flow");
        (self.next, self.issued_at) = (packet + 1, now);
        self.issued += 1;
        (self.issued, packet)
    }
    /// Makes all missing packets need a token again.
    pub fn ask_again(&mut self) {
        self.goal = self.issued + self.missing;
    }
}

//! A flow at its receiver: which packets have arrived, which tokens were answered, and which packet the next token asks for.

use crate::ranges::Ranges;
use base::Time;

/// What a flow waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Its turn.
    Ready,
    /// Packets for which it has tokens: all that it needs.
    Resend,
    /// Answers of its source, which has left too many tokens unanswered.
    Downgraded,
    /// Anything from its source, which has been silent for long.
    Parked,
}

/// A flow at its receiver.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// What it waits for.
    pub phase: Phase,
    /// Packets that have not arrived.
    pub missing: u64,
    /// Tokens that were sent, free ones included.
    pub issued: u64,
    /// The wait for what is missing begins with this number of tokens.
    pub goal: u64,
    /// When the last token was sent; before the first, when the flow became known.
    pub issued_at: Time,
    /// When something of the flow arrived last.
    pub heard: Time,
    /// Its source has reported that it has more flows than it can serve.
    pub blocked: bool,
    /// The largest number of a token that was answered.
    answered: u64,
    /// The packet after the one that the last token asked for.
    next: u64,
    packets: u64,
    received: Ranges,
}

impl Receiver {
    /// A flow of so many packets, of which the first `free` come without being asked for.
    pub fn new(packets: u64, free: u64, now: Time) -> Receiver {
        Receiver {
            phase: Phase::Ready,
            missing: packets,
            issued: free,
            goal: packets,
            issued_at: now,
            heard: now,
            blocked: false,
            answered: 0,
            next: free,
            packets,
            received: Ranges::default(),
        }
    }
    /// A packet has arrived that answers the token of this number.
    pub fn on_data(&mut self, packet: u64, number: u64) {
        self.missing -= self.received.insert(packet..packet + 1);
        self.answered = self.answered.max(number);
    }
    /// How many tokens, at most, are unanswered.
    pub fn gap(&self) -> u64 {
        self.issued - self.answered
    }
    /// Takes all but `window` tokens for answered.
    pub fn forgive(&mut self, window: u64) {
        self.answered = self.answered.max(self.issued.saturating_sub(window));
    }
    /// A token for what is missing behind the last one, from the start again after the end. Returns its number and the packet.
    pub fn issue(&mut self, now: Time) -> (u64, u64) {
        let behind = self.received.containing(self.next).map_or(self.next, |range| range.end);
        let packet = if behind < self.packets { behind } else { self.received.containing(0).map_or(0, |range| range.end) };
        debug_assert!(packet < self.packets, "a token for a flow of which all has arrived");
        (self.next, self.issued_at) = (packet + 1, now);
        self.issued += 1;
        (self.issued, packet)
    }
    /// All that is missing needs a token again.
    pub fn ask_again(&mut self) {
        self.goal = self.issued + self.missing;
    }
}

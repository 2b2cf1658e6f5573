//! Tokens, with which a receiver requests the packets of a flow one by one: those that a sender holds, and
//! those that a receiver has sent.

use crate::ranges::Ranges;
use base::{Dur, Time};
use std::collections::VecDeque;

/// A token: the right to send one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketToken {
    /// When the token expires.
    pub expires: Time,
    /// Number of the token among those of the flow, free ones included, counted from 1.
    pub number: u64,
    /// The packet that the token requests.
    pub packet: u64,
}

/// The tokens that a sender holds for a flow, and the packets that it has sent.
#[derive(Clone, Debug)]
pub struct HeldTokens {
    /// The size of the flow in bytes of payload.
    pub size_bytes: u64,
    /// The size of the flow in packets.
    pub packets: u64,
    /// Packets that the receiver lacked when it sent its last token.
    pub remaining: u64,
    /// Time between the last announcement of the flow and the next.
    pub wait: Dur,
    /// The tokens, the earliest to expire first.
    tokens: VecDeque<PacketToken>,
    sent: Ranges,
}

impl HeldTokens {
    /// Creates a flow of `packets` packets with `free` free tokens, which expire together.
    pub fn new(size_bytes: u64, (packets, free): (u64, u64), expires: Time, wait: Dur) -> HeldTokens {
        let tokens = (0..free).map(|packet| PacketToken { expires, number: packet + 1, packet }).collect();
        HeldTokens { size_bytes, packets, remaining: packets, wait, tokens, sent: Ranges::default() }
    }
    /// Adds a token.
    pub fn add(&mut self, token: PacketToken) {
        // The token usually goes last, except before free tokens and tokens of a receiver with
        // another lifetime.
        let at = self.tokens.partition_point(|held| held.expires <= token.expires);
        self.tokens.insert(at, token);
    }
    /// Discards expired tokens. Returns their number.
    pub fn discard(&mut self, now: Time) -> u64 {
        let expired = self.tokens.partition_point(|held| held.expires < now);
        self.tokens.drain(..expired);
        expired as u64
    }
    /// Takes the token that expires first.
    pub fn take(&mut self) -> Option<PacketToken> {
        self.tokens.pop_front()
    }
    /// Returns the number of tokens that the flow holds.
    pub fn tokens(&self) -> u64 {
        self.tokens.len() as u64
    }
    /// Records a departing packet. Returns whether it was sent before.
    pub fn on_sent(&mut self, packet: u64) -> bool {
        self.sent.insert(packet..packet + 1) == 0
    }
    /// Returns whether every packet was sent at least once.
    pub fn all_sent(&self) -> bool {
        self.sent.bytes() == self.packets
    }
    /// Returns the bytes of full packets that were sent and are not known to have arrived. Tokens
    /// carry how many packets have arrived, not which ones: the last packet counts as the last to
    /// arrive.
    pub fn in_flight_bytes(&self, mss: u64) -> u64 {
        let packets = self.sent.bytes().saturating_sub(self.packets - self.remaining);
        let short = self.packets * mss - self.size_bytes;
        (packets * mss).saturating_sub(if self.sent.containing(self.packets - 1).is_some() { short } else { 0 })
    }
}

/// The tokens that a receiver has sent for a flow, which of them were answered, and which packets have arrived.
#[derive(Clone, Debug)]
pub struct IssuedTokens {
    /// Number of packets that have not arrived.
    pub missing: u64,
    /// Number of tokens sent, free ones included.
    pub issued: u64,
    /// When the last token was sent; before the first token, when the flow became known.
    pub issued_at: Time,
    /// Number of tokens after which each missing packet has had a token.
    enough: u64,
    /// The largest number of an answered token.
    answered: u64,
    /// The packet after the one that the last token requested.
    next: u64,
    packets: u64,
    received: Ranges,
}

impl IssuedTokens {
    /// Creates a flow of `packets` packets; the first `free` need no tokens.
    pub fn new(packets: u64, free: u64, now: Time) -> IssuedTokens {
        IssuedTokens {
            missing: packets,
            issued: free,
            issued_at: now,
            enough: packets,
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
    /// Returns whether each missing packet has had a token since the receiver last asked again.
    pub fn all_issued(&self) -> bool {
        self.issued == self.enough
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
        self.enough = self.issued + self.missing;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_name_missing_packets_in_order_and_start_over() {
        let mut tokens = IssuedTokens::new(4, 1, Time::ZERO);
        let issue = |tokens: &mut IssuedTokens, at| tokens.issue(Time(at));
        assert_eq!([1, 2, 3].map(|at| issue(&mut tokens, at)), [(2, 1), (3, 2), (4, 3)]);
        assert_eq!((tokens.issued, tokens.all_issued(), tokens.missing, tokens.gap(), tokens.issued_at), (4, true, 4, 4, Time(3)));
        // Packets 0 and 2 arrive; token 3 was answered, so that at most one token is open.
        tokens.on_data(0, 1);
        tokens.on_data(2, 3);
        assert_eq!((tokens.missing, tokens.gap()), (2, 1));
        tokens.ask_again();
        assert_eq!((tokens.all_issued(), issue(&mut tokens, 9), issue(&mut tokens, 9)), (false, (5, 1), (6, 3)));
        tokens.forgive(2);
        assert_eq!(tokens.gap(), 2);
    }

    #[test]
    fn held_tokens_are_used_in_the_order_of_expiry() {
        let mut held = HeldTokens::new(2 * 1460 + 1, (3, 2), Time(20), Dur(0));
        held.add(PacketToken { expires: Time(10), number: 3, packet: 2 });
        assert_eq!((held.tokens(), held.take().map(|token| token.number), held.discard(Time(21))), (3, Some(3), 2));
        assert_eq!(([2, 0, 0].map(|packet| held.on_sent(packet)), held.all_sent()), ([false, false, true], false));
        // The last packet has one byte.
        assert_eq!(held.in_flight_bytes(1460), 1461);
        assert!(!held.on_sent(1) && held.all_sent());
    }
}

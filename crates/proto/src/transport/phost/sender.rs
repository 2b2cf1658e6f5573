//! A flow at its sender: the tokens that it holds, and the packets that it has sent.

use crate::ranges::Ranges;
use base::{Dur, Time};
use std::collections::VecDeque;

/// A token: the right to send one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// When the token expires.
    pub expires: Time,
    /// Number of the token among those of the flow, free ones included, counted from 1.
    pub number: u64,
    /// The packet that the token requests.
    pub packet: u64,
}

/// A flow at its sender.
#[derive(Clone, Debug)]
pub struct Sender {
    /// The size of the flow in bytes of payload.
    pub size_bytes: u64,
    /// The size of the flow in packets.
    pub packets: u64,
    /// Packets that the receiver lacked when it sent its last token.
    pub remaining: u64,
    /// Time between the last RTS and the next.
    pub wait: Dur,
    /// The tokens, the earliest to expire first.
    tokens: VecDeque<Token>,
    sent: Ranges,
}

impl Sender {
    /// Creates a flow of `packets` packets with `free` free tokens, which expire together.
    pub fn new(size_bytes: u64, (packets, free): (u64, u64), expires: Time, wait: Dur) -> Sender {
        let tokens = (0..free).map(|packet| Token { expires, number: packet + 1, packet }).collect();
        Sender { size_bytes, packets, remaining: packets, wait, tokens, sent: Ranges::default() }
    }
    /// Adds a token.
    pub fn add(&mut self, token: Token) {
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
    pub fn take(&mut self) -> Option<Token> {
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
    /// Returns the bytes of full packets that were sent and are not known to have arrived. Tokens
    /// carry how many packets have arrived, not which ones: the last packet counts as the last to
    /// arrive.
    pub fn in_flight_bytes(&self, mss: u64) -> u64 {
        let packets = self.sent.bytes().saturating_sub(self.packets - self.remaining);
        let short = self.packets * mss - self.size_bytes;
        (packets * mss).saturating_sub(if self.sent.containing(self.packets - 1).is_some() { short } else { 0 })
    }
}

//! A flow at its sender: the tokens that it holds, and what it has sent.

use crate::ranges::Ranges;
use base::{Dur, Time};
use std::collections::VecDeque;

/// The right to send one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// The token may be used up to this moment.
    pub expires: Time,
    /// Its number among the tokens of the flow, free ones included, from 1 on.
    pub number: u64,
    /// The packet that it asks for.
    pub packet: u64,
}

/// A flow at its sender.
#[derive(Clone, Debug)]
pub struct Sender {
    /// Its size in bytes of payload.
    pub size_bytes: u64,
    /// The same in packets.
    pub packets: u64,
    /// Packets that the receiver lacked when it sent its last token.
    pub remaining: u64,
    /// From the last RTS to the next.
    pub wait: Dur,
    /// The earliest to expire first.
    tokens: VecDeque<Token>,
    sent: Ranges,
}

impl Sender {
    /// A flow of so many packets with so many free tokens, which expire together.
    pub fn new(size_bytes: u64, (packets, free): (u64, u64), expires: Time, wait: Dur) -> Sender {
        let tokens = (0..free).map(|packet| Token { expires, number: packet + 1, packet }).collect();
        Sender { size_bytes, packets, remaining: packets, wait, tokens, sent: Ranges::default() }
    }
    /// Takes a token in.
    pub fn add(&mut self, token: Token) {
        // It is the last but for free tokens, and for tokens of a receiver that gives them another lifetime.
        let at = self.tokens.partition_point(|held| held.expires <= token.expires);
        self.tokens.insert(at, token);
    }
    /// Discards the tokens that have expired. Returns how many.
    pub fn discard(&mut self, now: Time) -> u64 {
        let expired = self.tokens.partition_point(|held| held.expires < now);
        self.tokens.drain(..expired);
        expired as u64
    }
    /// Takes the token that expires first.
    pub fn take(&mut self) -> Option<Token> {
        self.tokens.pop_front()
    }
    /// How many tokens it holds.
    pub fn tokens(&self) -> u64 {
        self.tokens.len() as u64
    }
    /// A packet leaves. Says whether it was sent before.
    pub fn on_sent(&mut self, packet: u64) -> bool {
        self.sent.insert(packet..packet + 1) == 0
    }
    /// Bytes of full packets that were sent and are not known to have arrived. Tokens say how many packets have, not which: the last one is
    /// taken to be the last to arrive.
    pub fn in_flight_bytes(&self, mss: u64) -> u64 {
        let packets = self.sent.bytes().saturating_sub(self.packets - self.remaining);
        let short = self.packets * mss - self.size_bytes;
        (packets * mss).saturating_sub(if self.sent.containing(self.packets - 1).is_some() { short } else { 0 })
    }
}

//! A message at its receiver: the packets that have arrived, and when they are acknowledged.

use std::collections::VecDeque;

/// Packets beyond the first missing one that have arrived: a bit for each number.
#[derive(Clone, Debug, Default)]
struct EarlyBits {
    /// Bits of the numbers from `64 first` on.
    words: VecDeque<u64>,
    first: u64,
}

impl EarlyBits {
    fn word(&self, index: u64) -> u64 {
        let place = index.checked_sub(self.first).and_then(|place| usize::try_from(place).ok());
        place.and_then(|place| self.words.get(place)).copied().unwrap_or(0)
    }
    fn has(&self, number: u64) -> bool {
        self.word(number / 64) >> (number % 64) & 1 == 1
    }
    /// Sets the bit of a number at or above those that were forgotten.
    fn set(&mut self, number: u64) {
        let place = (number / 64 - self.first) as usize;
        if place >= self.words.len() {
            self.words.resize(place + 1, 0);
        }
        self.words[place] |= 1 << (number % 64);
    }
    /// Forgets whole words of numbers below `number`.
    fn forget_below(&mut self, number: u64) {
        while self.first < number / 64 {
            self.words.pop_front();
            self.first += 1;
        }
    }
    /// Returns the bits of 64 numbers from `base` on.
    fn from(&self, base: u64) -> u64 {
        let (index, shift) = (base / 64, base % 64);
        let high = if shift == 0 { 0 } else { self.word(index + 1) << (64 - shift) };
        self.word(index) >> shift | high
    }
}

/// A data packet that has arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    /// Its number.
    pub(super) number: u64,
    /// Its size on the wire.
    pub(super) wire: u64,
    /// Whether it is the last of its message.
    pub(super) last: bool,
    /// Whether it is marked.
    pub(super) marked: bool,
    /// Whether its sender asks for an acknowledgment.
    pub(super) asks: bool,
}

/// The answer to an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// None.
    Nothing,
    /// An ACK whose bitmap ends with the packet, or begins after the first missing one.
    Around,
    /// An ACK whose bitmap begins with the packet.
    From,
}

/// A message at its receiver.
#[derive(Clone, Debug, Default)]
pub(super) struct InMessage {
    /// The first packet that has not arrived.
    next: u64,
    early: EarlyBits,
    /// Packets beyond `next` that have arrived, and whether the last of the message is among them.
    early_count: u64,
    last_is_early: bool,
    /// Bytes that arrived since the last ACK.
    unacked: u64,
    /// Whether some packet has arrived.
    begun: bool,
    /// Whether an ACK is due when all early packets are in order.
    asked: bool,
}

impl InMessage {
    /// Returns the first packet that has not arrived.
    pub(super) fn next(&self) -> u64 {
        self.next
    }
    /// Returns the number of packets beyond the first missing one that have arrived, and whether
    /// the last of the message is among them.
    pub(super) fn early(&self) -> (u64, bool) {
        (self.early_count, self.last_is_early)
    }
    /// Returns whether packet `number` has arrived.
    pub(super) fn has(&self, number: u64) -> bool {
        number < self.next || self.early.has(number)
    }
    /// Returns which of 64 packets from `base` on have arrived (buildSackBitmap).
    pub(super) fn bitmap(&self, base: u64) -> u64 {
        self.early.from(base)
    }

    /// Handles an arrival (UecSink::processData). An ACK is due after `ack_bytes` bytes.
    pub(super) fn on_data(&mut self, packet: Arrival, ack_bytes: u64) -> Reply {
        self.unacked += packet.wire;
        if self.has(packet.number) {
            // The sender does not know what has arrived.
            self.unacked = 0;
            return if packet.marked { Reply::From } else { Reply::Around };
        }
        let mut due = !self.begun || packet.asks || packet.marked;
        self.begun = true;
        self.asked |= packet.asks;
        if packet.number == self.next {
            self.next += 1;
            while self.early_count > 0 && self.early.has(self.next) {
                self.next += 1;
                self.early_count -= 1;
            }
            self.early.forget_below(self.next);
            if self.early_count == 0 && self.asked {
                due = true;
                self.asked = false;
            }
            self.last_is_early &= self.early_count > 0;
        } else {
            self.early.set(packet.number);
            self.early_count += 1;
            self.last_is_early |= packet.last;
        }
        if !due && self.unacked < ack_bytes {
            return Reply::Nothing;
        }
        self.unacked = 0;
        if packet.marked || packet.asks { Reply::From } else { Reply::Around }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets of 1000 bytes; an ACK is due after 4000.
    fn arrive(message: &mut InMessage, number: u64, change: impl FnOnce(&mut Arrival)) -> Reply {
        let mut arrival = Arrival { number, wire: 1000, last: false, marked: false, asks: false };
        change(&mut arrival);
        message.on_data(arrival, 4000)
    }

    #[test]
    fn the_first_packet_and_every_fourth_are_acknowledged() {
        let mut message = InMessage::default();
        let due: Vec<u64> = (0..10).filter(|&number| arrive(&mut message, number, |_| ()) == Reply::Around).collect();
        assert_eq!((due, message.next()), (vec![0, 4, 8], 10));
    }

    #[test]
    fn a_marked_packet_is_acknowledged_at_once_from_its_number_on() {
        let mut message = InMessage::default();
        arrive(&mut message, 0, |_| ());
        assert_eq!(arrive(&mut message, 2, |packet| packet.marked = true), Reply::From);
        assert_eq!(arrive(&mut message, 3, |_| ()), Reply::Nothing);
        // A duplicate is acknowledged whatever it is.
        assert_eq!(arrive(&mut message, 2, |_| ()), Reply::Around);
        assert_eq!(arrive(&mut message, 0, |packet| packet.marked = true), Reply::From);
        assert_eq!((message.next(), message.early()), (1, (2, false)));
    }

    #[test]
    fn a_requested_ack_is_repeated_when_no_packet_is_early() {
        let mut message = InMessage::default();
        arrive(&mut message, 0, |_| ());
        assert_eq!(arrive(&mut message, 3, |packet| packet.asks = true), Reply::From);
        assert_eq!(arrive(&mut message, 1, |_| ()), Reply::Nothing);
        assert_eq!((arrive(&mut message, 2, |_| ()), message.next()), (Reply::Around, 4));
        assert_eq!(arrive(&mut message, 4, |_| ()), Reply::Nothing, "only once");
        // In order, the request is answered at once.
        assert_eq!(arrive(&mut message, 5, |packet| packet.asks = true), Reply::From);
        assert_eq!(arrive(&mut message, 6, |_| ()), Reply::Nothing);
    }

    #[test]
    fn early_packets_are_counted_with_the_last_one() {
        let mut message = InMessage::default();
        arrive(&mut message, 5, |packet| packet.last = true);
        arrive(&mut message, 2, |_| ());
        assert_eq!((message.early(), message.has(5), message.has(4)), ((2, true), true, false));
        for number in [0, 1] {
            arrive(&mut message, number, |_| ());
        }
        assert_eq!((message.next(), message.early()), (3, (1, true)));
        for number in [3, 4] {
            arrive(&mut message, number, |_| ());
        }
        assert_eq!((message.next(), message.early()), (6, (0, false)));
    }

    #[test]
    fn bitmaps_cover_64_packets_from_any_number_on() {
        let mut message = InMessage::default();
        let early = [2, 63, 64, 65, 127, 128, 200];
        for number in early {
            arrive(&mut message, number, |_| ());
        }
        for base in 0..140 {
            let expected = early.iter().filter(|&&n| n >= base && n - base < 64).fold(0, |bits, n| bits | 1u64 << (n - base));
            assert_eq!(message.bitmap(base), expected, "{base}");
        }
        for number in 0..66 {
            arrive(&mut message, number, |_| ());
        }
        assert_eq!((message.next(), message.bitmap(66), message.bitmap(128)), (66, 1 << 61 | 1 << 62, 1));
    }
}

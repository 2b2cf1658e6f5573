//! The headers of UET packets, two words each.

use crate::contract::Cx;
use crate::packet::Packet;
use base::FlowId;

base::header! {
    /// The header of data, of an RTS and of a NACK. A switch or a port keeps it if it trims or
    /// returns the packet.
    pub struct UetData {
        /// The entropy value of the packet; in a NACK, that of the packet that it answers. See
        /// [`UetData::ASKS`].
        tag: u64,
        /// The number of credit quanta up to which the sender wants credit, from the start of the
        /// flow.
        pull_target: i64,
    }
}

impl UetData {
    /// Bit of the tag: the sender asks for an ACK.
    const ASKS: u64 = 1 << 16;
    /// Creates the header of a packet with this entropy value.
    pub(super) fn new(entropy: u16, asks: bool, pull_target: i64) -> UetData {
        UetData { tag: u64::from(entropy) | if asks { Self::ASKS } else { 0 }, pull_target }
    }
    /// Returns the entropy value.
    pub(super) fn entropy(self) -> u16 {
        self.tag as u16
    }
    /// Returns whether the sender asks for an ACK.
    pub(super) fn asks(self) -> bool {
        self.tag & Self::ASKS != 0
    }
}

base::header! {
    /// The header of an ACK, whose offset is the first missing byte.
    pub struct SackWords {
        /// The packets from the base on that have arrived.
        bitmap: u64,
        /// The other fields; see [`Sack`].
        rest: u64,
    }
}

/// The fields of an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sack {
    /// The first missing packet.
    pub(super) next: u64,
    /// The packet that it answers.
    pub(super) answered: u64,
    /// Whether the bitmap begins with that packet. Otherwise it ends with it, or begins after the
    /// first missing packet if that is later.
    pub(super) from: bool,
    /// Whether the answered packet is an RTS, so that the round trip is not measured.
    pub(super) control: bool,
    /// The entropy value of the answered packet.
    pub(super) entropy: u16,
    /// Number of packets beyond the first missing one that have arrived.
    pub(super) early: u64,
    /// Whether the last packet of the message is among them.
    pub(super) last: bool,
    /// The packets from the base on that have arrived.
    pub(super) bitmap: u64,
}

/// Bits of the entropy value, and of each of the two numbers.
const ENTROPY: u32 = 15;
const NUMBER: u32 = 22;
/// The value of the answered packet's number if it is the first missing one.
const MIDDLE: u64 = 1 << (NUMBER - 1);

impl Sack {
    /// Returns the first packet that the bitmap covers (sackBitmapBase).
    pub(super) fn base(&self) -> u64 {
        if self.from { self.answered } else { self.answered.saturating_sub(63).max(self.next + 1) }
    }
    /// Packs the fields, except for `next`.
    pub(super) fn pack(&self) -> SackWords {
        let answered = (self.answered + MIDDLE).saturating_sub(self.next).min(2 * MIDDLE - 1);
        let flags = u64::from(self.from) | u64::from(self.control) << 1 | u64::from(self.last) << 2;
        let numbers = answered << NUMBER | self.early.min(2 * MIDDLE - 1);
        SackWords { bitmap: self.bitmap, rest: (numbers << ENTROPY | u64::from(self.entropy)) << 3 | flags }
    }
    /// Reads the fields of an ACK whose first missing packet is `next`.
    pub(super) fn unpack(words: SackWords, next: u64) -> Sack {
        let flag = |bit: u32| words.rest >> bit & 1 == 1;
        let numbers = words.rest >> (ENTROPY + 3);
        Sack {
            next,
            answered: ((numbers >> NUMBER) + next).saturating_sub(MIDDLE),
            from: flag(0),
            control: flag(1),
            entropy: (words.rest >> 3) as u16 & ((1 << ENTROPY) - 1),
            early: numbers & (2 * MIDDLE - 1),
            last: flag(2),
            bitmap: words.bitmap,
        }
    }
}

/// Returns the path tag of a packet with this entropy value.
pub(super) fn path_tag(entropy: u16, flow: FlowId, cx: &Cx<'_>) -> u16 {
    if cx.paths(flow) > 1 { Packet::BY_PORT + entropy } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::super::message::MOST_AHEAD;
    use super::*;

    #[test]
    fn an_ack_keeps_its_fields() {
        let plain = Sack { next: 0, answered: 0, from: false, control: false, entropy: 0, early: 0, last: false, bitmap: 0 };
        let far = 1 << 40;
        for sack in [
            plain,
            Sack { next: 70, answered: 69, from: true, entropy: (1 << 15) - 1, bitmap: u64::MAX, ..plain },
            Sack { next: far, answered: far + MOST_AHEAD, control: true, early: MOST_AHEAD, ..plain },
            Sack { next: far, answered: far - MOST_AHEAD, last: true, bitmap: 1 << 63, ..plain },
        ] {
            assert_eq!(Sack::unpack(sack.pack(), sack.next), sack);
        }
    }

    /// max(answered - 63, first missing + 1), or the packet itself.
    #[test]
    fn the_bitmap_ends_with_the_packet_or_begins_after_the_hole() {
        let sack = |answered: u64, from: u64| {
            Sack::unpack(SackWords { bitmap: 0, rest: ((answered + MIDDLE - 100) << NUMBER << ENTROPY << 3) | from }, 100)
        };
        assert_eq!([50, 100, 163, 164, 165, 300].map(|answered| sack(answered, 0).base()), [101, 101, 101, 101, 102, 237]);
        assert_eq!([50, 100, 300].map(|answered| sack(answered, 1).base()), [50, 100, 300]);
    }

    #[test]
    fn data_names_its_entropy_value_and_asks() {
        let header = UetData::new(32_767, true, -5);
        assert_eq!((header.entropy(), header.asks(), header.pull_target), (32_767, true, -5));
        assert!(!UetData::new(1, false, 0).asks());
    }
}

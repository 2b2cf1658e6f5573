//! The contents of an ACK, and their encoding in a packet.

use crate::packet::{Ext, Kind, Packet};
use base::{Dur, FlowId, Slab, Time};
use std::ops::Range;

/// The fields of a segment that its ACK echoes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Echo {
    /// By default word 0 of the segment's header, as the ports on the path left it. The sender sets
    /// it to zero, unless it names a subflow.
    pub feedback: u64,
    /// When the segment was handed to the NIC.
    pub sent_at: Time,
    /// Whether its payload was sent before.
    pub resent: bool,
}

impl Echo {
    /// Returns the echo of `segment`.
    #[inline]
    pub fn of(segment: &Packet) -> Echo {
        Echo { feedback: segment.words[0], sent_at: segment.sent_at, resent: segment.has(Packet::RETX) }
    }
    /// Writes the echo into an ACK.
    #[inline]
    pub fn write(self, ack: &mut Packet) {
        ack.words = [self.feedback, self.sent_at.ps()];
        ack.flags |= u16::from(self.resent) * Packet::RETX;
    }
    /// Reads the echo in an ACK.
    #[inline]
    pub fn read(ack: &Packet) -> Echo {
        Echo { feedback: ack.words[0], sent_at: Time(ack.words[1]), resent: ack.has(Packet::RETX) }
    }
}

/// The contents of an ACK without its SACK blocks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Answer {
    /// All bytes below have arrived.
    pub next: u64,
    pub echo: Echo,
    pub ece: bool,
    /// At the sender: time between the arrival of the ACK and its processing.
    pub waited: Dur,
}

impl Answer {
    /// Returns an ACK with these contents and blocks.
    #[inline(always)]
    pub fn packet(self, flow: FlowId, header: u16, blocks: &[Range<u64>], ext: &mut Slab<Ext>) -> Packet {
        let mut ack = Packet::new(flow, Kind::ACK, header);
        ack.offset = self.next;
        ack.flags = u16::from(self.ece) * Packet::ECE;
        self.echo.write(&mut ack);
        if !blocks.is_empty() {
            Blocks::write(blocks, &mut ack, ext);
        }
        ack
    }
}

base::header! {
    /// The SACK blocks of an ACK, in the extension slab. An empty block means no block.
    pub struct Blocks {
        /// See [`Echo::feedback`], whose place in the packet the handle takes.
        feedback: u64,
        /// The block with the segment that caused the ACK (RFC 2018 section 4), unless that segment
        /// advanced the ACK.
        start_0: u64,
        /// End of the first block.
        end_0: u64,
        /// The previously reported block.
        start_1: u64,
        /// End of the second block.
        end_1: u64,
        /// The block reported before the second.
        start_2: u64,
        /// End of the third block.
        end_2: u64,
    }
}

/// Largest number of SACK blocks in an ACK: three fit next to time stamps, which every ACK has (RFC
/// 2018 section 3).
pub(super) const MAX_BLOCKS: usize = 3;

impl Blocks {
    /// Writes up to three blocks, the newest first, into an ACK that has its [`Echo`]. They
    /// lengthen the ACK.
    pub fn write(blocks: &[Range<u64>], ack: &mut Packet, ext: &mut Slab<Ext>) {
        let edges = |i: usize| blocks.get(i).map_or((0, 0), |block| (block.start, block.end));
        let [(start_0, end_0), (start_1, end_1), (start_2, end_2)] = [edges(0), edges(1), edges(2)];
        let feedback = ack.words[0];
        ack.set_ext(Blocks { feedback, start_0, end_0, start_1, end_1, start_2, end_2 }, ext);
        // RFC 2018 section 3: eight bytes per block and two for the option, in whole words.
        ack.wire_len += 4 + 8 * blocks.len() as u16;
    }
    /// Returns the blocks of an ACK, the newest first.
    pub fn ranges(&self) -> impl Iterator<Item = Range<u64>> {
        let edges = [(self.start_0, self.end_0), (self.start_1, self.end_1), (self.start_2, self.end_2)];
        edges.into_iter().map(|(start, end)| start..end).filter(|block| !block.is_empty())
    }
}

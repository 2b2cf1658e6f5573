//! ConWeave's header between leaves, and its timestamps.

use base::{Dur, Time};
use proto::Packet;

/// The header of a packet between two leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeaveHeader {
    /// The index of the path that the packet takes.
    pub path: u8,
    /// The epoch of the flow, modulo [`EPOCHS`].
    pub epoch: u8,
    /// The role of the packet in its epoch.
    pub mark: WeaveMark,
    /// When the sending leaf sent the packet; for rerouted packets, when it sent the TAIL.
    pub stamp: u16,
}

/// The role of a packet in its epoch (Table 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeaveMark {
    /// Data on the epoch's first path.
    Plain,
    /// The first packet of the epoch (RTT_REQUEST). The other leaf answers it.
    Request,
    /// The last packet on the epoch's first path (TAIL). The other leaf answers it.
    Tail,
    /// A packet on the epoch's second path (REROUTED).
    Rerouted,
}

/// Number of epochs that headers can distinguish: a header has two bits for the epoch.
pub const EPOCHS: u8 = 4;

/// Largest number of paths between two leaves: a header has one byte for the path, which is 0 in
/// packets without a header.
pub const MOST_PATHS: u32 = 255;

/// Number of bits of a timestamp.
const STAMP_BITS: u32 = 12;
const STAMP_MASK: u16 = (1 << STAMP_BITS) - 1;

impl WeaveHeader {
    /// Writes the header into a packet.
    pub fn write(self, packet: &mut Packet) {
        let mark = match self.mark {
            WeaveMark::Plain => 0,
            WeaveMark::Request => 1,
            WeaveMark::Tail => 2,
            WeaveMark::Rerouted => 3,
        };
        packet.path_tag = u16::from(self.epoch) << 14 | mark << STAMP_BITS | self.stamp;
        packet.flags = packet.flags & !Packet::ROUTER_BITS | (u16::from(self.path) + 1) << Packet::ROUTER_SHIFT;
    }
    /// Removes the header from a packet. Returns `None` if the packet has no header.
    pub fn take(packet: &mut Packet) -> Option<WeaveHeader> {
        let path = ((packet.flags >> Packet::ROUTER_SHIFT) as u8).checked_sub(1)?;
        packet.flags &= !Packet::ROUTER_BITS;
        let tag = std::mem::take(&mut packet.path_tag);
        let mark = match tag >> STAMP_BITS & 3 {
            0 => WeaveMark::Plain,
            1 => WeaveMark::Request,
            2 => WeaveMark::Tail,
            _ => WeaveMark::Rerouted,
        };
        Some(WeaveHeader { path, epoch: (tag >> 14) as u8, mark, stamp: tag & STAMP_MASK })
    }
}

/// The clock of timestamps, which wrap around.
#[derive(Clone, Copy, Debug)]
pub struct StampClock {
    unit: Dur,
}

impl StampClock {
    /// Returns a clock whose timestamps wrap around after at least `range`.
    pub fn new(range: Dur) -> StampClock {
        StampClock { unit: Dur(range.0.div_ceil(u64::from(STAMP_MASK)).max(1)) }
    }
    /// Returns the timestamp of a time.
    pub fn stamp(self, now: Time) -> u16 {
        (now.ps() / self.unit.0) as u16 & STAMP_MASK
    }
    /// Returns the time from one timestamp to a later one: at least the true time, and at most two
    /// units more.
    pub fn gap(self, from: u16, to: u16) -> Dur {
        self.unit * (u64::from(to.wrapping_sub(from) & STAMP_MASK) + 1)
    }
}

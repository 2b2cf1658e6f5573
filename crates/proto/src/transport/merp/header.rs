//! Headers, kinds and classes of MERP's packets (sections 4.1 and 4.2, Table 2).

use crate::flow::Flow;
use crate::packet::{Kind, Packet};
use base::Fraction;
use std::ops::Range;

base::choice! {
    /// How the expected rate travels between ports.
    pub enum EsrSync {
        /// Downstream in the packet, upstream echoed by the sender in a separate field: recovers
        /// one round trip after contention ends.
        Fresh = "fresh",
        /// The sender echoes into the same field, so that an expected rate can only decrease: the
        /// literal reading of Alg. 1.
        Sticky = "sticky",
        /// Downstream only, no echo.
        Downstream = "downstream",
        /// Not at all.
        None = "none",
    }
}

/// Probe of a waiting flow (DET).
pub const DET: Kind = Kind(Kind::OWN);
/// Answer to a probe (DETACK).
pub const DETACK: Kind = Kind(Kind::OWN + 1);
/// Answer to a probe that was granted enough for DATA (BOOST).
pub const BOOST: Kind = Kind(Kind::OWN + 2);

/// Classes of Table 2, strict priority.
pub(super) const HIGH: u8 = 0;
pub(super) const MIDDLE: u8 = 1;
pub(super) const LOW: u8 = 3;
/// The class of flows that overflowed a table (section 4.4): no other packet has it.
pub const OVERFLOW: u8 = 2;

base::header! {
    /// The header of SYN, DATA and DET (section 4.1), in the extension slab. The flow's size is
    /// metadata.
    pub struct Header {
        /// Actual sending rate, bit/s: starts at the NIC's, lowered by every port.
        asr_bps: u64,
        /// Size / expected sending rate, ps: the largest value of the ports passed so far.
        expected_ps: u64,
        /// The value in the newest ACK.
        expected_echo_ps: u64,
        /// Detecting-rate threshold, bit/s: lowered by ports slower than the NIC.
        theta_bps: u64,
        /// How long the sender takes to use a grant: its round trip, ps.
        rtt_ps: u64,
        /// See [`Header::paused`] and [`Header::is_paused_by_other_port`].
        pauses: u64,
        /// See [`Header::theta_share`], [`Header::ports`], [`Header::REROUTE`], [`UNKNOWN`] and [`STATELESS`].
        bits: u64,
    }
}

base::header! {
    /// The header of SYNACK, DATAACK, DETACK and BOOST: copied from the packet that they answer
    /// (section 4.2).
    pub struct Answer {
        /// Granted rate, bit/s.
        asr_bps: u64,
        /// Size / expected sending rate on the whole path, ps.
        expected_ps: u64,
        /// Detecting-rate threshold of the path, bit/s.
        theta_bps: u64,
        /// When the answered packet was handed to the NIC, ps.
        tx_time_ps: u64,
        /// The ports that pause the flow: see [`Header::paused`].
        paused: u32,
        /// Payload offset of the answered packet.
        acked: u64,
        /// [`UNKNOWN`], [`STATELESS`].
        bits: u64,
    }
}

/// Bit of both headers: a port did not know the flow.
pub const UNKNOWN: u64 = 1;
/// Bit of a SYN and its SYNACK: the flow table of a port is full.
pub const STATELESS: u64 = 4;

impl Header {
    /// Bit: the sender requests another path.
    pub const REROUTE: u64 = 2;

    /// Returns the number of ports that the packet has passed.
    #[inline]
    pub fn ports(&self) -> u32 {
        (self.bits >> 8) as u32 & 0xff
    }
    /// Returns the ports passed so far that pause the flow: bit i for the i-th port of the path,
    /// the last bit for all further ports.
    #[inline]
    pub fn paused(&self) -> u32 {
        self.pauses as u32
    }
    /// Returns whether a port other than the current one pauses the flow: an earlier port by this
    /// packet, or a later port by the newest ACK.
    #[inline]
    pub fn is_paused_by_other_port(&self) -> bool {
        self.paused() != 0 || self.pauses >> 32 >> self.ports() > 1
    }
    /// Records that the packet leaves a port, and whether that port pauses the flow.
    #[inline]
    pub fn leave(&mut self, pauses: bool) {
        self.pauses |= u64::from(pauses) << self.ports();
        if self.ports() + 1 < u32::BITS {
            self.bits += 1 << 8;
        }
    }
    /// Returns the threshold as a share of the sender's NIC rate, rounded up.
    #[inline]
    pub fn theta_share(&self) -> Fraction {
        Fraction(self.bits >> 32)
    }
}

/// Returns the bytes of the flow in a DATA packet, counted on the wire: one header per packet from
/// the start of the flow on.
pub fn wire_span(packet: &Packet, flow: &Flow, header_bytes: u16) -> Range<u64> {
    let payload = u64::from(packet.payload);
    let to = packet.offset + payload;
    // All packets but the last are full and start at multiples of their payload.
    let end = if to >= flow.size_bytes { flow.size_wire_bytes } else { to + to / payload * u64::from(header_bytes) };
    end - u64::from(packet.wire_len)..end
}

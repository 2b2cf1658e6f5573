//! The headers of STAM, and its counters.

use base::registry::Counter;

base::header! {
    /// The header of a data packet: the state of its flow at the sender.
    pub struct State {
        /// Bytes sent, up to the end of this packet.
        sent: u64,
        /// Bytes after this packet, for a flow with a deadline; zero for other flows, whose size is
        /// not known.
        left: u64,
        /// The deadline in picoseconds of the run; [`NO_DEADLINE`] if the flow has none.
        deadline: u64,
        /// The window in bytes.
        window: u64,
        /// The weighted round trip (eq. 3) in picoseconds.
        rtt: u64,
    }
}

base::header! {
    /// The header of an ACK: what the receiver orders for the flow.
    pub struct Order {
        /// The class of the flow, counted from 0, or [`END`].
        class: u8,
    }
}

/// Deadline of a flow without a deadline.
pub(super) const NO_DEADLINE: u64 = u64::MAX;
/// Class that orders the sender to give the flow up.
pub(super) const END: u8 = u8::MAX;

/// Counters of a flow, by its sender and by its receiver.
pub(super) const COUNTERS: [Counter; 4] = [
    Counter {
        name: "las_packets",
        unit: "packets",
        about: "Data packets whose class was set by bytes sent, before a receiver assigned one.",
    },
    Counter { name: "class_changes", unit: "changes", about: "Times that an ACK changed the class of the flow." },
    Counter {
        name: "decisions",
        unit: "decisions",
        about: "Times that a marked packet of the flow made the receiver assign classes to all its flows.",
    },
    Counter { name: "ended", unit: "flows", about: "1 if the receiver ended the flow." },
];
/// Indices into [`COUNTERS`].
pub(super) const LAS_PACKETS: usize = 0;
pub(super) const CLASS_CHANGES: usize = 1;
pub(super) const DECISIONS: usize = 2;
pub(super) const ENDED: usize = 3;

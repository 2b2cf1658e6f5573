//! The headers of STAM, and what it counts.

use base::registry::Counter;

base::header! {
    /// What a sender says of a flow in each data packet.
    pub struct State {
        /// Bytes up to the end of the packet: what the flow has sent.
        sent: u64,
        /// Bytes behind the packet, of a flow with a deadline; zero of another one, whose size nobody knows.
        left: u64,
        /// The deadline in picoseconds of the run, [`NO_DEADLINE`] without one.
        deadline: u64,
        /// The window in bytes.
        window: u64,
        /// The weighted round trip (eq. 3) in picoseconds.
        rtt: u64,
    }
}

base::header! {
    /// What a receiver wants of a flow, in an ACK.
    pub struct Order {
        /// The class of the flow, counted from 0, or [`END`].
        class: u8,
    }
}

/// In place of a deadline.
pub(super) const NO_DEADLINE: u64 = u64::MAX;
/// In place of a class: the sender is to give the flow up.
pub(super) const END: u8 = u8::MAX;

/// What is counted of a flow, by its sender and by its receiver.
pub(super) const COUNTERS: [Counter; 4] = [
    Counter {
        name: "las_packets",
        unit: "packets",
        about: "Data packets sent in a class by bytes sent, before a receiver gave one.",
    },
    Counter { name: "class_changes", unit: "changes", about: "How often an ACK gave the flow a class other than the one before." },
    Counter {
        name: "decisions",
        unit: "decisions",
        about: "How often a marked packet of the flow had its receiver class all its flows.",
    },
    Counter { name: "ended", unit: "flows", about: "1 if the receiver had the flow given up." },
];
/// Places among [`COUNTERS`].
pub(super) const LAS_PACKETS: usize = 0;
pub(super) const CLASS_CHANGES: usize = 1;
pub(super) const DECISIONS: usize = 2;
pub(super) const ENDED: usize = 3;

//! Statistics and rarely used port state of a link. They are separate from the link's own cache
//! line, which every hop touches.

use crate::spec::{Fifo, LinkSpec};
use base::{Dur, Hold, Time};

/// Statistics of a link and its port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Packets put on the wire.
    pub tx_packets: u64,
    /// Bytes of these packets.
    pub tx_bytes: u64,
    /// Packets delivered at the far end.
    pub delivered: u64,
    /// Packets dropped at the port.
    pub drops: u64,
    /// Bytes of these packets.
    pub drop_bytes: u64,
    /// Largest number of bytes that waited at any time.
    pub max_queue_bytes: u64,
    /// Integral of waiting bytes over time, in byte times 1024 ps: by Little's law the sum over
    /// packets of bytes times waiting time.
    pub queue_area: u64,
    /// Packets lost in transmission or on the wire when the link went down; they are among `tx_packets`.
    pub lost_sent: u64,
    /// Packets lost at the port: they waited when the link went down, or were sent while it was down.
    pub lost_unsent: u64,
    /// Packets marked.
    pub marks: u64,
    /// Remaining time of transmissions that were cut off when the link went down.
    pub(crate) cut: Dur,
    /// Port state, stored here because the link's own cache line is full.
    pub(crate) port: PortState,
    /// The ring's 32-bit counters when they were last added to `tx_packets` and `delivered`.
    pub(crate) carried: (u32, u32),
}

/// The state of a port in addition to the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PortState {
    /// First-in first-out: the exact limit and threshold.
    Fifo(Fifo),
    /// Served lazily: when the last packet arrived that waited with no other packet in the queue.
    AloneSince(Time),
    /// Shaped: when the port is served next.
    Shaped(Shaping),
}

impl Default for PortState {
    fn default() -> Self {
        PortState::AloneSince(Time::ZERO)
    }
}

/// When a shaped port is served next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shaping {
    /// No waiting packet may start before this time. The length is valid while the transmitter is
    /// idle.
    pub hold: Hold,
    /// The time in the link's leaf while the wire is empty.
    pub due: Time,
}

impl LinkStats {
    /// Returns the statistics of a new link.
    pub(crate) fn new(spec: &LinkSpec) -> LinkStats {
        let port = match spec.fifo {
            Some(fifo) => PortState::Fifo(fifo),
            None if spec.shaped => PortState::Shaped(Shaping { hold: Hold { until: Time::ZERO, wire_len: 0 }, due: Time::MAX }),
            None => PortState::default(),
        };
        LinkStats { port, ..LinkStats::default() }
    }
    /// Returns when a shaped port is served next.
    #[inline(always)]
    pub(crate) fn shaping(&mut self) -> &mut Shaping {
        let PortState::Shaped(shaping) = &mut self.port else { unreachable!("not shaped") };
        shaping
    }
    /// Returns the time for the leaf of a link whose wire is empty.
    pub(crate) fn due(&self) -> Time {
        if let PortState::Shaped(shaping) = self.port { shaping.due } else { Time::MAX }
    }
    /// Returns the time before which no waiting packet may start.
    pub(crate) fn not_before(&self) -> Time {
        if let PortState::Shaped(shaping) = self.port { shaping.hold.until } else { Time::ZERO }
    }
    /// Counts the waiting time of a packet.
    #[inline(always)]
    pub fn waited(&mut self, bytes: u32, wait: Dur) {
        self.queue_area += waited(bytes, wait);
    }
    /// Counts a dropped packet.
    pub fn dropped(&mut self, bytes: u32) {
        self.drops += 1;
        self.drop_bytes += u64::from(bytes);
    }
}

/// Returns what a packet adds to `queue_area`.
#[inline(always)]
pub fn waited(bytes: u32, wait: Dur) -> u64 {
    u64::from(bytes) * (wait.0 >> 10)
}

//! The breakdown of a flow's completion time.

use crate::outcome::FlowRow;
use base::{LinkId, Time};
use proto::Timeout;
use std::collections::BTreeMap;

/// A part of a flow's completion time: the activity on which an interval of the time was spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimePart {
    /// The exchange of control packets, until the first reply reached the sender.
    Handshake,
    /// The sender had bytes and did not send them: its window was full, its pacer waited, or the
    /// receiver had not granted them.
    Wait,
    /// Waiting in the queue of a link's port; at the sender's NIC, behind packets of other flows.
    Queue(LinkId),
    /// Waiting at the port of a link while the far end of the link had paused the port.
    Paused(LinkId),
    /// Waiting in the switch before the port of a link: the router held the packet until the packets before
    /// it had arrived.
    Reordering(LinkId),
    /// Transmission onto a link. At the sender's NIC also that of the flow's earlier packets.
    Transmission,
    /// Propagation on the wire, and processing in hosts that have a delay.
    Propagation,
    /// From one transmission of bytes to the next transmission of the same bytes.
    Retransmission(LossCause),
}

/// Why bytes were retransmitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LossCause {
    /// The timer whose expiry caused the retransmission; `None` if replies of the receiver caused it.
    pub timer: Option<Timeout>,
    /// The port that dropped or trimmed the packet, or whose link lost it; `None` if the packet was not
    /// lost.
    pub port: Option<LinkId>,
}

impl TimePart {
    /// Returns the name of the part in tables and figures, without the port.
    pub fn name(self) -> &'static str {
        match self {
            TimePart::Handshake => "handshake",
            TimePart::Wait => "pacing or window",
            TimePart::Queue(_) => "queue",
            TimePart::Paused(_) => "paused",
            TimePart::Reordering(_) => "reordering",
            TimePart::Transmission => "transmission",
            TimePart::Propagation => "propagation",
            TimePart::Retransmission(_) => "retransmission",
        }
    }
    /// Returns the port of the queue, of the pause or behind the reordering, or the port where the packet was
    /// lost.
    pub fn port(self) -> Option<LinkId> {
        match self {
            TimePart::Queue(link) | TimePart::Paused(link) | TimePart::Reordering(link) => Some(link),
            TimePart::Retransmission(loss) => loss.port,
            _ => None,
        }
    }
    /// Returns the timer whose expiry the sender waited for before a retransmission.
    pub fn timer(self) -> Option<Timeout> {
        match self {
            TimePart::Retransmission(loss) => loss.timer,
            _ => None,
        }
    }
}

/// An interval of a flow's completion time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The part to which the interval belongs.
    pub part: TimePart,
    /// Start of the interval.
    pub begin: Time,
    /// End of the interval.
    pub end: Time,
}

/// The breakdown of a flow's completion time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breakdown {
    /// The flow.
    pub flow: FlowRow,
    /// Intervals without gaps, from the start of the flow to its finish.
    pub spans: Vec<Span>,
}

impl Breakdown {
    /// Returns the picoseconds of each part. They sum to the completion time.
    pub fn totals(&self) -> Vec<(TimePart, u64)> {
        let mut totals: BTreeMap<TimePart, u64> = BTreeMap::new();
        for span in &self.spans {
            *totals.entry(span.part).or_default() += (span.end - span.begin).0;
        }
        totals.into_iter().collect()
    }
}

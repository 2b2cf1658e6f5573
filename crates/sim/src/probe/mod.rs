//! Probes watch transmissions, drops and failures of links, and cost nothing when off.
//!
//! Every method has an empty inlined default and [`Off`] overrides none, so a run without probes is compiled without them.

use base::{LinkId, Time};
use proto::Packet;

mod packets;
pub use packets::{PacketTrace, Seen};

/// Watches a run.
pub trait Probe: Sized {
    /// Whether the probe must see every start of transmission at its time, so that no packet may be put on a wire ahead of its time.
    const WATCHES: bool = false;
    /// The transmission of a packet on `link` starts. The call may come after calls for later events of other links.
    #[inline(always)]
    fn on_start(&mut self, _link: LinkId, _start: Time, _packet: &Packet) {}
    /// `link` goes down: transmissions on it end now, and planned later transmissions do not start.
    #[inline(always)]
    fn on_link_down(&mut self, _link: LinkId, _now: Time) {}
    /// What two probes of parts of one run have seen.
    fn join(self, other: Self) -> Self;
    /// A packet is dropped at the port of `link`, or lost on the link.
    #[inline(always)]
    fn on_drop(&mut self, _link: LinkId, _now: Time, _packet: &Packet) {}
}

/// Watches nothing.
#[derive(Clone, Default)]
pub struct Off;
impl Probe for Off {
    fn join(self, _other: Self) -> Self {
        self
    }
}

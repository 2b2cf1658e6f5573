//! Probes watch transmissions, drops and failures of links, and cost nothing when off.
//!
//! Every method that watches has an empty inlined default, and [`Off`] overrides none of them. So a run
//! without probes is compiled without their calls.

use base::{LinkId, Time};
use proto::Packet;

mod packets;
pub use packets::{PacketTrace, Seen};

/// A probe that watches a run.
pub trait Probe: Sized {
    /// Whether the probe must see every start of a transmission when it happens. Then the engine puts no
    /// packet on a wire ahead of time.
    const WATCHES: bool = false;
    /// Called when the transmission of a packet on `link` starts. Calls for later events of other links may
    /// come first.
    #[inline(always)]
    fn on_start(&mut self, _link: LinkId, _start: Time, _packet: &Packet) {}
    /// Called when `link` goes down: its transmissions end now, and later transmissions do not start.
    #[inline(always)]
    fn on_link_down(&mut self, _link: LinkId, _now: Time) {}
    /// Joins the probes of two parts of one run.
    fn join(self, other: Self) -> Self;
    /// Called when a packet is dropped at the port of `link`, or lost on the link.
    #[inline(always)]
    fn on_drop(&mut self, _link: LinkId, _now: Time, _packet: &Packet) {}
}

/// The probe that watches nothing.
#[derive(Clone, Default)]
pub struct Off;
impl Probe for Off {
    fn join(self, _other: Self) -> Self {
        self
    }
}

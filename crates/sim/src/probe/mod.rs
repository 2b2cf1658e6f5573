//! Room: probes. They watch what crosses the boundaries of machines, and cost nothing when off.
//!
//! Every method has an empty inlined default and [`Off`] overrides none, so a run without probes is compiled without them.

use base::{LinkId, Time};
use proto::Packet;

mod packets;
pub use packets::{Packets, Seen};

/// Watches a run.
pub trait Probe {
    /// It must see every start as it is: no packet may be put on a wire ahead of its time.
    const WATCHES: bool = false;
    /// The transmission of a packet on `link` starts. Called when that is decided, which may be after later events of other links.
    #[inline(always)]
    fn on_start(&mut self, _link: LinkId, _start: Time, _packet: &Packet) {}
    /// `link` goes down: transmissions on it end here, and those that were to start later never do.
    #[inline(always)]
    fn on_link_down(&mut self, _link: LinkId, _now: Time) {}
    /// A packet is dropped at the port of `link`, or lost with it.
    #[inline(always)]
    fn on_drop(&mut self, _link: LinkId, _now: Time, _packet: &Packet) {}
}

/// Watches nothing.
pub struct Off;
impl Probe for Off {}

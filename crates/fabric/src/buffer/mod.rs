//! Room: buffers. What the ports of one switch share: may a packet wait at one of them, and is the neighbour that sent it to pause?
//!
//! A buffer holds what waits at all ports of its switch; packets in transmission do not count, as everywhere. It is asked before the
//! discipline of the port, whose own limit holds beside it, and all ports of the switch are up to date then. A packet that finds its port idle
//! does not wait and is not asked about.

use crate::net::Link;
use crate::queue::Backlog;
use base::params::Problem;
use base::{Bytes, Limit};
use proto::Packet;

/// A buffer: the machine of one switch.
pub trait Buffer {
    /// Whether `packet` may wait at a port at which `port` waits, while `all` waits at the whole switch. Otherwise the packet is dropped.
    fn admits(&mut self, packet: &Packet, place: Place, port: Backlog, all: Backlog) -> bool;
    /// A packet that was admitted waits no longer: its transmission starts, or it is lost. Only where the buffer [pauses](Buffer::pauses).
    fn on_leave(&mut self, _packet: &Packet, _place: Place) {}
    /// The link of a port has died, and what the neighbour was told with it.
    fn on_link_down(&mut self, _port: u8) {}
    /// Whether it ever has neighbours pause. Then each packet that comes is asked about, also one that finds its port idle.
    fn pauses(&self) -> bool {
        false
    }
    /// What it has to tell a neighbour next.
    fn next_pause(&mut self) -> Option<Pause> {
        None
    }
    /// Packets that it has refused although it promises to have room for them while no link fails: none, or its headroom is too small.
    fn broken_promises(&self) -> u64 {
        0
    }
    /// The neighbours that pause, by port, and the class: the departure of a packet may have them go on.
    fn paused(&self) -> &[(u8, u8)] {
        &[]
    }
    /// Which of them could not go on even if every packet left but those that wait at a port in a class for which `stuck` is true.
    fn stay_paused(&self, _stuck: &dyn Fn(u8, u8) -> bool) -> Vec<(u8, u8)> {
        Vec::new()
    }
    /// Bytes that wait at a port and came in on another, in a class.
    fn waiting(&self, _from: (u8, u8), _to: u8) -> u64 {
        0
    }
    /// Whether a run ends when switches wait for each other for ever.
    fn ends_at_deadlock(&self) -> bool {
        false
    }
    /// What one port may hold while nothing waits at the others, before packets are dropped. Where neighbours pause there is no limit.
    fn most(&self) -> Limit {
        Limit::Unlimited
    }
}

/// Where a packet is in a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The port that it came in on; `None`: the switch has made it. Only buffers that [pause](Buffer::pauses) are told.
    pub from: Option<u8>,
    /// The port at which it waits.
    pub to: u8,
    /// Its class there.
    pub class: u8,
}

/// What a neighbour is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// The port that leads to it.
    pub port: u8,
    /// Which of its packets are meant.
    pub class: u8,
    /// Whether it is to pause, or to go on.
    pub on: bool,
}

/// Bytes on the wire of what tells it: the least Ethernet frame.
pub const ORDER_BYTES: u16 = 64;

/// What a buffer knows from configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Env<'a> {
    /// Largest packet on the wire.
    pub mtu_bytes: u16,
    /// The links that leave the switch, by port.
    pub links: &'a [Link],
}

/// The problem with a `total` that never admits a full packet, if it is one.
fn check_total(total: Limit, env: Env<'_>) -> Vec<Problem> {
    let mtu = Bytes(u64::from(env.mtu_bytes));
    let problem = || Problem {
        key: "total",
        message: format!("`{total}` holds no packet of {mtu}: none could ever wait"),
        hint: format!("write at least `1pkt` or `{mtu}`"),
    };
    total.exceeded_by(1, mtu.0).then(problem).into_iter().collect()
}

pub mod complete;
pub mod dynamic;
pub mod pfc;

base::registry! {
    room AnyBuffer: Buffer, env Env<'_>;
    named "buffer", "buffers", "buffer": "what the ports of a switch share";
    entries { complete: Complete, dynamic: Dynamic, pfc: Pfc }
    methods {
        fn admits(&mut self, packet: &Packet, place: Place, port: Backlog, all: Backlog) -> bool;
        fn on_leave(&mut self, packet: &Packet, place: Place);
        fn on_link_down(&mut self, port: u8);
        fn pauses(&self) -> bool;
        fn next_pause(&mut self) -> Option<Pause>;
        fn broken_promises(&self) -> u64;
        fn paused(&self) -> &[(u8, u8)];
        fn stay_paused(&self, stuck: &dyn Fn(u8, u8) -> bool) -> Vec<(u8, u8)>;
        fn waiting(&self, from: (u8, u8), to: u8) -> u64;
        fn ends_at_deadlock(&self) -> bool;
        fn most(&self) -> Limit;
    }
    statics {
        /// How many of the counters in its META it has, for each port.
        fn counters() -> usize;
    }
}

#[cfg(test)]
mod tests {
    /// Where a packet is, for buffers to which all places are alike.
    pub(super) const PLACE: super::Place = super::Place { from: Some(0), to: 1, class: 0 };
}

//! Room: buffers. The memory that the ports of one switch share: it decides whether a packet may
//! wait at a port, and whether the neighbour that sent it must pause.
//!
//! A buffer holds the waiting packets of all ports of its switch; packets in transmission do not
//! count. It is asked before the discipline of the port, whose own limit applies as well. All ports
//! of the switch are up to date at that time. The buffer is not asked about a packet that finds its
//! port idle, since this packet does not wait.

use crate::net::Link;
use crate::queue::Backlog;
use base::params::Problem;
use base::{Bytes, Limit};
use proto::Packet;

/// A buffer: the state machine of one switch.
pub trait Buffer {
    /// Returns whether `packet` may wait at a port whose backlog is `port`, in a switch whose
    /// backlog is `all`. Otherwise the packet is dropped. Buffers that [pause](Buffer::pauses) neighbours
    /// count for themselves: for them `all` is empty.
    fn admits(&mut self, packet: &Packet, place: Place, port: Backlog, all: Backlog) -> bool;
    /// An admitted packet stops waiting: its transmission starts, or it is lost. Called only for
    /// buffers that [pause](Buffer::pauses) neighbours.
    fn on_leave(&mut self, _packet: &Packet, _place: Place) {}
    /// The link of a port has failed. The pause state of the neighbour there is reset.
    fn on_link_down(&mut self, _port: u16) {}
    /// Returns whether the buffer can pause neighbours. If so, it is asked about every arriving
    /// packet, even one that finds its port idle.
    fn pauses(&self) -> bool {
        false
    }
    /// Removes and returns the next order to a neighbour.
    fn next_pause(&mut self) -> Option<Pause> {
        None
    }
    /// Returns the number of packets that the buffer refused although it guarantees room for them
    /// while no link fails. If it is not 0, the headroom is too small.
    fn broken_promises(&self) -> u64 {
        0
    }
    /// Returns the neighbours that are paused, by port and class. The departure of a packet may
    /// resume them.
    fn paused(&self) -> &[(u16, u8)] {
        &[]
    }
    /// Returns which of the paused neighbours could not resume even if all packets left except
    /// those at ports and in classes for which `stuck` is true.
    fn stay_paused(&self, _stuck: &dyn Fn(u16, u8) -> bool) -> Vec<(u16, u8)> {
        Vec::new()
    }
    /// Returns the bytes that wait at port `to` and arrived at a port in a class, `from`.
    fn waiting(&self, _from: (u16, u8), _to: u16) -> u64 {
        0
    }
    /// Returns whether a run ends when switches wait for each other forever.
    fn ends_at_deadlock(&self) -> bool {
        false
    }
    /// Returns how much one port may hold while the others are empty, before packets are dropped.
    /// No limit for buffers that pause neighbours.
    fn most(&self) -> Limit {
        Limit::Unlimited
    }
}

/// The place of a packet in a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The port at which the packet arrived; `None`: the switch created it. Set only for buffers
    /// that [pause](Buffer::pauses).
    pub from: Option<u16>,
    /// The port at which the packet waits.
    pub to: u16,
    /// Class of the packet at that port.
    pub class: u8,
}

/// An order to a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// The port to which the neighbour is connected.
    pub port: u16,
    /// The class of packets to pause or resume.
    pub class: u8,
    /// Whether the neighbour must pause (`true`) or resume (`false`).
    pub on: bool,
}

/// Bytes of an order on the wire: the smallest Ethernet frame.
pub const ORDER_BYTES: u16 = 64;

/// The environment of a switch's buffer, known from the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Env<'a> {
    /// Largest packet on the wire.
    pub mtu_bytes: u16,
    /// The links that leave the switch, by port.
    pub links: &'a [Link],
}

/// Returns the problem of a `total` that never admits a full packet.
fn check_total(total: Limit, env: Env<'_>) -> Vec<Problem> {
    let mtu = Bytes(u64::from(env.mtu_bytes));
    let problem = || Problem {
        key: "total",
        message: format!("`{total}` is less than a full packet of {mtu}: every full packet that has to wait would be dropped"),
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
        fn on_link_down(&mut self, port: u16);
        fn pauses(&self) -> bool;
        fn next_pause(&mut self) -> Option<Pause>;
        fn broken_promises(&self) -> u64;
        fn paused(&self) -> &[(u16, u8)];
        fn stay_paused(&self, stuck: &dyn Fn(u16, u8) -> bool) -> Vec<(u16, u8)>;
        fn waiting(&self, from: (u16, u8), to: u16) -> u64;
        fn ends_at_deadlock(&self) -> bool;
        fn most(&self) -> Limit;
    }
    statics {
        /// How many of the counters in its META the buffer has, per port.
        fn counters() -> usize;
    }
}

#[cfg(test)]
mod tests {
    /// The place of a packet, for buffers that treat all places alike.
    pub(super) const PLACE: super::Place = super::Place { from: Some(0), to: 1, class: 0 };
}

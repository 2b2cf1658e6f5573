//! The properties from which a link is built.

use base::{Dur, Limit, Rate};

/// The far end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Far {
    /// A host, by host id.
    Host(u32),
    /// A switch, by the id of its first outgoing link.
    Switch(u32),
}

/// The properties from which a link is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSpec {
    /// Line rate.
    pub rate: Rate,
    /// Propagation delay, not zero: a packet must not arrive at the time at which it is sent.
    pub delay: Dur,
    /// The queue if it is first in, first out. Otherwise packets wait in a discipline of the
    /// [world](crate::World).
    pub fifo: Option<Fifo>,
    /// For ports that are served lazily: whether the world must see every packet, including those
    /// that find the port idle and those that wait with no other packet in the queue.
    pub watched: bool,
    /// For ports that are served lazily: whether the discipline may hold packets back while the
    /// transmitter is idle.
    pub shaped: bool,
    /// For watched or shaped ports: the port shares a buffer with all ports that have this number.
    /// Before a packet may wait at one of them, all of them catch up.
    pub shared: Option<u32>,
}

/// A first-in first-out queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fifo {
    /// An arriving packet is dropped if the queue would exceed this limit with it.
    pub limit: Limit,
    /// An admitted packet is marked if the queue exceeds this threshold with it.
    pub mark: Limit,
}

//! What a link is built from.

use base::{Dur, Limit, Rate};

/// Where a link ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Far {
    /// At a host, by host id.
    Host(u32),
    /// At a switch, whose first outgoing link this is.
    Switch(u32),
}

/// What a link is built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSpec {
    /// Line rate.
    pub rate: Rate,
    /// Propagation delay, not zero: a packet must not arrive when it is sent.
    pub delay: Dur,
    /// The queue, when it is first in, first out; otherwise packets wait in a discipline of the [world](crate::World).
    pub fifo: Option<Fifo>,
    /// Of a port that is served lazily: the world must see every packet, those too that find the port idle or wait alone.
    pub watched: bool,
    /// Of a port that is served lazily: its discipline may keep a packet waiting while the transmitter is idle.
    pub shaped: bool,
    /// Of a watched or shaped port: it shares a buffer with all ports of this number. Before a packet may wait at one of them, all catch up.
    pub shared: Option<u32>,
}

/// A first-in first-out queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fifo {
    /// An arriving packet that would make more than this wait is dropped.
    pub limit: Limit,
    /// One that makes more than this wait, and is let in, is marked.
    pub mark: Limit,
}

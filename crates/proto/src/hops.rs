//! The ports between switches that a flow's paths leave through, for policies that know the network.

use base::{NodeId, PortId, Rate};

/// A port between switches on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The switch.
    pub switch: NodeId,
    /// Its port.
    pub port: PortId,
    /// The rate of the port's link.
    pub rate: Rate,
}

/// By the index of the path: its hops in order. A path within one switch has none.
pub type Hops = Vec<Vec<Hop>>;

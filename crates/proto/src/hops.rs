//! The ports between switches that a flow's paths use, for policies that know the network.

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

/// Hops in order, by the index of the path. A path within one switch has none.
pub type Hops = Vec<Vec<Hop>>;

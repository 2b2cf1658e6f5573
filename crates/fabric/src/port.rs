//! An egress port that needs more than a first-in first-out queue: a discipline, and what stands beside it.

use crate::agent::AnyAgent;
use crate::qdisc::AnyQdisc;

/// A port.
pub struct Port {
    /// Holds the packets that wait.
    pub qdisc: AnyQdisc,
    /// Watches and rewrites what passes.
    pub agent: Option<AnyAgent>,
    /// The router is told of what leaves.
    pub watched: bool,
}

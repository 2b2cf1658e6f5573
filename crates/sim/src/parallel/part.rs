//! A part of a run: the whole run, or the share of it that runs on one thread.

use crate::node::world::World;

/// A part of a run.
pub struct Part<E, P> {
    /// The engine, which has the events of the part.
    pub engine: E,
    /// The world on which the events act.
    pub world: World<P>,
}

//! A part of a run: all of it, or what runs on a thread of its own.

use crate::node::world::World;

/// A part of a run.
pub struct Part<E, P> {
    /// Its events.
    pub engine: E,
    /// What they act on.
    pub world: World<P>,
}

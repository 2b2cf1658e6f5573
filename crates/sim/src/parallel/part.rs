//! A part of a run: the whole run, or the share of it that runs on one thread.

use crate::node::world::{Carried, World};
use crate::probe::Probe;
use base::LinkId;
use engine::Driver;

/// A part of a run.
pub struct Part<E, P> {
    /// The engine, which has the events of the part.
    pub engine: E,
    /// The world on which the events act.
    pub world: World<P>,
}

impl<E: Driver<Carried>, P: Probe> Part<E, P> {
    /// Returns the integral of waiting bytes over time at a port up to now, in byte times 1024 ps. The port
    /// must have caught up to just before now.
    pub fn queue_area(&self, link: LinkId) -> u64 {
        let waiting = self.world.ports[link.index()].as_ref().map_or(0, |port| port.waited(self.engine.now()));
        self.engine.queue_area(link) + waiting
    }
}

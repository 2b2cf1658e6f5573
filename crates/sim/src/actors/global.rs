//! Global actors: for example, failures and samplers act on the whole network at their own times, between
//! the events of nodes.

use crate::node::world::Carried;
use crate::parallel::whole::Whole;
use crate::probe::Probe;
use base::Time;
use engine::Driver;

/// A global actor.
pub trait Global {
    /// Returns when the actor acts next; `Time::MAX` for never.
    fn next(&self) -> Time;
    /// Runs the actor, which is due. Its effects on links, flows and paths come before all other events of
    /// the same time.
    fn act<E: Driver<Carried>, P: Probe>(&mut self, whole: &mut Whole<E, P>);
}

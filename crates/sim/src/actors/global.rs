//! Global actors: failures, samplers and the like act on the whole network at times of their own, between the events of nodes.

use crate::node::world::Carried;
use crate::parallel::whole::Whole;
use crate::probe::Probe;
use base::Time;
use engine::Driver;

/// A global actor.
pub trait Global {
    /// When the actor acts next; `Time::MAX` for never.
    fn next(&self) -> Time;
    /// The actor is due and acts. Its effects on links, flows and paths precede all other events of the same time.
    fn act<E: Driver<Carried>, P: Probe>(&mut self, whole: &mut Whole<E, P>);
}

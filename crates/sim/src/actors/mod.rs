//! The global actors of a run, in the order in which they act at equal times: failures, the controller,
//! the measurement window, the search for deadlocks, time series.

pub mod control;
pub mod deadlock;
pub mod failures;
pub mod global;
pub mod sample;
pub mod window;

use crate::actors::control::Control;
use crate::actors::deadlock::Deadlocks;
use crate::actors::failures::FailureActor;
use crate::actors::global::Global;
use crate::actors::sample::Sampler;
use crate::actors::window::WindowActor;
use crate::node::world::Carried;
use crate::parallel::whole::Whole;
use crate::probe::Probe;
use base::Time;
use engine::Driver;

/// A global actor.
pub enum Actor {
    /// Takes links down and brings them up.
    Failures(FailureActor),
    /// The controller.
    Control(Control),
    /// The measurement window.
    Window(WindowActor),
    /// Searches for deadlocks.
    Deadlocks(Deadlocks),
    /// Time series.
    Sampler(Sampler),
}

impl Global for Actor {
    fn next(&self) -> Time {
        match self {
            Actor::Failures(actor) => actor.next(),
            Actor::Control(actor) => actor.next(),
            Actor::Window(actor) => actor.next(),
            Actor::Deadlocks(actor) => actor.next(),
            Actor::Sampler(actor) => actor.next(),
        }
    }
    fn act<E: Driver<Carried>, P: Probe>(&mut self, whole: &mut Whole<E, P>) {
        match self {
            Actor::Failures(actor) => actor.act(whole),
            Actor::Control(actor) => actor.act(whole),
            Actor::Window(actor) => actor.act(whole),
            Actor::Deadlocks(actor) => actor.act(whole),
            Actor::Sampler(actor) => actor.act(whole),
        }
    }
}

/// Returns the measurement window, if the run has one.
pub fn window(actors: &mut [Actor]) -> Option<&mut WindowActor> {
    actors.iter_mut().find_map(|actor| if let Actor::Window(window) = actor { Some(window) } else { None })
}

/// Returns the search for deadlocks, if the run has one.
pub fn deadlocks(actors: &[Actor]) -> Option<&Deadlocks> {
    actors.iter().find_map(|actor| if let Actor::Deadlocks(deadlocks) = actor { Some(deadlocks) } else { None })
}

/// Returns the earliest time at which an actor acts next.
pub fn next(actors: &[Actor]) -> Time {
    actors.iter().map(Global::next).min().unwrap_or(Time::MAX)
}

/// Runs all actors that are due, in order.
pub fn act<E: Driver<Carried>, P: Probe>(actors: &mut [Actor], whole: &mut Whole<E, P>) {
    let now = whole.now();
    actors.iter_mut().filter(|actor| actor.next() <= now).for_each(|actor| actor.act(whole));
}

//! The global actors of a run, in the order in which they act at equal times: failures, the controller,
//! the measurement window, time series.

use crate::control::Control;
use crate::failures::Failures;
use crate::global::Global;
use crate::probe::Probe;
use crate::sample::Sampler;
use crate::window::Window;
use crate::world::{Carried, World};
use base::Time;
use engine::Driver;

/// A global actor.
pub enum Actor {
    /// Links that go down and come up.
    Failures(Failures),
    /// The controller.
    Control(Control),
    /// The measurement window.
    Window(Window),
    /// Time series.
    Sampler(Sampler),
}

impl Global for Actor {
    fn next(&self) -> Time {
        match self {
            Actor::Failures(actor) => actor.next(),
            Actor::Control(actor) => actor.next(),
            Actor::Window(actor) => actor.next(),
            Actor::Sampler(actor) => actor.next(),
        }
    }
    fn act<P: Probe>(&mut self, world: &mut World<P>, links: &mut impl Driver<Carried>) {
        match self {
            Actor::Failures(actor) => actor.act(world, links),
            Actor::Control(actor) => actor.act(world, links),
            Actor::Window(actor) => actor.act(world, links),
            Actor::Sampler(actor) => actor.act(world, links),
        }
    }
}

/// The measurement window, if the run has one.
pub fn window(actors: &mut [Actor]) -> Option<&mut Window> {
    actors.iter_mut().find_map(|actor| if let Actor::Window(window) = actor { Some(window) } else { None })
}

/// The earliest time at which an actor acts next.
pub fn next(actors: &[Actor]) -> Time {
    actors.iter().map(Global::next).min().unwrap_or(Time::MAX)
}

/// Lets all actors that are due act, in order, and sets the time of the next action.
pub fn act<P: Probe>(actors: &mut [Actor], world: &mut World<P>, links: &mut impl Driver<Carried>) {
    let now = links.now();
    actors.iter_mut().filter(|actor| actor.next() <= now).for_each(|actor| actor.act(world, links));
    links.set_action(next(actors));
}

//! The measurement window and the time series of a run of the flow engine. They do not change the run.

use super::world::FlowWorld;
use crate::actors::sample::Sampler;
use crate::actors::window::Reading;
use base::{Dur, FlowId, LinkId, Time};

/// Reads all counts at `now`. Waiting bytes are zero, since the flow engine has no queues.
pub fn reading(world: &mut FlowWorld, now: Time) -> Reading {
    world.fluid.settle_all(now);
    let ports = (0..world.routing.net.links().len() as u32).map(|link| (busy(world, LinkId(link), now), 0)).collect();
    let delivered_bytes = (0..world.flows.len() as u32).map(|flow| world.delivered(FlowId(flow))).collect();
    Reading { at: now, delivered_bytes, ports }
}

/// Takes a sample.
pub fn sample(sampler: &mut Sampler, world: &mut FlowWorld, now: Time) {
    world.fluid.settle_all(now);
    sampler.look_at_ports(now, |link| (busy(world, link, now), None));
    sampler.look_at_flows(world.seen(now), |flow| world.progress(flow), |_| None);
    sampler.look_at_switches(now, &world.packets.nodes);
}

/// Returns how long a link has carried bytes up to `now`. Flows must be settled at `now`.
pub fn busy(world: &FlowWorld, link: LinkId, now: Time) -> Dur {
    // A sum of `f64` may exceed the time slightly.
    Dur((world.fluid.busy(link) as u64).min(now.0))
}

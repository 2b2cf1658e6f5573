//! One run of the flow engine: from a point of a plan to its outcome.

use super::moving::PacketsUnderWay;
use super::rows;
use super::watch;
use super::world::{FlowEvent, FlowWorld};
use crate::actors::control::Control;
use crate::actors::failures::FailureActor;
use crate::actors::global::Global as _;
use crate::actors::sample::Sampler;
use crate::actors::window::WindowActor;
use crate::node::open::OpenFlows;
use crate::node::world::NodeCounts;
use crate::outcome::{Engine, Outcome, StopReason};
use crate::progress::{Continue, Progress, RunError};
use crate::start::Beginning;
use crate::timeline::Timeline;
use base::{FlowId, FlowMap, LinkId, NodeId, Time};
use fabric::controller::{LinkState, Move, OpenFlow};
use fabric::fluid::Flows;
use fabric::routing::{Parts, Routing};
use scenario::RunSpec;
use std::cmp::Reverse;
use std::mem::take;
use std::sync::Arc;

/// Times with events between two calls of the watcher: some milliseconds to some hundredths of a second.
const SLICE: u64 = 1 << 10;

/// Runs `spec` to its end. Calls `control` about every thousand times at which events happen; the run stops
/// when `control` returns [`Continue::No`].
pub fn run(spec: &RunSpec, control: &mut dyn FnMut(Progress) -> Continue) -> Result<Outcome, RunError> {
    let mut beginning = Beginning::of(spec)?;
    let healthy = Arc::clone(&beginning.healthy);
    let (joins, tasks) = (take(&mut beginning.joins), take(&mut beginning.tasks));
    let timeline = Timeline { spec, healthy: &healthy, joins: &joins, tasks: &tasks };
    let mut closing = beginning.closing();
    let (mut world, mut actors) = build(spec, beginning);
    world.start_switches();
    if let Some(failures) = &mut actors.failures {
        failures.found_out().into_iter().for_each(|(link, up)| world.on_link(link, up, Time::ZERO));
    }
    let end = spec.end.unwrap_or(Time::MAX);
    let (mut now, mut events, mut times) = (Time::ZERO, 0, 0);
    let (mut complete, mut stop_reason) = (true, StopReason::Finished);
    while world.unfinished > 0 {
        let next = actors.next().min(world.next());
        if next >= end || next == Time::MAX {
            // If no event is left, the unfinished flows would wait for ever.
            (now, stop_reason) = (spec.end.unwrap_or(now), StopReason::End);
            break;
        }
        now = now.max(next);
        if actors.next() <= now {
            actors.act(&mut world, now);
        }
        while world.step(now) {
            events += 1;
        }
        if closing.have_ended(|flow| world.finish[flow.index()] == Time::MAX)
            && let Some(window) = &mut actors.window
        {
            let tasks = timeline.end(&world.flows, |flow| world.finish[flow.index()]).map(|last| last.min(end));
            window.end_at(now, tasks);
            if window.next() <= now {
                window.put(watch::reading(&mut world, now));
            }
        }
        times += 1;
        if times % SLICE == 0 {
            let finished = world.flows.len() - world.unfinished;
            if control(Progress { now, finished, flows: world.flows.len(), events }) == Continue::No {
                (complete, stop_reason) = (false, StopReason::Stopped);
                break;
            }
        }
    }
    world.fluid.settle_all(now);
    let Actors { failures, controller, mut window, sampler, .. } = actors;
    if let Some(window) = &mut window {
        window.close(now, stop_reason == StopReason::Finished, || watch::reading(&mut world, now));
    }
    world.fluid.audit(now);
    world.packets.audit();
    let flows = rows::flows(&world, window.as_ref());
    let ports = rows::ports(spec, &world, window.as_ref(), failures.as_ref(), now);
    let mut counters = rows::counters(&world, &flows, &ports, events, now, spec.realised_load(&world.flows));
    counters.nominal_load = spec.nominal_load();
    if !spec.system.router.meta().kinds.is_empty() {
        let made = |count: fn(&NodeCounts) -> u64| Some(world.packets.nodes.iter().map(count).sum());
        (counters.made_packets, counters.made_bytes) = (made(|node| node.made), made(|node| node.made_bytes));
    }
    counters.moves = controller.map(|controller| controller.moves);
    counters.window = window.and_then(|window| window.measured());
    let samples = sampler.map_or(Vec::new(), |sampler| sampler.rows);
    let outcome = Outcome {
        flows,
        ports,
        samples,
        counters,
        port_counters: crate::counted::port_counters(spec),
        complete,
        stop_reason,
        engine: Engine::Flow,
        ..Outcome::default()
    };
    Ok(timeline.add(outcome))
}

fn build(spec: &RunSpec, beginning: Beginning) -> (FlowWorld, Actors) {
    let net = &*spec.net;
    let Beginning { healthy, flows, alone, waiting, window, joins: _, tasks: _, order: _ } = beginning;
    let envs = spec.envs(&healthy);
    let router = spec.system.router.build(&envs.router());
    let duties = spec.system.router.duties(&envs.router());
    let controller =
        spec.system.controller.as_ref().map(|controller| Control::new(controller.build(&envs.router()), net.links().len()));
    drop(envs);
    let mut failures = FailureActor::new(spec);
    let live = failures.as_mut().and_then(|failures| failures.routes(net, Time::ZERO));
    let (kinds, reversed) = (spec.system.router.meta().kinds.len(), spec.system.reverse_path());
    let parts = Parts { net: Arc::clone(&spec.net), healthy, live, router, duties, kinds, reversed, seed: spec.seed };
    let routing = Routing::new(parts, &flows);
    let starts =
        flows.iter().filter(|flow| flow.wait.is_none()).map(|flow| Reverse((flow.start, FlowEvent::Start(flow.src, flow.id))));
    let sampler = spec
        .sample
        .as_ref()
        .filter(|sample| sample.ports || sample.flows || sample.switches)
        .map(|sample| Sampler::new(sample, net));
    let is_switch = |node: &NodeId| duties.timers && net.host(*node).is_none();
    let switches = (0..net.nodes().len() as u32).map(NodeId).filter(is_switch);
    let world = FlowWorld {
        agenda: starts.collect(),
        known_down: failures.as_ref().map_or(Vec::new(), FailureActor::known_down),
        switches: switches.collect(),
        packets: PacketsUnderWay::new(net),
        mtu: spec.mtu_bytes,
        header: spec.header_bytes,
        every: spec.engine.sample,
        sampled: FlowMap::default(),
        lag: FlowMap::default(),
        finish: vec![Time::MAX; flows.len()],
        unfinished: flows.len(),
        fluid: Flows::new(net, spec.engine.step),
        flows,
        alone,
        routing,
        waiting,
        started: Vec::new(),
        path_changes: Vec::new(),
    };
    (world, Actors { failures, controller, open: OpenFlows::default(), window, sampler })
}

/// The global actors, which act before all other events of the same time.
struct Actors {
    failures: Option<FailureActor>,
    controller: Option<Control>,
    /// The flows that the controller sees.
    open: OpenFlows,
    window: Option<WindowActor>,
    sampler: Option<Sampler>,
}

impl Actors {
    /// Returns the earliest time at which an actor acts next.
    fn next(&self) -> Time {
        let all = [
            self.failures.as_ref().map(|actor| actor.next()),
            self.controller.as_ref().map(|actor| actor.next()),
            self.window.as_ref().map(WindowActor::next),
            self.sampler.as_ref().map(Sampler::next),
        ];
        all.into_iter().flatten().min().unwrap_or(Time::MAX)
    }

    /// Runs all actors that are due, in order.
    fn act(&mut self, world: &mut FlowWorld, now: Time) {
        if let Some(failures) = self.failures.as_mut().filter(|actor| actor.next() <= now) {
            fail(failures, world, now);
        }
        if let Some(controller) = self.controller.as_mut().filter(|actor| actor.next() <= now) {
            order(controller, world, now);
            if controller.looks_at() <= now {
                look(controller, &mut self.open, world, now);
                order(controller, world, now);
            }
        }
        if let Some(window) = self.window.as_mut().filter(|window| window.next() <= now) {
            window.put(watch::reading(world, now));
        }
        if let Some(sampler) = self.sampler.as_mut().filter(|sampler| sampler.next() <= now) {
            watch::sample(sampler, world, now);
        }
    }
}

/// Takes links down and brings them up, and lets the network detect the changes.
fn fail(failures: &mut FailureActor, world: &mut FlowWorld, now: Time) {
    let net = Arc::clone(&world.routing.net);
    while let Some((links, up)) = failures.happen(&net, now) {
        for link in links {
            world.fluid.set_link(link, up, now);
            world.packets.set_link(link, up);
        }
    }
    if let Some(routes) = failures.routes(&net, now) {
        world.known_down = failures.known_down();
        world.reroute(routes, now);
        world.on_routes(now);
    }
    failures.found_out().into_iter().for_each(|(link, up)| world.on_link(link, up, now));
}

/// Shows the network to the controller.
fn look(controller: &mut Control, open: &mut OpenFlows, world: &mut FlowWorld, now: Time) {
    world.fluid.settle_all(now);
    let links = (0..world.routing.net.links().len() as u32).map(LinkId);
    let state = |link| LinkState { sent_bytes: controller.sent_since(link, world.fluid.carried(link) as u64), queue_bytes: 0 };
    let links: Vec<LinkState> = links.map(state).collect();
    let mut seen = open.look(world.seen(now), |flow| world.progress(flow));
    seen.sort_unstable();
    seen.retain(|(flow, _)| world.fluid.is_open(*flow));
    let flows: Vec<OpenFlow> = seen.into_iter().map(|(flow, bytes)| open_flow(world, flow, bytes)).collect();
    let path_changes = std::mem::take(&mut world.path_changes);
    controller.decide(now, &mut world.routing, &links, &flows, &path_changes);
}

fn open_flow(world: &mut FlowWorld, id: FlowId, delivered_bytes: u64) -> OpenFlow {
    let flow = &world.flows[id.index()];
    let paths = [false, true].map(|back| world.routing.present(flow, back));
    OpenFlow { id, src: flow.src, dst: flow.dst, paths, delivered_bytes }
}

/// Carries out the orders of the controller that are due. Flows that are finished are skipped.
fn order(controller: &mut Control, world: &mut FlowWorld, now: Time) {
    while let Some(moves) = controller.due(now) {
        for Move { flow, back, path } in moves {
            if world.finish[flow.index()] == Time::MAX {
                controller.moves += 1;
                world.set_path(flow, back, path, now);
            }
        }
    }
}

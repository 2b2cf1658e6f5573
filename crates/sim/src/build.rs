//! Builds the engine, the world and the global actors of a run from a point of a plan.

use crate::actors::Actor;
use crate::actors::control::Control;
use crate::actors::deadlock::Deadlocks;
use crate::actors::failures::FailureActor;
use crate::actors::sample::Sampler;
use crate::node::arrivals::Receiving;
use crate::node::drops::Drops;
use crate::node::held::HeldPackets;
use crate::node::host::{Host, HostNic};
use crate::node::lossy;
use crate::node::share::PartShare;
use crate::node::world::{Carried, NodeCounts, TrafficCounts, World};
use crate::order::{self, EventOrder};
use crate::parallel::part::Part;
use crate::probe::Probe;
use crate::rows::flow_counters;
use crate::start::Beginning;
use base::{Dur, FlowId, HostId, LinkId, NodeId, Streams, Time};
use engine::{Driver, Far, LinkSpec};
use fabric::agent::PortState;
use fabric::buffer::{AnyBuffer, Buffer};
use fabric::net::Net;
use fabric::paths::AllPaths;
use fabric::port::Port;
use fabric::qdisc::{self, Qdisc as _};
use fabric::refused::Refused;
use fabric::router::PortAccess;
use fabric::routing::{Parts, Routing};
use plugin::group::together;
use proto::host::FlowTable;
use proto::policy_host::PolicyHost;
use proto::{Flow, Kind, Packet};
use scenario::{Envs, HostKind, RunSpec};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Builds a run before its first event, or the part of a run that `share` describes, and the global
/// actors.
pub fn build<E: Driver<Carried>, P: Probe>(
    spec: &RunSpec,
    beginning: Beginning,
    share: Option<PartShare>,
    probe: P,
) -> (Part<E, P>, Vec<Actor>) {
    let order = beginning.order;
    // Safety: a part is on one thread at a time, and its machines stay in it.
    #[allow(unsafe_code)]
    let (mut world, actors) = unsafe { together(|| build_world(spec, beginning, share, probe)) };
    let mut engine: E = build_engine(spec, &world, P::WATCHES);
    if order.choose(spec, &world.flows) == Ok(EventOrder::Windows) {
        world.open = world.share.is_none().then(|| order::share(spec, &world.flows, &world.closing));
        engine.use_windows(&order::nodes(spec, &world), order == EventOrder::Windows);
    }
    for ((host, waker), node) in world.hosts.iter().zip(world.first_host..).zip(spec.net.hosts()) {
        if world.owns(*node) {
            engine.set_wake(waker, host.next_wake(Time::MAX));
        }
    }
    world.start_switches(&mut engine);
    (Part { engine, world }, actors)
}

fn build_world<P: Probe>(spec: &RunSpec, beginning: Beginning, share: Option<PartShare>, probe: P) -> (World<P>, Vec<Actor>) {
    let net = &*spec.net;
    let closing = beginning.closing();
    let Beginning { healthy, flows, waiting, window, alone: _, joins: _, tasks: _, order: _ } = beginning;
    let envs = spec.envs(&healthy);
    let router = spec.system.router.build(&envs.router());
    let duties = spec.system.router.duties(&envs.router());
    let buffers = build_buffers(spec, &envs);
    let pausing = buffers.first().is_some_and(Buffer::pauses);
    let deadlocks = buffers.first().filter(|_| pausing).map(|buffer| Deadlocks::new(buffer.ends_at_deadlock()));
    let ports = build_ports(spec, &envs, duties.ports == PortAccess::Watches, pausing);
    let machines: Vec<_> =
        (0..net.hosts().len() as u32).map(|host| spec.system.transport.build(&envs.transport(HostId(host)))).collect();
    let transport_counters = spec.system.transport.meta().counters.len();
    let policy = spec.system.policy.as_ref();
    let policy_hosts: Vec<PolicyHost> = (0..net.hosts().len() as u32)
        .filter_map(|host| Some((policy?, envs.transport(HostId(host)))))
        .map(|(policy, env)| {
            let host = PolicyHost::new(policy.build(&env), policy.meta(), transport_counters);
            if spec.system.nic.kind == HostKind::Pull { host.by_class() } else { host }
        })
        .collect();
    let receivers = build_receivers(spec, &envs);
    let control =
        spec.system.controller.as_ref().map(|controller| Control::new(controller.build(&envs.router()), net.links().len()));
    drop(envs);
    let mut failures = FailureActor::new(spec);
    let live = failures.as_mut().and_then(|failures| failures.routes(net, Time::ZERO));
    let (kinds, reversed) = (spec.system.router.meta().kinds.len(), spec.system.reverse_path());
    let parts = Parts { net: Arc::clone(&spec.net), healthy, live, router, duties, kinds, reversed, seed: spec.seed };
    let mut routing = Routing::new(parts, &flows);
    routing.fixed = failures.is_none();
    let mut streams = Streams::new(spec.seed);
    let mut starts = vec![Vec::new(); net.hosts().len()];
    for flow in flows.iter().filter(|flow| flow.wait.is_none()) {
        starts[flow.src.index()].push((flow.start, flow.id));
    }
    let hosts = starts.into_iter().zip(machines).enumerate().map(|(h, (starts, transport))| {
        let nic = |nic: LinkId| HostNic {
            drained_at: Time::ZERO,
            low_water: spec.system.nic.low_water_bytes.map_or(Dur::MAX, |bytes| net.link(nic).rate.tx_time(bytes)),
            link: nic,
            shaped: ports[nic.index()].as_ref().is_some_and(|port| port.is_shaped()),
        };
        let nics = net.nics(HostId(h as u32)).map(nic).collect();
        let mut host = Host::new(transport, streams.take("proto", &[h as u64]), nics, starts);
        host.io.has_policy = policy.is_some();
        host
    });
    let hosts: Vec<Host> = hosts.collect();
    let mut table = FlowTable::new(flows.len());
    table.keep_counters(flow_counters(spec).len());
    let many_paths = spec.system.metas().iter().any(|meta| meta.many_paths);
    if many_paths {
        table.keep_closed();
        for (flow, back) in flows.iter().flat_map(|flow| [(flow, false), (flow, true)]) {
            let (src, dst) = flow.ends(back);
            table.set_paths(flow.id, back, routing.paths.count(src, dst));
        }
    }
    if policy.is_some_and(|policy| policy.meta().knows.contains(&"paths")) {
        note_hops(net, &mut routing.paths, &flows, &mut table);
    }
    if waiting.is_some() {
        table.keep_ends();
    }
    let sampler = spec.sample.as_ref().filter(|sample| sample.ports || sample.flows || sample.switches || sample.agents);
    let returns = spec.system.agent.as_ref().is_some_and(|agent| agent.meta().needs.reverse_path);
    let is_switch = |node: &NodeId| (duties.timers || pausing) && net.host(*node).is_none();
    let switches: Vec<NodeId> = (0..net.nodes().len() as u32).map(NodeId).filter(is_switch).collect();
    let special = !policy_hosts.is_empty()
        || !receivers.is_empty()
        || many_paths
        || kinds > 0
        || hosts.iter().any(|host| host.nic.shaped || !host.others.is_empty());
    let reverse = if returns { net.links().iter().map(|link| link.reverse).collect() } else { Vec::new() };
    let lossy = lossy::lossy_links(net, &mut streams);
    let takes = spec.system.transport.meta().takes;
    let world = World {
        table,
        flows,
        hosts,
        policy_hosts,
        receivers,
        ports,
        buffers,
        routing,
        known_down: failures.as_ref().map_or(Vec::new(), FailureActor::known_down),
        nodes: vec![NodeCounts::default(); net.nodes().len()],
        first_host: switches.len() as u32,
        switches,
        special,
        inspects: returns || pausing || !lossy.is_empty(),
        pausing,
        ingress: None,
        next_start: if pausing { vec![Time::MAX; net.nodes().len()] } else { Vec::new() },
        served: Packet::new(FlowId(u32::MAX), Kind::PAUSE, 0),
        held: if duties.holds { vec![HeldPackets::default(); net.nodes().len()] } else { Vec::new() },
        reverse,
        lossy,
        ext: base::Slab::default(),
        traffic: TrafficCounts::default(),
        drops: vec![Drops::default(); net.links().len()],
        probe,
        refused: Refused::new(),
        takes: [Kind::TRIMMED, Kind::RETURNED].map(|kind| kind.word().is_some_and(|word| takes.contains(&word))),
        path_changes: Vec::new(),
        loads: Vec::new(),
        waiting,
        started: Vec::new(),
        closing,
        share,
        open: None,
    };
    let sampler = sampler.map(|s| Sampler::new(s, net));
    let actors = failures.map(Actor::Failures).into_iter().chain(control.map(Actor::Control)).chain(window.map(Actor::Window));
    let actors = actors.chain(deadlocks.map(Actor::Deadlocks)).chain(sampler.map(Actor::Sampler)).collect();
    (world, actors)
}

/// Stores the hops of all flows' paths in `table`. They are computed once for all flows between hosts at
/// the same switches.
fn note_hops(net: &Net, paths: &mut AllPaths, flows: &[Flow], table: &mut FlowTable) {
    let mut known = BTreeMap::new();
    for flow in flows {
        let ends = [flow.src, flow.dst].map(|host| net.nics(host).map(|nic| net.link(nic).to).collect::<Vec<_>>());
        let hops = known.entry(ends).or_insert_with(|| Arc::new(paths.hops(flow.src, flow.dst)));
        table.set_hops(flow.id, Arc::clone(hops));
    }
}

/// Builds, by node, the buffer that the ports of a switch share; empty if the system has no buffer.
fn build_buffers(spec: &RunSpec, envs: &Envs<'_>) -> Vec<AnyBuffer> {
    let nodes = (0..spec.net.nodes().len() as u32).map(NodeId);
    spec.system.buffer.as_ref().map_or(Vec::new(), |buffer| nodes.map(|node| buffer.build(&envs.buffer(node))).collect())
}

/// Builds the receivers, by host; empty if the system has none.
fn build_receivers(spec: &RunSpec, envs: &Envs<'_>) -> Vec<Option<Receiving>> {
    let Some(params) = &spec.system.receiver else { return Vec::new() };
    let with = params.hosts(&envs.receiver(HostId(0)));
    let host = |host| with.binary_search(&host).is_ok().then(|| Receiving::new(params.build(&envs.receiver(host))));
    (0..spec.net.hosts().len() as u32).map(HostId).map(host).collect()
}

/// Builds the ports that need more than the engine's first-in first-out queue; `None` for all others.
fn build_ports(spec: &RunSpec, envs: &Envs<'_>, watches: bool, pausing: bool) -> Vec<Option<Box<Port>>> {
    let net = &*spec.net;
    let port = |(id, link): (usize, &fabric::net::Link)| {
        let id = LinkId(id as u32);
        let (params, env) = spec.port(id);
        let watched = watches && !env.host_port && net.host(link.to).is_none();
        let shares = pausing || spec.system.buffer.is_some() && !env.host_port;
        if spec.system.agent.is_none() && !watched && !shares && params.fifo(&env).is_some() {
            return None;
        }
        let reads = spec.system.agent.as_ref().is_some_and(|agent| agent.meta().reads_port);
        let agent = spec.system.agent.as_ref().map(|agent| agent.build(&envs.agent(id)));
        Some(Box::new(Port {
            qdisc: params.build(&env),
            agent,
            state: PortState::NEW,
            watched,
            minded: watched || reads,
            pausing: pausing.then(Box::default),
        }))
    };
    let mut ports: Vec<_> = net.links().iter().enumerate().map(port).collect();
    if pausing {
        for nic in net.hosts().iter().flat_map(|host| net.out_links(*host)) {
            let far = net.out_links(net.link(nic).to).next().and_then(|port| ports[port.index()].as_deref());
            let whole =
                far.zip(ports[nic.index()].as_deref()).is_some_and(|(far, own)| !qdisc::same_classes(&own.qdisc, &far.qdisc));
            if let Some(pausing) = ports[nic.index()].as_mut().and_then(|port| port.pausing.as_mut()) {
                pausing.whole = whole;
            }
        }
    }
    ports
}

fn build_engine<E: Driver<Carried>, P>(spec: &RunSpec, world: &World<P>, probed: bool) -> E {
    let net = &*spec.net;
    let links: Vec<(LinkSpec, Far)> = net
        .links()
        .iter()
        .zip(&world.ports)
        .zip((0..).map(LinkId))
        .map(|((link, port), id)| {
            let (params, env) = spec.port(id);
            let fifo = if port.is_none() { params.fifo(&env) } else { None };
            let fifo = fifo.map(|fifo| engine::Fifo { limit: fifo.limit, mark: fifo.mark });
            let watches = |port: &Port| port.agent.is_some() || port.watched || port.qdisc.watches();
            let shared = Some(link.from.0).filter(|_| spec.system.buffer.is_some() && !env.host_port);
            let watched = probed || shared.is_some() || port.as_deref().is_some_and(watches);
            let shaped = port.as_deref().is_some_and(Port::is_shaped);
            let far = net.host(link.to).map_or_else(|| Far::Switch(net.out_base(link.to)), |host| Far::Host(host.0));
            (LinkSpec { rate: link.rate, delay: link.delay, fifo, watched, shaped, shared }, far)
        })
        .collect();
    E::new(&links, world.first_host + net.hosts().len() as u32)
}

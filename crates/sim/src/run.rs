//! One run: from a point of a plan to its outcome.

use crate::actors::{self, Actor};
use crate::audit;
use crate::control::Control;
use crate::counted::{port_counters, port_counts};
use crate::failures::Failures;
use crate::host::Host;
use crate::lossy;
use crate::outcome::{Counters, FlowRow, NamedCounter, Outcome, PacketRow, PortRow, StopReason};
use crate::probe::{Off, Packets, Probe};
use crate::progress::{Continue, Progress, RunError};
use crate::sample::Sampler;
use crate::start::Beginning;
use crate::window::{PortUse, Window};
use crate::world::{Carried, NodeCounts, Traffic, World};
use base::{Dur, HostId, LinkId, NodeId, Streams, Time};
use engine::{Driver, Engine, Far, LinkSpec, Pause};
use fabric::net::Net;
use fabric::paths::AllPaths;
use fabric::port::Port;
use fabric::qdisc::Qdisc as _;
use fabric::refused::Refused;
use fabric::routing::{Parts, Routing};
use proto::host::{FlowRecord, FlowTable};
use proto::seat::Seat;
use proto::{Flow, Kind};
use scenario::{Alone, Envs, RunSpec};
use std::collections::BTreeMap;
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

/// Events between two looks at the watcher: some hundredths of a second.
const SLICE: u64 = 1 << 20;

/// Runs `spec` to its end. `control` is called every million events or so.
pub fn run(spec: &RunSpec, control: &mut dyn FnMut(Progress) -> Continue) -> Result<Outcome, RunError> {
    if let Some(ideal) = spec.ideal {
        return crate::fluid::point::run(spec, ideal, control);
    }
    if spec.engine.is_flow() {
        return crate::flow_engine::run(spec, control);
    }
    run_on::<Engine<Carried>>(spec, control)
}

/// The same on another engine, for tests that compare engines.
pub fn run_on<E: Driver<Carried>>(spec: &RunSpec, control: &mut dyn FnMut(Progress) -> Continue) -> Result<Outcome, RunError> {
    if spec.sample.as_ref().is_some_and(|sample| sample.packets) {
        let (mut outcome, packets) = run_with::<E, _>(spec, Packets::default(), control)?;
        let policy = spec.system.policy.as_ref().map(|policy| (Kind::POLICY, policy.meta()));
        let entries = [(Kind::OWN, spec.system.transport.meta()), (Kind::ROUTER, spec.system.router.meta())];
        let entries: Vec<_> = entries.into_iter().chain(policy).collect();
        outcome.packets = packets
            .sorted()
            .into_iter()
            .map(|seen| PacketRow {
                time_ps: seen.start.0,
                end_ps: match seen.dropped {
                    true => seen.start.0,
                    false => (seen.start + spec.net.link(seen.link).rate.tx_time(seen.packet.wire_len.into())).min(seen.until).0,
                },
                port_id: seen.link.0,
                kind: seen.packet.kind.name(&entries),
                flow_id: seen.packet.flow.0,
                offset: seen.packet.offset,
                size_bytes: u32::from(seen.packet.wire_len),
                dropped: seen.dropped,
            })
            .collect();
        return Ok(outcome);
    }
    run_with::<E, _>(spec, Off, control).map(|(outcome, _)| outcome)
}

type Watcher<'a> = &'a mut dyn FnMut(Progress) -> Continue;

/// The same with a probe, which is returned beside the outcome.
pub(crate) fn run_with<E: Driver<Carried>, P: Probe>(
    spec: &RunSpec,
    probe: P,
    control: Watcher<'_>,
) -> Result<(Outcome, P), RunError> {
    let net = &*spec.net;
    let (mut world, mut actors, alone) = build_world(spec, probe)?;
    let mut engine: E = build_engine(spec, &world, P::WATCHES);
    for (host, waker) in world.hosts.iter().zip(world.first_host..) {
        engine.set_wake(waker, host.next_wake(Time::MAX));
    }
    world.start_switches(&mut engine);
    for actor in &mut actors {
        if let Actor::Failures(failures) = actor {
            failures.tell(&mut world, &mut engine);
        }
    }
    engine.set_action(actors::next(&actors));
    let end = spec.end.unwrap_or(Time::MAX);
    let (mut complete, mut stop_reason) = (true, StopReason::Finished);
    let mut asked = 0;
    while !world.table.all_done() {
        let mut pause = engine.run(&mut world, end, SLICE);
        if pause == Pause::Action {
            actors::act(&mut actors, &mut world, &mut engine);
            if engine.events() - asked < SLICE {
                continue;
            }
            pause = Pause::Budget;
        }
        asked = engine.events();
        let finished = world.flows.len() - world.table.unfinished();
        let progress = Progress { now: engine.now(), finished, flows: world.flows.len(), events: engine.events() };
        match pause {
            // The last flow has finished; its sender may not know yet.
            Pause::Stopped => {
                if let Some(window) = actors::window(&mut actors).filter(|window| window.ends_with_last_flow()) {
                    window.close(&mut world, &mut engine);
                }
            }
            Pause::Action => {}
            Pause::End => {
                stop_reason = StopReason::End;
                break;
            }
            Pause::Budget if control(progress) == Continue::No => {
                (complete, stop_reason) = (false, StopReason::Stopped);
                break;
            }
            Pause::Budget => {}
        }
    }
    if let Some(window) = actors::window(&mut actors) {
        window.close(&mut world, &mut engine);
    }
    let now = engine.now();
    // Nobody may have looked at a port since service was due. What is due at the end itself happens no more.
    let until = if stop_reason == StopReason::End { now.before(Dur(1)) } else { now };
    for link in (0..net.links().len() as u32).map(LinkId) {
        engine.catch_up(&mut world, link, until);
    }
    let flows = flow_rows(spec, &world, &alone, actors::window(&mut actors));
    let ports = port_rows(spec, &world, &mut actors, &mut engine, now);
    audit::check(&mut world, &mut engine, net);
    let mut counters = counters(&world, &ports, &flows, &engine, now, spec.realised_load(&world.flows));
    let makes = |meta: &base::registry::Meta| !meta.kinds.is_empty();
    let policy = spec.system.policy.as_ref().map(|policy| policy.meta());
    if makes(spec.system.router.meta()) || policy.is_some_and(makes) {
        let (packets, bytes) = world.made();
        (counters.made_packets, counters.made_bytes) = (Some(packets), Some(bytes));
    }
    counters.moves = actors.iter().find_map(|actor| if let Actor::Control(control) = actor { Some(control.moves) } else { None });
    counters.window = actors::window(&mut actors).and_then(|window| window.measured());
    let samples = actors.into_iter().flat_map(|actor| if let Actor::Sampler(sampler) = actor { sampler.rows } else { Vec::new() });
    let samples = samples.collect();
    Ok((
        Outcome {
            flows,
            ports,
            samples,
            counters,
            flow_counters: flow_counters(spec),
            port_counters: port_counters(spec),
            complete,
            stop_reason,
            ..Outcome::default()
        },
        world.probe,
    ))
}

/// What a run starts from: the world, its global actors, and each flow alone.
type Start<P> = (World<P>, Vec<Actor>, Vec<Alone>);

fn build_world<P: Probe>(spec: &RunSpec, probe: P) -> Result<Start<P>, RunError> {
    let net = &*spec.net;
    let Beginning { healthy, flows, alone, waiting, window } = Beginning::of(spec)?;
    let envs = spec.envs(&healthy);
    let router = spec.system.router.build(&envs.router());
    let duties = spec.system.router.duties(&envs.router());
    let ports = build_ports(spec, &envs, duties.watches);
    let machines: Vec<_> =
        (0..net.hosts().len() as u32).map(|host| spec.system.transport.build(&envs.transport(net.nic(HostId(host))))).collect();
    let transport_counters = spec.system.transport.meta().counters.len();
    let policy = spec.system.policy.as_ref();
    let seats: Vec<Seat> = (0..net.hosts().len() as u32)
        .filter_map(|host| Some((policy?, envs.transport(net.nic(HostId(host))))))
        .map(|(policy, env)| Seat::new(policy.build(&env), policy.meta(), transport_counters))
        .collect();
    let control =
        spec.system.controller.as_ref().map(|controller| Control::new(controller.build(&envs.controller()), net.links().len()));
    let buffer = spec.system.buffer.as_ref();
    let buffers = buffer.map_or(Vec::new(), |buffer| net.nodes().iter().map(|_| buffer.build(&envs.buffer())).collect());
    drop(envs);
    let mut failures = Failures::new(spec);
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
        let nic = net.nic(HostId(h as u32));
        let low_water = spec.system.nic.low_water_bytes.map_or(Dur::MAX, |bytes| net.link(nic).rate.tx_time(bytes));
        let shaped = ports[nic.index()].as_ref().is_some_and(|port| port.qdisc.is_shaped());
        let mut host = Host::new(transport, streams.take("proto", &[h as u64]), (nic, shaped), low_water, starts);
        host.io.has_policy = policy.is_some();
        host
    });
    let hosts: Vec<Host> = hosts.collect();
    let mut table = FlowTable::new(flows.len());
    table.keep_counters(flow_counters(spec).len());
    let many_paths = spec.system.metas().iter().any(|meta| meta.many_paths);
    if many_paths {
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
    let sampler = spec.sample.as_ref().filter(|sample| sample.ports || sample.flows || sample.switches);
    let hears = spec.system.agent.as_ref().is_some_and(|agent| agent.meta().needs.reverse_path);
    let is_switch = |node: &NodeId| duties.timers && net.host(*node).is_none();
    let switches: Vec<NodeId> = (0..net.nodes().len() as u32).map(NodeId).filter(is_switch).collect();
    let special = !seats.is_empty() || many_paths || kinds > 0 || hosts.iter().any(|host| host.shaped);
    let reverse = if hears { net.links().iter().map(|link| link.reverse).collect() } else { Vec::new() };
    let lossy = lossy::lossy_links(net, &mut streams);
    let takes = spec.system.transport.meta().takes;
    let world = World {
        table,
        flows,
        hosts,
        seats,
        ports,
        buffers,
        routing,
        known_down: failures.as_ref().map_or(Vec::new(), Failures::known_down),
        nodes: vec![NodeCounts::default(); net.nodes().len()],
        first_host: switches.len() as u32,
        switches,
        special,
        inspects: hears || !lossy.is_empty(),
        reverse,
        lossy,
        ext: base::Slab::default(),
        traffic: Traffic::default(),
        probe,
        refused: Refused::new(),
        takes: [Kind::TRIMMED, Kind::RETURNED].map(|kind| kind.word().is_some_and(|word| takes.contains(&word))),
        notices: Vec::new(),
        waiting,
        started: Vec::new(),
        last_finish: window.as_ref().is_some_and(Window::ends_with_last_flow),
    };
    let sampler = sampler.map(|s| Sampler::new(s, net));
    let all = [failures.map(Actor::Failures), control.map(Actor::Control), window.map(Actor::Window), sampler.map(Actor::Sampler)];
    let actors = all.into_iter().flatten().collect();
    Ok((world, actors, alone))
}

/// Notes the hops of all flows' paths, once for all flows from one switch to another.
fn note_hops(net: &Net, paths: &mut AllPaths, flows: &[Flow], table: &mut FlowTable) {
    let mut known = BTreeMap::new();
    for flow in flows {
        let ends = [flow.src, flow.dst].map(|host| net.link(net.nic(host)).to);
        let hops = known.entry(ends).or_insert_with(|| Arc::new(paths.hops(flow.src, flow.dst)));
        table.set_hops(flow.id, Arc::clone(hops));
    }
}

/// What the system's entries count of flows: the transport's counters, then the policy's.
fn flow_counters(spec: &RunSpec) -> Vec<NamedCounter> {
    let policy = spec.system.policy.as_ref().map(|policy| (policy.name(), policy.meta()));
    let all = std::iter::once((spec.system.transport.name(), spec.system.transport.meta())).chain(policy);
    all.flat_map(|(entry, meta)| meta.counters.iter().map(move |&counter| NamedCounter { entry, counter })).collect()
}

/// Ports that need more than the engine's first-in first-out queue.
fn build_ports(spec: &RunSpec, envs: &Envs<'_>, watches: bool) -> Vec<Option<Box<Port>>> {
    let net = &*spec.net;
    let port = |(id, link): (usize, &fabric::net::Link)| {
        let id = LinkId(id as u32);
        let (params, env) = spec.port(id);
        let watched = watches && !env.host_port && net.host(link.to).is_none();
        let shares = spec.system.buffer.is_some() && !env.host_port;
        if spec.system.agent.is_none() && !watched && !shares && params.fifo(&env).is_some() {
            return None;
        }
        let agent = spec.system.agent.as_ref().map(|agent| agent.build(&envs.agent(id)));
        Some(Box::new(Port { qdisc: params.build(&env), agent, watched }))
    };
    net.links().iter().enumerate().map(port).collect()
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
            let shaped = port.as_deref().is_some_and(|port| port.qdisc.is_shaped());
            let far = net.host(link.to).map_or_else(|| Far::Switch(net.out_base(link.to)), |host| Far::Host(host.0));
            (LinkSpec { rate: link.rate, delay: link.delay, fifo, watched, shaped, shared }, far)
        })
        .collect();
    E::new(&links, world.first_host + net.hosts().len() as u32)
}

fn flow_rows<P>(spec: &RunSpec, world: &World<P>, alone: &[Alone], window: Option<&mut Window>) -> Vec<FlowRow> {
    let mss = u64::from(spec.mtu_bytes - spec.header_bytes);
    let known = |t: Time| (t != Time::MAX).then_some(t.0);
    let row = |((flow, record), alone): ((&Flow, &FlowRecord), &Alone)| FlowRow {
        first_tx_ps: known(record.first_tx),
        finish_ps: known(record.finish),
        terminated: record.terminated && record.finish == Time::MAX,
        tx_packets: record.tx_packets,
        retx_packets: record.retx_packets,
        drops: record.drops,
        lost_link: record.lost_link,
        marks: record.marks,
        timeouts: record.stats.timeouts,
        fast_retransmits: record.stats.fast_retransmits,
        reordered: record.disorder().reordered,
        out_of_order: record.disorder().out_of_order,
        gaps: record.disorder().gaps,
        gap_packets: record.disorder().gap_bytes.div_ceil(mss) + record.disorder().gaps,
        first_gap_packets: record.disorder().first_gap_bytes.div_ceil(mss) + record.disorder().gaps.min(1),
        window_delivered_bytes: window.as_ref().and_then(|window| window.delivered_bytes(flow.id)),
        counts: world.table.counts(flow.id).to_vec(),
        ..FlowRow::of(flow, alone)
    };
    world.flows.iter().zip(world.table.records()).zip(alone).map(row).collect()
}

fn port_rows<P>(
    spec: &RunSpec,
    world: &World<P>,
    actors: &mut [Actor],
    engine: &mut impl Driver<Carried>,
    now: Time,
) -> Vec<PortRow> {
    let net = &*spec.net;
    let measured: Vec<Option<PortUse>> = match actors::window(actors) {
        Some(window) => (0..net.links().len() as u32).map(|link| window.port(LinkId(link))).collect(),
        None => vec![None; net.links().len()],
    };
    let failures = actors.iter().find_map(|actor| if let Actor::Failures(failures) = actor { Some(failures) } else { None });
    let mut row = |id: LinkId| {
        let stats = engine.stats(id);
        PortRow {
            tx_packets: stats.tx_packets,
            tx_bytes: stats.tx_bytes,
            drops: stats.drops,
            drop_bytes: stats.drop_bytes,
            lost_link: stats.lost_sent + stats.lost_unsent + lossy::lost(&world.lossy, id),
            marks: stats.marks + world.ports[id.index()].as_ref().map_or(0, |port| port.qdisc.marks()),
            busy_ps: engine.busy(id).0,
            max_queue_bytes: stats.max_queue_bytes,
            mean_queue_bytes: if now == Time::ZERO { 0.0 } else { stats.queue_area as f64 * 1024.0 / now.0 as f64 },
            window_busy_ps: measured[id.index()].map(|port| port.busy_ps),
            window_mean_queue_bytes: measured[id.index()].map(|port| port.mean_queue_bytes),
            counts: port_counts(spec, id, world.ports[id.index()].as_deref(), &world.routing.router),
            ..PortRow::of(net, id, failures, now)
        }
    };
    (0..net.links().len() as u32).map(|id| row(LinkId(id))).collect()
}

fn counters<P>(
    world: &World<P>,
    ports: &[PortRow],
    flows: &[FlowRow],
    engine: &impl Driver<Carried>,
    now: Time,
    realised_load: Option<f64>,
) -> Counters {
    let mut digest = Xxh3::new();
    for flow in flows {
        for word in [flow.finish_ps.unwrap_or(u64::MAX), flow.tx_packets, flow.retx_packets, flow.drops, u64::from(flow.timeouts)] {
            digest.update(&word.to_le_bytes());
        }
    }
    for port in ports {
        for word in [port.tx_packets, port.tx_bytes, port.drops, port.max_queue_bytes, port.mean_queue_bytes.to_bits()] {
            digest.update(&word.to_le_bytes());
        }
    }
    Counters {
        events: engine.events(),
        hops: ports.iter().map(|port| port.tx_packets).sum(),
        end_ps: now.0,
        sent_packets: world.traffic.sent,
        delivered_packets: world.traffic.received,
        dropped_packets: world.traffic.dropped,
        lost_packets: world.traffic.lost,
        digest: digest.digest(),
        realised_load,
        ..Counters::default()
    }
}

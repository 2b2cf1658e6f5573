//! One run: from a point of a plan to its outcome.

use crate::audit;
use crate::failures::Failures;
use crate::host::Host;
use crate::outcome::{Counters, FlowRow, Outcome, PacketRow, PortRow, StopReason};
use crate::probe::{Off, Packets, Probe};
use crate::sample::Sampler;
use crate::world::{Carried, Routing, Traffic, World};
use base::{Dur, HostId, LinkId, Rate, Streams, Time};
use engine::{Driver, Engine, Far, LinkSpec, Pause};
use fabric::net::Net;
use fabric::port::Port;
use fabric::qdisc::Qdisc as _;
use fabric::router::Duties;
use fabric::routes::{self, Routes};
use fabric::{agent, qdisc, router};
use proto::Flow;
use proto::transport::{self, FlowTable, Transport};
use scenario::RunSpec;
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

/// How far a run is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Simulated time.
    pub now: Time,
    /// Flows whose last byte has arrived.
    pub finished: usize,
    /// All flows.
    pub flows: usize,
    /// Events handled.
    pub events: u64,
}

/// What the watcher of a run decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Continue {
    /// Go on.
    Yes,
    /// Stop here: the outcome is incomplete.
    No,
}

/// Why a run could not start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The workload cannot be drawn.
    #[error("{0}")]
    Workload(String),
}

/// Events between two looks at the watcher: some hundredths of a second.
const SLICE: u64 = 1 << 20;

/// Runs `spec` to its end. `control` is called every million events or so.
pub fn run(spec: &RunSpec, control: &mut dyn FnMut(Progress) -> Continue) -> Result<Outcome, RunError> {
    if let Some(ideal) = spec.ideal {
        return crate::fluid::point::run(spec, ideal, control);
    }
    run_on::<Engine<Carried>>(spec, control)
}

/// The same on another engine, for tests that compare engines.
pub fn run_on<E: Driver<Carried>>(spec: &RunSpec, control: &mut dyn FnMut(Progress) -> Continue) -> Result<Outcome, RunError> {
    if spec.sample.as_ref().is_some_and(|sample| sample.packets) {
        let (mut outcome, packets) = run_with::<E, _>(spec, Packets::default(), control)?;
        let machine = spec.system.transport.build(&transport_env(spec, spec.net.nic(HostId(0)), Dur::ZERO));
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
                kind: machine.kind_name(seen.packet.kind).unwrap_or_else(|| Packets::word(seen.packet.kind)),
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

type Control<'a> = &'a mut dyn FnMut(Progress) -> Continue;

fn run_with<E: Driver<Carried>, P: Probe>(spec: &RunSpec, probe: P, control: Control<'_>) -> Result<(Outcome, P), RunError> {
    let net = &*spec.net;
    let (mut world, ideals) = build_world(spec, probe)?;
    let mut engine: E = build_engine(spec, &world.ports, P::WATCHES);
    for host in 0..net.hosts().len() as u32 {
        engine.set_wake(host, world.hosts[host as usize].next_wake(false));
    }
    engine.set_action(world.next_action());
    let end = spec.end.unwrap_or(Time::MAX);
    let (mut complete, mut stop_reason) = (true, StopReason::Finished);
    while !world.table.all_done() {
        let pause = engine.run(&mut world, end, SLICE);
        let finished = world.flows.len() - world.table.unfinished();
        let progress = Progress { now: engine.now(), finished, flows: world.flows.len(), events: engine.events() };
        match pause {
            Pause::Stopped => {}
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
    let now = engine.now();
    // Nobody may have looked at a port since service was due. What is due at the end itself happens no more.
    let until = if stop_reason == StopReason::End { now.before(Dur(1)) } else { now };
    for link in (0..net.links().len() as u32).map(LinkId) {
        engine.catch_up(&mut world, link, until);
    }
    let flows = flow_rows(&world, &ideals);
    let ports = port_rows(&world, &mut engine, net, now);
    audit::check(&mut world, &mut engine, net);
    let counters = counters(&world, &ports, &flows, &engine, now, spec.realised_load(&world.flows));
    let samples = world.sampler.map_or(Vec::new(), |sampler| sampler.rows);
    Ok((Outcome { flows, ports, samples, packets: Vec::new(), counters, complete, stop_reason, ideal: false }, world.probe))
}

fn transport_env(spec: &RunSpec, nic: LinkId, max_rtt: Dur) -> transport::Env {
    let port = qdisc_env(spec, nic, false);
    transport::Env {
        nic_rate: spec.net.link(nic).rate,
        mtu_bytes: spec.mtu_bytes,
        header_bytes: spec.header_bytes,
        max_rtt,
        queue_limit: spec.system.qdisc.limit(&port),
    }
}

fn qdisc_env(spec: &RunSpec, link: LinkId, host_port: bool) -> qdisc::Env {
    qdisc::Env { rate: spec.net.link(link).rate, mtu_bytes: spec.mtu_bytes, host_port, link, seed: spec.seed }
}

/// The ideal completion time of each flow and the number of links on its path.
type Ideals = Vec<(Dur, u8)>;

fn build_world<P: Probe>(spec: &RunSpec, probe: P) -> Result<(World<P>, Ideals), RunError> {
    let net = &*spec.net;
    let mut flows = spec.flows().map_err(RunError::Workload)?;
    // Ideals are those of the healthy network.
    let healthy = Routes::new(net, &[]);
    let (full, header) = (u64::from(spec.mtu_bytes), u64::from(spec.header_bytes));
    let mut ideals = Vec::with_capacity(flows.len());
    for flow in &mut flows {
        let shapes = healthy.shapes(net, flow.src, flow.dst);
        flow.rtt = shapes.iter().map(|path| routes::rtt(path, full, header)).min().unwrap_or_default();
        flow.bottleneck = shapes.iter().map(|path| routes::bottleneck(path)).max().unwrap_or(Rate(1));
        let ideal = healthy.ideal_fct(net, flow.src, flow.dst, flow.size_bytes, full - header, header);
        let hops = healthy.distance(net.hosts()[flow.src.index()], flow.dst).unwrap_or(0);
        ideals.push((ideal, hops as u8));
    }
    let max_rtt = healthy.max_rtt(net, full, header);
    let router_env = router::Env { net, routes: &healthy, seed: spec.seed };
    let router = spec.system.router.build(&router_env);
    let Duties { asked, watches } = spec.system.router.duties(&router_env);
    let mut failures = Failures::new(spec);
    let routes = failures.as_mut().and_then(|failures| failures.routes(net, Time::ZERO)).unwrap_or(healthy);
    let mut routing = Routing { net: Arc::clone(&spec.net), routes, router, asked, reversed: spec.system.reverse_path() };
    let paths = flows.iter().map(|flow| routing.plan(flow)).collect();
    let mut streams = Streams::new(spec.seed);
    let mut starts = vec![Vec::new(); net.hosts().len()];
    for flow in &flows {
        starts[flow.src.index()].push((flow.start, flow.id));
    }
    let hosts = starts.into_iter().enumerate().map(|(h, starts)| {
        let nic = net.nic(HostId(h as u32));
        let transport = spec.system.transport.build(&transport_env(spec, nic, max_rtt));
        let low_water = spec.system.nic.low_water_bytes.map_or(Dur::MAX, |bytes| net.link(nic).rate.tx_time(bytes));
        Host::new(transport, streams.take("proto", &[h as u64]), nic, low_water, starts)
    });
    let hosts = hosts.collect();
    let sampler = spec.sample.as_ref().filter(|sample| sample.ports || sample.flows);
    let hears = spec.system.agent.as_ref().is_some_and(|agent| agent.meta().needs.reverse_path);
    let world = World {
        table: FlowTable::new(flows.len()),
        flows,
        paths,
        hosts,
        ports: build_ports(spec, watches),
        routing,
        failures,
        no_route: vec![0; net.nodes().len()],
        reverse: if hears { net.links().iter().map(|link| link.reverse).collect() } else { Vec::new() },
        ext: base::Slab::default(),
        traffic: Traffic::default(),
        probe,
        sampler: sampler.map(|s| Sampler::new(s, net)),
        drops: Vec::new(),
    };
    Ok((world, ideals))
}

/// The discipline of a port, as configured.
fn port_qdisc(spec: &RunSpec, link: LinkId) -> (&qdisc::AnyParams, qdisc::Env) {
    let host_port = spec.net.host(spec.net.link(link).from).is_some();
    let params = if host_port { &spec.system.nic.qdisc } else { &spec.system.qdisc };
    (params, qdisc_env(spec, link, host_port))
}

/// Ports that need more than the engine's first-in first-out queue.
fn build_ports(spec: &RunSpec, watches: bool) -> Vec<Option<Box<Port>>> {
    let net = &*spec.net;
    let nic_rate = net.hosts().iter().map(|h| net.link(LinkId(net.out_base(*h))).rate).max().unwrap_or_default();
    let port = |(id, link): (usize, &fabric::net::Link)| {
        let id = LinkId(id as u32);
        let (params, env) = port_qdisc(spec, id);
        let watched = watches && !env.host_port && net.host(link.to).is_none();
        if spec.system.agent.is_none() && !watched && params.fifo(&env).is_some() {
            return None;
        }
        let agent_env = agent::Env {
            link: id,
            node: link.from,
            rate: link.rate,
            nic_rate,
            header_bytes: spec.header_bytes,
            host_port: env.host_port,
        };
        Some(Box::new(Port { qdisc: params.build(&env), agent: spec.system.agent.as_ref().map(|a| a.build(&agent_env)), watched }))
    };
    net.links().iter().enumerate().map(port).collect()
}

fn build_engine<E: Driver<Carried>>(spec: &RunSpec, ports: &[Option<Box<Port>>], probed: bool) -> E {
    let net = &*spec.net;
    let links: Vec<(LinkSpec, Far)> = net
        .links()
        .iter()
        .zip(ports)
        .zip((0..).map(LinkId))
        .map(|((link, port), id)| {
            let (params, env) = port_qdisc(spec, id);
            let fifo = if port.is_none() { params.fifo(&env) } else { None };
            let fifo = fifo.map(|fifo| engine::Fifo { limit: fifo.limit, mark: fifo.mark });
            let watches = |port: &Port| port.agent.is_some() || port.watched || port.qdisc.watches();
            let watched = probed || port.as_deref().is_some_and(watches);
            let far = net.host(link.to).map_or_else(|| Far::Switch(net.out_base(link.to)), |host| Far::Host(host.0));
            (LinkSpec { rate: link.rate, delay: link.delay, fifo, watched }, far)
        })
        .collect();
    E::new(&links, net.hosts().len() as u32)
}

fn flow_rows<P>(world: &World<P>, ideals: &Ideals) -> Vec<FlowRow> {
    let known = |t: Time| (t != Time::MAX).then_some(t.0);
    let row = |((flow, record), (ideal, hops)): ((&Flow, &transport::host::FlowRecord), &(Dur, u8))| FlowRow {
        first_tx_ps: known(record.first_tx),
        finish_ps: known(record.finish),
        ideal_fct_ps: ideal.0,
        bottleneck_bps: flow.bottleneck.0,
        terminated: record.terminated && record.finish == Time::MAX,
        hops: *hops,
        tx_packets: record.tx_packets,
        retx_packets: record.retx_packets,
        drops: record.drops,
        lost_link: record.lost_link,
        marks: record.marks,
        timeouts: record.stats.timeouts,
        fast_retransmits: record.stats.fast_retransmits,
        reordered: record.reordered,
        ..FlowRow::of(flow)
    };
    world.flows.iter().zip(world.table.records()).zip(ideals).map(row).collect()
}

fn port_rows<P>(world: &World<P>, engine: &mut impl Driver<Carried>, net: &Net, now: Time) -> Vec<PortRow> {
    let row = |(id, link): (usize, &fabric::net::Link)| {
        let id = LinkId(id as u32);
        let stats = engine.stats(id);
        PortRow {
            port_id: id.0,
            node: link.from.0,
            peer: link.to.0,
            tier: net.node(link.from).tier,
            name: net.link_name(id),
            rate_bps: link.rate.0,
            tx_packets: stats.tx_packets,
            tx_bytes: stats.tx_bytes,
            drops: stats.drops,
            drop_bytes: stats.drop_bytes,
            lost_link: stats.lost_sent + stats.lost_unsent,
            down_ps: world.failures.as_ref().map_or(0, |failures| failures.down_time(id, now).0),
            marks: stats.marks + world.ports[id.index()].as_ref().map_or(0, |port| port.qdisc.marks()),
            busy_ps: engine.busy(id).0,
            max_queue_bytes: stats.max_queue_bytes,
            mean_queue_bytes: if now == Time::ZERO { 0.0 } else { stats.queue_area as f64 * 1024.0 / now.0 as f64 },
        }
    };
    net.links().iter().enumerate().map(row).collect()
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
    }
}

//! The rows and totals of a run of the flow engine.

use super::watch;
use super::world::FlowWorld;
use crate::actors::failures::FailureActor;
use crate::actors::window::WindowActor;
use crate::counted::{Counting, port_counts};
use crate::outcome::{Counters, FlowRow, PortRow};
use base::{Dur, LinkId, Time};
use scenario::RunSpec;
use xxhash_rust::xxh3::Xxh3;

/// Returns the rows of all flows, by id. Counts of packets are zero, since flows have no packets.
pub fn flows(world: &FlowWorld, window: Option<&WindowActor>) -> Vec<FlowRow> {
    let row = |(flow, (alone, finish)): (&proto::Flow, (&scenario::Unloaded, &Time))| FlowRow {
        first_tx_ps: (flow.start != Time::MAX && world.delivered(flow.id) > 0).then_some(flow.start.0),
        window_delivered_bytes: window.and_then(|window| window.delivered_bytes(flow.id)),
        measured: window.map_or(flow.measured, |window| window.counts(flow)),
        finish_ps: (*finish != Time::MAX).then_some(finish.0),
        ..FlowRow::of(flow, alone)
    };
    world.flows.iter().zip(world.alone.iter().zip(&world.finish)).map(row).collect()
}

/// Returns the rows of all ports, by id. Bytes are those of fluids.
pub fn ports(
    spec: &RunSpec,
    world: &FlowWorld,
    window: Option<&WindowActor>,
    failures: Option<&FailureActor>,
    now: Time,
) -> Vec<PortRow> {
    let net = &world.routing.net;
    let row = |id: LinkId| PortRow {
        tx_packets: world.packets.crossed[id.index()],
        tx_bytes: world.fluid.carried(id) as u64,
        busy_ps: watch::busy(world, id, now).0,
        window_busy_ps: window.and_then(|window| window.port(id)).map(|port| port.busy_ps),
        counts: port_counts(spec, id, &Counting { port: None, router: &world.routing.router, receivers: &[] }, now),
        ..PortRow::of(net, id, failures.map_or(Dur::ZERO, |failures| failures.down_time(id, now)))
    };
    (0..net.links().len() as u32).map(|id| row(LinkId(id))).collect()
}

/// Returns the totals.
pub fn counters(
    world: &FlowWorld,
    flows: &[FlowRow],
    ports: &[PortRow],
    events: u64,
    now: Time,
    realised_load: Option<f64>,
) -> Counters {
    let mut digest = Xxh3::new();
    flows.iter().for_each(|flow| digest.update(&flow.finish_ps.unwrap_or(u64::MAX).to_le_bytes()));
    for link in (0..ports.len() as u32).map(LinkId) {
        digest.update(&world.fluid.carried(link).to_bits().to_le_bytes());
    }
    Counters {
        events,
        hops: world.packets.crossed.iter().sum(),
        sent_packets: world.packets.nodes.iter().map(|node| node.made).sum(),
        delivered_packets: world.packets.received,
        lost_packets: world.packets.lost,
        end_ps: now.0,
        digest: digest.digest(),
        realised_load,
        ..Counters::default()
    }
}

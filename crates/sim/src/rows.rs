//! The rows of a run that has ended: flows, ports and totals.

use crate::actors::window::{PortUse, WindowActor};
use crate::actors::{self, Actor};
use crate::counted::{Counting, label, port_counts};
use crate::node::world::Carried;
use crate::outcome::{Counters, FlowRow, NamedCounter, PortRow};
use crate::parallel::part::Part;
use crate::parallel::whole::Whole;
use crate::probe::Probe;
use base::{Bytes, Dur, Limit, LinkId, Time};
use engine::Driver;
use fabric::qdisc::Qdisc as _;
use proto::Flow;
use proto::host::FlowRecord;
use scenario::{RunSpec, Unloaded};
use std::borrow::Cow;
use xxhash_rust::xxh3::Xxh3;

/// Returns the counters per flow of the system's entries: those of the transport, then of the policy. The
/// counters of a plug-in have its own name.
pub fn flow_counters(spec: &RunSpec) -> Vec<NamedCounter> {
    let policy = spec.system.policy.as_ref().map(|policy| (policy.name(), policy.meta()));
    let transport = spec.system.transport.entry();
    let all = std::iter::once((label(transport), transport.meta)).chain(policy);
    all.flat_map(|(entry, meta)| meta.counters.iter().map(move |&counter| NamedCounter { entry, counter })).collect()
}

/// Returns one row per flow.
pub fn flow_rows<E: Driver<Carried>, P: Probe>(
    spec: &RunSpec,
    whole: &Whole<E, P>,
    alone: &[Unloaded],
    window: Option<&mut WindowActor>,
) -> Vec<FlowRow> {
    let mss = u64::from(spec.mtu_bytes - spec.header_bytes);
    let known = |t: Time| (t != Time::MAX).then_some(t.0);
    let row = |(flow, record, alone): (&Flow, Cow<'_, FlowRecord>, &Unloaded)| FlowRow {
        measured: window.as_ref().map_or(flow.measured, |window| window.counts(flow)),
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
        counts: whole.counts(flow.id),
        ..FlowRow::of(flow, alone)
    };
    whole.flows().iter().zip(alone).map(|(flow, alone)| row((flow, whole.record(flow.id), alone))).collect()
}

/// Returns one row per port. All ports must have caught up to `until`, the time of the last services that
/// have begun.
pub fn port_rows<E: Driver<Carried>, P: Probe>(
    spec: &RunSpec,
    whole: &mut Whole<E, P>,
    actors: &mut [Actor],
    until: Time,
) -> Vec<PortRow> {
    let (net, now) = (&*spec.net, whole.now());
    let measured: Vec<Option<PortUse>> = match actors::window(actors) {
        Some(window) => (0..net.links().len() as u32).map(|link| window.port(LinkId(link))).collect(),
        None => vec![None; net.links().len()],
    };
    let failures = actors.iter().find_map(|actor| if let Actor::Failures(failures) = actor { Some(failures) } else { None });
    let row = |id: LinkId| {
        let at_random = whole.lost_at_random(id);
        let part = whole.at_port(id);
        let area = part.queue_area(id);
        let Part { world, engine } = part;
        let (stats, drops) = (engine.stats(id), world.drops[id.index()]);
        // The counts of a first-in first-out port include the packets that wait.
        let (waiting_packets, waiting_bytes) = match world.ports[id.index()] {
            Some(_) => (0, 0),
            None => engine.fifo_backlog(id, until),
        };
        let (queue, env) = spec.port(id);
        let bytes = |limit: Limit| limit.in_bytes(Bytes(spec.mtu_bytes.into())).map(|bytes| bytes.0);
        PortRow {
            limit_bytes: bytes(queue.limit(&env)),
            mark_bytes: queue.build(&env).marks_above().and_then(|(_, mark)| bytes(mark)),
            tx_packets: stats.tx_packets - u64::from(waiting_packets),
            tx_bytes: stats.tx_bytes - waiting_bytes,
            drops: stats.drops,
            data_drops: drops.data,
            credit_drops: drops.credits,
            trimmed_drops: drops.trimmed,
            control_drops: drops.control,
            drop_bytes: stats.drop_bytes,
            lost_link: stats.lost_sent + stats.lost_unsent + at_random,
            marks: stats.marks + world.ports[id.index()].as_ref().map_or(0, |port| port.qdisc.marks()),
            busy_ps: engine.busy(id).0,
            max_queue_bytes: stats.max_queue_bytes,
            mean_queue_bytes: if now == Time::ZERO { 0.0 } else { area as f64 * 1024.0 / now.0 as f64 },
            window_busy_ps: measured[id.index()].map(|port| port.busy_ps),
            window_mean_queue_bytes: measured[id.index()].map(|port| port.mean_queue_bytes),
            counts: {
                let (port, router) = (world.ports[id.index()].as_deref(), &world.routing.router);
                port_counts(spec, id, &Counting { port, router, receivers: &world.receivers }, now)
            },
            ..PortRow::of(net, id, failures.map_or(Dur::ZERO, |failures| failures.down_time(id, now)))
        }
    };
    (0..net.links().len() as u32).map(LinkId).map(row).collect()
}

/// Returns the totals of a run.
pub fn counters<E: Driver<Carried>, P: Probe>(
    whole: &Whole<E, P>,
    ports: &[PortRow],
    flows: &[FlowRow],
    realised_load: Option<f64>,
) -> Counters {
    let traffic = whole.traffic();
    let lost_at = whole.nodes().into_iter().zip(whole.net().nodes()).filter(|(counts, _)| counts.no_route > 0);
    let no_next_hop = lost_at.map(|(counts, node)| (node.name.clone(), counts.no_route)).collect();
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
    let begun = flows.iter().filter_map(|flow| Some((flow, flow.start_ps?)));
    let first = begun.clone().map(|(_, start)| start).min().unwrap_or(0);
    // A flow that was given up ends with the flows that were not.
    let ends = begun.filter(|(flow, _)| !flow.terminated).map(|(flow, _)| flow.finish_ps.unwrap_or(whole.now().0));
    Counters {
        traffic_ps: ends.max().unwrap_or(first).saturating_sub(first),
        events: whole.events(),
        hops: ports.iter().map(|port| port.tx_packets).sum(),
        end_ps: whole.now().0,
        sent_packets: traffic.sent,
        delivered_packets: traffic.received,
        dropped_packets: traffic.dropped,
        lost_packets: traffic.lost,
        no_next_hop,
        lost_own_packets: traffic.lost_own,
        digest: digest.digest(),
        realised_load,
        ..Counters::default()
    }
}

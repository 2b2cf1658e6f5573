//! A point of a plan as a fluid: an ideal schedule of the flows that the point's systems serve.
//!
//! Source: pFabric (SIGCOMM 2013) section 5 compares with an ideal scheduler of this kind; see
//! [`fabric::schedule`] for the properties that all ideal schedules share.
//!
//! Model: the completion time of a flow is its time in the fluid, plus the time by which the flow in an
//! unloaded network takes longer than its bytes at the bottleneck rate (delays, and store and forward of
//! its packets). So a flow that is alone has slowdown 1, and no flow has less. Failures of links are
//! ignored.
//!
//! Assumed: a flow with several shortest paths takes one of them, with each next hop drawn uniformly, and
//! also the NIC at a host with several NICs. The path is the same for all ideal schedules. The big switch
//! serves by SRPT, as in pFabric, and keeps only the NICs of each path.

use crate::outcome::{Counters, Engine, FlowRow, Outcome, StopReason};
use crate::progress::{Continue, Progress, RunError};
use crate::start::latency;
use crate::timeline::{Timeline, last};
use base::{Dur, FlowId, HostId, JoinId, Rate, Rng, Time};
use fabric::ideal::Ideal as _;
use fabric::routes::Routes;
use fabric::schedule::flow::{FluidFlow, FluidJoin, FluidWait};
use fabric::schedule::network::Network;
use proto::flow::{Join, JoinTime};
use scenario::{IdealName, RunSpec, RunTraffic};
use xxhash_rust::xxh3::Xxh3;

/// Serves the flows of `spec` by an ideal schedule. Calls `control` from time to time; the run stops when
/// `control` returns [`Continue::No`].
pub fn run(spec: &RunSpec, ideal: IdealName, control: &mut dyn FnMut(Progress) -> Continue) -> Result<Outcome, RunError> {
    let net = &*spec.net;
    let RunTraffic { flows: drawn, joins, tasks } = spec.traffic().map_err(RunError::Workload)?;
    let routes = Routes::new(net, &[]);
    let mut rng = Rng::stream(spec.seed, "ideal/paths", &[]);
    let mut rows: Vec<FlowRow> = drawn.iter().map(|flow| FlowRow::of(flow, &spec.unloaded(&routes, flow))).collect();
    let mut flows = Vec::with_capacity(drawn.len());
    for flow in &drawn {
        let path = routes.random_path(net, flow.src, flow.dst, &mut rng);
        let path =
            path.expect("a healthy network is connected: checked with the scenario").iter().map(|link| link.index()).collect();
        let learned = |on: FlowId| learning_delay(spec, &routes, drawn[on.index()].dst, flow.src);
        let on = |&(on, delay): &(FlowId, Dur)| (on.index(), (beyond(&rows[on.index()]) + delay.max(learned(on))).as_secs_f64());
        let wait = flow.wait.as_ref().map(|wait| {
            let gives_up = |after: Dur| {
                let latest = |on: &(FlowId, Dur)| (after + on.1.max(learned(on.0))).as_secs_f64();
                wait.on.iter().map(latest).collect()
            };
            FluidWait {
                on: wait.on.iter().map(on).collect(),
                joins: in_seconds(&wait.joins),
                not_before: wait.not_before.as_secs_f64(),
                give_up_after: wait.give_up_after.map(gives_up),
                allowed: wait.allowed.map(Dur::as_secs_f64),
            }
        });
        flows.push(FluidFlow { arrival: flow.start, wire_bytes: flow.size_wire_bytes, path, deadline: flow.deadline, wait });
    }
    let join = |join: &Join| {
        let on = |&(on, delay): &(FlowId, Dur)| {
            let times = [delay, learning_delay(spec, &routes, drawn[on.index()].dst, join.host)];
            (on.index(), times.map(|time| (beyond(&rows[on.index()]) + time).as_secs_f64()))
        };
        FluidJoin { on: join.on.iter().map(on).collect(), joins: in_seconds(&join.joins) }
    };
    let fluid_joins: Vec<FluidJoin> = joins.iter().map(join).collect();
    let capacity: Vec<Rate> = net.links().iter().map(|link| link.rate).collect();
    let progress = |now: f64, finished| Progress { now: Time((now * 1e12) as u64), finished, flows: flows.len(), events: 0 };
    let mut go_on = |now: f64, finished: usize| control(progress(now, finished)) == Continue::Yes;
    let network = Network { capacity: &capacity, flows: &flows, joins: &fluid_joins };
    let Some(finish) = ideal.build().serve_network(network, &mut go_on) else {
        return Ok(Outcome { flows: rows, stop_reason: StopReason::Stopped, engine: Engine::Ideal, ..Outcome::default() });
    };
    let mut digest = Xxh3::new();
    let mut times = vec![None; joins.len()];
    for index in behind_what_they_wait_for(&drawn, &joins) {
        // Returns when a flow has ended, for a host that gives up on it after some time.
        let end = |on: FlowId, host: HostId, give_up_after: Option<Dur>| {
            let row = &rows[on.index()];
            let given_up = row.start_ps.zip(give_up_after).map(|(start, after)| start + after.0);
            let at = Time(row.finish_ps.into_iter().chain(given_up).min()?);
            Some(JoinTime { at, known: at + learning_delay(spec, &routes, HostId(row.dst), host) })
        };
        if let Some(at) = index.checked_sub(drawn.len()) {
            let Join { host, on, joins } = &joins[at];
            times[at] = last(on, joins, |on| end(on, *host, None), &times);
            continue;
        }
        if let Some(wait) = &drawn[index].wait {
            let last = last(&wait.on, &wait.joins, |on| end(on, drawn[index].src, wait.give_up_after), &times);
            let start = last.map(|last| last.after(Dur::ZERO).max(wait.not_before).0);
            rows[index].start_ps = start.filter(|start| spec.end.is_none_or(|end| *start < end.0));
            rows[index].deadline_ps = rows[index].start_ps.and_then(|start| Some(start + wait.allowed?.0));
        }
        rows[index].finish_ps = finish_ps(&rows[index], finish[index]).filter(|ps| spec.end.is_none_or(|end| *ps <= end.0));
    }
    rows.iter().for_each(|row| digest.update(&row.finish_ps.unwrap_or(u64::MAX).to_le_bytes()));
    let unfinished = rows.iter().any(|row| row.finish_ps.is_none());
    let last = rows.iter().filter_map(|row| row.finish_ps).max().unwrap_or(0);
    let end_ps = if unfinished { spec.end.map_or(last, |end| end.0) } else { last };
    let realised_load = spec.realised_load(&drawn);
    let outcome = Outcome {
        flows: rows,
        counters: Counters {
            end_ps,
            digest: digest.digest(),
            realised_load,
            nominal_load: spec.nominal_load(),
            ..Counters::default()
        },
        complete: true,
        stop_reason: if unfinished { StopReason::End } else { StopReason::Finished },
        engine: Engine::Ideal,
        ..Outcome::default()
    };
    Ok(Timeline { spec, healthy: &routes, joins: &joins, tasks: &tasks }.add(outcome))
}

/// Returns all flows by index, and after them all joins, each after the flows and joins that it waits for.
fn behind_what_they_wait_for(flows: &[proto::Flow], joins: &[Join]) -> Vec<usize> {
    let count = flows.len() + joins.len();
    let on = |index: usize| {
        let wait = flows.get(index).and_then(|flow| flow.wait.as_ref()).map(|wait| (&wait.on, &wait.joins));
        let join = index.checked_sub(flows.len()).map(|at| (&joins[at].on, &joins[at].joins));
        wait.or(join).into_iter().flat_map(|(on, joins)| {
            let joins = joins.iter().map(|(join, _)| flows.len() + join.index());
            on.iter().map(|(flow, _)| flow.index()).chain(joins)
        })
    };
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); count];
    let mut missing: Vec<usize> = (0..count).map(|index| on(index).count()).collect();
    (0..count).for_each(|index| on(index).for_each(|other| next[other].push(index)));
    let mut order: Vec<usize> = (0..count).filter(|&index| missing[index] == 0).collect();
    let mut at = 0;
    while let Some(&index) = order.get(at) {
        at += 1;
        for &waits in &next[index] {
            missing[waits] -= 1;
            if missing[waits] == 0 {
                order.push(waits);
            }
        }
    }
    order
}

/// Returns the time in which a host learns of the end of a flow at another host: the latency of a bare
/// header.
fn learning_delay(spec: &RunSpec, routes: &Routes, at: HostId, host: HostId) -> Dur {
    if at == host { Dur::ZERO } else { latency(spec, routes, at, host) }
}

fn in_seconds(joins: &[(JoinId, Dur)]) -> Vec<(usize, f64)> {
    joins.iter().map(|(join, delay)| (join.index(), delay.as_secs_f64())).collect()
}

/// Returns the time by which the flow in an unloaded network takes longer than its bytes at the
/// bottleneck rate.
fn beyond(row: &FlowRow) -> Dur {
    Dur(row.ideal_fct_ps.saturating_sub(at_bottleneck(row)))
}

/// Returns how long the bytes of a flow take at the bottleneck rate, in ps.
fn at_bottleneck(row: &FlowRow) -> u64 {
    (u128::from(row.size_wire_bytes) * 8_000_000_000_000 / u128::from(row.bottleneck_bps.max(1))) as u64
}

/// Returns when the last byte of a flow arrives, if its last bit leaves the fluid at `finish` seconds;
/// `None` if the flow never finishes.
fn finish_ps(row: &FlowRow, finish: f64) -> Option<u64> {
    if !finish.is_finite() {
        return None;
    }
    // A flow must not be faster than in an unloaded network, neither by rounding of the fluid's seconds
    // nor because the big switch has no slow core.
    let start = row.start_ps?;
    let in_fluid = ((finish * 1e12) as u64).saturating_sub(start).max(at_bottleneck(row));
    Some(start + in_fluid + beyond(row).0)
}

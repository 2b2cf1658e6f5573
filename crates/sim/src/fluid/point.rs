//! A point of a plan as a fluid: the very flows that the systems get, served ideally.
//!
//! Source: pFabric (SIGCOMM 2013) section 5 compares with such an ideal scheduler; see [`super::network`] for the schedules.
//!
//! Model: a flow's completion time is its time in the fluid, and what a lone flow takes longer than its bytes at the bottleneck: delays, and
//! the store and forward of its packets. A lone flow so has slowdown 1, and no flow has less. The network is the healthy one.
//!
//! Assumed: of several shortest paths a flow takes one, each next hop drawn evenly, the same for all ideal references. The big switch
//! serves by SRPT, as pFabric's ideal does.

use super::Policy;
use super::network::{self, Flow};
use crate::outcome::{Counters, FlowRow, Outcome, StopReason};
use crate::run::{Continue, Progress, RunError};
use base::{HostId, Rate, Rng, Time};
use fabric::net::Net;
use fabric::routes::{self, Routes};
use scenario::{Ideal, RunSpec};
use xxhash_rust::xxh3::Xxh3;

/// The policy of an ideal reference, and whether only the links of hosts count.
fn schedule_of(ideal: Ideal) -> (Policy, bool) {
    match ideal {
        Ideal::Srpt => (Policy::Srpt, false),
        Ideal::Ps => (Policy::Ps, false),
        Ideal::Fcfs => (Policy::Fcfs, false),
        Ideal::Edf => (Policy::Edf, false),
        Ideal::Merp => (Policy::Merp, false),
        Ideal::BigSwitch => (Policy::Srpt, true),
    }
}

/// Serves the flows of `spec`. `control` is asked now and then whether to go on.
pub fn run(spec: &RunSpec, ideal: Ideal, control: &mut dyn FnMut(Progress) -> Continue) -> Result<Outcome, RunError> {
    let net = &*spec.net;
    let drawn = spec.flows().map_err(RunError::Workload)?;
    let routes = Routes::new(net, &[]);
    let mut rng = Rng::stream(spec.seed, "ideal/paths", &[]);
    let (mut rows, mut flows) = (Vec::with_capacity(drawn.len()), Vec::with_capacity(drawn.len()));
    for flow in &drawn {
        let path =
            path(net, &routes, flow.src, flow.dst, &mut rng).expect("a healthy network is connected: checked with the scenario");
        rows.push(row(spec, &routes, flow, path.len()));
        flows.push(Flow { arrival: flow.start, wire_bytes: flow.size_wire_bytes, path, deadline: flow.deadline });
    }
    let (policy, big_switch) = schedule_of(ideal);
    if big_switch {
        flows = network::big_switch(&flows);
    }
    let capacity: Vec<Rate> = net.links().iter().map(|link| link.rate).collect();
    let progress = |now: f64, finished| Progress { now: Time((now * 1e12) as u64), finished, flows: flows.len(), events: 0 };
    let mut go_on = |now: f64, finished: usize| control(progress(now, finished)) == Continue::Yes;
    let Some(finish) = network::finish_times(policy, &capacity, &flows, &mut go_on) else {
        return Ok(Outcome { flows: rows, stop_reason: StopReason::Stopped, ideal: true, ..Outcome::default() });
    };
    let mut digest = Xxh3::new();
    for (row, finish) in rows.iter_mut().zip(finish) {
        row.finish_ps = finish_ps(row, finish).filter(|ps| spec.end.is_none_or(|end| *ps <= end.0));
        digest.update(&row.finish_ps.unwrap_or(u64::MAX).to_le_bytes());
    }
    let unfinished = rows.iter().any(|row| row.finish_ps.is_none());
    let last = rows.iter().filter_map(|row| row.finish_ps).max().unwrap_or(0);
    let end_ps = if unfinished { spec.end.map_or(last, |end| end.0) } else { last };
    let realised_load = spec.realised_load(&drawn);
    Ok(Outcome {
        flows: rows,
        counters: Counters { end_ps, digest: digest.digest(), realised_load, ..Counters::default() },
        complete: true,
        stop_reason: if unfinished { StopReason::End } else { StopReason::Finished },
        ideal: true,
        ..Outcome::default()
    })
}

/// A shortest path as link indices.
fn path(net: &Net, routes: &Routes, src: HostId, dst: HostId, rng: &mut Rng) -> Option<Vec<usize>> {
    let (mut at, end) = (net.hosts()[src.index()], net.hosts()[dst.index()]);
    let mut path = Vec::new();
    while at != end {
        let link = match routes.candidates(at, dst) {
            [] => return None,
            [only] => *only,
            several => several[rng.below(several.len() as u64) as usize],
        };
        path.push(link.index());
        at = net.link(link).to;
    }
    Some(path)
}

/// What is known of a flow before it is served.
fn row(spec: &RunSpec, routes: &Routes, flow: &proto::Flow, hops: usize) -> FlowRow {
    let (full, header) = (u64::from(spec.mtu_bytes), u64::from(spec.header_bytes));
    let shapes = routes.shapes(&spec.net, flow.src, flow.dst);
    let ideal = routes.ideal_fct(&spec.net, flow.src, flow.dst, flow.size_bytes, full - header, header);
    let bottleneck = shapes.iter().map(|path| routes::bottleneck(path)).max();
    FlowRow { ideal_fct_ps: ideal.0, bottleneck_bps: bottleneck.unwrap_or(Rate(1)).0, hops: hops as u8, ..FlowRow::of(flow) }
}

/// When the last byte arrives, of a flow whose last bit leaves the fluid at `finish` seconds; `None`: never.
fn finish_ps(row: &FlowRow, finish: f64) -> Option<u64> {
    if !finish.is_finite() {
        return None;
    }
    let at_bottleneck = u128::from(row.size_wire_bytes) * 8_000_000_000_000 / u128::from(row.bottleneck_bps.max(1));
    let at_bottleneck = at_bottleneck as u64;
    // Rounding of the fluid's seconds, or a big switch in front of a slower core, must not beat a lone flow.
    let in_fluid = ((finish * 1e12) as u64).saturating_sub(row.start_ps).max(at_bottleneck);
    Some(row.start_ps + in_fluid + row.ideal_fct_ps.saturating_sub(at_bottleneck))
}

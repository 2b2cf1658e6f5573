//! Pairs of hosts without a path between them, although one sends to the other or waits for it.
//!
//! A network may have other pairs without a path: hosts do not forward, so hosts that are cabled to
//! each other reach their neighbours only.

use crate::event::holds::Holds;
use crate::plan::draft::Built;
use crate::plan::spec::{Plan, RunSpec};
use crate::text::diag::{Item, Place};
use crate::text::part::Part;
use crate::workload::hosts::{name_of, same_rack};
use crate::workload::{Env, Workload};
use base::HostId;
use fabric::net::Net;
use fabric::routes::Routes;
use std::collections::{BTreeMap, BTreeSet};

/// Returns an error if a workload may pick two hosts without a path between them.
pub(crate) fn picked(built: &Built, env: &Env<'_>, workload: &impl Workload, part: Part<'_>) -> Option<Item> {
    let picks = workload.picks(env).filter(|_| built.apart)?;
    let net = &*built.net;
    let allowed = |src: HostId, dst: HostId| src != dst && !(picks.across && same_rack(net, src, dst));
    let mut pairs = picks.sources.iter().flat_map(|src| picks.targets.iter().map(move |dst| (*src, *dst)));
    let (src, dst) = pairs.find(|(src, dst)| allowed(*src, *dst) && !has_path(net, &built.routes, *src, *dst))?;
    let message =
        format!("`{}` may pick `{}` and `{}`, but there is no path between them", part.path, name_of(net, src), name_of(net, dst));
    let (label, hint) = reason(net, src, dst);
    Some(Item::new(part.at, message, label, hint))
}

/// Returns an error for the first point with flows, or waits for flows, between hosts without a path.
/// `places` are those of the workloads.
pub(crate) fn of_flows(plan: &Plan, places: &[Place]) -> Option<Item> {
    let mut seen = BTreeSet::new();
    plan.points.iter().filter(|point| point.label == plan.points[0].label).find_map(|point| {
        let run = &point.run;
        let new = seen.insert(format!("{:?} {:?} {} {:?}", run.topology, run.workloads, run.seed, run.end));
        if new { in_run(run, places) } else { None }
    })
}

fn in_run(run: &RunSpec, places: &[Place]) -> Option<Item> {
    let net = &*run.net;
    let routes = Routes::new(net, &[]);
    routes.unreachable()?;
    // A workload whose flows cannot be drawn is reported when the flows are needed.
    let traffic = run.traffic().ok()?;
    // By pair: the first workload, and whether a flow needs the path, not only a wait.
    let mut without: BTreeMap<(HostId, HostId), (u16, bool)> = BTreeMap::new();
    let mut need = |src: HostId, dst: HostId, workload: u16, sends: bool| {
        if src != dst && !has_path(net, &routes, src, dst) {
            without.entry((src, dst)).or_insert((workload, false)).1 |= sends;
        }
    };
    for flow in &traffic.flows {
        need(flow.src, flow.dst, flow.workload, true);
        // A host learns of the end of a flow from its receiver, by a packet.
        let wait = flow.wait.iter().flat_map(|wait| &wait.on);
        wait.for_each(|(other, _)| need(traffic.flows[other.index()].dst, flow.src, flow.workload, false));
    }
    for join in &traffic.joins {
        for other in join.on.iter().map(|(other, _)| &traffic.flows[other.index()]) {
            need(other.dst, join.host, other.workload, false);
        }
    }
    let mut without: Vec<_> = without.into_iter().collect();
    without.sort_by_key(|(_, (_, sends))| !sends);
    let &((src, dst), (workload, _)) = without.first()?;
    let few = without.iter().take(3).map(|((src, dst), (_, sends))| {
        let why = if *sends { "" } else { " (to learn of the end of a flow)" };
        format!("`{}` to `{}`{why}", name_of(net, *src), name_of(net, *dst))
    });
    let few = few.collect::<Vec<_>>().join(", ");
    let more = if without.len() > 3 { format!(" and {} more", without.len() - 3) } else { String::new() };
    let (name, (label, hint)) = (&run.workloads[usize::from(workload)].0, reason(net, src, dst));
    let message = format!("`workload.{name}` needs paths that do not exist: from {few}{more}");
    Some(Item::new(places[usize::from(workload)], message, label, hint))
}

fn has_path(net: &Net, routes: &Routes, src: HostId, dst: HostId) -> bool {
    routes.distance(net.hosts()[src.index()], dst).is_some()
}

/// Returns why two hosts have no path, and what to do.
fn reason(net: &Net, src: HostId, dst: HostId) -> (&'static str, &'static str) {
    let islands = Holds::new(net).islands(net);
    let island = |host: HostId| islands[net.hosts()[host.index()].index()];
    if island(src) == island(dst) {
        let hint = "all cables between these hosts lead over other hosts, and only switches forward packets: add a cable or a switch, or \
                    use other hosts";
        ("hosts do not forward", hint)
    } else {
        ("the network is not connected", "no cables connect these hosts: add the missing cables, or use other hosts")
    }
}

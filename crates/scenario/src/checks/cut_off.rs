//! Flows between hosts that events disconnect permanently.

use crate::event::change::when;
use crate::event::holds::Holds;
use crate::event::params::{Event, Failures, WhenUnreachable};
use crate::plan::spec::{Plan, RunSpec};
use crate::text::diag::{Item, Place};
use crate::workload::hosts::name_of;
use base::HostId;
use fabric::net::Net;
use fabric::routes::Routes;
use std::collections::{BTreeMap, BTreeSet};

/// Returns an error for the first point with flows whose hosts stay disconnected, unless the
/// scenario allows it (`unreachable = "run"`).
pub(crate) fn cut_off(plan: &Plan, places: &[Place]) -> Option<Item> {
    let mut seen = BTreeSet::new();
    for point in plan.points.iter().filter(|p| p.label == plan.points[0].label) {
        let run = &point.run;
        let refuse = |f: &&Failures| f.params.unreachable == WhenUnreachable::Refuse;
        let Some(failures) = run.failures.as_ref().filter(refuse) else { continue };
        let traffic = format!("{:?} {:?} {:?} {} {:?}", run.topology, failures.events, run.workloads, run.seed, run.end);
        if seen.insert(traffic)
            && let Some(item) = cut_off_in(run, &failures.events, places)
        {
            return Some(item);
        }
    }
    None
}

fn cut_off_in(run: &RunSpec, events: &[Event], places: &[Place]) -> Option<Item> {
    let net = &*run.net;
    let changes = run.changes();
    let mut holds = Holds::new(net);
    changes.iter().filter(|c| run.end.is_none_or(|end| c.at < end)).for_each(|change| {
        holds.apply(net, change);
    });
    let are_apart = apart(net, &holds);
    let hosts = || (0..net.hosts().len() as u32).map(HostId);
    if net.multi_nic_host().is_none() && hosts().all(|host| !are_apart(HostId(0), host)) {
        return None;
    }
    // A workload whose flows cannot be drawn is reported when the flows are needed.
    let flows = run.flows().ok()?;
    let mut pairs: BTreeMap<(HostId, HostId), u64> = BTreeMap::new();
    for flow in flows.iter().filter(|flow| are_apart(flow.src, flow.dst)) {
        *pairs.entry((flow.src, flow.dst)).or_default() += 1;
    }
    let (&(src, dst), _) = pairs.first_key_value()?;
    // The change that disconnects the first pair permanently.
    let mut holds = Holds::new(net);
    let mut since = None;
    for change in &changes {
        holds.apply(net, change);
        since = apart(net, &holds)(src, dst).then(|| since.unwrap_or(change));
    }
    let since = since?;
    let name = &events[since.event].name;
    let few = pairs.iter().take(3).map(|((src, dst), n)| format!("`{}` to `{}` ({n})", name_of(net, *src), name_of(net, *dst)));
    let few = few.collect::<Vec<_>>().join(", ");
    let more = if pairs.len() > 3 { format!(" and {} more pairs", pairs.len() - 3) } else { String::new() };
    let seed = if events[since.event].random.is_some() { format!(" with seed {}", run.seed) } else { String::new() };
    let count: u64 = pairs.values().sum();
    let message =
        format!("`event.{name}`: {count} of {} flows have no path from `{}` on{seed}: {few}{more}", flows.len(), when(since.at));
    let hint = "bring the link or node up again with `until`, use other hosts, or write `unreachable = \"run\"` in [failure] to count \
                these flows as unfinished";
    Some(Item::new(places[since.event], message, "these hosts stay disconnected", hint))
}

/// Returns a function that says whether two hosts have no path between them while these links are
/// down.
fn apart<'a>(net: &'a Net, holds: &Holds) -> Box<dyn Fn(HostId, HostId) -> bool + 'a> {
    let node = |host: HostId| net.hosts()[host.index()];
    if net.multi_nic_host().is_some() {
        // Hosts do not forward: a common host does not connect two switches.
        let routes = Routes::new(net, &holds.all_down());
        return Box::new(move |a, b| a != b && routes.distance(node(a), b).is_none());
    }
    let islands = holds.islands(net);
    Box::new(move |a, b| islands[node(a).index()] != islands[node(b).index()])
}

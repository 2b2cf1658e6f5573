//! Failures that touched no traffic: nothing that a run reports depends on them.
//!
//! A failure touched no traffic if its links lost no packet, and if no flow that was open while they were down, not yet
//! finished, has one of them on any of its shortest paths in the healthy network, in either direction. Then no packet
//! was lost or took another way because of it. A failure of a link that flows could have taken, but did not, is not
//! found.

use crate::outcome::{FlowRow, PortRow, Untouched};
use base::{HostId, LinkId, NodeId};
use fabric::net::Net;
use fabric::routes::Routes;
use scenario::RunSpec;
use scenario::event::Holds;
use std::collections::BTreeSet;

/// Returns the failures of a run that touched no traffic, by time. `end_ps` is the end of the run.
pub fn untouched(spec: &RunSpec, healthy: &Routes, flows: &[FlowRow], ports: &[PortRow], end_ps: u64) -> Vec<Untouched> {
    let (net, changes) = (&*spec.net, spec.changes());
    let mut holds = Holds::new(net);
    let mut found = Vec::new();
    for (i, change) in changes.iter().enumerate() {
        let links = holds.apply(net, change);
        if change.up || links.is_empty() || change.at.0 > end_ps {
            continue;
        }
        let end = changes[i..].iter().find(|later| later.up && later.event == change.event && later.target == change.target);
        let until_ps = end.map(|later| later.at.0).filter(|at| *at <= end_ps);
        // What another event holds down is down for longer; the losses of its links count here too.
        let (from, until) = (change.at.0, until_ps.unwrap_or(end_ps));
        let open = |flow: &&FlowRow| {
            flow.start_ps.is_some_and(|start| start <= until) && flow.finish_ps.is_none_or(|finish| finish >= from)
        };
        let lost = links.iter().any(|link| ports[link.index()].lost_link > 0);
        let mut pairs = BTreeSet::new();
        for flow in flows.iter().filter(open) {
            pairs.extend([(flow.src, flow.dst), (flow.dst, flow.src)]);
        }
        let uses = |(src, dst): &(u32, u32)| is_on_a_path(net, healthy, &links, HostId(*src), HostId(*dst));
        if !lost && !pairs.iter().any(uses) {
            found.push(Untouched { target: change.target.name(net), from_ps: from, until_ps });
        }
    }
    found
}

/// Returns whether one of the links is on a shortest path between two hosts.
fn is_on_a_path(net: &Net, healthy: &Routes, links: &[LinkId], src: HostId, dst: HostId) -> bool {
    let (mut seen, mut next) = (BTreeSet::new(), vec![net.hosts()[src.index()]]);
    while let Some(node) = next.pop() {
        for &link in healthy.candidates(node, dst) {
            if links.contains(&link) {
                return true;
            }
            let to: NodeId = net.link(link).to;
            if net.host(to).is_none() && seen.insert(to) {
                next.push(to);
            }
        }
    }
    false
}

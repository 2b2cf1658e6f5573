//! Checks whether CONGA can run on a network.

use super::{Mode, Params, TAGS, homes};
use crate::net::Net;
use crate::paths::Counts;
use crate::paths::route_room;
use crate::router::{Env, needs_one_nic};
use crate::routes::Routes;
use base::params::Problem;
use base::{HostId, NodeId};
use std::collections::{BTreeMap, BTreeSet};

/// Returns the problems of parameters that depend on the network.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    let several = needs_one_nic(env, "conga", "the leaf of the source chooses the path to the leaf of the destination");
    several.or_else(|| problem(params, env)).into_iter().collect()
}

fn problem(params: &Params, env: &Env<'_>) -> Option<Problem> {
    let (net, routes) = (env.net, env.routes);
    // The leaves, each with one of its hosts.
    let leaves: BTreeMap<NodeId, HostId> =
        homes(net).zip((0..).map(HostId)).filter(|(home, _)| net.host(*home).is_none()).collect();
    let name = |node: NodeId| net.node(node).name.as_str();
    let refuse = |key, message: String, hint: &str| Some(Problem { key, message, hint: hint.to_owned() });
    if leaves.len() < 2 {
        let message =
            format!("`conga` balances traffic between leaves (switches with hosts), and this network has {}", leaves.len());
        return refuse("kind", message, "use a topology with at least two leaves, or the router `ecmp`");
    }
    let mut counts = Counts::default();
    for (&leaf, &dst) in &leaves {
        if let Some(transit) = transit(net, routes, &leaves, leaf, dst) {
            let message = format!(
                "`{}` has hosts and forwards traffic between other leaves: `conga` needs a network of leaves and spines",
                name(transit)
            );
            return refuse("kind", message, "use the topology `leaf_spine` or `fat_tree`, or the router `ecmp`");
        }
        for (&from, &src) in leaves.iter().filter(|(from, _)| **from != leaf) {
            let (tags, what) = match params.mode {
                Mode::Path => (counts.count(net, routes, from, dst), "paths"),
                Mode::Edge => (routes.candidates(from, dst).len() as u32, "uplinks"),
            };
            if tags > TAGS as u32 {
                let pair = format!("from `{}` to `{}`", name(from), name(leaf));
                let message = format!("{tags} {what} lead {pair}, but a tag of 4 bits can distinguish only {TAGS}");
                let hint = if params.mode == Mode::Path {
                    "write `mode = \"edge\"`, or use a smaller network"
                } else {
                    "use a smaller network"
                };
                return refuse("mode", message, hint);
            }
            let links = routes.distance(net.hosts()[src.index()], dst).unwrap_or(0) as usize;
            if params.mode == Mode::Path && links > route_room(net) + 1 {
                let message = format!("paths have {} switches, but a source route has room for {}", links - 1, route_room(net));
                return refuse("mode", message, "write `mode = \"edge\"`");
            }
        }
    }
    None
}

/// Returns a leaf on a path from another leaf to the leaf of `dst`, if there is one. A spine without
/// a cable to that leaf would send packets through another leaf, but gets none.
fn transit(net: &Net, routes: &Routes, leaves: &BTreeMap<NodeId, HostId>, leaf: NodeId, dst: HostId) -> Option<NodeId> {
    let mut open: Vec<NodeId> = leaves.keys().rev().copied().filter(|from| *from != leaf).collect();
    let mut seen: BTreeSet<NodeId> = open.iter().copied().chain([leaf]).collect();
    while let Some(node) = open.pop() {
        for next in routes.candidates(node, dst).iter().map(|&link| net.link(link).to) {
            if next != leaf && leaves.contains_key(&next) {
                return Some(next);
            }
            if seen.insert(next) {
                open.push(next);
            }
        }
    }
    None
}

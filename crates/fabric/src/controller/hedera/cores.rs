//! The core switches of a network, where each core is on one path between any two hosts of
//! different pods.
//!
//! Cores are the switches of the highest tier; pods are the connected parts of the network without
//! the cores. In a fat tree these are the cores and pods of the literature, in a leaf-spine network
//! the spines and the leaves.

use crate::net::{HOST_TIER, Net, TOR_TIER};
use crate::paths::{AllPaths, Counts, MAX_PATHS};
use crate::routes::Routes;
use base::{HostId, LinkId, NodeId};
use std::collections::{BTreeMap, BTreeSet};

/// The cores of a network and the places of its hosts.
#[derive(Clone, Debug, Default)]
pub struct Cores {
    /// The cores, by id.
    pub cores: Vec<NodeId>,
    /// The pod of each host.
    pub pod: Vec<usize>,
    /// The switch of each host.
    pub edge: Vec<NodeId>,
    /// For each switch of a source: the index of the path over each core. Filled on the first
    /// lookup.
    indices: BTreeMap<NodeId, Vec<Option<u16>>>,
}

impl Cores {
    /// Returns the index of the path over a core, between two hosts of different pods.
    pub fn index(&mut self, paths: &mut AllPaths, net: &Net, src: HostId, dst: HostId, core: usize) -> Option<u16> {
        // The source's part of the path determines the core: from there a single path leads down.
        let Cores { cores, indices, edge, .. } = self;
        let known = indices.entry(edge[src.index()]).or_insert_with(|| {
            let mut by_core = vec![None; cores.len()];
            for (path, index) in paths.list(src, dst).iter().zip(0..) {
                if let Some(place) = crossed(net, &path.links, cores) {
                    by_core[place] = Some(index);
                }
            }
            by_core
        });
        known[core]
    }
}

/// Returns the index of the core that a path crosses.
fn crossed(net: &Net, links: &[LinkId], cores: &[NodeId]) -> Option<usize> {
    links.iter().find_map(|&link| cores.binary_search(&net.link(link).to).ok())
}

/// Returns the cores of a network. The error says why the network has no suitable cores.
pub fn find(net: &Net, routes: &Routes) -> Result<Cores, String> {
    let all = || (0..net.nodes().len() as u32).map(NodeId);
    let top = net.nodes().iter().map(|node| node.tier).max().unwrap_or(HOST_TIER);
    let cores: Vec<NodeId> = all().filter(|&node| net.node(node).tier == top).collect();
    if top <= TOR_TIER {
        return Err("this network has no switches above those of its hosts".to_owned());
    }
    if let Some(host) = net.multi_nic_host() {
        return Err(format!("host `{}` has {} NICs", net.node(net.hosts()[host.index()]).name, net.nics(host).len()));
    }
    let hosts = || (0..net.hosts().len() as u32).map(HostId);
    let edge: Vec<NodeId> = hosts().map(|host| net.link(net.first_nic(host)).to).collect();
    let pods = pods(net, |node| cores.binary_search(&node).is_ok());
    let pod: Vec<usize> = hosts().map(|host| pods[net.hosts()[host.index()].index()]).collect();
    if let Some(core) = edge.iter().find(|edge| cores.binary_search(edge).is_ok()) {
        return Err(format!("the core `{}` has hosts", net.node(*core).name));
    }
    // Check from the first host of each switch to the first host in another pod.
    let mut counts = Counts::default();
    let mut seen = BTreeSet::new();
    for src in hosts().filter(|host| seen.insert(edge[host.index()])) {
        let Some(dst) = hosts().find(|dst| pod[dst.index()] != pod[src.index()]) else {
            return Err("no path between two hosts crosses a core".to_owned());
        };
        let from = net.hosts()[src.index()];
        let count = counts.count(net, routes, from, dst);
        let path = |rank| crossed(net, &counts.path(net, routes, from, dst, rank)?, &cores);
        let over: BTreeSet<_> = (0..count.min(MAX_PATHS)).filter_map(path).collect();
        if count as usize != cores.len() || over.len() != cores.len() {
            let name = |host: HostId| &net.node(net.hosts()[host.index()]).name;
            return Err(format!(
                "there are {} cores, but {count} paths over {} of them from `{}` to `{}`",
                cores.len(),
                over.len(),
                name(src),
                name(dst)
            ));
        }
    }
    Ok(Cores { cores, pod, edge, indices: BTreeMap::new() })
}

/// Returns the connected part of the network without the cores to which each node belongs.
fn pods(net: &Net, is_core: impl Fn(NodeId) -> bool) -> Vec<usize> {
    let mut pods = vec![usize::MAX; net.nodes().len()];
    for start in (0..net.nodes().len() as u32).map(NodeId) {
        if pods[start.index()] != usize::MAX || is_core(start) {
            continue;
        }
        let mut reached = vec![start];
        pods[start.index()] = start.index();
        while let Some(node) = reached.pop() {
            for next in net.out_links(node).map(|link| net.link(link).to) {
                if pods[next.index()] == usize::MAX && !is_core(next) {
                    pods[next.index()] = start.index();
                    reached.push(next);
                }
            }
        }
    }
    pods
}

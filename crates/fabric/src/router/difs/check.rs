//! Checks that a network is a fat tree or leaf-spine network, where the ports of a path downhill
//! mirror those uphill (section II-B).

use super::switch::ups;
use crate::net::{HOST_TIER, TOR_TIER, Tier};
use crate::router::{Env, needs_one_nic};
use base::params::Problem;
use base::{LinkId, NodeId};
use std::collections::BTreeMap;

/// Returns the problem of a network whose ports do not mirror each other.
pub fn check(env: &Env<'_>) -> Vec<Problem> {
    if let Some(problem) =
        needs_one_nic(env, "difs", "the ports of a path downhill must mirror those uphill, from the host's switch on")
    {
        return vec![problem];
    }
    let problem = |message: String| Problem {
        key: "kind",
        message,
        hint: "use the topology `fat_tree` or `leaf_spine`, or the router `ecmp`".to_owned(),
    };
    fault(env).map(|why| problem(format!("`difs` works only on fat trees and leaf-spine networks; {why}"))).into_iter().collect()
}

/// Returns why the network is neither a fat tree nor a leaf-spine network.
fn fault(env: &Env<'_>) -> Option<String> {
    let net = env.net;
    let nodes = || (0..net.nodes().len() as u32).map(NodeId);
    let (tier, name) = (|node: NodeId| net.node(node).tier, |node: NodeId| net.node(node).name.as_str());
    let top = nodes().map(tier).max().unwrap_or(HOST_TIER);
    if !(2..=3).contains(&top) {
        return Some(format!("this network has {top} tier{} of switches", if top == 1 { "" } else { "s" }));
    }
    // The index that a node has among the ports to the tier above; it must be the same at all
    // switches below the node.
    let mut called: BTreeMap<NodeId, (usize, NodeId)> = BTreeMap::new();
    for node in nodes().filter(|&node| tier(node) != HOST_TIER) {
        for link in net.out_links(node).map(|link| net.link(link)) {
            let step = [tier(node), tier(link.to)];
            if step[0].abs_diff(step[1]) != 1 {
                return Some(format!(
                    "`{}` and `{}` are connected, but are in tiers {} and {}",
                    name(node),
                    name(link.to),
                    step[0],
                    step[1]
                ));
            }
        }
        let above: Vec<LinkId> = ups(net, node);
        if above.is_empty() && tier(node) != top {
            return Some(format!("`{}` has no port to the tier above", name(node)));
        }
        for (place, to) in above.into_iter().map(|link| net.link(link).to).enumerate() {
            let (before, by) = *called.entry(to).or_insert((place, node));
            if before != place {
                let ports = format!("port {} of `{}` and port {} of `{}`", before + 1, name(by), place + 1, name(node));
                return Some(format!("`{}` is connected to {ports}; the port numbers must be equal", name(to)));
            }
        }
    }
    // Three tiers: the switches below a top switch have the same index themselves, and the top
    // switch has one way down to each host.
    for core in nodes().filter(|&node| tier(node) == top) {
        let below: Vec<NodeId> = net.out_links(core).map(|link| net.link(link).to).collect();
        let place = |node: NodeId| called.get(&node).map(|(place, _)| *place);
        if top > TOR_TIER + 1
            && let Some(other) = below.iter().find(|&&node| place(node) != place(below[0]))
        {
            return Some(format!(
                "`{}` and `{}`, both below `{}`, are on different ports of the switches below them",
                name(below[0]),
                name(*other),
                name(core)
            ));
        }
        let ways = |host: u32| env.routes.candidates(core, base::HostId(host)).len();
        if let Some(host) = (0..net.hosts().len() as u32).find(|&host| ways(host) != 1) {
            return Some(format!(
                "{} next hops lead down from `{}` to `{}`",
                ways(host),
                name(core),
                name(net.hosts()[host as usize])
            ));
        }
    }
    // The uphill switches of any two hosts must have the same number of ports.
    let count = |node: NodeId| ups(net, node).len();
    let mut ports: BTreeMap<Tier, (usize, NodeId)> = BTreeMap::new();
    for node in nodes().filter(|&node| (TOR_TIER..top).contains(&tier(node))) {
        let (most, first) = *ports.entry(tier(node)).or_insert((count(node), node));
        if most != count(node) {
            return Some(format!("`{}` has {most} ports to the tier above, `{}` has {}", name(first), name(node), count(node)));
        }
    }
    None
}

//! Average load that workloads offer every link: traffic between hosts, split equally over the
//! shortest paths of the healthy network.

use crate::workload::hosts;
use crate::workload::load::OfferedTraffic;
use base::{HostId, LinkId, NodeId};
use fabric::net::Net;
use fabric::routes::Routes;

/// Maximum number of pairs of a switch with hosts and another switch. For larger networks the
/// computation would take too long for `check`, and no load is computed.
const MAX_CELLS: usize = 20_000_000;

/// Returns the bits per second that traffic offers each link, by link id, or `None` if the network
/// is too large.
pub(crate) fn by_link(net: &Net, routes: &Routes, traffic: &OfferedTraffic) -> Option<Vec<f64>> {
    let home = |host: &HostId| net.link(net.first_nic(*host)).to;
    // A cable between two hosts: the NIC is the only link of a path.
    if net.multi_nic_host().is_some() || traffic.sources.iter().any(|source| net.host(home(source)).is_some()) {
        return by_target(net, routes, traffic);
    }
    let mut rates = vec![0.0; net.links().len()];
    let mut at_home = vec![Group::default(); net.nodes().len()];
    for target in &traffic.targets {
        at_home[home(target).index()].targets += 1.0;
        at_home[home(target).index()].first = Some(*target);
    }
    let is_target = marked(net, &traffic.targets);
    // By source: the rate to each of its targets.
    let mut each = vec![0.0; net.hosts().len()];
    let own = traffic.bps / traffic.sources.len().max(1) as f64;
    for source in &traffic.sources {
        let group = &mut at_home[home(source).index()];
        let barred = if traffic.across { group.targets } else { f64::from(u8::from(is_target[source.index()])) };
        let targets = traffic.targets.len() as f64 - barred;
        if targets > 0.0 {
            each[source.index()] = own / targets;
            group.each += own / targets;
            rates[net.first_nic(*source).index()] += own;
        }
    }
    let all: f64 = at_home.iter().map(|group| group.each).sum();
    for target in &traffic.targets {
        let barred = if traffic.across { at_home[home(target).index()].each } else { each[target.index()] };
        rates[net.link(net.first_nic(*target)).reverse.index()] += all - barred;
    }
    let switches = net.nodes().len() - net.hosts().len();
    let groups = at_home.iter().filter(|group| group.first.is_some()).count();
    if groups.saturating_mul(switches) > MAX_CELLS {
        return None;
    }
    for (home, group) in at_home.iter().enumerate() {
        let Some(target) = group.first else { continue };
        let into = |(node, from): (usize, &Group)| if node == home { 0.0 } else { from.each * group.targets };
        let inflow = at_home.iter().enumerate().map(into).collect();
        spread(net, routes, (target, false), inflow, &mut rates);
    }
    Some(rates)
}

/// Computes the rates for each target separately, for networks with hosts that have several NICs:
/// there, hosts split traffic too.
fn by_target(net: &Net, routes: &Routes, traffic: &OfferedTraffic) -> Option<Vec<f64>> {
    if traffic.targets.len().saturating_mul(traffic.sources.len() + net.nodes().len()) > MAX_CELLS {
        return None;
    }
    let allowed = |src: HostId, dst: HostId| src != dst && !(traffic.across && hosts::same_rack(net, src, dst));
    let own = traffic.bps / traffic.sources.len().max(1) as f64;
    let each = |src: HostId| own / traffic.targets.iter().filter(|dst| allowed(src, **dst)).count() as f64;
    let each: Vec<(HostId, f64)> = traffic.sources.iter().map(|src| (*src, each(*src))).collect();
    let mut rates = vec![0.0; net.links().len()];
    for &target in &traffic.targets {
        let mut inflow = vec![0.0; net.nodes().len()];
        for &(source, rate) in each.iter().filter(|(source, _)| allowed(*source, target)) {
            let nics = routes.candidates(net.hosts()[source.index()], target);
            for nic in nics {
                rates[nic.index()] += rate / nics.len() as f64;
                inflow[net.link(*nic).to.index()] += rate / nics.len() as f64;
            }
        }
        spread(net, routes, (target, true), inflow, &mut rates);
    }
    Some(rates)
}

/// The traffic of the hosts of one switch.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    /// Number of targets among them.
    targets: f64,
    /// One of the targets.
    first: Option<HostId>,
    /// The sum over its sources of the rate to each target.
    each: f64,
}

fn marked(net: &Net, hosts: &[HostId]) -> Vec<bool> {
    let mut is = vec![false; net.hosts().len()];
    hosts.iter().for_each(|host| is[host.index()] = true);
    is
}

/// Forwards the traffic that enters each switch to the switch of `target`, or to the target itself,
/// in equal parts over the next hops.
fn spread(net: &Net, routes: &Routes, (target, to_host): (HostId, bool), mut inflow: Vec<f64>, rates: &mut [f64]) {
    let mut by_distance: Vec<(u32, NodeId)> = (0..net.nodes().len() as u32)
        .map(NodeId)
        .filter(|node| net.host(*node).is_none())
        .filter_map(|node| Some((routes.distance(node, target)?, node)))
        .collect();
    by_distance.sort_unstable_by_key(|(distance, node)| (std::cmp::Reverse(*distance), *node));
    for (distance, node) in by_distance {
        let flow = inflow[node.index()];
        if flow == 0.0 || distance <= 1 && !to_host {
            continue;
        }
        let next: &[LinkId] = routes.candidates(node, target);
        for link in next {
            rates[link.index()] += flow / next.len() as f64;
            inflow[net.link(*link).to.index()] += flow / next.len() as f64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::testing::build;

    fn all_hosts(net: &Net) -> Vec<HostId> {
        (0..net.hosts().len() as u32).map(HostId).collect()
    }

    /// Every source to every target, one pair at a time, one path at a time.
    fn by_pairs(net: &Net, traffic: &OfferedTraffic) -> Vec<f64> {
        fn walk(net: &Net, routes: &Routes, node: NodeId, dst: HostId, rate: f64, rates: &mut [f64]) {
            let next = routes.candidates(node, dst);
            for link in next {
                rates[link.index()] += rate / next.len() as f64;
                walk(net, routes, net.link(*link).to, dst, rate / next.len() as f64, rates);
            }
        }
        let routes = Routes::new(net, &[]);
        let home = |host: HostId| hosts::rack(net, host);
        let mut rates = vec![0.0; net.links().len()];
        for &src in &traffic.sources {
            let allowed = |dst: &&HostId| **dst != src && !(traffic.across && home(**dst) == home(src));
            let targets: Vec<HostId> = traffic.targets.iter().filter(allowed).copied().collect();
            for &dst in &targets {
                let rate = traffic.bps / traffic.sources.len() as f64 / targets.len() as f64;
                walk(net, &routes, net.hosts()[src.index()], dst, rate, &mut rates);
            }
        }
        rates
    }

    #[test]
    fn links_carry_what_all_pairs_send_over_them() {
        for kind in ["single_tree", "leaf_spine", "fat_tree", "star", "chain", "dumbbell", "rail"] {
            let small = [("pods", "2"), ("servers", "3"), ("nics", "2"), ("spines", "2"), ("spine_cables", "1")];
            let net = build(kind, if kind == "rail" { &small } else { &[] });
            let (all, few) = (all_hosts(&net), all_hosts(&net).into_iter().step_by(3).collect::<Vec<_>>());
            for (sources, targets, across) in
                [(&all, &all, false), (&all, &all, true), (&few, &all, false), (&all, &few, true), (&few, &few, false)]
            {
                let traffic = OfferedTraffic { key: "load", bps: 7e9, sources: sources.clone(), targets: targets.clone(), across };
                let found = by_link(&net, &Routes::new(&net, &[]), &traffic).unwrap();
                for (link, (a, b)) in found.iter().zip(by_pairs(&net, &traffic)).enumerate() {
                    assert!((a - b).abs() < 1.0, "{kind} {}: {a} is not {b}", net.link_name(LinkId(link as u32)));
                }
            }
        }
    }
}

//! Networks and flows shared by tests.

use crate::net::{Net, NetBuilder, TOR_TIER};
use crate::paths::{Path, five_tuple};
use crate::router::Env;
use crate::router::ecmp::{Ecmp, Params};
use crate::routes::{Routes, Unreachable};
use crate::routing;
use base::params::Params as _;
use base::{Dur, FlowId, HostId, LinkId, NodeId, Rate, Rng, Time};
use proto::Flow;

pub const GBPS: Rate = Rate::from_gbps(1);
pub const DELAY: Dur = Dur::from_us(10);

/// Racks of hosts under one root.
pub fn single_tree(racks: u32, hosts: u32) -> Net {
    let mut b = NetBuilder::default();
    let all: Vec<NodeId> = (0..racks * hosts).map(|i| b.host(format!("h{i}"), None)).collect();
    let tors: Vec<NodeId> = (0..racks).map(|i| b.switch(format!("tor{i}"), TOR_TIER)).collect();
    let root = b.switch("root", 2);
    for (i, &host) in all.iter().enumerate() {
        b.cable(host, tors[i / hosts as usize], GBPS, DELAY);
    }
    for tor in tors {
        b.cable(tor, root, GBPS, DELAY);
    }
    b.build()
}

pub fn fat_tree(k: u32) -> Net {
    let (mut b, half) = (NetBuilder::default(), k / 2);
    let mut hosts = Vec::new();
    for (pod, edge, i) in (0..k * half * half).map(|i| (i / (half * half), i / half % half, i % half)) {
        hosts.push(b.host(format!("h{}", hosts.len()), Some(0x0a00_0000 | pod << 16 | edge << 8 | (2 + i))));
    }
    let edges: Vec<NodeId> = (0..k * half).map(|i| b.switch(format!("edge{}_{}", i / half, i % half), 1)).collect();
    let aggs: Vec<NodeId> = (0..k * half).map(|i| b.switch(format!("agg{}_{}", i / half, i % half), 2)).collect();
    let cores: Vec<NodeId> = (0..half * half).map(|i| b.switch(format!("core{i}"), 3)).collect();
    for (i, &host) in hosts.iter().enumerate() {
        b.cable(host, edges[i / half as usize], GBPS, DELAY);
    }
    for (pod, edge, agg) in (0..k * half * half).map(|i| (i / (half * half), i / half % half, i % half)) {
        b.cable(edges[(pod * half + edge) as usize], aggs[(pod * half + agg) as usize], GBPS, DELAY);
    }
    for (pod, agg, i) in (0..k * half * half).map(|i| (i / (half * half), i / half % half, i % half)) {
        b.cable(aggs[(pod * half + agg) as usize], cores[(agg * half + i) as usize], GBPS, DELAY);
    }
    b.build()
}

/// Leaves `leaf0`, ... with `hosts` hosts each, connected to every spine.
pub fn leaf_spine(leaves: u32, spines: u32, hosts: u32) -> Net {
    let mut b = NetBuilder::default();
    let all: Vec<NodeId> = (0..leaves * hosts).map(|i| b.host(format!("h{i}"), None)).collect();
    let leaves: Vec<NodeId> = (0..leaves).map(|i| b.switch(format!("leaf{i}"), 1)).collect();
    let spines: Vec<NodeId> = (0..spines).map(|i| b.switch(format!("spine{i}"), 2)).collect();
    for (i, &host) in all.iter().enumerate() {
        b.cable(host, leaves[i / hosts as usize], GBPS, DELAY);
    }
    for &leaf in &leaves {
        spines.iter().for_each(|&spine| b.cable(leaf, spine, GBPS, DELAY));
    }
    b.build()
}

/// A chain of switches with a host at each end.
pub fn chain(switches: u32) -> Net {
    let mut b = NetBuilder::default();
    let (h0, h1) = (b.host("h0", None), b.host("h1", None));
    let all: Vec<NodeId> = (0..switches).map(|i| b.switch(format!("s{i}"), 1)).collect();
    b.cable(h0, all[0], GBPS, DELAY);
    for pair in all.windows(2) {
        b.cable(pair[0], pair[1], GBPS, DELAY);
    }
    b.cable(all[all.len() - 1], h1, GBPS, DELAY);
    b.build()
}

pub fn ecmp() -> Ecmp {
    Ecmp::new(
        &Params::defaults(),
        &Env {
            net: &Net::default(),
            routes: &Routes::new(&Net::default(), &[]),
            seed: 0,
            max_rtt: base::Dur::ZERO,
            given: base::Given::none(),
        },
    )
}

pub fn flow(src: u32, dst: u32, src_port: u16) -> Flow {
    Flow {
        id: FlowId(0),
        src: HostId(src),
        dst: HostId(dst),
        size_bytes: 1,
        size_wire_bytes: 41,
        start: Time::ZERO,
        deadline: None,
        group: u64::MAX,
        workload: 0,
        src_port,
        rtt: Dur::ZERO,
        bottleneck: GBPS,
        switches: 1,
        measured: true,
        wait: None,
    }
}

pub fn plan(net: &Net, routes: &Routes, src: u32, dst: u32, src_port: u16) -> Result<Path, Unreachable> {
    let tuple = five_tuple(net, &flow(src, dst, src_port), true);
    routing::plan(net, routes, &mut ecmp(), &tuple, HostId(src), HostId(dst))
}

pub fn names(net: &Net, links: &[LinkId]) -> Vec<String> {
    links.iter().map(|&l| net.link_name(l)).collect()
}

pub fn dead(net: &Net, names: &[&str]) -> Vec<bool> {
    (0..net.links().len() as u32).map(|l| names.contains(&net.link_name(LinkId(l)).as_str())).collect()
}

/// A random network: up to nine switches with up to twice as many cables between them, and up to
/// seven hosts with at most `nics` NICs each. If `nics` is above 1, one host cable in eight leads
/// to another host.
pub fn random(rng: &mut Rng, hosts_first: bool, nics: u64) -> Net {
    let mut b = NetBuilder::default();
    let (switches, hosts) = (2 + rng.below(8), 2 + rng.below(6));
    let (mut host_nodes, mut switch_nodes) = (Vec::new(), Vec::new());
    for i in 0..switches + hosts {
        let host = if hosts_first { i < hosts } else { i >= switches };
        if host {
            host_nodes.push(b.host(format!("h{i}"), None));
        } else {
            switch_nodes.push(b.switch(format!("s{i}"), 1));
        }
    }
    for &host in &host_nodes {
        for _ in 0..if nics > 1 { 1 + rng.below(nics) } else { 1 } {
            let switch = switch_nodes[rng.below(switches) as usize];
            let peer = (nics > 1 && rng.below(8) == 0).then(|| host_nodes[rng.below(hosts) as usize]);
            b.cable(host, peer.filter(|peer| *peer != host).unwrap_or(switch), GBPS, DELAY);
        }
    }
    for _ in 0..2 * switches {
        let (x, y) = (rng.below(switches) as usize, rng.below(switches) as usize);
        if x != y {
            b.cable(switch_nodes[x], switch_nodes[y], GBPS, DELAY);
        }
    }
    b.build()
}

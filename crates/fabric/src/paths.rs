//! Paths of flows: the five-tuple that switches see, the route bytes by which a packet carries its
//! path, and all shortest paths between two hosts.
//!
//! The index of a path is its rank among the shortest paths of the healthy network in port order;
//! the first switch with a choice is the most significant. Failures do not change indices. Paths
//! with a rank of [`MAX_PATHS`] or more have no index.

use crate::net::Net;
use crate::routes::{CostedHop, Routes};
use base::{HostId, LinkId, NodeId};
use proto::Flow;
use proto::hops::{self, Hops};
use proto::packet::{ASK, ROUTE_HOPS};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Number of paths between two hosts that have an index.
pub const MAX_PATHS: u32 = 256;

/// The destination port of every flow.
pub const DST_PORT: u16 = 5001;

/// The protocol number of TCP, used in every flow's five-tuple.
pub const PROTOCOL: u8 = 6;

/// Route bytes with which the router decides at every switch.
pub const ASK_ALWAYS: [u8; ROUTE_HOPS] = [ASK; ROUTE_HOPS];

/// The five-tuple of a flow that switches see. In the reverse direction the ends are swapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FiveTuple {
    /// Source IPv4 address.
    pub src: u32,
    /// Destination IPv4 address.
    pub dst: u32,
    /// IP protocol.
    pub protocol: u8,
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
}

/// Returns the five-tuple of a flow's packets: of those from its source, or with `forward` false of
/// those from its destination, where the ends are swapped.
pub fn five_tuple(net: &Net, flow: &Flow, forward: bool) -> FiveTuple {
    let address = |host: HostId| net.node(net.hosts()[host.index()]).address;
    let (src, dst) = (address(flow.src), address(flow.dst));
    if forward {
        FiveTuple { src, dst, protocol: PROTOCOL, src_port: flow.src_port, dst_port: DST_PORT }
    } else {
        FiveTuple { src: dst, dst: src, protocol: PROTOCOL, src_port: DST_PORT, dst_port: flow.src_port }
    }
}

/// A path of a flow, from its source's NIC to the link that ends at its destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// The links in order.
    pub links: Vec<LinkId>,
    /// Egress port at each switch, for the packet's route bytes. `None` if there are more than
    /// [`route_room`] switches or a port above 254; switches then look up each hop.
    pub route: Option<[u8; ROUTE_HOPS]>,
}

impl Path {
    /// Returns the path over these links.
    pub fn new(net: &Net, links: Vec<LinkId>) -> Path {
        Path { route: route_bytes(net, &links), links }
    }
    /// Returns the path over the same cables in reverse, for ACKs that must take the path of the
    /// data.
    pub fn reversed(&self, net: &Net) -> Path {
        Path::new(net, self.links.iter().rev().map(|&link| net.link(link).reverse).collect())
    }
    /// Returns the rates and delays of the path's links.
    pub fn hops(&self, net: &Net) -> Vec<CostedHop> {
        self.links.iter().map(|&link| CostedHop::of(net, link)).collect()
    }
}

/// Returns the number of switches on a path that route bytes can name. While a packet is in a switch, the last
/// byte has the port at which the packet arrived: the last two bytes, where port numbers need two.
pub fn route_room(net: &Net) -> usize {
    ROUTE_HOPS - usize::from(net.is_wide())
}

/// Returns the egress ports of all links except the first, which starts at a host. The bytes after
/// them are [`ASK`].
fn route_bytes(net: &Net, links: &[LinkId]) -> Option<[u8; ROUTE_HOPS]> {
    let mut route = ASK_ALWAYS;
    let ports = links.get(1..).unwrap_or(&[]);
    if ports.len() > route_room(net) {
        return None;
    }
    for (byte, &link) in route.iter_mut().zip(ports) {
        *byte = u8::try_from(net.link(link).port.0).ok().filter(|&port| port != ASK)?;
    }
    Some(route)
}

/// Returns whether every link of a path to `dst` is a live next hop at the node where it starts.
pub fn is_live(net: &Net, routes: &Routes, links: &[LinkId], dst: HostId) -> bool {
    links.iter().all(|&link| routes.candidates(net.link(link).from, dst).contains(&link))
}

/// The number of shortest paths from each node to a host, counted on first use.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// For each group of hosts in the routes: counts by node, 0 where nothing was counted yet.
    known: BTreeMap<u32, Vec<u32>>,
}

impl Counts {
    /// Returns the number of shortest paths from `from` to `dst`, at most `u32::MAX`.
    pub fn count(&mut self, net: &Net, routes: &Routes, from: NodeId, dst: HostId) -> u32 {
        // This includes the case that `dst` has no cable.
        if routes.candidates(from, dst).is_empty() {
            return 0;
        }
        let known = self.known.entry(routes.group(dst)).or_insert_with(|| vec![0; net.nodes().len()]);
        count(net, routes, from, dst, known)
    }

    /// Returns the links of the path from `from` to `dst` with this rank.
    pub fn path(&mut self, net: &Net, routes: &Routes, from: NodeId, dst: HostId, rank: u32) -> Option<Vec<LinkId>> {
        let (mut at, mut rest, mut links) = (from, rank, Vec::new());
        if rank >= self.count(net, routes, from, dst) {
            return None;
        }
        while net.host(at) != Some(dst) {
            let ahead = |&&link: &&LinkId| {
                let ways = self.beyond(net, routes, link, dst);
                let skip = rest >= ways;
                rest -= if skip { ways } else { 0 };
                !skip
            };
            let link = *routes.candidates(at, dst).iter().find(ahead)?;
            links.push(link);
            at = net.link(link).to;
        }
        Some(links)
    }

    /// Returns the rank of a path to `dst`, given by its consecutive links; `None` if it is not a
    /// shortest path.
    pub fn rank(&mut self, net: &Net, routes: &Routes, links: &[LinkId], dst: HostId) -> Option<u32> {
        let mut rank: u32 = 0;
        for &link in links {
            let hops = routes.candidates(net.link(link).from, dst);
            let place = hops.iter().position(|&hop| hop == link)?;
            for &before in &hops[..place] {
                rank = rank.saturating_add(self.beyond(net, routes, before, dst));
            }
        }
        Some(rank)
    }

    /// Returns how many paths start with a next hop.
    fn beyond(&mut self, net: &Net, routes: &Routes, link: LinkId, dst: HostId) -> u32 {
        let to = net.link(link).to;
        if net.host(to) == Some(dst) { 1 } else { self.count(net, routes, to, dst) }
    }
}

fn count(net: &Net, routes: &Routes, from: NodeId, dst: HostId, known: &mut [u32]) -> u32 {
    if known[from.index()] == 0 {
        let beyond = |link: &LinkId| match net.link(*link).to {
            to if net.host(to) == Some(dst) => 1,
            to => count(net, routes, to, dst, known),
        };
        known[from.index()] = routes.candidates(from, dst).iter().map(beyond).fold(0, u32::saturating_add);
    }
    known[from.index()]
}

/// The shortest paths between all hosts of the healthy network, by index.
pub struct AllPaths {
    net: Arc<Net>,
    routes: Arc<Routes>,
    counts: Counts,
}

impl AllPaths {
    /// Returns the paths of a network with these routes, computed with all links up.
    pub fn new(net: Arc<Net>, routes: Arc<Routes>) -> AllPaths {
        AllPaths { net, routes, counts: Counts::default() }
    }
    /// Returns how many paths from `src` to `dst` have an index: at most [`MAX_PATHS`].
    pub fn count(&mut self, src: HostId, dst: HostId) -> u16 {
        self.counts.count(&self.net, &self.routes, self.net.hosts()[src.index()], dst).min(MAX_PATHS) as u16
    }
    /// Returns the path from `src` to `dst` with this index.
    pub fn path(&mut self, src: HostId, dst: HostId, index: u16) -> Option<Path> {
        if u32::from(index) >= MAX_PATHS {
            return None;
        }
        let links = self.counts.path(&self.net, &self.routes, self.net.hosts()[src.index()], dst, index.into())?;
        Some(Path::new(&self.net, links))
    }
    /// Returns the index of a path to `dst`, given by its links; `None` if it has no index.
    pub fn index(&mut self, links: &[LinkId], dst: HostId) -> Option<u16> {
        let rank = self.counts.rank(&self.net, &self.routes, links, dst)?;
        (rank < MAX_PATHS).then_some(rank as u16)
    }
    /// Returns the ports between switches of all paths from `src` to `dst` that have an index.
    pub fn hops(&mut self, src: HostId, dst: HostId) -> Hops {
        let paths = self.list(src, dst);
        let hop = |link: &LinkId| {
            let link = self.net.link(*link);
            hops::Hop { switch: link.from, port: link.port, rate: link.rate }
        };
        // The first link starts at a host, and the last link ends at a host.
        paths.iter().map(|path| path.links[1..path.links.len() - 1].iter().map(hop).collect()).collect()
    }
    /// Returns all paths from `src` to `dst` that have an index, by index.
    pub fn list(&mut self, src: HostId, dst: HostId) -> Vec<Path> {
        (0..self.count(src, dst)).filter_map(|index| self.path(src, dst, index)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::NetBuilder;
    use crate::testing::{DELAY, GBPS, chain, fat_tree, flow, plan, random, single_tree};
    use base::Rng;

    #[test]
    fn a_reversed_path_leads_back_over_the_same_cables() {
        let net = fat_tree(4);
        let routes = Routes::new(&net, &[]);
        for port in 0..32 {
            let there = plan(&net, &routes, 0, 4, 2000 + 97 * port).unwrap();
            let back = there.reversed(&net);
            let nodes = |path: &Path| path.links.iter().map(|&l| (net.link(l).from, net.link(l).to)).collect::<Vec<_>>();
            let turned: Vec<_> = nodes(&back).into_iter().rev().map(|(from, to)| (to, from)).collect();
            assert_eq!((nodes(&there), there.clone()), (turned, back.reversed(&net)));
            assert_eq!(back.route, route_bytes(&net, &back.links));
        }
    }

    #[test]
    fn the_reverse_direction_swaps_the_ends() {
        let net = fat_tree(4);
        let forward = five_tuple(&net, &flow(0, 4, 4000), true);
        let back = five_tuple(&net, &flow(0, 4, 4000), false);
        assert_eq!((forward.src, forward.dst), (0x0a00_0002, 0x0a01_0002));
        assert_eq!((back.src, back.dst, back.src_port, back.dst_port), (forward.dst, forward.src, 5001, 4000));
        assert_eq!((forward.protocol, back.protocol), (6, 6));
    }

    #[test]
    fn long_paths_and_high_ports_have_no_route_bytes() {
        for (switches, fits) in [(6, true), (7, false)] {
            let net = chain(switches);
            let path = plan(&net, &Routes::new(&net, &[]), 0, 1, 1024).unwrap();
            assert_eq!((path.links.len(), path.route.is_some()), (switches as usize + 1, fits));
        }
        let net = single_tree(1, 257);
        let routes = Routes::new(&net, &[]);
        assert_eq!(plan(&net, &routes, 0, 254, 1024).unwrap().route, Some([254, ASK, ASK, ASK, ASK, ASK]));
        assert_eq!(plan(&net, &routes, 0, 255, 1024).unwrap().route, None);
    }

    fn all(net: Net) -> AllPaths {
        let routes = Arc::new(Routes::new(&net, &[]));
        AllPaths::new(Arc::new(net), routes)
    }

    #[test]
    fn paths_are_listed_in_port_order() {
        let net = fat_tree(4);
        let mut all = all(net.clone());
        let cores = |paths: Vec<Path>| paths.iter().map(|path| net.link(path.links[2]).to.0).collect::<Vec<_>>();
        assert_eq!(cores(all.list(HostId(0), HostId(4))), [32, 33, 34, 35]);
        assert_eq!([1, 2, 4].map(|dst| all.count(HostId(0), HostId(dst))), [1, 2, 4]);
        for index in 0..4 {
            let path = all.path(HostId(0), HostId(4), index).unwrap();
            assert_eq!(all.index(&path.links, HostId(4)), Some(index));
        }
        assert_eq!((all.path(HostId(0), HostId(4), 4), all.count(HostId(0), HostId(0))), (None, 0));
        let other = all.path(HostId(0), HostId(5), 0).unwrap();
        assert_eq!(all.index(&other.links, HostId(4)), None);
    }

    #[test]
    fn hops_are_the_ports_between_switches() {
        let net = fat_tree(4);
        let mut all = all(net.clone());
        let named = |hops: Hops| {
            let name = |hop: &hops::Hop| net.link_name(LinkId(net.out_base(hop.switch) + hop.port.0));
            assert!(hops.iter().flatten().all(|hop| hop.rate == GBPS));
            hops.iter().map(|path| path.iter().map(name).collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
        };
        let far = named(all.hops(HostId(0), HostId(4)));
        assert_eq!(far[2], "edge0_0->agg0_1 agg0_1->core2 core2->agg1_1 agg1_1->edge1_0");
        assert_eq!(far.len(), 4);
        assert_eq!(named(all.hops(HostId(0), HostId(2))), ["edge0_0->agg0_0 agg0_0->edge0_1", "edge0_0->agg0_1 agg0_1->edge0_1"]);
        assert_eq!(named(all.hops(HostId(0), HostId(1))), [""]);
        assert!(all.hops(HostId(0), HostId(0)).is_empty());
    }

    /// Compares every path of random networks with a plain enumeration, in both directions.
    #[test]
    fn indices_and_paths_are_one_to_one() {
        let mut rng = Rng::stream(1, "paths/random", &[]);
        for round in 0..200 {
            let net = random(&mut rng, false, if round < 100 { 1 } else { 3 });
            let (routes, mut all) = (Routes::new(&net, &[]), all(net.clone()));
            let hosts = || (0..net.hosts().len() as u32).map(HostId);
            for (src, dst) in hosts().flat_map(|src| hosts().map(move |dst| (src, dst))) {
                let mut plain = vec![Vec::new()];
                for _ in 0..routes.distance(net.hosts()[src.index()], dst).unwrap_or(0) {
                    let next = |links: &Vec<LinkId>| {
                        let at = links.last().map_or(net.hosts()[src.index()], |&link| net.link(link).to);
                        routes.candidates(at, dst).iter().map(|&hop| [&links[..], &[hop]].concat()).collect::<Vec<_>>()
                    };
                    plain = plain.iter().flat_map(next).collect();
                }
                plain.retain(|links| !links.is_empty());
                let listed: Vec<Vec<LinkId>> = all.list(src, dst).into_iter().map(|path| path.links).collect();
                assert_eq!(listed, plain[..plain.len().min(256)]);
                assert_eq!(usize::from(all.count(src, dst)), listed.len());
                for (links, index) in listed.iter().zip(0..) {
                    assert_eq!(all.index(links, dst), Some(index));
                }
            }
        }
    }

    /// Twelve pairs of parallel cables in a row: 4096 paths, 256 of them with an index.
    #[test]
    fn paths_beyond_the_last_index_have_none() {
        let mut b = NetBuilder::default();
        let ends = [b.host("h0", None), b.host("h1", None)];
        let switches: Vec<NodeId> = (0..13).map(|i| b.switch(format!("s{i}"), 1)).collect();
        b.cable(ends[0], switches[0], GBPS, DELAY);
        for pair in switches.windows(2) {
            (0..2).for_each(|_| b.cable(pair[0], pair[1], GBPS, DELAY));
        }
        b.cable(switches[12], ends[1], GBPS, DELAY);
        let net = b.build();
        let routes = Routes::new(&net, &[]);
        let mut counts = Counts::default();
        assert_eq!(counts.count(&net, &routes, ends[0], HostId(1)), 4096);
        let [inside, outside] = [255, 256].map(|rank| counts.path(&net, &routes, ends[0], HostId(1), rank).unwrap());
        let mut all = all(net);
        assert_eq!((all.count(HostId(0), HostId(1)), all.list(HostId(0), HostId(1)).len()), (256, 256));
        assert_eq!((all.index(&inside, HostId(1)), all.index(&outside, HostId(1))), (Some(255), None));
        assert_eq!(all.path(HostId(0), HostId(1), 256), None);
    }
}

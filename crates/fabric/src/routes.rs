//! Where packets can go: at each switch the ports on shortest paths to each host, and paths of flows.
//!
//! Hosts hang on one switch each and never forward, so all hosts of a switch share that switch's next-hop sets. Equal sets are kept
//! once: a fat-tree of 8192 hosts takes a few megabytes.

pub mod cost;

pub use cost::{Hop, bottleneck, ideal_fct, one_way, rtt};

use crate::net::{HOST_TIER, Net};
use crate::router::{FiveTuple, Router};
use base::{Dur, HostId, LinkId, NodeId};
use proto::Flow;
use proto::packet::{ASK, ROUTE_HOPS};
use std::collections::{BTreeMap, BTreeSet};

/// The destination port of every flow.
pub const DST_PORT: u16 = 5001;

/// The protocol number of TCP, which every flow's five-tuple shows.
pub const PROTOCOL: u8 = 6;

/// Next-hop sets and distances for a network some of whose links may be dead.
#[derive(Clone, Debug)]
pub struct Routes {
    /// Per host: the link from its switch down to it, if alive.
    down: Vec<Option<LinkId>>,
    /// Per host: only its switch knows that this link is dead.
    cut: Vec<bool>,
    /// Per host: its NIC, if alive.
    up: Vec<Option<LinkId>>,
    /// Per host: the group of hosts that share its switch; `NONE` without a cable.
    group: Vec<u32>,
    /// Per group: the switch.
    home: Vec<NodeId>,
    /// Per node: host id of a host, or number among the switches.
    number: Vec<u32>,
    is_host: Vec<bool>,
    switches: usize,
    /// Per (group, switch): links to the group's switch; `FAR` when there is no way.
    distance: Vec<u16>,
    /// Per (group, switch): the next hops, an index into `sets`.
    set: Vec<u32>,
    /// Ranges of `members`.
    sets: Vec<(u32, u32)>,
    members: Vec<LinkId>,
    /// Per (group, switch): how the shortest paths from there look, an index into `tails`.
    shape: Vec<u32>,
    /// Distinct lists of paths, as hops.
    tails: Vec<Vec<Vec<Hop>>>,
}

/// A path of a flow, from its source's NIC to the link that ends at its destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// The links in order.
    pub links: Vec<LinkId>,
    /// Egress port at each switch, for the packet's route bytes; `None` when there are more than [`ROUTE_HOPS`] switches or a port above
    /// 254, so that switches look up each hop.
    pub route: Option<[u8; ROUTE_HOPS]>,
}

impl Path {
    /// The same cables backwards: the path of a flow's ACKs where they must take that of its data.
    pub fn reversed(&self, net: &Net) -> Path {
        let links: Vec<LinkId> = self.links.iter().rev().map(|&link| net.link(link).reverse).collect();
        Path { route: route_bytes(net, &links), links }
    }
}

/// Two hosts with no live path from the first to the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreachable {
    /// The sender.
    pub src: HostId,
    /// The receiver.
    pub dst: HostId,
}

impl std::fmt::Display for Unreachable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "host {} cannot reach host {}", self.src, self.dst)
    }
}
impl std::error::Error for Unreachable {}

const NONE: u32 = u32::MAX;
const FAR: u16 = u16::MAX;
/// The next-hop set and the list of paths where there are none.
const EMPTY: u32 = 0;

impl Routes {
    /// Shortest paths over the links that are not `dead` (by link id; links beyond its end are alive).
    pub fn new(net: &Net, dead: &[bool]) -> Routes {
        let alive = |link: LinkId| !dead.get(link.index()).copied().unwrap_or(false);
        let nodes = net.nodes().len();
        let is_host: Vec<bool> = net.nodes().iter().map(|node| node.tier == HOST_TIER).collect();
        let (mut number, mut counts) = (Vec::with_capacity(nodes), [0; 2]);
        for &host in &is_host {
            let count = &mut counts[usize::from(host)];
            number.push(*count);
            *count += 1;
        }
        let mut routes = Routes {
            down: Vec::new(),
            cut: vec![false; net.hosts().len()],
            up: Vec::new(),
            group: Vec::new(),
            home: Vec::new(),
            number,
            is_host,
            switches: counts[0] as usize,
            distance: Vec::new(),
            set: Vec::new(),
            sets: vec![(0, 0)],
            members: Vec::new(),
            shape: Vec::new(),
            tails: vec![Vec::new()],
        };
        let mut group_at = vec![NONE; nodes];
        for &host in net.hosts() {
            let Some(nic) = net.out_links(host).next() else {
                routes.down.push(None);
                routes.up.push(None);
                routes.group.push(NONE);
                continue;
            };
            let link = net.link(nic);
            let group = &mut group_at[link.to.index()];
            if *group == NONE {
                *group = routes.home.len() as u32;
                routes.home.push(link.to);
            }
            routes.down.push(Some(link.reverse).filter(|&l| alive(l)));
            routes.up.push(Some(nic).filter(|&l| alive(l)));
            routes.group.push(*group);
        }
        let cells = routes.home.len() * routes.switches;
        (routes.distance, routes.set, routes.shape) = (vec![FAR; cells], vec![EMPTY; cells], vec![EMPTY; cells]);
        let mut search = Search::new(net, &alive);
        for group in 0..routes.home.len() {
            search.run(&mut routes, group);
        }
        routes
    }

    /// The same without the `dead` links where they begin: what switches do that see their own ports die, before routing has converged.
    /// Distances stay as they are.
    pub fn without(mut self, dead: &[bool]) -> Routes {
        let alive = |link: &LinkId| !dead[link.index()];
        for (from, to) in &mut self.sets {
            let all = &mut self.members[*from as usize..*to as usize];
            let mut kept = 0;
            for i in 0..all.len() {
                if alive(&all[i]) {
                    all[kept] = all[i];
                    kept += 1;
                }
            }
            *to = *from + kept as u32;
        }
        for (cut, down) in self.cut.iter_mut().zip(&self.down) {
            *cut = down.is_some_and(|down| !alive(&down));
        }
        for up in &mut self.up {
            *up = up.filter(alive);
        }
        self
    }

    /// The live next hops of `node` towards `dst` in rising port order; empty when there is no way, or at `dst` itself. Everybody who
    /// forwards a packet, by plan or at a switch, takes one of these.
    pub fn candidates(&self, node: NodeId, dst: HostId) -> &[LinkId] {
        let Some(down) = &self.down[dst.index()] else { return &[] };
        let home = self.home[self.group[dst.index()] as usize];
        let number = self.number[node.index()] as usize;
        if self.is_host[node.index()] {
            let Some(up) = &self.up[number] else { return &[] };
            let away = number != dst.index() && (home == node || self.steps(self.home[self.group[number] as usize], dst) != FAR);
            return if away { std::slice::from_ref(up) } else { &[] };
        }
        if node == home {
            return if self.cut[dst.index()] { &[] } else { std::slice::from_ref(down) };
        }
        let (from, to) = self.sets[self.set[self.cell(dst, number)] as usize];
        &self.members[from as usize..to as usize]
    }

    /// Links on a shortest path from `node` to `dst`; `None` when there is no way.
    pub fn distance(&self, node: NodeId, dst: HostId) -> Option<u32> {
        let number = self.number[node.index()] as usize;
        if self.is_host[node.index()] && number == dst.index() {
            return Some(0);
        }
        if self.candidates(node, dst).is_empty() {
            return None;
        }
        Some(match self.is_host[node.index()] {
            true if self.home[self.group[dst.index()] as usize] == node => 1,
            true => u32::from(self.steps(self.home[self.group[number] as usize], dst)) + 2,
            false => u32::from(self.steps(node, dst)) + 1,
        })
    }

    /// The first pair of hosts, by source and then destination, with no way from one to the other.
    pub fn unreachable(&self) -> Option<Unreachable> {
        let hosts = || (0..self.group.len() as u32).map(HostId);
        let cut = |src: HostId, dst: HostId| {
            let home = |host: HostId| self.home[self.group[host.index()] as usize];
            let cable = || self.is_host[home(dst).index()] && self.number[home(dst).index()] == src.0;
            let apart = || self.steps(home(src), dst) == FAR && !cable();
            src != dst && (self.up[src.index()].is_none() || self.down[dst.index()].is_none() || apart())
        };
        hosts().find_map(|src| hosts().find(|&dst| cut(src, dst)).map(|dst| Unreachable { src, dst }))
    }

    /// The next hop from `at` of a flow that shows `tuple`, the router asked if there is a choice.
    pub fn choose(&self, router: &mut impl Router, tuple: &FiveTuple, at: NodeId, dst: HostId) -> Option<LinkId> {
        match self.candidates(at, dst) {
            [] => None,
            [only] => Some(*only),
            several => Some(several[router.choose(at, tuple, several) as usize]),
        }
    }

    /// The path of a flow that shows `tuple`, the router asked at every switch with a choice.
    pub fn plan(
        &self,
        net: &Net,
        router: &mut impl Router,
        tuple: &FiveTuple,
        src: HostId,
        dst: HostId,
    ) -> Result<Path, Unreachable> {
        let (mut at, end) = (net.hosts()[src.index()], net.hosts()[dst.index()]);
        let mut links = Vec::new();
        while at != end {
            let link = self.choose(router, tuple, at, dst).ok_or(Unreachable { src, dst })?;
            links.push(link);
            at = net.link(link).to;
        }
        Ok(Path { route: route_bytes(net, &links), links })
    }

    /// What the shortest paths from `src` to `dst` look like, each distinct one once; empty when there is none.
    pub fn shapes(&self, net: &Net, src: HostId, dst: HostId) -> Vec<Vec<Hop>> {
        let (Some(up), Some(down)) = (self.up[src.index()], self.down[dst.index()]) else { return Vec::new() };
        let hop = |link| Hop::of(net, link);
        let home = self.home[self.group[dst.index()] as usize];
        let first = net.link(up).to;
        if src == dst {
            Vec::new()
        } else if first == net.hosts()[dst.index()] {
            vec![vec![hop(up)]] // Two hosts and a cable.
        } else if first == home {
            vec![vec![hop(up), hop(down)]]
        } else {
            let tails = &self.tails[self.shape[self.cell(dst, self.number[first.index()] as usize)] as usize];
            tails.iter().map(|tail| [&[hop(up)], &tail[..], &[hop(down)]].concat()).collect()
        }
    }

    /// The completion time of a flow alone, over the best of its shortest paths; see [`ideal_fct`].
    pub fn ideal_fct(&self, net: &Net, src: HostId, dst: HostId, payload: u64, mss: u64, header: u64) -> Dur {
        let shapes = self.shapes(net, src, dst);
        shapes.iter().map(|path| ideal_fct(path, payload, mss, header)).min().unwrap_or_default()
    }

    /// The longest unloaded round trip between two hosts over shortest paths: a packet of `full` wire bytes out, one of `header` bytes
    /// back. Each distinct kind of path is costed once.
    pub fn max_rtt(&self, net: &Net, full: u64, header: u64) -> Dur {
        let mut ends = BTreeSet::new();
        for (host, group) in self.group.iter().enumerate().filter(|(_, group)| **group != NONE) {
            if let (Some(up), Some(down)) = (self.up[host], self.down[host]) {
                ends.insert((*group, Hop::of(net, up), Hop::of(net, down)));
            }
        }
        let mut kinds = BTreeSet::new();
        for &(from, up, _) in &ends {
            for &(to, _, down) in &ends {
                let home = self.home[from as usize];
                if self.is_host[home.index()] {
                    kinds.insert((up, None, None));
                } else {
                    let shape = self.shape[to as usize * self.switches + self.number[home.index()] as usize];
                    kinds.insert((up, (from != to).then_some(shape), Some(down)));
                }
            }
        }
        let cost = |(up, shape, down): (Hop, Option<u32>, Option<Hop>)| {
            let middles: &[Vec<Hop>] = shape.map_or(&[], |shape| &self.tails[shape as usize]);
            let direct = [Vec::new()];
            let middles = if shape.is_none() { &direct } else { middles };
            let path = |middle: &Vec<Hop>| [&[up], &middle[..], down.as_slice()].concat();
            middles.iter().map(|middle| rtt(&path(middle), full, header)).max().unwrap_or_default()
        };
        kinds.into_iter().map(cost).max().unwrap_or_default()
    }

    /// Links from a switch to the switch of `dst`.
    fn steps(&self, switch: NodeId, dst: HostId) -> u16 {
        if self.home[self.group[dst.index()] as usize] == switch {
            0
        } else if self.is_host[switch.index()] {
            FAR
        } else {
            self.distance[self.cell(dst, self.number[switch.index()] as usize)]
        }
    }

    fn cell(&self, dst: HostId, switch: usize) -> usize {
        self.group[dst.index()] as usize * self.switches + switch
    }
}

/// Breadth-first search from the switch of each group, with its buffers and the sets found so far.
struct Search<'a> {
    net: &'a Net,
    alive: &'a dyn Fn(LinkId) -> bool,
    queue: Vec<NodeId>,
    hops: Vec<LinkId>,
    /// Per node: its latest next-hop set, most often the next one too.
    last: Vec<u32>,
    known_sets: BTreeMap<Vec<LinkId>, u32>,
    /// The distinct (first hop, list of paths from there on) of a switch, sorted, to its list of paths.
    known_shapes: BTreeMap<Vec<(Hop, u32)>, u32>,
    ways: Vec<(Hop, u32)>,
}

impl<'a> Search<'a> {
    fn new(net: &'a Net, alive: &'a dyn Fn(LinkId) -> bool) -> Search<'a> {
        Search {
            net,
            alive,
            queue: Vec::new(),
            hops: Vec::new(),
            last: vec![EMPTY; net.nodes().len()],
            known_sets: BTreeMap::new(),
            known_shapes: BTreeMap::new(),
            ways: Vec::new(),
        }
    }

    fn run(&mut self, routes: &mut Routes, group: usize) {
        let home = routes.home[group];
        if routes.is_host[home.index()] {
            return; // Two hosts and a cable: nothing lies behind.
        }
        let cell = |routes: &Routes, node: NodeId| group * routes.switches + routes.number[node.index()] as usize;
        let start = cell(routes, home);
        routes.distance[start] = 0;
        self.queue.clear();
        self.queue.push(home);
        let mut head = 0;
        while let Some(&node) = self.queue.get(head) {
            head += 1;
            let far = routes.distance[cell(routes, node)];
            self.hops.clear();
            self.ways.clear();
            for link in self.net.out_links(node) {
                let (to, back) = (self.net.link(link).to, self.net.link(link).reverse);
                if routes.is_host[to.index()] {
                    continue;
                }
                let there = cell(routes, to);
                if routes.distance[there] == FAR && (self.alive)(back) {
                    routes.distance[there] = far + 1;
                    self.queue.push(to);
                }
                if far > 0 && routes.distance[there] == far - 1 && (self.alive)(link) {
                    self.hops.push(link);
                    let way = (Hop::of(self.net, link), if to == home { NONE } else { routes.shape[there] });
                    if self.ways.last() != Some(&way) {
                        self.ways.push(way);
                    }
                }
            }
            if far > 0 {
                let at = cell(routes, node);
                routes.set[at] = self.set(routes, node);
                routes.shape[at] = self.shape(routes);
            }
        }
    }

    /// The number of the set in `hops`.
    fn set(&mut self, routes: &mut Routes, node: NodeId) -> u32 {
        let last = self.last[node.index()];
        let (from, to) = routes.sets[last as usize];
        if routes.members[from as usize..to as usize] == self.hops {
            return last;
        }
        let found = self.known_sets.get(&self.hops).copied().unwrap_or_else(|| {
            let from = routes.members.len() as u32;
            routes.members.extend_from_slice(&self.hops);
            routes.sets.push((from, routes.members.len() as u32));
            let number = routes.sets.len() as u32 - 1;
            self.known_sets.insert(self.hops.clone(), number);
            number
        });
        self.last[node.index()] = found;
        found
    }

    /// The number of the list of paths that `ways` lead to.
    fn shape(&mut self, routes: &mut Routes) -> u32 {
        self.ways.sort_unstable();
        self.ways.dedup();
        if let Some(&known) = self.known_shapes.get(&self.ways) {
            return known;
        }
        let mut paths = Vec::new();
        for &(hop, rest) in &self.ways {
            match rest {
                NONE => paths.push(vec![hop]),
                rest => paths.extend(routes.tails[rest as usize].iter().map(|tail| [&[hop], &tail[..]].concat())),
            }
        }
        paths.sort_unstable();
        paths.dedup();
        routes.tails.push(paths);
        let number = routes.tails.len() as u32 - 1;
        self.known_shapes.insert(self.ways.clone(), number);
        number
    }
}

impl Path {
    /// The path as hops.
    pub fn hops(&self, net: &Net) -> Vec<Hop> {
        self.links.iter().map(|&link| Hop::of(net, link)).collect()
    }
}

/// The egress ports of all links but the first, which leaves a host.
fn route_bytes(net: &Net, links: &[LinkId]) -> Option<[u8; ROUTE_HOPS]> {
    let mut route = [0; ROUTE_HOPS];
    let ports = links.get(1..).unwrap_or(&[]);
    if ports.len() > ROUTE_HOPS {
        return None;
    }
    for (byte, &link) in route.iter_mut().zip(ports) {
        *byte = u8::try_from(net.link(link).port.0).ok().filter(|&port| port != ASK)?;
    }
    Some(route)
}

/// What the packets of a flow show: those from its source, or with `forward` false those that come back, whose ends are swapped.
pub fn five_tuple(net: &Net, flow: &Flow, forward: bool) -> FiveTuple {
    let address = |host: HostId| net.node(net.hosts()[host.index()]).address;
    let (src, dst) = (address(flow.src), address(flow.dst));
    if forward {
        FiveTuple { src, dst, protocol: PROTOCOL, src_port: flow.src_port, dst_port: DST_PORT }
    } else {
        FiveTuple { src: dst, dst: src, protocol: PROTOCOL, src_port: DST_PORT, dst_port: flow.src_port }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::{NetBuilder, TOR_TIER};
    use crate::router::Env;
    use crate::router::ecmp::{Ecmp, Params};
    use base::params::Params as _;
    use base::{Dur, FlowId, Rate, Rng, Time};

    const GBPS: Rate = Rate::from_gbps(1);
    const DELAY: Dur = Dur::from_us(10);

    /// Racks of hosts under one root.
    fn single_tree(racks: u32, hosts: u32) -> Net {
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

    fn fat_tree(k: u32) -> Net {
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

    /// A chain of switches with a host at each end.
    fn chain(switches: u32) -> Net {
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

    fn ecmp() -> Ecmp {
        Ecmp::new(&Params::defaults(), &Env { net: &Net::default(), routes: &Routes::new(&Net::default(), &[]), seed: 0 })
    }

    fn flow(src: u32, dst: u32, src_port: u16) -> Flow {
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
        }
    }

    fn plan(net: &Net, routes: &Routes, src: u32, dst: u32, src_port: u16) -> Result<Path, Unreachable> {
        let tuple = five_tuple(net, &flow(src, dst, src_port), true);
        routes.plan(net, &mut ecmp(), &tuple, HostId(src), HostId(dst))
    }

    fn names(net: &Net, links: &[LinkId]) -> Vec<String> {
        links.iter().map(|&l| net.link_name(l)).collect()
    }

    fn dead(net: &Net, names: &[&str]) -> Vec<bool> {
        (0..net.links().len() as u32).map(|l| names.contains(&net.link_name(LinkId(l)).as_str())).collect()
    }

    #[test]
    fn paths_of_a_tree() {
        let net = single_tree(3, 3);
        let routes = Routes::new(&net, &[]);
        let far = plan(&net, &routes, 0, 8, 1024).unwrap();
        assert_eq!(names(&net, &far.links), ["h0->tor0", "tor0->root", "root->tor2", "tor2->h8"]);
        assert_eq!(far.route, Some([3, 2, 2, 0, 0, 0]));
        let near = plan(&net, &routes, 4, 3, 1024).unwrap();
        assert_eq!(names(&net, &near.links), ["h4->tor1", "tor1->h3"]);
        assert_eq!(routes.distance(net.hosts()[0], HostId(8)), Some(4));
        assert_eq!(routes.distance(net.hosts()[8], HostId(8)), Some(0));
        assert_eq!(routes.unreachable(), None);
    }

    #[test]
    fn choices_in_a_fat_tree() {
        let net = fat_tree(4);
        let routes = Routes::new(&net, &[]);
        let (edge, agg) = (NodeId(16), NodeId(24));
        assert_eq!(names(&net, routes.candidates(edge, HostId(4))), ["edge0_0->agg0_0", "edge0_0->agg0_1"]);
        assert_eq!(names(&net, routes.candidates(agg, HostId(4))), ["agg0_0->core0", "agg0_0->core1"]);
        assert_eq!(names(&net, routes.candidates(agg, HostId(2))), ["agg0_0->edge0_1"]);
        assert_eq!(names(&net, routes.candidates(edge, HostId(1))), ["edge0_0->h1"]);
        let hops = [1, 2, 4].map(|dst| routes.distance(net.hosts()[0], HostId(dst)));
        assert_eq!(hops, [Some(2), Some(4), Some(6)]);
        // Each of the four paths between pods is taken, and a flow keeps to its own.
        let mut cores: Vec<u32> =
            (0..64).map(|port| net.link(plan(&net, &routes, 0, 4, 2000 + 97 * port).unwrap().links[2]).to.0).collect();
        assert_eq!(plan(&net, &routes, 0, 4, 2000), plan(&net, &routes, 0, 4, 2000));
        cores.sort_unstable();
        cores.dedup();
        assert_eq!(cores, [32, 33, 34, 35]);
    }

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
    fn dead_links_are_avoided_end_to_end() {
        let net = fat_tree(4);
        // Towards pod 1, core 0 is a dead end, so neither pod uses it for that; towards pod 2 it serves.
        let routes = Routes::new(&net, &dead(&net, &["core0->agg1_0", "agg1_0->core0"]));
        assert_eq!(names(&net, routes.candidates(NodeId(24), HostId(4))), ["agg0_0->core1"]);
        assert_eq!(names(&net, routes.candidates(NodeId(24), HostId(8))), ["agg0_0->core0", "agg0_0->core1"]);
        assert_eq!(routes.unreachable(), None);
    }

    #[test]
    fn a_dead_port_is_left_out_where_it_begins_and_nowhere_else() {
        let net = fat_tree(4);
        let gone = dead(&net, &["agg0_0->core0", "core0->agg0_0", "core0->agg1_0", "edge0_0->h1", "h0->edge0_0"]);
        let (healthy, routes) = (Routes::new(&net, &[]), Routes::new(&net, &[]).without(&gone));
        assert_eq!(names(&net, routes.candidates(NodeId(24), HostId(4))), ["agg0_0->core1"]);
        assert_eq!(names(&net, routes.candidates(NodeId(24), HostId(12))), ["agg0_0->core1"]);
        // The core has no other port to that pod; its neighbours do not know, and send to it as before.
        assert_eq!(routes.candidates(NodeId(32), HostId(4)), []);
        assert_eq!(names(&net, routes.candidates(NodeId(26), HostId(4))), ["agg1_0->edge1_0"]);
        assert_eq!(names(&net, routes.candidates(NodeId(28), HostId(4))), ["agg2_0->core0", "agg2_0->core1"]);
        assert_eq!((routes.candidates(NodeId(16), HostId(1)), routes.candidates(NodeId(0), HostId(4))), (&[][..], &[][..]));
        // What begins elsewhere is untouched.
        for (node, dst) in (0..36).flat_map(|node| (0..16).map(move |dst| (NodeId(node), HostId(dst)))) {
            let alive: Vec<LinkId> = healthy.candidates(node, dst).iter().copied().filter(|l| !gone[l.index()]).collect();
            assert_eq!(routes.candidates(node, dst), alive, "{node:?} {dst:?}");
        }
    }

    #[test]
    fn lost_hosts_are_reported() {
        let net = single_tree(2, 2);
        let routes = Routes::new(&net, &dead(&net, &["tor1->h3"]));
        let lost = Unreachable { src: HostId(0), dst: HostId(3) };
        assert_eq!((routes.unreachable(), plan(&net, &routes, 0, 3, 1024)), (Some(lost), Err(lost)));
        assert_eq!(lost.to_string(), "host 0 cannot reach host 3");
        assert!(plan(&net, &routes, 3, 0, 1024).is_ok());
        let routes = Routes::new(&net, &dead(&net, &["root->tor1"]));
        assert_eq!(routes.unreachable(), Some(Unreachable { src: HostId(0), dst: HostId(2) }));
        assert_eq!(routes.distance(net.hosts()[0], HostId(2)), None);
        assert!(plan(&net, &routes, 2, 3, 1024).is_ok());
    }

    #[test]
    fn two_hosts_and_a_cable() {
        let mut b = NetBuilder::default();
        let (h0, h1) = (b.host("h0", None), b.host("h1", None));
        b.cable(h0, h1, GBPS, DELAY);
        b.host("alone", None);
        let net = b.build();
        let routes = Routes::new(&net, &[]);
        let path = plan(&net, &routes, 1, 0, 1024).unwrap();
        assert_eq!((names(&net, &path.links), path.route), (vec!["h1->h0".to_owned()], Some([0; ROUTE_HOPS])));
        assert_eq!(routes.shapes(&net, HostId(1), HostId(0)), [[Hop { rate: GBPS, delay: DELAY }]]);
        assert_eq!((routes.distance(h1, HostId(0)), routes.distance(h1, HostId(2))), (Some(1), None));
        assert_eq!(routes.unreachable(), Some(Unreachable { src: HostId(0), dst: HostId(2) }));
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
        assert_eq!(plan(&net, &routes, 0, 254, 1024).unwrap().route, Some([254, 0, 0, 0, 0, 0]));
        assert_eq!(plan(&net, &routes, 0, 255, 1024).unwrap().route, None);
    }

    /// Against all-pairs distances by Floyd and Warshall, on random graphs with random dead links.
    #[test]
    fn next_hops_are_those_one_step_nearer() {
        let mut rng = Rng::stream(1, "routes/random", &[]);
        for round in 0..200 {
            let mut b = NetBuilder::default();
            let (switches, hosts) = (2 + rng.below(8), 2 + rng.below(6));
            // Hosts first in half of the graphs: node ids must not matter.
            let mut all = Vec::new();
            let (mut host_nodes, mut switch_nodes) = (Vec::new(), Vec::new());
            for i in 0..switches + hosts {
                let host = if round % 2 == 0 { i < hosts } else { i >= switches };
                let node = if host { b.host(format!("h{i}"), None) } else { b.switch(format!("s{i}"), 1) };
                if host {
                    host_nodes.push(node)
                } else {
                    switch_nodes.push(node)
                }
                all.push(node);
            }
            for &host in &host_nodes {
                b.cable(host, switch_nodes[rng.below(switches) as usize], GBPS, DELAY);
            }
            for _ in 0..2 * switches {
                let (x, y) = (rng.below(switches) as usize, rng.below(switches) as usize);
                if x != y {
                    b.cable(switch_nodes[x], switch_nodes[y], GBPS, DELAY);
                }
            }
            let net = b.build();
            let dead: Vec<bool> = net.links().iter().map(|_| rng.below(8) == 0).collect();
            let routes = Routes::new(&net, &dead);
            let n = all.len();
            let mut d = vec![vec![1000u32; n]; n];
            for (i, row) in d.iter_mut().enumerate() {
                row[i] = 0;
            }
            for (link, _) in net.links().iter().zip(&dead).filter(|(_, dead)| !**dead) {
                d[link.from.index()][link.to.index()] = 1;
            }
            for via in &switch_nodes {
                for i in 0..n {
                    for j in 0..n {
                        d[i][j] = d[i][j].min(d[i][via.index()] + d[via.index()][j]);
                    }
                }
            }
            for (dst, &end) in host_nodes.iter().enumerate() {
                let dst = HostId(dst as u32);
                for &node in &all {
                    let far = d[node.index()][end.index()];
                    let expected: Vec<LinkId> = net
                        .out_links(node)
                        .filter(|&l| far > 0 && far < 1000 && !dead[l.index()] && d[net.link(l).to.index()][end.index()] + 1 == far)
                        .collect();
                    assert_eq!(routes.candidates(node, dst), expected, "round {round} {node:?} {dst:?}");
                    assert_eq!(routes.distance(node, dst), (far < 1000).then_some(far));
                }
            }
            let hosts = || (0..host_nodes.len() as u32).map(HostId);
            let lost = |s: HostId, t: HostId| d[host_nodes[s.index()].index()][host_nodes[t.index()].index()] >= 1000;
            let first = hosts().find_map(|src| hosts().find(|&dst| lost(src, dst)).map(|dst| Unreachable { src, dst }));
            assert_eq!(routes.unreachable(), first);
        }
    }

    #[test]
    fn unloaded_round_trips() {
        let net = fat_tree(4);
        let routes = Routes::new(&net, &[]);
        let rtts = [1, 2, 4].map(|dst| rtt(&plan(&net, &routes, 0, dst, 1024).unwrap().hops(&net), 1500, 40));
        assert_eq!(rtts.map(|rtt| rtt.to_string()), ["64.64us", "129.28us", "193.92us"]);
    }

    #[test]
    fn shapes_tell_unequal_paths_apart() {
        let mut b = NetBuilder::default();
        let hosts = [b.host("h0", None), b.host("h1", None)];
        let leaves = [b.switch("leaf0", 1), b.switch("leaf1", 1)];
        let spines = [0, 1, 2].map(|i| b.switch(format!("spine{i}"), 2));
        for (host, leaf) in hosts.into_iter().zip(leaves) {
            b.cable(host, leaf, Rate::from_gbps(10), DELAY);
        }
        for (i, spine) in spines.into_iter().enumerate() {
            b.cable(leaves[0], spine, Rate::from_gbps(if i == 1 { 1 } else { 10 }), DELAY);
            b.cable(spine, leaves[1], Rate::from_gbps(10), DELAY);
        }
        let net = b.build();
        let shapes = |dead: &[bool]| {
            let found = Routes::new(&net, dead).shapes(&net, HostId(0), HostId(1));
            found.iter().map(|s| s.iter().map(|h| h.rate.bps() / 1_000_000_000).collect()).collect::<Vec<Vec<u64>>>()
        };
        assert_eq!(shapes(&[]), [[10, 1, 10, 10], [10, 10, 10, 10]]);
        assert_eq!(shapes(&dead(&net, &["leaf0->spine0", "spine2->leaf1"])), [[10, 1, 10, 10]]);
        assert_eq!(bottleneck(&Routes::new(&net, &[]).shapes(&net, HostId(0), HostId(1))[0]), GBPS);
        let tree = fat_tree(4);
        let routes = Routes::new(&tree, &[]);
        for (dst, links) in [(1, 2), (2, 4), (15, 6)] {
            assert_eq!(routes.shapes(&tree, HostId(0), HostId(dst)), [vec![Hop { rate: GBPS, delay: DELAY }; links]]);
        }
    }

    #[test]
    fn sets_are_shared() {
        // Edge: a way up. Aggregation: a way up and one to each edge of its pod. Core: one to each pod. And the empty set.
        let routes = Routes::new(&fat_tree(8), &[]);
        assert_eq!(routes.sets.len(), 32 + 32 * (1 + 4) + 16 * 8 + 1);
    }

    #[test]
    fn the_longest_round_trip_is_that_of_the_longest_path() {
        let routes = |net: &Net| Routes::new(net, &[]).max_rtt(net, 1500, 40);
        // Four links of 12 + 10 us out and 0.32 + 10 us back; two links in one rack.
        assert_eq!(routes(&single_tree(3, 3)), Dur::from_ns(129_280));
        assert_eq!(routes(&single_tree(1, 3)), Dur::from_ns(64_640));
    }
}

//! Next hops: at each switch, the ports on shortest paths to each host.
//!
//! Hosts never forward, so all hosts of a switch share the switch's next-hop sets. Equal sets are
//! stored once: a fat-tree of 8192 hosts takes a few megabytes. Hosts with several NICs share the
//! sets of other hosts that are connected to the same switches. A NIC is a next hop like any other:
//! the candidates at the node of a host are the host's NICs on shortest paths. If some of them lead to
//! a switch within the server, such as an NVSwitch, only these are candidates.

pub mod cost;
mod search;
mod several;

pub use cost::{CostedHop, bottleneck, ideal_fct, one_way, rtt};
pub use search::CELL_BYTES;

use crate::net::{HOST_TIER, Net};
use base::{Dur, HostId, LinkId, NodeId, Rng};
use search::{Ends, FAR, Found};
use several::Cables;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Next-hop sets and distances of a network, some of whose links may be dead.
#[derive(Clone, Debug)]
pub struct Routes {
    /// For each host with one NIC: the link from its switch to the host, if alive.
    down: Vec<Option<LinkId>>,
    /// For each host: whether this link is dead, but only its switch knows.
    cut: Vec<bool>,
    /// For each host with one NIC: the NIC, if alive.
    up: Vec<Option<LinkId>>,
    /// The hosts with several NICs.
    several: BTreeMap<HostId, Cables>,
    /// For each host: the group of hosts that share its switch or switches; `NONE` without a cable.
    group: Vec<u32>,
    /// For each group: the switch; `SEVERAL` for hosts with several NICs.
    home: Vec<NodeId>,
    /// For each node: the host id of a host, or the index among the switches.
    number: Vec<u32>,
    is_host: Vec<bool>,
    /// Next hops and distances, by group and switch.
    found: Found,
}

/// Error: there is no live path from the first host to the second.
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

/// The group of a host without a cable.
const NONE: u32 = u32::MAX;
/// The `home` of a group of hosts with several NICs.
const SEVERAL: NodeId = NodeId(u32::MAX);

impl Routes {
    /// Returns the shortest paths over all links that are not `dead` (by link id; links beyond the
    /// end of the slice are alive).
    pub fn new(net: &Net, dead: &[bool]) -> Routes {
        let alive = |link: LinkId| !dead.get(link.index()).copied().unwrap_or(false);
        let is_host: Vec<bool> = net.nodes().iter().map(|node| node.tier == HOST_TIER).collect();
        let (mut number, mut counts) = (Vec::with_capacity(is_host.len()), [0; 2]);
        for &host in &is_host {
            let count = &mut counts[usize::from(host)];
            number.push(*count);
            *count += 1;
        }
        let mut group_at = vec![NONE; is_host.len()];
        let (mut down, mut up, mut group, mut home) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (mut several, mut groups, mut group_of) = (BTreeMap::new(), Vec::new(), BTreeMap::new());
        for (host, &node) in (0..).map(HostId).zip(net.hosts()) {
            let mut nics = net.out_links(node);
            let (Some(nic), 0) = (nics.next(), nics.len()) else {
                down.push(None);
                up.push(None);
                if net.out_links(node).len() == 0 {
                    group.push(NONE);
                    continue;
                }
                let cables = Cables::new(net, host, &alive);
                let mut ends: Ends = cables.down().map(|(link, from)| (from, Some(CostedHop::of(net, link)))).collect();
                ends.sort_unstable();
                group.push(*group_of.entry(ends).or_insert_with_key(|ends| {
                    home.push(SEVERAL);
                    groups.push(ends.clone());
                    home.len() as u32 - 1
                }));
                several.insert(host, cables);
                continue;
            };
            let link = net.link(nic);
            let number = &mut group_at[link.to.index()];
            if *number == NONE {
                *number = home.len() as u32;
                home.push(link.to);
                groups.push(vec![(link.to, None)]);
            }
            down.push(Some(link.reverse).filter(|&l| alive(l)));
            up.push(Some(nic).filter(|&l| alive(l)));
            group.push(*number);
        }
        let found = search::search(net, &groups, &number, &alive);
        for cables in several.values_mut() {
            cables.set_routes(net, &found, groups.len() as u32, &number);
        }
        Routes { down, cut: vec![false; net.hosts().len()], up, several, group, home, number, is_host, found }
    }

    /// Returns these routes without the `dead` links at the nodes where these links start. Switches
    /// forward like this when they have detected the failure of their own ports and routing has not
    /// converged yet. Distances do not change.
    pub fn without(mut self, dead: &[bool]) -> Routes {
        let alive = |link: &LinkId| !dead[link.index()];
        for (from, to) in &mut self.found.sets {
            let all = &mut self.found.members[*from as usize..*to as usize];
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
        self.several.values_mut().for_each(|cables| cables.retain(alive));
        self
    }

    /// Returns the memory of a network's routes in bytes, nearly all of it for cells.
    pub fn bytes(net: &Net) -> u64 {
        let hosts = || (0..net.hosts().len() as u32).map(HostId);
        let edges = |host: HostId| net.nics(host).map(|nic| net.link(nic).to).collect::<Vec<_>>();
        let homes: BTreeSet<Vec<NodeId>> = hosts().map(edges).filter(|edges| !edges.is_empty()).collect();
        let switches = (net.nodes().len() - net.hosts().len()) as u64;
        let several = hosts().filter(|host| net.nics(*host).len() > 1).count() as u64;
        homes.len() as u64 * (switches * CELL_BYTES + several * size_of::<u32>() as u64)
    }

    /// Returns the live next hops of `node` towards `dst` in rising port order; empty if there is
    /// no path, or at `dst` itself. Planned paths and decisions at switches take next hops only
    /// from here.
    pub fn candidates(&self, node: NodeId, dst: HostId) -> &[LinkId] {
        let Some(down) = &self.down[dst.index()] else { return self.candidates_of_several(node, dst) };
        let home = self.home[self.group[dst.index()] as usize];
        let number = self.number[node.index()] as usize;
        if self.is_host[node.index()] {
            let Some(up) = &self.up[number] else { return self.candidates_of_several(node, dst) };
            let away = number != dst.index() && (home == node || self.steps(self.home[self.group[number] as usize], dst) != FAR);
            return if away { std::slice::from_ref(up) } else { &[] };
        }
        if node == home {
            return if self.cut[dst.index()] { &[] } else { std::slice::from_ref(down) };
        }
        let (from, to) = self.found.sets[self.found.set[self.cell(dst, number as u32)] as usize];
        &self.found.members[from as usize..to as usize]
    }

    /// Returns the candidates if one of the two hosts has several NICs, or no live NIC.
    #[cold]
    #[inline(never)]
    fn candidates_of_several(&self, node: NodeId, dst: HostId) -> &[LinkId] {
        let (end, number) = (self.several.get(&dst), self.number[node.index()]);
        if end.is_none() && self.down[dst.index()].is_none() {
            return &[];
        }
        let group = self.group[dst.index()];
        match end {
            _ if self.is_host[node.index()] && number == dst.0 => &[],
            _ if self.is_host[node.index()] => match (self.several.get(&HostId(number)), &self.up[number as usize]) {
                (Some(cables), _) => cables.toward(dst, group),
                (None, Some(up)) if self.reaches(self.home[self.group[number as usize] as usize], dst) => std::slice::from_ref(up),
                (None, _) => &[],
            },
            Some(cables) if self.steps(node, dst) == 0 => cables.down_at(node),
            _ => {
                let (from, to) = self.found.sets[self.found.set[self.cell(dst, number)] as usize];
                &self.found.members[from as usize..to as usize]
            }
        }
    }

    /// Returns whether a packet that a host sends to a node at the other end of its cable can reach
    /// another host.
    fn reaches(&self, node: NodeId, dst: HostId) -> bool {
        if self.is_host[node.index()] { self.number[node.index()] == dst.0 } else { self.steps(node, dst) != FAR }
    }

    /// Returns a number that is equal for hosts to which equally many shortest paths lead from
    /// every node, except for cables between hosts.
    pub(crate) fn group(&self, dst: HostId) -> u32 {
        self.group[dst.index()]
    }

    /// Returns a shortest path from host to host, with each next hop drawn uniformly; `None`: there
    /// is no path.
    pub fn random_path(&self, net: &Net, src: HostId, dst: HostId, rng: &mut Rng) -> Option<Vec<LinkId>> {
        let (mut at, end) = (net.hosts()[src.index()], net.hosts()[dst.index()]);
        let mut path = Vec::new();
        while at != end {
            let link = match self.candidates(at, dst) {
                [] => return None,
                [only] => *only,
                several => several[rng.below(several.len() as u64) as usize],
            };
            path.push(link);
            at = net.link(link).to;
        }
        Some(path)
    }
    /// Returns the links of all shortest paths from host to host, each with the fraction of packets
    /// that cross it if every node spreads packets evenly over its next hops. `None`: some packets
    /// reach a node without a next hop.
    pub fn spread_evenly(&self, net: &Net, src: HostId, dst: HostId) -> Option<Vec<(LinkId, f64)>> {
        let end = net.hosts()[dst.index()];
        let mut links = Vec::new();
        // The nodes at the present distance, each with the fraction of packets that cross it.
        let mut nodes = vec![(net.hosts()[src.index()], 1.0)];
        while nodes.iter().any(|(node, _)| *node != end) {
            let first = links.len();
            for (node, share) in nodes {
                let candidates = self.candidates(node, dst);
                if candidates.is_empty() {
                    return None;
                }
                links.extend(candidates.iter().map(|link| (*link, share / candidates.len() as f64)));
            }
            nodes = links[first..].iter().map(|(link, share)| (net.link(*link).to, *share)).collect();
            nodes.sort_by_key(|(node, _)| *node);
            nodes.dedup_by(|(node, share), (kept, sum)| {
                let same = node == kept;
                *sum += if same { *share } else { 0.0 };
                same
            });
        }
        Some(links)
    }

    /// Returns the number of links on a shortest path from `node` to `dst`; `None` if there is no
    /// path.
    pub fn distance(&self, node: NodeId, dst: HostId) -> Option<u32> {
        let number = self.number[node.index()] as usize;
        if self.is_host[node.index()] && number == dst.index() {
            return Some(0);
        }
        let first = *self.candidates(node, dst).first()?;
        if !self.is_host[node.index()] {
            return Some(u32::from(self.steps(node, dst)) + 1);
        }
        let next = match self.several.get(&HostId(number as u32)) {
            Some(cables) => cables.end(first)?,
            None => self.home[self.group[number] as usize],
        };
        Some(if self.is_host[next.index()] { 1 } else { u32::from(self.steps(next, dst)) + 2 })
    }

    /// Returns the first pair of hosts, by source and then destination, without a path from the
    /// source to the destination.
    pub fn unreachable(&self) -> Option<Unreachable> {
        let hosts = || (0..self.group.len() as u32).map(HostId);
        let cut = |src: HostId, dst: HostId| {
            if self.several.contains_key(&src) || self.several.contains_key(&dst) {
                let [up, down] = [(src, 0), (dst, 1)].map(|(host, side)| match self.several.get(&host) {
                    Some(cables) => cables.is_connected()[side],
                    None => [self.up[host.index()], self.down[host.index()]][side].is_some(),
                });
                let way = || match self.several.get(&src) {
                    Some(cables) => !cables.toward(dst, self.group[dst.index()]).is_empty(),
                    None => self.reaches(self.home[self.group[src.index()] as usize], dst),
                };
                return src != dst && !(up && down && way());
            }
            let home = |host: HostId| self.home[self.group[host.index()] as usize];
            let cable = || self.is_host[home(dst).index()] && self.number[home(dst).index()] == src.0;
            let apart = || self.steps(home(src), dst) == FAR && !cable();
            src != dst && (self.up[src.index()].is_none() || self.down[dst.index()].is_none() || apart())
        };
        hosts().find_map(|src| hosts().find(|&dst| cut(src, dst)).map(|dst| Unreachable { src, dst }))
    }

    /// Returns the rates and delays along the shortest paths from `src` to `dst`, without
    /// duplicates; empty if there is no path.
    pub fn shapes(&self, net: &Net, src: HostId, dst: HostId) -> Vec<Vec<CostedHop>> {
        let (Some(up), Some(down)) = (self.up[src.index()], self.down[dst.index()]) else {
            return self.shapes_of_several(net, src, dst);
        };
        let hop = |link| CostedHop::of(net, link);
        let home = self.home[self.group[dst.index()] as usize];
        let first = net.link(up).to;
        if src == dst || self.is_host[first.index()] && first != net.hosts()[dst.index()] {
            Vec::new()
        } else if first == net.hosts()[dst.index()] {
            vec![vec![hop(up)]] // Two hosts and a cable.
        } else if first == home {
            vec![vec![hop(up), hop(down)]]
        } else {
            let tails = self.found.paths(self.found.shape[self.cell(dst, self.number[first.index()])]);
            tails.iter().map(|tail| [&[hop(up)], &tail[..], &[hop(down)]].concat()).collect()
        }
    }

    /// Returns the shapes if one of the two hosts has several NICs, or no live NIC.
    fn shapes_of_several(&self, net: &Net, src: HostId, dst: HostId) -> Vec<Vec<CostedHop>> {
        let mut shapes = BTreeSet::new();
        for &nic in self.candidates(net.hosts()[src.index()], dst) {
            let (up, first) = (CostedHop::of(net, nic), net.link(nic).to);
            let down = self.down[dst.index()].map(|down| CostedHop::of(net, down));
            if self.is_host[first.index()] {
                shapes.insert(vec![up]);
            } else if first == self.home[self.group[dst.index()] as usize] {
                shapes.insert([up].into_iter().chain(down).collect());
            } else {
                let tails = self.found.paths(self.found.shape[self.cell(dst, self.number[first.index()])]);
                shapes.extend(tails.iter().map(|tail| [&[up], &tail[..], down.as_slice()].concat()));
            }
        }
        shapes.into_iter().collect()
    }

    /// Returns the completion time of a flow in an idle network, over the best of its shortest
    /// paths; see [`ideal_fct`].
    pub fn ideal_fct(&self, net: &Net, src: HostId, dst: HostId, payload: u64, mss: u64, header: u64) -> Dur {
        let shapes = self.shapes(net, src, dst);
        shapes.iter().map(|path| ideal_fct(path, payload, mss, header)).min().unwrap_or_default()
    }

    /// Returns the longest unloaded round trip between two hosts over shortest paths: a packet of
    /// `full` wire bytes out, a packet of `header` bytes back. Paths with equal rates and delays
    /// are examined once.
    pub fn max_rtt(&self, net: &Net, full: u64, header: u64) -> Dur {
        // First hops with the nodes they lead to, and groups with their last hops. Last hops to
        // hosts with several NICs are part of the paths to their groups; each NIC of such a host is
        // on shortest paths to some groups only.
        let (mut first, mut last, mut seen) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let mut several: BTreeMap<u32, BTreeSet<(NodeId, CostedHop)>> = BTreeMap::new();
        for (host, &group) in (0..).map(HostId).zip(&self.group).filter(|(_, group)| **group != NONE) {
            if let Some(cables) = self.several.get(&host) {
                last.insert((group, None));
                let up = |nic: &LinkId| (net.link(*nic).to, CostedHop::of(net, *nic));
                first.extend(cables.between_hosts().map(up));
                if seen.insert(cables.up().map(up).collect::<Vec<_>>()) {
                    let to = |to: u32| cables.of_group(to).iter().map(up).collect::<Vec<_>>();
                    (0..self.home.len() as u32).for_each(|group| several.entry(group).or_default().extend(to(group)));
                }
            } else if let (Some(up), Some(down)) = (self.up[host.index()], self.down[host.index()]) {
                first.insert((self.home[group as usize], CostedHop::of(net, up)));
                last.insert((group, Some(CostedHop::of(net, down))));
            }
        }
        let mut kinds = BTreeSet::new();
        for &(to, down) in &last {
            for &(home, up) in first.iter().chain(several.get(&to).into_iter().flatten()) {
                if self.is_host[home.index()] {
                    kinds.insert((up, None, None));
                } else {
                    let shape = self.found.shape[self.found.cell(to, self.number[home.index()])];
                    kinds.insert((up, (self.home[to as usize] != home).then_some(shape), down));
                }
            }
        }
        let cost = |(up, shape, down): (CostedHop, Option<u32>, Option<CostedHop>)| {
            let middles = shape.map_or(Cow::Owned(vec![Vec::new()]), |shape| self.found.paths(shape));
            let path = |middle: &Vec<CostedHop>| [&[up], &middle[..], down.as_slice()].concat();
            middles.iter().map(|middle| rtt(&path(middle), full, header)).max().unwrap_or_default()
        };
        kinds.into_iter().map(cost).max().unwrap_or_default()
    }

    /// Returns the number of links from a switch to the nearest switch of `dst`.
    fn steps(&self, switch: NodeId, dst: HostId) -> u16 {
        if self.is_host[switch.index()] {
            FAR
        } else if self.home[self.group[dst.index()] as usize] == switch {
            0
        } else {
            self.found.distance[self.cell(dst, self.number[switch.index()])]
        }
    }

    fn cell(&self, dst: HostId, switch: u32) -> usize {
        self.found.cell(self.group[dst.index()], switch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::NetBuilder;
    use crate::testing::{DELAY, GBPS, dead, fat_tree, names, plan, random, single_tree};
    use base::{LinkId, Rate, Rng};
    use proto::packet::{ASK, ROUTE_HOPS};

    #[test]
    fn paths_of_a_tree() {
        let net = single_tree(3, 3);
        let routes = Routes::new(&net, &[]);
        let far = plan(&net, &routes, 0, 8, 1024).unwrap();
        assert_eq!(names(&net, &far.links), ["h0->tor0", "tor0->root", "root->tor2", "tor2->h8"]);
        assert_eq!(far.route, Some([3, 2, 2, ASK, ASK, ASK]));
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
        // Each of the four paths between pods is used, and every flow keeps its path.
        let mut cores: Vec<u32> =
            (0..64).map(|port| net.link(plan(&net, &routes, 0, 4, 2000 + 97 * port).unwrap().links[2]).to.0).collect();
        assert_eq!(plan(&net, &routes, 0, 4, 2000), plan(&net, &routes, 0, 4, 2000));
        cores.sort_unstable();
        cores.dedup();
        assert_eq!(cores, [32, 33, 34, 35]);
    }

    #[test]
    fn dead_links_are_avoided_end_to_end() {
        let net = fat_tree(4);
        // Core 0 has no path to pod 1, so neither pod uses it for that; it is still used towards
        // pod 2.
        let routes = Routes::new(&net, &dead(&net, &["core0->agg1_0", "agg1_0->core0"]));
        assert_eq!(names(&net, routes.candidates(NodeId(24), HostId(4))), ["agg0_0->core1"]);
        assert_eq!(names(&net, routes.candidates(NodeId(24), HostId(8))), ["agg0_0->core0", "agg0_0->core1"]);
        assert_eq!(routes.unreachable(), None);
    }

    #[test]
    fn a_dead_port_is_left_out_only_at_its_own_node() {
        let net = fat_tree(4);
        let gone = dead(&net, &["agg0_0->core0", "core0->agg0_0", "core0->agg1_0", "edge0_0->h1", "h0->edge0_0"]);
        let (healthy, routes) = (Routes::new(&net, &[]), Routes::new(&net, &[]).without(&gone));
        assert_eq!(names(&net, routes.candidates(NodeId(24), HostId(4))), ["agg0_0->core1"]);
        assert_eq!(names(&net, routes.candidates(NodeId(24), HostId(12))), ["agg0_0->core1"]);
        // The core has no other port to that pod; its neighbours do not know, and send to it as
        // before.
        assert_eq!(routes.candidates(NodeId(32), HostId(4)), []);
        assert_eq!(names(&net, routes.candidates(NodeId(26), HostId(4))), ["agg1_0->edge1_0"]);
        assert_eq!(names(&net, routes.candidates(NodeId(28), HostId(4))), ["agg2_0->core0", "agg2_0->core1"]);
        assert_eq!((routes.candidates(NodeId(16), HostId(1)), routes.candidates(NodeId(0), HostId(4))), (&[][..], &[][..]));
        // Links that start at other nodes are not changed.
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
        assert_eq!((names(&net, &path.links), path.route), (vec!["h1->h0".to_owned()], Some([ASK; ROUTE_HOPS])));
        assert_eq!(routes.shapes(&net, HostId(1), HostId(0)), [[CostedHop { rate: GBPS, delay: DELAY }]]);
        assert_eq!((routes.distance(h1, HostId(0)), routes.distance(h1, HostId(2))), (Some(1), None));
        assert_eq!(routes.unreachable(), Some(Unreachable { src: HostId(0), dst: HostId(2) }));
    }

    /// Compared with all-pairs distances by Floyd and Warshall, on random graphs with random dead
    /// links.
    #[test]
    fn next_hops_are_those_one_step_nearer() {
        let mut rng = Rng::stream(1, "routes/random", &[]);
        for round in 0..200 {
            // In half of the graphs hosts come first: node ids must not matter.
            let net = random(&mut rng, round % 2 == 0, if round < 100 { 1 } else { 3 });
            let all: Vec<NodeId> = (0..net.nodes().len() as u32).map(NodeId).collect();
            let (host_nodes, switch_nodes): (Vec<NodeId>, Vec<NodeId>) = all.iter().partition(|node| net.host(**node).is_some());
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
                    let passes = |l: &LinkId| net.link(*l).to == end || net.host(net.link(*l).to).is_none();
                    let expected: Vec<LinkId> = net
                        .out_links(node)
                        .filter(passes)
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

    /// Compared with a walk over each single path, on random graphs with random dead links, some of
    /// which are known only to the switch before them.
    #[test]
    fn an_even_spread_is_the_sum_over_all_paths() {
        /// Adds the fraction of packets that reach `at` to the links of each further path. Returns
        /// the fraction that arrives.
        fn walk(net: &Net, routes: &Routes, (at, dst): (NodeId, HostId), share: f64, on: &mut [f64]) -> f64 {
            if net.host(at) == Some(dst) {
                return share;
            }
            let next = routes.candidates(at, dst);
            let each = share / next.len() as f64;
            next.iter()
                .map(|link| {
                    on[link.index()] += each;
                    walk(net, routes, (net.link(*link).to, dst), each, on)
                })
                .sum()
        }
        let mut rng = Rng::stream(1, "routes/spread", &[]);
        let (mut several, mut lossy) = (0, 0);
        for round in 0..400 {
            let net = random(&mut rng, round % 2 == 0, if round < 200 { 1 } else { 3 });
            let mut dead = || net.links().iter().map(|_| rng.below(10) == 0).collect::<Vec<bool>>();
            let routes = Routes::new(&net, &dead());
            let routes = if round % 4 < 2 { routes } else { routes.without(&dead()) };
            let hosts = || (0..net.hosts().len() as u32).map(HostId);
            for (src, dst) in hosts().flat_map(|src| hosts().map(move |dst| (src, dst))).filter(|(src, dst)| src != dst) {
                let mut on = vec![0.0; net.links().len()];
                let arrives = walk(&net, &routes, (net.hosts()[src.index()], dst), 1.0, &mut on);
                let Some(spread) = routes.spread_evenly(&net, src, dst) else {
                    assert!(arrives < 1.0 - 1e-9, "round {round} {src:?} {dst:?}");
                    lossy += u32::from(arrives > 0.0);
                    continue;
                };
                assert!((arrives - 1.0).abs() < 1e-9 && spread.len() == on.iter().filter(|share| **share > 0.0).count());
                for (link, share) in &spread {
                    assert!((share - on[link.index()]).abs() < 1e-9, "round {round} {}: {share}", net.link_name(*link));
                }
                several += u32::from(spread.iter().any(|(_, share)| *share < 1.0));
            }
        }
        assert!(several > 100 && lossy > 10, "{several} and {lossy}");
    }

    #[test]
    fn unloaded_round_trips() {
        let net = fat_tree(4);
        let routes = Routes::new(&net, &[]);
        let rtts = [1, 2, 4].map(|dst| rtt(&plan(&net, &routes, 0, dst, 1024).unwrap().hops(&net), 1500, 40));
        assert_eq!(rtts.map(|rtt| rtt.to_string()), ["64.64us", "129.28us", "193.92us"]);
    }

    #[test]
    fn shapes_distinguish_unequal_paths() {
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
            assert_eq!(routes.shapes(&tree, HostId(0), HostId(dst)), [vec![CostedHop { rate: GBPS, delay: DELAY }; links]]);
        }
    }

    /// Compared with an enumeration of all shortest paths, on random graphs whose cables have one
    /// of two rates.
    #[test]
    fn shapes_and_the_longest_round_trip_are_those_of_all_paths() {
        fn walk(
            net: &Net,
            routes: &Routes,
            at: NodeId,
            dst: HostId,
            path: &mut Vec<CostedHop>,
            found: &mut BTreeSet<Vec<CostedHop>>,
        ) {
            for &link in routes.candidates(at, dst) {
                path.push(CostedHop::of(net, link));
                if net.host(net.link(link).to) == Some(dst) {
                    found.insert(path.clone());
                } else {
                    walk(net, routes, net.link(link).to, dst, path, found);
                }
                path.pop();
            }
        }
        let mut rng = Rng::stream(1, "routes/shapes", &[]);
        let mut several = 0;
        for round in 0..200 {
            let plain = random(&mut rng, round % 2 == 0, if round < 50 { 1 } else { 4 });
            let mut b = NetBuilder::default();
            for node in plain.nodes() {
                if node.tier == HOST_TIER {
                    b.host(&*node.name, None)
                } else {
                    b.switch(&*node.name, node.tier)
                };
            }
            for (link, number) in plain.links().iter().zip(0..).filter(|(link, number)| link.reverse.0 > *number) {
                b.cable(link.from, link.to, Rate::from_gbps(if rng.below(4) == 0 || number == 0 { 10 } else { 1 }), DELAY);
            }
            let net = b.build();
            let healthy = round % 4 < 2;
            let dead: Vec<bool> = net.links().iter().map(|_| !healthy && rng.below(12) == 0).collect();
            let routes = Routes::new(&net, &dead);
            let hosts = || (0..net.hosts().len() as u32).map(HostId);
            let mut longest = Dur::ZERO;
            for (src, dst) in hosts().flat_map(|src| hosts().map(move |dst| (src, dst))).filter(|(src, dst)| src != dst) {
                let mut found = BTreeSet::new();
                walk(&net, &routes, net.hosts()[src.index()], dst, &mut Vec::new(), &mut found);
                assert_eq!(
                    routes.shapes(&net, src, dst),
                    found.iter().cloned().collect::<Vec<_>>(),
                    "round {round} {src:?} {dst:?}"
                );
                longest = found.iter().map(|path| rtt(path, 1500, 40)).fold(longest, Dur::max);
                several += u32::from(net.nics(src).len() > 1 && net.nics(dst).len() > 1 && found.len() > 1);
            }
            // A host at a switch also counts as a neighbour of itself, and a cable between hosts
            // with several NICs is ignored.
            let found = routes.max_rtt(&net, 1500, 40);
            let between_hosts = net.links().iter().any(|link| [link.from, link.to].iter().all(|node| net.host(*node).is_some()));
            let near =
                net.links().iter().map(|link| link.rate).min().map(|rate| rtt(&[CostedHop { rate, delay: DELAY }; 2], 1500, 40));
            assert!(
                !healthy || found == longest || found > longest && (between_hosts || Some(found) <= near),
                "round {round}: {found} is not {longest}"
            );
        }
        assert!(several > 200, "{several}");
    }

    #[test]
    fn sets_are_shared() {
        // Edge: one set up. Aggregation: one set up and one to each edge of its pod. Core: one to
        // each pod. Plus the empty set.
        let routes = Routes::new(&fat_tree(8), &[]);
        assert_eq!(routes.found.sets.len(), 32 + 32 * (1 + 4) + 16 * 8 + 1);
    }

    #[test]
    fn the_longest_round_trip_is_that_of_the_longest_path() {
        let routes = |net: &Net| Routes::new(net, &[]).max_rtt(net, 1500, 40);
        // Four links of 12 + 10 us out and 0.32 + 10 us back; two links in one rack.
        assert_eq!(routes(&single_tree(3, 3)), Dur::from_ns(129_280));
        assert_eq!(routes(&single_tree(1, 3)), Dur::from_ns(64_640));
    }
}

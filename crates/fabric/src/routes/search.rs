//! Breadth-first search of next hops, starting from the switches of each group of hosts.

use crate::net::Net;
use crate::routes::cost::CostedHop;
use base::{LinkId, NodeId};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The distance if there is no path.
pub(super) const FAR: u16 = u16::MAX;
/// The next-hop set, and the list of paths, if there is no path.
pub(super) const EMPTY: u32 = 0;
/// Marks the end of a path.
const NONE: u32 = u32::MAX;

/// Bytes stored per cell: a distance and two indices.
pub const CELL_BYTES: u64 = 2 + 4 + 4;

/// Next hops and distances of all switches. A cell is a pair (group, switch): see [`Found::cell`].
#[derive(Clone, Debug)]
pub(super) struct Found {
    switches: usize,
    /// For each cell: the number of links to the nearest switch of the group; [`FAR`] if there is
    /// no path.
    pub(super) distance: Vec<u16>,
    /// For each cell: the next hops, as an index into `sets`.
    pub(super) set: Vec<u32>,
    /// Ranges of `members`.
    pub(super) sets: Vec<(u32, u32)>,
    pub(super) members: Vec<LinkId>,
    /// For each cell: the rates and delays of the shortest paths from there, as an index into
    /// `tails`.
    pub(super) shape: Vec<u32>,
    /// Distinct lists of paths: each first hop with the list of paths that follow it.
    ways: Vec<Vec<(CostedHop, u32)>>,
    /// The same lists written out if their paths are short; empty otherwise.
    tails: Vec<Vec<Vec<CostedHop>>>,
}

/// Paths with up to this many hops, which includes those of data centers, are written out once. On
/// a chain each switch has its own list, with paths as long as the rest of the chain; writing all
/// of them out would take memory proportional to the square of the chain's length.
const SHORT: u16 = 8;

impl Found {
    /// Returns the cell of a group and a switch, each by index.
    pub(super) fn cell(&self, group: u32, switch: u32) -> usize {
        group as usize * self.switches + switch as usize
    }

    /// Returns the rates and delays along the shortest paths of a list, sorted, without duplicates.
    pub(super) fn paths(&self, shape: u32) -> Cow<'_, [Vec<CostedHop>]> {
        let tails = &self.tails[shape as usize];
        if tails.is_empty() { Cow::Owned(self.written_out(shape)) } else { Cow::Borrowed(tails) }
    }

    fn written_out(&self, shape: u32) -> Vec<Vec<CostedHop>> {
        let mut open = vec![(Vec::new(), shape)];
        // All shortest paths have the same length: they end together.
        while open.first().is_some_and(|(_, rest)| *rest != NONE) {
            let mut longer = Vec::with_capacity(open.len());
            for (mut path, rest) in open {
                let Some((&(hop, last), others)) = self.ways[rest as usize].split_last() else { continue };
                longer.extend(others.iter().map(|&(hop, rest)| ([&path[..], &[hop]].concat(), rest)));
                // The last one reuses the path without a copy: on a chain nothing is copied.
                path.push(hop);
                longer.push((path, last));
            }
            longer.sort_unstable();
            longer.dedup();
            open = longer;
        }
        open.into_iter().map(|(path, _)| path).collect()
    }
}

/// The last hops to the hosts of a group: the nodes where they start, by id. For hosts with several
/// NICs each hop is given, and is part of the paths that are found.
pub(super) type Ends = Vec<(NodeId, Option<CostedHop>)>;

/// Searches from the switches of every group over the links that are `alive`. `number` is the index
/// of each switch, by node.
pub(super) fn search(net: &Net, groups: &[Ends], number: &[u32], alive: &dyn Fn(LinkId) -> bool) -> Found {
    let switches = net.nodes().len() - net.hosts().len();
    let cells = groups.len() * switches;
    let found = Found {
        switches,
        distance: vec![FAR; cells],
        set: vec![EMPTY; cells],
        sets: vec![(0, 0)],
        members: Vec::new(),
        shape: vec![EMPTY; cells],
        ways: vec![Vec::new()],
        tails: vec![Vec::new()],
    };
    let mut search = Search {
        net,
        number,
        alive,
        found,
        queue: Vec::new(),
        hops: Vec::new(),
        last: vec![EMPTY; net.nodes().len()],
        known_sets: BTreeMap::new(),
        known_shapes: BTreeMap::new(),
        ways: Vec::new(),
    };
    for (group, ends) in (0..).zip(groups) {
        search.run(group, ends);
    }
    search.found
}

/// The state of a search: buffers and the sets found so far.
struct Search<'a> {
    net: &'a Net,
    number: &'a [u32],
    alive: &'a dyn Fn(LinkId) -> bool,
    found: Found,
    queue: Vec<NodeId>,
    hops: Vec<LinkId>,
    /// For each node: the set found last, which is most often the next one too.
    last: Vec<u32>,
    known_sets: BTreeMap<Vec<LinkId>, u32>,
    /// The list of paths of each distinct, sorted list of (first hop, list of paths after it).
    known_shapes: BTreeMap<Vec<(CostedHop, u32)>, u32>,
    ways: Vec<(CostedHop, u32)>,
}

impl Search<'_> {
    fn cell(&self, group: u32, node: NodeId) -> usize {
        self.found.cell(group, self.number[node.index()])
    }

    fn run(&mut self, group: u32, ends: &Ends) {
        self.queue.clear();
        for at_home in ends.chunk_by(|a, b| a.0 == b.0) {
            let home = at_home[0].0;
            if self.net.host(home).is_some() {
                continue; // A cable between hosts: no path continues there.
            }
            let start = self.cell(group, home);
            self.found.distance[start] = 0;
            self.queue.push(home);
            self.ways.clear();
            self.ways.extend(at_home.iter().filter_map(|(_, hop)| Some(((*hop)?, NONE))));
            if !self.ways.is_empty() {
                self.found.shape[start] = self.shape(1);
            }
        }
        // Paths to hosts with one NIC end at their switch.
        let (last, beyond) = match ends[..] {
            [(home, None)] => (Some(home), 0),
            _ => (None, 1),
        };
        let mut head = 0;
        while let Some(&node) = self.queue.get(head) {
            head += 1;
            let at = self.cell(group, node);
            let far = self.found.distance[at];
            self.hops.clear();
            self.ways.clear();
            for link in self.net.out_links(node) {
                let (to, back) = (self.net.link(link).to, self.net.link(link).reverse);
                if self.net.host(to).is_some() {
                    continue;
                }
                let there = self.cell(group, to);
                if self.found.distance[there] == FAR && (self.alive)(back) {
                    self.found.distance[there] = far + 1;
                    self.queue.push(to);
                }
                if far > 0 && self.found.distance[there] == far - 1 && (self.alive)(link) {
                    self.hops.push(link);
                    let way = (CostedHop::of(self.net, link), if Some(to) == last { NONE } else { self.found.shape[there] });
                    if self.ways.last() != Some(&way) {
                        self.ways.push(way);
                    }
                }
            }
            if far > 0 {
                self.found.set[at] = self.set(node);
                self.found.shape[at] = self.shape(far + beyond);
            }
        }
    }

    /// Returns the index of the set in `hops`; adds the set if it is new.
    fn set(&mut self, node: NodeId) -> u32 {
        let found = &mut self.found;
        let last = self.last[node.index()];
        let (from, to) = found.sets[last as usize];
        if found.members[from as usize..to as usize] == self.hops {
            return last;
        }
        let set = self.known_sets.get(&self.hops).copied().unwrap_or_else(|| {
            let from = found.members.len() as u32;
            found.members.extend_from_slice(&self.hops);
            found.sets.push((from, found.members.len() as u32));
            let number = found.sets.len() as u32 - 1;
            self.known_sets.insert(self.hops.clone(), number);
            number
        });
        self.last[node.index()] = set;
        set
    }

    /// Returns the index of the list of paths of `length` hops that start with `ways`; adds the
    /// list if it is new.
    fn shape(&mut self, length: u16) -> u32 {
        self.ways.sort_unstable();
        self.ways.dedup();
        if let Some(&known) = self.known_shapes.get(&self.ways) {
            return known;
        }
        let found = &mut self.found;
        let number = found.ways.len() as u32;
        found.ways.push(self.ways.clone());
        let tails = if length <= SHORT { found.written_out(number) } else { Vec::new() };
        found.tails.push(tails);
        self.known_shapes.insert(self.ways.clone(), number);
        number
    }
}

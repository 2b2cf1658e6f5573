//! What a flow meets on its shortest paths in the healthy network: round trip and slowest link.

use base::{Dur, HostId, LinkId, NodeId, Rate};
use fabric::net::{HOST_TIER, Net};
use std::collections::VecDeque;

/// Round trip and slowest link between hosts. What leads to one destination switch is worked out at once and kept until another
/// is asked for: ask in the order of [`Paths::far_switch`].
pub struct Paths<'a> {
    net: &'a Net,
    mtu: u64,
    header: u64,
    /// The switch at the far end, and what each node meets on its way there.
    row: Option<(NodeId, Vec<Option<Path>>)>,
}

/// The best of all shortest paths between two nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Links crossed.
    pub hops: u32,
    /// A full packet out, a bare header back, no queues.
    pub rtt: Dur,
    /// Rate of the slowest link; the largest among equally short paths.
    pub bottleneck: Rate,
    /// More than one shortest path.
    pub several: bool,
}

impl<'a> Paths<'a> {
    /// For packets of `mtu` bytes whose ACKs are `header` bytes.
    pub fn new(net: &'a Net, mtu: u16, header: u16) -> Paths<'a> {
        Paths { net, mtu: mtu.into(), header: header.into(), row: None }
    }
    /// The node at the other end of a host's cable.
    pub fn far_switch(&self, dst: HostId) -> NodeId {
        self.net.link(self.net.nic(dst)).to
    }
    /// Between two hosts; `None` when no path leads from one to the other.
    pub fn between(&mut self, src: HostId, dst: HostId) -> Option<Path> {
        let (first, last) = (self.net.nic(src), self.net.link(self.net.nic(dst)).reverse);
        if self.net.link(first).to == self.net.hosts()[dst.index()] {
            return Some(self.over(first));
        }
        let (from, to) = (self.net.link(first).to, self.net.link(last).from);
        if self.is_host(from) || self.is_host(to) {
            return None;
        }
        let inner = self.row(to)[from.index()]?;
        Some(self.join(self.over(first), self.join(inner, self.over(last))))
    }
    /// The longest round trip between any two hosts that can reach each other (zero without such a pair), and whether any two have
    /// several shortest paths.
    pub fn extremes(&mut self) -> (Dur, bool) {
        let (mut worst, mut several) = (Dur::ZERO, false);
        // Hosts of one switch differ by their own links only: the two with the longest of them stand for all.
        let mut by_switch: Vec<Vec<HostId>> = vec![Vec::new(); self.net.nodes().len()];
        for host in (0..self.net.hosts().len() as u32).map(HostId) {
            by_switch[self.net.link(self.net.nic(host)).to.index()].push(host);
        }
        for hosts in &mut by_switch {
            hosts.sort_by_key(|h| std::cmp::Reverse(self.over(self.net.nic(*h)).rtt));
            hosts.truncate(2);
        }
        let hosts: Vec<HostId> = by_switch.into_iter().flatten().collect();
        for &dst in &hosts {
            for &src in hosts.iter().filter(|h| **h != dst) {
                if let Some(path) = self.between(src, dst) {
                    worst = worst.max(path.rtt);
                    several |= path.several;
                }
            }
        }
        (worst, several)
    }
    fn is_host(&self, node: NodeId) -> bool {
        self.net.node(node).tier == HOST_TIER
    }
    /// One link out and its reverse back.
    fn over(&self, link: LinkId) -> Path {
        let out = self.net.link(link);
        let back = self.net.link(out.reverse);
        let time = |rate: Rate, bytes, delay: Dur| rate.tx_time(bytes).0.saturating_add(delay.0);
        let rtt = time(out.rate, self.mtu, out.delay).saturating_add(time(back.rate, self.header, back.delay));
        Path { hops: 1, rtt: Dur(rtt), bottleneck: out.rate, several: false }
    }
    fn join(&self, a: Path, b: Path) -> Path {
        Path {
            hops: a.hops + b.hops,
            rtt: Dur(a.rtt.0.saturating_add(b.rtt.0)),
            bottleneck: a.bottleneck.min(b.bottleneck),
            several: a.several || b.several,
        }
    }
    /// From every switch to switch `to`: breadth first from the far end, best of the equally short.
    fn row(&mut self, to: NodeId) -> &[Option<Path>] {
        if self.row.as_ref().is_none_or(|(at, _)| *at != to) {
            let mut row: Vec<Option<Path>> = vec![None; self.net.nodes().len()];
            row[to.index()] = Some(Path { hops: 0, rtt: Dur::ZERO, bottleneck: Rate(u64::MAX), several: false });
            let mut queue = VecDeque::from([to]);
            while let Some(node) = queue.pop_front() {
                let here = row[node.index()].expect("queued nodes are known");
                for link in self.net.out_links(node) {
                    let towards = self.net.link(link).reverse;
                    let next = self.net.link(link).to;
                    if self.is_host(next) {
                        continue;
                    }
                    let path = self.join(self.over(towards), here);
                    match &mut row[next.index()] {
                        empty @ None => {
                            *empty = Some(path);
                            queue.push_back(next);
                        }
                        Some(known) if known.hops == path.hops => {
                            known.rtt = known.rtt.min(path.rtt);
                            known.bottleneck = known.bottleneck.max(path.bottleneck);
                            known.several = true;
                        }
                        Some(_) => {}
                    }
                }
            }
            self.row = Some((to, row));
        }
        &self.row.as_ref().expect("just filled").1
    }
}

/// Two hosts that cannot reach each other, if there are such.
pub fn unreachable(net: &Net) -> Option<(HostId, HostId)> {
    let mut seen = vec![false; net.nodes().len()];
    let mut queue: VecDeque<NodeId> = net.hosts().first().copied().into_iter().collect();
    while let Some(node) = queue.pop_front() {
        if std::mem::replace(&mut seen[node.index()], true) {
            continue;
        }
        // Hosts do not forward.
        if net.node(node).tier != HOST_TIER || node == net.hosts()[0] {
            queue.extend(net.out_links(node).map(|l| net.link(l).to));
        }
    }
    let lost = net.hosts().iter().position(|h| !seen[h.index()])?;
    Some((HostId(0), HostId(lost as u32)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric::net::NetBuilder;

    /// Two leaves, two spines of different speed, two hosts each.
    fn two_by_two() -> Net {
        let mut b = NetBuilder::default();
        let hosts: Vec<NodeId> = (0..4).map(|i| b.host(format!("h{i}"), None)).collect();
        let leaves = [b.switch("leaf0", 1), b.switch("leaf1", 1)];
        let spines = [b.switch("spine0", 2), b.switch("spine1", 2)];
        for (i, h) in hosts.iter().enumerate() {
            b.cable(*h, leaves[i / 2], Rate::from_gbps(1), Dur::from_us(10));
        }
        for leaf in leaves {
            b.cable(leaf, spines[0], Rate::from_gbps(1), Dur::from_us(10));
            b.cable(leaf, spines[1], Rate::from_gbps(10), Dur::from_us(1));
        }
        b.build()
    }

    #[test]
    fn the_single_tree_has_the_round_trip_of_merp_section_6_1() {
        let mut b = NetBuilder::default();
        let (h0, h1) = (b.host("h0", None), b.host("h1", None));
        let (t0, t1, root) = (b.switch("tor0", 1), b.switch("tor1", 1), b.switch("root", 2));
        for (x, y) in [(h0, t0), (h1, t1), (t0, root), (t1, root)] {
            b.cable(x, y, Rate::from_gbps(1), Dur::from_us(10));
        }
        let net = b.build();
        // 4 links: 4 x (12 us + 0.32 us + 2 x 10 us).
        let path = Paths::new(&net, 1500, 40).between(HostId(0), HostId(1)).unwrap();
        assert_eq!(path, Path { hops: 4, rtt: Dur(129_280_000), bottleneck: Rate::from_gbps(1), several: false });
        assert_eq!(Paths::new(&net, 1500, 40).extremes(), (path.rtt, false));
    }

    #[test]
    fn the_best_of_equally_short_paths_counts() {
        let net = two_by_two();
        let mut paths = Paths::new(&net, 1500, 40);
        let near = paths.between(HostId(0), HostId(1)).unwrap();
        assert_eq!((near.hops, near.rtt, near.several), (2, Dur(64_640_000), false));
        let far = paths.between(HostId(0), HostId(2)).unwrap();
        // The fast spine: 2 x (1.2 us + 0.032 us + 2 us) between the leaves.
        assert_eq!((far.hops, far.rtt, far.several), (4, Dur(64_640_000 + 2 * 3_232_000), true));
        assert_eq!(far.bottleneck, Rate::from_gbps(1));
        assert_eq!(paths.extremes(), (far.rtt, true));
    }

    #[test]
    fn parts_that_do_not_meet_are_found() {
        assert_eq!(unreachable(&two_by_two()), None);
        let mut b = NetBuilder::default();
        let hosts: Vec<NodeId> = (0..3).map(|i| b.host(format!("h{i}"), None)).collect();
        let (s, t) = (b.switch("s0", 1), b.switch("s1", 1));
        for (h, at) in [(hosts[0], s), (hosts[1], s), (hosts[2], t)] {
            b.cable(h, at, Rate::from_gbps(1), Dur::from_us(1));
        }
        let net = b.build();
        assert_eq!(unreachable(&net), Some((HostId(0), HostId(2))));
        assert_eq!(Paths::new(&net, 1500, 40).between(HostId(0), HostId(2)), None);
    }
}

//! The network: nodes, directed links, ports. A topology builds it; it does not change during a
//! run.

use base::{Dur, Fraction, HostId, LinkId, NodeId, PortId, Rate};

/// Tier of a node: hosts are tier 0, switches are counted from the hosts up.
pub type Tier = u8;

/// The tier of hosts.
pub const HOST_TIER: Tier = 0;
/// The tier of top-of-rack (edge, leaf) switches.
pub const TOR_TIER: Tier = 1;

/// A host or a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Name in scenarios, tables and messages.
    pub name: String,
    /// Hosts are tier 0, ToR switches tier 1, and so on up.
    pub tier: Tier,
    /// IPv4 address, for hosts; zero for switches.
    pub address: u32,
    /// Whether the node is a switch within a server, such as an NVSwitch.
    pub in_server: bool,
}

/// A directed link with the egress port that feeds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The node where the link starts.
    pub from: NodeId,
    /// The node where the link ends.
    pub to: NodeId,
    /// The number of the egress port at the node where the link starts.
    pub port: PortId,
    /// The link in the opposite direction.
    pub reverse: LinkId,
    /// Line rate.
    pub rate: Rate,
    /// Propagation delay, never zero; includes the processing delay of a host at either end.
    pub delay: Dur,
    /// Probability that a packet is lost on the link, independent for each packet.
    pub loss: Fraction,
}

/// A network. Node ids are in the order of the builder; links are sorted by (node, port), so the
/// links of a node are contiguous.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Net {
    nodes: Vec<Node>,
    links: Vec<Link>,
    out_base: Vec<u32>,
    hosts: Vec<NodeId>,
    host_of: Vec<Option<HostId>>,
    wide: bool,
}

/// Builds a [`Net`]: nodes first, then cables between them.
#[derive(Clone, Debug, Default)]
pub struct NetBuilder {
    nodes: Vec<Node>,
    hosts: u32,
    cables: Vec<Cable>,
    loss: Fraction,
    host_delay: Dur,
}

/// A full-duplex cable; both directions have the same properties.
#[derive(Clone, Copy, Debug)]
struct Cable {
    ends: [NodeId; 2],
    rate: Rate,
    delay: Dur,
    loss: Fraction,
}

impl NetBuilder {
    /// Adds a host. Its address is 10.x.y.z from the host's index unless `address` is given.
    pub fn host(&mut self, name: impl Into<String>, address: Option<u32>) -> NodeId {
        self.hosts += 1;
        self.add(Node {
            name: name.into(),
            tier: HOST_TIER,
            address: address.unwrap_or(0x0a00_0000 + self.hosts),
            in_server: false,
        })
    }
    /// Adds a switch of a tier from 1 up.
    pub fn switch(&mut self, name: impl Into<String>, tier: Tier) -> NodeId {
        assert!(tier > HOST_TIER, "tier 0 is for hosts");
        self.add(Node { name: name.into(), tier, address: 0, in_server: false })
    }
    /// Adds a switch of tier 1 within a server, such as an NVSwitch.
    pub fn server_switch(&mut self, name: impl Into<String>) -> NodeId {
        self.add(Node { name: name.into(), tier: 1, address: 0, in_server: true })
    }
    fn add(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        NodeId(self.nodes.len() as u32 - 1)
    }
    /// Sets the probability that a packet is lost, in each direction of every cable added from now
    /// on; initially 0.
    pub fn set_loss(&mut self, loss: Fraction) {
        self.loss = loss;
    }
    /// Sets the time that a host takes to process a packet. It is added to the delay of both
    /// directions of every host's cable, including cables added earlier. Hosts process any number
    /// of packets at once: no packet waits for another.
    pub fn set_host_delay(&mut self, delay: Dur) {
        self.host_delay = delay;
    }
    /// Adds a full-duplex cable. The ports of each node are numbered in the order of its cables.
    pub fn cable(&mut self, a: NodeId, b: NodeId, rate: Rate, delay: Dur) {
        self.lossy_cable(a, b, rate, delay, self.loss);
    }
    /// Adds a full-duplex cable with its own loss probability.
    pub fn lossy_cable(&mut self, a: NodeId, b: NodeId, rate: Rate, delay: Dur, loss: Fraction) {
        self.cables.push(Cable { ends: [a, b], rate, delay, loss });
    }
    /// Returns the network.
    pub fn build(self) -> Net {
        let mut ports: Vec<Vec<(usize, bool)>> = vec![Vec::new(); self.nodes.len()];
        for (i, Cable { ends: [a, b], .. }) in self.cables.iter().enumerate() {
            ports[a.index()].push((i, true));
            ports[b.index()].push((i, false));
        }
        let mut out_base = Vec::with_capacity(self.nodes.len() + 1);
        let mut ids = vec![[LinkId(0); 2]; self.cables.len()];
        let mut next = 0;
        for node in &ports {
            out_base.push(next);
            for &(cable, forward) in node {
                ids[cable][usize::from(!forward)] = LinkId(next);
                next += 1;
            }
        }
        out_base.push(next);
        let is_host = |id: &NodeId| self.nodes[id.index()].tier == HOST_TIER;
        let links = ports.iter().flat_map(|node| node.iter().enumerate()).map(|(port, &(cable, forward))| {
            let Cable { ends: [a, b], rate, delay, loss } = self.cables[cable];
            let [there, back] = ids[cable];
            let (from, to, reverse) = if forward { (a, b, back) } else { (b, a, there) };
            let delay = [a, b].iter().filter(|end| is_host(end)).fold(delay, |sum, _| sum + self.host_delay);
            Link { from, to, port: PortId(port as u32), reverse, rate, delay, loss }
        });
        let links = links.collect();
        let hosts: Vec<NodeId> = (0..self.nodes.len() as u32).map(NodeId).filter(is_host).collect();
        let mut host_of = vec![None; self.nodes.len()];
        for (i, node) in hosts.iter().enumerate() {
            host_of[node.index()] = Some(HostId(i as u32));
        }
        let wide = ports.iter().any(|ports| ports.len() > usize::from(proto::packet::ASK));
        Net { nodes: self.nodes, links, out_base, hosts, host_of, wide }
    }
}

impl Net {
    /// Returns all nodes, by id.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }
    /// Returns a node.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }
    /// Returns all links, by id.
    pub fn links(&self) -> &[Link] {
        &self.links
    }
    /// Returns a link.
    pub fn link(&self, id: LinkId) -> &Link {
        &self.links[id.index()]
    }
    /// Returns the nodes of the hosts, by host id.
    pub fn hosts(&self) -> &[NodeId] {
        &self.hosts
    }
    /// Returns whether a port number needs two bytes at some node.
    pub fn is_wide(&self) -> bool {
        self.wide
    }
    /// Returns the host at a node; `None` for switches.
    pub fn host(&self, node: NodeId) -> Option<HostId> {
        self.host_of[node.index()]
    }
    /// Returns the id of the first link of a node: port `p` is the link with id `out_base + p`.
    pub fn out_base(&self, node: NodeId) -> u32 {
        self.out_base[node.index()]
    }
    /// Returns the links that start at a node, by port.
    pub fn out_links(&self, node: NodeId) -> impl ExactSizeIterator<Item = LinkId> + Clone + use<> {
        (self.out_base[node.index()]..self.out_base[node.index() + 1]).map(LinkId)
    }
    /// Returns the links that start at a host, by port: the host's NICs.
    pub fn nics(&self, host: HostId) -> impl ExactSizeIterator<Item = LinkId> + Clone + use<> {
        self.out_links(self.hosts[host.index()])
    }
    /// Returns the first NIC of a host. Most hosts have only one.
    pub fn first_nic(&self, host: HostId) -> LinkId {
        LinkId(self.out_base(self.hosts[host.index()]))
    }
    /// Returns the nodes at the other ends of a host's cables, by id and without duplicates: the
    /// switches that the host is connected to.
    pub fn edges(&self, host: HostId) -> Vec<NodeId> {
        let mut edges: Vec<NodeId> = self.nics(host).map(|nic| self.link(nic).to).collect();
        edges.sort_unstable();
        edges.dedup();
        edges
    }
    /// Returns the sum of the rates of a host's NICs.
    pub fn host_rate(&self, host: HostId) -> Rate {
        Rate(self.nics(host).map(|nic| self.link(nic).rate.0).sum())
    }
    /// Returns the first host with several NICs, if there is one.
    pub fn multi_nic_host(&self) -> Option<HostId> {
        (0..self.hosts.len() as u32).map(HostId).find(|host| self.nics(*host).len() > 1)
    }
    /// Returns the link with this name.
    pub fn link_named(&self, name: &str) -> Option<LinkId> {
        (0..self.links.len() as u32).map(LinkId).find(|link| self.link_name(*link) == name)
    }
    /// Returns the names of the tiers: `host`, then for each tier the common part of its switches'
    /// names before their numbers, such as `leaf`, or `tier 2` if the names have nothing in common.
    pub fn tier_names(&self) -> Vec<String> {
        let highest = self.nodes.iter().map(|node| usize::from(node.tier)).max().unwrap_or(0);
        let name = |tier: usize| {
            let mut stems = self
                .nodes
                .iter()
                .filter(|node| usize::from(node.tier) == tier)
                .map(|node| node.name.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default());
            let first = stems.next().unwrap_or_default();
            let common = !first.is_empty() && stems.all(|stem| stem == first);
            if common { first.to_owned() } else { format!("tier {tier}") }
        };
        std::iter::once("host".to_owned()).chain((1..=highest).map(name)).collect()
    }
    /// Returns the name of a link, such as `tor0->root`.
    pub fn link_name(&self, id: LinkId) -> String {
        let link = self.link(id);
        format!("{}->{}", self.node(link.from).name, self.node(link.to).name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tier_is_named_by_what_its_switches_have_in_common() {
        let named = |names: [&str; 3]| {
            let mut b = NetBuilder::default();
            for name in names {
                b.switch(name, 1);
            }
            b.build().tier_names().remove(1)
        };
        assert_eq!(named(["edge0_0", "edge0_1", "edge13_1"]), "edge");
        assert_eq!(named(["leaf0", "leaf1", "rack1"]), "tier 1");
        assert_eq!(named(["0", "1", "2"]), "tier 1");
    }

    #[test]
    fn links_of_a_node_are_contiguous_and_know_their_reverse() {
        let mut b = NetBuilder::default();
        let (h0, h1) = (b.host("h0", None), b.host("h1", None));
        let (s, t) = (b.switch("s", 1), b.switch("t", 2));
        let gbps = Rate::from_gbps(1);
        for (a, z) in [(h0, s), (h1, s), (s, t)] {
            b.cable(a, z, gbps, Dur::from_us(10));
        }
        let net = b.build();
        let names: Vec<String> = (0..net.links().len() as u32).map(|l| net.link_name(LinkId(l))).collect();
        assert_eq!(names, ["h0->s", "h1->s", "s->h0", "s->h1", "s->t", "t->s"]);
        for (i, link) in net.links().iter().enumerate() {
            let back = net.link(link.reverse);
            assert_eq!((back.from, back.to, back.reverse), (link.to, link.from, LinkId(i as u32)));
            assert_eq!(net.out_base(link.from) + link.port.0, i as u32);
        }
        assert_eq!((net.link_named("t->s"), net.link_named("t->h0")), (Some(LinkId(5)), None));
        assert_eq!(net.tier_names(), ["host", "s", "t"]);
        assert_eq!((net.first_nic(HostId(1)), net.host(h1), net.host(s)), (LinkId(1), Some(HostId(1)), None));
        assert!(net.nics(HostId(1)).eq([LinkId(1)]) && net.multi_nic_host().is_none());
        assert_eq!((net.node(h0).address, net.node(h1).address), (0x0a00_0001, 0x0a00_0002));
        assert!(net.links().iter().all(|link| link.loss == Fraction(0) && link.delay == Dur::from_us(10)));
    }

    #[test]
    fn a_host_may_have_several_nics() {
        let mut b = NetBuilder::default();
        let (h0, h1) = (b.host("h0", None), b.host("h1", None));
        let [s, t] = ["s", "t"].map(|name| b.switch(name, 1));
        for (host, switch, gbps) in [(h0, s, 1), (h1, t, 40), (h1, s, 10), (h1, t, 40)] {
            b.cable(host, switch, Rate::from_gbps(gbps), Dur::from_us(1));
        }
        let net = b.build();
        assert_eq!(net.nics(HostId(1)).map(|nic| net.link_name(nic)).collect::<Vec<_>>(), ["h1->t", "h1->s", "h1->t"]);
        assert_eq!(net.first_nic(HostId(1)), LinkId(1));
        assert_eq!([0, 1].map(|host| net.edges(HostId(host))), [vec![s], vec![s, t]]);
        assert_eq!([0, 1].map(|host| net.host_rate(HostId(host))), [1, 90].map(Rate::from_gbps));
        assert_eq!(net.multi_nic_host(), Some(HostId(1)));
    }

    #[test]
    fn cables_lose_packets_and_hosts_take_their_time() {
        let mut b = NetBuilder::default();
        let (h0, h1, s) = (b.host("h0", None), b.host("h1", None), b.switch("s", 1));
        let t = b.switch("t", 2);
        let (rate, delay, [low, high]) = (Rate::from_gbps(1), Dur::from_us(1), [1, 2].map(|n| Fraction(n * 1_000_000)));
        b.cable(h0, s, rate, delay);
        b.set_loss(low);
        b.set_host_delay(Dur::from_us(20));
        b.cable(s, t, rate, delay);
        b.lossy_cable(h1, s, rate, delay, high);
        let net = b.build();
        let of = |name| net.link(net.link_named(name).unwrap());
        let shown = |name| (of(name).loss, of(name).delay);
        for (there, back, loss, us) in [("h0->s", "s->h0", Fraction(0), 21), ("s->t", "t->s", low, 1), ("h1->s", "s->h1", high, 21)]
        {
            assert_eq!([shown(there), shown(back)], [(loss, Dur::from_us(us)); 2], "{there}");
        }
    }
}

//! Environments of all parts of a system, for the checks and for the run.

use crate::files::Files;
use crate::memory::Memory;
use crate::topology;
use crate::workload::size::Packets;
use crate::workload::{self, Workload as _};
use base::chosen::Chosen;
use base::given::GivenPart;
use base::params::Param as _;
use base::{Dur, Given, HostId, LinkId, NodeId, Offered, Offers, Rate, Time};
use fabric::net::Net;
use fabric::qdisc::Qdisc as _;
use fabric::routes::Routes;
use fabric::{agent, buffer, qdisc, receiver, router};
use proto::{policy, transport};
use std::collections::BTreeMap;

/// The data that the parts of all systems on a network share.
#[derive(Clone, Copy)]
pub(crate) struct Site<'a> {
    pub net: &'a Net,
    /// Next hops of the network while all links are up.
    pub routes: &'a Routes,
    /// Longest unloaded round trip of the network.
    pub max_rtt: Dur,
    /// The same with full packets in both directions.
    pub full_rtt: Dur,
    pub packets: Packets,
    pub seed: u64,
}

/// The environments of a system's parts.
pub struct Envs<'a> {
    site: Site<'a>,
    /// The queue discipline at switch ports.
    queue: &'a qdisc::AnyParams,
    router: &'a router::AnyParams,
    given: Given,
    offers: Offers<'a>,
    /// The highest NIC rate, and a NIC with this rate.
    fastest: (Rate, LinkId),
}

impl<'a> Envs<'a> {
    pub(crate) fn new(
        site: Site<'a>,
        (queue, router): (&'a qdisc::AnyParams, &'a router::AnyParams),
        given: Given,
        offers: Offers<'a>,
    ) -> Envs<'a> {
        let net = site.net;
        let nics = net.hosts().iter().flat_map(|host| net.out_links(*host));
        let fastest = fastest(net, nics).map_or((Rate(1), LinkId(0)), |nic| (net.link(nic).rate, nic));
        let mut envs = Envs { site, queue, router, given, offers, fastest };
        envs.given = envs.with_lengths();
        envs
    }
    /// Returns the parts as data, with the queue lengths that `auto` gives at a switch port of the
    /// rate of the fastest NIC.
    fn with_lengths(&self) -> Given {
        let port = qdisc::Env { host_port: false, ..self.qdisc(self.fastest.1) };
        let lengths = self.queue.build(&port).lengths();
        let resolved = |part: &GivenPart| {
            let value = |(key, written): &(&'static str, String)| {
                let length = lengths.iter().find(|(name, _)| part.slot == "qdisc" && name == key && written == "auto");
                (*key, length.map_or_else(|| written.clone(), |(_, limit)| limit.show()))
            };
            GivenPart { values: part.values.iter().map(value).collect(), ..part.clone() }
        };
        Given::new(self.given.parts().iter().map(resolved).collect())
    }
    /// Returns whether the packets of a flow can leave through all NICs of its host: the router or
    /// the host decides per packet.
    fn spreads(&self) -> bool {
        let rooms = [("transport", &proto::transport::ROOM), ("policy", &proto::policy::ROOM)];
        let entries = rooms.into_iter().filter_map(|(slot, room)| room.entry(self.given.kind(slot)?));
        self.router.duties(&self.router()).decides.at_switches(false) || entries.into_iter().any(|entry| entry.meta.many_paths)
    }
    /// Returns the environment of the transport of a host.
    pub fn transport(&self, host: HostId) -> proto::Env<'_> {
        let net = self.site.net;
        let (nic, host_rate) = (fastest(net, net.nics(host)).unwrap_or(LinkId(0)), net.host_rate(host));
        proto::Env {
            nic_rate: if net.nics(host).len() > 1 && self.spreads() { host_rate } else { net.link(nic).rate },
            host_rate,
            mtu_bytes: self.site.packets.mtu as u16,
            header_bytes: self.site.packets.header as u16,
            max_rtt: self.site.max_rtt,
            full_rtt: self.site.full_rtt,
            queue_limit: self.queue.limit(&qdisc::Env { host_port: false, ..self.qdisc(nic) }),
            given: &self.given,
            offered: &self.offers,
            chosen: None,
        }
    }
    /// Returns the values chosen for `auto` in the parameters of a transport and a policy. A value that differs between
    /// hosts is a range, from the slowest to the fastest host.
    pub fn chosen(&self, transport: &transport::AnyParams, policy: Option<&policy::AnyParams>) -> Vec<ChosenValue> {
        let mut kinds = BTreeMap::new();
        for host in (0..self.site.net.hosts().len() as u32).map(HostId) {
            let env = self.transport(host);
            kinds.entry((env.nic_rate, env.host_rate, env.queue_limit.show())).or_insert(env);
        }
        let mut all: Vec<ChosenValue> = Vec::new();
        for env in kinds.values() {
            let values = |build: &dyn Fn(&proto::Env<'_>)| {
                let chosen = Chosen::default();
                build(&proto::Env { chosen: Some(&chosen), ..*env });
                chosen.into_values()
            };
            let of_transport = values(&|env| drop(transport.build(env)));
            let of_policy = policy.map(|policy| (policy.name(), values(&|env| drop(policy.build(env)))));
            for (kind, values) in [(transport.name(), of_transport)].into_iter().chain(of_policy) {
                for (key, value) in values.into_iter().filter(|(_, value)| !value.is_empty()) {
                    match all.iter_mut().find(|known| known.kind == kind && known.key == key) {
                        Some(known) => known.to = value,
                        None => all.push(ChosenValue { kind, key, from: value.clone(), to: value }),
                    }
                }
            }
        }
        all
    }
    /// Returns the environment of the queue discipline of a port.
    pub fn qdisc(&self, link: LinkId) -> qdisc::Env {
        qdisc(self.site.net, self.site.max_rtt, self.site.packets, link, self.site.seed)
    }
    /// Returns the environment with which the queue discipline of a port is checked: with the
    /// longest packets of the system's policy.
    pub(crate) fn checked_qdisc(&self, link: LinkId) -> qdisc::Env {
        let env = self.qdisc(link);
        qdisc::Env { mtu_bytes: env.mtu_bytes.saturating_add(self.lengthens()), ..env }
    }
    fn lengthens(&self) -> u16 {
        let policy = self.given.kind("policy").and_then(|kind| proto::policy::ROOM.entry(kind));
        policy.map_or(0, |policy| policy.meta.lengthens)
    }
    /// Returns the environment of the buffer of a switch, with the longest packets of the system's
    /// policy.
    pub fn buffer(&self, switch: NodeId) -> buffer::Env<'_> {
        let first = self.site.net.out_base(switch) as usize;
        let links = &self.site.net.links()[first..first + self.site.net.out_links(switch).len()];
        buffer::Env { mtu_bytes: (self.site.packets.mtu as u16).saturating_add(self.lengthens()), links }
    }
    /// Returns the environment of the agent of a port.
    pub fn agent(&self, link: LinkId) -> agent::Env<'_> {
        let qdisc::Env { rate, host_port, .. } = self.qdisc(link);
        let node = self.site.net.link(link).from;
        let header_bytes = self.site.packets.header as u16;
        agent::Env { link, node, rate, nic_rate: self.fastest.0, header_bytes, host_port, given: &self.given }
    }
    /// Returns the environment of the router and of the controller.
    pub fn router(&self) -> router::Env<'_> {
        let Site { net, routes, max_rtt, seed, .. } = self.site;
        router::Env { net, routes, seed, max_rtt, given: &self.given }
    }
    /// Returns the environment of the receiver of a host.
    pub fn receiver(&self, host: HostId) -> receiver::Env<'_> {
        let mtu_bytes = (self.site.packets.mtu as u16).saturating_add(self.lengthens());
        receiver::Env { net: self.site.net, host, mtu_bytes }
    }
    /// Returns the first host with a NIC of the highest rate.
    pub(crate) fn fastest_host(&self) -> HostId {
        self.site.net.host(self.site.net.link(self.fastest.1).from).unwrap_or(HostId(0))
    }
    /// Returns the highest NIC rate.
    pub(crate) fn fastest_nic_rate(&self) -> Rate {
        self.fastest.0
    }
    /// Returns the environments that checks use instead of those of every host and port.
    pub(crate) fn checked(&self) -> Checked<'_> {
        Checked(self)
    }
    /// Returns a port for each combination of rate and ends (host or switch): the checks of ports
    /// depend only on these.
    pub(crate) fn kinds_of_ports(&self) -> Vec<LinkId> {
        self.ports_by(|env| Some((env.rate, env.host_port, env.to_host)))
    }
    /// Returns a switch port for each rate: no check of a queue discipline and no queue length depends
    /// on where a port leads.
    pub(crate) fn switch_port_of_each_rate(&self) -> Vec<LinkId> {
        self.ports_by(|env| (!env.host_port).then_some(env.rate))
    }
    /// Returns the first port for each key.
    fn ports_by<K: Ord>(&self, key: impl Fn(&qdisc::Env) -> Option<K>) -> Vec<LinkId> {
        let mut seen = std::collections::BTreeSet::new();
        let links = (0..self.site.net.links().len() as u32).map(LinkId);
        links.filter(|link| key(&self.qdisc(*link)).is_some_and(|key| seen.insert(key))).collect()
    }
}

/// A value chosen for `auto`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenValue {
    /// The entry: `homa`.
    pub kind: &'static str,
    /// The parameter: `resend_after`.
    pub key: &'static str,
    from: String,
    to: String,
}

impl ChosenValue {
    /// Returns the value as a scenario writes it, or the range over the hosts.
    pub fn value(&self) -> String {
        if self.from == self.to { self.from.clone() } else { format!("{} to {}", self.from, self.to) }
    }
}

/// The environments in which the part of each slot is checked: a method per slot.
pub(crate) struct Checked<'a>(&'a Envs<'a>);

impl<'a> Checked<'a> {
    /// Returns the environment at the fastest host.
    pub fn transport(&self) -> Vec<proto::Env<'a>> {
        vec![self.0.transport(self.0.fastest_host())]
    }
    /// Returns the environment at the fastest host.
    pub fn policy(&self) -> Vec<proto::Env<'a>> {
        self.transport()
    }
    /// Returns the environments at each kind of switch port.
    pub fn qdisc(&self) -> Vec<qdisc::Env> {
        self.0.switch_port_of_each_rate().into_iter().map(|port| self.0.checked_qdisc(port)).collect()
    }
    /// Returns the environments at each switch.
    pub fn buffer(&self) -> Vec<buffer::Env<'a>> {
        let net = self.0.site.net;
        let switches = (0..net.nodes().len() as u32).map(NodeId).filter(|node| net.host(*node).is_none());
        switches.map(|switch| self.0.buffer(switch)).collect()
    }
    pub fn router(&self) -> Vec<router::Env<'a>> {
        vec![self.0.router()]
    }
    pub fn controller(&self) -> Vec<router::Env<'a>> {
        self.router()
    }
    /// Returns the environment at the first host.
    pub fn receiver(&self) -> Vec<receiver::Env<'a>> {
        vec![self.0.receiver(HostId(0))]
    }
    /// Returns the environments at each kind of port.
    pub fn agent(&self) -> Vec<agent::Env<'a>> {
        self.0.kinds_of_ports().into_iter().map(|port| self.0.agent(port)).collect()
    }
}

/// Returns the first of the NICs with the highest rate.
fn fastest(net: &Net, nics: impl Iterator<Item = LinkId>) -> Option<LinkId> {
    nics.max_by_key(|nic| (net.link(*nic).rate, std::cmp::Reverse(*nic)))
}

/// Returns the environment of a port's queue discipline. It does not depend on the other parts of
/// the system.
pub(crate) fn qdisc(net: &Net, max_rtt: Dur, packets: Packets, link: LinkId, seed: u64) -> qdisc::Env {
    let port = net.link(link);
    let [host_port, to_host] = [port.from, port.to].map(|node| net.host(node).is_some());
    qdisc::Env { rate: port.rate, mtu_bytes: packets.mtu as u16, max_rtt, host_port, to_host, link, seed }
}

/// Returns the environment of a topology.
pub(crate) fn topology(files: &Files) -> topology::Env<'_> {
    topology::Env { files }
}

/// Returns the environment of the workload with this index in the scenario.
pub(crate) fn workload<'a>(net: &'a Net, packets: Packets, end: Option<Time>, files: &'a Files, index: usize) -> workload::Env<'a> {
    workload::Env { net, packets, end, files, index: index as u64, last_starts: &[], memory: Memory::UNLIMITED }
}

/// Returns the load and the size law of a workload.
pub(crate) fn offered(params: &workload::AnyParams, env: &workload::Env<'_>) -> Offered {
    params.build(env).offered(env)
}

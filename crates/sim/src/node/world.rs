//! The world behind the engine's events: hosts and ports bound together, packets carried from one to the next.

use crate::node::arrivals::Receiving;
use crate::node::drops::Drops;
use crate::node::host::Host;
use crate::node::lossy::Lossy;
use crate::node::share::PartShare;
use crate::node::waiting::WaitingFlows;
use crate::probe::Probe;
use base::{FlowId, LinkId, NodeId, Slab, Time};
use engine::Links;
use fabric::agent::{Agent, PortCx};
use fabric::buffer::AnyBuffer;
use fabric::port::Port;
use fabric::refused::Refused;
use fabric::routes::Routes;
use fabric::routing::{PathChange, Routing};
use proto::host::FlowTable;
use proto::packet::Ext;
use proto::policy_host::PolicyHost;
use proto::{Flow, Kind, Packet, Transport};
use std::sync::Arc;

/// What links carry.
pub type Carried = Packet;

/// Packets and bytes that hosts sent and received, counted apart from the links so that the audit compares two counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrafficCounts {
    /// Handed to NICs.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Received by hosts.
    pub received: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Dropped at ports.
    pub dropped: u64,
    /// Their bytes.
    pub dropped_bytes: u64,
    /// Bytes cut off packets at ports.
    pub trimmed_bytes: u64,
    /// Lost on links, or for want of any path.
    pub lost: u64,
    /// Their bytes.
    pub lost_bytes: u64,
    /// Packets of the router's own among those lost.
    pub lost_own: u64,
}

impl TrafficCounts {
    /// Both together.
    pub fn plus(self, other: TrafficCounts) -> TrafficCounts {
        TrafficCounts {
            sent: self.sent + other.sent,
            sent_bytes: self.sent_bytes + other.sent_bytes,
            received: self.received + other.received,
            received_bytes: self.received_bytes + other.received_bytes,
            dropped: self.dropped + other.dropped,
            dropped_bytes: self.dropped_bytes + other.dropped_bytes,
            trimmed_bytes: self.trimmed_bytes + other.trimmed_bytes,
            lost: self.lost + other.lost,
            lost_bytes: self.lost_bytes + other.lost_bytes,
            lost_own: self.lost_own + other.lost_own,
        }
    }
}

/// Packets and bytes that a node made, took or lost by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeCounts {
    /// Packets that the switch made.
    pub made: u64,
    /// Their bytes.
    pub made_bytes: u64,
    /// Packets that ended at the switch.
    pub taken: u64,
    /// Their bytes.
    pub taken_bytes: u64,
    /// Packets that were at the switch and had no next hop.
    pub no_route: u64,
}

/// Everything that events act on.
pub struct World<P> {
    /// All flows, by id.
    pub flows: Vec<Flow>,
    /// Which way their packets go.
    pub routing: Routing,
    /// What happened to each flow.
    pub table: FlowTable,
    /// All hosts, by id.
    pub hosts: Vec<Host>,
    /// The policies of hosts, by host; empty where the system has none.
    pub policy_hosts: Vec<PolicyHost>,
    /// By host, what packets that have come wait for; empty where the system has none.
    pub receivers: Vec<Option<Receiving>>,
    /// By link; `None` where the engine's queue does.
    pub ports: Vec<Option<Box<Port>>>,
    /// By node: what the ports of a switch share; empty if they share nothing.
    pub buffers: Vec<AnyBuffer>,
    /// By link: the other direction of its cable, whose port hears of what comes in over this one; empty where none needs to.
    pub reverse: Vec<LinkId>,
    /// By link: what it loses at random; empty where no link loses packets.
    pub lossy: Vec<Lossy>,
    /// Packets are inspected when they arrive: links lose some at random, or ports hear of them.
    pub inspects: bool,
    /// Blocks for large headers.
    pub ext: Slab<Ext>,
    /// Counts.
    pub traffic: TrafficCounts,
    /// Packets that the queue of each port dropped, by link.
    pub drops: Vec<Drops>,
    /// What watches.
    pub probe: P,
    /// By link: the nodes at its ends know that it is down; empty where no link ever goes down.
    pub known_down: Vec<bool>,
    /// What nodes made, took or lost by themselves, by node.
    pub nodes: Vec<NodeCounts>,
    /// The switches that have timers, in the order of their nodes, which is that of their wakers. Hosts follow.
    pub switches: Vec<NodeId>,
    /// The waker of the first host.
    pub first_host: u32,
    /// Hosts have policies, receivers or several NICs, NICs may hold packets back, packets name paths or are the router's own, or a port has trimmed or returned a
    /// packet.
    pub special: bool,
    /// Neighbours may pause each other.
    pub pausing: bool,
    /// The link that has brought the packet in hand; kept where neighbours pause each other.
    pub ingress: Option<LinkId>,
    /// By node: when a packet may start next at a switch for which a neighbour pauses.
    pub next_start: Vec<Time>,
    /// The packet that such a port has just given.
    pub served: Packet,
    /// What the port has refused that takes in a packet just now.
    pub refused: Refused,
    /// The transport takes trimmed packets, and returned ones.
    pub takes: [bool; 2],
    /// What became of paths that were named, for the controller.
    pub path_changes: Vec<PathChange>,
    /// Flows that wait for others, if there are any.
    pub waiting: Option<WaitingFlows>,
    /// The flows of these that have started, in the order of their starts.
    pub started: Vec<FlowId>,
    /// The run is to be told, once, when no flow is open any more.
    pub last_finish: bool,
    /// Of a part among others.
    pub share: Option<PartShare>,
}

impl<P: Probe> World<P> {
    /// Whether a node is of this part.
    pub fn owns(&self, node: NodeId) -> bool {
        self.share.as_ref().is_none_or(|share| share.owns(node))
    }
    /// See [`PartShare::open_until`].
    pub fn open_until(&mut self, now: Time) -> Time {
        self.share.as_mut().map_or(Time::MAX, |share| share.open_until(&self.flows, &self.table, now))
    }

    /// The port of a link that is not first in, first out.
    #[inline(always)]
    pub fn port(ports: &mut [Option<Box<Port>>], link: LinkId) -> &mut Port {
        ports[link.index()].as_mut().expect("a port that is not first in, first out has a discipline")
    }

    #[cold]
    pub fn on_drop(&mut self, links: &mut impl Links<Carried>, link: LinkId, packet: &Packet) {
        self.probe.on_drop(link, links.now(), packet);
        self.drops[link.index()].count(packet);
        self.traffic.dropped += 1;
        self.traffic.dropped_bytes += u64::from(packet.wire_len);
        if packet.payload > 0 {
            self.table.on_drop(packet);
        }
        packet.free(&mut self.ext);
        // The NIC dropped the packet, so it does not count as sent.
        let flow = &self.flows[packet.flow.index()];
        for host in [flow.src, flow.dst] {
            if let Some(nic) = self.hosts[host.index()].nic_mut(link) {
                nic.drained_at = nic.drained_at.before(links.tx_time(link, u32::from(packet.wire_len)));
            }
        }
    }

    /// Tells the port at the end of `link` what comes in over its cable. Service first at ties, as for every reader of a port.
    pub fn hear(&mut self, links: &mut impl Links<Carried>, link: LinkId, packet: &Packet) {
        let now = links.now();
        links.catch_up(self, link, now);
        let port = Self::port(&mut self.ports, link);
        let agent = port.agent.as_mut().expect("where answers are heard every port has an agent");
        agent.on_return(packet, &mut PortCx { now, flows: &self.flows, ext: &mut self.ext, port: &port.state });
    }

    /// A packet is lost on a link, or after crossing `link` for want of any path.
    #[cold]
    pub fn lose(&mut self, link: LinkId, now: Time, packet: &Packet) {
        self.probe.on_drop(link, now, packet);
        self.traffic.lost += 1;
        self.traffic.lost_bytes += u64::from(packet.wire_len);
        // What a router sends belongs to no flow's counts.
        if self.routing.is_own(packet) || packet.kind == Kind::PAUSE {
            self.traffic.lost_own += 1;
        } else {
            self.table.on_lost(packet);
        }
        packet.free(&mut self.ext);
    }

    /// A packet at a switch, which `link` brought or whose first link it is, has no next hop.
    #[cold]
    pub fn lose_at(&mut self, at: NodeId, link: LinkId, now: Time, packet: &Packet) {
        self.nodes[at.index()].no_route += 1;
        self.lose(link, now, packet);
    }

    /// Has the packets of a flow, there or back, take the path with this index from now on; `None`: the router's.
    pub fn set_path(&mut self, flow: FlowId, back: bool, path: Option<u16>) {
        self.special = true;
        self.routing.set(&self.flows[flow.index()], back, path);
    }

    /// The routes have changed. The senders of flows hear what became of the paths that were named.
    #[cold]
    pub fn reroute(&mut self, links: &mut impl Links<Carried>, routes: &Arc<Routes>, is_done: impl Fn(FlowId) -> bool) {
        for change in self.routing.reroute(Arc::clone(routes), &self.flows, is_done) {
            let (host, _) = self.flows[change.flow.index()].ends(change.back);
            if !self.owns(self.routing.net.hosts()[host.index()]) {
                continue;
            }
            self.path_changes.push(change);
            self.with_transport(links.now(), host, |transport, cx| transport.on_path(change.flow, change.index, change.alive, cx));
            self.poll(links, host);
        }
    }
}

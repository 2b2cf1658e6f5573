//! The world on which the engine's events act: hosts, switches and ports, and the packets between them.

use crate::node::arrivals::Receiving;
use crate::node::closing::ClosingFlows;
use crate::node::drops::Drops;
use crate::node::held::HeldPackets;
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
use fabric::router::PortLoad;
use fabric::routes::Routes;
use fabric::routing::{PathChange, Routing};
use proto::host::FlowTable;
use proto::packet::Ext;
use proto::policy_host::PolicyHost;
use proto::{Flow, Kind, Packet, Transport};
use std::sync::Arc;

/// The type of packets on links.
pub type Carried = Packet;

/// Packets and bytes that hosts sent and received. They are counted separately from the links, so that the
/// audit can compare two counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrafficCounts {
    /// Packets handed to NICs.
    pub sent: u64,
    /// Bytes of the packets handed to NICs.
    pub sent_bytes: u64,
    /// Packets received by hosts.
    pub received: u64,
    /// Bytes of the packets received by hosts.
    pub received_bytes: u64,
    /// Packets dropped at ports.
    pub dropped: u64,
    /// Bytes of the packets dropped at ports.
    pub dropped_bytes: u64,
    /// Bytes that ports cut off packets.
    pub trimmed_bytes: u64,
    /// Packets lost on links, or because no path was left.
    pub lost: u64,
    /// Bytes of the lost packets.
    pub lost_bytes: u64,
    /// Lost packets that routers made, and lost PAUSE frames.
    pub lost_own: u64,
}

impl TrafficCounts {
    /// Returns the sum of two counts.
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

/// Packets and bytes that a node made, consumed or lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeCounts {
    /// Packets that the node made: those of the router at a switch, and PAUSE frames.
    pub made: u64,
    /// Bytes of the packets made.
    pub made_bytes: u64,
    /// Packets that ended at the node: those of the router at a switch, and PAUSE frames.
    pub taken: u64,
    /// Bytes of the packets that ended at the node.
    pub taken_bytes: u64,
    /// Packets at the switch that had no next hop.
    pub no_route: u64,
}

/// The state on which events act.
pub struct World<P> {
    /// All flows, by id.
    pub flows: Vec<Flow>,
    /// The paths of packets.
    pub routing: Routing,
    /// The records of all flows.
    pub table: FlowTable,
    /// All hosts, by id.
    pub hosts: Vec<Host>,
    /// The policies of hosts, by host; empty if the system has no policy.
    pub policy_hosts: Vec<PolicyHost>,
    /// The receivers of hosts, by host; empty if the system has no receiver.
    pub receivers: Vec<Option<Receiving>>,
    /// The ports, by link; `None` where the engine serves a first-in first-out queue.
    pub ports: Vec<Option<Box<Port>>>,
    /// The buffers that the ports of a switch share, by node; empty if the system has no buffer.
    pub buffers: Vec<AnyBuffer>,
    /// The packets that routers hold in switches, by node; empty if the router holds none.
    pub held: Vec<HeldPackets>,
    /// By link: the other direction of its cable. The agent of that port sees the packets that arrive over
    /// this link. Empty if no agent needs them.
    pub reverse: Vec<LinkId>,
    /// The random losses of links, by link; empty if no link loses packets.
    pub lossy: Vec<Lossy>,
    /// Whether packets are inspected when they arrive, since links lose some at random, agents see them, or
    /// neighbours pause each other.
    pub inspects: bool,
    /// Blocks for large headers.
    pub ext: Slab<Ext>,
    /// Counts of packets that hosts sent and received, and of lost packets.
    pub traffic: TrafficCounts,
    /// Packets that the queue of each port dropped, by link.
    pub drops: Vec<Drops>,
    /// The probe that watches the run.
    pub probe: P,
    /// By link: whether the nodes at its ends know that it is down; empty if no link ever goes down.
    pub known_down: Vec<bool>,
    /// Packets that nodes made, consumed or lost, by node.
    pub nodes: Vec<NodeCounts>,
    /// The switches that have timers, in the order of their nodes, which is the order of their wakers. The
    /// wakers of hosts follow.
    pub switches: Vec<NodeId>,
    /// The waker of the first host.
    pub first_host: u32,
    /// Whether hosts have policies, receivers or several NICs, NICs may hold packets back, packets name
    /// paths, routers make packets, or a port has trimmed or returned a packet.
    pub special: bool,
    /// Whether neighbours may pause each other.
    pub pausing: bool,
    /// The link over which the packet being handled arrived; set only if neighbours may pause each other.
    pub ingress: Option<LinkId>,
    /// By node: when a packet may start next at a switch that pauses a neighbour.
    pub next_start: Vec<Time>,
    /// The packet that a port which may be paused has just dequeued.
    pub served: Packet,
    /// The packets that a port refuses while it takes in a packet.
    pub refused: Refused,
    /// Whether the transport takes trimmed packets, and whether it takes returned packets.
    pub takes: [bool; 2],
    /// Paths set by hosts or the controller that died or came back, for the controller.
    pub path_changes: Vec<PathChange>,
    /// The loads of the ports among which the router decides: a buffer.
    pub loads: Vec<PortLoad>,
    /// Flows that wait for other flows, if there are any.
    pub waiting: Option<WaitingFlows>,
    /// The flows that waited for other flows and have started, in the order of their starts.
    pub started: Vec<FlowId>,
    /// The flows at whose last finish the run must stop, once, since the measurement window ends.
    pub closing: ClosingFlows,
    /// The share of this part in a run of several parts.
    pub share: Option<PartShare>,
    /// In a run in windows: the share of a part that is the whole run. It finds a flow that stays open.
    pub open: Option<PartShare>,
}

impl<P: Probe> World<P> {
    /// Returns whether this part owns a node.
    pub fn owns(&self, node: NodeId) -> bool {
        self.share.as_ref().is_none_or(|share| share.owns(node))
    }
    /// Returns [`PartShare::open_until`]; `Time::MAX` in a run of one part by the tree.
    pub fn open_until(&mut self, now: Time) -> Time {
        self.share.as_mut().or(self.open.as_mut()).map_or(Time::MAX, |share| share.open_until(&self.flows, &self.table, now))
    }

    /// Returns the port of a link whose queue is not served by the engine.
    #[inline(always)]
    pub fn port(ports: &mut [Option<Box<Port>>], link: LinkId) -> &mut Port {
        ports[link.index()].as_mut().expect("a port that the engine does not serve has a queue discipline")
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

    /// Shows a packet that arrives over the cable of `link` to the agent of the port at `link`. Services that
    /// are due at the same time come first, as for every reader of a port.
    pub fn on_return(&mut self, links: &mut impl Links<Carried>, link: LinkId, packet: &Packet) {
        let now = links.now();
        links.catch_up(self, link, now);
        let port = Self::port(&mut self.ports, link);
        let agent = port.agent.as_mut().expect("every port has an agent where agents see returning packets");
        agent.on_return(packet, &mut PortCx { now, flows: &self.flows, ext: &mut self.ext, port: &port.state });
    }

    /// Counts a packet that is lost on `link`, or after crossing `link` because no path is left.
    #[cold]
    pub fn lose(&mut self, link: LinkId, now: Time, packet: &Packet) {
        self.probe.on_drop(link, now, packet);
        self.traffic.lost += 1;
        self.traffic.lost_bytes += u64::from(packet.wire_len);
        // Packets of routers do not count in the records of flows.
        if self.routing.is_own(packet) || packet.kind == Kind::PAUSE {
            self.traffic.lost_own += 1;
        } else {
            self.table.on_lost(packet);
        }
        packet.free(&mut self.ext);
    }

    /// Counts a packet that has no next hop at a switch. It arrived over `link`, or was made at the switch and
    /// would leave by `link`.
    #[cold]
    pub fn lose_at(&mut self, at: NodeId, link: LinkId, now: Time, packet: &Packet) {
        self.nodes[at.index()].no_route += 1;
        self.lose(link, now, packet);
    }

    /// Sets the path of a flow's packets in one direction from now on, by index; `None` for the router's path.
    pub fn set_path(&mut self, flow: FlowId, back: bool, path: Option<u16>) {
        self.special = true;
        self.routing.set(&self.flows[flow.index()], back, path);
    }

    /// Sets new routes. The senders of flows are notified of paths that they named and that died or came
    /// back.
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

//! The world behind the engine's events: hosts and ports bound together, packets carried from one to the next.

use crate::failures::Failures;
use crate::host::Host;
use crate::probe::Probe;
use crate::sample::Sampler;
use base::{HostId, LinkId, NodeId, Slab, Time};
use engine::{Driver, Far, Links, Sent};
use fabric::agent::{self, Agent};
use fabric::net::Net;
use fabric::port::Port;
use fabric::qdisc::Qdisc;
use fabric::router::{AnyRouter, Router, Tables, View};
use fabric::routes::{Routes, five_tuple};
use proto::packet::{ASK, Ext, ROUTE_HOPS};
use proto::transport::{Cx, FlowTable, Transport};
use proto::{Flow, Packet};
use std::sync::Arc;

/// What links carry.
pub type Carried = Packet;

/// The paths of a flow: all that its packets need to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paths {
    /// Who sends on the first of them; all others send on the second.
    pub src: HostId,
    /// Route bytes there and back, or [`ASK_ALWAYS`] where there is no path, one too long for them, or none that is planned.
    pub routes: [[u8; ROUTE_HOPS]; 2],
}

/// Route bytes by which every switch asks for the next hop.
pub const ASK_ALWAYS: [u8; ROUTE_HOPS] = [ASK; ROUTE_HOPS];

/// How switches find the next hop of a packet whose route bytes do not name it.
pub struct Routing {
    /// The network.
    pub net: Arc<Net>,
    /// Its live next hops.
    pub routes: Routes,
    /// Chooses among them.
    pub router: AnyRouter,
    /// It decides at switches for packets there, and for those back.
    pub asked: [bool; 2],
    /// What comes back takes the cables of the data.
    pub reversed: bool,
}

impl Routing {
    /// The paths of a flow, where they are planned.
    pub fn plan(&mut self, flow: &Flow) -> Paths {
        let Routing { net, routes, router, asked, reversed } = self;
        let mut plan = |forward, src, dst| routes.plan(net, router, &five_tuple(net, flow, forward), src, dst).ok();
        let there = if asked[0] { None } else { plan(true, flow.src, flow.dst) };
        let back = match &there {
            _ if asked[1] => None,
            Some(there) if *reversed => Some(there.reversed(net)),
            _ => plan(false, flow.dst, flow.src),
        };
        let routes = [there, back].map(|path| path.and_then(|path| path.route).unwrap_or(ASK_ALWAYS));
        Paths { src: flow.src, routes }
    }
}

/// Packets and bytes that hosts sent and received, counted apart from the links so that the audit compares two counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
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
    /// Lost to dead links, or for want of any path.
    pub lost: u64,
    /// Their bytes.
    pub lost_bytes: u64,
}

/// Everything that events act on.
pub struct World<P> {
    /// All flows, by id.
    pub flows: Vec<Flow>,
    /// Their paths.
    pub paths: Vec<Paths>,
    /// The way of packets that have none in their route bytes.
    pub routing: Routing,
    /// What happened to them.
    pub table: FlowTable,
    /// All hosts, by id.
    pub hosts: Vec<Host>,
    /// By link; `None` where the engine's queue does.
    pub ports: Vec<Option<Box<Port>>>,
    /// By link: the other direction of its cable, whose port hears of what comes in over this one; empty where none needs to.
    pub reverse: Vec<LinkId>,
    /// Blocks for large headers.
    pub ext: Slab<Ext>,
    /// Counts.
    pub traffic: Traffic,
    /// What watches.
    pub probe: P,
    /// Links that go down and come up.
    pub failures: Option<Failures>,
    /// Packets that reached a switch without any next hop, by node.
    pub no_route: Vec<u64>,
    /// Time series.
    pub sampler: Option<Sampler>,
    /// Packets that fell in the enqueue in hand.
    pub drops: Vec<Packet>,
}

/// `hop` of packets that have no route byte left.
const OFF_ROUTE: u8 = ROUTE_HOPS as u8;

impl<P: Probe> World<P> {
    /// Sends a packet out of a port.
    #[inline(always)]
    fn send(&mut self, links: &mut impl Links<Carried>, link: LinkId, packet: &mut Packet) {
        match links.send(self, link, packet) {
            Sent::Starts(start) => self.probe.on_start(link, start, packet),
            Sent::Waits => {
                if !self.drops.is_empty() {
                    self.drop_victims(links, link);
                }
            }
            Sent::Dropped => self.on_drop(links, link, packet),
            Sent::Down => self.on_dead_port(links, link, packet),
        }
    }

    /// The port of a link that is not first in, first out.
    #[inline(always)]
    fn port(ports: &mut [Option<Box<Port>>], link: LinkId) -> &mut Port {
        ports[link.index()].as_mut().expect("a port that is not first in, first out has a discipline")
    }

    #[cold]
    fn drop_victims(&mut self, links: &mut impl Links<Carried>, link: LinkId) {
        while let Some(victim) = self.drops.pop() {
            links.stats_mut(link).dropped(u32::from(victim.wire_len));
            self.on_drop(links, link, &victim);
        }
    }

    #[cold]
    fn on_drop(&mut self, links: &mut impl Links<Carried>, link: LinkId, packet: &Packet) {
        self.probe.on_drop(link, links.now(), packet);
        self.traffic.dropped += 1;
        self.traffic.dropped_bytes += u64::from(packet.wire_len);
        if packet.payload > 0 {
            self.table.on_drop(packet);
        }
        if packet.has(Packet::EXT) {
            self.ext.remove(packet.ext());
        }
        // A NIC with a limit: what fell is not sent.
        let flow = &self.flows[packet.flow.index()];
        for host in [flow.src, flow.dst] {
            let host = &mut self.hosts[host.index()];
            if host.nic == link {
                host.drained_at = host.drained_at.before(links.tx_time(link, u32::from(packet.wire_len)));
            }
        }
    }

    /// Tells the port at the end of `link` what comes in over its cable. Service first at ties, as for every reader of a port.
    fn hear(&mut self, links: &mut impl Links<Carried>, link: LinkId, packet: &Packet) {
        let now = links.now();
        links.catch_up(self, link, now);
        let port = self.ports[link.index()].as_mut().and_then(|port| port.agent.as_mut());
        let agent = port.expect("where answers are heard every port has an agent");
        agent.on_return(packet, &mut agent::Cx { now, flows: &self.flows, ext: &mut self.ext });
    }

    /// A packet is to leave through a port whose link is down. A switch that knows finds it another way, if there is one.
    #[cold]
    #[inline(never)]
    fn on_dead_port(&mut self, links: &mut impl Links<Carried>, link: LinkId, packet: &mut Packet) {
        let at = self.routing.net.link(link).from;
        let known = self.failures.as_ref().is_some_and(|failures| failures.is_known_down(link));
        if known && self.routing.net.host(at).is_none() {
            (packet.hop, packet.route) = (0, ASK_ALWAYS);
            if let Some(next) = self.next_hop(links, at, packet) {
                return self.send(links, next, packet);
            }
        }
        links.stats_mut(link).lost_unsent += 1;
        self.lose(link, links.now(), packet);
    }

    /// Sends on a packet that `link` brought to a switch and whose route bytes do not name its next link.
    #[cold]
    #[inline(never)]
    fn forward(&mut self, links: &mut impl Links<Carried>, link: LinkId, packet: &mut Packet) {
        let at = self.routing.net.link(link).to;
        match self.next_hop(links, at, packet) {
            Some(next) => self.send(links, next, packet),
            None => {
                self.no_route[at.index()] += 1;
                self.lose(link, links.now(), packet);
            }
        }
    }

    /// A packet is lost to a dead link, or after crossing `link` for want of any path.
    #[cold]
    pub fn lose(&mut self, link: LinkId, now: Time, packet: &Packet) {
        self.probe.on_drop(link, now, packet);
        self.traffic.lost += 1;
        self.traffic.lost_bytes += u64::from(packet.wire_len);
        self.table.on_lost(packet);
        if packet.has(Packet::EXT) {
            self.ext.remove(packet.ext());
        }
    }

    /// The next link of a packet at a switch whose route bytes do not name it: the router decides here, the path is too long for route
    /// bytes, or the planned one is dead. `None`: no link leads to its destination.
    fn next_hop(&mut self, links: &mut impl Links<Carried>, at: NodeId, packet: &mut Packet) -> Option<LinkId> {
        let (now, flow, back) = (links.now(), &self.flows[packet.flow.index()], packet.has(Packet::BACK));
        let dst = if back { flow.src } else { flow.dst };
        packet.hop = (packet.hop + 1).min(OFF_ROUTE);
        if !self.routing.asked[usize::from(back)] {
            let Routing { net, routes, router, .. } = &mut self.routing;
            return routes.choose(router, &five_tuple(net, flow, !back), at, dst);
        }
        let count = self.routing.routes.candidates(at, dst).len();
        // Service first: what was due up to now has left its port before anybody reads the port.
        for i in 0..count {
            links.catch_up(self, self.routing.routes.candidates(at, dst)[i], now);
        }
        let Routing { net, routes, router, .. } = &mut self.routing;
        let candidates = routes.candidates(at, dst);
        if candidates.is_empty() {
            return None;
        }
        let tables = Tables::new(&self.ports);
        let view = View { now, at, candidates, flows: &self.flows, ext: &self.ext, net, routes, tables };
        Some(candidates[router.decide(packet, &view) as usize])
    }

    /// The routes have changed: flows that are not done get the paths that they would be given now. As the hash of a switch whose set
    /// of next hops changed spreads its flows anew, some move whose path is alive (RFC 2992).
    #[cold]
    pub fn reroute(&mut self, routes: Routes) {
        self.routing.routes = routes;
        for (flow, paths) in self.flows.iter().zip(&mut self.paths) {
            if !self.table.is_done(flow.id) {
                *paths = self.routing.plan(flow);
            }
        }
    }

    /// When the next global action is due.
    pub fn next_action(&self) -> Time {
        let failures = self.failures.as_ref().map_or(Time::MAX, Failures::next);
        failures.min(self.sampler.as_ref().map_or(Time::MAX, Sampler::next))
    }

    /// Lets the NIC pull packets, and sets the host's next wake-up.
    #[inline]
    fn poll(&mut self, links: &mut impl Links<Carried>, id: HostId) {
        let now = links.now();
        let blocked = loop {
            let host = &mut self.hosts[id.index()];
            if !host.has_room(now) {
                break true;
            }
            let mut packet = match host.io.control.pop_front() {
                Some(packet) => packet,
                None => {
                    let (flows, ext, table) = (&self.flows, &mut self.ext, &mut self.table);
                    let mut cx = Cx { now, host: id, flows, ext, rng: &mut host.rng, io: &mut host.io, table };
                    let Some(packet) = host.transport.poll_transmit(&mut cx) else { break false };
                    packet
                }
            };
            let nic = host.nic;
            packet.sent_at = now;
            packet.arrival = now;
            let paths = &self.paths[packet.flow.index()];
            let back = paths.src != id;
            packet.flags |= u8::from(back) * Packet::BACK;
            (packet.hop, packet.route) = (0, paths.routes[usize::from(back)]);
            host.drained_at = host.drained_at.max(now) + links.tx_time(nic, u32::from(packet.wire_len));
            if packet.payload > 0 {
                self.table.on_transmit(&packet, now);
            }
            self.traffic.sent += 1;
            self.traffic.sent_bytes += u64::from(packet.wire_len);
            self.send(links, nic, &mut packet);
        };
        links.set_wake(id.0, self.hosts[id.index()].next_wake(blocked));
        if self.table.all_done() {
            links.stop();
        }
    }

    /// Calls the transport of a host.
    #[inline]
    fn with_transport(&mut self, now: Time, id: HostId, act: impl FnOnce(&mut proto::transport::AnyTransport, &mut Cx<'_>)) {
        let host = &mut self.hosts[id.index()];
        let mut cx = Cx {
            now,
            host: id,
            flows: &self.flows,
            ext: &mut self.ext,
            rng: &mut host.rng,
            io: &mut host.io,
            table: &mut self.table,
        };
        act(&mut host.transport, &mut cx);
    }
}

impl<P: Probe> engine::World for World<P> {
    type Packet = Carried;

    #[inline(always)]
    fn deliver(&mut self, links: &mut impl Links<Carried>, link: LinkId, far: Far, packet: &mut Packet) {
        if let Some(&back) = self.reverse.get(link.index()) {
            self.hear(links, back, packet);
        }
        match far {
            Far::Switch(out_base) => {
                let port = packet.route.get(packet.hop as usize).copied().unwrap_or(ASK);
                if port == ASK {
                    return self.forward(links, link, packet);
                }
                packet.hop += 1;
                self.send(links, LinkId(out_base + u32::from(port)), packet);
            }
            Far::Host(host) => {
                let id = HostId(host);
                self.traffic.received += 1;
                self.traffic.received_bytes += u64::from(packet.wire_len);
                if packet.has(Packet::CE) {
                    self.table.on_mark(packet);
                }
                self.with_transport(links.now(), id, |transport, cx| transport.on_packet(packet, cx));
                if packet.has(Packet::EXT) {
                    self.ext.remove(packet.ext());
                }
                self.poll(links, id);
            }
        }
    }

    fn pass(&mut self, link: LinkId, packet: &mut Packet, now: Time) {
        let port = Self::port(&mut self.ports, link);
        if let Some(agent) = &mut port.agent {
            let mut cx = agent::Cx { now, flows: &self.flows, ext: &mut self.ext };
            agent.on_arrive(packet, &mut cx);
            agent.on_enqueue(packet, &mut cx);
            agent.on_depart(packet, &mut cx);
        }
        if port.watched {
            self.routing.router.on_depart(link, packet, now);
        }
        port.qdisc.on_pass(packet, now);
    }

    #[inline(always)]
    fn enqueue(&mut self, link: LinkId, packet: &mut Packet, now: Time) -> (u32, u64) {
        let port = Self::port(&mut self.ports, link);
        // Two calls, not one between two questions for the agent: that cost 2 % of every hop.
        if let Some(agent) = &mut port.agent {
            let mut cx = agent::Cx { now, flows: &self.flows, ext: &mut self.ext };
            agent.on_arrive(packet, &mut cx);
            if port.qdisc.enqueue(packet, now, &mut self.drops) {
                agent.on_enqueue(packet, &mut cx);
            }
        } else {
            port.qdisc.enqueue(packet, now, &mut self.drops);
        }
        let backlog = port.qdisc.backlog();
        (backlog.packets, backlog.bytes)
    }

    #[inline(always)]
    fn dequeue(&mut self, link: LinkId, start: Time) -> &Packet {
        let port = Self::port(&mut self.ports, link);
        let packet = port.qdisc.dequeue(start).expect("a packet waits");
        if let Some(agent) = &mut port.agent {
            agent.on_depart(packet, &mut agent::Cx { now: start, flows: &self.flows, ext: &mut self.ext });
        }
        if port.watched {
            self.routing.router.on_depart(link, packet, start);
        }
        self.probe.on_start(link, start, packet);
        packet
    }

    fn wake(&mut self, links: &mut impl Links<Carried>, host: u32) {
        let (id, now) = (HostId(host), links.now());
        while let Some(flow) = self.hosts[id.index()].pop_start(now) {
            self.with_transport(now, id, |transport, cx| transport.on_flow(flow, cx));
        }
        while let Some(key) = self.hosts[id.index()].io.timers.pop_due(now) {
            self.with_transport(now, id, |transport, cx| transport.on_timer(key, cx));
        }
        self.poll(links, id);
    }

    /// Of all that is due now: failures, then samples.
    fn act(&mut self, links: &mut impl Driver<Carried>) {
        let now = links.now();
        if self.failures.as_ref().is_some_and(|failures| failures.next() <= now) {
            crate::failures::act(self, links);
        }
        if self.sampler.as_ref().is_some_and(|sampler| sampler.next() <= now) {
            crate::sample::take(self, links);
        }
        links.set_action(self.next_action());
    }
}

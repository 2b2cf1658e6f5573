//! The world behind the engine's events: hosts and ports bound together, packets carried from one to the next.

use crate::host::Host;
use crate::probe::Probe;
use base::{HostId, LinkId, Slab, Time};
use engine::{Far, Links, Sent, Wire};
use fabric::agent::{self, Agent};
use fabric::net::Net;
use fabric::port::Port;
use fabric::qdisc::Qdisc;
use fabric::router::{AnyRouter, Router, Tables, View};
use fabric::routes::Routes;
use proto::packet::{ASK, Ext, ROUTE_HOPS};
use proto::transport::{Cx, FlowTable, Transport};
use proto::{Flow, Packet};
use std::sync::Arc;

/// A packet as the engine sees it.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Carried(pub Packet);

impl Wire for Carried {
    #[inline(always)]
    fn wire_len(&self) -> u32 {
        u32::from(self.0.wire_len)
    }
    #[inline(always)]
    fn arrival(&self) -> Time {
        self.0.arrival
    }
    #[inline(always)]
    fn set_arrival(&mut self, at: Time) {
        self.0.arrival = at;
    }
}

/// Both paths of a flow: data there, acknowledgments back.
#[derive(Clone, Debug)]
pub struct Paths {
    /// Route bytes there and back; `None` where the path is too long for them.
    pub routes: [Option<[u8; ROUTE_HOPS]>; 2],
    /// The links of paths that are too long for route bytes, and nothing for others.
    pub links: [Vec<LinkId>; 2],
}

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
    pub ports: Vec<Option<Port>>,
    /// Blocks for large headers.
    pub ext: Slab<Ext>,
    /// Counts.
    pub traffic: Traffic,
    /// What watches.
    pub probe: P,
    /// Time series.
    pub sampler: Option<crate::sample::Sampler>,
    /// Packets that fell in the enqueue in hand.
    pub drops: Vec<Packet>,
}

/// `hop` of packets that have no route byte left.
const OFF_ROUTE: u8 = ROUTE_HOPS as u8;

impl<P: Probe> World<P> {
    /// Sends a packet out of a port.
    #[inline(always)]
    fn send(&mut self, links: &mut impl Links<Carried>, link: LinkId, packet: Packet) {
        if !links.is_fifo(link) {
            return self.send_through_qdisc(links, link, packet);
        }
        match links.send(link, Carried(packet)) {
            Sent::Starts(start) => {
                self.probe.on_start(link, start, start + links.tx_time(link, u32::from(packet.wire_len)), &packet);
            }
            Sent::Dropped => self.on_drop(links, link, packet),
        }
    }

    fn send_through_qdisc(&mut self, links: &mut impl Links<Carried>, link: LinkId, mut packet: Packet) {
        let now = links.now();
        if !links.is_up(link) {
            links.stats_mut(link).dropped(u32::from(packet.wire_len));
            return self.on_drop(links, link, packet);
        }
        // Service first at ties: every start up to now sees only what had arrived before.
        if links.waiting(link) > 0 && links.free_at(link) <= now {
            engine::World::serve(self, links, link, now);
        }
        let port = self.ports[link.index()].as_mut().expect("a port that is not first in, first out has a discipline");
        let mut cx = agent::Cx { now, flows: &self.flows, ext: &mut self.ext };
        if let Some(agent) = &mut port.agent {
            agent.on_arrive(&packet, &mut cx);
        }
        if links.waiting(link) == 0 && links.free_at(link) <= now {
            if let Some(agent) = &mut port.agent {
                agent.on_enqueue(&packet, &mut cx);
                agent.on_depart(&mut packet, &mut cx);
            }
            if port.watched {
                self.routing.router.on_depart(link, &mut packet, now);
            }
            self.probe.on_start(link, now, now + links.tx_time(link, u32::from(packet.wire_len)), &packet);
            return links.transmit(link, Carried(packet));
        }
        port.qdisc.enqueue(packet, now, &mut self.drops);
        if let Some(agent) = &mut port.agent
            && !self.drops.contains(&packet)
        {
            agent.on_enqueue(&packet, &mut cx);
        }
        let backlog = port.qdisc.backlog();
        links.set_waiting(link, backlog.packets);
        let stats = links.stats_mut(link);
        stats.max_queue_bytes = stats.max_queue_bytes.max(backlog.bytes);
        while let Some(victim) = self.drops.pop() {
            links.stats_mut(link).dropped(u32::from(victim.wire_len));
            self.on_drop(links, link, victim);
        }
    }

    #[cold]
    fn on_drop(&mut self, links: &mut impl Links<Carried>, link: LinkId, packet: Packet) {
        self.probe.on_drop(link, links.now(), &packet);
        self.traffic.dropped += 1;
        self.traffic.dropped_bytes += u64::from(packet.wire_len);
        if packet.payload > 0 {
            self.table.on_drop(&packet);
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

    /// Sends on a packet that `link` brought to a switch and whose route bytes do not name its next link.
    #[cold]
    #[inline(never)]
    fn forward(&mut self, links: &mut impl Links<Carried>, link: LinkId, mut packet: Packet) {
        let back = usize::from(packet.has(Packet::BACK));
        let next = if self.routing.asked[back] { self.decide(links, link, &mut packet) } else { self.long_path(link, &packet) };
        self.send(links, next, packet);
    }

    /// The next link of a packet on a planned path that is too long for route bytes.
    fn long_path(&self, link: LinkId, packet: &Packet) -> LinkId {
        let way = &self.paths[packet.flow.index()].links[usize::from(packet.has(Packet::BACK))];
        let crossed = way.iter().position(|&crossed| crossed == link).expect("a packet is on its flow's path");
        way[crossed + 1]
    }

    /// The next link of a packet that `link` brought to a switch where the router decides.
    fn decide(&mut self, links: &mut impl Links<Carried>, link: LinkId, packet: &mut Packet) -> LinkId {
        let (now, at, flow) = (links.now(), self.routing.net.link(link).to, &self.flows[packet.flow.index()]);
        let dst = if packet.has(Packet::BACK) { flow.src } else { flow.dst };
        let count = self.routing.routes.candidates(at, dst).len();
        // Service first: what was due up to now has left its port before anybody reads the port.
        for i in 0..count {
            let candidate = self.routing.routes.candidates(at, dst)[i];
            if links.waiting(candidate) > 0 && links.free_at(candidate) <= now {
                engine::World::serve(self, links, candidate, now);
            }
        }
        let Routing { net, routes, router, .. } = &mut self.routing;
        let candidates = routes.candidates(at, dst);
        let tables = Tables::new(&self.ports);
        let view = View { now, at, candidates, flows: &self.flows, ext: &self.ext, net, routes, tables };
        packet.hop = (packet.hop + 1).min(OFF_ROUTE);
        candidates[router.decide(packet, &view) as usize]
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
            let packet = host.io.control.pop_front().or_else(|| {
                let (flows, ext, table) = (&self.flows, &mut self.ext, &mut self.table);
                let mut cx = Cx { now, host: id, flows, ext, rng: &mut host.rng, io: &mut host.io, table };
                host.transport.poll_transmit(&mut cx)
            });
            let Some(mut packet) = packet else { break false };
            let nic = host.nic;
            packet.sent_at = now;
            packet.arrival = now;
            let flow = &self.flows[packet.flow.index()];
            let back = flow.src != id;
            packet.flags |= u8::from(back) * Packet::BACK;
            (packet.hop, packet.route) = match self.paths[packet.flow.index()].routes[usize::from(back)] {
                Some(route) => (0, route),
                None => (OFF_ROUTE, packet.route),
            };
            host.drained_at = host.drained_at.max(now) + links.tx_time(nic, u32::from(packet.wire_len));
            if packet.payload > 0 {
                self.table.on_transmit(&packet, now);
            }
            self.traffic.sent += 1;
            self.traffic.sent_bytes += u64::from(packet.wire_len);
            self.send(links, nic, packet);
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
    fn deliver(&mut self, links: &mut impl Links<Carried>, link: LinkId, Carried(mut packet): Carried) {
        match links.far(link) {
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
                self.with_transport(links.now(), id, |transport, cx| transport.on_packet(&packet, cx));
                if packet.has(Packet::EXT) {
                    self.ext.remove(packet.ext());
                }
                self.poll(links, id);
            }
        }
    }

    fn serve(&mut self, links: &mut impl Links<Carried>, link: LinkId, until: Time) {
        let port = self.ports[link.index()].as_mut().expect("a port in which packets wait has a discipline");
        let mut waiting = links.waiting(link);
        while waiting > 0 {
            let start = links.free_at(link);
            if start > until {
                break;
            }
            let mut packet = port.qdisc.dequeue(start).expect("a packet waits");
            links.stats_mut(link).waited(u32::from(packet.wire_len), start - packet.arrival);
            if let Some(agent) = &mut port.agent {
                agent.on_depart(&mut packet, &mut agent::Cx { now: start, flows: &self.flows, ext: &mut self.ext });
            }
            if port.watched {
                self.routing.router.on_depart(link, &mut packet, start);
            }
            self.probe.on_start(link, start, start + links.tx_time(link, u32::from(packet.wire_len)), &packet);
            links.follow(link, Carried(packet));
            waiting -= 1;
        }
        links.set_waiting(link, waiting);
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

    fn act(&mut self, links: &mut impl Links<Carried>) {
        crate::sample::take(self, links);
    }
}

//! The world behind the engine's events: hosts and ports bound together, packets carried from one to the next.

use crate::host::Host;
use crate::probe::Probe;
use base::{HostId, LinkId, Slab, Time};
use engine::{Far, Links, Sent};
use fabric::agent::{self, Agent, AnyAgent};
use fabric::qdisc::{AnyQdisc, Qdisc};
use proto::packet::{Ext, ROUTE_HOPS};
use proto::transport::{Cx, FlowTable, Transport};
use proto::{Flow, Packet};

/// What links carry.
pub type Carried = Packet;

/// An egress port that needs more than the engine's first-in first-out queue.
pub struct Port {
    /// Holds the packets that wait.
    pub qdisc: AnyQdisc,
    /// Watches and rewrites what passes.
    pub agent: Option<AnyAgent>,
}

/// Both paths of a flow: data there, acknowledgments back.
#[derive(Clone, Debug)]
pub struct Paths {
    /// Route bytes there and back; `None` where the path is too long for them.
    pub routes: [Option<[u8; ROUTE_HOPS]>; 2],
    /// The links of paths that are too long for route bytes, and nothing for others.
    pub links: [Vec<LinkId>; 2],
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

/// `hop` of packets on a path too long for route bytes starts here.
const LONG_PATH: u8 = 0x80;

impl<P: Probe> World<P> {
    /// Sends a packet out of a port.
    #[inline(always)]
    fn send(&mut self, links: &mut impl Links<Carried>, link: LinkId, packet: &mut Packet) {
        match links.send(link, packet) {
            Sent::Starts(start) => self.probe.on_start(link, start, packet),
            Sent::Refused => self.send_through_qdisc(links, link, packet),
            Sent::Dropped => self.on_drop(links, link, packet),
        }
    }

    /// Sends a packet out of a port with a discipline, in which packets wait or whose agent watches.
    #[inline(never)]
    fn send_through_qdisc(&mut self, links: &mut impl Links<Carried>, link: LinkId, packet: &mut Packet) {
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
            agent.on_arrive(packet, &mut cx);
        }
        if links.waiting(link) == 0 && links.free_at(link) <= now {
            if let Some(agent) = &mut port.agent {
                agent.on_enqueue(packet, &mut cx);
                agent.on_depart(packet, &mut cx);
            }
            self.probe.on_start(link, now, packet);
            return links.transmit(link, packet);
        }
        port.qdisc.enqueue(*packet, now, &mut self.drops);
        if let Some(agent) = &mut port.agent
            && !self.drops.contains(packet)
        {
            agent.on_enqueue(packet, &mut cx);
        }
        let backlog = port.qdisc.backlog();
        links.set_backlog(link, backlog.packets, backlog.bytes);
        if !self.drops.is_empty() {
            self.drop_victims(links, link);
        }
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

    /// The next link of a packet on a path too long for route bytes.
    #[cold]
    fn long_path(&self, packet: &Packet, link: LinkId) -> LinkId {
        let paths = &self.paths[packet.flow.index()];
        let crossed = usize::from(packet.hop - LONG_PATH);
        let way = paths.links.iter().find(|way| way.get(crossed) == Some(&link)).expect("a packet is on its flow's path");
        way[crossed + 1]
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
            let back = usize::from(flow.src != id);
            (packet.hop, packet.route) = match self.paths[packet.flow.index()].routes[back] {
                Some(route) => (0, route),
                None => (LONG_PATH, packet.route),
            };
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
    fn deliver(&mut self, links: &mut impl Links<Carried>, link: LinkId, packet: &mut Packet) {
        match links.far(link) {
            Far::Switch(out_base) => {
                let next = match packet.route.get(packet.hop as usize) {
                    Some(port) => LinkId(out_base + u32::from(*port)),
                    None => self.long_path(packet, link),
                };
                packet.hop += 1;
                self.send(links, next, packet);
            }
            Far::Host(host) => {
                let id = HostId(host);
                self.traffic.received += 1;
                self.traffic.received_bytes += u64::from(packet.wire_len);
                self.with_transport(links.now(), id, |transport, cx| transport.on_packet(packet, cx));
                if packet.has(Packet::EXT) {
                    self.ext.remove(packet.ext());
                }
                self.poll(links, id);
            }
        }
    }

    fn serve(&mut self, links: &mut impl Links<Carried>, link: LinkId, until: Time) {
        let port = self.ports[link.index()].as_mut().expect("a port in which packets wait has a discipline");
        let (mut waiting, mut start) = (links.waiting(link), links.free_at(link));
        while waiting > 0 && start <= until {
            let mut packet = port.qdisc.dequeue(start).expect("a packet waits");
            if let Some(agent) = &mut port.agent {
                agent.on_depart(&mut packet, &mut agent::Cx { now: start, flows: &self.flows, ext: &mut self.ext });
            }
            self.probe.on_start(link, start, &packet);
            start = links.follow(link, &packet);
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

//! Neighbours that pause each other: nodes send PAUSE frames, and paused ports hold packets back.
//!
//! A PAUSE frame that lets a neighbour go on is due exactly at the start of a transmission. Ports are served
//! lazily, so a switch that pauses a neighbour wakes at the next start at any of its ports.

use crate::node::world::{Carried, World};
use crate::probe::Probe;
use base::{FlowId, LinkId, NodeId, Time};
use engine::{Links, World as _};
use fabric::agent::{Agent, PortCx};
use fabric::buffer::{Buffer, ORDER_BYTES, Pause, Place};
use fabric::net::Net;
use fabric::port::Port;
use fabric::qdisc::Qdisc;
use fabric::refused::{Refusal, Refused};
use fabric::router::Router;
use proto::packet::ASK;
use proto::{Kind, Packet};

/// Returns where a packet counts in the buffer of the switch that it leaves by `link`.
///
/// The packet itself has the port at which it arrived.
pub fn place(net: &Net, port: &Port, link: LinkId, packet: &Packet) -> Place {
    let from = ingress(net, packet).filter(|_| port.pausing.is_some());
    Place { from, to: net.link(link).port.0 as u16, class: port.qdisc.class(packet) }
}

/// Returns the port at which a packet in a switch arrived. It is in the route bytes that are free there
/// ([`route_room`](fabric::paths::route_room)).
fn ingress(net: &Net, packet: &Packet) -> Option<u16> {
    let [.., high, low] = packet.route;
    let none = low == ASK && (high == ASK || !net.is_wide());
    (!none).then(|| if net.is_wide() { u16::from_be_bytes([high, low]) } else { low.into() })
}

/// Sets or removes the port at which a packet arrived at a switch.
fn set_ingress(net: &Net, packet: &mut Packet, port: Option<u16>) {
    let [.., high, low] = &mut packet.route;
    let bytes = port.map_or([ASK; 2], u16::to_be_bytes);
    *low = bytes[1];
    if net.is_wide() {
        *high = bytes[0];
    }
}

impl<P: Probe> World<P> {
    /// Stores in a packet the port at which it arrived.
    pub fn note_ingress(&self, packet: &mut Packet) {
        let net = &self.routing.net;
        set_ingress(net, packet, self.ingress.map(|link| net.link(net.link(link).reverse).port.0 as u16));
    }

    /// Sets the link over which a packet arrived at a switch that has stored the port in the packet.
    pub fn restore_ingress(&mut self, at: NodeId, packet: &Packet) {
        let net = &self.routing.net;
        let link = |port: u16| net.link(LinkId(net.out_base(at) + u32::from(port))).reverse;
        self.ingress = ingress(net, packet).map(link);
    }

    /// Notifies the buffer that a packet which it admitted leaves the port of a switch, or is lost there.
    pub fn leaves(&mut self, link: LinkId, packet: &Packet) {
        let net = &*self.routing.net;
        let at = net.link(link).from;
        if packet.kind == Kind::PAUSE || net.host(at).is_some() {
            return;
        }
        let port = self.ports[link.index()].as_deref().expect("a port of a switch that pauses neighbours");
        self.buffers[at.index()].on_leave(packet, place(net, port, link, packet));
    }

    /// Lets a packet pass a port that is idle, has no packets and is not paused. Returns whether it did: it then
    /// leaves the buffer that has just admitted it.
    #[inline(never)]
    pub fn passes_unpaused(&mut self, link: LinkId, packet: &mut Packet, now: Time) -> bool {
        // Orders to send are settled after a packet that waits.
        let orders = packet.kind == Kind::PAUSE || !self.refused.is_empty();
        let port = Self::port(&mut self.ports, link);
        if orders || port.qdisc.is_shaped() || port.backlog().packets > 0 || port.is_paused() {
            return false;
        }
        self.leaves(link, packet);
        if self.routing.net.host(self.routing.net.link(link).from).is_none() {
            set_ingress(&self.routing.net, packet, None);
        }
        self.passes(link, packet, now)
    }

    /// Enqueues a packet at a port that may be paused. Returns the packets and bytes that wait.
    #[inline(never)]
    pub fn enqueue_held(&mut self, link: LinkId, packet: &mut Packet, now: Time) -> (u32, u64) {
        let port = Self::port(&mut self.ports, link);
        if packet.kind == Kind::PAUSE {
            port.push_order(packet);
        } else {
            let mut cx = PortCx { now, flows: &self.flows, ext: &mut self.ext, port: &port.state };
            if let Some(agent) = &mut port.agent {
                agent.on_arrive(packet, &mut cx);
            }
            let mut refused = Refused::new();
            if port.qdisc.enqueue(packet, now, &mut refused)
                && let Some(agent) = &mut port.agent
            {
                agent.on_enqueue(packet, &mut cx);
            }
            port.state.queue = port.qdisc.backlog();
            for refusal in refused.all() {
                match *refusal {
                    Refusal::Dropped(packet) | Refusal::Returned(packet) => self.leaves(link, &packet),
                    Refusal::Trimmed { packet, to } => self.leaves(link, &Packet { wire_len: packet.wire_len - to, ..packet }),
                    Refusal::Order => {}
                }
            }
            self.refused.add_all(refused);
        }
        let backlog = Self::port(&mut self.ports, link).backlog();
        (backlog.packets, backlog.bytes)
    }

    /// Dequeues the next packet of a port that may be paused.
    #[inline(never)]
    pub fn dequeue_held(&mut self, link: LinkId, start: Time) -> &Packet {
        let port = Self::port(&mut self.ports, link);
        self.served = *port.dequeue(start).expect("a packet waits whose class is not paused");
        if self.served.kind == Kind::PAUSE {
            self.probe.on_start(link, start, &self.served);
            return &self.served;
        }
        let sent = self.served;
        self.leaves(link, &sent);
        if self.routing.net.host(self.routing.net.link(link).from).is_none() {
            set_ingress(&self.routing.net, &mut self.served, None);
        }
        let port = Self::port(&mut self.ports, link);
        if let Some(agent) = &mut port.agent {
            port.state.queue.remove(&self.served);
            let mut cx = PortCx { now: start, flows: &self.flows, ext: &mut self.ext, port: &port.state };
            agent.on_depart(&mut self.served, &mut cx);
            port.state.sent_bytes += u64::from(self.served.wire_len);
        }
        if port.watched {
            self.routing.router.on_depart(link, &mut self.served, start);
        }
        self.probe.on_start(link, start, &self.served);
        &self.served
    }

    /// Handles a PAUSE frame that arrived over `link`: the port at this end of the cable is paused for a class,
    /// or no longer.
    #[cold]
    pub fn on_order(&mut self, links: &mut impl Links<Carried>, link: LinkId, order: &Packet) {
        let net = &self.routing.net;
        let (at, port) = (net.link(link).to, net.link(link).reverse);
        let host = net.host(at);
        let (class, on, now) = (order.words[0] as u8, order.words[1] != 0, links.now());
        let node = &mut self.nodes[at.index()];
        node.taken += 1;
        node.taken_bytes += u64::from(order.wire_len);
        links.alter(self, port, |world| {
            let pausing = Self::port(&mut world.ports, port).pausing.as_mut();
            pausing.expect("every port can be paused where neighbours pause each other").set(class, on, now);
        });
        match host {
            Some(host) => self.poll(links, host),
            None => self.settle_pauses(links, at),
        }
    }

    /// Handles a link that has gone down: the PAUSE frames that its node has sent over it are void.
    pub fn on_dead_link(&mut self, links: &mut impl Links<Carried>, link: LinkId) {
        let at = self.routing.net.link(link).from;
        self.buffers[at.index()].on_link_down(self.routing.net.link(link).port.0 as u16);
        self.settle_pauses(links, at);
    }

    /// Sends the PAUSE frames of a node. A switch that pauses a neighbour then wakes at its next start of a
    /// transmission; a host checks again whenever it takes in a packet.
    #[cold]
    pub fn settle_pauses(&mut self, links: &mut impl Links<Carried>, at: NodeId) {
        let (first, now) = (self.routing.net.out_base(at), links.now());
        let at_switch = self.routing.net.host(at).is_none();
        if at_switch && !self.buffers[at.index()].paused().is_empty() {
            for port in self.routing.net.out_links(at) {
                links.catch_up(self, port, now);
            }
        }
        while let Some(Pause { port, class, on }) = self.buffers[at.index()].next_pause() {
            let mut order = Packet::new(FlowId(u32::MAX), Kind::PAUSE, ORDER_BYTES);
            (order.words, order.sent_at, order.arrival) = ([class.into(), on.into()], now, now);
            let node = &mut self.nodes[at.index()];
            node.made += 1;
            node.made_bytes += u64::from(ORDER_BYTES);
            self.send(links, LinkId(first + u32::from(port)), &mut order);
        }
        if !at_switch {
            return;
        }
        self.next_start[at.index()] = match !self.buffers[at.index()].paused().is_empty() {
            true => self.routing.net.out_links(at).map(|port| links.next_start(port)).min().unwrap_or(Time::MAX),
            false => Time::MAX,
        };
        self.set_switch_wake(links, at);
    }
}

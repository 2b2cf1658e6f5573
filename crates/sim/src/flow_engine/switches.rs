//! Switches of the flow engine: sample packets that find the path of a flow where the router is asked, and the packets that switches make.

use super::moving::{Moving, PathSample};
use super::world::{FlowEvent, FlowWorld};
use base::{FlowId, LinkId, NodeId, Time};
use fabric::router::{Made, Ports};
use fabric::routing::{self, Routing, switch::Site};
use proto::Packet;
use proto::packet::ASK;

impl FlowWorld {
    /// The run begins, for the router at each switch that has timers.
    pub fn start_switches(&mut self) {
        for at in self.switches.clone() {
            self.at_switch(at, Time::ZERO, |routing, site| routing.start(at, site));
        }
    }

    /// The live next hops have changed: tells the router at each switch that has timers.
    pub fn on_routes(&mut self, now: Time) {
        for at in self.switches.clone() {
            self.at_switch(at, now, |routing, site| routing.on_routes(at, site));
        }
    }

    /// Sends a sample packet of a flow, which stands for all its payload since the last one.
    pub fn send_sample(&mut self, id: FlowId, now: Time) {
        let delivered = self.delivered_by(id, now);
        let flow = &self.flows[id.index()];
        let (src, dst) = (self.routing.net.hosts()[flow.src.index()], flow.dst);
        let sampled = self.sampled.or_insert_with(id, || 0);
        let sample = PathSample { links: Vec::new(), payload_bytes: delivered - std::mem::replace(sampled, delivered) };
        let payload = u64::from(self.mtu - self.header).min(flow.size_bytes) as u16;
        // It is as fast as a bare header, and so ahead of the last byte of any flow.
        let mut packet = Packet { sent_at: now, wire_len: self.header, ..Packet::data(id, delivered, payload, self.header) };
        self.routing.set_out(&mut packet, flow.src);
        let nics = self.routing.routes.candidates(src, dst);
        let (several, first) = (nics.len() > 1, nics.first().copied());
        let mut moving = Moving::new(packet, Some(sample));
        let nic = if several { self.asked_hop(&mut moving, src, None, now) } else { first };
        self.send(nic, moving, now);
    }

    /// Sends a packet over a link. It is lost if there is none, or if the link is down and nobody knows.
    fn send(&mut self, link: Option<LinkId>, mut moving: Moving, now: Time) {
        let mut link = link;
        if let Some(dead) = link.filter(|link| self.packets.is_down(*link)) {
            let at = self.routing.net.link(dead).from;
            let known = self.known_down.get(dead.index()).copied().unwrap_or(false);
            link = None;
            // A switch that knows finds another way, if there is one.
            if known && self.routing.net.host(at).is_none() {
                routing::ask_always(&mut moving.packet);
                link = self.next_hop(&mut moving, at, None, now);
            }
        }
        let Some(link) = link.filter(|link| !self.packets.is_down(*link)) else { return self.lose(&moving, now) };
        let Moving { packet, mut sample, .. } = moving;
        if let Some(sample) = &mut sample {
            sample.links.push((link, 1.0));
        }
        let hop = self.routing.net.link(link);
        let at = now + hop.rate.tx_time(packet.wire_len.into()) + hop.delay;
        let (place, number) = self.packets.put(packet, link, sample);
        self.plan(at, FlowEvent::Arrive(link, number, place));
    }

    /// A packet is lost. What a flow sends is lost with its sample: the flow stands still until a sample arrives.
    fn lose(&mut self, moving: &Moving, now: Time) {
        self.packets.lose(moving);
        if moving.sample.is_some() {
            self.fluid.set_paths(moving.packet.flow, &[], now);
        }
    }

    /// A packet arrives at the end of its link.
    pub fn on_arrive(&mut self, place: u32, now: Time) {
        let (mut moving, arrives) = self.packets.take(place);
        let (link, to) = (moving.link, self.routing.net.link(moving.link).to);
        if !arrives {
            return self.lose(&moving, now);
        }
        if self.routing.net.host(to).is_some() {
            return self.receive(&moving, now);
        }
        moving.packet.arrival = now;
        let packet = &mut moving.packet;
        let port = packet.route[0];
        if port != ASK {
            packet.step();
            let next = LinkId(self.routing.net.out_base(to) + u32::from(port));
            return self.send(Some(next), moving, now);
        }
        let own = self.routing.is_own(packet);
        if own && self.at_switch(to, now, |routing, site| routing.take(&moving.packet, to, Some(link), site)) {
            let node = &mut self.packets.nodes[to.index()];
            node.taken += 1;
            node.taken_bytes += u64::from(moving.packet.wire_len);
            return moving.packet.free(&mut self.packets.ext);
        }
        let next = self.next_hop(&mut moving, to, Some(link), now);
        self.send(next, moving, now);
    }

    /// A packet has come to a host: a sample has found the path of its flow.
    fn receive(&mut self, moving: &Moving, now: Time) {
        let id = moving.packet.flow;
        let Some(sample) = &moving.sample else {
            self.packets.received += 1;
            return moving.packet.free(&mut self.packets.ext);
        };
        if !self.fluid.is_moving(id) {
            return;
        }
        self.lag.or_insert_with(id, || now - self.flows[id.index()].start);
        self.fluid.set_paths(id, &[(&sample.links, 1.0)], now);
    }

    /// The next link of a packet at a switch.
    fn next_hop(&mut self, moving: &mut Moving, at: NodeId, from: Option<LinkId>, now: Time) -> Option<LinkId> {
        moving.packet.step();
        self.asked_hop(moving, at, from, now)
    }

    /// The same at a host with several NICs, which has no route byte.
    fn asked_hop(&mut self, moving: &mut Moving, at: NodeId, from: Option<LinkId>, now: Time) -> Option<LinkId> {
        let packet = &mut moving.packet;
        if !self.routing.asks_for(packet) {
            return self.routing.planned_hop(&self.flows[packet.flow.index()], packet, at);
        }
        let payload_bytes = moving.sample.as_ref().map_or(0, |sample| sample.payload_bytes);
        self.at_switch(at, now, |routing, site| routing.next(packet, at, from, Site { payload_bytes, ..site }))
    }

    /// Calls the router at a switch. What the switch then has made is sent, and flows that it has moved are sampled at once.
    fn at_switch<R>(&mut self, at: NodeId, now: Time, act: impl FnOnce(&mut Routing, Site<'_>) -> R) -> R {
        let (flows, packets) = (&self.flows, &mut self.packets);
        let (ext, ports, moved) = (&mut packets.ext, Ports::new(&[]), Some(&mut packets.moved));
        let result = act(&mut self.routing, Site { now, flows, ext, ports, payload_bytes: 0, moved });
        if self.routing.has_made() {
            for Made { at, mut packet, via } in self.routing.take_made() {
                (packet.sent_at, packet.arrival) = (now, now);
                let node = &mut self.packets.nodes[at.index()];
                node.made += 1;
                node.made_bytes += u64::from(packet.wire_len);
                let mut moving = Moving::new(packet, None);
                let next = via.or_else(|| self.next_hop(&mut moving, at, None, now));
                self.send(next, moving, now);
            }
        }
        self.set_wake(at);
        for flow in std::mem::take(&mut self.packets.moved) {
            if self.fluid.is_moving(flow) {
                self.send_sample(flow, now);
            }
        }
        result
    }

    /// Sets when a switch wakes next.
    fn set_wake(&mut self, at: NodeId) {
        let next = self.routing.next_wake(at);
        if next < self.packets.wakes[at.index()] {
            self.packets.wakes[at.index()] = next;
            self.plan(next, FlowEvent::Switch(at));
        }
    }

    /// The timers of a switch may be due.
    pub fn wake_switch(&mut self, at: NodeId, now: Time) {
        if self.packets.wakes[at.index()] != now {
            return; // It has woken earlier.
        }
        while self.at_switch(at, now, |routing, site| routing.on_timer(at, site)) {}
        self.packets.wakes[at.index()] = Time::MAX;
        self.set_wake(at);
    }

    /// The switch that a link leaves finds out that the link is down or up.
    pub fn on_link(&mut self, link: LinkId, up: bool, now: Time) {
        let at = self.routing.net.link(link).from;
        if self.routing.net.host(at).is_none() {
            self.at_switch(at, now, |routing, site| routing.on_link(link, up, site));
        }
    }
}

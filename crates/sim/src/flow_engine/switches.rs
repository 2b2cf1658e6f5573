//! Switches of the flow engine: the packets that switches make, and sample packets, which find the path of a
//! flow if the router decides at switches.

use super::moving::{Moving, PathSample};
use super::world::{FlowEvent, FlowWorld};
use base::{FlowId, LinkId, NodeId, Time};
use fabric::router::{Made, Ports};
use fabric::routing::{self, Routing, switch::Site};
use proto::Packet;
use proto::packet::ASK;

impl FlowWorld {
    /// Starts the router at each switch that has timers.
    pub fn start_switches(&mut self) {
        for at in self.switches.clone() {
            self.at_switch(at, Time::ZERO, |routing, site| routing.start(at, site));
        }
    }

    /// Notifies the router, at each switch that has timers, that live next hops have changed.
    pub fn on_routes(&mut self, now: Time) {
        for at in self.switches.clone() {
            self.at_switch(at, now, |routing, site| routing.on_routes(at, site));
        }
    }

    /// Sends a sample packet of a flow. For the router it represents all payload of the flow since the last
    /// sample.
    pub fn send_sample(&mut self, id: FlowId, now: Time) {
        let delivered = self.delivered_by(id, now);
        let flow = &self.flows[id.index()];
        let (src, dst) = (self.routing.net.hosts()[flow.src.index()], flow.dst);
        let sampled = self.sampled.or_insert_with(id, || 0);
        let sample = PathSample { links: Vec::new(), payload_bytes: delivered - std::mem::replace(sampled, delivered) };
        let payload = u64::from(self.mtu - self.header).min(flow.size_bytes) as u16;
        // The packet is as fast as a bare header, so it arrives before the last byte of any flow.
        let mut packet = Packet { sent_at: now, wire_len: self.header, ..Packet::data(id, delivered, payload, self.header) };
        self.routing.set_out(&mut packet, flow.src);
        let nics = self.routing.routes.candidates(src, dst);
        let (several, first) = (nics.len() > 1, nics.first().copied());
        let mut moving = Moving::new(packet, Some(sample));
        let nic = if several { self.asked_hop(&mut moving, src, None, now) } else { first };
        self.send(nic, moving, now);
    }

    /// Sends a packet over a link. The packet is lost if there is no link, or if the link is down and the switch
    /// does not know it or has no other way.
    fn send(&mut self, link: Option<LinkId>, mut moving: Moving, now: Time) {
        let mut link = link;
        if let Some(dead) = link.filter(|link| self.packets.is_down(*link)) {
            let at = self.routing.net.link(dead).from;
            let known = self.known_down.get(dead.index()).copied().unwrap_or(false);
            link = None;
            // A switch that knows of the dead link takes another way, if there is one.
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

    /// Handles a lost packet. If it is a sample, its flow has no rate until a sample arrives.
    fn lose(&mut self, moving: &Moving, now: Time) {
        self.packets.lose(moving);
        if moving.sample.is_some() {
            self.fluid.set_paths(moving.packet.flow, &[], now);
        }
    }

    /// Handles a packet that arrives at the end of its link.
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

    /// Handles a packet that has reached a host. A sample has then found the path of its flow.
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

    /// Returns the next link of a packet at a switch.
    fn next_hop(&mut self, moving: &mut Moving, at: NodeId, from: Option<LinkId>, now: Time) -> Option<LinkId> {
        moving.packet.step();
        self.asked_hop(moving, at, from, now)
    }

    /// Returns the next link of a packet without using up a route byte: a host with several NICs has none.
    fn asked_hop(&mut self, moving: &mut Moving, at: NodeId, from: Option<LinkId>, now: Time) -> Option<LinkId> {
        let packet = &mut moving.packet;
        if !self.routing.asks_for(packet) {
            return self.routing.planned_hop(&self.flows[packet.flow.index()], packet, at);
        }
        let payload_bytes = moving.sample.as_ref().map_or(0, |sample| sample.payload_bytes);
        self.at_switch(at, now, |routing, site| routing.next(packet, at, from, Site { payload_bytes, ..site }))
    }

    /// Calls the router at a switch. Then sends the packets that the switch has made, and samples the flows that
    /// it has moved.
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

    /// Handles the timers of a switch that are due, if there are any.
    pub fn wake_switch(&mut self, at: NodeId, now: Time) {
        if self.packets.wakes[at.index()] != now {
            return; // The switch has woken earlier instead.
        }
        while self.at_switch(at, now, |routing, site| routing.on_timer(at, site)) {}
        self.packets.wakes[at.index()] = Time::MAX;
        self.set_wake(at);
    }

    /// Notifies the router, at the switch that a link leaves, that the link is down or up.
    pub fn on_link(&mut self, link: LinkId, up: bool, now: Time) {
        let at = self.routing.net.link(link).from;
        if self.routing.net.host(at).is_none() {
            self.at_switch(at, now, |routing, site| routing.on_link(link, up, site));
        }
    }
}

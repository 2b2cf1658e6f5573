//! Forwarding: packets leave ports and pass switches, and switches make and consume packets.

use crate::node::world::{Carried, World};
use crate::probe::Probe;
use base::{LinkId, NodeId, Time};
use engine::{Links, Sent};
use fabric::refused::Refusal;
use fabric::router::{Made, PortLoad, Ports};
use fabric::routing::{self, switch::Site};
use proto::{Kind, Packet};

impl<P: Probe> World<P> {
    /// Inspects a packet at the end of a link: the link may lose it, and otherwise the agent of the other
    /// direction may see it. Returns whether the packet arrives. PAUSE frames are handled here.
    #[inline(never)]
    pub fn arrives(&mut self, links: &mut impl Links<Carried>, link: LinkId, packet: &mut Packet) -> bool {
        if packet.kind == Kind::PAUSE {
            self.on_order(links, link, packet);
            return false;
        }
        if let Some(lossy) = self.lossy.get_mut(link.index())
            && lossy.loses()
        {
            self.lose(link, links.now(), packet);
            return false;
        }
        self.ingress = self.pausing.then_some(link);
        if let Some(&back) = self.reverse.get(link.index()) {
            self.on_return(links, back, packet);
        }
        true
    }

    /// Sends a packet out of a port.
    #[inline(always)]
    pub fn send(&mut self, links: &mut impl Links<Carried>, link: LinkId, packet: &mut Packet) {
        match links.send(self, link, packet) {
            Sent::Starts(start) => self.probe.on_start(link, start, packet),
            Sent::Waits => {
                if !self.refused.is_empty() {
                    self.on_refused(links, link);
                }
            }
            Sent::Dropped => self.on_drop(links, link, packet),
            Sent::Down => self.on_dead_port(links, link, packet),
        }
    }

    /// Handles the packets that a port has dropped, trimmed or returned.
    #[cold]
    #[inline(never)]
    pub fn on_refused(&mut self, links: &mut impl Links<Carried>, link: LinkId) {
        // A packet that is sent back may itself be refused at another port.
        let mut refused = std::mem::take(&mut self.refused);
        let at_switch = self.routing.net.host(self.routing.net.link(link).from).is_none();
        let mut settle = false;
        while let Some(refusal) = refused.pop() {
            self.special |= matches!(refusal, Refusal::Trimmed { .. } | Refusal::Returned(_));
            match refusal {
                Refusal::Order => settle = true,
                Refusal::Trimmed { packet, to } => self.on_trim(links, link, [packet.wire_len, to], packet.arrival),
                Refusal::Returned(packet) if at_switch => self.send_back(links, link, packet),
                Refusal::Dropped(packet) | Refusal::Returned(packet) => {
                    // A packet that was dropped to make room for others has waited until now.
                    let (bytes, waited) = (u32::from(packet.wire_len), links.now() - packet.arrival);
                    links.stats_mut(link).waited(bytes, waited);
                    links.stats_mut(link).dropped(bytes);
                    self.on_drop(links, link, &packet);
                }
            }
        }
        self.refused = refused;
        if settle {
            let at = self.routing.net.link(link).from;
            self.settle_pauses(links, at);
        }
    }

    /// Counts a packet that a port has trimmed. The packet arrived at `since` and stays in the queue; `bytes`
    /// are its lengths before and after.
    fn on_trim(&mut self, links: &mut impl Links<Carried>, link: LinkId, bytes: [u16; 2], since: Time) {
        let cut = bytes[0] - bytes[1];
        self.traffic.trimmed_bytes += u64::from(cut);
        // Until now the whole packet has waited.
        let waited = links.now() - since;
        links.stats_mut(link).waited(u32::from(cut), waited);
        if let Some(host) = self.routing.net.host(self.routing.net.link(link).from) {
            let [before, after] = bytes.map(|bytes| links.tx_time(link, u32::from(bytes)));
            if let Some(nic) = self.hosts[host.index()].nic_mut(link) {
                nic.drained_at = nic.drained_at.before(before - after);
            }
        }
    }

    /// Sends a packet that a port of a switch has returned back to its sender.
    fn send_back(&mut self, links: &mut impl Links<Carried>, link: LinkId, mut packet: Packet) {
        packet.turn_back();
        packet.arrival = links.now();
        routing::ask_always(&mut packet);
        let at = self.routing.net.link(link).from;
        let ingress = self.ingress.take();
        self.send_on(links, link, at, None, &mut packet);
        self.ingress = ingress;
    }

    /// Handles a packet at a port whose link is down. A switch that knows of it sends the packet another way,
    /// if there is one; otherwise the packet is lost.
    #[cold]
    #[inline(never)]
    fn on_dead_port(&mut self, links: &mut impl Links<Carried>, link: LinkId, packet: &mut Packet) {
        let at = self.routing.net.link(link).from;
        let known = self.known_down.get(link.index()).copied().unwrap_or(false) && packet.kind != Kind::PAUSE;
        if known && self.routing.net.host(at).is_none() {
            routing::ask_always(packet);
            // If the next hop is the same port again, the packet is lost.
            if let Some(next) = self.next_hop(links, at, None, packet).filter(|next| *next != link) {
                return self.send(links, next, packet);
            }
        }
        links.stats_mut(link).lost_unsent += 1;
        self.lose(link, links.now(), packet);
    }

    /// Forwards a packet that arrived at a switch over `link` and whose route bytes do not name its next link.
    #[cold]
    #[inline(never)]
    pub fn forward(&mut self, links: &mut impl Links<Carried>, link: LinkId, packet: &mut Packet) {
        let at = self.routing.net.link(link).to;
        let own = self.routing.is_own(packet);
        if own && self.at_switch(links, at, |routing, site| routing.take(packet, at, Some(link), site)) {
            let node = &mut self.nodes[at.index()];
            node.taken += 1;
            node.taken_bytes += u64::from(packet.wire_len);
            return packet.free(&mut self.ext);
        }
        if self.routing.holds && !own && self.hold(links, link, packet) {
            return;
        }
        self.send_on(links, link, at, Some(link), packet);
    }

    /// Sends a packet from a switch, where it arrived over `from`, to its next hop. If it has none, its loss
    /// counts for `link`.
    pub fn send_on(
        &mut self,
        links: &mut impl Links<Carried>,
        link: LinkId,
        at: NodeId,
        from: Option<LinkId>,
        packet: &mut Packet,
    ) {
        match self.next_hop(links, at, from, packet) {
            Some(next) => self.send(links, next, packet),
            None => self.lose_at(at, link, links.now(), packet),
        }
    }

    /// Returns the next link of a packet whose route bytes do not name it: the router decides at this switch,
    /// the path is too long for route bytes, or the planned next hop is dead. `None` if no link leads to the
    /// packet's destination.
    #[inline(always)]
    fn next_hop(
        &mut self,
        links: &mut impl Links<Carried>,
        at: NodeId,
        from: Option<LinkId>,
        packet: &mut Packet,
    ) -> Option<LinkId> {
        packet.step();
        if self.routing.spreads_evenly {
            return self.routing.chosen_hop(&self.flows[packet.flow.index()], packet, at);
        }
        self.asked_hop(links, at, from, packet)
    }

    /// Returns the next link as [`World::next_hop`] does, for routers that see the state of the switch.
    #[inline(never)]
    pub fn asked_hop(
        &mut self,
        links: &mut impl Links<Carried>,
        at: NodeId,
        from: Option<LinkId>,
        packet: &mut Packet,
    ) -> Option<LinkId> {
        let now = links.now();
        if !self.routing.asks_for(packet) {
            return self.routing.planned_hop(&self.flows[packet.flow.index()], packet, at);
        }
        if self.routing.reads {
            let (_, dst) = self.flows[packet.flow.index()].ends(packet.has(Packet::BACK));
            let count = self.routing.routes.candidates(at, dst).len();
            self.loads.clear();
            // Packets whose service was due leave their ports before the router reads the ports.
            for i in 0..count {
                let port = self.routing.routes.candidates(at, dst)[i];
                links.catch_up(self, port, now);
                if self.routing.measures {
                    self.loads.push(self.load(links, port));
                }
            }
        }
        let wake = self.routing.next_wake(at);
        let (flows, ext, ports) = (&self.flows, &mut self.ext, Ports::new(&self.ports).with_loads(&self.loads));
        let site = Site { now, flows, ext, ports, payload_bytes: packet.payload.into(), moved: None };
        let next = self.routing.next(packet, at, from, site);
        if self.routing.has_made() {
            self.send_made(links);
        }
        if self.routing.next_wake(at) != wake {
            self.set_switch_wake(links, at);
        }
        next
    }

    /// Returns the load of a port that has caught up.
    fn load(&self, links: &mut impl Links<Carried>, port: LinkId) -> PortLoad {
        let now = links.now();
        PortLoad { waiting_bytes: self.waiting_bytes(links, port, now), busy: links.free_at(port) > now }
    }

    /// Returns the bytes that wait at a port that has caught up to `until`.
    pub fn waiting_bytes(&self, links: &mut impl Links<Carried>, port: LinkId, until: Time) -> u64 {
        match &self.ports[port.index()] {
            Some(port) => port.backlog().bytes,
            None => links.fifo_backlog(port, until).1,
        }
    }

    /// Serves the ports of a switch up to now if the router reads them, so that packets whose service was due
    /// have left.
    fn catch_up_switch(&mut self, links: &mut impl Links<Carried>, at: NodeId) {
        if !self.routing.reads {
            return;
        }
        for link in self.routing.net.out_links(at) {
            if self.ports[link.index()].is_some() {
                links.catch_up(self, link, links.now());
            }
        }
    }

    /// Calls the router at a switch, and sends the packets that the switch then makes.
    pub fn at_switch<R>(
        &mut self,
        links: &mut impl Links<Carried>,
        at: NodeId,
        act: impl FnOnce(&mut routing::Routing, Site<'_>) -> R,
    ) -> R {
        self.catch_up_switch(links, at);
        let (flows, ext, ports) = (&self.flows, &mut self.ext, Ports::new(&self.ports));
        let site = Site { now: links.now(), flows, ext, ports, payload_bytes: 0, moved: None };
        let result = act(&mut self.routing, site);
        self.send_made(links);
        if self.routing.holds {
            self.send_released(links, at);
        }
        if self.pausing {
            self.settle_pauses(links, at);
        } else {
            self.set_switch_wake(links, at);
        }
        result
    }

    /// Sends the packets that switches have made, in the order in which they were made.
    fn send_made(&mut self, links: &mut impl Links<Carried>) {
        let (now, ingress) = (links.now(), self.ingress.take());
        while self.routing.has_made() {
            for Made { at, mut packet, via } in self.routing.take_made() {
                (packet.sent_at, packet.arrival) = (now, now);
                let node = &mut self.nodes[at.index()];
                node.made += 1;
                node.made_bytes += u64::from(packet.wire_len);
                match via {
                    Some(port) => self.send(links, port, &mut packet),
                    None => self.send_on(links, LinkId(self.routing.net.out_base(at)), at, None, &mut packet),
                }
            }
        }
        self.ingress = ingress;
    }

    /// Sets when a switch wakes next.
    pub fn set_switch_wake(&mut self, links: &mut impl Links<Carried>, at: NodeId) {
        if let Ok(waker) = self.switches.binary_search(&at) {
            let start = self.next_start.get(at.index()).copied().unwrap_or(Time::MAX);
            links.set_wake(waker as u32, self.routing.next_wake(at).min(start).max(links.now()));
        }
    }

    fn own_switches(&self) -> Vec<NodeId> {
        self.switches.iter().copied().filter(|at| self.routing.has_timers() && self.owns(*at)).collect()
    }

    /// Starts the router at each switch that has timers.
    pub fn start_switches(&mut self, links: &mut impl Links<Carried>) {
        for at in self.own_switches() {
            self.at_switch(links, at, |routing, site| routing.start(at, site));
        }
    }

    /// Notifies the router, at each switch that has timers, that live next hops have changed.
    pub fn on_routes(&mut self, links: &mut impl Links<Carried>) {
        for at in self.own_switches() {
            self.at_switch(links, at, |routing, site| routing.on_routes(at, site));
        }
    }

    /// Handles the timers of a switch that are due.
    pub fn wake_switch(&mut self, links: &mut impl Links<Carried>, waker: u32) {
        let at = self.switches[waker as usize];
        while self.at_switch(links, at, |routing, site| routing.on_timer(at, site)) {}
    }

    /// Notifies the router, at the switch that a link leaves, that the link is down or up.
    pub fn on_link(&mut self, links: &mut impl Links<Carried>, link: LinkId, up: bool) {
        let at = self.routing.net.link(link).from;
        if self.routing.net.host(at).is_none() {
            self.at_switch(links, at, |routing, site| routing.on_link(link, up, site));
        }
    }
}

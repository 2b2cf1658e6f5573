//! Hosts: how NICs pull packets from transports through policies, and when hosts wake.

use crate::node::arrivals::Receiving;
use crate::node::host::HostNic;
use crate::node::share::{FlowChange, FlowChangeKind, PartShare};
use crate::node::waiting::Start;
use crate::node::world::{Carried, World};
use crate::probe::Probe;
use base::{FlowId, HostId, LinkId, Time};
use engine::Links;
use proto::host::{HostEvent, Path};
use proto::policy_host::PolicyHost;
use proto::transport::AnyTransport;
use proto::{Cx, Kind, Packet, Transport};

impl<P: Probe> World<P> {
    /// Lets the NIC pull packets, and sets the host's next wake-up.
    #[inline]
    pub fn poll(&mut self, links: &mut impl Links<Carried>, id: HostId) {
        if self.special { self.poll_special(links, id) } else { self.poll_plain(links, id) }
    }

    /// Polls a host of a world that is not [special](World::special).
    #[inline(never)]
    pub fn poll_plain(&mut self, links: &mut impl Links<Carried>, id: HostId) {
        let blocked = self.pull::<false>(links, id);
        if self.table.take_change() {
            self.on_host_events(links, id);
        }
        let host = &self.hosts[id.index()];
        let room = if blocked { host.nic.room_at() } else { Time::MAX };
        links.set_wake(self.first_host + id.0, host.next_wake(room));
    }

    /// Polls a host of a [special](World::special) world.
    #[cold]
    #[inline(never)]
    fn poll_special(&mut self, links: &mut impl Links<Carried>, id: HostId) {
        let host = &self.hosts[id.index()];
        if !host.others.is_empty() {
            return self.poll_several(links, id);
        }
        let (shaped, nic) = (host.nic.shaped, host.nic.link);
        if shaped {
            self.look_at_nic(links, id, nic);
        }
        let blocked = self.pull::<true>(links, id);
        if self.table.take_change() {
            self.on_host_events(links, id);
        }
        let room = match (blocked, shaped) {
            (true, true) => self.room_of_nic(links, id, nic),
            (true, false) => self.hosts[id.index()].nic.room_at(),
            (false, _) => Time::MAX,
        };
        self.set_wake(links, id, room);
    }

    /// Sets when a host wakes next, if a NIC has room again at `room`.
    #[inline(always)]
    pub fn set_wake(&self, links: &mut impl Links<Carried>, id: HostId, room: Time) {
        let policy = self.policy_hosts.get(id.index()).map_or(Time::MAX, PolicyHost::next_wake);
        let received = self.receivers.get(id.index()).and_then(Option::as_ref).map_or(Time::MAX, Receiving::next);
        links.set_wake(self.first_host + id.0, self.hosts[id.index()].next_wake(room).min(policy).min(received));
    }

    /// Lets the NIC take packets while it has room. Returns whether it has none left. `SPECIAL` compiles the
    /// work of special worlds in or out.
    #[inline(always)]
    fn pull<const SPECIAL: bool>(&mut self, links: &mut impl Links<Carried>, id: HostId) -> bool {
        let now = links.now();
        loop {
            let host = &mut self.hosts[id.index()];
            if !host.nic.has_room(now) {
                return true;
            }
            let mut packet = match host.io.control.pop_front() {
                Some(packet) => packet,
                None => {
                    let (transport, mut cx) = host.at(now, id, &self.flows, &mut self.ext, &mut self.table);
                    if SPECIAL && let Some(policy_host) = self.policy_hosts.get_mut(id.index()) {
                        policy_host.before_poll(transport, &mut cx);
                    }
                    let Some(packet) = transport.poll_transmit(&mut cx) else { return false };
                    packet
                }
            };
            if SPECIAL && let Some(policy_host) = self.policy_hosts.get_mut(id.index()) {
                let (transport, mut cx) = host.at(now, id, &self.flows, &mut self.ext, &mut self.table);
                policy_host.on_send(&mut packet, transport, &mut cx);
                policy_host.settle(transport, &mut cx);
            }
            let nic = host.nic.link;
            packet.sent_at = now;
            packet.arrival = now;
            self.routing.set_out(&mut packet, id);
            if SPECIAL {
                self.routing.set_out_again(&mut packet, &self.flows);
            }
            host.nic.drained_at = host.nic.drained_at.max(now) + links.tx_time(nic, u32::from(packet.wire_len));
            if packet.payload > 0 {
                self.table.on_transmit(&packet, now);
            }
            self.traffic.sent += 1;
            self.traffic.sent_bytes += u64::from(packet.wire_len);
            self.send(links, nic, &mut packet);
        }
    }

    /// Called when a flow has finished, closed or been given up, or when the host asks for other paths.
    #[cold]
    pub fn on_host_events(&mut self, links: &mut impl Links<Carried>, id: HostId) {
        while let Some(HostEvent::Path(flow, path)) = self.hosts[id.index()].io.events.pop_front() {
            let back = self.flows[flow.index()].src != id;
            match path {
                Path::Index(index) => self.set_path(flow, back, Some(index)),
                Path::Other => {
                    self.special = true;
                    self.routing.request(&self.flows[flow.index()], back);
                }
            }
        }
        while let Some((flow, at)) = self.table.pop_ended() {
            self.on_end(links, flow, at);
        }
        while let Some(flow) = self.table.pop_closed() {
            self.routing.forget_ports(flow);
        }
        if self.share.is_some() {
            // A part does not know all flows, so the caller decides whether the run ends.
            return links.stop();
        }
        let window_ends = self.closing.have_ended(|flow| self.table.is_open(flow));
        if window_ends {
            self.open.iter_mut().for_each(PartShare::on_window_end);
        }
        if window_ends || self.table.all_done() {
            links.stop();
        }
    }

    /// Starts the flows that waited for a flow that has just ended.
    fn on_end(&mut self, links: &mut impl Links<Carried>, ended: FlowId, at: HostId) {
        let now = links.now();
        if self.waiting.is_some() {
            self.share_change(FlowChange { flow: ended, now, kind: FlowChangeKind::Ended(at) });
            self.learn_end(links, ended, at, now);
        }
    }

    fn learn_end(&mut self, links: &mut impl Links<Carried>, ended: FlowId, at: HostId, then: Time) {
        let flow = &self.flows[ended.index()];
        let starts = self.waiting.as_mut().map_or(Vec::new(), |waiting| waiting.on_end(flow, at, then));
        self.set_starts(links, starts);
    }

    /// Queues a flow change for the other parts.
    fn share_change(&mut self, change: FlowChange) {
        if let Some(share) = &mut self.share {
            share.changes.push(change);
        }
    }

    /// Handles a flow change from another part.
    pub fn on_change(&mut self, links: &mut impl Links<Carried>, change: &FlowChange) {
        match change.kind {
            FlowChangeKind::Ended(at) => self.learn_end(links, change.flow, at, change.now),
            FlowChangeKind::Started => self.learn_start(links, change.flow, change.now),
        }
    }

    /// Sets the starts of flows that waited for other flows.
    fn set_starts(&mut self, links: &mut impl Links<Carried>, starts: Vec<Start>) {
        for Start { flow, at, instead } in starts {
            let src = self.flows[flow.index()].src;
            if !self.owns(self.routing.net.hosts()[src.index()]) {
                continue;
            }
            let host = &mut self.hosts[src.index()];
            if let Some(before) = instead {
                host.remove_start(before, flow);
            }
            host.add_start(at, flow);
            links.wake_by(self.first_host + src.0, at);
        }
    }

    /// Handles the start of a flow in a run with waiting flows. If the flow itself waited, its start and its
    /// deadline are known only now.
    #[cold]
    pub fn start_waiting(&mut self, links: &mut impl Links<Carried>, id: FlowId) {
        self.share_change(FlowChange { flow: id, now: links.now(), kind: FlowChangeKind::Started });
        self.learn_start(links, id, links.now());
    }

    fn learn_start(&mut self, links: &mut impl Links<Carried>, id: FlowId, then: Time) {
        let flow = &mut self.flows[id.index()];
        if let Some(wait) = &flow.wait {
            (flow.start, flow.deadline) = (then, wait.allowed.map(|allowed| then.after(allowed)));
            self.started.push(id);
        }
        let starts = self.waiting.as_mut().map_or(Vec::new(), |waiting| waiting.on_start(flow, then));
        self.set_starts(links, starts);
    }

    /// Returns when a NIC without room has room again, if its queue discipline may hold packets back.
    pub fn room_of_nic(&mut self, links: &mut impl Links<Carried>, id: HostId, nic: LinkId) -> Time {
        let paced = self.nic(id, nic).drained_at;
        let room = self.look_at_nic(links, id, nic);
        if room >= links.now() {
            return room;
        }
        // Some packets do not wait, because the port dropped them or a dead link lost them. The host still
        // sends at line rate.
        let nic = self.nic(id, nic);
        nic.drained_at = paced;
        nic.room_at()
    }

    /// Returns a NIC of a host.
    #[inline(always)]
    fn nic(&mut self, id: HostId, link: LinkId) -> &mut HostNic {
        self.hosts[id.index()].nic_mut(link).expect("a NIC of this host")
    }

    /// Computes the backlog of a NIC whose queue discipline may hold packets back. Returns a time before which
    /// the backlog is above the low-water mark: exactly the time at which it reaches the mark if no other
    /// transmission must start before, and otherwise at least the next start of a transmission.
    #[inline(always)]
    pub fn look_at_nic(&mut self, links: &mut impl Links<Carried>, id: HostId, nic: LinkId) -> Time {
        if links.waiting(nic) > 0 {
            return self.look_into_nic(links, id, nic);
        }
        // The link of an idle port may be dead. The host goes on sending into it at line rate.
        let free_at = links.free_at(nic);
        let nic = self.nic(id, nic);
        if free_at > links.now() {
            nic.drained_at = free_at;
        }
        nic.room_at()
    }

    /// Does the work of [`World::look_at_nic`] for a NIC at which packets wait.
    #[inline(never)]
    fn look_into_nic(&mut self, links: &mut impl Links<Carried>, id: HostId, nic: LinkId) -> Time {
        let now = links.now();
        links.catch_up(self, nic, now);
        let bytes = if links.waiting(nic) == 0 { 0 } else { Self::port(&mut self.ports, nic).backlog().bytes };
        let waiting = links.tx_time(nic, u32::try_from(bytes).unwrap_or(u32::MAX));
        let (free_at, next_start) = (links.free_at(nic), links.next_start(nic));
        let nic = self.nic(id, nic);
        if bytes > 0 || free_at > now {
            nic.drained_at = free_at.max(now) + waiting;
        }
        if waiting > nic.low_water { nic.room_at().max(next_start) } else { nic.room_at() }
    }

    /// Passes a packet to a host's policy and transport. A port may have trimmed or returned the packet.
    #[cold]
    #[inline(never)]
    pub fn take_in(&mut self, links: &mut impl Links<Carried>, id: HostId, packet: &mut Packet) {
        let now = links.now();
        if packet.kind.is_refused() && !self.takes[usize::from(packet.kind == Kind::RETURNED)] {
            // For this transport a trimmed or returned packet is a loss.
        } else if self.policy_hosts.is_empty() {
            self.with_transport(now, id, |transport, cx| transport.on_packet(packet, cx));
        } else {
            self.with_policy(now, id, |policy_host, transport, cx| {
                if policy_host.on_receive(packet, transport, cx) {
                    transport.on_packet(packet, cx);
                }
            });
        }
        packet.free(&mut self.ext);
        self.poll(links, id);
    }

    /// Calls the policy of a host with its transport, and lets each handle the events of the other.
    #[inline(never)]
    pub fn with_policy<R>(
        &mut self,
        now: Time,
        id: HostId,
        act: impl FnOnce(&mut PolicyHost, &mut AnyTransport, &mut Cx<'_>) -> R,
    ) -> R {
        let policy_host = &mut self.policy_hosts[id.index()];
        let (transport, mut cx) = self.hosts[id.index()].at(now, id, &self.flows, &mut self.ext, &mut self.table);
        let result = act(policy_host, transport, &mut cx);
        policy_host.settle(transport, &mut cx);
        result
    }

    /// Calls the transport of a host.
    #[inline]
    pub fn with_transport(&mut self, now: Time, id: HostId, act: impl FnOnce(&mut AnyTransport, &mut Cx<'_>)) {
        let (transport, mut cx) = self.hosts[id.index()].at(now, id, &self.flows, &mut self.ext, &mut self.table);
        act(transport, &mut cx);
    }
}

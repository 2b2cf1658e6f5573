//! Hosts with several NICs: the NIC that a packet leaves through, and when the transport is polled.
//!
//! A host has one transport and one policy, whatever the number of its NICs. The transport is polled while
//! any NIC has room. The path of a packet determines its NIC: the packet may wait at one NIC while another
//! NIC is idle, as at hosts whose NICs have separate queues.

use crate::node::world::{Carried, World};
use crate::probe::Probe;
use base::{HostId, LinkId, Time};
use engine::Links;
use proto::{Packet, Transport};

impl<P: Probe> World<P> {
    /// Lets the NICs of a host with several NICs pull packets, and sets the host's next wake-up.
    #[cold]
    #[inline(never)]
    pub fn poll_several(&mut self, links: &mut impl Links<Carried>, id: HostId) {
        let nics = self.routing.net.nics(id);
        for nic in nics.clone() {
            if self.hosts[id.index()].nic_mut(nic).is_some_and(|nic| nic.shaped) {
                self.look_at_nic(links, id, nic);
            }
        }
        let blocked = self.pull_several(links, id);
        if self.table.take_change() {
            self.on_host_events(links, id);
        }
        let room = if blocked { nics.map(|nic| self.room_at(links, id, nic)).min() } else { None };
        self.set_wake(links, id, room.unwrap_or(Time::MAX));
    }

    /// Returns when a NIC without room has room again.
    fn room_at(&mut self, links: &mut impl Links<Carried>, id: HostId, nic: LinkId) -> Time {
        let &mut nic = self.hosts[id.index()].nic_mut(nic).expect("a NIC of this host");
        if nic.shaped { self.room_of_nic(links, id, nic.link) } else { nic.room_at() }
    }

    /// Lets the NICs take packets while one of them has room. Returns whether none has room left.
    fn pull_several(&mut self, links: &mut impl Links<Carried>, id: HostId) -> bool {
        let now = links.now();
        loop {
            let host = &mut self.hosts[id.index()];
            if !host.nics().any(|nic| nic.has_room(now)) {
                return true;
            }
            let (transport, mut cx) = host.at(now, id, &self.flows, &mut self.ext, &mut self.table);
            let mut packet = cx.io.control.pop_front();
            if packet.is_none() {
                if let Some(policy) = self.policy_hosts.get_mut(id.index()) {
                    policy.before_poll(transport, &mut cx);
                }
                packet = transport.poll_transmit(&mut cx);
            }
            let Some(mut packet) = packet else { return false };
            if let Some(policy) = self.policy_hosts.get_mut(id.index()) {
                policy.on_send(&mut packet, transport, &mut cx);
                policy.settle(transport, &mut cx);
            }
            packet.sent_at = now;
            packet.arrival = now;
            let link = self.nic_of(links, id, &mut packet);
            let nic = self.hosts[id.index()].nic_mut(link).expect("a path begins with a NIC of the host that sends");
            nic.drained_at = nic.drained_at.max(now) + links.tx_time(link, u32::from(packet.wire_len));
            if packet.payload > 0 {
                self.table.on_transmit(&packet, now);
            }
            self.traffic.sent += 1;
            self.traffic.sent_bytes += u64::from(packet.wire_len);
            self.send(links, link, &mut packet);
        }
    }

    /// Gives a packet its path and returns the NIC that it leaves through: the first link of a planned or named
    /// path, and otherwise the link that the router chooses at the host. A packet without any path leaves
    /// through the first NIC.
    fn nic_of(&mut self, links: &mut impl Links<Carried>, id: HostId, packet: &mut Packet) -> LinkId {
        self.routing.set_out(packet, id);
        let named = self.routing.set_out_again(packet, &self.flows);
        let (flow, back) = (&self.flows[packet.flow.index()], packet.has(Packet::BACK));
        let first = self.routing.first_link(flow, back);
        if !self.routing.asks_for(packet) {
            return named.unwrap_or(first);
        }
        let at = self.routing.net.hosts()[id.index()];
        let next = match self.routing.routes.candidates(at, flow.ends(back).1) {
            [] => None,
            [only] => Some(*only),
            _ if self.routing.spreads_evenly => self.routing.chosen_hop(flow, packet, at),
            _ => self.asked_hop(links, at, None, packet),
        };
        next.unwrap_or(first)
    }
}

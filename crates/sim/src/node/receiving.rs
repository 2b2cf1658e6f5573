//! Hosts that take packets in one after the other: the step between the last link of a packet and the host's
//! policy and transport.

use crate::node::arrivals::Waits;
use crate::node::world::{Carried, World};
use crate::probe::Probe;
use base::{HostId, LinkId};
use engine::Links;
use fabric::buffer::{Buffer, Place};
use fabric::qdisc::Qdisc;
use fabric::queue::Backlog;
use fabric::receiver::Receiver;
use proto::Packet;

impl<P: Probe> World<P> {
    /// Handles a packet that has reached its host. The transport sees the packet now, or later if the host
    /// has a receiver.
    #[cold]
    #[inline(never)]
    pub fn receive(&mut self, links: &mut impl Links<Carried>, id: HostId, packet: &mut Packet) {
        if self.receivers.get(id.index()).is_none_or(Option::is_none) {
            return self.take_in(links, id, packet);
        }
        let (now, node) = (links.now(), self.routing.net.hosts()[id.index()]);
        let place = self.ingress.map(|link| self.place_at_host(link, packet));
        let mut admits = |place| self.buffers[node.index()].admits(packet, place, Backlog::default(), Backlog::default());
        let fits = place.is_none_or(&mut admits);
        let receiving = self.receivers[id.index()].as_mut().expect("this host has a receiver");
        let at = if fits { receiving.machine.admit(packet, now) } else { None };
        if let Some(at) = at {
            receiving.waiting.push_back(Waits { at, place, packet: *packet });
            links.wake_by(self.first_host + id.0, at);
        } else {
            if let Some(place) = place.filter(|_| fits) {
                self.buffers[node.index()].on_leave(packet, place);
            }
            packet.free(&mut self.ext);
        }
        if place.is_some() {
            self.settle_pauses(links, node);
        }
    }

    /// Takes in the packets of a host that are due.
    #[cold]
    #[inline(never)]
    pub fn take_due(&mut self, links: &mut impl Links<Carried>, id: HostId) {
        let (now, node) = (links.now(), self.routing.net.hosts()[id.index()]);
        while let Some(Some(receiving)) = self.receivers.get_mut(id.index())
            && receiving.next() <= now
            && let Some(Waits { place, mut packet, .. }) = receiving.waiting.pop_front()
        {
            receiving.machine.on_taken(&packet, now);
            if let Some(place) = place {
                self.buffers[node.index()].on_leave(&packet, place);
                self.settle_pauses(links, node);
            }
            self.take_in(links, id, &mut packet);
        }
    }

    /// Returns where a packet counts in the buffer of a host at which it arrived over `link`. Its class is that
    /// of the port that sent it.
    fn place_at_host(&self, link: LinkId, packet: &Packet) -> Place {
        let net = &self.routing.net;
        let port = net.link(net.link(link).reverse).port.0 as u16;
        let class = self.ports[link.index()].as_ref().map_or(0, |port| port.qdisc.class(packet));
        Place { from: Some(port), to: port, class }
    }
}

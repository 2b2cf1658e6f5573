//! Packets that a router holds in the switch of their destination until it releases their flow.
//!
//! A held packet counts in the buffer that the ports of the switch share as if it waited at the port to its host.

use crate::node::world::{Carried, World};
use crate::probe::Probe;
use base::{LinkId, NodeId};
use engine::{Links, World as _};
use fabric::routing;
use proto::Packet;

impl<P: Probe> World<P> {
    /// Offers a packet that arrived over `link` to the router. Returns whether the router holds the packet in the
    /// switch, or wanted to hold it but the buffer had no room, so that the packet is dropped.
    #[inline(never)]
    pub fn hold(&mut self, links: &mut impl Links<Carried>, link: LinkId, packet: &mut Packet) -> bool {
        let at = self.routing.net.link(link).to;
        if !self.at_switch(links, at, |routing, site| routing.hold(packet, at, Some(link), site)) {
            return false;
        }
        if !self.buffers.is_empty() {
            for port in self.routing.net.out_links(at) {
                links.catch_up(self, port, links.now());
            }
            let port = self.port_to_host(packet);
            let admitted = self.admits(port, packet, links.now());
            if !self.refused.is_empty() {
                self.on_refused(links, port);
            }
            if !admitted {
                return true;
            }
        }
        self.held[at.index()].push(packet);
        true
    }

    /// Sends the held packets of the flows that the router releases at a switch.
    #[inline(never)]
    pub fn send_released(&mut self, links: &mut impl Links<Carried>, at: NodeId) {
        let ingress = self.ingress.take();
        while let Some(flow) = self.routing.next_release() {
            let Some(mut queue) = self.held[at.index()].take(flow) else { continue };
            while let Some(packet) = queue.pop() {
                let port = self.port_to_host(packet);
                if self.pausing {
                    self.leaves(port, packet);
                    self.restore_ingress(at, packet);
                }
                routing::ask_always(packet);
                packet.arrival = links.now();
                self.send_on(links, port, at, None, packet);
            }
            self.held[at.index()].put_back(queue);
        }
        self.ingress = ingress;
    }

    /// Returns the port to the host that a packet goes to.
    fn port_to_host(&self, packet: &Packet) -> LinkId {
        let (_, dst) = self.flows[packet.flow.index()].ends(packet.has(Packet::BACK));
        let net = &self.routing.net;
        net.link(net.first_nic(dst)).reverse
    }
}

//! The handling of the engine's events in the world.

use crate::node::pausing;
use crate::node::world::{Carried, World};
use crate::probe::Probe;
use base::{Hold, HostId, LinkId, Time};
use engine::{Far, Links};
use fabric::agent::{Agent, PortCx};
use fabric::buffer::Buffer;
use fabric::qdisc::Qdisc;
use fabric::queue::Backlog;
use fabric::router::Router;
use proto::packet::ASK;
use proto::{Kind, Packet, Transport};

impl<P: Probe> engine::World for World<P> {
    type Packet = Carried;

    #[inline(always)]
    fn deliver(&mut self, links: &mut impl Links<Carried>, link: LinkId, far: Far, packet: &mut Packet) {
        if self.inspects && !self.arrives(links, link, packet) {
            return;
        }
        match far {
            Far::Switch(out_base) => match packet.route[0] {
                ASK => self.forward(links, link, packet),
                port => {
                    packet.step();
                    self.send(links, LinkId(out_base + u32::from(port)), packet);
                }
            },
            Far::Host(host) => {
                let id = HostId(host);
                self.traffic.received += 1;
                self.traffic.received_bytes += u64::from(packet.wire_len);
                if packet.has(Packet::CE) {
                    self.table.on_mark(packet);
                }
                if self.special {
                    return self.receive(links, id, packet);
                }
                self.with_transport(links.now(), id, |transport, cx| transport.on_packet(packet, cx));
                packet.free(&mut self.ext);
                self.poll_plain(links, id);
            }
        }
    }

    #[inline(always)]
    fn passes(&mut self, link: LinkId, packet: &mut Packet, now: Time) -> bool {
        let port = Self::port(&mut self.ports, link);
        if !port.qdisc.passes(packet, now) {
            return false;
        }
        if let Some(agent) = &mut port.agent {
            let mut cx = PortCx { now, flows: &self.flows, ext: &mut self.ext, port: &port.state };
            agent.on_arrive(packet, &mut cx);
            agent.on_enqueue(packet, &mut cx);
            agent.on_depart(packet, &mut cx);
        }
        if port.minded {
            port.state.sent_bytes += u64::from(packet.wire_len);
            if port.watched {
                self.routing.router.on_depart(link, packet, now);
            }
        }
        true
    }

    fn admits(&mut self, link: LinkId, packet: &mut Packet, now: Time) -> bool {
        if packet.kind == Kind::PAUSE {
            return true;
        }
        let net = &self.routing.net;
        let at = net.link(link).from;
        if self.pausing {
            self.note_ingress(packet);
        }
        // A buffer that pauses neighbours counts for itself.
        let mut all = Backlog::default();
        if !self.pausing {
            for other in net.out_links(at) {
                all.add_all(Self::port(&mut self.ports, other).backlog());
            }
            if let Some(held) = self.held.get(at.index()) {
                all.add_all(held.backlog());
            }
        }
        let port = Self::port(&mut self.ports, link);
        let place = pausing::place(&self.routing.net, port, link, packet);
        let buffer = &mut self.buffers[at.index()];
        let admits = buffer.admits(packet, place, port.backlog(), all);
        if !buffer.paused().is_empty() {
            self.refused.order();
        }
        if !admits {
            if let Some(agent) = &mut port.agent {
                agent.on_arrive(packet, &mut PortCx { now, flows: &self.flows, ext: &mut self.ext, port: &port.state });
            }
            self.refused.drop(packet);
        }
        admits
    }

    #[inline(always)]
    fn enqueue(&mut self, link: LinkId, packet: &mut Packet, now: Time) -> (u32, u64) {
        let port = Self::port(&mut self.ports, link);
        // `enqueue` is called in both branches. One call between two checks for an agent cost 2 % of every hop.
        if let Some(agent) = &mut port.agent {
            let mut cx = PortCx { now, flows: &self.flows, ext: &mut self.ext, port: &port.state };
            agent.on_arrive(packet, &mut cx);
            if port.qdisc.enqueue(packet, now, &mut self.refused) {
                agent.on_enqueue(packet, &mut cx);
            }
            if port.minded {
                port.state.queue = port.qdisc.backlog();
            }
        } else {
            port.qdisc.enqueue(packet, now, &mut self.refused);
        }
        let backlog = port.qdisc.backlog();
        (backlog.packets, backlog.bytes)
    }

    fn not_before(&self, link: LinkId, start: Time) -> Option<Hold> {
        let port = self.ports[link.index()].as_ref()?;
        if port.pausing.is_some() {
            return port.held_before(start);
        }
        port.qdisc.not_before(start)
    }

    #[inline(always)]
    fn dequeue(&mut self, link: LinkId, start: Time) -> &Packet {
        let port = Self::port(&mut self.ports, link);
        let packet = port.qdisc.dequeue(start).expect("a packet waits");
        if port.minded {
            if let Some(agent) = &mut port.agent {
                port.state.queue.remove(packet);
                agent.on_depart(packet, &mut PortCx { now: start, flows: &self.flows, ext: &mut self.ext, port: &port.state });
                port.state.sent_bytes += u64::from(packet.wire_len);
            }
            if port.watched {
                self.routing.router.on_depart(link, packet, start);
            }
        } else if let Some(agent) = &mut port.agent {
            agent.on_depart(packet, &mut PortCx { now: start, flows: &self.flows, ext: &mut self.ext, port: &port.state });
        }
        self.probe.on_start(link, start, packet);
        packet
    }

    /// Returns false for ports that may be paused: each packet enters the queue there, and leaves it at once if
    /// the port is idle and not paused.
    #[inline(always)]
    fn passes_shaped(&mut self, link: LinkId, packet: &mut Packet, now: Time) -> bool {
        if self.pausing { self.passes_unpaused(link, packet, now) } else { self.passes(link, packet, now) }
    }

    #[inline(always)]
    fn enqueue_shaped(&mut self, link: LinkId, packet: &mut Packet, now: Time) -> (u32, u64) {
        if self.pausing { self.enqueue_held(link, packet, now) } else { self.enqueue(link, packet, now) }
    }

    #[inline(always)]
    fn dequeue_shaped(&mut self, link: LinkId, start: Time) -> &Packet {
        if self.pausing { self.dequeue_held(link, start) } else { self.dequeue(link, start) }
    }

    #[inline(always)]
    fn prefetch(&self, host: u32, packet: &Packet) {
        let host = self.hosts.as_ptr().wrapping_add(host as usize).cast::<u8>();
        (0..size_of::<crate::node::host::Host>()).step_by(64).for_each(|n| engine::prefetch(host.wrapping_add(n)));
        let record = self.table.place(packet.flow);
        engine::prefetch(record);
        engine::prefetch(record.wrapping_add(64));
        engine::prefetch(self.flows.as_ptr().wrapping_add(packet.flow.index()));
    }

    fn open_until(&mut self, now: Time) -> Time {
        World::open_until(self, now)
    }

    fn wake(&mut self, links: &mut impl Links<Carried>, waker: u32) {
        let Some(host) = waker.checked_sub(self.first_host) else { return self.wake_switch(links, waker) };
        let (id, now) = (HostId(host), links.now());
        if !self.receivers.is_empty() {
            self.take_due(links, id);
        }
        while let Some(flow) = self.hosts[id.index()].pop_start(now) {
            if self.waiting.is_some() {
                self.start_waiting(links, flow);
            }
            if !self.policy_hosts.is_empty() {
                self.with_policy(now, id, |policy_host, transport, cx| policy_host.on_open(flow, transport, cx));
            }
            self.with_transport(now, id, |transport, cx| transport.on_flow(flow, cx));
        }
        while let Some(key) = self.hosts[id.index()].io.timers.pop_due(now) {
            self.with_transport(now, id, |transport, cx| transport.on_timer(key, cx));
        }
        if !self.policy_hosts.is_empty() {
            self.with_policy(now, id, |policy_host, transport, cx| {
                policy_host.settle(transport, cx);
                policy_host.on_timers(transport, cx);
            });
        }
        self.poll(links, id);
    }
}

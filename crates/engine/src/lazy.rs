//! Ports that are not first in, first out. Their packets wait in a discipline outside, which is asked for the next one when the port is
//! touched, or has nothing left on its wire: late, but with exactly the packets that had arrived by then.

use crate::link::{Link, LinkStats, Sent};
use crate::ring::Rings;
use crate::world::World;
use base::{LinkId, Time, Wire};

/// Such a port.
pub(crate) struct Lazy<'a, P> {
    pub id: LinkId,
    pub link: &'a mut Link,
    pub stats: &'a mut LinkStats,
    pub rings: &'a mut Rings<P>,
}

impl<P: Wire> Lazy<'_, P> {
    /// Sends a packet out of a port that is watched, or has another packet that waits. If its service starts at once it is yet to be put
    /// on the wire.
    #[inline(always)]
    pub fn send<W: World<Packet = P>>(&mut self, world: &mut W, packet: &mut P, now: Time) -> Sent {
        // Service first at ties: every start up to now sees only what had arrived before.
        self.catch_up(world, now);
        if !self.link.is_up() {
            return Sent::Down;
        }
        if self.link.free_at() <= now && self.link.waiting() == 0 {
            world.pass(self.id, packet, now);
            return Sent::Starts(now);
        }
        self.enqueue(world, packet, now);
        Sent::Waits
    }

    /// Has a packet that arrived at `at` wait in the discipline.
    #[inline(always)]
    fn enqueue<W: World<Packet = P>>(&mut self, world: &mut W, packet: &mut P, at: Time) {
        let (packets, bytes) = world.enqueue(self.id, packet, at);
        self.link.set_waiting(packets);
        self.stats.max_queue_bytes = self.stats.max_queue_bytes.max(bytes);
    }

    /// All service that is due up to `until` has started, and what is due later waits in the discipline.
    #[inline(always)]
    pub fn catch_up<W: World<Packet = P>>(&mut self, world: &mut W, until: Time) {
        if self.link.waiting() > 0 {
            self.serve(world, until);
        } else if let Some(mut packet) = self.link.recall(until, self.rings, self.stats) {
            let arrival = packet.arrival();
            self.enqueue(world, &mut packet, arrival);
            debug_assert_eq!(self.link.waiting(), 1, "what waits alone fits");
        }
    }

    /// Starts all service that is due up to `until`. The tree needs no change: the packets go behind those that are on the wire, or
    /// were just taken off it.
    #[inline(always)]
    pub fn serve<W: World<Packet = P>>(&mut self, world: &mut W, until: Time) {
        let mut waiting = self.link.waiting();
        while waiting > 0 && self.link.free_at() <= until {
            let start = self.link.free_at();
            let packet = world.dequeue(self.id, start);
            self.stats.waited(packet.wire_len(), start - packet.arrival());
            self.link.push(start, packet, self.rings);
            waiting -= 1;
        }
        self.link.set_waiting(waiting);
    }
}

//! Ports with a discipline. Packets wait in the discipline, outside the engine. The engine dequeues
//! the next packet when the port is touched or its wire becomes empty: later than the start of
//! service, but the discipline then holds exactly the packets that had arrived by that start.

use crate::link::{Link, Sent};
use crate::ring::Rings;
use crate::stats::LinkStats;
use crate::world::World;
use base::{LinkId, Time, Wire};

/// A port with a discipline.
pub(crate) struct Lazy<'a, P> {
    pub id: LinkId,
    pub link: &'a mut Link,
    pub stats: &'a mut LinkStats,
    pub rings: &'a mut Rings<P>,
}

impl<P: Wire> Lazy<'_, P> {
    /// Sends a packet out of a port that is up, and is watched or has waiting packets. If its
    /// service starts at once, the caller must put it on the wire.
    #[inline(always)]
    pub fn send<W: World<Packet = P>>(&mut self, world: &mut W, packet: &mut P, now: Time) -> Sent {
        // Service first at ties: a start up to now considers only packets that arrived before.
        self.catch_up(world, now);
        if self.link.is_free(now) {
            let starts = world.passes(self.id, packet, now);
            debug_assert!(starts, "link {} keeps a packet waiting and is not shaped", self.id);
            return Sent::Starts(now);
        }
        self.enqueue(world, packet, now);
        Sent::Waits
    }

    /// Enqueues a packet that arrived at `at` in the discipline.
    #[inline(always)]
    fn enqueue<W: World<Packet = P>>(&mut self, world: &mut W, packet: &mut P, at: Time) {
        let (packets, bytes) = world.enqueue(self.id, packet, at);
        self.link.set_waiting(packets);
        self.stats.max_queue_bytes = self.stats.max_queue_bytes.max(bytes);
    }

    /// Starts all service due by `until`. Every packet whose service starts later waits in the discipline.
    #[inline(always)]
    pub fn catch_up<W: World<Packet = P>>(&mut self, world: &mut W, until: Time) {
        if self.link.waiting() > 0 {
            self.serve(world, until);
        } else if let Some(mut packet) = self.link.recall(until, self.rings, self.stats) {
            let arrival = packet.arrival();
            self.enqueue(world, &mut packet, arrival);
            debug_assert_eq!(self.link.waiting(), 1, "a single packet fits");
        }
    }

    /// Starts all service due by `until`. The tree need not change: the packets follow others on
    /// the wire, or a packet that was just taken off it.
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

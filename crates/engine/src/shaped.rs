//! Shaped ports: their discipline may hold all packets back until some time although the
//! transmitter is idle.
//!
//! A packet that finds the port idle may pass at once, ahead of packets that wait; every other
//! packet enters the discipline. While packets are on the wire, service is as lazy as at other
//! ports: the discipline is called when the port is touched or the wire becomes empty, but with the
//! time at which it would have been called. While the wire is empty the leaf of the link holds the
//! arrival of the packet that starts next, as if that packet were on its way. In windows only packets
//! on the wire are noted, since the port's node starts service itself.

use crate::lazy::Lazy;
use crate::link::{FIRST_LEAF, Sent};
use crate::nodes::Windows;
use crate::tree::Tree;
use crate::world::World;
use base::{Hold, LinkId, Time, Wire};

/// A shaped port.
pub(crate) struct Shaped<'a, P> {
    pub port: Lazy<'a, P>,
    pub tree: &'a mut Tree,
    /// In a run in windows.
    pub windows: Option<&'a mut Windows>,
}

impl<P: Wire> Shaped<'_, P> {
    /// Sends a packet: it passes an idle port, or enters the discipline.
    #[inline(always)]
    pub fn send<W: World<Packet = P>>(&mut self, world: &mut W, packet: &mut P, now: Time) -> Sent {
        // Service first at ties. If the port is idle afterwards, all waiting packets are held back.
        self.catch_up(world, now);
        if self.port.link.free_at() > now {
            let bytes = self.enter(world, packet, now);
            self.port.stats.max_queue_bytes = self.port.stats.max_queue_bytes.max(bytes);
            return Sent::Waits;
        }
        if !world.passes_shaped(self.port.id, packet, now) {
            return self.enter_idle(world, packet, now);
        }
        let Lazy { id, link, stats, rings } = &mut self.port;
        let was_dry = link.ring_is_empty();
        let arrival = link.push(now, packet, rings);
        // As after every arrival, the discipline must be asked again when the next packet may
        // start.
        let shaping = stats.shaping();
        shaping.hold.until = now;
        if was_dry {
            shaping.due = Time::MAX;
            let id = *id;
            self.set_leaf(id, arrival);
        }
        Sent::Starts(now)
    }

    /// Enqueues a packet that does not pass an idle port. Most often it waits.
    #[inline(always)]
    pub fn enter_idle<W: World<Packet = P>>(&mut self, world: &mut W, packet: &mut P, now: Time) -> Sent {
        let bytes = self.enter(world, packet, now);
        if self.port.link.waiting() == 0 {
            return Sent::Waits;
        }
        let served = match world.not_before(self.port.id, now) {
            Some(hold) => self.hold(hold),
            None => self.serve_and_settle(world, now),
        };
        self.port.stats.max_queue_bytes = self.port.stats.max_queue_bytes.max(bytes - served);
        Sent::Waits
    }

    /// Enqueues a packet. The discipline must be asked again afterwards when the next packet may
    /// start. Returns how many bytes wait.
    #[inline(always)]
    fn enter<W: World<Packet = P>>(&mut self, world: &mut W, packet: &mut P, now: Time) -> u64 {
        let (packets, bytes) = world.enqueue_shaped(self.port.id, packet, now);
        self.port.link.set_waiting(packets);
        self.port.stats.shaping().hold.until = now;
        bytes
    }

    /// Holds all packets of an idle port back until a time. Returns the number of bytes served: 0.
    #[inline(always)]
    fn hold(&mut self, hold: Hold) -> u64 {
        let Lazy { id, link, stats, .. } = &mut self.port;
        let shaping = stats.shaping();
        shaping.hold = hold;
        if link.ring_is_empty() {
            let due = link.arrival_of(hold.until, hold.wire_len);
            if shaping.due != due {
                shaping.due = due;
                if self.windows.is_none() {
                    self.tree.set(FIRST_LEAF + id.0, due);
                }
            }
        }
        0
    }

    /// Starts all service due by `until`.
    #[inline(always)]
    pub fn catch_up<W: World<Packet = P>>(&mut self, world: &mut W, until: Time) {
        let Lazy { link, stats, .. } = &self.port;
        if link.waiting() > 0 && link.free_at().max(stats.not_before()) <= until {
            self.serve_and_settle(world, until);
        }
    }
    /// Starts all service due by `until` and sets the link's leaf if it changed. Returns how many
    /// bytes no longer wait.
    #[inline(never)]
    fn serve_and_settle<W: World<Packet = P>>(&mut self, world: &mut W, until: Time) -> u64 {
        let was_dry = self.port.link.ring_is_empty();
        let before = self.port.stats.shaping().due;
        let served = self.serve(world, until);
        let next = self.next();
        if was_dry && (next != before || self.windows.is_some()) {
            self.set_leaf(self.port.id, next);
        }
        served
    }
    /// Sets the time of the link's next event: the arrival of a packet, or if the wire is empty that of
    /// the packet that starts next.
    #[inline(always)]
    fn set_leaf(&mut self, id: LinkId, at: Time) {
        match &mut self.windows {
            None => self.tree.set(FIRST_LEAF + id.0, at),
            Some(windows) if !self.port.link.ring_is_empty() => windows.note(id, at),
            Some(_) => {}
        }
    }

    /// Asks the discipline again, whose answer may have changed, and starts packets that may start
    /// by `until`.
    pub fn ask_anew<W: World<Packet = P>>(&mut self, world: &mut W, until: Time) {
        if self.port.link.waiting() > 0 {
            self.port.stats.shaping().hold.until = until;
            self.serve_and_settle(world, until);
        }
    }
    /// Handles an empty wire while packets wait. Returns the time to which the caller must set the
    /// link's leaf.
    #[inline(never)]
    pub fn serve_dry<W: World<Packet = P>>(&mut self, world: &mut W, now: Time) -> Time {
        self.serve(world, now);
        self.next()
    }

    /// Starts all service due by `until`. Returns how many bytes no longer wait.
    #[inline(always)]
    fn serve<W: World<Packet = P>>(&mut self, world: &mut W, until: Time) -> u64 {
        let Lazy { id, link, stats, rings } = &mut self.port;
        let (mut waiting, mut served) = (link.waiting(), 0);
        while waiting > 0 {
            let start = link.free_at().max(stats.shaping().hold.until);
            if start > until {
                break;
            }
            if let Some(hold) = world.not_before(*id, start) {
                assert!(hold.until > start, "link {id}, asked at {start}, is to wait until {}", hold.until);
                stats.shaping().hold = hold;
                continue;
            }
            let packet = world.dequeue_shaped(*id, start);
            stats.waited(packet.wire_len(), start - packet.arrival());
            link.push(start, packet, rings);
            waiting -= 1;
            served += u64::from(packet.wire_len());
        }
        link.set_waiting(waiting);
        served
    }

    /// Starts all service due by `now` at a port whose wire is empty. Returns whether a packet
    /// arrives now; if not, sets the link's leaf.
    #[inline(always)]
    pub fn start_due<W: World<Packet = P>>(&mut self, world: &mut W, now: Time) -> bool {
        self.serve(world, now);
        let next = self.next();
        if next > now {
            self.tree.set(FIRST_LEAF + self.port.id.0, next);
        }
        next == now
    }

    /// Returns the time of the link's leaf: the first arrival, or if the wire is empty that of the
    /// packet that starts next.
    #[inline(always)]
    pub fn next(&mut self) -> Time {
        let Lazy { link, stats, rings, .. } = &mut self.port;
        let shaping = stats.shaping();
        let is_dry = link.ring_is_empty();
        let Hold { until, wire_len } = shaping.hold;
        shaping.due = if is_dry && link.waiting() > 0 { link.arrival_of(until, wire_len) } else { Time::MAX };
        if is_dry { shaping.due } else { link.first_arrival(rings) }
    }
}

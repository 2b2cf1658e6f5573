//! Links that end in another part of the network, which has an engine of its own.
//!
//! The part of a link's port keeps the link as if it ended there. Between two windows of time it gives away the packets that arrive in the next
//! one; the engine of the far part puts them on its own copy of the link, which does nothing but deliver. What is given away has started, so that
//! nothing at the port depends on it any more.

use crate::engine::Engine;
use crate::link::FIRST_LEAF;
use crate::world::{Driver, Links, World};
use base::{LinkId, Time, Wire};

/// The event that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Next {
    /// When.
    pub at: Time,
    /// Its place among those of the same time, in all engines that have the same links and wakers.
    pub leaf: u32,
}

impl<P: Wire> Engine<P> {
    /// The event that comes next; at `Time::MAX` if there is none.
    pub fn upcoming(&mut self) -> Next {
        if self.tree.is_far(self.tree.first()) {
            self.rebase();
        }
        let key = self.tree.first();
        let (at, leaf) = self.tree.decode(key);
        Next { at: if self.tree.is_far(key) { Time::MAX } else { at }, leaf }
    }
    /// The link whose event is next, if it is that of a link.
    pub fn link_of(&self, next: Next) -> Option<LinkId> {
        let link = next.leaf.wrapping_sub(FIRST_LEAF);
        ((link as usize) < self.links.len()).then_some(LinkId(link))
    }

    /// Gives away the packets of a link that arrive before `before`, in order. All events before the present are done, and no packet takes less
    /// than from the present to `before` for the link. Returns a time before which no other packet arrives.
    pub fn give<W: World<Packet = P>>(&mut self, world: &mut W, id: LinkId, before: Time, mut to: impl FnMut(P)) -> Time {
        let was_empty = self.links[id.index()].ring_is_empty();
        if !self.links[id.index()].is_fifo() {
            self.catch_up(world, id, self.now.before(base::Dur(1)));
        }
        let link = &mut self.links[id.index()];
        let mut first = link.first_arrival(&self.rings);
        let stays = !was_empty && first >= before && first < Time::MAX;
        while first < before {
            to(link.pop(&self.rings));
            first = link.first_arrival(&self.rings);
        }
        // The leaf is that of the first packet already.
        if stays || was_empty && link.is_fifo() && first == Time::MAX { first } else { self.settle(id) }
    }
    /// Takes such packets back, before any event of the far part at or after the present. Nothing else has happened to the link since.
    pub fn take_back(&mut self, id: LinkId, packets: &[P]) {
        let (link, stats) = (&mut self.links[id.index()], &mut self.stats[id.index()]);
        link.unpop(packets, &mut self.rings, stats);
        self.settle(id);
    }
    /// Sets a link's leaf to the first arrival. Returns a time before which no packet arrives.
    fn settle(&mut self, id: LinkId) -> Time {
        let link = &self.links[id.index()];
        let (leaf, bound) = if link.is_shaped() && link.ring_is_empty() {
            let due = self.shaped(id).next();
            (due, due)
        } else {
            let first = link.first_arrival(&self.rings);
            let waits = link.ring_is_empty() && link.waiting() > 0;
            (first, if waits { link.free_at().max(self.now).after(link.delay) } else { first })
        };
        self.tree.set(FIRST_LEAF + id.0, leaf);
        bound
    }

    /// Puts a packet on a link whose port is in another part.
    pub fn put(&mut self, id: LinkId, packet: &P) {
        let link = &mut self.links[id.index()];
        if link.put(packet, &mut self.rings) {
            self.tree.insert(FIRST_LEAF + id.0, packet.arrival());
        }
    }
    /// Takes all packets off such a link.
    pub fn take_all(&mut self, id: LinkId) -> Vec<P> {
        let all = self.on_link(id);
        self.links[id.index()].clear();
        self.tree.set(FIRST_LEAF + id.0, Time::MAX);
        all
    }

    /// The event of a link is next: takes its packet off, which is to be [handed over](Engine::hand_over) in the far part. `None`: it was only to be
    /// started, and arrives later.
    pub fn take_first<W: World<Packet = P>>(&mut self, world: &mut W, id: LinkId, now: Time) -> Option<P> {
        self.now = now;
        self.events += 1;
        if self.links[id.index()].ring_is_empty() && !self.shaped(id).start_due(world, now) {
            return None;
        }
        let link = &mut self.links[id.index()];
        let packet = link.pop(&self.rings);
        if link.ring_is_empty() && link.waiting() > 0 {
            self.serve_dry(world, id);
        }
        self.settle(id);
        Some(packet)
    }
    /// Delivers a packet that [`Engine::take_first`] has taken off a link elsewhere. Says whether the run is to stop.
    pub fn hand_over<W: World<Packet = P>>(&mut self, world: &mut W, id: LinkId, now: Time, packet: &mut P) -> bool {
        self.now = now;
        self.unspent = None;
        let far = self.links[id.index()].far();
        world.deliver(self, id, far, packet);
        self.unspent.take().is_some()
    }
    /// Sets the present: no event is before it.
    pub fn pass(&mut self, now: Time) {
        self.now = now;
    }
}

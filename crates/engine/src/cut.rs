//! Links that end in another part of the network, which has its own engine.
//!
//! The part that owns a link's port stores the link as if it ended there. Between two windows of
//! time it hands over the packets that arrive in the next window; the engine of the far part puts
//! them on its own copy of the link, which only delivers. Packets that are handed over have
//! started, so the port's state no longer depends on them.

use crate::engine::Engine;
use crate::link::FIRST_LEAF;
use crate::world::{Driver, Links, Pause, World};
use base::{LinkId, Time, Wire};

/// The next event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Next {
    /// The time of the event.
    pub at: Time,
    /// The rank of the event among events of the same time, equal in all engines that have the same
    /// links and wakers.
    pub leaf: u32,
}

impl<P: Wire> Engine<P> {
    /// Returns the next event, in windows without its rank; its time is `Time::MAX` if there is none.
    pub fn upcoming(&mut self) -> Next {
        if self.in_windows {
            return Next { at: self.windows.agenda.first(), leaf: 0 };
        }
        if self.tree.is_far(self.tree.first()) {
            self.rebase();
        }
        let key = self.tree.first();
        let (at, leaf) = self.tree.decode(key);
        Next { at: if self.tree.is_far(key) { Time::MAX } else { at }, leaf }
    }
    /// Returns the link whose event is next, if the next event belongs to a link.
    pub fn link_of(&self, next: Next) -> Option<LinkId> {
        let link = next.leaf.wrapping_sub(FIRST_LEAF);
        ((link as usize) < self.links.len()).then_some(LinkId(link))
    }

    /// Hands over the packets of a link that arrive before `before`, in order. All events before
    /// now must be done, and the link must not deliver a packet sent from now on before `before`.
    /// Returns a time before which no other packet arrives.
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
        // The leaf already has the arrival of the first packet.
        if stays || was_empty && link.is_fifo() && first == Time::MAX { first } else { self.settle(id) }
    }
    /// Takes packets back that were handed over, before any event of the far part at or after now.
    /// Nothing else may have happened to the link since.
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
        if !self.in_windows {
            self.tree.set(FIRST_LEAF + id.0, leaf);
        }
        bound
    }

    /// Puts a packet on a link whose port is in another part.
    pub fn put(&mut self, id: LinkId, packet: &P) {
        let link = &mut self.links[id.index()];
        if link.put(packet, &mut self.rings) {
            self.arrives_first(id, packet.arrival());
        }
    }
    /// Removes all packets from a link whose port is in another part.
    pub fn take_all(&mut self, id: LinkId) -> Vec<P> {
        let all = self.on_link(id);
        self.links[id.index()].clear();
        self.tree.set(FIRST_LEAF + id.0, Time::MAX);
        all
    }

    /// Handles the event of a link when it is the next event: takes off its packet, which the far
    /// part must [deliver](Engine::hand_over). `None`: the packet only had to be started, and
    /// arrives later.
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
    /// Delivers a packet that [`Engine::take_first`] has taken off a link in another part. Returns
    /// whether the run must stop.
    pub fn hand_over<W: World<Packet = P>>(&mut self, world: &mut W, id: LinkId, now: Time, packet: &mut P) -> bool {
        self.now = now;
        self.unspent = None;
        let far = self.links[id.index()].far();
        world.deliver(self, id, far, packet);
        self.unspent.take().is_some()
    }
    /// Handles the next event, which must not be that of a link that ends in another part. The run
    /// must have [left windows](Engine::leave_windows).
    pub fn run_one<W: World<Packet = P>>(&mut self, world: &mut W) -> Pause {
        self.run_by_tree(world, Time::MAX, 1)
    }
    /// Sets the current time. No event may be before it.
    pub fn pass(&mut self, now: Time) {
        self.now = now;
    }
}

//! The contract between what drives time and what happens in it.

use crate::link::Sent;
use crate::spec::{Far, LinkSpec};
use crate::stats::LinkStats;
use base::{Dur, Hold, LinkId, Time, Wire};

/// What a world may do to links. All that one node can do to another goes through links.
pub trait Links<P> {
    /// The present.
    fn now(&self) -> Time;
    /// Ends the run after the event in hand.
    fn stop(&mut self);
    /// When a waker is woken next; `Time::MAX` for never.
    fn wake_at(&self, waker: u32) -> Time;
    /// Sets when a waker is woken next; `Time::MAX` for never.
    fn set_wake(&mut self, waker: u32, at: Time);
    /// Sends a packet out of a port. The port may mark the packet, and `world` may rewrite it.
    fn send<W: World<Packet = P>>(&mut self, world: &mut W, link: LinkId, packet: &mut P) -> Sent;
    /// Brings a port that has a discipline up to date, before anybody reads it: all service due by `until` has started, and every packet whose
    /// service starts later waits in the discipline. Does nothing at a first-in first-out port.
    fn catch_up<W: World<Packet = P>>(&mut self, world: &mut W, link: LinkId, until: Time);
    /// Changes what `world` says of the starts at a shaped port ([`World::not_before`], [`World::passes`]), as one does that holds packets back
    /// there or releases them. All service due up to now has started by what it said before; what may start now, by what it says after, does.
    /// Not for a global action, which comes before the service of its instant.
    fn alter<W: World<Packet = P>>(&mut self, world: &mut W, link: LinkId, change: impl FnOnce(&mut W));
    /// How many packets wait in a port's discipline; zero at a first-in first-out port.
    fn waiting(&self, link: LinkId) -> u32;
    /// The transmission time of a packet of `bytes`.
    fn tx_time(&self, link: LinkId, bytes: u32) -> Dur;
    /// How long the transmitter has been busy up to the present.
    fn busy(&self, link: LinkId) -> Dur;
    /// Waiting packets and bytes of a first-in first-out port at the present, exactly.
    fn fifo_backlog(&mut self, link: LinkId) -> (u32, u64);
    /// When the transmitter becomes idle, or when it became idle.
    fn free_at(&self, link: LinkId) -> Time;
    /// The earliest time at which a packet that waits at a shaped port may start; `Time::MAX` if none waits.
    fn next_start(&self, link: LinkId) -> Time;
    /// The statistics of a link and its port, to be added to.
    fn stats_mut(&mut self, link: LinkId) -> &mut LinkStats;
}

/// What happens at the ends of links.
pub trait World: Sized {
    /// The packet type.
    type Packet: Wire;
    /// `packet` has crossed `link`, which ends at `far`. The packet is lent: it is copied as a whole, twice per hop.
    fn deliver(&mut self, links: &mut impl Links<Self::Packet>, link: LinkId, far: Far, packet: &mut Self::Packet);
    /// A packet finds a watched or shaped port idle, and nothing waits there or, at a shaped one, nothing that may start now. Says whether its
    /// service starts; at a watched port it does. At a shaped one the packet may have to enter the discipline instead. The packet may be
    /// rewritten if it starts.
    fn passes(&mut self, link: LinkId, packet: &mut Self::Packet, now: Time) -> bool;
    /// Whether a packet that arrives at `now` may wait at a port that shares a buffer. All ports that share the buffer have caught up. A packet
    /// that may not wait is dropped by the world; others go on to [`World::enqueue`].
    fn admits(&mut self, _link: LinkId, _packet: &mut Self::Packet, _now: Time) -> bool {
        true
    }
    /// A packet that arrived at `now` enters a port's discipline, which may drop it. The packet may be rewritten before. Returns how many packets
    /// and bytes wait afterwards.
    fn enqueue(&mut self, link: LinkId, packet: &mut Self::Packet, now: Time) -> (u32, u64);
    /// Asked of a shaped port at which packets wait, when its transmitter is idle at `start`: the time before which no packet may start, if that
    /// is later than `start`. An arrival may bring the time forward, so the engine asks again after each, and [`Links::alter`] may change it
    /// either way.
    fn not_before(&self, link: LinkId, start: Time) -> Option<Hold>;
    /// Takes the packet whose service starts at `start` out of a port's discipline, and lends it. At least one packet waits there.
    fn dequeue(&mut self, link: LinkId, start: Time) -> &Self::Packet;
    /// As [`World::passes`], of a shaped port.
    #[inline(always)]
    fn passes_shaped(&mut self, link: LinkId, packet: &mut Self::Packet, now: Time) -> bool {
        self.passes(link, packet, now)
    }
    /// As [`World::enqueue`], of a shaped port.
    #[inline(always)]
    fn enqueue_shaped(&mut self, link: LinkId, packet: &mut Self::Packet, now: Time) -> (u32, u64) {
        self.enqueue(link, packet, now)
    }
    /// As [`World::dequeue`], of a shaped port.
    #[inline(always)]
    fn dequeue_shaped(&mut self, link: LinkId, start: Time) -> &Self::Packet {
        self.dequeue(link, start)
    }
    /// A waker, which is a host or a switch, wakes. The world must set its next wake-up.
    fn wake(&mut self, links: &mut impl Links<Self::Packet>, waker: u32);
}

/// What drives a world through time: [`Engine`](crate::Engine), and the slow reference engine of the tests.
pub trait Driver<P: Wire>: Links<P> {
    /// At time zero with idle links (by id) and `wakers` nodes that can be woken. At equal times wakers are woken by number.
    fn new(links: &[(LinkSpec, Far)], wakers: u32) -> Self;
    /// Sets the time of the next global action; `Time::MAX` for none.
    fn set_action(&mut self, at: Time);
    /// Handles events in order until one is at or after `end`, the global action is due, [`Links::stop`] was called, or `budget` events
    /// are done.
    fn run<W: World<Packet = P>>(&mut self, world: &mut W, end: Time, budget: u64) -> Pause;
    /// Events handled so far.
    fn events(&self) -> u64;
    /// The statistics of a link and its port.
    fn stats(&mut self, link: LinkId) -> LinkStats;
    /// Waiting bytes over time up to the present, in byte times 1024 ps, of all packets but those that wait in a discipline. The port has caught
    /// up to just before the present.
    fn queue_area(&self, link: LinkId) -> u64;
    /// The packets on the wire and those whose departure is already fixed, oldest first.
    fn on_link(&self, link: LinkId) -> Vec<P>;
    /// Takes a link that is up down. The packet in transmission, the packets on the wire and, at a first-in first-out port, the waiting packets
    /// are lost and returned. The caller has the port [catch up](Links::catch_up) to just before the present first, and afterwards clears the
    /// port's discipline and counts its packets. Nothing can be sent until [`Driver::link_up`].
    fn link_down(&mut self, link: LinkId) -> Vec<P>;
    /// Brings a link up again. Its port is empty.
    fn link_up(&mut self, link: LinkId);
}

/// Why [`Driver::run`] came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// No event is left before the end. The present is the end, if there is one.
    End,
    /// The global action is due now, before all other events of the present. It counts as one event. The caller sets the next one.
    Action,
    /// [`Links::stop`] was called.
    Stopped,
    /// The budget of events is used up.
    Budget,
}

//! The interface between a driver of time and the world whose events it handles.

use crate::link::Sent;
use crate::nodes::Nodes;
use crate::spec::{Far, LinkSpec};
use crate::stats::LinkStats;
use base::{Dur, Hold, LinkId, Time, Wire};

/// The operations on links that a world may use. A node acts on another node only through links.
pub trait Links<P> {
    /// Returns the current time.
    fn now(&self) -> Time;
    /// Ends the run after the current event.
    fn stop(&mut self);
    /// Returns when a waker is woken next; `Time::MAX` for never.
    fn wake_at(&self, waker: u32) -> Time;
    /// Sets when a waker is woken next; `Time::MAX` for never.
    fn set_wake(&mut self, waker: u32, at: Time);
    /// Wakes a waker at `at`, unless it is woken before. It may belong to another node than the one
    /// that acts, if `at` is later than now by the delay of a link.
    fn wake_by(&mut self, waker: u32, at: Time) {
        let at = at.min(self.wake_at(waker));
        self.set_wake(waker, at);
    }
    /// Sends a packet out of a port. The port may mark the packet, and `world` may rewrite it.
    fn send<W: World<Packet = P>>(&mut self, world: &mut W, link: LinkId, packet: &mut P) -> Sent;
    /// Brings a port with a discipline up to date, which is needed before its state is read: all
    /// service due by `until` has started, and every packet whose service starts later waits in the
    /// discipline. Does nothing at a first-in first-out port.
    fn catch_up<W: World<Packet = P>>(&mut self, world: &mut W, link: LinkId, until: Time);
    /// Changes what `world` returns about starts at a shaped port ([`World::not_before`],
    /// [`World::passes`]), for example to hold packets back or to release them. All service due up
    /// to now starts before the change; packets that may start now because of the change start
    /// after it. Must not be called by a global action, which precedes the service of its instant.
    fn alter<W: World<Packet = P>>(&mut self, world: &mut W, link: LinkId, change: impl FnOnce(&mut W));
    /// Returns how many packets wait in a port's discipline; zero at a first-in first-out port.
    fn waiting(&self, link: LinkId) -> u32;
    /// Returns the transmission time of a packet of `bytes`.
    fn tx_time(&self, link: LinkId, bytes: u32) -> Dur;
    /// Returns how long the transmitter has been busy so far.
    fn busy(&self, link: LinkId) -> Dur;
    /// Returns the exact numbers of packets and bytes that wait at a first-in first-out port: those
    /// whose service starts after `until`. For a node `until` is the present. For a global action
    /// `until` is just before the present, since service that starts at the same time comes later.
    fn fifo_backlog(&mut self, link: LinkId, until: Time) -> (u32, u64);
    /// Returns when the transmitter becomes idle, or when it became idle.
    fn free_at(&self, link: LinkId) -> Time;
    /// Returns the earliest time at which a packet that waits at a shaped port may start;
    /// `Time::MAX` if none waits.
    fn next_start(&self, link: LinkId) -> Time;
    /// Returns the statistics of a link and its port, so that the world can add to them.
    fn stats_mut(&mut self, link: LinkId) -> &mut LinkStats;
}

/// The behaviour of the nodes at the ends of links.
pub trait World: Sized {
    /// The packet type.
    type Packet: Wire;
    /// `packet` has crossed `link` and arrives at `far`. The packet is passed by reference, because
    /// it is copied as a whole twice per hop already.
    fn deliver(&mut self, links: &mut impl Links<Self::Packet>, link: LinkId, far: Far, packet: &mut Self::Packet);
    /// Returns whether a packet that finds a watched or shaped port idle starts service at once. No
    /// packet waits there, or at a shaped port none that may start now. At a watched port the
    /// answer must be `true`; at a shaped port the packet may have to enter the discipline instead.
    /// May rewrite the packet if it starts.
    fn passes(&mut self, link: LinkId, packet: &mut Self::Packet, now: Time) -> bool;
    /// Returns whether a packet that arrives at `now` may wait at a port that shares a buffer. All
    /// ports that share the buffer have caught up. If not, the world drops the packet; otherwise
    /// [`World::enqueue`] follows.
    fn admits(&mut self, _link: LinkId, _packet: &mut Self::Packet, _now: Time) -> bool {
        true
    }
    /// Enqueues a packet that arrived at `now` in a port's discipline, which may drop packets. May
    /// rewrite the packet before. Returns how many packets and bytes wait afterwards.
    fn enqueue(&mut self, link: LinkId, packet: &mut Self::Packet, now: Time) -> (u32, u64);
    /// Returns the time before which no packet may start at a shaped port, if it is later than
    /// `start`. Called when packets wait and the transmitter is idle at `start`. An arrival may
    /// bring the time forward, so the engine calls this again after each arrival; [`Links::alter`]
    /// may move it in either direction.
    fn not_before(&self, link: LinkId, start: Time) -> Option<Hold>;
    /// Dequeues the packet whose service starts at `start` from a port's discipline. At least one
    /// packet waits there.
    fn dequeue(&mut self, link: LinkId, start: Time) -> &Self::Packet;
    /// [`World::passes`] for a shaped port.
    #[inline(always)]
    fn passes_shaped(&mut self, link: LinkId, packet: &mut Self::Packet, now: Time) -> bool {
        self.passes(link, packet, now)
    }
    /// [`World::enqueue`] for a shaped port.
    #[inline(always)]
    fn enqueue_shaped(&mut self, link: LinkId, packet: &mut Self::Packet, now: Time) -> (u32, u64) {
        self.enqueue(link, packet, now)
    }
    /// [`World::dequeue`] for a shaped port.
    #[inline(always)]
    fn dequeue_shaped(&mut self, link: LinkId, start: Time) -> &Self::Packet {
        self.dequeue(link, start)
    }
    /// Prefetches what the delivery of a packet to a host will need.
    #[inline(always)]
    fn prefetch(&self, _host: u32, _packet: &Self::Packet) {}
    /// Returns a time until which the run is sure not to be [stopped](Links::stop).
    fn open_until(&mut self, _now: Time) -> Time {
        Time::MAX
    }
    /// Wakes a waker, which is a host or a switch. The world must set its next wake-up.
    fn wake(&mut self, links: &mut impl Links<Self::Packet>, waker: u32);
}

/// A driver of a world through time: [`Engine`](crate::Engine), and the slow reference engine of
/// the tests.
pub trait Driver<P: Wire>: Links<P> {
    /// Returns a driver at time zero with idle links (by id) and `wakers` nodes that can be woken.
    /// At equal times wakers are woken by number.
    fn new(links: &[(LinkSpec, Far)], wakers: u32) -> Self;
    /// Makes runs go node by node in windows of time, if the driver can do this: `always`, or as long
    /// as it is faster.
    fn use_windows(&mut self, _nodes: &Nodes, _always: bool) {}
    /// Returns whether runs use windows.
    fn uses_windows(&self) -> bool {
        false
    }
    /// Sets the time of the next global action; `Time::MAX` for none.
    fn set_action(&mut self, at: Time);
    /// Handles events in order until the next event is at or after `end`, the global action is due,
    /// [`Links::stop`] was called, or `budget` events are done.
    fn run<W: World<Packet = P>>(&mut self, world: &mut W, end: Time, budget: u64) -> Pause;
    /// Returns the number of events handled so far.
    fn events(&self) -> u64;
    /// Returns the statistics of a link and its port.
    fn stats(&mut self, link: LinkId) -> LinkStats;
    /// Returns the integral of waiting bytes over time up to now, in byte times 1024 ps, without
    /// packets that wait in a discipline. The port must have caught up to just before now.
    fn queue_area(&self, link: LinkId) -> u64;
    /// Returns the packets on the wire and those whose departure is already fixed, oldest first.
    fn on_link(&self, link: LinkId) -> Vec<P>;
    /// Takes down a link that is up. The packet in transmission, the packets on the wire and, at a
    /// first-in first-out port, the waiting packets are lost and returned. The caller must first
    /// [catch up](Links::catch_up) the port to just before now, and afterwards clear the port's
    /// discipline and count its packets. Nothing can be sent until [`Driver::link_up`].
    fn link_down(&mut self, link: LinkId) -> Vec<P>;
    /// Brings a link up again. Its port is empty.
    fn link_up(&mut self, link: LinkId);
}

/// Why [`Driver::run`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// No event is left before the end. The current time is the end, if there is one.
    End,
    /// The global action is due now, before all other events of this time. It counts as one event.
    /// The caller sets the next action.
    Action,
    /// [`Links::stop`] was called.
    Stopped,
    /// The budget of events is used up.
    Budget,
}

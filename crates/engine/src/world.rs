//! The contract between what drives time and what happens in it.

use crate::link::{Far, LinkSpec, LinkStats, Sent};
use base::{Dur, LinkId, Time, Wire};

/// What a world may do to the links: all that one node can do to another.
pub trait Links<P> {
    /// The present.
    fn now(&self) -> Time;
    /// Ends the run after the event in hand.
    fn stop(&mut self);
    /// Sets a host's next wake-up; `Time::MAX` for none.
    fn set_wake(&mut self, host: u32, at: Time);
    /// Sets the time of the next global action; `Time::MAX` for none.
    fn set_action(&mut self, at: Time);
    /// Sends a packet out of a port, which may mark it or have `world` rewrite it.
    fn send<W: World<Packet = P>>(&mut self, world: &mut W, link: LinkId, packet: &mut P) -> Sent;
    /// To be done before a port is read that is not first in, first out: all service that is due up to `until` has started, and what
    /// is due later waits in the discipline.
    fn catch_up<W: World<Packet = P>>(&mut self, world: &mut W, link: LinkId, until: Time);
    /// How many packets wait in the discipline of a port that is not first in, first out.
    fn waiting(&self, link: LinkId) -> u32;
    /// How long a packet of `bytes` takes on a link.
    fn tx_time(&self, link: LinkId, bytes: u32) -> Dur;
    /// How long the transmitter has been busy up to the present.
    fn busy(&self, link: LinkId) -> Dur;
    /// Waiting packets and bytes of a first-in first-out port at the present, exactly.
    fn fifo_backlog(&mut self, link: LinkId) -> (u32, u64);
    /// What the port has held, to add to.
    fn stats_mut(&mut self, link: LinkId) -> &mut LinkStats;
}

/// What happens at the ends of links. Everything a world does to other nodes goes through links.
pub trait World: Sized {
    /// The packet type.
    type Packet: Wire;
    /// `packet` has crossed `link`, which ends at `far`. It is lent, so that it is copied twice a hop, as a whole, and never taken apart.
    fn deliver(&mut self, links: &mut impl Links<Self::Packet>, link: LinkId, far: Far, packet: &mut Self::Packet);
    /// A packet finds a watched port idle, and its service starts: it may be rewritten.
    fn pass(&mut self, link: LinkId, packet: &mut Self::Packet, now: Time);
    /// A packet that arrived at `now` waits in a port's discipline, or falls. It may be rewritten before. Returns how many packets and
    /// bytes wait with it.
    fn enqueue(&mut self, link: LinkId, packet: &mut Self::Packet, now: Time) -> (u32, u64);
    /// Takes the packet out of a port's discipline whose service starts at `start`, and lends it. Some packet waits there.
    fn dequeue(&mut self, link: LinkId, start: Time) -> &Self::Packet;
    /// A host's wake-up is due. It must set the next one.
    fn wake(&mut self, links: &mut impl Links<Self::Packet>, host: u32);
    /// The global action is due: it may take links down and up. It must set the next one.
    fn act(&mut self, links: &mut impl Driver<Self::Packet>);
}

/// What drives a world through time. [`Engine`](crate::Engine) is the one that is fast; the tests have one that is plain.
pub trait Driver<P: Wire>: Links<P> {
    /// At time zero with links (by id) and `hosts` hosts, all idle.
    fn new(links: &[(LinkSpec, Far)], hosts: u32) -> Self;
    /// Handles events in order until one is at or after `end`, [`Links::stop`] was called, or `budget` events are done.
    fn run<W: World<Packet = P>>(&mut self, world: &mut W, end: Time, budget: u64) -> Pause;
    /// Events handled so far.
    fn events(&self) -> u64;
    /// What a link has carried and its port has held.
    fn stats(&mut self, link: LinkId) -> LinkStats;
    /// The packets that have a departure time and are not delivered yet, oldest first.
    fn on_link(&self, link: LinkId) -> Vec<P>;
    /// Takes a link that is up down. The packet in transmission, those on the wire and, at a first-in first-out port, those waiting are
    /// lost and returned. A discipline's waiting packets are the caller's: the port is to [catch up](Links::catch_up) before, to just
    /// before the present, and they are to be cleared and counted after. Until [`Driver::link_up`] nothing can be sent.
    fn link_down(&mut self, link: LinkId) -> Vec<P>;
    /// Brings a link up again, its port empty.
    fn link_up(&mut self, link: LinkId);
}

/// Why [`Driver::run`] came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// No event is left, or none before the end, if there is one: that is the present now.
    End,
    /// [`Links::stop`] was called.
    Stopped,
    /// The budget of events is used up.
    Budget,
}

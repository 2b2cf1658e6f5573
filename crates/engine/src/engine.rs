//! The loop: the next event, its packet off the link, the tree settled, the world called.

use crate::lazy::Lazy;
use crate::link::{Far, Link, LinkSpec, LinkStats, Sent};
use crate::ring::{Rings, prefetch};
use crate::tree::Tree;
use crate::world::{Driver, Links, Pause, World};
use base::{Dur, LinkId, Time, Wire};

/// The engine.
pub struct Engine<P> {
    tree: Tree,
    links: Vec<Link>,
    stats: Vec<LinkStats>,
    rings: Rings<P>,
    wakes: Vec<Time>,
    now: Time,
    /// Events handled when the run began or went on.
    events: u64,
    /// There are so many links that what they hold does not fit into the nearer caches.
    large: bool,
    /// The run pauses after this many more.
    left: u64,
    /// What was left when it was stopped.
    unspent: Option<u64>,
}

/// Leaf of the global action; links and then hosts follow.
const ACTION: u32 = 0;
const FIRST_LINK: u32 = 1;
/// From this many links on it pays to look ahead: some megabytes of packets and records.
const LARGE: usize = 4000;

impl<P: Wire> Links<P> for Engine<P> {
    #[inline(always)]
    fn now(&self) -> Time {
        self.now
    }
    fn stop(&mut self) {
        let left = std::mem::take(&mut self.left);
        self.unspent.get_or_insert(left);
    }
    #[inline(always)]
    fn set_wake(&mut self, host: u32, at: Time) {
        let slot = host as usize + 1;
        if self.wakes[slot] != at {
            assert!(at >= self.now, "host {host} wants to wake in the past");
            self.wakes[slot] = at;
            self.tree.set(FIRST_LINK + self.links.len() as u32 + host, at);
        }
    }
    fn set_action(&mut self, at: Time) {
        self.wakes[0] = at;
        self.tree.set(ACTION, at);
    }
    #[inline(always)]
    fn send<W: World<Packet = P>>(&mut self, world: &mut W, id: LinkId, packet: &mut P) -> Sent {
        let now = self.now;
        let link = &mut self.links[id.index()];
        let start = if link.is_fifo() {
            let Some(start) = link.admit(packet, now, &self.rings, || &mut self.stats[id.index()]) else {
                return if link.is_up() { Sent::Dropped } else { Sent::Down };
            };
            start
        } else {
            let start = link.admit_lone(packet, now, || &mut self.stats[id.index()]);
            let Some(start) = start else { return self.send_lazily(world, id, packet) };
            start
        };
        start_on(link, id, start, packet, &mut self.rings, &mut self.tree);
        Sent::Starts(start)
    }
    #[inline(always)]
    fn catch_up<W: World<Packet = P>>(&mut self, world: &mut W, id: LinkId, until: Time) {
        self.lazy(id).catch_up(world, until);
    }
    fn waiting(&self, id: LinkId) -> u32 {
        self.links[id.index()].waiting()
    }
    #[inline(always)]
    fn tx_time(&self, id: LinkId, bytes: u32) -> Dur {
        self.links[id.index()].tx_time(bytes)
    }
    fn busy(&self, id: LinkId) -> Dur {
        self.links[id.index()].busy(self.now, &self.stats[id.index()])
    }
    fn fifo_backlog(&mut self, id: LinkId) -> (u32, u64) {
        self.links[id.index()].occupancy(self.now, &self.rings)
    }
    #[inline(always)]
    fn stats_mut(&mut self, id: LinkId) -> &mut LinkStats {
        &mut self.stats[id.index()]
    }
}

impl<P: Wire> Driver<P> for Engine<P> {
    fn new(links: &[(LinkSpec, Far)], hosts: u32) -> Engine<P> {
        Engine {
            tree: Tree::new(FIRST_LINK + links.len() as u32 + hosts),
            links: links.iter().map(|(spec, far)| Link::new(spec, *far)).collect(),
            stats: links.iter().map(|(spec, _)| LinkStats::new(spec)).collect(),
            rings: Rings::default(),
            wakes: vec![Time::MAX; hosts as usize + 1],
            now: Time::ZERO,
            events: 0,
            large: links.len() >= LARGE,
            left: 0,
            unspent: None,
        }
    }

    fn run<W: World<Packet = P>>(&mut self, world: &mut W, end: Time, budget: u64) -> Pause {
        let budget = budget.clamp(1, 1 << 28);
        self.left = budget;
        let mut limit = self.tree.limit(end);
        loop {
            if self.left == 0 {
                return self.pause(budget);
            }
            let key = self.tree.first();
            if key >= limit {
                if self.tree.is_far(key) {
                    self.rebase();
                    limit = self.tree.limit(end);
                    if self.tree.first() < limit {
                        continue;
                    }
                }
                if end != Time::MAX {
                    self.now = end;
                }
                self.events += budget - self.left;
                return Pause::End;
            }
            let (at, leaf) = self.tree.decode(key);
            debug_assert!(at >= self.now, "time runs backwards at leaf {leaf}");
            self.now = at;
            self.left -= 1;
            let link = leaf.wrapping_sub(FIRST_LINK);
            if (link as usize) < self.links.len() {
                self.deliver_first(world, LinkId(link));
            } else if leaf == ACTION {
                world.act(self);
            } else {
                world.wake(self, link - self.links.len() as u32);
            }
        }
    }

    fn events(&self) -> u64 {
        self.events
    }
    fn stats(&mut self, id: LinkId) -> LinkStats {
        self.links[id.index()].carry(&mut self.stats[id.index()]);
        self.stats[id.index()]
    }
    fn on_link(&self, id: LinkId) -> Vec<P> {
        self.links[id.index()].packets(&self.rings).collect()
    }
    fn link_down(&mut self, id: LinkId) -> Vec<P> {
        let lost = self.on_link(id);
        self.links[id.index()].take_down(self.now, &self.rings, &mut self.stats[id.index()]);
        self.tree.set(FIRST_LINK + id.0, Time::MAX);
        lost
    }
    fn link_up(&mut self, id: LinkId) {
        self.links[id.index()].bring_up();
    }
}

impl<P: Wire> Engine<P> {
    /// Takes the first packet off a link, settles the tree, and only then hands the packet over.
    #[inline(always)]
    fn deliver_first<W: World<Packet = P>>(&mut self, world: &mut W, id: LinkId) {
        let mut link = &mut self.links[id.index()];
        let mut packet = link.pop(&self.rings);
        if link.ring_is_empty() && link.waiting() > 0 {
            self.serve_dry(world, id);
            link = &mut self.links[id.index()];
            debug_assert!(!link.ring_is_empty(), "packets wait at link {id} and none was served");
        }
        let far = link.far();
        self.tree.set(FIRST_LINK + id.0, link.first_arrival(&self.rings));
        if self.large {
            self.look_ahead(id);
        }
        world.deliver(self, id, far, &mut packet);
    }

    /// Sends a packet out of a port that is not first in, first out, and either is watched or has packets that wait.
    #[inline(never)]
    fn send_lazily<W: World<Packet = P>>(&mut self, world: &mut W, id: LinkId, packet: &mut P) -> Sent {
        let now = self.now;
        let sent = self.lazy(id).send(world, packet, now);
        if let Sent::Starts(start) = sent {
            start_on(&mut self.links[id.index()], id, start, packet, &mut self.rings, &mut self.tree);
        }
        sent
    }
    #[inline(always)]
    fn lazy(&mut self, id: LinkId) -> Lazy<'_, P> {
        Lazy { id, link: &mut self.links[id.index()], stats: &mut self.stats[id.index()], rings: &mut self.rings }
    }

    /// The ring of a port has run dry, and packets wait in its discipline.
    #[inline(never)]
    fn serve_dry<W: World<Packet = P>>(&mut self, world: &mut W, id: LinkId) {
        let now = self.now;
        self.lazy(id).serve(world, now);
    }

    /// Has what the next events will need brought into the cache: the records of links first, then, some events later, their packets.
    #[inline(always)]
    fn look_ahead(&self, id: LinkId) {
        let [near, far] = self.tree.upcoming(FIRST_LINK + id.0).map(|leaf| leaf.wrapping_sub(FIRST_LINK) as usize);
        prefetch(self.links.as_ptr().wrapping_add(far));
        if let Some(link) = self.links.get(near) {
            link.prefetch_first(&self.rings);
        }
    }

    /// In every pause, so that the rings' 32-bit counters cannot run over.
    #[cold]
    fn pause(&mut self, budget: u64) -> Pause {
        for (link, stats) in self.links.iter().zip(&mut self.stats) {
            link.carry(stats);
        }
        let stopped = self.unspent.take();
        self.events += budget - stopped.unwrap_or(0);
        if stopped.is_some() { Pause::Stopped } else { Pause::Budget }
    }

    /// Moves the tree's base to the first event, from the true times: some leaf was set beyond what a key can hold.
    #[cold]
    fn rebase(&mut self) {
        let links = self.links.iter().map(|link| link.first_arrival(&self.rings));
        let times: Vec<Time> = self.wakes[..1].iter().copied().chain(links).chain(self.wakes[1..].iter().copied()).collect();
        self.tree.rebase(&times);
    }
}

/// Puts a packet on a link, service starting at `start`.
#[inline(always)]
fn start_on<P: Wire>(link: &mut Link, id: LinkId, start: Time, packet: &P, rings: &mut Rings<P>, tree: &mut Tree) {
    let was_empty = link.ring_is_empty();
    let arrival = link.push(start, packet, rings);
    if was_empty {
        tree.insert(FIRST_LINK + id.0, arrival);
    }
}

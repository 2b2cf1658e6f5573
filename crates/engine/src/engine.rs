//! The event loop: takes the next event, removes its packet from the link, updates the tree, calls
//! the world.

use crate::lazy::Lazy;
use crate::link::{FIRST_LEAF, Link, Sent};
use crate::nodes::{Nodes, Windows};
use crate::ring::{Rings, prefetch};
use crate::shaped::Shaped;
use crate::spec::{Far, LinkSpec};
use crate::stats::{LinkStats, waited};
use crate::tree::Tree;
use crate::world::{Driver, Links, Pause, World};
use base::{Dur, LinkId, Time, Wire};

/// The engine.
pub struct Engine<P> {
    pub(crate) tree: Tree,
    pub(crate) links: Vec<Link>,
    pub(crate) stats: Vec<LinkStats>,
    /// What packets that waited add to the `queue_area` of each link, until it is asked for. Together, since every second hop adds
    /// to one.
    pub(crate) areas: Vec<u64>,
    pub(crate) rings: Rings<P>,
    /// Links whose ports share a buffer.
    groups: Vec<Group>,
    /// The index of each link's group, and that of the link in its group; empty if there is no group.
    group_of: Vec<(u32, u32)>,
    /// Leaf of the first waker.
    first_waker: u32,
    pub(crate) wakes: Vec<Time>,
    pub(crate) now: Time,
    /// Number of events handled before the present run started or was resumed.
    pub(crate) events: u64,
    /// Whether there are so many links that their state does not fit into the nearer caches.
    pub(crate) large: bool,
    /// The run pauses after this many more events; -1 if the budget is spent.
    left: i64,
    /// The remaining budget when the run was stopped.
    pub(crate) unspent: Option<i64>,
    /// Number of events since the rings' counters were last added up.
    pub(crate) uncarried: u64,
    /// The state of runs in windows; without nodes if runs do not use them.
    pub(crate) windows: Windows,
    /// Whether a run in windows is in progress. Otherwise the tree has the events.
    pub(crate) in_windows: bool,
    /// Whether a port with a discipline was touched since this was reset.
    pub(crate) touched: bool,
}

/// Leaf of the global action. Links and wakers follow. The event of a link is a delivery, or the
/// next start at a shaped port whose wire is empty. The position of that start among deliveries of
/// the same time does not matter: every access to a port first makes it catch up.
const ACTION: u32 = 0;
/// Maximum number of events between two pauses. The rings' counters have 32 bits and are added up
/// after this many events.
pub(crate) const MOST: u64 = 1 << 28;
/// Number of links from which prefetching pays: some megabytes of packets and records.
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
    fn wake_at(&self, waker: u32) -> Time {
        self.wakes[waker as usize + 1]
    }
    #[inline(always)]
    fn set_wake(&mut self, waker: u32, at: Time) {
        let slot = waker as usize + 1;
        if self.wakes[slot] != at {
            assert!(at >= self.now, "waker {waker} wants to wake in the past");
            self.wakes[slot] = at;
            if !self.in_windows {
                self.tree.set(self.first_waker + waker, at);
            }
        }
    }
    fn wake_by(&mut self, waker: u32, at: Time) {
        let at = at.min(self.wake_at(waker));
        self.set_wake(waker, at);
        if self.in_windows {
            self.windows.note_wake(waker, at);
        }
    }
    #[inline(always)]
    fn send<W: World<Packet = P>>(&mut self, world: &mut W, id: LinkId, packet: &mut P) -> Sent {
        let now = self.now;
        let link = &mut self.links[id.index()];
        let start = if link.is_fifo() {
            let area = |area| self.areas[id.index()] += area;
            let Some(start) = link.admit(packet, now, &self.rings, area, || &mut self.stats[id.index()]) else {
                return if link.is_up() { Sent::Dropped } else { Sent::Down };
            };
            start
        } else {
            let start = link.admit_lone(packet, now, || &mut self.stats[id.index()]);
            match start {
                Some(start) => start,
                None if link.is_plain() => return self.send_lazily(world, id, packet),
                None => return self.send_specially(world, id, packet),
            }
        };
        let was_empty = link.ring_is_empty();
        let arrival = link.push(start, packet, &mut self.rings);
        if was_empty {
            self.arrives_first(id, arrival);
        }
        Sent::Starts(start)
    }
    #[inline(always)]
    fn catch_up<W: World<Packet = P>>(&mut self, world: &mut W, id: LinkId, until: Time) {
        if self.links[id.index()].is_shaped() {
            self.shaped(id).catch_up(world, until);
        } else {
            self.lazy(id).catch_up(world, until);
        }
    }
    #[inline(never)]
    fn alter<W: World<Packet = P>>(&mut self, world: &mut W, id: LinkId, change: impl FnOnce(&mut W)) {
        assert!(self.links[id.index()].is_shaped(), "only a shaped port can be held");
        let now = self.now;
        self.shaped(id).catch_up(world, now);
        change(world);
        self.shaped(id).ask_anew(world, now);
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
    fn fifo_backlog(&mut self, id: LinkId, until: Time) -> (u32, u64) {
        self.links[id.index()].occupancy(until, &self.rings)
    }
    fn free_at(&self, id: LinkId) -> Time {
        self.links[id.index()].free_at()
    }
    fn next_start(&self, id: LinkId) -> Time {
        let link = &self.links[id.index()];
        if link.waiting() > 0 { link.free_at().max(self.stats[id.index()].not_before()) } else { Time::MAX }
    }
    #[inline(always)]
    fn stats_mut(&mut self, id: LinkId) -> &mut LinkStats {
        &mut self.stats[id.index()]
    }
}

impl<P: Wire> Driver<P> for Engine<P> {
    fn new(links: &[(LinkSpec, Far)], wakers: u32) -> Engine<P> {
        let (groups, group_of) = groups_of(links);
        let first_waker = FIRST_LEAF + links.len() as u32;
        Engine {
            tree: Tree::new(first_waker + wakers),
            links: links.iter().map(|(spec, far)| Link::new(spec, *far)).collect(),
            stats: links.iter().map(|(spec, _)| LinkStats::new(spec)).collect(),
            areas: vec![0; links.len()],
            rings: Rings::default(),
            groups,
            group_of,
            first_waker,
            // The last one is that of nodes that are never woken.
            wakes: vec![Time::MAX; wakers as usize + 2],
            now: Time::ZERO,
            events: 0,
            large: links.len() >= LARGE,
            left: 0,
            unspent: None,
            uncarried: 0,
            windows: Windows::default(),
            in_windows: false,
            touched: false,
        }
    }

    fn set_action(&mut self, at: Time) {
        self.wakes[0] = at;
        self.tree.set(ACTION, at);
    }

    fn use_windows(&mut self, nodes: &Nodes, always: bool) {
        self.prepare_windows(nodes, always);
    }

    fn uses_windows(&self) -> bool {
        !self.windows.nodes.is_empty()
    }

    fn run<W: World<Packet = P>>(&mut self, world: &mut W, end: Time, budget: u64) -> Pause {
        if self.uses_windows() { self.run_in_windows(world, end, budget) } else { self.run_by_tree(world, end, budget) }
    }

    fn events(&self) -> u64 {
        self.events
    }
    fn stats(&mut self, id: LinkId) -> LinkStats {
        self.links[id.index()].carry(&mut self.stats[id.index()]);
        self.add_area(id);
        self.stats[id.index()]
    }
    fn queue_area(&self, id: LinkId) -> u64 {
        // A first-in first-out port counts the whole waiting time of a packet when it begins.
        let link = &self.links[id.index()];
        let start = |packet: &P| packet.arrival().before(link.delay).before(link.tx_time(packet.wire_len()));
        let to_come = |packet: P| waited(packet.wire_len(), start(&packet).since(self.now));
        let area = self.stats[id.index()].queue_area + self.areas[id.index()];
        area - link.packets(&self.rings).map(to_come).sum::<u64>()
    }
    fn on_link(&self, id: LinkId) -> Vec<P> {
        self.links[id.index()].packets(&self.rings).collect()
    }
    fn link_down(&mut self, id: LinkId) -> Vec<P> {
        let lost = self.on_link(id);
        self.add_area(id);
        self.links[id.index()].take_down(self.now, &self.rings, &mut self.stats[id.index()]);
        self.tree.set(FIRST_LEAF + id.0, Time::MAX);
        if self.links[id.index()].is_shaped() {
            let shaping = self.stats[id.index()].shaping();
            (shaping.hold.until, shaping.due) = (Time::ZERO, Time::MAX);
        }
        lost
    }
    fn link_up(&mut self, id: LinkId) {
        self.links[id.index()].bring_up();
    }
}

impl<P: Wire> Engine<P> {
    /// [`Driver::run`] by the tree.
    #[inline(never)]
    pub(crate) fn run_by_tree<W: World<Packet = P>>(&mut self, world: &mut W, end: Time, budget: u64) -> Pause {
        let budget = budget.clamp(1, MOST);
        (self.left, self.unspent) = (budget.cast_signed(), None);
        let mut limit = self.tree.limit(end);
        loop {
            // The event is counted before it is looked up, so that one instruction counts and
            // compares.
            self.left -= 1;
            if self.left < 0 {
                return self.spent(budget);
            }
            let key = self.tree.first();
            if key >= limit {
                let Some(later) = self.at_limit(end) else { return self.pause(budget, Pause::End) };
                limit = later;
                continue;
            }
            let (at, leaf) = self.tree.decode(key);
            debug_assert!(at >= self.now, "time runs backwards at leaf {leaf}");
            self.now = at;
            let link = leaf.wrapping_sub(FIRST_LEAF);
            if (link as usize) < self.links.len() {
                self.link_event(world, LinkId(link));
            } else if leaf == ACTION {
                self.set_action(Time::MAX);
                return self.pause(budget, Pause::Action);
            } else {
                world.wake(self, leaf - self.first_waker);
            }
        }
    }

    fn add_area(&mut self, id: LinkId) {
        self.stats[id.index()].queue_area += std::mem::take(&mut self.areas[id.index()]);
    }

    /// Handles the event of a link: takes off the first packet, which may have to be started
    /// before, updates the tree, and only then delivers the packet.
    #[inline(always)]
    fn link_event<W: World<Packet = P>>(&mut self, world: &mut W, id: LinkId) {
        let packets = self.links[id.index()].in_ring();
        if packets == 0 {
            return self.start_due(world, id);
        }
        self.arrive(world, id, packets);
    }
    /// Delivers the first of `packets` packets on the wire.
    #[inline(always)]
    fn arrive<W: World<Packet = P>>(&mut self, world: &mut W, id: LinkId, packets: u32) {
        let link = &mut self.links[id.index()];
        let mut packet = link.pop(&self.rings);
        let far = link.far();
        let next = match packets {
            1 if link.waiting() > 0 => self.serve_dry(world, id),
            1 => Time::MAX,
            _ => link.next_arrival(&self.rings),
        };
        self.tree.set(FIRST_LEAF + id.0, next);
        if self.large {
            self.look_ahead(id);
        }
        world.deliver(self, id, far, &mut packet);
    }

    /// Sends a packet out of a port with a discipline that is watched or has waiting packets.
    #[inline(never)]
    fn send_lazily<W: World<Packet = P>>(&mut self, world: &mut W, id: LinkId, packet: &mut P) -> Sent {
        let now = self.now;
        let sent = self.lazy(id).send(world, packet, now);
        if let Sent::Starts(start) = sent {
            self.begin(id, start, packet);
        }
        sent
    }
    /// Sends a packet out of a port with a discipline whose link is down, or which is shaped or
    /// shares a buffer. Separate from `send`, since its calls would slow down every hop.
    #[inline(never)]
    fn send_specially<W: World<Packet = P>>(&mut self, world: &mut W, id: LinkId, packet: &mut P) -> Sent {
        let now = self.now;
        if !self.links[id.index()].is_open()
            && let Some(sent) = self.refuse(world, id, packet)
        {
            return sent;
        }
        if !self.links[id.index()].is_shaped() {
            return self.send_lazily(world, id, packet);
        }
        if !self.links[id.index()].is_free(now) {
            return self.shaped(id).send(world, packet, now);
        }
        if !world.passes_shaped(id, packet, now) {
            return self.shaped(id).enter_idle(world, packet, now);
        }
        self.begin(id, now, packet);
        Sent::Starts(now)
    }
    /// Handles a packet for which there is no room: the link is down, or the port shares a buffer
    /// that is full. Returns `None` if there is room.
    #[cold]
    #[inline(never)]
    fn refuse<W: World<Packet = P>>(&mut self, world: &mut W, id: LinkId, packet: &mut P) -> Option<Sent> {
        let link = &self.links[id.index()];
        if !link.is_up() {
            return Some(Sent::Down);
        }
        (link.is_shared() && !self.has_room(world, id, packet)).then_some(Sent::Waits)
    }
    /// Returns whether a packet may stay at a port that shares a buffer: it need not wait, or there
    /// is room for it.
    fn has_room<W: World<Packet = P>>(&mut self, world: &mut W, id: LinkId, packet: &mut P) -> bool {
        let (now, (group, place)) = (self.now, self.group_of[id.index()]);
        let (group, place) = (group as usize, place as usize);
        for word in 0..self.groups[group].waiting.len() {
            let mut left = self.groups[group].waiting[word];
            while left != 0 {
                let (bit, other) =
                    (left & left.wrapping_neg(), self.groups[group].links[64 * word + left.trailing_zeros() as usize]);
                left -= bit;
                self.catch_up(world, other, now);
                if self.links[other.index()].waiting() == 0 {
                    self.groups[group].waiting[word] -= bit;
                }
            }
        }
        self.groups[group].waiting[place / 64] |= 1 << (place % 64);
        let link = &self.links[id.index()];
        !link.is_shaped() && link.is_free(now) || world.admits(id, packet, now)
    }
    #[inline(always)]
    pub(crate) fn lazy(&mut self, id: LinkId) -> Lazy<'_, P> {
        self.touched = true;
        Lazy { id, link: &mut self.links[id.index()], stats: &mut self.stats[id.index()], rings: &mut self.rings }
    }

    /// Handles the event of a shaped port with an empty wire: a packet that has not been started
    /// yet may arrive now.
    #[cold]
    #[inline(never)]
    fn start_due<W: World<Packet = P>>(&mut self, world: &mut W, id: LinkId) {
        let now = self.now;
        if self.shaped(id).start_due(world, now) {
            self.arrive(world, id, self.links[id.index()].in_ring());
        }
    }
    #[inline(always)]
    pub(crate) fn shaped(&mut self, id: LinkId) -> Shaped<'_, P> {
        self.touched = true;
        let port = Lazy { id, link: &mut self.links[id.index()], stats: &mut self.stats[id.index()], rings: &mut self.rings };
        Shaped { port, tree: &mut self.tree, windows: self.in_windows.then_some(&mut self.windows) }
    }

    /// Serves a port whose ring has become empty while packets wait in its discipline. Returns when
    /// the next event of the link is.
    #[inline(never)]
    pub(crate) fn serve_dry<W: World<Packet = P>>(&mut self, world: &mut W, id: LinkId) -> Time {
        let now = self.now;
        if self.links[id.index()].is_shaped() {
            return self.shaped(id).serve_dry(world, now);
        }
        self.lazy(id).serve(world, now);
        let link = &self.links[id.index()];
        debug_assert!(!link.ring_is_empty(), "packets wait at link {id} and none was served");
        link.first_arrival(&self.rings)
    }

    /// Prefetches what the next events need: the records of links first, and some events later
    /// their packets.
    #[inline(always)]
    fn look_ahead(&self, id: LinkId) {
        let [near, far] = self.tree.upcoming(FIRST_LEAF + id.0).map(|leaf| leaf.wrapping_sub(FIRST_LEAF) as usize);
        prefetch(self.links.as_ptr().wrapping_add(far));
        if let Some(link) = self.links.get(near) {
            link.prefetch_first(&self.rings);
        }
    }

    /// Handles the limit: no event is left before it, and none was handled. Returns a later limit
    /// if the keys could not hold the next time; otherwise the run ends.
    #[cold]
    #[inline(never)]
    fn at_limit(&mut self, end: Time) -> Option<u64> {
        self.left += 1;
        if self.tree.is_far(self.tree.first()) {
            self.rebase();
            let limit = self.tree.limit(end);
            if self.tree.first() < limit {
                return Some(limit);
            }
        }
        if end != Time::MAX {
            self.now = end;
        }
        None
    }

    /// Ends a run whose budget is spent or which was stopped.
    #[cold]
    fn spent(&mut self, budget: u64) -> Pause {
        let why = if self.unspent.is_some() { Pause::Stopped } else { Pause::Budget };
        self.left = self.unspent.take().unwrap_or(0);
        self.pause(budget, why)
    }

    /// Counts the events of a run that pauses, and adds up the rings' counters before they
    /// overflow.
    #[cold]
    fn pause(&mut self, budget: u64, why: Pause) -> Pause {
        let handled = budget - self.left.unsigned_abs();
        self.events += handled;
        self.uncarried += handled;
        if self.uncarried >= MOST {
            self.carry_all();
        }
        why
    }
    pub(crate) fn carry_all(&mut self) {
        self.uncarried = 0;
        self.links.iter().zip(&mut self.stats).for_each(|(link, stats)| link.carry(stats));
    }

    /// Moves the tree's base to the first event, using the true times, because some leaf was set
    /// beyond what a key can hold.
    #[cold]
    pub(crate) fn rebase(&mut self) {
        let event = |(link, stats): (&Link, &LinkStats)| {
            if link.ring_is_empty() { stats.due() } else { link.first_arrival(&self.rings) }
        };
        let links = self.links.iter().zip(&self.stats).map(event);
        let (action, wakers) = self.wakes.split_at(1);
        let times = action.iter().copied().chain(links).chain(wakers[..wakers.len() - 1].iter().copied());
        self.tree.rebase(&times.collect::<Vec<_>>());
    }
}

/// Links whose ports share a buffer.
#[derive(Debug, Default)]
struct Group {
    links: Vec<LinkId>,
    /// A bit for each link at whose port packets may wait. The others need not catch up.
    waiting: Vec<u64>,
}

/// Returns the links whose ports share a buffer, by group, and the place of each link.
fn groups_of(links: &[(LinkSpec, Far)]) -> (Vec<Group>, Vec<(u32, u32)>) {
    let most = links.iter().filter_map(|(spec, _)| spec.shared).max();
    let Some(most) = most else { return (Vec::new(), Vec::new()) };
    let mut groups: Vec<Group> = (0..=most).map(|_| Group::default()).collect();
    let place = |(n, (spec, _)): (u32, &(LinkSpec, Far))| {
        let group = spec.shared.unwrap_or(u32::MAX);
        let Some(Group { links, waiting }) = groups.get_mut(group as usize) else { return (group, 0) };
        links.push(LinkId(n));
        waiting.resize(links.len().div_ceil(64), 0);
        (group, links.len() as u32 - 1)
    };
    let group_of = (0..).zip(links).map(place).collect();
    (groups, group_of)
}

//! Runs in windows: node by node instead of event by event.
//!
//! No packet reaches another node in less than the smallest delay of a link. So in a window of time
//! that is not longer, nodes depend only on packets that were sent before the window. Each active
//! node handles all its events of a window before the next node does: it merges the arrivals at its
//! links and its wake-ups in the order in which the tree handles them, so that the results are the
//! same.
//!
//! The times at which the first packets of the links that end at a node arrive are next to each
//! other, and nodes are handled by number. So it is known early what the next nodes will need, and
//! it is prefetched. In a large network this makes up for the work of marking and sorting; in a
//! small one, which fits into the caches, the tree is faster.
//!
//! A window is refused while the last flow may end in it: a run ends at that event, before later
//! events of other nodes. The tree then handles the events of some windows in order.
//!
//! An engine that has only some of the nodes ([`crate::cut`]) stays in windows from run to run. Links
//! that end in another engine have no events here: their packets are handed over before they arrive.

use crate::engine::{Engine, MOST};
use crate::link::FIRST_LEAF;
use crate::nodes::{AHEAD, Due, Nodes, WindowNode, Windows};
use crate::nth::{nth, nth_mut};
use crate::ring::prefetch;
use crate::spec::Far;
use crate::world::{Links as _, Pause, World};
use base::{Dur, LinkId, Time, Wire};
use std::mem::take;

/// How many turns ahead the links and the events of a node are looked up.
const FAR: usize = 12;
/// How many turns ahead their packets are prefetched.
const MIDDLE: usize = 8;
/// How many turns ahead the world prefetches what it needs for these packets.
const NEAR: usize = 4;
const _: () = assert!(AHEAD > FAR);

/// Numbers of 64 bits in a cache line.
const LINE: u32 = 8;

/// The bits of a key that name the place.
const PLACE: u64 = u32::MAX as u64;

/// Why a run in windows paused.
enum Left {
    /// The given time is reached.
    Until,
    /// The budget of events is used up.
    Budget,
    /// The last flow may end in the next window.
    Careful,
    /// The turns of nodes have so few events that the tree is faster.
    Thin,
}

/// Events of a run after which it is known whether turns have few events.
const ENOUGH: u64 = 1 << 14;
/// Events of a turn from which windows pay. On a fat tree of k = 32 they are 1.5 times as fast as the tree with 5.9 events a turn, and
/// half as fast with 1.2.
const FULL: u64 = 3;
/// Events by the tree after thin windows until windows are tried again: at first, and at most. To enter windows takes as long as
/// some ten thousand events.
const LEAST: u64 = 1 << 20;
const MOST_BY_TREE: u64 = 1 << 25;

/// Sorts keys. Mostly there are few: then without a branch that depends on them.
#[inline(always)]
fn sort(keys: &mut [u64]) {
    if keys.len() > 8 {
        keys.sort_unstable();
        return;
    }
    for i in 1..keys.len() {
        let mut key = keys[i];
        for j in (0..i).rev() {
            let other = keys[j];
            keys[j + 1] = other.max(key);
            key = other.min(key);
        }
        keys[0] = key;
    }
}

impl<P: Wire> Engine<P> {
    /// Lets runs use windows; `always`, or as long as they are faster.
    pub(crate) fn prepare_windows(&mut self, nodes: &Nodes, always: bool) {
        // A key has 32 bits for the time.
        let width = self.links.iter().map(|link| link.delay).min().unwrap_or(Dur(1)).min(Dur(1 << 31));
        self.windows = Windows::new(nodes, width, always);
    }

    /// [`Driver::run`](crate::Driver::run) in windows.
    pub(crate) fn run_in_windows<W: World<Packet = P>>(&mut self, world: &mut W, end: Time, mut budget: u64) -> Pause {
        if self.events < self.windows.tree_until {
            return self.run_by_tree(world, end, budget);
        }
        let until = end.min(self.wakes[0]);
        loop {
            let before = self.events;
            if !self.in_windows {
                self.enter(world);
            }
            let left = self.run_windows(world, until, budget);
            if self.windows.foreign.is_empty() || !matches!(left, Left::Until) {
                self.leave();
            }
            budget = budget.saturating_sub(self.events - before);
            let limit = match left {
                Left::Budget => return Pause::Budget,
                // Nothing is left before the action.
                Left::Until if self.wakes[0] < end => return self.run_by_tree(world, end, 1),
                Left::Until => return Pause::End,
                Left::Thin => return self.run_by_tree(world, end, budget.max(1)),
                Left::Careful => {
                    let windows = &mut self.windows;
                    windows.careful = (windows.careful * 2).min(1 << 20);
                    let time = Dur(windows.width.0 * windows.careful);
                    self.now.after(time).min(end)
                }
            };
            let before = self.events;
            let pause = self.run_by_tree(world, limit, budget.max(1));
            budget = budget.saturating_sub(self.events - before);
            if pause != Pause::End || limit == end {
                return pause;
            }
            if budget == 0 {
                return Pause::Budget;
            }
        }
    }

    /// Begins to run in windows: collects the events of all nodes from the links and the wake-ups.
    fn enter<W: World<Packet = P>>(&mut self, world: &mut W) {
        // The tree may not have started all service due before now, and what starts then may arrive in the first window.
        let before = self.now.before(Dur(1));
        for id in (0..self.links.len() as u32).map(LinkId) {
            if self.links[id.index()].waiting() > 0 {
                self.catch_up(world, id, before);
            }
        }
        self.in_windows = true;
        let Engine { windows, links, rings, .. } = self;
        windows.agenda.clear();
        for (first, link) in windows.first.iter_mut().zip(&windows.links) {
            *first = links[*link as usize].first_arrival(rings);
        }
        for node in &mut windows.nodes {
            node.waits = (node.out[0]..node.out[1]).any(|link| links[link as usize].waiting() > 0);
        }
        for node in 0..self.windows.nodes.len() as u32 - 1 {
            if !self.windows.foreign.get(node as usize).copied().unwrap_or(false) {
                self.note_all(node);
            }
        }
    }
    /// Lets the tree have the events of a part that has stayed in windows.
    pub fn leave_windows(&mut self) {
        if self.in_windows {
            self.leave();
        }
    }
    /// Ends a run in windows: the tree has the events again.
    fn leave(&mut self) {
        self.in_windows = false;
        for id in (0..self.links.len() as u32).map(LinkId) {
            let link = &self.links[id.index()];
            if link.is_shaped() && link.ring_is_empty() {
                self.shaped(id).next();
            }
        }
        self.rebase();
    }
    /// Notes all events of a node.
    fn note_all(&mut self, node: u32) {
        let Engine { windows, wakes, links, stats, now, .. } = self;
        let this = windows.nodes[node as usize];
        let arrivals = windows.first[windows.places(node)].iter().copied();
        let waiting = (this.out[0]..this.out[1]).map(|id| id as usize).filter(|id| this.waits && links[*id].waiting() > 0);
        let service = waiting.map(|id| links[id].free_at().max(stats[id].not_before()).max(*now));
        arrivals.chain(service).chain([wakes[this.waker as usize + 1]]).for_each(|time| windows.agenda.note(node, time));
    }

    /// Runs window after window.
    fn run_windows<W: World<Packet = P>>(&mut self, world: &mut W, until: Time, budget: u64) -> Left {
        let (mut nodes, mut due) = (take(&mut self.windows.turns), take(&mut self.windows.due));
        nodes.resize(self.windows.agenda.most(), 0);
        let left = self.run_windows_with(world, until, budget, &mut nodes, &mut due);
        (self.windows.turns, self.windows.due) = (nodes, due);
        left
    }
    fn run_windows_with<W: World<Packet = P>>(
        &mut self,
        world: &mut W,
        until: Time,
        budget: u64,
        nodes: &mut [u32],
        due: &mut [Due; AHEAD],
    ) -> Left {
        let mut handled = 0;
        loop {
            let Windows { agenda, width, .. } = &self.windows;
            let (first, width) = (agenda.first(), *width);
            let start = first.max(self.now);
            if start >= until {
                self.now = if until < Time::MAX { until } else { self.now };
                return Left::Until;
            }
            if handled >= budget {
                return Left::Budget;
            }
            let [events, turns] = self.windows.counts;
            if events >= ENOUGH {
                self.windows.counts = [0; 2];
                if events < FULL * turns && !self.windows.always {
                    self.windows.thin = (self.windows.thin * 2).clamp(LEAST, MOST_BY_TREE);
                    self.windows.tree_until = self.events + self.windows.thin;
                    return Left::Thin;
                }
                self.windows.thin = 0;
            }
            let stop = start.after(width).min(until);
            // The run of several engines has seen to it that it does not end in this window.
            if self.windows.foreign.is_empty() && world.open_until(start) < stop {
                return Left::Careful;
            }
            let count = self.windows.agenda.take(stop, nodes);
            let events = match self.large && count > FAR {
                true => self.run_window_ahead(world, &nodes[..count], due, (start, stop)),
                false => self.run_window(world, &nodes[..count], &mut due[0], (start, stop)),
            };
            (self.events, self.uncarried, handled) = (self.events + events, self.uncarried + events, handled + events);
            self.windows.counts[0] += events;
            self.windows.counts[1] += count as u64;
            if self.uncarried >= MOST {
                self.carry_all();
            }
            self.now = stop;
        }
    }

    /// Handles the events of all nodes in a window. Returns their number.
    #[inline(never)]
    fn run_window<W: World<Packet = P>>(&mut self, world: &mut W, nodes: &[u32], due: &mut Due, window: (Time, Time)) -> u64 {
        let mut handled = 0;
        for node in nodes {
            self.collect(*node, window, due);
            handled += self.turn(world, *node, window, due);
        }
        handled
    }

    /// Handles the events of all nodes in a window, and prefetches those of the next nodes. Returns their number.
    #[inline(never)]
    fn run_window_ahead<W: World<Packet = P>>(
        &mut self,
        world: &mut W,
        nodes: &[u32],
        due: &mut [Due; AHEAD],
        window: (Time, Time),
    ) -> u64 {
        let mut handled = 0;
        // Nothing that a node sends arrives in this window, so that its events can be collected
        // before the turns of the nodes before it.
        for n in 0..nodes.len() + FAR {
            if let Some(node) = nodes.get(n) {
                self.collect(*node, window, &mut due[n % AHEAD]);
                self.prefetch_links(*node, &due[n % AHEAD]);
            }
            if let Some(turn) = n.checked_sub(FAR - MIDDLE).filter(|turn| *turn < nodes.len()) {
                self.prefetch_packets(nodes[turn], &due[turn % AHEAD]);
            }
            if let Some(turn) = n.checked_sub(FAR - NEAR).filter(|turn| *turn < nodes.len()) {
                self.prefetch_records(world, &due[turn % AHEAD]);
            }
            if let Some(turn) = n.checked_sub(FAR) {
                handled += self.turn(world, nodes[turn], window, &mut due[turn % AHEAD]);
            }
        }
        handled
    }

    /// Collects the first arrival in the window of each link that ends at a node.
    #[inline(always)]
    fn collect(&self, node: u32, (start, stop): (Time, Time), due: &mut Due) {
        let windows = &self.windows;
        let places = windows.places(node);
        if due.keys.len() < places.len() {
            due.keys.resize(places.len(), 0);
        }
        let (mut count, mut later) = (0, Time::MAX);
        for place in places {
            let arrival = *nth(&windows.first, place);
            // It is overwritten if it is not in the window.
            *nth_mut(&mut due.keys, count) = arrival.0.wrapping_sub(start.0) << 32 | place as u64;
            let is_due = arrival < stop;
            count += usize::from(is_due);
            later = later.min(if is_due { Time::MAX } else { arrival });
        }
        (due.count, due.later) = (count, later);
        sort(&mut due.keys[..count]);
    }
    /// Prefetches the links at a node that its events may need.
    #[inline(always)]
    fn prefetch_links(&self, node: u32, due: &Due) {
        let windows = &self.windows;
        for key in &due.keys[..due.count] {
            prefetch(self.links.as_ptr().wrapping_add(*nth(&windows.links, (key & PLACE) as usize) as usize));
        }
        let [from, to] = nth(&windows.nodes, node as usize).out;
        for id in from..to {
            prefetch(self.links.as_ptr().wrapping_add(id as usize));
        }
        for id in (from..to + LINE - 1).step_by(LINE as usize) {
            windows.prefetch_lane(id);
            prefetch(self.areas.as_ptr().wrapping_add(id as usize));
        }
    }
    /// Prefetches the packets that arrive at a node, and the places for those that it sends.
    #[inline(always)]
    fn prefetch_packets(&self, node: u32, due: &Due) {
        let windows = &self.windows;
        let [from, to] = nth(&windows.nodes, node as usize).out;
        for id in from..to {
            nth(&self.links, id as usize).prefetch_last(&self.rings);
        }
        for key in &due.keys[..due.count] {
            nth(&self.links, *nth(&windows.links, (key & PLACE) as usize) as usize).prefetch_first(&self.rings);
        }
    }
    /// Prefetches what the world needs for the packets that arrive at a host.
    #[inline(always)]
    fn prefetch_records<W: World<Packet = P>>(&self, world: &W, due: &Due) {
        let windows = &self.windows;
        for key in &due.keys[..due.count] {
            let link = nth(&self.links, *nth(&windows.links, (key & PLACE) as usize) as usize);
            if let Far::Host(host) = link.far()
                && !link.ring_is_empty()
            {
                world.prefetch(host, link.first(&self.rings));
            }
        }
    }

    /// Handles the events of a node in a window. Returns their number.
    #[inline(always)]
    fn turn<W: World<Packet = P>>(&mut self, world: &mut W, node: u32, (start, stop): (Time, Time), due: &mut Due) -> u64 {
        let WindowNode { waker, out, waits, .. } = *nth(&self.windows.nodes, node as usize);
        let slot = waker as usize + 1;
        let (mut n, mut handled, mut later) = (0, 0, due.later);
        loop {
            let wake = *nth(&self.wakes, slot);
            let key = if n < due.count { *nth(&due.keys, n) } else { u64::MAX };
            let at = start.0 + (key >> 32);
            if n < due.count && at <= wake.0 {
                self.now = Time(at);
                let place = (key & PLACE) as usize;
                let id = *nth(&self.windows.links, place);
                let link = nth_mut(&mut self.links, id as usize);
                let mut packet = link.pop(&self.rings);
                let far = link.far();
                let next = link.first_arrival(&self.rings);
                *nth_mut(&mut self.windows.first, place) = next;
                if next < stop {
                    // The next packet of the link has its place in the order.
                    let key = (next.0 - start.0) << 32 | place as u64;
                    let mut m = n;
                    while m + 1 < due.count && *nth(&due.keys, m + 1) < key {
                        *nth_mut(&mut due.keys, m) = *nth(&due.keys, m + 1);
                        m += 1;
                    }
                    *nth_mut(&mut due.keys, m) = key;
                } else {
                    later = later.min(next);
                    n += 1;
                }
                world.deliver(self, LinkId(id), far, &mut packet);
            } else if wake < stop {
                self.now = wake;
                world.wake(self, waker);
            } else {
                self.windows.agenda.note(node, later.min(wake));
                break;
            }
            handled += 1;
        }
        if self.touched | waits {
            self.serve_ports(world, node, out, stop);
        }
        handled
    }

    /// Starts all service before `stop` at the ports of a node, so that their far ends know all that
    /// arrives in the next window, and marks when the next service is due.
    #[inline(never)]
    fn serve_ports<W: World<Packet = P>>(&mut self, world: &mut W, node: u32, out: [u32; 2], stop: Time) {
        let mut next = Time::MAX;
        for id in (out[0]..out[1]).map(LinkId) {
            if self.links[id.index()].waiting() > 0 {
                let until = stop.before(Dur(1));
                match self.links[id.index()].is_shaped() {
                    true => self.shaped(id).catch_up(world, until),
                    false => self.lazy(id).serve(world, until),
                }
                next = next.min(self.next_start(id));
            }
        }
        self.touched = false;
        let windows = &mut self.windows;
        windows.nodes[node as usize].waits = next < Time::MAX;
        windows.agenda.note(node, next);
    }

    /// Puts a packet whose service starts at `start` on the wire. Its arrival is the next event of
    /// the link if the wire was empty.
    #[inline(always)]
    pub(crate) fn begin(&mut self, id: LinkId, start: Time, packet: &P) {
        let link = &mut self.links[id.index()];
        let was_empty = link.ring_is_empty();
        let arrival = link.push(start, packet, &mut self.rings);
        if was_empty {
            self.arrives_first(id, arrival);
        }
    }
    /// Notes when the first packet of a link arrives.
    #[inline(always)]
    pub(crate) fn arrives_first(&mut self, id: LinkId, arrival: Time) {
        if self.in_windows {
            self.windows.note(id, arrival);
        } else {
            self.tree.insert(FIRST_LEAF + id.0, arrival);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::sort;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn keys_are_sorted(mut keys in prop::collection::vec(any::<u64>(), 0..20)) {
            let mut expected = keys.clone();
            expected.sort_unstable();
            sort(&mut keys);
            prop_assert_eq!(keys, expected);
        }
    }
}

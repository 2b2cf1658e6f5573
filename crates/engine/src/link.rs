//! A directed link: transmitter, wire and, for first-in first-out ports, the queue.
//!
//! The ring holds, in order, all packets that have a departure time and are not delivered: the
//! packets on the wire and, at a first-in first-out port, the waiting packets, whose departures are
//! known when they arrive. Such a port needs no service event, and its occupancy is computed only
//! when it may matter. At other ports the waiting packets are in a discipline outside the engine,
//! which stores only their number. But a packet that waits with no other packet in the queue is put
//! on the wire ahead of its time, since most often no other packet arrives before its start; it is
//! recalled before another packet starts to wait, or before the port is read.

use crate::ring::{Ring, Rings};
use crate::spec::{Far, Fifo, LinkSpec};
use crate::stats::{LinkStats, PortState, waited};
use base::{Dur, Limit, Time, Wire};

/// The result of sending a packet out of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Its transmission starts at this time. At a port with a discipline that is not watched, the
    /// packet may be recalled before that time.
    Starts(Time),
    /// It entered the port's discipline, where it waits or was dropped.
    Waits,
    /// It was dropped because the queue is full.
    Dropped,
    /// The link is down. The caller counts the packet.
    Down,
}

/// A link, in one cache line.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Link {
    ring: Ring,
    /// First-in first-out: a counter of the ring at or before the first packet that has not
    /// departed. Otherwise: the number of packets that wait in the discipline.
    queue: u32,
    /// The flags in the lower bits, the far end in the upper ones: a host, or the first outgoing
    /// link of a switch.
    far: u32,
    /// First-in first-out: when the exact occupancy is needed, see [`Exact`]. Otherwise: the start
    /// of service of the last packet that waited with no other packet in the queue.
    bound: u64,
    free_at: Time,
    pub delay: Dur,
    /// Picoseconds per byte with 16 fractional bits.
    ps_per_byte: u64,
    tx_bytes: u64,
}

const _: () = assert!(size_of::<Link>() == 64);

/// Leaf of the first link in the tree. The leaf before it is that of the global action.
pub(crate) const FIRST_LEAF: u32 = 1;

/// Flag: the port is served lazily.
const LAZY: u32 = 1;
/// Flag: the link is down.
const DOWN: u32 = 2;
/// Flag: the world must see every packet.
const WATCHED: u32 = 4;
/// Flag: the far end is a host.
const HOST: u32 = 8;
/// Flag: the port is shaped.
const SHAPED: u32 = 16;
/// Flag: the port shares a buffer with others.
const SHARED: u32 = 32;
/// Bits of the flags.
const FLAGS: u32 = 6;

/// When the exact occupancy of a first-in first-out port is needed: the two halves of a word.
#[derive(Clone, Copy)]
struct Exact {
    /// If more packets than this are known, for a limit or threshold in packets.
    above: u32,
    /// If the backlog is at least this many times 1024 ps, for limits and thresholds in bytes and
    /// the record of `max_queue_bytes`.
    from: u32,
}

impl Exact {
    #[inline(always)]
    fn of(word: u64) -> Exact {
        Exact { above: word as u32, from: (word >> 32) as u32 }
    }
    fn word(self) -> u64 {
        u64::from(self.from) << 32 | u64::from(self.above)
    }
}

impl Link {
    pub fn new(spec: &LinkSpec, far: Far) -> Link {
        assert!(spec.delay > Dur::ZERO, "a link needs a propagation delay");
        assert!(spec.fifo.is_none() || !spec.shaped, "a first-in first-out queue is not shaped");
        assert!(spec.shared.is_none() || spec.fifo.is_none() && (spec.watched || spec.shaped), "a packet could wait unseen");
        let port = match spec.fifo {
            None if spec.shaped => LAZY | WATCHED | SHAPED,
            None if spec.watched => LAZY | WATCHED,
            None => LAZY,
            Some(_) => 0,
        };
        let (end, id) = match far {
            Far::Host(host) => (HOST, host),
            Far::Switch(out_base) => (0, out_base),
        };
        assert!(id < 1 << (u32::BITS - FLAGS), "more links or hosts than can be numbered");
        let packets = |bound: Limit| if let Limit::Packets(n) = bound { n } else { u32::MAX };
        let exact = |fifo: Fifo| Exact { above: packets(fifo.limit).min(packets(fifo.mark)), from: 1 };
        Link {
            ring: Ring::new(),
            queue: 0,
            far: id << FLAGS | end | port | if spec.shared.is_some() { SHARED } else { 0 },
            bound: spec.fifo.map_or(0, |fifo| exact(fifo).word()),
            free_at: Time::ZERO,
            delay: spec.delay,
            ps_per_byte: spec.rate.ps_per_byte_fp16(),
            tx_bytes: 0,
        }
    }
    #[inline(always)]
    pub fn is_fifo(&self) -> bool {
        self.far & LAZY == 0
    }
    /// Returns whether the link of a lazily served port is up, and the port is not shaped and
    /// shares no buffer.
    #[inline(always)]
    pub fn is_plain(&self) -> bool {
        self.far & (DOWN | SHAPED | SHARED) == 0
    }
    /// Returns whether the link is up and the port shares no buffer.
    #[inline(always)]
    pub fn is_open(&self) -> bool {
        self.far & (DOWN | SHARED) == 0
    }
    pub fn is_shared(&self) -> bool {
        self.far & SHARED != 0
    }
    #[inline(always)]
    pub fn is_shaped(&self) -> bool {
        self.far & SHAPED != 0
    }
    pub fn is_up(&self) -> bool {
        self.far & DOWN == 0
    }
    /// Returns the far end of the link.
    #[inline(always)]
    pub fn far(&self) -> Far {
        let id = self.far >> FLAGS;
        if self.far & HOST != 0 { Far::Host(id) } else { Far::Switch(id) }
    }
    /// Returns when the service of a packet starts at this lazily served port, if the world need
    /// not see the packet: at once if the port is idle, or next if no other packet waits.
    #[inline(always)]
    pub fn admit_lone<'a, P: Wire>(&mut self, packet: &P, now: Time, stats: impl FnOnce() -> &'a mut LinkStats) -> Option<Time> {
        debug_assert!(!self.is_fifo());
        if self.far & (WATCHED | DOWN) != 0 || self.queue > 0 {
            return None;
        }
        if self.free_at <= now {
            return Some(now);
        }
        if self.bound > now.0 {
            return None;
        }
        self.bound = self.free_at.0;
        let (stats, len) = (stats(), packet.wire_len());
        stats.waited(len, self.free_at - now);
        stats.max_queue_bytes = stats.max_queue_bytes.max(u64::from(len));
        stats.port = PortState::AloneSince(now);
        Some(self.free_at)
    }
    /// Takes back from the wire the packet that waits with no other packet in the queue of a lazily
    /// served port, if its service has not started by `until`. Its arrival is again that at the
    /// port.
    #[inline(always)]
    pub fn recall<P: Wire>(&mut self, until: Time, rings: &Rings<P>, stats: &mut LinkStats) -> Option<P> {
        if self.is_fifo() || self.bound <= until.0 {
            return None;
        }
        let mut packet = self.ring.unpush(rings);
        let (len, start) = (packet.wire_len(), Time(self.bound));
        let PortState::AloneSince(since) = stats.port else { unreachable!("not first in, first out") };
        packet.set_arrival(since);
        stats.queue_area -= waited(len, start - since);
        self.tx_bytes -= u64::from(len);
        (self.free_at, self.bound) = (start, 0);
        Some(packet)
    }
    #[inline(always)]
    pub fn free_at(&self) -> Time {
        self.free_at
    }
    #[inline(always)]
    pub fn ring_is_empty(&self) -> bool {
        self.ring.is_empty()
    }
    /// Returns whether a port that is not first in, first out is idle with an empty discipline.
    #[inline(always)]
    pub fn is_free(&self, now: Time) -> bool {
        self.free_at <= now && self.queue == 0
    }
    /// Returns the number of packets that wait in a discipline; zero at first-in first-out ports,
    /// whose waiting packets are in the ring.
    #[inline(always)]
    pub fn waiting(&self) -> u32 {
        if self.is_fifo() { 0 } else { self.queue }
    }
    #[inline(always)]
    pub fn set_waiting(&mut self, packets: u32) {
        debug_assert!(!self.is_fifo());
        self.queue = packets;
    }
    /// Returns the transmission time, `ceil(8e12 * bytes / rate)` ps.
    #[inline(always)]
    pub fn tx_time(&self, bytes: u32) -> Dur {
        Dur((u64::from(bytes) * self.ps_per_byte + 0xffff) >> 16)
    }
    /// Returns when a packet arrives that starts at `start` (`Time::MAX` for never) at an idle
    /// transmitter.
    #[inline(always)]
    pub fn arrival_of(&self, start: Time, wire_len: u32) -> Time {
        debug_assert!(start >= self.free_at);
        Time(start.0.saturating_add(self.tx_time(wire_len).0).saturating_add(self.delay.0))
    }
    /// Returns the number of packets in the ring.
    #[inline(always)]
    pub fn in_ring(&self) -> u32 {
        self.ring.len()
    }
    /// Returns when the first packet arrives; `Time::MAX` if there is none.
    #[inline(always)]
    pub fn first_arrival<P: Wire>(&self, rings: &Rings<P>) -> Time {
        if self.ring.is_empty() { Time::MAX } else { self.next_arrival(rings) }
    }
    /// Returns when the first packet arrives. There must be one.
    #[inline(always)]
    pub fn next_arrival<P: Wire>(&self, rings: &Rings<P>) -> Time {
        self.ring.get(self.ring.head(), rings).arrival()
    }
    #[inline(always)]
    pub fn prefetch_first<P: Wire>(&self, rings: &Rings<P>) {
        self.ring.prefetch(rings);
    }
    /// Prefetches the place of the next packet that is put on the wire.
    #[inline(always)]
    pub fn prefetch_last<P: Wire>(&self, rings: &Rings<P>) {
        self.ring.prefetch_last(rings);
    }
    /// Returns the first packet. There must be one.
    #[inline(always)]
    pub fn first<'a, P: Wire>(&self, rings: &'a Rings<P>) -> &'a P {
        self.ring.get(self.ring.head(), rings)
    }
    #[inline(always)]
    pub fn pop<P: Wire>(&mut self, rings: &Rings<P>) -> P {
        self.ring.pop(rings)
    }
    /// Puts a packet on the wire that another engine has sent. Returns whether the wire was empty.
    pub fn put<P: Wire>(&mut self, packet: &P, rings: &mut Rings<P>) -> bool {
        let was_empty = self.ring_is_empty();
        self.ring.push(packet, rings);
        was_empty
    }
    /// Removes all packets from the wire of a link whose port is in another engine.
    pub fn clear(&mut self) {
        self.ring.clear();
    }
    /// Puts back packets that were [popped](Link::pop) last, in their order.
    pub fn unpop<P: Wire>(&mut self, packets: &[P], rings: &mut Rings<P>, stats: &mut LinkStats) {
        self.carry(stats);
        stats.delivered -= packets.len() as u64;
        self.ring.unpop(packets, rings);
        stats.carried.0 = self.ring.head();
    }
    pub fn packets<'a, P: Wire>(&self, rings: &'a Rings<P>) -> impl Iterator<Item = P> + use<'a, P> {
        let ring = self.ring;
        (0..ring.len()).map(move |i| *ring.get(ring.head().wrapping_add(i), rings))
    }

    /// Puts a packet whose service starts at `start` on the wire. Returns its arrival.
    #[inline(always)]
    pub fn push<P: Wire>(&mut self, start: Time, packet: &P, rings: &mut Rings<P>) -> Time {
        debug_assert!(start >= self.free_at, "two packets on one transmitter");
        let len = packet.wire_len();
        // Unchecked sums, unlike those of `Time`: configurations that could overflow them are
        // refused before a run.
        self.free_at = Time(start.0 + self.tx_time(len).0);
        self.tx_bytes += u64::from(len);
        let arrival = Time(self.free_at.0 + self.delay.0);
        self.ring.push(packet, rings).set_arrival(arrival);
        arrival
    }

    /// Admits a packet to a first-in first-out port if it fits, and marks it if required. Returns
    /// when its service starts. Its waiting time is added to `area`, or to `stats` if they are
    /// needed.
    #[inline(always)]
    pub fn admit<'a, P: Wire>(
        &mut self,
        packet: &mut P,
        now: Time,
        rings: &Rings<P>,
        area: impl FnOnce(u64),
        stats: impl FnOnce() -> &'a mut LinkStats,
    ) -> Option<Time> {
        let len = packet.wire_len();
        let idle = self.free_at <= now;
        // An idle port has an empty queue: a select, not a branch.
        self.queue = if idle { self.ring.tail() } else { self.queue };
        let start = self.free_at.max(now);
        let backlog = if idle { 0 } else { start.0 + self.tx_time(len).0 - now.0 };
        let known = self.ring.tail().wrapping_sub(self.queue);
        // `known` counts the packet in transmission, which does not wait.
        let exact = Exact::of(self.bound);
        if (known > exact.above) | (backlog >> 10 >= u64::from(exact.from)) {
            return self.admit_exactly(packet, now, rings, stats()).then_some(start);
        }
        if !idle {
            area(waited(len, start - now));
        }
        Some(start)
    }

    /// Does the same as [`Link::admit`] with the exact occupancy, and returns whether the packet
    /// fits. Also updates `max_queue_bytes`, and counts drops and marks.
    #[cold]
    #[inline(never)]
    fn admit_exactly<P: Wire>(&mut self, packet: &mut P, now: Time, rings: &Rings<P>, stats: &mut LinkStats) -> bool {
        if !self.is_up() {
            return false;
        }
        let (idle, len) = (self.free_at <= now, packet.wire_len());
        let (packets, bytes) = self.occupancy(now, rings);
        let (packets, bytes) = (packets + 1, bytes + u64::from(len));
        let PortState::Fifo(Fifo { limit, mark }) = stats.port else { unreachable!("first in, first out") };
        if !idle {
            if limit.exceeded_by(packets, bytes) {
                stats.dropped(len);
                return false;
            }
            stats.waited(len, self.free_at - now);
            stats.max_queue_bytes = stats.max_queue_bytes.max(bytes);
            if mark.exceeded_by(packets, bytes) {
                stats.marks += u64::from(packet.mark());
            }
        }
        // The queue is at most as long as the backlog: below this value no record is broken and no
        // bound in bytes is reached.
        let least = [limit, mark].into_iter().fold(stats.max_queue_bytes, |least, bound| match bound {
            Limit::Bytes(n) => least.min(n),
            _ => least,
        });
        // At least one, so that idle ports stay on the fast path.
        self.look_from(u32::try_from((u128::from(least) * u128::from(self.ps_per_byte)) >> 26).unwrap_or(u32::MAX).max(1));
        true
    }

    /// Returns the packets and bytes that wait once all service up to and including `now` has
    /// started.
    pub fn occupancy<P: Wire>(&mut self, now: Time, rings: &Rings<P>) -> (u32, u64) {
        let (head, tail) = (self.ring.head(), self.ring.tail());
        // All packets below `head` have arrived, so they have departed.
        if self.queue.wrapping_sub(head) > tail.wrapping_sub(head) {
            self.queue = head;
        }
        let departed = |counter: u32| self.ring.get(counter, rings).arrival().0 - self.delay.0 <= now.0;
        let mut first = self.queue;
        while first != tail && departed(first) {
            first = first.wrapping_add(1);
        }
        self.queue = first;
        if first == tail {
            return (0, 0);
        }
        // The first packet that has not departed is in transmission. The others follow back to
        // back, so their time gives their bytes.
        let departs = self.ring.get(first, rings).arrival().0 - self.delay.0;
        let time = self.free_at.0 - departs;
        let bytes = match time >> 48 {
            0 => (time << 16) / self.ps_per_byte,
            _ => ((u128::from(time) << 16) / u128::from(self.ps_per_byte)) as u64,
        };
        (tail.wrapping_sub(first) - 1, bytes)
    }

    /// Returns how long the transmitter has been busy up to `now`: all transmissions that have a
    /// time, less their remaining time.
    pub fn busy(&self, now: Time, stats: &LinkStats) -> Dur {
        let all = (u128::from(self.tx_bytes) * u128::from(self.ps_per_byte)) >> 16;
        let rest = stats.cut.0 + self.free_at.since(now).0;
        Dur((all as u64).saturating_sub(rest))
    }
    /// Adds the ring's 32-bit counters to the 64-bit ones. Must be called at least once in 2^31
    /// packets.
    pub fn carry(&self, stats: &mut LinkStats) {
        let (head, tail) = stats.carried;
        stats.delivered += u64::from(self.ring.head().wrapping_sub(head));
        // Negative if a packet that was counted has been recalled.
        let sent = self.ring.tail().wrapping_sub(tail) as i32;
        stats.tx_packets = stats.tx_packets.wrapping_add_signed(sent.into());
        stats.carried = (self.ring.head(), self.ring.tail());
        stats.tx_bytes = self.tx_bytes;
    }

    /// Loses all packets on the link. Packets of a first-in first-out port whose service has not
    /// started (a start at exactly `now` counts as not started) were never sent: their statistics,
    /// which were counted in advance, are subtracted.
    pub fn take_down<P: Wire>(&mut self, now: Time, rings: &Rings<P>, stats: &mut LinkStats) {
        self.carry(stats);
        for packet in self.packets(rings) {
            let len = packet.wire_len();
            let ends = packet.arrival().before(self.delay);
            let start = ends.before(self.tx_time(len));
            if start >= now {
                stats.lost_unsent += 1;
                stats.tx_packets -= 1;
                self.tx_bytes -= u64::from(len);
                stats.queue_area -= waited(len, start - now);
            } else {
                stats.lost_sent += 1;
                stats.cut += ends.since(now);
            }
        }
        stats.tx_bytes = self.tx_bytes;
        self.ring.clear();
        stats.carried.0 = self.ring.head();
        self.far |= DOWN;
        self.queue = if self.is_fifo() { self.ring.tail() } else { 0 };
        self.free_at = self.free_at.min(now);
        // Sends every packet to the exact check, which knows that the link is down.
        self.look_from(0);
    }
    pub fn bring_up(&mut self) {
        self.far &= !DOWN;
        self.look_from(1);
    }
    /// Sets the backlog from which the exact occupancy of a first-in first-out port is needed.
    fn look_from(&mut self, from: u32) {
        if self.is_fifo() {
            self.bound = Exact { from, ..Exact::of(self.bound) }.word();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rate;
    use proptest::prelude::*;

    #[derive(Clone, Copy, Debug)]
    struct P(u32, Time);
    impl Wire for P {
        fn wire_len(&self) -> u32 {
            self.0
        }
        fn arrival(&self) -> Time {
            self.1
        }
        fn set_arrival(&mut self, at: Time) {
            self.1 = at;
        }
        fn mark(&mut self) -> bool {
            true
        }
    }

    proptest! {
        /// A first-in first-out port compared with a list of (start, departure, bytes), for packet
        /// and byte limits and an odd rate.
        #[test]
        fn lazy_occupancy_is_exact(
            gbps in 1u64..8, delay in 1u64..40_000_000,
            limit in 0u32..12, bytes in any::<bool>(), mark in 0u32..12, mark_bytes in any::<bool>(),
            steps in prop::collection::vec((0u64..9_000_000, prop_oneof![Just(1500u32), Just(40), 1u32..3000]), 1..120),
        ) {
            let bound = |n: u32, bytes| if bytes { Limit::Bytes(u64::from(n) * 700) } else { Limit::Packets(n) };
            let (limit, mark) = (bound(limit, bytes), bound(mark, mark_bytes));
            let rate = Rate::from_gbps(gbps);
            let mut rings = Rings::default();
            let spec = LinkSpec { rate, delay: Dur(delay), fifo: Some(Fifo { limit, mark }), watched: false, shaped: false, shared: None };
            let (mut link, mut stats) = (Link::new(&spec, Far::Host(0)), LinkStats::new(&spec));
            let (mut now, mut model, mut most, mut area, mut fast_area) = (0, Vec::<(u64, u64, u64)>::new(), 0, 0, 0);
            for (gap, len) in steps {
                now += gap;
                while link.first_arrival(&rings) <= Time(now) {
                    link.pop(&rings);
                }
                let waiting: Vec<u64> = model.iter().filter(|m| m.0 > now).map(|m| m.2).collect();
                let idle = model.iter().all(|m| m.1 <= now);
                let (packets, held) = (waiting.len() as u32, waiting.iter().sum::<u64>());
                prop_assert_eq!(link.occupancy(Time(now), &rings), (packets, held));
                let within = |bound| match bound {
                    Limit::Packets(n) => packets < n,
                    Limit::Bytes(n) => held + u64::from(len) <= n,
                    Limit::Unlimited => true,
                };
                let (mut packet, before) = (P(len, Time(0)), stats.marks);
                let start = link.admit(&mut packet, Time(now), &rings, |area| fast_area += area, || &mut stats);
                prop_assert_eq!(start.is_some(), idle || within(limit));
                if let Some(start) = start {
                    prop_assert_eq!(stats.marks - before, u64::from(!idle && !within(mark)));
                    prop_assert_eq!(start.0, model.last().map_or(0, |m| m.1).max(now));
                    link.push(start, &P(len, Time(0)), &mut rings);
                    model.push((start.0, start.0 + rate.tx_time(u64::from(len)).0, u64::from(len)));
                    if start.0 > now {
                        most = most.max(held + u64::from(len));
                        area += u64::from(len) * ((start.0 - now) >> 10);
                    }
                }
            }
            prop_assert_eq!(stats.max_queue_bytes, most);
            prop_assert_eq!(stats.queue_area + fast_area, area);
            link.carry(&mut stats);
            prop_assert_eq!(stats.tx_packets, model.len() as u64);
            prop_assert_eq!(stats.tx_packets, stats.delivered + u64::from(link.ring.len()));
        }
    }
}

//! Strict priority: the lowest class that has a packet is served, first in, first out within a
//! class.
//!
//! Source: IEEE 802.1Q, strict priority; MERP section 4.3.1 for the eviction; W. Bai et al., "Information-Agnostic Flow Scheduling for
//! Commodity Data Centers", NSDI 2015, section 4.2, for one buffer and one marking threshold per port.
//!
//! | parameter | default | from |
//! |---|---|---|
//! | `classes` | 8 | common switches |
//! | `class_of` | `prio` | IEEE 802.1Q |
//! | `limit` | the larger of 100 packets and 2 bandwidth-delay products, all classes together | `fabric::lengths` |
//! | `evict` | `arriving` | common switches |
//! | `mark` (K) | no marks | DCTCP section 3.4: 20 packets at 1 Gb/s, 65 at 10 Gb/s |
//!
//! `evict = "worst_class"` is push-out: a full queue drops packets of worse classes to make room
//! for a packet of a better class, so that a buffer shared by all classes still protects the better
//! ones. `arriving` is tail drop.
//!
//! `class_of = "control_first"` puts packets that switches send to each other into a class of their
//! own, the first, as IEEE 802.1Q annex I does for network control.
//!
//! Assumed:
//! - A packet whose `prio` is beyond the last class belongs to the last class.
//! - With `worst_class` the arriving packet competes: a full queue never drops a packet for one of
//!   the same or a worse class.
//! - With a limit in bytes, as many packets are dropped as needed, each time the last arrival of
//!   the worst class.
//! - A packet is marked if more than K waits with it in all classes together, after packets were
//!   dropped to make room for it; the packet in transmission does not count. A packet that finds
//!   its port idle never waits and is never marked. Packets that are not ECN-capable are not
//!   marked, and not dropped because of the threshold.

use super::{Backlog, Env, Fifo, Qdisc};
use crate::queue::Queue;
use crate::refused::Refused;
use crate::threshold::Threshold;
use base::params::{Auto, Problem};
use base::registry::Meta;
use base::{Limit, Time};
use proto::{Kind, Packet};

/// The description of this entry, for `list`, `explain` and `check`.
pub const META: Meta = Meta {
    summary: "strict priority between classes; first in, first out within a class",
    source: "IEEE 802.1Q strict priority; MERP section 4.3.1 for the eviction; Bai et al., NSDI 2015, for the marks",
    queue_lengths: &["limit", "mark"],
    ..Meta::PLAIN
};

base::choice! {
    /// Which packet is dropped when the queue is full.
    pub enum Evict {
        /// The arriving packet.
        Arriving = "arriving",
        /// The last arrival of the worst class, which may be the arriving packet.
        WorstClass = "worst_class",
    }
}

base::choice! {
    /// What determines the class of a packet.
    pub enum ClassOf {
        /// Its priority, as its sender set it.
        Prio = "prio",
        /// Its origin, then its priority: packets that switches exchange are class 0; packets of
        /// hosts are in the following classes, in the order of their priorities.
        ControlFirst = "control_first",
        /// Its flow: the flow's number modulo the number of classes, like a switch that classifies
        /// by addresses and ports.
        Flow = "flow",
    }
}

base::params! {
    /// Parameters of a strict-priority queue.
    pub struct Params {
        /// Number of classes; class 0 is served first.
        classes: u32 = "8" in 1..=64, "common switches";
        /// What determines the class of a packet.
        class_of: ClassOf = "prio", "IEEE 802.1Q: the priority code point";
        /// Most packets or bytes that may wait, all classes together; the packet in transmission does not count.
        limit: Auto<Limit> = "auto", "the larger of 100 packets and 2 bandwidth-delay products";
        /// Which packet is dropped when the queue is full.
        evict: Evict = "arriving", "common switches";
        /// Threshold (K) of the port: an arriving packet is marked if more than this waits with it,
        /// in all classes together.
        mark: Auto<Limit> = "unlimited", "flowloom: no marks; `auto`: as `ecn_threshold`";
    }
}

/// Returns the problems of parameters that depend on the network.
pub fn check(params: &Params, env: &Env) -> Vec<Problem> {
    super::check_limit(params.limit, env)
}

/// The queues of a port.
#[derive(Clone)]
pub struct Strict {
    limit: Limit,
    evict: Evict,
    class_of: ClassOf,
    classes: Vec<Queue>,
    // Bit `i` is set if class `i` has packets.
    occupied: u64,
    backlog: Backlog,
    threshold: Threshold,
}

impl Strict {
    /// Returns empty queues.
    pub fn new(params: &Params, env: &Env) -> Self {
        let classes = (0..params.classes).map(|_| Queue::default()).collect();
        let Params { evict, class_of, .. } = *params;
        let (limit, threshold) = (Self::limit(params, env), Threshold::new(env.mark(params.mark)));
        Strict { limit, evict, class_of, classes, occupied: 0, backlog: Backlog::default(), threshold }
    }
    /// Returns the limit of the queue.
    pub fn limit(params: &Params, env: &Env) -> Limit {
        env.limit(params.limit, 100)
    }
    /// Returns the FIFO of a single class, where the arriving packet is always the last.
    pub fn fifo(params: &Params, env: &Env) -> Option<Fifo> {
        (params.classes == 1).then(|| Fifo { limit: Self::limit(params, env), mark: env.mark(params.mark) })
    }

    #[inline]
    fn class(&self, packet: &Packet) -> usize {
        match self.class_of {
            ClassOf::Prio => usize::from(packet.prio).min(self.classes.len() - 1),
            ClassOf::ControlFirst => {
                let behind = usize::from(packet.kind.0 < Kind::ROUTER);
                (behind * (1 + usize::from(packet.prio))).min(self.classes.len() - 1)
            }
            ClassOf::Flow => packet.flow.index() % self.classes.len(),
        }
    }
    #[inline]
    fn push(&mut self, packet: &Packet) {
        let class = self.class(packet);
        self.backlog.add(packet);
        self.occupied |= 1 << class;
        self.classes[class].push(packet);
    }
    /// Dequeues the first packet of a class; `None` if there is no such class.
    #[inline]
    fn take(&mut self, class: usize) -> Option<&mut Packet> {
        let queue = self.classes.get_mut(class)?;
        let last = queue.backlog().packets == 1;
        self.occupied &= !(u64::from(last) << class);
        let packet = queue.pop()?;
        self.backlog.remove(packet);
        Some(packet)
    }
    /// Returns the worst class that has packets.
    fn worst(&self) -> Option<usize> {
        self.occupied.checked_ilog2().map(|class| class as usize)
    }
    /// Returns whether there is room for `packet`; drops the last arrivals of worse classes to make
    /// room.
    #[cold]
    fn make_room(&mut self, packet: &Packet, refused: &mut Refused) -> bool {
        let own = self.class(packet);
        while !self.backlog.fits(packet, self.limit) {
            let Some(class) = self.worst().filter(|class| *class > own) else { return false };
            let last = self.classes[class].pop_back().expect("its bit is set");
            self.backlog.remove(last);
            refused.drop(last);
            self.occupied &= !(u64::from(self.classes[class].is_empty()) << class);
        }
        true
    }
}

impl Qdisc for Strict {
    #[inline(always)]
    fn enqueue(&mut self, packet: &mut Packet, _now: Time, refused: &mut Refused) -> bool {
        let fits = self.backlog.fits(packet, self.limit);
        if !fits && (self.evict == Evict::Arriving || !self.make_room(packet, refused)) {
            refused.drop(packet);
            return false;
        }
        self.threshold.on_arrival(self.backlog, packet);
        self.push(packet);
        true
    }
    #[inline]
    fn dequeue(&mut self, _now: Time) -> Option<&mut Packet> {
        self.take(self.occupied.trailing_zeros() as usize)
    }
    fn class(&self, packet: &Packet) -> u8 {
        Strict::class(self, packet) as u8
    }
    fn has_except(&self, held: u8) -> bool {
        self.occupied & !u64::from(held) != 0
    }
    fn dequeue_except(&mut self, held: u8, _now: Time) -> Option<&mut Packet> {
        self.take((self.occupied & !u64::from(held)).trailing_zeros() as usize)
    }
    #[inline]
    fn lengths(&self) -> Vec<(&'static str, Limit)> {
        vec![("limit", self.limit), ("mark", self.threshold.mark())]
    }
    fn backlog(&self) -> Backlog {
        self.backlog
    }
    fn threshold(&self) -> Option<&Threshold> {
        Some(&self.threshold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qdisc::tests::{drain, enqueue, env, names, packet};
    use base::params::Params as _;
    use proptest::prelude::*;

    fn queue(classes: u32, limit: Limit, evict: Evict) -> Strict {
        Strict::new(&Params { classes, limit: Auto::Set(limit), evict, ..Params::defaults() }, &env())
    }

    /// Packet `n` of class `prio`; its flow id is the class.
    fn of(prio: u8, n: u64, wire_len: u16) -> Packet {
        Packet { prio, ..packet(u32::from(prio), n, wire_len) }
    }

    #[test]
    fn lower_classes_go_first_and_order_within_one_is_kept() {
        let mut q = queue(4, Limit::Unlimited, Evict::Arriving);
        for (n, prio) in [2, 0, 3, 2, 1, 0].into_iter().enumerate() {
            enqueue(&mut q, of(prio, n as u64, 1500));
        }
        assert_eq!(q.backlog(), Backlog { packets: 6, bytes: 9000 });
        assert_eq!(drain(&mut q), [(0, 1), (0, 5), (1, 4), (2, 0), (2, 3), (3, 2)]);
    }

    #[test]
    fn a_class_beyond_the_last_is_the_last() {
        let mut q = queue(2, Limit::Unlimited, Evict::Arriving);
        for (n, prio) in [9, 1, 255, 0].into_iter().enumerate() {
            enqueue(&mut q, of(prio, n as u64, 40));
        }
        assert_eq!(drain(&mut q), [(0, 3), (9, 0), (1, 1), (255, 2)]);
        let mut most = queue(64, Limit::Unlimited, Evict::Arriving);
        for prio in [63, 64, 62] {
            enqueue(&mut most, of(prio, 0, 40));
        }
        assert_eq!(drain(&mut most), [(62, 0), (63, 0), (64, 0)]);
    }

    #[test]
    fn flows_can_be_the_classes() {
        let params = Params { classes: 3, class_of: ClassOf::Flow, ..Params::defaults() };
        let mut q = Strict::new(&params, &env());
        for (flow, n) in [(5, 0), (4, 1), (2, 2), (3, 3), (4, 4)] {
            enqueue(&mut q, Packet { prio: 2 - (flow % 3) as u8, ..packet(flow, n, 1500) });
        }
        assert_eq!(drain(&mut q), [(3, 3), (4, 1), (4, 4), (5, 0), (2, 2)]);
    }

    #[test]
    fn packets_of_switches_go_before_those_of_hosts() {
        let params = Params { classes: 3, class_of: ClassOf::ControlFirst, ..Params::defaults() };
        let mut q = Strict::new(&params, &env());
        let switches = |n| Packet { kind: Kind(Kind::ROUTER), ..of(0, n, 84) };
        for packet in [of(1, 0, 1500), of(0, 1, 1500), of(7, 2, 1500), switches(3), of(0, 4, 40), switches(5)] {
            enqueue(&mut q, packet);
        }
        assert_eq!(drain(&mut q), [(0, 3), (0, 5), (0, 1), (0, 4), (1, 0), (7, 2)]);
    }

    #[test]
    fn the_arriving_packet_is_dropped_whatever_its_class() {
        let mut q = queue(4, Limit::Packets(2), Evict::Arriving);
        enqueue(&mut q, of(3, 0, 1500));
        enqueue(&mut q, of(3, 1, 1500));
        assert_eq!(enqueue(&mut q, of(0, 2, 40)), [(0, 2)]);
        assert_eq!(drain(&mut q), [(3, 0), (3, 1)]);
    }

    #[test]
    fn the_last_arrived_of_the_worst_class_is_dropped() {
        let mut q = queue(4, Limit::Packets(3), Evict::WorstClass);
        for (n, prio) in [3, 1, 3].into_iter().enumerate() {
            enqueue(&mut q, of(prio, n as u64, 1500));
        }
        assert_eq!(enqueue(&mut q, of(0, 3, 1500)), [(3, 2)]);
        // The arriving packet is of the worst class: it is dropped itself.
        assert_eq!(enqueue(&mut q, of(3, 4, 1500)), [(3, 4)]);
        assert_eq!(enqueue(&mut q, of(1, 5, 1500)), [(3, 0)]);
        assert_eq!(enqueue(&mut q, of(2, 6, 1500)), [(2, 6)]);
        assert_eq!(enqueue(&mut q, of(1, 7, 1500)), [(1, 7)]);
        assert_eq!(drain(&mut q), [(0, 3), (1, 1), (1, 5)]);
    }

    #[test]
    fn several_are_dropped_when_bytes_need_it() {
        let mut q = queue(4, Limit::Bytes(3100), Evict::WorstClass);
        for (n, (prio, len)) in [(1, 1500), (3, 1400), (3, 40), (2, 40)].into_iter().enumerate() {
            assert_eq!(enqueue(&mut q, of(prio, n as u64, len)), []);
        }
        assert_eq!(enqueue(&mut q, of(0, 4, 1500)), [(3, 2), (3, 1)]);
        assert_eq!(q.backlog(), Backlog { packets: 3, bytes: 3040 });
        // No room even without all of class 2: the arriving packet of class 1 is then the worst.
        assert_eq!(enqueue(&mut q, of(1, 5, 1500)), [(2, 3), (1, 5)]);
        assert_eq!(drain(&mut q), [(0, 4), (1, 0)]);
    }

    #[test]
    fn one_class_is_a_fifo() {
        let plain = Params::defaults();
        assert_eq!(Strict::fifo(&plain, &env()), None);
        for evict in [Evict::Arriving, Evict::WorstClass] {
            let (limit, mark) = (Limit::Packets(2), Limit::Packets(1));
            assert_eq!(
                Strict::fifo(
                    &Params { classes: 1, limit: Auto::Set(limit), evict, mark: Auto::Set(mark), ..plain.clone() },
                    &env()
                ),
                Some(Fifo { limit, mark })
            );
            let mut q = queue(1, limit, evict);
            let dropped: Vec<_> = (0..4).flat_map(|n| enqueue(&mut q, of(n as u8, n, 1500))).collect();
            assert_eq!((dropped, drain(&mut q)), (vec![(2, 2), (3, 3)], vec![(0, 0), (1, 1)]));
        }
    }

    /// K = 2 packets: the third packet to wait is marked, whatever its class; packets that waited
    /// already are not.
    #[test]
    fn one_threshold_holds_for_all_classes_together() {
        let mut q = Strict::new(&Params { classes: 4, mark: Auto::Set(Limit::Packets(2)), ..Params::defaults() }, &env());
        let capable = |prio, n| Packet { flags: Packet::ECT, ..of(prio, n, 1500) };
        for packet in [capable(3, 0), capable(2, 1), capable(0, 2), of(0, 3, 1500), capable(3, 4)] {
            assert_eq!(enqueue(&mut q, packet), []);
        }
        assert_eq!(q.marks(), 2);
        let all: Vec<Packet> = std::iter::from_fn(|| q.dequeue(Time::ZERO).copied()).collect();
        assert_eq!(names(&all), [(0, 2), (0, 3), (2, 1), (3, 0), (3, 4)]);
        assert_eq!(all.iter().map(|packet| packet.has(Packet::CE)).collect::<Vec<_>>(), [true, false, false, false, true]);
    }

    /// Packets dropped to make room do not count towards the threshold.
    #[test]
    fn a_packet_is_compared_once_room_is_made_for_it() {
        let params = Params {
            classes: 4,
            limit: Auto::Set(Limit::Bytes(3000)),
            evict: Evict::WorstClass,
            mark: Auto::Set(Limit::Bytes(2000)),
            ..Params::defaults()
        };
        let mut q = Strict::new(&params, &env());
        let mut put = |prio, len| {
            let mut packet = Packet { flags: Packet::ECT, ..of(prio, 0, len) };
            let stays = q.enqueue(&mut packet, Time::ZERO, &mut Refused::new());
            (stays, packet.has(Packet::CE))
        };
        assert_eq!([put(3, 1500), put(2, 500), put(3, 1000)], [(true, false), (true, false), (true, true)]);
        // Both packets of class 3 are dropped: 540 bytes wait. A dropped packet is not marked.
        assert_eq!([put(0, 1500), put(0, 1000), put(3, 1500)], [(true, false), (true, true), (false, false)]);
        assert_eq!(q.marks(), 2);
    }

    proptest! {
        /// Compared with a literal implementation of the rules.
        #[test]
        fn is_the_rule(
            limit in prop_oneof![(1u32..8).prop_map(Limit::Packets), (1u64..6000).prop_map(Limit::Bytes), Just(Limit::Unlimited)],
            mark in prop_oneof![(0u32..6).prop_map(Limit::Packets), (0u64..5000).prop_map(Limit::Bytes), Just(Limit::Unlimited)],
            push_out in any::<bool>(),
            steps in prop::collection::vec(
                prop::option::weighted(0.7, (0u8..6, any::<bool>(), prop_oneof![Just(40u16), Just(700), Just(1500)])), 0..80),
        ) {
            let evict = if push_out { Evict::WorstClass } else { Evict::Arriving };
            let mut q = Strict::new(&Params { classes: 4, limit: Auto::Set(limit), evict, mark: Auto::Set(mark), ..Params::defaults() }, &env());
            let (mut plain, mut marks) = (Vec::<Packet>::new(), 0);
            let class = |packet: &Packet| packet.prio.min(3);
            let more = |packets: &[Packet], than: Limit| match than {
                Limit::Packets(n) => packets.len() > n as usize,
                Limit::Bytes(n) => packets.iter().map(|p| u64::from(p.wire_len)).sum::<u64>() > n,
                Limit::Unlimited => false,
            };
            for (n, step) in steps.into_iter().enumerate() {
                let Some((prio, capable, wire_len)) = step else {
                    let first = plain.iter().enumerate().min_by_key(|(at, p)| (class(p), *at)).map(|(at, _)| at);
                    let first = first.map(|at| plain.remove(at));
                    prop_assert_eq!(q.dequeue(Time::ZERO).copied(), first);
                    continue;
                };
                let flags = if capable { Packet::ECT } else { 0 };
                let new = Packet { prio, flags, ..packet(0, n as u64, wire_len) };
                plain.push(new);
                let mut dropped = Vec::new();
                while more(&plain, limit) {
                    let worst = plain.iter().enumerate().max_by_key(|(at, p)| (class(p), *at)).expect("not empty").0;
                    let out = if push_out { worst } else { plain.len() - 1 };
                    dropped.push(plain.remove(out));
                }
                if more(&plain, mark) && plain.last().is_some_and(|last| last.offset == n as u64 && capable) {
                    plain.last_mut().expect("not empty").flags = Packet::CE;
                    marks += 1;
                }
                prop_assert_eq!(enqueue(&mut q, new), names(&dropped));
                let bytes = plain.iter().map(|p| u64::from(p.wire_len)).sum();
                prop_assert_eq!((q.backlog(), q.marks()), (Backlog { packets: plain.len() as u32, bytes }, marks));
            }
        }
    }
}

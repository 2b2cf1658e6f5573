//! Strict priority: the lowest class that has a packet is served, first in first out within a class.
//!
//! Source: IEEE 802.1Q, strict priority; MERP section 4.3.1 for the eviction.
//!
//! | parameter | default | from |
//! |---|---|---|
//! | `classes` | 8 | common switches |
//! | `class_of` | `prio` | IEEE 802.1Q |
//! | `limit` | 100 packets, all classes together | MERP section 6.1 |
//! | `evict` | `arriving` | common switches |
//!
//! Assumed:
//! - A packet whose `prio` is beyond the last class belongs to the last class.
//! - With `worst_class` the arriving packet competes: a full queue never gives up a packet for one of the same or a worse class.
//! - With a limit in bytes as many packets are dropped as needed, each time the last-arrived packet of the worst class.

use super::{Backlog, Env, Fifo, Qdisc};
use crate::queue::Queue;
use crate::refused::Refused;
use base::params::Problem;
use base::registry::Meta;
use base::{Limit, Time};
use proto::Packet;

/// What `list` and `check` know of it.
pub const META: Meta = Meta {
    summary: "strict priority between classes, first in first out within each",
    source: "IEEE 802.1Q strict priority; MERP section 4.3.1 for the eviction",
    queue_lengths: &["limit"],
    ..Meta::PLAIN
};

base::choice! {
    /// Which packet is dropped when the queue is full.
    pub enum Evict {
        /// The arriving packet.
        Arriving = "arriving",
        /// The last-arrived packet of the worst class, the arriving one included.
        WorstClass = "worst_class",
    }
}

base::choice! {
    /// What says to which class a packet belongs.
    pub enum ClassOf {
        /// Its priority, as its sender set it.
        Prio = "prio",
        /// Its flow: the flow's number modulo the number of classes, as a switch that classifies by addresses and ports.
        Flow = "flow",
    }
}

base::params! {
    /// Parameters of a strict-priority queue.
    pub struct Params {
        /// Number of classes; class 0 is served first.
        classes: u32 = "8" in 1..=64, "common switches";
        /// What says to which class a packet belongs.
        class_of: ClassOf = "prio", "IEEE 802.1Q: the priority code point";
        /// Most packets or bytes that may wait, all classes together; the packet in transmission does not count.
        limit: Limit = "100pkt", "MERP section 6.1";
        /// Which packet is dropped when the queue is full.
        evict: Evict = "arriving", "common switches";
    }
}

/// Problems that show only against the network.
pub fn check(params: &Params, env: &Env) -> Vec<Problem> {
    super::check_limit(params.limit, env)
}

/// Packets that wait.
#[derive(Clone)]
pub struct Strict {
    limit: Limit,
    evict: Evict,
    class_of: ClassOf,
    classes: Vec<Queue>,
    // Bit `i` is set when class `i` has packets.
    occupied: u64,
    backlog: Backlog,
}

impl Strict {
    /// An empty queue.
    pub fn new(params: &Params, _env: &Env) -> Self {
        let classes = (0..params.classes).map(|_| Queue::default()).collect();
        let Params { limit, evict, class_of, .. } = *params;
        Strict { limit, evict, class_of, classes, occupied: 0, backlog: Backlog::default() }
    }
    /// What may wait.
    pub fn limit(params: &Params, _env: &Env) -> Limit {
        params.limit
    }
    /// What the engine can do by itself: one class, of which the arriving packet is always the last.
    pub fn fifo(params: &Params, _env: &Env) -> Option<Fifo> {
        (params.classes == 1).then_some(Fifo { limit: params.limit, mark: Limit::Unlimited })
    }

    #[inline]
    fn class(&self, packet: &Packet) -> usize {
        match self.class_of {
            ClassOf::Prio => usize::from(packet.prio).min(self.classes.len() - 1),
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
    /// The worst class that has packets.
    fn worst(&self) -> usize {
        63 - self.occupied.leading_zeros() as usize
    }
    /// Drops the last-arrived packet of the worst class until what waits is within the limit. Says whether `arrived`, the last of its
    /// class, is still there.
    #[cold]
    fn drop_worst(&mut self, arrived: &Packet, refused: &mut Refused) -> bool {
        let (own, mut stays) = (self.class(arrived), true);
        while self.backlog.exceeds(self.limit) {
            let class = self.worst();
            let packet = self.classes[class].pop_back().expect("its bit is set");
            self.backlog.remove(packet);
            refused.drop(packet);
            self.occupied &= !(u64::from(self.classes[class].is_empty()) << class);
            stays &= class != own;
        }
        stays
    }
}

impl Qdisc for Strict {
    #[inline(always)]
    fn enqueue(&mut self, packet: &mut Packet, _now: Time, refused: &mut Refused) -> bool {
        let fits = self.backlog.fits(packet, self.limit);
        if !fits && self.evict == Evict::Arriving {
            refused.drop(packet);
            return false;
        }
        self.push(packet);
        fits || self.drop_worst(packet, refused)
    }
    #[inline]
    fn dequeue(&mut self, _now: Time) -> Option<&mut Packet> {
        let class = self.occupied.trailing_zeros() as usize;
        let queue = self.classes.get_mut(class)?;
        let last = queue.backlog().packets == 1;
        self.occupied &= !(u64::from(last) << class);
        let packet = queue.pop()?;
        self.backlog.remove(packet);
        Some(packet)
    }
    #[inline]
    fn backlog(&self) -> Backlog {
        self.backlog
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qdisc::tests::{drain, enqueue, env, packet};
    use base::params::Params as _;

    fn queue(classes: u32, limit: Limit, evict: Evict) -> Strict {
        Strict::new(&Params { classes, limit, evict, class_of: ClassOf::Prio }, &env())
    }

    /// Packet `n` of class `prio`; its flow shows the class.
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
        // Of the same class as the worst, and worse: itself.
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
            let (limit, mark) = (Limit::Packets(2), Limit::Unlimited);
            assert_eq!(Strict::fifo(&Params { classes: 1, limit, evict, ..plain.clone() }, &env()), Some(Fifo { limit, mark }));
            let mut q = queue(1, limit, evict);
            let dropped: Vec<_> = (0..4).flat_map(|n| enqueue(&mut q, of(n as u8, n, 1500))).collect();
            assert_eq!((dropped, drain(&mut q)), (vec![(2, 2), (3, 3)], vec![(0, 0), (1, 1)]));
        }
    }
}

//! pFabric queue: sends the oldest packet of the flow with the smallest priority number; drops the
//! packet with the largest number.
//!
//! Source: Alizadeh et al., "pFabric: Minimal Near-Optimal Datacenter Transport", SIGCOMM 2013, section 4.2.
//!
//! | parameter | default | from |
//! |---|---|---|
//! | `limit` | the larger of 24 packets and 2 bandwidth-delay products | pFabric section 5: 36 KB, about twice the product |
//!
//! Assumed:
//! - Among packets with equal numbers the last to arrive is dropped, which may be the arriving
//!   packet, and the first to arrive is served.
//! - With a limit in bytes, as many packets are dropped as needed.
//! - A flow is identified by its id only: on shortest paths, its two directions never share a port.

use super::{Backlog, Env, Fifo, Qdisc};
use crate::refused::Refused;
use base::params::{Auto, Problem};
use base::registry::{Meta, Needs};
use base::{Limit, Time};
use proto::Packet;

/// The description of this entry, for `list`, `explain` and `check`.
pub const META: Meta = Meta {
    summary: "serves the oldest packet of the flow with the smallest priority number; drops the largest number",
    source: "Alizadeh et al., SIGCOMM 2013, section 4.2",
    needs: Needs { transport: &["pfabric"], ..Needs::NONE },
    queue_lengths: &["limit"],
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of a pFabric queue.
    pub struct Params {
        /// Most packets or bytes that may wait; the packet in transmission does not count.
        limit: Auto<Limit> = "auto", "pFabric section 5: 2 bandwidth-delay products, 24 packets in the paper; not less than 24 packets";
    }
}

/// Returns the problems of parameters that depend on the network.
pub fn check(params: &Params, env: &Env) -> Vec<Problem> {
    super::check_limit(params.limit, env)
}

/// The queue of a port. The keys that decide are in one array in order of arrival, so that a search
/// reads a few contiguous bytes and a removal moves no packet.
#[derive(Clone)]
pub struct Pfabric {
    limit: Limit,
    /// The slots of the waiting packets, by arrival; after them the free slots, the last freed one
    /// first.
    slots: Vec<Slot>,
    /// The packets, indexed by `Slot::place`.
    packets: Vec<Packet>,
    /// The key of the first arrival among the packets with the smallest number; valid while packets
    /// wait.
    best: u64,
    backlog: Backlog,
}

#[derive(Clone, Copy)]
struct Slot {
    /// The priority number in the upper half, the flow in the lower half.
    key: u64,
    place: u32,
}

impl Slot {
    fn rank(&self) -> u32 {
        (self.key >> 32) as u32
    }
    /// Returns `later`, the key of a later arrival, if its number is smaller; otherwise `earlier`.
    /// Compiles to a select, not a branch.
    #[inline(always)]
    fn smaller(later: u64, earlier: u64) -> u64 {
        // The numbers are compared without the flows: `later` is smaller even with the largest flow
        // id.
        if later | u64::from(u32::MAX) < earlier { later } else { earlier }
    }
}

impl Pfabric {
    /// Returns an empty queue.
    pub fn new(params: &Params, env: &Env) -> Self {
        Pfabric { limit: Self::limit(params, env), slots: Vec::new(), packets: Vec::new(), best: 0, backlog: Backlog::default() }
    }
    /// Returns the limit of the queue.
    pub fn limit(params: &Params, env: &Env) -> Limit {
        env.limit(params.limit, 24)
    }
    /// Returns `None`: the engine cannot simulate this discipline by itself.
    pub fn fifo(_params: &Params, _env: &Env) -> Option<Fifo> {
        None
    }

    /// Returns the slots of the waiting packets, by arrival.
    #[inline(always)]
    fn waiting(&self) -> &[Slot] {
        &self.slots[..self.backlog.packets as usize]
    }
    /// Removes the waiting packet with index `at` in order of arrival.
    #[inline(always)]
    fn take(&mut self, at: usize) -> &mut Packet {
        let taken = self.slots[at];
        self.backlog.remove(&self.packets[taken.place as usize]);
        // Its slot becomes the first free one. Most often it was the last slot, and nothing has to
        // be moved.
        let mut later = self.slots[at..=self.backlog.packets as usize].iter_mut();
        let mut free = later.next().expect("it waits");
        for slot in later {
            *free = std::mem::replace(slot, taken);
            free = slot;
        }
        if taken.key == self.best
            && let Some((first, rest)) = self.waiting().split_first()
        {
            self.best = rest.iter().fold(first.key, |best, slot| Slot::smaller(slot.key, best));
        }
        &mut self.packets[taken.place as usize]
    }
    /// Drops packets until the queue is within the limit. Returns whether the last arrival is still
    /// queued.
    #[cold]
    fn drop_worst(&mut self, refused: &mut Refused) -> bool {
        let mut stays = true;
        while self.backlog.exceeds(self.limit) {
            let worst = self.worst();
            stays &= worst + 1 < self.waiting().len();
            refused.drop(self.take(worst));
        }
        stays
    }
    /// Returns the index of the packet to drop: the last arrival with the largest number.
    fn worst(&self) -> usize {
        let worst = self.waiting().iter().fold(0, |worst, slot| worst.max(slot.rank()));
        self.waiting().iter().rposition(|slot| slot.rank() == worst).expect("a full queue has packets")
    }
    /// Adds a place, filled with `filler`.
    #[cold]
    fn grow(&mut self, filler: &Packet) {
        self.slots.push(Slot { key: 0, place: self.packets.len() as u32 });
        self.packets.push(*filler);
    }
}

impl Qdisc for Pfabric {
    #[inline(always)]
    fn enqueue(&mut self, packet: &mut Packet, _now: Time, refused: &mut Refused) -> bool {
        let waiting = self.waiting().len();
        if waiting == self.slots.len() {
            self.grow(packet);
        }
        self.backlog.add(packet);
        let key = u64::from(packet.order()) << 32 | u64::from(packet.flow.0);
        self.best = if waiting == 0 { key } else { Slot::smaller(key, self.best) };
        let slot = &mut self.slots[waiting];
        slot.key = key;
        self.packets[slot.place as usize] = *packet;
        !self.backlog.exceeds(self.limit) || self.drop_worst(refused)
    }
    /// Dequeues the oldest packet of the flow that has the packet with the smallest number.
    #[inline(always)]
    fn dequeue(&mut self, _now: Time) -> Option<&mut Packet> {
        let best = self.waiting().iter().position(|slot| slot.key as u32 == self.best as u32)?;
        Some(self.take(best))
    }
    #[inline]
    fn lengths(&self) -> Vec<(&'static str, Limit)> {
        vec![("limit", self.limit)]
    }
    fn backlog(&self) -> Backlog {
        self.backlog
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qdisc::tests::{drain, enqueue, env, names, packet};
    use proptest::prelude::*;

    const A: u32 = 0;
    const B: u32 = 1;
    const C: u32 = 2;
    const D: u32 = 3;

    fn queue(limit: Limit) -> Pfabric {
        assert_eq!(Pfabric::fifo(&Params { limit: Auto::Set(limit) }, &env()), None);
        Pfabric::new(&Params { limit: Auto::Set(limit) }, &env())
    }

    fn ranked(flow: u32, seq: u64, rank: u32) -> Packet {
        Packet { rank, ..packet(flow, seq, 1500) }
    }

    /// Worked out by hand: four places; packets as (flow, number in the flow, priority number).
    #[test]
    fn golden_full_queue() {
        let mut q = queue(Limit::Packets(4));
        for (flow, seq, rank) in [(A, 0, 9000), (B, 0, 3000), (A, 1, 7500), (C, 0, 20000)] {
            assert_eq!(enqueue(&mut q, ranked(flow, seq, rank)), []);
        }
        assert_eq!(enqueue(&mut q, ranked(B, 1, 1500)), [(C, 0)]);
        assert_eq!(enqueue(&mut q, ranked(D, 0, 25000)), [(D, 0)]);
        assert_eq!(drain(&mut q), [(B, 0), (B, 1), (A, 0), (A, 1)]);
    }

    #[test]
    fn golden_order_within_a_flow() {
        let mut q = queue(Limit::Packets(4));
        for (flow, seq, rank) in [(A, 0, 9000), (A, 1, 7500), (B, 0, 8000)] {
            enqueue(&mut q, ranked(flow, seq, rank));
        }
        assert_eq!(drain(&mut q), [(A, 0), (A, 1), (B, 0)]);
    }

    #[test]
    fn golden_equal_numbers() {
        let mut q = queue(Limit::Packets(4));
        for flow in 0..4 {
            enqueue(&mut q, ranked(flow, 0, 7));
        }
        assert_eq!(enqueue(&mut q, ranked(9, 0, 7)), [(9, 0)]);
        assert_eq!(enqueue(&mut q, ranked(9, 1, 6)), [(3, 0)]);
        assert_eq!(drain(&mut q), [(9, 1), (0, 0), (1, 0), (2, 0)]);
    }

    #[test]
    fn control_packets_pass_all_data_and_are_never_dropped_for_it() {
        let mut q = queue(Limit::Packets(2));
        enqueue(&mut q, ranked(A, 0, 1));
        enqueue(&mut q, ranked(A, 1, u32::MAX));
        assert_eq!(enqueue(&mut q, ranked(B, 0, 0)), [(A, 1)]);
        assert_eq!(drain(&mut q), [(B, 0), (A, 0)]);
    }

    #[test]
    fn several_are_dropped_when_bytes_need_it() {
        let mut q = queue(Limit::Bytes(3000));
        enqueue(&mut q, ranked(A, 0, 5));
        enqueue(&mut q, Packet { wire_len: 1460, ..ranked(B, 0, 8) });
        enqueue(&mut q, Packet { wire_len: 40, ..ranked(C, 0, 9) });
        assert_eq!(q.backlog(), Backlog { packets: 3, bytes: 3000 });
        assert_eq!(enqueue(&mut q, ranked(D, 0, 4)), [(C, 0), (B, 0)]);
        assert_eq!(drain(&mut q), [(D, 0), (A, 0)]);
    }

    proptest! {
        /// Compared with a literal implementation of the rules.
        #[test]
        fn is_the_rule(
            limit in prop_oneof![(1u32..8).prop_map(Limit::Packets), (1500u64..6000).prop_map(Limit::Bytes)],
            steps in prop::collection::vec(prop::option::weighted(0.7, (0u32..4, 0u32..6, prop_oneof![Just(40u16), Just(1500)])), 0..80),
        ) {
            let (mut q, mut plain) = (queue(limit), Vec::<Packet>::new());
            for (seq, step) in steps.into_iter().enumerate() {
                let Some((flow, rank, wire_len)) = step else {
                    let best = plain.iter().enumerate().min_by_key(|(at, p)| (p.rank, *at)).map(|(_, p)| p.flow);
                    let oldest = best.map(|flow| plain.remove(plain.iter().position(|p| p.flow == flow).unwrap()));
                    prop_assert_eq!(q.dequeue(Time::ZERO).copied(), oldest);
                    continue;
                };
                let new = Packet { rank, wire_len, ..packet(flow, seq as u64, 1500) };
                plain.push(new);
                let mut dropped = Vec::new();
                let total = |packets: &[Packet]| packets.iter().map(|p| u64::from(p.wire_len)).sum::<u64>();
                while match limit {
                    Limit::Packets(n) => plain.len() > n as usize,
                    Limit::Bytes(n) => total(&plain) > n,
                    Limit::Unlimited => false,
                } {
                    let worst = plain.iter().enumerate().max_by_key(|(at, p)| (p.rank, *at)).unwrap().0;
                    dropped.push(plain.remove(worst));
                }
                prop_assert_eq!(enqueue(&mut q, new), names(&dropped));
                prop_assert_eq!(q.backlog(), Backlog { packets: plain.len() as u32, bytes: total(&plain) });
            }
        }
    }
}

//! Rank-ordered queue (push-in first-out): sends the oldest packet of the flow with the smallest
//! rank; a full queue drops the packet with the worst rank.
//!
//! Source: A. Sivaraman et al., "Programmable Packet Scheduling at Line Rate", SIGCOMM 2016, section 2, for the queue; C.-Y. Hong et al.,
//! "Finishing Flows Quickly with Preemptive Scheduling", SIGCOMM 2012, section 2, for the order that it is used for: flows with a deadline
//! by deadline, then the others by size.
//!
//! | parameter | default | from |
//! |---|---|---|
//! | `limit` | the larger of 100 packets and 2 bandwidth-delay products | as droptail |
//! | `mark` (K) | no marks | DCTCP section 3.4: 20 packets at 1 Gb/s, 65 at 10 Gb/s |
//!
//! Model: the queue only compares ranks; their meaning is known to the part of the system that sets
//! them. Without ranks the flow with the smallest id is served first.
//!
//! Assumed:
//! - The rank is a number of 40 bits: the packet's `prio` in the upper bits, its `rank` in the
//!   lower ones. Ties are broken by flow id, then by arrival.
//! - The dropped packet is the last in that order, which may be the arriving packet. With a limit
//!   in bytes, as many packets are dropped as needed.
//! - The served flow is that of the first packet in that order. It sends its oldest packet, whose
//!   own rank may be worse.
//! - A packet is marked if the queue is longer than K with it, after packets were dropped to make
//!   room for it; the packet in transmission does not count. A packet that finds its port idle
//!   never waits and is never marked. Packets that are not ECN-capable are not marked.
//! - A flow is identified by its id only: on shortest paths, its two directions never share a port.

use super::{Backlog, Env, Fifo, Qdisc};
use crate::refused::Refused;
use crate::threshold::Threshold;
use base::params::{Auto, Problem};
use base::registry::Meta;
use base::{FlowMap, Limit, Time};
use proto::Packet;
use std::collections::VecDeque;

/// The description of this entry, for `list`, `explain` and `check`.
pub const META: Meta = Meta {
    summary: "serves the oldest packet of the flow with the smallest rank; a full queue drops the worst rank",
    source: "Sivaraman et al., SIGCOMM 2016, section 2; Hong et al., SIGCOMM 2012, section 2",
    queue_lengths: &["limit", "mark"],
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of a rank-ordered queue.
    pub struct Params {
        /// Most packets or bytes that may wait; the packet in transmission does not count.
        limit: Auto<Limit> = "auto", "as droptail: the larger of 100 packets and 2 bandwidth-delay products";
        /// Threshold (K): an arriving packet is marked if the queue is longer than this with it.
        mark: Auto<Limit> = "unlimited", "flowloom: no marks; `auto`: as `ecn_threshold`";
    }
}

/// Returns the problems of parameters that depend on the network.
pub fn check(params: &Params, env: &Env) -> Vec<Problem> {
    super::check_limit(params.limit, env)
}

/// The queue of a port. The ranks are sorted in one deque of 16 bytes per packet: both ends are
/// accessible at once, a search takes a few steps, and an insertion moves at most half of a few
/// kilobytes.
#[derive(Clone)]
pub struct Pifo {
    limit: Limit,
    threshold: Threshold,
    /// The waiting packets, next to be served first; equal keys by arrival.
    order: VecDeque<Slot>,
    /// For each flow with waiting packets, the place of the oldest one.
    oldest: FlowMap<u32>,
    packets: Vec<Place>,
    /// Free places; the last freed one is at the end.
    free: Vec<u32>,
    backlog: Backlog,
}

#[derive(Clone, Copy)]
struct Slot {
    rank: u64,
    flow: u32,
    place: u32,
}

impl Slot {
    fn new(packet: &Packet, place: u32) -> Slot {
        Slot { rank: u64::from(packet.prio) << 32 | u64::from(packet.order()), flow: packet.flow.0, place }
    }
    /// The sort key as one number, so that a comparison is not a branch.
    #[inline]
    fn key(&self) -> u128 {
        u128::from(self.rank) << 32 | u128::from(self.flow)
    }
}

/// A packet in a ring of its flow's packets by arrival: the packet older than the oldest is the
/// youngest.
#[derive(Clone, Copy)]
struct Place {
    packet: Packet,
    older: u32,
    younger: u32,
}

impl Pifo {
    /// Returns an empty queue.
    pub fn new(params: &Params, env: &Env) -> Self {
        Pifo {
            limit: Self::limit(params, env),
            threshold: Threshold::new(env.mark(params.mark)),
            order: VecDeque::new(),
            oldest: FlowMap::default(),
            packets: Vec::new(),
            free: Vec::new(),
            backlog: Backlog::default(),
        }
    }
    /// Returns the limit of the queue.
    pub fn limit(params: &Params, env: &Env) -> Limit {
        env.limit(params.limit, 100)
    }
    /// Returns `None`: the engine cannot simulate this discipline by itself.
    pub fn fifo(_params: &Params, _env: &Env) -> Option<Fifo> {
        None
    }

    /// Returns whether there is room for `packet`; drops packets with worse keys to make room.
    #[cold]
    fn make_room(&mut self, packet: &Packet, refused: &mut Refused) -> bool {
        let own = Slot::new(packet, 0).key();
        while !self.backlog.fits(packet, self.limit) {
            let Some(&Slot { place, .. }) = self.order.back().filter(|worst| worst.key() > own) else { return false };
            self.order.pop_back();
            refused.drop(self.leave(place));
        }
        true
    }
    /// Appends a packet to the ring of its flow, and returns its place.
    fn enter(&mut self, packet: &Packet) -> u32 {
        self.backlog.add(packet);
        let place = self.free.pop().unwrap_or(self.packets.len() as u32);
        let oldest = *self.oldest.or_insert_with(packet.flow, || place);
        let older = if oldest == place { place } else { self.packets[oldest as usize].older };
        let entry = Place { packet: *packet, older, younger: oldest };
        match self.packets.get_mut(place as usize) {
            Some(free) => *free = entry,
            None => self.packets.push(entry),
        }
        self.packets[older as usize].younger = place;
        self.packets[oldest as usize].older = place;
        place
    }
    /// Removes a packet from the ring of its flow.
    fn leave(&mut self, place: u32) -> &mut Packet {
        let Place { packet, older, younger } = self.packets[place as usize];
        if younger == place {
            self.oldest.remove(packet.flow);
        } else {
            self.packets[older as usize].younger = younger;
            self.packets[younger as usize].older = older;
            let oldest = self.oldest.get_mut(packet.flow).expect("it has packets");
            if *oldest == place {
                *oldest = younger;
            }
        }
        self.backlog.remove(&packet);
        self.free.push(place);
        &mut self.packets[place as usize].packet
    }
}

impl Qdisc for Pifo {
    #[inline]
    fn enqueue(&mut self, packet: &mut Packet, _now: Time, refused: &mut Refused) -> bool {
        if !self.backlog.fits(packet, self.limit) && !self.make_room(packet, refused) {
            refused.drop(packet);
            return false;
        }
        self.threshold.on_arrival(self.backlog, packet);
        let slot = Slot::new(packet, self.enter(packet));
        let at = self.order.partition_point(|held| held.key() <= slot.key());
        self.order.insert(at, slot);
        true
    }
    #[inline]
    fn dequeue(&mut self, _now: Time) -> Option<&mut Packet> {
        let first = self.order.pop_front()?;
        let oldest = *self.oldest.get(base::FlowId(first.flow)).expect("it has packets");
        if oldest != first.place {
            // This is the first of the flow's packets with that rank.
            let key = Slot::new(&self.packets[oldest as usize].packet, oldest).key();
            let at = self.order.partition_point(|held| held.key() < key);
            self.order.remove(at);
            self.order.push_front(first);
        }
        Some(self.leave(oldest))
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

    const A: u32 = 0;
    const B: u32 = 1;
    const C: u32 = 2;

    fn queue(limit: Limit) -> Pifo {
        let params = Params { limit: Auto::Set(limit), ..Params::defaults() };
        assert_eq!(Pifo::fifo(&params, &env()), None);
        Pifo::new(&params, &env())
    }

    /// Packet `seq` of `flow`, with the upper and lower part of its rank.
    fn ranked(flow: u32, seq: u64, (prio, rank): (u8, u32)) -> Packet {
        Packet { prio, rank, ..packet(flow, seq, 1500) }
    }

    #[test]
    fn the_smallest_rank_goes_first_and_prio_is_its_upper_part() {
        let mut q = queue(Limit::Unlimited);
        for (flow, rank) in [(A, (1, 0)), (B, (0, u32::MAX)), (C, (255, 5)), (3, (0, 7)), (4, (2, 3))] {
            enqueue(&mut q, ranked(flow, 0, rank));
        }
        assert_eq!(drain(&mut q), [(3, 0), (B, 0), (A, 0), (4, 0), (C, 0)]);
    }

    #[test]
    fn ties_go_by_flow_then_by_arrival() {
        let mut q = queue(Limit::Unlimited);
        for (flow, seq) in [(C, 0), (A, 0), (C, 1), (B, 0), (A, 1)] {
            enqueue(&mut q, ranked(flow, seq, (0, 9)));
        }
        assert_eq!(drain(&mut q), [(A, 0), (A, 1), (B, 0), (C, 0), (C, 1)]);
    }

    #[test]
    fn a_header_in_the_place_of_the_rank_is_none() {
        let mut q = queue(Limit::Unlimited);
        for (flow, handle) in [(B, 1), (C, 0), (A, 2)] {
            let mut tagged = ranked(flow, 0, (0, handle));
            tagged.flags |= Packet::TAGGED;
            enqueue(&mut q, tagged);
        }
        assert_eq!(drain(&mut q), [(A, 0), (B, 0), (C, 0)]);
    }

    /// Ranks like remaining bytes, which decrease from packet to packet.
    #[test]
    fn within_a_flow_the_oldest_goes_first_whatever_its_rank() {
        let mut q = queue(Limit::Unlimited);
        for (flow, seq, rank) in [(A, 0, 9000), (B, 0, 8000), (A, 1, 7500), (A, 2, 8500)] {
            enqueue(&mut q, ranked(flow, seq, (1, rank)));
        }
        // Flow A has the smallest rank until that packet has left, then flow B.
        assert_eq!(drain(&mut q), [(A, 0), (A, 1), (B, 0), (A, 2)]);
    }

    #[test]
    fn the_worst_is_dropped_the_arriving_included() {
        let mut q = queue(Limit::Packets(3));
        for (flow, rank) in [(A, 5), (B, 7), (C, 7)] {
            assert_eq!(enqueue(&mut q, ranked(flow, 0, (0, rank))), []);
        }
        // A worse rank; equal to the worst, and later; an equal rank and a smaller flow id.
        assert_eq!(enqueue(&mut q, ranked(A, 1, (0, 8))), [(A, 1)]);
        assert_eq!(enqueue(&mut q, ranked(C, 1, (0, 7))), [(C, 1)]);
        assert_eq!(enqueue(&mut q, ranked(B, 1, (0, 7))), [(C, 0)]);
        assert_eq!(enqueue(&mut q, ranked(C, 2, (0, 6))), [(B, 1)]);
        assert_eq!(drain(&mut q), [(A, 0), (C, 2), (B, 0)]);
    }

    #[test]
    fn several_are_dropped_when_bytes_need_it() {
        let mut q = queue(Limit::Bytes(3000));
        for (flow, rank, wire_len) in [(A, 5, 1500), (B, 8, 1460), (C, 9, 40)] {
            assert_eq!(enqueue(&mut q, Packet { wire_len, ..ranked(flow, 0, (0, rank)) }), []);
        }
        assert_eq!(enqueue(&mut q, ranked(3, 0, (0, 4))), [(C, 0), (B, 0)]);
        assert_eq!(drain(&mut q), [(3, 0), (A, 0)]);
        // A packet that would not fit even into an empty queue.
        let mut small = queue(Limit::Bytes(1499));
        assert_eq!(enqueue(&mut small, ranked(A, 0, (0, 0))), [(A, 0)]);
    }

    #[test]
    fn one_threshold_marks_whatever_the_rank() {
        let mut q = Pifo::new(&Params { mark: Auto::Set(Limit::Packets(2)), ..Params::defaults() }, &env());
        let capable = |flow, rank| Packet { flags: Packet::ECT, ..ranked(flow, 0, (0, rank)) };
        for packet in [capable(A, 9), capable(B, 8), capable(C, 1), ranked(3, 0, (0, 0)), capable(4, 9)] {
            enqueue(&mut q, packet);
        }
        let marked: Vec<_> = std::iter::from_fn(|| q.dequeue(Time::ZERO).copied()).map(|p| (p.flow.0, p.has(Packet::CE))).collect();
        assert_eq!((marked, q.marks()), (vec![(3, false), (C, true), (B, false), (A, false), (4, true)], 2));
        assert!(q.can_mark() && !q.watches() && !queue(Limit::Unlimited).can_mark());
    }

    proptest! {
        /// Compared with a literal implementation of the rules.
        #[test]
        fn is_the_rule(
            limit in prop_oneof![(1u32..8).prop_map(Limit::Packets), (1u64..6000).prop_map(Limit::Bytes), Just(Limit::Unlimited)],
            mark in prop_oneof![(0u32..6).prop_map(Limit::Packets), (0u64..5000).prop_map(Limit::Bytes), Just(Limit::Unlimited)],
            steps in prop::collection::vec(
                prop::option::weighted(0.7, (0u32..4, 0u8..2, 0u32..4, any::<bool>(), prop_oneof![Just(40u16), Just(1500)])), 0..100),
        ) {
            let mut q = Pifo::new(&Params { limit: Auto::Set(limit), mark: Auto::Set(mark) }, &env());
            let (mut plain, mut marks) = (Vec::<Packet>::new(), 0);
            let order = |(at, p): (usize, &Packet)| (p.prio, p.rank, p.flow.0, at);
            let total = |packets: &[Packet]| packets.iter().map(|p| u64::from(p.wire_len)).sum::<u64>();
            let more = |packets: &[Packet], than: Limit| match than {
                Limit::Packets(n) => packets.len() > n as usize,
                Limit::Bytes(n) => total(packets) > n,
                Limit::Unlimited => false,
            };
            for (seq, step) in steps.into_iter().enumerate() {
                let Some((flow, prio, rank, capable, wire_len)) = step else {
                    let best = plain.iter().enumerate().min_by_key(|&one| order(one)).map(|(_, p)| p.flow);
                    let oldest = best.map(|flow| plain.remove(plain.iter().position(|p| p.flow == flow).expect("it waits")));
                    prop_assert_eq!(q.dequeue(Time::ZERO).copied(), oldest);
                    continue;
                };
                let flags = if capable { Packet::ECT } else { 0 };
                let new = Packet { prio, rank, flags, ..packet(flow, seq as u64, wire_len) };
                plain.push(new);
                let mut dropped = Vec::new();
                while more(&plain, limit) {
                    let worst = plain.iter().enumerate().max_by_key(|&one| order(one)).expect("not empty").0;
                    dropped.push(plain.remove(worst));
                }
                let full = more(&plain, mark);
                if let Some(last) = plain.last_mut().filter(|last| full && capable && last.offset == seq as u64) {
                    last.flags = Packet::CE;
                    marks += 1;
                }
                prop_assert_eq!(enqueue(&mut q, new), names(&dropped));
                prop_assert_eq!(q.backlog(), Backlog { packets: plain.len() as u32, bytes: total(&plain) });
                prop_assert_eq!((q.marks(), q.order.len(), q.packets.len() - q.free.len()), (marks, plain.len(), plain.len()));
            }
        }
    }
}

//! First in, first out, with one marking threshold on the instantaneous queue length.
//!
//! Source: Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, section 3.1; RFC 3168 section 5; RFC 8257 section 3.1.
//!
//! | parameter | default | from |
//! |---|---|---|
//! | `limit` | the larger of 100 packets and 2 bandwidth-delay products | `fabric::lengths` |
//! | `mark` (K) | the larger of 20 packets and 0.78 bandwidth-delay products | DCTCP section 3.4, `fabric::lengths` |
//! | `at` | `enqueue` | DCTCP section 3.1: on arrival |
//!
//! Assumed:
//! - A packet is marked if the queue is longer than K with it, at its arrival or at its departure;
//!   the packet in transmission does not count. A packet that finds its port idle never waits and
//!   is never marked.
//! - Only packets of ECN-capable transports (by the ECN field) are marked. Other packets are not
//!   dropped because of the threshold.

use super::{At, Backlog, Env, Fifo, Qdisc};
use crate::queue::Queue;
use crate::refused::Refused;
use crate::threshold::Threshold;
use base::params::{Auto, Problem};
use base::registry::Meta;
use base::{Limit, Time};
use proto::Packet;

/// The description of this entry, for `list`, `explain` and `check`.
pub const META: Meta = Meta {
    summary: "first in, first out; packets are marked while the queue is longer than a threshold",
    source: "Alizadeh et al., SIGCOMM 2010, section 3.1; RFC 3168",
    queue_lengths: &["limit", "mark"],
    implies: &[("transport.kind", "dctcp")],
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of a queue with a marking threshold.
    pub struct Params {
        /// Most packets or bytes that may wait; the packet in transmission does not count.
        limit: Auto<Limit> = "auto", "the larger of 100 packets and 2 bandwidth-delay products";
        /// Threshold (K): packets are marked while the queue is longer than this.
        mark: Auto<Limit> = "auto", "DCTCP section 3.4: the larger of 20 packets and 0.78 bandwidth-delay products";
        /// When the queue length is compared with the threshold.
        at: At = "enqueue", "DCTCP section 3.1";
    }
}

/// Returns the problems of parameters that depend on the network.
pub fn check(params: &Params, env: &Env) -> Vec<Problem> {
    super::check_limit(params.limit, env)
}

/// The queue of a port.
#[derive(Clone)]
pub struct EcnThreshold {
    limit: Limit,
    at: At,
    threshold: Threshold,
    queue: Queue,
}

impl EcnThreshold {
    /// Returns an empty queue.
    pub fn new(params: &Params, env: &Env) -> Self {
        let threshold = Threshold::new(env.mark(params.mark));
        EcnThreshold { limit: Self::limit(params, env), at: params.at, threshold, queue: Queue::default() }
    }
    /// Returns the limit of the queue.
    pub fn limit(params: &Params, env: &Env) -> Limit {
        env.limit(params.limit, 100)
    }
    /// Returns the whole discipline, unless the threshold is applied at departures.
    pub fn fifo(params: &Params, env: &Env) -> Option<Fifo> {
        (params.at == At::Enqueue).then(|| Fifo { limit: Self::limit(params, env), mark: env.mark(params.mark) })
    }
}

impl Qdisc for EcnThreshold {
    fn enqueue(&mut self, packet: &mut Packet, _now: Time, refused: &mut Refused) -> bool {
        let waits = self.queue.backlog();
        if !waits.fits(packet, self.limit) {
            refused.drop(packet);
            return false;
        }
        if self.at == At::Enqueue {
            self.threshold.on_arrival(waits, packet);
        }
        self.queue.push(packet);
        true
    }
    fn dequeue(&mut self, _now: Time) -> Option<&mut Packet> {
        // The backlog with the departing packet.
        let waits = self.queue.backlog();
        let packet = self.queue.pop()?;
        if self.at == At::Dequeue {
            self.threshold.compare(waits, packet);
        }
        Some(packet)
    }
    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }
    fn threshold(&self) -> Option<&Threshold> {
        Some(&self.threshold)
    }
    fn lengths(&self) -> Vec<(&'static str, Limit)> {
        vec![("limit", self.limit), ("mark", self.threshold.mark())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qdisc::tests::{enqueue, env, packet};

    fn queue(mark: Limit, at: At) -> EcnThreshold {
        let params = Params { limit: Auto::Set(Limit::Packets(6)), mark: Auto::Set(mark), at };
        let by_engine = Some(Fifo { limit: Limit::Packets(6), mark }).filter(|_| at == At::Enqueue);
        assert_eq!(EcnThreshold::fifo(&params, &env()), by_engine);
        EcnThreshold::new(&params, &env())
    }

    fn capable(n: u64, wire_len: u16) -> Packet {
        Packet { flags: Packet::ECT, ..packet(0, n, wire_len) }
    }

    /// Numbers of the marked packets among those that leave.
    fn marked(q: &mut EcnThreshold) -> Vec<u64> {
        let all = std::iter::from_fn(|| q.dequeue(Time::ZERO).copied());
        all.filter(|p| p.has(Packet::CE)).map(|p| p.offset).collect()
    }

    #[test]
    fn marks_begin_above_the_threshold() {
        let mut q = queue(Limit::Packets(3), At::Enqueue);
        let dropped: Vec<_> = (0..8).flat_map(|n| enqueue(&mut q, capable(n, 1500))).collect();
        assert_eq!((dropped, q.marks()), (vec![(0, 6), (0, 7)], 3));
        assert_eq!(marked(&mut q), [3, 4, 5]);
        // An empty queue starts again without marks.
        enqueue(&mut q, capable(9, 1500));
        assert_eq!(marked(&mut q), []);
    }

    #[test]
    fn a_single_waiting_packet_is_seen_if_it_would_be_marked() {
        for (mark, watches) in [(Limit::Packets(0), true), (Limit::Bytes(1499), true), (Limit::Packets(1), false)] {
            assert_eq!(queue(mark, At::Dequeue).watches(), watches, "{mark}");
        }
    }

    #[test]
    fn bytes_count_as_they_are() {
        let mut q = queue(Limit::Bytes(3000), At::Enqueue);
        for (n, len) in [(0, 1500), (1, 1500), (2, 40), (3, 1500)] {
            enqueue(&mut q, capable(n, len));
        }
        assert_eq!(marked(&mut q), [2, 3]);
    }

    /// The departing packet counts the packets that came after it.
    #[test]
    fn at_departure_the_first_are_marked() {
        let mut q = queue(Limit::Packets(3), At::Dequeue);
        for n in 0..6 {
            enqueue(&mut q, capable(n, 1500));
        }
        assert_eq!(q.marks(), 0);
        assert_eq!(marked(&mut q), [0, 1, 2]);
        assert_eq!(q.marks(), 3);
    }

    #[test]
    fn only_capable_packets_are_marked_and_none_is_dropped_for_it() {
        for at in [At::Enqueue, At::Dequeue] {
            let mut q = queue(Limit::Packets(0), at);
            for n in 0..4 {
                let packet = if n % 2 == 0 { capable(n, 1500) } else { packet(0, n, 1500) };
                assert_eq!(enqueue(&mut q, packet), []);
            }
            let flags: Vec<u16> = std::iter::from_fn(|| q.dequeue(Time::ZERO).copied()).map(|p| p.flags).collect();
            assert_eq!((flags, q.marks()), (vec![Packet::CE, 0, Packet::CE, 0], 2));
        }
    }
}

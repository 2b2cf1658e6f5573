//! First in, first out; an arriving packet that does not fit is dropped.
//!
//! Source: RFC 7567 section 1.2.
//!
//! | parameter | default | from |
//! |---|---|---|
//! | `limit` | the larger of 100 packets and 2 bandwidth-delay products | `fabric::lengths` |
//!
//! Assumed: a packet fits if the queue does not exceed the limit with it; the packet in
//! transmission does not count. (ns-2 refuses the packet that would fill the last place.)

use super::{Backlog, Env, Fifo, Qdisc};
use crate::queue::Queue;
use crate::refused::Refused;
use base::params::{Auto, Problem};
use base::registry::Meta;
use base::{Limit, Time};
use proto::Packet;

/// The description of this entry, for `list`, `explain` and `check`.
pub const META: Meta = Meta {
    summary: "first in, first out; an arriving packet that does not fit is dropped",
    source: "RFC 7567 section 1.2",
    queue_lengths: &["limit"],
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of a drop-tail queue.
    pub struct Params {
        /// Most packets or bytes that may wait; the packet in transmission does not count.
        limit: Auto<Limit> = "auto", "the larger of 100 packets and 2 bandwidth-delay products";
    }
}

/// Returns the problems of parameters that depend on the network.
pub fn check(params: &Params, env: &Env) -> Vec<Problem> {
    super::check_limit(params.limit, env)
}

/// The queue of a port.
#[derive(Clone)]
pub struct DropTail {
    limit: Limit,
    queue: Queue,
}

impl DropTail {
    /// Returns an empty queue.
    pub fn new(params: &Params, env: &Env) -> Self {
        DropTail { limit: Self::limit(params, env), queue: Queue::default() }
    }
    /// Returns the limit of the queue.
    pub fn limit(params: &Params, env: &Env) -> Limit {
        env.limit(params.limit, 100)
    }
    /// Returns the whole discipline: the engine simulates it by itself.
    pub fn fifo(params: &Params, env: &Env) -> Option<Fifo> {
        Some(Fifo { limit: Self::limit(params, env), mark: Limit::Unlimited })
    }
}

impl Qdisc for DropTail {
    #[inline]
    fn enqueue(&mut self, packet: &mut Packet, _now: Time, refused: &mut Refused) -> bool {
        self.queue.push_within(self.limit, packet, refused)
    }
    #[inline]
    fn dequeue(&mut self, _now: Time) -> Option<&mut Packet> {
        self.queue.pop()
    }
    #[inline]
    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }
    fn lengths(&self) -> Vec<(&'static str, Limit)> {
        vec![("limit", self.limit)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qdisc::tests::{drain, enqueue, env, packet};

    fn queue(limit: Limit) -> DropTail {
        assert_eq!(DropTail::fifo(&Params { limit: Auto::Set(limit) }, &env()), Some(Fifo { limit, mark: Limit::Unlimited }));
        DropTail::new(&Params { limit: Auto::Set(limit) }, &env())
    }

    #[test]
    fn the_last_place_is_used_and_the_next_packet_is_dropped() {
        let mut q = queue(Limit::Packets(2));
        let dropped: Vec<_> = (0..4).flat_map(|n| enqueue(&mut q, packet(0, n, 1500))).collect();
        assert_eq!(dropped, [(0, 2), (0, 3)]);
        assert_eq!(q.backlog(), Backlog { packets: 2, bytes: 3000 });
        assert_eq!(drain(&mut q), [(0, 0), (0, 1)]);
    }

    #[test]
    fn a_small_packet_may_fit_where_a_large_one_does_not() {
        let mut q = queue(Limit::Bytes(3000));
        let sizes = [1500, 1460, 41, 40, 1];
        let dropped: Vec<_> = sizes.iter().zip(0..).flat_map(|(size, n)| enqueue(&mut q, packet(0, n, *size))).collect();
        assert_eq!(dropped, [(0, 2), (0, 4)]);
        assert_eq!(drain(&mut q), [(0, 0), (0, 1), (0, 3)]);
    }

    #[test]
    fn without_a_limit_nothing_is_dropped() {
        let mut q = queue(Limit::Unlimited);
        for n in 0..1000 {
            assert_eq!(enqueue(&mut q, packet(0, n, 1500)), []);
        }
        assert_eq!(drain(&mut q), (0..1000).map(|n| (0, n)).collect::<Vec<_>>());
    }
}

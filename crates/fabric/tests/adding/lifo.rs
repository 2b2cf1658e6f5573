//! Last in, first out: the newest packet goes first; a full queue drops its oldest.
//!
//! Source: none; an example.
//!
//! Model: nothing is left out.
//!
//! | parameter | default | from |
//! |---|---|---|
//! | `limit` | 100 packets | as `droptail` |
//!
//! Assumed: the arriving packet always gets in, whatever must fall for it.

use super::{Backlog, Env, Fifo, Qdisc};
use crate::queue::Queue;
use base::params::Problem;
use base::registry::{Meta, Needs};
use base::{Limit, Time};
use proto::Packet;

/// What `list` and `check` know of it.
pub const META: Meta =
    Meta { summary: "last in, first out; a full queue drops its oldest packet", source: "an example", needs: Needs::NONE };

base::params! {
    /// Parameters of a last-in first-out queue.
    pub struct Params {
        /// What may wait.
        limit: Limit = "100pkt", "as droptail";
    }
}

/// Problems that show only against the network.
pub fn check(_params: &Params, _env: &Env) -> Vec<Problem> {
    Vec::new()
}

/// Packets that wait, oldest first.
pub struct Lifo {
    limit: Limit,
    queue: Queue,
}

impl Lifo {
    /// An empty queue.
    pub fn new(params: &Params, _env: &Env) -> Self {
        Lifo { limit: params.limit, queue: Queue::default() }
    }
    /// What may wait.
    pub fn limit(params: &Params, _env: &Env) -> Limit {
        params.limit
    }
    /// It is no first-in first-out queue, so the engine cannot do it by itself.
    pub fn fifo(_params: &Params, _env: &Env) -> Option<Fifo> {
        None
    }
}

impl Qdisc for Lifo {
    fn enqueue(&mut self, packet: &Packet, _now: Time, drops: &mut Vec<Packet>) -> bool {
        self.queue.push(packet);
        while self.queue.backlog().exceeds(self.limit) {
            drops.push(*self.queue.pop().expect("what exceeds a limit is not empty"));
        }
        !self.queue.is_empty()
    }
    fn dequeue(&mut self, _now: Time) -> Option<&mut Packet> {
        self.queue.pop_back()
    }
    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{FlowId, LinkId, Rate};

    fn packet(offset: u64) -> Packet {
        Packet::data(FlowId(0), offset, 1460, 40)
    }

    #[test]
    fn the_newest_goes_first_and_the_oldest_falls() {
        let env = Env { rate: Rate::from_gbps(1), mtu_bytes: 1500, host_port: false, link: LinkId(0), seed: 1 };
        let mut queue = Lifo::new(&Params { limit: Limit::Packets(2) }, &env);
        let mut drops = Vec::new();
        for offset in 0..3 {
            assert!(queue.enqueue(&packet(offset), Time::ZERO, &mut drops));
        }
        assert_eq!(drops, [packet(0)]);
        assert_eq!(queue.backlog(), Backlog { packets: 2, bytes: 3000 });
        assert_eq!(queue.dequeue(Time::ZERO), Some(&mut packet(2)));
        assert_eq!(queue.dequeue(Time::ZERO), Some(&mut packet(1)));
        assert_eq!(queue.dequeue(Time::ZERO), None);
    }
}

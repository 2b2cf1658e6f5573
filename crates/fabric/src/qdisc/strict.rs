//! Strict priority.

use super::{Backlog, Env, Fifo, Qdisc};
use base::params::Problem;
use base::registry::{Meta, Needs};
use base::{Limit, Time};
use proto::Packet;

/// What `list` and `check` know of it.
pub const META: Meta = Meta {
    summary: "strict priority between classes, first in first out within each",
    source: "IEEE 802.1Q strict priority; MERP section 4.3.1 for the eviction",
    needs: Needs::NONE,
};

base::choice! {
    /// Who falls when the queue is full.
    pub enum Evict {
        /// The arriving packet.
        Arriving = "arriving",
        /// The last-arrived packet of the worst class, the arriving one included.
        WorstClass = "worst_class",
    }
}

base::params! {
    /// Parameters of a strict-priority queue.
    pub struct Params {
        /// Number of classes; class 0 is served first.
        classes: u32 = "8" in 1..=64, "common switches";
        /// What may wait, all classes together.
        limit: Limit = "100pkt", "MERP section 6.1";
        /// Who falls when the queue is full.
        evict: Evict = "arriving", "common switches";
    }
}

/// Problems that show only against the network.
pub fn check(_params: &Params, _env: &Env) -> Vec<Problem> {
    Vec::new()
}

/// Packets that wait.
pub struct Strict;

impl Strict {
    /// An empty queue.
    pub fn new(_params: &Params, _env: &Env) -> Self {
        Strict
    }
    /// What may wait.
    pub fn limit(params: &Params, _env: &Env) -> Limit {
        params.limit
    }
    /// What the engine can do by itself.
    pub fn fifo(_params: &Params, _env: &Env) -> Option<Fifo> {
        None
    }
}

impl Qdisc for Strict {
    fn enqueue(&mut self, _packet: Packet, _now: Time, _drops: &mut Vec<Packet>) {
        todo!()
    }
    fn dequeue(&mut self, _now: Time) -> Option<Packet> {
        todo!()
    }
    fn backlog(&self) -> Backlog {
        todo!()
    }
}

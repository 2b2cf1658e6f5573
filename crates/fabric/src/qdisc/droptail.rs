//! First in, first out; an arriving packet that does not fit is dropped.

use super::{Backlog, Env, Fifo, Qdisc};
use base::params::Problem;
use base::registry::{Meta, Needs};
use base::{Limit, Time};
use proto::Packet;

/// What `list` and `check` know of it.
pub const META: Meta = Meta {
    summary: "first in, first out; an arriving packet that does not fit is dropped",
    source: "RFC 7567 section 1.2",
    needs: Needs::NONE,
};

base::params! {
    /// Parameters of a drop-tail queue.
    pub struct Params {
        /// What may wait.
        limit: Limit = "100pkt", "MERP section 6.1";
    }
}

/// Problems that show only against the network.
pub fn check(_params: &Params, _env: &Env) -> Vec<Problem> {
    Vec::new()
}

/// Packets that wait.
pub struct DropTail;

impl DropTail {
    /// An empty queue.
    pub fn new(_params: &Params, _env: &Env) -> Self {
        DropTail
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

impl Qdisc for DropTail {
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

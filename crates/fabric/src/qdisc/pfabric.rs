//! pFabric queue.

use super::{Backlog, Env, Fifo, Qdisc};
use base::params::Problem;
use base::registry::{Meta, Needs};
use base::{Limit, Time};
use proto::Packet;

/// What `list` and `check` know of it.
pub const META: Meta = Meta {
    summary: "smallest priority number first, oldest packet of the chosen flow; the largest number is dropped",
    source: "Alizadeh et al., SIGCOMM 2013, section 4.2",
    needs: Needs { transport: &["pfabric"], ..Needs::NONE },
};

base::params! {
    /// Parameters of a pFabric queue.
    pub struct Params {
        /// What may wait.
        limit: Limit = "100pkt", "MERP section 6.1; pFabric itself: two bandwidth-delay products";
    }
}

/// Problems that show only against the network.
pub fn check(_params: &Params, _env: &Env) -> Vec<Problem> {
    Vec::new()
}

/// Packets that wait.
pub struct Pfabric;

impl Pfabric {
    /// An empty queue.
    pub fn new(_params: &Params, _env: &Env) -> Self {
        Pfabric
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

impl Qdisc for Pfabric {
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

//! Room: buffers. What the ports of one switch share: may a packet wait at one of them?
//!
//! A buffer holds what waits at all ports of its switch; packets in transmission do not count, as everywhere. It is asked before the
//! discipline of the port, whose own limit holds beside it, and all ports of the switch are up to date then. A packet that finds its port idle
//! does not wait and is not asked about.

use crate::queue::Backlog;
use base::params::Problem;
use base::{Bytes, Limit};
use proto::Packet;

/// A buffer: the machine of one switch.
pub trait Buffer {
    /// Whether `packet` may wait at a port at which `port` waits, while `all` waits at the whole switch. Otherwise the packet is dropped.
    fn admits(&mut self, packet: &Packet, port: Backlog, all: Backlog) -> bool;
    /// What one port may hold while nothing waits at the others.
    fn most(&self) -> Limit {
        Limit::Unlimited
    }
}

/// What a buffer knows from configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Env {
    /// Largest packet on the wire.
    pub mtu_bytes: u16,
}

/// The problem with a `total` that never admits a full packet, if it is one.
fn check_total(total: Limit, env: Env) -> Vec<Problem> {
    let mtu = Bytes(u64::from(env.mtu_bytes));
    let problem = || Problem {
        key: "total",
        message: format!("`{total}` holds no packet of {mtu}: none could ever wait"),
        hint: format!("write at least `1pkt` or `{mtu}`"),
    };
    total.exceeded_by(1, mtu.0).then(problem).into_iter().collect()
}

pub mod complete;
pub mod dynamic;

base::registry! {
    room AnyBuffer: Buffer, env Env;
    named "buffer", "buffers", "buffer": "what the ports of a switch share";
    entries { complete: Complete, dynamic: Dynamic }
    methods {
        fn admits(&mut self, packet: &Packet, port: Backlog, all: Backlog) -> bool;
        fn most(&self) -> Limit;
    }
}

//! A room with the worked example of docs/adding.md in it, built as `crates/fabric/src/qdisc/mod.rs` builds the real one.

pub use fabric::qdisc::{Backlog, Env, Fifo, Qdisc};

use base::{Limit, Time};
use proto::Packet;

pub mod lifo;

base::registry! {
    room AnyQdisc: Qdisc, env Env;
    entries { lifo: Lifo }
    methods {
        fn enqueue(&mut self, packet: &Packet, now: Time, drops: &mut Vec<Packet>) -> bool;
        fn dequeue(&mut self, now: Time) -> Option<&mut Packet>;
        fn backlog(&self) -> Backlog;
    }
    statics {
        /// What the engine can do by itself, if it can.
        fn fifo -> Option<Fifo>;
        /// What may wait.
        fn limit -> Limit;
    }
}

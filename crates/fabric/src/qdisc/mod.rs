//! Room: queue disciplines. One machine per egress port holds the packets that wait for the wire.
//!
//! The port serves lazily: decisions about a start of service at `now` are made later, but with exactly the packets that had
//! arrived by then. Limits count waiting packets and exclude the one in transmission. A packet that finds its port idle starts at
//! once and never passes through its discipline.

use base::{Limit, Rate, Time};
use proto::Packet;

/// A queue discipline: the machine of one port.
pub trait Qdisc {
    /// Takes a packet in, and puts every packet that falls for it, which may be itself, into `drops`.
    fn enqueue(&mut self, packet: Packet, now: Time, drops: &mut Vec<Packet>);
    /// Gives the packet whose service starts at `now`. `None`: nothing waits.
    fn dequeue(&mut self, now: Time) -> Option<Packet>;
    /// What waits.
    fn backlog(&self) -> Backlog;
}

/// What waits at a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets.
    pub packets: u32,
    /// Their bytes on the wire.
    pub bytes: u64,
}

impl Backlog {
    /// Counts a packet in.
    pub fn add(&mut self, packet: &Packet) {
        self.packets += 1;
        self.bytes += u64::from(packet.wire_len);
    }
    /// Counts a packet out.
    pub fn remove(&mut self, packet: &Packet) {
        self.packets -= 1;
        self.bytes -= u64::from(packet.wire_len);
    }
    /// Whether what waits is more than `limit`.
    pub fn exceeds(&self, limit: Limit) -> bool {
        match limit {
            Limit::Packets(n) => self.packets > n,
            Limit::Bytes(n) => self.bytes > n,
            Limit::Unlimited => false,
        }
    }
}

/// What a discipline knows of its port from configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Env {
    /// Line rate.
    pub rate: Rate,
    /// Largest packet on the wire.
    pub mtu_bytes: u16,
    /// The port is a host's NIC: its queue has no limit of its own unless the scenario gives one.
    pub host_port: bool,
}

/// A first-in first-out queue whose occupancy the engine's link record computes by itself, so that the discipline has no code on
/// the hot path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fifo {
    /// Arriving packets are dropped when they would exceed this.
    pub limit: Limit,
}

pub mod droptail;
pub mod pfabric;
pub mod strict;

base::registry! {
    room AnyQdisc: Qdisc, env Env;
    entries { droptail: DropTail, strict: Strict, pfabric: Pfabric }
    methods {
        fn enqueue(&mut self, packet: Packet, now: Time, drops: &mut Vec<Packet>);
        fn dequeue(&mut self, now: Time) -> Option<Packet>;
        fn backlog(&self) -> Backlog;
    }
    statics {
        /// What the engine can do by itself, if it can.
        fn fifo -> Option<Fifo>;
        /// What may wait.
        fn limit -> Limit;
    }
}

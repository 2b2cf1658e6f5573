//! Room: receivers. What a packet that has reached its host waits for before the host's policy and transport see it.
//!
//! Without one a host takes in every packet as it comes. A receiver takes packets in one after the other, in the order in which they come.

use crate::net::Net;
use base::{HostId, Time};
use proto::Packet;

/// A receiver: the machine of one host.
pub trait Receiver {
    /// A packet comes. When the host will have taken it in, no earlier than those before; `None`: there is no room for it, and it is lost.
    fn admit(&mut self, packet: &Packet, now: Time) -> Option<Time>;
    /// The host takes in the packet that has waited longest.
    fn on_taken(&mut self, packet: &Packet);
    /// The values of the counters in its META. They belong to the host's first port.
    fn counts(&self) -> &[u64];
}

/// What a receiver knows from configuration.
#[derive(Clone, Copy)]
pub struct Env<'a> {
    /// The network.
    pub net: &'a Net,
    /// The host.
    pub host: HostId,
    /// Largest packet on the wire.
    pub mtu_bytes: u16,
}

pub mod receive_queue;

base::registry! {
    room AnyReceiver: Receiver, env Env<'_>;
    named "receiver", "receivers", "receiver": "what packets that have come wait for at their host";
    entries { receive_queue: ReceiveQueue }
    methods {
        fn admit(&mut self, packet: &Packet, now: Time) -> Option<Time>;
        fn on_taken(&mut self, packet: &Packet);
        fn counts(&self) -> &[u64];
    }
    statics {
        /// The hosts that have one, in rising order.
        fn hosts -> Vec<HostId>;
    }
}

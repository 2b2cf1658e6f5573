//! Room: receivers. A receiver determines how long a packet that has reached its host waits before
//! the host's policy and transport see it.
//!
//! Without a receiver a host processes every packet on arrival. A receiver processes packets one
//! after the other, in the order of arrival.

use crate::net::Net;
use base::{HostId, Time};
use proto::Packet;

/// A receiver: the state machine of one host.
pub trait Receiver {
    /// Handles an arriving packet. Returns when the host will have processed the packet, not
    /// earlier than previous packets; `None`: there is no room, and the packet is lost.
    fn admit(&mut self, packet: &Packet, now: Time) -> Option<Time>;
    /// The host has processed the packet that waited longest.
    fn on_taken(&mut self, packet: &Packet, now: Time);
    /// Returns the values of the counters in META up to `now`. They are counted at the host's first port.
    fn counts(&self, now: Time) -> Vec<u64>;
}

/// The environment of a host's receiver, known from the configuration.
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
    named "receiver", "receivers", "receiver": "delay of packets at the receiving host";
    entries { receive_queue: ReceiveQueue }
    methods {
        fn admit(&mut self, packet: &Packet, now: Time) -> Option<Time>;
        fn on_taken(&mut self, packet: &Packet, now: Time);
        fn counts(&self, now: Time) -> Vec<u64>;
    }
    statics {
        /// The hosts that have a receiver, in rising order.
        fn hosts -> Vec<HostId>;
    }
}

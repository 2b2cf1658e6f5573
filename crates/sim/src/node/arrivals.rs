//! Packets that have arrived at a host and that the host has not taken in yet.

use base::Time;
use fabric::buffer::Place;
use fabric::receiver::AnyReceiver;
use proto::Packet;
use std::collections::VecDeque;

/// A host's receiver, and the packets that it has not taken in yet.
pub struct Receiving {
    /// The receiver, which decides when packets are taken in.
    pub machine: AnyReceiver,
    /// The waiting packets, in the order in which they arrived.
    pub waiting: VecDeque<Waits>,
}

/// A packet that its host has not taken in yet.
pub struct Waits {
    /// Time at which the host takes the packet in.
    pub at: Time,
    /// The place where the packet counts in the buffer, if neighbours may pause each other.
    pub place: Option<Place>,
    /// The packet.
    pub packet: Packet,
}

impl Receiving {
    /// Creates a receiver without waiting packets.
    pub fn new(machine: AnyReceiver) -> Receiving {
        Receiving { machine, waiting: VecDeque::new() }
    }
    /// Returns when the next packet is taken in.
    pub fn next(&self) -> Time {
        self.waiting.front().map_or(Time::MAX, |first| first.at)
    }
}

//! What has come to a host and is not taken in yet.

use base::Time;
use fabric::buffer::Place;
use fabric::receiver::AnyReceiver;
use proto::Packet;
use std::collections::VecDeque;

/// A host's receiver, and the packets that it has not taken in yet.
pub struct Receiving {
    /// Says when.
    pub machine: AnyReceiver,
    /// In the order in which they came.
    pub waiting: VecDeque<Waits>,
}

/// A packet that its host has not taken in yet.
pub struct Waits {
    /// When that will be.
    pub at: Time,
    /// Where it counts, where neighbours pause each other.
    pub place: Option<Place>,
    /// The packet.
    pub packet: Packet,
}

impl Receiving {
    /// With nothing that waits.
    pub fn new(machine: AnyReceiver) -> Receiving {
        Receiving { machine, waiting: VecDeque::new() }
    }
    /// When the next packet is taken in.
    pub fn next(&self) -> Time {
        self.waiting.front().map_or(Time::MAX, |first| first.at)
    }
}

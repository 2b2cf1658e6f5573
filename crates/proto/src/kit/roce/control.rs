//! The contract between the RoCE machine and a rate controller.

use crate::kit::int::IntStack;
use base::{Dur, Rate, Time};

/// A rate controller of queue pairs. One controller serves all queue pairs of a host and keeps a
/// `State` for each. The machine paces packets by the rate, and recovers losses.
pub trait RateControl {
    /// The state of one queue pair.
    type State;
    /// Whether data may be marked, and receivers answer marks with congestion notification packets.
    const NOTIFIES: bool = false;
    /// Whether data carries a stack of telemetry, and ACKs return it.
    const INT: bool = false;
    /// Returns the state of a queue pair that starts now.
    fn open(&self, now: Time) -> Self::State;
    /// Called when a queue pair that had nothing to send or to acknowledge gets a message. Deadlines
    /// that passed in between have been handled.
    fn restart(&self, _state: &mut Self::State) {}
    /// Returns the present rate.
    fn rate(&self, state: &Self::State) -> Rate;
    /// Called for every ACK and NACK of a packet, also when it acknowledges nothing new.
    fn on_ack(&self, _state: &mut Self::State, _ack: &Acked) {}
    /// Called for a congestion notification packet.
    fn on_notification(&self, _state: &mut Self::State, _now: Time) {}
    /// Called when a packet with this length on the wire is handed to the NIC.
    fn on_sent(&self, _state: &mut Self::State, _wire_bytes: u64, _now: Time) {}
    /// Returns when [`RateControl::on_deadline`] must be called; `Time::MAX` for never. It changes only
    /// with a notification and at the deadline.
    fn deadline(&self, _state: &Self::State) -> Time {
        Time::MAX
    }
    /// Called at the deadline.
    fn on_deadline(&self, _state: &mut Self::State, _now: Time) {}
}

/// An ACK or NACK, as a controller sees it.
#[derive(Clone, Copy, Debug)]
pub struct Acked {
    /// The current time.
    pub now: Time,
    /// All bytes of the queue pair below have arrived.
    pub next: u64,
    /// The next byte of the queue pair to send.
    pub snd_nxt: u64,
    /// The time since the answered packet was handed to the NIC.
    pub rtt: Dur,
    /// What the ports on the path of that packet wrote.
    pub stack: IntStack,
}

//! Packets as the engine sees them.

use crate::Time;

/// A time before which an idle port sends nothing although packets wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// Time of the next transmission; `Time::MAX`: none before another packet arrives.
    pub until: Time,
    /// Bytes on the wire of the packet that is sent at that time, if no other packet arrives before.
    pub wire_len: u32,
}

/// A packet as links see it.
pub trait Wire: Copy {
    /// Returns the bytes on the wire.
    fn wire_len(&self) -> u32;
    /// Returns the time at which the last bit reaches the far end of the link.
    fn arrival(&self) -> Time;
    /// Sets the arrival time.
    fn set_arrival(&mut self, at: Time);
    /// Marks the packet as having met congestion, if it can be marked. Returns whether it can.
    fn mark(&mut self) -> bool {
        false
    }
}

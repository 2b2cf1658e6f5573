//! What the engine knows of the packets that it moves.

use crate::Time;

/// An idle port sends nothing before a time, though packets wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// That time; `Time::MAX`: nothing before another packet has come.
    pub until: Time,
    /// Bytes on the wire of the packet that is sent then, if no other comes before.
    pub wire_len: u32,
}

/// A packet as links see it.
pub trait Wire: Copy {
    /// Bytes on the wire.
    fn wire_len(&self) -> u32;
    /// When its last bit reaches the far end of its link.
    fn arrival(&self) -> Time;
    /// Sets that time.
    fn set_arrival(&mut self, at: Time);
    /// It meets congestion: marks it, if it can be marked. Says whether it can.
    fn mark(&mut self) -> bool {
        false
    }
}

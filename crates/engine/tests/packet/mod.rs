//! A packet with a number, for tests.

use base::Time;
use engine::Wire;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Packet {
    pub number: u32,
    pub len: u32,
    pub arrival: Time,
}

impl Wire for Packet {
    fn wire_len(&self) -> u32 {
        self.len
    }
    fn arrival(&self) -> Time {
        self.arrival
    }
    fn set_arrival(&mut self, at: Time) {
        self.arrival = at;
    }
}

/// Returns how many random lists a test tries; fewer under an interpreter.
pub fn lists(n: u64) -> u64 {
    if cfg!(miri) { n / 100 } else { n }
}

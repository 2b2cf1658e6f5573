//! A packet with a number, for tests.

use base::Time;
use engine::{Driver, Nodes, Wire};

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

/// How a driver orders events.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Order {
    Time,
    Windows,
}

impl Order {
    /// Sets the order of a driver with `links` links from the host with waker 0 to another host.
    pub fn set(self, driver: &mut impl Driver<Packet>, links: u32) {
        if self == Order::Windows {
            let ends = vec![[0, 1]; links as usize];
            driver.use_windows(&Nodes { ends, out: vec![0..links, links..links], wakers: vec![0], foreign: Vec::new() }, true);
        }
    }
}

/// Returns how many random lists a test tries; fewer under an interpreter.
pub fn lists(n: u64) -> u64 {
    if cfg!(miri) { n / 100 } else { n }
}

//! The test whether a flow can still meet its deadline, for every sender and receiver that gives
//! late flows up.

use crate::contract::Env;
use crate::flow::Flow;
use base::{Dur, Rate, Time};

base::choice! {
    /// When a flow with a deadline is given up.
    pub enum GiveUp {
        /// Never.
        Never = "never",
        /// When its deadline has passed, or its unsent bytes cannot arrive in time at line rate.
        Feasible = "feasible",
    }
}

/// The link of a host, as the limit of a flow that uses the link without others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    rate: Rate,
    mss: u64,
    header: u64,
}

impl Line {
    /// Returns the link of the host in an environment.
    pub fn new(env: &Env<'_>) -> Line {
        Line { rate: env.nic_rate, mss: env.mss().into(), header: env.header_bytes.into() }
    }
    /// Returns whether `left` bytes of unsent payload are late for `deadline`: the deadline has
    /// passed, or the link needs more time for the bytes and their headers than is left.
    pub fn is_late(&self, left: u64, deadline: Time, now: Time) -> bool {
        let time = deadline.since(now);
        time == Dur::ZERO || time < self.rate.tx_time(Flow::wire_bytes(left, self.mss, self.header))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::script;

    /// At 1 Gb/s a packet of 1500 bytes takes 12 us.
    #[test]
    fn a_flow_is_late_when_an_idle_link_takes_too_long() {
        let line = Line::new(&script::env());
        let at = |us| Time::ZERO + Dur::from_us(us);
        for (packets, deadline, now, late) in [
            (10, 120, 0, false),
            (10, 119, 0, true),
            (10, 220, 100, false),
            (10, 220, 101, true),
            (0, 5, 4, false),
            (0, 5, 5, true),
        ] {
            assert_eq!(line.is_late(packets * 1460, at(deadline), at(now)), late, "{packets} {deadline} {now}");
        }
        // One byte more takes one more packet with a header.
        assert!(line.is_late(10 * 1460 + 1, at(120), at(0)) && !line.is_late(10 * 1460 + 1, at(121), at(0)));
    }
}

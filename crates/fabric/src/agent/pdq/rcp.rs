//! RCP's fair share for the flows that are not in the list of a PDQ port.
//!
//! Source: N. Dukkipati, "Rate Control Protocol", 2007: `R += (T/d0) (0.1 (C - y) - q/d0) / N`,
//! here once per round trip d0 with T = d0. C is the capacity that the list of the port leaves, y
//! the rate of the flows outside the list, q the queue, N the number of these flows.

use base::{Dur, FlowId, FlowMap, Rate, Time};

/// The inputs of the share.
pub(super) struct Input {
    /// C.
    pub free: Rate,
    /// q, in bytes.
    pub queued: u64,
    /// d0.
    pub rtt: Dur,
}

/// The share of each flow outside the list.
#[derive(Clone, Debug, Default)]
pub(super) struct Share {
    rate: Rate,
    /// When the share was last computed.
    at: Time,
    /// The flows that have requested a share since then, and the bytes they sent.
    flows: FlowMap<()>,
    bytes: u64,
}

impl Share {
    /// Brings the share up to `now`. Only the first of the round trips that have passed can contain
    /// packets, because every packet calls this first.
    pub fn catch_up(&mut self, now: Time, input: &Input) {
        let rounds = now.since(self.at).0 / input.rtt.0;
        if rounds == 0 {
            return;
        }
        self.at = self.at.after(Dur(rounds * input.rtt.0));
        self.step(input, 1, self.flows.len());
        self.flows.clear();
        self.bytes = 0;
        self.step(input, rounds - 1, 0);
    }
    /// Takes `steps` equal steps. Each step would be clamped between zero and the free capacity;
    /// since all steps have the same sign, a single clamp at the end gives the same result.
    fn step(&mut self, input: &Input, steps: u64, flows: usize) {
        const PS: i128 = 1_000_000_000_000;
        let (free, rtt) = (i128::from(input.free.0), i128::from(input.rtt.0));
        let sent = i128::from(self.bytes) * 8 * PS / rtt;
        let backlog = i128::from(input.queued) * 8 * PS / rtt;
        let step = ((free - sent) / 10 - backlog) / flows.max(1) as i128;
        let rate = i128::from(self.rate.0) + step * i128::from(steps);
        self.rate = Rate(rate.clamp(0, free) as u64);
    }
    /// Returns the share of `flow`, which requests it with a packet of this many bytes on the wire.
    pub fn of(&mut self, flow: FlowId, bytes: u64) -> Rate {
        self.flows.insert(flow, ());
        self.bytes += bytes;
        self.rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Dur = Dur::from_us(100);

    fn after(rounds: u64) -> Time {
        Time(RTT.0 * rounds)
    }

    fn input(free_mbps: u64, queued: u64) -> Input {
        Input { free: Rate(free_mbps * 1_000_000), queued, rtt: RTT }
    }

    #[test]
    fn the_share_follows_the_formula() {
        let mut share = Share::default();
        assert_eq!(share.of(FlowId(1), 2500), Rate(0));
        share.of(FlowId(2), 2500);
        share.catch_up(Time(RTT.0 - 1), &input(1000, 0));
        assert_eq!(share.rate, Rate(0), "a round trip has not passed");
        // y = 5000 B / 100 us = 400 Mb/s: 0.1 (1000 - 400) / 2 flows.
        share.catch_up(after(1), &input(1000, 0));
        assert_eq!(share.rate, Rate(30_000_000));
        // No flow requested a share: 100 Mb/s per round trip. A queue of 250 B subtracts 20 Mb/s.
        share.catch_up(after(2), &input(1000, 250));
        assert_eq!(share.rate, Rate(110_000_000));
        // The share never exceeds the free capacity, and is never negative.
        share.catch_up(after(3), &input(50, 0));
        assert_eq!(share.rate, Rate(50_000_000));
        share.catch_up(after(4), &input(1000, 1_000_000));
        assert_eq!(share.rate, Rate(0));
    }

    #[test]
    fn many_rounds_at_once_are_as_one_by_one() {
        for queued in [0, 130, 1300, 2000] {
            let (mut one, mut many) = (Share::default(), Share::default());
            for share in [&mut one, &mut many] {
                share.rate = Rate(300_000_000);
                share.of(FlowId(0), 1500);
            }
            for round in 1..=9 {
                one.catch_up(after(round).after(Dur(7)), &input(777, queued));
            }
            many.catch_up(after(9).after(Dur(7)), &input(777, queued));
            assert_eq!((one.rate, one.at), (many.rate, many.at));
        }
    }
}

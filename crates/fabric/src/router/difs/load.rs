//! The load of a flow, and which difference between two ports is too large: flows are counted, or
//! weighted by their measured rates (DiFS-FM).

use base::{Dur, Fraction, Rate};

base::choice! {
    /// The quantity that ports are balanced by.
    pub enum Measure {
        /// The number of flows.
        Count = "count",
        /// The rates of the flows, as the switch measures them (DiFS-FM).
        Rate = "rate",
    }
}

/// The rules for the loads of a switch's flows and ports.
#[derive(Clone, Copy, Debug)]
pub struct Loads {
    /// The quantity that is counted.
    pub measure: Measure,
    /// Number of flows by which two ports may differ.
    pub delta: u32,
    /// The weight of the latest interval in a flow's rate.
    pub weight: Fraction,
    /// bit/s by which two ports may differ.
    pub slack_bps: u64,
}

impl Loads {
    /// Returns the rules for ports with the rate `port`, which may be uneven by the fraction
    /// `slack` of it.
    pub fn new(measure: Measure, delta: u32, weight: Fraction, slack: Fraction, port: Rate) -> Loads {
        Loads { measure, delta, weight, slack_bps: port.times(slack).0 }
    }
    /// Returns the load of a new flow; its rate is not known yet.
    pub fn first(&self) -> u64 {
        u64::from(self.measure == Measure::Count)
    }
    /// Returns a flow's load after an interval in which this many bytes of the flow passed.
    pub fn next(&self, load: u64, bytes: u64, interval: Dur) -> u64 {
        if self.measure == Measure::Count || interval == Dur::ZERO {
            return load;
        }
        let rate = u128::from(bytes) * 8_000_000_000_000 / u128::from(interval.ps());
        let (new, one) = (u128::from(self.weight.ppb()), u128::from(Fraction::ONE.ppb()));
        ((u128::from(load) * (one - new) + rate * new) / one) as u64
    }
    /// Returns whether a flow of this load should move from a port with load `high` to a port with
    /// load `low`: the difference is too large, and would be smaller afterwards.
    pub fn uneven(&self, high: u64, low: u64, load: u64) -> bool {
        let most = match self.measure {
            Measure::Count => self.delta.into(),
            Measure::Rate => load.max(self.slack_bps),
        };
        load > 0 && high.saturating_sub(low) > most
    }
    /// Returns whether moving a flow of this load from a port with load `old` to a port with load
    /// `new` would make the new port too full.
    pub fn overfills(&self, new: u64, old: u64, load: u64) -> bool {
        let most = match self.measure {
            Measure::Count => self.delta.into(),
            Measure::Rate => self.slack_bps,
        };
        (new + load).saturating_sub(old.saturating_sub(load)) > most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loads(measure: Measure) -> Loads {
        Loads::new(measure, 1, Fraction(200_000_000), Fraction(100_000_000), Rate::from_gbps(1))
    }

    /// G6, as (V_o[old], V_o[new]).
    #[test]
    fn g6_moves_and_swaps() {
        let swaps = |(old, new)| loads(Measure::Count).overfills(new, old, 1);
        assert_eq!([(1, 0), (2, 0), (2, 1), (3, 0), (3, 1), (3, 2)].map(swaps), [false; 6]);
        assert_eq!([(1, 1), (1, 2), (2, 2), (2, 3), (3, 3)].map(swaps), [true; 5]);
    }

    #[test]
    fn rates_are_smoothed_and_compared_with_a_tenth_of_the_link() {
        let loads = loads(Measure::Rate);
        // 1.25 MB in 10 ms are 1 Gb/s.
        let rate = |before| loads.next(before, 1_250_000, Dur::from_ms(10));
        assert_eq!(
            (loads.first(), rate(0), rate(200_000_000), loads.next(500, 0, Dur::from_ms(10))),
            (0, 200_000_000, 360_000_000, 400)
        );
        let uneven = |high: u64, load: u64| loads.uneven(high * 1_000_000, 50_000_000, load * 1_000_000);
        assert_eq!(
            [uneven(150, 1), uneven(151, 1), uneven(451, 400), uneven(450, 400), uneven(451, 0)],
            [false, true, true, false, false]
        );
        let overfills = |new: u64| loads.overfills(new * 1_000_000, 500_000_000, 200_000_000);
        assert_eq!([overfills(200), overfills(201)], [false, true]);
        assert_eq!(super::Loads { measure: Measure::Count, ..loads }.next(1, 99, Dur(1)), 1);
    }
}

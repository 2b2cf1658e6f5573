//! Discounting rate estimator (section 3.2): a register that every sent byte increases and every
//! interval decreases by a fraction, so that its value is near rate * tau, tau = interval / alpha.

use base::{Dur, Fraction, Rate, Time};

/// Metrics have 3 bits (Q = 3).
pub(super) const METRIC_BITS: u32 = 3;

/// The estimator of one port.
#[derive(Clone, Debug)]
pub(super) struct Dre {
    /// Estimate in bytes, as a fixed-point number with [`POINT`] binary places.
    register: u64,
    /// Value of the register when the port is always busy, in the same unit.
    full: u64,
    /// The clock of the switch: its time until the first tick is this much shorter than an interval.
    phase: Dur,
    interval: Dur,
    keep: Fraction,
    /// Number of ticks applied to the register so far.
    ticks: u64,
}

const POINT: u32 = 16;

impl Dre {
    /// Returns the estimator of an idle port, whose first tick is at `interval - phase`.
    pub(super) fn new(rate: Rate, interval: Dur, alpha: Fraction, phase: Dur) -> Dre {
        let tau = u128::from(interval.ps()) * u128::from(Fraction::ONE.0) / u128::from(alpha.0);
        let full = ((u128::from(rate.0) * tau) << POINT) / 8_000_000_000_000;
        Dre { register: 0, full: (full as u64).max(1), phase, interval, keep: alpha.complement(), ticks: 0 }
    }
    /// Counts a packet of this many wire bytes whose transmission starts.
    pub(super) fn count(&mut self, bytes: u16, now: Time) {
        self.decay(now);
        self.register += u64::from(bytes) << POINT;
    }
    /// Returns the congestion: 0 when idle, 7 when busy.
    pub(super) fn metric(&mut self, now: Time) -> u8 {
        self.decay(now);
        let level = (u128::from(self.register) << METRIC_BITS) / u128::from(self.full);
        // A burst may exceed the full scale.
        level.min((1 << METRIC_BITS) - 1) as u8
    }
    fn decay(&mut self, now: Time) {
        let ticks = now.after(self.phase).ps() / self.interval.ps();
        while self.ticks < ticks && self.register > 0 {
            self.register = (u128::from(self.register) * u128::from(self.keep.0) / u128::from(Fraction::ONE.0)) as u64;
            self.ticks += 1;
        }
        self.ticks = self.ticks.max(ticks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: u64 = 32_000_000;

    fn dre() -> Dre {
        Dre::new(Rate::from_gbps(1), Dur(TICK), Fraction(200_000_000), Dur::ZERO)
    }
    fn bytes(dre: &Dre) -> f64 {
        dre.register as f64 / f64::from(1 << POINT)
    }

    /// 1 Gb/s always busy, 32 us, alpha 0.2: before and after the decay of tick k.
    #[test]
    fn golden_values_of_a_busy_port() {
        let table = [
            (1, 4000.0, 3200.0, 1, 1),
            (2, 7200.0, 5760.0, 2, 2),
            (3, 9760.0, 7808.0, 3, 3),
            (4, 11808.0, 9446.4, 4, 3),
            (5, 13446.4, 10757.1, 5, 4),
            (8, 16644.6, 13315.6, 6, 5),
            (12, 18625.6, 14900.5, 7, 5),
            (20, 19769.4, 15815.5, 7, 6),
            (25, 19924.4, 15939.6, 7, 6),
        ];
        let mut dre = dre();
        for k in 1..=25 {
            for part in 0..4 {
                dre.count(1000, Time((k - 1) * TICK + part * TICK / 4));
            }
            let Some(row) = table.iter().find(|row| row.0 == k) else { continue };
            let before = (bytes(&dre), dre.metric(Time(k * TICK - 1)));
            let metric = dre.metric(Time(k * TICK));
            assert!((before.0 - row.1).abs() < 0.1 && (bytes(&dre) - row.2).abs() < 0.1, "tick {k}: {before:?}, {}", bytes(&dre));
            assert_eq!((before.1, metric), (row.3, row.4), "tick {k}");
        }
        let idle = [12751.6, 10201.3, 8161.1, 6528.8, 5223.1, 4178.5, 3342.8, 2674.2, 2139.4];
        for ((k, expected), metric) in (26..).zip(idle).zip([5, 4, 3, 2, 2, 1, 1, 1, 0]) {
            assert_eq!(dre.metric(Time(k * TICK)), metric);
            assert!((bytes(&dre) - expected).abs() < 0.1, "tick {k}: {} for {expected}", bytes(&dre));
        }
    }

    #[test]
    fn a_burst_is_clamped() {
        let mut dre = dre();
        (0..20).for_each(|_| dre.count(1500, Time::ZERO));
        assert_eq!(dre.metric(Time::ZERO), 7);
    }

    #[test]
    fn idle_ticks_count_whenever_they_are_looked_at() {
        let (mut lazy, mut eager) = (dre(), dre());
        for d in [&mut lazy, &mut eager] {
            d.count(1500, Time(TICK / 2));
        }
        (1..=7).for_each(|k| eager.decay(Time(k * TICK)));
        lazy.decay(Time(7 * TICK));
        assert_eq!(lazy.register, eager.register);
        lazy.decay(Time(1_000_000 * TICK));
        assert_eq!((lazy.register, lazy.ticks), (0, 1_000_000));
    }

    #[test]
    fn a_phase_brings_the_ticks_forward() {
        let mut dre = Dre { phase: Dur(TICK / 4), ..dre() };
        dre.count(4000, Time::ZERO);
        let at = |dre: &mut Dre, now| {
            dre.decay(Time(now));
            bytes(dre)
        };
        assert_eq!([3 * TICK / 4 - 1, 3 * TICK / 4, 7 * TICK / 4 - 1].map(|now| at(&mut dre, now)), [4000.0, 3200.0, 3200.0]);
    }
}

//! Round-trip estimate and retransmission timeout of RFC 6298, in whole picoseconds.
//!
//! The caller applies Karn's algorithm: no sample may come from a segment that was sent twice.

use base::Dur;
use base::params::{Auto, Problem};

/// Bounds of the retransmission timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttConfig {
    /// Timeout before the first sample.
    pub init_rto: Dur,
    /// Smallest timeout computed from samples.
    pub min_rto: Dur,
    /// Largest timeout.
    pub max_rto: Dur,
    /// Clock granularity G.
    pub clock: Dur,
}

/// Returns the problem of each timeout that exceeds `max_rto`.
pub fn above_largest(timeouts: &[(&'static str, Auto<Dur>)], max_rto: Dur) -> Vec<Problem> {
    let problem = |&(key, given): &(&'static str, Auto<Dur>)| {
        let rto = given.or(Dur::ZERO);
        let message = format!("`{rto}` is above `max_rto`, which is `{max_rto}`");
        (rto > max_rto).then(|| Problem { key, message, hint: format!("lower `{key}` or raise `max_rto`") })
    };
    timeouts.iter().filter_map(problem).collect()
}

/// The estimate for one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rtt {
    srtt: Dur,
    rttvar: Dur,
    rto: Dur,
    sampled: bool,
}

impl Rtt {
    /// Creates an estimate without samples.
    pub fn new(config: &RttConfig) -> Rtt {
        // RFC 6298 (2.1).
        Rtt { srtt: Dur::ZERO, rttvar: Dur::ZERO, rto: config.init_rto, sampled: false }
    }
    /// Adds a round-trip sample. Ends any back-off.
    #[inline]
    pub fn on_sample(&mut self, sample: Dur, config: &RttConfig) {
        if self.sampled {
            // RFC 6298 (2.3): RTTVAR first, from the old SRTT.
            self.rttvar = mix(self.rttvar, 3, Dur(self.srtt.0.abs_diff(sample.0)), 4);
            self.srtt = mix(self.srtt, 7, sample, 8);
        } else {
            // RFC 6298 (2.2).
            (self.srtt, self.rttvar, self.sampled) = (sample, sample / 2, true);
        }
        self.end_back_off(config);
    }
    /// Returns the retransmission timeout without any back-off.
    #[inline]
    pub fn base_rto(&self, config: &RttConfig) -> Dur {
        if !self.sampled {
            return config.init_rto;
        }
        let slack = config.clock.0.max(self.rttvar.0.saturating_mul(4));
        // RFC 6298 (2.4), (2.5).
        Dur(self.srtt.0.saturating_add(slack)).max(config.min_rto).min(config.max_rto)
    }
    /// Ends a back-off: the path is known to carry packets again.
    #[inline]
    pub fn end_back_off(&mut self, config: &RttConfig) {
        self.rto = self.base_rto(config);
    }
    /// Doubles the timeout when the timer has expired.
    pub fn on_timeout(&mut self, config: &RttConfig) {
        // RFC 6298 (5.5).
        self.rto = Dur(self.rto.0.saturating_mul(2)).min(config.max_rto);
    }
    /// Returns whether a round trip was measured.
    pub fn is_sampled(&self) -> bool {
        self.sampled
    }
    /// Sets the timeout to `rto` until the next sample.
    pub fn restart(&mut self, rto: Dur) {
        self.rto = rto;
    }
    /// Returns the retransmission timeout, back-off included.
    #[inline]
    pub fn rto(&self) -> Dur {
        self.rto
    }
    /// Returns the smoothed round trip; zero before the first sample.
    pub fn srtt(&self) -> Dur {
        self.srtt
    }
    /// Returns the variation of the round trip; zero before the first sample.
    pub fn rttvar(&self) -> Dur {
        self.rttvar
    }
}

/// Returns `(old * weight + new) / total`, rounded down.
#[inline]
fn mix(old: Dur, weight: u64, new: Dur, total: u64) -> Dur {
    Dur(((u128::from(old.0) * u128::from(weight) + u128::from(new.0)) / u128::from(total)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: RttConfig =
        RttConfig { init_rto: Dur::from_secs(1), min_rto: Dur::ZERO, max_rto: Dur::from_secs(60), clock: Dur::ZERO };

    /// Samples of 100, 120 and 80 us, computed by hand from RFC 6298.
    #[test]
    fn golden_samples() {
        let mut rtt = Rtt::new(&FREE);
        assert_eq!((rtt.rto(), rtt.srtt()), (Dur::from_secs(1), Dur::ZERO));
        let rows = [100, 120, 80].map(|us| {
            rtt.on_sample(Dur::from_us(us), &FREE);
            (rtt.srtt().0, rtt.rttvar().0, rtt.rto().0)
        });
        assert_eq!(rows[0], (100_000_000, 50_000_000, 300_000_000));
        assert_eq!(rows[1], (102_500_000, 42_500_000, 272_500_000));
        assert_eq!(rows[2], (99_687_500, 37_500_000, 249_687_500));
    }

    #[test]
    fn bounds_hold() {
        let config = RttConfig { min_rto: Dur::from_ms(200), max_rto: Dur::from_ms(500), ..FREE };
        let mut rtt = Rtt::new(&config);
        rtt.on_sample(Dur::from_us(100), &config);
        assert_eq!(rtt.rto(), Dur::from_ms(200));
        rtt.on_sample(Dur::from_secs(9), &config);
        assert_eq!(rtt.rto(), Dur::from_ms(500));
        rtt.on_sample(Dur::MAX, &config);
        assert_eq!(rtt.rto(), Dur::from_ms(500));
    }

    #[test]
    fn the_clock_bounds_the_variation_only() {
        let config = RttConfig { clock: Dur::from_ms(10), ..FREE };
        let mut rtt = Rtt::new(&config);
        rtt.on_sample(Dur::from_us(100), &config);
        assert_eq!(rtt.rto(), Dur::from_us(10_100));
    }

    #[test]
    fn doubles_per_expiry_up_to_the_bound_until_a_sample_comes() {
        let config = RttConfig { max_rto: Dur::from_ms(1), ..FREE };
        let mut rtt = Rtt::new(&config);
        rtt.on_sample(Dur::from_us(100), &config);
        let seen: Vec<u64> = (0..3)
            .map(|_| {
                rtt.on_timeout(&config);
                rtt.rto().0 / 1_000_000
            })
            .collect();
        assert_eq!(seen, [600, 1000, 1000]);
        rtt.on_sample(Dur::from_us(100), &config);
        assert_eq!(rtt.rto(), Dur::from_us(250));
    }
}

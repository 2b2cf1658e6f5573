//! HyStart++: the first slow start ends when the round-trip time grows, before packets are lost.
//!
//! Source: RFC 9406 section 4. Rounds end when the byte that was next to be sent at their start is
//! acknowledged. A round whose smallest sample exceeds that of the previous round by a threshold
//! begins Conservative Slow Start (CSS), in which the window grows at a quarter of the rate. CSS
//! ends with congestion avoidance after five rounds, or with slow start if the samples shrink again.

use super::tcp::{Ack, Window};
use base::Dur;

/// The delay thresholds of RFC 9406 section 4.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayThresholds {
    /// `MIN_RTT_THRESH`.
    pub least: Dur,
    /// `MAX_RTT_THRESH`.
    pub most: Dur,
}

impl DelayThresholds {
    /// Returns the growth of the smallest sample that ends slow start, after a round with this
    /// smallest sample.
    fn growth(self, last_min: Dur) -> Dur {
        self.least.max((last_min / MIN_RTT_DIVISOR).min(self.most))
    }
}

/// The state of the first slow start of one flow.
#[derive(Clone, Copy, Debug)]
pub struct Hystart {
    /// The round ends with the acknowledgment of this byte.
    window_end: u64,
    /// Smallest sample of the previous round; [`Dur::MAX`] if there is none.
    last_min: Dur,
    /// Smallest sample of this round; [`Dur::MAX`] if there is none.
    min: Dur,
    /// Samples of this round.
    samples: u32,
    css: Option<Css>,
}

/// Conservative Slow Start.
#[derive(Clone, Copy, Debug)]
struct Css {
    /// `cssBaselineMinRtt`.
    baseline: Dur,
    /// Rounds of CSS, the current round included.
    rounds: u32,
    /// Growth that is not yet added to the window, in bytes times the divisor.
    owed: u64,
}

impl Default for Hystart {
    fn default() -> Self {
        Hystart { window_end: 0, last_min: Dur::MAX, min: Dur::MAX, samples: 0, css: None }
    }
}

impl Hystart {
    /// Handles an ACK of new data in slow start: grows the window, and sets the slow-start threshold
    /// to the window when congestion avoidance begins.
    pub fn on_ack(&mut self, window: &mut Window, ack: &Ack<'_>, thresholds: DelayThresholds) {
        // Section 4.2: the round that ends is over before this ACK counts.
        if ack.snd_una > self.window_end {
            self.window_end = ack.snd_nxt;
            (self.last_min, self.min, self.samples) = (self.min, Dur::MAX, 0);
            if let Some(css) = &mut self.css {
                if css.rounds == CSS_ROUNDS {
                    window.ssthresh = window.cwnd;
                    return;
                }
                css.rounds += 1;
            }
        }
        if ack.window_limited {
            window.cwnd += match &mut self.css {
                None => ack.slow_start,
                Some(css) => {
                    css.owed += ack.slow_start;
                    let growth = css.owed / CSS_GROWTH_DIVISOR;
                    css.owed %= CSS_GROWTH_DIVISOR;
                    growth
                }
            };
        }
        if let Some(rtt) = ack.rtt() {
            self.min = self.min.min(rtt);
            self.samples += 1;
        }
        if self.samples < N_RTT_SAMPLE {
            return;
        }
        match self.css {
            None if self.last_min < Dur::MAX
                && self.min.0 >= self.last_min.0.saturating_add(thresholds.growth(self.last_min).0) =>
            {
                self.css = Some(Css { baseline: self.min, rounds: 1, owed: 0 });
            }
            // The end of slow start was spurious.
            Some(css) if self.min < css.baseline => self.css = None,
            _ => {}
        }
    }
}

/// The smallest sample of a round, divided by this, is the threshold between the two bounds.
const MIN_RTT_DIVISOR: u64 = 8;
/// Samples without which a round decides nothing.
const N_RTT_SAMPLE: u32 = 8;
/// Slow start grows by this factor faster than CSS.
const CSS_GROWTH_DIVISOR: u64 = 4;
/// Rounds of CSS.
const CSS_ROUNDS: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::script;

    const SMSS: u64 = 1460;
    const WIDE: DelayThresholds = DelayThresholds { least: Dur::from_ms(4), most: Dur::from_ms(16) };

    /// A sender with an infinite threshold, whose segments are acknowledged one by one.
    struct Run {
        hystart: Hystart,
        window: Window,
        una: u64,
    }

    impl Run {
        fn new() -> Run {
            Run { hystart: Hystart::default(), window: Window { cwnd: 10 * SMSS, ssthresh: u64::MAX }, una: 0 }
        }
        /// Acknowledges one window of data with these samples in ms, in turn. Returns the window in
        /// segments, rounded down.
        fn round(&mut self, ms: &[u64]) -> u64 {
            let flow = script::flow(0, 1);
            let (segments, first) = (self.window.cwnd / SMSS, self.una);
            for (i, ms) in (1..=segments).zip(ms.iter().cycle()) {
                self.una = first + i * SMSS;
                // The window was full before the ACK.
                let snd_nxt = self.una - SMSS + self.window.cwnd;
                let ack = script::ack_with(&flow, SMSS, |ack| {
                    (ack.snd_una, ack.snd_nxt, ack.rtt_ps) = (self.una, snd_nxt, Dur::from_ms(*ms).0);
                });
                if self.window.ssthresh == u64::MAX {
                    self.hystart.on_ack(&mut self.window, &ack, WIDE);
                }
            }
            self.window.cwnd / SMSS
        }
        fn is_conservative(&self) -> bool {
            self.hystart.css.is_some()
        }
    }

    /// Section 4.2: an eighth of the previous minimum, between the bounds.
    #[test]
    fn the_threshold_is_an_eighth_of_the_round_trip_between_its_bounds() {
        for (last, growth) in [(1, 4), (32, 4), (80, 10), (128, 16), (1000, 16)] {
            assert_eq!(WIDE.growth(Dur::from_ms(last)), Dur::from_ms(growth), "{last}");
        }
    }

    /// At 80 ms the threshold is 10 ms, for the smallest sample of a round: 89 ms is below it.
    #[test]
    fn slow_start_slows_down_when_the_smallest_sample_of_a_round_grows() {
        let mut run = Run::new();
        assert_eq!(run.round(&[80]), 20);
        assert_eq!(run.round(&[89, 200]), 40);
        assert!(!run.is_conservative());
        // 89 / 8 = 11.125 ms: 101 ms is above the threshold. The first eight ACKs of the round decide.
        assert_eq!(run.round(&[101]), 40 + 8 + 32 / 4);
        assert!(run.is_conservative());
    }

    #[test]
    fn a_round_with_fewer_than_eight_samples_decides_nothing() {
        let mut run = Run::new();
        run.window.cwnd = 7 * SMSS;
        run.round(&[80]);
        run.window.cwnd = 7 * SMSS;
        assert_eq!((run.round(&[500]), run.is_conservative()), (14, false));
        // The next round has enough samples, and compares them with those of the small round.
        assert_eq!((run.round(&[500]), run.is_conservative()), (28, false));
        run.round(&[600]);
        assert!(run.is_conservative());
    }

    /// Section 4.2: five rounds, the one in which CSS begins included.
    #[test]
    fn five_conservative_rounds_end_slow_start() {
        let mut run = Run::new();
        run.round(&[80]);
        let mut rounds = 0;
        while run.window.ssthresh == u64::MAX {
            run.round(&[100]);
            rounds += 1;
            assert!(rounds < 10, "slow start goes on");
        }
        // The sixth round begins congestion avoidance with its first ACK.
        assert_eq!(rounds, 6);
        assert_eq!(run.window.ssthresh, run.window.cwnd);
    }

    #[test]
    fn slow_start_continues_when_the_samples_shrink_again() {
        let mut run = Run::new();
        run.round(&[80]);
        run.round(&[100]);
        assert!(run.is_conservative());
        run.round(&[100]);
        assert!(run.is_conservative());
        let before = run.window.cwnd / SMSS;
        let after = run.round(&[99]);
        assert!(!run.is_conservative());
        // Eight ACKs at a quarter of the rate, the others at the full rate; fractions are carried.
        assert!((after - before).abs_diff(before - 8 + 2) <= 1, "{before} {after}");
    }
}

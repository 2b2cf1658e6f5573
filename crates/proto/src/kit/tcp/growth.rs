//! Slow start and congestion avoidance of RFC 5681 section 3.1 without rounding, and the threshold
//! after a loss: shared by controllers that differ from Reno in their reaction to marks.

use super::congestion::{Ack, Loss, Window};

/// Growth of a window, with the remaining fraction of a byte.
#[derive(Clone, Copy, Debug, Default)]
pub struct Growth {
    /// Growth of congestion avoidance that is not yet added to the window, in bytes times the
    /// window.
    owed: u64,
}

impl Growth {
    /// Grows the window for acknowledged new data, if the window was the limit.
    #[inline]
    pub fn on_ack(&mut self, window: &mut Window, ack: &Ack<'_>, smss: u64) {
        if !ack.window_limited {
            return;
        }
        if window.cwnd < window.ssthresh {
            window.cwnd += ack.slow_start;
        } else {
            // One SMSS per window of bytes acknowledged.
            self.owed += smss * ack.acked;
            let cwnd = window.cwnd;
            window.cwnd += self.owed / cwnd;
            self.owed %= cwnd;
        }
    }
}

/// Returns the slow-start threshold after a loss (RFC 5681 eq. 4), in bytes.
pub fn half_flight(loss: Loss, smss: u64) -> u64 {
    (loss.flight / 2).max(2 * smss)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::script;

    const SMSS: u64 = 1460;

    #[test]
    fn slow_start_adds_the_acknowledged_bytes_up_to_one_segment() {
        let flow = script::flow(0, 1);
        let (mut growth, mut window) = (Growth::default(), Window { cwnd: 3 * SMSS, ssthresh: u64::MAX });
        for (acked, limited, cwnd) in [(SMSS, true, 4 * SMSS), (2 * SMSS, true, 5 * SMSS), (100, true, 5 * SMSS + 100)] {
            growth.on_ack(&mut window, &script::ack_with(&flow, acked, |ack| ack.window_limited = limited), SMSS);
            assert_eq!(window.cwnd, cwnd);
        }
        growth.on_ack(&mut window, &script::ack_with(&flow, SMSS, |ack| ack.window_limited = false), SMSS);
        assert_eq!(window.cwnd, 5 * SMSS + 100);
    }

    /// Compared with w + 1/w per segment in real numbers, for windows at which whole bytes per ACK
    /// would lose a third of the growth.
    #[test]
    fn congestion_avoidance_loses_no_fraction_of_a_byte() {
        let flow = script::flow(0, 1);
        for start in [2u64, 10, 1000] {
            let mut real = start as f64;
            let (mut growth, mut window) = (Growth::default(), Window { cwnd: start * SMSS, ssthresh: SMSS });
            for _ in 0..5000 {
                growth.on_ack(&mut window, &script::ack(&flow, SMSS), SMSS);
                real += 1.0 / real;
            }
            let segments = window.cwnd as f64 / SMSS as f64;
            assert!((segments / real - 1.0).abs() < 1e-3, "from {start}: {segments}, not {real}");
        }
    }
}

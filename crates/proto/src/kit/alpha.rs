//! DCTCP's alpha: the fraction of a flow's bytes that were marked recently, its powers, and the
//! resulting window cut.
//!
//! Source: RFC 8257 section 3.3; B. Vamanan et al., "Deadline-Aware Datacenter TCP (D2TCP)",
//! SIGCOMM 2012, for the powers. Arithmetic is in integers, rounded down: alpha and the fraction of
//! marked bytes are parts per billion, windows are bytes. Powers are computed in floating point,
//! the same on every platform, and rounded to the nearest part per billion.

use base::{Fraction, math};

/// The estimate of alpha for one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alpha {
    value: Fraction,
    /// The end of the window of observation, as an offset.
    window_end: u64,
    /// Bytes acknowledged in the window of observation.
    acked: u64,
    marked: u64,
}

impl Alpha {
    /// Creates an estimate that begins with `value`. The first window of observation ends with the
    /// first ACK.
    pub fn new(value: Fraction) -> Alpha {
        Alpha { value, window_end: 0, acked: 0, marked: 0 }
    }
    /// Returns the estimate.
    #[inline]
    pub fn value(&self) -> Fraction {
        self.value
    }
    /// Counts `acked` bytes, acknowledged by an ACK that echoes a mark if `marked`. All bytes below
    /// `snd_una` are now acknowledged, all below `snd_nxt` sent. `g` is the weight of one window of
    /// observation.
    #[inline]
    pub fn on_ack(&mut self, acked: u64, marked: bool, snd_una: u64, snd_nxt: u64, g: Fraction) {
        // Steps 1 to 3.
        self.acked += acked;
        self.marked += if marked { acked } else { 0 };
        // Steps 4 to 8.
        if snd_una > self.window_end {
            self.value = average(self.value, fraction(self.marked, self.acked), g);
            (self.window_end, self.acked, self.marked) = (snd_nxt, 0, 0);
        }
    }
}

/// Returns a window of `cwnd` bytes less half the fraction `part` of it: step 9, with alpha as
/// `part`.
#[inline]
pub fn cut(cwnd: u64, part: Fraction) -> u64 {
    let twice = 2 * u128::from(Fraction::ONE.ppb());
    (u128::from(cwnd) * (twice - u128::from(part.ppb())) / twice) as u64
}

/// Returns `part ^ exponent` to the nearest part per billion: less than `part` for an exponent
/// above one, more for an exponent below one. The exponent must not be zero.
pub fn power(part: Fraction, exponent: Fraction) -> Fraction {
    let one = Fraction::ONE.ppb() as f64;
    Fraction((math::pow(part.ppb() as f64 / one, exponent.ppb() as f64 / one) * one + 0.5) as u64)
}

/// Returns `part / whole`, where `whole` is not zero.
fn fraction(part: u64, whole: u64) -> Fraction {
    Fraction((u128::from(part) * u128::from(Fraction::ONE.ppb()) / u128::from(whole)) as u64)
}

/// Returns `(1 - weight) old + weight new`.
fn average(old: Fraction, new: Fraction, weight: Fraction) -> Fraction {
    // Each product is at most 10^18.
    Fraction((old.ppb() * weight.complement().ppb() + new.ppb() * weight.ppb()) / Fraction::ONE.ppb())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SMSS: u64 = 1460;
    const G: Fraction = Fraction(62_500_000);

    /// Returns alpha after each window of observation, given the numbers of marked segments and of
    /// all segments.
    fn series(start: f64, windows: &[(u64, u64)]) -> Vec<f64> {
        let mut alpha = Alpha::new(Fraction((start * 1e9) as u64));
        let mut una = 0;
        let step = |&(marked, all): &(u64, u64)| {
            for segment in 0..all {
                una += 1;
                // The ACK of the last segment of a window ends it.
                alpha.window_end = if segment + 1 == all { una - 1 } else { una };
                alpha.on_ack(SMSS, segment < marked, una, una, G);
            }
            alpha.value().ppb() as f64 * 1e-9
        };
        windows.iter().map(step).collect()
    }

    #[track_caller]
    fn assert_near(seen: &[f64], wanted: &[f64], within: f64) {
        assert!(
            seen.len() == wanted.len() && seen.iter().zip(wanted).all(|(a, b)| (a - b).abs() < within),
            "{seen:?}, not {wanted:?}"
        );
    }

    #[test]
    fn golden_series() {
        let from_one = [(0, 10), (0, 10), (5, 10), (10, 10), (5, 20)];
        assert_near(&series(1.0, &from_one), &[0.9375, 0.87890625, 0.855224609, 0.864273071, 0.825881004], 1e-8);
        let from_zero = [(1, 1), (1, 1), (0, 1), (1, 2)];
        assert_near(&series(0.0, &from_zero), &[0.0625, 0.12109375, 0.113525391, 0.137680054], 1e-8);
        // Linux counts in 1/1024 and rounds every step.
        assert_near(&series(1.0, &from_one), &[960.0, 900.0, 876.0, 886.0, 847.0].map(|n| n / 1024.0), 2.0 / 1024.0);
    }

    /// (cwnd, alpha, cwnd after), in segments; whole bytes.
    #[test]
    fn golden_cuts() {
        let rows = [
            (20.0, 0.5, 15.0),
            (20.0, 1.0, 10.0),
            (20.0, 0.0625, 19.375),
            (10.0, 0.91015625, 5.44921875),
            (2.0, 1.0, 1.0),
            (1.0, 1.0, 1.0),
        ];
        for (cwnd, alpha, after) in rows {
            let bytes = |segments: f64| (segments * SMSS as f64) as u64;
            // The smallest window is one segment.
            assert_eq!(cut(bytes(cwnd), Fraction((alpha * 1e9) as u64)).max(SMSS), bytes(after), "{cwnd} {alpha}");
        }
        assert_eq!(cut(u64::MAX, Fraction::ONE), u64::MAX / 2);
    }

    #[test]
    fn powers_bend_alpha_and_keep_its_ends() {
        let ppb = |x: f64| Fraction((x * 1e9).round() as u64);
        let rows =
            [(0.25, 1.0, 0.25), (0.25, 2.0, 0.0625), (0.25, 0.5, 0.5), (0.25, 4.0 / 3.0, 0.157_490_131), (0.25, 2.5, 0.031_25)];
        for (part, exponent, wanted) in rows {
            assert_eq!(power(ppb(part), ppb(exponent)), ppb(wanted), "{part} ^ {exponent}");
        }
        for exponent in [0.125, 0.5, 1.0, 2.5] {
            assert_eq!([0.0, 1.0].map(|part| power(ppb(part), ppb(exponent))), [ppb(0.0), ppb(1.0)]);
        }
    }

    #[test]
    fn a_window_of_observation_ends_with_the_ack_beyond_what_was_sent_when_it_began() {
        let mut alpha = Alpha::new(Fraction(0));
        let mut feed = |una: u64, nxt: u64, marked| {
            alpha.on_ack(SMSS, marked, una * SMSS, nxt * SMSS, G);
            alpha.value().ppb()
        };
        // The first ACK ends a window of its own; the next window has segments 2 to 10.
        assert_eq!(feed(1, 10, true), 62_500_000);
        for una in 2..=10 {
            assert_eq!(feed(una, una + 10, una % 3 == 0), 62_500_000);
        }
        // The ACK beyond the end counts in the window that it ends: 4 of 10.
        assert_eq!(feed(11, 21, true), 62_500_000 * 15 / 16 + 400_000_000 / 16);
    }

    proptest! {
        /// The first power is exactly the base.
        #[test]
        fn the_first_power_changes_nothing(part in 0u64..=1_000_000_000) {
            prop_assert_eq!(power(Fraction(part), Fraction::ONE), Fraction(part));
        }

        /// Whatever is acknowledged and marked, alpha stays in [0, 1].
        #[test]
        fn alpha_is_a_fraction(
            start in 0u64..=1_000_000_000,
            g in 1u64..=1_000_000_000,
            acks in prop::collection::vec((1u64..100_000, any::<bool>(), 0u64..200_000), 1..200),
        ) {
            let (mut alpha, mut una) = (Alpha::new(Fraction(start)), 0);
            for (acked, marked, ahead) in acks {
                una += acked;
                alpha.on_ack(acked, marked, una, una + ahead, Fraction(g));
                prop_assert!(alpha.value() <= Fraction::ONE && alpha.marked <= alpha.acked);
            }
        }
    }
}

//! The coupled increase of RFC 6356 ("linked increases"), in integers.

use crate::flow::Flow;
use crate::kit::tcp::{Ack, Congestion, Loss, Window};
use base::Dur;

/// Fractional bits of `alpha` and of windows.
const POINT: u32 = 24;

/// Returns the aggressiveness of all subflows (RFC 6356 eq. 2) in units of 2^-24: `total * max(w /
/// rtt^2) / (sum of w / rtt)^2`, from the window and the smoothed round trip of each subflow.
/// Returns 1 without subflows.
pub fn alpha(subflows: impl Iterator<Item = (u64, Dur)> + Clone) -> u64 {
    let Some(shortest) = subflows.clone().map(|(_, rtt)| rtt.0.max(1)).min() else { return 1 << POINT };
    let total = subflows.clone().map(|(window, _)| u128::from(window)).sum::<u128>().max(1);
    // Only ratios matter: 1 / rtt relative to the shortest, in units of 2^-30; its mean is weighted
    // by the windows.
    let speed = |rtt: Dur| (u128::from(shortest) << 30) / u128::from(rtt.0.max(1));
    let mean = (subflows.clone().map(|(window, rtt)| u128::from(window) * speed(rtt)).sum::<u128>() / total).max(1);
    let of = |(window, rtt)| {
        let (share, ratio) = ((u128::from(window) << 32) / total, (speed(rtt) << POINT) / mean);
        // Below 2^111, since the mean is at least a subflow's share of it.
        (share * ratio * ratio) >> (32 + POINT)
    };
    subflows.map(of).max().map_or(1 << POINT, |alpha| u64::try_from(alpha).unwrap_or(u64::MAX))
}

/// The window rules of a subflow: NewReno's, except for the increase in congestion avoidance.
#[derive(Clone, Copy, Debug)]
pub struct Lia {
    /// Sender maximum segment size, in bytes.
    pub smss: u64,
}

/// The coupling state of a subflow: its view of the connection, and the fraction of a byte that its
/// window still gains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// See [`alpha`].
    pub alpha: u64,
    /// The sum of the windows of all subflows, in bytes; zero before the connection has set it.
    pub total: u64,
    owed: u128,
}

impl Congestion for Lia {
    type State = Share;

    fn open(&self, _flow: &Flow) -> Share {
        Share { alpha: 1 << POINT, total: 0, owed: 0 }
    }

    fn on_ack(&self, share: &mut Share, window: &mut Window, ack: &Ack<'_>) {
        if !ack.window_limited {
            return;
        }
        if window.cwnd < window.ssthresh {
            window.cwnd += ack.slow_start;
            return;
        }
        // RFC 6356 eq. 1.
        let gain = u128::from(ack.acked) * u128::from(self.smss);
        let coupled = gain * u128::from(share.alpha) / u128::from(share.total.max(window.cwnd));
        let uncoupled = (gain << POINT) / u128::from(window.cwnd);
        share.owed += coupled.min(uncoupled);
        window.cwnd += (share.owed >> POINT) as u64;
        share.owed &= (1 << POINT) - 1;
    }

    fn on_loss(&self, share: &mut Share, _window: &Window, loss: Loss) -> u64 {
        share.owed = 0;
        (loss.flight / 2).max(self.smss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::script;
    use crate::kit::tcp::Cause;

    const SMSS: u64 = 1460;

    /// Returns `alpha` as a real number, for windows in segments and round trips in milliseconds.
    fn real(subflows: &[(u64, u64)]) -> f64 {
        let alpha = alpha(subflows.iter().map(|&(window, rtt)| (window * SMSS, Dur::from_ms(rtt))));
        alpha as f64 / f64::from(1 << POINT)
    }

    /// Returns the growth of the first subflow's window in segments when it acknowledges one
    /// segment.
    fn growth(subflows: &[(u64, u64)]) -> f64 {
        let lia = Lia { smss: SMSS };
        let flow = script::flow(0, 1);
        let bytes = subflows.iter().map(|&(window, rtt)| (window * SMSS, Dur::from_ms(rtt)));
        let mut share = Share { alpha: alpha(bytes.clone()), total: bytes.map(|(window, _)| window).sum(), ..lia.open(&flow) };
        let cwnd = subflows[0].0 * SMSS;
        let mut window = Window { cwnd, ssthresh: SMSS };
        lia.on_ack(&mut share, &mut window, &script::ack(&flow, SMSS));
        ((window.cwnd - cwnd) as f64 + share.owed as f64 / f64::from(1 << POINT)) / SMSS as f64
    }

    /// Windows in segments with round trips; alpha; growth of the window per acknowledged segment.
    type Row<'a> = (&'a [(u64, u64)], f64, f64);

    #[test]
    fn golden_vectors() {
        let rows: [Row<'_>; 6] = [
            (&[(10, 1), (10, 1)], 0.5, 0.025),
            (&[(20, 1), (10, 1)], 0.666_667, 0.022_222),
            (&[(10, 1), (10, 2)], 0.888_889, 0.044_444),
            (&[(10, 1), (10, 1), (10, 1), (10, 1)], 0.25, 0.006_25),
            // A single subflow grows like NewReno.
            (&[(10, 3)], 1.0, 0.1),
            // A small window on a short path next to a large window on a long path.
            (&[(2, 1), (200, 100)], 25.25, 0.125),
        ];
        for (subflows, alpha, grown) in rows {
            assert!((real(subflows) - alpha).abs() < 1e-6 * alpha.max(1.0), "{subflows:?}: {}", real(subflows));
            assert!((growth(subflows) - grown).abs() < 1e-6, "{subflows:?}: {}", growth(subflows));
        }
        // The second subflow of the third row grows by the same amount.
        assert!((growth(&[(10, 2), (10, 1)]) - 0.044_444).abs() < 1e-6);
    }

    #[test]
    fn no_subflow_grows_faster_than_a_single_tcp() {
        let rows = &[(99, 1000), (1, 1)];
        assert!(real(rows) > 80.0, "{}", real(rows));
        assert!((growth(rows) - 1.0 / 99.0).abs() < 1e-6, "{}", growth(rows));
    }

    #[test]
    fn extreme_windows_and_round_trips_do_not_overflow() {
        let many = |window: u64, rtt: u64| std::iter::repeat_n((window, Dur(rtt)), 64);
        for window in [1, 1460, 1 << 40] {
            for rtt in [0, 1, u64::MAX] {
                let alpha = alpha(many(window, rtt)) as f64 / f64::from(1 << POINT);
                assert!((alpha * 64.0 - 1.0).abs() < 1e-5, "{window} {rtt}: {alpha}");
            }
        }
        assert_eq!(alpha(std::iter::empty()), 1 << POINT);
        let far = [(1460u64, Dur(1)), (1 << 30, Dur(u64::MAX))].into_iter();
        assert!((alpha(far) >> POINT).abs_diff((1 << 30) / 1460) < 1000);
    }

    #[test]
    fn slow_start_is_uncoupled_and_a_window_that_does_not_limit_stays() {
        let (lia, flow) = (Lia { smss: SMSS }, script::flow(0, 1));
        let mut share = Share { total: 1000 * SMSS, ..lia.open(&flow) };
        let mut window = Window { cwnd: 10 * SMSS, ssthresh: 11 * SMSS };
        lia.on_ack(&mut share, &mut window, &script::ack_with(&flow, SMSS, |ack| ack.window_limited = false));
        assert_eq!(window.cwnd, 10 * SMSS);
        lia.on_ack(&mut share, &mut window, &script::ack(&flow, SMSS));
        assert_eq!(window.cwnd, 11 * SMSS);
        // From here on each ACK adds a thousandth of a segment; no fraction is lost.
        (0..1000).for_each(|_| lia.on_ack(&mut share, &mut window, &script::ack(&flow, SMSS)));
        assert!((12 * SMSS - 1..=12 * SMSS).contains(&window.cwnd), "{}", window.cwnd);
    }

    #[test]
    fn a_loss_halves_the_flight_down_to_one_segment() {
        let (lia, window) = (Lia { smss: SMSS }, Window { cwnd: 100 * SMSS, ssthresh: u64::MAX });
        let halved = |flight| {
            let loss = Loss { cause: Cause::Timeout, flight, after_mark: false };
            lia.on_loss(&mut lia.open(&script::flow(0, 1)), &window, loss)
        };
        assert_eq!([9 * SMSS, SMSS].map(halved), [9 * SMSS / 2, SMSS]);
    }
}

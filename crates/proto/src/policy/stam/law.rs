//! The formulas of STAM: rounds to completion (eq. 2), slack (eq. 4), waiting time of each class (eq. 5 to 8), choice of the class (eq. 9).
//!
//! Windows and lengths are bytes of payload; times are whole picoseconds. Rounds are multiples of
//! 2^-24 round, rounded down. Waiting times are computed in double precision with the logarithm of
//! `libm` and rounded up, so that they are the same on every platform.

use base::{Dur, Fraction, math};

base::choice! {
    /// Formula for the number of rounds that a flow needs for its remaining bytes.
    pub enum Tc {
        /// Eq. 2 with 3W/4 - 1/2 packets a round, from the S at which both branches agree: 3W^2/8 -
        /// W/4 packets.
        Switch = "switch",
        /// As `switch`, but from the S of eq. 1 on: 3W^2/8 packets.
        Paper = "paper",
        /// As `switch`, but with 4W - 1/2 packets a round, as eq. 2 is printed.
        Printed = "printed",
    }
}

base::choice! {
    /// Source of the waiting times of the classes.
    pub enum Tj {
        /// The bound of eq. 5: every class is as full as allowed.
        Static = "static",
        /// The windows of the flows that are in each class.
        Measured = "measured",
    }
}

/// Fractional bits of [`Rounds`].
const BITS: u32 = 24;
/// Largest window that is used: its square and 24 more bits fit into 128 bits.
const MAX_WINDOW: u64 = 1 << 38;

/// A number of round trips, at least the smallest representable one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rounds(u128);

impl Rounds {
    /// Returns T_c of eq. 2: the rounds that `left` bytes need if every packet of each window is
    /// marked, so that the window is halved, grows by `mss` a round, and is halved again at
    /// `window`. Counts at least one packet left, and windows of at least two.
    pub(super) fn needed(left: u64, window: u64, mss: u64, tc: Tc) -> Rounds {
        let [b, w, m] = [left.max(mss), window.clamp(2 * mss, MAX_WINDOW), mss].map(u128::from);
        // S in packets times 8: 3 W^2 - 2 W, or 3 W^2.
        let long = 8 * b * m >= 3 * w * w - if tc == Tc::Paper { 0 } else { 2 * w * m };
        Rounds(match (long, tc) {
            // B / (3 W / 4 - 1 / 2).
            (true, Tc::Switch | Tc::Paper) => ((4 * b) << BITS) / (3 * w - 2 * m),
            // B / (4 W - 1 / 2).
            (true, Tc::Printed) => ((2 * b) << BITS) / (8 * w - m),
            // sqrt((W - 1)^2 / 4 + 2 B) - (W - 1) / 2.
            (false, _) => ((((w - m).pow(2) + 8 * b * m) << (2 * BITS)).isqrt() - ((w - m) << BITS)) / (2 * m),
        })
    }
    /// Returns T_slack of eq. 4 in picoseconds: the time to the deadline, `left`, divided by the
    /// rounds, less the round trip.
    pub(super) fn slack(self, left: Dur, rtt: Dur) -> i64 {
        let each = (u128::from(left.0) << BITS) / self.0.max(1);
        i64::try_from(each).unwrap_or(i64::MAX).saturating_sub_unsigned(rtt.0)
    }
}

/// Computes T_j of eq. 8: the smallest waiting time of each class that at most a share `eta` of the
/// packets exceed. `mu` is the rate of the link and `arrivals` the rate of each class, best class
/// first, in packets per second. From the first class on whose rate exceeds what the classes before
/// it leave, waiting times are unbounded.
pub(super) fn waits(mu: f64, eta: Fraction, arrivals: impl IntoIterator<Item = f64>, waits: &mut Vec<Dur>) {
    let eta = eta.ppb() as f64 / Fraction::ONE.ppb() as f64;
    let mut left = mu;
    waits.clear();
    waits.extend(arrivals.into_iter().map(|lambda| {
        // The next mu_j: (1 - rho_j) mu_j = mu_j - lambda_j, and 0 if that is negative.
        let mu_j = left;
        left -= lambda;
        let rho = lambda / mu_j;
        if mu_j <= 0.0 || rho >= 1.0 {
            left = 0.0;
            Dur::MAX
        } else if rho <= eta {
            Dur::ZERO
        } else {
            Dur(math::ceil(math::ln(rho / eta) / (mu_j - lambda) * 1e12) as u64)
        }
    }));
}

/// Returns the class of a flow with this slack, counted from 0: the last class whose waiting time
/// is within the share `epsilon` of the slack, or the first class (eq. 9).
pub(super) fn class(slack: i64, epsilon: Fraction, waits: &[Dur]) -> u8 {
    let Ok(slack) = u64::try_from(slack) else { return 0 };
    let room = Dur(slack).times(epsilon);
    waits.iter().rposition(|wait| room >= *wait).unwrap_or(0) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MSS: u64 = 1460;
    const MU: f64 = 10e9 / (8.0 * 1500.0);
    const EPSILON: Fraction = Fraction(700_000_000);

    /// Returns T_c for numbers of packets.
    fn needed(left: f64, window: u64, tc: Tc) -> f64 {
        Rounds::needed((left * MSS as f64) as u64, window * MSS, MSS, tc).0 as f64 / f64::from(1 << BITS)
    }
    fn near(a: f64, b: f64, within: f64) {
        assert!((a - b).abs() < within, "{a}, not {b}");
    }
    fn us(us: f64) -> Dur {
        Dur((us * 1e6).round() as u64)
    }
    /// Returns T_j in microseconds for equal rates of the classes: `share` packets of each class
    /// per round trip.
    fn equal(classes: usize, share: f64, rtt_us: f64, eta: f64) -> Vec<Dur> {
        let mut all = Vec::new();
        waits(MU, Fraction((eta * 1e9).round() as u64), std::iter::repeat_n(share / rtt_us * 1e6, classes), &mut all);
        all
    }

    #[test]
    fn rounds_to_completion() {
        for (window, left, rounds) in [
            (10, 200.0, 28.571_429),
            (10, 40.0, 5.714_286),
            (10, 35.0, 5.0),
            (10, 20.0, 3.262_087),
            (20, 200.0, 13.793_103),
            (20, 100.0, 7.536_725),
            (2, 10.0, 10.0),
            (64, 333.0, 9.221_616),
        ] {
            near(needed(left, window, Tc::Switch), rounds, 1e-6);
        }
        near(needed(36.0, 10, Tc::Switch), 5.142_857, 1e-6);
        near(needed(36.0, 10, Tc::Paper), 5.104_686, 1e-6);
        // The paper's change of branches leaves a step.
        near(needed(37.499_9, 10, Tc::Paper), 5.2596, 1e-4);
        near(needed(37.5, 10, Tc::Paper), 5.357_143, 1e-6);
        // The printed divisor gives about a fifth.
        near(needed(35.0, 10, Tc::Printed), 0.886_076, 1e-6);
        // The second branch is printed correctly.
        near(needed(20.0, 10, Tc::Printed), 3.262_087, 1e-6);
    }

    #[test]
    fn extremes_stay_in_bounds() {
        for tc in [Tc::Switch, Tc::Paper, Tc::Printed] {
            // A window below two packets counts as two, and zero bytes left count as one packet.
            assert_eq!(Rounds::needed(MSS, 0, MSS, tc), Rounds::needed(MSS, 2 * MSS, MSS, tc));
            assert_eq!(Rounds::needed(0, 10 * MSS, MSS, tc), Rounds::needed(MSS, 10 * MSS, MSS, tc));
            for (left, window) in [(0, 0), (u64::MAX, 0), (0, u64::MAX), (u64::MAX, u64::MAX)] {
                let rounds = Rounds::needed(left, window, MSS, tc);
                assert!(rounds.slack(Dur::MAX, Dur::ZERO) > 0);
                assert!(rounds.slack(Dur::ZERO, Dur::MAX) < 0);
            }
        }
    }

    proptest! {
        /// Both branches give W / 2 at S*, and T_c rises with the bytes left.
        #[test]
        fn rounds_are_continuous_and_rise(window in 2u64..5_000, left in 1u64..1_000_000_000, more in 1u64..1_000_000) {
            let w = window as f64;
            let at = 3.0 * w * w / 8.0 - w / 4.0;
            near(needed(at, window, Tc::Switch), w / 2.0, 1e-3);
            near(needed(at + 2e-3, window, Tc::Switch), w / 2.0, 1e-2);
            near(needed(at - 2e-3, window, Tc::Switch), w / 2.0, 1e-2);
            let rounds = |left| Rounds::needed(left, window * MSS, MSS, Tc::Switch);
            prop_assert!(rounds(left) <= rounds(left + more));
        }
        /// Under the bound of eq. 5, worse classes wait longer.
        #[test]
        fn waits_rise_with_the_class(share in 1u32..100, rtt in 10u32..2_000, eta in 1u32..=100, classes in 1usize..=32) {
            let all = equal(classes, share.into(), rtt.into(), f64::from(eta) / 10_000.0);
            prop_assert!(all.is_sorted() && all.len() == classes);
        }
    }

    #[test]
    fn slack_is_what_a_round_may_take_longer() {
        for (left, packets, window, rtt, slack, share) in [
            (15_000.0, 200.0, 10, 100.0, 425.0, 297.5),
            (3_000.0, 200.0, 10, 100.0, 5.0, 3.5),
            (5_000.0, 333.0, 10, 100.0, 5.105_105, 3.573_574),
            (25_000.0, 333.0, 4, 150.0, 37.687_688, 26.381_381),
            (5_000.0, 20.0, 10, 100.0, 1_432.760_9, 1_002.932_6),
        ] {
            let found = Rounds::needed(packets as u64 * MSS, window * MSS, MSS, Tc::Switch).slack(us(left), us(rtt));
            near(found as f64 / 1e6, slack, 1e-4);
            near(Dur(found as u64).times(EPSILON).0 as f64 / 1e6, share, 1e-4);
        }
        let negative = Rounds::needed(200 * MSS, 10 * MSS, MSS, Tc::Switch).slack(us(2_500.0), us(100.0));
        near(negative as f64 / 1e6, -12.5, 1e-4);
        assert_eq!(class(negative, EPSILON, &equal(8, 8.0, 100.0, 0.01)), 0);
    }

    #[test]
    fn waiting_times_of_classes() {
        let columns: [(Vec<Dur>, &[f64]); 4] = [
            (equal(8, 8.0, 100.0, 0.01), &[3.0023, 3.5089, 4.1713, 5.0677, 6.3375, 8.2520, 11.4138, 17.4647]),
            (equal(8, 8.0, 100.0, 0.001), &[6.0589, 6.9286, 8.0520, 9.5533, 11.6512, 14.7687, 19.8379, 29.3746]),
            (equal(4, 16.0, 100.0, 0.01), &[4.3885, 6.1716, 9.7342, 19.7221]),
            (equal(8, 8.0, 50.0, 0.01), &[4.3885, 6.1716, 9.7342, 19.7221, 132.4778]),
        ];
        for (found, wanted) in columns {
            found.iter().zip(wanted).for_each(|(a, b)| near(a.0 as f64 / 1e6, *b, 1e-4));
            assert!(found[wanted.len()..].iter().all(|wait| *wait == Dur::MAX), "{found:?}");
        }
        // A class without packets costs no wait, and leaves its rate to the next one.
        let mut found = Vec::new();
        waits(MU, Fraction(10_000_000), [0.0, 80_000.0, 7_000.0, 80_000.0], &mut found);
        assert_eq!((found[0], found[2]), (Dur::ZERO, Dur::ZERO));
        near(found[1].0 as f64 / 1e6, 3.0023, 1e-4);
        assert!(found[1] < found[3]);
        // The second class exceeds the link: it and all later classes are unbounded.
        waits(MU, Fraction(10_000_000), [80_000.0, MU, 0.0], &mut found);
        assert_eq!(found[1..], [Dur::MAX; 2]);
    }

    #[test]
    fn the_class_is_the_last_whose_wait_fits() {
        let waits = equal(8, 8.0, 100.0, 0.01);
        let slacks = [425.0, 60.0, 24.9, 20.0, 12.0, 10.0, 7.5, 5.1, 5.0, 4.0, 0.0];
        // The paper counts classes from 1.
        let classes = slacks.map(|slack| class(us(slack).0 as i64, EPSILON, &waits) + 1);
        assert_eq!(classes, [8, 8, 7, 7, 6, 5, 4, 2, 1, 1, 1]);
        // No slack allows an unbounded class.
        assert_eq!(class(i64::MAX, Fraction::ONE, &equal(8, 8.0, 50.0, 0.01)), 4);
    }
}

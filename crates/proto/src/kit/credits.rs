//! Credits of a flow at its receiver: their rate, and the feedback from their answers.
//!
//! Source: I. Cho et al., "Credit-Scheduled Delay-Bounded Congestion Control for Datacenters"
//! (ExpressPass), SIGCOMM 2017, section 3.2 with Algorithm 1 for `feedback = "paper"`; its authors'
//! ns-2 code (github.com/kaist-ina/ns2-xpass, xpass/xpass.cc) for `ns2`, the default: the paper's
//! results come from this program, and its rule differs from Algorithm 1. It allows fewer lost
//! credits the nearer a rate is to the largest one, and above this loss it sets the rate to that of
//! the answered credits.
//!
//! Every credit has a number, which the requested data returns. A missing number is a lost credit.
//! Once per round trip the share of lost credits sets the rate: above the target the rate falls to
//! that of the answered credits, below it the rate approaches the largest one.
//!
//! Assumed:
//! - Lengths of credits are uniform between their bounds, and gaps between credits within
//!   `credit_jitter` of the mean one, so that credits of different flows do not stay synchronized.
//! - Rates are in binary64. Times and lengths are integers.

use crate::contract::Env;
use base::params::Problem;
use base::{Dur, Fraction, Rng, Time};

base::choice! {
    /// How the rate of credits follows the share of lost credits.
    pub enum Feedback {
        /// Algorithm 1 of the paper.
        Paper = "paper",
        /// The authors' ns-2 code of 2018.
        Ns2 = "ns2",
    }
}

base::params! {
    /// Parameters of receivers that send credits.
    pub struct Params {
        /// How the rate of credits follows the share of lost credits.
        feedback: Feedback = "ns2", "ns2-xpass, the program of the paper's results; `paper`: Algorithm 1";
        /// First rate (alpha), as a share of the largest.
        alpha: Fraction = "0.0625" in Fraction(1_000_000)..=Fraction::ONE, "ExpressPass section 6: 1/16 for realistic workloads; ns2-xpass: 1/2";
        /// First weight of the largest rate (w).
        first_weight: Fraction = "0.0625" in Fraction(1_000_000)..=Fraction::ONE, "ExpressPass section 6: 1/16";
        /// Smallest weight (w_min).
        least_weight: Fraction = "0.01" in Fraction(1)..=Fraction::ONE, "ExpressPass section 3.2";
        /// Largest weight (w_max).
        most_weight: Fraction = "0.5" in Fraction(1)..=Fraction::ONE, "ExpressPass section 3.2";
        /// Largest share of credits that may be lost, with `feedback = "paper"`.
        target_loss: Fraction = "0.1" in Fraction(0)..=Fraction::ONE, "ExpressPass section 3.2";
        /// Smallest length of a credit on the wire, in bytes.
        least_credit: u16 = "76" in 40..=1500, "ns2-xpass large-scale-fattree.tcl";
        /// Largest length of a credit on the wire, in bytes.
        most_credit: u16 = "92" in 40..=1500, "ns2-xpass large-scale-fattree.tcl";
        /// How early or late a credit may be, as a share of the gap to the previous one.
        credit_jitter: Fraction = "0.1" in Fraction(0)..=Fraction(900_000_000), "ns2-xpass";
    }
}

/// Returns the contradictions between parameters.
pub fn check(params: &Params) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut above = |key, value: String, most_key: &str, most: String| {
        let message = format!("`{value}` is above `{most_key}`, which is `{most}`");
        problems.push(Problem { key, message, hint: format!("lower `{key}` or raise `{most_key}`") });
    };
    if params.least_credit > params.most_credit {
        above("least_credit", params.least_credit.to_string(), "most_credit", params.most_credit.to_string());
    }
    if params.least_weight > params.most_weight {
        above("least_weight", params.least_weight.to_string(), "most_weight", params.most_weight.to_string());
    }
    problems
}

/// The configuration of a receiver.
#[derive(Clone, Debug)]
pub struct CreditConfig {
    feedback: Feedback,
    alpha: f64,
    first_weight: f64,
    least_weight: f64,
    most_weight: f64,
    target_loss: f64,
    lengths: (u16, u16),
    jitter: f64,
    /// Rate of credits in bytes per second whose answers fill the host's link.
    most: f64,
}

/// Returns a share as a number.
fn share(fraction: Fraction) -> f64 {
    fraction.ppb() as f64 / 1e9
}

impl CreditConfig {
    /// Creates the configuration of a host.
    pub fn new(params: &Params, env: &Env<'_>) -> CreditConfig {
        let lengths = (params.least_credit, params.most_credit);
        let credit = mean(lengths);
        CreditConfig {
            feedback: params.feedback,
            alpha: share(params.alpha),
            first_weight: share(params.first_weight),
            least_weight: share(params.least_weight),
            most_weight: share(params.most_weight),
            target_loss: share(params.target_loss),
            lengths,
            jitter: share(params.credit_jitter),
            most: env.nic_rate.0 as f64 / 8.0 * credit / (credit + f64::from(env.mtu_bytes)),
        }
    }
    fn mean_credit(&self) -> f64 {
        mean(self.lengths)
    }
}

fn mean((least, most): (u16, u16)) -> f64 {
    (f64::from(least) + f64::from(most)) / 2.0
}

/// A credit to be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credit {
    /// Its number.
    pub number: u32,
    /// Its length on the wire, in bytes.
    pub wire_len: u16,
    /// Time to the next credit.
    pub gap: Dur,
}

/// The credits of one flow.
#[derive(Clone, Debug)]
pub struct Credits {
    /// Bytes of credits per second.
    rate: f64,
    /// The weight of the largest rate in the next one (w).
    weight: f64,
    /// Whether the last update raised the rate.
    rising: bool,
    /// The number of the next credit.
    next: u32,
    /// The number that the next answer should bring.
    expected: u32,
    /// Answered and lost credits since the last update.
    known: u32,
    lost: u32,
    updated: Time,
    /// Smoothed time from a credit to its answer; zero before the first answer.
    srtt: Dur,
}

impl Credits {
    /// Creates the state before the first credit. The first rate is `share` of `alpha`.
    pub fn new(config: &CreditConfig, share: f64, now: Time) -> Credits {
        let (rate, weight) = (share * config.alpha * config.most, config.first_weight);
        Credits { rate, weight, rising: false, next: 0, expected: 0, known: 0, lost: 0, updated: now, srtt: Dur::ZERO }
    }
    /// Returns the smoothed time from a credit to its answer; zero before the first answer.
    pub fn srtt(&self) -> Dur {
        self.srtt
    }
    /// Returns the next credit, which is sent now.
    pub fn take(&mut self, config: &CreditConfig, now: Time, rng: &mut Rng) -> Credit {
        if self.known > 0 && now.since(self.updated) >= self.srtt {
            self.update(config, now);
        }
        let (least, most) = config.lengths;
        let wire_len = least + rng.below(u64::from(most - least) + 1) as u16;
        let number = self.next;
        self.next += 1;
        let spread = 1.0 + config.jitter * (2.0 * rng.unit() - 1.0);
        let gap = config.mean_credit() / self.rate * 1e12 * spread;
        Credit { number, wire_len, gap: Dur(gap as u64 + 1) }
    }
    /// Handles the answer to the credit with this number, which was sent at `sent`. Returns how
    /// many credits before it were lost.
    pub fn on_answer(&mut self, number: u32, sent: Time, now: Time) -> u32 {
        let Some(lost) = number.checked_sub(self.expected) else { return 0 };
        self.known += lost + 1;
        self.lost += lost;
        self.expected = number + 1;
        let sample = now.since(sent).0;
        self.srtt = Dur(if self.srtt.0 == 0 { sample } else { (4 * u128::from(self.srtt.0) + u128::from(sample)) as u64 / 5 });
        lost
    }
    /// Removes `n` credits from the lost ones: they were answered by data that was dropped.
    pub fn forgive(&mut self, n: u32) {
        self.lost -= n.min(self.lost);
    }

    /// Updates the rate (Algorithm 1).
    fn update(&mut self, config: &CreditConfig, now: Time) {
        let loss = f64::from(self.lost) / f64::from(self.known);
        match config.feedback {
            Feedback::Paper => self.follow_paper(config, loss),
            Feedback::Ns2 => self.follow_ns2(config, loss, now),
        }
        // At least one credit per round trip.
        if self.srtt.0 > 0 {
            self.rate = self.rate.max(config.mean_credit() / self.srtt.as_secs_f64());
        }
        (self.known, self.lost, self.updated) = (0, 0, now);
    }
    fn follow_paper(&mut self, config: &CreditConfig, loss: f64) {
        let over = 1.0 + config.target_loss;
        if loss <= config.target_loss {
            if self.rising {
                self.weight = (self.weight + config.most_weight) / 2.0;
            }
            self.rate = (1.0 - self.weight) * self.rate + self.weight * config.most * over;
        } else {
            self.rate *= (1.0 - loss) * over;
            self.weight = (self.weight / 2.0).max(config.least_weight);
        }
        self.rising = loss <= config.target_loss;
    }
    fn follow_ns2(&mut self, config: &CreditConfig, loss: f64, now: Time) {
        let target = (1.0 - self.rate / config.most) * 0.125;
        if loss > target {
            let through = config.mean_credit() * f64::from(self.known - self.lost) / now.since(self.updated).as_secs_f64();
            self.rate = self.rate.min(through * (1.0 + target));
            self.weight = (self.weight / 2.0).max(config.least_weight);
        } else {
            if self.rising {
                self.weight = (self.weight + 0.05).min(config.most_weight);
            }
            if self.rate < config.most {
                self.rate = self.weight * config.most + (1.0 - self.weight) * self.rate;
            }
        }
        self.rising = loss <= target;
        self.rate = self.rate.min(config.most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::script;
    use base::Rate;
    use base::params::Params as _;

    fn us(n: u64) -> Time {
        Time::ZERO + Dur::from_us(n)
    }

    fn config(gbps: u64, change: impl FnOnce(&mut Params)) -> CreditConfig {
        let mut params = Params::defaults();
        change(&mut params);
        CreditConfig::new(&params, &Env { nic_rate: Rate::from_gbps(gbps), mtu_bytes: 1538, ..script::env() })
    }

    /// The largest rate is 1 here, and alpha 1/16 of it. Computed independently of this code.
    #[test]
    fn golden_rates_of_the_paper() {
        let config = CreditConfig { most: 1.0, ..config(10, |params| params.feedback = Feedback::Paper) };
        let mut credits = Credits::new(&config, 1.0, Time::ZERO);
        for (loss, rate, weight) in [
            (0.0, 0.127344, 0.0625),
            (0.0, 0.400903, 0.28125),
            (0.0, 0.673988, 0.390625),
            (0.0, 0.863696, 0.445312),
            (0.3, 0.665046, 0.222656),
            (0.05, 0.761891, 0.222656),
            (0.02, 0.884060, 0.361328),
            (0.5, 0.486233, 0.180664),
            (0.9, 0.053486, 0.090332),
            (0.0, 0.148019, 0.090332),
        ] {
            (credits.known, credits.lost) = (100, (loss * 100.0) as u32);
            credits.update(&config, Time::ZERO);
            let found = (credits.rate, credits.weight);
            assert!((found.0 - rate).abs() < 1e-6 && (found.1 - weight).abs() < 1e-6, "{loss}: {found:?}");
        }
    }

    /// 10 Gb/s, first half of the largest rate, an update every 50 us: (answered and lost credits,
    /// lost credits) and bytes per second. Computed independently of this code.
    #[test]
    fn golden_rates_of_ns2() {
        let half = |params: &mut Params| (params.feedback, params.alpha) = (Feedback::Ns2, Fraction(500_000_000));
        let config = config(10, half);
        let mut credits = Credits::new(&config, 1.0, Time::ZERO);
        for (n, (known, lost, rate)) in (1..).zip([
            (19, 0, 34_390_412.0),
            (20, 0, 37_804_166.0),
            (22, 0, 42_180_409.0),
            (25, 5, 35_063_335.0),
            (21, 1, 37_474_149.0),
            (22, 0, 41_052_121.0),
        ]) {
            (credits.known, credits.lost) = (known, lost);
            credits.update(&config, us(50 * n));
            assert!((credits.rate / rate - 1.0).abs() < 1e-6, "{n}: {}", credits.rate);
        }
        // All lost: one credit per round trip.
        (credits.known, credits.lost, credits.srtt) = (3, 3, Dur::from_us(50));
        credits.update(&config, us(1000));
        assert!((credits.rate - 84.0 / 50e-6).abs() < 1e-3);
    }

    #[test]
    fn credits_are_numbered_and_paced_within_their_bounds() {
        let config = config(10, |_| ());
        let mut rng = Rng::stream(1, "credits", &[]);
        let mut credits = Credits::new(&config, 1.0, Time::ZERO);
        // 1/16 of 770 653.5 credits per second.
        let mean = 16.0 / 770_653.5 * 1e12;
        let all: Vec<Credit> = (0..4000).map(|_| credits.take(&config, Time::ZERO, &mut rng)).collect();
        assert!(all.iter().zip(0..).all(|(credit, number)| credit.number == number));
        assert!(all.iter().all(|credit| (76..=92).contains(&credit.wire_len)));
        assert!(all.iter().all(|credit| (credit.gap.0 as f64 / mean - 1.0).abs() < 0.1 + 1e-6));
        let sum = |of: fn(&Credit) -> f64| all.iter().map(of).sum::<f64>() / 4000.0;
        assert!((sum(|credit| credit.gap.0 as f64) / mean - 1.0).abs() < 0.01);
        assert!((sum(|credit| credit.wire_len.into()) - 84.0).abs() < 0.5);
    }

    #[test]
    fn a_number_that_is_left_out_is_a_lost_credit() {
        let mut credits = Credits::new(&config(10, |_| ()), 1.0, Time::ZERO);
        assert_eq!([(0, 50), (1, 60), (5, 70)].map(|(n, now)| credits.on_answer(n, us(now - 50), us(now))), [0, 0, 3]);
        assert_eq!((credits.known, credits.lost, credits.expected, credits.srtt()), (6, 3, 6, Dur::from_us(50)));
        // A late credit is neither lost nor found again.
        assert_eq!((credits.on_answer(3, us(0), us(80)), credits.known, credits.srtt()), (0, 6, Dur::from_us(50)));
        assert_eq!((credits.on_answer(6, us(0), us(100)), credits.srtt()), (0, Dur::from_us(60)));
        credits.forgive(2);
        assert_eq!((credits.known, credits.lost), (7, 1));
    }

    /// The rate is updated once per round trip, and only after an answer.
    #[test]
    fn the_rate_changes_once_per_round_trip() {
        let config = config(10, |params| params.feedback = Feedback::Paper);
        let mut rng = Rng::stream(1, "credits", &[]);
        let mut credits = Credits::new(&config, 1.0, Time::ZERO);
        let mut rate = |credits: &mut Credits, now| {
            credits.take(&config, us(now), &mut rng);
            (credits.rate / config.most * 1e6).round() as u64
        };
        assert_eq!(rate(&mut credits, 900), 62_500);
        credits.on_answer(0, us(850), us(900));
        assert_eq!([900, 901].map(|now| rate(&mut credits, now)), [127_344, 127_344]);
        credits.on_answer(1, us(851), us(901));
        assert_eq!([949, 950].map(|now| rate(&mut credits, now)), [127_344, 400_903]);
    }

    #[test]
    fn bounds_in_the_wrong_order_are_problems() {
        let wrong = Params { least_credit: 93, least_weight: Fraction::ONE, ..Params::defaults() };
        assert_eq!(check(&wrong).iter().map(|problem| problem.key).collect::<Vec<_>>(), ["least_credit", "least_weight"]);
        assert_eq!(check(&Params::defaults()), []);
    }
}

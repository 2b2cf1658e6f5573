//! Theta-PowerTCP: PowerTCP without telemetry; the power of the path is estimated from round trips
//! and their gradient.
//!
//! Source: Addanki, Michel, Schmid, "PowerTCP: Pushing the Performance Limits of Datacenter Networks", NSDI 2022, section 3.4 and Algorithm 2;
//! `rdma-hw.cc` of the authors' program (inet-tub/ns3-datacenter) where the paper is silent. The machine is `kit/roce`, the law of
//! control that of `powertcp`.
//!
//! Model: that of `kit/roce`. Round trips are exact.
//!
//! | step on an ACK | from |
//! |---|---|
//! | 1. gradient = (round trip - previous one) / time between their ACKs | Alg. 2 |
//! | 2. power = (gradient + 1) * round trip / T | Alg. 2 |
//! | 3. average over T, weighted by the time between the ACKs | Alg. 2 |
//! | 4. once per round trip: `W = gamma (Wold / power + beta) + (1 - gamma) W` | Alg. 2 |
//!
//! Assumed:
//! - T is the smallest round trip of the queue pair, at most `base_rtt`, as in the authors' program:
//!   a flow on a short path would otherwise fill the rest of a longer one with its queue.
//! - `min_current` is that of the authors' program. Without it, a queue that drains at line rate has
//!   no power, and all windows grow at once: with 16 senders the queue oscillates around ten
//!   bandwidth-delay products.
//! - Otherwise as in `powertcp`.
//!
//! Deviates: from the authors' program (inet-tub/ns3-datacenter 6ddb4a4), where that differs from Algorithm 2.
//! - `1 - gamma` weighs the rate of one round trip ago there, the present window here (1 % of mean completion times).
//! - The window is the rate times `base_rtt` here, times the smallest round trip of the queue pair there (0.3 %).

use crate::contract::Env;
use crate::kit::roce::{Acked, KINDS, Options, RateControl, Roce, RoceConfig};
use crate::transport::powertcp::{Follower, Law};
use base::params::{Auto, Problem};
use base::registry::Meta;
use base::{Dur, Fraction, Rate, Time};

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "theta-PowerTCP: RoCE whose window follows round trips and their gradient",
    source: "Addanki et al., NSDI 2022, section 3.4",
    implies: &[("nic.low_water", "1B")],
    kinds: KINDS,
    host: "an RDMA NIC; its simulator: queue pairs take turns when the link is free",
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of theta-PowerTCP.
    pub struct Params {
        ..roce: Options {
            window = "rate", "Alg. 2: a window and its pace";
        }
        /// Weight of the new window.
        gamma: Fraction = "0.9" in Fraction(1)..=Fraction::ONE, "section 3.3: 0.9; authors' program: 0.7";
        /// Additive increase as a rate; `auto`: 0.6 % of the NIC's rate.
        rate_ai: Auto<Rate> = "auto", "authors' program: 150 Mb/s at 25 Gb/s";
        /// Power at which the window stays, as a multiple of that of a full link without queue.
        target: f64 = "1" in 0.01..=100.0, "Alg. 2; authors' program: 1.05";
        /// Smallest gradient plus one.
        min_current: Fraction = "0.5" in Fraction(0)..=Fraction::ONE, "authors' program; Alg. 2: 0";
        /// Whether ACKs within a round trip change the window.
        fast_react: bool = "false", "Alg. 2: once per round trip";
    }
}

/// Returns the contradictions between parameters and with the network.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    params.roce.check(env, 0)
}

/// The machine of one host.
pub type ThetaPowerTcp = Roce<Theta>;

impl ThetaPowerTcp {
    /// Creates a host without messages.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let config = params.roce.config(env, 0);
        Roce::with(config, Theta::new(params, config, env))
    }
}

/// The rules of theta-PowerTCP.
#[derive(Clone, Copy, Debug)]
pub struct Theta {
    law: Law,
    target: f64,
    min_current: f64,
}

/// A queue pair.
#[derive(Clone, Copy, Debug)]
pub struct State {
    follower: Follower,
    /// The smallest round trip.
    least: Dur,
    /// The previous round trip and the time of its ACK.
    previous: Option<(Dur, Time)>,
}

impl Theta {
    fn new(params: &Params, config: RoceConfig, env: &Env<'_>) -> Self {
        let law = Law::new(params.gamma, params.rate_ai, params.fast_react, config, env);
        Theta { law, target: params.target, min_current: params.min_current.ppb() as f64 / 1e9 }
    }
}

impl RateControl for Theta {
    type State = State;

    fn open(&self, _now: Time) -> State {
        State { follower: self.law.open(), least: self.law.config.base_rtt, previous: None }
    }
    fn restart(&self, state: &mut State) {
        state.previous = None;
    }
    fn rate(&self, state: &State) -> Rate {
        state.follower.rate
    }
    fn on_ack(&self, state: &mut State, ack: &Acked) {
        let (full, may_change) = self.law.round_trip(&mut state.follower, ack);
        state.least = state.least.min(ack.rtt).max(Dur(1));
        let Some((before, at)) = state.previous.replace((ack.rtt, ack.now)) else { return };
        let dt = ack.now.since(at);
        // ACKs that arrive at the same time give no gradient.
        if dt > Dur::ZERO {
            let gradient = (ack.rtt.0 as f64 - before.0 as f64) / dt.0 as f64;
            let power = (gradient + 1.0).max(self.min_current) * ack.rtt.0 as f64 / state.least.0 as f64;
            Law::average(&mut state.follower, power, dt, state.least);
        }
        if may_change {
            // An average of zero would ask for an infinite rate; the NIC's is the largest.
            let power = state.follower.power / self.target;
            self.law.follow(&mut state.follower, power, full);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::int::IntStack;
    use crate::kit::script;
    use base::params::Params as _;

    fn rules(change: impl FnOnce(&mut Params)) -> Theta {
        let mut params = Params::defaults();
        change(&mut params);
        let env = Env { nic_rate: Rate::from_gbps(100), max_rtt: Dur::from_us(10), ..script::env() };
        Theta::new(&params, params.roce.config(&env, 0), &env)
    }

    fn ack(us: u64, next: u64, snd_nxt: u64, rtt: u64) -> Acked {
        let now = Time::ZERO + Dur::from_us(us);
        Acked { now, next, snd_nxt, rtt: Dur::from_us(rtt), stack: IntStack::default() }
    }

    #[test]
    fn power_is_the_round_trip_times_its_gradient_plus_one() {
        for (rtt, power) in [(10, 1.0), (15, 1.5 * 1.5), (20, 2.0 * 2.0)] {
            let rules = rules(|_| {});
            let mut state = rules.open(Time::ZERO);
            rules.on_ack(&mut state, &ack(10, 1, 1, 10));
            rules.on_ack(&mut state, &ack(20, 2, 2, rtt));
            assert!((state.follower.power - power).abs() < 1e-9, "{rtt}: {}", state.follower.power);
            let rate = (0.9 * (100e9 / power + 0.6e9) + 10e9).min(100e9);
            assert!((state.follower.rate.bps() as f64 - rate).abs() < 2.0, "{rtt}: {}", state.follower.rate);
        }
    }

    #[test]
    fn the_window_changes_once_per_round_trip() {
        let rules = rules(|_| {});
        let mut state = rules.open(Time::ZERO);
        rules.on_ack(&mut state, &ack(10, 1, 100, 10));
        rules.on_ack(&mut state, &ack(12, 2, 101, 12));
        assert_eq!((state.follower.rate, state.follower.power > 1.0), (Rate::from_gbps(100), true));
        rules.on_ack(&mut state, &ack(14, 101, 200, 14));
        assert!(state.follower.rate < Rate::from_gbps(100) && state.follower.reference == state.follower.rate);
        // Falling round trips raise it again.
        let low = state.follower.rate;
        rules.on_ack(&mut state, &ack(24, 201, 300, 10));
        assert!(state.follower.rate > low);
    }

    #[test]
    fn a_shorter_path_has_a_shorter_base() {
        let rules = rules(|_| {});
        let mut state = rules.open(Time::ZERO);
        rules.on_ack(&mut state, &ack(4, 1, 1, 4));
        rules.on_ack(&mut state, &ack(8, 2, 2, 8));
        assert_eq!((state.least, state.follower.power), (Dur::from_us(4), 4.0));
    }
}

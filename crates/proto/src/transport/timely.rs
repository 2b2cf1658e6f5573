//! TIMELY: the rate of a queue pair follows the gradient of its round trips.
//!
//! Source: Mittal et al., "TIMELY: RTT-based Congestion Control for the Datacenter", SIGCOMM 2015, section 4.3 and Algorithm 1; with `variant =
//! "patched"`, Zhu et al., "ECN or Delay: Lessons Learnt from Analysis of DCQCN and TIMELY", CoNEXT 2016, Algorithm 2. The machine is
//! `kit/roce`.
//!
//! Model: that of `kit/roce`. Round trips are exact: the NIC's time stamps have no noise. The bursts
//! of 16 to 64 KB per segment are left out: every packet is paced.
//!
//! | round trip | rate |
//! |---|---|
//! | below `t_low` | `+ delta` |
//! | above `t_high` | `* (1 - beta (1 - t_high / rtt))` |
//! | else, gradient not above 0 | `+ N delta`; N is 5 after 5 such updates in a row, else 1 |
//! | else, gradient above 0 | `* (1 - beta gradient)` |
//! | patched, between the bounds | `+ delta (1 - w) - rate beta w (rtt - t_low) / t_low`; w rises from 0 at a gradient of -1/4 to 1 at 1/4 |
//!
//! Assumed:
//! - One update per round trip of data, as in HPCC's simulator (`rdma-hw.cc`). The paper updates
//!   with every segment of 16 to 64 KB, so that `delta` acts more often there.
//! - The time bounds and the smallest round trip scale with the network: the paper's 50 us, 500 us
//!   and 20 us at a round trip of 20 us. `delta` is a thousandth of the NIC's rate: 10 Mb/s at 10
//!   Gb/s.
//! - A negative factor counts as 0, and `min_rate` holds.
//! - The round trip that the patched variant compares with is `t_low`.
//!
//! Deviates: from the program with which PowerTCP compared it (ns3-datacenter 6ddb4a4), where that differs from Algorithm 1.
//! - Its increases are hyperactive also below `t_low`, from the sixth increase of any kind on: completion times of web search
//!   are 5 to 10 % shorter there.
//! - A new rate does not move a departure that is already scheduled there (1 to 3 %).
//! - Its bounds are always 50, 500 and 20 us.

use crate::contract::Env;
use crate::kit::roce::{Acked, KINDS, Options, RateControl, Roce, RoceConfig};
use base::params::{Auto, Problem};
use base::registry::Meta;
use base::{Dur, Fraction, Rate, Time};

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "TIMELY: RoCE whose rate follows the gradient of round trips",
    source: "Mittal et al., SIGCOMM 2015; Zhu et al., CoNEXT 2016",
    implies: &[("nic.low_water", "1B")],
    kinds: KINDS,
    host: "an RDMA NIC that sends bursts of 16 to 64 KB; ns3-datacenter: queue pairs take turns when the link is free",
    ..Meta::PLAIN
};

base::choice! {
    /// The rule between the two bounds of the round trip.
    pub enum Variant {
        /// Algorithm 1 of TIMELY.
        Original = "original",
        /// Algorithm 2 of the CoNEXT paper, which has a single fixed point.
        Patched = "patched",
    }
}

base::params! {
    /// Parameters of TIMELY.
    pub struct Params {
        ..roce: Options {}
        /// Weight of the new difference of round trips in its average.
        alpha: Fraction = "0.875" in Fraction(1)..=Fraction::ONE, "section 5: 0.875";
        /// Factor of decreases.
        beta: Fraction = "0.8" in Fraction(1)..=Fraction::ONE, "section 5: 0.8";
        /// The rate rises below this round trip; `auto`: 2.5 times `base_rtt`.
        t_low: Auto<Dur> = "auto", "section 4.3: 50 us, round trips of 20 us";
        /// The rate falls above this round trip; `auto`: 25 times `base_rtt`.
        t_high: Auto<Dur> = "auto", "section 4.3: 500 us, round trips of 20 us";
        /// Additive increase; `auto`: a thousandth of the NIC's rate.
        delta: Auto<Rate> = "auto", "section 5: 10 Mb/s at 10 Gb/s";
        /// Number of updates in a row with falling round trips after which increases are
        /// hyperactive.
        hai_after: u32 = "5" in 1..=1_000_000, "section 4.3: five completion events";
        /// Factor of hyperactive increases.
        hai: u32 = "5" in 1..=1_000_000, "section 4.3: N = 5";
        /// The rule between the bounds: `original`, or `patched`, which has a single fixed point.
        variant: Variant = "original", "Algorithm 1";
    }
}

/// Returns the contradictions between parameters and with the network.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    let mut problems = params.roce.check(env, 0);
    let rules = Gradient::new(params, params.roce.config(env, 0), env);
    if rules.t_low > rules.t_high {
        problems.push(Problem {
            key: "t_low",
            message: format!("`{}` is above `t_high`, which is `{}`", rules.t_low, rules.t_high),
            hint: "lower `t_low` or raise `t_high`".to_owned(),
        });
    }
    problems
}

/// The machine of one host.
pub type Timely = Roce<Gradient>;

impl Timely {
    /// Creates a host without messages.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let config = params.roce.config(env, 0);
        Roce::with(config, Gradient::new(params, config, env))
    }
}

/// The rules of TIMELY.
#[derive(Clone, Copy, Debug)]
pub struct Gradient {
    config: RoceConfig,
    alpha: f64,
    beta: f64,
    t_low: Dur,
    t_high: Dur,
    delta: f64,
    hai_after: u32,
    hai: f64,
    variant: Variant,
}

/// A queue pair.
#[derive(Clone, Copy, Debug)]
pub struct State {
    rate: Rate,
    /// The average difference of round trips, in ps.
    difference: f64,
    /// Updates in a row with a gradient not above 0.
    falling: u32,
    /// The previous round trip, and the bytes whose ACK brings the next update; `None` before the
    /// first ACK.
    previous: Option<(Dur, u64)>,
}

impl Gradient {
    fn new(params: &Params, config: RoceConfig, env: &Env<'_>) -> Self {
        let part = |fraction: Fraction| fraction.ppb() as f64 / 1e9;
        Gradient {
            config,
            alpha: part(params.alpha),
            beta: part(params.beta),
            t_low: env.auto("t_low", params.t_low, config.base_rtt * 5 / 2),
            t_high: env.auto("t_high", params.t_high, config.base_rtt * 25),
            delta: env.auto("delta", params.delta, Rate(config.line.bps() / 1000)).bps() as f64,
            hai_after: params.hai_after,
            hai: f64::from(params.hai),
            variant: params.variant,
        }
    }

    fn update(&self, state: &mut State, rtt: Dur, before: Dur) {
        let ps = |time: Dur| time.0 as f64;
        state.difference = (1.0 - self.alpha) * state.difference + self.alpha * (ps(rtt) - ps(before));
        let gradient = state.difference / ps(self.config.base_rtt);
        let rate = state.rate.bps() as f64;
        let falling = if gradient <= 0.0 { state.falling + 1 } else { 0 };
        state.falling = 0;
        let bps = if rtt < self.t_low {
            rate + self.delta
        } else if rtt > self.t_high {
            rate * (1.0 - self.beta * (1.0 - ps(self.t_high) / ps(rtt)))
        } else if self.variant == Variant::Patched {
            // CoNEXT 2016, eq. 30.
            let weight = (2.0 * gradient + 0.5).clamp(0.0, 1.0);
            let error = (ps(rtt) - ps(self.t_low)) / ps(self.t_low);
            self.delta * (1.0 - weight) + rate * (1.0 - self.beta * weight * error)
        } else if gradient <= 0.0 {
            state.falling = falling;
            rate + if falling >= self.hai_after { self.hai } else { 1.0 } * self.delta
        } else {
            rate * (1.0 - self.beta * gradient)
        };
        state.rate = self.config.clamp(bps);
    }
}

impl RateControl for Gradient {
    type State = State;

    fn open(&self, _now: Time) -> State {
        State { rate: self.config.line, difference: 0.0, falling: 0, previous: None }
    }
    fn restart(&self, state: &mut State) {
        state.previous = None;
    }
    fn rate(&self, state: &State) -> Rate {
        state.rate
    }
    fn on_ack(&self, state: &mut State, ack: &Acked) {
        match state.previous {
            Some((_, until)) if ack.next <= until => return,
            Some((before, _)) => self.update(state, ack.rtt, before),
            None => {}
        }
        state.previous = Some((ack.rtt, ack.snd_nxt));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::int::IntStack;
    use crate::kit::script;
    use base::params::Params as _;

    fn rules(change: impl FnOnce(&mut Params)) -> Gradient {
        let mut params = Params::defaults();
        change(&mut params);
        let env = Env { nic_rate: Rate::from_gbps(10), max_rtt: Dur::from_us(20), ..script::env() };
        Gradient::new(&params, params.roce.config(&env, 0), &env)
    }

    /// A queue pair at 1 Gb/s that has seen `before`.
    fn queue_pair(rules: &Gradient, before: u64) -> State {
        let mut state = rules.open(Time::ZERO);
        (state.rate, state.previous) = (Rate::from_gbps(1), Some((Dur::from_us(before), 0)));
        state
    }

    fn step(rules: &Gradient, state: &mut State, rtt: u64) -> f64 {
        let next = state.previous.unwrap().1 + 1;
        let ack = Acked { now: Time::ZERO, next, snd_nxt: next + 9, rtt: Dur::from_us(rtt), stack: IntStack::default() };
        rules.on_ack(state, &ack);
        state.rate.bps() as f64 / 1e6
    }

    #[test]
    fn the_bounds_scale_with_the_network() {
        let rules = rules(|_| {});
        assert_eq!((rules.t_low, rules.t_high, rules.delta), (Dur::from_us(50), Dur::from_us(500), 10e6));
        let wrong = Params { t_low: Auto::Set(Dur::from_ms(9)), ..Params::defaults() };
        assert_eq!(check(&wrong, &script::env()).iter().map(|p| p.key).collect::<Vec<_>>(), ["t_low"]);
    }

    #[test]
    fn short_round_trips_raise_and_long_ones_cut() {
        let rules = rules(|_| {});
        // 49 us, however steep: + 10 Mb/s.
        assert_eq!(step(&rules, &mut queue_pair(&rules, 20), 49), 1010.0);
        // 1000 us: 1 - 0.8 (1 - 500 / 1000).
        assert_eq!(step(&rules, &mut queue_pair(&rules, 1000), 1000), 600.0);
    }

    #[test]
    fn between_the_bounds_the_gradient_decides() {
        let rules = rules(|_| {});
        // From 100 to 110 us: the difference is 0.875 * 10 us, the gradient that over 20 us.
        let mut state = queue_pair(&rules, 100);
        assert_eq!(step(&rules, &mut state, 110), 650.0);
        // Back to 100: 0.125 * 8.75 - 8.75 is negative.
        assert_eq!(step(&rules, &mut state, 100), 660.0);
        assert_eq!(state.difference, -7.65625e6);
        // A gradient above 1.25 stops the queue pair but for the smallest rate.
        assert_eq!(step(&rules, &mut queue_pair(&rules, 100), 200), 10.0);
    }

    #[test]
    fn after_five_falling_round_trips_increases_are_hyperactive() {
        let rules = rules(|_| {});
        let mut state = queue_pair(&rules, 100);
        let rates: Vec<f64> = (0..6).map(|n| step(&rules, &mut state, 100 - n)).collect();
        assert_eq!(rates, [1010.0, 1020.0, 1030.0, 1040.0, 1090.0, 1140.0]);
        // A rising round trip starts a new count.
        step(&rules, &mut state, 120);
        let low = state.rate.bps() as f64 / 1e6;
        assert_eq!(step(&rules, &mut state, 90), low + 10.0);
    }

    #[test]
    fn the_patched_rule_weighs_increase_and_error() {
        let rules = rules(|p| p.variant = Variant::Patched);
        // No gradient: w = 1/2. At 75 us the error is 1/2.
        let mut state = queue_pair(&rules, 75);
        assert_eq!(step(&rules, &mut state, 75), 5.0 + 1000.0 * (1.0 - 0.8 * 0.5 * 0.5));
        // The fixed point of CoNEXT 2016, eq. 31: delta / 2 = rate beta / 2 (rtt - t_low) / t_low.
        let mut state = queue_pair(&rules, 50);
        state.rate = Rate(500_000_000);
        let rtt = 50.0 * (1.0 + 10.0 / (0.8 * 500.0));
        let ack = |next| Acked { now: Time::ZERO, next, snd_nxt: next, rtt: Dur((rtt * 1e6) as u64), stack: IntStack::default() };
        state.previous = Some((ack(0).rtt, 0));
        rules.on_ack(&mut state, &ack(1));
        // Round trips are whole picoseconds.
        assert!(state.rate.bps().abs_diff(500_000_000) < 10, "{}", state.rate);
    }

    #[test]
    fn one_update_per_round_trip_of_data() {
        let rules = rules(|_| {});
        let mut state = queue_pair(&rules, 20);
        step(&rules, &mut state, 30);
        let rate = state.rate;
        let inside = Acked { now: Time::ZERO, next: 5, snd_nxt: 50, rtt: Dur::from_us(30), stack: IntStack::default() };
        rules.on_ack(&mut state, &inside);
        assert_eq!(state.rate, rate);
        rules.on_ack(&mut state, &Acked { next: 11, ..inside });
        assert!(state.rate > rate);
    }
}

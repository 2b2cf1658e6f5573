//! PowerTCP: the window follows the power of the path, its current (arrivals) times its voltage
//! (bytes in flight), measured by telemetry.
//!
//! Source: Addanki, Michel, Schmid, "PowerTCP: Pushing the Performance Limits of Datacenter Networks", NSDI 2022, section 3 and Algorithm 1;
//! `rdma-hw.cc` of the authors' program (inet-tub/ns3-datacenter) where the paper is silent. The machine is `kit/roce`, the telemetry
//! `kit/int`, written by the agent `telemetry`.
//!
//! Model: that of `kit/roce`.
//!
//! | step on an ACK | from |
//! |---|---|
//! | 1. for each hop: current = change of the queue / dt + sent / dt | Alg. 1, NORMPOWER |
//! | 2. voltage = queue + B T; power = current * voltage, divided by B^2 T | same |
//! | 3. of the hop with the largest power: average over T, weighted by dt | same |
//! | 4. `W = gamma (Wold / power + beta) + (1 - gamma) W` | Alg. 1, UPDATEWINDOW |
//! | 5. the rate is `W / T` | Alg. 1 |
//!
//! Assumed:
//! - Windows are kept as rates, `W / T`, between `min_rate` and the rate of the NIC, as in the
//!   authors' program.
//! - `Wold`, the window of one round trip ago, is the one that the last ACK of a whole round trip
//!   has set, as in the authors' program. ACKs in between start from it too.
//! - The average power is 1 before the first measurement; the first ACK only records its telemetry.
//! - `beta` is 0.6 % of a bandwidth-delay product: the authors' program has 150 Mb/s at 25 Gb/s.
//! - Telemetry takes `int_bytes` bytes of every data packet, whatever the number of hops.
//! - Telemetry of another path only replaces what is recorded.
//!
//! Deviates: from the authors' program (inet-tub/ns3-datacenter 6ddb4a4), where that differs from Algorithm 1.
//! - It compares the telemetry of the first ACK with numbers that it never set, so that flows of more than one
//!   bandwidth-delay product stop for 30 us: 30 KB take 43.7 instead of 13.05 us at 25 Gb/s, medians of web search are 1.6
//!   times as long. Here the first ACK only records.
//! - `1 - gamma` weighs the rate of one round trip ago there, the present window here and in Algorithm 1 (no effect seen).
//! - Its window is in bytes of the wire and bounds payload. With `eta = 1` and `min_current = 0` two senders then never settle:
//!   0.92 of the link and a queue of 48 KB at 25 Gb/s and 40 us, with bytes of the wire 0.99 and 2.8 KB. Its own
//!   `eta = 0.95` and `min_current = 0.5` hide this;
//!   with them two flows end 2 % sooner there (`window_unit = "payload"`).

use crate::contract::Env;
use crate::kit::int::IntStack;
use crate::kit::roce::{Acked, KINDS, Options, RateControl, Roce, RoceConfig};
use base::params::{Auto, Problem};
use base::registry::{Meta, Needs};
use base::{Dur, Fraction, Rate, Time};
use std::mem;

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "PowerTCP: RoCE whose window follows queue and arrival rate of the busiest port",
    source: "Addanki et al., NSDI 2022",
    needs: Needs { agent: &["telemetry"], ..Needs::NONE },
    implies: &[("agent.kind", "telemetry")],
    kinds: KINDS,
    host: "an RDMA NIC; its simulator: queue pairs take turns when the link is free",
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of PowerTCP.
    pub struct Params {
        ..roce: Options {
            window = "rate", "Alg. 1: a window and its pace";
        }
        /// Weight of the new window.
        gamma: Fraction = "0.9" in Fraction(1)..=Fraction::ONE, "section 3.3: 0.9";
        /// Additive increase as a rate; `auto`: 0.6 % of the NIC's rate.
        rate_ai: Auto<Rate> = "auto", "authors' program: 150 Mb/s at 25 Gb/s";
        /// Power at which the window stays, as a fraction of that of a full link without queue.
        eta: Fraction = "1" in Fraction(1)..=Fraction::ONE, "Alg. 1; authors' program: 0.95";
        /// Smallest current, as a fraction of the line rate.
        min_current: Fraction = "0" in Fraction(0)..=Fraction::ONE, "Alg. 1; authors' program: 0.5";
        /// Whether ACKs within a round trip change the window.
        fast_react: bool = "true", "Alg. 1";
        /// Bytes of telemetry in every data packet and ACK.
        int_bytes: u16 = "42" in 0..=400, "HPCC section 4.1: 8 bytes for each of 5 hops, and 2";
    }
}

/// Returns the contradictions between parameters and with the network.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    params.roce.check(env, params.int_bytes)
}

/// The machine of one host.
pub type PowerTcp = Roce<Power>;

impl PowerTcp {
    /// Creates a host without messages.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let config = params.roce.config(env, params.int_bytes);
        Roce::with(config, Power::new(params, config, env))
    }
}

/// The law of control: what a measured power does to the rate.
#[derive(Clone, Copy, Debug)]
pub struct Law {
    pub(super) config: RoceConfig,
    gamma: f64,
    rate_ai: f64,
    fast_react: bool,
}

/// What the law keeps of a queue pair.
#[derive(Clone, Copy, Debug)]
pub struct Follower {
    pub(super) rate: Rate,
    /// The rate that the last ACK of a whole round trip has set.
    pub(super) reference: Rate,
    /// The average power.
    pub(super) power: f64,
    /// The next update of the reference comes with the ACK of bytes beyond these.
    updated: u64,
}

impl Law {
    pub(super) fn new(gamma: Fraction, rate_ai: Auto<Rate>, fast_react: bool, config: RoceConfig, env: &Env<'_>) -> Law {
        let auto = Rate(config.line.bps() / 1000 * 6);
        Law { config, gamma: gamma.ppb() as f64 / 1e9, rate_ai: env.auto("rate_ai", rate_ai, auto).bps() as f64, fast_react }
    }
    pub(super) fn open(&self) -> Follower {
        Follower { rate: self.config.line, reference: self.config.line, power: 1.0, updated: 0 }
    }
    /// Returns whether the ACK ends a round trip of data, and whether it may change the rate.
    pub(super) fn round_trip(&self, follower: &mut Follower, ack: &Acked) -> (bool, bool) {
        let full = ack.next > follower.updated;
        if full {
            follower.updated = ack.snd_nxt;
        }
        (full, full || self.fast_react)
    }
    /// Adds a measured power that has lasted for `dt` to the average over the round trip `base`.
    pub(super) fn average(follower: &mut Follower, power: f64, dt: Dur, base: Dur) {
        let part = dt.min(base).as_secs_f64() / base.as_secs_f64();
        follower.power = (1.0 - part) * follower.power + part * power;
    }
    /// Alg. 1, UPDATEWINDOW, with `power` relative to the one at which the window stays.
    pub(super) fn follow(&self, follower: &mut Follower, power: f64, full: bool) {
        let (old, now) = (follower.reference.bps() as f64, follower.rate.bps() as f64);
        follower.rate = self.config.clamp(self.gamma * (old / power + self.rate_ai) + (1.0 - self.gamma) * now);
        if full {
            follower.reference = follower.rate;
        }
    }
}

/// The rules of PowerTCP.
#[derive(Clone, Copy, Debug)]
pub struct Power {
    law: Law,
    eta: f64,
    min_current: f64,
}

/// A queue pair.
#[derive(Clone, Copy, Debug)]
pub struct State {
    follower: Follower,
    path: IntStack,
}

impl Power {
    fn new(params: &Params, config: RoceConfig, env: &Env<'_>) -> Self {
        let part = |fraction: Fraction| fraction.ppb() as f64 / 1e9;
        let law = Law::new(params.gamma, params.rate_ai, params.fast_react, config, env);
        Power { law, eta: part(params.eta), min_current: part(params.min_current) }
    }

    /// Alg. 1, NORMPOWER.
    fn measure(&self, state: &mut State, ack: &Acked) -> bool {
        let (base, mut busiest) = (self.law.config.base_rtt, None);
        for (hop, before) in ack.stack.after(&mem::replace(&mut state.path, ack.stack)) {
            let (dt, line) = (hop.since(&before), hop.rate.bps() as f64 / 8.0);
            // Two packets in the same nanosecond give no rate.
            if dt == Dur::ZERO {
                continue;
            }
            let (bdp, queue) = (line * base.as_secs_f64(), hop.queue_bytes as f64);
            let arrived = hop.sent_since(&before) as f64 + queue - before.queue_bytes as f64;
            let current = (arrived / dt.as_secs_f64()).max(self.min_current * line);
            let power = current * (queue + bdp) / (line * bdp);
            if busiest.is_none_or(|(most, _)| power > most) {
                busiest = Some((power, dt));
            }
        }
        let Some((power, dt)) = busiest else { return false };
        Law::average(&mut state.follower, power, dt, base);
        true
    }
}

impl RateControl for Power {
    type State = State;
    const INT: bool = true;

    fn open(&self, _now: Time) -> State {
        State { follower: self.law.open(), path: IntStack::default() }
    }
    fn restart(&self, state: &mut State) {
        state.path = IntStack::default();
    }
    fn rate(&self, state: &State) -> Rate {
        state.follower.rate
    }
    fn on_ack(&self, state: &mut State, ack: &Acked) {
        let (full, may_change) = self.law.round_trip(&mut state.follower, ack);
        if may_change && self.measure(state, ack) {
            let power = state.follower.power / self.eta;
            self.law.follow(&mut state.follower, power, full);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::int::LineRate;
    use crate::kit::script;
    use base::params::Params as _;

    const LINE: Rate = Rate::from_gbps(100);

    fn rules(change: impl FnOnce(&mut Params)) -> Power {
        let mut params = Params::defaults();
        change(&mut params);
        let env = Env { nic_rate: LINE, max_rtt: Dur::from_ns(12_800), ..script::env() };
        Power::new(&params, params.roce.config(&env, params.int_bytes), &env)
    }

    fn ack(ns: u64, next: u64, hops: &[(u64, u64)]) -> Acked {
        let now = Time::ZERO + Dur::from_ns(ns);
        let mut stack = IntStack::default();
        hops.iter().for_each(|&(sent, queue)| stack.push(now, sent, queue, LineRate::new(LINE)));
        Acked { now, next, snd_nxt: next, rtt: Dur::from_ns(12_800), stack }
    }

    /// In 12.8 us a full link sends 160 000 bytes, its bandwidth-delay product.
    #[test]
    fn power_is_arrivals_times_bytes_in_flight() {
        for (hops, expected) in [
            // A full link without queue.
            ([(160_000, 0)], 1.0),
            // Half of the line rate.
            ([(80_000, 0)], 0.5),
            // The queue grew by half of a product: a current of 1.5 and a voltage of 1.5.
            ([(160_000, 80_000)], 2.25),
        ] {
            let rules = rules(|_| {});
            let mut state = rules.open(Time::ZERO);
            rules.on_ack(&mut state, &ack(1_000, 1, &[(0, 0)]));
            rules.on_ack(&mut state, &ack(13_800, 2, &hops));
            assert!((state.follower.power / expected - 1.0).abs() < 1e-3, "{hops:?}: {}", state.follower.power);
            // gamma (W / power + beta) + (1 - gamma) W.
            let rate = (0.9 * (100e9 / expected + 0.6e9) + 10e9f64).min(100e9);
            assert!((state.follower.rate.bps() as f64 / rate - 1.0).abs() < 1e-3, "{hops:?}: {}", state.follower.rate);
        }
    }

    #[test]
    fn a_queue_that_drains_at_line_rate_is_less_power_than_one_that_stays() {
        let power = |before: u64, after: u64| {
            let rules = rules(|_| {});
            let mut state = rules.open(Time::ZERO);
            rules.on_ack(&mut state, &ack(1_000, 1, &[(0, before)]));
            rules.on_ack(&mut state, &ack(13_800, 2, &[(160_000, after)]));
            state.follower.power
        };
        // The voltage is the same; arrivals are a half, one, and one and a half of the line rate.
        let found = [power(160_000, 80_000), power(80_000, 80_000), power(0, 80_000)];
        for (found, expected) in found.iter().zip([0.75, 1.5, 2.25]) {
            assert!((found / expected - 1.0).abs() < 1e-3, "{found} {expected}");
        }
    }

    #[test]
    fn the_authors_program_has_another_target_and_a_smallest_current() {
        let rules = rules(|p| (p.eta, p.min_current) = (Fraction(950_000_000), Fraction(500_000_000)));
        let mut state = rules.open(Time::ZERO);
        rules.on_ack(&mut state, &ack(1_000, 1, &[(0, 0)]));
        rules.on_ack(&mut state, &ack(13_800, 2, &[(16_000, 0)]));
        assert!((state.follower.power - 0.5).abs() < 1e-9);
        // A full link: 0.9 (0.95 W + beta) + 0.1 W.
        let mut state = rules.open(Time::ZERO);
        rules.on_ack(&mut state, &ack(1_000, 1, &[(0, 0)]));
        rules.on_ack(&mut state, &ack(13_800, 2, &[(160_000, 0)]));
        assert!((state.follower.rate.bps() as f64 / 96.04e9 - 1.0).abs() < 1e-3, "{}", state.follower.rate);
    }

    #[test]
    fn short_intervals_count_by_their_share_of_a_round_trip() {
        let rules = rules(|_| {});
        let mut state = rules.open(Time::ZERO);
        rules.on_ack(&mut state, &ack(1_000, 1, &[(0, 0)]));
        rules.on_ack(&mut state, &ack(4_200, 2, &[(0, 0)]));
        // Nothing for a quarter of a round trip.
        assert_eq!(state.follower.power, 0.75);
    }

    /// The equilibrium of section 3.3: the rates of N flows fill the link, so that power = 1 + queue
    /// / (B T), and each rate is r = r / power + beta. Their sum gives power = 1 / (1 - N beta / B).
    #[test]
    fn flows_settle_with_a_queue_of_their_additive_increases() {
        let rules = rules(|_| {});
        let mut states: Vec<State> = (0..10).map(|_| rules.open(Time::ZERO)).collect();
        let (bdp, step, mut sent, mut queue) = (160_000.0, 16_000.0, 0.0, 0.0);
        // Steps of a tenth of a round trip; the queue is a fluid.
        for n in 0..30_000u64 {
            let arrivals: f64 = states.iter().map(|state| state.follower.rate.bps() as f64 * 1.28e-6 / 8.0).sum();
            let waiting: f64 = queue + arrivals;
            let served = waiting.min(step);
            (sent, queue) = (sent + served, waiting - served);
            for state in &mut states {
                let ack = ack(1_280 * (n + 1), n + 1, &[(sent as u64, queue as u64)]);
                rules.on_ack(state, &Acked { snd_nxt: n + 11, ..ack });
            }
        }
        // Ten times 0.6 % of the line rate: 1 / 0.94 - 1 of a product.
        assert!((queue / (0.06 / 0.94 * bdp) - 1.0).abs() < 0.03, "{queue}");
    }
}

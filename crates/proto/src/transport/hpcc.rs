//! HPCC: every ACK says what the ports on the path have sent and hold, and the sender computes from
//! it a rate that keeps the busiest link at a target utilization.
//!
//! Source: Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, section 3 and Algorithm 1; `rdma-hw.cc` of its simulator
//! (alibaba-edu/High-Precision-Congestion-Control) where the paper is silent. The machine is `kit/roce`, the telemetry
//! `kit/int`, written by the agent `telemetry`.
//!
//! Model: that of `kit/roce`. HPCC-PINT and a rate per hop (the simulator's `MULTI_RATE`) are left
//! out.
//!
//! | step on an ACK | from |
//! |---|---|
//! | 1. for each hop: `u = min(queue, queue before) / (B T) + sent / dt / B` | Alg. 1 l. 4 to 6, eq. 2 |
//! | 2. of the hop with the largest u: `U = (1 - dt / T) U + dt / T u` | l. 7 to 10 |
//! | 3. `U >= eta`, or `max_stage` additive increases: `W = Wc / (U / eta) + W_AI` | l. 13 and 14 |
//! | 4. else `W = Wc + W_AI` | l. 19 |
//! | 5. once per round trip, `Wc = W` and the additive increases are counted | l. 15 to 22, 26 to 30 |
//! | 6. the rate is `W / T` | l. 31 |
//!
//! Assumed:
//! - Windows are kept as rates, `W / T`, as in the simulator. A rate is at least `min_rate` and at
//!   most that of the NIC.
//! - U is 1 before the first measurement; the first ACK only records its telemetry. Both are the
//!   simulator's.
//! - `W_AI` is `(1 - eta) / flows` of a bandwidth-delay product (section 3.3) with 100 flows: the
//!   paper's 80 bytes at 100 Gb/s and 13 us.
//! - Telemetry takes `int_bytes` bytes of every data packet, whatever the number of hops.
//! - Telemetry of another path, which has more or fewer hops or another rate at some hop, only
//!   replaces what is recorded. The paper compares path identifiers.

use crate::contract::Env;
use crate::kit::int::IntStack;
use crate::kit::roce::{Acked, KINDS, Options, RateControl, Roce, RoceConfig};
use base::params::{Auto, Problem};
use base::registry::{Meta, Needs};
use base::{Dur, Fraction, Rate, Time};
use std::mem;

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "HPCC: RoCE whose rate follows the telemetry of the ports on its path",
    source: "Li et al., SIGCOMM 2019",
    needs: Needs { agent: &["telemetry"], ..Needs::NONE },
    implies: &[("agent.kind", "telemetry")],
    kinds: KINDS,
    host: "an RDMA NIC; its simulator: queue pairs take turns when the link is free",
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of HPCC.
    pub struct Params {
        ..roce: Options {
            window = "rate", "section 3.2: a window and its pace";
        }
        /// Target utilization of the busiest link.
        eta: Fraction = "0.95" in Fraction(1)..=Fraction::ONE, "section 5.1";
        /// Number of additive increases in a row before the rate is set by the measured utilization.
        max_stage: u32 = "5", "section 5.1: maxStage; its simulator: 0";
        /// Number of flows of a link for which the additive increases fill the headroom `1 - eta`.
        flows: u32 = "100" in 1..=1_000_000_000, "section 3.3: W_AI = W_init (1 - eta) / N";
        /// Additive increase as a rate; `auto`: by `flows`.
        rate_ai: Auto<Rate> = "auto", "section 5.1: W_AI = 80 bytes";
        /// Whether ACKs within a round trip change the rate.
        fast_react: bool = "true", "section 3.2; its simulator: `FAST_REACT 1`";
        /// Bytes of telemetry in every data packet and ACK.
        int_bytes: u16 = "42" in 0..=400, "section 4.1: 8 bytes for each of 5 hops, and 2";
    }
}

/// Returns the contradictions between parameters and with the network.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    params.roce.check(env, params.int_bytes)
}

/// The machine of one host.
pub type Hpcc = Roce<Utilization>;

impl Hpcc {
    /// Creates a host without messages.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let config = params.roce.config(env, params.int_bytes);
        Roce::with(config, Utilization::new(params, config, env))
    }
}

/// The rules of HPCC.
#[derive(Clone, Copy, Debug)]
pub struct Utilization {
    config: RoceConfig,
    eta: f64,
    max_stage: u32,
    rate_ai: f64,
    fast_react: bool,
}

/// A queue pair.
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// The present rate, and the one that the last full update has set.
    rate: Rate,
    reference: Rate,
    /// Utilization of the busiest link.
    utilization: f64,
    /// Additive increases in a row.
    stage: u32,
    /// The next full update comes with the ACK of bytes beyond these; `None` before the first ACK.
    updated: Option<u64>,
    /// The telemetry of the previous ACK.
    path: IntStack,
}

impl Utilization {
    fn new(params: &Params, config: RoceConfig, env: &Env<'_>) -> Self {
        let eta = params.eta.ppb() as f64 / 1e9;
        let auto = Rate(((1.0 - eta) * config.line.bps() as f64 / f64::from(params.flows)) as u64);
        Utilization {
            config,
            eta,
            max_stage: params.max_stage,
            rate_ai: env.auto("rate_ai", params.rate_ai, auto).bps() as f64,
            fast_react: params.fast_react,
        }
    }

    /// Alg. 1, MeasureInflight.
    fn measure(&self, state: &mut State, ack: &Acked) -> bool {
        let (base, mut busiest) = (self.config.base_rtt, None);
        for (hop, before) in ack.stack.after(&mem::replace(&mut state.path, ack.stack)) {
            let (dt, rate) = (hop.since(&before), hop.rate.bps() as f64);
            // Two packets in the same nanosecond give no rate.
            if dt == Dur::ZERO {
                continue;
            }
            let sent = hop.sent_since(&before) as f64 * 8.0 / dt.as_secs_f64();
            let queue = hop.queue_bytes.min(before.queue_bytes) as f64 * 8.0;
            let u = queue / (rate * base.as_secs_f64()) + sent / rate;
            if busiest.is_none_or(|(most, _)| u > most) {
                busiest = Some((u, dt));
            }
        }
        let Some((u, dt)) = busiest else { return false };
        let part = dt.min(base).as_secs_f64() / base.as_secs_f64();
        state.utilization = (1.0 - part) * state.utilization + part * u;
        true
    }
}

impl RateControl for Utilization {
    type State = State;
    const INT: bool = true;

    fn open(&self, _now: Time) -> State {
        let line = self.config.line;
        State { rate: line, reference: line, utilization: 1.0, stage: 0, updated: None, path: IntStack::default() }
    }
    fn restart(&self, state: &mut State) {
        state.updated = None;
    }
    fn rate(&self, state: &State) -> Rate {
        state.rate
    }
    fn on_ack(&self, state: &mut State, ack: &Acked) {
        let Some(updated) = state.updated else {
            state.updated = Some(ack.snd_nxt);
            state.path = ack.stack;
            return;
        };
        // Alg. 1 l. 26: once per round trip. The rate answers every ACK, always from Wc.
        let full = ack.next > updated;
        if !full && !self.fast_react {
            return;
        }
        if self.measure(state, ack) {
            let over = state.utilization / self.eta;
            let by_measure = over >= 1.0 || state.stage >= self.max_stage;
            let reference = state.reference.bps() as f64;
            state.rate = self.config.clamp(if by_measure { reference / over } else { reference } + self.rate_ai);
            if full {
                state.stage = if by_measure { 0 } else { state.stage + 1 };
                state.reference = state.rate;
            }
        }
        if full {
            state.updated = Some(ack.snd_nxt);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::int::LineRate;
    use crate::kit::roce::Bound;
    use crate::kit::script;
    use base::params::Params as _;

    const LINE: Rate = Rate::from_gbps(100);

    fn rules(change: impl FnOnce(&mut Params)) -> Utilization {
        let mut params = Params::defaults();
        change(&mut params);
        // T = 13 us: a bandwidth-delay product of 162 500 bytes.
        let env = Env { nic_rate: LINE, max_rtt: Dur::from_us(13), ..script::env() };
        Utilization::new(&params, params.roce.config(&env, params.int_bytes), &env)
    }

    /// An ACK of all bytes below `next`; each hop has sent and holds these bytes at this time.
    fn ack(us: f64, next: u64, snd_nxt: u64, hops: &[(u64, u64)]) -> Acked {
        let now = Time((us * 1e6) as u64);
        let mut stack = IntStack::default();
        hops.iter().for_each(|&(sent, queue)| stack.push(now, sent, queue, LineRate::new(LINE)));
        Acked { now, next, snd_nxt, rtt: Dur::from_us(13), stack }
    }

    fn gbps(state: &State) -> f64 {
        state.rate.bps() as f64 / 1e9
    }

    #[test]
    fn telemetry_leaves_room_for_payload() {
        let keys = |int_bytes| {
            let params = Params { int_bytes, ..Params::defaults() };
            check(&params, &Env { mtu_bytes: 100, ..script::env() }).iter().map(|p| p.key).collect::<Vec<_>>()
        };
        assert_eq!((keys(59), keys(60)), (vec![], vec!["int_bytes"]));
    }

    #[test]
    fn the_additive_increase_is_the_papers() {
        // 80 bytes in 13 us are 49.2 Mb/s.
        assert_eq!(rules(|_| {}).rate_ai, 50e6);
        assert_eq!(rules(|p| p.rate_ai = Auto::Set(Rate(7))).rate_ai, 7.0);
    }

    #[test]
    fn a_full_link_with_a_queue_cuts_by_its_utilization() {
        let rules = rules(|_| {});
        let mut state = rules.open(Time::ZERO);
        rules.on_ack(&mut state, &ack(13.0, 1000, 160_000, &[(0, 40_640)]));
        assert_eq!(state.rate, LINE);
        // 162 560 bytes in 13.0048 us are the line rate; a quarter of a BDP waits, the smaller one of
        // the two queues.
        rules.on_ack(&mut state, &ack(26.0048, 161_000, 320_000, &[(162_560, 80_000)]));
        let u = 1.0 + 40_640.0 / 162_500.0;
        assert!((state.utilization / u - 1.0).abs() < 1e-3, "{}", state.utilization);
        assert!((gbps(&state) - (100.0 / (u / 0.95) + 0.05)).abs() < 0.1, "{}", gbps(&state));
        assert_eq!((state.reference, state.stage), (state.rate, 0));
    }

    #[test]
    fn the_busiest_hop_counts() {
        let rules = rules(|_| {});
        let mut state = rules.open(Time::ZERO);
        rules.on_ack(&mut state, &ack(13.0, 1000, 160_000, &[(0, 0), (0, 0)]));
        rules.on_ack(&mut state, &ack(26.0, 161_000, 320_000, &[(40_000, 0), (81_280, 0)]));
        // Half of the line rate.
        assert!((state.utilization - 0.5).abs() < 2e-3, "{}", state.utilization);
    }

    #[test]
    fn within_a_round_trip_the_reference_stays() {
        let rules = rules(|_| {});
        let mut state = rules.open(Time::ZERO);
        rules.on_ack(&mut state, &ack(13.0, 1000, 160_000, &[(0, 162_560)]));
        let mut rates = Vec::new();
        for n in 1..=4u64 {
            // Four ACKs that do not reach byte 160 000.
            rules.on_ack(&mut state, &ack(13.0 + n as f64, 1000 * n, 160_000, &[(12_544 * n, 162_560)]));
            assert_eq!(state.reference, LINE);
            rates.push(state.rate);
        }
        // The average of U approaches 2, and the rate half of the reference.
        assert!(rates.is_sorted_by(|a, b| a > b) && rates[3].bps() > LINE.bps() / 2, "{rates:?}");
        let slow = rules_without_reaction();
        let mut state = slow.open(Time::ZERO);
        slow.on_ack(&mut state, &ack(13.0, 1000, 160_000, &[(0, 162_560)]));
        slow.on_ack(&mut state, &ack(14.0, 2000, 160_000, &[(12_544, 162_560)]));
        assert_eq!(state.rate, LINE);
    }

    fn rules_without_reaction() -> Utilization {
        rules(|p| p.fast_react = false)
    }

    #[test]
    fn five_additive_increases_then_a_measured_one() {
        let rules = rules(|p| p.rate_ai = Auto::Set(Rate(1_000_000_000)));
        let mut state = rules.open(Time::ZERO);
        (state.rate, state.reference, state.utilization) = (Rate::from_gbps(40), Rate::from_gbps(40), 0.5);
        let mut rates = Vec::new();
        for n in 0..8u64 {
            // Half of the line rate, without queue: 81 280 bytes in 13.0048 us.
            rules.on_ack(&mut state, &ack(13.0048 * (n + 1) as f64, n * 100_000 + 1, n * 100_000 + 100_000, &[(n * 81_280, 0)]));
            rates.push(gbps(&state));
        }
        assert_eq!(rates[..6], [40.0, 41.0, 42.0, 43.0, 44.0, 45.0]);
        // 45 / (0.5 / 0.95) + 1, and a new count.
        assert!((rates[6] - 86.5).abs() < 0.2 && (rates[7] - rates[6] - 1.0).abs() < 1e-6, "{rates:?}");
    }

    /// Steady state (section 3.3): with `flows` flows at a rate r each, U = flows r / B, and the
    /// additive increase balances the cut at U = eta / (1 - W_AI / W).
    #[test]
    fn flows_settle_at_the_target_utilization() {
        let rules = rules(|p| p.max_stage = 0);
        let mut states: Vec<State> = (0..10).map(|_| rules.open(Time::ZERO)).collect();
        let mut sent = 0;
        for n in 0..400u64 {
            let all: u64 = states.iter().map(|state| state.rate.bps()).sum::<u64>().min(LINE.bps());
            sent += (all as f64 * 13e-6 / 8.0) as u64;
            for state in &mut states {
                rules.on_ack(state, &ack(13.0 * (n + 1) as f64, n * 1000 + 1, n * 1000 + 1000, &[(sent, 0)]));
            }
        }
        let all: f64 = states.iter().map(gbps).sum();
        assert!((all / 95.5 - 1.0).abs() < 0.01, "{all} Gb/s");
        assert!(states.iter().all(|state| (gbps(state) * 10.0 / all - 1.0).abs() < 1e-6));
    }

    #[test]
    fn another_path_is_only_recorded() {
        let rules = rules(|_| {});
        let mut state = rules.open(Time::ZERO);
        rules.on_ack(&mut state, &ack(13.0, 1000, 160_000, &[(0, 162_560)]));
        rules.on_ack(&mut state, &ack(26.0, 161_000, 320_000, &[(162_560, 162_560), (0, 0)]));
        assert_eq!((state.rate, state.utilization), (LINE, 1.0));
    }

    #[test]
    fn the_window_is_the_rate_times_the_round_trip() {
        let rules = rules(|_| {});
        // 162 500 bytes on the wire, in packets of 1500 bytes with 82 bytes of headers and telemetry.
        assert_eq!((rules.config.bound, rules.config.window(LINE)), (Bound::Rate, 153_616));
    }
}

//! L2DCT: DCTCP, whose growth and window cuts depend on the bytes that a flow has sent, so that
//! long flows give way to short ones.
//!
//! Source: A. Munir et al., "Minimizing Flow Completion Times in Data Centers", INFOCOM 2013, section III; the ns-2 scripts of PIAS's authors
//! (github.com/HKUST-SING/PIAS-NS2). Everything else is `dctcp`.
//!
//! Model: that of `kit/tcp`. The size of a flow is not read.
//!
//! | rule | from |
//! |---|---|
//! | weight `w_c`: 2.5 for flows that have sent at most `short_until`, 0.125 from `long_from` on, linear in between | section III.B; ns-2 scripts |
//! | congestion avoidance adds `k = w_c / 2.5` segments per window | eq. 2 |
//! | a mark cuts the window to `cwnd (1 - b / 2)`, `b = alpha ^ w_c` | eq. 4 |
//! | slow start and losses as in DCTCP | section III.B |
//!
//! Assumed:
//! - Bytes sent are those that were sent at least once; retransmissions do not count.
//! - `k` segments are whole bytes, rounded down.
//! - `w_c` and `b` are parts per billion; the power is the same on every platform.
//!
//! Deviates: the published program does not follow eq. 2. In the ns-2 of the authors of PIAS (HKUST-SING/PIAS-NS2 5fb5867)
//! congestion avoidance adds two segments per window, whatever the flow has sent: with window option 0 of the scripts each
//! ACK counts twice, weighted and plain. Flows of web search at a load of 0.6 then take half as long in the mean as with
//! the weight, and small flows a fifth longer. `growth = "two"` is this rule, for comparisons with its results.

use super::dctcp::{self, Params as DctcpParams, Proportional};
use crate::contract::Env;
use crate::flow::Flow;
use crate::kit::alpha::power;
use crate::kit::tcp::{Ack, Congestion, Ecn, Loss, Tcp, Window};
use base::params::Problem;
use base::registry::{Meta, Needs};
use base::{Bytes, Fraction, Time};

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "L2DCT: DCTCP with slower growth and larger window cuts for flows that have sent more; sizes are not known",
    source: "Munir et al., INFOCOM 2013",
    needs: Needs { marks: true, least_limit: 1.0, least_mark: 1.0 / 7.0, ..Needs::NONE },
    implies: &[("nic.kind", "ns2"), ("qdisc.kind", "ecn_threshold")],
    packets_only: "it gives flows that have sent few bytes more rate than others",
    host: "ns-2: all packets wait at the NIC in a queue like those of the switches",
    ..Meta::PLAIN
};

base::choice! {
    /// Growth per window in congestion avoidance.
    pub enum Step {
        /// `k` segments.
        Weighted = "weighted",
        /// Two segments.
        Two = "two",
    }
}

base::params! {
    /// Parameters of L2DCT.
    pub struct Params {
        ..dctcp: DctcpParams {}
        /// A flow that has sent at most this has the largest weight.
        short_until: Bytes = "200KiB" in Bytes(0)..=Bytes(1_000_000_000_000), "ns-2 scripts of PIAS";
        /// A flow that has sent at least this has the smallest weight.
        long_from: Bytes = "1MiB" in Bytes(1)..=Bytes(1_000_000_000_000), "ns-2 scripts of PIAS";
        /// Growth per window in congestion avoidance: `k` segments, or two.
        growth: Step = "weighted", "eq. 2; ns-2 program of PIAS: `two`", quiet;
    }
}

/// Returns the contradictions between parameters.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    let mut problems = dctcp::check(&params.dctcp, env);
    if params.short_until >= params.long_from {
        problems.push(Problem {
            key: "short_until",
            message: format!("`{}` is not below `long_from`, which is `{}`", params.short_until, params.long_from),
            hint: "lower `short_until` or raise `long_from`".to_owned(),
        });
    }
    problems
}

/// The machine of one host.
pub type L2dct = Tcp<LessAttained>;

impl L2dct {
    /// Creates a host without flows.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let config = params.dctcp.tcp.config(env);
        Tcp::with(config, LessAttained::new(params, config.smss))
    }
}

/// DCTCP's rules, weighted by the bytes that a flow has sent.
#[derive(Clone, Copy, Debug)]
pub struct LessAttained {
    dctcp: Proportional,
    short_until: u64,
    long_from: u64,
    growth: Step,
}

/// The state of one flow.
#[derive(Clone, Copy, Debug)]
pub struct State {
    dctcp: dctcp::State,
    /// Bytes sent at least once.
    sent: u64,
}

impl LessAttained {
    fn new(params: &Params, smss: u64) -> Self {
        let Params { dctcp, short_until, long_from, growth } = params;
        let dctcp = Proportional::new(dctcp, smss);
        LessAttained { dctcp, short_until: short_until.0, long_from: long_from.0, growth: *growth }
    }
    /// Returns w_c of a flow that has sent `sent` bytes.
    #[inline]
    fn weight(&self, sent: u64) -> Fraction {
        let beyond = sent.clamp(self.short_until, self.long_from) - self.short_until;
        let span = u128::from(self.long_from - self.short_until);
        Fraction(SHORT.ppb() - (u128::from(SHORT.ppb() - LONG.ppb()) * u128::from(beyond) / span) as u64)
    }
    /// Returns the growth per window in congestion avoidance, in bytes.
    #[inline]
    fn step(&self, sent: u64) -> u64 {
        match self.growth {
            // k = w_c / 2.5.
            Step::Weighted => self.dctcp.smss * self.weight(sent).ppb() / SHORT.ppb(),
            Step::Two => 2 * self.dctcp.smss,
        }
    }
}

impl Congestion for LessAttained {
    type State = State;
    const ECN: Ecn = Ecn::Exact;

    fn open(&self, flow: &Flow) -> State {
        State { dctcp: self.dctcp.open(flow), sent: 0 }
    }
    fn inherit(&self, state: &mut State, before: &State) {
        self.dctcp.inherit(&mut state.dctcp, &before.dctcp);
    }
    #[inline]
    fn on_feedback(&self, state: &mut State, ack: &Ack<'_>) {
        self.dctcp.on_feedback(&mut state.dctcp, ack);
    }
    #[inline]
    fn on_ack(&self, state: &mut State, window: &mut Window, ack: &Ack<'_>) {
        state.dctcp.growth.on_ack(window, ack, self.step(state.sent));
    }
    fn on_mark(&self, state: &mut State, window: &Window, _ack: &Ack<'_>) -> Option<u64> {
        Some(self.dctcp.cut(window, power(state.dctcp.alpha.value(), self.weight(state.sent))))
    }
    fn on_loss(&self, state: &mut State, window: &Window, loss: Loss) -> u64 {
        self.dctcp.on_loss(&mut state.dctcp, window, loss)
    }
    #[inline]
    fn on_sent(&self, state: &mut State, _now: Time, sent: u64) {
        state.sent = sent;
    }
}

/// The weight of flows that have sent few bytes.
const SHORT: Fraction = Fraction(2_500_000_000);
/// The weight of flows that have sent many bytes.
const LONG: Fraction = Fraction(125_000_000);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::pipe::{Fate, exchange};
    use crate::kit::script;
    use crate::packet::Packet;
    use base::Rng;
    use base::params::Params as _;

    const SMSS: u64 = 1460;

    fn rules(alpha: f64) -> LessAttained {
        let dctcp = DctcpParams { alpha: Fraction((alpha * 1e9) as u64), ..DctcpParams::defaults() };
        LessAttained::new(&Params { dctcp, ..Params::defaults() }, SMSS)
    }

    /// Computed independently of this code, for a window of 20: (s, alpha) and (w_c, k, b, w').
    #[test]
    fn golden_weights_and_cuts() {
        let rows = [
            (0, 0.25, [2.5, 1.0, 0.031_25, 19.6875]),
            (204_800, 0.25, [2.5, 1.0, 0.031_25, 19.6875]),
            (400_000, 0.25, [1.950_565, 0.780_226, 0.066_933, 19.330_666]),
            (614_400, 0.25, [1.347_087, 0.538_835, 0.154_516, 18.454_843]),
            (1_000_000, 0.25, [0.261_728, 0.104_691, 0.695_703, 13.042_970]),
            (1_048_576, 0.25, [0.125, 0.05, 0.840_896, 11.591_036]),
            (5_000_000, 1.0, [0.125, 0.05, 1.0, 10.0]),
        ];
        for (sent, alpha, wanted) in rows {
            let (rules, flow) = (rules(alpha), script::flow(0, 1));
            let mut state = State { sent, ..rules.open(&flow) };
            let (w_c, b) = (rules.weight(sent), power(state.dctcp.alpha.value(), rules.weight(sent)));
            let window = Window { cwnd: 20 * SMSS, ssthresh: u64::MAX };
            let cut = rules.on_mark(&mut state, &window, &script::ack(&flow, SMSS)).expect("every mark counts");
            let bytes = SMSS as f64;
            let seen = [w_c.ppb() as f64 * 1e-9, rules.step(sent) as f64 / bytes, b.ppb() as f64 * 1e-9, cut as f64 / bytes];
            let within = [1e-6, 1.0 / bytes, 1e-6, 1.0 / bytes];
            assert!((0..4).all(|i| (seen[i] - wanted[i]).abs() <= within[i]), "{sent}: {seen:?}, not {wanted:?}");
        }
    }

    /// A window of ten segments grows by k in one window of ACKs; in slow start growth does not
    /// depend on the bytes sent.
    #[test]
    fn growth_is_weighted_in_congestion_avoidance_only() {
        let flow = script::flow(0, 1);
        let weighted = [(0, 0, SMSS), (1 << 20, 0, 73), (1 << 20, u64::MAX, 10 * SMSS)].map(|row| (Step::Weighted, row));
        let two = [(Step::Two, (0, 0, 2 * SMSS)), (Step::Two, (1 << 20, 0, 2 * SMSS))];
        for (growth, (sent, ssthresh, added)) in weighted.into_iter().chain(two) {
            // The part of a round's growth that may be missing: twice as much growth makes twice as much difference.
            let part = if growth == Step::Two { 10 } else { 20 };
            let rules = LessAttained { growth, ..rules(0.0) };
            let (mut state, mut window) = (rules.open(&flow), Window { cwnd: 10 * SMSS, ssthresh });
            rules.on_sent(&mut state, Time::ZERO, sent);
            for _ in 0..10 {
                rules.on_ack(&mut state, &mut window, &script::ack(&flow, SMSS));
            }
            // The window grows during the round, so that slightly less is added.
            let seen = window.cwnd - 10 * SMSS;
            assert!(seen <= added && part * (added - seen) <= added, "{growth:?} {sent}: {seen}, not {added}");
        }
    }

    #[test]
    fn limits_must_rise() {
        let of = |short, long| Params { short_until: Bytes(short), long_from: Bytes(long), ..Params::defaults() };
        let keys = |params: &Params| check(params, &script::env()).iter().map(|p| p.key).collect::<Vec<_>>();
        assert_eq!([keys(&of(1, 2)), keys(&of(2, 2)), keys(&of(3, 2))], [vec![], vec!["short_until"], vec!["short_until"]]);
        assert_eq!((Params::defaults().short_until, Params::defaults().long_from), (Bytes(204_800), Bytes(1_048_576)));
    }

    /// Alpha stays 0 if nothing is marked, and 1 if everything is. Packets are lost at random.
    #[test]
    fn a_short_flow_sends_the_packets_of_dctcp_while_alpha_is_zero_or_one() {
        for (alpha, mark) in [(Fraction(0), Fate::Pass), (Fraction::ONE, Fate::Mark)] {
            for seed in 0..20 {
                let flow = script::flow(0, 204_800);
                let fate = || {
                    let mut rng = Rng::stream(seed, "l2dct", &[]);
                    move |_: &Packet| if rng.below(50) == 0 { Fate::Drop } else { mark }
                };
                let params = DctcpParams { alpha, ..DctcpParams::defaults() };
                let own = Params { dctcp: params.clone(), ..Params::defaults() };
                let here = exchange(|| L2dct::new(&own, &script::env()), &flow, fate());
                let dctcp = exchange(|| dctcp::Dctcp::new(&params, &script::env()), &flow, fate());
                assert_eq!(here, dctcp, "seed {seed}");
            }
        }
    }

    /// The same flow, ten times as long, is cut more, and sends other packets.
    #[test]
    fn a_long_flow_sends_other_packets_than_dctcp() {
        let flow = script::flow(0, 2_048_000);
        let fate = || {
            let mut rng = Rng::stream(1, "l2dct", &[]);
            move |_: &Packet| if rng.below(10) == 0 { Fate::Mark } else { Fate::Pass }
        };
        let here = exchange(|| L2dct::new(&Params::defaults(), &script::env()), &flow, fate());
        let dctcp = exchange(|| dctcp::Dctcp::new(&DctcpParams::defaults(), &script::env()), &flow, fate());
        assert_ne!(here, dctcp);
    }
}

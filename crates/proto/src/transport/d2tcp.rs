//! D2TCP: DCTCP, whose window cut depends on the deadline, so that urgent flows give way less than
//! others.
//!
//! Source: B. Vamanan, J. Hasan, T. N. Vijaykumar, "Deadline-Aware Datacenter TCP (D2TCP)", SIGCOMM
//! 2012, section 3; its kernel module (github.com/ycaoae/D2TCP_Kernel), and class DDTcp of the ns-2
//! patch of pFabric's authors. Everything else is `dctcp`.
//!
//! Model: that of `kit/tcp`. The size and the deadline of a flow are known at its start.
//!
//! | rule | from |
//! |---|---|
//! | a mark cuts the window to `cwnd (1 - p / 2)`, `p = alpha ^ d` | section 3.1 |
//! | `d = T_c / D` between 0.5 and 2; `D` is the time left, `T_c` the time that the remaining bytes need | section 3.2 |
//! | `T_c = B / (0.75 cwnd) srtt` for `B` bytes left: the window varies between half of `cwnd` and `cwnd` | section 3.2 |
//! | no deadline: `d = 1`, so that the flow runs DCTCP | section 3.2 |
//!
//! Assumed:
//! - `B` is the number of unacknowledged and unsent bytes, `cwnd` the window before the cut.
//! - Before the first round-trip sample `d = 1`.
//! - A flow that has missed its deadline has `d = 1`, as in the kernel module; the ns-2 patch has
//!   0.5 (`missed`).
//! - Two options come from the ns-2 patch and are off by default: flows without a deadline use 1
//!   for alpha once they have seen a mark (`no_deadline`), and flows that can no longer meet their
//!   deadline are given up (`give_up`, an option of `kit/tcp`).
//! - `d` and `p` are parts per billion; the power is the same on every platform.

use super::dctcp::{self, Params as DctcpParams, Proportional, State};
use crate::contract::Env;
use crate::flow::Flow;
use crate::kit::alpha::power;
use crate::kit::tcp::{Ack, Congestion, Ecn, Loss, Tcp, Window};
use base::params::Problem;
use base::registry::{Meta, Needs};
use base::{Fraction, Time};

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "D2TCP: DCTCP with smaller window cuts for flows near their deadline and larger ones for others",
    source: "Vamanan et al., SIGCOMM 2012",
    needs: Needs { marks: true, least_limit: 1.0, least_mark: 1.0 / 7.0, ..Needs::NONE },
    implies: &[("qdisc.kind", "ecn_threshold")],
    knows: &["size", "deadline"],
    packets_only: "it gives flows with close deadlines more rate than others",
    host: "Linux for the kernel module; class DDTcp: ns-2",
    ..Meta::PLAIN
};

base::choice! {
    /// The reaction of a flow without a deadline to a mark.
    pub enum NoDeadline {
        /// The same as in DCTCP.
        Dctcp = "dctcp",
        /// Halves the window, once alpha is not zero.
        Halve = "halve",
    }
}

base::params! {
    /// Parameters of D2TCP.
    pub struct Params {
        ..dctcp: DctcpParams {}
        /// The exponent d of a flow that has missed its deadline.
        missed: Fraction = "1" in LEAST..=MOST, "kernel module; ns-2 patch: 0.5";
        /// The reaction of a flow without a deadline to a mark.
        no_deadline: NoDeadline = "dctcp", "section 3.2; an option of the ns-2 patch: `halve`";
    }
}

/// Returns the contradictions between parameters.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    dctcp::check(&params.dctcp, env)
}

/// The machine of one host.
pub type D2tcp = Tcp<DeadlineAware>;

impl D2tcp {
    /// Creates a host without flows.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let config = params.dctcp.tcp.config(env);
        let dctcp = Proportional::new(&params.dctcp, config.smss);
        Tcp::with(config, DeadlineAware { dctcp, missed: params.missed, no_deadline: params.no_deadline })
    }
}

/// DCTCP's rules, with a power of alpha as the weight of a mark.
#[derive(Clone, Copy, Debug)]
pub struct DeadlineAware {
    dctcp: Proportional,
    missed: Fraction,
    no_deadline: NoDeadline,
}

impl DeadlineAware {
    /// Returns p, the weight of a mark.
    fn penalty(&self, alpha: Fraction, window: &Window, ack: &Ack<'_>) -> Fraction {
        match ack.flow.deadline {
            Some(deadline) => power(alpha, self.imminence(deadline, window, ack)),
            None if self.no_deadline == NoDeadline::Halve && alpha > Fraction(0) => Fraction::ONE,
            None => alpha,
        }
    }
    /// Returns d, the urgency of the flow.
    fn imminence(&self, deadline: Time, window: &Window, ack: &Ack<'_>) -> Fraction {
        let (left, srtt) = (deadline.since(ack.now()), ack.srtt());
        if left.0 == 0 {
            return self.missed;
        }
        if srtt.0 == 0 {
            return Fraction::ONE;
        }
        // T_c / D = 4 B srtt / (3 cwnd D).
        let needed = (4 * u128::from(ack.flow.size_bytes - ack.snd_una)).saturating_mul(u128::from(srtt.0));
        let there = (3 * u128::from(window.cwnd)).saturating_mul(u128::from(left.0));
        let ratio = needed.saturating_mul(u128::from(Fraction::ONE.ppb())) / there;
        Fraction(u64::try_from(ratio).unwrap_or(u64::MAX)).clamp(LEAST, MOST)
    }
}

impl Congestion for DeadlineAware {
    type State = State;
    const ECN: Ecn = Ecn::Exact;

    fn open(&self, flow: &Flow) -> State {
        self.dctcp.open(flow)
    }
    fn inherit(&self, state: &mut State, before: &State) {
        self.dctcp.inherit(state, before);
    }
    #[inline]
    fn on_feedback(&self, state: &mut State, ack: &Ack<'_>) {
        self.dctcp.on_feedback(state, ack);
    }
    #[inline]
    fn on_ack(&self, state: &mut State, window: &mut Window, ack: &Ack<'_>) {
        self.dctcp.on_ack(state, window, ack);
    }
    fn on_mark(&self, state: &mut State, window: &Window, ack: &Ack<'_>) -> Option<u64> {
        Some(self.dctcp.cut(window, self.penalty(state.alpha.value(), window, ack)))
    }
    fn on_loss(&self, state: &mut State, window: &Window, loss: Loss) -> u64 {
        self.dctcp.on_loss(state, window, loss)
    }
}

/// Bounds of d.
const LEAST: Fraction = Fraction(500_000_000);
const MOST: Fraction = Fraction(2_000_000_000);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::pipe::{Fate, exchange};
    use crate::kit::script;
    use crate::packet::Packet;
    use base::params::Params as _;
    use base::{Dur, Rng};

    const SMSS: u64 = 1460;

    fn rules(params: &Params) -> DeadlineAware {
        let Params { dctcp, missed, no_deadline, .. } = params;
        DeadlineAware { dctcp: Proportional::new(dctcp, SMSS), missed: *missed, no_deadline: *no_deadline }
    }

    /// Returns (d, p, window in segments) after a mark, for a window and remaining bytes in
    /// segments, and a round trip and time left in us.
    fn marked(params: &Params, alpha: f64, w: u64, rest: u64, srtt: u64, left: Option<u64>) -> [f64; 3] {
        let dctcp = DctcpParams { alpha: Fraction((alpha * 1e9) as u64), ..params.dctcp.clone() };
        let rules = rules(&Params { dctcp, ..params.clone() });
        let now = Time::ZERO + Dur::from_ms(50);
        let deadline = left.map(|us| now + Dur::from_us(us));
        let flow = Flow { deadline, ..script::flow(0, (rest + 7) * SMSS) };
        let ack = script::ack_with(&flow, SMSS, |ack| {
            (ack.now_ps, ack.srtt_ps, ack.snd_una) = (now.0, Dur::from_us(srtt).0, 7 * SMSS);
        });
        let (mut state, window) = (rules.open(&flow), Window { cwnd: w * SMSS, ssthresh: u64::MAX });
        let d = deadline.map_or(Fraction::ONE, |deadline| rules.imminence(deadline, &window, &ack));
        let p = rules.penalty(state.alpha.value(), &window, &ack);
        let cut = rules.on_mark(&mut state, &window, &ack).expect("every mark counts");
        [d.ppb() as f64 * 1e-9, p.ppb() as f64 * 1e-9, cut as f64 / SMSS as f64]
    }

    #[track_caller]
    fn assert_near(seen: [f64; 3], wanted: [f64; 3]) {
        // Windows are whole bytes.
        let within = [1e-6, 1e-6, 1.0 / SMSS as f64];
        assert!((0..3).all(|i| (seen[i] - wanted[i]).abs() <= within[i]), "{seen:?}, not {wanted:?}");
    }

    /// Computed independently of this code: (alpha, w, B, srtt, D) and (d, p, w').
    #[test]
    fn golden_cuts() {
        let rows = [
            (0.25, 20, 300, 100, 2000, [1.0, 0.25, 17.5]),
            (0.25, 20, 300, 100, 1000, [2.0, 0.0625, 19.375]),
            (0.25, 20, 300, 100, 8000, [0.5, 0.5, 15.0]),
            (0.25, 20, 300, 100, 1500, [4.0 / 3.0, 0.157_490, 18.425_099]),
            (1.0, 20, 300, 100, 1000, [2.0, 1.0, 10.0]),
            (0.0625, 40, 333, 120, 5000, [0.5, 0.25, 35.0]),
        ];
        for (alpha, w, rest, srtt, left, wanted) in rows {
            assert_near(marked(&Params::defaults(), alpha, w, rest, srtt, Some(left)), wanted);
        }
    }

    #[test]
    fn without_a_deadline_or_a_sample_it_is_dctcp() {
        assert_near(marked(&Params::defaults(), 0.25, 20, 300, 100, None), [1.0, 0.25, 17.5]);
        assert_near(marked(&Params::defaults(), 0.25, 20, 300, 0, Some(10)), [1.0, 0.25, 17.5]);
    }

    #[test]
    fn a_missed_deadline_has_an_exponent_of_its_own() {
        assert_near(marked(&Params::defaults(), 0.25, 20, 300, 100, Some(0)), [1.0, 0.25, 17.5]);
        let half = Params { missed: LEAST, ..Params::defaults() };
        assert_near(marked(&half, 0.25, 20, 300, 100, Some(0)), [0.5, 0.5, 15.0]);
    }

    #[test]
    fn flows_without_a_deadline_may_halve_their_window() {
        let halve = Params { no_deadline: NoDeadline::Halve, ..Params::defaults() };
        assert_near(marked(&halve, 0.25, 20, 300, 100, None), [1.0, 1.0, 10.0]);
        assert_near(marked(&halve, 0.0, 20, 300, 100, None), [1.0, 0.0, 20.0]);
        assert_near(marked(&halve, 0.25, 20, 300, 100, Some(1000)), [2.0, 0.0625, 19.375]);
    }

    /// A window is never below one segment, and numbers out of range have no bad effect.
    #[test]
    fn extremes_are_bounded() {
        assert_near(marked(&Params::defaults(), 1.0, 1, 1 << 40, 1_000_000, Some(1)), [2.0, 1.0, 1.0]);
        assert_near(marked(&Params::defaults(), 1.0, 1, 1, 1, Some(1_000_000_000)), [0.5, 1.0, 1.0]);
    }

    /// d is 1 without a deadline, and after a missed one. Packets are lost and marked at random.
    #[test]
    fn with_an_exponent_of_one_it_sends_the_packets_of_dctcp() {
        for deadline in [None, Some(Time::ZERO)] {
            for seed in 0..20 {
                let flow = Flow { deadline, ..script::flow(0, 400 * SMSS) };
                let mut rng = Rng::stream(seed, "d2tcp", &[]);
                let fates: Vec<u64> = (0..5000).map(|_| rng.below(100)).collect();
                let fate = || {
                    let mut fates = fates.iter();
                    move |_: &Packet| match fates.next() {
                        Some(0) => Fate::Drop,
                        Some(1..20) => Fate::Mark,
                        _ => Fate::Pass,
                    }
                };
                let here = exchange(|| D2tcp::new(&Params::defaults(), &script::env()), &flow, fate());
                let dctcp = exchange(|| dctcp::Dctcp::new(&DctcpParams::defaults(), &script::env()), &flow, fate());
                assert_eq!(here, dctcp, "seed {seed}");
            }
        }
    }
}

//! Aemon's rate control: DCTCP, whose window cut depends on the share of its time that a flow has
//! used. Sizes need not be known.
//!
//! Source: T. Wang et al., "Aemon: Information-agnostic Mix-flow Scheduling in Data Center
//! Networks", APNet 2017; only the abstract was available: the urgency of a flow with a deadline
//! modulates its sending rate. Everything else is `dctcp`; a policy sets the classes.
//!
//! Model: that of `kit/tcp`. The deadline of a flow is known at its start; its size is not read.
//!
//! | rule | from |
//! |---|---|
//! | urgency `u`: the time since the start divided by the time to the deadline | abstract |
//! | a mark cuts the window to `cwnd (1 - p / 2)`, `p = alpha ^ d`, `d = u` between 0.5 and 2 | flowloom, see Assumed |
//! | no deadline: `d = 1`, so that the flow runs DCTCP | flowloom, see Assumed |
//!
//! Assumed:
//! - The abstract does not give the formula: it is that of `d2tcp`, with urgency in place of the
//!   time that the remaining bytes need.
//! - After the deadline urgency is infinite, so that `d = 2`.
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
    summary: "Aemon's rate control: DCTCP with smaller window cuts for flows that have used most of their time",
    source: "Wang et al., APNet 2017",
    needs: Needs { marks: true, least_limit: 1.0, least_mark: 1.0 / 7.0, ..Needs::NONE },
    implies: &[("qdisc.kind", "ecn_threshold")],
    knows: &["deadline"],
    packets_only: "it gives flows with deadlines more rate than others",
    host: "ns-2 in the comparison of STAM's paper: all packets wait at the NIC in a queue like those of the switches",
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of Aemon's rate control.
    pub struct Params {
        ..dctcp: DctcpParams {}
    }
}

/// Returns the contradictions between parameters.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    dctcp::check(&params.dctcp, env)
}

/// The machine of one host.
pub type Aemon = Tcp<Urgent>;

impl Aemon {
    /// Creates a host without flows.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let config = params.dctcp.tcp.config(env);
        Tcp::with(config, Urgent(Proportional::new(&params.dctcp, config.smss)))
    }
}

/// DCTCP's rules, with a power of alpha as the weight of a mark.
#[derive(Clone, Copy, Debug)]
pub struct Urgent(Proportional);

/// Returns d, the urgency of a flow.
fn urgency(flow: &Flow, now: Time) -> Fraction {
    let Some(deadline) = flow.deadline else { return Fraction::ONE };
    let (used, left) = (now.since(flow.start), deadline.since(now));
    let u = (u128::from(used.0) * u128::from(Fraction::ONE.ppb())).checked_div(u128::from(left.0));
    u.and_then(|u| u64::try_from(u).ok()).map_or(MOST, |u| Fraction(u).clamp(LEAST, MOST))
}

impl Congestion for Urgent {
    type State = State;
    const ECN: Ecn = Ecn::Exact;

    fn open(&self, flow: &Flow) -> State {
        self.0.open(flow)
    }
    fn inherit(&self, state: &mut State, before: &State) {
        self.0.inherit(state, before);
    }
    #[inline]
    fn on_feedback(&self, state: &mut State, ack: &Ack<'_>) {
        self.0.on_feedback(state, ack);
    }
    #[inline]
    fn on_ack(&self, state: &mut State, window: &mut Window, ack: &Ack<'_>) {
        self.0.on_ack(state, window, ack);
    }
    fn on_mark(&self, state: &mut State, window: &Window, ack: &Ack<'_>) -> Option<u64> {
        Some(self.0.cut(window, power(state.alpha.value(), urgency(ack.flow, ack.now()))))
    }
    fn on_loss(&self, state: &mut State, window: &Window, loss: Loss) -> u64 {
        self.0.on_loss(state, window, loss)
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

    /// Returns (d, p, window in bytes) of a flow with alpha = 0.25 and 20 segments, `after` its
    /// start.
    fn marked(deadline: Option<Dur>, after: Dur) -> (u64, u64, u64) {
        let start = Time::ZERO + Dur::from_ms(3);
        let flow = Flow { start, deadline: deadline.map(|time| start + time), ..script::flow(0, 1 << 20) };
        let params = DctcpParams { alpha: Fraction(250_000_000), ..DctcpParams::defaults() };
        let rules = Urgent(Proportional::new(&params, SMSS));
        let now = start + after;
        let ack = script::ack_with(&flow, SMSS, |ack| ack.now_ps = now.0);
        let d = urgency(&flow, now);
        let cut = rules.on_mark(&mut rules.open(&flow), &Window { cwnd: 20 * SMSS, ssthresh: u64::MAX }, &ack);
        (d.ppb(), power(Fraction(250_000_000), d).ppb(), cut.expect("every mark counts"))
    }

    /// Computed independently of this code: a deadline of 10 ms, seen after 2, 5 and 7.5 ms.
    #[test]
    fn golden_urgencies() {
        let of = |us| marked(Some(Dur::from_ms(10)), Dur::from_us(us));
        assert_eq!(of(2000), (500_000_000, 500_000_000, 15 * SMSS));
        assert_eq!(of(5000), (1_000_000_000, 250_000_000, 35 * SMSS / 2));
        assert_eq!(of(7500), (2_000_000_000, 62_500_000, 20 * SMSS * 31 / 32));
        // Between the bounds, at the start, at the deadline and after it.
        assert_eq!([of(4000).0, of(0).0, of(10_000).0, of(20_000).0], [666_666_666, 500_000_000, 2_000_000_000, 2_000_000_000]);
    }

    #[test]
    fn without_a_deadline_it_is_dctcp() {
        assert_eq!(marked(None, Dur::from_ms(9)), (1_000_000_000, 250_000_000, 35 * SMSS / 2));
        for seed in 0..10 {
            let flow = script::flow(0, 400 * SMSS);
            let fate = || {
                let mut rng = Rng::stream(seed, "aemon", &[]);
                move |_: &Packet| match rng.below(50) {
                    0 => Fate::Drop,
                    1..10 => Fate::Mark,
                    _ => Fate::Pass,
                }
            };
            let here = exchange(|| Aemon::new(&Params::defaults(), &script::env()), &flow, fate());
            let dctcp = exchange(|| dctcp::Dctcp::new(&DctcpParams::defaults(), &script::env()), &flow, fate());
            assert_eq!(here, dctcp, "seed {seed}");
        }
    }
}

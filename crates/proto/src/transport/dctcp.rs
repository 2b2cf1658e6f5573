//! DCTCP: a mark cuts the window by half the fraction of bytes marked recently.
//!
//! Source: RFC 8257 section 3; M. Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, section
//! 3. The state machine is `kit/tcp`, which also echoes marks exactly and cuts a window at most
//! once; `kit/alpha` estimates the fraction. This file defines how the window grows and is cut.
//!
//! Model: that of `kit/tcp`. ECN is not negotiated: both ends support it.
//!
//! | step on an ACK of new data | from |
//! |---|---|
//! | 1. count its bytes, and those with ECE as marked | RFC 8257 section 3.3 |
//! | 2. beyond the end of the window of observation: `alpha = (1 - g) alpha + g marked / acked`, next window up to `snd_nxt` | eq. 1 |
//! | 3. ECE, beyond the data of the last cut: `cwnd = cwnd (1 - alpha / 2)`, with the alpha of step 2 | eq. 2 |
//! | 4. else grow as Reno | section 3.4 |
//!
//! Assumed:
//! - The first window of observation ends with the first ACK, so that one single ACK updates alpha
//!   once (as in Linux and ns-2).
//! - An ACK with ECE that cuts nothing grows the window like any other ACK, as in ns-2. RFC 3168
//!   would not let it grow.
//! - A loss halves FlightSize even if a mark has cut the window before (section 3.5; so does Linux
//!   since 2019): that cut may have been very small.
//! - Retransmissions, SYN and SYNACK can be marked like all data (section 3.6; Linux); bare ACKs
//!   cannot.
//! - Alpha begins with 1, as in Linux and ns-3: the first mark halves the window. In the ns-2 program of the authors of
//!   PIAS it begins with 0 and is 1/16 once a connection is open, because the ECE of the SYNACK counts as a mark
//!   (`alpha = 0.0625`). Its scripts reuse connections, which keep alpha.
//! - Alpha and the fraction of marked bytes are whole parts per billion, rounded down; the window is whole bytes, rounded down.
//! - Congestion avoidance adds one SMSS per `cwnd` bytes acknowledged; fractions of a byte are
//!   carried over.

use crate::contract::Env;
use crate::flow::Flow;
use crate::kit::alpha::{self, Alpha};
use crate::kit::tcp::{Ack, Congestion, Ecn, Growth, Loss, Options, Tcp, Window, half_flight};
use base::Fraction;
use base::params::Problem;
use base::registry::{Meta, Needs};

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "DCTCP: a mark cuts the window by half the fraction of bytes marked recently",
    source: "RFC 8257; Alizadeh et al., SIGCOMM 2010",
    needs: Needs { marks: true, least_limit: 1.0, least_mark: 1.0 / 7.0, ..Needs::NONE },
    implies: &[("qdisc.kind", "ecn_threshold")],
    host: "RFC 8257 names none; Linux: a queue in front of the NIC, kept short by byte queue limits; the simulations of the paper: ns-2",
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of DCTCP.
    pub struct Params {
        ..tcp: Options {}
        /// Gain: the weight of one window of observation in alpha.
        g: Fraction = "0.0625" in Fraction(1)..=Fraction::ONE, "SIGCOMM 2010 section 4, Linux: 1/16";
        /// Initial value of alpha.
        alpha: Fraction = "1" in Fraction(0)..=Fraction::ONE, "Linux, ns-3; ns-2: 0; authors of PIAS: 1/16 after the handshake";
        /// Smallest window in segments after a mark.
        min_cwnd: u32 = "1" in 1..=2, "ns-2; Linux: 2";
    }
}

/// Returns the contradictions between parameters.
pub fn check(params: &Params, _env: &Env<'_>) -> Vec<Problem> {
    params.tcp.check()
}

/// The machine of one host.
pub type Dctcp = Tcp<Proportional>;

impl Dctcp {
    /// Creates a host without flows.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let config = params.tcp.config(env);
        Tcp::with(config, Proportional::new(params, config.smss))
    }
}

/// The window rules of RFC 5681, and those of RFC 8257 for marks. Controllers with another weight
/// of a mark than alpha build on them.
#[derive(Clone, Copy, Debug)]
pub struct Proportional {
    pub(super) smss: u64,
    g: Fraction,
    alpha: Fraction,
    min_cwnd: u64,
}

impl Proportional {
    /// Creates the rules for segments of `smss` bytes.
    pub fn new(params: &Params, smss: u64) -> Self {
        Proportional { smss, g: params.g, alpha: params.alpha, min_cwnd: u64::from(params.min_cwnd) * smss }
    }
    /// Returns the window in bytes after a mark, which cuts half the fraction `part` of the window.
    pub fn cut(&self, window: &Window, part: Fraction) -> u64 {
        alpha::cut(window.cwnd, part).max(self.min_cwnd)
    }
}

/// The state of one flow.
#[derive(Clone, Copy, Debug)]
pub struct State {
    pub(super) growth: Growth,
    pub(super) alpha: Alpha,
}

impl Congestion for Proportional {
    type State = State;
    const ECN: Ecn = Ecn::Exact;

    fn open(&self, _flow: &Flow) -> State {
        State { growth: Growth::default(), alpha: Alpha::new(self.alpha) }
    }

    fn inherit(&self, state: &mut State, before: &State) {
        state.alpha = Alpha::new(before.alpha.value());
    }

    #[inline]
    fn on_feedback(&self, state: &mut State, ack: &Ack<'_>) {
        state.alpha.on_ack(ack.acked, ack.ece, ack.snd_una, ack.snd_nxt, self.g);
    }

    #[inline]
    fn on_ack(&self, state: &mut State, window: &mut Window, ack: &Ack<'_>) {
        state.growth.on_ack(window, ack, self.smss);
    }

    fn on_mark(&self, state: &mut State, window: &Window, _ack: &Ack<'_>) -> Option<u64> {
        // RFC 8257 section 3.3 step 9.
        Some(self.cut(window, state.alpha.value()))
    }

    fn on_loss(&self, _state: &mut State, _window: &Window, loss: Loss) -> u64 {
        // RFC 8257 section 3.5.
        half_flight(loss, self.smss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::script;
    use proptest::prelude::*;

    const SMSS: u64 = 1460;
    const G: Fraction = Fraction(62_500_000);

    fn rules(alpha: f64, min_cwnd: u64) -> Proportional {
        Proportional { smss: SMSS, g: G, alpha: Fraction((alpha * 1e9) as u64), min_cwnd: min_cwnd * SMSS }
    }

    /// The golden cuts are those of `kit::alpha`.
    #[test]
    fn a_mark_cuts_the_window_by_alpha_down_to_the_least() {
        for (cwnd, alpha, min_cwnd, cut) in
            [(20.0, 0.5, 1, 15.0), (10.0, 0.910_156_25, 1, 5.449_218_75), (1.0, 1.0, 1, 1.0), (3.0, 1.0, 2, 2.0)]
        {
            let rules = rules(alpha, min_cwnd);
            let (flow, window) = (script::flow(0, 1), Window { cwnd: (cwnd * SMSS as f64) as u64, ssthresh: u64::MAX });
            let found = rules.on_mark(&mut rules.open(&flow), &window, &script::ack(&flow, SMSS));
            assert_eq!(found, Some((cut * SMSS as f64) as u64), "{cwnd} {alpha}");
        }
    }

    #[test]
    fn a_flow_that_continues_a_connection_takes_over_alpha() {
        let rules = rules(1.0, 2);
        let flow = script::flow(0, SMSS);
        let (mut before, mut state) = (rules.open(&flow), rules.open(&flow));
        before.alpha = Alpha::new(Fraction(250_000_000));
        rules.inherit(&mut state, &before);
        assert_eq!(state.alpha, Alpha::new(Fraction(250_000_000)), "the window of observation begins anew");
    }

    #[test]
    fn a_loss_halves_the_flight_whatever_alpha_is() {
        let (rules, cause) = (rules(0.0, 1), crate::kit::tcp::Cause::Duplicates);
        for (flight, after_mark, ssthresh) in [(20, false, 10), (20, true, 10), (3, false, 2)] {
            let loss = Loss { cause, flight: flight * SMSS, after_mark };
            let window = Window { cwnd: 20 * SMSS, ssthresh: 20 * SMSS };
            assert_eq!(rules.on_loss(&mut rules.open(&script::flow(0, 1)), &window, loss), ssthresh * SMSS);
        }
    }

    proptest! {
        /// Whatever is acknowledged and marked, the window never falls below its minimum.
        #[test]
        fn the_window_keeps_its_bounds(
            start in 0u64..=1_000_000_000,
            g in 1u64..=1_000_000_000,
            min_cwnd in 1u64..=2,
            acks in prop::collection::vec((1u64..100_000, any::<bool>(), any::<bool>(), 0u64..200_000), 1..200),
        ) {
            let rules = Proportional { smss: SMSS, g: Fraction(g), alpha: Fraction(start), min_cwnd: min_cwnd * SMSS };
            let flow = script::flow(0, 1);
            let (mut state, mut window, mut snd_una) = (rules.open(&flow), Window { cwnd: 2 * SMSS, ssthresh: u64::MAX }, 0);
            for (acked, ece, cut, ahead) in acks {
                snd_una += acked;
                let ack = script::ack_with(&flow, acked, |ack| {
                    (ack.ece, ack.snd_una, ack.snd_nxt) = (ece, snd_una, snd_una + ahead);
                });
                rules.on_feedback(&mut state, &ack);
                let before = window.cwnd;
                if ece && cut {
                    window.cwnd = rules.on_mark(&mut state, &window, &ack).expect("every mark counts");
                    window.ssthresh = window.cwnd.max(2 * SMSS);
                    prop_assert!(window.cwnd <= before.max(min_cwnd * SMSS) && window.cwnd >= (before / 2).max(min_cwnd * SMSS));
                } else {
                    rules.on_ack(&mut state, &mut window, &ack);
                    prop_assert!(window.cwnd >= before);
                }
            }
        }
    }
}

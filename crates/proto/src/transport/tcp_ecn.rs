//! TCP NewReno with explicit congestion notification: a mark halves the window, as a loss would,
//! although no packet was lost.
//!
//! Source: RFC 3168 section 6.1, on RFC 5681 and RFC 6582. The state machine is `kit/tcp`, which
//! also cuts a window at most once; this file defines how the window grows and is cut.
//!
//! Model: that of `kit/tcp`. ECN is not negotiated: both ends support it. Only ECT(0) is used;
//! there is no nonce.
//!
//! Assumed:
//! - A mark halves `cwnd`, not FlightSize: section 6.1.2 speaks of the congestion window. The slow-start threshold follows, down to two
//!   segments.
//! - Congestion avoidance adds one SMSS per `cwnd` bytes acknowledged; fractions of a byte are
//!   carried over.
//! - A loss after a mark of the same window starts recovery without another cut (section 6.1.2: once for dropped and marked packets of
//!   one window); a timeout still sets `cwnd` to one segment.
//!
//! Deviates: a marked window of one segment stays one segment. Section 6.1.2 would then send only
//! at the next timeout; no simulator of the data-center papers does so.

use crate::contract::Env;
use crate::flow::Flow;
use crate::kit::tcp::{Ack, Congestion, Ecn, Growth, Loss, Options, Tcp, Window, half_flight};
use base::params::Problem;
use base::registry::{Meta, Needs};

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "TCP NewReno with ECN: a mark halves the window, once per round trip",
    source: "RFC 3168, RFC 5681, RFC 6582",
    needs: Needs { marks: true, least_limit: 1.0, ..Needs::NONE },
    implies: &[("qdisc.kind", "red_ecn")],
    host: "the RFCs name none; Linux: a queue in front of the NIC, kept short by byte queue limits",
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of TCP with ECN.
    pub struct Params {
        ..tcp: Options {}
    }
}

/// Returns the contradictions between parameters.
pub fn check(params: &Params, _env: &Env<'_>) -> Vec<Problem> {
    params.tcp.check()
}

/// The machine of one host.
pub type TcpEcn = Tcp<Halving>;

impl TcpEcn {
    /// Creates a host without flows.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let config = params.tcp.config(env);
        Tcp::with(config, Halving { smss: config.smss })
    }
}

/// The window rules of RFC 5681, and those of RFC 3168 for marks.
#[derive(Clone, Copy, Debug)]
pub struct Halving {
    smss: u64,
}

impl Congestion for Halving {
    type State = Growth;
    const ECN: Ecn = Ecn::Classic;

    fn open(&self, _flow: &Flow) -> Growth {
        Growth::default()
    }

    #[inline]
    fn on_ack(&self, growth: &mut Growth, window: &mut Window, ack: &Ack<'_>) {
        // RFC 3168 section 6.1.2: an ACK with ECE does not increase the window.
        if !ack.ece {
            growth.on_ack(window, ack, self.smss);
        }
    }

    fn on_mark(&self, _growth: &mut Growth, window: &Window, _ack: &Ack<'_>) -> Option<u64> {
        Some((window.cwnd / 2).max(self.smss))
    }

    fn on_loss(&self, _growth: &mut Growth, window: &Window, loss: Loss) -> u64 {
        if loss.after_mark { window.ssthresh } else { half_flight(loss, self.smss) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::script;
    use crate::kit::tcp::Cause;

    const SMSS: u64 = 1460;
    const RULES: Halving = Halving { smss: SMSS };

    #[test]
    fn a_mark_halves_the_window_down_to_one_segment() {
        let flow = script::flow(0, 1);
        for (cwnd, cut) in [(20 * SMSS, 10 * SMSS), (3 * SMSS, 3 * SMSS / 2), (2 * SMSS, SMSS), (SMSS + 1, SMSS), (SMSS, SMSS)] {
            assert_eq!(
                RULES.on_mark(&mut Growth::default(), &Window { cwnd, ssthresh: u64::MAX }, &script::ack(&flow, SMSS)),
                Some(cut)
            );
        }
    }

    #[test]
    fn an_ack_with_an_echo_does_not_grow_the_window() {
        let flow = script::flow(0, 1);
        for ssthresh in [2 * SMSS, u64::MAX] {
            let mut window = Window { cwnd: 10 * SMSS, ssthresh };
            RULES.on_ack(&mut Growth::default(), &mut window, &script::ack_with(&flow, SMSS, |ack| ack.ece = true));
            assert_eq!(window.cwnd, 10 * SMSS);
            RULES.on_ack(&mut Growth::default(), &mut window, &script::ack(&flow, SMSS));
            assert!(window.cwnd > 10 * SMSS);
        }
    }

    #[test]
    fn marks_and_losses_of_one_window_cut_it_once() {
        let window = Window { cwnd: 10 * SMSS, ssthresh: 10 * SMSS };
        for (after_mark, ssthresh) in [(false, 9 * SMSS), (true, 10 * SMSS)] {
            let loss = Loss { cause: Cause::Duplicates, flight: 18 * SMSS, after_mark };
            assert_eq!(RULES.on_loss(&mut Growth::default(), &window, loss), ssthresh);
        }
    }
}

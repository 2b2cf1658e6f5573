//! DCTCP: a mark cuts the window by half the fraction of bytes marked recently.
//!
//! Source: RFC 8257 section 3. All numbers are whole: alpha is in parts per billion, the window in
//! bytes, both rounded down.

use crate::abi::{Flow, Parameter, Type};
use crate::author::{Declaration, Values};
use crate::congestion::{Ack, Calls, Congestion, Host, Loss, Window};

/// One in parts per billion.
const ONE: u64 = 1_000_000_000;

/// The controller of a host.
pub struct Example {
    smss: u64,
    g: u64,
    alpha: u64,
    min_cwnd: u64,
}

/// The state of one flow.
pub struct State {
    /// Growth of congestion avoidance that is not yet added to the window, in bytes times the window.
    owed: u64,
    alpha: u64,
    /// The end of the window of observation, as an offset.
    window_end: u64,
    /// Bytes acknowledged in the window of observation.
    acked: u64,
    marked: u64,
}

impl Congestion for Example {
    type State = State;
    const DECLARATION: Declaration = Declaration {
        source: c"RFC 8257",
        parameters: &[
            Parameter::new(Type::Fraction, c"g", c"0.0625", c"Gain: the weight of one window of observation in alpha.")
                .range(c"0.000000001", c"1")
                .source(c"SIGCOMM 2010 section 4, Linux: 1/16"),
            Parameter::new(Type::Fraction, c"alpha", c"1", c"Initial value of alpha.").range(c"0", c"1").source(c"Linux"),
            Parameter::new(Type::Integer, c"min_cwnd", c"1", c"Smallest window in segments after a mark.")
                .range(c"1", c"2")
                .source(c"ns-2; Linux: 2"),
        ],
        ..Declaration::new(c"example", c"DCTCP: a mark cuts the window by half the fraction of bytes marked recently")
    };
    const ECN: u32 = 2;
    const SHARES: bool = true;
    const CALLS: Calls = Calls { on_mark: true, inherit: true, ..Calls::NONE };

    fn create(host: &Host, values: Values<'_>) -> Result<Self, String> {
        let (g, alpha, min_cwnd) = (values.integer(0), values.integer(1), values.integer(2) * host.smss);
        Ok(Example { smss: host.smss, g, alpha, min_cwnd })
    }

    fn open(&self, _flow: &Flow) -> State {
        State { owed: 0, alpha: self.alpha, window_end: 0, acked: 0, marked: 0 }
    }

    fn inherit(&self, state: &mut State, before: &State) {
        state.alpha = before.alpha;
    }

    fn on_ack(&self, state: &mut State, window: &mut Window, ack: &Ack) {
        // RFC 8257 section 3.3, steps 1 to 3.
        state.acked += ack.acked;
        state.marked += if ack.ece { ack.acked } else { 0 };
        // Steps 4 to 8.
        if ack.snd_una > state.window_end {
            let fraction = (u128::from(state.marked) * u128::from(ONE) / u128::from(state.acked)) as u64;
            state.alpha = (state.alpha * (ONE - self.g) + fraction * self.g) / ONE;
            (state.window_end, state.acked, state.marked) = (ack.snd_nxt, 0, 0);
        }
        if !ack.may_change || !ack.window_limited {
            return;
        }
        if window.cwnd < window.ssthresh {
            window.cwnd += ack.slow_start;
        } else {
            // One segment per window of bytes acknowledged.
            state.owed += self.smss * ack.acked;
            let cwnd = window.cwnd;
            window.cwnd += state.owed / cwnd;
            state.owed %= cwnd;
        }
    }

    fn on_mark(&self, state: &mut State, window: &Window, _ack: &Ack) -> Option<u64> {
        // RFC 8257 section 3.3 step 9.
        let cut = (u128::from(window.cwnd) * u128::from(2 * ONE - state.alpha) / u128::from(2 * ONE)) as u64;
        Some(cut.max(self.min_cwnd))
    }

    fn on_loss(&self, _state: &mut State, _window: &Window, loss: &Loss) -> u64 {
        // RFC 5681 eq. 4.
        (loss.flight / 2).max(2 * self.smss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::Value;

    const SMSS: u64 = 1460;

    fn opened() -> (Example, State) {
        let host = Host { smss: SMSS, header: 40, init_window: 10 * SMSS, nic_rate_bps: 10_000_000_000, max_rtt_ps: 20_000_000 };
        let example = Example::create(&host, Values(&[Value(62_500_000), Value(ONE), Value(1)])).unwrap();
        let state = example.open(&Flow { number: 0, size: 0, start_ps: 0, deadline_ps: u64::MAX });
        (example, state)
    }

    fn ack() -> Ack {
        Ack {
            acked: SMSS,
            slow_start: SMSS,
            snd_una: SMSS,
            snd_nxt: 10 * SMSS,
            window_limited: true,
            may_change: true,
            ..Ack::NONE
        }
    }

    #[test]
    fn slow_start_adds_the_acknowledged_bytes() {
        let (example, mut state) = opened();
        let mut window = Window { cwnd: 3 * SMSS, ssthresh: u64::MAX };
        example.on_ack(&mut state, &mut window, &ack());
        assert_eq!(window.cwnd, 4 * SMSS);
    }

    #[test]
    fn a_mark_cuts_by_half_of_alpha() {
        let (example, mut state) = opened();
        // The first window of observation has no mark: alpha is 15/16. Before a mark, the window stays.
        let mut window = Window { cwnd: 20 * SMSS, ssthresh: 20 * SMSS };
        example.on_ack(&mut state, &mut window, &Ack { may_change: false, ..ack() });
        assert_eq!(window.cwnd, 20 * SMSS);
        assert_eq!(example.on_mark(&mut state, &window, &ack()), Some(20 * SMSS * 17 / 32));
    }

    #[test]
    fn a_loss_halves_the_flight() {
        let (example, mut state) = opened();
        let window = Window { cwnd: 20 * SMSS, ssthresh: 20 * SMSS };
        let loss = Loss { flight: 20 * SMSS, cause: 0, after_mark: false, reserved: [0; 3] };
        assert_eq!(example.on_loss(&mut state, &window, &loss), 10 * SMSS);
    }
}

//! TCP NewReno: slow start, congestion avoidance, fast retransmit and recovery without SACK.
//!
//! Source: RFC 5681 sections 3.1 and 3.2, RFC 6582, RFC 6298. The state machine is `kit/tcp`; this
//! file defines how the window grows and is cut.
//!
//! Model: that of `kit/tcp`.
//!
//! Assumed:
//! - Congestion avoidance adds SMSS * SMSS / cwnd per ACK, rounded down, at least one byte.

use crate::contract::Env;
use crate::flow::Flow;
use crate::kit::tcp::{Ack, Congestion, Loss, Options, Tcp, Window, half_flight};
use base::params::Problem;
use base::registry::{Meta, Needs};

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "TCP NewReno: slow start, congestion avoidance, fast retransmit and recovery without SACK",
    source: "RFC 5681, RFC 6582, RFC 6298",
    needs: Needs { least_limit: 1.0, ..Needs::NONE },
    host: "the RFCs name none; Linux: a queue in front of the NIC, kept short by byte queue limits",
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of TCP NewReno.
    pub struct Params {
        ..tcp: Options {}
        /// Whether congestion avoidance adds one SMSS per `cwnd` bytes acknowledged, instead of a
        /// fraction of it per ACK.
        byte_counting: bool = "false", "RFC 5681 section 3.1";
    }
}

/// Returns the contradictions between parameters.
pub fn check(params: &Params, _env: &Env<'_>) -> Vec<Problem> {
    params.tcp.check()
}

/// The machine of one host.
pub type NewReno = Tcp<Reno>;

impl NewReno {
    /// Creates a host without flows.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let config = params.tcp.config(env);
        Tcp::with(config, Reno { smss: config.smss, byte_counting: params.byte_counting })
    }
}

/// The window rules of RFC 5681.
#[derive(Clone, Copy, Debug)]
pub struct Reno {
    smss: u64,
    byte_counting: bool,
}

impl Congestion for Reno {
    /// Bytes acknowledged towards the next SMSS, if bytes are counted.
    type State = u64;

    fn open(&self, _flow: &Flow) -> u64 {
        0
    }

    #[inline]
    fn on_ack(&self, counted: &mut u64, window: &mut Window, ack: &Ack<'_>) {
        if !ack.window_limited {
            return;
        }
        let cwnd = window.cwnd;
        window.cwnd += if cwnd < window.ssthresh {
            ack.slow_start
        } else if self.byte_counting {
            *counted += ack.acked;
            if *counted < cwnd {
                return;
            }
            *counted -= cwnd;
            self.smss
        } else {
            // RFC 5681 eq. 3.
            (self.smss * self.smss / cwnd).max(1)
        };
    }

    fn on_loss(&self, counted: &mut u64, _window: &Window, loss: Loss) -> u64 {
        *counted = 0;
        half_flight(loss, self.smss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::script;

    const SMSS: u64 = 1460;

    fn grow(reno: Reno, window: &mut Window, counted: &mut u64, acked: u64, window_limited: bool) -> u64 {
        let flow = script::flow(0, 1);
        let ack = script::ack_with(&flow, acked, |ack| ack.window_limited = window_limited);
        reno.on_ack(counted, window, &ack);
        window.cwnd
    }

    #[test]
    fn slow_start_adds_the_acknowledged_bytes_up_to_one_segment() {
        let reno = Reno { smss: SMSS, byte_counting: false };
        let mut window = Window { cwnd: 3 * SMSS, ssthresh: u64::MAX };
        assert_eq!(grow(reno, &mut window, &mut 0, 2 * SMSS, true), 4 * SMSS);
        assert_eq!(grow(reno, &mut window, &mut 0, 100, true), 4 * SMSS + 100);
        assert_eq!(grow(reno, &mut window, &mut 0, SMSS, false), 4 * SMSS + 100);
    }

    #[test]
    fn congestion_avoidance_adds_a_part_of_a_segment_per_ack() {
        let reno = Reno { smss: SMSS, byte_counting: false };
        let mut window = Window { cwnd: 10 * SMSS, ssthresh: 10 * SMSS };
        assert_eq!(grow(reno, &mut window, &mut 0, SMSS, true), 10 * SMSS + 146);
        assert_eq!(grow(reno, &mut window, &mut 0, SMSS, true), 10 * SMSS + 146 + 144);
        window.cwnd = SMSS * SMSS * 2;
        assert_eq!(grow(reno, &mut window, &mut 0, SMSS, true), SMSS * SMSS * 2 + 1);
    }

    #[test]
    fn byte_counting_adds_a_segment_per_window() {
        let reno = Reno { smss: SMSS, byte_counting: true };
        let (mut window, mut counted) = (Window { cwnd: 4 * SMSS, ssthresh: 2 * SMSS }, 0);
        let steps: Vec<u64> = (0..9).map(|_| grow(reno, &mut window, &mut counted, SMSS, true) / SMSS).collect();
        assert_eq!(steps, [4, 4, 4, 5, 5, 5, 5, 5, 6]);
    }

    #[test]
    fn a_loss_halves_the_flight_down_to_two_segments() {
        let reno = Reno { smss: SMSS, byte_counting: false };
        let window = Window { cwnd: 100 * SMSS, ssthresh: u64::MAX };
        let cause = crate::kit::tcp::Cause::Timeout;
        assert_eq!(reno.on_loss(&mut 0, &window, Loss { cause, flight: 9 * SMSS, after_mark: false }), 9 * SMSS / 2);
        assert_eq!(reno.on_loss(&mut 0, &window, Loss { cause, flight: SMSS, after_mark: false }), 2 * SMSS);
    }
}

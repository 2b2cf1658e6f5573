//! CUBIC: the window is a cubic function of the time since the last loss, and never below that of
//! Reno.
//!
//! Source: RFC 9438; RFC 9406 (HyStart++) for the first slow start. The state machine is `kit/tcp`,
//! which also finds and repairs losses; `kit/hystart` ends the first slow start. This file defines
//! how the window grows and is cut.
//!
//! Model: that of `kit/tcp`. There is no undo after a spurious timeout or retransmission (section
//! 4.9, which is optional), and no Proportional Rate Reduction (section 4.6, optional): the window is
//! cut at once. Marks count with the option `ecn`; queues must then mark packets (`red_ecn`). ECN is
//! not negotiated: both ends support it.
//!
//! | rule on an ACK in congestion avoidance | from |
//! |---|---|
//! | `W_cubic(t) = C (t - K)^3 + W_max`, `K = cbrt((W_max - cwnd_epoch) / C)`, `t` since the start of congestion avoidance | Figures 1 and 2 |
//! | `target = W_cubic(t + RTT)`, between `cwnd` and `1.5 cwnd`; `cwnd` grows by `(target - cwnd) / cwnd` | sections 4.2, 4.4, 4.5 |
//! | `W_est` grows by `alpha / cwnd`, `alpha = 3 (1 - beta) / (1 + beta)`, and by `1 / cwnd` above `cwnd_prior` | section 4.3 |
//! | `cwnd = W_est` while `W_cubic(t) < W_est` | section 4.3 |
//! | a loss: `ssthresh = beta FlightSize`, at least two segments | section 4.6 |
//! | with `ecn`, a mark: `cwnd = beta FlightSize`, at least one segment, once per window of data | section 4.6 |
//! | a loss or a mark below `W_max`: `W_max = cwnd (1 + beta) / 2`, otherwise `cwnd` | section 4.7 |
//! | after a timeout, and after a slow start that delay has ended: `K = 0`, `W_max = cwnd` | sections 4.8, 4.10 |
//!
//! In a data center the cubic function plays no part: with C = 0.4 and W_max = 100 segments, K is
//! 4.2 s. CUBIC then is AIMD(9/17, 0.7), and grows like Reno above the window of the last loss.
//! HyStart++'s thresholds of 4 and 16 ms are longer than the queues of most data-center switches, so
//! that slow start ends with a loss or a mark, as without HyStart++. The defaults are those of the
//! RFCs, because deployed stacks have them; `min_rtt_thresh` and `max_rtt_thresh` change them. Linux
//! has HyStart, with the same times; its second test, by the spacing of ACKs, is not modelled.
//!
//! Assumed:
//! - Windows are whole bytes. Times in the cubic function are whole nanoseconds, K and the volume
//!   `C (t - K)^3` are rounded towards zero, and fractions of a byte of growth are carried over.
//! - Congestion avoidance starts with the first ACK outside recovery at which `cwnd` is at least
//!   `ssthresh` (Linux).
//! - `W_est` does not lower `cwnd`, which may be a little above `W_cubic(t)`.
//! - If `cwnd` at the start of congestion avoidance is not below `W_max` (a floor of two segments),
//!   `K = 0` and `W_max = cwnd`, as in Linux.
//! - Time between two ACKs does not count in `t` if the window was not the limit at the second
//!   (section 5.8).
//! - With `ecn`, FlightSize at a mark includes the bytes that the ACK acknowledges. An ACK with an echo
//!   does not grow the window, and a loss after a mark of the same window starts recovery without
//!   another cut (RFC 3168 section 6.1.2), as in `tcp_ecn`; a marked window of one segment stays one segment.
//! - An ACK adds at most `target - cwnd`, however much it acknowledges.
//! - The limit L of RFC 9406 section 4.3, growth of slow start per ACK in segments, is the option
//!   `slow_start_limit`.
//! - HyStart++ runs while `ssthresh` is infinite (RFC 9406 section 4.3). Samples count also if the
//!   window was not the limit.

use crate::contract::Env;
use crate::flow::Flow;
use crate::kit::hystart::{DelayThresholds, Hystart};
use crate::kit::tcp::{Ack, Cause, Congestion, Ecn, Loss, Options, Tcp, Window};
use base::params::Problem;
use base::registry::{Meta, Needs};
use base::{Dur, Fraction, Time};

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "TCP CUBIC: the window is a cubic function of the time since the last loss",
    source: "RFC 9438, RFC 9406",
    // beta (bandwidth-delay product + queue) >= bandwidth-delay product.
    needs: Needs { least_limit: 3.0 / 7.0, ..Needs::NONE },
    host: "the RFCs name none; Linux: a queue in front of the NIC, kept short by byte queue limits",
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of CUBIC.
    pub struct Params {
        ..tcp: Options {}
        /// C: the growth of the cubic function, in segments per cubic second.
        c: Fraction = "0.4" in Fraction(1)..=Fraction(1_000_000_000_000), "RFC 9438 section 5.1";
        /// The fraction of the window that is left after a loss.
        beta: Fraction = "0.7" in Fraction(1)..=Fraction(999_999_999), "RFC 9438 section 4.6";
        /// Whether a flow that loses below the window of its previous loss gives up more of its share.
        fast_convergence: bool = "true", "RFC 9438 section 4.7";
        /// Whether marks cut the window like losses; queues must mark.
        ecn: bool = "false", "RFC 9438 section 4.6; Linux: off unless the other end requests it";
        /// Whether a growing round-trip time ends the first slow start (HyStart++).
        hystart: bool = "true", "RFC 9438 section 4.10";
        /// Smallest growth of the round-trip time that ends the first slow start.
        min_rtt_thresh: Dur = "4ms" in Dur::ZERO..=Dur::from_secs(60), "RFC 9406 section 4.3";
        /// Largest growth of the round-trip time that slow start tolerates; between the two bounds it
        /// is an eighth of the round trip.
        max_rtt_thresh: Dur = "16ms" in Dur::ZERO..=Dur::from_secs(60), "RFC 9406 section 4.3";
    }
}

/// Returns the contradictions between parameters.
pub fn check(params: &Params, _env: &Env<'_>) -> Vec<Problem> {
    let mut problems = params.tcp.check();
    let (least, most) = (params.min_rtt_thresh, params.max_rtt_thresh);
    if least > most {
        let message = format!("`{least}` is above `max_rtt_thresh`, which is `{most}`");
        let hint = "lower `min_rtt_thresh` or raise `max_rtt_thresh`".to_owned();
        problems.push(Problem { key: "min_rtt_thresh", message, hint });
    }
    problems
}

/// The machine of one host.
pub type Cubic = Tcp<CubicRules>;

impl Cubic {
    /// Creates a host without flows.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let config = params.tcp.config(env);
        Tcp::with(config, CubicRules::new(params, config.smss))
    }
}

/// The window rules of RFC 9438.
#[derive(Clone, Copy, Debug)]
pub struct CubicRules {
    smss: u64,
    c: Fraction,
    beta: Fraction,
    fast_convergence: bool,
    ecn: bool,
    /// The thresholds of HyStart++, if it is used.
    delay: Option<DelayThresholds>,
    /// The additive increase of section 4.3, in segments with 32 fractional bits.
    alpha: u64,
}

/// The state of one flow.
#[derive(Clone, Copy, Debug, Default)]
pub struct CubicState {
    /// `W_max` in bytes; zero before the first loss.
    w_max: u64,
    /// `cwnd_prior` in bytes.
    prior: u64,
    /// Congestion avoidance; `None` in slow start and in recovery.
    epoch: Option<CubicEpoch>,
    /// Congestion avoidance starts at the plateau of the cubic function: after a timeout.
    flat: bool,
    hystart: Hystart,
}

/// One stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct CubicEpoch {
    /// Its start, later by the times in which the window was not the limit.
    start: Time,
    /// The previous ACK.
    last: Time,
    /// `K` in nanoseconds.
    k: u64,
    /// `W_est` in bytes, with 24 fractional bits.
    w_est: u64,
    /// Growth that is not yet added to the window, in bytes times the window.
    owed: u64,
}

impl CubicRules {
    /// Creates the rules for segments of `smss` bytes.
    pub fn new(params: &Params, smss: u64) -> Self {
        let (one, beta) = (Fraction::ONE.ppb(), params.beta.ppb());
        CubicRules {
            smss,
            c: params.c,
            beta: params.beta,
            fast_convergence: params.fast_convergence,
            ecn: params.ecn,
            delay: params.hystart.then_some(DelayThresholds { least: params.min_rtt_thresh, most: params.max_rtt_thresh }),
            alpha: ((u128::from(3 * (one - beta)) << 32) / u128::from(one + beta)) as u64,
        }
    }

    /// Returns C in bytes per cubic second, times 10^9.
    fn scale(&self) -> u128 {
        u128::from(self.c.ppb()) * u128::from(self.smss)
    }

    /// Returns `W_cubic(t)` in bytes, `t` in nanoseconds.
    fn w_cubic(&self, w_max: u64, k: u64, t: u64) -> u64 {
        let distance = u128::from(t.abs_diff(k).min(MOST_NS));
        // Cubic nanoseconds divided by 10^12; with C, 10^24 remain.
        let volume = distance.pow(3) / 1_000_000_000_000;
        let bytes = volume.saturating_mul(self.scale()) / 1_000_000_000_000_000_000_000_000;
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        if t >= k { w_max.saturating_add(bytes) } else { w_max.saturating_sub(bytes) }
    }

    /// Returns K in nanoseconds: the time in which the window grows by `bytes` to `W_max`.
    fn k(&self, bytes: u64) -> u64 {
        let (scale, part) = (self.scale(), 1_000_000_000_000_000_000);
        let scaled = u128::from(bytes) * part;
        // bytes * 10^36 / scale, without overflow.
        let whole = (scaled / scale).saturating_mul(part);
        cube_root(whole.saturating_add((scaled % scale).saturating_mul(part) / scale))
    }

    /// Reacts to a loss or a mark (sections 4.6 and 4.7). Returns the part of `flight` that is left.
    fn reduce(&self, state: &mut CubicState, cwnd: u64, flight: u64) -> u64 {
        let (one, beta) = (u128::from(Fraction::ONE.ppb()), u128::from(self.beta.ppb()));
        // Section 4.7, before the reduction.
        let released = (u128::from(cwnd) * (one + beta) / (2 * one)) as u64;
        state.w_max = if self.fast_convergence && cwnd < state.w_max { released } else { cwnd };
        (state.prior, state.epoch) = (cwnd, None);
        (u128::from(flight) * beta / one) as u64
    }

    /// Starts congestion avoidance.
    fn start(&self, state: &mut CubicState, cwnd: u64, now: Time) -> CubicEpoch {
        if state.w_max == 0 {
            // Section 4.10: delay has ended the first slow start.
            state.prior = cwnd;
        }
        if state.flat || cwnd >= state.w_max {
            (state.flat, state.w_max) = (false, cwnd);
        }
        CubicEpoch { start: now, last: now, k: self.k(state.w_max - cwnd), w_est: cwnd << FRACTION, owed: 0 }
    }

    /// Grows the window in congestion avoidance, which was the limit.
    fn grow(&self, epoch: &mut CubicEpoch, state: &CubicState, window: &mut Window, ack: &Ack<'_>) {
        let cwnd = window.cwnd;
        let alpha = if epoch.w_est >> FRACTION >= state.prior { 1 << 32 } else { self.alpha };
        let segments = (u128::from(self.smss * ack.acked) * u128::from(alpha)) >> (32 - FRACTION);
        epoch.w_est = epoch.w_est.saturating_add((segments / u128::from(cwnd)) as u64);
        let (t, w_est) = (ack.now().since(epoch.start).0 / 1000, epoch.w_est >> FRACTION);
        if self.w_cubic(state.w_max, epoch.k, t) < w_est {
            window.cwnd = cwnd.max(w_est);
            epoch.owed = 0;
            return;
        }
        let target = self.w_cubic(state.w_max, epoch.k, t + ack.srtt().0 / 1000).clamp(cwnd, cwnd + cwnd / 2);
        epoch.owed = epoch.owed.saturating_add((target - cwnd).saturating_mul(ack.acked));
        window.cwnd += (epoch.owed / cwnd).min(target - cwnd);
        epoch.owed %= cwnd;
    }
}

impl Congestion for CubicRules {
    type State = CubicState;

    #[inline]
    fn ecn(&self) -> Ecn {
        if self.ecn { Ecn::Classic } else { Ecn::Off }
    }

    fn open(&self, _flow: &Flow) -> CubicState {
        CubicState::default()
    }

    #[inline]
    fn on_ack(&self, state: &mut CubicState, window: &mut Window, ack: &Ack<'_>) {
        // RFC 3168 section 6.1.2.
        if ack.ece {
            return;
        }
        if window.cwnd < window.ssthresh {
            match self.delay {
                Some(thresholds) if window.ssthresh == u64::MAX => state.hystart.on_ack(window, ack, thresholds),
                _ if ack.window_limited => window.cwnd += ack.slow_start,
                _ => {}
            }
            return;
        }
        let mut epoch = match state.epoch {
            Some(epoch) => epoch,
            None => self.start(state, window.cwnd, ack.now()),
        };
        if ack.window_limited {
            self.grow(&mut epoch, state, window, ack);
        } else {
            epoch.start = epoch.start.after(ack.now().since(epoch.last));
        }
        epoch.last = ack.now();
        state.epoch = Some(epoch);
    }

    fn on_mark(&self, state: &mut CubicState, window: &Window, ack: &Ack<'_>) -> Option<u64> {
        let flight = ack.snd_nxt - ack.snd_una + ack.acked;
        Some(self.reduce(state, window.cwnd, flight).max(self.smss))
    }

    fn on_loss(&self, state: &mut CubicState, window: &Window, loss: Loss) -> u64 {
        // Section 4.8.
        state.flat = loss.cause == Cause::Timeout;
        if loss.after_mark {
            state.epoch = None;
            return window.ssthresh;
        }
        self.reduce(state, window.cwnd, loss.flight).max(2 * self.smss)
    }
}

/// Returns the cube root, rounded down.
fn cube_root(x: u128) -> u64 {
    let mut root = 0u128;
    for bit in (0..43).rev() {
        let next = root | (1 << bit);
        if next.checked_pow(3).is_some_and(|cube| cube <= x) {
            root = next;
        }
    }
    root as u64
}

/// Fractional bits of `W_est`.
const FRACTION: u32 = 24;
/// Longest distance from K in the cubic function: half an hour, beyond which every window is bounded
/// by `1.5 cwnd`.
const MOST_NS: u64 = 1_800_000_000_000;

#[cfg(test)]
mod tests;

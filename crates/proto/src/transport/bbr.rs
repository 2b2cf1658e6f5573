//! BBRv3: a model of the path, from delivery rates, round trips and losses, sets a pacing rate and a
//! window.
//!
//! Source: N. Cardwell, I. Swett, J. Beshay (eds.), "BBR Congestion Control",
//! draft-ietf-ccwg-bbr (repository of the working group, commit 4ce5e87, 2026), sections 3 to 5, whose
//! names the code has. ECN, which the draft leaves open, follows Google's program (github google/bbr,
//! branch v3, `net/ipv4/tcp_bbr.c`). The state machine is `kit/tcp`, with selective acknowledgments;
//! `kit/tcp/delivery` measures the delivery rate (section 4.1). `bbr/model` holds the model of the
//! path, `bbr/phases` the state machine.
//!
//! Model: that of `kit/tcp`, which also finds and repairs losses: a segment is lost with three segments
//! delivered above it (RFC 6675), a retransmission when a later segment is delivered (RFC 8985). There
//! is no tail loss probe, and no undo after spurious recovery (section 5.5.11). A flow has all its data from
//! its start, so that it never restarts from idle (section 5.4). Hosts send packet by packet: the send
//! quantum (section 5.6.3) counts only in the offload budget.
//!
//! | state | pacing gain | window gain | ends |
//! |---|---|---|---|
//! | Startup | 2.77 | 2 | three rounds in which the rate grows by less than 25 %, or loss above 2 % in six places (5.3.1) |
//! | Drain | 0.5 | 2 | in flight at most one bandwidth-delay product, or after three rounds (5.3.2) |
//! | ProbeBW_DOWN | 0.9 | 2 | in flight at most one bandwidth-delay product and 0.85 `inflight_longterm` (5.3.3.1) |
//! | ProbeBW_CRUISE | 1 | 2 | 2 to 3 s after DOWN began, or as many rounds as one product has segments, at most 63 (5.3.3.2) |
//! | ProbeBW_REFILL | 1 | 2 | one round (5.3.3.3) |
//! | ProbeBW_UP | 1.25 | 2.25 | the rate does not grow, or loss above 2 % (5.3.3.7) |
//! | ProbeRTT | 1 | 0.5 | 200 ms; entered 5 s after the last shortest round trip (5.3.4) |
//!
//! | rule | from |
//! |---|---|
//! | rate: `pacing_gain * min(max_bw, bw_shortterm) * 0.99` | section 5.6.2 |
//! | window: `cwnd_gain * bw * min_rtt + extra_acked`, at most `inflight_longterm` and `inflight_shortterm`, at least 4 segments | section 5.6.4 |
//! | a round with a loss while the flow does not probe: `bw_shortterm` and `inflight_shortterm` become 0.7 of themselves, at least what the round has delivered | section 5.5.10.3 |
//! | a probe with more than 2 % of loss: `inflight_longterm` becomes the bytes in flight at which the loss exceeded 2 % | section 5.5.10.2 |
//! | with `ecn`, a round with a mark while the flow does not probe: `inflight_shortterm` becomes `1 - ecn_factor * alpha` of itself | tcp_bbr.c |
//! | with `ecn`, more than half of the bytes of a sample marked: as with more than 2 % of loss; twice in Startup: it ends | tcp_bbr.c |
//!
//! Assumed:
//! - The times of the draft are for the Internet. With `auto` they are the same number of round trips:
//!   the draft's time times the longest unloaded round trip over 30 ms, for which the draft derives
//!   its times (section 5.3.3.8.3), and at most the draft's time. With a round trip of 30 us, ProbeRTT
//!   comes every 5 ms and takes 200 us, and a flow waits 2 to 3 ms between two probes. The draft's
//!   times are `min_rtt_filter = 10s`, `probe_rtt_interval = 5s`, `probe_rtt_duration = 200ms`,
//!   `probe_wait = 2s` and `probe_wait_spread = 1s`.
//! - Without a handshake, the first pacing rate takes the longest unloaded round trip of the network for the
//!   unknown `srtt`; the draft takes 1 ms.
//! - Rates and windows count payload, as the deliveries do. Rates are whole bits per second, windows whole
//!   bytes, products are rounded down.
//! - The next segment leaves one segment at the present rate after the previous one: a new rate also
//!   changes the gap that has begun.
//! - A quantum is two segments (its lower bound) unless `quantum_time` is set, since hosts have no offload.
//! - The filter of `max_bw` has two slots, for the present and the previous cycle. It is advanced
//!   only if the present slot has a sample (tcp_bbr.c).
//! - The filter of `extra_acked` is exact: the present round and the nine before it.
//! - The lost prefix of a segment (section 5.5.10.2) is not negative (tcp_bbr.c), and at most the segment.
//! - Lost segments of one timeout are handled with the next ACK; only one segment is sent before it.
//! - With `ecn`, an ACK with an echo marks all bytes that it delivers. `alpha` starts with 1, and
//!   changes once per round (tcp_bbr.c).
//!
//! Deviates:
//! - The round trip of the handshake is no sample of `min_rtt` (section 5.2.1 starts with `srtt`): packets
//!   without payload take only a part of the time of full packets in a data center, so that `min_rtt`
//!   would be too short for all of the flow.
//! - tcp_bbr.c probes again at once when marks have ceased in a cycle without loss; this is left out.

mod model;
mod phases;

use crate::contract::Env;
use crate::flow::Flow;
use crate::kit::tcp::{Ack, Cause, Congestion, Deliveries, Ecn, Loss, Options, RateSample, Tcp, Window};
use base::params::{Auto, Problem};
use base::registry::Meta;
use base::{Dur, Fraction, Rate, Rng, Time};
use model::BbrState;

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "BBRv3: a model of the path sets a pacing rate and a window",
    source: "draft-ietf-ccwg-bbr; Cardwell et al., ACM Queue 2016",
    host: "Linux: flows are paced and take turns (`fq`)",
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of BBR.
    pub struct Params {
        ..tcp: Options {
            sack = "true", "draft section 4.1.3.5.1: SHOULD";
            limited_transmit = "true", "draft section 2.4: the window bounds the bytes in flight";
        }
        /// Pacing gain of Startup.
        startup_pacing_gain: Fraction = "2.77" in Fraction::ONE..=Fraction(10_000_000_000), "draft section 5.3.1.1: 4 ln 2";
        /// Window gain, except in ProbeBW_UP (0.25 more) and ProbeRTT.
        cwnd_gain: Fraction = "2" in Fraction::ONE..=Fraction(10_000_000_000), "draft section 2.6: DefaultCwndGain";
        /// Largest tolerated part of the bytes in flight that a probe loses.
        loss_thresh: Fraction = "0.02" in Fraction(0)..=Fraction(999_999_999), "draft section 2.8: LossThresh";
        /// The part of the short-term bounds that is left after a round with a loss.
        beta: Fraction = "0.7" in Fraction(1)..=Fraction::ONE, "draft section 2.8: Beta";
        /// The part of the long-term bound that is left free while the flow cruises.
        headroom: Fraction = "0.15" in Fraction(0)..=Fraction(999_999_999), "draft section 2.8: Headroom";
        /// Time for which the shortest round trip is remembered; `auto`: 333 unloaded round trips of the longest path, at most 10 s.
        min_rtt_filter: Auto<Dur> = "auto" in Auto::Set(Dur(1))..=Auto::Set(Dur::from_secs(3600)), "draft section 2.16.1: 10 s at 30 ms";
        /// Longest time without a shorter round trip before ProbeRTT; `auto`: 167 unloaded round trips of the longest path, at most 5 s.
        probe_rtt_interval: Auto<Dur> = "auto" in Auto::Set(Dur(1))..=Auto::Set(Dur::from_secs(3600)), "draft section 2.16.2: 5 s at 30 ms";
        /// Shortest time of ProbeRTT with little in flight; `auto`: 6.7 unloaded round trips of the longest path, at most 200 ms.
        probe_rtt_duration: Auto<Dur> = "auto" in Auto::Set(Dur::ZERO)..=Auto::Set(Dur::from_secs(60)), "draft section 2.16.2: 200 ms at 30 ms";
        /// Shortest wait between two probes for bandwidth; `auto`: 67 unloaded round trips of the longest path, at most 2 s.
        probe_wait: Auto<Dur> = "auto" in Auto::Set(Dur::ZERO)..=Auto::Set(Dur::from_secs(3600)), "draft section 5.3.3.8.3: 2 s at 30 ms";
        /// Random addition to the wait; `auto`: up to 33 unloaded round trips of the longest path, at most 1 s.
        probe_wait_spread: Auto<Dur> = "auto" in Auto::Set(Dur::ZERO)..=Auto::Set(Dur::from_secs(3600)), "draft section 5.3.3.8.3: 1 s at 30 ms";
        /// Largest number of rounds between two probes for bandwidth.
        probe_rounds: u32 = "63" in 1..=1_000_000, "draft section 5.3.3.8.3";
        /// The round trip of the first pacing rate if there is no handshake; `auto`: the longest unloaded round trip.
        init_rtt: Auto<Dur> = "auto" in Auto::Set(Dur(1))..=Auto::Set(Dur::from_secs(60)), "draft section 5.6.2: 1 ms";
        /// Time at the pacing rate that is one send quantum, between two segments and 64 KB; three quanta are the offload budget.
        quantum_time: Dur = "0us" in Dur::ZERO..=Dur::from_secs(1), "draft section 5.6.3: 1 ms; hosts have no offload";
        /// Whether marks count; queues must mark above a low threshold.
        ecn: bool = "false", "tcp_bbr.c: off unless a route has `ecn_low`";
        /// The part of the short-term bound that a round with marks on all bytes takes away.
        ecn_factor: Fraction = "0.333333333" in Fraction(0)..=Fraction(999_999_999), "tcp_bbr.c: 1/3";
        /// Largest tolerated part of marked bytes in a sample of a probe.
        ecn_thresh: Fraction = "0.5" in Fraction(1)..=Fraction::ONE, "tcp_bbr.c: 1/2";
        /// The weight of a round in the estimate of the marked fraction.
        ecn_gain: Fraction = "0.0625" in Fraction(1)..=Fraction::ONE, "tcp_bbr.c: 1/16";
        /// Largest shortest round trip of a flow whose marks count.
        ecn_max_rtt: Dur = "5ms" in Dur(1)..=Dur::from_secs(60), "tcp_bbr.c";
    }
}

impl Params {
    /// Returns the times in an environment.
    fn times(&self, env: &Env<'_>) -> BbrTimes {
        let scaled = |usual: Dur| {
            let ps = u128::from(usual.0) * u128::from(env.max_rtt.0) / u128::from(USUAL_RTT.0);
            Dur(u64::try_from(ps).unwrap_or(u64::MAX)).min(usual).max(Dur(1))
        };
        BbrTimes {
            min_rtt_filter: env.auto("min_rtt_filter", self.min_rtt_filter, scaled(Dur::from_secs(10))),
            probe_rtt_interval: env.auto("probe_rtt_interval", self.probe_rtt_interval, scaled(Dur::from_secs(5))),
            probe_rtt_duration: env.auto("probe_rtt_duration", self.probe_rtt_duration, scaled(Dur::from_ms(200))),
            probe_wait: env.auto("probe_wait", self.probe_wait, scaled(Dur::from_secs(2))),
            probe_wait_spread: env.auto("probe_wait_spread", self.probe_wait_spread, scaled(Dur::from_secs(1))),
        }
    }
}

/// Returns the contradictions between parameters.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    let mut problems = params.tcp.check();
    if !params.tcp.sack {
        let message = "BBR measures the delivery rate by selective acknowledgments, and has none".to_owned();
        problems.push(Problem { key: "sack", message, hint: "leave `sack = true`".to_owned() });
    }
    let BbrTimes { min_rtt_filter, probe_rtt_interval, .. } = params.times(env);
    if min_rtt_filter < probe_rtt_interval {
        // Section 5.3.4.2.
        let message = format!("`{min_rtt_filter}` is below `probe_rtt_interval`, which is `{probe_rtt_interval}`");
        let hint = "raise `min_rtt_filter` or lower `probe_rtt_interval`".to_owned();
        problems.push(Problem { key: "min_rtt_filter", message, hint });
    }
    problems
}

/// The machine of one host.
pub type Bbr = Tcp<BbrRules>;

impl Bbr {
    /// Creates a host without flows.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        Tcp::with(params.tcp.config(env), BbrRules::new(params, env))
    }
}

/// The rules of BBR.
#[derive(Clone, Copy, Debug)]
pub struct BbrRules {
    smss: u64,
    initial_cwnd: u64,
    init_rtt: Dur,
    startup_pacing_gain: Fraction,
    cwnd_gain: Fraction,
    loss_thresh: Fraction,
    beta: Fraction,
    headroom: Fraction,
    times: BbrTimes,
    probe_rounds: u64,
    quantum_time: Dur,
    /// The rules of ECN, if it is used.
    ecn: Option<BbrEcn>,
}

/// The times of the state machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BbrTimes {
    min_rtt_filter: Dur,
    probe_rtt_interval: Dur,
    probe_rtt_duration: Dur,
    probe_wait: Dur,
    probe_wait_spread: Dur,
}

/// The rules of ECN.
#[derive(Clone, Copy, Debug)]
struct BbrEcn {
    factor: Fraction,
    thresh: Fraction,
    gain: Fraction,
    max_rtt: Dur,
}

impl BbrRules {
    /// Creates the rules in an environment.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let config = params.tcp.config(env);
        let ecn =
            BbrEcn { factor: params.ecn_factor, thresh: params.ecn_thresh, gain: params.ecn_gain, max_rtt: params.ecn_max_rtt };
        BbrRules {
            smss: config.smss,
            initial_cwnd: config.init_window,
            init_rtt: env.auto("init_rtt", params.init_rtt, env.max_rtt.max(Dur(1))),
            startup_pacing_gain: params.startup_pacing_gain,
            cwnd_gain: params.cwnd_gain,
            loss_thresh: params.loss_thresh,
            beta: params.beta,
            headroom: params.headroom,
            times: params.times(env),
            probe_rounds: params.probe_rounds.into(),
            quantum_time: params.quantum_time,
            ecn: params.ecn.then_some(ecn),
        }
    }

    /// InitPacingRate (section 5.6.2).
    fn initial_rate(&self, srtt: Dur) -> Rate {
        let srtt = if srtt == Dur::ZERO { self.init_rtt } else { srtt };
        let bits = u128::from(self.initial_cwnd) * 8 * 1_000_000_000_000 / u128::from(srtt.0);
        Rate(u64::try_from(bits).unwrap_or(u64::MAX).max(1)).times(self.startup_pacing_gain)
    }

    /// UpdateControlParameters (section 5.6).
    fn set_controls(&self, state: &mut BbrState, sample: &RateSample) {
        // SetPacingRate (section 5.6.2).
        let rate = state.bw.times(state.pacing_gain).times(PACING_MARGIN.complement());
        if state.full_bw_reached || rate > state.pacing_rate {
            state.pacing_rate = Rate(rate.0.max(1));
        }
        // SetCwnd (section 5.6.4.6).
        let most = self.max_inflight(state);
        if state.full_bw_reached {
            state.cwnd = (state.cwnd + sample.newly_acked).min(most);
        } else if state.cwnd < most || sample.total < self.initial_cwnd {
            state.cwnd += sample.newly_acked;
        }
        state.cwnd = state.cwnd.max(self.min_pipe_cwnd());
        if state.is_probing_rtt() {
            state.cwnd = state.cwnd.min(self.probe_rtt_cwnd(state));
        }
        state.cwnd = state.cwnd.min(self.volume_cap(state));
    }
}

impl Congestion for BbrRules {
    type State = BbrState;

    #[inline]
    fn ecn(&self) -> Ecn {
        if self.ecn.is_some() { Ecn::Exact } else { Ecn::Off }
    }

    fn open(&self, _flow: &Flow) -> BbrState {
        BbrState::new(self)
    }

    /// Leaves the window to [`Congestion::on_delivery`].
    fn on_ack(&self, _state: &mut BbrState, _window: &mut Window, _ack: &Ack<'_>) {}

    fn before_loss(&self, state: &mut BbrState, cause: Cause, _now: Time) {
        if cause == Cause::Timeout {
            state.deliveries.lose_all();
        }
    }

    /// Saves the window (section 5.6.4.4). It stays in fast recovery; after a timeout the machine sets it
    /// to one segment.
    fn on_loss(&self, state: &mut BbrState, window: &Window, _loss: Loss) -> u64 {
        state.cwnd = window.cwnd;
        state.save_cwnd();
        window.cwnd.max(2 * self.smss)
    }

    #[inline]
    fn not_before(&self, state: &BbrState, srtt: Dur) -> Time {
        let Some((at, bytes)) = state.deliveries.last_sent() else { return Time::ZERO };
        let rate = if state.pacing_rate == Rate(0) { self.initial_rate(srtt) } else { state.pacing_rate };
        at.after(rate.gap(bytes))
    }

    #[inline(always)]
    fn deliveries(state: &mut BbrState) -> Option<&mut Deliveries> {
        Some(&mut state.deliveries)
    }

    /// UpdateOnACK (section 5.2.3).
    fn on_delivery(&self, state: &mut BbrState, window: &mut Window, sample: &RateSample, rng: &mut Rng) {
        state.cwnd = window.cwnd;
        if state.pacing_rate == Rate(0) {
            state.pacing_rate = self.initial_rate(sample.srtt);
            state.start(sample.now);
        }
        // Section 5.6.4.4: the end of recovery restores the window.
        if state.recovering && !sample.recovering {
            state.restore_cwnd();
        }
        state.recovering = sample.recovering;
        self.on_losses(state, sample, rng);
        self.update_model_and_state(state, sample, rng);
        self.set_controls(state, sample);
        window.cwnd = state.cwnd;
    }
}

/// Returns `gain` times `bytes`, rounded down.
fn part(bytes: u64, gain: Fraction) -> u64 {
    let product = u128::from(bytes) * u128::from(gain.ppb()) / u128::from(Fraction::ONE.ppb());
    u64::try_from(product).unwrap_or(u64::MAX)
}

/// The round trip for which the draft derives its times (section 5.3.3.8.3).
const USUAL_RTT: Dur = Dur::from_ms(30);
/// PacingMarginPercent (section 2.5).
const PACING_MARGIN: Fraction = Fraction(10_000_000);

#[cfg(test)]
mod tests;

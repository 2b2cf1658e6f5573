//! The state machine (draft section 5.3).

use super::model::BbrState;
use super::{BbrRules, part};
use crate::kit::tcp::RateSample;
use base::{Dur, Fraction, Rng};

/// BBR.state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BbrMode {
    Startup,
    Drain,
    ProbeBwDown,
    ProbeBwCruise,
    ProbeBwRefill,
    ProbeBwUp,
    ProbeRtt,
}

/// BBR.ack_phase: what ACKs say about the last probe (section 2.14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AckPhase {
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

impl BbrState {
    /// IsInAProbeBWState (section 5.3.3.9).
    fn is_in_probe_bw(&self) -> bool {
        !matches!(self.mode, BbrMode::Startup | BbrMode::Drain | BbrMode::ProbeRtt)
    }
    /// IsProbingBW (section 5.3.3.9).
    pub(super) fn is_probing_bw(&self) -> bool {
        matches!(self.mode, BbrMode::Startup | BbrMode::ProbeBwRefill | BbrMode::ProbeBwUp)
    }
    pub(super) fn is_probing_rtt(&self) -> bool {
        self.mode == BbrMode::ProbeRtt
    }
}

impl BbrRules {
    /// UpdateModelAndState (section 5.2.3).
    pub(super) fn update_model_and_state(&self, state: &mut BbrState, sample: &RateSample, rng: &mut Rng) {
        self.update_latest_delivery_signals(state, sample);
        self.update_congestion_signals(state, sample);
        self.update_ack_aggregation(state, sample);
        self.check_full_bw_reached(state, sample);
        // CheckStartupDone (section 5.3.1.1).
        self.check_startup_high_loss(state, sample);
        if state.mode == BbrMode::Startup && state.full_bw_reached {
            self.enter(state, BbrMode::Drain);
            state.drain_start_round = state.round_count;
        }
        self.check_drain_done(state, sample, rng);
        self.update_probe_bw_cycle_phase(state, sample, rng);
        self.update_min_rtt(state, sample);
        self.check_probe_rtt(state, sample, rng);
        self.advance_latest_delivery_signals(state, sample);
        // BoundBWForModel (section 5.5.10.3).
        state.bw = state.max_bw().min(state.bw_shortterm);
    }

    /// Enters a state with its gains (section 5.6.1).
    pub(super) fn enter(&self, state: &mut BbrState, mode: BbrMode) {
        state.mode = mode;
        (state.pacing_gain, state.cwnd_gain) = match mode {
            BbrMode::Startup => (self.startup_pacing_gain, self.cwnd_gain),
            BbrMode::Drain => (DRAIN_PACING_GAIN, self.cwnd_gain),
            BbrMode::ProbeBwDown => (DOWN_PACING_GAIN, self.cwnd_gain),
            BbrMode::ProbeBwCruise | BbrMode::ProbeBwRefill => (Fraction::ONE, self.cwnd_gain),
            BbrMode::ProbeBwUp => (UP_PACING_GAIN, Fraction(self.cwnd_gain.ppb() + UP_CWND_GAIN_MORE.ppb())),
            BbrMode::ProbeRtt => (Fraction::ONE, PROBE_RTT_CWND_GAIN),
        };
    }

    /// CheckDrainDone (section 5.3.2).
    fn check_drain_done(&self, state: &mut BbrState, sample: &RateSample, rng: &mut Rng) {
        let drained = sample.in_flight <= self.inflight(state, state.bw);
        if state.mode == BbrMode::Drain && (drained || state.round_count > state.drain_start_round + DRAIN_ROUNDS) {
            self.start_down(state, sample, rng);
        }
    }

    // ProbeBW (section 5.3.3.9).

    pub(super) fn start_down(&self, state: &mut BbrState, sample: &RateSample, rng: &mut Rng) {
        state.reset_congestion_signals();
        state.probe_up_acked_per_inc = u64::MAX;
        // PickProbeWait.
        state.rounds_since_probe_up = rng.below(2);
        let more = rng.below(self.times.probe_wait_spread.0.saturating_add(1));
        state.bw_probe_wait = Dur(self.times.probe_wait.0.saturating_add(more));
        state.cycle_stamp = sample.now;
        state.ack_phase = AckPhase::ProbeStopping;
        state.start_round(sample);
        self.enter(state, BbrMode::ProbeBwDown);
    }
    fn start_refill(&self, state: &mut BbrState, sample: &RateSample) {
        state.reset_short_term_model();
        (state.bw_probe_up_rounds, state.bw_probe_up_acked) = (0, 0);
        state.prev_probe_precautionary = false;
        state.ack_phase = AckPhase::Refilling;
        state.start_round(sample);
        self.enter(state, BbrMode::ProbeBwRefill);
    }
    fn start_up(&self, state: &mut BbrState, sample: &RateSample) {
        state.ack_phase = AckPhase::ProbeStarting;
        state.start_round(sample);
        state.reset_full_bw();
        state.full_bw = sample.rate;
        self.enter(state, BbrMode::ProbeBwUp);
        self.raise_inflight_longterm_slope(state);
    }

    /// UpdateProbeBWCyclePhase.
    fn update_probe_bw_cycle_phase(&self, state: &mut BbrState, sample: &RateSample, rng: &mut Rng) {
        if !state.full_bw_reached || self.adapt_long_term_model(state, sample, rng) {
            return;
        }
        let mode = state.mode;
        match mode {
            BbrMode::ProbeBwDown if self.is_time_to_probe_bw(state, sample) => self.start_refill(state, sample),
            BbrMode::ProbeBwDown if self.is_time_to_cruise(state, sample) => self.enter(state, BbrMode::ProbeBwCruise),
            BbrMode::ProbeBwCruise if self.is_time_to_probe_bw(state, sample) => self.start_refill(state, sample),
            BbrMode::ProbeBwRefill if state.round_start => {
                state.is_bw_probe_sample = true;
                self.start_up(state, sample);
            }
            BbrMode::ProbeBwUp if self.is_time_to_go_down(state, sample) => {
                state.prev_probe_too_high = false;
                self.start_down(state, sample, rng);
            }
            _ => {}
        }
    }
    /// IsTimeToProbeBW and IsRenoCoexistenceProbeTime (section 5.3.3.8.3).
    pub(super) fn is_time_to_probe_bw(&self, state: &BbrState, sample: &RateSample) -> bool {
        let reno_rounds = self.target_inflight(state) / self.smss;
        sample.now > state.cycle_stamp.after(state.bw_probe_wait)
            || state.rounds_since_probe_up >= reno_rounds.min(self.probe_rounds)
    }
    /// IsTimeToCruise.
    fn is_time_to_cruise(&self, state: &BbrState, sample: &RateSample) -> bool {
        sample.in_flight <= self.inflight_with_headroom(state) && sample.in_flight <= self.inflight(state, state.max_bw())
    }
    /// IsTimeToGoDown.
    fn is_time_to_go_down(&self, state: &mut BbrState, sample: &RateSample) -> bool {
        // Precautionary bandwidth probing (section 5.3.3.6).
        if state.prev_probe_too_high && sample.in_flight >= state.inflight_longterm {
            state.prev_probe_precautionary = true;
            return true;
        }
        if sample.cwnd_limited && state.cwnd >= state.inflight_longterm {
            state.reset_full_bw();
            state.full_bw = sample.rate;
            return false;
        }
        state.full_bw_now
    }
    /// RaiseInflightLongtermSlope.
    pub(super) fn raise_inflight_longterm_slope(&self, state: &mut BbrState) {
        let growth = 1 << state.bw_probe_up_rounds;
        state.bw_probe_up_rounds = (state.bw_probe_up_rounds + 1).min(30);
        state.probe_up_acked_per_inc = (state.cwnd / growth).max(self.smss);
    }
    /// ProbeInflightLongtermUpward.
    fn probe_inflight_longterm_upward(&self, state: &mut BbrState, sample: &RateSample) {
        if !sample.cwnd_limited || state.cwnd < state.inflight_longterm {
            return;
        }
        state.bw_probe_up_acked += sample.newly_acked;
        state.inflight_longterm += state.bw_probe_up_acked / state.probe_up_acked_per_inc * self.smss;
        state.bw_probe_up_acked %= state.probe_up_acked_per_inc;
        if state.round_start {
            self.raise_inflight_longterm_slope(state);
        }
    }
    /// AdaptLongTermModel. Returns whether it has changed the state.
    fn adapt_long_term_model(&self, state: &mut BbrState, sample: &RateSample, rng: &mut Rng) -> bool {
        if state.ack_phase == AckPhase::ProbeStarting && state.round_start {
            state.ack_phase = AckPhase::ProbeFeedback;
        }
        if state.ack_phase == AckPhase::ProbeStopping && state.round_start {
            state.is_bw_probe_sample = false;
            state.ack_phase = AckPhase::Init;
            if state.is_in_probe_bw() && !sample.app_limited {
                state.advance_max_bw_filter();
            }
            // Precautionary bandwidth probing: acceleration (section 5.3.3.6).
            if state.is_in_probe_bw() && state.prev_probe_precautionary && !state.prev_probe_too_high {
                self.start_refill(state, sample);
                return true;
            }
        }
        if self.are_marks_too_high(state, sample) {
            // bbr_adapt_upper_bounds of tcp_bbr.c.
            if state.is_bw_probe_sample {
                self.handle_inflight_too_high(state, sample.tx_in_flight, sample.app_limited, sample, rng);
            }
        } else if !self.is_loss_too_high(sample.lost, sample.tx_in_flight) && state.inflight_longterm != u64::MAX {
            state.inflight_longterm = state.inflight_longterm.max(sample.tx_in_flight);
            if state.mode == BbrMode::ProbeBwUp {
                self.probe_inflight_longterm_upward(state, sample);
            }
        }
        false
    }
    /// HandleInflightTooHigh (section 5.5.10.2).
    pub(super) fn handle_inflight_too_high(
        &self,
        state: &mut BbrState,
        tx_in_flight: u64,
        app_limited: bool,
        sample: &RateSample,
        rng: &mut Rng,
    ) {
        state.prev_probe_too_high = true;
        state.is_bw_probe_sample = false;
        if !app_limited {
            state.inflight_longterm = tx_in_flight.max(part(self.target_inflight(state), self.beta));
        }
        if state.mode == BbrMode::ProbeBwUp {
            self.start_down(state, sample, rng);
        }
    }

    // ProbeRTT (section 5.3.4.3).

    /// ProbeRTTCwnd (section 5.6.4.5).
    pub(super) fn probe_rtt_cwnd(&self, state: &BbrState) -> u64 {
        self.bdp(state, state.bw, PROBE_RTT_CWND_GAIN).max(self.min_pipe_cwnd())
    }
    /// CheckProbeRTT.
    fn check_probe_rtt(&self, state: &mut BbrState, sample: &RateSample, rng: &mut Rng) {
        if !state.is_probing_rtt() && state.probe_rtt_expired {
            state.save_cwnd();
            self.enter(state, BbrMode::ProbeRtt);
            state.probe_rtt_done_stamp = None;
            state.ack_phase = AckPhase::ProbeStopping;
            state.start_round(sample);
        }
        if state.is_probing_rtt() {
            self.handle_probe_rtt(state, sample, rng);
        }
    }
    /// HandleProbeRTT and CheckProbeRTTDone.
    fn handle_probe_rtt(&self, state: &mut BbrState, sample: &RateSample, rng: &mut Rng) {
        state.deliveries.mark_app_limited();
        let Some(done) = state.probe_rtt_done_stamp else {
            if sample.in_flight <= self.probe_rtt_cwnd(state) {
                state.probe_rtt_done_stamp = Some(sample.now.after(self.times.probe_rtt_duration));
                state.probe_rtt_round_done = false;
                state.start_round(sample);
            }
            return;
        };
        state.probe_rtt_round_done |= state.round_start;
        if state.probe_rtt_round_done && sample.now > done {
            state.probe_rtt_min_stamp = sample.now;
            state.restore_cwnd();
            // ExitProbeRTT (section 5.3.4.4).
            state.reset_short_term_model();
            if state.full_bw_reached {
                self.start_down(state, sample, rng);
                self.enter(state, BbrMode::ProbeBwCruise);
            } else {
                self.enter(state, BbrMode::Startup);
            }
        }
    }
}

/// DrainPacingGain (section 2.5).
const DRAIN_PACING_GAIN: Fraction = Fraction(500_000_000);
/// Largest number of rounds in Drain (section 5.3.2).
const DRAIN_ROUNDS: u64 = 3;
/// Pacing gains of ProbeBW_DOWN and ProbeBW_UP (section 5.6.1).
const DOWN_PACING_GAIN: Fraction = Fraction(900_000_000);
const UP_PACING_GAIN: Fraction = Fraction(1_250_000_000);
/// The window gain of ProbeBW_UP is larger by this (section 5.3.3.5: 2.25).
const UP_CWND_GAIN_MORE: Fraction = Fraction(250_000_000);
/// ProbeRTTCwndGain (section 2.16.2).
const PROBE_RTT_CWND_GAIN: Fraction = Fraction(500_000_000);

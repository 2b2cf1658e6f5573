//! The model of the path (draft section 5.5): rates, volumes, round trips, and the signs of congestion.

use super::phases::{AckPhase, BbrMode};
use super::{BbrEcn, BbrRules, part};
use crate::kit::tcp::{Deliveries, LostSegment, RateSample};
use base::{Dur, Fraction, Rate, Rng, Time};

/// The state of one flow.
#[derive(Clone, Debug)]
pub struct BbrState {
    pub(super) deliveries: Deliveries,
    pub(super) mode: BbrMode,
    pub(super) pacing_gain: Fraction,
    pub(super) cwnd_gain: Fraction,
    /// Zero before the first ACK.
    pub(super) pacing_rate: Rate,
    /// C.cwnd.
    pub(super) cwnd: u64,
    prior_cwnd: u64,
    pub(super) recovering: bool,

    // Rounds (section 5.5.1).
    pub(super) round_count: u64,
    pub(super) round_start: bool,
    pub(super) next_round_delivered: u64,

    // Rates.
    /// The filter of `max_bw`: the previous cycle and the present one.
    pub(super) max_bw_filter: [Rate; 2],
    pub(super) bw: Rate,
    pub(super) bw_latest: Rate,
    pub(super) bw_shortterm: Rate,

    // Volumes.
    pub(super) inflight_latest: u64,
    pub(super) inflight_shortterm: u64,
    pub(super) inflight_longterm: u64,
    extra_acked_interval_start: Time,
    extra_acked_delivered: u64,
    /// The filter of `extra_acked`: the largest value of each of the last rounds.
    extra_acked_filter: [u64; EXTRA_ACKED_ROUNDS],

    // Round trips.
    pub(super) min_rtt: Dur,
    pub(super) min_rtt_stamp: Time,
    pub(super) probe_rtt_min_delay: Dur,
    pub(super) probe_rtt_min_stamp: Time,
    pub(super) probe_rtt_expired: bool,

    // Signs of congestion.
    loss_round_delivered: u64,
    loss_round_start: bool,
    loss_in_round: bool,
    /// Discontiguous ranges lost in this round, and the last segment found lost.
    loss_ranges: u32,
    last_lost: Option<u64>,
    ecn_in_round: bool,
    /// The estimate of the marked fraction, and the counts at its last update.
    pub(super) ecn_alpha: Fraction,
    ecn_counts: (u64, u64),
    ecn_eligible: bool,
    startup_ecn_rounds: u32,

    // The estimate that the pipe is full (section 5.3.1.2).
    pub(super) full_bw: Rate,
    pub(super) full_bw_count: u32,
    pub(super) full_bw_now: bool,
    pub(super) full_bw_reached: bool,
    pub(super) drain_start_round: u64,

    // ProbeBW.
    pub(super) ack_phase: AckPhase,
    pub(super) is_bw_probe_sample: bool,
    pub(super) bw_probe_up_acked: u64,
    pub(super) probe_up_acked_per_inc: u64,
    pub(super) bw_probe_up_rounds: u32,
    pub(super) rounds_since_probe_up: u64,
    pub(super) bw_probe_wait: Dur,
    pub(super) cycle_stamp: Time,
    pub(super) prev_probe_too_high: bool,
    pub(super) prev_probe_precautionary: bool,

    // ProbeRTT.
    pub(super) probe_rtt_done_stamp: Option<Time>,
    pub(super) probe_rtt_round_done: bool,
}

impl BbrState {
    /// OnInit (section 5.2.1).
    pub(super) fn new(rules: &BbrRules) -> BbrState {
        let mut state = BbrState {
            deliveries: Deliveries::new(rules.smss),
            mode: BbrMode::Startup,
            pacing_gain: Fraction::ONE,
            cwnd_gain: Fraction::ONE,
            pacing_rate: Rate(0),
            cwnd: rules.initial_cwnd,
            prior_cwnd: 0,
            recovering: false,
            round_count: 0,
            round_start: false,
            next_round_delivered: 0,
            max_bw_filter: [Rate(0); 2],
            bw: Rate(0),
            bw_latest: Rate(0),
            bw_shortterm: Rate(u64::MAX),
            inflight_latest: 0,
            inflight_shortterm: u64::MAX,
            inflight_longterm: u64::MAX,
            extra_acked_interval_start: Time::ZERO,
            extra_acked_delivered: 0,
            extra_acked_filter: [0; EXTRA_ACKED_ROUNDS],
            min_rtt: Dur::MAX,
            min_rtt_stamp: Time::ZERO,
            probe_rtt_min_delay: Dur::MAX,
            probe_rtt_min_stamp: Time::ZERO,
            probe_rtt_expired: false,
            loss_round_delivered: 0,
            loss_round_start: false,
            loss_in_round: false,
            loss_ranges: 0,
            last_lost: None,
            ecn_in_round: false,
            ecn_alpha: Fraction::ONE,
            ecn_counts: (0, 0),
            ecn_eligible: false,
            startup_ecn_rounds: 0,
            full_bw: Rate(0),
            full_bw_count: 0,
            full_bw_now: false,
            full_bw_reached: false,
            drain_start_round: 0,
            ack_phase: AckPhase::Init,
            is_bw_probe_sample: false,
            bw_probe_up_acked: 0,
            probe_up_acked_per_inc: u64::MAX,
            bw_probe_up_rounds: 0,
            rounds_since_probe_up: 0,
            bw_probe_wait: Dur::ZERO,
            cycle_stamp: Time::ZERO,
            prev_probe_too_high: false,
            prev_probe_precautionary: false,
            probe_rtt_done_stamp: None,
            probe_rtt_round_done: false,
        };
        rules.enter(&mut state, BbrMode::Startup);
        state
    }
    /// Sets all times to the time of the first ACK.
    pub(super) fn start(&mut self, now: Time) {
        (self.min_rtt_stamp, self.probe_rtt_min_stamp) = (now, now);
        (self.extra_acked_interval_start, self.cycle_stamp) = (now, now);
    }
    /// SaveCwnd (section 5.6.4.4).
    pub(super) fn save_cwnd(&mut self) {
        let reduced = self.recovering || self.is_probing_rtt();
        self.prior_cwnd = if reduced { self.prior_cwnd.max(self.cwnd) } else { self.cwnd };
    }
    /// RestoreCwnd (section 5.6.4.4).
    pub(super) fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }
    /// BBR.max_bw.
    pub(super) fn max_bw(&self) -> Rate {
        let [previous, present] = self.max_bw_filter;
        previous.max(present)
    }
    /// BBR.extra_acked: the largest value of the last 10 rounds; in Startup, of this round.
    pub(super) fn extra_acked(&self) -> u64 {
        let present = self.extra_acked_filter[self.round_count as usize % EXTRA_ACKED_ROUNDS];
        if self.full_bw_reached { self.extra_acked_filter.into_iter().max().unwrap_or(present) } else { present }
    }
    /// StartRound (section 5.5.1).
    pub(super) fn start_round(&mut self, sample: &RateSample) {
        self.next_round_delivered = sample.total;
    }
    /// ResetFullBW (section 5.3.1.2).
    pub(super) fn reset_full_bw(&mut self) {
        (self.full_bw, self.full_bw_count, self.full_bw_now) = (Rate(0), 0, false);
    }
    /// ResetCongestionSignals (section 5.5.10.3).
    pub(super) fn reset_congestion_signals(&mut self) {
        (self.loss_in_round, self.ecn_in_round) = (false, false);
        (self.bw_latest, self.inflight_latest) = (Rate(0), 0);
    }
    /// ResetShortTermModel (section 5.5.10.3).
    pub(super) fn reset_short_term_model(&mut self) {
        (self.bw_shortterm, self.inflight_shortterm) = (Rate(u64::MAX), u64::MAX);
    }
    /// AdvanceMaxBwFilter (section 5.5.6).
    pub(super) fn advance_max_bw_filter(&mut self) {
        let [_, present] = self.max_bw_filter;
        if present != Rate(0) {
            self.max_bw_filter = [present, Rate(0)];
        }
    }
}

impl BbrRules {
    pub(super) fn min_pipe_cwnd(&self) -> u64 {
        4 * self.smss
    }
    /// BDPMultiple (section 5.6.4.2).
    pub(super) fn bdp(&self, state: &BbrState, bw: Rate, gain: Fraction) -> u64 {
        if state.min_rtt == Dur::MAX { self.initial_cwnd } else { part(bw.bytes_in(state.min_rtt), gain) }
    }
    /// QuantizationBudget (section 5.6.4.2) with the offload budget of TCP (section 5.5.8.1).
    fn with_budget(&self, state: &BbrState, inflight: u64) -> u64 {
        let quantum = state.pacing_rate.bytes_in(self.quantum_time).min(64 * 1024).max(2 * self.smss);
        let up = if state.mode == BbrMode::ProbeBwUp { 2 * self.smss } else { 0 };
        inflight.max(3 * quantum).max(self.min_pipe_cwnd()).saturating_add(up)
    }
    /// Inflight (section 5.6.4.2): one bandwidth-delay product at `bw`.
    pub(super) fn inflight(&self, state: &BbrState, bw: Rate) -> u64 {
        self.with_budget(state, self.bdp(state, bw, Fraction::ONE))
    }
    /// UpdateMaxInflight (section 5.6.4.2).
    pub(super) fn max_inflight(&self, state: &BbrState) -> u64 {
        let inflight = self.bdp(state, state.bw, state.cwnd_gain);
        self.with_budget(state, inflight.saturating_add(state.extra_acked()))
    }
    /// TargetInflight (section 5.3.3.8.3).
    pub(super) fn target_inflight(&self, state: &BbrState) -> u64 {
        self.bdp(state, state.bw, Fraction::ONE).min(state.cwnd)
    }
    /// InflightWithHeadroom (section 5.3.3.9).
    pub(super) fn inflight_with_headroom(&self, state: &BbrState) -> u64 {
        let longterm = state.inflight_longterm;
        if longterm == u64::MAX {
            return u64::MAX;
        }
        let headroom = part(longterm, self.headroom).max(self.smss);
        longterm.saturating_sub(headroom).max(self.min_pipe_cwnd())
    }
    /// BoundCwndForModel (section 5.6.4.7).
    pub(super) fn volume_cap(&self, state: &BbrState) -> u64 {
        let cap = match state.mode {
            BbrMode::ProbeBwDown | BbrMode::ProbeBwRefill | BbrMode::ProbeBwUp => state.inflight_longterm,
            BbrMode::ProbeRtt | BbrMode::ProbeBwCruise => self.inflight_with_headroom(state),
            BbrMode::Startup | BbrMode::Drain => u64::MAX,
        };
        cap.min(state.inflight_shortterm).max(self.min_pipe_cwnd())
    }

    /// UpdateLatestDeliverySignals (section 5.5.10.3).
    pub(super) fn update_latest_delivery_signals(&self, state: &mut BbrState, sample: &RateSample) {
        state.bw_latest = state.bw_latest.max(sample.rate);
        state.inflight_latest = state.inflight_latest.max(sample.delivered);
        state.loss_round_start = sample.prior_delivered >= state.loss_round_delivered;
        if state.loss_round_start {
            state.loss_round_delivered = sample.total;
        }
    }
    /// AdvanceLatestDeliverySignals (section 5.5.10.3).
    pub(super) fn advance_latest_delivery_signals(&self, state: &mut BbrState, sample: &RateSample) {
        if state.loss_round_start {
            (state.bw_latest, state.inflight_latest) = (sample.rate, sample.delivered);
        }
    }

    /// UpdateCongestionSignals (section 5.5.10.3).
    pub(super) fn update_congestion_signals(&self, state: &mut BbrState, sample: &RateSample) {
        self.update_round(state, sample);
        if let Some(ecn) = &self.ecn {
            self.update_ecn(state, sample, ecn);
        }
        // UpdateMaxBw (section 5.5.5).
        if sample.rate.0 > 0 && (sample.rate >= state.max_bw() || !sample.app_limited) {
            state.max_bw_filter[1] = state.max_bw_filter[1].max(sample.rate);
        }
        if state.loss_round_start {
            self.adapt_lower_bounds(state);
            (state.loss_in_round, state.ecn_in_round) = (false, false);
        }
    }
    /// UpdateRound (section 5.5.1).
    fn update_round(&self, state: &mut BbrState, sample: &RateSample) {
        state.round_start = sample.prior_delivered >= state.next_round_delivered;
        if state.round_start {
            state.start_round(sample);
            state.round_count += 1;
            state.rounds_since_probe_up += 1;
            state.extra_acked_filter[state.round_count as usize % EXTRA_ACKED_ROUNDS] = 0;
        }
    }
    /// AdaptLowerBoundsFromCongestion (section 5.5.10.3); for marks, `bbr_adapt_lower_bounds` of tcp_bbr.c.
    fn adapt_lower_bounds(&self, state: &mut BbrState) {
        if state.is_probing_bw() {
            return;
        }
        let mut by_marks = u64::MAX;
        if let (true, Some(ecn)) = (state.ecn_in_round, &self.ecn) {
            if state.inflight_shortterm == u64::MAX {
                state.inflight_shortterm = state.cwnd;
            }
            let cut = Fraction(part(state.ecn_alpha.ppb(), ecn.factor));
            by_marks = part(state.inflight_shortterm, cut.complement());
        }
        if state.loss_in_round {
            if state.bw_shortterm == Rate(u64::MAX) {
                state.bw_shortterm = state.max_bw();
            }
            if state.inflight_shortterm == u64::MAX {
                state.inflight_shortterm = state.cwnd;
            }
            state.bw_shortterm = state.bw_latest.max(state.bw_shortterm.times(self.beta));
            state.inflight_shortterm = state.inflight_latest.max(part(state.inflight_shortterm, self.beta));
        }
        state.inflight_shortterm = state.inflight_shortterm.min(by_marks);
    }

    /// `bbr_update_ecn_alpha` of tcp_bbr.c.
    fn update_ecn(&self, state: &mut BbrState, sample: &RateSample, ecn: &BbrEcn) {
        state.ecn_eligible |= state.min_rtt <= ecn.max_rtt;
        let (total, marked) = state.ecn_counts;
        if state.ecn_eligible && state.round_start && sample.total > total {
            let (total, marked) = (u128::from(sample.total - total), u128::from(sample.total_marked - marked));
            let ratio = Fraction((marked * u128::from(Fraction::ONE.ppb()) / total) as u64);
            let old = part(state.ecn_alpha.ppb(), ecn.gain.complement());
            state.ecn_alpha = Fraction(old + part(ratio.ppb(), ecn.gain));
            state.ecn_counts = (sample.total, sample.total_marked);
            state.startup_ecn_rounds = if ratio >= ecn.thresh { state.startup_ecn_rounds + 1 } else { 0 };
            if !state.full_bw_reached && state.startup_ecn_rounds >= FULL_ECN_ROUNDS {
                self.end_startup(state);
            }
        }
        state.ecn_in_round |= state.ecn_eligible && sample.ece;
    }
    /// Returns whether the marks of a sample say that too much was in flight.
    pub(super) fn are_marks_too_high(&self, state: &BbrState, sample: &RateSample) -> bool {
        self.ecn.is_some_and(|ecn| state.ecn_eligible && sample.marked > part(sample.delivered, ecn.thresh))
    }
    /// IsInflightTooHigh (section 5.5.10.2).
    pub(super) fn is_loss_too_high(&self, lost: u64, tx_in_flight: u64) -> bool {
        lost > part(tx_in_flight, self.loss_thresh)
    }

    /// UpdateACKAggregation (section 5.5.9).
    pub(super) fn update_ack_aggregation(&self, state: &mut BbrState, sample: &RateSample) {
        let mut expected = state.bw.bytes_in(sample.now.since(state.extra_acked_interval_start));
        if state.extra_acked_delivered <= expected {
            (state.extra_acked_delivered, state.extra_acked_interval_start) = (0, sample.now);
            expected = 0;
        }
        state.extra_acked_delivered += sample.newly_acked;
        let extra = (state.extra_acked_delivered - expected).min(state.cwnd);
        let slot = &mut state.extra_acked_filter[state.round_count as usize % EXTRA_ACKED_ROUNDS];
        *slot = extra.max(*slot);
    }

    /// CheckFullBWReached (section 5.3.1.2).
    pub(super) fn check_full_bw_reached(&self, state: &mut BbrState, sample: &RateSample) {
        if state.full_bw_now || !state.round_start || sample.app_limited {
            return;
        }
        if sample.rate >= state.full_bw.times(FULL_BW_GROWTH) {
            state.reset_full_bw();
            state.full_bw = sample.rate;
            return;
        }
        state.full_bw_count += 1;
        state.full_bw_now = state.full_bw_count >= FULL_BW_ROUNDS;
        state.full_bw_reached |= state.full_bw_now;
    }
    /// CheckStartupHighLoss (section 5.3.1.3).
    pub(super) fn check_startup_high_loss(&self, state: &mut BbrState, sample: &RateSample) {
        if !state.loss_round_start {
            return;
        }
        let high = sample.recovering
            && state.loss_ranges >= STARTUP_FULL_LOSS_COUNT
            && self.is_loss_too_high(sample.lost, sample.tx_in_flight);
        if high && !state.full_bw_reached {
            self.end_startup(state);
        }
        state.loss_ranges = 0;
    }
    /// Ends Startup because of congestion: `inflight_longterm` is what the path has carried.
    fn end_startup(&self, state: &mut BbrState) {
        state.full_bw_reached = true;
        state.inflight_longterm = self.bdp(state, state.bw, Fraction::ONE).max(state.inflight_latest);
    }

    /// UpdateMinRTT (section 5.3.4.3).
    pub(super) fn update_min_rtt(&self, state: &mut BbrState, sample: &RateSample) {
        let now = sample.now;
        state.probe_rtt_expired = now > state.probe_rtt_min_stamp.after(self.times.probe_rtt_interval);
        if let Some(rtt) = sample.rtt
            && (rtt < state.probe_rtt_min_delay || state.probe_rtt_expired)
        {
            (state.probe_rtt_min_delay, state.probe_rtt_min_stamp) = (rtt, now);
        }
        let expired = now > state.min_rtt_stamp.after(self.times.min_rtt_filter);
        if state.probe_rtt_min_delay < state.min_rtt || expired {
            (state.min_rtt, state.min_rtt_stamp) = (state.probe_rtt_min_delay, state.probe_rtt_min_stamp);
        }
    }

    /// HandleLostPacket (section 5.5.10.2) for all segments found lost.
    pub(super) fn on_losses(&self, state: &mut BbrState, sample: &RateSample, rng: &mut Rng) {
        let mut place = 0;
        while let Some(lost) = state.deliveries.loss(place) {
            place += 1;
            // NoteLoss.
            if !state.loss_in_round {
                state.loss_round_delivered = sample.total;
            }
            state.loss_in_round = true;
            state.loss_ranges += u32::from(state.last_lost.is_none_or(|last| last + 1 != lost.number));
            state.last_lost = Some(lost.number);
            if state.is_bw_probe_sample && self.is_loss_too_high(lost.lost, lost.tx_in_flight) {
                self.handle_inflight_too_high(state, self.inflight_at_loss(lost), lost.app_limited, sample, rng);
            }
        }
        state.deliveries.clear_losses();
    }
    /// InflightAtLoss (section 5.5.10.2): the bytes in flight at which the loss exceeded the threshold.
    pub(super) fn inflight_at_loss(&self, lost: LostSegment) -> u64 {
        let inflight_prev = lost.tx_in_flight.saturating_sub(lost.size);
        let lost_prev = lost.lost - lost.size;
        let more = u128::from(part(inflight_prev, self.loss_thresh).saturating_sub(lost_prev));
        let prefix = more * u128::from(Fraction::ONE.ppb()) / u128::from(self.loss_thresh.complement().ppb());
        inflight_prev + prefix.min(lost.size.into()) as u64
    }
}

/// ExtraAckedFilterLen (section 2.12), in rounds.
const EXTRA_ACKED_ROUNDS: usize = 10;
/// Growth of the delivery rate that shows that the pipe is not full (section 5.3.1.2).
const FULL_BW_GROWTH: Fraction = Fraction(1_250_000_000);
/// Rounds without growth after which the pipe is full (section 5.3.1.2).
const FULL_BW_ROUNDS: u32 = 3;
/// BBRStartupFullLossCnt (section 5.3.1.3).
const STARTUP_FULL_LOSS_COUNT: u32 = 6;
/// `bbr_full_ecn_cnt` of tcp_bbr.c.
const FULL_ECN_ROUNDS: u32 = 2;

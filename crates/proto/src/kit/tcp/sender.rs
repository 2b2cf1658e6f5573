//! The sending half of one flow, or of one subflow: sequence numbers, windows, and recovery by
//! partial ACKs (RFC 6582) or by the bytes in flight (RFC 6675).

use super::answer::{Answer, Blocks, Echo};
use super::congestion::{Ack, Cause, Congestion, Ecn, Loss, Window};
use super::options::{Config, FlightSize};
use super::sack::{DUP_THRESHOLD, Next, Sack};
use super::usage::{Flight, Usage};
use crate::flow::Flow;
use crate::kit::rtt::Rtt;
use crate::packet::Packet;
use base::{Dur, Time};
use plugin::abi::NEVER;

/// One sequence of bytes at its sender: a flow, or one of its subflows. All positions are byte
/// offsets in it; only `recover` is a sequence number.
pub(crate) struct Sender<S> {
    /// End of the bytes to send: of the flow, or of the bytes assigned to a subflow so far.
    pub(crate) end: u64,
    pub(crate) snd_una: u64,
    pub(crate) snd_nxt: u64,
    /// No byte from here on was ever sent.
    pub(crate) snd_max: u64,
    pub(crate) window: Window,
    usage: Usage,
    /// Largest number of bytes in flight: the limit that a receiver would announce, or less if the
    /// controller sets one.
    most: u64,
    pub(crate) phase: Phase,
    /// RFC 6582 section 3.2 step 1; zero is the initial sequence number less one, so that the first recovery is possible.
    pub(crate) recover: u64,
    pub(crate) dupacks: u32,
    /// `snd_nxt` before limited transmit sent anything.
    first_dup_nxt: u64,
    /// The segment at `snd_una` is to be retransmitted.
    resend: bool,
    /// `snd_una` at the last timeout: the segment that the timer retransmitted.
    timed_out: Option<u64>,
    /// `snd_nxt` at the last cut of the window: no mark cuts the window again before an ACK goes
    /// beyond.
    cut_at: u64,
    /// Whether a mark caused the last cut.
    cut_by_mark: bool,
    /// The next new segment reports the cut to the receiver (CWR).
    report_cut: bool,
    /// Present with selective acknowledgments.
    pub(super) sack: Option<Box<Sack>>,
    pub(crate) control: S,
    pub(crate) rtt: Rtt,
    /// The retransmission timer is running.
    pub(crate) timer: bool,
    /// The flow is in the queue of flows that may send.
    pub(crate) ready: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Opening { syn_lost: bool },
    Open,
    Recovery { partial: bool },
}

/// The effect of an ACK on the retransmission timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Restart {
    Keep,
    Restart,
}

/// The effect of an ACK.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    /// It acknowledges new data.
    pub(crate) new_data: bool,
    pub(crate) timer: Restart,
    /// Recovery begins.
    pub(crate) fast_retransmit: bool,
}

/// A range of payload to send.
pub(crate) struct Segment {
    pub(crate) offset: u64,
    pub(crate) len: u16,
    why: Why,
}

enum Why {
    /// The next bytes in order, for the first time or after a timeout.
    Next,
    /// The segment at `snd_una`, which counts as lost.
    First,
    /// A hole.
    Hole,
    /// A rescue retransmission.
    Rescue,
}

/// Returns the sequence number of the byte at `offset`: the SYN has number 1.
pub(crate) const fn seq(offset: u64) -> u64 {
    offset + 2
}

impl<S> Sender<S> {
    pub(crate) fn new<C: Congestion<State = S>>(flow: &Flow, config: &Config, controller: &C) -> Self {
        let control = controller.open(flow);
        let phase = if config.handshake { Phase::Opening { syn_lost: false } } else { Phase::Open };
        Sender {
            end: flow.size_bytes,
            snd_una: 0,
            snd_nxt: 0,
            snd_max: 0,
            window: Window { cwnd: config.init_window.min(config.max_window), ssthresh: u64::MAX },
            usage: Usage::default(),
            most: controller.most(&control).min(config.max_window),
            phase,
            recover: 0,
            dupacks: 0,
            first_dup_nxt: 0,
            resend: false,
            timed_out: None,
            cut_at: 0,
            cut_by_mark: false,
            report_cut: false,
            sack: config.sack.then(Box::default),
            control,
            rtt: Rtt::new(&config.rtt),
            timer: false,
            ready: false,
        }
    }

    /// Continues the connection of a flow to the same host that ended at `ended`.
    pub(crate) fn inherit<C: Congestion<State = S>>(
        &mut self,
        (before, ended): &(Sender<S>, Time),
        now: Time,
        config: &Config,
        controller: &C,
    ) {
        let cwnd = self.window.cwnd;
        (self.window, self.rtt, self.phase) = (before.window(), before.rtt, Phase::Open);
        if now.since(*ended) > before.rtt.rto() {
            // RFC 5681 section 4.1: a connection that was idle for longer than the timeout.
            self.window.cwnd = cwnd.min(self.window.cwnd);
        } else {
            controller.inherit(&mut self.control, &before.control);
        }
        self.most = controller.most(&self.control).min(config.max_window);
    }

    /// Continues after another protocol has sent bytes.
    pub(crate) fn resume(&mut self, acked: u64, sent: u64) {
        (self.snd_una, self.snd_nxt, self.snd_max) = (acked, acked, sent);
        if sent > acked {
            // RFC 6582 section 3.2 step 4, as after a timeout.
            self.recover = seq(sent) - 1;
        }
    }

    pub(crate) fn is_opening(&self) -> bool {
        matches!(self.phase, Phase::Opening { .. })
    }
    #[inline]
    pub(crate) fn is_recovering(&self) -> bool {
        matches!(self.phase, Phase::Recovery { .. })
    }
    pub(crate) fn is_done(&self) -> bool {
        self.snd_una == self.end
    }
    /// Returns FlightSize. Bytes above `snd_nxt` count as lost after a timeout.
    pub(crate) fn flight(&self) -> u64 {
        self.snd_nxt - self.snd_una
    }
    /// Returns FlightSize according to the option `flight_size`: by default without bytes that have
    /// left the network during a recovery. In recovery each duplicate ACK allows a new segment for
    /// one that arrived, but `snd_una` does not advance. The bytes in flight are then at most
    /// ssthresh, and with selective acknowledgments at most the pipe.
    fn in_flight(&self, config: &Config) -> u64 {
        let pipe = |sack: &Sack| sack.pipe(self.snd_una, self.snd_nxt, config.smss);
        match self.phase {
            Phase::Recovery { .. } if config.flight_size == FlightSize::InNetwork => {
                self.sack.as_deref().map_or(self.flight(), pipe).min(self.window.ssthresh)
            }
            _ => self.flight(),
        }
    }
    /// Returns the window without the inflation by duplicate ACKs in fast recovery.
    pub(crate) fn window(&self) -> Window {
        let Window { cwnd, ssthresh } = self.window;
        let inflated = self.sack.is_none() && self.is_recovering();
        Window { cwnd: if inflated { cwnd.min(ssthresh) } else { cwnd }, ssthresh }
    }

    /// Returns the next segment to send, if the window allows one.
    #[inline]
    pub(crate) fn next_segment(&self, config: &Config) -> Option<Segment> {
        if self.is_opening() {
            return None;
        }
        if self.resend {
            let len = config.smss.min(self.end - self.snd_una) as u16;
            return Some(Segment { offset: self.snd_una, len, why: Why::First });
        }
        if let Some(sack) = &self.sack {
            return self.next_with_sack(sack, config);
        }
        // RFC 3042: new data, up to two segments beyond cwnd.
        let beyond = config.limited_transmit && self.phase == Phase::Open && self.snd_nxt == self.snd_max;
        let extra = if beyond { u64::from(self.dupacks.min(2)) * config.smss } else { 0 };
        self.next_in_order(extra, config)
    }

    /// Returns the next segment in order, if it fits into the window plus `extra` bytes.
    #[inline]
    fn next_in_order(&self, extra: u64, config: &Config) -> Option<Segment> {
        let len = config.smss.min(self.end - self.snd_nxt);
        let fits = self.flight() + len <= (self.window.cwnd + extra).min(self.most);
        (len > 0 && fits).then_some(Segment { offset: self.snd_nxt, len: len as u16, why: Why::Next })
    }

    #[inline(never)]
    fn next_with_sack(&self, sack: &Sack, config: &Config) -> Option<Segment> {
        if self.phase != Phase::Open {
            self.next_in_recovery(sack, config)
        } else if seq(self.snd_una) <= self.recover {
            self.next_after_timeout(sack, config)
        } else {
            // RFC 6675 section 5 step 3.
            self.next_in_order(if config.limited_transmit { sack.bytes_below(self.snd_nxt) } else { 0 }, config)
        }
    }

    /// RFC 6675 section 5 step C.
    fn next_in_recovery(&self, sack: &Sack, config: &Config) -> Option<Segment> {
        let len = config.smss.min(self.end - self.snd_nxt);
        let new = len > 0 && self.flight() + len <= self.most;
        let (range, why) = match sack.next(self.snd_una, self.snd_nxt, config.smss, new)? {
            Next::New => (self.snd_nxt..self.snd_nxt + len, Why::Next),
            Next::Hole(range) => (range, Why::Hole),
            Next::Rescue(range) => (range, Why::Rescue),
        };
        let len = range.end - range.start;
        let fits = sack.pipe(self.snd_una, self.snd_nxt, config.smss) + len <= self.window.cwnd;
        fits.then_some(Segment { offset: range.start, len: len as u16, why })
    }

    /// Returns the next bytes that the receiver reports missing, in order (RFC 6675 section 5.1).
    fn next_after_timeout(&self, sack: &Sack, config: &Config) -> Option<Segment> {
        let hole = sack.hole(self.snd_nxt, self.snd_max).unwrap_or(self.snd_max.max(self.snd_nxt)..self.end);
        let len = config.smss.min(hole.end - hole.start);
        let fits = self.flight() - sack.bytes_below(self.snd_nxt) + len <= self.window.cwnd.min(self.most);
        (len > 0 && fits).then_some(Segment { offset: hole.start, len: len as u16, why: Why::Next })
    }

    /// Records that `segment` was handed to the NIC. Returns its flags.
    #[inline]
    pub(crate) fn on_sent(&mut self, segment: &Segment, ecn: Ecn) -> u16 {
        let resent = segment.offset < self.snd_max;
        let end = segment.offset + u64::from(segment.len);
        match segment.why {
            Why::Next => self.snd_nxt = end,
            Why::First => self.resend = false,
            Why::Hole | Why::Rescue => self.on_filled(segment, end),
        }
        self.snd_max = self.snd_max.max(end);
        let mut flags = ecn.flags(true, resent);
        // RFC 3168 section 6.1.2: on the first new segment after the cut.
        if ecn != Ecn::Off && self.report_cut && !resent {
            self.report_cut = false;
            flags |= Packet::CWR;
        }
        flags
    }

    #[cold]
    fn on_filled(&mut self, segment: &Segment, end: u64) {
        let sack = self.sack.as_mut().expect("only selective acknowledgments reveal holes");
        match segment.why {
            Why::Rescue => sack.on_rescued(self.snd_max),
            _ => sack.on_resent(end),
        }
    }

    /// Handles a SYNACK. Returns whether it opens the connection.
    pub(crate) fn on_synack(&mut self, echo: Echo, now: Time, config: &Config) -> bool {
        let Phase::Opening { syn_lost } = self.phase else { return false };
        self.phase = Phase::Open;
        self.sample(echo, now, config);
        if syn_lost {
            // RFC 5681 section 3.1.
            self.window.cwnd = config.smss;
            self.window.ssthresh = config.lost_syn_ssthresh;
            // RFC 6298 (5.7).
            if let Some(rto) = config.lost_syn_rto.filter(|_| !self.rtt.is_sampled()) {
                self.rtt.restart(rto);
            }
        }
        true
    }

    pub(crate) fn on_syn_timeout(&mut self, config: &Config) {
        self.phase = Phase::Opening { syn_lost: true };
        self.rtt.on_timeout(&config.rtt);
    }

    /// Handles the expiry of the retransmission timer.
    pub(crate) fn on_timeout<C: Congestion<State = S>>(&mut self, now: Time, config: &Config, control: &C) {
        control.before_loss(&mut self.control, Cause::Timeout, now);
        // RFC 5681 section 3.1: unchanged while the timer retransmits one segment again and again.
        if self.timed_out != Some(self.snd_una) {
            self.lose(Cause::Timeout, self.in_flight(config), control);
        }
        self.timed_out = Some(self.snd_una);
        self.window.cwnd = config.smss;
        self.snd_nxt = self.snd_una;
        self.usage = Usage::default();
        self.resend = false;
        self.dupacks = 0;
        if let Some(sack) = &mut self.sack {
            sack.clear();
        }
        // RFC 6582 section 3.2 step 4.
        self.recover = seq(self.snd_max) - 1;
        self.phase = Phase::Open;
        self.rtt.on_timeout(&config.rtt);
    }

    /// Handles an ACK.
    #[inline]
    pub(crate) fn on_ack<C>(
        &mut self,
        answer: &Answer,
        blocks: Option<&Blocks>,
        flow: &Flow,
        now: Time,
        config: &Config,
        control: &C,
    ) -> Acked
    where
        C: Congestion<State = S>,
    {
        debug_assert!(answer.next <= self.snd_max, "flow {} acknowledges bytes never sent", flow.id);
        let mut timer = Restart::Keep;
        // RFC 5681 section 2: a duplicate repeats the greatest ACK while data is outstanding.
        let mut duplicate = answer.next == self.snd_una && self.flight() > 0;
        let new_data = answer.next > self.snd_una;
        if new_data {
            timer = self.on_new_ack(answer, flow, now, config, control);
        }
        // RFC 6675 section 2: an ACK that reports new out-of-order bytes is a duplicate, even if it
        // acknowledges others.
        if let Some(sack) = &mut self.sack {
            duplicate = blocks.is_some_and(|blocks| sack.update(blocks, self.snd_una, self.snd_max));
        }
        let fast_retransmit = duplicate && self.on_duplicate(now, config, control);
        Acked { new_data, timer, fast_retransmit }
    }

    fn on_new_ack<C>(&mut self, answer: &Answer, flow: &Flow, now: Time, config: &Config, control: &C) -> Restart
    where
        C: Congestion<State = S>,
    {
        let acked = answer.next - self.snd_una;
        let Window { cwnd, ssthresh } = self.window;
        self.usage.note(Flight { snd_una: self.snd_una, snd_nxt: self.snd_nxt, cwnd }, config.smss);
        let window_limited = self.usage.allows_growth(cwnd, cwnd < ssthresh);
        self.snd_una = answer.next;
        self.snd_nxt = self.snd_nxt.max(self.snd_una);
        self.dupacks = 0;
        self.resend = false;
        if let Some(sack) = &mut self.sack {
            sack.on_acked(self.snd_una);
        }
        let rtt_ps = self.sample(answer.echo, now, config).map_or(NEVER, |rtt| rtt.0);
        let (snd_una, snd_nxt, srtt_ps) = (self.snd_una, self.snd_nxt, self.rtt.srtt().0);
        let (ece, waited_ps) = (answer.ece, answer.waited.0);
        // RFC 3465 section 2.3: one segment while what was sent before a timeout is acknowledged.
        let limit = if seq(snd_una) <= self.recover { config.smss } else { config.slow_start_limit };
        let slow_start = acked.min(limit);
        let recovery = if let Phase::Recovery { partial } = self.phase { Some(partial) } else { None };
        let (now_ps, may_change) = (now.0, recovery.is_none());
        #[rustfmt::skip]
        let seen = plugin::congestion::Ack {
            now_ps, acked, slow_start, snd_una, snd_nxt, srtt_ps, rtt_ps, waited_ps, ece, window_limited, may_change, reserved: [0; 5],
        };
        let ack = Ack { seen, flow, feedback: answer.echo.feedback };
        control.on_feedback(&mut self.control, &ack);
        let Some(partial) = recovery else {
            // RFC 3168 section 6.1.2: one cut per window of data, for marks and losses together.
            if ece
                && self.snd_una > self.cut_at
                && let Some(cwnd) = control.on_mark(&mut self.control, &self.window, &ack)
            {
                self.window.cwnd = cwnd;
                self.window.ssthresh = self.window.cwnd.max(2 * config.smss);
                self.note_cut(true, self.snd_nxt);
            } else {
                control.on_ack(&mut self.control, &mut self.window, &ack);
                self.window.cwnd = self.window.cwnd.min(config.max_window);
            }
            self.most = control.most(&self.control).min(config.max_window);
            return Restart::Restart;
        };
        self.most = control.most(&self.control).min(config.max_window);
        if seq(self.snd_una) > self.recover {
            self.leave_recovery(config);
            return Restart::Restart;
        }
        if self.sack.is_some() {
            return Restart::Restart;
        }
        self.on_partial_ack(acked, config);
        // RFC 6582 section 3.2 step 3: the "impatient" variant restarts the timer at the first partial ACK only.
        if partial { Restart::Keep } else { Restart::Restart }
    }

    /// RFC 6582 section 3.2 step 3, full acknowledgment. RFC 6675 section 5 step A: the window stays.
    fn leave_recovery(&mut self, config: &Config) {
        self.phase = Phase::Open;
        if self.sack.is_some() {
            return;
        }
        let small = self.flight().max(config.smss) + config.smss;
        self.window.cwnd = if config.full_ack_ssthresh { self.window.ssthresh } else { self.window.ssthresh.min(small) };
    }

    /// RFC 6582 section 3.2 step 3, partial acknowledgment.
    fn on_partial_ack(&mut self, acked: u64, config: &Config) {
        let deflated = self.window.cwnd.saturating_sub(acked);
        let back = if acked >= config.smss { config.smss } else { 0 };
        self.window.cwnd = (deflated + back).max(config.smss);
        self.resend = true;
        self.phase = Phase::Recovery { partial: true };
    }

    /// Handles a duplicate ACK. Returns whether recovery begins.
    #[inline(never)]
    fn on_duplicate<C: Congestion<State = S>>(&mut self, now: Time, config: &Config, control: &C) -> bool {
        if self.is_recovering() {
            // RFC 5681 section 3.2 step 4: a segment has left the network. RFC 6675 counts what is in it.
            self.window.cwnd += if self.sack.is_some() { 0 } else { config.smss };
            return false;
        }
        if self.dupacks == 0 {
            self.first_dup_nxt = self.snd_nxt;
        }
        self.dupacks += 1;
        let lost = config.fast_retransmit
            && match &self.sack {
                // RFC 6582 section 3.2 step 2.
                None => self.dupacks == DUP_THRESHOLD && seq(self.snd_una) - 1 > self.recover,
                // RFC 6675 section 5 steps 1 and 2, and section 5.1.
                Some(sack) => {
                    let lost = self.dupacks >= DUP_THRESHOLD || sack.lost_below(config.smss) > self.snd_una;
                    lost && seq(self.snd_una) > self.recover
                }
            };
        if lost {
            control.before_loss(&mut self.control, Cause::Duplicates, now);
            self.enter_recovery(config, control);
        }
        lost
    }

    /// RFC 6582 section 3.2 step 2, RFC 5681 section 3.2 steps 2 and 3, RFC 6675 section 5 step 4.
    fn enter_recovery<C: Congestion<State = S>>(&mut self, config: &Config, control: &C) {
        // RFC 3042: the segments of limited transmit do not count.
        let flight = if config.limited_transmit { self.first_dup_nxt - self.snd_una } else { self.flight() };
        self.lose(Cause::Duplicates, flight, control);
        self.window.cwnd = self.window.ssthresh;
        let first = self.snd_una..self.end.min(self.snd_una + config.smss);
        let finds_lost = C::deliveries(&mut self.control).is_some();
        self.resend = self.sack.as_mut().is_none_or(|sack| sack.begin(first, finds_lost));
        if self.sack.is_none() {
            self.window.cwnd += u64::from(DUP_THRESHOLD) * config.smss;
        }
        self.recover = seq(self.snd_max) - 1;
        self.phase = Phase::Recovery { partial: false };
    }

    /// Reacts to a lost segment: asks the controller for the threshold.
    fn lose<C: Congestion<State = S>>(&mut self, cause: Cause, flight: u64, control: &C) {
        let after_mark = self.cut_by_mark && self.snd_una < self.cut_at;
        self.window.ssthresh = control.on_loss(&mut self.control, &self.window, Loss { cause, flight, after_mark });
        self.note_cut(false, self.snd_max);
    }

    fn note_cut(&mut self, by_mark: bool, at: u64) {
        (self.cut_at, self.cut_by_mark, self.report_cut) = (at, by_mark, true);
    }

    /// Takes a round-trip sample. Without time stamps a segment that was sent twice gives none
    /// (Karn).
    #[inline]
    fn sample(&mut self, echo: Echo, now: Time, config: &Config) -> Option<Dur> {
        let sample = (config.timestamps || !echo.resent).then(|| now.since(echo.sent_at))?;
        self.rtt.on_sample(sample, &config.rtt);
        Some(sample)
    }
}

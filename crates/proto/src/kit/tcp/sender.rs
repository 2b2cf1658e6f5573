//! The sending half of one flow: sequence numbers, windows and NewReno recovery (RFC 6582).

use super::{Ack, Cause, Config, Congestion, Echo, Ecn, Loss, Window};
use crate::flow::{Flow, FlowStats};
use crate::kit::rtt::Rtt;
use crate::packet::Packet;
use base::Time;

/// One flow at its sender. All positions are byte offsets within the flow; only `recover` is a sequence number.
pub(super) struct Sender<S> {
    size: u64,
    pub(super) snd_una: u64,
    pub(super) snd_nxt: u64,
    /// No byte from here on was ever sent.
    pub(super) snd_max: u64,
    pub(super) window: Window,
    pub(super) phase: Phase,
    /// RFC 6582 section 3.2 step 1; zero is the initial sequence number less one, so that the first recovery is possible.
    pub(super) recover: u64,
    pub(super) dupacks: u32,
    /// `snd_nxt` before limited transmit sent anything.
    first_dup_nxt: u64,
    /// The segment at `snd_una` is to be sent again.
    resend: bool,
    /// `snd_una` at the last timeout: the segment resent by the timer.
    timed_out: Option<u64>,
    /// `snd_nxt` when the window was cut last: no mark cuts it again before an ACK goes beyond.
    cut_at: u64,
    /// That was for a mark.
    cut_by_mark: bool,
    /// The next new segment tells the receiver of it (CWR).
    tell_cut: bool,
    pub(super) control: S,
    pub(super) rtt: Rtt,
    pub(super) stats: FlowStats,
    /// The retransmission timer runs.
    pub(super) timer: bool,
    /// The flow is among those that may send.
    pub(super) ready: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Opening { syn_lost: bool },
    Open,
    Recovery { partial: bool },
}

/// What an ACK means for the retransmission timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Restart {
    Keep,
    Restart,
}

/// A stretch of payload to send.
pub(super) struct Segment {
    pub(super) offset: u64,
    pub(super) len: u16,
    resend: bool,
}

/// The sequence number of the byte at `offset`: the SYN has number 1.
pub(super) const fn seq(offset: u64) -> u64 {
    offset + 2
}

/// Duplicate ACKs that reveal a loss.
const DUP_THRESHOLD: u32 = 3;

impl<S> Sender<S> {
    pub(super) fn new(size: u64, config: &Config, control: S) -> Self {
        let phase = if config.handshake { Phase::Opening { syn_lost: false } } else { Phase::Open };
        Sender {
            size,
            snd_una: 0,
            snd_nxt: 0,
            snd_max: 0,
            window: Window { cwnd: config.init_window.min(config.max_window), ssthresh: u64::MAX },
            phase,
            recover: 0,
            dupacks: 0,
            first_dup_nxt: 0,
            resend: false,
            timed_out: None,
            cut_at: 0,
            cut_by_mark: false,
            tell_cut: false,
            control,
            rtt: Rtt::new(&config.rtt),
            stats: FlowStats::default(),
            timer: false,
            ready: false,
        }
    }

    /// Starts from what another protocol has sent.
    pub(super) fn resume(&mut self, acked: u64, sent: u64, stats: FlowStats) {
        (self.snd_una, self.snd_nxt, self.snd_max) = (acked, acked, sent);
        if sent > acked {
            // RFC 6582 section 3.2 step 4, as after a timeout.
            self.recover = seq(sent) - 1;
        }
        self.stats = stats;
    }

    pub(super) fn is_opening(&self) -> bool {
        matches!(self.phase, Phase::Opening { .. })
    }
    pub(super) fn is_done(&self) -> bool {
        self.snd_una == self.size
    }
    /// FlightSize. Bytes above `snd_nxt` were given up at a timeout.
    pub(super) fn flight(&self) -> u64 {
        self.snd_nxt - self.snd_una
    }
    pub(super) fn window(&self) -> Window {
        self.window
    }

    /// What to send next, if the window allows anything.
    #[inline]
    pub(super) fn next_segment(&self, config: &Config) -> Option<Segment> {
        if self.is_opening() {
            return None;
        }
        if self.resend {
            let len = config.smss.min(self.size - self.snd_una) as u16;
            return Some(Segment { offset: self.snd_una, len, resend: true });
        }
        let len = config.smss.min(self.size - self.snd_nxt);
        let mut window = self.window.cwnd;
        // RFC 3042: new data, up to two segments beyond cwnd.
        if config.limited_transmit && self.phase == Phase::Open && self.snd_nxt == self.snd_max {
            window += u64::from(self.dupacks.min(2)) * config.smss;
        }
        let fits = self.flight() + len <= window.min(config.max_window);
        (len > 0 && fits).then_some(Segment { offset: self.snd_nxt, len: len as u16, resend: false })
    }

    /// `segment` was handed to the NIC. Returns its flags.
    #[inline]
    pub(super) fn on_sent(&mut self, segment: &Segment, ecn: Ecn) -> u8 {
        let resent = segment.offset < self.snd_max;
        let end = segment.offset + u64::from(segment.len);
        if segment.resend {
            self.resend = false;
        } else {
            self.snd_nxt = end;
        }
        self.snd_max = self.snd_max.max(end);
        let mut flags = ecn.code_point(!resent) | u8::from(resent) * Packet::RETX;
        // RFC 3168 section 6.1.2: on the first new segment after the cut.
        if ecn != Ecn::Off && self.tell_cut && !resent {
            self.tell_cut = false;
            flags |= Packet::CWR;
        }
        flags
    }

    /// The connection is open. Says whether that is news.
    pub(super) fn on_synack(&mut self, echo: Echo, now: Time, config: &Config) -> bool {
        let Phase::Opening { syn_lost } = self.phase else { return false };
        self.phase = Phase::Open;
        self.sample(echo, now, config);
        if syn_lost {
            // RFC 5681 section 3.1.
            self.window.cwnd = config.smss;
        }
        true
    }

    pub(super) fn on_syn_timeout(&mut self, config: &Config) {
        self.phase = Phase::Opening { syn_lost: true };
        self.stats.timeouts += 1;
        self.rtt.on_timeout(&config.rtt);
    }

    /// The retransmission timer expired.
    pub(super) fn on_timeout<C: Congestion<State = S>>(&mut self, config: &Config, control: &C) {
        self.stats.timeouts += 1;
        // RFC 5681 section 3.1: held while the timer resends one segment again and again.
        if self.timed_out != Some(self.snd_una) {
            self.lose(Cause::Timeout, self.flight(), control);
        }
        self.timed_out = Some(self.snd_una);
        self.window.cwnd = config.smss;
        self.snd_nxt = self.snd_una;
        self.resend = false;
        self.dupacks = 0;
        // RFC 6582 section 3.2 step 4.
        self.recover = seq(self.snd_max) - 1;
        self.phase = Phase::Open;
        self.rtt.on_timeout(&config.rtt);
    }

    /// An ACK arrived.
    #[inline]
    pub(super) fn on_ack<C>(&mut self, packet: &Packet, flow: &Flow, now: Time, config: &Config, control: &C) -> Restart
    where
        C: Congestion<State = S>,
    {
        debug_assert!(packet.offset <= self.snd_max, "flow {} acknowledges bytes never sent", flow.id);
        if packet.offset > self.snd_una {
            return self.on_new_ack(packet, flow, now, config, control);
        }
        // RFC 5681 section 2: a duplicate repeats the greatest ACK while data is outstanding.
        if packet.offset == self.snd_una && self.flight() > 0 {
            self.on_duplicate(config, control);
        }
        Restart::Keep
    }

    fn on_new_ack<C>(&mut self, packet: &Packet, flow: &Flow, now: Time, config: &Config, control: &C) -> Restart
    where
        C: Congestion<State = S>,
    {
        let acked = packet.offset - self.snd_una;
        let window_limited = self.flight() + config.smss >= self.window.cwnd;
        self.snd_una = packet.offset;
        self.snd_nxt = self.snd_nxt.max(self.snd_una);
        self.dupacks = 0;
        self.resend = false;
        let echo = Echo::read(packet);
        self.sample(echo, now, config);
        let (snd_una, snd_nxt, srtt) = (self.snd_una, self.snd_nxt, self.rtt.srtt());
        let ece = C::ECN != Ecn::Off && packet.has(Packet::ECE);
        let ack = Ack { now, flow, acked, ece, feedback: echo.feedback, snd_una, snd_nxt, window_limited, srtt };
        control.on_feedback(&mut self.control, &ack);
        let Phase::Recovery { partial } = self.phase else {
            // RFC 3168 section 6.1.2: one cut per window of data, whatever reported the congestion.
            if ece && self.snd_una > self.cut_at {
                self.window.cwnd = control.on_mark(&mut self.control, &self.window);
                self.window.ssthresh = self.window.cwnd.max(2 * config.smss);
                self.note_cut(true, self.snd_nxt);
            } else {
                control.on_ack(&mut self.control, &mut self.window, &ack);
                self.window.cwnd = self.window.cwnd.min(config.max_window);
            }
            return Restart::Restart;
        };
        if seq(self.snd_una) > self.recover {
            self.leave_recovery(config);
            return Restart::Restart;
        }
        self.on_partial_ack(acked, config);
        // RFC 6582 section 3.2 step 3: the "impatient" variant restarts the timer at the first partial ACK only.
        if partial { Restart::Keep } else { Restart::Restart }
    }

    /// RFC 6582 section 3.2 step 3, full acknowledgment.
    fn leave_recovery(&mut self, config: &Config) {
        let small = self.flight().max(config.smss) + config.smss;
        self.window.cwnd = if config.full_ack_ssthresh { self.window.ssthresh } else { self.window.ssthresh.min(small) };
        self.phase = Phase::Open;
    }

    /// RFC 6582 section 3.2 step 3, partial acknowledgment.
    fn on_partial_ack(&mut self, acked: u64, config: &Config) {
        let deflated = self.window.cwnd.saturating_sub(acked);
        let back = if acked >= config.smss { config.smss } else { 0 };
        self.window.cwnd = (deflated + back).max(config.smss);
        self.resend = true;
        self.phase = Phase::Recovery { partial: true };
    }

    fn on_duplicate<C: Congestion<State = S>>(&mut self, config: &Config, control: &C) {
        if matches!(self.phase, Phase::Recovery { .. }) {
            // RFC 5681 section 3.2 step 4: a segment has left the network.
            self.window.cwnd += config.smss;
            return;
        }
        if self.dupacks == 0 {
            self.first_dup_nxt = self.snd_nxt;
        }
        self.dupacks += 1;
        // RFC 6582 section 3.2 step 2.
        if self.dupacks == DUP_THRESHOLD && seq(self.snd_una) - 1 > self.recover {
            self.enter_recovery(config, control);
        }
    }

    /// RFC 6582 section 3.2 step 2, RFC 5681 section 3.2 steps 2 and 3.
    fn enter_recovery<C: Congestion<State = S>>(&mut self, config: &Config, control: &C) {
        // RFC 3042: what limited transmit sent does not count.
        let flight = if config.limited_transmit { self.first_dup_nxt - self.snd_una } else { self.flight() };
        self.lose(Cause::Duplicates, flight, control);
        self.window.cwnd = self.window.ssthresh + u64::from(DUP_THRESHOLD) * config.smss;
        self.recover = seq(self.snd_max) - 1;
        self.phase = Phase::Recovery { partial: false };
        self.resend = true;
        self.stats.fast_retransmits += 1;
    }

    /// A segment was found lost.
    fn lose<C: Congestion<State = S>>(&mut self, cause: Cause, flight: u64, control: &C) {
        let after_mark = self.cut_by_mark && self.snd_una < self.cut_at;
        self.window.ssthresh = control.on_loss(&mut self.control, &self.window, Loss { cause, flight, after_mark });
        self.note_cut(false, self.snd_max);
    }

    fn note_cut(&mut self, by_mark: bool, at: u64) {
        (self.cut_at, self.cut_by_mark, self.tell_cut) = (at, by_mark, true);
    }

    /// Takes a round-trip sample, unless the segment was sent twice (Karn).
    #[inline]
    fn sample(&mut self, echo: Echo, now: Time, config: &Config) {
        if !echo.resent {
            self.rtt.on_sample(now.since(echo.sent_at), &config.rtt);
        }
    }
}

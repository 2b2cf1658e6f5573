//! The sending half of one flow: sequence numbers, windows and NewReno recovery (RFC 6582).

use super::{Ack, Cause, Config, Congestion, Echo, Loss, Window};
use crate::flow::{Flow, FlowStats};
use crate::kit::rtt::Rtt;
use crate::packet::Packet;
use base::Time;

/// One flow at its sender. All positions are byte offsets within the flow; only `recover` is a sequence number.
pub(super) struct Sender<S> {
    size: u64,
    snd_una: u64,
    snd_nxt: u64,
    /// No byte from here on was ever sent.
    snd_max: u64,
    window: Window,
    phase: Phase,
    /// RFC 6582 section 3.2 step 1; zero is the initial sequence number less one, so that the first recovery is possible.
    recover: u64,
    dupacks: u32,
    /// `snd_nxt` before limited transmit sent anything.
    first_dup_nxt: u64,
    /// The segment at `snd_una` is to be sent again.
    resend: bool,
    /// `snd_una` at the last timeout: the segment resent by the timer.
    timed_out: Option<u64>,
    control: S,
    pub(super) rtt: Rtt,
    pub(super) stats: FlowStats,
    /// The retransmission timer runs.
    pub(super) timer: bool,
    /// The flow is among those that may send.
    pub(super) ready: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
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
const fn seq(offset: u64) -> u64 {
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
            control,
            rtt: Rtt::new(&config.rtt),
            stats: FlowStats::default(),
            timer: false,
            ready: false,
        }
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

    /// `segment` was handed to the NIC. Says whether its payload was sent before.
    #[inline]
    pub(super) fn on_sent(&mut self, segment: &Segment) -> bool {
        let resent = segment.offset < self.snd_max;
        let end = segment.offset + u64::from(segment.len);
        if segment.resend {
            self.resend = false;
        } else {
            self.snd_nxt = end;
        }
        self.snd_max = self.snd_max.max(end);
        resent
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
            let loss = Loss { cause: Cause::Timeout, flight: self.flight() };
            self.window.ssthresh = control.on_loss(&mut self.control, &self.window, loss);
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
        self.sample(packet.get(), now, config);
        let (snd_una, snd_nxt, srtt) = (self.snd_una, self.snd_nxt, self.rtt.srtt());
        let ack = Ack { now, flow, packet, acked, snd_una, snd_nxt, window_limited, srtt };
        let Phase::Recovery { partial } = self.phase else {
            control.on_ack(&mut self.control, &mut self.window, &ack);
            self.window.cwnd = self.window.cwnd.min(config.max_window);
            return Restart::Restart;
        };
        control.on_recovery_ack(&mut self.control, &ack);
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
        let loss = Loss { cause: Cause::Duplicates, flight };
        self.window.ssthresh = control.on_loss(&mut self.control, &self.window, loss);
        self.window.cwnd = self.window.ssthresh + u64::from(DUP_THRESHOLD) * config.smss;
        self.recover = seq(self.snd_max) - 1;
        self.phase = Phase::Recovery { partial: false };
        self.resend = true;
        self.stats.fast_retransmits += 1;
    }

    /// Takes a round-trip sample, unless the segment was sent twice (Karn).
    #[inline]
    fn sample(&mut self, echo: Echo, now: Time, config: &Config) {
        if echo.resent == 0 {
            self.rtt.on_sample(now.since(Time(echo.sent_at)), &config.rtt);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::script::{self, Script};
    use crate::kit::tcp::RTO;
    use crate::packet::Kind;
    use crate::transport::newreno::{NewReno, Params};
    use base::params::{Auto, Params as _};
    use base::{Dur, FlowId};

    const SMSS: u64 = 1460;

    fn params() -> Params {
        Params { handshake: false, ..Params::defaults() }
    }

    fn host(params: &Params, size: u64) -> Script<NewReno> {
        Script::new(NewReno::new(params, &script::env()), vec![script::flow(0, size)])
    }

    /// A flow of 1000 segments with an initial window of `window`.
    fn open(window: u32) -> Script<NewReno> {
        let mut host = host(&Params { init_window: Auto::Set(window), ..params() }, 1000 * SMSS);
        assert_eq!(segments(host.open(0)), (0..u64::from(window)).collect::<Vec<_>>());
        host
    }

    /// An ACK of `n` segments that gives no round-trip sample.
    fn ack(n: u64) -> Packet {
        let mut ack = Packet::new(FlowId(0), Kind::ACK, 40);
        ack.offset = n * SMSS;
        ack.set(Echo { sent_at: 0, resent: 1 });
        ack
    }

    /// The same, caused by a segment sent at `at`.
    fn timed_ack(n: u64, at: Time) -> Packet {
        let mut ack = ack(n);
        ack.set(Echo { sent_at: at.ps(), resent: 0 });
        ack
    }

    /// Segment numbers of data packets; resent ones must say so, and only they.
    fn segments(packets: Vec<Packet>) -> Vec<u64> {
        assert!(packets.iter().all(|p| p.kind == Kind::DATA && p.offset % SMSS == 0 && p.wire_len == p.payload + 40));
        packets.iter().map(|p| p.offset / SMSS).collect()
    }

    /// Has segments acknowledged from `from` to `to`, one ACK each.
    fn feed(host: &mut Script<NewReno>, acks: impl IntoIterator<Item = u64>) -> Vec<u64> {
        acks.into_iter().flat_map(|n| segments(host.packet(ack(n)))).collect()
    }

    fn sender(host: &mut Script<NewReno>) -> &mut Sender<u64> {
        host.machine.senders.get_mut(FlowId(0)).expect("the flow is open")
    }

    /// (cwnd, ssthresh) in segments.
    fn window(host: &mut Script<NewReno>) -> (u64, u64) {
        let window = sender(host).window();
        (window.cwnd / SMSS, window.ssthresh / SMSS)
    }

    /// Worked out by hand from RFC 6582: segments 10 to 17 outstanding, cwnd 8, recover 5; 10 and 13 are lost.
    #[test]
    fn golden_recovery() {
        let mut host = open(8);
        let s = sender(&mut host);
        (s.snd_una, s.snd_nxt, s.snd_max, s.recover) = (10 * SMSS, 18 * SMSS, 18 * SMSS, seq(6 * SMSS) - 1);
        s.window.ssthresh = 8 * SMSS;
        // Duplicates 1 and 2.
        assert_eq!(feed(&mut host, [10, 10]), []);
        assert_eq!(window(&mut host), (8, 8));
        // Duplicate 3.
        assert_eq!(feed(&mut host, [10]), [10]);
        assert_eq!(window(&mut host), (7, 4));
        assert_eq!(sender(&mut host).recover, seq(18 * SMSS) - 1);
        // Duplicates 4 to 6.
        assert_eq!(feed(&mut host, [10]), []);
        assert_eq!(window(&mut host), (8, 4));
        assert_eq!(feed(&mut host, [10]), [18]);
        assert_eq!(feed(&mut host, [10]), [19]);
        assert_eq!(window(&mut host), (10, 4));
        // The partial ACK resends, deflates, sends new data and restarts the timer.
        host.now = Time::ZERO + Dur::from_ms(500);
        assert_eq!(feed(&mut host, [13]), [13, 20]);
        assert_eq!(window(&mut host), (8, 4));
        assert_eq!(segments(host.advance(Time::ZERO + Dur::from_ms(1499))), []);
        // Duplicates for 18 and 19.
        assert_eq!(feed(&mut host, [13]), [21]);
        assert_eq!(feed(&mut host, [13]), [22]);
        assert_eq!(window(&mut host), (10, 4));
        // The full ACK.
        assert_eq!(feed(&mut host, [20]), [23]);
        assert_eq!(window(&mut host), (4, 4));
        assert_eq!(sender(&mut host).phase, Phase::Open);
        assert_eq!(sender(&mut host).stats, FlowStats { timeouts: 0, fast_retransmits: 1 });
    }

    #[test]
    fn a_full_ack_may_restore_ssthresh() {
        for (option, cwnd) in [(false, 2), (true, 8)] {
            let mut host = host(&Params { init_window: Auto::Set(16), full_ack_ssthresh: option, ..params() }, 16 * SMSS);
            host.open(0);
            feed(&mut host, [0, 0, 0]);
            assert_eq!(window(&mut host), (11, 8));
            // All but the last byte of the last segment: full, since it covers `recover`, if `recover` is lowered by it.
            sender(&mut host).recover -= SMSS;
            feed(&mut host, [15]);
            assert_eq!(window(&mut host), (cwnd, 8));
        }
    }

    #[test]
    fn the_first_segment_of_all_can_be_recovered() {
        let mut host = open(8);
        assert_eq!(feed(&mut host, [0, 0, 0]), [0]);
    }

    #[test]
    fn duplicates_of_what_an_earlier_recovery_covered_are_ignored() {
        let mut host = open(8);
        let timeout = host.advance(Time::ZERO + Dur::from_secs(1));
        assert_eq!(segments(timeout.clone()), [0]);
        assert!(timeout[0].has(Packet::RETX));
        assert_eq!(feed(&mut host, [0, 0, 0, 0]), []);
        // Segment 8 is the first beyond `recover`; duplicates of 8 do not cover more than it.
        assert_eq!(feed(&mut host, [8]), [8, 9]);
        assert_eq!(feed(&mut host, [8, 8, 8]), []);
        assert_eq!(feed(&mut host, [9]), [10, 11]);
        // cwnd is 2 + 3 with 3 in flight.
        assert_eq!(feed(&mut host, [9, 9, 9]), [9, 12, 13]);
        assert_eq!(sender(&mut host).stats, FlowStats { timeouts: 1, fast_retransmits: 1 });
    }

    #[test]
    fn a_partial_ack_deflates_by_what_it_acknowledges() {
        let mut host = open(8);
        assert_eq!(feed(&mut host, [0, 0, 0, 0, 0, 0]), [0, 8, 9]);
        assert_eq!(window(&mut host), (10, 4));
        // Less than a segment: nothing is added back.
        let mut partial = ack(0);
        partial.offset = 460;
        host.packet(partial);
        assert_eq!(sender(&mut host).window.cwnd, 10 * SMSS - 460);
        // More than the window: one segment is left of it.
        sender(&mut host).window.cwnd = 2 * SMSS;
        let mut partial = ack(0);
        partial.offset = 460 + 5 * SMSS;
        host.packet(partial);
        assert_eq!(sender(&mut host).window.cwnd, SMSS);
    }

    #[test]
    fn only_the_first_partial_ack_restarts_the_timer() {
        let mut host = open(16);
        feed(&mut host, [0, 0, 0]);
        host.now = Time::ZERO + Dur::from_ms(300);
        feed(&mut host, [3]);
        host.now = Time::ZERO + Dur::from_ms(600);
        feed(&mut host, [6]);
        assert_eq!(segments(host.advance(Time::ZERO + Dur::from_ms(1299))), []);
        // 1 s after the first.
        assert_eq!(segments(host.advance(Time::ZERO + Dur::from_ms(1300))), [6]);
    }

    #[test]
    fn old_acks_change_nothing() {
        let mut host = open(4);
        feed(&mut host, [2]);
        let before = window(&mut host);
        assert_eq!(feed(&mut host, [1, 1, 1, 0]), []);
        assert_eq!((window(&mut host), sender(&mut host).dupacks), (before, 0));
    }

    #[test]
    fn every_ack_of_new_data_restarts_the_timer() {
        let mut host = open(4);
        host.now = Time::ZERO + Dur::from_ms(700);
        feed(&mut host, [1]);
        assert_eq!(segments(host.advance(Time::ZERO + Dur::from_ms(1699))), []);
        assert_eq!(segments(host.advance(Time::ZERO + Dur::from_ms(1700))), [1]);
    }

    #[test]
    fn a_timeout_goes_back_and_starts_slowly() {
        let mut host = open(16);
        assert_eq!(segments(host.advance(Time::ZERO + Dur::from_secs(1))), [0]);
        assert_eq!(window(&mut host), (1, 8));
        assert_eq!(feed(&mut host, [1]), [1, 2]);
        assert_eq!(feed(&mut host, [2, 3]), [3, 4, 5, 6]);
        // What the receiver already has is not sent again.
        assert_eq!(feed(&mut host, [14]), [14, 15, 16, 17, 18]);
        assert_eq!(window(&mut host), (5, 8));
    }

    #[test]
    fn ssthresh_is_held_while_the_timer_resends_one_segment() {
        let mut host = open(16);
        host.advance(Time::ZERO + Dur::from_secs(1));
        assert_eq!(window(&mut host), (1, 8));
        // The timeout doubles.
        assert_eq!(segments(host.advance(Time::ZERO + Dur::from_ms(2999))), []);
        assert_eq!(segments(host.advance(Time::ZERO + Dur::from_secs(3))), [0]);
        assert_eq!(window(&mut host), (1, 8));
        // Another segment: lowered again, to the least.
        feed(&mut host, [1]);
        assert_eq!(segments(host.advance(Time::ZERO + Dur::from_secs(60))), [1, 1, 1]);
        assert_eq!(window(&mut host), (1, 2));
        assert_eq!(sender(&mut host).stats.timeouts, 5);
    }

    #[test]
    fn a_timeout_ends_recovery() {
        let mut host = open(8);
        feed(&mut host, [0, 0, 0, 0, 0]);
        assert_eq!(segments(host.advance(Time::ZERO + Dur::from_secs(1))), [0]);
        assert_eq!(sender(&mut host).phase, Phase::Open);
        // FlightSize was 9 segments.
        assert_eq!(sender(&mut host).window, Window { cwnd: SMSS, ssthresh: 9 * SMSS / 2 });
        assert_eq!(sender(&mut host).recover, seq(9 * SMSS) - 1);
    }

    #[test]
    fn retransmissions_are_flagged_and_give_no_sample() {
        let mut host = open(4);
        host.now = Time::ZERO + Dur::from_us(100);
        host.packet(ack(1));
        assert_eq!(sender(&mut host).rtt.srtt(), Dur::ZERO);
        host.packet(timed_ack(2, Time::ZERO + Dur::from_us(20)));
        assert_eq!(sender(&mut host).rtt.srtt(), Dur::from_us(80));
        // A duplicate gives none either.
        host.packet(timed_ack(2, Time::ZERO + Dur::from_us(99)));
        assert_eq!(sender(&mut host).rtt.srtt(), Dur::from_us(80));
        let resent = host.advance(Time::ZERO + Dur::from_ms(201));
        assert!(resent[0].has(Packet::RETX) && resent[0].offset == 2 * SMSS);
    }

    #[test]
    fn the_last_segment_needs_only_its_own_room() {
        let mut host = host(&Params { init_window: Auto::Set(2), ..params() }, 2 * SMSS + 100);
        assert_eq!(segments(host.open(0)), [0, 1]);
        sender(&mut host).window = Window { cwnd: SMSS + 100, ssthresh: SMSS };
        let last = host.packet(ack(1));
        assert_eq!((last.len(), last[0].payload, last[0].wire_len), (1, 100, 140));
    }

    #[test]
    fn limited_transmit_sends_one_new_segment_per_early_duplicate() {
        let mut host = host(&Params { init_window: Auto::Set(4), limited_transmit: true, ..params() }, 100 * SMSS);
        host.open(0);
        assert_eq!(feed(&mut host, [0]), [4]);
        assert_eq!(feed(&mut host, [0]), [5]);
        // Recovery counts the four segments sent before.
        assert_eq!(feed(&mut host, [0]), [0]);
        assert_eq!(window(&mut host), (5, 2));
        // Without the option.
        assert_eq!(feed(&mut open(4), [0, 0]), []);
    }

    #[test]
    fn max_cwnd_bounds_growth_and_what_is_in_flight() {
        let p = Params { init_window: Auto::Set(8), max_cwnd: Auto::Set(8), ..params() };
        let mut host = host(&p, 100 * SMSS);
        host.open(0);
        assert_eq!(feed(&mut host, [1, 2]), [8, 9]);
        assert_eq!(window(&mut host).0, 8);
        assert_eq!(feed(&mut host, [2, 2, 2, 2, 2, 2, 2, 2]), [2]);
        assert_eq!(window(&mut host), (12, 4));
    }

    #[test]
    fn the_handshake_comes_first_and_gives_a_sample() {
        let mut host = host(&Params::defaults(), 100 * SMSS);
        let syn = host.open(0);
        assert_eq!((syn.len(), syn[0].kind, syn[0].wire_len), (1, Kind::SYN, 40));
        host.now = Time::ZERO + Dur::from_us(50);
        let mut synack = Packet::new(FlowId(0), Kind::SYNACK, 40);
        synack.set(Echo { sent_at: 0, resent: 0 });
        assert_eq!(segments(host.packet(synack)), [0, 1, 2]);
        assert_eq!(sender(&mut host).rtt.srtt(), Dur::from_us(50));
        assert_eq!(segments(host.packet(synack)), []);
        // Only the data is timed from here on.
        let now = host.now;
        assert_eq!(segments(host.advance(now + Dur::from_ms(199))), []);
        assert_eq!(segments(host.advance(now + Dur::from_ms(200))), [0]);
    }

    #[test]
    fn a_lost_syn_costs_the_initial_window() {
        let mut host = host(&Params::defaults(), 100 * SMSS);
        host.open(0);
        let again = host.advance(Time::ZERO + Dur::from_secs(1));
        assert!(again.len() == 1 && again[0].kind == Kind::SYN && again[0].has(Packet::RETX));
        assert_eq!(host.advance(Time::ZERO + Dur::from_ms(2999)), []);
        assert_eq!(host.advance(Time::ZERO + Dur::from_secs(3)).len(), 1);
        let mut synack = Packet::new(FlowId(0), Kind::SYNACK, 40);
        synack.set(Echo { sent_at: 0, resent: 1 });
        assert_eq!(segments(host.packet(synack)), [0]);
        let s = sender(&mut host);
        assert_eq!((s.rtt.rto(), s.window, s.stats.timeouts), (Dur::from_secs(4), Window { cwnd: SMSS, ssthresh: u64::MAX }, 2));
    }

    #[test]
    fn the_last_ack_closes_and_later_ones_are_ignored() {
        let mut host = host(&params(), 3 * SMSS);
        host.open(0);
        feed(&mut host, [3]);
        assert!(host.table.get(FlowId(0)).closed && host.machine.senders.is_empty() && !host.is_armed(0, RTO));
        assert_eq!(feed(&mut host, [3, 2, 3, 3]), []);
        assert_eq!(host.packet(Packet::new(FlowId(0), Kind::SYNACK, 40)), []);
        assert_eq!(host.advance(Time::ZERO + Dur::from_secs(100)), []);
    }

    #[test]
    fn flows_of_a_host_take_turns() {
        let flows = vec![script::flow(0, 5 * SMSS), script::flow(1, 2 * SMSS)];
        let mut host = Script::new(NewReno::new(&params(), &script::env()), flows);
        host.nic_busy = true;
        host.open(0);
        host.open(1);
        host.nic_busy = false;
        let turns: Vec<u32> = host.sent().iter().map(|p| p.flow.0).collect();
        assert_eq!(turns, [0, 1, 0, 1, 0]);
    }
}

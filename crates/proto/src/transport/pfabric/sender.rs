//! One flow at its sender: windows, SACK, timeouts and probe mode.

use super::{Block, Env, Params, Priority, Sacked};
use crate::packet::{Kind, Packet};
use crate::ranges::Ranges;
use base::params::Auto;
use base::{Dur, Limit};

#[derive(Clone, Copy)]
pub(super) struct Config {
    pub(super) mss: u64,
    pub(super) header: u16,
    init_cwnd: u32,
    max_cwnd: u32,
    pub(super) rto: Dur,
    probe_after: u32,
    priority: Priority,
    /// SACKed bytes widen the window, and are not retransmitted.
    widens: bool,
    pub(super) handshake: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Opening,
    Open,
    /// `due`: a probe is to be sent.
    Probe {
        due: bool,
    },
}

/// One flow at its sender. Positions are byte offsets, windows are in packets.
pub(super) struct Sender {
    pub(super) size: u64,
    pub(super) cum_ack: u64,
    pub(super) next_seq: u64,
    /// No byte from here on was ever sent.
    pub(super) max_seq: u64,
    /// Bytes that arrived beyond `cum_ack`.
    sacked: Ranges,
    pub(super) sacked_bytes: u64,
    pub(super) cwnd: u32,
    pub(super) ssthresh: u32,
    ack_count: u32,
    /// Timeouts in a row.
    timeouts: u32,
    pub(super) phase: Phase,
    pub(super) timer: bool,
    /// Offset, payload and kind of the next packet, while the window allows one.
    pub(super) next: Option<(u64, u16, Kind)>,
}

impl Config {
    pub(super) fn new(params: &Params, env: &Env<'_>) -> Config {
        let packet = u64::from(env.mtu_bytes);
        let bdp = u32::try_from(env.bdp_bytes().div_ceil(packet)).unwrap_or(u32::MAX).max(1);
        let queue = match env.queue_limit {
            Limit::Packets(n) => n,
            Limit::Bytes(n) => u32::try_from(n / packet).unwrap_or(u32::MAX),
            Limit::Unlimited => u32::MAX,
        };
        let init_cwnd = env.auto("init_cwnd", params.init_cwnd, bdp);
        let max_cwnd = env.auto("max_cwnd", params.max_cwnd, queue.saturating_sub(1).max(init_cwnd));
        // A queue without a limit leaves no limit to the window.
        env.note_auto("max_cwnd", params.max_cwnd == Auto::Auto && queue == u32::MAX, String::new);
        Config {
            mss: u64::from(env.mss()),
            header: env.header_bytes,
            init_cwnd: init_cwnd.min(max_cwnd),
            max_cwnd,
            rto: env.auto("rto", params.rto, Dur(env.max_rtt.0.saturating_mul(3))),
            probe_after: params.probe_after,
            priority: params.priority,
            widens: params.sacked == Sacked::Widen,
            handshake: params.handshake,
        }
    }
}

impl Sender {
    pub(super) fn new(size: u64, config: &Config) -> Sender {
        Sender {
            size,
            cum_ack: 0,
            next_seq: 0,
            max_seq: 0,
            sacked: Ranges::default(),
            sacked_bytes: 0,
            cwnd: config.init_cwnd,
            ssthresh: u32::MAX,
            ack_count: 0,
            timeouts: 0,
            phase: if config.handshake { Phase::Opening } else { Phase::Open },
            timer: false,
            next: None,
        }
    }

    /// Returns the offset, payload and kind of the next packet, if the window allows one.
    #[inline]
    pub(super) fn next_packet(&mut self, config: &Config) -> Option<(u64, u16, Kind)> {
        if self.phase != Phase::Open {
            let probe = (self.cum_ack, 1, Kind::PROBE);
            return (self.phase == Phase::Probe { due: true }).then_some(probe);
        }
        if config.widens
            && !self.sacked.is_empty()
            && let Some(held) = self.sacked.containing(self.next_seq)
        {
            self.next_seq = held.end;
        }
        let len = (config.mss - self.next_seq % config.mss).min(self.size - self.next_seq);
        let window = u64::from(self.cwnd) * config.mss + if config.widens { self.sacked_bytes } else { 0 };
        let fits = self.next_seq + len - self.cum_ack <= window;
        (len > 0 && fits).then_some((self.next_seq, len as u16, Kind::DATA))
    }

    /// Returns the priority number of a packet at `offset`.
    #[inline]
    pub(super) fn priority(&self, offset: u64, config: &Config) -> u64 {
        match config.priority {
            Priority::Remaining => self.size - self.cum_ack - self.sacked_bytes,
            Priority::Size => self.size,
            Priority::Sent => offset,
        }
    }

    /// Called when a packet is handed to the NIC. Returns whether its payload was sent before.
    pub(super) fn on_sent(&mut self, offset: u64, payload: u16, kind: Kind) -> bool {
        let (end, resent) = (offset + u64::from(payload), offset < self.max_seq);
        match kind {
            Kind::PROBE => self.phase = Phase::Probe { due: false },
            _ => self.next_seq = end,
        }
        self.max_seq = self.max_seq.max(end);
        resent
    }

    /// Handles an ACK. Returns whether the timer must be restarted.
    #[inline(always)]
    pub(super) fn on_ack(&mut self, packet: &Packet, config: &Config) -> bool {
        self.timeouts = 0;
        let probing = matches!(self.phase, Phase::Probe { .. });
        self.phase = Phase::Open;
        let advances = packet.offset > self.cum_ack;
        if advances {
            self.cum_ack = packet.offset;
            self.next_seq = self.next_seq.max(self.cum_ack);
            if !probing {
                self.grow(config);
            }
        }
        let block: Block = packet.get();
        let beyond = block.start.max(self.cum_ack)..block.end;
        if !beyond.is_empty() {
            self.sacked.insert(beyond);
        }
        if !self.sacked.is_empty() {
            self.sacked.remove_below(self.cum_ack);
            self.sacked_bytes = self.sacked.bytes();
        } else {
            self.sacked_bytes = 0;
        }
        advances || probing
    }

    fn grow(&mut self, config: &Config) {
        self.ack_count += 1;
        if self.cwnd < self.ssthresh || self.ack_count >= self.cwnd {
            self.cwnd = self.cwnd.saturating_add(1).min(config.max_cwnd);
            self.ack_count = 0;
        }
    }

    /// Handles the expiry of the timer. The SACK information is kept.
    pub(super) fn on_timeout(&mut self, config: &Config) {
        self.timeouts = self.timeouts.saturating_add(1);
        self.ssthresh = (self.cwnd / 2).max(2);
        self.cwnd = 1;
        self.ack_count = 0;
        self.next_seq = self.cum_ack;
        if config.probe_after > 0 && self.timeouts >= config.probe_after {
            self.phase = Phase::Probe { due: true };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::script::{self, Script};
    use crate::transport::pfabric::Pfabric;
    use crate::transport::pfabric::tests::{MSS, RTO_NS, ack, at, host, segments};
    use base::FlowId;
    use base::params::{Auto, Params as _};

    fn cwnd(host: &Script<Pfabric>) -> u32 {
        host.machine.senders.get(FlowId(0)).expect("open").cwnd
    }

    #[test]
    fn automatic_values_follow_the_network() {
        let auto = |env: Env<'_>| {
            let c = Config::new(&Params::defaults(), &env);
            (c.init_cwnd, c.max_cwnd, c.rto)
        };
        let tree = script::env();
        assert_eq!(auto(tree), (11, 99, Dur::from_ns(RTO_NS)));
        // A fat tree of 194 us.
        assert_eq!(auto(Env { max_rtt: Dur::from_us(194), ..tree }), (17, 99, Dur::from_us(582)));
        assert_eq!(auto(Env { queue_limit: Limit::Bytes(36_000), ..tree }).1, 23);
        assert_eq!(auto(Env { queue_limit: Limit::Packets(8), ..tree }).1, 11);
        assert_eq!(auto(Env { queue_limit: Limit::Unlimited, ..tree }).1, u32::MAX - 1);
        let given = Params { max_cwnd: Auto::Set(5), ..Params::defaults() };
        assert_eq!(Config::new(&given, &tree).init_cwnd, 5);
    }

    #[test]
    fn starts_with_one_bdp_and_its_size_as_priority() {
        let mut h = host(&Params::defaults(), &[100 * MSS]);
        let sent = h.open(0);
        assert_eq!(segments(&sent), (0..11).collect::<Vec<_>>());
        assert!(sent.iter().all(|p| u64::from(p.rank) == 100 * MSS && !p.has(Packet::RETX)));
    }

    #[test]
    fn priority_is_the_bytes_left_when_sent() {
        let mut h = host(&Params::defaults(), &[100 * MSS]);
        h.open(0);
        let sent = h.packet(ack(1, 0..1));
        assert_eq!(segments(&sent), [11, 12]);
        assert!(sent.iter().all(|p| u64::from(p.rank) == 99 * MSS));
        // Bytes acknowledged out of order count too.
        let sent = h.packet(ack(1, 3..4));
        assert_eq!((segments(&sent), u64::from(sent[0].rank)), (vec![13], 98 * MSS));
    }

    #[test]
    fn other_priorities() {
        for (priority, ranks) in [(Priority::Size, [3 * MSS; 3]), (Priority::Sent, [0, MSS, 2 * MSS])] {
            let mut h = host(&Params { priority, ..Params::defaults() }, &[3 * MSS]);
            assert_eq!(h.open(0).iter().map(|p| u64::from(p.rank)).collect::<Vec<_>>(), ranks);
        }
        let mut huge = host(&Params::defaults(), &[1 << 33]);
        assert_eq!(huge.open(0)[0].rank, u32::MAX);
    }

    #[test]
    fn every_advance_grows_the_window_up_to_its_cap() {
        let mut h = host(&Params { max_cwnd: Auto::Set(12), ..Params::defaults() }, &[100 * MSS]);
        h.open(0);
        assert_eq!(h.packet(ack(1, 0..1)).len(), 2);
        assert_eq!(h.packet(ack(2, 0..2)).len(), 1);
        assert_eq!(cwnd(&h), 12);
    }

    #[test]
    fn duplicates_never_retransmit_and_do_not_restart_the_timer() {
        let mut h = host(&Params::defaults(), &[100 * MSS]);
        h.open(0);
        h.now = at(200_000);
        for n in 1..11 {
            // The SACKed bytes make space for the same number of new ones.
            assert_eq!(segments(&h.packet(ack(0, 1..n + 1))), [10 + n]);
        }
        assert_eq!(cwnd(&h), 11);
        assert_eq!(h.advance(at(RTO_NS - 1)), []);
        assert_eq!(segments(&h.advance(at(RTO_NS))), [0]);
    }

    #[test]
    fn an_advance_restarts_the_timer() {
        let mut h = host(&Params::defaults(), &[12 * MSS]);
        h.open(0);
        h.now = at(200_000);
        h.packet(ack(1, 0..1));
        assert_eq!(h.advance(at(200_000 + RTO_NS - 1)), []);
        assert_eq!(segments(&h.advance(at(200_000 + RTO_NS))), [1]);
    }

    #[test]
    fn a_timeout_goes_back_past_sacked_bytes_and_is_never_backed_off() {
        let mut h = host(&Params::defaults(), &[100 * MSS]);
        h.open(0);
        h.packet(ack(0, 1..3));
        for n in 1..=4 {
            let sent = h.advance(at(n * RTO_NS));
            assert_eq!(segments(&sent), [0]);
            assert!(sent[0].has(Packet::RETX) && u64::from(sent[0].rank) == 98 * MSS);
        }
        let s = h.machine.senders.get(FlowId(0)).expect("open");
        assert_eq!((s.cwnd, s.ssthresh, s.timeouts), (1, 2, 4));
        assert_eq!(h.table.get(FlowId(0)).stats.timeouts, 4);
        // Segments 1 and 2 are not retransmitted. The window grows to 2: slow start.
        assert_eq!(segments(&h.packet(ack(3, 0..3))), [3, 4]);
        // At ssthresh: one packet more per two ACKs.
        assert_eq!(segments(&h.packet(ack(4, 0..4))), [5]);
        assert_eq!(segments(&h.packet(ack(5, 0..5))), [6, 7]);
    }

    #[test]
    fn sacked_bytes_may_neither_widen_the_window_nor_be_skipped() {
        let mut h = host(&Params { sacked: Sacked::Ignore, ..Params::defaults() }, &[100 * MSS]);
        h.open(0);
        assert_eq!(h.packet(ack(0, 1..3)), []);
        // The priority number leaves them out.
        let sent = h.advance(at(RTO_NS));
        assert_eq!((segments(&sent), u64::from(sent[0].rank)), (vec![0], 98 * MSS));
        // The receiver has segments 1 and 2, which are retransmitted.
        assert_eq!(segments(&h.packet(ack(1, 0..1))), [1, 2]);
    }

    #[test]
    fn ssthresh_is_half_the_window() {
        let mut h = host(&Params::defaults(), &[100 * MSS]);
        h.open(0);
        h.advance(at(RTO_NS));
        let s = h.machine.senders.get(FlowId(0)).expect("open");
        assert_eq!((s.cwnd, s.ssthresh), (1, 5));
    }

    #[test]
    fn holes_below_sacked_blocks_are_filled_in_order() {
        let mut h = host(&Params::defaults(), &[11 * MSS]);
        h.open(0);
        h.packet(ack(0, 1..3));
        h.packet(ack(0, 4..10));
        // SACKed bytes widen the window wherever they are.
        assert_eq!(segments(&h.advance(at(RTO_NS))), [0, 3]);
        assert_eq!(segments(&h.packet(ack(3, 0..3))), [10]);
    }

    #[test]
    fn five_timeouts_in_a_row_lead_to_probes_and_an_ack_back() {
        let mut h = host(&Params::defaults(), &[100 * MSS]);
        h.open(0);
        h.advance(at(4 * RTO_NS));
        for n in 5..8 {
            let probe = h.advance(at(n * RTO_NS));
            let seen: Vec<_> = probe.iter().map(|p| (p.kind, p.offset, p.payload, p.wire_len, p.rank)).collect();
            assert_eq!(seen, [(Kind::PROBE, 0, 1, 41, 146_000)]);
        }
        // The answer acknowledges one more byte. Slow start begins with one packet, whose segment
        // is a byte short.
        let mut answer = ack(0, 0..0);
        answer.offset = 1;
        let sent = h.packet(answer);
        assert_eq!(sent.iter().map(|p| (p.kind, p.offset, p.payload)).collect::<Vec<_>>(), [(Kind::DATA, 1, 1459)]);
        assert_eq!((cwnd(&h), h.machine.senders.get(FlowId(0)).expect("open").timeouts), (1, 0));
        // The timer started with that packet.
        assert_eq!(h.advance(at(8 * RTO_NS - 1)), []);
        assert_eq!(h.advance(at(8 * RTO_NS)).len(), 1);
    }

    #[test]
    fn any_packet_from_the_receiver_ends_probe_mode() {
        let mut h = host(&Params::defaults(), &[100 * MSS]);
        h.open(0);
        h.advance(at(5 * RTO_NS));
        h.now = at(5 * RTO_NS + 100_000);
        assert_eq!(segments(&h.packet(ack(0, 0..0))), [0]);
        assert_eq!(h.advance(at(6 * RTO_NS + 99_999)), []);
        assert_eq!(segments(&h.advance(at(6 * RTO_NS + 100_000))), [0]);
    }

    #[test]
    fn probe_mode_can_be_off() {
        let mut h = host(&Params { probe_after: 0, ..Params::defaults() }, &[100 * MSS]);
        h.open(0);
        assert_eq!(segments(&h.advance(at(20 * RTO_NS))).len(), 20);
    }
}

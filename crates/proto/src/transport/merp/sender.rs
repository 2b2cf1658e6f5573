//! One flow at its sender (section 4.1): SYN, probes, DATA, FIN.

use super::header::{Answer, BOOST, DET, EsrSync, HIGH, Header, LOW, MIDDLE, UNKNOWN};
use crate::contract::Cx;
use crate::flow::Flow;
use crate::kit::pace::{NEXT, RTO, Ready, Sender};
use crate::kit::rtt::RttConfig;
use crate::packet::{Kind, Packet};
use base::{Dur, FlowId, Fraction, Rate, Time};

/// Number of unanswered SYN probes after which the gap between SYNs grows by the gap at
/// `syn_share`.
const SYN_PATIENCE: u64 = 256;
/// The gap between SYNs never exceeds this many times the gap at `syn_share`.
const SYN_SLOWEST: u64 = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    SynSent,
    Det,
    Data,
    FinSent,
}

/// The configuration of a host.
pub(super) struct Setup {
    pub(super) nic_rate: Rate,
    pub(super) theta: Rate,
    pub(super) theta_share: Fraction,
    pub(super) esr_sync: EsrSync,
    pub(super) det_size: u16,
    pub(super) det_min_gap: Dur,
    pub(super) probe_each_rtt: bool,
    pub(super) probe_lead: bool,
    pub(super) syn_probes: bool,
    /// Largest rate that a flow's SYNs use.
    pub(super) syn_rate: Rate,
    pub(super) rtt: RttConfig,
    pub(super) dead_after: u32,
    pub(super) fin_tries: u32,
    pub(super) mss: u64,
    pub(super) header_bytes: u16,
}

/// A flow at its sender.
pub(super) struct Snd {
    /// DATA packets, pacing, losses. After a probe, the length of the previous packet counts as
    /// zero.
    pub(super) tx: Sender,
    pub(super) mode: Mode,
    /// The granted rate.
    pub(super) rate: Rate,
    /// Round trip of an empty network.
    round_trip: Dur,
    /// Timeouts in a row without any ACK.
    pub(super) silent: u32,
    /// Number of SYNs sent or, later, of FINs.
    pub(super) tries: u32,
    /// Departure of the last DATA or DET that was answered, or of the SYN; `None` while some port does not know the flow.
    answered: Option<Time>,
    /// The earliest time of the next SYN that probes, and the number of such SYNs since a DET or DATA was answered.
    reopen: (Time, u64),
    /// Departure of the packet whose answer was applied last.
    applied: Option<Time>,
    /// The expected rate in that answer; `paused_echo` has the pausing ports.
    expected_echo_ps: u64,
    paused_echo: u32,
}

impl Setup {
    /// Returns the header of a packet that leaves now (section 4.1: asr starts at the capacity of
    /// the adjacent link, esr at infinity).
    fn header(&self, snd: &Snd, bits: u64) -> Header {
        let (expected_ps, expected_echo_ps) = match self.esr_sync {
            EsrSync::Fresh => (0, snd.expected_echo_ps),
            EsrSync::Sticky => (snd.expected_echo_ps, 0),
            EsrSync::Downstream | EsrSync::None => (0, 0),
        };
        Header {
            asr_bps: self.nic_rate.0,
            expected_ps,
            expected_echo_ps,
            theta_bps: self.theta.0,
            rtt_ps: snd.round_trip.ps() + self.lead(snd).ps(),
            pauses: u64::from(snd.paused_echo) << 32,
            bits: bits | self.theta_share.0 << 32,
        }
    }
    /// Returns the mean time that a grant waits for the next probe.
    fn lead(&self, snd: &Snd) -> Dur {
        if snd.mode == Mode::Det && self.probe_lead { self.probe_gap(snd) / 2 } else { Dur::ZERO }
    }
    /// Returns the gap between the probes of a flow.
    fn probe_gap(&self, snd: &Snd) -> Dur {
        let gap = snd.rate.gap(u64::from(self.det_size));
        let gap = if self.probe_each_rtt { gap.min(snd.round_trip) } else { gap };
        gap.max(self.det_min_gap)
    }
    /// Returns a packet without payload.
    pub(super) fn bare(&self, flow: FlowId, kind: Kind, prio: u8) -> Packet {
        Packet { prio, ..Packet::new(flow, kind, self.header_bytes) }
    }
}

impl Snd {
    /// Creates a flow that has sent nothing.
    pub(super) fn new(flow: &Flow, set: &Setup) -> Snd {
        Snd {
            tx: Sender::new(flow, set.mss, &set.rtt),
            mode: Mode::SynSent,
            rate: set.nic_rate,
            round_trip: flow.rtt,
            silent: 0,
            tries: 0,
            answered: None,
            reopen: (Time::ZERO, 0),
            applied: None,
            expected_echo_ps: 0,
            paused_echo: 0,
        }
    }

    /// Returns whether DATA is left to send.
    pub(super) fn has_data(&mut self) -> bool {
        matches!(self.mode, Mode::Det | Mode::Data) && self.tx.packets.peek().is_some()
    }

    /// Returns when the next packet may leave.
    pub(super) fn due(&self, set: &Setup) -> Time {
        match self.mode {
            Mode::Det => self.tx.last.map_or(Time::ZERO, |(at, _)| at.after(set.probe_gap(self))),
            _ => self.tx.due(self.rate),
        }
    }
    /// Queues a flow that has DATA left for the time when its next packet is due.
    pub(super) fn pace(&mut self, set: &Setup, ready: &mut Ready, cx: &mut Cx<'_>) {
        if !self.tx.is_ready() && self.has_data() {
            self.tx.wait(self.due(set), ready, cx);
        }
    }

    pub(super) fn send_syn(&mut self, set: &Setup, bits: u64, cx: &mut Cx<'_>) {
        let mut syn = set.bare(self.tx.flow, Kind::SYN, HIGH);
        syn.set_ext(set.header(self, bits), cx.ext);
        if self.tries > 0 {
            syn.flags |= Packet::RETX;
        }
        self.tries += 1;
        cx.control(syn);
    }
    fn send_fin(&mut self, set: &Setup, cx: &mut Cx<'_>) {
        self.tries += 1;
        cx.arm(self.tx.flow, RTO, cx.now.after(self.tx.rtt.rto()));
        cx.control(set.bare(self.tx.flow, Kind::FIN, MIDDLE));
    }
    /// Returns whether DETs get through: every probe older than a round trip is answered. Without
    /// `syn_probes`, a SYN is only sent for a flow that some port does not know.
    fn is_answered(&self, set: &Setup, now: Time) -> bool {
        self.answered.is_some_and(|left| !set.syn_probes || left.after(set.probe_gap(self)).after(self.round_trip) >= now)
    }
    /// Returns the packet that is due: DATA, lost packets first, or a probe: a DET, or a SYN while
    /// DETs do not get through.
    pub(super) fn transmit(&mut self, set: &Setup, cx: &mut Cx<'_>) -> Packet {
        let mut packet = if self.mode == Mode::Det {
            self.tx.last = Some((cx.now, 0));
            let (gap, (from, syns)) = (set.probe_gap(self), self.reopen);
            if self.is_answered(set, cx.now) || cx.now.after(gap / 2) < from {
                Packet { prio: LOW, ..Packet::new(self.tx.flow, DET, set.det_size) }
            } else {
                let least = set.syn_rate.gap(u64::from(set.header_bytes)).max(gap);
                self.reopen = (cx.now.after(least * (1 + syns / SYN_PATIENCE).min(SYN_SLOWEST)), syns + 1);
                Packet { flags: Packet::RETX, ..set.bare(self.tx.flow, Kind::SYN, HIGH) }
            }
        } else {
            Packet { prio: MIDDLE, ..self.tx.take(set.header_bytes, cx) }
        };
        packet.set_ext(set.header(self, 0), cx.ext);
        packet
    }

    /// Handles a SYNACK, DATAACK, DETACK or BOOST (section 4.1).
    pub(super) fn on_answer(&mut self, packet: &Packet, set: &Setup, cx: &mut Cx<'_>) {
        if self.mode == Mode::FinSent {
            return;
        }
        let answer: Answer = packet.get_ext(cx.ext);
        let tx_time = Time(answer.tx_time_ps);
        self.silent = 0;
        if answer.bits & UNKNOWN != 0 {
            (self.answered, self.reopen.0) = (None, Time::ZERO);
        } else if packet.kind != Kind::SYNACK || self.answered.is_none() {
            self.answered = self.answered.max(Some(tx_time));
            self.reopen = (Time::ZERO, 0);
        }
        if matches!(packet.kind, Kind::ACK | Kind::SYNACK) && !packet.has(Packet::RETX) {
            self.tx.rtt.on_sample(cx.now.since(tx_time), &set.rtt);
        }
        if packet.kind == Kind::ACK {
            self.tx.rtt.end_back_off(&set.rtt);
            self.tx.packets.on_acked(answer.acked / set.mss, packet.offset.div_ceil(set.mss));
        }
        if self.tx.packets.is_done() {
            self.mode = Mode::FinSent;
            self.tries = 0;
            cx.disarm(self.tx.flow, NEXT);
            self.send_fin(set, cx);
            return;
        }
        if self.applied.is_none_or(|newest| tx_time > newest) {
            self.applied = Some(tx_time);
            self.expected_echo_ps = answer.expected_ps;
            self.paused_echo = answer.paused;
            self.rate = Rate(answer.asr_bps.max(1));
            let granted = packet.kind == BOOST || answer.asr_bps > answer.theta_bps;
            self.mode = if granted { Mode::Data } else { Mode::Det };
        }
        self.tx.arm_rto(cx);
    }

    /// Handles the expiry of the retransmission timer of an open flow.
    pub(super) fn on_rto(&mut self, set: &Setup, cx: &mut Cx<'_>) {
        match self.mode {
            Mode::SynSent => {
                self.tx.back_off(&set.rtt, cx);
                cx.arm(self.tx.flow, RTO, cx.now.after(self.tx.rtt.rto()));
                let dead = self.tries.is_multiple_of(set.dead_after);
                self.send_syn(set, if dead { Header::REROUTE } else { 0 }, cx);
            }
            Mode::FinSent => {
                self.tx.back_off(&set.rtt, cx);
                self.send_fin(set, cx);
            }
            Mode::Det | Mode::Data => {
                if self.tx.on_rto(&set.rtt, cx) {
                    self.silent += 1;
                    if self.silent.is_multiple_of(set.dead_after) {
                        self.send_syn(set, Header::REROUTE, cx);
                    }
                }
            }
        }
    }
}

//! The sending half of a connection: its subflows, and the assignment of bytes to them.

use super::label::{Label, Paths};
use super::lia::{self, Lia, Share};
use crate::contract::Cx;
use crate::flow::Sample;
use crate::kit::tcp::sender::{Restart, Segment, Sender};
use crate::kit::tcp::{Answer, Blocks, Config, Echo, Ecn, syn};
use crate::packet::Packet;
use crate::ranges::Ranges;
use base::{FlowId, Time};
use std::collections::VecDeque;
use std::ops::Range;

/// The configuration of all connections of a host.
pub struct Rules {
    /// The configuration of each subflow's sender.
    pub config: Config,
    /// How the windows of subflows grow.
    pub lia: Lia,
    /// How subflows get their paths.
    pub paths: Paths,
    /// Whether the other subflows also send the unacknowledged bytes of a subflow after its
    /// timeout.
    pub reinject: bool,
}

/// A connection at its sender.
pub struct Connection {
    flow: FlowId,
    size: u64,
    /// The first byte that is not assigned to a subflow.
    next: u64,
    /// The receiver has all bytes below (DATA_ACK).
    una: u64,
    subflows: Vec<Subflow>,
    /// The subflow whose turn it is to send.
    turn: usize,
    alpha: u64,
    /// Bytes to be acknowledged before `alpha` is recomputed.
    until_alpha: u64,
    /// The connection is in the queue of those that may send.
    pub ready: bool,
}

/// A subflow: a TCP sender that pulls its bytes from the connection.
struct Subflow {
    sender: Sender<Share>,
    /// The bytes of the connection for the subflow's bytes, from the first unacknowledged one on.
    mapped: VecDeque<Mapping>,
    /// Bytes of the connection that the other subflows must send too.
    lost: Ranges,
    /// When its retransmission timer expires; `Time::MAX` while it is off.
    due: Time,
    /// The subflow had no segment to send when it was last asked.
    idle: bool,
}

/// A range of a subflow's bytes that is contiguous in the connection too.
struct Mapping {
    at: u64,
    data: Range<u64>,
}

/// Bytes that a subflow could send.
struct Fresh {
    data: Range<u64>,
    /// The subflow that lost them; `None` for bytes never sent.
    of: Option<usize>,
}

/// The effect of an ACK on the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckResult {
    /// The receiver has all bytes.
    Done,
    /// Duplicate ACKs revealed a lost segment.
    Loss,
    /// Neither.
    Other,
}

impl Connection {
    /// Creates a connection of `subflows` subflows that have sent nothing.
    pub fn new(flow: FlowId, subflows: u8, rules: &Rules, cx: &Cx<'_>) -> Connection {
        let subflow = |_| {
            let mut sender = Sender::new(cx.flow(flow), &rules.config, &rules.lia);
            sender.end = 0;
            Subflow { sender, mapped: VecDeque::new(), lost: Ranges::default(), due: Time::MAX, idle: false }
        };
        Connection {
            flow,
            size: cx.flow(flow).size_bytes,
            next: 0,
            una: 0,
            subflows: (0..subflows).map(subflow).collect(),
            turn: 0,
            alpha: lia::alpha(std::iter::empty()),
            until_alpha: 0,
            ready: false,
        }
    }

    /// Returns the packet that opens a subflow.
    pub fn open(&mut self, number: u8, resent: bool, rules: &Rules, cx: &Cx<'_>) -> Packet {
        let subflow = &mut self.subflows[usize::from(number)];
        subflow.due = cx.now.after(subflow.sender.rtt.rto());
        let mut syn = syn(self.flow, Ecn::Off, &rules.config, resent);
        syn.words[0] = Label { subflow: number, at: 0 }.word();
        syn.path_tag = rules.paths.tag(self.flow, number, cx);
        syn
    }

    /// Handles a SYNACK. Returns whether it opens the subflow.
    pub fn on_synack(&mut self, packet: &Packet, rules: &Rules, cx: &Cx<'_>) -> bool {
        let echo = Echo::read(packet);
        let Some(subflow) = self.subflows.get_mut(usize::from(Label::of(echo.feedback).subflow)) else { return false };
        if !subflow.sender.on_synack(echo, cx.now, &rules.config) {
            return false;
        }
        (subflow.due, subflow.idle) = (Time::MAX, false);
        self.until_alpha = 0;
        true
    }

    /// Handles an ACK. Its offset is the DATA_ACK.
    pub fn on_ack(&mut self, mut answer: Answer, blocks: Option<&Blocks>, rules: &Rules, cx: &Cx<'_>) -> AckResult {
        self.una = self.una.max(answer.next);
        if self.una == self.size {
            return AckResult::Done;
        }
        let label = Label::of(answer.echo.feedback);
        answer.next = label.at;
        if self.until_alpha == 0 {
            self.couple();
        }
        let total = self.open_subflows().map(Subflow::window).sum();
        let Some(subflow) = self.subflows.get_mut(usize::from(label.subflow)) else { return AckResult::Other };
        let sender = &mut subflow.sender;
        (sender.control.alpha, sender.control.total) = (self.alpha, total);
        let before = sender.snd_una;
        let acked = sender.on_ack(&answer, blocks, cx.flow(self.flow), cx.now, &rules.config, &rules.lia);
        while subflow.mapped.front().is_some_and(|mapping| mapping.end() <= sender.snd_una) {
            subflow.mapped.pop_front();
        }
        if acked.timer == Restart::Restart {
            // RFC 6298 (5.3), (5.2).
            subflow.due = if sender.flight() > 0 { cx.now.after(sender.rtt.rto()) } else { Time::MAX };
        }
        subflow.idle = false;
        // Once per window of the connection, and on every loss.
        self.until_alpha = self.until_alpha.saturating_sub(sender.snd_una - before);
        if acked.fast_retransmit {
            self.until_alpha = 0;
            return AckResult::Loss;
        }
        AckResult::Other
    }

    /// Returns the next subflow whose retransmission timer has expired.
    pub fn take_due(&mut self, now: Time) -> Option<u8> {
        let number = self.subflows.iter().position(|subflow| subflow.due <= now)?;
        self.subflows[number].due = Time::MAX;
        Some(number as u8)
    }

    /// Handles the expiry of a subflow's retransmission timer. Returns the SYN to retransmit if the
    /// subflow is not open.
    pub fn on_timeout(&mut self, number: u8, rules: &Rules, cx: &Cx<'_>) -> Option<Packet> {
        let (una, several) = (self.una, self.subflows.len() > 1);
        let subflow = &mut self.subflows[usize::from(number)];
        subflow.idle = false;
        if subflow.sender.is_opening() {
            subflow.sender.on_syn_timeout(&rules.config);
            return Some(self.open(number, true, rules, cx));
        }
        subflow.sender.on_timeout(cx.now, &rules.config, &rules.lia);
        self.until_alpha = 0;
        if rules.reinject && several {
            for mapping in &subflow.mapped {
                let data = mapping.rest(subflow.sender.snd_una);
                subflow.lost.insert(data.start.max(una)..data.end.max(una));
            }
            self.subflows.iter_mut().for_each(|subflow| subflow.idle = false);
        }
        None
    }

    /// Returns the earliest time at which a retransmission timer expires; `Time::MAX` if none runs.
    pub fn due(&self) -> Time {
        self.subflows.iter().map(|subflow| subflow.due).min().unwrap_or(Time::MAX)
    }

    /// Returns the first bytes that are not assigned to a subflow, unless no subflow can send.
    pub fn next_bytes(&self, smss: u64) -> Option<Range<u64>> {
        self.subflows.iter().any(|subflow| !subflow.idle).then(|| self.next..(self.next + smss).min(self.size))
    }

    /// Returns the next packet, of the subflow whose turn it is, and the number of its bytes that
    /// another subflow has lost.
    pub fn poll(&mut self, rules: &Rules, cx: &Cx<'_>) -> Option<(Packet, u64)> {
        for _ in 0..self.subflows.len() {
            let number = self.turn;
            self.turn = (number + 1) % self.subflows.len();
            if !self.subflows[number].idle {
                if let Some(sent) = self.next_packet(number, rules, cx) {
                    return Some(sent);
                }
                self.subflows[number].idle = true;
            }
        }
        None
    }

    fn next_packet(&mut self, number: usize, rules: &Rules, cx: &Cx<'_>) -> Option<(Packet, u64)> {
        let (segment, reinjected) = self.next_segment(number, &rules.config)?;
        let subflow = &mut self.subflows[number];
        let Mapping { data, .. } = subflow.mapping(segment.offset);
        let label = Label { subflow: number as u8, at: segment.offset };
        let mut packet = Packet::data(self.flow, data.start, segment.len, rules.config.header);
        packet.flags = subflow.sender.on_sent(&segment, Ecn::Off) | if reinjected { Packet::RETX } else { 0 };
        packet.words[0] = label.word();
        packet.path_tag = rules.paths.tag(self.flow, label.subflow, cx);
        // RFC 6298 (5.1).
        if subflow.due == Time::MAX {
            subflow.due = cx.now.after(subflow.sender.rtt.rto());
        }
        Some((packet, if reinjected { u64::from(segment.len) } else { 0 }))
    }

    /// Returns the next segment of a subflow, which lies within one mapping, and whether another
    /// subflow has lost it. A subflow that retransmits sends its own bytes first; otherwise it
    /// takes more bytes, if its window lets it send them now.
    fn next_segment(&mut self, number: usize, config: &Config) -> Option<(Segment, bool)> {
        let fresh = self.fresh(number, config.smss);
        let subflow = &mut self.subflows[number];
        let sender = &mut subflow.sender;
        let behind = sender.snd_nxt < sender.snd_max || fresh.is_none();
        let mut segment = if behind { sender.next_segment(config) } else { None };
        if segment.is_none()
            && let Some(Fresh { data, of }) = fresh
        {
            let end = sender.end;
            sender.end += data.end - data.start;
            segment = sender.next_segment(config);
            if segment.as_ref().is_some_and(|segment| segment.offset == end) {
                subflow.map(end, data.clone());
                match of {
                    None => self.next = data.end,
                    Some(loser) => self.subflows[loser].lost.remove_below(data.end),
                }
                return segment.map(|segment| (segment, of.is_some()));
            }
            sender.end = end;
        }
        let mut segment = segment?;
        let Mapping { data, .. } = subflow.mapping(segment.offset);
        segment.len = segment.len.min((data.end - data.start).min(u64::from(u16::MAX)) as u16);
        Some((segment, false))
    }

    /// Returns the bytes that a subflow could take: the first that another subflow has lost, or the
    /// first that were never sent.
    fn fresh(&mut self, number: usize, smss: u64) -> Option<Fresh> {
        let mut first: Option<Fresh> = None;
        for (loser, subflow) in
            self.subflows.iter_mut().enumerate().filter(|(loser, subflow)| *loser != number && !subflow.lost.is_empty())
        {
            subflow.lost.remove_below(self.una);
            let Some(data) = subflow.lost.iter().next().cloned() else { continue };
            if first.as_ref().is_none_or(|first| data.start < first.data.start) {
                first = Some(Fresh { data: data.start..data.end.min(data.start + smss), of: Some(loser) });
            }
        }
        let unsent = self.next..self.size.min(self.next + smss);
        first.or_else(|| (!unsent.is_empty()).then_some(Fresh { data: unsent, of: None }))
    }

    fn open_subflows(&self) -> impl Iterator<Item = &Subflow> + Clone {
        self.subflows.iter().filter(|subflow| !subflow.sender.is_opening())
    }

    /// Recomputes `alpha`.
    fn couple(&mut self) {
        let measured = self.open_subflows().filter(|subflow| subflow.sender.rtt.is_sampled());
        self.alpha = lia::alpha(measured.map(|subflow| (subflow.window(), subflow.sender.rtt.srtt())));
        self.until_alpha = self.open_subflows().map(Subflow::window).sum();
    }

    /// Returns the sample of the connection: the sums of the windows and of the bytes in flight of
    /// its subflows, and the shortest smoothed round trip.
    pub fn sample(&self) -> Sample {
        let sum = |of: fn(&Subflow) -> u64| self.subflows.iter().map(of).sum();
        let ssthresh = self.subflows.iter().map(|subflow| subflow.sender.window().ssthresh).try_fold(0, u64::checked_add);
        let measured = self.subflows.iter().filter(|subflow| subflow.sender.rtt.is_sampled());
        Sample {
            cwnd_bytes: sum(|subflow| subflow.sender.window().cwnd),
            ssthresh_bytes: ssthresh.unwrap_or(0),
            srtt: measured.map(|subflow| subflow.sender.rtt.srtt()).min().unwrap_or_default(),
            in_flight_bytes: sum(|subflow| subflow.sender.flight()),
            ..Sample::default()
        }
    }
}

impl Subflow {
    /// Returns the window that counts in the coupling: in fast recovery the slow-start threshold.
    fn window(&self) -> u64 {
        let window = self.sender.window;
        if self.sender.is_recovering() { window.ssthresh } else { window.cwnd }
    }

    /// Records the bytes of the connection for the subflow's bytes from `at` on.
    fn map(&mut self, at: u64, data: Range<u64>) {
        match self.mapped.back_mut() {
            Some(last) if last.data.end == data.start => last.data.end = data.end,
            _ => self.mapped.push_back(Mapping { at, data }),
        }
    }

    /// Returns the mapping from a byte of the subflow on.
    fn mapping(&self, at: u64) -> Mapping {
        let place = self.mapped.partition_point(|mapping| mapping.end() <= at);
        Mapping { at, data: self.mapped[place].rest(at) }
    }
}

impl Mapping {
    fn end(&self) -> u64 {
        self.at + self.data.end - self.data.start
    }
    /// Returns the bytes of the connection from byte `at` of the subflow on.
    fn rest(&self, at: u64) -> Range<u64> {
        self.data.start + at.saturating_sub(self.at)..self.data.end
    }
}

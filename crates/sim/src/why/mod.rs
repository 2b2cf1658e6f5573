//! Breaks down the completion time of a flow: each picosecond from its start to its last byte is
//! attributed to one part.
//!
//! The run is repeated with a trace of the flow's packets. The critical packets are followed
//! backwards, beginning with the packet that finished the flow: a packet over its links to the time at
//! which the NIC took it; from there to the event that the sender had waited for. This event is the NIC
//! itself, a timer, or a reply and with it the packet that caused the reply. This goes on to the start.
//!
//! | from, backwards | to | part |
//! |---|---|---|
//! | arrival at a host or switch | start of transmission | transmission, propagation |
//! | start of transmission | arrival at the port | paused while the far end pauses the port for this packet, else queue of the port; at the NIC queue only while it sends other flows' packets, else transmission |
//! | arrival at the port | arrival at the switch | reordering: the router held the packet in the switch |
//! | hand-over to the NIC of bytes sent before | first hand-over of these bytes | retransmission: the timer that expired, and where the packet was lost |
//! | hand-over caused by a reply | arrival, at the receiver, of the packet that caused the reply | pacing or window |
//! | any other hand-over | hand-over of the previous packet | transmission and queue while the NIC sends, else pacing or window |
//! | hand-over of the first packet | start | transmission, queue, and pacing or window; before them a handshake, and the retransmissions of its packets |

mod around;
mod breakdown;
mod held;

pub use breakdown::{Breakdown, LossCause, Span, TimePart};

use crate::outcome::{FlowRow, Outcome};
use crate::probe::{PacketTrace, Seen};
use crate::progress::{Continue, Progress, RunError};
use crate::run::run_with;
use crate::why::held::Held;
use base::{FlowId, HostId, LinkId, Time};
use engine::Engine;
use fabric::net::Net;
use fabric::routes::Routes;
use proto::{Kind, Packet, Timeout, Timers, Transport as _};
use scenario::RunSpec;
use std::collections::BTreeMap;
use std::ops::Range;

/// A flow to trace, and the time in which it was open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Life {
    /// The flow.
    pub flow: FlowId,
    /// The time from its start to its finish; to `Time::MAX` if it did not finish.
    pub open: Range<Time>,
}

/// A run that was repeated with a trace of some flows.
pub struct Watched<'a> {
    pub(crate) spec: &'a RunSpec,
    /// The traced flows.
    pub(crate) lives: Vec<Life>,
    /// The outcome of the repeated run.
    pub outcome: Outcome,
    /// All packets of the traced flows and all orders to pause, and the packets of all flows at the
    /// senders' NICs while the traced flows were open.
    pub(crate) seen: Vec<Seen>,
}

/// Repeats a run and keeps the packets of some flows. `lives` has the times of the first run in which
/// the flows were open.
pub fn watch<'a>(
    spec: &'a RunSpec,
    lives: &[Life],
    control: &mut dyn FnMut(Progress) -> Continue,
) -> Result<Watched<'a>, RunError> {
    let all = spec.flows().map_err(RunError::Workload)?;
    // A packet that the NIC is sending when a flow starts began its transmission before.
    let nics = |life: &Life| {
        let nics = all.get(life.flow.index()).map(|flow| spec.net.nics(flow.src));
        let open = life.open.clone();
        nics.into_iter().flatten().map(move |nic| {
            let longest = spec.net.link(nic).rate.tx_time(2 * u64::from(spec.mtu_bytes));
            (nic, open.start.before(longest)..open.end)
        })
    };
    let probe = PacketTrace::of(lives.iter().map(|life| life.flow).chain([held::ORDERS]), lives.iter().flat_map(nics));
    // The scenario's own time series and traces do not change the run, so they are left out.
    let plain = RunSpec { sample: None, ..spec.clone() };
    let (outcome, packets) = run_with::<Engine<_>, _>(&plain, probe, control)?;
    Ok(Watched { spec, lives: lives.to_vec(), outcome, seen: packets.sorted() })
}

/// Fails if the time of flows cannot be broken down, since their packets take several paths at once.
pub fn explains(spec: &RunSpec) -> Result<(), RunError> {
    let transport = &spec.system.transport;
    if transport.meta().many_paths { Err(RunError::Subflows(transport.name())) } else { Ok(()) }
}

impl Watched<'_> {
    /// Returns the breakdowns of the traced flows that finished, by id.
    ///
    /// Fails if packets of a flow take several paths at once.
    pub fn breakdowns(&self) -> Result<Vec<Breakdown>, RunError> {
        let spec = self.spec;
        explains(spec)?;
        let rows = self.lives.iter().filter_map(|life| self.outcome.flows.get(life.flow.index()));
        let mut chosen: Vec<&FlowRow> = rows.collect();
        chosen.sort_by_key(|row| row.flow_id);
        chosen.dedup_by_key(|row| row.flow_id);
        let routes = Routes::new(&spec.net, &[]);
        let envs = spec.envs(&routes);
        let held = Held::new(spec, &envs, &self.seen);
        let breakdown = |row: &FlowRow| {
            let (start, finish) = (Time(row.start_ps?), Time(row.finish_ps?));
            let timers = spec.system.transport.build(&envs.transport(HostId(row.src))).timers();
            let mut back = Backwards { cursor: finish, start, spans: Vec::new() };
            Trace::new(&spec.net, &held, row, timers, &self.seen).follow(&mut back);
            Some(Breakdown { flow: row.clone(), spans: back.forwards() })
        };
        Ok(chosen.into_iter().filter_map(breakdown).collect())
    }
}

/// The intervals of a flow, built from the end to the start.
struct Backwards {
    /// Time from which everything is already attributed.
    cursor: Time,
    start: Time,
    spans: Vec<Span>,
}

impl Backwards {
    /// Attributes the time from `begin` to the cursor to `part`, and moves the cursor to `begin`.
    fn attribute(&mut self, part: TimePart, begin: Time) {
        let begin = begin.max(self.start);
        assert!(begin <= self.cursor, "{} begins at {begin}, after {}", part.name(), self.cursor);
        match self.spans.last_mut() {
            _ if begin == self.cursor => {}
            Some(last) if last.part == part => last.begin = begin,
            _ => self.spans.push(Span { part, begin, end: self.cursor }),
        }
        self.cursor = begin;
    }
    /// Returns all intervals, in order of time.
    fn forwards(mut self) -> Vec<Span> {
        assert!(self.cursor == self.start, "the time from {} to {} is not attributed to any part", self.start, self.cursor);
        self.spans.reverse();
        self.spans
    }
}

/// Identifies a packet of a flow: the time at which its NIC took it, whether it belongs to the reverse
/// direction, its kind, its offset and its payload.
type Name = (Time, bool, Kind, u64, u16);

fn name(packet: &Packet) -> Name {
    (packet.sent_at, packet.has(Packet::BACK), packet.kind, packet.offset, packet.payload)
}

/// A packet of the flow and the links that it took.
#[derive(Clone, Debug)]
struct Sent {
    packet: Packet,
    /// Its transmissions, in order.
    hops: Vec<Seen>,
    /// When the packet reached its host, if it did.
    arrival: Option<Time>,
}

/// A transmission of one of the sender's NICs, or a time in which the switch paused the NIC for this
/// flow's packets.
#[derive(Clone, Copy, Debug)]
struct Busy {
    begin: Time,
    end: Time,
    /// The part of this flow's time to which it belongs.
    part: TimePart,
}

/// Returns, per data packet, the index of the first packet that held its first byte.
fn firsts(data: &[Sent]) -> Vec<usize> {
    // By the offset of bytes that no earlier packet held: their end, and the packet that holds them.
    let mut held: BTreeMap<u64, (u64, usize)> = BTreeMap::new();
    let mut first = Vec::with_capacity(data.len());
    for (i, Packet { offset, payload, .. }) in data.iter().map(|sent| sent.packet).enumerate() {
        let before = held.range(..=offset).next_back().filter(|(_, (end, _))| *end > offset).map(|(_, (_, whose))| *whose);
        first.push(before.unwrap_or(i));
        if before.is_none() {
            held.insert(offset, (offset + u64::from(payload), i));
        }
    }
    first
}

/// The packets of one flow.
struct Trace<'a> {
    net: &'a Net,
    held: &'a Held,
    nic: LinkId,
    /// Data packets in the order in which the NIC took them.
    data: Vec<Sent>,
    /// The sender's control packets in the order in which the NIC took them.
    control: Vec<Sent>,
    /// Packets that reached the sender, by arrival.
    answers: Vec<Sent>,
    /// By NIC of the sender: when it sent or was paused, in order.
    busy: BTreeMap<LinkId, Vec<Busy>>,
    /// Data packets that arrived, as (arrival, index in `data`), in order.
    arrived: Vec<(Time, usize)>,
    /// Per data packet: the index of the first packet that held its first byte.
    first: Vec<usize>,
    /// The port where a data packet was trimmed, by the fields that a trimmed packet keeps.
    trimmed: BTreeMap<(Time, u64), LinkId>,
    timers: Timers,
    /// Whether any timer of the sender expired.
    expired: bool,
}

impl<'a> Trace<'a> {
    fn new(net: &'a Net, held: &'a Held, row: &FlowRow, timers: Timers, seen: &[Seen]) -> Trace<'a> {
        let [src, dst] = [row.src, row.dst].map(|host| net.hosts()[host as usize]);
        let nic = LinkId(net.out_base(src));
        let mut ways: BTreeMap<Name, Vec<Seen>> = BTreeMap::new();
        for seen in seen.iter().filter(|seen| seen.packet.flow.0 == row.flow_id) {
            ways.entry(name(&seen.packet)).or_default().push(*seen);
        }
        let end = |seen: &Seen| seen.start + net.link(seen.link).rate.tx_time(seen.packet.wire_len.into());
        let sent = |hops: Vec<Seen>| {
            let last = hops[hops.len() - 1];
            let link = net.link(last.link);
            let arrival = end(&last) + link.delay;
            let to = if last.packet.has(Packet::BACK) { src } else { dst };
            let whole = link.to == to && arrival < last.until && hops.iter().all(|hop| !hop.dropped);
            Sent { packet: hops[0].packet, hops, arrival: whole.then_some(arrival) }
        };
        let mut all: Vec<Sent> = ways.into_values().map(sent).collect();
        // A packet that a port trims or returns continues with another kind. For most transports it is
        // lost.
        let trimmed = all.iter().filter(|sent| sent.packet.kind == Kind::TRIMMED);
        let trimmed = trimmed.map(|sent| ((sent.packet.sent_at, sent.packet.offset), sent.hops[0].link)).collect();
        all.retain(|sent| !sent.packet.kind.is_refused());
        all.sort_by_key(|sent| (sent.packet.sent_at, sent.hops[0].start));
        let (back, out): (Vec<Sent>, Vec<Sent>) = all.into_iter().partition(|sent| sent.packet.has(Packet::BACK));
        let (data, control): (Vec<Sent>, Vec<Sent>) = out.into_iter().partition(|sent| sent.packet.payload > 0);
        let mut answers: Vec<Sent> = back.into_iter().filter(|sent| sent.arrival.is_some()).collect();
        answers.sort_by_key(|sent| sent.arrival);
        let own = |seen: &Seen| seen.packet.flow.0 == row.flow_id;
        let mut busy: BTreeMap<LinkId, Vec<Busy>> = net.out_links(src).map(|nic| (nic, Vec::new())).collect();
        for seen in seen.iter().filter(|seen| !seen.dropped) {
            if let Some(busy) = busy.get_mut(&seen.link) {
                let part = if own(seen) { TimePart::Transmission } else { TimePart::Queue(seen.link) };
                busy.push(Busy { begin: seen.start, end: end(seen).min(seen.until), part });
            }
        }
        for (nic, busy) in &mut busy {
            if let Some(first) = data.first() {
                let idle = held.idle(*nic, &first.packet, &busy.iter().map(|busy| busy.begin..busy.end).collect::<Vec<_>>());
                busy.extend(idle.into_iter().map(|held| Busy { begin: held.start, end: held.end, part: TimePart::Paused(*nic) }));
                busy.sort_by_key(|busy| busy.begin);
            }
        }
        let mut arrived: Vec<(Time, usize)> = data.iter().zip(0..).filter_map(|(sent, i)| Some((sent.arrival?, i))).collect();
        arrived.sort_unstable();
        let first = firsts(&data);
        Trace { net, held, nic, data, control, answers, busy, arrived, first, trimmed, timers, expired: row.timeouts > 0 }
    }

    /// Follows the critical packets from the cursor, which is the finish of the flow, to its start.
    fn follow(&self, back: &mut Backwards) {
        let Some(mut at) = self.arrived_by(back.cursor) else { return self.opening(back) };
        loop {
            // The receiver caused the time between the arrival and the cursor.
            back.attribute(TimePart::Wait, self.data[at].arrival.unwrap_or(back.cursor));
            self.way(&self.data[at], back);
            match self.sender(at, back) {
                Some(answered) => at = answered,
                None => return,
            }
        }
    }

    /// Returns the NIC that sent a data packet.
    fn nic_of(&self, data: usize) -> LinkId {
        self.data[data].hops[0].link
    }

    /// Returns the data packet that was the last to arrive by a time.
    fn arrived_by(&self, at: Time) -> Option<usize> {
        let n = self.arrived.partition_point(|(arrival, _)| *arrival <= at);
        self.arrived[..n].last().map(|(_, i)| *i)
    }

    /// Attributes the time of a packet from its arrival back to the time at which the NIC took it.
    fn way(&self, sent: &Sent, back: &mut Backwards) {
        for (i, hop) in sent.hops.iter().enumerate().rev() {
            let link = self.net.link(hop.link);
            let end = hop.start + link.rate.tx_time(hop.packet.wire_len.into());
            back.attribute(TimePart::Propagation, end);
            back.attribute(TimePart::Transmission, hop.start);
            match i {
                0 => self.at_nic(hop.link, back, sent.packet.sent_at, TimePart::Queue(hop.link)),
                _ => {
                    let before = &sent.hops[i - 1];
                    let came = self.net.link(before.link);
                    let arrival = before.start + came.rate.tx_time(before.packet.wire_len.into()) + came.delay;
                    // A packet that the router has held in the switch arrives at the port when it is released.
                    let at_port = hop.packet.arrival.max(arrival);
                    for held in self.held.before(hop.link, &before.packet, back.cursor).take_while(|held| held.end > at_port) {
                        back.attribute(TimePart::Queue(hop.link), held.end.min(back.cursor));
                        back.attribute(TimePart::Paused(hop.link), held.start.max(at_port));
                    }
                    back.attribute(TimePart::Queue(hop.link), at_port);
                    back.attribute(TimePart::Reordering(hop.link), arrival);
                }
            }
        }
    }

    /// Attributes the sender's time from the hand-over of a packet back to the arrival of another data
    /// packet, which is returned, or to the start.
    fn sender(&self, mut at: usize, back: &mut Backwards) -> Option<usize> {
        loop {
            if self.first[at] < at {
                at = self.resent(at, back);
            }
            let Some(before) = at.checked_sub(1) else {
                self.opening(back);
                return None;
            };
            let (nic, since) = (self.nic_of(at), self.data[before].packet.sent_at);
            if let Some(answer) = self.set_off(nic, since, back.cursor)
                && let Some(answered) = self.arrived_by(answer.packet.sent_at)
            {
                self.at_nic(nic, back, answer.arrival.unwrap_or(since), TimePart::Wait);
                return Some(answered);
            }
            self.at_nic(nic, back, since, TimePart::Wait);
            at = before;
        }
    }

    /// Attributes the time between the transmissions of a packet's first byte, from the last back to the
    /// first, which is returned.
    fn resent(&self, mut at: usize, back: &mut Backwards) -> usize {
        let (first, byte) = (self.first[at], self.data[at].packet.offset);
        while at > first {
            let holds = |i: &usize| {
                let packet = self.data[*i].packet;
                packet.bytes().contains(&byte)
            };
            let before = (first..at).rev().find(holds).unwrap_or(first);
            let sent = &self.data[before];
            let loss = LossCause { timer: self.expiry(before, at), port: self.lost_at(sent) };
            back.attribute(TimePart::Retransmission(loss), sent.packet.sent_at);
            at = before;
        }
        at
    }

    /// Returns the port that dropped or trimmed a packet, or whose link lost it.
    fn lost_at(&self, sent: &Sent) -> Option<LinkId> {
        let trimmed = || self.trimmed.get(&(sent.packet.sent_at, sent.packet.offset)).copied();
        let last = || sent.hops.last().map(|hop| hop.link);
        if sent.arrival.is_some() { None } else { trimmed().or_else(last) }
    }

    /// Returns the timer that ended the longest silence between two hand-overs, if there is one. A silence
    /// is a time without hand-overs and replies. It must be as long as the timer if a reply caused the
    /// hand-over after it, and half as long otherwise. A timer may have been restarted before the silence.
    fn expiry(&self, from: usize, to: usize) -> Option<Timeout> {
        let (begin, end) = (self.data[from].packet.sent_at, self.data[to].packet.sent_at);
        let sent = self.data[from..=to].iter().map(|sent| sent.packet.sent_at);
        let first = self.answers.partition_point(|answer| answer.arrival <= Some(begin));
        let answers = self.answers[first..].iter().filter_map(|answer| answer.arrival).take_while(|arrival| *arrival < end);
        let mut moments: Vec<Time> = sent.chain(answers).collect();
        moments.sort_unstable();
        let (since, until) = moments.windows(2).map(|pair| (pair[0], pair[1])).max_by_key(|(a, b)| *b - *a)?;
        let sampled = self.answers.first().is_some_and(|answer| answer.arrival <= Some(since));
        let timer = if sampled { self.timers.least } else { self.timers.first.or(self.timers.least) }?;
        let enough = if self.set_off(self.nic_of(to), since, until).is_some() { timer.after } else { timer.after / 2 };
        (self.expired && until - since >= enough).then_some(timer)
    }

    /// Returns the reply after `since` that caused a hand-over: the earliest reply after which the NIC was
    /// never idle. `None` if the NIC was never idle since the packet before: then the sender waited for the
    /// NIC, not for a reply.
    fn set_off(&self, nic: LinkId, since: Time, until: Time) -> Option<&Sent> {
        let busy_from = Some(self.busy_before(nic, until)).filter(|from| *from > since)?;
        let first = self.answers.partition_point(|answer| answer.arrival <= Some(since));
        let after = self.answers[first..].iter().take_while(|answer| answer.arrival <= Some(until));
        after.into_iter().find(|answer| answer.arrival >= Some(busy_from))
    }

    /// Returns the time since which the NIC has been busy without interruption; `at` if it is idle at `at`.
    fn busy_before(&self, nic: LinkId, mut at: Time) -> Time {
        let all = self.busy.get(&nic).map_or(&[][..], |busy| busy);
        let first = all.partition_point(|busy| busy.begin < at);
        for busy in all[..first].iter().rev() {
            if busy.end < at {
                break;
            }
            at = busy.begin;
        }
        at
    }

    /// Attributes the time from `begin` to the cursor at a NIC: to transmission while the NIC sent this
    /// flow's packets, to its queue while it sent packets of other flows, to the pause while it was paused
    /// for this flow's packets, and otherwise to `idle`.
    fn at_nic(&self, nic: LinkId, back: &mut Backwards, begin: Time, idle: TimePart) {
        let begin = begin.max(back.start);
        let all = self.busy.get(&nic).map_or(&[][..], |busy| busy);
        let first = all.partition_point(|busy| busy.begin < back.cursor);
        for busy in all[..first].iter().rev() {
            if busy.end <= begin {
                break;
            }
            back.attribute(idle, busy.end.min(back.cursor).max(begin));
            back.attribute(busy.part, busy.begin.max(begin));
        }
        back.attribute(idle, begin);
    }

    /// Attributes the time before the first data packet: a handshake, if a reply arrived, and the time
    /// before and after it.
    fn opening(&self, back: &mut Backwards) {
        let answer = self.answers.first().filter(|answer| answer.arrival <= Some(back.cursor));
        let nic = if self.data.is_empty() { self.nic } else { self.nic_of(0) };
        if let Some(answer) = answer {
            self.at_nic(nic, back, answer.arrival.unwrap_or(back.start), TimePart::Wait);
            let mut asked = self.control.iter().filter(|sent| sent.arrival.is_some_and(|arrival| arrival <= answer.packet.sent_at));
            let asked = asked.next_back().map_or(back.start, |sent| sent.packet.sent_at);
            back.attribute(TimePart::Handshake, asked);
            let first = self.control.first().map_or(back.start, |sent| sent.packet.sent_at.min(asked));
            let loss = LossCause { timer: self.timers.first, port: self.control.iter().find_map(|sent| self.lost_at(sent)) };
            back.attribute(TimePart::Retransmission(loss), first);
        }
        self.at_nic(nic, back, back.start, TimePart::Wait);
    }
}

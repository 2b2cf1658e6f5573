//! Where the time of a flow went: from its start to its last byte, every picosecond is a part's.
//!
//! The run is done again with a trace of the flow's packets. From the packet that finished the flow the critical packets are followed
//! backwards: a packet over its links to the moment at which the NIC took it; from there to what the sender had waited for, which is the
//! NIC itself, a timer, or an answer and with it the packet that was answered; and so on to the start.
//!
//! | from, backwards | to | part |
//! |---|---|---|
//! | arrival at a host or switch | start of transmission | transmission, propagation |
//! | start of transmission | arrival at the port | paused while the far end has the port hold the packet back, else queue of the port; at the NIC only while it sends other flows' packets, else transmission |
//! | hand-over of bytes sent before | hand-over of these bytes for the first time | retransmission: the timer that expired, and where the packet was lost |
//! | hand-over, set off by an answer | arrival of the answered packet at the receiver | pacing or window |
//! | any other hand-over | hand-over of the packet before | transmission and queue while the NIC sends, else pacing or window |
//! | hand-over of the first packet | start | the same, before it a handshake, and the retransmissions of its packets |

mod around;
mod held;

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

/// What a stretch of a flow's time was spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimePart {
    /// Control packets, until the first answer reached the sender.
    Handshake,
    /// The sender had bytes and did not send them: its window was full, its pacer waited, or the receiver had not granted them.
    Wait,
    /// Waiting at the port of a link; at the sender's NIC, behind packets of other flows.
    Queue(LinkId),
    /// Waiting at the port of a link while its far end had it hold packets back.
    Paused(LinkId),
    /// On the way into a link, the packets of the flow before it included that the NIC had still to send.
    Transmission,
    /// On the wire, and in hosts that take time.
    Propagation,
    /// From one transmission of bytes to the next one of the same bytes.
    Retransmission(LossCause),
}

/// Why bytes were retransmitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LossCause {
    /// The timer whose expiry made up for the loss; `None` if answers of the receiver showed it.
    pub timer: Option<Timeout>,
    /// The port that dropped or trimmed the packet, or on whose link it was lost; `None` if the packet was not lost.
    pub port: Option<LinkId>,
}

impl TimePart {
    /// Its name in tables and figures, without the port.
    pub fn name(self) -> &'static str {
        match self {
            TimePart::Handshake => "handshake",
            TimePart::Wait => "pacing or window",
            TimePart::Queue(_) => "queue",
            TimePart::Paused(_) => "paused",
            TimePart::Transmission => "transmission",
            TimePart::Propagation => "propagation",
            TimePart::Retransmission(_) => "retransmission",
        }
    }
    /// The port: of a queue, of a pause, or where a packet was lost.
    pub fn port(self) -> Option<LinkId> {
        match self {
            TimePart::Queue(link) | TimePart::Paused(link) => Some(link),
            TimePart::Retransmission(loss) => loss.port,
            _ => None,
        }
    }
    /// The timer that was waited for.
    pub fn timer(self) -> Option<Timeout> {
        match self {
            TimePart::Retransmission(loss) => loss.timer,
            _ => None,
        }
    }
}

/// A stretch of a flow's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// What it was spent on.
    pub part: TimePart,
    /// From.
    pub begin: Time,
    /// To.
    pub end: Time,
}

/// Where the time of a flow went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breakdown {
    /// The flow.
    pub flow: FlowRow,
    /// Its time without gaps, from its start to its finish.
    pub spans: Vec<Span>,
}

impl Breakdown {
    /// The picoseconds of each part, which sum to the completion time.
    pub fn totals(&self) -> Vec<(TimePart, u64)> {
        let mut totals: BTreeMap<TimePart, u64> = BTreeMap::new();
        for span in &self.spans {
            *totals.entry(span.part).or_default() += (span.end - span.begin).0;
        }
        totals.into_iter().collect()
    }
}

/// A flow that is watched, and when it was open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Life {
    /// The flow.
    pub flow: FlowId,
    /// From its start to its finish; to `Time::MAX` if it did not finish.
    pub open: Range<Time>,
}

/// A run that was done again with a trace of some flows.
pub struct Watched<'a> {
    pub(crate) spec: &'a RunSpec,
    /// The flows.
    pub(crate) lives: Vec<Life>,
    /// The outcome.
    pub outcome: Outcome,
    /// All packets of the flows, and those of all flows at their NICs while the flows were open.
    pub(crate) seen: Vec<Seen>,
}

/// Does a run again and keeps the packets of some flows. The times at which these were open are those of the first run.
pub fn watch<'a>(
    spec: &'a RunSpec,
    lives: &[Life],
    control: &mut dyn FnMut(Progress) -> Continue,
) -> Result<Watched<'a>, RunError> {
    let all = spec.flows().map_err(RunError::Workload)?;
    // A packet that the NIC sends when a flow starts has started before.
    let nics = |life: &Life| {
        let nics = all.get(life.flow.index()).map(|flow| spec.net.nics(flow.src));
        let open = life.open.clone();
        nics.into_iter().flatten().map(move |nic| {
            let longest = spec.net.link(nic).rate.tx_time(2 * u64::from(spec.mtu_bytes));
            (nic, open.start.before(longest)..open.end)
        })
    };
    let probe = PacketTrace::of(lives.iter().map(|life| life.flow).chain([held::ORDERS]), lives.iter().flat_map(nics));
    // Series and traces of the scenario's own change nothing of the run.
    let plain = RunSpec { sample: None, ..spec.clone() };
    let (outcome, packets) = run_with::<Engine<_>, _>(&plain, probe, control)?;
    Ok(Watched { spec, lives: lives.to_vec(), outcome, seen: packets.sorted() })
}

/// Fails if the flows of a system have no one history.
pub fn explains(spec: &RunSpec) -> Result<(), RunError> {
    let transport = &spec.system.transport;
    if transport.meta().many_paths { Err(RunError::Subflows(transport.name())) } else { Ok(()) }
}

impl Watched<'_> {
    /// Where the time of the flows went, of those that finished, by id.
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

/// Spans that are put together from the end to the start.
struct Backwards {
    /// All from here on is told.
    cursor: Time,
    start: Time,
    spans: Vec<Span>,
}

impl Backwards {
    /// Tells the time from `begin` to the cursor, which moves to `begin`.
    fn tell(&mut self, part: TimePart, begin: Time) {
        let begin = begin.max(self.start);
        assert!(begin <= self.cursor, "{} begins at {begin}, after {}", part.name(), self.cursor);
        match self.spans.last_mut() {
            _ if begin == self.cursor => {}
            Some(last) if last.part == part => last.begin = begin,
            _ => self.spans.push(Span { part, begin, end: self.cursor }),
        }
        self.cursor = begin;
    }
    /// All that was told, in order.
    fn forwards(mut self) -> Vec<Span> {
        assert!(self.cursor == self.start, "the time from {} to {} is nobody's", self.start, self.cursor);
        self.spans.reverse();
        self.spans
    }
}

/// What tells one packet of a flow from all others: when its NIC took it, whether it goes back, and what it holds.
type Name = (Time, bool, Kind, u64, u16);

fn name(packet: &Packet) -> Name {
    (packet.sent_at, packet.has(Packet::BACK), packet.kind, packet.offset, packet.payload)
}

/// A packet of the flow and its way.
#[derive(Clone, Debug)]
struct Sent {
    packet: Packet,
    /// Transmissions in order.
    hops: Vec<Seen>,
    /// When it reached its host, if it did.
    arrival: Option<Time>,
}

/// A transmission of one of the sender's NICs, or a time in which its switch had it hold this flow's packets.
#[derive(Clone, Copy, Debug)]
struct Busy {
    begin: Time,
    end: Time,
    /// What that is to this flow.
    part: TimePart,
}

/// Per packet of data the first that held its first byte.
fn firsts(data: &[Sent]) -> Vec<usize> {
    // By offset, what no packet before held: where it ends, and whose it is.
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

/// All that happened to the packets of one flow.
struct Trace<'a> {
    net: &'a Net,
    held: &'a Held,
    nic: LinkId,
    /// Data in the order in which the NIC took it.
    data: Vec<Sent>,
    /// The sender's control packets in the same order.
    control: Vec<Sent>,
    /// What reached the sender, by arrival.
    answers: Vec<Sent>,
    /// By NIC of the sender.
    busy: BTreeMap<LinkId, Vec<Busy>>,
    /// Data that arrived, as (arrival, place in `data`), in order.
    arrived: Vec<(Time, usize)>,
    /// Per packet of data the first that held its first byte.
    first: Vec<usize>,
    /// Where packets of data were trimmed, by what a trimmed packet keeps.
    trimmed: BTreeMap<(Time, u64), LinkId>,
    timers: Timers,
    /// Whether the sender counted any expiry of a timer.
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
        // What a port trims or returns goes on under another kind: to most transports it is lost.
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

    /// Follows the critical packets from the cursor, the finish of the flow, to its start.
    fn follow(&self, back: &mut Backwards) {
        let Some(mut at) = self.arrived_by(back.cursor) else { return self.opening(back) };
        loop {
            // What lies between is the receiver's.
            back.tell(TimePart::Wait, self.data[at].arrival.unwrap_or(back.cursor));
            self.way(&self.data[at], back);
            match self.sender(at, back) {
                Some(answered) => at = answered,
                None => return,
            }
        }
    }

    /// The NIC that a packet of data left through.
    fn nic_of(&self, data: usize) -> LinkId {
        self.data[data].hops[0].link
    }

    /// The packet of data that was the last to arrive by a time.
    fn arrived_by(&self, at: Time) -> Option<usize> {
        let n = self.arrived.partition_point(|(arrival, _)| *arrival <= at);
        self.arrived[..n].last().map(|(_, i)| *i)
    }

    /// A packet from its arrival back to the moment at which the NIC took it.
    fn way(&self, sent: &Sent, back: &mut Backwards) {
        for (i, hop) in sent.hops.iter().enumerate().rev() {
            let link = self.net.link(hop.link);
            let end = hop.start + link.rate.tx_time(hop.packet.wire_len.into());
            back.tell(TimePart::Propagation, end);
            back.tell(TimePart::Transmission, hop.start);
            match i {
                0 => self.at_nic(hop.link, back, sent.packet.sent_at, TimePart::Queue(hop.link)),
                _ => {
                    let before = &sent.hops[i - 1];
                    let came = self.net.link(before.link);
                    let arrival = before.start + came.rate.tx_time(before.packet.wire_len.into()) + came.delay;
                    for held in self.held.before(hop.link, &before.packet, back.cursor).take_while(|held| held.end > arrival) {
                        back.tell(TimePart::Queue(hop.link), held.end.min(back.cursor));
                        back.tell(TimePart::Paused(hop.link), held.start.max(arrival));
                    }
                    back.tell(TimePart::Queue(hop.link), arrival);
                }
            }
        }
    }

    /// The sender, from the hand-over of a packet back to the arrival of another, which is returned, or to the start.
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

    /// The transmissions of the first byte of a packet, from the last back to the first, which is returned.
    fn resent(&self, mut at: usize, back: &mut Backwards) -> usize {
        let (first, byte) = (self.first[at], self.data[at].packet.offset);
        while at > first {
            let holds = |i: &usize| {
                let packet = self.data[*i].packet;
                (packet.offset..packet.offset + u64::from(packet.payload)).contains(&byte)
            };
            let before = (first..at).rev().find(holds).unwrap_or(first);
            let sent = &self.data[before];
            let loss = LossCause { timer: self.expiry(before, at), port: self.lost_at(sent) };
            back.tell(TimePart::Retransmission(loss), sent.packet.sent_at);
            at = before;
        }
        at
    }

    /// The port that dropped or trimmed a packet, or on whose link it was lost.
    fn lost_at(&self, sent: &Sent) -> Option<LinkId> {
        let trimmed = || self.trimmed.get(&(sent.packet.sent_at, sent.packet.offset)).copied();
        let last = || sent.hops.last().map(|hop| hop.link);
        if sent.arrival.is_some() { None } else { trimmed().or_else(last) }
    }

    /// The timer that ended the longest silence between two hand-overs, if one did: nothing was handed over or answered for as long as the
    /// timer takes, or for half of that if no answer set off what followed. A timer may have been restarted before the silence.
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

    /// The answer after `since` that set off a hand-over: the earliest from which on the NIC was never idle. If it never was since the packet
    /// before, it is the NIC that the sender waited for, whatever was answered meanwhile.
    fn set_off(&self, nic: LinkId, since: Time, until: Time) -> Option<&Sent> {
        let busy_from = Some(self.busy_before(nic, until)).filter(|from| *from > since)?;
        let first = self.answers.partition_point(|answer| answer.arrival <= Some(since));
        let after = self.answers[first..].iter().take_while(|answer| answer.arrival <= Some(until));
        after.into_iter().find(|answer| answer.arrival >= Some(busy_from))
    }

    /// Since when the NIC has sent without a pause at a time; that time itself if it is idle.
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

    /// The time since `begin` before a packet left: transmission while the NIC sent this flow's packets, its queue while it sent others',
    /// paused while it had to hold this flow's, and otherwise `idle`.
    fn at_nic(&self, nic: LinkId, back: &mut Backwards, begin: Time, idle: TimePart) {
        let begin = begin.max(back.start);
        let all = self.busy.get(&nic).map_or(&[][..], |busy| busy);
        let first = all.partition_point(|busy| busy.begin < back.cursor);
        for busy in all[..first].iter().rev() {
            if busy.end <= begin {
                break;
            }
            back.tell(idle, busy.end.min(back.cursor).max(begin));
            back.tell(busy.part, busy.begin.max(begin));
        }
        back.tell(idle, begin);
    }

    /// The time before the first data: a handshake, if an answer came, and what lies around it.
    fn opening(&self, back: &mut Backwards) {
        let answer = self.answers.first().filter(|answer| answer.arrival <= Some(back.cursor));
        let nic = if self.data.is_empty() { self.nic } else { self.nic_of(0) };
        if let Some(answer) = answer {
            self.at_nic(nic, back, answer.arrival.unwrap_or(back.start), TimePart::Wait);
            let mut asked = self.control.iter().filter(|sent| sent.arrival.is_some_and(|arrival| arrival <= answer.packet.sent_at));
            let asked = asked.next_back().map_or(back.start, |sent| sent.packet.sent_at);
            back.tell(TimePart::Handshake, asked);
            let first = self.control.first().map_or(back.start, |sent| sent.packet.sent_at.min(asked));
            let loss = LossCause { timer: self.timers.first, port: self.control.iter().find_map(|sent| self.lost_at(sent)) };
            back.tell(TimePart::Retransmission(loss), first);
        }
        self.at_nic(nic, back, back.start, TimePart::Wait);
    }
}

//! Messages at their receiver: to which of them credit goes, and how much credit each sender may have.

use super::config::Config;
use super::header::{GRANT, Grant, RESEND, Resend, Use};
use super::{CSN, GRANTS, GrantOrder, MISSING, PACE, RECLAIMED, RESENDS};
use crate::contract::Cx;
use crate::kit::alpha::{self, Alpha};
use crate::kit::pull_pacer::PullPacer;
use crate::packet::{Kind, Packet};
use base::{FlowId, FlowMap, HostId};
use std::collections::BTreeMap;
use std::ops::Range;

/// One of the two windows that limit the credit of a sender.
#[derive(Clone, Debug)]
pub struct Aimd {
    window: u64,
    alpha: Alpha,
    /// The end of the observation, as a number of granted bytes.
    end: u64,
    /// Whether a mark was seen in the observation.
    marked: bool,
}

impl Aimd {
    /// Creates the largest window.
    pub fn new(config: &Config) -> Aimd {
        Aimd { window: config.sender_bucket, alpha: Alpha::new(config.alpha), end: 0, marked: false }
    }
    /// Returns the window in bytes.
    pub fn window(&self) -> u64 {
        self.window
    }
    /// Counts the arrival of `bytes` bytes. Of all credit of the sender, `granted` bytes are granted and `used` of
    /// them used.
    pub fn on_data(&mut self, config: &Config, bytes: u64, marked: bool, used: u64, granted: u64) {
        self.alpha.on_ack(bytes, marked, used, granted, config.g);
        self.marked |= marked;
        if used > self.end {
            // RFC 8257 section 3.3.
            let next = if self.marked { alpha::cut(self.window, self.alpha.value()) } else { self.window + config.mss };
            self.window = next.min(config.sender_bucket).max(config.mss);
            (self.end, self.marked) = (granted, false);
        }
    }
}

/// A sender as its receiver sees it.
#[derive(Clone, Debug)]
struct Source {
    /// Credit granted so far.
    granted: u64,
    /// Credit that was used or reclaimed so far.
    used: u64,
    /// The window for congestion at the sender.
    csn: Aimd,
    /// The window for congestion in the network.
    ecn: Aimd,
    /// The number of its last grant.
    turn: u64,
}

impl Source {
    /// Returns whether credit for `bytes` more bytes fits its bucket.
    fn fits(&self, bytes: u64) -> bool {
        self.granted - self.used + bytes <= self.csn.window().min(self.ecn.window())
    }
}

/// A message at its receiver.
#[derive(Clone, Debug)]
struct Message {
    size: u64,
    /// All bytes below need no credit or were granted.
    granted: u64,
    /// Credit that is granted and not used.
    outstanding: u64,
    /// Bytes that are still to be granted, missing ones included.
    left: u64,
    /// Bytes to be granted again, as far as they are missing.
    recover: Range<u64>,
    /// Nothing has arrived since the last timeout.
    silent: bool,
    /// Number of timeouts.
    rounds: u32,
    /// The index of its sender.
    source: u32,
}

/// A message with bytes to be granted. Ordered by these bytes; ties go to the older message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    left: u64,
    flow: FlowId,
    source: u32,
}

/// The bytes of the next GRANT or RESEND.
struct Next {
    flow: FlowId,
    bytes: Range<u64>,
    again: bool,
}

/// All messages of a receiver.
pub struct Inbound {
    messages: FlowMap<Message>,
    by_host: BTreeMap<HostId, u32>,
    sources: Vec<Source>,
    /// Messages with bytes to be granted, in order.
    waiting: Vec<Waiting>,
    /// Credit of all messages that is granted and not used.
    outstanding: u64,
    /// Number of grants so far.
    turns: u64,
    pacer: PullPacer,
}

impl Inbound {
    /// Creates a receiver without messages.
    pub fn new(config: &Config) -> Inbound {
        Inbound {
            messages: FlowMap::default(),
            by_host: BTreeMap::new(),
            sources: Vec::new(),
            waiting: Vec::new(),
            outstanding: 0,
            turns: 0,
            pacer: PullPacer::new(config.gap),
        }
    }

    /// Handles data of a message.
    pub fn on_data(&mut self, config: &Config, packet: &Packet, cx: &mut Cx<'_>) {
        let (flow, Use { scheduled, csn }) = (packet.flow, packet.get());
        if cx.has_finished(flow) {
            return confirm(config, flow, cx);
        }
        self.open(config, flow, cx);
        cx.deliver(flow, packet.offset, packet.payload);
        if scheduled > 0 {
            cx.count(flow, CSN, csn.into());
            let ce = packet.flags & Packet::CE == Packet::CE;
            self.on_use(config, flow, packet.payload.into(), csn > 0, ce);
        }
        if cx.has_finished(flow) {
            self.forget(config, flow, cx);
            return confirm(config, flow, cx);
        }
        let received = cx.table.get(flow).delivered_bytes;
        let message = self.messages.get_mut(flow).expect("opened above");
        message.silent = false;
        let left = message.left.min(message.size - received);
        self.set_left(flow, left);
        self.watch(config, flow, cx);
        self.grant(config, cx);
    }

    /// Returns the credit of arrived data to both buckets, and updates the windows of its sender.
    fn on_use(&mut self, config: &Config, flow: FlowId, payload: u64, csn: bool, ce: bool) {
        let message = self.messages.get_mut(flow).expect("the caller has opened the message");
        // Data may arrive after its credit was reclaimed.
        let bytes = payload.min(message.outstanding);
        if bytes == 0 {
            return;
        }
        message.outstanding -= bytes;
        self.outstanding -= bytes;
        let source = &mut self.sources[message.source as usize];
        source.used += bytes;
        source.csn.on_data(config, bytes, csn, source.used, source.granted);
        source.ecn.on_data(config, bytes, ce, source.used, source.granted);
    }

    /// Handles a REQUEST.
    pub fn on_request(&mut self, config: &Config, packet: &Packet, cx: &mut Cx<'_>) {
        let flow = packet.flow;
        if cx.has_finished(flow) {
            return confirm(config, flow, cx);
        }
        self.open(config, flow, cx);
        if packet.has(Packet::RETX) {
            // The sender asks whether the receiver has the message.
            let message = self.messages.get(flow).expect("opened above");
            send_grant(config, flow, message, cx);
            if message.outstanding == 0 {
                self.recover(flow, cx);
            }
        }
        self.watch(config, flow, cx);
        self.grant(config, cx);
    }

    fn open(&mut self, config: &Config, flow: FlowId, cx: &mut Cx<'_>) {
        if self.messages.contains(flow) {
            return;
        }
        let (size, src) = (cx.flow(flow).size_bytes, cx.flow(flow).src);
        let new = self.sources.len() as u32;
        let source = *self.by_host.entry(src).or_insert(new);
        if source == new {
            let (csn, ecn) = (Aimd::new(config), Aimd::new(config));
            self.sources.push(Source { granted: 0, used: 0, csn, ecn, turn: 0 });
        }
        let granted = config.unscheduled(size);
        let message = Message { size, granted, outstanding: 0, left: 0, recover: 0..0, silent: false, rounds: 0, source };
        self.messages.insert(flow, message);
        self.set_left(flow, size - granted);
    }

    /// Forgets a message that is complete, or that its sender does not have.
    pub fn forget(&mut self, config: &Config, flow: FlowId, cx: &mut Cx<'_>) {
        if self.messages.contains(flow) {
            self.reclaim(flow);
            self.set_left(flow, 0);
            self.messages.remove(flow);
            cx.disarm(flow, MISSING);
            self.grant(config, cx);
        }
    }

    /// Takes back the credit of a message that is not used. Returns its bytes.
    fn reclaim(&mut self, flow: FlowId) -> u64 {
        let Some(message) = self.messages.get_mut(flow) else { return 0 };
        let bytes = std::mem::take(&mut message.outstanding);
        self.outstanding -= bytes;
        self.sources[message.source as usize].used += bytes;
        bytes
    }

    /// Reclaims the credit of a message, and lets its missing bytes wait for credit again.
    fn recover(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        let reclaimed = self.reclaim(flow);
        cx.count(flow, RECLAIMED, reclaimed);
        let received = cx.table.get(flow).delivered_bytes;
        let message = self.messages.get_mut(flow).expect("the caller knows the message");
        message.rounds += 1;
        message.silent = true;
        message.recover = 0..message.granted;
        let left = message.size - received;
        self.set_left(flow, left);
    }

    /// Handles the expiry of the timer: no data of a message with missing bytes has arrived.
    pub fn on_missing(&mut self, config: &Config, flow: FlowId, cx: &mut Cx<'_>) {
        if self.messages.contains(flow) {
            self.recover(flow, cx);
            self.watch(config, flow, cx);
            self.grant(config, cx);
        }
    }

    /// Restarts the timer for missing bytes.
    fn watch(&self, config: &Config, flow: FlowId, cx: &mut Cx<'_>) {
        let Some(message) = self.messages.get(flow) else { return };
        if cx.table.get(flow).delivered_bytes < message.granted {
            cx.arm(flow, MISSING, cx.now.after(config.resend_after));
        } else {
            cx.disarm(flow, MISSING);
        }
    }

    /// Changes the number of bytes of a message that are still to be granted.
    fn set_left(&mut self, flow: FlowId, left: u64) {
        let Some(message) = self.messages.get_mut(flow) else { return };
        let old = std::mem::replace(&mut message.left, left);
        if old == left {
            return;
        }
        let source = message.source;
        if let Ok(found) = self.waiting.binary_search(&Waiting { left: old, flow, source }) {
            self.waiting.remove(found);
        }
        if left > 0 {
            let new = Waiting { left, flow, source };
            let at = self.waiting.partition_point(|other| *other < new);
            self.waiting.insert(at, new);
        }
    }

    /// Sends the next GRANT or RESEND if the pacer allows it, and sets the timer for the next one.
    pub fn grant(&mut self, config: &Config, cx: &mut Cx<'_>) {
        if self.pacer.is_free(cx.now) {
            let Some(next) = self.choose(config, cx) else { return };
            self.pacer.take(cx.now);
            self.send(config, &next, cx);
        }
        if self.has_room(config) && !self.waiting.is_empty() {
            self.pacer.arm(PACE, cx);
        }
    }

    /// Returns whether credit for a full packet fits the global bucket.
    fn has_room(&self, config: &Config) -> bool {
        self.outstanding + config.mss <= config.bucket
    }

    /// Returns the bytes that are granted next.
    fn choose(&self, config: &Config, cx: &Cx<'_>) -> Option<Next> {
        if !self.has_room(config) {
            return None;
        }
        let source = |waiting: &Waiting| &self.sources[waiting.source as usize];
        let mut fitting = self.waiting.iter().filter(|waiting| source(waiting).fits(config.mss));
        match config.policy {
            GrantOrder::Srpt => fitting.find_map(|waiting| self.next_of(config, waiting.flow, cx)),
            GrantOrder::RoundRobin => {
                let mut best = None;
                for waiting in fitting {
                    let turn = source(waiting).turn;
                    if best.as_ref().is_none_or(|(other, _)| turn < *other)
                        && let Some(next) = self.next_of(config, waiting.flow, cx)
                    {
                        best = Some((turn, next));
                    }
                }
                best.map(|(_, next)| next)
            }
        }
    }

    /// Returns the bytes of a waiting message that are granted next, if they are known.
    fn next_of(&self, config: &Config, flow: FlowId, cx: &Cx<'_>) -> Option<Next> {
        let message = self.messages.get(flow)?;
        if message.silent && message.outstanding > 0 {
            return None;
        }
        let packet = |from: u64, end: u64| from..end.min(from + config.mss);
        if !message.recover.is_empty() {
            let hole = cx.table.get(flow).first_missing(message.recover.end);
            let from = hole.start.max(message.recover.start);
            if from < hole.end {
                return Some(Next { flow, bytes: packet(from, hole.end), again: true });
            }
        }
        let bytes = packet(message.granted, message.size);
        (!bytes.is_empty()).then_some(Next { flow, bytes, again: false })
    }

    /// Sends a GRANT or a RESEND, and takes its credit from both buckets.
    fn send(&mut self, config: &Config, next: &Next, cx: &mut Cx<'_>) {
        let Next { flow, ref bytes, again } = *next;
        let message = self.messages.get_mut(flow).expect("a waiting message is known");
        let credit = bytes.end - bytes.start;
        message.outstanding += credit;
        self.outstanding += credit;
        self.turns += 1;
        let source = &mut self.sources[message.source as usize];
        (source.granted, source.turn) = (source.granted + credit, self.turns);
        if again {
            message.recover.start = bytes.end;
            let mut resend = Packet { offset: bytes.start, ..Packet::new(flow, RESEND, config.header) };
            resend.set(Resend { end: bytes.end, round: message.rounds });
            cx.control(resend);
            cx.count(flow, RESENDS, 1);
        } else {
            message.granted = bytes.end;
            cx.count(flow, GRANTS, 1);
            send_grant(config, flow, message, cx);
        }
        let left = message.left.saturating_sub(credit);
        self.set_left(flow, left);
        if !cx.is_armed(flow, MISSING) {
            self.watch(config, flow, cx);
        }
    }
}

/// Sends a GRANT of all bytes that a message is granted.
fn send_grant(config: &Config, flow: FlowId, message: &Message, cx: &mut Cx<'_>) {
    let mut grant = Packet { offset: message.granted, ..Packet::new(flow, GRANT, config.header) };
    grant.set(Grant { received: cx.table.get(flow).delivered_bytes });
    cx.control(grant);
}

/// Acknowledges a complete message.
fn confirm(config: &Config, flow: FlowId, cx: &mut Cx<'_>) {
    cx.control(Packet { offset: cx.flow(flow).size_bytes, ..Packet::new(flow, Kind::ACK, config.header) });
}

#[cfg(test)]
impl Inbound {
    /// Returns the credit that is granted and not used: of the host, of its sources, and of its messages.
    pub fn credit(&self) -> [u64; 3] {
        let sources = self.sources.iter().map(|source| source.granted - source.used).sum();
        [self.outstanding, sources, self.messages.iter().map(|(_, message)| message.outstanding).sum()]
    }
    /// Returns whether nothing is known of any message.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.waiting.is_empty()
    }
    /// Returns the window of each source for `csn` and for CE.
    pub fn windows(&self) -> Vec<[u64; 2]> {
        self.sources.iter().map(|source| [source.csn.window(), source.ecn.window()]).collect()
    }
}

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
    /// The smallest window.
    least: u64,
    alpha: Alpha,
    /// The window is not cut before this number of used bytes.
    next_cut: u64,
}

impl Aimd {
    /// Creates the largest window, which does not shrink below `least` bytes.
    pub fn new(config: &Config, least: u64) -> Aimd {
        let window = config.sender_bucket;
        let mut alpha = Alpha::new(config.alpha);
        // In the simulator the packet that announces a sender is the first sample. It has no marks.
        alpha.on_ack(1, false, 1, window - config.mss, config.g);
        Aimd { window, least, alpha, next_cut: full_packets(config, window) }
    }
    /// Returns the window in bytes.
    pub fn window(&self) -> u64 {
        self.window
    }
    /// Counts the arrival of `bytes` bytes, with which `used` bytes of the sender's credit are used. `bucket` is the
    /// smaller of the two windows of the sender.
    pub fn on_data(&mut self, config: &Config, bytes: u64, marked: bool, used: u64, bucket: u64) {
        // An observation ends with the packet that completes a bucket.
        self.alpha.on_ack(bytes, marked, used, used + bucket - config.mss, config.g);
        let growth = config.mss * bytes / bucket;
        if marked && used >= self.next_cut {
            self.window = alpha::cut(self.window, self.alpha.value());
            self.next_cut = used + full_packets(config, bucket * 3 / 2);
        }
        self.window = (self.window + growth).min(config.sender_bucket).max(self.least);
    }
}

/// Returns the payload of the full packets that fit `bytes`.
fn full_packets(config: &Config, bytes: u64) -> u64 {
    bytes / config.mss * config.mss
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
    /// Returns its bucket.
    fn bucket(&self) -> u64 {
        self.csn.window().min(self.ecn.window())
    }
    /// Returns whether credit for `bytes` more bytes fits its bucket.
    fn fits(&self, bytes: u64) -> bool {
        self.granted - self.used + bytes <= self.bucket()
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
    /// Bytes that have not arrived.
    missing: u64,
    /// `missing` as it was when the message began to wait in this place; `None` if nothing is left.
    key: Option<u64>,
    /// Bytes to be granted again, as far as they are missing.
    recover: Range<u64>,
    /// Nothing has arrived since the last timeout.
    silent: bool,
    /// Number of timeouts.
    rounds: u32,
    /// The index of its sender.
    source: u32,
}

/// A message with bytes to be granted. Ordered by the bytes that have not arrived; ties go to the older message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    missing: u64,
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
        message.missing = message.size - received;
        message.left = message.left.min(message.missing);
        self.order(flow);
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
        let bucket = source.bucket();
        source.csn.on_data(config, bytes, csn, source.used, bucket);
        source.ecn.on_data(config, bytes, ce, source.used, bucket);
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
            let (csn, ecn) = (Aimd::new(config, config.min_window_csn), Aimd::new(config, config.min_window_ecn));
            self.sources.push(Source { granted: 0, used: 0, csn, ecn, turn: 0 });
        }
        let granted = config.unscheduled(size);
        let message = Message {
            size,
            granted,
            outstanding: 0,
            left: size - granted,
            missing: size,
            key: None,
            recover: 0..0,
            silent: false,
            rounds: 0,
            source,
        };
        self.messages.insert(flow, message);
        self.order(flow);
    }

    /// Forgets a message that is complete, or that its sender does not have.
    pub fn forget(&mut self, config: &Config, flow: FlowId, cx: &mut Cx<'_>) {
        self.reclaim(flow);
        if let Some(message) = self.messages.get_mut(flow) {
            message.left = 0;
            self.order(flow);
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
        message.missing = message.size - received;
        message.left = message.missing;
        self.order(flow);
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

    /// Lets a message wait in its place in the order if bytes of it are to be granted.
    fn order(&mut self, flow: FlowId) {
        let Some(message) = self.messages.get_mut(flow) else { return };
        let key = (message.left > 0).then_some(message.missing);
        let old = std::mem::replace(&mut message.key, key);
        if old == key {
            return;
        }
        let source = message.source;
        let waiting = |missing| Waiting { missing, flow, source };
        if let Some(found) = old.and_then(|old| self.waiting.binary_search(&waiting(old)).ok()) {
            self.waiting.remove(found);
        }
        if let Some(key) = key {
            let at = self.waiting.partition_point(|other| *other < waiting(key));
            self.waiting.insert(at, waiting(key));
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
        message.left = message.left.saturating_sub(credit);
        self.order(flow);
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

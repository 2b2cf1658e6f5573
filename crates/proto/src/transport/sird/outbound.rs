//! Messages at their sender: which of them sends next, and how much credit waits.

use super::config::Config;
use super::header::{Grant, REQUEST, Resend, UNKNOWN, Use};
use super::{ASK, SCHEDULED, UNSCHEDULED};
use crate::contract::Cx;
use crate::flow::Sample;
use crate::kit::order::ByKey;
use crate::packet::Packet;
use crate::ranges::Ranges;
use base::{Dur, FlowId, FlowMap, Fraction, HostId, Rate};
use std::collections::{BTreeMap, VecDeque};

/// A message at its sender.
#[derive(Clone, Debug)]
struct Message {
    size: u64,
    /// Number of bytes that need no credit.
    unscheduled: u64,
    /// All bytes below may be sent.
    granted: u64,
    /// The first byte that was never sent.
    next: u64,
    /// Bytes to retransmit; they have credit.
    again: Ranges,
    /// The receiver has answered, so it has the message.
    answered: bool,
    /// Number of bytes that are known to have arrived.
    received: u64,
    /// Timeouts at the receiver that are known.
    rounds: u32,
    /// The index of its receiver.
    target: u32,
    /// The key with which it waits to send.
    key: Option<u64>,
}

impl Message {
    /// Returns whether the message has bytes to send now.
    fn is_ready(&self) -> bool {
        self.next < self.granted || !self.again.is_empty()
    }
    /// Returns the number of bytes that are still to be sent.
    fn left(&self) -> u64 {
        self.size - self.next + self.again.bytes()
    }
    /// Returns the credit that waits.
    fn credit(&self) -> u64 {
        self.granted - self.granted.min(self.next.max(self.unscheduled)) + self.again.bytes()
    }
}

/// A receiver to which this host sends.
#[derive(Clone, Debug, Default)]
struct Target {
    /// Its messages that may send, the one with the fewest bytes left first.
    ready: Vec<(u64, FlowId)>,
    /// Whether it takes turns.
    in_turns: bool,
}

/// All messages of a sender.
#[derive(Clone, Debug, Default)]
pub struct Outbound {
    messages: FlowMap<Message>,
    /// Messages that may send, by the bytes that are left.
    ready: ByKey,
    by_host: BTreeMap<HostId, u32>,
    targets: Vec<Target>,
    /// Receivers with messages that may send, in turn; others are skipped.
    turns: VecDeque<u32>,
    /// Packets that receivers in turn are owed, in billionths.
    owed: u64,
    /// Credit that waits, of all messages.
    credit: u64,
}

impl Outbound {
    /// Opens a message: short ones may send at once, long ones request credit.
    pub fn open(&mut self, config: &Config, flow: FlowId, cx: &mut Cx<'_>) {
        let (size, dst) = (cx.flow(flow).size_bytes, cx.flow(flow).dst);
        let unscheduled = config.unscheduled(size);
        let new = self.targets.len() as u32;
        let target = *self.by_host.entry(dst).or_insert(new);
        if target == new {
            self.targets.push(Target::default());
        }
        let message = Message {
            size,
            unscheduled,
            granted: unscheduled,
            next: 0,
            again: Ranges::default(),
            answered: false,
            received: 0,
            rounds: 0,
            target,
            key: None,
        };
        if unscheduled == 0 {
            cx.control(Packet::new(flow, REQUEST, config.header));
        }
        self.messages.insert(flow, message);
        self.settle(config, flow, cx);
    }

    /// Updates order and timer after a change of a message. The timer runs while the sender waits for the receiver,
    /// unless the receiver has answered and itself waits for bytes or may grant more.
    fn settle(&mut self, config: &Config, flow: FlowId, cx: &mut Cx<'_>) {
        let Some(message) = self.messages.get(flow) else { return };
        if !message.is_ready() && (!message.answered || message.next == message.size) {
            cx.arm(flow, ASK, cx.now.after(config.ask_after));
        } else {
            cx.disarm(flow, ASK);
        }
        let key = message.is_ready().then(|| message.left());
        self.order(flow, key);
    }

    /// Changes the key with which a message waits to send; `None` if it may not send.
    fn order(&mut self, flow: FlowId, key: Option<u64>) {
        let Some(message) = self.messages.get_mut(flow) else { return };
        let old = std::mem::replace(&mut message.key, key);
        if old == key {
            return;
        }
        let target = &mut self.targets[message.target as usize];
        if let Some(found) = old.and_then(|old| target.ready.binary_search(&(old, flow)).ok()) {
            target.ready.remove(found);
        }
        let Some(key) = key else { return self.ready.remove(flow) };
        let at = target.ready.partition_point(|other| *other < (key, flow));
        target.ready.insert(at, (key, flow));
        self.ready.set(flow, key);
        if !target.in_turns {
            target.in_turns = true;
            self.turns.push_back(message.target);
        }
    }

    /// Returns the message of the receiver whose turn it is.
    fn in_turn(&mut self) -> Option<FlowId> {
        while let Some(turn) = self.turns.pop_front() {
            let target = &mut self.targets[turn as usize];
            match target.ready.first() {
                Some((_, flow)) => {
                    self.turns.push_back(turn);
                    return Some(*flow);
                }
                None => target.in_turns = false,
            }
        }
        None
    }

    /// Returns the next packet.
    pub fn send(&mut self, config: &Config, cx: &mut Cx<'_>) -> Option<Packet> {
        let one = Fraction::ONE.ppb();
        let flow = if self.owed >= one { self.in_turn() } else { self.ready.first() }?;
        self.owed = self.owed % one + config.fair_share.ppb();
        let message = self.messages.get_mut(flow).expect("a closed message is not ready");
        let csn = self.credit >= config.sender_threshold;
        let before = message.credit();
        let lost = message.again.iter().next().cloned();
        let scheduled = lost.is_some() || message.next >= message.unscheduled;
        let mut packet = match lost {
            Some(lost) => {
                let end = lost.end.min(lost.start + config.mss);
                message.again.remove_below(end);
                let data = Packet::data(flow, lost.start, (end - lost.start) as u16, config.header);
                Packet { flags: Packet::RETX | Packet::ECT, ..data }
            }
            None => {
                let end = if scheduled { message.granted } else { message.unscheduled }.min(message.next + config.mss);
                let data = Packet::data(flow, message.next, (end - message.next) as u16, config.header);
                cx.count(flow, if scheduled { SCHEDULED } else { UNSCHEDULED }, data.payload.into());
                message.next = end;
                Packet { flags: Packet::ECT, ..data }
            }
        };
        packet.prio = u8::from(scheduled) * config.scheduled_class;
        packet.set(Use { scheduled: scheduled.into(), csn: csn.into() });
        self.credit -= before - message.credit();
        self.settle(config, flow, cx);
        Some(packet)
    }

    /// Handles a GRANT.
    pub fn on_grant(&mut self, config: &Config, packet: &Packet, cx: &mut Cx<'_>) {
        // A GRANT of a closed message is late.
        let Some(message) = self.messages.get_mut(packet.flow) else { return };
        let (before, Grant { received }) = (message.credit(), packet.get());
        message.answered = true;
        message.received = message.received.max(received);
        message.granted = message.granted.max(packet.offset);
        self.credit += message.credit() - before;
        self.settle(config, packet.flow, cx);
    }

    /// Handles a RESEND.
    pub fn on_resend(&mut self, config: &Config, packet: &Packet, cx: &mut Cx<'_>) {
        let flow = packet.flow;
        let Some(message) = self.messages.get_mut(flow) else {
            return cx.control(Packet::new(flow, UNKNOWN, config.header));
        };
        let (before, Resend { end, round }) = (message.credit(), packet.get());
        message.answered = true;
        message.granted = message.granted.max(end);
        if message.again.insert(packet.offset.min(message.next)..end.min(message.next)) > 0 && round > message.rounds {
            message.rounds = round;
            cx.note_timeout(flow);
        }
        self.credit += message.credit() - before;
        self.settle(config, flow, cx);
    }

    /// Handles an ACK: the message has arrived.
    pub fn on_ack(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        if self.remove(flow) {
            cx.close(flow);
        }
    }

    /// Handles the expiry of the timer for answers.
    pub fn on_ask(&mut self, config: &Config, flow: FlowId, cx: &mut Cx<'_>) {
        if !self.messages.contains(flow) {
            return;
        }
        cx.note_timeout(flow);
        cx.control(Packet { flags: Packet::RETX, ..Packet::new(flow, REQUEST, config.header) });
        self.settle(config, flow, cx);
    }

    /// Forgets a message. Returns whether it was open.
    pub fn remove(&mut self, flow: FlowId) -> bool {
        self.order(flow, None);
        let removed = self.messages.remove(flow);
        self.credit -= removed.as_ref().map_or(0, Message::credit);
        removed.is_some()
    }

    /// Returns the sample of an open message.
    pub fn sample(&self, flow: FlowId) -> Option<Sample> {
        let message = self.messages.get(flow)?;
        // The window is the bytes that may be sent ahead of those known to have arrived.
        let cwnd_bytes = message.granted.saturating_sub(message.received);
        let in_flight_bytes = message.next.saturating_sub(message.received + message.again.bytes());
        Some(Sample { cwnd_bytes, ssthresh_bytes: 0, srtt: Dur::ZERO, rate: Rate(0), in_flight_bytes })
    }
}

#[cfg(test)]
impl Outbound {
    /// Returns the credit that waits.
    pub fn waiting_credit(&self) -> u64 {
        self.credit
    }
}

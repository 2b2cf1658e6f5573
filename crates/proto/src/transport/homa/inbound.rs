//! Messages at their receiver: which messages are granted more bytes, at which level, and which
//! bytes are requested again.

use super::header::{CUTOFFS, CutoffList, GRANT, Grant, RESEND, Resend, Version};
use super::levels::{Law, Levels, Online};
use crate::contract::Cx;
use crate::kit::traffic::Traffic;
use crate::packet::{Kind, Packet};
use base::{Dur, FlowId, FlowMap, Fraction, HostId, Time};

/// Timer of a message: granted bytes are missing.
pub const MISSING: u8 = 1;
/// Timer of the host: a paced sender may be granted more.
pub const PACED: u8 = 2;

/// Indices of the receiver's counters.
pub const GRANTS: usize = 0;
pub const RESENDS: usize = 1;
pub const FIRST_RTT_BYTES: usize = 2;

/// The configuration of a receiver.
#[derive(Clone, Debug)]
pub struct Config {
    /// The rule that computes levels from sizes.
    pub law: Law,
    /// Largest number of messages that are granted at a time; `None`: one for each level of
    /// scheduled packets.
    pub overcommitment: Option<u32>,
    /// Bytes per GRANT.
    pub grant_bytes: u64,
    /// Time between two GRANTs to a sender: that of a full packet at the rate of the host's link.
    pub grant_gap: Dur,
    /// At most this many bytes at the end of a message go at the unscheduled level of a message of
    /// this size.
    pub tail_boost: u64,
    /// Share of granted bytes that the oldest message gets.
    pub oldest: Fraction,
    /// Time without packets of a message after which missing bytes are requested again.
    pub resend_after: Dur,
    /// Number of RESENDs in a row after which a message is forgotten; 0: never.
    pub tries: u32,
    /// Header of every packet, in bytes.
    pub header: u16,
}

/// A message at its receiver.
#[derive(Clone, Debug)]
struct Message {
    size: u64,
    /// All bytes below may be sent.
    granted: u64,
    received: u64,
    /// RESENDs since the last arrival.
    tries: u32,
}

impl Message {
    /// Returns the number of bytes that are granted and have not arrived.
    fn pending(&self) -> u64 {
        self.granted.saturating_sub(self.received)
    }
}

/// A message that waits for grants. Ordered by ungranted bytes; ties go to the older message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    left: u64,
    flow: FlowId,
    src: HostId,
}

/// All messages of a receiver.
pub struct Inbound {
    config: Config,
    levels: Levels,
    /// The version of its cutoffs.
    version: u32,
    online: Option<Online>,
    messages: FlowMap<Message>,
    /// Messages that wait for grants, in order.
    waiting: Vec<Waiting>,
    /// The first waiting messages of different senders, which may be granted more.
    active: Vec<Waiting>,
    /// Senders that were granted bytes less than a gap ago, and when they may be granted more.
    paced: Vec<(HostId, Time)>,
    /// When the first paced sender may be granted more whose window has space.
    next: Time,
    /// Bytes that the oldest message may still be granted, in billionths.
    owed: u64,
}

impl Inbound {
    /// Creates a receiver without messages. With `online` its levels follow the sizes that it sees.
    pub fn new(config: Config, levels: Levels, online: Option<Online>) -> Inbound {
        Inbound {
            config,
            levels,
            version: 0,
            online,
            messages: FlowMap::default(),
            waiting: Vec::new(),
            active: Vec::new(),
            paced: Vec::new(),
            next: Time::MAX,
            owed: 0,
        }
    }

    /// Handles data of a message.
    pub fn on_data(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        let (flow, meta) = (packet.flow, cx.flow(packet.flow));
        let delivery = cx.deliver(flow, packet.offset, packet.payload);
        if cx.now <= meta.start.after(meta.rtt) {
            cx.count(flow, FIRST_RTT_BYTES, delivery.new_bytes);
        }
        let (known, record) = (self.messages.contains(flow), cx.table.get(flow));
        let (finished, received) = (record.finish != Time::MAX, record.delivered_bytes);
        if !known && delivery.new_bytes > 0 {
            self.see(packet, cx);
        }
        if finished {
            return self.finish(flow, cx);
        }
        if !known {
            self.open(flow, cx);
        }
        let message = self.messages.get_mut(flow).expect("opened above");
        (message.received, message.tries) = (received, 0);
        if packet.has(Packet::RETX) && delivery.new_bytes == 0 && packet.offset == 0 {
            // The sender asks whether the receiver has the message.
            let level = self.config.law.priorities - 1;
            grant(&self.config, flow, message, level, cx);
        }
        let waits = message.granted < message.size;
        self.watch(flow, cx);
        if waits {
            self.grant(cx);
        }
    }

    /// Handles the first packet of a message that arrives, not necessarily the one with the first
    /// bytes: counts its size, and sends CUTOFFS to a sender with another version.
    fn see(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        let Some(online) = &mut self.online else { return };
        if online.note(cx.flow(packet.flow).size_bytes) {
            let seen = [online.offered()];
            self.levels = self.config.law.levels(&Traffic::of_sizes(&seen).expect("sizes were seen"));
            self.version += 1;
        }
        if packet.get::<Version>().version != self.version {
            let mut cutoffs = Packet::new(packet.flow, CUTOFFS, self.config.header);
            cutoffs.set_ext(CutoffList::new(self.version, &self.levels.cutoffs), cx.ext);
            cx.control(cutoffs);
        }
    }

    fn open(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        let (size, src) = (cx.flow(flow).size_bytes, cx.flow(flow).src);
        let granted = size.min(self.config.law.rtt_bytes);
        self.messages.insert(flow, Message { size, granted, received: 0, tries: 0 });
        if granted < size {
            self.wait(Waiting { left: size - granted, flow, src });
        }
    }

    /// Acknowledges a complete message and forgets it.
    fn finish(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        let size = cx.flow(flow).size_bytes;
        cx.control(Packet { offset: size, ..Packet::new(flow, Kind::ACK, self.config.header) });
        self.forget(flow, cx);
    }

    /// Forgets a message that is complete, or that its sender does not have. If it waited for
    /// grants, another message takes its place.
    pub fn forget(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        let Some(message) = self.messages.remove(flow) else { return };
        cx.disarm(flow, MISSING);
        if self.stop_waiting(message.size - message.granted, flow) {
            self.grant(cx);
        }
    }

    /// Handles a BUSY: the sender has the message, and sends another one first.
    pub fn on_busy(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        if let Some(message) = self.messages.get_mut(flow) {
            message.tries = 0;
            self.watch(flow, cx);
        }
    }

    /// Restarts the timer for missing bytes after an arrival.
    fn watch(&self, flow: FlowId, cx: &mut Cx<'_>) {
        match self.messages.get(flow).map_or(0, Message::pending) {
            0 => cx.disarm(flow, MISSING),
            _ => cx.arm(flow, MISSING, cx.now.after(self.config.resend_after)),
        }
    }

    /// Handles the expiry of the timer: no packet of a message with missing granted bytes has
    /// arrived.
    pub fn on_missing(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        let Some(message) = self.messages.get_mut(flow) else { return };
        message.tries += 1;
        if self.config.tries > 0 && message.tries > self.config.tries {
            return self.forget(flow, cx);
        }
        let missing = cx.table.get(flow).first_missing(message.granted);
        let mut resend = Packet { offset: missing.start, ..Packet::new(flow, RESEND, self.config.header) };
        resend.set(Resend { end: missing.end, level: 0 });
        cx.control(resend);
        cx.count(flow, RESENDS, 1);
        self.watch(flow, cx);
    }

    /// Sends the GRANTs that are possible now.
    pub fn grant(&mut self, cx: &mut Cx<'_>) {
        if self.waiting.is_empty() {
            return;
        }
        self.paced.retain(|(_, until)| *until > cx.now);
        self.next = Time::MAX;
        // When a message is fully granted, another one takes its place.
        while self.grant_active(cx) {}
        self.grant_oldest(cx);
        if self.next < Time::MAX {
            cx.arm_host(PACED, self.next);
        }
    }

    /// Grants the active messages more. Returns whether one of them is now fully granted.
    fn grant_active(&mut self, cx: &mut Cx<'_>) -> bool {
        self.find_active();
        let (mut some_done, count) = (false, self.active.len());
        for rank in 0..count {
            let waiting = self.active[rank];
            let level = self.level(rank as u32, count as u32, waiting.left);
            some_done |= self.grant_one(waiting, level, cx) == Some(0);
        }
        some_done
    }

    /// Returns the largest number of messages that are granted at a time.
    pub fn most_granted(&self) -> u64 {
        self.config.overcommitment.unwrap_or(self.levels.scheduled.into()).into()
    }

    /// Finds the active messages: the first of each sender, up to the largest number.
    fn find_active(&mut self) {
        let most = self.most_granted() as usize;
        self.active.clear();
        for waiting in &self.waiting {
            if self.active.len() == most {
                break;
            }
            if self.active.iter().all(|other| other.src != waiting.src) {
                self.active.push(*waiting);
            }
        }
    }

    /// Returns the level for the active message with this rank of `count`. With fewer messages than
    /// levels the lowest levels are used, so that a shorter message that comes next finds a higher
    /// one (section 3.4).
    fn level(&self, rank: u32, count: u32, left: u64) -> u8 {
        let (all, scheduled) = (u32::from(self.config.law.priorities), u32::from(self.levels.scheduled));
        let level = (all - scheduled + rank + scheduled.saturating_sub(count)).min(all - 1) as u8;
        if left <= self.config.tail_boost { level.min(self.levels.unscheduled(left)) } else { level }
    }

    /// Grants a message more bytes, if its sender is not paced and fewer than `rtt_bytes` are on
    /// their way. Returns the number of bytes still to be granted.
    fn grant_one(&mut self, waiting: Waiting, level: u8, cx: &mut Cx<'_>) -> Option<u64> {
        let Waiting { left, flow, src } = waiting;
        let config = &self.config;
        let message = self.messages.get_mut(flow).expect("a waiting message is known");
        let more = config.law.rtt_bytes.saturating_sub(message.pending()).min(config.grant_bytes).min(left);
        if more == 0 {
            return None;
        }
        if let Some((_, until)) = self.paced.iter().find(|(host, _)| *host == src) {
            self.next = self.next.min(*until);
            return None;
        }
        message.granted += more;
        grant(config, flow, message, level, cx);
        if !cx.is_armed(flow, MISSING) {
            cx.arm(flow, MISSING, cx.now.after(config.resend_after));
        }
        let until = cx.now.after(config.grant_gap);
        self.paced.push((src, until));
        if more < left && config.law.rtt_bytes > message.pending() {
            self.next = self.next.min(until);
        }
        self.owed = self.owed.saturating_add(more * config.oldest.ppb());
        self.stop_waiting(left, flow);
        if more < left {
            self.wait(Waiting { left: left - more, ..waiting });
        }
        Some(left - more)
    }

    /// Grants the oldest message its share, at the highest level of scheduled packets.
    fn grant_oldest(&mut self, cx: &mut Cx<'_>) {
        let grant = self.config.grant_bytes * Fraction::ONE.ppb();
        if self.owed < grant {
            return;
        }
        let Some(oldest) = self.waiting.iter().copied().min_by_key(|waiting| waiting.flow) else { return };
        self.find_active();
        if self.active.contains(&oldest) {
            // The oldest message is active and is granted bytes anyway.
            self.owed = 0;
        } else if self.grant_one(oldest, self.config.law.priorities - self.levels.scheduled, cx).is_some() {
            self.owed -= grant;
        }
    }

    fn wait(&mut self, waiting: Waiting) {
        let at = self.waiting.partition_point(|other| *other < waiting);
        self.waiting.insert(at, waiting);
    }

    /// Removes a message with `left` ungranted bytes from the waiting ones. Returns whether it was
    /// there.
    fn stop_waiting(&mut self, left: u64, flow: FlowId) -> bool {
        let place = |other: &Waiting| (other.left, other.flow);
        let found = self.waiting.binary_search_by_key(&(left, flow), place);
        found.is_ok_and(|at| self.waiting.remove(at).flow == flow)
    }
}

/// Sends a GRANT of all bytes that a message is granted.
fn grant(config: &Config, flow: FlowId, message: &Message, level: u8, cx: &mut Cx<'_>) {
    let mut grant = Packet { offset: message.granted, ..Packet::new(flow, GRANT, config.header) };
    grant.set(Grant { level, received: message.received });
    cx.control(grant);
    cx.count(flow, GRANTS, 1);
}

#[cfg(test)]
impl Inbound {
    /// Returns whether no message is known.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.waiting.is_empty()
    }
    /// Returns the number of bytes of a message that are granted and have not arrived.
    pub fn pending(&self, flow: u32) -> u64 {
        self.messages.get(FlowId(flow)).map_or(0, Message::pending)
    }
    /// Returns the levels of active messages with these numbers of ungranted bytes.
    pub fn levels_of(&self, left: &[u64]) -> Vec<u8> {
        let count = left.len() as u32;
        left.iter().zip(0..).map(|(left, rank)| self.level(rank, count, *left)).collect()
    }
}

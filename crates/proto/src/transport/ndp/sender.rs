//! One flow at its sender: which packets are in flight, to be sent again and acknowledged, and how many may be sent.

use super::Config;
use super::paths::{RETURNED_NACKS, Spray};
use crate::kit::rtt::{Rtt, RttConfig};
use base::{Rng, Time};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Answers that the rule for returned packets looks back on (ndp.h, HIST_LEN).
const RECENT: u32 = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    InFlight,
    /// To be sent again.
    Waiting,
    Acked,
}

/// A packet that was sent.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// When it left last.
    at: Time,
    /// The path that it took then.
    path_tag: u16,
    state: State,
    again: bool,
}

/// A packet that leaves now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    /// Its number.
    pub(super) number: u64,
    /// Application bytes.
    pub(super) payload: u16,
    /// The path that it takes.
    pub(super) path_tag: u16,
    /// It was sent before.
    pub(super) again: bool,
    /// It belongs to the initial window.
    pub(super) unasked: bool,
}

/// The last answers: whether they were ACKs.
#[derive(Clone, Copy, Debug, Default)]
struct Recent {
    /// One bit an answer, the last one lowest.
    acks: u16,
    answers: u32,
}

impl Recent {
    fn push(&mut self, ack: bool) {
        self.acks = (self.acks << 1 | u16::from(ack)) & ((1 << RECENT) - 1);
        self.answers = (self.answers + 1).min(RECENT);
    }
    /// Whether at least a quarter are ACKs.
    fn quarter_are_acks(self) -> bool {
        self.acks > 0 && 4 * self.acks.count_ones() >= self.answers
    }
}

/// One flow at its sender. Its packets are numbered from 0.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    size: u64,
    mss: u64,
    packets: u64,
    /// All packets below are acknowledged.
    una: u64,
    /// The packets that were sent, from `una` on.
    slots: VecDeque<Slot>,
    /// Packets to be sent again, the lowest first; some may be acknowledged since.
    again: BinaryHeap<Reverse<u64>>,
    waiting: u64,
    /// Packets in order of departure; the first is in flight.
    departed: VecDeque<(u64, Time)>,
    in_flight_bytes: u64,
    /// New packets of the initial window that are to be sent.
    first: u64,
    /// Packets of the initial window without an answer.
    unanswered: u64,
    /// Packets that may be sent without a pull: after timeouts and returns.
    free: u64,
    /// ACKs and NACKs.
    answers: u64,
    /// The largest pull number.
    pulls: u64,
    /// Pulls that were answered by a packet.
    used: u64,
    recent: Recent,
    spray: Spray,
    penalty: bool,
    /// Its round trip.
    pub(super) rtt: Rtt,
    /// It is among the flows that may send.
    pub(super) ready: bool,
}

impl Sender {
    /// A flow of `size` bytes of which nothing was sent.
    pub(super) fn new(size: u64, config: &Config) -> Sender {
        let packets = size.div_ceil(config.mss);
        let first = config.window.min(packets);
        Sender {
            size,
            mss: config.mss,
            packets,
            una: 0,
            slots: VecDeque::new(),
            again: BinaryHeap::new(),
            waiting: 0,
            departed: VecDeque::new(),
            in_flight_bytes: 0,
            first,
            unanswered: first,
            free: 0,
            answers: 0,
            pulls: 0,
            used: 0,
            recent: Recent::default(),
            spray: Spray::default(),
            penalty: config.penalty,
            rtt: Rtt::new(&config.rtt),
            ready: false,
        }
    }
    /// Whether all packets are acknowledged.
    pub(super) fn is_done(&self) -> bool {
        self.una == self.packets
    }
    /// Payload in flight.
    pub(super) fn in_flight_bytes(&self) -> u64 {
        self.in_flight_bytes
    }
    /// The number of the first packet that was never sent.
    fn next(&self) -> u64 {
        self.una + self.slots.len() as u64
    }
    fn payload(&self, number: u64) -> u64 {
        (self.size - number * self.mss).min(self.mss)
    }
    /// Packets that wait to be sent, for the first time or again.
    fn left(&self) -> u64 {
        self.packets - self.next() + self.waiting
    }
    /// How many packets may be sent now.
    pub(super) fn permitted(&self) -> u64 {
        self.first + (self.free + self.pulls - self.used).min(self.left() - self.first)
    }
    /// Whether a packet may be sent now.
    pub(super) fn may_send(&self) -> bool {
        self.permitted() > 0
    }
    /// Whether packets are left, and neither answers nor pulls are under way unless they are late.
    pub(super) fn starves(&self) -> bool {
        self.in_flight_bytes == 0 && self.left() > 0 && !self.may_send()
    }
    /// When the packet longest in flight left.
    pub(super) fn oldest(&self) -> Option<Time> {
        self.departed.front().map(|&(_, at)| at)
    }

    /// The packet that leaves now, if one may.
    pub(super) fn take(&mut self, now: Time, paths: u16, rng: &mut Rng) -> Option<Sent> {
        if !self.may_send() {
            return None;
        }
        let unasked = self.first > 0;
        if unasked {
            self.first -= 1;
        } else if self.free > 0 {
            self.free -= 1;
        } else {
            self.used += 1;
        }
        let lost = if unasked { None } else { self.lowest_waiting() };
        let number = lost.unwrap_or(self.next());
        let path_tag = self.spray.next(paths, rng);
        let slot = Slot { at: now, path_tag, state: State::InFlight, again: lost.is_some() };
        if lost.is_some() {
            self.waiting -= 1;
            self.slots[(number - self.una) as usize] = slot;
        } else {
            self.slots.push_back(slot);
        }
        let payload = self.payload(number);
        self.in_flight_bytes += payload;
        self.departed.push_back((number, now));
        Some(Sent { number, payload: payload as u16, path_tag, again: lost.is_some(), unasked })
    }
    fn lowest_waiting(&mut self) -> Option<u64> {
        while let Some(Reverse(number)) = self.again.pop() {
            if self.slot(number).is_some_and(|slot| slot.state == State::Waiting) {
                return Some(number);
            }
        }
        None
    }
    /// A packet that was sent and is not below `una`.
    fn slot(&mut self, number: u64) -> Option<&mut Slot> {
        let place = number.checked_sub(self.una)?;
        self.slots.get_mut(usize::try_from(place).ok()?)
    }

    /// Packet `number` has arrived.
    pub(super) fn on_ack(&mut self, number: u64, now: Time, config: &RttConfig) {
        self.on_answer(number, true, 1);
        self.answers += 1;
        // Karn: a packet that was sent twice tells nothing of the round trip.
        match self.slot(number).copied() {
            Some(slot) if slot.state == State::InFlight && !slot.again => self.rtt.on_sample(now - slot.at, config),
            _ => self.rtt.end_back_off(config),
        }
        self.acknowledge(number);
        self.prune();
    }
    /// The payload of packet `number` was cut off.
    pub(super) fn on_nack(&mut self, number: u64) {
        self.on_answer(number, false, 1);
        self.answers += 1;
        self.lose(number);
        self.prune();
    }
    /// Packet `number` has come back.
    pub(super) fn on_returned(&mut self, number: u64) {
        self.on_answer(number, false, RETURNED_NACKS);
        self.lose(number);
        self.prune();
        // ndp.cpp, processRTS: to wait spares the receiver a second burst, unless nothing would ever pull the packet, or only its path is bad.
        let none_expected = self.answers <= self.pulls && self.unanswered <= 1;
        if none_expected || self.recent.quarter_are_acks() {
            self.free += 1;
        }
    }
    /// All packets below `una` have arrived, and `pulls` is the number of the last pull.
    pub(super) fn on_progress(&mut self, una: u64, pulls: u64) {
        self.pulls = self.pulls.max(pulls);
        for number in self.una..una.min(self.next()) {
            self.acknowledge(number);
        }
        self.prune();
    }
    /// The timer has expired. Says whether packets count as lost, or a pull.
    pub(super) fn on_timeout(&mut self, now: Time, config: &RttConfig) -> bool {
        let (late, before) = (self.rtt.base_rto(config), self.waiting);
        let starved = self.starves();
        while let Some(&(number, at)) = self.departed.front()
            && at.after(late) <= now
        {
            self.lose(number);
            self.prune();
        }
        let resent = if starved { 1 } else { self.waiting - before };
        self.free += resent;
        if resent > 0 {
            self.rtt.on_timeout(config);
        }
        resent > 0
    }

    fn on_answer(&mut self, number: u64, ack: bool, nacks: u64) {
        self.unanswered = self.unanswered.saturating_sub(1);
        self.recent.push(ack);
        if self.penalty
            && let Some(path_tag) = self.slot(number).map(|slot| slot.path_tag)
        {
            self.spray.hear(path_tag, ack.into(), if ack { 0 } else { nacks });
        }
    }
    fn acknowledge(&mut self, number: u64) {
        let Some(slot) = self.slot(number) else { return };
        match std::mem::replace(&mut slot.state, State::Acked) {
            State::InFlight => self.in_flight_bytes -= self.payload(number),
            State::Waiting => {
                self.waiting -= 1;
                // It was not lost, only late.
                self.free = self.free.saturating_sub(1);
            }
            State::Acked => {}
        }
    }
    /// A packet in flight is to be sent again.
    fn lose(&mut self, number: u64) {
        if let Some(slot) = self.slot(number)
            && slot.state == State::InFlight
        {
            slot.state = State::Waiting;
            self.in_flight_bytes -= self.payload(number);
            self.waiting += 1;
            self.again.push(Reverse(number));
        }
    }
    /// Forgets packets that all before them have followed, and departures of packets that are no longer in flight.
    fn prune(&mut self) {
        while self.slots.front().is_some_and(|slot| slot.state == State::Acked) {
            self.slots.pop_front();
            self.una += 1;
        }
        while let Some(&(number, at)) = self.departed.front()
            && !self.slot(number).is_some_and(|slot| slot.state == State::InFlight && slot.at == at)
        {
            self.departed.pop_front();
        }
    }
}

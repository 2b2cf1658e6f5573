//! One flow at its sender: packets in flight, to be retransmitted and acknowledged, and the number
//! that may be sent.

use super::Config;
use super::paths::{RETURNED_NACKS, Spray};
use crate::kit::rtt::{Rtt, RttConfig};
use base::{Rng, Time};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;

/// Number of recent answers for the rule for returned packets (ndp.h, HIST_LEN).
const RECENT: u32 = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    InFlight,
    /// To be retransmitted.
    Waiting,
    Acked,
}

/// A packet that was sent.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Its last departure.
    at: Time,
    /// The path of its last transmission.
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
    /// One bit per answer, the newest in the lowest bit.
    acks: u16,
    answers: u32,
}

impl Recent {
    fn push(&mut self, ack: bool) {
        self.acks = (self.acks << 1 | u16::from(ack)) & ((1 << RECENT) - 1);
        self.answers = (self.answers + 1).min(RECENT);
    }
    /// Returns whether at least a quarter of them are ACKs.
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
    /// Packets to be retransmitted, the lowest first; some may have been acknowledged in the
    /// meantime.
    again: BinaryHeap<Reverse<u64>>,
    waiting: u64,
    /// Packets in order of departure; the first is in flight.
    departed: VecDeque<(u64, Time)>,
    in_flight_bytes: u64,
    /// New packets of the initial window that are still to be sent.
    first: u64,
    /// Packets of the initial window without an answer.
    unanswered: u64,
    /// Packets that may be sent without a pull, after timeouts and returns.
    free: u64,
    /// Number of ACKs and NACKs.
    answers: u64,
    /// The largest pull number.
    pulls: u64,
    /// Pulls for which a packet was sent.
    used: u64,
    recent: Recent,
    spray: Spray,
    penalty: bool,
    /// Its round trip.
    pub(super) rtt: Rtt,
    /// The flow is in the queue of flows that may send.
    pub(super) ready: bool,
}

impl Sender {
    /// Creates a flow of `size` bytes that has sent nothing.
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
    /// Returns whether all packets are acknowledged.
    pub(super) fn is_done(&self) -> bool {
        self.una == self.packets
    }
    /// Returns the payload in flight, in bytes.
    pub(super) fn in_flight_bytes(&self) -> u64 {
        self.in_flight_bytes
    }
    /// Returns the number of the first packet that was never sent.
    fn next(&self) -> u64 {
        self.una + self.slots.len() as u64
    }
    /// Returns the bytes of the packet that `take` would return.
    pub(super) fn next_bytes(&self) -> Range<u64> {
        let lost = if self.first == 0 && self.waiting > 0 {
            self.slots.iter().position(|slot| slot.state == State::Waiting)
        } else {
            None
        };
        let start = self.mss * lost.map_or(self.next(), |place| self.una + place as u64);
        start..(start + self.mss).min(self.size)
    }
    fn payload(&self, number: u64) -> u64 {
        (self.size - number * self.mss).min(self.mss)
    }
    /// Returns the number of packets to be sent or retransmitted.
    fn left(&self) -> u64 {
        self.packets - self.next() + self.waiting
    }
    /// Returns how many packets may be sent now.
    pub(super) fn permitted(&self) -> u64 {
        self.first + (self.free + self.pulls - self.used).min(self.left() - self.first)
    }
    /// Returns whether a packet may be sent now.
    pub(super) fn may_send(&self) -> bool {
        self.permitted() > 0
    }
    /// Returns whether packets are left but no answers or pulls are expected, unless they are late.
    pub(super) fn starves(&self) -> bool {
        self.in_flight_bytes == 0 && self.left() > 0 && !self.may_send()
    }
    /// Returns when the packet that is in flight longest was sent.
    pub(super) fn oldest(&self) -> Option<Time> {
        self.departed.front().map(|&(_, at)| at)
    }

    /// Returns the packet to send now, if one may be sent.
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
    /// Returns the slot of a packet that was sent and is not below `una`.
    fn slot(&mut self, number: u64) -> Option<&mut Slot> {
        let place = number.checked_sub(self.una)?;
        self.slots.get_mut(usize::try_from(place).ok()?)
    }

    /// Handles the ACK of packet `number`.
    pub(super) fn on_ack(&mut self, number: u64, now: Time, config: &RttConfig) {
        self.on_answer(number, true, 1);
        self.answers += 1;
        // Karn's rule: a packet that was sent twice gives no round-trip sample.
        match self.slot(number).copied() {
            Some(slot) if slot.state == State::InFlight && !slot.again => self.rtt.on_sample(now - slot.at, config),
            _ => self.rtt.end_back_off(config),
        }
        self.acknowledge(number);
        self.prune();
    }
    /// Handles the NACK of packet `number`, whose payload was cut off.
    pub(super) fn on_nack(&mut self, number: u64) {
        self.on_answer(number, false, 1);
        self.answers += 1;
        self.lose(number);
        self.prune();
    }
    /// Handles the return of packet `number`.
    pub(super) fn on_returned(&mut self, number: u64) {
        self.on_answer(number, false, RETURNED_NACKS);
        self.lose(number);
        self.prune();
        // ndp.cpp, processRTS: waiting spares the receiver a second burst, unless no pull is
        // expected or only the path of the packet is bad.
        let none_expected = self.answers <= self.pulls && self.unanswered <= 1;
        if none_expected || self.recent.quarter_are_acks() {
            self.free += 1;
        }
    }
    /// Handles the byte below which all packets have arrived, `una`, and the number of the last
    /// pull.
    pub(super) fn on_progress(&mut self, una: u64, pulls: u64) {
        self.pulls = self.pulls.max(pulls);
        for number in self.una..una.min(self.next()) {
            self.acknowledge(number);
        }
        self.prune();
    }
    /// Handles the expiry of the timer. Returns whether packets or a pull count as lost.
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
            self.spray.count(path_tag, ack.into(), if ack { 0 } else { nacks });
        }
    }
    fn acknowledge(&mut self, number: u64) {
        let Some(slot) = self.slot(number) else { return };
        match std::mem::replace(&mut slot.state, State::Acked) {
            State::InFlight => self.in_flight_bytes -= self.payload(number),
            State::Waiting => {
                self.waiting -= 1;
                // The packet was late, not lost.
                self.free = self.free.saturating_sub(1);
            }
            State::Acked => {}
        }
    }
    /// Marks a packet in flight for retransmission.
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
    /// Forgets acknowledged packets before the first unacknowledged one, and departures of packets
    /// that are not in flight.
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

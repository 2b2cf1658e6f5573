//! The timers of a host: a lazy deadline per (flow, kind). The timers of the host itself belong to
//! [`FlowId::HOST`].
//!
//! Arming a timer again with a later deadline, as every ACK does with the retransmission timer,
//! writes a single word: the queued wake-up keeps its time and, when it is due too early, is queued
//! again for the deadline. Thus the queue has about one entry per armed timer.

use crate::map::FlowMap;
use crate::{FlowId, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Number of kinds of timers of a flow or of the host: kinds are numbers below this. A protocol
/// with more deadlines, for example one for each path of a flow, keeps them itself and arms the
/// earliest: more kinds would cost memory for every flow of every protocol.
pub const KINDS: usize = 4;

/// The identity of a timer. Timers that are due at the same time are ordered by kind, then by flow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct TimerKey {
    /// The protocol's own number, below [`KINDS`].
    pub kind: u8,
    /// The flow, or [`FlowId::HOST`], which comes after all flows.
    pub flow: FlowId,
}

/// The state of a timer; `Time::MAX` means none.
#[derive(Clone, Copy, Debug)]
struct Timer {
    deadline: Time,
    queued: Time,
}

/// The timers of a host.
#[derive(Clone, Debug)]
pub struct Timers {
    /// Time of the first entry of the queue.
    next: Time,
    slots: FlowMap<[Timer; KINDS]>,
    // Entries whose time is not `queued` any more are stale and are discarded when they are due.
    queue: BinaryHeap<Reverse<(Time, TimerKey)>>,
}

impl Default for Timers {
    fn default() -> Self {
        Timers { next: Time::MAX, slots: FlowMap::default(), queue: BinaryHeap::new() }
    }
}

impl Timers {
    /// Sets the deadline of `key`, whether or not it was armed. Panics if its kind is not below
    /// [`KINDS`].
    pub fn arm(&mut self, key: TimerKey, at: Time) {
        let none = Timer { deadline: Time::MAX, queued: Time::MAX };
        let timer = &mut self.slots.or_insert_with(key.flow, || [none; KINDS])[key.kind as usize];
        timer.deadline = at;
        if at < timer.queued {
            timer.queued = at;
            self.queue.push(Reverse((at, key)));
            self.next = self.next.min(at);
        }
    }
    /// Removes the deadline of `key`.
    pub fn disarm(&mut self, key: TimerKey) {
        if let Some(timers) = self.slots.get_mut(key.flow) {
            timers[key.kind as usize].deadline = Time::MAX;
        }
    }
    /// Returns whether `key` is armed.
    pub fn is_armed(&self, key: TimerKey) -> bool {
        self.slots.get(key.flow).is_some_and(|timers| timers[key.kind as usize].deadline != Time::MAX)
    }
    /// Removes all timers of a flow.
    pub fn forget(&mut self, flow: FlowId) {
        self.slots.remove(flow);
    }
    /// Returns the time of the next wake-up: no timer is due before.
    #[inline]
    pub fn next_wake(&self) -> Time {
        self.next
    }
    /// Takes the next timer that is due at `now`, in the order (deadline, kind, flow).
    #[inline]
    pub fn pop_due(&mut self, now: Time) -> Option<TimerKey> {
        if self.next > now {
            return None;
        }
        let due = self.pop(now);
        self.next = self.queue.peek().map_or(Time::MAX, |Reverse((at, _))| *at);
        due
    }
    fn pop(&mut self, now: Time) -> Option<TimerKey> {
        while let Some(&Reverse((at, key))) = self.queue.peek() {
            if at > now {
                return None;
            }
            self.queue.pop();
            let Some(timers) = self.slots.get_mut(key.flow) else { continue };
            let timer = &mut timers[key.kind as usize];
            if timer.queued != at {
                continue;
            }
            timer.queued = Time::MAX;
            match timer.deadline {
                Time::MAX => {}
                deadline if deadline <= at => {
                    timer.deadline = Time::MAX;
                    return Some(key);
                }
                deadline => {
                    timer.queued = deadline;
                    self.queue.push(Reverse((deadline, key)));
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn key(kind: u8, flow: u32) -> TimerKey {
        TimerKey { kind, flow: FlowId(flow) }
    }

    fn due(timers: &mut Timers, now: u64) -> Vec<TimerKey> {
        std::iter::from_fn(|| timers.pop_due(Time(now))).collect()
    }

    #[test]
    fn due_timers_are_ordered_by_deadline_kind_flow() {
        let mut timers = Timers::default();
        for (k, at) in [(key(1, 0), 5), (key(0, 9), 5), (key(0, 2), 5), (key(3, 1), 4), (key(0, 0), 6)] {
            timers.arm(k, Time(at));
        }
        assert_eq!(due(&mut timers, 5), [key(3, 1), key(0, 2), key(0, 9), key(1, 0)]);
        assert_eq!(timers.next_wake(), Time(6));
    }

    #[test]
    fn arming_later_keeps_one_entry_and_fires_once() {
        let mut timers = Timers::default();
        for at in 10..1000 {
            timers.arm(key(0, 1), Time(at));
        }
        assert_eq!(timers.queue.len(), 1);
        assert_eq!(due(&mut timers, 10), []);
        assert_eq!(timers.next_wake(), Time(999));
        assert_eq!(due(&mut timers, 999), [key(0, 1)]);
        assert_eq!(due(&mut timers, 9999), []);
    }

    #[test]
    fn arming_earlier_fires_early_and_once() {
        let mut timers = Timers::default();
        timers.arm(key(0, 1), Time(100));
        timers.arm(key(0, 1), Time(50));
        assert_eq!(due(&mut timers, 50), [key(0, 1)]);
        timers.arm(key(0, 1), Time(100));
        assert_eq!(due(&mut timers, 100), [key(0, 1)]);
        assert_eq!(due(&mut timers, 100), []);
    }

    #[test]
    fn disarmed_and_removed_timers_do_not_fire() {
        let mut timers = Timers::default();
        timers.arm(key(0, 1), Time(5));
        timers.arm(key(1, 2), Time(5));
        timers.disarm(key(0, 1));
        timers.forget(FlowId(2));
        assert!(!timers.is_armed(key(0, 1)));
        assert_eq!(due(&mut timers, 10), []);
    }

    #[test]
    fn a_hosts_timers_come_after_those_of_flows_and_outlive_them() {
        let mut timers = Timers::default();
        let host = |kind| TimerKey { kind, flow: FlowId::HOST };
        for k in [host(0), host(1), key(0, 7), key(1, 7)] {
            timers.arm(k, Time(5));
        }
        assert_eq!(due(&mut timers, 5), [key(0, 7), host(0), key(1, 7), host(1)]);
        timers.arm(host(3), Time(9));
        timers.arm(key(0, 7), Time(8));
        timers.forget(FlowId(7));
        assert!(timers.is_armed(host(3)));
        assert_eq!(due(&mut timers, 9), [host(3)]);
    }

    #[test]
    #[should_panic(expected = "the len is 4 but the index is 4")]
    fn a_kind_that_is_too_large_panics() {
        Timers::default().arm(key(KINDS as u8, 0), Time(1));
    }
}

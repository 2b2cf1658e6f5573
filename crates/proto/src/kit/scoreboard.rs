//! The packets of a flow to be sent, in flight, lost and acknowledged: the sender's side of
//! selective acknowledgment for transports that are paced by a rate and have no window.
//!
//! Packets are numbered from 0. A packet is lost when its ACK has not arrived in time, or when the
//! caller says so.

use crate::ranges::Ranges;
use base::{Dur, Time};
use std::collections::VecDeque;

/// The packets of one flow at its sender.
#[derive(Clone, Debug)]
pub struct Scoreboard {
    packets: u64,
    /// The first packet that was never sent.
    next: u64,
    /// The first packet that is not acknowledged.
    una: u64,
    /// Acknowledged packets above `una`.
    acked: Ranges,
    /// Packets to be retransmitted; some may have been acknowledged in the meantime.
    lost: VecDeque<u64>,
    /// Packets in flight, in order of departure. An acknowledged packet is removed when it reaches
    /// the front.
    sent: VecDeque<(u64, Time)>,
}

impl Scoreboard {
    /// Creates a flow of `packets` packets, at least one, none sent.
    pub fn new(packets: u64) -> Scoreboard {
        Scoreboard { packets, next: 0, una: 0, acked: Ranges::default(), lost: VecDeque::new(), sent: VecDeque::new() }
    }
    fn is_acked(&self, number: u64) -> bool {
        number < self.una || self.acked.containing(number).is_some()
    }
    /// Returns the first packet that is not acknowledged.
    pub fn una(&self) -> u64 {
        self.una
    }
    /// Returns the first packet that was never sent.
    pub fn next(&self) -> u64 {
        self.next
    }
    /// Returns whether all packets are acknowledged.
    pub fn is_done(&self) -> bool {
        self.una == self.packets
    }
    /// Handles an ACK of packet `number`, which also acknowledges all packets below `below`.
    pub fn on_acked(&mut self, number: u64, below: u64) {
        if number > self.una || !self.acked.is_empty() {
            self.acked.insert(number..number + 1);
        } else if number == self.una {
            self.una += 1;
        }
        self.una = self.una.max(below);
        if !self.acked.is_empty() {
            self.una = self.acked.containing(self.una).map_or(self.una, |range| range.end);
            self.acked.remove_below(self.una);
        }
        while self.sent.front().is_some_and(|&(number, _)| self.is_acked(number)) {
            self.sent.pop_front();
        }
    }
    /// Returns the next packet to send, lost ones first, and whether it was sent before.
    pub fn peek(&mut self) -> Option<(u64, bool)> {
        while self.lost.front().is_some_and(|&number| self.is_acked(number)) {
            self.lost.pop_front();
        }
        let lost = self.lost.front().map(|&number| (number, true));
        lost.or_else(|| (self.next < self.packets).then_some((self.next, false)))
    }
    /// Takes the next packet to send, which leaves now.
    pub fn take(&mut self, now: Time) -> Option<(u64, bool)> {
        let (number, resent) = self.peek()?;
        if resent {
            self.lost.pop_front();
        } else {
            self.next += 1;
        }
        self.sent.push_back((number, now));
        Some((number, resent))
    }
    /// Returns how many packets wait to be sent, lost ones included.
    pub fn waiting(&self) -> u64 {
        let lost = self.lost.iter().filter(|&&number| !self.is_acked(number)).count() as u64;
        self.packets - self.next + lost
    }
    /// Returns whether this packet waits to be sent.
    pub fn waits(&self, number: u64) -> bool {
        number >= self.next || (self.lost.contains(&number) && !self.is_acked(number))
    }
    /// Returns how many packets are in flight.
    pub fn in_flight(&self) -> u64 {
        self.sent.iter().filter(|&&(number, _)| !self.is_acked(number)).count() as u64
    }
    /// Returns whether the last packet of the flow is in flight.
    pub fn last_is_in_flight(&self) -> bool {
        let last = self.packets - 1;
        !self.is_acked(last) && self.sent.iter().any(|&(number, _)| number == last)
    }
    /// Returns two numbers: all packets below the first are acknowledged, no packet from the second
    /// on was sent.
    pub fn ends(&self) -> [u64; 2] {
        [self.una, self.next]
    }
    /// Returns when the packet that is in flight longest was sent.
    pub fn oldest(&self) -> Option<Time> {
        self.sent.front().map(|&(_, at)| at)
    }
    /// Declares all packets in flight for `late` or longer lost. Returns whether there are any.
    pub fn lose(&mut self, late: Dur, now: Time) -> bool {
        let before = self.lost.len();
        while let Some(&(number, at)) = self.sent.front()
            && at.after(late) <= now
        {
            self.sent.pop_front();
            if !self.is_acked(number) {
                self.lost.push_back(number);
            }
        }
        self.lost.len() > before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const LATE: Dur = Dur::from_us(100);

    fn at(us: u64) -> Time {
        Time::ZERO + Dur::from_us(us)
    }

    #[test]
    fn lost_packets_go_before_new_ones_unless_they_arrived_late() {
        let mut board = Scoreboard::new(5);
        assert_eq!([0, 10, 20].map(|us| board.take(at(us))), [0, 1, 2].map(|number| Some((number, false))));
        board.on_acked(1, 0);
        assert_eq!((board.in_flight(), board.oldest(), board.waiting()), (2, Some(at(0)), 2));
        assert_eq!((board.una(), board.next()), (0, 3));
        assert!(!board.lose(LATE, at(99)));
        assert!(board.lose(LATE, at(120)));
        assert_eq!((board.in_flight(), board.waiting()), (0, 4));
        assert_eq!([0, 1, 2, 3].map(|number| board.waits(number)), [true, false, true, true]);
        board.on_acked(0, 2);
        assert_eq!((board.peek(), board.waiting()), (Some((2, true)), 3));
        assert_eq!([130, 140, 150, 160].map(|us| board.take(at(us))), [Some((2, true)), Some((3, false)), Some((4, false)), None]);
        board.on_acked(4, 4);
        assert!(board.is_done() && board.oldest().is_none());
    }

    proptest! {
        /// Whatever is acknowledged and lost, in any order, every packet is sent until it is
        /// acknowledged, and not after that.
        #[test]
        fn every_packet_is_sent_until_it_is_acknowledged(steps in prop::collection::vec((0u8..3, 0u64..12), 0..200)) {
            let (mut board, mut acked, mut now) = (Scoreboard::new(12), BTreeSet::new(), at(0));
            for (what, number) in steps {
                now = now.after(Dur::from_us(10));
                match what {
                    0 => if let Some((number, _)) = board.take(now) {
                        prop_assert!(!acked.contains(&number));
                    },
                    1 if number < board.next => {
                        acked.insert(number);
                        let below = (0..12).find(|n| !acked.contains(n)).unwrap_or(12);
                        board.on_acked(number, below);
                    }
                    _ => { board.lose(LATE, now); }
                }
                prop_assert_eq!(board.in_flight() + board.waiting() + acked.len() as u64, 12);
                prop_assert_eq!(board.is_done(), acked.len() == 12);
            }
        }
    }
}

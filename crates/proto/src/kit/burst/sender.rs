//! A flow at its sender: the numbers of its transmissions, its lost data, and the data that a
//! credit sends.

use super::options::Config;
use base::{Dur, Time};
use std::collections::VecDeque;
use std::ops::Range;

/// A piece of data that fills one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub offset: u64,
    /// Number of known losses.
    pub losses: u32,
    /// Whether it was sent before.
    pub again: bool,
}

/// The credit that a piece answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answered {
    pub number: u32,
    pub sent: Time,
}

/// A waiting turn of a flow, other than its burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// A piece that a credit sends.
    Answer(Piece, Answered),
    /// A probe; `asks` if it requests reports of all missing numbers.
    Probe { asks: bool },
}

/// A transmission that counts neither as arrived nor as lost, or that waits until earlier ones can
/// be forgotten.
#[derive(Clone, Copy, Debug)]
struct Sent {
    offset: u64,
    losses: u32,
    flying: bool,
}

/// A flow at its sender.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    pub size: u64,
    pub turns: VecDeque<Turn>,
    /// All bytes below were sent, or are assigned to credits.
    next: u64,
    /// The end of the burst; the burst is over when this is not above `next`.
    burst: u64,
    /// Number of transmissions without credits; these have the first numbers.
    unscheduled: u64,
    /// All bytes below are known to have arrived.
    acked: u64,
    /// Transmissions from number `base` on.
    sent: VecDeque<Sent>,
    base: u64,
    lost: VecDeque<Piece>,
    in_flight: u64,
    credited: bool,
    /// Whether the last credit found no data to send.
    pub wasting: bool,
    /// Smoothed time from a credit to its answer, which the receiver measures; zero before that.
    pub srtt: Dur,
    /// Time from the last progress or timeout to the next timeout.
    pub patience: Dur,
}

impl Sender {
    pub fn new(size: u64, config: &Config) -> Sender {
        Sender {
            size,
            turns: VecDeque::new(),
            next: 0,
            burst: size.min(config.budget),
            unscheduled: 0,
            acked: 0,
            sent: VecDeque::new(),
            base: 0,
            lost: VecDeque::new(),
            in_flight: 0,
            credited: false,
            wasting: false,
            srtt: Dur::ZERO,
            patience: config.patience(Dur::ZERO),
        }
    }
    /// Returns the bytes of a piece.
    pub fn payload(&self, offset: u64, config: &Config) -> u16 {
        (self.size - offset).min(config.mss) as u16
    }
    /// Returns the number of the next transmission.
    pub fn number(&self) -> u64 {
        self.base + self.sent.len() as u64
    }
    /// Returns the number below which all transmissions are settled.
    pub fn settled(&self) -> u64 {
        self.base
    }
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }
    /// Returns the number of bytes still to be sent; lost pieces count as whole packets.
    pub fn left(&self, config: &Config) -> u64 {
        self.size - self.next + self.lost.len() as u64 * config.mss
    }
    pub fn in_burst(&self) -> bool {
        self.next < self.burst
    }
    /// Returns the next packet of the burst, if the burst is not over.
    pub fn take_burst(&mut self, config: &Config) -> Option<Piece> {
        self.in_burst().then(|| self.take_new(config))
    }
    fn take_new(&mut self, config: &Config) -> Piece {
        let offset = self.next;
        self.next += u64::from(self.payload(offset, config));
        Piece { offset, losses: 0, again: false }
    }
    /// Handles a credit. Returns whether it is the first one, and whether it ends a burst that has
    /// sent packets.
    pub fn on_credit(&mut self) -> (bool, bool) {
        let first = !std::mem::replace(&mut self.credited, true);
        let cuts = self.in_burst();
        self.burst = self.burst.min(self.next);
        (first, cuts && self.unscheduled > 0)
    }
    /// Returns the piece that a credit sends: a lost one, a new one, or an unconfirmed one of the
    /// burst.
    pub fn take(&mut self, config: &Config) -> Option<Piece> {
        while let Some(piece) = self.lost.pop_front() {
            if !self.has_arrived(piece.offset, config) {
                return Some(piece);
            }
        }
        if self.next < self.size {
            return Some(self.take_new(config));
        }
        if config.resend_unconfirmed { self.take_unconfirmed(config) } else { None }
    }
    fn take_unconfirmed(&mut self, config: &Config) -> Option<Piece> {
        self.forget(config);
        let of_burst = self.unscheduled.saturating_sub(self.base) as usize;
        for at in 0..of_burst.min(self.sent.len()) {
            let Sent { offset, losses, flying } = self.sent[at];
            if flying && !self.has_arrived(offset, config) {
                self.settle(self.base + at as u64, config);
                return Some(Piece { offset, losses, again: true });
            }
        }
        None
    }
    /// Records that a piece leaves the host. Returns its number.
    pub fn depart(&mut self, piece: Piece, config: &Config) -> u64 {
        let number = self.number();
        self.in_flight += u64::from(self.payload(piece.offset, config));
        self.sent.push_back(Sent { offset: piece.offset, losses: piece.losses, flying: true });
        number
    }
    /// Records that a piece of the burst leaves the host. Returns its number.
    pub fn depart_burst(&mut self, piece: Piece, config: &Config) -> u64 {
        self.unscheduled += 1;
        self.depart(piece, config)
    }
    /// Records that all bytes below `upto` have arrived. Returns whether more have arrived than
    /// before.
    pub fn on_acked(&mut self, upto: u64, config: &Config) -> bool {
        let more = upto > self.acked;
        if more {
            self.acked = upto;
            self.forget(config);
        }
        more
    }
    /// Records that the transmission with this number has arrived.
    pub fn on_arrived(&mut self, number: u64, config: &Config) {
        self.settle(number, config);
        self.forget(config);
    }
    /// Declares the transmissions in flight with these numbers lost. Returns how many of the burst
    /// and how many of credits were lost.
    pub fn on_lost(&mut self, numbers: Range<u64>, config: &Config) -> (u64, u64) {
        let (mut burst, mut scheduled) = (0, 0);
        for number in numbers.start.max(self.base)..numbers.end.min(self.number()) {
            let Sent { offset, losses, flying } = self.sent[(number - self.base) as usize];
            if flying && !self.has_arrived(offset, config) {
                self.settle(number, config);
                self.lost.push_back(Piece { offset, losses: losses + 1, again: true });
                *(if number < self.unscheduled { &mut burst } else { &mut scheduled }) += 1;
            }
        }
        self.forget(config);
        (burst, scheduled)
    }
    /// Returns the number of transmissions without credits.
    pub fn unscheduled(&self) -> u64 {
        self.unscheduled
    }
    /// Settles a transmission: its arrival or loss is known.
    fn settle(&mut self, number: u64, config: &Config) {
        let Some(at) = number.checked_sub(self.base) else { return };
        let Some(sent) = self.sent.get_mut(at as usize) else { return };
        if std::mem::take(&mut sent.flying) {
            let offset = sent.offset;
            self.in_flight -= u64::from(self.payload(offset, config));
        }
    }
    /// Forgets settled transmissions before the first unsettled one.
    fn forget(&mut self, config: &Config) {
        while let Some(&Sent { offset, flying, .. }) = self.sent.front()
            && (!flying || self.has_arrived(offset, config))
        {
            self.settle(self.base, config);
            self.sent.pop_front();
            self.base += 1;
        }
    }
    fn has_arrived(&self, offset: u64, config: &Config) -> bool {
        offset + u64::from(self.payload(offset, config)) <= self.acked
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::burst::options::Options;
    use crate::kit::script;
    use base::params::Params as _;

    const MSS: u64 = 1460;

    fn config(resend_unconfirmed: bool) -> Config {
        Config { resend_unconfirmed, ..Config::new(&Options::defaults(), &script::env()) }
    }

    /// A sender of six packets whose burst of four has left.
    fn after_burst(config: &Config) -> Sender {
        let mut sender = Sender::new(5 * MSS + 1, &Config { budget: 4 * MSS, ..config.clone() });
        while let Some(piece) = sender.take_burst(config) {
            sender.depart_burst(piece, config);
        }
        assert_eq!((sender.number(), sender.in_flight(), sender.on_credit()), (4, 4 * MSS, (true, false)));
        sender
    }

    /// Takes the pieces of `n` credits; returns their segments.
    fn answers(sender: &mut Sender, config: &Config, n: usize) -> Vec<Option<u64>> {
        (0..n).map(|_| sender.take(config)).map(|piece| piece.map(|piece| piece.offset / MSS)).collect()
    }

    #[test]
    fn a_credit_sends_what_is_lost_then_what_is_new_then_what_is_unconfirmed() {
        let config = config(true);
        let mut sender = after_burst(&config);
        sender.on_arrived(1, &config);
        assert_eq!(sender.on_lost(2..3, &config), (1, 0));
        assert_eq!(answers(&mut sender, &config, 6), [Some(2), Some(4), Some(5), Some(0), Some(3), None]);
        let mut sender = after_burst(&config);
        // Pieces that are known to have arrived are not retransmitted, even if reported as lost.
        assert_eq!(sender.on_lost(0..2, &config), (2, 0));
        assert!(sender.on_acked(3 * MSS, &config) && !sender.on_acked(2 * MSS, &config));
        assert_eq!(answers(&mut sender, &config, 4), [Some(4), Some(5), Some(3), None]);
    }

    #[test]
    fn without_it_nothing_unconfirmed_is_sent() {
        let config = config(false);
        let mut sender = after_burst(&config);
        assert_eq!(answers(&mut sender, &config, 3), [Some(4), Some(5), None]);
    }

    #[test]
    fn the_first_credit_ends_the_burst() {
        let config = config(true);
        let mut sender = Sender::new(6 * MSS, &config);
        let piece = sender.take_burst(&config).expect("a burst");
        sender.depart_burst(piece, &config);
        assert_eq!([(); 2].map(|()| sender.on_credit()), [(true, true), (false, false)]);
        assert_eq!(sender.take_burst(&config), None);
        // A burst that has sent no packet needs no probe.
        assert_eq!(Sender::new(6 * MSS, &config).on_credit(), (true, false));
    }

    #[test]
    fn a_loss_is_reported_once_and_counted() {
        let config = config(false);
        let mut sender = after_burst(&config);
        for _ in 0..2 {
            let piece = sender.take(&config).expect("two segments are left");
            sender.depart(piece, &config);
        }
        assert_eq!(sender.in_flight(), 5 * MSS + 1);
        assert_eq!([sender.on_lost(3..6, &config), sender.on_lost(0..9, &config)], [(1, 2), (3, 0)]);
        assert_eq!((sender.in_flight(), sender.settled(), sender.left(&config)), (0, 6, 6 * MSS));
        // Lost again.
        let piece = sender.take(&config).expect("lost");
        assert_eq!((piece, sender.depart(piece, &config)), (Piece { offset: 3 * MSS, losses: 1, again: true }, 6));
        assert_eq!(sender.on_lost(6..7, &config), (0, 1));
        assert_eq!(sender.lost.back().map(|piece| piece.losses), Some(2));
    }
}

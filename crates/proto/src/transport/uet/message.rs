//! The packets of a message at its sender: sent, in flight, lost, acknowledged.
//!
//! Packets are numbered from 0. All sizes are bytes on the wire.

use base::{Dur, Time};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Largest distance between the first packet without an acknowledgment and the last packet sent.
/// In the program, receivers keep the state of 2^14 packets (uecMaxInFlightPkts) and stop the run at
/// a larger distance.
pub(super) const MOST_AHEAD: u64 = 1 << 20;

/// The state of a packet that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// An answer is expected.
    InFlight,
    /// The packet counts as lost and waits for its retransmission.
    Lost,
    /// The packet has arrived.
    Arrived,
}

/// The last transmission of a packet.
#[derive(Clone, Copy, Debug)]
struct Transmission {
    at: Time,
    entropy: u16,
    progress: Progress,
    /// Number of earlier transmissions, at most 255.
    again: u8,
}

/// A packet that leaves now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Leaving {
    /// Its number.
    pub(super) number: u64,
    /// Application bytes.
    pub(super) payload: u16,
    /// Whether it was sent before.
    pub(super) again: bool,
}

/// A packet that counts as lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LostPacket {
    /// The entropy value of its last transmission.
    pub(super) entropy: u16,
    /// Its size.
    pub(super) wire: u64,
}

/// A message at its sender.
#[derive(Clone, Debug)]
pub(super) struct OutMessage {
    size: u64,
    mss: u64,
    header: u64,
    packets: u64,
    /// All packets below have arrived.
    una: u64,
    /// The packets that were sent, from `una` on.
    sent: VecDeque<Transmission>,
    /// Lost packets, the lowest first; some may have arrived in the meantime.
    lost: BinaryHeap<Reverse<u64>>,
    lost_wire: u64,
    /// Packets in order of departure; the first is in flight.
    departed: VecDeque<(u64, Time)>,
    /// Packets in flight as far as bitmaps tell, and their size.
    flying: u64,
    flying_wire: u64,
    /// Bytes that the receiver says have arrived, and those of packets known to have arrived.
    told: u64,
    known: u64,
    /// SLEEK: losses are inferred until all packets below this number have arrived, if they are; and
    /// packets below the second number are not inferred to be lost again.
    recovery: Option<u64>,
    inferred: u64,
    /// Ordered delivery: the packet from which the last retransmission of all packets began.
    went_back: Option<u64>,
    /// The last measured round trip.
    pub(super) rtt: Dur,
    /// Whether the sender waits for credit, with no packet in flight.
    pub(super) is_silent: bool,
    /// The last probe: when it was sent, and whether its number is odd.
    pub(super) probe: Option<(Time, bool)>,
}

impl OutMessage {
    /// Creates a message of `size` bytes that has sent nothing.
    pub(super) fn new(size: u64, mss: u64, header: u64) -> OutMessage {
        OutMessage {
            size,
            mss,
            header,
            packets: size.div_ceil(mss),
            una: 0,
            sent: VecDeque::new(),
            lost: BinaryHeap::new(),
            lost_wire: 0,
            departed: VecDeque::new(),
            flying: 0,
            flying_wire: 0,
            told: 0,
            known: 0,
            recovery: None,
            inferred: 0,
            went_back: None,
            rtt: Dur::ZERO,
            is_silent: false,
            probe: None,
        }
    }
    /// Returns whether all packets have arrived.
    pub(super) fn is_done(&self) -> bool {
        self.una == self.packets
    }
    /// Returns the number of packets of the message.
    pub(super) fn packets(&self) -> u64 {
        self.packets
    }
    /// Returns the first packet that is not known to have arrived.
    #[cfg(test)]
    fn una(&self) -> u64 {
        self.una
    }
    /// Returns the first packet that was never sent.
    fn next(&self) -> u64 {
        self.una + self.sent.len() as u64
    }
    /// Returns the size of packet `number`.
    pub(super) fn wire(&self, number: u64) -> u64 {
        (self.size - number * self.mss).min(self.mss) + self.header
    }
    /// Returns the size of all packets below `number`.
    pub(super) fn wire_below(&self, number: u64) -> u64 {
        (number * self.mss).min(self.size) + number * self.header
    }
    /// Returns the size of the packets that were never sent.
    pub(super) fn backlog(&self) -> u64 {
        self.wire_below(self.packets) - self.wire_below(self.next())
    }
    /// Returns the size of the lost packets that wait for their retransmission.
    pub(super) fn lost_wire(&self) -> u64 {
        self.lost_wire
    }
    /// Returns the bytes in flight: those of packets without an answer, less the bytes that the
    /// receiver has counted and no bitmap has shown.
    #[inline]
    pub(super) fn in_flight(&self) -> u64 {
        self.flying_wire.saturating_sub(self.told.saturating_sub(self.known))
    }
    /// Returns the payload of the packets without an answer.
    pub(super) fn payload_in_flight(&self) -> u64 {
        self.flying_wire - self.flying * self.header
    }
    /// Returns when the packet that is in flight longest was sent.
    #[inline]
    pub(super) fn oldest(&self) -> Option<Time> {
        self.departed.front().map(|&(_, at)| at)
    }

    /// Returns the next packet, lost ones first, and whether it was sent before.
    fn peek(&mut self) -> Option<(u64, bool)> {
        while let Some(&Reverse(number)) = self.lost.peek() {
            if self.get(number).is_some_and(|sent| sent.progress == Progress::Lost) {
                return Some((number, true));
            }
            self.lost.pop();
        }
        let next = self.next();
        (next < self.packets && next - self.una < MOST_AHEAD).then_some((next, false))
    }
    /// Returns the size of the next packet, if there is one to send.
    pub(super) fn next_wire(&mut self) -> Option<u64> {
        self.peek().map(|(number, _)| self.wire(number))
    }
    /// Takes the next packet, which leaves now with this entropy value.
    pub(super) fn take(&mut self, entropy: u16, now: Time) -> Option<Leaving> {
        let (number, again) = self.peek()?;
        let wire = self.wire(number);
        if again {
            self.lost.pop();
            self.lost_wire -= wire;
            let place = (number - self.una) as usize;
            let times = self.sent[place].again.saturating_add(1);
            self.sent[place] = Transmission { at: now, entropy, progress: Progress::InFlight, again: times };
        } else {
            self.sent.push_back(Transmission { at: now, entropy, progress: Progress::InFlight, again: 0 });
        }
        self.flying += 1;
        self.flying_wire += wire;
        self.departed.push_back((number, now));
        Some(Leaving { number, payload: (wire - self.header) as u16, again })
    }

    /// Returns the packet if it was sent and is not below `una`.
    #[inline]
    fn get(&self, number: u64) -> Option<&Transmission> {
        self.sent.get(usize::try_from(number.checked_sub(self.una)?).ok()?)
    }
    /// Returns when packet `number`, whose answer says whether it was a retransmission, was sent, if
    /// the transmission is known (validateSendTs): it was sent once, or once more.
    pub(super) fn sent_at(&self, number: u64, again: bool) -> Option<Time> {
        let sent = self.get(number)?;
        (sent.progress == Progress::InFlight && sent.again == u8::from(again)).then_some(sent.at)
    }
    /// Returns whether packet `number` is in flight.
    fn is_in_flight(&self, number: u64) -> bool {
        self.get(number).is_some_and(|sent| sent.progress == Progress::InFlight)
    }

    /// Handles the number of bytes that have arrived. Returns how many are new.
    pub(super) fn on_told(&mut self, bytes: u64) -> u64 {
        let new = bytes.saturating_sub(self.told);
        self.told += new;
        new
    }
    /// Handles the arrival of packet `number`.
    #[inline]
    fn arrive(&mut self, number: u64) {
        let Some(place) = number.checked_sub(self.una) else { return };
        let Some(sent) = self.sent.get_mut(place as usize) else { return };
        let before = std::mem::replace(&mut sent.progress, Progress::Arrived);
        if before == Progress::Arrived {
            return;
        }
        let wire = self.wire(number);
        self.known += wire;
        if before == Progress::InFlight {
            self.flying -= 1;
            self.flying_wire -= wire;
        } else {
            self.lost_wire -= wire;
        }
    }
    /// Handles an acknowledgment: all packets below `next` have arrived, and packet `base + i` if
    /// bit `i` of the bitmap is set.
    pub(super) fn on_acked(&mut self, next: u64, base: u64, mut bitmap: u64) {
        for number in self.una..next.min(self.next()) {
            self.arrive(number);
        }
        while bitmap != 0 {
            self.arrive(base + u64::from(bitmap.trailing_zeros()));
            bitmap &= bitmap - 1;
        }
        while self.sent.front().is_some_and(|sent| sent.progress == Progress::Arrived) {
            self.sent.pop_front();
            self.una += 1;
        }
        self.prune();
    }
    /// Counts packet `number` as lost. Returns it if it was in flight.
    pub(super) fn lose(&mut self, number: u64) -> Option<LostPacket> {
        if !self.is_in_flight(number) {
            return None;
        }
        let wire = self.wire(number);
        let sent = &mut self.sent[(number - self.una) as usize];
        sent.progress = Progress::Lost;
        let entropy = sent.entropy;
        self.flying -= 1;
        self.flying_wire -= wire;
        self.lost_wire += wire;
        self.lost.push(Reverse(number));
        self.prune();
        Some(LostPacket { entropy, wire })
    }
    /// Ordered delivery: counts all packets in flight from `number` on as lost (go-back-N).
    pub(super) fn go_back(&mut self, number: u64) {
        self.went_back = Some(number);
        (number..self.next()).for_each(|later| _ = self.lose(later));
    }
    /// Ordered delivery: handles the NACK of a packet that arrived before packet `number`, the first
    /// missing one. Only the first of these NACKs counts. Returns the size of packet `number` if all
    /// packets from there on now count as lost.
    pub(super) fn on_gap(&mut self, number: u64) -> Option<u64> {
        if self.went_back == Some(number) || !self.is_in_flight(number) {
            return None;
        }
        self.go_back(number);
        Some(self.wire(number))
    }
    /// Ordered delivery: handles the NACK of packet `number`, which was trimmed. If the NACK answers
    /// the last transmission of the packet, all packets from there on count as lost. Returns the size
    /// of the packet if it is missing.
    pub(super) fn on_trimmed(&mut self, number: u64, again: bool) -> Option<u64> {
        let sent = self.get(number).filter(|sent| sent.progress != Progress::Arrived)?;
        if sent.progress == Progress::InFlight && (sent.again > 0) == again {
            self.go_back(number);
        }
        Some(self.wire(number))
    }
    /// Returns whether the window does not hold up the next packet: it was inferred to be lost.
    pub(super) fn is_urgent(&self) -> bool {
        self.recovery.is_some() && self.lost_wire > 0
    }
    /// Infers losses from now on: a probe has found that the network is not the reason for missing
    /// ACKs.
    pub(super) fn start_recovery(&mut self) {
        (self.recovery, self.inferred) = (Some(self.next()), self.una);
    }
    /// Infers losses after an ACK (runSleek): if `early` packets have arrived after the first missing
    /// one, at least `least`, all missing packets of the next `window` count as lost, each once.
    /// Returns how many.
    pub(super) fn infer_losses(&mut self, early: u64, least: u64, window: u64) -> u64 {
        self.recovery = self.recovery.filter(|&until| self.una < until);
        if self.recovery.is_none() {
            if early < least || self.lost_wire > 0 {
                return 0;
            }
            self.recovery = Some(self.next());
        }
        let end = self.recovery.map_or(0, |until| until.min(self.una + window));
        let mut lost = 0;
        for number in self.una.max(self.inferred)..end {
            if self.lose(number).is_some() {
                self.inferred = number + 1;
                lost += 1;
            }
        }
        lost
    }
    /// Returns the packet in flight that was sent first, if that was `rto` or longer ago.
    pub(super) fn overdue(&self, rto: Dur, now: Time) -> Option<u64> {
        self.departed.front().filter(|(_, at)| at.after(rto) <= now).map(|&(number, _)| number)
    }
    /// Forgets departures of packets that are no longer in flight.
    fn prune(&mut self) {
        while let Some(&(number, at)) = self.departed.front()
            && !self.get(number).is_some_and(|sent| sent.progress == Progress::InFlight && sent.at == at)
        {
            self.departed.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(n: u64) -> Time {
        Time::ZERO + Dur::from_us(n)
    }
    /// Packets of 1000 bytes with headers of 50; the last has 500 bytes.
    fn message(packets: u64, sent: u64) -> OutMessage {
        let mut message = OutMessage::new(packets * 1000 - 500, 1000, 50);
        for number in 0..sent {
            let leaving = message.take(number as u16, us(number)).expect("a packet to send");
            assert_eq!((leaving.number, leaving.again), (number, false));
        }
        message
    }

    /// Retransmits up to `count` packets.
    fn take(message: &mut OutMessage, count: u64) -> Vec<(u64, bool)> {
        (0..count).map_while(|_| message.take(0, us(20))).map(|leaving| (leaving.number, leaving.again)).collect()
    }
    fn again(numbers: std::ops::Range<u64>) -> Vec<(u64, bool)> {
        numbers.map(|number| (number, true)).collect()
    }

    /// Of packets 0 to 7, packet 3 is lost, and later packet 5.
    #[test]
    fn ordered_packets_are_retransmitted_once_for_each_first_missing_one() {
        let mut message = message(10, 8);
        message.on_acked(2, 0, 0);
        assert_eq!(message.on_gap(3), Some(1050));
        // Packet 2 is in flight.
        assert_eq!((message.flying, message.lost_wire()), (1, 5 * 1050));
        // The packets that were sent after packet 3 arrive out of order, too.
        assert_eq!(message.on_gap(3), None);
        assert_eq!(take(&mut message, 6), [again(3..8), vec![(8, false)]].concat());
        assert_eq!((message.on_gap(3), message.lost_wire()), (None, 0));
        message.on_acked(5, 0, 0);
        // Neither a packet that has arrived nor one that was not sent.
        assert_eq!([4, 9].map(|number| message.on_gap(number)), [None; 2]);
        assert_eq!((message.on_gap(5), take(&mut message, 4)), (Some(1050), again(5..9)));
    }

    #[test]
    fn ordered_packets_are_retransmitted_from_a_trimmed_one_on() {
        let mut message = message(10, 6);
        assert_eq!(message.on_trimmed(2, false), Some(1050));
        assert_eq!((message.flying, message.lost_wire()), (2, 4 * 1050));
        // Packet 4 was trimmed, too, and waits already.
        assert_eq!((message.on_trimmed(4, false), message.lost_wire()), (Some(1050), 4 * 1050));
        assert_eq!(take(&mut message, 2), again(2..4));
        // The NACK of the first transmission comes late; that of the second one counts.
        assert_eq!((message.on_trimmed(3, false), message.lost_wire()), (Some(1050), 2 * 1050));
        assert_eq!((message.on_trimmed(3, true), message.lost_wire()), (Some(1050), 3 * 1050));
        message.on_acked(6, 0, 0);
        assert_eq!((message.on_trimmed(2, true), message.lost_wire(), message.flying), (None, 0, 0));
    }

    #[test]
    fn sizes_are_those_on_the_wire() {
        let mut message = message(3, 2);
        assert_eq!((message.in_flight(), message.payload_in_flight(), message.backlog()), (2100, 2000, 550));
        assert_eq!((message.next_wire(), message.wire_below(3)), (Some(550), 2650));
        assert_eq!(message.take(0, us(9)), Some(Leaving { number: 2, payload: 500, again: false }));
        assert_eq!((message.backlog(), message.next_wire(), message.take(0, us(9))), (0, None, None));
    }

    #[test]
    fn bitmaps_and_numbers_acknowledge_packets() {
        let mut message = message(10, 8);
        // Packets 0, 1; 4 and 6.
        message.on_acked(2, 4, 0b101);
        assert_eq!((message.una(), message.next(), message.in_flight()), (2, 8, 4 * 1050));
        assert_eq!([1, 2, 4, 5].map(|number| message.is_in_flight(number)), [false, true, false, true]);
        // An older acknowledgment changes nothing, and numbers that were never sent are ignored.
        message.on_acked(1, 60, u64::MAX);
        assert_eq!((message.una(), message.in_flight()), (2, 4 * 1050));
        message.on_acked(4, 5, 1);
        assert_eq!((message.una(), message.in_flight(), message.oldest()), (7, 1050, Some(us(7))));
        message.on_acked(10, 11, 0);
        assert_eq!((message.una(), message.is_done()), (8, false), "two packets were never sent");
    }

    /// The receiver counts bytes that no bitmap shows.
    #[test]
    fn told_bytes_leave_the_flight_before_their_packets_are_known() {
        let mut message = message(10, 8);
        assert_eq!(message.on_told(5 * 1050), 5 * 1050);
        message.on_acked(2, 3, 1);
        assert_eq!((message.in_flight(), message.payload_in_flight()), (3 * 1050, 5000));
        assert_eq!((message.on_told(4 * 1050), message.in_flight()), (0, 3 * 1050), "an older count");
        message.on_acked(5, 6, 0);
        assert_eq!((message.in_flight(), message.payload_in_flight()), (3 * 1050, 3000));
    }

    #[test]
    fn lost_packets_go_first_and_the_lowest_of_them() {
        let mut message = message(10, 6);
        assert_eq!(message.lose(4), Some(LostPacket { entropy: 4, wire: 1050 }));
        assert_eq!(message.lose(1), Some(LostPacket { entropy: 1, wire: 1050 }));
        assert_eq!((message.lose(4), message.lose(6), message.in_flight(), message.lost_wire()), (None, None, 4200, 2100));
        assert_eq!(message.take(9, us(10)), Some(Leaving { number: 1, payload: 1000, again: true }));
        // Packet 4 was late, not lost.
        message.on_acked(0, 4, 1);
        assert_eq!((message.lost_wire(), message.in_flight()), (0, 5 * 1050));
        assert_eq!(message.take(9, us(10)).map(|leaving| leaving.number), Some(6));
    }

    /// Karn's rule with one retransmission that the answer names.
    #[test]
    fn only_known_transmissions_are_measured() {
        let mut message = message(10, 4);
        assert_eq!((message.sent_at(2, false), message.sent_at(2, true)), (Some(us(2)), None));
        message.lose(2);
        assert_eq!(message.sent_at(2, false), None);
        message.take(7, us(20));
        assert_eq!((message.sent_at(2, false), message.sent_at(2, true)), (None, Some(us(20))));
        message.lose(2);
        message.take(7, us(30));
        assert_eq!((message.sent_at(2, false), message.sent_at(2, true)), (None, None), "two retransmissions");
    }

    #[test]
    fn the_packet_in_flight_longest_is_overdue_first() {
        let mut message = message(10, 3);
        let rto = Dur::from_us(100);
        assert_eq!((message.overdue(rto, us(99)), message.overdue(rto, us(100))), (None, Some(0)));
        message.lose(0);
        message.take(0, us(100));
        message.on_acked(0, 1, 1);
        assert_eq!((message.overdue(rto, us(101)), message.overdue(rto, us(102))), (None, Some(2)));
        message.lose(2);
        assert_eq!((message.oldest(), message.overdue(rto, us(199))), (Some(us(100)), None));
    }

    /// Packets 0, 2 and 9 are lost. Six of the others are a reason to infer it, five are not.
    #[test]
    fn many_arrivals_after_a_hole_are_a_reason_to_retransmit() {
        let mut message = message(20, 12);
        message.on_acked(0, 1, 0b11_1101);
        assert_eq!((message.infer_losses(5, 6, 4), message.is_urgent()), (0, false));
        message.on_acked(0, 1, 0b111_1101);
        // Missing packets below 0 + 4.
        assert_eq!((message.infer_losses(6, 6, 4), message.is_urgent(), message.lost_wire()), (2, true, 2100));
        assert_eq!(message.infer_losses(7, 6, 4), 0, "each once");
        assert_eq!(
            [message.take(0, us(20)), message.take(0, us(20))].map(|leaving| leaving.map(|leaving| leaving.number)),
            [Some(0), Some(2)]
        );
        assert!(!message.is_urgent());
        // All but packet 9: it is below 12, the first packet that was not sent when the recovery began.
        message.on_acked(9, 10, 0b11);
        assert_eq!((message.infer_losses(0, 6, 4), message.lost_wire()), (1, 1050));
        message.on_acked(12, 13, 0);
        assert_eq!((message.infer_losses(0, 6, 4), message.is_urgent()), (0, false), "the recovery has ended");
        message.take(0, us(30));
        message.take(0, us(30));
        message.start_recovery();
        assert_eq!(message.infer_losses(0, 6, 9), 2, "a probe needs no early packets");
    }

    #[test]
    fn a_hole_bounds_the_numbers_in_flight() {
        let mut message = OutMessage::new(2 * MOST_AHEAD, 1, 1);
        for number in 0..MOST_AHEAD {
            message.take(0, Time::ZERO).expect("a packet to send");
            message.on_acked(0, number, u64::from(number > 0));
        }
        assert_eq!((message.next_wire(), message.una()), (None, 0));
        message.on_acked(1, 2, 0);
        assert_eq!(message.next_wire(), Some(2));
    }
}

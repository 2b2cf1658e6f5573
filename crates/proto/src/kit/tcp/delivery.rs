//! The record of a sender's deliveries, for controllers that measure the delivery rate: a snapshot
//! per segment in flight, the bytes delivered and lost so far, and a rate sample per ACK.
//!
//! Source: draft-ietf-ccwg-bbr section 4.1 (delivery rate samples; the variables have its names).
//! RFC 8985 section 6.2 for lost retransmissions. Every segment but the last of a flow is full, so
//! that the record counts segments by number.

use super::answer::Blocks;
use crate::ranges::Ranges;
use base::{Dur, Rate, Time};
use std::collections::VecDeque;
use std::ops::Range;

/// The record of deliveries of one flow.
#[derive(Clone, Debug)]
pub struct Deliveries {
    smss: u64,
    /// The number of the first segment of `segments`: all earlier segments are acknowledged.
    first: u64,
    segments: VecDeque<SegmentRecord>,
    /// Bytes above the cumulative acknowledgment that have been delivered. They survive a timeout.
    sacked: Ranges,
    /// Segments that start below have been tested for loss.
    tested: u64,
    /// C.delivered, in bytes.
    delivered: u64,
    /// Bytes delivered by ACKs that echo a mark (delivered_ce in Linux).
    marked: u64,
    /// C.lost, in bytes.
    lost: u64,
    /// C.inflight, in bytes.
    in_flight: u64,
    /// Lost bytes that were not retransmitted since (C.lost_out - C.retrans_out).
    lost_out: u64,
    delivered_time: Time,
    first_send_time: Time,
    /// C.app_limited: the sender had run out of data before these bytes were delivered. Zero if not.
    app_limited: u64,
    /// C.min_rtt.
    min_rtt: Dur,
    /// C.is_cwnd_limited, and the delivered bytes that end its round trip.
    cwnd_limited: Option<u64>,
    last_sent: Option<(Time, u64)>,
    losses: Vec<LostSegment>,
    /// Retransmissions, in order of departure, and their segments.
    resent: VecDeque<(Time, u64)>,
    /// RACK.xmit_ts: when the segment was sent that was sent last among those delivered.
    newest_sent: Time,
}

/// A segment that was sent and is not acknowledged: the state of the flow when it was last sent.
#[derive(Clone, Copy, Debug)]
struct SegmentRecord {
    len: u16,
    place: SegmentPlace,
    resent: bool,
    app_limited: bool,
    tx_in_flight: u64,
    delivered: u64,
    marked: u64,
    lost: u64,
    send_time: Time,
    delivered_time: Time,
    first_send_time: Time,
}

/// Where the last copy of a segment is, as far as the sender knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SegmentPlace {
    InFlight,
    Lost,
    Delivered,
}

/// An ACK, as the record of deliveries sees it.
pub(crate) struct DeliveryAck<'a> {
    /// The current time.
    pub now: Time,
    /// All bytes below have arrived.
    pub snd_una: u64,
    /// The blocks of the ACK.
    pub blocks: Option<&'a Blocks>,
    /// The sender counts bytes below as lost, unless they have arrived or were retransmitted.
    pub lost_below: u64,
    /// The ACK echoes a mark.
    pub ece: bool,
    /// When the segment that the ACK answers was sent, if its echo gives a round-trip sample.
    pub echo: Option<Time>,
}

/// A delivery rate sample: the result of an ACK that delivers data (RS in the draft).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// The current time.
    pub now: Time,
    /// The round trip of the segment that was sent last among those delivered.
    pub rtt: Option<Dur>,
    /// Smoothed round trip.
    pub srtt: Dur,
    /// Bytes that this ACK delivers, cumulatively or selectively.
    pub newly_acked: u64,
    /// Bytes found lost by this ACK.
    pub newly_lost: u64,
    /// C.delivered: bytes delivered so far.
    pub total: u64,
    /// Bytes of [`RateSample::total`] that were acknowledged with an echo of a mark.
    pub total_marked: u64,
    /// C.inflight: bytes in flight after this ACK.
    pub in_flight: u64,
    /// Bytes that had been delivered when the segment was sent (P.delivered).
    pub prior_delivered: u64,
    /// Bytes delivered since then.
    pub delivered: u64,
    /// Bytes of them that were acknowledged with an echo of a mark.
    pub marked: u64,
    /// The interval in which they were delivered.
    pub interval: Dur,
    /// The delivery rate; zero if the interval is shorter than the shortest round trip.
    pub rate: Rate,
    /// Whether the sender had run out of data when the segment was sent.
    pub app_limited: bool,
    /// Bytes in flight when the segment was sent, the segment included.
    pub tx_in_flight: u64,
    /// Bytes found lost since the segment was sent.
    pub lost: u64,
    /// The ACK echoes a mark.
    pub ece: bool,
    /// Whether the window limited the sender within the last round trip.
    pub cwnd_limited: bool,
    /// Whether the sender recovers from a loss.
    pub recovering: bool,
}

/// A segment that was found lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostSegment {
    /// Its number in the flow.
    pub number: u64,
    /// Its bytes.
    pub size: u64,
    /// Bytes in flight when the segment was sent, the segment included.
    pub tx_in_flight: u64,
    /// Bytes found lost since the segment was sent, the segment included.
    pub lost: u64,
    /// Whether the sender had run out of data when the segment was sent.
    pub app_limited: bool,
}

impl Deliveries {
    /// Creates the record of a flow that has sent nothing, in segments of `smss` bytes.
    pub fn new(smss: u64) -> Deliveries {
        Deliveries {
            smss,
            first: 0,
            segments: VecDeque::new(),
            sacked: Ranges::default(),
            tested: 0,
            delivered: 0,
            marked: 0,
            lost: 0,
            in_flight: 0,
            lost_out: 0,
            delivered_time: Time::ZERO,
            first_send_time: Time::ZERO,
            app_limited: 0,
            min_rtt: Dur::MAX,
            cwnd_limited: None,
            last_sent: None,
            losses: Vec::new(),
            resent: VecDeque::new(),
            newest_sent: Time::ZERO,
        }
    }
    /// C.inflight: returns the bytes in flight.
    #[inline]
    pub(crate) fn in_flight(&self) -> u64 {
        self.in_flight
    }
    /// Returns when the last segment was sent, and its bytes.
    #[inline]
    pub fn last_sent(&self) -> Option<(Time, u64)> {
        self.last_sent
    }
    /// Returns the segments found lost since [`Deliveries::clear_losses`], by their place in the list.
    pub fn loss(&self, place: usize) -> Option<LostSegment> {
        self.losses.get(place).copied()
    }
    /// Adds a segment to the list of lost segments.
    #[cfg(test)]
    pub(crate) fn note_loss(&mut self, lost: LostSegment) {
        self.losses.push(lost);
    }
    /// Forgets the list of lost segments.
    pub fn clear_losses(&mut self) {
        self.losses.clear();
    }

    /// OnPacketSent: records that `len` bytes from `offset` on are sent now. A retransmission of
    /// delivered bytes changes nothing.
    pub(crate) fn on_sent(&mut self, offset: u64, len: u16, now: Time) {
        let (number, bytes) = (offset / self.smss, u64::from(len));
        self.last_sent = Some((now, bytes));
        let place = (number - self.first) as usize;
        debug_assert!(offset.is_multiple_of(self.smss) && place <= self.segments.len(), "segment {number} is out of order");
        let before = self.segments.get(place).map(|record| record.place);
        if before == Some(SegmentPlace::Delivered) {
            return;
        }
        if self.in_flight == 0 {
            (self.first_send_time, self.delivered_time) = (now, now);
        }
        match before {
            Some(SegmentPlace::Lost) => {
                self.in_flight += bytes;
                self.lost_out -= bytes;
            }
            Some(_) => {}
            None => self.in_flight += bytes,
        }
        let record = SegmentRecord {
            len,
            place: SegmentPlace::InFlight,
            resent: before.is_some(),
            app_limited: self.app_limited != 0,
            tx_in_flight: self.in_flight,
            delivered: self.delivered,
            marked: self.marked,
            lost: self.lost,
            send_time: now,
            delivered_time: self.delivered_time,
            first_send_time: self.first_send_time,
        };
        match self.segments.get_mut(place) {
            Some(known) => {
                *known = record;
                self.resent.push_back((now, number));
            }
            None => self.segments.push_back(record),
        }
    }

    /// Records the flight before an ACK is processed: the flight only grows between two ACKs, so
    /// that its maximum is seen here. `all_sent`: there is no unsent data.
    pub(crate) fn before_ack(&mut self, all_sent: bool, cwnd: u64) {
        if self.in_flight + self.smss > cwnd {
            self.cwnd_limited = Some(self.delivered + self.in_flight);
        } else if self.cwnd_limited.is_some_and(|end| self.delivered > end) {
            self.cwnd_limited = None;
        }
        // CheckIfApplicationLimited.
        if all_sent && self.in_flight < cwnd && self.lost_out == 0 {
            self.mark_app_limited();
        }
    }
    /// MarkConnectionAppLimited: the samples of the data in flight do not show the rate of the path.
    pub fn mark_app_limited(&mut self) {
        self.app_limited = (self.delivered + self.in_flight).max(1);
    }

    /// UpdateRateSample and GenerateRateSample: handles an ACK. Returns a sample if the ACK delivers
    /// data; the smoothed round trip and the state of recovery are left to the caller.
    pub(crate) fn on_ack(&mut self, ack: &DeliveryAck<'_>) -> Option<RateSample> {
        let (before, lost_before) = (self.delivered, self.lost);
        let mut newest = None;
        while let Some(front) = self.segments.front()
            && self.first * self.smss + u64::from(front.len) <= ack.snd_una
        {
            self.deliver(0, ack, &mut newest);
            self.segments.pop_front();
            self.first += 1;
        }
        self.sacked.remove_below(ack.snd_una);
        for block in ack.blocks.iter().flat_map(|blocks| blocks.ranges()) {
            self.on_block(block.start.max(ack.snd_una)..block.end, ack, &mut newest);
        }
        self.find_losses(ack.lost_below);
        if self.app_limited != 0 && self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        let newest: SegmentRecord = newest?;
        let now = ack.now;
        // Only the time stamp tells which copy of a retransmitted segment was delivered.
        let rtt = if newest.resent { ack.echo.map(|at| now.since(at)) } else { Some(now.since(newest.send_time)) };
        self.min_rtt = rtt.map_or(self.min_rtt, |rtt| rtt.min(self.min_rtt));
        let send_elapsed = newest.send_time.since(newest.first_send_time);
        let interval = now.since(newest.delivered_time).max(send_elapsed);
        let delivered = self.delivered - newest.delivered;
        let valid = interval >= self.min_rtt && interval > Dur::ZERO;
        Some(RateSample {
            now,
            rtt,
            srtt: Dur::ZERO,
            newly_acked: self.delivered - before,
            newly_lost: self.lost - lost_before,
            total: self.delivered,
            total_marked: self.marked,
            in_flight: self.in_flight,
            prior_delivered: newest.delivered,
            delivered,
            marked: self.marked - newest.marked,
            interval,
            rate: if valid { rate(delivered, interval) } else { Rate(0) },
            app_limited: newest.app_limited,
            tx_in_flight: newest.tx_in_flight,
            lost: self.lost - newest.lost,
            ece: ack.ece,
            cwnd_limited: self.cwnd_limited.is_some(),
            recovering: false,
        })
    }

    /// Delivers the whole segments in a block that were not delivered before.
    fn on_block(&mut self, block: Range<u64>, ack: &DeliveryAck<'_>, newest: &mut Option<SegmentRecord>) {
        let end = block.end.min((self.first + self.segments.len() as u64) * self.smss);
        let mut from = block.start;
        loop {
            let hole = self.sacked.holes(from..end).next();
            let Some(hole) = hole else { return };
            let mut number = hole.start.div_ceil(self.smss).max(self.first);
            while let Some(record) = self.segments.get((number - self.first) as usize)
                && number * self.smss + u64::from(record.len) <= hole.end
            {
                self.deliver((number - self.first) as usize, ack, newest);
                number += 1;
            }
            from = hole.end;
            self.sacked.insert(hole);
        }
    }

    /// UpdateRateSample for one segment.
    fn deliver(&mut self, place: usize, ack: &DeliveryAck<'_>, newest: &mut Option<SegmentRecord>) {
        let record = &mut self.segments[place];
        let bytes = u64::from(record.len);
        match record.place {
            SegmentPlace::Delivered => return,
            SegmentPlace::InFlight => self.in_flight -= bytes,
            SegmentPlace::Lost => self.lost_out -= bytes,
        }
        record.place = SegmentPlace::Delivered;
        // RFC 8985 section 6.2 step 2: a delivery that soon is that of the first copy.
        if !record.resent || ack.now.since(record.send_time) >= self.min_rtt {
            self.newest_sent = self.newest_sent.max(record.send_time);
        }
        self.delivered += bytes;
        self.marked += if ack.ece { bytes } else { 0 };
        self.delivered_time = ack.now;
        // IsNewestPacket. Segments of one time are seen in rising order, except for late blocks.
        if newest.is_none() || record.send_time >= self.first_send_time {
            self.first_send_time = record.send_time;
            *newest = Some(*record);
        }
    }

    /// Finds the segments below `end` lost that are in flight and were not retransmitted.
    fn find_losses(&mut self, end: u64) {
        let mut number = self.first.max(self.tested);
        while let Some(record) = self.segments.get((number - self.first) as usize)
            && number * self.smss + u64::from(record.len) <= end
        {
            if record.place == SegmentPlace::InFlight && !record.resent {
                self.lose((number - self.first) as usize);
            }
            number += 1;
        }
        self.tested = number;
    }
    /// Finds retransmissions lost that left a quarter of a round trip before a segment that is
    /// delivered (RFC 8985 section 6.2 steps 4 and 5). Returns the bytes of the first of them.
    pub(crate) fn lose_again(&mut self) -> Option<Range<u64>> {
        while let Some(&(at, number)) = self.resent.front()
            && at.after(self.min_rtt / 4) < self.newest_sent
        {
            self.resent.pop_front();
            let place = number.checked_sub(self.first).map(|place| place as usize);
            if let Some((place, record)) = place.and_then(|place| Some((place, self.segments.get(place)?)))
                && record.place == SegmentPlace::InFlight
                && record.send_time == at
            {
                let start = number * self.smss;
                let range = start..start + u64::from(record.len);
                self.lose(place);
                return Some(range);
            }
        }
        None
    }
    /// Finds all segments in flight lost: the retransmission timer has expired.
    pub fn lose_all(&mut self) {
        for place in 0..self.segments.len() {
            if self.segments[place].place == SegmentPlace::InFlight {
                self.lose(place);
            }
        }
        self.tested = self.first + self.segments.len() as u64;
    }
    fn lose(&mut self, place: usize) {
        let record = &mut self.segments[place];
        record.place = SegmentPlace::Lost;
        let size = u64::from(record.len);
        self.in_flight -= size;
        self.lost_out += size;
        self.lost += size;
        let (tx_in_flight, app_limited, lost) = (record.tx_in_flight, record.app_limited, self.lost - record.lost);
        self.losses.push(LostSegment { number: self.first + place as u64, size, tx_in_flight, lost, app_limited });
    }
}

/// Returns the rate at which `bytes` are delivered in `interval`, which is not zero.
fn rate(bytes: u64, interval: Dur) -> Rate {
    let bits = u128::from(bytes) * 8 * 1_000_000_000_000;
    Rate(u64::try_from(bits / u128::from(interval.0)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMSS: u64 = 1000;

    fn at(us: u64) -> Time {
        Time::ZERO + Dur::from_us(us)
    }

    fn blocks(list: &[(u64, u64)]) -> Blocks {
        let edges = |i: usize| list.get(i).map_or((0, 0), |&(start, end)| (start * SMSS, end * SMSS));
        let [(start_0, end_0), (start_1, end_1), (start_2, end_2)] = [edges(0), edges(1), edges(2)];
        Blocks { feedback: 0, start_0, end_0, start_1, end_1, start_2, end_2 }
    }

    /// Sends segments, one at each of these times, in microseconds.
    fn sent(times: &[u64]) -> Deliveries {
        let mut record = Deliveries::new(SMSS);
        for (number, &time) in (0..).zip(times) {
            record.on_sent(number * SMSS, SMSS as u16, at(time));
        }
        record
    }

    /// An ACK in segments and microseconds.
    fn ack(record: &mut Deliveries, us: u64, una: u64, sacked: &[(u64, u64)], lost_below: u64) -> Option<RateSample> {
        let blocks = blocks(sacked);
        let (now, snd_una, lost_below) = (at(us), una * SMSS, lost_below * SMSS);
        record.on_ack(&DeliveryAck { now, snd_una, blocks: Some(&blocks), lost_below, ece: false, echo: None })
    }

    /// Section 4.1.2, by hand. Segments 0 to 3 leave at 0, 10, 20 and 30 us, a round trip takes 100 us.
    /// Segment 4 leaves at 100 us with the ACK of segment 0: P.delivered = 1000, P.delivered_time = 100,
    /// P.first_send_time = 0 (of segment 0).
    #[test]
    fn golden_rate_sample() {
        let mut record = sent(&[0, 10, 20, 30]);
        let first = ack(&mut record, 100, 1, &[], 0).expect("data is delivered");
        // send_elapsed 0, ack_elapsed 100: 1000 B in 100 us are 80 Mb/s.
        assert_eq!((first.rate, first.interval, first.delivered), (Rate(80_000_000), Dur::from_us(100), 1000));
        assert_eq!((first.rtt, first.newly_acked, first.in_flight), (Some(Dur::from_us(100)), 1000, 3000));
        assert_eq!((first.tx_in_flight, first.prior_delivered, first.app_limited), (1000, 0, false));
        record.on_sent(4 * SMSS, 1000, at(100));
        // One ACK for segments 1 to 3: the newest is segment 3, sent at 30 with P.first_send_time = 0.
        let three = ack(&mut record, 130, 4, &[], 0).expect("data is delivered");
        // send_elapsed 30, ack_elapsed 130 - 0: 4000 B in 130 us.
        assert_eq!((three.rate, three.interval), (Rate(246_153_846), Dur::from_us(130)));
        assert_eq!((three.newly_acked, three.delivered, three.tx_in_flight), (3000, 4000, 4000));
        // Segment 4: P.delivered_time = 100, ack_elapsed = 100; send_elapsed = 100 - 0. 4000 B delivered since.
        let last = ack(&mut record, 200, 5, &[], 0).expect("data is delivered");
        assert_eq!((last.rate, last.interval, last.delivered), (Rate(320_000_000), Dur::from_us(100), 4000));
        assert_eq!((last.prior_delivered, last.total, last.tx_in_flight, last.in_flight), (1000, 5000, 4000, 0));
    }

    /// "Send Rate": ACKs that arrive together do not show a rate above that at which segments left.
    #[test]
    fn compressed_acks_do_not_exceed_the_send_rate() {
        let mut record = sent(&[0]);
        ack(&mut record, 100, 1, &[], 0);
        for n in 1..=10 {
            record.on_sent(n * SMSS, 1000, at(100 + 100 * n));
        }
        // The newest was sent 900 us after the first of its flight; all ACKs arrive at 1250 us.
        let sample = ack(&mut record, 1250, 11, &[], 0).expect("data is delivered");
        // P.delivered_time = P.first_send_time = 200 us: ack_elapsed 1050 us exceeds send_elapsed 900 us.
        assert_eq!((sample.delivered, sample.interval, sample.rate), (10_000, Dur::from_us(1050), Rate(76_190_476)));
        let mut record = sent(&[0, 0]);
        ack(&mut record, 300, 1, &[], 0);
        record.on_sent(2 * SMSS, 1000, at(900));
        ack(&mut record, 950, 2, &[], 0);
        let sample = ack(&mut record, 1000, 3, &[], 0).expect("data is delivered");
        // send_elapsed = 900 - 0 exceeds ack_elapsed = 1000 - 300.
        assert_eq!((sample.interval, sample.delivered), (Dur::from_us(900), 2000));
    }

    #[test]
    fn an_idle_flow_starts_a_new_interval() {
        let mut record = sent(&[0]);
        ack(&mut record, 100, 1, &[], 0);
        record.on_sent(SMSS, 1000, at(5000));
        let sample = ack(&mut record, 5100, 2, &[], 0).expect("data is delivered");
        assert_eq!((sample.interval, sample.rate), (Dur::from_us(100), Rate(80_000_000)));
    }

    #[test]
    fn blocks_deliver_each_segment_once_and_losses_are_found_once() {
        let mut record = sent(&[0; 10]);
        let sacked = ack(&mut record, 100, 0, &[(1, 2)], 0).expect("data is delivered");
        assert_eq!((sacked.newly_acked, sacked.in_flight, sacked.newly_lost), (1000, 9000, 0));
        // A repeated block delivers nothing; two segments more do.
        assert_eq!(ack(&mut record, 101, 0, &[(1, 2)], 0), None);
        let sacked = ack(&mut record, 110, 0, &[(1, 4)], 1).expect("data is delivered");
        assert_eq!((sacked.newly_acked, sacked.newly_lost, sacked.in_flight, sacked.lost), (2000, 1000, 6000, 1000));
        let lost = LostSegment { number: 0, size: 1000, tx_in_flight: 1000, lost: 1000, app_limited: false };
        assert_eq!((record.loss(0), record.loss(1)), (Some(lost), None));
        record.clear_losses();
        // A retransmission is in flight again, and no longer lost by the rule of duplicates.
        record.on_sent(0, 1000, at(110));
        let sacked = ack(&mut record, 120, 0, &[(1, 6)], 3).expect("data is delivered");
        assert_eq!((sacked.newly_lost, sacked.in_flight, record.lost_out), (0, 5000, 0));
        // The cumulative ACK delivers the retransmission only: its time is not known without an echo.
        let all = ack(&mut record, 215, 6, &[], 0).expect("data is delivered");
        assert_eq!((all.newly_acked, all.total, all.rtt, all.lost), (1000, 6000, None, 0));
    }

    /// Segment 0 is lost, retransmitted at 110 us, and lost again. Segment 11 leaves 25 us later, segment 12
    /// 26 us later: only its delivery is more than a quarter of the round trip of 100 us.
    #[test]
    fn a_lost_retransmission_is_found_by_later_deliveries() {
        let mut record = sent(&[0; 10]);
        ack(&mut record, 100, 0, &[(1, 4)], 1);
        record.clear_losses();
        record.on_sent(10 * SMSS, 1000, at(100));
        record.on_sent(0, 1000, at(110));
        record.on_sent(11 * SMSS, 1000, at(135));
        record.on_sent(12 * SMSS, 1000, at(136));
        ack(&mut record, 235, 0, &[(1, 12)], 9);
        assert_eq!((record.lose_again(), record.loss(0)), (None, None));
        ack(&mut record, 236, 0, &[(1, 13)], 10);
        assert_eq!((record.lose_again(), record.lose_again()), (Some(0..SMSS), None));
        let lost = LostSegment { number: 0, size: 1000, tx_in_flight: 8000, lost: 1000, app_limited: false };
        assert_eq!((record.loss(0), record.loss(1), record.in_flight), (Some(lost), None, 0));
        // The next copy counts anew.
        record.on_sent(0, 1000, at(236));
        record.on_sent(13 * SMSS, 1000, at(240));
        ack(&mut record, 340, 0, &[(1, 14)], 11);
        assert_eq!(record.lose_again(), None);
    }

    /// RFC 8985 section 6.2 step 2: the first copy of segment 1 arrives late, 5 us after the retransmission.
    #[test]
    fn a_late_first_copy_does_not_make_other_retransmissions_lost() {
        let mut record = sent(&[0; 6]);
        ack(&mut record, 100, 0, &[(2, 6)], 2);
        record.on_sent(0, 1000, at(100));
        record.on_sent(SMSS, 1000, at(150));
        ack(&mut record, 155, 0, &[(1, 6)], 2);
        assert_eq!(record.lose_again(), None);
    }

    #[test]
    fn a_rescue_retransmission_is_not_lost_by_the_rule_of_duplicates() {
        let mut record = sent(&[0; 9]);
        record.on_sent(5 * SMSS, 1000, at(50));
        ack(&mut record, 100, 0, &[(6, 9)], 6);
        let numbers: Vec<u64> = (0..).map_while(|i| record.loss(i)).map(|lost| lost.number).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4]);
    }

    /// Segment 0 is retransmitted at 110 us and, after a timeout, at 1000 us. Segment 2, sent at 200 us,
    /// arrives late: this says something about the copy of 110 us only.
    #[test]
    fn only_the_last_copy_of_a_segment_can_be_lost() {
        let mut record = sent(&[0, 0]);
        ack(&mut record, 100, 0, &[(1, 2)], 1);
        record.on_sent(0, 1000, at(110));
        record.on_sent(2 * SMSS, 1000, at(200));
        record.lose_all();
        record.on_sent(0, 1000, at(1000));
        ack(&mut record, 1010, 0, &[(1, 3)], 0);
        assert_eq!(record.lose_again(), None);
    }

    #[test]
    fn a_timeout_loses_everything_in_flight_and_keeps_what_was_delivered() {
        let mut record = sent(&[0; 5]);
        ack(&mut record, 100, 1, &[(2, 3)], 0);
        record.lose_all();
        let numbers: Vec<u64> = (0..).map_while(|i| record.loss(i)).map(|lost| lost.number).collect();
        assert_eq!((numbers, record.in_flight, record.lost_out), (vec![1, 3, 4], 0, 3000));
        // Segment 2 was delivered: its retransmission does not count.
        for n in 1..5 {
            record.on_sent(n * SMSS, 1000, at(1000));
        }
        assert_eq!((record.in_flight, record.lost_out), (3000, 0));
        let sample = ack(&mut record, 1100, 5, &[], 0).expect("data is delivered");
        assert_eq!((sample.newly_acked, sample.total, sample.in_flight), (3000, 5000, 0));
    }

    #[test]
    fn a_sample_shorter_than_the_shortest_round_trip_has_no_rate() {
        let mut record = sent(&[0, 0]);
        ack(&mut record, 100, 1, &[], 0);
        // A retransmission leaves after a timeout, and the ACK of the late original arrives 10 us later.
        record.lose_all();
        record.on_sent(SMSS, 1000, at(500));
        let sample = ack(&mut record, 510, 2, &[], 0).expect("data is delivered");
        assert_eq!((sample.rate, sample.interval, sample.newly_acked), (Rate(0), Dur::from_us(10), 1000));
    }

    /// Section 4.1.2.4: all samples of the next round trip are limited by the application.
    #[test]
    fn samples_are_marked_for_a_round_trip_after_the_data_ran_out() {
        let mut record = sent(&[0, 0]);
        record.before_ack(true, 3 * SMSS);
        assert!(!ack(&mut record, 100, 1, &[], 0).expect("data is delivered").app_limited);
        record.on_sent(2 * SMSS, 1000, at(100));
        ack(&mut record, 101, 2, &[], 0);
        assert!(ack(&mut record, 200, 3, &[], 0).expect("data is delivered").app_limited);
        record.on_sent(3 * SMSS, 1000, at(200));
        assert!(!ack(&mut record, 300, 4, &[], 0).expect("data is delivered").app_limited);
    }

    #[test]
    fn data_that_is_lost_and_not_retransmitted_is_data_to_send() {
        for (retransmitted, app_limited) in [(false, false), (true, true)] {
            let mut record = sent(&[0; 4]);
            ack(&mut record, 100, 0, &[(1, 4)], 1);
            if retransmitted {
                record.on_sent(0, 1000, at(100));
            }
            record.before_ack(true, 9 * SMSS);
            assert_eq!(record.app_limited > 0, app_limited);
        }
    }

    #[test]
    fn the_window_was_the_limit_within_the_last_round_trip() {
        let mut record = sent(&[0, 0, 0]);
        let mut limited = |una, cwnd| {
            record.before_ack(false, cwnd * SMSS);
            ack(&mut record, 100 + una, una, &[], 0).expect("data is delivered").cwnd_limited
        };
        // Three segments in flight fill a window of three, until all three are delivered.
        assert_eq!([limited(1, 3), limited(2, 9), limited(3, 9)], [true, true, true]);
        record.on_sent(3 * SMSS, 1000, at(200));
        record.on_sent(4 * SMSS, 1000, at(200));
        let mut limited = |una, cwnd| {
            record.before_ack(false, cwnd * SMSS);
            ack(&mut record, 300 + una, una, &[], 0).expect("data is delivered").cwnd_limited
        };
        assert_eq!([limited(4, 9), limited(5, 9)], [true, false]);
    }

    #[test]
    fn marked_bytes_are_counted_over_the_sample() {
        let mut record = sent(&[0, 0]);
        let mut marked = |us, una, ece| {
            let ack = DeliveryAck { now: at(us), snd_una: una * SMSS, blocks: None, lost_below: 0, ece, echo: None };
            let sample = record.on_ack(&ack).expect("data is delivered");
            record.on_sent((una + 1) * SMSS, 1000, at(us));
            (sample.ece, sample.marked, sample.delivered, sample.total_marked)
        };
        assert_eq!(marked(100, 1, true), (true, 1000, 1000, 1000));
        assert_eq!(marked(101, 2, false), (false, 1000, 2000, 1000));
        // Segment 2 left with 1000 marked bytes.
        assert_eq!(marked(200, 3, true), (true, 1000, 2000, 2000));
    }
}

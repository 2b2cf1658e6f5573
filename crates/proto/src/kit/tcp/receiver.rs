//! The receiving half: when to acknowledge what (RFC 5681 section 4.2).

use super::answer::{Answer, Echo, MAX_BLOCKS};
use super::congestion::Ecn;
use super::options::Config;
use crate::contract::Cx;
use crate::packet::Packet;
use crate::reassembly::Delivery;
use base::{Dur, FlowId, FlowMap};
use std::ops::Range;

/// Timer: delayed ACK.
pub(super) const DELAYED_ACK: u8 = 1;

/// The receivers with delayed ACKs, marks to echo, or blocks to report. Otherwise a flow has no
/// state here: the flow table has the bytes that have arrived.
#[derive(Default)]
pub(super) struct Receivers {
    flows: FlowMap<Receiver>,
}

/// One sequence of bytes at its receiver: a flow, or one of its subflows.
#[derive(Default)]
pub(crate) struct Receiver {
    /// In-order segments not yet acknowledged.
    held: u32,
    /// The contents of the next ACK. Its echo is that of the first held segment: the sample of a
    /// delayed ACK includes the whole delay.
    answer: Answer,
    /// No byte from here on has arrived.
    top: u64,
    /// Ranges that arrived out of order, the last reported one first.
    blocks: Vec<Range<u64>>,
}

/// A segment, as the receiver of its sequence sees it.
pub(crate) struct Arrival<'a> {
    /// The segment.
    pub packet: &'a Packet,
    /// The fields that its ACK echoes.
    pub echo: Echo,
    /// Its first byte within the sequence.
    pub start: u64,
    /// The bytes that it adds to the sequence.
    pub delivery: &'a Delivery,
    /// Whether all bytes of the flow have arrived.
    pub done: bool,
}

/// Sends the ACKs of a receiver.
pub(crate) trait Acks {
    /// Sends an ACK.
    fn send(&mut self, answer: Answer, blocks: &[Range<u64>]);
    /// Schedules [`Receiver::on_timer`] after this time, replacing an earlier schedule; `None`
    /// cancels it.
    fn delay(&mut self, after: Option<Dur>);
}

/// The ACKs of a flow that is one sequence of bytes.
struct Own<'a, 'b> {
    flow: FlowId,
    config: &'a Config,
    cx: &'a mut Cx<'b>,
}

impl Acks for Own<'_, '_> {
    #[inline(always)]
    fn send(&mut self, answer: Answer, blocks: &[Range<u64>]) {
        let ack = answer.packet(self.flow, self.config.header, blocks, self.cx.ext);
        self.cx.control(ack);
    }
    fn delay(&mut self, after: Option<Dur>) {
        match after {
            Some(after) => self.cx.arm(self.flow, DELAYED_ACK, self.cx.now.after(after)),
            None => self.cx.disarm(self.flow, DELAYED_ACK),
        }
    }
}

impl Receivers {
    /// Handles a segment.
    #[inline(always)]
    pub(super) fn on_data(&mut self, packet: &Packet, echo: Echo, ecn: Ecn, config: &Config, cx: &mut Cx<'_>) {
        let delivery = cx.deliver(packet.flow, packet.offset, packet.payload);
        if config.ack_every <= 1 && ecn != Ecn::Classic && !config.sack {
            // RFC 8257 section 3.2, with one ACK per segment.
            let ece = ecn == Ecn::Exact && packet.has(Packet::CE);
            let answer = Answer { next: delivery.next, echo, ece, ..Answer::default() };
            return Own { flow: packet.flow, config, cx }.send(answer, &[]);
        }
        self.maybe_delay(packet, echo, &delivery, ecn, config, cx);
    }

    #[inline(never)]
    fn maybe_delay(&mut self, packet: &Packet, echo: Echo, delivery: &Delivery, ecn: Ecn, config: &Config, cx: &mut Cx<'_>) {
        let flow = packet.flow;
        let receiver = self.flows.or_insert_with(flow, Receiver::default);
        let done = delivery.next == cx.flow(flow).size_bytes;
        let arrival = Arrival { packet, echo, start: packet.offset, delivery, done };
        receiver.on_segment(&arrival, ecn, config, &mut Own { flow, config, cx });
        if done {
            self.flows.remove(flow);
        }
    }

    /// Sends the delayed ACK that is due.
    pub(super) fn on_timer(&mut self, flow: FlowId, config: &Config, cx: &mut Cx<'_>) {
        let Some(receiver) = self.flows.get_mut(flow) else { return };
        receiver.on_timer(&mut Own { flow, config, cx });
    }
}

impl Receiver {
    /// Handles a segment.
    pub(crate) fn on_segment(&mut self, arrival: &Arrival<'_>, ecn: Ecn, config: &Config, acks: &mut impl Acks) {
        let Arrival { packet, echo, start, delivery, done } = *arrival;
        self.note_mark(packet, ecn, acks);
        let had_hole = self.answer.next < self.top;
        let end = start + u64::from(packet.payload);
        (self.answer.next, self.top) = (delivery.next, self.top.max(end));
        if self.held == 0 {
            self.answer.echo = echo;
        }
        self.held += 1;
        if config.sack {
            self.note_block(delivery);
        }
        let in_order = delivery.next == end && delivery.new_bytes == u64::from(packet.payload);
        // RFC 5681 section 4.2: at once when out of order, or when a hole is filled in whole or in part.
        if done || !in_order || had_hole || self.held >= config.ack_every {
            self.on_timer(acks);
        } else if self.held == 1 {
            acks.delay(Some(config.delayed_ack));
        }
    }

    /// Records the ECN field of a segment that has just arrived.
    fn note_mark(&mut self, packet: &Packet, ecn: Ecn, acks: &mut impl Acks) {
        let marked = packet.has(Packet::CE);
        match ecn {
            Ecn::Off => {}
            // RFC 3168 section 6.1.3: echoes until CWR arrives, and further if the segment with CWR
            // is marked.
            Ecn::Classic => self.answer.ece = marked || (self.answer.ece && !packet.has(Packet::CWR)),
            Ecn::Exact => {
                // RFC 8257 section 3.2: segments before a change are acknowledged at once, with the
                // old value.
                if marked != self.answer.ece && self.held > 0 {
                    self.on_timer(acks);
                }
                self.answer.ece = marked;
            }
        }
    }

    /// Puts the range that has just grown before those reported earlier, and removes the ranges
    /// that it now contains (RFC 2018 section 4).
    fn note_block(&mut self, delivery: &Delivery) {
        let (next, block) = (delivery.next, delivery.block.clone());
        self.blocks.retain(|old| old.start > next && !(block.start <= old.start && old.end <= block.end));
        if block.start > next {
            self.blocks.insert(0, block);
            self.blocks.truncate(MAX_BLOCKS);
        }
    }

    /// Acknowledges all bytes that have arrived, because a delayed ACK is due or must not wait
    /// longer.
    pub(crate) fn on_timer(&mut self, acks: &mut impl Acks) {
        self.held = 0;
        acks.delay(None);
        acks.send(self.answer, &self.blocks);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Blocks;
    use super::*;
    use crate::kit::script::{self, Script};
    use crate::packet::Kind;
    use crate::transport::newreno::{NewReno, Params};
    use base::params::Params as _;
    use base::{Dur, Time};

    const SMSS: u64 = 1460;

    fn receiver(ack_every: u32) -> Script<NewReno> {
        let mut params = Params::defaults();
        params.tcp.ack_every = ack_every;
        Script::new(NewReno::new(&params, &script::env()), vec![script::flow(0, 10 * SMSS)]).at_host(1)
    }

    /// Segment `n`, handed to its NIC at `n + 1` us.
    fn segment(n: u64) -> Packet {
        let mut packet = Packet::data(FlowId(0), n * SMSS, SMSS as u16, 40);
        packet.sent_at = Time(n * 1_000_000 + 1_000_000);
        packet
    }

    /// (acknowledged segments, echoed microseconds) of every ACK.
    fn acks(packets: Vec<Packet>) -> Vec<(u64, u64)> {
        assert!(packets.iter().all(|p| p.kind == Kind::ACK && p.wire_len == 40 && p.payload == 0));
        packets.iter().map(|p| (p.offset / SMSS, Echo::read(p).sent_at.ps() / 1_000_000)).collect()
    }

    #[test]
    fn every_segment_is_acknowledged_and_echoed() {
        let mut r = receiver(1);
        assert_eq!(acks(r.packet(segment(0))), [(1, 1)]);
        assert_eq!(acks(r.packet(segment(2))), [(1, 3)]);
        assert_eq!(acks(r.packet(segment(2))), [(1, 3)]);
        let mut resent = segment(1);
        resent.flags |= Packet::RETX;
        let ack = r.packet(resent);
        assert_eq!((ack[0].offset, Echo::read(&ack[0]).resent), (3 * SMSS, true));
    }

    #[test]
    fn feedback_of_ports_is_echoed_with_blocks_too() {
        for sack in [false, true] {
            let mut params = Params::defaults();
            params.tcp.sack = sack;
            let host = Script::new(NewReno::new(&params, &script::env()), vec![script::flow(0, 10 * SMSS)]);
            let mut r = host.at_host(1);
            let mut early = segment(3);
            early.words[0] = 41;
            let ack = r.packet(early)[0];
            assert_eq!((ack.has(Packet::EXT), ack.wire_len), (sack, if sack { 52 } else { 40 }));
            let feedback = if sack { ack.get_ext::<Blocks>(&r.ext).feedback } else { Echo::read(&ack).feedback };
            assert_eq!((feedback, Echo::read(&ack).sent_at), (41, early.sent_at));
        }
    }

    #[test]
    fn a_syn_is_answered_every_time() {
        let mut r = receiver(1);
        let mut syn = Packet::new(FlowId(0), Kind::SYN, 40);
        syn.sent_at = Time(7);
        for resent in [false, true] {
            let answer = r.packet(syn);
            let echo = Echo { feedback: 0, sent_at: Time(7), resent };
            assert_eq!((answer.len(), answer[0].kind, Echo::read(&answer[0])), (1, Kind::SYNACK, echo));
            syn.flags |= Packet::RETX;
        }
    }

    #[test]
    fn two_in_order_segments_share_an_ack_that_times_the_first() {
        let mut r = receiver(2);
        assert_eq!(acks(r.packet(segment(0))), []);
        assert_eq!(acks(r.packet(segment(1))), [(2, 1)]);
        assert!(!r.is_armed(0, DELAYED_ACK));
    }

    #[test]
    fn a_single_segment_waits_for_the_timer() {
        let mut r = receiver(2);
        r.packet(segment(0));
        assert_eq!(acks(r.advance(Time::ZERO + Dur::from_ms(39))), []);
        assert_eq!(acks(r.advance(Time::ZERO + Dur::from_ms(40))), [(1, 1)]);
        assert_eq!(acks(r.advance(Time::ZERO + Dur::from_secs(9))), []);
    }

    #[test]
    fn segments_out_of_order_are_acknowledged_at_once() {
        let mut r = receiver(2);
        r.packet(segment(0));
        // The held segment is acknowledged with it.
        assert_eq!(acks(r.packet(segment(2))), [(1, 1)]);
        assert_eq!(acks(r.packet(segment(4))), [(1, 5)]);
        // Part of the gap is filled, then all of it.
        assert_eq!(acks(r.packet(segment(1))), [(3, 2)]);
        assert_eq!(acks(r.packet(segment(3))), [(5, 4)]);
        // Part of a gap is filled, which does not reach a held segment.
        r.packet(segment(9));
        assert_eq!(acks(r.packet(segment(5))), [(6, 6)]);
        // A duplicate, then the missing segments.
        assert_eq!(acks(r.packet(segment(3))), [(6, 4)]);
        assert_eq!(acks(r.packet(segment(6))), [(7, 7)]);
    }

    #[test]
    fn the_last_segment_is_acknowledged_at_once_and_so_are_late_ones() {
        let mut r = receiver(2);
        for n in 0..8 {
            r.packet(segment(n));
        }
        assert_eq!(acks(r.packet(segment(9))), [(8, 10)]);
        assert_eq!(acks(r.packet(segment(8))), [(10, 9)]);
        assert!(r.machine.receivers.flows.is_empty());
        assert_eq!(acks(r.packet(segment(3))), [(10, 4)]);
        assert!(r.machine.receivers.flows.is_empty());
        assert_eq!(r.table.unfinished(), 0);
        // In order, without a second segment.
        let mut r = receiver(2);
        r.flows[0].size_bytes = SMSS;
        assert_eq!(acks(r.packet(segment(0))), [(1, 1)]);
    }
}

//! The receiving half: when to acknowledge what (RFC 5681 section 4.2).

use super::{Config, DELAYED_ACK, Echo};
use crate::packet::{Kind, Packet};
use crate::transport::Cx;
use base::{FlowId, FlowMap};

/// The flows of which ACKs may be delayed. Without delayed ACKs there is no state: what has arrived is in the flow table.
#[derive(Default)]
pub(super) struct Receivers {
    flows: FlowMap<Receiver>,
}

#[derive(Default)]
struct Receiver {
    /// In-order segments not yet acknowledged.
    held: u32,
    /// Of the first of them: a delayed ACK times the whole delay.
    echo: Echo,
    /// All bytes below have arrived.
    next: u64,
    /// No byte from here on has arrived.
    top: u64,
}

impl Receivers {
    /// A segment arrived.
    #[inline]
    pub(super) fn on_data(&mut self, packet: &Packet, config: &Config, cx: &mut Cx<'_>) {
        let delivery = cx.deliver(packet.flow, packet.offset, packet.payload);
        let echo = Echo::of(packet);
        if config.ack_every <= 1 {
            return acknowledge(packet.flow, delivery.next, echo, config, cx);
        }
        let end = packet.offset + u64::from(packet.payload);
        let in_order = delivery.next == end && delivery.new_bytes == u64::from(packet.payload);
        self.maybe_delay(packet.flow, delivery.next, end, in_order, echo, config, cx);
    }

    #[allow(clippy::too_many_arguments)] // One call, from above.
    fn maybe_delay(&mut self, flow: FlowId, next: u64, end: u64, in_order: bool, echo: Echo, config: &Config, cx: &mut Cx<'_>) {
        let receiver = self.flows.or_insert_with(flow, Receiver::default);
        let had_hole = receiver.next < receiver.top;
        (receiver.next, receiver.top) = (next, receiver.top.max(end));
        if receiver.held == 0 {
            receiver.echo = echo;
        }
        receiver.held += 1;
        let done = next == cx.flow(flow).size_bytes;
        // RFC 5681 section 4.2: at once when out of order, or when a hole is filled in whole or in part.
        if done || !in_order || had_hole || receiver.held >= config.ack_every {
            let echo = receiver.echo;
            receiver.held = 0;
            cx.disarm(flow, DELAYED_ACK);
            acknowledge(flow, next, echo, config, cx);
        } else if receiver.held == 1 {
            cx.arm(flow, DELAYED_ACK, cx.now.after(config.delayed_ack));
        }
        if done {
            self.flows.remove(flow);
        }
    }

    /// The delayed ACK is due.
    pub(super) fn on_timer(&mut self, flow: FlowId, config: &Config, cx: &mut Cx<'_>) {
        let Some(receiver) = self.flows.get_mut(flow) else { return };
        receiver.held = 0;
        acknowledge(flow, receiver.next, receiver.echo, config, cx);
    }
}

#[inline]
fn acknowledge(flow: FlowId, next: u64, echo: Echo, config: &Config, cx: &mut Cx<'_>) {
    let mut ack = Packet::new(flow, Kind::ACK, config.header);
    ack.offset = next;
    ack.set(echo);
    cx.control(ack);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::script::{self, Script};
    use crate::transport::newreno::{NewReno, Params};
    use base::params::Params as _;
    use base::{Dur, Time};

    const SMSS: u64 = 1460;

    fn receiver(ack_every: u32) -> Script<NewReno> {
        let params = Params { ack_every, ..Params::defaults() };
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
        packets.iter().map(|p| (p.offset / SMSS, p.get::<Echo>().sent_at / 1_000_000)).collect()
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
        assert_eq!((ack[0].offset, ack[0].get::<Echo>().resent), (3 * SMSS, 1));
    }

    #[test]
    fn a_syn_is_answered_every_time() {
        let mut r = receiver(1);
        let mut syn = Packet::new(FlowId(0), Kind::SYN, 40);
        syn.sent_at = Time(7);
        for resent in [0, 1] {
            let answer = r.packet(syn);
            assert_eq!((answer.len(), answer[0].kind, answer[0].get::<Echo>()), (1, Kind::SYNACK, Echo { sent_at: 7, resent }));
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
    fn a_lone_segment_waits_for_the_timer() {
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
        // The held segment goes with it.
        assert_eq!(acks(r.packet(segment(2))), [(1, 1)]);
        assert_eq!(acks(r.packet(segment(4))), [(1, 5)]);
        // Part of the gap is filled, then all of it.
        assert_eq!(acks(r.packet(segment(1))), [(3, 2)]);
        assert_eq!(acks(r.packet(segment(3))), [(5, 4)]);
        // Part of a gap, up to no held segment.
        r.packet(segment(9));
        assert_eq!(acks(r.packet(segment(5))), [(6, 6)]);
        // A duplicate, then the rest.
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
        // In order, without a partner.
        let mut r = receiver(2);
        r.flows[0].size_bytes = SMSS;
        assert_eq!(acks(r.packet(segment(0))), [(1, 1)]);
    }
}

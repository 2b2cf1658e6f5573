use super::*;
use crate::contract::Transport as _;
use crate::kit::burst::tests::{
    MSS, credit, exchange, host, lose_at_random, nack, probe, report, request, seen, segment, stop, us,
};
use crate::kit::pipe::Fate;
use crate::kit::script::{self, Script};
use crate::packet::{Kind, Packet};
use base::params::Params as _;
use base::{Dur, FlowId};

fn machine() -> Aeolus {
    Aeolus::new(&Params::defaults(), &script::env())
}

fn open(sizes: &[u64]) -> Script<Aeolus> {
    host(machine(), sizes)
}

#[test]
fn a_flow_begins_with_a_burst_of_one_bandwidth_delay_product_and_a_probe() {
    // 129.28 us at 1 Gb/s: 16 160 bytes, 12 packets.
    let mut h = open(&[20 * MSS, 2 * MSS]);
    let sent = h.open(0);
    let burst: Vec<String> = (0..12).map(|n| format!("U{n}#{n}")).collect();
    assert_eq!(seen(&sent), [vec!["request".to_owned()], burst, vec!["probe 12".to_owned()]].concat());
    assert!(sent.iter().all(|packet| packet.has(Packet::ECT) == (packet.kind == Kind::PROBE) || packet.payload == 0));
    assert_eq!(seen(&h.open(1)), ["request", "U0#0", "U1#1", "probe 2"]);
    // Scheduled packets are protected.
    let answer = h.packet(credit(0, 0, 0));
    assert_eq!((seen(&answer), answer[0].has(Packet::ECT)), (vec!["S12#12".to_owned()], true));
    assert_eq!(h.table.counts(FlowId(0))[..4], [1, 0, 12 * MSS, MSS]);
}

#[test]
fn the_first_credit_ends_the_burst_with_a_probe() {
    let mut h = open(&[20 * MSS]);
    h.nic_busy = true;
    assert_eq!(seen(&h.open(0)), ["request"]);
    let two: Vec<Packet> = (0..2).filter_map(|_| h.with(|machine, cx| machine.poll_transmit(cx))).collect();
    assert_eq!(seen(&two), ["U0#0", "U1#1"]);
    h.packet(credit(0, 0, 0));
    h.packet(credit(0, 1, 0));
    h.nic_busy = false;
    assert_eq!(seen(&h.sent()), ["probe 2", "S2#2", "S3#3"]);
    // A credit before the burst: no probe is needed.
    let mut h = open(&[20 * MSS]);
    h.nic_busy = true;
    h.open(0);
    h.packet(credit(0, 0, 0));
    h.nic_busy = false;
    assert_eq!(seen(&h.sent()), ["S0#0"]);
}

/// A credit sends (a) a lost packet, (b) a new one, (c) an unacknowledged one, (d) nothing.
#[test]
fn a_credit_sends_lost_then_new_then_unconfirmed_packets_then_nothing() {
    let mut h = open(&[13 * MSS]);
    h.open(0);
    // 0 and 3 to 6 are lost; 8 to 11 are unconfirmed.
    for arrived in [1, 2, 7] {
        assert_eq!(h.packet(report(Kind::ACK, arrived..arrived)), []);
    }
    let answers: Vec<Packet> = (0..11).flat_map(|n| h.packet(credit(0, n, 0))).collect();
    let expected = ["S0#12", "S3#13", "S4#14", "S5#15", "S6#16", "S12#17", "S8#18", "S9#19", "S10#20", "S11#21", "probe 22"];
    assert_eq!(seen(&answers), expected);
    assert!(
        answers.iter().filter(|packet| packet.payload > 0).all(|packet| packet.has(Packet::RETX) == (packet.offset != 12 * MSS))
    );
    assert_eq!(h.table.counts(FlowId(0))[..7], [11, 1, 12 * MSS, 10 * MSS, 9 * MSS, 5, 0]);
    // The acknowledgment of the probe does not make retransmitted packets lost, and a second wasted
    // credit sends no second probe.
    h.packet(report(Kind::PROBEACK, 12..12));
    assert_eq!(seen(&h.packet(credit(0, 11, 0))), [""; 0]);
    h.packet(stop());
    assert!(h.table.get(FlowId(0)).closed);
    assert_eq!(h.packet(credit(0, 12, 0)), []);
}

#[test]
fn the_acknowledgment_of_the_probe_reveals_all_losses() {
    let mut h = open(&[4 * MSS]);
    h.open(0);
    h.packet(report(Kind::ACK, 1..1));
    h.packet(report(Kind::PROBEACK, 2..4));
    let answers: Vec<Packet> = (0..3).flat_map(|n| h.packet(credit(0, n, 0))).collect();
    assert_eq!(seen(&answers), ["S0#4", "S2#5", "S3#6"]);
    // Scheduled packets are lost when they are reported, not when a later packet is acknowledged.
    h.packet(report(Kind::PROBEACK, 7..7));
    assert_eq!(seen(&h.packet(credit(0, 3, 0))), ["probe 7"]);
    h.packet(nack(5..6));
    assert_eq!(seen(&h.packet(credit(0, 4, 0))), ["S2#7"]);
}

#[test]
fn the_receiver_acknowledges_unscheduled_packets_and_probes_and_reports_lost_scheduled_ones() {
    let mut r = open(&[20 * MSS]).at_host(1);
    assert_eq!(seen(&r.packet(segment(0, 0, None))), ["ack 0..0"]);
    assert_eq!(seen(&r.packet(segment(2, 2, None))), ["ack 1..2"]);
    assert_eq!(seen(&r.packet(probe(4, 4))), ["probeack 3..4"]);
    assert_eq!(seen(&r.packet(segment(4, 4, Some(0)))), [""; 0]);
    assert_eq!(seen(&r.packet(segment(7, 7, Some(1)))), ["nack 5..7"]);
    // If the probe asks for all missing numbers, the receiver reports the earlier ones too.
    assert_eq!(seen(&r.packet(probe(9, 2))), ["nack 3..4", "nack 5..7", "nack 8..9", "probeack 8..9"]);
    assert_eq!(seen(&r.packet(request())), [""; 0]);
}

#[test]
fn scheduled_packets_go_before_bursts_and_bursts_by_arrival() {
    let mut h = open(&[3 * MSS, 2 * MSS, 2 * MSS]);
    h.nic_busy = true;
    for flow in [0, 2, 1] {
        h.open(flow);
    }
    h.packet(credit(1, 0, 0));
    h.nic_busy = false;
    let order: Vec<u32> = h.sent().iter().filter(|packet| packet.payload > 0).map(|packet| packet.flow.0).collect();
    // The burst of flow 1 has ended before it began.
    assert_eq!(order, [1, 0, 0, 0, 2, 2]);
}

#[test]
fn without_progress_a_flow_asks_and_probes_again() {
    let mut h = open(&[2 * MSS]);
    h.open(0);
    let again = h.advance(us(6_999));
    assert_eq!(seen(&again), ["request", "probe 2 from 0", "request", "probe 2 from 0"]);
    assert_eq!(again.iter().map(|packet| packet.sent_at).collect::<Vec<_>>(), [1000, 1000, 3000, 3000].map(us));
    h.packet(report(Kind::ACK, 0..0));
    let again = h.advance(h.now + Dur::from_us(1000));
    assert_eq!((seen(&again), h.table.get(FlowId(0)).stats.timeouts), (vec!["request".to_owned(), "probe 2 from 1".to_owned()], 3));
}

/// The sender finds lost packets of the burst within a round trip.
#[test]
fn lost_packets_of_the_burst_are_retransmitted_once() {
    let log = exchange(machine, &[40 * MSS], |packet| {
        let lost = packet.payload > 0 && !packet.has(Packet::ECT) && [0, 5, 6, 11].contains(&(packet.offset / MSS));
        if lost { Fate::Drop } else { Fate::Pass }
    });
    let count = |kind| log.iter().filter(|packet| packet.kind == kind).count();
    // Only lost packets of the burst are retransmitted: the acknowledgments arrive before
    // unconfirmed packets would be.
    assert_eq!((count(Kind::DATA), count(Kind::ACK), count(Kind::PROBEACK)), (44, 8, 1));
}

#[test]
fn each_byte_arrives_once_whatever_is_lost() {
    lose_at_random(machine, 60);
}

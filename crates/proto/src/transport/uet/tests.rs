//! Packets and times in, packets out.

use super::header::{Sack, UetData};
use super::message::OutMessage;
use super::sender::received_wire;
use super::*;
use crate::contract::Timeout;
use crate::kit::pipe::{Fate, Pipe, both_ways, fates, patterns};
use crate::kit::script::{self, Script};
use base::Time;
use base::params::Params as _;
use proptest::prelude::*;

const MSS: u64 = 1460;
/// 129.28 us at 1 Gb/s are 16 160 bytes. The window is 24 240 bytes: 16 packets.
const WINDOW: u64 = 16;
/// 15 us and six queues of 100 packets.
const RTO: Dur = Dur::from_us(15 + 6 * 1200);

fn params(change: impl FnOnce(&mut Params)) -> Params {
    let mut params = Params::defaults();
    change(&mut params);
    params
}
fn host_with(params: &Params, sizes: &[u64]) -> Script<Uet> {
    let flows = sizes.iter().enumerate().map(|(i, size)| script::flow(i as u32, *size)).collect();
    let mut host = Script::new(Uet::new(params, &script::env()), flows);
    host.table.keep_counters(META.counters.len());
    host
}
fn host(sizes: &[u64]) -> Script<Uet> {
    host_with(&Params::defaults(), sizes)
}
fn rccc(sizes: &[u64]) -> Script<Uet> {
    host_with(&params(|params| params.cc = Cc::Rccc), sizes)
}
fn us(us: u64) -> Time {
    Time::ZERO + Dur::from_us(us)
}
fn counts<const N: usize>(host: &Script<Uet>, counters: [usize; N]) -> [u64; N] {
    counters.map(|counter| host.table.counts(FlowId(0))[counter])
}

/// A data packet that asks for no ACK, and wants no credit.
fn data(number: u64, entropy: u16) -> Packet {
    let mut packet = Packet::data(FlowId(0), number * MSS, MSS as u16, 40);
    packet.set(UetData::new(entropy, false, 0));
    packet.flags = Packet::ECT;
    packet
}
fn trimmed(number: u64, entropy: u16) -> Packet {
    let mut packet = data(number, entropy);
    packet.trim(64);
    packet
}
/// An ACK of packet `answered`; all below `next` and `early` beyond have arrived.
fn ack(next: u64, answered: u64, early: &[u64]) -> Packet {
    let mut sack =
        Sack { next, answered, from: true, control: false, entropy: 0, early: early.len() as u64, last: false, bitmap: 0 };
    sack.bitmap = early.iter().filter_map(|number| number.checked_sub(answered)).fold(0, |bits, bit| bits | 1 << bit);
    let mut packet = Packet { offset: next * MSS, ..Packet::new(FlowId(0), Kind::ACK, 40) };
    packet.set(sack.pack());
    packet
}
fn nack(number: u64, entropy: u16) -> Packet {
    let mut packet = Packet { offset: number * MSS, ..Packet::new(FlowId(0), NACK, 40) };
    packet.set(UetData::new(entropy, false, 0));
    packet
}
/// The NACK of a packet that arrived before packet `next`.
fn gap(next: u64) -> Packet {
    Packet { kind: GAP, ..nack(next, 0) }
}
fn ordered(sizes: &[u64]) -> Script<Uet> {
    host_with(&params(|params| params.delivery = Delivery::Ordered), sizes)
}
fn window(host: &Script<Uet>) -> u64 {
    host.machine.sample(FlowId(0)).expect("an open flow").cwnd_bytes
}
fn pull(number: i64) -> Packet {
    let mut packet = Packet::new(FlowId(0), PULL, 40);
    packet.set(UetData::new(0, false, number));
    packet
}
/// Numbers of data packets.
fn numbers(packets: &[Packet]) -> Vec<u64> {
    assert!(packets.iter().all(|packet| packet.kind == Kind::DATA && packet.offset % MSS == 0 && packet.has(Packet::ECT)));
    packets.iter().map(|packet| packet.offset / MSS).collect()
}
/// The fields of an ACK.
fn sack(packet: &Packet) -> Sack {
    assert_eq!((packet.kind, packet.wire_len, packet.payload), (Kind::ACK, 40, 0));
    Sack::unpack(packet.get(), packet.offset.div_ceil(MSS))
}

#[test]
fn the_first_window_leaves_at_once_and_its_end_asks_for_an_ack() {
    let sent = host(&[100 * MSS]).open(0);
    assert_eq!(numbers(&sent), (0..WINDOW).collect::<Vec<_>>());
    let asks: Vec<bool> = sent.iter().map(|packet| packet.get::<UetData>().asks()).collect();
    // In flight and another packet of 1500 bytes: 24 000 after 15, 25 500 after 16 packets.
    assert_eq!((asks.iter().filter(|&&asks| asks).count(), asks[15]), (1, true));
    let short = host(&[2 * MSS + 1]).open(0);
    let shape: Vec<_> = short.iter().map(|packet| (packet.payload, packet.wire_len, packet.get::<UetData>().asks())).collect();
    assert_eq!(shape, [(1460, 1500, false), (1460, 1500, false), (1, 41, true)]);
}

#[test]
fn answers_return_on_the_path_of_the_packet() {
    let mut h = host(&[100 * MSS]);
    h.table.set_paths(FlowId(0), false, 6);
    let sent = h.open(0);
    assert!(sent.iter().all(|packet| packet.path_tag == Packet::BY_PORT + packet.get::<UetData>().entropy()));
    let entropies: std::collections::BTreeSet<u16> = sent.iter().map(|packet| packet.path_tag).collect();
    assert_eq!(entropies.len(), 16, "every packet has another entropy value");
    let mut r = host(&[100 * MSS]).at_host(1);
    r.table.set_paths(FlowId(0), true, 6);
    let answers = [r.packet(data(0, 11)), r.packet(trimmed(1, 12))].concat();
    let seen: Vec<_> = answers.iter().map(|packet| (packet.kind, packet.path_tag)).collect();
    assert_eq!(seen, [(Kind::ACK, Packet::BY_PORT + 11), (NACK, Packet::BY_PORT + 12)]);
    assert_eq!((sack(&answers[0]).entropy, answers[1].get::<UetData>().entropy()), (11, 12));
    // With a single path there is nothing to choose.
    assert!(host(&[MSS]).open(0).iter().all(|packet| packet.path_tag == 0));
}

/// 4040 bytes per ACK: a quarter of the bandwidth-delay product.
#[test]
fn acks_have_a_bitmap_and_the_bytes_that_have_arrived() {
    let mut r = host(&[5 * MSS + 1]).at_host(1);
    let first = sack(&r.packet(data(0, 3))[0]);
    let plain = Sack { next: 1, answered: 0, from: false, control: false, entropy: 3, early: 0, last: false, bitmap: 0 };
    assert_eq!(first, plain);
    assert_eq!([r.packet(data(2, 1)), r.packet(data(3, 1))], [vec![], vec![]]);
    let mut end = Packet { payload: 1, wire_len: 41, ..data(5, 9) };
    end.set(UetData::new(9, true, 0));
    // Packets 2, 3 and 5. The bitmap of a requested ACK shows 5.
    let asked = sack(&r.packet(end)[0]);
    assert_eq!(asked, Sack { answered: 5, from: true, entropy: 9, early: 3, last: true, bitmap: 1, ..plain });
    // The sender learns how many bytes have arrived: 1500 in order, and 1500, 1500 and 41.
    let message = OutMessage::new(5 * MSS + 1, MSS, 40);
    assert_eq!(received_wire(&message, &asked), 4541);
    // Three packets of 1500 bytes: packet 4 is not due. Without packet 1 the bitmap begins at 2.
    let mut marked = data(3, 4);
    marked.flags |= Packet::CE | Packet::RETX;
    let again = r.packet(marked);
    assert!(again[0].has(Packet::ECE | Packet::RETX));
    assert_eq!(sack(&again[0]), Sack { answered: 3, from: true, entropy: 4, early: 3, last: true, bitmap: 0b101, ..plain });
    assert_eq!(r.packet(data(4, 4)), []);
    let last = r.packet(data(1, 4));
    assert_eq!((sack(&last[0]).next, last[0].offset, r.table.get(FlowId(0)).finish), (6, 5 * MSS + 1, Time::ZERO));
    // The last ACK may be lost.
    let late = [r.packet(data(1, 2)), r.packet(trimmed(4, 2))].concat();
    assert_eq!(late.iter().map(|packet| sack(packet).next).collect::<Vec<_>>(), [6, 6]);
    assert_eq!(counts(&r, [super::DUPLICATES, super::TRIMS, super::ACKS]), [2, 1, 6]);
}

#[test]
fn a_trimmed_packet_is_answered_by_a_nack_unless_it_has_arrived() {
    let mut r = host(&[100 * MSS]).at_host(1);
    r.packet(data(0, 0));
    r.packet(data(2, 0));
    let nacked = r.packet(trimmed(1, 7));
    assert_eq!((nacked[0].kind, nacked[0].offset, nacked[0].wire_len), (NACK, MSS, 40));
    let known = r.packet(trimmed(2, 7));
    assert_eq!((sack(&known[0]).next, sack(&known[0]).bitmap), (1, 1));
    assert_eq!(r.table.get(FlowId(0)).delivered_bytes, 2 * MSS);
}

#[test]
fn nacked_packets_are_retransmitted_first_and_the_window_shrinks() {
    let mut h = host(&[100 * MSS]);
    h.open(0);
    h.now = us(130);
    // 24 240 - 1500 bytes have room for 15 packets, and 15 are in flight.
    assert_eq!(h.packet(nack(7, 1)), []);
    assert_eq!(h.packet(nack(3, 1)), []);
    assert_eq!(counts(&h, [super::NACKS, super::RETURNED]), [2, 0]);
    // 21 240 bytes. Five packets arrive, the lost packet 3 among them: 10 are in flight. The window
    // grows by 629.16 * 7500 * (129.28 - 0.72) / 12 / 21 240 = 2380 and eta, to 15 packets.
    let sent = h.packet(ack(4, 0, &[4]));
    let again: Vec<_> = sent.iter().map(|packet| (packet.offset / MSS, packet.has(Packet::RETX))).collect();
    assert_eq!(again, [(7, true), (16, false), (17, false), (18, false), (19, false)]);
    assert!(sent[0].get::<UetData>().asks());
    assert_eq!(h.packet(nack(3, 1)), [], "packet 3 has arrived");
    let mut returned = data(9, 5);
    returned.turn_back();
    h.packet(returned);
    assert_eq!(counts(&h, [super::NACKS, super::RETURNED]), [3, 1]);
}

#[test]
fn ordered_packets_that_arrive_out_of_order_are_dropped() {
    let mut r = ordered(&[100 * MSS]).at_host(1);
    r.table.set_paths(FlowId(0), true, 6);
    r.packet(data(0, 5));
    let mut late = data(2, 5);
    late.flags |= Packet::CE;
    let shape = |packets: Vec<Packet>| {
        packets.iter().map(|p| (p.kind, p.offset / MSS, p.wire_len, p.path_tag, p.has(Packet::ECE))).collect::<Vec<_>>()
    };
    // The NACK names the first missing packet. It returns on the path of the packet.
    assert_eq!(shape(r.packet(late)), [(GAP, 1, 40, Packet::BY_PORT + 5, true)]);
    // Headers of trimmed packets overtake data: their NACKs name themselves.
    assert_eq!(shape(r.packet(trimmed(3, 5))), [(NACK, 3, 40, Packet::BY_PORT + 5, false)]);
    let delivered = |r: &Script<Uet>| r.table.get(FlowId(0)).delivered_bytes;
    assert_eq!(delivered(&r), MSS);
    r.packet(data(1, 5));
    assert_eq!(delivered(&r), 2 * MSS, "packet 2 was not kept");
    // The sender does not know that packet 0 has arrived.
    let known = r.packet(data(0, 5));
    assert_eq!((sack(&known[0]).next, sack(&known[0]).bitmap, delivered(&r)), (2, 0, 2 * MSS));
    assert_eq!(counts(&r, [super::OUT_OF_ORDER, super::TRIMS, super::DUPLICATES]), [1, 1, 1]);
    let disorder = r.table.get(FlowId(0)).disorder();
    assert_eq!((disorder.out_of_order, disorder.reordered, disorder.gaps), (1, 1, 1), "packet 1 came after packet 2");
}

#[test]
fn ordered_packets_take_one_path() {
    let mut h = ordered(&[100 * MSS, 100 * MSS]);
    (0..2).for_each(|flow| h.table.set_paths(FlowId(flow), false, 6));
    let paths = |packets: &[Packet]| packets.iter().map(|packet| packet.path_tag).collect::<std::collections::BTreeSet<_>>();
    let [first, second] = [0, 1].map(|flow| paths(&h.open(flow)));
    assert_eq!((first.len(), second.len()), (1, 1));
    assert_ne!(first, second, "every connection draws its own entropy value");
    h.now = us(130);
    let sent = [h.packet(ack(3, 2, &[])), h.packet(gap(3)), h.advance(Time::ZERO + RTO)].concat();
    assert!(sent.iter().any(|packet| packet.flow == FlowId(0) && packet.has(Packet::RETX)));
    assert_eq!(paths(&sent).union(&first).collect::<Vec<_>>(), first.union(&second).collect::<Vec<_>>());
}

/// Packet 3 is lost, and packets 4 to 15 arrive out of order.
#[test]
fn ordered_packets_are_retransmitted_from_the_first_missing_one_on() {
    let mut h = ordered(&[100 * MSS]);
    h.open(0);
    h.now = us(130);
    assert_eq!(numbers(&h.packet(ack(3, 2, &[]))), [16, 17, 18]);
    let before = window(&h);
    let sent = h.packet(gap(3));
    // The window is smaller by one packet.
    assert_eq!((numbers(&sent), window(&h)), ((3..3 + window(&h) / 1500).collect(), before - 1500));
    assert!(sent.iter().all(|packet| packet.has(Packet::RETX) && packet.get::<UetData>().asks()));
    assert_eq!((h.packet(gap(3)), window(&h)), (vec![], before - 1500));
    // After the rest of the lost packets, new packets follow.
    h.now = us(260);
    let rest: Vec<u64> =
        [(4, 3), (8, 7), (14, 13)].into_iter().flat_map(|(next, last)| numbers(&h.packet(ack(next, last, &[])))).collect();
    assert_eq!(rest, (rest[0]..rest[0] + rest.len() as u64).collect::<Vec<_>>());
    assert_eq!(rest[0], numbers(&sent)[sent.len() - 1] + 1);
    assert!(rest.contains(&19), "{rest:?}");
    // The retransmission of packet 14 is lost without a NACK: all packets follow after its timeout.
    let late = h.advance(us(130).after(RTO));
    assert_eq!(numbers(&late)[..3], [14, 15, 16]);
    assert_eq!(counts(&h, [super::NACKS]), [2]);
}

#[test]
fn ordered_packets_are_retransmitted_from_a_trimmed_one_on() {
    let mut h = ordered(&[100 * MSS]);
    h.open(0);
    h.now = us(130);
    let before = window(&h);
    // Eleven packets are lost, five are in flight, and there is room for ten.
    assert_eq!((numbers(&h.packet(nack(5, 0))), window(&h)), ((5..15).collect(), before - 1500));
    // Every trimmed packet lowers the window. The NACK is older than the retransmission.
    assert_eq!((h.packet(nack(7, 0)), window(&h)), (vec![], before - 3000));
    let mut again = nack(7, 0);
    again.flags |= Packet::RETX;
    // Packets 7 to 14 are lost, seven packets are in flight, and there is room for six.
    assert_eq!((numbers(&h.packet(again)), window(&h)), ((7..13).collect(), before - 4500));
    // A port sends packet 9 back.
    let mut returned = Packet { flags: Packet::ECT | Packet::RETX, ..data(9, 0) };
    returned.turn_back();
    assert_eq!((numbers(&h.packet(returned)), window(&h)), ((9..12).collect(), before - 6000));
}

/// With both controls, the last hop is the receiver's concern, whose credit suffices here.
#[test]
fn the_last_hop_lowers_no_window_that_credit_limits() {
    for (cc, last_hop, left) in [(Cc::Nscc, true, 1500), (Cc::Both, false, 1500), (Cc::Both, true, 0)] {
        let mut h = host_with(&params(|params| params.cc = cc), &[100 * MSS]);
        h.open(0);
        let window = h.machine.sample(FlowId(0)).expect("an open flow").cwnd_bytes;
        let mut nack = nack(3, 0);
        nack.flags |= if last_hop { Packet::LAST_HOP } else { 0 };
        h.packet(nack);
        assert_eq!(window - h.machine.sample(FlowId(0)).expect("an open flow").cwnd_bytes, left);
    }
    // A receiver passes on what the trimmed packet says.
    let mut r = host(&[100 * MSS]).at_host(1);
    let mut last = Packet { route: [crate::packet::ASK; 6], ..data(0, 0) };
    last.trim(64);
    assert!(r.packet(last)[0].has(Packet::LAST_HOP) && !r.packet(trimmed(1, 0))[0].has(Packet::LAST_HOP));
}

/// Every packet has its own timeout, which does not grow.
#[test]
fn packets_without_answer_are_retransmitted_after_the_timeout() {
    let mut h = host(&[3 * MSS]);
    assert_eq!((h.machine.timers().first, h.open(0).len()), (Timeout::new("min_rto", RTO), 3));
    h.now = us(200);
    h.packet(ack(0, 1, &[1]));
    assert_eq!(h.advance(Time(RTO.0 - 1)), []);
    let again = h.advance(Time::ZERO + RTO);
    assert_eq!(numbers(&again), [0, 2]);
    assert!(again.iter().all(|packet| packet.has(Packet::RETX) && packet.get::<UetData>().asks()));
    assert_eq!(h.advance(Time(2 * RTO.0 - 1)), []);
    assert_eq!(numbers(&h.advance(Time::ZERO + RTO * 2)), [0, 2]);
    assert_eq!(h.table.get(FlowId(0)).stats.timeouts, 2);
    h.packet(ack(3, 2, &[]));
    assert!(h.table.get(FlowId(0)).closed);
    assert_eq!(h.advance(Time(u64::MAX / 2)), []);
}

#[test]
fn a_lost_packet_without_room_in_the_window_sends_an_rts() {
    let change = |params: &mut Params| {
        params.init_window = Auto::Set(Bytes(4500));
        (params.alpha, params.fair_increase, params.eta) = (Fraction(0), Fraction(0), Fraction(0));
    };
    let mut h = host_with(&params(change), &[9 * MSS]);
    assert_eq!(numbers(&h.open(0)), [0, 1, 2]);
    h.now = us(3000);
    // Packet 0 has arrived, and one leaves.
    assert_eq!(numbers(&h.packet(ack(1, 0, &[]))), [3]);
    // Packets 1 and 2 time out: windows of 3000 and 1500 bytes, and packet 3 is in flight.
    let sent = h.advance(Time::ZERO + RTO);
    let kinds: Vec<_> = sent.iter().map(|packet| (packet.kind, packet.payload)).collect();
    assert_eq!(kinds, [(RTS, 0)]);
    assert_eq!(counts(&h, [super::RTSS]), [1]);
    let mut r = host(&[9 * MSS]).at_host(1);
    r.packet(data(0, 0));
    r.packet(data(3, 0));
    let answer = r.packet(sent[0]);
    let known = sack(&answer[0]);
    assert_eq!((known.next, known.control, known.early, known.bitmap), (1, true, 1, 0b10));
    assert_eq!(numbers(&h.packet(answer[0])), [1], "the first lost packet has room");
}

#[test]
fn acks_open_the_window() {
    let mut h = host_with(&params(|params| params.init_window = Auto::Set(Bytes(6000))), &[100 * MSS]);
    assert_eq!(numbers(&h.open(0)), [0, 1, 2, 3]);
    h.now = us(130);
    assert_eq!(numbers(&h.packet(ack(4, 3, &[]))), (4..12).collect::<Vec<_>>());
    let sample = h.machine.sample(FlowId(0)).expect("an open flow");
    // The round trip since the start is over. A whole window earns 629.16 * (129.28 - 0.72) / 12
    // bytes, and eta is 23 bytes.
    assert_eq!((sample.cwnd_bytes, sample.srtt, sample.in_flight_bytes), (6000 + 6740 + 23, Dur::from_us(130), 8 * MSS));
}

/// Any credit allows a packet: 24 240 bytes allow 17.
#[test]
fn rccc_sends_a_window_and_then_what_credit_allows() {
    let mut h = rccc(&[100 * MSS]);
    let sent = h.open(0);
    assert_eq!(numbers(&sent), (0..17).collect::<Vec<_>>());
    let asks: Vec<usize> = (0..17).filter(|&n| sent[n].get::<UetData>().asks()).collect();
    assert_eq!(asks, [16], "the credit is used up");
    // The demand is a window: 24 240 - 22 740 bytes are 6 quanta; after 17 packets 24 240 + 1260.
    assert_eq!([0, 16].map(|n| sent[n].get::<UetData>().pull_target), [6, 100]);
    assert_eq!(counts(&h, [super::SPECULATIVE]), [17 * MSS]);
    assert_eq!(h.packet(ack(1, 0, &[])), []);
    // 1260 bytes are missing: 5 quanta are 1280 bytes.
    assert_eq!(h.packet(pull(4)), []);
    assert_eq!(numbers(&h.packet(pull(5))), [17]);
    assert_eq!(numbers(&h.packet(pull(17))), [18, 19], "1480 missing; 3072 more");
    // Lost packets need credit, too, and the last pull may be lost: an RTS after the timeout.
    assert_eq!(h.packet(nack(3, 0)), []);
    assert_eq!(numbers(&h.packet(pull(30))), [3, 20]);
    assert_eq!(counts(&h, [super::SPECULATIVE]), [17 * MSS]);
}

#[test]
fn the_rest_of_the_first_credit_ends_with_the_first_answer() {
    let mut h = rccc(&[100 * MSS]);
    h.nic_busy = true;
    h.open(0);
    h.with(|machine, cx| machine.poll_transmit(cx)).expect("a first packet");
    h.nic_busy = false;
    assert_eq!(h.packet(ack(1, 0, &[])), []);
    // Without packets in flight the sender waits for pulls, whatever else arrives.
    h.now = us(9000);
    assert_eq!(h.packet(ack(1, 0, &[])), []);
    assert_eq!(h.advance(Time(16 * RTO.0 - 1)), []);
    let rts = h.advance(Time::ZERO + RTO * 16);
    assert_eq!(rts.iter().map(|packet| packet.kind).collect::<Vec<_>>(), [RTS]);
    // 24 240 bytes are 95 quanta.
    assert_eq!((rts[0].get::<UetData>().pull_target, h.table.get(FlowId(0)).stats.timeouts), (95, 1));
}

/// Four packets of payload, 22 quanta or 5632 bytes, are 45.51 us at 0.99 Gb/s.
#[test]
fn a_receiver_pulls_at_its_rate() {
    let mut r = rccc(&[100 * MSS]).at_host(1);
    let mut wants = data(0, 0);
    wants.set(UetData::new(0, false, 50));
    r.packet(wants);
    let pulls = r.advance(us(1000));
    let seen: Vec<_> = pulls.iter().map(|packet| (packet.sent_at.0, packet.get::<UetData>().pull_target)).collect();
    let gap = Rate::from_gbps(1).times(Fraction(990_000_000)).gap(256).0;
    // 22, 22 and 6 quanta, and then credit without demand, until it is 94 quanta or more.
    let expected = [(0, 22), (22, 44), (44, 50), (50, 72), (72, 94), (94, 116), (116, 138), (138, 160)];
    assert_eq!(seen, expected.map(|(quanta, number)| (quanta * gap, number)));
    assert_eq!(counts(&r, [super::PULLS, super::CREDIT]), [8, 160 * 256]);
    // A trimmed packet asks for a pull although it wants no more than before; then credit without
    // demand follows.
    let mut header = trimmed(1, 0);
    header.set(UetData::new(0, false, 50));
    assert_eq!(r.packet(header).len(), 1);
    assert_eq!(r.advance(us(1010)).iter().map(|packet| packet.get::<UetData>().pull_target).collect::<Vec<_>>(), [160, 182]);
}

/// SLEEK: after 16 packets, the largest window, a hole of one packet is retransmitted although the
/// window is full.
#[test]
fn sleek_infers_losses_from_later_arrivals() {
    let mut h = host_with(&params(|params| params.sleek = true), &[100 * MSS]);
    h.open(0);
    h.now = us(130);
    let early: Vec<u64> = (1..16).collect();
    let sent = h.packet(ack(0, 1, &early));
    assert_eq!(numbers(&sent)[0], 16, "15 early packets are too few");
    assert_eq!(counts(&h, [super::INFERRED]), [0]);
    let early: Vec<u64> = (1..17).collect();
    let sent = h.packet(ack(0, 1, &early));
    assert_eq!((numbers(&sent)[0], sent[0].has(Packet::RETX)), (0, true));
    assert_eq!(counts(&h, [super::INFERRED, super::PROBES]), [1, 0]);
}

/// The last packets are lost. A probe one round trip and the target after the last ACK, 258.56 us,
/// finds a short delay, and they are retransmitted long before the timeout.
#[test]
fn sleek_probes_the_end_of_a_message() {
    let mut h = host_with(&params(|params| params.sleek = true), &[6 * MSS]);
    h.open(0);
    h.now = us(130);
    h.packet(ack(4, 3, &[]));
    let probes = h.advance(Time(388_560_000));
    let seen: Vec<_> = probes.iter().map(|packet| (packet.kind, packet.sent_at, packet.wire_len)).collect();
    assert_eq!(seen, [(Kind::PROBE, Time(388_560_000), 40)]);
    let mut r = host(&[6 * MSS]).at_host(1);
    (0..4).for_each(|number| drop(r.packet(data(number, 0))));
    let answer = r.packet(probes[0]);
    assert_eq!((answer[0].kind, answer[0].offset), (Kind::PROBEACK, 4 * MSS));
    h.now = h.now.after(Dur::from_us(130));
    assert_eq!(numbers(&h.packet(answer[0])), [4, 5]);
    assert_eq!(counts(&h, [super::INFERRED, super::PROBES]), [2, 1]);
}

#[test]
fn messages_of_a_peer_share_a_window() {
    let sizes = [20 * MSS, 20 * MSS];
    let open = |connections: UetConnections| {
        let change = |params: &mut Params| (params.connections, params.init_window) = (connections, Auto::Set(Bytes(6000)));
        let mut h = host_with(&params(change), &sizes);
        let first = numbers(&h.open(0));
        let second = h.open(1);
        (h, first, second)
    };
    assert_eq!(open(UetConnections::Message).2.len(), 4);
    let (mut h, first, second) = open(UetConnections::Peer);
    assert_eq!((first, second.len()), (vec![0, 1, 2, 3], 0));
    // The first message goes first. The window of eight packets is that of `acks_open_the_window`.
    h.now = us(130);
    let of = |sent: Vec<Packet>| sent.iter().map(|packet| (packet.flow.0, packet.offset / MSS)).collect::<Vec<_>>();
    assert_eq!(of(h.packet(ack(4, 3, &[]))), (4..12).map(|number| (0, number)).collect::<Vec<_>>());
    // 18 000 bytes without delay exceed the window: a quarter of 12 000 * 0.1077 and eta are added.
    h.now = us(260);
    assert_eq!(of(h.packet(ack(12, 4, &[]))), (12..20).map(|number| (0, number)).collect::<Vec<_>>());
    let window = h.machine.sample(FlowId(1)).expect("the message is open").cwnd_bytes;
    assert_eq!(window, 12_763 + 323 + 23);
    // A given-up message leaves its window to the next one.
    assert_eq!(of(h.give_up(0)), (0..8).map(|number| (1, number)).collect::<Vec<_>>());
    let sample = h.machine.sample(FlowId(1)).expect("the message is open");
    assert_eq!((sample.cwnd_bytes, sample.in_flight_bytes), (window, 8 * MSS));
}

#[test]
fn contradictions_are_problems() {
    let keys = |change: &dyn Fn(&mut Params)| {
        let problems = check(&params(change), &script::env());
        problems.into_iter().map(|problem| problem.key).collect::<Vec<_>>()
    };
    assert_eq!(keys(&|_| ()), Vec::<&str>::new());
    assert_eq!(keys(&|params| params.min_rto = Auto::Set(Dur::from_us(100))), ["min_rto"]);
    assert_eq!(keys(&|params| params.multipath.entropies = 48), ["entropies"]);
    let peer = |params: &mut Params| (params.connections, params.cc) = (UetConnections::Peer, Cc::Both);
    assert_eq!(keys(&|params| peer(params)), ["connections"]);
    assert_eq!(keys(&|params| (params.cc, params.sleek) = (Cc::Rccc, true)), ["sleek"]);
    assert_eq!(keys(&|params| (params.delivery, params.sleek) = (Delivery::Ordered, true)), ["sleek"]);
}

fn variants() -> Vec<Params> {
    let all = [
        params(|_| ()),
        params(|params| params.cc = Cc::Rccc),
        params(|params| params.cc = Cc::Both),
        params(|params| params.connections = UetConnections::Peer),
        params(|params| params.init_window = Auto::Set(Bytes(1))),
        params(|params| (params.cc, params.sleek) = (Cc::Both, true)),
        params(|params| params.delivery = Delivery::Ordered),
        params(|params| (params.delivery, params.cc) = (Delivery::Ordered, Cc::Both)),
        params(|params| (params.delivery, params.connections) = (Delivery::Ordered, UetConnections::Peer)),
    ];
    all.into()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(patterns(200)))]
    /// All bytes arrive once, senders close and timers end, whatever happens to the first 400
    /// packets.
    #[test]
    fn survives_loss_trimming_return_marks_reordering_and_duplication(
        variant in 0usize..9,
        sizes in prop::collection::vec(1u64..60_000, 1..4),
        fates in fates(400, &[(2, Fate::Trim), (1, Fate::Return), (2, Fate::Mark)]),
    ) {
        let host = || Script::new(Uet::new(&variants()[variant], &script::env()), both_ways(&sizes));
        let mut pipe = Pipe::new(host(), host(), Dur::from_us(50));
        pipe.watch = |host| {
            let sender = &host.machine.sender;
            for (_, connection) in sender.connections.iter() {
                let in_flight = |&flow: &FlowId| sender.messages.get(flow).expect("an open message").in_flight();
                assert_eq!(connection.in_flight, connection.open.iter().map(in_flight).sum::<u64>());
            }
        };
        let (mut fates, mut sent) = (fates.into_iter(), 0);
        pipe.run(|_| {
            sent += 1;
            assert!(sent < 20_000, "hosts that never stop sending");
            fates.next().unwrap_or(Fate::Pass)
        });
        for host in &pipe.hosts {
            let Uet { sender, receiver } = &host.machine;
            let left = sender.messages.len() + receiver.messages.len() + receiver.granted.len();
            prop_assert_eq!(left, 0);
        }
    }
}

//! Packets in, packets out.

use super::label::Label;
use super::*;
use crate::kit::pipe::{Fate, Pipe};
use crate::kit::script::{self, Script};
use base::params::{Auto, Params as _};
use base::{Dur, Rng};
use std::collections::BTreeMap;

const SMSS: u64 = 1460;
const RTT: Dur = Dur::from_us(100);

fn params(subflows: u32) -> Params {
    let mut params = Params { subflows, ..Params::defaults() };
    (params.tcp.handshake, params.tcp.init_window) = (false, Auto::Set(2));
    params
}

/// A host with a flow of this many segments.
fn host(params: &Params, segments: u64) -> Script<Mptcp> {
    let mut host = Script::new(Mptcp::new(params, &script::env()), vec![script::flow(0, segments * SMSS)]);
    host.table.keep_counters(2);
    host
}

/// Returns the subflow of a packet, and the positions of its payload in the subflow and in the
/// connection, in segments.
fn place(packet: &Packet) -> (u8, u64, u64) {
    let Label { subflow, at } = Label::of(packet.words[0]);
    (subflow, at / SMSS, packet.offset / SMSS)
}

fn places(packets: &[Packet]) -> Vec<(u8, u64, u64)> {
    assert!(packets.iter().all(|packet| packet.kind == Kind::DATA), "{packets:?}");
    packets.iter().map(place).collect()
}

/// An ACK: the subflow has all segments below `at`, the connection all below `data`. It answers a
/// segment sent a round trip ago.
fn ack(host: &Script<Mptcp>, subflow: u8, at: u64, data: u64) -> Packet {
    let mut ack = Packet::new(FlowId(0), Kind::ACK, 40);
    ack.offset = data * SMSS;
    ack.words = [Label { subflow, at: at * SMSS }.word(), host.now.before(RTT).ps()];
    ack
}

/// Delivers an ACK a round trip later.
fn receive_ack(host: &mut Script<Mptcp>, subflow: u8, at: u64, data: u64) -> Vec<Packet> {
    host.now = host.now.max(Time::ZERO + RTT);
    let ack = ack(host, subflow, at, data);
    host.packet(ack)
}

#[test]
fn every_subflow_opens_with_its_own_port_and_keeps_it() {
    let mut with_handshake = params(3);
    with_handshake.tcp.handshake = true;
    let (mut sender, mut receiver) = (host(&with_handshake, 100), host(&with_handshake, 100).at_host(1));
    let syns = sender.open(0);
    let tags = [0, Packet::BY_PORT + 1, Packet::BY_PORT + 2];
    let labels = [0, 1, 2].map(|subflow| Label { subflow, at: 0 }.word());
    assert_eq!(
        syns.iter().map(|syn| (syn.kind, syn.path_tag, syn.words[0])).collect::<Vec<_>>(),
        [0, 1, 2].map(|i| (Kind::SYN, tags[i], labels[i]))
    );
    let answers: Vec<Packet> = syns.iter().flat_map(|&syn| receiver.packet(syn)).collect();
    assert_eq!(
        answers.iter().map(|packet| (packet.kind, packet.path_tag)).collect::<Vec<_>>(),
        tags.map(|tag| (Kind::SYNACK, tag))
    );
    // The second subflow opens first, and sends before the others. A duplicate SYNACK changes
    // nothing.
    let sent = sender.packet(answers[1]);
    assert_eq!(places(&sent), [(1, 0, 0), (1, 1, 1)]);
    assert!(sent.iter().all(|packet| packet.path_tag == tags[1]));
    assert_eq!(sender.packet(answers[1]), []);
    assert_eq!(places(&sender.packet(answers[2])), [(2, 0, 2), (2, 1, 3)]);
    assert_eq!(sender.table.counts(FlowId(0)), [2, 0]);
    let acks: Vec<Packet> = sent.iter().flat_map(|&packet| receiver.packet(packet)).collect();
    assert_eq!(acks.iter().map(|packet| (packet.kind, packet.path_tag)).collect::<Vec<_>>(), [(Kind::ACK, tags[1]); 2]);
    // A lost SYN is retransmitted on its own path, after a timeout of its subflow only.
    let again = sender.advance(Time::ZERO + Dur::from_ms(10));
    assert!(again.iter().any(|syn| (syn.kind, syn.path_tag) == (Kind::SYN, 0) && syn.has(Packet::RETX)), "{again:?}");
}

#[test]
fn subflows_take_the_next_bytes_in_turn() {
    let mut sender = host(&params(2), 100);
    assert_eq!(places(&sender.open(0)), [(0, 0, 0), (1, 0, 1), (0, 1, 2), (1, 1, 3)]);
    // Each subflow is in slow start separately: the subflow that receives an ACK sends two
    // segments.
    assert_eq!(places(&receive_ack(&mut sender, 1, 1, 0)), [(1, 2, 4), (1, 3, 5)]);
    assert_eq!(places(&receive_ack(&mut sender, 0, 1, 2)), [(0, 2, 6), (0, 3, 7)]);
    assert_eq!(sender.table.counts(FlowId(0)), [2, 0]);
}

#[test]
fn a_small_flow_has_one_subflow_with_min_bytes() {
    let few = Params { min_bytes: Bytes(10 * SMSS), ..params(4) };
    assert_eq!(places(&host(&few, 9).open(0)), [(0, 0, 0), (0, 1, 1)]);
    assert_eq!(host(&few, 10).open(0).len(), 8);
}

/// Two subflows with windows of ten segments and equal round trips: each grows by a fortieth of a
/// segment per ACK; two NewReno flows would grow four times as fast.
#[test]
fn windows_grow_together_in_congestion_avoidance() {
    let mut kept = params(2);
    kept.tcp.full_ack_ssthresh = true;
    let mut sender = host(&kept, 10_000);
    sender.open(0);
    // Both subflows lose a segment, so that they leave slow start: at flights of 20 each.
    let mut acked = [0, 0];
    while sender.machine.sample(FlowId(0)).unwrap().cwnd_bytes < 40 * SMSS {
        for subflow in [0, 1] {
            acked[usize::from(subflow)] += 1;
            receive_ack(&mut sender, subflow, acked[usize::from(subflow)], 0);
        }
    }
    for subflow in [0, 1] {
        (0..3).for_each(|_| drop(receive_ack(&mut sender, subflow, acked[usize::from(subflow)], 0)));
    }
    let flow = sender.machine.connections.get(FlowId(0)).unwrap();
    let sample = flow.sample();
    assert_eq!((sample.ssthresh_bytes, sender.table.get(FlowId(0)).stats.fast_retransmits), (20 * SMSS, 2));
    // Full ACKs end both recoveries.
    for subflow in [0, 1] {
        acked[usize::from(subflow)] += 20;
        receive_ack(&mut sender, subflow, acked[usize::from(subflow)], 0);
    }
    let before = sender.machine.sample(FlowId(0)).unwrap().cwnd_bytes;
    assert_eq!(before, 20 * SMSS);
    for _ in 0..10 {
        for subflow in [0, 1] {
            acked[usize::from(subflow)] += 1;
            receive_ack(&mut sender, subflow, acked[usize::from(subflow)], 0);
        }
    }
    let grown = (sender.machine.sample(FlowId(0)).unwrap().cwnd_bytes - before) as f64 / SMSS as f64;
    // The total grows slightly in the meantime.
    assert!((0.48..=0.5).contains(&grown), "{grown}");
}

#[test]
fn the_others_send_what_a_subflow_has_lost_by_a_timeout() {
    for reinject in [true, false] {
        let mut sender = host(&Params { reinject, ..params(3) }, 8);
        // (subflow: segments of the connection).
        sender.open(0);
        assert_eq!(places(&receive_ack(&mut sender, 1, 2, 0)), [(1, 2, 6), (1, 3, 7)]);
        assert_eq!(places(&receive_ack(&mut sender, 2, 2, 0)), []);
        assert_eq!(places(&receive_ack(&mut sender, 1, 4, 0)), []);
        // The first subflow receives no ACK. It retransmits its first segment, and the others send
        // both of its segments, in order.
        let again = sender.advance(sender.now.after(Dur::from_ms(10)));
        let expected = [(0, 0, 0), (1, 4, 3), (2, 2, 0)];
        let mut seen = places(&again);
        seen.sort_unstable();
        assert_eq!(seen, if reinject { &expected[..] } else { &expected[..1] });
        assert!(again.iter().all(|packet| packet.has(Packet::RETX)));
        assert_eq!(sender.table.counts(FlowId(0)), [3, if reinject { 2 * SMSS } else { 0 }]);
        assert_eq!(sender.table.get(FlowId(0)).stats.timeouts, 1);
        if !reinject {
            continue;
        }
        // The next timeout of the subflow reinjects only bytes not known to have arrived: the first
        // segment has arrived over another subflow.
        let at = sender.now;
        let came = Packet { words: [Label { subflow: 1, at: 5 * SMSS }.word(), at.ps()], ..ack(&sender, 1, 5, 3) };
        assert_eq!(sender.packet(came), []);
        let later = sender.advance(at.after(Dur::from_ms(20)));
        assert!(later.iter().all(|packet| place(packet) != (1, 5, 0)), "{later:?}");
        // An ACK of all bytes of the connection ends it, whatever the state of the subflows.
        assert_eq!(receive_ack(&mut sender, 2, 2, 8), []);
        assert!(sender.table.get(FlowId(0)).closed && sender.next_wake() > sender.now);
        assert_eq!(sender.machine.sample(FlowId(0)), None);
    }
}

#[test]
fn a_lost_segment_is_retransmitted_on_its_own_subflow() {
    let mut sender = host(&params(2), 100);
    sender.open(0);
    receive_ack(&mut sender, 0, 2, 0);
    let mut sent = Vec::new();
    for _ in 0..3 {
        sent = receive_ack(&mut sender, 0, 2, 0);
    }
    assert_eq!(places(&sent)[0], (0, 2, 4));
    assert!(sent[0].has(Packet::RETX));
    assert_eq!(sender.table.get(FlowId(0)).stats.fast_retransmits, 1);
    assert_eq!(sender.table.counts(FlowId(0)), [2, 0]);
}

/// A segment of subflow `subflow`, as (segment of the subflow, segment of the connection).
fn data(subflow: u8, at: u64, offset: u64) -> Packet {
    let mut packet = Packet::data(FlowId(0), offset * SMSS, SMSS as u16, 40);
    packet.words[0] = Label { subflow, at: at * SMSS }.word();
    packet
}

#[test]
fn subflows_are_acknowledged_separately_and_bytes_are_delivered_once() {
    let mut receiver = host(&params(2), 5).at_host(1);
    let mut answer = |packet| {
        let acks = receiver.packet(packet);
        assert!(acks.iter().all(|ack| ack.kind == Kind::ACK && ack.wire_len == 40));
        let delivered = receiver.table.get(FlowId(0)).delivered_bytes / SMSS;
        (acks.iter().map(place).collect::<Vec<_>>(), delivered)
    };
    assert_eq!(answer(data(1, 0, 1)), (vec![(1, 1, 0)], 1));
    assert_eq!(answer(data(0, 0, 0)), (vec![(0, 1, 2)], 2));
    // Out of order in its subflow.
    assert_eq!(answer(data(0, 2, 4)), (vec![(0, 1, 2)], 3));
    // The other subflow brings the segment that the first has lost.
    assert_eq!(answer(data(1, 1, 2)), (vec![(1, 2, 3)], 4));
    assert_eq!(answer(data(0, 1, 2)), (vec![(0, 3, 3)], 4));
    assert_eq!(answer(data(1, 2, 3)), (vec![(1, 3, 5)], 5));
    // No state is kept, and late data is still answered.
    let (late, delivered) = answer(data(0, 1, 2));
    assert_eq!((late[0].2, delivered), (5, 5));
    assert_eq!(receiver.table.unfinished(), 0);
}

#[test]
fn acks_are_delayed_by_subflow_and_carry_its_blocks() {
    let mut lazy = params(2);
    (lazy.tcp.ack_every, lazy.tcp.sack) = (2, true);
    let mut receiver = host(&lazy, 10).at_host(1);
    assert_eq!(receiver.packet(data(0, 0, 0)), []);
    receiver.now = receiver.now.after(Dur::from_ms(1));
    assert_eq!(receiver.packet(data(1, 0, 1)), []);
    assert_eq!(receiver.packet(data(1, 1, 2)).iter().map(place).collect::<Vec<_>>(), [(1, 2, 3)]);
    assert_eq!(receiver.advance(Time::ZERO + Dur::from_ms(39)), []);
    let due = receiver.advance(Time::ZERO + Dur::from_ms(40));
    assert_eq!(due.iter().map(place).collect::<Vec<_>>(), [(0, 1, 3)]);
    // A hole in the connection is no hole in the subflow; a hole in the subflow is reported in the
    // subflow's own numbers.
    assert_eq!(receiver.packet(data(1, 2, 7)), []);
    let early = receiver.packet(data(1, 4, 5));
    let blocks: Blocks = early[0].get_ext(&receiver.ext);
    assert_eq!((Label::of(blocks.feedback), early[0].offset), (Label { subflow: 1, at: 3 * SMSS }, 3 * SMSS));
    assert!(blocks.ranges().eq(std::iter::once(4 * SMSS..5 * SMSS)));
}

/// Byte by byte: a byte of a subflow always has the same position in the connection, and first
/// transmissions of a subflow are in order.
fn check_mappings(log: &[Packet]) {
    let mut known: BTreeMap<(u8, u64), u64> = BTreeMap::new();
    for packet in log.iter().filter(|packet| packet.kind == Kind::DATA) {
        let Label { subflow, at } = Label::of(packet.words[0]);
        for byte in 0..u64::from(packet.payload) {
            let data = known.entry((subflow, at + byte)).or_insert(packet.offset + byte);
            assert_eq!(*data, packet.offset + byte, "byte {} of subflow {subflow}", at + byte);
        }
    }
    for (subflow, at) in known.keys() {
        assert!(*at == 0 || known.contains_key(&(*subflow, at - 1)), "subflow {subflow} has left out byte {}", at - 1);
    }
}

/// Random losses, short segments among the reinjected ones, every kind of recovery: all bytes
/// arrive, and mappings never change.
#[test]
fn under_any_loss_all_arrives_and_mappings_never_change() {
    let mut reinjected = 0;
    for n in 0..24 {
        let mut some = params(1 + n % 4);
        (some.tcp.sack, some.tcp.handshake, some.tcp.limited_transmit) = (n % 2 == 0, n % 3 == 0, n % 5 == 0);
        (some.tcp.ack_every, some.tcp.min_rto) = (1 + n / 12, Auto::Set(Dur::from_ms(1)));
        let rng = &mut Rng::stream(7, "mptcp/loss", &[n.into()]);
        // A size that is no multiple of a segment.
        let make = || {
            let mut host =
                Script::new(Mptcp::new(&some, &script::env()), vec![script::flow(0, 60 * SMSS + 377 * u64::from(n) + 1)]);
            host.table.keep_counters(2);
            host
        };
        let mut pipe = Pipe::new(make(), make(), Dur::from_us(50));
        pipe.run(|packet| match rng.below(10) {
            0 | 1 => Fate::Drop,
            2 if packet.kind == Kind::DATA => Fate::Twice,
            3 => Fate::Late(Dur::from_us(300)),
            _ => Fate::Pass,
        });
        check_mappings(&pipe.log);
        reinjected += pipe.hosts[0].table.counts(FlowId(0))[1];
    }
    assert!(reinjected > 100 * SMSS, "{reinjected}");
}

/// A dead path delays a flow by a few timeouts; without reinjection the flow would never end.
#[test]
fn a_dead_path_is_repaired() {
    let mut pipe = Pipe::new(host(&params(3), 500), host(&params(3), 500), Dur::from_us(50));
    let (mut sent, mut end) = (0, Time::ZERO);
    pipe.run(|packet| {
        end = packet.sent_at;
        let on_dead_path = Label::of(packet.words[0]).subflow == 1;
        sent += u32::from(on_dead_path && packet.kind == Kind::DATA);
        // The path works for a while.
        if on_dead_path && sent > 20 { Fate::Drop } else { Fate::Pass }
    });
    check_mappings(&pipe.log);
    assert!(end < Time::ZERO + Dur::from_ms(50), "{end:?}");
    let [_, reinjected] = pipe.hosts[0].table.counts(FlowId(0)) else { panic!("two counters") };
    assert!((SMSS..=60 * SMSS).contains(reinjected), "{reinjected}");
}

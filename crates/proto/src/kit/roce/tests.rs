use super::options::{Bound, RoceConfig};
use super::*;
use crate::kit::int::LineRate;
use crate::kit::pipe::{Fate, Pipe, both_ways, fates, patterns};
use crate::kit::script::{self, Script};
use crate::reassembly::Disorder;
use base::params::Params as _;
use base::{Dur, Rate};
use proptest::prelude::*;

/// A controller with one rate, which reports the answers that it sees.
struct Steady(Rate);

impl RateControl for Steady {
    type State = Vec<Acked>;
    const NOTIFIES: bool = true;
    const INT: bool = true;
    fn open(&self, _now: Time) -> Vec<Acked> {
        Vec::new()
    }
    fn rate(&self, _state: &Vec<Acked>) -> Rate {
        self.0
    }
    fn on_ack(&self, state: &mut Vec<Acked>, ack: &Acked) {
        state.push(*ack);
    }
    fn on_notification(&self, state: &mut Vec<Acked>, now: Time) {
        state.push(Acked { now, next: u64::MAX, snd_nxt: 0, rtt: Dur::ZERO, stack: IntStack::default() });
    }
}

const MSS: u64 = 1460;

fn config(change: impl FnOnce(&mut Options)) -> RoceConfig {
    let mut options = Options::defaults();
    change(&mut options);
    options.config(&script::env(), 0)
}

fn host(config: RoceConfig, rate: Rate, sizes: &[u64]) -> Script<Roce<Steady>> {
    let flows = (0..).zip(sizes).map(|(id, size)| script::flow(id, *size)).collect();
    Script::new(Roce::with(config, Steady(rate)).notify_every(Dur::from_us(50)), flows)
}

fn at(us: u64) -> Time {
    Time::ZERO + Dur::from_us(us)
}

fn answer(kind: Kind, next: u64, beyond: u64) -> Packet {
    let mut answer = Packet::new(FlowId(0), kind, 40);
    (answer.offset, answer.words[ECHO]) = (next * MSS, beyond << ECHO_BITS);
    answer
}

/// The segments of data packets, and whether each was sent before.
fn segments(packets: &[Packet]) -> Vec<(u64, bool)> {
    packets.iter().filter(|p| p.kind == Kind::DATA).map(|p| (p.offset / MSS, p.has(Packet::RETX))).collect()
}

#[test]
fn defaults_follow_the_network() {
    let found = config(|_| {});
    assert_eq!((found.mss, found.base_rtt, found.min_rate), (1460, Dur::from_ns(129_280), Rate(1_000_000)));
    assert_eq!((found.bound, found.rto, found.rto_low), (Bound::None, Dur::from_ns(67_108_864), Dur::from_ns(67_108_864)));
    let irn = config(|o| o.recovery = Recovery::Irn);
    // Three round trips of 129.28 us are more than 100 us and 320 us.
    assert_eq!((irn.bound, irn.rto, irn.rto_low), (Bound::Bdp, Dur::from_ns(387_840), Dur::from_ns(387_840)));
    // 16 160 bytes on the wire are 10.77 packets, with 1460 bytes of payload each.
    assert_eq!((irn.window(Rate(1)), config(|o| o.window = Bound::Rate).window(Rate(500_000_000))), (15_729, 7_864));
    assert_eq!(config(|o| (o.window, o.window_unit) = (Bound::Bdp, WindowUnit::Payload)).window(Rate(1)), 16_160);
    let room = Options::defaults().config(&script::env(), 42);
    assert_eq!((room.mss, room.header), (1418, 82));
}

#[test]
fn packets_leave_one_gap_apart_and_messages_take_turns() {
    // 1500 bytes at 100 Mb/s: 120 us.
    let mut host = host(config(|_| {}), Rate(100_000_000), &[3 * MSS, 3 * MSS]);
    assert_eq!(segments(&host.open(0)), [(0, false)]);
    host.now = at(30);
    assert_eq!(host.open(1).len(), 1);
    let sent = host.advance(at(400));
    let found: Vec<_> = sent.iter().map(|p| (p.flow.0, p.offset / MSS, p.sent_at.0 / 1_000_000)).collect();
    assert_eq!(found, [(0, 1, 120), (1, 1, 150), (0, 2, 240), (1, 2, 270)]);
}

#[test]
fn a_bound_of_the_bytes_in_flight_holds_packets_back() {
    // A window of 16 160 bytes on the wire: a packet leaves while fewer are in flight, that is up to eleven.
    let mut host = host(config(|o| o.window = Bound::Bdp), Rate::from_gbps(1000), &[100 * MSS]);
    host.open(0);
    assert_eq!(host.advance(at(1)).len() + 1, 11);
    assert_eq!(segments(&host.packet(answer(Kind::ACK, 2, 0))), [(11, false)]);
    assert_eq!(segments(&host.advance(at(2))), [(12, false)]);
}

#[test]
fn a_nack_sends_everything_again() {
    let mut host = host(config(|_| {}), Rate::from_gbps(1000), &[6 * MSS]);
    host.open(0);
    assert_eq!(segments(&host.advance(at(1))).len(), 5);
    host.packet(answer(NACK, 2, 1));
    assert_eq!(segments(&host.advance(at(2))), [(3, true), (4, true), (5, true)]);
    assert_eq!(host.table.get(FlowId(0)).stats.fast_retransmits, 1);
    // The timer counts from the last progress.
    let resent = host.advance(at(67_200));
    assert_eq!((segments(&resent)[0], host.table.get(FlowId(0)).stats.timeouts), ((2, true), 1));
    host.packet(answer(Kind::ACK, 6, 0));
    assert!(host.table.get(FlowId(0)).closed);
}

#[test]
fn irn_sends_only_what_is_missing() {
    let mut host = host(config(|o| o.recovery = Recovery::Irn), Rate::from_gbps(1000), &[20 * MSS]);
    host.open(0);
    host.advance(at(1));
    // Eleven packets are in flight; 0 and 3 are lost. The first NACK is for packet 1.
    let mut us = 1;
    let mut nack = |beyond| {
        us += 1;
        let mut sent = host.packet(answer(NACK, 0, beyond));
        sent.extend(host.advance(at(us)));
        segments(&sent)
    };
    assert_eq!(nack(1), [(0, true)]);
    assert_eq!(nack(2), []);
    // Packet 4 shows that 3 is lost.
    assert_eq!(nack(4), [(3, true)]);
    for beyond in 5..11 {
        assert_eq!(nack(beyond), []);
    }
    // Packet 0 arrives; the window opens, and nothing is sent twice.
    let mut sent = host.packet(answer(Kind::ACK, 3, 0));
    sent.extend(host.advance(at(12)));
    assert_eq!(segments(&sent), [(11, false), (12, false), (13, false)]);
    assert_eq!(host.table.get(FlowId(0)).stats.fast_retransmits, 1);
    // Packet 3 is lost again: only the timer resends it.
    let resent = host.advance(at(12 + 388));
    assert_eq!((segments(&resent), host.table.get(FlowId(0)).stats.timeouts), (vec![(3, true)], 1));
}

#[test]
fn a_receiver_asks_once_for_what_is_missing() {
    let mut host = host(config(|_| {}), Rate::from_gbps(1), &[9 * MSS]).at_host(1);
    let mut send = |us: u64, n: u64| {
        host.now = at(us);
        let sent = host.packet(Packet { sent_at: Time(7), ..Packet::data(FlowId(0), n * MSS, MSS as u16, 40) });
        sent.iter().map(|p| (p.kind, p.offset / MSS)).collect::<Vec<_>>()
    };
    assert_eq!(send(0, 0), [(Kind::ACK, 1)]);
    assert_eq!(send(1, 2), [(NACK, 1)]);
    assert_eq!(send(2, 3), []);
    assert_eq!(send(501, 4), [(NACK, 1)]);
    // What was dropped has to come again.
    assert_eq!(send(502, 1), [(Kind::ACK, 2)]);
    assert_eq!(send(503, 3), [(NACK, 2)]);
    assert_eq!(send(504, 0), [(Kind::ACK, 2)]);
    assert_eq!(send(505, 2), [(Kind::ACK, 3)]);
    // Packets 2, 3, 4 and 3 arrived early, and packet 1 late. Packet 2 was not late: it was dropped.
    let expected = Disorder { reordered: 1, out_of_order: 4, gaps: 1, gap_bytes: MSS, first_gap_bytes: MSS };
    assert_eq!(host.table.get(FlowId(0)).disorder(), expected);
}

#[test]
fn with_irn_a_receiver_keeps_what_comes_early() {
    let mut host = host(config(|o| o.recovery = Recovery::Irn), Rate::from_gbps(1), &[5 * MSS]).at_host(1);
    let mut send = |n: u64| {
        let sent = host.packet(Packet::data(FlowId(0), n * MSS, MSS as u16, 40));
        sent.iter().map(|p| (p.kind, p.offset / MSS, p.words[ECHO] >> ECHO_BITS)).collect::<Vec<_>>()
    };
    assert_eq!(send(1), [(NACK, 0, 1)]);
    assert_eq!(send(3), [(NACK, 0, 3)]);
    assert_eq!(send(0), [(Kind::ACK, 2, 0)]);
    assert_eq!(send(4), [(NACK, 2, 2)]);
    assert_eq!(send(2), [(Kind::ACK, 5, 0)]);
    // A late copy of a finished message is acknowledged as a whole.
    assert_eq!(send(2), [(Kind::ACK, 5, 0)]);
}

#[test]
fn acks_may_be_fewer_and_the_last_packet_is_acknowledged() {
    let mut host = host(config(|o| o.ack_every = 3), Rate::from_gbps(1), &[5 * MSS]).at_host(1);
    let acks: Vec<usize> = (0..5).map(|n| host.packet(Packet::data(FlowId(0), n * MSS, MSS as u16, 40)).len()).collect();
    assert_eq!(acks, [0, 0, 1, 0, 1]);
}

#[test]
fn marks_are_notified_at_most_once_per_interval() {
    let mut host = host(config(|_| {}), Rate::from_gbps(1), &[9 * MSS]).at_host(1);
    let mut send = |us: u64, n: u64, flags: u16| {
        host.now = at(us);
        let sent = host.packet(Packet { flags, ..Packet::data(FlowId(0), n * MSS, MSS as u16, 40) });
        sent.iter().filter(|p| p.kind == CNP).count()
    };
    assert_eq!(send(0, 0, Packet::ECT), 0);
    assert_eq!(send(1, 1, Packet::CE), 1);
    assert_eq!(send(50, 2, Packet::CE), 0);
    assert_eq!(send(51, 3, Packet::CE), 1);
    // A marked packet that arrives out of order counts too.
    assert_eq!(send(101, 5, Packet::CE), 1);
}

#[test]
fn answers_return_the_departure_and_the_telemetry() {
    let mut flow = vec![script::flow(0, 2 * MSS)];
    flow[0].size_bytes = 2 * MSS;
    let make = || Script::new(Roce::with(config(|_| {}), Steady(Rate::from_gbps(1))), flow.clone());
    let mut receiver = make().at_host(1);
    let mut packet = Packet { sent_at: at(7), ..Packet::data(FlowId(0), 0, MSS as u16, 40) };
    let mut stack = IntStack::default();
    stack.push(at(8), 1280, 800, LineRate::new(Rate::from_gbps(100)));
    packet.set_ext(stack, &mut receiver.ext);
    receiver.now = at(20);
    let acks = receiver.packet(packet);
    let returned: IntStack = acks[0].get_ext(&receiver.ext);
    assert_eq!(returned, stack);

    let mut sender = make();
    sender.open(0);
    sender.now = at(36);
    let mut ack = acks[0];
    ack.set_ext(returned, &mut sender.ext);
    sender.packet(ack);
    let seen = &sender.machine.senders.get(FlowId(0)).unwrap().control;
    assert_eq!((seen.len(), seen[0].rtt, seen[0].next, seen[0].snd_nxt), (1, Dur::from_us(29), MSS, MSS));
    assert_eq!(seen[0].stack, stack);
    // A notification reaches the controller.
    sender.packet(Packet::new(FlowId(0), CNP, 40));
    assert_eq!(sender.machine.senders.get(FlowId(0)).unwrap().control[1].next, u64::MAX);
}

#[test]
fn no_packet_is_sent_twice_without_loss() {
    for recovery in [Recovery::GoBackN, Recovery::Irn] {
        let config = config(|o| o.recovery = recovery);
        let mut pipe = pipe(config, &[200 * MSS + 7, 50_000]);
        pipe.run(|_| Fate::Pass);
        assert!(pipe.log.iter().all(|packet| !packet.has(Packet::RETX)));
        assert_eq!(segments(&pipe.log).len(), 201 + 35);
    }
}

fn pipe(config: RoceConfig, sizes: &[u64]) -> Pipe<Roce<Steady>> {
    let host = || Script::new(Roce::with(config, Steady(Rate::from_gbps(1))), both_ways(sizes));
    Pipe::new(host(), host(), Dur::from_us(50))
}

/// A host whose messages, of these numbers of packets, share a queue pair.
fn shared(change: impl FnOnce(&mut Options), rate: Rate, packets: &[u64]) -> Script<Roce<Steady>> {
    let config = config(|o| {
        o.queue_pairs = QueuePairs::Peer;
        change(o);
    });
    host(config, rate, &packets.iter().map(|packets| packets * MSS).collect::<Vec<_>>())
}

/// Flow and segment of data packets.
fn starts(packets: &[Packet]) -> Vec<(u32, u64)> {
    packets.iter().filter(|p| p.kind == Kind::DATA).map(|p| (p.flow.0, p.offset / MSS)).collect()
}

/// A packet of a shared queue pair: this segment of a message whose first segment has this position.
fn shared_data(flow: u32, start: u64, segment: u64) -> Packet {
    let mut packet = Packet::data(FlowId(flow), segment * MSS, MSS as u16, 40);
    packet.words[POSITION] = 2 * (start + segment) * MSS;
    packet
}

#[test]
fn messages_of_a_queue_pair_follow_one_another_at_its_rate() {
    // 1500 bytes at 100 Mb/s: 120 us. The second message has half a packet: 770 bytes, 61.6 us.
    let mut host = shared(|_| {}, Rate::from_gbps(1), &[2, 1, 2, 1]);
    host.machine.control.0 = Rate(100_000_000);
    host.flows[1].size_bytes = MSS / 2;
    host.flows[3].dst = base::HostId(2);
    assert_eq!(starts(&host.open(0)), [(0, 0)]);
    assert_eq!(starts(&host.open(1)), []);
    assert_eq!(starts(&host.open(2)), []);
    // Another peer has a queue pair of its own.
    assert_eq!(starts(&host.open(3)), [(3, 0)]);
    let sent = host.advance(at(1000));
    let found: Vec<_> = sent.iter().map(|p| (p.flow.0, p.offset / MSS, p.sent_at.0 / 100_000)).collect();
    assert_eq!(found, [(0, 1, 1200), (1, 0, 2400), (2, 0, 3016), (2, 1, 4216)]);
    // Their bytes have one sequence.
    let positions: Vec<u64> = sent.iter().map(|p| p.words[POSITION] >> 1).collect();
    assert_eq!(positions, [MSS, 2 * MSS, 2 * MSS + 730, 3 * MSS + 730]);
}

#[test]
fn messages_of_a_queue_pair_share_a_bound_and_complete_one_by_one() {
    // A window of 16 160 bytes on the wire: up to eleven packets.
    let mut host = shared(|o| o.window = Bound::Bdp, Rate::from_gbps(1000), &[8, 8, 8]);
    let mut sent = host.open(0);
    (1..3).for_each(|flow| sent.extend(host.open(flow)));
    sent.extend(host.advance(at(1)));
    assert_eq!(starts(&sent), [(0..8).map(|n| (0, n)).collect::<Vec<_>>(), (0..3).map(|n| (1, n)).collect()].concat());
    let in_flight =
        |host: &Script<Roce<Steady>>| [0, 1, 2].map(|f| host.machine.sample(FlowId(f)).map(|s| s.in_flight_bytes / MSS));
    assert_eq!(in_flight(&host), [Some(8), Some(3), Some(0)]);
    // The ACK of the first message, while the second one is in flight.
    let mut more = host.packet(answer(Kind::ACK, 8, 0));
    more.extend(host.advance(at(2)));
    assert_eq!(starts(&more), [(1, 3), (1, 4), (1, 5), (1, 6), (1, 7), (2, 0), (2, 1), (2, 2)]);
    assert_eq!(in_flight(&host), [None, Some(8), Some(3)]);
    let closed = |host: &Script<Roce<Steady>>| [0, 1, 2].map(|flow| host.table.get(FlowId(flow)).closed);
    assert_eq!(closed(&host), [true, false, false]);
    // Timers go on under the second message.
    assert!(host.is_armed(1, RTO) && !host.is_armed(0, RTO) && !host.is_armed(2, RTO));
    // One ACK completes several messages, and one state saw all ACKs.
    host.advance(at(3));
    host.packet(Packet { flow: FlowId(2), ..answer(Kind::ACK, 20, 0) });
    assert_eq!(closed(&host), [true, true, false]);
    host.advance(at(4));
    host.packet(Packet { flow: FlowId(2), ..answer(Kind::ACK, 24, 0) });
    assert_eq!(closed(&host), [true; 3]);
    assert_eq!(
        host.machine.senders.get(FlowId(0)).unwrap().control.iter().map(|ack| ack.next / MSS).collect::<Vec<_>>(),
        [8, 20, 24]
    );
    assert!([RTO, NEXT, CONTROL].iter().all(|kind| (0..3).all(|flow| !host.is_armed(flow, *kind))));
}

#[test]
fn go_back_n_resends_the_next_message_too() {
    let mut host = shared(|_| {}, Rate::from_gbps(1000), &[3, 3]);
    host.open(0);
    host.open(1);
    assert_eq!(host.advance(at(1)).len(), 5);
    // Packet 2 of the first message is lost. The receiver asks for it when the second message comes.
    let mut sent = host.packet(Packet { flow: FlowId(1), ..answer(NACK, 2, 0) });
    sent.extend(host.advance(at(2)));
    assert_eq!(starts(&sent), [(0, 2), (1, 0), (1, 1), (1, 2)]);
    assert!(sent.iter().all(|packet| packet.has(Packet::RETX)));
    let counts = [0, 1].map(|flow| host.table.get(FlowId(flow)).stats.fast_retransmits);
    assert_eq!(counts, [1, 0]);
    // The timeout is that of the first message too, until it is acknowledged.
    host.packet(answer(Kind::ACK, 3, 0));
    let sent = host.advance(at(67_200));
    assert_eq!(starts(&sent), [(1, 0), (1, 1), (1, 2)]);
    let counts = [0, 1].map(|flow| host.table.get(FlowId(flow)).stats.timeouts);
    assert_eq!(counts, [0, 1]);
}

#[test]
fn a_receiver_takes_the_messages_of_a_queue_pair_in_order() {
    for recovery in [Recovery::GoBackN, Recovery::Irn] {
        let mut host = shared(|o| o.recovery = recovery, Rate::from_gbps(1), &[3, 2]).at_host(1);
        let finished = |host: &Script<Roce<Steady>>| [0, 1].map(|flow| host.table.get(FlowId(flow)).finish != Time::MAX);
        let mut send = |flow, start, segment| {
            let sent = host.packet(shared_data(flow, start, segment));
            let answers: Vec<_> = sent.iter().map(|p| (p.flow.0, p.kind, p.offset / MSS, p.words[ECHO] >> ECHO_BITS)).collect();
            (answers, finished(&host))
        };
        assert_eq!(send(0, 0, 0), (vec![(0, Kind::ACK, 1, 0)], [false; 2]));
        assert_eq!(send(0, 0, 2), (vec![(0, NACK, 1, 1)], [false; 2]));
        if recovery == Recovery::Irn {
            // The packets of the second message wait. Their NACKs count from its first packet.
            assert_eq!(send(1, 3, 0), (vec![(1, NACK, 1, 0)], [false; 2]));
            assert_eq!(send(1, 3, 1), (vec![(1, NACK, 1, 1)], [false; 2]));
            assert_eq!(send(0, 0, 1), (vec![(0, Kind::ACK, 5, 0)], [true; 2]));
        } else {
            assert_eq!(send(1, 3, 0), (vec![], [false; 2]));
            assert_eq!(send(0, 0, 1), (vec![(0, Kind::ACK, 2, 0)], [false; 2]));
            assert_eq!(send(0, 0, 2), (vec![(0, Kind::ACK, 3, 0)], [true, false]));
            assert_eq!(send(1, 3, 0), (vec![(1, Kind::ACK, 4, 0)], [true, false]));
            assert_eq!(send(1, 3, 1), (vec![(1, Kind::ACK, 5, 0)], [true; 2]));
        }
        // A late copy is answered with the position of the queue pair.
        assert_eq!(send(0, 0, 1).0, [(0, Kind::ACK, 5, 0)]);
        // Packets that wait or are dropped arrived before earlier ones of the queue pair. Those that
        // waited are not late.
        let disorder = [0, 1].map(|flow| host.table.get(FlowId(flow)).disorder());
        assert_eq!(disorder.map(|flow| flow.out_of_order), [1, if recovery == Recovery::Irn { 2 } else { 1 }]);
        assert_eq!(disorder.map(|flow| (flow.reordered, flow.gaps)), [(1, 1), (0, 0)]);
    }
}

#[test]
fn irn_resends_only_what_is_missing_of_each_message() {
    let mut host = shared(|o| o.recovery = Recovery::Irn, Rate::from_gbps(1000), &[2, 4]);
    host.flows[0].size_bytes = MSS + 1;
    host.open(0);
    host.open(1);
    host.advance(at(1));
    // Packets 1 of the first message and 0 and 2 of the second one are lost.
    let nack = |beyond| {
        let next = Packet { flow: FlowId(1), ..answer(NACK, 0, beyond) };
        Packet { offset: MSS, ..next }
    };
    let mut sent = host.packet(nack(1));
    sent.extend(host.advance(at(2)));
    assert_eq!(starts(&sent), [(0, 1), (1, 0)]);
    let mut sent = host.packet(nack(3));
    sent.extend(host.advance(at(3)));
    assert_eq!(starts(&sent), [(1, 2)]);
}

#[test]
fn messages_with_several_ports_may_have_several_queue_pairs() {
    let open = |queue_pairs| {
        let mut host = shared(|o| o.queue_pairs = queue_pairs, Rate::from_gbps(1), &[2, 2, 2]);
        (host.flows[0].src_port, host.flows[1].src_port, host.flows[2].src_port) = (7, 8, 7);
        (0..3).map(|flow| starts(&host.open(flow)).len()).collect::<Vec<_>>()
    };
    assert_eq!(open(QueuePairs::Message), [1, 1, 1]);
    assert_eq!(open(QueuePairs::Port), [1, 1, 0]);
    assert_eq!(open(QueuePairs::Peer), [1, 0, 0]);
}

#[test]
fn a_queue_pair_keeps_its_state_while_it_is_idle() {
    let mut host = shared(|_| {}, Rate::from_gbps(1), &[1, 1]);
    host.open(0);
    host.packet(answer(Kind::ACK, 1, 0));
    // A late notification still reaches the queue pair.
    host.now = at(500);
    host.packet(Packet::new(FlowId(0), CNP, 40));
    assert_eq!(starts(&host.open(1)), [(1, 0)]);
    let seen = &host.machine.senders.get(FlowId(0)).unwrap().control;
    assert_eq!(seen.iter().map(|ack| ack.next).collect::<Vec<_>>(), [MSS, u64::MAX]);
}

#[test]
fn a_message_that_is_given_up_leaves_its_queue_pair() {
    let mut host = shared(|_| {}, Rate::from_gbps(1000), &[3, 2, 1]);
    (0..3).for_each(|flow| drop(host.open(flow)));
    assert_eq!(starts(&host.advance(at(1))).len(), 5);
    // Positions of the first message end at 3, those used so far at 6.
    let mut sent = host.give_up(0);
    sent.extend(host.advance(at(2)));
    assert!(host.table.get(FlowId(0)).terminated);
    let positions: Vec<_> = sent.iter().map(|p| (p.words[POSITION] >> 1) / MSS).collect();
    assert_eq!((starts(&sent), positions), (vec![(1, 0), (1, 1), (2, 0)], vec![6, 7, 8]));
    // A late answer of the old sequence acknowledges nothing.
    host.packet(answer(Kind::ACK, 5, 0));
    assert!(!host.table.get(FlowId(1)).closed);
    // The receiver skips what will not come.
    let mut receiver = shared(|_| {}, Rate::from_gbps(1), &[3, 2, 1]).at_host(1);
    let next = |packets: Vec<Packet>| packets.iter().map(|p| (p.kind, p.offset / MSS)).collect::<Vec<_>>();
    assert_eq!(next(receiver.packet(shared_data(0, 0, 0))), [(Kind::ACK, 1)]);
    assert_eq!(next(receiver.packet(shared_data(1, 6, 1))), [(NACK, 1)]);
    let first = Packet { words: sent[0].words, ..shared_data(1, 6, 0) };
    assert_eq!(next(receiver.packet(first)), [(Kind::ACK, 7)]);
}

#[test]
fn a_waiting_message_may_be_given_up() {
    let mut host = shared(|_| {}, Rate::from_gbps(1), &[2, 1, 1]);
    (0..3).for_each(|flow| drop(host.open(flow)));
    host.give_up(1);
    assert!(host.table.get(FlowId(1)).terminated);
    // Nothing is retransmitted.
    let sent = host.advance(at(100));
    assert_eq!(starts(&sent), [(0, 1), (2, 0)]);
    assert!(sent.iter().all(|packet| !packet.has(Packet::RETX)));
    host.give_up(0);
    host.give_up(2);
    assert_eq!(host.advance(at(1_000_000)), []);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(patterns(60)))]

    /// Every byte arrives, whatever is lost, late or duplicated, and whichever message is given up.
    #[test]
    fn every_byte_arrives(
        fates in fates(150, &[(1, Fate::Mark)]), irn: bool, peer: bool, ack_every in 1u32..4, give_up in (0u64..400, 0u32..16),
    ) {
        let config = config(|o| {
            o.ack_every = ack_every;
            if peer {
                o.queue_pairs = QueuePairs::Peer;
            }
            if irn {
                o.recovery = Recovery::Irn;
            }
        });
        let sizes = [1, 60 * MSS + 1, 30 * MSS, 10 * MSS, 7, 3 * MSS + 9, 20 * MSS - 1, 1];
        let mut pipe = pipe(config, &sizes);
        pipe.gives_up = Some((give_up.0, FlowId(give_up.1))).filter(|_| (give_up.1 as usize) < sizes.len());
        pipe.run_fates(fates);
    }
}

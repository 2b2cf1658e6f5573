use super::options::{Bound, RoceConfig};
use super::*;
use crate::kit::int::LineRate;
use crate::kit::pipe::{Fate, Pipe, both_ways, fates, patterns};
use crate::kit::script::{self, Script};
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
    assert_eq!((irn.window(Rate(1)), config(|o| o.window = Bound::Rate).window(Rate(500_000_000))), (16_160, 8_080));
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
    // A window of 16 160 bytes: a packet leaves while fewer are in flight, that is up to twelve.
    let mut host = host(config(|o| o.window = Bound::Bdp), Rate::from_gbps(1000), &[100 * MSS]);
    host.open(0);
    assert_eq!(host.advance(at(1)).len() + 1, 12);
    assert_eq!(segments(&host.packet(answer(Kind::ACK, 2, 0))), [(12, false)]);
    assert_eq!(segments(&host.advance(at(2))), [(13, false)]);
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
    // Twelve packets are in flight; 0 and 3 are lost. The first NACK is for packet 1.
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
    for beyond in 5..12 {
        assert_eq!(nack(beyond), []);
    }
    // Packet 0 arrives; the window opens, and nothing is sent twice.
    let mut sent = host.packet(answer(Kind::ACK, 3, 0));
    sent.extend(host.advance(at(12)));
    assert_eq!(segments(&sent), [(12, false), (13, false), (14, false)]);
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

#[test]
fn messages_to_one_peer_share_a_queue_pair() {
    let config = config(|o| o.queue_pairs = QueuePairs::Peer);
    let mut host = host(config, Rate::from_gbps(1000), &[MSS, 2 * MSS, MSS]);
    host.flows[2].dst = base::HostId(2);
    let starts = |packets: &[Packet]| packets.iter().map(|p| (p.flow.0, p.offset / MSS)).collect::<Vec<_>>();
    assert_eq!(starts(&host.open(0)), [(0, 0)]);
    assert_eq!(starts(&host.open(1)), []);
    assert_eq!(starts(&host.open(2)), [(2, 0)]);
    // The second message goes on with the state of the first.
    let next = host.packet(Packet { flow: FlowId(0), ..answer(NACK, 0, 1) });
    assert_eq!(starts(&next), []);
    assert_eq!(starts(&host.packet(answer(Kind::ACK, 1, 0))), [(1, 0)]);
    assert_eq!(host.machine.senders.get(FlowId(1)).unwrap().control.len(), 1);
    // A message that is given up hands the queue pair on too, and a waiting one is forgotten.
    host.give_up(1);
    assert!(host.machine.pairs.values().all(|pair| pair.waiting.is_empty()));
    assert_eq!(host.machine.pairs[&base::HostId(1)].idle.as_ref().map(Vec::len), Some(1));
}

#[test]
fn a_waiting_message_may_be_given_up() {
    let config = config(|o| o.queue_pairs = QueuePairs::Peer);
    let mut host = host(config, Rate::from_gbps(1), &[9 * MSS, MSS, MSS]);
    (0..3).for_each(|flow| drop(host.open(flow)));
    host.give_up(1);
    assert!(host.table.get(FlowId(1)).terminated);
    host.give_up(0);
    assert_eq!(host.sent().iter().map(|p| p.flow.0).collect::<Vec<_>>(), []);
    assert!(host.machine.senders.get(FlowId(2)).is_some());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(patterns(60)))]

    /// Every byte arrives, whatever is lost, late or duplicated.
    #[test]
    fn every_byte_arrives(fates in fates(150, &[(1, Fate::Mark)]), irn: bool, peer: bool, ack_every in 1u32..4) {
        let config = config(|o| {
            o.ack_every = ack_every;
            if peer {
                o.queue_pairs = QueuePairs::Peer;
            }
            if irn {
                o.recovery = Recovery::Irn;
            }
        });
        pipe(config, &[1, 60 * MSS + 1, 30 * MSS, 10 * MSS]).run_fates(fates);
    }
}

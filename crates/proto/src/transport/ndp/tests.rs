//! Packets and times in, packets out.

use super::*;
use crate::kit::pipe::{Fate, Pipe, both_ways, fates, patterns};
use crate::kit::script::{self, Script};
use base::Time;
use base::params::Params as _;
use proptest::prelude::*;

const MSS: u64 = 1460;
/// 129.28 us at 1 Gb/s are 16 160 bytes: 11 packets, plus two.
const WINDOW: u64 = 13;
/// 1500 bytes at 0.99 Gb/s.
const GAP: Dur = Dur(12_121_213);

fn host_with(params: &Params, sizes: &[u64]) -> Script<Ndp> {
    let flows = sizes.iter().enumerate().map(|(i, size)| script::flow(i as u32, *size)).collect();
    let mut host = Script::new(Ndp::new(params, &script::env()), flows);
    host.table.keep_counters(META.counters.len());
    host
}
fn host(sizes: &[u64]) -> Script<Ndp> {
    host_with(&Params::defaults(), sizes)
}
fn us(us: u64) -> Time {
    Time::ZERO + Dur::from_us(us)
}
fn answer(kind: Kind, flow: u32, number: u64, next: u64, pulls: u32) -> Packet {
    let mut packet = Packet { offset: number * MSS, ..Packet::new(FlowId(flow), kind, 64) };
    packet.set(Answer { next: next * MSS, pulls });
    packet
}
/// For flow 0.
fn ack(number: u64, next: u64, pulls: u32) -> Packet {
    answer(Kind::ACK, 0, number, next, pulls)
}
fn nack(number: u64, pulls: u32) -> Packet {
    answer(NACK, 0, number, 0, pulls)
}
fn pull(pulls: u32) -> Packet {
    answer(PULL, 0, 0, 0, pulls)
}
fn returned(number: u64) -> Packet {
    let mut packet = data(0, number);
    packet.turn_back();
    packet
}
fn data(flow: u32, number: u64) -> Packet {
    Packet::data(FlowId(flow), number * MSS, MSS as u16, 40)
}
fn header(flow: u32, number: u64) -> Packet {
    let mut packet = data(flow, number);
    packet.trim(64);
    packet
}
/// Segment numbers.
fn segments(packets: &[Packet]) -> Vec<u64> {
    assert!(packets.iter().all(|packet| packet.kind == Kind::DATA && packet.offset % MSS == 0 && packet.wire_len <= 1500));
    packets.iter().map(|packet| packet.offset / MSS).collect()
}
/// The packets of a receiver: kind, flow, answered packet, bytes that have arrived, pull number.
fn seen(packets: &[Packet]) -> Vec<(Kind, u32, u64, u64, u32)> {
    assert!(packets.iter().all(|packet| packet.wire_len == 64 && packet.payload == 0));
    let one = |packet: &Packet| {
        let answer: Answer = packet.get();
        (packet.kind, packet.flow.0, packet.offset / MSS, answer.next / MSS, answer.pulls)
    };
    packets.iter().map(one).collect()
}

/// 1500 bytes of payload and headers of 64 bytes at 10 Gb/s: 1.264 us at 0.99 of the rate, 1.2512
/// us at the full rate. Packets of 1500 bytes on the wire at 0.99 of the rate: 1.2121 us.
#[test]
fn golden_gap_between_pulls() {
    let gap = |mtu_bytes, pull_rate| {
        let env = Env { nic_rate: Rate::from_gbps(10), host_rate: Rate::from_gbps(10), mtu_bytes, ..script::env() };
        Config::gap(&Params { pull_rate, ..Params::defaults() }, &env)
    };
    assert_eq!([gap(1564, Fraction(990_000_000)), gap(1564, Fraction::ONE)], [Dur(1_263_839), Dur(1_251_200)]);
    assert_eq!(gap(1500, Fraction(990_000_000)), Dur(1_212_122));
}

#[test]
fn the_init_window_is_sent_without_pulls_and_then_one_packet_per_pull() {
    let mut h = host(&[100 * MSS]);
    assert_eq!(segments(&h.open(0)), (0..WINDOW).collect::<Vec<_>>());
    assert_eq!(h.table.counts(FlowId(0))[FIRST_WINDOW], WINDOW * MSS);
    // An ACK without a pull sends nothing; a pull in an ACK and a PULL do.
    assert_eq!(h.packet(ack(0, 1, 0)), []);
    assert_eq!(segments(&h.packet(ack(1, 2, 1))), [13]);
    assert_eq!(segments(&h.packet(pull(2))), [14]);
    // Pulls 3 and 4 were lost or are late.
    assert_eq!(segments(&h.packet(pull(5))), [15, 16, 17]);
    assert_eq!(h.packet(pull(4)), []);
    assert_eq!(h.table.counts(FlowId(0))[FIRST_WINDOW], WINDOW * MSS);
    let short = host(&[2 * MSS + 1]).open(0);
    assert_eq!(
        short.iter().map(|packet| (packet.offset, packet.payload)).collect::<Vec<_>>(),
        [(0, 1460), (1460, 1460), (2920, 1)]
    );
    let two = &Params { init_window: Auto::Set(2), ..Params::defaults() };
    assert_eq!(segments(&host_with(two, &[100 * MSS]).open(0)), [0, 1]);
}

#[test]
fn packets_take_all_paths_in_each_pass() {
    let mut h = host(&[100 * MSS]);
    h.table.set_paths(FlowId(0), false, 6);
    let mut tags: Vec<u16> = h.open(0).iter().map(|packet| packet.path_tag).collect();
    for pass in [0..6, 6..12] {
        tags[pass.clone()].sort_unstable();
        assert_eq!(tags[pass], [1, 2, 3, 4, 5, 6]);
    }
    // The receiver's packets also take all paths, in the reverse direction.
    let mut r = host(&[100 * MSS]).at_host(1);
    r.table.set_paths(FlowId(0), true, 3);
    let mut back: Vec<u16> = (0..3).flat_map(|n| r.packet(data(0, n))).map(|packet| packet.path_tag).collect();
    back.sort_unstable();
    assert_eq!(back, [1, 2, 3]);
}

#[test]
fn lost_payloads_are_retransmitted_before_new_data_the_lowest_first() {
    let mut h = host(&[100 * MSS]);
    h.open(0);
    assert_eq!([h.packet(nack(7, 0)), h.packet(nack(3, 0)), h.packet(nack(7, 0))], [vec![], vec![], vec![]]);
    let again = h.packet(pull(3));
    assert_eq!(segments(&again), [3, 7, 13]);
    assert_eq!(again.iter().map(|packet| packet.has(Packet::RETX)).collect::<Vec<_>>(), [true, true, false]);
    assert_eq!(h.table.counts(FlowId(0))[NACKS], 3);
    // A packet that has arrived in the meantime is not retransmitted.
    h.packet(nack(5, 3));
    h.packet(ack(5, 0, 3));
    assert_eq!(segments(&h.packet(pull(4))), [14]);
    h.packet(nack(6, 4));
    h.packet(ack(9, 8, 4));
    assert_eq!(segments(&h.packet(pull(5))), [15]);
}

#[test]
fn a_pull_that_overtakes_its_nack_counts_for_it() {
    let mut h = host(&[5 * MSS]);
    assert_eq!(h.open(0).len(), 5);
    assert_eq!(h.packet(pull(1)), []);
    assert_eq!(segments(&h.packet(nack(2, 1))), [2]);
    assert_eq!(h.packet(nack(4, 1)), []);
}

/// ndp.cpp, processRTS.
#[test]
fn a_returned_packet_waits_unless_nothing_else_would_pull_it_or_only_its_path_is_bad() {
    // The only packet of the flow.
    let mut h = host(&[MSS]);
    h.open(0);
    let again = h.packet(returned(0));
    assert_eq!((segments(&again), again[0].has(Packet::RETX)), (vec![0], true));
    assert_eq!(h.table.counts(FlowId(0))[super::RETURNED], 1);
    // Three packets: the second return leaves no answer to expect, so that its packet is sent at
    // once, as is the last.
    let mut h = host(&[3 * MSS]);
    h.open(0);
    assert_eq!(h.packet(returned(2)), []);
    assert_eq!(segments(&h.packet(returned(0))), [0]);
    assert_eq!(segments(&h.packet(returned(1))), [1]);
    // A pull is expected, and the packet waits for it.
    let mut h = host(&[2 * MSS]);
    h.open(0);
    assert_eq!([h.packet(nack(0, 0)), h.packet(returned(1))], [vec![], vec![]]);
    assert_eq!(segments(&h.packet(pull(2))), [0, 1]);
    // Two of eight answers are ACKs.
    let mut h = host(&[100 * MSS]);
    h.open(0);
    (0..5).for_each(|n| assert_eq!(h.packet(nack(n, 0)), []));
    (5..7).for_each(|n| assert_eq!(h.packet(ack(n, 0, 0)), []));
    assert_eq!(segments(&h.packet(returned(7))), [0]);
    // Two of nine answers.
    assert_eq!(h.packet(returned(8)), []);
    // Only twelve answers count.
    let mut h = host(&[100 * MSS]);
    h.open(0);
    (0..4).for_each(|n| drop(h.packet(ack(n, 0, 0))));
    (4..12).for_each(|n| drop(h.packet(nack(n, 0))));
    assert_eq!(segments(&h.packet(returned(12))), [4], "three of twelve");
    assert_eq!(h.packet(returned(12)), [], "two of twelve");
}

#[test]
fn packets_without_an_answer_are_retransmitted_at_once_after_the_timeout() {
    let mut h = host(&[20 * MSS]);
    h.open(0);
    h.packet(ack(0, 1, 0));
    h.packet(nack(1, 0));
    // Eleven packets are in flight, and packet 1 waits for a pull.
    assert_eq!(h.advance(Time(999_999_999)), []);
    let again = h.advance(us(1_000));
    assert_eq!(segments(&again), (1..WINDOW - 1).collect::<Vec<_>>(), "as many as were lost, the lowest first");
    assert_eq!(h.table.get(FlowId(0)).stats.timeouts, 1);
    // The timeout doubles.
    assert_eq!(h.advance(Time(2_999_999_999)), []);
    assert_eq!(h.advance(us(3_000)).len(), 11);
    // An ACK resets the timeout.
    h.now = us(3_500);
    h.packet(ack(1, 2, 0));
    assert_eq!((h.advance(Time(3_999_999_999)), h.advance(us(4_000)).len()), (vec![], 10));
}

/// Late packets that counted as lost are not retransmitted, and no others are sent in their place.
#[test]
fn late_packets_permit_no_others() {
    let mut h = host(&[100 * MSS]);
    h.open(0);
    h.nic_busy = true;
    h.advance(us(1_000));
    (0..WINDOW).for_each(|n| drop(h.packet(ack(n, n + 1, 0))));
    h.nic_busy = false;
    assert_eq!(h.sent(), []);
    assert_eq!(segments(&h.packet(pull(1))), [WINDOW]);
}

#[test]
fn a_flow_that_no_pull_reaches_sends_one_packet_per_timeout() {
    let mut h = host_with(&Params { init_window: Auto::Set(1), ..Params::defaults() }, &[9 * MSS]);
    h.open(0);
    h.now = us(100);
    assert_eq!(h.packet(nack(0, 0)), []);
    assert_eq!(h.advance(Time(1_099_999_999)), []);
    assert_eq!(segments(&h.advance(us(1_100))), [0]);
    h.packet(ack(0, 1, 0));
    let one = h.advance(us(2_200));
    assert_eq!((segments(&one), one[0].has(Packet::RETX)), (vec![1], false));
    assert_eq!(h.table.get(FlowId(0)).stats.timeouts, 2);
}

#[test]
fn the_last_ack_closes_and_later_answers_are_ignored() {
    let mut h = host(&[3 * MSS]);
    h.open(0);
    h.packet(ack(2, 0, 0));
    // The ACKs of packets 0 and 1 are lost, and another ACK says that all bytes have arrived.
    h.packet(ack(1, 3, 0));
    assert!(h.table.get(FlowId(0)).closed && h.machine.senders.is_empty());
    assert_eq!([h.packet(ack(1, 3, 0)), h.packet(nack(1, 4)), h.packet(returned(1)), h.packet(pull(9))], [(); 4].map(|()| vec![]));
    assert_eq!(h.advance(us(1_000_000)), []);
}

#[test]
fn a_busy_nic_holds_packets_back_and_new_ones_of_the_window_go_first() {
    let mut h = host(&[20 * MSS, 20 * MSS]);
    h.nic_busy = true;
    h.open(0);
    h.open(1);
    assert!(!h.is_armed(0, RTO));
    h.nic_busy = false;
    let sent = h.with(|machine, cx| (0..4).map(|_| machine.poll_transmit(cx).expect("window")).collect::<Vec<_>>());
    assert_eq!(
        sent.iter().map(|packet| (packet.flow.0, packet.offset / MSS)).collect::<Vec<_>>(),
        [(0, 0), (1, 0), (0, 1), (1, 1)]
    );
    assert!(h.is_armed(0, RTO));
    let rest = h.packet(nack(0, 1));
    let first: Vec<u64> = rest.iter().filter(|packet| packet.flow == FlowId(0)).map(|packet| packet.offset / MSS).collect();
    assert_eq!(first, (2..WINDOW).chain([0]).collect::<Vec<_>>());
}

#[test]
fn each_packet_is_answered_and_an_idle_host_pulls_in_the_answer() {
    let mut r = host(&[100 * MSS]).at_host(1);
    assert_eq!(seen(&r.packet(data(0, 0))), [(Kind::ACK, 0, 0, 1, 1)]);
    // The spacing has not passed: a PULL is sent later.
    assert_eq!(seen(&r.packet(header(0, 1))), [(NACK, 0, 1, 1, 1)]);
    assert_eq!(seen(&r.packet(data(0, 2))), [(Kind::ACK, 0, 2, 1, 1)]);
    assert_eq!(r.advance(Time(GAP.0 - 1)), []);
    let pulls = r.advance(us(1_000));
    assert_eq!(seen(&pulls), [(PULL, 0, 0, 1, 2), (PULL, 0, 0, 1, 3)]);
    assert_eq!(pulls.iter().map(|packet| packet.sent_at).collect::<Vec<_>>(), [Time(GAP.0), Time(2 * GAP.0)]);
    assert_eq!(seen(&r.packet(header(0, 3))), [(NACK, 0, 3, 1, 4)]);
    // The header of a packet that has arrived by another transmission.
    assert_eq!(seen(&r.packet(header(0, 0))), [(Kind::ACK, 0, 0, 1, 4)]);
    assert_eq!(r.table.counts(FlowId(0))[..2], [3, 4]);
}

#[test]
fn flows_are_pulled_in_turn() {
    let mut r = host(&[100 * MSS, 100 * MSS, 100 * MSS]).at_host(1);
    for (flow, number) in [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (2, 0)] {
        r.packet(data(flow, number));
    }
    let turns: Vec<(u32, u32)> = seen(&r.advance(us(1_000))).iter().map(|pull| (pull.1, pull.4)).collect();
    assert_eq!(turns, [(0, 2), (1, 1), (2, 1), (0, 3), (1, 2), (0, 4)]);
}

#[test]
fn a_complete_flow_has_no_pulls_left_and_late_packets_are_acknowledged() {
    let mut r = host(&[4 * MSS, 4 * MSS]).at_host(1);
    r.packet(data(0, 0));
    (1..3).for_each(|n| drop(r.packet(data(0, n))));
    r.packet(data(1, 0));
    assert_eq!(seen(&r.packet(data(0, 3))), [(Kind::ACK, 0, 3, 4, 0)]);
    assert_eq!(seen(&r.advance(us(1_000))), [(PULL, 1, 0, 1, 1)]);
    assert_eq!(seen(&r.packet(data(0, 2))), [(Kind::ACK, 0, 2, 4, 0)]);
    assert_eq!(seen(&r.packet(header(0, 1))), [(Kind::ACK, 0, 1, 4, 0)]);
    assert_eq!(r.advance(us(2_000)), []);
    assert_eq!((r.machine.receivers.len(), r.machine.waiting), (1, 0));
}

#[test]
fn parameters_that_do_not_fit_the_network_are_problems() {
    let wrong = Params { control: Bytes(1501), min_rto: Auto::Set(Dur::from_us(129)), ..Params::defaults() };
    assert_eq!(check(&wrong, &script::env()).iter().map(|problem| problem.key).collect::<Vec<_>>(), ["control", "min_rto"]);
    let least = Params { control: Bytes(1500), min_rto: Auto::Set(Dur::from_us(130)), ..Params::defaults() };
    assert_eq!([check(&least, &script::env()), check(&Params::defaults(), &script::env())], [vec![], vec![]]);
    // A longer path has a longer default timeout.
    let far = Env { max_rtt: Dur::from_ms(2), ..script::env() };
    assert_eq!(Config::new(&Params::defaults(), &far).rtt.min_rto, Dur::from_ms(6));
}

fn pipe(params: &Params, sizes: &[u64]) -> Pipe<Ndp> {
    let flows = both_ways(sizes);
    let host = || {
        let mut host = Script::new(Ndp::new(params, &script::env()), flows.clone());
        for flow in &flows {
            host.table.set_paths(flow.id, false, 4);
            host.table.set_paths(flow.id, true, 4);
        }
        host.table.keep_counters(META.counters.len());
        host
    };
    Pipe::new(host(), host(), Dur::from_us(60))
}

/// Without losses each byte is sent once, and pulls are a gap apart.
#[test]
fn without_losses_each_byte_is_sent_once_and_pulls_are_spaced() {
    let mut pipe = pipe(&Params::defaults(), &[300 * MSS + 7]);
    pipe.run(|_| Fate::Pass);
    let count = |kind: Kind| pipe.log.iter().filter(|packet| packet.kind == kind).count();
    assert_eq!((count(Kind::DATA), count(Kind::ACK), count(NACK)), (301, 301, 0));
    let (sent, pulls) = pulls_over_time(&pipe.log);
    assert_eq!(sent, 301);
    assert!(pulls.windows(2).all(|two| two[1] - two[0] >= GAP), "pulls too close");
    assert_eq!(pulls.len() as u64, pipe.hosts[1].table.counts(FlowId(0))[PULLS]);
}

/// Returns the number of data packets of flow 0, and the departures of its pulls.
fn pulls_over_time(log: &[Packet]) -> (u64, Vec<Time>) {
    let (mut pulls, mut times) = (0, Vec::new());
    for packet in log.iter().filter(|packet| packet.flow == FlowId(0) && packet.wire_len == 64) {
        let answer: Answer = packet.get();
        times.extend((pulls..answer.pulls).map(|_| packet.sent_at));
        pulls = pulls.max(answer.pulls);
    }
    (log.iter().filter(|packet| packet.kind == Kind::DATA && packet.flow == FlowId(0)).count() as u64, times)
}

fn variants() -> [Params; 3] {
    let plain = Params::defaults();
    [
        plain.clone(),
        Params { init_window: Auto::Set(1), penalty: true, ..plain.clone() },
        Params { init_window: Auto::Set(200), pull_rate: Fraction(100_000_000), ..plain },
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(patterns(200)))]
    /// All bytes arrive once, senders close and timers end, whatever happens to the first 400
    /// packets. Two pulls of a host are never closer than a gap, and no flow sends more than its
    /// window, a packet per pull, and the packets of timeouts and returns.
    #[test]
    fn survives_loss_trimming_return_reordering_and_duplication(
        variant in 0usize..3,
        sizes in prop::collection::vec(1u64..60_000, 1..4),
        fates in fates(400, &[(2, Fate::Trim), (1, Fate::Return)]),
    ) {
        let params = &variants()[variant];
        let mut pipe = pipe(params, &sizes);
        let (mut fates, mut back) = (fates.into_iter(), 0);
        pipe.run(|packet| {
            let fate = fates.next().unwrap_or(Fate::Pass);
            back += u64::from(fate == Fate::Return && packet.kind == Kind::DATA && packet.flow == FlowId(0));
            fate
        });
        let (sent, times) = pulls_over_time(&pipe.log);
        let gap = Config::gap(params, &script::env());
        prop_assert!(times.windows(2).all(|two| two[1] - two[0] >= gap), "pulls too close");
        let first = pipe.hosts[0].table.counts(FlowId(0))[FIRST_WINDOW].div_ceil(MSS);
        let timeouts = u64::from(pipe.hosts[0].table.get(FlowId(0)).stats.timeouts);
        // Some packets are returned after the end.
        prop_assert!(pipe.hosts[0].table.counts(FlowId(0))[super::RETURNED] <= back);
        if timeouts == 0 {
            prop_assert!(sent <= first + times.len() as u64 + back, "{sent} packets, {first} in the window, {} pulls, {back} returned", times.len());
        }
        prop_assert!(pipe.hosts.iter().all(|host| host.machine.waiting == 0 && host.machine.receivers.is_empty()));
    }
}

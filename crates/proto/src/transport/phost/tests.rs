use super::*;
use crate::flow::Flow;
use crate::kit::pipe::{Fate, Pipe, both_ways, fates, patterns};
use crate::kit::script::{self, Script};
use base::given::{Given, GivenPart};
use base::params::Params as _;
use proptest::prelude::*;

const MSS: u64 = 1460;
/// The time of a full packet at 10 Gb/s, in nanoseconds.
const T: u64 = 1200;

/// The network of the authors' simulation at 10 Gb/s: 200 ns per link, 40 Gb/s between switches.
fn env() -> Env<'static> {
    Env { nic_rate: Rate::from_gbps(10), host_rate: Rate::from_gbps(10), max_rtt: Dur::from_ns(4_680), ..script::env() }
}

/// The authors' values: a `downgrade` of 25 T and a `resend` of 9 T. Free tokens use up no turns.
fn literal() -> Params {
    let time = |ns| Auto::Set(Dur::from_ns(ns));
    Params { downgrade: time(25 * T), resend: time(9 * T), hold: false, ..Params::defaults() }
}

fn with(params: &Params, packets: &[u64]) -> Script<Phost> {
    let flows = packets.iter().zip(0..).map(|(packets, id)| script::flow(id, packets * MSS)).collect();
    let mut host = Script::new(Phost::new(params, &env()), flows);
    host.table.keep_counters(META.counters.len());
    host
}

fn host(packets: &[u64]) -> Script<Phost> {
    with(&literal(), packets)
}

/// A receiver.
fn sink(packets: &[u64]) -> Script<Phost> {
    host(packets).at_host(1)
}

fn at(ns: u64) -> Time {
    Time::ZERO + Dur::from_ns(ns)
}

fn rts(flow: u32, free: u32) -> Packet {
    let mut packet = Packet::new(FlowId(flow), RTS, 40);
    packet.set(Answer { number: 0, free });
    packet
}

fn data(flow: u32, segment: u64, number: u32, free: u32) -> Packet {
    let mut packet = Packet::data(FlowId(flow), segment * MSS, MSS as u16, 40);
    packet.set(Answer { number, free });
    packet
}

fn token(flow: u32, segment: u64, number: u32, missing: u32) -> Packet {
    let mut packet = Packet { offset: segment * MSS, ..Packet::new(FlowId(flow), TOKEN, 40) };
    packet.set(Terms { number, missing, lifetime: Dur::from_ns(3 * T / 2) });
    packet
}

/// Flow, number and segment of the tokens among packets.
fn tokens(packets: &[Packet]) -> Vec<(u32, u32, u64)> {
    let tokens = packets.iter().filter(|packet| packet.kind == TOKEN);
    tokens.map(|packet| (packet.flow.0, packet.get::<Terms>().number, packet.offset / MSS)).collect()
}

/// Departures of packets, in nanoseconds.
fn times(packets: &[Packet]) -> Vec<u64> {
    packets.iter().map(|packet| packet.sent_at.0 / 1000).collect()
}

/// Flow and segment of the data among packets.
fn segments(packets: &[Packet]) -> Vec<(u32, u64)> {
    packets.iter().filter(|packet| packet.kind == Kind::DATA).map(|packet| (packet.flow.0, packet.offset / MSS)).collect()
}

fn kinds(packets: &[Packet]) -> Vec<Kind> {
    packets.iter().map(|packet| packet.kind).collect()
}

#[test]
fn numbers_follow_from_the_time_of_a_packet_and_the_round_trip() {
    let config = Config::new(&literal(), &env());
    assert_eq!((config.packet, config.lifetime), (Dur::from_ns(1200), Dur::from_ns(1800)));
    assert_eq!((config.downgrade, config.resend), (Dur::from_us(30), Dur::from_ns(10_800)));
    let config = Config::new(&Params::defaults(), &env());
    // 4.68 us at 10 Gb/s are 3.9 packets: the paper's 8 apply. Its 9 T are longer than a round trip
    // and a lifetime.
    assert_eq!((config.free_tokens, config.window, config.resend), (8, 8, Dur::from_ns(10_800)));
    assert_eq!((config.downgrade, config.rts), (Dur::from_ns(14_040), Dur::from_ns(14_040)));
    // At 1 Gb/s and 129.28 us the product is 10.8 packets, and 9 T are less than a round trip.
    let config = Config::new(&Params::defaults(), &script::env());
    assert_eq!((config.free_tokens, config.window, config.resend), (11, 11, Dur::from_ns(129_280 + 18_000)));
}

#[test]
fn a_flow_begins_with_an_rts_and_free_packets() {
    let mut h = host(&[20, 5]);
    let sent = h.open(0);
    assert_eq!((sent[0].kind, sent[0].prio, sent[0].wire_len, sent[0].get::<Answer>().free), (RTS, 0, 40, 8));
    assert_eq!(segments(&sent), (0..8).map(|n| (0, n)).collect::<Vec<_>>());
    let answers: Vec<Answer> = sent[1..].iter().map(|packet| packet.get()).collect();
    assert_eq!(answers, (1..9).map(|number| Answer { number, free: 8 }).collect::<Vec<_>>());
    assert!(sent[1..].iter().all(|packet| packet.prio == LONG && packet.wire_len == 1500));
    let sent = h.open(1);
    assert_eq!((segments(&sent).len(), sent[1].prio, sent[0].get::<Answer>().free), (5, SHORT, 5));
    assert_eq!([0, 1].map(|flow| h.table.counts(FlowId(flow))[FREE]), [8, 5]);
    // Free packets only for short flows.
    let mut h = with(&Params { free: Free::Short, ..literal() }, &[9, 8]);
    assert_eq!((kinds(&h.open(0)), h.open(1).len()), (vec![RTS], 9));
}

#[test]
fn free_tokens_expire_when_as_many_packets_could_have_left() {
    let mut h = host(&[8, 8]);
    h.nic_busy = true;
    h.open(0);
    h.open(1);
    h.nic_busy = false;
    // 8 T + 1.5 T.
    h.now = at(11_400);
    assert_eq!(segments(&h.sent()).len(), 16);
    let mut h = host(&[8]);
    h.nic_busy = true;
    h.open(0);
    h.nic_busy = false;
    h.now = at(11_401);
    assert_eq!((segments(&h.sent()), h.table.counts(FlowId(0))[EXPIRED]), (vec![], 8));
}

#[test]
fn a_token_is_good_for_the_packet_that_it_names_while_it_lives() {
    let mut h = host(&[20]);
    h.open(0);
    let sent = h.packet(token(0, 8, 9, 20));
    assert_eq!((segments(&sent), sent[0].get::<Answer>().number, sent[0].has(Packet::RETX)), (vec![(0, 8)], 9, false));
    // A token for a packet that was sent before.
    assert!(h.packet(token(0, 3, 10, 17))[0].has(Packet::RETX));
    // The NIC is busy for 1.5 T, and for longer.
    for (wait, left) in [(1800, 1), (1801, 0)] {
        h.nic_busy = true;
        h.packet(token(0, 9, 11, 17));
        h.now += Dur::from_ns(wait);
        h.nic_busy = false;
        assert_eq!(segments(&h.sent()).len(), left);
    }
    assert_eq!(h.table.counts(FlowId(0)), [0, 1, 8, 0]);
}

#[test]
fn the_flow_with_the_least_left_sends_first_and_the_earliest_to_expire() {
    let mut h = host(&[50, 40, 30]);
    (0..3).for_each(|flow| drop(h.open(flow)));
    h.nic_busy = true;
    // By the last token flow 0 has 20 packets left, like flow 1, which is younger.
    for (flow, segment, missing) in [(2, 8, 22), (1, 8, 20), (0, 9, 30), (0, 8, 20)] {
        h.packet(token(flow, segment, 9, missing));
        h.now += Dur::from_ns(100);
    }
    h.nic_busy = false;
    assert_eq!(segments(&h.sent()), [(0, 9), (0, 8), (1, 8), (2, 8)]);
}

#[test]
fn the_rts_is_repeated_until_a_token_comes() {
    let mut h = host(&[20]);
    h.open(0);
    let again = h.advance(at(14_040 * 7));
    assert_eq!((kinds(&again), times(&again)), (vec![RTS; 3], vec![14_040, 14_040 * 3, 14_040 * 7]));
    h.packet(token(0, 8, 9, 20));
    assert_eq!(h.advance(h.now + Dur::from_us(9_999)), []);
    // The ACK may be lost.
    assert_eq!(kinds(&h.advance(h.now + Dur::from_us(1))), [RTS]);
    assert_eq!(h.table.get(FlowId(0)).stats.timeouts, 4);
    h.packet(Packet { offset: 20 * MSS, ..Packet::new(FlowId(0), Kind::ACK, 40) });
    assert!(h.table.get(FlowId(0)).closed && h.machine.senders.is_empty());
    assert_eq!((h.packet(token(0, 9, 10, 1)), h.advance(at(1_000_000_000))), (vec![], vec![]));
}

#[test]
fn one_token_leaves_per_packet_time_for_the_flow_with_the_fewest_missing() {
    let mut r = sink(&[30, 20, 40]);
    assert_eq!(tokens(&r.packet(rts(0, 8))), [(0, 9, 8)]);
    assert_eq!(r.packet(rts(1, 8)), []);
    assert_eq!(r.packet(rts(2, 8)), []);
    // Only data of flow 0 arrives, so that it may get tokens, but flow 1 has fewer missing packets.
    // Its window is full after one token.
    (0..8).for_each(|n| drop(r.packet(data(0, n, n as u32 + 1, 8))));
    let sent = r.advance(at(4 * T));
    assert_eq!(tokens(&sent), [(1, 9, 8), (0, 10, 9), (0, 11, 10), (0, 12, 11)]);
    assert_eq!(times(&sent), [T, 2 * T, 3 * T, 4 * T]);
    assert!(sent.iter().all(|packet| packet.prio == 0 && packet.wire_len == 40));
    assert_eq!(sent[3].get::<Terms>(), Terms { number: 12, missing: 22, lifetime: Dur::from_ns(1800) });
    // Idle time is not saved for later tokens.
    r.packet(data(2, 0, 1, 8));
    assert_eq!(r.table.counts(FlowId(0))[TOKENS], 4);
}

#[test]
fn free_tokens_take_turns_of_the_receiver() {
    let mut r = with(&Params { hold: true, ..literal() }, &[20, 20]).at_host(1);
    assert_eq!((r.packet(rts(0, 8)), r.packet(rts(1, 3))), (vec![], vec![]));
    // One more token for the first flow, whose window is then full.
    let sent = r.advance(at(13 * T));
    assert_eq!((tokens(&sent), times(&sent)), (vec![(0, 9, 8), (1, 4, 3), (1, 5, 4)], vec![11 * T, 12 * T, 13 * T]));
    // A repeated RTS changes nothing.
    assert_eq!((r.packet(rts(1, 3)), tokens(&r.advance(at(14 * T)))), (vec![], vec![(1, 6, 5)]));
}

/// The number of unanswered tokens may reach the window, so that a ninth token is sent; then one
/// per 25 T.
#[test]
fn a_silent_source_gets_nine_tokens_and_then_one_per_downgrade_time() {
    let mut r = sink(&[50]);
    let first = r.packet(rts(0, 0));
    let sent = [first, r.advance(at(100_000))].concat();
    let last = 8 * T;
    assert_eq!(
        times(&sent)[1..],
        [T, 2 * T, 3 * T, 4 * T, 5 * T, 6 * T, 7 * T, 8 * T, last + 30_000, last + 60_000, last + 90_000]
    );
    assert_eq!(tokens(&sent).last(), Some(&(0, 12, 11)));
    assert_eq!(r.table.counts(FlowId(0)), [12, 0, 0, 3]);
    // An answer to the last token ends the wait at once.
    r.now = at(100_800);
    assert_eq!(tokens(&r.packet(data(0, 11, 12, 0))), [(0, 13, 12)]);
    assert_eq!(r.advance(at(100_800 + 9 * T)).len(), 8);
}

#[test]
fn tokens_name_missing_packets_and_begin_again_after_a_wait() {
    let mut r = sink(&[4]);
    let first = r.packet(rts(0, 0));
    let sent = [first, r.advance(at(3 * T))].concat();
    assert_eq!(tokens(&sent), [(0, 1, 0), (0, 2, 1), (0, 3, 2), (0, 4, 3)]);
    // Packets 1 and 3 are lost. The wait of 9 T starts with the fourth token.
    r.packet(data(0, 0, 1, 0));
    r.packet(data(0, 2, 3, 0));
    assert_eq!(r.advance(at(12 * T - 1)), []);
    let sent = r.advance(at(20 * T));
    assert_eq!((tokens(&sent), times(&sent)), (vec![(0, 5, 1), (0, 6, 3)], vec![12 * T, 13 * T]));
    r.packet(data(0, 3, 6, 0));
    let sent = r.advance(at(23 * T));
    assert_eq!((tokens(&sent), times(&sent)), (vec![(0, 7, 1)], vec![22 * T]));
    let end = r.packet(data(0, 1, 7, 0));
    assert_eq!((kinds(&end), end[0].offset), (vec![Kind::ACK], 4 * MSS));
    assert_eq!((r.advance(at(1_000_000)), r.machine.receivers.len()), (vec![], 0));
    // Late data is answered again.
    assert_eq!((kinds(&r.packet(data(0, 1, 5, 0))), kinds(&r.packet(rts(0, 0)))), (vec![Kind::ACK], vec![Kind::ACK]));
}

#[test]
fn a_receiver_waits_for_free_packets_and_data_replaces_a_lost_rts() {
    let mut r = sink(&[5, 20]);
    // 2 * 5 T for five free packets.
    assert_eq!(r.packet(data(0, 1, 2, 5)), []);
    let sent = r.advance(at(10 * T));
    assert_eq!((tokens(&sent), times(&sent)), (vec![(0, 6, 0)], vec![10 * T]));
    r.now = at(11 * T);
    let sent = r.packet(data(1, 0, 1, 8));
    assert_eq!(tokens(&sent), [(0, 7, 2)]);
    assert_eq!(tokens(&r.advance(at(13 * T))), [(0, 8, 3), (0, 9, 4)]);
    assert_eq!(tokens(&r.advance(at(14 * T))), [(1, 9, 8)]);
}

#[test]
fn a_receiver_without_packets_stops_until_one_arrives() {
    let mut r = sink(&[5]);
    r.packet(rts(0, 0));
    let last = |packets: Vec<Packet>| packets.last().map(|packet| packet.sent_at);
    assert!(last(r.advance(at(20_000_000))) < Some(at(10_000_000)));
    assert_eq!(tokens(&r.packet(rts(0, 0))).len(), 1);
    assert_eq!(r.advance(at(20_000_000 + 4 * T)).len(), 4);
}

#[test]
fn blocked_senders_come_last_if_they_report_it() {
    let params = Params { notify: true, ..literal() };
    let mut h = with(&params, &[20, 30, 40, 8]);
    let count = |packets: &[Packet]| {
        let status = packets.iter().filter(|packet| packet.kind == STATUS);
        status.map(|packet| (packet.flow.0, packet.get::<Status>().blocked)).collect::<Vec<_>>()
    };
    assert_eq!(count(&h.open(0)), [(0, 0)]);
    assert_eq!(count(&[h.open(1), h.open(2), h.open(3)].concat()), []);
    assert_eq!(count(&h.advance(at(20 * T))), [(0, 1), (1, 1), (2, 1)]);
    // No flow is left to report on.
    (0..4).for_each(|flow| drop(h.packet(Packet::new(FlowId(flow), Kind::ACK, 40))));
    assert_eq!(count(&h.advance(at(1_000_000))), []);
    let mut r = with(&params, &[20, 30]).at_host(1);
    r.packet(rts(0, 0));
    r.packet(rts(1, 0));
    let mut status = Packet::new(FlowId(0), STATUS, 40);
    status.set(Status { blocked: 1 });
    r.packet(status);
    assert_eq!(tokens(&r.advance(at(T))), [(1, 1, 0)]);
    status.set(Status { blocked: 0 });
    r.packet(status);
    assert_eq!(tokens(&r.advance(at(2 * T))), [(0, 2, 1)]);
}

/// A single flow over a pipe of two microseconds. Hosts of the pipe send as fast as possible, so
/// that free packets arrive together.
fn single(packets: u64) -> Vec<Packet> {
    let mut pipe = Pipe::new(host(&[packets]), host(&[packets]), Dur::from_us(2));
    pipe.run(|_| Fate::Pass);
    pipe.log
}

#[test]
fn a_single_flow_needs_a_token_for_each_packet_that_is_not_free() {
    let log = single(5);
    assert_eq!(kinds(&log), [vec![RTS], vec![Kind::DATA; 5], vec![Kind::ACK]].concat());
    let log = single(20);
    let tokens: Vec<u64> = log.iter().filter(|packet| packet.kind == TOKEN).map(|packet| packet.sent_at.0 / 1000).collect();
    assert_eq!(tokens, (0..12).map(|n| 2_000 + n * T).collect::<Vec<_>>());
    assert_eq!(segments(&log).len(), 20);
}

#[test]
fn contradictions_are_found() {
    assert_eq!(check(&Params::defaults(), &env()), []);
    let time = |us| Auto::Set(Dur::from_us(us));
    let wrong = Params { downgrade: time(4), rts: time(1), idle: time(2), ..Params::defaults() };
    assert_eq!(check(&wrong, &env()).iter().map(|problem| problem.key).collect::<Vec<_>>(), ["downgrade", "rts", "idle"]);
    let strict = |classes: &str| GivenPart { slot: "qdisc", kind: "strict", values: vec![("classes", classes.to_owned())] };
    let problems = |classes| check(&Params::defaults(), &Env { given: &Given::new(vec![strict(classes)]), ..env() });
    assert_eq!(problems("3"), []);
    assert_eq!(problems("2")[0].message, "its packets use 3 classes, the switches have 2");
}

/// Per host, under any loss: at most one token per T, and no more packets than tokens, free ones
/// included.
#[derive(Default)]
struct Seen {
    last: Option<Time>,
    tokens: u64,
    data: u64,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(patterns(300)))]
    /// All bytes arrive once, senders close and timers end, whatever happens to the first 300
    /// packets.
    #[test]
    fn survives_loss_reordering_and_duplication(
        sizes in prop::collection::vec(1u64..60_000, 1..5),
        short in any::<bool>(),
        notify in any::<bool>(),
        fates in fates(300, &[]),
    ) {
        let flows = both_ways(&sizes);
        let params = Params { free: if short { Free::Short } else { Free::All }, notify, ..Params::defaults() };
        let host = || Script::new(Phost::new(&params, &script::env()), flows.clone());
        let mut fates = fates.into_iter();
        let mut twice = false;
        let mut pipe = Pipe::new(host(), host(), Dur::from_us(60));
        pipe.run(|_| {
            let fate = fates.next().unwrap_or(Fate::Pass);
            twice |= fate == Fate::Twice;
            fate
        });
        let mut hosts = [Seen::default(), Seen::default()];
        for packet in &pipe.log {
            let src = flows[packet.flow.index()].src.index();
            if packet.kind == TOKEN {
                let seen = &mut hosts[1 - src];
                prop_assert!(seen.last.is_none_or(|last| packet.sent_at.since(last) >= Dur::from_us(12)));
                seen.last = Some(packet.sent_at);
                hosts[src].tokens += 1;
            }
            hosts[src].data += u64::from(packet.kind == Kind::DATA);
        }
        let free = |flow: &&Flow| if short && flow.size_bytes > 11 * MSS { 0 } else { flow.size_bytes.div_ceil(MSS).min(11) };
        for (host, seen) in hosts.iter().enumerate() {
            let free: u64 = flows.iter().filter(|flow| flow.src.index() == host).map(|flow| free(&flow)).sum();
            prop_assert!(twice || seen.data <= seen.tokens + free, "{} packets for {} tokens", seen.data, seen.tokens);
        }
    }
}

use super::*;
use crate::kit::pipe::{Fate, Pipe, both_ways, fates, patterns};
use crate::kit::script::{self, Script};
use base::Fraction;
use base::params::Params as _;
use proptest::prelude::*;

const MSS: u64 = 1460;

fn host(sizes: &[u64]) -> Script<ExpressPass> {
    let flows = sizes.iter().zip(0..).map(|(size, id)| script::flow(id, *size)).collect();
    Script::new(ExpressPass::new(&Params::defaults(), &script::env()), flows)
}

fn us(n: u64) -> Time {
    Time::ZERO + Dur::from_us(n)
}

fn credit(flow: u32, number: u32, sent: Time) -> Packet {
    let mut packet = Packet { sent_at: sent, ..Packet::new(FlowId(flow), Kind::CREDIT, 84) };
    packet.set(Number { number, sent_ps: 0 });
    packet
}

fn data(segment: u64, number: u32, sent: Time) -> Packet {
    let mut packet = Packet::data(FlowId(0), segment * MSS, MSS as u16, 40);
    packet.set(Number { number, sent_ps: sent.0 });
    packet
}

fn plain(kind: Kind, offset: u64) -> Packet {
    Packet { offset, ..Packet::new(FlowId(0), kind, 40) }
}

/// Kind and offset of the packets that were sent.
fn seen(packets: &[Packet]) -> Vec<(Kind, u64)> {
    packets.iter().map(|packet| (packet.kind, packet.offset)).collect()
}

/// Two unloaded round trips, in nanoseconds.
const RETX_NS: u64 = 258_560;

#[test]
fn a_flow_asks_until_a_credit_comes() {
    let mut h = host(&[10 * MSS]);
    assert_eq!(seen(&h.open(0)), [(REQUEST, 0)]);
    let again = h.advance(Time(RETX_NS * 2000));
    assert_eq!(again.iter().map(|packet| packet.sent_at.0 / 1000).collect::<Vec<_>>(), [RETX_NS, 2 * RETX_NS]);
    assert!(again.iter().all(|packet| packet.kind == REQUEST));
    h.packet(credit(0, 0, us(1)));
    assert_eq!(h.advance(h.now + Dur::from_us(9_999)), []);
    // After this time without credits the sender sends its request again.
    assert_eq!(seen(&h.advance(h.now + Dur::from_us(1))), [(REQUEST, 0)]);
    assert_eq!(h.table.get(FlowId(0)).stats.timeouts, 3);
}

/// 100 us as in the authors' scripts, and never less than two round trips.
#[test]
fn a_request_is_repeated_after_the_authors_time_by_default() {
    for (rtt_us, us) in [(10, 100), (50, 100), (52, 104)] {
        let env = Env { max_rtt: Dur::from_us(rtt_us), ..script::env() };
        assert_eq!(ExpressPass::new(&Params::defaults(), &env).config.retx, Dur::from_us(us));
    }
}

/// ns2-xpass starts flows of fewer than 40 packets at their share of `alpha`. With `alpha` 1/16 the
/// gap after the first credit is 16 packet times.
#[test]
fn short_flows_may_start_at_a_part_of_the_first_rate() {
    let gap = |alpha_packets, segments: u64| {
        let params = Params { alpha_packets, pace: Pace { credit_jitter: Fraction(0), ..Pace::defaults() }, ..Params::defaults() };
        let flows = vec![script::flow(0, segments * MSS)];
        let mut sender = Script::new(ExpressPass::new(&params, &script::env()), flows.clone());
        let request = sender.open(0)[0];
        assert_eq!(request.get::<Request>().left, segments * MSS);
        let mut receiver = Script::new(ExpressPass::new(&params, &script::env()), flows).at_host(1);
        receiver.packet(request);
        receiver
            .advance(us(2))
            .iter()
            .chain(&receiver.advance(us(100_000)))
            .map(|credit| credit.sent_at)
            .take(2)
            .collect::<Vec<_>>()
    };
    let whole = gap(0, 1)[1].since(Time::ZERO).0 as f64;
    assert!((whole / (16.0 * 1584.0 * 8e3) - 1.0).abs() < 1e-6, "{whole}");
    for (alpha_packets, segments, share) in [(40, 400, 1.0), (40, 40, 1.0), (40, 10, 0.25), (40, 1, 0.025), (0, 10, 1.0)] {
        let found = gap(alpha_packets, segments)[1].since(Time::ZERO).0 as f64;
        assert!((found * share / whole - 1.0).abs() < 1e-6, "{alpha_packets} {segments}: {found}");
    }
}

#[test]
fn each_credit_is_answered_by_one_segment_with_its_number_and_time() {
    let mut h = host(&[2 * MSS + 1]);
    h.table.keep_counters(2);
    h.open(0);
    let answers: Vec<Packet> = [3, 5].into_iter().flat_map(|n| h.packet(credit(0, n, us(n.into())))).collect();
    assert_eq!(seen(&answers), [(Kind::DATA, 0), (Kind::DATA, MSS)]);
    assert_eq!(answers[1].get::<Number>(), Number { number: 5, sent_ps: us(5).0 });
    // The last segment is followed, in the data queue, by a CREDIT_STOP; later credits are wasted.
    let last = h.packet(credit(0, 6, us(6)));
    assert_eq!(seen(&last), [(Kind::DATA, 2 * MSS), (STOP, 0)]);
    assert_eq!((last[0].payload, last[0].wire_len), (1, 41));
    assert_eq!(h.packet(credit(0, 7, us(7))), []);
    assert_eq!(h.table.counts(FlowId(0)), [4, 1]);
    assert_eq!(seen(&h.advance(Time(RETX_NS * 1000))), [(STOP, 0)]);
    h.packet(plain(Kind::ACK, 2 * MSS + 1));
    assert!(h.table.get(FlowId(0)).closed && h.senders_are_gone());
    assert_eq!((h.packet(credit(0, 8, us(8))), h.advance(us(1_000_000))), (vec![], vec![]));
}

impl Script<ExpressPass> {
    fn senders_are_gone(&self) -> bool {
        self.machine.senders.is_empty()
    }
}

#[test]
fn segments_wait_for_the_nic_in_the_order_of_their_credits() {
    let mut h = host(&[2 * MSS, 9 * MSS]);
    h.open(0);
    h.open(1);
    h.nic_busy = true;
    for (flow, n) in [(1, 0), (0, 0), (1, 1), (0, 1), (0, 2)] {
        h.packet(credit(flow, n, us(1)));
    }
    h.nic_busy = false;
    // The fifth credit found no segment that was not assigned to another credit.
    let order: Vec<(u32, Kind)> = h.sent().iter().map(|packet| (packet.flow.0, packet.kind)).collect();
    assert_eq!(order, [(1, Kind::DATA), (0, Kind::DATA), (1, Kind::DATA), (0, Kind::DATA), (0, STOP)]);
}

#[test]
fn a_nack_sends_the_sender_back() {
    let mut h = host(&[3 * MSS]);
    h.open(0);
    (0..2).for_each(|n| drop(h.packet(credit(0, n, us(1)))));
    assert_eq!(h.packet(plain(NACK, MSS)), []);
    let again = h.packet(credit(0, 2, us(2)));
    assert_eq!((seen(&again), again[0].has(Packet::RETX)), (vec![(Kind::DATA, MSS)], true));
    assert_eq!(seen(&h.packet(credit(0, 3, us(3)))), [(Kind::DATA, 2 * MSS), (STOP, 0)]);
    // After the end the sender has to request credits again.
    assert_eq!(seen(&h.packet(plain(NACK, 2 * MSS))), [(REQUEST, 0)]);
    assert_eq!(seen(&h.packet(credit(0, 4, us(4)))), [(Kind::DATA, 2 * MSS), (STOP, 0)]);
}

#[test]
fn a_request_starts_credits_at_a_sixteenth_of_the_largest_rate_and_a_stop_ends_them() {
    let mut r = host(&[3 * MSS]).at_host(1);
    let mut credits = r.packet(plain(REQUEST, 0));
    credits.extend(r.advance(us(5_000)));
    // 1 Gb/s * 84 / (84 + 1500) / 16 / 84 bytes: one every 202.75 us.
    assert!((24..=27).contains(&credits.len()), "{}", credits.len());
    assert!(credits.iter().zip(0..).all(|(packet, n)| packet.get::<Number>().number == n && packet.kind == Kind::CREDIT));
    // A second request changes nothing.
    assert_eq!(r.packet(plain(REQUEST, 0)), []);
    r.packet(data(0, 0, us(0)));
    assert_eq!(seen(&r.packet(plain(STOP, 0))), [(NACK, MSS)]);
    assert_eq!(r.advance(us(100_000)), []);
}

#[test]
fn a_gap_is_answered_by_nacks_until_it_is_closed() {
    let mut r = host(&[4 * MSS]).at_host(1);
    r.packet(plain(REQUEST, 0));
    assert_eq!(r.packet(data(0, 0, us(0))), []);
    assert_eq!(seen(&r.packet(data(2, 2, us(0)))), [(NACK, MSS)]);
    assert_eq!(r.packet(data(3, 3, us(0))), []);
    let nacks = |packets: Vec<Packet>| packets.iter().filter(|packet| packet.kind == NACK).count();
    assert_eq!(nacks(r.advance(Time(2 * RETX_NS * 1000))), 2);
    r.packet(data(1, 4, us(0)));
    assert_eq!(nacks(r.advance(us(4_000))), 0);
    assert_eq!(seen(&r.packet(plain(STOP, 0))), [(Kind::ACK, 4 * MSS)]);
    // Late packets find the flow complete.
    assert_eq!(seen(&r.packet(plain(REQUEST, 0))), [(Kind::ACK, 4 * MSS)]);
    assert_eq!((seen(&r.packet(plain(STOP, 0))), r.advance(us(100_000))), (vec![(Kind::ACK, 4 * MSS)], vec![]));
}

#[test]
fn a_receiver_stops_credits_after_a_time_without_packets() {
    let mut r = host(&[4 * MSS]).at_host(1);
    r.packet(plain(REQUEST, 0));
    let last = |packets: Vec<Packet>| packets.last().map(|packet| packet.sent_at);
    assert!(last(r.advance(us(60_000))) < Some(us(10_000)));
    r.packet(plain(REQUEST, 0));
    r.advance(us(65_000));
    r.packet(data(0, 0, us(0)));
    let end = last(r.advance(us(200_000)));
    assert!(end > Some(us(74_000)) && end < Some(us(75_000)), "{end:?}");
}

#[test]
fn times_below_a_round_trip_are_problems() {
    let wrong = Params { retx: Auto::Set(Dur::from_us(100)), idle: Auto::Set(Dur::from_us(100)), ..Params::defaults() };
    assert_eq!(check(&wrong, &script::env()).iter().map(|problem| problem.key).collect::<Vec<_>>(), ["idle", "retx"]);
    assert_eq!(check(&Params::defaults(), &script::env()), []);
}

/// Without losses every segment is sent once, and there are never more segments than credits.
#[test]
fn without_losses_each_byte_is_sent_once() {
    let flow = script::flow(0, 300 * MSS + 7);
    let host = || Script::new(ExpressPass::new(&Params::defaults(), &script::env()), vec![flow.clone()]);
    let mut pipe = Pipe::new(host(), host(), Dur::from_us(50));
    pipe.run(|_| Fate::Pass);
    let count = |kind: Kind| pipe.log.iter().filter(|packet| packet.kind == kind).count();
    assert_eq!((count(Kind::DATA), count(REQUEST), count(STOP), count(NACK)), (301, 1, 1, 0));
    assert!((301..=301 + 12).contains(&count(Kind::CREDIT)), "{} credits", count(Kind::CREDIT));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(patterns(200)))]
    /// All bytes arrive once, senders close and timers end, whatever happens to the first 300
    /// packets.
    #[test]
    fn survives_loss_reordering_and_duplication(
        sizes in prop::collection::vec(1u64..60_000, 1..4),
        fates in fates(300, &[]),
    ) {
        let flows = both_ways(&sizes);
        let host = || Script::new(ExpressPass::new(&Params::defaults(), &script::env()), flows.clone());
        Pipe::new(host(), host(), Dur::from_us(60)).run_fates(fates);
    }
}

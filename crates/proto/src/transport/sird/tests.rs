use super::inbound::Aimd;
use super::*;
use crate::kit::pipe::{Fate, Pipe, both_ways, fates, patterns};
use crate::kit::script::{self, Script};
use base::params::Params as _;
use base::{HostId, Time};
use header::{Grant, Resend, Use};
use proptest::prelude::*;

const MSS: u64 = 1460;
/// 16 160 bytes on the wire are eleven packets of 1500 bytes.
const BDP: u64 = 11 * MSS;
/// B.
const BUCKET: u64 = BDP * 3 / 2;
/// The time of a full packet at 1 Gb/s, in nanoseconds.
const GAP: u64 = 12_000;
/// 5 ms are longer than ten round trips.
const RESEND_AFTER: u64 = 5_000_000;
/// The size of a message that needs credit for all bytes.
const LONG: u64 = 1_000 * MSS;

fn host_with(params: &Params, sizes: &[u64]) -> Script<Sird> {
    let flows = sizes.iter().zip(0..).map(|(size, id)| script::flow(id, *size)).collect();
    let mut host = Script::new(Sird::new(params, &script::env()), flows);
    host.table.keep_counters(META.counters.len());
    host
}

fn sender(sizes: &[u64]) -> Script<Sird> {
    host_with(&Params::defaults(), sizes)
}

/// A receiver whose messages come from different hosts.
fn receiver_with(params: &Params, sizes: &[u64]) -> Script<Sird> {
    let mut host = host_with(params, sizes).at_host(1);
    for (flow, src) in host.flows.iter_mut().zip(2..) {
        flow.src = HostId(src);
    }
    host
}

fn receiver(sizes: &[u64]) -> Script<Sird> {
    receiver_with(&Params::defaults(), sizes)
}

fn at(ns: u64) -> Time {
    Time::ZERO + Dur::from_ns(ns)
}

fn request(flow: u32) -> Packet {
    Packet::new(FlowId(flow), REQUEST, 40)
}

fn grant(flow: u32, to: u64) -> Packet {
    let mut packet = Packet { offset: to, ..Packet::new(FlowId(flow), GRANT, 40) };
    packet.set(Grant { received: 0 });
    packet
}

fn resend(flow: u32, from: u64, end: u64) -> Packet {
    let mut packet = Packet { offset: from, ..Packet::new(FlowId(flow), RESEND, 40) };
    packet.set(Resend { end, round: 1 });
    packet
}

/// A full packet with credit.
fn data(flow: u32, number: u64, csn: u8, ce: bool) -> Packet {
    let mut packet = Packet::data(FlowId(flow), number * MSS, MSS as u16, 40);
    packet.flags |= if ce { Packet::CE } else { Packet::ECT };
    packet.set(Use { scheduled: 1, csn });
    packet
}

/// Flow and last byte of the GRANTs, in packets.
fn grants(packets: &[Packet]) -> Vec<(u32, u64)> {
    packets.iter().filter(|p| p.kind == GRANT).map(|p| (p.flow.0, p.offset / MSS)).collect()
}

/// First and last byte of the RESENDs, in packets.
fn resends(packets: &[Packet]) -> Vec<(u64, u64)> {
    packets.iter().filter(|p| p.kind == RESEND).map(|p| (p.offset / MSS, p.get::<Resend>().end.div_ceil(MSS))).collect()
}

/// Flow, offset and payload of the data, whether it uses credit and whether it has `csn`.
fn sent(packets: &[Packet]) -> Vec<(u32, u64, u16, u8, u8)> {
    let uses = packets.iter().filter(|p| p.kind == Kind::DATA).map(|p| (p, p.get::<Use>()));
    uses.map(|(p, Use { scheduled, csn })| (p.flow.0, p.offset, p.payload, scheduled, csn)).collect()
}

fn kinds(packets: &[Packet]) -> Vec<Kind> {
    packets.iter().map(|p| p.kind).collect()
}

#[test]
fn the_defaults_are_multiples_of_the_bandwidth_delay_product() {
    let config = Config::new(&Params::defaults(), &script::env());
    let Config { bucket, sender_bucket, sender_threshold, unsched_threshold, unsched_bytes, .. } = config;
    assert_eq!([bucket, sender_bucket, sender_threshold, unsched_threshold, unsched_bytes], [24_090, 16_060, 8030, 16_060, 16_060]);
    assert_eq!((config.gap, config.resend_after), (Dur::from_us(12), Dur::from_ms(5)));
    assert_eq!((config.alpha, config.g), (Fraction(0), Fraction::from_percent(8)));
    // 0.1 BDP and, as 0.03 BDP is less than that, a full packet.
    assert_eq!([config.min_window_csn, config.min_window_ecn], [1606, MSS]);
    // At ten times the rate a round trip has 161.6 KB, 108 packets.
    let fast = Env { nic_rate: base::Rate::from_gbps(10), host_rate: base::Rate::from_gbps(10), ..script::env() };
    let config = Config::new(&Params::defaults(), &fast);
    assert_eq!((config.sender_bucket, config.bucket), (108 * MSS, 162 * MSS));
    assert_eq!([config.min_window_csn, config.min_window_ecn], [15_768, 4730]);
}

#[test]
fn a_message_up_to_the_threshold_is_sent_at_once_and_a_longer_one_requests_credit() {
    let mut s = sender(&[BDP, BDP + 1]);
    let short = s.open(0);
    let all: Vec<_> = (0..11).map(|i| (0, i * MSS, 1460, 0, 0)).collect();
    assert_eq!(sent(&short), all);
    assert!(short.len() == 11 && short.iter().all(|p| p.has(Packet::ECT) && p.prio == 0));
    let long = s.open(1);
    assert_eq!(kinds(&long), [REQUEST]);
    assert_eq!(sent(&s.packet(grant(1, MSS))), [(1, 0, 1460, 1, 0)]);
    let flow = |flow: u32| s.table.counts(FlowId(flow))[UNSCHEDULED..=SCHEDULED].to_vec();
    assert_eq!((flow(0), flow(1)), (vec![BDP, 0], vec![0, MSS]));
}

#[test]
fn above_one_bandwidth_delay_product_only_the_first_bytes_need_no_credit() {
    let params = Params { unsched_threshold: Auto::Set(Bytes(100_000)), ..Params::defaults() };
    let mut s = host_with(&params, &[BDP + 2000, 100_001]);
    assert_eq!(sent(&s.open(0)).len(), 11);
    assert_eq!(sent(&s.packet(grant(0, BDP + 2000))), [(0, BDP, 1460, 1, 0), (0, BDP + MSS, 540, 1, 0)]);
    assert_eq!(kinds(&s.open(1)), [REQUEST]);
    // The receiver grants the bytes behind them.
    let mut r = receiver_with(&params, &[BDP + 2000]);
    let mut first = Packet::data(FlowId(0), 0, MSS as u16, 40);
    first.set(Use { scheduled: 0, csn: 0 });
    assert_eq!(grants(&r.packet(first)), [(0, 12)]);
    assert_eq!(r.machine.inbound.credit(), [MSS; 3]);
}

#[test]
fn a_sender_has_credit_for_one_bandwidth_delay_product_paced_at_the_rate_of_the_link() {
    let mut r = receiver(&[LONG]);
    assert_eq!(grants(&r.packet(request(0))), [(0, 1)]);
    assert_eq!(grants(&r.advance(at(GAP - 1))), []);
    assert_eq!(grants(&r.advance(at(GAP))), [(0, 2)]);
    let later = r.advance(at(1_000_000));
    assert_eq!(grants(&later), (3..=11).map(|n| (0, n)).collect::<Vec<_>>());
    assert!(later.iter().zip(2..).all(|(p, n)| p.sent_at == at(GAP * n)));
    assert_eq!(r.machine.inbound.credit(), [BDP; 3]);
    // Arrived data gives its credit back.
    assert_eq!(grants(&r.packet(data(0, 0, 0, false))), [(0, 12)]);
    // A host that was idle does not send faster.
    assert_eq!(grants(&r.packet(data(0, 1, 0, false))), []);
    assert_eq!(grants(&r.advance(at(1_000_000 + GAP))), [(0, 13)]);
}

#[test]
fn srpt_fills_the_global_bucket_with_the_shortest_messages() {
    let mut r = receiver(&[LONG + MSS, LONG, LONG + 2 * MSS]);
    let mut all: Vec<Packet> = (0..3).flat_map(|flow| r.packet(request(flow))).collect();
    all.extend(r.advance(at(1_000_000)));
    // Flow 0 was the only one at first. 16 packets fit B, 11 of them of the sender of flow 1, which is shorter.
    let got = |flow| grants(&all).into_iter().filter(|(other, _)| *other == flow).count();
    assert_eq!([got(0), got(1), got(2)], [5, 11, 0]);
    assert_eq!(r.machine.inbound.credit(), [16 * MSS; 3]);
    assert_eq!(BUCKET / MSS, 16);
    // The shortest one that fits is next.
    assert_eq!(grants(&r.packet(data(0, 0, 0, false))), [(0, 6)]);
    let mut r = receiver(&[LONG, 20 * MSS]);
    r.packet(request(0));
    r.packet(request(1));
    assert_eq!(grants(&r.advance(at(GAP))), [(1, 1)]);
}

#[test]
fn srpt_orders_by_the_bytes_that_have_not_arrived() {
    let mut r = receiver(&[30 * MSS, 25 * MSS]);
    r.packet(request(0));
    r.advance(at(1_000_000));
    assert_eq!(grants(&r.packet(request(1))), [(1, 1)]);
    // Flow 0 has 19 packets to be granted and misses 29; flow 1 has 24 to be granted and misses 25.
    r.packet(data(0, 0, 0, false));
    assert_eq!(grants(&r.advance(at(1_000_000 + GAP))), [(1, 2)]);
    // With five more packets flow 0 misses 24, fewer than flow 1.
    for number in 1..6 {
        r.packet(data(0, number, 0, false));
    }
    assert_eq!(grants(&r.advance(at(1_000_000 + 2 * GAP))), [(0, 12)]);
}

#[test]
fn round_robin_grants_to_senders_in_turn() {
    let params = Params { policy: GrantOrder::RoundRobin, ..Params::defaults() };
    let mut r = receiver_with(&params, &[LONG, 20 * MSS, LONG, LONG]);
    // Flows 2 and 3 come from one host.
    r.flows[3].src = r.flows[2].src;
    let mut all: Vec<Packet> = (0..4).flat_map(|flow| r.packet(request(flow))).collect();
    all.extend(r.advance(at(6 * GAP)));
    let order: Vec<u32> = grants(&all).into_iter().map(|(flow, _)| flow).collect();
    assert_eq!(order, [0, 1, 2, 0, 1, 2, 0]);
}

#[test]
fn windows_grow_with_every_packet_and_are_cut_once_in_one_and_a_half_buckets() {
    let config = Config::new(&Params::defaults(), &script::env());
    let mut aimd = Aimd::new(&config, config.min_window_csn);
    let mut feed = |number: u64, marked| {
        aimd.on_data(&config, MSS, marked, number * MSS, BDP);
        aimd.window()
    };
    // The first cut needs a bucket of data, eleven packets, which is the first sample: alpha = 0.08 x 4/11 =
    // 0.029091, and 16060 (1 - 0.014545) = 15826.
    for number in 1..=10 {
        assert_eq!(feed(number, number > 7), BDP);
    }
    // A marked packet grows the window, too: 1460 x 1460 / 16060 = 132 bytes.
    let cut = 15_826;
    assert_eq!(feed(11, true), cut + 132);
    // The next cut needs 16 more packets. The window is at its upper end before.
    assert_eq!(feed(12, true), BDP);
    for number in 13..=26 {
        feed(number, true);
    }
    // Packets 12 to 22 are all marked: alpha = 0.92 x 0.029091 + 0.08 = 0.106764, and 16060 (1 - 0.053382) = 15202.
    assert_eq!(feed(27, true), 15_202 + 132);
    // Without marks there is no cut.
    assert_eq!((28..=60).map(|number| feed(number, false)).last(), Some(BDP));
}

#[test]
fn windows_have_two_ends() {
    let params = Params { sender_bucket: Auto::Set(Bytes(1000 * MSS)), ..Params::defaults() };
    let config = Config::new(&params, &script::env());
    for (least, packets) in [(config.min_window_csn, 100), (config.min_window_ecn, 30)] {
        let mut aimd = Aimd::new(&config, least);
        let mut feed = |number: u64, marked| {
            aimd.on_data(&config, MSS, marked, number * MSS, aimd.window());
            aimd.window()
        };
        assert_eq!((1..=20_000).map(|number| feed(number, true)).min(), Some(packets * MSS));
        assert_eq!((20_001..=1_000_000).map(|number| feed(number, false)).last(), Some(1000 * MSS));
    }
}

#[test]
fn marks_of_the_sender_and_of_the_network_shrink_the_bucket_of_the_sender() {
    // Alpha stays at 1 to a part in a billion: the cut is to a half, and the marked packet adds 132 bytes.
    let params = Params { alpha: Fraction::ONE, g: Fraction(1), ..Params::defaults() };
    let less = 8030 + 132;
    for (csn, ce, windows) in [(1, false, [less, BDP]), (0, true, [BDP, less]), (1, true, [less, less]), (0, false, [BDP, BDP])] {
        let mut r = receiver_with(&params, &[LONG, LONG]);
        r.packet(request(0));
        r.advance(at(1_000_000));
        for number in 0..10 {
            r.packet(data(0, number, 0, false));
        }
        r.packet(data(0, 10, csn, ce));
        assert_eq!(r.machine.inbound.windows()[0], windows, "{csn} {ce}");
        let more = r.advance(at(2_000_000));
        let most = windows[0].min(windows[1]);
        assert_eq!(r.machine.inbound.credit()[0], most / MSS * MSS, "{csn} {ce}");
        assert!(!grants(&more).is_empty());
        // Another sender has a bucket of its own.
        r.packet(request(1));
        r.advance(at(3_000_000));
        assert_eq!(r.machine.inbound.windows()[1], [BDP, BDP]);
        assert_eq!(r.machine.inbound.credit()[0], 16 * MSS, "{csn} {ce}");
        assert_eq!(r.table.counts(FlowId(0))[CSN], u64::from(csn));
    }
}

#[test]
fn data_has_csn_while_half_a_bandwidth_delay_product_of_credit_waits() {
    let mut s = sender(&[LONG, LONG]);
    s.flows[1].dst = HostId(2);
    s.open(0);
    s.open(1);
    s.nic_busy = true;
    s.packet(grant(0, 4 * MSS));
    s.packet(grant(1, 2920));
    assert_eq!(s.machine.outbound.waiting_credit(), 6 * MSS);
    s.nic_busy = false;
    // 8760 bytes wait before the first packet, 7300 before the second; 8030 are the threshold.
    let csn: Vec<u8> = sent(&s.sent()).into_iter().map(|packet| packet.4).collect();
    assert_eq!(csn, [1, 0, 0, 0, 0, 0]);
    assert_eq!(s.machine.outbound.waiting_credit(), 0);
    // Exactly the threshold counts.
    assert_eq!(sent(&s.packet(grant(0, 4 * MSS + 8030)))[0].4, 1);
    assert_eq!(sent(&s.packet(grant(0, 4 * MSS + 8030 + 8029)))[0].4, 0);
}

#[test]
fn a_share_of_packets_goes_to_receivers_in_turn() {
    let order = |fair_share: u64| {
        let params = Params { fair_share: Fraction(fair_share), ..Params::defaults() };
        let mut s = host_with(&params, &[20 * MSS, 30 * MSS]);
        s.flows[1].dst = HostId(2);
        s.open(0);
        s.open(1);
        s.nic_busy = true;
        s.packet(grant(0, 20 * MSS));
        s.packet(grant(1, 30 * MSS));
        s.nic_busy = false;
        sent(&s.sent()).into_iter().map(|packet| packet.0).collect::<Vec<_>>()
    };
    // Half of the packets go in turn, so that a quarter goes to the receiver of the longer message.
    assert_eq!(order(500_000_000)[..13], [0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1]);
    assert!(order(0)[..20].iter().all(|flow| *flow == 0));
    assert_eq!(order(1_000_000_000)[..7], [0, 0, 1, 0, 1, 0, 1]);
}

#[test]
fn two_classes_put_packets_with_credit_second() {
    for (classes, scheduled) in [(Classes::Two, 1), (Classes::One, 0)] {
        let params = Params { classes, ..Params::defaults() };
        let mut s = host_with(&params, &[MSS, LONG]);
        let mut all = s.open(0);
        all.extend(s.open(1));
        all.extend(s.packet(grant(1, MSS)));
        let classes: Vec<_> = all.iter().map(|p| (p.kind, p.prio)).collect();
        assert_eq!(classes, [(Kind::DATA, 0), (REQUEST, 0), (Kind::DATA, scheduled)]);
        assert!(check(&params, &script::env()).is_empty());
    }
    assert_eq!(Params::defaults().classes, Classes::Two);
}

#[test]
fn a_later_grant_makes_up_for_a_lost_one() {
    let mut s = sender(&[LONG]);
    s.open(0);
    assert_eq!(sent(&s.packet(grant(0, 2 * MSS))).len(), 2);
    assert_eq!(sent(&s.packet(grant(0, MSS))).len(), 0);
}

#[test]
fn credit_of_lost_data_is_reclaimed_and_the_data_is_requested_again() {
    let mut r = receiver(&[LONG]);
    r.packet(request(0));
    r.advance(at(500_000));
    // Packets 0, 3 and 4 of eleven are lost.
    for number in [1, 2, 5, 6, 7, 8, 9, 10] {
        r.packet(data(0, number, 0, false));
    }
    let more = grants(&r.advance(at(600_000)));
    assert_eq!((more.last(), r.machine.inbound.credit()), (Some(&(0, 19)), [BDP; 3]));
    assert_eq!(r.advance(at(500_000 + RESEND_AFTER - 1)), []);
    let again = r.advance(at(500_000 + RESEND_AFTER));
    // A sender that may be gone gets credit for one packet.
    assert_eq!((resends(&again), again[0].get::<Resend>().round), (vec![(0, 1)], 1));
    assert_eq!(r.machine.inbound.credit(), [MSS; 3]);
    assert_eq!(r.table.counts(FlowId(0))[RECLAIMED], BDP);
    // The next hole is known when the first one is filled. Packets 11 to 18 are still on their way.
    let mut all = r.packet(data(0, 0, 0, false));
    all.extend(r.advance(at(700_000 + RESEND_AFTER)));
    assert_eq!(resends(&all), [(3, 4), (4, 5)]);
    assert_eq!(grants(&all), (20..=28).map(|n| (0, n)).collect::<Vec<_>>());
    assert_eq!(r.machine.inbound.credit(), [BDP; 3]);
    // The sender retransmits, and counts the timeout once.
    let mut s = sender(&[LONG]);
    s.open(0);
    s.packet(grant(0, 19 * MSS));
    let mut packets = s.packet(resend(0, 3 * MSS, 4 * MSS));
    packets.extend(s.packet(resend(0, 4 * MSS, 5 * MSS)));
    assert_eq!(sent(&packets), [(0, 3 * MSS, 1460, 1, 0), (0, 4 * MSS, 1460, 1, 0)]);
    assert!(packets.iter().all(|p| p.has(Packet::RETX)));
    assert_eq!(s.table.get(FlowId(0)).stats.timeouts, 1);
}

#[test]
fn late_data_uses_credit_once() {
    let mut r = receiver(&[LONG]);
    r.packet(request(0));
    r.advance(at(500_000));
    r.advance(at(RESEND_AFTER + 200_000));
    assert_eq!(r.machine.inbound.credit(), [MSS; 3]);
    let mut all = Vec::new();
    for number in 0..11 {
        all.extend(r.packet(data(0, number, 0, false)));
    }
    // Packet 0 used the credit of the RESEND, packet 1 that of the RESEND that followed, and the others had none.
    assert_eq!((resends(&all), r.machine.inbound.credit()), (vec![(1, 2)], [0; 3]));
    r.packet(data(0, 0, 0, false));
    assert_eq!(r.machine.inbound.credit(), [0; 3]);
    assert_eq!(grants(&r.advance(at(RESEND_AFTER + 200_000 + GAP))), [(0, 12)]);
}

#[test]
fn a_sender_without_an_answer_asks_and_the_receiver_answers_with_what_it_knows() {
    let mut s = sender(&[LONG, MSS]);
    s.open(0);
    assert_eq!(s.advance(at(2 * RESEND_AFTER - 1)), []);
    let asked = s.advance(at(2 * RESEND_AFTER));
    assert!(kinds(&asked) == [REQUEST] && asked[0].has(Packet::RETX));
    let mut r = receiver(&[LONG, MSS]);
    assert_eq!(grants(&r.packet(asked[0])), [(0, 0), (0, 1)]);
    // An answered message waits in silence.
    s.packet(grant(0, 0));
    assert_eq!(s.advance(at(20 * RESEND_AFTER)), []);
    assert_eq!(s.table.get(FlowId(0)).stats.timeouts, 1);
    // A message that has arrived is acknowledged again.
    let mut unscheduled = Packet::data(FlowId(1), 0, MSS as u16, 40);
    unscheduled.set(Use { scheduled: 0, csn: 0 });
    assert_eq!(kinds(&r.packet(unscheduled)), [Kind::ACK]);
    assert_eq!(kinds(&r.packet(Packet { flags: Packet::RETX, ..request(1) })), [Kind::ACK]);
    s.open(1);
    assert_eq!(s.packet(Packet::new(FlowId(1), Kind::ACK, 40)), []);
    assert!(s.table.get(FlowId(1)).closed);
}

#[test]
fn a_receiver_forgets_a_message_that_its_sender_does_not_have() {
    let mut s = sender(&[LONG]);
    assert_eq!(kinds(&s.packet(resend(0, 0, MSS))), [UNKNOWN]);
    let mut r = receiver(&[LONG]);
    r.packet(request(0));
    r.advance(at(1_000_000));
    r.packet(Packet::new(FlowId(0), UNKNOWN, 40));
    assert_eq!((r.machine.inbound.credit(), r.machine.inbound.is_empty()), ([0; 3], true));
    assert_eq!(r.advance(at(100 * RESEND_AFTER)), []);
}

/// With the round trip of the longest path, one BDP of credit keeps the link busy: packets leave a packet time apart.
#[test]
fn one_sender_fills_the_link_of_the_receiver() {
    let flow = script::flow(0, 300 * MSS);
    let host = || Script::new(Sird::new(&Params::defaults(), &script::env()), vec![flow.clone()]);
    let half = 64_640;
    let mut pipe = Pipe::new(host(), host(), Dur::from_ns(half));
    pipe.run(|_| Fate::Pass);
    let times: Vec<Time> = pipe.log.iter().filter(|p| p.kind == Kind::DATA).map(|p| p.sent_at).collect();
    let wanted: Vec<Time> = (0..300).map(|n| at(2 * half + n * GAP)).collect();
    assert_eq!(times, wanted);
}

#[test]
fn problems_name_the_parameter() {
    let keys = |params: &Params| check(params, &script::env()).into_iter().map(|problem| problem.key).collect::<Vec<_>>();
    let set = |bytes| Auto::Set(Bytes(bytes));
    assert_eq!(keys(&Params::defaults()), [""; 0]);
    assert_eq!(keys(&Params { bucket: set(1459), sender_bucket: set(1460), ..Params::defaults() }), ["bucket"]);
    assert_eq!(keys(&Params { sender_bucket: set(1), ..Params::defaults() }), ["sender_bucket"]);
    let short = Auto::Set(Dur::from_us(129));
    assert_eq!(keys(&Params { resend_after: short, ask_after: short, ..Params::defaults() }), ["resend_after", "ask_after"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(patterns(200)))]

    /// Whatever is lost, late or marked: all messages arrive, the credit of the host is that of its senders and of
    /// its messages, and it is at most B.
    #[test]
    fn credit_never_exceeds_the_bucket(
        sizes in prop::collection::vec(1u64..60_000, 1..6),
        round_robin in any::<bool>(),
        fates in fates(300, &[(3, Fate::Mark)]),
    ) {
        let policy = if round_robin { GrantOrder::RoundRobin } else { GrantOrder::Srpt };
        let params = Params { policy, ..Params::defaults() };
        let host = || Script::new(Sird::new(&params, &script::env()), both_ways(&sizes));
        let mut pipe = Pipe::new(host(), host(), Dur::from_us(50));
        pipe.watch = |host| {
            let [all, sources, messages] = host.machine.inbound.credit();
            assert!(all == sources && all == messages && all <= BUCKET, "{all} {sources} {messages}");
        };
        pipe.run_fates(fates);
        for host in &pipe.hosts {
            prop_assert!(host.machine.inbound.is_empty() && host.machine.inbound.credit() == [0; 3]);
            prop_assert_eq!(host.machine.outbound.waiting_credit(), 0);
        }
    }
}

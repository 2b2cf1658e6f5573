use super::header::Offer;
use super::matching::{Bid, choose};
use super::*;
use crate::kit::pipe::{Fate, Pipe, both_ways, fates, patterns};
use crate::kit::script::{self, Script};
use base::params::Params as _;
use base::{HostId, Rng};
use proptest::prelude::*;

const MSS: u64 = 1460;
/// 1.3 round trips of 129.28 us, in nanoseconds.
const ROUND_NS: u64 = 168_064;
const PHASE_NS: u64 = 4 * ROUND_NS;
/// The time of a full packet at 1 Gb/s.
const GAP: u64 = 12_000;

/// Full packets come back as fast as bare headers: a bandwidth-delay product of eleven packets.
fn env() -> Env<'static> {
    Env { full_rtt: script::env().max_rtt, ..script::env() }
}

fn host_with(params: &Params, sizes: &[u64]) -> Script<Dcpim> {
    let flows = sizes.iter().zip(0..).map(|(packets, id)| script::flow(id, *packets * MSS)).collect();
    let mut host = Script::new(Dcpim::new(params, &env()), flows);
    host.table.keep_counters(META.counters.len());
    host
}

/// A sender of flows with these numbers of packets to different hosts.
fn sender(sizes: &[u64]) -> Script<Dcpim> {
    let mut host = host_with(&Params::defaults(), sizes);
    for (flow, dst) in host.flows.iter_mut().zip(1..) {
        flow.dst = HostId(dst);
    }
    host
}

/// A receiver of flows with these numbers of packets from different hosts.
fn receiver(sizes: &[u64]) -> Script<Dcpim> {
    let mut host = host_with(&Params::defaults(), sizes).at_host(1);
    for (flow, src) in host.flows.iter_mut().zip(2..) {
        flow.src = HostId(src);
    }
    host
}

fn at(ns: u64) -> Time {
    Time::ZERO + Dur::from_ns(ns)
}

fn control(flow: u32, kind: Kind) -> Packet {
    Packet::new(FlowId(flow), kind, 40)
}

fn offer(flow: u32, kind: Kind, round: u64, channels: u8, missing: u32) -> Packet {
    let mut packet = control(flow, kind);
    packet.set(Offer { round, channels, missing });
    packet
}

fn token(flow: u32, number: u32, packet: u64, phase: u64) -> Packet {
    let mut token = Packet { offset: packet * MSS, ..control(flow, TOKEN) };
    token.set(Terms { number, missing: 100, phase });
    token
}

fn data(flow: u32, number: u32, packet: u64) -> Packet {
    let mut data = Packet::data(FlowId(flow), packet * MSS, MSS as u16, 40);
    data.set(Answer { number });
    data
}

/// Flow, round, channels and missing packets of the offers of this kind.
fn offers(packets: &[Packet], kind: Kind) -> Vec<(u32, u64, u8, u32)> {
    let all = packets.iter().filter(|p| p.kind == kind).map(|p| (p.flow.0, p.get::<Offer>()));
    all.map(|(flow, Offer { round, channels, missing })| (flow, round, channels, missing)).collect()
}

/// Flow, number, requested packet and time of the tokens, in nanoseconds.
fn tokens(packets: &[Packet]) -> Vec<(u32, u32, u64, u64)> {
    let all = packets.iter().filter(|p| p.kind == TOKEN);
    all.map(|p| (p.flow.0, p.get::<Terms>().number, p.offset / MSS, p.sent_at.0 / 1000)).collect()
}

fn kinds(packets: &[Packet]) -> Vec<Kind> {
    packets.iter().map(|p| p.kind).collect()
}

#[test]
fn the_defaults_follow_the_bandwidth_delay_product_and_the_round_trip() {
    let config = Config::new(&Params::defaults(), &script::env());
    assert_eq!((config.round, config.gap, config.grace), (Dur::from_ns(ROUND_NS), Dur::from_ns(GAP), Dur::from_ns(112_640)));
    // 672 us are 56 packets; 154.8 us, in which a full packet goes out and a full packet comes back, are 12.9.
    assert_eq!([config.channel_packets, config.short, config.window], [14, 13, 13]);
    assert_eq!([config.window_timeout, config.resend], [170_280, 154_800].map(Dur::from_ns));
    assert_eq!(config.expiry(2), at(3 * PHASE_NS + 112_640));
}

/// leafSpineTopology.cpp with 100 and 400 Gb/s and 0.65 us per cable: 2 (4 x 0.65 + 2 (0.12 + 0.03)) = 5.8 us are 48.3
/// packets of 1500 bytes. With bare headers back they are 46.
#[test]
fn the_bandwidth_delay_product_of_the_authors_topology_has_49_packets() {
    let (nic_rate, host_rate) = (Rate::from_gbps(100), Rate::from_gbps(100));
    let (max_rtt, full_rtt) = (Dur::from_ns(5_508), Dur::from_ns(5_800));
    let config = Config::new(&Params::defaults(), &Env { nic_rate, host_rate, max_rtt, full_rtt, ..script::env() });
    assert_eq!([config.short, config.window], [49, 49]);
}

#[test]
fn a_flow_of_one_bandwidth_delay_product_is_sent_at_once_and_a_longer_one_is_announced() {
    let mut s = sender(&[11, 12]);
    let short = s.open(0);
    assert_eq!(kinds(&short)[..2], [NOTIFY, Kind::DATA]);
    let sent: Vec<_> = short[1..].iter().map(|p| (p.offset / MSS, p.prio, p.get::<Answer>().number)).collect();
    assert_eq!(sent, (0..11).map(|i| (i, 1, i as u32 + 1)).collect::<Vec<_>>());
    let long = s.open(1);
    assert!(kinds(&long) == [NOTIFY] && long[0].prio == 0);
    assert_eq!([0, 1].map(|flow| s.table.counts(FlowId(flow))[UNSCHEDULED]), [11, 0]);
}

#[test]
fn a_receiver_requests_accepts_and_sends_tokens_in_the_next_phase() {
    let mut r = receiver(&[100]);
    assert_eq!(kinds(&r.packet(control(0, NOTIFY))), [NOTED]);
    // Round 0: 100 packets need eight channels of 14 packets; four are free.
    assert_eq!(offers(&r.advance(at(0)), REQUEST), [(0, 0, 4, 100)]);
    r.now = at(100_000);
    assert_eq!(r.packet(offer(0, GRANT, 0, 4, 100)), []);
    let all = r.advance(at(PHASE_NS - 1));
    assert_eq!((kinds(&all), offers(&all, ACCEPT)), (vec![ACCEPT], vec![(0, 0, 4, 100)]));
    assert_eq!((all[0].sent_at, r.machine.inbox.channels()), (at(ROUND_NS), [0, 4]));
    // The next phase: the flow needs four channels besides those that it has. Twelve tokens leave, a packet time
    // apart: then more than eleven are unanswered, and the flow waits for 1.1 round trips.
    let all = r.advance(at(PHASE_NS + 11 * GAP + 142_000));
    assert_eq!(offers(&all, REQUEST), [(0, 4, 4, 100), (0, 5, 4, 100)]);
    let wanted: Vec<_> = (0..12).map(|n| (0, n as u32 + 1, n, PHASE_NS + n * GAP)).collect();
    assert_eq!(tokens(&all), wanted);
    assert_eq!(r.machine.inbox.channels(), [4, 0]);
    // Data opens the window again: the next token is at most a packet time later.
    r.packet(data(0, 5, 4));
    assert_eq!(tokens(&r.advance(at(PHASE_NS + 24 * GAP)))[0].1, 13);
}

#[test]
fn unanswered_tokens_are_forgiven_after_a_timeout() {
    let mut r = receiver(&[100]);
    r.packet(control(0, NOTIFY));
    r.advance(at(0));
    r.packet(offer(0, GRANT, 0, 4, 100));
    let all = tokens(&r.advance(at(PHASE_NS + 400_000)));
    // 142.208 us after the last token, at the next turn of the channels: after 12 packet times. Then all but eleven
    // count as answered.
    let late: Vec<u64> = all[12..].iter().map(|token| (token.3 - PHASE_NS) / GAP).collect();
    assert_eq!(late, [23]);
}

#[test]
fn a_sender_grants_its_channels_to_the_shortest_flow_first() {
    let mut s = sender(&[100, 20]);
    s.open(0);
    s.open(1);
    s.now = at(64_000);
    s.packet(offer(0, REQUEST, 0, 4, 100));
    s.packet(offer(1, REQUEST, 0, 2, 20));
    assert_eq!(s.advance(at(ROUND_NS / 2 - 1)), []);
    assert_eq!(offers(&s.advance(at(ROUND_NS / 2)), GRANT), [(1, 0, 2, 20), (0, 0, 2, 100)]);
    // One of them is accepted: two channels are left for the other receiver in the next round, and all in the next
    // phase.
    s.packet(offer(1, ACCEPT, 0, 2, 20));
    s.now = at(ROUND_NS);
    s.packet(offer(0, REQUEST, 1, 4, 100));
    assert_eq!(offers(&s.advance(at(3 * ROUND_NS / 2)), GRANT), [(0, 1, 2, 100)]);
    s.now = at(PHASE_NS);
    s.packet(offer(0, REQUEST, 4, 4, 100));
    assert_eq!(offers(&s.advance(at(PHASE_NS + ROUND_NS / 2)), GRANT), [(0, 4, 4, 100)]);
}

#[test]
fn a_receiver_accepts_no_more_channels_than_it_has_and_shares_its_rate_by_them() {
    let mut r = receiver(&[100, 20]);
    r.packet(control(0, NOTIFY));
    r.packet(control(1, NOTIFY));
    assert_eq!(offers(&r.advance(at(0)), REQUEST), [(0, 0, 4, 100), (1, 0, 2, 20)]);
    r.packet(offer(0, GRANT, 0, 4, 100));
    r.packet(offer(1, GRANT, 0, 2, 20));
    let all = r.advance(at(PHASE_NS - 1));
    assert_eq!((offers(&all, ACCEPT), offers(&all, REQUEST)), (vec![(1, 0, 2, 20), (0, 0, 2, 100)], vec![]));
    // Half of the channels: a token per 24 us, and a window of five.
    let all = tokens(&r.advance(at(PHASE_NS + 140_000)));
    for flow in [0, 1] {
        let times: Vec<u64> = all.iter().filter(|token| token.0 == flow).map(|token| (token.3 - PHASE_NS) / GAP).collect();
        assert_eq!(times, [0, 2, 4, 6, 8, 10], "flow {flow}");
    }
}

#[test]
fn offers_that_come_too_late_for_their_round_are_ignored() {
    let mut s = sender(&[100]);
    s.open(0);
    s.now = at(ROUND_NS / 2 + 1);
    s.packet(offer(0, REQUEST, 0, 4, 100));
    assert_eq!(offers(&s.advance(at(PHASE_NS)), GRANT), []);
    let mut r = receiver(&[100]);
    r.packet(control(0, NOTIFY));
    r.advance(at(ROUND_NS + 1));
    r.packet(offer(0, GRANT, 0, 4, 100));
    assert_eq!(offers(&r.advance(at(PHASE_NS)), ACCEPT), []);
    // A grant of this round is in time.
    r.packet(offer(0, GRANT, 4, 4, 100));
    assert_eq!(offers(&r.advance(at(PHASE_NS + ROUND_NS)), ACCEPT), [(0, 4, 4, 100)]);
}

#[test]
fn a_token_sends_its_packet_until_it_expires() {
    let mut s = sender(&[100, 1]);
    s.open(0);
    let sent = s.packet(token(0, 1, 7, 1));
    assert_eq!(sent.iter().map(|p| (p.offset / MSS, p.prio, p.get::<Answer>().number)).collect::<Vec<_>>(), [(7, 2, 1)]);
    s.nic_busy = true;
    s.packet(token(0, 2, 8, 1));
    s.packet(token(0, 3, 9, 2));
    s.open(1);
    // The tokens of phase 1 expire 112.64 us after it; a short flow goes first.
    s.now = at(2 * PHASE_NS + 112_641);
    s.nic_busy = false;
    let sent: Vec<_> = s.sent().iter().map(|p| (p.flow.0, p.offset / MSS)).collect();
    assert_eq!((sent, s.table.counts(FlowId(0))[EXPIRED]), (vec![(1, 0), (0, 9)], 1));
}

#[test]
fn missing_packets_of_a_short_flow_need_channels_after_a_round_trip() {
    let mut r = receiver(&[11]);
    r.packet(control(0, NOTIFY));
    for packet in 0..9 {
        assert_eq!(r.packet(data(0, packet + 1, packet.into())), []);
    }
    // The flow should have arrived after 11 packet times and a round trip, 261.28 us. Round 2 is the first after
    // that.
    let all = r.advance(at(PHASE_NS - 1));
    assert_eq!(offers(&all, REQUEST), [(0, 2, 1, 2), (0, 3, 1, 2)]);
    r.packet(offer(0, GRANT, 3, 1, 2));
    // One channel of four: a token per 48 us, and a window of two. Packets 9 and 10 count as unanswered until later
    // data arrives.
    assert_eq!(tokens(&r.advance(at(PHASE_NS))), [(0, 12, 9, PHASE_NS)]);
    assert_eq!(kinds(&r.packet(data(0, 12, 9))), []);
    assert_eq!(tokens(&r.advance(at(PHASE_NS + 150_000))), [(0, 13, 10, PHASE_NS + 48_000)]);
    assert_eq!(kinds(&r.packet(data(0, 13, 10))), [Kind::ACK]);
    assert_eq!(r.advance(at(10 * PHASE_NS)), []);
    assert!(r.machine.inbox.is_empty());
}

#[test]
fn a_packet_that_does_not_answer_its_token_gets_another_one() {
    let mut r = receiver(&[12]);
    r.packet(control(0, NOTIFY));
    r.advance(at(0));
    r.packet(offer(0, GRANT, 0, 1, 12));
    r.advance(at(PHASE_NS - 1));
    for packet in 0..12 {
        let sent = tokens(&r.advance(at(PHASE_NS + packet * 48_000)));
        assert_eq!(sent, [(0, packet as u32 + 1, packet, PHASE_NS + packet * 48_000)]);
        if packet != 5 {
            r.packet(data(0, packet as u32 + 1, packet));
        }
    }
    // The last token left 528 us after the beginning of the phase, which has 672 us. A round trip later the channel
    // asks again.
    let again = tokens(&r.advance(at(2 * PHASE_NS - 1)));
    assert_eq!(again, [(0, 13, 5, PHASE_NS + 14 * 48_000)]);
}

#[test]
fn an_announcement_is_repeated_until_it_is_answered() {
    let mut s = sender(&[100, 2]);
    s.open(0);
    let times: Vec<u64> = s.advance(at(2_000_000)).iter().map(|p| p.sent_at.0 / 1000).collect();
    // Three round trips, then twice as long each time.
    assert_eq!(times, [387_840, 387_840 * 3]);
    s.packet(control(0, NOTED));
    assert_eq!(s.advance(at(100_000_000)), []);
    assert_eq!(s.table.get(FlowId(0)).stats.timeouts, 2);
    // A flow that has sent everything asks after 10 ms.
    s.open(1);
    s.packet(control(1, NOTED));
    assert_eq!(kinds(&s.advance(at(109_999_999))), []);
    assert_eq!(kinds(&s.advance(at(110_000_000))), [NOTIFY]);
    assert_eq!(s.packet(control(1, Kind::ACK)), []);
    assert_eq!((s.table.get(FlowId(1)).closed, s.advance(at(1_000_000_000))), (true, vec![]));
    // The receiver answers with the ACK again.
    let mut r = receiver(&[1]);
    assert_eq!(kinds(&r.packet(data(0, 1, 0))), [Kind::ACK]);
    assert_eq!(kinds(&r.packet(control(0, NOTIFY))), [Kind::ACK]);
}

#[test]
fn a_receiver_forgets_a_flow_that_its_sender_does_not_have() {
    let mut s = sender(&[100]);
    assert_eq!(kinds(&s.packet(offer(0, REQUEST, 0, 4, 100))), [UNKNOWN]);
    let mut r = receiver(&[100]);
    r.packet(control(0, NOTIFY));
    r.advance(at(0));
    r.packet(control(0, UNKNOWN));
    assert_eq!((r.advance(at(10 * PHASE_NS)), r.machine.inbox.is_empty()), (vec![], true));
}

#[test]
fn a_choice_goes_by_missing_packets_or_is_random() {
    let bid = |flow, missing, channels| Bid { flow: FlowId(flow), missing, channels };
    let mut rng = Rng::stream(1, "choices", &[]);
    let mut chosen = |shortest: bool| {
        let mut bids = vec![bid(0, 30, 3), bid(1, 10, 2), bid(2, 20, 1), bid(3, 10, 1)];
        let mut all = Vec::new();
        choose(&mut bids, 5, shortest, &mut rng, |bid| all.push((bid.flow.0, bid.channels)));
        assert!(bids.is_empty());
        all
    };
    assert_eq!(chosen(true), [(1, 2), (3, 1), (2, 1), (0, 1)]);
    let mut first = [0; 4];
    for _ in 0..4000 {
        let all = chosen(false);
        first[all[0].0 as usize] += 1;
        assert_eq!(all.iter().map(|(_, channels)| channels).sum::<u8>(), 5);
    }
    // A quarter each, within four standard deviations.
    assert!(first.iter().all(|count| (890..=1110).contains(count)), "{first:?}");
}

/// All n hosts have flows to all others, and a channel each. The unmatched share after r rounds of random choices is
/// at most n / 4^r: each round resolves three quarters of the requests on average (T. Anderson et al., "High-speed
/// switch scheduling for local-area networks", 1993). The first round of requests leaves (1 - 1/n)^n of the hosts
/// without a grant, so that about 1 - 1/e are matched.
#[test]
fn rounds_match_all_but_a_share_of_the_hosts() {
    let n = 16;
    let mut rng = Rng::stream(7, "matching", &[]);
    let mut matched_after = [0u32; 5];
    let trials = 500;
    for _ in 0..trials {
        let (mut receivers, mut senders) = (vec![0u8; n], vec![0u8; n]);
        for matched in matched_after.iter_mut().skip(1) {
            let mut grants = vec![Vec::new(); n];
            for (s, used) in senders.iter().enumerate() {
                let requests = (0..n).filter(|r| receivers[*r] == 0 && *r != s);
                let mut bids: Vec<Bid> =
                    requests.map(|r| Bid { flow: FlowId((s * n + r) as u32), missing: 1, channels: 1 }).collect();
                choose(&mut bids, 1 - used, false, &mut rng, |bid| grants[bid.flow.index() % n].push(bid));
            }
            for (r, bids) in grants.iter_mut().enumerate() {
                choose(bids, 1 - receivers[r], false, &mut rng, |bid| {
                    senders[bid.flow.index() / n] = 1;
                    receivers[r] = 1;
                });
            }
            assert_eq!(receivers.iter().sum::<u8>(), senders.iter().sum::<u8>());
            *matched += u32::from(receivers.iter().sum::<u8>());
        }
    }
    let share = matched_after.map(|matched| f64::from(matched) / f64::from(trials * n as u32));
    assert!((share[1] - 0.64).abs() < 0.02, "{share:?}: 1 - (1 - 1/15)^15 = 0.645");
    assert!(share[4] >= 1.0 - n as f64 / 256.0, "{share:?}");
    assert!(share.windows(2).all(|pair| pair[0] < pair[1]), "{share:?}");
}

/// One flow has all channels in all phases: tokens leave at the rate of the link, and no faster.
#[test]
fn one_flow_uses_the_link_without_pauses_between_phases() {
    let flow = script::flow(0, 400 * MSS);
    let host = || Script::new(Dcpim::new(&Params::defaults(), &env()), vec![flow.clone()]);
    let mut pipe = Pipe::new(host(), host(), Dur::from_us(50));
    pipe.run(|_| Fate::Pass);
    let times: Vec<u64> = pipe.log.iter().filter(|p| p.kind == TOKEN).map(|p| p.sent_at.0 / 1000).collect();
    assert_eq!((times.len(), times[0]), (400, PHASE_NS));
    for (phase, end) in (2..=5).map(|phase| (phase, phase * PHASE_NS)) {
        let before = times.iter().filter(|time| (end - PHASE_NS..end).contains(time)).count();
        assert_eq!(before, 57, "phase {phase}: 672.256 us, a token at the start and one per 12 us");
    }
}

#[test]
fn problems_name_the_parameter() {
    let keys = |params: &Params| check(params, &env()).into_iter().map(|problem| problem.key).collect::<Vec<_>>();
    let short = Auto::Set(Dur::from_us(129));
    assert_eq!(keys(&Params::defaults()), [""; 0]);
    let params = Params { window_timeout: short, resend: short, notify_after: short, idle: short, ..Params::defaults() };
    assert_eq!(keys(&params), ["window_timeout", "resend", "notify_after", "idle"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(patterns(200)))]

    /// Whatever is lost, late or duplicated: all flows arrive, and a host never has more channels than k.
    #[test]
    fn all_flows_arrive(
        sizes in prop::collection::vec(1u64..60_000, 1..6),
        channels in 1u32..=4,
        rounds in 1u32..=4,
        fates in fates(300, &[]),
    ) {
        let params = Params { channels, rounds, ..Params::defaults() };
        let host = || Script::new(Dcpim::new(&params, &env()), both_ways(&sizes));
        let mut pipe = Pipe::new(host(), host(), Dur::from_us(50));
        pipe.watch = |host| {
            let all = host.machine.inbox.channels();
            assert!(all.iter().all(|channels| *channels <= host.machine.config.channels), "{all:?}");
        };
        pipe.run_fates(fates);
        for host in &pipe.hosts {
            prop_assert!(host.machine.inbox.is_empty() && host.machine.outgoing.is_empty());
        }
    }
}

use super::*;
use crate::kit::published::{DATA_MINING, WEB_SEARCH};
use crate::kit::published::{LAWS, PAYLOAD, passes};
use crate::kit::script::{self, Script};
use crate::packet::Kind;
use crate::policy_host::PolicyHost;
use crate::policy_script::PolicyScript;
use crate::transport::{AnyTransport, dctcp, newreno};
use base::given::{Given, GivenPart, Offered, Offers};
use base::params::{Params as _, Raw};
use base::{Dur, Fraction, Time};

/// Web search in round bytes, as in the tables of other simulators.
const WEB_SEARCH_BYTES: [(u64, f64); 12] = [
    (0, 0.0),
    (10_000, 0.15),
    (20_000, 0.2),
    (30_000, 0.3),
    (50_000, 0.4),
    (80_000, 0.53),
    (200_000, 0.6),
    (1_000_000, 0.7),
    (2_000_000, 0.8),
    (5_000_000, 0.9),
    (10_000_000, 0.97),
    (30_000_000, 1.0),
];
const DATA_MINING_BYTES: [(u64, f64); 6] =
    [(0, 0.0), (10_000, 0.8), (400_000, 0.9), (3_160_000, 0.95), (100_000_000, 0.98), (1_000_000_000, 1.0)];

fn workload(load: u64, sizes: &[(u64, f64)]) -> Offered {
    Offered { load: Some(Fraction(load * 1_000_000)), sizes: sizes.to_vec() }
}

fn published() -> Params {
    Params { thresholds: Auto::Set(Thresholds::Published), ..Params::defaults() }
}

/// Returns the thresholds of `published` for these workloads, in packets.
fn packets(workloads: &[Offered]) -> Result<Vec<u64>, String> {
    let offers = Offers::new(|| workloads.to_vec());
    let found = thresholds(&published(), &Env { offered: &offers, ..script::env() });
    found.map(|bytes| bytes.iter().map(|bytes| bytes / 1460).collect())
}

fn given(text: &str) -> Params {
    let limits = Thresholds::parse(&Raw::Str(text.to_owned())).expect("limits");
    Params { thresholds: Auto::Set(limits), ..Params::defaults() }
}

fn machine(params: &Params) -> Pias {
    Pias::new(params, &script::env())
}

/// A host with a flow of a thousand packets under PIAS; it sends ten packets at once.
fn script(params: &Params) -> PolicyScript<Pias> {
    let mut tcp = newreno::Params::defaults();
    (tcp.tcp.init_window, tcp.tcp.handshake) = (Auto::Set(10), false);
    (tcp.tcp.min_rto, tcp.tcp.init_rto) = (Auto::Set(Dur::from_ms(1)), Auto::Set(Dur::from_ms(1)));
    let transport = AnyTransport::NewReno(newreno::NewReno::new(&tcp, &script::env()));
    PolicyScript::new(Script::new(transport, vec![script::flow(0, 1000 * 1460)]), PolicyHost::new(machine(params), &META, 0))
}

fn classes(packets: &[Packet]) -> Vec<u8> {
    packets.iter().map(|packet| packet.prio).collect()
}

fn ack(segments: u64) -> Packet {
    Packet { offset: segments * 1460, ..Packet::new(FlowId(0), Kind::ACK, 40) }
}

fn ms(n: u64) -> Time {
    Time::ZERO + Dur::from_ms(n)
}

#[test]
fn golden_classes_of_web_search_at_load_0_8() {
    let workloads = Offers::new(|| vec![workload(800, &WEB_SEARCH)]);
    let pias = Pias::new(&published(), &Env { offered: &workloads, ..script::env() });
    assert_eq!(pias.thresholds, [1_327_140, 1_940_340, 2_406_080, 2_861_600, 3_128_780, 3_412_020, 3_626_640]);
    let rows =
        [(0, 0), (1_327_139, 0), (1_327_140, 1), (2_861_599, 3), (2_861_600, 4), (3_626_639, 6), (3_626_640, 7), (29_200_000, 7)];
    for (bytes, class) in rows {
        assert_eq!(pias.class(bytes), class, "{bytes}");
    }
}

/// At load 0.8 of web search the classes carry 28.6, 8.5, 5.4, 4.8, 2.6, 2.6, 1.9 and 45.5 percent of the bytes, and 26.4 percent of the
/// flows pass the first threshold.
#[test]
fn golden_shares_of_the_classes() {
    let bytes: Vec<u64> = LAWS[0].thresholds[3].iter().map(|packets| packets * PAYLOAD).collect();
    // The mean of min(size, limit), by pieces between which the distribution is linear.
    let mean_below = |limit: u64| -> f64 {
        let piece = |pair: &[(u64, f64)]| {
            let [(x0, p0), (x1, p1)] = [pair[0], pair[1]].map(|(x, p)| (x as f64, p));
            let limit = limit as f64;
            let mid = limit.clamp(x0, x1);
            let below = if x1 > x0 { (mid - x0) / (x1 - x0) } else { f64::from(u8::from(limit >= x0)) };
            (p1 - p0) * (below * (x0 + mid) / 2.0 + (1.0 - below) * limit)
        };
        WEB_SEARCH.windows(2).map(piece).sum::<f64>() + WEB_SEARCH[0].1 * WEB_SEARCH[0].0 as f64
    };
    let mut ends: Vec<f64> = bytes.iter().map(|limit| mean_below(*limit)).collect();
    let all = mean_below(u64::MAX);
    ends.push(all);
    let mut before = 0.0;
    for (end, wanted) in ends.into_iter().zip([28.6, 8.5, 5.4, 4.8, 2.6, 2.6, 1.9, 45.5]) {
        let share = 100.0 * (end - before) / all;
        assert!((share - wanted).abs() < 0.1, "{share}, not {wanted}");
        before = end;
    }
    assert!(passes(&WEB_SEARCH, &(bytes[0], 1.0 - 0.264)));
}

#[test]
fn published_is_the_row_nearest_to_the_load() {
    let rows = LAWS[0].thresholds;
    for (load, row) in [(100, 0), (500, 0), (549, 0), (550, 1), (700, 2), (750, 3), (800, 3), (900, 4), (1200, 4)] {
        assert_eq!(packets(&[workload(load, &WEB_SEARCH)]).unwrap(), rows[row], "{load}");
    }
    // Two workloads of one distribution offer their sum; a workload of another distribution, or
    // without a load, does not count.
    let other = workload(300, &[(1_000, 0.0), (100_000, 1.0)]);
    let long = Offered { load: None, sizes: DATA_MINING.to_vec() };
    assert_eq!(packets(&[workload(300, &WEB_SEARCH), other, long, workload(500, &WEB_SEARCH)]).unwrap(), rows[3]);
}

#[test]
fn published_knows_the_laws_in_all_their_tables() {
    for (sizes, law) in [(&WEB_SEARCH[..], 0), (&WEB_SEARCH_BYTES[..], 0), (&DATA_MINING[..], 1), (&DATA_MINING_BYTES[..], 1)] {
        assert_eq!(packets(&[workload(600, sizes)]).unwrap(), LAWS[law].thresholds[1]);
    }
    assert_eq!(packets(&[]), Err("no workload offers web search or data mining at a load".to_owned()));
    assert!(packets(&[workload(600, &[(1_000, 1.0)])]).is_err());
    let both = packets(&[workload(600, &WEB_SEARCH), workload(100, &DATA_MINING)]);
    assert_eq!(both, Err("the workloads offer both web search and data mining".to_owned()));
}

/// The number of thresholds follows the number of classes at the switches, for every distribution.
#[test]
fn auto_computes_thresholds_for_any_law_and_number_of_classes() {
    let strict = |classes: &str| GivenPart { slot: "qdisc", kind: "strict", values: vec![("classes", classes.to_owned())] };
    let offers = Offers::new(|| vec![workload(750, &[(0, 0.0), (1_000_000, 1.0)])]);
    for (given, count) in [(Given::new(vec![]), 7), (Given::new(vec![strict("2")]), 1), (Given::new(vec![strict("1")]), 0)] {
        let env = Env { given: &given, offered: &offers, ..script::env() };
        assert_eq!((check(&Params::defaults(), &env), Pias::new(&Params::defaults(), &env).thresholds.len()), (vec![], count));
    }
    // With two levels the first has the load 1 - sqrt(1/4), two thirds of the total: E[min(X, a)] =
    // a - a^2 / 2.
    let given = Given::new(vec![strict("2")]);
    let found = thresholds(&Params::defaults(), &Env { given: &given, offered: &offers, ..script::env() }).unwrap();
    assert!(found[0].abs_diff(422_650) <= 1, "{found:?}");
}

#[test]
fn thresholds_can_be_given() {
    let params = given("30pkt, 100KB,1MB");
    assert_eq!(machine(&params).thresholds, [43_800, 100_000, 1_000_000]);
    assert_eq!(params.thresholds.show(), "30pkt, 100KB, 1MB");
    for wrong in ["", "30pkt,", "30pkt 40pkt", "unlimited", "soon"] {
        assert!(Thresholds::parse(&Raw::Str(wrong.to_owned())).is_err(), "{wrong}");
    }
    assert!(Thresholds::parse(&Raw::Bool(true)).is_err());
}

#[test]
fn parameters_are_checked() {
    let strict = GivenPart { slot: "qdisc", kind: "strict", values: vec![("classes", "3".to_owned())] };
    let system = Given::new(vec![strict]);
    let messages = |params: &Params| {
        let problems = check(params, &Env { given: &system, ..script::env() });
        problems.into_iter().map(|problem| (problem.key, problem.message)).collect::<Vec<_>>()
    };
    assert_eq!(messages(&given("30pkt, 300pkt")), []);
    let falling = messages(&given("30pkt, 43800B"));
    assert_eq!(falling, [("thresholds", "`43800B` is not below the next threshold, `43800B`".to_owned())]);
    let many = messages(&given("1pkt, 2pkt, 3pkt"));
    assert_eq!(many, [("thresholds", "3 thresholds make 4 classes, the switches have 3".to_owned())]);
    let auto = messages(&Params::defaults());
    assert_eq!(auto, [("thresholds", "cannot use `auto`: no workload offers a load".to_owned())]);
    let message = "cannot use `published`: no workload offers web search or data mining at a load";
    assert_eq!(messages(&published()), [("thresholds", message.to_owned())]);
}

#[test]
fn packets_are_classed_by_their_first_byte() {
    let mut script = script(&given("2pkt, 4pkt"));
    // Segment 2 begins at the threshold: a class of two packets has two packets.
    assert_eq!(classes(&script.open(0)), [0, 0, 1, 1, 2, 2, 2, 2, 2, 2]);
    // A retransmission keeps its class.
    let again = script.advance(ms(1));
    assert_eq!(again.iter().map(|p| (p.offset, p.prio, p.has(Packet::RETX))).collect::<Vec<_>>(), [(0, 0, true)]);
}

#[test]
fn the_count_of_bytes_sent_is_that_of_the_host_module() {
    let mut script = script(&Params { count: Count::Sent, ..given("2pkt, 16060B") });
    // A packet counts before it is classed: segment 10 ends at the second threshold, eleven packets.
    assert_eq!(classes(&script.open(0)), [0, 0, 1, 1, 1, 1, 1, 1, 1, 1]);
    // A retransmission does not count, and is in the class that the flow has reached.
    for n in [1, 3] {
        assert_eq!(classes(&script.advance(ms(n))), [1]);
    }
    assert_eq!(classes(&script.packet(ack(10))), [1, 2]);
    // A threshold within a packet puts the packet into the next class; with the offset the packet's first byte counts.
    for (count, wanted) in [(Count::Sent, [0, 1, 2]), (Count::Offset, [0, 0, 1])] {
        let mut counted = Counted::default();
        let packets = (0..3).map(|n| Packet::data(FlowId(0), n * 1460, 1460, 40));
        let seen: Vec<u8> = packets.map(|packet| demotion::class(&[2000, 4000], counted.on_send(&packet, count))).collect();
        assert_eq!(seen, wanted);
    }
}

/// Timeouts at 1, 3 and 7 ms.
#[test]
fn three_timeouts_in_a_row_bring_a_flow_back_if_it_ages() {
    for (aging, count, third) in
        [(false, Count::Sent, 2), (true, Count::Sent, 0), (false, Count::Offset, 2), (true, Count::Offset, 0)]
    {
        let mut script = script(&Params { aging, count, ..given("2pkt, 4pkt") });
        script.open(0);
        // Eight segments arrive: the retransmitted segment is in the last class.
        script.packet(ack(8));
        let sent = script.advance(ms(7));
        assert_eq!(classes(&sent), [2, 2, third], "{aging} {count:?}");
        assert!(sent.iter().all(|packet| packet.offset == 8 * 1460));
        // Both counts start from here. Segment 10 begins two segments after the last ACK at the timeout; it is the first
        // that counts as sent.
        let next = match (aging, count) {
            (false, _) => [2, 2],
            (true, Count::Offset) => [0, 1],
            (true, Count::Sent) => [0, 0],
        };
        assert_eq!(classes(&script.packet(ack(9))), next, "{aging} {count:?}");
    }
}

#[test]
fn an_ack_of_new_bytes_resets_the_count_of_timeouts() {
    let mut script = script(&Params { aging: true, ..given("2pkt, 4pkt") });
    script.open(0);
    script.packet(ack(8));
    assert_eq!(classes(&script.advance(ms(3))), [2, 2]);
    // An ACK without new bytes does not.
    script.packet(ack(8));
    script.packet(ack(9));
    let sent = script.advance(ms(60));
    let timed: Vec<_> = sent.iter().filter(|packet| packet.offset == 9 * 1460).map(|packet| packet.prio).collect();
    assert_eq!(timed[..3], [2, 2, 0]);
}

#[test]
fn packets_without_payload_are_in_the_first_class() {
    let mut params = dctcp::Params::defaults();
    params.tcp.handshake = true;
    let transport = || AnyTransport::Dctcp(dctcp::Dctcp::new(&params, &script::env()));
    let flows = || vec![script::flow(0, 1000 * 1460)];
    let policy_host = || PolicyHost::new(machine(&given("1B")), &META, 0);
    let mut sender = PolicyScript::new(Script::new(transport(), flows()), policy_host());
    assert_eq!(classes(&sender.open(0)), [0], "SYN");
    let mut receiver = PolicyScript::new(Script::new(transport(), flows()).at_host(1), policy_host());
    let data = Packet { prio: 1, ..Packet::data(FlowId(0), 1460, 1460, 40) };
    let acks = receiver.packet(data);
    assert_eq!((acks[0].kind, acks[0].prio), (Kind::ACK, 0));
}

#[test]
fn nothing_is_left_of_a_closed_flow() {
    let mut script = script(&given("1pkt"));
    script.open(0);
    script.host.give_up(0);
    assert_eq!(script.sent(), []);
    let PolicyScript { host, policy_host } = &mut script;
    assert_eq!(host.io.events.len(), 0);
    assert!(policy_host.policy().flows.is_empty());
}

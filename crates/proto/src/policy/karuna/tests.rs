use super::*;
use crate::flow::Flow;
use crate::kit::script::{self, Script};
use crate::packet::Kind;
use crate::policy_host::PolicyHost;
use crate::policy_script::PolicyScript;
use crate::transport::{AnyTransport, newreno};
use base::given::{Given, GivenPart, Offered, Offers};
use base::params::{Params as _, Raw};
use base::{Dur, Time};

/// The bounds for web search, in equal shares of bytes.
const SIZES: &str = "2060060B, 4258820B, 6602120B, 8757080B, 15328540B, 23319120B";

fn limits(text: &str) -> Limits {
    Limits::parse(&Raw::Str(text.to_owned())).expect("limits")
}

/// Parameters with flows of type 2 only, or of type 3 only.
fn params(type2: bool) -> Params {
    Params {
        type2_fraction: if type2 { Fraction::ONE } else { Fraction(0) },
        sizes: Auto::Set(limits(SIZES)),
        thresholds: Auto::Set(Thresholds::List(limits("2pkt, 4pkt"))),
        ..Params::defaults()
    }
}

/// A host with flows of these (size in bytes, deadline), ten packets of each at once and timeouts
/// after 1, 3 and 7 ms.
fn script(params: &Params, flows: &[(u64, Option<Time>)]) -> PolicyScript<Karuna> {
    let mut tcp = newreno::Params::defaults();
    (tcp.tcp.init_window, tcp.tcp.handshake) = (Auto::Set(10), false);
    (tcp.tcp.min_rto, tcp.tcp.init_rto) = (Auto::Set(Dur::from_ms(1)), Auto::Set(Dur::from_ms(1)));
    let transport = AnyTransport::NewReno(newreno::NewReno::new(&tcp, &script::env()));
    let flow = |(&(size, deadline), id)| Flow { deadline, ..script::flow(id, size) };
    let flows = flows.iter().zip(0..).map(flow).collect();
    PolicyScript::new(Script::new(transport, flows), PolicyHost::new(Karuna::new(params, &script::env()), &META, 0))
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
fn golden_classes() {
    let deadline = Some(ms(20));
    let flows = [
        (100_000, None),
        (2_060_060, None),
        (2_060_061, None),
        (5_000_000, None),
        (30_000_000, None),
        (100_000, deadline),
        (30_000_000, deadline),
    ];
    for (type2, wanted) in [(true, [1, 1, 2, 3, 7, 0, 0]), (false, [1, 1, 1, 1, 1, 0, 0])] {
        let mut script = script(&params(type2), &flows);
        let first: Vec<u8> = (0..flows.len() as u32).map(|flow| script.open(flow)[0].prio).collect();
        assert_eq!(first, wanted);
    }
}

#[test]
fn flows_of_unknown_size_go_down_by_bytes_sent() {
    let mut of_unknown = script(&params(false), &[(1000 * 1460, None)]);
    assert_eq!(classes(&of_unknown.open(0)), [1, 1, 2, 2, 3, 3, 3, 3, 3, 3]);
    // A retransmission keeps its class.
    assert_eq!(classes(&of_unknown.advance(ms(1))), [1]);
    let mut sent = script(&Params { count: Count::Sent, ..params(false) }, &[(1000 * 1460, None)]);
    sent.open(0);
    assert_eq!(classes(&sent.advance(ms(1))), [3]);
}

#[test]
fn flows_with_a_deadline_or_of_known_size_keep_their_class() {
    for (deadline, class) in [(Some(ms(1)), 0), (None, 3)] {
        let mut script = script(&Params { aging: false, ..params(true) }, &[(5_000_000, deadline)]);
        let mut sent = script.open(0);
        sent.extend(script.packet(ack(8)));
        sent.extend(script.advance(ms(40)));
        assert!(sent.len() > 14 && classes(&sent).iter().all(|seen| *seen == class), "{:?}", classes(&sent));
    }
}

/// Timeouts at 1, 3 and 7 ms, then at 15, 31 and 63 ms, and so on.
#[test]
fn three_timeouts_in_a_row_lift_a_flow_of_known_size_by_one_class() {
    let mut script = script(&params(true), &[(5_000_000, None)]);
    script.open(0);
    assert_eq!(classes(&script.advance(ms(7))), [3, 3, 2]);
    assert_eq!(classes(&script.advance(ms(63))), [2, 2, 1]);
    // The flow never enters the class of flows with deadlines.
    assert_eq!(classes(&script.advance(ms(511))), [1, 1, 1]);
}

#[test]
fn three_timeouts_in_a_row_bring_a_flow_of_unknown_size_back() {
    for (aging, third) in [(true, 1), (false, 3)] {
        let mut script = script(&Params { aging, ..params(false) }, &[(1000 * 1460, None)]);
        script.open(0);
        script.packet(ack(8));
        assert_eq!(classes(&script.advance(ms(7))), [3, 3, third]);
        // Bytes are counted from here on: the second segment is at the first threshold.
        assert_eq!(classes(&script.packet(ack(9))), [third, if aging { 2 } else { 3 }]);
    }
}

#[test]
fn an_ack_of_new_bytes_resets_the_count_of_timeouts() {
    let mut script = script(&params(true), &[(5_000_000, None)]);
    script.open(0);
    assert_eq!(classes(&script.advance(ms(3))), [3, 3]);
    script.packet(ack(8));
    // The count of consecutive timeouts starts again.
    assert_eq!(classes(&script.advance(ms(100)))[..3], [3, 3, 2]);
}

/// Over many flows the share is the fraction, and the drawn flows depend on nothing else.
#[test]
fn the_fraction_of_type_2_is_drawn_by_flow() {
    let known = |fraction: u64| -> Vec<bool> {
        let karuna = Karuna::new(&Params { type2_fraction: Fraction(fraction), ..params(true) }, &script::env());
        (0..10_000).map(|flow| karuna.is_known(FlowId(flow))).collect()
    };
    let share = |known: &[bool]| known.iter().filter(|known| **known).count();
    let third = known(333_333_333);
    assert!((3_150..3_520).contains(&share(&third)), "{}", share(&third));
    assert_eq!((share(&known(0)), share(&known(1_000_000_000))), (0, 10_000));
    // A larger fraction includes the flows of a smaller one.
    assert!(third.iter().zip(known(500_000_000)).all(|(less, more)| more || !less));
}

#[test]
fn packets_without_payload_are_in_the_first_class() {
    let mut tcp = newreno::Params::defaults();
    tcp.tcp.handshake = true;
    let transport = || AnyTransport::NewReno(newreno::NewReno::new(&tcp, &script::env()));
    let policy_host = || PolicyHost::new(Karuna::new(&params(true), &script::env()), &META, 0);
    let flows = || vec![script::flow(0, 30_000_000)];
    assert_eq!(classes(&PolicyScript::new(Script::new(transport(), flows()), policy_host()).open(0)), [0], "SYN");
    let mut receiver = PolicyScript::new(Script::new(transport(), flows()).at_host(1), policy_host());
    assert_eq!(classes(&receiver.packet(Packet { prio: 7, ..Packet::data(FlowId(0), 0, 1460, 40) })), [0], "ACK");
}

#[test]
fn nothing_is_left_of_a_closed_flow() {
    let mut script = script(&params(true), &[(5_000_000, None)]);
    script.open(0);
    script.host.give_up(0);
    script.sent();
    assert!(script.policy_host.policy().flows.is_empty());
}

#[test]
fn parameters_are_checked_only_for_types_that_have_flows() {
    let strict = |classes: &str| GivenPart { slot: "qdisc", kind: "strict", values: vec![("classes", classes.to_owned())] };
    let messages = |params: &Params, classes: &str| {
        let given = Given::new(vec![strict(classes)]);
        let problems = check(params, &Env { given: &given, ..script::env() });
        problems.into_iter().map(|problem| (problem.key, problem.message)).collect::<Vec<_>>()
    };
    assert_eq!(messages(&params(true), "8"), []);
    assert_eq!(messages(&params(true), "7"), [("sizes", "6 thresholds make 8 classes, the switches have 7".to_owned())]);
    assert_eq!(messages(&params(false), "4"), []);
    assert_eq!(messages(&params(false), "3"), [("thresholds", "2 thresholds make 4 classes, the switches have 3".to_owned())]);
    assert_eq!(messages(&Params::defaults(), "1"), [("sizes", "2 classes, the switches have 1".to_owned())]);
    let falling = Params { sizes: Auto::Set(limits("2KB, 1KB")), ..params(true) };
    assert_eq!(messages(&falling, "8"), [("sizes", "`2000B` is not below the next threshold, `1000B`".to_owned())]);
    let both = Params { type2_fraction: Fraction(500_000_000), ..Params::defaults() };
    let keys: Vec<_> = messages(&both, "8").into_iter().map(|(key, _)| key).collect();
    assert_eq!(keys, ["sizes", "thresholds"]);
}

#[test]
fn auto_fills_the_classes_below_the_first() {
    let offers = Offers::new(|| vec![Offered { load: Some(Fraction(750_000_000)), sizes: vec![(0, 0.0), (1_000_000, 1.0)] }]);
    let params = Params { type2_fraction: Fraction(500_000_000), ..Params::defaults() };
    let karuna = Karuna::new(&params, &Env { offered: &offers, ..script::env() });
    assert_eq!((karuna.sizes.len(), karuna.thresholds.len()), (6, 6));
    // With uniform sizes, flows of up to s bytes have the share s^2 of the bytes.
    assert!(karuna.sizes[0].abs_diff(377_965) <= 1, "{:?}", karuna.sizes);
    assert!(karuna.notes()[0].starts_with("thresholds ") && karuna.notes()[0].contains("mean FCT"));
}

use super::*;
use crate::flow::Flow;
use crate::kit::script::{self, Script};
use crate::policy_host::PolicyHost;
use crate::policy_script::PolicyScript;
use crate::transport::{AnyTransport, newreno};
use base::Fraction;
use base::given::{Given, GivenPart, Offered, Offers};
use base::params::Params as _;

/// A host with flows of these (size in bytes, deadline); it sends ten packets of each at once.
fn script(params: &Params, flows: &[(u64, Option<Time>)]) -> PolicyScript<EdfSjf> {
    let mut tcp = newreno::Params::defaults();
    (tcp.tcp.init_window, tcp.tcp.handshake) = (Auto::Set(10), false);
    let transport = AnyTransport::NewReno(newreno::NewReno::new(&tcp, &script::env()));
    let flow = |(&(size, deadline), id)| Flow { deadline, ..script::flow(id, size) };
    let flows = flows.iter().zip(0..).map(flow).collect();
    PolicyScript::new(Script::new(transport, flows), PolicyHost::new(EdfSjf::new(params, &script::env()), &META, 0))
}

/// Returns the 40 bits by which a port orders packets.
fn number(packet: &Packet) -> u64 {
    (u64::from(packet.prio) << 32) | u64::from(packet.rank)
}

fn ms(n: u64) -> Time {
    Time::ZERO + Dur::from_ms(n)
}

fn ack(segments: u64) -> Packet {
    Packet { offset: segments * 1460, ..Packet::new(FlowId(0), Kind::ACK, 40) }
}

fn quantised() -> Params {
    let sizes = Limits::parse(&Raw::Str("3pkt, 20KB, 1MB".to_owned())).expect("limits");
    Params { order: Order::Quantised, sizes: Auto::Set(sizes), ..Params::defaults() }
}

#[test]
fn deadlines_go_before_sizes_and_each_in_its_order() {
    // In the order in which ports must serve them.
    let flows = [
        (9_000_000, Some(ms(5))),
        (1, Some(Time(ms(5).0 + 256))),
        (1, Some(ms(25))),
        (1, Some(Time::ZERO + Dur::from_secs(100))),
        (1, Some(Time((Dur::from_secs(100)).0 + 256))),
        (1, None),
        (1459, None),
        (500_000_000_000, None),
        (500_000_000_001, None),
    ];
    let mut script = script(&Params::defaults(), &flows);
    let first: Vec<u64> = (0..flows.len() as u32).map(|flow| number(&script.open(flow)[0])).collect();
    assert!(first.is_sorted_by(|a, b| a < b), "{first:x?}");
    assert_eq!((first[0], first[5]), (ms(5).0 >> 8, (1 << 39) | 1));
}

/// All packets of a flow have one rank, retransmissions included.
#[test]
fn a_flow_keeps_its_rank() {
    let mut script = script(&Params::defaults(), &[(100 * 1460, Some(ms(9)))]);
    let mut sent = script.open(0);
    sent.extend(script.packet(ack(5)));
    sent.extend(script.advance(ms(40)));
    assert!(sent.len() > 12 && sent.iter().any(|packet| packet.has(Packet::RETX)));
    assert!(sent.iter().all(|packet| number(packet) == ms(9).0 >> 8));
}

/// Beyond 140 s and 549 GB ranks are equal, and still in the range of their kind.
#[test]
fn ranks_saturate() {
    assert_eq!(by_deadline(Time::MAX), by_deadline(Time::ZERO + Dur::from_secs(141)));
    assert!(by_deadline(Time::ZERO + Dur::from_secs(140)) < by_deadline(Time::MAX) && by_deadline(Time::MAX) < by_size(0));
    assert_eq!((by_size(u64::MAX), by_deadline(Time::ZERO)), ((1 << 40) - 1, 1));
}

#[test]
fn packets_without_payload_go_first() {
    let mut tcp = newreno::Params::defaults();
    tcp.tcp.handshake = true;
    let transport = || AnyTransport::NewReno(newreno::NewReno::new(&tcp, &script::env()));
    for params in [Params::defaults(), quantised()] {
        let policy_host = || PolicyHost::new(EdfSjf::new(&params, &script::env()), &META, 0);
        let flows = || vec![script::flow(0, 9_000_000)];
        let syn = PolicyScript::new(Script::new(transport(), flows()), policy_host()).open(0);
        assert_eq!((syn[0].kind, number(&syn[0])), (Kind::SYN, 0));
        let mut receiver = PolicyScript::new(Script::new(transport(), flows()).at_host(1), policy_host());
        let acks = receiver.packet(Packet { prio: 7, rank: 7, ..Packet::data(FlowId(0), 0, 1460, 40) });
        assert_eq!((acks[0].kind, number(&acks[0])), (Kind::ACK, 0));
    }
}

#[test]
fn the_remaining_size_falls_with_acks() {
    let flow = [(100 * 1460, None)];
    let left = |params: &Params| {
        let mut script = script(params, &flow);
        let mut seen = vec![script.open(0)];
        seen.extend([4, 5].map(|segments| script.packet(ack(segments))));
        // An old ACK changes nothing.
        script.packet(ack(3));
        seen.push(script.advance(ms(15)));
        let sizes = seen.iter().filter_map(|sent| sent.last()).map(|packet| (number(packet) & MOST) / 1460);
        sizes.collect::<Vec<_>>()
    };
    assert_eq!(left(&Params { by: By::Remaining, ..Params::defaults() }), [100, 96, 95, 95]);
    assert_eq!(left(&Params::defaults()), [100; 4]);
}

#[test]
fn quantised_classes_are_by_time_left_and_size() {
    let flows = [(1, Some(ms(25))), (9_000_000, Some(ms(10))), (3 * 1460, None), (3 * 1460 + 1, None), (1_000_001, None)];
    let mut script = script(&quantised(), &flows);
    let classes: Vec<_> = (0..5).map(|flow| (script.open(flow)[0].prio, script.open(flow)[0].rank)).collect();
    assert_eq!(classes, [(3, 0), (0, 0), (4, 0), (5, 0), (7, 0)]);
}

/// A flow moves up as its deadline approaches, and stays there after the deadline.
#[test]
fn quantised_classes_rise_with_time() {
    let mut script = script(&quantised(), &[(1000 * 1460, Some(ms(25)))]);
    script.open(0);
    let mut class_at = |at, segments| {
        script.host.now = at;
        script.packet(ack(segments)).last().map(|packet| packet.prio)
    };
    let classes = [(ms(4), 1), (ms(5), 2), (ms(12), 3), (ms(15), 4), (ms(30), 5)].map(|(at, segments)| class_at(at, segments));
    assert_eq!(classes, [3, 2, 1, 0, 0].map(Some));
}

#[test]
fn nothing_is_left_of_a_closed_flow() {
    let mut script = script(&Params { by: By::Remaining, ..Params::defaults() }, &[(100_000, None)]);
    script.open(0);
    assert!(!script.policy_host.policy().acked.is_empty());
    script.host.give_up(0);
    script.sent();
    assert!(script.policy_host.policy().acked.is_empty());
}

#[test]
fn bounds_are_checked_where_they_count() {
    let strict = GivenPart { slot: "qdisc", kind: "strict", values: vec![("classes", "7".to_owned())] };
    let system = Given::new(vec![strict]);
    let messages = |params: &Params| {
        let problems = check(params, &Env { given: &system, ..script::env() });
        problems.into_iter().map(|problem| (problem.key, problem.message)).collect::<Vec<_>>()
    };
    let times = Bounds::parse(&Raw::Str("10ms, 10ms, 20ms".to_owned())).unwrap();
    let wrong = Params { times, sizes: Auto::Set(Limits::parse(&Raw::Str("1KB, 2KB".to_owned())).unwrap()), ..quantised() };
    let found = [
        ("times", "`10ms, 10ms, 20ms` is not three rising times"),
        ("sizes", "`1000B, 2000B` is not three rising sizes"),
        ("order", "8 classes, the switches have 7"),
    ];
    assert_eq!(messages(&wrong), found.map(|(key, message)| (key, message.to_owned())));
    assert_eq!(messages(&Params { order: Order::Exact, ..wrong }), []);
    let auto = messages(&Params { sizes: Auto::Auto, ..quantised() });
    assert_eq!(auto[0], ("sizes", "cannot use `auto`: no workload offers a load".to_owned()));
    assert!(Bounds::parse(&Raw::Str("10ms 20ms".to_owned())).is_err() && Bounds::parse(&Raw::Bool(true)).is_err());
}

#[test]
fn quartiles_of_sizes_are_those_of_the_workload() {
    let offers = Offers::new(|| vec![Offered { load: Some(Fraction::ONE), sizes: vec![(0, 0.0), (4_000, 1.0)] }]);
    let found = sizes(&Params::defaults(), &Env { offered: &offers, ..script::env() });
    assert_eq!(found, Ok(vec![1_000, 2_000, 3_000]));
}

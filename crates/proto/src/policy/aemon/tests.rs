use super::*;
use crate::flow::Flow;
use crate::kit::published::WEB_SEARCH;
use crate::kit::script::{self, Script};
use crate::packet::Kind;
use crate::policy_host::PolicyHost;
use crate::policy_script::PolicyScript;
use crate::transport::{AnyTransport, newreno};
use base::FlowId;
use base::Fraction;
use base::given::{Given, GivenPart, Offered, Offers};
use base::params::{Params as _, Raw};

fn params(levels: u32, text: &str) -> Params {
    let list = Thresholds::parse(&Raw::Str(text.to_owned())).expect("limits");
    Params { levels, thresholds: Auto::Set(list) }
}

fn four() -> Params {
    params(4, "2pkt, 4pkt, 6pkt")
}

fn eight() -> Params {
    params(8, "1pkt, 2pkt, 3pkt, 4pkt, 5pkt, 6pkt, 7pkt")
}

/// A host with a flow of a thousand packets that starts at 1 ms, ten of them at once.
fn script(params: &Params, deadline: Option<Time>) -> PolicyScript<Aemon> {
    let mut tcp = newreno::Params::defaults();
    (tcp.tcp.init_window, tcp.tcp.handshake) = (Auto::Set(10), false);
    (tcp.tcp.min_rto, tcp.tcp.init_rto) = (Auto::Set(Dur::from_ms(100)), Auto::Set(Dur::from_ms(100)));
    let transport = AnyTransport::NewReno(newreno::NewReno::new(&tcp, &script::env()));
    let flow = Flow { deadline, start: ms(1.0), ..script::flow(0, 1000 * 1460) };
    let mut script =
        PolicyScript::new(Script::new(transport, vec![flow]), PolicyHost::new(Aemon::new(params, &script::env()), &META, 0));
    script.host.now = ms(1.0);
    script
}

fn classes(packets: &[Packet]) -> Vec<u8> {
    packets.iter().map(|packet| packet.prio).collect()
}

fn ms(n: f64) -> Time {
    Time((n * 1e9) as u64)
}

/// (time since the start of a flow of 10 ms, level of four).
#[test]
fn golden_levels() {
    let aemon = Aemon::new(&four(), &script::env());
    for (at, level) in [(0.0, 3), (2.0, 3), (2.499, 3), (2.5, 2), (5.0, 1), (7.499, 1), (7.5, 0), (10.0, 0), (11.0, 0)] {
        assert_eq!(aemon.urgent(ms(3.0), ms(13.0), ms(3.0 + at)), level, "{at}");
    }
    // A flow that has no time at all has the highest urgency.
    assert_eq!(aemon.urgent(ms(3.0), ms(3.0), ms(3.0)), 0);
}

/// With eight levels, urgency steps at k / (8 - k).
#[test]
fn eight_levels_step_at_eighths_of_the_time() {
    let aemon = Aemon::new(&eight(), &script::env());
    for k in 1..8u8 {
        let urgency = f64::from(k) / f64::from(8 - k);
        let reached = ms(16.0 * urgency / (1.0 + urgency));
        let at = |now| aemon.urgent(Time::ZERO, ms(16.0), now);
        assert_eq!((at(Time(reached.0 + 1_000)), at(Time(reached.0 - 1_000))), (7 - k, 8 - k), "{k}");
    }
}

#[test]
fn urgent_flows_rise_in_odd_classes() {
    let mut script = script(&four(), Some(ms(11.0)));
    assert_eq!(classes(&script.open(0)), [7; 10]);
    let mut class_at = |at, segments: u64| {
        script.host.now = ms(at);
        let ack = Packet { offset: segments * 1460, ..Packet::new(FlowId(0), Kind::ACK, 40) };
        script.packet(ack).iter().map(|packet| packet.prio).max()
    };
    let seen = [(3.0, 1), (3.5, 2), (6.0, 3), (8.5, 4), (20.0, 5)].map(|(at, segments)| class_at(at, segments));
    assert_eq!(seen, [7, 5, 3, 1, 1].map(Some));
}

#[test]
fn flows_without_a_deadline_fall_in_even_classes() {
    let mut four_levels = script(&four(), None);
    assert_eq!(classes(&four_levels.open(0)), [0, 0, 2, 2, 4, 4, 6, 6, 6, 6]);
    // A retransmission keeps its class.
    assert_eq!(classes(&four_levels.advance(ms(102.0))), [0]);
    assert_eq!(classes(&script(&eight(), None).open(0)), [0, 2, 4, 6, 8, 10, 12, 14, 14, 14]);
}

#[test]
fn packets_without_payload_are_in_the_first_class() {
    let mut tcp = newreno::Params::defaults();
    tcp.tcp.handshake = true;
    let transport = || AnyTransport::NewReno(newreno::NewReno::new(&tcp, &script::env()));
    let policy_host = || PolicyHost::new(Aemon::new(&four(), &script::env()), &META, 0);
    let flows = || vec![Flow { deadline: Some(ms(5.0)), ..script::flow(0, 30_000_000) }];
    assert_eq!(classes(&PolicyScript::new(Script::new(transport(), flows()), policy_host()).open(0)), [0], "SYN");
    let mut receiver = PolicyScript::new(Script::new(transport(), flows()).at_host(1), policy_host());
    assert_eq!(classes(&receiver.packet(Packet { prio: 7, ..Packet::data(FlowId(0), 0, 1460, 40) })), [0], "ACK");
}

#[test]
fn parameters_are_checked() {
    let messages = |params: &Params, classes: &str| {
        let strict = GivenPart { slot: "qdisc", kind: "strict", values: vec![("classes", classes.to_owned())] };
        let given = Given::new(vec![strict]);
        let problems = check(params, &Env { given: &given, ..script::env() });
        problems.into_iter().map(|problem| (problem.key, problem.message)).collect::<Vec<_>>()
    };
    let one = |key, message: &str| vec![(key, message.to_owned())];
    assert_eq!((messages(&four(), "8"), messages(&eight(), "16")), (vec![], vec![]));
    assert_eq!(messages(&four(), "7"), one("levels", "8 classes, the switches have 7"));
    assert_eq!(messages(&eight(), "8"), one("levels", "16 classes, the switches have 8"));
    assert_eq!(messages(&params(4, "1pkt, 2pkt"), "8"), one("thresholds", "2 thresholds do not fit 4 levels"));
    let falling = messages(&params(4, "1pkt, 3pkt, 2pkt"), "8");
    assert_eq!(falling, one("thresholds", "`4380B` is not below the next threshold, `2920B`"));
    let none = messages(&params(3, "published"), "8");
    assert_eq!(none, one("thresholds", "cannot use `published`: published thresholds exist for 4 and 8 levels, not for 3"));
    assert_eq!(messages(&Params::defaults(), "8"), one("thresholds", "cannot use `auto`: no workload offers a load"));
}

/// Web search at load 0.8: the second, fourth and sixth published threshold, or all of them.
#[test]
fn published_thresholds_exist_for_four_and_eight_levels() {
    let offers = Offers::new(|| vec![Offered { load: Some(Fraction(800_000_000)), sizes: WEB_SEARCH.to_vec() }]);
    let env = Env { offered: &offers, ..script::env() };
    let found = |params: &Params| thresholds(params, &env).unwrap();
    assert_eq!(found(&params(4, "published")), [1_940_340, 2_861_600, 3_412_020]);
    assert_eq!(found(&params(8, "published"))[6], 3_626_640);
    assert_eq!(found(&Params { levels: 3, ..Params::defaults() }).len(), 2);
}

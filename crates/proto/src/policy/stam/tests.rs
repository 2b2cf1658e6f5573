use super::header::{CLASS_CHANGES, DECISIONS, END, ENDED, LAS_PACKETS, NO_DEADLINE, Order, State};
use super::*;
use crate::flow::Flow;
use crate::kit::script::{self, Script};
use crate::policy_host::PolicyHost;
use crate::policy_script::PolicyScript;
use crate::transport::{AnyTransport, dctcp};
use base::given::{Given, GivenPart};
use base::params::{Params as _, Raw};
use base::{Rate, Rng, Time};
use proptest::prelude::*;

const MSS: u64 = 1460;

fn given(thresholds: &str) -> Params {
    let limits = Thresholds::parse(&Raw::Str(thresholds.to_owned())).expect("limits");
    Params { thresholds: Auto::Set(limits), ..Params::defaults() }
}

fn env() -> Env<'static> {
    Env { nic_rate: Rate::from_gbps(10), ..script::env() }
}

fn us(us: u64) -> Time {
    Time::ZERO + Dur::from_us(us)
}

/// A flow of `packets` packets to host 1, with a deadline in microseconds or without.
fn flow(id: u32, packets: u64, deadline: Option<u64>) -> Flow {
    Flow { deadline: deadline.map(us), ..script::flow(id, packets * MSS) }
}

/// A host under DCTCP and STAM with an initial window of ten packets.
fn script(params: &Params, host: u32, flows: Vec<Flow>) -> PolicyScript<Stam> {
    let mut tcp = dctcp::Params::defaults();
    (tcp.tcp.init_window, tcp.tcp.handshake) = (Auto::Set(10), false);
    (tcp.tcp.min_rto, tcp.tcp.init_rto) = (Auto::Set(Dur::from_ms(1)), Auto::Set(Dur::from_ms(1)));
    let transport = AnyTransport::Dctcp(dctcp::Dctcp::new(&tcp, &env()));
    let mut script =
        PolicyScript::new(Script::new(transport, flows).at_host(host), PolicyHost::new(Stam::new(params, &env()), &META, 0));
    script.host.table.keep_counters(META.counters.len());
    script
}

impl PolicyScript<Stam> {
    /// Delivers a data packet to a receiver; `change` alters its header. Returns the ACK and its
    /// order.
    fn data(&mut self, flow: u32, n: u64, marked: bool, change: impl FnOnce(&mut State)) -> (Packet, Option<u8>) {
        let mut packet = Packet::data(FlowId(flow), n * MSS, MSS as u16, 40);
        packet.flags |= if marked { Packet::CE } else { Packet::ECT };
        let Flow { size_bytes, deadline, .. } = self.host.flows[flow as usize];
        let sent = (n + 1) * MSS;
        let left = deadline.map_or(0, |_| size_bytes - sent);
        let deadline = deadline.map_or(NO_DEADLINE, Time::ps);
        let mut state = State { sent, left, deadline, window: 10 * MSS, rtt: Dur::from_us(100).0 };
        change(&mut state);
        packet.set_tag(state, &mut self.host.ext);
        let acks = self.packet(packet);
        packet.free(&mut self.host.ext);
        assert_eq!((acks.len(), acks[0].kind, acks[0].prio), (1, Kind::ACK, 0), "ACKs travel in the first class");
        (acks[0], self.order(&acks[0]))
    }
    /// Returns the order of an ACK. Frees its header.
    fn order(&mut self, ack: &Packet) -> Option<u8> {
        let order = ack.has(Packet::TAGGED).then(|| ack.get_tag::<Order>(&self.host.ext).class);
        ack.free(&mut self.host.ext);
        order
    }
    /// Delivers an ACK of `packets` packets to a sender. With an order the ACK also echoes
    /// congestion.
    fn ack(&mut self, flow: u32, packets: u64, order: Option<u8>) -> Vec<Packet> {
        let mut ack = Packet { offset: packets * MSS, ..Packet::new(FlowId(flow), Kind::ACK, 40) };
        if let Some(class) = order {
            ack.flags |= Packet::ECE;
            ack.set_tag(Order { class }, &mut self.host.ext);
        }
        let sent = self.packet(ack);
        ack.free(&mut self.host.ext);
        sent
    }
    /// Returns the headers of data. Frees them.
    fn states(&mut self, sent: &[Packet]) -> Vec<State> {
        let read = |packet: &Packet| {
            let state = packet.get_tag(&self.host.ext);
            packet.free(&mut self.host.ext);
            state
        };
        sent.iter().map(read).collect()
    }
    fn counts(&self, flow: u32) -> Vec<u64> {
        self.host.table.counts(FlowId(flow)).to_vec()
    }
}

fn prios(packets: &[Packet]) -> Vec<u8> {
    packets.iter().map(|packet| packet.prio).collect()
}

#[test]
fn data_carries_the_state_of_its_flow() {
    let mut script = script(&given("2pkt, 4pkt"), 0, vec![flow(0, 100, Some(5_000)), flow(1, 100, None)]);
    let rtt = Dur::from_us(100).0;
    for (id, left, deadline) in [(0, 98 * MSS, us(5_000).ps()), (1, 0, NO_DEADLINE)] {
        let sent = script.open(id);
        assert!(sent.len() == 10 && sent.iter().all(|packet| packet.wire_len == 1500));
        let state = State { sent: 2 * MSS, left, deadline, window: 10 * MSS, rtt };
        assert_eq!(script.states(&sent)[1], state);
    }
    assert!(script.host.ext.is_empty());
}

#[test]
fn a_charged_header_lengthens_data_only() {
    let params = Params { metadata: Metadata::Charged, ..given("2pkt") };
    let mut sender = script(&params, 0, vec![flow(0, 100, Some(5_000))]);
    assert!(sender.open(0).iter().all(|packet| packet.wire_len == 1516));
    let mut receiver = script(&params, 1, vec![flow(0, 100, Some(5_000))]);
    let (ack, order) = receiver.data(0, 0, true, |_| {});
    assert_eq!((ack.wire_len, order.is_some()), (40, true));
}

#[test]
fn bytes_sent_set_the_class_until_a_receiver_does() {
    let mut script = script(&given("2pkt, 4pkt"), 0, vec![flow(0, 100, Some(5_000)), flow(1, 100, None)]);
    // In each class, flows with deadlines go before those without.
    assert_eq!(prios(&script.open(0)), [0, 0, 2, 2, 4, 4, 4, 4, 4, 4]);
    assert_eq!(prios(&script.open(1)), [1, 1, 3, 3, 5, 5, 5, 5, 5, 5]);
    // An ACK without an order changes nothing.
    assert_eq!(prios(&script.ack(0, 1, None)), [4, 4]);
    // The window is cut before it grows again.
    assert_eq!(script.ack(0, 2, Some(7)), []);
    assert_eq!(prios(&script.ack(0, 10, None))[..3], [14; 3]);
    // A retransmission has the flow's class at the time of the retransmission.
    let again = script.advance(us(1_200));
    assert!(again[0].has(Packet::RETX) && again[0].prio == 14);
    script.ack(0, 11, Some(1));
    script.ack(0, 12, Some(1));
    assert_eq!(prios(&script.ack(0, 16, None))[..1], [2]);
    script.ack(1, 1, Some(7));
    assert_eq!(prios(&script.ack(1, 10, None))[..1], [15]);
    assert_eq!([script.counts(0)[CLASS_CHANGES], script.counts(1)[CLASS_CHANGES]], [2, 1]);
    assert_eq!(script.counts(0)[LAS_PACKETS], 12);
}

/// Eq. 3 with omega 1/8: one packet a round is timed.
#[test]
fn the_round_trip_is_a_weighted_mean_of_one_sample_a_round() {
    let mut script = script(&given("2pkt"), 0, vec![flow(0, 1000, None)]);
    let first = script.open(0);
    assert_eq!(script.states(&first)[9].rtt, 100_000_000);
    script.host.now = us(180);
    let next = script.ack(0, 1, None);
    // 7/8 of 100 us and 1/8 of 180 us.
    assert_eq!(script.states(&next).iter().map(|state| state.rtt).collect::<Vec<_>>(), [110_000_000; 2]);
    script.host.now = us(200);
    // The packet that was sent at 180 us is timed now: the eleventh.
    let next = script.ack(0, 10, None);
    assert_eq!(script.states(&next)[0].rtt, 110_000_000);
    script.host.now = us(210);
    let next = script.ack(0, 11, None);
    assert_eq!(script.states(&next)[0].rtt, 100_000_000);
    // A retransmission invalidates the sample.
    let again = script.advance(us(1_300));
    assert!(again[0].has(Packet::RETX));
    let next = script.ack(0, 13, None);
    assert_eq!(script.states(&next)[0].rtt, 100_000_000);
}

/// Vectors of eq. 9 through whole packets: the slack of 200 packets in a window of 10 at 100 us.
#[test]
fn a_mark_brings_each_flow_the_class_of_its_slack() {
    // The slack of a deadline at D is D / 28.571429 - 100 us, and T_1 = 3.0023 us.
    for (deadline, class) in [(15_000, 7), (3_000, 0), (3_050, 2), (3_200, 5)] {
        let mut script = script(&given("2pkt"), 1, vec![flow(0, 201, Some(deadline))]);
        let (ack, order) = script.data(0, 0, true, |_| {});
        assert_eq!((ack.has(Packet::ECE), order), (true, Some(class)), "{deadline}");
    }
}

#[test]
fn without_marks_nothing_is_decided() {
    let mut script = script(&given("2pkt"), 1, vec![flow(0, 201, Some(15_000)), flow(1, 100, None)]);
    assert_eq!(script.data(0, 0, false, |_| {}).1, None);
    // A mark of another flow decides for both flows; the ACK of an unmarked packet carries no
    // class.
    assert_eq!(script.data(1, 0, true, |_| {}).1, Some(0));
    assert_eq!(script.data(0, 1, false, |_| {}).1, None);
    assert_eq!(script.data(0, 2, true, |_| {}).1, Some(7));
    assert_eq!([script.counts(0)[DECISIONS], script.counts(1)[DECISIONS]], [0, 1]);
}

#[test]
fn a_receiver_decides_once_a_round() {
    let flows = vec![flow(0, 201, Some(15_000)), flow(1, 100, None)];
    let mut script = script(&given("2pkt"), 1, flows);
    // The round of the second flow is shorter.
    script.data(1, 0, false, |state| state.rtt = Dur::from_us(60).0);
    let decisions = |script: &PolicyScript<Stam>| script.counts(0)[DECISIONS];
    for (at, decided) in [(0, 1), (59, 1), (60, 2), (61, 2), (119, 2), (500, 3), (559, 3), (560, 4)] {
        script.host.now = us(at);
        script.data(0, at / 3, true, |_| {});
        assert_eq!(decisions(&script), decided, "{at}");
    }
}

/// Flows that begin after a decision have no class: their ACKs carry none until the next decision.
#[test]
fn a_new_flow_waits_for_a_decision() {
    let mut script = script(&given("2pkt"), 1, vec![flow(0, 100, None), flow(1, 100, Some(15_000))]);
    assert!(script.data(0, 0, true, |_| {}).1.is_some());
    script.host.now = us(50);
    let (ack, order) = script.data(1, 0, true, |_| {});
    assert_eq!((ack.has(Packet::ECE), order), (true, None));
    script.host.now = us(100);
    assert_eq!(script.data(1, 1, true, |_| {}).1, Some(7));
}

/// The example of the paper's accumulation policy: 8 packets a class, flows with deadlines of 5 and
/// 6 packets in the first and in the last class, other flows with windows of 2, 4, 10 and 3 in the
/// order of bytes sent.
#[test]
fn flows_without_deadlines_fill_the_room_that_is_left() {
    let deadline = |at| Some(at);
    let flows = vec![
        flow(0, 201, deadline(3_000)),
        flow(1, 201, deadline(25_000)),
        flow(2, 1000, None),
        flow(3, 1000, None),
        flow(4, 1000, None),
        flow(5, 1000, None),
    ];
    let mut script = script(&given("2pkt"), 1, flows);
    // Without a mark in the last round, a window of W - 1 becomes W. The first flow has T_slack
    // just above 0.
    script.data(0, 0, false, |state| (state.window, state.left) = (4 * MSS, 75 * MSS));
    script.data(1, 0, false, |state| state.window = 5 * MSS);
    // In reverse order of bytes sent.
    for (id, sent, window) in [(5, 100, 3), (4, 50, 10), (2, 3, 2), (3, 10, 4)] {
        script.data(id, 0, false, |state| (state.sent, state.window) = (sent * MSS, (window - 1) * MSS));
    }
    // Any marked packet of these flows causes the decision; a SYN belongs to no window.
    let syn = Packet { flags: Packet::CE, ..Packet::new(FlowId(5), Kind::SYN, 40) };
    script.packet(syn);
    let classes: Vec<_> = (0..6).map(|id| script.data(id, 0, true, |_| {}).1.map(|class| class + 1)).collect();
    assert_eq!(classes, [1, 8, 1, 2, 8, 8].map(Some));
    assert_eq!(script.policy_host.policy().receiver.occupied, [7, 4, 0, 0, 0, 0, 0, 19].map(|packets| packets * MSS));
}

#[test]
fn a_mark_in_the_last_round_cuts_the_window_to_come() {
    // Ten packets fit into no class, and half of nine into the first one.
    for (marked, at, class) in [(false, 100, 7), (true, 100, 0), (true, 110, 7)] {
        let mut script = script(&given("2pkt"), 1, vec![flow(0, 1000, None), flow(1, 1000, None)]);
        script.data(0, 0, marked, |state| state.window = 9 * MSS);
        script.host.now = us(at);
        script.data(1, 0, true, |state| (state.sent, state.window) = (100 * MSS, MSS));
        assert_eq!(script.policy_host.policy().receiver.flows.get(FlowId(0)).unwrap().class, Some(class), "{marked} {at}");
    }
}

fn orders(terminate: Terminate, deadline: u64, packets: u64, now: u64) -> (Option<u8>, Vec<u64>) {
    let mut script = script(&Params { terminate, ..given("2pkt") }, 1, vec![flow(0, packets + 1, Some(deadline))]);
    script.host.now = us(now);
    (script.data(0, 0, true, |_| {}).1, script.counts(0))
}

/// 200 packets need 28.6 rounds of 100 us by eq. 2, and 240 us at 10 Gb/s.
#[test]
fn flows_are_given_up_by_the_rule_that_is_set() {
    let ended = |terminate, deadline, now| orders(terminate, deadline, 200, now).0 == Some(END);
    use Terminate::{Feasible, Never, Paper};
    // (deadline, now): enough time; slack below zero; too little time at line rate; deadline
    // passed.
    for (deadline, now, by_paper, by_proof) in [
        (3_000, 0, false, false),
        (2_500, 0, true, false),
        (240, 0, true, false),
        (239, 0, true, true),
        (100, 100, true, true),
        (100, 101, true, true),
    ] {
        let all = [Paper, Feasible, Never].map(|rule| ended(rule, deadline, now));
        assert_eq!(all, [by_paper, by_proof, false], "{deadline} {now}");
    }
    // A flow with negative slack that is not given up is in the first class.
    assert_eq!(orders(Feasible, 2_500, 200, 0), (Some(0), vec![0, 0, 1, 0]));
    assert_eq!(orders(Never, 100, 200, 101), (Some(0), vec![0, 0, 1, 0]));
    assert_eq!(orders(Paper, 2_500, 200, 0), (Some(END), vec![0, 0, 1, 1]));
    // Flows without a deadline have no slack.
    let mut script = script(&Params { terminate: Paper, ..given("2pkt") }, 1, vec![flow(0, 200, None)]);
    assert_ne!(script.data(0, 0, true, |_| {}).1, Some(END));
}

#[test]
fn a_receiver_orders_the_end_until_the_flow_has_arrived() {
    let mut script =
        script(&Params { terminate: Terminate::Paper, ..given("2pkt") }, 1, vec![flow(0, 4, Some(100)), flow(1, 9, None)]);
    assert_eq!(script.data(0, 0, true, |state| state.left = 200 * MSS).1, Some(END));
    // With and without a mark; the flow is no longer part of decisions.
    assert_eq!(script.data(0, 1, false, |_| {}).1, Some(END));
    assert_eq!(script.data(1, 0, false, |_| {}).1, None);
    let Stam { receiver, .. } = script.policy_host.policy();
    assert_eq!((receiver.flows.len(), receiver.ended.len()), (1, 1));
    assert_eq!(script.counts(0)[ENDED], 1);
    // In the end all its bytes have arrived: ACKs carry no order any more.
    script.data(0, 2, false, |_| {});
    assert_eq!(script.data(0, 3, true, |_| {}).1, None);
    assert!(script.policy_host.policy().receiver.ended.is_empty());
}

#[test]
fn a_sender_gives_up_a_flow_that_its_receiver_ended() {
    let mut script = script(&given("2pkt"), 0, vec![flow(0, 1000, Some(100))]);
    script.open(0);
    assert_eq!(script.ack(0, 1, Some(END)), []);
    let record = script.host.table.get(FlowId(0));
    assert!(record.terminated && record.closed);
    // No state is left, and later ACKs are ignored.
    assert_eq!(script.ack(0, 2, Some(END)), []);
    assert!(script.policy_host.policy().sender.flows.is_empty());
    assert_eq!(script.advance(us(100_000)), []);
}

#[test]
fn nothing_is_left_of_flows_that_end() {
    let flows = vec![flow(0, 2, None), flow(1, 2, Some(9_000))];
    let mut sender = script(&given("1pkt"), 0, flows.clone());
    for id in [0, 1] {
        let sent = sender.open(id);
        sender.states(&sent);
        sender.ack(id, 2, None);
    }
    assert!(sender.policy_host.policy().sender.flows.is_empty() && sender.host.ext.is_empty());
    let mut receiver = script(&given("1pkt"), 1, flows);
    for id in [0, 1] {
        // The second packet overtakes the first, and the first arrives twice.
        receiver.data(id, 1, true, |_| {});
        receiver.data(id, 0, true, |_| {});
        receiver.data(id, 0, true, |_| {});
    }
    assert!(receiver.policy_host.policy().receiver.flows.is_empty() && receiver.host.ext.is_empty());
}

#[test]
fn the_furthest_packet_has_the_bytes_left() {
    // 300 us are enough for 200 packets at line rate, not for 250.
    let left = |order: [u64; 2]| {
        let mut script = script(&given("2pkt"), 1, vec![flow(0, 1000, Some(250))]);
        script.data(0, order[0], false, |_| {});
        script.data(0, order[1], true, |_| {}).1
    };
    assert_eq!((left([850, 700]), left([700, 850])), (Some(0), Some(0)));
    assert_eq!(left([700, 701]), Some(END));
}

#[test]
fn returned_and_trimmed_packets_change_nothing() {
    let mut script = script(&given("2pkt"), 0, vec![flow(0, 1000, Some(100))]);
    let sent = script.open(0);
    let mut back = sent[3];
    back.turn_back();
    script.packet(back);
    assert!(!script.host.table.get(FlowId(0)).terminated);
    let mut receiver = self::script(&given("2pkt"), 1, vec![flow(0, 1000, Some(100))]);
    let mut cut = Packet { flags: Packet::CE, ..sent[3] };
    cut.trim(64);
    receiver.packet(cut);
    assert!(receiver.policy_host.policy().receiver.flows.is_empty());
}

/// With a measured T_j, classes without flows cost no wait: any slack that is not negative fits the
/// last class.
#[test]
fn measured_waits_follow_the_flows_in_a_class() {
    for (tj, first, then) in [(Tj::Static, 0, 0), (Tj::Measured, 7, 6)] {
        let mut script = script(&Params { tj, ..given("2pkt") }, 1, vec![flow(0, 201, Some(3_000))]);
        // T_slack is 5 us; 3.5 us of it may be lost.
        assert_eq!(script.data(0, 0, true, |_| {}).1, Some(first), "{tj:?}");
        // The flow's own window, five packets after the cut, now costs 2.29 us in the last class,
        // and 2.13 us may be lost.
        script.host.now = us(100);
        assert_eq!(script.data(0, 1, true, |state| state.left = 197 * MSS).1, Some(then), "{tj:?}");
    }
}

#[test]
fn parameters_are_checked() {
    let switches = |classes: u32, mark: &str| {
        let values = vec![("classes", classes.to_string()), ("mark", mark.to_owned())];
        Given::new(vec![GivenPart { slot: "qdisc", kind: "strict", values }])
    };
    let check = |params: &Params, given: &Given| {
        let problems = check(params, &Env { given, ..env() });
        problems.into_iter().map(|problem| (problem.key, problem.message)).collect::<Vec<_>>()
    };
    let fit = switches(16, "65pkt");
    assert_eq!(check(&given("30pkt, 300pkt"), &fit), []);
    assert_eq!(check(&given("30pkt, 300pkt"), Given::none()), []);
    for has in [8, 32] {
        let wrong = format!("8 classes need 16 queues, two each; the switches have {has}");
        assert_eq!(check(&given("30pkt"), &switches(has, "65pkt")), [("classes", wrong)]);
    }
    let falling = check(&given("300pkt, 30pkt"), &fit);
    assert_eq!(falling, [("thresholds", "`438000B` is not below the next threshold, `43800B`".to_owned())]);
    let few = check(&Params { classes: 2, ..given("1pkt, 2pkt") }, Given::none());
    assert_eq!(few, [("thresholds", "2 thresholds make 3 classes, `classes` is 2".to_owned())]);
    assert_eq!(check(&Params::defaults(), &fit)[0].0, "thresholds");
    // K is that of the switches unless it is a parameter.
    let share = |params: &Params, given: &Given| share(params, &Env { given, ..env() });
    let params = given("1pkt");
    let shares = ["65pkt", "24KB", "2pkt", "unlimited"].map(|mark| share(&params, &switches(16, mark)));
    assert_eq!((shares, share(&params, Given::none())), ([8, 2, 1, 8], 8));
    assert_eq!(share(&Params { mark: Auto::Set(Limit::Packets(20)), ..params }, &fit), 2);
}

proptest! {
    /// Between a sender and a receiver that lose packets, each packet carries the right header, and
    /// each block is freed.
    #[test]
    fn no_header_is_lost_or_doubled(seed in any::<u64>(), terminate in 0usize..3, marked in 0u64..=100, lost in 0u64..30) {
        let terminate = [Terminate::Feasible, Terminate::Paper, Terminate::Never][terminate];
        let params = Params { terminate, ..given("2pkt, 4pkt") };
        let flows = vec![flow(0, 300, Some(4_000)), flow(1, 300, None), flow(2, 40, Some(900))];
        let mut ends = [script(&params, 0, flows.clone()), script(&params, 1, flows)];
        let mut rng = Rng::stream(seed, "stam", &[]);
        let mut wire: Vec<Packet> = (0..3).flat_map(|id| ends[0].open(id)).collect();
        let mut now = Time::ZERO;
        while !ends[0].policy_host.policy().sender.flows.is_empty() {
            now = if wire.is_empty() { ends[0].host.next_wake() } else { now.after(Dur::from_us(50)) };
            ends[1].host.now = now;
            let mut next = ends[0].advance(now);
            for mut packet in wire.drain(..) {
                let data = packet.kind == Kind::DATA;
                let [sender, receiver] = &mut ends;
                let (from, to) = if data { (sender, receiver) } else { (receiver, sender) };
                prop_assert_eq!(packet.blocks(), usize::from(packet.has(Packet::TAGGED)));
                prop_assert!(!data || packet.has(Packet::TAGGED));
                if rng.below(100) < lost {
                    packet.free(&mut from.host.ext);
                    continue;
                }
                // The block moves with the packet.
                let mut block = None;
                if packet.has(Packet::TAGGED) {
                    block = Some(*from.host.ext.get(packet.rank));
                    packet.free(&mut from.host.ext);
                    packet.rank = to.host.ext.insert(block.unwrap());
                }
                if data && rng.below(100) < marked {
                    packet.flags |= Packet::CE;
                }
                let answers = to.packet(packet);
                if block.is_some() {
                    packet.free(&mut to.host.ext);
                }
                next.extend(answers);
            }
            wire = next;
        }
        wire.iter().for_each(|packet| packet.free(&mut ends[usize::from(packet.kind != Kind::DATA)].host.ext));
        for end in &ends {
            prop_assert!(end.host.ext.is_empty());
            let Stam { sender, receiver, .. } = end.policy_host.policy();
            prop_assert!(sender.flows.is_empty());
            // Flows that the receiver ended are removed from its table of flows.
            prop_assert!(receiver.ended.len() <= 2);
        }
    }
}

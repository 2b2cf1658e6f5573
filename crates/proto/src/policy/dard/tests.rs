use super::*;
use crate::host::HostEvent;
use crate::kit::script::{self, Script};
use crate::policy_host::PolicyHost;
use crate::policy_script::PolicyScript;
use crate::transport::{AnyTransport, newreno};
use base::params::{Auto, Params as _};
use base::{Rate, Slab, Time};

const GBPS: u64 = 1_000_000_000;

/// Offers of four paths of bandwidth 1 with these numbers of elephants.
fn offers(elephants: &[u8]) -> Vec<Option<Offer>> {
    elephants.iter().map(|&elephants| Some(Offer { bps: GBPS, elephants })).collect()
}

#[test]
fn an_elephant_moves_where_it_gains() {
    let select = |elephants: &[u8], used: &[u16]| select(&offers(elephants), &used.iter().copied().collect(), GBPS / 100);
    assert_eq!(select(&[3, 1, 2, 0], &[0, 2]), Some((0, 3)));
    assert_eq!(select(&[2, 1], &[0]), None);
    assert_eq!(select(&[3, 1], &[0]), Some((0, 1)));
    assert_eq!(select(&[4, 3, 3, 2], &[0, 1]), Some((0, 3)));
    // Ties go to the first path; an elephant on the best path stays.
    assert_eq!(select(&[0, 3, 3, 0], &[1, 2]), Some((1, 0)));
    assert_eq!((select(&[1, 1], &[1]), select(&[1, 2], &[0]), select(&[], &[])), (None, None, None));
}

#[test]
fn a_gain_of_delta_is_not_enough() {
    // From a third to a half: a sixth.
    let select = |delta| select(&offers(&[3, 1]), &BTreeSet::from([0]), delta);
    assert_eq!((select(GBPS / 6), select(GBPS / 6 + 1)), (Some((0, 1)), None));
    let exact = |delta| super::select(&offers(&[4, 1]), &BTreeSet::from([0]), delta);
    assert_eq!((exact(GBPS / 4 - 1), exact(GBPS / 4)), (Some((0, 1)), None));
}

#[test]
fn bandwidths_count_and_unknown_paths_do_not() {
    let used = BTreeSet::from([0]);
    let at = |bps, elephants| Some(Offer { bps, elephants });
    assert_eq!(select(&[at(GBPS, 1), at(GBPS, 0), at(3 * GBPS, 1)], &used, 0), Some((0, 2)));
    assert_eq!(select(&[at(GBPS, 3), None, at(GBPS, 1)], &used, 0), Some((0, 2)));
    assert_eq!(select(&[None, at(GBPS, 0)], &used, 0), None);
    // A dead path offers nothing: any other path is better.
    assert_eq!(select(&[at(0, 0), at(GBPS, 7)], &used, 0), Some((0, 1)));
    assert_eq!(select(&[at(GBPS, 1), at(0, 0)], &used, 0), None);
}

#[test]
fn a_reply_keeps_every_port() {
    let mut elephants = [0; PORTS as usize];
    elephants.iter_mut().zip(1..).for_each(|(count, port)| *count = 5 * port);
    let reply = Reply { switch: NodeId(1 << 20), first: 96, elephants };
    let (mut slab, mut packet) = (Slab::default(), Packet::new(FlowId(0), REPLY, 64));
    packet.set_ext(reply, &mut slab);
    assert_eq!(packet.get_ext::<Reply>(&slab), reply);
}

/// Two paths from switch 10 over 11 or 12 to 13; hosts hang at 10 and 13. Port 0 of 10 leads to 11, port 1 to 12.
fn two_paths() -> Hops {
    let hop = |switch, port| Hop { switch: NodeId(switch), port: PortId(port), rate: Rate::from_gbps(1) };
    vec![vec![hop(10, 0), hop(11, 1)], vec![hop(10, 1), hop(12, 1)]]
}

/// Host 0 with flows to host 1 that send ten packets at once.
fn script(flows: u32, hops: Hops, change: impl FnOnce(&mut Params)) -> PolicyScript<Dard> {
    let mut tcp = newreno::Params::defaults();
    (tcp.tcp.init_window, tcp.tcp.handshake) = (Auto::Set(10), false);
    (tcp.tcp.min_rto, tcp.tcp.init_rto) = (Auto::Set(Dur::from_secs(60)), Auto::Set(Dur::from_secs(60)));
    let transport = AnyTransport::NewReno(newreno::NewReno::new(&tcp, &script::env()));
    let mut params = Params { elephant: Bytes(10 * 1460 - 1), jitter: Dur(0), initial: Initial::Turn, ..Params::defaults() };
    change(&mut params);
    let flows = (0..flows).map(|id| script::flow(id, 100 * 1460)).collect();
    let mut script =
        PolicyScript::new(Script::new(transport, flows), PolicyHost::new(Dard::new(&params, &script::env()), &META, 0));
    script.host.table.keep_counters(META.counters.len());
    let hops = Arc::new(hops);
    (0..script.host.flows.len() as u32).for_each(|flow| script.host.table.set_hops(FlowId(flow), Arc::clone(&hops)));
    script
}

/// The paths that the host has asked for since the last call, as (flow, index).
fn asked(script: &mut PolicyScript<Dard>) -> Vec<(u32, u16)> {
    let of = |event| match event {
        HostEvent::Path(flow, Path::Index(index)) => (flow.0, index),
        other => panic!("{other:?}"),
    };
    script.host.io.events.drain(..).map(of).collect()
}

/// The queries among packets, as (flow, path tag, switch, first port).
fn queries(packets: &[Packet]) -> Vec<(u32, u16, u64, u64)> {
    let of = |packet: &Packet| {
        let Query { switch, first } = packet.get();
        (packet.flow.0, packet.path_tag, switch, first)
    };
    packets.iter().filter(|packet| packet.kind == QUERY).map(of).collect()
}

/// A switch replies.
fn reply(script: &mut PolicyScript<Dard>, switch: u32, counts: &[u8]) {
    let mut elephants = [0; PORTS as usize];
    elephants[..counts.len()].copy_from_slice(counts);
    let mut packet = Packet::new(FlowId(0), REPLY, 64);
    packet.set_ext(Reply { switch: NodeId(switch), first: 0, elephants }, &mut script.host.ext);
    assert_eq!(script.packet(packet), []);
    packet.free(&mut script.host.ext);
}

fn at(secs: u64) -> Time {
    Time::ZERO + Dur::from_secs(secs)
}

#[test]
fn a_flow_that_has_sent_enough_gets_a_path_and_its_switches_are_asked() {
    let mut script = script(3, two_paths(), |_| ());
    for (flow, path) in [(0, 0), (1, 1), (2, 0)] {
        script.open(flow);
        assert_eq!(asked(&mut script), [(flow, path)]);
    }
    let sent = script.advance(Time::ZERO);
    // One query per switch, over the first path that crosses it.
    assert_eq!(queries(&sent), [(0, 1, 10, 0), (0, 1, 11, 0), (0, 2, 12, 0)]);
    assert!(sent.iter().all(|packet| packet.wire_len == 64 && packet.payload == 0));
    assert_eq!(queries(&script.advance(at(2))).len(), 6, "two more polls");
    assert_eq!(script.host.table.counts(FlowId(0)), [9, 0, 0]);
}

#[test]
fn a_flow_below_the_threshold_or_within_a_switch_is_no_elephant() {
    let mut small = script(1, two_paths(), |params| params.elephant = Bytes(10 * 1460));
    small.open(0);
    assert_eq!((asked(&mut small), queries(&small.advance(at(20)))), (vec![], vec![]));
    let mut near = script(1, vec![vec![]], |_| ());
    near.open(0);
    assert_eq!((asked(&mut near), queries(&near.advance(at(20)))), (vec![], vec![]));
}

#[test]
fn replies_move_one_elephant_per_round() {
    let mut script = script(3, two_paths(), |_| ());
    (0..3).for_each(|flow| drop(script.open(flow)));
    asked(&mut script);
    script.advance(at(4));
    // The first path has flows 0 and 2 and an elephant of another host; flow 1 is not yet counted.
    reply(&mut script, 10, &[2, 0]);
    reply(&mut script, 11, &[0, 3]);
    reply(&mut script, 12, &[0, 0]);
    assert_eq!(asked(&mut script), []);
    // The round ends at 5 s, the next one at 10 s.
    script.advance(at(5));
    assert_eq!(asked(&mut script), [(0, 1)]);
    for (switch, counts) in [(10, [1, 1]), (11, [0, 2]), (12, [0, 1])] {
        reply(&mut script, switch, &counts);
    }
    script.advance(at(9));
    for (switch, counts) in [(10, [1, 1]), (11, [0, 2]), (12, [0, 1])] {
        reply(&mut script, switch, &counts);
    }
    script.advance(at(10));
    assert_eq!(asked(&mut script), [], "half of the bandwidth on either path");
    assert_eq!(script.host.table.counts(FlowId(0))[1..], [9, 1]);
}

#[test]
fn nothing_moves_to_what_is_not_known() {
    let mut script = script(1, two_paths(), |_| ());
    script.open(0);
    script.advance(Time::ZERO);
    asked(&mut script);
    reply(&mut script, 10, &[3, 0]);
    reply(&mut script, 11, &[0, 3]);
    script.advance(at(5));
    assert_eq!(asked(&mut script), [], "switch 12 has not replied");
    // Switch 12 has replied once, but not to the last poll.
    for switch in [10, 11, 12] {
        reply(&mut script, switch, &[0, 0]);
    }
    script.advance(at(6));
    reply(&mut script, 10, &[3, 0]);
    reply(&mut script, 11, &[0, 3]);
    script.advance(at(7));
    reply(&mut script, 10, &[3, 0]);
    reply(&mut script, 11, &[0, 3]);
    script.advance(at(10));
    assert_eq!(asked(&mut script), []);
}

#[test]
fn a_dead_path_is_left_and_switches_behind_it_are_not_asked() {
    let mut script = script(1, two_paths(), |_| ());
    script.open(0);
    script.advance(Time::ZERO);
    asked(&mut script);
    let reply_all = |script: &mut PolicyScript<Dard>| {
        reply(script, 10, &[DOWN, 4]);
        reply(script, 12, &[0, 4]);
    };
    reply_all(&mut script);
    assert_eq!(queries(&script.advance(at(1))), [(0, 1, 10, 0), (0, 2, 12, 0)]);
    for second in 1..5 {
        script.advance(at(second));
        reply_all(&mut script);
    }
    script.advance(at(5));
    assert_eq!(asked(&mut script), [(0, 1)]);
}

#[test]
fn a_switch_with_many_ports_is_asked_by_parts() {
    let hop = |switch, port| Hop { switch: NodeId(switch), port: PortId(port), rate: Rate::from_gbps(1) };
    let mut script = script(1, vec![vec![hop(10, 47)], vec![hop(10, 48)], vec![hop(10, 100)], vec![hop(10, 3)]], |_| ());
    script.open(0);
    assert_eq!(queries(&script.advance(Time::ZERO)), [(0, 1, 10, 0), (0, 2, 10, 48), (0, 3, 10, 96)]);
}

#[test]
fn a_host_without_elephants_sends_no_queries() {
    let mut script = script(1, two_paths(), |_| ());
    let mut sent = script.open(0);
    script.advance(Time::ZERO);
    while !script.host.table.get(FlowId(0)).closed {
        let offset = sent.iter().map(|packet| packet.offset + u64::from(packet.payload)).max().unwrap();
        sent = script.packet(Packet { offset, ..Packet::new(FlowId(0), Kind::ACK, 40) });
    }
    assert_eq!(queries(&script.advance(at(20))), []);
    assert_eq!(script.policy_host.next_wake(), Time::MAX);
    assert!(
        script.policy_host.policy().peers.is_empty()
            && script.policy_host.policy().states.is_empty()
            && script.policy_host.policy().sent.is_empty()
    );
    // A late reply and a query that has missed its switch end here.
    reply(&mut script, 10, &[1]);
    assert_eq!(script.packet(Packet::new(FlowId(0), QUERY, 64)), []);
}

/// Rounds have different lengths, and first paths differ.
#[test]
fn rounds_and_paths_are_drawn() {
    let mut rounds = BTreeSet::new();
    let mut script = script(40, two_paths(), |params| (params.jitter, params.initial) = (Dur::from_secs(5), Initial::Hash));
    (0..40).for_each(|flow| drop(script.open(flow)));
    let first = asked(&mut script).iter().filter(|(_, index)| *index == 0).count();
    assert!((10..=30).contains(&first), "{first} of 40");
    for _ in 0..20 {
        let PolicyScript { host, policy_host } = &mut script;
        host.with(|transport, cx| policy_host.on_timers(transport, cx));
        host.now = policy_host.next_wake().max(host.now);
        rounds.insert(host.now);
    }
    assert!(rounds.len() > 10);
}

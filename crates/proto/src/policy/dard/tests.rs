use super::*;
use crate::desk::Desk;
use crate::host::Notice;
use crate::kit::script::{self, Script};
use crate::seat::Seat;
use crate::transport::{AnyTransport, newreno};
use base::params::{Auto, Params as _};
use base::{Rate, Slab, Time};

const GBPS: u64 = 1_000_000_000;

/// What four paths of bandwidth 1 with so many elephants offer.
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
    // Ties go to the first; one that is on the best path stays.
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
    // A dead path offers nothing, and is left for any other.
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
fn desk(flows: u32, hops: Hops, change: impl FnOnce(&mut Params)) -> Desk<Dard> {
    let mut tcp = newreno::Params::defaults();
    (tcp.tcp.init_window, tcp.tcp.handshake) = (Auto::Set(10), false);
    (tcp.tcp.min_rto, tcp.tcp.init_rto) = (Auto::Set(Dur::from_secs(60)), Auto::Set(Dur::from_secs(60)));
    let transport = AnyTransport::NewReno(newreno::NewReno::new(&tcp, &script::env()));
    let mut params = Params { elephant: Bytes(10 * 1460 - 1), jitter: Dur(0), initial: Initial::Turn, ..Params::defaults() };
    change(&mut params);
    let flows = (0..flows).map(|id| script::flow(id, 100 * 1460)).collect();
    let mut desk = Desk::new(Script::new(transport, flows), Seat::new(Dard::new(&params, &script::env()), &META, 0));
    desk.host.table.keep_counters(META.counters.len());
    let hops = Arc::new(hops);
    (0..desk.host.flows.len() as u32).for_each(|flow| desk.host.table.set_hops(FlowId(flow), Arc::clone(&hops)));
    desk
}

/// The paths that the host has asked for since the last call, as (flow, index).
fn asked(desk: &mut Desk<Dard>) -> Vec<(u32, u16)> {
    let of = |notice| match notice {
        Notice::Path(flow, Path::Index(index)) => (flow.0, index),
        other => panic!("{other:?}"),
    };
    desk.host.io.notices.drain(..).map(of).collect()
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
fn reply(desk: &mut Desk<Dard>, switch: u32, counts: &[u8]) {
    let mut elephants = [0; PORTS as usize];
    elephants[..counts.len()].copy_from_slice(counts);
    let mut packet = Packet::new(FlowId(0), REPLY, 64);
    packet.set_ext(Reply { switch: NodeId(switch), first: 0, elephants }, &mut desk.host.ext);
    assert_eq!(desk.packet(packet), []);
    packet.free(&mut desk.host.ext);
}

fn at(secs: u64) -> Time {
    Time::ZERO + Dur::from_secs(secs)
}

#[test]
fn a_flow_that_has_sent_enough_gets_a_path_and_its_switches_are_asked() {
    let mut desk = desk(3, two_paths(), |_| ());
    for (flow, path) in [(0, 0), (1, 1), (2, 0)] {
        desk.open(flow);
        assert_eq!(asked(&mut desk), [(flow, path)]);
    }
    let sent = desk.advance(Time::ZERO);
    // One for each switch, over the first path that leads there.
    assert_eq!(queries(&sent), [(0, 1, 10, 0), (0, 1, 11, 0), (0, 2, 12, 0)]);
    assert!(sent.iter().all(|packet| packet.wire_len == 64 && packet.payload == 0));
    assert_eq!(queries(&desk.advance(at(2))).len(), 6, "two more polls");
    assert_eq!(desk.host.table.counts(FlowId(0)), [9, 0, 0]);
}

#[test]
fn a_flow_below_the_threshold_or_within_a_switch_is_no_elephant() {
    let mut small = desk(1, two_paths(), |params| params.elephant = Bytes(10 * 1460));
    small.open(0);
    assert_eq!((asked(&mut small), queries(&small.advance(at(20)))), (vec![], vec![]));
    let mut near = desk(1, vec![vec![]], |_| ());
    near.open(0);
    assert_eq!((asked(&mut near), queries(&near.advance(at(20)))), (vec![], vec![]));
}

#[test]
fn replies_move_one_elephant_per_round() {
    let mut desk = desk(3, two_paths(), |_| ());
    (0..3).for_each(|flow| drop(desk.open(flow)));
    asked(&mut desk);
    desk.advance(at(4));
    // Flows 0 and 2 are on the first path, beside one of another host; flow 1 is not seen yet.
    reply(&mut desk, 10, &[2, 0]);
    reply(&mut desk, 11, &[0, 3]);
    reply(&mut desk, 12, &[0, 0]);
    assert_eq!(asked(&mut desk), []);
    // The round ends at 5 s, the next one at 10 s.
    desk.advance(at(5));
    assert_eq!(asked(&mut desk), [(0, 1)]);
    for (switch, counts) in [(10, [1, 1]), (11, [0, 2]), (12, [0, 1])] {
        reply(&mut desk, switch, &counts);
    }
    desk.advance(at(9));
    for (switch, counts) in [(10, [1, 1]), (11, [0, 2]), (12, [0, 1])] {
        reply(&mut desk, switch, &counts);
    }
    desk.advance(at(10));
    assert_eq!(asked(&mut desk), [], "half of the bandwidth on either path");
    assert_eq!(desk.host.table.counts(FlowId(0))[1..], [9, 1]);
}

#[test]
fn nothing_moves_to_what_is_not_known() {
    let mut desk = desk(1, two_paths(), |_| ());
    desk.open(0);
    desk.advance(Time::ZERO);
    asked(&mut desk);
    reply(&mut desk, 10, &[3, 0]);
    reply(&mut desk, 11, &[0, 3]);
    desk.advance(at(5));
    assert_eq!(asked(&mut desk), [], "switch 12 has not replied");
    // Once it has, but not to the last poll.
    for switch in [10, 11, 12] {
        reply(&mut desk, switch, &[0, 0]);
    }
    desk.advance(at(6));
    reply(&mut desk, 10, &[3, 0]);
    reply(&mut desk, 11, &[0, 3]);
    desk.advance(at(7));
    reply(&mut desk, 10, &[3, 0]);
    reply(&mut desk, 11, &[0, 3]);
    desk.advance(at(10));
    assert_eq!(asked(&mut desk), []);
}

#[test]
fn a_dead_path_is_left_and_what_lies_behind_is_not_asked() {
    let mut desk = desk(1, two_paths(), |_| ());
    desk.open(0);
    desk.advance(Time::ZERO);
    asked(&mut desk);
    let tell = |desk: &mut Desk<Dard>| {
        reply(desk, 10, &[DOWN, 4]);
        reply(desk, 12, &[0, 4]);
    };
    tell(&mut desk);
    assert_eq!(queries(&desk.advance(at(1))), [(0, 1, 10, 0), (0, 2, 12, 0)]);
    for second in 1..5 {
        desk.advance(at(second));
        tell(&mut desk);
    }
    desk.advance(at(5));
    assert_eq!(asked(&mut desk), [(0, 1)]);
}

#[test]
fn a_switch_with_many_ports_is_asked_by_parts() {
    let hop = |switch, port| Hop { switch: NodeId(switch), port: PortId(port), rate: Rate::from_gbps(1) };
    let mut desk = desk(1, vec![vec![hop(10, 47)], vec![hop(10, 48)], vec![hop(10, 100)], vec![hop(10, 3)]], |_| ());
    desk.open(0);
    assert_eq!(queries(&desk.advance(Time::ZERO)), [(0, 1, 10, 0), (0, 2, 10, 48), (0, 3, 10, 96)]);
}

#[test]
fn a_host_without_elephants_rests() {
    let mut desk = desk(1, two_paths(), |_| ());
    let mut sent = desk.open(0);
    desk.advance(Time::ZERO);
    while !desk.host.table.get(FlowId(0)).closed {
        let offset = sent.iter().map(|packet| packet.offset + u64::from(packet.payload)).max().unwrap();
        sent = desk.packet(Packet { offset, ..Packet::new(FlowId(0), Kind::ACK, 40) });
    }
    assert_eq!(queries(&desk.advance(at(20))), []);
    assert_eq!(desk.seat.next_wake(), Time::MAX);
    assert!(desk.seat.policy().peers.is_empty() && desk.seat.policy().states.is_empty() && desk.seat.policy().sent.is_empty());
    // A late reply and a query that has missed its switch end here.
    reply(&mut desk, 10, &[1]);
    assert_eq!(desk.packet(Packet::new(FlowId(0), QUERY, 64)), []);
}

/// Rounds differ, and so do the first paths.
#[test]
fn rounds_and_paths_are_drawn() {
    let mut rounds = BTreeSet::new();
    let mut desk = desk(40, two_paths(), |params| (params.jitter, params.initial) = (Dur::from_secs(5), Initial::Hash));
    (0..40).for_each(|flow| drop(desk.open(flow)));
    let first = asked(&mut desk).iter().filter(|(_, index)| *index == 0).count();
    assert!((10..=30).contains(&first), "{first} of 40");
    for _ in 0..20 {
        let Desk { host, seat } = &mut desk;
        host.with(|transport, cx| seat.on_timers(transport, cx));
        host.now = seat.next_wake().max(host.now);
        rounds.insert(host.now);
    }
    assert!(rounds.len() > 10);
}

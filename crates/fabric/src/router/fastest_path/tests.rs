use super::*;
use crate::router::{AnyRouter, Made, Ports};
use crate::routing::switch::Site;
use crate::routing::{Parts, Routing};
use crate::testing::{dead, flow, leaf_spine};
use base::{Slab, Time};
use proto::Flow;
use std::sync::Arc;

const US: u64 = 1_000_000;

/// Two leaves with eight hosts each and three spines, and flows from host i to host 8 + i.
struct Bench {
    routing: Routing,
    flows: Vec<Flow>,
    ext: Slab<proto::packet::Ext>,
    leaves: [NodeId; 2],
    spine: NodeId,
}

impl Bench {
    fn new(change: impl FnOnce(&mut Params)) -> Bench {
        let mut params = Params::defaults();
        change(&mut params);
        let net = leaf_spine(2, 3, 8);
        let healthy = Routes::new(&net, &[]);
        let (router, duties) = {
            let env = Env { net: &net, routes: &healthy, seed: 1, max_rtt: base::Dur::ZERO, given: &base::Given::default() };
            (AnyRouter::FastestPath(FastestPath::new(&params, &env)), FastestPath::duties(&params, &env))
        };
        let flows: Vec<Flow> = (0..8).map(|i| Flow { id: FlowId(i), ..flow(i, 8 + i, 1024 + 97 * i as u16) }).collect();
        let node = |name: &str| NodeId(net.nodes().iter().position(|node| node.name == name).unwrap() as u32);
        let (leaves, spine) = ([node("leaf0"), node("leaf1")], node("spine0"));
        let kinds = META.kinds.len();
        let parts =
            Parts { net: Arc::new(net), healthy: Arc::new(healthy), live: None, router, duties, kinds, reversed: false, seed: 1 };
        Bench { routing: Routing::new(parts, &flows), flows, ext: Slab::default(), leaves, spine }
    }
    fn with<R>(&mut self, now: u64, act: impl FnOnce(&mut Routing, Site<'_>) -> R) -> R {
        let site =
            Site { now: Time(now), flows: &self.flows, ext: &mut self.ext, ports: Ports::new(&[]), payload_bytes: 0, moved: None };
        act(&mut self.routing, site)
    }
    /// The names of the links that a data packet of a flow takes from its leaf to the other one.
    fn path(&mut self, now: u64, flow: u32) -> [String; 2] {
        let mut packet = Packet { route: [ASK; ROUTE_HOPS], ..Packet::data(FlowId(flow), 0, 1460, 40) };
        let leaf = self.leaves[0];
        let first = self.with(now, |routing, site| routing.next(&mut packet, leaf, None, site)).unwrap();
        let net = &self.routing.net;
        let second = LinkId(net.out_base(net.link(first).to) + u32::from(packet.route[0]));
        assert_eq!((net.link(second).to, packet.route[1]), (self.leaves[1], ASK));
        [first, second].map(|link| net.link_name(link))
    }
    fn spine_of(&mut self, now: u64, flow: u32) -> u32 {
        self.path(now, flow)[0].strip_prefix("leaf0->spine").unwrap().parse().unwrap()
    }
    /// Returns the packets that the first leaf sends when its timers expire.
    fn tick(&mut self, now: u64) -> Vec<Made> {
        let leaf = self.leaves[0];
        while self.with(now, |routing, site| routing.on_timer(leaf, site)) {}
        self.routing.take_made().collect()
    }
    fn take(&mut self, now: u64, at: NodeId, packet: &Packet) -> bool {
        assert!(self.routing.is_own(packet) && self.routing.asks_for(packet));
        self.with(now, |routing, site| routing.take(packet, at, None, site))
    }
    /// Delivers each probe after its delay and its answer at once; `None`: the probe is lost.
    fn answer(&mut self, now: u64, probes: &[Made], delays: [Option<u64>; 3]) {
        for (probe, delay) in probes.iter().zip(delays) {
            let Some(delay) = delay else { continue };
            assert!(self.take(now + delay, self.leaves[1], &probe.packet));
            let answers: Vec<Made> = self.routing.take_made().collect();
            let [Made { at, packet, via: None }] = answers[..] else { panic!("{answers:?}") };
            assert_eq!((at, packet.has(Packet::BACK), packet.words[0]), (self.leaves[1], !probe.packet.has(Packet::BACK), delay));
            assert!(!self.take(now + delay, self.spine, &packet), "the answer is under way");
            assert!(self.take(now + delay, self.leaves[0], &packet));
        }
    }
    fn set_dead(&mut self, names: &[&str]) {
        let routes = Routes::new(&self.routing.net, &dead(&self.routing.net, names));
        self.routing.reroute(std::sync::Arc::new(routes), &self.flows, |_| false);
    }
}

#[test]
fn probes_go_over_every_path_while_packets_go_there() {
    let mut b = Bench::new(|_| ());
    assert_eq!(b.tick(0), []);
    b.path(5 * US, 0);
    assert_eq!(b.routing.next_wake(b.leaves[0]), Time(5 * US));
    let probes = b.tick(5 * US);
    let net = Arc::clone(&b.routing.net);
    for (i, made) in probes.iter().enumerate() {
        let via = made.via.unwrap();
        assert_eq!((made.at, net.link_name(via)), (b.leaves[0], format!("leaf0->spine{i}")));
        let next = LinkId(net.out_base(net.link(via).to) + u32::from(made.packet.route[0]));
        assert_eq!((net.link(next).to, made.packet.route[1]), (b.leaves[1], ASK));
        assert_eq!((made.packet.wire_len, made.packet.payload), (64, 0));
    }
    assert_eq!(probes.len(), 3);
    // Packets were sent before these probes, but none before the next ones would be due.
    b.path(50 * US, 1);
    assert_eq!(b.tick(105 * US).len(), 3);
    assert_eq!((b.tick(205 * US).len(), b.tick(SEC).len()), (0, 0));
    b.path(SEC, 2);
    assert_eq!(b.tick(SEC).len(), 3);
}

const SEC: u64 = 1_000_000 * US;

#[test]
fn a_new_flow_takes_the_fastest_path_and_keeps_it() {
    let mut b = Bench::new(|_| ());
    let first = b.spine_of(0, 0);
    let probes = b.tick(0);
    b.answer(0, &probes, [Some(30 * US), Some(20 * US), Some(25 * US)]);
    assert_eq!([1, 2].map(|flow| b.spine_of(40 * US, flow)), [1, 1]);
    let probes = b.tick(100 * US);
    b.answer(100 * US, &probes, [Some(30 * US), Some(90 * US), Some(25 * US)]);
    assert_eq!([0, 1, 3].map(|flow| b.spine_of(190 * US, flow)), [first, 1, 2]);
}

#[test]
fn ties_go_by_the_hash() {
    let mut b = Bench::new(|_| ());
    let mut spines: Vec<u32> = (0..8).map(|flow| b.spine_of(0, flow)).collect();
    spines.sort_unstable();
    spines.dedup();
    assert_eq!(spines, [0, 1, 2]);
}

#[test]
fn a_path_whose_probe_is_lost_is_the_slowest_until_one_comes_back() {
    let mut b = Bench::new(|_| ());
    b.path(0, 0);
    let probes = b.tick(0);
    b.answer(0, &probes, [Some(30 * US), None, Some(40 * US)]);
    // Within the period the path still counts as empty.
    assert_eq!(b.spine_of(50 * US, 1), 1);
    let probes = b.tick(100 * US);
    assert_eq!(b.spine_of(100 * US, 2), 0);
    b.answer(100 * US, &probes, [None, Some(20 * US), None]);
    assert_eq!(b.spine_of(150 * US, 3), 1);
}

#[test]
fn flows_leave_a_dead_path_which_counts_as_empty_when_its_link_returns() {
    let mut b = Bench::new(|_| ());
    b.path(0, 0);
    let probes = b.tick(0);
    b.answer(0, &probes, [Some(10 * US), Some(20 * US), Some(30 * US)]);
    assert_eq!(b.spine_of(40 * US, 1), 0);
    b.set_dead(&["leaf0->spine0", "spine0->leaf0"]);
    assert_eq!([1, 2].map(|flow| b.spine_of(50 * US, flow)), [1, 1]);
    assert_eq!(b.tick(100 * US).len(), 2);
    b.set_dead(&[]);
    let link = b.routing.net.link_named("leaf0->spine0").unwrap();
    b.with(150 * US, |routing, site| routing.on_link(link, true, site));
    assert_eq!([1, 3].map(|flow| b.spine_of(150 * US, flow)), [1, 0]);
    // Spine 1 has no way down, so the path is dead although its first link is not.
    b.set_dead(&["spine1->leaf1"]);
    assert_ne!(b.spine_of(160 * US, 1), 1);
}

#[test]
fn a_diverted_probe_is_ignored() {
    let mut b = Bench::new(|_| ());
    b.path(0, 0);
    let probe = b.tick(0)[1].packet;
    assert!(b.take(10 * US, b.spine, &probe));
    assert_eq!(b.routing.take_made().count(), 0);
}

#[test]
fn answers_of_flows_are_balanced_too_and_probes_take_their_direction() {
    let mut b = Bench::new(|_| ());
    let leaf = b.leaves[1];
    let mut ack = Packet { flags: Packet::BACK, route: [ASK; ROUTE_HOPS], ..Packet::new(FlowId(0), Kind::ACK, 40) };
    b.with(0, |routing, site| routing.next(&mut ack, leaf, None, site)).unwrap();
    while b.with(0, |routing, site| routing.on_timer(leaf, site)) {}
    let probes: Vec<Made> = b.routing.take_made().collect();
    assert!(probes.len() == 3 && probes.iter().all(|made| made.at == leaf && made.packet.has(Packet::BACK)));
    assert!(b.take(7 * US, b.leaves[0], &probes[0].packet));
    let answer = b.routing.take_made().next().unwrap();
    assert!(!answer.packet.has(Packet::BACK) && answer.at == b.leaves[0]);
}

#[test]
fn no_more_paths_are_probed_than_asked_for() {
    let mut b = Bench::new(|p| p.paths = 2);
    b.path(0, 0);
    let names: Vec<String> = b.tick(0).iter().map(|made| b.routing.net.link_name(made.via.unwrap())).collect();
    assert_eq!(names, ["leaf0->spine0", "leaf0->spine1"]);
    assert!((0..8).all(|flow| b.spine_of(0, flow) < 2));
}

#[test]
fn hosts_of_one_leaf_need_no_path() {
    let mut b = Bench::new(|_| ());
    b.flows[0].dst = HostId(1);
    let leaf = b.leaves[0];
    let mut packet = Packet { route: [ASK; ROUTE_HOPS], ..Packet::data(FlowId(0), 0, 1460, 40) };
    let link = b.with(0, |routing, site| routing.next(&mut packet, leaf, None, site)).unwrap();
    assert_eq!(b.routing.net.link_name(link), "leaf0->h1");
    assert_eq!(b.tick(0), []);
}

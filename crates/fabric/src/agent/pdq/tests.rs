use super::*;
use base::params::Params as _;
use base::{NodeId, Slab};
use proto::flow::Flow;
use proto::kit::script;
use proto::packet::Ext;

const GBPS: u64 = 1_000_000_000;
const US: u64 = 1_000_000;
const RTT: Dur = Dur::from_us(129);
/// The port under test, and another port.
const PORT: LinkId = LinkId(4);
const OTHER: LinkId = LinkId(9);

/// A single port of 1 Gb/s without a network.
struct Bench {
    port: Pdq,
    flows: Vec<Flow>,
    ext: Slab<Ext>,
}

impl Bench {
    /// Flows without deadlines.
    fn new(flows: u32, change: impl FnOnce(&mut Params)) -> Bench {
        let mut params = Params::defaults();
        change(&mut params);
        let rate = Rate::from_gbps(1);
        let env = Env {
            link: PORT,
            node: NodeId(0),
            rate,
            nic_rate: rate,
            header_bytes: 40,
            host_port: false,
            given: base::Given::none(),
        };
        let flows = (0..flows).map(|id| script::flow(id, 1_000_000)).collect();
        Bench { port: Pdq::new(&params, &env), flows, ext: Slab::default() }
    }
    fn with<R>(&mut self, now_us: u64, act: impl FnOnce(&mut Pdq, &mut PortCx<'_>) -> R) -> R {
        act(
            &mut self.port,
            &mut PortCx { now: Time(now_us * US), flows: &self.flows, ext: &mut self.ext, port: &crate::agent::PortState::NEW },
        )
    }
    /// A packet passes the port at once. Returns its header afterwards.
    fn pass(&mut self, now_us: u64, mut packet: Packet, header: Header) -> Header {
        packet.set_ext(header, &mut self.ext);
        self.with(now_us, |port, cx| {
            port.on_enqueue(&packet, cx);
            port.on_depart(&mut packet, cx);
        });
        let header = packet.get_ext(&self.ext);
        self.ext.remove(packet.ext());
        header
    }
    /// Sends a probe of a flow with this T in microseconds.
    fn probe(&mut self, now_us: u64, flow: u32, expected_us: u64) -> Header {
        self.pass(now_us, Packet::new(FlowId(flow), Kind::PROBE, 40), asks(expected_us))
    }
    /// The answer to the probe returns.
    fn answer(&mut self, now_us: u64, flow: u32, header: Header) -> Header {
        let mut packet = Packet::new(FlowId(flow), Kind::PROBEACK, 40);
        packet.set_ext(header, &mut self.ext);
        self.with(now_us, |port, cx| port.on_return(&packet, cx));
        let header = packet.get_ext(&self.ext);
        self.ext.remove(packet.ext());
        header
    }
    /// Sends a probe and at once its answer: the flow then has the allotted rate.
    fn settle(&mut self, now_us: u64, flow: u32, expected_us: u64) -> Header {
        let header = self.probe(now_us, flow, expected_us);
        self.answer(now_us, flow, header)
    }
    fn fin(&mut self, now_us: u64, flow: u32) {
        let mut fin = Packet::new(FlowId(flow), Kind::FIN, 40);
        self.with(now_us, |port, cx| {
            port.on_enqueue(&fin, cx);
            port.on_depart(&mut fin, cx);
        });
    }
    fn order(&self) -> Vec<u32> {
        self.port.list().iter().map(|entry| entry.flow.0).collect()
    }
    fn entry(&self, flow: u32) -> Entry {
        *self.port.list().iter().find(|entry| entry.flow == FlowId(flow)).expect("in the list")
    }
    /// A waiting packet of this many bytes enters the queue, or leaves it.
    fn queue(&mut self, now_us: u64, bytes: u16, comes: bool) {
        let mut packet = Packet::new(FlowId(0), Kind::ACK, bytes);
        self.with(now_us, |port, cx| if comes { port.on_enqueue(&packet, cx) } else { port.on_depart(&mut packet, cx) });
    }
}

fn asks(expected_us: u64) -> Header {
    Header { rate_bps: GBPS, expected_ps: expected_us * US, rtt_ps: RTT.ps(), ..Header::default() }
}

fn paused_by(port: LinkId) -> Header {
    let mut header = asks(5000);
    header.pause(port);
    Header { rate_bps: GBPS, ..header }
}

/// A list for working out Alg. 2 by hand: T in microseconds and R in Mb/s.
fn golden() -> Bench {
    let mut b = Bench::new(6, |_| ());
    for (flow, (expected, mbps)) in [(60, 1000), (200, 1000), (150, 400), (4000, 600), (9000, 0)].into_iter().enumerate() {
        b.port.list.push(Entry {
            flow: FlowId(flow as u32),
            rate: Rate(mbps * 1_000_000),
            paused: false,
            deadline: Time::MAX,
            expected: Dur::from_us(expected),
            rtt: RTT,
            last_seen: Time::ZERO,
        });
    }
    b
}

#[test]
fn golden_available_bandwidth() {
    let b = golden();
    let free: Vec<u64> = (0..=5).map(|at| b.port.available(at).0 / 1_000_000).collect();
    // X after two entries is 2.016: the third flow counts although it is short.
    assert_eq!(free, [1000, 1000, 1000, 600, 0, 0]);
    // Without early start the first flow fills the port.
    let mut b = golden();
    b.port.params.early_start = Fraction(0);
    assert_eq!((0..=3).map(|at| b.port.available(at).0).collect::<Vec<_>>(), [GBPS, 0, 0, 0]);
}

#[test]
fn golden_rate_controller() {
    let line = Rate::from_gbps(1);
    assert_eq!(controlled(line, 30_000, RTT), Rate(69_767_442));
    assert_eq!(controlled(line, 0, RTT), line);
    assert_eq!(controlled(line, 40_000, RTT), Rate(0), "never below nothing");
}

#[test]
fn golden_suppressed_probing() {
    let mut b = Bench::new(12, |p| p.min_flows = 12);
    for flow in 0..10 {
        b.settle(0, flow, 1000 + u64::from(flow));
    }
    for (index, ppb) in [(0, 0), (1, 200_000_000), (4, 800_000_000), (9, 1_800_000_000)] {
        let header = b.settle(1, index, 1000 + u64::from(index));
        assert_eq!(header.probe_rtts, ppb, "index {index}");
    }
    // Another port asked for a larger spacing.
    let header = b.probe(2, 4, 1004);
    let header = b.answer(2, 4, Header { probe_rtts: 1_000_000_000, ..header });
    assert_eq!(header.probe_rtts, 1_000_000_000);
}

#[test]
fn the_list_is_sorted_by_deadline_then_time_then_id() {
    let mut b = Bench::new(6, |_| ());
    for (flow, deadline_us) in [(1, 900), (2, 500), (5, 500)] {
        b.flows[flow].deadline = Some(Time(deadline_us * US));
    }
    for (flow, expected) in [(0, 10), (1, 50), (2, 70), (3, 10), (4, 5), (5, 60)] {
        b.probe(0, flow, expected);
    }
    assert_eq!(b.order(), [5, 2, 1, 4, 0, 3]);
    // A flow moves ahead in the list as it sends.
    b.probe(1, 0, 4);
    assert_eq!(b.order(), [5, 2, 1, 0, 4, 3]);
}

#[test]
fn the_most_critical_flow_gets_the_port_and_the_others_are_paused() {
    let mut b = Bench::new(3, |_| ());
    let header = b.settle(0, 1, 5000);
    assert_eq!((header.rate_bps, header.paused_by), (GBPS, 0));
    let header = b.settle(10, 2, 6000);
    assert!(header.is_paused() && !header.is_paused_by_other_port(PORT) && header.rate_bps == 0);
    assert!(b.entry(2).paused && b.entry(2).rate == Rate(0));
    // A shorter flow preempts.
    assert_eq!(b.settle(20, 0, 4000).rate_bps, GBPS);
    let header = b.settle(30, 1, 4900);
    assert_eq!((header.is_paused(), header.rate_bps), (true, 0));
    // The shorter flow is done.
    b.fin(40, 0);
    assert_eq!(b.order(), [1, 2]);
    assert_eq!(b.settle(50, 1, 4900).rate_bps, GBPS);
}

#[test]
fn a_rate_is_the_flows_only_when_its_answer_has_come() {
    let mut b = Bench::new(2, |_| ());
    let first = b.probe(0, 0, 5000);
    assert_eq!((b.entry(0).rate, b.probe(1, 1, 6000).rate_bps), (Rate(0), GBPS), "nobody has the port yet");
    // Another port allots less than this port.
    b.answer(2, 0, Header { rate_bps: 300_000_000, ..first });
    assert_eq!(b.probe(3, 1, 6000).rate_bps, 700_000_000, "what the first flow leaves");
    // A rate allotted by an earlier port is not raised.
    let header = b.pass(4, Packet::new(FlowId(1), Kind::PROBE, 40), Header { rate_bps: 5, ..asks(6000) });
    assert_eq!(header.rate_bps, 5);
}

#[test]
fn early_start_lets_the_next_flow_in_before_the_first_is_done() {
    let mut b = Bench::new(3, |_| ());
    b.settle(0, 0, 259);
    assert!(b.settle(1, 1, 5000).is_paused(), "two round trips and more are left");
    b.settle(100, 0, 257);
    assert_eq!(b.settle(101, 1, 5000).rate_bps, GBPS);
    assert!(b.settle(102, 2, 6000).is_paused());
}

#[test]
fn flows_paused_by_other_ports_do_not_hold_the_port() {
    let mut b = Bench::new(2, |_| ());
    b.settle(0, 0, 5000);
    // The flow's packet carries the pause.
    let header = b.pass(10, Packet::new(FlowId(0), Kind::PROBE, 40), paused_by(OTHER));
    assert_eq!((header, b.order()), (paused_by(OTHER), vec![]));
    // The flow's answer carries the pause.
    b.settle(20, 0, 5000);
    let header = b.answer(21, 0, paused_by(OTHER));
    assert_eq!((header.rate_bps, header.probe_rtts, b.order()), (0, 0, vec![]));
    // A flow that this port paused is accepted again by its probe.
    let header = b.pass(30, Packet::new(FlowId(0), Kind::PROBE, 40), paused_by(PORT));
    assert_eq!((header.is_paused(), header.rate_bps), (false, GBPS));
}

#[test]
fn no_two_paused_flows_are_accepted_at_once() {
    // Dampening for a tenth of 129 us, and no dampening.
    for (dampening, accepted) in [("0.1", false), ("0", true)] {
        let mut b = Bench::new(4, |p| p.dampening = base::units::parse_fraction(dampening).unwrap());
        b.settle(0, 0, 4000);
        b.settle(1, 1, 5000);
        b.settle(2, 2, 6000);
        b.fin(10, 0);
        let ask = |b: &mut Bench, at, flow| b.pass(at, Packet::new(FlowId(flow), Kind::PROBE, 40), paused_by(PORT));
        // The answers are still in flight: the port looks free to both flows.
        assert!(!ask(&mut b, 20, 1).is_paused());
        assert_eq!(!ask(&mut b, 32, 2).is_paused(), accepted);
        assert!(!ask(&mut b, 32, 1).is_paused(), "the same flow again");
        // New flows are not paused flows.
        assert!(!b.probe(33, 3, 3000).is_paused());
        let later = ask(&mut b, 46, 2);
        assert!(!later.is_paused(), "12.9 us after 32 us it is over");
    }
}

#[test]
fn the_capacity_follows_the_queue_every_two_round_trips() {
    let mut b = Bench::new(1, |_| ());
    b.probe(0, 0, 5000);
    b.queue(10, 30_000, true);
    b.probe(257, 0, 5000);
    assert_eq!(b.port.capacity(), Rate(GBPS));
    b.probe(258, 0, 5000);
    assert_eq!(b.port.capacity(), Rate(69_767_442));
    assert_eq!(b.probe(259, 0, 5000).rate_bps, 69_767_442);
    // The queue is empty long before the next update; no packet passes until much later.
    b.queue(300, 30_000, false);
    b.probe(515, 0, 5000);
    assert_eq!(b.port.capacity(), Rate(69_767_442));
    b.probe(2000, 0, 5000);
    assert_eq!((b.port.capacity(), b.port.adjusted), (Rate(GBPS), Time(7 * 258 * US)));
}

#[test]
fn pdq_may_have_a_share_of_the_line() {
    let mut b = Bench::new(1, |p| p.pdq_share = Fraction(900_000_000));
    assert_eq!(b.probe(0, 0, 5000).rate_bps, 900_000_000);
}

#[test]
fn the_list_holds_twice_the_flows_that_send() {
    let mut b = Bench::new(9, |p| p.min_flows = 2);
    for flow in 0..4 {
        b.probe(0, flow, 5000 + u64::from(flow));
    }
    assert_eq!(b.order(), [0, 1], "nobody sends yet: the least");
    // A more critical flow replaces the least critical one.
    b.probe(1, 8, 4000);
    assert_eq!(b.order(), [8, 0]);
    // Two flows send, each at half the rate: four may be in the list.
    for (flow, expected) in [(8, 4000), (0, 5000)] {
        let header = b.probe(2, flow, expected);
        b.answer(2, flow, Header { rate_bps: GBPS / 2, ..header });
    }
    for flow in 1..6 {
        b.probe(3, flow, 5000 + u64::from(flow));
    }
    assert_eq!(b.order(), [8, 0, 1, 2]);
    // A sending flow that sends another packet keeps its place.
    b.probe(4, 8, 3900);
    assert_eq!((b.order(), b.entry(8).rate), (vec![8, 0, 1, 2], Rate(GBPS / 2)));
    let mut b = Bench::new(9, |p| (p.min_flows, p.max_flows) = (2, 3));
    for flow in 0..9 {
        let header = b.probe(0, flow, 5000);
        b.answer(0, flow, Header { rate_bps: 1, ..header });
    }
    assert_eq!(b.order(), [0, 1, 2], "the hard limit");
}

#[test]
fn flows_outside_the_list_share_what_it_leaves() {
    let mut b = Bench::new(4, |p| p.min_flows = 1);
    let header = b.probe(0, 0, 1000);
    b.answer(0, 0, Header { rate_bps: GBPS / 2, ..header });
    // The list holds two flows; a third gets no rate at first and is paused. It ranks behind both.
    b.probe(1, 1, 2000);
    let header = b.probe(2, 2, 9000);
    assert!(header.is_paused());
    assert_eq!((b.answer(2, 2, header).probe_rtts, b.order()), (400_000_000, vec![0, 1]));
    // After a round trip it gets a tenth of the free half, less a tenth of the 40 bytes (2.48 Mb/s)
    // of requests in that round trip.
    let header = b.pass(130, Packet::new(FlowId(2), Kind::PROBE, 40), paused_by(PORT));
    assert_eq!((header.is_paused(), header.rate_bps), (false, 49_751_938));
}

#[test]
fn silent_flows_are_forgotten() {
    let mut b = Bench::new(3, |_| ());
    b.settle(0, 0, 5000);
    b.settle(15_000, 1, 6000);
    assert!(b.settle(20_000, 1, 6000).is_paused());
    assert_eq!(b.settle(20_001, 1, 6000).rate_bps, GBPS);
    assert_eq!(b.order(), [1]);
}

#[test]
fn other_packets_pass_untouched() {
    let mut b = Bench::new(2, |_| ());
    b.settle(0, 0, 5000);
    let before = b.port.list.clone();
    // An ACK of the reverse direction, and data that arrives over the cable.
    assert_eq!(b.pass(5, Packet::new(FlowId(1), Kind::ACK, 40), asks(1)), asks(1));
    let mut data = Packet::data(FlowId(1), 0, 1460, 40);
    data.set_ext(asks(1), &mut b.ext);
    b.with(6, |port, cx| port.on_return(&data, cx));
    assert_eq!((data.get_ext::<Header>(&b.ext), &b.port.list), (asks(1), &before));
}

#[test]
fn a_dead_link_leaves_nothing_behind() {
    let mut b = Bench::new(2, |_| ());
    b.settle(0, 0, 5000);
    b.queue(1, 30_000, true);
    b.probe(300, 0, 5000);
    assert_ne!(b.port.capacity(), Rate(GBPS));
    b.port.on_link_down();
    assert_eq!((b.order(), b.port.capacity(), b.port.queued), (vec![], Rate(GBPS), 0));
}

use super::line_tests::{DELAY, Line, line, plain_line};
use super::*;
use base::params::Params as _;
use base::{LinkId, NodeId, Slab};
use proptest::prelude::*;
use proto::flow::Flow;
use proto::kit::script;
use proto::packet::Ext;
use proto::transport::merp::{self as host, BOOST, DETACK};

const SEC: u64 = 1_000_000_000_000;
const MS: u64 = 1_000_000_000;
const US: u64 = 1_000_000;
/// Transmission time of a full packet with header at 1 Gb/s, in ps.
const FULL_TX: u64 = 12 * US;
const BARE_TX: u64 = 320_000;
/// Unloaded round trip per link.
const HOP_RTT: u64 = FULL_TX + BARE_TX + 20 * US;

/// A single port without a network.
struct Bench {
    port: Merp,
    flows: Vec<Flow>,
    ext: Slab<Ext>,
}

impl Bench {
    fn new(rate: Rate, flows: Vec<Flow>, change: impl FnOnce(&mut Params)) -> Bench {
        let mut params = Params::defaults();
        change(&mut params);
        let env = Env {
            link: LinkId(4),
            node: NodeId(0),
            rate,
            nic_rate: Rate::from_gbps(1),
            header_bytes: 40,
            host_port: false,
            given: base::Given::none(),
        };
        Bench { port: Merp::new(&params, &env), flows, ext: Slab::default() }
    }
    /// A port at 1 Gb/s with flows of these numbers of full packets.
    fn gbps(packets: &[u64], change: impl FnOnce(&mut Params)) -> Bench {
        let flows = packets.iter().enumerate().map(|(i, n)| script::flow(i as u32, n * 1460)).collect();
        Bench::new(Rate::from_gbps(1), flows, change)
    }
    fn enqueue(&mut self, now: u64, packet: &Packet) {
        self.port.on_enqueue(
            packet,
            &mut PortCx { now: Time(now), flows: &self.flows, ext: &mut self.ext, port: &crate::agent::PortState::NEW },
        );
    }
    fn depart(&mut self, now: u64, packet: &mut Packet) {
        self.port.on_depart(
            packet,
            &mut PortCx { now: Time(now), flows: &self.flows, ext: &mut self.ext, port: &crate::agent::PortState::NEW },
        );
    }
    fn syn(&mut self, now: u64, flow: u32) {
        self.open(now, flow, fresh());
    }
    /// A SYN with `header` arrives at the port and is admitted. Returns its header afterwards.
    fn open(&mut self, now: u64, flow: u32, header: Header) -> Header {
        let mut syn = Packet::new(FlowId(flow), Kind::SYN, 40);
        syn.set_ext(header, &mut self.ext);
        self.port.on_arrive(
            &mut syn,
            &mut PortCx { now: Time(now), flows: &self.flows, ext: &mut self.ext, port: &crate::agent::PortState::NEW },
        );
        self.enqueue(now, &syn);
        let header = syn.get_ext(&self.ext);
        self.ext.remove(syn.ext());
        header
    }
    fn fin(&mut self, now: u64, flow: u32) {
        self.depart(now, &mut Packet::new(FlowId(flow), Kind::FIN, 40));
    }
    /// A packet with `header` leaves the port. Returns its header afterwards.
    fn pass(&mut self, now: u64, mut packet: Packet, header: Header) -> Header {
        packet.set_ext(header, &mut self.ext);
        self.depart(now, &mut packet);
        let header = packet.get_ext(&self.ext);
        self.ext.remove(packet.ext());
        header
    }
    fn det(&mut self, now: u64, flow: u32, header: Header) -> Header {
        self.pass(now, Packet::new(FlowId(flow), DET, 40), header)
    }
    /// The full packet with this number leaves the port.
    fn data(&mut self, now: u64, flow: u32, number: u64) -> Header {
        self.pass(now, Packet::data(FlowId(flow), number * 1460, 1460, 40), fresh())
    }
    fn row(&self, flow: u32) -> Row {
        *self.port.table.get(FlowId(flow)).expect("a known flow")
    }
    fn known(&self) -> Vec<u32> {
        let mut flows: Vec<u32> = self.port.table().iter().map(|(flow, _)| flow.0).collect();
        flows.sort_unstable();
        flows
    }
}

/// The header of a packet that has just left a sender with a NIC of 1 Gb/s.
fn fresh() -> Header {
    Header { asr_bps: 1_000_000_000, theta_bps: 800_000_000, rtt_ps: 129 * US, bits: 800_000_000 << 32, ..Header::default() }
}

/// Table 1 and Fig. 1 of the paper at one byte per second, then the synchronisation of Alg. 1 l.
/// 9-11.
#[test]
fn table_1_and_sync() {
    let flow = |id, size| Flow { size_wire_bytes: size, ..script::flow(id, 1460) };
    // A, B, C.
    let mut b = Bench::new(Rate(8), vec![flow(0, 3), flow(1, 3), flow(2, 4)], |_| ());
    let placed = |b: &Bench, f| (b.row(f).vdl().ps() / SEC, b.row(f).local.ps() / SEC);
    b.syn(0, 0);
    b.syn(0, 2);
    assert_eq!([placed(&b, 2), placed(&b, 0)], [(7, 7), (3, 3)]);
    b.fin(3 * SEC, 0);
    b.syn(3 * SEC, 1);
    // At 10, B is last with esr 3/7; C at 7.
    assert_eq!([placed(&b, 1), placed(&b, 2)], [(10, 7), (7, 7)]);
    // The packet of B carries esr 1/4: it leaves with 1/4, and B is due at 15.
    let header = b.det(3 * SEC, 1, Header { expected_ps: 12 * SEC, ..fresh() });
    assert_eq!((header.expected_ps, b.row(1).vdl()), (12 * SEC, Time(15 * SEC)));
    // The effect ends when the next packet carries less.
    let header = b.det(3 * SEC, 1, fresh());
    assert_eq!((header.expected_ps, b.row(1).vdl()), (7 * SEC, Time(10 * SEC)));
}

#[test]
fn expected_rates_travel_as_configured() {
    let passed = |esr_sync| {
        let mut b = Bench::gbps(&[10], |p| p.esr_sync = esr_sync);
        b.syn(0, 0);
        let local = b.row(0).local.ps();
        assert_eq!(local, 10 * FULL_TX);
        let up = b.det(0, 0, Header { expected_ps: local + 5, expected_echo_ps: local + 9, ..fresh() });
        let first = (up.expected_ps - local.min(up.expected_ps), b.row(0).expected.ps() - local);
        b.det(0, 0, fresh());
        (first, b.row(0).expected.ps() - local)
    };
    assert_eq!(passed(EsrSync::Fresh), ((5, 9), 0), "the echo is used for the rank here, but not passed on");
    assert_eq!(passed(EsrSync::Sticky), ((5, 9), 9), "it only increases");
    assert_eq!(passed(EsrSync::None), ((5, 0), 0));
}

/// Puts `n` flows into the port: flow 0 is due after `better` others, the first of which has
/// `first_rs` left.
fn ranked(n: u32, better: u32, first_rs: u64) -> Bench {
    let mut b = Bench::gbps(&vec![100; n as usize], |_| ());
    for i in 0..n {
        let due = if i == 0 { u64::from(better) * 10 + 5 } else { u64::from(i) * 10 };
        let due = Dur(due * MS);
        let rs = if i == 1 { first_rs } else { 150_000 };
        let row = Row {
            size: 150_000,
            rs,
            arrived: Time::ZERO,
            local: due,
            expected: due,
            paused_by_other_port: false,
            last_seen: Time::ZERO,
            held_until: Time::ZERO,
        };
        b.port.table.insert(FlowId(i), row);
    }
    b
}

/// Alg. 3 at 1 Gb/s with alpha 0.999, theta 0.8 Gb/s and a round trip of 129 us: alpha C RTT = 16108.875 bytes.
#[test]
fn rate_adjustment() {
    let rows = [
        (1, 4, 1_000_000_000, 0, 999_000_000, false),
        (1, 4, 3_000_000, 0, 3_000_000, false),
        (2, 4, 1_000_000_000, 25_000, 3_000_000, true),
        (2, 4, 1_000_000_000, 16_109, 3_000_000, true),
        (2, 4, 1_000_000_000, 16_108, 999_000_000, false),
        (2, 4, 1_000_000_000, 12_000, 999_000_000, false),
        (2, 1001, 1_000_000_000, 25_000, 800_000_000, true),
        (3, 4, 1_000_000_000, 12_000, 1_000_000, true),
        (3, 4, 500_000, 12_000, 500_000, true),
    ];
    for (rank, n, asr_bps, first_rs, granted, paused) in rows {
        let mut b = ranked(n, rank - 1, first_rs);
        let header = b.det(0, 0, Header { asr_bps, ..fresh() });
        assert_eq!((header.asr_bps, header.paused()), (granted, u32::from(paused)), "rank {rank}, n {n}, rs {first_rs}");
    }
}

#[test]
fn the_second_flows_detecting_rate_has_a_floor_on_request() {
    for (floor, granted) in [(1, 3_000_000), (10_000_000, 10_000_000), (2_000_000_000, 800_000_000)] {
        let mut b = ranked(4, 1, 25_000);
        b.port.params.det_min_rate = Rate(floor);
        assert_eq!(b.det(0, 0, fresh()).asr_bps, granted);
        let mut b = ranked(4, 2, 25_000);
        b.port.params.det_min_rate = Rate(floor);
        assert_eq!(b.det(0, 0, fresh()).asr_bps, 1_000_000, "the other flows have no floor");
    }
}

/// 40 of 1540 bytes are 2.6 % of the bytes of DATA and ACKs.
#[test]
fn room_for_acks_is_an_option() {
    let mut b = Bench::gbps(&[10], |p| p.ack_share = Fraction(26_000_000));
    b.syn(0, 0);
    assert_eq!(b.det(0, 0, fresh()).asr_bps, 973_026_000, "0.974 of 0.999 Gb/s");
}

#[test]
fn a_slower_port_lowers_theta_in_proportion() {
    let flows = vec![script::flow(0, 14_600)];
    for (mbps, theta) in [(10_000, 800_000_000), (1_000, 800_000_000), (100, 80_000_000)] {
        let mut b = Bench::new(Rate(mbps * 1_000_000), flows.clone(), |_| ());
        b.syn(0, 0);
        let header = b.det(0, 0, fresh());
        assert_eq!(header.theta_bps, theta);
        assert!(header.asr_bps > header.theta_bps, "a single flow is granted its rate");
    }
}

/// Each port on the path records whether it pauses the flow.
#[test]
fn ports_that_pause_a_flow_are_named_by_their_place() {
    let at = |place: u64, pauses: u64| Header { pauses, bits: fresh().bits | place << 8, ..fresh() };
    let said = |header: Header| (header.ports(), header.pauses);
    let mut second = ranked(3, 1, 150_000);
    assert_eq!(said(second.det(0, 0, at(0, 0))), (1, 0b1));
    assert_eq!(said(second.det(0, 0, at(2, 0b01))), (3, 0b101));
    assert_eq!(said(second.det(0, 0, at(2, 0b10 << 32))), (3, 0b10 << 32 | 0b100));
    let mut first = ranked(3, 0, 150_000);
    assert_eq!(said(first.det(0, 0, at(2, 0b01))), (3, 0b01));
    // From the last bit on, ports share that bit.
    assert_eq!(said(second.det(0, 0, at(31, 0))), (31, 1 << 31));
}

#[test]
fn a_repeated_syn_changes_nothing() {
    let mut b = Bench::gbps(&[10, 20], |_| ());
    b.syn(0, 0);
    b.syn(5, 1);
    let before = [0, 1].map(|flow| (b.row(flow).arrived, b.row(flow).vdl()));
    b.syn(50, 0);
    assert_eq!(before, [0, 1].map(|flow| (b.row(flow).arrived, b.row(flow).vdl())));
}

#[test]
fn what_is_left_is_counted_from_the_highest_byte_that_left() {
    let mut b = Bench::gbps(&[3], |_| ());
    b.flows[0] = script::flow(0, 1460 * 2 + 100);
    b.syn(0, 0);
    assert_eq!(b.row(0).rs, 3140);
    let left = [0, 1, 0].map(|number| {
        b.data(1, 0, number);
        b.row(0).rs
    });
    assert_eq!(left, [1640, 140, 140]);
    b.pass(1, Packet::data(FlowId(0), 2920, 100, 40), fresh());
    assert_eq!(b.row(0).rs, 0);
}

#[test]
fn flows_are_forgotten_when_their_fin_leaves() {
    let mut b = Bench::gbps(&[3], |_| ());
    b.syn(0, 0);
    b.enqueue(1, &Packet::new(FlowId(0), Kind::FIN, 40));
    assert_eq!(b.known(), [0], "DATA may wait ahead of the FIN");
    b.fin(2, 0);
    b.fin(3, 0);
    assert_eq!(b.known(), [0; 0]);
}

#[test]
fn data_enters_an_unknown_flow_and_a_probe_does_not() {
    let mut b = Bench::gbps(&[10, 10], |_| ());
    b.enqueue(0, &Packet::data(FlowId(0), 4 * 1460, 1460, 40));
    assert_eq!(b.known(), [0; 0]);
    b.data(7, 0, 4);
    assert_eq!((b.row(0).arrived, b.row(0).size, b.row(0).rs), (Time(7), 15_000, 7_500));
    assert_eq!(b.row(0).local.ps(), 6 * FULL_TX, "computed with the packet that leaves");
    let header = b.det(8, 1, fresh());
    assert_eq!((header.asr_bps, header.paused(), header.bits & UNKNOWN), (1_000_000, 1, UNKNOWN));
    assert_eq!(b.known(), [0]);
    assert_eq!(b.det(8, 0, fresh()).bits & UNKNOWN, 0);
}

#[test]
fn acks_touch_nothing() {
    let mut b = Bench::gbps(&[10], |_| ());
    for kind in [Kind::SYNACK, Kind::ACK, Kind::FINACK, DETACK, BOOST] {
        let mut packet = Packet::new(FlowId(0), kind, 40);
        b.enqueue(0, &packet);
        b.depart(0, &mut packet);
        assert_eq!((b.known(), packet), (vec![], Packet::new(FlowId(0), kind, 40)));
    }
}

#[test]
fn silent_entries_go_when_they_are_in_the_way() {
    let mut b = Bench::gbps(&[20, 30, 10], |_| ());
    b.syn(0, 0);
    b.syn(0, 1);
    // 20 ms plus 4 probes of 320 us.
    let patience = 20 * MS + 4 * 320 * US;
    assert_eq!(b.det(patience, 1, fresh()).asr_bps, 1_000_000);
    assert_eq!(b.det(patience + 1, 1, fresh()).asr_bps, 999_000_000);
    assert_eq!(b.known(), [1]);
    // The entry is deleted before virtual deadlines are computed.
    b.syn(2 * patience + 2, 2);
    assert_eq!(b.known(), [2]);
    assert_eq!(b.row(2).local.ps(), 10 * FULL_TX);
}

/// The second port on the path pauses a flow that the first port pauses too.
#[test]
fn packets_name_every_port_that_pauses_or_only_the_first() {
    let named = |name_all| {
        let mut b = Bench::gbps(&[100, 200], |p| p.name_all = name_all);
        b.syn(0, 0);
        b.syn(0, 1);
        let mut asks = |pauses| b.det(1, 1, Header { pauses, bits: fresh().bits | 1 << 8, ..fresh() }).paused();
        [asks(0b00), asks(0b01)]
    };
    assert_eq!(named(true), [0b10, 0b11]);
    assert_eq!(named(false), [0b10, 0b01]);
}

/// Flow 0 ranks first; flow 1 requests a rate. A round trip is 129 us.
#[test]
fn a_flow_that_sends_is_paused_for_flows_that_were_granted_their_rate() {
    const HELD: u64 = 1_000_000;
    const FREE: u64 = 999_000_000;
    let asks = |hold_granted, lead: fn(&mut Bench), at: u64, sends: bool| {
        let mut b = Bench::gbps(&[100, 200], |p| p.hold_granted = hold_granted);
        b.syn(0, 0);
        b.syn(0, 1);
        lead(&mut b);
        if sends { b.data(at * US, 1, 0).asr_bps } else { b.det(at * US, 1, fresh()).asr_bps }
    };
    let granted = |b: &mut Bench| assert_eq!(b.det(10 * US, 0, fresh()).asr_bps, FREE);
    assert_eq!([139, 140].map(|at| asks(true, granted, at, true)), [HELD, FREE]);
    assert_eq!(asks(false, granted, 140, true), HELD, "literal rule, until the next packet");
    assert_eq!(asks(true, granted, 140, false), HELD, "a flow that waits is paused for all flows ahead");
    let paused = |b: &mut Bench| {
        b.det(10 * US, 0, fresh());
        b.det(20 * US, 0, Header { pauses: 1, bits: fresh().bits | 1 << 8, ..fresh() });
    };
    assert_eq!(asks(true, paused, 21, true), FREE, "another port pauses the first");
}

/// Flow 0 is third, after flows with 30 000 and 40 000 bytes; a round trip at alpha C is 16 109
/// bytes.
#[test]
fn an_early_start_counts_all_flows_ahead_and_the_queue() {
    let granted = |hold_granted, tenths: u64, wait: Option<u64>| {
        let mut b = ranked(3, 2, 30_000);
        b.port.table.get_mut(FlowId(2)).expect("ranked").rs = 40_000;
        b.port.params.hold_granted = hold_granted;
        b.port.params.early_start = Fraction(tenths * Fraction::ONE.0 / 10);
        b.port.params.count_queue = wait.is_some();
        b.port.queued_until = Time(wait.unwrap_or(0) * US);
        b.det(0, 0, fresh()).asr_bps > 800_000_000
    };
    assert!([granted(true, 43, None), granted(true, 44, None)] == [false, true], "70 000 of 16 109 bytes");
    assert!(!granted(false, 100, None), "literal rule: only the second flow starts early");
    assert!([granted(true, 44, Some(100)), granted(true, 52, Some(100))] == [false, true], "100 us are 12 500 bytes");
}

#[test]
fn flows_paused_by_other_ports_or_finished_do_not_hold_the_port() {
    let asks = |change: fn(&mut Params), lead: fn(&mut Bench)| {
        let mut b = Bench::gbps(&[100, 200], change);
        b.syn(0, 0);
        b.syn(0, 1);
        lead(&mut b);
        b.det(1, 1, fresh()).asr_bps
    };
    const HELD: u64 = 1_000_000;
    const FREE: u64 = 999_000_000;
    assert_eq!(asks(|_| (), |_| ()), HELD);
    // The port is the second on the path; the low words of `pauses` are the present state of ports,
    // the high words their state in the last ACK.
    const PLACE: u64 = 1 << 8;
    fn report(b: &mut Bench, pauses: u64) {
        b.det(0, 0, Header { pauses, bits: fresh().bits | PLACE, ..fresh() });
    }
    let upstream = |b: &mut Bench| report(b, 0b001);
    assert_eq!(asks(|_| (), upstream), FREE);
    assert_eq!(asks(|p| p.skip_paused = false, upstream), HELD);
    assert_eq!(asks(|_| (), |b| report(b, 0b100 << 32)), FREE, "downstream");
    assert_eq!(asks(|_| (), |b| report(b, 0b110 << 32)), FREE, "here too");
    assert_eq!(asks(|_| (), |b| report(b, 0b010 << 32)), HELD, "only here");
    assert_eq!(asks(|_| (), |b| report(b, 0b011 << 32)), HELD, "the previous port has released the flow since");
    let again = |b: &mut Bench| {
        report(b, 0b001);
        report(b, 0);
    };
    assert_eq!(asks(|_| (), again), HELD, "every packet sets the state again");
    let gone = |b: &mut Bench| _ = b.data(0, 0, 99);
    assert_eq!(asks(|_| (), gone), FREE);
    // In the literal algorithm it still ranks first, but with no bytes left the second flow starts
    // early.
    assert_eq!(asks(|p| p.rank_needs_rs = false, gone), FREE);
}

#[test]
fn a_finished_flow_uses_up_the_early_start_to_the_letter() {
    let third = |needs_rs| {
        let mut b = Bench::gbps(&[10, 20, 30], |p| p.rank_needs_rs = needs_rs);
        (0..3).for_each(|i| b.syn(0, i));
        b.data(0, 0, 9);
        b.data(0, 1, 15);
        b.det(1, 2, fresh()).asr_bps
    };
    assert_eq!((third(true), third(false)), (999_000_000, 1_000_000));
}

#[test]
fn a_dead_link_voids_the_table() {
    let mut b = ranked(4, 1, 25_000);
    b.det(0, 0, fresh());
    b.port.on_link_down();
    assert_eq!(b.known(), [0; 0]);
    b.syn(1, 2);
    assert_eq!(b.det(1, 2, fresh()).asr_bps, 999_000_000);
}

proptest! {
    /// The short list of leaders compared with a count of all flows.
    #[test]
    fn ranks_are_as_counted(steps in prop::collection::vec((0u32..8, 0u8..6, 0u64..400), 1..120)) {
        let mut b = Bench::gbps(&[12, 3, 7, 30, 1, 12, 60, 5], |_| ());
        let mut now = 0;
        for (flow, act, x) in steps {
            now += x * US / 10;
            let packets = b.flows[flow as usize].size_bytes / 1460;
            let header = Header { pauses: x % 3 / 2, expected_ps: x % 7 * 20 * US, ..fresh() };
            let header = match act {
                0 => { b.syn(now, flow); continue }
                1 => { b.fin(now, flow); continue }
                2 => b.pass(now, Packet::data(FlowId(flow), (x % packets) * 1460, 1460, 40), header),
                _ => b.det(now, flow, header),
            };
            let ahead = match b.port.table.get(FlowId(flow)) {
                None => 2,
                Some(row) => {
                    let mine = (row.vdl(), row.arrived, flow);
                    let others = b.port.table().iter().filter(|(other, row)| other.0 != flow && row.rs > 0 && !row.paused_by_other_port);
                    others.filter(|(other, row)| (row.vdl(), row.arrived, other.0) < mine).count()
                }
            };
            let first = b.port.table().iter().filter(|(f, row)| f.0 != flow && row.rs > 0 && !row.paused_by_other_port);
            let first_rs = first.min_by_key(|(f, row)| (row.vdl(), row.arrived, *f)).map_or(0, |(_, row)| row.rs);
            let granted = match ahead {
                0 => 999_000_000,
                1 if first_rs <= 16_108 => 999_000_000,
                1 => 1_000_000 * (b.port.table.len() as u64 - 1),
                _ => 1_000_000,
            };
            prop_assert_eq!(header.asr_bps, granted);
        }
    }
}

#[test]
fn parameters_are_checked() {
    let rate = Rate::from_gbps(1);
    let env = |rate| Env {
        link: LinkId(0),
        node: NodeId(0),
        rate,
        nic_rate: rate,
        header_bytes: 40,
        host_port: true,
        given: base::Given::none(),
    };
    assert_eq!(check(&Params::defaults(), &env(rate)), []);
    let params = Params { alpha: Fraction(999_999_999), ..Params::defaults() };
    assert_eq!(check(&params, &env(rate)), []);
    assert_eq!(check(&params, &env(Rate(1_000_000)))[0].key, "alpha");
}

// The following tests use hosts and wires.

/// Flows with these numbers of packets, each from its own NIC, started 1 us apart, over ports 0
/// (shared by all), 1 and 2.
fn trunk(packets: &[u64], start_us: impl Fn(usize) -> u64) -> Line {
    let paths: Vec<[usize; 4]> = (0..packets.len()).map(|i| [3 + i, 0, 1, 2]).collect();
    let flow = |(i, n): (usize, &u64)| (Dur::from_us(start_us(i)), *n, &paths[i][..]);
    plain_line(&packets.iter().enumerate().map(flow).collect::<Vec<_>>())
}

/// Vector U1: SYN and SYNACK over 4 links, 99 gaps at alpha C, and the last packet's travel time.
#[test]
fn a_single_flow_takes_the_time_of_the_closed_form() {
    let mut l = trunk(&[100], |_| 0);
    l.run(Time::MAX);
    l.assert_clean();
    let handshake = 8 * (BARE_TX + DELAY.ps());
    assert_eq!(l.finish(0), Time(handshake + 99 * 12_012_013 + 4 * (FULL_TX + DELAY.ps())));
    assert_eq!(l.finish(0), Time(1_359_749_287));
}

/// Section 4.3.3: between two flows the port is idle for less than a round trip.
#[test]
fn flows_follow_each_other() {
    for n in [2, 5, 12] {
        let mut l = trunk(&vec![300; n], |i| i as u64);
        l.run(Time::MAX);
        l.assert_clean();
        let mut sent: Vec<Time> = (0..n as u32).flat_map(|i| l.data_at(0, i)).collect();
        sent.sort();
        assert_eq!(sent.len(), 300 * n);
        let idle: Vec<u64> = sent.windows(2).map(|pair| pair[1].ps() - pair[0].ps() - FULL_TX).filter(|t| *t > FULL_TX).collect();
        // Early start shortens this; with a few waiting flows, the second of which probes often,
        // the port is not idle at all.
        assert!(idle.len() <= 2 && idle.iter().all(|t| *t <= 4 * HOP_RTT), "{n}: {idle:?} ps");
        assert!(n != 5 || idle.is_empty(), "{idle:?} ps");
    }
}

/// Flows shorter than a round trip start early (Alg. 3 l. 6-7): each opens while the previous flow
/// holds the port, and none has to probe.
#[test]
fn early_start_fills_the_round_trip() {
    let mut l = trunk(&[10; 20], |i| 130 * i as u64);
    l.run(Time::MAX);
    l.assert_clean();
    let alone = 8 * (BARE_TX + DELAY.ps()) + 9 * 12_012_013 + 4 * (FULL_TX + DELAY.ps());
    for i in 0..20 {
        let fct = l.finish(i).ps() - 130 * US * i as u64;
        assert!(fct < alone + 4 * FULL_TX, "flow {i}: {fct} ps, alone {alone}");
    }
    for (i, pair) in (0..20).map(|i| l.data_at(0, i)).collect::<Vec<_>>().windows(2).enumerate().skip(1) {
        let syn = Time(130 * US * (i as u64 + 1) + 2 * (BARE_TX + DELAY.ps()));
        assert!(pair[0][9] > syn, "flow {i} is gone when the next one opens");
    }
    assert!(l.departures.iter().all(|(_, _, packet)| packet.kind != DET));
}

/// Section 4.1: a short flow takes the port from a long flow within a round trip.
#[test]
fn a_short_flow_preempts_a_long_one() {
    let mut l = trunk(&[2000, 40], |i| 3_000 * i as u64);
    l.run(Time::MAX);
    l.assert_clean();
    let short = l.data_at(0, 1);
    let syn = Time(3_000 * US + BARE_TX + DELAY.ps());
    assert!(short[0] <= syn + Dur(4 * HOP_RTT + FULL_TX), "{:?}", short[0]);
    assert!(short[39] <= short[0] + Dur(45 * 12_012_013), "held up by the long flow");
    let long = l.data_at(0, 0);
    let resumed = long.iter().find(|t| **t > short[20]).expect("the long flow goes on");
    let before = long.iter().rev().find(|t| **t < *resumed).expect("it began first");
    assert!(*before <= syn + Dur(4 * HOP_RTT + 2 * FULL_TX), "the long flow stopped at {before:?}");
    assert!(*resumed <= short[39] + Dur(4 * HOP_RTT + 320 * US), "the long flow goes on at {resumed:?}");
}

/// Section 2.2: waiting raises a flow's expansion ratio until it is served first, whatever other
/// flows arrive.
#[test]
fn an_endless_stream_of_short_flows_starves_nobody() {
    // 300 packets every 3.6 ms use the whole capacity, for 432 ms; the long flow needs 7.2 ms on an
    // idle port.
    let shorts = 120;
    let mut packets = vec![300; shorts + 1];
    packets[0] = 600;
    let paths: Vec<[usize; 2]> = (0..=shorts).map(|i| [1 + i.min(1) * (1 + i % 8), 0]).collect();
    let flow = |(i, n): (usize, &u64)| (Dur::from_us(3_600 * i as u64), *n, &paths[i][..]);
    let mut l = plain_line(&packets.iter().enumerate().map(flow).collect::<Vec<_>>());
    l.run(Time::MAX);
    l.assert_clean();
    let last = (0..=shorts).map(|i| l.finish(i)).max().expect("flows");
    assert!(l.finish(0) < Time(100 * MS), "{:?} of {last:?}", l.finish(0));
}

#[test]
fn every_kind_of_packet_may_be_lost_once() {
    for kind in [Kind::SYN, Kind::DATA, Kind::FIN, DET, Kind::SYNACK, Kind::ACK, Kind::FINACK, DETACK, BOOST] {
        for nth in [1, 2] {
            let mut l = trunk(&[100, 60, 100, 80], |i| 5 * i as u64);
            let lost = std::rc::Rc::new(std::cell::Cell::new(0));
            let seen = lost.clone();
            l.lose = Box::new(move |_, packet| {
                seen.set(seen.get() + u32::from(packet.kind == kind));
                packet.kind == kind && seen.get() == nth
            });
            l.run(Time(SEC));
            assert!(lost.get() >= nth, "no {kind:?} was sent");
            l.assert_clean();
            assert!((0..4).all(|i| l.finish(i) < Time(20 * MS)), "{kind:?}");
            let late = (0..4).map(|i| l.closed(i).expect("closed").timeouts).sum::<u32>();
            let repeated = matches!(kind, Kind::SYN | Kind::DATA | Kind::FIN | Kind::SYNACK | Kind::FINACK);
            assert!(late >= u32::from(repeated) && late <= 2, "{kind:?}: {late} timeouts");
        }
    }
}

#[test]
fn a_dead_sender_is_forgotten_and_the_next_flow_goes_on() {
    let mut l = trunk(&[300, 300], |i| 100 * i as u64);
    // Host 3 stops sending at 1 ms.
    l.lose = Box::new(|now, packet| now > Time(MS) && packet.flow == FlowId(0));
    l.run(Time(22 * MS));
    assert!(l.data_at(0, 1).is_empty(), "the dead flow holds the port");
    l.run(Time(60 * MS));
    assert!(l.finish(1) < Time(40 * MS), "{:?}", l.finish(1));
    assert_eq!(l.ports[0].agent.table().len(), 0);
}

#[test]
fn a_port_that_lost_its_table_learns_the_flows_again() {
    let mut l = trunk(&[200, 300, 400], |i| i as u64);
    l.run(Time(MS));
    l.ports[0].agent.on_link_down();
    l.run(Time::MAX);
    l.assert_clean();
    let most = (0..3).map(|i| l.finish(i)).max().expect("flows");
    assert!(most < Time(900 * 12_012_013 + 3 * MS), "{most:?}");
}

/// f crosses A and B, g holds B, k needs A: k may use A while f waits for B.
#[test]
fn a_flow_paused_by_another_port_leaves_this_port_to_others() {
    let finish_of_k = |skip_paused| {
        let params = Params { skip_paused, ..Params::defaults() };
        let (a, b) = (0, 1);
        let flows: [(Dur, u64, &[usize]); 3] =
            [(Dur::ZERO, 300, &[2, b]), (Dur::from_us(50), 310, &[3, a, b]), (Dur::from_us(60), 700, &[4, a])];
        let mut l = line(&flows, &params, &host::Params::defaults());
        l.run(Time::MAX);
        l.assert_clean();
        l.finish(2)
    };
    let free = Time(700 * 12_012_013 + MS);
    assert!(finish_of_k(true) > Time(700 * 12_012_013));
    let (skipped, literal) = (finish_of_k(true), finish_of_k(false));
    assert!(skipped < literal, "{skipped:?} {literal:?}");
    assert!(literal > free + Dur(3 * MS), "{literal:?}");
}

/// x waits for A after z and for B after g; f waits only for A and ranks after x. When z is done, f
/// continues at A at once: x does not hold A until it has been informed, port by port, about B.
#[test]
fn a_flow_that_waits_at_two_ports_holds_neither() {
    let (a, b) = (0, 1);
    let flows: [(Dur, u64, &[usize]); 4] = [
        (Dur::ZERO, 200, &[2, a]),
        (Dur::from_us(10), 400, &[3, b]),
        (Dur::from_us(20), 450, &[4, a, b]),
        (Dur::from_us(30), 700, &[5, a]),
    ];
    let mut l = plain_line(&flows);
    l.run(Time::MAX);
    l.assert_clean();
    let done = *l.data_at(a, 0).last().expect("z sends");
    let next = l.data_at(a, 3)[0];
    assert!(next < done + Dur(HOP_RTT), "A was idle from {done:?} to {next:?}");
    // x, which ranks before f, gets both ports when B is free.
    let free = *l.data_at(b, 1).last().expect("g sends");
    assert!(l.data_at(b, 2)[0] < free + Dur(640 * US + 4 * HOP_RTT), "{:?} {free:?}", l.data_at(b, 2)[0]);
    assert!(l.finish(2) < l.finish(3));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Whatever arrives and whatever is lost: all flows end, tables hold only open flows, no header
    /// block is leaked.
    #[test]
    fn nothing_is_left_behind(
        flows in prop::collection::vec((0u64..3_000, 1u64..60, 0usize..6), 1..12),
        lossy in 0u64..60,
        seed in any::<u64>(),
        sync in prop::sample::select(vec![EsrSync::Fresh, EsrSync::Sticky, EsrSync::Downstream, EsrSync::None]),
    ) {
        let lossy = lossy.saturating_sub(30);
        const PATHS: [&[usize]; 6] = [&[0, 4, 5], &[0, 5], &[1, 4], &[1, 5, 6], &[2, 4, 6], &[3, 6]];
        let flows: Vec<_> = flows.iter().map(|&(start, n, path)| (Dur::from_us(start), n, PATHS[path])).collect();
        let (ports, hosts) = (Params::defaults(), host::Params::defaults());
        let mut l = line(&flows, &Params { esr_sync: sync, ..ports }, &host::Params { esr_sync: sync, ..hosts });
        let mut rng = base::Rng::stream(seed, "loss", &[]);
        l.lose = Box::new(move |_, _| rng.below(1000) < lossy);
        for stop in 1..60 {
            l.run(Time(stop * 500 * US));
            for port in &l.ports {
                for (flow, row) in port.agent.table().iter() {
                    prop_assert!(row.rs <= row.size);
                    prop_assert!(lossy > 0 || l.closed(flow.index()).is_none(), "flow {} is still known", flow);
                }
            }
        }
        l.run(Time(100 * SEC));
        for i in 0..flows.len() {
            prop_assert!(l.finish(i) < Time::MAX && l.closed(i).is_some(), "flow {i}");
        }
        prop_assert!(l.ext.is_empty());
        if lossy == 0 && sync == EsrSync::Fresh {
            // Bound: all flows one after the other.
            let work: u64 = flows.iter().map(|(_, n, _)| n * 12_012_013 + 600 * US).sum();
            let last = (0..flows.len()).map(|i| l.finish(i)).max().expect("flows");
            prop_assert!(last <= Time(3_000 * US + work), "{last:?}, work {work} ps");
        }
    }
}

/// Section 4.4: a full table marks the SYN. A marked SYN and packets in the class of overflowed
/// flows delete the entry and create none.
#[test]
fn a_full_table_marks_syns() {
    let mut b = Bench::gbps(&[10; 5], |p| p.table_limit = Auto::Set(2));
    assert_eq!([0, 1, 2].map(|flow| b.open(0, flow, fresh()).bits & STATELESS), [0, 0, STATELESS]);
    assert_eq!(b.known(), [0, 1]);
    // Known flows may repeat their SYN.
    assert_eq!(b.open(1, 0, fresh()).bits & STATELESS, 0);
    // The marked SYN leaves unchanged: no rate, no pause.
    let marked = Header { bits: fresh().bits | STATELESS, ..fresh() };
    assert_eq!(b.pass(2, Packet::new(FlowId(2), Kind::SYN, 40), marked), marked);
    // DATA without an entry is marked as unknown, and its flow may only probe.
    let header = b.data(3, 3, 0);
    assert_eq!((header.bits & UNKNOWN, header.asr_bps, b.known()), (UNKNOWN, 1_000_000, vec![0, 1]));
    // Another port had no room for flow 1; flow 0 is already in its class.
    b.open(4, 1, marked);
    assert_eq!(b.known(), [0]);
    let mut cx = PortCx { now: Time(5), flows: &b.flows, ext: &mut b.ext, port: &crate::agent::PortState::NEW };
    let mut data = Packet { prio: OVERFLOW, ..Packet::data(FlowId(0), 0, 1460, 40) };
    b.port.on_arrive(&mut data, &mut cx);
    b.port.on_enqueue(&data, &mut cx);
    b.port.on_depart(&mut data, &mut cx);
    assert_eq!((b.known(), data.prio), (vec![], OVERFLOW));
    // Silent entries are deleted to make room.
    assert_eq!([3, 4].map(|flow| b.open(6, flow, fresh()).bits & STATELESS), [0; 2]);
    assert_eq!(b.open(SEC, 0, fresh()).bits & STATELESS, 0);
    assert_eq!(b.known(), [0]);
}

#[test]
fn fifty_flows_pass_tables_of_four() {
    for lost in [false, true] {
        let flows: Vec<(Dur, u64, Vec<usize>)> =
            (0..50).map(|i| (Dur::from_us(37 * i), 1 + 7 * i % 40, vec![i as usize % 5, 5, 6])).collect();
        let flows: Vec<(Dur, u64, &[usize])> = flows.iter().map(|f| (f.0, f.1, &f.2[..])).collect();
        let params = Params { table_limit: Auto::Set(4), ..Params::defaults() };
        let mut line = line(&flows, &params, &host::Params::defaults());
        let mut count = 0;
        // Every 13th packet, of any kind.
        line.lose = Box::new(move |_, _| {
            count += 1;
            lost && count % 13 == 0
        });
        for stop in 1..100 {
            line.run(Time(stop * 500 * US));
            assert!(line.ports[5].agent.table().len() <= 4);
        }
        line.run(Time(60 * SEC));
        line.assert_clean();
        let overflowed =
            line.departures.iter().filter(|d| d.2.prio == OVERFLOW).map(|d| d.2.flow).collect::<std::collections::BTreeSet<_>>();
        assert!(overflowed.len() > 10, "{} flows overflowed", overflowed.len());
    }
}

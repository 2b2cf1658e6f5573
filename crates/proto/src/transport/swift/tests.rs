use super::*;
use crate::kit::script::{self, Script};
use crate::packet::Kind;
use base::params::Params as _;
use base::{FlowId, HostId};
use std::collections::BTreeMap;

const SMSS: u64 = 1460;

fn us(n: u64) -> Dur {
    Dur::from_us(n)
}

fn at(n: u64) -> Time {
    Time::ZERO + us(n)
}

/// Parameters with a base target of 50 us, without flow scaling and without a part for the path.
fn flat() -> Params {
    Params {
        base_target: Auto::Set(us(50)),
        per_hop: Auto::Set(Dur::ZERO),
        fs_range: Auto::Set(Dur::ZERO),
        endpoint_target: Auto::Set(us(20)),
        endpoint_gain: Fraction::ONE,
        ..Params::defaults()
    }
}

/// A flow at its sender, with a window in packets.
struct Driven {
    rules: SwiftRules,
    state: SwiftState,
}

impl Driven {
    fn new(params: &Params, cwnd: f64) -> Driven {
        let rules = SwiftRules::new(params, &script::env());
        let mut state = rules.open(&script::flow(0, 1));
        let window = DelayWindow { cwnd: (cwnd * ONE as f64) as u64, decreased: None };
        (state.fabric, state.endpoint, state.rtt) = (window, window, us(100));
        Driven { rules, state }
    }
    /// An ACK of `packets` with these delays, now. Returns both windows in packets.
    fn ack(&mut self, now: Time, fabric: Dur, endpoint: Dur, packets: u64) -> [f64; 2] {
        let flow = script::flow(0, 1);
        let seen = script::ack_with(&flow, packets * SMSS, |ack| {
            (ack.now_ps, ack.rtt_ps, ack.srtt_ps) = (now.0, (fabric + endpoint).0, us(100).0);
        });
        let ack = Ack { feedback: endpoint.0, ..seen };
        self.rules.on_feedback(&mut self.state, &ack);
        self.windows()
    }
    fn lose(&mut self, cause: Cause, now: Time) -> [f64; 2] {
        self.rules.before_loss(&mut self.state, cause, now);
        self.windows()
    }
    fn windows(&self) -> [f64; 2] {
        [self.state.fabric, self.state.endpoint].map(|window| window.cwnd as f64 / ONE as f64)
    }
}

fn near(found: f64, expected: f64) -> bool {
    (found - expected).abs() < 1e-6 * expected
}

/// Algorithm 1, lines 7 to 11: ai per window of ACKs, and ai per packet below one.
#[test]
fn delays_below_the_target_add_to_the_window() {
    for (cwnd, packets, expected) in [(10.0, 1, 10.1), (4.0, 2, 4.5), (1.0, 1, 2.0), (0.5, 1, 1.5)] {
        let found = Driven::new(&flat(), cwnd).ack(at(1), us(49), Dur::ZERO, packets);
        assert!(near(found[0], expected), "{cwnd}: {found:?}");
    }
    let half = Params { ai: Fraction(500_000_000), ..flat() };
    assert!(near(Driven::new(&half, 10.0).ack(at(1), us(49), Dur::ZERO, 1)[0], 10.05));
}

/// Lines 12 to 14 by hand: at twice the target 1 - 0.8 / 2 = 0.6; at four times the target
/// 1 - 0.8 * 3 / 4 = 0.4 is below the bound 0.5; at the target nothing.
#[test]
fn delays_above_the_target_cut_in_proportion() {
    for (delay, expected) in [(100, 6.0), (200, 5.0), (50, 10.0), (80, 7.0)] {
        let found = Driven::new(&flat(), 10.0).ack(at(1), us(delay), Dur::ZERO, 1);
        assert!(near(found[0], expected), "{delay}: {found:?}");
    }
}

#[test]
fn a_window_is_cut_once_per_round_trip() {
    let mut flow = Driven::new(&flat(), 10.0);
    let times = [1000, 1050, 1099, 1100, 1150].map(|now| flow.ack(at(now), us(100), Dur::ZERO, 1)[0]);
    for (found, expected) in times.into_iter().zip([6.0, 6.0, 6.0, 3.6, 3.6]) {
        assert!(near(found, expected), "{times:?}");
    }
}

/// Section 3.3: each window follows its delay, and the smaller counts.
#[test]
fn fabric_and_endpoint_have_their_own_windows() {
    let mut flow = Driven::new(&flat(), 10.0);
    // The endpoint's target is 20 us: 1 - 0.8 / 2.
    let found = flow.ack(at(1), us(49), us(40), 1);
    assert!(near(found[0], 10.1) && near(found[1], 6.0), "{found:?}");
    assert_eq!(flow.state.cwnd(), flow.state.endpoint.cwnd);
    let mut flow = Driven::new(&flat(), 10.0);
    let found = flow.ack(at(1), us(100), us(19), 1);
    assert!(near(found[0], 6.0) && near(found[1], 10.1), "{found:?}");
    assert_eq!(flow.state.cwnd(), flow.state.fabric.cwnd);
}

/// The wait of the ACK at the sender is part of the endpoint delay.
#[test]
fn the_wait_of_the_ack_is_endpoint_delay() {
    let mut flow = Driven::new(&flat(), 10.0);
    let own = script::flow(0, 1);
    let seen = script::ack_with(&own, SMSS, |ack| {
        (ack.now_ps, ack.rtt_ps, ack.srtt_ps, ack.waited_ps) = (at(1).0, us(89).0, us(100).0, us(25).0);
    });
    let ack = Ack { feedback: us(15).0, ..seen };
    flow.rules.on_feedback(&mut flow.state, &ack);
    let found = flow.windows();
    assert!(near(found[0], 10.1) && near(found[1], 6.0), "{found:?}");
}

#[test]
fn the_endpoint_delay_is_smoothed() {
    let mut flow = Driven::new(&Params { endpoint_gain: Fraction(125_000_000), ..flat() }, 10.0);
    let delays = [16, 80, 16].map(|delay| {
        flow.ack(at(1), us(10), us(delay), 1);
        flow.state.endpoint_delay
    });
    assert_eq!(delays, [Some(us(16)), Some(us(24)), Some(us(23))]);
}

/// Section 3.5 by hand, between 0.1 and 100 packets with a range of 100 us: one packet adds
/// 100 (1 - 0.1) / (3.16228 - 0.1) = 29.39 us, four packets 13.06 us.
#[test]
fn targets_of_small_windows_are_longer() {
    let params = Params { fs_range: Auto::Set(us(100)), fs_max_cwnd: Auto::Set(Fraction(100_000_000_000)), ..flat() };
    let rows = [(0.05, 150.0), (0.1, 150.0), (1.0, 79.390), (4.0, 63.062), (100.0, 50.0), (1000.0, 50.0)];
    for (cwnd, expected) in rows {
        let flow = Driven::new(&params, cwnd);
        let found = flow.rules.fabric_target(&flow.state).0 as f64 / 1e6;
        assert!((found - expected).abs() < 1e-3, "{cwnd}: {found}");
    }
}

/// Five switches of 3 us; by default the unloaded round trip of the flow.
#[test]
fn targets_of_long_paths_are_longer() {
    let hops = Params { per_hop: Auto::Set(us(3)), ..flat() };
    let target = |params: &Params| {
        let flow = Driven::new(params, 1000.0);
        flow.rules.fabric_target(&flow.state)
    };
    assert_eq!(target(&hops), us(65));
    assert_eq!(target(&Params { per_hop: Auto::Auto, ..flat() }), us(50) + Dur::from_ns(129_280));
    // All defaults: twice the unloaded round trip of the longest path.
    assert_eq!(target(&Params::defaults()), Dur::from_ns(2 * 129_280));
}

/// Lines 15 to 25: half of the window, once per round trip; the fifth timeout in a row resets the
/// window, and an ACK ends the row.
#[test]
fn losses_halve_both_windows_and_timeouts_in_a_row_reset_them() {
    let mut flow = Driven::new(&flat(), 10.0);
    assert_eq!(flow.lose(Cause::Duplicates, at(1000)), [5.0; 2]);
    assert_eq!(flow.lose(Cause::Duplicates, at(1099)), [5.0; 2]);
    assert_eq!(flow.lose(Cause::Timeout, at(1100)), [2.5; 2]);
    for n in 1..4 {
        let now = at(1100 + n * 1000);
        assert_eq!(flow.lose(Cause::Timeout, now), [2.5 / (1 << n) as f64; 2]);
    }
    let found = flow.lose(Cause::Timeout, at(9000));
    assert!(near(found[0], 0.001) && near(found[1], 0.001), "{found:?}");

    let mut flow = Driven::new(&flat(), 10.0);
    for n in 1..10 {
        flow.lose(Cause::Timeout, at(n * 1000));
        flow.ack(at(n * 1000 + 500), us(10), Dur::ZERO, 1);
        assert!(flow.windows()[0] > 1.0, "{n}");
    }
}

#[test]
fn windows_keep_their_bounds() {
    // The default bound: two longest bandwidth-delay products, 32320 bytes at 1 Gb/s.
    let mut flow = Driven::new(&Params::defaults(), 10.0);
    for n in 0..2000 {
        flow.ack(at(n), us(1), Dur::ZERO, 10);
    }
    assert!(flow.windows().iter().all(|cwnd| (cwnd - 32_320.0 / 1460.0).abs() < 1e-3), "{:?}", flow.windows());
    for n in 0..2000 {
        flow.ack(at(10_000 + n * 200), Dur::from_ms(1), Dur::from_ms(1), 1);
    }
    assert!(flow.windows().iter().all(|cwnd| near(*cwnd, 0.001)), "{:?}", flow.windows());
}

#[test]
fn a_window_that_is_not_the_limit_does_not_grow() {
    let mut flow = Driven::new(&flat(), 10.0);
    let own = script::flow(0, 1);
    let ack = script::ack_with(&own, SMSS, |ack| {
        (ack.now_ps, ack.rtt_ps, ack.srtt_ps, ack.window_limited) = (at(1).0, us(10).0, us(10).0, false);
    });
    flow.rules.on_feedback(&mut flow.state, &ack);
    assert_eq!(flow.windows(), [10.0; 2]);
}

/// Packets in, packets out: the first round trip is twice the target, so that 6 of 10 packets are
/// left; a window of half a packet sends one every two round trips.
#[test]
fn the_window_limits_the_packets_in_flight() {
    let params = Params { tcp: Options { init_window: Auto::Set(10), ..Params::defaults().tcp }, ..flat() };
    let mut host = Script::new(Swift::new(&params, &script::env()), vec![script::flow(0, 100 * SMSS)]);
    assert_eq!(host.open(0).len(), 10);
    let ack = |n: u64, sent: Time| Packet { offset: n * SMSS, words: [0, sent.ps()], ..Packet::new(FlowId(0), Kind::ACK, 40) };
    host.advance(at(100));
    // Nine are in flight, more than six.
    assert_eq!(host.packet(ack(1, Time::ZERO)), []);
    // Four are left of the first ten, and 6 + 4 / 6 packets fit.
    host.now = at(140);
    assert_eq!(host.packet(ack(5, at(100))).len(), 1);
}

#[test]
fn a_window_below_one_packet_is_paced() {
    let params =
        Params { tcp: Options { init_window: Auto::Set(1), ..Params::defaults().tcp }, max_mdf: Fraction(500_000_000), ..flat() };
    let mut host = Script::new(Swift::new(&params, &script::env()), vec![script::flow(0, 100 * SMSS)]);
    assert_eq!(host.open(0).len(), 1);
    let ack = |n: u64, sent: Time| Packet { offset: n * SMSS, words: [0, sent.ps()], ..Packet::new(FlowId(0), Kind::ACK, 40) };
    host.advance(at(500));
    // 500 us, ten times the target: the window is half a packet, one every 1000 us.
    assert_eq!(host.packet(ack(1, Time::ZERO)), []);
    let sent = host.advance(at(2000));
    assert_eq!(sent.iter().map(|packet| (packet.offset, packet.sent_at)).collect::<Vec<_>>(), [(SMSS, at(1000))]);
}

/// A segment whose ACK never comes: the timeouts, every 200 us, halve the window of 10 packets to 0.625, whose pacing
/// delays the fourth retransmission to 600 + 129.28 / 0.625 us. The fifth timeout sets the window to 0.001.
#[test]
fn the_machine_counts_every_timeout_in_a_row() {
    let rto = Auto::Set(us(200));
    let tcp = Options { min_rto: rto, init_rto: rto, max_rto: us(200), init_window: Auto::Set(10), ..Params::defaults().tcp };
    let mut host =
        Script::new(Swift::new(&Params { tcp, ..Params::defaults() }, &script::env()), vec![script::flow(0, 100 * SMSS)]);
    assert_eq!(host.open(0).len(), 10);
    let sent = host.advance(at(130_200));
    assert!(sent.iter().all(|packet| packet.offset == 0), "{sent:?}");
    let times: Vec<u64> = sent.iter().map(|packet| packet.sent_at.ps() / 1_000_000).collect();
    // 806.8 us + 129.28 ms.
    assert_eq!(times, [200, 400, 600, 806, 130_086]);
}

/// The receiver echoes how long the segment waited in its host.
#[test]
fn the_receiver_echoes_the_wait_of_a_segment() {
    let flows = vec![script::flow(0, 2 * SMSS)];
    let mut host = Script::new(Swift::new(&Params::defaults(), &script::env()), flows).at_host(1);
    host.now = at(107);
    let segment = Packet { arrival: at(100), sent_at: at(40), ..Packet::data(FlowId(0), 0, SMSS as u16, 40) };
    let acks = host.packet(segment);
    assert_eq!(acks.iter().map(|ack| ack.words).collect::<Vec<_>>(), [[us(7).0, at(40).ps()]]);
}

/// Hosts 0 and 1 with a queue between them that sends one packet in `service`; ACKs take no time in
/// it. Propagation both ways is `rtt`.
struct Bottleneck {
    hosts: [Script<Swift>; 2],
    flying: BTreeMap<(Time, u64), (usize, Packet)>,
    free_at: Time,
    posted: u64,
    service: Dur,
    rtt: Dur,
    /// Sum and number of the waits in the queue, after half of the run.
    waits: (u64, u64),
}

impl Bottleneck {
    fn run(params: &Params, flows: u32, service: Dur, rtt: Dur, end: Time) -> Bottleneck {
        let flow = |id| Flow { dst: HostId(1), ..script::flow(id, 1 << 40) };
        let host = || Script::new(Swift::new(params, &script::env()), (0..flows).map(flow).collect());
        let hosts = [host(), host().at_host(1)];
        let mut net = Bottleneck { hosts, flying: BTreeMap::new(), free_at: Time::ZERO, posted: 0, service, rtt, waits: (0, 0) };
        for id in 0..flows {
            let sent = net.hosts[0].open(id);
            net.post(0, sent, end);
        }
        loop {
            let next = net.flying.first_key_value().map_or(Time::MAX, |(key, _)| key.0);
            let now = next.min(net.hosts[0].next_wake());
            if now > end {
                return net;
            }
            let sent = net.hosts[0].advance(now);
            net.post(0, sent, end);
            while let Some(first) = net.flying.first_entry()
                && first.key().0 <= now
            {
                let (to, packet) = first.remove();
                net.hosts[to].now = now;
                let sent = net.hosts[to].packet(packet);
                net.post(to, sent, end);
            }
        }
    }
    fn post(&mut self, from: usize, packets: Vec<Packet>, end: Time) {
        for packet in packets {
            let now = packet.sent_at;
            let arrival = if from == 0 {
                let start = self.free_at.max(now);
                if now > Time(end.ps() / 2) {
                    self.waits = (self.waits.0 + start.since(now).0, self.waits.1 + 1);
                }
                self.free_at = start + self.service;
                self.free_at + self.rtt
            } else {
                now
            };
            self.flying.insert((arrival, self.posted), (1 - from, packet));
            self.posted += 1;
        }
    }
}

/// The equilibrium of section 3.5: the delay is the target of every flow's window, and the windows of
/// `n` flows together are the packets that the bottleneck sends in that delay. The closed form is
/// solved by bisection, independently of the code.
#[test]
fn the_queueing_delay_of_many_flows_is_the_target_of_flow_scaling() {
    let (service, rtt) = (12.0, 108.0);
    let (base, range, least, most) = (200.0, 1000.0, 0.1, 50.0);
    let root = |cwnd: f64| 1.0 / cwnd.sqrt();
    // Small steps: the equilibrium does not depend on them.
    let params = Params {
        ai: Fraction(20_000_000),
        base_target: Auto::Set(us(base as u64)),
        per_hop: Auto::Set(Dur::ZERO),
        fs_range: Auto::Set(us(range as u64)),
        fs_max_cwnd: Auto::Set(Fraction((most * 1e9) as u64)),
        ..Params::defaults()
    };
    for flows in [4u32, 16, 64, 200] {
        let target = |cwnd: f64| {
            let part = (root(cwnd) - root(most)) / (root(least) - root(most));
            base + range * part.clamp(0.0, 1.0)
        };
        let (mut low, mut high) = (base, base + range);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if target(middle / service / f64::from(flows)) > middle { low = middle } else { high = middle }
        }
        let net = Bottleneck::run(&params, flows, us(service as u64), us(rtt as u64), Time::ZERO + Dur::from_secs(1));
        let found = net.waits.0 as f64 / net.waits.1 as f64 / 1e6 + service + rtt;
        assert!((found / low - 1.0).abs() < 0.03, "{flows} flows: {found} us, not {low} us");
        // The flows share the bottleneck equally, within the swing of their windows.
        let sent: Vec<f64> = (0..flows).map(|id| net.hosts[1].table.get(FlowId(id)).delivered_bytes as f64).collect();
        let (sum, squares) = sent.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
        let fairness = sum * sum / f64::from(flows) / squares;
        assert!(fairness > 0.9, "{flows} flows: Jain's index {fairness}");
    }
}

#[test]
fn scaled_windows_in_the_wrong_order_are_found() {
    let params = Params { fs_max_cwnd: Auto::Set(Fraction(100_000_000)), ..Params::defaults() };
    assert_eq!(check(&params, &script::env()).iter().map(|p| p.key).collect::<Vec<_>>(), ["fs_min_cwnd"]);
    assert_eq!(check(&Params::defaults(), &script::env()), []);
}

use super::*;
use crate::kit::script::{self, Script};
use crate::packet::{Kind, Packet};
use base::FlowId;
use base::params::Params as _;

const SMSS: u64 = 1460;

fn rules(change: impl FnOnce(&mut Params)) -> CubicRules {
    let mut params = Params { hystart: false, ..Params::defaults() };
    change(&mut params);
    CubicRules::new(&params, SMSS)
}

fn loss(cause: Cause, flight: u64) -> Loss {
    Loss { cause, flight, after_mark: false }
}

/// A flow whose segments are acknowledged one by one, `rtt` after they were sent.
struct Driven {
    rules: CubicRules,
    state: CubicState,
    window: Window,
    now: Time,
    rtt: Dur,
}

impl Driven {
    fn new(rules: CubicRules, segments: u64, rtt: Dur) -> Driven {
        let window = Window { cwnd: segments * SMSS, ssthresh: segments * SMSS };
        Driven { rules, state: rules.open(&script::flow(0, 1)), window, now: Time::ZERO, rtt }
    }
    fn ack(&mut self, window_limited: bool) {
        let flow = script::flow(0, 1);
        let ack = script::ack_with(&flow, SMSS, |ack| {
            (ack.now_ps, ack.srtt_ps, ack.rtt_ps, ack.window_limited) = (self.now.0, self.rtt.0, self.rtt.0, window_limited);
        });
        self.rules.on_ack(&mut self.state, &mut self.window, &ack);
    }
    /// Acknowledges segments evenly over the round trips until `end`.
    fn until(&mut self, end: Time) {
        while self.now < end {
            self.ack(true);
            self.now += Dur(self.rtt.0 * SMSS / self.window.cwnd);
        }
    }
    fn lose(&mut self, cause: Cause) {
        let flight = self.window.cwnd;
        self.window.ssthresh = self.rules.on_loss(&mut self.state, &self.window, loss(cause, flight));
        self.window.cwnd = self.window.ssthresh;
    }
    /// Acknowledges this number of segments evenly over the round trips.
    fn acks(&mut self, segments: u64) {
        for _ in 0..segments {
            self.ack(true);
            self.now += Dur(self.rtt.0 * SMSS / self.window.cwnd);
        }
    }
}

/// Figure 2, computed by hand: (W_max - cwnd) / C is a cube. `C = 0.4`: 100 segments less 70 are 75
/// cubic seconds.
#[test]
fn golden_values_of_the_cubic_function() {
    let cubic = rules(|_| {});
    // 3.2 segments in 2 s, 50 in 5 s.
    assert_eq!(cubic.k(16 * SMSS / 5), 2_000_000_000);
    assert_eq!(cubic.k(50 * SMSS), 5_000_000_000);
    assert_eq!(cubic.k(30 * SMSS), 4_217_163_326);
    assert_eq!(cubic.k(0), 0);
    // Figure 1: concave below K, W_max at K, convex above.
    let w = |seconds: u64| cubic.w_cubic(100 * SMSS, 5_000_000_000, seconds * 1_000_000_000);
    assert_eq!([w(0), w(3), w(5), w(7), w(10)], [50 * SMSS, 484 * SMSS / 5, 100 * SMSS, 516 * SMSS / 5, 150 * SMSS]);
    assert_eq!(cubic.w_cubic(SMSS, 5_000_000_000, 0), 0);
    // Another C: 8 times as steep is twice as fast.
    assert_eq!(rules(|params| params.c = Fraction(3_200_000_000)).k(50 * SMSS), 2_500_000_000);
}

#[test]
fn cube_roots_are_exact() {
    for root in [0u64, 1, 2, 3, 1000, 999_999_937, 5_000_000_000, 4_398_046_511_103] {
        let cube = u128::from(root).pow(3);
        assert_eq!(cube_root(cube), root);
        assert_eq!(cube_root(cube + 3 * u128::from(root).pow(2)), root);
        assert_eq!(cube_root((u128::from(root) + 1).pow(3) - 1), root);
    }
    assert_eq!(cube_root(u128::MAX), 6_981_463_658_331);
}

/// Values beyond every network do not overflow.
#[test]
fn extreme_values_are_bounded() {
    let steep = CubicRules::new(&Params { c: Fraction(1_000_000_000_000), ..Params::defaults() }, 65_535);
    assert_eq!(steep.w_cubic(u64::MAX, 0, u64::MAX), u64::MAX);
    assert_eq!(steep.w_cubic(1 << 48, u64::MAX, 0), 0);
    let slow = rules(|params| params.c = Fraction(1));
    assert!(slow.k(1 << 40) >= slow.k(1 << 30));
    // One part per billion of a segment per cubic second: 10^9 cubic seconds for one segment.
    assert_eq!(slow.k(SMSS), 1_000_000_000_000);
}

/// Sections 4.4 and 4.5: after a loss at 1000 segments the window reaches 700, and follows the
/// function: K = 9.0856 s, W(5 s) = 1000 - 0.4 * 4.0856^3 = 972.72, W(12 s) = 1009.90.
#[test]
fn the_window_follows_the_function_after_a_loss() {
    let mut flow = Driven::new(rules(|_| {}), 1000, Dur::from_ms(100));
    flow.lose(Cause::Duplicates);
    assert_eq!(flow.window.cwnd, 700 * SMSS);
    for (ms, expected) in [(5000u64, 972.72), (9085, 1000.0), (12_000, 1009.90)] {
        flow.until(Time::ZERO + Dur::from_ms(ms));
        let segments = flow.window.cwnd as f64 / SMSS as f64;
        assert!((segments - expected).abs() < 1.5, "{ms}: {segments}");
    }
}

/// Section 4.2: far above the function's target the window grows by half per round trip, and it
/// never shrinks.
#[test]
fn the_target_is_between_the_window_and_one_and_a_half_of_it() {
    let mut flow = Driven::new(rules(|_| {}), 100, Dur::from_ms(100));
    flow.ack(true);
    // An hour passes in one round trip.
    flow.now = Time::ZERO + Dur::from_secs(1000);
    let before = flow.window.cwnd;
    flow.ack(true);
    assert_eq!(flow.window.cwnd, before + (before / 2) * SMSS / before);
    // Below the start of the function the window stays.
    let mut flow = Driven::new(rules(|_| {}), 100, Dur::from_ms(100));
    flow.lose(Cause::Duplicates);
    flow.ack(true);
    let epoch = flow.state.epoch.as_mut().expect("congestion avoidance has begun");
    epoch.w_est = 0;
    flow.window.cwnd = 90 * SMSS;
    flow.ack(true);
    assert_eq!(flow.window.cwnd, 90 * SMSS);
}

/// Section 5.1: the average window of the deterministic loss model, 187 and 1054 segments in Table 1
/// for a round trip of 0.1 s and C = 0.4, and 1874 for C = 4. The appendix gives the cycle: the time
/// from loss to loss is K, and `W_max` is the average divided by (3 + beta) / 4.
#[test]
fn the_average_window_is_that_of_the_response_function() {
    for (c, period, expected) in [(0.4, 10_000u64, 187.0), (0.4, 100_000, 1054.0), (4.0, 100_000, 1874.0)] {
        let cubic = rules(|params| {
            params.c = Fraction((c * 1e9) as u64);
            // The model has one flow: section 4.7.
            params.fast_convergence = false;
        });
        let w_max = expected / 0.925;
        let mut flow = Driven::new(cubic, w_max as u64, Dur::from_ms(100));
        flow.lose(Cause::Duplicates);
        let k = (period as f64 / expected) * 0.1;
        for cycle in 0..4 {
            let begin = flow.now;
            flow.acks(period);
            let (time, window) = (flow.now.since(begin).as_secs_f64(), flow.window.cwnd as f64 / SMSS as f64);
            assert!((time / k - 1.0).abs() < 0.02, "C = {c}, 1/p = {period}, cycle {cycle}: {time} s, not {k} s");
            assert!((window / w_max - 1.0).abs() < 0.02, "C = {c}, 1/p = {period}, cycle {cycle}: {window}, not {w_max}");
            flow.lose(Cause::Duplicates);
        }
    }
}

/// Section 4.3, Figure 3: with the round trip of a data center CUBIC is as fast as Reno,
/// sqrt(3 / (2 p)).
#[test]
fn short_round_trips_give_the_average_window_of_reno() {
    for period in [1_000u64, 10_000] {
        let expected = (1.5 * period as f64).sqrt();
        let cubic = rules(|params| params.fast_convergence = false);
        let mut flow = Driven::new(cubic, expected as u64, Dur::from_us(100));
        let mut begin = Time::ZERO;
        for cycle in 0..40 {
            begin = if cycle == 20 { flow.now } else { begin };
            flow.acks(period);
            flow.lose(Cause::Duplicates);
        }
        let found = (20 * period) as f64 * flow.rtt.0 as f64 / flow.now.since(begin).0 as f64;
        assert!((found / expected - 1.0).abs() < 0.03, "1/p = {period}: {found}, not {expected}");
    }
}

/// Section 4.3: 9/17 segments per round trip up to the window of the last loss, one above it.
#[test]
fn the_reno_friendly_window_grows_by_alpha_then_by_one() {
    let cubic = rules(|_| {});
    assert_eq!(cubic.alpha, (9u64 << 32) / 17);
    let mut flow = Driven::new(cubic, 100, Dur::from_us(100));
    flow.lose(Cause::Duplicates);
    let growth = |flow: &mut Driven, round_trips: u64| {
        let before = flow.window.cwnd;
        let end = flow.now + flow.rtt * round_trips;
        flow.until(end);
        (flow.window.cwnd - before) as f64 / SMSS as f64 / round_trips as f64
    };
    let below = growth(&mut flow, 40);
    assert!((below - 9.0 / 17.0).abs() < 0.02, "{below}");
    // From 91 to 100 segments, and on.
    growth(&mut flow, 20);
    assert!(flow.window.cwnd > 100 * SMSS, "{}", flow.window.cwnd);
    let above = growth(&mut flow, 40);
    assert!((above - 1.0).abs() < 0.03, "{above}");
}

/// Section 4.6: 0.7 of FlightSize, not of the window, down to two segments.
#[test]
fn a_loss_leaves_seven_tenths_of_the_flight() {
    let cubic = rules(|_| {});
    let window = Window { cwnd: 100 * SMSS, ssthresh: u64::MAX };
    for (flight, left) in [(100 * SMSS, 70 * SMSS), (50 * SMSS, 35 * SMSS), (2 * SMSS, 2 * SMSS)] {
        for cause in [Cause::Duplicates, Cause::Timeout] {
            assert_eq!(cubic.on_loss(&mut CubicState::default(), &window, loss(cause, flight)), left);
        }
    }
}

/// Section 4.7: a loss at 80 segments after one at 100 gives 80 * 0.85 = 68.
#[test]
fn a_loss_below_the_last_one_releases_bandwidth() {
    for (fast_convergence, second, w_max) in [(true, 80, 68), (true, 100, 100), (true, 120, 120), (false, 80, 80)] {
        let mut flow = Driven::new(rules(|params| params.fast_convergence = fast_convergence), 100, Dur::from_ms(1));
        flow.lose(Cause::Duplicates);
        assert_eq!(flow.state.w_max, 100 * SMSS);
        flow.window.cwnd = second * SMSS;
        flow.lose(Cause::Duplicates);
        assert_eq!((flow.state.w_max, flow.state.prior), (w_max * SMSS, second * SMSS));
    }
}

/// Section 4.8: after a timeout K is zero and the plateau is the window with which congestion
/// avoidance starts, the first time only.
#[test]
fn after_a_timeout_the_function_starts_at_its_plateau() {
    let mut flow = Driven::new(rules(|_| {}), 100, Dur::from_ms(100));
    flow.lose(Cause::Timeout);
    flow.window.cwnd = SMSS;
    for _ in 0..69 {
        flow.ack(true);
    }
    // Slow start up to the threshold.
    assert!(flow.window.cwnd == 70 * SMSS && flow.state.epoch.is_none());
    flow.ack(true);
    let epoch = flow.state.epoch.expect("congestion avoidance has begun");
    assert_eq!((epoch.k, flow.state.w_max), (0, 70 * SMSS));
    flow.lose(Cause::Duplicates);
    let w_max = flow.state.w_max;
    flow.ack(true);
    assert_eq!(flow.state.w_max, w_max);
    assert!(flow.state.epoch.expect("congestion avoidance has begun").k > 0);
}

/// Section 4.10: a slow start that delay has ended starts congestion avoidance at the plateau, and
/// W_est grows like Reno.
#[test]
fn delay_ends_the_first_slow_start() {
    let mut flow = Driven::new(rules(|params| params.hystart = true), 10, Dur::from_ms(100));
    flow.window.ssthresh = u64::MAX;
    let flow_of = script::flow(0, 1);
    let (mut una, mut rounds) = (0, 0);
    while flow.window.ssthresh == u64::MAX {
        let rtt = Dur::from_ms(if rounds == 0 { 100 } else { 120 });
        for _ in 0..flow.window.cwnd / SMSS {
            una += SMSS;
            let ack = script::ack_with(&flow_of, SMSS, |ack| {
                (ack.snd_una, ack.snd_nxt) = (una, una - SMSS + flow.window.cwnd);
                (ack.rtt_ps, ack.srtt_ps) = (rtt.0, rtt.0);
            });
            flow.rules.on_ack(&mut flow.state, &mut flow.window, &ack);
        }
        rounds += 1;
        assert!(rounds < 10, "slow start goes on");
    }
    let epoch = flow.state.epoch.expect("congestion avoidance has begun");
    assert_eq!((epoch.k, flow.state.prior, flow.state.w_max), (0, flow.window.ssthresh, flow.window.ssthresh));
    // A later slow start ends only at its threshold.
    flow.lose(Cause::Timeout);
    flow.window.cwnd = SMSS;
    flow.rtt = Dur::from_ms(500);
    flow.ack(true);
    assert_eq!(flow.window.cwnd, 2 * SMSS);
}

/// Section 5.8: the time in which the window is not the limit does not count.
#[test]
fn time_without_use_of_the_window_does_not_count() {
    let run = |idle: Dur| {
        let mut flow = Driven::new(rules(|_| {}), 1000, Dur::from_ms(100));
        flow.lose(Cause::Duplicates);
        flow.until(Time::ZERO + Dur::from_secs(2));
        let before = flow.window.cwnd;
        flow.now += idle;
        flow.ack(false);
        assert_eq!(flow.window.cwnd, before);
        let end = flow.now + Dur::from_secs(2);
        flow.until(end);
        flow.window.cwnd
    };
    // The time since the last ACK, a fraction of a millisecond, does not count either.
    assert!(run(Dur::from_secs(60)).abs_diff(run(Dur::ZERO)) < SMSS / 10);
}

/// Packets in, packets out: three duplicate ACKs of ten segments in flight leave a window of seven.
#[test]
fn a_flow_of_packets_continues_with_seven_tenths_of_its_window() {
    let tcp = Options { handshake: false, full_ack_ssthresh: true, ..Options::defaults() };
    let cubic = Cubic::new(&Params { tcp, ..Params::defaults() }, &script::env());
    let mut host = Script::new(cubic, vec![script::flow(0, 100 * SMSS)]);
    assert_eq!(host.open(0).len(), 10);
    let ack = |offset| Packet { offset, ..Packet::new(FlowId(0), Kind::ACK, 40) };
    let resent: Vec<u64> = (0..3).flat_map(|_| host.packet(ack(0))).map(|packet| packet.offset).collect();
    assert_eq!(resent, [0]);
    assert_eq!(host.packet(ack(10 * SMSS)).len(), 7);
}

/// Section 4.6: a mark leaves 0.7 of FlightSize, down to one segment; section 4.7 applies too.
#[test]
fn a_mark_cuts_the_window_like_a_loss_down_to_one_segment() {
    let (cubic, flow) = (rules(|params| params.ecn = true), script::flow(0, 1));
    for (flight, left) in [(100 * SMSS, 70 * SMSS), (50 * SMSS, 35 * SMSS), (SMSS, SMSS)] {
        let mut state = CubicState { w_max: 200 * SMSS, ..CubicState::default() };
        let ack = script::ack_with(&flow, SMSS, |ack| (ack.ece, ack.snd_una, ack.snd_nxt) = (true, SMSS, flight));
        let window = Window { cwnd: 100 * SMSS, ssthresh: u64::MAX };
        assert_eq!(cubic.on_mark(&mut state, &window, &ack), Some(left));
        assert_eq!((state.w_max, state.prior), (85 * SMSS, 100 * SMSS));
    }
}

/// RFC 3168 section 6.1.2: an ACK with an echo does not grow the window, and marks and losses of one
/// window cut it once.
#[test]
fn an_echo_does_not_grow_the_window_and_a_loss_after_a_mark_does_not_cut_it() {
    let (cubic, flow) = (rules(|params| params.ecn = true), script::flow(0, 1));
    for ssthresh in [2 * SMSS, u64::MAX] {
        let mut window = Window { cwnd: 10 * SMSS, ssthresh };
        cubic.on_ack(&mut CubicState::default(), &mut window, &script::ack_with(&flow, SMSS, |ack| ack.ece = true));
        assert_eq!(window.cwnd, 10 * SMSS);
    }
    let mut state = CubicState { w_max: 100 * SMSS, prior: 100 * SMSS, ..CubicState::default() };
    let window = Window { cwnd: 70 * SMSS, ssthresh: 70 * SMSS };
    let after_mark = Loss { after_mark: true, ..loss(Cause::Duplicates, 70 * SMSS) };
    assert_eq!(cubic.on_loss(&mut state, &window, after_mark), 70 * SMSS);
    assert_eq!((state.w_max, state.prior), (100 * SMSS, 100 * SMSS));
}

/// The option decides whether data is ECN-capable.
#[test]
fn data_can_be_marked_with_the_option_only() {
    for ecn in [false, true] {
        let tcp = Options { handshake: false, ..Options::defaults() };
        let cubic = Cubic::new(&Params { tcp, ecn, ..Params::defaults() }, &script::env());
        let sent = Script::new(cubic, vec![script::flow(0, 100 * SMSS)]).open(0);
        assert!(sent.iter().all(|packet| packet.has(Packet::ECT) == ecn));
    }
}

#[test]
fn thresholds_in_the_wrong_order_are_found() {
    let params = Params { min_rtt_thresh: Dur::from_ms(20), ..Params::defaults() };
    assert_eq!(check(&params, &script::env()).iter().map(|p| p.key).collect::<Vec<_>>(), ["min_rtt_thresh"]);
    assert_eq!(check(&Params::defaults(), &script::env()), []);
}

use super::phases::{AckPhase, BbrMode};
use super::*;
use crate::contract::Transport;
use crate::kit::script::{self, Script};
use crate::kit::tcp::LostSegment;
use crate::packet::{Ext, Kind, Packet};
use crate::transport::newreno::{self, NewReno};
use base::FlowId;
use base::params::Params as _;
use std::collections::BTreeMap;

const SMSS: u64 = 1460;

fn us(n: u64) -> Time {
    Time::ZERO + Dur::from_us(n)
}

/// 10 Gb/s and a round trip of 100 us: 125 KB are one bandwidth-delay product of bytes on the wire.
fn fast() -> Env<'static> {
    let rate = Rate::from_gbps(10);
    Env { nic_rate: rate, host_rate: rate, max_rtt: Dur::from_us(100), ..script::env() }
}

fn rules(change: impl FnOnce(&mut Params)) -> BbrRules {
    let mut params = Params::defaults();
    change(&mut params);
    BbrRules::new(&params, &fast())
}

/// A flow whose rate samples are made by hand. One ACK takes one segment and one microsecond.
struct Hand {
    rules: BbrRules,
    state: BbrState,
    window: Window,
    rng: Rng,
    next: RateSample,
}

impl Hand {
    fn new(rules: BbrRules) -> Hand {
        let next = RateSample {
            now: us(100),
            rtt: Some(Dur::from_us(100)),
            srtt: Dur::from_us(100),
            newly_acked: SMSS,
            newly_lost: 0,
            total: 0,
            total_marked: 0,
            in_flight: 80 * SMSS,
            prior_delivered: 0,
            delivered: 80 * SMSS,
            marked: 0,
            interval: Dur::from_us(100),
            rate: Rate::from_gbps(8),
            app_limited: false,
            tx_in_flight: 80 * SMSS,
            lost: 0,
            ece: false,
            cwnd_limited: false,
            recovering: false,
        };
        let window = Window { cwnd: 10 * SMSS, ssthresh: u64::MAX };
        Hand { rules, state: BbrState::new(&rules), window, rng: Rng::stream(1, "bbr", &[]), next }
    }
    /// An ACK with the sample `next`; `change` also changes later samples.
    fn ack(&mut self, change: impl FnOnce(&mut RateSample)) {
        self.next.now += Dur::from_us(1);
        self.next.total += self.next.newly_acked;
        change(&mut self.next);
        self.rules.on_delivery(&mut self.state, &mut self.window, &self.next, &mut self.rng);
    }
    /// An ACK that begins a round: its segment was sent after the last round began.
    fn round(&mut self, change: impl FnOnce(&mut RateSample)) {
        self.next.prior_delivered = self.next.total;
        self.next.now += Dur::from_us(99);
        self.ack(change);
        self.next.prior_delivered = 0;
    }
    /// The state in which a flow of 8 Gb/s cruises.
    fn cruise(rules: BbrRules) -> Hand {
        let mut hand = Hand::new(rules);
        for _ in 0..5 {
            hand.round(|_| {});
        }
        assert_eq!(hand.state.mode, BbrMode::Drain);
        // With so little in flight DOWN ends with the same ACK.
        hand.ack(|sample| sample.in_flight = 60 * SMSS);
        assert_eq!(hand.state.mode, BbrMode::ProbeBwCruise);
        hand
    }
    /// The state in which a flow of 8 Gb/s probes for more.
    fn up(rules: BbrRules) -> Hand {
        let mut hand = Hand::cruise(rules);
        let wait = hand.state.bw_probe_wait;
        hand.next.now += wait;
        hand.ack(|_| {});
        assert_eq!(hand.state.mode, BbrMode::ProbeBwRefill);
        hand.round(|_| {});
        assert_eq!(hand.state.mode, BbrMode::ProbeBwUp);
        // More than one product, so that DOWN does not end at once.
        hand.next.in_flight = 90 * SMSS;
        hand
    }
    /// Segment `number` is found lost with the next ACK.
    fn lost(&mut self, number: u64, lost: u64, tx_in_flight: u64) {
        let app_limited = self.next.app_limited;
        self.state.deliveries.note_loss(LostSegment { number, size: SMSS, tx_in_flight, lost, app_limited });
    }
}

/// 8 Gb/s for 100 us.
const BDP: u64 = 100_000;

#[test]
fn the_first_rate_is_the_initial_window_per_round_trip() {
    let hand = Hand::new(rules(|_| {}));
    // 2.77 * 10 * 1460 B in 50 us, and in the longest unloaded round trip without a handshake.
    assert_eq!(hand.rules.initial_rate(Dur::from_us(50)), Rate(2_336_000_000 * 277 / 100));
    assert_eq!(hand.rules.initial_rate(Dur::ZERO), Rate(1_168_000_000 * 277 / 100));
    assert_eq!(rules(|p| p.init_rtt = Auto::Set(Dur::from_ms(1))).initial_rate(Dur::ZERO), Rate(116_800_000 * 277 / 100));
}

/// Section 5.6.2: the pacing rate of Startup only grows; the margin is 1 %.
#[test]
fn golden_pacing_rate_and_window_in_startup() {
    let mut hand = Hand::new(rules(|_| {}));
    hand.ack(|sample| sample.rate = Rate::from_gbps(1));
    // The rate counts from the end of the step on: 2.77 * 0.99 Gb/s are below 2.77 * 1.168 Gb/s at first.
    assert_eq!((hand.state.bw, hand.state.pacing_rate), (Rate::from_gbps(1), Rate(3_235_360_000)));
    hand.ack(|sample| sample.rate = Rate::from_gbps(2));
    assert_eq!(hand.state.pacing_rate, Rate(2_000_000_000 / 100 * 277 / 100 * 99));
    hand.ack(|sample| sample.rate = Rate(500_000_000));
    assert_eq!(hand.state.pacing_rate, Rate(2_000_000_000 / 100 * 277 / 100 * 99));
    // The window grows by the bytes delivered until it has the initial window, then up to two products.
    assert_eq!(hand.window.cwnd, 13 * SMSS);
    // Two products are 50 000 B; the first three ACKs brought 3 segments in 2 us, 3880 B more than expected.
    for _ in 0..100 {
        hand.next.now += Dur::from_us(9);
        hand.ack(|sample| sample.rate = Rate::from_gbps(2));
    }
    assert_eq!(hand.window.cwnd, (53_880u64).div_ceil(SMSS) * SMSS);
}

/// Section 5.3.1.2: three rounds with less than 25 % of growth.
#[test]
fn startup_ends_when_the_rate_no_longer_grows() {
    let mut hand = Hand::new(rules(|_| {}));
    let modes: Vec<bool> = [1000, 1250, 1500, 1600, 2000, 2400, 2499, 2450]
        .map(|mbps| {
            hand.round(|sample| sample.rate = Rate(mbps * 1_000_000));
            hand.state.full_bw_reached
        })
        .to_vec();
    assert_eq!(modes, [false, false, false, false, false, false, false, true]);
    assert_eq!(
        (hand.state.mode, hand.state.pacing_gain, hand.state.full_bw),
        (BbrMode::Drain, Fraction(500_000_000), Rate(2_000_000_000))
    );
    // Rounds without data to send do not count.
    let mut hand = Hand::new(rules(|_| {}));
    for _ in 0..20 {
        hand.round(|sample| sample.app_limited = true);
    }
    assert_eq!(hand.state.mode, BbrMode::Startup);
}

/// Section 5.3.1.3: a round of recovery with six lost ranges and more than 2 % of loss, even without
/// data to send.
#[test]
fn startup_ends_with_loss_in_six_places() {
    for (ranges, lost, recovering, ends) in
        [(6, 2 * SMSS, true, true), (5, 2 * SMSS, true, false), (6, SMSS, true, false), (6, 2 * SMSS, false, false)]
    {
        let mut hand = Hand::new(rules(|_| {}));
        hand.round(|sample| sample.app_limited = true);
        for n in 0..ranges {
            // Two neighbours are one range.
            hand.lost(10 * n, SMSS, 80 * SMSS);
            hand.lost(10 * n + 1, SMSS, 80 * SMSS);
            hand.ack(|_| {});
        }
        assert_eq!(hand.state.mode, BbrMode::Startup);
        hand.round(|sample| (sample.lost, sample.recovering) = (lost, recovering));
        let is = (hand.state.full_bw_reached, hand.state.mode == BbrMode::Drain);
        assert_eq!(is, (ends, ends), "{ranges} {lost} {recovering}");
        let most = if ends { 80 * SMSS } else { u64::MAX };
        assert_eq!(hand.state.inflight_longterm, most);
    }
}

/// Losses in six places of two rounds do not end Startup.
#[test]
fn lost_ranges_are_counted_per_round() {
    let mut hand = Hand::new(rules(|_| {}));
    hand.next.app_limited = true;
    hand.round(|_| {});
    for n in 0..2 {
        for range in 0..3 {
            hand.lost(100 * n + 10 * range, SMSS, 80 * SMSS);
            hand.ack(|_| {});
        }
        hand.round(|sample| (sample.lost, sample.recovering) = (2 * SMSS, true));
    }
    assert_eq!(hand.state.mode, BbrMode::Startup);
}

/// Section 5.6.4.6: before the initial window is delivered, the window grows whatever the model says.
#[test]
fn the_window_grows_until_the_initial_window_is_delivered() {
    let mut hand = Hand::new(rules(|_| {}));
    for _ in 0..20 {
        // Slowly, so that no ACKs are aggregated.
        hand.next.now += Dur::from_us(200);
        hand.ack(|sample| sample.rate = Rate(100_000_000));
    }
    assert_eq!(hand.window.cwnd, 19 * SMSS);
}

/// Section 5.3.2: the queue is drained, or three rounds have passed.
#[test]
fn drain_ends_with_little_in_flight_or_after_three_rounds() {
    let drain = || {
        let mut hand = Hand::new(rules(|_| {}));
        for _ in 0..4 {
            hand.round(|_| {});
        }
        assert_eq!(hand.state.mode, BbrMode::Drain);
        hand
    };
    for (in_flight, ends) in [(BDP + 1, false), (BDP, true)] {
        let mut hand = drain();
        hand.ack(|sample| sample.in_flight = in_flight);
        assert_eq!(hand.state.mode != BbrMode::Drain, ends);
    }
    let mut hand = drain();
    let modes = [0; 4].map(|_| {
        hand.round(|_| {});
        hand.state.mode
    });
    let [first @ .., last] = modes;
    assert_eq!((first, last), ([BbrMode::Drain; 3], BbrMode::ProbeBwDown));
}

/// Section 5.6.1.
#[test]
fn gains_of_all_states() {
    let mut hand = Hand::new(rules(|_| {}));
    let gains = [
        (BbrMode::Startup, 277, 200),
        (BbrMode::Drain, 50, 200),
        (BbrMode::ProbeBwDown, 90, 200),
        (BbrMode::ProbeBwCruise, 100, 200),
        (BbrMode::ProbeBwRefill, 100, 200),
        (BbrMode::ProbeBwUp, 125, 225),
        (BbrMode::ProbeRtt, 100, 50),
    ];
    for (mode, pacing, cwnd) in gains {
        hand.rules.enter(&mut hand.state, mode);
        let percent = |n: u64| Fraction(n * 10_000_000);
        assert_eq!((hand.state.pacing_gain, hand.state.cwnd_gain), (percent(pacing), percent(cwnd)), "{mode:?}");
    }
}

/// Section 5.3.3.9: CRUISE begins with 15 % below the long-term bound, and one product in flight.
#[test]
fn down_ends_with_headroom() {
    for (longterm, in_flight, cruise) in [
        (u64::MAX, BDP + 1, false),
        (u64::MAX, BDP, true),
        (100_000, 85_000, true),
        (100_000, 85_001, false),
        // At least one segment is left free, at most all but four.
        (8000, 6540, true),
        (8000, 6541, false),
        (5000, 5840, true),
        (5000, 5841, false),
    ] {
        let mut hand = Hand::cruise(rules(|_| {}));
        hand.rules.enter(&mut hand.state, BbrMode::ProbeBwDown);
        hand.state.inflight_longterm = longterm;
        hand.ack(|sample| (sample.in_flight, sample.tx_in_flight) = (in_flight, 0));
        assert_eq!(hand.state.mode == BbrMode::ProbeBwCruise, cruise, "{longterm} {in_flight}");
    }
}

/// Section 5.3.3.8.3: probes by the clock, and by rounds. 68 segments of 1460 B are one product.
#[test]
fn a_probe_begins_after_a_time_or_after_as_many_rounds_as_segments() {
    let hand = Hand::cruise(rules(|_| {}));
    // 67 to 100 round trips of 100 us: 2 to 3 s at 30 ms.
    assert!((Dur(6_666_666_666)..=Dur(10_000_000_000)).contains(&hand.state.bw_probe_wait));
    assert!(hand.state.rounds_since_probe_up <= 1 + 1);
    for (bw, cwnd, rounds) in [(8, BDP, 63), (4, BDP, 34), (8, 20 * SMSS, 20)] {
        let mut hand = Hand::cruise(rules(|p| p.probe_wait = Auto::Set(Dur::from_secs(1))));
        hand.state.bw = Rate::from_gbps(bw);
        hand.state.cwnd = cwnd;
        for (since, due) in [(rounds - 1, false), (rounds, true)] {
            hand.state.rounds_since_probe_up = since;
            assert_eq!(hand.rules.is_time_to_probe_bw(&hand.state, &hand.next), due, "{bw} {cwnd}");
        }
    }
    // The draws differ, and depend on the generator only.
    let waits = |seed| {
        let mut hand = Hand::cruise(rules(|_| {}));
        hand.rng = Rng::stream(seed, "bbr", &[]);
        [0; 20].map(|_| {
            hand.rules.start_down(&mut hand.state, &hand.next, &mut hand.rng);
            (hand.state.bw_probe_wait, hand.state.rounds_since_probe_up)
        })
    };
    assert_eq!(waits(7), waits(7));
    assert!(waits(7).iter().any(|wait| wait.1 == 0) && waits(7).iter().any(|wait| wait.1 == 1));
    assert!(waits(7)[0] != waits(7)[1]);
}

/// Section 5.3.3.3: REFILL forgets the short-term model, and lasts one round.
#[test]
fn refill_resets_the_short_term_model_and_lasts_a_round() {
    let mut hand = Hand::cruise(rules(|_| {}));
    (hand.state.bw_shortterm, hand.state.inflight_shortterm) = (Rate::from_gbps(1), 20 * SMSS);
    hand.next.now += hand.state.bw_probe_wait;
    hand.ack(|_| {});
    assert_eq!((hand.state.mode, hand.state.ack_phase), (BbrMode::ProbeBwRefill, AckPhase::Refilling));
    assert_eq!((hand.state.bw_shortterm, hand.state.inflight_shortterm), (Rate(u64::MAX), u64::MAX));
    assert_eq!(hand.state.bw, Rate::from_gbps(8));
    hand.ack(|_| {});
    assert_eq!(hand.state.mode, BbrMode::ProbeBwRefill);
    hand.round(|_| {});
    assert_eq!((hand.state.mode, hand.state.is_bw_probe_sample), (BbrMode::ProbeBwUp, true));
}

/// Section 5.3.3.7: UP ends after three rounds without growth of the rate, unless `inflight_longterm`
/// limits the flow.
#[test]
fn up_ends_when_the_rate_does_not_grow() {
    let mut hand = Hand::up(rules(|_| {}));
    hand.round(|_| {});
    hand.round(|_| {});
    assert_eq!((hand.state.mode, hand.state.ack_phase), (BbrMode::ProbeBwUp, AckPhase::ProbeFeedback));
    hand.round(|_| {});
    assert_eq!((hand.state.mode, hand.state.ack_phase), (BbrMode::ProbeBwDown, AckPhase::ProbeStopping));
    let mut hand = Hand::up(rules(|_| {}));
    for _ in 0..10 {
        hand.state.inflight_longterm = 100 * SMSS;
        hand.window.cwnd = 500 * SMSS;
        hand.round(|sample| sample.cwnd_limited = true);
        assert_eq!(hand.state.mode, BbrMode::ProbeBwUp);
    }
    // Samples without data to send never end it.
    let mut hand = Hand::up(rules(|_| {}));
    for _ in 0..10 {
        hand.round(|sample| sample.app_limited = true);
    }
    assert_eq!(hand.state.mode, BbrMode::ProbeBwUp);
}

/// Section 5.3.3.5: the long-term bound grows by 1, 2, 4, ... segments per round.
#[test]
fn the_long_term_bound_grows_exponentially() {
    let mut hand = Hand::up(rules(|_| {}));
    hand.state.inflight_longterm = 64 * SMSS;
    hand.next.cwnd_limited = true;
    hand.next.tx_in_flight = 0;
    let mut grown = Vec::new();
    for _ in 0..4 {
        let before = hand.state.inflight_longterm;
        hand.window.cwnd = before;
        // A round of 64 segments, in ACKs of one; its first ACK raises the slope.
        hand.state.probe_up_acked_per_inc = (64 * SMSS) >> (hand.state.bw_probe_up_rounds - 1);
        for _ in 0..64 {
            hand.window.cwnd = hand.state.inflight_longterm;
            hand.ack(|_| {});
        }
        hand.state.bw_probe_up_rounds += 1;
        grown.push((hand.state.inflight_longterm - before) / SMSS);
    }
    assert_eq!(grown, [1, 2, 4, 8]);
    // The slope of a round by itself: the window divided by 1, 2, 4.
    hand.state.bw_probe_up_rounds = 0;
    hand.state.cwnd = 64 * SMSS;
    let slopes = [0; 8].map(|_| {
        hand.rules.raise_inflight_longterm_slope(&mut hand.state);
        hand.state.probe_up_acked_per_inc / SMSS
    });
    assert_eq!(slopes, [64, 32, 16, 8, 4, 2, 1, 1]);
}

/// Section 5.5.10.2, by hand: 100 segments in flight, the third lost segment exceeds 2 %:
/// `lost_prefix = (0.02 * 99 - 2) / 0.98` is below zero; with one loss before, it is 0.98 / 0.98, less what rounding takes.
#[test]
fn golden_inflight_at_loss() {
    let hand = Hand::new(rules(|_| {}));
    let at = |lost| {
        let lost = LostSegment { number: 0, size: SMSS, tx_in_flight: 100 * SMSS, lost: lost * SMSS, app_limited: false };
        hand.rules.inflight_at_loss(lost)
    };
    // 0.02 * 99 * 1460 B are 2890 B; less 1460 B, and / 0.98, they are 1459 B.
    assert_eq!((at(3), at(2)), (99 * SMSS, 99 * SMSS + 1459));
    // The prefix is at most the segment.
    assert_eq!(at(1), 100 * SMSS);
    let high = |lost, tx| hand.rules.is_loss_too_high(lost * SMSS, tx * SMSS);
    assert_eq!([high(2, 100), high(3, 100), high(1, 49), high(0, 0)], [false, true, true, false]);
}

/// Section 5.5.10.2: a loss above 2 % during a probe ends it once, and sets the long-term bound.
#[test]
fn a_probe_with_much_loss_sets_the_long_term_bound() {
    let mut hand = Hand::up(rules(|_| {}));
    hand.window.cwnd = 200 * SMSS;
    hand.lost(1000, 2 * SMSS, 100 * SMSS);
    hand.ack(|_| {});
    assert_eq!((hand.state.mode, hand.state.inflight_longterm), (BbrMode::ProbeBwUp, u64::MAX));
    hand.lost(1001, 3 * SMSS, 100 * SMSS);
    hand.lost(1002, 4 * SMSS, 90 * SMSS);
    hand.ack(|sample| sample.lost = 4 * SMSS);
    // The second segment is no sample of the probe any more.
    assert_eq!((hand.state.mode, hand.state.inflight_longterm), (BbrMode::ProbeBwDown, 99 * SMSS));
    assert!(hand.state.prev_probe_too_high && !hand.state.is_bw_probe_sample);
    // At least beta times one product.
    let mut hand = Hand::up(rules(|_| {}));
    hand.window.cwnd = 200 * SMSS;
    hand.lost(1000, SMSS, 5 * SMSS);
    hand.ack(|sample| sample.lost = 2 * SMSS);
    assert_eq!(hand.state.inflight_longterm, 70_000);
    // Without data to send the probe ends, and the bound stays.
    let mut hand = Hand::up(rules(|_| {}));
    hand.next.app_limited = true;
    hand.lost(1000, 3 * SMSS, 100 * SMSS);
    hand.ack(|_| {});
    assert_eq!((hand.state.mode, hand.state.inflight_longterm), (BbrMode::ProbeBwDown, u64::MAX));
}

/// Section 5.3.3.6: the probe after one that went too far ends at the bound; if it loses nothing, the
/// next probe follows at once.
#[test]
fn the_probe_after_a_loss_is_cautious() {
    let mut hand = Hand::up(rules(|_| {}));
    (hand.state.prev_probe_too_high, hand.state.inflight_longterm) = (true, 90 * SMSS);
    hand.ack(|sample| (sample.in_flight, sample.tx_in_flight) = (89 * SMSS, 80 * SMSS));
    assert_eq!(hand.state.mode, BbrMode::ProbeBwUp);
    hand.ack(|sample| sample.in_flight = 90 * SMSS);
    assert_eq!((hand.state.mode, hand.state.prev_probe_precautionary), (BbrMode::ProbeBwDown, true));
    hand.ack(|_| {});
    assert_eq!(hand.state.mode, BbrMode::ProbeBwDown);
    hand.round(|_| {});
    assert_eq!((hand.state.mode, hand.state.prev_probe_precautionary), (BbrMode::ProbeBwRefill, false));
}

/// Section 5.3.3.9: what was in flight without much loss raises the bound in any state.
#[test]
fn a_flight_without_much_loss_raises_the_bound() {
    for (lost, raised) in [(0, true), (2, true), (3, false)] {
        let mut hand = Hand::cruise(rules(|_| {}));
        hand.state.inflight_longterm = 80 * SMSS;
        hand.ack(|sample| (sample.tx_in_flight, sample.lost) = (100 * SMSS, lost * SMSS));
        assert_eq!(hand.state.inflight_longterm, if raised { 100 * SMSS } else { 80 * SMSS });
    }
}

/// Section 5.5.10.3: once per round with a loss, the short-term bounds become 0.7 of themselves, but
/// at least what was delivered in the round.
#[test]
fn a_loss_while_cruising_lowers_the_short_term_bounds_once_a_round() {
    let mut hand = Hand::cruise(rules(|_| {}));
    hand.window.cwnd = 100 * SMSS;
    hand.round(|sample| (sample.rate, sample.delivered) = (Rate::from_gbps(3), 20 * SMSS));
    hand.lost(1000, SMSS, 80 * SMSS);
    hand.lost(1001, SMSS, 80 * SMSS);
    hand.window.cwnd = 100 * SMSS;
    let before = hand.next.total;
    hand.ack(|_| {});
    // The round of the loss ends with data sent after it was found.
    hand.ack(|sample| sample.prior_delivered = before);
    hand.next.prior_delivered = 0;
    assert_eq!(hand.state.bw_shortterm, Rate(u64::MAX));
    hand.window.cwnd = 100 * SMSS;
    hand.round(|_| {});
    assert_eq!((hand.state.bw_shortterm, hand.state.inflight_shortterm), (Rate(5_600_000_000), 70 * SMSS));
    assert_eq!((hand.state.bw, hand.window.cwnd), (Rate(5_600_000_000), 70 * SMSS));
    // A round without loss changes nothing; the next loss counts from the bounds on.
    hand.round(|_| {});
    assert_eq!(hand.state.inflight_shortterm, 70 * SMSS);
    hand.lost(1002, SMSS, 80 * SMSS);
    hand.ack(|sample| (sample.rate, sample.delivered) = (Rate::from_gbps(5), 60 * SMSS));
    hand.round(|_| {});
    assert_eq!((hand.state.bw_shortterm, hand.state.inflight_shortterm), (Rate::from_gbps(5), 60 * SMSS));
}

/// Section 5.5.10.3: while the flow probes, the short-term bounds stay.
#[test]
fn a_loss_while_probing_leaves_the_short_term_bounds() {
    let mut hand = Hand::up(rules(|_| {}));
    hand.lost(1000, SMSS, 80 * SMSS);
    hand.ack(|_| {});
    hand.round(|_| {});
    assert_eq!((hand.state.mode, hand.state.bw_shortterm), (BbrMode::ProbeBwUp, Rate(u64::MAX)));
}

/// Sections 5.5.5 and 5.5.6: the filter of the rate spans two cycles, without samples that the data
/// limited, unless they are higher.
#[test]
fn the_rate_is_the_largest_of_two_cycles() {
    let mut hand = Hand::cruise(rules(|_| {}));
    let mut after = |gbps, app_limited, advance: bool| {
        hand.ack(|sample| (sample.rate, sample.app_limited) = (Rate::from_gbps(gbps), app_limited));
        if advance {
            hand.state.advance_max_bw_filter();
        }
        hand.state.max_bw().0 / 1_000_000_000
    };
    assert_eq!([after(6, false, true), after(5, false, false), after(7, true, true)], [8, 8, 5]);
    assert_eq!([after(4, true, false), after(4, false, true), after(9, true, false)], [5, 4, 9]);
    // Without a sample in the cycle the previous one stays.
    hand.state.max_bw_filter = [Rate::from_gbps(3), Rate(0)];
    hand.state.advance_max_bw_filter();
    assert_eq!(hand.state.max_bw(), Rate::from_gbps(3));
}

/// Section 5.5.6: a cycle of the filter ends one round after the probe, unless the data ran out.
#[test]
fn the_filter_of_the_rate_advances_a_round_after_a_probe() {
    for app_limited in [false, true] {
        let mut hand = Hand::up(rules(|_| {}));
        for _ in 0..3 {
            hand.round(|_| {});
        }
        hand.ack(|_| {});
        assert_eq!((hand.state.mode, hand.state.max_bw_filter[1]), (BbrMode::ProbeBwDown, Rate::from_gbps(8)));
        hand.round(|sample| (sample.rate, sample.app_limited) = (Rate::from_gbps(7), app_limited));
        assert_eq!(hand.state.max_bw_filter[1] == Rate(0), !app_limited);
    }
}

/// Section 5.5.9, by hand: 8 Gb/s are 1000 B/us. 20 segments within 10 us are 19 200 B more than expected.
#[test]
fn golden_extra_acked() {
    let mut hand = Hand::cruise(rules(|_| {}));
    hand.window.cwnd = 200 * SMSS;
    // The first ACK after a long silence starts the interval.
    hand.next.now += Dur::from_ms(1);
    hand.ack(|sample| sample.newly_acked = 10 * SMSS);
    hand.next.now += Dur::from_us(9);
    hand.ack(|_| {});
    let extra = BbrState::extra_acked;
    assert_eq!(extra(&hand.state), 20 * SMSS - 10_000);
    assert_eq!(hand.rules.max_inflight(&hand.state), 2 * BDP + 20 * SMSS - 10_000);
    // It is at most the window.
    let mut small = Hand::cruise(rules(|_| {}));
    small.next.now += Dur::from_ms(1);
    small.window.cwnd = 5 * SMSS;
    small.ack(|sample| sample.newly_acked = 10 * SMSS);
    assert_eq!(extra(&small.state), 5 * SMSS);
    // It is remembered for ten rounds.
    for round in 1..=10 {
        hand.next.now += Dur::from_ms(1);
        hand.round(|sample| sample.newly_acked = SMSS);
        let expected = if round < 10 { 20 * SMSS - 10_000 } else { SMSS };
        assert_eq!(extra(&hand.state), expected, "{round}");
    }
}

/// Section 5.5.8.1: three quanta and four segments are the least that is in flight; UP adds two segments.
#[test]
fn small_paths_keep_a_few_segments_in_flight() {
    let mut hand = Hand::cruise(rules(|_| {}));
    hand.state.bw = Rate(1_000_000);
    let small = |hand: &Hand| hand.rules.inflight(&hand.state, hand.state.bw);
    assert_eq!(small(&hand), 6 * SMSS);
    hand.rules.enter(&mut hand.state, BbrMode::ProbeBwUp);
    assert_eq!(small(&hand), 8 * SMSS);
    // The draft's quantum: 8 Gb/s for 10 us, at most 64 KB.
    hand.rules.quantum_time = Dur::from_us(10);
    hand.state.pacing_rate = Rate::from_gbps(8);
    assert_eq!(small(&hand), 30_000 + 2 * SMSS);
    hand.rules.quantum_time = Dur::from_ms(1);
    assert_eq!(small(&hand), 3 * 65_536 + 2 * SMSS);
}

/// Section 5.6.4.7.
#[test]
fn bounds_of_the_window_in_all_states() {
    let mut hand = Hand::cruise(rules(|_| {}));
    (hand.state.inflight_longterm, hand.state.inflight_shortterm) = (100_000, 90_000);
    for (mode, cap) in [
        (BbrMode::Startup, 90_000),
        (BbrMode::Drain, 90_000),
        (BbrMode::ProbeBwDown, 90_000),
        (BbrMode::ProbeBwCruise, 85_000),
        (BbrMode::ProbeRtt, 85_000),
    ] {
        hand.rules.enter(&mut hand.state, mode);
        assert_eq!(hand.rules.volume_cap(&hand.state), cap, "{mode:?}");
    }
    hand.state.reset_short_term_model();
    for (mode, cap) in [(BbrMode::Startup, u64::MAX), (BbrMode::ProbeBwUp, 100_000), (BbrMode::ProbeBwRefill, 100_000)] {
        hand.rules.enter(&mut hand.state, mode);
        assert_eq!(hand.rules.volume_cap(&hand.state), cap, "{mode:?}");
    }
    hand.state.inflight_shortterm = 1;
    assert_eq!(hand.rules.volume_cap(&hand.state), 4 * SMSS);
}

/// Section 5.3.4: ProbeRTT begins 167 round trips after the last shortest round trip, halves the flight,
/// and lasts 6.7 round trips and one round from then on.
#[test]
fn probe_rtt_begins_and_ends_by_the_clock() {
    let mut hand = Hand::cruise(rules(|p| p.probe_wait = Auto::Set(Dur::from_secs(1))));
    hand.window.cwnd = 140 * SMSS;
    let stamp = hand.state.probe_rtt_min_stamp;
    hand.next.rtt = Some(Dur::from_us(120));
    let interval = Dur::from_us(5_000_000 / 300);
    hand.next.now = (stamp + interval).before(Dur::from_us(2));
    hand.ack(|_| {});
    assert!(!hand.state.is_probing_rtt());
    hand.ack(|_| {});
    let before = hand.window.cwnd;
    hand.ack(|_| {});
    assert_eq!((hand.state.mode, hand.state.cwnd_gain), (BbrMode::ProbeRtt, Fraction(500_000_000)));
    // The shortest round trip is remembered for twice as long.
    assert_eq!((hand.state.min_rtt, hand.window.cwnd), (Dur::from_us(100), BDP / 2));
    hand.ack(|sample| sample.in_flight = BDP / 2 + 1);
    assert_eq!(hand.state.probe_rtt_done_stamp, None);
    hand.round(|sample| sample.in_flight = BDP / 2);
    let done = hand.state.probe_rtt_done_stamp.expect("the flight is small");
    assert_eq!(done, hand.next.now + Dur(666_666_666));
    hand.next.now = done + Dur::from_us(1);
    hand.ack(|_| {});
    assert!(hand.state.is_probing_rtt(), "no round has passed");
    // Samples of this time do not show the rate of the path.
    hand.state.deliveries.on_sent(0, SMSS as u16, us(0));
    hand.state.deliveries.lose_all();
    assert!(hand.state.deliveries.loss(0).expect("a segment was lost").app_limited);
    hand.state.deliveries.clear_losses();
    (hand.state.bw_shortterm, hand.state.inflight_shortterm) = (Rate::from_gbps(1), 20 * SMSS);
    hand.round(|_| {});
    assert_eq!((hand.state.mode, hand.state.ack_phase), (BbrMode::ProbeBwCruise, AckPhase::ProbeStopping));
    assert_eq!((hand.state.bw_shortterm, hand.state.inflight_shortterm), (Rate(u64::MAX), u64::MAX));
    let restored = (before + SMSS).min(hand.rules.max_inflight(&hand.state));
    assert_eq!((hand.window.cwnd, hand.state.probe_rtt_min_stamp), (restored, hand.next.now));
}

/// Section 5.3.4.3: a longer round trip becomes `min_rtt` only after the filter's length.
#[test]
fn a_shorter_round_trip_counts_at_once_and_a_longer_one_late() {
    let mut hand = Hand::cruise(rules(|p| p.probe_rtt_interval = Auto::Set(Dur::from_us(500))));
    hand.ack(|sample| sample.rtt = Some(Dur::from_us(90)));
    assert_eq!(hand.state.min_rtt, Dur::from_us(90));
    let stamp = hand.state.min_rtt_stamp;
    hand.next.rtt = Some(Dur::from_us(130));
    hand.next.now = stamp + Dur::from_us(33_332);
    hand.ack(|_| {});
    assert_eq!(hand.state.min_rtt, Dur::from_us(90));
    hand.ack(|_| {});
    assert_eq!(hand.state.min_rtt, Dur::from_us(130));
}

/// Section 5.6.4.4: the window is kept through fast recovery, and restored after a timeout.
#[test]
fn recovery_restores_the_window() {
    let mut hand = Hand::cruise(rules(|_| {}));
    hand.window.cwnd = 120 * SMSS;
    let loss = |cause| Loss { cause, flight: 50 * SMSS, after_mark: false };
    assert_eq!(hand.rules.on_loss(&mut hand.state, &hand.window, loss(Cause::Duplicates)), 120 * SMSS);
    hand.ack(|sample| sample.recovering = true);
    let before = hand.window.cwnd;
    hand.rules.before_loss(&mut hand.state, Cause::Timeout, us(0));
    hand.rules.on_loss(&mut hand.state, &hand.window, loss(Cause::Timeout));
    hand.window.cwnd = SMSS;
    hand.ack(|_| {});
    assert_eq!(hand.window.cwnd, 4 * SMSS);
    hand.ack(|_| {});
    assert_eq!(hand.window.cwnd, 5 * SMSS);
    hand.ack(|sample| sample.recovering = false);
    // The ACK itself adds a segment.
    assert_eq!(hand.window.cwnd, before + SMSS);
}

/// `tcp_bbr.c`: alpha moves by 1/16 per round; a marked round while cruising takes a third of alpha.
#[test]
fn marks_lower_the_short_term_bound_by_a_third_of_alpha() {
    let mut hand = Hand::cruise(rules(|p| p.ecn = true));
    let mut alpha = hand.state.ecn_alpha.ppb();
    hand.window.cwnd = 100 * SMSS;
    hand.round(|_| {});
    alpha -= alpha / 16;
    assert!(hand.state.ecn_alpha.ppb().abs_diff(alpha) <= 1);
    // Half of the bytes of the next round are marked.
    hand.window.cwnd = 100 * SMSS;
    hand.ack(|sample| (sample.ece, sample.total_marked) = (true, SMSS));
    assert_eq!(hand.state.inflight_shortterm, u64::MAX);
    hand.window.cwnd = 100 * SMSS;
    hand.round(|sample| sample.ece = false);
    alpha += (Fraction::ONE.ppb() / 2).saturating_sub(alpha) / 16;
    alpha -= alpha.saturating_sub(Fraction::ONE.ppb() / 2) / 16;
    assert!(hand.state.ecn_alpha.ppb().abs_diff(alpha) <= 2);
    let left = part(100 * SMSS, Fraction(part(alpha, Fraction(333_333_333))).complement());
    assert!(hand.state.inflight_shortterm.abs_diff(left) <= 1, "{} {left}", hand.state.inflight_shortterm);
    assert_eq!(hand.state.bw_shortterm, Rate(u64::MAX));
    // Without the option marks mean nothing, nor on a long path.
    for change in [|_: &mut Params| {}, |p: &mut Params| (p.ecn, p.ecn_max_rtt) = (true, Dur::from_us(50))] {
        let mut hand = Hand::cruise(rules(change));
        hand.ack(|sample| (sample.ece, sample.total_marked) = (true, SMSS));
        hand.round(|_| {});
        assert_eq!(hand.state.inflight_shortterm, u64::MAX);
    }
}

#[test]
fn marks_on_more_than_half_end_a_probe_and_startup() {
    for (marked, ends) in [(40, false), (41, true)] {
        let mut hand = Hand::up(rules(|p| p.ecn = true));
        hand.window.cwnd = 100 * SMSS;
        hand.ack(|sample| (sample.ece, sample.marked) = (true, marked * SMSS));
        assert_eq!(hand.state.mode == BbrMode::ProbeBwDown, ends);
        assert_eq!(hand.state.inflight_longterm == 80 * SMSS, ends);
    }
    let mut hand = Hand::new(rules(|p| p.ecn = true));
    let mut rate = 1_000_000_000;
    let modes = [0; 4].map(|_| {
        rate *= 2;
        hand.round(|sample| {
            (sample.rate, sample.ece) = (Rate(rate), true);
            sample.total_marked = sample.total;
        });
        hand.state.mode
    });
    // The first round finds no shortest round trip yet.
    assert_eq!(modes, [BbrMode::Startup, BbrMode::Startup, BbrMode::Drain, BbrMode::Drain]);
}

#[test]
fn times_are_those_of_the_draft_on_long_paths() {
    let times = |rtt| Params::defaults().times(&Env { max_rtt: rtt, ..fast() });
    let draft = BbrTimes {
        min_rtt_filter: Dur::from_secs(10),
        probe_rtt_interval: Dur::from_secs(5),
        probe_rtt_duration: Dur::from_ms(200),
        probe_wait: Dur::from_secs(2),
        probe_wait_spread: Dur::from_secs(1),
    };
    assert_eq!((times(Dur::from_ms(30)), times(Dur::from_ms(80))), (draft, draft));
    let BbrTimes { probe_rtt_interval, probe_rtt_duration, .. } = times(Dur::from_us(30));
    assert_eq!((probe_rtt_interval, probe_rtt_duration), (Dur::from_ms(5), Dur::from_us(200)));
}

#[test]
fn contradictions_are_found() {
    let keys = |change: fn(&mut Params)| {
        let mut params = Params::defaults();
        change(&mut params);
        check(&params, &fast()).iter().map(|problem| problem.key).collect::<Vec<_>>()
    };
    assert_eq!(keys(|_| {}), Vec::<&str>::new());
    assert_eq!(keys(|p| p.tcp.sack = false), ["sack"]);
    assert_eq!(keys(|p| p.min_rtt_filter = Auto::Set(Dur::from_us(1))), ["min_rtt_filter"]);
}

/// Two hosts and a link with a queue between them; ACKs never wait.
struct Link<T> {
    hosts: [Script<T>; 2],
    flying: BTreeMap<(Time, u64), (Packet, Option<Ext>, usize)>,
    posted: u64,
    rate: Rate,
    delay: Dur,
    /// Bytes that may wait.
    room: u64,
    /// Bytes that wait when packets are marked.
    mark: u64,
    busy: Time,
    /// Largest number of waiting bytes since it was last read.
    peak: u64,
    /// Probability of a random loss, in percent.
    loss: u64,
    rng: Rng,
}

impl<T: Transport> Link<T> {
    /// Joins two hosts with flows of 1 GB by a link with a round trip of 100 us.
    fn new(machine: impl Fn() -> T, flows: u32, rate: Rate) -> Link<T> {
        let list: Vec<_> = (0..flows).map(|id| script::flow(id, 1_000_000_000)).collect();
        let hosts = [Script::new(machine(), list.clone()), Script::new(machine(), list).at_host(1)];
        let (delay, rng) = (Dur::from_us(50), Rng::stream(5, "link", &[]));
        let (flying, busy) = (BTreeMap::new(), Time::ZERO);
        Link { hosts, flying, posted: 0, rate, delay, room: u64::MAX, mark: u64::MAX, busy, peak: 0, loss: 0, rng }
    }
    fn post(&mut self, from: usize, packets: Vec<Packet>) {
        for mut packet in packets {
            let slab = &mut self.hosts[from].ext;
            let block = packet.has(Packet::EXT).then(|| *slab.get(packet.ext()));
            if packet.has(Packet::EXT) {
                slab.remove(packet.ext());
            }
            let mut at = packet.sent_at;
            if packet.kind == Kind::DATA {
                let waiting = self.rate.bytes_in(self.busy.since(at));
                if waiting + u64::from(packet.wire_len) > self.room || self.rng.below(100) < self.loss {
                    continue;
                }
                self.peak = self.peak.max(waiting);
                packet.flags |= if waiting > self.mark && packet.has(Packet::ECT) { Packet::CE } else { 0 };
                self.busy = self.busy.max(at).after(self.rate.tx_time(packet.wire_len.into()));
                at = self.busy;
            }
            self.posted += 1;
            self.flying.insert((at.after(self.delay), self.posted), (packet, block, 1 - from));
        }
    }
    fn open(&mut self, flow: u32) {
        let sent = self.hosts[0].open(flow);
        self.post(0, sent);
    }
    fn run(&mut self, until: Time) {
        loop {
            let arrival = self.flying.first_key_value().map_or(Time::MAX, |(next, _)| next.0);
            let now = arrival.min(self.hosts[0].next_wake()).min(self.hosts[1].next_wake());
            for host in [0, 1] {
                let sent = self.hosts[host].advance(now.min(until));
                self.post(host, sent);
            }
            if now > until {
                return;
            }
            while let Some(next) = self.flying.first_entry()
                && next.key().0 <= now
            {
                let (mut packet, block, to) = next.remove();
                if let Some(block) = block {
                    packet.words[0] = u64::from(self.hosts[to].ext.insert(block));
                }
                let sent = self.hosts[to].packet(packet);
                packet.free(&mut self.hosts[to].ext);
                self.post(to, sent);
            }
        }
    }
    /// Runs until a time. Returns the bytes delivered for each flow.
    fn delivered(&mut self, until: Time) -> Vec<u64> {
        self.run(until);
        let flows = 0..self.hosts[0].flows.len() as u32;
        flows.map(|id| self.hosts[1].table.get(FlowId(id)).delivered_bytes).collect()
    }
    /// Runs until a time. Returns the part of the link's payload that flow 0 gets until then.
    fn used(&mut self, until: Time) -> f64 {
        let (start, before) = (self.hosts[0].now, self.hosts[1].table.get(FlowId(0)).delivered_bytes);
        let after = self.delivered(until)[0];
        let most = self.rate.bytes_in(until.since(start)) * SMSS / 1500;
        (after - before) as f64 / most as f64
    }
}

fn machine(change: impl FnOnce(&mut Params)) -> Bbr {
    let mut params = Params::defaults();
    change(&mut params);
    Bbr::new(&params, &fast())
}

impl Link<Bbr> {
    fn state(&self, flow: u32) -> &BbrState {
        self.hosts[0].machine.state(FlowId(flow)).expect("the flow is open")
    }
}

/// Closed form: one flow on a link of rate C with a deep queue delivers C, less the margin of 1 % and
/// the drain of ProbeRTT (2 %); the rate is known within 2 %, as the draft's first test asks. The queue
/// is at most that of the window: 1.25 products, `extra_acked` and two segments.
#[test]
fn one_flow_fills_a_link_and_keeps_its_queue_bounded() {
    let rate = Rate::from_gbps(10);
    let mut link = Link::new(|| machine(|_| {}), 1, rate);
    link.open(0);
    link.run(us(5_000));
    assert!(link.state(0).full_bw_reached);
    let payload = rate.0 as f64 * SMSS as f64 / 1500.0;
    let error = link.state(0).max_bw().0 as f64 / payload - 1.0;
    assert!(error.abs() < 0.02, "{error}");
    let bdp = rate.bytes_in(Dur::from_us(101));
    let mut peaks = Vec::new();
    for n in 1..=3 {
        link.peak = 0;
        let used = link.used(us(5_000 + 10_000 * n));
        assert!(used > 0.95, "{used}");
        peaks.push(link.peak);
        let extra = link.state(0).extra_acked() * 1500 / SMSS;
        assert!(link.peak <= bdp * 5 / 4 + extra + 6 * 1500, "{peaks:?} {bdp} {extra}");
    }
    assert!(peaks[2] <= peaks[0] * 11 / 10, "{peaks:?}");
    assert_eq!(link.hosts[0].table.get(FlowId(0)).stats.timeouts, 0);
}

/// While a flow cruises, nothing waits in the queue but a few packets.
#[test]
fn cruising_keeps_the_queue_empty() {
    let mut link = Link::new(|| machine(|_| {}), 1, Rate::from_gbps(10));
    link.open(0);
    link.run(us(2_000));
    let mut cruised = 0;
    for n in 0..1000 {
        link.run(us(2_000 + 20 * n));
        if link.state(0).mode == BbrMode::ProbeBwCruise {
            cruised += 1;
            let waiting = link.rate.bytes_in(link.busy.since(link.hosts[0].now));
            assert!(waiting <= 10 * 1500, "{waiting} at {}", link.hosts[0].now);
        }
    }
    assert!(cruised > 500, "{cruised}");
}

/// A flow that starts later gets its share.
#[test]
fn two_flows_converge_to_equal_shares() {
    let mut link = Link::new(|| machine(|_| {}), 2, Rate::from_gbps(2));
    link.open(0);
    link.run(us(10_000));
    link.open(1);
    let before = link.delivered(us(100_000));
    let after = link.delivered(us(200_000));
    let shares: Vec<f64> = before.iter().zip(&after).map(|(before, after)| (after - before) as f64).collect();
    let ratio = shares[0] / shares[1];
    assert!((0.75..1.34).contains(&ratio), "{ratio}");
    let used = (shares[0] + shares[1]) / (link.rate.bytes_in(Dur::from_us(100_000)) * SMSS / 1500) as f64;
    assert!(used > 0.95, "{used}");
}

/// The share of the link with losses of 1 % (section 5.3.3.8.3): after each round with a loss the rate is the largest, or the
/// mean, of the delivery rates of that round, each over a window of packets in flight, and after 63 rounds it is found again.
fn share_with_losses(of_largest: bool) -> f64 {
    const PRODUCT: usize = 86;
    let mut rng = Rng::stream(1, "bbr/losses", &[]);
    let (mut sum, rounds) = (0.0, 63 * 200);
    let (mut rate, mut before) = (1.0, vec![true; PRODUCT]);
    for round in 0..rounds {
        rate = if round % 63 == 0 { 1.0 } else { rate };
        let window = (PRODUCT as f64 * rate) as usize;
        let now: Vec<bool> = (0..window).map(|_| rng.below(100) > 0).collect();
        let arrived = |packets: &[bool]| packets.iter().filter(|arrived| **arrived).count() as f64;
        let all = [&before[..], &now[..]].concat();
        let samples = (0..window).map(|n| &all[(before.len() + n + 1).saturating_sub(window)..=before.len() + n]);
        let shares = samples.map(|packets| arrived(packets) / packets.len() as f64);
        let kept = if of_largest { shares.fold(0.0, f64::max) } else { shares.sum::<f64>() / window as f64 };
        sum += arrived(&now) / PRODUCT as f64;
        rate *= if arrived(&now) < window as f64 { kept.max(0.7) } else { 1.0 };
        before = now;
    }
    sum / f64::from(rounds)
}

/// If each round kept the mean of its delivery rates, the rate would be about `0.99^n` after n rounds, 0.75 of the link on
/// average; it keeps the largest, which is more, but the bytes in flight are bounded by what arrived in one round, which is
/// less. NewReno's window is about `1.22 / sqrt(0.01)`, 12 of 86 segments, and it waits for timeouts.
#[test]
fn a_random_loss_of_one_percent_costs_little() {
    let mut link = Link::new(|| machine(|_| {}), 1, Rate::from_gbps(10));
    link.loss = 1;
    link.open(0);
    link.run(us(5_000));
    let used = link.used(us(45_000));
    // Lost retransmissions are found without the timer.
    assert_eq!(link.hosts[0].table.get(FlowId(0)).stats.timeouts, 0);
    let mut reno = Link::new(|| NewReno::new(&newreno::Params::defaults(), &fast()), 1, Rate::from_gbps(10));
    reno.loss = 1;
    reno.open(0);
    reno.run(us(5_000));
    let lesser = reno.used(us(45_000));
    let (mean, largest) = (share_with_losses(false), share_with_losses(true));
    assert!((mean..largest).contains(&used) && lesser < 0.2, "{used} of {mean} to {largest}, {lesser}");
}

/// With a queue of a quarter of a product, Startup ends by loss, and the long-term bound is found.
#[test]
fn a_shallow_queue_is_found_by_loss() {
    let mut link = Link::new(|| machine(|_| {}), 1, Rate::from_gbps(10));
    link.room = 30_000;
    link.open(0);
    link.run(us(10_000));
    let bound = link.state(0).inflight_longterm;
    // One product and the queue are 156 KB on the wire.
    assert!((80_000..165_000).contains(&bound), "{bound}");
    let used = link.used(us(40_000));
    assert!(used > 0.9, "{used}");
}

/// The link becomes ten times as fast, then ten times as slow.
#[test]
fn the_rate_follows_the_link() {
    let mut link = Link::new(|| machine(|_| {}), 1, Rate::from_gbps(1));
    let known = |link: &Link<Bbr>| link.state(0).max_bw().0 as f64 * 1500.0 / SMSS as f64 / link.rate.0 as f64;
    link.room = 250_000;
    link.open(0);
    link.run(us(10_000));
    assert!((0.97..1.03).contains(&known(&link)), "{}", known(&link));
    link.rate = Rate::from_gbps(10);
    link.run(us(40_000));
    assert!((0.9..1.03).contains(&known(&link)), "{}", known(&link));
    link.rate = Rate::from_gbps(1);
    link.run(us(160_000));
    assert!((0.9..1.1).contains(&known(&link)), "{}", known(&link));
}

/// A path of less than a packet: four segments stay in flight, and the link is used.
#[test]
fn a_path_of_less_than_a_packet_is_used() {
    let mut link = Link::new(|| machine(|_| {}), 1, Rate(50_000_000));
    link.open(0);
    link.run(us(100_000));
    link.peak = 0;
    let used = link.used(us(300_000));
    // The initial window bounds the queue: six segments and, in UP, two more, plus what `extra_acked` adds.
    assert!(used > 0.95 && link.peak <= 10 * 1500, "{used} {}", link.peak);
    assert!(link.state(0).cwnd >= 4 * SMSS);
}

/// With marks above 20 packets, the queue while cruising stays small, and the link is used.
#[test]
fn marks_shorten_the_queue() {
    let run = |ecn| {
        let mut link = Link::new(|| machine(|p| p.ecn = ecn), 1, Rate::from_gbps(10));
        link.mark = 20 * 1500;
        link.open(0);
        link.run(us(5_000));
        link.peak = 0;
        (link.used(us(25_000)), link.peak)
    };
    let ((used, marked), (_, plain)) = (run(true), run(false));
    assert!(used > 0.9 && marked < plain * 17 / 20, "{used} {marked} {plain}");
}

/// Packets in, packets out: the initial window of 10 segments leaves at 2.77 times 10 segments per round
/// trip, one segment each 3.6 us for a round trip of 100 us.
#[test]
fn the_first_window_is_paced() {
    let mut host = Script::new(machine(|p| p.tcp.handshake = false), vec![script::flow(0, 100 * SMSS)]);
    assert_eq!(host.open(0).len(), 1);
    let sent = host.advance(us(50));
    let times: Vec<u64> = sent.iter().map(|packet| packet.sent_at.ps() / 1_000_000).collect();
    assert_eq!(times, [3, 7, 10, 14, 18, 21, 25, 28, 32]);
}

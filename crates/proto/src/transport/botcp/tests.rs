use super::*;
use crate::kit::pipe::{Fate, Pipe};
use crate::kit::script::{self, Script};
use crate::kit::tcp::Echo;
use crate::packet::{Kind, Packet};
use crate::transport::Transport as _;
use base::FlowId;
use base::params::Params as _;
use proptest::prelude::*;

const MSS: u64 = 1456;

fn control() -> Bocc {
    Bocc { smss: MSS, long: 20, short: 40, most: 60, first: 1, largest: 256, long_after: 10_000 }
}
fn fixed(w: f64) -> u64 {
    (w * ONE as f64).round() as u64
}
fn real(w: u64) -> f64 {
    w as f64 / ONE as f64
}
fn step(long: bool, w: f64, b: u64) -> f64 {
    real(control().step(fixed(w), long, b))
}
fn near(a: f64, b: f64) {
    assert!((a - b).abs() < 1e-6, "{a} is not {b}");
}

/// The 28 golden vectors: (w, b, new w).
#[test]
fn golden_steps_of_short_flows() {
    let rows = [
        (1.0, 0, 2.0),
        (4.0, 20, 5.0),
        (4.0, 25, 4.6),
        (4.0, 40, 4.0),
        (4.0, 50, 3.8),
        (1.1, 60, 1.0),
        (1.2, 61, 0.7),
        (8.0, 80, 7.5),
    ];
    for (w, b, new) in rows {
        near(step(false, w, b), new);
    }
}

#[test]
fn golden_steps_of_long_flows() {
    let rows = [
        (10.0, 0, 11.0),
        (10.0, 10, 11.0),
        (10.0, 16, 10.25),
        (10.0, 20, 10.0),
        (10.0, 30, 9.666667),
        (10.0, 40, 9.5),
        (1.2, 40, 1.0),
        (10.0, 41, 9.5),
        (1.3, 50, 1.0),
        (10.0, 61, 9.5),
        (1.0, 70, 0.5),
    ];
    for (w, b, new) in rows {
        near(step(true, w, b), new);
    }
}

#[test]
fn golden_steps_below_one_segment() {
    let rows = [
        (0.5, 10, 1.0),
        (0.6, 15, 1.2),
        (0.3, 30, 0.6),
        (0.6, 30, 1.0),
        (0.5, 50, 0.6),
        (0.9, 50, 1.0),
        (0.5, 60, 0.5),
        (0.5, 80, 0.375),
        (0.7, 87, 0.482759),
    ];
    for (w, b, new) in rows {
        near(step(false, w, b), new);
        near(step(true, w, b), new);
    }
}

/// The four golden sequences. The first two are the per-round form of Lemmas 2 and 1.
#[test]
fn golden_sequences() {
    let run = |long, w: f64, bs: &[u64]| bs.iter().fold(fixed(w), |w, b| control().step(w, long, *b));
    near(real(run(true, 10.0, &[30; 10])), 10.0 * (1.0 - 10.0 / 30.0));
    near(real(run(false, 8.0, &[30; 8])), 8.0 * (1.0 + 10.0 / 30.0));
    let (mut w, mut rounds) = (ONE, vec![1]);
    for _ in 0..5 {
        w = (0..w >> FRACTION).fold(w, |w, _| control().step(w, false, 0));
        rounds.push(w >> FRACTION);
    }
    assert_eq!(rounds, [1, 2, 4, 8, 16, 32]);
    let (mut w, bs) = (ONE, [70, 70, 70, 65, 62, 60, 55, 45, 38, 30, 15]);
    let expected = [0.5, 0.428571, 0.367347, 0.339089, 0.328151, 0.328151, 0.357983, 0.477311, 0.954621, 1.0, 1.333333];
    for (b, expected) in bs.into_iter().zip(expected) {
        w = control().step(w, true, b);
        near(real(w), expected);
    }
}

/// (bytes, packets, KiB)
#[test]
fn golden_octets() {
    let rows = [
        (0, 0, 0),
        (1024, 1, 1),
        (1500, 1, 1),
        (30_000, 20, 29),
        (60_000, 40, 58),
        (90_000, 60, 87),
        (90_001, 61, 87),
        (130_500, 87, 127),
        (131_072, 88, 128),
        (300_000, 200, 255),
    ];
    for (bytes, packets, kib) in rows {
        assert_eq!((Unit::Packet.octet(bytes), Unit::Kib.octet(bytes)), (packets, kib), "{bytes}");
    }
    // The thresholds, in the unit in which they are compared.
    assert_eq!([20, 40, 60].map(|n| Unit::Kib.of_packets(n)), [29, 59, 88]);
    assert_eq!([20, 40, 60].map(|n| Unit::Packet.of_packets(n)), [20, 40, 60]);
}

#[test]
fn golden_pacing() {
    let now = Time::ZERO + Dur::from_us(7);
    let at = |w| control().not_before(&State { w: fixed(w), long: false, last_tx: now }, Dur::from_us(100));
    assert!(at(0.4).since(now + Dur::from_us(250)).0 <= 1);
    assert_eq!(at(0.5), now + Dur::from_us(200));
    assert_eq!([at(1.0), at(9.0)], [Time::ZERO; 2]);
}

proptest! {
    /// Bounds and invariants of any step.
    #[test]
    fn steps_stay_in_bounds(w in ONE / 64..=256 * ONE, b in 0u64..=255, long in any::<bool>()) {
        let next = control().step(w, long, b);
        prop_assert!((ONE / 64..=256 * ONE).contains(&next));
        // No flow starves while the queue is at most Bm.
        if w >= ONE && b <= 60 {
            prop_assert!(next >= ONE);
        }
        // A step keeps at least half a segment and adds at most one.
        if w >= ONE {
            prop_assert!(next >= ONE / 2 && next <= w + ONE);
        } else {
            prop_assert!(next <= 2 * w);
        }
        // A longer queue never gives a larger window; a long flow never gets a larger window than a
        // short one.
        prop_assert!(control().step(w, long, b + 1) <= next);
        prop_assert!(control().step(w, true, b) <= control().step(w, false, b));
    }

    /// The rows meet where 2b is the target: both add one segment.
    #[test]
    fn growth_is_continuous_at_half_the_target(w in ONE..255 * ONE, half in 1u64..100, long in any::<bool>()) {
        let c = Bocc { long: 2 * half, short: 2 * half, most: 201, ..control() };
        prop_assert_eq!(c.step(w, long, half), w + ONE);
        let beyond = c.step(w, long, half + 1) - w;
        prop_assert!(ONE - beyond <= 2 * ONE / half + 2);
        // At the target the window stays; below one segment it stays at the largest occupancy.
        prop_assert_eq!(c.step(w, long, 2 * half), w);
        prop_assert_eq!(c.step(ONE / 3, long, 201), ONE / 3);
    }
}

/// A single sender of `segments` segments of 1456 bytes, with all defaults except for `change`.
fn sender(segments: u64, change: impl FnOnce(&mut Params)) -> Script<Botcp> {
    let mut params = Params::defaults();
    change(&mut params);
    Script::new(Botcp::new(&params, &script::env()), vec![script::flow(0, segments * MSS)])
}

/// The ACK of the first `segments` segments, the last of them sent at `sent`, with the echo `b`.
fn ack(segments: u64, sent: Time, b: u64) -> Packet {
    let mut ack = Packet::new(FlowId(0), Kind::ACK, 44);
    ack.offset = segments * MSS;
    Echo { feedback: b, sent_at: sent, resent: false }.write(&mut ack);
    ack
}

fn us(n: u64) -> Time {
    Time::ZERO + Dur::from_us(n)
}

/// A flow of one full TCP packet takes two BOTCP packets, and the second waits for the ACK of the
/// first, unless packets keep their payload.
#[test]
fn the_option_takes_payload_or_not() {
    for (option, payload, wire) in [(4, MSS, 1500), (0, 1460, 1500), (40, 1420, 1500)] {
        let params = Params { option_bytes: Bytes(option), ..Params::defaults() };
        let mut s = Script::new(Botcp::new(&params, &script::env()), vec![script::flow(0, 1460)]);
        let sent = s.open(0);
        assert_eq!((sent.len(), u64::from(sent[0].payload), sent[0].wire_len), (1, payload, wire));
        assert_eq!(s.packet(Packet { offset: payload, ..ack(0, Time::ZERO, 0) }).len(), usize::from(payload < 1460));
    }
}

#[test]
fn data_starts_at_once_with_one_packet_and_a_clear_option() {
    let mut s = sender(10, |_| {});
    let sent = s.open(0);
    assert_eq!(sent.len(), 1);
    assert_eq!((sent[0].payload, sent[0].wire_len, sent[0].words[0]), (1456, 1500, 0));
    let mut r = sender(10, |_| {}).at_host(1);
    let mut data = sent[0];
    data.words[0] = 41;
    let ack = r.packet(data);
    assert_eq!((ack.len(), ack[0].wire_len, Echo::read(&ack[0]).feedback), (1, 44, 41));
}

/// Seven segments are 10 192 bytes: the eighth makes a flow long at X = 10 KB, and is sent when the
/// window is 4.
#[test]
fn a_flow_is_long_when_more_than_x_was_sent() {
    let mut s = sender(100, |_| {});
    s.open(0);
    s.now = us(100);
    // Windows 2, 3, 4 (b = 0): 1 + 2 + 2 + 2 = 7 segments are sent.
    for n in 1..=3 {
        assert_eq!(s.packet(ack(n, us(0), 0)).len(), 2);
    }
    // 10 192 > 10 000: b = 20 no longer adds a segment, it keeps the window.
    assert_eq!(s.packet(ack(4, us(0), 20)).len(), 1);
    let mut larger = sender(100, |p| p.long_after = Bytes(10_192));
    larger.open(0);
    larger.now = us(100);
    (1..=3).for_each(|n| drop(larger.packet(ack(n, us(0), 0))));
    assert_eq!(larger.packet(ack(4, us(0), 20)).len(), 2);
}

/// b = 61 makes the window 0.5: the next packet leaves two round trips after the last. Then b = 80
/// makes it 0.375.
#[test]
fn windows_below_one_segment_pace() {
    let mut s = sender(100, |_| {});
    s.open(0);
    s.now = us(100);
    assert_eq!(s.packet(ack(1, us(0), 61)), []);
    assert_eq!(s.advance(us(199)), []);
    assert_eq!(s.advance(us(300)).iter().map(|p| p.sent_at).collect::<Vec<_>>(), [us(200)]);
    // 0.5 * 60 / 80 = 0.375, srtt still 100 us: 266.7 us after 200 us.
    assert_eq!(s.packet(ack(2, us(200), 80)), []);
    assert_eq!(s.advance(us(466)), []);
    assert_eq!(s.advance(us(467)).len(), 1);
}

/// The packet paced at 200 us is acknowledged at 205 us: with b = 10 the window is 1 again and the
/// sender does not wait, with b = 50 it is 0.6.
#[test]
fn a_window_back_at_one_sends_at_once() {
    for (b, sent) in [(10, 1), (50, 0)] {
        let mut s = sender(100, |_| {});
        s.open(0);
        s.now = us(100);
        s.packet(ack(1, us(0), 61));
        assert_eq!(s.advance(us(205)).len(), 1);
        assert_eq!(s.packet(ack(2, us(200), b)).len(), sent, "b = {b}");
        // The timer of a pause that is over has no effect.
        assert_eq!(s.advance(us(350)).len(), 1 - sent);
    }
}

#[test]
fn three_duplicates_halve_down_to_one() {
    let c = control();
    let lose = |w, cause| {
        let mut state = State { w: fixed(w), long: false, last_tx: Time::ZERO };
        let window = Window { cwnd: 0, ssthresh: 0 };
        let ssthresh = c.on_loss(&mut state, &window, Loss { cause, flight: 9 * MSS, after_mark: false });
        (real(state.w), ssthresh / MSS)
    };
    use Cause::{Duplicates, Timeout};
    assert_eq!([lose(9.0, Duplicates), lose(1.5, Duplicates), lose(0.25, Duplicates)], [(4.5, 4), (1.0, 1), (0.25, 1)]);
    assert_eq!([lose(9.0, Timeout), lose(0.25, Timeout)], [(1.0, 1), (0.25, 1)]);
}

/// Duplicates, then a partial and a full acknowledgment: the window takes no step until the
/// recovery point is passed.
#[test]
fn there_is_no_step_in_recovery() {
    let mut s = sender(100, |p| p.tcp.init_window = base::params::Auto::Set(8));
    assert_eq!(s.open(0).len(), 8);
    s.now = us(100);
    for _ in 0..3 {
        s.packet(ack(0, us(0), 0));
    }
    // Half of 8. A step with b = 0 would make it more than 5.
    let window = |s: &Script<Botcp>| s.machine.sample(FlowId(0)).unwrap().ssthresh_bytes / MSS;
    assert_eq!(window(&s), 4);
    s.packet(ack(4, us(0), 0));
    s.packet(ack(8, us(0), 0));
    let cwnd = |s: &Script<Botcp>| s.machine.sample(FlowId(0)).unwrap().cwnd_bytes / MSS;
    assert!(cwnd(&s) <= 4);
    let n = s.flows[0].size_bytes / MSS;
    assert!(n > 9);
    s.packet(ack(9, us(100), 0));
    assert_eq!(cwnd(&s), 5);
}

#[test]
fn the_window_has_a_bound() {
    let c = control();
    let w = (0..10_000).fold(ONE, |w, _| c.step(w, false, 0));
    assert_eq!((w, c.bytes(w)), (256 * ONE, 256 * MSS));
    let least = (0..10_000).fold(ONE, |w, _| c.step(w, true, 255));
    assert_eq!((least, c.bytes(least)), (ONE / 64, MSS));
    // Without a given bound, the bound has no effect.
    let params = Params { tcp: Options { max_cwnd: base::params::Auto::Auto, ..Params::defaults().tcp }, ..Params::defaults() };
    let mut s = Script::new(Botcp::new(&params, &script::env()), vec![script::flow(0, MSS)]);
    assert_eq!(s.open(0).len(), 1);
}

#[test]
fn thresholds_in_the_wrong_order_are_found() {
    assert_eq!(check(&Params::defaults(), &script::env()), []);
    let wrong = Params { occ_long: 40, occ_max: 40, ..Params::defaults() };
    let keys: Vec<_> = check(&wrong, &script::env()).into_iter().map(|p| (p.key, p.message)).collect();
    let expected = [
        ("occ_long", "`40` is not below `occ_short`, which is `40`".to_owned()),
        ("occ_short", "`40` is not below `occ_max`, which is `40`".to_owned()),
    ];
    assert_eq!(keys, expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Whatever is lost, duplicated or late, every byte arrives once, also with windows below one
    /// segment.
    #[test]
    fn all_arrives(sizes in prop::collection::vec(1u64..60 * MSS, 1..4), fates in prop::collection::vec(0u8..10, 1..200)) {
        let flows: Vec<Flow> = sizes.iter().zip(0..).map(|(size, id)| script::flow(id, *size)).collect();
        let host = || Script::new(Botcp::new(&Params::defaults(), &script::env()), flows.clone());
        let mut pipe = Pipe::new(host(), host(), Dur::from_us(100));
        let mut n = 0;
        pipe.run(|_| {
            n += 1;
            match fates[n % fates.len()] {
                // A thousand timeouts of at most 60 s end before the pipe gives up.
                _ if n > 1000 => Fate::Pass,
                0 => Fate::Drop,
                1 => Fate::Twice,
                2 => Fate::Late(Dur::from_us(150)),
                _ => Fate::Pass,
            }
        });
    }
}

//! The sending half, rule by rule, tested through a NewReno host: packets in, packets out.
//! `receiver` and `newreno` have their own tests.

use super::RTO;
use super::sender::{Phase, Sender, seq};
use super::{Ack, Blocks, Congestion, Connections, DupThreshold, Echo, Ecn, Loss, Options, Stack, Tcp, Window};
use crate::contract::Transport as _;
use crate::flow::{Flow, FlowStats};
use crate::kit::late::GiveUp;
use crate::kit::script::{self, Script};
use crate::packet::{Kind, Packet};
use crate::transport::newreno::{NewReno, Params};
use base::params::{Auto, Params as _};
use base::{Dur, FlowId, HostId, Time};

const SMSS: u64 = 1460;

/// Timeouts of 1 s and 200 ms, a window of three segments, and no time stamps.
fn slow() -> Options {
    Options { stack: Stack::Linux, init_window: Auto::Set(3), timestamps: false, ..Options::defaults() }
}

fn plain() -> Options {
    Options { handshake: false, ..slow() }
}

fn machine(options: &Options) -> NewReno {
    NewReno::new(&Params { tcp: options.clone(), ..Params::defaults() }, &script::env())
}

fn host(options: &Options, size: u64) -> Script<NewReno> {
    Script::new(machine(options), vec![script::flow(0, size)])
}

/// A flow of 1000 segments with an initial window of `window`.
fn open(window: u32) -> Script<NewReno> {
    let mut host = host(&Options { init_window: Auto::Set(window), ..plain() }, 1000 * SMSS);
    assert_eq!(segments(host.open(0)), (0..u64::from(window)).collect::<Vec<_>>());
    host
}

/// An ACK of `n` segments that gives no round-trip sample.
fn ack(n: u64) -> Packet {
    let mut ack = Packet::new(FlowId(0), Kind::ACK, 40);
    ack.offset = n * SMSS;
    Echo { resent: true, ..Echo::default() }.write(&mut ack);
    ack
}

/// The same ACK, for a segment sent at `at`.
fn timed_ack(n: u64, at: Time) -> Packet {
    let mut ack = Packet { flags: 0, ..ack(n) };
    Echo { sent_at: at, ..Echo::default() }.write(&mut ack);
    ack
}

/// Segment numbers of data packets.
fn segments(packets: Vec<Packet>) -> Vec<u64> {
    assert!(packets.iter().all(|p| p.kind == Kind::DATA && p.offset % SMSS == 0 && p.wire_len == p.payload + 40));
    packets.iter().map(|p| p.offset / SMSS).collect()
}

/// Delivers one ACK per number, and returns the segments sent.
fn feed(host: &mut Script<NewReno>, acks: impl IntoIterator<Item = u64>) -> Vec<u64> {
    acks.into_iter().flat_map(|n| segments(host.packet(ack(n)))).collect()
}

fn sender(host: &mut Script<NewReno>) -> &mut Sender<u64> {
    host.machine.senders.get_mut(FlowId(0)).expect("the flow is open")
}

/// Returns (cwnd, ssthresh) in segments; in recovery including the inflation.
fn window(host: &mut Script<NewReno>) -> (u64, u64) {
    let window = sender(host).window;
    (window.cwnd / SMSS, window.ssthresh / SMSS)
}

/// A host with two flows to one peer and one flow to another, whose connections continue.
fn lasting(options: &Options) -> Script<NewReno> {
    let options = Options { connections: Connections::Peer, init_window: Auto::Set(2), ..options.clone() };
    let mut other = script::flow(2, 9 * SMSS);
    other.dst = HostId(2);
    Script::new(machine(&options), vec![script::flow(0, 4 * SMSS), script::flow(1, 90 * SMSS), other])
}

/// Runs the first flow of `host` to its end at 100 us: four segments, four ACKs.
fn finish_first(host: &mut Script<NewReno>) {
    host.advance(Time::ZERO + Dur::from_us(100));
    for n in 1..=4 {
        host.packet(timed_ack(n, Time::ZERO));
    }
    assert!(host.machine.senders.get(FlowId(0)).is_none());
}

#[test]
fn a_message_continues_the_connection_of_the_last_one_to_its_peer() {
    let mut host = lasting(&plain());
    assert_eq!(segments(host.open(0)), [0, 1]);
    finish_first(&mut host);
    // Four ACKs in slow start made a window of two segments six.
    assert_eq!(segments(host.open(1)), [0, 1, 2, 3, 4, 5]);
    let sender = host.machine.senders.get(FlowId(1)).unwrap();
    assert_eq!((sender.rtt.srtt(), sender.window.ssthresh), (Dur::from_us(100), u64::MAX));
    // Nothing is known of the other peer.
    assert_eq!(segments(host.open(2)), [0, 1]);
}

#[test]
fn a_continued_connection_has_no_handshake() {
    let mut host = lasting(&slow());
    assert_eq!(host.open(0)[0].kind, Kind::SYN);
    let mut synack = Packet::new(FlowId(0), Kind::SYNACK, 40);
    Echo::default().write(&mut synack);
    assert_eq!(segments(host.packet(synack)), [0, 1]);
    finish_first(&mut host);
    assert_eq!(segments(host.open(1)).len(), 6);
    assert_eq!(host.open(2)[0].kind, Kind::SYN);
}

/// RFC 5681 section 4.1.
#[test]
fn a_connection_that_was_idle_restarts_with_the_initial_window() {
    let mut host = lasting(&plain());
    host.open(0);
    finish_first(&mut host);
    let rto = Dur::from_ms(200);
    host.advance(Time::ZERO + Dur::from_us(100) + rto);
    assert_eq!(segments(host.open(1)).len(), 6, "at the timeout the connection is not idle yet");
    let mut host = lasting(&plain());
    host.open(0);
    finish_first(&mut host);
    host.advance(Time::ZERO + Dur::from_us(100) + rto + Dur(1));
    assert_eq!(segments(host.open(1)).len(), 2);
}

/// Computed by hand from RFC 6582: segments 10 to 17 outstanding, cwnd 8, recover 5; 10 and 13 are
/// lost.
#[test]
fn golden_recovery() {
    let mut host = open(8);
    let s = sender(&mut host);
    (s.snd_una, s.snd_nxt, s.snd_max, s.recover) = (10 * SMSS, 18 * SMSS, 18 * SMSS, seq(6 * SMSS) - 1);
    s.window.ssthresh = 8 * SMSS;
    // Duplicates 1 and 2.
    assert_eq!(feed(&mut host, [10, 10]), []);
    assert_eq!(window(&mut host), (8, 8));
    // Duplicate 3.
    assert_eq!(feed(&mut host, [10]), [10]);
    assert_eq!(window(&mut host), (7, 4));
    assert_eq!(sender(&mut host).recover, seq(18 * SMSS) - 1);
    // Duplicates 4 to 6.
    assert_eq!(feed(&mut host, [10]), []);
    assert_eq!(window(&mut host), (8, 4));
    assert_eq!(feed(&mut host, [10]), [18]);
    assert_eq!(feed(&mut host, [10]), [19]);
    assert_eq!(window(&mut host), (10, 4));
    // The sample has no inflation.
    let sample = host.machine.sample(FlowId(0)).expect("the flow is open");
    assert_eq!((sample.cwnd_bytes, sample.ssthresh_bytes), (4 * SMSS, 4 * SMSS));
    // The partial ACK retransmits, deflates, sends new data and restarts the timer.
    host.now = Time::ZERO + Dur::from_ms(500);
    assert_eq!(feed(&mut host, [13]), [13, 20]);
    assert_eq!(window(&mut host), (8, 4));
    assert_eq!(segments(host.advance(Time::ZERO + Dur::from_ms(1499))), []);
    // Duplicates for 18 and 19.
    assert_eq!(feed(&mut host, [13]), [21]);
    assert_eq!(feed(&mut host, [13]), [22]);
    assert_eq!(window(&mut host), (10, 4));
    // The full ACK.
    assert_eq!(feed(&mut host, [20]), [23]);
    assert_eq!(window(&mut host), (4, 4));
    assert_eq!(sender(&mut host).phase, Phase::Open);
    assert_eq!(host.table.get(FlowId(0)).stats, FlowStats { timeouts: 0, fast_retransmits: 1 });
}

#[test]
fn a_full_ack_may_restore_ssthresh() {
    for (option, cwnd) in [(false, 2), (true, 8)] {
        let mut host = host(&Options { init_window: Auto::Set(16), full_ack_ssthresh: option, ..plain() }, 16 * SMSS);
        host.open(0);
        feed(&mut host, [0, 0, 0]);
        assert_eq!(window(&mut host), (11, 8));
        // An ACK of all but the last segment: full if `recover` is lowered by one segment.
        sender(&mut host).recover -= SMSS;
        feed(&mut host, [15]);
        assert_eq!(window(&mut host), (cwnd, 8));
    }
}

#[test]
fn the_first_segment_of_all_can_be_recovered() {
    let mut host = open(8);
    assert_eq!(feed(&mut host, [0, 0, 0]), [0]);
}

#[test]
fn without_a_threshold_of_duplicates_only_timeouts_reveal_losses() {
    for sack in [false, true] {
        let options = Options { init_window: Auto::Set(16), dup_threshold: DupThreshold::Never, sack, ..plain() };
        let mut host = host(&options, 1000 * SMSS);
        host.open(0);
        for segment in 1..16 {
            let mut duplicate = ack(0);
            if sack {
                let block = SMSS..(segment + 1) * SMSS;
                Blocks::write(std::slice::from_ref(&block), &mut duplicate, &mut host.ext);
            }
            assert_eq!(host.packet(duplicate), []);
        }
        assert_eq!(window(&mut host).0, 16);
        // Segment 0 was only late.
        assert_eq!(feed(&mut host, [16]), (16..33).collect::<Vec<_>>());
        assert_eq!(host.table.get(FlowId(0)).stats, FlowStats::default());
        assert_eq!(segments(host.advance(Time::ZERO + Dur::from_secs(1))), [16]);
        assert_eq!(host.table.get(FlowId(0)).stats, FlowStats { timeouts: 1, fast_retransmits: 0 });
    }
}

#[test]
fn duplicates_covered_by_an_earlier_recovery_are_ignored() {
    let mut host = open(8);
    let timeout = host.advance(Time::ZERO + Dur::from_secs(1));
    assert_eq!(segments(timeout.clone()), [0]);
    assert!(timeout[0].has(Packet::RETX));
    assert_eq!(feed(&mut host, [0, 0, 0, 0]), []);
    // Segment 8 is the first beyond `recover`; duplicates of 8 do not cover more than `recover`.
    assert_eq!(feed(&mut host, [8]), [8, 9]);
    assert_eq!(feed(&mut host, [8, 8, 8]), []);
    assert_eq!(feed(&mut host, [9]), [10, 11]);
    // cwnd is 2 + 3 with 3 in flight.
    assert_eq!(feed(&mut host, [9, 9, 9]), [9, 12, 13]);
    assert_eq!(host.table.get(FlowId(0)).stats, FlowStats { timeouts: 1, fast_retransmits: 1 });
}

#[test]
fn a_partial_ack_deflates_by_what_it_acknowledges() {
    let mut host = open(8);
    assert_eq!(feed(&mut host, [0, 0, 0, 0, 0, 0]), [0, 8, 9]);
    assert_eq!(window(&mut host), (10, 4));
    // Less than a segment: nothing is added back.
    let mut partial = ack(0);
    partial.offset = 460;
    host.packet(partial);
    assert_eq!(sender(&mut host).window.cwnd, 10 * SMSS - 460);
    // More than the window: one segment is left of it.
    sender(&mut host).window.cwnd = 2 * SMSS;
    let mut partial = ack(0);
    partial.offset = 460 + 5 * SMSS;
    host.packet(partial);
    assert_eq!(sender(&mut host).window.cwnd, SMSS);
}

#[test]
fn only_the_first_partial_ack_restarts_the_timer() {
    let mut host = open(16);
    feed(&mut host, [0, 0, 0]);
    host.now = Time::ZERO + Dur::from_ms(300);
    feed(&mut host, [3]);
    host.now = Time::ZERO + Dur::from_ms(600);
    feed(&mut host, [6]);
    assert_eq!(segments(host.advance(Time::ZERO + Dur::from_ms(1299))), []);
    // 1 s after the first.
    assert_eq!(segments(host.advance(Time::ZERO + Dur::from_ms(1300))), [6]);
}

#[test]
fn old_acks_change_nothing() {
    let mut host = open(4);
    feed(&mut host, [2]);
    let before = window(&mut host);
    assert_eq!(feed(&mut host, [1, 1, 1, 0]), []);
    assert_eq!((window(&mut host), sender(&mut host).dupacks), (before, 0));
}

#[test]
fn every_ack_of_new_data_restarts_the_timer() {
    let mut host = open(4);
    host.now = Time::ZERO + Dur::from_ms(700);
    feed(&mut host, [1]);
    assert_eq!(segments(host.advance(Time::ZERO + Dur::from_ms(1699))), []);
    assert_eq!(segments(host.advance(Time::ZERO + Dur::from_ms(1700))), [1]);
}

#[test]
fn a_timeout_goes_back_and_starts_slowly() {
    let mut host = open(16);
    assert_eq!(segments(host.advance(Time::ZERO + Dur::from_secs(1))), [0]);
    assert_eq!(window(&mut host), (1, 8));
    assert_eq!(feed(&mut host, [1]), [1, 2]);
    assert_eq!(feed(&mut host, [2, 3]), [3, 4, 5, 6]);
    // Segments that the receiver already has are not retransmitted.
    assert_eq!(feed(&mut host, [14]), [14, 15, 16, 17, 18]);
    assert_eq!(window(&mut host), (5, 8));
}

#[test]
fn ssthresh_is_held_while_the_timer_resends_one_segment() {
    let mut host = open(16);
    host.advance(Time::ZERO + Dur::from_secs(1));
    assert_eq!(window(&mut host), (1, 8));
    // The timeout doubles.
    assert_eq!(segments(host.advance(Time::ZERO + Dur::from_ms(2999))), []);
    assert_eq!(segments(host.advance(Time::ZERO + Dur::from_secs(3))), [0]);
    assert_eq!(window(&mut host), (1, 8));
    // Another segment: lowered again, to the minimum.
    feed(&mut host, [1]);
    assert_eq!(segments(host.advance(Time::ZERO + Dur::from_secs(60))), [1, 1, 1]);
    assert_eq!(window(&mut host), (1, 2));
    assert_eq!(host.table.get(FlowId(0)).stats.timeouts, 5);
}

#[test]
fn a_timeout_ends_recovery() {
    let mut host = open(8);
    feed(&mut host, [0, 0, 0, 0, 0]);
    assert_eq!(segments(host.advance(Time::ZERO + Dur::from_secs(1))), [0]);
    assert_eq!(sender(&mut host).phase, Phase::Open);
    // Nine segments are beyond `snd_una`; recovery allowed four in flight.
    assert_eq!(sender(&mut host).window, Window { cwnd: SMSS, ssthresh: 2 * SMSS });
    assert_eq!(sender(&mut host).recover, seq(9 * SMSS) - 1);
}

#[test]
fn retransmissions_are_flagged_and_give_no_sample() {
    let mut host = open(4);
    host.now = Time::ZERO + Dur::from_us(100);
    host.packet(ack(1));
    assert_eq!(sender(&mut host).rtt.srtt(), Dur::ZERO);
    host.packet(timed_ack(2, Time::ZERO + Dur::from_us(20)));
    assert_eq!(sender(&mut host).rtt.srtt(), Dur::from_us(80));
    // A duplicate gives no sample either.
    host.packet(timed_ack(2, Time::ZERO + Dur::from_us(99)));
    assert_eq!(sender(&mut host).rtt.srtt(), Dur::from_us(80));
    let resent = host.advance(Time::ZERO + Dur::from_ms(201));
    assert!(resent[0].has(Packet::RETX) && resent[0].offset == 2 * SMSS);
}

/// Timeouts at 1 s and 3 s, then the ACK of the retransmission. Karn's rule keeps the timeout of 4
/// s; a time stamp ends the back-off.
#[test]
fn with_time_stamps_the_ack_of_a_retransmission_ends_the_back_off() {
    for (timestamps, srtt, rto) in [(false, Dur::ZERO, Dur::from_secs(4)), (true, Dur::from_ms(100), Dur::from_ms(300))] {
        let mut host = host(&Options { timestamps, ..plain() }, 100 * SMSS);
        host.open(0);
        let resent = host.advance(Time::ZERO + Dur::from_secs(3));
        assert_eq!((resent.len(), resent[1].sent_at), (2, Time::ZERO + Dur::from_secs(3)));
        host.now = Time::ZERO + Dur::from_ms(3100);
        let mut ack = ack(1);
        Echo { sent_at: resent[1].sent_at, resent: true, ..Echo::default() }.write(&mut ack);
        host.packet(ack);
        let rtt = sender(&mut host).rtt;
        assert_eq!((rtt.srtt(), rtt.rto()), (srtt, rto), "{timestamps}");
    }
}

#[test]
fn the_last_segment_needs_only_its_own_space() {
    let mut host = host(&Options { init_window: Auto::Set(2), ..plain() }, 2 * SMSS + 100);
    assert_eq!(segments(host.open(0)), [0, 1]);
    for (cwnd, lens) in [(SMSS + 99, vec![]), (SMSS + 100, vec![100])] {
        // One segment is in flight; the window does not grow by duplicates.
        let s = sender(&mut host);
        (s.snd_una, s.window) = (SMSS, Window { cwnd, ssthresh: SMSS });
        assert_eq!(host.packet(ack(1)).iter().map(|p| p.payload).collect::<Vec<_>>(), lens);
    }
}

#[test]
fn limited_transmit_sends_one_new_segment_per_early_duplicate() {
    let mut host = host(&Options { init_window: Auto::Set(4), limited_transmit: true, ..plain() }, 100 * SMSS);
    host.open(0);
    assert_eq!(feed(&mut host, [0]), [4]);
    assert_eq!(feed(&mut host, [0]), [5]);
    // Recovery counts the four segments sent before.
    assert_eq!(feed(&mut host, [0]), [0]);
    assert_eq!(window(&mut host), (5, 2));
    // Segments sent before do not: after a timeout one segment is in flight, and duplicates release
    // none.
    host.advance(Time::ZERO + Dur::from_secs(1));
    assert_eq!(feed(&mut host, [0, 0]), []);
    // Without the option.
    assert_eq!(feed(&mut open(4), [0, 0]), []);
}

#[test]
fn max_cwnd_bounds_growth_and_what_is_in_flight() {
    let p = Options { init_window: Auto::Set(8), max_cwnd: Auto::Set(8), ..plain() };
    let mut host = host(&p, 100 * SMSS);
    host.open(0);
    assert_eq!(feed(&mut host, [1, 2]), [8, 9]);
    assert_eq!(window(&mut host).0, 8);
    assert_eq!(feed(&mut host, [2, 2, 2, 2, 2, 2, 2, 2]), [2]);
    assert_eq!(window(&mut host), (12, 4));
    let tight = Options { max_cwnd: Auto::Set(2), ..plain() };
    let mut host = self::host(&tight, 100 * SMSS);
    assert_eq!((segments(host.open(0)), window(&mut host).0), (vec![0, 1], 2));
}

/// A NIC that takes no packets for a while neither stops slow start nor lets the window grow beyond
/// twice the bytes in flight.
#[test]
fn slow_start_does_not_depend_on_how_late_the_nic_asks() {
    let mut host = open(8);
    host.nic_busy = true;
    let grown: Vec<u64> = (1..=7).map(|ack| feed(&mut host, [ack]).len() as u64 + window(&mut host).0).collect();
    assert_eq!(grown, [9, 10, 11, 12, 13, 14, 15]);
    host.nic_busy = false;
    assert_eq!(segments(host.sent()), (8..22).collect::<Vec<_>>());
}

#[test]
fn in_congestion_avoidance_a_window_that_is_not_used_does_not_grow() {
    let mut host = open(8);
    sender(&mut host).window = Window { cwnd: 20 * SMSS, ssthresh: 4 * SMSS };
    host.nic_busy = true;
    feed(&mut host, [1, 2, 3, 4]);
    assert_eq!(sender(&mut host).window.cwnd, 20 * SMSS);
    // The NIC takes what the window allows, and every ACK of the next window of data grows it.
    host.nic_busy = false;
    assert_eq!(segments(host.sent()), (8..24).collect::<Vec<_>>());
    host.nic_busy = true;
    feed(&mut host, [5]);
    let first = sender(&mut host).window.cwnd;
    assert_eq!(first, 20 * SMSS + SMSS / 20);
    feed(&mut host, [6]);
    assert_eq!(sender(&mut host).window.cwnd, first + SMSS * SMSS / first);
}

#[test]
fn a_pending_retransmission_is_dropped_when_it_is_overtaken() {
    // A full ACK arrives before the fast retransmit has left.
    let mut host = open(8);
    host.nic_busy = true;
    feed(&mut host, [0, 0, 0]);
    feed(&mut host, [8]);
    host.nic_busy = false;
    assert_eq!(segments(host.sent()), [8, 9]);
    // A timeout comes before the fast retransmit has left: the segment is sent once.
    let mut host = open(8);
    host.nic_busy = true;
    feed(&mut host, [0, 0, 0]);
    host.advance(Time::ZERO + Dur::from_secs(1));
    // Nothing is outstanding now, so that this is not a duplicate.
    feed(&mut host, [0]);
    assert_eq!(sender(&mut host).dupacks, 0);
    host.nic_busy = false;
    assert_eq!(segments(host.sent()), [0]);
}

#[test]
fn the_timer_waits_for_the_nic() {
    let mut host = open(1);
    host.nic_busy = true;
    feed(&mut host, [1]);
    assert!(!host.is_armed(0, RTO));
    host.nic_busy = false;
    host.sent();
    assert!(host.is_armed(0, RTO));
}

#[test]
fn the_handshake_comes_first_and_gives_a_sample() {
    let mut host = host(&slow(), 100 * SMSS);
    let syn = host.open(0);
    assert_eq!((syn.len(), syn[0].kind, syn[0].wire_len), (1, Kind::SYN, 40));
    host.now = Time::ZERO + Dur::from_us(50);
    let mut synack = Packet::new(FlowId(0), Kind::SYNACK, 40);
    Echo::default().write(&mut synack);
    assert_eq!(segments(host.packet(synack)), [0, 1, 2]);
    assert_eq!(sender(&mut host).rtt.srtt(), Dur::from_us(50));
    assert_eq!(segments(host.packet(synack)), []);
    // Only data gives samples from here on.
    let now = host.now;
    assert_eq!(segments(host.advance(now + Dur::from_ms(199))), []);
    assert_eq!(segments(host.advance(now + Dur::from_ms(200))), [0]);
}

#[test]
fn a_lost_syn_costs_the_initial_window() {
    let mut host = host(&slow(), 100 * SMSS);
    host.open(0);
    let again = host.advance(Time::ZERO + Dur::from_secs(1));
    assert!(again.len() == 1 && again[0].kind == Kind::SYN && again[0].has(Packet::RETX));
    assert_eq!(host.advance(Time::ZERO + Dur::from_ms(2999)), []);
    assert_eq!(host.advance(Time::ZERO + Dur::from_secs(3)).len(), 1);
    let mut synack = Packet::new(FlowId(0), Kind::SYNACK, 40);
    Echo { resent: true, ..Echo::default() }.write(&mut synack);
    assert_eq!(segments(host.packet(synack)), [0]);
    let s = sender(&mut host);
    assert_eq!((s.rtt.rto(), s.window), (Dur::from_secs(4), Window { cwnd: SMSS, ssthresh: u64::MAX }));
    assert_eq!(host.table.get(FlowId(0)).stats.timeouts, 2);
}

#[test]
fn the_last_ack_closes_and_later_ones_are_ignored() {
    let mut host = host(&plain(), 3 * SMSS);
    host.open(0);
    feed(&mut host, [3]);
    assert!(host.table.get(FlowId(0)).closed && host.machine.senders.is_empty() && !host.is_armed(0, RTO));
    assert_eq!(feed(&mut host, [3, 2, 3, 3]), []);
    assert_eq!(host.packet(Packet::new(FlowId(0), Kind::SYNACK, 40)), []);
    assert_eq!(host.advance(Time::ZERO + Dur::from_secs(100)), []);
}

#[test]
fn flows_of_a_host_take_turns() {
    let flows = vec![script::flow(0, 5 * SMSS), script::flow(1, 2 * SMSS)];
    let mut host = Script::new(machine(&plain()), flows);
    host.nic_busy = true;
    host.open(0);
    host.open(1);
    host.nic_busy = false;
    let turns: Vec<u32> = host.sent().iter().map(|p| p.flow.0).collect();
    assert_eq!(turns, [0, 1, 0, 1, 0]);
    // A flow that is woken twice still has one turn.
    let flows = vec![script::flow(0, 9 * SMSS), script::flow(1, 3 * SMSS)];
    let mut host = Script::new(machine(&plain()), flows);
    host.open(0);
    host.nic_busy = true;
    feed(&mut host, [1, 2]);
    host.open(1);
    host.nic_busy = false;
    let turns: Vec<u32> = host.sent().iter().map(|p| p.flow.0).collect();
    assert_eq!(turns, [0, 1, 0, 1, 0, 1, 0]);
}

/// A controller that ignores every mark and allows two segments in flight.
struct Stubborn;

impl Congestion for Stubborn {
    type State = Vec<Option<Dur>>;
    const ECN: Ecn = Ecn::Exact;
    fn open(&self, _flow: &Flow) -> Self::State {
        Vec::new()
    }
    fn on_feedback(&self, samples: &mut Self::State, ack: &Ack<'_>) {
        samples.push(ack.rtt());
    }
    fn on_ack(&self, _samples: &mut Self::State, window: &mut Window, ack: &Ack<'_>) {
        window.cwnd += ack.acked;
    }
    fn on_loss(&self, _samples: &mut Self::State, window: &Window, _loss: Loss) -> u64 {
        window.cwnd
    }
    fn most(&self, samples: &Self::State) -> u64 {
        (2 + samples.len() as u64) * SMSS
    }
}

fn stubborn() -> Script<Tcp<Stubborn>> {
    let config = Options { init_window: Auto::Set(10), ..plain() }.config(&script::env());
    Script::new(Tcp::with(config, Stubborn), vec![script::flow(0, 8 * SMSS)])
}

#[test]
fn a_controller_may_hold_back_and_ignore_marks() {
    let mut host = stubborn();
    assert_eq!(segments(host.open(0)), [0, 1]);
    host.now = Time::ZERO + Dur::from_us(100);
    // Three segments may be in flight now. An ignored mark lets the window grow, and does not
    // change ssthresh.
    let mut marked = timed_ack(1, Time::ZERO);
    marked.flags |= Packet::ECE;
    assert_eq!(segments(host.packet(marked)), [2, 3]);
    assert_eq!(segments(host.packet(ack(2))), [4, 5]);
    let sender = host.machine.senders.get(FlowId(0)).expect("the flow is open");
    assert_eq!((sender.window.cwnd, sender.window.ssthresh), (12 * SMSS, u64::MAX));
    assert_eq!(sender.control, [Some(Dur::from_us(100)), None]);
}

/// A flow of 20 segments. Ten are sent at once; a segment takes 12 us.
fn due(deadline: Option<u64>, give_up: GiveUp) -> Script<NewReno> {
    let options = Options { init_window: Auto::Set(10), give_up, ..plain() };
    let deadline = deadline.map(|us| Time::ZERO + Dur::from_us(us));
    let mut host = Script::new(machine(&options), vec![Flow { deadline, ..script::flow(0, 20 * SMSS) }]);
    assert_eq!(host.open(0).len(), 10);
    host
}

/// Returns whether the flow is given up after an ACK at this time, in microseconds.
fn is_given_up(mut host: Script<NewReno>, now: u64) -> bool {
    host.now = Time::ZERO + Dur::from_us(now);
    let sent = host.packet(ack(1)).len();
    let given_up = host.table.get(FlowId(0)).terminated;
    assert_eq!((sent == 0, host.machine.sample(FlowId(0)).is_none()), (given_up, given_up));
    given_up
}

/// The other ten take 120 us: those in flight may be in time, and are not counted.
#[test]
fn a_flow_that_is_late_is_given_up_on_an_ack() {
    for (deadline, late) in [(None, false), (Some(219), true), (Some(220), false), (Some(50), true)] {
        assert_eq!(is_given_up(due(deadline, GiveUp::Feasible), 100), late, "{deadline:?}");
        assert!(!is_given_up(due(deadline, GiveUp::Never), 100), "{deadline:?}");
    }
}

#[test]
fn a_flow_that_is_late_is_given_up_at_a_timeout() {
    let after = |deadline, give_up| {
        let mut host = due(deadline, give_up);
        let sent = host.advance(Time::ZERO + Dur::from_ms(1500)).len();
        let record = host.table.get(FlowId(0));
        assert_eq!(record.stats.timeouts, 1);
        (record.terminated, sent)
    };
    // The first timeout comes after a second.
    assert_eq!(after(Some(1_000_000), GiveUp::Feasible), (true, 0));
    assert_eq!(after(Some(1_000_119), GiveUp::Feasible), (true, 0));
    assert_eq!(after(Some(1_000_120), GiveUp::Feasible), (false, 1));
    assert_eq!(after(None, GiveUp::Feasible), (false, 1));
    assert_eq!(after(Some(5), GiveUp::Never), (false, 1));
}

/// Duplicate ACKs cause no test, and retransmissions are not unsent bytes.
#[test]
fn bytes_sent_once_are_not_left() {
    let mut host = due(Some(400), GiveUp::Feasible);
    host.now = Time::ZERO + Dur::from_us(100);
    assert_eq!(feed(&mut host, [1]), [10, 11]);
    host.now = Time::ZERO + Dur::from_us(305);
    // Eight are left, which take 96 us: late, but duplicates cause no test.
    assert_eq!(feed(&mut host, [1, 1]), []);
    assert!(!host.table.get(FlowId(0)).terminated);
    host.now = Time::ZERO + Dur::from_us(304);
    assert_eq!(feed(&mut host, [1]), [1]);
    assert!(!host.table.get(FlowId(0)).terminated);
}

#[test]
fn a_flow_that_is_fully_sent_is_late_from_its_deadline_on() {
    let options = Options { init_window: Auto::Set(10), give_up: GiveUp::Feasible, ..plain() };
    let flow = Flow { deadline: Some(Time::ZERO + Dur::from_us(400)), ..script::flow(0, 5 * SMSS) };
    let mut host = Script::new(machine(&options), vec![flow]);
    assert_eq!(host.open(0).len(), 5);
    for (acked, now, late) in [(1, 399, false), (2, 400, true)] {
        host.now = Time::ZERO + Dur::from_us(now);
        host.packet(ack(acked));
        assert_eq!(host.table.get(FlowId(0)).terminated, late);
    }
}

//! Both halves together, for every transport on the machine: two hosts and a pipe that loses,
//! delays, duplicates and marks packets.

use super::Options;
use crate::contract::Transport as _;
use crate::flow::FlowStats;
use crate::kit::pipe::{Fate, Pipe, both_ways, fates, patterns};
use crate::kit::script::{self, Script};
use crate::packet::{Kind, Packet};
use crate::transport::{
    AnyParams, AnyTransport, aemon, bbr, botcp, cubic, d2tcp, dctcp, l2dct, mcp, mptcp, newreno, plugin, swift, tcp_ecn,
};
use base::params::{Auto, Params as _};
use base::{Dur, FlowId, Rng, Time};
use proptest::prelude::*;

const SMSS: u64 = 1460;

/// Flows of these sizes, every second one from host 1 to host 0, through a pipe with a round trip
/// of 200 us.
fn pipe(params: &AnyParams, sizes: &[u64]) -> Pipe<AnyTransport> {
    let flows = both_ways(sizes);
    let host = || Script::new(params.build(&script::env()), flows.clone());
    Pipe::new(host(), host(), Dur::from_us(100))
}

fn newreno(tcp: Options) -> AnyParams {
    AnyParams::NewReno(newreno::Params { tcp, byte_counting: false })
}

/// Every transport on the machine, with options that affect the time of transmissions.
fn variants() -> Vec<AnyParams> {
    let plain = Options::defaults();
    let quick = Options {
        handshake: false,
        init_window: Auto::Set(10),
        min_rto: Auto::Set(Dur::from_us(200)),
        init_rto: Auto::Set(Dur::from_us(200)),
        ..plain.clone()
    };
    let delayed = Options { ack_every: 2, limited_transmit: true, full_ack_ssthresh: true, ..plain.clone() };
    let sack = |options: &Options| Options { sack: true, ..options.clone() };
    vec![
        newreno(plain.clone()),
        newreno(quick.clone()),
        newreno(delayed.clone()),
        AnyParams::NewReno(newreno::Params { tcp: Options { max_cwnd: Auto::Set(4), ..plain.clone() }, byte_counting: true }),
        newreno(sack(&plain)),
        newreno(sack(&quick)),
        newreno(sack(&delayed)),
        newreno(Options { max_cwnd: Auto::Set(4), ..sack(&delayed) }),
        AnyParams::TcpEcn(tcp_ecn::Params { tcp: plain.clone() }),
        AnyParams::TcpEcn(tcp_ecn::Params { tcp: sack(&delayed) }),
        AnyParams::Dctcp(dctcp::Params { tcp: quick.clone(), ..dctcp::Params::defaults() }),
        AnyParams::Dctcp(dctcp::Params { tcp: delayed.clone(), ..dctcp::Params::defaults() }),
        AnyParams::Dctcp(dctcp::Params { tcp: sack(&quick), min_cwnd: 2, ..dctcp::Params::defaults() }),
        AnyParams::D2tcp(d2tcp::Params::defaults()),
        AnyParams::L2dct(l2dct::Params::defaults()),
        AnyParams::Mcp(mcp::Params::defaults()),
        AnyParams::Aemon(aemon::Params::defaults()),
        AnyParams::Botcp(botcp::Params { tcp: quick.clone(), ..botcp::Params::defaults() }),
        AnyParams::Botcp(botcp::Params { tcp: sack(&quick), ..botcp::Params::defaults() }),
        AnyParams::Cubic(cubic::Params { tcp: plain, ecn: true, ..cubic::Params::defaults() }),
        AnyParams::Cubic(cubic::Params { tcp: sack(&quick), hystart: false, ..cubic::Params::defaults() }),
        AnyParams::Bbr(bbr::Params::defaults()),
        AnyParams::Bbr(bbr::Params { ecn: true, tcp: sack(&delayed), ..bbr::Params::defaults() }),
        AnyParams::Plugin(plugin::Params::defaults()),
        AnyParams::Swift(swift::Params::defaults()),
        AnyParams::Swift(swift::Params { tcp: quick.clone(), ..swift::Params::defaults() }),
        AnyParams::Mptcp(mptcp::Params::defaults()),
        AnyParams::Mptcp(mptcp::Params { tcp: sack(&quick), subflows: 3, ..mptcp::Params::defaults() }),
    ]
}

/// Asserts that a window is never below one segment and the threshold never below two. Exceptions:
/// BOTCP's and Swift's windows go below one segment and have no threshold, and the threshold of MPTCP's
/// subflows goes down to one segment.
fn watch(host: &Script<AnyTransport>) {
    let paced = matches!(host.machine, AnyTransport::Botcp(_) | AnyTransport::Swift(_));
    for flow in &host.flows {
        if let Some(sample) = host.machine.sample(flow.id) {
            let least = if paced { SMSS / 65 } else { SMSS };
            assert!(sample.cwnd_bytes >= least, "{sample:?}");
            let threshold = if matches!(host.machine, AnyTransport::Mptcp(_)) { SMSS } else { 2 * SMSS };
            assert!(paced || sample.ssthresh_bytes == 0 || sample.ssthresh_bytes >= threshold, "{sample:?}");
        }
    }
}

#[test]
fn every_transport_on_the_machine_is_among_the_variants() {
    for entry in crate::transport::ENTRIES.iter().filter(|entry| entry.machine == Some(super::TEXT)) {
        assert!(variants().iter().any(|params| params.name() == entry.name), "add `{}`", entry.name);
    }
}

#[test]
fn growth_is_one_segment_per_ack_then_one_per_window() {
    let mut pipe = pipe(&newreno(Options { handshake: false, init_window: Auto::Set(3), ..Options::defaults() }), &[400 * SMSS]);
    pipe.run(|_| Fate::Pass);
    // Doubling from 3: 400 segments need 8 round trips of 200 us, and no more.
    assert_eq!(pipe.hosts[1].table.get(FlowId(0)).finish, Time::ZERO + Dur::from_us(100 + 7 * 200));
}

#[test]
fn a_segment_dropped_once_at_any_place_is_recovered() {
    for params in variants() {
        for lost in 0..20 {
            let mut pipe = pipe(&params, &[20 * SMSS]);
            let mut sent = 0;
            pipe.run(|p| {
                let new = p.kind == Kind::DATA && !p.has(Packet::RETX);
                sent += u32::from(new);
                if new && sent == lost + 1 { Fate::Drop } else { Fate::Pass }
            });
            assert!(sent > lost);
            let stats = pipe.hosts[0].table.get(FlowId(0)).stats;
            assert!(stats.timeouts + stats.fast_retransmits >= 1, "segment {lost}: {stats:?}");
        }
    }
}

#[test]
fn every_packet_of_any_kind_dropped_once_is_recovered() {
    for params in variants() {
        let packets = {
            let mut whole = pipe(&params, &[20 * SMSS]);
            whole.run(|_| Fate::Pass);
            whole.log.len()
        };
        for lost in 0..packets {
            let mut seen = 0;
            pipe(&params, &[20 * SMSS]).run(|_| {
                seen += 1;
                if seen == lost + 1 { Fate::Drop } else { Fate::Pass }
            });
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(patterns(400)))]
    /// All bytes arrive once, senders close and timers end, whatever happens to the first 200 packets.
    #[test]
    fn survives_loss_reordering_duplication_and_marks(
        variant in 0..variants().len(),
        sizes in prop::collection::vec(1u64..60_000, 1..4),
        fates in fates(200, &[(2, Fate::Mark)]),
    ) {
        let mut pipe = pipe(&variants()[variant], &sizes);
        pipe.watch = watch;
        pipe.run_fates(fates);
    }
}

/// Returns the cost of the recovery from `lost` segments of one window: round trips from the first
/// retransmission to the last, the counts, and the FCT.
fn recovery(sack: bool, lost: u64) -> (u64, FlowStats, u64) {
    // As in ns-1: recovery leaves half the window, whatever is then in flight.
    let tcp = Options { handshake: false, full_ack_ssthresh: true, sack, ..Options::defaults() };
    let mut pipe = pipe(&newreno(Options { init_window: Auto::Set(32), ..tcp }), &[640 * SMSS]);
    // Every second segment of the second window.
    let mut left: Vec<u64> = (0..lost).map(|i| (34 + 2 * i) * SMSS).collect();
    pipe.run(|p| {
        let hit = p.kind == Kind::DATA && left.contains(&p.offset);
        left.retain(|offset| *offset != p.offset || !hit);
        if hit { Fate::Drop } else { Fate::Pass }
    });
    assert!(left.is_empty());
    let resent: Vec<&Packet> = pipe.log.iter().filter(|p| p.kind == Kind::DATA && p.has(Packet::RETX)).collect();
    assert_eq!(resent.len() as u64, lost, "segments that arrived are not retransmitted");
    let span = resent.last().map_or(Dur::ZERO, |last| last.sent_at.since(resent[0].sent_at));
    let finish = pipe.hosts[1].table.get(FlowId(0)).finish.since(Time::ZERO);
    (span.0 / Dur::from_us(200).0, pipe.hosts[0].table.get(FlowId(0)).stats, finish.0 / 1_000_000)
}

/// K. Fall, S. Floyd, "Simulation-based comparisons of Tahoe, Reno, and SACK TCP", CCR 26(3), 1996,
/// sections 4 and 5: after one loss NewReno and SACK are equal; after more losses, NewReno
/// retransmits one segment per round trip, and SACK all of them within one. Neither waits for the
/// timer.
#[test]
fn five_loss_scenarios_come_out_as_published() {
    for lost in [0, 1, 2, 3, 12] {
        let [(plain, plain_stats, plain_us), (sack, sack_stats, sack_us)] = [false, true].map(|sack| recovery(sack, lost));
        let once = FlowStats { timeouts: 0, fast_retransmits: u32::from(lost > 0) };
        assert_eq!((plain_stats, sack_stats), (once, once), "{lost} lost");
        assert_eq!((plain, sack), (lost.saturating_sub(1), 0), "{lost} lost");
        assert!(
            sack_us <= plain_us && (lost < 12 || sack_us < plain_us),
            "{lost} lost: {sack_us} us with SACK, {plain_us} without"
        );
    }
}

/// Returns the segments per round trip of a long flow whose segments are lost with probability `p`,
/// over its last `counted` segments.
fn goodput(params: &AnyParams, p: f64, counted: u64) -> f64 {
    // The first loss ends slow start near the window of the steady state.
    let first = (1.5 / p.sqrt()) as u64;
    let warm = first + (4.0 / p) as u64;
    let mut rng = Rng::stream(7, "mathis", &[(1.0 / p) as u64]);
    let mut pipe = pipe(params, &[(warm + counted) * SMSS]);
    pipe.keep_log = false;
    let mut begin = None;
    pipe.run(|packet| {
        if packet.kind != Kind::DATA {
            return Fate::Pass;
        }
        if packet.offset >= warm * SMSS && begin.is_none() {
            begin = Some(packet.sent_at);
        }
        let hit =
            if packet.offset > first * SMSS { rng.unit() < p } else { packet.offset == first * SMSS && !packet.has(Packet::RETX) };
        if hit { Fate::Drop } else { Fate::Pass }
    });
    let took = pipe.hosts[1].table.get(FlowId(0)).finish.since(begin.expect("the flow is longer than its beginning"));
    counted as f64 / (took.0 as f64 / Dur::from_us(200).0 as f64)
}

/// M. Mathis et al., "The macroscopic behavior of the TCP congestion avoidance algorithm", CCR
/// 27(3), 1997, eq. 3: a flow carries 1.22 / sqrt(p) segments per round trip; random losses, not
/// one per period, make it at most 1.31, and recovery and timeouts reduce it at high p. The timeout
/// is more than two round trips: with two, the ACK of a retransmission may arrive just too late.
#[test]
fn goodput_under_random_loss_is_that_of_the_square_root_law() {
    for p in [1e-4, 3e-4, 1e-3, 3e-3, 1e-2] {
        for sack in [false, true] {
            let options = Options {
                min_rto: Auto::Set(Dur::from_us(500)),
                init_rto: Auto::Set(Dur::from_us(500)),
                sack,
                ..Options::defaults()
            };
            let ratio = goodput(&newreno(options), p, (100.0 / p) as u64) / (1.22 / p.sqrt());
            assert!((0.85..1.15).contains(&ratio), "p {p}, sack {sack}: {ratio} of 1.22 / sqrt(p)");
        }
    }
}

/// RFC 3168: whatever the marks, cuts are a round trip apart, and each is reported by CWR.
#[test]
fn marks_cut_once_per_round_trip() {
    for (number, share) in [0.02, 0.3, 1.0].into_iter().enumerate() {
        for params in [AnyParams::TcpEcn(tcp_ecn::Params::defaults()), AnyParams::Dctcp(dctcp::Params::defaults())] {
            let transport = params.name();
            let mut rng = Rng::stream(7, "marks", &[number as u64]);
            let mut pipe = pipe(&params, &[2000 * SMSS]);
            pipe.watch = watch;
            let (mut marks, mut cuts) = (0, Vec::new());
            pipe.run(|packet| {
                assert!(packet.kind != Kind::ACK || !packet.has(Packet::ECT), "a bare ACK can be marked");
                if packet.has(Packet::CWR) {
                    cuts.push(packet.sent_at);
                }
                if packet.kind == Kind::DATA && rng.unit() < share {
                    marks += 1;
                    return Fate::Mark;
                }
                Fate::Pass
            });
            assert!(cuts.windows(2).all(|two| two[1].since(two[0]) >= Dur::from_us(200)), "{transport}, {share}: {cuts:?}");
            assert!(cuts.len() > 3 && marks >= cuts.len(), "{transport}, {share}: {} cuts for {marks} marks", cuts.len());
            assert_eq!(pipe.hosts[0].table.get(FlowId(0)).stats, FlowStats::default());
        }
    }
}

//! UET at hosts with two NICs at 100 Gb/s, each in a plane of its own: eight servers in two pods, and four spines in each plane.

use crate::common::{run, table};
use sim::Outcome;

/// A permutation in which every message crosses the spines or stays in its pod.
const TO: [u32; 8] = [6, 5, 0, 7, 1, 2, 3, 4];
/// 2442 packets of 4160 bytes at 200 Gb/s, in us.
const BOTH_PLANES: f64 = 2442.0 * 4160.0 * 8.0 / 200_000.0;
/// Balancers that avoid paths.
const ADAPTIVE: [&str; 3] = ["load_balancing = 'bitmap'", "load_balancing = 'reps'", "load_balancing = 'mixed'"];

/// Runs the permutation with messages of 10 MB until 100 ms. Routes do not follow a failure of the link.
fn permutation(options: &str, link: Option<&str>) -> Outcome {
    let rows: Vec<_> = (0..).zip(TO).map(|(src, dst)| (src, dst, 10_000_000, 0)).collect();
    let fails = |link| format!("[[event]]\nlink = '{link}'\nat = '100us'\n[failure]\ndetect = '1s'\nconverge = '1s'\n");
    run(&format!(
        "end = '100ms'\nmtu = '4160B'\nheader = '64B'\n[topology]\nkind = 'rail'\npods = 2\nservers = 4\nnics = 2\n\
         planes = 'per_rail'\nspines = 4\nspine_cables = 1\nnic_rate = '100Gbps'\ndelay = '1us'\n{}{}\
         [[system]]\ntransport = {{ kind = 'uet', {options} }}\n",
        table("uet-planes", &rows),
        link.map_or_else(String::new, fails)
    ))
}

/// Completion times in us; 100 ms for a message that is not complete.
fn times(outcome: &Outcome) -> Vec<f64> {
    outcome.flows.iter().map(|flow| flow.fct_ps().map_or(1e5, |fct| fct as f64 / 1e6)).collect()
}
fn longest(times: &[f64]) -> f64 {
    times.iter().copied().fold(0.0, f64::max)
}
/// Bytes that the hosts, or one of them, send into each plane.
fn sent(outcome: &Outcome, host: &str) -> [f64; 2] {
    ["0", "1"].map(|plane| {
        let nics = outcome.ports.iter().filter(|port| port.name.starts_with(host) && port.name.ends_with(plane));
        nics.map(|port| port.tx_bytes).sum::<u64>() as f64
    })
}

/// A message is as fast as both NICs, and the planes carry the same.
#[test]
fn messages_use_all_planes() {
    for options in ADAPTIVE.into_iter().chain(["cc = 'rccc'"]) {
        let outcome = permutation(options, None);
        let (times, [a, b]) = (times(&outcome), sent(&outcome, "h"));
        let mean = times.iter().sum::<f64>() / 8.0 / BOTH_PLANES;
        assert!((1.0..1.12).contains(&mean) && longest(&times) < 1.25 * BOTH_PLANES, "{options}: {times:?}");
        assert!((0.96..1.04).contains(&(a / b)), "{options}: {a} and {b} bytes");
        for host in 0..8 {
            let [a, b] = sent(&outcome, &format!("h{host}-"));
            assert!((0.4..0.6).contains(&(a / (a + b))), "{options}, h{host}: {a} and {b} bytes");
        }
    }
}

/// A host loses its link to one plane after 100 us. Two messages need it: 2.46 MB of them have arrived at most, and the
/// rest takes 613 us on the other NIC. A sender learns of the dead paths only from timeouts.
#[test]
fn messages_leave_a_plane_that_fails() {
    let dead_plane = 100.0 + 2.0 * (BOTH_PLANES - 100.0);
    let of = |options| {
        let times = times(&permutation(options, Some("rail1_0--h4")));
        let (with, without): (Vec<_>, Vec<_>) = (0..8).zip(times).partition(|&(src, _)| src == 4 || TO[src] == 4);
        assert!(without.iter().all(|(_, time)| *time < 1.5 * BOTH_PLANES), "{options}: {without:?}");
        with.into_iter().map(|(_, time)| time).collect::<Vec<_>>()
    };
    let oblivious = of("load_balancing = 'oblivious'");
    for (options, factor) in ADAPTIVE.into_iter().zip([50.0, 1.25, 2.0]) {
        let times = of(options);
        assert!(longest(&times) < factor * dead_plane, "{options}: {times:?}");
        assert!(times.iter().sum::<f64>() < oblivious.iter().sum::<f64>(), "{options}: {times:?}, {oblivious:?}");
    }
}

/// One of four spines of a plane loses its link to a pod. An eighth of the paths of most messages is dead.
#[test]
fn messages_avoid_a_dead_path() {
    let of = |options| longest(&times(&permutation(options, Some("rail0_0--spine0_1"))));
    let oblivious = of("load_balancing = 'oblivious'");
    for options in ADAPTIVE {
        let time = of(options);
        assert!(time < 1.35 * BOTH_PLANES && oblivious > 2.0 * time, "{options}: {time}, {oblivious}");
    }
}

/// With ordered delivery a message takes one path, and so one NIC.
#[test]
fn ordered_messages_use_one_plane() {
    let outcome = permutation("delivery = 'ordered'", None);
    let mut shares: Vec<f64> = (0..8).map(|host| sent(&outcome, &format!("h{host}-"))).map(|[a, b]| a / (a + b)).collect();
    shares.retain(|share| (0.05..0.95).contains(share));
    assert!(shares.is_empty(), "{shares:?}");
    assert!(times(&outcome).iter().all(|time| *time > 2.0 * BOTH_PLANES), "{:?}", times(&outcome));
}

//! DiFS in a network of packets: collisions that hashing leaves are resolved, requests are counted once and end,
//! and flows that move are reordered.

use crate::common::{run, system_of, table};
use base::Rng;
use sim::Outcome;

/// Long flows at 100 Mb/s in a fat tree with k = 4, for 600 ms. The second half is measured.
fn long(router: &str, name: &str, pairs: &[(u32, u32)], rest: &str) -> Outcome {
    let rows: Vec<_> = pairs.iter().map(|&(src, dst)| (src, dst, 1_000_000_000, 0)).collect();
    let system = system_of("router", router, "100pkt").without("router").set("router.kind", router).toml();
    let head = "end = '600ms'\n[topology]\nkind = 'fat_tree'\nrate = '100Mbps'\n[measure]\nfrom = '300ms'\n";
    run(&format!("{head}{}{system}{rest}", table(name, &rows)))
}

fn stride(i: u32) -> Vec<(u32, u32)> {
    (0..16).map(|src| (src, (src + i) % 16)).collect()
}

/// The sum of a counter over all ports.
fn count(outcome: &Outcome, counter: &str) -> u64 {
    let at = outcome.port_counters.iter().position(|known| known.column() == format!("difs.{counter}")).expect("a counter of DiFS");
    outcome.ports.iter().map(|port| port.counts[at]).sum()
}

fn gbps(outcome: &Outcome) -> f64 {
    let window = outcome.counters.window.expect("the run is longer than 300 ms");
    window.delivered_bytes as f64 * 8e3 / (window.until_ps - window.from_ps) as f64
}

/// Fig. 4a: with a stride of 4 all flows go between pods, and the fabric has room for all at full rate.
#[test]
fn flows_get_what_the_fabric_has() {
    let [difs, ecmp] = ["difs", "ecmp"].map(|router| long(router, "difs-stride", &stride(4), ""));
    // 16 flows of 100 Mb/s; headers take 40 of 1500 bytes.
    assert!(gbps(&difs) > 0.85 * 1.6 * 1460.0 / 1500.0, "{} {}", gbps(&difs), gbps(&ecmp));
    assert!(gbps(&ecmp) < 0.75 * gbps(&difs), "{} {}", gbps(&ecmp), gbps(&difs));
    let reordered = |outcome: &Outcome| outcome.flows.iter().map(|flow| flow.reordered).sum::<u64>();
    let retransmitted = |outcome: &Outcome| outcome.flows.iter().map(|flow| flow.retx_packets).sum::<u64>();
    assert!(reordered(&ecmp) <= retransmitted(&ecmp), "on one path only retransmitted packets arrive late");
    assert!(reordered(&difs) > 0, "flows have changed their paths");
    assert_eq!(count(&difs, "failure_ears"), 0);
}

/// No request is lost or made twice, and each is counted where it was made, and where it ends.
#[test]
fn requests_are_made_once_and_end() {
    let (mut ears, mut rng) = (0, Rng::stream(7, "difs/pairs", &[]));
    for _ in 0..3 {
        let pairs: Vec<_> = (0..16).map(|src| (src, (src + 1 + rng.below(15) as u32) % 16)).collect();
        let outcome = long("difs", "difs-random", &pairs, "[sample]\ninterval = '10ms'\nports = false\nswitches = true\n");
        let sampled =
            |metric: &str| outcome.samples.iter().filter(|row| row.metric == metric).map(|row| row.value).sum::<f64>() as u64;
        let made = count(&outcome, "ears") + count(&outcome, "failure_ears");
        // None is on its way at the last sample, long after all has settled.
        assert_eq!((sampled("switch.made_packets"), sampled("switch.taken_packets")), (made, made));
        assert_eq!(count(&outcome, "ear_bytes"), 26 * made);
        assert!(count(&outcome, "moved") + count(&outcome, "swapped") + count(&outcome, "ears_ignored") <= made);
        assert!(count(&outcome, "ears_forwarded") >= made, "an EAR crosses a core or an aggregation switch at least");
        // Fig. 9: soon after the flows have begun there are no more requests.
        assert!(outcome.samples.iter().all(|row| row.time_ps <= 300_000_000_000), "{:?}", outcome.samples.last());
        ears += made;
    }
    assert!(ears > 3, "{ears}");
}

/// A cable between an aggregation and a core switch dies while every flow crosses the core tier: all are moved off it and go on.
#[test]
fn flows_leave_a_dead_cable() {
    let event = "[[event]]\nat = '150ms'\nlink = ['agg1_0', 'core0']\n[failure]\nconverge = '100ms'\n";
    let outcome = long("difs", "difs-stride", &stride(4), event);
    assert!(outcome.flows.iter().all(|flow| flow.lost_link < 200), "EARs act long before the routes converge");
    let rate = gbps(&outcome);
    // Pod 1 has lost a quarter of its four cables to the core tier in each direction.
    assert!(rate > 0.7 * 1.6, "{rate}");
    assert!(count(&outcome, "failure_ears") > 0 || count(&outcome, "rebalanced") > 0);
}

/// Table II, at 128 hosts with one flow each to a random host: a model of the rules without packets has 108 to
/// 175 EARs. Flows that become elephants one after the other, and pause, cause more.
#[test]
#[ignore = "some twelve seconds: `make slow` runs it"]
fn ears_at_k_8() {
    let ears = |seed: u64| {
        let mut rng = Rng::stream(seed, "difs/table-2", &[]);
        let rows: Vec<_> = (0..128).map(|src| (src, (src + 1 + rng.below(127) as u32) % 128, 1_000_000_000, 0)).collect();
        let system = system_of("router", "difs", "128pkt").without("router").set("router.kind", "difs").toml();
        let head = "end = '700ms'\n[topology]\nkind = 'fat_tree'\nk = 8\nrate = '100Mbps'\n";
        let outcome = run(&format!("{head}{}{system}", table(&format!("difs-k8-{seed}"), &rows)));
        let found = ["ears", "moved", "swapped", "ears_ignored", "rebalanced"].map(|counter| count(&outcome, counter));
        println!("seed {seed}: ears, moved, swapped, ignored, rebalanced {found:?}");
        found[0]
    };
    let all: Vec<u64> = (0..10).map(ears).collect();
    let mean = all.iter().sum::<u64>() as f64 / 10.0;
    assert!((90.0..400.0).contains(&mean), "{mean}: {all:?}");
}

//! Multipath TCP in networks: its goodput over several paths, its share next to one TCP, and a path that dies.

use crate::common::{run, system_of, table};
use scenario::Outline;
use sim::Outcome;
use sim::outcome::SampleRow;

/// Payload of a packet as a share of its bytes on the wire.
const PAYLOAD: f64 = 1460.0 / 1500.0;

/// Two hosts at two leaves, joined by two spines at half the rate of the hosts' links.
const TWO_PATHS: &str = "[topology]\nkind = 'leaf_spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 1\nhost_rate = '2Gbps'\nspine_rate = '1Gbps'\ndelay = '10us'\n";

fn mptcp(options: &[(&str, &str)]) -> Outline {
    let system = system_of("transport", "mptcp", "100pkt");
    options.iter().fold(system, |system, (key, value)| system.set(&format!("transport.{key}"), value))
}

/// A flow of 40 MB over two paths. Returns its goodput as a share of both.
fn over_two_paths(seed: u32, system: &Outline, rest: &str) -> (Outcome, Option<f64>) {
    let flow = table("two-paths", &[(0, 1, 40_000_000, 0)]);
    let outcome = run(&format!("seed = {seed}\nend = '2s'\n{TWO_PATHS}{flow}{}{rest}", system.toml()));
    let share = outcome.flows[0].goodput_bps().map(|goodput| goodput / (2e9 * PAYLOAD));
    (outcome, share)
}

#[test]
fn two_equal_paths_give_nine_tenths_of_their_sum() {
    for paths in ["port", "index"] {
        for seed in 1..=3 {
            let (outcome, share) = over_two_paths(seed, &mptcp(&[("paths", paths)]), "");
            assert!(share.is_some_and(|share| share > 0.9), "{paths}, seed {seed}: {share:?}");
            assert_eq!(outcome.flows[0].counts[0], 8, "all subflows are open");
        }
    }
    // A single subflow has a single path.
    let (_, alone) = over_two_paths(1, &mptcp(&[("subflows", "1")]), "");
    assert!(alone.is_some_and(|share| (0.4..0.5).contains(&share)), "{alone:?}");
}

/// The network never detects that the path over the first spine is dead. The subflows on it lose all packets,
/// and the other subflows retransmit them.
#[test]
fn a_dead_path_is_repaired() {
    let dead = "[[event]]\nat = '50ms'\nlink = ['leaf0', 'spine0']\n[failure]\ndetect = '60s'\n";
    for seed in 1..=3 {
        let (outcome, share) = over_two_paths(seed, &mptcp(&[]), dead);
        // Two ninths of the flow over both paths, the rest over one.
        assert!(share.is_some_and(|share| share > 0.5), "seed {seed}: {share:?}");
        let [_, reinjected] = outcome.flows[0].counts[..] else { panic!("two counters") };
        assert!(reinjected > 10_000, "{reinjected}");
        let (without, share) = over_two_paths(seed, &mptcp(&[("reinject", "false")]), dead);
        assert_eq!((share, without.flows[0].counts[1]), (None, 0), "seed {seed}");
    }
}

/// Two long flows over one slow link. The second flow is below `min_bytes`, so it is one TCP. Packets are lost at
/// random, with equal probability for both flows, as RFC 6356 assumes; a queue that overflows would drop the
/// packets of one flow or the other depending on their phases. Alpha counts the largest window of the moment.
/// The more subflows there are, the more this window exceeds their mean: eight subflows take a fifth more than
/// a TCP.
#[test]
fn on_a_bottleneck_shared_with_a_tcp_it_takes_no_more_than_one_tcp() {
    for (subflows, most) in [("2", 1.1), ("4", 1.2), ("8", 1.3)] {
        let system = mptcp(&[("min_bytes", "1GB"), ("subflows", subflows)]).set("qdisc.limit", "unlimited");
        let rows = table("shared-with-tcp", &[(0, 2, 1_000_000_000, 0), (1, 3, 999_999_999, 0)]);
        let (mut rates, mut used) = ([0.0; 2], 0.0);
        for seed in 1..=3 {
            let outcome = run(&format!(
                "seed = {seed}\nend = '12s'\n[sample]\ninterval = '100ms'\nports = false\nflows = true\n[topology]\nkind = 'dumbbell'\nleft = 2\nright = 2\n\
                 rate = '1Gbps'\nbottleneck_rate = '200Mbps'\ndelay = '500us'\nloss = 0.0003\n{rows}{}",
                system.toml()
            ));
            // Without the slow starts.
            let counts = |s: &&SampleRow| s.metric == "flow.rate_bps" && s.time_ps > 2_000_000_000_000;
            let of = |flow: u32| outcome.samples.iter().filter(counts).filter(move |s| s.entity == flow).map(|s| s.value);
            rates = [rates[0] + of(0).sum::<f64>(), rates[1] + of(1).sum::<f64>()];
            used += outcome.ports.iter().map(|port| port.busy_ps as f64 / 12e12).fold(0.0, f64::max) / 3.0;
        }
        let ratio = rates[0] / rates[1];
        assert!(used > 0.9, "the link is no bottleneck: {used}");
        assert!((0.75..=most).contains(&ratio), "{subflows} subflows: {ratio}");
    }
}

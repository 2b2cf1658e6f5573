//! A run is a function of plan, seed and code: probes and parallel runs do not change it.

use crate::common::{all_systems, kinds, plan, run, run_point, system};

const SMALL: &str = "seed = [1, 2]\n[topology]\nkind = 'single_tree'\n[workload.web]\nkind = 'poisson'\nflows = 60\nload = 0.8\n\
                     load_ref = 'uplinks'\nsize = 'pareto'\nmean = '30KB'\nshape = 1.5\n\
                     deadline = { kind = 'uniform', min = '300us', max = '2ms', share = 0.7 }\n";

/// A system around every entry that can be part of one.
fn systems(limit: &str) -> String {
    all_systems(limit).iter().map(scenario::Outline::toml).collect()
}

#[test]
fn the_same_point_gives_the_same_rows() {
    let plan = plan(&format!("{SMALL}{}", systems("60pkt")));
    for point in &plan.points {
        let (first, second) = (run_point(point), run_point(point));
        assert_eq!(first, second, "{}", point.id);
        assert!(first.flows.iter().all(|f| f.finish_ps.is_some() || f.terminated), "{} leaves flows unfinished", point.id);
    }
    // Different seeds and transports differ, and all systems serve the same flows.
    let transports = plan.points.iter().filter(|p| kinds("transport").contains(&p.label.trim_end_matches(" as a transport")));
    let digests: Vec<(u64, &str)> = transports.map(|p| (run_point(p).counters.digest, p.id.as_str())).collect();
    assert_eq!(digests.len(), 2 * kinds("transport").len());
    for (i, (digest, id)) in digests.iter().enumerate() {
        let alike = digests[..i].iter().find(|(other, _)| other == digest);
        assert_eq!(alike, None, "{id} is like another");
    }
    let offered = |i: usize| -> Vec<_> {
        let flows = plan.points[i].run.flows().unwrap();
        flows.iter().map(|f| (f.start, f.src, f.dst, f.size_bytes)).collect()
    };
    let of_seed = |seed| -> Vec<usize> { (0..plan.points.len()).filter(|i| plan.points[*i].seed == seed).collect() };
    for seed in [1, 2] {
        assert!(of_seed(seed).iter().all(|i| offered(*i) == offered(of_seed(seed)[0])));
    }
    assert_ne!(offered(of_seed(1)[0]), offered(of_seed(2)[0]));
}

#[test]
fn watching_changes_nothing() {
    watch_with("");
}

#[test]
fn watching_failures_changes_nothing() {
    watch_with(
        "[[event]]\nnode = 'tor1'\nat = '2ms'\nuntil = '4ms'\n[[event]]\nlink = ['tor0', 'root']\nat = '3ms'\nuntil = '5ms'\n",
    );
}

fn watch_with(events: &str) {
    let bare = plan(&format!("{SMALL}{}{events}", systems("20pkt")));
    let watch = "[sample]\ninterval = '37us'\nports = true\nflows = true\nagents = true\npackets = true\n";
    let watched = plan(&format!("{SMALL}{}{events}{watch}", systems("20pkt")));
    for (bare, watched) in bare.points.iter().zip(&watched.points) {
        let (a, b) = (run_point(bare), run_point(watched));
        assert_eq!((a.flows, a.ports, a.counters.digest, a.counters.hops), (b.flows, b.ports, b.counters.digest, b.counters.hops));
        assert_eq!(a.counters.lost_packets > 0, !events.is_empty());
        assert!(a.samples.is_empty() && !b.samples.is_empty() && !b.packets.is_empty());
        // The trace has every packet on every link, and no two packets overlap on a link.
        let sent = b.packets.iter().filter(|p| !p.dropped).count() as u64;
        assert!(sent >= b.counters.hops);
        let mut free = std::collections::BTreeMap::new();
        for packet in b.packets.iter().filter(|p| !p.dropped) {
            let busy_until = free.insert(packet.port_id, packet.end_ps).unwrap_or(0);
            assert!(packet.time_ps >= busy_until, "two packets at once on port {}", packet.port_id);
        }
    }
}

/// Two flows to one host, the second of half the size: their rows at the port that they share.
#[test]
fn agents_show_what_ports_know_of_flows() {
    let flows = "[topology]\nkind = 'star'\nhosts = 3\nrate = '1Gbps'\ndelay = '10us'\n[workload.long]\nkind = 'long'\npairs = ['h1->h0']\nsize = '200KB'\n\
                 [workload.short]\nkind = 'long'\npairs = ['h2->h0']\nsize = '100KB'\n";
    let watch = "[sample]\ninterval = '100us'\nports = false\nport = 's0->h0'\nagents = true\n";
    for (name, columns) in [
        ("merp", &["virtual_deadline_s", "expansion_ratio", "left_bytes", "paused"][..]),
        ("pdq", &["rank", "rate_bps", "expected_s", "paused"]),
    ] {
        let outcome = run(&format!("{flows}{watch}{}", system(name, "100pkt")));
        assert!(outcome.samples.is_empty());
        let at: Vec<_> = outcome.agents.iter().filter(|row| row.time_ps == 500_000_000).collect();
        let shown: Vec<_> = at.iter().map(|row| (row.flow_id, row.column)).collect();
        let expected: Vec<_> = [0, 1].iter().flat_map(|flow| columns.iter().map(|column| (*flow, *column))).collect();
        assert_eq!(shown, expected, "{name}");
        let value = |flow: usize, place: usize| at[flow * columns.len() + place].value;
        if name == "merp" {
            // The short flow goes first, and its remaining bytes decrease.
            assert!(value(1, 0) < value(0, 0) && value(0, 1) >= 1.0 && value(1, 1) >= 1.0, "{at:?}");
            let left = |time: u64| {
                outcome
                    .agents
                    .iter()
                    .find(|row| (row.time_ps, row.flow_id, row.column) == (time, 1, "left_bytes"))
                    .map(|row| row.value)
            };
            let fell = left(500_000_000).zip(left(700_000_000)).map(|(before, after)| before - after);
            assert!(fell.is_some_and(|fell| (20e3..26e3).contains(&fell)), "{fell:?} of 25 KB in 0.2 ms");
        } else {
            assert_eq!((value(0, 0), value(1, 0), value(0, 3), value(1, 3)), (2.0, 1.0, 1.0, 0.0), "{at:?}");
        }
        // Rows end with their flows.
        let last = outcome.flows.iter().filter_map(|row| row.finish_ps).max().unwrap();
        assert!(outcome.agents.iter().all(|row| row.time_ps < last + 100_000_000), "{name}");
    }
}

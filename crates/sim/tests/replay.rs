//! A run is a function of plan, seed and code: probes and parallel runs change nothing.

mod common;
use common::{all_systems, kinds, plan, run_point};

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
    let watch = "[sample]\ninterval = '37us'\nports = true\nflows = true\npackets = true\n";
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

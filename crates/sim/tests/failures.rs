//! Links and switches that fail: what is lost, what finds its way, and that everything finishes that can.

mod common;
use common::{ROUTERS, SYSTEMS, plan, run, run_point, system, table};
use scenario::{Plan, Point};
use sim::outcome::{Outcome, StopReason};

#[test]
fn every_router_is_tried() {
    for entry in fabric::router::ENTRIES {
        let quoted = format!("'{}'", entry.name);
        assert!(ROUTERS.iter().any(|r| r.0.contains(&quoted)), "add `{}` to ROUTERS in tests/common/mod.rs", entry.name);
    }
}

/// Flows in all directions on a k = 4 fat tree: within a rack, within a pod, between pods.
fn flows(name: &str, bytes: u64) -> String {
    let rows: Vec<_> = (0..16).flat_map(|src| [1, 2, 5].map(|hop| (src, (src + hop) % 16, bytes, 0))).collect();
    table(name, &rows)
}

/// Every cable and every switch in turn, at a moment when all flows are under way; with each router and transport.
fn all_failures(event: &str) -> impl Iterator<Item = (String, Plan)> {
    let links = fabric_links();
    let fits = |what: &str, list: &str| list.is_empty() || list.split(' ').any(|one| what.contains(one));
    let kinds =
        ROUTERS.iter().flat_map(|r| SYSTEMS.map(|s| (r, s.0))).filter(move |(r, s)| fits(s, r.1) && fits("'fat_tree'", r.2));
    kinds.flat_map(move |(router, transport)| {
        let flows = flows(&format!("all-{transport}"), 30_000);
        let system = format!("{}router = {}\n", system(transport, "100pkt"), router.0);
        let text =
            format!("end = '300ms'\ntopology = 'fat_tree'\n{flows}{system}[failure]\nunreachable = 'run'\n[[event]]\n{event}\n");
        let switches = ["edge", "agg"].iter().flat_map(|tier| (0..8).map(move |i| format!("'{tier}{}_{}'", i / 2, i % 2)));
        let nodes: Vec<String> = switches.chain((0..4).map(|i| format!("'core{i}'"))).collect();
        [("link", links.join(", ")), ("node", nodes.join(", "))]
            .map(|(key, targets)| (format!("{transport} with {}", router.0), plan(&format!("{text}{key} = [{targets}]\n"))))
    })
}

/// All cables of the fat tree, as a scenario names them.
fn fabric_links() -> Vec<String> {
    let half = |n: u32| (0..n).flat_map(|a| (0..2).map(move |b| (a, b)));
    let hosts = (0..16).map(|h| format!("'h{h}--edge{}_{}'", h / 4, h / 2 % 2));
    let pods = half(8).map(|(i, agg)| format!("'edge{}_{}--agg{}_{agg}'", i / 2, i % 2, i / 2));
    let cores = half(8).map(|(i, core)| format!("'agg{}_{}--core{}'", i / 2, i % 2, 2 * (i % 2) + core));
    hosts.chain(pods).chain(cores).collect()
}

/// Whether a flow's hosts stay connected: the dead target is neither their switch nor their cable.
fn connected(point: &Point, outcome: &Outcome, flow: usize) -> bool {
    let target = &point.swept[0].1;
    let flow = &outcome.flows[flow];
    let touches = |host: u32| target.starts_with(&format!("h{host}--")) || *target == format!("edge{}_{}", host / 4, host / 2 % 2);
    !touches(flow.src) && !touches(flow.dst)
}

#[test]
fn what_stays_connected_finishes_after_any_single_failure() {
    let mut lost = 0;
    for (name, plan) in all_failures("at = '150us'") {
        assert!([20, 48].contains(&plan.points.len()));
        for point in &plan.points {
            let outcome = run_point(point);
            lost += outcome.counters.lost_packets;
            let mut whole = true;
            for (i, flow) in outcome.flows.iter().enumerate() {
                let connected = connected(point, &outcome, i);
                whole &= connected;
                assert!(!connected || flow.finish_ps.is_some(), "{name} without {}: flow {i} is unfinished", point.swept[0].1);
            }
            assert!(!whole || outcome.stop_reason == StopReason::Finished, "{name} without {}: no end", point.swept[0].1);
            assert_eq!(outcome.flows.len(), 48, "no flow is lost from the tables");
        }
    }
    assert!(lost > 1000, "{lost}");
}

/// Down from the start: routes know, so that nothing that has a path loses a packet; and nothing is ever sent over what is dead.
#[test]
fn what_is_down_from_the_start_is_avoided() {
    for (name, plan) in all_failures("at = '0s'") {
        for point in &plan.points {
            let outcome = run_point(point);
            for (i, flow) in outcome.flows.iter().enumerate() {
                let connected = connected(point, &outcome, i);
                let fine = if connected { flow.finish_ps.is_some() && flow.lost_link == 0 } else { flow.finish_ps.is_none() };
                assert!(fine, "{name} without {}: {flow:?}", point.swept[0].1);
            }
            let ends: Vec<&str> = point.swept[0].1.split("--").collect();
            let dead = |port: &str| port.split("->").filter(|end| ends.contains(end)).count() == ends.len();
            for port in outcome.ports.iter().filter(|port| dead(&port.name)) {
                assert_eq!((port.tx_packets, port.busy_ps), (0, 0), "{name}: {port:?}");
            }
        }
    }
}

/// A cable that comes up again is used again.
#[test]
fn all_finish_when_the_failure_ends() {
    for (name, plan) in all_failures("at = '150us'\nuntil = '3ms'") {
        for point in &plan.points {
            let outcome = run_point(point);
            assert_eq!(outcome.stop_reason, StopReason::Finished, "{name} without {} for a while", point.swept[0].1);
        }
    }
}

/// A long flow from h0 to h15 with an event.
fn lone(event: &str) -> Outcome {
    let flow = table("lone", &[(0, 15, 2_000_000, 0)]);
    run(&format!(
        "end = '10s'\n[topology]\nkind = 'fat_tree'\n{flow}{}[sample]\ninterval = '100us'\nflows = true\npackets = true\n{event}",
        system("newreno", "100pkt")
    ))
}

/// The ports that a lone flow's data used from some time on, in the order of their first use.
fn used(outcome: &Outcome, from_ps: u64) -> Vec<&str> {
    let mut names = Vec::new();
    for packet in outcome.packets.iter().filter(|p| p.kind == "data" && p.time_ps >= from_ps && !p.dropped) {
        let name = outcome.ports[packet.port_id as usize].name.as_str();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

#[test]
fn a_switch_that_knows_goes_around_its_dead_port_at_once_and_others_after_convergence() {
    let healthy = lone("");
    let path = used(&healthy, 0);
    assert_eq!((path.len(), healthy.counters.lost_packets), (6, 0));
    let (up, core) = (path[1].split("->").nth(1).unwrap(), path[2].split("->").nth(1).unwrap());

    // The cable above the first switch, seen at once: lost is what it carried, and what comes after goes over the other one.
    let dead = format!("[[event]]\nat = '5ms'\nlink = ['edge0_0', '{up}']\n[failure]\nconverge = '1s'\n");
    let outcome = lone(&dead);
    assert!((1..=3).contains(&outcome.counters.lost_packets), "{}", outcome.counters.lost_packets);
    let after = used(&outcome, 5_000_000_000);
    assert!(!after.contains(&path[1]) && after.len() >= 6, "{after:?}");
    assert_eq!(outcome.flows[0].timeouts, 0);

    // Seen after 2 ms: whatever leaves until then is lost.
    let outcome = lone(&format!("{dead}detect = '2ms'\n"));
    let port = outcome.ports.iter().find(|port| port.name == path[1]).unwrap();
    assert!(port.lost_link > 10 && port.lost_link <= outcome.counters.lost_packets, "{}", port.lost_link);
    assert!(outcome.flows[0].finish_ps.is_some());

    // A cable down from the core: the core has no other way, so its packets are lost until the routes have converged.
    let pod = path[3].split("->").nth(1).unwrap();
    let far =
        |converge: &str| lone(&format!("[[event]]\nat = '5ms'\nlink = ['{core}', '{pod}']\n[failure]\nconverge = '{converge}'\n"));
    let lost: Vec<u64> = ["0s", "1ms", "3ms"].iter().map(|converge| far(converge).counters.lost_packets).collect();
    assert!(lost[0] < lost[1] && lost[1] <= lost[2], "{lost:?}");
    assert!(lost[0] <= 4, "{lost:?}");
    let outcome = far("1ms");
    let after = used(&outcome, 6_000_000_000);
    assert!(!after.contains(&path[3]), "{after:?}");
    assert!(outcome.ports.iter().filter(|port| port.name != path[3]).all(|port| port.lost_link == 0 || port.name.starts_with(pod)));

    // Repaired: back to the old path after detection and convergence, not before.
    let outcome = lone(&format!("[[event]]\nat = '2ms'\nuntil = '6ms'\nlink = ['edge0_0', '{up}']\n[failure]\nconverge = '1ms'\n"));
    let crossed = |from: u64, to: u64| {
        let hit =
            |p: &&sim::outcome::PacketRow| p.time_ps >= from && p.time_ps < to && outcome.ports[p.port_id as usize].name == path[1];
        outcome.packets.iter().filter(hit).filter(|p| !p.dropped).count()
    };
    assert_eq!(crossed(2_000_000_000, 7_000_000_000), 0);
    assert!(crossed(7_000_000_000, u64::MAX) > 0);
}

/// The three places where a packet can be when its link dies, and the fourth: it comes later.
#[test]
fn what_a_dying_link_holds_is_lost_and_counted() {
    // 10 full packets leave h0 from 0 on, one each 12 us at 1 Gb/s; 10 us of wire. At 50 us: the first three have been delivered to
    // the switch (22, 34, 46 us), the fourth is on the wire, the fifth in transmission, two wait at the NIC (low water 3 KB).
    let rows = table("dying", &[(0, 1, 14_600, 0)]);
    let text = |at: &str| {
        format!(
            "end = '40ms'\n[topology]\nkind = 'star'\nhosts = 2\nrate = '1Gbps'\ndelay = '10us'\n{rows}{}[[event]]\nnode = 'h0'\nat = '{at}'\n[failure]\nunreachable = 'run'\n[sample]\npackets = true\n",
            "[[system]]\ntransport = { kind = 'newreno', handshake = false, init_window = '10', min_rto = '200ms', init_rto = '1s' }\n"
        )
    };
    let outcome = run(&text("50us"));
    let port = |name: &str| outcome.ports.iter().find(|port| port.name == name).unwrap();
    let nic = port("h0->s0");
    assert_eq!((nic.tx_packets, nic.tx_bytes), (5, 7500));
    assert_eq!(nic.busy_ps, 50_000_000, "the fifth is cut short");
    // All that were handed to the NIC but for three; the rest of the window comes later and finds the link dead.
    assert_eq!(nic.lost_link, 7);
    assert_eq!(port("s0->h1").tx_packets, 3);
    // Of the acknowledgments one left before the routes had changed, and finds a dead port; the others find no route.
    assert_eq!((port("s0->h0").lost_link, port("s0->h0").tx_packets), (1, 0));
    assert_eq!((outcome.counters.lost_packets, outcome.flows[0].lost_link, outcome.flows[0].drops), (10, 10, 0));
    assert_eq!(outcome.flows[0].finish_ps, None);
    // A delivery that is due with the failure does not stand; one a picosecond before does.
    assert_eq!(run(&text("46us")).ports.iter().find(|p| p.name == "s0->h1").unwrap().tx_packets, 2);
    assert_eq!(run(&text("46000001ps")).ports.iter().find(|p| p.name == "s0->h1").unwrap().tx_packets, 3);
}

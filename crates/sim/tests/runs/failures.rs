//! Failures of links and switches: the packets lost, the new paths, and that all flows finish if their hosts stay
//! connected.

use crate::common::{fits, kinds, label, plan, run, run_point, sized, system, system_of, table, with};
use base::LinkId;
use scenario::{Plan, Point, SLOTS};
use sim::outcome::{Outcome, StopReason};
use std::collections::BTreeSet;

/// Flows in all directions on a k = 4 fat tree: within a rack, within a pod, between pods.
fn flows(name: &str, bytes: u64) -> String {
    let rows: Vec<_> = (0..16).flat_map(|src| [1, 2, 5].map(|hop| (src, (src + hop) % 16, bytes, 0))).collect();
    table(name, &rows)
}

/// Every cable and every switch fails in turn while all flows are active, with each router and transport, and in the system around each
/// entry of the other slots.
fn all_failures(event: &str) -> impl Iterator<Item = (String, Plan)> {
    let links = fabric_links();
    let rest = format!("end = '300ms'\ntopology = 'fat_tree'\n{}", flows("all", 30_000));
    let routed = kinds("transport").into_iter().flat_map(|transport| {
        let plain = system_of("transport", transport, "100pkt");
        kinds("router")
            .into_iter()
            .map(move |router| with(&plain, "router", router, "100pkt").set("label", &format!("{transport}, {router}")))
    });
    let others = SLOTS.iter().filter(|slot| !["transport", "router"].contains(&slot.name));
    let others = others.flat_map(|slot| kinds(slot.name).into_iter().map(|kind| system_of(slot.name, kind, "100pkt")));
    let systems: Vec<_> = routed.filter(|system| fits(&rest, system)).chain(others).collect();
    for router in kinds("router") {
        assert!(systems.iter().any(|system| system.get("router.kind") == Some(router)), "{router} is never tried");
    }
    systems.into_iter().flat_map(move |system| {
        let text = format!("{rest}{}[failure]\nunreachable = 'run'\n[[event]]\n{event}\n", system.toml());
        let switches = ["edge", "agg"].iter().flat_map(|tier| (0..8).map(move |i| format!("'{tier}{}_{}'", i / 2, i % 2)));
        let nodes: Vec<String> = switches.chain((0..4).map(|i| format!("'core{i}'"))).collect();
        [("link", links.join(", ")), ("node", nodes.join(", "))]
            .map(|(key, targets)| (label(&system).to_owned(), plan(&format!("{text}{key} = [{targets}]\n"))))
    })
}

/// The points of a plan that are tried: every twelfth point, with a different offset in each plan, so that each target fails
/// under a twelfth of the systems. `make slow` tries all points.
fn tried((number, plan): (usize, &Plan)) -> impl Iterator<Item = &Point> {
    let stride = sized(12, 1);
    plan.points.iter().skip(number / 2 % stride).step_by(stride)
}

/// All cables of the fat tree, by the names used in scenarios.
fn fabric_links() -> Vec<String> {
    let half = |n: u32| (0..n).flat_map(|a| (0..2).map(move |b| (a, b)));
    let hosts = (0..16).map(|h| format!("'h{h}--edge{}_{}'", h / 4, h / 2 % 2));
    let pods = half(8).map(|(i, agg)| format!("'edge{}_{}--agg{}_{agg}'", i / 2, i % 2, i / 2));
    let cores = half(8).map(|(i, core)| format!("'agg{}_{}--core{}'", i / 2, i % 2, 2 * (i % 2) + core));
    hosts.chain(pods).chain(cores).collect()
}

/// Whether the hosts of a flow stay connected: the dead target is neither a switch nor the cable of one of these hosts.
fn connected(point: &Point, outcome: &Outcome, flow: usize) -> bool {
    let target = &point.swept[0].1;
    let flow = &outcome.flows[flow];
    let touches = |host: u32| target.starts_with(&format!("h{host}--")) || *target == format!("edge{}_{}", host / 4, host / 2 % 2);
    !touches(flow.src) && !touches(flow.dst)
}

#[test]
fn flows_that_stay_connected_finish_after_any_single_failure() {
    let (mut lost, mut at_switches) = (0, 0);
    for (number, (name, plan)) in all_failures("at = '150us'").enumerate() {
        assert!([20, 48].contains(&plan.points.len()));
        for point in tried((number, &plan)) {
            let outcome = run_point(point);
            lost += outcome.counters.lost_packets;
            at_switches += lost_packets_are_conserved(&outcome);
            assert_eq!(outcome.untouched, [], "{name} without {}: all links have flows", point.swept[0].1);
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
    assert!(lost > 1000 && at_switches > 100, "{lost} {at_switches}");
}

/// The packets that flows and routers lost are those lost on links and at switches without a next hop. Returns the latter.
fn lost_packets_are_conserved(outcome: &Outcome) -> u64 {
    let on_links: u64 = outcome.ports.iter().map(|port| port.lost_link).sum();
    let at_switches: u64 = outcome.counters.no_next_hop.iter().map(|(_, packets)| packets).sum();
    let of_flows: u64 = outcome.flows.iter().map(|flow| flow.lost_link).sum();
    assert_eq!(of_flows + outcome.counters.lost_own_packets, on_links + at_switches);
    at_switches
}

/// A failure that no flow could notice is named, and it changes nothing.
#[test]
fn failures_that_touch_no_traffic_are_named() {
    let rows = table("untouched", &[(0, 1, 100_000, 0), (4, 7, 100_000, 0)]);
    let with =
        |event: &str| run(&format!("end = '40ms'\n[topology]\nkind = 'fat_tree'\n{rows}{}{event}", system("newreno", "100pkt")));
    let healthy = with("");
    let of = |at: &str, target: &str| {
        let outcome = with(&format!("[failure]\nunreachable = 'run'\n[[event]]\nat = '{at}'\n{target}\n"));
        assert!(outcome.untouched.is_empty() || outcome.flows == healthy.flows, "{at} {target}");
        outcome.untouched.into_iter().map(|failure| (failure.target, failure.from_ps, failure.until_ps)).collect::<Vec<_>>()
    };
    assert_eq!(healthy.untouched, []);
    let last = healthy.flows.iter().filter_map(|flow| flow.finish_ps).max().unwrap();
    assert!((100_000_000..10_000_000_000).contains(&last), "{last}");
    // The flow from h0 to h1 stays at its first switch, and the flow from h4 to h7 in its pod, where it has two paths.
    let cable = |a: &str, b: &str| format!("link = ['{a}', '{b}']");
    assert_eq!(of("50us", &cable("edge0_0", "agg0_0")), [("edge0_0--agg0_0".to_owned(), 50_000_000, None)]);
    assert_eq!(of("50us", &cable("agg1_0", "core0")), [("agg1_0--core0".to_owned(), 50_000_000, None)]);
    assert_eq!(of("50us", "node = 'agg2_1'\nuntil = '60us'"), [("agg2_1".to_owned(), 50_000_000, Some(60_000_000))]);
    for (a, b) in [("h0", "edge0_0"), ("edge1_0", "agg1_0"), ("edge1_0", "agg1_1"), ("edge1_1", "agg1_1")] {
        assert_eq!(of("50us", &cable(a, b)), [], "{a}--{b}");
    }
    // Before the flows begin nothing is open; a failure that stays until they begin is not before.
    let late = table("late", &[(0, 1, 10_000, 1_000_000_000)]);
    let early = |until: &str| {
        run(&format!(
            "end = '40ms'\n[topology]\nkind = 'fat_tree'\n{late}{}[[event]]\nat = '10us'\nuntil = '{until}'\nlink = ['h0', 'edge0_0']\n",
            system("newreno", "100pkt")
        ))
    };
    assert_eq!((early("20us").untouched.len(), early("2ms").untouched.len()), (1, 0));
}

/// Down from the start: routes avoid the target, so a flow with a path loses no packet, and no packet is sent over a dead link.
#[test]
fn targets_that_are_down_from_the_start_are_avoided() {
    for (number, (name, plan)) in all_failures("at = '0s'").enumerate() {
        for point in tried((number, &plan)) {
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
    for (number, (name, plan)) in all_failures("at = '150us'\nuntil = '3ms'").enumerate() {
        for point in tried((number, &plan)) {
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

/// The ports used by the data of a lone flow from a given time on, in the order of first use.
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

    // The cable above the first switch, detected at once: the packets on it are lost, and later packets take the other cable.
    let dead = format!("[[event]]\nat = '5ms'\nlink = ['edge0_0', '{up}']\n[failure]\nconverge = '1s'\n");
    let outcome = lone(&dead);
    assert!((1..=3).contains(&outcome.counters.lost_packets), "{}", outcome.counters.lost_packets);
    let after = used(&outcome, 5_000_000_000);
    assert!(!after.contains(&path[1]) && after.len() >= 6, "{after:?}");
    assert_eq!(outcome.flows[0].timeouts, 0);

    // Detected after 2 ms: all packets sent until then are lost.
    let outcome = lone(&format!("{dead}detect = '2ms'\n"));
    let port = outcome.ports.iter().find(|port| port.name == path[1]).unwrap();
    assert!(port.lost_link > 10 && port.lost_link <= outcome.counters.lost_packets, "{}", port.lost_link);
    assert!(outcome.flows[0].finish_ps.is_some());

    // A cable from the core downwards: the core has no other next hop, so packets are lost there until the routes have converged.
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

    // A repair: the flow returns to the old path after detection and convergence, not before.
    let outcome = lone(&format!("[[event]]\nat = '2ms'\nuntil = '6ms'\nlink = ['edge0_0', '{up}']\n[failure]\nconverge = '1ms'\n"));
    let crossed = |from: u64, to: u64| {
        let hit =
            |p: &&sim::outcome::PacketRow| p.time_ps >= from && p.time_ps < to && outcome.ports[p.port_id as usize].name == path[1];
        outcome.packets.iter().filter(hit).filter(|p| !p.dropped).count()
    };
    assert_eq!(crossed(2_000_000_000, 7_000_000_000), 0);
    assert!(crossed(7_000_000_000, u64::MAX) > 0);
}

/// The four cases of a packet when a link fails: waiting, in transmission, on the wire, or sent later.
#[test]
fn packets_on_a_link_that_fails_are_lost_and_counted() {
    // 10 full packets leave h0 from 0 on, one every 12 us at 1 Gb/s; the delay is 10 us. At 50 us the first three have been delivered to
    // the switch (22, 34, 46 us), the fourth is on the wire, the fifth in transmission, and two wait at the NIC (low water 3 KB).
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
    // All packets handed to the NIC except three are lost; the rest of the window is sent later into the dead link.
    assert_eq!(nic.lost_link, 7);
    assert_eq!(port("s0->h1").tx_packets, 3);
    // One ACK was sent before the routes changed and is lost at the dead port; the others have no route.
    assert_eq!((port("s0->h0").lost_link, port("s0->h0").tx_packets), (1, 0));
    assert_eq!((outcome.counters.lost_packets, outcome.flows[0].lost_link, outcome.flows[0].drops), (10, 10, 0));
    // Those are the other two of its three ACKs.
    assert_eq!(outcome.counters.no_next_hop, [("s0".to_owned(), 2)]);
    assert_eq!(outcome.flows[0].finish_ps, None);
    // A delivery due at the time of the failure does not take place; one due a picosecond before does.
    assert_eq!(run(&text("46us")).ports.iter().find(|p| p.name == "s0->h1").unwrap().tx_packets, 2);
    assert_eq!(run(&text("46000001ps")).ports.iter().find(|p| p.name == "s0->h1").unwrap().tx_packets, 3);
}

/// If a transport needs it, credits and ACKs of a flow cross exactly the cables of its data: with each cable dead from the
/// start, and half a millisecond after a cable dies, when the packets in flight have arrived.
#[test]
fn replies_cross_the_cables_of_the_data_after_any_single_failure() {
    let spread = |hosts: u32| (0..6).map(|i| (i * 2 % hosts, (i * 2 + 5) % hosts, 150_000, 0)).collect::<Vec<_>>();
    let leaves = (0..4).flat_map(|leaf| (0..3).map(move |spine| format!("'leaf{leaf}--spine{spine}'")));
    let hosts = (0..8).map(|host| format!("'h{host}--leaf{}'", host / 2));
    let clos = "[topology]\nkind = 'leaf_spine'\nleaves = 4\nspines = 3\nhosts_per_leaf = 2\nhost_rate = '1Gbps'\nspine_rate = '1Gbps'\ndelay = '10us'\n";
    let nets = [
        ("[topology]\nkind = 'fat_tree'\n", table("back-tree", &spread(16)), fabric_links()),
        (clos, table("back-clos", &spread(8)), hosts.chain(leaves).collect()),
    ];
    let needs = |name: &str| proto::transport::ROOM.entry(name).is_some_and(|entry| entry.meta.needs.reverse_path);
    for transport in kinds("transport").into_iter().filter(|name| needs(name)) {
        let mut seen = 0;
        for ((net, flows, links), at) in nets.iter().flat_map(|net| [(net, 0), (net, 300)]) {
            let plan = plan(&format!(
                "end = '300ms'\n{net}{flows}{}[sample]\npackets = true\nports = false\n[failure]\nunreachable = 'run'\nconverge = '0s'\n\
                 [[event]]\nat = '{at}us'\nlink = [{}]\n",
                system(transport, "100pkt"),
                links.join(", ")
            ));
            for point in &plan.points {
                let (net, outcome) = (&point.run.net, run_point(point));
                let settled = if at == 0 { 0 } else { (at + 500) * 1_000_000 };
                for flow in outcome.flows.iter().filter(|flow| flow.finish_ps.is_some()) {
                    let cables = |back: bool| {
                        let kinds: &[&str] = if back { &["credit", "ack"] } else { &["data"] };
                        let mine =
                            outcome.packets.iter().filter(|p| p.flow_id == flow.flow_id && p.time_ps >= settled && !p.dropped);
                        let ports = mine.filter(|p| kinds.contains(&p.kind)).map(|p| LinkId(p.port_id));
                        ports.map(|port| if back { net.link(port).reverse } else { port }).collect::<BTreeSet<_>>()
                    };
                    let data = cables(false);
                    assert!(
                        data.is_empty() || data == cables(true) && data.len() == usize::from(flow.hops),
                        "{transport}, flow {} without {} at {at} us: {data:?} and {:?}",
                        flow.flow_id,
                        point.swept[0].1,
                        cables(true)
                    );
                    seen += usize::from(!data.is_empty());
                }
            }
        }
        assert!(seen > 350, "{transport}: {seen}");
    }
}

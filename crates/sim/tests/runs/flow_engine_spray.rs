//! Sprayed flows in the flow engine, against closed forms and against the packet engine.

use crate::common::{run, table};
use base::Rng;
use sim::Outcome;

/// Application bytes over wire bytes of long flows.
const GOODPUT: f64 = 1460.0 / 1500.0;

const SPRAY: &str = "[[system]]\ntransport = 'newreno'\nrouter = 'spray'\n";

/// Leaves with hosts at 1 Gb/s, and spines.
fn leaf_spine(leaves: u32, spines: u32, hosts: u32, spine_rate: &str) -> String {
    format!(
        "[topology]\nkind = 'leaf_spine'\nleaves = {leaves}\nspines = {spines}\nhosts_per_leaf = {hosts}\nhost_rate = '1Gbps'\n\
         spine_rate = '{spine_rate}'\ndelay = '1us'\n"
    )
}

/// Permanent flows under the flow engine, measured from 10 to 20 ms.
fn permanent(name: &str, network: &str, pairs: &[(u32, u32)], system: &str) -> Outcome {
    let rows: Vec<_> = pairs.iter().map(|&(src, dst)| (src, dst, 1_000_000_000, 0)).collect();
    run(&format!(
        "engine = 'flow'\nend = '20ms'\n[measure]\nflows = 'all'\nfrom = '10ms'\nuntil = '20ms'\n{network}{}{system}",
        table(name, &rows)
    ))
}

/// The rate of each flow in the window, in Gb/s on the wire.
fn rates(outcome: &Outcome) -> Vec<f64> {
    let bytes = |flow: &sim::outcome::FlowRow| flow.window_delivered_bytes.expect("the window was measured") as f64;
    outcome.flows.iter().map(|flow| bytes(flow) * 8.0 / 1e7 / GOODPUT).collect()
}

/// The share of the window in which a link was busy.
fn busy(outcome: &Outcome, link: &str) -> f64 {
    let port = outcome.ports.iter().find(|port| port.name == link).unwrap_or_else(|| panic!("no port is called {link}"));
    port.window_busy_ps.expect("the window was measured") as f64 / 1e10
}

#[track_caller]
fn assert_near(found: &[f64], expected: &[f64]) {
    let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-5;
    assert!(found.len() == expected.len() && found.iter().zip(expected).all(near), "{found:?} are not {expected:?}");
}

/// One flow per pair of hosts of two leaves: the spines share the load equally, and flows have the rate of a NIC or their share of the uplinks.
#[test]
fn spines_carry_equal_parts_of_all_flows() {
    for (spines, hosts, gbps) in [(4, 4, "1"), (4, 3, "0.5"), (3, 4, "1"), (2, 6, "1"), (7, 5, "0.1")] {
        let capacity: f64 = gbps.parse().unwrap();
        let pairs: Vec<_> = (0..hosts).map(|host| (host, hosts + host)).collect();
        let name = format!("spray_spines_{spines}_{hosts}");
        let outcome = permanent(&name, &leaf_spine(2, spines, hosts, &format!("{gbps}Gbps")), &pairs, SPRAY);
        let rate = (f64::from(spines) * capacity / f64::from(hosts)).min(1.0);
        assert_near(&rates(&outcome), &vec![rate; hosts as usize]);
        let load = rate * f64::from(hosts) / f64::from(spines) / capacity;
        for (from, to) in (0..spines).map(|i| (format!("leaf0->spine{i}"), format!("spine{i}->leaf1"))) {
            assert_near(&[busy(&outcome, &from), busy(&outcome, &to)], &[load; 2]);
        }
        assert_near(&[busy(&outcome, "leaf1->spine0")], &[0.0]);
    }
}

/// Whatever the permutation, a fat tree without oversubscription carries all flows at the rate of their NICs, on equally loaded links.
#[test]
fn a_permutation_on_a_fat_tree_has_the_full_rate() {
    let tree = "[topology]\nkind = 'fat_tree'\nk = 4\nrate = '1Gbps'\ndelay = '1us'\n";
    let mut rng = Rng::stream(5, "spray/permutation", &[]);
    for case in 0..5 {
        // Hosts in a circle in a random order; each host sends to the next.
        let mut order: Vec<u32> = (0..16).collect();
        (1..16).for_each(|i| order.swap(i, rng.below(i as u64 + 1) as usize));
        let mut pairs: Vec<_> = (0..16).map(|i| (order[i], order[(i + 1) % 16])).collect();
        pairs.sort_unstable();
        let name = format!("spray_permutation_{case}");
        assert_near(&rates(&permanent(&name, tree, &pairs, SPRAY)), &[1.0; 16]);
        let ecmp = permanent(&name, tree, &pairs, "[[system]]\ntransport = 'newreno'\n");
        assert!(rates(&ecmp).iter().any(|rate| *rate < 0.9), "{:?}", rates(&ecmp));
    }
}

/// A cable to leaf 1 is dead: flows to that leaf take the other spine, and share the uplink with halves of the flows to leaf 2.
#[test]
fn a_dead_link_changes_the_shares_of_all_flows_that_could_take_it() {
    let network = |event: &str| format!("{}{event}", leaf_spine(3, 2, 3, "1Gbps"));
    let pairs = [(0, 3), (1, 6), (4, 2)];
    let dead = permanent("spray_dead", &network("[[event]]\nlink = 'leaf1--spine0'\nat = '1ms'\n"), &pairs, SPRAY);
    // With rates a and b of the first two, a + b / 2 = 1. The third goes from leaf 1 to leaf 0 over one spine.
    assert_near(&rates(&dead), &[2.0 / 3.0, 2.0 / 3.0, 1.0]);
    let links = ["leaf0->spine0", "leaf0->spine1", "spine0->leaf1", "spine1->leaf1", "spine0->leaf2", "spine1->leaf2"];
    assert_near(&links.map(|link| busy(&dead, link)), &[1.0 / 3.0, 1.0, 0.0, 2.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0]);
    assert_near(&["leaf1->spine0", "leaf1->spine1", "spine1->leaf0"].map(|link| busy(&dead, link)), &[0.0, 1.0, 1.0]);
    // The link comes back before the window.
    let back = permanent(
        "spray_back",
        &network("[[event]]\nlink = 'leaf1--spine0'\nat = '1ms'\nuntil = '4ms'\n[failure]\ndetect = '1ms'\nconverge = '1ms'\n"),
        &pairs,
        SPRAY,
    );
    assert_near(&rates(&back), &[1.0; 3]);
    assert_near(&links.map(|link| busy(&back, link)), &[1.0, 1.0, 0.5, 0.5, 0.5, 0.5]);
}

/// A flow that would lose a part of its packets has no rate until no switch sends packets to a switch without a
/// next hop.
#[test]
fn a_sprayed_flow_waits_until_the_network_knows_of_a_dead_link() {
    let took = |event: &str| {
        let flows = table("spray_waits", &[(0, 3, 1_250_000, 0)]);
        let outcome =
            run(&format!("engine = 'flow'\n{}{flows}{SPRAY}[measure]\nflows = 'all'\n{event}", leaf_spine(3, 2, 3, "1Gbps")));
        outcome.flows[0].fct_ps().expect("finished") as f64 / 1e9
    };
    let event = |at: &str| format!("[[event]]\nlink = '{at}'\nat = '2ms'\n[failure]\ndetect = '500us'\nconverge = '250us'\n");
    let alone = took("");
    // Leaf 0 knows its own port after `detect`, and that spine 0 has no way to leaf 1 only after `converge`.
    let late = [event("leaf0--spine0"), event("leaf1--spine0"), event("leaf2--spine0")].map(|event| took(&event) - alone);
    let near = late.iter().zip([0.5, 0.75, 0.0]).all(|(a, b)| (a - b).abs() < 1e-6);
    assert!(near, "{late:?}");
}

/// A lone flow has the capacity of all its paths. This is more than the capacity of the ideal's single path if
/// paths are slower than the NIC; otherwise the flow takes the ideal time.
#[test]
fn a_lone_sprayed_flow_takes_all_paths() {
    let slowdown = |spines: u32, rate: &str| {
        let flows = table("spray_lone", &[(0, 1, 14_600_000, 3_000)]);
        let network = leaf_spine(2, spines, 1, rate);
        let outcome = run(&format!("engine = 'flow'\n{network}{flows}{SPRAY}[measure]\nflows = 'all'\n"));
        (outcome.flows[0].slowdown().expect("finished"), outcome)
    };
    let (equal, _) = slowdown(4, "1Gbps");
    assert!((equal - 1.0).abs() < 1e-9, "{equal}");
    let (faster, outcome) = slowdown(4, "0.2Gbps");
    assert!((faster - 0.25).abs() < 1e-3, "{faster}");
    // Each spine has carried a quarter of the bytes.
    let wire = outcome.flows[0].size_wire_bytes;
    let quarters =
        outcome.ports.iter().filter(|port| port.name.starts_with("leaf0->spine") && port.tx_bytes.abs_diff(wire / 4) <= 1);
    assert_eq!(quarters.count(), 4);
}

/// Every event of a run with failures in a fat tree leaves a valid state, and the run is a function of plan and seed.
#[test]
fn sprayed_flows_finish_whatever_fails() {
    let text = "engine = 'flow'\nend = '30s'\nseed = 3\n[topology]\nkind = 'fat_tree'\nk = 4\nrate = '1Gbps'\n[workload.all]\nkind = 'poisson'\nload = 0.6\n\
                flows = 400\nsize = 'cdf'\ncdf = 'websearch'\n[measure]\nflows = 'all'\n[[event]]\nrandom = { probability = 0.2 }\nat = '5ms'\n\
                until = '40ms'\n[[event]]\nnode = 'core1'\nat = '50ms'\n[failure]\nunreachable = 'run'\n";
    let [one, other] = [(); 2].map(|()| run(&format!("{text}{SPRAY}")));
    assert_eq!(one, other);
    assert!(one.flows.iter().all(|flow| flow.finish_ps.is_some()));
    // The packets of a flow all cross as many links.
    let sent: u64 = one.flows.iter().map(|flow| flow.size_wire_bytes * u64::from(flow.hops)).sum();
    let carried: u64 = one.ports.iter().map(|port| port.tx_bytes).sum();
    let cut = one.ports.len() as u64 + 1;
    assert!(carried + cut > sent, "{sent} and {carried}");
    assert!(one.ports.iter().all(|port| port.window_busy_ps.unwrap() <= port.busy_ps));
}

/// Long flows from leaf 0 to other leaves over few spines, sprayed in turn so that TCP sees little reordering: mean FCT by both engines.
#[test]
fn mean_completion_times_are_those_of_packets() {
    let mut errors = Vec::new();
    for (case, dead) in [(0, false), (1, false), (2, false), (3, true), (4, true)] {
        let rng = &mut Rng::stream(11, "spray/packets", &[case]);
        let flows: Vec<_> =
            (0..8).map(|src| (src, 8 + src, 10_000_000 + rng.below(10_000_000), rng.below(1_000_000_000))).collect();
        let event = if dead { "[[event]]\nlink = 'leaf1--spine0'\nat = '0s'\n" } else { "" };
        let rest = format!(
            "{}{event}{}[measure]\nflows = 'all'\n[[system]]\ntransport = 'newreno'\nqdisc = {{ kind = 'droptail', limit = '200pkt' }}\n\
             router = {{ kind = 'spray', mode = 'round_robin' }}\n",
            leaf_spine(2, 4, 8, "1Gbps").replace("delay = '1us'", "delay = '5us'"),
            table(&format!("spray_packets_{case}"), &flows)
        );
        let [packets, fluids] = ["packet", "flow"].map(|engine| run(&format!("seed = {case}\nengine = '{engine}'\n{rest}")));
        let mean = |outcome: &Outcome| outcome.flows.iter().map(|flow| flow.fct_ps().expect("finished") as f64).sum::<f64>() / 8.0;
        let error = mean(&fluids) / mean(&packets) - 1.0;
        println!("case {case}: {:.1} ms by packets, {:+.2} % by fluids", mean(&packets) / 1e9, 100.0 * error);
        errors.push(error);
    }
    assert!(errors.iter().all(|error| error.abs() < 0.06), "{errors:?}");
}

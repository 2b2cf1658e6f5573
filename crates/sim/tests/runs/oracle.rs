//! The engine, by its tree and in windows, against the slow oracle: the same world, the same results.

use crate::common::{
    all_systems, assert_equal, eager_ring, fuzz_numbers, kinds, plan, random_scenario, run, sized, system, system_of, systems_with,
    table, with,
};
use crate::reference::Reference;
use scenario::{Options, Plan, Point};
use sim::{Carried, Continue, EventOrder, Outcome};

/// Returns the outcomes of the engine and of the oracle, without the count of events, which differs by design. Asserts that the
/// engine has the same outcome in windows, events included.
fn both(point: &Point) -> [Outcome; 2] {
    let fast = sim::run(&point.run, &mut |_| Continue::Yes).unwrap();
    if point.run.ideal.is_none() && !point.run.engine.is_flow() {
        let [tree, windows] =
            [EventOrder::Tree, EventOrder::Windows].map(|order| sim::run_in(order, &point.run, &mut |_| Continue::Yes).unwrap());
        assert_equal(&tree, &windows, &format!("{} in windows", point.id));
        assert_eq!((tree.order, tree.not_windows), (Some(EventOrder::Tree), None));
        match windows.not_windows {
            None => assert_eq!(windows.order, Some(EventOrder::Windows)),
            Some(why) => assert!(windows.order == Some(EventOrder::Tree) && why.reason().is_some()),
        }
    }
    let slow = sim::run_on::<Reference<Carried>>(&point.run, &mut |_| Continue::Yes).unwrap();
    [fast, slow].map(|mut outcome| {
        outcome.counters.events = 0;
        outcome
    })
}

fn assert_same(text: &str) {
    assert_same_plan(&plan(text), text);
}

fn assert_same_plan(plan: &Plan, text: &str) {
    for point in &plan.points {
        let [fast, slow] = both(point);
        for (a, b) in fast.flows.iter().zip(&slow.flows) {
            assert_eq!(a, b, "{} in\n{text}", point.id);
        }
        for (a, b) in fast.ports.iter().zip(&slow.ports) {
            // The engine multiplies once; the oracle rounds every packet up to a picosecond.
            assert!(a.busy_ps.abs_diff(b.busy_ps) <= a.tx_packets + 1, "{} in\n{text}\n{a:?}\n{b:?}", point.id);
            let window = [a, b].map(|port| port.window_busy_ps.unwrap_or(0));
            assert!(window[0].abs_diff(window[1]) <= a.tx_packets + 1, "{} in\n{text}\n{a:?}\n{b:?}", point.id);
            assert_eq!(a.window_busy_ps.is_some(), b.window_busy_ps.is_some());
            let b = sim::outcome::PortRow { busy_ps: a.busy_ps, window_busy_ps: a.window_busy_ps, ..b.clone() };
            assert_eq!(*a, b, "{} in\n{text}", point.id);
        }
        assert_eq!(fast.counters, slow.counters, "{} in\n{text}", point.id);
        assert_eq!(fast.samples, slow.samples, "{}", point.id);
        assert_eq!(fast.packets, slow.packets, "{}", point.id);
    }
}

/// A large network that is busy at first, for which windows are chosen, and nearly idle later, when the tree goes on.
#[test]
#[ignore = "run by make slow: a large network"]
fn a_run_that_leaves_windows_is_the_same() {
    let flows = |name: &str, start: &str, flows: u32, load: f64| {
        format!(
            "[workload.{name}]\nkind = 'poisson'\nstart = '{start}'\nflows = {flows}\nload = {load}\nsize = 'exponential'\nmean = '100KB'\n"
        )
    };
    let (busy, idle) = (flows("busy", "0us", 8000, 0.5), flows("idle", "1ms", 2000, 0.001));
    let text = format!(
        "[topology]\nkind = 'fat_tree'\nk = 24\nrate = '10Gbps'\ndelay = '1us'\n{busy}{idle}{}",
        system("newreno", "100pkt")
    );
    let run = &plan(&text).points[0].run;
    let [auto, tree, windows] = [EventOrder::Auto, EventOrder::Tree, EventOrder::Windows]
        .map(|order| sim::run_in(order, run, &mut |_| Continue::Yes).unwrap());
    assert_eq!([auto.order, tree.order].map(Option::unwrap), [EventOrder::Windows, EventOrder::Tree]);
    assert_equal(&tree, &auto, "with windows while they are faster");
    assert_equal(&tree, &windows, "in windows");
}

#[test]
fn flows_that_wait_for_joins_are_the_same() {
    for name in ["newreno", "dctcp", "ndp"] {
        let text = format!(
            "[topology]\nkind = 'fat_tree'\nk = 4\nrate = '10Gbps'\ndelay = '1us'\n{}[workload.web]\nkind = 'poisson'\nload = 0.5\nflows = 50\n\
             size = 'fixed'\nmean = '20KB'\n{}",
            eager_ring(12, 8),
            system(name, "100pkt")
        );
        assert!(!plan(&text).points[0].run.traffic().unwrap().joins.is_empty());
        assert_same(&text);
    }
}

/// All flows start at the same time with equal sizes, so that there are many ties.
#[test]
fn ties_fall_the_same_way() {
    let rows: Vec<_> = (0..9).flat_map(|src| (1..4).map(move |hop| (src, (src + hop) % 9, 14_600 * u64::from(hop), 0))).collect();
    for name in kinds("transport") {
        for limit in ["3pkt", "100pkt", "20KB"] {
            let flows = table(&format!("ties-{name}-{limit}"), &rows);
            assert_same(&format!("end = '1s'\n[topology]\nkind = 'single_tree'\n{flows}{}", system(name, limit)));
        }
    }
}

/// The same ties with every discipline at the ports, under every transport that can have it, and with every other part.
#[test]
fn every_part_is_the_same_under_ties() {
    let rows: Vec<_> = (0..9).flat_map(|src| (1..4).map(move |hop| (src, (src + hop) % 9, 14_600 * u64::from(hop), 0))).collect();
    let rest = format!("end = '1s'\n[topology]\nkind = 'single_tree'\n{}", table("ties-at-parts", &rows));
    for limit in ["3pkt", "100pkt", "20KB"] {
        for system in systems_with("qdisc", limit, &rest).into_iter().chain(all_systems(limit)) {
            assert_same(&format!("{rest}{}", system.toml()));
        }
    }
}

/// The scenarios of the benchmark, cut short: links are busy, queues are long, packets are dropped and timers expire.
#[test]
fn the_benchmarks_are_the_same() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench");
    for (name, set) in [
        ("newreno", "topology.k=4 end=6ms"),
        ("dctcp", "topology.k=4 end=1ms"),
        ("strict", "topology.k=4 end=6ms"),
        ("pfabric", "workload.web.flows=60"),
        ("merp", "workload.web.flows=200"),
    ] {
        let text = std::fs::read_to_string(folder.join(name).with_extension("toml")).unwrap();
        let pair = |s: &str| s.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
        let options = Options { set: set.split(' ').filter_map(pair).collect(), ..Options::default() };
        let plan = scenario::load(&text, name, &folder, &options).unwrap_or_else(|e| panic!("{e}"));
        assert_same_plan(&plan, name);
    }
}

#[test]
fn hosts_with_several_nics_are_the_same() {
    let rows: Vec<_> = (0..8).flat_map(|src| (1..4).map(move |hop| (src, (src + hop) % 8, 14_600 * u64::from(hop), 0))).collect();
    let rest = format!(
        "end = '1s'\n[topology]\nkind = 'rail'\npods = 2\nservers = 4\nnics = 2\nspines = 2\nspine_cables = 1\nnic_rate = '10Gbps'\n{}",
        table("ties-nics", &rows)
    );
    for slot in ["router", "policy", "buffer"] {
        for system in systems_with(slot, "20pkt", &rest) {
            assert_same(&format!("{rest}{}", system.toml()));
        }
    }
}

#[test]
fn series_and_traces_are_the_same() {
    let flows = sized(10, 60);
    let rest = format!(
        "[topology]\nkind = 'fat_tree'\nk = 4\n[workload.web]\nkind = 'poisson'\nflows = {flows}\nload = 0.8\nsize = 'exponential'\nmean = '20KB'\n[measure]\nflows = 'all'\n[sample]\ninterval = '50us'\nports = true\nflows = true\npackets = true\n"
    );
    for slot in ["router", "policy", "controller"] {
        // `make slow` tries all.
        for system in systems_with(slot, "10pkt", &rest).into_iter().step_by(sized(2, 1)) {
            assert_same(&format!("{rest}{}", system.toml()));
        }
    }
}

#[test]
fn random_scenarios_are_the_same() {
    for n in fuzz_numbers(30) {
        assert_same(&random_scenario(n).0);
    }
}

/// Packets start at multiples of 1.2 us, and so do the looks of the controller: a packet that starts at that time still waits.
#[test]
fn a_controller_that_looks_at_the_start_of_service_is_the_same() {
    let rows: Vec<_> = (0..16).flat_map(|src| (1..4).map(move |hop| (src, (src + 5 * hop) % 16, 146_000, 0))).collect();
    let rest =
        format!("[topology]\nkind = 'fat_tree'\nk = 4\nrate = '10Gbps'\ndelay = '1.2us'\n{}", table("looks-at-starts", &rows));
    let system = with(&system_of("transport", "newreno", "100pkt"), "controller", "rebalance period=24us latency=7us", "100pkt");
    assert_same(&format!("{rest}{}", system.set("transport.handshake", "false").toml()));
}

/// Packets start at multiples of 1.2 us, and so do samples: a packet that starts at the time of a sample still waits.
#[test]
fn samples_at_the_start_of_service_are_the_same() {
    let rows: Vec<_> = (1..4).map(|src| (src, 0, 146_000, 0)).collect();
    let rest = format!(
        "[topology]\nkind = 'star'\nhosts = 4\nrate = '10Gbps'\ndelay = '1.2us'\n{}[sample]\ninterval = '1.2us'\nports = true\n",
        table("samples-at-starts", &rows)
    );
    for qdisc in ["droptail", "strict"] {
        let system = with(&system_of("transport", "newreno", "100pkt"), "qdisc", qdisc, "100pkt");
        let text = format!("{rest}{}", system.set("transport.handshake", "false").toml());
        assert_same(&text);
        // Two packets arrive at once: one starts, and the other waits until it has left.
        let samples = run(&text).samples;
        assert!(samples.iter().any(|row| row.metric == "port.queue_bytes" && row.value >= 3000.0), "{qdisc}");
    }
}

//! One run on several threads against the same run on one.

mod common;

use base::Rng;
use common::{all_systems, fuzz_count, kinds, plan, random_scenario, system, systems_with, table};
use scenario::{Options, Plan, Point};
use sim::cut::{Cut, Uncut};
use sim::{Continue, Outcome, Threads};
use std::ops::Add as _;
use std::sync::Arc;

fn assert_equal(one: &Outcome, many: &Outcome, what: &str) {
    for (a, b) in one.flows.iter().zip(&many.flows) {
        assert_eq!(a, b, "{what}");
    }
    for (a, b) in one.ports.iter().zip(&many.ports) {
        assert_eq!(a, b, "{what}");
    }
    assert_eq!(one.counters, many.counters, "{what}");
    assert_eq!(one.samples, many.samples, "{what}");
    assert_eq!(one.packets, many.packets, "{what}");
    assert_eq!((one.complete, one.stop_reason), (many.complete, many.stop_reason), "{what}");
}

/// A cut, on so many threads, against one thread.
fn assert_same_in(point: &Point, cut: Cut, threads: usize, text: &str) {
    let parts = cut.crossing.len();
    let one = sim::run(&point.run, &mut |_| Continue::Yes).unwrap();
    let many = sim::run_cut(&point.run, &Arc::new(cut), threads, &mut |_| Continue::Yes).unwrap();
    assert_equal(&one, &many, &format!("{} in {parts} parts on {threads} threads in\n{text}", point.id));
}

/// Parts and threads. Two threads wait for each other, more would wait longer: tests run beside others, and cores are few.
const WAYS: [(usize, usize); 3] = [(2, 2), (3, 1), (7, 1)];

fn assert_same_plan(plan: &Plan, ways: &[(usize, usize)], text: &str) {
    for point in &plan.points {
        for &(parts, threads) in ways {
            if let Ok(cut) = Cut::choose(&point.run, Threads::Exactly(parts)) {
                assert_same_in(point, cut, threads, text);
            }
        }
    }
}

fn assert_same(text: &str, ways: &[(usize, usize)]) {
    assert_same_plan(&plan(text), ways, text);
}

/// The scenarios of the benchmark, cut short.
#[test]
fn the_benchmarks_are_the_same() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench");
    for (name, set) in [
        ("newreno", "topology.k=4 end=6ms"),
        ("newreno", "topology.k=8 end=1ms"),
        ("dctcp", "topology.k=4 end=1ms"),
        ("strict", "topology.k=4 end=6ms"),
        ("pfabric", "workload.web.flows=60"),
        ("merp", "workload.web.flows=200"),
        ("ssp", "workload.web.flows=60"),
        ("homa", "workload.web.flows=60"),
        ("ndp", "workload.web.flows=60"),
    ] {
        let text = std::fs::read_to_string(folder.join(name).with_extension("toml")).unwrap();
        let pair = |s: &str| s.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
        let options = Options { set: set.split(' ').filter_map(pair).collect(), ..Options::default() };
        let plan = scenario::load(&text, name, &folder, &options).unwrap_or_else(|e| panic!("{e}"));
        assert_same_plan(&plan, &WAYS, name);
    }
}

/// All flows start at the same time with equal sizes, so that there are many ties.
#[test]
fn ties_fall_the_same_way() {
    let rows: Vec<_> = (0..9).flat_map(|src| (1..4).map(move |hop| (src, (src + hop) % 9, 14_600 * u64::from(hop), 0))).collect();
    for name in kinds("transport") {
        for limit in ["3pkt", "100pkt", "20KB"] {
            let flows = table(&format!("cut-ties-{name}-{limit}"), &rows);
            assert_same(&format!("end = '1s'\n[topology]\nkind = 'single_tree'\n{flows}{}", system(name, limit)), &WAYS);
        }
    }
}

/// The same ties with every discipline at the ports, under every transport that can have it, and with every other part.
#[test]
fn every_part_is_the_same_under_ties() {
    let rows: Vec<_> = (0..9).flat_map(|src| (1..4).map(move |hop| (src, (src + hop) % 9, 14_600 * u64::from(hop), 0))).collect();
    let rest = format!("end = '1s'\n[topology]\nkind = 'single_tree'\n{}", table("cut-ties-at-parts", &rows));
    for limit in ["3pkt", "100pkt", "20KB"] {
        for system in systems_with("qdisc", limit, &rest).into_iter().chain(all_systems(limit)) {
            assert_same(&format!("{rest}{}", system.toml()), &WAYS[1..2]);
        }
    }
}

#[test]
fn series_and_traces_are_the_same() {
    let rest = "[topology]\nkind = 'fat_tree'\nk = 4\n[workload.web]\nkind = 'poisson'\nflows = 60\nload = 0.8\nsize = 'exponential'\nmean = '20KB'\n[sample]\ninterval = '50us'\nports = true\nflows = true\npackets = true\n";
    for slot in ["router", "policy", "controller"] {
        for system in systems_with(slot, "10pkt", rest) {
            assert_same(&format!("{rest}{}", system.toml()), &WAYS[..1]);
        }
    }
}

/// In pods and racks, and in parts that no one would choose: each node wherever.
#[test]
fn random_scenarios_are_the_same() {
    for n in 0..fuzz_count(200) {
        let (text, _) = random_scenario(n);
        let (mut rng, (parts, threads)) = (Rng::stream(n, "cut", &[]), WAYS[n as usize / 2 % WAYS.len()]);
        for point in &plan(&text).points {
            let chosen = Cut::choose(&point.run, Threads::Exactly(parts));
            let net = &point.run.net;
            // What no cut can run, no random one can.
            let cut = match chosen {
                Ok(_) if n % 2 == 1 => Cut::of(net, net.nodes().iter().map(|_| rng.below(parts as u64) as u8).collect()),
                chosen => chosen.ok(),
            };
            if let Some(cut) = cut {
                assert_same_in(point, cut, threads, &text);
            }
        }
    }
}

#[test]
fn one_thread_runs_what_cannot_be_cut_and_says_why() {
    let flows = |kind: &str, flows: &str| {
        format!(
            "end = '5ms'\n[topology]\n{kind}\n[workload.web]\nkind = 'poisson'\n{flows}\nload = 0.3\nsize = 'fixed'\nmean = '30KB'\n"
        )
    };
    let (tree, few) = ("kind = 'fat_tree'\nk = 8", "flows = 50");
    let newreno = "[[system]]\nlabel = 'NewReno'\ntransport = 'newreno'\n";
    let runs = |text: &str, threads| {
        let outcome = sim::run_threads(&plan(text).points[0].run, threads, &mut |_| Continue::Yes).unwrap();
        (outcome.threads, outcome.uncut)
    };
    let large = flows(tree, few) + newreno;
    assert_eq!(runs(&large, Threads::Exactly(2)), (2, None));
    assert_eq!(runs(&large, Threads::Exactly(1)), (1, Some(Uncut::Asked)));
    let thin = large.replace("load = 0.3", "load = 0.001");
    assert_eq!(runs(&thin, Threads::UpTo(2)), (1, Some(Uncut::Small)), "a flow now and then");
    let many = large.replace("flows = 50", "flows = 3000");
    assert_eq!(runs(&many, Threads::UpTo(8)), (4, None), "32 hosts a thread");
    assert_eq!(runs(&many.replace("k = 8", "k = 4"), Threads::UpTo(8)), (1, Some(Uncut::Small)), "16 hosts");
    assert_eq!(runs(&flows("kind = 'star'\nhosts = 8", few).add(newreno), Threads::Exactly(2)), (1, Some(Uncut::Indivisible)));
    assert_eq!(runs(&format!("engine = 'flow'\n{large}"), Threads::Exactly(2)), (0, Some(Uncut::NoPackets)));
    let follows = "[[system]]\nlabel = 'PDQ'\ntransport = 'pdq'\nagent = 'pdq'\npolicy = 'dard'\nrouter = 'dard'\n";
    assert_eq!(runs(&(flows(tree, few) + follows), Threads::Exactly(2)), (1, Some(Uncut::Paths)));
}

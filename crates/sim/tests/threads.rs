//! Runs on several threads compared with the same runs on one thread.
//!
//! They are a program of their own: threads that wait for each other must not wait for other tests.

#[allow(dead_code, reason = "most of it serves `runs`")]
#[path = "runs/common.rs"]
mod common;

use crate::common::{
    all_systems, assert_equal, eager_ring, fuzz_count, fuzz_numbers, kinds, plan, random_scenario, sized, system, systems_with,
    table, table_of,
};
use base::Rng;
use scenario::{Options, Plan, Point};
use sim::cut::{Cut, Uncut};
use sim::{Continue, EventOrder, Threads};
use std::ops::Add as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};

/// A run on several threads locks it exclusively, runs on one thread share it: threads that wait for each other must not
/// wait for other tests.
static CORES: RwLock<()> = RwLock::new(());

/// Compares a run in the parts of a cut, on `threads` threads, with a run on one thread.
fn assert_same_in(point: &Point, cut: Cut, threads: usize, text: &str) {
    let parts = cut.crossing.len();
    let share = || CORES.read().unwrap_or_else(PoisonError::into_inner);
    let one = {
        let _shared = share();
        sim::run(&point.run, &mut |_| Continue::Yes).unwrap()
    };
    let cut = Arc::new(cut);
    // Both orders in `make slow`, else one of them.
    let orders = [EventOrder::Tree, EventOrder::Windows];
    let chosen = (point.id.len() + text.len() + parts) % 2;
    for &order in if fuzz_count(0) > 0 { &orders[..] } else { &orders[chosen..=chosen] } {
        let many = {
            let (_shared, _exclusive);
            if threads > 1 {
                _exclusive = CORES.write().unwrap_or_else(PoisonError::into_inner);
            } else {
                _shared = share();
            }
            sim::run_cut(&point.run, &cut, threads, order, &mut |_| Continue::Yes).unwrap()
        };
        assert!(many.uncut.is_some() || many.order == Some(order), "{:?}", many.order);
        assert_equal(&one, &many, &format!("{} in {parts} parts on {threads} threads, {order:?}, in\n{text}", point.id));
    }
}

/// Numbers of parts and threads. More than two threads would wait long for each other, since tests run in parallel and
/// there are few cores.
const WAYS: [(usize, usize); 3] = [(2, 2), (3, 1), (7, 1)];

/// The parts and threads for the `n`th of many scenarios: all parts in `make slow`, else one of them, with two threads for
/// every eighth scenario, since waiting for each other after each window takes most of the time of a test.
fn ways(n: usize) -> Vec<(usize, usize)> {
    let two = if n.is_multiple_of(8) { WAYS[0] } else { (2, 1) };
    match n {
        _ if fuzz_count(0) > 0 => vec![two, WAYS[1], WAYS[2]],
        n if n.is_multiple_of(8) => vec![two],
        n => vec![[two, WAYS[1], WAYS[2]][n % 3]],
    }
}

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

/// A scenario of a folder of the repository, with settings and profiles.
fn scenario_of(file: &Path, set: &str, profile: &str) -> Plan {
    let text = std::fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let pair = |s: &str| s.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
    let options =
        Options { set: set.split(' ').filter_map(pair).collect(), profiles: scenario::profiles(profile), ..Options::default() };
    let folder = file.parent().expect("a file is in a folder");
    scenario::load(&text, &file.display().to_string(), folder, &options).unwrap_or_else(|e| panic!("{e}"))
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// The scenarios in a folder.
fn scenarios_in(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<PathBuf> =
        files.map(|file| file.unwrap().path()).filter(|path| path.extension().is_some_and(|e| e == "toml")).collect();
    files.sort();
    files
}

/// The scenarios of the benchmark, cut short.
#[test]
fn the_benchmarks_are_the_same() {
    for (n, (name, set)) in [
        ("newreno", "topology.k=4 end=6ms"),
        ("newreno", "topology.k=8 end=1ms"),
        ("dctcp", "topology.k=4 end=1ms"),
        ("difs", "topology.k=4 end=3ms"),
        ("strict", "topology.k=4 end=6ms"),
        ("pfabric", "workload.web.flows=60"),
        ("merp", "workload.web.flows=200"),
        ("pias", "workload.web.flows=60"),
        ("stam", "workload.web.flows=60"),
        ("expresspass", "workload.web.flows=60"),
        ("ssp", "workload.web.flows=60"),
        ("homa", "workload.web.flows=60"),
        ("ndp", "workload.web.flows=60"),
    ]
    .into_iter()
    .enumerate()
    {
        assert_same_plan(&scenario_of(&folder("bench").join(name).with_extension("toml"), set, ""), &ways(n), name);
    }
}

/// The examples, cut short.
#[test]
fn the_examples_are_the_same() {
    for (n, file) in scenarios_in(&folder("examples")).into_iter().enumerate() {
        let set = match file.file_stem().and_then(|name| name.to_str()) {
            Some("large") => "topology.k=8 end=50us",
            Some("elephants") => "end=5ms measure.from=1ms measure.until=5ms",
            Some("failures") => "workload.web.flows=40",
            Some("roce") => "topology.leaves=2 topology.hosts_per_leaf=4 workload.web.flows=20 measure.flows=all end=100us",
            Some("background_and_incast") => {
                "seed=1 topology.leaves=2 topology.hosts_per_leaf=4 workload.background.flows=20 measure.flows=all end=100us"
            }
            _ => "end=5ms",
        };
        assert_same_plan(&scenario_of(&file, set, ""), &ways(n), &file.display().to_string());
    }
}

/// Joins of hosts of all parts.
#[test]
fn programs_with_joins_are_the_same() {
    let text = format!(
        "[topology]\nkind = 'fat_tree'\nk = 4\nrate = '10Gbps'\ndelay = '1us'\n{}{}",
        eager_ring(16, 8),
        system("newreno", "100pkt")
    );
    assert!(!plan(&text).points[0].run.traffic().unwrap().joins.is_empty());
    assert_same(&text, &WAYS);
}

/// Compares the points of a plan with runs in parts and in windows, in turns.
fn assert_same_in_turns(plan: &Plan, text: &str) {
    for (n, point) in plan.points.iter().enumerate() {
        let (parts, threads) = WAYS[n / 2 % WAYS.len()];
        match Cut::choose(&point.run, Threads::Exactly(parts)) {
            Err(Uncut::NoPackets) => {}
            Ok(cut) if n % 2 == 0 => assert_same_in(point, cut, threads, text),
            _ => {
                let _shared = CORES.read().unwrap_or_else(PoisonError::into_inner);
                let run = |order| sim::run_in(order, &point.run, &mut |_| Continue::Yes).unwrap();
                let [tree, windows] = [EventOrder::Tree, EventOrder::Windows].map(run);
                assert_equal(&tree, &windows, &format!("{} in windows in\n{text}", point.id));
            }
        }
    }
}

/// Compares the points of whole scenarios, as many at a time as there are cores: a few of them take most of the time.
fn assert_same_files(files: &[PathBuf], read: impl Fn(&Path) -> Plan + Sync) {
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(file) = files.get(next.fetch_add(1, Relaxed)) {
            assert_same_in_turns(&read(file), &file.display().to_string());
        }
    };
    std::thread::scope(|scope| {
        (0..std::thread::available_parallelism().map_or(1, usize::from)).for_each(|_| drop(scope.spawn(work)));
    });
}

#[test]
#[ignore = "run by make slow: whole examples"]
fn whole_examples_are_the_same() {
    assert_same_files(&scenarios_in(&folder("examples")), |file| {
        let set = if file.ends_with("large.toml") { "end=100us" } else { "" };
        scenario_of(file, set, "")
    });
}

#[test]
#[ignore = "run by make slow: all scenarios of the papers at their small size"]
fn whole_papers_are_the_same() {
    let papers = std::fs::read_dir(folder("papers")).unwrap().map(|paper| paper.unwrap().path()).filter(|path| path.is_dir());
    let is_own = |file: &PathBuf| ["paper", "claims", "seek"].iter().any(|own| file.file_stem().is_some_and(|stem| stem == *own));
    let files: Vec<PathBuf> = papers.flat_map(|paper| scenarios_in(&paper)).filter(|file| !is_own(file)).collect();
    assert_same_files(&files, |file| scenario_of(file, "", "smoke"));
}

/// All flows start at the same time with equal sizes, so that there are many ties.
#[test]
fn ties_fall_the_same_way() {
    let rows: Vec<_> = (0..9).flat_map(|src| (1..4).map(move |hop| (src, (src + hop) % 9, 14_600 * u64::from(hop), 0))).collect();
    for (name, n) in kinds("transport").into_iter().zip(0..) {
        for (limit, m) in ["3pkt", "100pkt", "20KB"].into_iter().zip(0..) {
            let flows = table(&format!("cut-ties-{name}-{limit}"), &rows);
            let two = if n % 3 == m { (2, 2) } else { (2, 1) };
            let text = format!("end = '1s'\n[topology]\nkind = 'single_tree'\n{flows}{}", system(name, limit));
            assert_same(&text, &[two, WAYS[1], WAYS[2]]);
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

/// Hosts with two NICs, in parts that hold some of their switches only.
#[test]
fn hosts_with_several_nics_are_the_same() {
    let rows: Vec<_> = (0..8).flat_map(|src| (1..4).map(move |hop| (src, (src + hop) % 8, 14_600 * u64::from(hop), 0))).collect();
    let rest = format!(
        "end = '1s'\n[topology]\nkind = 'rail'\npods = 2\nservers = 4\nnics = 2\nspines = 2\nspine_cables = 1\nnic_rate = '10Gbps'\n{}",
        table("cut-nics", &rows)
    );
    for (system, place) in systems_with("router", "20pkt", &rest).into_iter().zip(0..) {
        // Threads that wait for each other at every half microsecond take long.
        let ways = if place == 0 { [(2, 2), (3, 1)] } else { [(2, 1), (3, 1)] };
        assert_same(&format!("{rest}{}", system.toml()), &ways);
    }
}

#[test]
fn series_and_traces_are_the_same() {
    let flows = sized(10, 60);
    let rest = format!(
        "[topology]\nkind = 'fat_tree'\nk = 4\n[workload.web]\nkind = 'poisson'\nflows = {flows}\nload = 0.8\nsize = 'exponential'\nmean = '20KB'\n[measure]\nflows = 'all'\n[sample]\ninterval = '50us'\nports = true\nflows = true\nagents = true\npackets = true\n"
    );
    let slots = ["router", "policy", "controller", "agent"];
    let systems = slots.into_iter().flat_map(|slot| systems_with(slot, "10pkt", &rest));
    for (n, system) in systems.step_by(sized(2, 1)).enumerate() {
        assert_same(&format!("{rest}{}", system.toml()), &ways(n));
    }
}

/// Compares random scenario `n` in parts of pods and racks, or in random parts, each node in any part.
fn assert_random(n: u64, (parts, threads): (usize, usize)) {
    let (text, _) = random_scenario(n);
    let mut rng = Rng::stream(n, "cut", &[]);
    for point in &plan(&text).points {
        let chosen = Cut::choose(&point.run, Threads::Exactly(parts));
        let net = &point.run.net;
        // A scenario that cannot run in parts cannot run in random parts either.
        let cut = match chosen {
            Ok(_) if n % 2 == 1 => Cut::of(net, net.nodes().iter().map(|_| rng.below(parts as u64) as u8).collect()),
            chosen => chosen.ok(),
        };
        if let Some(cut) = cut {
            assert_same_in(point, cut, threads, &text);
        }
    }
}

#[test]
fn random_scenarios_are_the_same() {
    for n in fuzz_numbers(60) {
        let ways = ways(n as usize / 2);
        assert_random(n, ways[n as usize / 2 % ways.len()]);
    }
}

#[test]
#[ignore = "two threads wait for each other after each window, which takes long: `make fuzz THREADS=2`"]
fn random_scenarios_on_two_threads_are_the_same() {
    for n in fuzz_numbers(20) {
        assert_random(n, (2, 2));
    }
}

/// No part has an event between the end of a flow and the start, in another part, of a flow that waits for it.
#[test]
fn parts_do_not_skip_a_start_that_they_learn_of() {
    assert_random(705, (3, 1));
}

/// A part learns from another part when its flows that wait start.
#[test]
fn flows_that_wait_for_other_parts_start_at_the_same_time() {
    let rows = "h0,h3,30000,0us,,,\nh1,h3,30000,,,1,\nh4,h2,1000,,,2,30us\nh0,h3,1000,5ms,,,\n";
    let flows = table_of("waiting-parts", &format!("src,dst,size_bytes,start,deadline,after,delay\n{rows}"));
    for name in kinds("transport") {
        let text = format!(
            "end = '10s'\n[topology]\nkind = 'dumbbell'\nleft = 3\nright = 3\ndelay = '1ns'\n{flows}{}",
            system(name, "100pkt")
        );
        assert_same(&text, &[(2, 1)]);
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
        let outcome = sim::run_threads(&plan(text).points[0].run, threads, EventOrder::Auto, &mut |_| Continue::Yes).unwrap();
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
    let in_order = |order, threads| {
        let outcome = sim::run_threads(&plan(&large).points[0].run, threads, order, &mut |_| Continue::Yes).unwrap();
        (outcome.threads, outcome.uncut, outcome.order)
    };
    let (two, windows) = (Threads::Exactly(2), EventOrder::Windows);
    assert_eq!(in_order(EventOrder::Tree, two), (2, None, Some(EventOrder::Tree)));
    assert_eq!(in_order(windows, two), (2, None, Some(windows)));
    assert_eq!(in_order(windows, Threads::Exactly(1)), (1, Some(Uncut::Asked), Some(windows)));
    let follows = "[[system]]\nlabel = 'PDQ'\ntransport = 'pdq'\nagent = 'pdq'\npolicy = 'dard'\nrouter = 'dard'\n";
    assert_eq!(runs(&(flows(tree, few) + follows), Threads::Exactly(2)), (1, Some(Uncut::Paths)));
}

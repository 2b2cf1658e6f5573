//! Scenarios for tests: every transport in the system it needs, on a topology and a workload given as text.

#![allow(dead_code)] // Each test file uses its part.

use base::Rng;
use scenario::{Options, Plan, Point};
use sim::{Continue, Outcome};

/// One system per transport, with the rest that it needs.
pub const SYSTEMS: [(&str, &str); 7] = [
    (
        "newreno",
        "transport = { kind = 'newreno', min_rto = '10ms', init_rto = '10ms' }\nqdisc = { kind = 'droptail', limit = 'LIMIT' }",
    ),
    (
        "tcp_ecn",
        "transport = { kind = 'tcp_ecn', min_rto = '10ms', init_rto = '10ms' }\nqdisc = { kind = 'red_ecn', limit = 'LIMIT', th_min = '2pkt', th_max = '8pkt', wq = 0.2, max_p = 0.3 }",
    ),
    (
        "dctcp",
        "transport = { kind = 'dctcp', sack = true, min_rto = '10ms', init_rto = '10ms' }\nqdisc = { kind = 'ecn_threshold', limit = 'LIMIT', mark = '2pkt' }",
    ),
    (
        "botcp",
        "transport = { kind = 'botcp', min_rto = '10ms', occ_long = 2, occ_short = 4, occ_max = 8 }\nagent = 'bof'\nqdisc = { kind = 'droptail', limit = 'LIMIT' }",
    ),
    ("pfabric", "transport = 'pfabric'\nqdisc = { kind = 'pfabric', limit = 'LIMIT' }"),
    (
        "merp",
        "transport = 'merp'\nagent = 'merp'\nqdisc = { kind = 'strict', classes = 4, evict = 'worst_class', limit = 'LIMIT' }",
    ),
    ("pdq", "transport = 'pdq'\nagent = 'pdq'\nqdisc = { kind = 'droptail', limit = 'LIMIT' }"),
];

/// Routers, and the transports and topologies that each is tried with; "" fits all.
pub const ROUTERS: [(&str, &str, &str); 6] = [
    ("'ecmp'", "", ""),
    ("'spray'", "", ""),
    ("{ kind = 'spray', mode = 'round_robin' }", "", ""),
    ("'memr'", "merp", ""),
    ("'conga'", "", "single_tree dumbbell fat_tree leaf_spine"),
    ("{ kind = 'conga', mode = 'edge', flowlet_gap = '20us' }", "", "single_tree dumbbell fat_tree leaf_spine"),
];

/// The routers that run with a transport on a topology, as a scenario names them.
pub fn routers_for(transport: &str, topology: &str) -> Vec<&'static str> {
    let fits = |what: &str, list: &str| list.is_empty() || list.split(' ').any(|one| what.contains(one));
    ROUTERS.iter().filter(|r| fits(transport, r.1) && fits(topology, r.2)).map(|r| r.0).collect()
}

/// First-in first-out disciplines: any can stand in for another where a system does not insist on it.
pub const FIFOS: [&str; 6] = [
    "kind = 'droptail', limit = 'LIMIT'",
    "kind = 'ecn_threshold', limit = 'LIMIT', mark = '2pkt'",
    "kind = 'ecn_threshold', limit = 'LIMIT', mark = '4KB'",
    "kind = 'ecn_threshold', limit = 'LIMIT', mark = '2pkt', at = 'dequeue'",
    "kind = 'red_ecn', limit = 'LIMIT', th_min = '2pkt', th_max = '8pkt', wq = 0.2, max_p = 0.3",
    "kind = 'red_ecn', limit = 'LIMIT', th_min = '3KB', th_max = '3KB', wq = 1, chosen = 'mark_only'",
];

/// The system of a transport with another of [`FIFOS`] at its switches, where that can be.
pub fn with_fifo(transport: &str, limit: &str, fifo: &str) -> String {
    let text = system(transport, limit);
    let own = FIFOS.map(|own| own.replace("LIMIT", limit)).into_iter().find(|own| text.contains(own));
    own.filter(|_| transport != "pdq").map_or(text.clone(), |own| text.replace(&own, &fifo.replace("LIMIT", limit)))
}

/// The `[[system]]` table of a transport with switch queues of `limit`.
pub fn system(transport: &str, limit: &str) -> String {
    let (_, text) = SYSTEMS.iter().find(|s| s.0 == transport).expect("a transport with a system");
    format!("[[system]]\nlabel = '{transport}'\n{}\n", text.replace("LIMIT", limit))
}

/// The plan of a scenario text. Panics with the diagnostics.
pub fn plan(text: &str) -> Plan {
    let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    scenario::load(text, "test.toml", dir, &Options::default()).unwrap_or_else(|e| panic!("{e}\nin\n{text}"))
}

/// Runs a point to its end.
pub fn run_point(point: &Point) -> Outcome {
    sim::run(&point.run, &mut |_| Continue::Yes).unwrap_or_else(|e| panic!("{}: {e}", point.id))
}

/// Runs the only point of a scenario text to its end.
pub fn run(text: &str) -> Outcome {
    let plan = plan(text);
    assert_eq!(plan.points.len(), 1, "one point expected in\n{text}");
    run_point(&plan.points[0])
}

/// Writes a flow table `rows` (src, dst, size in bytes, start in ps) and returns its workload section.
pub fn table(name: &str, rows: &[(u32, u32, u64, u64)]) -> String {
    let mut text = String::from("src,dst,size_bytes,start\n");
    for (src, dst, size, start) in rows {
        text += &format!("{src},{dst},{size},{start}ps\n");
    }
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.csv"));
    std::fs::write(&path, text).expect("the test folder is writable");
    format!("[workload.flows]\nkind = 'table'\npath = '{name}.csv'\n")
}

/// The `n`th random scenario, and whether its buffers are deep enough that every flow must finish well before the end.
pub fn random_scenario(n: u64) -> (String, bool) {
    let rng = &mut Rng::stream(20, "fuzz", &[n]);
    let events_rng = &mut Rng::stream(20, "fuzz/events", &[n]);
    let mut pick_events = |choices: &[&str]| choices[events_rng.below(choices.len() as u64) as usize].to_owned();
    let mut pick = |choices: &[&str]| choices[rng.below(choices.len() as u64) as usize].to_owned();
    let rate = pick(&["1Gbps", "3Gbps", "10Gbps", "100Gbps"]);
    let delay = pick(&["1ns", "1us", "10us", "123456ps"]);
    let topology = pick(&[
        "kind = 'single_tree'",
        "kind = 'single_tree'\nracks = 2\nhosts_per_rack = 2",
        "kind = 'star'\nhosts = 7",
        "kind = 'dumbbell'\nleft = 3\nright = 4",
        "kind = 'chain'\nswitches = 4\nhosts_per_switch = 2",
        "kind = 'chain'\nswitches = 10\nhosts_per_switch = 1",
        "kind = 'fat_tree'\nk = 4",
        "kind = 'leaf_spine'\nleaves = 3\nspines = 4\nhosts_per_leaf = 2\nhost_rate = 'RATE'\nspine_rate = 'RATE'",
    ]);
    let rates = if topology.contains("RATE") { String::new() } else { format!("rate = '{rate}'\n") };
    let topology = format!("[topology]\n{}\n{rates}delay = '{delay}'\n", topology.replace("RATE", &rate));
    let hosts = 4;
    let load = pick(&["0.3", "0.7", "1.2"]);
    let size = pick(&[
        "size = 'fixed'\nmean = '1B'",
        "size = 'fixed'\nmean = '1461B'",
        "size = 'pareto'\nmean = '20KB'\nshape = 1.3",
        "size = 'exponential'\nmean = '50KB'",
        "size = 'uniform'\nmin = '1B'\nmax = '100KB'",
        "size = 'cdf'\ncdf = 'fb-hadoop-hpcc'",
    ]);
    let kind = pick(&["poisson", "poisson", "incast", "table"]);
    let transport = pick(&SYSTEMS.map(|s| s.0));
    let routers = routers_for(&transport, &topology);
    let router = pick(&routers);
    let limit = pick(&["1pkt", "3pkt", "20pkt", "100pkt", "1500B", "30KB", "unlimited"]);
    let fifo = pick(&FIFOS);
    // Some ports of MERP have room for few flows.
    let agent = pick(&["'merp'", "'merp'", "{ kind = 'merp', table_limit = 1 }", "{ kind = 'merp', table_limit = 4 }"]);
    let low_water = pick(&["3KB", "0B", "unlimited"]);
    let deadline = pick(&["", "", "deadline = '300us'\n", "deadline = { kind = 'slack', factor = 3 }\n"]);
    let workload = match kind.as_str() {
        "poisson" => format!("[workload.web]\nkind = 'poisson'\nflows = 40\nload = {load}\n{size}\n"),
        "incast" => "[workload.burst]\nkind = 'incast'\nsenders = 3\nsize = '40KB'\nreceiver = 'h0'\n".to_owned(),
        _ => {
            // Ties everywhere: everyone starts at once.
            let rows: Vec<_> = (0..30)
                .map(|_| {
                    let (src, hop) = (rng.below(hosts), 1 + rng.below(hosts - 1));
                    (src as u32, ((src + hop) % hosts) as u32, 1 + rng.below(30_000), rng.below(2) * 1_000_000)
                })
                .collect();
            table(&format!("fuzz-{n}"), &rows)
        }
    };
    let (events, lasting) = random_events(&topology, &mut pick_events);
    // Senders of flows that are cut off for good try again and again.
    let end = if lasting { "5ms" } else { "30s" };
    let text = format!(
        "seed = {}\nend = '{end}'\n{topology}{workload}{deadline}{}router = {router}\nnic = {{ low_water = '{low_water}' }}\n{events}",
        1 + rng.below(1000),
        with_fifo(&transport, &limit, &fifo).replace("agent = 'merp'", &format!("agent = {agent}"))
    );
    (text, !["1pkt", "3pkt", "1500B"].contains(&limit.as_str()) && !lasting)
}

/// Up to two events for a random scenario, and whether one of them lasts, so that flows may be left unfinished.
fn random_events(topology: &str, pick: &mut impl FnMut(&[&str]) -> String) -> (String, bool) {
    let (mut text, mut lasting) = (String::new(), false);
    for _ in 0..pick(&["0", "0", "1", "2"]).parse().expect("a number") {
        let fabric = "random = { probability = 0.4 }";
        let target = pick(&["node = 'h0'", "random = { count = 1, tier = 'host' }", fabric, fabric, fabric]);
        // A star has no cables between switches.
        let target =
            if topology.contains("'star'") && target == fabric { "random = { count = 2, tier = 'host' }" } else { &target };
        let at = pick(&["0s", "1us", "3us", "50us"]);
        let until = pick(&["until = '60us'", "until = '400us'", "until = '3ms'", ""]);
        if text.contains("'h0'") && target.contains("'h0'") {
            continue;
        }
        lasting |= until.is_empty();
        text += &format!("[[event]]\n{target}\nat = '{at}'\n{until}\n");
    }
    if !text.is_empty() {
        let (detect, converge) = (pick(&["0s", "5us", "200us"]), pick(&["0s", "20us", "1ms"]));
        text += &format!("[failure]\ndetect = '{detect}'\nconverge = '{converge}'\nunreachable = 'run'\n");
    }
    (text, lasting)
}

/// How many random scenarios to try: `usual`, or what `FLOWLOOM_FUZZ` says (`make slow`).
pub fn fuzz_count(usual: u64) -> u64 {
    std::env::var("FLOWLOOM_FUZZ").ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

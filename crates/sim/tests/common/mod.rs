//! Scenarios for tests: every transport in the system it needs, on a topology and a workload given as text.

#![allow(dead_code)] // Each test file uses its part.

use scenario::{Options, Plan, Point};
use sim::{Continue, Outcome};

/// One system per transport, with the rest that it needs.
pub const SYSTEMS: [(&str, &str); 3] = [
    ("newreno", "transport = { kind = 'newreno', min_rto = '10ms', init_rto = '10ms' }\nqdisc = { kind = 'droptail', limit = 'LIMIT' }"),
    ("pfabric", "transport = 'pfabric'\nqdisc = { kind = 'pfabric', limit = 'LIMIT' }"),
    (
        "merp",
        "transport = 'merp'\nagent = 'merp'\nqdisc = { kind = 'strict', classes = 4, evict = 'worst_class', limit = 'LIMIT' }",
    ),
];

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
    format!("[workload.flows]\nkind = 'table'\nfile = '{name}.csv'\n")
}

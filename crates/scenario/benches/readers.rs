//! The time to plan workloads that are read from files: `make bench` prints a row for each reader,
//! with files of two sizes and the exponent of the time between them. An exponent of 1 means that
//! the time is proportional to the number of flows.
//!
//! The time is processor time, from reading the scenario to the flows of its run. Each file is
//! planned in a separate process, three times; the shortest time counts. `--plan FILE` plans an
//! existing scenario and also prints a digest of its flows.
#![allow(clippy::disallowed_methods)] // A benchmark reads the clock.

use scenario::{Options, RunTraffic};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Instant;
use xxhash_rust::xxh3::xxh3_64;

/// A reader and the files that it reads.
struct TimedReader {
    name: &'static str,
    /// The kind of the workload, with the parameters that it needs besides `path`.
    kind: &'static str,
    path: &'static str,
    /// Writes the files of a program or of a list. The number is that of ranks or flows.
    write: fn(&Path, usize),
    sizes: [usize; 2],
    /// Number of hosts, if it is not the number of ranks.
    hosts: Option<usize>,
}

const ROWS: [TimedReader; 10] = [
    list("table: flows one by one", "table", "flows.csv", table),
    list("hpcc: flow file", "hpcc", "flows.txt", hpcc),
    list("htsim: connection matrix, chains of 10 flows", "htsim", "flows.cm", htsim),
    list("yaps: input trace", "yaps", "flows.txt", yaps),
    program("goal: all-reduce in a ring", "goal", "ring.goal", |dir, ranks| goal(dir, ranks, 100_000, 0), [128, 512]),
    program("goal: the same ring, eager messages", "goal", "ring.goal", |dir, ranks| goal(dir, ranks, 1000, 0), [128, 512]),
    program(
        "goal: the same ring, overlapping computations",
        "goal",
        "ring.goal",
        |dir, ranks| goal(dir, ranks, 100_000, 9),
        [128, 512],
    ),
    program("chakra: all-reduces of all ranks", "chakra", "t", |dir, ranks| chakra(dir, ranks, 4, ranks), [64, 256]),
    program("chakra: all-reduces of 8 ranks", "chakra", "t", |dir, ranks| chakra(dir, ranks, 100, 8), [64, 256]),
    TimedReader {
        hosts: Some(64),
        ..program("chakra: more and more all-reduces", "chakra", "t", |dir, steps| chakra(dir, 64, steps, 8), [100, 400])
    },
];

/// Returns the row of a reader of flows.
const fn list(name: &'static str, kind: &'static str, path: &'static str, write: fn(&Path, usize)) -> TimedReader {
    TimedReader { name, kind, path, write, sizes: [50_000, 500_000], hosts: Some(64) }
}

/// Returns the row of a reader of programs, whose number of ranks grows.
const fn program(
    name: &'static str,
    kind: &'static str,
    path: &'static str,
    write: fn(&Path, usize),
    sizes: [usize; 2],
) -> TimedReader {
    TimedReader { name, kind, path, write, sizes, hosts: None }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    match args.iter().position(|arg| arg == "--plan") {
        Some(at) => plan(Path::new(&args[at + 1])),
        None => table_of_readers(),
    }
}

/// Plans a scenario, and prints the number of its flows, the number of waits of flows and joins, the
/// seconds and the digest of flows and joins.
fn plan(file: &Path) {
    let text = std::fs::read_to_string(file).expect("the scenario");
    let began = Instant::now();
    let folder = file.parent().expect("a folder");
    let plan = scenario::load(&text, "readers.toml", folder, &Options::default()).unwrap_or_else(|e| panic!("{e}"));
    let RunTraffic { flows, joins, .. } = plan.points[0].run.traffic().unwrap_or_else(|e| panic!("{e}"));
    let took = cpu_s().unwrap_or_else(|| began.elapsed().as_secs_f64());
    let of_flows = flows.iter().flat_map(|flow| &flow.wait).map(|wait| wait.on.len() + wait.joins.len());
    let waits: usize = of_flows.chain(joins.iter().map(|join| join.on.len() + join.joins.len())).sum();
    let digest = flows.iter().fold(0, |digest, flow| xxh3_64(format!("{digest} {flow:?}").as_bytes()));
    let digest = joins.iter().fold(digest, |digest, join| xxh3_64(format!("{digest} {join:?}").as_bytes()));
    println!("{} {waits} {took} {digest:016x}", flows.len());
}

/// Processor time of this process, which other processes affect less than wall time.
fn cpu_s() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    stat.split(' ').next()?.parse::<f64>().ok().map(|ns| ns * 1e-9)
}

fn table_of_readers() {
    println!(
        "{:<46} {:>9} {:>11} {:>8} {:>9} {:>11} {:>8} {:>9}",
        "reader", "flows", "waits", "s", "flows", "waits", "s", "exponent"
    );
    for row in &ROWS {
        let [small, large] = row.sizes.map(|size| planned(row, size));
        let exponent = (large.2 / small.2).ln() / (large.0 / small.0).ln();
        let cells = |of: (f64, f64, f64)| format!("{:>9} {:>11} {:>8.3}", of.0, of.1, of.2);
        println!("{:<46} {} {} {exponent:>9.2}", row.name, cells(small), cells(large));
    }
}

/// Returns the flows, the waits and the seconds of a reader with a file of this size.
fn planned(row: &TimedReader, size: usize) -> (f64, f64, f64) {
    let dir = tempfile::tempdir().expect("a folder");
    (row.write)(dir.path(), size);
    let (hosts, file) = (row.hosts.unwrap_or(size), dir.path().join("readers.toml"));
    let text = format!(
        "topology = {{ kind = \"star\", hosts = {hosts} }}\n[workload.read]\nkind = \"{}\"\npath = \"{}\"\n[[system]]\ntransport = \"newreno\"\n",
        row.kind, row.path
    );
    std::fs::write(&file, text).expect("a folder for files");
    let once = || {
        let output =
            Command::new(std::env::current_exe().expect("this program")).arg("--plan").arg(&file).output().expect("a process");
        assert!(output.status.success(), "{}: {}", row.name, String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let words: Vec<f64> = text.split_whitespace().take(3).map(|word| word.parse().expect("a number")).collect();
        (words[0], words[1], words[2])
    };
    (0..3).map(|_| once()).min_by(|a, b| a.2.total_cmp(&b.2)).expect("three runs")
}

// ------------------------------------------------------------------------------------------------ files

fn write(dir: &Path, name: &str, bytes: impl AsRef<[u8]>) {
    std::fs::write(dir.join(name), bytes).expect("a folder for files");
}

/// Returns a line for each flow: its number, source and destination.
fn lines(flows: usize, line: impl Fn(usize, usize, usize) -> String) -> String {
    (0..flows).map(|i| line(i, i % 64, (i + 1 + i / 64 % 63) % 64)).collect()
}

fn table(dir: &Path, flows: usize) {
    let rows = lines(flows, |i, src, dst| format!("{src},{dst},{},{i}us\n", 1000 + i % 7));
    write(dir, "flows.csv", format!("src,dst,size_bytes,start\n{rows}"));
}

fn hpcc(dir: &Path, flows: usize) {
    let rows = lines(flows, |i, src, dst| format!("{src} {dst} 3 100 {} 2.{i:09}\n", 1000 + i % 7));
    write(dir, "flows.txt", format!("{flows}\n{rows}"));
}

fn yaps(dir: &Path, flows: usize) {
    write(dir, "flows.txt", lines(flows, |i, src, dst| format!("{i} 1.{i:09} x x {} x x {src} {dst}\n", 1 + i % 7)));
}

fn htsim(dir: &Path, flows: usize) {
    let row = |i: usize, src: usize, dst: usize| {
        let begin = if i.is_multiple_of(10) { format!("start {i}") } else { format!("trigger {i}") };
        let end = if i % 10 == 9 { String::new() } else { format!(" send_done_trigger {}", i + 1) };
        format!("{src}->{dst} id {} {begin} size 9000{end}\n", i + 1)
    };
    let triggers: String = (0..flows).filter(|i| !i.is_multiple_of(10)).map(|i| format!("trigger id {i} oneshot\n")).collect();
    let all = flows - flows.div_ceil(10);
    write(dir, "flows.cm", format!("Nodes 64\nConnections {flows}\nTriggers {all}\n{}{triggers}", lines(flows, row)));
}

/// Writes an all-reduce in a ring: 2(n-1) steps, each with a message from every rank to the next rank. If
/// `compute` is not zero, each message is sent after a computation of this time, which waits for the
/// computation of the step before, but not for its send.
fn goal(dir: &Path, ranks: usize, bytes: usize, compute: usize) {
    let mut text = format!("num_ranks {ranks}\n");
    for rank in 0..ranks {
        let (next, before) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
        let _ = writeln!(text, "rank {rank} {{");
        for step in 0..2 * (ranks - 1) {
            let _ = writeln!(text, "s{step}: send {bytes}b to {next} tag {step}\nr{step}: recv {bytes}b from {before} tag {step}");
            // The operation that waits for the step before.
            let own = if compute > 0 { "c" } else { "s" };
            if compute > 0 {
                let _ = writeln!(text, "c{step}: calc {compute}\ns{step} requires c{step}");
            }
            if let Some(last) = step.checked_sub(1) {
                let _ = writeln!(text, "{own}{step} requires {own}{last}\n{own}{step} requires r{last}");
            }
        }
        text.push_str("}\n");
    }
    write(dir, "ring.goal", text);
}

/// Writes traces in which each rank computes and then takes part in an all-reduce of its group of
/// `group` ranks, again and again.
fn chakra(dir: &Path, ranks: usize, steps: usize, group: usize) {
    for rank in 0..ranks {
        let mut bytes = delimited(&text(1, "0.0.4"));
        for id in 1..=2 * steps as u64 {
            let compute = id % 2 == 1;
            let mut node = [number(1, id), number(3, if compute { 4 } else { 7 })].concat();
            if id > 1 {
                node.extend(number(5, id - 1));
            }
            if compute {
                node.extend(number(7, 50));
            } else {
                let size = [text(1, "comm_size"), number(9, 1 << 20)].concat();
                let kind = [text(1, "comm_type"), number(9, 0)].concat();
                let name = [text(1, "pg_name"), text(29, &format!("g{}", rank / group))].concat();
                [size, kind, name].iter().for_each(|attribute| node.extend(message(10, attribute)));
            }
            bytes.extend(delimited(&node));
        }
        write(dir, &format!("t.{rank}.et"), bytes);
    }
}

// ------------------------------------------------------------------------------------------------ protobuf

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 127 {
        bytes.push(value as u8 & 127 | 128);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn delimited(bytes: &[u8]) -> Vec<u8> {
    [&varint(bytes.len() as u64), bytes].concat()
}

fn number(tag: u64, value: u64) -> Vec<u8> {
    [varint(tag << 3), varint(value)].concat()
}

fn message(tag: u64, bytes: &[u8]) -> Vec<u8> {
    [varint(tag << 3 | 2), delimited(bytes)].concat()
}

fn text(tag: u64, value: &str) -> Vec<u8> {
    message(tag, value.as_bytes())
}

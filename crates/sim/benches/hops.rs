//! The cost of a hop, one packet sent over one link. `make bench` prints the table. `make gate` compares instructions per hop with
//! `bench/instructions.txt`.
//!
//! Scenarios are those of the folder `bench`, run as by `flowloom run`. Every figure per hop is the difference between a longer and a
//! shorter run, each in a separate process, so that set-up cancels out. Set-up is the time of the shorter run less that of its hops.
#![allow(clippy::disallowed_methods)] // A benchmark reads the clock.

use scenario::Options;
use sim::{Continue, EventOrder, Threads};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

/// A scenario of the folder with settings, and the ends of its shorter and its longer run.
#[derive(Clone, Copy)]
struct Work {
    file: &'static str,
    set: &'static str,
    timed: [&'static str; 2],
    counted: [&'static str; 2],
}

/// A row of the table, with the required and the desired values.
struct Row {
    name: &'static str,
    work: Work,
    mega_hops_per_s: Option<[f64; 2]>,
    /// The required share of the hops/s of another row, above it, in the same run.
    share_of: Option<(&'static str, f64)>,
    instructions: Option<[f64; 2]>,
    peak_mb: Option<[f64; 2]>,
    /// The required and the desired speed on two threads, as a multiple of that on one.
    two_threads: Option<[f64; 2]>,
    /// Whether the tree and windows are compared.
    both_orders: bool,
}

/// One long flow per host on a fat tree of 16, 128 or 1024 hosts.
const K4: Work = Work { file: "newreno", set: "topology.k=4", timed: ["100ms", "600ms"], counted: ["5ms", "10ms"] };
const K8: Work = Work { file: "newreno", set: "topology.k=8", timed: ["10ms", "70ms"], counted: ["2ms", "3ms"] };
const K16: Work = Work { file: "newreno", set: "topology.k=16", timed: ["2ms", "8ms"], counted: ["1ms", "1100us"] };

/// Web search on a leaf-spine network of 144 hosts.
const WEB_SEARCH: Work = Work { file: "pfabric", set: "", timed: ["100ms", "1s"], counted: ["10ms", "12ms"] };

/// Names of the rows with which the speed of other rows is compared.
const PFABRIC: &str = "pFabric, leaf-spine of 144 hosts, web search";
const NDP: &str = "NDP, as pFabric's";
const NEWRENO: &str = "NewReno, fat-tree k=16";
const DCTCP: &str = "DCTCP, fat-tree k=8";
/// The row that needs the Python package `wasmtime`.
const WASM: &str = "DCTCP as a plug-in in WebAssembly";

/// A row without required or desired values.
const PLAIN: Row = Row {
    name: "",
    work: K4,
    mega_hops_per_s: None,
    share_of: None,
    instructions: None,
    peak_mb: None,
    two_threads: None,
    both_orders: false,
};

const ROWS: [Row; 24] = [
    Row { name: "NewReno, fat-tree k=4", work: K4, mega_hops_per_s: Some([25.0, 40.0]), both_orders: true, ..PLAIN },
    Row {
        name: "NewReno, fat-tree k=8",
        work: K8,
        mega_hops_per_s: Some([20.0, 30.0]),
        instructions: Some([330.0, 300.0]),
        peak_mb: Some([20.0, 10.0]),
        two_threads: Some([1.5, 1.75]),
        both_orders: true,
        ..PLAIN
    },
    Row {
        name: NEWRENO,
        work: K16,
        mega_hops_per_s: Some([13.0, 20.0]),
        peak_mb: Some([60.0, 25.0]),
        two_threads: Some([1.7, 2.0]),
        both_orders: true,
        ..PLAIN
    },
    Row { name: "DCTCP, fat-tree k=4", work: Work { file: "dctcp", ..K4 }, mega_hops_per_s: Some([25.0, 40.0]), ..PLAIN },
    Row { name: DCTCP, work: Work { file: "dctcp", ..K8 }, mega_hops_per_s: Some([20.0, 30.0]), ..PLAIN },
    Row {
        name: "DCTCP as a plug-in in C, fat-tree k=8",
        work: Work { file: "plugin", set: "system.DCTCP.transport.path=../target/bench-plugin.so", ..K8 },
        share_of: Some((DCTCP, 0.99)),
        ..PLAIN
    },
    Row {
        name: WASM,
        work: Work { file: "plugin", set: "system.DCTCP.transport.path=../target/bench-plugin.wasm", ..K8 },
        share_of: Some((DCTCP, 0.88)),
        ..PLAIN
    },
    Row { name: "DCQCN, as DCTCP's", work: Work { file: "dcqcn", ..K8 }, share_of: Some((DCTCP, 0.7)), ..PLAIN },
    Row { name: "Swift, as DCTCP's", work: Work { file: "swift", ..K8 }, share_of: Some((DCTCP, 0.7)), ..PLAIN },
    Row { name: "HPCC, as DCTCP's", work: Work { file: "hpcc", ..K8 }, share_of: Some((DCTCP, 0.5)), ..PLAIN },
    Row { name: "DCTCP, fat-tree k=16", work: Work { file: "dctcp", ..K16 }, mega_hops_per_s: Some([13.0, 20.0]), ..PLAIN },
    Row {
        name: "NewReno, fat-tree k=32",
        work: Work { file: "newreno", set: "topology.k=32", timed: ["200us", "500us"], counted: ["0s", "0s"] },
        peak_mb: Some([150.0, 100.0]),
        two_threads: Some([1.8, 2.1]),
        both_orders: true,
        ..PLAIN
    },
    Row {
        name: "NewReno, fat-tree k=64, 200 µs",
        work: Work { file: "newreno", set: "topology.k=64", timed: ["100us", "200us"], counted: ["0s", "0s"] },
        peak_mb: Some([2000.0, 1000.0]),
        both_orders: true,
        ..PLAIN
    },
    Row {
        name: "8 strict priorities, fat-tree k=8",
        work: Work { file: "strict", ..K8 },
        instructions: Some([400.0, 350.0]),
        ..PLAIN
    },
    Row {
        name: PFABRIC,
        work: WEB_SEARCH,
        mega_hops_per_s: Some([10.0, 16.0]),
        instructions: Some([500.0, 420.0]),
        two_threads: Some([1.4, 1.7]),
        both_orders: true,
        ..PLAIN
    },
    Row {
        name: "MERP, single tree, load 0.8",
        work: Work { file: "merp", set: "", timed: ["2s", "1000s"], counted: ["100ms", "500ms"] },
        mega_hops_per_s: Some([8.0, 15.0]),
        instructions: Some([850.0, 700.0]),
        ..PLAIN
    },
    Row {
        name: "PIAS over DCTCP, as pFabric's, 8 classes",
        work: Work { file: "pias", ..WEB_SEARCH },
        share_of: Some((PFABRIC, 0.8)),
        ..PLAIN
    },
    Row {
        name: "STAM over DCTCP, as pFabric's, 16 classes",
        work: Work { file: "stam", ..WEB_SEARCH },
        share_of: Some((PFABRIC, 0.65)),
        ..PLAIN
    },
    Row {
        name: "ExpressPass, as pFabric's",
        work: Work { file: "expresspass", ..WEB_SEARCH },
        share_of: Some((PFABRIC, 0.6)),
        ..PLAIN
    },
    Row {
        name: "SSP, as pFabric's",
        work: Work { file: "ssp", ..WEB_SEARCH },
        share_of: Some((PFABRIC, 0.6)),
        two_threads: Some([1.4, 1.7]),
        ..PLAIN
    },
    Row { name: "Homa, as pFabric's", work: Work { file: "homa", ..WEB_SEARCH }, share_of: Some((PFABRIC, 0.6)), ..PLAIN },
    Row { name: NDP, work: Work { file: "ndp", ..WEB_SEARCH }, share_of: Some((PFABRIC, 0.6)), ..PLAIN },
    Row {
        name: "UET, as pFabric's; share of NDP's",
        work: Work { file: "uet", ..WEB_SEARCH },
        share_of: Some((NDP, 0.6)),
        ..PLAIN
    },
    Row { name: "DiFS, fat-tree k=16", work: Work { file: "difs", ..K16 }, share_of: Some((NEWRENO, 0.6)), ..PLAIN },
];

/// The work that the gate counts, by the names in its file. Counting takes some seconds. Retransmission timers are due
/// after the first 5 ms, so that the counts include their cost.
const GATE: [(&str, Work); 4] = [
    ("newreno", Work { file: "newreno", set: "topology.k=4", timed: ["", ""], counted: ["6ms", "8ms"] }),
    ("strict", Work { file: "strict", set: "topology.k=4", timed: ["", ""], counted: ["6ms", "8ms"] }),
    ("pfabric", Work { file: "pfabric", set: "workload.web.flows=400", timed: ["", ""], counted: ["3ms", "4ms"] }),
    ("merp", Work { file: "merp", set: "workload.web.flows=1000", timed: ["", ""], counted: ["100ms", "250ms"] }),
];

/// The relative increase of instructions per hop above which the gate fails, with the compiler named in its file.
const TOLERANCE: f64 = 0.01;
/// The relative increase above which the gate fails, with another compiler.
const OTHER_COMPILER: f64 = 0.10;

/// The number of timed runs; the fastest one counts.
const REPEATS: usize = 3;
/// Pairs of runs of two works whose speeds are compared: some differ by a hundredth.
const PAIRS: usize = 48;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--one", file, ref set @ ..] => one(file, set, Threads::Exactly(1), EventOrder::Auto),
        ["--two", file, ref set @ ..] => one(file, set, Threads::Exactly(2), EventOrder::Auto),
        ["--tree", file, ref set @ ..] => one(file, set, Threads::Exactly(1), EventOrder::Tree),
        ["--windows", file, ref set @ ..] => one(file, set, Threads::Exactly(1), EventOrder::Windows),
        ["--gate"] => return gate(),
        ref words if words.iter().all(|word| !word.starts_with("--")) => return table(words),
        _ => {
            eprintln!("error: words in the names of rows, or --gate");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench")
}

// ------------------------------------------------------------------------------------------------ one run, in this process

/// The measurements of one run.
struct Run {
    hops: f64,
    events: f64,
    cpu_s: f64,
    /// Wall time of the run, without reading the scenario.
    wall_s: f64,
    peak_bytes: f64,
    digest: String,
}

fn one(file: &str, set: &[&str], threads: Threads, order: EventOrder) {
    let started = Instant::now(); // The fallback where the system has no processor time.
    let path = folder().join(file).with_extension("toml");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let pair = |s: &&str| s.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
    let options = Options { set: set.iter().filter_map(pair).collect(), ..Options::default() };
    scenario::set_wasmtime(wasmtime);
    let plan = scenario::load(&text, file, &folder(), &options).unwrap_or_else(|e| panic!("{e}"));
    for point in &plan.points {
        let begun = Instant::now(); // Reading the scenario does not count.
        let outcome = sim::run_threads(&point.run, threads, order, &mut |_| Continue::Yes);
        let outcome = outcome.unwrap_or_else(|e| panic!("{e}"));
        let wall_s = begun.elapsed().as_secs_f64();
        let c = &outcome.counters;
        let cpu_s = cpu_s().unwrap_or_else(|| started.elapsed().as_secs_f64());
        println!("{} {} {cpu_s} {} {:016x} {wall_s}", c.hops, c.events, peak_bytes().unwrap_or(0), c.digest);
    }
}

/// Processor time of this process, which other processes affect less than wall time.
fn cpu_s() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    stat.split(' ').next()?.parse::<f64>().ok().map(|ns| ns * 1e-9)
}

fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

// ------------------------------------------------------------------------------------------------ runs in separate processes

fn command(work: &Work, how: &str, end: &str, tool: &[&str]) -> (Run, String) {
    let program = std::env::current_exe().expect("this program has a path");
    let line = [tool, &[program.to_str().expect("a path of plain text"), how, work.file, work.set]].concat();
    let output = Command::new(line[0]).args(&line[1..]).arg(format!("end={end}")).output();
    let output = output.unwrap_or_else(|e| panic!("{}: {e}", line[0]));
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr).into_owned());
    assert!(output.status.success(), "{} with `{}` until {end} failed:\n{err}", work.file, work.set);
    let words: Vec<&str> = out.split_whitespace().collect();
    let number = |i: usize| words[i].parse().expect("a number");
    let run = Run {
        hops: number(0),
        events: number(1),
        cpu_s: number(2),
        wall_s: number(5),
        peak_bytes: number(3),
        digest: words[4].to_owned(),
    };
    (run, err)
}

/// The fastest of several runs.
fn timed(work: &Work, end: &str) -> Run {
    let runs = (0..REPEATS).map(|_| command(work, "--one", end, &[]).0);
    runs.min_by(|a, b| a.cpu_s.total_cmp(&b.cpu_s)).expect("at least one run")
}

/// The times per hop of a work that runs in two ways: those of the longer run without those of the shorter one, the fastest of several
/// runs each, in turns.
fn in_turns(work: &Work, ways: [&str; 2], time: fn(&Run) -> f64) -> [f64; 2] {
    let mut least = [[f64::INFINITY; 2]; 2];
    let mut hops = [[0.0; 2]; 2];
    let mut digests = [const { String::new() }; 2];
    for _ in 0..REPEATS {
        for (way, how) in ways.into_iter().enumerate() {
            for (at, end) in work.timed.into_iter().enumerate() {
                let (run, _) = command(work, how, end, &[]);
                least[way][at] = least[way][at].min(time(&run));
                hops[way][at] = run.hops;
                digests[way] = run.digest;
            }
        }
    }
    assert!(digests[0] == digests[1], "{}: another result with {}", work.file, ways[1]);
    [0, 1].map(|way| (least[way][1] - least[way][0]) / (hops[way][1] - hops[way][0]))
}

/// The speed of a work as a share of that of another one: the median of pairs of short runs. A processor that others use, too, drifts by
/// tenths within a minute, and the fastest of several runs is the one with the luckiest places in memory. The runs of a pair therefore go
/// at the same time on one core, where the system lets us choose it: they take turns of milliseconds, and what slows one slows both.
fn share(work: &Work, other: &Work) -> f64 {
    const ONE_CORE: [&str; 3] = ["taskset", "--cpu-list", "0"];
    let chosen = Command::new(ONE_CORE[0]).args(&ONE_CORE[1..]).arg("true").output().is_ok_and(|output| output.status.success());
    let core = if chosen { &ONE_CORE[..] } else { &[] };
    let per_hop = |work: &Work| {
        let [short, long] = [work.counted[0], work.timed[0]].map(|end| command(work, "--one", end, core).0);
        (long.cpu_s - short.cpu_s) / (long.hops - short.hops)
    };
    let both = |first: &Work, second: &Work| match chosen {
        true => std::thread::scope(|scope| {
            let first = scope.spawn(|| per_hop(first));
            let second = per_hop(second);
            (first.join().expect("a run that succeeds"), second)
        }),
        false => (per_hop(first), per_hop(second)),
    };
    let pair = |i| {
        // Each begins in half of the pairs.
        let (one, two) = if i % 2 == 0 { both(other, work) } else { both(work, other) };
        if i % 2 == 0 { one / two } else { two / one }
    };
    let mut shares: Vec<f64> = (0..PAIRS).map(pair).collect();
    shares.sort_by(f64::total_cmp);
    shares[PAIRS / 2]
}

/// The speed on two threads, as a multiple of that on one, by wall time.
fn gain(work: &Work) -> f64 {
    let [one, two] = in_turns(work, ["--one", "--two"], |run| run.wall_s);
    one / two
}

/// The time per hop by the tree and in windows, and how many times as fast windows are.
fn both_orders(work: &Work) -> String {
    let [tree, windows] = in_turns(work, ["--tree", "--windows"], |run| run.cpu_s);
    format!("{:.1} {:.1} {:.2}", tree * 1e9, windows * 1e9, tree / windows)
}

/// Instructions per hop; `None` without valgrind.
fn instructions(work: &Work) -> Option<f64> {
    // Cachegrind counts the same as callgrind, in half the time.
    const VALGRIND: [&str; 5] = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", "--"];
    Command::new("valgrind").arg("--version").output().ok()?;
    let count = |end: &str| {
        let (run, err) = command(work, "--one", end, &VALGRIND);
        let (_, number) =
            err.lines().find_map(|line| line.split_once("refs:")).expect("cachegrind prints the number of instructions");
        (number.replace(',', "").trim().parse::<f64>().expect("a number"), run.hops)
    };
    let [(few, short), (many, long)] = work.counted.map(count);
    Some((many - few) / (long - short))
}

// ------------------------------------------------------------------------------------------------ the table

/// Builds the plug-in in C that a row runs.
fn build_plugin() {
    let root = folder().join("..");
    let (source, include) = (root.join("crates/plugin/new/transport/c/mine.c"), root.join("crates/plugin/include"));
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-O2", "-fPIC", "-shared", "-o"])
        .arg(root.join("target/bench-plugin.so"))
        .arg(source)
        .arg("-I")
        .arg(include);
    assert!(cc.status().is_ok_and(|status| status.success()), "{cc:?} failed");
}

/// Translates the plug-in in WebAssembly that a row runs, with the package of the Python environment. Returns whether
/// it is installed.
fn build_module() -> bool {
    let root = folder().join("..");
    let mut python = Command::new(root.join(".venv/bin/python"));
    python.args(["-c", "import sys, wasmtime; open(sys.argv[2], 'wb').write(wasmtime.wat2wasm(open(sys.argv[1]).read()))"]);
    python.arg(root.join("crates/plugin/tests/dctcp.wat")).arg(root.join("target/bench-plugin.wasm"));
    python.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Returns the folder of the package `wasmtime` in the Python environment.
fn wasmtime() -> Option<PathBuf> {
    let versions = std::fs::read_dir(folder().join("../.venv/lib")).ok()?;
    versions.filter_map(|version| Some(version.ok()?.path().join("site-packages/wasmtime"))).find(|found| found.is_dir())
}

/// Prints the rows whose names have one of `words`, or all of them.
fn table(words: &[&str]) -> ExitCode {
    let chosen = |row: &&Row| words.is_empty() || words.iter().any(|word| row.name.contains(word));
    if !ROWS.iter().any(|row| chosen(&row)) {
        eprintln!("error: no row has {words:?} in its name: {:?}", ROWS.map(|row| row.name));
        return ExitCode::from(2);
    }
    build_plugin();
    let has_wasmtime = build_module();
    println!(
        "In parentheses: the required and the desired value; behind a colon: the share of another row's hops/s, which its name or the documentation says, as the median of pairs of runs at the same time on one core. Times are processor time of one thread; what two threads gain is wall time. The last column has ns per hop by the tree and in windows, and how many times as fast windows are. Equal digests mean equal results.\n"
    );
    let cell = |value: Option<f64>, digits: usize| value.map_or("-".to_owned(), |v| format!("{v:.digits$}"));
    let asked = |value: String, want: Option<[f64; 2]>| match want {
        Some([least, better]) => format!("{value} ({least}, {better})"),
        None => value,
    };
    println!(
        "{:<46} {:>16} {:>7} {:>16} {:>11} {:>9} {:>16} {:>17} {:>17}  digest",
        "work", "M hops/s", "ns/hop", "instr./hop", "events/hop", "set-up", "peak MB", "2 threads", "tree, windows"
    );
    for row in ROWS.iter().filter(chosen) {
        if row.name == WASM && !has_wasmtime {
            println!("{:<46} {:>16}", row.name, "no wasmtime");
            continue;
        }
        let [short, long] = row.work.timed.map(|end| timed(&row.work, end));
        let ns = (long.cpu_s - short.cpu_s) / (long.hops - short.hops) * 1e9;
        let speed = cell(Some(1e3 / ns), 1);
        let speed = match row.share_of {
            Some((other, least)) => {
                let other = ROWS.iter().find(|row| row.name == other).expect("a row of the table");
                format!("{speed}: {:.3} ({least})", share(&row.work, &other.work))
            }
            None => asked(speed, row.mega_hops_per_s),
        };
        let counted = if row.work.counted == ["0s"; 2] { None } else { instructions(&row.work) };
        println!(
            "{:<46} {:>16} {:>7} {:>16} {:>11} {:>9} {:>16} {:>17} {:>17}  {}",
            row.name,
            speed,
            cell(Some(ns), 1),
            asked(cell(counted, 0), row.instructions),
            cell(Some((long.events - short.events) / (long.hops - short.hops)), 3),
            format!("{:.0} ms", (short.cpu_s - short.hops * ns * 1e-9) * 1e3),
            asked(cell(Some(long.peak_bytes * 1e-6), 1), row.peak_mb),
            asked(cell(row.two_threads.map(|_| gain(&row.work)), 2), row.two_threads),
            if row.both_orders { both_orders(&row.work) } else { "-".to_owned() },
            long.digest,
        );
    }
    ExitCode::SUCCESS
}

// ------------------------------------------------------------------------------------------------ the gate

fn gate() -> ExitCode {
    let path = folder().join("instructions.txt");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let known = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ").map(str::to_owned));
    let mut counts = Vec::new();
    for (name, work) in &GATE {
        let Some(count) = instructions(work) else {
            eprintln!("valgrind is not installed: instructions per hop are not checked");
            return ExitCode::SUCCESS;
        };
        counts.push((*name, count));
    }
    if std::env::var_os("FLOWLOOM_UPDATE").is_some() {
        let mut text =
            "# Instructions per hop that `make gate` accepts. Written by `make golden`; say why in the commit.\n".to_owned();
        text.push_str(&format!("compiler: {}\n", compiler()));
        counts.iter().for_each(|(name, count)| text.push_str(&format!("{name}: {count:.1}\n")));
        std::fs::write(&path, text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        return ExitCode::SUCCESS;
    }
    let same = known("compiler").is_some_and(|known| known == compiler());
    let tolerance = if same { TOLERANCE } else { OTHER_COMPILER };
    let mut passed = true;
    for (name, count) in counts {
        let limit: f64 = known(name).and_then(|n| n.parse().ok()).unwrap_or(0.0);
        let more = count / limit - 1.0;
        println!("{name:<8} {count:>6.1} instructions per hop, {limit:.1} before ({:+.1} %)", more * 100.0);
        passed &= more <= tolerance;
    }
    if passed {
        return ExitCode::SUCCESS;
    }
    eprintln!("error: a hop takes over {:.0} % more instructions than before", tolerance * 100.0);
    eprintln!("hint: `cargo bench -p flowloom-sim --bench hops` shows all; `make golden` accepts the new numbers");
    ExitCode::FAILURE
}

/// The version of the compiler, since counts differ between compilers.
fn compiler() -> String {
    let output = Command::new("rustc").arg("--version").output();
    output.map_or("unknown".to_owned(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

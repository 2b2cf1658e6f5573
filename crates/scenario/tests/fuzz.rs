//! No text makes the reader panic: scenarios with random damage are read, and their flows are drawn
//! if they can still run.

use proptest::prelude::*;
use scenario::Options;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// Scenarios that can run, and all of `bad/`.
static SEEDS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut texts = vec![GOOD.to_owned()];
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder().join("bad")).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    texts.extend(paths.iter().filter(|p| p.extension().is_some_and(|e| e == "toml")).map(|p| std::fs::read_to_string(p).unwrap()));
    texts
});

const GOOD: &str = r#"
name = "all"
seed = [1, 2]
end = "1s"
mtu = "1500B"
topology = { kind = "leaf_spine", leaves = 2, spines = 2, hosts_per_leaf = 3 }
workload.web = { kind = "poisson", flows = 20, load = [0.2, 0.5], size = "cdf", cdf = "homa-w3", load_ref = "uplinks", deadline = { kind = "exponential", mean = "5ms" } }
workload.burst = { kind = "incast", senders = 3, size = "64KB", repeat = 2, receiver = 1, deadline = "1ms" }
workload.bulk = { kind = "long", stagger = "1us" }
[[system]]
label = "MERP"
transport = { kind = "merp", theta = [0.7, "800Mbps"] }
qdisc = { kind = "strict", classes = 4, evict = "worst_class", limit = ["100pkt", "150KB"] }
agent = { kind = "merp" }
nic = { low_water = "unlimited", qdisc = { limit = "1MB" } }
[[system]]
transport = { kind = "newreno", init_window = "auto" }
router = { kind = "ecmp", hash = "crc16" }
[[event]]
link = ["leaf0", "spine1"]
at = "1ms"
until = ["2ms", "3ms"]
[[event]]
random = { probability = 0.1, tier = "leaf-spine" }
[failure]
unreachable = "run"
[sample]
flows = true
[profile.smoke]
event.1.at = "1us"
workload.web.flows = 3
system.MERP.agent.alpha = 0.9
"#;

/// Words with a meaning in scenarios, and extreme values.
const WORDS: [&str; 40] = [
    "[",
    "]",
    "[[system]]",
    "[topology]",
    "[profile.x]",
    "\"",
    "'",
    "=",
    ".",
    ",",
    "{",
    "}",
    "\n",
    "#",
    "kind = ",
    "\"merp\"",
    "\"poisson\"",
    "\"fat_tree\"",
    "\"file\"",
    "\"star\"",
    "nan",
    "-inf",
    "0",
    "-1",
    "18446744073709551615",
    "9223372036854775807",
    "1e300",
    "0.000000001",
    "\"0ps\"",
    "\"18446744s\"",
    "\"99999999Tbps\"",
    "\"1B\"",
    "\"unlimited\"",
    "\"auto\"",
    "[]",
    "[1, 2]",
    "true",
    "ä",
    "\u{0}",
    "1979-05-27T07:32:00Z",
];

#[derive(Clone, Debug)]
enum Damage {
    Cut(prop::sample::Index, usize),
    Insert(prop::sample::Index, &'static str),
    Byte(prop::sample::Index, char),
    /// Replaces the value of a line by a word.
    Value(prop::sample::Index, &'static str),
    Repeat(prop::sample::Index),
    Drop(prop::sample::Index),
    Swap(prop::sample::Index, prop::sample::Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<prop::sample::Index>;
    let word = || prop::sample::select(WORDS.to_vec());
    prop_oneof![
        (at(), 1usize..20).prop_map(|(i, n)| Damage::Cut(i, n)),
        (at(), word()).prop_map(|(i, w)| Damage::Insert(i, w)),
        (at(), any::<char>()).prop_map(|(i, c)| Damage::Byte(i, c)),
        (at(), word()).prop_map(|(i, w)| Damage::Value(i, w)),
        at().prop_map(Damage::Repeat),
        at().prop_map(Damage::Drop),
        (at(), at()).prop_map(|(i, j)| Damage::Swap(i, j)),
    ]
}

fn apply(text: String, damage: &Damage) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if chars.is_empty() || lines.is_empty() {
        return text;
    }
    match damage {
        Damage::Cut(i, n) => {
            let from = i.index(chars.len());
            chars.drain(from..(from + n).min(text.chars().count()));
        }
        Damage::Insert(i, word) => {
            let at = i.index(chars.len());
            chars.splice(at..at, word.chars());
        }
        Damage::Byte(i, c) => {
            let at = i.index(chars.len());
            chars[at] = *c;
        }
        Damage::Value(i, word) => {
            let n = lines.len();
            let line = &mut lines[i.index(n)];
            *line = line.split_once('=').map_or(line.clone(), |(key, _)| format!("{key}= {word}"));
            return lines.join("\n");
        }
        Damage::Repeat(i) => {
            let line = lines[i.index(lines.len())].clone();
            lines.push(line);
            return lines.join("\n");
        }
        Damage::Drop(i) => {
            lines.remove(i.index(lines.len()));
            return lines.join("\n");
        }
        Damage::Swap(i, j) => {
            let n = lines.len();
            lines.swap(i.index(n), j.index(n));
            return lines.join("\n");
        }
    }
    chars.into_iter().collect()
}

/// Reads a scenario. If it can run, draws its flows; if not, renders its error messages.
fn read(text: &str, options: &Options) {
    match scenario::load(text, "fuzz.toml", &folder(), options) {
        Ok(plan) => {
            let again = scenario::load(plan.resolved(), "again.toml", &folder(), &Options::default());
            let again = again.unwrap_or_else(|e| panic!("{e}\nfrom\n{text}"));
            assert!(again.points == plan.points, "{text}\nbecame\n{}", plan.resolved());
            let run = &plan.points[0].run;
            let small = run.workloads.iter().all(|(_, t)| {
                t.workload.show().iter().all(|(_, v)| v.parse::<f64>().is_ok_and(|n| n < 1e5) || v.parse::<f64>().is_err())
            });
            if small && let Ok(flows) = run.flows() {
                assert!(flows.iter().all(|f| f.src != f.dst && f.size_bytes > 0 && f.size_wire_bytes > f.size_bytes));
            }
        }
        Err(problems) => {
            assert!(!problems.items().is_empty());
            assert!(problems.to_string().contains("hint: "));
        }
    }
}

#[test]
fn the_seeds_are_read() {
    read(GOOD, &Options::default());
    assert!(scenario::load(GOOD, "good.toml", &folder(), &Options::default()).is_ok());
    SEEDS.iter().for_each(|text| read(text, &Options::default()));
}

/// Returns the number of damaged texts, and of settings: 500, or 5000 in `make slow`.
fn cases() -> u32 {
    if std::env::var_os("FLOWLOOM_FUZZ").is_some() { 5000 } else { 500 }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damage_never_makes_it_panic(seed in any::<prop::sample::Index>(), all in prop::collection::vec(damage(), 1..6)) {
        // In half of the cases, the scenario that uses all features.
        let seeds = &*SEEDS;
        let i = seed.index(2 * seeds.len());
        let text = all.iter().fold(seeds[i.min(seeds.len()) % seeds.len()].clone(), apply);
        read(&text, &Options::default());
        read(&text, &Options { profiles: vec!["smoke".to_owned()], ..Options::default() });
    }

    #[test]
    fn settings_never_make_it_panic(
        key in "(system|workload|topology|seed|end|nic|sample|profile|[a-z\".]{1,6})(\\.(MERP|web|newreno|\"MERP\"|[a-z\".]{0,5})){0,2}(\\.(kind|load|limit|qdisc|nic|transport|theta|[a-z.]{0,6})){0,2}",
        value in prop_oneof![prop::sample::select(WORDS.to_vec()).prop_map(str::to_owned), ".{0,12}"],
    ) {
        read(GOOD, &Options { set: vec![(key, value)], ..Options::default() });
    }

    #[test]
    fn tables_never_make_it_panic(text in "(# ?(mean_bytes|quantum_bytes|interpolation): ?[0-9a-z.]{0,6}\n)?(size_bytes,cum_prob\n)?([0-9.e-]{0,6}[, \t][0-9.e-]{0,4}[, ]?[0-9.]{0,4}\n){0,6}") {
        use scenario::workload::cdf::{Format, parse};
        for format in [Format::Own, Format::Hpcc, Format::Common, Format::Ns2, Format::Homa] {
            if let Ok(table) = parse("t", &text, format) {
                prop_assert!(table.mean().is_finite() && (1..=11).all(|i| table.draw(f64::from(i) / 11.0) >= 1));
            }
        }
    }
}

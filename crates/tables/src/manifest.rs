//! The manifests of runs and of points: JSON files that end in a hash of themselves.
//!
//! A manifest is input like any other file. [`read`] checks its hash, and every name in it that
//! becomes a part of a path.

use crate::error::{Error, Result};
use crate::parquet::{self, Written};
use crate::schema::{CounterColumn, POINT_TABLES, RUN_TABLES, SCHEMA_VERSION, file_name};
use crate::stats::{self, Metric};
use base::Dur;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sim::Outcome;
use sim::cut::Uncut;
use sim::outcome::{Deadlock, Engine, PortRow};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The program's version, and a hash of the sources that decide what a run does.
pub const PROGRAM: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("FLOWLOOM_SOURCES"));

/// The manifests' name, in a run folder and in a point's.
pub const FILE: &str = "manifest.json";

/// Which point of a sweep.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointKey {
    /// Its folder's name.
    pub id: String,
    /// The system's label.
    pub system: String,
    /// The seed.
    pub seed: u64,
    /// Swept keys with their values as written.
    pub swept: Vec<(String, String)>,
}

/// A run: all points of a scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunManifest {
    /// Layout of the folder.
    pub schema_version: u32,
    /// Version and source hash of the program that wrote it.
    pub program: String,
    /// The scenario's name.
    pub name: String,
    /// The profiles that were laid over the scenario, in order: `literal,smoke`.
    pub profile: Option<String>,
    /// All points are done.
    pub complete: bool,
    /// Why the run ended: `finished`, `stopped`, `failed`, `lost` (something removed points while
    /// it ran), `share` (only some points were asked for), or `running`.
    pub stop_reason: String,
    /// When it began, in UTC. Dates, wall time and memory are all that differs between equal runs.
    pub started: String,
    /// When it ended; empty while it runs.
    pub ended: String,
    /// Wall time, in seconds, of the last invocation.
    pub wall_s: f64,
    /// Points run at the same time.
    pub jobs: u32,
    /// Most memory that the program held, in bytes, where the system tells.
    pub peak_memory_bytes: Option<u64>,
    /// Names of the workloads, by index.
    pub workloads: Vec<String>,
    /// Swept keys, in the order of the scenario.
    pub sweep_keys: Vec<String>,
    /// The systems' labels, in the order of the scenario.
    pub labels: Vec<String>,
    /// All points in order.
    pub points: Vec<PointKey>,
    /// The files that the scenario reads.
    pub inputs: Vec<Input>,
    /// The points that are done, by folder, each with the hash of its manifest. While the run
    /// writes, those that it began with.
    pub done: BTreeMap<String, String>,
    /// The tables over all points as they were written. While the run writes there are none.
    pub files: Vec<Written>,
    /// The resolved scenario, every default included, as TOML.
    pub config: String,
    /// The hash at the end of the file, of a manifest that was read.
    #[serde(skip)]
    pub manifest_hash: String,
}

/// A file that a scenario reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// Its path, as the scenario writes it.
    pub path: String,
    /// A hash of its content without a byte order mark, 16 hexadecimal digits.
    pub hash: String,
}

/// Whether a point counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It ran to its end.
    #[default]
    Done,
    /// It was stopped from outside.
    Interrupted,
}

impl State {
    /// The word in tables.
    pub fn name(self) -> &'static str {
        match self {
            State::Done => "done",
            State::Interrupted => "interrupted",
        }
    }
}

/// Metrics by name.
pub type NamedValues = Vec<(String, Option<f64>)>;

/// A point.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PointManifest {
    /// Layout of the folder.
    pub schema_version: u32,
    /// Version and source hash of the program that ran it.
    pub program: String,
    /// Which point.
    #[serde(flatten)]
    pub key: PointKey,
    /// Hash of all that the point's result depends on: its part of the scenario, and its flows.
    pub config_hash: String,
    /// Hash of the flows drawn before the run.
    pub flows_hash: String,
    /// Whether it counts.
    pub state: State,
    /// An ideal reference: its flows were served by a fluid schedule, not simulated.
    pub ideal: bool,
    /// What moved the flows: `packet`, `flow`, or `ideal`.
    #[serde(default = "packet")]
    pub engine: String,
    /// Why the run ended: `finished`, `end`, `stopped`, `deadlock`.
    pub stop_reason: String,
    /// Switches that wait for each other for ever: when that was noticed, and the ports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadlock: Option<String>,
    /// When it began, in UTC.
    pub started: String,
    /// When it ended.
    pub ended: String,
    /// Wall time in seconds.
    pub wall_s: f64,
    /// Threads that ran it.
    #[serde(default = "one")]
    pub threads: u32,
    /// Why only one did, where more could have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_thread: Option<String>,
    /// Totals of the run.
    pub counters: Totals,
    /// What the system's entries count of flows: columns of the flows' table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flow_counters: Vec<CounterColumn>,
    /// What the system's entries count of ports: columns of the ports' table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub port_counters: Vec<CounterColumn>,
    /// All metrics, those that depend on the machine included.
    pub metrics: NamedValues,
    /// The metrics of flows of each workload, by its name, where there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_workload: Vec<(String, NamedValues)>,
    /// The point's tables as they were written; none of a point that was interrupted.
    #[serde(default)]
    pub files: Vec<Written>,
    /// The hash at the end of the file, of a manifest that was read or written.
    #[serde(skip)]
    pub manifest_hash: String,
}

/// Points that were written before there could be more.
fn one() -> u32 {
    1
}

/// Points that were written before there was another engine.
fn packet() -> String {
    Engine::Packet.name().to_owned()
}

/// Totals of a run; see [`sim::outcome::Counters`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)] // As in `sim::outcome::Counters`.
pub struct Totals {
    pub events: u64,
    pub hops: u64,
    pub end_ps: u64,
    pub sent_packets: u64,
    pub delivered_packets: u64,
    pub dropped_packets: u64,
    #[serde(default)]
    pub lost_packets: u64,
    /// The measurement window.
    #[serde(default)]
    pub window_ps: Option<(u64, u64)>,
    /// Flows that count in no metric: under way at a start in the steady state, behind the last that counts, or outside the window.
    #[serde(default)]
    pub not_measured: u64,
    /// 16 hexadecimal digits.
    pub digest: String,
}

/// `s0->s1, s1->s2, s2->s0 wait for each other since 1.2ms or earlier; 7 ports never send again`.
fn told(deadlock: &Deadlock, ports: &[PortRow]) -> String {
    let names: BTreeMap<u32, &str> = ports.iter().map(|port| (port.port_id, port.name.as_str())).collect();
    let classes = deadlock.cycle.iter().any(|(_, class)| *class > 0);
    let port = |(port, class): &(u32, u8)| {
        let name = names.get(port).copied().unwrap_or_default();
        if classes { format!("{name} class {class}") } else { name.to_owned() }
    };
    let cycle: Vec<String> = deadlock.cycle.iter().map(port).collect();
    let (at, stuck) = (Dur(deadlock.at_ps), deadlock.stuck);
    format!("{} wait for each other since {at} or earlier; {stuck} ports never send again", cycle.join(", "))
}

/// What the caller knows of the run of a point, beside its outcome.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ran {
    /// Hash of all that the point's result depends on.
    pub config_hash: String,
    /// Hash of the flows.
    pub flows_hash: String,
    /// When it began, in UTC.
    pub started: String,
    /// When it ended.
    pub ended: String,
    /// Wall time in seconds.
    pub wall_s: f64,
}

impl PointManifest {
    /// Of a run that has just ended, whose tables are in `files`. `workloads` are the names of the workloads by index.
    pub fn new(key: &PointKey, outcome: &Outcome, ran: &Ran, workloads: &[String], files: Vec<Written>) -> PointManifest {
        let counters = &outcome.counters;
        let metrics = stats::Point::new(&outcome.flows, &outcome.ports, counters, ran.wall_s).metrics();
        // Most scenarios have no flows that wait.
        let known =
            |metric: &Metric, value: Option<f64>| metric.from.is_known(outcome.engine) && (!metric.optional || value.is_some());
        let named = |metrics: Vec<(&'static Metric, Option<f64>)>| {
            let known = metrics.into_iter().filter(|(metric, value)| known(metric, *value));
            known.map(|(metric, value)| (metric.name.to_owned(), value)).collect::<NamedValues>()
        };
        let of_workload = |(index, name): (u16, &String)| {
            let flows = outcome.flows.iter().filter(move |flow| flow.workload == index);
            (name.clone(), named(stats::Point::of_flows(flows)))
        };
        let by_workload = (0..).zip(workloads).filter(|_| workloads.len() > 1).map(of_workload).collect();
        PointManifest {
            schema_version: SCHEMA_VERSION,
            program: PROGRAM.to_owned(),
            key: key.clone(),
            config_hash: ran.config_hash.clone(),
            flows_hash: ran.flows_hash.clone(),
            state: if outcome.complete { State::Done } else { State::Interrupted },
            ideal: outcome.engine == Engine::Ideal,
            engine: outcome.engine.name().to_owned(),
            stop_reason: outcome.stop_reason.name().to_owned(),
            deadlock: outcome.deadlock.as_ref().map(|deadlock| told(deadlock, &outcome.ports)),
            started: ran.started.clone(),
            ended: ran.ended.clone(),
            wall_s: ran.wall_s,
            threads: outcome.threads.max(1),
            one_thread: outcome.uncut.and_then(Uncut::reason).map(str::to_owned),
            counters: Totals {
                events: counters.events,
                hops: counters.hops,
                end_ps: counters.end_ps,
                sent_packets: counters.sent_packets,
                delivered_packets: counters.delivered_packets,
                dropped_packets: counters.dropped_packets,
                lost_packets: counters.lost_packets,
                not_measured: outcome.flows.iter().filter(|flow| !flow.measured).count() as u64,
                window_ps: counters.window.map(|window| (window.from_ps, window.until_ps)),
                digest: format!("{:016x}", counters.digest),
            },
            flow_counters: CounterColumn::all(&outcome.flow_counters),
            port_counters: CounterColumn::all(&outcome.port_counters),
            metrics: named(metrics),
            by_workload,
            files,
            manifest_hash: String::new(),
        }
    }
    /// The value of a metric.
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.metrics.iter().find(|(n, _)| n == name).and_then(|(_, value)| *value)
    }
}

/// What a manifest holds.
pub trait Manifest: Serialize + DeserializeOwned {
    /// Fails if a name that becomes a part of a path is not a name that this program gives.
    fn check_names(&self) -> std::result::Result<(), String>;
    /// Takes the hash at the end of the file.
    fn set_hash(&mut self, hash: String);
}

impl Manifest for RunManifest {
    fn check_names(&self) -> std::result::Result<(), String> {
        let mut known = BTreeSet::new();
        for key in &self.points {
            check_id(&key.id)?;
            if !known.insert(key.id.as_str()) {
                return Err(format!("it has the point `{}` twice", key.id.escape_debug()));
            }
        }
        self.done.keys().try_for_each(|id| check_id(id))?;
        check_files(&self.files, &RUN_TABLES)
    }
    fn set_hash(&mut self, hash: String) {
        self.manifest_hash = hash;
    }
}

impl Manifest for PointManifest {
    fn check_names(&self) -> std::result::Result<(), String> {
        check_id(&self.key.id)?;
        check_files(&self.files, &POINT_TABLES)
    }
    fn set_hash(&mut self, hash: String) {
        self.manifest_hash = hash;
    }
}

/// Fails if a text is not the name of a point's folder.
fn check_id(id: &str) -> std::result::Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    if !id.is_empty() && id.len() < 256 && !id.starts_with('.') && id.chars().all(plain) {
        return Ok(());
    }
    Err(format!("the point `{}` is not the name of a folder of `a-z`, `0-9`, `.`, `-` and `_`", id.escape_debug()))
}

/// Fails if a file is not one of these tables.
fn check_files(files: &[Written], tables: &[&str]) -> std::result::Result<(), String> {
    match files.iter().find(|file| tables.iter().all(|table| file.name != file_name(table))) {
        None => Ok(()),
        Some(file) => {
            let tables: Vec<String> = tables.iter().map(|table| file_name(table)).collect();
            Err(format!("the file `{}` is not one of {}", file.name.escape_debug(), tables.join(", ")))
        }
    }
}

/// Writes a manifest, at once or not at all. Returns the hash at its end.
pub fn write<T: Manifest>(path: &Path, manifest: &T) -> Result<String> {
    let text = serde_json::to_string_pretty(manifest).expect("a manifest has text keys only");
    let body = text.strip_suffix("\n}").expect("a manifest is an object with fields");
    let hash = parquet::hash(body.as_bytes());
    parquet::replace(path, format!("{body}{}", end(&hash)).as_bytes())?;
    Ok(hash)
}

/// The end of a manifest, behind the text that the hash is of.
fn end(hash: &str) -> String {
    format!(",\n  \"manifest_hash\": \"{hash}\"\n}}\n")
}

/// The hash of a manifest, if its end says the same.
fn hash_of(text: &[u8]) -> Option<String> {
    let (body, found) = text.split_at_checked(text.len().checked_sub(end(&parquet::hash(&[])).len())?)?;
    let hash = parquet::hash(body);
    (found == end(&hash).as_bytes()).then_some(hash)
}

/// Reads a manifest of this program's layout. `None`: there is no file.
pub fn read<T: Manifest>(path: &Path) -> Result<Option<T>> {
    #[derive(Deserialize)]
    struct Layout {
        schema_version: u32,
    }
    let text = match std::fs::read(path) {
        Ok(text) => text,
        Err(e) if matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => return Ok(None),
        Err(e) => return Err(Error::io("read", path, e)),
    };
    let layout: Layout = serde_json::from_slice(&text).map_err(|e| Error::damaged(path, why(&e)))?;
    if layout.schema_version != SCHEMA_VERSION {
        return Err(Error::Version { path: path.to_owned(), found: layout.schema_version });
    }
    let hash = hash_of(&text).ok_or_else(|| Error::damaged(path, parquet::OTHER_CONTENT))?;
    let mut manifest: T = serde_json::from_slice(&text).map_err(|e| Error::damaged(path, why(&e)))?;
    manifest.check_names().map_err(|why| Error::damaged(path, why))?;
    manifest.set_hash(hash);
    Ok(Some(manifest))
}

/// What is wrong with the text of a manifest.
fn why(error: &serde_json::Error) -> String {
    use serde_json::error::Category;
    let place = format!("line {}, column {}", error.line(), error.column());
    match error.classify() {
        Category::Eof if error.line() <= 1 => "it is empty or cut off in its first line".to_owned(),
        Category::Eof => format!("it is cut off at {place}"),
        Category::Syntax | Category::Io => format!("it is not JSON at {place}"),
        Category::Data => format!("it is JSON, but not that of a manifest, at {place}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn point(id: &str, file: &str) -> PointManifest {
        let files = vec![Written { name: file.into(), ..Written::default() }];
        PointManifest {
            schema_version: SCHEMA_VERSION,
            key: PointKey { id: id.into(), ..PointKey::default() },
            metrics: vec![("mean_slowdown".into(), Some(2.2))],
            files,
            ..PointManifest::default()
        }
    }

    #[test]
    fn a_manifest_that_was_changed_anywhere_is_damaged() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        let written = point("a-seed1", "flows.parquet");
        let hash = write(&path, &written).unwrap();
        let whole = fs::read(&path).unwrap();
        assert_eq!(read(&path).unwrap(), Some(PointManifest { manifest_hash: hash.clone(), ..written }));
        // As docs/data.md says it.
        let text = String::from_utf8(whole.clone()).unwrap();
        let (body, rest) = text.split_once(",\n  \"manifest_hash\"").unwrap();
        assert_eq!(
            (parquet::hash(body.as_bytes()), rest),
            (hash, format!(": \"{}\"\n}}\n", parquet::hash(body.as_bytes())).as_str())
        );
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            fs::write(&path, changed).unwrap();
            let error = read::<PointManifest>(&path).unwrap_err();
            // A digit of the layout's number is another layout.
            assert!(matches!(error, Error::Damaged { .. } | Error::Version { .. }), "byte {at}: {error}");
        }
        fs::write(&path, text.replace("2.2", "22.0")).unwrap();
        assert!(read::<PointManifest>(&path).unwrap_err().to_string().ends_with("its content is not what was written"));
    }

    #[test]
    fn names_that_lead_elsewhere_are_damage() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        let tried = |id: &str, file: &str| {
            write(&path, &point(id, file)).unwrap();
            read::<PointManifest>(&path).err().map(|e| e.to_string())
        };
        assert_eq!(tried("TCP_x-load0.5-seed1", "packets.parquet"), None);
        let long = "x".repeat(256);
        for id in ["", ".", "..", "../../escaped", "/tmp/x", "a/b", "a\\b", "a\0", "a\n", ".hidden", "c:", &long] {
            assert!(tried(id, "flows.parquet").unwrap().contains("is not the name of a folder"), "{id:?}");
        }
        for file in ["", "..", "../../evil.parquet", "/flows.parquet", "manifest.json", "points.parquet", "flows.parquet/"] {
            assert!(tried("a", file).unwrap().contains("is not one of flows.parquet, ports.parquet"), "{file:?}");
        }
        let run = |change: &dyn Fn(&mut RunManifest)| {
            let mut run = RunManifest { schema_version: SCHEMA_VERSION, ..RunManifest::default() };
            run.points = ["a", "b"].map(|id| PointKey { id: id.into(), ..PointKey::default() }).to_vec();
            change(&mut run);
            write(&path, &run).unwrap();
            read::<RunManifest>(&path).err().map(|e| e.to_string())
        };
        assert_eq!(run(&|_| {}), None);
        assert!(run(&|run| run.points[1].id = "../b".into()).unwrap().contains("`../b` is not the name"));
        assert!(run(&|run| run.points[1].id = "a".into()).unwrap().contains("the point `a` twice"));
        assert!(run(&|run| drop(run.done.insert("../b".into(), String::new()))).unwrap().contains("`../b` is not the name"));
        let file = Written { name: "flows.parquet".into(), ..Written::default() };
        assert!(run(&|run| run.files.push(file.clone())).unwrap().contains("is not one of points.parquet, summary.parquet"));
    }
}

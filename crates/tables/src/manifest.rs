//! The manifests of runs and of points: JSON files that end with a hash of their own content.
//!
//! A manifest is untrusted input. [`read`] checks its hash, and every name in it that becomes a
//! part of a path.

use crate::error::{Error, Result};
use crate::parquet::{self, Written};
use crate::schema::{CounterColumn, POINT_TABLES, RUN_TABLES, SCHEMA_VERSION, file_name};
use crate::stats::{self, Metric};
use base::Dur;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use sim::Outcome;
use sim::cut::Uncut;
use sim::outcome::{Deadlock, Engine, PortRow, Untouched};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The version of flowloom with a hash of the sources on which results depend.
pub const PROGRAM: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("FLOWLOOM_SOURCES"));

/// The file name of manifests, in the folder of a run and in the folder of a point.
pub const FILE: &str = "manifest.json";

/// The key of a point: its place in the sweep.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointKey {
    /// The name of its folder.
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
    /// The layout of the folder.
    pub schema_version: u32,
    /// Version and source hash of the flowloom that wrote it.
    pub program: String,
    /// The scenario's name.
    pub name: String,
    /// The profiles that were applied to the scenario, in order: `literal,smoke`.
    pub profile: Option<String>,
    /// Whether all points are done.
    pub complete: bool,
    /// Why the run ended: `finished`, `stopped`, `failed`, `lost` (points were removed during the
    /// run), `share` (only some of the points were requested), or `running`.
    pub stop_reason: String,
    /// When the run began, in UTC. Equal runs differ only in dates, wall time and memory.
    pub started: String,
    /// When the run ended; empty during the run.
    pub ended: String,
    /// Wall time of the last invocation in seconds.
    pub wall_s: f64,
    /// Number of points that ran at the same time.
    pub jobs: u32,
    /// Peak memory of the process in bytes, if the operating system reports it.
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
    /// The points that are done, by folder, each with the hash of its manifest. During the run, the
    /// points that were done before it.
    pub done: BTreeMap<String, String>,
    /// The tables over all points as they were written; none during the run.
    pub files: Vec<Written>,
    /// The resolved scenario, every default included, as TOML.
    pub config: String,
    /// The hash at the end of the file, if the manifest was read.
    #[serde(skip)]
    pub manifest_hash: String,
}

/// A file that a scenario reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// Its path as written in the scenario.
    pub path: String,
    /// A hash of its content without a byte order mark, as 16 hexadecimal digits; of a plug-in,
    /// `sha256:` and its SHA-256.
    pub hash: String,
}

/// Whether a point ran to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// The point ran to its end and counts.
    #[default]
    Done,
    /// The point was stopped from outside and does not count.
    Interrupted,
}

impl State {
    /// Returns the word used in tables.
    pub fn name(self) -> &'static str {
        match self {
            State::Done => "done",
            State::Interrupted => "interrupted",
        }
    }
}

/// Values of metrics by name.
pub type NamedValues = Vec<(String, Option<f64>)>;

/// A point.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PointManifest {
    /// The layout of the folder.
    pub schema_version: u32,
    /// Version and source hash of the flowloom that ran it.
    pub program: String,
    /// The key of the point.
    #[serde(flatten)]
    pub key: PointKey,
    /// Hash of everything that the point's result depends on: its part of the scenario, and its
    /// flows.
    pub config_hash: String,
    /// Hash of the flows drawn before the run.
    pub flows_hash: String,
    /// Whether the point ran to its end.
    pub state: State,
    /// Whether the point is an ideal schedule: its flows were served as fluids, not simulated.
    pub ideal: bool,
    /// The engine of the run: `packet`, `flow`, or `ideal`.
    #[serde(default = "packet")]
    pub engine: String,
    /// Why the run ended: `finished`, `end`, `stopped`, `deadlock`.
    pub stop_reason: String,
    /// A deadlock: the ports that pause each other, and when it was detected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadlock: Option<String>,
    /// Failures that touched no traffic, each as text: `a--b, down from 50ms to the end`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untouched: Vec<String>,
    /// When the run of the point began, in UTC.
    pub started: String,
    /// When the run of the point ended.
    pub ended: String,
    /// Wall time in seconds.
    pub wall_s: f64,
    /// Number of threads that ran the point.
    #[serde(default = "one")]
    pub threads: u32,
    /// Why the point ran on one thread although more were available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_thread: Option<String>,
    /// The order of events in a run by packets: `tree` (by time) or `windows` (node by node).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_order: Option<String>,
    /// Why the point did not run in windows although they were wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_windows: Option<String>,
    /// The values chosen for `auto` in the parameters of the transport and the policy, by entry and parameter, as a
    /// scenario writes them: `homa`, `resend_after`, `5ms`. A value that differs between hosts is a range.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub auto: BTreeMap<String, BTreeMap<String, String>>,
    /// Totals of the run.
    pub counters: Totals,
    /// The counters of flows of the system's entries: additional columns of the table of flows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flow_counters: Vec<CounterColumn>,
    /// The counters of ports of the system's entries: additional columns of the table of ports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub port_counters: Vec<CounterColumn>,
    /// All metrics, including those that depend on the machine.
    pub metrics: NamedValues,
    /// The metrics of flows for each workload, by name, if there are several workloads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_workload: Vec<(String, NamedValues)>,
    /// The point's tables as they were written; none if the point was interrupted.
    #[serde(default)]
    pub files: Vec<Written>,
    /// The hash at the end of the file, if the manifest was read or written.
    #[serde(skip)]
    pub manifest_hash: String,
}

/// The number of threads of points that were written before several threads were supported.
fn one() -> u32 {
    1
}

/// The engine of points that were written before other engines were supported.
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
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub no_next_hop: BTreeMap<String, u64>,
    #[serde(default)]
    pub lost_own_packets: u64,
    /// Start and end of the measurement window.
    #[serde(default)]
    pub window_ps: Option<(u64, u64)>,
    /// Flows that count in no metric: already open at a start in the steady state, started after
    /// the last flow that counts, or started outside the window.
    #[serde(default)]
    pub not_measured: u64,
    /// Hash of the counts, as 16 hexadecimal digits.
    pub digest: String,
}

/// Describes a deadlock: `the ports s0->s1, s1->s2, s2->s0 pause each other since 1.2ms or earlier;
/// 7 ports will never send again`.
fn describe(deadlock: &Deadlock, ports: &[PortRow]) -> String {
    let names: BTreeMap<u32, &str> = ports.iter().map(|port| (port.port_id, port.name.as_str())).collect();
    let classes = deadlock.cycle.iter().any(|(_, class)| *class > 0);
    let port = |(port, class): &(u32, u8)| {
        let name = names.get(port).copied().unwrap_or_default();
        if classes { format!("{name} class {class}") } else { name.to_owned() }
    };
    let cycle: Vec<String> = deadlock.cycle.iter().map(port).collect();
    let (at, stuck) = (Dur(deadlock.at_ps), deadlock.stuck);
    format!("the ports {} pause each other since {at} or earlier; {stuck} ports will never send again", cycle.join(", "))
}

/// Describes a failure that touched no traffic: `a--b, down from 50ms to 60ms`.
fn in_words(failure: &Untouched) -> String {
    let until = failure.until_ps.map_or("the end".to_owned(), |at| Dur(at).to_string());
    format!("{}, down from {} to {until}", failure.target, Dur(failure.from_ps))
}

/// Data of the run of a point in addition to its outcome.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ran {
    /// Hash of everything that the point's result depends on.
    pub config_hash: String,
    /// Hash of the flows.
    pub flows_hash: String,
    /// When the run of the point began, in UTC.
    pub started: String,
    /// When the run of the point ended.
    pub ended: String,
    /// Wall time in seconds.
    pub wall_s: f64,
}

impl PointManifest {
    /// Fails if a file in the folder of the point is missing or has changed.
    pub fn check_content(&self, dir: &Path) -> Result<()> {
        self.files.iter().try_for_each(|file| file.check_content(dir))
    }
    /// Creates the manifest of a run that has ended. Its tables are in `files`; `workloads` are the
    /// names of the workloads by index.
    pub fn new(key: &PointKey, outcome: &Outcome, ran: &Ran, workloads: &[String], files: Vec<Written>) -> PointManifest {
        let counters = &outcome.counters;
        let point = stats::Point::new(&outcome.flows, &outcome.ports, counters, ran.wall_s);
        let metrics = point.with_tasks(&outcome.tasks, &outcome.parts).metrics();
        // Optional metrics without a value are left out.
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
        let mut auto = BTreeMap::<String, BTreeMap<String, String>>::new();
        for chosen in &outcome.chosen {
            auto.entry(chosen.kind.to_owned()).or_default().insert(chosen.key.to_owned(), chosen.value());
        }
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
            deadlock: outcome.deadlock.as_ref().map(|deadlock| describe(deadlock, &outcome.ports)),
            untouched: outcome.untouched.iter().map(in_words).collect(),
            started: ran.started.clone(),
            ended: ran.ended.clone(),
            wall_s: ran.wall_s,
            threads: outcome.threads.max(1),
            one_thread: outcome.uncut.and_then(Uncut::reason).map(str::to_owned),
            event_order: outcome.order.map(|order| order.name().to_owned()),
            not_windows: outcome.not_windows.and_then(Uncut::reason).map(str::to_owned),
            auto,
            counters: Totals {
                events: counters.events,
                hops: counters.hops,
                end_ps: counters.end_ps,
                sent_packets: counters.sent_packets,
                delivered_packets: counters.delivered_packets,
                dropped_packets: counters.dropped_packets,
                lost_packets: counters.lost_packets,
                no_next_hop: counters.no_next_hop.iter().cloned().collect(),
                lost_own_packets: counters.lost_own_packets,
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
    /// Returns the value of a metric.
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.metrics.iter().find(|(n, _)| n == name).and_then(|(_, value)| *value)
    }
}

/// The content of a manifest.
pub trait Manifest: Serialize + DeserializeOwned {
    /// Fails if a name that becomes a part of a path is not a name that flowloom gives.
    fn check_names(&self) -> std::result::Result<(), String>;
    /// Stores the hash at the end of the file.
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

/// Writes a manifest atomically. Returns the hash at its end.
pub fn write<T: Manifest>(path: &Path, manifest: &T) -> Result<String> {
    let text = serde_json::to_string_pretty(manifest).expect("a manifest has text keys only");
    let body = text.strip_suffix("\n}").expect("a manifest is an object with fields");
    let hash = parquet::hash(body.as_bytes());
    parquet::replace(path, format!("{body}{}", end(&hash)).as_bytes())?;
    Ok(hash)
}

/// Returns the end of a manifest, after the text that is hashed.
fn end(hash: &str) -> String {
    format!(",\n  \"manifest_hash\": \"{hash}\"\n}}\n")
}

/// Returns the hash of a manifest if it equals the hash at its end.
fn hash_of(text: &[u8]) -> Option<String> {
    let (body, found) = text.split_at_checked(text.len().checked_sub(end(&parquet::hash(&[])).len())?)?;
    let hash = parquet::hash(body);
    (found == end(&hash).as_bytes()).then_some(hash)
}

/// Reads a manifest of the current layout. `None` if there is no file.
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

/// Describes an error in the text of a manifest.
fn why(error: &serde_json::Error) -> String {
    use serde_json::error::Category;
    let place = format!("line {}, column {}", error.line(), error.column());
    match error.classify() {
        Category::Eof if error.line() <= 1 => "it is empty or cut off in its first line".to_owned(),
        Category::Eof => format!("it is cut off at {place}"),
        Category::Syntax | Category::Io => format!("it is not JSON at {place}"),
        Category::Data => format!("it is JSON, but not a manifest, at {place}"),
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
        // The hash as docs/data.md defines it.
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
            // A changed digit of the layout's number makes it another layout.
            assert!(matches!(error, Error::Damaged { .. } | Error::Version { .. }), "byte {at}: {error}");
        }
        fs::write(&path, text.replace("2.2", "22.0")).unwrap();
        assert!(read::<PointManifest>(&path).unwrap_err().to_string().ends_with("its content is not what was written"));
    }

    #[test]
    fn names_that_lead_out_of_the_folder_are_damage() {
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

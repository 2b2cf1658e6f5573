//! Run folders, written: one folder per run, in it one per point, everything at once or not at all.
//!
//! A point's manifest is written last, so that a point with a manifest is whole. The run's own files are derived from the points'
//! manifests and can be made again at any time.

use crate::error::{Error, Result};
use crate::manifest::{self, PROGRAM, PointKey, PointManifest, Ran, RunManifest, State};
use crate::parquet;
use crate::results::Results;
use crate::schema::{CounterColumn, FLOWS, PACKETS, PORTS, SAMPLES, Table};
use sim::Outcome;
use std::fs;
use std::path::{Path, PathBuf};

/// The file that is locked while a run writes.
const LOCK: &str = ".lock";

/// A run folder that this process alone writes to. The system frees it when the process ends, however it ends.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    _lock: fs::File,
}

impl RunDir {
    /// Takes a folder, making it where it is missing. Refused when another run has it, or when it holds anything but a run.
    pub fn take(path: &Path) -> Result<RunDir> {
        if is_occupied(path)? {
            return Err(Error::Occupied { path: path.to_owned() });
        }
        fs::create_dir_all(path).map_err(|e| Error::io("create", path, e))?;
        let lock_path = path.join(LOCK);
        let lock = fs::File::create(&lock_path).map_err(|e| Error::io("create", &lock_path, e))?;
        match lock.try_lock() {
            Ok(()) => Ok(RunDir { path: path.to_owned(), _lock: lock }),
            Err(fs::TryLockError::WouldBlock) => Err(Error::InUse { path: path.to_owned() }),
            Err(fs::TryLockError::Error(e)) => Err(Error::io("lock", &lock_path, e)),
        }
    }
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// The point's manifest, if it was finished by this program with this configuration.
    pub fn finished(&self, key: &PointKey, config_hash: &str) -> Result<Option<PointManifest>> {
        let path = self.path.join(&key.id).join(manifest::FILE);
        let found: Option<PointManifest> = match manifest::read(&path) {
            // An older layout, or half a file of a dead disk: run it again.
            Err(Error::Version { .. } | Error::Damaged { .. }) => None,
            other => other?,
        };
        let same =
            |m: &PointManifest| m.program == PROGRAM && m.config_hash == config_hash && m.state == State::Done && m.key == *key;
        Ok(found.filter(same))
    }
    /// Writes a point: its tables, then its manifest. `workloads` are the names of the workloads by index.
    pub fn write_point(&self, key: &PointKey, outcome: &Outcome, ran: &Ran, workloads: &[String]) -> Result<PointManifest> {
        let dir = self.path.join(&key.id);
        fs::create_dir_all(&dir).map_err(|e| Error::io("create", &dir, e))?;
        remove(&dir.join(manifest::FILE))?;
        let [of_flows, of_ports] = [&outcome.flow_counters, &outcome.port_counters].map(|counters| CounterColumn::all(counters));
        parquet::write_rows(&FLOWS.file(&dir), &FLOWS, &outcome.flows, workloads, &of_flows)?;
        parquet::write_rows(&PORTS.file(&dir), &PORTS, &outcome.ports, &[], &of_ports)?;
        write_if_any(&dir, &SAMPLES, &outcome.samples)?;
        write_if_any(&dir, &PACKETS, &outcome.packets)?;
        let written = PointManifest::new(key, outcome, ran);
        manifest::write(&dir.join(manifest::FILE), &written)?;
        Ok(written)
    }
    /// Writes the run's manifest. Before the first point it tells what the run will hold.
    pub fn write_manifest(&self, run: &RunManifest) -> Result<()> {
        manifest::write(&self.path.join(manifest::FILE), run)
    }
    /// Writes the tables over all points that there are, which the manifest must list.
    pub fn write_tables(&self) -> Result<Results> {
        let results = Results::open(&self.path)?;
        for (name, batch) in [("points", results.points()), ("summary", results.per_seed(false))] {
            parquet::write(&self.path.join(format!("{name}.parquet")), batch.schema(), std::iter::once(batch))?;
        }
        Ok(results)
    }
}

fn write_if_any<R>(dir: &Path, table: &Table<R>, rows: &[R]) -> Result<()> {
    let path = table.file(dir);
    if rows.is_empty() { remove(&path) } else { parquet::write_rows(&path, table, rows, &[], &[]) }
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", path, e)),
        _ => Ok(()),
    }
}

/// Whether there is something in `path` that is no run's.
fn is_occupied(path: &Path) -> Result<bool> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(e) => return Err(Error::io("open", path, e)),
    };
    let mut names = entries.map(|entry| entry.map(|e| e.file_name()).map_err(|e| Error::io("open", path, e)));
    let known = |name: &std::ffi::OsStr| name == LOCK || name == manifest::FILE;
    let mut others = false;
    for name in names.by_ref() {
        let name = name?;
        if name == manifest::FILE {
            return Ok(false);
        }
        others |= !known(&name);
    }
    Ok(others)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::{outcome, run_manifest};

    fn key(id: &str, seed: u64) -> PointKey {
        PointKey { id: id.into(), system: "A".into(), seed, swept: Vec::new() }
    }

    #[test]
    fn a_folder_in_use_is_refused_until_it_is_free() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r");
        let first = RunDir::take(&path).unwrap();
        assert!(matches!(RunDir::take(&path), Err(Error::InUse { .. })));
        drop(first);
        assert!(RunDir::take(&path).is_ok());
    }

    #[test]
    fn a_folder_with_other_things_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("thesis.tex"), "x").unwrap();
        assert!(matches!(RunDir::take(dir.path()), Err(Error::Occupied { .. })));
        let names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, ["thesis.tex"]);
        let file = dir.path().join("thesis.tex");
        assert!(matches!(RunDir::take(&file), Err(Error::Io { .. })));
    }

    #[test]
    fn only_the_same_point_of_the_same_program_counts_as_finished() {
        let dir = tempfile::tempdir().unwrap();
        let run = RunDir::take(dir.path()).unwrap();
        let ran = Ran { config_hash: "c1".into(), ..Ran::default() };
        let written = run.write_point(&key("a-seed1", 1), &outcome(3), &ran, &["web".into()]).unwrap();
        assert_eq!(run.finished(&key("a-seed1", 1), "c1").unwrap(), Some(written.clone()));
        assert_eq!(run.finished(&key("a-seed1", 1), "c2").unwrap(), None);
        assert_eq!(run.finished(&key("a-seed2", 2), "c1").unwrap(), None);
        let path = dir.path().join("a-seed1").join(manifest::FILE);
        manifest::write(&path, &PointManifest { program: "0.0.0".into(), ..written.clone() }).unwrap();
        assert_eq!(run.finished(&key("a-seed1", 1), "c1").unwrap(), None);
        manifest::write(&path, &PointManifest { schema_version: 0, ..written }).unwrap();
        assert_eq!(run.finished(&key("a-seed1", 1), "c1").unwrap(), None);
        fs::write(&path, "{").unwrap();
        assert_eq!(run.finished(&key("a-seed1", 1), "c1").unwrap(), None);
        let stopped = Outcome { complete: false, stop_reason: sim::outcome::StopReason::Stopped, ..outcome(3) };
        run.write_point(&key("a-seed1", 1), &stopped, &ran, &["web".into()]).unwrap();
        assert_eq!(run.finished(&key("a-seed1", 1), "c1").unwrap(), None);
    }

    #[test]
    fn a_point_run_again_leaves_nothing_of_the_former() {
        let dir = tempfile::tempdir().unwrap();
        let run = RunDir::take(dir.path()).unwrap();
        let sample = sim::outcome::SampleRow { time_ps: 1, entity: 0, metric: "flow.cwnd_bytes", value: 1.0 };
        let with = Outcome { samples: vec![sample], ..outcome(3) };
        run.write_point(&key("a", 1), &with, &Ran::default(), &["web".into()]).unwrap();
        assert!(dir.path().join("a/samples.parquet").exists());
        run.write_point(&key("a", 1), &outcome(3), &Ran::default(), &["web".into()]).unwrap();
        let mut names: Vec<_> = fs::read_dir(dir.path().join("a")).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["flows.parquet", "manifest.json", "ports.parquet"]);
    }

    #[test]
    fn equal_runs_give_equal_tables() {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        for (i, dir) in dirs.iter().enumerate() {
            let run = RunDir::take(dir.path()).unwrap();
            let keys = [key("a-seed1", 1), key("a-seed2", 2)];
            run.write_manifest(&run_manifest(&keys)).unwrap();
            for key in &keys {
                let ran = Ran { wall_s: 1.0 + i as f64, ..Ran::default() };
                run.write_point(key, &outcome(3), &ran, &["web".into()]).unwrap();
            }
            run.write_tables().unwrap();
        }
        for name in ["points.parquet", "summary.parquet", "a-seed1/flows.parquet", "a-seed2/ports.parquet"] {
            let [a, b] = [0, 1].map(|i: usize| fs::read(dirs[i].path().join(name)).unwrap());
            assert!(a == b, "{name} differs");
        }
    }
}

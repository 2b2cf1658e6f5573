//! Writes run folders: one folder per run with one folder per point. Every file is written
//! atomically.
//!
//! A point's manifest is written last, so a point with a manifest is complete. The files of the run
//! itself are derived from the manifests of the points and can be written again at any time.

use crate::arrow;
use crate::error::{Error, Result};
use crate::keys::FlowColumns;
use crate::manifest::{self, PROGRAM, PointKey, PointManifest, Ran, RunManifest, State};
use crate::parquet::{self, GROUP_ROWS, Written};
use crate::protect::{self, Kind, LOCK};
use crate::rank_times::rank_times;
use crate::results::{Of, Results};
use crate::schema::{
    AGENTS, CounterColumn, FLOWS, PACKETS, PARTS, POINT_TABLES, PORTS, RANK_TIMES, RUN_TABLES, SAMPLES, TASKS, Table, file_name,
};
use arrow_array::RecordBatchReader as _;
use sim::Outcome;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The content of the folder of a point.
#[derive(Debug)]
pub enum Found {
    /// No result: the point was not run, or was interrupted.
    Nothing,
    /// The complete result of this version with this configuration, with the hash of its manifest.
    Finished(String),
    /// Files that are cut off, changed or missing.
    Damaged(Error),
    /// A result of another version or configuration. The text completes a sentence that says which.
    Other(&'static str),
}

const OTHER_VERSION: &str = "which was run by another version of flowloom";

/// Returns the manifest of the point in a folder. Fails unless the point is done and all its files
/// have their contents.
pub fn check_point(dir: &Path) -> Result<PointManifest> {
    let path = dir.join(manifest::FILE);
    let found: PointManifest = manifest::read(&path)?.ok_or_else(|| Error::damaged(&path, "it is gone"))?;
    if found.state != State::Done {
        return Err(Error::damaged(&path, "its run has not ended"));
    }
    found.check_content(dir)?;
    Ok(found)
}

/// A run folder that is locked for this process. The operating system releases the lock when the
/// process ends, even after a crash.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    _lock: fs::File,
}

impl RunDir {
    /// Locks a folder, and creates it if it is missing. Fails if another run uses the folder, if it
    /// holds anything other than a run, or if it belongs to the results of another run.
    pub fn take(path: &Path) -> Result<RunDir> {
        protect::may_write(path)?;
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
    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// Returns the content of the folder of a point of this run.
    pub fn find(&self, key: &PointKey, config_hash: &str) -> Result<Found> {
        let dir = self.path.join(&key.id);
        let path = dir.join(manifest::FILE);
        let found: PointManifest = match manifest::read(&path) {
            Ok(Some(found)) => found,
            Ok(None) if FLOWS.file(&dir).exists() => return Ok(Found::Damaged(Error::damaged(&path, "it is gone"))),
            Ok(None) => return Ok(Found::Nothing),
            Err(Error::Version { .. }) => return Ok(Found::Other(OTHER_VERSION)),
            Err(e @ Error::Damaged { .. }) => return Ok(Found::Damaged(e)),
            Err(e) => return Err(e),
        };
        if found.state != State::Done {
            return Ok(Found::Nothing);
        }
        if found.program != PROGRAM {
            return Ok(Found::Other(OTHER_VERSION));
        }
        if found.config_hash != config_hash || found.key != *key {
            return Ok(Found::Other("which was run with other settings"));
        }
        match found.check_content(&dir) {
            Ok(()) => Ok(Found::Finished(found.manifest_hash)),
            Err(e @ Error::Damaged { .. }) => Ok(Found::Damaged(e)),
            Err(e) => Err(e),
        }
    }
    /// Returns the points in this folder that are not among `keys`: their folders, and whether they
    /// are done.
    pub fn others(&self, keys: &[PointKey]) -> Result<Vec<(String, bool)>> {
        let known: BTreeSet<&str> = keys.iter().map(|key| key.id.as_str()).collect();
        let entries = fs::read_dir(&self.path).map_err(|e| Error::io("read", &self.path, e))?;
        let mut found = Vec::new();
        for entry in entries {
            let name = entry.map_err(|e| Error::io("read", &self.path, e))?.file_name();
            let Some(name) = name.to_str().filter(|name| !known.contains(name)) else { continue };
            match manifest::read::<PointManifest>(&self.path.join(name).join(manifest::FILE)) {
                // A folder whose name differs from the point's id was not written by a run.
                Ok(Some(point)) if point.key.id == name => found.push((name.to_owned(), point.state == State::Done)),
                Err(Error::Version { .. }) if FLOWS.file(&self.path.join(name)).exists() => found.push((name.to_owned(), true)),
                _ => {}
            }
        }
        found.sort();
        Ok(found)
    }
    /// Removes a point's files, and its folder unless it holds other files.
    pub fn remove_point(&self, id: &str) -> Result<()> {
        let dir = self.path.join(id);
        // The manifest is removed first: without it the tables are ignored.
        remove(&dir.join(manifest::FILE))?;
        POINT_TABLES.iter().try_for_each(|table| remove(&dir.join(file_name(table))))?;
        let _ = fs::remove_dir(&dir);
        Ok(())
    }
    /// Writes a point: its tables, then its manifest. `workloads` are the names of the workloads by
    /// index, and `columns` are the columns that all tables of flows of the run have in common. An
    /// interrupted point has no tables, because its data is never used.
    pub fn write_point(
        &self,
        key: &PointKey,
        outcome: &Outcome,
        ran: &Ran,
        (workloads, columns): (&[String], &FlowColumns),
    ) -> Result<PointManifest> {
        self.remove_point(&key.id)?;
        let dir = self.path.join(&key.id);
        fs::create_dir_all(&dir).map_err(|e| Error::io("create", &dir, e))?;
        let mut files = Vec::new();
        if outcome.complete {
            let [of_flows, of_ports] =
                [&outcome.flow_counters, &outcome.port_counters].map(|counters| CounterColumn::all(counters));
            let (path, columns) = (FLOWS.file(&dir), columns.clone().with(of_flows.iter().cloned()));
            let batch = |rows| {
                let own = arrow::batch(&FLOWS, rows, workloads, &of_flows);
                columns.batch(key, &own).unwrap_or_else(|why| panic!("the flows of a point fit their run: {why}"))
            };
            files.push(parquet::write(&path, columns.schema(), outcome.flows.chunks(GROUP_ROWS).map(batch))?);
            files.push(parquet::write_rows(&PORTS.file(&dir), &PORTS, &outcome.ports, &[], &of_ports)?);
            files.extend(write_if_any(&dir, &TASKS, &outcome.tasks, workloads)?);
            files.extend(write_if_any(&dir, &PARTS, &outcome.parts, workloads)?);
            let rank_times = rank_times(&outcome.tasks, &outcome.parts, outcome.counters.end_ps);
            files.extend(write_if_any(&dir, &RANK_TIMES, &rank_times, workloads)?);
            files.extend(write_if_any(&dir, &SAMPLES, &outcome.samples, &[])?);
            files.extend(write_if_any(&dir, &AGENTS, &outcome.agents, &[])?);
            files.extend(write_if_any(&dir, &PACKETS, &outcome.packets, &[])?);
        }
        let mut written = PointManifest::new(key, outcome, ran, workloads, files);
        written.manifest_hash = manifest::write(&dir.join(manifest::FILE), &written)?;
        Ok(written)
    }
    /// Writes the run's manifest. Before the first point, it lists the points that the run will have.
    pub fn write_manifest(&self, run: &RunManifest) -> Result<()> {
        manifest::write(&self.path.join(manifest::FILE), run).map(drop)
    }
    /// Ends a run: writes the tables over its points, and then its manifest with the hashes of
    /// these tables and of the points' manifests.
    pub fn finish(&self, mut results: Results) -> Result<Results> {
        self.align(&mut results)?;
        let mut files = Vec::new();
        for (name, batch) in RUN_TABLES.into_iter().zip([results.points(), results.per_seed(false, Of::Workloads)?]) {
            files.push(parquet::write(&self.path.join(file_name(name)), batch.schema(), std::iter::once(batch))?);
        }
        results.manifest.files = files;
        results.manifest.done = results.done().map(|point| (point.key.id.clone(), point.manifest_hash.clone())).collect();
        results.manifest.manifest_hash = manifest::write(&self.path.join(manifest::FILE), &results.manifest)?;
        Ok(results)
    }
}

impl RunDir {
    /// Rewrites the flows of points that were kept from a run with other systems, so that all
    /// tables of flows have one schema. Until all points are done, a table may have the counters of
    /// systems that have not run yet.
    fn align(&self, results: &mut Results) -> Result<()> {
        let columns = results.flow_columns();
        let schema = columns.schema();
        for place in 0..results.points.len() {
            let point = &results.points[place];
            if point.state != State::Done {
                continue;
            }
            let path = results.flows_file(point)?;
            let found = parquet::read(&path, None)?;
            let there = found.schema();
            let has_all = || schema.fields().iter().all(|field| there.fields().iter().any(|other| other == field));
            if there.fields() == schema.fields() || (!results.complete() && has_all()) {
                continue;
            }
            let batch = |batch: std::result::Result<_, _>| {
                let batch = batch.map_err(|e| Error::damaged(&path, e))?;
                columns.batch(&point.key, &batch).map_err(|why| Error::damaged(&path, why))
            };
            let batches = found.map(batch).collect::<Result<Vec<_>>>()?;
            let written = parquet::write(&path, schema.clone(), batches.into_iter())?;
            let mut point = point.clone();
            point.files.iter_mut().filter(|file| file.name == written.name).for_each(|file| *file = written.clone());
            point.manifest_hash = manifest::write(&results.point_dir(&point.key).join(manifest::FILE), &point)?;
            results.points[place] = point;
        }
        results.forget();
        Ok(())
    }
}

fn write_if_any<R>(dir: &Path, table: &Table<R>, rows: &[R], words: &[String]) -> Result<Option<Written>> {
    (!rows.is_empty()).then(|| parquet::write_rows(&table.file(dir), table, rows, words, &[])).transpose()
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", path, e)),
        _ => Ok(()),
    }
}

/// Returns whether `path` holds something that does not belong to a run.
fn is_occupied(path: &Path) -> Result<bool> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(e) => return Err(Error::io("open", path, e)),
    };
    let mut others = false;
    for entry in entries {
        let name = entry.map_err(|e| Error::io("open", path, e))?.file_name();
        others |= name != LOCK;
    }
    let own = |name: &str| path.join(name).is_file();
    // A manifest that cannot be read belongs to a run if the run's lock file is there.
    Ok(others && matches!(protect::kind(path), Kind::Other) && !(own(LOCK) && own(manifest::FILE)))
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
        // A `manifest.json` of another program.
        fs::write(dir.path().join(manifest::FILE), "{\"name\": \"web\"}").unwrap();
        assert!(matches!(RunDir::take(dir.path()), Err(Error::Occupied { .. })));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn only_the_same_point_of_the_same_program_counts_as_finished() {
        let dir = tempfile::tempdir().unwrap();
        let run = RunDir::take(dir.path()).unwrap();
        let ran = Ran { config_hash: "c1".into(), ..Ran::default() };
        let mine = key("a-seed1", 1);
        let write = || run.write_point(&mine, &outcome(3), &ran, (&["web".into()], &FlowColumns::default())).unwrap();
        let found = |key: &PointKey, hash: &str| match run.find(key, hash).unwrap() {
            Found::Nothing => "nothing".to_owned(),
            Found::Finished(_) => "finished".to_owned(),
            Found::Damaged(e) => e.to_string(),
            Found::Other(why) => why.to_owned(),
        };
        assert_eq!(found(&mine, "c1"), "nothing");
        let written = write();
        assert_eq!(found(&mine, "c1"), "finished");
        assert!(found(&mine, "c2").contains("other settings"));
        assert!(found(&PointKey { system: "B".into(), ..mine.clone() }, "c1").contains("other settings"));
        assert_eq!(found(&key("a-seed2", 2), "c1"), "nothing");
        let path = dir.path().join("a-seed1").join(manifest::FILE);
        manifest::write(&path, &PointManifest { program: "0.0.0".into(), ..written.clone() }).unwrap();
        assert!(found(&mine, "c1").contains("another version"));
        manifest::write(&path, &PointManifest { schema_version: 0, ..written }).unwrap();
        assert!(found(&mine, "c1").contains("another version"));
        for (text, why) in
            [("", "is empty"), ("{\n\"id\":", "cut off at line 2"), ("[1 2]", "not JSON"), ("{\"a\": 1}", "not a manifest")]
        {
            fs::write(&path, text).unwrap();
            assert!(found(&mine, "c1").contains(why), "{text}: {}", found(&mine, "c1"));
        }
        fs::remove_file(&path).unwrap();
        assert!(found(&mine, "c1").ends_with("is gone"));
        for name in ["flows.parquet", "ports.parquet"] {
            write();
            let file = dir.path().join("a-seed1").join(name);
            let whole = fs::read(&file).unwrap();
            fs::write(&file, &whole[..whole.len() / 2]).unwrap();
            assert!(found(&mine, "c1").contains(&format!("{} were written", whole.len())));
            fs::write(&file, vec![0; whole.len()]).unwrap();
            assert!(found(&mine, "c1").contains("not what was written"));
            fs::remove_file(&file).unwrap();
            assert!(found(&mine, "c1").ends_with("is gone"));
        }
        let stopped = Outcome { complete: false, stop_reason: sim::outcome::StopReason::Stopped, ..outcome(3) };
        run.write_point(&mine, &stopped, &ran, (&["web".into()], &FlowColumns::default())).unwrap();
        assert_eq!(found(&mine, "c1"), "nothing");
    }

    #[test]
    fn points_of_another_run_are_found_and_removed_without_what_is_not_theirs() {
        let dir = tempfile::tempdir().unwrap();
        let run = RunDir::take(dir.path()).unwrap();
        let stopped = Outcome { complete: false, ..outcome(3) };
        for (id, outcome) in [("a", outcome(1)), ("b", outcome(1)), ("c", stopped)] {
            run.write_point(&key(id, 1), &outcome, &Ran::default(), (&["web".into()], &FlowColumns::default())).unwrap();
        }
        fs::create_dir(dir.path().join("figures")).unwrap();
        fs::write(dir.path().join("b/notes.txt"), "x").unwrap();
        fs::create_dir(dir.path().join("copy")).unwrap();
        fs::copy(dir.path().join("a/manifest.json"), dir.path().join("copy/manifest.json")).unwrap();
        assert_eq!(run.others(&[key("a", 1)]).unwrap(), [("b".to_owned(), true), ("c".to_owned(), false)]);
        run.remove_point("b").unwrap();
        run.remove_point("c").unwrap();
        assert!(run.others(&[key("a", 1)]).unwrap().is_empty() && !dir.path().join("c").exists());
        let left: Vec<_> = fs::read_dir(dir.path().join("b")).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["notes.txt"]);
    }

    #[test]
    fn a_rerun_point_leaves_no_file_of_the_former_run() {
        let dir = tempfile::tempdir().unwrap();
        let run = RunDir::take(dir.path()).unwrap();
        let sample = sim::outcome::SampleRow { time_ps: 1, entity: 0, metric: "flow.cwnd_bytes", value: 1.0 };
        let with = Outcome { samples: vec![sample], ..outcome(3) };
        run.write_point(&key("a", 1), &with, &Ran::default(), (&["web".into()], &FlowColumns::default())).unwrap();
        assert!(dir.path().join("a/samples.parquet").exists());
        run.write_point(&key("a", 1), &outcome(3), &Ran::default(), (&["web".into()], &FlowColumns::default())).unwrap();
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
            for key in &keys {
                let ran = Ran { wall_s: 1.0 + i as f64, ..Ran::default() };
                run.write_point(key, &outcome(3), &ran, (&["web".into()], &FlowColumns::default())).unwrap();
            }
            run.finish(Results::gather(run.path(), run_manifest(&keys)).unwrap()).unwrap();
        }
        for name in ["points.parquet", "summary.parquet", "a-seed1/flows.parquet", "a-seed2/ports.parquet"] {
            let [a, b] = [0, 1].map(|i: usize| fs::read(dirs[i].path().join(name)).unwrap());
            assert!(a == b, "{name} differs");
        }
    }
}

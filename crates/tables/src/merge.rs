//! Joins the shards of one run.

use crate::error::{Error, Result};
use crate::manifest::{self, PointKey, PointManifest, RunManifest};
use crate::protect::may_write;
use crate::results::Results;
use crate::run_dir::RunDir;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Joins the points of several runs of one scenario in `out`, which may be one of the runs. Points
/// are copied unchanged, and the tables over all points are written again. Points that none of the
/// runs has finished are missing.
///
/// Fails if the runs are not of one scenario, version and set of input files, or if two runs have
/// different results for a point.
pub fn merge(from: &[PathBuf], out: &Path) -> Result<Results> {
    may_write(out)?;
    let mut shares: Vec<Results> = from.iter().map(|path| Results::open(path)).collect::<Result<_>>()?;
    if manifest::read::<RunManifest>(&out.join(manifest::FILE))?.is_some() {
        shares.insert(0, Results::open(out)?);
    }
    let Some(first) = shares.first() else { return Err(Error::NothingToMerge) };
    shares.iter().try_for_each(|share| alike(first, share))?;
    let points = first.manifest.points.iter().map(|key| of(&shares, key)).collect::<Result<Vec<_>>>()?;
    let dir = RunDir::take(out)?;
    // Until everything is copied, the manifest says that the run is not complete.
    let run = joined(&shares);
    dir.write_manifest(&run)?;
    for (share, point) in points.iter().flatten() {
        copy(&share.point_dir(&point.key), &out.join(&point.key.id), point)?;
    }
    let mut joined = Results::gather(out, run)?;
    joined.manifest.complete = joined.complete();
    joined.manifest.stop_reason = if joined.manifest.complete { "finished" } else { "share" }.to_owned();
    dir.finish(joined)
}

/// Returns a point from the first run that has finished it. Fails if its files are damaged, or if
/// another run has a different result.
fn of<'a>(shares: &'a [Results], key: &PointKey) -> Result<Option<(&'a Results, &'a PointManifest)>> {
    let mut there = shares.iter().filter_map(|share| Some((share, share.done().find(|point| point.key == *key)?)));
    let Some((share, point)) = there.next() else { return Ok(None) };
    if let Some((other, _)) = there.find(|(_, other)| other.counters.digest != point.counters.digest) {
        return Err(Error::OtherPoint { a: share.point_dir(key), b: other.point_dir(key) });
    }
    point.files.iter().try_for_each(|file| file.check_content(&share.point_dir(key)))?;
    Ok(Some((share, point)))
}

/// Fails if two runs are not of one scenario, version and set of input files.
fn alike(a: &Results, b: &Results) -> Result<()> {
    let (of_a, of_b) = (&a.manifest, &b.manifest);
    let changed = of_a.inputs.iter().find(|input| !of_b.inputs.contains(input));
    let why = match changed {
        _ if of_a.program != of_b.program => "they were run by different versions of flowloom".to_owned(),
        _ if (&of_a.config, &of_a.points) != (&of_b.config, &of_b.points) => "their scenarios differ".to_owned(),
        Some(input) => format!("they read `{}` with different contents", input.path),
        None if of_a.inputs.len() != of_b.inputs.len() => "their scenarios read different files".to_owned(),
        None => return Ok(()),
    };
    Err(Error::OtherRun { a: a.path().to_owned(), b: b.path().to_owned(), why })
}

/// Returns the manifest of the joined run, without points.
fn joined(shares: &[Results]) -> RunManifest {
    let all = || shares.iter().map(|share| &share.manifest);
    RunManifest {
        complete: false,
        stop_reason: "running".to_owned(),
        started: all().map(|run| run.started.clone()).min().unwrap_or_default(),
        ended: all().map(|run| run.ended.clone()).max().unwrap_or_default(),
        wall_s: all().map(|run| run.wall_s).sum(),
        jobs: all().map(|run| run.jobs).max().unwrap_or(1),
        done: BTreeMap::new(),
        files: Vec::new(),
        peak_memory_bytes: all().filter_map(|run| run.peak_memory_bytes).max(),
        ..shares[0].manifest.clone()
    }
}

/// Copies a point. Its manifest is copied last.
fn copy(from: &Path, to: &Path, point: &PointManifest) -> Result<()> {
    if from.canonicalize().is_ok_and(|from| to.canonicalize().is_ok_and(|to| from == to)) {
        return Ok(());
    }
    fs::create_dir_all(to).map_err(|e| Error::io("create", to, e))?;
    for name in point.files.iter().map(|file| file.name.as_str()).chain([manifest::FILE]) {
        let target = to.join(name);
        fs::copy(from.join(name), &target).map_err(|e| Error::io("write", &target, e))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::FlowColumns;
    use crate::manifest::{Input, Ran};
    use crate::results::tests::{outcome, run_manifest};

    fn keys() -> Vec<PointKey> {
        (1..=4).map(|seed| PointKey { id: format!("a-seed{seed}"), system: "A".into(), seed, swept: Vec::new() }).collect()
    }
    /// Writes a shard with these points done. Point `i` has `i + 1` flows.
    fn shard(dir: &Path, done: &[usize]) {
        let (run, keys) = (RunDir::take(dir).unwrap(), keys());
        for &i in done {
            run.write_point(&keys[i], &outcome(i as u32 + 1), &Ran::default(), (&["web".into()], &FlowColumns::default())).unwrap();
        }
        run.finish(Results::gather(dir, run_manifest(&keys)).unwrap()).unwrap();
    }

    #[test]
    fn shards_make_the_whole_run() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        shard(&path("whole"), &[0, 1, 2, 3]);
        shard(&path("a"), &[0, 2]);
        shard(&path("b"), &[1, 3, 2]);
        let merged = merge(&[path("b"), path("a")], &path("out")).unwrap();
        assert!(merged.complete() && merged.manifest.complete && merged.manifest.stop_reason == "finished");
        for name in ["points.parquet", "summary.parquet", "a-seed1/flows.parquet", "a-seed4/ports.parquet"] {
            assert_eq!(fs::read(path("whole").join(name)).unwrap(), fs::read(path("out").join(name)).unwrap(), "{name}");
        }
        // Merging into one of the shards, twice.
        for _ in 0..2 {
            assert!(merge(&[path("a"), path("b")], &path("a")).unwrap().complete());
        }
    }

    #[test]
    fn points_in_no_shard_are_missing() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        shard(&path("a"), &[0]);
        shard(&path("b"), &[3]);
        let merged = merge(&[path("a"), path("b")], &path("out")).unwrap();
        assert_eq!((merged.done().count(), merged.manifest.complete, merged.manifest.stop_reason.as_str()), (2, false, "share"));
    }

    #[test]
    fn runs_that_are_not_shards_of_one_run_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        shard(&path("a"), &[0]);
        let other = |name: &str, change: fn(&mut RunManifest)| {
            shard(&path(name), &[1]);
            let mut run: RunManifest = manifest::read(&path(name).join(manifest::FILE)).unwrap().unwrap();
            change(&mut run);
            manifest::write(&path(name).join(manifest::FILE), &run).unwrap();
            merge(&[path("a"), path(name)], &path("out")).unwrap_err().to_string()
        };
        let text = other("version", |run| run.program = "0.0.0".into());
        assert!(text.ends_with("they were run by different versions of flowloom"), "{text}");
        let text = other("config", |run| run.config = "mtu = 9000".into());
        assert!(text.ends_with("their scenarios differ"), "{text}");
        let text = other("input", |run| run.inputs.push(Input { path: "f.csv".into(), hash: "0".into() }));
        assert!(text.ends_with("their scenarios read different files"), "{text}");
        // The same point with another digest.
        let run = RunDir::take(&path("odd")).unwrap();
        let mut changed = outcome(1);
        changed.counters.digest ^= 1;
        run.write_point(&keys()[0], &changed, &Ran::default(), (&["web".into()], &FlowColumns::default())).unwrap();
        run.finish(Results::gather(run.path(), run_manifest(&keys())).unwrap()).unwrap();
        drop(run);
        assert!(matches!(merge(&[path("a"), path("odd")], &path("out")), Err(Error::OtherPoint { .. })));
        assert!(!path("out").exists());
        assert!(matches!(merge(&[path("a"), path("nowhere")], &path("out2")), Err(Error::NotARun { .. })));
        assert!(!path("out2").exists());
    }

    #[test]
    fn a_damaged_point_is_not_copied() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        shard(&path("a"), &[0]);
        let file = path("a").join("a-seed1/flows.parquet");
        let length = fs::read(&file).unwrap().len();
        fs::write(&file, vec![0; length]).unwrap();
        assert!(matches!(merge(&[path("a")], &path("out")), Err(Error::Damaged { .. })));
        assert!(!path("out").exists());
    }

    #[test]
    fn shares_that_read_other_files_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for (name, hash) in [("a", "1"), ("b", "2"), ("c", "1")] {
            shard(&path(name), &[usize::from(name == "c")]);
            let mut run: RunManifest = manifest::read(&path(name).join(manifest::FILE)).unwrap().unwrap();
            run.inputs = vec![Input { path: "f.csv".into(), hash: hash.into() }];
            manifest::write(&path(name).join(manifest::FILE), &run).unwrap();
        }
        let refused = merge(&[path("a"), path("b")], &path("out")).unwrap_err().to_string();
        assert!(refused.ends_with("they read `f.csv` with different contents") && !path("out").exists(), "{refused}");
        assert_eq!(merge(&[path("a"), path("c")], &path("out")).unwrap().done().count(), 2);
    }

    #[test]
    fn names_in_manifests_lead_nowhere() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        // A point with the id `../../escaped`: its folder and both manifests, with valid hashes.
        shard(&path("deep/er/a"), &[0]);
        let (run_file, point_file) = (path("deep/er/a").join(manifest::FILE), path("deep/er/a/a-seed1").join(manifest::FILE));
        let (mut run, mut point): (RunManifest, PointManifest) =
            (manifest::read(&run_file).unwrap().unwrap(), manifest::read(&point_file).unwrap().unwrap());
        let (honest, id) = (point.clone(), "../../escaped");
        point.key.id = id.into();
        run.points[0].id = id.into();
        fs::rename(path("deep/er/a/a-seed1"), path("deep/escaped")).unwrap();
        manifest::write(&path("deep/escaped").join(manifest::FILE), &point).unwrap();
        run.done.clear();
        manifest::write(&run_file, &run).unwrap();
        let refused = merge(&[path("deep/er/a")], &path("x/y/m")).unwrap_err();
        assert!(matches!(refused, Error::Damaged { .. }) && refused.to_string().contains("`../../escaped`"), "{refused}");
        // A file of a point whose name leads out of the folder.
        fs::rename(path("deep/escaped"), path("deep/er/a/a-seed1")).unwrap();
        fs::rename(path("deep/er/a/a-seed1/flows.parquet"), path("deep/er/evil.parquet")).unwrap();
        point = honest;
        point.files[0].name = "../../evil.parquet".into();
        manifest::write(&point_file, &point).unwrap();
        run.points = keys();
        manifest::write(&run_file, &run).unwrap();
        let refused = merge(&[path("deep/er/a")], &path("x/y/m")).unwrap_err();
        assert!(refused.to_string().contains("`../../evil.parquet`"), "{refused}");
        assert!(!path("x").exists() && !path("evil.parquet").exists());
    }
}

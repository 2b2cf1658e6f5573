//! Checks where commands may write, so that they never overwrite results.

use crate::error::{Error, Result};
use crate::manifest;
use crate::schema::{POINT_TABLES, RUN_TABLES, file_name};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::ffi::OsString;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The file in the folder of a run that is locked during the run.
pub const LOCK: &str = ".lock";

/// Suffixes of the files that commands write next to results and may replace.
const OUTPUTS: [&str; 9] = ["html", "png", "svg", "pdf", "txt", "cm", "pcapng", "pftrace", "zip"];

/// Fails if a file or folder at `path` would replace a part of results, or would be in the folder
/// of a point. All commands call this before they write. In the folder of a run, commands may
/// create new files and folders, and replace files with the suffixes that commands write.
pub fn may_write(path: &Path) -> Result<()> {
    let real = real(path);
    let refused = |why| Err(Error::OfResults { path: path.to_owned(), why });
    for dir in folders(&real) {
        let points = match kind(dir) {
            Kind::Other => continue,
            Kind::Point => return refused(OF_A_POINT),
            Kind::Run(points) => points,
        };
        let Some(first) = real.strip_prefix(dir).ok().and_then(|inside| inside.components().next()) else { continue };
        let name = first.as_os_str().to_string_lossy();
        if name == manifest::FILE || name == LOCK || RUN_TABLES.iter().any(|table| name == file_name(table)) {
            return refused("it is a part of the results");
        }
        // The folder of a point without a manifest: it was lost, or the point has not run yet.
        if points.iter().any(|id| *id == name) || has(&dir.join(first), &POINT_TABLES) {
            return refused(OF_A_POINT);
        }
        let output = real.extension().is_some_and(|ending| OUTPUTS.iter().any(|known| ending.eq_ignore_ascii_case(known)));
        if real.is_file() && !output {
            return refused("it is a file in a results folder that no command has made");
        }
    }
    Ok(())
}

const OF_A_POINT: &str = "it is in the folder of a point";

/// Returns a path and the folders above it.
fn folders(path: &Path) -> impl Iterator<Item = &Path> {
    path.ancestors().filter(|dir| !dir.as_os_str().is_empty())
}

/// The kind of a folder.
pub(crate) enum Kind {
    /// The folder of a point.
    Point,
    /// The folder of a run, with the folders of its points if its manifest can be read.
    Run(Vec<String>),
    /// Another folder.
    Other,
}

/// Returns the kind of a folder from its manifest. A run without a manifest is recognised by its
/// tables. A point without a manifest is not recognised by its tables, because scenarios read such
/// tables too.
pub(crate) fn kind(dir: &Path) -> Kind {
    // The fields that identify both kinds of manifests, in any layout.
    #[derive(Deserialize)]
    struct Seen {
        #[serde(rename = "schema_version")]
        _layout: u32,
        points: Option<Vec<Id>>,
        state: Option<IgnoredAny>,
    }
    #[derive(Deserialize)]
    struct Id {
        id: String,
    }
    let seen = fs::read(dir.join(manifest::FILE)).ok().map(|text| serde_json::from_slice::<Seen>(&text));
    match seen {
        Some(Ok(Seen { state: Some(_), .. })) => Kind::Point,
        Some(Ok(Seen { points: Some(points), .. })) => Kind::Run(points.into_iter().map(|point| point.id).collect()),
        _ if has(dir, &RUN_TABLES) => Kind::Run(Vec::new()),
        _ => Kind::Other,
    }
}

fn has(dir: &Path, tables: &[&str]) -> bool {
    tables.iter().any(|table| dir.join(file_name(table)).is_file())
}

/// Resolves the links in a path, as far as the path exists.
fn real(path: &Path) -> PathBuf {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut rest: Vec<OsString> = Vec::new();
    let mut at = whole.as_path();
    let mut found = loop {
        match (at.canonicalize(), at.parent()) {
            (Ok(there), _) => break there,
            (Err(_), Some(above)) => {
                rest.extend(at.components().next_back().map(|last| last.as_os_str().to_owned()));
                at = above;
            }
            (Err(_), None) => break at.to_owned(),
        }
    };
    for part in rest.iter().rev() {
        match Path::new(part).components().next() {
            // The part that does not exist yet has no links.
            Some(Component::ParentDir) => drop(found.pop()),
            _ => found.push(part),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::FlowColumns;
    use crate::manifest::{PointKey, Ran};
    use crate::results::Results;
    use crate::results::tests::{outcome, run_manifest};
    use crate::run_dir::RunDir;

    /// A run of the points `a` and `b`. Only `a` is done.
    fn write(path: &Path) {
        let keys = ["a", "b"].map(|id| PointKey { id: id.into(), system: "A".into(), ..PointKey::default() });
        let run = RunDir::take(path).unwrap();
        run.write_point(&keys[0], &outcome(1), &Ran::default(), (&["web".into()], &FlowColumns::default())).unwrap();
        run.finish(Results::gather(path, run_manifest(&keys)).unwrap()).unwrap();
    }

    #[test]
    fn nothing_of_results_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        write(&at("r"));
        for name in ["r/notes.parquet", "r/s.toml", "r/report.html", "r/a.txt", "flows.parquet", "manifest.json"] {
            fs::write(at(name), "x").unwrap();
        }
        fs::create_dir(at("r/figures")).unwrap();
        for name in [
            "r",
            "r/report.html",
            "r/playback.html",
            "r/figures",
            "r/figures/why.png",
            "r/a.txt",
            "r/again",
            "r/x/../new.zip",
            "flows.parquet",
            "new/x.html",
            "manifest.json",
            "r/a.pftrace",
            "nothing/r",
            "r/new.txt",
        ] {
            may_write(&at(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
        }
        let refused = [
            "r/a",
            "r/b",
            "r/a/flows.parquet",
            "r/a/manifest.json",
            "r/a/x.html",
            "r/a/sub/x.html",
            "r/b/x.html",
            "r/manifest.json",
            "r/points.parquet",
            "r/summary.parquet",
            "r/.lock",
            "r/notes.parquet",
            "r/s.toml",
            "r/x/../a/flows.parquet",
            "r/figures/../a",
        ];
        let all_refused = |names: &[&str]| {
            for name in names {
                let error = may_write(&at(name)).expect_err(name);
                assert!(
                    matches!(&error, Error::OfResults { path, .. } if *path == at(name)) && error.hint().is_some(),
                    "{name}: {error}"
                );
            }
        };
        all_refused(&refused);
        assert!(RunDir::take(&at("r/a")).is_err() && RunDir::take(&at("r")).is_ok() && RunDir::take(&at("r/again")).is_ok());
        // Damaged results are results.
        for (gone, names) in [("r/manifest.json", &refused[2..]), ("r/a/manifest.json", &refused[2..5])] {
            fs::write(at(gone), "{\"schema").unwrap();
            all_refused(&names.iter().copied().filter(|name| !name.starts_with("r/b")).collect::<Vec<_>>());
            fs::remove_file(at(gone)).unwrap();
            all_refused(&names.iter().copied().filter(|name| !name.starts_with("r/b")).collect::<Vec<_>>());
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_are_resolved() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        write(&at("r"));
        std::os::unix::fs::symlink(at("r/a/flows.parquet"), at("page.html")).unwrap();
        std::os::unix::fs::symlink(at("r"), at("link")).unwrap();
        for name in ["page.html", "link/a/x.html", "link/points.parquet"] {
            assert!(may_write(&at(name)).is_err(), "{name}");
        }
        may_write(&at("link/report.html")).unwrap();
    }
}

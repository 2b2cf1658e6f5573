//! Errors of run folders and files.

use std::io;
use std::path::{Path, PathBuf};

/// A problem with a run folder or a file in it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The disk is full.
    #[error("no space left to write `{path}`")]
    Full {
        /// The file.
        path: PathBuf,
    },
    /// The file or folder is read-only.
    #[error("`{path}` cannot be written: {source}")]
    ReadOnly {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Any other error of the operating system.
    #[error("cannot {action} `{path}`: {source}")]
    Io {
        /// The failed operation, such as "read".
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Another run writes to the folder.
    #[error("`{path}` is in use by another run")]
    InUse {
        /// The run folder.
        path: PathBuf,
    },
    /// The folder holds something other than a run.
    #[error("`{path}` is not empty and is not a run folder")]
    Occupied {
        /// The folder.
        path: PathBuf,
    },
    /// The folder holds results of another run, which this run would replace or mix with its own.
    #[error("`{path}` holds results of another run: {points} {}, such as `{first}`, {why}", if *points == 1 { "point" } else { "points" })]
    OtherResults {
        /// The folder.
        path: PathBuf,
        /// The number of points.
        points: usize,
        /// The id of one of them.
        first: String,
        /// Why the point does not belong to this run.
        why: &'static str,
    },
    /// A file or folder that a command must not write because it belongs to results.
    #[error("`{path}` must not be written: {why}")]
    OfResults {
        /// The file or folder.
        path: PathBuf,
        /// How the file or folder belongs to results.
        why: &'static str,
    },
    /// Points that the run has finished, or found finished, are missing at its end.
    #[error("`{path}` has lost {points} of the points of the run while it ran: {named}")]
    Lost {
        /// The run folder.
        path: PathBuf,
        /// The number of points.
        points: usize,
        /// Their ids.
        named: String,
    },
    /// Not a run folder.
    #[error("`{path}` is not a run folder: it has no `manifest.json`")]
    NotARun {
        /// The folder.
        path: PathBuf,
    },
    /// The folder was written with another layout.
    #[error("`{path}` has layout {found}, but this version of flowloom reads layout {}", crate::schema::SCHEMA_VERSION)]
    Version {
        /// The manifest.
        path: PathBuf,
        /// The layout of the folder.
        found: u32,
    },
    /// A file whose content is not what flowloom wrote.
    #[error("`{path}` is damaged: {why}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damage.
        why: String,
    },
    /// Two points did not have the same flows.
    #[error("`{a}` and `{b}` ran different flows: flow {flow} differs")]
    DifferentFlows {
        /// The folder of a point.
        a: PathBuf,
        /// The folder of another point.
        b: PathBuf,
        /// The first flow that differs.
        flow: u32,
    },
    /// A run was given twice.
    #[error("`{path}` is given twice")]
    SameRun {
        /// The run folder.
        path: PathBuf,
    },
    /// Two runs that are not shards of one run.
    #[error("`{a}` and `{b}` are not shards of one run: {why}")]
    OtherRun {
        /// A run folder.
        a: PathBuf,
        /// Another run folder.
        b: PathBuf,
        /// The difference.
        why: String,
    },
    /// A point for which two runs of the same scenario and version have different results.
    #[error("`{a}` and `{b}` are the same point but have different results")]
    OtherPoint {
        /// The folder of a point.
        a: PathBuf,
        /// The folder of another point.
        b: PathBuf,
    },
    /// No run folder was given.
    #[error("there is nothing to merge")]
    NothingToMerge,
    /// A filter that expects names that the runs do not have.
    #[error(transparent)]
    Filter(#[from] crate::filter::Wrong),
    /// There are no two points to compare.
    #[error("nothing to compare: {0}")]
    NothingToCompare(String),
}

/// The result of an operation on files.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Converts an error of the operating system during `action` on `path`.
    pub fn io(action: &'static str, path: &Path, source: io::Error) -> Error {
        let path = path.to_owned();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::Full { path },
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied if action != "read" => {
                Error::ReadOnly { path, source }
            }
            _ => Error::Io { action, path, source },
        }
    }
    pub(crate) fn damaged(path: &Path, why: impl ToString) -> Error {
        Error::Damaged { path: path.to_owned(), why: why.to_string() }
    }
    /// Returns the hint for the user.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Error::Full { .. } => "free some space and repeat the command: finished points are kept",
            Error::ReadOnly { .. } | Error::Io { action: "create" | "open" | "write", .. } => {
                "choose another folder with `--out DIR`"
            }
            Error::InUse { .. } => "wait until the other run has ended, or choose another folder with `--out DIR`",
            Error::Occupied { .. } => "choose a new or empty folder with `--out DIR`",
            Error::OtherResults { .. } => "choose another folder with `--out DIR`, or replace the results with `--overwrite`",
            Error::OfResults { .. } => "choose another place with `--out`",
            Error::Lost { .. } => "something else removed or replaced them: the same `flowloom run` reruns them",
            Error::NotARun { .. } => "give the folder that `flowloom run` printed, such as `results/demo`",
            Error::Version { .. } => "rerun the scenario with this version, into another folder or with `--overwrite`",
            Error::Damaged { .. } => {
                "repeat the `flowloom run` that wrote the folder: it reruns damaged points and keeps the others"
            }
            Error::DifferentFlows { .. } => "compare runs of the same topology, workload, seed and swept values",
            Error::OtherRun { .. } => "run all shards from the same scenario file with the same input files, options and version",
            Error::OtherPoint { .. } => {
                "rerun the point on both machines: the results of a point must be equal, so one of the machines or disks is faulty"
            }
            Error::NothingToMerge => "give the results folders of `flowloom run --shard`",
            Error::SameRun { .. } => "give each run folder once: the systems in a folder are compared with each other",
            Error::NothingToCompare(_) => "give run folders with at least two systems that have seeds and swept values in common",
            // The message of a filter has its hint.
            Error::Io { .. } | Error::Filter(_) => return None,
        })
    }
}

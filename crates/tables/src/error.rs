//! What can go wrong with files.

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
    /// The file or folder must not be written.
    #[error("`{path}` cannot be written: {source}")]
    ReadOnly {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Any other refusal of the system.
    #[error("cannot {action} `{path}`: {source}")]
    Io {
        /// What was tried: "read".
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Another run is writing there.
    #[error("`{path}` is in use by another run")]
    InUse {
        /// The run folder.
        path: PathBuf,
    },
    /// The folder holds something else.
    #[error("`{path}` is not empty and is not a run folder")]
    Occupied {
        /// The folder.
        path: PathBuf,
    },
    /// The folder holds results that the run would replace or leave behind.
    #[error("`{path}` holds results of another run: {points} {}, such as `{first}`, {why}", if *points == 1 { "point" } else { "points" })]
    OtherResults {
        /// The folder.
        path: PathBuf,
        /// How many points.
        points: usize,
        /// One of them.
        first: String,
        /// Why it is not of this run.
        why: &'static str,
    },
    /// A file or folder that a command must not write, since it belongs to results.
    #[error("`{path}` must not be written: {why}")]
    OfResults {
        /// The file or folder.
        path: PathBuf,
        /// How it belongs to results.
        why: &'static str,
    },
    /// Points that the run has made, or found finished, are not there at its end.
    #[error("`{path}` has lost {points} of the points of the run while it ran: {named}")]
    Lost {
        /// The run folder.
        path: PathBuf,
        /// How many points.
        points: usize,
        /// Which.
        named: String,
    },
    /// Not a run folder.
    #[error("`{path}` is not a run folder: it has no `manifest.json`")]
    NotARun {
        /// The folder.
        path: PathBuf,
    },
    /// Written by a program with another layout.
    #[error("`{path}` has layout {found}, and this program reads layout {}", crate::schema::SCHEMA_VERSION)]
    Version {
        /// The manifest.
        path: PathBuf,
        /// Its layout.
        found: u32,
    },
    /// A file whose content is not what this program writes.
    #[error("`{path}` is damaged: {why}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// Two systems did not see the same flows.
    #[error("`{a}` and `{b}` ran different flows: flow {flow} differs")]
    DifferentFlows {
        /// A point's folder.
        a: PathBuf,
        /// Another's.
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
    /// Two runs that are not shares of one.
    #[error("`{a}` and `{b}` are not shares of one run: {why}")]
    OtherRun {
        /// A run folder.
        a: PathBuf,
        /// Another.
        b: PathBuf,
        /// What differs.
        why: String,
    },
    /// A point that two runs of the same scenario and program have with different results.
    #[error("`{a}` and `{b}` are one point and differ")]
    OtherPoint {
        /// A point's folder.
        a: PathBuf,
        /// Another's.
        b: PathBuf,
    },
    /// No run was given.
    #[error("there is nothing to merge")]
    NothingToMerge,
    /// Nothing to pair.
    #[error("nothing to compare: {0}")]
    NothingToCompare(String),
}

/// The result of anything done to files.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A refusal of the system while doing `action` to `path`.
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
    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Error::Full { .. } => "free some space and repeat the command: finished points are kept",
            Error::ReadOnly { .. } | Error::Io { action: "create" | "open" | "write", .. } => {
                "choose another folder with `--out DIR`"
            }
            Error::InUse { .. } => "wait for that run to end, or choose another folder with `--out DIR`",
            Error::Occupied { .. } => "choose a new or empty folder with `--out DIR`",
            Error::OtherResults { .. } => "choose another folder with `--out DIR`, or replace the results with `--overwrite`",
            Error::OfResults { .. } => "choose another place with `--out`",
            Error::Lost { .. } => "something else removed or replaced them: the same `flowloom run` runs them again",
            Error::NotARun { .. } => "give the folder that `flowloom run` printed, such as `results/demo`",
            Error::Version { .. } => "run the scenario with this program, into another folder or with `--overwrite`",
            Error::Damaged { .. } => {
                "repeat the `flowloom run` that wrote the folder: it runs damaged points again and keeps the others"
            }
            Error::DifferentFlows { .. } => "compare runs of the same topology, workload, seed and swept values",
            Error::OtherRun { .. } => "run all shares from the same scenario file with the same input files, options and version",
            Error::OtherPoint { .. } => "run the point again on both machines: one of them, or its disk, makes mistakes",
            Error::NothingToMerge => "give the folders that `flowloom run --shard` wrote",
            Error::SameRun { .. } => "give each run folder once: its systems are compared with each other",
            Error::NothingToCompare(_) => "give run folders with at least two systems that have seeds and swept values in common",
            Error::Io { .. } => return None,
        })
    }
}

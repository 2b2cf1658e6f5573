//! Results: the tables of a run, the metrics that are computed from them, and the folders that hold
//! them.
//!
//! This is the only crate that depends on Arrow and Parquet, and the only place where statistics
//! are defined. It has no clock: dates and wall times come from the caller.

mod absent;
pub mod arrow;
pub mod by_size;
mod chosen;
pub mod compare;
pub mod dictionary;
pub mod error;
pub mod estimate;
pub mod filter;
mod grouped;
pub mod groups;
mod hosts;
mod jobs;
pub mod keys;
mod lives;
pub mod manifest;
pub mod merge;
pub mod parquet;
pub mod protect;
pub mod rank_times;
pub mod results;
pub mod run_dir;
pub mod schema;
pub mod series;
mod slowest;
pub mod stats;
pub mod tail;

pub use absent::refuse_absent;
pub use arrow_array::{RecordBatch, RecordBatchReader};
pub use error::Error;
pub use lives::FlowLife;
pub use manifest::{PROGRAM, PointKey, PointManifest, RunManifest, State};
pub use merge::merge;
pub use protect::may_write;
pub use results::Results;
pub use run_dir::{Found, RunDir, check_point};

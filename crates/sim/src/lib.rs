//! Virtual time: the engine, hosts and switches bound into runs.
//!
//! [`run`] takes one point of a plan and gives plain rows. A run is a function of the plan, the seed and the code: threads, probes
//! and samples change nothing.

pub mod audit;
mod failures;
pub mod fluid;
mod host;
pub mod memory;
pub mod outcome;
pub mod probe;
mod run;
mod sample;
mod world;

pub use outcome::Outcome;
pub use run::{Continue, Progress, RunError, run, run_on};
pub use world::Carried;

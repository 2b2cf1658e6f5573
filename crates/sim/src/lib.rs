//! Runs: the engine, hosts and switches combined in virtual time.
//!
//! [`run`] takes one point of a plan and returns plain rows. A run is a function of the plan, the seed and the code: threads, probes
//! and samples change nothing.

mod actors;
mod around;
pub mod audit;
mod barrier;
mod build;
mod control;
mod counted;
pub mod cut;
mod drops;
mod events;
mod exchange;
mod failures;
mod flow_engine;
pub mod fluid;
mod forward;
mod global;
mod host;
mod lossy;

pub mod memory;
mod nic;
mod open;
pub mod outcome;
mod part;
pub mod probe;
mod progress;
mod rows;
mod run;
mod sample;
mod share;
mod start;
mod sync;
mod threads;
mod waiting;
mod whole;
pub mod why;
mod window;
mod world;

pub use cut::Threads;
pub use outcome::Outcome;
pub use progress::{Continue, Progress, RunError};
pub use rows::flow_counters;
pub use run::{run, run_cut, run_on, run_threads};
pub use world::Carried;

/// The example of the page about the API.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/api.md")]
struct Page;

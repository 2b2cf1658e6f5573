//! Runs: the engine, hosts and switches combined in virtual time.
//!
//! [`run`] takes one point of a plan and returns plain rows. A run is a function of the plan, the seed
//! and the code: threads, probes and samples do not change its results.

mod actors;
pub mod audit;
mod build;
mod counted;
mod flow_engine;
pub mod fluid;
pub mod memory;
mod node;
mod order;
pub mod outcome;
mod parallel;
pub mod probe;
mod progress;
mod rows;
mod run;
mod start;
pub mod tasks;
mod timeline;
pub mod why;

pub use node::world::Carried;
pub use order::EventOrder;
pub use outcome::Outcome;
pub use parallel::cut::{self, Threads};
pub use progress::{Continue, Progress, RunError};
pub use rows::flow_counters;
pub use run::{run, run_cut, run_in, run_on, run_threads};

/// Compiles the example of the page about the API.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/api.md")]
struct Page;

//! A packet-level simulator of data-center transports and flow schedulers: the engine, hosts and
//! switches of flowloom combined in virtual time.
//!
//! A program needs only this crate, which exports the crates with the parts of a simulation:
//!
//! - [`scenario`]: topologies, workloads, and [`Scenario`](scenario::Scenario), which combines them with
//!   systems into a checked plan;
//! - [`proto`]: transports and policies of hosts;
//! - [`fabric`]: queue disciplines, buffers, routers, agents and controllers;
//! - [`base`]: units and parameters.
//!
//! An example, `twenty_lines` in the folder `examples`:
//!
//! ```
#![doc = include_str!("../examples/twenty_lines.rs")]
//! ```
//!
//! [`run`] takes one point of a plan and returns an [`Outcome`] of plain rows: flows, ports, time series,
//! packets. [`run_threads`] does the same on several threads. A run is a function of the plan, the seed
//! and the code: threads, probes and samples do not change its results. Mistakes in a scenario are
//! [`Diagnostics`](scenario::Diagnostics), with what is wrong, what is allowed and a hint.
//!
//! To read scenario files instead, see [`scenario::load`].

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
mod untouched;
pub mod why;

pub use {base, fabric, proto, scenario};

pub use node::world::Carried;
pub use order::EventOrder;
pub use outcome::Outcome;
pub use parallel::cut::{self, Threads};
pub use progress::{Continue, Progress, RunError};
pub use rows::flow_counters;
pub use run::{run, run_cut, run_in, run_on, run_threads};

//! Scenarios of the network simulator flowloom: from a description to a checked plan of runs.
//!
//! A scenario has a topology, workloads and systems to compare. A [`Scenario`] is built in Rust from the
//! parameters of the entries of [`topology`] and [`workload`] and an [`Outline`] of each system, whose
//! parts are entries of [`proto`] and [`fabric`]. [`load`] reads a scenario from a TOML text. Both give a
//! [`Plan`], whose points the crate `flowloom-sim` runs.
//!
//! [`load`] reads the text, applies profiles and settings of the command line, checks every value
//! against the declared parameters and against the rest of the scenario, and expands sweeps and
//! seeds into points. It reports all problems at once, each with its place, what is allowed and a
//! hint; files of flows are read only if nothing else is wrong. A [`RunSpec`] is everything that a
//! run depends on; [`RunSpec::flows`] draws its flows.
//!
//! ```
//! let text = r#"
//!     seed = [1, 2]
//!     [topology]
//!     kind = "single_tree"
//!     [workload.web]
//!     kind = "poisson"
//!     flows = 100
//!     load = [0.2, 0.8]
//!     [[system]]
//!     transport = "newreno"
//! "#;
//! let plan = scenario::load(text, "demo.toml", ".".as_ref(), &scenario::Options::default()).unwrap();
//! let ids: Vec<&str> = plan.points.iter().map(|p| p.id.as_str()).collect();
//! assert_eq!(ids, ["newreno-load0.2-seed1", "newreno-load0.2-seed2", "newreno-load0.8-seed1", "newreno-load0.8-seed2"]);
//! let flows = plan.points[0].run.flows().unwrap();
//! assert_eq!(flows.iter().filter(|flow| flow.measured).count(), 100);
//! ```

mod checks;
pub mod deadline;
pub mod event;
mod expand;
mod files;
mod load;
pub mod memory;
mod plan;
mod read;
mod rooms;
mod scenario;
pub mod seek;
mod system;
mod text;
pub mod topology;
pub mod workload;

pub use files::Files;
pub use files::plugins::{Interpreter, set_interpreter};
pub use load::load;
pub use memory::Memory;
pub use plan::flows::RunTraffic;
pub use plan::keys::plain_name;
pub use plan::measure::{CountedFlows, Measure, Moment, Window, WindowEnd};
pub use plan::outline::{Outline, system_of};
pub use plan::seeds;
pub use plan::selection::FlowSet;
pub use plan::spec::{Demand, Options, Plan, Point, QueueLength, RunSpec, Sample, profiles};
pub use plan::tasks::{RunTask, RunTasks};
pub use plan::unloaded::Unloaded;
pub use rooms::{ROOMS, TABLES, TableOf, of_file};
pub use scenario::Scenario;
pub use system::engine::{Engine, EngineKind};
pub use system::envs::{ChosenValue, Envs};
pub use system::ideal::IdealName;
pub use system::slots::{HostKind, Nic, SLOTS, Slot, System, SystemPart, Unfilled};
pub use text::diag::{Diagnostic, Diagnostics, Style};
pub use text::located::{Located, located};
pub use wasm::set_wasmtime;

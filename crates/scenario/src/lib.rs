//! Scenarios: from a TOML file to a checked plan of runs.
//!
//! [`load`] reads the text, applies profiles and settings of the command line, checks everything against the declared parameters of
//! every room and against each other, and expands sweeps and seeds into points. It reports all problems at once, each with its
//! place, what is allowed and a hint. A [`RunSpec`] then is all that a run depends on; [`RunSpec::flows`] draws its flows.
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

mod alone;
mod beside;
mod check;
mod columns;
pub mod deadline;
mod diag;
mod draft;
mod engine;
mod envs;
pub mod event;
mod expand;
mod files;
mod flows;
mod ideal;
mod keys;
mod layers;
mod measure;
pub mod memory;
mod notes;
mod offered;
mod outline;
mod part;
mod plan;
mod queues;
mod read;
mod resolved;
mod rooms;
mod rows;
pub mod seeds;
pub mod seek;
mod selection;
mod short_queues;
mod shown;
mod slots;
mod spec;
mod spell;
mod state;
mod steady;
mod sweep;
mod tokens;
pub mod topology;
mod tree;
mod unfit;
mod warn;
pub mod workload;

pub use alone::Alone;
pub use diag::{Diagnostic, Diagnostics, Style};
pub use engine::{Engine, EngineKind};
pub use envs::Envs;
pub use files::Files;
pub use ideal::Ideal;
pub use keys::plain_name;
pub use measure::{Counted, Measure, Moment, Window};
pub use memory::Memory;
pub use outline::{Outline, system_of};
pub use plan::load;
pub use rooms::{ROOMS, TABLES, TableOf};
pub use selection::FlowSet;
pub use slots::{Nic, SLOTS, Slot, System, SystemPart, Unfilled};
pub use spec::{Demand, Options, Plan, Point, QueueLength, RunSpec, Sample, profiles};

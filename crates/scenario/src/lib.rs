//! Scenarios: from a TOML file to a checked plan of runs.
//!
//! [`load`] reads the text, applies a profile and settings of the command line, checks everything against the declared parameters of
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
//! assert_eq!(plan.points[0].run.flows().unwrap().len(), 100);
//! ```

mod check;
mod csv_rows;
pub mod deadline;
mod diag;
pub mod event;
mod files;
mod ideal;
mod merge;
mod part;
mod plan;
mod read;
mod resolved;
mod spec;
mod sweep;
pub mod topology;
mod tree;
pub mod workload;

pub use diag::{Diagnostic, Diagnostics, Style};
pub use files::Files;
pub use ideal::Ideal;
pub use plan::load;
/// A table of a scenario without a kind.
#[derive(Clone, Copy, Debug)]
pub struct TableOf {
    /// Its dotted name; empty for the scenario itself.
    pub name: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// Its keys.
    pub fields: &'static [base::params::Field],
}

/// All tables without a kind, for `list` and `explain`.
pub const TABLES: [TableOf; 6] = {
    use base::params::Params;
    [
        TableOf { name: "", about: "the scenario itself", fields: read::Head::FIELDS },
        TableOf { name: "event", about: "a link or switch that goes down or comes up", fields: event::EventParams::FIELDS },
        TableOf { name: "event.random", about: "links or switches drawn by the seed", fields: event::RandomParams::FIELDS },
        TableOf { name: "failure", about: "how the network finds out about events", fields: event::FailureParams::FIELDS },
        TableOf { name: "sample", about: "time series to record", fields: read::SampleParams::FIELDS },
        TableOf { name: "system.nic", about: "the hosts' ports", fields: read::NicParams::FIELDS },
    ]
};

pub use spec::{Nic, Options, Plan, Point, RunSpec, Sample, System, Traffic};

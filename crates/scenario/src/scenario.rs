//! A scenario that is built in Rust instead of being read from a file.

use crate::load::load;
use crate::plan::outline::Outline;
use crate::plan::render::quoted;
use crate::plan::spec::{Options, Plan};
use crate::text::diag::Diagnostics;
use crate::topology;
use crate::workload;

/// A scenario under construction: a topology, workloads and systems, each given by its parameters. All
/// other keys of a scenario have their defaults, unless [`set`](Scenario::set) sets them.
///
/// [`plan`](Scenario::plan) reads and checks it as [`load`] does a file, so that it has the same rules,
/// defaults and messages. A parameter that has its default counts as not given: the settings that an
/// entry implies for other parts apply to it.
///
/// ```
/// use base::params::Params as _;
/// use base::Fraction;
/// use proto::transport::newreno;
/// use scenario::{Outline, Scenario, topology::star, workload::poisson};
///
/// let web = poisson::Params { flows: 100, load: Fraction::from_percent(80), ..poisson::Params::defaults() };
/// let plan = Scenario::new(star::Params { hosts: 4, ..star::Params::defaults() })
///     .workload("web", web)
///     .system(Outline::named("TCP").transport(newreno::Params::defaults()))
///     .set("seed", "[1, 2]")
///     .plan()?;
/// assert_eq!(plan.points.len(), 2);
/// # Ok::<(), scenario::Diagnostics>(())
/// ```
#[derive(Clone, Debug)]
pub struct Scenario {
    topology: topology::AnyParams,
    /// The workloads by name.
    workloads: Vec<(String, workload::AnyParams)>,
    systems: Vec<Outline>,
    /// Further keys, as (dotted key, value).
    set: Vec<(String, String)>,
}

impl Scenario {
    /// Creates a scenario on this topology. It needs at least one workload and one system.
    pub fn new(topology: impl Into<topology::AnyParams>) -> Scenario {
        Scenario { topology: topology.into(), workloads: Vec::new(), systems: Vec::new(), set: Vec::new() }
    }
    /// Adds a workload. Its name is that of its table in a file, `[workload.NAME]`.
    pub fn workload(mut self, name: &str, workload: impl Into<workload::AnyParams>) -> Scenario {
        self.workloads.push((name.to_owned(), workload.into()));
        self
    }
    /// Adds a system. All systems have the same flows.
    pub fn system(mut self, system: Outline) -> Scenario {
        self.systems.push(system);
        self
    }
    /// Sets a key as `--set` does on the command line. The value is written as in a file, and a list
    /// is a sweep: `("seed", "[1, 2]")`, `("end", "10ms")`, `("workload.web.load", "[0.4, 0.8]")`.
    pub fn set(mut self, key: &str, value: &str) -> Scenario {
        self.set.push((key.to_owned(), value.to_owned()));
        self
    }
    /// Returns the scenario as the text of a file, without the keys that [`set`](Scenario::set) sets.
    pub fn toml(&self) -> String {
        let table = |header: String, kind: &str, values: Vec<(&'static str, String)>| {
            let lines = values.iter().map(|(key, value)| format!("{key} = {}\n", quoted(value)));
            format!("[{header}]\nkind = {}\n{}\n", quoted(kind), lines.collect::<String>())
        };
        let mut text = table("topology".to_owned(), self.topology.name(), self.topology.changed());
        for (name, workload) in &self.workloads {
            text += &table(format!("workload.{}", quoted(name)), workload.name(), workload.changed());
        }
        text + &self.systems.iter().map(Outline::toml).collect::<Vec<_>>().join("\n")
    }
    /// Checks the scenario and expands its sweeps into the points of a plan. Fails with all problems at
    /// once. Relative paths of files start at the current folder.
    pub fn plan(&self) -> Result<Plan, Diagnostics> {
        load(&self.toml(), "scenario", ".".as_ref(), &Options { set: self.set.clone(), ..Options::default() })
    }
}

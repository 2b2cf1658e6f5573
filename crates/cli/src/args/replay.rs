//! Options of `why` and `play`, the commands that rerun points.

use super::parse::{pair, tail};
use std::path::PathBuf;

/// Options of `why`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  flowloom why results/demo                                      the flows with the largest slowdown
  flowloom why results/demo --point merp-load0.8-seed1 --flow 17,99
  flowloom why results/demo --slowest 10 --trace                 also write the packets around them as a table
  flowloom why results/demo --at load=0.8 --where 'size_bytes <= 100KB' --tail 0.99   small flows above the 99th percentile, per system
  flowloom why results/demo --point dctcp-seed1 --group slowest  the last flow to finish in each of the slowest groups
  flowloom why results/job --collective slowest                  the messages that delayed the slowest collective

The command reruns the point with a trace of these flows: this takes as long as the first run, or twice as long with `--trace`. The parts of
a flow sum to its completion time, and the mean parts of a class of flows to the mean completion time of the class. With `--collective` it
only reads the tables of the run.")]
pub struct WhyArgs {
    /// A results folder of `flowloom run`
    pub dir: PathBuf,
    /// Flows by `flow_id` [default: the 5 with the largest slowdown]
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    pub flow: Vec<u32>,
    /// The N flows with the largest slowdown
    #[arg(long, value_name = "N", conflicts_with_all = ["flow", "group"], value_parser = clap::value_parser!(u32).range(1..=200))]
    pub slowest: Option<u32>,
    /// For each of these groups, the flow that finished last; `slowest`: the 5 groups that took
    /// longest
    #[arg(long, value_name = "slowest|N,...", conflicts_with = "flow")]
    pub group: Option<String>,
    /// The messages that delayed the last rank of a collective, which has this name or `group_id`;
    /// `slowest`: the collective that took longest, unless one has this name
    #[arg(long, value_name = "slowest|NAME|N", conflicts_with_all = ["flow", "slowest", "group", "at", "where", "tail", "trace", "files", "out"])]
    pub collective: Option<String>,
    /// The point, if the run has several [default: the point with the largest slowdown]
    #[arg(long)]
    pub point: Option<String>,
    /// Explain a class of flows for each system: the flows at this value of a swept key. May be
    /// repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair, conflicts_with_all = ["flow", "slowest", "group", "point"])]
    pub at: Vec<(String, String)>,
    /// Explain a class of flows for each system: the flows that match, such as `workload == "web"
    /// and size_bytes <= 100KB`
    #[arg(long, value_name = "FILTER", conflicts_with_all = ["flow", "slowest", "group", "point"])]
    pub r#where: Option<String>,
    /// Explain a class of flows for each system: the flows with a slowdown at or above this
    /// quantile of the class, such as 0.99
    #[arg(long, value_name = "SHARE", value_parser = tail, conflicts_with_all = ["flow", "slowest", "group", "point"])]
    pub tail: Option<f64>,
    /// Maximum number of flows of a class to explain, for each system; they are spread evenly over
    /// the slowdowns of the class
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    /// Rerun the point once more and also write the packets around the flows: all packets that
    /// crossed the ports of their paths
    #[arg(long, conflicts_with_all = ["at", "where", "tail"])]
    pub trace: bool,
    /// The folder of the scenario, if the scenario reads files [default: this folder]
    #[arg(long, value_name = "DIR")]
    pub files: Option<PathBuf>,
    /// The figure's file [default: figures/why.png and .svg in the results folder]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Options of `play`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Without `--around`, the scenario needs `packets = true` in [sample]; with `flows = true` the page also shows the windows of flows. With
`--around`, each point is rerun twice: once to find the ports on the flow's path, once to record the packets at these ports while the flow is
open.

Examples:
  flowloom play results/who_has_the_link           writes results/who_has_the_link/playback.html
  flowloom play results/sweep --at load=0.8        one point of a sweep per system
  flowloom play results/demo --around 17           flow 17 in each system, and the packets that share its ports
  flowloom play results/demo --around 17 --point merp-load0.8-seed1")]
pub struct PlayArgs {
    /// A results folder of `flowloom run`
    pub dir: PathBuf,
    /// Show only the points with this value of a swept key. May be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    pub at: Vec<(String, String)>,
    /// Show only the packets around these flows, by `flow_id`; reruns the points
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    pub around: Vec<u32>,
    /// Show only this point
    #[arg(long, conflicts_with = "at")]
    pub point: Option<String>,
    /// The folder of the scenario, if the scenario reads files and points are rerun [default: this
    /// folder]
    #[arg(long, value_name = "DIR", requires = "around")]
    pub files: Option<PathBuf>,
    /// The file to write [default: playback.html in the results folder]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

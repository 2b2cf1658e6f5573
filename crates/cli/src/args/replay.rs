//! Options of the commands that run points again: `why` and `play`.

use super::parse::{pair, tail};
use std::path::PathBuf;

/// Options of `why`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  flowloom why results/demo                                      the flows that were slowed down most
  flowloom why results/demo --point merp-load0.8-seed1 --flow 17,99
  flowloom why results/demo --slowest 10 --trace                 and the packets around them, as a table
  flowloom why results/demo --at load=0.8 --where 'size_bytes <= 100KB' --tail 0.99   small flows above the 99th percentile, by system
  flowloom why results/demo --point dctcp-seed1 --group slowest  the straggler of each of the slowest groups

The point is run again with a trace of these flows, so it takes as long as it took, and twice as long with `--trace`. The parts of a
flow sum to its completion time, and the mean parts of a class of flows to its mean completion time.")]
pub struct WhyArgs {
    /// A folder that `flowloom run` wrote
    pub dir: PathBuf,
    /// Flows by `flow_id` [default: the 5 with the largest slowdown]
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    pub flow: Vec<u32>,
    /// So many flows with the largest slowdown
    #[arg(long, value_name = "N", conflicts_with_all = ["flow", "group"], value_parser = clap::value_parser!(u32).range(1..=200))]
    pub slowest: Option<u32>,
    /// The flow of each of these groups that finished last; `slowest`: of the 5 groups that took longest
    #[arg(long, value_name = "slowest|N,...", conflicts_with = "flow")]
    pub group: Option<String>,
    /// The point, where the run has several [default: the one with the largest slowdown]
    #[arg(long)]
    pub point: Option<String>,
    /// A class of flows for each system: at this value of a swept key. May be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair, conflicts_with_all = ["flow", "slowest", "group", "point"])]
    pub at: Vec<(String, String)>,
    /// A class of flows for each system: `workload == "web" and size_bytes <= 100KB`
    #[arg(long, value_name = "FILTER", conflicts_with_all = ["flow", "slowest", "group", "point"])]
    pub r#where: Option<String>,
    /// A class of flows for each system: those with a slowdown from this quantile of the others' on, such as 0.99
    #[arg(long, value_name = "SHARE", value_parser = tail, conflicts_with_all = ["flow", "slowest", "group", "point"])]
    pub tail: Option<f64>,
    /// Flows of a class that are explained at most, for each system; they are spread evenly over the class by slowdown
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    /// Run the point once more, and write the packets around the flows beside the picture: what passed the ports of their paths
    #[arg(long, conflicts_with_all = ["at", "where", "tail"])]
    pub trace: bool,
    /// The folder of the scenario, if the scenario reads files [default: the working directory]
    #[arg(long, value_name = "DIR")]
    pub files: Option<PathBuf>,
    /// The picture's file [default: figures/why.png and .svg in the results' folder]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Options of `play`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Without `--around` the scenario's [sample] table needs `packets = true`; with `flows = true` the page has the windows of flows too. With
`--around` each point is run again twice: once to find the ports of the flow's path, once to record what passes them while it is open.

Examples:
  flowloom play results/who_has_the_link           results/who_has_the_link/playback.html
  flowloom play results/sweep --at load=0.8        one point of a sweep for each system
  flowloom play results/demo --around 17           flow 17 in each system, and what shares its ports
  flowloom play results/demo --around 17 --point merp-load0.8-seed1")]
pub struct PlayArgs {
    /// A folder that `flowloom run` wrote
    pub dir: PathBuf,
    /// Only at this value of a swept key. May be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    pub at: Vec<(String, String)>,
    /// Only what is around these flows, by `flow_id`: runs the points again
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    pub around: Vec<u32>,
    /// Only this point
    #[arg(long, conflicts_with = "at")]
    pub point: Option<String>,
    /// The folder of the scenario, if the scenario reads files and points are run again [default: the working directory]
    #[arg(long, value_name = "DIR", requires = "around")]
    pub files: Option<PathBuf>,
    /// The file [default: playback.html in the results' folder]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

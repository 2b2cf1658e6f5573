//! The commands and their options.

mod copied;
mod plot;
mod replay;

pub use copied::{CopiesArgs, ExamplesArgs, LabArgs, Lang, NewArgs, NewPart};
pub use plot::{ColorStyle, Format, PlotArgs};
pub use replay::{PlayArgs, WhyArgs};

use crate::named::NAMED;
use clap::builder::PossibleValuesParser;
use clap::{Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use scenario::ROOMS;
use std::path::PathBuf;

mod parse;
pub use parse::{EngineArg, Shard, ThreadsArg, parse};
use parse::{engine, jobs, memory, pair, place, shard, threads};

/// Simulate data-center transports, packet by packet.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "flowloom",
    version = tables::PROGRAM,
    max_term_width = 120,
    disable_help_subcommand = true,
    after_help = "\
Examples:
  flowloom examples demo                       copy demo.toml, an example scenario, to this folder
  flowloom run demo.toml                       simulate; results go to results/demo
  flowloom report results/demo                 print the summary and write one HTML file with tables and figures
  flowloom plot results/demo                   draw figures
  flowloom run demo.toml --set workload.web.load=0.9 --seed 1,2,3
  flowloom explain newreno                     its model, its parameters and the source of each default
  flowloom papers                              list the papers that can be reproduced

Exit codes: 0 done, 1 a check asked for with --strict failed, 2 input, 5 storage or memory, 70 a bug, 130 and 143 stopped."
)]
pub struct Args {
    /// The command to run.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Check a scenario and print it with every default filled in
    Check(CheckArgs),
    /// Simulate a scenario
    Run(RunArgs),
    /// Join the results of `run --shard`
    Merge(MergeArgs),
    /// Print the summary of results and write their report
    Report(ReportArgs),
    /// Print the summary of results as LaTeX, CSV or Markdown
    Table(TableArgs),
    /// Draw figures of results
    Plot(PlotArgs),
    /// Show where flows spent their time: in queues, waiting for the window, on retransmissions
    Why(WhyArgs),
    /// Compare systems flow by flow
    Compare(CompareArgs),
    /// Write a point in another program's format
    Export(ExportArgs),
    /// Write an HTML page that replays the packets of a run on its network
    Play(PlayArgs),
    /// Write a run to one archive: its scenario, its results and the command that reproduces them
    Pack(PackArgs),
    /// List the transports, topologies, workloads, metrics, ... that can be used
    List(ListArgs),
    /// Explain a transport, queue discipline, topology, metric, ...
    Explain(ExplainArgs),
    /// Copy an example to this folder; without a name, list the examples
    Examples(ExamplesArgs),
    /// Copy a notebook with an exercise to this folder; without a name, list the exercises
    Lab(LabArgs),
    /// Write a plug-in to change: its source, a scenario that compares it with a built-in protocol, and a test
    New(NewArgs),
    /// Reproduce the figures of a paper and check its claims; without a name, list the papers
    Papers(PapersArgs),
    /// Search settings that a scenario or paper leaves open: where claims hold, or where a system performs worst
    Seek(SeekArgs),
    /// Print a JSON Schema of scenarios, for editors
    Schema(SchemaArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
}

/// The scenario and the options that change it.
#[derive(Clone, Debug, clap::Args)]
pub struct ScenarioArgs {
    /// The scenario, a TOML file
    pub file: PathBuf,
    /// Override a key; a list sweeps. May be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    pub set: Vec<(String, String)>,
    /// Apply profiles of the scenario, in this order; a later profile overrides an earlier one
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub profile: Vec<String>,
    /// Seeds to use instead of the scenario's
    #[arg(long, value_name = "N,N,...", value_delimiter = ',')]
    pub seed: Option<Vec<u64>>,
    /// Ideal schedules to compute in addition to the systems
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', help = ideals())]
    pub ideal: Option<Vec<String>>,
    /// Memory that all running points may use together, such as 8GB [default: the free memory]. Fails if one point needs more
    #[arg(long, value_name = "BYTES", value_parser = memory)]
    pub memory: Option<u64>,
}

fn ideals() -> String {
    format!("Ideal schedules to compute in addition to the systems: {}", fabric::ideal::ROOM.names().collect::<Vec<_>>().join(", "))
}

/// Options of `check`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  flowloom check demo.toml                                   all errors with their lines or, if there are none, the whole plan
  flowloom check demo.toml --profile smoke --set mtu=9000B   the plan of a run with these options
  flowloom check demo.toml --format json                     for editors and scripts")]
pub struct CheckArgs {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub scenario: ScenarioArgs,
    /// Exit with code 1 if there is a warning
    #[arg(long)]
    pub strict: bool,
    /// `json`: errors and warnings as one JSON object on standard output, with their places in the file
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: CheckFormat,
}

/// The output format of `check`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum CheckFormat {
    Text,
    Json,
}

/// Options of `run`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  flowloom run demo.toml
  flowloom run demo.toml --set 'workload.web.load=[0.2,0.8]' --seed 1,2,3   a sweep of two loads with three seeds
  flowloom run demo.toml --set system.MERP.agent.alpha=0.99 --out results/alpha
  flowloom run demo.toml --profile smoke --jobs 4
  flowloom run demo.toml --threads 2               one large network on two cores
  flowloom run demo.toml --set seed=auto --set precision=2%   as many seeds as the precision needs
  flowloom run demo.toml --profile literal,smoke   two profiles; the second overrides the first
  flowloom run demo.toml --ideal srpt,ps           also compute ideal schedules of the same flows (takes seconds)
  flowloom run demo.toml --shard 3/10              the third of ten shards, for `flowloom merge`
  flowloom run demo.toml --on dask://head:8786     on the workers of a Dask cluster

To continue a run that was stopped, give the same command again: finished points are kept. Results of another scenario, setting or version
in the folder are replaced only with --overwrite.")]
pub struct RunArgs {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub scenario: ScenarioArgs,
    /// Points to run at the same time [default: one per core, or per `--threads` cores]
    #[arg(long, value_name = "N", value_parser = jobs, allow_negative_numbers = true)]
    pub jobs: Option<usize>,
    /// Threads per point. `auto`: uses idle cores where the network is large enough to benefit. The results do not depend on it
    #[arg(long, value_name = "N", value_parser = threads, default_value = "auto", allow_negative_numbers = true)]
    pub threads: ThreadsArg,
    /// The order of events in a run by packets. `tree`: by time. `windows`: node by node, faster in large networks. `auto`
    /// chooses by the size of the network. The results do not depend on it
    #[arg(long, value_name = "ENGINE", value_parser = engine, default_value = "auto", conflicts_with = "on")]
    pub engine: EngineArg,
    /// The folder for the results [default: results/NAME, where NAME is the name of the scenario]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace results of another scenario, setting or version in that folder
    #[arg(long)]
    pub overwrite: bool,
    /// Run one shard of the points, such as 3/10; `flowloom merge` joins the shards of several machines
    #[arg(long, value_name = "K/N", value_parser = shard, conflicts_with = "on")]
    pub shard: Option<Shard>,
    /// Run the points on a cluster: `dask` (workers on this machine), `dask://HOST:PORT` (workers of a Dask scheduler) or `slurm`. With `dask` and
    /// `slurm`, `--jobs` is the number of workers
    #[arg(long, value_name = "WHERE", value_parser = place)]
    pub on: Option<String>,
    /// If there is a warning, run nothing and exit with code 1. Exit with code 1 if a flow did not finish or the precision was not reached
    #[arg(long)]
    pub strict: bool,
}

/// Options of `merge`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  flowloom merge results/demo-shard1of2 results/demo-shard2of2 --out results/demo

All shards must come from one scenario, run with the same options and the same version. The result is byte for byte that of a run on one
machine.")]
pub struct MergeArgs {
    /// Results folders of `flowloom run --shard`
    #[arg(required = true)]
    pub dirs: Vec<PathBuf>,
    /// The folder for the joined results; may be one of the given folders
    #[arg(long, value_name = "DIR", required = true)]
    pub out: PathBuf,
    /// Exit with code 1 if points are missing
    #[arg(long)]
    pub strict: bool,
}

/// Options of `report`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  flowloom report results/demo                     writes results/demo/report.html
  flowloom report results/demo --out demo.html")]
pub struct ReportArgs {
    /// Results folders of `flowloom run`
    #[arg(required = true)]
    pub dirs: Vec<PathBuf>,
    /// Use only the flows that match, such as `workload == "web" and size_bytes <= 100KB`
    #[arg(long, value_name = "FILTER")]
    pub r#where: Option<String>,
    /// The file to write [default: report.html in each results folder]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Options of `table`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  flowloom table results/demo                                    the summary that `flowloom run` prints
  flowloom table results/demo --format latex --out demo.tex      for a paper; needs \\usepackage{booktabs}
  flowloom table results/demo --format csv --metrics mean_slowdown,p99_slowdown_short
  flowloom table results/demo --where 'workload == \"web\" and size_bytes <= 100KB' --at load=0.8

`flowloom list metrics` prints the metrics.")]
pub struct TableArgs {
    /// A results folder of `flowloom run`
    pub dir: PathBuf,
    /// The format
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: TableFormat,
    /// The columns [default: those of the summary]
    #[arg(long, value_name = "METRIC,...", value_delimiter = ',')]
    pub metrics: Vec<String>,
    /// Use only the flows that match, such as `workload == "web" and size_bytes <= 100KB`
    #[arg(long, value_name = "FILTER")]
    pub r#where: Option<String>,
    /// Use only the points with this value of a swept key, or with one of several values: `load=0.4,0.8`. May be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    pub at: Vec<(String, String)>,
    /// The file to write [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// A format of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum TableFormat {
    Text,
    Latex,
    Csv,
    Markdown,
}

/// Options of `compare`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  flowloom compare results/demo                  every pair of systems of a run
  flowloom compare results/before results/after  the same systems in two runs
  flowloom compare results/demo --where 'size_bytes <= 100KB'   only small flows

All systems of a scenario carry the same flows, so each flow is compared with itself. Printed are the ratio of completion times, with a 95 %
confidence interval over seeds, and the ratio of the 99th percentiles of slowdowns, with a 95 % interval by bootstrap of seeds and flows.")]
pub struct CompareArgs {
    /// Results folders of `flowloom run`
    #[arg(required = true)]
    pub dirs: Vec<PathBuf>,
    /// Use only the flows that match, such as `workload == "web" and size_bytes <= 100KB`
    #[arg(long, value_name = "FILTER")]
    pub r#where: Option<String>,
}

/// Options of `export`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  flowloom export results/demo --format perfetto --point merp-load0.8-seed1    flows, links and queues over time: open the file at ui.perfetto.dev
  flowloom export results/trace --format pcapng                                the packet trace, for Wireshark and tcpdump
  flowloom export results/demo --format htsim --point merp-load0.8-seed1       the flows, as input of htsim; `hpcc`: as input of HPCC's simulator

docs/formats.md describes the formats.")]
pub struct ExportArgs {
    /// A results folder of `flowloom run`
    pub dir: PathBuf,
    /// The format; `flowloom list formats` lists the formats
    #[arg(long, value_name = "FORMAT")]
    pub format: String,
    /// The point; required if the run has several
    #[arg(long)]
    pub point: Option<String>,
    /// The file to write [default: in the results folder, named like the point]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Options of `pack`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  flowloom pack results/demo                                      results/demo.zip
  flowloom pack results/trace --scenario examples/trace.toml      with the files that the scenario reads")]
pub struct PackArgs {
    /// A results folder of `flowloom run`
    pub dir: PathBuf,
    /// The scenario file; required if the scenario reads other files, which are found relative to it
    #[arg(long, value_name = "FILE")]
    pub scenario: Option<PathBuf>,
    /// The archive to write [default: the name of the results folder with .zip]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Options of `list`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  flowloom list              everything
  flowloom list transports   the allowed values of `transport = \"...\"`")]
pub struct ListArgs {
    /// What to list [default: everything]
    #[arg(value_parser = listable())]
    pub what: Option<String>,
}

/// The arguments that `list` accepts: the plural names of the rooms and of the other lists.
fn listable() -> PossibleValuesParser {
    PossibleValuesParser::new(ROOMS.iter().map(|room| room.plural).chain(NAMED.iter().map(|list| list.plural)))
}

/// Options of `explain`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  flowloom explain newreno
  flowloom explain merp           the transport and the agent of this name
  flowloom explain p99_slowdown   a metric
  flowloom explain websearch      a flow-size distribution: its moments, quantiles and shape")]
pub struct ExplainArgs {
    /// A name that `flowloom list` prints
    pub kind: String,
}

/// Options of `papers`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  flowloom papers                                  list the papers that can be reproduced
  flowloom papers merp --profile smoke             all figures of a paper, as small runs
  flowloom papers merp fig5 --jobs 2               one figure at full size
  flowloom papers merp --update                    run at full size what has changed and update docs/papers/merp")]
pub struct PapersArgs {
    /// The paper
    pub name: Option<String>,
    /// One of its figures [default: all]
    pub figure: Option<String>,
    /// Profiles of its scenarios, applied in this order; `paper`: the scenarios without a profile
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "paper")]
    pub profile: Vec<String>,
    /// Points to run at the same time [default: one per core]
    #[arg(long, value_name = "N", value_parser = jobs, allow_negative_numbers = true)]
    pub jobs: Option<usize>,
    /// The folder for the results [default: results/papers]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace results of another setting or version in that folder
    #[arg(long)]
    pub overwrite: bool,
    /// Run at full size only what has changed since the page in DIR was written, and update the page
    /// [DIR: docs/papers/NAME]
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, requires = "name",
        conflicts_with_all = ["profile", "overwrite"])]
    pub update: Option<Option<PathBuf>>,
    /// Exit with code 1 if a claim is not met
    #[arg(long)]
    pub strict: bool,
}

/// Options of `seek`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  flowloom seek papers/ssp/seek.toml       find the open settings under which the numbers of a paper are reproduced
  flowloom seek mine.toml --jobs 4         a scenario with a table [seek]: see `flowloom explain seek`
  flowloom seek mine.toml --on dask        run the points on a cluster; the same command continues an interrupted search")]
pub struct SeekArgs {
    /// A TOML file with a table `[seek]`
    pub file: PathBuf,
    /// Points to run at the same time [default: one per core]
    #[arg(long, value_name = "N", value_parser = jobs, allow_negative_numbers = true)]
    pub jobs: Option<usize>,
    /// Where the points run: `local`, `slurm`, `dask` or the address of a Dask scheduler
    #[arg(long, value_name = "WHERE", default_value = "local")]
    pub on: String,
    /// The folder for the results [default: results/NAME-seek]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// Options of `schema`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  flowloom schema > scenario.schema.json

If the first line of a scenario is `#:schema ./scenario.schema.json`, editors with TOML support check the file and complete its keys.")]
pub struct SchemaArgs {}

/// Options of `completions`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  flowloom completions bash > ~/.local/share/bash-completion/completions/flowloom
  flowloom completions zsh > ~/.zfunc/_flowloom")]
pub struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_definitions_are_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn every_command_has_examples() {
        let args = Args::command();
        for command in args.get_subcommands() {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Examples:"), "{} has no examples", command.get_name());
            assert!(help.contains(&format!("flowloom {}", command.get_name())), "{}", command.get_name());
        }
    }

    #[test]
    fn examples_parse() {
        let args = Args::command();
        let helps = args.get_subcommands().chain([&args]).map(|c| c.get_after_help().map(ToString::to_string).unwrap_or_default());
        let mut n = 0;
        for line in helps.collect::<String>().lines().filter(|line| line.starts_with("  flowloom ")) {
            // Two spaces separate the command from its explanation. Every second piece between quotes is one word.
            let line = line.trim().split(" > ").next().unwrap().split("  ").next().unwrap();
            let pieces = line.split('\'').enumerate().flat_map(|(i, piece)| match i % 2 {
                0 => piece.split_whitespace().collect(),
                _ => vec![piece],
            });
            Args::try_parse_from(pieces).unwrap_or_else(|e| panic!("{line}: {e}"));
            n += 1;
        }
        assert!(n >= 20, "{n}");
    }

    #[test]
    fn an_engine_is_named() {
        assert_eq!(engine("windows"), Ok(EngineArg(sim::EventOrder::Windows)));
        assert!(engine("window").unwrap_err().contains("`auto`, `tree` or `windows`"));
    }

    #[test]
    fn threads_are_a_number_or_auto() {
        assert_eq!((threads("3"), threads("auto")), (Ok(ThreadsArg(3)), Ok(ThreadsArg(0))));
        for bad in ["0", "-1", "two", ""] {
            assert!(threads(bad).unwrap_err().contains("`auto` or a whole number of at least 1"), "{bad}");
        }
    }

    #[test]
    fn jobs_are_counted_from_one() {
        assert_eq!(jobs("3"), Ok(3));
        for bad in ["0", "-1", "x", "", "1.5", "99999999999999999999"] {
            assert!(jobs(bad).unwrap_err().contains("a whole number of at least 1"), "{bad}");
        }
    }

    #[test]
    fn shards_have_every_point_once() {
        assert_eq!(shard("3/10"), Ok(Shard { number: 3, of: 10 }));
        for bad in ["0/3", "4/3", "3", "a/b", "-1/2", "1/0", "1/2/3", ""] {
            assert!(shard(bad).unwrap_err().contains("from `1/10`"), "{bad}");
        }
        for (points, of) in [(10, 3), (2, 5), (0, 1), (6, 6)] {
            let mut all: Vec<usize> = (1..=of).flat_map(|number| Shard { number, of }.points(points)).collect();
            all.sort_unstable();
            assert_eq!(all, (0..points).collect::<Vec<_>>());
        }
    }

    #[test]
    fn points_run_here_or_on_a_cluster_that_has_an_address() {
        for good in ["local", "dask", "slurm", "dask://head:8786", "dask://[::1]:1"] {
            assert_eq!(place(good).as_deref(), Ok(good));
        }
        for bad in
            ["", "dusk", "dask:", "dask://", "dask://head", "dask://head:x", "dask://:8786", "dask://head:99999", "slurm://x"]
        {
            assert!(place(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn pairs_are_split_at_the_first_equals_sign() {
        assert_eq!(pair(" a.b = x=1 "), Ok(("a.b".to_owned(), "x=1".to_owned())));
        assert!(pair("a").is_err() && pair("=1").is_err() && pair("a=").is_err() && pair("a= ").is_err());
        assert_eq!(pair("a=\"\""), Ok(("a".to_owned(), "\"\"".to_owned())));
    }

    #[test]
    fn every_option_of_every_command_refuses_an_empty_value() {
        let args = Args::command();
        let mut n = 0;
        for command in args.get_subcommands() {
            let positional = command.get_positionals().filter(|argument| argument.is_required_set()).map(|argument| match argument
                .get_id()
                .as_str()
            {
                "shell" => "bash",
                "part" => "transport",
                _ => "a",
            });
            let needed: Vec<&str> = positional
                .chain(command.get_arguments().filter(|a| a.get_id() == "out" && a.is_required_set()).map(|_| "--out=o"))
                .collect();
            let start = ["flowloom", command.get_name()];
            for argument in command.get_opts().filter(|argument| argument.get_action().takes_values()) {
                let name = argument.get_long().unwrap();
                for empty in [format!("--{name}="), format!("--{name}= ")] {
                    let line: Vec<String> = start[1..]
                        .iter()
                        .chain(&needed)
                        .map(|word| (*word).to_owned())
                        .chain([empty])
                        .filter(|word| name != "out" || word != "--out=o")
                        .collect();
                    let error = parse(&line).expect_err(&line.join(" "));
                    assert!(error.use_stderr() && error.to_string().contains(&format!("--{name}")), "{line:?}: {error}");
                    n += 1;
                }
            }
        }
        assert!(n >= 80, "{n}");
        for line in [
            &["papers", ""][..],
            &["why", "run", "--collective", ""],
            &["plot", "run", "--kind", "fct_cdf,,slowdown"],
            &["run", "a.toml", "--set", ""],
        ] {
            let line: Vec<String> = line.iter().map(|word| (*word).to_owned()).collect();
            let text = parse(&line).unwrap_err().to_string();
            assert!(text.contains("a value is required for") || text.contains("invalid value '' for"), "{line:?}: {text}");
        }
    }
}

//! All commands and their options.

mod copied;
mod replay;

pub use copied::{CopiesArgs, ExamplesArgs, LabArgs};
pub use replay::{PlayArgs, WhyArgs};

use crate::named::{NAMED, kinds};
use clap::builder::PossibleValuesParser;
use clap::{Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use scenario::ROOMS;
use std::path::PathBuf;

mod parse;
pub use parse::{Shard, ThreadsArg};
use parse::{jobs, memory, pair, place, shard, threads};

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
  flowloom report results/demo                 summary, and one HTML file that holds everything
  flowloom plot results/demo                   figures
  flowloom run demo.toml --set workload.web.load=0.9 --seed 1,2,3
  flowloom explain newreno                     what it is, every parameter and where its value comes from
  flowloom papers                              what can be reproduced

Exit codes: 0 done, 1 a check asked for with --strict failed, 2 input, 5 storage or memory, 70 a bug, 130 and 143 stopped."
)]
pub struct Args {
    /// What to do.
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
    /// Show where the time of flows went: queues, windows, retransmissions
    Why(WhyArgs),
    /// Compare systems flow by flow
    Compare(CompareArgs),
    /// Write a point in another program's format
    Export(ExportArgs),
    /// Write one page that plays the packets of a run over its network
    Play(PlayArgs),
    /// Write one archive of a run: scenario, results, and the command that remakes them
    Pack(PackArgs),
    /// List what there is to build scenarios from
    List(ListArgs),
    /// Explain a transport, queue discipline, topology, metric, ...
    Explain(ExplainArgs),
    /// Copy an example to this folder; without a name, list them
    Examples(ExamplesArgs),
    /// Copy a notebook with an exercise to this folder; without a name, list them
    Lab(LabArgs),
    /// Reproduce figures of papers and judge their claims; without a name, list them
    Papers(PapersArgs),
    /// Search the settings that a scenario or paper leaves open: where do claims hold, where is a system worst
    Seek(SeekArgs),
    /// Print a JSON Schema of scenarios, for editors
    Schema(SchemaArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
}

/// Which scenario.
#[derive(Clone, Debug, clap::Args)]
pub struct ScenarioArgs {
    /// The scenario, a TOML file
    pub file: PathBuf,
    /// Override a key; a list sweeps. May be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    pub set: Vec<(String, String)>,
    /// Lay profiles of the scenario over it, in this order
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub profile: Vec<String>,
    /// Seeds instead of the scenario's
    #[arg(long, value_name = "N,N,...", value_delimiter = ',')]
    pub seed: Option<Vec<u64>>,
    /// Ideal references besides the systems
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', help = ideals())]
    pub ideal: Option<Vec<String>>,
    /// Memory that the points may take together, such as 8GB [default: what is free]. A point that needs more is refused
    #[arg(long, value_name = "BYTES", value_parser = memory)]
    pub memory: Option<u64>,
}

fn ideals() -> String {
    format!("Ideal references besides the systems: {}", fabric::ideal::ROOM.names().collect::<Vec<_>>().join(", "))
}

/// Options of `check`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  flowloom check demo.toml                                   all mistakes at once, with their lines; or the whole plan
  flowloom check demo.toml --profile smoke --set mtu=9000B   what a run with these options would do
  flowloom check demo.toml --format json                     for editors and scripts")]
pub struct CheckArgs {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub scenario: ScenarioArgs,
    /// End with code 1 when there is a warning
    #[arg(long)]
    pub strict: bool,
    /// `json`: what was found as one JSON object on the standard output, with the places in the file
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: CheckFormat,
}

/// How `check` tells what it found.
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
  flowloom run demo.toml --profile literal,smoke   the second laid over the first
  flowloom run demo.toml --ideal srpt,ps           also what ideal schedules make of the same flows: seconds
  flowloom run demo.toml --shard 3/10              the third of ten shares, for `flowloom merge`
  flowloom run demo.toml --on dask://head:8786     on the workers of a Dask cluster

A run that was stopped goes on where it was when the same command is given again: finished points are kept. Results of another scenario,
setting or version in the folder are replaced with --overwrite only.")]
pub struct RunArgs {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub scenario: ScenarioArgs,
    /// Points to run at the same time [default: one per core, or per `--threads` cores]
    #[arg(long, value_name = "N", value_parser = jobs, allow_negative_numbers = true)]
    pub jobs: Option<usize>,
    /// Threads for each point, or `auto`: cores that no other point needs, where the network is large enough to gain. Results are the same
    #[arg(long, value_name = "N", value_parser = threads, default_value = "auto", allow_negative_numbers = true)]
    pub threads: ThreadsArg,
    /// Where results go [default: results/NAME, by the name of the scenario]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace results of another scenario, setting or version in that folder
    #[arg(long)]
    pub overwrite: bool,
    /// Run one share of the points, such as 3/10; `flowloom merge` joins the shares of several machines
    #[arg(long, value_name = "K/N", value_parser = shard, conflicts_with = "on")]
    pub shard: Option<Shard>,
    /// Run points on a cluster: `dask` (workers on this machine), `dask://HOST:PORT` (those of a scheduler), `slurm`. `--jobs` is the number of
    /// workers of `dask` and `slurm`
    #[arg(long, value_name = "WHERE", value_parser = place)]
    pub on: Option<String>,
    /// Run nothing and end with code 1 when there is a warning; end with code 1 when a flow has not finished or a precision is not reached
    #[arg(long)]
    pub strict: bool,
}

/// Options of `merge`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  flowloom merge results/demo-shard1of2 results/demo-shard2of2 --out results/demo

The shares must be of one scenario with the same options, by one version. Results are the same bytes as those of a run on one machine.")]
pub struct MergeArgs {
    /// Folders that `flowloom run --shard` wrote
    #[arg(required = true)]
    pub dirs: Vec<PathBuf>,
    /// Where the joined results go; may be one of the folders
    #[arg(long, value_name = "DIR", required = true)]
    pub out: PathBuf,
    /// End with code 1 when points are missing
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
    /// Folders that `flowloom run` wrote
    #[arg(required = true)]
    pub dirs: Vec<PathBuf>,
    /// Only these flows: `workload == "web" and size_bytes <= 100KB`
    #[arg(long, value_name = "FILTER")]
    pub r#where: Option<String>,
    /// The report's file
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Options of `table`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  flowloom table results/demo                                    as at the end of a run
  flowloom table results/demo --format latex --out demo.tex      for a paper; needs \\usepackage{booktabs}
  flowloom table results/demo --format csv --metrics mean_slowdown,p99_slowdown_short
  flowloom table results/demo --where 'workload == \"web\" and size_bytes <= 100KB' --at load=0.8

`flowloom list metrics` prints the metrics.")]
pub struct TableArgs {
    /// A folder that `flowloom run` wrote
    pub dir: PathBuf,
    /// The format
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: TableFormat,
    /// The columns [default: those of the summary]
    #[arg(long, value_name = "METRIC,...", value_delimiter = ',')]
    pub metrics: Vec<String>,
    /// Only these flows: `workload == "web" and size_bytes <= 100KB`
    #[arg(long, value_name = "FILTER")]
    pub r#where: Option<String>,
    /// Only points with this value of a swept key, or with one of several: `load=0.4,0.8`. May be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    pub at: Vec<(String, String)>,
    /// The file [default: the standard output]
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

/// Options of `plot`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = plot_examples())]
pub struct PlotArgs {
    /// Folders that `flowloom run` wrote
    #[arg(required = true)]
    pub dirs: Vec<PathBuf>,
    /// Kinds of figures [default: all that the results can show]
    #[arg(long, value_name = "KIND,...", value_delimiter = ',')]
    pub kind: Vec<String>,
    /// Only points with this value of a swept key, or with one of several: `load=0.4,0.8`. May be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    pub at: Vec<(String, String)>,
    /// Only these flows: `workload == "web" and size_bytes <= 100KB`
    #[arg(long, value_name = "FILTER")]
    pub r#where: Option<String>,
    /// Systems in this order [default: all, as in the scenario]. May be repeated, for labels with commas
    #[arg(long, value_name = "NAME,...")]
    pub systems: Vec<String>,
    /// Metrics, for the kind `metrics` [default: those of the summary that say something]
    #[arg(long, value_name = "METRIC,...", value_delimiter = ',')]
    pub metrics: Vec<String>,
    /// Statistics, for the kinds `slowdown` and `fct_size`: mean, p50, p95, p99 [default: all]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub statistic: Vec<String>,
    /// `paper`: small text and thin lines for a column of a paper
    #[arg(long, value_name = "STYLE", default_value = "screen")]
    pub style: ColorStyle,
    /// Width of the whole figure: `3.33in`, `85mm`, `8.5cm` or `240pt` [default: by the panels; 3.33in with `--style paper`]
    #[arg(long, value_name = "LENGTH")]
    pub width: Option<String>,
    /// Height of the whole figure [default: by the panels]
    #[arg(long, value_name = "LENGTH")]
    pub height: Option<String>,
    /// A font, such as `Times`; `usetex`: LaTeX sets all text
    #[arg(long, value_name = "NAME")]
    pub font: Option<String>,
    /// Formats of the files; `csv`: the numbers that a figure shows [default: png,svg]
    #[arg(long, value_name = "FORMAT,...", value_delimiter = ',')]
    pub format: Vec<Format>,
    /// Where figures go [default: figures/ in the results' folder]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

fn plot_examples() -> String {
    let examples = "\
Examples:
  flowloom plot results/demo                                   every kind that the results can show
  flowloom plot results/demo --kind metrics,fct_cdf --at load=0.8
  flowloom plot results/demo --kind fct_cdf --out fct.pdf
  flowloom plot results/demo --metrics p99_slowdown_short --style paper --width 3.33in --font Times --format pdf,csv
  flowloom plot results/demo --kind slowdown --statistic mean,p99 --at load=0.8 --systems pFabric,MERP

docs/figures.md shows figures for papers.";
    format!("{examples}\nKinds: {}", kinds())
}

/// A format of figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum Format {
    Png,
    Svg,
    Pdf,
    Csv,
}

/// A style of figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum ColorStyle {
    Screen,
    Paper,
}

/// Options of `compare`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  flowloom compare results/demo                  every pair of systems of a run
  flowloom compare results/before results/after  the same systems in two runs
  flowloom compare results/demo --where 'size_bytes <= 100KB'   of small flows alone

All systems of a scenario see the same flows, so each flow is compared with itself: ratio of completion times, with a 95 %
confidence interval over seeds, and ratio of the 99th percentiles of slowdowns, with one by bootstrap of seeds and flows.")]
pub struct CompareArgs {
    /// Folders that `flowloom run` wrote
    #[arg(required = true)]
    pub dirs: Vec<PathBuf>,
    /// Only these flows: `workload == "web" and size_bytes <= 100KB`
    #[arg(long, value_name = "FILTER")]
    pub r#where: Option<String>,
}

/// Options of `export`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  flowloom export results/demo --format perfetto --point merp-load0.8-seed1    flows, links and queues as tracks: open it at ui.perfetto.dev
  flowloom export results/trace --format pcapng                                the packet trace, for Wireshark and tcpdump
  flowloom export results/demo --format htsim --point merp-load0.8-seed1       the flows, to run them in htsim; `hpcc`: in HPCC's simulator

docs/formats.md says what each format holds.")]
pub struct ExportArgs {
    /// A folder that `flowloom run` wrote
    pub dir: PathBuf,
    /// The format: `flowloom list formats` names them
    #[arg(long, value_name = "FORMAT")]
    pub format: String,
    /// The point, where the run has several
    #[arg(long)]
    pub point: Option<String>,
    /// The file [default: in the results' folder, by the name of the point]
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
    /// A folder that `flowloom run` wrote
    pub dir: PathBuf,
    /// The scenario's file, where the scenario reads other files: they lie beside it
    #[arg(long, value_name = "FILE")]
    pub scenario: Option<PathBuf>,
    /// The archive [default: the results' folder with .zip]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Options of `list`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  flowloom list              everything
  flowloom list transports   what `transport = \"...\"` may be")]
pub struct ListArgs {
    /// What to list [default: everything]
    #[arg(value_parser = listable())]
    pub what: Option<String>,
}

/// What can be listed: the rooms by their plurals, and what can be named beside them.
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
  flowloom explain websearch      a distribution of sizes: its moments, and a picture")]
pub struct ExplainArgs {
    /// A name that `flowloom list` prints
    pub kind: String,
}

/// Options of `papers`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  flowloom papers                                  what can be reproduced
  flowloom papers merp --profile smoke             all figures of a paper, small
  flowloom papers merp fig5 --jobs 2               one figure at full size
  flowloom papers merp --update                    what has changed at full size, into the page docs/papers/merp")]
pub struct PapersArgs {
    /// The paper
    pub name: Option<String>,
    /// One of its figures [default: all]
    pub figure: Option<String>,
    /// Profiles of its scenarios, laid over them in this order; `paper`: the scenarios as they are
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "paper")]
    pub profile: Vec<String>,
    /// Points to run at the same time [default: one per core]
    #[arg(long, value_name = "N", value_parser = jobs, allow_negative_numbers = true)]
    pub jobs: Option<usize>,
    /// Where results go [default: results/papers]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace results of another setting or version in that folder
    #[arg(long)]
    pub overwrite: bool,
    /// Run at full size only what has changed since the page in DIR was written, and bring the page up to date
    /// [DIR: docs/papers/NAME]
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, requires = "name",
        conflicts_with_all = ["profile", "overwrite"])]
    pub update: Option<Option<PathBuf>>,
    /// End with code 1 when a claim is not met
    #[arg(long)]
    pub strict: bool,
}

/// Options of `seek`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  flowloom seek papers/ssp/seek.toml       under which open settings do the numbers of a paper come out
  flowloom seek mine.toml --jobs 4         a scenario with a table [seek]: see `flowloom explain seek`
  flowloom seek mine.toml --on dask        its points on a cluster; an interrupted search goes on where it stopped")]
pub struct SeekArgs {
    /// A file with a table `[seek]`
    pub file: PathBuf,
    /// Points to run at the same time [default: one per core]
    #[arg(long, value_name = "N", value_parser = jobs, allow_negative_numbers = true)]
    pub jobs: Option<usize>,
    /// Where points run: `local`, `slurm`, `dask` or the address of a scheduler of Dask
    #[arg(long, value_name = "WHERE", default_value = "local")]
    pub on: String,
    /// Where results go [default: results/NAME-seek]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// Options of `schema`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  flowloom schema > scenario.schema.json

An editor checks and completes a scenario against it when the first line of the file is `#:schema ./scenario.schema.json`.")]
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
            assert!(help.contains("Examples:"), "{} teaches nothing", command.get_name());
            assert!(help.contains(&format!("flowloom {}", command.get_name())), "{}", command.get_name());
        }
    }

    #[test]
    fn examples_parse() {
        let args = Args::command();
        let helps = args.get_subcommands().chain([&args]).map(|c| c.get_after_help().map(ToString::to_string).unwrap_or_default());
        let mut n = 0;
        for line in helps.collect::<String>().lines().filter(|line| line.starts_with("  flowloom ")) {
            // What follows two spaces explains. Every second piece between quotes is one word.
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
    fn threads_are_a_number_or_left_to_us() {
        assert_eq!((threads("3"), threads("auto")), (Ok(ThreadsArg(3)), Ok(ThreadsArg(0))));
        for bad in ["0", "-1", "two", ""] {
            assert!(threads(bad).unwrap_err().contains("`auto` or a whole number from 1"), "{bad}");
        }
    }

    #[test]
    fn jobs_are_counted_from_one() {
        assert_eq!(jobs("3"), Ok(3));
        for bad in ["0", "-1", "x", "", "1.5", "99999999999999999999"] {
            assert!(jobs(bad).unwrap_err().contains("a whole number from 1"), "{bad}");
        }
    }

    #[test]
    fn shares_have_every_point_once() {
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
        assert!(pair("a").is_err() && pair("=1").is_err());
    }
}

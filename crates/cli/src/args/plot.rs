//! Options of `plot`.

use super::parse::pair;
use crate::named::kinds;
use clap::ValueEnum;
use std::path::PathBuf;

/// Options of `plot`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = plot_examples())]
pub struct PlotArgs {
    /// Results folders of `flowloom run`
    #[arg(required = true)]
    pub dirs: Vec<PathBuf>,
    /// Kinds of figures [default: all for which the results have data]
    #[arg(long, value_name = "KIND,...", value_delimiter = ',')]
    pub kind: Vec<String>,
    /// Use only the points with this value of a swept key, or with one of several values: `load=0.4,0.8`. May be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    pub at: Vec<(String, String)>,
    /// Use only the flows that match, such as `workload == "web" and size_bytes <= 100KB`
    #[arg(long, value_name = "FILTER")]
    pub r#where: Option<String>,
    /// The systems to draw, in this order [default: all, in the order of the scenario]. Repeat the option for labels with commas
    #[arg(long, value_name = "NAME,...")]
    pub systems: Vec<String>,
    /// Metrics for the kind `metrics` [default: the metrics of the summary that are not zero everywhere]
    #[arg(long, value_name = "METRIC,...", value_delimiter = ',')]
    pub metrics: Vec<String>,
    /// Statistics for the kinds `slowdown` and `fct_size`: mean, p50, p95, p99 [default: all]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub statistic: Vec<String>,
    /// The workload to draw, for the kinds `timeline` and `busbw` [default: all workloads with tasks]
    #[arg(long, value_name = "NAME")]
    pub workload: Option<String>,
    /// The start and the end of the time axis, such as `1ms,1.5ms`, for the kinds `timeline` and `throughput` [default: the whole run; of a job with many iterations, the first ones]
    #[arg(long, value_name = "TIME,TIME")]
    pub span: Option<String>,
    /// Groups of links, for the kind `utilisation` [default: none; each link has its own bar]
    #[arg(long, value_name = "GROUPS")]
    pub by: Option<LinkGroups>,
    /// `paper`: small text and thin lines, for one column of a paper
    #[arg(long, value_name = "STYLE", default_value = "screen")]
    pub style: ColorStyle,
    /// Width of the whole figure, such as `3.33in`, `85mm`, `8.5cm` or `240pt` [default: from the panels; 3.33in with `--style paper`]
    #[arg(long, value_name = "LENGTH")]
    pub width: Option<String>,
    /// Height of the whole figure [default: from the panels]
    #[arg(long, value_name = "LENGTH")]
    pub height: Option<String>,
    /// The font, such as `Times`; `usetex`: LaTeX sets all text
    #[arg(long, value_name = "NAME")]
    pub font: Option<String>,
    /// File formats; `csv` writes the numbers that the figure shows [default: png,svg]
    #[arg(long, value_name = "FORMAT,...", value_delimiter = ',')]
    pub format: Vec<Format>,
    /// The folder for the figures, or one file if one figure is drawn [default: figures/ in the results folder]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

fn plot_examples() -> String {
    let examples = "\
Examples:
  flowloom plot results/demo                                   every kind for which the results have data
  flowloom plot results/demo --kind metrics,fct_cdf --at load=0.8
  flowloom plot results/demo --kind fct_cdf --out fct.pdf
  flowloom plot results/demo --metrics p99_slowdown_short --style paper --width 3.33in --font Times --format pdf,csv
  flowloom plot results/demo --kind slowdown --statistic mean,p99 --at load=0.8 --systems pFabric,MERP
  flowloom plot results/demo --kind utilisation --by tier

docs/figures.md shows how to make figures for papers.";
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

/// Groups of links that share a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum LinkGroups {
    Tier,
    Rail,
}

/// A style of figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum ColorStyle {
    Screen,
    Paper,
}

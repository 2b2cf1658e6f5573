//! Options of `examples`, `lab` and `new`, which copy files of the package to the user's folder.

use std::path::PathBuf;

/// Options of `examples`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  flowloom examples                    list the examples
  flowloom examples demo               copy demo.toml to this folder; then: `flowloom run demo.toml`
  flowloom examples goal --out trial   copy goal.toml and the files that it reads")]
pub struct ExamplesArgs {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub copies: CopiesArgs,
}

/// Options of `lab`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  flowloom lab                         list the exercises
  flowloom lab incast                  copy incast.ipynb to this folder; then: `jupyter lab incast.ipynb`
  flowloom lab incast --out course")]
pub struct LabArgs {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub copies: CopiesArgs,
}

/// Options of `new`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  flowloom new transport mine --lang c        write mine.c, mine.toml and a test to this folder, and build mine.so
  flowloom new transport mine --lang python   the same in Python, which needs no build
  flowloom new whole_transport mine --lang c  a transport that is no congestion control
  flowloom new qdisc mine --lang rust --out trial")]
pub struct NewArgs {
    /// The part of a system to write
    #[arg(value_enum)]
    pub part: NewPart,
    /// Its name: lower case letters, digits and `_`
    pub name: String,
    /// The language
    #[arg(long)]
    pub lang: Lang,
    /// The folder to write to [default: this folder]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace existing files of the same names
    #[arg(long)]
    pub overwrite: bool,
}

/// The parts of a system for which there are plug-ins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum NewPart {
    /// A congestion control on the TCP machine
    Transport,
    /// A transport that decides which packets hosts send, and when
    #[value(name = "whole_transport")]
    WholeTransport,
    /// A policy, which sets the classes and ranks of packets at hosts
    Policy,
    /// A queue discipline of ports
    Qdisc,
    /// A router, which chooses among next hops
    Router,
}

/// The languages of plug-ins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Lang {
    /// C, built by `cc`
    C,
    /// Rust, built by `cargo`
    Rust,
    /// Python, for `transport` only
    Python,
}

/// The files to copy and their destination.
#[derive(Clone, Debug, clap::Args)]
pub struct CopiesArgs {
    /// Names of what to copy [default: list the names]
    pub names: Vec<String>,
    /// The folder to copy to [default: this folder]
    #[arg(long, value_name = "DIR", requires = "names")]
    pub out: Option<PathBuf>,
    /// Replace existing files of the same names
    #[arg(long, requires = "names")]
    pub overwrite: bool,
}

//! Options of `examples` and `lab`, which copy files of the package to the user's folder.

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

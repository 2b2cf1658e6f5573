//! Commands that copy files of the package to where the user works.

use std::path::PathBuf;

/// Options of `examples`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  flowloom examples                    the examples, a line each
  flowloom examples demo               copies demo.toml to this folder: then `flowloom run demo.toml`
  flowloom examples goal --out trial   copies goal.toml and the files that it reads")]
pub struct ExamplesArgs {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub copies: CopiesArgs,
}

/// Options of `lab`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  flowloom lab                         the exercises, a line each
  flowloom lab incast                  copies incast.ipynb to this folder: then `jupyter lab incast.ipynb`
  flowloom lab incast --out course")]
pub struct LabArgs {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub copies: CopiesArgs,
}

/// What to copy, and where to.
#[derive(Clone, Debug, clap::Args)]
pub struct CopiesArgs {
    /// What to copy [default: list the names]
    pub names: Vec<String>,
    /// Where the files go [default: this folder]
    #[arg(long, value_name = "DIR", requires = "names")]
    pub out: Option<PathBuf>,
    /// Replace files of the same names
    #[arg(long, requires = "names")]
    pub overwrite: bool,
}

//! Parameters for the flow sizes of a workload: a law, or a table.

use super::Env;
use super::cdf::{self, Cdf, Format, SHIPPED};
use super::size::{SizeLaw, Unit};
use base::Bytes;
use base::params::{Problem, nearest};

base::choice! {
    /// The law of sizes.
    pub enum Size {
        /// Heavy tail with `mean` and `shape`.
        Pareto = "pareto",
        /// Exponential with `mean`.
        Exponential = "exponential",
        /// Uniform between `min` and `max`.
        Uniform = "uniform",
        /// Always `mean`.
        Fixed = "fixed",
        /// A table, see `cdf`.
        Cdf = "cdf",
    }
}

base::params! {
    /// Parameters of every workload that draws sizes from a law.
    pub struct Sizes {
        /// Law of the sizes.
        size: Size = "pareto", "MERP section 6.1";
        /// Mean size; for `fixed` the size.
        mean: Bytes = "1500KB" in Bytes(1)..=Bytes(1_000_000_000_000), "MERP section 6.1.1";
        /// Tail index of `pareto`.
        shape: f64 = "1.8" in 1.01..=100.0, "fits MERP figures 5 to 7; ns-2's default is 1.5";
        /// Smallest size of `uniform`.
        min: Bytes = "2KB" in Bytes(1)..=Bytes(1_000_000_000_000), "PDQ section 5.1";
        /// Largest size of `uniform`.
        max: Bytes = "198KB" in Bytes(1)..=Bytes(1_000_000_000_000), "PDQ section 5.1";
        /// Table of sizes: the name of a shipped distribution, or the path of a file with its
        /// extension.
        cdf: String = "websearch", "DCTCP (SIGCOMM 2010)";
        /// Format of the file of a table.
        cdf_format: Format = "own", "the format of the shipped tables";
        /// Unit of sizes: application bytes, or bytes on the wire.
        size_unit: Unit = "payload", "application view; MERP's scenarios count `wire`";
    }
}

impl Sizes {
    /// Returns the law that the parameters describe.
    pub fn law(&self, env: &Env<'_>) -> Result<SizeLaw, String> {
        let mean = self.mean.0 as f64;
        Ok(match self.size {
            Size::Pareto => SizeLaw::pareto(self.shape, mean),
            Size::Exponential => SizeLaw::Exponential(mean),
            Size::Uniform => SizeLaw::Uniform(self.min.0, self.max.0.max(self.min.0)),
            Size::Fixed => SizeLaw::Fixed(self.mean.0),
            Size::Cdf => SizeLaw::Table(self.table(env)?),
        })
    }
    fn table(&self, env: &Env<'_>) -> Result<Cdf, String> {
        if let Some(shipped) = SHIPPED.iter().find(|s| s.name == self.cdf) {
            return Ok(shipped.table());
        }
        if !is_file(&self.cdf) {
            let near =
                nearest(&self.cdf, SHIPPED.iter().map(|s| s.name)).map_or(String::new(), |n| format!("; did you mean `{n}`?"));
            return Err(format!("there is no distribution `{}`{near}", self.cdf));
        }
        cdf::parse(&self.cdf, &env.files.text(&self.cdf)?, self.cdf_format)
    }
    /// Returns the problems that depend on several parameters or on files.
    pub fn problems(&self, env: &Env<'_>) -> Vec<Problem> {
        let mut found = Vec::new();
        let mut add = |key, message: String, hint: &str| found.push(Problem { key, message, hint: hint.to_owned() });
        if self.size == Size::Uniform && self.min > self.max {
            let hint = "write a `min` that is at most `max`: sizes are uniform from `min` to `max`";
            add("min", format!("`{}` is above `max`, `{}`", self.min, self.max), hint);
        }
        if let Err(message) = self.law(env) {
            let names = SHIPPED.iter().map(|s| s.name).collect::<Vec<_>>().join(", ");
            add("cdf", message, &format!("`cdf` is one of {names}, or a file like `sizes.cdf.csv` with its `cdf_format`"));
        }
        found
    }
    /// Returns the parameters that have no effect with the values of the others.
    pub fn ignored(&self) -> Vec<&'static str> {
        let used: &[&str] = match self.size {
            Size::Pareto => &["mean", "shape"],
            Size::Exponential | Size::Fixed => &["mean"],
            Size::Uniform => &["min", "max"],
            Size::Cdf if is_file(&self.cdf) => &["cdf", "cdf_format"],
            Size::Cdf => &["cdf"],
        };
        ["mean", "shape", "min", "max", "cdf", "cdf_format"].into_iter().filter(|k| !used.contains(k)).collect()
    }
    /// Returns the files that the law is read from.
    pub fn files(&self) -> Vec<String> {
        let file = self.size == Size::Cdf && is_file(&self.cdf);
        file.then(|| self.cdf.clone()).into_iter().collect()
    }
}

/// Returns whether `cdf` names a file: names of shipped distributions have no dot and no slash.
fn is_file(name: &str) -> bool {
    name.contains(['.', '/', '\\'])
}

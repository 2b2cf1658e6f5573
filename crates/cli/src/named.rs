//! The lists of `flowloom list` that are not rooms: metrics, flow-size distributions, kinds of
//! figures and export formats.

use crate::text::{columns, short};
use scenario::workload::cdf::{Cdf, SHIPPED, Shipped};
use std::fmt::Write as _;
use tables::stats::METRICS;

/// A list of names.
#[derive(Debug)]
pub struct Named {
    /// The name of the list, in the plural.
    pub plural: &'static str,
    /// What the list contains.
    pub about: &'static str,
    /// Returns the entries of the list.
    pub items: fn() -> Vec<Item>,
}

/// An entry of a list.
#[derive(Clone, Debug)]
pub struct Item {
    /// The name.
    pub name: &'static str,
    /// A summary of one line.
    pub summary: String,
    /// Its source or unit; may be empty.
    pub source: &'static str,
    /// Returns the additional text of `explain` for the name; may be empty.
    pub more: fn(&str) -> String,
}

fn nothing(_: &str) -> String {
    String::new()
}

/// All lists.
pub const NAMED: &[Named] = &[
    Named { plural: "metrics", about: "statistics that are computed for every point", items: metrics },
    Named { plural: "distributions", about: "flow-size distributions, for the key `cdf` of a workload", items: distributions },
    Named { plural: "figures", about: "kinds of figures, for `flowloom plot --kind`", items: figures },
    Named { plural: "formats", about: "formats of other programs, for `flowloom export --format`", items: formats },
];

fn metrics() -> Vec<Item> {
    let item = |m: &tables::stats::Metric| Item { name: m.name, summary: m.about.to_owned(), source: m.unit, more: nothing };
    METRICS.iter().map(item).collect()
}

fn distributions() -> Vec<Item> {
    let item = |one: &'static Shipped| Item {
        name: one.name,
        summary: format!("{}; mean {}", one.title(), bytes(one.mean())),
        source: one.source(),
        more: |name| SHIPPED.iter().find(|one| one.name == name).map_or(String::new(), |one| picture(&one.table())),
    };
    SHIPPED.iter().map(item).collect()
}

/// An entry of a Python room: its name, its summary and the table of results that it needs.
type PythonEntry = (&'static str, &'static str, &'static str);

/// The kinds of figures. `build.rs` reads them from `flowloom.figures.kinds`.
const FIGURES: &[PythonEntry] = include!(concat!(env!("OUT_DIR"), "/figures.rs"));

/// The formats of exports. `build.rs` reads them from `flowloom.exports`.
const FORMATS: &[PythonEntry] = include!(concat!(env!("OUT_DIR"), "/formats.rs"));

fn figures() -> Vec<Item> {
    FIGURES.iter().map(python_entry).collect()
}

fn formats() -> Vec<Item> {
    FORMATS.iter().map(python_entry).collect()
}

fn python_entry((name, summary, needs): &PythonEntry) -> Item {
    let scenario = match *needs {
        "samples" => "; needs [sample]",
        "packets" => "; needs [sample] with `packets = true`",
        _ => "",
    };
    Item { name, summary: format!("{summary}{scenario}"), source: "", more: nothing }
}

/// The kinds of figures in one line, grouped by what the scenario must record for them.
pub fn kinds() -> String {
    let group = |recorded: fn(&str) -> bool| {
        let names = FIGURES.iter().filter(|(.., needs)| recorded(needs)).map(|(name, ..)| *name);
        names.collect::<Vec<_>>().join(", ")
    };
    let (always, samples) = (group(|needs| !["samples", "packets"].contains(&needs)), group(|needs| needs == "samples"));
    let packets = group(|needs| needs == "packets");
    format!("{always}; with [sample]: {samples}; with `packets = true` in [sample]: {packets}")
}

/// Returns the sizes at which a distribution is tabulated: one, two and five of each decade.
fn table_sizes() -> impl Iterator<Item = u64> {
    (0..13).flat_map(|power| [1, 2, 5].map(|digit| digit * 10u64.pow(power)))
}

/// The width of a bar for a share of 100 %.
const BAR: usize = 40;

/// Returns the moments and quantiles of a distribution, and its shares of flows and bytes up to
/// round sizes, as text.
fn picture(cdf: &Cdf) -> String {
    let draws = grid(cdf);
    let (mean, deviation) = moments(cdf, &draws);
    let [tenth, half, most, tail, largest] = [0.1, 0.5, 0.9, 0.99, 1.0].map(|p| bytes(cdf.draw(p) as f64));
    let (mean, deviation) = (bytes(mean), bytes(deviation));
    let mut text = format!(
        "mean {mean}, standard deviation {deviation}; quantiles: 10 % {tenth}, 50 % {half}, 90 % {most}, 99 % {tail}, largest {largest}\n\n"
    );
    let mut rows = vec![["size", "flows", "bytes", "share of flows up to this size"].map(str::to_owned).to_vec()];
    let total: f64 = draws.iter().sum();
    for size in table_sizes() {
        let flows = cdf.at_most(size);
        let carried = draws.iter().filter(|draw| **draw <= size as f64).sum::<f64>() / total;
        if flows > 0.0 {
            let bar = "#".repeat((flows * BAR as f64).round() as usize);
            rows.push(vec![bytes(size as f64), percent(flows), percent(carried), bar]);
        }
        if size >= cdf.max() {
            break;
        }
    }
    let _ = write!(text, "{}", columns("  ", &rows));
    text
}

/// Formats a size: `900 B`, `1.50 MB`.
fn bytes(size: f64) -> String {
    if size < 1000.0 { format!("{size:.0} B") } else { format!("{}B", short(size)) }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// Returns the sizes at equally spaced probabilities.
fn grid(cdf: &Cdf) -> Vec<f64> {
    const DRAWS: u32 = 200_000;
    (0..DRAWS).map(|i| cdf.draw((f64::from(i) + 0.5) / f64::from(DRAWS)) as f64).collect()
}

/// Returns the mean of the distribution and the standard deviation of its sizes `draws`.
fn moments(cdf: &Cdf, draws: &[f64]) -> (f64, f64) {
    let mean = cdf.mean();
    let square = draws.iter().map(|draw| (draw - mean).powi(2)).sum::<f64>() / draws.len() as f64;
    (mean, square.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_name_has_a_line() {
        for list in NAMED {
            let items = (list.items)();
            let names: BTreeSet<&str> = items.iter().map(|item| item.name).collect();
            assert_eq!(names.len(), items.len(), "{}", list.plural);
            assert!(items.iter().all(|item| item.summary.len() > 10 && !item.summary.contains('\n')), "{}", list.plural);
        }
        assert_eq!(distributions().len(), SHIPPED.len());
    }

    #[test]
    fn a_distribution_is_explained_with_its_moments() {
        let find = |name: &str| distributions().into_iter().find(|item| item.name == name).unwrap();
        // Homa's W1. Its file gives the mean.
        let w1 = (find("homa-w1").more)("homa-w1");
        let table = SHIPPED.iter().find(|one| one.name == "homa-w1").unwrap().table();
        let draws = grid(&table);
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        assert!((mean / table.mean() - 1.0).abs() < 0.01, "the grid has the mean: {mean}");
        assert!(w1.starts_with(&format!("mean {}", bytes(table.mean()))), "{w1}");
        let last = w1.lines().last().unwrap();
        assert!(last.contains("100.0 %") && last.ends_with(&"#".repeat(BAR)), "{last}");
    }
}

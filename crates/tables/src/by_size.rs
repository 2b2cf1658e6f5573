//! Slowdown and completion time against flow size, in bins of equal count.

use crate::arrow::words;
use crate::error::{Error, Result};
use crate::estimate::Estimate;
use crate::filter::Filter;
use crate::keys::{KeyColumns, SweptColumn, swept};
use crate::manifest::PointManifest;
use crate::results::Results;
use crate::schema::{BY_SIZE, KEYS, Note, schema};
use crate::stats::{quantile, rests_on};
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array as _, ArrayRef, Float64Array, RecordBatch, UInt32Array, UInt64Array};
use std::sync::Arc;

/// The statistics of a bin, each with its quantile in per mille; `None` for the mean.
pub const STATISTICS: [(&str, Option<u32>); 4] = [("mean", None), ("p50", Some(500)), ("p95", Some(950)), ("p99", Some(990))];

/// The quantities that are summarised by size, with their units.
pub const QUANTITIES: [(&str, &str); 2] = [("slowdown", ""), ("fct_s", "s")];

/// Maximum number of bins.
pub const MOST_BINS: usize = 10;

/// Minimum number of flows per bin, averaged over the bins.
const LEAST_FLOWS: usize = 20;

/// One statistic of one bin.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The system's label.
    pub system: String,
    /// Values of the swept keys, in the order of the manifest.
    pub swept: Vec<Option<String>>,
    /// The number of the bin, from the smallest sizes.
    pub bin: u32,
    /// The smallest, the median and the largest size in the bin.
    pub sizes: [u64; 3],
    /// The quantity, as an index into [`QUANTITIES`].
    pub quantity: usize,
    /// The statistic.
    pub statistic: &'static str,
    /// The estimate over seeds.
    pub estimate: Estimate,
    /// Flows of the bin that finished, over all seeds.
    pub flows: u64,
    /// Flows whose value is at least the quantile, or all flows for a mean, over all seeds.
    pub rests_on: u64,
}

/// A flow of a point: its size and, if it finished, its quantities.
struct Flow {
    size_bytes: u64,
    values: Option<[f64; 2]>,
}

/// Returns all statistics of all bins, for every system and value of the swept keys, over the flows
/// that count or that a filter chooses.
pub fn rows(results: &Results, filter: Option<&Filter>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (key, points) in results.over_seeds() {
        let seeds = points.iter().map(|point| read(results, point, filter)).collect::<Result<Vec<_>>>()?;
        let swept: Vec<_> = results.manifest.sweep_keys.iter().map(|name| swept(key, name).map(str::to_owned)).collect();
        let mut sizes: Vec<u64> = seeds.iter().flatten().map(|flow| flow.size_bytes).collect();
        sizes.sort_unstable();
        for (bin, here) in (0..).zip(bins(&sizes)) {
            let ends = [here[0], here[(here.len() - 1) / 2], here[here.len() - 1]];
            for quantity in 0..QUANTITIES.len() {
                let of_seed = |flows: &Vec<Flow>| {
                    let inside = flows.iter().filter(|flow| (ends[0]..=ends[2]).contains(&flow.size_bytes));
                    let mut values: Vec<f64> = inside.filter_map(|flow| Some(flow.values?[quantity])).collect();
                    values.sort_unstable_by(f64::total_cmp);
                    values
                };
                let seeds: Vec<Vec<f64>> = seeds.iter().map(of_seed).filter(|values| !values.is_empty()).collect();
                rows.extend(STATISTICS.iter().map(|&(statistic, per_mille)| Row {
                    system: key.system.clone(),
                    swept: swept.clone(),
                    bin,
                    sizes: ends,
                    quantity,
                    statistic,
                    estimate: Estimate::of(&seeds.iter().filter_map(|values| of(values, per_mille)).collect::<Vec<f64>>()),
                    flows: seeds.iter().map(|values| values.len() as u64).sum(),
                    rests_on: seeds.iter().map(|values| per_mille.map_or(values.len() as u64, |q| rests_on(values.len(), q))).sum(),
                }));
            }
        }
    }
    Ok(rows)
}

/// Computes a statistic of values in ascending order.
fn of(values: &[f64], per_mille: Option<u32>) -> Option<f64> {
    match per_mille {
        Some(per_mille) => quantile(values, per_mille),
        None => (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64),
    }
}

/// Cuts sizes in ascending order into bins with nearly equal numbers of flows. Equal sizes are in
/// one bin.
fn bins(sizes: &[u64]) -> Vec<&[u64]> {
    let n = sizes.len();
    let most = (n / LEAST_FLOWS).clamp(1, MOST_BINS);
    let mut found = Vec::new();
    let mut first = 0;
    for bin in 1..=most {
        let cut = n * bin / most;
        if cut <= first {
            continue;
        }
        // The cut moves to the nearer end of a run of equal sizes, so that no size is on both sides.
        let size = sizes[cut - 1];
        let (low, high) = (sizes.partition_point(|s| *s < size), sizes.partition_point(|s| *s <= size));
        let end = if bin < most && low > first && cut - low < high - cut { low } else { high };
        found.push(&sizes[first..end]);
        first = end;
    }
    found
}

fn read(results: &Results, point: &PointManifest, filter: Option<&Filter>) -> Result<Vec<Flow>> {
    let path = results.flows_file(point)?;
    let mut flows = Vec::new();
    for batch in results.chosen(point, &["size_bytes", "fct_ps", "slowdown"], filter)? {
        let column = |name: &str| batch.column_by_name(name).ok_or_else(|| Error::damaged(&path, format!("no column `{name}`")));
        let (sizes, fct, slowdown) = (column("size_bytes")?, column("fct_ps")?, column("slowdown")?);
        let sizes = sizes.as_primitive::<UInt64Type>();
        let (fct, slowdown) = (fct.as_primitive::<Int64Type>(), slowdown.as_primitive::<Float64Type>());
        flows.extend((0..batch.num_rows()).map(|i| Flow {
            size_bytes: sizes.value(i),
            values: fct.is_valid(i).then(|| [slowdown.value(i), fct.value(i) as f64 / 1e12]),
        }));
    }
    Ok(flows)
}

/// Returns [`rows`] as a table.
pub fn table(results: &Results, filter: Option<&Filter>) -> Result<RecordBatch> {
    let rows = rows(results, filter)?;
    let columns = KeyColumns::new(&results.manifest);
    let mut fields = vec![KEYS[1].field()];
    fields.extend(columns.swept.iter().map(SweptColumn::field));
    fields.extend(BY_SIZE.iter().map(Note::field));
    let mut arrays: Vec<ArrayRef> = vec![words(rows.iter().map(|row| Some(row.system.as_str())))];
    arrays.extend(columns.swept.iter().enumerate().map(|(i, key)| key.array(rows.iter().map(|row| row.swept[i].as_deref()))));
    let count = |f: fn(&Row) -> u64| -> ArrayRef { Arc::new(UInt64Array::from_iter_values(rows.iter().map(f))) };
    let number = |f: fn(&Estimate) -> Option<f64>| -> ArrayRef {
        Arc::new(rows.iter().map(|row| f(&row.estimate)).collect::<Float64Array>())
    };
    arrays.extend([
        Arc::new(UInt32Array::from_iter_values(rows.iter().map(|row| row.bin))) as ArrayRef,
        count(|row| row.sizes[0]),
        count(|row| row.sizes[1]),
        count(|row| row.sizes[2]),
        words(rows.iter().map(|row| Some(QUANTITIES[row.quantity].0))),
        words(rows.iter().map(|row| Some(QUANTITIES[row.quantity].1))),
        words(rows.iter().map(|row| Some(row.statistic))),
        Arc::new(UInt32Array::from_iter_values(rows.iter().map(|row| row.estimate.n))),
        number(|e| e.mean),
        number(|e| e.ci95.map(|(low, _)| low)),
        number(|e| e.ci95.map(|(_, high)| high)),
        count(|row| row.flows),
        count(|row| row.rests_on),
    ]);
    Ok(RecordBatch::try_new(schema(fields, "slowdown and completion time by flow size"), arrays)
        .expect("columns follow their notes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::FlowColumns;
    use crate::manifest::{PointKey, Ran};
    use crate::results::tests::{outcome, run_manifest};
    use crate::run_dir::RunDir;
    use sim::Outcome;

    /// An outcome with flows of these sizes and slowdowns; `None`: unfinished.
    fn with(flows: &[(u64, Option<u64>)]) -> Outcome {
        let mut out = outcome(flows.len() as u32);
        for (flow, (size, slowdown)) in out.flows.iter_mut().zip(flows) {
            flow.size_bytes = *size;
            flow.finish_ps = slowdown.map(|slowdown| flow.start_ps.unwrap() + slowdown * flow.ideal_fct_ps);
        }
        out
    }

    #[test]
    fn a_bin_has_its_statistics_over_seeds() {
        let dir = tempfile::tempdir().unwrap();
        let run = RunDir::take(dir.path()).unwrap();
        let key = |seed| PointKey { id: format!("a-{seed}"), system: "A".into(), seed, swept: Vec::new() };
        run.write_manifest(&run_manifest(&[key(1), key(2)])).unwrap();
        // Twenty small and twenty large flows per seed. Half of the large flows of the first seed
        // finish.
        let small = (0..20).map(|i| (100, Some(1 + i)));
        let large = |seed: u64| (0..20).map(move |i| (9000, (seed == 2 || i < 10).then_some(10 * seed)));
        for seed in [1, 2] {
            let flows: Vec<_> = small.clone().chain(large(seed)).collect();
            run.write_point(&key(seed), &with(&flows), &Ran::default(), (&["web".into()], &FlowColumns::default())).unwrap();
        }
        let rows = rows(&Results::open(dir.path()).unwrap(), None).unwrap();
        let row = |sizes, statistic| {
            rows.iter()
                .find(|r| (r.sizes[1], r.quantity, r.statistic) == (sizes, 0, statistic))
                .unwrap_or_else(|| panic!("{rows:?}"))
        };
        assert_eq!((row(100, "mean").estimate.mean, row(100, "p95").estimate.mean), (Some(10.5), Some(19.0)));
        assert_eq!((row(100, "p95").flows, row(100, "p95").rests_on, row(100, "mean").rests_on), (40, 4, 40));
        assert_eq!(row(9000, "p50").estimate, Estimate::of(&[10.0, 20.0]));
        assert_eq!((row(9000, "p50").flows, row(9000, "p50").rests_on), (30, 17));
        // Slowdown 10 with an ideal completion time of 1 us.
        assert_eq!(rows.iter().find(|r| (r.sizes[1], r.quantity) == (9000, 1)).unwrap().estimate, Estimate::of(&[1e-5, 2e-5]));
        assert_eq!(table(&Results::open(dir.path()).unwrap(), None).unwrap().num_columns(), 1 + BY_SIZE.len());
    }

    #[test]
    fn bins_hold_about_as_many_flows_each_and_never_cut_a_size() {
        let sizes: Vec<u64> = (0..1000).collect();
        assert!(bins(&sizes).iter().all(|bin| bin.len() == 100));
        assert_eq!(bins(&sizes[..50]).len(), 2);
        assert_eq!(bins(&sizes[..5]).len(), 1);
        // Three of four flows have one size.
        let tied: Vec<u64> = (0..400).map(|i| if i < 300 { 7 } else { i }).collect();
        let found = bins(&tied);
        assert_eq!(found[0].len(), 300);
        assert_eq!(found.iter().map(|bin| bin.len()).sum::<usize>(), 400);
        assert!(found.windows(2).all(|pair| pair[0].last() < pair[1].first()));
        assert_eq!(bins(&[]).len(), 0);
    }
}

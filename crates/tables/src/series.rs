//! Means and quantiles of time series, such as the queue length of a port or the sending rate of a
//! flow.

use crate::error::{Error, Result};
use crate::manifest::PointKey;
use crate::parquet;
use crate::results::Results;
use crate::schema::{SAMPLES, SERIES};
use crate::stats::quantile;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, UInt32Type};
use arrow_array::{ArrayRef, Float64Array, RecordBatch, UInt32Array, UInt64Array};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// The samples of one quantity of a port or flow.
struct Row<'a> {
    key: &'a PointKey,
    metric: String,
    entity: u32,
    /// The samples in ascending order.
    values: Vec<f64>,
}

/// Returns the mean and the quantiles of every time series, over the samples in the measurement
/// window of its point.
pub fn table(results: &Results) -> Result<RecordBatch> {
    let mut rows = Vec::new();
    for point in results.done() {
        // Without a window, no samples count.
        let Some(window) = point.counters.window_ps else { continue };
        let Some(path) = results.file(point, SAMPLES.name)? else { continue };
        for ((metric, entity), mut values) in read(&path, window)? {
            values.sort_unstable_by(f64::total_cmp);
            rows.push(Row { key: &point.key, metric, entity, values });
        }
    }
    let number = |f: &dyn Fn(&[f64]) -> Option<f64>| -> ArrayRef {
        Arc::new(rows.iter().map(|row| f(&row.values)).collect::<Float64Array>())
    };
    let own: Vec<ArrayRef> = vec![
        crate::arrow::words(rows.iter().map(|row| Some(row.metric.as_str()))),
        Arc::new(UInt32Array::from_iter_values(rows.iter().map(|row| row.entity))),
        Arc::new(UInt64Array::from_iter_values(rows.iter().map(|row| row.values.len() as u64))),
        number(&|values| Some(values.iter().sum::<f64>() / values.len() as f64)),
        number(&|values| quantile(values, 500)),
        number(&|values| quantile(values, 950)),
        number(&|values| quantile(values, 990)),
        number(&|values| quantile(values, 1000)),
    ];
    let keys: Vec<&PointKey> = rows.iter().map(|row| row.key).collect();
    Ok(results.keyed(&keys, SERIES, own, "statistics of time series, one row per point, metric and entity"))
}

/// Reads the samples between two times, by metric and entity.
fn read(path: &Path, (from, until): (u64, u64)) -> Result<BTreeMap<(String, u32), Vec<f64>>> {
    let mut found: BTreeMap<(String, u32), Vec<f64>> = BTreeMap::new();
    for batch in parquet::read(path, Some(&["time_ps", "entity", "metric", "value"]))? {
        let batch = batch.map_err(|e| Error::damaged(path, e))?;
        let column = |name: &str| batch.column_by_name(name).ok_or_else(|| Error::damaged(path, format!("no column `{name}`")));
        let (times, entities) = (column("time_ps")?.as_primitive::<Int64Type>(), column("entity")?.as_primitive::<UInt32Type>());
        let (metrics, values) = (column("metric")?.as_dictionary::<Int32Type>(), column("value")?.as_primitive::<Float64Type>());
        let words = metrics.values().as_string::<i32>();
        for i in (0..batch.num_rows()).filter(|i| (from..=until).contains(&(times.value(*i) as u64))) {
            let metric = words.value(metrics.keys().value(i) as usize);
            found.entry((metric.to_owned(), entities.value(i))).or_default().push(values.value(i));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::FlowColumns;
    use crate::manifest::Ran;
    use crate::results::tests::{outcome, run_manifest};
    use crate::run_dir::RunDir;
    use sim::Outcome;
    use sim::outcome::{Counters, Measured, SampleRow};

    #[test]
    fn quantiles_are_over_the_samples_in_the_window() {
        let dir = tempfile::tempdir().unwrap();
        let run = RunDir::take(dir.path()).unwrap();
        let key = PointKey { id: "a".into(), system: "A".into(), seed: 1, swept: Vec::new() };
        run.write_manifest(&run_manifest(std::slice::from_ref(&key))).unwrap();
        let sample = |n: u64| SampleRow { time_ps: 1000 * n, entity: 3, metric: "port.queue_bytes", value: n as f64 };
        let window = Some(Measured { from_ps: 101_000, until_ps: 200_000, delivered_bytes: 0 });
        let samples = (1..=500).map(sample).chain([SampleRow { entity: 4, ..sample(1) }]).collect();
        let out = Outcome { samples, counters: Counters { window, ..Counters::default() }, ..outcome(1) };
        run.write_point(&key, &out, &Ran::default(), (&["web".into()], &FlowColumns::default())).unwrap();
        let table = table(&Results::open(dir.path()).unwrap()).unwrap();
        assert_eq!(table.num_rows(), 1, "entity 4 has no sample in the window");
        let of = |name: &str| table.column_by_name(name).unwrap().as_primitive::<Float64Type>().value(0);
        assert_eq!(["mean", "p50", "p95", "p99", "max"].map(of), [150.5, 150.0, 195.0, 199.0, 200.0]);
    }
}

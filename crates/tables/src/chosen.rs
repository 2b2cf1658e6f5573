//! Selects the flows of a point that count, or that a filter chooses. Every table and every
//! statistic of flows uses this selection.

use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::manifest::PointManifest;
use crate::parquet;
use crate::results::Results;
use crate::schema::FLOWS;
use crate::stats::{Metric, Point};
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, UInt8Type, UInt32Type, UInt64Type};
use arrow_array::{Array as _, BooleanArray, RecordBatch};
use arrow_select::filter::filter_record_batch;
use sim::outcome::{Engine, FlowRow};
use std::path::Path;

/// The column that contains whether a flow counts.
pub(crate) const MEASURED: &str = "measured";

/// Returns which flows of a batch count and are chosen by the filter. If the filter uses `measured`
/// itself, only the filter decides.
pub(crate) fn mask(batch: &RecordBatch, filter: Option<&Filter>, path: &Path) -> Result<Vec<bool>> {
    let other = || Error::damaged(path, "its columns are not those of this program");
    let measured = batch.column_by_name(MEASURED).and_then(|column| column.as_boolean_opt()).ok_or_else(other)?;
    let all = |is: &BooleanArray| is.iter().map(|is| is == Some(true)).collect();
    let Some(filter) = filter else { return Ok(all(measured)) };
    let chosen = filter.rows(batch).ok_or_else(other)?;
    let decides = filter.columns().contains(MEASURED);
    Ok(chosen.into_iter().zip(measured).map(|(chosen, measured)| chosen && (decides || measured == Some(true))).collect())
}

/// Returns the names of columns together with the columns that the filter reads.
pub(crate) fn with_filter<'a>(columns: &[&'a str], filter: Option<&Filter>) -> Vec<&'a str> {
    let mut all = columns.to_vec();
    for name in filter.map(Filter::columns).unwrap_or_default().into_iter().chain([MEASURED]) {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all
}

impl Results {
    /// Reads columns of the flows of a point that count and that the filter chooses. Columns that
    /// the filter reads may be included.
    pub(crate) fn chosen(&self, point: &PointManifest, columns: &[&str], filter: Option<&Filter>) -> Result<Vec<RecordBatch>> {
        let path = self.flows_file(point)?;
        let mut found = Vec::new();
        for batch in parquet::read(&path, Some(&with_filter(columns, filter)))? {
            let batch = batch.map_err(|e| Error::damaged(&path, e))?;
            let rows = BooleanArray::from(mask(&batch, filter, &path)?);
            found.push(filter_record_batch(&batch, &rows).map_err(|e| Error::damaged(&path, e))?);
        }
        Ok(found)
    }
    /// Returns the ids of the flows of a point that count, or that a filter chooses.
    pub fn chosen_ids(&self, point: &PointManifest, filter: Option<&Filter>) -> Result<Vec<u32>> {
        let path = self.flows_file(point)?;
        let mut found = Vec::new();
        for batch in self.chosen(point, &["flow_id"], filter)? {
            let ids = batch.column_by_name("flow_id").and_then(|column| column.as_primitive_opt::<UInt32Type>());
            found.extend(ids.ok_or_else(|| Error::damaged(&path, "its columns are not those of this program"))?.values());
        }
        Ok(found)
    }
    /// Returns the metrics of the flows of a point that a filter chooses.
    pub fn metrics_of(&self, point: &PointManifest, filter: &Filter) -> Result<Vec<(&'static Metric, Option<f64>)>> {
        let names: Vec<&str> = FLOWS.columns.iter().map(|column| column.name).collect();
        let path = self.flows_file(point)?;
        let mut rows = Vec::new();
        for batch in self.chosen(point, &names, Some(filter))? {
            rows.extend(flow_rows(&batch).ok_or_else(|| Error::damaged(&path, "its columns are not those of this program"))?);
        }
        // The filter has decided: all these flows count.
        rows.iter_mut().for_each(|row| row.measured = true);
        let known = |metric: &Metric| {
            let by = [Engine::Packet, Engine::Flow, Engine::Ideal].into_iter().find(|engine| engine.name() == point.engine);
            by.is_none_or(|engine| metric.from.is_known(engine))
        };
        Ok(Point::of_flows(rows.iter()).into_iter().map(|(metric, value)| (metric, value.filter(|_| known(metric)))).collect())
    }
}

/// Reads rows back from a batch, with the fields that metrics use.
fn flow_rows(batch: &RecordBatch) -> Option<Vec<FlowRow>> {
    let u64s = |name: &str| batch.column_by_name(name)?.as_primitive_opt::<UInt64Type>();
    let u32s = |name: &str| batch.column_by_name(name)?.as_primitive_opt::<UInt32Type>();
    let times = |name: &str| batch.column_by_name(name)?.as_primitive_opt::<Int64Type>();
    let (flow_id, src, dst) = (u32s("flow_id")?, u32s("src")?, u32s("dst")?);
    let (timeouts, fast) = (u32s("timeouts")?, u32s("fast_retransmits")?);
    let (group, size, wire, rate) = (u64s("group_id")?, u64s("size_bytes")?, u64s("size_wire_bytes")?, u64s("bottleneck_bps")?);
    let (start, finish, first_tx) = (times("start_ps")?, times("finish_ps")?, times("first_tx_ps")?);
    let (deadline, ideal) = (times("deadline_ps")?, times("ideal_fct_ps")?);
    let terminated = batch.column_by_name("terminated")?.as_boolean_opt()?;
    let workload = batch.column_by_name("workload")?.as_dictionary_opt::<Int32Type>()?;
    let [tx, retx, drops, lost, marks, reordered, out_of_order, gaps, first_gap] =
        ["tx_packets", "retx_packets", "drops", "lost_link", "marks", "reordered", "out_of_order", "gaps", "first_gap_packets"]
            .map(u64s);
    let (tx, retx, drops, lost, marks) = (tx?, retx?, drops?, lost?, marks?);
    let (reordered, out_of_order, gaps, first_gap) = (reordered?, out_of_order?, gaps?, first_gap?);
    let mean_gap = batch.column_by_name("mean_gap_packets")?.as_primitive_opt::<Float64Type>()?;
    let delivered = u64s("window_delivered_bytes")?;
    let hops = batch.column_by_name("hops")?.as_primitive_opt::<UInt8Type>()?;
    let time = |column: &arrow_array::Int64Array, i: usize| column.is_valid(i).then(|| column.value(i) as u64);
    let row = |i: usize| FlowRow {
        flow_id: flow_id.value(i),
        group_id: group.is_valid(i).then(|| group.value(i)),
        src: src.value(i),
        dst: dst.value(i),
        workload: workload.keys().value(i) as u16,
        measured: true,
        size_bytes: size.value(i),
        size_wire_bytes: wire.value(i),
        start_ps: time(start, i),
        // A flow that never began waited for a flow that did not end.
        waits: start.is_null(i),
        first_tx_ps: time(first_tx, i),
        finish_ps: time(finish, i),
        ideal_fct_ps: ideal.value(i) as u64,
        bottleneck_bps: rate.value(i),
        deadline_ps: time(deadline, i),
        terminated: terminated.value(i),
        hops: hops.value(i),
        tx_packets: tx.value(i),
        retx_packets: retx.value(i),
        drops: drops.value(i),
        lost_link: lost.value(i),
        marks: marks.value(i),
        timeouts: timeouts.value(i),
        fast_retransmits: fast.value(i),
        reordered: reordered.value(i),
        out_of_order: out_of_order.value(i),
        gaps: gaps.value(i),
        // The mean was computed from an integer sum, which is restored.
        gap_packets: if mean_gap.is_valid(i) { (mean_gap.value(i) * gaps.value(i) as f64).round() as u64 } else { 0 },
        first_gap_packets: first_gap.value(i),
        window_delivered_bytes: delivered.is_valid(i).then(|| delivered.value(i)),
        counts: Vec::new(),
    };
    Some((0..batch.num_rows()).map(row).collect())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::keys::FlowColumns;
    use crate::manifest::{PointKey, Ran};
    use crate::results::Of;
    use crate::results::tests::{outcome, run_manifest};
    use crate::run_dir::RunDir;
    use sim::Outcome;

    /// Five flows: three of a workload (one of these does not count) and two of another.
    fn mixed() -> Outcome {
        let mut out = outcome(5);
        for (flow, (workload, measured)) in out.flows.iter_mut().zip([(0, true), (0, false), (1, true), (1, true), (0, true)]) {
            (flow.workload, flow.measured) = (workload, measured);
            flow.drops = u64::from(flow.flow_id);
            flow.group_id = (workload == 1).then_some(7);
        }
        out.flows[2].gaps = 3;
        out.flows[2].gap_packets = 10;
        out
    }

    pub(crate) fn results(dir: &Path) -> Results {
        let run = RunDir::take(dir).unwrap();
        let key = PointKey { id: "a-1".into(), system: "A".into(), seed: 1, swept: Vec::new() };
        let names = ["web".to_owned(), "incast".to_owned()];
        run.write_point(&key, &mixed(), &Ran::default(), (&names, &FlowColumns::default())).unwrap();
        run.write_manifest(&run_manifest(&[key])).unwrap();
        Results::open(dir).unwrap()
    }

    #[test]
    fn a_file_gives_back_the_rows_that_metrics_are_made_of() {
        let dir = tempfile::tempdir().unwrap();
        let results = results(dir.path());
        let point = &results.points[0];
        let filter = Filter::parse("measured == true or measured == false").unwrap();
        let names: Vec<&str> = FLOWS.columns.iter().map(|column| column.name).collect();
        let rows: Vec<FlowRow> =
            results.chosen(point, &names, Some(&filter)).unwrap().iter().flat_map(|batch| flow_rows(batch).unwrap()).collect();
        let written = mixed().flows.into_iter().map(|flow| FlowRow { measured: true, counts: Vec::new(), ..flow });
        assert_eq!(rows, written.collect::<Vec<_>>());
    }

    #[test]
    fn metrics_of_a_workload_are_those_of_a_filter_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let results = results(dir.path());
        let point = &results.points[0];
        let of = |text: &str| results.metrics_of(point, &Filter::parse(text).unwrap()).unwrap();
        let get = |values: &[(&'static Metric, Option<f64>)], name: &str| {
            values.iter().find(|(metric, _)| metric.name == name).unwrap().1
        };
        for name in ["web", "incast"] {
            let filtered = of(&format!("workload == \"{name}\""));
            let kept = &point.by_workload.iter().find(|(workload, _)| workload == name).unwrap().1;
            for (metric, value) in &filtered {
                let known = kept.iter().find(|(known, _)| known == metric.name).and_then(|(_, value)| *value);
                assert_eq!(known, *value, "{name}: {}", metric.name);
            }
        }
        let web = of("workload == 'web'");
        assert_eq!((get(&web, "flows"), get(&web, "data_drops"), get(&web, "groups")), (Some(2.0), Some(4.0), None));
        let incast = of("workload == 'incast' and drops > 2");
        assert_eq!((get(&incast, "flows"), get(&incast, "data_drops"), get(&incast, "groups")), (Some(1.0), Some(3.0), Some(1.0)));
        // Flows that do not count are left out unless the filter uses `measured`.
        assert_eq!((point.metric("flows"), get(&of("size_bytes > 0"), "flows")), (Some(4.0), Some(4.0)));
        assert_eq!(get(&of("measured == false"), "flows"), Some(1.0));
        let rows = results.summary_rows(Of::Workloads).unwrap();
        let flows: Vec<_> = rows.iter().filter(|row| row.metric.name == "flows").collect();
        let found: Vec<_> = flows.iter().map(|row| (row.workload.as_deref(), row.estimate.mean)).collect();
        assert_eq!(found, [(None, Some(4.0)), (Some("web"), Some(2.0)), (Some("incast"), Some(2.0))]);
        assert!(rows.iter().all(|row| row.workload.is_none() || row.metric.of_flows));
    }
}

//! Reads run folders. Every table gets the columns `point`, `system`, `seed` and the swept keys.

use crate::arrow::words;
use crate::error::{Error, Result};
use crate::estimate::Estimate;
use crate::filter::Filter;
use crate::keys::{FlowColumns, KeyColumns, SweptColumn, swept};
use crate::manifest::{self, PointKey, PointManifest, RunManifest, State};
use crate::parquet::{self, Compared, Written};
use crate::schema::{
    AGENTS, CounterColumn, FLOWS, KEYS, Note, PACKETS, PARTS, PER_SEED, POINTS, PORTS, RANK_TIMES, SAMPLES, SUMMARY, TASKS, Table,
    WORKLOAD, file_name, schema,
};
use crate::stats::{METRICS, Metric};
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchReader, StringArray, UInt32Array, UInt64Array,
    new_null_array,
};
use arrow_schema::{ArrowError, DataType, Field, SchemaRef};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The results of a run.
#[derive(Clone, Debug)]
pub struct Results {
    path: PathBuf,
    /// The manifest of the run.
    pub manifest: RunManifest,
    /// The points in the folder, in the order of the plan. Points of a stopped run may be
    /// interrupted or missing.
    pub points: Vec<PointManifest>,
    compared: Compared,
}

/// One row of the summary over seeds.
#[derive(Clone)]
pub struct SummaryRow {
    /// The system's label.
    pub system: String,
    /// Values of the swept keys, in the order of the manifest; `None` if the system does not have
    /// the key.
    pub swept: Vec<Option<String>>,
    /// The workload; `None` for all flows.
    pub workload: Option<String>,
    /// The metric.
    pub metric: &'static Metric,
    /// The estimate over seeds.
    pub estimate: Estimate,
    /// The smallest and the largest value of the seeds.
    pub range: Option<(f64, f64)>,
}

/// The flows for which metrics are requested.
#[derive(Clone, Copy, Debug)]
pub enum Of<'a> {
    /// All flows that count.
    All,
    /// All flows that count and, if there are several workloads, also the flows of each workload.
    Workloads,
    /// The flows that a filter chooses; only metrics that are computed from flows.
    Where(&'a Filter),
}

/// Metrics of some of the flows of a point, in the order of the registry.
type Values = Vec<(&'static Metric, Option<f64>)>;

impl Results {
    /// Opens a run folder. Fails if a manifest is not what was written, or if a table of a point is
    /// missing or has another length. The content of a table is compared with its hash when the
    /// table is first read.
    pub fn open(path: &Path) -> Result<Results> {
        let manifest = manifest::read(&path.join(manifest::FILE))?.ok_or_else(|| Error::NotARun { path: path.to_owned() })?;
        Results::gather(path, manifest)
    }
    /// Reads the points of a run that are in its folder.
    pub fn gather(path: &Path, manifest: RunManifest) -> Result<Results> {
        let mut points = Vec::new();
        for key in &manifest.points {
            let (dir, hash) = (path.join(&key.id), manifest.done.get(&key.id));
            let file = dir.join(manifest::FILE);
            let Some(point) = manifest::read::<PointManifest>(&file)? else { continue };
            if hash.is_some_and(|hash| *hash != point.manifest_hash) {
                return Err(Error::damaged(&file, "it is not the manifest that the run wrote"));
            }
            if point.key == *key {
                point.files.iter().try_for_each(|file| file.check_length(&dir))?;
                points.push(point);
            }
        }
        Ok(Results { path: path.to_owned(), manifest, points, compared: Compared::default() })
    }
    /// Forgets which files were compared with their hashes, because some were written again.
    pub(crate) fn forget(&mut self) {
        self.compared = Compared::default();
    }
    /// Returns the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// Returns whether all points are done.
    pub fn complete(&self) -> bool {
        self.done().count() == self.manifest.points.len()
    }
    /// Returns the points that are done.
    pub fn done(&self) -> impl Iterator<Item = &PointManifest> {
        self.points.iter().filter(|point| point.state == State::Done)
    }
    /// Returns the folder of a point.
    pub fn point_dir(&self, key: &PointKey) -> PathBuf {
        self.path.join(&key.id)
    }
    /// Returns the file of a point's table. `None` if the point does not have the table. Fails if
    /// its content is not what was written.
    pub fn file(&self, point: &PointManifest, table: &str) -> Result<Option<PathBuf>> {
        let dir = self.point_dir(&point.key);
        let file = listed(point, table);
        file.map(|file| self.compared.path(&dir, file)).transpose()
    }
    /// Returns the file of a point's flows. Every point that is done has one.
    pub(crate) fn flows_file(&self, point: &PointManifest) -> Result<PathBuf> {
        let path = self.point_dir(&point.key).join(manifest::FILE);
        self.file(point, FLOWS.name)?.ok_or_else(|| Error::damaged(&path, "it lists no flows"))
    }
    /// Returns the paths of all files in the folder. The manifest of a folder comes after its
    /// tables. Fails if the content of a file is not what was written.
    pub fn whole(&self) -> Result<Vec<PathBuf>> {
        // The manifests are read again, so that the list is up to date.
        let now = Results::open(&self.path)?;
        let mut found = Vec::new();
        for file in &now.manifest.files {
            found.push(now.compared.path(&now.path, file)?);
        }
        for point in &now.points {
            let dir = now.point_dir(&point.key);
            for file in &point.files {
                found.push(now.compared.path(&dir, file)?);
            }
            found.push(dir.join(manifest::FILE));
        }
        found.push(now.path.join(manifest::FILE));
        Ok(found)
    }
    /// Returns the flows of all points that are done.
    pub fn flows(&self) -> Reader {
        self.read(&FLOWS, |point| &point.flow_counters)
    }
    /// Returns the columns that the tables of flows of all points that are done have in common.
    pub(crate) fn flow_columns(&self) -> FlowColumns {
        FlowColumns::new(&self.manifest, self.done().flat_map(|point| point.flow_counters.iter().cloned()))
    }
    /// Returns the ports of all points that are done.
    pub fn ports(&self) -> Reader {
        self.read(&PORTS, |point| &point.port_counters)
    }
    /// Returns the tasks of all points that are done; without rows unless a workload has tasks.
    pub fn tasks(&self) -> Reader {
        self.read(&TASKS, |_| &[])
    }
    /// Returns the parts of ranks in tasks of all points that are done; without rows unless a
    /// workload has tasks.
    pub fn parts(&self) -> Reader {
        self.read(&PARTS, |_| &[])
    }
    /// Returns how ranks spend the time of jobs at all points that are done; without rows unless ranks
    /// of a workload compute.
    pub fn rank_times(&self) -> Reader {
        self.read(&RANK_TIMES, |_| &[])
    }
    /// Returns the time series of all points that are done; without rows unless the scenario
    /// records them.
    pub fn samples(&self) -> Reader {
        self.read(&SAMPLES, |_| &[])
    }
    /// Returns the tables of agents of all points that are done; without rows unless the scenario
    /// records them.
    pub fn agents(&self) -> Reader {
        self.read(&AGENTS, |_| &[])
    }
    /// Returns the packet traces of all points that are done; without rows unless the scenario
    /// records them.
    pub fn packets(&self) -> Reader {
        self.read(&PACKETS, |_| &[])
    }

    /// Returns a reader of `table`. `counted` returns the counters that a point has in a row of the
    /// table.
    fn read<R>(&self, table: &Table<R>, counted: fn(&PointManifest) -> &[CounterColumn]) -> Reader {
        let columns = KeyColumns::new(&self.manifest);
        let own = table.fields();
        let mut counters: Vec<CounterColumn> = Vec::new();
        for counter in self.done().flat_map(counted) {
            if counters.iter().all(|known| known.name != counter.name) {
                counters.push(counter.clone());
            }
        }
        // Null at points of systems that do not have the counter.
        let more = counters.iter().map(|counter| counter.field(true));
        let fields = columns.fields().into_iter().chain(own.iter().cloned()).chain(more).collect();
        let file =
            |point: &PointManifest| Some((point.key.clone(), self.point_dir(&point.key), listed(point, table.name)?.clone()));
        let (files, compared) = (self.done().filter_map(file).collect(), self.compared.clone());
        let flows = (table.name == FLOWS.name).then(|| FlowColumns { keys: columns.clone(), counters: counters.clone() });
        Reader { schema: schema(fields, table.about), own, counters, columns, flows, files, compared, at: 0, current: None }
    }

    /// Returns a table with one row per point, including interrupted points.
    pub fn points(&self) -> RecordBatch {
        let p = &self.points;
        let metric = |name: &'static str| p.iter().map(move |point| point.metric(name).unwrap_or(0.0) as u64);
        let window = |end: fn((u64, u64)) -> u64| -> ArrayRef {
            Arc::new(p.iter().map(|point| point.counters.window_ps.map(|window| end(window) as i64)).collect::<Int64Array>())
        };
        let own: Vec<ArrayRef> = vec![
            words(p.iter().map(|point| Some(point.state.name()))),
            Arc::new(p.iter().map(|point| Some(point.ideal)).collect::<BooleanArray>()),
            words(p.iter().map(|point| Some(point.engine.as_str()))),
            words(p.iter().map(|point| Some(point.stop_reason.as_str()))),
            Arc::new(p.iter().map(|point| point.deadlock.as_deref()).collect::<StringArray>()),
            Arc::new(p.iter().map(|point| listed_as_text(&point.untouched)).collect::<StringArray>()),
            Arc::new(p.iter().map(no_next_hop).collect::<StringArray>()),
            Arc::new(UInt64Array::from_iter_values(metric("flows"))),
            Arc::new(UInt64Array::from_iter_values(metric("unfinished"))),
            Arc::new(Int64Array::from_iter_values(p.iter().map(|point| point.counters.end_ps as i64))),
            Arc::new(UInt64Array::from_iter_values(p.iter().map(|point| point.counters.not_measured))),
            window(|(from, _)| from),
            window(|(_, until)| until),
            Arc::new(UInt64Array::from_iter_values(p.iter().map(|point| point.counters.events))),
            Arc::new(UInt64Array::from_iter_values(p.iter().map(|point| point.counters.hops))),
            Arc::new(StringArray::from_iter_values(p.iter().map(|point| &point.counters.digest))),
            Arc::new(StringArray::from_iter_values(p.iter().map(|point| &point.flows_hash))),
        ];
        let keys: Vec<&PointKey> = p.iter().map(|point| &point.key).collect();
        self.keyed(&keys, POINTS, own, "one row per point of the run")
    }

    /// Returns the metrics of the run: all metrics, except for optional metrics without a value at
    /// any point.
    fn metrics(&self) -> impl Iterator<Item = &'static Metric> {
        let waits = |metric: &Metric| self.done().any(|point| point.metric(metric.name).is_some());
        METRICS.iter().filter(move |metric| !metric.optional || waits(metric))
    }

    /// Returns the metrics of a point by workload; `None` means all flows.
    fn values(&self, point: &PointManifest, of: Of<'_>) -> Result<Vec<(Option<String>, Values)>> {
        let known: Vec<&'static Metric> = self.metrics().collect();
        if let Of::Where(filter) = of {
            let own = self.metrics_of(point, filter)?;
            return Ok(vec![(None, own.into_iter().filter(|(metric, _)| known.iter().any(|k| k.name == metric.name)).collect())]);
        }
        let all = known.iter().map(|metric| (*metric, point.metric(metric.name))).collect();
        let mut found = vec![(None, all)];
        if matches!(of, Of::Workloads) {
            found.extend(point.by_workload.iter().map(|(name, values)| {
                let value = |metric: &Metric| values.iter().find(|(name, _)| name == metric.name).and_then(|(_, value)| *value);
                let own = known.iter().filter(|metric| metric.of_flows).map(|metric| (*metric, value(metric))).collect();
                (Some(name.clone()), own)
            }));
        }
        Ok(found)
    }

    /// Returns a table with one row per metric of each point that is done. With `machine`, includes
    /// metrics that depend on the machine.
    pub fn per_seed(&self, machine: bool, of: Of<'_>) -> Result<RecordBatch> {
        let mut rows = Vec::new();
        for point in self.done() {
            for (workload, values) in self.values(point, of)? {
                let values = values.into_iter().filter(|(metric, _)| machine || !metric.machine);
                rows.extend(values.map(|(metric, value)| (&point.key, workload.clone(), metric, value)));
            }
        }
        let mut own: Vec<ArrayRef> = vec![
            words(rows.iter().map(|(_, _, metric, _)| Some(metric.name))),
            words(rows.iter().map(|(_, _, metric, _)| Some(metric.unit))),
            Arc::new(rows.iter().map(|(.., value)| *value).collect::<Float64Array>()),
        ];
        let mut notes: Vec<&Note> = PER_SEED.iter().collect();
        if matches!(of, Of::Workloads) {
            own.insert(0, words(rows.iter().map(|(_, workload, ..)| workload.as_deref())));
            notes.insert(0, &WORKLOAD[0]);
        }
        let keys: Vec<&PointKey> = rows.iter().map(|(key, ..)| *key).collect();
        Ok(self.keyed_by(&keys, &notes, own, "one row per point and metric"))
    }

    /// Returns a table whose first columns are the keys of the rows' points.
    pub(crate) fn keyed(&self, keys: &[&PointKey], notes: &[Note], own: Vec<ArrayRef>, about: &str) -> RecordBatch {
        self.keyed_by(keys, &notes.iter().collect::<Vec<_>>(), own, about)
    }
    fn keyed_by(&self, keys: &[&PointKey], notes: &[&Note], own: Vec<ArrayRef>, about: &str) -> RecordBatch {
        let columns = KeyColumns::new(&self.manifest);
        let fields = columns.fields().into_iter().chain(notes.iter().map(|note| note.field())).collect();
        let mut arrays: Vec<ArrayRef> = vec![
            words(keys.iter().map(|key| Some(key.id.as_str()))),
            words(keys.iter().map(|key| Some(key.system.as_str()))),
            Arc::new(UInt64Array::from_iter_values(keys.iter().map(|key| key.seed))),
        ];
        arrays.extend(columns.swept.iter().map(|column| column.array(keys.iter().map(|key| swept(key, &column.key)))));
        arrays.extend(own);
        RecordBatch::try_new(schema(fields, about), arrays).expect("columns follow their notes")
    }

    /// Groups the points that differ only in their seeds, with the key of the first point of each
    /// group, in the order of the plan.
    pub fn over_seeds(&self) -> Vec<(&PointKey, Vec<&PointManifest>)> {
        let mut groups: Vec<(&PointKey, Vec<&PointManifest>)> = Vec::new();
        for point in self.done() {
            let key = &point.key;
            match groups.iter_mut().find(|(k, _)| k.system == key.system && k.swept == key.swept) {
                Some((_, points)) => points.push(point),
                None => groups.push((key, vec![point])),
            }
        }
        groups
    }

    /// Returns the mean of every metric over seeds, for each system and value of the swept keys, in
    /// the order of the plan.
    pub fn summary_rows(&self, of: Of<'_>) -> Result<Vec<SummaryRow>> {
        let keys = &self.manifest.sweep_keys;
        let mut rows = Vec::new();
        for (key, points) in self.over_seeds() {
            let seeds = points.iter().map(|point| self.values(point, of)).collect::<Result<Vec<_>>>()?;
            let swept: Vec<Option<String>> = keys.iter().map(|k| swept(key, k).map(str::to_owned)).collect();
            let Some(first) = seeds.first() else { continue };
            for (workload, metrics) in first {
                for (place, (metric, _)) in metrics.iter().enumerate() {
                    let of_seed = |seed: &Vec<(Option<String>, Values)>| seed.iter().find(|(w, _)| w == workload)?.1.get(place)?.1;
                    let values: Vec<f64> = seeds.iter().filter_map(of_seed).collect();
                    rows.push(SummaryRow {
                        system: key.system.clone(),
                        swept: swept.clone(),
                        workload: workload.clone(),
                        metric,
                        range: values.iter().copied().reduce(f64::min).zip(values.iter().copied().reduce(f64::max)),
                        estimate: Estimate::of(&values),
                    });
                }
            }
        }
        Ok(rows)
    }

    /// Returns [`Results::summary_rows`] as a table.
    pub fn summary(&self, of: Of<'_>) -> Result<RecordBatch> {
        let rows = self.summary_rows(of)?;
        let columns = KeyColumns::new(&self.manifest);
        let mut fields = vec![KEYS[1].field()];
        fields.extend(columns.swept.iter().map(SweptColumn::field));
        let mut arrays: Vec<ArrayRef> = vec![words(rows.iter().map(|row| Some(row.system.as_str())))];
        arrays.extend(
            columns.swept.iter().enumerate().map(|(i, column)| column.array(rows.iter().map(|row| row.swept[i].as_deref()))),
        );
        if matches!(of, Of::Workloads) {
            fields.push(WORKLOAD[0].field());
            arrays.push(words(rows.iter().map(|row| row.workload.as_deref())));
        }
        fields.extend(SUMMARY.iter().map(Note::field));
        let number = |f: fn(&SummaryRow) -> Option<f64>| Arc::new(rows.iter().map(f).collect::<Float64Array>());
        arrays.extend([
            words(rows.iter().map(|row| Some(row.metric.name))),
            words(rows.iter().map(|row| Some(row.metric.unit))),
            Arc::new(UInt32Array::from_iter_values(rows.iter().map(|row| row.estimate.n))),
            number(|row| row.estimate.mean),
            number(|row| row.range.map(|(low, _)| low)),
            number(|row| row.range.map(|(_, high)| high)),
            number(|row| row.estimate.ci95.map(|(low, _)| low)),
            number(|row| row.estimate.ci95.map(|(_, high)| high)),
        ]);
        Ok(RecordBatch::try_new(schema(fields, "one row per system, swept values and metric, over seeds"), arrays)
            .expect("columns follow their notes"))
    }
}

/// Returns a list as text; `None` for an empty one.
fn listed_as_text(parts: &[String]) -> Option<String> {
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Returns the packets lost at switches without a next hop, as text.
fn no_next_hop(point: &PointManifest) -> Option<String> {
    let each = point.counters.no_next_hop.iter().map(|(switch, packets)| format!("{switch}: {packets}"));
    listed_as_text(&each.collect::<Vec<_>>())
}

/// Finds a table in the list of files of a point's manifest.
fn listed<'a>(point: &'a PointManifest, table: &str) -> Option<&'a Written> {
    let name = file_name(table);
    point.files.iter().find(|file| file.name == name)
}

/// A reader of a table of all points. It reads file by file, so that the whole table is never in
/// memory.
pub struct Reader {
    schema: SchemaRef,
    /// The columns that every system has.
    own: Vec<Field>,
    /// The counters of the entries of all systems.
    counters: Vec<CounterColumn>,
    columns: KeyColumns,
    /// Only for the table of flows, whose files contain the key columns.
    flows: Option<FlowColumns>,
    /// The points that have the table, each with its folder and its file.
    files: Vec<(PointKey, PathBuf, Written)>,
    compared: Compared,
    at: usize,
    current: Option<::parquet::arrow::arrow_reader::ParquetRecordBatchReader>,
}

impl Reader {
    fn join(&self, batch: &RecordBatch) -> std::result::Result<RecordBatch, ArrowError> {
        let (key, dir, file) = &self.files[self.at];
        if let Some(columns) = &self.flows {
            return columns.batch(key, batch).map_err(|why| {
                let why = format!("its columns are not those of this program: {why}");
                ArrowError::ExternalError(Box::new(Error::damaged(&dir.join(&file.name), why)))
            });
        }
        let found = batch.schema();
        let (own, counts) = found.fields().split_at(self.own.len().min(found.fields().len()));
        // Descriptions of columns may differ between versions.
        let same = |field: &Arc<Field>, own: &Field| field.name() == own.name() && field.data_type() == own.data_type();
        let counter =
            |field: &Arc<Field>| self.counters.iter().any(|c| c.name == *field.name()) && *field.data_type() == DataType::UInt64;
        let ours = own.len() == self.own.len() && own.iter().zip(&self.own).all(|(field, own)| same(field, own));
        if !ours || !counts.iter().all(counter) {
            let why = "its columns are not those of this program";
            return Err(ArrowError::ExternalError(Box::new(Error::damaged(&dir.join(&file.name), why))));
        }
        let mut arrays = self.columns.arrays(key, batch.num_rows());
        arrays.extend(batch.columns()[..self.own.len()].iter().cloned());
        let counts = self.counters.iter().map(|counter| {
            let column = batch.column_by_name(&counter.name).cloned();
            column.unwrap_or_else(|| new_null_array(&DataType::UInt64, batch.num_rows()))
        });
        arrays.extend(counts);
        RecordBatch::try_new(self.schema.clone(), arrays)
    }
}

impl Iterator for Reader {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.at < self.files.len() {
            if self.current.is_none() {
                let (_, dir, file) = &self.files[self.at];
                match self.compared.path(dir, file).and_then(|path| parquet::read(&path, None)) {
                    Ok(reader) => self.current = Some(reader),
                    Err(e) => {
                        self.at = self.files.len();
                        return Some(Err(ArrowError::ExternalError(Box::new(e))));
                    }
                }
            }
            match self.current.as_mut().and_then(Iterator::next) {
                Some(batch) => return Some(batch.and_then(|batch| self.join(&batch))),
                None => (self.at, self.current) = (self.at + 1, None),
            }
        }
        None
    }
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::manifest::Ran;
    use crate::run_dir::RunDir;
    use crate::schema::{SCHEMA_VERSION, words as words_type};
    use arrow_array::cast::AsArray as _;
    use arrow_array::types::{Float64Type, Int32Type, UInt64Type};
    use base::registry::Counter;
    use sim::outcome::{FlowRow, NamedCounter, Outcome, PortRow};

    /// `n` flows of 1 to `n` milliseconds.
    pub fn outcome(n: u32) -> Outcome {
        let flow = |i: u32| FlowRow {
            measured: true,
            flow_id: i,
            size_bytes: 1000,
            size_wire_bytes: 1040,
            start_ps: Some(7),
            finish_ps: Some(7 + u64::from(i + 1) * 1_000_000_000),
            ideal_fct_ps: 1_000_000,
            bottleneck_bps: 1_000_000_000,
            ..FlowRow::default()
        };
        let ports = vec![PortRow { name: "h0->s0".into(), ..PortRow::default() }];
        let counters = sim::outcome::Counters { end_ps: 1_000_000_000, ..sim::outcome::Counters::default() };
        Outcome { flows: (0..n).map(flow).collect(), ports, counters, complete: true, ..Outcome::default() }
    }

    /// A run of these points.
    pub fn run_manifest(points: &[PointKey]) -> RunManifest {
        let mut sweep_keys: Vec<String> = points.iter().flat_map(|p| p.swept.iter().map(|(k, _)| k.clone())).collect();
        sweep_keys.dedup();
        RunManifest {
            schema_version: SCHEMA_VERSION,
            name: "r".into(),
            points: points.to_vec(),
            sweep_keys,
            ..RunManifest::default()
        }
    }

    fn key(system: &str, load: Option<&str>, seed: u64) -> PointKey {
        let swept: Vec<(String, String)> = load.map(|l| ("workload.web.load".to_owned(), l.to_owned())).into_iter().collect();
        PointKey { id: format!("{system}-{}-{seed}", load.unwrap_or("none")), system: system.into(), seed, swept }
    }

    fn write(path: &Path, points: &[(PointKey, Outcome)]) -> Results {
        let run = RunDir::take(path).unwrap();
        let keys: Vec<PointKey> = points.iter().map(|(key, _)| key.clone()).collect();
        run.write_manifest(&run_manifest(&keys)).unwrap();
        for (key, outcome) in points {
            run.write_point(key, outcome, &Ran { wall_s: 2.0, ..Ran::default() }, (&["web".into()], &FlowColumns::default()))
                .unwrap();
        }
        run.finish(Results::gather(path, run_manifest(&keys)).unwrap()).unwrap()
    }

    fn column<'a>(batch: &'a RecordBatch, name: &str) -> &'a ArrayRef {
        batch.column_by_name(name).unwrap_or_else(|| panic!("no {name}"))
    }
    fn texts(batch: &RecordBatch, name: &str) -> Vec<String> {
        let array = column(batch, name).as_dictionary::<Int32Type>();
        let values = array.values().as_string::<i32>();
        array.keys().iter().map(|k| values.value(k.unwrap() as usize).to_owned()).collect()
    }
    fn numbers(batch: &RecordBatch, name: &str) -> Vec<Option<f64>> {
        column(batch, name).as_primitive::<Float64Type>().iter().collect()
    }

    #[test]
    fn tables_carry_the_keys_of_their_points() {
        let dir = tempfile::tempdir().unwrap();
        let points =
            [(key("A", Some("0.5"), 1), outcome(2)), (key("B", Some("1"), 1), outcome(3)), (key("C", None, 4), outcome(1))];
        let results = write(dir.path(), &points);
        assert!(results.complete());
        let batches: Vec<RecordBatch> = results.flows().map(|b| b.unwrap()).collect();
        assert_eq!(batches.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [2, 3, 1]);
        assert!(batches.iter().all(|b| b.schema() == results.flows().schema()));
        assert_eq!(texts(&batches[1], "system"), ["B", "B", "B"]);
        assert_eq!(numbers(&batches[1], "workload.web.load"), [Some(1.0); 3]);
        assert_eq!(numbers(&batches[2], "workload.web.load"), [None]);
        assert_eq!(column(&batches[2], "seed").as_primitive::<UInt64Type>().values(), &[4]);
        assert_eq!(texts(&batches[0], "workload"), ["web", "web"]);
        assert_eq!(results.samples().map(|b| b.unwrap().num_rows()).sum::<usize>(), 0);
        assert_eq!(texts(&results.points(), "point"), ["A-0.5-1", "B-1-1", "C-none-4"]);
    }

    #[test]
    fn swept_values_are_numbers_only_if_all_are() {
        let ty = |values: &[&str]| SweptColumn::new("k", values.iter().copied()).ty;
        assert_eq!(ty(&["4", "8"]), DataType::Int64);
        assert_eq!(ty(&["0.5", "1"]), DataType::Float64);
        assert_eq!(ty(&["1Gbps", "1"]), words_type());
        assert_eq!(ty(&["inf", "1"]), words_type());
    }

    #[test]
    fn a_summary_is_over_the_seeds_of_a_system_and_its_swept_values() {
        let dir = tempfile::tempdir().unwrap();
        let point = |load, seed, n| (key("A", Some(load), seed), outcome(n));
        let results = write(dir.path(), &[point("0.5", 1, 1), point("0.8", 1, 9), point("0.5", 2, 3)]);
        let rows: Vec<SummaryRow> =
            results.summary_rows(Of::All).unwrap().into_iter().filter(|row| row.metric.name == "mean_fct_s").collect();
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[0].swept[0].as_deref(), rows[0].estimate), (Some("0.5"), Estimate::of(&[0.001, 0.002])));
        assert_eq!((rows[1].swept[0].as_deref(), rows[1].estimate), (Some("0.8"), Estimate::of(&[0.005])));
        let summary = results.summary(Of::All).unwrap();
        let at = texts(&summary, "metric").iter().position(|m| m == "mean_fct_s").unwrap();
        assert_eq!(numbers(&summary, "mean")[at], rows[0].estimate.mean);
        assert_eq!(numbers(&summary, "ci95_low")[at], rows[0].estimate.ci95.map(|c| c.0));
        assert_eq!(summary.num_rows(), 2 * METRICS.iter().filter(|metric| !metric.optional).count());
    }

    #[test]
    fn what_depends_on_the_machine_is_kept_out_of_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let results = write(dir.path(), &[(key("A", None, 1), outcome(1))]);
        assert!(texts(&results.per_seed(true, Of::All).unwrap(), "metric").contains(&"wall_s".to_owned()));
        let file: Vec<RecordBatch> =
            parquet::read(&dir.path().join("summary.parquet"), None).unwrap().map(|b| b.unwrap()).collect();
        let metrics = texts(&file[0], "metric");
        assert!(metrics.contains(&"mean_fct_s".to_owned()) && !metrics.contains(&"wall_s".to_owned()));
    }

    #[test]
    fn flows_that_never_began_have_a_row_where_flows_wait() {
        let dir = tempfile::tempdir().unwrap();
        let results = write(&dir.path().join("none"), &[(key("A", None, 1), outcome(2))]);
        let has = |results: &Results| {
            let rows = texts(&results.per_seed(true, Of::All).unwrap(), "metric").iter().filter(|m| *m == "not_started").count();
            (rows, results.summary_rows(Of::All).unwrap().iter().filter(|row| row.metric.name == "not_started").count())
        };
        assert_eq!(has(&results), (0, 0));
        let mut waiting = outcome(2);
        waiting.flows[1].waits = true;
        (waiting.flows[1].start_ps, waiting.flows[1].finish_ps) = (None, None);
        let results = write(&dir.path().join("some"), &[(key("A", None, 1), waiting), (key("A", None, 2), outcome(2))]);
        assert_eq!(has(&results), (2, 1));
        let row = results.summary_rows(Of::All).unwrap().into_iter().find(|row| row.metric.name == "not_started").unwrap();
        assert_eq!(row.estimate, Estimate::of(&[1.0]));
    }

    #[test]
    fn missing_and_interrupted_points_do_not_count() {
        let dir = tempfile::tempdir().unwrap();
        let stopped = Outcome { complete: false, stop_reason: sim::outcome::StopReason::Stopped, ..outcome(5) };
        let results =
            write(dir.path(), &[(key("A", None, 1), outcome(1)), (key("A", None, 2), stopped), (key("A", None, 3), outcome(1))]);
        assert!(!results.complete());
        std::fs::remove_dir_all(dir.path().join("A-none-3")).unwrap();
        let results = Results::open(dir.path()).unwrap();
        assert_eq!(texts(&results.points(), "state"), ["done", "interrupted"]);
        assert_eq!(results.flows().map(|b| b.unwrap().num_rows()).sum::<usize>(), 1);
        assert_eq!(results.summary_rows(Of::All).unwrap()[0].estimate.n, 1);
    }

    #[test]
    fn counters_of_a_system_are_columns_that_are_null_for_others() {
        let counter = |name, about| Counter { name, unit: "packets", about };
        let [grants, resent] = [counter("grants", "grants sent"), counter("resent", "packets retransmitted")];
        let counts = |n: u64, flow_counters: Vec<NamedCounter>, each: &[u64]| {
            let mut out = outcome(n as u32);
            out.flows.iter_mut().for_each(|flow| flow.counts = each.iter().map(|x| x + u64::from(flow.flow_id)).collect());
            Outcome { flow_counters, ..out }
        };
        let mut homa = counts(2, vec![NamedCounter { entry: "homa", counter: grants }], &[10]);
        homa.port_counters = vec![NamedCounter { entry: "trim", counter: resent }];
        homa.ports[0].counts = vec![7];
        let both = ["homa", "ndp"].map(|entry| NamedCounter { entry, counter: grants });
        let points = [
            (key("A", None, 1), homa),
            (key("B", None, 1), outcome(2)),
            (key("C", None, 1), counts(2, both.iter().rev().copied().collect(), &[5, 6])),
        ];
        let dir = tempfile::tempdir().unwrap();
        let results = write(dir.path(), &points);
        let schema = results.flows().schema();
        let field = schema.field_with_name("homa.grants").unwrap();
        assert_eq!((field.is_nullable(), field.metadata()["unit"].as_str()), (true, "packets"));
        assert_eq!(field.metadata()["description"], "grants sent");
        let batches: Vec<RecordBatch> = results.flows().map(|b| b.unwrap()).collect();
        let read = |name: &str| -> Vec<Option<u64>> {
            batches.iter().flat_map(|b| column(b, name).as_primitive::<UInt64Type>().iter().collect::<Vec<_>>()).collect()
        };
        assert_eq!(read("homa.grants"), [Some(10), Some(11), None, None, Some(6), Some(7)]);
        assert_eq!(read("ndp.grants"), [None, None, None, None, Some(5), Some(6)]);
        let ports: Vec<RecordBatch> = results.ports().map(|b| b.unwrap()).collect();
        let resent: Vec<_> = ports.iter().flat_map(|b| column(b, "trim.resent").as_primitive::<UInt64Type>().iter()).collect();
        assert_eq!(resent, [Some(7), None, None]);
        // The files of all points have one schema; metrics and comparisons do not see counters.
        for point in ["A-none-1", "B-none-1", "C-none-1"] {
            let own = parquet::read(&dir.path().join(point).join("flows.parquet"), None).unwrap().schema();
            assert_eq!(own.fields(), results.flows().schema().fields(), "{point}");
        }
        assert!(results.whole().is_ok() && Results::open(dir.path()).unwrap().whole().is_ok());
        assert_eq!(results.points[0].metrics.len(), results.points[1].metrics.len());
        assert_eq!(crate::compare::pairs(&[dir.path().to_owned()], None).unwrap().1.len(), 3);
        assert!(!std::fs::read_to_string(dir.path().join("B-none-1/manifest.json")).unwrap().contains("_counters"));
    }

    #[test]
    #[should_panic(expected = "one count per counter")]
    fn a_count_without_a_counter_is_a_bug() {
        let mut wrong = outcome(1);
        wrong.flows[0].counts = vec![1];
        write(tempfile::tempdir().unwrap().path(), &[(key("A", None, 1), wrong)]);
    }

    #[test]
    fn a_file_with_other_descriptions_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let results = write(dir.path(), &[(key("A", None, 1), outcome(2))]);
        let path = dir.path().join("A-none-1/flows.parquet");
        let batch = parquet::read(&path, None).unwrap().next().unwrap().unwrap();
        let plain = |f: &Arc<Field>| Field::new(f.name(), f.data_type().clone(), f.is_nullable());
        let bare = schema(batch.schema().fields().iter().map(plain).collect(), "");
        let whole = RecordBatch::try_new(bare.clone(), batch.columns().to_vec()).unwrap();
        let mut point = results.points[0].clone();
        point.files[0] = parquet::write(&path, bare, std::iter::once(whole)).unwrap();
        assert!(Results::open(dir.path()).is_err(), "it is not the table that the manifest lists");
        manifest::write(&dir.path().join("A-none-1").join(manifest::FILE), &point).unwrap();
        manifest::write(&dir.path().join(manifest::FILE), &run_manifest(&[key("A", None, 1)])).unwrap();
        let results = Results::open(dir.path()).unwrap();
        let flows = results.flows().next().unwrap().unwrap();
        assert_eq!((flows.num_rows(), flows.schema()), (2, results.flows().schema()));
    }

    /// Changes a byte in the middle of a file.
    fn flip(path: &Path) {
        let mut content = std::fs::read(path).unwrap();
        let middle = content.len() / 2;
        content[middle] ^= 1;
        std::fs::write(path, content).unwrap();
    }

    #[test]
    fn every_reader_finds_a_byte_that_changed() {
        let dir = tempfile::tempdir().unwrap();
        let points = [(key("A", None, 1), outcome(2)), (key("B", None, 1), outcome(2))];
        let opened = write(dir.path(), &points);
        let one = &opened.points[0];
        let file = dir.path().join("A-none-1/flows.parquet");
        flip(&file);
        let fresh = || Results::open(dir.path()).unwrap();
        let found = [
            opened.flows().next().unwrap().unwrap_err().to_string(),
            fresh().slowest(one, 1).unwrap_err().to_string(),
            crate::compare::table(&[dir.path().to_owned()], None).unwrap_err().to_string(),
            crate::by_size::table(&fresh(), None).unwrap_err().to_string(),
            crate::groups::table(&fresh(), None).unwrap_err().to_string(),
            fresh().file(one, "flows").unwrap_err().to_string(),
            fresh().whole().unwrap_err().to_string(),
        ];
        for error in found {
            assert!(error.ends_with("A-none-1/flows.parquet` is damaged: its content is not what was written"), "{error}");
        }
        // Only files that are read are compared.
        assert!(fresh().ports().all(|batch| batch.is_ok()) && fresh().file(one, "samples").unwrap().is_none());
        flip(&file);
        for name in ["points.parquet", "summary.parquet", "B-none-1/ports.parquet"] {
            assert_eq!(fresh().whole().unwrap().len(), 2 * 3 + 3);
            flip(&dir.path().join(name));
            assert!(fresh().whole().unwrap_err().to_string().contains(name));
            flip(&dir.path().join(name));
        }
        // A manifest of the same point that was not written by the run.
        let own = dir.path().join("A-none-1").join(manifest::FILE);
        manifest::write(&own, &PointManifest { wall_s: 9.0, ..one.clone() }).unwrap();
        assert!(Results::open(dir.path()).unwrap_err().to_string().ends_with("it is not the manifest that the run wrote"));
        flip(&own);
        assert!(matches!(Results::open(dir.path()), Err(Error::Damaged { path, .. }) if path == own));
        std::fs::remove_dir_all(dir.path().join("A-none-1")).unwrap();
        flip(&dir.path().join(manifest::FILE));
        assert!(matches!(Results::open(dir.path()), Err(Error::Damaged { .. })));
    }

    #[test]
    fn what_is_no_run_or_of_another_layout_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(Results::open(dir.path()), Err(Error::NotARun { .. })));
        assert!(matches!(Results::open(Path::new("/nonexistent")), Err(Error::NotARun { .. })));
        let opened = write(dir.path(), &[(key("A", None, 1), outcome(1))]);
        let path = dir.path().join("A-none-1/flows.parquet");
        std::fs::copy(dir.path().join("A-none-1/ports.parquet"), &path).unwrap();
        let other = opened.flows().next().unwrap();
        assert!(other.unwrap_err().to_string().contains("damaged"));
        std::fs::write(&path, "x").unwrap();
        assert!(opened.flows().next().unwrap().is_err());
        assert!(matches!(Results::open(dir.path()), Err(Error::Damaged { .. })));
        let manifest = dir.path().join(manifest::FILE);
        let own = format!("\"schema_version\": {SCHEMA_VERSION}");
        let newer = std::fs::read_to_string(&manifest).unwrap().replace(&own, "\"schema_version\": 99");
        std::fs::write(&manifest, newer).unwrap();
        assert!(matches!(Results::open(dir.path()), Err(Error::Version { found: 99, .. })));
    }
}

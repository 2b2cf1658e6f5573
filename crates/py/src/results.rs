//! Results as Arrow streams.

use crate::errors;
use crate::{signals, why};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_schema::SchemaRef;
use arrow_schema::ffi::FFI_ArrowSchema;
use cli::why::Which;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use std::path::PathBuf;
use std::sync::Arc;
use tables::results::Of;
use tempfile::TempDir;

/// A table that Arrow libraries read without a copy: `pyarrow.table(t)`, `polars.DataFrame(t)`.
#[pyclass(frozen, module = "flowloom._core")]
pub struct ArrowTable(Source);

enum Source {
    /// A table in memory.
    Whole(RecordBatch),
    /// A table that every stream reads again from the files of the points: the results, the name of
    /// the table and the function that reads it.
    Files(Files, &'static str, fn(&tables::Results) -> tables::results::Reader),
}

/// Results and, if their folder is temporary, the handle that deletes it when the results are
/// dropped.
#[derive(Clone)]
struct Files {
    results: Arc<tables::Results>,
    temporary: Option<Arc<TempDir>>,
}

/// A reader that keeps a temporary folder alive.
struct Keeping<R> {
    reader: R,
    _temporary: Option<Arc<TempDir>>,
}

impl<R: Iterator> Iterator for Keeping<R> {
    type Item = R::Item;
    fn next(&mut self) -> Option<R::Item> {
        self.reader.next()
    }
}
impl<R: RecordBatchReader> RecordBatchReader for Keeping<R> {
    fn schema(&self) -> SchemaRef {
        self.reader.schema()
    }
}

impl ArrowTable {
    /// Creates a table in memory.
    pub fn whole(batch: RecordBatch) -> ArrowTable {
        ArrowTable(Source::Whole(batch))
    }
    fn reader(&self) -> Box<dyn RecordBatchReader + Send> {
        match &self.0 {
            Source::Whole(batch) => Box::new(RecordBatchIterator::new([Ok(batch.clone())], batch.schema())),
            Source::Files(files, _, read) => {
                Box::new(Keeping { reader: read(&files.results), _temporary: files.temporary.clone() })
            }
        }
    }
}

#[pymethods]
impl ArrowTable {
    /// The table as an Arrow stream (Arrow PyCapsule interface).
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The protocol allows the requested schema to be ignored. The reader then casts.
        drop(requested_schema);
        if let Source::Files(files, table, _) = &self.0 {
            // Damage is reported here as an error of flowloom. In the stream it would be an error
            // of the library that reads.
            let all = || files.results.done().try_for_each(|point| files.results.file(point, table).map(drop));
            py.detach(all).map_err(errors::storage)?;
        }
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(self.reader()), c"arrow_array_stream")
    }
    /// The table's schema (Arrow PyCapsule interface).
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.reader().schema().as_ref());
        PyCapsule::new_with_value(
            py,
            schema.map_err(|e| pyo3::exceptions::PyRuntimeError::new_err(e.to_string()))?,
            c"arrow_schema",
        )
    }
}

/// The results of a run, in memory or in a folder.
#[pyclass(frozen, module = "flowloom._core")]
pub struct Results(Files);

impl Results {
    /// Wraps results in a given folder or in a temporary folder.
    pub fn new(results: tables::Results, temporary: Option<TempDir>) -> Results {
        Results(Files { results: Arc::new(results), temporary: temporary.map(Arc::new) })
    }
    fn table(&self, name: &'static str, read: fn(&tables::Results) -> tables::results::Reader) -> ArrowTable {
        ArrowTable(Source::Files(self.0.clone(), name, read))
    }
}

#[pymethods]
impl Results {
    /// Open a results folder.
    #[staticmethod]
    fn open(py: Python<'_>, dir: PathBuf) -> PyResult<Results> {
        let results = py.detach(|| tables::Results::open(&dir));
        Ok(Results::new(results.map_err(errors::storage)?, None))
    }
    /// The folder, or `None` if the results are only in memory.
    #[getter]
    fn path(&self) -> Option<String> {
        self.0.temporary.is_none().then(|| self.0.results.path().to_string_lossy().into_owned())
    }
    /// Whether every point ran to its end.
    #[getter]
    fn complete(&self) -> bool {
        self.0.results.complete()
    }
    /// The resolved scenario as TOML.
    #[getter]
    fn config(&self) -> &str {
        &self.0.results.manifest.config
    }
    /// The manifest of the run as JSON, with its hash checked.
    #[getter]
    fn manifest(&self) -> String {
        serde_json::to_string(&self.0.results.manifest).unwrap_or_default()
    }
    /// The file of a point's table, such as `flows`. Fails if its content does not match its hash.
    ///
    /// `None` if the point does not have the table.
    fn file(&self, py: Python<'_>, point: &str, table: &str) -> PyResult<Option<PathBuf>> {
        let results = &self.0.results;
        let Some(point) = results.points.iter().find(|known| known.key.id == point) else { return Ok(None) };
        py.detach(|| results.file(point, table)).map_err(errors::storage)
    }
    /// The paths of all files of the results. Fails if the content of a file does not match its hash.
    fn whole(&self, py: Python<'_>) -> PyResult<Vec<PathBuf>> {
        py.detach(|| self.0.results.whole()).map_err(errors::storage)
    }
    /// One row per flow.
    fn flows(&self) -> ArrowTable {
        self.table(tables::schema::FLOWS.name, tables::Results::flows)
    }
    /// One row per egress port.
    fn ports(&self) -> ArrowTable {
        self.table(tables::schema::PORTS.name, tables::Results::ports)
    }
    /// One row per task of a program; empty unless a workload has tasks.
    fn tasks(&self) -> ArrowTable {
        self.table(tables::schema::TASKS.name, tables::Results::tasks)
    }
    /// One row per task and rank that takes part; empty unless a workload has tasks.
    fn parts(&self) -> ArrowTable {
        self.table(tables::schema::PARTS.name, tables::Results::parts)
    }
    /// One row per rank for a job and for each iteration; empty unless ranks of a workload compute.
    fn rank_times(&self) -> ArrowTable {
        self.table(tables::schema::RANK_TIMES.name, tables::Results::rank_times)
    }
    /// Time series; empty unless the scenario records them.
    fn samples(&self) -> ArrowTable {
        self.table(tables::schema::SAMPLES.name, tables::Results::samples)
    }
    /// The state that agents at ports keep for each flow over time; empty unless the scenario
    /// records it.
    fn agents(&self) -> ArrowTable {
        self.table(tables::schema::AGENTS.name, tables::Results::agents)
    }
    /// One row per transmission of a packet; empty unless the scenario records packets.
    fn packets(&self) -> ArrowTable {
        self.table(tables::schema::PACKETS.name, tables::Results::packets)
    }
    /// One row per point: its system, seed, swept keys and state.
    fn points(&self) -> ArrowTable {
        ArrowTable::whole(self.0.results.points())
    }
    /// Rerun a point and return where its flows spent their time: a dict with `point`, `system`,
    /// `seed`, `flows` and `packets`.
    ///
    /// Without `flows`, takes the `slowest` flows with the largest slowdown. Without `point`, takes
    /// the only point, or the point with the largest slowdown. `files` is the folder of the
    /// scenario, for the files that it reads. Each flow is a dict with `flow_id`, `src`, `dst`,
    /// `size_bytes`, `fct_ps`, `ideal_fct_ps`, `slowdown` and `parts`: dicts with `part`, `port`,
    /// `tier`, `timer`, `timer_ps` and `time_ps`. The `time_ps` of all parts sum to `fct_ps`. With
    /// `trace`, reruns the point once more for `packets`, the packets around the flows.
    #[pyo3(signature = (point = None, flows = Vec::new(), files = ".", trace = false, slowest = cli::why::SLOWEST))]
    fn why<'py>(
        &self,
        py: Python<'py>,
        point: Option<String>,
        flows: Vec<u32>,
        files: &str,
        trace: bool,
        slowest: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        let which = if flows.is_empty() { Which::Slowest(slowest) } else { Which::These(flows) };
        let found = signals::detached(py, |control| {
            cli::why::why(&self.0.results, point.as_deref(), &which, trace, files.as_ref(), control)
        })?;
        let found = found.map_err(|e| errors::sweep(py, e))?;
        let dict = why::dict(py, &found)?;
        dict.set_item("packets", found.packets.as_deref().map(|rows| ArrowTable::whole(why::packets(rows))))?;
        Ok(dict)
    }
    /// Rerun a point and return the packets around flows: all packets that crossed the ports of the
    /// flows' paths while the flows were open.
    #[pyo3(signature = (point, flows, files = "."))]
    fn around(&self, py: Python<'_>, point: &str, flows: Vec<u32>, files: &str) -> PyResult<ArrowTable> {
        let found = signals::detached(py, |control| {
            cli::why::packets_around(&self.0.results, Some(point), &flows, files.as_ref(), control)
        })?;
        Ok(ArrowTable::whole(why::packets(&found.map_err(|e| errors::sweep(py, e))?)))
    }
    /// One row per system, swept keys and metric: mean over seeds with its 95 % confidence interval.
    ///
    /// With `filter`, the metrics are those of the flows that it chooses. With `workloads`, there
    /// are also rows for each workload, which is named in the column `workload`.
    #[pyo3(signature = (filter = None, workloads = false))]
    fn summary(&self, py: Python<'_>, filter: Option<&str>, workloads: bool) -> PyResult<ArrowTable> {
        let filter = read_filter(filter)?;
        let table = py.detach(|| self.0.results.summary(wanted(filter.as_ref(), workloads)));
        Ok(ArrowTable::whole(table.map_err(errors::storage)?))
    }
    /// Slowdown and completion time by bin of flow sizes: one row per system, swept keys, bin,
    /// quantity and statistic.
    #[pyo3(signature = (filter = None))]
    fn by_size(&self, py: Python<'_>, filter: Option<&str>) -> PyResult<ArrowTable> {
        let filter = read_filter(filter)?;
        let table = py.detach(|| tables::by_size::table(&self.0.results, filter.as_ref()));
        Ok(ArrowTable::whole(table.map_err(errors::storage)?))
    }
    /// Statistics of time series over the samples in the measurement window: one row per point,
    /// metric and entity.
    fn series(&self, py: Python<'_>) -> PyResult<ArrowTable> {
        let table = py.detach(|| tables::series::table(&self.0.results));
        Ok(ArrowTable::whole(table.map_err(errors::storage)?))
    }
    /// Groups of flows: one row per point and group that began.
    #[pyo3(signature = (filter = None))]
    fn groups(&self, py: Python<'_>, filter: Option<&str>) -> PyResult<ArrowTable> {
        let filter = read_filter(filter)?;
        let table = py.detach(|| tables::groups::table(&self.0.results, filter.as_ref()));
        Ok(ArrowTable::whole(table.map_err(errors::storage)?))
    }
    /// One row per point and metric; see `summary`.
    #[pyo3(signature = (filter = None, workloads = false))]
    fn per_seed(&self, py: Python<'_>, filter: Option<&str>, workloads: bool) -> PyResult<ArrowTable> {
        let filter = read_filter(filter)?;
        let table = py.detach(|| self.0.results.per_seed(true, wanted(filter.as_ref(), workloads)));
        Ok(ArrowTable::whole(table.map_err(errors::storage)?))
    }
    /// Fail if a filter is wrong, or expects a workload, host, group or flow that no point has.
    fn refuse_absent(&self, py: Python<'_>, filter: &str) -> PyResult<()> {
        let Some(filter) = read_filter(Some(filter))? else { return Ok(()) };
        py.detach(|| tables::refuse_absent(std::slice::from_ref(&*self.0.results), &filter)).map_err(errors::storage)
    }
    /// The `flow_id` of the flows of a point that count, or that a filter chooses.
    #[pyo3(signature = (point, filter = None))]
    fn chosen(&self, py: Python<'_>, point: &str, filter: Option<&str>) -> PyResult<Vec<u32>> {
        let filter = read_filter(filter)?;
        let results = &self.0.results;
        let Some(point) = results.points.iter().find(|known| known.key.id == point) else { return Ok(Vec::new()) };
        py.detach(|| results.chosen_ids(point, filter.as_ref())).map_err(errors::storage)
    }
}

/// Parses an optional filter of flows.
pub fn read_filter(text: Option<&str>) -> PyResult<Option<tables::filter::Filter>> {
    text.map(tables::filter::Filter::parse).transpose().map_err(|wrong| errors::InputError::new_err(wrong.to_string()))
}

/// Returns the flows for which metrics are requested.
fn wanted(filter: Option<&tables::filter::Filter>, workloads: bool) -> Of<'_> {
    match filter {
        Some(filter) => Of::Where(filter),
        None if workloads => Of::Workloads,
        None => Of::All,
    }
}

//! `flowloom._core`: the compiled part of the Python package. It converts arguments and forwards calls; it contains no simulation.

mod allocator;
mod attributes;
mod errors;
mod fluid;
mod numbers;
mod results;
mod scenario;
mod script;
mod seek;
mod signals;
mod why;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::io::IsTerminal as _;
use std::path::PathBuf;

/// The compiled part of flowloom: scenarios, the simulator, result tables and the command line.
///
/// Times are in picoseconds, sizes in bytes and rates in bit/s unless a name has another unit.
#[pymodule]
mod _core {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::errors::{InputError, RunError, ScenarioError, StorageError};
    #[pymodule_export]
    use super::fluid::fluid;
    #[pymodule_export]
    use super::numbers::{estimate, quantile, queue_length, utilisation};
    #[pymodule_export]
    use super::results::{ArrowTable, Results};
    #[pymodule_export]
    use super::scenario::Scenario;
    #[pymodule_export]
    use super::seek::{check_point, located, seek};
    #[pymodule_export]
    use super::{compare, content_hash, entries, main, may_write, nearest, rooms};

    #[pymodule_init]
    fn init(_module: &Bound<'_, PyModule>) -> PyResult<()> {
        ::scenario::set_interpreter(super::script::load);
        ::scenario::set_wasmtime(super::script::wasmtime);
        Ok(())
    }

    #[allow(non_upper_case_globals)]
    #[pymodule_export]
    const version: &str = tables::PROGRAM;
}

/// The name of the room of metrics, which is not a part of scenarios.
const METRICS: &str = "metrics";

/// Run the command line with `argv` (without the program's name).
///
/// Returns an exit code or, for commands that Python carries out (such as `plot`, `report`,
/// `papers`, `compare`), a dict with the key `command` and the parsed options. After the first
/// call, a failed memory allocation ends the process with exit code 5.
#[pyfunction]
fn main(py: Python<'_>, argv: Vec<String>) -> PyResult<Py<PyAny>> {
    allocator::set_command_line();
    let signals = signals::Handler::install(py)?;
    let outcome = py.detach(|| {
        let (mut out, mut err) = (std::io::stdout(), std::io::stderr());
        let terminal = err.is_terminal();
        let console = &mut cli::Console { out: &mut out, err: &mut err, terminal, signals: &mut signals::poll };
        cli::main(&argv, console)
    });
    signals.restore(py)?;
    match outcome {
        cli::Outcome::Exit(code) => Ok(code.into_pyobject(py)?.into_any().unbind()),
        cli::Outcome::Python(options) => Ok(py.import("json")?.call_method1("loads", (options.to_string(),))?.unbind()),
    }
}

/// Compare the systems found in one or more result folders, flow by flow.
///
/// Flows are paired by flow id, seed and swept keys. The table has one row per pair of systems and
/// swept keys: see `compare()` in docs/data.md.
///
/// With `filter`, only flows that it chooses in both systems are compared.
#[pyfunction]
#[pyo3(signature = (dirs, filter = None))]
fn compare(py: Python<'_>, dirs: Vec<PathBuf>, filter: Option<&str>) -> PyResult<results::ArrowTable> {
    let filter = results::read_filter(filter)?;
    let table = py.detach(|| tables::compare::table(&dirs, filter.as_ref()));
    Ok(results::ArrowTable::whole(table.map_err(errors::storage)?))
}

/// Fail if a file or folder at `path` must not be written because it belongs to results.
///
/// In the folder of a run, new files and folders may be written, and files with the suffixes that
/// commands write may be replaced.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // Python passes an owned value.
fn may_write(py: Python<'_>, path: PathBuf) -> PyResult<()> {
    py.detach(|| tables::may_write(&path)).map_err(errors::storage)
}

/// The hash of a content as manifests store it: 64-bit XXH3, as 16 hexadecimal digits.
#[pyfunction]
fn content_hash(content: &[u8]) -> String {
    tables::parquet::hash(content)
}

/// The name in `names` that is most similar to `wrong`, or `None` if no name is similar enough.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // Python passes an owned value.
fn nearest(wrong: &str, names: Vec<String>) -> Option<String> {
    base::params::nearest(wrong, names.iter().map(String::as_str)).map(str::to_owned)
}

/// The names of the rooms that `entries` accepts: the rooms of the parts of a scenario, and
/// `metrics`.
#[pyfunction]
fn rooms() -> Vec<&'static str> {
    ::scenario::ROOMS.iter().map(|room| room.name).chain([METRICS]).collect()
}

/// The entries of a room: the parts from which a scenario chooses, or the metrics.
///
/// Parameters
/// ----------
/// room : str
///     A name such as "transport", "qdisc", "topology" or "metrics"; `_core.rooms()` has all of them.
///
/// Returns
/// -------
/// list of dict
///     One dict per entry with `name` and `summary`. A part of a scenario also has `source`, `head`
///     (the description that `flowloom explain` prints) and `parameters`: a list of dicts with
///     `name`, `default`, `allowed`, `range`, `source` and `about`. A metric also has `unit`.
///
/// Raises
/// ------
/// ValueError
///     There is no such room.
#[pyfunction]
fn entries<'py>(py: Python<'py>, room: &str) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    if room == METRICS {
        for metric in tables::stats::METRICS {
            let entry = PyDict::new(py);
            entry.set_item("name", metric.name)?;
            entry.set_item("unit", metric.unit)?;
            entry.set_item("summary", metric.about)?;
            entry.set_item("window", metric.window)?;
            list.append(entry)?;
        }
        return Ok(list);
    }
    let Some(found) = ::scenario::ROOMS.iter().find(|r| r.name == room) else {
        return Err(errors::InputError::new_err(format!("there is no room `{room}`\nhint: one of {}", rooms().join(", "))));
    };
    for entry in found.entries {
        let dict = PyDict::new(py);
        dict.set_item("name", entry.name)?;
        dict.set_item("summary", entry.meta.summary)?;
        dict.set_item("source", entry.meta.source)?;
        dict.set_item("head", entry.head())?;
        let fields = PyList::empty(py);
        for field in entry.fields {
            let parameter = PyDict::new(py);
            parameter.set_item("name", field.name)?;
            parameter.set_item("default", if field.default.is_empty() { None } else { Some(field.default) })?;
            parameter.set_item("allowed", (field.expects)())?;
            parameter.set_item("range", field.range())?;
            parameter.set_item("source", field.source)?;
            parameter.set_item("about", field.about.trim())?;
            fields.append(parameter)?;
        }
        dict.set_item("parameters", fields)?;
        dict.set_item("knows", entry.meta.knows)?;
        dict.set_item("queue_lengths", entry.meta.queue_lengths)?;
        let counters = PyList::empty(py);
        for counter in entry.meta.counters {
            let dict = PyDict::new(py);
            dict.set_item("name", counter.name)?;
            dict.set_item("unit", counter.unit)?;
            dict.set_item("about", counter.about)?;
            counters.append(dict)?;
        }
        dict.set_item("counters", counters)?;
        list.append(dict)?;
    }
    Ok(list)
}

//! Scenarios: reading, checking and running.

use crate::errors;
use crate::results::Results;
use base::units::parse_bytes;
use cli::rounds;
use cli::sweep::{self, Settings, Tick};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use scenario::memory::Source;
use scenario::{Options, Plan};
use sim::{Continue, EventOrder};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A checked scenario with every default filled in and every sweep expanded into points.
#[pyclass(frozen, module = "flowloom._core")]
pub struct Scenario {
    plan: Plan,
    profiles: Vec<String>,
}

/// Keys and values, as for `--set`.
type Pairs = Vec<(String, String)>;

#[pymethods]
impl Scenario {
    /// Read the text of a scenario file. Relative paths in it start at `dir`; all errors are reported at once.
    #[staticmethod]
    ///
    /// `memory`, such as `8GB`, is the limit for all running points together; without it the limit
    /// is the free memory.
    #[pyo3(signature = (text, name = "scenario", dir = ".", set = Vec::new(), seeds = None, profile = None, memory = None))]
    #[expect(clippy::too_many_arguments)] // Python passes them by name.
    fn from_toml(
        py: Python<'_>,
        text: &str,
        name: &str,
        dir: &str,
        set: Pairs,
        seeds: Option<Vec<u64>>,
        profile: Option<String>,
        memory: Option<&str>,
    ) -> PyResult<Scenario> {
        let profiles = profile.map_or(Vec::new(), |names| ::scenario::profiles(&names));
        let wrong = |text: &str, why: String| errors::input(py, &format!("`memory`: `{text}` {why}"));
        let given = memory.map(|text| parse_bytes(text).map_err(|why| wrong(text, why))).transpose()?;
        let memory = cli::memory_limit(given.map(|bytes| bytes.0));
        let options = Options { set, seeds, profiles: profiles.clone(), memory };
        let plan = py.detach(|| scenario::load(text, name, dir.as_ref(), &options));
        let plan = plan.map_err(|found| errors::scenario(py, &found))?;
        rounds::no_such_metric(&plan).map_or(Ok(()), |found| Err(errors::scenario(py, found)))?;
        Ok(Scenario { plan, profiles })
    }
    /// Read a scenario from a nested dict with the keys of a scenario file.
    #[staticmethod]
    #[pyo3(signature = (scenario, name = "scenario", dir = ".", set = Vec::new(), seeds = None, profile = None, memory = None))]
    #[expect(clippy::too_many_arguments)] // Python passes them by name.
    fn from_dict(
        py: Python<'_>,
        scenario: &Bound<'_, PyAny>,
        name: &str,
        dir: &str,
        set: Pairs,
        seeds: Option<Vec<u64>>,
        profile: Option<String>,
        memory: Option<&str>,
    ) -> PyResult<Scenario> {
        let json: String = py.import("json")?.call_method1("dumps", (scenario,))?.extract()?;
        let text = to_toml(&json).map_err(|e| errors::input(py, &format!("the dict is not a scenario: {e}")))?;
        Scenario::from_toml(py, &text, name, dir, set, seeds, profile, memory)
    }
    /// The whole plan as TOML, with a comment on every value that the file does not set.
    fn resolved(&self) -> &str {
        self.plan.resolved()
    }
    /// The memory limit that was given, such as `8000000000B`; `None` if none was given.
    #[getter]
    fn memory(&self) -> Option<String> {
        let memory = self.plan.memory;
        (memory.source == Source::Given).then(|| format!("{}B", memory.bytes))
    }
    /// Warnings about settings that may mislead, one dict each: `file`, `line`, `col`, `message`,
    /// `label`, `hint`.
    #[getter]
    fn warnings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        errors::diagnostics(py, &self.plan.warnings)
    }
    /// The points to run: `point`, `system`, `seed` and one entry per swept key.
    #[getter]
    fn points<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for point in &self.plan.points {
            let dict = PyDict::new(py);
            dict.set_item("point", &point.id)?;
            dict.set_item("system", &point.label)?;
            dict.set_item("seed", point.seed)?;
            for key in &self.plan.sweep_keys {
                let value = point.swept.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str());
                match value.map(|v| (v, v.parse::<i64>(), v.parse::<f64>())) {
                    None => dict.set_item(key, py.None())?,
                    Some((_, Ok(whole), _)) => dict.set_item(key, whole)?,
                    Some((_, _, Ok(number))) if number.is_finite() => dict.set_item(key, number)?,
                    Some((text, ..)) => dict.set_item(key, text)?,
                }
            }
            list.append(dict)?;
        }
        Ok(list)
    }
    /// For each point, the hash of everything that its result depends on: `config_hash` in its
    /// manifest.
    fn config_hashes(&self) -> BTreeMap<&str, String> {
        self.plan.points.iter().map(|point| (point.id.as_str(), format!("{:016x}", point.config_hash()))).collect()
    }
    /// Run all points, or those that `points` names, and write them to the folder `out` unless it is `None`.
    ///
    /// `jobs` points run at a time (0: one per core) on `threads` threads each (0: idle cores,
    /// where this is faster), with the order of events `engine`: `auto`, `tree` or `windows`.
    ///
    /// Points that are already finished in `out`, with the same scenario and version, are kept.
    /// `progress` is called with `points_done`, `points_total`, `point`, `flows_done`,
    /// `flows_total`, `events` and `elapsed_s`. Results of another run in `out` are replaced only
    /// with `overwrite`.
    #[pyo3(signature = (jobs = 0, threads = 0, out = None, progress = None, overwrite = false, points = None, engine = "auto"))]
    #[expect(clippy::too_many_arguments)] // Python passes them by name.
    fn run(
        &self,
        py: Python<'_>,
        jobs: usize,
        threads: usize,
        out: Option<PathBuf>,
        progress: Option<Py<PyAny>>,
        overwrite: bool,
        points: Option<Vec<String>>,
        engine: &str,
    ) -> PyResult<Results> {
        let only = points.map(|names| self.places(py, &names)).transpose()?;
        let order = EventOrder::named(engine).ok_or_else(|| {
            errors::InputError::new_err(format!("`engine` is `{engine}`: it must be `auto`, `tree` or `windows`"))
        })?;
        let temporary = match out {
            Some(_) => None,
            None => Some(tempfile::tempdir()?),
        };
        let out = match (&out, &temporary) {
            (Some(out), _) => out.as_path(),
            (None, Some(dir)) => dir.path(),
            (None, None) => return Err(errors::InputError::new_err("the run has no folder")),
        };
        let settings =
            Settings { jobs, threads, order, out, profiles: &self.profiles, overwrite, whole: None, only: only.as_deref() };
        let mut raised = None;
        let report = py.detach(|| {
            let mut on_tick = |tick: &Tick<'_>| {
                if raised.is_none() {
                    raised = Python::attach(|py| report_progress(py, tick, progress.as_ref())).err();
                }
                if raised.is_some() { Continue::No } else { Continue::Yes }
            };
            let auto = self.plan.auto.is_some();
            let prepared =
                if auto { Vec::new() } else { sweep::prepare_patiently(self.plan.clone(), only.clone(), &mut on_tick)?.1 };
            rounds::run(&self.plan, &prepared, &settings, &mut on_tick)
        });
        if let Some(raised) = raised {
            return Err(raised);
        }
        let (report, reached) = report.map_err(|e| errors::sweep(py, e))?;
        let imprecise = reached.filter(|reached| !reached.precise).map(|reached| reached.text);
        for text in report.notes.iter().cloned().chain(imprecise) {
            // It knows the line of the program that called flowloom.
            py.import("flowloom.base.errors")?.call_method1("warn", (text,))?;
        }
        Ok(Results::new(report.results, temporary))
    }
}

impl Scenario {
    /// Returns the indices of points by name. Fails if a name is unknown, or if all points must run
    /// together.
    fn places(&self, py: Python<'_>, names: &[String]) -> PyResult<Vec<usize>> {
        if self.plan.auto.is_some() {
            return Err(errors::input(py, rounds::NOT_APART));
        }
        let place = |name: &String| {
            let found = self.plan.points.iter().position(|point| point.id == *name);
            found.ok_or_else(|| errors::input(py, &format!("there is no point `{name}`")))
        };
        names.iter().map(place).collect()
    }
}

/// Lets Python handle signals and reports the progress.
fn report_progress(py: Python<'_>, tick: &Tick<'_>, progress: Option<&Py<PyAny>>) -> PyResult<()> {
    py.check_signals()?;
    let Some(progress) = progress else { return Ok(()) };
    let dict = PyDict::new(py);
    dict.set_item("points_done", tick.points_done)?;
    dict.set_item("points_total", tick.points)?;
    dict.set_item("point", tick.point)?;
    dict.set_item("flows_done", tick.flows_done)?;
    dict.set_item("flows_total", tick.flows)?;
    dict.set_item("events", tick.events)?;
    dict.set_item("elapsed_s", tick.elapsed_s)?;
    progress.call1(py, (dict,))?;
    Ok(())
}

/// Converts JSON to TOML. TOML has no null, so keys with null are left out.
fn to_toml(json: &str) -> Result<String, String> {
    fn convert(value: serde_json::Value) -> Result<Option<toml::Value>, String> {
        use serde_json::Value as Json;
        Ok(Some(match value {
            Json::Null => return Ok(None),
            Json::Bool(b) => toml::Value::Boolean(b),
            Json::Number(n) => match (n.as_i64(), n.as_f64()) {
                (Some(whole), _) => toml::Value::Integer(whole),
                (None, Some(number)) if !n.is_u64() => toml::Value::Float(number),
                _ => return Err(format!("`{n}` is too large")),
            },
            Json::String(text) => toml::Value::String(text),
            Json::Array(values) => {
                let values: Result<Vec<_>, _> = values.into_iter().filter_map(|v| convert(v).transpose()).collect();
                toml::Value::Array(values?)
            }
            Json::Object(object) => {
                let mut table = toml::Table::new();
                for (key, value) in object {
                    if let Some(value) = convert(value)? {
                        table.insert(key, value);
                    }
                }
                toml::Value::Table(table)
            }
        }))
    }
    match convert(serde_json::from_str(json).map_err(|e| e.to_string())?)? {
        Some(toml::Value::Table(table)) => toml::to_string(&table).map_err(|e| e.to_string()),
        _ => Err("it is not a table of keys and values".to_owned()),
    }
}

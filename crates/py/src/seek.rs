//! The table `[seek]` of a scenario file as a dict, and problems that Python finds in a file.

use crate::errors;
use ::scenario::Located;
use base::params::Params as _;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// The table `[seek]` of a scenario file, or `None`: its parameters by name, `given`, `scenarios`,
/// `settings` and `claims`.
///
/// Parameters are texts as written in the file, or `None` if they are not given; bounds of claims
/// are numbers. `given` lists the parameters that the file gives. A setting also has `keys`
/// (the scenario or `None`, the key, and the names in it), `choices` and, for numbers, `range`: smallest and largest value as exact decimals, unit, and the
/// maximum number of decimals of a value. Raises `ScenarioError`.
#[pyfunction]
pub fn seek<'py>(py: Python<'py>, text: &str, name: &str) -> PyResult<Option<Bound<'py, PyDict>>> {
    let found = ::scenario::seek::seek(text, name).map_err(|found| errors::scenario(py, &found))?;
    let Some(seek) = found else { return Ok(None) };
    let dict = params(py, &seek.params.show())?;
    let settings = PyList::empty(py);
    for setting in &seek.settings {
        let one = params(py, &setting.params.show())?;
        let keys: Vec<_> = setting.keys.iter().map(|key| (key.scenario.as_deref(), key.written(), key.path())).collect();
        one.set_item("name", &setting.params.name)?;
        one.set_item("source", &setting.params.source)?;
        one.set_item("log", setting.params.log)?;
        one.set_item("keys", keys)?;
        one.set_item("choices", &setting.choices)?;
        one.set_item("usual", &setting.usual)?;
        let range = setting.range.as_ref();
        one.set_item("range", range.map(|r| (r.low.to_string(), r.high.to_string(), r.unit.as_str(), r.decimals)))?;
        settings.append(one)?;
    }
    let claims = PyList::empty(py);
    for claim in &seek.claims {
        let one = params(py, &claim.show())?;
        one.set_item("id", &claim.id)?;
        one.set_item("printed", &claim.printed.0)?;
        one.set_item("fit", claim.fit)?;
        one.set_item("at_least", claim.at_least.as_ref().map(|bound| bound.value))?;
        one.set_item("at_most", claim.at_most.as_ref().map(|bound| bound.value))?;
        claims.append(one)?;
    }
    dict.set_item("given", &seek.given)?;
    dict.set_item("scenarios", &seek.scenarios)?;
    dict.set_item("settings", settings)?;
    dict.set_item("claims", claims)?;
    Ok(Some(dict))
}

fn params<'py>(py: Python<'py>, shown: &[(&str, String)]) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (key, value) in shown {
        dict.set_item(key, Some(value).filter(|value| *value != "none"))?;
    }
    Ok(dict)
}

/// Returns the `ScenarioError` of problems in a TOML file: key, message, label and hint of each.
///
/// Tables of a list have numbers in keys: `seek.claim.0.metric`.
#[pyfunction]
pub fn located(py: Python<'_>, text: &str, name: &str, problems: Vec<(String, String, String, String)>) -> Py<PyAny> {
    let problems = problems.into_iter().map(|(key, message, label, hint)| Located { key, message, label, hint }).collect();
    errors::scenario(py, &::scenario::located(text, name, problems)).into_value(py).into_any()
}

/// Returns the configuration hash and the name of the point in a folder.
///
/// Raises `StorageError` unless the point is done and all files that its manifest lists have their
/// contents.
#[pyfunction]
pub fn check_point(folder: std::path::PathBuf) -> PyResult<(String, String)> {
    let found = tables::check_point(&folder).map_err(errors::storage)?;
    Ok((found.config_hash, found.key.id))
}

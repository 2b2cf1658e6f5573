//! The table `[seek]` of a scenario file as a dict, and problems that Python finds in a file.

use crate::errors;
use ::scenario::Located;
use base::params::Params as _;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// The table `[seek]` of a scenario file, or `None`: its parameters by name, `scenarios`, `settings` and `claims`.
///
/// Parameters are texts as written in the file, or `None` if they are not given. A setting also has
/// `keys`, `choices` and, for numbers, `range`: smallest and largest value, unit, and whether only
/// whole numbers are allowed. Raises `ScenarioError`.
#[pyfunction]
pub fn seek<'py>(py: Python<'py>, text: &str, name: &str) -> PyResult<Option<Bound<'py, PyDict>>> {
    let found = ::scenario::seek::seek(text, name).map_err(|found| errors::scenario(py, &found))?;
    let Some(seek) = found else { return Ok(None) };
    let dict = params(py, &seek.params.show())?;
    let settings = PyList::empty(py);
    for setting in &seek.settings {
        let one = params(py, &setting.params.show())?;
        one.set_item("keys", &setting.keys)?;
        one.set_item("choices", &setting.choices)?;
        one.set_item("range", setting.range.as_ref().map(|r| (r.low, r.high, r.unit.as_str(), r.whole)))?;
        settings.append(one)?;
    }
    let claims = PyList::empty(py);
    for claim in &seek.claims {
        claims.append(params(py, &claim.show())?)?;
    }
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

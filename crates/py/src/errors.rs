//! One exception class per kind of error.

use cli::sweep;
use pyo3::create_exception;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

create_exception!(
    flowloom._core,
    InputError,
    PyValueError,
    "What the user has given is wrong: an argument, a scenario or a name.

The command line prints its text as an error of the user. Any other `ValueError` is a bug of flowloom."
);
create_exception!(
    flowloom,
    ScenarioError,
    InputError,
    "A scenario has errors.

Attributes
----------
diagnostics : list of dict
    One dict per error: `file`, `line`, `col`, `message`, `label`, `hint`."
);
create_exception!(
    flowloom,
    RunError,
    PyRuntimeError,
    "A run could not start, or broke an invariant.

Attributes
----------
broken : bool
    Whether an invariant was broken. This is a bug of flowloom."
);
create_exception!(flowloom, StorageError, PyOSError, "A results folder or a file in it cannot be read or written.");

/// Converts the errors of a scenario to an exception.
pub fn scenario(py: Python<'_>, found: &::scenario::Diagnostics) -> PyErr {
    // The message starts on a new line, so that the source excerpt is not indented.
    let error = ScenarioError::new_err(format!("\n{}", found.render(::scenario::Style::Plain)));
    match diagnostics(py, found).and_then(|list| error.value(py).setattr("diagnostics", list)) {
        Ok(()) => error,
        Err(e) => e,
    }
}

/// Returns one dict per error or warning.
pub fn diagnostics<'py>(py: Python<'py>, found: &::scenario::Diagnostics) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for item in found.items() {
        let dict = PyDict::new(py);
        dict.set_item("file", &item.file)?;
        dict.set_item("line", item.line)?;
        dict.set_item("col", item.col)?;
        dict.set_item("message", &item.message)?;
        dict.set_item("label", &item.label)?;
        dict.set_item("hint", &item.hint)?;
        list.append(dict)?;
    }
    Ok(list)
}

/// Converts an error without a position in a file to an exception.
pub fn input(py: Python<'_>, message: &str) -> PyErr {
    let error = ScenarioError::new_err(message.to_owned());
    match error.value(py).setattr("diagnostics", PyList::empty(py)) {
        Ok(()) => error,
        Err(e) => e,
    }
}

/// Converts a storage error to an exception.
pub fn storage(error: tables::Error) -> PyErr {
    if let tables::Error::Filter(wrong) = error {
        return InputError::new_err(wrong.to_string());
    }
    StorageError::new_err(with_hint(&error, error.hint()))
}

/// Converts the error of a sweep to an exception.
pub fn sweep(py: Python<'_>, error: sweep::Error) -> PyErr {
    match error {
        sweep::Error::Storage(error) => storage(error),
        sweep::Error::Input(message) => input(py, &message),
        sweep::Error::Run { .. } | sweep::Error::Broken(_) | sweep::Error::Stopped => {
            let raised = RunError::new_err(with_hint(&error, error.hint()));
            let broken = matches!(error, sweep::Error::Broken(_));
            raised.value(py).setattr("broken", broken).map_or_else(|e| e, |()| raised)
        }
    }
}

fn with_hint(error: &dyn std::error::Error, hint: Option<&str>) -> String {
    hint.map_or_else(|| error.to_string(), |hint| format!("{error}\nhint: {hint}"))
}

//! Signals during Rust code. Python's signal handlers run between batches of events, and an
//! exception in a handler stops the run.

use cli::Signal;
use pyo3::exceptions::PySystemExit;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};
use sim::{Continue, Progress};

/// A handler with which SIGTERM stops a run cleanly, like Ctrl-C. Python allows handlers only in
/// the main thread; in other threads nothing is installed.
pub struct Handler {
    former: Option<Py<PyAny>>,
}

impl Handler {
    /// Installs the handler.
    pub fn install(py: Python<'_>) -> PyResult<Handler> {
        let terminate = |_: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| -> PyResult<()> {
            Err(PySystemExit::new_err(i32::from(cli::exit::TERMINATED)))
        };
        let handler = PyCFunction::new_closure(py, None, None, terminate)?;
        let signal = py.import("signal")?;
        let former = signal.call_method1("signal", (signal.getattr("SIGTERM")?, handler));
        Ok(Handler { former: former.ok().map(Bound::unbind) })
    }
    /// Restores the former handler.
    pub fn restore(self, py: Python<'_>) -> PyResult<()> {
        if let Some(former) = self.former.filter(|former| !former.is_none(py)) {
            let signal = py.import("signal")?;
            signal.call_method1("signal", (signal.getattr("SIGTERM")?, former))?;
        }
        Ok(())
    }
}

/// Runs code that does not need Python and lets Python handle signals meanwhile. An exception in a
/// signal handler stops the run.
pub fn detached<T: Send>(py: Python<'_>, run: impl FnOnce(&mut dyn FnMut(Progress) -> Continue) -> T + Send) -> PyResult<T> {
    let mut raised = None;
    let done = py.detach(|| {
        run(&mut |_| {
            raised = Python::attach(|py| py.check_signals()).err();
            if raised.is_some() { Continue::No } else { Continue::Yes }
        })
    });
    raised.map_or(Ok(done), Err)
}

/// Returns the signal to stop, if one has arrived.
pub fn poll() -> Option<Signal> {
    Python::attach(|py| match py.check_signals() {
        Ok(()) => None,
        Err(raised) if raised.is_instance_of::<PySystemExit>(py) => Some(Signal::Terminate),
        Err(_) => Some(Signal::Interrupt),
    })
}

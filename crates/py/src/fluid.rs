//! Ideal schedules of one link.

use crate::errors::InputError;
use ::scenario::IdealName;
use base::params::{Param as _, Raw};
use fabric::schedule::link::{Job, Schedule, Segment};
use num_rational::BigRational;
use num_traits::ToPrimitive as _;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Maximum number of flows that are scheduled in exact fractions. With more flows, the fractions of
/// processor sharing have too many digits.
const EXACT_FLOWS: usize = 200;

/// Schedule flows on one link as fluids: without packets, delays and headers.
///
/// Times, sizes and the capacity may have any consistent units.
///
/// Parameters
/// ----------
/// policy : {"srpt", "ps", "fcfs", "edf", "sjf", "edf_sjf", "stam", "merp"}
///     The order of service. In `edf` and `edf_sjf`, flows without a deadline are served after flows
///     with a deadline, in `edf_sjf` the shortest first. In `stam` they are served first as long as
///     all flows with a deadline can wait.
/// capacity : float
///     The capacity of the link, in units of size per unit of time.
/// arrivals : sequence of float, shape (flows,)
///     The time at which each flow arrives.
/// sizes : sequence of float, shape (flows,)
///     The size of each flow.
/// deadlines : sequence of (float or None), shape (flows,), optional
///     The time by which each flow should end, on the same clock as `arrivals`. None: no deadline.
///
/// Returns
/// -------
/// dict
///     `finish`, a list with the time at which each flow ends, and `segments`, a list of tuples
///     `(flow, start, end, rate)` ordered by time. Up to 200 flows are scheduled in exact fractions
///     before they become floats.
///
/// Raises
/// ------
/// ValueError
///     The policy is unknown, the lengths differ, or a number is not finite.
#[pyfunction]
#[pyo3(signature = (policy, capacity, arrivals, sizes, deadlines = None))]
pub fn fluid<'py>(
    py: Python<'py>,
    policy: &str,
    capacity: f64,
    arrivals: Vec<f64>,
    sizes: Vec<f64>,
    deadlines: Option<Vec<Option<f64>>>,
) -> PyResult<Bound<'py, PyDict>> {
    let wrong = |message: String| InputError::new_err(message);
    let policy = IdealName::parse(&Raw::Str(policy.to_owned())).map_err(|e| wrong(format!("`{policy}` {e}")))?.build();
    let n = arrivals.len();
    let deadlines = deadlines.unwrap_or_else(|| vec![None; n]);
    if sizes.len() != n || deadlines.len() != n {
        return Err(wrong(unequal(n, sizes.len(), deadlines.len())));
    }
    let numbers = arrivals.iter().chain(&sizes).chain(deadlines.iter().flatten()).chain([&capacity]);
    if let Some(number) = numbers.into_iter().find(|x| !x.is_finite()) {
        return Err(wrong(format!("`{number}` is not finite")));
    }
    let flows: Vec<Job<f64>> = (0..n).map(|i| Job { arrival: arrivals[i], size: sizes[i], deadline: deadlines[i] }).collect();
    let done = py.detach(|| {
        if n > EXACT_FLOWS {
            return policy.schedule(&capacity, &flows);
        }
        let exact = |x: f64| BigRational::from_float(x).expect("checked to be finite");
        let flows: Vec<Job<BigRational>> =
            flows.iter().map(|j| Job { arrival: exact(j.arrival), size: exact(j.size), deadline: j.deadline.map(exact) }).collect();
        policy.schedule(&exact(capacity), &flows).map(|s| to_floats(&s))
    });
    let done = done.map_err(wrong)?;
    as_dict(py, &done)
}

fn unequal(arrivals: usize, sizes: usize, deadlines: usize) -> String {
    format!("{arrivals} arrivals, {sizes} sizes and {deadlines} deadlines: each flow needs one of each")
}

fn as_dict<'py>(py: Python<'py>, done: &Schedule<f64>) -> PyResult<Bound<'py, PyDict>> {
    let segments: Vec<(usize, f64, f64, f64)> = done.segments.iter().map(|s| (s.flow, s.start, s.end, s.rate)).collect();
    let dict = PyDict::new(py);
    dict.set_item("finish", &done.finish)?;
    dict.set_item("segments", segments)?;
    Ok(dict)
}

fn to_floats(exact: &Schedule<BigRational>) -> Schedule<f64> {
    let float = |x: &BigRational| x.to_f64().unwrap_or(f64::NAN);
    let segment =
        |s: &Segment<BigRational>| Segment { flow: s.flow, start: float(&s.start), end: float(&s.end), rate: float(&s.rate) };
    Schedule { finish: exact.finish.iter().map(float).collect(), segments: exact.segments.iter().map(segment).collect() }
}

//! Statistics and units for Python, so that they are defined only in Rust.

use crate::errors::InputError;
use base::units::{Limit, parse_bytes, parse_limit};
use pyo3::prelude::*;
use tables::stats;

/// The mean of values and the ends of its 95 % confidence interval (Student's t).
///
/// The mean is `None` without values, and the interval is `None` with fewer than two values.
#[pyfunction]
pub fn estimate(values: Vec<f64>) -> (Option<f64>, Option<(f64, f64)>) {
    let found = tables::estimate::Estimate::of(&values);
    (found.mean, found.ci95)
}

/// The quantile of values by nearest rank: the smallest value such that at least `per_mille` / 1000
/// of all values are no larger.
///
/// `None` without values.
#[pyfunction]
pub fn quantile(mut values: Vec<f64>, per_mille: u32) -> PyResult<Option<f64>> {
    if per_mille > 1000 {
        return Err(InputError::new_err(format!("{per_mille} is above 1000 per mille")));
    }
    values.sort_unstable_by(f64::total_cmp);
    Ok(stats::quantile(&values, per_mille))
}

/// The share of a run, or of its measurement window, that a port spends transmitting; `None` if the
/// duration is zero.
#[pyfunction]
pub fn utilisation(busy_ps: u64, end_ps: u64) -> Option<f64> {
    stats::utilisation(busy_ps, end_ps)
}

/// The length of a queue in bytes from its text: `20pkt`, `30KB`, or a number of packets of `mtu`
/// (`1500B`).
///
/// `None` for `unlimited` and for text that is not a length.
#[pyfunction]
pub fn queue_length(written: &str, mtu: &str) -> PyResult<Option<u64>> {
    let mtu = parse_bytes(mtu).map_err(|e| InputError::new_err(format!("`{mtu}` {e}")))?;
    let limit = written.trim().parse().map(Limit::Packets).or_else(|_| parse_limit(written));
    Ok(limit.ok().and_then(|limit| limit.in_bytes(mtu)).map(|bytes| bytes.0))
}

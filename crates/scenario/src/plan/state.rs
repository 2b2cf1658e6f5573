//! The steady state that a run starts in. [`crate::plan::steady`] computes it.

use crate::workload::Drawn;
use base::Dur;
use std::sync::{Arc, OnceLock};

/// A steady state.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Steady {
    /// By workload: the flows that are open at the start, each with the bytes that remain.
    pub under_way: Vec<Vec<Drawn>>,
    /// How long the load continues after the last flow that counts.
    pub lasting: Dur,
}

/// The steady state of all runs with the same network, workloads and seed; it is computed once.
#[derive(Clone, Debug, Default)]
pub struct Shared(Arc<OnceLock<Result<Option<Steady>, String>>>);

impl PartialEq for Shared {
    /// Returns `true`: the state follows from the rest of the description of a run.
    fn eq(&self, _: &Shared) -> bool {
        true
    }
}

impl Shared {
    /// Returns the state. The first call computes it with `compute`.
    pub(crate) fn get(&self, compute: impl FnOnce() -> Result<Option<Steady>, String>) -> Result<Option<&Steady>, String> {
        self.0.get_or_init(compute).as_ref().map(Option::as_ref).map_err(String::clone)
    }
}

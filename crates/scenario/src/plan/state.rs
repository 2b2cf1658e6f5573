//! The state that a run starts in, as [`crate::plan::steady`] works it out.

use crate::workload::Drawn;
use base::Dur;
use std::sync::{Arc, OnceLock};

/// A steady state.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Steady {
    /// By workload: the flows that are under way, with the bytes that are left of each.
    pub under_way: Vec<Vec<Drawn>>,
    /// How long the load goes on behind the last flow that counts.
    pub lasting: Dur,
}

/// The state of all runs that have the same network, workloads and seed, worked out once.
#[derive(Clone, Debug, Default)]
pub struct Shared(Arc<OnceLock<Result<Option<Steady>, String>>>);

impl PartialEq for Shared {
    /// It says nothing that the rest of a run's description does not say.
    fn eq(&self, _: &Shared) -> bool {
        true
    }
}

impl Shared {
    /// The state, which `work_out` finds where nobody has asked yet.
    pub(crate) fn get(&self, work_out: impl FnOnce() -> Result<Option<Steady>, String>) -> Result<Option<&Steady>, String> {
        self.0.get_or_init(work_out).as_ref().map(Option::as_ref).map_err(String::clone)
    }
}

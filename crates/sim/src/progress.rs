//! Progress that a run reports to its watcher, and the watcher's answer.

use base::Time;

/// The progress of a run.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Simulated time.
    pub now: Time,
    /// Flows whose last byte has arrived.
    pub finished: usize,
    /// All flows.
    pub flows: usize,
    /// Events handled.
    pub events: u64,
}

/// The decision of the watcher of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Continue {
    /// Go on with the run.
    Yes,
    /// Stop the run now, with an incomplete outcome.
    No,
}

/// Why a run could not start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The workload cannot be drawn.
    #[error("{0}")]
    Workload(String),
    /// A function of a plug-in has failed.
    #[error("{0}")]
    Plugin(String),
    /// The time of a flow cannot be broken down, since its packets take several paths at once. Holds
    /// the name of the transport.
    #[error(
        "the time of flows of `{0}` cannot be broken down: their packets take several paths at once\nhint: choose a system with another transport"
    )]
    Subflows(&'static str),
}

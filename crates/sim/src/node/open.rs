//! The flows that have started and not finished, and the bytes of each that were delivered since the last
//! look.

use base::{FlowId, Time};
use proto::Flow;

/// Open flows, in the order of their starts.
#[derive(Clone, Debug, Default)]
pub struct OpenFlows {
    /// Each open flow with its bytes delivered by the last look.
    open: Vec<(FlowId, u64)>,
    /// How many of [`SeenFlow::flows`] have been looked at.
    started: usize,
    /// How many of [`SeenFlow::started`] have been looked at.
    waited: usize,
}

/// The flows of a run at the time of a look.
#[derive(Clone, Copy)]
pub struct SeenFlow<'a> {
    /// All flows, by id.
    pub flows: &'a [Flow],
    /// The flows that waited for other flows and have started, in the order of their starts.
    pub started: &'a [FlowId],
    /// The present.
    pub now: Time,
}

impl OpenFlows {
    /// Returns the bytes delivered since the last look, for each flow that was open at the last look or has
    /// started since then and before now. A flow that has finished since the last look is returned a last
    /// time. `progress` returns the delivered bytes of a flow, and whether it has finished.
    pub fn look(&mut self, seen: SeenFlow<'_>, progress: impl Fn(FlowId) -> (u64, bool)) -> Vec<(FlowId, u64)> {
        // Flows that wait are in the same table, but do not start in its order.
        while let Some(flow) = seen.flows.get(self.started).filter(|flow| flow.wait.is_some() || flow.start < seen.now) {
            if flow.wait.is_none() {
                self.open.push((flow.id, 0));
            }
            self.started += 1;
        }
        self.open.extend(seen.started[self.waited..].iter().map(|flow| (*flow, 0)));
        self.waited = seen.started.len();
        let mut rows = Vec::with_capacity(self.open.len());
        self.open.retain_mut(|(flow, before)| {
            let (delivered, finished) = progress(*flow);
            rows.push((*flow, delivered - std::mem::replace(before, delivered)));
            !finished
        });
        rows
    }
}

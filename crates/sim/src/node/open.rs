//! The flows that have started and not finished, with the bytes of each delivered since the last look.

use base::{FlowId, Time};
use proto::Flow;

/// Open flows, in the order of their starts.
#[derive(Clone, Debug, Default)]
pub struct OpenFlows {
    /// Each open flow with its bytes delivered by the last look.
    open: Vec<(FlowId, u64)>,
    /// The number of flows that have been seen, of all flows.
    started: usize,
    /// The number of flows that have been seen, of those that waited.
    waited: usize,
}

/// What a look at a run shows.
#[derive(Clone, Copy)]
pub struct SeenFlow<'a> {
    /// All flows, by id.
    pub flows: &'a [Flow],
    /// Those that waited for others and have started, in the order of their starts.
    pub started: &'a [FlowId],
    /// The present.
    pub now: Time,
}

impl OpenFlows {
    /// Returns the bytes delivered since the last look, for each flow that was open then or has started since and before now. A finished
    /// flow is returned once more. `progress` tells the bytes of a flow that were delivered, and whether it has finished.
    pub fn look(&mut self, seen: SeenFlow<'_>, progress: impl Fn(FlowId) -> (u64, bool)) -> Vec<(FlowId, u64)> {
        // Flows that wait for others are in the same table, but do not start in its order.
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

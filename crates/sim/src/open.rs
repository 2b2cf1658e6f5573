//! The flows that have started and not finished, with the bytes of each delivered since the last look.

use crate::world::World;
use base::{FlowId, Time};

/// Open flows, in the order of their starts.
#[derive(Clone, Debug, Default)]
pub struct OpenFlows {
    /// Each open flow with its bytes delivered by the last look.
    open: Vec<(FlowId, u64)>,
    /// The number of flows in `World::flows` that have been seen.
    started: usize,
    /// The number of flows in `World::started` that have been seen.
    waited: usize,
}

impl OpenFlows {
    /// Returns the bytes delivered since the last look, for each flow that was open then or has started since and before `now`. A finished
    /// flow is returned once more.
    pub fn look<P>(&mut self, world: &World<P>, now: Time) -> Vec<(FlowId, u64)> {
        // Flows that wait for others are in the same table, but do not start in its order.
        while let Some(flow) = world.flows.get(self.started).filter(|flow| flow.wait.is_some() || flow.start < now) {
            if flow.wait.is_none() {
                self.open.push((flow.id, 0));
            }
            self.started += 1;
        }
        self.open.extend(world.started[self.waited..].iter().map(|flow| (*flow, 0)));
        self.waited = world.started.len();
        let look = |(flow, before): &mut (FlowId, u64)| {
            let delivered = world.table.get(*flow).delivered_bytes;
            (*flow, delivered - std::mem::replace(before, delivered))
        };
        let seen = self.open.iter_mut().map(look).collect();
        self.open.retain(|(flow, _)| world.table.get(*flow).finish == Time::MAX);
        seen
    }
}

//! The queue of flows that take turns.

use base::FlowId;
use std::collections::VecDeque;

/// A round-robin queue of flows. The caller keeps a flag per flow: a flow in the queue must not be
/// added again.
#[derive(Clone, Debug, Default)]
pub struct RoundRobin(VecDeque<FlowId>);

impl RoundRobin {
    /// Adds `flow` to the end of the queue.
    #[inline]
    pub fn add(&mut self, flow: FlowId) {
        self.0.push_back(flow);
    }
    /// Puts the flows in the order of their keys, the smallest first. Flows with equal keys keep their turns.
    pub fn sort<K: Ord>(&mut self, mut key: impl FnMut(FlowId) -> K) {
        if self.0.len() > 1 {
            self.0.make_contiguous().sort_by_cached_key(|flow| key(*flow));
        }
    }
    /// Removes the flow whose turn it is; the caller adds it again to keep it in the queue.
    #[inline]
    pub fn take(&mut self) -> Option<FlowId> {
        self.0.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_take_turns() {
        let mut order = RoundRobin::default();
        for id in [3, 1, 2] {
            order.add(FlowId(id));
        }
        let mut turns = Vec::new();
        while let Some(flow) = order.take() {
            turns.push(flow.0);
            if turns.len() < 5 {
                order.add(flow);
            }
        }
        assert_eq!(turns, [3, 1, 2, 3, 1, 2, 3]);
    }

    #[test]
    fn equal_keys_keep_their_turns() {
        let mut order = RoundRobin::default();
        for id in [3, 1, 4, 2] {
            order.add(FlowId(id));
        }
        order.sort(|flow| flow.0 % 2);
        let sorted: Vec<u32> = std::iter::from_fn(|| order.take()).map(|flow| flow.0).collect();
        assert_eq!(sorted, [4, 2, 3, 1]);
    }
}

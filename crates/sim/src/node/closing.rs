//! The flows with whose last finish the measurement window ends.

use base::FlowId;

/// The flows with whose last finish the window ends.
#[derive(Clone, Debug, Default)]
pub struct ClosingFlows(Vec<FlowId>);

impl ClosingFlows {
    /// Takes the flows; without flows the end of the window does not depend on flows.
    pub fn new(flows: Vec<FlowId>) -> ClosingFlows {
        ClosingFlows(flows)
    }
    /// Returns whether none of the flows is open, the first time that this is so. `is_open` returns
    /// whether a flow has neither finished nor been given up.
    pub fn have_ended(&mut self, is_open: impl Fn(FlowId) -> bool) -> bool {
        // A flow that is open is looked at again, all others only once.
        while self.0.pop_if(|flow| !is_open(*flow)).is_some() {
            if self.0.is_empty() {
                return true;
            }
        }
        false
    }
    /// Returns whether a flow is one of them, by flow; all flows if there are none of them left.
    pub fn choose(&self, flows: usize) -> Vec<bool> {
        let mut chosen = vec![self.0.is_empty(); flows];
        self.0.iter().for_each(|flow| chosen[flow.index()] = true);
        chosen
    }
}

//! The flows that rank first at a port.

use base::{FlowId, Time};

/// The order in which Alg. 3 ranks flows.
pub(super) type Rank = (Time, Time, FlowId);

/// The best-ranked flows. Three are enough: the requesting flow may be one of them and needs to
/// know two others.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Leaders {
    /// Whether the list is up to date.
    pub is_known: bool,
    len: usize,
    best: [(Rank, FlowId); Leaders::MAX],
}

impl Leaders {
    const MAX: usize = 3;

    /// Returns an empty list that is up to date.
    pub fn known() -> Leaders {
        Leaders { is_known: true, ..Leaders::default() }
    }

    /// Returns the leaders, the best-ranked first.
    pub fn list(&self) -> &[(Rank, FlowId)] {
        &self.best[..self.len]
    }
    /// Inserts a flow if it ranks high enough.
    pub fn insert(&mut self, rank: Rank, flow: FlowId) {
        let at = self.list().iter().take_while(|(other, _)| *other < rank).count();
        if at == Self::MAX {
            return;
        }
        self.len = (self.len + 1).min(Self::MAX);
        self.best[at..self.len].rotate_right(1);
        self.best[at] = (rank, flow);
    }
    /// Updates the list after a change of a flow's rank; `None`: the flow is or was not eligible.
    /// If a leader's rank changed, the list becomes unknown.
    pub fn on_change(&mut self, flow: FlowId, from: Option<Rank>, to: Option<Rank>) {
        if !self.is_known || from == to {
            return;
        }
        let led = from.is_some() && self.list().iter().any(|(_, leader)| *leader == flow);
        if led {
            self.is_known = false;
        } else if let Some(rank) = to {
            // Either every flow that is not in the list ranks behind its last flow, or the list
            // holds all flows: inserting keeps this true.
            self.insert(rank, flow);
        }
    }
}

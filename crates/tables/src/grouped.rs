//! Groups of flows: incasts, jobs, requests.

use sim::outcome::FlowRow;
use std::collections::BTreeMap;

/// A group of flows, such as an incast, a job or a request.
#[derive(Default)]
pub(crate) struct Group {
    /// Flows that began.
    pub flows: u64,
    /// Flows that began and did not finish.
    pub unfinished: u64,
    pub first_start_ps: u64,
    last_finish_ps: u64,
    /// The goodputs of the flows that finished, in bit/s.
    pub goodput: Vec<f64>,
    size_bytes: u64,
    /// Whether all flows with a deadline met it; `None` if there is no such flow.
    pub in_time: Option<bool>,
}

impl Group {
    /// Returns the completion time, from the first start to the last finish; `None` if a flow did
    /// not finish.
    pub fn fct_ps(&self) -> Option<u64> {
        (self.unfinished == 0).then(|| self.last_finish_ps - self.first_start_ps)
    }
    /// Returns payload over completion time, in bit/s.
    pub fn goodput_bps(&self) -> Option<f64> {
        self.fct_ps().map(|fct| self.size_bytes as f64 * 8e12 / fct as f64)
    }
}

/// Returns the groups of flows that began, by number. A flow that never began is ignored: it does
/// not delay the finish of its group.
pub(crate) fn groups(flows: &[&FlowRow]) -> BTreeMap<u64, Group> {
    let mut found: BTreeMap<u64, Group> = BTreeMap::new();
    for flow in flows {
        let (Some(id), Some(start)) = (flow.group_id, flow.start_ps) else { continue };
        let group = found.entry(id).or_insert(Group { first_start_ps: start, ..Group::default() });
        group.first_start_ps = group.first_start_ps.min(start);
        group.flows += 1;
        group.unfinished += u64::from(flow.finish_ps.is_none());
        group.last_finish_ps = group.last_finish_ps.max(flow.finish_ps.unwrap_or(0));
        group.goodput.extend(flow.goodput_bps());
        group.size_bytes += flow.size_bytes;
        group.in_time = flow.deadline_met().map(|met| met && group.in_time != Some(false)).or(group.in_time);
    }
    found
}

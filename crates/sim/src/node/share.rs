//! The share of a part in a run of several parts.

use base::{Dur, FlowId, HostId, NodeId, Time};
use fabric::net::Net;
use proto::Flow;
use proto::host::FlowTable;
use std::sync::Arc;

/// The share of a part in a run of several parts.
pub struct PartShare {
    /// By node: its part.
    owners: Arc<[u8]>,
    part: u8,
    /// The longest time for which parts run independently.
    window: Dur,
    /// Flows that end in this part, in descending order of their starts. While the measurement window ends
    /// with the last finish of some flows, only those.
    flows: Vec<FlowId>,
    /// Flows that end in this part and join `flows` when the measurement window has ended.
    later: Vec<FlowId>,
    /// The index in `flows` of the flow that was last found to stay open.
    open: usize,
    /// How many more calls skip the search for a flow that stays open, since the last search found none.
    rest: u32,
    /// More bytes than a host can receive in a window.
    slack: u64,
    /// Flow changes for the other parts, oldest first.
    pub changes: Vec<FlowChange>,
}

/// A start or an end of a flow, which a part reports to the other parts for flows that wait.
#[derive(Clone, Copy, Debug)]
pub struct FlowChange {
    /// The flow.
    pub flow: FlowId,
    /// Time of the change.
    pub now: Time,
    /// Start or end.
    pub kind: FlowChangeKind,
}

/// The kind of a flow change.
#[derive(Clone, Copy, Debug)]
pub enum FlowChangeKind {
    /// The flow has started.
    Started,
    /// The flow has ended at this host, which is its receiver or its sender.
    Ended(HostId),
}

/// Windows without a search for a flow that stays open, after a search that found none.
const REST: u32 = 50;

impl PartShare {
    /// Creates the share of part number `part`. `owners` has the part of each node, parts run independently for
    /// a `window`, and packets have at most `mtu` bytes. `closes` are the flows whose ends must stop the run, by
    /// flow.
    pub fn new(
        (owners, window): (Arc<[u8]>, Dur),
        part: usize,
        net: &Net,
        (flows, closes): (&[Flow], &[bool]),
        mtu: u64,
    ) -> PartShare {
        // Both directions of a cable have the same rate.
        let received = |flow: &Flow| net.host_rate(flow.dst).bytes_in(window);
        let slack = flows.iter().map(received).max().unwrap_or(0) + 2 * mtu;
        let mut own: Vec<&Flow> =
            flows.iter().filter(|flow| usize::from(owners[net.hosts()[flow.dst.index()].index()]) == part).collect();
        own.sort_by_key(|flow| (std::cmp::Reverse(flow.start), flow.id));
        let (flows, later) = own.into_iter().map(|flow| flow.id).partition(|flow| closes[flow.index()]);
        PartShare { owners, part: part as u8, window, flows, later, open: 0, rest: 0, slack, changes: Vec::new() }
    }
    /// Called when the measurement window ends with the last finish of its flows: from now on any open flow keeps
    /// the run going.
    pub fn on_window_end(&mut self) {
        self.flows.append(&mut self.later);
        (self.open, self.rest) = (0, 0);
    }
    /// Returns whether this part owns a node.
    pub fn owns(&self, node: NodeId) -> bool {
        self.owners[node.index()] == self.part
    }
    /// Returns a time until which some flow that ends in this part is sure to be open; it need not hold beyond
    /// the next window. Such a flow has not started yet, or misses more bytes than can arrive in a window and
    /// has no deadline for which it may be given up.
    pub fn open_until(&mut self, flows: &[Flow], table: &FlowTable, now: Time) -> Time {
        let until = |id: FlowId| {
            let (flow, record) = (&flows[id.index()], table.get(id));
            let lacks = flow.size_bytes - record.delivered_bytes;
            match flow.deadline.is_none() && lacks > self.slack {
                true => Time::MAX,
                false if flow.wait.is_none() => flow.start,
                false => Time::ZERO,
            }
        };
        let enough = now.after(Dur(self.window.0.saturating_mul(4)));
        let found = self.flows.get(self.open).map_or(Time::ZERO, |flow| until(*flow));
        if found > enough {
            return found;
        }
        if self.rest > 0 {
            self.rest -= 1;
            return found;
        }
        let all = (0..self.flows.len()).map(|n| (self.open + n) % self.flows.len());
        match all.map(|n| (n, until(self.flows[n]))).find(|(_, until)| *until > enough) {
            Some((n, until)) => {
                self.open = n;
                until
            }
            None => {
                self.rest = REST;
                found
            }
        }
    }
}

//! What a part knows of being one of several.

use base::{Dur, FlowId, HostId, NodeId, Time};
use fabric::net::Net;
use proto::Flow;
use proto::host::FlowTable;
use std::sync::Arc;

/// A part among others.
pub struct PartShare {
    /// By node: its part.
    owners: Arc<[u8]>,
    part: u8,
    /// The longest time for which parts run without each other.
    window: Dur,
    /// Flows that end here, the last to start first.
    flows: Vec<FlowId>,
    /// The place of the one that was found open last.
    open: usize,
    /// How often not to look again, since none was found.
    rest: u32,
    /// More than a host can receive in a window.
    slack: u64,
    /// What other parts are to hear, oldest first.
    pub changes: Vec<FlowChange>,
}

/// What a part tells the others of a flow, for those that wait for it.
#[derive(Clone, Copy, Debug)]
pub struct FlowChange {
    /// The flow.
    pub flow: FlowId,
    /// When.
    pub now: Time,
    /// What.
    pub kind: FlowChangeKind,
}

/// What has happened to a flow.
#[derive(Clone, Copy, Debug)]
pub enum FlowChangeKind {
    /// It has started.
    Started,
    /// It has ended at this host.
    Ended(HostId),
}

/// Windows before another look for a flow that stays open, after a look in vain.
const REST: u32 = 50;

impl PartShare {
    /// The part with this number among those that own nodes by `owners` and run for a `window` without each other, of a run of these flows
    /// with packets of `mtu` bytes.
    pub fn new((owners, window): (Arc<[u8]>, Dur), part: usize, net: &Net, flows: &[Flow], mtu: u64) -> PartShare {
        // Both directions of a cable have one rate.
        let received = |flow: &Flow| net.host_rate(flow.dst).bytes_in(window);
        let slack = flows.iter().map(received).max().unwrap_or(0) + 2 * mtu;
        let mut own: Vec<&Flow> =
            flows.iter().filter(|flow| usize::from(owners[net.hosts()[flow.dst.index()].index()]) == part).collect();
        own.sort_by_key(|flow| (std::cmp::Reverse(flow.start), flow.id));
        let flows = own.into_iter().map(|flow| flow.id).collect();
        PartShare { owners, part: part as u8, window, flows, open: 0, rest: 0, slack, changes: Vec::new() }
    }
    /// Whether a node is of this part.
    pub fn owns(&self, node: NodeId) -> bool {
        self.owners[node.index()] == self.part
    }
    /// A time until which some flow that ends here is open, at least if the next window is done by then: such a flow has not started, or lacks more
    /// bytes than can come in a window and has no deadline for which it might be given up.
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

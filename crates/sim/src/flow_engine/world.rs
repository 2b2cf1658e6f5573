//! The state of a run of the flow engine, and the handling of its events.

use super::moving::PacketsUnderWay;
use crate::node::open::SeenFlow;
use crate::node::waiting::{Start, WaitingFlows};
use base::{Dur, FlowId, FlowMap, HostId, LinkId, NodeId, Time};
use fabric::fluid::Flows;
use fabric::routes::Routes;
use fabric::routing::{PathChange, Routing};
use proto::Flow;
use scenario::Unloaded;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An event other than the end of a fluid. Events of the same time are handled in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FlowEvent {
    /// The last byte of a flow arrives.
    Finish(FlowId),
    /// A packet arrives over a link: its number, and its place among the packets in flight.
    Arrive(LinkId, u64, u32),
    /// A switch wakes.
    Switch(NodeId),
    /// A host opens a flow.
    Start(HostId, FlowId),
    /// A flow sends its next sample packet.
    PathSample(HostId, FlowId),
}

/// The state on which events act.
pub struct FlowWorld {
    /// All flows, by id.
    pub flows: Vec<Flow>,
    /// By flow: the flow in the healthy and otherwise unloaded network.
    pub alone: Vec<Unloaded>,
    /// The paths of flows.
    pub routing: Routing,
    /// The flows that have started and not finished, as fluids.
    pub fluid: Flows,
    /// By flow: when its last byte arrived; `Time::MAX` before.
    pub finish: Vec<Time>,
    /// Number of flows that have not finished.
    pub unfinished: usize,
    /// Flows that wait for other flows, if there are any.
    pub waiting: Option<WaitingFlows>,
    /// The flows that waited for other flows and have started, in the order of their starts.
    pub started: Vec<FlowId>,
    /// Paths set by the controller that died or came back, for the controller.
    pub path_changes: Vec<PathChange>,
    /// By link: whether the nodes at its ends know that it is down; empty if no link ever goes down.
    pub known_down: Vec<bool>,
    /// The switches that have timers, in the order of their nodes.
    pub switches: Vec<NodeId>,
    /// Packets in flight.
    pub packets: PacketsUnderWay,
    /// Wire bytes of a full packet.
    pub mtu: u16,
    /// Wire bytes of a packet's header.
    pub header: u16,
    /// Time between two samples of a flow, if the router decides at switches.
    pub every: Dur,
    /// By flow: payload bytes that its samples have represented so far.
    pub sampled: FlowMap<u64>,
    /// By flow: the time from its start to the arrival of its first sample. Until then it has no rate.
    pub lag: FlowMap<Dur>,
    /// Future events.
    pub agenda: BinaryHeap<Reverse<(Time, FlowEvent)>>,
}

impl FlowWorld {
    /// Returns when the next event is due; `Time::MAX` for never.
    pub fn next(&self) -> Time {
        let event = self.agenda.peek().map_or(Time::MAX, |Reverse((at, _))| *at);
        event.min(self.fluid.next_end()).min(self.fluid.solves_at())
    }

    /// Handles one event that is due at `now`. If no event is due, computes rates if they are due, and returns
    /// false.
    pub fn step(&mut self, now: Time) -> bool {
        // Last bytes come before all other events, as deliveries do in the packet engine.
        if let Some(flow) = self.fluid.pop_end(now) {
            self.on_sent(flow, now);
            return true;
        }
        let Some(Reverse((_, event))) = self.agenda.peek().copied().filter(|Reverse((at, _))| *at <= now) else {
            if self.fluid.solves_at() <= now {
                self.fluid.solve(now);
            }
            return false;
        };
        self.agenda.pop();
        match event {
            FlowEvent::Finish(flow) => self.on_finish(flow, now),
            FlowEvent::Arrive(_, _, place) => self.on_arrive(place, now),
            FlowEvent::Switch(at) => self.wake_switch(at, now),
            FlowEvent::Start(_, flow) => self.on_start(flow, now),
            FlowEvent::PathSample(_, flow) => self.on_sample(flow, now),
        }
        true
    }

    /// Schedules an event.
    pub fn plan(&mut self, at: Time, event: FlowEvent) {
        self.agenda.push(Reverse((at, event)));
    }

    /// Starts a flow, unless it has already started.
    fn on_start(&mut self, id: FlowId, now: Time) {
        let flow = &mut self.flows[id.index()];
        if let Some(wait) = &flow.wait {
            if flow.start != Time::MAX {
                return;
            }
            flow.start = now;
            flow.deadline = wait.allowed.map(|allowed| now.after(allowed));
            self.started.push(id);
        }
        self.fluid.start(id, self.flows[id.index()].size_wire_bytes, now);
        if let Some(waiting) = &mut self.waiting {
            let starts = waiting.on_start(&self.flows[id.index()], now);
            self.plan_starts(starts);
        }
        self.set_out(id, now);
        if !self.routing.has_links(false) {
            self.plan(now + self.every, FlowEvent::PathSample(self.flows[id.index()].src, id));
        }
    }

    fn plan_starts(&mut self, starts: Vec<Start>) {
        for Start { flow, at, .. } in starts {
            self.plan(at, FlowEvent::Start(self.flows[flow.index()].src, flow));
        }
    }

    /// Sends the next sample of a flow that has bytes left.
    fn on_sample(&mut self, id: FlowId, now: Time) {
        if self.fluid.is_moving(id) {
            self.send_sample(id, now);
            self.plan(now + self.every, FlowEvent::PathSample(self.flows[id.index()].src, id));
        }
    }

    /// Gives a flow the links of its present path, or sends a sample if only the switches know the path.
    fn set_out(&mut self, id: FlowId, now: Time) {
        if !self.routing.has_links(false) {
            return self.send_sample(id, now);
        }
        let links = self.routing.links(&self.flows[id.index()], false);
        let paths = links.as_ref().map(|links| (links.as_slice(), 1.0));
        self.fluid.set_paths(id, paths.as_slice(), now);
    }

    /// Handles the last byte of a flow that leaves its sender.
    fn on_sent(&mut self, id: FlowId, now: Time) {
        let (flow, alone) = (&self.flows[id.index()], &self.alone[id.index()]);
        let beyond = alone.ideal_fct.0.saturating_sub(alone.bottleneck.tx_time(flow.size_wire_bytes).0);
        // Rounding must not make a flow faster than it is in an unloaded network on one path. Over several
        // paths at once it may be faster.
        let earliest = if self.routing.spreads_evenly { now } else { flow.start + alone.ideal_fct };
        // The fluid began to move later, by the travel time of the first sample. Subtract this time.
        let lag = self.lag.remove(id).unwrap_or_default();
        self.sampled.remove(id);
        let at = now.after(Dur(beyond)).before(lag).max(now).max(earliest);
        self.plan(at, FlowEvent::Finish(id));
    }

    /// Handles the last byte of a flow that arrives.
    fn on_finish(&mut self, id: FlowId, now: Time) {
        self.fluid.finish(id);
        self.finish[id.index()] = now;
        self.unfinished -= 1;
        if let Some(waiting) = &mut self.waiting {
            let flow = &self.flows[id.index()];
            let starts = waiting.on_end(flow, flow.dst, now);
            self.plan_starts(starts);
        }
    }

    /// Returns the payload bytes of a flow that have been delivered by the last settlement.
    pub fn delivered(&self, id: FlowId) -> u64 {
        let size = self.flows[id.index()].size_bytes;
        match self.fluid.share_sent(id) {
            Some(share) => (size as f64 * share) as u64,
            None if self.finish[id.index()] != Time::MAX => size,
            None => 0,
        }
    }

    /// Returns the payload bytes of a flow that have been delivered by `now`.
    pub fn delivered_by(&mut self, id: FlowId, now: Time) -> u64 {
        self.fluid.settle(id, now);
        self.delivered(id)
    }

    /// Returns the flows that have started, for [`OpenFlows::look`](crate::node::open::OpenFlows::look).
    pub fn seen(&self, now: Time) -> SeenFlow<'_> {
        SeenFlow { flows: &self.flows, started: &self.started, now }
    }

    /// Returns the bytes of a flow that were delivered by the last settlement, and whether it has finished.
    pub fn progress(&self, flow: FlowId) -> (u64, bool) {
        (self.delivered(flow), self.finish[flow.index()] != Time::MAX)
    }

    /// Sets the path of a flow in one direction from now on, by index; `None` for the router's path.
    pub fn set_path(&mut self, id: FlowId, back: bool, path: Option<u16>, now: Time) {
        self.routing.set(&self.flows[id.index()], back, path);
        if !back && self.fluid.is_moving(id) {
            self.set_out(id, now);
        }
    }

    /// Sets new routes.
    pub fn reroute(&mut self, routes: Routes, now: Time) {
        let path_changes =
            self.routing.reroute(std::sync::Arc::new(routes), &self.flows, |flow| self.finish[flow.index()] != Time::MAX);
        self.path_changes.extend(path_changes);
        for flow in self.fluid.open() {
            if self.fluid.is_moving(flow) {
                self.set_out(flow, now);
            }
        }
    }
}

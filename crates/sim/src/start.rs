//! The state from which a run starts, with the packet engine or the flow engine: its flows with their
//! ideal completion times, the flows that wait, and the measurement window.

use crate::actors::window::WindowActor;
use crate::node::closing::ClosingFlows;
use crate::node::waiting::WaitingFlows;
use crate::order::EventOrder;
use crate::progress::RunError;
use base::{Dur, HostId};
use fabric::routes::{self, Routes};
use proto::Flow;
use proto::flow::Join;
use scenario::{RunSpec, RunTasks, RunTraffic, Unloaded};
use std::sync::Arc;

/// The flows and routes of a run before its first event.
#[derive(Clone)]
pub struct Beginning {
    /// Routes of the network without failures.
    pub healthy: Arc<Routes>,
    /// The flows, by id.
    pub flows: Vec<Flow>,
    /// By flow: the flow in an otherwise unloaded network.
    pub alone: Vec<Unloaded>,
    /// Flows that wait for other flows, if there are any.
    pub waiting: Option<WaitingFlows>,
    /// The joins for which flows and parts of tasks wait.
    pub joins: Vec<Join>,
    /// The tasks of programs.
    pub tasks: RunTasks,
    /// The measurement window, if there is one.
    pub window: Option<WindowActor>,
    /// The order of the events of different nodes.
    pub order: EventOrder,
}

impl Beginning {
    /// Draws the flows. Fails if the workload cannot be drawn.
    pub fn of(spec: &RunSpec) -> Result<Beginning, RunError> {
        let net = &*spec.net;
        let traffic = spec.traffic().map_err(RunError::Workload)?;
        let window = WindowActor::new(spec, &traffic);
        let RunTraffic { mut flows, joins, tasks } = traffic;
        // Ideal completion times are those of the healthy network.
        let healthy = Arc::new(Routes::new(net, &[]));
        let alone: Vec<Unloaded> = flows.iter().map(|flow| spec.unloaded(&healthy, flow)).collect();
        for (flow, alone) in flows.iter_mut().zip(&alone) {
            (flow.rtt, flow.bottleneck, flow.switches) = (alone.rtt, alone.bottleneck, alone.hops.saturating_sub(1));
        }
        let waiting = WaitingFlows::new(&flows, &joins, |src, dst| latency(spec, &healthy, src, dst));
        Ok(Beginning { healthy, flows, alone, waiting, joins, tasks, window, order: EventOrder::Auto })
    }
    /// Returns the flows with whose last finish the measurement window ends.
    pub fn closing(&self) -> ClosingFlows {
        self.window.as_ref().map_or(ClosingFlows::default(), |window| window.closing(&self.flows))
    }
}

/// Returns the latency of a bare header between two hosts of an idle network.
pub fn latency(spec: &RunSpec, healthy: &Routes, src: HostId, dst: HostId) -> Dur {
    let paths = healthy.shapes(&spec.net, src, dst);
    paths.iter().map(|path| routes::one_way(path, spec.header_bytes.into())).min().unwrap_or_default()
}

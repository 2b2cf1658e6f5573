//! Room: controllers. A controller is a single state machine for the whole network, which reads the
//! network's state periodically and may set paths of flows.
//!
//! A controller reads at every multiple of its period, and its decisions take effect one latency
//! later. The latency represents all delays of reports and orders.

use crate::net::Net;
use crate::paths::AllPaths;
use crate::router::AnyParams as AnyRouterParams;
pub use crate::router::Env;
use crate::routes::Routes;
use crate::routing::PathChange;
use base::params::{Problem, Raw, Reader};
use base::{Dur, FlowId, Given, HostId, Time};

/// A controller.
pub trait Controller {
    /// Returns the time between two readings.
    fn period(&self) -> Dur;
    /// Returns the time from a reading until its orders take effect.
    fn latency(&self) -> Dur;
    /// Reads the network, and adds its orders to `moves`. They take effect in this order.
    fn decide(&mut self, view: &mut View<'_>, moves: &mut Vec<Move>);
}

/// The state of the network that a controller reads.
pub struct View<'a> {
    /// The time of the reading.
    pub now: Time,
    /// The network.
    pub net: &'a Net,
    /// The live next hops of the network.
    pub routes: &'a Routes,
    /// All shortest paths of the healthy network, by index.
    pub paths: &'a mut AllPaths,
    /// The links, by id.
    pub links: &'a [LinkState],
    /// The flows that have started and not ended, by id.
    pub flows: &'a [OpenFlow],
    /// What happened to paths that were set, since the last reading.
    pub path_changes: &'a [PathChange],
}

/// The state of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkState {
    /// Bytes on the wire whose transmission started since the last reading.
    pub sent_bytes: u64,
    /// Bytes that wait at the link's port.
    pub queue_bytes: u64,
}

/// The state of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFlow {
    /// The flow.
    pub id: FlowId,
    /// Its sender.
    pub src: HostId,
    /// Its receiver.
    pub dst: HostId,
    /// The indices of the present paths to the destination and back; `None` for a path without an
    /// index.
    pub paths: [Option<u16>; 2],
    /// Bytes of payload that arrived for the first time since the last reading.
    pub delivered_bytes: u64,
}

/// An order of a controller: packets of a flow take another path from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The flow.
    pub flow: FlowId,
    /// Whether the order is for the path from the flow's destination back to its source.
    pub back: bool,
    /// The path's index; `None`: the path that the router plans.
    pub path: Option<u16>,
}

/// Returns the problem of a controller that sets paths of data together with a router that decides
/// at switches.
pub fn needs_planned_paths(env: &Env<'_>) -> Option<Problem> {
    let kind = env.given.kind("router")?;
    let params = AnyRouterParams::read(kind, &mut Written(env.given))?;
    params.duties(env).decides.at_switches(false).then(|| Problem {
        key: "kind",
        message: format!(
            "a controller sets paths, but `{kind}` chooses the next hop of packets at each switch: the orders would have no effect"
        ),
        hint: "use the router `ecmp`".to_owned(),
    })
}

/// The router's parameters as written in the scenario.
struct Written<'a>(&'a Given);

impl Reader for Written<'_> {
    fn get(&mut self, key: &'static str) -> Option<Raw> {
        self.0.param("router", key).map(|text| Raw::Str(text.to_owned()))
    }
    fn fail(&mut self, key: &'static str, message: String) {
        panic!("`{key}` of a router whose parameters were read before: {message}");
    }
}

pub mod hedera;
pub mod rebalance;

base::registry! {
    room AnyController: Controller, env Env<'_>;
    named "controller", "controllers", "controller": "moves flows to other paths while they run";
    entries { hedera: Hedera, rebalance: Rebalance }
    methods {
        fn period(&self) -> Dur;
        fn latency(&self) -> Dur;
        fn decide(&mut self, view: &mut View<'_>, moves: &mut Vec<Move>);
    }
}

//! Room: controllers. One machine for the whole network, which sees the network's state at a period and may set paths of flows.
//!
//! A controller reads at every multiple of its period, and what it decides acts its latency later: the latency stands for all that the
//! news and the orders need on their ways.

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
    /// From one look to the next.
    fn period(&self) -> Dur;
    /// From a look to the moment at which what it led to acts.
    fn latency(&self) -> Dur;
    /// Looks at the network, and puts what it decides into `moves`, which act in their order.
    fn decide(&mut self, view: &mut View<'_>, moves: &mut Vec<Move>);
}

/// What a controller sees.
pub struct View<'a> {
    /// When it looks.
    pub now: Time,
    /// The network.
    pub net: &'a Net,
    /// Its live next hops.
    pub routes: &'a Routes,
    /// All shortest paths of the healthy network, by index.
    pub paths: &'a mut AllPaths,
    /// By link.
    pub links: &'a [LinkState],
    /// The flows that have begun and not ended, by id.
    pub flows: &'a [OpenFlow],
    /// What became of paths that were set, since the last look.
    pub path_changes: &'a [PathChange],
}

/// A link, as a controller sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkState {
    /// Bytes on the wire whose transmission started since the last look.
    pub sent_bytes: u64,
    /// Bytes that wait at its port.
    pub queue_bytes: u64,
}

/// A flow, as a controller sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFlow {
    /// The flow.
    pub id: FlowId,
    /// Its sender.
    pub src: HostId,
    /// Its receiver.
    pub dst: HostId,
    /// The indices of its present paths there and back; `None` where the path has none.
    pub paths: [Option<u16>; 2],
    /// Bytes of payload that arrived for the first time since the last look.
    pub delivered_bytes: u64,
}

/// What a controller orders: packets of a flow take another path from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The flow.
    pub flow: FlowId,
    /// The path from its destination back to its source.
    pub back: bool,
    /// The path's index; `None`: the path that the router plans.
    pub path: Option<u16>,
}

/// The problem of a controller that sets paths of data beside a router that decides at switches.
pub fn needs_planned_paths(env: &Env<'_>) -> Option<Problem> {
    let kind = env.given.kind("router")?;
    let params = AnyRouterParams::read(kind, &mut Written(env.given))?;
    params.duties(env).decides.at_switches(false).then(|| Problem {
        key: "kind",
        message: format!("a controller sets paths, and `{kind}` decides at each switch which way packets go"),
        hint: "take the router `ecmp`".to_owned(),
    })
}

/// The router's parameters as they were written.
struct Written<'a>(&'a Given);

impl Reader for Written<'_> {
    fn get(&mut self, key: &'static str) -> Option<Raw> {
        self.0.param("router", key).map(|text| Raw::Str(text.to_owned()))
    }
    fn fail(&mut self, key: &'static str, message: String) {
        panic!("`{key}` of a router that was read before: {message}");
    }
}

pub mod hedera;
pub mod rebalance;

base::registry! {
    room AnyController: Controller, env Env<'_>;
    named "controller", "controllers", "controller": "what moves flows to other paths while they run";
    entries { hedera: Hedera, rebalance: Rebalance }
    methods {
        fn period(&self) -> Dur;
        fn latency(&self) -> Dur;
        fn decide(&mut self, view: &mut View<'_>, moves: &mut Vec<Move>);
    }
}

//! The order in which a run handles the events of different nodes: by time, or node by node in windows.

use crate::node::closing::ClosingFlows;
use crate::node::share::PartShare;
use crate::node::world::World;
use crate::parallel::cut::{Uncut, forbids};
use crate::probe::Probe;
use base::{Dur, NodeId};
use engine::Nodes;
use proto::Flow;
use scenario::RunSpec;

/// The order in which a run of one part handles the events of different nodes. The results are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EventOrder {
    /// In windows if the network is so large that this is faster, and by the tree while nodes have few events in a window.
    #[default]
    Auto,
    /// By time, whatever the node.
    Tree,
    /// Node by node in windows as long as the smallest delay of a link, if the run can be cut like this.
    Windows,
}

/// Links from which windows are faster. Measured with NewReno on fat trees of 6144, 20 736, 49 152 and 393 216 links: 0.94, 1.18, 1.5 and
/// 1.6 times as fast as the tree.
const LARGE: usize = 20_000;

impl EventOrder {
    /// Returns the order that a run of one part uses: [`EventOrder::Tree`] or [`EventOrder::Windows`]; or why it cannot use windows. As
    /// in a run of several parts, hosts must not change the paths of replies, and a node must not need information about flows of other
    /// nodes before a packet from there can arrive.
    pub(crate) fn choose(self, spec: &RunSpec, flows: &[Flow]) -> Result<EventOrder, Uncut> {
        if self == EventOrder::Tree || self == EventOrder::Auto && spec.net.links().len() < LARGE {
            return Ok(EventOrder::Tree);
        }
        if spec.system.changes_both_paths() {
            return Err(Uncut::Paths);
        }
        if forbids(width(spec), flows) { Err(Uncut::Gives) } else { Ok(EventOrder::Windows) }
    }

    /// Returns the order with a name.
    pub fn named(name: &str) -> Option<EventOrder> {
        [EventOrder::Auto, EventOrder::Tree, EventOrder::Windows].into_iter().find(|order| order.name() == name)
    }

    /// Returns the name of an order as users write it.
    pub fn name(self) -> &'static str {
        match self {
            EventOrder::Auto => "auto",
            EventOrder::Tree => "tree",
            EventOrder::Windows => "windows",
        }
    }
}

/// Returns the longest window.
fn width(spec: &RunSpec) -> Dur {
    spec.net.links().iter().map(|link| link.delay).min().unwrap_or(Dur(1))
}

/// Returns the share of a part that is the whole run.
pub(crate) fn share(spec: &RunSpec, flows: &[Flow], closing: &ClosingFlows) -> PartShare {
    let owners = vec![0; spec.net.nodes().len()].into();
    let closes = closing.choose(flows.len());
    PartShare::new((owners, width(spec)), 0, &spec.net, (flows, &closes), spec.mtu_bytes.into())
}

/// Returns the nodes for the engine.
pub(crate) fn nodes<P: Probe>(spec: &RunSpec, world: &World<P>) -> Nodes {
    let net = &*spec.net;
    let all = || (0..net.nodes().len() as u32).map(NodeId);
    let out = |node: NodeId| {
        let base = net.out_base(node);
        base..base + net.out_links(node).len() as u32
    };
    Nodes {
        ends: net.links().iter().map(|link| [link.from.0, link.to.0]).collect(),
        out: all().map(out).collect(),
        wakers: world.switches.iter().chain(net.hosts()).map(|node| node.0).collect(),
        foreign: if world.share.is_some() { all().map(|node| !world.owns(node)).collect() } else { Vec::new() },
    }
}

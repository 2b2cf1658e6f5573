//! Room: routers. Which of several next hops a flow takes.

use base::{LinkId, NodeId};

/// A router: one for the whole network, holding what each switch needs.
pub trait Router {
    /// Which of `candidates` (live next hops in rising port order, at least 2) the flow takes at switch `at`: an index.
    fn choose(&mut self, at: NodeId, path: &FiveTuple, candidates: &[LinkId]) -> u32;
}

/// What a packet shows of its flow to a switch. The reverse direction has its ends swapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FiveTuple {
    /// Source IPv4 address.
    pub src: u32,
    /// Destination IPv4 address.
    pub dst: u32,
    /// IP protocol.
    pub protocol: u8,
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
}

/// What a router knows from configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Env {
    /// Nodes of the network.
    pub nodes: u32,
}

pub mod ecmp;

base::registry! {
    room AnyRouter: Router, env Env;
    entries { ecmp: Ecmp }
    methods {
        fn choose(&mut self, at: NodeId, path: &FiveTuple, candidates: &[LinkId]) -> u32;
    }
}

//! Room: routers. Which of several next hops a packet takes.
//!
//! A router either plans the path of a flow before its first packet, which then rides in every packet and costs nothing on the way, or
//! is asked at each switch, packet by packet; [`Duties`] says which, for each direction. Asked, it sees the switch through a [`View`].

use crate::agent::Agent;
use crate::agent::merp::Row;
use crate::net::Net;
use crate::port::Port;
use crate::routes::{Routes, five_tuple};
use base::{FlowMap, HostId, LinkId, NodeId, Slab, Time};
use proto::packet::Ext;
use proto::{Flow, Packet};

/// A router: one for the whole network, holding what each switch needs.
pub trait Router {
    /// Which of `candidates` (live next hops in rising port order, at least 2) the flow takes at switch `at`: an index.
    fn choose(&mut self, at: NodeId, path: &FiveTuple, candidates: &[LinkId]) -> u32;
    /// Which of the view's candidates (at least 1) a packet takes that is decided at switches: an index. It may rewrite the packet, also
    /// the route bytes of the switches to come. A router that does not say otherwise chooses as it would plan.
    fn decide(&mut self, packet: &mut Packet, view: &View<'_>) -> u32 {
        if view.candidates.len() == 1 { 0 } else { self.choose(view.at, &view.tuple(packet), view.candidates) }
    }
    /// A packet's transmission on a watched port starts at `now`, which may lie before the event being handled: rewrite the packet and
    /// what is kept of that port, nothing else.
    fn on_depart(&mut self, _link: LinkId, _packet: &mut Packet, _now: Time) {}
}

/// What a router wants to be called for. What it does not want costs nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duties {
    /// Packets to the flow's destination, and those that come back, are decided at every switch; otherwise planned.
    pub asked: [bool; 2],
    /// Ports between switches are watched.
    pub watches: bool,
}

impl Duties {
    /// All paths are planned.
    pub const PLAN: Duties = Duties { asked: [false; 2], watches: false };
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
#[derive(Clone, Copy)]
pub struct Env<'a> {
    /// The network.
    pub net: &'a Net,
    /// Its next hops while all links are up.
    pub routes: &'a Routes,
    /// The seed of the run.
    pub seed: u64,
}

/// What a router sees of the switch that asks it. All its ports are up to date: what was due to leave has left.
pub struct View<'a> {
    /// The present.
    pub now: Time,
    /// The switch.
    pub at: NodeId,
    /// Live next hops towards the packet's destination, in rising port order.
    pub candidates: &'a [LinkId],
    /// All flows of the run, by id.
    pub flows: &'a [Flow],
    /// Blocks for large headers.
    pub ext: &'a Slab<Ext>,
    /// The network.
    pub net: &'a Net,
    /// Its live next hops.
    pub routes: &'a Routes,
    /// The flow tables of its ports.
    pub tables: Tables<'a>,
}

/// The flow tables that agents keep: all that a router sees of them.
#[derive(Clone, Copy)]
pub struct Tables<'a>(&'a [Option<Box<Port>>]);

impl<'a> Tables<'a> {
    /// Of these ports, by link.
    pub fn new(ports: &'a [Option<Box<Port>>]) -> Self {
        Tables(ports)
    }
    /// The table at a port, if an agent keeps one there.
    pub fn at(self, link: LinkId) -> Option<&'a FlowMap<Row>> {
        self.0[link.index()].as_ref()?.agent.as_ref()?.table()
    }
}

impl<'a> View<'a> {
    /// Where the packet comes from and where it goes.
    pub fn ends(&self, packet: &Packet) -> (HostId, HostId) {
        let flow = &self.flows[packet.flow.index()];
        if packet.has(Packet::BACK) { (flow.dst, flow.src) } else { (flow.src, flow.dst) }
    }
    /// What the packet shows of its flow.
    pub fn tuple(&self, packet: &Packet) -> FiveTuple {
        five_tuple(self.net, &self.flows[packet.flow.index()], !packet.has(Packet::BACK))
    }
}

pub mod conga;
pub mod ecmp;
pub mod memr;
pub mod spray;

base::registry! {
    room AnyRouter: Router, env Env<'_>;
    entries { ecmp: Ecmp, spray: Spray, memr: Memr, conga: Conga }
    methods {
        fn choose(&mut self, at: NodeId, path: &FiveTuple, candidates: &[LinkId]) -> u32;
        fn decide(&mut self, packet: &mut Packet, view: &View<'_>) -> u32;
        fn on_depart(&mut self, link: LinkId, packet: &mut Packet, now: Time);
    }
    statics {
        /// What the router wants to be called for.
        fn duties -> Duties;
    }
}

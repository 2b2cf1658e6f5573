//! Room: agents. Per-port logic beside the queue, such as MERP's flow tables: it sees what enters and leaves the port.
//!
//! Switch ports and host NICs are the same to an agent, but for [`Env::host_port`].

use base::{FlowMap, LinkId, NodeId, Rate, Slab, Time};
use proto::packet::Ext;
use proto::{Flow, Packet};

/// An agent: the machine of one port.
pub trait Agent {
    /// A packet comes to the port, whether or not it will be admitted. What it takes along may be written into it.
    fn on_arrive(&mut self, packet: &mut Packet, cx: &mut Cx<'_>);
    /// A packet was admitted to the port. A dropped packet never gets here.
    fn on_enqueue(&mut self, packet: &Packet, cx: &mut Cx<'_>);
    /// A packet's transmission starts at `cx.now`, which may lie before the event being handled: rewrite the packet and the port's own
    /// state, nothing else.
    fn on_depart(&mut self, packet: &mut Packet, cx: &mut Cx<'_>);
    /// A packet came in over the port's own cable, against the direction of what leaves: where an entry needs ACKs on the reverse of
    /// the data path ([`Needs::reverse_path`](base::registry::Needs)), an ACK of what left here. Its header in the extension slab may be
    /// rewritten.
    fn on_return(&mut self, _packet: &Packet, _cx: &mut Cx<'_>) {}
    /// The link died: what the port knew is void.
    fn on_link_down(&mut self);
    /// The flows at the port, for a router that goes by them.
    fn table(&self) -> Option<&FlowMap<merp::Row>> {
        None
    }
}

/// What an agent sees while it handles a packet.
pub struct Cx<'a> {
    /// The present, or the logical start of service.
    pub now: Time,
    /// All flows of the run, by id.
    pub flows: &'a [Flow],
    /// Blocks for large headers.
    pub ext: &'a mut Slab<Ext>,
}

/// What an agent knows of its port from configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Env {
    /// The port: ids are unique in the network.
    pub link: LinkId,
    /// Its node.
    pub node: NodeId,
    /// Line rate.
    pub rate: Rate,
    /// The largest NIC rate among the hosts: what a rate given as a fraction of "the" capacity refers to.
    pub nic_rate: Rate,
    /// Size of a packet without payload.
    pub header_bytes: u16,
    /// The port is a host's NIC.
    pub host_port: bool,
}

pub mod bof;
pub mod merp;
pub mod pdq;

base::registry! {
    room AnyAgent: Agent, env Env;
    entries { merp: Merp, pdq: Pdq, bof: Bof }
    methods {
        fn on_arrive(&mut self, packet: &mut Packet, cx: &mut Cx<'_>);
        fn on_enqueue(&mut self, packet: &Packet, cx: &mut Cx<'_>);
        fn on_depart(&mut self, packet: &mut Packet, cx: &mut Cx<'_>);
        fn on_return(&mut self, packet: &Packet, cx: &mut Cx<'_>);
        fn on_link_down(&mut self);
        fn table(&self) -> Option<&FlowMap<merp::Row>>;
    }
}

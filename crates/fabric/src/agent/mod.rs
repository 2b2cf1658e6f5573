//! Room: agents. Per-port logic beside the queue, such as a table of flows: it sees what enters and leaves the port.
//!
//! Switch ports and host NICs are the same to an agent, but for [`Env::host_port`].

use crate::queue::Backlog;
use base::{FlowId, Given, LinkId, NodeId, Rate, Slab, Time};
use proto::packet::Ext;
use proto::{Flow, Packet};

/// An agent: the machine of one port.
pub trait Agent {
    /// A packet comes to the port, whether or not it will be admitted. The agent may rewrite it.
    fn on_arrive(&mut self, packet: &mut Packet, cx: &mut PortCx<'_>);
    /// A packet was admitted to the port. A dropped packet never gets here.
    fn on_enqueue(&mut self, packet: &Packet, cx: &mut PortCx<'_>);
    /// A packet's transmission starts at `cx.now`, which may lie before the event in hand. The agent may rewrite the packet and its own
    /// state, nothing else.
    fn on_depart(&mut self, packet: &mut Packet, cx: &mut PortCx<'_>);
    /// A packet came in over the port's own cable. Where an entry needs ACKs on the reverse of the data path
    /// ([`Needs::reverse_path`](base::registry::Needs)), this is an ACK of a packet that left here. The agent may rewrite its header in the
    /// extension slab.
    fn on_return(&mut self, _packet: &Packet, _cx: &mut PortCx<'_>) {}
    /// The link died: what the port knew is void.
    fn on_link_down(&mut self);
    /// Shows the table of flows, where the agent has one: the values of each flow that its `META` lists, in any order of flows.
    fn show(&self, _value: &mut dyn FnMut(FlowId, &'static str, f64)) {}
}

/// What an agent sees while it handles a packet.
pub struct PortCx<'a> {
    /// The present, or the logical start of service.
    pub now: Time,
    /// All flows of the run, by id.
    pub flows: &'a [Flow],
    /// Blocks for large headers.
    pub ext: &'a mut Slab<Ext>,
    /// The port, without the packet in hand. Only agents whose META [`reads_port`](base::registry::Meta) are shown it.
    pub port: &'a PortState,
}

/// What a port has done up to now, but for the packet in hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortState {
    /// What waits: before the packet came, or behind the one that leaves. The packet in transmission does not wait.
    pub queue: Backlog,
    /// Bytes on the wire of all packets whose transmission has started.
    pub sent_bytes: u64,
}

impl PortState {
    /// Of a port that has sent nothing.
    pub const NEW: PortState = PortState { queue: Backlog { packets: 0, bytes: 0 }, sent_bytes: 0 };
}

/// What an agent knows of its port from configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Env<'a> {
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
    /// The other parts of its system.
    pub given: &'a Given,
}

pub mod bof;
pub mod merp;
pub mod pdq;

base::registry! {
    room AnyAgent: Agent, env Env<'_>;
    named "agent", "agents", "agent": "logic of ports beside the queue";
    entries { merp: Merp, pdq: Pdq, bof: Bof }
    methods {
        fn on_arrive(&mut self, packet: &mut Packet, cx: &mut PortCx<'_>);
        fn on_enqueue(&mut self, packet: &Packet, cx: &mut PortCx<'_>);
        fn on_depart(&mut self, packet: &mut Packet, cx: &mut PortCx<'_>);
        fn on_return(&mut self, packet: &Packet, cx: &mut PortCx<'_>);
        fn on_link_down(&mut self);
        fn show(&self, value: &mut dyn FnMut(FlowId, &'static str, f64));
    }
}

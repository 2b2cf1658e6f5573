//! Room: agents. An agent is logic of a port in addition to its queue, such as a table of flows. It
//! sees every packet that enters and leaves the port.
//!
//! Agents treat switch ports and host NICs alike, except for [`Env::host_port`].

use crate::queue::Backlog;
use base::{FlowId, Given, LinkId, NodeId, Rate, Slab, Time};
use proto::packet::Ext;
use proto::{Flow, Packet};

/// An agent: the state machine of one port.
pub trait Agent {
    /// A packet arrives at the port, whether or not it will be admitted. The agent may rewrite the
    /// packet.
    fn on_arrive(&mut self, packet: &mut Packet, cx: &mut PortCx<'_>);
    /// A packet was admitted to the port. Not called for dropped packets.
    fn on_enqueue(&mut self, packet: &Packet, cx: &mut PortCx<'_>);
    /// A packet's transmission starts at `cx.now`, which may be earlier than the current event. The
    /// agent may rewrite the packet and its own state, nothing else.
    fn on_depart(&mut self, packet: &mut Packet, cx: &mut PortCx<'_>);
    /// A packet arrived over the port's own cable. For entries that need ACKs on the reverse of the
    /// data path ([`Needs::reverse_path`](base::registry::Needs)), it is an ACK of a packet that
    /// left through this port. The agent may rewrite the packet's header in the extension slab.
    fn on_return(&mut self, _packet: &Packet, _cx: &mut PortCx<'_>) {}
    /// The link failed. The agent forgets everything about the port.
    fn on_link_down(&mut self);
    /// Passes the values of each flow to `value`, as listed in the agent's `META`, in any order of
    /// flows. Does nothing if the agent has no table of flows.
    fn show(&self, _value: &mut dyn FnMut(FlowId, &'static str, f64)) {}
}

/// The context of an agent while it handles a packet.
pub struct PortCx<'a> {
    /// The current time, or the logical start of service.
    pub now: Time,
    /// All flows of the run, by id.
    pub flows: &'a [Flow],
    /// The slab of blocks for large headers.
    pub ext: &'a mut Slab<Ext>,
    /// The state of the port without the current packet. Kept only for agents whose META has
    /// [`reads_port`](base::registry::Meta).
    pub port: &'a PortState,
}

/// The state of a port, without the current packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortState {
    /// The queue before the arriving packet, or after the departing packet. The packet in
    /// transmission is not in it.
    pub queue: Backlog,
    /// Bytes on the wire of all packets whose transmission has started.
    pub sent_bytes: u64,
}

impl PortState {
    /// A port that has sent nothing.
    pub const NEW: PortState = PortState { queue: Backlog { packets: 0, bytes: 0 }, sent_bytes: 0 };
}

/// The environment of a port's agent, known from the configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Env<'a> {
    /// The link of the port: ids are unique in the network.
    pub link: LinkId,
    /// The node of the port.
    pub node: NodeId,
    /// Line rate.
    pub rate: Rate,
    /// The largest NIC rate of all hosts. Rates given as a fraction of "the" capacity refer to it.
    pub nic_rate: Rate,
    /// Size of a packet without payload, in bytes.
    pub header_bytes: u16,
    /// Whether the port is a host's NIC.
    pub host_port: bool,
    /// The parameters of the other parts of the system.
    pub given: &'a Given,
}

pub mod bof;
pub mod merp;
pub mod pdq;
pub mod telemetry;

base::registry! {
    room AnyAgent: Agent, env Env<'_>;
    named "agent", "agents", "agent": "logic of ports in addition to the queue";
    entries { merp: Merp, pdq: Pdq, bof: Bof, telemetry: Telemetry }
    methods {
        fn on_arrive(&mut self, packet: &mut Packet, cx: &mut PortCx<'_>);
        fn on_enqueue(&mut self, packet: &Packet, cx: &mut PortCx<'_>);
        fn on_depart(&mut self, packet: &mut Packet, cx: &mut PortCx<'_>);
        fn on_return(&mut self, packet: &Packet, cx: &mut PortCx<'_>);
        fn on_link_down(&mut self);
        fn show(&self, value: &mut dyn FnMut(FlowId, &'static str, f64));
    }
}

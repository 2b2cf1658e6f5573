//! Room: transports. One machine per host owns all its flows, sender and receiver in one file.
//!
//! The runtime calls [`Transport::on_flow`], [`Transport::on_packet`] and [`Transport::on_timer`], and, while the NIC's backlog is at
//! or under its low-water mark, [`Transport::poll_transmit`] until it returns `None`. A machine therefore never pushes data: it
//! notes that it may send, and waits to be polled. Packets that must not wait behind data (ACKs, handshakes, credits) go out
//! through [`Cx::control`].

use crate::flow::{Flow, FlowStats, Sample};
use crate::kit::reassembly::Delivery;
use crate::kit::tcp;
use crate::packet::{Ext, Kind, Packet};
use base::{Dur, FlowId, HostId, Limit, Rate, Rng, Slab, Time, TimerKey};

pub mod botcp;
pub mod dctcp;
pub mod host;
pub mod merp;
pub mod newreno;
pub mod pdq;
pub mod pfabric;
pub mod tcp_ecn;

base::registry! {
    room AnyTransport: Transport, env Env;
    entries {
        newreno: NewReno on tcp::TEXT, tcp_ecn: TcpEcn on tcp::TEXT, dctcp: Dctcp on tcp::TEXT, botcp: Botcp on tcp::TEXT,
        pfabric: Pfabric, merp: Merp, pdq: Pdq,
    }
    methods {
        fn on_flow(&mut self, flow: FlowId, cx: &mut Cx<'_>);
        fn on_packet(&mut self, packet: &Packet, cx: &mut Cx<'_>);
        fn on_timer(&mut self, key: TimerKey, cx: &mut Cx<'_>);
        fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet>;
        fn sample(&self, flow: FlowId) -> Option<Sample>;
        fn kind_name(&self, kind: Kind) -> Option<&'static str>;
    }
}

pub use host::{FlowTable, HostIo};

/// A transport: the machine of one host.
pub trait Transport {
    /// The application opens a flow at this host.
    fn on_flow(&mut self, flow: FlowId, cx: &mut Cx<'_>);
    /// A packet reached this host.
    fn on_packet(&mut self, packet: &Packet, cx: &mut Cx<'_>);
    /// An armed deadline is due. It is disarmed.
    fn on_timer(&mut self, key: TimerKey, cx: &mut Cx<'_>);
    /// The NIC can take a packet. `None`: nothing now, and nothing until one of the above is called.
    fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet>;
    /// What to show of a flow this host sends, if it is open.
    fn sample(&self, flow: FlowId) -> Option<Sample>;
    /// The name of one of the protocol's own packet kinds.
    fn kind_name(&self, kind: Kind) -> Option<&'static str>;
}

/// What a transport knows of its host and network from configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Env {
    /// Rate of this host's NIC.
    pub nic_rate: Rate,
    /// Largest packet on the wire, headers included.
    pub mtu_bytes: u16,
    /// Header of every packet; also the size of a packet without payload.
    pub header_bytes: u16,
    /// Longest unloaded round trip of the network: a full packet out, a bare header back.
    pub max_rtt: Dur,
    /// Limit of the switch ports' queues.
    pub queue_limit: Limit,
}

impl Env {
    /// Payload of a full packet.
    pub fn mss(&self) -> u16 {
        self.mtu_bytes - self.header_bytes
    }
    /// Bandwidth-delay product of the longest path at the NIC's rate, in bytes.
    pub fn bdp_bytes(&self) -> u64 {
        self.nic_rate.bytes_in(self.max_rtt)
    }
}

/// What a transport can see and do while it handles an event.
pub struct Cx<'a> {
    /// The present.
    pub now: Time,
    /// This host.
    pub host: HostId,
    /// All flows of the run, by id.
    pub flows: &'a [Flow],
    /// Blocks for large headers.
    pub ext: &'a mut Slab<Ext>,
    /// Random numbers of this host's protocol.
    pub rng: &'a mut Rng,
    /// This host's timers and control packets.
    pub io: &'a mut HostIo,
    /// What is recorded of every flow.
    pub table: &'a mut FlowTable,
}

impl<'a> Cx<'a> {
    /// The metadata of a flow.
    #[inline]
    pub fn flow(&self, flow: FlowId) -> &'a Flow {
        &self.flows[flow.index()]
    }
    /// Sets the deadline of a timer of `flow`; an earlier setting is replaced. A deadline that has passed is due now.
    #[inline]
    pub fn arm(&mut self, flow: FlowId, kind: u8, at: Time) {
        self.io.timers.arm(TimerKey { kind, flow }, at.max(self.now));
    }
    /// Takes a deadline away.
    #[inline]
    pub fn disarm(&mut self, flow: FlowId, kind: u8) {
        self.io.timers.disarm(TimerKey { kind, flow });
    }
    /// Whether a timer of `flow` is armed.
    pub fn is_armed(&self, flow: FlowId, kind: u8) -> bool {
        self.io.timers.is_armed(TimerKey { kind, flow })
    }
    /// Sends a packet before all data: to the flow's other end.
    #[inline]
    pub fn control(&mut self, packet: Packet) {
        self.io.control.push_back(packet);
    }
    /// The receiver has `len` payload bytes of `flow` from `offset` on. Says what is new and what to acknowledge, and finishes the
    /// flow when its last byte has come.
    #[inline]
    pub fn deliver(&mut self, flow: FlowId, offset: u64, len: u16) -> Delivery {
        self.table.deliver(self.flow(flow), offset, len, self.now)
    }
    /// The sender's own state of `flow` is done: forgets its timers and keeps its counts.
    pub fn close(&mut self, flow: FlowId, stats: FlowStats) {
        self.io.timers.forget(flow);
        self.table.close(flow, stats);
    }
    /// The sender gives `flow` up, whatever has arrived of it: nobody waits for it to finish any more.
    pub fn terminate(&mut self, flow: FlowId, stats: FlowStats) {
        self.close(flow, stats);
        self.table.terminate(flow);
    }
}

//! Room: policies. One machine per host stands between its transport and its NIC: it sees every packet on its way out and in, and may
//! set its class, its rank and its marks.
//!
//! [`Policy::on_send`] is called for every packet that the NIC takes, ACKs and the policy's own packets included;
//! [`Policy::on_receive`] before the transport sees a packet. A policy also hears of timeouts and of both ends of flows, has timers, may
//! send packets of its own and give flows up.
//!
//! The header of a policy is a block of the extension slab ([`Packet::set_tag`], [`Packet::get_tag`], [`Packet::put_tag`]), since
//! transports may use all of a packet's own header. The handle takes the place of the rank: a policy carries a header or ranks packets,
//! and does neither over a transport that ranks. Its own kinds of packets begin at [`Kind::POLICY`](crate::Kind::POLICY).

use crate::contract::{Env, Transport as _};
use crate::flow::{Flow, Sample};
use crate::hops::Hops;
use crate::host::{FlowTable, HostEvent, Path};
use crate::packet::{Ext, Packet};
use crate::transport::AnyTransport;
use base::registry::Meta;
use base::{FlowId, HostId, Rng, Slab, Time, TimerKey, Timers};
use std::collections::VecDeque;
use std::sync::Arc;

pub mod aemon;
pub mod dard;
pub mod edf_sjf;
pub mod karuna;
pub mod path_spray;
pub mod pias;
pub mod stam;

base::registry! {
    room AnyPolicy: Policy, env Env<'_>;
    named "policy", "policies", "policy": "the class, rank and marks of what hosts send";
    entries { aemon: Aemon, dard: Dard, edf_sjf: EdfSjf, karuna: Karuna, path_spray: PathSpray, pias: Pias, stam: Stam }
    methods {
        fn on_open(&mut self, flow: FlowId, cx: &mut Cx<'_>);
        fn on_send(&mut self, packet: &mut Packet, cx: &mut Cx<'_>);
        fn on_receive(&mut self, packet: &mut Packet, cx: &mut Cx<'_>) -> bool;
        fn on_timeout(&mut self, flow: FlowId, cx: &mut Cx<'_>);
        fn on_finish(&mut self, flow: FlowId, cx: &mut Cx<'_>);
        fn on_close(&mut self, flow: FlowId, cx: &mut Cx<'_>);
        fn on_timer(&mut self, key: TimerKey, cx: &mut Cx<'_>);
        fn notes(&self) -> Vec<String>;
    }
}

/// A policy: the machine of one host.
pub trait Policy {
    /// The application opens a flow at this host. The transport has not heard of it yet.
    fn on_open(&mut self, _flow: FlowId, _cx: &mut Cx<'_>) {}
    /// The NIC takes a packet of this host. The policy may set its class, its rank, a header of its own and [`Packet::ECT`], and may
    /// lengthen it.
    fn on_send(&mut self, packet: &mut Packet, cx: &mut Cx<'_>);
    /// A packet reached this host. With `false` it was the policy's own, and the transport never sees it.
    fn on_receive(&mut self, _packet: &mut Packet, _cx: &mut Cx<'_>) -> bool {
        true
    }
    /// The sender of a flow, at this host, counts a retransmission timeout.
    fn on_timeout(&mut self, _flow: FlowId, _cx: &mut Cx<'_>) {}
    /// The last byte of a flow has arrived at this host.
    fn on_finish(&mut self, _flow: FlowId, _cx: &mut Cx<'_>) {}
    /// The sender's state of a flow, at this host, is done, or the flow was given up. Its packets in flight may still arrive and be
    /// answered.
    fn on_close(&mut self, _flow: FlowId, _cx: &mut Cx<'_>) {}
    /// A deadline that the policy armed is due. It is disarmed.
    fn on_timer(&mut self, _key: TimerKey, _cx: &mut Cx<'_>) {}
    /// What it worked out from its parameters and the workloads, each in one line, for `check`.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// What a policy can see and do while it handles an event.
pub struct Cx<'a> {
    /// The present.
    pub now: Time,
    /// This host.
    pub host: HostId,
    /// Blocks for headers.
    pub ext: &'a mut Slab<Ext>,
    /// Random numbers of this host's protocols.
    pub rng: &'a mut Rng,
    pub(crate) flows: &'a [Flow],
    pub(crate) table: &'a mut FlowTable,
    pub(crate) control: &'a mut VecDeque<Packet>,
    pub(crate) events: &'a mut VecDeque<HostEvent>,
    pub(crate) transport: &'a AnyTransport,
    pub(crate) own: &'a mut Own,
}

/// What a host keeps for its policy.
pub(crate) struct Own {
    pub(crate) meta: &'static Meta,
    /// Where the policy's counters begin among those of the system.
    pub(crate) first_counter: usize,
    pub(crate) timers: Timers,
    /// Packets of the policy's own, and their bytes.
    pub(crate) made: (u64, u64),
    /// Flows to be given up.
    pub(crate) given_up: Vec<FlowId>,
}

impl<'a> Cx<'a> {
    /// What the policy may know of a flow.
    #[inline]
    pub fn flow(&self, flow: FlowId) -> FlowView<'a> {
        FlowView { flow: &self.flows[flow.index()], knows: self.own.meta.knows }
    }
    /// What the transport shows of a flow that this host sends, if it is open.
    pub fn sample(&self, flow: FlowId) -> Option<Sample> {
        self.transport.sample(flow)
    }
    /// Whether the last byte of a flow that this host receives has arrived. Packets may still come, of bytes that were sent twice.
    pub fn has_finished(&self, flow: FlowId) -> bool {
        debug_assert_eq!(self.flows[flow.index()].dst, self.host, "senders learn of the end of a flow by its ACKs");
        self.table.get(flow).finish != Time::MAX
    }
    /// Gives up a flow that this host sends, as soon as the event in hand is done. Nothing happens if it is not open.
    pub fn terminate(&mut self, flow: FlowId) {
        self.own.given_up.push(flow);
    }
    /// Sets the deadline of one of the policy's timers of `flow`; an earlier setting is replaced. A deadline that has passed is due now.
    pub fn arm(&mut self, flow: FlowId, kind: u8, at: Time) {
        self.own.timers.arm(TimerKey { kind, flow }, at.max(self.now));
    }
    /// Takes the deadline of one of the policy's timers away.
    pub fn disarm(&mut self, flow: FlowId, kind: u8) {
        self.own.timers.disarm(TimerKey { kind, flow });
    }
    /// Whether one of the policy's timers of `flow` is armed.
    pub fn is_armed(&self, flow: FlowId, kind: u8) -> bool {
        self.own.timers.is_armed(TimerKey { kind, flow })
    }
    /// Sets the deadline of a timer of the policy at this host, which belongs to no flow. It comes back under [`FlowId::HOST`].
    pub fn arm_host(&mut self, kind: u8, at: Time) {
        self.arm(FlowId::HOST, kind, at);
    }
    /// Takes the deadline of a timer of the policy at this host away.
    pub fn disarm_host(&mut self, kind: u8) {
        self.disarm(FlowId::HOST, kind);
    }
    /// Forgets all timers of a flow.
    pub fn forget(&mut self, flow: FlowId) {
        self.own.timers.forget(flow);
    }
    /// Sends a packet of the policy's own before all data: to the other end of its flow.
    pub fn control(&mut self, packet: Packet) {
        self.own.made.0 += 1;
        self.own.made.1 += u64::from(packet.wire_len);
        self.control.push_back(packet);
    }
    /// How many paths what this host sends of `flow` may take: a packet asks for one of them by its [`Packet::path_tag`]. One for a policy
    /// whose `META` does not ask for many.
    pub fn paths(&self, flow: FlowId) -> u16 {
        self.table.paths(flow, self.flows[flow.index()].src != self.host)
    }
    /// Asks that what this host sends of `flow` take another path as soon as the event in hand is done. While that path is known to be
    /// dead the flow takes the router's. For a policy whose `META` asks for many paths.
    pub fn ask_path(&mut self, flow: FlowId, path: Path) {
        self.events.push_back(HostEvent::Path(flow, path));
        self.table.note_news();
    }
    /// The ports between switches that the paths of a flow that this host sends leave through, for a policy whose [`Meta::knows`] has `paths`.
    /// A packet of the router's own kinds that names a path by its [`Packet::path_tag`] is offered to the router at each switch on it.
    pub fn hops(&self, flow: FlowId) -> Option<Arc<Hops>> {
        debug_assert!(
            self.own.meta.knows.contains(&"paths"),
            "the policy must not know paths: its META has no `paths` under `knows`"
        );
        self.table.hops(flow).filter(|_| self.flows[flow.index()].src == self.host).cloned()
    }
    /// Adds `n` to the counter of `flow` that has this place in the policy's [`Meta::counters`].
    pub fn count(&mut self, flow: FlowId, counter: usize, n: u64) {
        self.table.count(flow, self.own.first_counter + counter, n);
    }
}

/// A flow as a policy sees it.
#[derive(Clone, Copy)]
pub struct FlowView<'a> {
    flow: &'a Flow,
    knows: &'static [&'static str],
}

impl FlowView<'_> {
    /// Its row in the flow table.
    pub fn id(&self) -> FlowId {
        self.flow.id
    }
    /// Sending host.
    pub fn src(&self) -> HostId {
        self.flow.src
    }
    /// Receiving host.
    pub fn dst(&self) -> HostId {
        self.flow.dst
    }
    /// When the application opened it.
    pub fn start(&self) -> Time {
        self.flow.start
    }
    /// Application bytes, for a policy whose [`Meta::knows`] has `size`.
    pub fn size_bytes(&self) -> u64 {
        debug_assert!(self.knows.contains(&"size"), "the policy must not know sizes: its META has no `size` under `knows`");
        self.flow.size_bytes
    }
    /// When it should have finished, for a policy whose [`Meta::knows`] has `deadline`.
    pub fn deadline(&self) -> Option<Time> {
        debug_assert!(
            self.knows.contains(&"deadline"),
            "the policy must not know deadlines: its META has no `deadline` under `knows`"
        );
        self.flow.deadline
    }
}

#[cfg(test)]
mod tests;

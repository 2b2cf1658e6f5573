//! Room: policies. One state machine per host sits between its transport and its NIC: it sees every
//! outgoing and incoming packet, and may set the packet's class, rank and marks.
//!
//! [`Policy::on_send`] is called for every packet that the NIC takes, ACKs and the policy's own
//! packets included; [`Policy::on_receive`] is called before the transport sees a packet. A policy
//! also receives timeouts and both ends of flows, has timers, may send its own packets and may give
//! up flows.
//!
//! The header of a policy is a block of the extension slab ([`Packet::set_tag`],
//! [`Packet::get_tag`], [`Packet::put_tag`]), since transports may use a packet's whole own header.
//! The handle takes the place of the rank: a policy either carries a header or ranks packets, and
//! does neither with a transport that ranks. Its own kinds of packets begin at
//! [`Kind::POLICY`](crate::Kind::POLICY).

use crate::contract::{Env, Transport as _};
use crate::flow::{Flow, Sample};
use crate::hops::Hops;
use crate::host::{FlowTable, HostEvent, Path};
use crate::packet::{Ext, Packet};
use crate::transport::AnyTransport;
use base::registry::Meta;
use base::{FlowId, HostId, Rng, Slab, Time, TimerKey, Timers};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

pub mod aemon;
pub mod dard;
pub mod edf_sjf;
pub mod karuna;
pub mod path_spray;
pub mod pias;
pub mod plugin;
pub mod stam;

base::registry! {
    room AnyPolicy: Policy, env Env<'_>;
    named "policy", "policies", "policy": "the class, rank and marks of packets that hosts send";
    entries { aemon: Aemon, dard: Dard, edf_sjf: EdfSjf, karuna: Karuna, path_spray: PathSpray, pias: Pias, plugin: Plugin, stam: Stam }
    methods {
        fn on_open(&mut self, flow: FlowId, cx: &mut Cx<'_>);
        fn on_send(&mut self, packet: &mut Packet, cx: &mut Cx<'_>);
        fn urgency(&self, flow: FlowId, bytes: Range<u64>, cx: &Cx<'_>) -> Urgency;
        fn on_receive(&mut self, packet: &mut Packet, cx: &mut Cx<'_>) -> bool;
        fn on_timeout(&mut self, flow: FlowId, cx: &mut Cx<'_>);
        fn on_finish(&mut self, flow: FlowId, cx: &mut Cx<'_>);
        fn on_close(&mut self, flow: FlowId, cx: &mut Cx<'_>);
        fn on_timer(&mut self, key: TimerKey, cx: &mut Cx<'_>);
        fn notes(&self) -> Vec<String>;
    }
}

/// The class and the rank of a packet; less is more urgent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Urgency {
    /// Class.
    pub prio: u8,
    /// Rank within the class.
    pub rank: u32,
}

impl Urgency {
    /// Returns a class without ranks.
    pub fn class(prio: u8) -> Urgency {
        Urgency { prio, rank: 0 }
    }
}

/// A policy: the state machine of one host.
pub trait Policy {
    /// Called when the application opens a flow at this host, before the transport opens it.
    fn on_open(&mut self, _flow: FlowId, _cx: &mut Cx<'_>) {}
    /// Called when the NIC takes a packet of this host. The policy may set its class, its rank, a
    /// header of its own and [`Packet::ECT`], and may lengthen it.
    fn on_send(&mut self, packet: &mut Packet, cx: &mut Cx<'_>);
    /// Returns the class and rank of a packet with these bytes of a flow if the NIC took it now.
    /// Among flows that take turns, a host sends the packet with the least first.
    fn urgency(&self, _flow: FlowId, _bytes: Range<u64>, _cx: &Cx<'_>) -> Urgency {
        Urgency::default()
    }
    /// Called when a packet reaches this host. Returns `false` for the policy's own packets, which
    /// the transport never sees.
    fn on_receive(&mut self, _packet: &mut Packet, _cx: &mut Cx<'_>) -> bool {
        true
    }
    /// Called when the sender of a flow, at this host, counts a retransmission timeout.
    fn on_timeout(&mut self, _flow: FlowId, _cx: &mut Cx<'_>) {}
    /// Called when the last byte of a flow has arrived at this host.
    fn on_finish(&mut self, _flow: FlowId, _cx: &mut Cx<'_>) {}
    /// Called when the sender's state of a flow, at this host, is closed or the flow was given up.
    /// Its packets in flight may still arrive and be answered.
    fn on_close(&mut self, _flow: FlowId, _cx: &mut Cx<'_>) {}
    /// Called when a deadline that the policy armed is due. The deadline is disarmed before the
    /// call.
    fn on_timer(&mut self, _key: TimerKey, _cx: &mut Cx<'_>) {}
    /// Returns the values computed from parameters and workloads, each in one line, for `check`.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The context of a policy while it handles an event: what it can see and do.
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

/// The host's state for its policy.
pub(crate) struct Own {
    pub(crate) meta: &'static Meta,
    /// Index of the policy's first counter among those of the system.
    pub(crate) first_counter: usize,
    pub(crate) timers: Timers,
    /// Number of the policy's own packets, and their bytes.
    pub(crate) made: (u64, u64),
    /// Flows that the policy gives up.
    pub(crate) given_up: Vec<FlowId>,
}

impl<'a> Cx<'a> {
    /// Returns the view of a flow with the fields that the policy may know.
    #[inline]
    pub fn flow(&self, flow: FlowId) -> FlowView<'a> {
        FlowView { flow: &self.flows[flow.index()], knows: self.own.meta.knows }
    }
    /// Returns the transport's sample of a flow that this host sends, if it is open.
    pub fn sample(&self, flow: FlowId) -> Option<Sample> {
        self.transport.sample(flow)
    }
    /// Returns whether the last byte of a flow that this host receives has arrived. Retransmitted
    /// packets may still come.
    pub fn has_finished(&self, flow: FlowId) -> bool {
        debug_assert_eq!(self.flows[flow.index()].dst, self.host, "senders learn of the end of a flow by its ACKs");
        self.table.get(flow).finish != Time::MAX
    }
    /// Gives up a flow that this host sends, after the current event. Has no effect if the flow is
    /// not open.
    pub fn terminate(&mut self, flow: FlowId) {
        self.own.given_up.push(flow);
    }
    /// Sets the deadline of one of the policy's timers of `flow`; an earlier setting is replaced. A
    /// deadline in the past is due now.
    pub fn arm(&mut self, flow: FlowId, kind: u8, at: Time) {
        self.own.timers.arm(TimerKey { kind, flow }, at.max(self.now));
    }
    /// Clears the deadline of one of the policy's timers of `flow`.
    pub fn disarm(&mut self, flow: FlowId, kind: u8) {
        self.own.timers.disarm(TimerKey { kind, flow });
    }
    /// Returns whether one of the policy's timers of `flow` is armed.
    pub fn is_armed(&self, flow: FlowId, kind: u8) -> bool {
        self.own.timers.is_armed(TimerKey { kind, flow })
    }
    /// Sets the deadline of a timer of the policy at this host, which belongs to no flow. It is
    /// reported under [`FlowId::HOST`].
    pub fn arm_host(&mut self, kind: u8, at: Time) {
        self.arm(FlowId::HOST, kind, at);
    }
    /// Clears the deadline of a timer of the policy at this host.
    pub fn disarm_host(&mut self, kind: u8) {
        self.disarm(FlowId::HOST, kind);
    }
    /// Forgets all timers of a flow.
    pub fn forget(&mut self, flow: FlowId) {
        self.own.timers.forget(flow);
    }
    /// Sends one of the policy's own packets to the other end of its flow, before all data.
    pub fn control(&mut self, packet: Packet) {
        self.own.made.0 += 1;
        self.own.made.1 += u64::from(packet.wire_len);
        self.control.push_back(packet);
    }
    /// Returns the number of paths for the packets that this host sends of `flow`; a packet
    /// requests a path by its [`Packet::path_tag`]. Returns 1 for a policy whose `META` does not
    /// set `many_paths`.
    pub fn paths(&self, flow: FlowId) -> u16 {
        self.table.paths(flow, self.flows[flow.index()].src != self.host)
    }
    /// Requests another path for the packets that this host sends of `flow`, after the current
    /// event. While that path is known to be dead, the flow takes the router's path. For a policy
    /// whose `META` sets `many_paths`.
    pub fn ask_path(&mut self, flow: FlowId, path: Path) {
        self.events.push_back(HostEvent::Path(flow, path));
        self.table.note_change();
    }
    /// Returns the ports between switches that the paths of a flow that this host sends use, for a
    /// policy whose [`Meta::knows`] has `paths`. A packet of the router's own kinds that names a
    /// path by its [`Packet::path_tag`] is offered to the router at each switch on the path.
    pub fn hops(&self, flow: FlowId) -> Option<Arc<Hops>> {
        debug_assert!(
            self.own.meta.knows.contains(&"paths"),
            "the policy must not know paths: its META has no `paths` under `knows`"
        );
        self.table.hops(flow).filter(|_| self.flows[flow.index()].src == self.host).cloned()
    }
    /// Adds `n` to the counter of `flow` with this index in the policy's [`Meta::counters`].
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
    /// Returns its row in the flow table.
    pub fn id(&self) -> FlowId {
        self.flow.id
    }
    /// Returns the sending host.
    pub fn src(&self) -> HostId {
        self.flow.src
    }
    /// Returns the receiving host.
    pub fn dst(&self) -> HostId {
        self.flow.dst
    }
    /// Returns when the application opened it.
    pub fn start(&self) -> Time {
        self.flow.start
    }
    /// Returns the application bytes, for a policy whose [`Meta::knows`] has `size`.
    pub fn size_bytes(&self) -> u64 {
        debug_assert!(self.knows.contains(&"size"), "the policy must not know sizes: its META has no `size` under `knows`");
        self.flow.size_bytes
    }
    /// Returns when it should have finished, for a policy whose [`Meta::knows`] has `deadline`.
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

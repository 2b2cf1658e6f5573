//! pFabric hosts.

use super::{Cx, Env, Transport};
use crate::flow::Sample;
use crate::packet::{Kind, Packet};
use base::params::{Auto, Problem};
use base::registry::{Meta, Needs};
use base::{Dur, FlowId, TimerKey};

/// What `list` and `check` know of it.
pub const META: Meta = Meta {
    summary: "pFabric: line-rate start, remaining size as priority, probe mode after repeated timeouts",
    source: "Alizadeh et al., SIGCOMM 2013",
    needs: Needs { qdisc: &["pfabric"], ..Needs::NONE },
};

base::choice! {
    /// What a packet's priority number is.
    pub enum Priority {
        /// Bytes not yet acknowledged when it is sent.
        Remaining = "remaining",
        /// Total size of its flow.
        Size = "size",
        /// Bytes sent before it.
        Sent = "sent",
    }
}

base::params! {
    /// Parameters of pFabric's hosts.
    pub struct Params {
        /// Initial window in packets; `auto`: one bandwidth-delay product of the longest path.
        init_cwnd: Auto<u32> = "auto", "one BDP";
        /// Largest window in packets; `auto`: one less than the switch queue, at least the initial window.
        max_cwnd: Auto<u32> = "auto", "authors' ns-2 scripts: queue - 1";
        /// Retransmission timeout, fixed and never backed off; `auto`: three unloaded round trips of the longest path.
        rto: Auto<Dur> = "auto", "authors' ns-2 scripts: 45 us at 14.6 us";
        /// Consecutive timeouts before probe mode; 0: never.
        probe_after: u32 = "5", "authors' ns-2 scripts";
        /// What a packet's priority number is.
        priority: Priority = "remaining", "section 4.1";
        /// Open every connection with a SYN and a SYNACK.
        handshake: bool = "false", "both public sources start on warm connections";
    }
}

/// Problems that show only against the network.
pub fn check(_params: &Params, _env: &Env) -> Vec<Problem> {
    Vec::new()
}

/// The machine of one host.
pub struct Pfabric;

impl Pfabric {
    /// A host without flows.
    pub fn new(_params: &Params, _env: &Env) -> Self {
        Pfabric
    }
}

impl Transport for Pfabric {
    fn on_flow(&mut self, _flow: FlowId, _cx: &mut Cx<'_>) {
        todo!()
    }
    fn on_packet(&mut self, _packet: &Packet, _cx: &mut Cx<'_>) {
        todo!()
    }
    fn on_timer(&mut self, _key: TimerKey, _cx: &mut Cx<'_>) {
        todo!()
    }
    fn poll_transmit(&mut self, _cx: &mut Cx<'_>) -> Option<Packet> {
        todo!()
    }
    fn sample(&self, _flow: FlowId) -> Option<Sample> {
        None
    }
    fn kind_name(&self, _kind: Kind) -> Option<&'static str> {
        None
    }
}

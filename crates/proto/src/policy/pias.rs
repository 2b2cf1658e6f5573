//! PIAS: a flow starts in the first class and moves down one class at each threshold of bytes sent,
//! so that short flows go first although no size is known.
//!
//! Source: W. Bai et al., "Information-Agnostic Flow Scheduling for Commodity Data Centers", NSDI 2015, section 4; the authors' ns-2
//! scripts, where the thresholds come from, and their host module, where counting and aging come from.
//!
//! Model: sizes are not known. The classes have an effect only if ports serve them in strict order
//! (`strict`); the authors have eight, and DCTCP with one marking threshold per port: 65 packets at
//! 10 Gb/s, the default if the scenario does not set one.
//!
//! Assumed:
//! - The class of a packet is that of its first byte: one more for each threshold that the bytes before it have
//!   reached. A threshold of 30 packets leaves 30 packets in the first class. With `count = "sent"` it is that of the
//!   last byte that counts, as in the host module, where a packet counts if it ends beyond all packets before it.
//! - Packets without payload are in the first class, for all flows and in both directions.
//! - `auto` computes one threshold less than the switches have classes, for the sizes and the load
//!   that the workloads offer: the thresholds with the least mean FCT if the levels are M/G/1
//!   queues with processor sharing, in which the first `i` of `N` levels have the load `1 - (1 -
//!   load)^(i/N)`. The objective, which `check` prints, is the sum over the levels of `(rho(i) -
//!   rho(i-1)) / (1 - rho(i))`, divided by the load (`kit/traffic`). Loads of workloads add up, at
//!   most to 0.95, and their sizes are mixed by rates of flows. `auto` is the default, since it
//!   works for every size distribution, and the authors' thresholds have a larger objective for
//!   their own distributions.
//! - `published` takes the thresholds of the authors' scripts for web search and data mining
//!   (`kit/published`): the row nearest to the load, the upper one of two that are equally near;
//!   below 0.5 the row of 0.5, above 0.9 that of 0.9. The load is the sum over all workloads of
//!   this distribution.
//! - A workload is web search or data mining if its size distribution passes through the upper
//!   points of the published one, from 0.53 or 0.8 on, within 0.02: the tables in use differ below
//!   these points.
//! - With aging and `count = "offset"`, bytes are counted from the first one that was not acknowledged when the count went back to 0.
//! - Timeouts are consecutive if no ACK of new bytes arrives between them. The host module sees packets and not
//!   flows: it takes a retransmission after an idle time for a timeout.

use super::{Cx, Policy, Urgency};
use crate::contract::Env;
use crate::kit::demotion::{self, Count, Counted, Thresholds};
use crate::packet::Packet;
use base::params::{Auto, Param as _, Problem};
use base::registry::Meta;
use base::{FlowId, FlowMap};
use std::ops::Range;

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "PIAS: a flow moves to lower classes with the bytes it has sent; sizes are not known",
    source: "Bai et al., NSDI 2015; the authors' ns-2 scripts and host module",
    implies: &[
        ("nic.kind", "ns2"),
        ("policy.thresholds", "30pkt, 300pkt"),
        ("transport.kind", "dctcp"),
        ("qdisc.kind", "strict"),
        ("qdisc.classes", "8"),
        ("qdisc.mark", "auto"),
    ],
    classes: true,
    packets_only: "it gives packets classes",
    host: "ns-2 for the scripts: all packets wait at the NIC in a queue like those of the switches; Linux for the host module: a queue for each class",
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of PIAS.
    pub struct Params {
        /// Thresholds between the classes, rising, in full packets or in bytes of payload; `auto`:
        /// the thresholds with the least mean FCT for the workloads; `published`: those of the
        /// authors for web search and data mining at the load.
        thresholds: Auto<Thresholds> = "auto", "NSDI 2015 section 4.2; authors' ns-2 scripts: `published`";
        /// Which bytes of a flow are counted.
        count: Count = "offset", "authors' ns-2 scripts; their host module: `sent`";
        /// Whether consecutive timeouts return a flow to the first class.
        aging: bool = "false", "authors' ns-2 scripts; their host module has it";
        /// Number of consecutive timeouts after which `aging` acts.
        aging_after: u32 = "3" in 1..=100, "authors' host module";
    }
}

/// Returns the problems that depend on the network, the workloads and the other parts of the
/// system.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    demotion::problems("thresholds", &params.thresholds.show(), thresholds(params, env), 0, env)
}

/// Returns the thresholds in bytes of payload, or the reason why there are none.
fn thresholds(params: &Params, env: &Env<'_>) -> Result<Vec<u64>, String> {
    demotion::in_bytes(&params.thresholds, demotion::classes(env), &[0, 1, 2, 3, 4, 5, 6], env)
}

/// The machine of one host.
pub struct Pias {
    /// In bytes of payload, rising.
    thresholds: Vec<u64>,
    count: Count,
    /// Number of consecutive timeouts that return a flow to the first class; `None` without aging.
    aging: Option<u32>,
    /// The thresholds and their objective, for `check`.
    note: Option<String>,
    flows: FlowMap<Counted>,
}

impl Pias {
    /// Creates a host without flows.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let thresholds = thresholds(params, env).expect("checked with the scenario");
        let aging = params.aging.then_some(params.aging_after);
        let note = demotion::note("thresholds", &thresholds, env);
        Pias { thresholds, count: params.count, aging, note, flows: FlowMap::default() }
    }
    /// Returns the class of a packet with `bytes` bytes of the flow before it.
    #[inline]
    fn class(&self, bytes: u64) -> u8 {
        demotion::class(&self.thresholds, bytes)
    }
}

impl Policy for Pias {
    fn on_open(&mut self, flow: FlowId, _cx: &mut Cx<'_>) {
        self.flows.insert(flow, Counted::default());
    }
    #[inline]
    fn on_send(&mut self, packet: &mut Packet, _cx: &mut Cx<'_>) {
        packet.prio = 0;
        if packet.payload == 0 {
            return;
        }
        let Some(counted) = self.flows.get_mut(packet.flow) else { return };
        let bytes = counted.on_send(packet, self.count);
        packet.prio = self.class(bytes);
    }
    fn urgency(&self, flow: FlowId, bytes: Range<u64>, _cx: &Cx<'_>) -> Urgency {
        Urgency::class(self.flows.get(flow).map_or(0, |counted| self.class(counted.before(&bytes, self.count))))
    }
    fn on_receive(&mut self, packet: &mut Packet, _cx: &mut Cx<'_>) -> bool {
        if self.aging.is_some()
            && let Some(counted) = self.flows.get_mut(packet.flow)
        {
            counted.on_receive(packet);
        }
        true
    }
    fn on_timeout(&mut self, flow: FlowId, _cx: &mut Cx<'_>) {
        if let (Some(most), Some(counted)) = (self.aging, self.flows.get_mut(flow)) {
            counted.on_timeout(most);
        }
    }
    fn on_close(&mut self, flow: FlowId, _cx: &mut Cx<'_>) {
        self.flows.remove(flow);
    }
    fn notes(&self) -> Vec<String> {
        self.note.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests;

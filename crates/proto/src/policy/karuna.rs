//! Karuna: flows with a deadline have the first class to themselves, and their transport sends no
//! faster than they need. In the classes below, flows of known size are ordered by size, and flows
//! of unknown size move down one class at each threshold of bytes sent.
//!
//! Source: L. Chen et al., "Scheduling Mix-flows in Commodity Datacenters with Karuna", SIGCOMM 2016 (abstract); the authors' kernel module
//! (github.com/baiwei0427/PIAS, backup/mixedflow), where classes and aging come from.
//!
//! Model: the deadline of a flow is known; its size is known if the flow is of type 2. The classes
//! have an effect only if ports serve them in strict order (`strict`); the authors have eight. The
//! transport (MCP) sets the rates of flows with a deadline.
//!
//! | type | flows | class |
//! |---|---|---|
//! | 1 | with a deadline | 0, reserved for these flows |
//! | 2 | without a deadline, of known size | 1, and one more for each bound below the size |
//! | 3 | without a deadline, of unknown size | 1, and one more for each threshold that the bytes sent have reached |
//!
//! Assumed:
//! - The authors' code has no thresholds. The thresholds of type 3 are those of PIAS, computed
//!   (`auto`) or the first six published ones (`published`). The bounds of type 2 are given, or
//!   divide the bytes that the workloads offer into equal shares (`auto`).
//! - Both computations count the traffic of all workloads, flows with deadlines included.
//! - All flows without a deadline are of type 2 unless `type2_fraction` says otherwise. The type of
//!   a flow is drawn from its number only, so that it is the same in all systems and for all seeds.
//! - Timeouts are consecutive if no ACK of new bytes arrives between them. The authors' module sees
//!   packets, and requires gaps of 8 ms within five segments of the sequence space.
//! - Packets without payload are in the first class, for all flows and in both directions.
//! - With aging and `count = "offset"`, bytes are counted from the first one that was not acknowledged when the count went back to 0.

use super::{Cx, Policy, Urgency};
use crate::contract::Env;
use crate::kit::demotion::{self, Count, Counted, Limits, Thresholds};
use crate::kit::traffic::Traffic;
use crate::packet::Packet;
use base::params::{Auto, Param as _, Problem};
use base::registry::Meta;
use base::{FlowId, FlowMap, Fraction, Rng};
use std::ops::Range;

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "Karuna: flows with deadlines have the first class, the others are below by size or bytes sent",
    source: "Chen et al., SIGCOMM 2016; the authors' kernel module",
    implies: &[
        ("policy.sizes", "30pkt, 300pkt"),
        ("policy.thresholds", "30pkt, 300pkt"),
        ("transport.kind", "mcp"),
        ("qdisc.kind", "strict"),
        ("qdisc.classes", "8"),
        ("qdisc.mark", "auto"),
    ],
    knows: &["size", "deadline"],
    classes: true,
    packets_only: "it gives packets classes",
    host: "Linux for the kernel module: a queue for each class",
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of Karuna.
    pub struct Params {
        /// Share of the flows without a deadline whose size is known (type 2); the others are of
        /// type 3.
        type2_fraction: Fraction = "1" in Fraction(0)..=Fraction::ONE, "flowloom: Zang et al. (2019) know all sizes";
        /// Bounds of sizes between the classes of type 2, rising, in full packets or in bytes of
        /// payload; `auto`: equal shares of bytes.
        sizes: Auto<Limits> = "auto", "flowloom: the authors' code has none";
        /// Thresholds of bytes sent between the classes of type 3, rising; `auto`: the thresholds
        /// with the least mean FCT for the workloads; `published`: the first six of PIAS.
        thresholds: Auto<Thresholds> = "auto", "as PIAS";
        /// Which bytes of a flow of type 3 are counted.
        count: Count = "offset", "as PIAS; authors' module: `sent`";
        /// Whether consecutive timeouts lift a flow of type 2 by one class and return a flow of
        /// type 3 to its first class.
        aging: bool = "true", "authors' module";
        /// Number of consecutive timeouts after which `aging` acts.
        aging_after: u32 = "3" in 1..=100, "authors' module";
    }
}

/// The first class of flows without a deadline.
const FIRST: usize = 1;

/// Returns the problems that depend on the network, the workloads and the other parts of the
/// system.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    if let Some(problem) = demotion::too_few_classes("sizes", FIRST + 1, env) {
        return vec![problem];
    }
    // A type that has no flows needs no classes.
    let mut found = Vec::new();
    if params.type2_fraction > Fraction(0) {
        found.extend(demotion::problems("sizes", &params.sizes.show(), sizes(params, env), FIRST, env));
    }
    if params.type2_fraction < Fraction::ONE {
        found.extend(demotion::problems("thresholds", &params.thresholds.show(), thresholds(params, env), FIRST, env));
    }
    found
}

/// Returns the bounds of sizes in bytes of payload, or the reason why there are none.
fn sizes(params: &Params, env: &Env<'_>) -> Result<Vec<u64>, String> {
    match &params.sizes {
        Auto::Set(list) => Ok(list.in_bytes(env)),
        Auto::Auto => {
            let sizes = Traffic::of(env.offered)?.equal_bytes(demotion::classes(env) - FIRST);
            env.note_auto("sizes", true, || Limits::of_bytes(&sizes).show());
            Ok(sizes)
        }
    }
}

/// Returns the thresholds in bytes of payload, or the reason why there are none.
fn thresholds(params: &Params, env: &Env<'_>) -> Result<Vec<u64>, String> {
    demotion::in_bytes(&params.thresholds, demotion::classes(env) - FIRST, &[0, 1, 2, 3, 4, 5], env)
}

/// The machine of one host.
pub struct Karuna {
    type2_fraction: Fraction,
    /// In bytes of payload, rising; empty if no flow is of type 2.
    sizes: Vec<u64>,
    thresholds: Vec<u64>,
    count: Count,
    /// Number of consecutive timeouts after which a flow ages; `None` without aging.
    aging: Option<u32>,
    /// The thresholds and their objective, for `check`; `None` if no flow is of type 3.
    note: Option<String>,
    /// Flows without a deadline that the host sends.
    flows: FlowMap<(Type, Counted)>,
}

/// A flow without a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    /// Of known size, in this class.
    Known(u8),
    /// Of unknown size.
    Unknown,
}

impl Karuna {
    /// Creates a host without flows.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let type2_fraction = params.type2_fraction;
        // A type that has no flows has no bounds.
        env.note_auto("sizes", params.sizes == Auto::Auto, String::new);
        env.note_auto("thresholds", params.thresholds == Auto::Auto, String::new);
        let found = |wanted: bool, found: &dyn Fn() -> Result<Vec<u64>, String>| {
            if wanted { found().expect("checked with the scenario") } else { Vec::new() }
        };
        let sizes = found(type2_fraction > Fraction(0), &|| sizes(params, env));
        let unknown = type2_fraction < Fraction::ONE;
        let thresholds = found(unknown, &|| thresholds(params, env));
        let note = unknown.then(|| demotion::note("thresholds", &thresholds, env)).flatten();
        let aging = params.aging.then_some(params.aging_after);
        Karuna { type2_fraction, sizes, thresholds, count: params.count, aging, note, flows: FlowMap::default() }
    }
    /// Returns whether the size of a flow without a deadline is known.
    fn is_known(&self, flow: FlowId) -> bool {
        Rng::stream(0, "karuna/type", &[u64::from(flow.0)]).below(Fraction::ONE.ppb()) < self.type2_fraction.ppb()
    }
    fn below(class: u8) -> u8 {
        class.saturating_add(FIRST as u8)
    }
}

impl Policy for Karuna {
    fn on_open(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        let view = cx.flow(flow);
        if view.deadline().is_some() {
            return;
        }
        let known = self.is_known(flow);
        let of = if known { Type::Known(Self::below(demotion::class_of(&self.sizes, view.size_bytes()))) } else { Type::Unknown };
        self.flows.insert(flow, (of, Counted::default()));
    }
    fn on_send(&mut self, packet: &mut Packet, _cx: &mut Cx<'_>) {
        packet.prio = 0;
        if packet.payload == 0 {
            return;
        }
        let Some((of, counted)) = self.flows.get_mut(packet.flow) else { return };
        packet.prio = match of {
            Type::Known(class) => *class,
            Type::Unknown => Self::below(demotion::class(&self.thresholds, counted.on_send(packet, self.count))),
        };
    }
    fn urgency(&self, flow: FlowId, bytes: Range<u64>, _cx: &Cx<'_>) -> Urgency {
        Urgency::class(match self.flows.get(flow) {
            None => 0,
            Some((Type::Known(class), _)) => *class,
            Some((Type::Unknown, counted)) => Self::below(demotion::class(&self.thresholds, counted.before(&bytes, self.count))),
        })
    }
    fn on_receive(&mut self, packet: &mut Packet, _cx: &mut Cx<'_>) -> bool {
        if self.aging.is_some()
            && let Some((_, counted)) = self.flows.get_mut(packet.flow)
        {
            counted.on_receive(packet);
        }
        true
    }
    fn on_timeout(&mut self, flow: FlowId, _cx: &mut Cx<'_>) {
        let (Some(most), Some((of, counted))) = (self.aging, self.flows.get_mut(flow)) else { return };
        if counted.on_timeout(most)
            && let Type::Known(class) = of
        {
            *class = (*class - 1).max(FIRST as u8);
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

//! EDF+SJF: flows with a deadline go before flows without one. The former are served earliest
//! deadline first, the latter shortest first.
//!
//! Source: C.-Y. Hong et al., "Finishing Flows Quickly with Preemptive Scheduling" (PDQ), SIGCOMM 2012, section 3.1 for the order; W. Zang
//! et al., "Slack Time and Accumulation-Based Mix-flow Scheduling in Data Center Networks", Acta Electronica Sinica 47(10), 2019,
//! section 5, for EDF+SJF over DCTCP.
//!
//! Model: deadlines and sizes are known. The policy has an effect only if ports serve packets in
//! the order of their ranks (`pifo`) or, with `order = "quantised"`, eight classes in strict order
//! (`strict`). PDQ's rates, pausing and early termination are left out.
//!
//! A packet is ordered by 40 bits: its class (8 bits), then its rank (32 bits). The smallest goes
//! first.
//!
//! | packet | bit 39 | bits 38 to 0 |
//! |---|---|---|
//! | without payload | 0 | 0 |
//! | of a flow with a deadline | 0 | the deadline, counted from the start of the run, in units of 256 ps; at least 1 |
//! | of a flow without one | 1 | the size in bytes; with `by = "remaining"`, the bytes that are not acknowledged |
//!
//! Deadlines up to 140 s and sizes up to 549 GB are ordered exactly; larger values are equal. A
//! unit of 256 ps is less than the time of one byte at 10 Gb/s.
//!
//! Assumed:
//! - Deadlines are in units of 256 ps, which is exact for runs of up to 140 s. Later deadlines are
//!   equal, and so are sizes above 549 GB.
//! - Ports break ties by flow, then by arrival.
//! - With `by = "remaining"`, later packets of a flow rank before earlier ones: ports must take the
//!   oldest packet of the best flow.
//! - With `order = "quantised"`, flows with a deadline are in classes 0 to 3 by the time that is
//!   left when the packet is sent, flows without a deadline are in classes 4 to 7 by `by`. The
//!   bounds of the times are the quartiles of deadlines that are uniform between 5 and 25 ms, as in
//!   Zang et al.; the bounds of the sizes are the quartiles of the flows that the workloads offer.
//! - A time or size equal to a bound counts as below it. After the deadline the time left is zero.

use super::{Cx, Policy, Urgency};
use crate::contract::Env;
use crate::kit::demotion::{self, Limits};
use crate::kit::traffic::Traffic;
use crate::packet::{Kind, Packet};
use base::params::{Auto, Param, Problem, Raw};
use base::registry::{Meta, Needs};
use base::{Dur, FlowId, FlowMap, Time};
use std::ops::Range;

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "EDF+SJF: earliest deadline first, then shortest flow first; knows deadlines and sizes",
    source: "Hong et al. (PDQ), SIGCOMM 2012; Zang et al., 2019",
    needs: Needs { deadlines: true, ..Needs::NONE },
    implies: &[("nic.kind", "ns2"), ("transport.kind", "dctcp"), ("qdisc.kind", "pifo"), ("qdisc.mark", "auto")],
    ranks: true,
    knows: &["size", "deadline"],
    classes: true,
    packets_only: "it gives packets ranks",
    host: "ns-2 in the comparison of STAM's paper: all packets wait at the NIC in a queue like those of the switches",
    ..Meta::PLAIN
};

base::choice! {
    /// Whether packets are ordered exactly or in classes.
    pub enum Order {
        /// By deadline and size, in full resolution.
        Exact = "exact",
        /// In eight classes.
        Quantised = "quantised",
    }
}

base::choice! {
    /// The key that orders flows without a deadline.
    pub enum By {
        /// The size of the flow.
        Size = "size",
        /// The bytes of the flow that are not acknowledged.
        Remaining = "remaining",
    }
}

base::params! {
    /// Parameters of EDF+SJF.
    pub struct Params {
        /// How packets are ordered: exactly by rank, or in eight classes.
        order: Order = "exact", "Zang et al.: the ideal order";
        /// The key that orders flows without a deadline.
        by: By = "size", "Zang et al.: shortest job first; PDQ: `remaining`";
        /// Three rising bounds of the time left, which separate the classes of flows with a
        /// deadline if `order = "quantised"`.
        times: Bounds = "10ms, 15ms, 20ms", "quartiles of the deadlines of Zang et al., uniform between 5 and 25 ms";
        /// Three rising bounds of the size, which separate the classes of flows without a deadline
        /// if `order = "quantised"`; `auto`: quartiles.
        sizes: Auto<Limits> = "auto", "flowloom: equal numbers of flows in the classes";
    }
}

/// Bounds of times as written in a scenario.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub struct Bounds(pub Vec<Dur>);

impl Param for Bounds {
    fn expects() -> String {
        "a list of times, like `10ms, 15ms, 20ms`".to_owned()
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        let wrong = || format!("is not {}", Self::expects());
        let Raw::Str(text) = raw else { return Err(wrong()) };
        text.split(',').map(base::units::parse_dur).collect::<Result<Vec<_>, _>>().map(Bounds).map_err(|_| wrong())
    }
    fn show(&self) -> String {
        self.0.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }
}

/// Number of classes of flows with a deadline; flows without one have the same number.
const QUARTERS: usize = 4;

/// Returns the problems that depend on the workloads and the other parts of the system.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    let problem = |key, message: String, hint: &str| Problem { key, message, hint: hint.to_owned() };
    let mut found = Vec::new();
    if params.order == Order::Exact {
        return found;
    }
    let times = &params.times.0;
    if times.len() != QUARTERS - 1 || !times.is_sorted_by(|a, b| a < b) {
        found.push(problem(
            "times",
            format!("`{}` is not three rising times", params.times.show()),
            "write them like `10ms, 15ms, 20ms`",
        ));
    }
    match sizes(params, env) {
        Ok(sizes) if sizes.len() == QUARTERS - 1 && sizes.is_sorted_by(|a, b| a < b) => {}
        Ok(sizes) => {
            let sizes = sizes.iter().map(|size| format!("{size}B")).collect::<Vec<_>>().join(", ");
            found.push(problem("sizes", format!("`{sizes}` is not three rising sizes"), "write them like `20KB, 100KB, 1MB`"));
        }
        Err(why) => {
            let message = format!("cannot use `auto`: {why}");
            found.push(problem("sizes", message, "write three sizes, like `20KB, 100KB, 1MB`"));
        }
    }
    found.extend(demotion::too_few_classes("order", 2 * QUARTERS, env));
    found
}

/// Returns the bounds of sizes in bytes, or the reason why there are none.
fn sizes(params: &Params, env: &Env<'_>) -> Result<Vec<u64>, String> {
    match &params.sizes {
        Auto::Set(list) => Ok(list.in_bytes(env)),
        Auto::Auto => {
            let sizes = Traffic::of(env.offered)?.equal_flows(QUARTERS);
            env.note_auto("sizes", true, || Limits::of_bytes(&sizes).show());
            Ok(sizes)
        }
    }
}

/// The machine of one host.
pub struct EdfSjf {
    by: By,
    /// Bounds of times in picoseconds and of sizes in bytes; `None` if the order is exact.
    bounds: Option<(Vec<u64>, Vec<u64>)>,
    /// All bytes below are acknowledged; for flows without a deadline.
    acked: FlowMap<u64>,
}

impl EdfSjf {
    /// Creates a host without flows.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        // An exact order has no bounds.
        env.note_auto("sizes", params.sizes == Auto::Auto, String::new);
        let bounds = (params.order == Order::Quantised).then(|| {
            let times = params.times.0.iter().map(|time| time.0).collect();
            (times, sizes(params, env).expect("checked with the scenario"))
        });
        EdfSjf { by: params.by, bounds, acked: FlowMap::default() }
    }
    /// Returns the size by which a flow without a deadline is ordered.
    fn size(&self, flow: FlowId, size_bytes: u64) -> u64 {
        let acked = match self.by {
            By::Size => 0,
            By::Remaining => self.acked.get(flow).copied().unwrap_or(0),
        };
        size_bytes.saturating_sub(acked)
    }
}

/// The largest number of 39 bits.
const MOST: u64 = (1 << 39) - 1;

/// Returns the rank of a flow with this deadline.
fn by_deadline(deadline: Time) -> u64 {
    (deadline.0 >> 8).clamp(1, MOST)
}

/// Returns the rank of a flow without a deadline.
fn by_size(bytes: u64) -> u64 {
    (MOST + 1) | bytes.min(MOST)
}

impl Policy for EdfSjf {
    fn on_open(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        if self.by == By::Remaining && cx.flow(flow).deadline().is_none() {
            self.acked.insert(flow, 0);
        }
    }
    fn on_send(&mut self, packet: &mut Packet, cx: &mut Cx<'_>) {
        let Urgency { prio, rank } =
            if packet.payload == 0 { Urgency::default() } else { self.urgency(packet.flow, packet.bytes(), cx) };
        (packet.prio, packet.rank) = (prio, rank);
    }
    fn urgency(&self, id: FlowId, _bytes: Range<u64>, cx: &Cx<'_>) -> Urgency {
        let flow = cx.flow(id);
        let deadline = flow.deadline();
        if let Some((times, sizes)) = &self.bounds {
            return Urgency::class(match deadline {
                Some(deadline) => demotion::class_of(times, deadline.0.saturating_sub(cx.now.0)),
                None => QUARTERS as u8 + demotion::class_of(sizes, self.size(id, flow.size_bytes())),
            });
        }
        let rank = deadline.map_or_else(|| by_size(self.size(id, flow.size_bytes())), by_deadline);
        Urgency { prio: (rank >> 32) as u8, rank: rank as u32 }
    }
    fn on_receive(&mut self, packet: &mut Packet, _cx: &mut Cx<'_>) -> bool {
        if packet.kind == Kind::ACK
            && let Some(acked) = self.acked.get_mut(packet.flow)
        {
            *acked = packet.offset.max(*acked);
        }
        true
    }
    fn on_close(&mut self, flow: FlowId, _cx: &mut Cx<'_>) {
        self.acked.remove(flow);
    }
}

#[cfg(test)]
mod tests;

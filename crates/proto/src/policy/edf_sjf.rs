//! EDF+SJF: flows with a deadline before those without, the earliest deadline first; then flows without one, the shortest first.
//!
//! Source: C.-Y. Hong et al., "Finishing Flows Quickly with Preemptive Scheduling" (PDQ), SIGCOMM 2012, section 3.1 for the order; W. Zang
//! et al., "Slack Time and Accumulation-Based Mix-flow Scheduling in Data Center Networks", Acta Electronica Sinica 47(10), 2019,
//! section 5, for EDF+SJF over DCTCP.
//!
//! Model: deadlines and sizes are known. Ports must serve packets in the order of their ranks (`pifo`), or with `order = "quantised"` eight
//! classes in strict order (`strict`), for any effect. Rates, pausing and early termination of PDQ are not part of this.
//!
//! The rank of a packet has 40 bits: its class, then the 32 bits of its rank. The smallest goes first.
//!
//! | packet | bit 39 | bits 38 to 0 |
//! |---|---|---|
//! | without payload | 0 | 0 |
//! | of a flow with a deadline | 0 | the deadline, counted from the start of the run, in units of 256 ps; at least 1 |
//! | of a flow without one | 1 | the size in bytes; with `by = "remaining"`, the bytes that are not acknowledged |
//!
//! Deadlines up to 140 s and sizes up to 549 GB are in exact order; all above are alike. A unit is less than the time of one byte at 10 Gb/s.
//!
//! Assumed:
//! - Deadlines are in units of 256 ps, which is exact for runs of up to 140 s; later ones are alike, and so are sizes above 549 GB.
//! - Ports break ties by flow, then by arrival.
//! - With `by = "remaining"` later packets of a flow rank before earlier ones: ports must take the oldest packet of the best flow.
//! - With `order = "quantised"` flows with a deadline are in classes 0 to 3 by the time that is left when the packet is sent, those without in
//!   classes 4 to 7 by `by`. The bounds of times are the quartiles of deadlines that are uniform between 5 and 25 ms, as in Zang et al.; those
//!   of sizes are the quartiles of the flows that the workloads offer.
//! - A time or size that equals a bound is below it. A deadline that has passed leaves no time.

use super::{Cx, Policy};
use crate::contract::Env;
use crate::kit::demotion::{self, Limits};
use crate::kit::traffic::Traffic;
use crate::packet::{Kind, Packet};
use base::params::{Auto, Param, Problem, Raw};
use base::registry::{Meta, Needs};
use base::{Dur, FlowId, FlowMap, Time};

/// What `list` and `check` know of it.
pub const META: Meta = Meta {
    summary: "EDF+SJF: earliest deadline first, then shortest flow first; deadlines and sizes are known",
    source: "Hong et al. (PDQ), SIGCOMM 2012; Zang et al., 2019",
    needs: Needs { deadlines: true, ..Needs::NONE },
    implies: &[("transport.kind", "dctcp"), ("qdisc.kind", "pifo"), ("qdisc.mark", "auto")],
    ranks: true,
    knows: &["size", "deadline"],
    packets_only: "it gives packets ranks",
    ..Meta::PLAIN
};

base::choice! {
    /// How exactly packets are ordered.
    pub enum Order {
        /// By deadline and size, to the unit.
        Exact = "exact",
        /// In eight classes.
        Quantised = "quantised",
    }
}

base::choice! {
    /// What orders flows without a deadline.
    pub enum By {
        /// Their size.
        Size = "size",
        /// What of it is not acknowledged.
        Remaining = "remaining",
    }
}

base::params! {
    /// Parameters of EDF+SJF.
    pub struct Params {
        /// How exactly packets are ordered: by rank, or in eight classes.
        order: Order = "exact", "Zang et al.: the ideal order";
        /// What orders flows without a deadline.
        by: By = "size", "Zang et al.: shortest job first; PDQ: `remaining`";
        /// Bounds of the time left, three and rising, that part flows with a deadline into classes with `order = "quantised"`.
        times: Bounds = "10ms, 15ms, 20ms", "quartiles of the deadlines of Zang et al., uniform between 5 and 25 ms";
        /// Bounds of the size, three and rising, that part flows without a deadline into classes with `order = "quantised"`; `auto`: quartiles.
        sizes: Auto<Limits> = "auto", "flowloom: as many flows in each class";
    }
}

/// Bounds of times as written.
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

/// Classes of flows with a deadline, and as many of flows without one.
const QUARTERS: usize = 4;

/// Problems that show only against the workloads and the other parts of the system.
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
            let message = format!("`auto` has no quartiles here: {why}");
            found.push(problem("sizes", message, "write three sizes, like `20KB, 100KB, 1MB`"));
        }
    }
    found.extend(demotion::too_few_classes("order", 2 * QUARTERS, env));
    found
}

/// Bounds of sizes in bytes; or why there are none.
fn sizes(params: &Params, env: &Env<'_>) -> Result<Vec<u64>, String> {
    match &params.sizes {
        Auto::Set(list) => Ok(list.in_bytes(env)),
        Auto::Auto => Ok(Traffic::of(env.offered)?.equal_flows(QUARTERS)),
    }
}

/// The machine of one host.
pub struct EdfSjf {
    by: By,
    /// Bounds of times, in picoseconds, and of sizes, in bytes; `None`: the order is exact.
    bounds: Option<(Vec<u64>, Vec<u64>)>,
    /// All bytes below are acknowledged; of flows without a deadline.
    acked: FlowMap<u64>,
}

impl EdfSjf {
    /// A host without flows.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let bounds = (params.order == Order::Quantised).then(|| {
            let times = params.times.0.iter().map(|time| time.0).collect();
            (times, sizes(params, env).expect("checked with the scenario"))
        });
        EdfSjf { by: params.by, bounds, acked: FlowMap::default() }
    }
    /// What stands for the size of a flow.
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

/// The rank of a flow with this deadline.
fn by_deadline(deadline: Time) -> u64 {
    (deadline.0 >> 8).clamp(1, MOST)
}

/// The rank of a flow without a deadline.
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
        (packet.prio, packet.rank) = (0, 0);
        if packet.payload == 0 {
            return;
        }
        let flow = cx.flow(packet.flow);
        let deadline = flow.deadline();
        if let Some((times, sizes)) = &self.bounds {
            packet.prio = match deadline {
                Some(deadline) => demotion::class(times, deadline.0.saturating_sub(cx.now.0)),
                None => QUARTERS as u8 + demotion::class(sizes, self.size(packet.flow, flow.size_bytes())),
            };
            return;
        }
        let rank = deadline.map_or_else(|| by_size(self.size(packet.flow, flow.size_bytes())), by_deadline);
        (packet.prio, packet.rank) = ((rank >> 32) as u8, rank as u32);
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

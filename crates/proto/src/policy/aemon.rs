//! Aemon: two-level priorities without knowledge of sizes. A flow without a deadline moves to lower
//! levels as it sends bytes; a flow with a deadline moves to higher levels as it becomes urgent.
//! Within a level, flows without a deadline go first.
//!
//! Source: T. Wang et al., "Aemon: Information-agnostic Mix-flow Scheduling in Data Center Networks", APNet 2017 (abstract); W. Zang et al.,
//! "Slack Time and Accumulation-Based Mix-flow Scheduling in Data Center Networks", Acta Electronica Sinica 47(10), 2019, section 5.
//!
//! Model: the deadline of a flow is known, its size is not. The classes have an effect only if
//! ports serve them in strict order (`strict`); each level takes two classes. The transport sets
//! the rates of flows.
//!
//! Urgency is the time since the start of the flow divided by the time left to its deadline. Of `L`
//! levels, level 0 is the highest:
//!
//! | flow | level | class |
//! |---|---|---|
//! | without a deadline | one more for each threshold that the bytes before the packet have reached | `2 level` |
//! | with a deadline | `L - 1` at the start, one less with each `1/L` of its time: where the urgency is `k / (L - k)`, k = 1, 2, ... | `2 level + 1` |
//!
//! Assumed:
//! - The paper's number of levels, thresholds and steps of urgency are not known. With four levels,
//!   urgency steps at 1/3, 1 and 3.
//! - The thresholds are those of PIAS for the same number of levels, computed (`auto`). Of the
//!   published thresholds (`published`), four levels use every second one and eight levels use all.
//! - The class of a packet is that of its first byte, as in PIAS: a retransmission keeps its class.
//! - After its deadline a flow stays in level 0.
//! - Packets without payload are in the first class, for all flows and in both directions.

use super::{Cx, Policy, Urgency};
use crate::contract::Env;
use crate::kit::demotion::{self, Thresholds};
use crate::packet::Packet;
use base::params::{Auto, Param as _, Problem};
use base::registry::{Meta, Needs};
use base::{Dur, FlowId, Time};
use std::ops::Range;

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "Aemon: priority drops with bytes sent and rises with urgency; knows deadlines, not sizes",
    source: "Wang et al., APNet 2017; Zang et al., 2019",
    needs: Needs { deadlines: true, ..Needs::NONE },
    implies: &[
        ("nic.kind", "ns2"),
        ("policy.thresholds", "30pkt, 100pkt, 300pkt"),
        ("transport.kind", "aemon"),
        ("qdisc.kind", "strict"),
        ("qdisc.classes", "8"),
        ("qdisc.mark", "auto"),
    ],
    knows: &["deadline"],
    classes: true,
    packets_only: "it gives packets classes",
    host: "ns-2 in the comparison of STAM's paper: all packets wait at the NIC in a queue like those of the switches",
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of Aemon.
    pub struct Params {
        /// Number of levels; each takes two classes.
        levels: u32 = "4" in 1..=32, "flowloom: eight classes";
        /// Thresholds of bytes sent between the levels, rising, in full packets or in bytes of
        /// payload; `auto`: the thresholds with the least mean FCT for the workloads; `published`:
        /// those of PIAS.
        thresholds: Auto<Thresholds> = "auto", "as PIAS";
    }
}

/// Returns the problems that depend on the network, the workloads and the other parts of the
/// system.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    let problem = |message: String, hint: String| Problem { key: "thresholds", message, hint };
    let found = match thresholds(params, env) {
        Ok(list) if list.len() + 1 != params.levels as usize => {
            let message = format!("{} thresholds do not fit {} levels", list.len(), params.levels);
            vec![problem(message, format!("write {} thresholds, or change `levels`", params.levels - 1))]
        }
        // Each level takes two classes; `too_few_classes` counts them below.
        found => demotion::problems("thresholds", &params.thresholds.show(), found, 0, env),
    };
    let classes = demotion::too_few_classes("levels", 2 * params.levels as usize, env);
    classes.map_or(found, |problem| vec![problem])
}

/// Returns the thresholds in bytes of payload, or the reason why there are none.
fn thresholds(params: &Params, env: &Env<'_>) -> Result<Vec<u64>, String> {
    let published: &[usize] = match params.levels {
        8 => &[0, 1, 2, 3, 4, 5, 6],
        4 => &[1, 3, 5],
        levels if params.thresholds == Auto::Set(Thresholds::Published) => {
            return Err(format!("published thresholds exist for 4 and 8 levels, not for {levels}"));
        }
        _ => &[],
    };
    demotion::in_bytes(&params.thresholds, params.levels as usize, published, env)
}

/// The machine of one host. It keeps no state per flow.
pub struct Aemon {
    levels: u8,
    /// In bytes of payload, rising.
    thresholds: Vec<u64>,
    /// The thresholds and their objective, for `check`.
    note: Option<String>,
}

impl Aemon {
    /// Creates a host without flows.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let thresholds = thresholds(params, env).expect("checked with the scenario");
        let note = demotion::note("thresholds", &thresholds, env);
        Aemon { levels: params.levels as u8, thresholds, note }
    }
    /// Returns the level of a flow with a deadline.
    fn urgent(&self, start: Time, deadline: Time, now: Time) -> u8 {
        let (whole, gone): (Dur, Dur) = (deadline.since(start), now.since(start));
        // The urgency is gone / (whole - gone), which reaches k / (L - k) as L gone / whole reaches k.
        let steps = (u128::from(self.levels) * u128::from(gone.0)).checked_div(u128::from(whole.0));
        let steps = steps.map_or(self.levels, |steps| steps.min(u128::from(self.levels)) as u8);
        (self.levels - 1).saturating_sub(steps)
    }
}

impl Policy for Aemon {
    fn on_send(&mut self, packet: &mut Packet, cx: &mut Cx<'_>) {
        packet.prio = if packet.payload == 0 { 0 } else { self.urgency(packet.flow, packet.bytes(), cx).prio };
    }
    fn urgency(&self, flow: FlowId, bytes: Range<u64>, cx: &Cx<'_>) -> Urgency {
        let flow = cx.flow(flow);
        Urgency::class(match flow.deadline() {
            Some(deadline) => 2 * self.urgent(flow.start(), deadline, cx.now) + 1,
            None => 2 * demotion::class(&self.thresholds, bytes.start),
        })
    }
    fn notes(&self) -> Vec<String> {
        self.note.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests;

//! Aemon: two-level priority without any size. A flow without a deadline goes down with the bytes that it has sent, a flow with one rises
//! with its urgency, and within a level flows without a deadline go first.
//!
//! Source: T. Wang et al., "Aemon: Information-agnostic Mix-flow Scheduling in Data Center Networks", APNet 2017 (abstract); W. Zang et al.,
//! "Slack Time and Accumulation-Based Mix-flow Scheduling in Data Center Networks", Acta Electronica Sinica 47(10), 2019, section 5.
//!
//! Model: of a flow its deadline is known, and no size. Ports must serve classes in strict order (`strict`) for the classes to have any
//! effect: two for each level. The rates of flows are their transport's.
//!
//! Urgency is the time since the start of the flow over the time left to its deadline. Of `L` levels, level 0 is the highest:
//!
//! | flow | level | class |
//! |---|---|---|
//! | without a deadline | one more for each threshold below the bytes before the packet | `2 level` |
//! | with one | `L - 1` at the start, one less with each `1/L` of its time: where the urgency is `k / (L - k)`, k = 1, 2, ... | `2 level + 1` |
//!
//! Assumed:
//! - The number of levels, the thresholds and the steps of urgency are not known. With four levels urgency steps at 1/3, 1 and 3.
//! - Thresholds are PIAS's between as many levels, computed (`auto`); of the published ones (`published`) every second with four levels, and all
//!   with eight.
//! - The class of a packet is that of its first byte, as in PIAS: what is sent again keeps it.
//! - After its deadline a flow stays in level 0.
//! - Packets without payload are in the first class, whoever sends them.

use super::{Cx, Policy};
use crate::contract::Env;
use crate::kit::demotion::{self, Thresholds};
use crate::packet::Packet;
use base::params::{Auto, Param as _, Problem};
use base::registry::{Meta, Needs};
use base::{Dur, Time};

/// What `list` and `check` know of it.
pub const META: Meta = Meta {
    summary: "Aemon: levels fall with bytes sent and rise with urgency; deadlines are known, sizes are not",
    source: "Wang et al., APNet 2017; Zang et al., 2019",
    needs: Needs { deadlines: true, ..Needs::NONE },
    implies: &[
        ("policy.thresholds", "30pkt, 100pkt, 300pkt"),
        ("transport.kind", "aemon"),
        ("qdisc.kind", "strict"),
        ("qdisc.classes", "8"),
        ("qdisc.mark", "auto"),
    ],
    knows: &["deadline"],
    packets_only: "it gives packets classes",
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of Aemon.
    pub struct Params {
        /// Levels, each of two classes.
        levels: u32 = "4" in 1..=32, "flowloom: eight classes";
        /// Thresholds of bytes sent between the levels, rising, in full packets or in bytes of payload; `auto`: those with the least mean FCT for
        /// the workloads; `published`: those of PIAS.
        thresholds: Auto<Thresholds> = "auto", "as PIAS";
    }
}

/// Problems that show only against the network, the workloads and the other parts of the system.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    let problem = |message: String, hint: String| Problem { key: "thresholds", message, hint };
    let found = match thresholds(params, env) {
        Ok(list) if list.len() + 1 != params.levels as usize => {
            let message = format!("{} thresholds do not part {} levels", list.len(), params.levels);
            vec![problem(message, format!("write {} thresholds, or other `levels`", params.levels - 1))]
        }
        // Each level has two classes: those are counted below.
        found => demotion::problems("thresholds", &params.thresholds.show(), found, 0, env),
    };
    let classes = demotion::too_few_classes("levels", 2 * params.levels as usize, env);
    classes.map_or(found, |problem| vec![problem])
}

/// The thresholds in bytes of payload; or why there are none.
fn thresholds(params: &Params, env: &Env<'_>) -> Result<Vec<u64>, String> {
    let published: &[usize] = match params.levels {
        8 => &[0, 1, 2, 3, 4, 5, 6],
        4 => &[1, 3, 5],
        levels if params.thresholds == Auto::Set(Thresholds::Published) => {
            return Err(format!("there are some for 4 or 8 levels, not for {levels}"));
        }
        _ => &[],
    };
    demotion::in_bytes(&params.thresholds, params.levels as usize, published, env)
}

/// The machine of one host, which remembers nothing of flows.
pub struct Aemon {
    levels: u8,
    /// In bytes of payload, rising.
    thresholds: Vec<u64>,
    /// What it found out about the thresholds.
    note: Option<String>,
}

impl Aemon {
    /// A host without flows.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let thresholds = thresholds(params, env).expect("checked with the scenario");
        let note = demotion::note("thresholds", &thresholds, env);
        Aemon { levels: params.levels as u8, thresholds, note }
    }
    /// The level of a flow with a deadline.
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
        packet.prio = 0;
        if packet.payload == 0 {
            return;
        }
        let flow = cx.flow(packet.flow);
        packet.prio = match flow.deadline() {
            Some(deadline) => 2 * self.urgent(flow.start(), deadline, cx.now) + 1,
            None => 2 * demotion::class(&self.thresholds, packet.offset),
        };
    }
    fn notes(&self) -> Vec<String> {
        self.note.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests;

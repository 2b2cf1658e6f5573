//! STAM: receivers put each flow with a deadline into the worst class in which it still meets its
//! deadline. Flows without a deadline fill the space in the classes above, in the order of bytes
//! sent.
//!
//! Source: W. Zang, J. Lan, Y. Hu, "Slack Time and Accumulation-Based Mix-flow Scheduling in Data
//! Center Networks", Acta Electronica Sinica 47(10), 2019, sections 3 and 4.
//!
//! | step | from |
//! |---|---|
//! | 1. each data packet carries the bytes sent and left, the deadline, the window and the weighted round trip of its flow | section 3 |
//! | 2. when a marked packet arrives, its receiver assigns a class to all its flows, at most once per round | Alg. 1, lines 2 to 5 |
//! | 3. rounds to completion T_c, slack T_slack = D / T_c - RTTs | eq. 2 to 4 |
//! | 4. a flow with a deadline goes to the worst class whose waiting time T_j is at most epsilon T_slack | eq. 5 to 9, Alg. 2 |
//! | 5. flows without a deadline fill the classes from the best on, in the order of bytes sent, up to K / N packets each | Alg. 3 |
//! | 6. ACKs carry the class to the sender; before the first mark, bytes sent set the class as in PIAS | Alg. 1, lines 6 to 19 |
//!
//! Inside a class, flows with a deadline go before the others (sections 5.1.2 and 6): ports have
//! two queues for each class. Class j, counted from 1, is priority 2 (j - 1) for flows with a
//! deadline and 2 (j - 1) + 1 for the others. Packets without payload have priority 0.
//!
//! Model: deadlines, and the sizes of flows with a deadline, are known; sizes of the other flows
//! are not. Clocks of hosts agree. Ports serve priorities in strict order and mark by one threshold
//! K; congestion control is DCTCP. The headers of data and ACKs take no bytes on the wire, unless
//! `metadata = "charged"`.
//!
//! `tc = "printed"` and `terminate = "paper"` follow the paper to the letter.
//!
//! | option | rule | reading of the paper |
//! |---|---|---|
//! | `tc` | eq. 2 | prints B / (4W - 1/2), where a 3 is missing: W/2 to W in W/2 rounds is 3W/4 - 1/2 packets a round |
//! | `terminate` | section 4.1 | ends a flow with negative slack; T_c is an upper bound, so the flow may still be in time |
//! | `tj` | eq. 5 | bounds the packets of a class by K / N, and gives no way to measure them |
//! | `metadata` | section 4.1 | does not say how a receiver learns of windows, round trips and deadlines |
//!
//! Assumed:
//! - `tc`: the branches of eq. 2 agree at S = 3W^2/8 - W/4, where `switch` and `printed` switch
//!   branches; `paper` switches at 3W^2/8 (eq. 1), which leaves a step. A window counts as at least
//!   two packets, the bytes left as at least one packet.
//! - All packets of a window arrive once per round: the lambda of eq. 5 is one over the mean RTTs
//!   of the receiver's flows, and mu is the rate of the receiver's NIC in packets of one MTU.
//! - K / N is rounded down to whole packets, at least one.
//! - With `tj = "measured"`, the packets of a class are the windows predicted for the flows in it,
//!   at most K / N.
//! - A flow goes to the first class if its share of slack is below T_1, or if its slack is negative
//!   and it is not given up.
//! - A class takes any number of flows with a deadline. A flow without a deadline that fits no
//!   class goes to the last one.
//! - The next window is DCTCP's: W (1 - alpha / 2), at least one packet, if a packet of the flow
//!   arrived marked within the last RTTs, and W + 1 packet otherwise. Alpha is estimated from the
//!   marks that arrive; it begins with 1.
//! - A round, the time between two decisions of a receiver, is the smallest RTTs of its flows at
//!   the first decision. The marked packet counts for the decision that it causes.
//! - Bytes left are counted from the furthest packet that has arrived.
//! - `terminate = "feasible"` ends a flow when its deadline has passed, or when the bytes left need
//!   more time than is left at the rate of the NIC. TCP's `give_up`, by which senders give up flows
//!   themselves, uses this test too. With every rule, a receiver ends a flow only at a decision.
//!   The flow's unsent bytes are never sent; packets in flight arrive.
//! - ACKs of an ended flow carry the end in place of a class, until the sender has received it.
//! - A class stays until another one arrives, with or without congestion. An ACK that echoes
//!   congestion and has no class changes nothing: the receiver has made no decision since the flow
//!   began.
//! - Before the first class, the offset of a packet sets its class, as in PIAS, for flows with and
//!   without deadlines.
//! - An RTT sample is the time from a packet to the first ACK of its last byte. One packet is timed
//!   at a time, which gives one sample per round. Retransmissions invalidate the sample.
//! - If the transport has no window, the window is its rate times RTTs, or the bytes in flight if
//!   these are more.
//!
//! Deviates: a flow that is given up sends no FIN: the receiver, which ended it, has removed it
//! from its table.

use super::{Cx, Policy, Urgency};
use crate::contract::Env;
use crate::kit::demotion::{self, Thresholds};
use crate::kit::late::Line;
use crate::packet::{Kind, Packet};
use base::params::{Auto, Param as _, Problem};
use base::registry::{Meta, Needs};
use base::{Bytes, Dur, FlowId, FlowMap, Fraction, Limit};
use law::{Tc, Tj};
use receiver::{Receiver, Rules, Terminate};
use sender::Sender;
use std::ops::Range;

mod header;
mod law;
mod receiver;
mod sender;

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "STAM: flows with deadlines go as late as their slack allows, the others before them by bytes sent",
    source: "Zang et al., Acta Electronica Sinica 47(10), 2019",
    needs: Needs { marks: true, deadlines: true, ..Needs::NONE },
    implies: &[
        ("nic.kind", "ns2"),
        ("policy.thresholds", "30pkt, 300pkt"),
        ("transport.kind", "dctcp"),
        ("qdisc.kind", "strict"),
        ("qdisc.classes", "16"),
        ("qdisc.mark", "auto"),
    ],
    knows: &["size", "deadline"],
    ranks: true,
    lengthens: CHARGED,
    counters: &header::COUNTERS,
    classes: true,
    packets_only: "it gives packets ranks",
    host: "ns-2: all packets wait at the NIC in a queue like those of the switches",
    ..Meta::PLAIN
};

base::choice! {
    /// Whether the header of data takes bytes on the wire.
    pub enum Metadata {
        /// It takes none.
        Free = "free",
        /// It adds 16 bytes to each data packet, beyond the MTU.
        Charged = "charged",
    }
}

base::params! {
    /// Parameters of STAM.
    pub struct Params {
        /// Number of classes (N); ports have two queues for each class.
        classes: u32 = "8" in 1..=32, "flowloom: PIAS's; the paper is silent";
        /// Marking threshold (K) of the ports; each class may fill a share K / N. `auto`: that of
        /// the switches, 65 packets if they have none.
        mark: Auto<Limit> = "auto", "flowloom; PIAS's scripts at 10 Gb/s: 65 packets; the paper is silent";
        /// Thresholds of bytes sent between the classes, used before the first mark; `auto` and
        /// `published` as in `pias`.
        thresholds: Auto<Thresholds> = "auto", "flowloom: PIAS; the paper says least bytes first";
        /// Largest share of its slack that a flow with a deadline may lose (epsilon).
        epsilon: Fraction = "0.7" in Fraction(0)..=Fraction::ONE, "section 5.1.1";
        /// Share of packets that may wait longer than T_j (eta).
        eta: Fraction = "0.01" in Fraction(1)..=Fraction(10_000_000), "sections 4.2 and 5.1.1";
        /// Weight of a sample in the round trip of eq. 3 (omega).
        omega: Fraction = "0.125" in Fraction(0)..=Fraction::ONE, "flowloom: RFC 6298; the paper is silent";
        /// Round trip before the first sample.
        init_rtt: Dur = "100us" in Dur::from_ns(1)..=Dur::from_secs(1), "section 5.2.1";
        /// Weight of a round in the receiver's estimate of the share of marked packets.
        g: Fraction = "0.0625" in Fraction(1)..=Fraction::ONE, "flowloom: DCTCP's gain; the paper is silent";
        /// Formula for the rounds that a flow needs for its remaining bytes.
        tc: Tc = "switch", "eq. 2, see Assumed; `printed`: as printed";
        /// Source of the waiting times of the classes.
        tj: Tj = "static", "eq. 5";
        /// When a flow with a deadline is given up.
        terminate: Terminate = "feasible", "flowloom: gives up only flows that must be late; the paper: `paper`";
        /// Whether the header of data takes bytes on the wire.
        metadata: Metadata = "free", "flowloom; the paper is silent";
    }
}

/// Default marking threshold in packets, if neither the scenario nor the switches set one.
const MARK: u64 = 65;
/// Bytes of the header, if it takes bytes on the wire.
const CHARGED: u16 = 16;

/// Returns the thresholds in bytes of payload, or the reason why there are none.
fn thresholds(params: &Params, env: &Env<'_>) -> Result<Vec<u64>, String> {
    let classes = params.classes as usize;
    // PIAS publishes seven thresholds.
    let published: Vec<usize> = (0..(classes - 1).min(7)).collect();
    demotion::in_bytes(&params.thresholds, classes, &published, env)
}

/// Returns the number of packets that one class may hold: K / N.
fn share(params: &Params, env: &Env<'_>) -> u64 {
    let packet = Bytes(env.mtu_bytes.into());
    let own = params.mark.or(env.given.value("qdisc", "mark").unwrap_or_default());
    let mark = own.in_bytes(packet).map_or(MARK, |bytes| bytes.0 / packet.0);
    env.note_auto("mark", params.mark == Auto::Auto, || format!("{mark}pkt"));
    (mark / u64::from(params.classes)).max(1)
}

/// Returns the problems that depend on the network, the workloads and the other parts of the
/// system.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    let problem = |key, message: String, hint: String| Problem { key, message, hint };
    let found = thresholds(params, env);
    let classes = found.as_ref().map_or(0, |bytes| bytes.len() + 1);
    let mut problems = demotion::problems("thresholds", &params.thresholds.show(), found, 0, env);
    if classes > params.classes as usize {
        let message = format!("{} thresholds make {classes} classes, `classes` is {}", classes - 1, params.classes);
        problems.push(problem("thresholds", message, "write fewer thresholds, or raise `classes`".to_owned()));
    }
    let queues = 2 * params.classes;
    if let Some(has) = env.given.value::<u32>("qdisc", "classes").filter(|has| *has != queues) {
        let message = format!("{} classes need {queues} queues, two each; the switches have {has}", params.classes);
        problems.push(problem("classes", message, format!("set `qdisc.classes` to {queues}")));
    }
    problems
}

/// The machine of one host.
pub struct Stam {
    sender: Sender,
    receiver: Receiver,
    /// The thresholds and their objective, for `check`.
    note: Option<String>,
}

impl Stam {
    /// Creates a host without flows.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let rules = Rules {
            mss: env.mss().into(),
            line: Line::new(env),
            mu: env.nic_rate.bps() as f64 / (8.0 * f64::from(env.mtu_bytes)),
            classes: params.classes as u8,
            share: share(params, env),
            epsilon: params.epsilon,
            eta: params.eta,
            g: params.g,
            tc: params.tc,
            tj: params.tj,
            terminate: params.terminate,
        };
        let sender = Sender {
            thresholds: thresholds(params, env).expect("checked with the scenario"),
            omega: params.omega,
            init_rtt: params.init_rtt,
            header: if params.metadata == Metadata::Charged { CHARGED } else { 0 },
            flows: FlowMap::default(),
        };
        let note = demotion::note("thresholds before the first mark", &sender.thresholds, env);
        Stam { sender, receiver: Receiver::new(rules), note }
    }
}

impl Policy for Stam {
    fn on_open(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        self.sender.open(flow, cx);
    }
    #[inline]
    fn on_send(&mut self, packet: &mut Packet, cx: &mut Cx<'_>) {
        packet.prio = 0;
        if packet.kind == Kind::DATA {
            self.sender.on_data(packet, cx);
        } else {
            self.receiver.on_answer(packet, cx);
        }
    }
    fn urgency(&self, flow: FlowId, bytes: Range<u64>, _cx: &Cx<'_>) -> Urgency {
        Urgency::class(self.sender.class(flow, bytes.start))
    }
    #[inline]
    fn on_receive(&mut self, packet: &mut Packet, cx: &mut Cx<'_>) -> bool {
        match packet.kind {
            Kind::DATA | Kind::TRIMMED | Kind::SYN | Kind::FIN => self.receiver.on_arrival(packet, cx),
            // The packet comes back with the header that its sender wrote.
            Kind::RETURNED => {}
            _ => self.sender.on_answer(packet, cx),
        }
        true
    }
    fn on_finish(&mut self, flow: FlowId, _cx: &mut Cx<'_>) {
        self.receiver.close(flow);
    }
    fn on_close(&mut self, flow: FlowId, _cx: &mut Cx<'_>) {
        self.sender.close(flow);
    }
    fn notes(&self) -> Vec<String> {
        self.note.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests;

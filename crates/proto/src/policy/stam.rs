//! STAM: receivers put each flow with a deadline into the worst class in which it is still in time, and fill the room before them with
//! flows without a deadline, by bytes sent.
//!
//! Source: W. Zang, J. Lan, Y. Hu, "Slack Time and Accumulation-Based Mix-flow Scheduling in Data Center Networks", Acta Electronica Sinica
//! 47(10), 2019, sections 3 and 4.
//!
//! | step | from |
//! |---|---|
//! | 1. each data packet tells the bytes sent and left, the deadline, the window and the weighted round trip of its flow | section 3 |
//! | 2. a packet that arrives marked has its receiver class all its flows, once a round | Alg. 1, lines 2 to 5 |
//! | 3. rounds to completion T_c, slack T_slack = D / T_c - RTTs | eq. 2 to 4 |
//! | 4. a flow with a deadline goes to the worst class whose waiting time T_j is at most epsilon T_slack | eq. 5 to 9, Alg. 2 |
//! | 5. flows without one fill the classes from the best on, in the order of bytes sent, up to K / N packets each | Alg. 3 |
//! | 6. ACKs bring the class back; before the first mark bytes sent set it, as in PIAS | Alg. 1, lines 6 to 19 |
//!
//! Inside a class flows with a deadline go before the others (sections 5.1.2 and 6): ports have two queues for each class. Class j, counted
//! from 1, is priority 2 (j - 1) with a deadline and 2 (j - 1) + 1 without one. Packets without payload have priority 0.
//!
//! Model: sizes of flows with a deadline, and deadlines, are known; sizes of the others are not. Clocks of hosts agree. Ports serve
//! priorities in strict order and mark by one threshold K; congestion control is DCTCP. What data and ACKs tell are headers that cost
//! nothing on the wire, unless `metadata = "charged"`.
//!
//! The paper word for word is `tc = "printed"` and `terminate = "paper"`.
//!
//! | option | rule | readings |
//! |---|---|---|
//! | `tc` | eq. 2 | prints B / (4W - 1/2), which lost a 3: W/2 to W in W/2 rounds is 3W/4 - 1/2 packets a round |
//! | `terminate` | section 4.1 | ends a flow with negative slack; T_c is an upper bound, so that it may still be in time |
//! | `tj` | eq. 5 | bounds the packets of a class by K / N, and gives no way to measure them |
//! | `metadata` | section 4.1 | does not say how a receiver learns of windows, round trips and deadlines |
//!
//! Assumed:
//! - `tc`: the branches of eq. 2 agree at S = 3W^2/8 - W/4, where `switch` and `printed` change over; `paper` does at 3W^2/8 (eq. 1), which
//!   leaves a step. A window counts as two packets at least, what is left as one packet at least.
//! - All packets of a window arrive once a round: the lambda of eq. 5 is one over the mean RTTs of the receiver's flows, and mu is the rate of
//!   its NIC in packets of one MTU.
//! - K / N is rounded down, and one packet at least.
//! - With `tj = "measured"` the packets of a class are the windows predicted for the flows in it, K / N at most.
//! - A flow whose share of slack is below T_1 goes to the first class. So does one with negative slack that is not given up.
//! - A class takes any number of flows with a deadline. A flow without one that fits nowhere goes to the last class.
//! - The next window is DCTCP's: W (1 - alpha / 2), one packet at least, if a packet of the flow came marked within the last RTTs, and
//!   W + 1 packet otherwise. Alpha is estimated from the marks that arrive; it begins with 1.
//! - A round, between two decisions of a receiver, is the smallest RTTs of its flows at the first of them. The marked packet counts for the
//!   decision.
//! - Bytes left are those behind the furthest packet that has arrived.
//! - `terminate = "feasible"` ends a flow when the deadline is over, or the bytes left take longer than that at the rate of the NIC: the test of
//!   TCP's `give_up`, with which senders give flows up on their own account. With every rule a receiver ends a flow at a
//!   decision only. The bytes that it has not sent leave the network; packets in flight arrive.
//! - ACKs of an ended flow say so, in place of a class, until it is known.
//! - A class stays until another one comes, whether or not there is congestion. An ACK that echoes congestion and has no class changes
//!   nothing: the receiver has not decided since the flow began.
//! - Before that the offset of a packet sets its class, as in PIAS, for flows with and without deadlines.
//! - An RTT sample is the time from a packet to the first ACK of its last byte; one packet is timed at a time, which makes one sample a round.
//!   None is taken while bytes are sent again.
//! - Where the transport has no window, its rate times RTTs is the window, or what is in flight if that is more.
//!
//! Deviates: a flow that is given up sends no FIN: the receiver, which ended it, has taken it out of its table.

use super::{Cx, Policy};
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

mod header;
mod law;
mod receiver;
mod sender;

/// What `list` and `check` know of it.
pub const META: Meta = Meta {
    summary: "STAM: flows with deadlines as late as their slack allows, the others before them by bytes sent",
    source: "Zang et al., Acta Electronica Sinica 47(10), 2019",
    needs: Needs { marks: true, deadlines: true, ..Needs::NONE },
    implies: &[
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
    packets_only: "it gives packets ranks",
    ..Meta::PLAIN
};

base::choice! {
    /// Whether the header of data takes room on the wire.
    pub enum Metadata {
        /// It takes none.
        Free = "free",
        /// It takes 16 bytes of each data packet, beyond the MTU.
        Charged = "charged",
    }
}

base::params! {
    /// Parameters of STAM.
    pub struct Params {
        /// Number of classes (N); ports have two queues for each.
        classes: u32 = "8" in 1..=32, "flowloom: PIAS's; the paper is silent";
        /// Marking threshold (K) of the ports, of which each class may fill a part; `auto`: that of the switches, 65 packets if they have none.
        mark: Auto<Limit> = "auto", "flowloom; PIAS's scripts at 10 Gb/s: 65 packets; the paper is silent";
        /// Thresholds of the classes in bytes sent, before the first mark; `auto` and `published` as in `pias`.
        thresholds: Auto<Thresholds> = "auto", "flowloom: PIAS; the paper says least bytes first";
        /// Share of the slack that a flow with a deadline may lose (epsilon).
        epsilon: Fraction = "0.7" in Fraction(0)..=Fraction::ONE, "section 5.1.1";
        /// Share of packets that may wait longer than T_j (eta).
        eta: Fraction = "0.01" in Fraction(1)..=Fraction(10_000_000), "sections 4.2 and 5.1.1";
        /// Weight of a sample in the round trip of eq. 3 (omega).
        omega: Fraction = "0.125" in Fraction(0)..=Fraction::ONE, "flowloom: RFC 6298; the paper is silent";
        /// Round trip before the first sample.
        init_rtt: Dur = "100us" in Dur::from_ns(1)..=Dur::from_secs(1), "section 5.2.1";
        /// Weight of a round in the receiver's estimate of marks.
        g: Fraction = "0.0625" in Fraction(1)..=Fraction::ONE, "flowloom: DCTCP's gain; the paper is silent";
        /// Rounds that the rest of a flow needs.
        tc: Tc = "switch", "eq. 2, see Assumed; as printed: `printed`";
        /// What the waiting times of the classes are computed from.
        tj: Tj = "static", "eq. 5";
        /// When a flow with a deadline is given up.
        terminate: Terminate = "feasible", "flowloom: a proof that it is late; the paper: `paper`";
        /// Whether the header of data takes room on the wire.
        metadata: Metadata = "free", "flowloom; the paper is silent";
    }
}

/// Packets that may wait at ports before they mark, where nothing says how many.
const MARK: u64 = 65;
/// Bytes of the header, where it takes room.
const CHARGED: u16 = 16;

/// The thresholds in bytes of payload; or why there are none.
fn thresholds(params: &Params, env: &Env<'_>) -> Result<Vec<u64>, String> {
    let classes = params.classes as usize;
    // The authors of PIAS have seven thresholds.
    let published: Vec<usize> = (0..(classes - 1).min(7)).collect();
    demotion::in_bytes(&params.thresholds, classes, &published, env)
}

/// Packets that one class may hold: K / N.
fn share(params: &Params, env: &Env<'_>) -> u64 {
    let packet = Bytes(env.mtu_bytes.into());
    let own = params.mark.or(env.given.value("qdisc", "mark").unwrap_or_default());
    let mark = own.in_bytes(packet).map_or(MARK, |bytes| bytes.0 / packet.0);
    (mark / u64::from(params.classes)).max(1)
}

/// Problems that show only against the network, the workloads and the other parts of the system.
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
        let message = format!("{} classes take {queues} queues, two each: the switches have {has}", params.classes);
        problems.push(problem("classes", message, format!("set `qdisc.classes` to {queues}")));
    }
    problems
}

/// The machine of one host.
pub struct Stam {
    sender: Sender,
    receiver: Receiver,
    /// What it found out about the thresholds.
    note: Option<String>,
}

impl Stam {
    /// A host without flows.
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
    #[inline]
    fn on_receive(&mut self, packet: &mut Packet, cx: &mut Cx<'_>) -> bool {
        match packet.kind {
            Kind::DATA | Kind::TRIMMED | Kind::SYN | Kind::FIN => self.receiver.on_arrival(packet, cx),
            // It comes back with what its sender said.
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

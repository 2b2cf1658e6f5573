//! SIRD: receivers grant credit from a global bucket, and limit each sender by what its uplink and the network can
//! carry.
//!
//! Source: K. Prasopoulos et al., "SIRD: A Sender-Informed, Receiver-Driven Datacenter Transport Protocol", NSDI 2025
//! (arXiv 2312.15403), and its authors' simulator: dalehuangzihan/SIRD-Simulator 116e981, ns-2.34, class
//! `R2P2_CC_MICRO/HYBRID`, `update_sender_state` and the functions that it calls for the windows, with the values of
//! `example-common.sh`. The full text of the paper could not be consulted for this file: the multiples of BDP are
//! those of Table 2, and rules are cited by name, not by section.
//!
//! Model: sizes are known. A flow is a message; there are no replies. Ports should mark above a threshold (NThr;
//! `strict` with `mark`). Credit is counted in bytes of payload. BDP is that of the longest path, rounded up to full
//! packets.
//!
//! | rule | from |
//! |---|---|
//! | a message up to UnschT sends its first bytes, up to one BDP, without credit | message transmission |
//! | a longer message requests credit and sends nothing before | message transmission |
//! | credit that is granted and not used by arrived data is at most B for the receiver | global credit bucket |
//! | and at most the bucket of its sender, which is at most one BDP | per-sender buckets |
//! | the bucket of a sender is the smaller of two windows: one for `csn`, one for CE | control loops |
//! | each packet, marked or not, adds (full packet) x (its payload) / bucket to both windows | simulator |
//! | alpha begins with 0 and takes a sample per bucket of data, after a first one without marks | simulator |
//! | a window is cut by half of alpha, on a marked packet, at least 1.5 buckets of data after the last cut | simulator |
//! | a window is at least 0.1 (`csn`) or 0.03 (CE) of the largest one | simulator |
//! | data has `csn` if the credit that waits at its sender is at least SThr | informed overcommitment |
//! | credit leaves at the rate of the receiver's link | credit pacing |
//! | receivers: the message with the fewest bytes that have not arrived, or senders in turn | simulator; policies |
//! | senders: a share of packets goes to receivers in turn, the others to the message with the fewest bytes left | policies |
//! | packets with credit are in class 1, all others in class 0 | simulator |
//! | ports hold 300 000 packets: bursts of unscheduled data are not dropped | simulator |
//! | receivers reclaim the credit of data that has not arrived after a timeout, and request the data again | loss recovery |
//!
//! Assumed:
//! - A GRANT names the byte up to which may be sent, so that the next GRANT makes up for a lost one. A GRANT carries
//!   credit for at most one full packet, and leaves only while a full packet fits both buckets. GRANTs are the time
//!   of a full packet apart.
//! - Each window begins with one BDP, and is at least a full packet. Its first cut needs one bucket of data.
//! - Senders in turn: the next GRANT goes to the sender whose last GRANT is the oldest, and to its message with the
//!   fewest bytes that have not arrived.
//! - After `resend_after` without data of a message that has bytes missing, the receiver reclaims its credit. It then
//!   grants again what is missing, in order, under the same rules: RESENDs name missing ranges of at most a packet.
//!   Until data of the message arrives, only one of them is on its way. A further hole is known when the holes before
//!   it are filled. A timeout counts at the sender, with the first RESEND after it that makes it retransmit.
//! - Data that arrives after its credit was reclaimed uses credit of its message, if the message has any.
//! - A sender that has received no answer to a message, or has sent all its bytes, sends a REQUEST after `ask_after`.
//!   The receiver answers with its ACK or its last GRANT. It acknowledges a whole message, which closes it at its
//!   sender.
//! - A RESEND of a message that the sender does not have is answered with UNKNOWN, and the receiver forgets the
//!   message.
//!
//! Deviates:
//! - NThr is the threshold of the ports, by default that of `ecn_threshold`, 0.78 BDP. The paper has 1.25 BDP, and the
//!   simulator 82 packets at links between switches only (`qdisc.mark`).
//! - Only data with credit moves the windows. In the simulator all packets of a sender do, GRANTs and unscheduled
//!   data included.
//! - Only data with credit counts against B and the bucket of its sender. In the simulator unscheduled bytes count from
//!   the first packet of their message until they arrive.
//! - Credit belongs to a message and is counted without headers. In the simulator it belongs to a pair of hosts, may be
//!   used for a shorter message to the same receiver, and is counted with headers; up to a packet more than the
//!   window is granted.
//! - A sender with a single message sets `csn`, too. In the simulator it does not.

use crate::contract::{Bursts, Cx, Env, Timeout, Timers, Transport};
use crate::flow::Sample;
use crate::kit::demotion::too_few_classes;
use crate::packet::{Kind, Packet};
use base::params::{Auto, Problem};
use base::registry::{Counter, Meta, Needs};
use base::{Bytes, Dur, FlowId, Fraction, TimerKey};
use config::Config;
use header::{GRANT, REQUEST, RESEND, UNKNOWN};
use inbound::Inbound;
use outbound::Outbound;

mod config;
mod header;
mod inbound;
mod outbound;

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "SIRD: receivers grant credit, and senders and the network inform them when a sender's credit should shrink",
    source: "Prasopoulos et al., NSDI 2025",
    needs: Needs { marks: true, ..Needs::NONE },
    implies: &[
        ("nic.low_water", "1B"),
        ("qdisc.kind", "strict"),
        ("qdisc.classes", "2"),
        ("qdisc.limit", "300000pkt"),
        ("qdisc.mark", "auto"),
        ("router.kind", "spray"),
    ],
    kinds: &["request", "grant", "resend", "unknown"],
    counters: &[
        Counter { name: "grants", unit: "packets", about: "GRANTs with credit sent by the receiver" },
        Counter { name: "resends", unit: "packets", about: "RESENDs sent by the receiver" },
        Counter { name: "reclaimed_bytes", unit: "B", about: "credit that the receiver reclaimed after timeouts" },
        Counter { name: "csn_packets", unit: "packets", about: "packets with credit that arrived with `csn`" },
        Counter { name: "unscheduled_bytes", unit: "B", about: "payload sent without credit, each byte counted once" },
        Counter { name: "scheduled_bytes", unit: "B", about: "payload sent with credit, each byte counted once" },
    ],
    knows: &["size"],
    packets_only: "its hosts share credit and serve the message with the fewest bytes left first",
    host: "the authors' ns-2: the packet is chosen when the link is free",
    ..Meta::PLAIN
};

base::choice! {
    /// The message to which a receiver grants next.
    pub enum GrantOrder {
        /// The message with the fewest bytes that have not arrived.
        Srpt = "srpt",
        /// A message of the sender whose last grant is the oldest.
        RoundRobin = "round_robin",
    }
}

base::choice! {
    /// The classes of packets.
    pub enum Classes {
        /// All packets are in class 0.
        One = "one",
        /// Packets with credit are in class 1, all others in class 0.
        Two = "two",
    }
}

base::params! {
    /// Parameters of SIRD.
    pub struct Params {
        /// Credit that a receiver may have granted and not seen used (B); `auto`: 1.5 bandwidth-delay products.
        bucket: Auto<Bytes> = "auto" in Auto::Set(Bytes(1))..=Auto::Set(Bytes(1_000_000_000)), "Table 2: 1.5 BDP";
        /// The part of it that one sender may have; `auto`: one bandwidth-delay product.
        sender_bucket: Auto<Bytes> = "auto" in Auto::Set(Bytes(1))..=Auto::Set(Bytes(1_000_000_000)), "one BDP";
        /// Credit waiting at a sender from which on its data has `csn` (SThr); `auto`: half a bandwidth-delay
        /// product.
        sender_threshold: Auto<Bytes> = "auto" in Auto::Set(Bytes(1))..=Auto::Set(Bytes(1_000_000_000)), "Table 2: 0.5 BDP";
        /// Size of the longest message that sends bytes without credit (UnschT); `auto`: one bandwidth-delay product.
        unsched_threshold: Auto<Bytes> = "auto" in Auto::Set(Bytes(0))..=Auto::Set(Bytes(1_000_000_000)), "Table 2: BDP";
        /// Bytes that such a message sends without credit; `auto`: one bandwidth-delay product.
        unsched_bytes: Auto<Bytes> = "auto" in Auto::Set(Bytes(1))..=Auto::Set(Bytes(1_000_000_000)), "one BDP";
        /// Weight of one observation in alpha.
        g: Fraction = "0.08" in Fraction(1)..=Fraction::ONE, "authors' scripts";
        /// Initial value of alpha.
        alpha: Fraction = "0" in Fraction(0)..=Fraction::ONE, "authors' simulator";
        /// Smallest window for `csn`, as a share of `sender_bucket`; at least a full packet.
        min_window_csn: Fraction = "0.1" in Fraction(0)..=Fraction::ONE, "authors' scripts";
        /// Smallest window for CE, as a share of `sender_bucket`; at least a full packet.
        min_window_ecn: Fraction = "0.03" in Fraction(0)..=Fraction::ONE, "authors' scripts";
        /// The message to which a receiver grants next.
        policy: GrantOrder = "srpt", "both are in the paper";
        /// Share of its packets that a sender sends to its receivers in turn, so that all of them see `csn`.
        fair_share: Fraction = "0.5" in Fraction(0)..=Fraction::ONE, "half of the uplink";
        /// The rate of granted full packets, as a share of the rate of the receiver's link.
        pace: Fraction = "1" in Fraction(10_000_000)..=Fraction::ONE, "flowloom";
        /// Classes of packets.
        classes: Classes = "two", "authors' scripts; the paper needs no priorities";
        /// Time without data of a message after which a receiver requests missing bytes again; `auto`: 5 ms, at least
        /// ten unloaded round trips of the longest path.
        resend_after: Auto<Dur> = "auto" in Auto::Set(Dur::from_ns(100))..=Auto::Set(Dur::from_secs(60)), "flowloom: as `homa`";
        /// Time without an answer after which a sender requests credit again; `auto`: twice `resend_after`.
        ask_after: Auto<Dur> = "auto" in Auto::Set(Dur::from_ns(100))..=Auto::Set(Dur::from_secs(600)), "flowloom: as `homa`";
    }
}

/// Returns the problems that depend on the network and on other parts.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    let full = Bytes(env.mss().into());
    for (key, bucket) in [("bucket", params.bucket), ("sender_bucket", params.sender_bucket)] {
        if let Auto::Set(bucket) = bucket
            && bucket < full
        {
            let message = format!("`{bucket}` is less than the payload of a full packet, `{full}`: nothing is ever granted");
            problems.push(Problem { key, message, hint: "write a larger bucket or `auto`".to_owned() });
        }
    }
    if params.classes == Classes::Two {
        let few = too_few_classes("classes", 2, env);
        problems.extend(few.map(|problem| Problem { message: format!("`two` needs {}", problem.message), ..problem }));
        if let Some(policy) = env.given.kind("policy") {
            let message = format!("`two` sets the classes of packets, and the policy `{policy}` would change them");
            problems.push(Problem { key: "classes", message, hint: "write `one`, or remove `policy`".to_owned() });
        }
    }
    for (key, time) in [("resend_after", params.resend_after), ("ask_after", params.ask_after)] {
        if let Auto::Set(time) = time {
            problems.extend(env.too_short(key, time, "write a longer time or `auto`"));
        }
    }
    problems
}

/// Timer of a message at its sender: no answer from the receiver.
const ASK: u8 = 0;
/// Timer of a message at its receiver: bytes are missing.
const MISSING: u8 = 1;
/// Timer of a host: the next GRANT.
const PACE: u8 = 2;

/// Indices of the counters.
const GRANTS: usize = 0;
const RESENDS: usize = 1;
const RECLAIMED: usize = 2;
const CSN: usize = 3;
const UNSCHEDULED: usize = 4;
const SCHEDULED: usize = 5;

/// The machine of one host.
pub struct Sird {
    config: Config,
    outbound: Outbound,
    inbound: Inbound,
}

impl Sird {
    /// Creates a host without messages.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let config = Config::new(params, env);
        Sird { outbound: Outbound::default(), inbound: Inbound::new(&config), config }
    }
}

impl Transport for Sird {
    fn on_flow(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        self.outbound.open(&self.config, flow, cx);
    }

    fn on_packet(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        let (config, flow) = (&self.config, packet.flow);
        match packet.kind {
            Kind::DATA => self.inbound.on_data(config, packet, cx),
            GRANT => self.outbound.on_grant(config, packet, cx),
            Kind::ACK => self.outbound.on_ack(flow, cx),
            REQUEST => self.inbound.on_request(config, packet, cx),
            RESEND => self.outbound.on_resend(config, packet, cx),
            UNKNOWN => self.inbound.forget(config, flow, cx),
            // No other kind is sent.
            _ => {}
        }
    }

    fn on_timer(&mut self, key: TimerKey, cx: &mut Cx<'_>) {
        match key.kind {
            ASK => self.outbound.on_ask(&self.config, key.flow, cx),
            MISSING => self.inbound.on_missing(&self.config, key.flow, cx),
            PACE => self.inbound.grant(&self.config, cx),
            _ => unreachable!("unknown timer"),
        }
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        self.outbound.send(&self.config, cx)
    }

    fn remove_sender(&mut self, flow: FlowId) -> bool {
        self.outbound.remove(flow)
    }

    fn sample(&self, flow: FlowId) -> Option<Sample> {
        self.outbound.sample(flow)
    }

    fn timers(&self) -> Timers {
        let resend = Timeout::new("resend_after", self.config.resend_after);
        Timers { handshake: false, first: resend, least: resend, fixed: true }
    }

    fn bursts(&self) -> Bursts {
        // Of B, the link carries one BDP in a round trip: the rest may wait at the receiver's port.
        let granted_bytes = self.config.bucket.saturating_sub(self.config.bdp);
        Bursts { first_bytes: self.config.unsched_bytes.min(self.config.unsched_threshold), granted_bytes }
    }
}

#[cfg(test)]
mod tests;

//! UET, Ultra Ethernet transport: messages whose packets take many paths and arrive in any order,
//! with windows at senders (NSCC), credit of receivers (RCCC), or both.
//!
//! Source: the simulator of the Ultra Ethernet Consortium (uet-htsim at 40ccb05, sim/uec.cpp, uecpacket.h and
//! datacenter/main_uec.cpp), written for the Ultra Ethernet Specification 1.0, section 3.6 (congestion management). The module's
//! files cite functions of `uec.cpp` next to the rules. Reliable ordered delivery, which the program lacks: Specification 1.0,
//! sections 3.5.7.2, 3.5.21.1 and 3.6.16.2, as public notes on it summarize them (UEC-Notes, techdocs and others on GitHub).
//!
//! Model: the packet delivery mode is reliable unordered delivery (RUD), or with `delivery = "ordered"` reliable ordered
//! delivery (ROD). There is no connection set-up: a packet delivery context exists before its first message. A flow is a message; a
//! receiver takes in messages of any size. Ports may trim or not; without a `qdisc` a system has the
//! program's ports. Left out: other delivery modes, the DCTCP variant of the sender's control, the
//! control of receivers in oversubscribed networks (OversubscribedCC), the model of PCIe, the
//! receiver's window penalty (always off in the program), and the lower priority of packets with speculative credit.
//!
//! | rule | from |
//! |---|---|
//! | a packet carries an entropy value (EV), which chooses its path; ACKs and NACKs return on it | sendNewPacket, sack |
//! | an ACK has the first missing packet, a bitmap of 64 packets, and the bytes that have arrived | sack, buildSackBitmap |
//! | ACKs: the first packet, marked packets, duplicates, packets that ask for one, and after `ack_bytes` | processData |
//! | a packet asks for an ACK if it is a retransmission, the last one, or exhausts the window or credit | sendNewPacket |
//! | a trimmed packet is answered by a NACK, and its sender retransmits it, lost packets first | processTrimmed, processNack |
//! | a packet without an answer for `min_rto` counts as lost; the timeout does not grow | rtxTimerExpired |
//! | if a lost packet may not be sent, its sender asks for an ACK and credit by an RTS, once per round trip | sendRTS |
//! | SLEEK, off by default: with 1.5 windows of arrivals after a missing packet, all missing packets count as lost | runSleek |
//! | ... also if a probe after a silence of 3 round trips, or one at the end of a message, finds a short delay | sendProbe |
//! | NSCC: windows grow without marks, in proportion to `target_delay` less the delay | proportional_increase |
//! | ... by a fixed number of bytes if the delay is above the target | fair_increase |
//! | ... and by a part of all acknowledged bytes after a window without delay | fast_increase |
//! | marks cut windows by the excess of the mean delay over the target, once per round trip | multiplicative_decrease |
//! | increases take effect every 8 packets, and `eta` is added once per round trip | fulfill_adjustment |
//! | after losses or long delays and few arrivals, a window is the bytes that arrived in a round trip | quick_adapt |
//! | otherwise a NACK takes its packet's size from the window, a timeout too | updateCwndOnNack_NSCC |
//! | RCCC: a sender sends its first window without credit, until the receiver answers | stopSpeculating |
//! | packets carry the number of bytes for which their sender wants credit | computePullTarget |
//! | the receiver grants credit at 99 % of its rate, four packets at a time, to messages in turn | UecPullPacer |
//! | ... and without demand to messages that have had some, up to one window | UecPullPacer, slow pulls |
//! | a packet that was trimmed at its last hop is no reason to avoid its path, nor, with RCCC, to lower the window | processNack |
//! | load balancing | `load_balancing` |
//! | ROD: all packets of a connection have the same EV, and so one path | 3.5.7.2, 3.6.16.2 |
//! | ROD: a packet beyond the first missing one is dropped, and a NACK names the first missing one | 3.5.7.2, 3.5.21.1 |
//! | ROD: the sender retransmits all packets from there on, in order (go-back-N), once until that packet has arrived | 3.5.21.1 |
//! | ROD: ... from a trimmed packet on, and after a timeout from the packet that timed out | 3.5.7.2 |
//!
//! Several planes (section 3.6.16.6): a host with several NICs has one address, and the hash of an EV chooses the NIC, and with
//! it the plane, of every packet with this EV. NACKs, ACKs and pulls return in the plane of their EV. Windows and credit are
//! those of the sum of the NICs' rates (section 3.6.17). `sim/tests/runs/uet_planes.rs` measures it: in two planes a permutation takes
//! 1.04 to 1.10 times the time of both NICs, and the planes carry the same within 3 %.
//!
//! Assumed:
//! - The text of the specification was not at hand. Rules and constants are those of the program; for ROD, the sections above
//!   were known only from notes of readers.
//! - ROD: order holds within a message. The NACK of every dropped packet is sent. The NACK of a trimmed packet names that
//!   packet, because headers overtake data; it counts if it answers the last transmission, as far as the flag of
//!   retransmissions distinguishes first and later ones. The loss of a retransmission that no port trims is
//!   found by its timeout. NSCC counts the first NACK of a missing packet as its loss; every trimmed
//!   packet lowers the window, as with RUD. The receiver grants credit for dropped packets again.
//! - ROD at hosts with several NICs: one NIC sends, but windows are those of all NICs.
//! - Hosts with several NICs: the specification lets a sender prefer the EVs of NICs that are free. Here a packet waits for the
//!   NIC of its EV, while others may be idle. `min_rto` counts full queues at the sum of the rates.
//! - The constants of NSCC are multiples of a packet, scaled by the bandwidth-delay product relative
//!   to that of a network with 100 Gb/s and 12 us, as in the program. The delay below which windows
//!   grow fast is 1 us there; by default it is at least a twelfth of the round trip.
//! - Windows, credit and bytes in flight include headers, as in the program.
//! - `ack_bytes` is 16 KB in the program, and at most a quarter of the bandwidth-delay product here,
//!   so that small windows do not wait for ACKs.
//! - A packet that a port returns to its sender counts as trimmed.
//! - SLEEK: a retransmission timeout during a recovery has its usual effect; the program leaves the
//!   packet to the recovery, and marks it for another retransmission. Every message recovers by
//!   itself.
//! - A sender with data, without credit and without packets in flight sends an RTS after 16
//!   timeouts: pulls may be lost too.
//! - A pull takes the next EV after that of the flow's previous pull, among all EVs. When a message
//!   is complete, its pulls leave the queue of its receiver.
//! - With `connections = "peer"`, a connection sends its messages in their order. Every message has
//!   its own packet numbers. The connection stays when no message is left.
//! - The connections of a host take turns to send.
//!
//! Deviates:
//! - A sender keeps the EV of every packet, and reports it to the load balancer after a timeout. The
//!   program reports EV 0.
//! - With RCCC the program switches marks off at ports to hosts. Here all ports mark by the same
//!   rule, so that receivers send more ACKs, and `both` is limited more by windows. Write
//!   `qdisc = { kind = "trim", marks_to_hosts = false }` for the ports of the program.
//! - An RTS has no packet number of its own.
//! - A sender with debts asks for enough credit to send a packet, however many connections of its
//!   host are ready to send. The program divides the demand by their number; the sender then may not
//!   send the packet that asks for more.
//! - Only full packets lower the unloaded round trip, and NACKs do not unless `rtt_of_nacks` is set. A
//!   short packet, or one whose payload was cut off on the way, has a shorter unloaded round trip, by
//!   more than half at 1 Gb/s.
//! - Not more than 2^20 packets are sent beyond the first missing one. The program ends with an error
//!   when a receiver has to keep more than 2^14.
//! - The program's sums of increases have 32 bits and overflow at high rates.

use crate::contract::{Bursts, Cx, Env, Timers, Transport};
use crate::flow::Sample;
use crate::kit::multipath::MultipathOptions;
use crate::packet::{Kind, Packet};
use base::params::{Auto, Problem};
use base::registry::{Counter, Meta, Needs};
use base::{Bytes, Dur, FlowId, Fraction, Rate, TimerKey};
use config::UetConfig;
use receiver::UetReceiver;
use sender::UetSender;

mod arrivals;
mod config;
mod header;
mod message;
mod nscc;
mod rccc;
mod receiver;
mod sender;

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "UET: packets of a message take many paths, with NSCC's windows or RCCC's credit (Ultra Ethernet)",
    source: "Ultra Ethernet Consortium, uet-htsim; Specification 1.0",
    needs: Needs { marks: true, ..Needs::NONE },
    implies: &[
        ("qdisc.kind", "trim"),
        ("qdisc.limit", "auto"),
        ("qdisc.full", "drop"),
        ("qdisc.weight", "100000"),
        ("qdisc.th_min", "auto"),
        ("qdisc.th_max", "auto"),
    ],
    many_paths: true,
    kinds: &["nack", "pull", "rts", "gap"],
    takes: &["trimmed", "returned"],
    counters: &[
        Counter { name: "trims", unit: "packets", about: "trimmed packets at the receiver" },
        Counter { name: "nacks", unit: "packets", about: "NACKs received by the sender" },
        Counter { name: "returned", unit: "packets", about: "packets that ports sent back to the sender" },
        Counter { name: "duplicates", unit: "packets", about: "data packets that had arrived before" },
        Counter { name: "acks", unit: "packets", about: "ACKs sent by the receiver" },
        Counter { name: "inferred", unit: "packets", about: "packets that the sender inferred to be lost (SLEEK)" },
        Counter { name: "probes", unit: "packets", about: "probes sent by the sender (SLEEK)" },
        Counter { name: "rts", unit: "packets", about: "RTSs sent by the sender" },
        Counter { name: "quick_adapts", unit: "times", about: "quick adaptations of the window" },
        Counter { name: "pulls", unit: "packets", about: "pulls sent by the receiver" },
        Counter { name: "credit_bytes", unit: "B", about: "credit granted by the receiver" },
        Counter { name: "speculative_bytes", unit: "B", about: "payload sent before the receiver's first answer, with RCCC" },
        Counter {
            name: "out_of_order",
            unit: "packets",
            about: "data packets dropped by the receiver because an earlier packet was missing",
        },
    ],
    host: "uet-htsim: flows take turns when the link is free",
    ..Meta::PLAIN
};

const NACK: Kind = Kind(Kind::OWN);
const PULL: Kind = Kind(Kind::OWN + 1);
const RTS: Kind = Kind(Kind::OWN + 2);
/// The NACK of a packet that arrived out of order, whose offset is that of the first missing packet.
const GAP: Kind = Kind(Kind::OWN + 3);

/// Indices of the counters.
const TRIMS: usize = 0;
const NACKS: usize = 1;
const RETURNED: usize = 2;
const DUPLICATES: usize = 3;
const ACKS: usize = 4;
const INFERRED: usize = 5;
const PROBES: usize = 6;
const RTSS: usize = 7;
const QUICK_ADAPTS: usize = 8;
const PULLS: usize = 9;
const CREDIT: usize = 10;
const SPECULATIVE: usize = 11;
const OUT_OF_ORDER: usize = 12;

base::choice! {
    /// Where congestion is controlled.
    pub enum Cc {
        /// At the sender: windows that follow marks and delays (NSCC).
        Nscc = "nscc",
        /// At the receiver: senders need credit (RCCC).
        Rccc = "rccc",
        /// At both: a packet needs room in the window and credit.
        Both = "both",
    }
}

base::choice! {
    /// How the packets of a message are delivered.
    pub enum Delivery {
        /// In the order in which they arrive, from all paths: reliable unordered delivery (RUD).
        Unordered = "unordered",
        /// In the order in which they were sent, over one path: reliable ordered delivery (ROD).
        Ordered = "ordered",
    }
}

base::choice! {
    /// Which messages share a connection, its window and its choice of paths.
    pub enum UetConnections {
        /// None: every message has a connection of its own.
        Message = "message",
        /// The messages from one host to another.
        Peer = "peer",
    }
}

base::choice! {
    /// Where values come from that the program has for its reference network only.
    pub enum UetProfile {
        /// They follow the network.
        Network = "network",
        /// They are those of the program.
        UetHtsim = "uet-htsim",
    }
}

base::params! {
    /// Parameters of UET.
    pub struct Params {
        ..multipath: MultipathOptions {}
        /// How packets are delivered: `unordered`, as they arrive, sprayed over all paths (RUD); `ordered`, in the order in which
        /// they were sent, over one path per connection, with go-back-N retransmission (ROD). Load balancing then has no effect.
        delivery: Delivery = "unordered", "Ultra Ethernet Specification 1.0, 3.5.7; uet-htsim has only RUD";
        /// Where congestion is controlled: `nscc`, at the sender; `rccc`, at the receiver; `both`.
        cc: Cc = "nscc", "uet-htsim, main_uec.cpp";
        /// Which messages share a connection, its window and its choice of paths: `message`, none; `peer`, those from one
        /// host to another.
        connections: UetConnections = "message", "uet-htsim, main_uec.cpp: `peer` with -conn_reuse";
        /// `network`: automatic values follow the network; `uet-htsim`: they are those of the program on every network:
        /// `ack_bytes` 16384, `fast_delay` 1 us, `min_rto` without a smallest value, and NACKs lower the unloaded round trip.
        profile: UetProfile = "network", "flowloom, see Deviates and Assumed", quiet;
        /// Bytes that arrive before a receiver acknowledges them without other reason; `auto`: 16384, at most a quarter of a
        /// bandwidth-delay product.
        ack_bytes: Auto<Bytes> = "auto" in Auto::Set(Bytes(1))..=Auto::Set(Bytes(1 << 30)), "uet-htsim: 16384";
        /// Retransmission timeout, fixed; `auto`: 15 us and six times the transmission time of a full queue, at least three
        /// unloaded round trips.
        min_rto: Auto<Dur> = "auto" in Auto::Set(Dur::from_ns(100))..=Auto::Set(Dur::from_secs(60)), "uet-htsim, main_uec.cpp";
        /// Whether senders infer losses from later arrivals and from probes (SLEEK). It needs NSCC.
        sleek: bool = "false", "uet-htsim, -sleek";
        /// The unloaded round trip from which delays and windows are measured; `auto`: the longest of the network.
        base_rtt: Auto<Dur> = "auto" in Auto::Set(Dur::from_ns(100))..=Auto::Set(Dur::from_secs(60)), "uet-htsim, main_uec.cpp";
        /// Whether a connection begins with the unloaded round trip of its own path.
        own_rtt: bool = "false", "uet-htsim, -enable_accurate_base_rtt";
        /// Whether NACKs, whose packets lost their payload on the way, may lower the unloaded round trip.
        rtt_of_nacks: bool = "false", "flowloom, see Deviates; uet-htsim: true";
        /// The largest window, and the first credit, in bandwidth-delay products.
        max_window: Fraction = "1.5" in Fraction(1_000_000)..=Fraction(1_000_000_000_000), "uet-htsim, initNscc";
        /// The first window of NSCC; `auto`: the largest.
        init_window: Auto<Bytes> = "auto" in Auto::Set(Bytes(1))..=Auto::Set(Bytes(1 << 40)), "uet-htsim, initNscc";
        /// NSCC: the delay in queues up to which windows grow in proportion; `auto`: three quarters of the unloaded round
        /// trip if ports trim, otherwise all of it.
        target_delay: Auto<Dur> = "auto" in Auto::Set(Dur(1))..=Auto::Set(Dur::from_secs(60)), "uet-htsim, initNsccParams";
        /// NSCC: growth per window and reference round trip below the target, in packets of the reference network.
        alpha: Fraction = "4" in Fraction(0)..=Fraction(1_000_000_000_000), "uet-htsim, initNsccParams";
        /// NSCC: growth per window above the target, in packets of the reference network.
        fair_increase: Fraction = "5" in Fraction(0)..=Fraction(1_000_000_000_000), "uet-htsim, _fi";
        /// NSCC: growth per period, in packets of the reference network.
        eta: Fraction = "0.15" in Fraction(0)..=Fraction(1_000_000_000_000), "uet-htsim, initNsccParams";
        /// NSCC: growth per acknowledged byte after a window without delay, in the reference network.
        fast_increase: Fraction = "0.25" in Fraction(0)..=Fraction(1_000_000_000_000), "uet-htsim, _fi_scale";
        /// NSCC: the delay that counts as none; `auto`: the longer of 1 us and a twelfth of the unloaded round trip.
        fast_delay: Auto<Dur> = "auto" in Auto::Set(Dur::ZERO)..=Auto::Set(Dur::from_secs(60)), "flowloom; uet-htsim: 1 us";
        /// NSCC: the part of a mean delay's excess over the target by which a mark cuts the window.
        gamma: Fraction = "0.8" in Fraction(0)..=Fraction::ONE, "uet-htsim, initNsccParams";
        /// NSCC: largest part of a window that a cut takes away.
        max_decrease: Fraction = "0.5" in Fraction(0)..=Fraction(999_999_999), "uet-htsim, multiplicative_decrease";
        /// NSCC: weight of a sample in the mean delay.
        delay_gain: Fraction = "0.0125" in Fraction(1)..=Fraction::ONE, "uet-htsim, _delay_alpha";
        /// NSCC: rate of the network to which the constants refer.
        reference_rate: Rate = "100Gbps" in Rate(1_000_000)..=Rate(10_000_000_000_000), "uet-htsim, initNsccParams";
        /// NSCC: unloaded round trip of that network.
        reference_rtt: Dur = "12us" in Dur::from_ns(100)..=Dur::from_secs(1), "uet-htsim, initNsccParams";
        /// NSCC: whether the window is set to the bytes that arrived, after losses and long delays.
        quick_adapt: bool = "true", "uet-htsim, _disable_quick_adapt";
        /// NSCC: power of two by which the largest window is divided; with fewer bytes in a period, the window is set to them.
        qa_gate: u32 = "3" in 0..=30, "uet-htsim, initNsccParams";
        /// NSCC: the delay that is a reason for it, in targets.
        qa_delay: Fraction = "4" in Fraction(0)..=Fraction(1_000_000_000_000), "uet-htsim, _qa_threshold";
        /// NSCC: number of full packets after which increases take effect.
        adjust_packets: u32 = "8" in 0..=1_000_000, "uet-htsim, _adjust_bytes_threshold";
        /// NSCC: time after which they do in any case, and the period of `eta`; `auto`: the unloaded round trip.
        adjust_period: Auto<Dur> = "auto" in Auto::Set(Dur(1))..=Auto::Set(Dur::from_secs(60)), "uet-htsim, initNsccParams";
        /// RCCC: number of packets for which a pull grants credit.
        pull_packets: u32 = "4" in 1..=1_000_000, "uet-htsim, _mtus_per_pull";
        /// RCCC: the rate at which a host grants credit, as a share of its link's rate.
        pull_rate: Fraction = "0.99" in Fraction(10_000_000)..=Fraction::ONE, "uet-htsim, main_uec.cpp";
    }
}

/// Returns the problems that depend on the network, and the contradictions between parameters.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    let mut problems = params.multipath.check();
    if let Auto::Set(rto) = params.min_rto {
        problems.extend(env.too_short("min_rto", rto, "every packet would be retransmitted: write a longer time or `auto`"));
    }
    if params.connections == UetConnections::Peer && params.cc != Cc::Nscc {
        let message = "receivers grant credit to single messages".to_owned();
        let hint = "write `cc = \"nscc\"` or `connections = \"message\"`".to_owned();
        problems.push(Problem { key: "connections", message, hint });
    }
    if params.sleek && params.cc == Cc::Rccc {
        let message = "losses are inferred from the window of NSCC, which `cc = \"rccc\"` lacks".to_owned();
        problems.push(Problem { key: "sleek", message, hint: "write `cc = \"nscc\"` or `cc = \"both\"`".to_owned() });
    }
    if params.sleek && params.delivery == Delivery::Ordered {
        let message = "losses are inferred from packets beyond the first missing one, which ordered delivery drops".to_owned();
        let hint = "write `sleek = false` or `delivery = \"unordered\"`".to_owned();
        problems.push(Problem { key: "sleek", message, hint });
    }
    problems
}

/// The machine of one host.
pub struct Uet {
    sender: UetSender,
    receiver: UetReceiver,
}

impl Uet {
    /// Creates a host without flows.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let config = UetConfig::new(params, env);
        Uet { sender: UetSender::new(config.clone()), receiver: UetReceiver::new(config) }
    }
}

impl Transport for Uet {
    fn on_flow(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        self.sender.on_flow(flow, cx);
    }

    fn on_packet(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        match packet.kind {
            Kind::DATA | Kind::TRIMMED | Kind::PROBE | RTS => self.receiver.on_arrival(packet, cx),
            Kind::ACK | Kind::PROBEACK => self.sender.on_ack(packet, cx),
            NACK | GAP | Kind::RETURNED => self.sender.on_nack(packet, cx),
            PULL => self.sender.on_pull(packet, cx),
            // No other kind is sent.
            _ => {}
        }
    }

    fn on_timer(&mut self, key: TimerKey, cx: &mut Cx<'_>) {
        match key.kind {
            receiver::PACED => self.receiver.on_paced(cx),
            sender::PROBE => self.sender.on_probe_timer(key.flow, cx),
            _ => self.sender.on_rto(key.flow, cx),
        }
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        self.sender.poll_transmit(cx)
    }

    fn remove_sender(&mut self, flow: FlowId) -> bool {
        self.sender.remove_sender(flow)
    }

    fn sample(&self, flow: FlowId) -> Option<Sample> {
        self.sender.sample(flow)
    }

    fn timers(&self) -> Timers {
        self.sender.timers()
    }

    fn bursts(&self) -> Bursts {
        self.sender.bursts()
    }
}

#[cfg(test)]
mod tests;

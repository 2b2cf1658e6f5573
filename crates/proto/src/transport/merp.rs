//! MERP hosts: flows are paced by the rate that the ports on their path grant, and probe with small DET packets while they wait.
//!
//! Source: S. Zhang, Z. Qian, H. Wu, S. Lu, "Efficient Data Center Flow Scheduling Without Starvation Using Expansion Ratio", IEEE
//! TPDS 28(11), 2017, section 3 and Table 2 (packets), 4.1 (sender), 4.2 (receiver).
//!
//! Model: flow sizes are known at the start, in wire bytes (payload and one header per packet), as in the paper. There is no window:
//! what is in flight is bounded by the granted rate alone. Packets without payload but DET leave a host before waiting DATA.
//!
//! Assumed:
//! - Only DATA carries payload; DET packets have `det_size`, all others the size of a header.
//! - The expected rate travels as the time it stands for, size / esr = vdl - aT, so that everything is whole; esr = infinity is 0.
//! - A DATAACK is read like a SYNACK: granted no more than theta, the sender falls back to DET. That is how a flow is preempted.
//! - A grant counts only if the packet it answers left later than that of the newest grant applied: ACK classes overtake each other.
//! - A BOOST grants the rate it carries.
//! - The next departure is that of the packet before, plus its length at the present rate; after a change of rate it is worked out
//!   again from the same departure, not before now. A probe waits for its own length at the present rate after the packet before,
//!   whatever that was: a preempted flow would else be silent for a whole packet time at the detecting rate (12 ms at 1 Gb/s). The
//!   first DATA after a DET, and the first packet after the SYN, wait for nothing.
//! - DATA mode sends lost packets before new ones; DET mode probes while either is left; nothing is sent while all that remains is to
//!   hear of packets in flight.
//! - Round trips are measured on SYN and DATA, never on retransmissions (Karn), nor on DET, which waits behind everything.
//! - A packet is lost when its ACK has not come one RTO after it left; then the RTO doubles until the next DATAACK. When the timer
//!   expires, all packets in flight for longer than the RTO before any doubling are lost: those of one burst are found together. Each
//!   DATAACK names the packet it answers and all that arrived in one piece.
//! - A SYN is repeated after `syn_rto`, doubling; a FIN after the RTO, doubling, at most `fin_tries` times in all.
//! - After `dead_after` timeouts in a row without any ACK, a SYN asks for another path. Unanswered DETs are no timeouts: they may wait
//!   long behind the DATA of others.
//! - A DET has a round trip to be answered in. After that probes leave as SYNs, until a DET or DATA is answered, but with no more than 1/200
//!   of the NIC's rate, and after each 256 of them more slowly, down to a sixteenth: SYNs go before DATA, and thousands of flows may wait for a link. DETs do
//!   not get through a port whose queue of DATA never empties, and neither the flow nor the ports behind it would hear of each other.
//!   A SYN of a known flow is treated at ports as a DET is (Alg. 1 l. 8-12), but for its class.
//! - A port that does not know the flow of a DET, as after its link was down, says so; the next probe is then a SYN, which opens the
//!   flow there again. Without it the flow would probe for ever.
//! - The header's round trip tells ports how long the sender takes to use a grant: that of an empty network, since what waits in
//!   queues is sent meanwhile, and for a flow that probes half its gap between probes, since that is how long a grant waits for the
//!   next probe.
//! - A flow that finds a port's table full is handed to TCP NewReno on the capacity that MERP leaves: all its packets go in the class between
//!   DATA and DET, which is how ports know them. The SYN is marked by the port, the SYNACK brings the mark back; a flow that
//!   was open goes on from its first unacknowledged byte as after a timeout. Section 4.4 asks for "another stateless scheduler".
//! - BOOST and DETACK carry the same fields; duplicates and packets of unknown flows are acknowledged like any other.
//!
//! Deviates: nowhere from what the paper states; section 4.1 says nothing of the moment of the first probe (see Assumed).

use super::newreno::{self, NewReno};
use super::{Cx, Env, Transport};
use crate::flow::{Flow, FlowStats, Sample};
use crate::kit::rtt::{Rtt, RttConfig};
use crate::kit::scoreboard::Scoreboard;
use crate::kit::tcp::Options;
use crate::packet::{Kind, Packet};
use base::params::{Auto, Params as _, Problem};
use base::registry::{Meta, Needs};
use base::{Bytes, Dur, FlowId, FlowMap, Fraction, Rate, RateOr, Time, TimerKey};
use std::collections::VecDeque;
use std::ops::Range;

/// What `list` and `check` know of it.
pub const META: Meta = Meta {
    summary: "MERP hosts: paced by the rate that switches grant, probing while they wait",
    source: "Zhang et al., IEEE TPDS 28(11) 2017, sections 3, 4.1 and 4.2",
    needs: Needs { agent: &["merp"], qdisc: &["strict"], ..Needs::NONE },
};

base::choice! {
    /// How the expected rate travels between ports.
    pub enum EsrSync {
        /// Downstream in the packet, upstream by an echo of the sender in a field of its own: recovers one round trip after
        /// contention ends.
        Fresh = "fresh",
        /// The sender echoes into the same field, so that an expected rate can only fall: the literal reading of Alg. 1.
        Sticky = "sticky",
        /// Downstream only, no echo.
        Downstream = "downstream",
        /// Not at all.
        None = "none",
    }
}

base::params! {
    /// Parameters of MERP's hosts.
    pub struct Params {
        /// Detecting-rate threshold: a flow sends DATA when it is granted more.
        theta: RateOr = "0.8", "section 6.1: 0.8 Gb/s on 1 Gb/s";
        /// Size of a DET packet; other packets without payload have the size of a header.
        det_size: Bytes = "40B", "flowloom, see Assumed: with 1500 B a third-ranked flow would probe every 12 ms";
        /// Smallest gap between DET packets of a flow; bounds the cost of a small alpha.
        det_min_gap: Dur = "0us", "section 4.1: the granted rate alone";
        /// Smallest retransmission timeout.
        min_rto: Dur = "1ms", "flowloom: several round trips of a data center";
        /// Largest retransmission timeout, also of SYN and FIN.
        max_rto: Dur = "60s", "RFC 6298 rule 2.5";
        /// Retransmission timeout before the first round trip is known: that of the SYN.
        syn_rto: Dur = "1ms", "flowloom: as min_rto";
        /// Times a FIN is sent before the sender gives up on its FINACK.
        fin_tries: u32 = "8" in 1..=100, "flowloom, see Assumed";
        /// Timeouts in a row without any ACK until a SYN asks for another path.
        dead_after: u32 = "3" in 1..=100, "flowloom, see Assumed";
        /// How the sender echoes the expected rate; must be as the agent's.
        esr_sync: EsrSync = "fresh", "flowloom: section 4.3.1 is silent on the way upstream";
    }
}

/// Problems that show only against the network.
pub fn check(params: &Params, env: &Env) -> Vec<Problem> {
    let mut problems = Vec::new();
    let det = params.det_size;
    if det.0 < u64::from(env.header_bytes) || det.0 > u64::from(env.mtu_bytes) {
        problems.push(Problem {
            key: "det_size",
            message: format!("`{det}` is no packet size here: from {}B to {}B", env.header_bytes, env.mtu_bytes),
            hint: "leave `det_size` out: a probe needs a header only".to_owned(),
        });
    }
    if params.max_rto < params.min_rto {
        problems.push(Problem {
            key: "max_rto",
            message: format!("`{}` is below `min_rto` of {}", params.max_rto, params.min_rto),
            hint: "raise `max_rto`".to_owned(),
        });
    }
    problems
}

/// Probe of a waiting flow (DET).
pub const DET: Kind = Kind(Kind::OWN);
/// Answer to a probe (DETACK).
pub const DETACK: Kind = Kind(Kind::OWN + 1);
/// Answer to a probe that was granted enough for DATA (BOOST).
pub const BOOST: Kind = Kind(Kind::OWN + 2);

/// Classes of Table 2, strict priority.
const HIGH: u8 = 0;
const MIDDLE: u8 = 1;
const LOW: u8 = 3;
/// The class of flows that overflowed a table (section 4.4): no other packet has it.
pub const OVERFLOW: u8 = 2;

base::header! {
    /// What SYN, DATA and DET carry (section 4.1), in the extension slab. The flow's size is metadata.
    pub struct Header {
        /// Actual sending rate, bit/s: starts at the NIC's, lowered by every port.
        asr_bps: u64,
        /// Size / expected sending rate, ps: the largest so far on the way.
        expected_ps: u64,
        /// What the newest ACK said of it.
        expected_echo_ps: u64,
        /// Detecting-rate threshold, bit/s: lowered by ports slower than the NIC.
        theta_bps: u64,
        /// How long the sender takes to use a grant: its round trip, ps.
        rtt_ps: u64,
        /// See [`Header::paused`] and [`Header::is_paused_elsewhere`].
        pauses: u64,
        /// See [`Header::theta_share`], [`Header::ports`], [`Header::REROUTE`], [`UNKNOWN`] and [`STATELESS`].
        bits: u64,
    }
}

base::header! {
    /// What SYNACK, DATAACK, DETACK and BOOST carry: copied from the packet they answer (section 4.2).
    pub struct Answer {
        /// Granted rate, bit/s.
        asr_bps: u64,
        /// Size / expected sending rate on the whole path, ps.
        expected_ps: u64,
        /// Detecting-rate threshold of the path, bit/s.
        theta_bps: u64,
        /// When the answered packet was handed to the NIC, ps.
        tx_time_ps: u64,
        /// The ports that pause the flow: see [`Header::paused`].
        paused: u32,
        /// Payload offset of the answered packet.
        acked: u64,
        /// [`UNKNOWN`], [`STATELESS`].
        bits: u64,
    }
}

/// Bit of both headers: a port did not know the flow.
pub const UNKNOWN: u64 = 1;
/// The SYNs among a flow's probes have one part in so many of its NIC's rate.
const SYN_SHARE: u64 = 200;
/// After each so many SYNs without any other answer they come more slowly, by that rate's gap at a time.
const SYN_PATIENCE: u64 = 256;
/// But never with more than so many of these gaps between them.
const SYN_SLOWEST: u64 = 16;

/// Bit of a SYN and its SYNACK: a port has no room for the flow in its table.
pub const STATELESS: u64 = 4;

impl Header {
    /// Bit: the sender asks for another path.
    pub const REROUTE: u64 = 2;

    /// How many ports the packet has left behind.
    #[inline]
    pub fn ports(&self) -> u32 {
        (self.bits >> 8) as u32 & 0xff
    }
    /// The ports so far that pause the flow: bit i for the i-th on the way, the last one for all from there on.
    #[inline]
    pub fn paused(&self) -> u32 {
        self.pauses as u32
    }
    /// Whether a port pauses the flow other than the one where the packet is: one before it, as it said just now, or one behind it, as
    /// the newest ACK said.
    #[inline]
    pub fn is_paused_elsewhere(&self) -> bool {
        self.paused() != 0 || self.pauses >> 32 >> self.ports() > 1
    }
    /// The packet leaves a port, which pauses the flow or does not.
    #[inline]
    pub fn leave(&mut self, pauses: bool) {
        self.pauses |= u64::from(pauses) << self.ports();
        if self.ports() + 1 < u32::BITS {
            self.bits += 1 << 8;
        }
    }
    /// The threshold as a share of the sender's NIC, rounded up.
    #[inline]
    pub fn theta_share(&self) -> Fraction {
        Fraction(self.bits >> 32)
    }
}

/// The bytes of the flow that a DATA packet holds, counted on the wire: one header per packet from the start of the flow on.
pub fn wire_span(packet: &Packet, flow: &Flow, header_bytes: u16) -> Range<u64> {
    let payload = u64::from(packet.payload);
    let to = packet.offset + payload;
    // All packets but the last are full and start at multiples of their payload.
    let end = if to >= flow.size_bytes { flow.size_wire_bytes } else { to + to / payload * u64::from(header_bytes) };
    end - u64::from(packet.wire_len)..end
}

/// Timers of a flow.
const PACE: u8 = 0;
const RTO: u8 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    SynSent,
    Det,
    Data,
    FinSent,
}

/// What all flows of a host have in common.
struct Setup {
    params: Params,
    nic_rate: Rate,
    theta: Rate,
    theta_share: Fraction,
    det_size: u16,
    rtt: RttConfig,
    mss: u64,
    header_bytes: u16,
}

/// The sender's side of a flow.
struct Snd {
    flow: FlowId,
    mode: Mode,
    /// The granted rate.
    rate: Rate,
    /// DATA packets of the flow.
    packets: Scoreboard,
    /// Departure of the packet before, and its length, or 0 if it was a DET.
    last: Option<(Time, u16)>,
    /// Whether it is on the ready list.
    ready: bool,
    rtt: Rtt,
    /// Timeouts in a row without any ACK.
    silent: u32,
    /// How often SYN was sent or, later, FIN.
    tries: u32,
    /// Departure of the last DATA or DET that was answered, or of the SYN; `None` while a port does not know the flow.
    answered: Option<Time>,
    /// From when on the next probe may be a SYN, and how many there were since one of another kind was answered.
    reopen: (Time, u64),
    /// Departure of the packet whose answer was applied last.
    applied: Option<Time>,
    /// What that answer said of the expected rate and of the ports that pause the flow.
    expected_echo_ps: u64,
    paused_echo: u32,
    timeouts: u32,
}

impl Setup {
    /// The header of a packet that leaves now (section 4.1: asr starts at the capacity of the adjacent link, esr at infinity).
    fn header(&self, snd: &Snd, flow: &Flow, bits: u64) -> Header {
        let (expected_ps, expected_echo_ps) = match self.params.esr_sync {
            EsrSync::Fresh => (0, snd.expected_echo_ps),
            EsrSync::Sticky => (snd.expected_echo_ps, 0),
            EsrSync::Downstream | EsrSync::None => (0, 0),
        };
        Header {
            asr_bps: self.nic_rate.0,
            expected_ps,
            expected_echo_ps,
            theta_bps: self.theta.0,
            rtt_ps: flow.rtt.ps() + if snd.mode == Mode::Det { self.probe_gap(snd.rate).ps() / 2 } else { 0 },
            pauses: u64::from(snd.paused_echo) << 32,
            bits: bits | self.theta_share.0 << 32,
        }
    }
    /// Between the probes of a flow that is granted `rate`.
    fn probe_gap(&self, rate: Rate) -> Dur {
        rate.gap(u64::from(self.det_size)).max(self.params.det_min_gap)
    }
    /// A packet without payload.
    fn bare(&self, flow: FlowId, kind: Kind, prio: u8) -> Packet {
        Packet { prio, ..Packet::new(flow, kind, self.header_bytes) }
    }
}

impl Snd {
    fn new(flow: &Flow, set: &Setup) -> Snd {
        Snd {
            flow: flow.id,
            mode: Mode::SynSent,
            rate: set.nic_rate,
            packets: Scoreboard::new(flow.size_bytes.div_ceil(set.mss)),
            last: None,
            ready: false,
            rtt: Rtt::new(&set.rtt),
            silent: 0,
            tries: 0,
            answered: None,
            reopen: (Time::ZERO, 0),
            applied: None,
            expected_echo_ps: 0,
            paused_echo: 0,
            timeouts: 0,
        }
    }

    /// Whether there is DATA left to send.
    fn has_data(&mut self) -> bool {
        matches!(self.mode, Mode::Det | Mode::Data) && self.packets.peek().is_some()
    }

    /// When the next packet may leave.
    fn due(&self, set: &Setup) -> Time {
        let Some((at, data_len)) = self.last else { return Time::ZERO };
        at.after(match self.mode {
            Mode::Det => set.probe_gap(self.rate),
            _ => self.rate.gap(u64::from(data_len)),
        })
    }
    /// Puts a flow that has DATA left on the ready list, now or when its next packet is due.
    fn pace(&mut self, set: &Setup, ready: &mut VecDeque<FlowId>, cx: &mut Cx<'_>) {
        if self.ready || !self.has_data() {
            return;
        }
        let due = self.due(set);
        if due > cx.now {
            cx.arm(self.flow, PACE, due);
        } else {
            self.ready = true;
            ready.push_back(self.flow);
        }
    }
    /// Sets the retransmission timer to when the oldest packet in flight counts as lost.
    fn arm_rto(&self, cx: &mut Cx<'_>) {
        match self.packets.oldest() {
            Some(at) => cx.arm(self.flow, RTO, at.after(self.rtt.rto())),
            None => cx.disarm(self.flow, RTO),
        }
    }

    fn send_syn(&mut self, set: &Setup, bits: u64, cx: &mut Cx<'_>) {
        let mut syn = set.bare(self.flow, Kind::SYN, HIGH);
        syn.set_ext(set.header(self, cx.flow(self.flow), bits), cx.ext);
        if self.tries > 0 {
            syn.flags |= Packet::RETX;
        }
        self.tries += 1;
        cx.control(syn);
    }
    fn send_fin(&mut self, set: &Setup, cx: &mut Cx<'_>) {
        self.tries += 1;
        cx.arm(self.flow, RTO, cx.now.after(self.rtt.rto()));
        cx.control(set.bare(self.flow, Kind::FIN, MIDDLE));
    }
    /// Whether the flow's probes get through: all that have had a round trip's time are answered.
    fn is_answered(&self, rtt: Dur, set: &Setup, now: Time) -> bool {
        self.answered.is_some_and(|left| left.after(set.probe_gap(self.rate)).after(rtt) >= now)
    }
    /// The packet that is due: DATA, lost ones first, or a probe: a DET, or a SYN while DETs do not get through.
    fn transmit(&mut self, set: &Setup, cx: &mut Cx<'_>) -> Packet {
        let flow = cx.flow(self.flow);
        let mut packet = if self.mode == Mode::Det {
            self.last = Some((cx.now, 0));
            let (gap, (from, syns)) = (set.probe_gap(self.rate), self.reopen);
            if self.is_answered(flow.rtt, set, cx.now) || cx.now.after(gap / 2) < from {
                Packet { prio: LOW, ..Packet::new(self.flow, DET, set.det_size) }
            } else {
                let least = Rate(set.nic_rate.0 / SYN_SHARE).gap(u64::from(set.header_bytes)).max(gap);
                self.reopen = (cx.now.after(least * (1 + syns / SYN_PATIENCE).min(SYN_SLOWEST)), syns + 1);
                Packet { flags: Packet::RETX, ..set.bare(self.flow, Kind::SYN, HIGH) }
            }
        } else {
            let (number, resent) = self.packets.take(cx.now).expect("a flow that is due has DATA");
            let offset = number * set.mss;
            let payload = (flow.size_bytes - offset).min(set.mss) as u16;
            let data = Packet::data(self.flow, offset, payload, set.header_bytes);
            if !cx.is_armed(self.flow, RTO) {
                self.arm_rto(cx);
            }
            self.last = Some((cx.now, data.wire_len));
            Packet { prio: MIDDLE, flags: if resent { Packet::RETX } else { 0 }, ..data }
        };
        packet.set_ext(set.header(self, flow, 0), cx.ext);
        packet
    }

    /// SYNACK, DATAACK, DETACK or BOOST (section 4.1).
    fn on_answer(&mut self, packet: &Packet, set: &Setup, cx: &mut Cx<'_>) {
        if self.mode == Mode::FinSent {
            return;
        }
        let answer: Answer = packet.get_ext(cx.ext);
        let tx_time = Time(answer.tx_time_ps);
        self.silent = 0;
        if answer.bits & UNKNOWN != 0 {
            (self.answered, self.reopen.0) = (None, Time::ZERO);
        } else if packet.kind != Kind::SYNACK || self.answered.is_none() {
            self.answered = self.answered.max(Some(tx_time));
            self.reopen = (Time::ZERO, 0);
        }
        if matches!(packet.kind, Kind::ACK | Kind::SYNACK) && !packet.has(Packet::RETX) {
            self.rtt.on_sample(cx.now.since(tx_time), &set.rtt);
        }
        if packet.kind == Kind::ACK {
            self.rtt.end_back_off(&set.rtt);
            self.packets.on_acked(answer.acked / set.mss, packet.offset.div_ceil(set.mss));
        }
        if self.packets.is_done() {
            self.mode = Mode::FinSent;
            self.tries = 0;
            cx.disarm(self.flow, PACE);
            self.send_fin(set, cx);
            return;
        }
        if self.applied.is_none_or(|newest| tx_time > newest) {
            self.applied = Some(tx_time);
            self.expected_echo_ps = answer.expected_ps;
            self.paused_echo = answer.paused;
            self.rate = Rate(answer.asr_bps.max(1));
            let granted = packet.kind == BOOST || answer.asr_bps > answer.theta_bps;
            self.mode = if granted { Mode::Data } else { Mode::Det };
        }
        self.arm_rto(cx);
    }

    /// The retransmission timer of an open flow.
    fn on_rto(&mut self, set: &Setup, cx: &mut Cx<'_>) {
        match self.mode {
            Mode::SynSent => {
                self.timeouts += 1;
                self.rtt.on_timeout(&set.rtt);
                cx.arm(self.flow, RTO, cx.now.after(self.rtt.rto()));
                let dead = self.tries.is_multiple_of(set.params.dead_after);
                self.send_syn(set, if dead { Header::REROUTE } else { 0 }, cx);
            }
            Mode::FinSent => {
                self.timeouts += 1;
                self.rtt.on_timeout(&set.rtt);
                self.send_fin(set, cx);
            }
            Mode::Det | Mode::Data => {
                // Without the back-off: packets lost in one burst are found lost together.
                if self.packets.lose(self.rtt.base_rto(&set.rtt), cx.now) {
                    self.timeouts += 1;
                    self.rtt.on_timeout(&set.rtt);
                    self.silent += 1;
                    if self.silent.is_multiple_of(set.params.dead_after) {
                        self.send_syn(set, Header::REROUTE, cx);
                    }
                }
                self.arm_rto(cx);
            }
        }
    }
}

/// The machine of one host.
pub struct Merp {
    set: Setup,
    flows: FlowMap<Snd>,
    /// Flows whose next packet is due, the one due longest first. What is no more due when its turn comes is passed over.
    ready: VecDeque<FlowId>,
    /// Has the flows that overflowed a table.
    tcp: NewReno,
}

impl Merp {
    /// A host without flows.
    pub fn new(params: &Params, env: &Env) -> Self {
        let theta = params.theta.on(env.nic_rate);
        let share = (u128::from(theta.0) * u128::from(Fraction::ONE.0)).div_ceil(u128::from(env.nic_rate.0));
        let set = Setup {
            params: params.clone(),
            nic_rate: env.nic_rate,
            theta,
            theta_share: Fraction(share.min(u128::from(Fraction::ONE.0)) as u64),
            rtt: RttConfig { init_rto: params.syn_rto, min_rto: params.min_rto, max_rto: params.max_rto, clock: Dur::ZERO },
            det_size: params.det_size.0.min(u64::from(env.mtu_bytes)) as u16,
            mss: u64::from(env.mss()),
            header_bytes: env.header_bytes,
        };
        let (min_rto, max_rto, init_rto) = (params.min_rto, params.max_rto, Auto::Set(params.syn_rto));
        let mut tcp = newreno::Params::defaults();
        tcp.tcp = Options { handshake: false, min_rto, max_rto, init_rto, ..tcp.tcp };
        Merp { set, flows: FlowMap::default(), ready: VecDeque::new(), tcp: NewReno::new(&tcp, env) }
    }

    /// Answers SYN, DATA, DET and FIN (section 4.2).
    fn receive(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        if packet.kind == Kind::FIN {
            cx.control(self.set.bare(packet.flow, Kind::FINACK, MIDDLE));
            return;
        }
        let header: Header = packet.get_ext(cx.ext);
        let mut ack = match packet.kind {
            Kind::SYN => self.set.bare(packet.flow, Kind::SYNACK, HIGH),
            Kind::DATA => self.set.bare(packet.flow, Kind::ACK, MIDDLE),
            _ if header.asr_bps > header.theta_bps => self.set.bare(packet.flow, BOOST, HIGH),
            _ => self.set.bare(packet.flow, DETACK, LOW),
        };
        if packet.kind == Kind::DATA {
            ack.offset = cx.deliver(packet.flow, packet.offset, packet.payload).next;
        }
        let answer = Answer {
            asr_bps: header.asr_bps,
            expected_ps: header.expected_ps,
            theta_bps: header.theta_bps,
            tx_time_ps: packet.sent_at.ps(),
            paused: header.paused(),
            acked: packet.offset,
            bits: header.bits & (UNKNOWN | STATELESS),
        };
        ack.set_ext(answer, cx.ext);
        ack.flags |= packet.flags & Packet::RETX;
        cx.control(ack);
    }

    /// A port has no room for the flow: TCP goes on with it.
    fn overflow(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        if self.flows.get(flow).is_none_or(|snd| snd.mode == Mode::FinSent) {
            return;
        }
        let snd = self.flows.remove(flow).expect("looked up above");
        cx.disarm(flow, PACE);
        cx.disarm(flow, RTO);
        let [acked, sent] = snd.packets.ends().map(|number| (number * self.set.mss).min(cx.flow(flow).size_bytes));
        let stats = FlowStats { timeouts: snd.timeouts, fast_retransmits: 0 };
        self.with_tcp(cx, |tcp, cx| tcp.resume(flow, acked, sent, stats, cx));
    }
    /// All that TCP sends goes in the class of overflowed flows.
    fn with_tcp(&mut self, cx: &mut Cx<'_>, act: impl FnOnce(&mut NewReno, &mut Cx<'_>)) {
        let before = cx.io.control.len();
        act(&mut self.tcp, cx);
        cx.io.control.range_mut(before..).for_each(|packet| packet.prio = OVERFLOW);
    }

    fn close(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        let snd = self.flows.remove(flow).expect("an open flow is closed");
        cx.close(flow, FlowStats { timeouts: snd.timeouts, fast_retransmits: 0 });
    }
}

impl Transport for Merp {
    fn on_flow(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        let mut snd = Snd::new(cx.flow(flow), &self.set);
        snd.send_syn(&self.set, 0, cx);
        cx.arm(flow, RTO, cx.now.after(snd.rtt.rto()));
        self.flows.insert(flow, snd);
    }
    fn on_packet(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        match packet.kind {
            _ if packet.prio == OVERFLOW => self.with_tcp(cx, |tcp, cx| tcp.on_packet(packet, cx)),
            Kind::SYN | Kind::DATA | Kind::FIN | DET => self.receive(packet, cx),
            Kind::SYNACK if packet.get_ext::<Answer>(cx.ext).bits & STATELESS != 0 => self.overflow(packet.flow, cx),
            Kind::SYNACK | Kind::ACK | DETACK | BOOST => {
                let Some(snd) = self.flows.get_mut(packet.flow) else { return };
                snd.on_answer(packet, &self.set, cx);
                snd.pace(&self.set, &mut self.ready, cx);
            }
            Kind::FINACK if self.flows.get(packet.flow).is_some_and(|snd| snd.mode == Mode::FinSent) => self.close(packet.flow, cx),
            _ => {}
        }
    }
    fn on_timer(&mut self, key: TimerKey, cx: &mut Cx<'_>) {
        let Some(snd) = self.flows.get_mut(key.flow) else { return self.with_tcp(cx, |tcp, cx| tcp.on_timer(key, cx)) };
        if key.kind == RTO {
            if snd.mode == Mode::FinSent && snd.tries >= self.set.params.fin_tries {
                self.close(key.flow, cx);
                return;
            }
            snd.on_rto(&self.set, cx);
        }
        snd.pace(&self.set, &mut self.ready, cx);
    }
    fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        while let Some(flow) = self.ready.pop_front() {
            let Some(snd) = self.flows.get_mut(flow) else { continue };
            snd.ready = false;
            let packet = (snd.has_data() && snd.due(&self.set) <= cx.now).then(|| snd.transmit(&self.set, cx));
            snd.pace(&self.set, &mut self.ready, cx);
            if packet.is_some() {
                return packet;
            }
        }
        self.tcp.poll_transmit(cx).map(|packet| Packet { prio: OVERFLOW, ..packet })
    }
    fn sample(&self, flow: FlowId) -> Option<Sample> {
        let Some(snd) = self.flows.get(flow) else { return self.tcp.sample(flow) };
        Some(Sample {
            srtt: snd.rtt.srtt(),
            rate: if snd.mode == Mode::Data { snd.rate } else { Rate(0) },
            in_flight_bytes: snd.packets.in_flight() * self.set.mss,
            ..Sample::default()
        })
    }
    fn kind_name(&self, kind: Kind) -> Option<&'static str> {
        match kind {
            DET => Some("det"),
            DETACK => Some("detack"),
            BOOST => Some("boost"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;

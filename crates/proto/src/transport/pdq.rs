//! PDQ hosts: ports on the path allot each flow a rate, most critical flow first, which paces the
//! flow. Paused flows send probes.
//!
//! Source: C.-Y. Hong, M. Caesar, P. B. Godfrey, "Finishing Flows Quickly with Preemptive Scheduling", SIGCOMM 2012 (arXiv
//! 1206.2057), section 3: scheduling header, sender, receiver. The ports are the agent `pdq`.
//!
//! Model: flow sizes and deadlines are known at the start and are metadata of the flow, not bytes
//! of the header. The scheduling header takes 16 bytes in the paper; here it is part of the header
//! of every packet. There is no window: the allotted rate bounds the bytes in flight. Receivers set
//! no limit of their own. Multipath PDQ (section 6) is left out.
//!
//! Assumed:
//! - T, the expected transmission time, is the time that the packets not yet sent and the packets
//!   found lost take on the wire at the rate of the NIC. Packets in flight do not count: they need
//!   no more time on the links, and a flow that has sent everything can still meet its deadline.
//! - The SYN carries the header and is treated like a probe (`syn_probe`), which saves a round
//!   trip; without `syn_probe` a probe follows the SYNACK, as in the paper.
//! - Packets leave with R = rate of the NIC and I = 0; ports lower R and raise I.
//! - A flow requests a rate at least every max(I, 1) round trips while it has packets to send: if
//!   its rate is so low that no DATA is due by then, it probes as if it were paused. Otherwise it
//!   would learn that a link is free only after a whole packet gap.
//! - At most one probe is outstanding; a probe without an answer for the retransmission timeout is
//!   lost, and doubles the timeout.
//! - A port that pauses a flow sets R to 0. If a packet carries a pause and still has a rate at the
//!   receiver, it has not passed the port that pauses the flow: the path has changed. The receiver
//!   then clears the pause; otherwise the flow would wait for a port that is not on its path.
//! - An answer counts only if the packet that it answers left later than the packet of the newest
//!   applied answer.
//! - The next departure is the departure of the previous packet plus the length of that packet at
//!   the current rate; after a pause the next packet does not wait.
//! - A packet is lost when its ACK has not arrived one RTO after its departure; then the RTO
//!   doubles until the next answer. When the timer expires, all packets in flight for longer than
//!   the RTO before any doubling are lost. Each ACK carries the packet that it answers and the
//!   first missing byte.
//! - A flow ends with the ACK of its last byte, or by early termination; in both cases one FIN (the
//!   paper's TERM) clears the ports. The FIN is not answered: if it is lost, ports forget the flow
//!   after a while.
//!
//! Deviates: no known deviation.

use crate::contract::{Cx, Env, Timeout, Timers, Transport};
use crate::flow::{Flow, Sample};
use crate::kit::pace::{NEXT, RTO, Ready, Sender};
use crate::kit::rtt::{self, RttConfig};
use crate::packet::{Kind, Packet};
use base::params::{Auto, Problem};
use base::registry::{Meta, Needs};
use base::{Dur, FlowId, FlowMap, Fraction, LinkId, Rate, Time, TimerKey};

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "PDQ hosts: ports set explicit rates, pause and preempt flows; flows that must miss their deadline end early",
    source: "Hong et al., SIGCOMM 2012, section 3",
    needs: Needs { agent: &["pdq"], qdisc: &["droptail"], reverse_path: true, ..Needs::NONE },
    knows: &["size", "deadline"],
    packets_only: "its ports serve the most critical flows first",
    host: "a simulator of its authors that is not public; rates keep the queue short",
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of PDQ's hosts.
    pub struct Params {
        /// Whether the SYN requests a rate from the ports; otherwise the first probe does, one
        /// round trip later.
        syn_probe: bool = "true", "flowloom, see Assumed; the paper's SYN requests no rate";
        /// Whether a flow is given up as soon as it cannot meet its deadline.
        early_termination: bool = "true", "section 3.1";
        /// Smallest retransmission timeout; `auto`: 1 ms, at least three unloaded round trips of the longest path.
        min_rto: Auto<Dur> = "auto" in Auto::Set(Dur::from_us(1))..=Auto::Set(Dur::from_secs(60)), "flowloom: several round trips of a data center";
        /// Largest retransmission timeout.
        max_rto: Dur = "60s" in Dur::from_us(1)..=Dur::from_secs(3600), "RFC 6298 rule 2.5";
        /// Retransmission timeout before the first round-trip sample, also of the SYN; `auto`: 1
        /// ms, at least three unloaded round trips of the longest path.
        syn_rto: Auto<Dur> = "auto" in Auto::Set(Dur::from_us(1))..=Auto::Set(Dur::from_secs(60)), "flowloom: as min_rto";
    }
}

/// Returns the problems that depend on the network, and contradictions between parameters.
pub fn check(params: &Params, _env: &Env<'_>) -> Vec<Problem> {
    rtt::above_largest(&[("min_rto", params.min_rto), ("syn_rto", params.syn_rto)], params.max_rto)
}

base::header! {
    /// The scheduling header of SYN, DATA and PROBE, copied into their answers; in the extension
    /// slab. The flow's deadline (D) is metadata.
    pub struct Header {
        /// R: the rate of the NIC, lowered by every port, bit/s; 0 in answers that pause the flow.
        rate_bps: u64,
        /// P: see [`Header::is_paused`].
        paused_by: u32,
        /// T: the time that the remaining bytes of the flow need at the rate of the NIC, ps.
        expected_ps: u64,
        /// The sender's smoothed round trip, ps.
        rtt_ps: u64,
        /// I: round trips between probes, in parts per billion.
        probe_rtts: u64,
        /// In answers: when the answered packet was handed to the NIC, ps.
        tx_time_ps: u64,
        /// In answers: payload offset of the answered packet.
        acked: u64,
    }
}

impl Header {
    /// Returns whether a port pauses the flow.
    #[inline]
    pub fn is_paused(&self) -> bool {
        self.paused_by != 0
    }
    /// Returns whether a port other than `port` pauses the flow.
    #[inline]
    pub fn is_paused_by_other_port(&self, port: LinkId) -> bool {
        self.is_paused() && self.paused_by != port.0 + 1
    }
    /// Records that `port` pauses the flow.
    #[inline]
    pub fn pause(&mut self, port: LinkId) {
        (self.paused_by, self.rate_bps) = (port.0 + 1, 0);
    }
    /// Records that no port pauses the flow: it may send at `rate`, or at the rate that other ports
    /// allot if that is less.
    #[inline]
    pub fn allot(&mut self, rate: Rate) {
        (self.paused_by, self.rate_bps) = (0, self.rate_bps.min(rate.0));
    }
}

/// Timer of a flow in addition to the pacing timers: the time at which the flow can no longer meet
/// its deadline. The first pacing timer serves DATA and probes.
const END: u8 = 2;

/// The configuration of a host.
struct Setup {
    params: Params,
    nic_rate: Rate,
    rtt: RttConfig,
    mss: u64,
    mtu_bytes: u64,
    header_bytes: u16,
}

/// A flow at its sender.
struct Snd {
    tx: Sender,
    /// The SYN was answered.
    open: bool,
    /// R: 0 while paused.
    rate: Rate,
    /// P.
    paused_by: u32,
    /// I.
    probe_rtts: Fraction,
    /// When a packet last requested a rate.
    asked: Option<Time>,
    /// When the outstanding probe was sent.
    probing: Option<Time>,
    /// Departure of the packet whose answer was applied last.
    applied: Option<Time>,
}

/// The next action of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Data(Time),
    Probe(Time),
    Nothing,
}

impl Setup {
    /// Returns the header of a packet that leaves now.
    fn header(&self, snd: &Snd, flow: &Flow) -> Header {
        Header {
            rate_bps: self.nic_rate.0,
            paused_by: snd.paused_by,
            expected_ps: snd.expected(self, flow).ps(),
            rtt_ps: snd.round_trip(flow).ps(),
            ..Header::default()
        }
    }
    /// Returns a packet without payload that requests a rate.
    fn bare(&self, snd: &Snd, kind: Kind, cx: &mut Cx<'_>) -> Packet {
        let mut packet = Packet::new(snd.tx.flow, kind, self.header_bytes);
        packet.set_ext(self.header(snd, cx.flow(snd.tx.flow)), cx.ext);
        packet
    }
}

impl Snd {
    fn new(flow: &Flow, set: &Setup) -> Snd {
        Snd {
            tx: Sender::new(flow, set.mss, &set.rtt),
            open: false,
            rate: Rate(0),
            paused_by: 0,
            probe_rtts: Fraction(0),
            asked: None,
            probing: None,
            applied: None,
        }
    }
    /// Returns the smoothed round trip, or the unloaded one before the first sample.
    fn round_trip(&self, flow: &Flow) -> Dur {
        if self.tx.rtt.srtt() > Dur::ZERO { self.tx.rtt.srtt() } else { flow.rtt }
    }
    /// Returns T: the time that the packets to be sent take on the wire at the rate of the NIC.
    fn expected(&self, set: &Setup, flow: &Flow) -> Dur {
        let last = flow.size_bytes.div_ceil(set.mss) - 1;
        let short = if self.tx.packets.waits(last) { (last + 1) * set.mss - flow.size_bytes } else { 0 };
        set.nic_rate.gap(self.tx.packets.waiting() * set.mtu_bytes - short)
    }
    fn has_data(&mut self) -> bool {
        self.open && self.tx.packets.peek().is_some()
    }

    /// Returns the next action, DATA or a probe, and when it is due.
    fn next(&mut self, flow: &Flow) -> Next {
        if !self.has_data() {
            return Next::Nothing;
        }
        let interval = self.round_trip(flow).times(self.probe_rtts.max(Fraction::ONE));
        let probe = match (self.probing, self.asked) {
            (Some(at), _) => at.after(self.tx.rtt.rto().max(interval)),
            (None, Some(at)) => at.after(interval),
            (None, None) => Time::ZERO,
        };
        let data = if self.rate == Rate(0) { Time::MAX } else { self.tx.due(self.rate) };
        if data <= probe { Next::Data(data) } else { Next::Probe(probe) }
    }
    /// Sends the probe that is due, puts a flow whose DATA is due on the ready list, or sets the
    /// timer for the next of them.
    fn pace(&mut self, set: &Setup, ready: &mut Ready, cx: &mut Cx<'_>) {
        if self.tx.is_ready() {
            return;
        }
        let flow = cx.flow(self.tx.flow);
        let mut next = self.next(flow);
        if matches!(next, Next::Probe(at) if at <= cx.now) {
            self.send_probe(set, cx);
            next = self.next(flow);
        }
        match next {
            Next::Data(at) => self.tx.wait(at, ready, cx),
            Next::Probe(at) => cx.arm(self.tx.flow, NEXT, at),
            Next::Nothing => cx.disarm(self.tx.flow, NEXT),
        }
    }
    fn send_probe(&mut self, set: &Setup, cx: &mut Cx<'_>) {
        if self.probing.is_some() {
            self.tx.back_off(&set.rtt, cx);
        }
        (self.asked, self.probing) = (Some(cx.now), Some(cx.now));
        let probe = set.bare(self, Kind::PROBE, cx);
        cx.control(probe);
    }
    fn send_syn(&mut self, set: &Setup, cx: &mut Cx<'_>) {
        let mut syn = if set.params.syn_probe {
            self.asked = Some(cx.now);
            set.bare(self, Kind::SYN, cx)
        } else {
            Packet::new(self.tx.flow, Kind::SYN, set.header_bytes)
        };
        if self.tx.timeouts > 0 {
            syn.flags |= Packet::RETX;
        }
        cx.arm(self.tx.flow, RTO, cx.now.after(self.tx.rtt.rto()));
        cx.control(syn);
    }
    /// Returns the DATA packet that is due.
    fn transmit(&mut self, set: &Setup, cx: &mut Cx<'_>) -> Packet {
        // T includes the packet that leaves now.
        let header = set.header(self, cx.flow(self.tx.flow));
        let mut data = self.tx.take(set.header_bytes, cx);
        data.set_ext(header, cx.ext);
        self.asked = Some(cx.now);
        data
    }

    /// Handles a SYNACK, ACK or PROBEACK.
    fn on_answer(&mut self, packet: &Packet, set: &Setup, cx: &mut Cx<'_>) {
        let was_open = std::mem::replace(&mut self.open, true);
        if packet.has(Packet::EXT) {
            let answer: Header = packet.get_ext(cx.ext);
            let tx_time = Time(answer.tx_time_ps);
            self.tx.rtt.on_sample(cx.now.since(tx_time), &set.rtt);
            if packet.kind == Kind::ACK {
                self.tx.packets.on_acked(answer.acked / set.mss, packet.offset.div_ceil(set.mss));
            }
            if self.probing.is_some_and(|at| tx_time >= at) {
                self.probing = None;
            }
            if self.applied.is_none_or(|newest| tx_time > newest) {
                self.applied = Some(tx_time);
                (self.rate, self.paused_by) = (Rate(answer.rate_bps), answer.paused_by);
                self.probe_rtts = Fraction(answer.probe_rtts);
            }
        } else if !was_open && self.tx.timeouts == 0 {
            // The SYNACK of a SYN that was sent once: the sample is the time since the flow was
            // opened.
            self.tx.rtt.on_sample(cx.now.since(cx.flow(self.tx.flow).start), &set.rtt);
        }
        self.tx.arm_rto(cx);
    }
    /// Handles the expiry of the retransmission timer.
    fn on_rto(&mut self, set: &Setup, cx: &mut Cx<'_>) {
        if self.open {
            self.tx.on_rto(&set.rtt, cx);
        } else {
            self.tx.back_off(&set.rtt, cx);
            self.send_syn(set, cx);
        }
    }

    /// Returns the flow's deadline, and the least time that the flow still needs (section 3.1,
    /// early termination): T for the remaining bytes, and for a paused flow a round trip until it
    /// learns that it may send.
    fn pressure(&mut self, set: &Setup, flow: &Flow) -> Option<(Time, Dur)> {
        let deadline = flow.deadline.filter(|_| set.params.early_termination)?;
        let wait = if self.has_data() && self.rate == Rate(0) { self.round_trip(flow) } else { Dur::ZERO };
        Some((deadline, self.expected(set, flow).max(wait)))
    }
}

/// The machine of one host.
pub struct Pdq {
    set: Setup,
    flows: FlowMap<Snd>,
    /// Flows whose next DATA is due.
    ready: Ready,
}

impl Pdq {
    /// Creates a host without flows.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let usual = env.timeout(Dur::from_ms(1)).min(params.max_rto);
        let set = Setup {
            params: params.clone(),
            nic_rate: env.nic_rate,
            rtt: RttConfig {
                init_rto: env.auto("syn_rto", params.syn_rto, usual),
                min_rto: env.auto("min_rto", params.min_rto, usual),
                max_rto: params.max_rto,
                clock: Dur::ZERO,
            },
            mss: u64::from(env.mss()),
            mtu_bytes: u64::from(env.mtu_bytes),
            header_bytes: env.header_bytes,
        };
        Pdq { set, flows: FlowMap::default(), ready: Ready::default() }
    }

    /// Answers SYN, DATA and PROBE: the receiver copies the header (section 3.2).
    fn receive(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        let kind = match packet.kind {
            Kind::SYN => Kind::SYNACK,
            Kind::DATA => Kind::ACK,
            _ => Kind::PROBEACK,
        };
        let mut ack = Packet::new(packet.flow, kind, self.set.header_bytes);
        if packet.kind == Kind::DATA {
            ack.offset = cx.deliver(packet.flow, packet.offset, packet.payload).next;
        }
        if packet.has(Packet::EXT) {
            let mut header: Header = packet.get_ext(cx.ext);
            if header.is_paused() && header.rate_bps > 0 {
                (header.paused_by, header.rate_bps) = (0, 0);
            }
            ack.set_ext(Header { tx_time_ps: packet.sent_at.ps(), acked: packet.offset, ..header }, cx.ext);
        }
        cx.control(ack);
    }

    /// Forgets an open flow.
    fn end(&mut self, flow: FlowId, done: bool, cx: &mut Cx<'_>) {
        let Some(snd) = self.flows.remove(flow) else { return };
        // A flow that could not meet its deadline from the start has sent nothing.
        if snd.open || cx.is_armed(flow, RTO) {
            cx.control(Packet::new(flow, Kind::FIN, self.set.header_bytes));
        }
        if done { cx.close(flow) } else { cx.terminate(flow) }
    }

    /// Called after every event of a flow: ends the flow if it is done or must miss its deadline,
    /// otherwise continues it.
    fn go_on(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        let Some(snd) = self.flows.get_mut(flow) else { return };
        let pressure = snd.pressure(&self.set, cx.flow(flow));
        let hopeless = pressure.is_some_and(|(deadline, needed)| cx.now.after(needed) > deadline);
        if snd.tx.packets.is_done() {
            return self.end(flow, true, cx);
        }
        if hopeless {
            return self.end(flow, false, cx);
        }
        if let Some((deadline, needed)) = pressure {
            cx.arm(flow, END, deadline.before(needed).after(Dur(1)));
        }
        snd.pace(&self.set, &mut self.ready, cx);
    }
}

impl Transport for Pdq {
    fn on_flow(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        self.flows.insert(flow, Snd::new(cx.flow(flow), &self.set));
        self.go_on(flow, cx);
        if let Some(snd) = self.flows.get_mut(flow) {
            snd.send_syn(&self.set, cx);
        }
    }
    fn on_packet(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        match packet.kind {
            Kind::SYN | Kind::DATA | Kind::PROBE => self.receive(packet, cx),
            Kind::SYNACK | Kind::ACK | Kind::PROBEACK => {
                let Some(snd) = self.flows.get_mut(packet.flow) else { return };
                snd.on_answer(packet, &self.set, cx);
                self.go_on(packet.flow, cx);
            }
            // Ports read the FIN; the receiver keeps no state.
            _ => {}
        }
    }
    fn on_timer(&mut self, key: TimerKey, cx: &mut Cx<'_>) {
        let Some(snd) = self.flows.get_mut(key.flow) else { return };
        if key.kind == RTO {
            snd.on_rto(&self.set, cx);
        }
        self.go_on(key.flow, cx);
    }
    fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        while let Some(flow) = self.ready.pop() {
            let Some(snd) = self.flows.get_mut(flow) else { continue };
            snd.tx.on_turn();
            let due = matches!(snd.next(cx.flow(flow)), Next::Data(at) if at <= cx.now);
            let packet = due.then(|| snd.transmit(&self.set, cx));
            self.go_on(flow, cx);
            if packet.is_some() {
                return packet;
            }
        }
        None
    }
    fn remove_sender(&mut self, flow: FlowId) -> bool {
        self.flows.remove(flow).is_some()
    }
    #[cold]
    fn give_up(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        self.end(flow, false, cx);
    }
    fn sample(&self, flow: FlowId) -> Option<Sample> {
        let snd = self.flows.get(flow)?;
        Some(Sample { srtt: snd.tx.rtt.srtt(), rate: snd.rate, in_flight_bytes: snd.tx.in_flight_bytes(), ..Sample::default() })
    }
    fn timers(&self) -> Timers {
        let rtt = &self.set.rtt;
        let (first, least) = (Timeout::new("syn_rto", rtt.init_rto), Timeout::new("min_rto", rtt.min_rto));
        Timers { handshake: true, first, least, fixed: false }
    }
}

#[cfg(test)]
mod tests;

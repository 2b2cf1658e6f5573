//! MERP hosts: ports on the path grant each flow a rate, which paces the flow. Flows that wait for
//! a grant probe with small DET packets.
//!
//! Source: S. Zhang, Z. Qian, H. Wu, S. Lu, "Efficient Data Center Flow Scheduling Without Starvation Using Expansion Ratio", IEEE
//! TPDS 28(11), 2017, section 3 and Table 2 (packets), 4.1 (sender), 4.2 (receiver).
//!
//! Model: flow sizes are known at the start, in wire bytes (payload and one header per packet), as
//! in the paper. There is no window: only the granted rate bounds the bytes in flight. Packets
//! without payload other than DET leave a host before waiting DATA.
//!
//! Assumed:
//! - Only DATA carries payload; DET packets have `det_size`, all others the size of a header.
//! - The expected rate travels as the time size / esr = vdl - aT, so that all values are whole numbers; esr = infinity is 0.
//! - A sender reads a DATAACK like a SYNACK: if it is granted theta or less it goes back to DET.
//!   This is how a flow is preempted.
//! - A grant counts only if the packet that it answers left later than the packet of the newest
//!   applied grant: ACKs of different classes overtake each other.
//! - A BOOST grants the rate it carries.
//! - The next departure is the departure of the previous packet plus the length of that packet at
//!   the current rate. After a change of rate it is computed again from the same departure, but is
//!   not before the present. A probe leaves its own length at the current rate after the previous
//!   packet, of any kind: otherwise a preempted flow would send nothing for a whole packet time at
//!   the detecting rate (12 ms at 1 Gb/s). The first DATA after a DET, and the first packet after
//!   the SYN, do not wait.
//! - DATA mode sends lost packets before new ones; DET mode probes while lost or new packets are left; a flow sends nothing while it
//!   waits only for ACKs of packets in flight.
//! - Round trips are measured on SYN and DATA, never on retransmissions (Karn), nor on DET, which
//!   waits behind all other classes.
//! - A packet is lost when its ACK has not arrived one RTO after its departure; then the RTO
//!   doubles until the next DATAACK. When the timer expires, all packets in flight for longer than
//!   the RTO before any doubling are lost: the losses of one burst are found together. Each DATAACK
//!   carries the packet that it answers and the first missing byte.
//! - A SYN is repeated after `syn_rto`, doubling; a FIN after the RTO, doubling, at most `fin_tries` times in all.
//! - After `dead_after` timeouts in a row without any ACK, a SYN requests another path. Unanswered
//!   DETs do not count as timeouts: they may wait long behind the DATA of other flows.
//! - A port that does not know the flow of a DET, as after its link was down, sets a bit; the next
//!   probe is then a SYN, which opens the flow there again. Without this rule the flow would probe
//!   forever. Section 4.1 does not define the time of the first probe.
//! - The round trip in the header tells ports how long the sender takes to use a grant. It is the
//!   round trip of an empty network, since queued packets are sent in the meantime.
//! - A flow that finds a port's table full is handed to TCP NewReno, on the capacity that MERP
//!   leaves: all its packets go in the class between DATA and DET, by which ports recognize them.
//!   The port marks the SYN, and the SYNACK returns the mark; a flow that was open continues from
//!   its first unacknowledged byte as after a timeout. Section 4.4 asks for "another stateless
//!   scheduler".
//! - BOOST and DETACK carry the same fields; duplicates and packets of unknown flows are acknowledged like all others.
//! - A flow that is given up sends one FIN, which is not repeated.
//! - A policy is refused: it could change the classes by which packets are distinguished.
//!
//! Deviates: the paper has none of these rules; each of them is an option:
//! - `syn_probes`: a DET has one round trip to be answered. After that, probes leave as SYNs until
//!   a DET or DATA is answered. A flow's SYNs take at most `syn_share` of its NIC's rate, and less
//!   after each 256 SYNs, down to a sixteenth of that: SYNs go before DATA, and thousands of flows
//!   may wait for a link. DETs do not pass a port whose queue of DATA never empties, so that the
//!   flow and the ports behind that port would not learn of each other. Ports treat a SYN of a
//!   known flow as a DET (Alg. 1 l. 8-12), except for its class.
//! - `probe_each_rtt`, off by default: the gap between probes is at most a round trip of an empty
//!   network, even if the granted rate would make it longer.
//! - `probe_lead`: a probing flow adds half its gap between probes to the round trip in the header,
//!   since a grant waits that long on average for the next probe.

use super::newreno::{self, NewReno};
use crate::contract::{Cx, Env, Timeout, Timers, Transport};
use crate::flow::Sample;
use crate::kit::pace::{NEXT, RTO, Ready};
use crate::kit::rtt::{self, RttConfig};
use crate::kit::tcp::{Options, Stack};
use crate::packet::{Kind, Packet};
use base::params::{Auto, Params as _, Problem};
use base::registry::{Meta, Needs};
use base::{Bytes, Dur, FlowId, FlowMap, Fraction, Rate, RateOr, TimerKey};
pub use header::{Answer, BOOST, DET, DETACK, EsrSync, Header, OVERFLOW, STATELESS, UNKNOWN, wire_span};
use header::{HIGH, LOW, MIDDLE};
use sender::{Mode, Setup, Snd};

mod header;
mod sender;

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "MERP hosts: switches grant the rate of each flow; flows without a grant send probes",
    source: "Zhang et al., IEEE TPDS 28(11) 2017, sections 3, 4.1 and 4.2",
    needs: Needs { agent: &["merp"], qdisc: &["strict"], alike: &[("agent", "esr_sync")], ..Needs::NONE },
    implies: &[("qdisc.classes", "4"), ("qdisc.evict", "worst_class")],
    kinds: &["det", "detack", "boost"],
    knows: &["size"],
    packets_only: "its ports serve flows by virtual deadlines",
    host: "ns-2: all packets wait at the NIC in a queue like those of the switches; granted rates keep it short",
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of MERP's hosts.
    pub struct Params {
        /// Detecting-rate threshold: a flow sends DATA if it is granted more than this.
        theta: RateOr = "0.8", "section 6.1: 0.8 Gb/s on 1 Gb/s";
        /// Size of a DET packet; other packets without payload have the size of a header.
        det_size: Bytes = "40B", "flowloom: with 1500 B a third-ranked flow would probe every 12 ms";
        /// Smallest gap between DET packets of a flow; limits the share of DETs when alpha is
        /// small.
        det_min_gap: Dur = "0us", "section 4.1: only the granted rate";
        /// Whether a waiting flow probes at least once per round trip, however small its granted
        /// rate is.
        probe_each_rtt: bool = "false", "section 4.1: only the granted rate";
        /// Whether a waiting flow requests its rate earlier, by half the gap between its probes.
        probe_lead: bool = "true", "flowloom, see Deviates";
        /// Whether SYNs follow probes that are not answered within a round trip.
        syn_probes: bool = "true", "flowloom, see Deviates";
        /// Largest share of its NIC's rate that a flow's SYNs take.
        syn_share: Fraction = "0.005" in Fraction(1)..=Fraction::ONE, "flowloom, see Deviates";
        /// Smallest retransmission timeout; `auto`: 1 ms, at least three unloaded round trips of the longest path.
        min_rto: Auto<Dur> = "auto" in Auto::Set(Dur::from_us(1))..=Auto::Set(Dur::from_secs(60)), "flowloom: several round trips of a data center";
        /// Largest retransmission timeout, also of SYN and FIN.
        max_rto: Dur = "60s" in Dur::from_us(1)..=Dur::from_secs(3600), "RFC 6298 rule 2.5";
        /// Retransmission timeout before the first round-trip sample, also of the SYN; `auto`: 1
        /// ms, at least three unloaded round trips of the longest path.
        syn_rto: Auto<Dur> = "auto" in Auto::Set(Dur::from_us(1))..=Auto::Set(Dur::from_secs(60)), "flowloom: as min_rto";
        /// Number of transmissions of a FIN before the sender stops waiting for its FINACK.
        fin_tries: u32 = "8" in 1..=100, "flowloom, see Assumed";
        /// Number of timeouts in a row without any ACK before a SYN requests another path.
        dead_after: u32 = "3" in 1..=100, "flowloom, see Assumed";
        /// How the sender echoes the expected rate; must be the same as the agent's.
        esr_sync: EsrSync = "fresh", "flowloom: section 4.3.1 does not define the upstream direction";
    }
}

/// Returns the problems that depend on the network and the other parts of the system.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    let det = params.det_size;
    if det.0 < u64::from(env.header_bytes) || det.0 > u64::from(env.mtu_bytes) {
        problems.push(Problem {
            key: "det_size",
            message: format!("`{det}` is out of range: packets here have {}B to {}B", env.header_bytes, env.mtu_bytes),
            hint: "remove `det_size`: a probe needs only a header".to_owned(),
        });
    }
    problems.extend(rtt::above_largest(&[("min_rto", params.min_rto), ("syn_rto", params.syn_rto)], params.max_rto));
    problems.extend(theta_problem(params, env));
    if let Some(policy) = env.given.kind("policy") {
        problems.push(Problem {
            key: "kind",
            message: format!("`merp` distinguishes its packets by class, and the policy `{policy}` may change the classes"),
            hint: "remove `policy`, or use another transport".to_owned(),
        });
    }
    problems
}

/// Returns the problem of a theta that no grant exceeds: a port grants at most `alpha` of the line
/// rate, and a sender sends DATA only above theta (section 4.4).
fn theta_problem(params: &Params, env: &Env<'_>) -> Option<Problem> {
    let alpha: Fraction = env.given.value("agent", "alpha").filter(|_| env.given.kind("agent") == Some("merp"))?;
    let acks: Fraction = env.given.value("agent", "ack_share").unwrap_or_default();
    let (theta, most) = (params.theta.on(env.nic_rate), env.nic_rate.times(alpha).times(acks.complement()));
    (theta >= most).then(|| Problem {
        key: "theta",
        message: format!(
            "`{theta}` is not below the largest grant, {most} (`alpha` {alpha} of {}): flows would only probe",
            env.nic_rate
        ),
        hint: "write a smaller `theta`; the paper recommends alpha/2 to alpha of the line rate and uses 0.8".to_owned(),
    })
}

/// The machine of one host.
pub struct Merp {
    set: Setup,
    flows: FlowMap<Snd>,
    /// Flows whose next packet is due.
    ready: Ready,
    /// Runs the flows that overflowed a table.
    tcp: NewReno,
}

impl Merp {
    /// Creates a host without flows.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let theta = params.theta.on(env.nic_rate);
        let share = (u128::from(theta.0) * u128::from(Fraction::ONE.0)).div_ceil(u128::from(env.nic_rate.0));
        let usual = env.timeout(Dur::from_ms(1)).min(params.max_rto);
        let set = Setup {
            nic_rate: env.nic_rate,
            theta,
            theta_share: Fraction(share.min(u128::from(Fraction::ONE.0)) as u64),
            esr_sync: params.esr_sync,
            rtt: RttConfig {
                init_rto: env.auto("syn_rto", params.syn_rto, usual),
                min_rto: env.auto("min_rto", params.min_rto, usual),
                max_rto: params.max_rto,
                clock: Dur::ZERO,
            },
            det_size: params.det_size.0.min(u64::from(env.mtu_bytes)) as u16,
            det_min_gap: params.det_min_gap,
            probe_each_rtt: params.probe_each_rtt,
            probe_lead: params.probe_lead,
            syn_probes: params.syn_probes,
            syn_rate: Rate(env.nic_rate.times(params.syn_share).0.max(1)),
            dead_after: params.dead_after,
            fin_tries: params.fin_tries,
            mss: u64::from(env.mss()),
            header_bytes: env.header_bytes,
        };
        let (min_rto, max_rto, init_rto) = (Auto::Set(set.rtt.min_rto), params.max_rto, Auto::Set(set.rtt.init_rto));
        let mut tcp = newreno::Params::defaults();
        tcp.tcp = Options { stack: Stack::Rfc, handshake: false, min_rto, max_rto, init_rto, ..tcp.tcp };
        // The fallback's parameters are not MERP's.
        let hidden = Env { chosen: None, ..*env };
        Merp { set, flows: FlowMap::default(), ready: Ready::default(), tcp: NewReno::new(&tcp, &hidden) }
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

    /// Hands the flow to TCP: a port has no space for it.
    fn overflow(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        if self.flows.get(flow).is_none_or(|snd| snd.mode == Mode::FinSent) {
            return;
        }
        let snd = self.flows.remove(flow).expect("looked up above");
        cx.disarm(flow, NEXT);
        cx.disarm(flow, RTO);
        let [acked, sent] = snd.tx.packets.ends().map(|number| (number * self.set.mss).min(cx.flow(flow).size_bytes));
        self.with_tcp(cx, |tcp, cx| tcp.resume(flow, acked, sent, cx));
    }
    /// Calls TCP; every packet that TCP sends goes in the class of overflowed flows.
    fn with_tcp(&mut self, cx: &mut Cx<'_>, act: impl FnOnce(&mut NewReno, &mut Cx<'_>)) {
        let before = cx.io.control.len();
        act(&mut self.tcp, cx);
        cx.io.control.range_mut(before..).for_each(|packet| packet.prio = OVERFLOW);
    }

    fn close(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        self.flows.remove(flow).expect("an open flow is closed");
        cx.close(flow);
    }
}

impl Transport for Merp {
    fn on_flow(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        let mut snd = Snd::new(cx.flow(flow), &self.set);
        snd.send_syn(&self.set, 0, cx);
        cx.arm(flow, RTO, cx.now.after(snd.tx.rtt.rto()));
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
            if snd.mode == Mode::FinSent && snd.tries >= self.set.fin_tries {
                self.close(key.flow, cx);
                return;
            }
            snd.on_rto(&self.set, cx);
        }
        snd.pace(&self.set, &mut self.ready, cx);
    }
    fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        while let Some(flow) = self.ready.pop() {
            let Some(snd) = self.flows.get_mut(flow) else { continue };
            snd.tx.on_turn();
            let packet = (snd.has_data() && snd.due(&self.set) <= cx.now).then(|| snd.transmit(&self.set, cx));
            snd.pace(&self.set, &mut self.ready, cx);
            if packet.is_some() {
                return packet;
            }
        }
        self.tcp.poll_transmit(cx).map(|packet| Packet { prio: OVERFLOW, ..packet })
    }
    fn remove_sender(&mut self, flow: FlowId) -> bool {
        match self.flows.get(flow) {
            None => self.tcp.remove_sender(flow),
            // A flow whose bytes have all arrived ends by itself.
            Some(snd) if snd.mode == Mode::FinSent => false,
            Some(_) => self.flows.remove(flow).is_some(),
        }
    }
    #[cold]
    fn give_up(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        let has_header = self.flows.get(flow).is_some();
        if self.remove_sender(flow) {
            if has_header {
                // The FIN is not repeated: if it is lost, ports forget the flow after a while.
                cx.control(self.set.bare(flow, Kind::FIN, MIDDLE));
            }
            cx.terminate(flow);
        }
    }
    fn sample(&self, flow: FlowId) -> Option<Sample> {
        let Some(snd) = self.flows.get(flow) else { return self.tcp.sample(flow) };
        Some(Sample {
            srtt: snd.tx.rtt.srtt(),
            rate: if snd.mode == Mode::Data { snd.rate } else { Rate(0) },
            in_flight_bytes: snd.tx.in_flight_bytes(),
            ..Sample::default()
        })
    }
    fn timers(&self) -> Timers {
        let rtt = &self.set.rtt;
        let (first, least) = (Timeout::new("syn_rto", rtt.init_rto), Timeout::new("min_rto", rtt.min_rto));
        Timers { handshake: true, first, least, fixed: false }
    }
}

#[cfg(test)]
mod tests;

//! PDQ ports: a list of the most critical flows and the rates allotted to them; all other flows are
//! paused.
//!
//! Source: C.-Y. Hong, M. Caesar, P. B. Godfrey, "Finishing Flows Quickly with Preemptive
//! Scheduling", SIGCOMM 2012 (arXiv 1206.2057), section 3.3: Alg. 1 (a packet in the data's
//! direction), Alg. 2 (early start), Alg. 3 (an answer on its way back, suppressed probing), rate
//! controller; RCP (Dukkipati, 2007) for flows outside the list, in [`rcp`].
//!
//! Model: computation takes no time. Every egress port has a list, including host NICs. There are
//! no timers: actions due every one or two round trips are computed when the next packet arrives.
//! This is exact, since their inputs do not change in between.
//!
//! Assumed:
//! - A port handles packets when they start to leave, and answers when they arrive over its own
//!   cable: ACKs take the data's path backwards.
//! - Criticality: the earlier deadline, flows without a deadline last; then the smaller T; then the
//!   smaller id.
//! - The list holds twice as many flows as send (at least `min_flows`), and never more than
//!   `max_flows`.
//! - Dampening: for one round trip after a paused flow was accepted, no other paused flow is
//!   accepted. This is the time until the answer returns and the flow's rate counts. With a tenth
//!   of a round trip, ports of 100 packets at 0.8 load drop six times as many packets. New flows
//!   are not paused flows: holding them back too makes an incast of 64 flows slower.
//! - T / RTT of early start uses the round trip as senders measure it, including queues: once
//!   buffers of megabytes have filled, early start considers most flows nearly done and keeps the
//!   buffers full (4 MB, MERP's flows at 0.8 load). Ports of 100 packets bound this effect.
//! - The round trip of a port is the mean of those that senders reported in the last ten packets.
//! - The queue in the rate controller does not include the packet in transmission.
//! - RCP divides the capacity that the list leaves among the flows outside the list that requested
//!   a rate in the last round trip. The share never exceeds that capacity.
//! - A flow that is silent for `stale` is forgotten: its FIN was lost, or its host failed.
//!
//! Deviates: a paused flow outside the list ranks behind all flows in the list, and probes
//! accordingly. The paper's Alg. 3 does not change the I of such a flow, and a thousand of them
//! would fill the port with probes.

use super::{Agent, Env, PortCx};
use base::params::Problem;
use base::registry::{Meta, Needs};
use base::{Dur, FlowId, Fraction, LinkId, Rate, Time};
use proto::transport::pdq::Header;
use proto::{Kind, Packet};
use rcp::{Input, Share};

pub mod rcp;

/// The description of this entry, for `list`, `explain` and `check`.
pub const META: Meta = Meta {
    summary: "PDQ ports: sorted flow list, early start, suppressed probing, dampening, rate controller",
    source: "Hong et al., SIGCOMM 2012, section 3.3, Alg. 1 to 3",
    needs: Needs { transport: &["pdq"], qdisc: &["droptail"], reverse_path: true, ..Needs::NONE },
    shows: &[("rank", ""), ("rate_bps", ""), ("expected_s", ""), ("paused", "")],
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of PDQ's ports.
    pub struct Params {
        /// Early start (K): flows that finish within this many round trips, in total, do not count
        /// against the next flow; 0: off.
        early_start: Fraction = "2" in Fraction(0)..=Fraction(1_000_000_000_000), "section 3.3.2: K = 2 RTT";
        /// Suppressed probing (X): round trips between probes, multiplied by the number of flows
        /// ahead; 0: off.
        probe_spacing: Fraction = "0.2" in Fraction(0)..=Fraction(1_000_000_000_000), "section 3.3.2: X = 0.2 RTT";
        /// Dampening: no second paused flow is accepted for this many round trips; 0: off.
        dampening: Fraction = "1" in Fraction(0)..=Fraction(1_000_000_000_000), "flowloom, see Assumed; the paper gives no value";
        /// Fraction of the line rate for PDQ's flows.
        pdq_share: Fraction = "1" in Fraction(1_000_000)..=Fraction(1_000_000_000), "section 3.3.3: the whole rate if all traffic is PDQ's";
        /// Minimum size of the list, in flows.
        min_flows: u32 = "8" in 1..=1_000_000, "flowloom, see Assumed";
        /// Maximum size of the list, in flows (M).
        max_flows: u32 = "1000" in 1..=1_000_000, "flowloom; the paper mentions a hard limit without a value";
        /// An entry that is silent for longer is deleted.
        stale: Dur = "20ms" in Dur(1)..=Dur::from_secs(3600), "flowloom, see Assumed";
    }
}

/// Returns the problems between parameters.
pub fn check(params: &Params, _env: &Env<'_>) -> Vec<Problem> {
    let wrong = params.min_flows > params.max_flows;
    let problem = || Problem {
        key: "min_flows",
        message: format!("`{}` is above `max_flows`, which is `{}`", params.min_flows, params.max_flows),
        hint: "lower `min_flows` or raise `max_flows`".to_owned(),
    };
    wrong.then(problem).into_iter().collect()
}

/// A flow in the list of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The flow.
    pub flow: FlowId,
    /// R: the rate that the whole path allots.
    pub rate: Rate,
    /// P: whether this port pauses the flow.
    pub paused: bool,
    /// D: the deadline; `Time::MAX` if the flow has none.
    pub deadline: Time,
    /// T: expected transmission time of the flow.
    pub expected: Dur,
    /// Round trip of the sender.
    pub rtt: Dur,
    /// When the flow's last packet left the port.
    pub last_seen: Time,
}

impl Entry {
    fn rank(&self) -> (Time, Dur, FlowId) {
        (self.deadline, self.expected, self.flow)
    }
    /// Returns T / RTT.
    fn round_trips(&self) -> Fraction {
        let ratio = u128::from(self.expected.0) * u128::from(Fraction::ONE.0) / u128::from(self.rtt.0.max(1));
        Fraction(u64::try_from(ratio).unwrap_or(u64::MAX))
    }
}

/// The mean round trip reported by the last packets.
#[derive(Clone, Copy, Debug, Default)]
struct Recent {
    samples: [u64; Recent::LEN],
    count: usize,
}

impl Recent {
    const LEN: usize = 10;

    fn add(&mut self, rtt: Dur) {
        self.samples[self.count % Self::LEN] = rtt.0;
        self.count += 1;
    }
    /// Returns the mean; `None` before the first packet.
    fn mean(&self) -> Option<Dur> {
        let known = self.count.min(Self::LEN);
        (known > 0).then(|| Dur(self.samples[..known].iter().sum::<u64>() / known as u64).max(Dur(1)))
    }
}

/// The agent of one port.
pub struct Pdq {
    params: Params,
    port: LinkId,
    /// r_PDQ.
    line: Rate,
    /// C: the rate that may be allotted.
    capacity: Rate,
    /// When the capacity was last adjusted.
    adjusted: Time,
    /// The most critical flows, the most critical first.
    list: Vec<Entry>,
    /// Lower bound of `last_seen` of all entries.
    oldest: Time,
    /// When a paused flow was last accepted, and which flow.
    accepted: Option<(Time, FlowId)>,
    /// Bytes in the queue.
    queued: u64,
    rtts: Recent,
    share: Share,
}

impl Pdq {
    /// Returns the agent of a port without flows.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let line = env.rate.times(params.pdq_share);
        Pdq {
            params: params.clone(),
            port: env.link,
            line,
            capacity: line,
            adjusted: Time::ZERO,
            list: Vec::new(),
            oldest: Time::MAX,
            accepted: None,
            queued: 0,
            rtts: Recent::default(),
            share: Share::default(),
        }
    }
    /// Returns the list, the most critical flow first.
    pub fn list(&self) -> &[Entry] {
        &self.list
    }
    /// Returns the rate that may be allotted at present.
    pub fn capacity(&self) -> Rate {
        self.capacity
    }

    fn index(&self, flow: FlowId) -> Option<usize> {
        self.list.iter().position(|entry| entry.flow == flow)
    }
    fn remove(&mut self, flow: FlowId) {
        self.list.retain(|entry| entry.flow != flow);
    }
    fn drop_stale(&mut self, now: Time) {
        if self.oldest.after(self.params.stale) < now {
            self.list.retain(|entry| entry.last_seen.after(self.params.stale) >= now);
            self.oldest = self.list.iter().map(|entry| entry.last_seen).min().unwrap_or(Time::MAX);
        }
    }
    /// Returns how many flows the list may hold: twice the number of flows that send.
    fn limit(&self) -> usize {
        let sending = self.list.iter().filter(|entry| entry.rate > Rate(0)).count();
        (2 * sending).max(self.params.min_flows as usize).min(self.params.max_flows as usize)
    }

    /// Brings the capacity and RCP's share up to `now`. Must be called before any of their inputs
    /// changes.
    fn catch_up(&mut self, now: Time) {
        let Some(rtt) = self.rtts.mean() else { return };
        let waited = now.since(self.adjusted);
        let period = rtt * 2;
        if waited >= period {
            self.adjusted = self.adjusted.after(Dur(waited.0 - waited.0 % period.0));
            self.capacity = controlled(self.line, self.queued, rtt);
        }
        let allotted = self.list.iter().map(|entry| entry.rate.0).sum::<u64>();
        let free = Rate(self.capacity.0.saturating_sub(allotted));
        self.share.catch_up(now, &Input { free, queued: self.queued, rtt });
    }

    /// Returns the rate that the flows ahead of index `at` leave (Alg. 2).
    fn available(&self, at: usize) -> Rate {
        let (mut nearly_done, mut allotted) = (Fraction(0), 0u64);
        for entry in &self.list[..at] {
            let left = entry.round_trips();
            if left < self.params.early_start && nearly_done < self.params.early_start {
                nearly_done = Fraction(nearly_done.0.saturating_add(left.0)); // Alg. 2 l. 3-4
            } else {
                allotted = allotted.saturating_add(entry.rate.0);
            }
            if allotted >= self.capacity.0 {
                return Rate(0);
            }
        }
        Rate(self.capacity.0 - allotted)
    }

    /// Inserts an entry by criticality, and removes an earlier entry of the flow. Returns its
    /// index, or `None` if the list is full of more critical flows.
    fn place(&mut self, entry: Entry) -> Option<usize> {
        let limit = self.limit();
        self.remove(entry.flow);
        let at = self.list.partition_point(|other| other.rank() < entry.rank());
        if at >= limit {
            return None;
        }
        self.list.insert(at, entry);
        self.list.truncate(limit);
        self.oldest = self.oldest.min(entry.last_seen);
        Some(at)
    }

    /// Handles a departing SYN, DATA or probe (Alg. 1).
    fn on_forward(&mut self, packet: &Packet, header: &mut Header, cx: &PortCx<'_>) {
        let flow = packet.flow;
        self.drop_stale(cx.now);
        if header.is_paused_by_other_port(self.port) {
            return self.remove(flow);
        }
        let deadline = cx.flows[flow.index()].deadline.unwrap_or(Time::MAX);
        let reported = Entry {
            flow,
            rate: Rate(0),
            paused: false,
            deadline,
            expected: Dur(header.expected_ps),
            rtt: Dur(header.rtt_ps),
            last_seen: cx.now,
        };
        let known = self.index(flow).map(|at| self.list[at]);
        let entry = known.map_or(reported, |known| Entry { rate: known.rate, paused: known.paused, ..reported });
        let Some(at) = self.place(entry) else {
            let share = self.share.of(flow, u64::from(packet.wire_len));
            return if share == Rate(0) { header.pause(self.port) } else { header.allot(share) };
        };
        let free = self.available(at).min(Rate(header.rate_bps));
        let dampened = entry.paused && self.is_dampened(flow, cx.now);
        if free == Rate(0) || dampened {
            header.pause(self.port);
            self.list[at].paused = true;
            return;
        }
        header.allot(free);
        if entry.paused {
            self.accepted = Some((cx.now, flow));
        }
    }
    /// Returns whether another paused flow was accepted within the time of dampening.
    fn is_dampened(&self, flow: FlowId, now: Time) -> bool {
        let window = self.rtts.mean().unwrap_or_default().times(self.params.dampening);
        self.accepted.is_some_and(|(at, other)| other != flow && now < at.after(window))
    }

    /// Handles a returning answer (Alg. 3).
    fn on_answer(&mut self, flow: FlowId, header: &mut Header) {
        if header.is_paused_by_other_port(self.port) {
            self.remove(flow);
        }
        if header.is_paused() {
            header.rate_bps = 0;
        }
        let (ahead, paused) = (self.index(flow), header.is_paused());
        if let Some(at) = ahead {
            (self.list[at].paused, self.list[at].rate) = (paused, Rate(header.rate_bps));
        }
        if ahead.is_some() || paused && !header.is_paused_by_other_port(self.port) {
            let ahead = ahead.unwrap_or(self.list.len()) as u64;
            header.probe_rtts = header.probe_rtts.max(self.params.probe_spacing.0.saturating_mul(ahead));
        }
    }
}

/// Returns the capacity set by the rate controller (section 3.3.3): C = max(0, r_PDQ - q / (2
/// RTT)).
fn controlled(line: Rate, queued: u64, rtt: Dur) -> Rate {
    let drain = u128::from(queued) * 8 * 1_000_000_000_000 / (2 * u128::from(rtt.0));
    Rate(line.0.saturating_sub(u64::try_from(drain).unwrap_or(u64::MAX)))
}

impl Agent for Pdq {
    fn on_arrive(&mut self, _packet: &mut Packet, _cx: &mut PortCx<'_>) {}
    fn on_enqueue(&mut self, packet: &Packet, cx: &mut PortCx<'_>) {
        self.catch_up(cx.now);
        self.queued += u64::from(packet.wire_len);
    }
    fn on_depart(&mut self, packet: &mut Packet, cx: &mut PortCx<'_>) {
        self.catch_up(cx.now);
        self.queued = self.queued.checked_sub(u64::from(packet.wire_len)).expect("what leaves a port had entered it");
        match packet.kind {
            Kind::FIN => self.remove(packet.flow),
            Kind::SYN | Kind::DATA | Kind::PROBE if packet.has(Packet::EXT) => {
                let mut header: Header = packet.get_ext(cx.ext);
                self.rtts.add(Dur(header.rtt_ps));
                self.on_forward(packet, &mut header, cx);
                packet.put_ext(header, cx.ext);
            }
            _ => {}
        }
    }
    fn on_return(&mut self, packet: &Packet, cx: &mut PortCx<'_>) {
        let answer = matches!(packet.kind, Kind::SYNACK | Kind::ACK | Kind::PROBEACK) && packet.has(Packet::EXT);
        if answer {
            self.catch_up(cx.now);
            let mut header: Header = packet.get_ext(cx.ext);
            self.on_answer(packet.flow, &mut header);
            packet.put_ext(header, cx.ext);
        }
    }
    fn on_link_down(&mut self) {
        self.list.clear();
        (self.capacity, self.queued, self.accepted, self.share) = (self.line, 0, None, Share::default());
    }
    fn show(&self, value: &mut dyn FnMut(FlowId, &'static str, f64)) {
        for (entry, rank) in self.list.iter().zip(1..) {
            value(entry.flow, "rank", f64::from(rank));
            value(entry.flow, "rate_bps", entry.rate.0 as f64);
            value(entry.flow, "expected_s", entry.expected.as_secs_f64());
            value(entry.flow, "paused", f64::from(u8::from(entry.paused)));
        }
    }
}

#[cfg(test)]
mod tests;

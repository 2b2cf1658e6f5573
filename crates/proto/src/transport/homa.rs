//! Homa: the first bytes of a message are sent at once, the receiver grants the other bytes to the shortest messages, and it
//! sets the priority levels of both.
//!
//! Source: B. Montazeri et al., "Homa: A Receiver-Driven Low-Latency Transport Protocol Using Network Priorities", SIGCOMM
//! 2018, section 3; where the paper is silent, the simulator of its authors (github.com/PlatformLab/HomaSimulation) and
//! draft-ousterhout-tsvwg-homa.
//!
//! Model: sizes are known. A flow is a message; there are no replies. Level 0 is the highest. Ports must serve levels in strict
//! order (`strict`). The authors spray packets over paths, and their senders decide what to send when the link is free: both
//! are the defaults here.
//!
//! | rule | from |
//! |---|---|
//! | the first `rtt_bytes` of a message are sent unscheduled, the others as they are granted | section 3.2 |
//! | the host sends the message with the fewest bytes left | section 3.2 |
//! | unscheduled levels: their share of all levels is the unscheduled share of all bytes; at least one level is left for each kind | section 3.4 |
//! | cutoffs: each unscheduled level gets the same number of bytes | section 3.4 |
//! | the receiver grants to the `overcommitment` messages with the fewest bytes left, at most one per sender | section 3.5 |
//! | of a granted message at most `rtt_bytes` are on their way | section 3.3 |
//! | scheduled levels: n active messages use the lowest n levels, the shortest message the highest of these | section 3.4 |
//! | granted bytes that are missing for `resend_after` are requested again; the sender resends them, or answers BUSY | section 3.7 |
//!
//! Assumed:
//! - A GRANT names the byte up to which may be sent. The level of the GRANT with the largest offset holds for all granted bytes
//!   that were not sent. GRANTs to one sender are a packet time of the receiver's link apart. A window is never exceeded, so
//!   that a GRANT may be short.
//! - GRANTs and other packets without payload go at level 0, before data. The request is the first unscheduled packet; it has
//!   the same length as others.
//! - The receiver acknowledges a whole message, which closes it at its sender. In the authors' system the reply does so.
//! - A sender without any answer, or which has sent all bytes, retransmits its first packet after `ask_after`. If the receiver
//!   has the message it answers with its ACK or its last GRANT.
//! - A RESEND grants its bytes, at level 0, as in the authors' Linux module. The answer is BUSY if the host sends another
//!   message first. A timeout counts at the sender if a RESEND makes it retransmit. A RESEND of a message that the sender does
//!   not have is answered with UNKNOWN, and the receiver forgets the message.
//! - No number of RESENDs ends a message unless `tries` sets one.
//! - `cutoffs = "auto"` takes the sizes that the workloads offer, mixed by rates of flows; workloads without a load do not
//!   count if others have one. Equal cutoffs count as one, and leave a level unused. Messages of incasts count as all others
//!   do: section 3.4 counts the messages that a receiver gets, whoever starts them. Since levels carry equal numbers of
//!   bytes, short messages can share a level with those of an incast and wait behind them: write cutoffs to separate them.
//! - `cutoffs = "online"`: a receiver computes its levels again after each 100 messages, and once it keeps more than 1000 (at
//!   most `window`), after each tenth of those kept. It begins with one unscheduled level. Data carries the version of the
//!   cutoffs that it follows; the receiver answers the first packet of a message that follows another version with CUTOFFS.
//! - `oldest_share` is granted to the oldest message while it is not active, at the highest scheduled level.
//! - Preempted messages keep what they were granted.
//! - A policy is refused: it would change the classes, which are Homa's levels.
//!
//! Deviates: messages do not end after five tries, as in the authors' draft (`tries`).

use crate::contract::{Bursts, Cx, Env, Timeout, Timers, Transport};
use crate::flow::Sample;
use crate::kit::demotion;
use crate::kit::order::ByKey;
use crate::kit::traffic::Traffic;
use crate::packet::{Kind, Packet};
use crate::ranges::Ranges;
use base::params::{Auto, Problem};
use base::registry::{Counter, Meta, Needs};
use base::{Bytes, Dur, FlowId, FlowMap, Fraction, HostId, Rate, TimerKey};
use header::{BUSY, CUTOFFS, CutoffList, GRANT, Grant, RESEND, Resend, UNKNOWN, Version};
use inbound::{Inbound, MISSING, PACED};
use levels::{Cutoffs, Law, Levels, Online};
use std::collections::BTreeMap;

mod header;
mod inbound;
mod levels;

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "Homa: receivers grant bytes to the shortest messages, with several priority levels",
    source: "Montazeri et al., SIGCOMM 2018; PlatformLab/HomaSimulation",
    needs: Needs { qdisc: &["strict"], ..Needs::NONE },
    implies: &[("nic.low_water", "1B"), ("qdisc.kind", "strict"), ("router.kind", "spray"), ("transport.cutoffs", "10KB")],
    kinds: &["grant", "resend", "busy", "cutoffs", "unknown"],
    counters: &[
        Counter { name: "grants", unit: "packets", about: "GRANTs sent by the receiver" },
        Counter { name: "resends", unit: "packets", about: "RESENDs sent by the receiver" },
        Counter {
            name: "first_rtt_bytes",
            unit: "B",
            about: "payload that arrived within an unloaded round trip of the flow's start",
        },
        Counter { name: "busies", unit: "packets", about: "BUSYs sent by the sender" },
        Counter { name: "unscheduled_bytes", unit: "B", about: "payload sent without a GRANT, each byte counted once" },
        Counter { name: "scheduled_bytes", unit: "B", about: "payload sent after a GRANT, each byte counted once" },
    ],
    knows: &["size"],
    packets_only: "its hosts and ports serve the message with the fewest bytes left first",
    host: "the authors' simulator: the packet is chosen when the link is free",
    ..Meta::PLAIN
};

/// Indices of the sender's counters.
const BUSIES: usize = 3;
const UNSCHEDULED_BYTES: usize = 4;
const SCHEDULED_BYTES: usize = 5;

base::choice! {
    /// The number that sets the level of an unscheduled packet.
    pub enum UnschedPrio {
        /// The size of its message.
        Size = "size",
        /// The bytes left of its message.
        Remaining = "remaining",
    }
}

base::params! {
    /// Parameters of Homa.
    pub struct Params {
        /// Unscheduled bytes of a message, and largest number of granted bytes on their way; `auto`: one
        /// bandwidth-delay product of the longest path.
        rtt_bytes: Auto<Bytes> = "auto" in Auto::Set(Bytes(1))..=Auto::Set(Bytes(1_000_000_000)), "section 3.2: RTTbytes, 9.7 KB at 10 Gb/s";
        /// Number of priority levels.
        priorities: u32 = "8" in 2..=8, "section 3.4: today's switches";
        /// Largest sizes of messages in the unscheduled levels except the last, rising; `auto`: equal shares of
        /// the unscheduled bytes of the workloads; `online`: the same for the messages that a receiver has
        /// seen.
        cutoffs: Auto<Cutoffs> = "auto", "section 3.4; HomaSimulation computes them before a run";
        /// Number of messages that a receiver remembers with `cutoffs = "online"`.
        window: u32 = "10000" in 1..=10_000_000, "flowloom";
        /// Number of levels for scheduled packets; `auto`: the levels not used by unscheduled packets.
        scheduled_levels: Auto<u32> = "auto" in Auto::Set(1)..=Auto::Set(7), "section 3.4";
        /// Largest number of messages that a receiver grants at a time; `auto`: the number of scheduled levels.
        overcommitment: Auto<u32> = "auto" in Auto::Set(1)..=Auto::Set(100_000), "section 3.5";
        /// Largest number of bytes per GRANT; `auto`: a full packet.
        grant_bytes: Auto<Bytes> = "auto" in Auto::Set(Bytes(1))..=Auto::Set(Bytes(1_000_000_000)), "HomaSimulation: 1472 B";
        /// What sets the level of an unscheduled packet: the size of its message, or the bytes left of it.
        unsched_prio: UnschedPrio = "size", "section 3.4; HomaSimulation: `remaining`";
        /// Bytes at the end of a message that go at the unscheduled level of a message of that size; 0B: none.
        tail_boost: Bytes = "0B" in Bytes(0)..=Bytes(1_000_000_000), "not in the paper; HomaSimulation: `rtt_bytes`";
        /// Whether GRANTs count as unscheduled bytes of messages of size 0 in levels and cutoffs.
        count_grants: bool = "false", "HomaSimulation: accountForGrantTraffic";
        /// Share of granted bytes for the oldest message while it is not among those with the fewest bytes
        /// left.
        oldest_share: Fraction = "0" in Fraction(0)..=Fraction(500_000_000), "not in the paper; draft-ousterhout-tsvwg-homa: 0.05";
        /// Time without packets of a message after which a receiver requests missing bytes again; `auto`: 5 ms,
        /// at least ten unloaded round trips of the longest path.
        resend_after: Auto<Dur> = "auto" in Auto::Set(Dur::from_ns(100))..=Auto::Set(Dur::from_secs(60)), "section 3.7: a few ms";
        /// Time without an answer after which a sender retransmits the first packet; `auto`: twice `resend_after`.
        ask_after: Auto<Dur> = "auto" in Auto::Set(Dur::from_ns(100))..=Auto::Set(Dur::from_secs(600)), "HomaL4Protocol-ns-3: 10 ms";
        /// Unanswered retries in a row after which a message ends; 0: it never ends.
        tries: u32 = "0", "flowloom: as TCP here; HomaL4Protocol-ns-3: 5";
    }
}

/// Returns the problems that depend on network, workloads and other parts, and contradictions of parameters.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut problem = |key, message: String, hint: &str| problems.push(Problem { key, message, hint: hint.to_owned() });
    let scheduled = match params.scheduled_levels {
        Auto::Set(levels) => levels,
        Auto::Auto => 1,
    };
    if scheduled >= params.priorities {
        let message =
            format!("`{scheduled}` leaves no level of `priorities`, which is `{}`, for unscheduled packets", params.priorities);
        problem("scheduled_levels", message, "write fewer levels or `auto`");
    }
    match &params.cutoffs {
        Auto::Auto => {
            if let Err(why) = Traffic::of_sizes(env.offered) {
                let message = format!("cannot use `auto`: {why}");
                problem("cutoffs", message, "write the cutoffs, like `300B, 5KB`, or `online`");
            }
        }
        Auto::Set(Cutoffs::Online) => {}
        Auto::Set(Cutoffs::List(limits)) => {
            let cutoffs = limits.in_bytes(env);
            if let Some(pair) = cutoffs.windows(2).find(|pair| pair[0] >= pair[1]) {
                let message = format!("`{}B` is not below the next cutoff, `{}B`", pair[0], pair[1]);
                problem("cutoffs", message, "write the cutoffs in rising order");
            }
            let levels = cutoffs.len() + 1;
            if levels + scheduled as usize > params.priorities as usize {
                let message = format!(
                    "{} cutoffs make {levels} unscheduled levels; `priorities` leaves {} next to {scheduled} scheduled",
                    cutoffs.len(),
                    params.priorities.saturating_sub(scheduled),
                );
                problem("cutoffs", message, "write fewer cutoffs");
            }
        }
    }
    if let Some(policy) = env.given.kind("policy") {
        let message = format!("`homa` uses the classes as its levels, and the policy `{policy}` would change them");
        problem("kind", message, "remove `policy`, or use another transport");
    }
    problems.extend(demotion::too_few_classes("priorities", params.priorities as usize, env));
    for (key, time) in [("resend_after", params.resend_after), ("ask_after", params.ask_after)] {
        if let Auto::Set(time) = time {
            problems.extend(env.too_short(key, time, "write a longer time or `auto`"));
        }
    }
    problems
}

/// Timer of a message at its sender: no answer from the receiver.
const ASK: u8 = 0;

/// A message at its sender.
#[derive(Clone, Debug)]
struct Sender {
    size: u64,
    /// Number of bytes that need no GRANT.
    unscheduled: u64,
    /// All bytes below may be sent.
    granted: u64,
    /// The level of scheduled bytes.
    level: u8,
    /// The first byte that was never sent.
    next: u64,
    /// Bytes to retransmit.
    again: Ranges,
    again_level: u8,
    /// The receiver has answered, so it has the message.
    answered: bool,
    /// Number of bytes that are known to have arrived.
    received: u64,
    /// Requests since the last answer.
    tries: u32,
}

impl Sender {
    /// Returns whether the message has bytes to send now.
    fn is_ready(&self) -> bool {
        self.next < self.granted || !self.again.is_empty()
    }
    /// Returns the number of bytes that are still to be sent.
    fn left(&self) -> u64 {
        self.size - self.next + self.again.bytes()
    }
}

/// The machine of one host.
pub struct Homa {
    mss: u64,
    header: u16,
    rtt_bytes: u64,
    last_level: u8,
    unsched_prio: UnschedPrio,
    ask_after: Dur,
    resend_after: Dur,
    tries: u32,
    /// The levels of unscheduled packets to receivers that have sent no cutoffs.
    levels: Levels,
    /// With `online`: version and levels of the last cutoffs, by receiver.
    by_receiver: Option<BTreeMap<HostId, (u32, Levels)>>,
    senders: FlowMap<Sender>,
    /// Messages that may send, by the bytes that are left.
    ready: ByKey,
    inbound: Inbound,
}

impl Homa {
    /// Creates a host without messages.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let resend_after = env.auto("resend_after", params.resend_after, Dur::from_ms(5).max(env.max_rtt * 10));
        let rtt_bytes = env.auto("rtt_bytes", params.rtt_bytes, Bytes(env.bdp_bytes().max(1))).0;
        let grant_bytes = env.auto("grant_bytes", params.grant_bytes, Bytes(env.mss().into())).0;
        let scheduled = if let Auto::Set(levels) = params.scheduled_levels { Some(levels as u8) } else { None };
        let overcommitment = if let Auto::Set(messages) = params.overcommitment { Some(messages) } else { None };
        let grants = if params.count_grants { f64::from(env.header_bytes) / grant_bytes as f64 } else { 0.0 };
        let law = Law { priorities: params.priorities as u8, scheduled, rtt_bytes, grants };
        let levels = match &params.cutoffs {
            // Tests of timers build hosts without workloads.
            Auto::Auto => Traffic::of_sizes(env.offered).map_or_else(|_| law.with_cutoffs(Vec::new()), |sizes| law.levels(&sizes)),
            Auto::Set(Cutoffs::List(limits)) => law.with_cutoffs(limits.in_bytes(env)),
            Auto::Set(Cutoffs::Online) => law.with_cutoffs(Vec::new()),
        };
        let online = params.cutoffs == Auto::Set(Cutoffs::Online);
        env.note_auto("cutoffs", params.cutoffs == Auto::Auto, || levels.show_cutoffs());
        let count = || if online { "as the cutoffs change".to_owned() } else { levels.scheduled.to_string() };
        env.note_auto("scheduled_levels", scheduled.is_none(), count);
        env.note_auto("overcommitment", overcommitment.is_none(), count);
        let config = inbound::Config {
            law,
            overcommitment,
            grant_bytes,
            grant_gap: env.host_rate.tx_time(env.mtu_bytes.into()),
            tail_boost: params.tail_boost.0,
            oldest: params.oldest_share,
            resend_after,
            tries: params.tries,
            header: env.header_bytes,
        };
        Homa {
            mss: env.mss().into(),
            header: env.header_bytes,
            rtt_bytes,
            last_level: params.priorities as u8 - 1,
            unsched_prio: params.unsched_prio,
            ask_after: env.auto("ask_after", params.ask_after, resend_after * 2),
            resend_after,
            tries: params.tries,
            levels: levels.clone(),
            by_receiver: online.then(BTreeMap::new),
            senders: FlowMap::default(),
            ready: ByKey::default(),
            inbound: Inbound::new(config, levels, online.then(|| Online::new(params.window))),
        }
    }

    /// Adds `flow` to the messages that may send, or removes it.
    fn refresh(ready: &mut ByKey, flow: FlowId, sender: &Sender) {
        if sender.is_ready() {
            ready.set(flow, sender.left());
        } else {
            ready.remove(flow);
        }
    }

    /// Sets the timer for requests, after an answer or a transmission: it runs while the sender waits for the
    /// receiver, unless the receiver has answered and itself waits for bytes of the message.
    fn watch(flow: FlowId, sender: &Sender, ask_after: Dur, cx: &mut Cx<'_>) {
        if !sender.is_ready() && (!sender.answered || sender.next == sender.size) {
            cx.arm(flow, ASK, cx.now.after(ask_after));
        } else {
            cx.disarm(flow, ASK);
        }
    }

    fn on_grant(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        let flow = packet.flow;
        let Some(sender) = self.senders.get_mut(flow) else { return };
        let Grant { level, received } = packet.get();
        (sender.answered, sender.tries) = (true, 0);
        sender.received = sender.received.max(received);
        if packet.offset > sender.granted {
            (sender.granted, sender.level) = (packet.offset, level);
        }
        Self::watch(flow, sender, self.ask_after, cx);
        Self::refresh(&mut self.ready, flow, sender);
    }

    fn on_resend(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        let flow = packet.flow;
        let Some(sender) = self.senders.get_mut(flow) else {
            return cx.control(Packet::new(flow, UNKNOWN, self.header));
        };
        let Resend { end, level } = packet.get();
        (sender.answered, sender.tries) = (true, 0);
        if end > sender.granted {
            (sender.granted, sender.level) = (end, level);
        }
        sender.again_level = level;
        if sender.again.insert(packet.offset..end.min(sender.next)) > 0 {
            cx.note_timeout(flow);
        }
        Self::watch(flow, sender, self.ask_after, cx);
        Self::refresh(&mut self.ready, flow, sender);
        if self.ready.first() != Some(flow) {
            cx.count(flow, BUSIES, 1);
            cx.control(Packet::new(flow, BUSY, self.header));
        }
    }

    fn on_cutoffs(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        let (list, receiver): (CutoffList, _) = (packet.get_ext(cx.ext), cx.flow(packet.flow).dst);
        let Some(all) = &mut self.by_receiver else { return };
        // A newer packet may have overtaken this one.
        if all.get(&receiver).is_none_or(|(version, _)| *version < list.version) {
            let levels = Levels { cutoffs: list.cutoffs(), scheduled: 0 };
            all.insert(receiver, (list.version, levels));
        }
    }

    fn on_ack(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        let flow = packet.flow;
        if self.senders.remove(flow).is_some() {
            self.ready.remove(flow);
            cx.close(flow);
        }
    }

    /// Handles the expiry of the timer for requests.
    fn on_ask(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        let Some(sender) = self.senders.get_mut(flow) else { return };
        cx.note_timeout(flow);
        sender.tries += 1;
        if self.tries > 0 && sender.tries > self.tries {
            return self.give_up(flow, cx);
        }
        let first = sender.unscheduled.min(self.mss);
        sender.again.insert(0..first);
        let receiver = cx.flow(flow).dst;
        sender.again_level = levels_of(&self.levels, self.by_receiver.as_ref(), receiver).1.unscheduled(sender.size);
        Self::refresh(&mut self.ready, flow, sender);
    }
}

/// Returns the levels of unscheduled packets to a receiver, and the version of their cutoffs.
#[inline]
fn levels_of<'a>(own: &'a Levels, by_receiver: Option<&'a BTreeMap<HostId, (u32, Levels)>>, receiver: HostId) -> (u32, &'a Levels) {
    by_receiver.and_then(|levels| levels.get(&receiver)).map_or((0, own), |(version, levels)| (*version, levels))
}

impl Transport for Homa {
    fn on_flow(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        let size = cx.flow(flow).size_bytes;
        let unscheduled = size.min(self.rtt_bytes);
        let sender = Sender {
            size,
            unscheduled,
            granted: unscheduled,
            level: self.last_level,
            next: 0,
            again: Ranges::default(),
            again_level: 0,
            answered: false,
            received: 0,
            tries: 0,
        };
        Self::refresh(&mut self.ready, flow, &sender);
        self.senders.insert(flow, sender);
    }

    fn on_packet(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        match packet.kind {
            Kind::DATA => self.inbound.on_data(packet, cx),
            GRANT => self.on_grant(packet, cx),
            Kind::ACK => self.on_ack(packet, cx),
            RESEND => self.on_resend(packet, cx),
            BUSY => self.inbound.on_busy(packet.flow, cx),
            CUTOFFS => self.on_cutoffs(packet, cx),
            UNKNOWN => self.inbound.forget(packet.flow, cx),
            // No other kind is sent.
            _ => {}
        }
    }

    fn on_timer(&mut self, key: TimerKey, cx: &mut Cx<'_>) {
        match key.kind {
            ASK => self.on_ask(key.flow, cx),
            MISSING => self.inbound.on_missing(key.flow, cx),
            PACED => self.inbound.grant(cx),
            _ => unreachable!("unknown timer"),
        }
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        let flow = self.ready.first()?;
        let sender = self.senders.get_mut(flow).expect("a closed message is never ready");
        let (version, levels) = levels_of(&self.levels, self.by_receiver.as_ref(), cx.flow(flow).dst);
        let lost = sender.again.iter().next().cloned();
        let mut packet = match lost {
            Some(lost) => {
                let end = lost.end.min(lost.start + self.mss);
                sender.again.remove_below(end);
                let data = Packet::data(flow, lost.start, (end - lost.start) as u16, self.header);
                Packet { prio: sender.again_level, flags: Packet::RETX, ..data }
            }
            None => {
                let scheduled = sender.next >= sender.unscheduled;
                let end = if scheduled { sender.granted } else { sender.unscheduled }.min(sender.next + self.mss);
                let prio = match self.unsched_prio {
                    _ if scheduled => sender.level,
                    UnschedPrio::Size => levels.unscheduled(sender.size),
                    UnschedPrio::Remaining => levels.unscheduled(sender.size - sender.next),
                };
                let data = Packet::data(flow, sender.next, (end - sender.next) as u16, self.header);
                let counter = if scheduled { SCHEDULED_BYTES } else { UNSCHEDULED_BYTES };
                cx.count(flow, counter, data.payload.into());
                sender.next = end;
                Packet { prio, ..data }
            }
        };
        packet.set(Version { version });
        Self::watch(flow, sender, self.ask_after, cx);
        Self::refresh(&mut self.ready, flow, sender);
        Some(packet)
    }

    fn remove_sender(&mut self, flow: FlowId) -> bool {
        self.ready.remove(flow);
        self.senders.remove(flow).is_some()
    }

    fn sample(&self, flow: FlowId) -> Option<Sample> {
        let sender = self.senders.get(flow)?;
        // The window is the bytes granted ahead of those known to have arrived.
        let cwnd_bytes = sender.granted - sender.received;
        let in_flight_bytes = sender.next.saturating_sub(sender.received + sender.again.bytes());
        Some(Sample { cwnd_bytes, ssthresh_bytes: 0, srtt: Dur::ZERO, rate: Rate(0), in_flight_bytes })
    }

    fn timers(&self) -> Timers {
        let resend = Timeout::new("resend_after", self.resend_after);
        Timers { handshake: false, first: resend, least: resend, fixed: true }
    }

    fn bursts(&self) -> Bursts {
        // Section 3.5: each granted message may have RTTbytes on its way; the link carries those of one message
        // per round trip.
        let granted_bytes = self.rtt_bytes.saturating_mul(self.inbound.most_granted().saturating_sub(1));
        Bursts { first_bytes: self.rtt_bytes, granted_bytes }
    }
}

#[cfg(test)]
mod tests;

//! Homa: the first bytes of a message go at once, the receiver grants the others to the shortest messages, and sets levels of priority for both.
//!
//! Source: B. Montazeri et al., "Homa: A Receiver-Driven Low-Latency Transport Protocol Using Network Priorities", SIGCOMM 2018, section 3; where the
//! paper is silent, the simulator of its authors (github.com/PlatformLab/HomaSimulation) and draft-ousterhout-tsvwg-homa.
//!
//! Model: sizes are known. A flow is a message; there are no replies. Level 0 is the highest. Ports must serve levels in strict order (`strict`);
//! the authors spray packets over paths, and their senders decide what to send when the link is free: both stand where a scenario is silent.
//!
//! | rule | from |
//! |---|---|
//! | the first `rtt_bytes` of a message are sent unscheduled, the others as they are granted | section 3.2 |
//! | the host sends the message with the fewest bytes left | section 3.2 |
//! | unscheduled levels: as many as unscheduled bytes have of all bytes, at least one, and one less than all at most | section 3.4 |
//! | cutoffs: each unscheduled level gets as many bytes | section 3.4 |
//! | the receiver grants to the `overcommitment` messages with the fewest bytes left, of each sender to one | section 3.5 |
//! | of a granted message at most `rtt_bytes` are on their way | section 3.3 |
//! | scheduled levels: the shortest active message has the highest of as many of the lowest levels as there are active ones | section 3.4 |
//! | granted bytes that are missing for `resend_after` are asked for again; the sender resends them, or says BUSY | section 3.7 |
//!
//! Assumed:
//! - A GRANT names the byte up to which may be sent. The level of the GRANT with the highest one holds for all granted bytes that were not sent.
//!   GRANTs to one sender leave a packet time of the receiver's link apart. A window is never exceeded, so that a GRANT may be short.
//! - GRANTs and other packets without payload go at level 0, before data. The request is the first unscheduled packet, as long as others.
//! - The receiver acknowledges a whole message, which closes it at its sender. In the authors' system the reply does.
//! - A sender that was never heard, or has sent all, sends its first packet again after `ask_after`. If the receiver has the message it answers
//!   with its ACK or its last GRANT.
//! - A RESEND grants its bytes, at level 0, as in the authors' Linux module. The answer is BUSY if the host sends another message first. A
//!   timeout counts at the sender when a RESEND makes it send again. A RESEND of a message that the sender does not have is answered with
//!   UNKNOWN, and the receiver forgets the message.
//! - No number of RESENDs ends a message unless `tries` sets one.
//! - `cutoffs = "auto"` takes the sizes that the workloads offer, mixed by rates of flows; those without a load do not count beside others that
//!   have one. Cutoffs that are equal are one, and leave a level unused.
//! - `cutoffs = "online"`: a receiver works its levels out anew after each 100 messages, and once it has seen more than 1000 of which it keeps
//!   `window`, after each tenth of those kept. It begins with one unscheduled level. Data says which cutoffs it follows; to the first packet of a
//!   message with others than the present ones the receiver answers with CUTOFFS.
//! - `oldest_share` is granted to the oldest message whenever it is not active, at the highest scheduled level.
//! - Preempted messages keep what they were granted.
//! - A policy is refused: it would change the classes, which are the levels.
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
use header::{BUSY, CUTOFFS, GRANT, Grant, RESEND, Resend, Told, UNKNOWN, Version};
use inbound::{Inbound, MISSING, PACED};
use levels::{Cutoffs, Law, Levels, Online};
use std::collections::BTreeMap;

mod header;
mod inbound;
mod levels;

/// What `list` and `check` know of it.
pub const META: Meta = Meta {
    summary: "Homa: receivers grant bytes to the shortest messages, over levels of priority",
    source: "Montazeri et al., SIGCOMM 2018; PlatformLab/HomaSimulation",
    needs: Needs { qdisc: &["strict"], ..Needs::NONE },
    implies: &[("nic.low_water", "1B"), ("qdisc.kind", "strict"), ("router.kind", "spray"), ("transport.cutoffs", "10KB")],
    kinds: &["grant", "resend", "busy", "cutoffs", "unknown"],
    counters: &[
        Counter { name: "grants", unit: "packets", about: "GRANTs that the receiver sent" },
        Counter { name: "resends", unit: "packets", about: "RESENDs that the receiver sent" },
        Counter {
            name: "first_rtt_bytes",
            unit: "B",
            about: "payload that arrived within an unloaded round trip of the flow's start",
        },
        Counter { name: "busies", unit: "packets", about: "BUSYs that the sender sent" },
        Counter { name: "unscheduled_bytes", unit: "B", about: "payload that the sender sent without a GRANT, each byte once" },
        Counter { name: "scheduled_bytes", unit: "B", about: "payload that the sender sent after a GRANT, each byte once" },
    ],
    knows: &["size"],
    packets_only: "its hosts and ports serve the message with the least left first",
    ..Meta::PLAIN
};

/// Places of the sender's counters.
const BUSIES: usize = 3;
const UNSCHEDULED_BYTES: usize = 4;
const SCHEDULED_BYTES: usize = 5;

base::choice! {
    /// What sets the level of an unscheduled packet.
    pub enum UnschedPrio {
        /// The size of its message.
        Size = "size",
        /// What is left of its message.
        Remaining = "remaining",
    }
}

base::params! {
    /// Parameters of Homa.
    pub struct Params {
        /// Unscheduled bytes of a message, and bytes that are granted ahead of what has arrived; `auto`: one bandwidth-delay product of the longest
        /// path.
        rtt_bytes: Auto<Bytes> = "auto" in Auto::Set(Bytes(1))..=Auto::Set(Bytes(1_000_000_000)), "section 3.2: RTTbytes, 9.7 KB at 10 Gb/s";
        /// Levels of priority.
        priorities: u32 = "8" in 2..=8, "section 3.4: today's switches";
        /// Largest sizes of messages in the unscheduled levels but the last, rising; `auto`: those with equal shares of the unscheduled bytes of
        /// the workloads; `online`: the same of the messages that a receiver has seen.
        cutoffs: Auto<Cutoffs> = "auto", "section 3.4; HomaSimulation computes them before a run";
        /// Messages that a receiver remembers with `cutoffs = "online"`.
        window: u32 = "10000" in 1..=10_000_000, "flowloom";
        /// Levels of scheduled packets; `auto`: those that unscheduled packets leave.
        scheduled_levels: Auto<u32> = "auto" in Auto::Set(1)..=Auto::Set(7), "section 3.4";
        /// Most messages that a receiver grants at a time; `auto`: the scheduled levels.
        overcommitment: Auto<u32> = "auto" in Auto::Set(1)..=Auto::Set(100_000), "section 3.5";
        /// Most bytes per GRANT; `auto`: a full packet.
        grant_bytes: Auto<Bytes> = "auto" in Auto::Set(Bytes(1))..=Auto::Set(Bytes(1_000_000_000)), "HomaSimulation: 1472 B";
        /// What sets the level of an unscheduled packet: the size of its message, or what is left of it.
        unsched_prio: UnschedPrio = "size", "section 3.4; HomaSimulation: `remaining`";
        /// So many bytes at the end of a message are granted at the unscheduled level of a message of the size that is left; 0B: none.
        tail_boost: Bytes = "0B" in Bytes(0)..=Bytes(1_000_000_000), "the paper has none; HomaSimulation: `rtt_bytes`";
        /// GRANTs count as unscheduled bytes of messages of size 0 where levels and cutoffs are computed.
        count_grants: bool = "false", "HomaSimulation: accountForGrantTraffic";
        /// Share of granted bytes that the oldest message gets while it is not among those with the fewest bytes left.
        oldest_share: Fraction = "0" in Fraction(0)..=Fraction(500_000_000), "the paper has none; draft-ousterhout-tsvwg-homa: 0.05";
        /// Silence after which a receiver asks for missing bytes again; `auto`: 5 ms, at least ten unloaded round trips of the longest path.
        resend_after: Auto<Dur> = "auto" in Auto::Set(Dur::from_ns(100))..=Auto::Set(Dur::from_secs(60)), "section 3.7: a few ms";
        /// Silence after which a sender sends the first packet again; `auto`: twice `resend_after`.
        ask_after: Auto<Dur> = "auto" in Auto::Set(Dur::from_ns(100))..=Auto::Set(Dur::from_secs(600)), "HomaL4Protocol-ns-3: 10 ms";
        /// Tries in a row without an answer after which a message ends; 0: it never does.
        tries: u32 = "0", "flowloom: as TCP here; HomaL4Protocol-ns-3: 5";
    }
}

/// Problems that show only against the network, the workloads and the other parts of the system, or between parameters.
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
                let message = format!("`auto` has no cutoffs here: {why}");
                problem("cutoffs", message, "write the cutoffs, like `300B, 5KB`, or `online`");
            }
        }
        Auto::Set(Cutoffs::Online) => {}
        Auto::Set(Cutoffs::List(limits)) => {
            let cutoffs = limits.in_bytes(env);
            if let Some(pair) = cutoffs.windows(2).find(|pair| pair[0] >= pair[1]) {
                let message = format!("`{}B` does not lie below the next cutoff, `{}B`", pair[0], pair[1]);
                problem("cutoffs", message, "write the cutoffs in rising order");
            }
            let levels = cutoffs.len() + 1;
            if levels + scheduled as usize > params.priorities as usize {
                let message = format!(
                    "{} cutoffs make {levels} levels of unscheduled packets; {} of `priorities` are left beside {scheduled} of scheduled ones",
                    cutoffs.len(),
                    params.priorities.saturating_sub(scheduled),
                );
                problem("cutoffs", message, "write fewer cutoffs");
            }
        }
    }
    if let Some(policy) = env.given.kind("policy") {
        let message = format!("`homa` has its levels as classes, which the policy `{policy}` would change");
        problem("kind", message, "leave `policy` out, or take another transport");
    }
    problems.extend(demotion::too_few_classes("priorities", params.priorities as usize, env));
    for (key, time) in [("resend_after", params.resend_after), ("ask_after", params.ask_after)] {
        if let Auto::Set(time) = time {
            problems.extend(env.too_short(key, time, "write a longer time or `auto`"));
        }
    }
    problems
}

/// Timer of a message at its sender: nothing is heard of the receiver.
const ASK: u8 = 0;

/// A message at its sender.
#[derive(Clone, Debug)]
struct Sender {
    size: u64,
    /// Bytes that need no GRANT.
    unscheduled: u64,
    /// All bytes below may be sent.
    granted: u64,
    /// The level of scheduled bytes.
    level: u8,
    /// The first byte that was never sent.
    next: u64,
    /// To be sent again, at which level.
    again: Ranges,
    again_level: u8,
    /// The receiver has the message.
    heard: bool,
    /// So many bytes are known to have arrived.
    received: u64,
    /// Requests since something was heard.
    tries: u32,
}

impl Sender {
    /// Whether something may be sent.
    fn is_ready(&self) -> bool {
        self.next < self.granted || !self.again.is_empty()
    }
    /// Bytes that are not sent.
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
    /// The levels of unscheduled packets to all receivers that have told no others.
    levels: Levels,
    /// What receivers have told, and the number of their cutoffs, with `online`.
    told: Option<BTreeMap<HostId, (u32, Levels)>>,
    senders: FlowMap<Sender>,
    /// Messages that may send, by the bytes that are left.
    ready: ByKey,
    inbound: Inbound,
}

impl Homa {
    /// A host without messages.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let resend_after = params.resend_after.or(Dur::from_ms(5).max(env.max_rtt * 10));
        let rtt_bytes = params.rtt_bytes.or(Bytes(env.bdp_bytes().max(1))).0;
        let grant_bytes = params.grant_bytes.or(Bytes(env.mss().into())).0;
        let scheduled = match params.scheduled_levels {
            Auto::Set(levels) => Some(levels as u8),
            Auto::Auto => None,
        };
        let overcommitment = match params.overcommitment {
            Auto::Set(messages) => Some(messages),
            Auto::Auto => None,
        };
        let grants = if params.count_grants { f64::from(env.header_bytes) / grant_bytes as f64 } else { 0.0 };
        let law = Law { priorities: params.priorities as u8, scheduled, rtt_bytes, grants };
        let levels = match &params.cutoffs {
            // Checks of timers build hosts without workloads.
            Auto::Auto => Traffic::of_sizes(env.offered).map_or_else(|_| law.with_cutoffs(Vec::new()), |sizes| law.levels(&sizes)),
            Auto::Set(Cutoffs::List(limits)) => law.with_cutoffs(limits.in_bytes(env)),
            Auto::Set(Cutoffs::Online) => law.with_cutoffs(Vec::new()),
        };
        let online = params.cutoffs == Auto::Set(Cutoffs::Online);
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
            ask_after: params.ask_after.or(resend_after * 2),
            resend_after,
            tries: params.tries,
            levels: levels.clone(),
            told: online.then(BTreeMap::new),
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

    /// Something of the receiver was heard, or something was sent: a message that waits for its receiver asks again in time, unless it has been
    /// heard and the receiver has bytes of it to wait for.
    fn watch(flow: FlowId, sender: &Sender, ask_after: Dur, cx: &mut Cx<'_>) {
        if !sender.is_ready() && (!sender.heard || sender.next == sender.size) {
            cx.arm(flow, ASK, cx.now.after(ask_after));
        } else {
            cx.disarm(flow, ASK);
        }
    }

    fn on_grant(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        let flow = packet.flow;
        let Some(sender) = self.senders.get_mut(flow) else { return };
        let Grant { level, received } = packet.get();
        (sender.heard, sender.tries) = (true, 0);
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
        (sender.heard, sender.tries) = (true, 0);
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
        let (told, receiver): (Told, _) = (packet.get_ext(cx.ext), cx.flow(packet.flow).dst);
        let Some(all) = &mut self.told else { return };
        // A packet may have been overtaken.
        if all.get(&receiver).is_none_or(|(version, _)| *version < told.version) {
            let levels = Levels { cutoffs: told.cutoffs(), scheduled: 0 };
            all.insert(receiver, (told.version, levels));
        }
    }

    fn on_ack(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        let flow = packet.flow;
        if self.senders.remove(flow).is_some() {
            self.ready.remove(flow);
            cx.close(flow);
        }
    }

    /// Nothing was heard of the receiver for long.
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
        sender.again_level = levels_of(&self.levels, self.told.as_ref(), receiver).1.unscheduled(sender.size);
        Self::refresh(&mut self.ready, flow, sender);
    }
}

/// The levels of unscheduled packets to a receiver, and the number of their cutoffs.
#[inline]
fn levels_of<'a>(own: &'a Levels, told: Option<&'a BTreeMap<HostId, (u32, Levels)>>, receiver: HostId) -> (u32, &'a Levels) {
    told.and_then(|told| told.get(&receiver)).map_or((0, own), |(version, levels)| (*version, levels))
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
            heard: false,
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
            // No other kind is ever sent.
            _ => {}
        }
    }

    fn on_timer(&mut self, key: TimerKey, cx: &mut Cx<'_>) {
        match key.kind {
            ASK => self.on_ask(key.flow, cx),
            MISSING => self.inbound.on_missing(key.flow, cx),
            PACED => self.inbound.grant(cx),
            _ => unreachable!("a timer that nobody arms"),
        }
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        let flow = self.ready.first()?;
        let sender = self.senders.get_mut(flow).expect("a closed message is never ready");
        let (version, levels) = levels_of(&self.levels, self.told.as_ref(), cx.flow(flow).dst);
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
        // The window is what was granted ahead of what is known to have arrived.
        let cwnd_bytes = sender.granted - sender.received;
        let in_flight_bytes = sender.next.saturating_sub(sender.received + sender.again.bytes());
        Some(Sample { cwnd_bytes, ssthresh_bytes: 0, srtt: Dur::ZERO, rate: Rate(0), in_flight_bytes })
    }

    fn timers(&self) -> Timers {
        let resend = Timeout::new("resend_after", self.resend_after);
        Timers { handshake: false, first: resend, least: resend, fixed: true }
    }

    fn bursts(&self) -> Bursts {
        // Section 3.5: each message that is granted may have RTTbytes on its way, of which the link carries those of one in a round trip.
        let granted_bytes = self.rtt_bytes.saturating_mul(self.inbound.most_granted().saturating_sub(1));
        Bursts { first_bytes: self.rtt_bytes, granted_bytes }
    }
}

#[cfg(test)]
mod tests;

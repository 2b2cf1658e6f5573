//! pHost: receivers send tokens at the rate of the downlink, and senders answer each token with one
//! packet; the first packets of a flow need no tokens.
//!
//! Source: P. X. Gao et al., "pHost: Distributed Near-Optimal Datacenter Transport Over Commodity Network Fabric", CoNEXT 2015; the simulator
//! of its authors (github.com/NetSys/simulator, ext/capabilityflow.cpp and ext/capabilityhost.cpp, where tokens are called capabilities).
//!
//! Model: both ends know the size of a flow. Switches serve priorities (`strict`) and should spread
//! packets over all paths (`spray`). T is the time of a full packet on the host's link.
//!
//! | rule | from |
//! |---|---|
//! | a flow begins with an RTS and `free_tokens` tokens | section 3 |
//! | a host sends one token per T, for the flow with the fewest packets missing | section 3.3 |
//! | each free token uses up a turn of the receiving host's tokens | capabilityhost.cpp, CAPABILITY_HOLD |
//! | a sender uses its tokens for the flow with the fewest packets left, the earliest to expire first | section 3.2 |
//! | a token expires `lifetime` after its arrival; free tokens expire later by T times their number | section 3.2; capabilityflow.cpp |
//! | a flow with more than `window` unanswered tokens waits until `downgrade` after its last token | section 3.3; capabilityhost.cpp |
//! | when each packet has had a token, the receiver waits for `resend`, and sends tokens for missing packets | capabilityhost.cpp |
//! | if the flow had only free tokens, the receiver waits for 2 T for each of them | capabilityflow.cpp |
//! | control packets have class 0, data of short flows class 1, other data class 2 | capabilityflow.cpp, third level |
//! | the last packet is answered by an ACK | capabilityflow.cpp |
//!
//! Assumed:
//! - Data that overtakes its RTS replaces it. Both the RTS and data carry the number of free
//!   tokens.
//! - The RTS is repeated after `rts`, at twice the interval each time, until a token or the ACK
//!   arrives. A sender that then receives no packet for `idle` sends the RTS again: the ACK may be
//!   lost.
//! - Late data finds the flow complete, and is answered by another ACK.
//! - A receiver stops sending tokens for a flow if it has received none of its packets for `idle`, until
//!   a packet arrives.
//! - Data that arrives ends the wait of a flow at once if no more than `window` tokens are
//!   unanswered then.
//! - Short flows are those for which `free_tokens` tokens suffice.
//!
//! Deviates: with `auto` for `free_tokens`, `window` and `resend`, these grow with the
//! bandwidth-delay product. The paper's values fit its network.

use crate::contract::{Bursts, Cx, Env, Timeout, Timers, Transport};
use crate::flow::Sample;
use crate::kit::demotion::too_few_classes;
use crate::kit::order::ByKey;
use crate::kit::pull_pacer::PullPacer;
use crate::kit::tokens::{HeldTokens, PacketToken};
use crate::packet::{Kind, Packet};
use base::params::{Auto, Problem};
use base::registry::{Counter, Meta, Needs};
use base::{Dur, FlowId, FlowMap, Rate, Time, TimerKey};
use config::Config;
use header::{Answer, RTS, STATUS, Status, TOKEN, Terms};
use receiver::{Phase, Receiver};
use std::collections::BTreeSet;

mod config;
mod header;
mod receiver;

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "pHost: receivers send tokens at the rate of the downlink, to the flow with the fewest packets left first; the first packets need no tokens",
    source: "Gao et al., CoNEXT 2015; NetSys/simulator",
    needs: Needs { qdisc: &["strict"], ..Needs::NONE },
    implies: &[("nic.low_water", "1B"), ("router.kind", "spray")],
    kinds: &["rts", "token", "status"],
    counters: &[
        Counter { name: "tokens", unit: "packets", about: "tokens sent by the receiver" },
        Counter { name: "expired", unit: "packets", about: "tokens that expired unused at the sender, free ones included" },
        Counter { name: "free", unit: "packets", about: "packets sent with free tokens" },
        Counter {
            name: "downgrades",
            unit: "",
            about: "times that the source left more than `window` tokens unanswered and was downgraded",
        },
    ],
    knows: &["size"],
    packets_only: "its hosts serve the flow with the fewest packets left first",
    host: "the authors' simulator: the packet is chosen when the link is free",
    ..Meta::PLAIN
};

/// Indices of the counters.
const TOKENS: usize = 0;
const EXPIRED: usize = 1;
const FREE: usize = 2;
const DOWNGRADES: usize = 3;

/// Classes of packets: control packets have class 0.
const SHORT: u8 = 1;
const LONG: u8 = 2;

base::choice! {
    /// The flows that begin with free tokens.
    pub enum Free {
        /// All flows.
        All = "all",
        /// Flows that need no other tokens.
        Short = "short",
    }
}

base::params! {
    /// Parameters of pHost.
    pub struct Params {
        /// Free tokens of a flow; `auto`: one bandwidth-delay product of the longest path, at least
        /// 8.
        free_tokens: Auto<u32> = "auto" in Auto::Set(0)..=Auto::Set(100_000), "section 3.2: one BDP; 8 in the authors' simulator";
        /// Which flows begin with free tokens.
        free: Free = "all", "section 3.2; `short` in the authors' simulator";
        /// Whether each free token uses up a turn of the receiving host's tokens.
        hold: bool = "true", "authors' simulator";
        /// How long a token may be used after its arrival; `auto`: 1.5 T.
        lifetime: Auto<Dur> = "auto" in Auto::Set(Dur::from_ns(1))..=Auto::Set(Dur::from_secs(1)), "authors' simulator: 1.5 T";
        /// Largest number of unanswered tokens of a flow; `auto`: one bandwidth-delay product of
        /// the longest path, at least 8.
        window: Auto<u32> = "auto" in Auto::Set(1)..=Auto::Set(100_000), "section 3.3: one BDP; 8 in the authors' simulator";
        /// Time until a flow with more unanswered tokens gets the next token; `auto`: three
        /// unloaded round trips of the longest path.
        downgrade: Auto<Dur> = "auto" in Auto::Set(Dur::from_ns(100))..=Auto::Set(Dur::from_secs(60)), "section 3.3; 25 T in the authors' simulator";
        /// Time from the last token that a flow needs until tokens for missing packets are sent;
        /// `auto`: 9 T, at least an unloaded round trip of the longest path and a token's lifetime.
        resend: Auto<Dur> = "auto" in Auto::Set(Dur::from_ns(100))..=Auto::Set(Dur::from_secs(60)), "authors' simulator: 9 T";
        /// Time from the first RTS to the second; `auto`: three unloaded round trips of the longest
        /// path.
        rts: Auto<Dur> = "auto" in Auto::Set(Dur::from_ns(100))..=Auto::Set(Dur::from_secs(60)), "flowloom";
        /// Time without packets of a flow after which a receiver stops its tokens, and a sender
        /// repeats its RTS; `auto`: 10 ms, at least three unloaded round trips of the longest path.
        idle: Auto<Dur> = "auto" in Auto::Set(Dur::from_us(1))..=Auto::Set(Dur::from_secs(60)), "flowloom";
        /// Whether senders report every 20 T if they have more than two long flows; receivers serve
        /// senders with fewer first.
        notify: bool = "false", "authors' simulator, where it is off";
    }
}

/// Returns the problems that depend on the network, and contradictions between parameters.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    let classes = too_few_classes("kind", 3, env);
    let mut problems: Vec<Problem> =
        classes.into_iter().map(|problem| Problem { message: format!("its packets use {}", problem.message), ..problem }).collect();
    for (key, value) in [("downgrade", params.downgrade), ("rts", params.rts), ("idle", params.idle)] {
        if let Auto::Set(value) = value {
            problems.extend(env.too_short(key, value, "write a longer time"));
        }
    }
    problems
}

/// Timer of a sender: repeats the RTS.
const AGAIN: u8 = 0;
/// Timer of a receiver: the end of a wait.
const WAIT: u8 = 1;
/// Timers of a host: the next token, and the next reports. Waits of flows that end at the same time
/// are handled before.
const PACE: u8 = 2;
const REPORT: u8 = 3;

/// The machine of one host.
pub struct Phost {
    config: Config,
    senders: FlowMap<HeldTokens>,
    /// Flows with tokens, some of which may have expired, by the number of packets left.
    sending: ByKey,
    /// Long flows that the host sends, if it reports them.
    long: BTreeSet<FlowId>,
    receivers: FlowMap<Receiver>,
    /// Flows that may get the next token, by the number of missing packets.
    asking: ByKey,
    pacer: PullPacer,
}

impl Phost {
    /// Creates a host without flows.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let config = Config::new(params, env);
        let pacer = PullPacer::new(config.token_gap);
        Phost {
            config,
            senders: FlowMap::default(),
            sending: ByKey::default(),
            long: BTreeSet::new(),
            receivers: FlowMap::default(),
            asking: ByKey::default(),
            pacer,
        }
    }

    fn control(&self, flow: FlowId, kind: Kind) -> Packet {
        Packet::new(flow, kind, self.config.header)
    }

    // The sender.

    /// Sends the RTS of a flow, and sets the timer for the next one.
    fn announce(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        let mut rts = self.control(flow, RTS);
        let Some(sender) = self.senders.get_mut(flow) else { return };
        rts.set(Answer { number: 0, free: self.config.free_tokens(sender.packets) as u32 });
        cx.control(rts);
        cx.arm(flow, AGAIN, cx.now.after(sender.wait));
        sender.wait = (sender.wait * 2).min(self.config.idle.max(self.config.rts));
    }

    fn on_token(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        let flow = packet.flow;
        // A token for a closed flow is late.
        let Some(sender) = self.senders.get_mut(flow) else { return };
        let Terms { number, missing, lifetime } = packet.get();
        sender.remaining = missing.into();
        sender.add(PacketToken { expires: cx.now.after(lifetime), number: number.into(), packet: packet.offset / self.config.mss });
        sender.wait = self.config.idle;
        self.sending.set(flow, sender.remaining);
        cx.arm(flow, AGAIN, cx.now.after(self.config.idle));
    }

    fn on_ack(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        if let Some(mut sender) = self.senders.remove(flow) {
            cx.count(flow, EXPIRED, sender.discard(cx.now));
            self.forget(flow);
            cx.close(flow);
        }
    }

    fn forget(&mut self, flow: FlowId) {
        self.sending.remove(flow);
        self.long.remove(&flow);
    }

    /// Reports to the receivers of all long flows whether the host has more than it can serve.
    fn report(&mut self, cx: &mut Cx<'_>) {
        let blocked = u8::from(self.long.len() > 2);
        for &flow in &self.long {
            let mut status = self.control(flow, STATUS);
            status.set(Status { blocked });
            cx.control(status);
        }
        if !self.long.is_empty() {
            cx.arm_host(REPORT, cx.now.after(self.config.packet * 20));
        }
    }

    // The receiver.

    fn confirm(&self, flow: FlowId, cx: &mut Cx<'_>) {
        cx.control(Packet { offset: cx.flow(flow).size_bytes, ..self.control(flow, Kind::ACK) });
    }

    /// Handles the arrival of any packet of an incomplete flow: opens the flow if it is new, and
    /// resumes it if it was parked.
    fn on_arrival(&mut self, flow: FlowId, free: u32, cx: &mut Cx<'_>) {
        let (config, now) = (&self.config, cx.now);
        if let Some(receiver) = self.receivers.get_mut(flow) {
            receiver.last_arrival = now;
            if receiver.phase == Phase::Parked {
                // Its tokens have expired long ago.
                receiver.tokens.forgive(0);
                receiver.tokens.ask_again();
                self.settle(flow, cx);
            }
            return;
        }
        let receiver = Receiver::new(config.packets(cx.flow(flow).size_bytes), free.into(), now);
        let complete = receiver.tokens.all_issued();
        self.receivers.insert(flow, receiver);
        if config.hold {
            self.pacer.hold(free.into(), now);
        }
        if complete {
            self.hold(flow, Phase::Resend, now.after(config.packet * 2 * u64::from(free)), cx);
        } else {
            self.settle(flow, cx);
        }
    }

    /// Suspends a flow until the end of its wait.
    fn hold(&mut self, flow: FlowId, phase: Phase, until: Time, cx: &mut Cx<'_>) {
        if let Some(receiver) = self.receivers.get_mut(flow) {
            receiver.phase = phase;
            self.asking.remove(flow);
            cx.arm(flow, WAIT, until);
        }
    }

    /// Makes a flow eligible for tokens, unless too many of its tokens are unanswered.
    fn settle(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        let Some(receiver) = self.receivers.get_mut(flow) else { return };
        if receiver.tokens.gap() > self.config.window {
            let until = receiver.tokens.issued_at.after(self.config.downgrade);
            if cx.now < until {
                return self.hold(flow, Phase::Downgraded, until, cx);
            }
            receiver.tokens.forgive(self.config.window);
            cx.count(flow, DOWNGRADES, 1);
        }
        receiver.phase = Phase::Ready;
        self.asking.set(flow, u64::from(receiver.blocked) << 63 | receiver.tokens.missing);
        cx.disarm(flow, WAIT);
    }

    fn on_data(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        let (flow, answer) = (packet.flow, packet.get::<Answer>());
        if cx.has_finished(flow) {
            return self.confirm(flow, cx);
        }
        self.on_arrival(flow, answer.free, cx);
        cx.deliver(flow, packet.offset, packet.payload);
        if cx.has_finished(flow) {
            self.receivers.remove(flow);
            self.asking.remove(flow);
            cx.disarm(flow, WAIT);
            return self.confirm(flow, cx);
        }
        let Some(receiver) = self.receivers.get_mut(flow) else { return };
        receiver.tokens.on_data(packet.offset / self.config.mss, answer.number.into());
        let answered = receiver.tokens.gap() <= self.config.window;
        if receiver.phase == Phase::Ready || receiver.phase == Phase::Downgraded && answered {
            self.settle(flow, cx);
        }
    }

    fn on_rts(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        if cx.has_finished(packet.flow) {
            return self.confirm(packet.flow, cx);
        }
        self.on_arrival(packet.flow, packet.get::<Answer>().free, cx);
    }

    fn on_status(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        let Some(receiver) = self.receivers.get_mut(packet.flow) else { return };
        receiver.blocked = packet.get::<Status>().blocked > 0;
        if receiver.phase == Phase::Ready {
            self.settle(packet.flow, cx);
        }
    }

    /// Handles the end of a flow's wait.
    fn on_wait(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        let Some(receiver) = self.receivers.get_mut(flow) else { return };
        if cx.now.since(receiver.last_arrival) >= self.config.idle {
            receiver.phase = Phase::Parked;
            return;
        }
        if receiver.phase == Phase::Resend {
            receiver.tokens.ask_again();
        }
        self.settle(flow, cx);
    }

    /// Sends the next token, if it is due.
    fn ask(&mut self, cx: &mut Cx<'_>) {
        let Some(flow) = self.asking.first() else { return };
        if self.pacer.is_free(cx.now) {
            self.pacer.take(cx.now);
            self.send_token(flow, cx);
        }
        if self.asking.first().is_some() {
            self.pacer.arm(PACE, cx);
        }
    }

    fn send_token(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        let receiver = self.receivers.get_mut(flow).expect("a flow that is complete does not ask");
        let (number, packet) = receiver.tokens.issue(cx.now);
        let (missing, complete) = (receiver.tokens.missing as u32, receiver.tokens.all_issued());
        let mut token = Packet { offset: packet * self.config.mss, ..self.control(flow, TOKEN) };
        token.set(Terms { number: number as u32, missing, lifetime: self.config.lifetime });
        cx.control(token);
        cx.count(flow, TOKENS, 1);
        if complete {
            self.hold(flow, Phase::Resend, cx.now.after(self.config.resend), cx);
        } else {
            self.settle(flow, cx);
        }
    }
}

impl Transport for Phost {
    fn on_flow(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        let config = &self.config;
        let packets = config.packets(cx.flow(flow).size_bytes);
        let free = config.free_tokens(packets);
        let expires = cx.now.after(config.packet * free + config.lifetime);
        self.senders.insert(flow, HeldTokens::new(cx.flow(flow).size_bytes, (packets, free), expires, config.rts));
        if free > 0 {
            self.sending.set(flow, packets);
        }
        let reports = config.notify && !config.is_short(packets);
        self.announce(flow, cx);
        if reports {
            self.long.insert(flow);
            if !cx.is_host_armed(REPORT) {
                self.report(cx);
            }
        }
    }

    fn on_packet(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        match packet.kind {
            Kind::DATA => self.on_data(packet, cx),
            TOKEN => return self.on_token(packet, cx),
            RTS => self.on_rts(packet, cx),
            STATUS => self.on_status(packet, cx),
            Kind::ACK => return self.on_ack(packet.flow, cx),
            // No other kind is sent.
            _ => return,
        }
        self.ask(cx);
    }

    fn on_timer(&mut self, key: TimerKey, cx: &mut Cx<'_>) {
        match key.kind {
            AGAIN => {
                cx.note_timeout(key.flow);
                self.announce(key.flow, cx);
            }
            WAIT => {
                self.on_wait(key.flow, cx);
                self.ask(cx);
            }
            PACE => self.ask(cx),
            _ => self.report(cx),
        }
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        let (flow, token) = loop {
            let flow = self.sending.first()?;
            let sender = self.senders.get_mut(flow).expect("a closed flow has no tokens");
            cx.count(flow, EXPIRED, sender.discard(cx.now));
            let token = sender.take();
            if sender.tokens() == 0 {
                self.sending.remove(flow);
            }
            if let Some(token) = token {
                break (flow, token);
            }
        };
        let config = &self.config;
        let sender = self.senders.get_mut(flow).expect("its token was just taken");
        let offset = token.packet * config.mss;
        let payload = (sender.size_bytes - offset).min(config.mss);
        let mut data = Packet::data(flow, offset, payload as u16, config.header);
        let free = config.free_tokens(sender.packets);
        data.set(Answer { number: token.number as u32, free: free as u32 });
        data.prio = if config.is_short(sender.packets) { SHORT } else { LONG };
        data.flags |= u16::from(sender.on_sent(token.packet)) * Packet::RETX;
        cx.count(flow, FREE, u64::from(token.number <= free));
        Some(data)
    }

    fn remove_sender(&mut self, flow: FlowId) -> bool {
        self.forget(flow);
        self.senders.remove(flow).is_some()
    }

    fn sample(&self, flow: FlowId) -> Option<Sample> {
        let (sender, mss) = (self.senders.get(flow)?, self.config.mss);
        let in_flight_bytes = sender.in_flight_bytes(mss);
        // The window is the packets that tokens request.
        let cwnd_bytes = in_flight_bytes + sender.tokens() * mss;
        Some(Sample { cwnd_bytes, ssthresh_bytes: 0, srtt: Dur::ZERO, rate: Rate(0), in_flight_bytes })
    }

    fn timers(&self) -> Timers {
        let rts = Timeout::new("rts", self.config.rts);
        Timers { handshake: false, first: rts, least: rts, fixed: true }
    }

    fn bursts(&self) -> Bursts {
        let first_bytes = self.config.free_tokens(u64::MAX).saturating_mul(self.config.mss);
        Bursts { first_bytes, granted_bytes: 0 }
    }
}

#[cfg(test)]
mod tests;

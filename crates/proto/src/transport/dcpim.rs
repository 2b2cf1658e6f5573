//! dcPIM: receivers and senders match in rounds of requests, grants and accepts, and the matched receivers request
//! packets with tokens in the next phase; short flows are sent at once.
//!
//! Source: Q. Cai et al., "dcPIM: Near-optimal Proactive Datacenter Transport", SIGCOMM 2022; the simulator of its
//! authors (github.com/Terabit-Ethernet/dcPIM, simulator/ext/pimhost.cpp and pimflow.cpp). The full text could not be
//! consulted for this file: rules are cited by the files of the simulator.
//!
//! Model: both ends know the size of a flow. Switches serve priorities (`strict`) and should spread packets over all
//! paths (`spray`). T is the time of a full packet on the host's link, RTT the unloaded round trip of the longest
//! path. A phase has `rounds` rounds of `beta` RTT each. In a phase hosts make the matching of the next phase, while
//! data follows the matching of the last one.
//!
//! | rule | from |
//! |---|---|
//! | a flow of at most one BDP is sent at once, a longer one only announced | pimflow.cpp, init_token_size |
//! | a host has k = `channels` channels in each direction; a channel carries 1/k of the rate of the link | pimhost.cpp, send_token |
//! | at the start of a round a receiver with free channels requests those that the first flow of each source needs beyond what it has | send_all_req |
//! | in the middle of the round a sender grants its free channels, at the end the receiver accepts as many as it has free | handle_all_req, handle_all_grants |
//! | in the first `shortest_rounds` rounds of a phase both prefer flows with the fewest missing packets, then they choose at random | pim_select_min_iters |
//! | in a phase a receiver sends a token per k T / c to each source with c channels, for its flow with the fewest missing packets | send_token |
//! | a flow with more than `window` c / k unanswered tokens waits for data, or until `window_timeout` after its last token | send_token |
//! | a token expires with its phase, half an RTT and k T later | pimflow.cpp, send_token_pkt |
//! | when each packet has had a token, the receiver waits for `resend`, and the missing packets need channels and tokens | redundancy_ctrl_timeout |
//! | so do missing packets of a short flow, `resend` after they should have arrived | receive_short_flow |
//! | the last packet is answered by an ACK | pimflow.cpp, receive |
//!
//! Assumed:
//! - Clocks of hosts are exact: phase p begins everywhere at p times the length of a phase. Requests and grants that
//!   come too late for their round are ignored. A host without flows takes no part.
//! - Control packets have class 0, data of short flows class 1, other data class 2. The simulator spreads data over
//!   six classes by powers of seven packets.
//! - A sender sends short flows first, then the flow with the fewest packets left according to its last token.
//! - The receiver answers a NOTIFY with NOTED. Without an answer the NOTIFY is repeated after `notify_after`, at
//!   twice the interval each time. A sender that has sent all packets and receives no packet for `idle` repeats it:
//!   the ACK may be lost. Data that overtakes its NOTIFY replaces it.
//! - A REQUEST for a flow that the sender does not have is answered with UNKNOWN, and the receiver forgets the flow.
//! - The window is rounded down to whole tokens.
//!
//! Deviates:
//! - The simulator uses channels that are free in the current phase at once, at the lowest class (prompt links).
//!   Here every match waits for the next phase.
//! - A sender does not revoke channels that a late ACCEPT would give it beyond k (GRANTSR): in a round without loss
//!   this cannot happen.
//! - The arrival of a short flow does not delay tokens (TOKEN_HOLD).

use crate::contract::{Bursts, Cx, Env, Timeout, Timers, Transport};
use crate::flow::Sample;
use crate::kit::demotion::too_few_classes;
use crate::kit::order::ByKey;
use crate::kit::tokens::{HeldTokens, PacketToken};
use crate::packet::{Kind, Packet};
use base::params::{Auto, Problem};
use base::registry::{Counter, Meta, Needs};
use base::{Dur, FlowId, FlowMap, Fraction, Rate, Time, TimerKey};
use config::Config;
use header::{ACCEPT, Answer, GRANT, NOTED, NOTIFY, REQUEST, TOKEN, Terms, UNKNOWN};
use matching::Requests;
use receiver::Inbox;

mod config;
mod header;
mod matching;
mod receiver;

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "dcPIM: rounds of matching between receivers and senders, then tokens; short flows are sent at once",
    source: "Cai et al., SIGCOMM 2022; Terabit-Ethernet/dcPIM",
    needs: Needs { qdisc: &["strict"], ..Needs::NONE },
    implies: &[("nic.low_water", "1B"), ("qdisc.kind", "strict"), ("router.kind", "spray")],
    kinds: &["notify", "noted", "request", "grant", "accept", "token", "unknown"],
    counters: &[
        Counter { name: "tokens", unit: "packets", about: "tokens sent by the receiver" },
        Counter { name: "requests", unit: "packets", about: "REQUESTs sent by the receiver that name the flow" },
        Counter { name: "channels", unit: "", about: "channels that the receiver accepted for the flow" },
        Counter { name: "expired", unit: "packets", about: "tokens that expired unused at the sender" },
        Counter { name: "unscheduled", unit: "packets", about: "packets sent without a token of the receiver" },
    ],
    knows: &["size"],
    packets_only: "its hosts match in rounds and serve the flow with the fewest packets left first",
    host: "the authors' simulator: the packet is chosen when the link is free",
    ..Meta::PLAIN
};

/// Indices of the counters.
const TOKENS: usize = 0;
const REQUESTS: usize = 1;
const CHANNELS: usize = 2;
const EXPIRED: usize = 3;
const UNSCHEDULED: usize = 4;

/// Classes of packets: control packets have class 0.
const SHORT: u8 = 1;
const LONG: u8 = 2;

base::params! {
    /// Parameters of dcPIM.
    pub struct Params {
        /// Rounds of a matching (r).
        rounds: u32 = "4" in 1..=16, "pim_iter_limit";
        /// Channels of a host (k).
        channels: u32 = "4" in 1..=64, "pim_k";
        /// Length of a round in unloaded round trips of the longest path.
        beta: Fraction = "1.3" in Fraction::ONE..=Fraction(100_000_000_000), "pim_beta, of a control packet's round trip";
        /// Rounds of a matching in which flows with the fewest missing packets go first.
        shortest_rounds: u32 = "1" in 0..=16, "pim_select_min_iters";
        /// Largest number of packets of a flow that is sent at once; `auto`: one bandwidth-delay product, whose round
        /// trip is that of a full packet in both directions.
        short: Auto<u32> = "auto" in Auto::Set(0)..=Auto::Set(100_000), "token_initial: one BDP";
        /// Largest number of unanswered tokens of a flow with all channels; `auto`: as `short`.
        window: Auto<u32> = "auto" in Auto::Set(1)..=Auto::Set(100_000), "token_window: one BDP";
        /// Time from the last token of a flow after which unanswered tokens count as answered; `auto`: 1.1 unloaded
        /// round trips of the longest path with full packets in both directions.
        window_timeout: Auto<Dur> = "auto" in Auto::Set(Dur::from_ns(100))..=Auto::Set(Dur::from_secs(60)), "token_window_timeout: 1.1 BDP";
        /// Time from the last token that a flow needs until its missing packets need tokens again; `auto`: an
        /// unloaded round trip of the longest path with full packets in both directions.
        resend: Auto<Dur> = "auto" in Auto::Set(Dur::from_ns(100))..=Auto::Set(Dur::from_secs(60)), "token_resend_timeout: one BDP";
        /// Time from the first NOTIFY to the second; `auto`: three unloaded round trips of the longest path.
        notify_after: Auto<Dur> = "auto" in Auto::Set(Dur::from_ns(100))..=Auto::Set(Dur::from_secs(60)), "flowloom: as `phost`";
        /// Time without packets of the receiver after which a sender that has sent all packets repeats its NOTIFY;
        /// `auto`: 10 ms, at least three unloaded round trips of the longest path.
        idle: Auto<Dur> = "auto" in Auto::Set(Dur::from_us(1))..=Auto::Set(Dur::from_secs(60)), "flowloom: as `phost`";
    }
}

/// Returns the problems that depend on the network.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    let classes = too_few_classes("kind", 3, env);
    let mut problems: Vec<Problem> =
        classes.into_iter().map(|problem| Problem { message: format!("its packets use {}", problem.message), ..problem }).collect();
    let times = [
        ("window_timeout", params.window_timeout),
        ("resend", params.resend),
        ("notify_after", params.notify_after),
        ("idle", params.idle),
    ];
    for (key, value) in times {
        if let Auto::Set(value) = value {
            problems.extend(env.too_short(key, value, "write a longer time or `auto`"));
        }
    }
    problems
}

/// Timer of a flow at its sender: repeats the NOTIFY.
const AGAIN: u8 = 0;
/// Timers of a host: the middle of a round at a sender, the beginning of a round and the next token at a receiver.
const CHOOSE: u8 = 1;
const ROUND: u8 = 2;
const SEND: u8 = 3;

/// A flow at its sender.
struct Outgoing {
    tokens: HeldTokens,
    /// Packets that need no token.
    unscheduled: u64,
    /// The receiver has answered, so it has the flow.
    noted: bool,
}

/// The machine of one host.
pub struct Dcpim {
    config: Config,
    outgoing: FlowMap<Outgoing>,
    /// Flows with tokens (some may have expired): short ones first, then by the number of packets left.
    sending: ByKey,
    requests: Requests,
    inbox: Inbox,
}

impl Dcpim {
    /// Creates a host without flows.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let config = Config::new(params, env);
        Dcpim {
            config,
            outgoing: FlowMap::default(),
            sending: ByKey::default(),
            requests: Requests::default(),
            inbox: Inbox::default(),
        }
    }

    /// Announces a flow, and sets the timer for the next announcement.
    fn notify(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        let Some(outgoing) = self.outgoing.get_mut(flow) else { return };
        cx.control(Packet::new(flow, NOTIFY, self.config.header));
        let wait = &mut outgoing.tokens.wait;
        cx.arm(flow, AGAIN, cx.now.after(*wait));
        *wait = (*wait * 2).min(self.config.idle.max(self.config.notify_after));
    }

    /// Sets the timer for the next announcement after an answer or a transmission: the receiver that has a flow
    /// drives it, until all packets were sent.
    fn watch(config: &Config, flow: FlowId, outgoing: &mut Outgoing, cx: &mut Cx<'_>) {
        if !outgoing.noted {
            return;
        }
        outgoing.tokens.wait = config.idle;
        if outgoing.tokens.all_sent() {
            cx.arm(flow, AGAIN, cx.now.after(config.idle));
        } else {
            cx.disarm(flow, AGAIN);
        }
    }

    fn on_noted(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        // An answer for a closed flow is late.
        let Some(outgoing) = self.outgoing.get_mut(flow) else { return };
        outgoing.noted = true;
        Self::watch(&self.config, flow, outgoing, cx);
    }

    fn on_token(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        let flow = packet.flow;
        let Some(outgoing) = self.outgoing.get_mut(flow) else { return };
        let Terms { number, missing, phase } = packet.get();
        outgoing.noted = true;
        outgoing.tokens.remaining = missing.into();
        let expires = self.config.expiry(phase);
        outgoing.tokens.add(PacketToken { expires, number: number.into(), packet: packet.offset / self.config.mss });
        self.sending.set(flow, key(outgoing));
        Self::watch(&self.config, flow, outgoing, cx);
    }

    fn on_request(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        if self.outgoing.contains(packet.flow) {
            self.requests.on_request(&self.config, packet, cx);
            self.on_noted(packet.flow, cx);
        } else {
            cx.control(Packet::new(packet.flow, UNKNOWN, self.config.header));
        }
    }

    fn on_ack(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        if let Some(mut outgoing) = self.outgoing.remove(flow) {
            cx.count(flow, EXPIRED, outgoing.tokens.discard(cx.now));
            self.sending.remove(flow);
            cx.close(flow);
        }
    }
}

/// Returns the place of a flow among those that may send.
fn key(outgoing: &Outgoing) -> u64 {
    let short = outgoing.unscheduled > 0;
    u64::from(!short) << 63 | outgoing.tokens.remaining
}

impl Transport for Dcpim {
    fn on_flow(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        let size = cx.flow(flow).size_bytes;
        let packets = self.config.packets(size);
        let unscheduled = self.config.unscheduled(packets);
        let tokens = HeldTokens::new(size, (packets, unscheduled), Time::MAX, self.config.notify_after);
        let outgoing = Outgoing { tokens, unscheduled, noted: false };
        if unscheduled > 0 {
            self.sending.set(flow, key(&outgoing));
        }
        self.outgoing.insert(flow, outgoing);
        self.notify(flow, cx);
    }

    fn on_packet(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        let (config, flow) = (&self.config, packet.flow);
        match packet.kind {
            Kind::DATA => self.inbox.on_data(config, packet, cx),
            TOKEN => self.on_token(packet, cx),
            REQUEST => self.on_request(packet, cx),
            GRANT => self.inbox.on_grant(config, packet, cx),
            ACCEPT => self.requests.on_accept(config, packet),
            NOTIFY => self.inbox.on_notify(config, flow, cx),
            NOTED => self.on_noted(flow, cx),
            UNKNOWN => self.inbox.forget(flow),
            Kind::ACK => self.on_ack(flow, cx),
            // No other kind is sent.
            _ => {}
        }
    }

    fn on_timer(&mut self, key: TimerKey, cx: &mut Cx<'_>) {
        match key.kind {
            AGAIN => {
                cx.note_timeout(key.flow);
                self.notify(key.flow, cx);
            }
            CHOOSE => self.requests.grant(&self.config, cx),
            ROUND => self.inbox.on_round(&self.config, cx),
            SEND => self.inbox.send_tokens(&self.config, cx),
            _ => unreachable!("unknown timer"),
        }
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        let (flow, token) = loop {
            let flow = self.sending.first()?;
            let tokens = &mut self.outgoing.get_mut(flow).expect("a closed flow has no tokens").tokens;
            cx.count(flow, EXPIRED, tokens.discard(cx.now));
            let token = tokens.take();
            if tokens.tokens() == 0 {
                self.sending.remove(flow);
            }
            if let Some(token) = token {
                break (flow, token);
            }
        };
        let config = &self.config;
        let outgoing = self.outgoing.get_mut(flow).expect("its token was just taken");
        let offset = token.packet * config.mss;
        let payload = (outgoing.tokens.size_bytes - offset).min(config.mss);
        let mut data = Packet::data(flow, offset, payload as u16, config.header);
        data.set(Answer { number: token.number as u32 });
        data.prio = if outgoing.unscheduled > 0 { SHORT } else { LONG };
        data.flags |= u16::from(outgoing.tokens.on_sent(token.packet)) * Packet::RETX;
        cx.count(flow, UNSCHEDULED, u64::from(token.number <= outgoing.unscheduled));
        Self::watch(config, flow, outgoing, cx);
        Some(data)
    }

    fn remove_sender(&mut self, flow: FlowId) -> bool {
        self.sending.remove(flow);
        self.outgoing.remove(flow).is_some()
    }

    fn sample(&self, flow: FlowId) -> Option<Sample> {
        let (tokens, mss) = (&self.outgoing.get(flow)?.tokens, self.config.mss);
        let in_flight_bytes = tokens.in_flight_bytes(mss);
        // The window is the packets that tokens request.
        let cwnd_bytes = in_flight_bytes + tokens.tokens() * mss;
        Some(Sample { cwnd_bytes, ssthresh_bytes: 0, srtt: Dur::ZERO, rate: Rate(0), in_flight_bytes })
    }

    fn timers(&self) -> Timers {
        let notify = Timeout::new("notify_after", self.config.notify_after);
        Timers { handshake: false, first: notify, least: notify, fixed: true }
    }

    fn bursts(&self) -> Bursts {
        Bursts { first_bytes: self.config.short.saturating_mul(self.config.mss), granted_bytes: 0 }
    }
}

#[cfg(test)]
mod tests;

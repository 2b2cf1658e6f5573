//! Flows at their receiver: the channels that it requests and accepts, and the tokens that it sends.

use super::config::Config;
use super::header::{ACCEPT, Answer, NOTED, Offer, REQUEST, TOKEN, Terms};
use super::matching::{Bid, choose};
use super::{CHANNELS, REQUESTS, ROUND, SEND, TOKENS};
use crate::contract::Cx;
use crate::kit::tokens::IssuedTokens;
use crate::packet::{Kind, Packet};
use base::{Dur, FlowId, FlowMap, HostId, Time};
use std::collections::{BTreeMap, BTreeSet};

/// A flow at its receiver.
#[derive(Clone, Debug)]
struct Incoming {
    tokens: IssuedTokens,
    /// The flow has tokens for all packets; if some are still missing at this time, it asks again.
    wait: Option<Time>,
    /// The index of its source.
    source: u32,
}

/// A host that sends to this one.
#[derive(Clone, Debug, Default)]
struct Source {
    /// Its flows, the one with the fewest missing packets first.
    flows: Vec<(u64, FlowId)>,
}

/// The channels between this host and a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    source: u32,
    /// Number of channels.
    pub channels: u8,
    /// When the next token may leave; `Time::MAX` without any flow.
    next: Time,
}

impl Link {
    /// Returns the time between two tokens: a channel carries its share of the rate of the link.
    fn gap(&self, config: &Config) -> Dur {
        config.gap * u64::from(config.channels) / u64::from(self.channels)
    }
}

/// All flows that a host receives.
#[derive(Clone, Debug, Default)]
pub struct Inbox {
    incoming: FlowMap<Incoming>,
    by_host: BTreeMap<HostId, u32>,
    sources: Vec<Source>,
    /// Sources with flows.
    busy: BTreeSet<u32>,
    /// GRANTs of a round.
    grants: Vec<Bid>,
    grant_round: u64,
    /// The phase whose matching is made next.
    phase: u64,
    /// The first round that was not handled.
    next_round: u64,
    /// Channels for the next phase.
    matched: Vec<Link>,
    /// Channels of this phase.
    active: Vec<Link>,
}

impl Inbox {
    fn open(&mut self, config: &Config, flow: FlowId, cx: &mut Cx<'_>) {
        if self.incoming.contains(flow) {
            return;
        }
        let (packets, src) = (config.packets(cx.flow(flow).size_bytes), cx.flow(flow).src);
        let new = self.sources.len() as u32;
        let source = *self.by_host.entry(src).or_insert(new);
        if source == new {
            self.sources.push(Source::default());
        }
        let free = config.unscheduled(packets);
        let wait = (free > 0).then(|| cx.now.after(config.gap * free).after(config.resend));
        self.incoming.insert(flow, Incoming { tokens: IssuedTokens::new(packets, free, cx.now), wait, source });
        self.place(source, flow, 0, packets);
        // Channels of this phase whose flows are complete serve the new flow.
        let current = config.round_at(cx.now) / config.rounds == self.phase;
        if let Some(link) = self.active.iter_mut().find(|link| link.source == source && link.next == Time::MAX && current) {
            link.next = cx.now.after(link.gap(config));
            let next = self.active.iter().map(|link| link.next).min();
            cx.arm_host(SEND, next.unwrap_or(Time::MAX));
        }
        if !cx.is_host_armed(ROUND) {
            let next = cx.now.0.div_ceil(config.round.0).max(self.next_round);
            cx.arm_host(ROUND, config.start(next));
        }
    }

    /// Moves a flow among those of its source; 0 missing packets mean that the flow is not there.
    fn place(&mut self, source: u32, flow: FlowId, old: u64, new: u64) {
        let flows = &mut self.sources[source as usize].flows;
        if let Ok(found) = flows.binary_search(&(old, flow)) {
            flows.remove(found);
        }
        if new > 0 {
            let at = flows.partition_point(|other| *other < (new, flow));
            flows.insert(at, (new, flow));
            self.busy.insert(source);
        } else if flows.is_empty() {
            self.busy.remove(&source);
        }
    }

    /// Handles data.
    pub fn on_data(&mut self, config: &Config, packet: &Packet, cx: &mut Cx<'_>) {
        let (flow, Answer { number }) = (packet.flow, packet.get());
        if cx.has_finished(flow) {
            return confirm(config, flow, cx);
        }
        self.open(config, flow, cx);
        cx.deliver(flow, packet.offset, packet.payload);
        if cx.has_finished(flow) {
            self.forget(flow);
            return confirm(config, flow, cx);
        }
        let incoming = self.incoming.get_mut(flow).expect("opened above");
        let before = incoming.tokens.missing;
        incoming.tokens.on_data(packet.offset / config.mss, number.into());
        let (source, after) = (incoming.source, incoming.tokens.missing);
        self.place(source, flow, before, after);
    }

    /// Handles a NOTIFY.
    pub fn on_notify(&mut self, config: &Config, flow: FlowId, cx: &mut Cx<'_>) {
        if cx.has_finished(flow) {
            return confirm(config, flow, cx);
        }
        self.open(config, flow, cx);
        cx.control(Packet::new(flow, NOTED, config.header));
    }

    /// Forgets a flow that is complete, or that its sender does not have.
    pub fn forget(&mut self, flow: FlowId) {
        if let Some(incoming) = self.incoming.remove(flow) {
            self.place(incoming.source, flow, incoming.tokens.missing, 0);
        }
    }

    /// Handles a GRANT: the receiver chooses at the end of the round.
    pub fn on_grant(&mut self, config: &Config, packet: &Packet, cx: &mut Cx<'_>) {
        let Offer { round, channels, missing } = packet.get();
        if cx.now > config.start(round + 1) || round < self.grant_round {
            // It is too late for this round.
            return;
        }
        if round > self.grant_round {
            self.grants.clear();
            self.grant_round = round;
        }
        self.grants.push(Bid { flow: packet.flow, missing, channels });
    }

    /// Handles the beginning of a round: accepts the grants of the last round, and sends requests.
    pub fn on_round(&mut self, config: &Config, cx: &mut Cx<'_>) {
        let round = config.round_at(cx.now);
        if self.grant_round + 1 == round {
            self.accept(config, cx);
        }
        self.grants.clear();
        self.next_round = round + 1;
        let phase = round / config.rounds;
        if phase != self.phase {
            self.active.clear();
            if phase == self.phase + 1 {
                std::mem::swap(&mut self.active, &mut self.matched);
            }
            self.matched.clear();
            self.phase = phase;
            for link in &mut self.active {
                link.next = cx.now;
            }
            self.send_tokens(config, cx);
        }
        if !self.busy.is_empty() {
            self.request(config, round, cx);
            cx.arm_host(ROUND, config.start(round + 1));
        }
    }

    fn accept(&mut self, config: &Config, cx: &mut Cx<'_>) {
        let round = self.grant_round;
        let mut bids = std::mem::take(&mut self.grants);
        let free = config.channels - channels(&self.matched);
        let (matched, by_host, flows) = (&mut self.matched, &self.by_host, cx.flows);
        let (io, table) = (&mut *cx.io, &mut *cx.table);
        choose(&mut bids, free, config.shortest_first(round), cx.rng, |bid| {
            let Some(&source) = by_host.get(&flows[bid.flow.index()].src) else { return };
            let mut accept = Packet::new(bid.flow, ACCEPT, config.header);
            accept.set(Offer { round, channels: bid.channels, missing: bid.missing });
            io.control.push_back(accept);
            table.count(bid.flow, CHANNELS, bid.channels.into());
            match matched.iter_mut().find(|link| link.source == source) {
                Some(link) => link.channels += bid.channels,
                None => matched.push(Link { source, channels: bid.channels, next: Time::MAX }),
            }
        });
        self.grants = bids;
    }

    /// Requests the channels that the first flow of each source needs beyond those of this phase and of the next one.
    fn request(&mut self, config: &Config, round: u64, cx: &mut Cx<'_>) {
        let free = config.channels - channels(&self.matched);
        if free == 0 {
            return;
        }
        for &source in &self.busy {
            let Some((missing, flow)) = self.first(source, cx.now) else { continue };
            let of = |links: &[Link]| links.iter().find(|link| link.source == source).map_or(0, |link| u64::from(link.channels));
            let needed = missing.div_ceil(config.channel_packets).saturating_sub(of(&self.active) + of(&self.matched));
            if needed == 0 {
                continue;
            }
            let mut request = Packet::new(flow, REQUEST, config.header);
            request.set(Offer { round, channels: needed.min(free.into()) as u8, missing: missing as u32 });
            cx.control(request);
            cx.count(flow, REQUESTS, 1);
        }
    }

    /// Returns the flow of a source with the fewest missing packets that does not wait.
    fn first(&self, source: u32, now: Time) -> Option<(u64, FlowId)> {
        let waits = |flow: FlowId| self.incoming.get(flow).and_then(|incoming| incoming.wait).is_some_and(|until| until > now);
        self.sources[source as usize].flows.iter().copied().find(|(_, flow)| !waits(*flow))
    }

    /// Sends the tokens that are due, and sets the timer for the next ones.
    pub fn send_tokens(&mut self, config: &Config, cx: &mut Cx<'_>) {
        let mut next = Time::MAX;
        for at in 0..self.active.len() {
            let link = self.active[at];
            if link.next <= cx.now {
                self.send_token(config, link, cx);
                let idle = self.sources[link.source as usize].flows.is_empty();
                self.active[at].next = if idle { Time::MAX } else { cx.now.after(link.gap(config)) };
            }
            next = next.min(self.active[at].next);
        }
        if next < Time::MAX {
            cx.arm_host(SEND, next);
        }
    }

    /// Sends a token to a source, unless its first flow has too many unanswered tokens.
    fn send_token(&mut self, config: &Config, link: Link, cx: &mut Cx<'_>) {
        let Some((_, flow)) = self.first(link.source, cx.now) else { return };
        let incoming = self.incoming.get_mut(flow).expect("a flow of a source is known");
        let tokens = &mut incoming.tokens;
        if incoming.wait.take().is_some() {
            tokens.ask_again();
        }
        let window = config.window * u64::from(link.channels) / u64::from(config.channels);
        if tokens.gap() > window {
            if cx.now < tokens.issued_at.after(config.window_timeout) {
                return;
            }
            tokens.forgive(window);
        }
        let (number, packet) = tokens.issue(cx.now);
        let missing = tokens.missing as u32;
        if tokens.all_issued() {
            incoming.wait = Some(cx.now.after(config.resend));
        }
        let mut token = Packet { offset: packet * config.mss, ..Packet::new(flow, TOKEN, config.header) };
        token.set(Terms { number: number as u32, missing, phase: self.phase });
        cx.control(token);
        cx.count(flow, TOKENS, 1);
    }
}

fn channels(links: &[Link]) -> u8 {
    links.iter().map(|link| link.channels).sum()
}

fn confirm(config: &Config, flow: FlowId, cx: &mut Cx<'_>) {
    cx.control(Packet { offset: cx.flow(flow).size_bytes, ..Packet::new(flow, Kind::ACK, config.header) });
}

#[cfg(test)]
impl Inbox {
    /// Returns the channels of this phase and of the next one.
    pub fn channels(&self) -> [u8; 2] {
        [channels(&self.active), channels(&self.matched)]
    }
    /// Returns whether nothing is known of any flow.
    pub fn is_empty(&self) -> bool {
        self.incoming.is_empty() && self.busy.is_empty()
    }
}

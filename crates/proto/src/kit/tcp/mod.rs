//! One TCP machine for every window protocol: [`Tcp`], with a congestion controller plugged in.
//!
//! Source: RFC 5681 (windows, duplicate ACKs, ACK generation), RFC 6582 (NewReno recovery), RFC 6298 (timer), RFC 3042 (limited
//! transmit), RFC 2018 and RFC 6675 (selective acknowledgments), RFC 3168 and RFC 8257 (marks and their echoes). The machine owns
//! sequence numbers, recovery, timers, the handshake and ACKs; a [`Congestion`] says how the window grows and how far it falls.
//!
//! Model: no receive window unless `max_cwnd` is given, no FIN: the sender's state ends with the last acknowledgment. No restart of idle
//! connections, since a flow is all there from the start and never idles. Receivers never drop what they reported as received.
//!
//! Assumed:
//! - A round trip is timed by an echo: every ACK carries when the segment that caused it was handed to the NIC, and whether that was a
//!   retransmission, from which no sample is taken (Karn). Only ACKs of new data, and the SYNACK, give samples.
//! - After a timeout everything above the resent segment counts as lost, so FlightSize is `snd_nxt - snd_una`.
//! - The window grows only while it is the limit: when the bytes in flight were within one SMSS of `cwnd` before the ACK.
//! - The timer starts when a segment is handed to the NIC, not when the window allows it.
//! - The clock granularity enters the timeout formula only; timers fire exactly at their deadlines.
//! - With delayed ACKs the segment that completes a flow is acknowledged at once, as its FIN would be.
//! - An ACK echoes a mark only if it acknowledges new data; what duplicates echo is not heard.
//! - With `sack`, an ACK has three blocks at most, as beside time stamps, and is longer by them. Recovery has the rescue retransmission. A
//!   timeout forgets all blocks (RFC 2018 section 8); what is reported afterwards is not sent again, holes are filled in order, and no
//!   recovery begins before all that had been sent is acknowledged.
//!
//! Deviates: RFC 6298 (5.7) raises the timeout to 3 s after a lost SYN; here the doubled timeout stays.

mod answer;
mod growth;
mod options;
mod receiver;
mod sack;
mod sender;

use super::order::RoundRobin;
use super::rtt::RttConfig;
use crate::flow::{Flow, FlowStats, Sample};
use crate::packet::{Kind, Packet};
use crate::transport::{Cx, Transport};
use answer::Answer;
pub use answer::{Blocks, Echo};
use base::{Dur, FlowId, FlowMap, Rate, Time, TimerKey};
pub use growth::{Growth, half_flight};
pub use options::Options;
use receiver::Receivers;
use sender::{Restart, Sender};

/// What a congestion controller decides. One serves all flows of a host; what it keeps of each is its `State`. Recovery is the
/// machine's: between a loss and the end of recovery only the machine changes the window. So is the rule that marks cut a window at
/// most once.
pub trait Congestion {
    /// What it keeps of one flow.
    type State;
    /// How its connections use ECN.
    const ECN: Ecn = Ecn::Off;
    /// The state of a flow that opens now.
    fn open(&self, flow: &Flow) -> Self::State;
    /// New data was acknowledged, in recovery or not: what it keeps may change, before any of the following is called.
    fn on_feedback(&self, _state: &mut Self::State, _ack: &Ack<'_>) {}
    /// New data was acknowledged outside recovery, and no mark cuts the window now: it may change.
    fn on_ack(&self, state: &mut Self::State, window: &mut Window, ack: &Ack<'_>);
    /// An ACK outside recovery echoes the first mark since the data of the last cut was acknowledged. Returns the window from now on,
    /// in bytes; the slow-start threshold follows it.
    fn on_mark(&self, _state: &mut Self::State, window: &Window) -> u64 {
        window.cwnd
    }
    /// A segment was found lost. Returns the slow-start threshold from now on, in bytes.
    fn on_loss(&self, state: &mut Self::State, window: &Window, loss: Loss) -> u64;
    /// A segment is handed to the NIC. With it `sent` bytes of the flow were sent at least once.
    fn on_sent(&self, _state: &mut Self::State, _now: Time, _sent: u64) {}
    /// The next segment is not sent before then, whatever the window: for windows below one segment.
    fn not_before(&self, _state: &Self::State, _srtt: Dur) -> Time {
        Time::ZERO
    }
}

/// How a connection uses explicit congestion notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    /// Not at all.
    Off,
    /// RFC 3168: after a marked segment every ACK has ECE until a segment with CWR comes. Only data sent for the first time can be
    /// marked.
    Classic,
    /// RFC 8257: an ACK has ECE if the segments that it answers were marked. SYN, SYNACK and all data can be marked.
    Exact,
}

impl Ecn {
    /// The flags of what a sender sends, or of an answer to a SYN.
    #[inline]
    fn flags(self, data: bool, resent: bool) -> u8 {
        let code_point = match self {
            Ecn::Off => 0,
            // RFC 3168 sections 6.1.1, 6.1.4 and 6.1.5: no SYN, no ACK, no retransmission.
            Ecn::Classic => u8::from(data && !resent) * Packet::ECT,
            // RFC 8257 section 3.6.
            Ecn::Exact => Packet::ECT,
        };
        code_point | if resent { Packet::RETX } else { 0 }
    }
}

/// The window of one flow. Whole bytes: a controller that needs finer arithmetic keeps the rest in its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Congestion window in bytes.
    pub cwnd: u64,
    /// Slow-start threshold in bytes; `u64::MAX` before the first loss.
    pub ssthresh: u64,
}

/// An acknowledgment of new data, as a controller sees it.
pub struct Ack<'a> {
    /// The present.
    pub now: Time,
    /// The flow.
    pub flow: &'a Flow,
    /// Bytes newly acknowledged.
    pub acked: u64,
    /// It echoes a mark. Never without ECN.
    pub ece: bool,
    /// Word 0 of the segment that it answers, as the ports on the way left it.
    pub feedback: u64,
    /// The first byte not yet acknowledged.
    pub snd_una: u64,
    /// The next byte to send.
    pub snd_nxt: u64,
    /// The window was the limit before this ACK.
    pub window_limited: bool,
    /// Smoothed round trip, this ACK's sample included.
    pub srtt: Dur,
}

/// How a loss was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Three duplicate ACKs.
    Duplicates,
    /// The retransmission timer.
    Timeout,
}

/// A loss, as a controller sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// How it was found.
    pub cause: Cause,
    /// FlightSize: bytes sent and not acknowledged.
    pub flight: u64,
    /// A mark has cut the window since the lost segment was sent.
    pub after_mark: bool,
}

/// What the machine needs to know beside its controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// SMSS: payload of a full segment.
    pub smss: u64,
    /// Bytes of a header, and of a packet without payload.
    pub header: u16,
    /// Initial window in bytes.
    pub init_window: u64,
    /// Largest window in bytes, as a receiver would announce it.
    pub max_window: u64,
    /// Bounds of the retransmission timeout.
    pub rtt: RttConfig,
    /// Open every connection with a SYN and a SYNACK.
    pub handshake: bool,
    /// In-order segments per ACK.
    pub ack_every: u32,
    /// Longest wait of a delayed ACK.
    pub delayed_ack: Dur,
    /// Send new data on the first two duplicate ACKs (RFC 3042).
    pub limited_transmit: bool,
    /// RFC 6582 section 3.2 step 3, option 2.
    pub full_ack_ssthresh: bool,
    /// Selective acknowledgments (RFC 2018, RFC 6675).
    pub sack: bool,
}

/// This file, whose head holds for every transport on the machine.
pub const TEXT: &str = include_str!("mod.rs");

/// Timer: retransmission, at the sender.
const RTO: u8 = 0;
/// Timer: delayed ACK, at the receiver.
const DELAYED_ACK: u8 = 1;
/// Timer: the next segment, where the controller paces.
const PACED: u8 = 2;

/// The TCP machine of one host.
pub struct Tcp<C: Congestion> {
    config: Config,
    control: C,
    senders: FlowMap<Sender<C::State>>,
    receivers: Receivers,
    // Flows that may send now. A sender's `ready` says whether it is in; closed flows are skipped when their turn comes.
    ready: RoundRobin,
}

impl<C: Congestion> Tcp<C> {
    /// A host without flows.
    pub fn with(config: Config, control: C) -> Self {
        Tcp { config, control, senders: FlowMap::default(), receivers: Receivers::default(), ready: RoundRobin::default() }
    }

    /// Takes over a flow of which `acked` bytes are acknowledged and `sent` were sent: what was not acknowledged counts as lost, as after
    /// a timeout. There is no handshake, so the configuration must have none.
    pub fn resume(&mut self, flow: FlowId, acked: u64, sent: u64, stats: FlowStats, cx: &mut Cx<'_>) {
        let mut sender = Sender::new(cx.flow(flow).size_bytes, &self.config, self.control.open(cx.flow(flow)));
        sender.resume(acked, sent, stats);
        Self::wake(&mut self.ready, &self.config, flow, &mut sender);
        self.senders.insert(flow, sender);
    }

    /// Notes that `flow` may send, if it may.
    #[inline]
    fn wake(ready: &mut RoundRobin, config: &Config, flow: FlowId, sender: &mut Sender<C::State>) {
        if !sender.ready && sender.next_segment(config).is_some() {
            sender.ready = true;
            ready.add(flow);
        }
    }

    fn send_syn(config: &Config, flow: FlowId, sender: &mut Sender<C::State>, resent: bool, cx: &mut Cx<'_>) {
        let mut syn = Packet::new(flow, Kind::SYN, config.header);
        syn.flags = C::ECN.flags(false, resent);
        cx.control(syn);
        Self::start_timer(flow, sender, cx);
    }

    fn start_timer(flow: FlowId, sender: &mut Sender<C::State>, cx: &mut Cx<'_>) {
        cx.arm(flow, RTO, cx.now.after(sender.rtt.rto()));
        sender.timer = true;
    }

    fn stop_timer(flow: FlowId, sender: &mut Sender<C::State>, cx: &mut Cx<'_>) {
        cx.disarm(flow, RTO);
        sender.timer = false;
    }

    fn on_synack(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        let flow = packet.flow;
        let Some(sender) = self.senders.get_mut(flow) else { return };
        if sender.on_synack(Echo::read(packet), cx.now, &self.config) {
            Self::stop_timer(flow, sender, cx);
            Self::wake(&mut self.ready, &self.config, flow, sender);
        }
    }

    fn on_ack(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        let flow = packet.flow;
        // An ACK of a closed flow is a late duplicate.
        let Some(sender) = self.senders.get_mut(flow) else { return };
        let ece = C::ECN != Ecn::Off && packet.has(Packet::ECE);
        let mut answer = Answer { next: packet.offset, echo: Echo::read(packet), ece };
        let blocks = packet.has(Packet::EXT).then(|| packet.get_ext::<Blocks>(cx.ext));
        if let Some(blocks) = &blocks {
            answer.echo.feedback = blocks.feedback;
        }
        let restart = sender.on_ack(&answer, blocks.as_ref(), cx.flow(flow), cx.now, &self.config, &self.control);
        if sender.is_done() {
            let stats = sender.stats;
            self.senders.remove(flow);
            cx.close(flow, stats);
            return;
        }
        match restart {
            Restart::Keep => {}
            // RFC 6298 (5.3), (5.2).
            Restart::Restart if sender.flight() > 0 => Self::start_timer(flow, sender, cx),
            Restart::Restart => Self::stop_timer(flow, sender, cx),
        }
        Self::wake(&mut self.ready, &self.config, flow, sender);
    }
}

impl<C: Congestion> Transport for Tcp<C> {
    fn on_flow(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        let config = &self.config;
        let mut sender = Sender::new(cx.flow(flow).size_bytes, config, self.control.open(cx.flow(flow)));
        if config.handshake {
            Self::send_syn(config, flow, &mut sender, false, cx);
        }
        Self::wake(&mut self.ready, config, flow, &mut sender);
        self.senders.insert(flow, sender);
    }

    fn on_packet(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        match packet.kind {
            Kind::DATA => self.receivers.on_data(packet, C::ECN, &self.config, cx),
            Kind::ACK => self.on_ack(packet, cx),
            Kind::SYN => {
                let mut synack = Packet::new(packet.flow, Kind::SYNACK, self.config.header);
                synack.flags = C::ECN.flags(false, false);
                Echo::of(packet).write(&mut synack);
                cx.control(synack);
            }
            Kind::SYNACK => self.on_synack(packet, cx),
            // No other kind is ever sent.
            _ => {}
        }
    }

    fn on_timer(&mut self, key: TimerKey, cx: &mut Cx<'_>) {
        let flow = key.flow;
        if key.kind == DELAYED_ACK {
            return self.receivers.on_timer(flow, &self.config, cx);
        }
        let Some(sender) = self.senders.get_mut(flow) else { return };
        if key.kind == PACED {
            return Self::wake(&mut self.ready, &self.config, flow, sender);
        }
        sender.timer = false;
        if sender.is_opening() {
            sender.on_syn_timeout(&self.config);
            Self::send_syn(&self.config, flow, sender, true, cx);
        } else {
            sender.on_timeout(&self.config, &self.control);
            Self::wake(&mut self.ready, &self.config, flow, sender);
        }
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        loop {
            let flow = self.ready.take()?;
            let Some(sender) = self.senders.get_mut(flow) else { continue };
            sender.ready = false;
            let Some(segment) = sender.next_segment(&self.config) else { continue };
            let earliest = self.control.not_before(&sender.control, sender.rtt.srtt());
            if earliest > cx.now {
                cx.arm(flow, PACED, earliest);
                continue;
            }
            let mut packet = Packet::data(flow, segment.offset, segment.len, self.config.header);
            packet.flags = sender.on_sent(&segment, C::ECN);
            self.control.on_sent(&mut sender.control, cx.now, sender.snd_max);
            // RFC 6298 (5.1).
            if !sender.timer {
                Self::start_timer(flow, sender, cx);
            }
            Self::wake(&mut self.ready, &self.config, flow, sender);
            return Some(packet);
        }
    }

    fn sample(&self, flow: FlowId) -> Option<Sample> {
        self.senders.get(flow).map(|sender| {
            let window = sender.window();
            Sample {
                cwnd_bytes: window.cwnd,
                ssthresh_bytes: if window.ssthresh == u64::MAX { 0 } else { window.ssthresh },
                srtt: sender.rtt.srtt(),
                rate: Rate(0),
                in_flight_bytes: sender.flight(),
            }
        })
    }

    fn kind_name(&self, _kind: Kind) -> Option<&'static str> {
        None
    }
}

#[cfg(test)]
mod pipe_tests;
#[cfg(test)]
mod tests;

//! One TCP machine for every window protocol: [`Tcp`], with a congestion controller as a parameter.
//!
//! Source: RFC 5681 (windows, duplicate ACKs, ACK generation), RFC 6582 (NewReno recovery), RFC
//! 6298 (timer), RFC 3042 (limited transmit), RFC 2018 and RFC 6675 (selective acknowledgments),
//! RFC 3168 and RFC 8257 (marks and their echoes). The machine handles sequence numbers, recovery,
//! timers, the handshake and ACKs; a [`Congestion`] controller defines how the window grows and how
//! far it is cut.
//!
//! Model: there is no receive window unless `max_cwnd` is given, and no FIN: the sender's state
//! ends with the last acknowledgment. An application hands over all bytes of a flow at its start, so
//! that no flow is idle. Receivers never drop bytes that they reported as received. With
//! `connections = "peer"` a flow continues the connection of the last flow to the same host that has
//! ended; flows that are open at the same time have windows of their own (RFC 9040 section 4:
//! temporal sharing).
//!
//! Assumed:
//! - A round trip is timed by an echo: every ACK carries when the segment that caused it was handed
//!   to the NIC, and whether that segment was a retransmission. With `timestamps`, the default, the
//!   echo is the time stamp of RFC 7323 and always gives a sample, so that a back-off ends with the
//!   first ACK of new data, as in Linux. Without `timestamps`, a retransmission gives no sample
//!   (Karn), and a back-off lasts until data that was sent once is acknowledged (RFC 6298 section
//!   5). Only ACKs of new data, and the SYNACK, give samples. Time stamps add no bytes to the
//!   header.
//! - A timeout in recovery counts at most ssthresh as FlightSize and, with `sack`, at most the
//!   pipe: `snd_nxt - snd_una` then includes bytes that have arrived, and RFC 5681 (eq. 4) says "no
//!   more than".
//! - After a timeout every byte above the resent segment counts as lost, so FlightSize is `snd_nxt - snd_una`.
//! - The window grows only if it was the limit within the last window of data: no further segment
//!   fitted. In slow start it also grows while it is below twice the largest flight of that window
//!   of data (Linux, `tcp_is_cwnd_limited`), so that a NIC that takes two packets at a time does
//!   not slow it down.
//! - The timer starts when a segment is handed to the NIC, not when the window allows it.
//! - The clock granularity enters the timeout formula only; timers fire exactly at their deadlines.
//! - With delayed ACKs the segment that completes a flow is acknowledged at once, as its FIN would be.
//! - An ACK's echo of a mark counts only if the ACK acknowledges new data; echoes in duplicate ACKs
//!   are ignored.
//! - With `sack`, an ACK has at most three blocks, as many as fit next to time stamps, and is
//!   longer by their size. Recovery has the rescue retransmission. A timeout forgets all blocks
//!   (RFC 2018 section 8); bytes that are reported afterwards are not retransmitted, holes are
//!   filled in order, and no recovery begins before all bytes sent up to the timeout are
//!   acknowledged.
//!
//! - For controllers that measure the delivery rate, a retransmission is lost when a segment that
//!   left a quarter of the shortest round trip later has arrived (RFC 8985 section 6.2), and is sent
//!   once more in the same recovery. For all other controllers a lost retransmission waits for the
//!   timer (RFC 6675).
//! - `give_up` counts only bytes that were never sent as left: bytes that are in flight, or count
//!   as lost, may have arrived. A flow whose deadline has passed is given up even if all of it was
//!   sent. A sender that gives a flow up sends no message to its receiver; packets in flight
//!   arrive.
//! - `stack` sets the timeouts and the initial window unless the scenario does. Only with `rfc`
//!   does a lost SYN raise the timeout to 3 s once the connection is open (RFC 6298 (5.7));
//!   otherwise the doubled timeout stays, as in Linux.
//! - A flow that continues a connection later than a timeout after its end begins with at most the
//!   initial window (RFC 5681 section 4.1), and its controller begins afresh. BBR takes over the
//!   round trip only, and CUBIC no epoch.
//! - A lost SYN leaves ssthresh infinite unless `lost_syn_ssthresh` says otherwise: no RFC asks for more than the window of one segment.

mod answer;
mod congestion;
mod delivery;
mod growth;
mod measure;
mod options;
pub(crate) mod receiver;
mod sack;
pub(crate) mod sender;
mod usage;

use crate::contract::{Bursts, Cx, Timeout, Timers, Transport};
use crate::flow::Sample;
use crate::packet::{Kind, Packet};
use crate::turns::RoundRobin;
pub(crate) use answer::Answer;
pub use answer::{Blocks, Echo};
use base::{FlowId, FlowMap, HostId, Rate, Time, TimerKey};
pub use congestion::{Ack, Cause, Congestion, Ecn, Loss, Window};
pub use delivery::{Deliveries, LostSegment, RateSample};
pub use growth::{Growth, half_flight};
pub use options::{AfterLostSyn, Config, Connections, DupThreshold, FlightSize, Options, Stack};
use receiver::{DELAYED_ACK, Receivers};
use sender::{Restart, Sender};
use std::collections::BTreeMap;
use std::ops::Range;

/// The text of this file, whose header holds for every transport on this machine.
pub const TEXT: &str = include_str!("mod.rs");

/// Timer: retransmission, at the sender. Number 1 is the receiver's.
const RTO: u8 = 0;
/// Timer: the next segment, where the controller paces.
const PACED: u8 = 2;

/// Returns the packet that opens a connection.
pub(crate) fn syn(flow: FlowId, ecn: Ecn, config: &Config, resent: bool) -> Packet {
    let mut syn = Packet::new(flow, Kind::SYN, config.header);
    syn.flags = ecn.flags(false, resent);
    syn
}

/// Returns the answer to a SYN.
pub(crate) fn synack(syn: &Packet, ecn: Ecn, config: &Config) -> Packet {
    let mut synack = Packet::new(syn.flow, Kind::SYNACK, config.header);
    synack.flags = ecn.flags(false, false);
    Echo::of(syn).write(&mut synack);
    synack
}

/// The TCP machine of one host.
pub struct Tcp<C: Congestion> {
    config: Config,
    control: C,
    senders: FlowMap<Sender<C::State>>,
    receivers: Receivers,
    /// By peer: the sender of the last flow that has ended, and when; only if connections continue.
    ended: BTreeMap<HostId, (Sender<C::State>, Time)>,
    // Flows that may send now. A sender's `ready` says whether it is in; closed flows are skipped
    // when their turn comes.
    ready: RoundRobin,
}

impl<C: Congestion> Tcp<C> {
    /// Creates a host without flows.
    pub fn with(config: Config, control: C) -> Self {
        let (senders, receivers, ready) = (FlowMap::default(), Receivers::default(), RoundRobin::default());
        Tcp { config, control, senders, receivers, ended: BTreeMap::new(), ready }
    }

    /// Takes over a flow with `acked` bytes acknowledged and `sent` bytes sent: the bytes
    /// between count as lost, as after a timeout. There is no handshake, so that the configuration
    /// must have none.
    pub fn resume(&mut self, flow: FlowId, acked: u64, sent: u64, cx: &mut Cx<'_>) {
        let mut sender = Sender::new(cx.flow(flow), &self.config, &self.control);
        sender.resume(acked, sent);
        Self::wake(&mut self.ready, &self.config, flow, &mut sender);
        self.senders.insert(flow, sender);
    }

    /// Returns the controller's state of an open flow.
    #[cfg(test)]
    pub(crate) fn state(&self, flow: FlowId) -> Option<&C::State> {
        self.senders.get(flow).map(|sender| &sender.control)
    }

    /// Queues `flow` if it may send.
    #[inline]
    fn wake(ready: &mut RoundRobin, config: &Config, flow: FlowId, sender: &mut Sender<C::State>) {
        if !sender.ready && sender.next_segment(config).is_some() {
            sender.ready = true;
            ready.add(flow);
        }
    }

    fn send_syn(ecn: Ecn, config: &Config, flow: FlowId, sender: &mut Sender<C::State>, resent: bool, cx: &mut Cx<'_>) {
        cx.control(syn(flow, ecn, config, resent));
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

    /// Returns whether the sender must give up `flow`. Bytes that were sent may have arrived,
    /// acknowledged or not.
    fn is_late(config: &Config, sender: &Sender<C::State>, flow: FlowId, cx: &Cx<'_>) -> bool {
        let (Some(line), Some(deadline)) = (config.give_up, cx.flow(flow).deadline) else { return false };
        line.is_late(sender.end - sender.snd_max, deadline, cx.now)
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
        let ece = self.control.ecn() != Ecn::Off && packet.has(Packet::ECE);
        let waited = cx.now.since(packet.arrival);
        let mut answer = Answer { next: packet.offset, echo: Echo::read(packet), ece, waited };
        let blocks = packet.has(Packet::EXT).then(|| packet.get_ext::<Blocks>(cx.ext));
        if let Some(blocks) = &blocks {
            answer.echo.feedback = blocks.feedback;
        }
        sender.before_ack::<C>();
        let acked = sender.on_ack(&answer, blocks.as_ref(), cx.flow(flow), cx.now, &self.config, &self.control);
        if acked.fast_retransmit {
            cx.note_fast_retransmit(flow);
        }
        self.control.count(&mut sender.control, |counter, n| cx.count(flow, counter, n));
        if sender.is_done() {
            let sender = self.senders.remove(flow);
            if self.config.continues {
                self.ended.extend(sender.map(|sender| (cx.flow(flow).dst, (sender, cx.now))));
            }
            cx.close(flow);
            return;
        }
        if acked.new_data && Self::is_late(&self.config, sender, flow, cx) {
            return self.give_up(flow, cx);
        }
        sender.measure(&answer, blocks.as_ref(), cx.now, &self.config, &self.control, cx.rng);
        match acked.timer {
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
        let mut sender = Sender::new(cx.flow(flow), config, &self.control);
        if let Some(before) = self.ended.get(&cx.flow(flow).dst) {
            sender.inherit(before, cx.now, config, &self.control);
        } else if config.handshake {
            Self::send_syn(self.control.ecn(), config, flow, &mut sender, false, cx);
        }
        Self::wake(&mut self.ready, config, flow, &mut sender);
        self.senders.insert(flow, sender);
    }

    fn on_packet(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        match packet.kind {
            Kind::DATA => {
                let echo = Echo { feedback: C::feedback(packet, cx.now), ..Echo::of(packet) };
                self.receivers.on_data(packet, echo, self.control.ecn(), &self.config, cx);
            }
            Kind::ACK => self.on_ack(packet, cx),
            Kind::SYN => cx.control(synack(packet, self.control.ecn(), &self.config)),
            Kind::SYNACK => self.on_synack(packet, cx),
            // No other kind is sent.
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
        cx.note_timeout(flow);
        if sender.is_opening() {
            sender.on_syn_timeout(&self.config);
            Self::send_syn(self.control.ecn(), &self.config, flow, sender, true, cx);
        } else if Self::is_late(&self.config, sender, flow, cx) {
            self.give_up(flow, cx);
        } else {
            sender.on_timeout(cx.now, &self.config, &self.control);
            self.control.count(&mut sender.control, |counter, n| cx.count(flow, counter, n));
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
            packet.flags = sender.on_sent(&segment, self.control.ecn());
            if let Some(deliveries) = C::deliveries(&mut sender.control) {
                deliveries.on_sent(segment.offset, segment.len, cx.now);
            }
            self.control.on_sent(&mut sender.control, cx.now, sender.snd_max);
            // RFC 6298 (5.1).
            if !sender.timer {
                Self::start_timer(flow, sender, cx);
            }
            Self::wake(&mut self.ready, &self.config, flow, sender);
            return Some(packet);
        }
    }

    fn turns(&mut self) -> Option<&mut RoundRobin> {
        Some(&mut self.ready)
    }

    fn next_of(&self, turn: FlowId) -> Option<(FlowId, Range<u64>)> {
        let segment = self.senders.get(turn)?.next_segment(&self.config)?;
        Some((turn, segment.offset..segment.offset + u64::from(segment.len)))
    }

    fn remove_sender(&mut self, flow: FlowId) -> bool {
        self.senders.remove(flow).is_some()
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

    fn timers(&self) -> Timers {
        let Config { rtt, handshake, .. } = self.config;
        let (first, least) = (Timeout::new("init_rto", rtt.init_rto), Timeout::new("min_rto", rtt.min_rto));
        Timers { handshake, first, least, fixed: false }
    }
    fn bursts(&self) -> Bursts {
        let Config { init_window, max_window, .. } = self.config;
        Bursts { first_bytes: init_window.min(max_window), granted_bytes: 0 }
    }
}

#[cfg(test)]
mod pipe_tests;
#[cfg(test)]
mod tests;

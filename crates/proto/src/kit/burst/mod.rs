//! One state machine for transports with credits that send a burst before the first credit,
//! [`Burst`]. Aeolus and SSP are its [`Rules`].
//!
//! Source: S. Hu et al., "Aeolus: A Building Block for Proactive Transport in Datacenters", SIGCOMM
//! 2020, on I. Cho et al., "Credit-Scheduled Delay-Bounded Congestion Control for Datacenters"
//! (ExpressPass), SIGCOMM 2017, whose credits are in `kit/credits`.
//!
//! A flow begins with a CREDIT_REQUEST and a burst of unscheduled packets at line rate, which ends
//! with the first credit. A probe follows the burst, queued with data. After that, each credit
//! sends one scheduled packet. Ports drop one of the two classes early. Each transmission has a
//! number, and a missing number is a lost packet.
//!
//! Assumed:
//! - The CREDIT_REQUEST carries the size of the flow. The receiver sends credits until it has all
//!   bytes, and then a final CREDIT_STOP, with which the sender forgets the flow; the receiver
//!   repeats the CREDIT_STOP for every later request or probe.
//! - The first packet of any kind starts the credits of a flow.
//! - Numbers are assigned when packets leave for the NIC, whose FIFO holds packets up to its
//!   low-water mark.
//! - A credit selects its data when it arrives; the data then waits in the host with the credit.
//! - A credit carries the receiver's smoothed round trip. A sender without progress for three of
//!   these, and for at least `backstop`, sends its request and a probe again; this probe requests
//!   reports of all missing numbers, since reports may be lost. A credit is progress if it is the
//!   first one, if it sends data, or if more bytes have arrived. At most 64 reports answer one
//!   probe; the next answer continues after them.
//! - A receiver that receives no packet of a flow for `idle` stops its credits.
//! - With `count_drop_as_credit_loss = false`, transmissions missing since the last echo are
//!   subtracted from the missing credits. Transmissions missing before the first echo count as
//!   those of the burst.

mod options;
mod packets;
mod sender;

use crate::contract::{Cx, Env, Timeout, Timers, Transport};
use crate::flow::Sample;
use crate::kit::credits::Credits;
use crate::kit::gaps::Gaps;
use crate::kit::order::Places;
use crate::packet::{Kind, Packet};
use base::registry::Counter;
use base::{Dur, FlowId, FlowMap, Rate, Time, TimerKey};
use options::Config;
pub use options::{Options, check};
pub use packets::{Asked, BurstReport, Offer, Sent};
use sender::{Answered, Piece, Sender, Turn};
use std::ops::Range;

/// The text of this file, whose header holds for every transport on this state machine.
pub const TEXT: &str = include_str!("mod.rs");

/// The kinds of packets of every transport on this state machine.
pub const KINDS: &[&str] = &["request", "nack", "stop"];
const REQUEST: Kind = Kind(Kind::OWN);
/// Reports transmissions that have not arrived.
const NACK: Kind = Kind(Kind::OWN + 1);
/// The final CREDIT_STOP, from the receiver.
const STOP: Kind = Kind(Kind::OWN + 2);

/// The counters of every transport on this state machine.
pub const COUNTERS: &[Counter] = &[
    Counter { name: "credits", unit: "packets", about: "credits received by the sender" },
    Counter { name: "wasted", unit: "packets", about: "credits that arrived when the sender had nothing to send" },
    Counter { name: "unscheduled_bytes", unit: "B", about: "payload sent before the first credit" },
    Counter { name: "scheduled_bytes", unit: "B", about: "payload sent for credits" },
    Counter { name: "retransmitted_bytes", unit: "B", about: "scheduled payload that was sent before" },
    Counter { name: "unscheduled_lost", unit: "packets", about: "unscheduled packets that the sender declared lost" },
    Counter { name: "scheduled_lost", unit: "packets", about: "scheduled packets that the sender declared lost" },
    Counter { name: "first_rtt_bytes", unit: "B", about: "payload that arrived within the flow's first unloaded round trip" },
];
/// Indices of the counters.
const CREDITS: usize = 0;
const WASTED: usize = 1;
const UNSCHEDULED_BYTES: usize = 2;
const SCHEDULED_BYTES: usize = 3;
const RETRANSMITTED_BYTES: usize = 4;
const UNSCHEDULED_LOST: usize = 5;
const SCHEDULED_LOST: usize = 6;
const FIRST_RTT_BYTES: usize = 7;

/// The purpose of a place in the host's queue: the burst of a flow, or the first of the flow's
/// turns.
const BURST: u8 = 0;
const TURN: u8 = 1;

/// Timer of a sender: no progress.
const BACKSTOP: u8 = 0;
/// Timer of a receiver: the next credit.
const PACED: u8 = 1;

/// Largest number of reports that answer one probe.
const MOST_REPORTS: usize = 64;

/// The class of a data packet at ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Part of the burst.
    Unscheduled,
    /// Sent for a credit.
    Scheduled,
}

/// How a sender detects lost packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detection {
    /// The receiver reports missing numbers.
    Reports,
    /// The receiver acknowledges each unscheduled packet and each probe: unscheduled packets sent
    /// before an acknowledged one are lost, unless they were acknowledged too. Scheduled packets
    /// are reported.
    BurstAcks,
    /// The receiver acknowledges each packet and each probe: packets sent before an acknowledged
    /// one are lost, unless they were acknowledged too.
    Acks,
}

/// Data that waits in a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Its class.
    pub class: Class,
    /// The size of its flow, in bytes.
    pub size: u64,
    /// Bytes of its flow that are still to be sent.
    pub left: u64,
}

/// The decisions of a transport on this state machine.
pub trait Rules {
    /// The class that ports protect: its packets are ECN-capable.
    const PROTECTED: Class;
    /// Returns how a sender detects lost packets.
    fn detection(&self) -> Detection;
    /// Returns the key that orders waiting data in a host: the smallest key first, ties by arrival.
    fn order(&self, waiting: Waiting) -> u64;
    /// Returns the class of data that a credit sends after this number of losses.
    fn class(&self, _losses: u32) -> Class {
        Class::Scheduled
    }
}

/// A flow at its receiver.
#[derive(Clone, Debug)]
struct Receiver {
    credits: Credits,
    gaps: Gaps,
    /// All bytes below have arrived.
    next: u64,
    /// When the last packet of the flow arrived.
    last_arrival: Time,
    /// Missing transmissions since the last echo; `None` before the first echo.
    left_out: Option<u64>,
    /// The end of the last numbers reported to a probe that requests all missing numbers.
    reported: u64,
}

/// The machine of one host.
pub struct Burst<R> {
    config: Config,
    rules: R,
    senders: FlowMap<Sender>,
    receivers: FlowMap<Receiver>,
    places: Places,
}

impl<R: Rules> Burst<R> {
    /// Creates a host without flows.
    pub fn with(options: &Options, env: &Env<'_>, rules: R) -> Self {
        let config = Config::new(options, env);
        Burst { config, rules, senders: FlowMap::default(), receivers: FlowMap::default(), places: Places::default() }
    }

    fn control(&self, flow: FlowId, kind: Kind) -> Packet {
        Packet::new(flow, kind, self.config.header)
    }

    // The sender.

    /// Queues a turn of a flow after its other waiting turns.
    fn wait(&mut self, flow: FlowId, turn: Turn) {
        let Some(sender) = self.senders.get_mut(flow) else { return };
        sender.turns.push_back(turn);
        self.places.add(flow, TURN, key(sender, (&self.config, &self.rules)));
    }

    /// Records progress: resets the time that the sender waits for more.
    fn on_progress(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        let Some(sender) = self.senders.get_mut(flow) else { return };
        sender.patience = self.config.patience(sender.srtt);
        cx.arm(flow, BACKSTOP, cx.now.after(sender.patience));
    }

    fn on_credit(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        let (flow, offer) = (packet.flow, packet.get::<Offer>());
        // A credit of a closed flow is late.
        let Some(sender) = self.senders.get_mut(flow) else { return };
        cx.count(flow, CREDITS, 1);
        sender.srtt = Dur(offer.srtt_ps);
        let more_acked = sender.on_acked(packet.offset, &self.config);
        let (first, cuts) = sender.on_credit();
        let piece = sender.take(&self.config);
        let wasting = std::mem::replace(&mut sender.wasting, piece.is_none());
        if first || more_acked || piece.is_some() {
            self.on_progress(flow, cx);
        }
        if cuts {
            self.wait(flow, Turn::Probe { asks: false });
        }
        match piece {
            Some(piece) => self.wait(flow, Turn::Answer(piece, Answered { number: offer.number, sent: packet.sent_at })),
            None => {
                cx.count(flow, WASTED, 1);
                if !wasting {
                    self.wait(flow, Turn::Probe { asks: false });
                }
            }
        }
    }

    /// Handles a report of lost or arrived transmissions.
    fn on_report(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        let (flow, BurstReport { from, to }) = (packet.flow, packet.get());
        let (config, detection) = (&self.config, self.rules.detection());
        let Some(sender) = self.senders.get_mut(flow) else { return };
        sender.on_acked(packet.offset, config);
        if packet.kind == Kind::ACK {
            sender.on_arrived(to, config);
        }
        let inferred = match detection {
            Detection::BurstAcks if packet.kind != NACK => to.min(sender.unscheduled()),
            Detection::Acks if packet.kind != NACK => to,
            _ => 0,
        };
        for lost in [0..inferred, from..to] {
            let (burst, scheduled) = sender.on_lost(lost, config);
            cx.count(flow, UNSCHEDULED_LOST, burst);
            cx.count(flow, SCHEDULED_LOST, scheduled);
        }
        self.on_progress(flow, cx);
    }

    fn on_backstop(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        let Some(sender) = self.senders.get_mut(flow) else { return };
        cx.note_timeout(flow);
        sender.patience = (sender.patience * 2).min(self.config.most_backstop.max(sender.patience));
        cx.arm(flow, BACKSTOP, cx.now.after(sender.patience));
        cx.control(self.control(flow, REQUEST));
        self.wait(flow, Turn::Probe { asks: true });
    }

    /// Handles a CREDIT_STOP: the receiver has all bytes.
    fn on_stop(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        if self.senders.remove(flow).is_some() {
            cx.close(flow);
        }
    }

    // The receiver.

    /// Returns the state of an unfinished flow when one of its packets arrives; opens the flow and
    /// starts its credits if needed.
    fn on_arrival(&mut self, flow: FlowId, cx: &mut Cx<'_>) -> &mut Receiver {
        let (now, pacing) = (cx.now, &self.config.pacing);
        if !cx.is_armed(flow, PACED) {
            cx.arm(flow, PACED, now);
        }
        let new = || Receiver {
            credits: Credits::new(pacing, 1.0, now),
            gaps: Gaps::default(),
            next: 0,
            last_arrival: now,
            left_out: None,
            reported: 0,
        };
        let receiver = self.receivers.or_insert_with(flow, new);
        receiver.last_arrival = now;
        receiver
    }

    fn on_request(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        if cx.has_finished(flow) {
            return cx.control(self.control(flow, STOP));
        }
        self.on_arrival(flow, cx);
    }

    fn on_data(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        let (flow, sent) = (packet.flow, packet.get::<Sent>());
        let delivery = cx.deliver(flow, packet.offset, packet.payload);
        let metadata = cx.flow(flow);
        if cx.now.since(metadata.start) <= metadata.rtt {
            cx.count(flow, FIRST_RTT_BYTES, delivery.new_bytes);
        }
        if cx.has_finished(flow) {
            if delivery.new_bytes > 0 {
                cx.disarm(flow, PACED);
                self.receivers.remove(flow);
                cx.control(self.control(flow, STOP));
            }
            return;
        }
        let drops_are_credit_losses = self.config.drops_are_credit_losses;
        let receiver = self.on_arrival(flow, cx);
        receiver.next = delivery.next;
        let gap = receiver.gaps.on_data(sent.number());
        let left_out = receiver.left_out.map(|n| n + gap.end.saturating_sub(gap.start));
        receiver.left_out = left_out;
        if let Some(Answered { number, sent }) = sent.credit() {
            let lost = receiver.credits.on_answer(number, sent, cx.now);
            if !drops_are_credit_losses {
                receiver.credits.forgive(lost.min(left_out.unwrap_or(0) as u32));
            }
            receiver.left_out = Some(0);
        }
        let acknowledged = match self.rules.detection() {
            Detection::Reports => false,
            Detection::BurstAcks => sent.credit().is_none(),
            Detection::Acks => true,
        };
        self.report(flow, gap, acknowledged.then_some(Kind::ACK), cx);
    }

    fn on_probe(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        let (flow, Asked { number, from }) = (packet.flow, packet.get());
        if cx.has_finished(flow) {
            return cx.control(self.control(flow, STOP));
        }
        let receiver = self.on_arrival(flow, cx);
        let gap = receiver.gaps.on_probe(number);
        receiver.left_out = receiver.left_out.map(|n| n + gap.end.saturating_sub(gap.start));
        if from < number {
            receiver.gaps.settle_below(from);
            let mut missing: Vec<Range<u64>> = receiver.gaps.missing().cloned().collect();
            // The sender may know the first missing numbers and be unable to settle them. If every
            // answer began with these, it would never receive the others.
            if missing.len() > MOST_REPORTS {
                let first = missing.partition_point(|range| range.start < receiver.reported);
                missing.rotate_left(first);
                missing.truncate(MOST_REPORTS);
            }
            receiver.reported = missing.last().map_or(0, |range| range.end);
            for range in missing {
                self.report(flow, range, None, cx);
            }
        }
        let acknowledged = self.rules.detection() != Detection::Reports;
        if acknowledged || from == number {
            self.report(flow, gap, acknowledged.then_some(Kind::PROBEACK), cx);
        }
    }

    /// Reports missing numbers, in an acknowledgment, or in a NACK if there are any.
    fn report(&self, flow: FlowId, gap: Range<u64>, acknowledgment: Option<Kind>, cx: &mut Cx<'_>) {
        if acknowledgment.is_none() && gap.is_empty() {
            return;
        }
        let next = self.receivers.get(flow).map_or(0, |receiver| receiver.next);
        let mut packet = Packet { offset: next, ..self.control(flow, acknowledgment.unwrap_or(NACK)) };
        packet.set(BurstReport { from: gap.start, to: gap.end });
        cx.control(packet);
    }

    fn on_paced(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        let (config, now) = (&self.config, cx.now);
        let Some(receiver) = self.receivers.get_mut(flow) else { return };
        if now.since(receiver.last_arrival) >= config.idle {
            return;
        }
        let credit = receiver.credits.take(&config.pacing, now, cx.rng);
        let mut packet = Packet { offset: receiver.next, ..Packet::new(flow, Kind::CREDIT, credit.wire_len) };
        packet.set(Offer { number: credit.number, srtt_ps: receiver.credits.srtt().0 });
        cx.control(packet);
        cx.arm(flow, PACED, now.after(credit.gap));
    }
}

/// Returns the key of a flow's waiting turns. A probe has the key of the data before it.
fn key<R: Rules>(sender: &Sender, (config, rules): (&Config, &R)) -> u64 {
    let class = if sender.in_burst() { Class::Unscheduled } else { Class::Scheduled };
    rules.order(Waiting { class, size: sender.size, left: sender.left(config) })
}

/// Returns a data packet that leaves now.
fn data<R: Rules>(
    flow: FlowId,
    sender: &mut Sender,
    piece: Piece,
    credit: Option<Answered>,
    (config, rules): (&Config, &R),
    cx: &mut Cx<'_>,
) -> Packet {
    let number = if credit.is_some() { sender.depart(piece, config) } else { sender.depart_burst(piece, config) };
    let class = if credit.is_some() { rules.class(piece.losses) } else { Class::Unscheduled };
    let mut packet = Packet::data(flow, piece.offset, sender.payload(piece.offset, config), config.header);
    packet.set(Sent::new(number, credit));
    packet.flags |= if class == R::PROTECTED { Packet::ECT } else { 0 };
    packet.flags |= if piece.again { Packet::RETX } else { 0 };
    let payload = u64::from(packet.payload);
    cx.count(flow, if credit.is_some() { SCHEDULED_BYTES } else { UNSCHEDULED_BYTES }, payload);
    cx.count(flow, RETRANSMITTED_BYTES, if piece.again { payload } else { 0 });
    packet
}

impl<R: Rules> Transport for Burst<R> {
    fn on_flow(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        let sender = Sender::new(cx.flow(flow).size_bytes, &self.config);
        if sender.in_burst() {
            self.places.add(flow, BURST, key(&sender, (&self.config, &self.rules)));
        }
        self.senders.insert(flow, sender);
        cx.control(self.control(flow, REQUEST));
        self.on_progress(flow, cx);
    }

    fn on_packet(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        match packet.kind {
            Kind::DATA => self.on_data(packet, cx),
            Kind::CREDIT => self.on_credit(packet, cx),
            Kind::PROBE => self.on_probe(packet, cx),
            NACK | Kind::ACK | Kind::PROBEACK => self.on_report(packet, cx),
            REQUEST => self.on_request(packet.flow, cx),
            STOP => self.on_stop(packet.flow, cx),
            // No other kind is sent.
            _ => {}
        }
    }

    fn on_timer(&mut self, key: TimerKey, cx: &mut Cx<'_>) {
        match key.kind {
            BACKSTOP => self.on_backstop(key.flow, cx),
            _ => self.on_paced(key.flow, cx),
        }
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        while let Some(place) = self.places.take() {
            let flow = place.flow;
            // A closed flow may have left places behind.
            let Some(sender) = self.senders.get_mut(flow) else { continue };
            let shared = (&self.config, &self.rules);
            if place.what == BURST {
                // The first credit has ended the burst.
                let Some(piece) = sender.take_burst(&self.config) else { continue };
                let packet = data(flow, sender, piece, None, shared, cx);
                if sender.in_burst() {
                    self.places.put_back(place, key(sender, shared));
                } else {
                    self.wait(flow, Turn::Probe { asks: false });
                }
                return Some(packet);
            }
            match sender.turns.pop_front().expect("each place is that of a turn") {
                Turn::Answer(piece, credit) => return Some(data(flow, sender, piece, Some(credit), shared, cx)),
                Turn::Probe { asks } => {
                    let number = sender.number();
                    let from = if asks { sender.settled() } else { number };
                    let mut packet = self.control(flow, Kind::PROBE);
                    packet.flags |= Packet::ECT;
                    packet.set(Asked { number, from });
                    return Some(packet);
                }
            }
        }
        None
    }

    fn remove_sender(&mut self, flow: FlowId) -> bool {
        self.senders.remove(flow).is_some()
    }

    fn sample(&self, flow: FlowId) -> Option<Sample> {
        let sender = self.senders.get(flow)?;
        let in_flight_bytes = sender.in_flight();
        Some(Sample { cwnd_bytes: in_flight_bytes, ssthresh_bytes: 0, srtt: sender.srtt, rate: Rate(0), in_flight_bytes })
    }

    fn timers(&self) -> Timers {
        let backstop = Timeout::new("backstop", self.config.patience(Dur::ZERO));
        Timers { handshake: false, first: backstop, least: backstop, fixed: true }
    }
}

#[cfg(test)]
pub(crate) mod tests;

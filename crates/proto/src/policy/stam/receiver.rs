//! The receiving half: a table of all flows that end at the host, and the two algorithms that
//! assign classes to them when the network is congested.

use super::super::Cx;
use super::header::{DECISIONS, END, ENDED, NO_DEADLINE, Order, State};
use super::law::{self, Rounds, Tc, Tj};
use crate::kit::alpha::{self, Alpha};
use crate::kit::late::Line;
use crate::packet::{Kind, Packet};
use base::{Dur, FlowId, FlowMap, Fraction, Time};

base::choice! {
    /// When a receiver ends a flow with a deadline.
    pub enum Terminate {
        /// When its deadline has passed, or its unsent bytes cannot arrive in time at line rate.
        Feasible = "feasible",
        /// When its slack is negative.
        Paper = "paper",
        /// Never.
        Never = "never",
    }
}

/// The configuration of the receiver.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub(super) mss: u64,
    /// The access link.
    pub(super) line: Line,
    /// Rate of the access link in packets per second.
    pub(super) mu: f64,
    /// Number of classes (N).
    pub(super) classes: u8,
    /// Packets that each class may hold (K / N).
    pub(super) share: u64,
    pub(super) epsilon: Fraction,
    pub(super) eta: Fraction,
    /// Gain of the estimate of marks.
    pub(super) g: Fraction,
    pub(super) tc: Tc,
    pub(super) tj: Tj,
    pub(super) terminate: Terminate,
}

/// The flows that end at a host.
pub(super) struct Receiver {
    rules: Rules,
    pub(super) flows: FlowMap<Incoming>,
    /// Flows that are to be given up. An entry is removed only when the whole flow has arrived:
    /// packets in flight may still come, and none of them is known to be the last.
    pub(super) ended: FlowMap<()>,
    /// Time of the earliest next decision.
    next: Time,
    /// Buffers that are kept between decisions to avoid allocation: waiting times and windows by
    /// class, the flows without a deadline by bytes sent, the flows to be given up.
    waits: Vec<Dur>,
    pub(super) occupied: Vec<u64>,
    by_sent: Vec<(u64, FlowId, u64)>,
    hopeless: Vec<FlowId>,
}

/// A flow that ends at this host.
#[derive(Clone, Debug)]
pub(super) struct Incoming {
    state: State,
    /// The share of its packets that arrive marked.
    alpha: Alpha,
    /// When its last marked packet arrived.
    marked: Option<Time>,
    /// The predicted window of the next round.
    next: u64,
    pub(super) class: Option<u8>,
}

impl Incoming {
    fn rtt(&self) -> Dur {
        Dur(self.state.rtt)
    }
    fn has_deadline(&self) -> bool {
        self.state.deadline != NO_DEADLINE
    }
    /// Returns the window of the next round as DCTCP would set it: reduced if the last round had a
    /// mark, otherwise one packet larger.
    fn predict(&self, now: Time, mss: u64) -> u64 {
        let marked = self.marked.is_some_and(|at| now.since(at) <= self.rtt());
        if marked { alpha::cut(self.state.window, self.alpha.value()).max(mss) } else { self.state.window + mss }
    }
}

impl Receiver {
    pub(super) fn new(rules: Rules) -> Receiver {
        Receiver {
            rules,
            flows: FlowMap::default(),
            ended: FlowMap::default(),
            next: Time::ZERO,
            waits: Vec::new(),
            occupied: Vec::new(),
            by_sent: Vec::new(),
            hopeless: Vec::new(),
        }
    }

    /// Handles a packet of a flow (Alg. 1, lines 1 to 5).
    #[inline]
    pub(super) fn on_arrival(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        if packet.kind == Kind::DATA && packet.has(Packet::TAGGED) {
            self.note(packet, cx);
        }
        if packet.has(Packet::CE) && cx.now >= self.next && !self.flows.is_empty() {
            cx.count(packet.flow, DECISIONS, 1);
            self.decide(cx);
        }
    }

    /// Stores the state that a packet carries in the table of flows.
    fn note(&mut self, packet: &Packet, cx: &Cx<'_>) {
        let flow = packet.flow;
        if !self.flows.contains(flow) && (self.ended.contains(flow) || cx.has_finished(flow)) {
            return;
        }
        let carried: State = packet.get_tag(cx.ext);
        // Alpha begins with 1, as at DCTCP's senders.
        let first = || Incoming { state: carried, alpha: Alpha::new(Fraction::ONE), marked: None, next: 0, class: None };
        let known = self.flows.or_insert_with(flow, first);
        // Packets may overtake each other: the furthest packet has the newest number of bytes left.
        let (sent, left) =
            if carried.sent > known.state.sent { (carried.sent, carried.left) } else { (known.state.sent, known.state.left) };
        known.state = State { sent, left, ..carried };
        let marked = packet.has(Packet::CE);
        known.alpha.on_ack(packet.payload.into(), marked, sent, sent + carried.window, self.rules.g);
        if marked {
            known.marked = Some(cx.now);
        }
    }

    /// Adds the class of the flow to an answer. Only answers that echo congestion need a class,
    /// since the sender ignores it in others.
    #[inline]
    pub(super) fn on_answer(&self, packet: &mut Packet, cx: &mut Cx<'_>) {
        let class = if !self.ended.is_empty() && self.ended.contains(packet.flow) {
            Some(END)
        } else if packet.has(Packet::ECE) {
            self.flows.get(packet.flow).and_then(|known| known.class)
        } else {
            None
        };
        if let Some(class) = class {
            packet.set_tag(Order { class }, cx.ext);
        }
    }

    /// Forgets a flow that has nothing more to send.
    pub(super) fn close(&mut self, flow: FlowId) {
        self.flows.remove(flow);
        self.ended.remove(flow);
    }

    /// Assigns a class to every flow; the classes hold for at least one round.
    fn decide(&mut self, cx: &mut Cx<'_>) {
        let (mut least, mut sum) = (Dur::MAX, 0);
        for (_, known) in self.flows.iter_mut() {
            known.next = known.predict(cx.now, self.rules.mss);
            least = least.min(known.rtt());
            sum += u128::from(known.rtt().0);
        }
        self.next = cx.now.after(least);
        let mean = Dur((sum / self.flows.len() as u128) as u64);
        self.set_waits(mean);
        self.class_by_slack(cx.now);
        for flow in self.hopeless.drain(..) {
            self.flows.remove(flow);
            self.ended.insert(flow, ());
            cx.count(flow, ENDED, 1);
        }
        self.class_by_sent();
    }

    /// Computes the waiting time of each class if all windows arrive once in the mean round trip of
    /// the flows.
    fn set_waits(&mut self, rtt: Dur) {
        let Receiver { rules, flows, occupied, waits, .. } = self;
        occupied.clear();
        occupied.resize(rules.classes.into(), if rules.tj == Tj::Static { rules.share * rules.mss } else { 0 });
        if rules.tj == Tj::Measured {
            for (class, known) in flows.iter().filter_map(|(_, known)| Some((known.class?, known))) {
                occupied[usize::from(class)] += known.next;
            }
            occupied.iter_mut().for_each(|bytes| *bytes = (*bytes).min(rules.share * rules.mss));
        }
        let per_second = |bytes: &u64| *bytes as f64 / rules.mss as f64 / rtt.as_secs_f64();
        law::waits(rules.mu, rules.eta, occupied.iter().map(per_second), waits);
    }

    /// Alg. 2: each flow with a deadline goes to the worst class that its slack allows, or is given
    /// up. The order of the flows does not matter, since a class takes any number of them.
    fn class_by_slack(&mut self, now: Time) {
        let Receiver { rules, flows, occupied, waits, hopeless, .. } = self;
        occupied.fill(0);
        for (flow, known) in flows.iter_mut().filter(|(_, known)| known.has_deadline()) {
            let State { left, window, .. } = known.state;
            let deadline = Time(known.state.deadline);
            let slack = Rounds::needed(left, window, rules.mss, rules.tc).slack(deadline.since(now), known.rtt());
            let in_time = match rules.terminate {
                Terminate::Feasible => !rules.line.is_late(left, deadline, now),
                Terminate::Paper => slack >= 0,
                Terminate::Never => true,
            };
            if in_time {
                let class = law::class(slack, rules.epsilon, waits);
                known.class = Some(class);
                occupied[usize::from(class)] += known.next;
            } else {
                hopeless.push(flow);
            }
        }
    }

    /// Alg. 3: the flows without a deadline fill the space that is left, best class first, in the
    /// order of bytes sent.
    fn class_by_sent(&mut self) {
        let Receiver { rules, flows, occupied, by_sent, .. } = self;
        by_sent.clear();
        by_sent.extend(flows.iter().filter(|(_, f)| !f.has_deadline()).map(|(flow, f)| (f.state.sent, flow, f.next)));
        by_sent.sort_unstable();
        let (mut class, last) = (0, usize::from(rules.classes) - 1);
        for (_, flow, next) in by_sent.iter() {
            while class < last && occupied[class] + next >= rules.share * rules.mss {
                class += 1;
            }
            occupied[class] += next;
            if let Some(known) = flows.get_mut(*flow) {
                known.class = Some(class as u8);
            }
        }
    }
}

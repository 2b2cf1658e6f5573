//! A port for transports with credits: credits are shaped so that the data they request fits the
//! other direction, control packets are served first, and one kind of data is dropped early.
//!
//! Source: I. Cho et al., "Credit-Scheduled Delay-Bounded Congestion Control for Datacenters" (ExpressPass), SIGCOMM 2017, and its authors' ns-2 code
//! (github.com/kaist-ina/ns2-xpass, queue/xpass-drop-tail.cc); S. Hu et al., "Aeolus", SIGCOMM 2020, for selective dropping.
//!
//! The kind of a packet is its class: credits, data, and control packets, which are all others.
//! Service order: the first credit if it has tokens, then control packets, then data by arrival.
//! Data packets that are not ECN-capable are droppable, the others protected, as in RED with both
//! thresholds equal to `drop`.
//!
//! Assumed:
//! - Control packets have a queue of their own without a limit. In the ns-2 code they share the
//!   queue of data, where a burst of unscheduled packets drops them.
//! - Probes and FINs must not overtake data, so they wait in the queue of data. They have a limit
//!   of their own and do not count towards the limits of data.
//! - Ports of hosts drop nothing early: `drop` and `protect` are settings of switches, and a host
//!   holds its data back instead.
//! - The bucket is full at the start of the run, and when a link comes up again. It holds `burst`
//!   bytes.
//! - Queue lengths do not include the packet in transmission.

use super::{Backlog, Env, Fifo, Qdisc};
use crate::bucket::Bucket;
use crate::queue::Queue;
use crate::refused::Refused;
use base::params::{Auto, Param as _, Problem};
use base::registry::{Counter, Meta};
use base::{Bytes, Hold, Limit, Rate, RateOr, Time};
use proto::{Kind, Packet};

/// The description of this entry, for `list`, `explain` and `check`.
pub const META: Meta = Meta {
    summary: "shapes credits to the rate of the data they request, serves control packets first, drops one kind of data early (ExpressPass, Aeolus)",
    source: "Cho et al., SIGCOMM 2017; ns2-xpass xpass-drop-tail.cc; Hu et al., SIGCOMM 2020",
    counters: &[
        Counter { name: "credits_dropped", unit: "packets", about: "credits dropped because the credit queue was full" },
        Counter { name: "dropped_early", unit: "packets", about: "droppable data packets dropped by the threshold" },
        Counter {
            name: "dropped_alone",
            unit: "packets",
            about: "packets of `dropped_early` that were dropped while no protected packet waited",
        },
        Counter { name: "dropped_protected", unit: "packets", about: "protected data packets dropped because a limit was reached" },
    ],
    queue_lengths: &["limit", "drop", "protect"],
    ..Meta::PLAIN
};

base::choice! {
    /// When the queue of data reaches the threshold.
    pub enum Rule {
        /// If it does without the arriving packet.
        Before = "before",
        /// If it does with the arriving packet.
        After = "after",
    }
}

base::choice! {
    /// In which queues droppable data is dropped early.
    pub enum When {
        /// In every queue that has reached the threshold.
        Any = "any",
        /// Only where protected data waits as well.
        BesideProtected = "beside_protected",
    }
}

base::params! {
    /// Parameters of a port with credits.
    pub struct Params {
        /// Most data packets or bytes that may wait; the packet in transmission does not count.
        limit: Auto<Limit> = "auto", "the larger of 250 packets (ns2-xpass large-scale-fattree.tcl) and 2 bandwidth-delay products";
        /// Threshold (K) of waiting data at which switches drop droppable packets.
        drop: Limit = "unlimited", "ExpressPass: none; Aeolus: 6 KB";
        /// Whether the arriving packet counts towards `drop`.
        rule: Rule = "before", "Aeolus; csg-htsim aeolusqueue.cpp: `after`";
        /// In which queues `drop` is applied.
        when: When = "any", "Aeolus";
        /// Most data that may wait at a switch's port when a protected packet arrives; above this
        /// the packet is dropped.
        protect: Limit = "unlimited", "only `limit` applies";
        /// Most probes and FINs that may wait, in addition to data.
        probes: Limit = "256pkt", "flowloom: none is lost in practice";
        /// Most credits that may wait.
        credits: Limit = "8pkt", "ns2-xpass large-scale-fattree.tcl";
        /// Rate of credits on the wire, or that rate as a fraction of the line rate; `auto`: one
        /// credit for each full packet.
        rate: Auto<RateOr> = "auto", "ExpressPass: 84 of 84 + 1538 bytes";
        /// Mean length of a credit on the wire, from which `auto` computes the rate.
        credit: Bytes = "84B" in Bytes(1)..=Bytes(65_535), "ExpressPass";
        /// Largest burst of credits, in bytes.
        burst: Bytes = "168B", "ns2-xpass large-scale-fattree.tcl: two credits";
    }
}

/// Returns the problems of parameters that depend on the network.
pub fn check(params: &Params, env: &Env) -> Vec<Problem> {
    let mut problems = super::check_limit(params.limit, env);
    if params.burst < params.credit {
        let (burst, credit) = (params.burst, params.credit);
        let message = format!("a bucket of `{burst}` never has tokens for a credit of {credit}: no credit would be sent");
        problems.push(Problem {
            key: "burst",
            message,
            hint: format!("write at least `{credit}`; twice that lets a burst of two credits pass"),
        });
    }
    if rate(params, env).0 == 0 {
        let message = format!("a credit rate of {} of {} is zero: no credit would be sent", params.rate.show(), env.rate);
        problems.push(Problem {
            key: "rate",
            message,
            hint: "remove `rate`: the default sends one credit for each full packet".to_owned(),
        });
    }
    problems
}

/// Returns the rate of credits.
fn rate(params: &Params, env: &Env) -> Rate {
    match params.rate {
        Auto::Set(rate) => rate.on(env.rate),
        Auto::Auto => {
            let credit = u128::from(params.credit.0);
            let bits = u128::from(env.rate.0) * credit / (credit + u128::from(env.mtu_bytes));
            Rate(u64::try_from(bits).unwrap_or(u64::MAX))
        }
    }
}

/// Indices of the counters.
const CREDITS_DROPPED: usize = 0;
const DROPPED_EARLY: usize = 1;
const DROPPED_ALONE: usize = 2;
const DROPPED_PROTECTED: usize = 3;

/// The queues of a port.
#[derive(Clone)]
pub struct Credit {
    params: Params,
    /// Limit of waiting data.
    limit: Limit,
    bucket: Bucket,
    credits: Queue,
    /// When the bucket has the tokens of the first waiting credit.
    hold: Hold,
    control: Queue,
    data: Queue,
    /// The probes and FINs in the queue of data.
    probes: Backlog,
    /// Whether any data packet, probe or FIN may wait in an empty queue, so that `passes` need not
    /// check.
    open: bool,
    /// Number of protected packets in the queue of data.
    protected: u32,
    counts: [u64; 4],
}

impl Credit {
    /// Returns empty queues and a full bucket.
    pub fn new(params: &Params, env: &Env) -> Self {
        let bucket = Bucket::new(rate(params, env), params.burst);
        let mut params = params.clone();
        if env.host_port {
            (params.drop, params.protect) = (Limit::Unlimited, Limit::Unlimited);
        }
        let [credits, control, data] = [(); 3].map(|()| Queue::default());
        let (hold, probes) = (Hold { until: Time::MAX, wire_len: 0 }, Backlog::default());
        let mtu = u64::from(env.mtu_bytes);
        let holds = |limit: Limit| !limit.exceeded_by(1, mtu);
        let early = params.drop != Limit::Unlimited && (params.rule == Rule::After || !holds(params.drop));
        let limit = Self::limit(&params, env);
        let open = !early && [limit, params.protect, params.probes].into_iter().all(holds);
        Credit { params, limit, bucket, credits, hold, control, data, probes, open, protected: 0, counts: [0; 4] }
    }
    /// Returns the limit of the queue.
    pub fn limit(params: &Params, env: &Env) -> Limit {
        env.limit(params.limit, 250)
    }
    /// Returns `None`: the engine cannot simulate this discipline by itself.
    pub fn fifo(_params: &Params, _env: &Env) -> Option<Fifo> {
        None
    }
    /// Returns the backlog of data without probes and FINs.
    fn payload(&self) -> Backlog {
        Backlog { packets: self.data.backlog().packets - self.probes.packets, bytes: self.data.backlog().bytes - self.probes.bytes }
    }
    /// Decides on an arriving data packet, probe or FIN.
    fn judge(&self, packet: &Packet) -> Verdict {
        let Params { drop, rule, when, protect, probes, .. } = self.params;
        let limit = self.limit;
        let full_unless = |fits| if fits { Verdict::Stays } else { Verdict::Full };
        if is_probe(packet) {
            return full_unless(self.probes.fits(packet, probes));
        }
        let waits = self.payload();
        if is_protected(packet) {
            return full_unless(waits.fits(packet, limit) && waits.fits(packet, protect));
        }
        let mut compared = waits;
        if rule == Rule::After {
            compared.add(packet);
        }
        if reaches(compared, drop) && (when == When::Any || self.protected > 0) {
            return Verdict::Early;
        }
        full_unless(waits.fits(packet, limit))
    }
    /// Returns whether a data packet, a probe or a FIN may wait; counts those that may not.
    fn admits(&mut self, packet: &Packet) -> bool {
        let verdict = self.judge(packet);
        if verdict == Verdict::Early {
            self.counts[DROPPED_EARLY] += 1;
            self.counts[DROPPED_ALONE] += u64::from(self.protected == 0);
        } else if verdict == Verdict::Full && is_protected(packet) && !is_probe(packet) {
            self.counts[DROPPED_PROTECTED] += 1;
        }
        verdict == Verdict::Stays
    }
    /// Enqueues a packet if there is room, and returns whether it waits.
    fn put(&mut self, packet: &Packet) -> bool {
        match packet.kind {
            Kind::CREDIT => {
                let fits = self.credits.backlog().fits(packet, self.params.credits);
                self.counts[CREDITS_DROPPED] += u64::from(!fits);
                if fits {
                    if self.credits.is_empty() {
                        self.hold = self.bucket.hold(packet.wire_len);
                    }
                    self.credits.push(packet);
                }
                return fits;
            }
            Kind::DATA | Kind::PROBE | Kind::FIN => {
                if !self.admits(packet) {
                    return false;
                }
                if is_probe(packet) {
                    self.probes.add(packet);
                }
                self.protected += u32::from(is_protected(packet) && !is_probe(packet));
                self.data.push(packet);
            }
            _ => self.control.push(packet),
        }
        true
    }
    /// Dequeues the oldest packet of the data queue.
    fn pop_data(&mut self) -> Option<&mut Packet> {
        let packet = self.data.pop()?;
        if is_probe(packet) {
            self.probes.remove(packet);
        } else {
            self.protected -= u32::from(is_protected(packet));
        }
        Some(packet)
    }
}

/// The decision on an arriving packet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Stays,
    /// Dropped by the threshold.
    Early,
    /// Dropped because there is no room.
    Full,
}

/// Returns whether a packet of the data queue is a probe or a FIN.
#[inline]
fn is_probe(packet: &Packet) -> bool {
    packet.kind != Kind::DATA
}

#[inline]
fn is_protected(packet: &Packet) -> bool {
    packet.has(Packet::ECT)
}

/// Returns whether the backlog is equal to the threshold or larger.
fn reaches(waits: Backlog, threshold: Limit) -> bool {
    match threshold {
        Limit::Packets(n) => waits.packets >= n,
        Limit::Bytes(n) => waits.bytes >= n,
        Limit::Unlimited => false,
    }
}

impl Qdisc for Credit {
    fn enqueue(&mut self, packet: &mut Packet, _now: Time, refused: &mut Refused) -> bool {
        let stays = self.put(packet);
        if !stays {
            refused.drop(packet);
        }
        stays
    }
    fn is_shaped(&self) -> bool {
        true
    }
    fn not_before(&self, now: Time) -> Option<Hold> {
        (self.control.is_empty() && self.data.is_empty() && self.hold.until > now).then_some(self.hold)
    }
    fn passes(&mut self, packet: &Packet, now: Time) -> bool {
        match packet.kind {
            Kind::CREDIT => self.credits.is_empty() && self.bucket.try_take(packet.wire_len, now),
            Kind::DATA | Kind::PROBE | Kind::FIN => self.open || self.judge(packet) == Verdict::Stays,
            _ => true,
        }
    }
    fn dequeue(&mut self, now: Time) -> Option<&mut Packet> {
        if !self.credits.is_empty() && self.hold.until <= now {
            let next = self.credits.second().map(|credit| credit.wire_len);
            let packet = self.credits.pop()?;
            self.bucket.take(packet.wire_len, now);
            if let Some(next) = next {
                self.hold = self.bucket.hold(next);
            }
            return Some(packet);
        }
        if self.control.is_empty() { self.pop_data() } else { self.control.pop() }
    }
    fn drain(&mut self, _now: Time) -> Option<Packet> {
        let control = if self.credits.is_empty() { self.control.pop() } else { self.credits.pop() };
        control.copied().or_else(|| self.pop_data().copied())
    }
    fn on_link_up(&mut self, now: Time) {
        self.bucket.fill(now);
    }
    fn lengths(&self) -> Vec<(&'static str, Limit)> {
        vec![("limit", self.limit)]
    }
    fn backlog(&self) -> Backlog {
        let mut all = self.data.backlog();
        all.add_all(self.control.backlog());
        all.add_all(self.credits.backlog());
        all
    }
    fn counts(&self) -> &[u64] {
        &self.counts
    }
}

#[cfg(test)]
mod tests;

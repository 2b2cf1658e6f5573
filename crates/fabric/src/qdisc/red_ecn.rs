//! Random early detection: first in, first out; packets are marked or dropped by the average length
//! of the queue.
//!
//! Source: Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance", IEEE/ACM ToN 1(4), 1993, sections 4 and 8;
//! ns-2 `queue/red.cc` for `gentle`, `wait` and `mark_p`; RFC 3168 section 5 for marks.
//!
//! Model: no adaptive `max_p`. The probability does not depend on a packet's size.
//!
//! | parameter | default | from |
//! |---|---|---|
//! | `limit` | the larger of 100 packets and 2 bandwidth-delay products | `fabric::lengths` |
//! | `th_min`, `th_max` | the larger of 20 packets and 0.78 bandwidth-delay products | RFC 8257 section 4.1, `fabric::lengths` |
//! | `wq` | 0.002 | Floyd and Jacobson section 6; `auto` is ns-2's -1 |
//! | `max_p`, `gentle`, `wait` | 0.1, off, on | ns-2 |
//! | `chosen`, `mark_p` | `mark`, 1 | RFC 3168; ns-2: 0.1 |
//! | `at` | `enqueue` | Floyd and Jacobson: at arrivals; `dequeue`: simulators of HPCC and PowerTCP |
//!
//! Assumed:
//! - The queue length does not include the packet in transmission. The average is updated at every
//!   arrival, also at that of a packet that finds the port idle, with the queue length before the
//!   arrival. For idle time the average decreases as if full packets had arrived at an empty queue.
//! - With thresholds in bytes the average is in bytes.
//! - With `at = "dequeue"` the average is updated, and a packet is chosen, when its transmission starts, by
//!   what waits behind it (HPCC's simulator, `SwitchNode::SwitchNotifyDequeue`: `ShouldSendCN` after the packet
//!   has left the count). A mark made on arrival is older by the time that the packet waited.
//! - With at most one waiting packet nothing is marked (ns-2).
//! - The count of packets since the last mark is reset when the average is below `th_min`, at most
//!   one packet waits, or the queue is full.
//! - Without `chosen = "mark_only"`, a chosen packet that cannot be marked is dropped. This
//!   includes ACKs and retransmissions, which are not ECN-capable in RFC 3168. A port that is
//!   congested in one direction then starves the traffic of the reverse direction.
//!
//! Deviates: ns-2 never chooses the first packet above `th_min`; here its probability is that of
//! any other packet.

use super::{At, Backlog, Env, Fifo, Qdisc};
use crate::queue::Queue;
use crate::refused::Refused;
use base::params::{Auto, Param as _, Problem};
use base::registry::Meta;
use base::{Dur, Limit, Rate, Rng, Time, Wire as _, math};
use proto::Packet;

/// The description of this entry, for `list`, `explain` and `check`.
pub const META: Meta = Meta {
    summary: "random early detection: packets are marked or dropped by the average length of the queue",
    source: "Floyd and Jacobson, IEEE/ACM ToN 1993; ns-2 queue/red.cc; RFC 3168",
    queue_lengths: &["limit", "th_min", "th_max"],
    implies: &[("transport.kind", "tcp_ecn")],
    ..Meta::PLAIN
};

base::choice! {
    /// How packets are chosen by their probability.
    pub enum Spacing {
        /// The count of packets since the last choice spaces choices evenly.
        Uniform = "uniform",
        /// Each packet is chosen independently of all others.
        Geometric = "geometric",
    }
}

base::choice! {
    /// What happens to a chosen packet.
    pub enum Chosen {
        /// It is marked, or dropped if it is not ECN-capable.
        Mark = "mark",
        /// It is marked if it is ECN-capable, and passes unchanged otherwise.
        MarkOnly = "mark_only",
        /// It is dropped.
        Drop = "drop",
    }
}

base::params! {
    /// Parameters of random early detection.
    pub struct Params {
        /// Most packets or bytes that may wait; the packet in transmission does not count.
        limit: Auto<Limit> = "auto", "the larger of 100 packets and 2 bandwidth-delay products";
        /// No packet is chosen while the average is below this; `auto`: `th_max`.
        th_min: Auto<Limit> = "auto", "RFC 8257 section 4.1: one threshold";
        /// Every packet is chosen if the average is at least this; same unit as `th_min`. `auto`:
        /// `spread` times `th_min`, which if both are `auto` is as `mark` of `ecn_threshold`.
        th_max: Auto<Limit> = "auto", "DCTCP section 3.4: the larger of 20 packets and 0.78 bandwidth-delay products";
        /// With `th_max = "auto"`, `th_max` is this many times `th_min`.
        spread: u32 = "1" in 1..=1000, "RFC 8257 section 4.1: one threshold; HPCC's simulator: 4", quiet;
        /// Weight of one arrival in the average; `auto`: 1 - exp(-1 / packets in a second).
        wq: Auto<f64> = "0.002" in Auto::Set(1e-9)..=Auto::Set(1.0), "Floyd and Jacobson section 6; ns-2 `q_weight_ = -1` for `auto`";
        /// Probability of choosing a packet when the average is just below `th_max`.
        max_p: f64 = "0.1" in 0.0..=1.0, "ns-2 `linterm_ = 10`";
        /// Raise the probability from `max_p` to 1 between `th_max` and twice `th_max`, instead of
        /// setting it to 1 at `th_max`.
        gentle: bool = "false", "Floyd and Jacobson; ns-2 has it on";
        /// After a mark, let 1 / probability packets pass before the next mark.
        wait: bool = "true", "ns-2 `wait_`";
        /// The number of packets from one choice to the next: `uniform` up to 1 / probability (with
        /// `wait` from there to twice that), or `geometric`, as of independent choices.
        spacing: Spacing = "uniform", "Floyd and Jacobson section 7, method 2; HPCC's simulator: method 1", quiet;
        /// What happens to a chosen packet: `mark` drops packets that are not ECN-capable,
        /// `mark_only` lets them pass.
        chosen: Chosen = "mark", "RFC 3168 section 5";
        /// If the probability is at least this, chosen packets are dropped even if they could be
        /// marked; 1: never.
        mark_p: f64 = "1" in 0.0..=1.0, "RFC 3168; ns-2 drops from 0.1 on when `use_mark_p_` is set";
        /// When packets are chosen; `dequeue` needs `chosen = "mark_only"`.
        at: At = "enqueue", "Floyd and Jacobson section 4; HPCC's simulator: `dequeue`", quiet;
    }
}

/// Returns the problems of parameters that depend on the network or on each other.
pub fn check(params: &Params, env: &Env) -> Vec<Problem> {
    let mut problems = super::check_limit(params.limit, env);
    let (th_min, th_max) = thresholds(params, env);
    let (low, high) = (th_min.show(), th_max.show());
    if size(th_min).is_none() {
        let (message, hint) = (format!("`{low}` is not a threshold"), "write packets (`20pkt`) or bytes (`30KB`)".to_owned());
        problems.push(Problem { key: "th_min", message, hint });
    } else if th_min.partial_cmp(&th_max).is_none() || size(th_max).is_none() {
        let message = format!("`{high}` has another unit than `th_min`, which is `{low}`");
        problems.push(Problem { key: "th_max", message, hint: "write both in packets or both in bytes".to_owned() });
    } else if th_min > th_max {
        let message = format!("`{low}` is above `th_max`, which is `{high}`");
        problems.push(Problem { key: "th_min", message, hint: "lower `th_min` or raise `th_max`".to_owned() });
    }
    if params.at == At::Dequeue && (params.chosen != Chosen::MarkOnly || params.mark_p < 1.0) {
        let message = "`dequeue` chooses packets whose transmission starts, which cannot be dropped any more".to_owned();
        let hint = "write `chosen = \"mark_only\"` and leave out `mark_p`, or write `at = \"enqueue\"`".to_owned();
        problems.push(Problem { key: "at", message, hint });
    }
    problems
}

/// Returns both thresholds. If only one is set, the other follows from it.
fn thresholds(params: &Params, env: &Env) -> (Limit, Limit) {
    let spread = |low| match low {
        Limit::Packets(n) => Limit::Packets(n.saturating_mul(params.spread)),
        Limit::Bytes(n) => Limit::Bytes(n.saturating_mul(params.spread.into())),
        Limit::Unlimited => Limit::Unlimited,
    };
    let low = params.th_min.or(env.mark(params.th_max));
    (low, params.th_max.or(spread(low)))
}

/// Returns a threshold as a number of packets or bytes.
fn size(threshold: Limit) -> Option<f64> {
    match threshold {
        Limit::Packets(n) => Some(f64::from(n)),
        Limit::Bytes(n) => Some(n as f64),
        Limit::Unlimited => None,
    }
}

/// The queue of a port and its average length.
#[derive(Clone)]
pub struct RedEcn {
    params: Params,
    limit: Limit,
    /// `th_min` and `th_max`.
    thresholds: (Limit, Limit),
    queue: Queue,
    marks: u64,
    rng: Rng,
    rate: Rate,
    /// Transmission time of a full packet, the unit in which idle time is counted.
    packet_time: Dur,
    wq: f64,
    avg: f64,
    /// Packets since the last chosen one.
    count: u32,
    /// When the transmitter is free, if no more packets arrive.
    free_at: Time,
}

impl RedEcn {
    /// Returns an empty queue.
    pub fn new(params: &Params, env: &Env) -> Self {
        let packet_time = env.rate.tx_time(env.mtu_bytes.into());
        // ns-2: ten round trips of 0.1 s, in packets.
        let slow = || 1.0 - math::exp(-packet_time.as_secs_f64());
        RedEcn {
            wq: match params.wq {
                Auto::Auto => slow(),
                Auto::Set(wq) => wq,
            },
            params: params.clone(),
            limit: Self::limit(params, env),
            thresholds: thresholds(params, env),
            queue: Queue::default(),
            marks: 0,
            rng: Rng::stream(env.seed, "qdisc", &[env.link.0.into()]),
            rate: env.rate,
            packet_time,
            avg: 0.0,
            count: 0,
            free_at: Time::ZERO,
        }
    }
    /// Returns the limit of the queue.
    pub fn limit(params: &Params, env: &Env) -> Limit {
        env.limit(params.limit, 100)
    }
    /// Returns `None`: the engine cannot simulate this discipline by itself.
    pub fn fifo(_params: &Params, _env: &Env) -> Option<Fifo> {
        None
    }

    /// Updates the average queue length, while `waits` is the present one.
    fn update(&mut self, waits: Backlog, now: Time) {
        let present = match self.thresholds.0 {
            Limit::Bytes(_) => waits.bytes as f64,
            _ => f64::from(waits.packets),
        };
        if self.wq == 1.0 {
            self.avg = present;
            return;
        }
        // Idle time counts as the arrivals of the packets that could have been sent in it, each at
        // an empty queue.
        if waits.packets == 0 && self.avg > 0.0 {
            let idle = now.since(self.free_at).0 / self.packet_time.0.max(1);
            self.avg *= math::pow(1.0 - self.wq, idle as f64);
        }
        self.avg = self.avg * (1.0 - self.wq) + self.wq * present;
    }

    /// Returns when the transmission of a packet that begins now ends, if the average needs it.
    fn end_of(&self, wire_len: u16, now: Time) -> Time {
        if self.wq < 1.0 { now + self.rate.tx_time(wire_len.into()) } else { Time::ZERO }
    }

    /// Returns the probability for the present average, while `waits` is the queue; `None` if no packet may be chosen.
    fn base_probability(&self, waits: Backlog) -> Option<f64> {
        let Params { max_p, gentle, .. } = self.params;
        let (low, high) = (size(self.thresholds.0)?, size(self.thresholds.1)?);
        if self.avg < low || waits.packets <= 1 {
            return None;
        }
        Some(match (self.avg < high, gentle) {
            (true, _) => max_p * (self.avg - low) / (high - low),
            (false, true) => (max_p + (1.0 - max_p) * (self.avg - high) / high).min(1.0),
            (false, false) => 1.0,
        })
    }

    /// Returns whether this packet is chosen.
    fn chooses(&mut self, base: f64) -> bool {
        if self.params.spacing == Spacing::Geometric {
            return base >= 1.0 || self.rng.unit() < base;
        }
        self.count += 1;
        let due = f64::from(self.count) * base;
        let (from, to) = if self.params.wait { (1.0, 2.0) } else { (0.0, 1.0) };
        let p = match due {
            _ if due < from => 0.0,
            _ if due < to => base / (to - due),
            _ => 1.0,
        };
        let chosen = p >= 1.0 || (p > 0.0 && self.rng.unit() < p);
        if chosen {
            self.count = 0;
        }
        chosen
    }

    /// Returns the probability with which a packet is chosen while `waits` is the queue, if it is chosen.
    fn chooses_now(&mut self, waits: Backlog) -> Option<f64> {
        let base = self.base_probability(waits);
        if base.is_none() {
            self.count = 0;
        }
        base.filter(|base| self.chooses(*base))
    }

    /// Marks a chosen packet. Returns `false` if the packet must be dropped.
    fn spares(&mut self, packet: &mut Packet, base: f64) -> bool {
        let Params { chosen, mark_p, .. } = self.params;
        if chosen == Chosen::Drop || (mark_p < 1.0 && base >= mark_p) {
            return false;
        }
        let marked = packet.mark();
        self.marks += u64::from(marked);
        marked || chosen == Chosen::MarkOnly
    }
}

impl Qdisc for RedEcn {
    fn enqueue(&mut self, packet: &mut Packet, now: Time, refused: &mut Refused) -> bool {
        let waits = self.queue.backlog();
        let arrivals = self.params.at == At::Enqueue;
        if arrivals {
            self.update(waits, now);
        }
        if !waits.fits(packet, self.limit) {
            self.count = 0;
            refused.drop(packet);
            return false;
        }
        if arrivals && self.chooses_now(waits).is_some_and(|base| !self.spares(packet, base)) {
            refused.drop(packet);
            return false;
        }
        self.queue.push(packet);
        true
    }
    fn dequeue(&mut self, now: Time) -> Option<&mut Packet> {
        let first = self.queue.first()?;
        let (wire_len, mut behind) = (first.wire_len, self.queue.backlog());
        behind.remove(first);
        let mut chosen = false;
        if self.params.at == At::Dequeue {
            self.update(behind, now);
            chosen = self.chooses_now(behind).is_some();
        }
        self.free_at = self.end_of(wire_len, now);
        let packet = self.queue.pop()?;
        if chosen {
            self.marks += u64::from(packet.mark());
        }
        Some(packet)
    }
    fn lengths(&self) -> Vec<(&'static str, Limit)> {
        vec![("limit", self.limit), ("th_min", self.thresholds.0), ("th_max", self.thresholds.1)]
    }
    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }
    fn watches(&self) -> bool {
        // If the average is the present length, the next packet that waits finds no trace of those
        // that pass: it sees an empty queue and starts the count anew.
        self.wq < 1.0
    }
    fn passes(&mut self, packet: &Packet, now: Time) -> bool {
        self.update(Backlog::default(), now);
        self.count = 0;
        self.free_at = self.end_of(packet.wire_len, now);
        true
    }
    fn marks(&self) -> u64 {
        self.marks
    }
    fn marks_above(&self) -> Option<(&'static str, Limit)> {
        let marks = self.params.chosen != Chosen::Drop && self.params.mark_p > 0.0;
        marks.then_some(("th_max", self.thresholds.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qdisc::tests::{env, packet};
    use base::params::Params as _;

    /// A queue at 1 Gb/s that holds `waiting` packets and whose average is `avg`.
    fn queue(params: Params, waiting: u32, avg: f64) -> RedEcn {
        let mut red = RedEcn::new(&Params { limit: Auto::Set(Limit::Packets(1000)), ..params }, &env());
        for n in 0..waiting {
            red.enqueue(&mut capable(n.into()), Time::ZERO, &mut Refused::new());
        }
        (red.avg, red.count, red.marks) = (avg, 0, 0);
        red
    }

    fn base(red: &RedEcn) -> Option<f64> {
        red.base_probability(red.queue.backlog())
    }

    fn capable(n: u64) -> Packet {
        Packet { flags: Packet::ECT, ..packet(0, n, 1500) }
    }

    fn params() -> Params {
        Params::defaults()
    }

    /// Thresholds 20 and 60, and an average that does not move.
    fn between() -> Params {
        let (th_min, th_max) = (Auto::Set(Limit::Packets(20)), Auto::Set(Limit::Packets(60)));
        Params { th_min, th_max, wq: Auto::Set(1e-9), ..params() }
    }

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-6, "{a} is not {b}");
    }

    /// HPCC's simulator: a packet that leaves is marked by what waits behind it, one that arrives by what it finds.
    #[test]
    fn a_packet_that_leaves_is_marked_by_what_waits_behind_it() {
        let marked = |at: At| -> Vec<bool> {
            let mark = Auto::Set(Limit::Packets(3));
            let params = Params { th_min: mark, th_max: mark, wq: Auto::Set(1.0), chosen: Chosen::MarkOnly, at, ..params() };
            let mut red = queue(params, 6, 0.0);
            std::iter::from_fn(|| red.dequeue(Time::ZERO).map(|packet| packet.has(Packet::CE))).collect()
        };
        assert_eq!(marked(At::Dequeue), [true, true, true, false, false, false]);
        assert_eq!(marked(At::Enqueue), [false, false, false, true, true, true]);
        // Half way between the thresholds, half of max_p.
        let params = Params {
            wq: Auto::Set(1.0),
            max_p: 0.2,
            spacing: Spacing::Geometric,
            chosen: Chosen::MarkOnly,
            at: At::Dequeue,
            ..between()
        };
        let mut red = queue(params, 41, 0.0);
        for n in 0..20_000 {
            red.dequeue(Time::ZERO);
            red.enqueue(&mut capable(n), Time::ZERO, &mut Refused::new());
        }
        assert!((1850..2150).contains(&red.marks), "{} of 20 000", red.marks);
        let problem = |params: &Params| check(params, &env()).iter().map(|problem| problem.key).collect::<Vec<_>>();
        assert_eq!(problem(&Params { at: At::Dequeue, ..Params::defaults() }), ["at"]);
        assert_eq!(problem(&Params { at: At::Dequeue, chosen: Chosen::MarkOnly, ..Params::defaults() }), [""; 0]);
    }

    /// A port need not see the packets that pass if the average is the present length.
    #[test]
    fn packets_that_pass_leave_no_trace_in_the_present_length() {
        let (th_min, th_max) = (Auto::Set(Limit::Packets(2)), Auto::Set(Limit::Packets(9)));
        let params = Params { th_min, th_max, wq: Auto::Set(1.0), wait: false, ..params() };
        let marks = |sees: bool| {
            let mut red = queue(params.clone(), 0, 0.0);
            for burst in 1..200 {
                let now = Time(burst * 1_000_000_000);
                if sees {
                    red.passes(&capable(0), now);
                }
                for n in 0..burst % 12 {
                    red.enqueue(&mut capable(n), now, &mut Refused::new());
                }
                while red.dequeue(now).is_some() {}
            }
            red.marks
        };
        assert!(marks(true) > 0 && !queue(params.clone(), 0, 0.0).watches());
        assert_eq!(marks(true), marks(false));
    }

    /// The average after n arrivals that each find 50 packets (weight 0.002).
    #[test]
    fn golden_average() {
        let rows = [(1, 0.1), (10, 0.991048), (100, 9.071660), (255, 19.990550), (256, 20.050569), (500, 31.624437)];
        let mut red = queue(params(), 50, 0.0);
        for n in 1..=500 {
            red.update(red.queue.backlog(), Time::ZERO);
            if let Some((_, avg)) = rows.iter().find(|row| row.0 == n) {
                near(red.avg, *avg);
            }
        }
    }

    /// The average is 30; it is updated by the arrival that ends an idle time of 83 packet times.
    #[test]
    fn golden_idle_time() {
        let mut red = queue(params(), 0, 30.0);
        red.update(Backlog::default(), Time::ZERO + Dur::from_us(12) * 83);
        near(red.avg / 0.998, 25.407164);
    }

    /// The transmitter is busy until 12 us after a start and idle only then. A fraction of a packet
    /// time does not count.
    #[test]
    fn a_busy_transmitter_is_not_idle() {
        let us = |n: u64| Time::ZERO + Dur::from_us(n);
        for (at, steps) in [(us(100), 1.0), (us(112), 1.0), (us(123), 1.0), (us(124), 2.0), (us(136), 3.0)] {
            let mut red = queue(params(), 0, 30.0);
            assert!(red.passes(&capable(0), us(100)));
            let before = red.avg;
            red.update(Backlog::default(), at);
            near(red.avg, before * math::pow(0.998, steps));
        }
        // Likewise after a packet that waited.
        let mut red = queue(params(), 1, 30.0);
        red.dequeue(us(100));
        assert_eq!(red.free_at, us(112));
    }

    #[test]
    fn weights_of_ns2() {
        let fast = Env { rate: Rate::from_gbps(10), ..env() };
        let red = RedEcn::new(&Params { wq: Auto::Auto, ..params() }, &fast);
        assert!((red.wq - 1.2e-6).abs() < 1e-9, "{}", red.wq);
        // With this weight the average reaches 20 after 425 688 arrivals that find 50 packets.
        let arrivals = math::ln(0.6) / math::ln(1.0 - red.wq);
        assert!((arrivals - 425_688.0).abs() < 2.0, "{arrivals}");
    }

    /// Thresholds 20 and 60, max_p 0.1.
    #[test]
    fn golden_probabilities() {
        let at = |gentle, avg, waiting| base(&queue(Params { gentle, ..between() }, waiting, avg));
        let rows = [(19.999, None), (20.0, Some(0.0)), (30.0, Some(0.025)), (40.0, Some(0.05)), (59.0, Some(0.0975))];
        for (avg, p) in rows {
            assert_eq!((at(false, avg, 2), at(true, avg, 2)), (p, p), "{avg}");
            assert_eq!(at(false, avg, 1), None);
        }
        for (avg, gentle) in [(60.0, 0.1), (90.0, 0.55), (120.0, 1.0), (500.0, 1.0)] {
            assert_eq!(at(false, avg, 2), Some(1.0));
            near(at(true, avg, 2).unwrap(), gentle);
        }
        // Equal thresholds: no packet is chosen below, every packet from there on.
        assert_eq!([19.9, 20.0].map(|avg| base(&queue(params(), 2, avg))), [None, Some(1.0)]);
    }

    /// Number of packets from one mark to the next while 50 packets wait and the average is
    /// constant.
    fn gaps(params: Params, avg: f64, marks: usize) -> Vec<u32> {
        let mut red = queue(params, 50, avg);
        let (mut gaps, mut gap) = (Vec::new(), 0);
        while gaps.len() < marks {
            gap += 1;
            let before = red.marks;
            red.enqueue(&mut capable(0), Time::ZERO, &mut Refused::new());
            red.dequeue(Time::ZERO);
            if red.marks > before {
                gaps.push(std::mem::take(&mut gap));
            }
        }
        gaps
    }

    /// Independent choices: gaps of n packets have the probability p (1 - p)^(n - 1) (section 7, method 1).
    #[test]
    fn gaps_of_independent_choices_are_geometric() {
        // Half of `max_p`, since the average is in the middle of the thresholds.
        let params = Params { spacing: Spacing::Geometric, max_p: 0.2, ..between() };
        let gaps = gaps(params, 40.0, 20_000);
        let share = |range: std::ops::RangeInclusive<u32>| gaps.iter().filter(|gap| range.contains(gap)).count() as f64 / 20_000.0;
        near_by(gaps.iter().map(|gap| f64::from(*gap)).sum::<f64>() / 20_000.0, 10.0, 0.2);
        near_by(share(1..=1), 0.1, 0.007);
        near_by(share(1..=10), 1.0 - 0.9f64.powi(10), 0.01);
        near_by(share(31..=u32::MAX), 0.9f64.powi(30), 0.005);
    }

    fn near_by(a: f64, b: f64, by: f64) {
        assert!((a - b).abs() < by, "{a} is not {b}");
    }

    /// With base probability p the gaps are uniform: from 1/p to 2/p - 1 packets with `wait`, from
    /// 1 to 1/p - 1 without. The probability of exceeding these bounds of chi-square is 0.001.
    #[test]
    fn marks_come_with_the_right_probability() {
        let max_p = 0.2;
        for (wait, range, bound) in [(true, 10..20, 27.9), (false, 1..10, 26.1)] {
            // (40 - 20) / (60 - 20) * 0.2 = 0.1
            let gaps = gaps(Params { wait, max_p, ..between() }, 40.0, 20_000);
            let expected = gaps.len() as f64 / range.len() as f64;
            let of = |n: u32| gaps.iter().filter(|gap| **gap == n).count() as f64;
            assert_eq!(range.clone().map(of).sum::<f64>(), 20_000.0, "a gap is out of range, wait = {wait}");
            let chi: f64 = range.map(|n| (of(n) - expected) * (of(n) - expected) / expected).sum();
            assert!(chi < bound, "chi-square {chi}, wait = {wait}");
        }
    }

    #[test]
    fn above_the_upper_threshold_every_packet_is_chosen() {
        assert_eq!(gaps(params(), 40.0, 50), [1; 50]);
    }

    /// What happens to a chosen packet: (marked, dropped).
    fn fate(params: Params, packet: Packet) -> (bool, bool) {
        let mut red = queue(params, 50, 80.0);
        let mut refused = Refused::new();
        red.enqueue(&mut { packet }, Time::ZERO, &mut refused);
        let waits = red.backlog().packets;
        let marked = std::iter::from_fn(|| red.dequeue(Time::ZERO).copied()).any(|p| p.has(Packet::CE));
        assert_eq!((u64::from(marked), waits), (red.marks(), 51 - refused.dropped().count() as u32));
        (marked, !refused.is_empty())
    }

    #[test]
    fn only_capable_packets_are_marked_and_others_are_dropped() {
        assert_eq!(fate(params(), capable(0)), (true, false));
        assert_eq!(fate(params(), packet(0, 0, 1500)), (false, true));
        for (chosen, capable_one, other) in [
            (Chosen::Mark, (true, false), (false, true)),
            (Chosen::MarkOnly, (true, false), (false, false)),
            (Chosen::Drop, (false, true), (false, true)),
        ] {
            let params = Params { chosen, ..params() };
            assert_eq!((fate(params.clone(), capable(0)), fate(params, packet(0, 0, 1500))), (capable_one, other), "{chosen:?}");
        }
    }

    /// With `gentle`, an average of 80 between 60 and 120 gives the probability 0.4; without it 1.
    #[test]
    fn from_mark_p_on_even_capable_packets_are_dropped() {
        let gentle = Params { gentle: true, ..between() };
        for (mark_p, gentle_drops) in [(0.1, true), (0.39, true), (0.5, false), (1.0, false)] {
            let mut red = queue(Params { mark_p, ..gentle.clone() }, 50, 80.0);
            near(base(&red).unwrap(), 0.4);
            assert_eq!(red.spares(&mut capable(0), 0.4), !gentle_drops);
            assert_eq!(fate(Params { mark_p, ..params() }, capable(0)).1, mark_p < 1.0);
        }
    }

    #[test]
    fn a_full_queue_drops_whatever_the_average() {
        let mut red = RedEcn::new(&Params { limit: Auto::Set(Limit::Packets(2)), ..params() }, &env());
        let mut refused = Refused::new();
        for n in 0..3 {
            red.enqueue(&mut capable(n), Time::ZERO, &mut refused);
        }
        assert_eq!((refused.dropped().copied().collect(), red.marks()), (vec![capable(2)], 0));
    }

    #[test]
    fn thresholds_in_bytes_average_bytes() {
        let params = Params { th_min: Auto::Set(Limit::Bytes(30_000)), th_max: Auto::Set(Limit::Bytes(30_000)), ..params() };
        let mut red = queue(params, 50, 0.0);
        for _ in 0..255 {
            red.update(red.queue.backlog(), Time::ZERO);
        }
        assert_eq!(base(&red), None);
        red.update(red.queue.backlog(), Time::ZERO);
        near(red.avg / 1500.0, 20.050569);
        assert_eq!(base(&red), Some(1.0));
    }

    #[test]
    fn streams_differ_by_port_and_seed_and_repeat() {
        let of = |link, seed| {
            let mut red = RedEcn::new(&params(), &Env { link: base::LinkId(link), seed, ..env() });
            red.rng.bits()
        };
        assert_eq!(of(3, 1), of(3, 1));
        assert!(of(3, 1) != of(4, 1) && of(3, 1) != of(3, 2));
    }

    #[test]
    fn a_threshold_that_is_left_out_is_the_other_one() {
        // 0.78 of 83.3 packets.
        let fast = Env { rate: Rate::from_gbps(10), ..env() };
        let of = |th_min, th_max| thresholds(&Params { th_min, th_max, ..params() }, &fast);
        let wide = |th_min| thresholds(&Params { th_min, spread: 4, ..params() }, &fast);
        assert_eq!(wide(Auto::Set(Limit::Bytes(9))), (Limit::Bytes(9), Limit::Bytes(36)));
        assert_eq!(wide(Auto::Auto).1, Limit::Packets(4 * size(wide(Auto::Auto).0).unwrap() as u32));
        let given = |packets| Auto::Set(Limit::Packets(packets));
        let both = |low, high| (Limit::Packets(low), Limit::Packets(high));
        assert_eq!((of(Auto::Auto, Auto::Auto), of(given(30), Auto::Auto)), (both(65, 65), both(30, 30)));
        assert_eq!((of(Auto::Auto, given(40)), of(given(30), given(40))), (both(40, 40), both(30, 40)));
    }

    #[test]
    fn thresholds_are_checked() {
        let set = |th_min, th_max| Params { th_min: Auto::Set(th_min), th_max: Auto::Set(th_max), ..params() };
        let of = |th_min, th_max| check(&set(th_min, th_max), &env()).into_iter().map(|p| p.message).collect();
        let none: Vec<String> = of(Limit::Packets(5), Limit::Packets(15));
        assert!(none.is_empty(), "{none:?}");
        let rows = [
            (Limit::Packets(21), Limit::Packets(20), "`21pkt` is above `th_max`, which is `20pkt`"),
            (Limit::Packets(20), Limit::Bytes(30_000), "`30KB` has another unit than `th_min`, which is `20pkt`"),
            (Limit::Packets(20), Limit::Unlimited, "`unlimited` has another unit than `th_min`, which is `20pkt`"),
            (Limit::Unlimited, Limit::Unlimited, "`unlimited` is not a threshold"),
        ];
        for (low, high, message) in rows {
            assert_eq!(of(low, high), [message]);
        }
    }
}

//! NDP's port: a data packet that does not fit loses its payload, and its header is queued ahead of
//! data. If there is no room for the header either, it is returned to the sender. Options make it
//! the port of Ultra Ethernet switches, which mark packets and drop headers without room.
//!
//! Source: Handley et al., "Re-architecting datacenter networks and stacks for low latency and high performance", SIGCOMM 2017; the
//! authors' simulator, csg-htsim at 841d9e7, compositequeue.cpp; for Ultra Ethernet the program uet-htsim at 40ccb05, compositequeue.cpp
//! and main_uec.cpp.
//!
//! | parameter | default | from | uet-htsim |
//! |---|---|---|---|
//! | `limit` | 8 packets of data | NDP | `auto`: 1 bandwidth-delay product, 5 without trimming |
//! | `headers` | as many bytes as twice `limit` full packets | compositequeue.cpp | the same |
//! | `header` | 64 bytes | NDP | the same |
//! | `weight` | 10 headers for 1 data packet | NDP | 100000 |
//! | `trimmed` | `either` | NDP: the packet at the tail or the one that arrives, each with probability 1/2 | the same |
//! | `full` | `return` | NDP | `drop` |
//! | `th_min`, `th_max` | `none`: no marks | NDP | `auto`: 0.2 and 0.8 bandwidth-delay products |
//! | `marks_to_hosts` | on | NDP has no marks | on with NSCC, off if receivers control congestion (RCCC, both) |
//! | `trims`, `whole` | on, `none` | NDP | the same; off with `-disable_trim` |
//!
//! Assumed:
//! - All packets other than data (ACKs, pulls, trimmed and returned packets) wait in the queue of
//!   headers.
//! - Headers and data take turns while both wait. The count of turns is kept until both wait again.
//!   Headers begin.
//! - A packet is returned at most once. Control packets and packets already returned are dropped
//!   when there is no room for them.
//! - A data packet that is no longer than a header loses its payload and keeps its length.
//! - A bandwidth-delay product is that of the port, a number of full packets, rounded up; uet-htsim
//!   takes the rate of the hosts for all ports. Without trimming, the packet at the tail or the
//!   arriving one is dropped, as it would be trimmed.
//!
//! Deviates: data packets are marked when their transmission begins, by the data that waits behind
//! them; uet-htsim marks at the end of the transmission, so that packets which arrive meanwhile
//! count. A packet that finds its port idle is not marked. Only ECN-capable packets are marked.

use super::{Backlog, Env, Fifo, Qdisc};
use crate::queue::Queue;
use crate::refused::Refused;
use crate::threshold::Ramp;
use base::params::{Auto, Param as _, Problem};
use base::registry::{Counter, Meta};
use base::{Bytes, Limit, Rng, Time};
use proto::{Kind, Packet};

/// The description of this entry, for `list`, `explain` and `check`.
pub const META: Meta = Meta {
    summary: "a data packet that does not fit is trimmed to its header, which is sent ahead of data (NDP)",
    source: "Handley et al., SIGCOMM 2017; csg-htsim and uet-htsim compositequeue.cpp",
    counters: &[
        Counter { name: "trimmed", unit: "packets", about: "data packets that lost their payload" },
        Counter { name: "returned", unit: "packets", about: "trimmed packets that were returned to their senders" },
    ],
    queue_lengths: &["limit", "th_min", "th_max"],
    ..Meta::PLAIN
};

base::choice! {
    /// Which packet loses its payload.
    pub enum Trimmed {
        /// The arriving packet or the last packet of the queue, each with probability 1/2.
        Either = "either",
        /// The arriving packet.
        Arriving = "arriving",
    }
}

base::choice! {
    /// What happens to a header for which there is no room.
    pub enum Full {
        /// It is returned to its sender.
        Return = "return",
        /// It is dropped.
        Drop = "drop",
    }
}

base::params! {
    /// Parameters of a trimming port.
    pub struct Params {
        /// Most data packets or bytes that may wait; `auto`: one bandwidth-delay product of the port, or five if
        /// `trims` is off.
        limit: Auto<Limit> = "8pkt", "NDP; `auto`: uet-htsim, main_uec.cpp";
        /// Most headers and control packets that may wait; `auto`: as many bytes as twice `limit`
        /// full packets.
        headers: Auto<Limit> = "auto", "csg-htsim compositequeue.cpp";
        /// Length of a trimmed packet on the wire.
        header: Bytes = "64B" in Bytes(1)..=Bytes(65535), "NDP";
        /// Headers sent for each data packet while both wait.
        weight: u32 = "10" in 1..=1_000_000, "NDP";
        /// Which packet loses its payload.
        trimmed: Trimmed = "either", "NDP";
        /// What happens to a header for which there is no room.
        full: Full = "return", "NDP";
        /// Data packets are marked with a probability that rises from 0 at this length of the data queue to 1 at `th_max`;
        /// `none`: no packet is marked; `auto`: a fifth of a bandwidth-delay product.
        th_min: Option<Auto<Limit>> = "none", "NDP has no marks; `auto`: uet-htsim, main_uec.cpp: ecn_low", quiet;
        /// All data packets are marked above this length of the data queue; same unit as `th_min`. `auto`: four fifths
        /// of a bandwidth-delay product.
        th_max: Option<Auto<Limit>> = "none", "NDP has no marks; `auto`: uet-htsim, main_uec.cpp: ecn_high", quiet;
        /// Whether ports that lead to hosts mark packets, with `th_min` and `th_max`.
        marks_to_hosts: bool = "true", "NDP has no marks; uet-htsim, main_uec.cpp: `false` if receivers control congestion", quiet;
        /// Whether a data packet that does not fit loses only its payload. Otherwise the whole packet is dropped.
        trims: bool = "true", "NDP; uet-htsim: -disable_trim", quiet;
        /// Data packets up to this length on the wire are dropped instead of trimmed.
        whole: Option<Bytes> = "none", "NDP trims all data packets", quiet;
    }
}

/// Returns the problems of parameters that depend on the network.
pub fn check(params: &Params, env: &Env) -> Vec<Problem> {
    let mut problems = super::check_limit(params.limit, env);
    if params.header.0 >= u64::from(env.mtu_bytes) {
        let message = format!("`{}` is not shorter than a full packet of {}", params.header, Bytes(u64::from(env.mtu_bytes)));
        problems.push(Problem { key: "header", message, hint: "write the size of a bare header, like `64B`".to_owned() });
    }
    let both = "write both `th_min` and `th_max`, in packets (`20pkt`) or both in bytes (`30KB`)";
    let problem = |key, message| Problem { key, message, hint: both.to_owned() };
    match thresholds(params, env) {
        [None, None] => {}
        [Some(_), None] => problems.push(problem("th_max", "`none` leaves `th_min` without effect".to_owned())),
        [None, Some(_)] => problems.push(problem("th_min", "`none` leaves `th_max` without effect".to_owned())),
        [Some(low), Some(high)] if [low, high].contains(&Limit::Unlimited) || low.partial_cmp(&high).is_none() => {
            problems
                .push(problem("th_max", format!("`{}` has another unit than `th_min`, which is `{}`", high.show(), low.show())));
        }
        [Some(low), Some(high)] if low > high => {
            let message = format!("`{}` is above `th_max`, which is `{}`", low.show(), high.show());
            problems.push(Problem { key: "th_min", message, hint: "lower `th_min` or raise `th_max`".to_owned() });
        }
        _ => {}
    }
    problems
}

/// Returns the two thresholds for marks.
fn thresholds(params: &Params, env: &Env) -> [Option<Limit>; 2] {
    // main_uec.cpp: shares of a product that is a number of full packets, rounded up again.
    let share = |tenths: u64| full_packets((u64::from(env.bdp_packets(100)) * tenths).div_ceil(10), env);
    [params.th_min.map(|low| low.or(share(2))), params.th_max.map(|high| high.or(share(8)))]
}

/// Returns the length of a queue of full packets, in bytes.
fn full_packets(packets: u64, env: &Env) -> Limit {
    Limit::Bytes(packets * u64::from(env.mtu_bytes))
}

/// The queues of a port.
#[derive(Clone)]
pub struct Trim {
    params: Params,
    /// Most data packets that may wait.
    limit: Limit,
    /// Most headers and control packets that may wait.
    headers_limit: Limit,
    header: u16,
    /// Data packets up to this length are dropped instead of trimmed.
    whole: u64,
    /// The thresholds for marks, if packets are marked.
    ramp: Option<Ramp>,
    /// `th_min` and `th_max`.
    thresholds: [Option<Limit>; 2],
    data: Queue,
    headers: Queue,
    /// Packets and bytes in both queues.
    backlog: Backlog,
    /// Headers sent since the last data packet while both waited.
    turn: u32,
    rng: Rng,
    /// Packets trimmed, packets returned.
    counts: [u64; 2],
}

impl Trim {
    /// Returns a port with empty queues.
    pub fn new(params: &Params, env: &Env) -> Self {
        let twice = |limit: Limit| {
            let one = limit.in_bytes(Bytes(u64::from(env.mtu_bytes)));
            one.map_or(Limit::Unlimited, |bytes| Limit::Bytes(2 * bytes.0))
        };
        let limit = Self::limit(params, env);
        let thresholds = thresholds(params, env);
        let ramp = match thresholds {
            [Some(low), Some(high)] if params.marks_to_hosts || !env.to_host => Some(Ramp::new(low, high)),
            _ => None,
        };
        Trim {
            limit,
            headers_limit: params.headers.or(twice(limit)),
            header: u16::try_from(params.header.0).unwrap_or(u16::MAX),
            whole: if params.trims { params.whole.map_or(0, |bytes| bytes.0) } else { u64::MAX },
            ramp,
            thresholds,
            params: params.clone(),
            data: Queue::default(),
            headers: Queue::default(),
            backlog: Backlog::default(),
            turn: 0,
            rng: Rng::stream(env.seed, "qdisc", &[env.link.0.into()]),
            counts: [0; 2],
        }
    }
    /// Returns the limit of the data queue.
    pub fn limit(params: &Params, env: &Env) -> Limit {
        let products = if params.trims { 1 } else { 5 };
        params.limit.or(full_packets(products * u64::from(env.bdp_packets(100)), env))
    }
    /// Returns `None`: the engine cannot simulate this discipline by itself.
    pub fn fifo(_params: &Params, _env: &Env) -> Option<Fifo> {
        None
    }

    /// Enqueues a data packet if there is room.
    fn push_data(&mut self, packet: &Packet) -> bool {
        let fits = self.data.backlog().fits(packet, self.limit);
        if fits {
            self.data.push(packet);
            self.backlog.add(packet);
        }
        fits
    }
    /// Enqueues a header or control packet if there is room; otherwise returns or drops it.
    fn push_header(&mut self, packet: &Packet, refused: &mut Refused) -> bool {
        let fits = self.headers.backlog().fits(packet, self.headers_limit);
        if fits {
            self.headers.push(packet);
            self.backlog.add(packet);
        } else if packet.kind == Kind::TRIMMED && self.params.full == Full::Return {
            self.counts[1] += 1;
            refused.send_back(packet);
        } else {
            refused.drop(packet);
        }
        fits
    }
    /// Trims a data packet, and enqueues its header if there is room. Drops a packet that may not be
    /// trimmed.
    fn trim(&mut self, packet: &mut Packet, refused: &mut Refused) -> bool {
        if u64::from(packet.wire_len) <= self.whole {
            refused.drop(packet);
            return false;
        }
        self.counts[0] += 1;
        refused.trim(packet, self.header);
        self.push_header(packet, refused)
    }
}

impl Qdisc for Trim {
    // Cold, so that this discipline does not change the machine code of the disciplines used in
    // speed measurements.
    #[cold]
    #[inline(never)]
    fn enqueue(&mut self, packet: &mut Packet, _now: Time, refused: &mut Refused) -> bool {
        if packet.kind != Kind::DATA {
            return self.push_header(packet, refused);
        }
        if self.push_data(packet) {
            return true;
        }
        if self.params.trimmed == Trimmed::Arriving || self.rng.below(2) == 0 {
            return self.trim(packet, refused);
        }
        // With a limit in bytes, trimming one waiting packet may not be enough.
        while let Some(last) = self.data.pop_back().copied() {
            self.backlog.remove(&last);
            self.trim(&mut { last }, refused);
            if self.push_data(packet) {
                return true;
            }
        }
        self.trim(packet, refused)
    }
    #[cold]
    #[inline(never)]
    fn dequeue(&mut self, _now: Time) -> Option<&mut Packet> {
        let data = self.data.backlog();
        let header = match (self.headers.is_empty(), self.data.is_empty()) {
            (false, false) => {
                let header = self.turn < self.params.weight;
                self.turn = if header { self.turn + 1 } else { 0 };
                header
            }
            (none, _) => !none,
        };
        let packet = if header { self.headers.pop() } else { self.data.pop() }?;
        self.backlog.remove(packet);
        if let Some(ramp) = &mut self.ramp
            && !header
        {
            // compositequeue.cpp, decide_ECN: the packet itself does not count.
            let mut behind = data;
            behind.remove(packet);
            if ramp.chooses(behind, &mut self.rng) {
                ramp.mark(packet);
            }
        }
        Some(packet)
    }
    fn lengths(&self) -> Vec<(&'static str, Limit)> {
        let marks = ["th_min", "th_max"].into_iter().zip(self.thresholds).filter_map(|(key, threshold)| Some((key, threshold?)));
        [("limit", self.limit), ("headers", self.headers_limit)].into_iter().chain(marks).collect()
    }
    fn marks(&self) -> u64 {
        self.ramp.as_ref().map_or(0, Ramp::marks)
    }
    fn marks_above(&self) -> Option<(&'static str, Limit)> {
        self.ramp.as_ref().and(self.thresholds[1]).map(|high| ("th_max", high))
    }
    fn backlog(&self) -> Backlog {
        self.backlog
    }
    fn counts(&self) -> &[u64] {
        &self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qdisc::tests::{drain, env, packet};
    use crate::refused::Refusal;
    use base::params::{Param, Params as _};
    use proptest::prelude::*;

    fn port(params: Params) -> Trim {
        assert_eq!(Trim::fifo(&params, &env()), None);
        Trim::new(&params, &env())
    }
    /// Trims the arriving packet, so no random number is drawn.
    fn plain() -> Params {
        Params { trimmed: Trimmed::Arriving, ..Params::defaults() }
    }
    fn ack(n: u64) -> Packet {
        Packet { kind: Kind::ACK, ..packet(9, n, 40) }
    }
    /// What is refused when a packet is enqueued: (what happens, offset, bytes left).
    fn enqueue(q: &mut Trim, packet: Packet) -> Vec<(&'static str, u64, u16)> {
        let mut refused = Refused::new();
        q.enqueue(&mut { packet }, Time::ZERO, &mut refused);
        let named = |refusal| match refusal {
            Refusal::Dropped(packet) => ("dropped", packet.offset, packet.wire_len),
            Refusal::Returned(packet) => ("returned", packet.offset, packet.wire_len),
            Refusal::Trimmed { to, .. } => ("trimmed", 0, to),
            Refusal::Order => ("order", 0, 0),
        };
        let mut all: Vec<_> = std::iter::from_fn(|| refused.pop()).map(named).collect();
        all.reverse();
        all
    }

    #[test]
    fn data_beyond_the_limit_is_trimmed_to_a_header_that_goes_first() {
        let mut q = port(plain());
        for n in 0..8 {
            assert_eq!(enqueue(&mut q, packet(0, n, 1500)), []);
        }
        assert_eq!(enqueue(&mut q, packet(0, 8, 1500)), [("trimmed", 0, 64)]);
        assert_eq!(q.backlog(), Backlog { packets: 9, bytes: 8 * 1500 + 64 });
        let first = *q.dequeue(Time::ZERO).expect("nine wait");
        assert_eq!((first.offset, first.kind, first.wire_len, first.payload), (8, Kind::TRIMMED, 64, 0));
        assert_eq!(drain(&mut q), (0..8).map(|n| (0, n)).collect::<Vec<_>>());
        assert_eq!(q.counts(), [1, 0]);
    }

    /// Headers and data wait together: ten headers, one data packet, and so on.
    #[test]
    fn ten_headers_go_for_each_data_packet() {
        let mut q = port(plain());
        (0..3).for_each(|n| _ = enqueue(&mut q, packet(0, n, 1500)));
        (0..25).for_each(|n| _ = enqueue(&mut q, ack(n)));
        let flows: Vec<u32> = drain(&mut q).into_iter().map(|(flow, _)| flow).collect();
        let data: Vec<usize> = (0..28).filter(|&n| flows[n] == 0).collect();
        assert_eq!(data, [10, 21, 27]);
    }

    #[test]
    fn a_packet_without_competitors_changes_no_turn() {
        let mut q = port(Params { weight: 2, ..plain() });
        let both = |q: &mut Trim| {
            (0..2).for_each(|n| _ = enqueue(q, packet(0, n, 1500)));
            (0..4).for_each(|n| _ = enqueue(q, ack(n)));
        };
        let served = |q: &mut Trim, n| -> Vec<u32> { (0..n).map(|_| q.dequeue(Time::ZERO).expect("some wait").flow.0).collect() };
        both(&mut q);
        assert_eq!(served(&mut q, 6), [9, 9, 0, 9, 9, 0]);
        for lone in [ack(7), packet(0, 7, 1500)] {
            enqueue(&mut q, lone);
            served(&mut q, 1);
        }
        // Two headers had been sent before the data packet that then waited without headers.
        both(&mut q);
        assert_eq!(served(&mut q, 6), [0, 9, 9, 0, 9, 9]);
    }

    /// Room for two headers of 64 bytes.
    fn narrow(full: Full) -> Trim {
        let mut q = port(Params { headers: Auto::Set(Limit::Bytes(128)), limit: Auto::Set(Limit::Packets(1)), full, ..plain() });
        (0..3).for_each(|n| _ = enqueue(&mut q, packet(0, n, 1500)));
        q
    }

    #[test]
    fn a_header_without_room_goes_back_and_all_else_is_dropped() {
        let mut q = narrow(Full::Return);
        assert_eq!(enqueue(&mut q, packet(0, 3, 1500)), [("trimmed", 0, 64), ("returned", 3, 64)]);
        assert_eq!(enqueue(&mut q, ack(4)), [("dropped", 4, 40)]);
        let mut back = Packet { kind: Kind::TRIMMED, ..packet(0, 5, 64) };
        back.turn_back();
        assert_eq!(enqueue(&mut q, back), [("dropped", 5, 64)], "a packet goes back once");
        assert_eq!(q.counts(), [3, 1]);
        let mut q = narrow(Full::Drop);
        assert_eq!(enqueue(&mut q, packet(0, 3, 1500)), [("trimmed", 0, 64), ("dropped", 3, 64)]);
    }

    /// Twice the bytes of eight full packets: 375 headers of 64 bytes.
    #[test]
    fn headers_have_twice_the_room_of_data() {
        let mut q = port(plain());
        (0..8 + 375).for_each(|n| _ = enqueue(&mut q, packet(0, n, 1500)));
        assert_eq!(q.backlog(), Backlog { packets: 383, bytes: 36_000 });
        assert_eq!(enqueue(&mut q, packet(0, 383, 1500)), [("trimmed", 0, 64), ("returned", 383, 64)]);
    }

    #[test]
    fn a_packet_shorter_than_a_header_keeps_its_length() {
        let mut q = port(Params { limit: Auto::Set(Limit::Packets(1)), ..plain() });
        enqueue(&mut q, packet(0, 0, 1500));
        assert_eq!(enqueue(&mut q, packet(0, 1, 41)), [("trimmed", 0, 41)]);
    }

    /// In half of the cases the last packet of the queue loses its payload and the arriving packet
    /// takes its place.
    #[test]
    fn either_the_arriving_packet_or_the_last_is_trimmed() {
        let mut q = port(Params { headers: Auto::Set(Limit::Unlimited), ..Params::defaults() });
        (0..1008).for_each(|n| _ = enqueue(&mut q, packet(0, n, 1500)));
        assert_eq!(q.counts(), [1000, 0]);
        let mut last = 7;
        let mut arriving = 0;
        let trimmed: Vec<u64> = std::iter::from_fn(|| q.headers.pop().map(|p| p.offset)).collect();
        for (n, offset) in (8..).zip(trimmed) {
            arriving += u32::from(offset == n);
            assert!(offset == n || offset == last, "{offset} at the arrival of {n}");
            last = if offset == n { last } else { n };
        }
        // Within five standard deviations of a fair coin.
        assert!((420..=580).contains(&arriving), "{arriving} of 1000");
    }

    #[test]
    fn a_limit_in_bytes_may_need_several_payloads() {
        let mut q = port(Params { limit: Auto::Set(Limit::Bytes(3000)), ..Params::defaults() });
        let small: Vec<Packet> = (0..30).map(|n| packet(0, n, 100)).collect();
        small.iter().for_each(|small| assert_eq!(enqueue(&mut q, *small), []));
        let cut = enqueue(&mut q, packet(0, 30, 1500));
        assert!(cut == [("trimmed", 0, 64)] || cut == [("trimmed", 0, 64); 15], "{cut:?}");
        assert!(q.data.backlog().bytes <= 3000);
    }

    fn marking(low: &str, high: &str) -> Params {
        let threshold = |text: &str| Param::parse(&base::params::Raw::Str(text.to_owned())).unwrap();
        Params { th_min: threshold(low), th_max: threshold(high), ..plain() }
    }

    /// The packet that is sent has 9, 8, ... 0 packets behind it.
    #[test]
    fn data_is_marked_by_the_data_behind_it() {
        let mut q = port(Params { limit: Auto::Set(Limit::Unlimited), ..marking("3pkt", "5pkt") });
        assert_eq!((q.marks_above(), q.can_mark()), (Some(("th_max", Limit::Packets(5))), true));
        let capable = |n| Packet { flags: Packet::ECT, ..packet(0, n, 1500) };
        (0..10).for_each(|n| _ = enqueue(&mut q, capable(n)));
        (0..2).for_each(|n| _ = enqueue(&mut q, Packet { flags: Packet::ECT, ..ack(n) }));
        // Headers go first and are not marked, although the queue of data is long.
        let marked: Vec<bool> = std::iter::from_fn(|| q.dequeue(Time::ZERO).map(|packet| packet.has(Packet::CE))).collect();
        assert_eq!((&marked[..2], &marked[2..7]), (&[false; 2][..], &[true; 5][..]));
        // Four packets are half-way between the thresholds, and a random number decides.
        assert_eq!(marked[8..], [false; 4]);
        assert_eq!(q.marks(), 5 + u64::from(marked[7]));
        // A packet that is not ECN-capable is sent without a mark.
        (0..10).for_each(|n| _ = enqueue(&mut q, packet(0, n, 1500)));
        assert!(std::iter::from_fn(|| q.dequeue(Time::ZERO).map(|packet| packet.has(Packet::CE))).all(|marked| !marked));
    }

    /// Four packets have more than five packets behind them.
    #[test]
    fn ports_to_hosts_can_be_without_marks() {
        for (to_host, marks_to_hosts, marks) in [(true, true, 4), (true, false, 0), (false, false, 4)] {
            let params = Params { limit: Auto::Set(Limit::Unlimited), marks_to_hosts, ..marking("5pkt", "5pkt") };
            let mut q = Trim::new(&params, &Env { to_host, ..env() });
            (0..10).for_each(|n| _ = enqueue(&mut q, Packet { flags: Packet::ECT, ..packet(0, n, 1500) }));
            while q.dequeue(Time::ZERO).is_some() {}
            assert_eq!((q.marks(), q.can_mark()), (marks, marks > 0));
        }
    }

    #[test]
    fn half_way_between_the_thresholds_half_of_the_packets_are_marked() {
        let mut q = port(Params { limit: Auto::Set(Limit::Unlimited), ..marking("3KB", "9KB") });
        let mut sent = |_| {
            // Four packets of 1500 bytes remain behind each.
            while q.backlog().packets < 5 {
                enqueue(&mut q, Packet { flags: Packet::ECT, ..packet(0, 0, 1500) });
            }
            q.dequeue(Time::ZERO).is_some_and(|packet| packet.has(Packet::CE))
        };
        let marked = (0..1000).filter(|n| sent(*n)).count();
        // Within five standard deviations of a fair coin.
        assert!((420..=580).contains(&marked), "{marked} of 1000");
    }

    /// 100 us at 1 Gb/s are 12500 bytes: nine full packets: two are a fifth and eight are
    /// four fifths, rounded up.
    #[test]
    fn lengths_of_uet_htsim_follow_the_network() {
        let auto = Params { limit: Auto::Auto, ..marking("auto", "auto") };
        let of = |params: &Params| port(params.clone()).lengths().into_iter().map(|(_, limit)| limit).collect::<Vec<_>>();
        assert_eq!(of(&auto), [13_500, 27_000, 3_000, 12_000].map(Limit::Bytes));
        assert_eq!(of(&Params { trims: false, ..auto.clone() })[..2], [67_500, 135_000].map(Limit::Bytes));
        assert_eq!(check(&auto, &env()), []);
    }

    #[test]
    fn without_trimming_packets_are_dropped() {
        let mut q = port(Params { trims: false, limit: Auto::Set(Limit::Packets(2)), ..Params::defaults() });
        (0..2).for_each(|n| _ = enqueue(&mut q, packet(0, n, 1500)));
        let dropped: Vec<u64> = (2..1002)
            .map(|n| match enqueue(&mut q, packet(0, n, 1500))[..] {
                [("dropped", offset, 1500)] => offset,
                ref other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!((q.counts(), q.backlog()), (&[0, 0][..], Backlog { packets: 2, bytes: 3000 }));
        // The arriving packet or the last one of the queue.
        let arriving = (2..).zip(&dropped).filter(|(n, offset)| n == *offset).count();
        assert!((420..=580).contains(&arriving), "{arriving} of 1000");
    }

    #[test]
    fn packets_up_to_a_length_are_dropped_instead_of_trimmed() {
        let mut q = port(Params { whole: Some(Bytes(256)), limit: Auto::Set(Limit::Packets(1)), ..plain() });
        enqueue(&mut q, packet(0, 0, 1500));
        assert_eq!(enqueue(&mut q, packet(0, 1, 256)), [("dropped", 1, 256)]);
        assert_eq!(enqueue(&mut q, packet(0, 2, 257)), [("trimmed", 0, 64)]);
        // Headers are not trimmed again, nor dropped for their length.
        assert_eq!(enqueue(&mut q, ack(3)), []);
    }

    #[test]
    fn thresholds_must_fit_each_other() {
        let keys = |low, high| check(&marking(low, high), &env()).into_iter().map(|problem| problem.key).collect::<Vec<_>>();
        assert_eq!([keys("none", "none"), keys("3pkt", "3pkt"), keys("3KB", "auto")], [const { Vec::<&str>::new() }; 3]);
        assert_eq!([keys("3pkt", "none"), keys("3pkt", "auto"), keys("3pkt", "unlimited")], [["th_max"]; 3]);
        assert_eq!([keys("none", "auto"), keys("4pkt", "3pkt")], [["th_min"]; 2]);
    }

    proptest! {
        /// No data packet is lost without a record: each leaves as data or as a header, or is
        /// returned.
        #[test]
        fn every_packet_is_accounted_for(
            limit in 1u32..5, room in 1u64..6, steps in prop::collection::vec((0u8..4, prop_oneof![Just(1500u16), Just(300), Just(41)]), 1..200),
        ) {
            let headers = Auto::Set(Limit::Bytes(room * 64));
            let mut q = port(Params { limit: Auto::Set(Limit::Packets(limit)), headers, ..Params::defaults() });
            let (mut came, mut gone, mut bytes) = (0, Vec::new(), 0u64);
            for (n, (step, len)) in steps.into_iter().enumerate() {
                if step == 0 {
                    gone.extend(q.dequeue(Time::ZERO).map(|p| p.offset));
                    continue;
                }
                came += 1;
                bytes += u64::from(len);
                let mut refused = Refused::new();
                q.enqueue(&mut packet(0, n as u64, len), Time::ZERO, &mut refused);
                while let Some(refusal) = refused.pop() {
                    match refusal {
                        Refusal::Returned(back) => {
                            prop_assert_eq!(back.kind, Kind::TRIMMED);
                            gone.push(back.offset);
                        }
                        Refusal::Trimmed { packet, to } => bytes -= u64::from(packet.wire_len - to),
                        refusal => prop_assert!(false, "{refusal:?}"),
                    }
                }
            }
            let waiting = q.backlog();
            gone.extend(std::iter::from_fn(|| q.drain(Time::ZERO)).map(|p| p.offset));
            gone.sort_unstable();
            gone.dedup();
            prop_assert_eq!(gone.len(), came);
            prop_assert!(waiting.bytes <= bytes && waiting.packets <= limit + room as u32 * 64 / 41);
        }
    }

    #[test]
    fn a_header_as_long_as_a_packet_is_a_problem() {
        let of = |header| check(&Params { header: Bytes(header), ..Params::defaults() }, &env()).len();
        assert_eq!([of(64), of(1499), of(1500)], [0, 0, 1]);
    }
}

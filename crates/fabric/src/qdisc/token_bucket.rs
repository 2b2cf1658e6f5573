//! A token bucket: first in, first out; beyond a burst, packets are sent no faster than a rate,
//! even while the line is idle.
//!
//! Source: Linux, tc-tbf(8), without a peak rate; RFC 2697 section 3 for the bucket.
//!
//! | parameter | default | from |
//! |---|---|---|
//! | `rate` | half the line | none |
//! | `burst` | 15 KB | tc-tbf(8): at least the tokens of one tick; here at least one packet |
//! | `limit` | the larger of 100 packets and 2 bandwidth-delay products of the line | `fabric::lengths` |
//!
//! Assumed:
//! - A packet starts when the bucket has tokens for all its bytes on the wire; they are taken at
//!   the start.
//! - The bucket is full at the start of the run, and when a link comes up again.
//! - Tokens are counted exactly. Linux counts time in nanoseconds.

use super::{Backlog, Env, Fifo, Qdisc};
use crate::bucket::Bucket;
use crate::queue::Queue;
use crate::refused::Refused;
use base::params::{Auto, Param as _, Problem};
use base::registry::Meta;
use base::{Bytes, Hold, Limit, RateOr, Time};
use proto::Packet;

/// The description of this entry, for `list`, `explain` and `check`.
pub const META: Meta = Meta {
    summary: "first in, first out; beyond a burst, packets are sent no faster than a rate, even while the line is idle",
    source: "Linux tc-tbf(8); RFC 2697 section 3",
    queue_lengths: &["limit"],
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of a token bucket.
    pub struct Params {
        /// Rate at which tokens arrive, or that rate as a fraction of the line rate.
        rate: RateOr = "0.5", "half the line";
        /// Tokens that the bucket holds, in bytes: the largest burst.
        burst: Bytes = "15KB", "tc-tbf(8)";
        /// Most packets or bytes that may wait; the packet in transmission does not count.
        limit: Auto<Limit> = "auto", "the larger of 100 packets and 2 bandwidth-delay products";
    }
}

/// Returns the problems of parameters that depend on the network.
pub fn check(params: &Params, env: &Env) -> Vec<Problem> {
    let mut problems = super::check_limit(params.limit, env);
    let mtu = Bytes(u64::from(env.mtu_bytes));
    if params.burst < mtu {
        let message =
            format!("a bucket of `{}` never has tokens for a packet of {mtu}: no full packet would be sent", params.burst);
        problems.push(Problem { key: "burst", message, hint: format!("write at least `{mtu}`") });
    }
    if params.rate.on(env.rate).0 == 0 {
        let message =
            format!("no token ever arrives at {} of a line rate of {}: no packet would be sent", params.rate.show(), env.rate);
        problems.push(Problem {
            key: "rate",
            message,
            hint: "write a rate (`1Gbps`) or a fraction of the line rate (`0.5`)".to_owned(),
        });
    }
    problems
}

/// The queue and the bucket of a port.
#[derive(Clone)]
pub struct TokenBucket {
    limit: Limit,
    queue: Queue,
    bucket: Bucket,
}

impl TokenBucket {
    /// Returns an empty queue with a full bucket.
    pub fn new(params: &Params, env: &Env) -> Self {
        let bucket = Bucket::new(params.rate.on(env.rate), params.burst);
        TokenBucket { limit: Self::limit(params, env), queue: Queue::default(), bucket }
    }
    /// Returns the limit of the queue.
    pub fn limit(params: &Params, env: &Env) -> Limit {
        env.limit(params.limit, 100)
    }
    /// Returns `None`: the engine cannot simulate this discipline by itself.
    pub fn fifo(_params: &Params, _env: &Env) -> Option<Fifo> {
        None
    }
}

impl Qdisc for TokenBucket {
    #[inline(never)]
    fn enqueue(&mut self, packet: &mut Packet, _now: Time, refused: &mut Refused) -> bool {
        self.queue.push_within(self.limit, packet, refused)
    }
    fn is_shaped(&self) -> bool {
        true
    }
    fn not_before(&self, now: Time) -> Option<Hold> {
        let hold = self.bucket.hold(self.queue.first()?.wire_len);
        (hold.until > now).then_some(hold)
    }
    fn passes(&mut self, packet: &Packet, now: Time) -> bool {
        self.queue.is_empty() && self.bucket.try_take(packet.wire_len, now)
    }
    #[inline(never)]
    fn dequeue(&mut self, now: Time) -> Option<&mut Packet> {
        let packet = self.queue.pop()?;
        self.bucket.take(packet.wire_len, now);
        Some(packet)
    }
    fn drain(&mut self, _now: Time) -> Option<Packet> {
        self.queue.pop().copied()
    }
    fn on_link_up(&mut self, now: Time) {
        self.bucket.fill(now);
    }
    fn lengths(&self) -> Vec<(&'static str, Limit)> {
        vec![("limit", self.limit)]
    }
    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qdisc::tests::{check_passing, drain, enqueue, env, packet};
    use base::params::Params as _;
    use base::{Fraction, Rate};

    /// 0.3 Gb/s and a burst of three packets on a line of 1 Gb/s.
    fn queue() -> TokenBucket {
        let params =
            Params { rate: RateOr::Fraction(Fraction(300_000_000)), burst: Bytes(4500), limit: Auto::Set(Limit::Packets(100)) };
        assert_eq!(TokenBucket::fifo(&params, &env()), None);
        TokenBucket::new(&params, &env())
    }

    /// Serves all waiting packets on an idle line of 1 Gb/s from `now` on, and returns when each
    /// packet starts.
    fn starts(q: &mut TokenBucket, mut now: Time) -> Vec<u64> {
        let mut starts = Vec::new();
        while q.backlog().packets > 0 {
            now = q.not_before(now).map_or(now, |hold| hold.until);
            let packet = q.dequeue(now).expect("one may start");
            starts.push(now.0);
            now += env().rate.tx_time(packet.wire_len.into());
        }
        starts
    }

    /// The burst leaves at line rate. Then packet `n` starts when the burst plus 0.3 bits per ns
    /// cover the (n + 1) * 1500 * 8 bits up to its end.
    #[test]
    fn departures_have_a_closed_form() {
        let mut q = queue();
        for n in 0..20 {
            assert_eq!(enqueue(&mut q, packet(0, n, 1500)), []);
        }
        let line = |n: u64| n * 12_000_000;
        let tokens = |n: u64| (((n + 1) * 1500 - 4500) * 8 * 10_000).div_ceil(3);
        let expected: Vec<u64> = (0..20).map(|n| if n < 3 { line(n) } else { line(n).max(tokens(n)) }).collect();
        // Packet 3 could start at 36 us on the line and at 40 us with its tokens.
        assert_eq!(expected[2..5], [24_000_000, 40_000_000, 80_000_000]);
        assert_eq!(starts(&mut q, Time::ZERO), expected);
    }

    #[test]
    fn small_packets_cost_few_tokens() {
        let mut q = queue();
        for (n, len) in [(0, 4500), (1, 40), (2, 1500), (3, 40)] {
            enqueue(&mut q, packet(0, n, len));
        }
        // 40 bytes cost 1066.67 ns, less than the first packet spends on the line; 1500 bytes cost
        // 40 us.
        assert_eq!(starts(&mut q, Time::ZERO), [0, 36_000_000, 41_066_667, 53_066_667]);
    }

    #[test]
    fn asking_changes_nothing_and_an_idle_bucket_fills() {
        let mut q = queue();
        assert_eq!(q.not_before(Time(5)), None, "nothing waits");
        for n in 0..4 {
            enqueue(&mut q, packet(0, n, 1500));
        }
        (0..3).for_each(|_| assert!(q.dequeue(Time::ZERO).is_some()));
        let due = Some(Hold { until: Time(40_000_000), wire_len: 1500 });
        assert_eq!([1, 7, 39_999_999].map(|now| q.not_before(Time(now))), [due; 3]);
        assert_eq!(q.not_before(Time(40_000_000)), None);
        assert_eq!(q.dequeue(Time(40_000_000)).map(|p| p.offset), Some(3));
        // Full again after 120 us, and not fuller later.
        for n in 4..8 {
            enqueue(&mut q, packet(0, n, 1500));
        }
        assert_eq!(starts(&mut q, Time(900_000_000)), [900_000_000, 912_000_000, 924_000_000, 940_000_000]);
    }

    #[test]
    fn the_next_packet_beyond_the_limit_is_dropped() {
        let mut q = TokenBucket::new(&Params { limit: Auto::Set(Limit::Bytes(3000)), ..Params::defaults() }, &env());
        let dropped: Vec<_> = (0..3).flat_map(|n| enqueue(&mut q, packet(0, n, 1500))).collect();
        assert_eq!((dropped, drain(&mut q)), (vec![(0, 2)], vec![(0, 0), (0, 1)]));
    }

    #[test]
    fn a_link_that_comes_up_has_a_full_bucket() {
        let mut q = queue();
        for n in 0..4 {
            enqueue(&mut q, packet(0, n, 1500));
        }
        (0..3).for_each(|_| assert!(q.dequeue(Time::ZERO).is_some()));
        assert_eq!(drain(&mut q), [(0, 3)]);
        q.on_link_up(Time(1000));
        enqueue(&mut q, packet(0, 4, 4500));
        assert_eq!(q.not_before(Time(1000)), None);
    }

    #[test]
    fn what_passes_is_as_what_entered_and_left() {
        // The tokens of a packet take 40 us to arrive. Ten packets in a row come faster than that,
        // the next ten slower.
        let at = |n: u64| Time(1_000_000 * (0..n).map(|before| [25, 60][before as usize / 10 % 2]).sum::<u64>());
        let packets: Vec<(Time, Packet)> = (0..500).map(|n| (at(n), packet(0, n, 1500))).collect();
        let passed = check_passing(&queue(), &packets);
        assert!(passed[0] > 10 && passed[1] == 0, "{passed:?}");
    }

    #[test]
    fn a_bucket_below_one_packet_or_without_tokens_is_a_problem() {
        let of = |rate, burst| check(&Params { rate, burst: Bytes(burst), limit: Auto::Set(Limit::Unlimited) }, &env());
        assert_eq!(of(RateOr::Rate(Rate(1)), 1500), []);
        let [rate, burst] = [of(RateOr::Fraction(Fraction(0)), 1500), of(RateOr::Rate(Rate(1)), 1499)].map(|found| found[0].key);
        assert_eq!((rate, burst), ("rate", "burst"));
    }
}

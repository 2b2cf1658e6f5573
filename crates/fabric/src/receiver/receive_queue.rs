//! A receive queue: the host processes packets at its own rate, and packets that arrive faster
//! wait.
//!
//! Source: Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the
//! Datacenter", SIGCOMM 2020, section 3.1, for the delay between the NIC and the transport; Agarwal
//! et al., "Understanding Host Interconnect Congestion", HotNets 2022, sections 2 and 3, for NICs
//! that receive packets faster than the host processes them, and for the resulting losses.
//!
//! Model: one queue per host, first in, first out, for all classes. A packet takes `per_packet`
//! plus its bytes on the wire at `rate`. Packets wait from the arrival of their last bit until they
//! are processed. Where neighbours pause each other (`buffer = "pfc"`), a host pauses its switch by
//! the rule by which a switch pauses its neighbours, with a buffer as large as that of a switch.
//!
//! | parameter | default | from |
//! |---|---|---|
//! | `rate` | that of the NIC | flowloom: the host is as fast as its NIC |
//! | `per_packet` | 0 s | flowloom: only bytes take time |
//! | `limit` | unlimited | flowloom: nothing is lost |
//! | `hosts` | all | flowloom |
//!
//! Assumed: a packet fits if the queue does not exceed the limit with it; the packet in processing
//! counts.

use super::{Env, Receiver};
use crate::hosts;
use crate::queue::Backlog;
use base::params::{Auto, Problem};
use base::registry::{Counter, Meta};
use base::{Dur, HostId, Limit, Rate, Time};
use proto::Packet;

/// The description of this entry, for `list`, `explain` and `check`.
pub const META: Meta = Meta {
    summary: "a receive queue: a host processes arriving packets at its own rate",
    source: "Swift, SIGCOMM 2020, section 3.1; Agarwal et al., HotNets 2022",
    counters: &[
        Counter { name: "received", unit: "", about: "packets that the host has processed" },
        Counter { name: "dropped", unit: "", about: "packets dropped because the receive queue was full" },
        Counter { name: "max_bytes", unit: "bytes", about: "largest number of bytes in the receive queue" },
        Counter { name: "waited_ps", unit: "ps", about: "time in the receive queue, including processing, summed over packets" },
    ],
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of a receive queue.
    pub struct Params {
        /// Rate at which the bytes of packets are processed.
        rate: Auto<Rate> = "auto", "flowloom: the rate of the host's NICs together";
        /// Additional processing time of each packet.
        per_packet: Dur = "0s", "flowloom: only bytes take time";
        /// Most packets or bytes in the queue, including the packet in processing.
        limit: Limit = "unlimited", "flowloom: nothing is lost";
        /// The hosts that have a receive queue: names and ranges, like `h0, h4..h7`, or `all`.
        hosts: String = "all", "flowloom";
    }
}

/// Returns the problems of parameters that depend on the network.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    if let Err(message) = hosts::set(env.net, &params.hosts) {
        problems.push(Problem {
            key: "hosts",
            message,
            hint: "write names and ranges of hosts, like `h0, h4..h7`, or `all`".to_owned(),
        });
    }
    let mtu = u64::from(env.mtu_bytes);
    if params.limit.exceeded_by(1, mtu) {
        let message =
            format!("`{}` is less than a full packet of {mtu} bytes: the host would drop every full packet", params.limit);
        problems.push(Problem { key: "limit", message, hint: format!("write at least `1pkt` or `{mtu}B`") });
    }
    problems
}

/// The receive queue of one host.
#[derive(Debug)]
pub struct ReceiveQueue {
    rate: Rate,
    per_packet: Dur,
    limit: Limit,
    /// Packets and bytes in the queue.
    backlog: Backlog,
    /// When all queued packets will have been processed.
    free_at: Time,
    received: u64,
    dropped: u64,
    max_bytes: u64,
    /// Integral of the number of queued packets over time up to `since`, in ps.
    waited_ps: u128,
    since: Time,
}

impl ReceiveQueue {
    /// Returns the receive queue of a host.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let nics = env.net.out_links(env.net.hosts()[env.host.index()]).map(|nic| env.net.link(nic).rate.0);
        ReceiveQueue {
            rate: match params.rate {
                Auto::Set(rate) => rate,
                Auto::Auto => Rate(nics.sum()),
            },
            per_packet: params.per_packet,
            limit: params.limit,
            backlog: Backlog::default(),
            free_at: Time::ZERO,
            received: 0,
            dropped: 0,
            max_bytes: 0,
            waited_ps: 0,
            since: Time::ZERO,
        }
    }
    /// Returns the time that packets have waited up to `now`, in ps, summed over packets.
    fn waited_ps(&self, now: Time) -> u128 {
        self.waited_ps + u128::from(self.backlog.packets) * u128::from((now - self.since).0)
    }
    /// Changes the queue at `now`.
    fn change(&mut self, now: Time, change: impl FnOnce(&mut Backlog)) {
        (self.waited_ps, self.since) = (self.waited_ps(now), now);
        change(&mut self.backlog);
    }
    /// Returns the hosts that have a receive queue.
    pub fn hosts(params: &Params, env: &Env<'_>) -> Vec<HostId> {
        hosts::set(env.net, &params.hosts).unwrap_or_default()
    }
}

impl Receiver for ReceiveQueue {
    fn admit(&mut self, packet: &Packet, now: Time) -> Option<Time> {
        if !self.backlog.fits(packet, self.limit) {
            self.dropped += 1;
            return None;
        }
        self.change(now, |backlog| backlog.add(packet));
        self.max_bytes = self.max_bytes.max(self.backlog.bytes);
        // A sum beyond all times is never reached.
        self.free_at = self.free_at.max(now).after(self.per_packet).after(self.rate.tx_time(packet.wire_len.into()));
        Some(self.free_at)
    }
    fn on_taken(&mut self, packet: &Packet, now: Time) {
        self.change(now, |backlog| backlog.remove(packet));
        self.received += 1;
    }
    fn counts(&self, now: Time) -> Vec<u64> {
        // The sum over millions of packets of a run of days does not fit into 64 bits.
        let waited_ps = u64::try_from(self.waited_ps(now)).unwrap_or(u64::MAX);
        vec![self.received, self.dropped, self.max_bytes, waited_ps]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::single_tree;
    use base::FlowId;
    use base::params::Params as _;

    fn packet(payload: u16) -> Packet {
        Packet::data(FlowId(0), 0, payload, 40)
    }

    fn with<R>(params: &Params, act: impl FnOnce(&Env<'_>, &Params) -> R) -> R {
        let net = single_tree(2, 3);
        act(&Env { net: &net, host: HostId(1), mtu_bytes: 1500 }, params)
    }

    fn us(us: u64) -> Time {
        Time::ZERO + Dur::from_us(us)
    }

    /// 1000 bytes at 1 Gb/s take 8 us, plus 2 us for each packet.
    #[test]
    fn packets_are_taken_in_one_after_the_other() {
        let params = Params { per_packet: Dur::from_us(2), ..Params::defaults() };
        let mut queue = with(&params, |env, params| ReceiveQueue::new(params, env));
        assert_eq!(queue.rate, Rate::from_gbps(1), "that of the NIC");
        let packet = packet(960);
        assert_eq!([0, 1, 25].map(|at| queue.admit(&packet, us(at))), [10, 20, 35].map(|at| Some(us(at))));
        // The first two packets wait until 25 us, the second since 1 us.
        assert_eq!(queue.counts(us(25)), [0, 0, 3000, 49_000_000]);
        [25, 25, 35].into_iter().for_each(|at| queue.on_taken(&packet, us(at)));
        assert_eq!(queue.admit(&packet, us(100)), Some(us(110)), "idle before");
        // The third packet has waited for 10 us, and the fourth for 4.
        assert_eq!(queue.counts(us(104)), [3, 0, 3000, 63_000_000]);
    }

    #[test]
    fn what_exceeds_the_limit_is_lost() {
        let params = Params { limit: Limit::Bytes(2000), rate: Auto::Set(Rate::from_gbps(8)), ..Params::defaults() };
        let mut queue = with(&params, |env, params| ReceiveQueue::new(params, env));
        let packet = packet(960);
        assert_eq!([0, 0, 0].map(|at| queue.admit(&packet, us(at))), [Some(us(1)), Some(us(2)), None]);
        queue.on_taken(&packet, us(1));
        assert_eq!((queue.admit(&packet, us(1)), queue.counts(us(1))[1]), (Some(us(3)), 1));
    }

    /// Sums that do not fit: a packet is never processed, and the time of its wait is the largest number.
    #[test]
    fn long_times_do_not_overflow() {
        let params = Params { per_packet: base::units::LARGEST.0, ..Params::defaults() };
        let mut queue = with(&params, |env, params| ReceiveQueue::new(params, env));
        let all: Vec<_> = (0..100).map(|_| queue.admit(&packet(960), us(1))).collect();
        assert_eq!(all[0], Some(us(9) + base::units::LARGEST.0));
        assert_eq!((all[99], queue.counts(Time(u64::MAX / 50))[3]), (Some(Time::MAX), u64::MAX));
    }

    #[test]
    fn hosts_are_named() {
        let at = |hosts: &str| {
            with(&Params { hosts: hosts.to_owned(), ..Params::defaults() }, |env, params| ReceiveQueue::hosts(params, env))
        };
        assert_eq!((at("all").len(), at("h1, h3..h4")), (6, vec![HostId(1), HostId(3), HostId(4)]));
        let problems =
            |params: Params| with(&params, |env, params| check(params, env).into_iter().map(|p| p.key).collect::<Vec<_>>());
        assert_eq!(problems(Params::defaults()), Vec::<&str>::new());
        assert_eq!(
            problems(Params { hosts: "h9".to_owned(), limit: Limit::Bytes(1499), ..Params::defaults() }),
            ["hosts", "limit"]
        );
    }
}

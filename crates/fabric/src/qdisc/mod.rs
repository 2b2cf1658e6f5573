//! Room: queue disciplines. Each egress port has one state machine, which holds the packets that
//! wait for transmission.
//!
//! Ports are served lazily: the decision about a start of service at `now` may be made later, but
//! only with the packets that had arrived by `now`. Limits count waiting packets and exclude the
//! packet in transmission. A packet that finds its port idle is sent at once without passing
//! through the discipline. A packet that waits with no other packet in the queue need not pass
//! through it either. A discipline that must see such packets says so by
//! [`watches`](Qdisc::watches).

pub use crate::queue::Backlog;
use crate::refused::Refused;
use crate::threshold::Threshold;
use base::params::{Auto, Problem};
use base::{Bytes, Dur, FlowId, Hold, Limit, LinkId, Rate, Time};
use proto::{Kind, Packet};

/// A queue discipline: the state machine of one port.
pub trait Qdisc: Clone {
    /// Enqueues a packet, or part of it, and returns whether the packet stays. Puts everything that
    /// is refused because of it into `refused`; this may be the packet itself.
    fn enqueue(&mut self, packet: &mut Packet, now: Time, refused: &mut Refused) -> bool;
    /// Dequeues the packet whose service starts at `now`. The caller may rewrite the packet before
    /// it sends it. `None`: the queue is empty.
    fn dequeue(&mut self, now: Time) -> Option<&mut Packet>;
    /// Returns the number of waiting packets and bytes.
    fn backlog(&self) -> Backlog;
    /// Returns the class of a packet. Only classes below 8 can be paused. A discipline without
    /// classes has only class 0.
    fn class(&self, _packet: &Packet) -> u8 {
        0
    }
    /// Returns whether a packet waits whose class is not in `held`, a bit mask of paused classes.
    fn has_except(&self, held: u8) -> bool {
        held & 1 == 0 && self.backlog().packets > 0
    }
    /// Dequeues the packet whose service starts at `now`, among those whose class is not in `held`.
    fn dequeue_except(&mut self, held: u8, now: Time) -> Option<&mut Packet> {
        if held & 1 == 0 { self.dequeue(now) } else { None }
    }
    /// Returns whether the discipline may hold packets back while the transmitter is idle.
    fn is_shaped(&self) -> bool {
        false
    }
    /// Returns the time before which no packet may be sent, if it is later than `now`; `Time::MAX`:
    /// not before another packet arrives. `None`: [`Qdisc::dequeue`] returns a packet. Called for a
    /// shaped discipline with waiting packets when the transmitter is idle at `now`, again at the
    /// returned time, and after each arrival, which may only bring that time forward.
    fn not_before(&self, _now: Time) -> Option<Hold> {
        None
    }
    /// Removes a packet that will not be served because its link has failed or the run is over. A
    /// shaped discipline must define it, since its packets need not be due.
    fn drain(&mut self, now: Time) -> Option<Packet> {
        self.dequeue(now).copied()
    }
    /// Returns the total waiting time so far of the packets that wait at `now`, in byte times 1024
    /// ps, the unit of the engine's `queue_area`. Works on a copy, so it is meant for a few
    /// readings in a run.
    fn waited(&self, now: Time) -> u64 {
        let mut copy = self.clone();
        let all = std::iter::from_fn(|| copy.drain(now));
        all.map(|packet| u64::from(packet.wire_len) * ((now - packet.arrival).0 >> 10)).sum()
    }
    /// Called when the link comes up again. The queue is empty; a shaped discipline starts from its
    /// initial state.
    fn on_link_up(&mut self, _now: Time) {}
    /// Returns whether the discipline must see every packet: packets that wait with no other packet
    /// in the queue (a discipline that does not watch must return such a packet unchanged) and,
    /// through [`Qdisc::passes`], packets that find the port idle.
    fn watches(&self) -> bool {
        self.threshold().is_some_and(Threshold::watches)
    }
    /// Returns whether a packet that arrives at `now` starts service at once, where the transmitter
    /// is idle and no waiting packet may be sent. Called for disciplines that
    /// [watch](Qdisc::watches), which always return `true`, and for shaped ones: `true` has the
    /// effect of enqueueing and dequeueing the packet; after `false` the packet is enqueued.
    fn passes(&mut self, _packet: &Packet, _now: Time) -> bool {
        !self.is_shaped()
    }
    /// Returns the marking threshold, if the discipline marks by one. The four methods about marks
    /// are derived from it.
    fn threshold(&self) -> Option<&Threshold> {
        None
    }
    /// Returns the number of packets marked so far.
    fn marks(&self) -> u64 {
        self.threshold().map_or(0, Threshold::marks)
    }
    /// Returns whether the discipline can ever mark a packet, for the checks of a scenario.
    fn can_mark(&self) -> bool {
        self.marks_above().is_some()
    }
    /// Returns the limits and thresholds in use, by parameter, with `auto` resolved.
    fn lengths(&self) -> Vec<(&'static str, Limit)> {
        Vec::new()
    }
    /// Returns the parameter that sets when packets are marked, and the queue length above which
    /// every ECN-capable packet is marked. `None`: no packet is ever marked.
    fn marks_above(&self) -> Option<(&'static str, Limit)> {
        let threshold = self.threshold().filter(|threshold| threshold.can_mark())?;
        Some(("mark", threshold.mark()))
    }
    /// Returns the values of the counters, in the order of the [counters](base::registry::Meta) of
    /// its META.
    fn counts(&self) -> &[u64] {
        &[]
    }
}

/// The environment of a port's queue discipline, known from the configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Env {
    /// Line rate.
    pub rate: Rate,
    /// Largest packet on the wire, in bytes.
    pub mtu_bytes: u16,
    /// Longest unloaded round trip of the network: a full packet out, a bare header back.
    pub max_rtt: Dur,
    /// Whether the port is a host's NIC. The queue of a NIC has no limit unless the scenario sets
    /// one.
    pub host_port: bool,
    /// Whether the port leads to a host.
    pub to_host: bool,
    /// The port. Its stream of random numbers is named by the seed and this id.
    pub link: LinkId,
    /// Seed of the run.
    pub seed: u64,
}

base::choice! {
    /// When a port reads the length of its queue.
    pub enum At {
        /// When a packet arrives.
        Enqueue = "enqueue",
        /// When its transmission starts.
        Dequeue = "dequeue",
    }
}

/// Returns the problem of a `limit` that never admits a full packet.
fn check_limit(limit: Auto<Limit>, env: &Env) -> Vec<Problem> {
    let Auto::Set(limit) = limit else { return Vec::new() };
    let mtu = Bytes(u64::from(env.mtu_bytes));
    let too_small = match limit {
        Limit::Packets(n) => n == 0,
        Limit::Bytes(n) => n < mtu.0,
        Limit::Unlimited => false,
    };
    let problem = || Problem {
        key: "limit",
        message: format!("`{limit}` is less than a full packet of {mtu}: every full packet that has to wait would be dropped"),
        hint: format!("write at least `1pkt` or `{mtu}`"),
    };
    too_small.then(problem).into_iter().collect()
}

/// Returns whether two disciplines divide packets into the same classes.
pub fn same_classes(one: &AnyQdisc, other: &AnyQdisc) -> bool {
    let kinds = [Kind::DATA, Kind::ACK, Kind::CREDIT, Kind(Kind::OWN), Kind(Kind::POLICY), Kind(Kind::ROUTER)];
    let packet = |flow, kind, prio| Packet { prio, ..Packet::new(FlowId(flow), kind, 0) };
    let by_priority = kinds.into_iter().flat_map(|kind| (0..64).map(move |prio| packet(0, kind, prio)));
    let by_flow = (0..64).map(|flow| packet(flow, Kind::DATA, 0));
    by_priority.chain(by_flow).all(|packet| one.class(&packet) == other.class(&packet))
}

/// A first-in first-out queue whose occupancy the engine's link record computes by itself, so that the discipline has no code on
/// the hot path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fifo {
    /// Arriving packets are dropped if they would exceed this limit.
    pub limit: Limit,
    /// Admitted packets are marked if the queue, with them, exceeds this threshold.
    pub mark: Limit,
}

pub mod credit;
pub mod droptail;
pub mod ecn_threshold;
pub mod pfabric;
pub mod pifo;
pub mod plugin;
pub mod red_ecn;
pub mod strict;
pub mod token_bucket;
pub mod trim;

base::registry! {
    room AnyQdisc: Qdisc, env Env, derive Clone;
    named "qdisc", "qdiscs", "queue discipline": "how ports queue and drop";
    entries { credit: Credit, droptail: DropTail, ecn_threshold: EcnThreshold, red_ecn: RedEcn, strict: Strict, pfabric: Pfabric, pifo: Pifo, token_bucket: TokenBucket, trim: Trim, plugin: Plugin }
    methods {
        fn enqueue(&mut self, packet: &mut Packet, now: Time, refused: &mut Refused) -> bool;
        fn dequeue(&mut self, now: Time) -> Option<&mut Packet>;
        fn is_shaped(&self) -> bool;
        fn not_before(&self, now: Time) -> Option<Hold>;
        fn class(&self, packet: &Packet) -> u8;
        fn has_except(&self, held: u8) -> bool;
        fn dequeue_except(&mut self, held: u8, now: Time) -> Option<&mut Packet>;
        fn drain(&mut self, now: Time) -> Option<Packet>;
        fn on_link_up(&mut self, now: Time);
        fn backlog(&self) -> Backlog;
        fn watches(&self) -> bool;
        fn passes(&mut self, packet: &Packet, now: Time) -> bool;
        fn marks(&self) -> u64;
        fn can_mark(&self) -> bool;
        fn waited(&self, now: Time) -> u64;
        fn lengths(&self) -> Vec<(&'static str, Limit)>;
        fn marks_above(&self) -> Option<(&'static str, Limit)>;
        fn counts(&self) -> &[u64];
    }
    statics {
        /// The FIFO that the engine can simulate by itself instead of this discipline, if there is
        /// one.
        fn fifo -> Option<Fifo>;
        /// The limit of the queue.
        fn limit -> Limit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::FlowId;
    use base::params::{Params, Reader};
    use proto::Kind;

    /// The environment of a 1 Gb/s switch port.
    pub(super) fn env() -> Env {
        Env {
            rate: Rate::from_gbps(1),
            mtu_bytes: 1500,
            max_rtt: Dur::from_us(100),
            host_port: false,
            to_host: false,
            link: LinkId(0),
            seed: 1,
        }
    }

    /// A packet of `flow`, identified by its offset.
    pub(super) fn packet(flow: u32, offset: u64, wire_len: u16) -> Packet {
        Packet { offset, ..Packet::new(FlowId(flow), Kind::DATA, wire_len) }
    }

    /// (flow, offset) of each packet.
    pub(super) fn names(packets: &[Packet]) -> Vec<(u32, u64)> {
        packets.iter().map(|p| (p.flow.0, p.offset)).collect()
    }

    /// Enqueues a packet and returns the dropped packets.
    pub(super) fn enqueue(queue: &mut impl Qdisc, packet: Packet) -> Vec<(u32, u64)> {
        let mut refused = Refused::new();
        let stays = queue.enqueue(&mut { packet }, Time::ZERO, &mut refused);
        let dropped: Vec<Packet> = refused.dropped().copied().collect();
        assert_eq!(stays, !dropped.contains(&packet));
        names(&dropped)
    }

    /// Removes all waiting packets.
    pub(super) fn drain(queue: &mut impl Qdisc) -> Vec<(u32, u64)> {
        let all: Vec<Packet> = std::iter::from_fn(|| queue.drain(Time::ZERO)).collect();
        assert_eq!(queue.backlog(), Backlog::default());
        names(&all)
    }

    /// Serves all packets that may start now, and returns their offsets.
    fn serve(queue: &mut impl Qdisc, now: Time) -> Vec<u64> {
        let mut offsets = Vec::new();
        while queue.backlog().packets > 0 && queue.not_before(now).is_none() {
            offsets.extend(queue.dequeue(now).map(|packet| packet.offset));
        }
        offsets
    }

    /// Sends packets at these times to a shaped discipline whose transmitter is always idle, and
    /// checks that `passes` changes nothing. One copy is first asked whether a packet passes and
    /// enqueues only those that do not; the other copy enqueues all. Returns how many packets
    /// passed with an empty queue, and how many passed while others were held back.
    pub(super) fn check_passing(queue: &impl Qdisc, packets: &[(Time, Packet)]) -> [usize; 2] {
        let [mut asked, mut entered] = [queue.clone(), queue.clone()];
        let mut passed = [0; 2];
        for (now, packet) in packets {
            assert_eq!(serve(&mut asked, *now), serve(&mut entered, *now));
            let held = usize::from(asked.backlog().packets > 0);
            let mut refused = Refused::new();
            if asked.passes(packet, *now) {
                passed[held] += 1;
                assert!(entered.enqueue(&mut { *packet }, *now, &mut refused), "{packet:?} at {now}");
                assert_eq!(serve(&mut entered, *now), [packet.offset], "{packet:?} at {now}");
            } else {
                let stay = [&mut asked, &mut entered].map(|queue| queue.enqueue(&mut { *packet }, *now, &mut refused));
                assert_eq!(stay[0], stay[1]);
                assert_eq!(serve(&mut entered, *now), [], "{packet:?} at {now}");
            }
            assert_eq!((asked.backlog(), asked.counts()), (entered.backlog(), entered.counts()));
            if asked.backlog().packets > 0 {
                assert_eq!(asked.not_before(*now), entered.not_before(*now));
            }
        }
        passed
    }

    struct LimitOf(&'static str);
    impl Reader for LimitOf {
        fn get(&mut self, key: &'static str) -> Option<base::params::Raw> {
            (key == "limit").then(|| base::params::Raw::Str(self.0.to_owned()))
        }
        fn fail(&mut self, key: &'static str, message: String) {
            panic!("{key}: {message}");
        }
    }

    #[test]
    fn a_limit_below_one_packet_is_a_problem() {
        for (text, problems) in [("0pkt", 1), ("1pkt", 0), ("1499B", 1), ("1500B", 0), ("unlimited", 0)] {
            let all = [
                credit::check(&credit::Params::read(&mut LimitOf(text)), &env()),
                droptail::check(&droptail::Params::read(&mut LimitOf(text)), &env()),
                ecn_threshold::check(&ecn_threshold::Params::read(&mut LimitOf(text)), &env()),
                red_ecn::check(&red_ecn::Params::read(&mut LimitOf(text)), &env()),
                strict::check(&strict::Params::read(&mut LimitOf(text)), &env()),
                pfabric::check(&pfabric::Params::read(&mut LimitOf(text)), &env()),
                pifo::check(&pifo::Params::read(&mut LimitOf(text)), &env()),
                token_bucket::check(&token_bucket::Params::read(&mut LimitOf(text)), &env()),
                trim::check(&trim::Params::read(&mut LimitOf(text)), &env()),
            ];
            for found in all {
                assert_eq!(found.len(), problems, "{text}: {found:?}");
            }
        }
        let message = &droptail::check(&droptail::Params::read(&mut LimitOf("1499B")), &env())[0].message;
        assert_eq!(message, "`1499B` is less than a full packet of 1500B: every full packet that has to wait would be dropped");
    }
}

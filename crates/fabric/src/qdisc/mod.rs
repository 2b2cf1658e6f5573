//! Room: queue disciplines. One machine per egress port holds the packets that wait for the wire.
//!
//! The port serves lazily: decisions about a start of service at `now` are made later, but with exactly the packets that had
//! arrived by then. Limits count waiting packets and exclude the one in transmission. A packet that finds its port idle starts at
//! once and never passes through its discipline; nor need one that waits alone until it starts. A discipline to which that matters
//! [watches](Qdisc::watches).

pub use crate::queue::Backlog;
use crate::refused::Refused;
use crate::threshold::Threshold;
use base::params::{Auto, Problem};
use base::{Bytes, Dur, Hold, Limit, LinkId, Rate, Time};
use proto::Packet;

/// A queue discipline: the machine of one port.
pub trait Qdisc: Clone {
    /// Takes a packet in, or part of it, and says whether it stays. All that is refused for it, which may be itself, is put into `refused`.
    fn enqueue(&mut self, packet: &mut Packet, now: Time, refused: &mut Refused) -> bool;
    /// Takes out the packet whose service starts at `now`, and lends it, to be rewritten and sent. `None`: nothing waits.
    fn dequeue(&mut self, now: Time) -> Option<&mut Packet>;
    /// What waits.
    fn backlog(&self) -> Backlog;
    /// The class of a packet, by which it may be held back: below 8 for one that may be. A discipline without classes has class 0 alone.
    fn class(&self, _packet: &Packet) -> u8 {
        0
    }
    /// Whether a packet waits whose class is none of `held`, a bit for each class.
    fn has_except(&self, held: u8) -> bool {
        held & 1 == 0 && self.backlog().packets > 0
    }
    /// Takes out the packet whose service starts at `now`, of those whose class is none of `held`.
    fn dequeue_except(&mut self, held: u8, now: Time) -> Option<&mut Packet> {
        if held & 1 == 0 { self.dequeue(now) } else { None }
    }
    /// Whether it may keep packets waiting although the transmitter is idle.
    fn is_shaped(&self) -> bool {
        false
    }
    /// Asked of a shaped discipline in which packets wait, when the transmitter is idle at `now`: the time before which none may be sent, if
    /// that is later; `Time::MAX`: none before another packet has come. The discipline is asked again at that time, and after each packet that
    /// comes, which may only bring it forward. `None`: [`Qdisc::dequeue`] has a packet.
    fn not_before(&self, _now: Time) -> Option<Hold> {
        None
    }
    /// Takes out a packet that will not be served, since its link has died or the run is over. A shaped discipline, whose packets need not be
    /// due, must define it.
    fn drain(&mut self, now: Time) -> Option<Packet> {
        self.dequeue(now).copied()
    }
    /// What the packets that wait at `now` have waited so far, in byte times 1024 ps, the unit of the engine's `queue_area`. Works on a copy, for readings
    /// at a few times of a run.
    fn waited(&self, now: Time) -> u64 {
        let mut copy = self.clone();
        let all = std::iter::from_fn(|| copy.drain(now));
        all.map(|packet| u64::from(packet.wire_len) * ((now - packet.arrival).0 >> 10)).sum()
    }
    /// The link comes up again. Nothing waits; a shaped discipline starts as new.
    fn on_link_up(&mut self, _now: Time) {}
    /// Whether it must see every packet: those that wait alone until they start, which it would otherwise have to give back as they came,
    /// and, by [`Qdisc::passes`], those that find the port idle.
    fn watches(&self) -> bool {
        self.threshold().is_some_and(Threshold::watches)
    }
    /// A packet finds the transmitter idle at `now`, and nothing waits that may be sent now. Says whether its service starts at once. Asked of
    /// those that [watch](Qdisc::watches), where it always does, and of shaped ones: there `true` is as if the packet had entered and been taken
    /// out, and `false` has it enter.
    fn passes(&mut self, _packet: &Packet, _now: Time) -> bool {
        !self.is_shaped()
    }
    /// Its marking threshold, if it marks by one. The four methods on marks follow from it.
    fn threshold(&self) -> Option<&Threshold> {
        None
    }
    /// Packets marked so far.
    fn marks(&self) -> u64 {
        self.threshold().map_or(0, Threshold::marks)
    }
    /// Whether it ever marks a packet, for the checks of a scenario.
    fn can_mark(&self) -> bool {
        self.marks_above().is_some()
    }
    /// Limits and thresholds that the queue works with, by parameter: what `auto` has become.
    fn lengths(&self) -> Vec<(&'static str, Limit)> {
        Vec::new()
    }
    /// The parameter that sets when it marks, and the length of the queue above which it marks every packet that can be marked; `None`: never.
    fn marks_above(&self) -> Option<(&'static str, Limit)> {
        let threshold = self.threshold().filter(|threshold| threshold.can_mark())?;
        Some(("mark", threshold.mark()))
    }
    /// What it has counted, in the order of the [counters](base::registry::Meta) of its META.
    fn counts(&self) -> &[u64] {
        &[]
    }
}

/// What a discipline knows of its port from configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Env {
    /// Line rate.
    pub rate: Rate,
    /// Largest packet on the wire.
    pub mtu_bytes: u16,
    /// Longest unloaded round trip of the network: a full packet out, a bare header back.
    pub max_rtt: Dur,
    /// The port is a host's NIC: its queue has no limit of its own unless the scenario gives one.
    pub host_port: bool,
    /// The port: with the seed it names the port's stream of random numbers.
    pub link: LinkId,
    /// Seed of the run.
    pub seed: u64,
}

base::choice! {
    /// When a port reads how much waits.
    pub enum At {
        /// When a packet arrives.
        Enqueue = "enqueue",
        /// When its transmission starts.
        Dequeue = "dequeue",
    }
}

/// The problem with a `limit` that never admits a full packet, if it is one.
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
        message: format!("`{limit}` holds no packet of {mtu}: none could ever wait"),
        hint: format!("write at least `1pkt` or `{mtu}`"),
    };
    too_small.then(problem).into_iter().collect()
}

/// A first-in first-out queue whose occupancy the engine's link record computes by itself, so that the discipline has no code on
/// the hot path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fifo {
    /// Arriving packets are dropped when they would exceed this.
    pub limit: Limit,
    /// Those let in are marked when more than this waits with them.
    pub mark: Limit,
}

pub mod credit;
pub mod droptail;
pub mod ecn_threshold;
pub mod pfabric;
pub mod pifo;
pub mod red_ecn;
pub mod strict;
pub mod token_bucket;
pub mod trim;

base::registry! {
    room AnyQdisc: Qdisc, env Env, derive Clone;
    named "qdisc", "qdiscs", "queue discipline": "how ports queue and drop";
    entries { credit: Credit, droptail: DropTail, ecn_threshold: EcnThreshold, red_ecn: RedEcn, strict: Strict, pfabric: Pfabric, pifo: Pifo, token_bucket: TokenBucket, trim: Trim }
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
        fn lengths(&self) -> Vec<(&'static str, Limit)>;
        fn marks_above(&self) -> Option<(&'static str, Limit)>;
        fn counts(&self) -> &[u64];
    }
    statics {
        /// What the engine can do by itself, if it can.
        fn fifo -> Option<Fifo>;
        /// What may wait.
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
        Env { rate: Rate::from_gbps(1), mtu_bytes: 1500, max_rtt: Dur::from_us(100), host_port: false, link: LinkId(0), seed: 1 }
    }

    /// A packet of `flow`, told apart by its offset.
    pub(super) fn packet(flow: u32, offset: u64, wire_len: u16) -> Packet {
        Packet { offset, ..Packet::new(FlowId(flow), Kind::DATA, wire_len) }
    }

    /// (flow, offset) of each.
    pub(super) fn names(packets: &[Packet]) -> Vec<(u32, u64)> {
        packets.iter().map(|p| (p.flow.0, p.offset)).collect()
    }

    /// Puts a packet in and returns which packets are dropped.
    pub(super) fn enqueue(queue: &mut impl Qdisc, packet: Packet) -> Vec<(u32, u64)> {
        let mut refused = Refused::new();
        let stays = queue.enqueue(&mut { packet }, Time::ZERO, &mut refused);
        let dropped: Vec<Packet> = refused.dropped().copied().collect();
        assert_eq!(stays, !dropped.contains(&packet));
        names(&dropped)
    }

    /// Takes out all that waits.
    pub(super) fn drain(queue: &mut impl Qdisc) -> Vec<(u32, u64)> {
        let all: Vec<Packet> = std::iter::from_fn(|| queue.drain(Time::ZERO)).collect();
        assert_eq!(queue.backlog(), Backlog::default());
        names(&all)
    }

    /// Takes out all that may start now, and returns the offsets.
    fn serve(queue: &mut impl Qdisc, now: Time) -> Vec<u64> {
        let mut offsets = Vec::new();
        while queue.backlog().packets > 0 && queue.not_before(now).is_none() {
            offsets.extend(queue.dequeue(now).map(|packet| packet.offset));
        }
        offsets
    }

    /// Sends packets, at these times, to a shaped discipline of a transmitter that is always idle. One copy is asked whether they pass and takes
    /// in those that do not, the other takes all in; both serve what is due: they do the same. Returns how many passed where nothing waited, and
    /// how many where others were held back.
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
        assert_eq!(message, "`1499B` holds no packet of 1500B: none could ever wait");
    }
}

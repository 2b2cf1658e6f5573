//! DRILL: each packet takes the least loaded of a few random output ports and of those that were
//! least loaded at the last decision.
//!
//! Source: Ghorbani et al., "DRILL: Micro Load Balancing for Low-latency Data Center Networks", SIGCOMM 2017, section 3: DRILL(d, m).
//! The ns-3 program of Hermes (`ipv4-drill-routing.cc`; Zhang et al., SIGCOMM 2017) contains it.
//!
//! For every packet a switch draws `samples` (d) of the packet's next hops at random, adds the
//! `memory` (m) ports that were least loaded when it last decided, and sends the packet to the port
//! with the least load among them. The least loaded ports among those examined are remembered for
//! the next packet. Only queues of the switch itself are read.
//!
//! Model:
//! - Packets of a flow overtake each other where the queues of paths differ. The paper's receivers
//!   restore the order in a shim layer below TCP, which is left out: use a transport that tolerates
//!   reordering (`ndp`, `homa`, `phost`), or expect that TCP takes some reordering for loss.
//! - Asymmetry (section 3.4) is left out: the paper divides the paths between two leaves into
//!   components of paths that share their queues with the same traffic, hashes flows onto components
//!   by capacity, and balances packets within a component. Here packets are balanced over all
//!   shortest paths, so a flow that is sent over paths of unequal rates or loads is reordered and
//!   may be slowed down by its slowest path.
//! - A switch has one forwarding engine. The paper's switches have several, each with its own memory.
//! - A queue contains a packet from the moment at which the switch decides. In the paper's switches
//!   it is visible only once it is enqueued completely, so engines may choose a port together.
//! - A port whose link has failed looks empty, and attracts packets, until the switch knows of the
//!   failure.
//!
//! | parameter | default | from |
//! |---|---|---|
//! | `samples`, `memory` | 2, 1 | DRILL(2, 1), the paper's recommendation |
//!
//! Assumed:
//! - The load of a port is the number of bytes that wait, as in the program of Hermes. A port that
//!   transmits has a higher load than an idle port with the same number of waiting bytes.
//! - Sampled ports are distinct. If there are fewer next hops than `samples`, all are sampled.
//! - Ties are broken at random, each port with equal probability.
//! - Each switch has one memory per set of next hops, as if it were stored in the route entry; sets
//!   that begin with the same port share it. Remembered ports that are no next hops of the packet
//!   are ignored. The loads of remembered ports are read anew.
//! - A host with several NICs chooses the NIC of each packet in the same way.
//! - ACKs are balanced like data.

use super::{Decides, Duties, Env, PortAccess, PortLoad, Router, SwitchCx};
use crate::paths::FiveTuple;
use base::params::Problem;
use base::registry::Meta;
use base::{LinkId, NodeId, Rng};
use proto::Packet;

/// The description of this entry, for `list`, `explain` and `check`.
pub const META: Meta = Meta {
    summary: "DRILL: each packet takes the least loaded of a few random ports and the last best ones",
    source: "Ghorbani et al., SIGCOMM 2017",
    packets_only: "it compares the queues of ports, which only packets fill",
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of DRILL.
    pub struct Params {
        /// Ports that are sampled at random for each packet (d).
        samples: u16 = "2" in 1..=1024, "section 3: DRILL(2, 1)";
        /// Least loaded ports that are remembered from the last decision (m).
        memory: u16 = "1" in 0..=64, "section 3: DRILL(2, 1)";
    }
}

/// Returns the problems of parameters that depend on the network.
pub fn check(_params: &Params, _env: &Env<'_>) -> Vec<Problem> {
    Vec::new()
}

/// The state of all switches.
pub struct Drill {
    samples: usize,
    memory: usize,
    /// The random number generator of each node.
    rngs: Vec<Rng>,
    /// `memory` ports for each set of next hops, by the set's first link, least loaded first.
    remembered: Vec<LinkId>,
    /// The ports examined for the current packet: a buffer.
    examined: Vec<Examined>,
}

/// A port that is examined.
#[derive(Clone, Copy)]
struct Examined {
    /// Its index among the candidates.
    index: usize,
    load: PortLoad,
}

/// An unused place of a memory.
const NOTHING: LinkId = LinkId(u32::MAX);

impl Drill {
    /// Returns the router of a network.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let (samples, memory) = (usize::from(params.samples), usize::from(params.memory));
        let nodes = 0..env.net.nodes().len() as u64;
        Drill {
            samples,
            memory,
            rngs: nodes.map(|node| Rng::stream(env.seed, "router/pick", &[node])).collect(),
            remembered: vec![NOTHING; env.net.links().len() * memory],
            examined: Vec::new(),
        }
    }
    /// Returns that switches decide on packets in both directions and read the loads of ports.
    pub fn duties(_params: &Params, _env: &Env<'_>) -> Duties {
        Duties { decides: Decides::BothWays, ports: PortAccess::Measures, ..Duties::PLAN }
    }
}

impl Router for Drill {
    /// Returns a random next hop, for a packet without known ports.
    fn choose(&mut self, at: NodeId, _path: &FiveTuple, candidates: &[LinkId]) -> u32 {
        self.rngs[at.index()].below(candidates.len() as u64) as u32
    }
    fn decide(&mut self, _packet: &mut Packet, candidates: &[LinkId], cx: &mut SwitchCx<'_>) -> u32 {
        if candidates.len() == 1 {
            return 0;
        }
        let Drill { samples, memory, rngs, remembered, examined } = self;
        let (rng, first) = (&mut rngs[cx.at.index()], candidates[0].index() * *memory);
        let remembered = &mut remembered[first..first + *memory];
        let port = |index: usize| Examined { index, load: cx.ports.load(index) };
        // Floyd's algorithm draws each set of `samples` distinct indices with equal probability.
        examined.clear();
        for last in candidates.len().saturating_sub(*samples)..candidates.len() {
            let drawn = rng.below(last as u64 + 1) as usize;
            let known = examined.iter().any(|port| port.index == drawn);
            examined.push(port(if known { last } else { drawn }));
        }
        for link in remembered.iter() {
            if let Ok(index) = candidates.binary_search(link)
                && !examined.iter().any(|port| port.index == index)
            {
                examined.push(port(index));
            }
        }
        let best = take_least(examined, rng).expect("at least one port is sampled").index;
        if let Some((least, others)) = remembered.split_first_mut() {
            *least = candidates[best];
            for other in others {
                *other = take_least(examined, rng).map_or(NOTHING, |port| candidates[port.index]);
            }
        }
        best as u32
    }
}

/// Removes the least loaded of the examined ports. Ties are broken at random; no random number is
/// drawn without a tie.
fn take_least(examined: &mut Vec<Examined>, rng: &mut Rng) -> Option<Examined> {
    let least = examined.iter().map(|port| port.load).min()?;
    let is_least = |port: &Examined| port.load == least;
    let ties = examined.iter().filter(|port| is_least(port)).count() as u64;
    let nth = if ties == 1 { 0 } else { rng.below(ties) as usize };
    let place = examined.iter().enumerate().filter(|(_, port)| is_least(port)).nth(nth)?.0;
    Some(examined.swap_remove(place))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::{Net, NetBuilder};
    use crate::router::Ports;
    use crate::routes::Routes;
    use base::math::exp;
    use base::{Dur, FlowId, Rate, Slab, Time};
    use proto::kit::script;
    use proto::packet::Ext;

    /// A switch with cables to another switch, and the router.
    struct Bench {
        net: Net,
        routes: Routes,
        router: Drill,
        all: Vec<LinkId>,
    }

    impl Bench {
        fn new(ports: u32, samples: u16, memory: u16, seed: u64) -> Bench {
            let mut b = NetBuilder::default();
            let (s, t) = (b.switch("s", 1), b.switch("t", 1));
            for _ in 0..ports {
                b.cable(s, t, Rate::from_gbps(1), Dur::from_us(1));
            }
            let net = b.build();
            let routes = Routes::new(&net, &[]);
            let env = Env { net: &net, routes: &routes, seed, max_rtt: Dur::from_us(100), given: base::Given::none() };
            let params = Params { samples, memory };
            assert_eq!(check(&params, &env), []);
            let router = Drill::new(&params, &env);
            Bench { net, routes, router, all: (0..ports).map(LinkId).collect() }
        }
        /// Returns the index of the port of a packet among `candidates` with these loads.
        fn send_among(&mut self, candidates: &[LinkId], loads: &[PortLoad]) -> usize {
            let Bench { net, routes, router, .. } = self;
            let mut cx = SwitchCx {
                now: Time(0),
                at: NodeId(0),
                from: None,
                flows: &[script::flow(0, 1460)],
                ext: &mut Slab::<Ext>::default(),
                net,
                routes,
                ports: Ports::new(&[]).with_loads(loads),
                timers: None,
                made: &mut Vec::new(),
                payload_bytes: 0,
                moved: None,
            };
            router.decide(&mut Packet::data(FlowId(0), 0, 1460, 40), candidates, &mut cx) as usize
        }
        fn send(&mut self, loads: &[PortLoad]) -> usize {
            let all = self.all.clone();
            self.send_among(&all, loads)
        }
        /// Returns the port of a packet if these numbers of bytes wait at busy ports.
        fn send_at(&mut self, waiting: &[u64]) -> usize {
            self.send(&busy(waiting))
        }
    }

    fn busy(waiting: &[u64]) -> Vec<PortLoad> {
        waiting.iter().map(|&waiting_bytes| PortLoad { waiting_bytes, busy: true }).collect()
    }

    /// The sum of (count - expected)^2 / expected.
    fn chi_square(counts: &[f64], expected: f64) -> f64 {
        counts.iter().map(|count| (count - expected) * (count - expected) / expected).sum()
    }

    #[test]
    fn if_all_ports_are_sampled_the_shortest_queue_is_taken() {
        let mut rng = Rng::stream(1, "test", &[]);
        for (samples, memory) in [(8, 0), (8, 1), (1024, 3)] {
            let mut b = Bench::new(8, samples, memory, 1);
            for _ in 0..2000 {
                let waiting: Vec<u64> = (0..8).map(|_| rng.below(4) * 1500).collect();
                let chosen = b.send_at(&waiting);
                assert_eq!(Some(&waiting[chosen]), waiting.iter().min());
            }
        }
    }

    #[test]
    fn samples_are_distinct_and_uniform() {
        // Only the sampled pair is examined: its longer queue is never taken.
        let mut b = Bench::new(4, 2, 0, 1);
        let mut counts = [0.0; 4];
        for _ in 0..24_000 {
            counts[b.send_at(&[0, 1, 2, 3])] += 1.0;
        }
        // Of the 6 pairs, port 0 is the best of 3, port 1 of 2, port 2 of 1, port 3 of none.
        let chi: f64 = [12_000.0, 8000.0, 4000.0].iter().zip(counts).map(|(e, c)| (c - e) * (c - e) / e).sum();
        // 99.9 % quantile of chi-square with 2 degrees of freedom.
        assert!(chi < 13.816 && counts[3] == 0.0, "{counts:?}: {chi}");
    }

    #[test]
    fn one_sample_without_memory_ignores_queues() {
        let mut b = Bench::new(4, 1, 0, 1);
        let mut counts = [0.0; 4];
        (0..8000).for_each(|_| counts[b.send_at(&[0, 1500, 3000, 1 << 40])] += 1.0);
        // 99.9 % quantile of chi-square with 3 degrees of freedom.
        assert!(chi_square(&counts, 2000.0) < 16.266, "{counts:?}");
    }

    #[test]
    fn ties_are_broken_evenly_with_and_without_memory() {
        for memory in [0, 1] {
            let mut b = Bench::new(4, 2, memory, 1);
            let mut counts = [0.0; 4];
            (0..8000).for_each(|_| counts[b.send_at(&[0; 4])] += 1.0);
            // With memory successive choices are alike, so that counts vary more: by a factor of at
            // most 2.
            let chi = chi_square(&counts, 2000.0) / f64::from(1 + memory);
            assert!(chi < 16.266, "{memory}: {counts:?}");
        }
    }

    #[test]
    fn the_best_port_is_remembered_and_its_load_is_read_anew() {
        let mut b = Bench::new(16, 1, 1, 1);
        let mut waiting = [3000; 16];
        waiting[5] = 0;
        let found = (0..1000).position(|_| b.send_at(&waiting) == 5).unwrap();
        assert!(found > 0, "the first sample of this seed is another port");
        assert!((0..1000).all(|_| b.send_at(&waiting) == 5), "from now on it is examined every time");
        waiting[5] = 9000;
        // Now it is taken only if the sample is this port again, before another one is found.
        assert!((0..1000).filter(|_| b.send_at(&waiting) == 5).count() <= 2, "the samples are better");
    }

    #[test]
    fn as_many_ports_are_remembered_as_the_memory_has_places() {
        // Ports 3 and 9 have short queues. Once both are found, one of them is taken even if the
        // queue of the better one has grown.
        let take = |memory| {
            let mut b = Bench::new(16, 1, memory, 1);
            let mut waiting = [3000; 16];
            (waiting[3], waiting[9]) = (0, 1);
            (0..1000).for_each(|_| _ = b.send_at(&waiting));
            waiting[3] = 9000;
            b.send_at(&waiting)
        };
        assert_eq!(take(2), 9);
        assert_ne!(take(1), 9, "the sample of this seed is another port");
    }

    #[test]
    fn an_idle_port_is_better_than_a_busy_one_without_a_queue() {
        let mut b = Bench::new(3, 3, 0, 1);
        let load = |waiting_bytes, busy| PortLoad { waiting_bytes, busy };
        assert!((0..100).all(|_| b.send(&[load(0, true), load(0, false), load(0, true)]) == 1));
        assert!((0..100).all(|_| b.send(&[load(40, false), load(40, false), load(0, true)]) == 2));
    }

    #[test]
    fn a_remembered_port_that_has_failed_is_not_taken() {
        let mut b = Bench::new(4, 1, 1, 1);
        (0..100).for_each(|_| _ = b.send_at(&[0, 0, 1500, 0]));
        b.router.remembered[0] = LinkId(2);
        let live = [LinkId(0), LinkId(1), LinkId(3)];
        for _ in 0..100 {
            assert!(b.send_among(&live, &busy(&[0, 0, 0])) < 3);
            assert_ne!(b.router.remembered[0], LinkId(2));
        }
    }

    #[test]
    fn each_set_of_next_hops_has_its_own_memory() {
        let mut b = Bench::new(8, 1, 1, 1);
        let (low, high) = ([0, 1, 2, 3].map(LinkId), [4, 5, 6, 7].map(LinkId));
        (0..100).for_each(|_| _ = b.send_among(&low, &busy(&[9, 9, 0, 9])));
        (0..100).for_each(|_| _ = b.send_among(&high, &busy(&[9, 0, 9, 9])));
        assert_eq!((b.router.remembered[0], b.router.remembered[4]), (LinkId(2), LinkId(5)));
        assert_eq!(b.send_among(&low, &busy(&[9, 9, 0, 9])), 2);
    }

    /// Throws as many packets as there are ports, and returns the longest queue in packets and the
    /// fraction of ports with a packet.
    fn throw(samples: u16, memory: u16, seed: u64) -> (u64, f64) {
        let ports = 4096;
        let mut b = Bench::new(ports, samples, memory, seed);
        let mut loads = vec![PortLoad::default(); ports as usize];
        for _ in 0..ports {
            let chosen = b.send(&loads);
            loads[chosen].waiting_bytes += 1500;
        }
        let used = loads.iter().filter(|load| load.waiting_bytes > 0).count();
        (loads.iter().map(|load| load.waiting_bytes / 1500).max().unwrap(), used as f64 / f64::from(ports))
    }

    /// Balls into bins. With d samples the fraction u of used bins obeys du/dt = 1 - u^d, so after
    /// one packet per port it is 1 - 1/e for d = 1 and tanh 1 for d = 2. A remembered port has just
    /// got a packet, so one place of memory changes only how deep bins become: the longest queue is
    /// about ln n / ln ln n without choice, and ln ln n / ln d + O(1) with it (Mitzenmacher,
    /// Prabhakar and Shah, "Load Balancing with Memory", FOCS 2002).
    #[test]
    fn queues_are_as_long_as_balls_into_bins_with_choice_and_memory() {
        let e = exp(1.0);
        let (one, two) = (1.0 - 1.0 / e, (e - 1.0 / e) / (e + 1.0 / e));
        for ((samples, memory), used, longest) in
            [((1, 0), one, 5..=12), ((1, 1), one, 3..=5), ((2, 0), two, 3..=4), ((2, 1), two, 2..=3)]
        {
            for seed in 1..=3 {
                let (most, fraction) = throw(samples, memory, seed);
                // The standard deviation of the fraction is below 0.0075.
                assert!((fraction - used).abs() < 0.025, "DRILL({samples}, {memory}): {fraction} for {used}");
                assert!(longest.contains(&most), "DRILL({samples}, {memory}): {most} packets");
            }
        }
    }

    #[test]
    fn choices_depend_on_the_seed_only() {
        let draw = |seed| {
            let mut b = Bench::new(8, 2, 1, seed);
            (0..100).map(|_| b.send_at(&[0; 8])).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }
}

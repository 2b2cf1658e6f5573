//! LetFlow: each switch sends each flowlet to a random next hop. Flowlets on slow paths end sooner,
//! which moves flows to fast paths.
//!
//! Source: Vanini et al., "Let It Flow: Resilient Asymmetric Load Balancing with Flowlet Switching", NSDI 2017: the design and its
//! flowlet table, and the Markov chain of its analysis. The programs of ConWeave (`letflow-routing.cc`; Song et al., SIGCOMM 2023) and of
//! Hermes (`ipv4-letflow-routing.cc`; Zhang et al., SIGCOMM 2017) contain it.
//!
//! A flowlet is a burst of packets of one flow with gaps of at most `flowlet_timeout`. Its first
//! packet takes a next hop at random, uniformly and without regard to congestion and to the present
//! next hop; the other packets follow it. A flow whose packets are held up on a congested path has
//! longer gaps, so it leaves that path sooner than flows leave an idle path. In balance, flows
//! divide themselves over paths of different rates so that the rates per flow are about equal.
//!
//! Model: nothing is left out.
//!
//! | parameter | default | from |
//! |---|---|---|
//! | `flowlet_timeout` | 5 unloaded round trips of the longest path | the paper's 500 us; see Assumed |
//! | `flowlets` | one per flow | flowloom: no collisions |
//!
//! Assumed:
//! - The paper uses 500 us in networks of 10 Gb/s, and gives no rule for other networks. The default
//!   is 500 us where the longest unloaded round trip is 100 us, and scales with it. A full queue of
//!   the default length of two bandwidth-delay products drains in two round trips. ConWeave's
//!   authors use 100 us at 100 Gb/s, which are 12 of their round trips.
//! - A gap of exactly the timeout does not end a flowlet, as in both programs.
//! - Gaps are measured exactly, as in both programs. The paper's switch has an age bit that a timer
//!   sets, so its gaps are between one and two periods of that timer.
//! - Every flow has its own flowlet entry at each switch, one for each direction, unless `flowlets`
//!   limits the table; then flows share entries by the hash of their five-tuple (CRC-32), as in the
//!   paper.
//! - Every switch with several next hops for a packet has a table. The program of ConWeave chooses
//!   the whole path at the first switch; with two tiers both are the same.
//! - ACKs form flowlets like data.
//! - A flowlet whose next hop fails takes another next hop at once.

use super::{Decides, Duties, Env, Router, SwitchCx, ecmp};
use crate::flowlets::{COUNTERS, FlowletCounts, FlowletTable};
use crate::paths::FiveTuple;
use base::params::{Auto, Params as _, Problem};
use base::registry::Meta;
use base::{Dur, LinkId, NodeId, Rng};
use proto::Packet;

/// The description of this entry, for `list`, `explain` and `check`.
pub const META: Meta = Meta {
    summary: "LetFlow: each flowlet takes a random next hop",
    source: "Vanini et al., NSDI 2017",
    counters: &COUNTERS,
    packets_only: "it splits flows at gaps between packets",
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of LetFlow.
    pub struct Params {
        /// Idle time of a flow after which its next packet may take another next hop; `auto`: 5
        /// unloaded round trips of the longest path.
        flowlet_timeout: Auto<Dur> = "auto" in Auto::Set(Dur(0))..=Auto::Set(Dur::from_secs(60)), "500us of the paper at a round trip of 100us; see Assumed";
        /// Entries of each switch's flowlet table; `auto`: one per flow and direction.
        flowlets: Auto<u32> = "auto" in Auto::Set(1)..=Auto::Set(1 << 24), "flowloom: no collisions";
    }
}

/// Unloaded round trips in the default flowlet timeout: 500 us over 100 us.
const ROUND_TRIPS: u64 = 5;

/// Returns the problems of parameters that depend on the network.
pub fn check(_params: &Params, _env: &Env<'_>) -> Vec<Problem> {
    Vec::new()
}

/// The state of all switches.
pub struct LetFlow {
    /// Hashes flows into the entries of limited tables.
    hash: ecmp::Ecmp,
    /// The switches, by node.
    switches: Vec<Switch>,
    counters: FlowletCounts,
}

/// A switch.
struct Switch {
    /// The next hop of each flowlet.
    flowlets: FlowletTable<LinkId>,
    rng: Rng,
}

impl LetFlow {
    /// Returns the router of a network.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let timeout = params.flowlet_timeout.or(env.max_rtt * ROUND_TRIPS);
        let switch = |node| Switch {
            flowlets: FlowletTable::new(timeout, params.flowlets),
            rng: Rng::stream(env.seed, "router/pick", &[node]),
        };
        LetFlow {
            hash: ecmp::Ecmp::new(&ecmp::Params::defaults(), env),
            switches: (0..env.net.nodes().len() as u64).map(switch).collect(),
            counters: FlowletCounts::new(env.net.links().len()),
        }
    }
    /// Returns that switches decide on packets in both directions.
    pub fn duties(_params: &Params, _env: &Env<'_>) -> Duties {
        Duties { decides: Decides::BothWays, ..Duties::PLAN }
    }
}

impl Router for LetFlow {
    /// Returns the next hop of a packet that belongs to no flowlet.
    fn choose(&mut self, at: NodeId, _path: &FiveTuple, candidates: &[LinkId]) -> u32 {
        self.switches[at.index()].rng.below(candidates.len() as u64) as u32
    }
    fn decide(&mut self, packet: &mut Packet, candidates: &[LinkId], cx: &mut SwitchCx<'_>) -> u32 {
        if candidates.len() == 1 {
            return 0;
        }
        let Switch { flowlets, rng } = &mut self.switches[cx.at.index()];
        let entry = flowlets.entry(packet, || self.hash.hash(&cx.tuple(packet)));
        let present = flowlets.find(entry, cx.now);
        // A next hop that has failed is not a candidate.
        let kept = present.filter(|(_, goes_on)| *goes_on).and_then(|(link, _)| candidates.binary_search(&link).ok());
        let chosen = kept.unwrap_or_else(|| {
            let chosen = rng.below(candidates.len() as u64) as usize;
            self.counters.count(candidates[chosen], present.is_some_and(|(link, _)| link != candidates[chosen]));
            chosen
        });
        flowlets.put(entry, candidates[chosen], cx.now);
        chosen as u32
    }
    fn counts(&self, link: LinkId) -> &[u64] {
        self.counters.of(link)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::{Net, NetBuilder};
    use crate::router::Ports;
    use crate::routes::Routes;
    use base::math::exp;
    use base::{FlowId, HostId, Rate, Slab, Time};
    use proto::Flow;
    use proto::kit::script;
    use proto::packet::Ext;

    const TIMEOUT: u64 = 500_000_000;

    /// A switch with 8 cables to another switch, a host at each of them, and the router.
    struct Bench {
        net: Net,
        routes: Routes,
        flows: Vec<Flow>,
        router: LetFlow,
    }

    impl Bench {
        fn new(flows: u32, seed: u64, params: &Params) -> Bench {
            let mut b = NetBuilder::default();
            let (s, t) = (b.switch("s", 1), b.switch("t", 1));
            for _ in 0..8 {
                b.cable(s, t, Rate::from_gbps(1), Dur::from_us(1));
            }
            for (name, switch) in [("h0", s), ("h1", t)] {
                let host = b.host(name, None);
                b.cable(host, switch, Rate::from_gbps(1), Dur::from_us(1));
            }
            let net = b.build();
            let routes = Routes::new(&net, &[]);
            let env = Env { net: &net, routes: &routes, seed, max_rtt: Dur::from_us(100), given: base::Given::none() };
            assert_eq!(check(params, &env), []);
            let router = LetFlow::new(params, &env);
            let flow = |n| Flow { src: HostId(0), dst: HostId(1), ..script::flow(n, 1460) };
            Bench { flows: (0..flows).map(flow).collect(), net, routes, router }
        }
        /// Returns the next hop of a packet at switch `s` among `candidates`.
        fn send(&mut self, now: u64, flow: u32, back: bool, candidates: &[LinkId]) -> u32 {
            let flags = if back { Packet::BACK } else { 0 };
            let mut packet = Packet { flags, ..Packet::data(FlowId(flow), 0, 1460, 40) };
            let Bench { net, routes, flows, router } = self;
            let mut cx = SwitchCx {
                now: Time(now),
                at: NodeId(0),
                from: None,
                flows,
                ext: &mut Slab::<Ext>::default(),
                net,
                routes,
                ports: Ports::new(&[]),
                timers: None,
                made: &mut Vec::new(),
                payload_bytes: 0,
                moved: None,
            };
            candidates[router.decide(&mut packet, candidates, &mut cx) as usize].0
        }
    }

    fn links(n: u32) -> Vec<LinkId> {
        (0..n).map(LinkId).collect()
    }

    fn bench() -> Bench {
        Bench::new(2, 1, &Params::defaults())
    }

    /// The default timeout is 500 us at a round trip of 100 us.
    #[test]
    fn packets_with_gaps_up_to_the_timeout_take_one_path() {
        let (mut b, all) = (bench(), links(8));
        let first = b.send(0, 0, false, &all);
        assert!((1..500).all(|n| b.send(n * TIMEOUT, 0, false, &all) == first));
        let given = Params { flowlet_timeout: Auto::Set(Dur(7)), ..Params::defaults() };
        let mut b = Bench::new(1, 1, &given);
        let first = b.send(0, 0, false, &all);
        assert!((1..500).all(|n| b.send(n * 7, 0, false, &all) == first));
        assert!((1..500).any(|n| b.send(3500 + n * 8, 0, false, &all) != first));
    }

    /// The next hops of flowlets that begin after gaps just longer than the timeout, in pairs of
    /// one flowlet and the next.
    #[test]
    fn a_new_flowlet_takes_any_next_hop_whatever_the_last_one_was() {
        let (mut b, all) = (bench(), links(4));
        let chosen: Vec<u32> = (0..32_001).map(|n| b.send(n * (TIMEOUT + 1), 0, false, &all)).collect();
        let mut pairs = [0.0; 16];
        for pair in chosen.windows(2) {
            pairs[(4 * pair[0] + pair[1]) as usize] += 1.0;
        }
        let chi: f64 = pairs.iter().map(|c| (c - 2000.0) * (c - 2000.0) / 2000.0).sum();
        // 99.9 % quantile of chi-square with 15 degrees of freedom; overlapping pairs have fewer.
        assert!(chi < 37.697, "{pairs:?}: {chi}");
        let counts = |n| all.iter().map(|&link| b.router.counts(link)[n]).sum::<u64>();
        let moves = chosen.windows(2).filter(|pair| pair[0] != pair[1]).count() as u64;
        assert_eq!((counts(0), counts(1)), (32_001, moves));
    }

    #[test]
    fn flows_and_directions_have_flowlets_of_their_own() {
        let all = links(8);
        let apart = |flow, back| {
            let differs = |seed| {
                let mut b = Bench::new(2, seed, &Params::defaults());
                b.send(0, 0, false, &all) != b.send(0, flow, back, &all)
            };
            (0..100).filter(|seed| differs(*seed)).count()
        };
        assert_eq!(apart(0, false), 0);
        // Expected: 7/8 of 100, with a standard deviation of 3.3.
        assert!([(0, true), (1, false)].into_iter().all(|(flow, back)| (75..=98).contains(&apart(flow, back))));
    }

    #[test]
    fn flows_share_the_entries_of_a_small_table() {
        let (all, params) = (links(8), Params { flowlets: Auto::Set(1), ..Params::defaults() });
        let mut b = Bench::new(50, 1, &params);
        let first = b.send(0, 0, false, &all);
        assert!((1..50).all(|flow| b.send(u64::from(flow) * TIMEOUT, flow, flow % 2 == 0, &all) == first));
    }

    #[test]
    fn a_flowlet_leaves_a_failed_next_hop_at_once_and_stays_on_the_new_one() {
        let (mut b, all) = (bench(), links(8));
        let first = b.send(0, 0, false, &all);
        let rest: Vec<LinkId> = all.iter().copied().filter(|link| link.0 != first).collect();
        let second = b.send(1, 0, false, &rest);
        assert_ne!(first, second);
        assert_eq!(b.send(2, 0, false, &all), second, "the first next hop is alive again");
        assert_eq!([first, second].map(|link| b.router.counts(LinkId(link)).to_vec()), [[1, 0], [1, 1]]);
    }

    #[test]
    fn choices_depend_on_the_seed_only() {
        let all = links(8);
        let draw = |seed| {
            let mut b = Bench::new(1, seed, &Params::defaults());
            (0..100).map(|n| b.send(n * (TIMEOUT + 1), 0, false, &all)).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    /// Stationary mean share of flows on the first of two paths: the Markov chain of the paper's
    /// analysis. A flow on a path of rate C with n flows sends packets as a Poisson process of rate
    /// C / n. It leaves the path with probability 1/2 at every packet after a gap longer than the
    /// timeout, so flows leave the path at the rate C exp(-C timeout / n) / 2.
    fn chain(flows: u32, rates: [f64; 2], timeout: f64) -> f64 {
        let leaving = |rate: f64, n: u32| rate * exp(-rate * timeout / f64::from(n));
        let (mut weight, mut all, mut sum) = (1.0, 0.0, 0.0);
        for first in 0..=flows {
            if first > 0 {
                // Detailed balance between `first - 1` and `first` flows on the first path.
                weight *= leaving(rates[1], flows - first + 1) / leaving(rates[0], first);
            }
            all += weight;
            sum += weight * f64::from(first);
        }
        sum / all / f64::from(flows)
    }

    /// The mean share of flows on the first of two paths, over time, if the router routes the
    /// packets of the same model.
    fn simulated(flows: u32, rates: [f64; 2], timeout: f64) -> f64 {
        let params = Params { flowlet_timeout: Auto::Set(Dur((timeout * 1e6) as u64)), ..Params::defaults() };
        let (mut b, all, mut rng) = (Bench::new(flows, 1, &params), links(2), Rng::stream(1, "test", &[]));
        let (mut now, mut sum) = (0.0, 0.0);
        let mut on: Vec<u32> = (0..flows).map(|flow| b.send(0, flow, false, &all)).collect();
        for _ in 0..300_000 {
            let first = on.iter().filter(|path| **path == 0).count();
            let busy = [if first > 0 { rates[0] } else { 0.0 }, if first < flows as usize { rates[1] } else { 0.0 }];
            let step = rng.exponential(1.0 / (busy[0] + busy[1]));
            (now, sum) = (now + step, sum + step * first as f64);
            let path = u32::from(rng.unit() * (busy[0] + busy[1]) >= busy[0]);
            let there: Vec<u32> = (0..flows).filter(|flow| on[*flow as usize] == path).collect();
            let flow = there[rng.below(there.len() as u64) as usize];
            on[flow as usize] = b.send((now * 1e6) as u64, flow, false, &all);
        }
        sum / now / f64::from(flows)
    }

    /// Flows move to the faster path without any measurement, the more the longer the timeout is.
    #[test]
    fn flows_divide_themselves_over_unequal_paths_as_the_chain_predicts() {
        let cases = [([1.0, 1.0], 30.0), ([4.0, 1.0], 8.0), ([4.0, 1.0], 12.0), ([4.0, 1.0], 16.0), ([9.0, 1.0], 8.0)];
        let expected = cases.map(|(rates, timeout)| chain(20, rates, timeout));
        for (expected, golden) in expected.iter().zip([0.5, 0.635, 0.702, 0.734, 0.819]) {
            assert!((expected - golden).abs() < 5e-4, "{expected} for {golden}");
        }
        for ((rates, timeout), expected) in cases.into_iter().zip(expected) {
            let found = simulated(20, rates, timeout);
            assert!((found - expected).abs() < 0.01, "{rates:?}, {timeout}: {found} for {expected}");
        }
    }
}

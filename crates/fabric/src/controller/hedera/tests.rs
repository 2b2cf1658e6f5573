use super::annealing::{Annealing, Schedule, Trial};
use super::demand::{Estimator, estimate};
use super::*;
use crate::controller::{LinkState, OpenFlow};
use crate::net::Net;
use crate::paths::AllPaths;
use crate::routes::Routes;
use crate::testing::{chain, dead, fat_tree, leaf_spine, single_tree};
use base::params::Params as _;
use base::{Given, Rng, Time};
use std::sync::Arc;

const GBPS: u64 = 1_000_000_000;
const MB: u64 = 1_000_000;

/// Flows given by the numbers of their hosts.
fn ends(pairs: &[(u32, u32)]) -> Vec<(HostId, HostId)> {
    pairs.iter().map(|&(src, dst)| (HostId(src), HostId(dst))).collect()
}

fn near(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-9)
}

/// The example of NSDI 2010 section 4.1: hosts A, B, C, D are 0 to 3.
#[test]
fn demands_of_the_papers_example() {
    let flows = ends(&[(0, 1), (0, 2), (0, 3), (1, 0), (1, 0), (1, 2), (2, 0), (2, 3), (3, 1), (3, 1)]);
    let (third, half, two) = (1.0 / 3.0, 0.5, 2.0 / 3.0);
    let mut e = Estimator::new(&flows, &[1.0; 4]);
    e.sources();
    assert!(near(&e.demand, &[third, third, third, third, third, third, half, half, half, half]), "{:?}", e.demand);
    e.destinations();
    let first = [third, third, third, third, third, third, third, half, third, third];
    let converged = [true, false, false, true, true, false, true, false, true, true];
    assert!(near(&e.demand, &first), "{:?}", e.demand);
    assert_eq!(e.converged, converged);
    e.sources();
    let second = [third, third, third, third, third, third, third, two, third, third];
    assert!(near(&e.demand, &second), "{:?}", e.demand);
    e.destinations();
    assert!(near(&e.demand, &second), "{:?}", e.demand);
    assert_eq!(e.converged, converged);
    assert!(!e.step(), "it is the fixed point");
    assert!(near(&estimate(&flows, &[1.0; 4]), &second));
}

#[test]
fn demands_at_a_shared_destination() {
    let flows = ends(&[(0, 3), (1, 3), (2, 3), (2, 4)]);
    assert!(near(&estimate(&flows, &[1.0; 5]), &[1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0, 2.0 / 3.0]));
    assert!(estimate(&[], &[1.0]).is_empty());
    // NICs of a tenth and of twice the rate.
    assert!(near(&estimate(&flows, &[0.1, 1.0, 1.0, 2.0, 1.0]), &[0.1, 1.0, 0.5, 0.5]));
}

/// No NIC exceeds its rate, no flow could have more by itself, and some end of each flow is full.
#[test]
fn demands_of_random_flows_fill_nics() {
    let mut rng = Rng::stream(1, "hedera/demands", &[]);
    for _ in 0..500 {
        let hosts = 2 + rng.below(9);
        let pair = |rng: &mut Rng| {
            let src = rng.below(hosts);
            (src as u32, ((src + 1 + rng.below(hosts - 1)) % hosts) as u32)
        };
        let flows = ends(&(0..rng.below(40)).map(|_| pair(&mut rng)).collect::<Vec<_>>());
        let demand = estimate(&flows, &vec![1.0; hosts as usize]);
        let sum = |end: fn(&(HostId, HostId)) -> HostId, host: HostId| {
            flows.iter().zip(&demand).filter(|(flow, _)| end(flow) == host).map(|(_, demand)| demand).sum::<f64>()
        };
        for flow in &flows {
            let (out, into) = (sum(|flow| flow.0, flow.0), sum(|flow| flow.1, flow.1));
            assert!(out < 1.0 + 1e-6 && into < 1.0 + 1e-6, "{flows:?} {demand:?}");
            assert!(out > 1.0 - 1e-6 || into > 1.0 - 1e-6, "{flows:?} {demand:?}");
        }
    }
}

/// A network and the state that a controller reads.
struct Bench {
    net: Arc<Net>,
    routes: Routes,
    paths: AllPaths,
    flows: Vec<OpenFlow>,
}

impl Bench {
    fn new(net: Net) -> Bench {
        let (net, routes) = (Arc::new(net.clone()), Routes::new(&net, &[]));
        let paths = AllPaths::new(Arc::clone(&net), Arc::new(routes.clone()));
        Bench { net, routes, paths, flows: Vec::new() }
    }
    fn hedera(&self, change: impl FnOnce(&mut Params)) -> Hedera {
        let mut params = Params::defaults();
        change(&mut params);
        let env = Env { net: &self.net, routes: &self.routes, seed: 1, max_rtt: base::Dur::ZERO, given: Given::none() };
        assert_eq!(check(&params, &env), []);
        Hedera::new(&params, &env)
    }
    fn live(&mut self) -> Live<'_> {
        Live { net: &self.net, routes: &self.routes, paths: &mut self.paths }
    }
    /// A flow that delivered this many bytes since the last reading.
    fn flow(&mut self, id: u32, src: u32, dst: u32, path: u16, bytes: u64) {
        let (id, src, dst) = (FlowId(id), HostId(src), HostId(dst));
        self.flows.push(OpenFlow { id, src, dst, paths: [Some(path), None], delivered_bytes: bytes });
    }
    /// Returns the orders of the controller as (flow, path). The orders are executed.
    fn look(&mut self, hedera: &mut Hedera) -> Vec<(u32, u16)> {
        let Bench { net, routes, paths, flows, .. } = self;
        let links = &vec![LinkState::default(); net.links().len()];
        let mut moves = Vec::new();
        hedera.decide(&mut View { now: Time::ZERO, net, routes, paths, links, flows, path_changes: &[] }, &mut moves);
        for order in &moves {
            let flow = self.flows.iter_mut().find(|flow| flow.id == order.flow).unwrap();
            assert!(!order.back && flow.paths[0] != order.path, "an order without effect");
            flow.paths[0] = order.path;
        }
        moves.iter().map(|order| (order.flow.0, order.path.unwrap())).collect()
    }
    fn present(&self) -> Vec<u16> {
        self.flows.iter().map(|flow| flow.paths[0].unwrap()).collect()
    }
}

fn gff(params: &mut Params) {
    params.placement = Placement::Gff;
}

/// Path i of a fat tree with k = 4 crosses core i; hosts 0 to 3 are in the first pod, two at each
/// edge switch.
#[test]
fn first_fit_takes_the_first_path_with_room() {
    let mut b = Bench::new(fat_tree(4));
    let mut hedera = b.hedera(gff);
    b.flow(0, 0, 4, 3, MB);
    b.flow(1, 2, 6, 3, MB);
    b.flow(2, 8, 5, 3, MB);
    assert_eq!(b.look(&mut hedera), [(0, 0), (1, 1), (2, 2)]);
    assert_eq!(b.look(&mut hedera), []);
}

#[test]
fn first_fit_waits_for_room_and_frees_it_when_a_flow_ends() {
    let mut b = Bench::new(leaf_spine(2, 1, 2));
    let mut hedera = b.hedera(gff);
    b.flow(0, 0, 2, 0, MB);
    b.flow(1, 1, 3, 0, MB);
    b.look(&mut hedera);
    let placed = |hedera: &Hedera| match &hedera.placer {
        Placer::FirstFit(first_fit) => first_fit.placed(),
        Placer::Annealing(_) => Vec::new(),
    };
    // There is only one spine: the second flow stays on the router's path and is tried again.
    assert_eq!(placed(&hedera), [FlowId(0)]);
    b.look(&mut hedera);
    assert_eq!(placed(&hedera), [FlowId(0)]);
    b.flows.remove(0);
    b.look(&mut hedera);
    assert_eq!(placed(&hedera), [FlowId(1)]);
}

#[test]
fn reservations_follow_demands() {
    let mut b = Bench::new(fat_tree(4));
    let mut hedera = b.hedera(gff);
    b.flow(0, 0, 4, 3, MB);
    assert_eq!(b.look(&mut hedera), [(0, 0)]);
    // With a second flow from the same NIC each gets half, so both fit on the first path.
    b.flow(1, 0, 5, 3, MB);
    assert_eq!(b.look(&mut hedera), [(1, 0)]);
}

#[test]
fn first_fit_leaves_dead_paths() {
    let mut b = Bench::new(fat_tree(4));
    let mut hedera = b.hedera(gff);
    b.flow(0, 0, 4, 3, MB);
    assert_eq!(b.look(&mut hedera), [(0, 0)]);
    b.routes = Routes::new(&b.net, &dead(&b.net, &["agg0_0->core0", "core0->agg1_0", "agg0_0->core1"]));
    assert_eq!(b.look(&mut hedera), [(0, 2)]);
}

#[test]
fn first_fit_takes_any_network() {
    for net in [chain(3), single_tree(2, 2)] {
        let mut b = Bench::new(net);
        let mut hedera = b.hedera(gff);
        b.flow(0, 0, 1, 0, MB);
        assert_eq!(b.look(&mut hedera), []);
    }
}

#[test]
fn large_flows_by_bytes_and_by_rate() {
    let large = |change: fn(&mut Params), bytes: &[u64]| {
        let mut b = Bench::new(fat_tree(4));
        let mut hedera = b.hedera(change);
        b.flow(0, 0, 4, 3, 0);
        let mut seen = bytes.iter().map(|&bytes| {
            b.flows[0].delivered_bytes = bytes;
            !b.look(&mut hedera).is_empty()
        });
        seen.position(|moved| moved)
    };
    // Bytes add up over readings.
    assert_eq!(large(gff, &[50_000, 49_999, 1]), Some(2));
    let by_rate = |params: &mut Params| {
        gff(params);
        (params.large, params.period) = (Large::Rate, Dur::from_ms(1));
    };
    // A tenth of 1 Gb/s is 12 500 bytes in 1 ms.
    assert_eq!(large(by_rate, &[12_499, 12_499, 12_500]), Some(2));
    // A flow that has ended is forgotten.
    let mut b = Bench::new(fat_tree(4));
    let mut hedera = b.hedera(gff);
    b.flow(0, 0, 4, 3, 50_000);
    b.look(&mut hedera);
    b.flows.clear();
    b.look(&mut hedera);
    assert!(hedera.delivered.is_empty());
}

#[test]
fn acceptance_falls_with_the_temperature() {
    let schedule = Schedule { t0: 1000, c: 0.5 };
    for (temperature, wanted) in [(1000, 0.367_879), (500, 0.135_335), (1, 0.0)] {
        assert!((schedule.acceptance(2.0, temperature) - wanted).abs() < 1e-6);
    }
    assert_eq!(schedule.acceptance(0.0, 1), 1.0);
}

fn demand(id: u32, src: u32, dst: u32, bps: u64) -> Demand {
    Demand { id: FlowId(id), src: HostId(src), dst: HostId(dst), present: Some(0), bps }
}

fn annealing(b: &Bench, by_dst: bool) -> Annealing {
    let cores = cores::find(&b.net, &b.routes).unwrap();
    Annealing::new(cores, Schedule { t0: 1000, c: 0.5 }, by_dst, 7)
}

#[test]
fn energy_is_what_exceeds_capacities() {
    let mut b = Bench::new(fat_tree(4));
    let mut a = annealing(&b, true);
    let flows = [demand(0, 0, 4, GBPS), demand(1, 1, 5, GBPS)];
    // From one edge switch to another, over cores of a single group and of two groups.
    for (cores, energy) in [([0, 1], 2 * GBPS), ([0, 2], 0), ([0, 0], 4 * GBPS)] {
        (a.core_of[4], a.core_of[5]) = (cores[0], cores[1]);
        assert_eq!(Trial::new(&mut a, &mut b.live(), &flows).energy(), energy, "{cores:?}");
    }
    // With the source as key, the destinations' cores do not count.
    let mut a = annealing(&b, false);
    (a.core_of[0], a.core_of[1]) = (0, 2);
    assert_eq!(Trial::new(&mut a, &mut b.live(), &flows).energy(), 0);
}

/// After any swaps the energy equals that of a computation from scratch; in some cases links fail.
#[test]
fn energy_follows_swaps() {
    let mut rng = Rng::stream(1, "hedera/swaps", &[]);
    for case in 0..60 {
        let (net, hosts) = if case % 2 == 0 { (fat_tree(4), 16) } else { (leaf_spine(3, 2, 4), 12) };
        let mut b = Bench::new(net);
        let mut a = annealing(&b, case % 4 < 2);
        if case % 3 == 0 {
            let dead: Vec<bool> = (0..b.net.links().len()).map(|link| link >= hosts as usize && rng.below(12) == 0).collect();
            b.routes = Routes::new(&b.net, &dead);
        }
        let flow = |id| {
            let src = rng.below(hosts) as u32;
            let dst = (u64::from(src) + 1 + rng.below(hosts - 1)) % hosts;
            demand(id, src, dst as u32, 1 + rng.below(GBPS))
        };
        let flows: Vec<Demand> = (0..30).map(flow).collect();
        let mut trial = Trial::new(&mut a, &mut b.live(), &flows);
        for _ in 0..40 {
            let [x, y] = [0; 2].map(|_| HostId(rng.below(hosts) as u32));
            trial.swap(&mut a, &mut b.live(), x, y);
            assert_eq!(trial.energy(), Trial::new(&mut a, &mut b.live(), &flows).energy());
        }
    }
}

/// The hosts of a pod have different cores, which depend on the seed.
#[test]
fn cores_are_dealt_out_in_every_pod() {
    let b = Bench::new(fat_tree(4));
    let cores = cores::find(&b.net, &b.routes).unwrap();
    let dealt = |seed| Annealing::new(cores.clone(), Schedule { t0: 1, c: 1.0 }, true, seed).core_of;
    for pod in dealt(1).chunks(4) {
        let mut pod = pod.to_vec();
        pod.sort_unstable();
        assert_eq!(pod, [0, 1, 2, 3]);
    }
    assert_ne!(dealt(1), dealt(2));
    // Five hosts at a leaf and two spines: two or three hosts have the same core.
    let b = Bench::new(leaf_spine(2, 2, 5));
    let few = Annealing::new(cores::find(&b.net, &b.routes).unwrap(), Schedule { t0: 1, c: 1.0 }, true, 1).core_of;
    assert!([0, 1].iter().all(|core| (2..=3).contains(&few[..5].iter().filter(|own| *own == core).count())));
}

/// Between pods every host sends at its full rate: there are assignments without a collision, and
/// the flows keep them.
#[test]
fn annealing_finds_paths_without_collisions() {
    for (net, hosts, hop) in [(fat_tree(4), 16, 4), (fat_tree(4), 16, 8), (leaf_spine(2, 4, 4), 8, 4)] {
        let mut b = Bench::new(net);
        let mut hedera = b.hedera(|_| ());
        (0..hosts).for_each(|src| b.flow(src, src, (src + hop) % hosts, 0, MB));
        b.look(&mut hedera);
        let mut used = std::collections::BTreeSet::new();
        for flow in b.flows.clone() {
            let links = b.live().links(flow.src, flow.dst, flow.paths[0].unwrap()).unwrap();
            assert!(links.into_iter().all(|link| used.insert(link)), "{:?}", b.present());
        }
        assert_eq!(b.look(&mut hedera), []);
    }
}

#[test]
fn annealing_does_not_move_flows_within_pods() {
    let mut b = Bench::new(fat_tree(4));
    let mut hedera = b.hedera(|_| ());
    b.flow(0, 0, 2, 1, MB);
    b.flow(1, 0, 1, 0, MB);
    assert_eq!(b.look(&mut hedera), []);
}

/// Links below one core fail: flows start and end over the other three cores, and each round starts
/// from the last.
#[test]
fn annealing_leaves_dead_paths() {
    let mut b = Bench::new(fat_tree(4));
    let mut hedera = b.hedera(|_| ());
    b.routes = Routes::new(&b.net, &dead(&b.net, &["agg0_0->core0", "core0->agg1_0"]));
    b.flow(0, 0, 4, 1, MB);
    b.flow(1, 2, 6, 1, MB);
    for _ in 0..5 {
        b.look(&mut hedera);
        assert!(!b.present().contains(&0) && b.present()[0] != b.present()[1], "{:?}", b.present());
    }
}

#[test]
fn annealing_needs_cores_and_planned_paths() {
    let problems = |net: &Net, change: fn(&mut Params), router: &[(&'static str, &str)]| {
        let routes = Routes::new(net, &[]);
        let mut params = Params::defaults();
        change(&mut params);
        let (kind, values) = (router.first().map_or("ecmp", |kind| kind.0), Vec::new());
        let given = Given::new(vec![base::given::GivenPart { slot: "router", kind, values }]);
        let problems = check(&params, &Env { net, routes: &routes, seed: 1, max_rtt: base::Dur::ZERO, given: &given });
        problems.into_iter().map(|problem| problem.message).collect::<Vec<_>>()
    };
    for net in [fat_tree(4), fat_tree(6), leaf_spine(3, 2, 4), single_tree(2, 3)] {
        assert_eq!(problems(&net, |_| (), &[]), [""; 0]);
    }
    let why = |net: &Net| problems(net, |_| (), &[]).pop().unwrap_or_default();
    assert!(why(&chain(3)).ends_with("this network has no switches above those of its hosts"), "{}", why(&chain(3)));
    assert!(why(&leaf_spine(1, 2, 4)).ends_with("no path between two hosts crosses a core"));
    let mut b = crate::net::NetBuilder::default();
    let h = [0, 1].map(|i| b.host(format!("h{i}"), None));
    let s = [0, 1].map(|i| b.switch(format!("s{i}"), 1));
    let top = b.switch("top", 2);
    for i in 0..2 {
        b.cable(h[i], s[i], base::Rate(GBPS), Dur::from_us(1));
        (0..2).for_each(|_| b.cable(s[i], top, base::Rate(GBPS), Dur::from_us(1)));
    }
    let twice = b.build();
    assert!(why(&twice).ends_with("there are 1 cores, but 4 paths over 1 of them from `h0` to `h1`"), "{}", why(&twice));
    assert_eq!(problems(&twice, gff, &[]), [""; 0]);
    assert_eq!(problems(&fat_tree(4), gff, &[("conga", "")]).len(), 1);
}

//! MERP's virtual deadlines: VDG runs on the links where flows arrive, and the flow with the
//! earliest virtual deadline is served.
//!
//! Source: Zhang et al., IEEE TPDS 28(11) 2017, sections 2 and 4.3 (Table 1, Fig. 1, Alg. 1 and 2).
//!
//! Assumed: in Alg. 2, among flows that tie, the flow with the largest (size, arrival, rest, index)
//! is placed last. In a network VDG runs at each link of an arriving flow, and flows are ordered by
//! the largest `vdl - arrival` among the links of their paths.

use super::{Env, Ideal};
use crate::agent::merp::vdg;
use crate::schedule::flow::{FluidFlow, GoOn};
use crate::schedule::link::{Number, Rule, Server, compare};
use crate::schedule::network::{Key, Network, Order};
use base::params::Problem;
use base::registry::Meta;
use base::{Rate, Time};

/// The description of this entry, for `list`, `explain` and `check`.
pub const META: Meta = Meta {
    summary: "Every link serves the flow with the earliest of MERP's virtual deadlines.",
    source: "Zhang et al., IEEE TPDS 28(11) 2017, sections 2 and 4.3",
    ..Meta::PLAIN
};

base::params! {
    /// This schedule has no parameters.
    pub struct Params {}
}

/// Returns no problems.
pub fn check(_params: &Params, _env: &Env) -> Vec<Problem> {
    Vec::new()
}

/// The schedule.
pub struct Merp;

impl Merp {
    /// Returns the schedule.
    pub fn new(_params: &Params, _env: &Env) -> Self {
        Merp
    }
    /// Returns the label of the schedule in tables and figures.
    pub fn label(_params: &Params) -> &'static str {
        "ideal MERP"
    }
}

impl Ideal for Merp {
    fn serve_link<T: Number>(&self, link: Server<'_, T>) -> Vec<T> {
        link.serve(self)
    }
    fn serve_network(&self, network: Network<'_>, go_on: GoOn<'_>) -> Option<Vec<f64>> {
        network.serve(&mut VirtualDeadlines::new(network), go_on)
    }
}

impl<T: Number> Rule<T> for Merp {
    /// Alg. 2: the flow whose expansion ratio would be smallest if it came last is placed last,
    /// which is first in `active`.
    fn on_arrivals(&self, link: &mut Server<'_, T>) {
        let mut rest = link.active.iter().fold(T::zero(), |sum, &flow| sum + link.left[flow].clone());
        for k in 0..link.active.len() {
            let x = link.now.clone() + rest.clone() / link.capacity.clone();
            // Expansion ratios are compared as age(a) size(b) < age(b) size(a).
            let ratio = |a: usize, b: usize| (x.clone() - link.jobs[a].arrival.clone()) * link.jobs[b].size.clone();
            let after = |a: usize, b: usize| {
                let (p, q) = (&link.jobs[a], &link.jobs[b]);
                compare(&ratio(a, b), &ratio(b, a))
                    .then_with(|| compare(&q.size, &p.size))
                    .then_with(|| compare(&q.arrival, &p.arrival))
                    .then_with(|| compare(&link.left[b], &link.left[a]))
                    .then(b.cmp(&a))
            };
            let last = (k..link.active.len()).min_by(|&i, &j| after(link.active[i], link.active[j])).unwrap_or(k);
            link.active.swap(k, last);
            rest = rest - link.left[link.active[k]].clone();
        }
    }
}

/// The order of a network: a flow table per link.
struct VirtualDeadlines<'a> {
    capacity: &'a [Rate],
    flows: &'a [FluidFlow],
    /// The arrival of each flow.
    arrived: Vec<Time>,
    /// The flows that cross each link.
    members: Vec<Vec<usize>>,
    /// For each flow and link of its path: `vdl - arrival` in ps from the last run of VDG.
    expected: Vec<Vec<u64>>,
    /// Links with new flows.
    fresh: Vec<usize>,
    entries: Vec<vdg::Entry>,
    placed: Vec<vdg::Placed>,
    scratch: vdg::Scratch,
}

impl<'a> VirtualDeadlines<'a> {
    fn new(Network { capacity, flows, .. }: Network<'a>) -> Self {
        VirtualDeadlines {
            capacity,
            flows,
            arrived: flows.iter().map(|flow| flow.arrival).collect(),
            members: vec![Vec::new(); capacity.len()],
            expected: flows.iter().map(|flow| vec![0; flow.path.len()]).collect(),
            fresh: Vec::new(),
            entries: Vec::new(),
            placed: Vec::new(),
            scratch: vdg::Scratch::default(),
        }
    }
}

impl Order for VirtualDeadlines<'_> {
    fn on_arrival(&mut self, _flows: &[FluidFlow], flow: usize, at: f64, _key: &mut [Key]) {
        if self.flows[flow].wait.is_some() {
            self.arrived[flow] = Time((at * 1e12) as u64);
        }
        for &link in &self.flows[flow].path {
            self.members[link].push(flow);
            if !self.fresh.contains(&link) {
                self.fresh.push(link);
            }
        }
    }

    fn on_end(&mut self, flow: usize) {
        for &link in &self.flows[flow].path {
            self.members[link].retain(|&other| other != flow);
        }
    }

    /// Runs VDG on links where flows arrived (Alg. 1 l. 3-5) and updates `key`.
    fn rank(&mut self, now: f64, _active: &[usize], left: &[f64], key: &mut [Key]) {
        let now = Time((now * 1e12) as u64);
        for link in self.fresh.drain(..) {
            if self.capacity[link] == Rate(0) {
                continue;
            }
            let entry = |&flow: &usize| {
                let (size, arrived) = (self.flows[flow].wire_bytes, self.arrived[flow].min(now));
                vdg::Entry { size, rs: base::math::ceil(left[flow]) as u64, arrived, id: flow as u32 }
            };
            self.entries.clear();
            self.entries.extend(self.members[link].iter().map(entry));
            vdg::vdg(now, self.capacity[link], &self.entries, &mut self.placed, &mut self.scratch);
            for place in &self.placed {
                let flow = self.members[link][place.index];
                let arrived = self.entries[place.index].arrived;
                for (expected, _) in self.expected[flow].iter_mut().zip(&self.flows[flow].path).filter(|(_, l)| **l == link) {
                    *expected = (place.vdl - arrived).ps();
                }
                // Alg. 1 l. 9-11: the smallest expected rate on the path counts, which corresponds
                // to the largest expected time.
                let longest = self.expected[flow].iter().copied().max().unwrap_or(0);
                key[flow].1 = (arrived.ps() + longest) as f64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Exact, GIGABYTE, check_table_1, finish_ns, flow, ideal, in_seconds, job, q};
    use super::*;
    use crate::schedule::link::Job;
    use base::Rng;

    #[test]
    fn table_1_of_its_paper() {
        let segments = [(0, 0, 3), (2, 3, 7), (1, 7, 10)];
        check_table_1("merp", &segments, [q(3, 1), q(7, 1), q(7, 1)], q(17, 3), [q(1, 1), q(7, 3), q(7, 4)]);
    }

    /// Flows that arrive together end in the order of the port's own VDG, at its virtual deadlines.
    #[test]
    fn merp_agrees_with_the_port() {
        let mut rng = Rng::stream(1, "fluid/vdg", &[]);
        let (mut placed, mut scratch) = (Vec::new(), vdg::Scratch::default());
        for round in 0..200 {
            let n = 1 + rng.below(if round % 20 == 0 { 60 } else { 10 });
            let jobs: Vec<Job<Exact>> = (0..n).map(|_| job(0, 1 + rng.below(12) as i64)).collect();
            let entry = |(id, job): (usize, &Job<Exact>)| {
                let size = job.size.to_integer().try_into().unwrap();
                vdg::Entry { size, rs: size, arrived: Time::ZERO, id: id as u32 }
            };
            let entries: Vec<vdg::Entry> = jobs.iter().enumerate().map(entry).collect();
            vdg::vdg(Time::ZERO, Rate(8_000_000_000), &entries, &mut placed, &mut scratch);
            let finish = ideal("merp").finish_times(&q(1, 1), &jobs).unwrap();
            for place in &placed {
                assert_eq!(q(place.vdl.ps() as i64, 1000), finish[place.index]);
            }
        }
    }

    #[test]
    fn merp_takes_the_worst_link_of_a_path() {
        // At 60, link 0 puts the new flow (ratio 200/100 at its end) before the old flow (260/160),
        // with vdl 160 and 260. On link 1 the new flow comes last, with vdl 60 + 249, so the old
        // flow is served first.
        let alone = [flow(0, 160, &[0]), flow(60, 100, &[0])];
        let crowded = [alone[0].clone(), flow(60, 100, &[0, 1]), flow(60, 99, &[1]), flow(60, 50, &[1])];
        let order = |flows: &[FluidFlow]| finish_ns("merp", &[GIGABYTE; 2], flows);
        assert_eq!(order(&alone), [260.0, 160.0]);
        assert_eq!(order(&crowded), [160.0, 309.0, 209.0, 110.0]);
    }

    /// Links of a tree of 3 racks with 3 hosts: NICs 0-8, down to hosts 9-17, ToR up 18-20, down
    /// 21-23. Pareto sizes in whole packets; the load is relative to the uplinks.
    fn single_tree(seed: u64, n: usize, load: f64, shape: f64, mean: f64) -> Vec<FluidFlow> {
        let mut rng = Rng::stream(seed, "fluid/tree", &[]);
        let mut now = 0.0;
        let gap = mean * 8.0 / (load * 3e9);
        let draw = |_| {
            now += rng.exponential(gap);
            let size = rng.pareto(shape, mean * (shape - 1.0) / shape);
            let src = rng.below(9) as usize;
            let dst = (src + 1 + rng.below(8) as usize) % 9;
            let (up, down) = (18 + src / 3, 21 + dst / 3);
            let path = if src / 3 == dst / 3 { vec![src, 9 + dst] } else { vec![src, up, down, 9 + dst] };
            let wire_bytes = base::math::ceil(size / 1500.0) as u64 * 1500;
            FluidFlow { arrival: Time((now * 1e12) as u64), wire_bytes, path, deadline: None, wait: None }
        };
        (0..n).map(draw).collect()
    }

    /// Returns the mean FCT in ms and the maximum expansion ratio.
    fn summary(name: &str, flows: &[FluidFlow]) -> (f64, f64) {
        let finish = in_seconds(name, &[Rate::from_gbps(1); 24], flows);
        let fct = |(end, flow): (&f64, &FluidFlow)| end - flow.arrival.as_secs_f64();
        let all: Vec<f64> = finish.iter().zip(flows).map(fct).collect();
        let ratios = all.iter().zip(flows).map(|(fct, flow)| fct * 1e9 / (8.0 * flow.wire_bytes as f64));
        assert!(ratios.clone().all(|ratio| ratio > 1.0 - 1e-6));
        (1e3 * all.iter().sum::<f64>() / all.len() as f64, ratios.fold(0.0, f64::max))
    }

    /// The paper's claim about SRPT holds for fluids: a much smaller maximum expansion ratio for a
    /// slightly larger mean FCT.
    #[test]
    fn merp_trades_a_little_mean_for_the_largest_ratio() {
        for seed in 1..=3 {
            let flows = single_tree(seed, 4000, 0.8, 1.8, 1.5e6);
            let [srpt, merp, ps] = ["srpt", "merp", "ps"].map(|name| summary(name, &flows));
            assert!(srpt.0 < merp.0 && merp.0 < 1.15 * srpt.0 && merp.0 < ps.0, "mean {srpt:?} {merp:?} {ps:?}");
            assert!(merp.1 < 0.8 * srpt.1, "largest ratio {srpt:?} {merp:?} {ps:?}");
            let bound = summary("big_switch", &flows);
            assert!(bound.0 < srpt.0, "mean in a big switch {bound:?} {srpt:?}");
        }
    }
}

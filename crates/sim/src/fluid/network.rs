//! A network: finish times of flows that each take one path.
//!
//! Source: the calibration of MERP against ideal SRPT and fair sharing (docs/model.md); pFabric (SIGCOMM 2013) section 3 for the greedy
//! order and the big switch.
//!
//! Model: no packets, no latency, no headers beyond the bytes given, control is instant. [`Policy::Ps`] is max-min fair. Under every other
//! policy flows are visited in its order, and each takes what the flows before it leave on all of its links: with equal capacities one
//! flow at a time per link, at full rate.
//!
//! Assumed: MERP runs VDG at each link of an arriving flow, and orders flows by the largest `vdl - arrival` among the links of a path. Equals
//! go by arrival, then by index.
//!
//! Deviates: where capacities differ, a link is not held by a flow that cannot fill it; the next in order uses the rest, as in a network
//! of priority queues.

use super::{Policy, max_min};
use base::{Rate, Time};
use fabric::agent::merp::vdg;

/// A flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// When it arrives.
    pub arrival: Time,
    /// Bytes to send, headers included; at least 1.
    pub wire_bytes: u64,
    /// Its links in order, as indices into the capacities. Without links it ends as it arrives.
    pub path: Vec<usize>,
    /// Its deadline, which only EDF looks at.
    pub deadline: Option<Time>,
}

/// Asked now and then whether to go on: what time it is in seconds, and how many flows have ended.
pub type GoOn<'a> = &'a mut dyn FnMut(f64, usize) -> bool;

/// Arrivals and ends between two questions.
pub(super) const PATIENCE: usize = 1 << 10;

/// When each flow ends, in seconds; never (infinity) behind a link without capacity. `capacity` is per link. `None` when `go_on` says no.
pub fn finish_times(policy: Policy, capacity: &[Rate], flows: &[Flow], go_on: GoOn<'_>) -> Option<Vec<f64>> {
    let bytes_per_sec: Vec<f64> = capacity.iter().map(|rate| rate.bps() as f64 / 8.0).collect();
    let arrival: Vec<f64> = flows.iter().map(|flow| flow.arrival.as_secs_f64()).collect();
    let mut by_arrival: Vec<usize> = (0..flows.len()).collect();
    by_arrival.sort_by_key(|&flow| (flows[flow].arrival, flow));
    match policy {
        Policy::Ps => max_min::run(&bytes_per_sec, flows, &arrival, &by_arrival, go_on),
        Policy::Srpt | Policy::Fcfs | Policy::Edf | Policy::Merp => {
            let mut tables = Tables::new(capacity, flows);
            let merp = (policy == Policy::Merp).then_some(&mut tables);
            Greedy::new(policy, &bytes_per_sec, flows).run(&arrival, &by_arrival, merp, go_on)
        }
    }
}

/// The same flows in one big switch: only their first and last links, those of the hosts, are left. No network of these hosts does better
/// for an order that is optimal there.
pub fn big_switch(flows: &[Flow]) -> Vec<Flow> {
    let ends = |path: &[usize]| match path {
        [first, .., last] => vec![*first, *last],
        short => short.to_vec(),
    };
    flows.iter().map(|flow| Flow { path: ends(&flow.path), ..flow.clone() }).collect()
}

/// Service in the order of a policy.
struct Greedy<'a> {
    policy: Policy,
    /// Bytes per second.
    capacity: &'a [f64],
    flows: &'a [Flow],
    /// Bytes left.
    left: Vec<f64>,
    /// What flows are ordered by.
    key: Vec<f64>,
    /// Flows in the system, the first to serve first.
    order: Vec<usize>,
    /// Flows being served: rate in bytes per second.
    served: Vec<(usize, f64)>,
    /// Per link: what is not given away.
    free: Vec<f64>,
}

/// Below this share of a link nothing is left of it but rounding.
const CRUMB: f64 = 1e-9;

impl<'a> Greedy<'a> {
    fn new(policy: Policy, capacity: &'a [f64], flows: &'a [Flow]) -> Self {
        let left = flows.iter().map(|flow| flow.wire_bytes as f64).collect();
        let deadline = |flow: &Flow| flow.deadline.map_or(f64::INFINITY, Time::as_secs_f64);
        let key = flows.iter().map(|flow| if policy == Policy::Edf { deadline(flow) } else { 0.0 }).collect();
        Greedy { policy, capacity, flows, left, key, order: Vec::new(), served: Vec::new(), free: capacity.to_vec() }
    }

    fn run(
        mut self,
        arrival: &[f64],
        by_arrival: &[usize],
        mut merp: Option<&mut Tables<'_>>,
        go_on: GoOn<'_>,
    ) -> Option<Vec<f64>> {
        let mut finish = vec![f64::INFINITY; arrival.len()];
        let mut coming = by_arrival.iter().copied().peekable();
        let mut now = 0.0;
        for step in 1.. {
            if step % PATIENCE == 0 && !go_on(now, finish.iter().filter(|end| end.is_finite()).count()) {
                return None;
            }
            let next_arrival = coming.peek().map_or(f64::INFINITY, |&flow| arrival[flow]);
            let end = |&(flow, rate): &(usize, f64)| now + self.left[flow] / rate;
            let until = self.served.iter().map(end).fold(next_arrival, f64::min);
            if until == f64::INFINITY {
                break; // Only flows behind links without capacity are left.
            }
            let mut ended = false;
            for &(flow, rate) in &self.served {
                if now + self.left[flow] / rate <= until {
                    (finish[flow], self.left[flow], ended) = (until, 0.0, true);
                    if let Some(tables) = &mut merp {
                        tables.remove(flow);
                    }
                } else {
                    self.left[flow] = (self.left[flow] - rate * (until - now)).max(0.0);
                    if self.policy == Policy::Srpt {
                        self.key[flow] = self.left[flow];
                    }
                }
            }
            now = until;
            if ended {
                self.order.retain(|&flow| finish[flow] == f64::INFINITY);
            }
            while let Some(flow) = coming.next_if(|&flow| arrival[flow] <= now) {
                if self.flows[flow].path.is_empty() {
                    finish[flow] = now;
                    continue;
                }
                if self.policy == Policy::Srpt {
                    self.key[flow] = self.left[flow];
                }
                self.order.push(flow);
                if let Some(tables) = &mut merp {
                    tables.insert(flow);
                }
            }
            if let Some(tables) = &mut merp {
                tables.update(now, &self.left, &mut self.key);
            }
            self.sort(arrival);
            self.allocate();
        }
        Some(finish)
    }

    /// Insertion sort: the order is the old one but for a few flows.
    fn sort(&mut self, arrival: &[f64]) {
        let before = |a: usize, b: usize| (self.key[a], arrival[a], a) < (self.key[b], arrival[b], b);
        for i in 1..self.order.len() {
            let flow = self.order[i];
            let mut place = i;
            while place > 0 && before(flow, self.order[place - 1]) {
                self.order[place] = self.order[place - 1];
                place -= 1;
            }
            self.order[place] = flow;
        }
    }

    /// Gives each flow in turn what is left on its path.
    fn allocate(&mut self) {
        self.free.copy_from_slice(self.capacity);
        self.served.clear();
        let mut open = self.capacity.iter().filter(|&&c| c > 0.0).count();
        for &flow in &self.order {
            let path = &self.flows[flow].path;
            let rate = path.iter().map(|&link| self.free[link]).fold(f64::INFINITY, f64::min);
            if rate <= 0.0 {
                continue;
            }
            self.served.push((flow, rate));
            for &link in path {
                self.free[link] -= rate;
                if self.free[link] <= CRUMB * self.capacity[link] {
                    self.free[link] = 0.0;
                    open -= 1;
                }
            }
            if open == 0 {
                return;
            }
        }
    }
}

/// MERP's flow tables, one per link.
struct Tables<'a> {
    capacity: &'a [Rate],
    flows: &'a [Flow],
    /// Per link: the flows that cross it.
    members: Vec<Vec<usize>>,
    /// Per flow and link of its path: `vdl - arrival` in ps, as VDG last had it.
    expected: Vec<Vec<u64>>,
    /// Links with new flows.
    fresh: Vec<usize>,
    entries: Vec<vdg::Entry>,
    placed: Vec<vdg::Placed>,
    scratch: vdg::Scratch,
}

impl<'a> Tables<'a> {
    fn new(capacity: &'a [Rate], flows: &'a [Flow]) -> Self {
        Tables {
            capacity,
            flows,
            members: vec![Vec::new(); capacity.len()],
            expected: flows.iter().map(|flow| vec![0; flow.path.len()]).collect(),
            fresh: Vec::new(),
            entries: Vec::new(),
            placed: Vec::new(),
            scratch: vdg::Scratch::default(),
        }
    }

    fn insert(&mut self, flow: usize) {
        for &link in &self.flows[flow].path {
            self.members[link].push(flow);
            if !self.fresh.contains(&link) {
                self.fresh.push(link);
            }
        }
    }

    fn remove(&mut self, flow: usize) {
        for &link in &self.flows[flow].path {
            self.members[link].retain(|&other| other != flow);
        }
    }

    /// Runs VDG where flows arrived (Alg. 1 l. 3-5) and puts the virtual deadlines into `key`.
    fn update(&mut self, now: f64, left: &[f64], key: &mut [f64]) {
        let now = Time((now * 1e12) as u64);
        for link in self.fresh.drain(..) {
            if self.capacity[link] == Rate(0) {
                continue;
            }
            let entry = |&flow: &usize| {
                let &Flow { arrival, wire_bytes, .. } = &self.flows[flow];
                vdg::Entry { size: wire_bytes, rs: base::math::ceil(left[flow]) as u64, arrived: arrival.min(now), id: flow as u32 }
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
                // Alg. 1 l. 9-11: the smallest expected rate on the path counts, which is the largest expected time.
                let longest = self.expected[flow].iter().copied().max().unwrap_or(0);
                key[flow] = (arrived.ps() + longest) as f64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fluid::link;
    use base::Rng;

    /// A byte per nanosecond.
    const GIGABYTE: Rate = Rate(8_000_000_000);

    fn flow(arrival_ns: u64, wire_bytes: u64, path: &[usize]) -> Flow {
        Flow { arrival: Time(arrival_ns * 1000), wire_bytes, path: path.to_vec(), deadline: None }
    }

    fn in_seconds(policy: Policy, capacity: &[Rate], flows: &[Flow]) -> Vec<f64> {
        finish_times(policy, capacity, flows, &mut |_, _| true).unwrap()
    }

    fn finish_ns(policy: Policy, capacity: &[Rate], flows: &[Flow]) -> Vec<f64> {
        in_seconds(policy, capacity, flows).iter().map(|t| (t * 1e12).round() / 1e3).collect()
    }

    #[test]
    fn one_link_is_the_one_link_schedule() {
        let mut rng = Rng::stream(1, "fluid/one", &[]);
        for _ in 0..200 {
            let draw = |rng: &mut Rng| {
                let deadline = Some(Time(1000 * rng.below(90_000)));
                Flow { deadline, ..flow(rng.below(30_000), 1 + rng.below(5000), &[0]) }
            };
            let flows: Vec<Flow> = (0..1 + rng.below(12)).map(|_| draw(&mut rng)).collect();
            let job = |f: &Flow| link::Job {
                arrival: f.arrival.as_secs_f64(),
                size: f.wire_bytes as f64,
                deadline: f.deadline.map(Time::as_secs_f64),
            };
            let jobs: Vec<_> = flows.iter().map(job).collect();
            for policy in Policy::ALL {
                let network = in_seconds(policy, &[GIGABYTE], &flows);
                let alone = link::finish_times(policy, &1e9, &jobs).unwrap();
                for (a, b) in network.iter().zip(&alone) {
                    assert!((a - b).abs() < 2e-9, "{policy:?} {network:?} {alone:?} {flows:?}");
                }
            }
        }
    }

    #[test]
    fn a_flow_waits_for_all_its_links() {
        // The long flow crosses both links; the short ones keep one each busy in turn.
        let flows = [flow(0, 1000, &[0, 1]), flow(0, 100, &[0]), flow(50, 100, &[1])];
        assert_eq!(finish_ns(Policy::Srpt, &[GIGABYTE; 2], &flows), [1150.0, 100.0, 150.0]);
        assert_eq!(finish_ns(Policy::Fcfs, &[GIGABYTE; 2], &flows), [1000.0, 1100.0, 1100.0]);
    }

    #[test]
    fn a_flow_paused_elsewhere_does_not_hold_a_link() {
        // The second flow waits on link 0 until 100 and leaves link 1 to the others; then it goes before the fourth.
        let flows = [flow(0, 100, &[0]), flow(1, 100, &[0, 1]), flow(2, 50, &[1]), flow(3, 100, &[1])];
        assert_eq!(finish_ns(Policy::Fcfs, &[GIGABYTE; 2], &flows), [100.0, 200.0, 52.0, 252.0]);
    }

    #[test]
    fn what_a_flow_cannot_use_goes_to_the_next() {
        let capacity = [Rate(8_000_000_000), Rate(2_000_000_000)];
        let flows = [flow(0, 100, &[0, 1]), flow(0, 300, &[0])];
        assert_eq!(finish_ns(Policy::Srpt, &capacity, &flows), [400.0, 400.0]);
    }

    #[test]
    fn max_min_rates() {
        // Link 0 has 10 and carries flows 0 and 1; link 1 has 4 and carries 1, 2, 3: shares 26/3, 4/3, 4/3, 4/3 bytes per ns.
        let capacity = [Rate(80_000_000_000), Rate(32_000_000_000)];
        let flows = [flow(0, 2600, &[0]), flow(0, 4000, &[0, 1]), flow(0, 400, &[1]), flow(0, 400, &[1])];
        // Flows 0, 2 and 3 end at 300; then flow 1 has link 1 alone with 3600 bytes left.
        assert_eq!(finish_ns(Policy::Ps, &capacity, &flows), [300.0, 1200.0, 300.0, 300.0]);
    }

    #[test]
    fn merp_takes_the_worst_link_of_a_path() {
        // At 60 link 0 puts the new flow (ratio 200/100 at its end) before the old one (260/160), with vdl 160 and 260. On link 1 the new
        // one comes last, with vdl 60 + 249, so the old one goes first.
        let alone = [flow(0, 160, &[0]), flow(60, 100, &[0])];
        let crowded = [alone[0].clone(), flow(60, 100, &[0, 1]), flow(60, 99, &[1]), flow(60, 50, &[1])];
        let order = |flows: &[Flow]| finish_ns(Policy::Merp, &[GIGABYTE; 2], flows);
        assert_eq!(order(&alone), [260.0, 160.0]);
        assert_eq!(order(&crowded), [160.0, 309.0, 209.0, 110.0]);
    }

    #[test]
    fn degenerate_input() {
        for policy in Policy::ALL {
            let flows = [flow(7, 10, &[]), flow(0, 10, &[1]), flow(0, 10, &[0])];
            let finish = in_seconds(policy, &[GIGABYTE, Rate(0)], &flows);
            assert_eq!(finish[1], f64::INFINITY);
            assert!((finish[0] - 7e-9).abs() < 1e-18 && (finish[2] - 10e-9).abs() < 1e-18);
            assert!(in_seconds(policy, &[], &[]).is_empty());
        }
    }

    #[test]
    fn who_asks_to_stop_gets_no_times() {
        let flows: Vec<Flow> = (0..2000).map(|i| flow(10 * i, 10, &[0])).collect();
        for policy in Policy::ALL {
            let mut asked = Vec::new();
            let stopped = finish_times(policy, &[GIGABYTE], &flows, &mut |now, ended| {
                asked.push((now, ended));
                asked.len() < 2
            });
            assert_eq!((stopped, asked.len()), (None, 2), "{policy:?}");
            assert!(asked[0].0 < asked[1].0 && asked[0].1 < asked[1].1, "{asked:?}");
        }
    }

    #[test]
    fn a_big_switch_keeps_the_ends() {
        let flows = [flow(0, 1, &[0, 4, 5, 1]), flow(0, 1, &[2, 3]), flow(0, 1, &[2])];
        let paths: Vec<Vec<usize>> = big_switch(&flows).into_iter().map(|f| f.path).collect();
        assert_eq!(paths, [vec![0, 1], vec![2, 3], vec![2]]);
    }

    /// Links of a tree of 3 racks with 3 hosts: NICs 0-8, down to hosts 9-17, ToR up 18-20, down 21-23. Pareto sizes in whole packets, load
    /// against the uplinks.
    fn single_tree(seed: u64, n: usize, load: f64, shape: f64, mean: f64) -> Vec<Flow> {
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
            Flow { arrival: Time((now * 1e12) as u64), wire_bytes, path, deadline: None }
        };
        (0..n).map(draw).collect()
    }

    /// Mean FCT in ms and largest expansion ratio.
    fn summary(policy: Policy, flows: &[Flow]) -> (f64, f64) {
        let finish = in_seconds(policy, &[Rate::from_gbps(1); 24], flows);
        let fct = |(end, flow): (&f64, &Flow)| end - flow.arrival.as_secs_f64();
        let all: Vec<f64> = finish.iter().zip(flows).map(fct).collect();
        let ratios = all.iter().zip(flows).map(|(fct, flow)| fct * 1e9 / (8.0 * flow.wire_bytes as f64));
        assert!(ratios.clone().all(|ratio| ratio > 1.0 - 1e-6));
        (1e3 * all.iter().sum::<f64>() / all.len() as f64, ratios.fold(0.0, f64::max))
    }

    /// What the paper claims against SRPT holds in the fluid: a much smaller largest expansion ratio for a slightly larger mean.
    #[test]
    fn merp_trades_a_little_mean_for_the_largest_ratio() {
        for seed in 1..=3 {
            let flows = single_tree(seed, 4000, 0.8, 1.8, 1.5e6);
            let [srpt, merp, ps] = [Policy::Srpt, Policy::Merp, Policy::Ps].map(|policy| summary(policy, &flows));
            assert!(srpt.0 < merp.0 && merp.0 < 1.15 * srpt.0 && merp.0 < ps.0, "mean {srpt:?} {merp:?} {ps:?}");
            assert!(merp.1 < 0.8 * srpt.1, "largest ratio {srpt:?} {merp:?} {ps:?}");
            let bound = summary(Policy::Srpt, &big_switch(&flows));
            assert!(bound.0 < srpt.0, "mean in a big switch {bound:?} {srpt:?}");
        }
    }
}

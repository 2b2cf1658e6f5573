//! A network: finish times of flows that each take one path.
//!
//! Source: the calibration of MERP against ideal SRPT and fair sharing (docs/model.md); pFabric (SIGCOMM 2013) section 3 for the greedy
//! order and the big switch.
//!
//! Model: no packets, no latency, no headers beyond the bytes given, instant control. [`Ideal::Ps`] is max-min fair. Every other ideal
//! visits the flows in its order, and each flow takes the capacity that earlier flows leave on all of its links: with equal capacities one
//! flow at a time per link, at full rate.
//!
//! Assumed: MERP runs VDG at each link of an arriving flow, and orders flows by the largest `vdl - arrival` among the links of a path. Ties
//! are broken by arrival, then by index. Under STAM a flow without a deadline goes first if it may on every link of its path.
//!
//! Deviates: where capacities differ, a flow that cannot fill a link does not block it; the next flow in order uses the rest, as in a
//! network of priority queues.

use super::flow::{Arrivals, Flow, GoOn, PATIENCE};
use super::max_min;
use super::order::{Arrival, Deadline, Key, Order, Remaining, Size, Slack, VirtualDeadlines};
use base::Rate;
use scenario::Ideal;

/// When each flow ends, in seconds; infinity behind a link without capacity. `capacity` is per link. `None` if `go_on` returned false.
pub fn finish_times(ideal: Ideal, capacity: &[Rate], flows: &[Flow], go_on: GoOn<'_>) -> Option<Vec<f64>> {
    let bytes_per_sec: Vec<f64> = capacity.iter().map(|rate| rate.bps() as f64 / 8.0).collect();
    let greedy = || Greedy::new(&bytes_per_sec, flows);
    match ideal {
        Ideal::Ps => max_min::run(&bytes_per_sec, flows, go_on),
        Ideal::Srpt => greedy().run(&mut Remaining, go_on),
        Ideal::Fcfs => greedy().run(&mut Arrival, go_on),
        Ideal::Edf => greedy().run(&mut Deadline { flows, by_size: false }, go_on),
        Ideal::Sjf => greedy().run(&mut Size(flows), go_on),
        Ideal::EdfSjf => greedy().run(&mut Deadline { flows, by_size: true }, go_on),
        Ideal::Stam => greedy().run(&mut Slack::new(&bytes_per_sec, flows), go_on),
        Ideal::Merp => greedy().run(&mut VirtualDeadlines::new(capacity, flows), go_on),
        Ideal::BigSwitch => finish_times(Ideal::Srpt, capacity, &big_switch(flows), go_on),
    }
}

/// The same flows in one big switch: each path is reduced to its first and last link, those of the hosts. An order that is optimal there
/// bounds all networks of these hosts.
pub fn big_switch(flows: &[Flow]) -> Vec<Flow> {
    let ends = |path: &[usize]| match path {
        [first, .., last] => vec![*first, *last],
        short => short.to_vec(),
    };
    flows.iter().map(|flow| Flow { path: ends(&flow.path), ..flow.clone() }).collect()
}

/// Serves flows in order, each as fast as earlier flows allow.
struct Greedy<'a> {
    /// Bytes per second.
    capacity: &'a [f64],
    flows: &'a [Flow],
    /// Per flow: remaining bytes.
    left: Vec<f64>,
    /// Per flow: the key of the order.
    key: Vec<Key>,
    /// Flows in the system, the first to serve first.
    order: Vec<usize>,
    /// Flows being served: rate in bytes per second.
    served: Vec<(usize, f64)>,
    /// Per link: unused capacity.
    free: Vec<f64>,
}

/// Unused capacity below this share of a link is rounding error.
const CRUMB: f64 = 1e-9;

impl<'a> Greedy<'a> {
    fn new(capacity: &'a [f64], flows: &'a [Flow]) -> Self {
        let left = flows.iter().map(|flow| flow.wire_bytes as f64).collect();
        let (key, free) = (vec![(0, 0.0); flows.len()], capacity.to_vec());
        Greedy { capacity, flows, left, key, order: Vec::new(), served: Vec::new(), free }
    }

    fn run(mut self, order: &mut impl Order, go_on: GoOn<'_>) -> Option<Vec<f64>> {
        let mut finish = vec![f64::INFINITY; self.flows.len()];
        let mut arrivals = Arrivals::new(self.flows);
        let mut now = 0.0;
        for step in 1.. {
            if step % PATIENCE == 0 && !go_on(now, finish.iter().filter(|end| end.is_finite()).count()) {
                return None;
            }
            let end = |&(flow, rate): &(usize, f64)| now + self.left[flow] / rate;
            let until = self.served.iter().map(end).fold(arrivals.next().min(order.changes()), f64::min);
            if until == f64::INFINITY {
                break; // Only flows behind links without capacity remain.
            }
            let mut ended = false;
            for &(flow, rate) in &self.served {
                if now + self.left[flow] / rate <= until {
                    (finish[flow], self.left[flow], ended) = (until, 0.0, true);
                    order.on_end(flow);
                    arrivals.on_end(flow, until);
                } else {
                    self.left[flow] = (self.left[flow] - rate * (until - now)).max(0.0);
                }
            }
            now = until;
            if ended {
                self.order.retain(|&flow| finish[flow] == f64::INFINITY);
            }
            while let Some(flow) = arrivals.take(now) {
                if self.flows[flow].path.is_empty() {
                    finish[flow] = now;
                    arrivals.on_end(flow, now);
                    continue;
                }
                self.order.push(flow);
                order.on_arrival(flow, arrivals.at(flow), &mut self.key);
            }
            order.rank(now, &self.order, &self.left, &mut self.key);
            self.sort(&arrivals);
            self.allocate();
        }
        Some(finish)
    }

    /// Insertion sort: few flows have changed places since the last call.
    fn sort(&mut self, arrivals: &Arrivals<'_>) {
        let before = |a: usize, b: usize| (self.key[a], arrivals.at(a), a) < (self.key[b], arrivals.at(b), b);
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

    /// Gives each flow, in order, the unused capacity of its path.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fluid::flow::Wait;
    use crate::fluid::link;
    use base::{Rng, Time};

    /// A byte per nanosecond.
    const GIGABYTE: Rate = Rate(8_000_000_000);

    fn flow(arrival_ns: u64, wire_bytes: u64, path: &[usize]) -> Flow {
        Flow { arrival: Time(arrival_ns * 1000), wire_bytes, path: path.to_vec(), deadline: None, wait: None }
    }

    fn in_seconds(ideal: Ideal, capacity: &[Rate], flows: &[Flow]) -> Vec<f64> {
        finish_times(ideal, capacity, flows, &mut |_, _| true).unwrap()
    }

    fn finish_ns(ideal: Ideal, capacity: &[Rate], flows: &[Flow]) -> Vec<f64> {
        in_seconds(ideal, capacity, flows).iter().map(|t| (t * 1e12).round() / 1e3).collect()
    }

    #[test]
    fn one_link_is_the_one_link_schedule() {
        let mut rng = Rng::stream(1, "fluid/one", &[]);
        for _ in 0..200 {
            let draw = |rng: &mut Rng| {
                let deadline = (rng.below(3) > 0).then(|| Time(1000 * rng.below(90_000)));
                Flow { deadline, ..flow(rng.below(30_000), 1 + rng.below(5000), &[0]) }
            };
            let flows: Vec<Flow> = (0..1 + rng.below(12)).map(|_| draw(&mut rng)).collect();
            let job = |f: &Flow| link::Job {
                arrival: f.arrival.as_secs_f64(),
                size: f.wire_bytes as f64,
                deadline: f.deadline.map(Time::as_secs_f64),
            };
            let jobs: Vec<_> = flows.iter().map(job).collect();
            for ideal in Ideal::ALL {
                let network = in_seconds(ideal, &[GIGABYTE], &flows);
                let alone = link::finish_times(ideal, &1e9, &jobs).unwrap();
                for (a, b) in network.iter().zip(&alone) {
                    assert!((a - b).abs() < 2e-9, "{ideal:?} {network:?} {alone:?} {flows:?}");
                }
            }
        }
    }

    #[test]
    fn flows_may_wait_for_the_ends_of_others() {
        let wait = |on: &[(usize, f64)]| Some(Wait { on: on.to_vec(), not_before: 0.0, give_up_after: None, allowed: Some(1e-6) });
        // The third flow comes 50 ns after the first ended at 100 and the second at 300; a flow of the other link ends at 400.
        let flows = [
            flow(0, 100, &[0]),
            flow(100, 200, &[0]),
            Flow { wait: wait(&[(0, 1e-9), (1, 50e-9)]), ..flow(0, 100, &[0]) },
            flow(0, 400, &[1]),
            Flow { wait: wait(&[(2, 0.0)]), ..flow(0, 10, &[1]) },
        ];
        for ideal in Ideal::ALL {
            assert_eq!(finish_ns(ideal, &[GIGABYTE; 2], &flows), [100.0, 300.0, 450.0, 400.0, 460.0], "{ideal:?}");
        }
    }

    #[test]
    fn a_flow_may_give_up_on_others() {
        // The third flow comes 20 ns after the first ended at 100, since the second, which ends at 600, is 90 ns old by then.
        let wait = Wait { on: vec![(0, 20e-9), (1, 0.0)], not_before: 0.0, give_up_after: Some(vec![1e-6, 90e-9]), allowed: None };
        let flows = [flow(0, 100, &[0]), flow(10, 590, &[1]), Flow { wait: Some(wait), ..flow(0, 100, &[0]) }];
        for ideal in Ideal::ALL {
            assert_eq!(finish_ns(ideal, &[GIGABYTE; 2], &flows), [100.0, 600.0, 220.0], "{ideal:?}");
        }
    }

    #[test]
    fn a_flow_waits_for_all_its_links() {
        // The long flow crosses both links; the short ones keep one each busy in turn.
        let flows = [flow(0, 1000, &[0, 1]), flow(0, 100, &[0]), flow(50, 100, &[1])];
        assert_eq!(finish_ns(Ideal::Srpt, &[GIGABYTE; 2], &flows), [1150.0, 100.0, 150.0]);
        assert_eq!(finish_ns(Ideal::Fcfs, &[GIGABYTE; 2], &flows), [1000.0, 1100.0, 1100.0]);
    }

    #[test]
    fn a_flow_paused_elsewhere_does_not_hold_a_link() {
        // The second flow waits on link 0 until 100 and leaves link 1 to the others; then it goes before the fourth.
        let flows = [flow(0, 100, &[0]), flow(1, 100, &[0, 1]), flow(2, 50, &[1]), flow(3, 100, &[1])];
        assert_eq!(finish_ns(Ideal::Fcfs, &[GIGABYTE; 2], &flows), [100.0, 200.0, 52.0, 252.0]);
    }

    #[test]
    fn what_a_flow_cannot_use_goes_to_the_next() {
        let capacity = [Rate(8_000_000_000), Rate(2_000_000_000)];
        let flows = [flow(0, 100, &[0, 1]), flow(0, 300, &[0])];
        assert_eq!(finish_ns(Ideal::Srpt, &capacity, &flows), [400.0, 400.0]);
    }

    #[test]
    fn max_min_rates() {
        // Link 0 has 10 and carries flows 0 and 1; link 1 has 4 and carries 1, 2, 3: shares 26/3, 4/3, 4/3, 4/3 bytes per ns.
        let capacity = [Rate(80_000_000_000), Rate(32_000_000_000)];
        let flows = [flow(0, 2600, &[0]), flow(0, 4000, &[0, 1]), flow(0, 400, &[1]), flow(0, 400, &[1])];
        // Flows 0, 2 and 3 end at 300; then flow 1 has link 1 alone with 3600 bytes left.
        assert_eq!(finish_ns(Ideal::Ps, &capacity, &flows), [300.0, 1200.0, 300.0, 300.0]);
    }

    #[test]
    fn merp_takes_the_worst_link_of_a_path() {
        // At 60 link 0 puts the new flow (ratio 200/100 at its end) before the old one (260/160), with vdl 160 and 260. On link 1 the new
        // one comes last, with vdl 60 + 249, so the old one goes first.
        let alone = [flow(0, 160, &[0]), flow(60, 100, &[0])];
        let crowded = [alone[0].clone(), flow(60, 100, &[0, 1]), flow(60, 99, &[1]), flow(60, 50, &[1])];
        let order = |flows: &[Flow]| finish_ns(Ideal::Merp, &[GIGABYTE; 2], flows);
        assert_eq!(order(&alone), [260.0, 160.0]);
        assert_eq!(order(&crowded), [160.0, 309.0, 209.0, 110.0]);
    }

    #[test]
    fn degenerate_input() {
        for ideal in Ideal::ALL {
            let flows = [flow(7, 10, &[]), flow(0, 10, &[1]), flow(0, 10, &[0])];
            let finish = in_seconds(ideal, &[GIGABYTE, Rate(0)], &flows);
            assert_eq!(finish[1], f64::INFINITY);
            assert!((finish[0] - 7e-9).abs() < 1e-18 && (finish[2] - 10e-9).abs() < 1e-18);
            assert!(in_seconds(ideal, &[], &[]).is_empty());
        }
    }

    #[test]
    fn who_asks_to_stop_gets_no_times() {
        let flows: Vec<Flow> = (0..2000).map(|i| flow(10 * i, 10, &[0])).collect();
        for ideal in Ideal::ALL {
            let mut asked = Vec::new();
            let stopped = finish_times(ideal, &[GIGABYTE], &flows, &mut |now, ended| {
                asked.push((now, ended));
                asked.len() < 2
            });
            assert_eq!((stopped, asked.len()), (None, 2), "{ideal:?}");
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
            Flow { arrival: Time((now * 1e12) as u64), wire_bytes, path, deadline: None, wait: None }
        };
        (0..n).map(draw).collect()
    }

    /// Mean FCT in ms and maximum expansion ratio.
    fn summary(ideal: Ideal, flows: &[Flow]) -> (f64, f64) {
        let finish = in_seconds(ideal, &[Rate::from_gbps(1); 24], flows);
        let fct = |(end, flow): (&f64, &Flow)| end - flow.arrival.as_secs_f64();
        let all: Vec<f64> = finish.iter().zip(flows).map(fct).collect();
        let ratios = all.iter().zip(flows).map(|(fct, flow)| fct * 1e9 / (8.0 * flow.wire_bytes as f64));
        assert!(ratios.clone().all(|ratio| ratio > 1.0 - 1e-6));
        (1e3 * all.iter().sum::<f64>() / all.len() as f64, ratios.fold(0.0, f64::max))
    }

    /// The paper's claim against SRPT holds in the fluid: a much smaller maximum expansion ratio for a slightly larger mean FCT.
    #[test]
    fn merp_trades_a_little_mean_for_the_largest_ratio() {
        for seed in 1..=3 {
            let flows = single_tree(seed, 4000, 0.8, 1.8, 1.5e6);
            let [srpt, merp, ps] = [Ideal::Srpt, Ideal::Merp, Ideal::Ps].map(|ideal| summary(ideal, &flows));
            assert!(srpt.0 < merp.0 && merp.0 < 1.15 * srpt.0 && merp.0 < ps.0, "mean {srpt:?} {merp:?} {ps:?}");
            assert!(merp.1 < 0.8 * srpt.1, "largest ratio {srpt:?} {merp:?} {ps:?}");
            let bound = summary(Ideal::Srpt, &big_switch(&flows));
            assert!(bound.0 < srpt.0, "mean in a big switch {bound:?} {srpt:?}");
        }
    }
}

//! A network: finish times of flows that take one path each.
//!
//! Model: no packets, no latency, no headers beyond the given bytes, instant control. The flows are
//! visited in order, and each flow takes the capacity that earlier flows leave on all of its links:
//! with equal capacities one flow at a time per link, at full rate.
//!
//! Assumed: ties are broken by arrival, then by index.
//!
//! Deviates: where capacities differ, a flow that cannot fill a link does not block it; the next
//! flow in the order uses the rest, as in a network of priority queues.

use super::flow::{Arrivals, FluidFlow, FluidJoin, GoOn, PATIENCE};
use super::max_min;
use base::Rate;

/// The key by which flows are served, smallest first: a class, and a number within the class.
pub type Key = (u8, f64);

/// An order: the flow with the smallest key in the network is served first. Keys are initially
/// zero.
pub trait Order {
    /// A flow arrives at `at` seconds.
    fn on_arrival(&mut self, _flows: &[FluidFlow], _flow: usize, _at: f64, _key: &mut [Key]) {}
    /// A flow ends.
    fn on_end(&mut self, _flow: usize) {}
    /// Updates the keys of the `active` flows after flows have arrived, ended or been served.
    /// `left` are the remaining bytes.
    fn rank(&mut self, _now: f64, _active: &[usize], _left: &[f64], _key: &mut [Key]) {}
    /// Returns when keys may change next without an arrival or an end, as of the last call of
    /// `rank`; infinity if they do not.
    fn changes(&self) -> f64 {
        f64::INFINITY
    }
}

/// The links of a network and the flows that they serve.
#[derive(Clone, Copy, Debug)]
pub struct Network<'a> {
    /// The rate of each link.
    pub capacity: &'a [Rate],
    /// The flows.
    pub flows: &'a [FluidFlow],
    /// The joins for which flows wait.
    pub joins: &'a [FluidJoin],
}

impl Network<'_> {
    /// Returns the bytes per second of each link.
    pub fn bytes_per_sec(&self) -> Vec<f64> {
        self.capacity.iter().map(|rate| rate.bps() as f64 / 8.0).collect()
    }
    /// Serves the flows in an order. Returns when each flow ends, in seconds; infinity if its path
    /// has a link without capacity. `None` if `go_on` returned false.
    pub fn serve(self, order: &mut impl Order, go_on: GoOn<'_>) -> Option<Vec<f64>> {
        Greedy::new(&self.bytes_per_sec(), self.flows).run(Arrivals::new(self.flows, self.joins), order, go_on)
    }
    /// Serves the flows with max-min fair rates; returns like [`Network::serve`].
    pub fn share(self, go_on: GoOn<'_>) -> Option<Vec<f64>> {
        max_min::run(&self.bytes_per_sec(), self.flows, self.joins, go_on)
    }
}

/// Serves flows in order, each as fast as earlier flows allow.
struct Greedy<'a> {
    /// Bytes per second.
    capacity: &'a [f64],
    flows: &'a [FluidFlow],
    /// The remaining bytes of each flow.
    left: Vec<f64>,
    /// The key of each flow.
    key: Vec<Key>,
    /// The flows in the system, in the order of service.
    order: Vec<usize>,
    /// The flows being served, with their rates in bytes per second.
    served: Vec<(usize, f64)>,
    /// The unused capacity of each link.
    free: Vec<f64>,
}

/// Unused capacity below this fraction of a link is a rounding error.
const CRUMB: f64 = 1e-9;

impl<'a> Greedy<'a> {
    fn new(capacity: &'a [f64], flows: &'a [FluidFlow]) -> Self {
        let left = flows.iter().map(|flow| flow.wire_bytes as f64).collect();
        let (key, free) = (vec![(0, 0.0); flows.len()], capacity.to_vec());
        Greedy { capacity, flows, left, key, order: Vec::new(), served: Vec::new(), free }
    }

    fn run(mut self, mut arrivals: Arrivals<'_>, order: &mut impl Order, go_on: GoOn<'_>) -> Option<Vec<f64>> {
        let mut finish = vec![f64::INFINITY; self.flows.len()];
        let mut now = 0.0;
        for step in 1.. {
            if step % PATIENCE == 0 && !go_on(now, finish.iter().filter(|end| end.is_finite()).count()) {
                return None;
            }
            let end = |&(flow, rate): &(usize, f64)| now + self.left[flow] / rate;
            let until = self.served.iter().map(end).fold(arrivals.next().min(order.changes()), f64::min);
            if until == f64::INFINITY {
                break; // Only flows whose paths have a link without capacity remain.
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
                order.on_arrival(self.flows, flow, arrivals.at(flow), &mut self.key);
            }
            order.rank(now, &self.order, &self.left, &mut self.key);
            self.sort(&arrivals);
            self.allocate();
        }
        Some(finish)
    }

    /// Insertion sort: only few flows have changed places since the last call.
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

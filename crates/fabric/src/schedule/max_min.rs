//! Max-min fair sharing. Flows with the same path have the same rate, so the work per event grows
//! with the number of paths in use, not with the number of flows.

use super::flow::{Arrivals, FluidFlow, FluidJoin, GoOn, PATIENCE};
use base::Time;
use std::collections::BTreeMap;

/// The flows of one path.
struct Class {
    path: Vec<usize>,
    /// Bytes served of each flow since the class was last empty.
    attained: f64,
    /// Rate of each flow in bytes per second.
    rate: f64,
    /// For each flow: the value of `attained` at which it ends, and the flow. The next flow to end
    /// is last.
    ends: Vec<(f64, usize)>,
    frozen: bool,
}

/// Returns the rates of flows that all send at the same time, given by their paths of link indices,
/// in the unit of the capacities. The rate of a flow without links is 0.
pub fn rates(capacity: &[f64], paths: Vec<Vec<usize>>) -> Vec<f64> {
    let flow = |path| FluidFlow { arrival: Time::ZERO, wire_bytes: 1, path, deadline: None, wait: None };
    let flows: Vec<FluidFlow> = paths.into_iter().map(flow).collect();
    let mut sharing = Sharing::new(capacity);
    let class_of = sharing.classify(&flows);
    for (flow, class) in class_of.iter().enumerate() {
        sharing.classes[*class].ends.push((0.0, flow));
    }
    sharing.active = (0..sharing.classes.len()).filter(|class| !sharing.classes[*class].path.is_empty()).collect();
    sharing.fill();
    class_of.into_iter().map(|class| sharing.classes[class].rate).collect()
}

struct Sharing<'a> {
    /// Bytes per second.
    capacity: &'a [f64],
    classes: Vec<Class>,
    /// The classes with flows, in order.
    active: Vec<usize>,
    /// The active classes that cross each link.
    crossing: Vec<Vec<usize>>,
    /// The links that are crossed by an active class and are not full.
    open: Vec<usize>,
    /// For each link: the number of flows that are not frozen yet, and the capacity that frozen
    /// flows leave.
    load: Vec<usize>,
    free: Vec<f64>,
}

/// Returns when each flow ends, in seconds; `None` if `go_on` returned false.
pub(super) fn run(capacity: &[f64], flows: &[FluidFlow], joins: &[FluidJoin], go_on: GoOn<'_>) -> Option<Vec<f64>> {
    let mut sharing = Sharing::new(capacity);
    let class_of = sharing.classify(flows);
    let mut finish = vec![f64::INFINITY; flows.len()];
    let mut arrivals = Arrivals::new(flows, joins);
    let mut now = 0.0;
    for step in 1.. {
        if step % PATIENCE == 0 && !go_on(now, finish.iter().filter(|end| end.is_finite()).count()) {
            return None;
        }
        let next_end = sharing.active.iter().filter_map(|&i| Some((sharing.classes[i].next_end(now)?, i)));
        let next_end = next_end.min_by(|a, b| a.0.total_cmp(&b.0));
        let until = next_end.map_or(f64::INFINITY, |(end, _)| end).min(arrivals.next());
        if until == f64::INFINITY {
            break; // Only flows whose paths have a link without capacity remain.
        }
        for &class in &sharing.active {
            let class = &mut sharing.classes[class];
            class.attained += class.rate * (until - now);
        }
        now = until;
        if let Some((_, index)) = next_end.filter(|&(end, _)| end <= now) {
            let class = &mut sharing.classes[index];
            if let Some((end, flow)) = class.ends.pop() {
                finish[flow] = now;
                arrivals.on_end(flow, now);
                class.attained = if class.ends.is_empty() { 0.0 } else { end };
            }
            if class.ends.is_empty() {
                sharing.active.retain(|&other| other != index);
            }
        }
        while let Some(flow) = arrivals.take(now) {
            if flows[flow].path.is_empty() {
                finish[flow] = now;
                arrivals.on_end(flow, now);
                continue;
            }
            let class = &mut sharing.classes[class_of[flow]];
            if class.ends.is_empty() {
                let place = sharing.active.partition_point(|&other| other < class_of[flow]);
                sharing.active.insert(place, class_of[flow]);
            }
            let end = class.attained + flows[flow].wire_bytes as f64;
            let place = class.ends.partition_point(|&other| other > (end, flow));
            class.ends.insert(place, (end, flow));
        }
        sharing.fill();
    }
    Some(finish)
}

impl Class {
    /// Returns when the next flow of the class ends at the present rate.
    fn next_end(&self, now: f64) -> Option<f64> {
        let &(end, _) = self.ends.last()?;
        (self.rate > 0.0).then(|| now + (end - self.attained).max(0.0) / self.rate)
    }
}

impl<'a> Sharing<'a> {
    /// Returns a state without flows.
    fn new(capacity: &'a [f64]) -> Sharing<'a> {
        Sharing {
            capacity,
            classes: Vec::new(),
            active: Vec::new(),
            open: Vec::new(),
            crossing: vec![Vec::new(); capacity.len()],
            load: vec![0; capacity.len()],
            free: vec![0.0; capacity.len()],
        }
    }

    /// Creates one class per path. Returns the class of each flow.
    fn classify(&mut self, flows: &[FluidFlow]) -> Vec<usize> {
        let mut known: BTreeMap<&[usize], usize> = BTreeMap::new();
        let mut class_of = Vec::with_capacity(flows.len());
        for flow in flows {
            let class = *known.entry(&flow.path).or_insert_with(|| {
                self.classes.push(Class { path: flow.path.clone(), attained: 0.0, rate: 0.0, ends: Vec::new(), frozen: false });
                self.classes.len() - 1
            });
            class_of.push(class);
        }
        class_of
    }

    /// Progressive filling: all rates increase together, and the rates of flows through a link stop
    /// increasing when the link is full.
    fn fill(&mut self) {
        self.load.fill(0);
        self.free.copy_from_slice(self.capacity);
        self.crossing.iter_mut().for_each(Vec::clear);
        for &index in &self.active {
            let class = &mut self.classes[index];
            (class.frozen, class.rate) = (false, 0.0);
            for &link in &class.path {
                self.load[link] += class.ends.len();
                self.crossing[link].push(index);
            }
        }
        self.open.clear();
        self.open.extend((0..self.load.len()).filter(|&link| self.load[link] > 0));
        loop {
            let share = |link: usize| self.free[link].max(0.0) / self.load[link] as f64;
            let next = self.open.iter().map(|&link| (share(link), link)).min_by(|a, b| a.0.total_cmp(&b.0));
            let Some((rate, full)) = next else { return };
            for &class in &self.crossing[full] {
                let class = &mut self.classes[class];
                if !class.frozen {
                    (class.frozen, class.rate) = (true, rate);
                    for &link in &class.path {
                        self.load[link] -= class.ends.len();
                        self.free[link] -= rate * class.ends.len() as f64;
                    }
                }
            }
            self.open.retain(|&link| self.load[link] > 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_fill_the_links() {
        // Server 0 has 10 and carries flows 0 and 1; link 1 has 4 and carries 1, 2 and 3. The last
        // flow has no link.
        let rates = rates(&[10.0, 4.0, 7.0], vec![vec![0], vec![0, 1], vec![1], vec![1], vec![]]);
        let third = 4.0 / 3.0;
        for (rate, expected) in rates.iter().zip([10.0 - third, third, third, third, 0.0]) {
            assert!((rate - expected).abs() < 1e-12, "{rates:?}");
        }
    }
}

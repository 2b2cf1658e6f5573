//! Max-min fair sharing. Flows of one path have one rate, so the work per event grows with the paths in use, not with the flows.

use super::network::{Flow, GoOn, PATIENCE};
use std::collections::BTreeMap;

/// The flows of one path.
struct Class {
    path: Vec<usize>,
    /// Bytes that each has been sent since the class was last empty.
    attained: f64,
    /// Bytes per second of each.
    rate: f64,
    /// What `attained` will be when a flow ends, and the flow; the next to end is last.
    ends: Vec<(f64, usize)>,
    frozen: bool,
}

struct Sharing<'a> {
    /// Bytes per second.
    capacity: &'a [f64],
    classes: Vec<Class>,
    /// Per link: the classes that cross it.
    crossing: Vec<Vec<usize>>,
    /// Per link: flows not frozen yet, and what the frozen ones leave.
    load: Vec<usize>,
    free: Vec<f64>,
}

/// When each flow ends, in seconds; `None` when `go_on` says no. `by_arrival` are the flows in the order of their arrival, at `arrival` seconds.
pub(super) fn run(capacity: &[f64], flows: &[Flow], arrival: &[f64], by_arrival: &[usize], go_on: GoOn<'_>) -> Option<Vec<f64>> {
    let mut sharing = Sharing {
        capacity,
        classes: Vec::new(),
        crossing: vec![Vec::new(); capacity.len()],
        load: vec![0; capacity.len()],
        free: vec![0.0; capacity.len()],
    };
    let class_of = sharing.classify(flows);
    let mut finish = vec![f64::INFINITY; flows.len()];
    let mut coming = by_arrival.iter().copied().peekable();
    let mut now = 0.0;
    for step in 1.. {
        if step % PATIENCE == 0 && !go_on(now, finish.iter().filter(|end| end.is_finite()).count()) {
            return None;
        }
        let next_end = sharing.classes.iter().enumerate().filter_map(|(i, class)| Some((class.next_end(now)?, i)));
        let next_end = next_end.min_by(|a, b| a.0.total_cmp(&b.0));
        let next_arrival = coming.peek().map_or(f64::INFINITY, |&flow| arrival[flow]);
        let until = next_end.map_or(f64::INFINITY, |(end, _)| end).min(next_arrival);
        if until == f64::INFINITY {
            break; // Only flows behind links without capacity are left.
        }
        for class in &mut sharing.classes {
            class.attained += class.rate * (until - now);
        }
        now = until;
        if let Some((_, class)) = next_end.filter(|&(end, _)| end <= now) {
            let class = &mut sharing.classes[class];
            if let Some((end, flow)) = class.ends.pop() {
                finish[flow] = now;
                class.attained = if class.ends.is_empty() { 0.0 } else { end };
            }
        }
        while let Some(flow) = coming.next_if(|&flow| arrival[flow] <= now) {
            if flows[flow].path.is_empty() {
                finish[flow] = now;
                continue;
            }
            let class = &mut sharing.classes[class_of[flow]];
            let end = class.attained + flows[flow].wire_bytes as f64;
            let place = class.ends.partition_point(|&other| other > (end, flow));
            class.ends.insert(place, (end, flow));
        }
        sharing.fill();
    }
    Some(finish)
}

impl Class {
    /// When its next flow ends at the present rate.
    fn next_end(&self, now: f64) -> Option<f64> {
        let &(end, _) = self.ends.last()?;
        (self.rate > 0.0).then(|| now + (end - self.attained).max(0.0) / self.rate)
    }
}

impl Sharing<'_> {
    /// Makes one class per path. Returns the class of each flow.
    fn classify(&mut self, flows: &[Flow]) -> Vec<usize> {
        let mut known: BTreeMap<&[usize], usize> = BTreeMap::new();
        let mut class_of = Vec::with_capacity(flows.len());
        for flow in flows {
            let class = *known.entry(&flow.path).or_insert_with(|| {
                let path = flow.path.clone();
                for &link in &path {
                    self.crossing[link].push(self.classes.len());
                }
                self.classes.push(Class { path, attained: 0.0, rate: 0.0, ends: Vec::new(), frozen: false });
                self.classes.len() - 1
            });
            class_of.push(class);
        }
        class_of
    }

    /// Progressive filling: all rates rise together; those through a link stop when it is full.
    fn fill(&mut self) {
        self.load.fill(0);
        self.free.copy_from_slice(self.capacity);
        for class in &mut self.classes {
            (class.frozen, class.rate) = (class.ends.is_empty(), 0.0);
            for &link in &class.path {
                self.load[link] += class.ends.len();
            }
        }
        loop {
            let used = (0..self.load.len()).filter(|&link| self.load[link] > 0);
            let share = |link: usize| self.free[link].max(0.0) / self.load[link] as f64;
            let Some((rate, full)) = used.map(|link| (share(link), link)).min_by(|a, b| a.0.total_cmp(&b.0)) else { return };
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
        }
    }
}

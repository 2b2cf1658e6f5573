//! Orders in which the fluid of a network serves its flows.

use super::flow::Flow;
use base::{Rate, Time};
use fabric::agent::merp::vdg;

/// An order: the flow with the smallest key in the system is served first.
pub(super) trait Order {
    /// A flow arrives at `at` seconds.
    fn on_arrival(&mut self, _flow: usize, _at: f64, _key: &mut [f64]) {}
    /// A flow ends.
    fn on_end(&mut self, _flow: usize) {}
    /// Flows have arrived, ended or been served: brings the keys of the `active` up to date. `left` are bytes.
    fn rank(&mut self, _now: f64, _active: &[usize], _left: &[f64], _key: &mut [f64]) {}
}

/// First come, first served: all keys are equal, and flows with equal keys are served by arrival.
pub(super) struct Arrival;

impl Order for Arrival {}

/// The fewest remaining bytes first.
pub(super) struct Remaining;

impl Order for Remaining {
    fn rank(&mut self, _now: f64, active: &[usize], left: &[f64], key: &mut [f64]) {
        active.iter().for_each(|&flow| key[flow] = left[flow]);
    }
}

/// The earliest deadline first; flows without one come last.
pub(super) struct Deadline<'a>(pub &'a [Flow]);

impl Order for Deadline<'_> {
    fn on_arrival(&mut self, flow: usize, at: f64, key: &mut [f64]) {
        let Flow { deadline, wait, .. } = &self.0[flow];
        let deadline = match wait {
            Some(wait) => wait.allowed.map(|allowed| at + allowed),
            None => deadline.map(Time::as_secs_f64),
        };
        key[flow] = deadline.unwrap_or(f64::INFINITY);
    }
}

/// MERP's virtual deadlines: a flow table per link.
pub(super) struct VirtualDeadlines<'a> {
    capacity: &'a [Rate],
    flows: &'a [Flow],
    /// Per flow: its arrival.
    arrived: Vec<Time>,
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

impl<'a> VirtualDeadlines<'a> {
    pub fn new(capacity: &'a [Rate], flows: &'a [Flow]) -> Self {
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
    fn on_arrival(&mut self, flow: usize, at: f64, _key: &mut [f64]) {
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

    /// Runs VDG where flows arrived (Alg. 1 l. 3-5) and puts the virtual deadlines into `key`.
    fn rank(&mut self, now: f64, _active: &[usize], left: &[f64], key: &mut [f64]) {
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
                // Alg. 1 l. 9-11: the smallest expected rate on the path counts, which is the largest expected time.
                let longest = self.expected[flow].iter().copied().max().unwrap_or(0);
                key[flow] = (arrived.ps() + longest) as f64;
            }
        }
    }
}

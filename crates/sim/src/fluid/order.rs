//! Orders in which the fluid of a network serves its flows.

use super::flow::Flow;
use base::{Rate, Time};
use fabric::agent::merp::vdg;

/// What flows are served by, the smallest first: a class, and a number within the class.
pub(super) type Key = (u8, f64);

/// An order: the flow with the smallest key in the system is served first.
pub(super) trait Order {
    /// A flow arrives at `at` seconds.
    fn on_arrival(&mut self, _flow: usize, _at: f64, _key: &mut [Key]) {}
    /// A flow ends.
    fn on_end(&mut self, _flow: usize) {}
    /// Flows have arrived, ended or been served: brings the keys of the `active` up to date. `left` are bytes.
    fn rank(&mut self, _now: f64, _active: &[usize], _left: &[f64], _key: &mut [Key]) {}
    /// When keys may change next without an arrival or an end, as of the last call of `rank`; infinity if they do not.
    fn changes(&self) -> f64 {
        f64::INFINITY
    }
}

/// First come, first served: all keys are equal, and flows with equal keys are served by arrival.
pub(super) struct Arrival;

impl Order for Arrival {}

/// The fewest remaining bytes first.
pub(super) struct Remaining;

impl Order for Remaining {
    fn rank(&mut self, _now: f64, active: &[usize], left: &[f64], key: &mut [Key]) {
        active.iter().for_each(|&flow| key[flow].1 = left[flow]);
    }
}

/// The shortest flow as a whole first.
pub(super) struct Size<'a>(pub &'a [Flow]);

impl Order for Size<'_> {
    fn on_arrival(&mut self, flow: usize, _at: f64, key: &mut [Key]) {
        key[flow].1 = self.0[flow].wire_bytes as f64;
    }
}

/// The deadline in seconds of a flow that arrives at `at`.
fn deadline(flow: &Flow, at: f64) -> Option<f64> {
    match &flow.wait {
        Some(wait) => wait.allowed.map(|allowed| at + allowed),
        None => flow.deadline.map(Time::as_secs_f64),
    }
}

/// The earliest deadline first, then flows without one.
pub(super) struct Deadline<'a> {
    pub flows: &'a [Flow],
    /// The shortest flow as a whole goes first among those without a deadline.
    pub by_size: bool,
}

impl Order for Deadline<'_> {
    fn on_arrival(&mut self, flow: usize, at: f64, key: &mut [Key]) {
        let without = if self.by_size { self.flows[flow].wire_bytes as f64 } else { 0.0 };
        key[flow] = deadline(&self.flows[flow], at).map_or((1, without), |deadline| (0, deadline));
    }
}

/// STAM's ideal: the earliest deadline first, and before it, on links where all flows with deadlines can wait, flows without a deadline that have
/// no more left than the first of the others.
pub(super) struct Slack<'a> {
    /// Bytes per second.
    capacity: &'a [f64],
    flows: &'a [Flow],
    /// Per flow: its deadline in seconds.
    deadline: Vec<Option<f64>>,
    /// The flows present with a deadline, the earliest deadline first.
    urgent: Vec<usize>,
    /// Per link: bytes left of the flows with deadlines counted so far, the fewest seconds that one of them can wait, and what the first has left.
    links: Vec<Option<(f64, f64, f64)>>,
    changes: f64,
}

/// Classes of STAM's order.
const USES_SLACK: u8 = 0;
const URGENT: u8 = 1;
const WAITS: u8 = 2;

/// A slack of less than a picosecond is rounding error,
const NO_SLACK: f64 = 1e-12;
/// and so is less than this of a byte.
const CRUMB: f64 = 1e-3;

impl<'a> Slack<'a> {
    pub fn new(capacity: &'a [f64], flows: &'a [Flow]) -> Self {
        let links = vec![None; capacity.len()];
        Slack { capacity, flows, deadline: vec![None; flows.len()], urgent: Vec::new(), links, changes: f64::INFINITY }
    }
}

impl Order for Slack<'_> {
    fn on_arrival(&mut self, flow: usize, at: f64, _key: &mut [Key]) {
        self.deadline[flow] = deadline(&self.flows[flow], at);
        if let Some(deadline) = self.deadline[flow] {
            let place = self.urgent.partition_point(|&other| self.deadline[other].is_some_and(|d| d <= deadline));
            self.urgent.insert(place, flow);
        }
    }

    fn on_end(&mut self, flow: usize) {
        self.urgent.retain(|&other| other != flow);
    }

    fn rank(&mut self, now: f64, active: &[usize], left: &[f64], key: &mut [Key]) {
        self.links.fill(None);
        for &flow in &self.urgent {
            let due = self.deadline[flow].unwrap_or(f64::INFINITY);
            for &link in &self.flows[flow].path {
                let (bytes, slack, first) = self.links[link].unwrap_or((0.0, f64::INFINITY, left[flow]));
                let bytes = bytes + left[flow];
                self.links[link] = Some((bytes, slack.min(due - now - bytes / self.capacity[link]), first));
            }
        }
        self.changes = f64::INFINITY;
        for &flow in active {
            if let Some(deadline) = self.deadline[flow] {
                key[flow] = (URGENT, deadline);
                continue;
            }
            let on_path = || self.flows[flow].path.iter().filter_map(|&link| self.links[link]);
            let slack = on_path().map(|(_, slack, _)| slack).fold(f64::INFINITY, f64::min);
            // What is left has been rounded at every step.
            let uses = slack > NO_SLACK && on_path().all(|(.., first)| left[flow] <= first + CRUMB);
            key[flow] = (if uses { USES_SLACK } else { WAITS }, left[flow]);
            if uses {
                self.changes = self.changes.min(now + slack);
            }
        }
    }

    fn changes(&self) -> f64 {
        self.changes
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
    fn on_arrival(&mut self, flow: usize, at: f64, _key: &mut [Key]) {
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
                // Alg. 1 l. 9-11: the smallest expected rate on the path counts, which is the largest expected time.
                let longest = self.expected[flow].iter().copied().max().unwrap_or(0);
                key[flow].1 = (arrived.ps() + longest) as f64;
            }
        }
    }
}

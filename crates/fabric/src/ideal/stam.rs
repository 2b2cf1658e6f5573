//! STAM's ideal: earliest deadline first. While all flows with deadlines can wait, a flow without a
//! deadline is served before them if it has no more bytes left than the flow with the earliest
//! deadline.
//!
//! Source: STAM (Zang, Lan, Hu, Acta Electronica Sinica 47(10), 2019), section 2 (Table 1, Fig. 2).
//!
//! Assumed: STAM's paper gives its ideal schedule only by example. The slack is the time that all
//! present flows with deadlines can wait and still end in time under EDF. A flow without a deadline
//! uses the slack if it has no more bytes left than the flow that EDF serves; without this bound
//! the long flow of the example would take the slack that the short flow needs. A flow that is late
//! keeps its place in EDF. In a network a flow without a deadline is served first if this holds on
//! every link of its path.

use super::{Env, Ideal};
use crate::schedule::flow::{FluidFlow, GoOn};
use crate::schedule::link::{Number, Rule, Server, compare};
use crate::schedule::network::{Key, Network, Order};
use base::params::Problem;
use base::registry::Meta;
use std::cmp::Ordering;

/// The description of this entry, for `list`, `explain` and `check`.
pub const META: Meta = Meta {
    summary: "Every link serves the flow with the earliest deadline. While all flows with deadlines can still wait, it first serves the flow without a deadline that has the fewest remaining bytes, if these are no more than those of the flow with the earliest deadline. Without any deadlines, it serves the flow with the fewest remaining bytes.",
    source: "Zang, Lan, Hu, Acta Electronica Sinica 47(10), 2019, section 2",
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
pub struct Stam;

impl Stam {
    /// Returns the schedule.
    pub fn new(_params: &Params, _env: &Env) -> Self {
        Stam
    }
    /// Returns the label of the schedule in tables and figures.
    pub fn label(_params: &Params) -> &'static str {
        "ideal STAM"
    }
}

impl Ideal for Stam {
    fn serve_link<T: Number>(&self, link: Server<'_, T>) -> Vec<T> {
        link.serve(self)
    }
    fn serve_network(&self, network: Network<'_>, go_on: GoOn<'_>) -> Option<Vec<f64>> {
        network.serve(&mut Slack::new(network), go_on)
    }
}

impl<T: Number> Rule<T> for Stam {
    fn compare(&self, link: &Server<'_, T>, a: usize, b: usize) -> Ordering {
        let (x, y) = (&link.jobs[a], &link.jobs[b]);
        if x.deadline.is_none() && y.deadline.is_none() { compare(&link.left[a], &link.left[b]) } else { x.by_deadline(y) }
    }

    fn next(&self, link: &Server<'_, T>) -> Option<(usize, Option<T>)> {
        let last = link.active.len().checked_sub(1)?;
        // Flows without deadlines come first in `active`; among them, the flow with the fewest
        // remaining bytes is last.
        let without = link.active.partition_point(|&flow| link.jobs[flow].deadline.is_none());
        if without == 0 || link.left[link.active[without - 1]] > link.left[link.active[last]] {
            return Some((last, None));
        }
        let (mut ends, mut slack) = (link.now.clone(), None);
        for &flow in link.active[without..].iter().rev() {
            ends = ends + link.left[flow].clone() / link.capacity.clone();
            let own = link.jobs[flow].deadline.clone().map(|deadline| deadline - ends.clone());
            slack = slack.into_iter().chain(own).min_by(compare);
        }
        match slack {
            None => Some((last, None)),
            Some(slack) if slack > T::zero() => Some((without - 1, Some(link.now.clone() + slack))),
            Some(_) => Some((last, None)),
        }
    }
}

/// The order of a network.
struct Slack<'a> {
    flows: &'a [FluidFlow],
    /// The bytes per second of each link.
    capacity: Vec<f64>,
    /// The deadline of each flow in seconds.
    deadline: Vec<Option<f64>>,
    /// The present flows with a deadline, earliest deadline first.
    urgent: Vec<usize>,
    /// For each link: remaining bytes of the flows with deadlines counted so far, the shortest time
    /// in seconds that any of them can wait, and the remaining bytes of the first.
    links: Vec<Option<(f64, f64, f64)>>,
    changes: f64,
}

/// Classes of the order.
const USES_SLACK: u8 = 0;
const URGENT: u8 = 1;
const WAITS: u8 = 2;

/// A slack of less than a picosecond is a rounding error.
const NO_SLACK: f64 = 1e-12;
/// Less than this fraction of a byte is a rounding error.
const CRUMB: f64 = 1e-3;

impl<'a> Slack<'a> {
    fn new(network: Network<'a>) -> Self {
        let (flows, links) = (network.flows, vec![None; network.capacity.len()]);
        let (capacity, deadline) = (network.bytes_per_sec(), vec![None; flows.len()]);
        Slack { flows, capacity, deadline, urgent: Vec::new(), links, changes: f64::INFINITY }
    }
}

impl Order for Slack<'_> {
    fn on_arrival(&mut self, flows: &[FluidFlow], flow: usize, at: f64, _key: &mut [Key]) {
        self.deadline[flow] = flows[flow].deadline_at(at);
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
            // The remaining bytes have been rounded at every step.
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

#[cfg(test)]
mod tests {
    use super::super::tests::slots::{by_slots, in_slots, random_jobs};
    use super::super::tests::{ideal, job, q};
    use crate::schedule::link::Job;
    use base::Rng;

    /// The flow with a deadline can wait for 2. A short flow without a deadline uses that time, a
    /// long flow does not.
    #[test]
    fn a_flow_without_a_deadline_uses_slack_if_it_has_less_left() {
        for (size, ends) in [(2, [2, 6]), (3, [7, 6]), (5, [9, 4])] {
            let jobs = [job(0, size), Job { deadline: Some(q(6, 1)), ..job(0, 4) }];
            let found = ideal("stam").finish_times(&q(1, 1), &jobs).unwrap();
            assert_eq!(found, ends.map(|end| q(end, 1)), "{size}");
        }
    }

    #[test]
    fn slack_for_flows_without_a_deadline() {
        let mut rng = Rng::stream(1, "fluid/mixed", &[]);
        let mut used = 0;
        for _ in 0..400 {
            let jobs = random_jobs(&mut rng);
            let expected = by_slots(&jobs, |now, left, present| {
                let mut urgent: Vec<usize> = present.iter().copied().filter(|&flow| jobs[flow].deadline.is_some()).collect();
                urgent.sort_by_key(|&flow| (jobs[flow].deadline, jobs[flow].arrival, flow));
                let shortest = present.iter().copied().filter(|&flow| jobs[flow].deadline.is_none());
                let shortest = shortest.min_by_key(|&flow| (left[flow], jobs[flow].arrival, flow));
                let (Some(&first), Some(shortest)) = (urgent.first(), shortest) else {
                    return urgent.first().copied().or(shortest).unwrap();
                };
                let mut end = now + 1;
                let can_wait = urgent.iter().all(|&flow| {
                    end += left[flow];
                    end <= jobs[flow].deadline.unwrap()
                });
                if can_wait && left[shortest] <= left[first] { shortest } else { first }
            });
            assert_eq!(in_slots("stam", &jobs), expected, "{jobs:?}");
            used += u32::from(expected != in_slots("edf_sjf", &jobs));
        }
        assert!(used > 20, "{used}");
    }
}

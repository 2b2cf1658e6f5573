//! Earliest deadline first; flows without a deadline follow, smallest total size first.
//!
//! Source: STAM (Zang, Lan, Hu, Acta Electronica Sinica 47(10), 2019), section 2, which compares
//! STAM with this order in Table 1.

use super::{Env, Ideal};
use crate::schedule::flow::{FluidFlow, GoOn};
use crate::schedule::link::{Number, Rule, Server, compare};
use crate::schedule::network::{Key, Network, Order};
use base::params::Problem;
use base::registry::Meta;
use std::cmp::Ordering;

/// The description of this entry, for `list`, `explain` and `check`.
pub const META: Meta = Meta {
    summary: "Every link serves the flow with the earliest deadline; flows without a deadline come last, smallest total size first.",
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
pub struct EdfSjf;

impl EdfSjf {
    /// Returns the schedule.
    pub fn new(_params: &Params, _env: &Env) -> Self {
        EdfSjf
    }
    /// Returns the label of the schedule in tables and figures.
    pub fn label(_params: &Params) -> &'static str {
        "ideal EDF+SJF"
    }
}

impl Ideal for EdfSjf {
    fn serve_link<T: Number>(&self, link: Server<'_, T>) -> Vec<T> {
        link.serve(self)
    }
    fn serve_network(&self, network: Network<'_>, go_on: GoOn<'_>) -> Option<Vec<f64>> {
        network.serve(&mut EdfSjf, go_on)
    }
}

impl<T: Number> Rule<T> for EdfSjf {
    fn compare(&self, link: &Server<'_, T>, a: usize, b: usize) -> Ordering {
        let (a, b) = (&link.jobs[a], &link.jobs[b]);
        if a.deadline.is_none() && b.deadline.is_none() { compare(&a.size, &b.size) } else { a.by_deadline(b) }
    }
}

impl Order for EdfSjf {
    fn on_arrival(&mut self, flows: &[FluidFlow], flow: usize, at: f64, key: &mut [Key]) {
        let size = flows[flow].wire_bytes as f64;
        key[flow] = flows[flow].deadline_at(at).map_or((1, size), |deadline| (0, deadline));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::slots::{by_slots, in_slots, random_jobs};
    use super::super::tests::{ideal, job, q};
    use crate::schedule::link::Job;
    use base::Rng;

    #[test]
    fn sizes_order_flows_without_a_deadline() {
        let jobs = [job(0, 5), job(0, 3), Job { deadline: Some(q(9, 1)), ..job(1, 2) }];
        assert_eq!(ideal("edf_sjf").finish_times(&q(1, 1), &jobs).unwrap(), [q(10, 1), q(5, 1), q(3, 1)]);
    }

    #[test]
    fn edf_then_the_shortest_flow() {
        let mut rng = Rng::stream(1, "fluid/mixed", &[]);
        for _ in 0..400 {
            let jobs = random_jobs(&mut rng);
            let key = |flow: usize| {
                let Job { arrival, size, deadline } = jobs[flow];
                (deadline.is_none(), deadline.unwrap_or(size), arrival, flow)
            };
            let expected = by_slots(&jobs, |_, _, present| *present.iter().min_by_key(|&&flow| key(flow)).unwrap());
            assert_eq!(in_slots("edf_sjf", &jobs), expected, "{jobs:?}");
        }
    }
}

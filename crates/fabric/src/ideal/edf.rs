//! Earliest deadline first, then flows without a deadline by arrival.
//!
//! Source: C. Liu and J. Layland, "Scheduling algorithms for multiprogramming in a hard-real-time
//! environment", Journal of the ACM 20(1), 1973: on one link it meets all deadlines if any order
//! does.

use super::{Env, Ideal};
use crate::schedule::flow::{FluidFlow, GoOn};
use crate::schedule::link::{Number, Rule, Server};
use crate::schedule::network::{Key, Network, Order};
use base::params::Problem;
use base::registry::Meta;
use std::cmp::Ordering;

/// The description of this entry, for `list`, `explain` and `check`.
pub const META: Meta = Meta {
    summary: "Every link serves the flow with the earliest deadline; flows without a deadline come last.",
    source: "Liu and Layland, JACM 20(1), 1973",
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
pub struct Edf;

impl Edf {
    /// Returns the schedule.
    pub fn new(_params: &Params, _env: &Env) -> Self {
        Edf
    }
    /// Returns the label of the schedule in tables and figures.
    pub fn label(_params: &Params) -> &'static str {
        "ideal EDF"
    }
}

impl Ideal for Edf {
    fn serve_link<T: Number>(&self, link: Server<'_, T>) -> Vec<T> {
        link.serve(self)
    }
    fn serve_network(&self, network: Network<'_>, go_on: GoOn<'_>) -> Option<Vec<f64>> {
        network.serve(&mut Edf, go_on)
    }
}

impl<T: Number> Rule<T> for Edf {
    fn compare(&self, link: &Server<'_, T>, a: usize, b: usize) -> Ordering {
        link.jobs[a].by_deadline(&link.jobs[b])
    }
}

impl Order for Edf {
    fn on_arrival(&mut self, flows: &[FluidFlow], flow: usize, at: f64, key: &mut [Key]) {
        key[flow] = flows[flow].deadline_at(at).map_or((1, 0.0), |deadline| (0, deadline));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ideal, job, q};
    use crate::schedule::link::Job;

    #[test]
    fn deadlines_and_arrivals_order_edf_and_fcfs() {
        let with = |arrival, size, deadline| Job { deadline: Some(q(deadline, 1)), ..job(arrival, size) };
        let jobs = [job(0, 2), with(0, 4, 20), with(1, 2, 5)];
        let edf = ideal("edf").schedule(&q(2, 1), &jobs).unwrap();
        assert_eq!(edf.finish, [q(4, 1), q(3, 1), q(2, 1)]);
        let order: Vec<usize> = edf.segments.iter().map(|s| s.flow).collect();
        assert_eq!(order, [1, 2, 1, 0]);
        assert_eq!(ideal("fcfs").finish_times(&q(2, 1), &jobs).unwrap(), [q(1, 1), q(3, 1), q(4, 1)]);
    }
}

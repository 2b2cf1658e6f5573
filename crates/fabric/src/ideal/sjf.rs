//! Shortest job first: every link serves the flow with the smallest total size, whatever its
//! remaining size.
//!
//! Source: R. Conway, W. Maxwell and L. Miller, Theory of Scheduling, 1967.

use super::{Env, Ideal};
use crate::schedule::flow::{FluidFlow, GoOn};
use crate::schedule::link::{Number, Rule, Server, compare};
use crate::schedule::network::{Key, Network, Order};
use base::params::Problem;
use base::registry::Meta;
use std::cmp::Ordering;

/// The description of this entry, for `list`, `explain` and `check`.
pub const META: Meta = Meta {
    summary: "Every link serves the flow with the smallest total size.",
    source: "Conway, Maxwell and Miller, Theory of Scheduling, 1967",
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
pub struct Sjf;

impl Sjf {
    /// Returns the schedule.
    pub fn new(_params: &Params, _env: &Env) -> Self {
        Sjf
    }
    /// Returns the label of the schedule in tables and figures.
    pub fn label(_params: &Params) -> &'static str {
        "ideal SJF"
    }
}

impl Ideal for Sjf {
    fn serve_link<T: Number>(&self, link: Server<'_, T>) -> Vec<T> {
        link.serve(self)
    }
    fn serve_network(&self, network: Network<'_>, go_on: GoOn<'_>) -> Option<Vec<f64>> {
        network.serve(&mut Sjf, go_on)
    }
}

impl<T: Number> Rule<T> for Sjf {
    fn compare(&self, link: &Server<'_, T>, a: usize, b: usize) -> Ordering {
        compare(&link.jobs[a].size, &link.jobs[b].size)
    }
}

impl Order for Sjf {
    fn on_arrival(&mut self, flows: &[FluidFlow], flow: usize, _at: f64, key: &mut [Key]) {
        key[flow].1 = flows[flow].wire_bytes as f64;
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ideal, job, q};

    #[test]
    fn a_flow_that_has_almost_ended_keeps_its_size() {
        // At 4 the first flow has 1 of 5 left, and the second has 3 of 3.
        let jobs = [job(0, 5), job(4, 3)];
        assert_eq!(ideal("sjf").finish_times(&q(1, 1), &jobs).unwrap(), [q(8, 1), q(7, 1)]);
    }
}

//! Shortest remaining processing time: every link serves the flow with the fewest remaining bytes.
//!
//! Source: L. Schrage, "A proof of the optimality of the shortest remaining processing time
//! discipline", Operations Research 16(3), 1968: no order has a smaller mean completion time on one
//! link. Zhang et al., IEEE TPDS 28(11) 2017, Table 1, for an example.

use super::{Env, Ideal};
use crate::schedule::flow::GoOn;
use crate::schedule::link::{Number, Rule, Server, compare};
use crate::schedule::network::{Key, Network, Order};
use base::params::Problem;
use base::registry::Meta;
use std::cmp::Ordering;

/// The description of this entry, for `list`, `explain` and `check`.
pub const META: Meta = Meta {
    summary: "Every link serves the flow with the fewest remaining bytes.",
    source: "Schrage, Operations Research 16(3), 1968",
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
pub struct Srpt;

impl Srpt {
    /// Returns the schedule.
    pub fn new(_params: &Params, _env: &Env) -> Self {
        Srpt
    }
    /// Returns the label of the schedule in tables and figures.
    pub fn label(_params: &Params) -> &'static str {
        "ideal SRPT"
    }
}

impl Ideal for Srpt {
    fn serve_link<T: Number>(&self, link: Server<'_, T>) -> Vec<T> {
        link.serve(self)
    }
    fn serve_network(&self, network: Network<'_>, go_on: GoOn<'_>) -> Option<Vec<f64>> {
        network.serve(&mut Srpt, go_on)
    }
}

impl<T: Number> Rule<T> for Srpt {
    fn compare(&self, link: &Server<'_, T>, a: usize, b: usize) -> Ordering {
        compare(&link.left[a], &link.left[b])
    }
}

impl Order for Srpt {
    fn rank(&mut self, _now: f64, active: &[usize], left: &[f64], key: &mut [Key]) {
        active.iter().for_each(|&flow| key[flow].1 = left[flow]);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{GIGABYTE, check_table_1, finish_ns, flow, q};
    use base::Rate;

    #[test]
    fn table_1_of_merps_paper() {
        let segments = [(0, 0, 3), (1, 3, 6), (2, 6, 10)];
        check_table_1("srpt", &segments, [q(3, 1), q(3, 1), q(10, 1)], q(16, 3), [q(1, 1), q(1, 1), q(5, 2)]);
    }

    #[test]
    fn a_flow_waits_for_all_its_links() {
        // The long flow crosses both links; the short flows keep one link each busy in turn.
        let flows = [flow(0, 1000, &[0, 1]), flow(0, 100, &[0]), flow(50, 100, &[1])];
        assert_eq!(finish_ns("srpt", &[GIGABYTE; 2], &flows), [1150.0, 100.0, 150.0]);
        assert_eq!(finish_ns("fcfs", &[GIGABYTE; 2], &flows), [1000.0, 1100.0, 1100.0]);
    }

    #[test]
    fn what_a_flow_cannot_use_goes_to_the_next() {
        let capacity = [Rate(8_000_000_000), Rate(2_000_000_000)];
        let flows = [flow(0, 100, &[0, 1]), flow(0, 300, &[0])];
        assert_eq!(finish_ns("srpt", &capacity, &flows), [400.0, 400.0]);
    }
}

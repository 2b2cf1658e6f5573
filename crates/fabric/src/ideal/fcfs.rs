//! First come, first served: all keys are equal, and flows with equal keys are served by arrival.
//!
//! Source: L. Kleinrock, Queueing Systems, volume 1, 1975.

use super::{Env, Ideal};
use crate::schedule::flow::GoOn;
use crate::schedule::link::{Number, Rule, Server};
use crate::schedule::network::{Network, Order};
use base::params::Problem;
use base::registry::Meta;

/// The description of this entry, for `list`, `explain` and `check`.
pub const META: Meta = Meta {
    summary: "Every link serves the flow that arrived first.",
    source: "Kleinrock, Queueing Systems 1, 1975",
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
pub struct Fcfs;

impl Fcfs {
    /// Returns the schedule.
    pub fn new(_params: &Params, _env: &Env) -> Self {
        Fcfs
    }
    /// Returns the label of the schedule in tables and figures.
    pub fn label(_params: &Params) -> &'static str {
        "ideal FCFS"
    }
}

impl Ideal for Fcfs {
    fn serve_link<T: Number>(&self, link: Server<'_, T>) -> Vec<T> {
        link.serve(self)
    }
    fn serve_network(&self, network: Network<'_>, go_on: GoOn<'_>) -> Option<Vec<f64>> {
        network.serve(&mut Fcfs, go_on)
    }
}

impl<T: Number> Rule<T> for Fcfs {}

impl Order for Fcfs {}

#[cfg(test)]
mod tests {
    use super::super::tests::{GIGABYTE, finish_ns, flow};

    #[test]
    fn a_flow_that_waits_on_another_link_does_not_hold_a_link() {
        // The second flow waits on link 0 until 100 and leaves link 1 to the others; then it is
        // served before the fourth.
        let flows = [flow(0, 100, &[0]), flow(1, 100, &[0, 1]), flow(2, 50, &[1]), flow(3, 100, &[1])];
        assert_eq!(finish_ns("fcfs", &[GIGABYTE; 2], &flows), [100.0, 200.0, 52.0, 252.0]);
    }
}

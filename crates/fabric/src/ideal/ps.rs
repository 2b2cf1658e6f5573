//! Processor sharing: all flows are served at max-min fair rates.
//!
//! Source: L. Kleinrock, "Time-shared systems: a theoretical treatment", Journal of the ACM 14(2), 1967; D. Bertsekas and R. Gallager, Data
//! Networks, section 6.5.2, for max-min fairness in a network.

use super::{Env, Ideal};
use crate::schedule::flow::GoOn;
use crate::schedule::link::{Number, Server};
use crate::schedule::network::Network;
use base::params::Problem;
use base::registry::Meta;

/// The description of this entry, for `list`, `explain` and `check`.
pub const META: Meta = Meta {
    summary: "All flows are served at the same time, with max-min fair shares.",
    source: "Kleinrock, JACM 14(2), 1967; Bertsekas and Gallager section 6.5.2",
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
pub struct Ps;

impl Ps {
    /// Returns the schedule.
    pub fn new(_params: &Params, _env: &Env) -> Self {
        Ps
    }
    /// Returns the label of the schedule in tables and figures.
    pub fn label(_params: &Params) -> &'static str {
        "ideal PS"
    }
}

impl Ideal for Ps {
    fn serve_link<T: Number>(&self, link: Server<'_, T>) -> Vec<T> {
        link.share()
    }
    fn serve_network(&self, network: Network<'_>, go_on: GoOn<'_>) -> Option<Vec<f64>> {
        network.share(go_on)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{check_table_1, finish_ns, flow, ideal, q, table_1};
    use base::Rate;

    #[test]
    fn table_1_of_merps_paper() {
        // The paper prints 7/3 for A, which is the value of B; the correct value of A is 5/2.
        check_table_1("ps", &[], [q(15, 2), q(7, 1), q(19, 2)], q(8, 1), [q(5, 2), q(7, 3), q(19, 8)]);
        let found = ideal("ps").schedule(&q(1, 1), &table_1()).unwrap().segments;
        let of_b: Vec<_> = found.iter().filter(|s| s.flow == 1).map(|s| (s.start.clone(), s.end.clone(), s.rate.clone())).collect();
        assert_eq!(of_b, [(q(3, 1), q(15, 2), q(1, 3)), (q(15, 2), q(19, 2), q(1, 2)), (q(19, 2), q(10, 1), q(1, 1))]);
    }

    #[test]
    fn max_min_rates() {
        // Server 0 has 10 and carries flows 0 and 1; link 1 has 4 and carries 1, 2, 3: shares 26/3, 4/3, 4/3, 4/3 bytes per ns.
        let capacity = [Rate(80_000_000_000), Rate(32_000_000_000)];
        let flows = [flow(0, 2600, &[0]), flow(0, 4000, &[0, 1]), flow(0, 400, &[1]), flow(0, 400, &[1])];
        // Flows 0, 2 and 3 end at 300; then flow 1 has all of link 1, with 3600 bytes left.
        assert_eq!(finish_ns("ps", &capacity, &flows), [300.0, 1200.0, 300.0, 300.0]);
    }
}

//! SRPT in one big switch: each path is reduced to its first and last link, which are links of
//! hosts.
//!
//! Source: pFabric (Alizadeh et al., SIGCOMM 2013), section 3: an optimal order in one big switch
//! is a bound for all networks of these hosts.

use super::srpt::Srpt;
use super::{Env, Ideal};
use crate::schedule::flow::{FluidFlow, GoOn};
use crate::schedule::link::{Number, Server};
use crate::schedule::network::Network;
use base::params::Problem;
use base::registry::Meta;

/// The description of this entry, for `list`, `explain` and `check`.
pub const META: Meta = Meta {
    summary: "SRPT where only the links of hosts limit flows, as if the network were one big switch.",
    source: "pFabric (SIGCOMM 2013) section 3",
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
pub struct BigSwitch;

impl BigSwitch {
    /// Returns the schedule.
    pub fn new(_params: &Params, _env: &Env) -> Self {
        BigSwitch
    }
    /// Returns the label of the schedule in tables and figures.
    pub fn label(_params: &Params) -> &'static str {
        "ideal big switch"
    }
}

impl Ideal for BigSwitch {
    fn serve_link<T: Number>(&self, link: Server<'_, T>) -> Vec<T> {
        Srpt.serve_link(link)
    }
    fn serve_network(&self, network: Network<'_>, go_on: GoOn<'_>) -> Option<Vec<f64>> {
        Srpt.serve_network(Network { flows: &big_switch(network.flows), ..network }, go_on)
    }
}

/// Returns the same flows in one big switch.
fn big_switch(flows: &[FluidFlow]) -> Vec<FluidFlow> {
    let ends = |path: &[usize]| match path {
        [first, .., last] => vec![*first, *last],
        short => short.to_vec(),
    };
    flows.iter().map(|flow| FluidFlow { path: ends(&flow.path), ..flow.clone() }).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::flow;
    use super::*;

    #[test]
    fn a_big_switch_keeps_the_ends() {
        let flows = [flow(0, 1, &[0, 4, 5, 1]), flow(0, 1, &[2, 3]), flow(0, 1, &[2])];
        let paths: Vec<Vec<usize>> = big_switch(&flows).into_iter().map(|f| f.path).collect();
        assert_eq!(paths, [vec![0, 1], vec![2, 3], vec![2]]);
    }
}

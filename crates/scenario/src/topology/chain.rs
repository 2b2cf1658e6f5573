//! Switches in a row with hosts at each switch: several bottlenecks on one path.
//!
//! ```text
//!    h0 h1   h2 h3   h4 h5
//!     \ /     \ /     \ /
//!     s0 ---- s1 ---- s2
//! ```
//! Source: the parking lot of RFC 5166 section 3.

use super::{Cables, Env, MAX_DELAY, MAX_RATE, MIN_DELAY, MIN_RATE, Size, Topology};
use base::params::{Auto, Problem};
use base::registry::Meta;
use base::{Dur, Rate};
use fabric::net::NetBuilder;

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "switches in a row with hosts at each switch: several bottlenecks on one path",
    source: "the parking lot of RFC 5166 section 3",
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of a chain.
    pub struct Params {
        ..cables: Cables {}
        /// Number of switches `s0`, `s1`, ... in a row.
        switches: u32 = "3" in 1..=100_000, "two trunks";
        /// Number of hosts at each switch.
        hosts_per_switch: u32 = "2" in 1..=100_000, "one for through traffic, one for cross traffic";
        /// Rate of the hosts' links.
        rate: Rate = "10Gbps" in MIN_RATE..=MAX_RATE, "common hosts";
        /// Rate of the links between switches; `auto`: equal to `rate`.
        trunk_rate: Auto<Rate> = "auto" in Auto::Set(MIN_RATE)..=Auto::Set(MAX_RATE), "the bottlenecks";
        /// Propagation delay of every link.
        delay: Dur = "1us" in MIN_DELAY..=MAX_DELAY, "cables and processing";
    }
}

/// Returns no problems: all combinations of values are valid.
pub fn check(_params: &Params, _env: &Env<'_>) -> Vec<Problem> {
    Vec::new()
}

/// The chain.
pub struct Chain(Params);

impl Chain {
    /// Creates the topology with these parameters.
    pub fn new(params: &Params, _env: &Env<'_>) -> Self {
        Chain(params.clone())
    }
}

impl Topology for Chain {
    fn size(&self) -> Size {
        let switches = u64::from(self.0.switches);
        let hosts = switches * u64::from(self.0.hosts_per_switch);
        Size { hosts, switches, cables: hosts + switches - 1 }
    }
    fn build(&self, net: &mut NetBuilder) {
        self.0.cables.set(net);
        let p = &self.0;
        let hosts: Vec<_> = (0..p.switches * p.hosts_per_switch).map(|i| net.host(format!("h{i}"), None)).collect();
        let switches: Vec<_> = (0..p.switches).map(|i| net.switch(format!("s{i}"), 1)).collect();
        for (i, host) in hosts.into_iter().enumerate() {
            net.cable(host, switches[i / p.hosts_per_switch as usize], p.rate, p.delay);
        }
        for pair in switches.windows(2) {
            net.cable(pair[0], pair[1], p.trunk_rate.or(p.rate), p.delay);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::topology::testing::{build, links};

    #[test]
    fn neighbours_are_joined() {
        let net = build("chain", &[("hosts_per_switch", "1"), ("trunk_rate", "1Gbps")]);
        let trunks: Vec<String> = links(&net).into_iter().filter(|l| l.ends_with("1Gbps 1us")).collect();
        assert_eq!(trunks, ["s0->s1 1Gbps 1us", "s1->s0 1Gbps 1us", "s1->s2 1Gbps 1us", "s2->s1 1Gbps 1us"]);
    }
}

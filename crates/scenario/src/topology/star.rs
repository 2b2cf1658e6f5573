//! Hosts around one switch.
//!
//! ```text
//!    h0  h1
//!      \ /
//!      s0
//!      / \
//!    h2  h3
//! ```
//! Source: the rack of DCTCP (SIGCOMM 2010) section 4.

use super::{Cables, Env, MAX_DELAY, MAX_RATE, MIN_DELAY, MIN_RATE, Size, Topology};
use base::params::Problem;
use base::registry::Meta;
use base::{Dur, Rate};
use fabric::net::NetBuilder;

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta { summary: "hosts around one switch", source: "DCTCP (SIGCOMM 2010) section 4", ..Meta::PLAIN };

base::params! {
    /// Parameters of a star.
    pub struct Params {
        ..cables: Cables {}
        /// Number of hosts.
        hosts: u32 = "8" in 1..=1_000_000, "a small rack";
        /// Rate of every link.
        rate: Rate = "10Gbps" in MIN_RATE..=MAX_RATE, "common hosts";
        /// Propagation delay of every link.
        delay: Dur = "1us" in MIN_DELAY..=MAX_DELAY, "cables and processing";
    }
}

/// Returns no problems: all combinations of values are valid.
pub fn check(_params: &Params, _env: &Env<'_>) -> Vec<Problem> {
    Vec::new()
}

/// The star.
pub struct Star(Params);

impl Star {
    /// Creates the topology with these parameters.
    pub fn new(params: &Params, _env: &Env<'_>) -> Self {
        Star(params.clone())
    }
}

impl Topology for Star {
    fn size(&self) -> Size {
        Size { hosts: self.0.hosts.into(), switches: 1, cables: self.0.hosts.into() }
    }
    fn build(&self, net: &mut NetBuilder) {
        self.0.cables.set(net);
        let hosts: Vec<_> = (0..self.0.hosts).map(|i| net.host(format!("h{i}"), None)).collect();
        let switch = net.switch("s0", 1);
        for host in hosts {
            net.cable(host, switch, self.0.rate, self.0.delay);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::topology::testing::{build, links};

    #[test]
    fn every_host_has_a_cable_to_the_switch() {
        let net = build("star", &[("hosts", "2")]);
        assert_eq!(links(&net), ["h0->s0 10Gbps 1us", "h1->s0 10Gbps 1us", "s0->h0 10Gbps 1us", "s0->h1 10Gbps 1us"]);
    }
}

//! Racks of hosts under one root switch.
//!
//! ```text
//!            root
//!          /  |   \
//!      tor0 tor1 tor2
//!      /|\   /|\   /|\
//!    h0 h1 h2 ...     h8
//! ```
//! Source: MERP (TPDS 2017) section 6.1; the same tree in PDQ (SIGCOMM 2012) section 5.1.

use super::{Cables, Env, MAX_DELAY, MAX_RATE, MIN_DELAY, MIN_RATE, Size, Topology};
use base::params::{Auto, Problem};
use base::registry::Meta;
use base::{Dur, Rate};
use fabric::net::NetBuilder;

/// The META of this entry, for `list` and `check`.
pub const META: Meta =
    Meta { summary: "racks of hosts under one root switch", source: "MERP (TPDS 2017) section 6.1", ..Meta::PLAIN };

base::params! {
    /// Parameters of a single-rooted tree.
    pub struct Params {
        ..cables: Cables {}
        /// Number of racks; each rack has a switch `tor0`, `tor1`, ...
        racks: u32 = "3" in 1..=100_000, "MERP section 6.1";
        /// Number of hosts in each rack.
        hosts_per_rack: u32 = "3" in 1..=100_000, "MERP section 6.1";
        /// Rate of the hosts' links.
        rate: Rate = "1Gbps" in MIN_RATE..=MAX_RATE, "MERP section 6.1";
        /// Rate of the links to the root; `auto`: equal to `rate`.
        uplink_rate: Auto<Rate> = "auto" in Auto::Set(MIN_RATE)..=Auto::Set(MAX_RATE), "MERP section 6.1: all links are equal";
        /// Propagation delay of every link.
        delay: Dur = "10us" in MIN_DELAY..=MAX_DELAY, "MERP section 6.1";
    }
}

/// Returns no problems: all combinations of values are valid.
pub fn check(_params: &Params, _env: &Env<'_>) -> Vec<Problem> {
    Vec::new()
}

/// The tree.
pub struct SingleTree(Params);

impl SingleTree {
    /// Creates the topology with these parameters.
    pub fn new(params: &Params, _env: &Env<'_>) -> Self {
        SingleTree(params.clone())
    }
}

impl Topology for SingleTree {
    fn size(&self) -> Size {
        let racks = u64::from(self.0.racks);
        let hosts = racks * u64::from(self.0.hosts_per_rack);
        Size { hosts, switches: racks + 1, cables: hosts + racks }
    }
    fn build(&self, net: &mut NetBuilder) {
        self.0.cables.set(net);
        let p = &self.0;
        let hosts: Vec<_> = (0..p.racks * p.hosts_per_rack).map(|i| net.host(format!("h{i}"), None)).collect();
        let tors: Vec<_> = (0..p.racks).map(|i| net.switch(format!("tor{i}"), 1)).collect();
        let root = net.switch("root", 2);
        for (i, &host) in hosts.iter().enumerate() {
            net.cable(host, tors[i / p.hosts_per_rack as usize], p.rate, p.delay);
        }
        for tor in tors {
            net.cable(tor, root, p.uplink_rate.or(p.rate), p.delay);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::topology::testing::{build, links};

    #[test]
    fn the_default_is_merp_section_6_1() {
        let net = build("single_tree", &[]);
        let links = links(&net);
        assert_eq!((net.hosts().len(), net.nodes().len(), links.len()), (9, 13, 24));
        assert!(links.iter().all(|l| l.ends_with(" 1Gbps 10us")), "{links:?}");
        assert_eq!(net.link_name(net.out_links(net.link(net.first_nic(base::HostId(4))).to).last().unwrap()), "tor1->root");
    }

    #[test]
    fn uplinks_can_be_faster() {
        let net = build("single_tree", &[("racks", "1"), ("hosts_per_rack", "1"), ("uplink_rate", "10Gbps")]);
        let expected = ["h0->tor0 1Gbps 10us", "tor0->h0 1Gbps 10us", "tor0->root 10Gbps 10us", "root->tor0 10Gbps 10us"];
        assert_eq!(links(&net), expected);
    }
}

//! Leaf switches with hosts; every leaf is connected to every spine.
//!
//! ```text
//!     spine0   spine1
//!      | \ \   / / |
//!      |  \ \ / /  |
//!    leaf0  leaf1  leaf2
//!     /|\    /|\    /|\
//!    h0 ...            h8
//! ```
//! Source: pFabric (SIGCOMM 2013) section 5.1.

use super::{Cables, Env, MAX_DELAY, MAX_RATE, MIN_DELAY, MIN_RATE, Size, Topology};
use base::params::Problem;
use base::registry::Meta;
use base::{Dur, Rate};
use fabric::net::NetBuilder;

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "leaf switches with hosts; every leaf is connected to every spine",
    source: "pFabric (SIGCOMM 2013) section 5.1: 9 leaves, 4 spines, 144 hosts",
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of a leaf-spine network. Over-subscription is `hosts_per_leaf * host_rate / (spines * spine_rate)`.
    pub struct Params {
        ..cables: Cables {}
        /// Number of leaves `leaf0`, `leaf1`, ...
        leaves: u32 = "9" in 1..=100_000, "pFabric section 5.1";
        /// Number of spines `spine0`, `spine1`, ...
        spines: u32 = "4" in 1..=100_000, "pFabric section 5.1";
        /// Number of hosts at each leaf.
        hosts_per_leaf: u32 = "16" in 1..=100_000, "pFabric section 5.1";
        /// Rate of the hosts' links.
        host_rate: Rate = "10Gbps" in MIN_RATE..=MAX_RATE, "pFabric section 5.1";
        /// Rate of the links between leaves and spines.
        spine_rate: Rate = "40Gbps" in MIN_RATE..=MAX_RATE, "pFabric section 5.1";
        /// Propagation delay of every link.
        delay: Dur = "1us" in MIN_DELAY..=MAX_DELAY, "cables and processing";
    }
}

/// Returns no problems: all combinations of values are valid.
pub fn check(_params: &Params, _env: &Env<'_>) -> Vec<Problem> {
    Vec::new()
}

/// The network.
pub struct LeafSpine(Params);

impl LeafSpine {
    /// Creates the topology with these parameters.
    pub fn new(params: &Params, _env: &Env<'_>) -> Self {
        LeafSpine(params.clone())
    }
}

impl Topology for LeafSpine {
    fn size(&self) -> Size {
        let (leaves, spines) = (u64::from(self.0.leaves), u64::from(self.0.spines));
        let hosts = leaves * u64::from(self.0.hosts_per_leaf);
        Size { hosts, switches: leaves + spines, cables: hosts + leaves * spines }
    }
    fn build(&self, net: &mut NetBuilder) {
        self.0.cables.set(net);
        let p = &self.0;
        let hosts: Vec<_> = (0..p.leaves * p.hosts_per_leaf).map(|i| net.host(format!("h{i}"), None)).collect();
        let leaves: Vec<_> = (0..p.leaves).map(|i| net.switch(format!("leaf{i}"), 1)).collect();
        let spines: Vec<_> = (0..p.spines).map(|i| net.switch(format!("spine{i}"), 2)).collect();
        for (i, host) in hosts.into_iter().enumerate() {
            net.cable(host, leaves[i / p.hosts_per_leaf as usize], p.host_rate, p.delay);
        }
        for leaf in leaves {
            for &spine in &spines {
                net.cable(leaf, spine, p.spine_rate, p.delay);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::topology::testing::{build, links};

    #[test]
    fn every_leaf_meets_every_spine() {
        let net = build("leaf_spine", &[("leaves", "2"), ("spines", "3"), ("hosts_per_leaf", "1")]);
        let up: Vec<String> = links(&net).into_iter().filter(|l| l.starts_with("leaf1->")).collect();
        let expected = ["leaf1->h1 10Gbps 1us", "leaf1->spine0 40Gbps 1us", "leaf1->spine1 40Gbps 1us", "leaf1->spine2 40Gbps 1us"];
        assert_eq!(up, expected);
        assert_eq!(build("leaf_spine", &[]).hosts().len(), 144);
    }
}

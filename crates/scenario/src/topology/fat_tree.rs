//! Three tiers of k-port switches: k pods of k/2 edge and k/2 aggregation switches, (k/2)^2 core switches, k^3/4 hosts.
//!
//! ```text
//!        core0    core1    core2    core3          k = 4
//!          |  \  /  |        |  \  /  |
//!        agg0_0   ...      agg0_1   ...   (agg a of every pod meets cores a*k/2 .. a*k/2 + k/2 - 1)
//!          |   \  /   |
//!       edge0_0   edge0_1   ...
//!        /  \      /  \
//!       h0  h1    h2  h3
//! ```
//! Source: Al-Fares et al., SIGCOMM 2008, sections 3.1 and 3.2 (addresses 10.pod.switch.host, hosts from 2).

use super::{Cables, Env, MAX_DELAY, MAX_RATE, MIN_DELAY, MIN_RATE, Size, Topology};
use base::params::{Auto, Problem};
use base::registry::Meta;
use base::{Dur, Rate};
use fabric::net::NetBuilder;

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "three tiers of k-port switches: k pods, k^3/4 hosts",
    source: "Al-Fares et al., SIGCOMM 2008; MERP section 6.2 with k = 4",
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of a fat tree.
    pub struct Params {
        ..cables: Cables {}
        /// Number of ports of a switch; even.
        k: u32 = "4" in 2..=128, "MERP section 6.2";
        /// Rate of the hosts' links.
        rate: Rate = "1Gbps" in MIN_RATE..=MAX_RATE, "MERP section 6.2";
        /// Rate of the links between switches; `auto`: equal to `rate`.
        fabric_rate: Auto<Rate> = "auto" in Auto::Set(MIN_RATE)..=Auto::Set(MAX_RATE), "no over-subscription";
        /// Propagation delay of every link.
        delay: Dur = "10us" in MIN_DELAY..=MAX_DELAY, "MERP section 6.2";
    }
}

/// Returns the problems that depend on the rest of the scenario.
pub fn check(params: &Params, _env: &Env<'_>) -> Vec<Problem> {
    if params.k.is_multiple_of(2) {
        return Vec::new();
    }
    let message = format!("`{}` is odd: half of the ports of a switch lead down, half lead up", params.k);
    vec![Problem { key: "k", message, hint: format!("write `k = {}` or `k = {}`", params.k - 1, params.k + 1) }]
}

/// The fat tree.
pub struct FatTree(Params);

impl FatTree {
    /// Creates the topology with these parameters.
    pub fn new(params: &Params, _env: &Env<'_>) -> Self {
        FatTree(params.clone())
    }
}

impl Topology for FatTree {
    fn size(&self) -> Size {
        let k = u64::from(self.0.k);
        let hosts = k * k * k / 4;
        Size { hosts, switches: k * k + k * k / 4, cables: 3 * hosts }
    }
    fn build(&self, net: &mut NetBuilder) {
        self.0.cables.set(net);
        let (k, half) = (self.0.k, self.0.k / 2);
        let (rate, up, delay) = (self.0.rate, self.0.fabric_rate.or(self.0.rate), self.0.delay);
        let mut hosts = Vec::new();
        for (pod, edge, i) in grid(k, half, half) {
            // 10.pod.edge.(2 + i)
            let address = 0x0a00_0000 | pod << 16 | edge << 8 | (2 + i);
            hosts.push(net.host(format!("h{}", hosts.len()), Some(address)));
        }
        let edges: Vec<_> = grid(k, half, 1).map(|(pod, i, _)| net.switch(format!("edge{pod}_{i}"), 1)).collect();
        let aggs: Vec<_> = grid(k, half, 1).map(|(pod, i, _)| net.switch(format!("agg{pod}_{i}"), 2)).collect();
        let cores: Vec<_> = (0..half * half).map(|i| net.switch(format!("core{i}"), 3)).collect();
        for (i, host) in hosts.into_iter().enumerate() {
            net.cable(host, edges[i / half as usize], rate, delay);
        }
        for (pod, edge, agg) in grid(k, half, half) {
            net.cable(edges[(pod * half + edge) as usize], aggs[(pod * half + agg) as usize], up, delay);
        }
        for (pod, agg, i) in grid(k, half, half) {
            net.cable(aggs[(pod * half + agg) as usize], cores[(agg * half + i) as usize], up, delay);
        }
    }
}

/// Returns all (x, y, z) below the bounds; z changes fastest.
fn grid(x: u32, y: u32, z: u32) -> impl Iterator<Item = (u32, u32, u32)> {
    (0..x).flat_map(move |a| (0..y).flat_map(move |b| (0..z).map(move |c| (a, b, c))))
}

#[cfg(test)]
mod tests {
    use crate::topology::testing::build;
    use base::HostId;
    use fabric::routes::Routes;

    #[test]
    fn k_4_is_the_network_of_merp_section_6_2() {
        let net = build("fat_tree", &[]);
        // 16 hosts, 20 four-port switches, 4 roots.
        assert_eq!((net.hosts().len(), net.nodes().len()), (16, 36));
        assert!(net.nodes().iter().skip(16).enumerate().all(|(i, _)| net.out_links(base::NodeId(16 + i as u32)).len() == 4));
        // The last host: pod 3, edge 1, second host.
        assert_eq!(net.node(net.hosts()[15]).address, 0x0a03_0103);
        let routes = Routes::new(&net, &[]);
        assert_eq!([1, 2, 4].map(|dst| routes.distance(net.hosts()[0], HostId(dst))), [Some(2), Some(4), Some(6)]);
    }

    #[test]
    fn every_core_meets_every_pod_once() {
        let net = build("fat_tree", &[("k", "6")]);
        for core in 0..9 {
            let node = net.nodes().iter().position(|n| n.name == format!("core{core}")).unwrap();
            let peers: Vec<String> =
                net.out_links(base::NodeId(node as u32)).map(|l| net.node(net.link(l).to).name.clone()).collect();
            let expected: Vec<String> = (0..6).map(|pod| format!("agg{pod}_{}", core / 3)).collect();
            assert_eq!(peers, expected);
        }
    }
}

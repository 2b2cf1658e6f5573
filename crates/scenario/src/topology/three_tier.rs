//! Pods of racks under aggregation switches, connected by core switches: a fat tree whose tiers may
//! be over-subscribed.
//!
//! ```text
//!          core0    core1    core2    core3       4 cores, 2 aggregation switches in a pod
//!            |  \  /  |        |  \  /  |
//!          agg0_0   ...      agg0_1   ...         (agg a of every pod meets every core c with c mod 2 = a)
//!            |   \  /   |
//!         rack0_0   rack0_1   ...
//!         / | \      / | \
//!        h0 h1 h2  h3 h4 h5
//! ```
//! Source: the authors' ns-2 script of ExpressPass (github.com/kaist-ina/ns2-xpass, scripts/large-scale-fattree.tcl): 192 hosts, 3:1 at the racks.

use super::{Cables, Env, MAX_DELAY, MAX_RATE, MIN_DELAY, MIN_RATE, Size, Topology};
use base::params::{Auto, Problem};
use base::registry::Meta;
use base::{Dur, Rate};
use fabric::net::NetBuilder;

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "pods of racks under aggregation switches, connected by core switches; over-subscription can be set",
    source: "ns2-xpass large-scale-fattree.tcl: 192 hosts, 32 racks, 16 aggregation switches, 8 cores",
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of a network of three tiers. Over-subscription at a rack is `hosts_per_rack * host_rate / (aggs * fabric_rate)`, in a pod
    /// `racks / (cores / aggs)`.
    pub struct Params {
        ..cables: Cables {}
        /// Number of pods.
        pods: u32 = "8" in 1..=10_000, "ns2-xpass";
        /// Number of racks `rack0_0`, `rack0_1`, ... in each pod.
        racks: u32 = "4" in 1..=10_000, "ns2-xpass";
        /// Number of hosts in each rack.
        hosts_per_rack: u32 = "6" in 1..=10_000, "ns2-xpass";
        /// Number of aggregation switches `agg0_0`, `agg0_1`, ... in each pod; each is connected to
        /// every rack of the pod.
        aggs: u32 = "2" in 1..=10_000, "ns2-xpass";
        /// Number of core switches `core0`, `core1`, ...; each is connected to one aggregation
        /// switch of every pod.
        cores: u32 = "8" in 1..=100_000, "ns2-xpass";
        /// Rate of the hosts' links.
        host_rate: Rate = "100Gbps" in MIN_RATE..=MAX_RATE, "SSP, CLUSTER 2020: 100 Gbit/s";
        /// Rate of the links between switches; `auto`: equal to `host_rate`.
        fabric_rate: Auto<Rate> = "auto" in Auto::Set(MIN_RATE)..=Auto::Set(MAX_RATE), "ns2-xpass";
        /// Propagation delay of every link.
        delay: Dur = "4us" in MIN_DELAY..=MAX_DELAY, "ns2-xpass";
    }
}

/// Returns the problems that depend on the rest of the scenario.
pub fn check(params: &Params, _env: &Env<'_>) -> Vec<Problem> {
    let Params { aggs, cores, .. } = *params;
    if cores.is_multiple_of(aggs) {
        return Vec::new();
    }
    let message = format!("`{cores}` core switches cannot be divided equally among the {aggs} aggregation switches of a pod");
    let below = (cores / aggs * aggs).max(aggs);
    vec![Problem { key: "cores", message, hint: format!("write a multiple of `aggs`, like `cores = {below}`") }]
}

/// The network.
pub struct ThreeTier(Params);

impl ThreeTier {
    /// Creates the topology with these parameters.
    pub fn new(params: &Params, _env: &Env<'_>) -> Self {
        ThreeTier(params.clone())
    }
}

impl Topology for ThreeTier {
    fn size(&self) -> Size {
        let [pods, racks, hosts, aggs, cores] =
            [self.0.pods, self.0.racks, self.0.hosts_per_rack, self.0.aggs, self.0.cores].map(u64::from);
        let hosts = pods * racks * hosts;
        Size { hosts, switches: pods * (racks + aggs) + cores, cables: hosts + pods * racks * aggs + pods * cores }
    }
    fn build(&self, net: &mut NetBuilder) {
        self.0.cables.set(net);
        let p = &self.0;
        let rate = p.fabric_rate.or(p.host_rate);
        let hosts: Vec<_> = (0..p.pods * p.racks * p.hosts_per_rack).map(|i| net.host(format!("h{i}"), None)).collect();
        let of_pods = |each: u32| (0..p.pods).flat_map(move |pod| (0..each).map(move |i| (pod, i)));
        let racks: Vec<_> = of_pods(p.racks).map(|(pod, i)| net.switch(format!("rack{pod}_{i}"), 1)).collect();
        let aggs: Vec<_> = of_pods(p.aggs).map(|(pod, i)| net.switch(format!("agg{pod}_{i}"), 2)).collect();
        let cores: Vec<_> = (0..p.cores).map(|i| net.switch(format!("core{i}"), 3)).collect();
        for (i, host) in hosts.into_iter().enumerate() {
            net.cable(host, racks[i / p.hosts_per_rack as usize], p.host_rate, p.delay);
        }
        for (pod, agg) in of_pods(p.aggs) {
            let agg_switch = aggs[(pod * p.aggs + agg) as usize];
            for rack in 0..p.racks {
                net.cable(racks[(pod * p.racks + rack) as usize], agg_switch, rate, p.delay);
            }
            for core in (agg..p.cores).step_by(p.aggs as usize) {
                net.cable(agg_switch, cores[core as usize], rate, p.delay);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::topology::testing::{build, links};
    use base::HostId;
    use fabric::routes::Routes;

    #[test]
    fn every_core_meets_one_aggregation_switch_of_every_pod() {
        let net = build("three_tier", &[("pods", "2"), ("racks", "3"), ("hosts_per_rack", "1"), ("cores", "4")]);
        let all = links(&net);
        let of = |from: &str| all.iter().filter(|link| link.starts_with(&format!("{from}->"))).cloned().collect::<Vec<_>>();
        assert_eq!(of("core3"), ["core3->agg0_1 100Gbps 4us", "core3->agg1_1 100Gbps 4us"]);
        assert_eq!(of("rack1_2"), ["rack1_2->h5 100Gbps 4us", "rack1_2->agg1_0 100Gbps 4us", "rack1_2->agg1_1 100Gbps 4us"]);
    }

    /// The network of the ns-2 script, whose longest path has six links.
    #[test]
    fn the_network_of_expresspass_is_the_default() {
        let net = build("three_tier", &[]);
        let tiers = [0, 1, 2, 3].map(|tier| net.nodes().iter().filter(|node| node.tier == tier).count());
        assert_eq!(tiers, [192, 32, 16, 8]);
        let routes = Routes::new(&net, &[]);
        assert_eq!([1, 6, 24].map(|dst| routes.distance(net.hosts()[0], HostId(dst))), [Some(2), Some(4), Some(6)]);
    }
}

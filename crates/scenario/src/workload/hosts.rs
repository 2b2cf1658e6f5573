//! Hosts and pairs of hosts as texts: `h0`, `h1->h5`; racks and pods.

use base::params::{Param, Raw};
use base::{HostId, NodeId};
use fabric::net::{HOST_TIER, Net};

pub use fabric::hosts::{host, name_of, set};

/// A host as a parameter: its name, or its number.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostName(pub String);

impl Param for HostName {
    fn expects() -> String {
        "the name of a host, like `h0`, or its number".to_owned()
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        match raw {
            Raw::Str(name) => Ok(HostName(name.clone())),
            Raw::Int(number) if *number >= 0 => Ok(HostName(number.to_string())),
            _ => Err("is not the name or number of a host".to_owned()),
        }
    }
    fn show(&self) -> String {
        self.0.clone()
    }
}

/// Parses pairs of different hosts: `h0->h3, h1->h4`.
pub fn pairs(net: &Net, text: &str) -> Result<Vec<(HostId, HostId)>, String> {
    let mut found = Vec::new();
    for part in text.split(',').map(str::trim) {
        let (src, dst) = part.split_once("->").ok_or_else(|| format!("`{part}` is not a pair like `h0->h3`"))?;
        let pair = (host(net, src.trim())?, host(net, dst.trim())?);
        if pair.0 == pair.1 {
            return Err(format!("`{part}`: a flow from a host to itself"));
        }
        found.push(pair);
    }
    Ok(found)
}

/// Returns the rack of a host: the switch that it is connected to, or the switch with the lowest id
/// if there are several.
pub fn rack(net: &Net, host: HostId) -> NodeId {
    debug_assert!(net.node(net.hosts()[host.index()]).tier == HOST_TIER);
    net.nics(host).map(|nic| net.link(nic).to).min().unwrap_or(net.hosts()[host.index()])
}

/// Returns whether two hosts are in the same rack.
pub fn same_rack(net: &Net, a: HostId, b: HostId) -> bool {
    rack(net, a) == rack(net, b)
}

/// Returns by host its pod, as the id of one of the nodes of the pod. Pods are the connected parts
/// of the network without the switches of the top tier; all hosts of a switch are in the same pod.
pub fn pods(net: &Net) -> Vec<NodeId> {
    let top = net.nodes().iter().map(|node| node.tier).max().unwrap_or_default();
    let mut pod: Vec<Option<NodeId>> = vec![None; net.nodes().len()];
    for first in (0..net.nodes().len() as u32).map(NodeId) {
        let mut next = vec![first];
        while let Some(node) = next.pop() {
            if pod[node.index()].is_none() {
                pod[node.index()] = Some(first);
                let near = net.out_links(node).map(|link| net.link(link).to).filter(|_| net.node(node).tier < top);
                next.extend(near.filter(|near| net.node(*near).tier < top));
            }
        }
    }
    (0..net.hosts().len() as u32).map(|host| rack(net, HostId(host))).map(|switch| pod[switch.index()].unwrap_or(switch)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::testing::build;

    #[test]
    fn texts_name_hosts() {
        let net = build("single_tree", &[]);
        let ids = |text: &str| set(&net, text).map(|v| v.iter().map(|h| h.0).collect::<Vec<_>>());
        assert_eq!(ids("all").unwrap().len(), 9);
        assert_eq!(ids("h5, h0..h2,h1").unwrap(), [0, 1, 2, 5]);
        assert_eq!(ids("7, 0..1").unwrap(), [0, 1, 7]);
        for (bad, why) in [("h9", "`h0` to `h8`"), ("tor0", "a switch"), ("h3..h1", "backwards"), ("", "no host ``")] {
            assert!(ids(bad).unwrap_err().contains(why), "{bad}");
        }
        assert_eq!(pairs(&net, "h0->h3, h1 -> h4").unwrap(), [(HostId(0), HostId(3)), (HostId(1), HostId(4))]);
        for (bad, why) in [("h0", "not a pair"), ("h0->h0", "itself"), ("h0->x", "no host")] {
            assert!(pairs(&net, bad).unwrap_err().contains(why), "{bad}");
        }
        assert!(same_rack(&net, HostId(0), HostId(2)) && !same_rack(&net, HostId(2), HostId(3)));
    }

    #[test]
    fn pods_are_connected_without_the_top_tier() {
        let pods = |topology: &str, set: &[(&'static str, &str)]| {
            let found = pods(&build(topology, set));
            let mut known: Vec<NodeId> = Vec::new();
            let number = |pod: NodeId| {
                known.iter().position(|other| *other == pod).unwrap_or_else(|| {
                    known.push(pod);
                    known.len() - 1
                })
            };
            found.into_iter().map(number).collect::<Vec<_>>()
        };
        assert_eq!(pods("fat_tree", &[]), [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]);
        assert_eq!(pods("single_tree", &[]), [0, 0, 0, 1, 1, 1, 2, 2, 2]);
        assert_eq!(pods("star", &[("hosts", "3")]), [0, 0, 0]);
        assert_eq!(pods("dumbbell", &[("left", "2"), ("right", "2")]), [0, 0, 1, 1]);
    }
}

//! Hosts with several NICs: the live NICs, and which of them are on shortest paths.

use super::search::{FAR, Found};
use crate::net::Net;
use base::{HostId, LinkId, NodeId};
use std::collections::BTreeMap;

/// The live cables of a host with several NICs.
#[derive(Clone, Debug, Default)]
pub(super) struct Cables {
    /// The live links into the host, by the node where they start and the port.
    down: Vec<LinkId>,
    /// The nodes where these links start.
    down_from: Vec<NodeId>,
    /// The live NICs by port, each with the node at the other end.
    up: Vec<(LinkId, NodeId)>,
    /// For each group of hosts: the NICs on shortest paths to it, as an index into `sets`.
    toward: Vec<u32>,
    /// Distinct sets of NICs.
    sets: Vec<Vec<LinkId>>,
    /// For each host at the other end of a cable: the NICs that lead to it.
    direct: BTreeMap<HostId, Vec<LinkId>>,
}

impl Cables {
    /// Returns the live cables of a host.
    pub fn new(net: &Net, host: HostId, alive: &dyn Fn(LinkId) -> bool) -> Cables {
        let mut cables = Cables::default();
        for nic in net.nics(host) {
            let link = net.link(nic);
            if alive(link.reverse) {
                cables.down.push(link.reverse);
            }
            if alive(nic) {
                cables.up.push((nic, link.to));
                if let Some(peer) = net.host(link.to) {
                    cables.direct.entry(peer).or_default().push(nic);
                }
            }
        }
        // Links are numbered by node and port.
        cables.down.sort_unstable();
        cables.down_from = cables.down.iter().map(|link| net.link(*link).from).collect();
        cables
    }

    /// Returns the live links into the host, each with the node where it starts, by that node.
    pub fn down(&self) -> impl Iterator<Item = (LinkId, NodeId)> {
        self.down.iter().copied().zip(self.down_from.iter().copied())
    }

    /// Returns the live links from a node to the host.
    pub fn down_at(&self, node: NodeId) -> &[LinkId] {
        let first = self.down_from.partition_point(|from| *from < node);
        &self.down[first..self.down_from.partition_point(|from| *from <= node)]
    }

    /// Returns the live NICs, by port.
    pub fn up(&self) -> impl Iterator<Item = &LinkId> {
        self.up.iter().map(|(nic, _)| nic)
    }

    /// Returns the live NICs that lead to other hosts.
    pub fn between_hosts(&self) -> impl Iterator<Item = &LinkId> {
        self.direct.values().flatten()
    }

    /// Returns the node at the other end of a live NIC.
    pub fn end(&self, nic: LinkId) -> Option<NodeId> {
        self.up.iter().find(|(up, _)| *up == nic).map(|(_, end)| *end)
    }

    /// Returns whether the host has a live NIC, and whether a live link leads to it.
    pub fn is_connected(&self) -> [bool; 2] {
        [!self.up.is_empty(), !self.down.is_empty()]
    }

    /// Determines which NICs lead to the hosts of each group: those on shortest paths; of these only the NICs that
    /// lead to switches within the server, if there are some. `number` is the index of each switch, by node.
    pub fn set_routes(&mut self, net: &Net, found: &Found, groups: u32, number: &[u32]) {
        for group in 0..groups {
            let steps = |end: NodeId| match net.host(end) {
                None => found.distance[found.cell(group, number[end.index()])],
                Some(_) => FAR,
            };
            let least = self.up.iter().map(|(_, end)| steps(*end)).min().unwrap_or(FAR);
            let nearest = self.up.iter().filter(|(_, end)| least != FAR && steps(*end) == least);
            // NCCL and other libraries send messages within a server over its own switches.
            let in_server = |(_, end): &&(LinkId, NodeId)| net.node(*end).in_server;
            let only = nearest.clone().any(|nic| in_server(&nic));
            let nics: Vec<LinkId> = nearest.filter(|nic| !only || in_server(nic)).map(|(nic, _)| *nic).collect();
            let known = self.sets.iter().position(|set| *set == nics).unwrap_or_else(|| {
                self.sets.push(nics);
                self.sets.len() - 1
            });
            self.toward.push(known as u32);
        }
    }

    /// Returns the NICs on shortest paths to a host of a group.
    pub fn toward(&self, dst: HostId, group: u32) -> &[LinkId] {
        match self.direct.get(&dst) {
            Some(nics) => nics,
            None => self.of_group(group),
        }
    }

    /// Returns the NICs on shortest paths to the hosts of a group that have no cable to this host.
    pub fn of_group(&self, group: u32) -> &[LinkId] {
        &self.sets[self.toward[group as usize] as usize]
    }

    /// Removes the links that are not `alive` from all sets. Distances do not change.
    pub fn retain(&mut self, alive: impl Fn(&LinkId) -> bool) {
        let kept = self.down().filter(|(link, _)| alive(link)).collect::<Vec<_>>();
        (self.down, self.down_from) = kept.into_iter().unzip();
        self.up.retain(|(nic, _)| alive(nic));
        self.sets.iter_mut().chain(self.direct.values_mut()).for_each(|set| set.retain(&alive));
    }
}

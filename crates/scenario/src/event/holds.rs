//! Links that are down.

use super::change::Change;
use base::{LinkId, NodeId};
use fabric::net::Net;

/// By link: the number of events that hold the link down.
#[derive(Clone, Debug)]
pub struct Holds(Vec<u32>);

impl Holds {
    /// Creates the state in which all links are up.
    pub fn new(net: &Net) -> Holds {
        Holds(vec![0; net.links().len()])
    }
    /// Applies a change. Returns the links that it takes down or brings up.
    pub fn apply(&mut self, net: &Net, change: &Change) -> Vec<LinkId> {
        let mut links = change.target.links(net);
        links.retain(|link| {
            let holds = &mut self.0[link.index()];
            if change.up {
                *holds -= 1;
                *holds == 0
            } else {
                *holds += 1;
                *holds == 1
            }
        });
        links
    }
    /// Returns by link whether it is down.
    pub fn all_down(&self) -> Vec<bool> {
        self.0.iter().map(|holds| *holds > 0).collect()
    }
    /// Returns whether a link is down.
    pub fn is_down(&self, link: LinkId) -> bool {
        self.0[link.index()] > 0
    }
    /// Returns by node the smallest id among the nodes that it is connected with.
    pub fn islands(&self, net: &Net) -> Vec<NodeId> {
        let mut island = vec![NodeId(u32::MAX); net.nodes().len()];
        let mut stack = Vec::new();
        for start in (0..net.nodes().len() as u32).map(NodeId) {
            if island[start.index()] != NodeId(u32::MAX) {
                continue;
            }
            island[start.index()] = start;
            stack.push(start);
            while let Some(node) = stack.pop() {
                for link in net.out_links(node).filter(|link| !self.is_down(*link)) {
                    let to = net.link(link).to;
                    if island[to.index()] == NodeId(u32::MAX) {
                        island[to.index()] = start;
                        stack.push(to);
                    }
                }
            }
        }
        island
    }
}

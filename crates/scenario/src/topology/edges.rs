//! Networks from lists of cables, read from files of several formats.

use super::{Cables, Env, MAX_DELAY, MAX_LOSS, MAX_RATE, MIN_DELAY, MIN_RATE, Size, Topology};
use base::params::Problem;
use base::{Dur, Fraction, Rate};
use fabric::net::NetBuilder;
use std::collections::VecDeque;
use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::Arc;

/// A file format for networks.
pub trait Read: 'static {
    /// The parameters of the topology.
    type Params: Debug;
    /// The hint of error messages: a description of the format.
    const HINT: &'static str;
    /// Returns the parameters of all cables.
    fn cables(params: &Self::Params) -> &Cables;
    /// Returns the path of the file.
    fn path(params: &Self::Params) -> &str;
    /// Reads the network. The error says what is wrong, and where.
    fn read(params: &Self::Params, env: &Env<'_>) -> Result<Edges, String>;
}

/// A topology that is read from a file.
pub struct OfFile<F> {
    cables: Cables,
    path: String,
    net: Arc<Edges>,
    format: PhantomData<fn() -> F>,
}

impl<F: Read> OfFile<F> {
    /// Creates the topology with these parameters. A file that [`check`] refuses gives an empty
    /// network.
    pub fn new(params: &F::Params, env: &Env<'_>) -> Self {
        let net = once::<F>(params, env).unwrap_or_default();
        OfFile { cables: F::cables(params).clone(), path: F::path(params).to_owned(), net, format: PhantomData }
    }
}

impl<F: Read> Topology for OfFile<F> {
    fn size(&self) -> Size {
        self.net.size()
    }
    fn build(&self, net: &mut NetBuilder) {
        self.net.build(&self.cables, net);
    }
    fn files(&self) -> Vec<String> {
        vec![self.path.clone()]
    }
}

/// Returns the problems of the file.
pub(super) fn check<F: Read>(params: &F::Params, env: &Env<'_>) -> Vec<Problem> {
    match once::<F>(params, env) {
        Ok(_) => Vec::new(),
        Err(message) => vec![Problem { key: "path", message, hint: F::HINT.to_owned() }],
    }
}

/// Returns the network; each file is read once.
fn once<F: Read>(params: &F::Params, env: &Env<'_>) -> Result<Arc<Edges>, String> {
    env.files.made(format!("{} {params:?}", std::any::type_name::<F>()), || F::read(params, env))
}

/// A network: nodes with their tiers, hosts first, and the cables between them.
#[derive(Default)]
pub struct Edges {
    nodes: Vec<(NodeOfFile, u8)>,
    cables: Vec<Edge>,
}

/// A cable between two nodes.
pub struct Edge {
    /// The nodes, by index.
    pub ends: [usize; 2],
    pub rate: Rate,
    pub delay: Dur,
    /// `None`: the loss of all cables.
    pub loss: Option<Fraction>,
}

/// A node.
pub struct NodeOfFile {
    pub name: String,
    pub host: bool,
    /// `None`: its distance from the nearest host.
    pub tier: Option<u8>,
    /// Whether the node is a switch within a server.
    pub in_server: bool,
}

impl Edges {
    /// Creates a network with the hosts first, hosts and switches each in the given order. Fails if
    /// a host has no cable.
    pub fn new(nodes: Vec<NodeOfFile>, cables: Vec<Edge>) -> Result<Edges, String> {
        let mut degree = vec![0; nodes.len()];
        cables.iter().flat_map(|cable| cable.ends).for_each(|end| degree[end] += 1);
        if let Some((bad, _)) = nodes.iter().zip(&degree).find(|(node, cables)| node.host && **cables == 0) {
            return Err(format!("host `{}` has no cable", bad.name));
        }
        let tiers = tiers(&nodes, &cables);
        let mut order: Vec<usize> = (0..nodes.len()).collect();
        order.sort_by_key(|i| !nodes[*i].host);
        let mut place = vec![0; nodes.len()];
        for (new, old) in order.iter().enumerate() {
            place[*old] = new;
        }
        let mut nodes: Vec<Option<NodeOfFile>> = nodes.into_iter().map(Some).collect();
        let nodes = order.iter().filter_map(|i| Some((nodes[*i].take()?, tiers[*i]))).collect();
        let cables = cables.into_iter().map(|cable| Edge { ends: cable.ends.map(|end| place[end]), ..cable }).collect();
        Ok(Edges { nodes, cables })
    }
    /// Returns the size of the network.
    pub fn size(&self) -> Size {
        let hosts = self.nodes.iter().filter(|n| n.1 == 0).count() as u64;
        Size { hosts, switches: self.nodes.len() as u64 - hosts, cables: self.cables.len() as u64 }
    }
    /// Adds the nodes and cables to `net`.
    pub fn build(&self, common: &Cables, net: &mut NetBuilder) {
        common.set(net);
        let add = |(node, tier): &(NodeOfFile, u8)| match node {
            node if *tier == 0 => net.host(&node.name, None),
            node if node.in_server => net.server_switch(&node.name),
            node => net.switch(&node.name, *tier),
        };
        let ids: Vec<_> = self.nodes.iter().map(add).collect();
        for &Edge { ends: [a, b], rate, delay, loss } in &self.cables {
            net.lossy_cable(ids[a], ids[b], rate, delay, loss.unwrap_or(common.loss));
        }
    }
}

/// Checks that a text can be the name of a node: links are named after the nodes at their ends, and
/// parameters take names of hosts and ports or words and patterns that choose some of them. The error
/// completes a sentence that begins with the text.
pub(super) fn name(text: &str) -> Result<&str, String> {
    if text.is_empty() || text.contains("->") || text.contains(|c: char| c == ',' || c.is_whitespace()) {
        return Err("is not a name: no spaces, commas or arrows".to_owned());
    }
    if ["all", "random", "rotating"].contains(&text) || text.contains("..") || text.contains('*') {
        return Err("is not a name: `all`, `random`, `rotating`, `..` and `*` choose hosts or ports".to_owned());
    }
    Ok(text)
}
/// Checks the range of a link rate. The error completes a sentence that begins with the rate.
pub(super) fn rate(rate: Rate) -> Result<Rate, String> {
    if (MIN_RATE..=MAX_RATE).contains(&rate) { Ok(rate) } else { Err(format!("is out of range: from {MIN_RATE} to {MAX_RATE}")) }
}

/// Checks the range of a link delay. The error completes a sentence that begins with the delay.
pub(super) fn delay(delay: Dur) -> Result<Dur, String> {
    if (MIN_DELAY..=MAX_DELAY).contains(&delay) {
        Ok(delay)
    } else {
        Err(format!("is out of range: from {MIN_DELAY} to {MAX_DELAY}"))
    }
}

/// Checks the range of a link loss. The error completes a sentence that begins with the loss.
pub(super) fn loss(loss: Fraction) -> Result<Fraction, String> {
    if loss <= MAX_LOSS { Ok(loss) } else { Err(format!("is out of range: from 0 to {MAX_LOSS}")) }
}

/// Returns the tiers: as declared, else the distance from the nearest host, or 1 if no host can be
/// reached.
fn tiers(nodes: &[NodeOfFile], cables: &[Edge]) -> Vec<u8> {
    let mut peers: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for &Edge { ends: [a, b], .. } in cables {
        peers[a].push(b);
        peers[b].push(a);
    }
    let mut distance: Vec<Option<u8>> = nodes.iter().map(|node| node.host.then_some(0)).collect();
    let mut queue: VecDeque<usize> = (0..nodes.len()).filter(|i| nodes[*i].host).collect();
    while let Some(node) = queue.pop_front() {
        let next = distance[node].unwrap_or(0).saturating_add(1);
        for &peer in &peers[node] {
            if distance[peer].is_none() {
                distance[peer] = Some(next);
                queue.push_back(peer);
            }
        }
    }
    nodes.iter().zip(distance).map(|(node, distance)| node.tier.or(distance).unwrap_or(1)).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_of_nodes_are_no_words_of_parameters() {
        for good in ["h0", "7", "all_hosts", "ALL", "a.b", "fabric", "tor-1", "h--2"] {
            assert_eq!(super::name(good), Ok(good));
        }
        for bad in ["", "a b", "a,b", "a->b", "all", "random", "rotating", "h0..h3", "h*"] {
            assert!(super::name(bad).is_err_and(|why| why.starts_with("is not a name: ")), "{bad}");
        }
    }
}

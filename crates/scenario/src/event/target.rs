//! Targets of events: the cables between two nodes, a node, a tier.

use super::params::Cable;
use base::params::nearest;
use base::{LinkId, NodeId};
use fabric::net::{HOST_TIER, Net, Tier};
use std::collections::BTreeMap;

/// The cables or the node that go down or come up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// All cables between two nodes, the smaller id first.
    Cables(NodeId, NodeId),
    /// All cables of a node.
    Node(NodeId),
}

impl Target {
    /// Returns the links of the target, in both directions.
    pub fn links(self, net: &Net) -> Vec<LinkId> {
        let (Target::Cables(node, _) | Target::Node(node)) = self;
        let hit = |link: &LinkId| !matches!(self, Target::Cables(_, far) if net.link(*link).to != far);
        net.out_links(node).filter(hit).flat_map(|link| [link, net.link(link).reverse]).collect()
    }
    /// Returns its name: `agg0_1--core3`, `core3`.
    pub fn name(self, net: &Net) -> String {
        match self {
            Target::Cables(a, b) => [a, b].map(|node| &*net.node(node).name).join(Cable::JOINT),
            Target::Node(node) => net.node(node).name.clone(),
        }
    }
}

/// Returns the node with this name, or message and hint.
pub(super) fn node(net: &Net, name: &str) -> Result<NodeId, (String, String)> {
    if let Some(index) = net.nodes().iter().position(|n| n.name == name) {
        return Ok(NodeId(index as u32));
    }
    let near = nearest(name, net.nodes().iter().map(|n| n.name.as_str()));
    let did = near.map_or(String::new(), |n| format!(": did you mean `{n}`?"));
    let tiers = tiers(net).into_iter().map(|(tier, word)| {
        let mut of = net.nodes().iter().filter(|n| n.tier == tier).map(|n| n.name.as_str());
        let (first, last) = (of.next().unwrap_or_default(), of.next_back());
        format!("{word} {}", last.map_or(format!("`{first}`"), |last| format!("`{first}` to `{last}`")))
    });
    let hint = format!("the nodes are {}", tiers.collect::<Vec<_>>().join(", "));
    Err((format!("there is no node `{name}`{did}"), hint))
}

/// Returns message and hint for two nodes without a cable.
pub(super) fn not_adjacent(net: &Net, a: NodeId, b: &str) -> (String, String) {
    let from = &net.node(a).name;
    let mut peers: Vec<&str> = net.out_links(a).map(|l| net.node(net.link(l).to).name.as_str()).collect();
    peers.dedup();
    let did = nearest(b, peers.iter().copied()).map_or(String::new(), |n| format!(": did you mean `{n}`?"));
    let more = if peers.len() > 8 { ", ..." } else { "" };
    let listed: Vec<String> = peers.iter().take(8).map(|p| format!("`{p}`")).collect();
    (format!("no cable joins `{from}` and `{b}`{did}"), format!("the neighbours of `{from}` are {}{more}", listed.join(", ")))
}

/// Returns the tiers of a network from the hosts up, with their names: the common prefix of the
/// names of their nodes, or else `tier2`.
pub(super) fn tiers(net: &Net) -> Vec<(Tier, String)> {
    let mut stems: BTreeMap<Tier, Option<&str>> = BTreeMap::new();
    for node in net.nodes() {
        let stem = &node.name[..node.name.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(node.name.len())];
        let stem = Some(stem).filter(|s| !s.is_empty());
        stems.entry(node.tier).and_modify(|known| *known = known.filter(|k| Some(*k) == stem)).or_insert(stem);
    }
    let word = |tier: Tier, stem: Option<&str>| match stem {
        _ if tier == HOST_TIER => "host".to_owned(),
        Some(stem) if stem != "fabric" && stems.values().filter(|s| **s == Some(stem)).count() == 1 => stem.to_owned(),
        _ => format!("tier{tier}"),
    };
    stems.iter().map(|(&tier, &stem)| (tier, word(tier, stem))).collect()
}

/// Returns all targets that a `tier` of a scenario names, in the order of ids.
pub(super) fn of_tier(net: &Net, text: &str) -> Result<Vec<Target>, (String, String)> {
    let tiers = tiers(net);
    let by_name = |name: &str| tiers.iter().find(|(_, word)| word == name).map(|(tier, _)| *tier);
    let cables = |joined: &dyn Fn(Tier, Tier) -> bool| {
        let tier = |node: NodeId| net.node(node).tier;
        let ends = net.links().iter().filter(|l| l.from < l.to && joined(tier(l.from), tier(l.to)));
        let mut all: Vec<Target> = ends.map(|l| Target::Cables(l.from, l.to)).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    let found = match text.split_once('-').map(|(a, b)| (by_name(a.trim()), by_name(b.trim()))) {
        _ if text == "fabric" => cables(&|a, b| a != HOST_TIER && b != HOST_TIER),
        Some((Some(a), Some(b))) => cables(&|x, y| (x, y) == (a, b) || (x, y) == (b, a)),
        Some(_) => Vec::new(),
        None => {
            let nodes = (0..net.nodes().len() as u32).map(NodeId);
            nodes.filter(|n| by_name(text) == Some(net.node(*n).tier)).map(Target::Node).collect()
        }
    };
    if found.is_empty() {
        let mut words: Vec<String> = vec!["fabric".to_owned()];
        for (i, (a, low)) in tiers.iter().enumerate() {
            let joined = |b: Tier| net.links().iter().any(|l| (net.node(l.from).tier, net.node(l.to).tier) == (*a, b));
            words.extend(tiers[i..].iter().filter(|(b, _)| joined(*b)).map(|(_, high)| format!("{low}-{high}")));
        }
        words.extend(tiers.iter().map(|(_, word)| word.clone()));
        let listed: Vec<String> = words.iter().map(|w| format!("`{w}`")).collect();
        // The two tiers may be written in either order.
        let turned: Vec<String> = words.iter().filter_map(|w| w.split_once('-')).map(|(a, b)| format!("{b}-{a}")).collect();
        let near = nearest(text, words.iter().chain(&turned).map(String::as_str));
        let near = near.map_or(String::new(), |n| format!(": did you mean `{n}`?"));
        return Err((format!("there is no tier `{text}`{near}"), format!("the tiers here are {}", listed.join(", "))));
    }
    Ok(found)
}

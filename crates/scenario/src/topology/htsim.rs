//! A network from a topology file of htsim (`.topo`): hosts under two or three tiers of switches.
//!
//! ```text
//! Nodes 32                hosts
//! Tiers 2
//! Podsize 32              hosts of a pod; with two tiers there is a single pod
//!
//! Tier 0                  ToR switches; 1 are aggregation switches, 2 are core switches
//! Downlink_speed_Gbps 100
//! Downlink_Latency_ns 1000
//! Switch_Latency_ns 0     0 by default
//! Radix_Down 8            ports to the tier below
//! Radix_Up 2              ports to the tier above, except for the top tier
//! Oversubscribed 4        if given, must agree with rates and ports
//! Bundle 1                parallel links between two switches, to the tier below; 1 by default
//! ```
//! Keys may have any case; `#` begins a comment. ToR switches are connected to all aggregation
//! switches of their pod. Aggregation switch a of each pod is connected to the core switches a, a +
//! A, a + 2A and so on, with A aggregation switches in a pod.
//!
//! Source: Broadcom/csg-htsim, `FatTreeTopology::load` and `init_network` of sim/datacenter.
//!
//! Model: half of the latency of a switch is added to the delay of each link of the switch, so that
//! a path takes the same time as in htsim. `Queue_Up` and `Queue_Down` have no effect: queues
//! belong to systems.

use super::edges::{self, Edge, Edges, NodeOfFile, OfFile, Read};
use super::{Cables, Env};
use crate::files::tokens::{Line, Tokens, Word, lines};
use base::params::{Problem, nearest};
use base::registry::Meta;
use base::{Dur, Rate};

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "a network from a topology file of htsim",
    source: "Broadcom/csg-htsim, sim/datacenter/topologies",
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of a network from a file.
    pub struct Params {
        ..cables: Cables {}
        /// Path of the `.topo` file; relative to the scenario.
        path: String = "", "";
    }
}

/// Returns the problems that depend on the rest of the scenario.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    edges::check::<Format>(params, env)
}

/// A network from a topology file of htsim.
pub type Htsim = OfFile<Format>;

/// The file format.
pub struct Format;

impl Read for Format {
    type Params = Params;
    const HINT: &'static str = "the file has `Nodes`, `Tiers` and `Podsize`, then lines like `Radix_Down 8` for each `Tier`";
    fn cables(params: &Params) -> &Cables {
        &params.cables
    }
    fn path(params: &Params) -> &str {
        &params.path
    }
    fn read(params: &Params, env: &Env<'_>) -> Result<Edges, String> {
        read(&params.path, &env.files.text(&params.path)?)
    }
}

/// Maximum number of hosts and of links: more than any file of that simulator has.
const MOST: u64 = 1 << 24;

/// The keys before the tiers, and the keys of a tier with their largest values.
const HEAD: [&str; 3] = ["nodes", "tiers", "podsize"];
const TIER: [(&str, u64); 9] = [
    ("downlink_speed_gbps", 100_000),
    ("downlink_latency_ns", 10_000_000_000),
    ("switch_latency_ns", 10_000_000_000),
    ("radix_down", 1 << 16),
    ("radix_up", 1 << 16),
    ("oversubscribed", 1 << 16),
    ("bundle", 1 << 16),
    ("queue_up", u64::MAX),
    ("queue_down", u64::MAX),
];

/// Values by key, each with its place.
#[derive(Default)]
struct Keys<'a> {
    /// The owner of the keys, for messages: `Tier 1`.
    of: String,
    values: Vec<(&'static str, u64, Word<'a>)>,
}

impl<'a> Keys<'a> {
    fn find(&self, key: &str) -> Option<(u64, &Word<'a>)> {
        self.values.iter().find(|(known, ..)| *known == key).map(|(_, value, word)| (*value, word))
    }
    fn or(&self, key: &str, default: u64) -> u64 {
        self.find(key).map_or(default, |(value, _)| value)
    }
    fn need(&self, path: &str, key: &str) -> Result<u64, String> {
        self.find(key).map(|(value, _)| value).ok_or_else(|| format!("{path}: {} has no `{key}`", self.of))
    }
    fn put(
        &mut self,
        tokens: &Tokens<'_>,
        key: &'static str,
        most: u64,
        word: Word<'a>,
        line: &mut Line<'a>,
    ) -> Result<(), String> {
        let least = u64::from(!key.ends_with("latency_ns") && !key.starts_with("queue"));
        if self.find(key).is_some() {
            return Err(tokens.wrong(&word, format!("is given twice for {}", self.of)));
        }
        self.values.push((key, line.number(tokens, word.text, least, most)?, word));
        line.end(tokens)
    }
}

/// A tier of switches.
struct Tier {
    rate: Rate,
    latency: Dur,
    switch_latency: Dur,
    down: u64,
    up: u64,
    bundle: u64,
}

fn read(path: &str, text: &str) -> Result<Edges, String> {
    let mut tokens = Tokens::new(path, text);
    let mut head = Keys { of: "the file".to_owned(), ..Keys::default() };
    let mut tiers: Vec<Keys<'_>> = Vec::new();
    for mut line in lines(&mut tokens) {
        let Some(word) = line.words.next() else { continue };
        let key = word.text.to_ascii_lowercase();
        if key == "tier" {
            let number = line.number(&tokens, "Tier", tiers.len() as u64, tiers.len() as u64)?;
            line.end(&tokens)?;
            tiers.push(Keys { of: format!("Tier {number}"), ..Keys::default() });
            continue;
        }
        let known = TIER.iter().find(|(known, _)| *known == key);
        match (HEAD.iter().find(|known| **known == key), known, tiers.last_mut()) {
            (Some(known), ..) => head.put(&tokens, known, MOST, word, &mut line)?,
            (None, Some((known, most)), Some(tier)) => tier.put(&tokens, known, *most, word, &mut line)?,
            (None, Some(_), None) => return Err(tokens.wrong(&word, "is before the first `Tier`")),
            (None, None, _) => {
                let near = nearest(&key, HEAD.into_iter().chain(TIER.iter().map(|(known, _)| *known)));
                let near = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
                return Err(tokens.wrong(&word, format!("is not a key of this file{near}")));
            }
        }
    }
    let shape = Shape::of(path, &tokens, &head, &tiers)?;
    Edges::new(shape.nodes(), shape.cables()).map_err(|why| format!("{path}: {why}"))
}

/// The numbers of hosts and switches.
struct Shape {
    hosts: u64,
    pods: u64,
    tiers: Vec<Tier>,
    /// ToR switches of a pod.
    tors: u64,
    /// Aggregation switches of a pod.
    aggs: u64,
    cores: u64,
}

impl Shape {
    fn of(path: &str, tokens: &Tokens<'_>, head: &Keys<'_>, keys: &[Keys<'_>]) -> Result<Shape, String> {
        let [hosts, count, pod] = ["nodes", "tiers", "podsize"].map(|key| head.need(path, key));
        let (hosts, count, pod) = (hosts?, count?, pod?);
        let wrong = |of: &Keys<'_>, key: &str, why: String| match of.find(key) {
            Some((_, word)) => tokens.wrong(word, why),
            None => format!("{path}: `{key}` {why}"),
        };
        if !(2..=3).contains(&count) {
            return Err(wrong(head, "tiers", format!("is {count}, but must be 2 or 3")));
        }
        if keys.len() as u64 != count {
            return Err(wrong(head, "tiers", format!("is {count}, but the file has {}", keys.len())));
        }
        if hosts % pod != 0 || (count == 2 && hosts != pod) {
            let why = if count == 2 { "with two tiers there is a single pod" } else { "all pods must have this size" };
            return Err(wrong(head, "podsize", format!("is {pod} with {hosts} hosts: {why}")));
        }
        let read = |(number, keys): (usize, &Keys<'_>)| {
            let top = number + 1 == count as usize;
            let up = if top { 0 } else { keys.need(path, "radix_up")? };
            if let (true, Some((_, word))) = (top, keys.find("radix_up")) {
                return Err(tokens.wrong(word, "is given for the top tier, which has no tier above"));
            }
            Ok(Tier {
                rate: Rate(keys.need(path, "downlink_speed_gbps")? * 1_000_000_000),
                latency: Dur::from_ns(keys.need(path, "downlink_latency_ns")?),
                switch_latency: Dur::from_ns(keys.or("switch_latency_ns", 0)),
                down: keys.need(path, "radix_down")?,
                up,
                bundle: keys.or("bundle", 1),
            })
        };
        let tiers = keys.iter().enumerate().map(read).collect::<Result<Vec<Tier>, String>>()?;
        if tiers[0].bundle != 1 {
            return Err(wrong(&keys[0], "bundle", "must be 1: a host has one link".to_owned()));
        }
        if pod % tiers[0].down != 0 {
            return Err(wrong(
                &keys[0],
                "radix_down",
                format!("is {}, which does not divide the {pod} hosts of a pod", tiers[0].down),
            ));
        }
        let (pods, tors) = (hosts / pod, pod / tiers[0].down);
        let divided = |tier: usize| {
            let (up, bundle) = (tiers[tier].up, tiers[tier + 1].bundle);
            let why = || format!("is {up}, which is not a multiple of the `Bundle` {bundle} of Tier {}", tier + 1);
            if up % bundle == 0 { Ok(up / bundle) } else { Err(wrong(&keys[tier], "radix_up", why())) }
        };
        // Each switch of a tier has a bundle of links to each switch below that it is connected to.
        let ports_match = |tier: usize, below: u64, what: &str| {
            let Tier { down, bundle, .. } = tiers[tier];
            let why = || format!("is {down}, but {below} {what} with {bundle} links each need {}", below * bundle);
            if down == below * bundle { Ok(()) } else { Err(wrong(&keys[tier], "radix_down", why())) }
        };
        let aggs = divided(0)?;
        ports_match(1, tors, "ToR switches of a pod")?;
        let mut cores = 0;
        if count == 3 {
            cores = aggs * divided(1)?;
            ports_match(2, pods, "pods")?;
        }
        let shape = Shape { hosts, pods, tors, aggs, cores, tiers };
        for (pair, keys) in shape.tiers.windows(2).zip(keys) {
            let [below, above] = pair else { continue };
            let (down, up) = (below.rate.0 * below.down, above.rate.0 * below.up);
            let given = keys.find("oversubscribed").map(|(ratio, _)| ratio);
            if let Some(ratio) = given.filter(|ratio| u128::from(down) != u128::from(up) * u128::from(*ratio)) {
                let why = format!("is {ratio}, but rates and ports give {}", down as f64 / up as f64);
                return Err(wrong(keys, "oversubscribed", why));
            }
        }
        let links = hosts + pods * (tors * shape.tiers[0].up + aggs * shape.tiers[1].up);
        if links > MOST { Err(format!("{path}: the file has {links} links, but at most {MOST} are read")) } else { Ok(shape) }
    }

    fn nodes(&self) -> Vec<NodeOfFile> {
        let named = |prefix: &'static str, count: u64, tier: u8| {
            (0..count).map(move |i| NodeOfFile {
                name: format!("{prefix}{i}"),
                host: tier == 0,
                tier: Some(tier),
                in_server: false,
            })
        };
        let switches = named("tor", self.pods * self.tors, 1).chain(named("agg", self.pods * self.aggs, 2));
        named("h", self.hosts, 0).chain(switches).chain(named("core", self.cores, 3)).collect()
    }

    fn cables(&self) -> Vec<Edge> {
        // Index of the first ToR, aggregation and core switch among the nodes.
        let (tor, agg) = (self.hosts, self.hosts + self.pods * self.tors);
        let core = agg + self.pods * self.aggs;
        let half = |tier: usize| self.tiers[tier].switch_latency / 2;
        let edge = |below: u64, above: u64, tier: usize| {
            let Tier { rate, latency, .. } = self.tiers[tier];
            let delay = latency + half(tier) + if tier == 0 { Dur::ZERO } else { half(tier - 1) };
            Edge { ends: [below as usize, above as usize], rate, delay, loss: None }
        };
        let mut cables: Vec<Edge> = (0..self.hosts).map(|host| edge(host, tor + host / self.tiers[0].down, 0)).collect();
        for (pod, below) in (0..self.pods).flat_map(|pod| (0..self.tors).map(move |i| (pod, pod * self.tors + i))) {
            for above in (0..self.aggs).map(|i| pod * self.aggs + i) {
                cables.extend((0..self.tiers[1].bundle).map(|_| edge(tor + below, agg + above, 1)));
            }
        }
        for below in (0..self.pods * self.aggs).filter(|_| self.cores > 0) {
            for above in (below % self.aggs..self.cores).step_by(self.aggs as usize) {
                cables.extend((0..self.tiers[2].bundle).map(|_| edge(agg + below, core + above, 2)));
            }
        }
        cables
    }
}

#[cfg(test)]
mod tests {
    use super::super::Topology;
    use super::*;
    use crate::files::Files;
    use crate::files::tokens::testing::mangled;
    use base::params::Params as _;
    use fabric::net::{Net, NetBuilder};

    const LEAF_SPINE: &str = "# two tiers\nNodes 32\nTiers 2\nPodsize 32\n\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 8\nRadix_Up 2\n\
        Downlink_Latency_ns 1000\nSwitch_Latency_ns 500\nOversubscribed 4\nQueue_Up 100000\n\nTier 1\ndownlink_speed_gbps 100\nRadix_Down 4\n\
        Downlink_Latency_ns 2000\nSwitch_Latency_ns 300\n";
    const BUNDLED: &str = "Nodes 432\nTiers 3\nPodsize 36\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 6\nRadix_Up 6\nDownlink_Latency_ns 1000\n\
        Tier 1\nDownlink_speed_Gbps 100\nRadix_Down 6\nRadix_Up 6\nDownlink_Latency_ns 1000\n\
        Tier 2\nDownlink_speed_Gbps 100\nRadix_Down 36\nDownlink_Latency_ns 600000\nBundle 3\n";

    fn attempt(text: &str) -> Result<Net, String> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("t.topo"), text).unwrap();
        let params = Params { path: "t.topo".into(), cables: Cables::defaults() };
        let files = Files::new(dir.path());
        let env = Env { files: &files };
        if let Some(problem) = check(&params, &env).pop() {
            return Err(problem.message);
        }
        let mut net = NetBuilder::default();
        Htsim::new(&params, &env).build(&mut net);
        Ok(net.build())
    }

    #[test]
    fn two_tiers_are_a_leaf_spine() {
        let net = attempt(LEAF_SPINE).unwrap();
        assert_eq!((net.hosts().len(), net.nodes().len(), net.links().len()), (32, 32 + 4 + 2, 2 * (32 + 8)));
        let links = crate::topology::testing::links(&net);
        assert_eq!(links[9], "h9->tor1 100Gbps 1.25us");
        // The link, and half of the latency of both switches.
        assert!(links.contains(&"tor3->agg1 100Gbps 2.4us".to_owned()), "{links:?}");
        // Across a spine: four links, two ToR switches and an aggregation switch.
        let routes = fabric::routes::Routes::new(&net, &[]);
        assert_eq!(routes.distance(net.hosts()[0], base::HostId(31)), Some(4));
    }

    #[test]
    fn three_tiers_have_bundles_and_every_pod_meets_every_core() {
        let net = attempt(BUNDLED).unwrap();
        // 12 pods of 6 ToR and 6 aggregation switches; 6 * 2 core switches with 3 links to each pod.
        assert_eq!(net.nodes().len(), 432 + 72 + 72 + 12);
        assert_eq!(net.links().len(), 2 * (432 + 72 * 6 + 72 * 6));
        let links = crate::topology::testing::links(&net);
        for (name, times) in
            [("agg13->core1 100Gbps 600us", 3), ("agg13->core7 100Gbps 600us", 3), ("agg13->core2 100Gbps 600us", 0)]
        {
            assert_eq!(links.iter().filter(|link| *link == name).count(), times, "{name}");
        }
    }

    #[test]
    fn mistakes_are_named_with_their_places() {
        let cases = [
            ("Radix_Down 8", "Radix_Down 8 16", "t.topo:8:14: `16` has no meaning here"),
            ("Nodes 32", "Nodes 33", "`podsize` is 32 with 33 hosts: with two tiers there is a single pod"),
            ("Podsize 32\n", "", "the file has no `podsize`"),
            ("Tiers 2", "Tiers 4", "t.topo:3:1: `Tiers` is 4, but must be 2 or 3"),
            ("Tiers 2", "Tiers 3", "`Tiers` is 3, but the file has 2"),
            ("Tier 1", "Tier 2", "`2` is not a value of `Tier`: must be a whole number from 1 to 1"),
            ("Radix_Down 8", "Radix_Down 7", "t.topo:8:1: `Radix_Down` is 7, which does not divide the 32 hosts"),
            ("Radix_Down 4", "Radix_Down 5", "`Radix_Down` is 5, but 4 ToR switches of a pod with 1 links each need 4"),
            ("Radix_Down 4", "Radix_Down 4\nRadix_Up 2", "`Radix_Up` is given for the top tier"),
            ("Radix_Up 2", "Radix_Upp 2", "`Radix_Upp` is not a key of this file; did you mean `radix_up`?"),
            ("Radix_Up 2", "Radix_Up 2\nradix_up 2", "`radix_up` is given twice for Tier 0"),
            ("Oversubscribed 4", "Oversubscribed 2", "t.topo:12:1: `Oversubscribed` is 2, but rates and ports give 4"),
            ("Downlink_Latency_ns 1000\n", "", "Tier 0 has no `downlink_latency_ns`"),
            ("# two tiers", "Radix_Down 3", "`Radix_Down` is before the first `Tier`"),
        ];
        for (from, to, why) in cases {
            assert!(LEAF_SPINE.contains(from), "{from}");
            let message = attempt(&LEAF_SPINE.replacen(from, to, 1)).map(|_| ()).unwrap_err();
            let shown = why.replace("`podsize`", "`Podsize`");
            assert!(message.contains(why) || message.contains(&shown), "{to}: {message}");
        }
        let message = attempt(&BUNDLED.replace("Bundle 3", "Bundle 4")).map(|_| ()).unwrap_err();
        assert!(message.contains("`Radix_Up` is 6, which is not a multiple of the `Bundle` 4 of Tier 2"), "{message}");
    }

    #[test]
    fn no_file_breaks_the_reader() {
        for sample in [LEAF_SPINE, BUNDLED] {
            for text in mangled(sample) {
                let _ = attempt(&text);
            }
        }
    }
}

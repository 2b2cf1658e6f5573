//! Failures as data: which links and switches go down and come up, and when.
//!
//! Every `[[event]]` names a cable, a node, or how many to draw at random. What it takes down stays down while any event holds it
//! down: a cable between two dead switches needs both to come back. Random draws depend on the seed and the event's place in the
//! scenario only (stream `failure`), so that all systems lose the same links; of two counts the larger draw includes the smaller.

pub(crate) mod read;

use crate::workload::MAX_TIME;
use base::params::{Auto, Param, Problem, Raw, nearest};
use base::{Dur, Fraction, LinkId, NodeId, Rng, Time};
use fabric::net::{HOST_TIER, Net, Tier};
use std::collections::BTreeMap;

base::choice! {
    /// What an event does to its target.
    pub enum State {
        /// It goes down.
        Down = "down",
        /// It comes up again.
        Up = "up",
    }
}

base::choice! {
    /// What to do about flows whose hosts stay apart.
    pub enum Unreachable {
        /// Refuse to run.
        Refuse = "refuse",
        /// Run to `end`; such flows are among the unfinished.
        Run = "run",
    }
}

base::params! {
    /// An event: one of `link`, `node` and `random` goes down or comes up.
    pub struct EventParams {
        /// When.
        at: Dur = "0s" in Dur::ZERO..=MAX_TIME, "from the start";
        /// What happens: `down`, or `up` after an earlier `down`.
        state: State = "down", "most events are failures";
        /// When it comes up again; `auto`: not by this event.
        until: Auto<Dur> = "auto" in Auto::Set(Dur(1))..=Auto::Set(MAX_TIME), "a failure lasts";
        /// A cable, both directions, by the nodes at its ends: `["agg0_1", "core3"]`.
        link: Option<Cable> = "none", "one of `link`, `node` and `random` must be given";
        /// A switch or host with all its cables.
        node: Option<NodeName> = "none", "one of `link`, `node` and `random` must be given";
    }
}

base::params! {
    /// Random failures: cables or switches of a tier, drawn by the seed.
    pub struct RandomParams {
        /// How many, all different.
        count: Option<u32> = "none" in Some(1)..=Some(1_000_000), "one of `count` and `probability` must be given";
        /// Or with which probability each.
        probability: Option<Fraction> = "none" in Some(Fraction(0))..=Some(Fraction::ONE), "one of `count` and `probability` must be given";
        /// Among which: `fabric` for all cables between switches, two tiers as `agg-core` for the cables between them, one tier as
        /// `core` for its switches.
        tier: String = "fabric", "hosts have one cable only";
    }
}

base::params! {
    /// What follows a failure or repair.
    pub struct FailureParams {
        /// From the event until the nodes next to it know and stop using the port.
        detect: Dur = "0s" in Dur::ZERO..=MAX_TIME, "docs/model.md: a port sees the loss of its signal";
        /// From there until all switches route around it.
        converge: Dur = "1ms" in Dur::ZERO..=MAX_TIME, "docs/model.md";
        /// Flows between hosts that stay apart: `refuse` to run, or `run` and count them as unfinished.
        unreachable: Unreachable = "refuse", "most often a mistake";
    }
}

/// The cable between two nodes, by name; written `["a", "b"]` or `"a--b"`.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub struct Cable(pub String, pub String);

impl Cable {
    /// Stands between the nodes.
    pub const JOINT: &str = "--";
}

impl Param for Cable {
    fn expects() -> String {
        "two nodes, like `[\"agg0_1\", \"core3\"]`".to_owned()
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        let ends: Vec<&str> = match raw {
            Raw::Str(text) => text.split(Cable::JOINT).map(str::trim).collect(),
            _ => Vec::new(),
        };
        match ends.as_slice() {
            [a, b] if !a.is_empty() && !b.is_empty() => Ok(Cable((*a).to_owned(), (*b).to_owned())),
            _ => Err(format!("is not {}", Self::expects())),
        }
    }
    fn show(&self) -> String {
        [&*self.0, &*self.1].join(Cable::JOINT)
    }
}

/// A node by name.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub struct NodeName(pub String);

impl Param for NodeName {
    fn expects() -> String {
        "the name of a node, like `core3`".to_owned()
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        match raw {
            Raw::Str(name) => Ok(NodeName(name.clone())),
            _ => Err("is not the name of a node in quotes".to_owned()),
        }
    }
    fn show(&self) -> String {
        self.0.clone()
    }
}

/// An event as the scenario has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its name: its number in the scenario, from 1, unless it has one.
    pub name: String,
    /// When, what, which.
    pub params: EventParams,
    /// The draw, when it is a random one.
    pub random: Option<RandomParams>,
}

/// All events of a run, and what follows them.
#[derive(Clone, Debug, PartialEq)]
pub struct Failures {
    /// In the order of the scenario.
    pub events: Vec<Event>,
    /// Delays, and what to do about flows that are cut off.
    pub params: FailureParams,
}

/// What goes down or comes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// All cables between two nodes, the smaller id first.
    Cables(NodeId, NodeId),
    /// All cables of a node.
    Node(NodeId),
}

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// When.
    pub at: Time,
    /// The event, by its place in the scenario.
    pub event: usize,
    /// It comes up; else it goes down.
    pub up: bool,
    /// What.
    pub target: Target,
}

impl Target {
    /// Its links, both directions.
    pub fn links(self, net: &Net) -> Vec<LinkId> {
        let (Target::Cables(node, _) | Target::Node(node)) = self;
        let hit = |link: &LinkId| !matches!(self, Target::Cables(_, far) if net.link(*link).to != far);
        net.out_links(node).filter(hit).flat_map(|link| [link, net.link(link).reverse]).collect()
    }
    /// Its name: `agg0_1--core3`, `core3`.
    pub fn name(self, net: &Net) -> String {
        match self {
            Target::Cables(a, b) => [a, b].map(|node| &*net.node(node).name).join(Cable::JOINT),
            Target::Node(node) => net.node(node).name.clone(),
        }
    }
}

/// Which of a network's links are held down, and by how many events.
#[derive(Clone, Debug)]
pub struct Holds(Vec<u32>);

impl Holds {
    /// All links up.
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
    /// Whether a link is down.
    pub fn is_down(&self, link: LinkId) -> bool {
        self.0[link.index()] > 0
    }
    /// Per node the smallest id of the nodes that it is connected with.
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

impl Event {
    /// What is wrong with it by itself.
    pub(crate) fn problems(&self, end: Option<Time>) -> Vec<Problem> {
        let p = &self.params;
        let mut found = Vec::new();
        let mut add = |key, message: String, hint: &str| found.push(Problem { key, message, hint: hint.to_owned() });
        let given = [("link", p.link.is_some()), ("node", p.node.is_some()), ("random", self.random.is_some())];
        match given.iter().filter(|(_, given)| *given).map(|(key, _)| *key).collect::<Vec<_>>().as_slice() {
            [] => add("link", "the event has no target".to_owned(), TARGETS),
            [_] => {}
            [.., last] => add(last, "the event has two targets".to_owned(), TARGETS),
        }
        if end.is_some_and(|end| p.at.0 >= end.0) {
            let end = end.unwrap_or_default();
            add(
                "at",
                format!("`{}` is not before the end of the run, `{}`", p.at, Dur(end.0)),
                "nothing happens at `end` or later",
            );
        }
        match p.until {
            Auto::Set(until) if until <= p.at => {
                let message = format!("`{until}` is not after `at`, `{}`", p.at);
                add("until", message, "`until` is when it comes up again: take a later time");
            }
            Auto::Set(_) if p.state == State::Up => {
                add("until", "only what goes down comes up".to_owned(), "remove `until`, or write `state = \"down\"`");
            }
            _ => {}
        }
        if let Some(random) = &self.random {
            if p.state == State::Up {
                let hint = "write `state = \"down\"` and, if they come up again, `until`";
                add("state", "what a random draw took down cannot be named later".to_owned(), hint);
            }
            if random.count.is_some() == random.probability.is_some() {
                let hint = "write `random = { count = 2 }` or `random = { probability = 0.01 }`";
                add("random", "needs one of `count` and `probability`".to_owned(), hint);
            }
        }
        found
    }

    /// Its targets on a network under a seed.
    fn targets(&self, net: &Net, seed: u64, index: usize) -> Result<Vec<Target>, Problem> {
        let problem = |key, (message, hint): (String, String)| Problem { key, message, hint };
        if let Some(random) = &self.random {
            return self.draw(random, net, seed, index).map_err(|p| problem("random", p));
        }
        if let Some(NodeName(name)) = &self.params.node {
            return Ok(vec![Target::Node(node(net, name).map_err(|p| problem("node", p))?)]);
        }
        let Some(Cable(a, b)) = &self.params.link else { return Ok(Vec::new()) };
        let ends = node(net, a).and_then(|a| Ok((a, node(net, b)?))).map_err(|p| problem("link", p))?;
        let target = Target::Cables(ends.0.min(ends.1), ends.0.max(ends.1));
        if target.links(net).is_empty() {
            return Err(problem("link", not_adjacent(net, ends.0, b)));
        }
        Ok(vec![target])
    }

    fn draw(&self, random: &RandomParams, net: &Net, seed: u64, index: usize) -> Result<Vec<Target>, (String, String)> {
        let mut all = of_tier(net, &random.tier)?;
        let mut rng = Rng::stream(seed, "failure", &[index as u64]);
        if let Some(Fraction(billionths)) = random.probability {
            all.retain(|_| rng.below(1_000_000_000) < billionths);
        } else {
            let count = random.count.unwrap_or(0) as usize;
            if count > all.len() {
                let message = format!("`{count}` are more than there are: `{}` has {}", random.tier, all.len());
                return Err((message, "take a smaller `count` or another `tier`".to_owned()));
            }
            // Fisher and Yates, from the front: the first n of a larger draw are the draw of n.
            for i in 0..count {
                let other = i + rng.below((all.len() - i) as u64) as usize;
                all.swap(i, other);
            }
            all.truncate(count);
            all.sort_unstable();
        }
        Ok(all)
    }
}

const TARGETS: &str = "give one of `link = [\"a\", \"b\"]`, `node = \"a\"` and `random = { count = 1 }`";

/// What happens on a network under a seed, in order. The error is a problem with the event of that place.
pub(crate) fn changes(events: &[Event], net: &Net, seed: u64) -> Result<Vec<Change>, (usize, Problem)> {
    let mut all = Vec::new();
    let mut named: BTreeMap<Target, Vec<(Time, bool, usize, &'static str)>> = BTreeMap::new();
    for (event, e) in events.iter().enumerate() {
        let at = Time(e.params.at.0);
        for target in e.targets(net, seed, event).map_err(|p| (event, p))? {
            let mut add = |at, up, key| {
                all.push(Change { at, event, up, target });
                if e.random.is_none() {
                    named.entry(target).or_default().push((at, up, event, key));
                }
            };
            add(at, e.params.state == State::Up, "at");
            if let Auto::Set(until) = e.params.until {
                add(Time(until.0), true, "until");
            }
        }
    }
    for (target, mut steps) in named {
        steps.sort_by_key(|(at, _, event, _)| (*at, *event));
        let name = target.name(net);
        let mut since: Option<Time> = None;
        for (i, &(at, up, event, key)) in steps.iter().enumerate() {
            let message = match since {
                _ if i > 0 && steps[i - 1].0 == at => format!("`{name}` changes twice at `{}`", when(at)),
                Some(down) if !up => format!("`{name}` goes down at `{}`, and is down since `{}`", when(at), when(down)),
                None if up => format!("`{name}` comes up at `{}`, and is not down then", when(at)),
                _ => {
                    since = (!up).then_some(at);
                    continue;
                }
            };
            let hint = "the events of one link or node go down and up in turn".to_owned();
            return Err((event, Problem { key, message, hint }));
        }
    }
    all.sort_unstable();
    Ok(all)
}

/// A time as it would be written.
fn when(at: Time) -> String {
    if at == Time::ZERO { "0s".to_owned() } else { Dur(at.0).to_string() }
}

/// A node by its name.
fn node(net: &Net, name: &str) -> Result<NodeId, (String, String)> {
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

/// Two nodes without a cable.
fn not_adjacent(net: &Net, a: NodeId, b: &str) -> (String, String) {
    let from = &net.node(a).name;
    let mut peers: Vec<&str> = net.out_links(a).map(|l| net.node(net.link(l).to).name.as_str()).collect();
    peers.dedup();
    let did = nearest(b, peers.iter().copied()).map_or(String::new(), |n| format!(": did you mean `{n}`?"));
    let more = if peers.len() > 8 { ", ..." } else { "" };
    let listed: Vec<String> = peers.iter().take(8).map(|p| format!("`{p}`")).collect();
    (format!("no cable joins `{from}` and `{b}`{did}"), format!("the neighbours of `{from}` are {}{more}", listed.join(", ")))
}

/// The tiers of a network from the hosts up, with their words: what the names of their nodes begin with, or else `tier2`.
fn tiers(net: &Net) -> Vec<(Tier, String)> {
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

/// All targets of a `tier` as it is written, in the order of ids.
fn of_tier(net: &Net, text: &str) -> Result<Vec<Target>, (String, String)> {
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
        // Either end may come first.
        let turned: Vec<String> = words.iter().filter_map(|w| w.split_once('-')).map(|(a, b)| format!("{b}-{a}")).collect();
        let near = nearest(text, words.iter().chain(&turned).map(String::as_str));
        let near = near.map_or(String::new(), |n| format!(": did you mean `{n}`?"));
        return Err((format!("there is no tier `{text}`{near}"), format!("the tiers here are {}", listed.join(", "))));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::testing::build;
    use base::params::{Params as _, Reader};

    /// An event of these keys; `random.count` and the like make it a random one.
    fn event(set: &[(&'static str, &str)]) -> Event {
        struct Given<'a>(&'a [(&'static str, &'a str)], &'a str);
        impl Reader for Given<'_> {
            fn get(&mut self, key: &'static str) -> Option<Raw> {
                let (_, value) = self.0.iter().find(|(k, _)| k.strip_prefix(self.1) == Some(key))?;
                Some(Raw::Str((*value).to_owned()))
            }
            fn fail(&mut self, key: &'static str, message: String) {
                panic!("{key}: {message}");
            }
        }
        let random = set.iter().any(|(key, _)| key.starts_with("random."));
        let random = random.then(|| RandomParams::read(&mut Given(set, "random.")));
        Event { name: String::new(), params: EventParams::read(&mut Given(set, "")), random }
    }

    fn happens(net: &Net, events: &[Event], seed: u64) -> Result<Vec<String>, String> {
        let found = changes(events, net, seed).map_err(|(event, p)| format!("{event} {}: {}", p.key, p.message))?;
        assert!(found.is_sorted());
        let show = |c: &Change| format!("{} {} {}", when(c.at), if c.up { "up" } else { "down" }, c.target.name(net));
        Ok(found.iter().map(show).collect())
    }

    #[test]
    fn events_are_put_in_order() {
        let net = build("fat_tree", &[]);
        let events = [
            event(&[("at", "5ms"), ("link", "core3--agg0_1"), ("state", "up")]),
            event(&[("at", "2ms"), ("node", "core0"), ("until", "7ms")]),
            event(&[("link", "agg0_1--core3")]),
            event(&[("at", "9ms"), ("node", "core0")]),
        ];
        let expected = ["0s down agg0_1--core3", "2ms down core0", "5ms up agg0_1--core3", "7ms up core0", "9ms down core0"];
        assert_eq!(happens(&net, &events, 1).unwrap(), expected);
    }

    #[test]
    fn what_goes_down_goes_up_before_it_goes_down_again() {
        let net = build("fat_tree", &[]);
        let down = |at| event(&[("at", at), ("node", "core0")]);
        let up = |at| event(&[("at", at), ("node", "core0"), ("state", "up")]);
        for (events, why) in [
            (vec![up("1ms")], "0 at: `core0` comes up at `1ms`, and is not down then"),
            (vec![up("1ms"), down("2ms")], "0 at: `core0` comes up at `1ms`, and is not down then"),
            (vec![down("3ms"), down("2ms")], "0 at: `core0` goes down at `3ms`, and is down since `2ms`"),
            (vec![down("1ms"), up("1ms")], "1 at: `core0` changes twice at `1ms`"),
            (
                vec![event(&[("node", "core0"), ("until", "4ms")]), down("3ms")],
                "1 at: `core0` goes down at `3ms`, and is down since `0s`",
            ),
            (
                vec![event(&[("node", "core0"), ("until", "4ms")]), up("2ms")],
                "0 until: `core0` comes up at `4ms`, and is not down then",
            ),
            (vec![event(&[("node", "core9")])], "0 node: there is no node `core9`: did you mean `core0`?"),
            (vec![event(&[("link", "agg0_1--core0")])], "0 link: no cable joins `agg0_1` and `core0`: did you mean `core2`?"),
            (vec![event(&[("link", "core0--core0")])], "0 link: no cable joins `core0` and `core0`"),
        ] {
            let message = happens(&net, &events, 1).unwrap_err();
            assert!(message.starts_with(why), "{message}");
        }
    }

    #[test]
    fn draws_depend_on_seed_and_event_and_grow() {
        let net = build("fat_tree", &[]);
        let draw =
            |count: &str, seed| happens(&net, &[event(&[("random.count", count), ("random.tier", "core-agg")])], seed).unwrap();
        assert_eq!(draw("3", 1), draw("3", 1));
        assert!((2..9).any(|seed| draw("3", seed) != draw("3", 1)));
        for (fewer, more) in [("1", "2"), ("2", "7"), ("7", "16")] {
            assert!(draw(fewer, 4).iter().all(|one| draw(more, 4).contains(one)), "{fewer} of {more}");
        }
        assert_eq!(draw("16", 5).len(), 16);
        let two = [event(&[("random.count", "1")]), event(&[("at", "1ms"), ("random.count", "1"), ("until", "2ms")])];
        let pairs: Vec<_> = (1..20).map(|seed| happens(&net, &two, seed).unwrap()).collect();
        assert!(pairs.iter().any(|p| p[0].rsplit(' ').next() != p[1].rsplit(' ').next()));
        assert!(pairs.iter().all(|p| p[1].rsplit(' ').next() == p[2].rsplit(' ').next()));
    }

    /// Each of 32 cables with probability 0.25, over 400 seeds: within four standard deviations of the mean.
    #[test]
    fn a_probability_is_one_for_each() {
        let net = build("fat_tree", &[]);
        let draw = |p: &str, seed| happens(&net, &[event(&[("random.probability", p)])], seed).unwrap();
        let all: usize = (0..400).map(|seed| draw("0.25", seed).len()).sum();
        let (mean, deviation) = (12_800.0 * 0.25, (12_800.0 * 0.25 * 0.75_f64).sqrt());
        assert!((all as f64 - mean).abs() < 4.0 * deviation, "{all}");
        assert!(draw("0.2", 3).iter().all(|one| draw("0.5", 3).contains(one)));
        assert_eq!((draw("0", 3).len(), draw("1", 3).len()), (0, 32));
    }

    #[test]
    fn tiers_are_called_by_what_their_names_begin_with() {
        let net = build("fat_tree", &[]);
        let size = |net: &Net, tier: &str| of_tier(net, tier).map(|all| all.len());
        for (tier, n) in
            [("fabric", 32), ("edge-agg", 16), ("core-agg", 16), ("host-edge", 16), ("core", 4), ("agg", 8), ("host", 16)]
        {
            assert_eq!(size(&net, tier), Ok(n), "{tier}");
        }
        let (message, hint) = of_tier(&net, "cor-agg").unwrap_err();
        assert_eq!(message, "there is no tier `cor-agg`: did you mean `core-agg`?");
        assert!(hint.ends_with("`fabric`, `host-edge`, `edge-agg`, `agg-core`, `host`, `edge`, `agg`, `core`"), "{hint}");
        assert!(size(&net, "edge-core").is_err());
        let net = build("leaf_spine", &[]);
        assert!(size(&net, "leaf-spine").is_ok() && size(&net, "spine").is_ok());
        let net = build("chain", &[("switches", "3")]);
        assert_eq!(tiers(&net).len(), 2);
        assert_eq!(size(&net, "fabric"), Ok(2));
    }

    #[test]
    fn a_link_is_down_while_anything_holds_it_down() {
        let net = build("fat_tree", &[]);
        let mut holds = Holds::new(&net);
        let id = |name: &str| node(&net, name).unwrap();
        let change = |up, target| Change { at: Time::ZERO, event: 0, up, target };
        let (cable, core) = (Target::Cables(id("agg0_0"), id("core0")), Target::Node(id("core0")));
        assert_eq!(holds.apply(&net, &change(false, cable)).len(), 2);
        assert_eq!(holds.apply(&net, &change(false, core)).len(), 6, "the first cable is down already");
        assert_eq!(holds.apply(&net, &change(true, cable)), []);
        assert_eq!(holds.apply(&net, &change(true, core)).len(), 8);
        let of_edge = Target::Node(id("edge0_0"));
        holds.apply(&net, &change(false, of_edge));
        let islands = holds.islands(&net);
        assert_eq!([id("h0"), id("h1"), id("edge0_0"), id("h2"), id("core3")].map(|n| islands[n.index()].0), [0, 1, 16, 2, 2]);
    }
}

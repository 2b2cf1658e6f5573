//! `[[event]]` and `[failure]` as they are written.

use crate::workload::MAX_TIME;
use base::params::{Auto, Param, Problem, Raw};
use base::{Dur, Fraction, Time};

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
    pub enum WhenUnreachable {
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
        at: Dur = "0s" in Dur::ZERO..=MAX_TIME, "flowloom: the start of the run";
        /// What happens: `down`, or `up` after an earlier `down`.
        state: State = "down", "flowloom: most events are failures";
        /// When it comes up again; `auto`: not by this event.
        until: Auto<Dur> = "auto" in Auto::Set(Dur(1))..=Auto::Set(MAX_TIME), "flowloom: a failure lasts";
        /// A cable, both directions, by the nodes at its ends: `["agg0_1", "core3"]`.
        link: Option<Cable> = "none", "one of `link`, `node` and `random` must be given";
        /// A switch or host with all its cables.
        node: Option<NodeName> = "none", "one of `link`, `node` and `random` must be given";
    }
}

base::params! {
    /// Random failures: cables or switches of a tier, drawn by the seed.
    pub struct RandomParams {
        /// Number of targets, all different.
        count: Option<u32> = "none" in Some(1)..=Some(1_000_000), "one of `count` and `probability` must be given";
        /// The probability of each, in place of a count.
        probability: Option<Fraction> = "none" in Some(Fraction(0))..=Some(Fraction::ONE), "one of `count` and `probability` must be given";
        /// Among which: `fabric` for all cables between switches, two tiers as `agg-core` for the cables between them, one tier as
        /// `core` for its switches.
        tier: String = "fabric", "flowloom: hosts have one cable only";
    }
}

base::params! {
    /// What follows a failure or repair.
    pub struct FailureParams {
        /// From the event until the nodes next to it know and stop using the port.
        detect: Dur = "0s" in Dur::ZERO..=MAX_TIME, "docs/model.md: a port sees the loss of its signal";
        /// From that moment until all switches route around it.
        converge: Dur = "1ms" in Dur::ZERO..=MAX_TIME, "docs/model.md";
        /// Flows between hosts that stay apart: `refuse` to run, or `run` and count them as unfinished.
        unreachable: WhenUnreachable = "refuse", "flowloom: most often a mistake";
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
}

const TARGETS: &str = "give one of `link = [\"a\", \"b\"]`, `node = \"a\"` and `random = { count = 1 }`";

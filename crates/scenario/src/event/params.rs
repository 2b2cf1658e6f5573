//! The parameters of `[[event]]` and `[failure]`.

use crate::workload::MAX_TIME;
use base::params::{Auto, Param, Problem, Raw};
use base::{Dur, Fraction, Time};

base::choice! {
    /// What an event does to its target.
    pub enum State {
        /// The target goes down.
        Down = "down",
        /// The target comes up again.
        Up = "up",
    }
}

base::choice! {
    /// What to do about flows whose hosts stay disconnected.
    pub enum WhenUnreachable {
        /// Refuse to run.
        Refuse = "refuse",
        /// Run to `end`; these flows count as unfinished.
        Run = "run",
    }
}

base::params! {
    /// An event: one of `link`, `node` and `random` goes down or comes up.
    pub struct EventParams {
        /// Time of the event.
        at: Dur = "0s" in Dur::ZERO..=MAX_TIME, "flowloom: the start of the run";
        /// Change of the target: `down`, or `up` after an earlier `down`.
        state: State = "down", "flowloom: most events are failures";
        /// Time when the target comes up again; `auto`: this event does not bring it up.
        until: Auto<Dur> = "auto" in Auto::Set(Dur(1))..=Auto::Set(MAX_TIME), "flowloom: a failure lasts";
        /// Cable between two nodes, in both directions: `["agg0_1", "core3"]`.
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
        /// Probability of each target, instead of a count.
        probability: Option<Fraction> = "none" in Some(Fraction(0))..=Some(Fraction::ONE), "one of `count` and `probability` must be given";
        /// Cables or switches that are drawn from: `fabric` for all cables between switches, two
        /// tiers like `agg-core` for the cables between them, one tier like `core` for its
        /// switches.
        tier: String = "fabric", "flowloom: hosts have one cable only";
    }
}

base::params! {
    /// Reaction of the network to a failure or repair.
    pub struct FailureParams {
        /// Time from the event until the adjacent nodes detect it and stop using the port.
        detect: Dur = "0s" in Dur::ZERO..=MAX_TIME, "docs/model.md: a port sees the loss of its signal";
        /// Time from the detection until all switches route around the failure.
        converge: Dur = "1ms" in Dur::ZERO..=MAX_TIME, "docs/model.md";
        /// Flows between hosts that stay disconnected: `refuse` to run, or `run` and count these
        /// flows as unfinished.
        unreachable: WhenUnreachable = "refuse", "flowloom: most often a mistake";
    }
}

/// The cable between two nodes, by name; written `["a", "b"]` or `"a--b"`.
#[derive(Clone, Debug, PartialEq, PartialOrd)]
pub struct Cable(pub String, pub String);

impl Cable {
    /// Separator between the two nodes.
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

/// An event of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Its name, or its number in the scenario, from 1.
    pub name: String,
    /// Time, state and target.
    pub params: EventParams,
    /// The random draw of the targets, if any.
    pub random: Option<RandomParams>,
}

/// All events of a run, and the reaction of the network.
#[derive(Clone, Debug, PartialEq)]
pub struct Failures {
    /// The events, in the order of the scenario.
    pub events: Vec<Event>,
    /// Delays, and what to do about flows that are cut off.
    pub params: FailureParams,
}

impl Event {
    /// Returns the problems of the event that do not depend on the network.
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
                "write an earlier `at`, or a later `end` of the run",
            );
        }
        match p.until {
            Auto::Set(until) if until <= p.at => {
                let message = format!("`{until}` is not after `at`, `{}`", p.at);
                add("until", message, "`until` is the time when the link or node comes up again: write a later time");
            }
            Auto::Set(_) if p.state == State::Up => {
                let message = "an event with `state = \"up\"` cannot have `until`".to_owned();
                add("until", message, "remove `until`, or write `state = \"down\"`");
            }
            _ => {}
        }
        if let Some(random) = &self.random {
            if p.state == State::Up {
                let hint = "write `state = \"down\"` and, to bring the drawn links or nodes up again, `until`";
                add("state", "an event with `random` cannot have `state = \"up\"`".to_owned(), hint);
            }
            if random.count.is_some() == random.probability.is_some() {
                let hint = "write `random = { count = 2 }` or `random = { probability = 0.01 }`";
                add("random", "needs one of `count` and `probability`".to_owned(), hint);
            }
        }
        found
    }
}

const TARGETS: &str = "write exactly one of `link = [\"a\", \"b\"]`, `node = \"a\"` and `random = { count = 1 }`";

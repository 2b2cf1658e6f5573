//! The changes that events make on a network with a seed, in order.

use super::params::{Cable, Event, NodeName, RandomParams, State};
use super::target::{Target, node, not_adjacent, of_tier};
use base::params::{Auto, Problem};
use base::{Dur, Fraction, Rng, Time};
use fabric::net::Net;
use std::collections::BTreeMap;

/// A change: a target goes down or comes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// Time of the change.
    pub at: Time,
    /// Index of the event in the scenario.
    pub event: usize,
    /// Whether the target comes up; else it goes down.
    pub up: bool,
    /// The cables or node that change.
    pub target: Target,
}

impl Event {
    /// Returns the targets of the event on a network with a seed.
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
                let message = format!("cannot draw `{count}`: `{}` has only {}", random.tier, all.len());
                return Err((message, "write a smaller `count` or another `tier`".to_owned()));
            }
            // Fisher-Yates from the front: a larger draw begins with the targets of a smaller draw.
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

/// Returns the changes on a network with a seed, in order. The error is the index of an event, and
/// its problem.
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
                Some(down) if !up => format!("`{name}` goes down at `{}`, but is already down since `{}`", when(at), when(down)),
                None if up => format!("`{name}` comes up at `{}`, but is not down then", when(at)),
                _ => {
                    since = (!up).then_some(at);
                    continue;
                }
            };
            let hint = "write events of a link or node so that it goes down and comes up alternately".to_owned();
            return Err((event, Problem { key, message, hint }));
        }
    }
    all.sort_unstable();
    Ok(all)
}

/// Returns a time as a scenario writes it.
pub(crate) fn when(at: Time) -> String {
    if at == Time::ZERO { "0s".to_owned() } else { Dur(at.0).to_string() }
}

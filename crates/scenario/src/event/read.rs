//! Reading `[[event]]` and `[failure]`, and what only the whole scenario can tell of them.

use super::{Cable, Event, EventParams, FailureParams, Failures, Holds, RandomParams, Unreachable, changes, when};
use crate::diag::{At, Item};
use crate::part::Part;
use crate::read::{Draft, Reading, Section};
use crate::resolved::PartShown;
use crate::spec::{Plan, RunSpec};
use crate::tree::{Node, Table, Value};
use crate::workload::hosts::name_of;
use base::params::{Auto, Param as _, Params as _, Raw};
use base::{HostId, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Events as tables by name, links as texts: `[[event]]` is `[event.1]`, `link = ["a", "b"]` is `link = "a--b"`.
pub(crate) fn spell_out(root: &mut Table) {
    let Some(entry) = root.get_mut("event") else { return };
    if let Value::List(nodes) = &mut entry.node.value
        && nodes.iter().all(|n| n.table().is_some())
    {
        let mut table = Table::default();
        for (i, node) in std::mem::take(nodes).into_iter().enumerate() {
            table.put(&(i + 1).to_string(), node.at, node);
        }
        entry.node.value = Value::Table(table);
    }
    for event in entry.node.table_mut().into_iter().flat_map(|t| &mut t.entries) {
        let link = event.node.table_mut().and_then(|t| t.get_mut("link"));
        let Some(link) = link else { continue };
        join(&mut link.node);
        if let Value::List(sweep) = &mut link.node.value {
            sweep.iter_mut().for_each(join);
        }
    }
}

/// The names in a list as one text.
fn join(link: &mut Node) {
    let Value::List(ends) = &link.value else { return };
    // A list of links that are texts already is a sweep.
    let name = |node: &Node| node.text().filter(|text| Cable::parse(&Raw::Str((*text).to_owned())).is_err()).map(str::to_owned);
    if let Some(names) = ends.iter().map(name).collect::<Option<Vec<_>>>() {
        link.value = Value::Scalar(Raw::Str(names.join(Cable::JOINT)));
    }
}

impl Reading<'_> {
    /// All events in all variants.
    pub(crate) fn events(&mut self, whole: Part<'_>, end: Option<Time>) -> Vec<Section<Event>> {
        let Some(entry) = whole.table.get("event") else { return Vec::new() };
        const EXAMPLE: &str = "write `[[event]]`, with two brackets, before each: `at = \"10ms\"`, `link = [\"a\", \"b\"]`";
        let tables = entry.node.table().filter(|t| t.entries.iter().all(|e| e.node.table().is_some()));
        let Some(tables) = tables else {
            self.problems.push(Item::new(entry.key_at, "`event` is not a list of tables", "must be [[event]]", EXAMPLE));
            return Vec::new();
        };
        let mut found = Vec::new();
        for entry in &tables.entries {
            let path = format!("event.{}", entry.key);
            let part = Part { table: entry.node.table().expect("checked above"), at: entry.key_at, path: &path };
            part.refuse_unknown(EventParams::FIELDS, &["random"], &mut self.problems);
            if let Some(random) = part.table.get("random")
                && random.node.table().is_none()
            {
                let hint = "write `random = { count = 2, tier = \"fabric\" }`";
                let message = format!("`{}` is not a table", part.name_of("random"));
                self.problems.push(Item::new(random.node.at, message, "must be a table", hint));
                continue;
            }
            if let Some(random) = random_part(part.table, &format!("{path}.random")) {
                random.refuse_unknown(RandomParams::FIELDS, &[], &mut self.problems);
            }
            found.push(self.section(part, &path, &path, |this, part| {
                let before = this.problems.len();
                let params = EventParams::read(&mut this.reader(part, EventParams::FIELDS));
                let random = random_part(part.table, &format!("{}.random", part.path))
                    .map(|part| RandomParams::read(&mut this.reader(part, RandomParams::FIELDS)));
                let event = Event { name: entry.key.clone(), params, random };
                let fine = this.problems.len() == before;
                if fine {
                    this.problems.extend(part.problems(event.problems(end)));
                }
                // A value that could not be read is not without effect.
                let parts = if fine { parts(&event) } else { Vec::new() };
                Some((event, parts))
            }));
        }
        found
    }

    /// The table `[failure]` in all variants.
    pub(crate) fn failure(&mut self, whole: Part<'_>, events: bool, end: Option<Time>) -> Option<Section<FailureParams>> {
        let empty = Table::default();
        let part = match whole.table.get("failure") {
            Some(entry) if !events => {
                let hint = "it says what follows an [[event]]: add one, or remove the table";
                self.problems.push(Item::new(entry.key_at, "`failure` has no effect without events", "ignored", hint));
                return None;
            }
            Some(entry) => self.table_of(entry.key_at, &entry.node, "failure", "converge = \"1ms\"")?,
            None if !events => return None,
            None => Part { table: &empty, ..whole },
        };
        part.refuse_unknown(FailureParams::FIELDS, &[], &mut self.problems);
        Some(self.section(part, "failure", "failure", |this, part| {
            let params = FailureParams::read(&mut this.reader(part, FailureParams::FIELDS));
            if params.unreachable == Unreachable::Run && end.is_none() {
                let hint = "a flow that is cut off never ends: give the scenario an `end`";
                this.problems.push(part.problem("unreachable", "`run` needs an `end`", "without `end` here", hint));
            }
            let shown = PartShown::bare("", FailureParams::FIELDS, params.show());
            Some((params, vec![shown]))
        }))
    }
}

fn random_part<'a>(event: &'a Table, path: &'a str) -> Option<Part<'a>> {
    event.get("random").and_then(|e| Some(Part { table: e.node.table()?, at: e.key_at, path }))
}

/// An event as it would be written: keys without effect left out.
pub(crate) fn parts(event: &Event) -> Vec<PartShown> {
    let p = &event.params;
    let absent = |none: &[(&'static str, bool)]| none.iter().filter(|(_, absent)| *absent).map(|(key, _)| *key).collect();
    let ignored = absent(&[("link", p.link.is_none()), ("node", p.node.is_none()), ("until", p.until == Auto::Auto)]);
    let mut parts = vec![PartShown::bare("", EventParams::FIELDS, p.show()).without(ignored)];
    if let Some(random) = &event.random {
        let ignored = absent(&[("count", random.count.is_none()), ("probability", random.probability.is_none())]);
        parts.push(PartShown::bare("random", RandomParams::FIELDS, random.show()).without(ignored));
    }
    parts
}

/// (key, value) of swept keys.
type Swept = Vec<(String, String)>;

/// Every combination of the events' variants with their swept keys, the last event fastest.
pub(crate) fn variants(draft: &Draft) -> Vec<(Option<Failures>, Swept)> {
    let Some(failure) = &draft.failure else { return vec![(None, Vec::new())] };
    let with =
        |v: &crate::read::Variant<FailureParams>| (Failures { events: Vec::new(), params: v.value.clone() }, v.swept.clone());
    let mut all: Vec<(Failures, Swept)> = failure.variants.iter().map(with).collect();
    for section in &draft.events {
        let longer = all.into_iter().flat_map(|(failures, swept)| {
            section.variants.iter().map(move |v| {
                let mut next = (failures.clone(), swept.clone());
                next.0.events.push(v.value.clone());
                next.1.extend(v.swept.iter().cloned());
                next
            })
        });
        all = longer.collect();
    }
    all.into_iter().map(|(failures, swept)| (Some(failures), swept)).collect()
}

/// Events against the networks: names, neighbours, and that each target goes down and up in turn.
pub(crate) fn against_networks(draft: &Draft, found: &mut Vec<Item>) {
    for built in &draft.topology.variants {
        let net = &built.value.net;
        for (failures, _) in variants(draft) {
            let events = failures.map_or(Vec::new(), |f| f.events);
            // Seeds change what is drawn, and no problem depends on that.
            if let Err((event, problem)) = changes(&events, net, draft.seeds[0]) {
                let section = &draft.events[event];
                let part = Part { table: &section.table, at: section.at, path: &section.name };
                found.extend(part.problems(vec![problem]));
            }
        }
    }
}

/// Flows whose hosts are apart in the end, for the first point that has such: the scenario must ask for that.
pub(crate) fn cut_off(plan: &Plan, places: &[At]) -> Option<Item> {
    let mut seen = BTreeSet::new();
    for point in plan.points.iter().filter(|p| p.label == plan.points[0].label) {
        let run = &point.run;
        let refuse = |f: &&Failures| f.params.unreachable == Unreachable::Refuse;
        let Some(failures) = run.failures.as_ref().filter(refuse) else { continue };
        let traffic = format!("{:?} {:?} {:?} {} {:?}", run.topology, failures.events, run.workloads, run.seed, run.end);
        if seen.insert(traffic)
            && let Some(item) = cut_off_in(run, &failures.events, places)
        {
            return Some(item);
        }
    }
    None
}

fn cut_off_in(run: &RunSpec, events: &[Event], places: &[At]) -> Option<Item> {
    let net = &*run.net;
    let changes = run.changes();
    let mut holds = Holds::new(net);
    changes.iter().filter(|c| run.end.is_none_or(|end| c.at < end)).for_each(|change| {
        holds.apply(net, change);
    });
    let islands = holds.islands(net);
    let apart = |islands: &[base::NodeId], a: HostId, b: HostId| {
        let island = |host: HostId| islands[net.hosts()[host.index()].index()];
        island(a) != island(b)
    };
    let first = net.hosts().first().map(|host| islands[host.index()]);
    if net.hosts().iter().all(|host| Some(islands[host.index()]) == first) {
        return None;
    }
    // What cannot be drawn is reported when it is needed.
    let flows = run.flows().ok()?;
    let mut pairs: BTreeMap<(HostId, HostId), u64> = BTreeMap::new();
    for flow in flows.iter().filter(|flow| apart(&islands, flow.src, flow.dst)) {
        *pairs.entry((flow.src, flow.dst)).or_default() += 1;
    }
    let (&(src, dst), _) = pairs.first_key_value()?;
    // The change since which the first pair is apart for good.
    let mut holds = Holds::new(net);
    let mut since = None;
    for change in &changes {
        holds.apply(net, change);
        since = apart(&holds.islands(net), src, dst).then(|| since.unwrap_or(change));
    }
    let since = since?;
    let name = &events[since.event].name;
    let few = pairs.iter().take(3).map(|((src, dst), n)| format!("`{}` to `{}` ({n})", name_of(net, *src), name_of(net, *dst)));
    let few = few.collect::<Vec<_>>().join(", ");
    let more = if pairs.len() > 3 { format!(" and {} more pairs", pairs.len() - 3) } else { String::new() };
    let seed = if events[since.event].random.is_some() { format!(" with seed {}", run.seed) } else { String::new() };
    let count: u64 = pairs.values().sum();
    let message =
        format!("`event.{name}`: {count} of {} flows have no path from `{}` on{seed}: {few}{more}", flows.len(), when(since.at));
    let hint =
        "bring it up again, take other hosts, or write `unreachable = \"run\"` in [failure]: such flows then count as unfinished";
    Some(Item::new(places[since.event], message, "these hosts stay apart", hint))
}

/// What happens, in words, as comments: for `check`.
pub(crate) fn in_words(run: &RunSpec) -> Vec<String> {
    const MOST: usize = 20;
    let changes = run.changes();
    let line = |(at, up, names): &(Time, bool, Vec<String>)| {
        let more = if names.len() > MOST { format!(" and {} more", names.len() - MOST) } else { String::new() };
        let names: Vec<&str> = names.iter().take(MOST).map(String::as_str).collect();
        format!("{} {} {}{more}", when(*at), if *up { "up" } else { "down" }, names.join(", "))
    };
    let mut lines: Vec<(Time, bool, Vec<String>)> = Vec::new();
    for change in &changes {
        let name = change.target.name(&run.net);
        match lines.last_mut().filter(|(at, up, _)| (*at, *up) == (change.at, change.up)) {
            Some((_, _, names)) => names.push(name),
            None => lines.push((change.at, change.up, vec![name])),
        }
    }
    lines.iter().map(line).collect()
}

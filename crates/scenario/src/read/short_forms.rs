//! Short forms spelled out: bare names, bare times, lists of events.

use crate::event::params::Cable;
use crate::system::slots::SLOTS;
use crate::text::tree::{Node, Table, Value};
use base::params::{Param as _, Raw};

/// Writes `kind` tables where bare names stand: `transport = "merp"` is `transport = { kind = "merp" }`.
pub(crate) fn spell_out(root: &mut Table) {
    if let Some(topology) = root.get_mut("topology") {
        spell_out_part(&mut topology.node);
    }
    if let Some(engine) = root.get_mut("engine") {
        spell_out_engine(&mut engine.node);
    }
    let inner = |root: &mut Table, key: &str, each: fn(&mut Node)| match root.get_mut(key).map(|e| &mut e.node.value) {
        Some(Value::Table(table)) => table.entries.iter_mut().for_each(|e| each(&mut e.node)),
        Some(Value::List(nodes)) => nodes.iter_mut().for_each(each),
        _ => {}
    };
    spell_out_events(root);
    inner(root, "workload", spell_out_part);
    inner(root, "system", |system| {
        let Some(system) = system.table_mut() else { return };
        for slot in SLOTS {
            if let Some(entry) = system.get_mut(slot.name) {
                spell_out_part(&mut entry.node);
            }
        }
        if let Some(nic) = system.get_mut("nic").and_then(|e| e.node.table_mut())
            && let Some(entry) = nic.get_mut("qdisc")
        {
            spell_out_part(&mut entry.node);
        }
    });
}

pub(crate) fn spell_out_part(node: &mut Node) {
    if let Value::Scalar(Raw::Str(_)) = node.value {
        kind_alone(node);
    }
}

/// The same for the engine, whose kind can be swept: `engine = ["packet", "flow"]`.
fn spell_out_engine(node: &mut Node) {
    if node.table().is_none() {
        kind_alone(node);
    }
}

/// Makes a value the kind of a table.
fn kind_alone(node: &mut Node) {
    let (at, origin) = (node.at, node.origin);
    let kind = Node { value: node.value.clone(), at, origin };
    let mut table = Table::default();
    table.put("kind", at, kind);
    node.value = Value::Table(table);
}

/// A bare time for a deadline is that of the law `fixed`: `deadline = "20ms"` is `deadline = { kind = "fixed", after = "20ms" }`. So is
/// a list of times, which sweeps.
pub(crate) fn spell_out_deadline(node: &mut Node) {
    let is_time = |node: &Node| node.text().is_none_or(|text| !text.starts_with(|c: char| c.is_ascii_alphabetic()));
    if !is_time(node) {
        return spell_out_part(node);
    }
    let after = match &mut node.value {
        Value::Table(table) => match table.get("kind") {
            // What was laid over the kind of another law.
            Some(kind) if is_time(&kind.node) && kind.node.text().is_some() => table.remove("kind").expect("just seen").node,
            _ => return,
        },
        _ => node.clone(),
    };
    let (at, origin) = (after.at, after.origin);
    let kind = Node { value: Value::Scalar(Raw::Str("fixed".to_owned())), at, origin };
    if node.table().is_none() {
        node.value = Value::Table(Table::default());
    }
    let table = node.table_mut().expect("made above");
    table.put("kind", at, kind);
    if table.get("after").is_none() {
        table.put("after", at, after);
    }
}

/// Labels of the systems in order: as given, or else the kind of the transport.
pub(crate) fn label_of(system: &Table) -> Option<&str> {
    let transport = || system.get("transport")?.node.table()?.get("kind")?.node.text();
    match system.get("label") {
        Some(entry) => entry.node.text(),
        None => transport(),
    }
}

/// Bare names in what is laid over a part mean its kind.
pub(crate) fn spell_out_like(key: &str, node: &mut Node) {
    match key {
        "topology" => spell_out_part(node),
        "engine" => spell_out_engine(node),
        "workload" => {
            if let Some(table) = node.table_mut() {
                table.entries.iter_mut().for_each(|e| spell_out_part(&mut e.node));
            }
        }
        _ => {}
    }
}

/// Events as tables by name, links as texts: `[[event]]` is `[event.1]`, `link = ["a", "b"]` is `link = "a--b"`.
fn spell_out_events(root: &mut Table) {
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

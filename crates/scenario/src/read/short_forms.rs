//! Expansion of short forms: bare names, bare times, lists of events.

use crate::event::params::Cable;
use crate::system::slots::SLOTS;
use crate::text::tree::{Node, Table, Value};
use base::params::{Param as _, Raw};

/// Replaces bare names by `kind` tables: `transport = "merp"` becomes `transport = { kind = "merp"
/// }`.
pub(crate) fn expand_short_forms(root: &mut Table) {
    if let Some(topology) = root.get_mut("topology") {
        expand_part(&mut topology.node);
    }
    if let Some(engine) = root.get_mut("engine") {
        expand_engine(&mut engine.node);
    }
    let inner = |root: &mut Table, key: &str, each: fn(&mut Node)| match root.get_mut(key).map(|e| &mut e.node.value) {
        Some(Value::Table(table)) => table.entries.iter_mut().for_each(|e| each(&mut e.node)),
        Some(Value::List(nodes)) => nodes.iter_mut().for_each(each),
        _ => {}
    };
    expand_events(root);
    inner(root, "workload", expand_part);
    inner(root, "system", |system| {
        let Some(system) = system.table_mut() else { return };
        for slot in SLOTS {
            if let Some(entry) = system.get_mut(slot.name) {
                expand_part(&mut entry.node);
            }
        }
        if let Some(entry) = system.get_mut("nic") {
            expand_part(&mut entry.node);
        }
        if let Some(nic) = system.get_mut("nic").and_then(|e| e.node.table_mut())
            && let Some(entry) = nic.get_mut("qdisc")
        {
            expand_part(&mut entry.node);
        }
    });
}

pub(crate) fn expand_part(node: &mut Node) {
    if let Value::Scalar(Raw::Str(_)) = node.value {
        wrap_as_kind(node);
    }
}

/// Expands the short form of the engine, whose kind can be swept: `engine = ["packet", "flow"]`.
fn expand_engine(node: &mut Node) {
    if node.table().is_none() {
        wrap_as_kind(node);
    }
}

/// Replaces a value by a table with this value as its kind.
fn wrap_as_kind(node: &mut Node) {
    let (at, origin) = (node.at, node.origin);
    let kind = Node { value: node.value.clone(), at, origin };
    let mut table = Table::default();
    table.put("kind", at, kind);
    node.value = Value::Table(table);
}

/// Expands a bare time to the kind `fixed`: `deadline = "20ms"` becomes `deadline = { kind =
/// "fixed", after = "20ms" }`. A list of times, which is a sweep, is expanded in the same way.
pub(crate) fn expand_deadline(node: &mut Node) {
    let is_time = |node: &Node| node.text().is_none_or(|text| !text.starts_with(|c: char| c.is_ascii_alphabetic()));
    if !is_time(node) {
        return expand_part(node);
    }
    let after = match &mut node.value {
        Value::Table(table) => match table.get("kind") {
            // A bare time that overrides the kind of another law.
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

/// Returns the label of a system: as given, or else the kind of its transport.
pub(crate) fn label_of(system: &Table) -> Option<&str> {
    let transport = || system.get("transport")?.node.table()?.get("kind")?.node.text();
    match system.get("label") {
        Some(entry) => entry.node.text(),
        None => transport(),
    }
}

/// Expands bare names in an override of a part: they are its kind.
pub(crate) fn expand_override(key: &str, node: &mut Node) {
    match key {
        "topology" => expand_part(node),
        "engine" => expand_engine(node),
        "workload" => {
            if let Some(table) = node.table_mut() {
                table.entries.iter_mut().for_each(|e| expand_part(&mut e.node));
            }
        }
        _ => {}
    }
}

/// Turns events into tables by name and links into texts: `[[event]]` becomes `[event.1]`, `link =
/// ["a", "b"]` becomes `link = "a--b"`.
fn expand_events(root: &mut Table) {
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

/// Joins the two names in a list into one text.
fn join(link: &mut Node) {
    let Value::List(ends) = &link.value else { return };
    // A list of texts that already name links is a sweep.
    let name = |node: &Node| node.text().filter(|text| Cable::parse(&Raw::Str((*text).to_owned())).is_err()).map(str::to_owned);
    if let Some(names) = ends.iter().map(name).collect::<Option<Vec<_>>>() {
        link.value = Value::Scalar(Raw::Str(names.join(Cable::JOINT)));
    }
}

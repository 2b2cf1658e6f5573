//! What comes over the file: a profile, then settings of the command line.

use crate::diag::{At, Item, Sources};
use crate::part::listed;
use crate::tree::{Node, Origin, Table, Value, parse_key, parse_value};
use base::params::{Raw, nearest};

/// Parts of a system that are tables with a kind.
pub(crate) const PARTS: [&str; 4] = ["transport", "qdisc", "router", "agent"];

/// Writes `kind` tables where bare names stand: `transport = "merp"` is `transport = { kind = "merp" }`.
pub(crate) fn spell_out(root: &mut Table) {
    if let Some(topology) = root.get_mut("topology") {
        spell_out_part(&mut topology.node);
    }
    let inner = |root: &mut Table, key: &str, each: fn(&mut Node)| match root.get_mut(key).map(|e| &mut e.node.value) {
        Some(Value::Table(table)) => table.entries.iter_mut().for_each(|e| each(&mut e.node)),
        Some(Value::List(nodes)) => nodes.iter_mut().for_each(each),
        _ => {}
    };
    inner(root, "workload", spell_out_part);
    inner(root, "system", |system| {
        let Some(system) = system.table_mut() else { return };
        for part in PARTS {
            if let Some(entry) = system.get_mut(part) {
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

fn spell_out_part(node: &mut Node) {
    if let Value::Scalar(Raw::Str(_)) = node.value {
        let (at, origin) = (node.at, node.origin);
        let kind = Node { value: node.value.clone(), at, origin };
        let mut table = Table::default();
        table.put("kind", at, kind);
        node.value = Value::Table(table);
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

/// Lays `over` upon `base`: tables key by key, everything else as a whole. A table with another kind replaces the old one, whose
/// keys mean nothing to it.
fn lay(base: &mut Node, over: Node) {
    let replaces = |old: &Table, new: &Table| match (old.get("kind"), new.get("kind")) {
        (Some(old), Some(new)) => old.node.text() != new.node.text(),
        _ => false,
    };
    match (&mut base.value, over.value) {
        (Value::Table(old), Value::Table(new)) if !replaces(old, &new) => {
            for entry in new.entries {
                match old.get_mut(&entry.key) {
                    Some(known) => lay(&mut known.node, entry.node),
                    None => old.entries.push(entry),
                }
            }
        }
        (_, value) => *base = Node { value, at: over.at, origin: over.origin },
    }
}

/// Lays the profile `name` upon the file. `at` is where the name comes from.
pub(crate) fn apply_profile(root: &mut Table, profiles: Option<&Node>, name: &str, at: At, problems: &mut Vec<Item>) {
    let Some(table) = profiles.and_then(Node::table) else {
        problems.push(Item::new(at, format!("there is no profile `{name}`"), "the file has none", "write a table [profile.smoke]"));
        return;
    };
    let Some(entry) = table.get(name) else {
        let names = || table.entries.iter().map(|e| e.key.as_str());
        let label = nearest(name, names()).map_or("unknown".to_owned(), |n| format!("did you mean `{n}`?"));
        let hint = format!("the file has the profiles {}", listed(names()));
        problems.push(Item::new(at, format!("there is no profile `{name}`"), label, hint));
        return;
    };
    let Some(profile) = entry.node.table() else {
        let hint = "write a table [profile.smoke] with the keys to change";
        problems.push(Item::new(entry.node.at, format!("profile `{name}` is not a table"), "must be a table", hint));
        return;
    };
    for entry in &profile.entries {
        let mut node = entry.node.clone();
        node.set_origin(Origin::Profile);
        if entry.key == "system" {
            over_systems(root, &node, problems);
        } else {
            spell_out_like(&entry.key, &mut node);
            lay_at(root, &entry.key, entry.key_at, node);
        }
    }
}

/// Bare names in what is laid over a part mean its kind.
fn spell_out_like(key: &str, node: &mut Node) {
    match key {
        "topology" => spell_out_part(node),
        "workload" => {
            if let Some(table) = node.table_mut() {
                table.entries.iter_mut().for_each(|e| spell_out_part(&mut e.node));
            }
        }
        _ => {}
    }
}

fn lay_at(table: &mut Table, key: &str, key_at: At, node: Node) {
    match table.get_mut(key) {
        Some(known) => lay(&mut known.node, node),
        None => table.put(key, key_at, node),
    }
}

/// `system.<label>.<key>`: changes the system with that label.
fn over_systems(root: &mut Table, over: &Node, problems: &mut Vec<Item>) {
    let Some(by_label) = over.table() else {
        let hint = "a profile changes systems by label: [profile.smoke.system.MERP.agent]";
        problems.push(Item::new(over.at, "a profile cannot list systems", "must be a table of labels", hint));
        return;
    };
    for entry in &by_label.entries {
        let Some(system) = find_system(root, &entry.key, entry.key_at, problems) else { continue };
        let Some(changes) = entry.node.table() else {
            let hint = "give the keys to change: `system.MERP.agent.alpha = 0.99`";
            problems.push(Item::new(entry.node.at, format!("`system.{}` is not a table", entry.key), "must be a table", hint));
            continue;
        };
        for change in &changes.entries {
            let mut node = change.node.clone();
            if PARTS.contains(&change.key.as_str()) {
                spell_out_part(&mut node);
            }
            lay_at(system, &change.key, change.key_at, node);
        }
    }
}

fn find_system<'a>(root: &'a mut Table, label: &str, at: At, problems: &mut Vec<Item>) -> Option<&'a mut Table> {
    let systems = match root.get_mut("system").map(|e| &mut e.node.value) {
        Some(Value::List(nodes)) => nodes.as_mut_slice(),
        _ => &mut [],
    };
    let labels: Vec<String> = systems.iter().filter_map(|n| label_of(n.table()?)).map(str::to_owned).collect();
    if !labels.iter().any(|l| l == label) {
        let names = || labels.iter().map(String::as_str);
        let near = nearest(label, names()).map_or("unknown".to_owned(), |n| format!("did you mean `{n}`?"));
        let hint = format!("the systems are {}", listed(names()));
        problems.push(Item::new(at, format!("there is no system `{label}`"), near, hint));
        return None;
    }
    systems.iter_mut().filter_map(Node::table_mut).find(|t| label_of(t) == Some(label))
}

/// Applies `--set key=value`.
pub(crate) fn apply_set(root: &mut Table, key: &str, value: &str, sources: &mut Sources, problems: &mut Vec<Item>) {
    let start = "--set ".len();
    let source = sources.add("command line", format!("--set {key}={value}"));
    let at = At::new(source, start..start + key.len());
    let Some(path) = parse_key(key) else {
        let hint = "write `--set workload.web.load=0.8`; names with dots or spaces stand in quotes";
        problems.push(Item::new(at, format!("`{key}` is not a dotted key"), "not a key", hint));
        return;
    };
    let node = parse_value(value, source, start + key.len() + 1);
    let in_table = |table: &mut Table, path: &[String]| put(table, path, at, node.clone());
    match path.as_slice() {
        [top] if top == "system" || top == "workload" || top == "profile" => {
            let hint = format!("change one key of it, like `--set {top}.NAME.KEY=VALUE`");
            problems.push(Item::new(at, format!("`{top}` cannot be set as a whole"), "too much at once", hint));
        }
        [top, _] if top == "system" => {
            let hint = "change one key of it, like `--set system.MERP.agent.alpha=0.99`";
            problems.push(Item::new(at, "a system cannot be set as a whole", "too much at once", hint));
        }
        [top, label, rest @ ..] if top == "system" => {
            if let Some(system) = find_system(root, label, at, problems) {
                in_table(system, rest);
            }
        }
        [top, ..] if top == "profile" => {
            problems.push(Item::new(at, "profiles cannot be set", "not here", "choose one with `--profile NAME`, or set its keys"));
        }
        path => in_table(root, path),
    }
    spell_out(root);
}

/// Puts a value at a path, making tables on the way; bare names on the way become kinds.
fn put(table: &mut Table, path: &[String], at: At, node: Node) {
    let Some((first, rest)) = path.split_first() else { return };
    if rest.is_empty() {
        if let (Some(known), "kind") = (table.get("kind"), first.as_str())
            && known.node.text() != node.text()
        {
            // Another kind: the file's keys mean nothing to it.
            table.entries.retain(|e| e.node.origin == Origin::Set);
        }
        match (table.get_mut(first).map(|e| &mut e.node), &node.value) {
            (Some(known), Value::Table(_)) => lay(known, node),
            // A bare name for a part is its kind.
            (Some(Node { value: Value::Table(part), .. }), Value::Scalar(Raw::Str(_))) if part.get("kind").is_some() => {
                put(part, &["kind".to_owned()], at, node);
            }
            _ => table.put(first, at, node),
        }
        return;
    }
    if table.get(first).is_none() {
        table.put(first, at, Node { value: Value::Table(Table::default()), at, origin: Origin::Set });
    }
    let inner = &mut table.get_mut(first).expect("just put").node;
    spell_out_part(inner);
    match &mut inner.value {
        Value::Table(inner) => put(inner, rest, at, node),
        // A list or a number gives way; what then is missing will be said.
        value => {
            let mut fresh = Table::default();
            put(&mut fresh, rest, at, node);
            *value = Value::Table(fresh);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::parse_file;

    fn tree(text: &str) -> Table {
        let mut problems = Vec::new();
        let mut root = parse_file(text, &mut problems);
        assert!(problems.is_empty());
        spell_out(&mut root);
        root
    }
    fn show(table: &Table) -> String {
        let value = |node: &Node| match &node.value {
            Value::Scalar(Raw::Str(s)) => s.clone(),
            Value::Scalar(Raw::Int(n)) => n.to_string(),
            Value::Scalar(raw) => format!("{raw:?}"),
            Value::List(nodes) => {
                format!("[{}]", nodes.iter().map(|n| n.table().map_or("_".into(), show)).collect::<Vec<_>>().join(" "))
            }
            Value::Table(inner) => format!("{{{}}}", show(inner)),
        };
        table.entries.iter().map(|e| format!("{}={}", e.key, value(&e.node))).collect::<Vec<_>>().join(" ")
    }
    const BASE: &str = "[topology]\nkind = \"star\"\nhosts = 4\n[[system]]\nlabel = \"A\"\ntransport = \"merp\"\n";

    #[test]
    fn profiles_are_laid_key_by_key() {
        let mut root = tree(&format!("{BASE}[profile.p]\nend = 5\ntopology.hosts = 9\nsystem.A.transport.theta = 1\n"));
        let profiles = root.remove("profile").unwrap().node;
        let mut problems = Vec::new();
        apply_profile(&mut root, Some(&profiles), "p", At::new(0, 0..0), &mut problems);
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!(show(&root), "topology={kind=star hosts=9} system=[label=A transport={kind=merp theta=1}] end=5");
        apply_profile(&mut root, Some(&profiles), "q", At::new(0, 0..0), &mut problems);
        assert!(problems[0].hint.contains("`p`"));
    }

    #[test]
    fn another_kind_replaces_the_table() {
        let mut root = tree(BASE);
        let mut sources = Sources::default();
        let mut problems = Vec::new();
        apply_set(&mut root, "topology.kind", "dumbbell", &mut sources, &mut problems);
        apply_set(&mut root, "topology.left", "3", &mut sources, &mut problems);
        apply_set(&mut root, "system.A.qdisc.limit", "50pkt", &mut sources, &mut problems);
        apply_set(&mut root, "system.A.transport", "newreno", &mut sources, &mut problems);
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!(show(&root), "topology={kind=dumbbell left=3} system=[label=A transport={kind=newreno} qdisc={limit=50pkt}]");
    }

    #[test]
    fn settings_that_point_nowhere_are_refused() {
        for (key, why) in [
            ("system.B.label", "no system `B`"),
            ("a..b", "not a dotted key"),
            ("workload", "as a whole"),
            ("system.A", "as a whole"),
        ] {
            let (mut root, mut sources, mut problems) = (tree(BASE), Sources::default(), Vec::new());
            sources.add("file", "");
            apply_set(&mut root, key, "1", &mut sources, &mut problems);
            assert!(problems[0].message.contains(why), "{problems:?}");
            assert_eq!((problems[0].at.source, problems[0].at.start), (1, 6));
        }
    }
}

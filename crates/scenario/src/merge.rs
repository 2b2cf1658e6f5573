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
    crate::event::read::spell_out(root);
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

/// A file with what was laid over it.
pub(crate) struct Layers {
    pub root: Table,
    pub problems: Vec<Item>,
    /// The labels of the systems as the file has them, by which profiles and settings call them.
    labels: Vec<String>,
}

impl Layers {
    /// The file alone, spelled out.
    pub fn new(root: Table) -> Layers {
        let nodes = match root.get("system").map(|e| &e.node.value) {
            Some(Value::List(nodes)) => nodes.as_slice(),
            _ => &[],
        };
        let labels = nodes.iter().map(|n| n.table().and_then(label_of).unwrap_or_default().to_owned()).collect();
        Layers { root, problems: Vec::new(), labels }
    }

    fn report(&mut self, at: At, message: impl Into<String>, label: &str, hint: impl Into<String>) {
        self.problems.push(Item::new(at, message, label, hint));
    }

    /// Lays the profile `name` upon the file. `at` is where the name comes from.
    pub fn profile(&mut self, profiles: Option<&Node>, name: &str, at: At) {
        let Some(table) = profiles.and_then(Node::table) else {
            return self.report(at, format!("there is no profile `{name}`"), "the file has none", "write a table [profile.smoke]");
        };
        let Some(entry) = table.get(name) else {
            let names: Vec<&str> = table.entries.iter().map(|e| e.key.as_str()).collect();
            return self.problems.push(unknown(at, "profile", name, &names));
        };
        let Some(profile) = entry.node.table() else {
            let hint = "write a table [profile.smoke] with the keys to change";
            return self.report(entry.node.at, format!("profile `{name}` is not a table"), "must be a table", hint);
        };
        for entry in &profile.entries {
            let mut node = entry.node.clone();
            node.set_origin(Origin::Profile);
            if entry.key == "system" {
                self.over_systems(&node);
            } else {
                spell_out_like(&entry.key, &mut node);
                lay_at(&mut self.root, &entry.key, entry.key_at, node);
            }
        }
        spell_out(&mut self.root);
    }

    /// `system.<label>.<key>`: changes the system with that label.
    fn over_systems(&mut self, over: &Node) {
        let Some(by_label) = over.table() else {
            let hint = "a profile changes systems by label: [profile.smoke.system.MERP.agent]";
            return self.report(over.at, "a profile cannot list systems", "must be a table of labels", hint);
        };
        for entry in &by_label.entries {
            let Some(system) = self.system(&entry.key, entry.key_at) else { continue };
            let Some(changes) = entry.node.table() else {
                let hint = "give the keys to change: `system.MERP.agent.alpha = 0.99`";
                let message = format!("`system.{}` is not a table", entry.key);
                self.report(entry.node.at, message, "must be a table", hint);
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

    /// The system that the file labels so.
    fn system(&mut self, label: &str, at: At) -> Option<&mut Table> {
        let Some(index) = self.labels.iter().position(|l| l == label) else {
            let names: Vec<&str> = self.labels.iter().map(String::as_str).filter(|l| !l.is_empty()).collect();
            self.problems.push(unknown(at, "system", label, &names));
            return None;
        };
        match &mut self.root.get_mut("system")?.node.value {
            Value::List(nodes) => nodes.get_mut(index)?.table_mut(),
            _ => None,
        }
    }

    /// Applies `--set key=value`.
    pub fn set(&mut self, key: &str, value: &str, sources: &mut Sources) {
        let start = "--set ".len();
        let source = sources.add("command line", format!("--set {key}={value}"));
        let at = At::new(source, start..start + key.len());
        let Some(path) = parse_key(key) else {
            let hint = "write `--set workload.web.load=0.8`; names with dots or spaces stand in quotes";
            return self.report(at, format!("`{key}` is not a dotted key"), "not a key", hint);
        };
        let node = parse_value(value, source, start + key.len() + 1);
        match path.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["profile", ..] => {
                self.report(at, "profiles cannot be set", "not here", "choose one with `--profile NAME`, or set its keys");
            }
            [top @ ("system" | "workload")] | [top @ "system", _] => {
                let hint = format!("change one key of it, like `--set {top}.NAME.KEY=VALUE`");
                self.report(at, format!("`{key}` cannot be set as a whole"), "too much at once", hint);
            }
            ["system", label, ..] => {
                if let Some(system) = self.system(label, at) {
                    put(system, &path[2..], at, node);
                }
            }
            ["workload", name, rest @ ..] if !rest.is_empty() && *rest != ["kind"] && !self.has("workload", name) => {
                let table = self.root.get("workload").and_then(|e| e.node.table());
                let names: Vec<&str> = table.into_iter().flat_map(|t| t.entries.iter().map(|e| e.key.as_str())).collect();
                self.problems.push(unknown(at, "workload", name, &names));
            }
            ["event", name, _, ..] if !self.has("event", name) => {
                let table = self.root.get("event").and_then(|e| e.node.table());
                let names: Vec<&str> = table.into_iter().flat_map(|t| t.entries.iter().map(|e| e.key.as_str())).collect();
                self.problems.push(unknown(at, "event", name, &names));
            }
            _ => put(&mut self.root, &path, at, node),
        }
        spell_out(&mut self.root);
    }

    /// Whether a table of tables has this name, or cannot have any.
    fn has(&self, tables: &str, name: &str) -> bool {
        self.root.get(tables).and_then(|e| e.node.table()).is_none_or(|t| t.get(name).is_some())
    }
}

/// A name that is not there.
fn unknown(at: At, noun: &str, name: &str, names: &[&str]) -> Item {
    let label = nearest(name, names.iter().copied()).map_or("unknown".to_owned(), |n| format!("did you mean `{n}`?"));
    let hint = match names {
        [] => format!("the file has no {noun}"),
        _ => format!("the file has the {noun}s {}", listed(names.iter().copied())),
    };
    Item::new(at, format!("there is no {noun} `{name}`"), label, hint)
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

    fn layers(text: &str) -> (Layers, Sources) {
        let mut sources = Sources::default();
        sources.add("file", text);
        (Layers::new(tree(text)), sources)
    }

    #[test]
    fn profiles_are_laid_key_by_key() {
        let mut root = tree(&format!("{BASE}[profile.p]\nend = 5\ntopology.hosts = 9\nsystem.A.transport.theta = 1\n"));
        let profiles = root.remove("profile").unwrap().node;
        let mut layers = Layers::new(root);
        layers.profile(Some(&profiles), "p", At::new(0, 0..0));
        assert!(layers.problems.is_empty(), "{:?}", layers.problems);
        assert_eq!(show(&layers.root), "topology={kind=star hosts=9} system=[label=A transport={kind=merp theta=1}] end=5");
        layers.profile(Some(&profiles), "q", At::new(0, 0..0));
        assert!(layers.problems[0].hint.contains("`p`"));
    }

    #[test]
    fn another_kind_replaces_the_table() {
        let (mut layers, mut sources) = layers(BASE);
        let settings = [
            ("topology.left", "3"),
            ("topology.kind", "dumbbell"),
            ("system.A.qdisc.limit", "50pkt"),
            ("system.A.transport", "newreno"),
            ("system.A.label", "B"),
            ("system.A.transport.min_rto", "1ms"),
        ];
        settings.iter().for_each(|(key, value)| layers.set(key, value, &mut sources));
        assert!(layers.problems.is_empty(), "{:?}", layers.problems);
        let system = "label=B transport={kind=newreno min_rto=1ms} qdisc={limit=50pkt}";
        assert_eq!(show(&layers.root), format!("topology={{left=3 kind=dumbbell}} system=[{system}]"));
    }

    #[test]
    fn settings_that_point_nowhere_are_refused() {
        for (key, why) in [
            ("system.B.label", "no system `B`"),
            ("a..b", "not a dotted key"),
            ("workload", "as a whole"),
            ("system.A", "as a whole"),
        ] {
            let (mut layers, mut sources) = layers(BASE);
            layers.set(key, "1", &mut sources);
            assert!(layers.problems[0].message.contains(why), "{:?}", layers.problems);
            assert_eq!((layers.problems[0].at.source, layers.problems[0].at.start), (1, 6));
        }
    }
}

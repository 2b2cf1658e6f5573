//! Overrides of a file: profiles, then settings of the command line.

use crate::read::short_forms::{expand_override, expand_part, expand_short_forms, label_of};
use crate::system::slots::SLOTS;
use crate::text::diag::{Item, Place, Sources};
use crate::text::part::listed;
use crate::text::tree::{Node, Origin, Table, Value, parse_key, parse_value};
use base::params::{Raw, nearest};

/// Overrides `base` with `over`: tables key by key, everything else as a whole. A table with
/// another kind replaces the old table, because the keys of the old kind do not apply.
fn override_node(base: &mut Node, over: Node) {
    let replaces = |old: &Table, new: &Table| match (old.get("kind"), new.get("kind")) {
        (Some(old), Some(new)) => old.node.text() != new.node.text(),
        _ => false,
    };
    match (&mut base.value, over.value) {
        (Value::Table(old), Value::Table(new)) if !replaces(old, &new) => {
            for entry in new.entries {
                match old.get_mut(&entry.key) {
                    Some(known) => override_node(&mut known.node, entry.node),
                    None => old.entries.push(entry),
                }
            }
        }
        (_, value) => *base = Node { value, at: over.at, origin: over.origin },
    }
}

/// A file with its overrides applied.
pub(crate) struct Layers {
    pub root: Table,
    pub problems: Vec<Item>,
    /// The labels of the systems in the file. Profiles and settings name systems by label.
    labels: Vec<String>,
}

/// Maximum number of parts of a key. Tables are nested as deep, and must fit on the stack.
const MOST_PARTS: usize = 32;

impl Layers {
    /// Starts with a file whose short forms are expanded.
    pub fn new(root: Table) -> Layers {
        let nodes = match root.get("system").map(|e| &e.node.value) {
            Some(Value::List(nodes)) => nodes.as_slice(),
            _ => &[],
        };
        let labels = nodes.iter().map(|n| n.table().and_then(label_of).unwrap_or_default().to_owned()).collect();
        Layers { root, problems: Vec::new(), labels }
    }

    fn report(&mut self, at: Place, message: impl Into<String>, label: &str, hint: impl Into<String>) {
        self.problems.push(Item::new(at, message, label, hint));
    }

    /// Applies the profile `name`. `number` is its index among the chosen profiles, `at` the place
    /// where the profile is chosen.
    pub fn profile(&mut self, profiles: Option<&Node>, name: &str, number: usize, at: Place) {
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
            node.set_origin(Origin::Profile(number));
            if entry.key == "system" {
                self.over_systems(&node);
            } else {
                expand_override(&entry.key, &mut node);
                override_at(&mut self.root, &entry.key, entry.key_at, node);
            }
        }
        expand_short_forms(&mut self.root);
    }

    /// Applies `system.<label>.<key>`: changes the system with that label.
    fn over_systems(&mut self, over: &Node) {
        let Some(by_label) = over.table() else {
            let hint = "a profile changes systems by label: [profile.smoke.system.MERP.agent]";
            return self.report(over.at, "a profile cannot list systems", "must be a table of labels", hint);
        };
        for entry in &by_label.entries {
            let Some(system) = self.system(&entry.key, entry.key_at) else { continue };
            let Some(changes) = entry.node.table() else {
                let hint = "write the keys to change: `system.MERP.agent.alpha = 0.99`";
                let message = format!("`system.{}` is not a table", entry.key);
                self.report(entry.node.at, message, "must be a table", hint);
                continue;
            };
            for change in &changes.entries {
                let mut node = change.node.clone();
                if SLOTS.iter().any(|slot| slot.name == change.key) {
                    expand_part(&mut node);
                }
                override_at(system, &change.key, change.key_at, node);
            }
        }
    }

    /// Returns the system with this label in the file.
    fn system(&mut self, label: &str, at: Place) -> Option<&mut Table> {
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
        let at = Place::new(source, start..start + key.len());
        let Some(path) = parse_key(key) else {
            let hint = "write `--set workload.web.load=0.8`; put names with dots or spaces in quotes";
            return self.report(at, format!("`{key}` is not a dotted key"), "not a key", hint);
        };
        if path.len() > MOST_PARTS {
            let message = format!("the key has {} parts, at most {MOST_PARTS} are allowed", path.len());
            return self.report(at, message, "too long", "`flowloom check` prints all keys of a scenario");
        }
        let node = parse_value(value, source, start + key.len() + 1);
        match path.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["profile", ..] => {
                self.report(
                    at,
                    "`--set` cannot change a profile",
                    "not allowed here",
                    "choose it with `--profile NAME`, or set its keys",
                );
            }
            [top @ ("system" | "workload")] | [top @ "system", _] => {
                let hint = format!("set single keys, like `--set {top}.NAME.KEY=VALUE`");
                self.report(at, format!("`{key}` cannot be set as a whole"), "not a single key", hint);
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
        expand_short_forms(&mut self.root);
    }

    /// Returns whether a table of tables has this name, or is not a table.
    fn has(&self, tables: &str, name: &str) -> bool {
        self.root.get(tables).and_then(|e| e.node.table()).is_none_or(|t| t.get(name).is_some())
    }
}

/// Returns the problem of an unknown name.
fn unknown(at: Place, noun: &str, name: &str, names: &[&str]) -> Item {
    let label = nearest(name, names.iter().copied()).map_or("unknown".to_owned(), |n| format!("did you mean `{n}`?"));
    let hint = match names {
        [] => format!("the file has no {noun}"),
        _ => format!("the file has the {noun}s {}", listed(names.iter().copied())),
    };
    Item::new(at, format!("there is no {noun} `{name}`"), label, hint)
}

fn override_at(table: &mut Table, key: &str, key_at: Place, node: Node) {
    match table.get_mut(key) {
        Some(known) => override_node(&mut known.node, node),
        None => table.put(key, key_at, node),
    }
}

/// Sets the value at a path. Creates missing tables on the path, and turns bare names on the path
/// into kinds.
fn put(table: &mut Table, path: &[String], at: Place, node: Node) {
    let Some((first, rest)) = path.split_first() else { return };
    if rest.is_empty() {
        if let (Some(known), "kind") = (table.get("kind"), first.as_str())
            && known.node.text() != node.text()
        {
            // Another kind: the keys of the file do not apply to it.
            table.entries.retain(|e| e.node.origin == Origin::Set);
        }
        match (table.get_mut(first).map(|e| &mut e.node), &node.value) {
            (Some(known), Value::Table(_)) => override_node(known, node),
            // A bare name sets the kind of a part.
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
    expand_part(inner);
    match &mut inner.value {
        Value::Table(inner) => put(inner, rest, at, node),
        // A table replaces a list or a number; the reader reports the keys that are then missing.
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
    use crate::text::tree::parse_file;

    fn tree(text: &str) -> Table {
        let mut problems = Vec::new();
        let mut root = parse_file(text, &mut problems);
        assert!(problems.is_empty());
        expand_short_forms(&mut root);
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
        layers.profile(Some(&profiles), "p", 0, Place::new(0, 0..0));
        assert!(layers.problems.is_empty(), "{:?}", layers.problems);
        assert_eq!(show(&layers.root), "topology={kind=star hosts=9} system=[label=A transport={kind=merp theta=1}] end=5");
        layers.profile(Some(&profiles), "q", 0, Place::new(0, 0..0));
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
            (&["a"; 100_000].join("."), "the key has 100000 parts, at most 32 are allowed"),
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

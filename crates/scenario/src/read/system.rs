//! Reading `[[system]]`, slot by slot, and the host ports.

use super::section::Reading;
use crate::files::Files;
use crate::plan::draft::Section;
use crate::plan::keys::{Head, NicParams};
use crate::plan::render::{RenderedPart, parts_of_slots};
use crate::read::short_forms::label_of;
use crate::system::slots::{HostKind, Nic, SLOTS, Slot, Source, System, Unfilled, slot};
use crate::text::diag::Item;
use crate::text::part::{Part, PartReader, kind_of, listed};
use crate::text::tree::{Table, Value};
use base::Limit;
use base::params::{Auto, Params as _, Raw, Reader};
use base::registry::{Entry, FILE};
use base::text::escaped;

impl Reading<'_> {
    /// Reads all systems in all variants.
    pub fn systems(&mut self, whole: Part<'_>, head: &Head) -> Vec<Section<System>> {
        const EXAMPLE: &str = "add `[[system]]` with `transport = \"newreno\"`";
        let Some(entry) = whole.table.get("system") else {
            self.problems.push(Item::new(whole.at, "the scenario has no system", "needs [[system]]", EXAMPLE).absent());
            return Vec::new();
        };
        let nodes = match &entry.node.value {
            Value::List(nodes) if nodes.iter().all(|n| n.table().is_some()) => nodes.as_slice(),
            _ => {
                let hint = "systems are a list of tables: write `[[system]]`, with two brackets, before each system";
                self.problems.push(Item::new(entry.key_at, "`system` is not a list of tables", "must be [[system]]", hint));
                return Vec::new();
            }
        };
        if nodes.is_empty() {
            self.problems.push(Item::new(entry.node.at, "the scenario has no system", "an empty list", EXAMPLE));
        }
        let mut found: Vec<Section<System>> = Vec::new();
        for (i, node) in nodes.iter().enumerate() {
            let table = node.table().expect("checked above");
            let label = match self.label(table, i + 1) {
                Some(label) => label,
                None => continue,
            };
            // Labels must differ as printed in tables and figures.
            if found.iter().any(|s| escaped(&s.name) == escaped(&label)) {
                let at = table.get("label").map_or(node.at, |e| e.node.at);
                let hint = "give every system its own `label`; the default is the kind of the transport";
                self.problems.push(Item::new(at, format!("two systems have the label `{label}`"), "given before", hint));
            }
            let path = format!("system.{label}");
            let part = Part { table, at: node.at, path: &path };
            let keys: Vec<&str> = ["label"].into_iter().chain(SLOTS.iter().map(|slot| slot.name)).chain(["nic"]).collect();
            part.refuse_unknown(&[], &keys, &mut self.problems);
            if !self.parts_are_tables(part) {
                continue;
            }
            found.push(self.section(part, &label, "system", |this, part| this.system(part, &label, head)));
        }
        found
    }

    fn label(&mut self, table: &Table, number: usize) -> Option<String> {
        const HINT: &str = "a label is a text of at most 100 characters, like `label = \"MERP\"`";
        match table.get("label").map(|e| (e.node.text(), e.node.at)) {
            Some((Some(text), _)) if !text.trim().is_empty() && text.len() <= 100 && !text.contains(char::is_control) => {
                Some(text.to_owned())
            }
            Some((_, at)) => {
                self.problems.push(Item::new(at, "`label` is not a name", "must be a text in quotes", HINT));
                None
            }
            // A system without a transport is refused later; until then its name is its number.
            None => Some(label_of(table).map_or_else(|| number.to_string(), str::to_owned)),
        }
    }

    /// Returns whether all parts of the system are tables, and reports those that are not. Bare
    /// names are expanded before.
    fn parts_are_tables(&mut self, system: Part<'_>) -> bool {
        let mut fine = true;
        let nic = system.table.get("nic");
        let inner = nic.and_then(|e| e.node.table()).and_then(|t| t.get("qdisc"));
        let parts = SLOTS.iter().filter_map(|slot| system.table.get(slot.name)).chain(nic).chain(inner);
        for entry in parts.filter(|e| e.node.table().is_none()) {
            fine = false;
            let many = matches!(entry.node.value, Value::List(_));
            let (label, hint) = match many {
                true => ("a list", "to compare kinds, write a [[system]] for each"),
                false => ("must be a table", "write a name in quotes, or a table like `{ kind = \"...\" }`"),
            };
            self.problems.push(Item::new(entry.node.at, format!("`{}` is not a table", system.name_of(&entry.key)), label, hint));
        }
        fine
    }

    /// Reads one system in one variant.
    fn system(&mut self, part: Part<'_>, label: &str, head: &Head) -> Option<(System, Vec<RenderedPart>)> {
        let mut source =
            SystemReader { part, mtu: head.mtu.0, problems: &mut self.problems, files: self.files, nic: NicParams::defaults() };
        let system = System::read(label, &mut source)?;
        let parts = parts_of_slots(&system, source.nic);
        Some((system, parts))
    }
}

/// A system's table, read slot by slot.
struct SystemReader<'a> {
    part: Part<'a>,
    mtu: u64,
    problems: &'a mut Vec<Item>,
    files: &'a Files,
    /// The host ports as they were given.
    nic: NicParams,
}

/// Returns the entry of the plug-in that a part names, if its kind is that of plug-ins, and the kind
/// otherwise.
fn of_plugin(kind: &'static Entry, part: Part<'_>, files: &Files, problems: &mut Vec<Item>) -> Option<&'static Entry> {
    let Some(room) = kind.meta.plugin else { return Some(kind) };
    let mut reader = PartReader { part, fields: kind.fields, problems, instead: None, plugin: None };
    let Some(Raw::Str(path)) = reader.get(FILE) else {
        reader.fail(FILE, "is not a text in quotes".to_owned());
        return None;
    };
    let refused = |why| format!("cannot use the plug-in `{path}` here: {why}");
    let entry = files.plugin_of(room, &path).and_then(|library| kind.of_plugin(library).map_err(refused));
    let hint = "the file is found relative to the folder of the scenario; docs/plugins.md explains how to build it";
    entry.map_err(|message| problems.push(part.problem(FILE, message, "this file", hint))).ok()
}

impl Source for SystemReader<'_> {
    fn part<T>(&mut self, slot: &'static Slot, read: fn(&str, &mut dyn Reader) -> Option<T>) -> Option<Option<T>> {
        let empty = Table::default();
        let path = self.part.name_of(slot.name);
        let part = match self.part.table.get(slot.name) {
            Some(entry) => Part { table: entry.node.table().unwrap_or(&empty), at: entry.key_at, path: &path },
            None if slot.unfilled == Unfilled::Empty => return Some(None),
            None if slot.unfilled == Unfilled::Refused => {
                let (name, noun) = (slot.name, slot.room.noun);
                let hint = format!("add `{name} = \"...\"`: one of {}", listed(slot.room.names()));
                let message = format!("this system has no `{name}`");
                self.problems.push(Item::new(self.part.at, message, format!("needs a {noun}"), hint).absent());
                return None;
            }
            None => Part { table: &empty, at: self.part.at, path: &path },
        };
        let kind = kind_of(&slot.room, slot.default_kind(), part, self.problems)?;
        let kind = of_plugin(kind, part, self.files, self.problems)?;
        part.refuse_unknown(kind.fields, &["kind"], self.problems);
        let (fields, plugin) = (kind.fields, kind.plugin);
        read(kind.name, &mut PartReader { part, fields, problems: self.problems, instead: None, plugin }).map(Some)
    }

    /// Reads the host ports. Their queue discipline is that of the switches unless another kind is
    /// named; their limit is `unlimited` unless given, or that of the switches for `ns2`.
    fn nic(&mut self) -> Option<Nic> {
        let empty = Table::default();
        let system = self.part;
        let path = system.name_of("nic");
        let entry = system.table.get("nic");
        let table = entry.and_then(|e| e.node.table()).unwrap_or(&empty);
        let part = Part { table, at: entry.map_or(system.at, |e| e.key_at), path: &path };
        part.refuse_unknown(NicParams::FIELDS, &["qdisc"], self.problems);
        let mut reader = PartReader { part, fields: NicParams::FIELDS, problems: self.problems, instead: None, plugin: None };
        self.nic = NicParams::read(&mut reader);
        let like_a_switch = self.nic.kind == HostKind::Ns2;
        let low_water_bytes = match self.nic.low_water {
            Auto::Auto => (!like_a_switch).then_some(2 * self.mtu),
            Auto::Set(Limit::Bytes(n)) => Some(n),
            Auto::Set(Limit::Packets(n)) => Some(u64::from(n) * self.mtu),
            Auto::Set(Limit::Unlimited) => None,
        };

        // The keys of the switches without their limit, overridden by the keys of the NIC; only the
        // keys of the NIC if it names a kind.
        let slot = slot("qdisc");
        let own = table.get("qdisc").and_then(|e| Some((e.key_at, e.node.table()?)));
        let switches = system.table.get(slot.name).and_then(|e| e.node.table());
        let mut merged = match own {
            Some((_, own)) if own.get("kind").is_some() => Table::default(),
            _ => switches.cloned().unwrap_or_default(),
        };
        if !like_a_switch {
            merged.remove("limit");
        }
        for entry in own.iter().flat_map(|(_, own)| &own.entries) {
            merged.put(&entry.key, entry.key_at, entry.node.clone());
        }
        let path = part.name_of("qdisc");
        let at = own.map_or(system.at, |(at, _)| at);
        let qdisc = Part { table: &merged, at, path: &path };
        // Problems with keys of the switches are already reported.
        let mut silent = Vec::new();
        let problems = if own.is_some() { &mut *self.problems } else { &mut silent };
        let kind = kind_of(&slot.room, slot.default_kind(), qdisc, problems)?;
        let kind = of_plugin(kind, qdisc, self.files, problems)?;
        qdisc.refuse_unknown(kind.fields, &["kind"], problems);
        let instead = (!like_a_switch).then(|| ("limit", Raw::Str("unlimited".into())));
        let mut reader = PartReader { part: qdisc, fields: kind.fields, problems, instead, plugin: kind.plugin };
        let qdisc = fabric::qdisc::AnyParams::read(kind.name, &mut reader)?;
        Some(Nic { kind: self.nic.kind, qdisc, low_water_bytes })
    }
}

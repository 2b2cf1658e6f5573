//! Parts of a scenario: tables that are read through declared parameters, and the problems found
//! while reading.

use crate::text::diag::{Item, LISTED, Place};
use crate::text::tree::{Table, Value};
use base::params::{Field, Problem, Raw, Reader, nearest};
use base::registry::{Entry, Room};
use plugin::library::Library;

/// A table of the scenario with its name in messages and the place of its header.
#[derive(Clone, Copy)]
pub(crate) struct Part<'a> {
    pub table: &'a Table,
    pub at: Place,
    /// Its dotted path, as `--set` would name it: `workload.web`, `system.MERP.agent`.
    pub path: &'a str,
}

impl<'a> Part<'a> {
    /// Returns the place of a key's value, or the place of the part if the key is not given.
    pub fn at_of(&self, key: &str) -> Place {
        self.table.get(key).map_or(self.at, |e| e.node.at)
    }
    /// Returns the dotted name of one of its keys.
    pub fn name_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
    /// Returns a problem with the value of a key.
    pub fn problem(&self, key: &str, message: impl std::fmt::Display, label: impl Into<String>, hint: impl Into<String>) -> Item {
        let name = self.name_of(key);
        Item::new(self.at_of(key), format!("`{name}`: {message}"), label, hint).about(name)
    }
    /// Returns the problems that an entry found when checked against its environment.
    pub fn problems(&self, found: Vec<Problem>) -> impl Iterator<Item = Item> {
        let label = |key| if self.table.get(key).is_some() { "here".to_owned() } else { format!("`{key}` has its default") };
        found.into_iter().map(move |p| self.problem(p.key, p.message, label(p.key), p.hint))
    }
    /// Reports every key that is neither a parameter nor among `others`.
    pub fn refuse_unknown(&self, fields: &[Field], others: &[&str], out: &mut Vec<Item>) {
        let names: Vec<&str> = others.iter().copied().chain(fields.iter().map(|f| f.name)).collect();
        let unknown = || self.table.entries.iter().filter(|e| !names.contains(&e.key.as_str()));
        for entry in unknown().take(LISTED) {
            let whole = if self.path.is_empty() { "the scenario".to_owned() } else { format!("[{}]", self.path) };
            let (label, start) = match nearest(&entry.key, names.iter().copied()) {
                Some(near) => (format!("did you mean `{near}`?"), format!("write `{near}`; ")),
                None => ("not a key of this table".to_owned(), String::new()),
            };
            let hint = format!("{start}allowed here: {}", listed(names.iter().copied()));
            out.push(Item::new(entry.key_at, format!("unknown key `{}` in {whole}", entry.key), label, hint));
        }
        if let (Some(last), more @ 1..) = (out.last_mut(), unknown().count().saturating_sub(LISTED)) {
            last.more = more;
        }
    }
}

/// Reads parameters from a part.
pub(crate) struct PartReader<'a> {
    pub part: Part<'a>,
    pub fields: &'a [Field],
    pub problems: &'a mut Vec<Item>,
    /// A key and the value to use if that key is not given.
    pub instead: Option<(&'static str, Raw)>,
    /// The plug-in whose parameters are read, if they are those of a plug-in.
    pub plugin: Option<&'static Library>,
}

impl Reader for PartReader<'_> {
    fn get(&mut self, key: &'static str) -> Option<Raw> {
        let given = self.part.table.get(key).map(|e| e.node.raw());
        given.or_else(|| self.instead.as_ref().filter(|(k, _)| *k == key).map(|(_, raw)| raw.clone()))
    }
    fn plugin(&self) -> Option<&'static Library> {
        self.plugin
    }
    fn fail(&mut self, key: &'static str, message: String) {
        let field = self.fields.iter().find(|f| f.name == key);
        let expects = field.map_or(String::new(), |f| (f.expects)());
        match self.part.table.get(key) {
            Some(_) => {
                let default = field.map_or("", |f| f.default);
                let otherwise = if default.is_empty() { String::new() } else { format!("; the default is `{default}`") };
                let about = field.map_or("", |f| f.about.trim());
                let hint = format!("`{key}` is {expects}{otherwise}. {about}");
                self.problems.push(self.part.problem(key, message, format!("must be {expects}"), hint));
            }
            None => {
                let message = format!("`{}` is missing", self.part.name_of(key));
                let about = field.map_or("", |f| f.about.trim());
                let item = Item::new(self.part.at, message, format!("needs `{key}`"), format!("add `{key}`: {expects}. {about}"));
                self.problems.push(item.absent().about(self.part.name_of(key)));
            }
        }
    }
}

/// Returns the entry of a room that a part names, or `default` if the part names none.
pub(crate) fn kind_of(
    room: &Room,
    default: Option<&'static str>,
    part: Part<'_>,
    problems: &mut Vec<Item>,
) -> Option<&'static Entry> {
    let names = || room.names();
    let (at, name) = match (part.table.get("kind"), default) {
        (Some(entry), _) => match &entry.node.value {
            Value::Scalar(Raw::Str(name)) => (entry.node.at, name.as_str()),
            Value::List(_) => {
                let hint = "a list sweeps a parameter; to compare kinds, write a [[system]] or a scenario for each";
                problems.push(part.problem("kind", "cannot be swept", format!("one of {}", listed(names())), hint));
                return None;
            }
            _ => {
                let hint = format!("the kinds are {}", listed(names()));
                problems.push(part.problem("kind", "is not a text in quotes", format!("one of {}", listed(names())), hint));
                return None;
            }
        },
        (None, Some(default)) => (part.at, default),
        (None, None) => {
            let hint = format!("add `kind = \"...\"`: one of {}", listed(names()));
            problems.push(Item::new(part.at, format!("`{}` is missing", part.name_of("kind")), "needs `kind`", hint).absent());
            return None;
        }
    };
    let found = room.entry(name);
    if found.is_none() {
        let near = nearest(name, names());
        let label = near.map_or("unknown".to_owned(), |n| format!("did you mean `{n}`?"));
        let start = near.map_or(String::new(), |n| format!("write `{n}`; "));
        let hint = format!("{start}the kinds are {}", listed(names()));
        problems.push(Item::new(at, format!("unknown {} `{name}`", room.noun), label, hint));
    }
    found
}

/// Returns the names in backticks: `a`, `b`, `c`.
pub(crate) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ")
}

//! Parts of a scenario as a plan writes them: with every default, without keys that have no effect.

use crate::deadline;
use crate::event::params::{Event, EventParams, RandomParams};
use crate::plan::keys::NicParams;
use crate::plan::spec::Demand;
use crate::system::engine::Engine;
use crate::system::slots::{System, SystemPart};
use crate::topology;
use crate::workload;
use base::Limit;
use base::params::{Auto, Field, Param, Params as _};
use base::registry::Entry;
use base::text::is_hidden;
use std::fmt::Write as _;

/// A part of a section as a plan writes it.
#[derive(Clone, Debug)]
pub(crate) struct RenderedPart {
    /// Its path in the section: `agent`, `nic.qdisc`, or empty for the section itself.
    pub path: &'static str,
    pub kind: Option<&'static str>,
    pub fields: &'static [Field],
    pub values: Vec<(&'static str, String)>,
    /// Keys without effect, which are not written.
    pub ignored: Vec<&'static str>,
}

/// Returns a part with a kind.
pub(crate) fn shown(
    path: &'static str,
    entry: &Entry,
    values: Vec<(&'static str, String)>,
    ignored: Vec<&'static str>,
) -> RenderedPart {
    RenderedPart { path, kind: Some(entry.name), fields: entry.fields, values, ignored }
}

impl RenderedPart {
    /// Returns a part without a kind.
    pub fn bare(path: &'static str, fields: &'static [Field], values: Vec<(&'static str, String)>) -> RenderedPart {
        RenderedPart { path, kind: None, fields, values, ignored: Vec::new() }
    }
    /// Returns the part without some keys that have no effect.
    pub fn without(mut self, ignored: Vec<&'static str>) -> RenderedPart {
        self.ignored = ignored;
        self
    }
    pub fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
    /// Returns the header of the part in a section with this header.
    pub fn path_in(&self, header: &str) -> String {
        if self.path.is_empty() { header.to_owned() } else { format!("{header}.{}", self.path) }
    }
    /// Returns the value at a dotted path of the section.
    pub fn value_at(&self, path: &str) -> Option<String> {
        self.values.iter().find(|(key, _)| self.path_of(key) == path).map(|(_, value)| value.clone())
    }
    /// Returns the dotted paths of keys without effect.
    pub fn ignored_paths(&self) -> impl Iterator<Item = String> + '_ {
        self.ignored.iter().map(|key| self.path_of(key))
    }
    /// Returns whether a key with this value is left out: it is quiet and has its default.
    pub fn leaves_out(&self, key: &str, value: &str) -> bool {
        self.fields.iter().any(|field| field.name == key && field.leaves_out(value))
    }
    /// Writes the lines of the part: its kind and every key that has an effect, except quiet keys
    /// with their defaults.
    pub fn lines(&self, mut write: impl FnMut(Option<&Field>, &'static str, String)) {
        if let Some(kind) = self.kind {
            write(None, "kind", quoted(kind));
        }
        let written = |(key, value): &&(&'static str, String)| !self.ignored.contains(key) && !self.leaves_out(key, value);
        for (key, value) in self.values.iter().filter(written) {
            let field = self.fields.iter().find(|f| f.name == *key);
            write(field, key, literal(field, value));
        }
    }
}

/// Returns a text in quotes, with escapes for hidden characters.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if is_hidden(c) && c <= '\u{ffff}' => write!(out, "\\u{:04X}", c as u32).expect("a String takes all"),
            c if is_hidden(c) => write!(out, "\\U{:08X}", c as u32).expect("a String takes all"),
            c => out.push(c),
        }
    }
    out + "\""
}

/// Returns a value as TOML: numbers and truth values bare, the rest in quotes.
pub(crate) fn literal(field: Option<&Field>, value: &str) -> String {
    let expects = field.map_or(String::new(), |f| (f.expects)());
    let number = value.starts_with(|c: char| c.is_ascii_digit()) && value.parse::<f64>().is_ok();
    let bare = match value {
        "true" | "false" => expects == bool::expects(),
        _ => number && expects != String::expects(),
    };
    if bare { value.to_owned() } else { quoted(value) }
}

macro_rules! part {
    ($path:expr, $entries:expr, $params:expr) => {{
        let name = $params.name();
        let entry = $entries.iter().find(|e| e.name == name).expect("every entry is in its room's table");
        shown($path, entry, $params.show(), Vec::new())
    }};
}

/// Returns the parts of a system in the order in which they are written: its slots, then the host
/// ports.
pub(crate) fn parts_of_system(system: &System) -> Vec<RenderedPart> {
    let low_water = Auto::Set(system.nic.low_water_bytes.map_or(Limit::Unlimited, Limit::Bytes));
    parts_of_slots(system, NicParams { kind: system.nic.kind, low_water })
}

/// Returns the parts of a system with the parameters of the host ports as they were given.
pub(crate) fn parts_of_slots(system: &System, nic: NicParams) -> Vec<RenderedPart> {
    let part = |part: SystemPart| shown(part.slot.name, part.entry, part.values, Vec::new());
    let mut parts: Vec<RenderedPart> = system.parts().into_iter().map(part).collect();
    parts.push(RenderedPart::bare("nic", NicParams::FIELDS, nic.show()));
    parts.push(part!("nic.qdisc", fabric::qdisc::ENTRIES, system.nic.qdisc));
    parts
}

/// Returns the engine as a part.
pub(crate) fn part_of_engine(engine: &Engine) -> RenderedPart {
    RenderedPart::bare("", Engine::FIELDS, engine.show()).without(engine.ignored())
}

/// Returns a topology as a part.
pub(crate) fn part_of_topology(params: &topology::AnyParams) -> RenderedPart {
    part!("", topology::ENTRIES, params)
}

/// Returns the parts of a workload in the order in which they are written.
pub(crate) fn parts_of_workload(traffic: &Demand) -> Vec<RenderedPart> {
    let workload = part!("", workload::ENTRIES, traffic.workload).without(traffic.workload.ignored());
    let deadline = traffic.deadline.as_ref().map(|law| part!("deadline", deadline::ENTRIES, law));
    std::iter::once(workload).chain(deadline).collect()
}

/// Returns the parts of an event, without keys that have no effect.
pub(crate) fn parts_of_event(event: &Event) -> Vec<RenderedPart> {
    let p = &event.params;
    let absent = |none: &[(&'static str, bool)]| none.iter().filter(|(_, absent)| *absent).map(|(key, _)| *key).collect();
    let ignored = absent(&[("link", p.link.is_none()), ("node", p.node.is_none()), ("until", p.until == Auto::Auto)]);
    let mut parts = vec![RenderedPart::bare("", EventParams::FIELDS, p.show()).without(ignored)];
    if let Some(random) = &event.random {
        let ignored = absent(&[("count", random.count.is_none()), ("probability", random.probability.is_none())]);
        parts.push(RenderedPart::bare("random", RandomParams::FIELDS, random.show()).without(ignored));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::keys::{Head, SampleParams};

    #[test]
    fn values_are_written_as_toml_reads_them() {
        let fields = Head::FIELDS;
        assert_eq!(literal(Some(&fields[1]), "1500B"), "\"1500B\"");
        assert_eq!(literal(None, "0.8"), "0.8");
        assert_eq!(literal(Some(&SampleParams::FIELDS[1]), "true"), "true");
        let text = workload::ENTRIES[0].fields.iter().find(|f| f.name == "cdf");
        assert_eq!((literal(text, "5"), literal(text, "true")), ("\"5\"".to_owned(), "\"true\"".to_owned()));
        assert_eq!(quoted("a\"b\\c\u{7}"), "\"a\\\"b\\\\c\\u0007\"");
        assert_eq!(quoted("a\u{202e}\u{e0067}"), "\"a\\u202E\\U000E0067\"");
    }
}

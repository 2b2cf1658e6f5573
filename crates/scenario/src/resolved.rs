//! Plans and points written out as TOML with every default.

use crate::event::{self, FailureParams};
use crate::files::Files;
use crate::read::{Draft, Head, NicParams, SampleParams, Section};
use crate::spec::{Plan, Point, System, Traffic};
use crate::topology::{self, Topology as _};
use crate::tree::{Origin, Table, Value};
use crate::workload::size::Packets;
use crate::workload::{self, Workload as _};
use base::params::{Auto, Field, Param, Params as _};
use base::registry::Entry;
use base::{Bytes, Dur, Limit};
use fabric::net::Net;
use std::fmt::Write as _;

/// A part of a section as it would be written.
#[derive(Clone, Debug)]
pub(crate) struct PartShown {
    /// Where it stands in its section: `agent`, `nic.qdisc`, or nothing for the section itself.
    path: &'static str,
    kind: Option<&'static str>,
    fields: &'static [Field],
    values: Vec<(&'static str, String)>,
    /// Keys without effect beside the others: not written.
    ignored: Vec<&'static str>,
}

/// A part with a kind.
pub(crate) fn shown(
    path: &'static str,
    entry: &Entry,
    values: Vec<(&'static str, String)>,
    ignored: Vec<&'static str>,
) -> PartShown {
    PartShown { path, kind: Some(entry.name), fields: entry.fields, values, ignored }
}

/// A workload; which of its keys have no effect depends on its parameters alone.
fn of_workload(entry: &Entry, params: &workload::AnyParams, files: &Files) -> PartShown {
    let net = Net::default();
    let env = workload::Env { net: &net, packets: Packets { mtu: 1500, header: 40 }, end: None, files, index: 0 };
    shown("", entry, params.show(), params.build(&env).ignored())
}

impl PartShown {
    /// A part without a kind.
    pub fn bare(path: &'static str, fields: &'static [Field], values: Vec<(&'static str, String)>) -> PartShown {
        PartShown { path, kind: None, fields, values, ignored: Vec::new() }
    }
    /// The part without some keys that have no effect.
    pub fn without(mut self, ignored: Vec<&'static str>) -> PartShown {
        self.ignored = ignored;
        self
    }
    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
    /// Its header in a section with this header.
    fn path_in(&self, header: &str) -> String {
        if self.path.is_empty() { header.to_owned() } else { format!("{header}.{}", self.path) }
    }
    /// The value at a dotted path of the section.
    pub fn value_at(&self, path: &str) -> Option<String> {
        self.values.iter().find(|(key, _)| self.path_of(key) == path).map(|(_, value)| value.clone())
    }
    /// The dotted paths of keys without effect.
    pub fn ignored_paths(&self) -> impl Iterator<Item = String> + '_ {
        self.ignored.iter().map(|key| self.path_of(key))
    }
    /// The lines of the part: its kind and every key that has an effect.
    fn lines(&self, mut write: impl FnMut(Option<&Field>, &'static str, String)) {
        if let Some(kind) = self.kind {
            write(None, "kind", quoted(kind));
        }
        for (key, value) in self.values.iter().filter(|(key, _)| !self.ignored.contains(key)) {
            let field = self.fields.iter().find(|f| f.name == *key);
            write(field, key, literal(field, value));
        }
    }
}

/// A text in quotes.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => write!(out, "\\u{:04X}", c as u32).expect("a String takes all"),
            c => out.push(c),
        }
    }
    out + "\""
}

/// A value as TOML: numbers and truth values bare, the rest in quotes.
fn literal(field: Option<&Field>, value: &str) -> String {
    let expects = field.map_or(String::new(), |f| (f.expects)());
    let number = value.starts_with(|c: char| c.is_ascii_digit()) && value.parse::<f64>().is_ok();
    let bare = match value {
        "true" | "false" => expects == bool::expects(),
        _ => number && expects != String::expects(),
    };
    if bare { value.to_owned() } else { quoted(value) }
}

/// A key of a table header.
fn header_key(key: &str) -> String {
    let bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    if bare { key.to_owned() } else { quoted(key) }
}

macro_rules! part {
    ($path:expr, $entries:expr, $params:expr) => {{
        let name = $params.name();
        let entry = $entries.iter().find(|e| e.name == name).expect("every entry is in its room's table");
        shown($path, entry, $params.show(), Vec::new())
    }};
}

/// The parts of a system in the order in which they are written.
fn parts_of_system(system: &System) -> Vec<PartShown> {
    let mut parts = vec![
        part!("transport", proto::transport::ENTRIES, system.transport),
        part!("qdisc", fabric::qdisc::ENTRIES, system.qdisc),
        part!("router", fabric::router::ENTRIES, system.router),
    ];
    if let Some(agent) = &system.agent {
        parts.push(part!("agent", fabric::agent::ENTRIES, agent));
    }
    let low_water = NicParams { low_water: Auto::Set(system.nic.low_water_bytes.map_or(Limit::Unlimited, Limit::Bytes)) };
    parts.push(PartShown::bare("nic", NicParams::FIELDS, low_water.show()));
    parts.push(part!("nic.qdisc", fabric::qdisc::ENTRIES, system.nic.qdisc));
    parts
}

fn part_of_topology(params: &topology::AnyParams) -> PartShown {
    part!("", topology::ENTRIES, params)
}

/// The parts of a workload in the order in which they are written.
pub(crate) fn parts_of_workload(traffic: &Traffic, files: &Files) -> Vec<PartShown> {
    let params = &traffic.workload;
    let entry = workload::ENTRIES.iter().find(|e| e.name == params.name()).expect("every entry is in its room's table");
    let deadline = traffic.deadline.as_ref().map(|law| part!("deadline", crate::deadline::ENTRIES, law));
    std::iter::once(of_workload(entry, params, files)).chain(deadline).collect()
}

/// A point alone, without comments.
pub(crate) fn of_point(point: &Point) -> String {
    let run = &point.run;
    let mut out = String::new();
    let mut line = |text: String| {
        out.push_str(&text);
        out.push('\n');
    };
    let auto = |end: Option<base::Time>| end.map_or(Auto::Auto, |t| Auto::Set(Dur(t.0)));
    let head = Head { end: auto(run.end), mtu: Bytes(run.mtu_bytes.into()), header: Bytes(run.header_bytes.into()) };
    line(format!("seed = {}", run.seed));
    if let Some(ideal) = run.ideal {
        line(format!("ideal = {}", quoted(&ideal.show())));
    }
    PartShown::bare("", Head::FIELDS, head.show()).lines(|_, key, value| line(format!("{key} = {value}")));
    line("\n[topology]".to_owned());
    part_of_topology(&run.topology).lines(|_, key, value| line(format!("{key} = {value}")));
    for (name, traffic) in &run.workloads {
        for part in parts_of_workload(traffic, &run.files) {
            line(format!("\n[{}]", part.path_in(&format!("workload.{}", header_key(name)))));
            part.lines(|_, key, value| line(format!("{key} = {value}")));
        }
    }
    if let Some(failures) = &run.failures {
        for event in &failures.events {
            for part in event::read::parts(event) {
                let name = header_key(&event.name);
                line(format!("\n[event.{}]", if part.path.is_empty() { name } else { format!("{name}.{}", part.path) }));
                part.lines(|_, key, value| line(format!("{key} = {value}")));
            }
        }
        line("\n[failure]".to_owned());
        PartShown::bare("", FailureParams::FIELDS, failures.params.show()).lines(|_, key, value| line(format!("{key} = {value}")));
    }
    if let Some(s) = run.sample {
        line("\n[sample]".to_owned());
        let crate::Sample { interval, ports, port, flows, packets } = s;
        let sample = SampleParams { interval, ports, port: port.map(|link| run.net.link_name(link)), flows, packets };
        PartShown::bare("", SampleParams::FIELDS, sample.show()).lines(|_, key, value| line(format!("{key} = {value}")));
    }
    if run.ideal.is_none() {
        line(format!("\n[[system]]\nlabel = {}", quoted(&point.label)));
        for part in parts_of_system(&run.system) {
            line(format!("\n[system.{}]", part.path));
            part.lines(|_, key, value| line(format!("{key} = {value}")));
        }
    }
    let files = run.topology.build(&topology::Env { files: &run.files }).files();
    let more = run.workloads.iter().enumerate().flat_map(|(i, (_, t))| t.workload.build(&run.env(i)).files());
    for file in files.into_iter().chain(more) {
        let hash = run.files.hash(&file).map_or_else(|e| e, |h| format!("{h:016x}"));
        line(format!("# file {} {hash}", quoted(&file)));
    }
    out
}

/// Who set what, in words.
pub(crate) struct Voice<'a> {
    pub profile: &'a str,
    pub name: &'a str,
    pub seeds_from_command_line: bool,
}

impl Voice<'_> {
    fn origin(&self, origin: Origin) -> String {
        match origin {
            Origin::File => String::new(),
            Origin::Profile => format!("profile {}", self.profile),
            Origin::Set => "--set".to_owned(),
        }
    }
    /// The comment of a key: who set it, or where its default comes from.
    fn comment(&self, table: &Table, path: &str, default: &str) -> String {
        let path: Vec<String> = path.split('.').map(str::to_owned).collect();
        match table.clone().at_path(&path) {
            Some(node) => self.origin(node.origin),
            None => format!("default: {default}"),
        }
    }
}

/// Lines with their comments in one column.
#[derive(Default)]
struct Page(Vec<(String, String)>);

impl Page {
    fn line(&mut self, text: impl Into<String>, comment: impl Into<String>) {
        self.0.push((text.into(), comment.into()));
    }
    fn text(&self) -> String {
        let mut out = String::new();
        for (text, comment) in &self.0 {
            let line = if comment.is_empty() { text.clone() } else { format!("{text:<30} # {comment}") };
            out.push_str(&line);
            out.push('\n');
        }
        out
    }
    /// The parts of a section; what differs between its variants is written as a list.
    fn section(&mut self, header: &str, section: &Table, variants: &[Vec<PartShown>], voice: &Voice<'_>) {
        let Some(first) = variants.first() else { return };
        for (i, part) in first.iter().enumerate() {
            let path = part.path_in(header);
            if !(part.path.is_empty() && header.is_empty()) {
                self.line("", "");
                self.line(format!("[{path}]"), "");
            }
            if let Some(kind) = part.kind {
                let comment = voice.comment(section, &part.path_of("kind"), default_kind(part.path));
                match (part.path, comment.starts_with("default")) {
                    // Without a kind of its own the NIC follows the switches, also where their keys are swept.
                    ("nic.qdisc", true) => self.line(format!("# {}, as at switches", quoted(kind)), ""),
                    _ => self.line(format!("kind = {}", quoted(kind)), comment),
                }
            }
            for (key, _) in &part.values {
                let field = part.fields.iter().find(|f| f.name == *key);
                let mut values: Vec<String> = Vec::new();
                for p in variants.iter().map(|v| &v[i]).filter(|p| !p.ignored.contains(key)) {
                    let value = p.values.iter().find(|(k, _)| k == key).map(|(_, v)| literal(field, v)).unwrap_or_default();
                    if !values.contains(&value) {
                        values.push(value);
                    }
                }
                let place: Vec<String> = part.path_of(key).split('.').map(str::to_owned).collect();
                let swept = matches!(section.clone().at_path(&place).map(|n| &n.value), Some(Value::List(_)));
                // Nothing to write for a key without effect, nor for a NIC's that follows a sweep of the switches.
                if values.is_empty() || (values.len() > 1 && !swept) {
                    continue;
                }
                let value = if swept { format!("[{}]", values.join(", ")) } else { values.swap_remove(0) };
                let default = match (part.path, *key) {
                    ("nic.qdisc", "limit") => "no limit at hosts",
                    ("nic.qdisc", _) => "as at switches, else as the discipline's own",
                    _ => field.map_or("", |f| f.source),
                };
                self.line(format!("{key} = {value}"), voice.comment(section, &part.path_of(key), default));
            }
        }
    }
}

fn default_kind(path: &str) -> &'static str {
    match path {
        "qdisc" => "what most switches do",
        "router" => "what most networks do",
        _ => "",
    }
}

/// The whole plan, before its sweeps are expanded.
pub(crate) fn of_plan(draft: &Draft, root: &Table, files: &Files, voice: &Voice<'_>) -> String {
    let mut page = Page::default();
    let given = |key: &str, default: &str| voice.comment(root, key, default);
    page.line(format!("name = {}", quoted(voice.name)), given("name", "the file's name"));
    let seeds: Vec<String> = draft.seeds.iter().map(u64::to_string).collect();
    let seeds = if seeds.len() == 1 { seeds.concat() } else { format!("[{}]", seeds.join(", ")) };
    let from = if voice.seeds_from_command_line { "--seed".to_owned() } else { given("seed", "one run") };
    page.line(format!("seed = {seeds}"), from);
    let ideals: Vec<String> = draft.ideals.iter().map(|ideal| quoted(&ideal.show())).collect();
    page.line(format!("ideal = [{}]", ideals.join(", ")), given("ideal", "systems only"));
    page.section("", root, &[vec![PartShown::bare("", Head::FIELDS, draft.head.show())]], voice);
    let topologies: Vec<_> = draft.topology.variants.iter().map(|v| vec![part_of_topology(&v.value.params)]).collect();
    page.section("topology", &draft.topology.table, &topologies, voice);
    for section in &draft.workloads {
        let variants: Vec<_> = section.variants.iter().map(|v| parts_of_workload(&v.value, files)).collect();
        let name = section.name.trim_start_matches("workload.");
        page.section(&format!("workload.{}", header_key(name)), &section.table, &variants, voice);
    }
    for section in &draft.events {
        let variants: Vec<_> = section.variants.iter().map(|v| event::read::parts(&v.value)).collect();
        let name = section.name.trim_start_matches("event.");
        page.section(&format!("event.{}", header_key(name)), &section.table, &variants, voice);
    }
    if let Some(section) = &draft.failure {
        let shown = |v: &crate::read::Variant<FailureParams>| vec![PartShown::bare("", FailureParams::FIELDS, v.value.show())];
        let variants: Vec<_> = section.variants.iter().map(shown).collect();
        page.section("failure", &section.table, &variants, voice);
    }
    if let Some((sample, _)) = &draft.sample {
        let empty = Table::default();
        let table = root.get("sample").and_then(|e| e.node.table()).unwrap_or(&empty);
        page.section("sample", table, &[vec![PartShown::bare("", SampleParams::FIELDS, sample.show())]], voice);
    }
    for section in &draft.systems {
        system(&mut page, section, voice);
    }
    page.text()
}

/// What the events of a plan do, as comments: once per network, events and seed.
pub(crate) fn of_events(plan: &Plan) -> String {
    const MOST: usize = 12;
    let mut seen: Vec<(String, Vec<String>)> = Vec::new();
    for point in plan.points.iter().filter(|p| p.run.failures.is_some()) {
        let own = |key: &str| key.starts_with("topology.") || key.starts_with("event.");
        let swept = point.swept.iter().filter(|(key, _)| own(key)).map(|(key, value)| format!(", {key} = {value}"));
        let title = format!("seed {}{}", point.seed, swept.collect::<String>());
        if seen.iter().all(|(known, _)| *known != title) {
            seen.push((title, event::read::in_words(&point.run)));
        }
    }
    let mut out = String::new();
    for (title, lines) in seen.iter().take(MOST) {
        out.push_str(&format!("\n# events with {title}\n"));
        lines.iter().for_each(|line| out.push_str(&format!("#   {line}\n")));
        if lines.is_empty() {
            out.push_str("#   nothing happens\n");
        }
    }
    if seen.len() > MOST {
        out.push_str(&format!("\n# and events with {} more seeds or swept values\n", seen.len() - MOST));
    }
    out
}

fn system(page: &mut Page, section: &Section<System>, voice: &Voice<'_>) {
    page.line("", "");
    page.line("[[system]]", "");
    page.line(format!("label = {}", quoted(&section.name)), voice.comment(&section.table, "label", "the transport's kind"));
    let variants: Vec<_> = section.variants.iter().map(|v| parts_of_system(&v.value)).collect();
    page.section("system", &section.table, &variants, voice);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_toml_reads_them() {
        let fields = Head::FIELDS;
        assert_eq!(literal(Some(&fields[1]), "1500B"), "\"1500B\"");
        assert_eq!(literal(None, "0.8"), "0.8");
        assert_eq!(literal(Some(&SampleParams::FIELDS[1]), "true"), "true");
        let text = workload::ENTRIES[0].fields.iter().find(|f| f.name == "cdf");
        assert_eq!((literal(text, "5"), literal(text, "true")), ("\"5\"".to_owned(), "\"true\"".to_owned()));
        assert_eq!(quoted("a\"b\\c\u{7}"), "\"a\\\"b\\\\c\\u0007\"");
        assert_eq!((header_key("a-b_1"), header_key("a b"), header_key("")), ("a-b_1".into(), "\"a b\"".into(), "\"\"".into()));
    }
}

//! Plans and points as TOML with every default.

use crate::event::change::when;
use crate::event::params::FailureParams;
use crate::plan::draft::{Draft, Section, Variant};
use crate::plan::keys::{Head, SampleParams};
use crate::plan::measure::Measure;
use crate::plan::render::{
    RenderedPart, literal, part_of_engine, part_of_topology, parts_of_event, parts_of_system, parts_of_workload, quoted,
};
use crate::plan::seeds::{AUTO, AutoSeeds};
use crate::plan::spec::{Plan, Point, RunSpec, Sample};
use crate::system::engine::Engine;
use crate::system::envs;
use crate::system::slots::{SLOTS, System, Unfilled};
use crate::text::tree::{Origin, Table, Value};
use crate::topology::Topology as _;
use crate::workload::Workload as _;
use base::params::{Auto, Param as _, Params as _};
use base::text::escaped;
use base::{Bytes, Dur, LinkId, Time};
use fabric::net::Net;
use std::collections::BTreeMap;
use xxhash_rust::xxh3::xxh3_64;

/// The start of the hash of a plug-in; other hashes are 64-bit XXH3.
const SHA256: &str = "sha256:";

impl Point {
    /// Returns the point as TOML: no comments, no lists, and a line for each file that it reads.
    pub fn resolved(&self) -> String {
        of_point(self)
    }
    /// Returns a hash of everything that determines the results of the point, except the version of
    /// the program.
    pub fn config_hash(&self) -> u64 {
        xxh3_64(self.resolved().as_bytes())
    }
}

impl RunSpec {
    /// Returns the files that the run reads, each with the hash of its content.
    fn inputs(&self) -> Vec<(String, String)> {
        let files = self.topology.build(&envs::topology(&self.files)).files();
        let more = self.workloads.iter().enumerate().flat_map(|(i, (_, t))| t.workload.build(&self.env(i)).files());
        let hash = |file: &str| self.files.hash(file).map_or_else(|e| e, |h| format!("{h:016x}"));
        let plugins = self.system.plugins().filter(|library| !library.digest.is_empty());
        let plugins = plugins.map(|library| (library.file.clone(), format!("{SHA256}{}", library.digest)));
        files.into_iter().chain(more).map(|file| (file.clone(), hash(&file))).chain(plugins).collect()
    }
}

impl Plan {
    /// Returns the files that the points read, by path as the scenario writes it, each with the
    /// hash of its content.
    pub fn inputs(&self) -> BTreeMap<String, String> {
        self.points.iter().flat_map(|point| point.run.inputs()).collect()
    }
}

/// Returns a key for a table header, in quotes if necessary.
fn header_key(key: &str) -> String {
    let bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    if bare { key.to_owned() } else { quoted(key) }
}

/// Returns a single point as TOML, without comments.
fn of_point(point: &Point) -> String {
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
    RenderedPart::bare("", Head::FIELDS, head.show()).lines(|_, key, value| line(format!("{key} = {value}")));
    // Not in older versions: to keep the hashes of points, the default engine is not written.
    if run.engine != Engine::defaults() {
        line("\n[engine]".to_owned());
        part_of_engine(&run.engine).lines(|_, key, value| line(format!("{key} = {value}")));
    }
    line("\n[topology]".to_owned());
    part_of_topology(&run.topology).lines(|_, key, value| line(format!("{key} = {value}")));
    for (name, traffic) in &run.workloads {
        for part in parts_of_workload(traffic) {
            line(format!("\n[{}]", part.path_in(&format!("workload.{}", header_key(name)))));
            part.lines(|_, key, value| line(format!("{key} = {value}")));
        }
    }
    if let Some(failures) = &run.failures {
        for event in &failures.events {
            for part in parts_of_event(event) {
                let name = header_key(&event.name);
                line(format!("\n[event.{}]", if part.path.is_empty() { name } else { format!("{name}.{}", part.path) }));
                part.lines(|_, key, value| line(format!("{key} = {value}")));
            }
        }
        line("\n[failure]".to_owned());
        RenderedPart::bare("", FailureParams::FIELDS, failures.params.show())
            .lines(|_, key, value| line(format!("{key} = {value}")));
    }
    // Not in older versions: to keep the hashes of points, the default window is not written.
    if run.measure != Measure::defaults() {
        line("\n[measure]".to_owned());
        RenderedPart::bare("", Measure::FIELDS, run.measure.show()).lines(|_, key, value| line(format!("{key} = {value}")));
    }
    if let Some(sample) = &run.sample {
        line("\n[sample]".to_owned());
        let params = params_of(sample, &run.net);
        RenderedPart::bare("", SampleParams::FIELDS, params.show()).lines(|_, key, value| {
            // Not in older versions: to keep the hashes of points, these keys are written only if
            // set.
            let written = match key {
                "switches" => sample.switches,
                "agents" => sample.agents,
                _ => true,
            };
            if written {
                line(format!("{key} = {value}"));
            }
        });
    }
    if run.ideal.is_none() {
        line(format!("\n[[system]]\nlabel = {}", quoted(&point.label)));
        for part in parts_of_system(&run.system) {
            line(format!("\n[system.{}]", part.path));
            part.lines(|_, key, value| line(format!("{key} = {value}")));
        }
    }
    for (file, hash) in run.inputs() {
        line(format!("# file {} {hash}", quoted(&file)));
    }
    out
}

/// Returns the `[sample]` parameters of the time series that a run records.
fn params_of(sample: &Sample, net: &Net) -> SampleParams {
    let Sample { interval, ports, port, flows, switches, agents, packets, start, end, only_ports, only_flows } = sample;
    let names = |links: &Vec<LinkId>| links.iter().map(|link| net.link_name(*link)).collect::<Vec<_>>().join(", ");
    SampleParams {
        interval: *interval,
        ports: *ports,
        port: port.map(|link| net.link_name(link)),
        flows: *flows,
        switches: *switches,
        agents: *agents,
        packets: *packets,
        start: Dur(start.0),
        end: if *end == Time::MAX { Auto::Auto } else { Auto::Set(Dur(end.0)) },
        only_ports: only_ports.as_ref().map_or("all".to_owned(), names),
        only_flows: only_flows.clone(),
    }
}

/// The origins of values, for comments.
pub(crate) struct Origins<'a> {
    pub profiles: &'a [String],
    pub name: &'a str,
    pub seeds_from_command_line: bool,
}

impl Origins<'_> {
    fn origin(&self, origin: Origin) -> String {
        match origin {
            Origin::File => String::new(),
            Origin::Profile(number) => format!("profile {}", self.profiles[number]),
            Origin::Set => "--set".to_owned(),
        }
    }
    /// Returns the comment of a key: its origin, or the source of its default.
    fn comment(&self, table: &Table, path: &str, default: &str) -> String {
        let path: Vec<String> = path.split('.').map(str::to_owned).collect();
        match table.clone().at_path(&path) {
            Some(node) => self.origin(node.origin),
            None => format!("default: {default}"),
        }
    }
}

/// Lines with comments that are aligned in a column.
#[derive(Default)]
struct Page(Vec<(String, String)>);

impl Page {
    fn line(&mut self, text: impl Into<String>, comment: impl Into<String>) {
        self.0.push((text.into(), comment.into()));
    }
    fn text(&self) -> String {
        let mut out = String::new();
        for (text, comment) in &self.0 {
            let line = if comment.is_empty() { text.clone() } else { format!("{text:<30} # {}", escaped(comment)) };
            out.push_str(&line);
            out.push('\n');
        }
        out
    }
    /// Adds the parts of a section; values that differ between its variants are written as a list.
    fn section(&mut self, header: &str, section: &Table, variants: &[Vec<RenderedPart>], origins: &Origins<'_>) {
        let Some(first) = variants.first() else { return };
        for (i, part) in first.iter().enumerate() {
            let path = part.path_in(header);
            if !(part.path.is_empty() && header.is_empty()) {
                self.line("", "");
                self.line(format!("[{path}]"), "");
            }
            if let Some(kind) = part.kind {
                let comment = origins.comment(section, &part.path_of("kind"), default_kind(part.path));
                match (part.path, comment.starts_with("default")) {
                    // Without its own kind, the NIC has the queue discipline of the switches, also
                    // if their keys are swept.
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
                if variants.iter().all(|v| v[i].values.iter().any(|(k, value)| k == key && v[i].leaves_out(k, value))) {
                    continue;
                }
                let place: Vec<String> = part.path_of(key).split('.').map(str::to_owned).collect();
                let swept = matches!(section.clone().at_path(&place).map(|n| &n.value), Some(Value::List(_)));
                // Skips a key without effect, and a key of the NIC that follows a sweep of the
                // switches.
                if values.is_empty() || (values.len() > 1 && !swept) {
                    continue;
                }
                let value = if swept { format!("[{}]", values.join(", ")) } else { values.swap_remove(0) };
                let default = match (part.path, *key) {
                    ("nic.qdisc", "limit") => "none at hosts; as at switches for `ns2`",
                    ("nic.qdisc", _) => "as at switches, else the default of the queue discipline",
                    _ => field.map_or("", |f| f.source),
                };
                self.line(format!("{key} = {value}"), origins.comment(section, &part.path_of(key), default));
            }
        }
    }
}

/// Returns the source of the default kind of a part.
fn default_kind(path: &str) -> &'static str {
    match SLOTS.iter().find(|slot| slot.name == path).map(|slot| slot.unfilled) {
        Some(Unfilled::Default { source, .. }) => source,
        _ => "",
    }
}

/// Returns the whole plan as TOML, before its sweeps are expanded.
pub(crate) fn of_plan(draft: &Draft, root: &Table, origins: &Origins<'_>) -> String {
    let mut page = Page::default();
    let given = |key: &str, default: &str| origins.comment(root, key, default);
    page.line(format!("name = {}", quoted(origins.name)), given("name", "the file's name"));
    let seeds: Vec<String> = draft.seeds.list.iter().map(u64::to_string).collect();
    let auto = draft.seeds.auto.as_ref().map(|(params, _)| params);
    let seeds = match (auto, seeds.as_slice()) {
        (Some(_), _) => quoted(AUTO),
        (None, [seed]) => seed.clone(),
        (None, seeds) => format!("[{}]", seeds.join(", ")),
    };
    let from = if origins.seeds_from_command_line { "--seed".to_owned() } else { given("seed", "one run") };
    page.line(format!("seed = {seeds}"), from);
    if let Some(auto) = auto {
        page.section("", root, &[vec![RenderedPart::bare("", AutoSeeds::FIELDS, auto.show())]], origins);
    }
    let ideals: Vec<String> = draft.ideals.iter().map(|ideal| quoted(&ideal.show())).collect();
    page.line(format!("ideal = [{}]", ideals.join(", ")), given("ideal", "systems only"));
    page.section("", root, &[vec![RenderedPart::bare("", Head::FIELDS, draft.head.show())]], origins);
    if root.get("engine").is_some() {
        let engines: Vec<_> = draft.engine.variants.iter().map(|v| vec![part_of_engine(&v.value)]).collect();
        page.section("engine", &draft.engine.table, &engines, origins);
    }
    let topologies: Vec<_> = draft.topology.variants.iter().map(|v| vec![part_of_topology(&v.value.params)]).collect();
    page.section("topology", &draft.topology.table, &topologies, origins);
    for section in &draft.workloads {
        let variants: Vec<_> = section.variants.iter().map(|v| parts_of_workload(&v.value)).collect();
        let name = section.name.trim_start_matches("workload.");
        page.section(&format!("workload.{}", header_key(name)), &section.table, &variants, origins);
    }
    for section in &draft.events {
        let variants: Vec<_> = section.variants.iter().map(|v| parts_of_event(&v.value)).collect();
        let name = section.name.trim_start_matches("event.");
        page.section(&format!("event.{}", header_key(name)), &section.table, &variants, origins);
    }
    if let Some(section) = &draft.failure {
        let shown = |v: &Variant<FailureParams>| vec![RenderedPart::bare("", FailureParams::FIELDS, v.value.show())];
        let variants: Vec<_> = section.variants.iter().map(shown).collect();
        page.section("failure", &section.table, &variants, origins);
    }
    if let Some(table) = root.get("measure").and_then(|e| e.node.table()) {
        page.section("measure", table, &[vec![RenderedPart::bare("", Measure::FIELDS, draft.measure.show())]], origins);
    }
    if let Some(sample) = draft.sample.as_ref().map(|section| &section.params) {
        let empty = Table::default();
        let table = root.get("sample").and_then(|e| e.node.table()).unwrap_or(&empty);
        page.section("sample", table, &[vec![RenderedPart::bare("", SampleParams::FIELDS, sample.show())]], origins);
    }
    for section in &draft.systems {
        system(&mut page, section, origins);
    }
    page.text()
}

/// Returns the effects of the events of a plan as comments, once per network, events and seed.
pub(crate) fn of_events(plan: &Plan) -> String {
    const MOST: usize = 12;
    let mut seen: Vec<(String, Vec<String>)> = Vec::new();
    for point in plan.points.iter().filter(|p| p.run.failures.is_some()) {
        let own = |key: &str| key.starts_with("topology.") || key.starts_with("event.");
        let swept = point.swept.iter().filter(|(key, _)| own(key)).map(|(key, value)| format!(", {key} = {value}"));
        let title = format!("seed {}{}", point.seed, swept.collect::<String>());
        if seen.iter().all(|(known, _)| *known != title) {
            seen.push((title, in_words(&point.run)));
        }
    }
    let mut out = String::new();
    for (title, lines) in seen.iter().take(MOST) {
        out.push_str(&format!("\n# events with {title}\n"));
        lines.iter().for_each(|line| out.push_str(&format!("#   {line}\n")));
        if lines.is_empty() {
            out.push_str("#   no link or node changes\n");
        }
    }
    if seen.len() > MOST {
        out.push_str(&format!("\n# and events with {} more seeds or swept values\n", seen.len() - MOST));
    }
    out
}

fn system(page: &mut Page, section: &Section<System>, origins: &Origins<'_>) {
    page.line("", "");
    page.line("[[system]]", "");
    page.line(format!("label = {}", quoted(&section.name)), origins.comment(&section.table, "label", "the transport's kind"));
    let variants: Vec<_> = section.variants.iter().map(|v| parts_of_system(&v.value)).collect();
    page.section("system", &section.table, &variants, origins);
}

/// Returns the changes of links and nodes of a run as lines of text.
fn in_words(run: &RunSpec) -> Vec<String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_headers_are_bare_if_possible() {
        assert_eq!(["a-b_1", "a b", ""].map(header_key), ["a-b_1", "\"a b\"", "\"\""]);
    }
}

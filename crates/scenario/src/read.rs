//! From the tree to typed values: every section of a scenario in every variant that its sweeps make.

use crate::check;
use crate::deadline;
use crate::diag::{At, Item};
use crate::event::{Event, FailureParams};
use crate::files::Files;
use crate::ideal::Ideal;
use crate::merge::{PARTS, spell_out_deadline};
use crate::part::{Part, PartReader, Room, listed};
use crate::resolved::{PartShown, parts_of_workload, shown};
use crate::spec::{Nic, Sample, System, Traffic};
use crate::sweep::{axes, count, variants};
use crate::topology::{self, MAX_DELAY, Topology};
use crate::tree::{Node, Table, Value};
use crate::workload::{self, MAX_TIME};
use base::params::{Auto, Field, Param, Params as _, Raw};
use base::{Bytes, Dur, HostId, Limit, Time};
use fabric::net::{Net, NetBuilder};
use fabric::routes::Routes;
use std::sync::Arc;

base::params! {
    /// Keys at the top of a scenario.
    pub struct Head {
        /// Latest end of a run; `auto`: when all flows are finished and closed.
        end: Auto<Dur> = "auto" in Auto::Set(Dur(1))..=Auto::Set(MAX_TIME), "a run ends with its last flow";
        /// Largest packet on the wire, headers included.
        mtu: Bytes = "1500B" in Bytes(64)..=Bytes(65_535), "Ethernet";
        /// Header of every packet; also the size of a packet without payload.
        header: Bytes = "40B" in Bytes(1)..=Bytes(1_000), "IPv4 and TCP without options";
    }
}

base::params! {
    /// Time series.
    pub struct SampleParams {
        /// From one sample to the next.
        interval: Dur = "10us" in Dur(1_000)..=MAX_DELAY, "a few packets at 1 Gb/s";
        /// Queue and utilisation of every port.
        ports: bool = "true", "what most plots show";
        /// The only port looked at, like `tor0->root`; `none`: all of them.
        port: Option<String> = "none", "all";
        /// Rate and window of every open flow.
        flows: bool = "false", "large";
        /// Every packet.
        packets: bool = "false", "very large";
    }
}

base::params! {
    /// Host ports.
    pub struct NicParams {
        /// The transport is asked for more while no more than this waits; `auto`: 2 MTU; `unlimited`: as hosts of ns-2.
        low_water: Auto<Limit> = "auto", "one packet on the wire, one behind it";
    }
}

/// A section in one of the variants that its sweeps make.
#[derive(Clone, Debug)]
pub(crate) struct Variant<T> {
    pub table: Table,
    pub value: T,
    /// (key, value) of its swept keys.
    pub swept: Vec<(String, String)>,
}

/// A section in all its variants.
#[derive(Clone, Debug)]
pub(crate) struct Section<T> {
    /// `workload.web`, `topology`, or the label of a system.
    pub name: String,
    pub at: At,
    /// The table as written, lists included.
    pub table: Table,
    pub variants: Vec<Variant<T>>,
}

/// A topology and what follows from it alone.
#[derive(Clone, Debug)]
pub(crate) struct Built {
    pub params: topology::AnyParams,
    pub net: Arc<Net>,
    pub routes: Arc<Routes>,
    pub max_rtt: Dur,
}

/// Everything that was read.
#[derive(Debug)]
pub(crate) struct Draft {
    pub name: Option<String>,
    pub seeds: Vec<u64>,
    pub ideals: Vec<Ideal>,
    pub head: Head,
    pub sample: Option<(SampleParams, At)>,
    pub topology: Section<Built>,
    pub workloads: Vec<Section<Traffic>>,
    pub systems: Vec<Section<System>>,
    pub events: Vec<Section<Event>>,
    /// Only with events.
    pub failure: Option<Section<FailureParams>>,
}

impl Head {
    /// The latest end of a run.
    pub fn latest_end(&self) -> Option<Time> {
        match self.end {
            Auto::Auto => None,
            Auto::Set(end) => Some(Time(end.0)),
        }
    }
}

/// What reading needs beside the tree.
pub(crate) struct Reading<'a> {
    pub files: &'a Arc<Files>,
    pub problems: Vec<Item>,
    /// Seeds of the command line.
    pub seeds: Option<Vec<u64>>,
}

const TOPOLOGY: Room = Room { noun: "topology", entries: topology::ENTRIES, default: None };
const WORKLOAD: Room = Room { noun: "workload", entries: workload::ENTRIES, default: None };
const DEADLINE: Room = Room { noun: "law of deadlines", entries: deadline::ENTRIES, default: None };
const TRANSPORT: Room = Room { noun: "transport", entries: proto::transport::ENTRIES, default: None };
const QDISC: Room = Room { noun: "queue discipline", entries: fabric::qdisc::ENTRIES, default: Some("droptail") };
const ROUTER: Room = Room { noun: "router", entries: fabric::router::ENTRIES, default: Some("ecmp") };
const AGENT: Room = Room { noun: "agent", entries: fabric::agent::ENTRIES, default: None };

/// More points than this are refused.
pub(crate) const MAX_POINTS: u64 = 100_000;

impl Reading<'_> {
    /// Reads a whole scenario. `None` when a section is missing altogether; other problems leave defaults behind.
    pub fn scenario(&mut self, root: &Table) -> Option<Draft> {
        let start = At::new(0, 0..0);
        let whole = Part { table: root, at: start, path: "" };
        let keys = ["name", "seed", "ideal", "topology", "workload", "system", "sample", "event", "failure", "profile"];
        whole.refuse_unknown(Head::FIELDS, &keys, &mut self.problems);
        let head = Head::read(&mut self.reader(whole, Head::FIELDS));
        // From half a packet on, a wire size could be all headers.
        if 2 * head.header.0 > head.mtu.0 {
            let message = format!("`{}` is more than half of a packet of {} bytes", head.header, head.mtu.0);
            self.problems.push(whole.problem(
                "header",
                message,
                "at most half of `mtu`",
                "take a larger `mtu` or a smaller `header`",
            ));
            return None;
        }
        let name = self.name(whole);
        let seeds = self.seeds(whole);
        let ideals = self.ideals(whole);
        let sample = root.get("sample").and_then(|entry| {
            let part = self.table_of(entry.key_at, &entry.node, "sample", "interval = \"10us\"")?;
            part.refuse_unknown(SampleParams::FIELDS, &[], &mut self.problems);
            let at = part.at_of("port");
            Some((SampleParams::read(&mut self.reader(part, SampleParams::FIELDS)), at))
        });
        let topology = self.topology(whole, &head);
        let workloads = self.workloads(whole);
        let systems = self.systems(whole, &head);
        self.refuse_ideal_labels(whole, &systems, &ideals);
        check::within_systems(&systems, &mut self.problems);
        let events = self.events(whole, head.latest_end());
        let failure = self.failure(whole, !events.is_empty(), head.latest_end());
        let draft = Draft { name, seeds, ideals, head, sample, topology: topology?, workloads, systems, events, failure };
        check::cross(&draft, self);
        Some(draft)
    }

    pub(crate) fn reader<'b>(&'b mut self, part: Part<'b>, fields: &'b [Field]) -> PartReader<'b> {
        PartReader { part, fields, problems: &mut self.problems, instead: None }
    }

    /// A node as a table, or a problem.
    pub(crate) fn table_of<'b>(&mut self, key_at: At, node: &'b Node, path: &'b str, example: &str) -> Option<Part<'b>> {
        match node.table() {
            Some(table) => Some(Part { table, at: key_at, path }),
            None => {
                let hint = format!("write a table: [{path}] with `{example}`");
                self.problems.push(Item::new(node.at, format!("`{path}` is not a table"), "must be a table", hint));
                None
            }
        }
    }

    fn name(&mut self, whole: Part<'_>) -> Option<String> {
        let entry = whole.table.get("name")?;
        let fits = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ' ');
        match entry.node.text() {
            Some(text) if is_plain_name(text) && text.chars().all(fits) => Some(text.to_owned()),
            _ => {
                let hint =
                    "results go to a folder of this name: letters, digits, `-`, `_`, inner dots and spaces, at most 100 characters";
                let message = format!("{} is not a plain name", entry.node.named());
                self.problems.push(whole.problem("name", message, "must be a plain name", hint));
                None
            }
        }
    }

    fn seeds(&mut self, whole: Part<'_>) -> Vec<u64> {
        if let Some(seeds) = self.seeds.clone() {
            return seeds;
        }
        let Some(entry) = whole.table.get("seed") else { return vec![1] };
        const HINT: &str = "write `seed = 1`, or a list of different numbers: `seed = [1, 2, 3]`";
        let nodes = match &entry.node.value {
            Value::List(nodes) => nodes.as_slice(),
            _ => std::slice::from_ref(&entry.node),
        };
        if nodes.is_empty() {
            self.problems.push(whole.problem("seed", "no seeds", "an empty list", HINT));
        }
        let mut seeds = Vec::new();
        for node in nodes {
            match u64::parse(&node.raw()) {
                Ok(seed) if seeds.contains(&seed) => {
                    self.problems.push(Item::new(node.at, format!("`seed`: {seed} stands twice"), "given before", HINT));
                }
                Ok(seed) => seeds.push(seed),
                Err(why) => self.problems.push(Item::new(
                    node.at,
                    format!("`seed`: {} {why}", node.named()),
                    "must be a whole number",
                    HINT,
                )),
            }
        }
        if seeds.is_empty() { vec![1] } else { seeds }
    }

    /// The ideal references that are asked for.
    fn ideals(&mut self, whole: Part<'_>) -> Vec<Ideal> {
        let Some(entry) = whole.table.get("ideal") else { return Vec::new() };
        const HINT: &str = "write `ideal = \"srpt\"`, or a list: `ideal = [\"srpt\", \"ps\"]`";
        let nodes = match &entry.node.value {
            Value::List(nodes) => nodes.as_slice(),
            _ => std::slice::from_ref(&entry.node),
        };
        let mut found = Vec::new();
        for node in nodes {
            let (message, label) = match Ideal::parse(&node.raw()) {
                Ok(ideal) if found.contains(&ideal) => (format!("`ideal`: {} stands twice", node.named()), "given before"),
                Ok(ideal) => {
                    found.push(ideal);
                    continue;
                }
                Err(why) => (format!("`ideal`: {} {why}", node.named()), "not an ideal reference"),
            };
            self.problems.push(Item::new(node.at, message, label, HINT));
        }
        found
    }

    /// Rows of tables go by their labels.
    fn refuse_ideal_labels(&mut self, whole: Part<'_>, systems: &[Section<System>], ideals: &[Ideal]) {
        for ideal in ideals.iter().filter(|ideal| systems.iter().any(|system| system.name == ideal.label())) {
            let message = format!("a system has the label `{}`", ideal.label());
            let hint = "give the system another `label`: this one belongs to the ideal reference";
            self.problems.push(whole.problem("ideal", message, "two rows of the same name", hint));
        }
    }

    /// Reads a section in every variant. `read` gives the value of one variant and what it shows by key.
    pub(crate) fn section<T>(
        &mut self,
        part: Part<'_>,
        name: &str,
        prefix: &str,
        mut read: impl FnMut(&mut Self, Part<'_>) -> Option<(T, Vec<PartShown>)>,
    ) -> Section<T> {
        let axes = axes(part, &mut self.problems);
        let mut found = Vec::new();
        let mut ignored: Option<Vec<String>> = None;
        let n = count(&axes);
        let before = self.problems.len();
        if n > MAX_POINTS {
            let message = format!("`{}` sweeps {n} combinations, at most {MAX_POINTS} are allowed", part.path);
            self.problems.push(Item::new(part.at, message, "too many", "take shorter lists, or several scenarios"));
            return Section { name: name.to_owned(), at: part.at, table: part.table.clone(), variants: found };
        }
        for table in variants(part.table, &axes) {
            let Some((value, parts)) = read(self, Part { table: &table, ..part }) else { continue };
            let of = |path: &str| {
                let value = parts.iter().find_map(|p| p.value_at(path));
                value.unwrap_or_default()
            };
            let swept = axes.iter().map(|a| (format!("{prefix}.{}", a.path.join(".")), of(&a.path.join(".")))).collect();
            let here: Vec<String> = parts.iter().flat_map(PartShown::ignored_paths).collect();
            ignored = Some(match ignored {
                None => here,
                Some(before) => before.into_iter().filter(|k| here.contains(k)).collect(),
            });
            found.push(Variant { table, value, swept });
        }
        if self.problems.len() == before {
            self.refuse_repeated(&axes, &found, prefix);
        }
        for key in ignored.unwrap_or_default() {
            self.refuse_ignored(part, &key);
        }
        Section { name: name.to_owned(), at: part.at, table: part.table.clone(), variants: found }
    }

    /// Two equal values in one list would make two equal points.
    fn refuse_repeated<T>(&mut self, axes: &[crate::sweep::Axis], found: &[Variant<T>], prefix: &str) {
        if count(axes) != found.len() as u64 {
            return;
        }
        // How far apart two values of an axis stand among the variants.
        let mut stride = found.len();
        for (i, axis) in axes.iter().enumerate() {
            stride /= axis.nodes.len();
            let values: Vec<&str> = (0..axis.nodes.len()).map(|k| found[k * stride].swept[i].1.as_str()).collect();
            for (k, node) in axis.nodes.iter().enumerate() {
                if values[..k].contains(&values[k]) {
                    let message = format!("`{prefix}.{}`: {} stands twice", axis.path.join("."), values[k]);
                    self.problems.push(Item::new(node.at, message, "given before", "the values of a sweep must differ"));
                }
            }
        }
    }

    /// A key that was given and has no effect.
    fn refuse_ignored(&mut self, part: Part<'_>, key: &str) {
        let Some(entry) = part.table.get(key) else { return };
        let message = format!("`{}.{key}` has no effect beside the other keys", part.path);
        let hint = match part.table.get("size").and_then(|e| e.node.text()) {
            Some(size) if key == "cdf" => format!("a table of sizes needs `size = \"cdf\"`, here stands `size = \"{size}\"`"),
            None if key == "cdf" => "a table of sizes needs `size = \"cdf\"`".to_owned(),
            _ => "remove it, or change the key that makes it useless".to_owned(),
        };
        self.problems.push(Item::new(entry.key_at, message, "ignored", hint));
    }

    fn topology(&mut self, whole: Part<'_>, head: &Head) -> Option<Section<Built>> {
        let Some(entry) = whole.table.get("topology") else {
            let names = listed(topology::ENTRIES.iter().map(|e| e.name));
            let hint = format!("add a table [topology] with `kind = \"...\"`: one of {names}");
            self.problems.push(Item::new(whole.at, "the scenario has no topology", "needs [topology]", hint).absent());
            return None;
        };
        let part = self.table_of(entry.key_at, &entry.node, "topology", "kind = \"single_tree\"")?;
        let kind = TOPOLOGY.kind(part, &mut self.problems)?;
        part.refuse_unknown(kind.fields, &["kind"], &mut self.problems);
        let files = Arc::clone(self.files);
        let env = topology::Env { files: &files };
        let mut bytes = 0;
        let section = self.section(part, "topology", "topology", |this, part| {
            let before = this.problems.len();
            let params = topology::AnyParams::read(kind.name, &mut this.reader(part, kind.fields))?;
            this.problems.extend(part.problems(params.check(&env)));
            if this.problems.len() > before {
                return None;
            }
            let machine = params.build(&env);
            let size = machine.size();
            bytes = check::memory_of(size).saturating_add(bytes);
            if let Some(item) = check::too_large(part, size, bytes) {
                this.problems.push(item);
                return None;
            }
            let parts = vec![shown("", kind, params.show(), Vec::new())];
            Some((this.build(part, params, &machine, head)?, parts))
        });
        (!section.variants.is_empty()).then_some(section)
    }

    fn build(
        &mut self,
        part: Part<'_>,
        params: topology::AnyParams,
        machine: &topology::AnyTopology,
        head: &Head,
    ) -> Option<Built> {
        let mut builder = NetBuilder::default();
        machine.build(&mut builder);
        let net = builder.build();
        if net.hosts().len() < 2 {
            let message = format!("a network needs two hosts, this one has {}", net.hosts().len());
            self.problems.push(part.problem("kind", message, "too small", "take more hosts"));
            return None;
        }
        let routes = Routes::new(&net, &[]);
        // Cables lead both ways: what the first host reaches reaches all the others too.
        let all = (0..net.hosts().len() as u32).map(HostId);
        if let Some(cut) = all.skip(1).find(|dst| routes.distance(net.hosts()[0], *dst).is_none()) {
            let name = |h| workload::hosts::name_of(&net, h);
            let message = format!("no path leads from host `{}` to host `{}`", name(HostId(0)), name(cut));
            let hint = "every host must reach every other: add the missing cables";
            self.problems.push(part.problem("kind", message, "not one network", hint));
            return None;
        }
        let max_rtt = routes.max_rtt(&net, head.mtu.0, head.header.0);
        Some(Built { params, net: Arc::new(net), routes: Arc::new(routes), max_rtt })
    }

    fn workloads(&mut self, whole: Part<'_>) -> Vec<Section<Traffic>> {
        const EXAMPLE: &str = "add a table like [workload.web] with `kind = \"poisson\"`";
        let entry = whole.table.get("workload");
        let table = match entry.map(|e| (&e.node.value, e)) {
            Some((Value::Table(table), _)) if !table.entries.is_empty() => table,
            Some((Value::Table(_), entry)) => {
                self.problems.push(Item::new(entry.key_at, "the scenario has no workload", "nothing in here", EXAMPLE));
                return Vec::new();
            }
            Some((_, entry)) => {
                self.problems.push(Item::new(entry.node.at, "`workload` is not a table", "must be a table of workloads", EXAMPLE));
                return Vec::new();
            }
            None => {
                self.problems.push(Item::new(whole.at, "the scenario has no workload", "needs [workload.NAME]", EXAMPLE).absent());
                return Vec::new();
            }
        };
        let mut found = Vec::new();
        for entry in &table.entries {
            let path = format!("workload.{}", entry.key);
            if entry.node.table().is_none() && table.get("kind").is_some() {
                // [workload] with the keys of one workload in it.
                let hint = "a workload has a name: write [workload.web] instead of [workload]";
                self.problems.push(Item::new(entry.key_at, format!("`{path}` is not a table"), "must be a table", hint));
                return Vec::new();
            }
            let Some(part) = self.table_of(entry.key_at, &entry.node, &path, "kind = \"poisson\"") else { continue };
            let Some(kind) = WORKLOAD.kind(part, &mut self.problems) else { continue };
            part.refuse_unknown(kind.fields, &["kind", "deadline"], &mut self.problems);
            let mut table = part.table.clone();
            if let Some(deadline) = table.get_mut("deadline") {
                spell_out_deadline(&mut deadline.node);
            }
            let files = Arc::clone(self.files);
            found.push(self.section(Part { table: &table, ..part }, &path, &path, |this, part| {
                let workload = workload::AnyParams::read(kind.name, &mut this.reader(part, kind.fields))?;
                let traffic = Traffic { workload, deadline: this.deadline(part) };
                let parts = parts_of_workload(&traffic, &files);
                Some((traffic, parts))
            }));
        }
        found
    }

    /// The law of a workload's deadlines, if it has one.
    fn deadline(&mut self, workload: Part<'_>) -> Option<deadline::AnyParams> {
        let entry = workload.table.get("deadline")?;
        let path = workload.name_of("deadline");
        let part = self.table_of(entry.key_at, &entry.node, &path, "kind = \"exponential\"")?;
        let kind = DEADLINE.kind(part, &mut self.problems)?;
        part.refuse_unknown(kind.fields, &["kind"], &mut self.problems);
        let law = deadline::AnyParams::read(kind.name, &mut self.reader(part, kind.fields))?;
        self.problems.extend(part.problems(law.check(&())));
        Some(law)
    }

    fn systems(&mut self, whole: Part<'_>, head: &Head) -> Vec<Section<System>> {
        const EXAMPLE: &str = "add `[[system]]` with `transport = \"newreno\"`";
        let Some(entry) = whole.table.get("system") else {
            self.problems.push(Item::new(whole.at, "the scenario has no system", "needs [[system]]", EXAMPLE).absent());
            return Vec::new();
        };
        let nodes = match &entry.node.value {
            Value::List(nodes) if nodes.iter().all(|n| n.table().is_some()) => nodes.as_slice(),
            _ => {
                let hint = "systems are a list of tables: write `[[system]]`, with two brackets, before each";
                self.problems.push(Item::new(entry.key_at, "`system` is not a list of tables", "must be [[system]]", hint));
                return Vec::new();
            }
        };
        if nodes.is_empty() {
            self.problems.push(Item::new(entry.node.at, "the scenario has no system", "an empty list", EXAMPLE));
        }
        let mut found: Vec<Section<System>> = Vec::new();
        for node in nodes {
            let table = node.table().expect("checked above");
            let label = match self.label(table, node.at) {
                Some(label) => label,
                None => continue,
            };
            if found.iter().any(|s| s.name == label) {
                let at = table.get("label").map_or(node.at, |e| e.node.at);
                let hint = "every system has its own `label`; where none is given it is the transport's kind";
                self.problems.push(Item::new(at, format!("two systems have the label `{label}`"), "given before", hint));
            }
            let path = format!("system.{label}");
            let part = Part { table, at: node.at, path: &path };
            const KEYS: [&str; 6] = ["label", "transport", "qdisc", "router", "agent", "nic"];
            part.refuse_unknown(&[], &KEYS, &mut self.problems);
            if !self.parts_are_tables(part) {
                continue;
            }
            found.push(self.section(part, &label, "system", |this, part| this.system(part, &label, head)));
        }
        found
    }

    fn label(&mut self, table: &Table, at: At) -> Option<String> {
        const HINT: &str = "a label is a text of at most 100 characters, like `label = \"MERP\"`";
        match table.get("label").map(|e| (e.node.text(), e.node.at)) {
            Some((Some(text), _)) if !text.trim().is_empty() && text.len() <= 100 && !text.contains(char::is_control) => {
                Some(text.to_owned())
            }
            Some((_, at)) => {
                self.problems.push(Item::new(at, "`label` is not a name", "must be a text in quotes", HINT));
                None
            }
            None => Some(crate::merge::label_of(table).map_or_else(|| format!("at byte {}", at.start), str::to_owned)),
        }
    }

    /// Whether all parts that stand here are tables (bare names have become tables by now).
    fn parts_are_tables(&mut self, system: Part<'_>) -> bool {
        let mut fine = true;
        let nic = system.table.get("nic");
        let inner = nic.and_then(|e| e.node.table()).and_then(|t| t.get("qdisc"));
        let parts = PARTS.iter().filter_map(|p| system.table.get(p)).chain(nic).chain(inner);
        for entry in parts.filter(|e| e.node.table().is_none()) {
            fine = false;
            let many = matches!(entry.node.value, Value::List(_));
            let (label, hint) = match many {
                true => ("a list", "to compare kinds, write one [[system]] each"),
                false => ("must be a table", "write a name in quotes, or a table like `{ kind = \"...\" }`"),
            };
            self.problems.push(Item::new(entry.node.at, format!("`{}` is not a table", system.name_of(&entry.key)), label, hint));
        }
        fine
    }

    /// One system in one variant.
    fn system(&mut self, part: Part<'_>, label: &str, head: &Head) -> Option<(System, Vec<PartShown>)> {
        let empty = Table::default();
        let names: Vec<String> = PARTS.iter().map(|p| part.name_of(p)).collect();
        let sub = |i: usize| match part.table.get(PARTS[i]) {
            Some(entry) => Part { table: entry.node.table().unwrap_or(&empty), at: entry.key_at, path: &names[i] },
            None => Part { table: &empty, at: part.at, path: &names[i] },
        };
        let mut parts = Vec::new();
        macro_rules! read {
            ($i:expr, $room:expr, $any:path) => {
                $room.kind(sub($i), &mut self.problems).and_then(|kind| {
                    sub($i).refuse_unknown(kind.fields, &["kind"], &mut self.problems);
                    let params = <$any>::read(kind.name, &mut self.reader(sub($i), kind.fields))?;
                    parts.push(shown(PARTS[$i], kind, params.show(), Vec::new()));
                    Some(params)
                })
            };
        }
        let transport = if part.table.get("transport").is_some() {
            read!(0, TRANSPORT, proto::transport::AnyParams)
        } else {
            let hint = format!("add `transport = \"...\"`: one of {}", listed(TRANSPORT.entries.iter().map(|e| e.name)));
            self.problems.push(Item::new(part.at, "this system has no `transport`", "needs a transport", hint).absent());
            None
        };
        let qdisc = read!(1, QDISC, fabric::qdisc::AnyParams);
        let router = read!(2, ROUTER, fabric::router::AnyParams);
        let agent = match part.table.get("agent") {
            Some(_) => Some(read!(3, AGENT, fabric::agent::AnyParams)?),
            None => None,
        };
        let nic = self.nic(part, sub(1), head, &mut parts);
        let (nic, transport, qdisc, router) = (nic?, transport?, qdisc?, router?);
        Some((System { label: label.to_owned(), transport, qdisc, nic, router, agent }, parts))
    }

    /// The host ports. Their discipline is the switches' own unless another kind is named; their limit is none unless given.
    fn nic(&mut self, system: Part<'_>, switch: Part<'_>, head: &Head, parts: &mut Vec<PartShown>) -> Option<Nic> {
        let empty = Table::default();
        let path = system.name_of("nic");
        let entry = system.table.get("nic");
        let table = entry.and_then(|e| e.node.table()).unwrap_or(&empty);
        let part = Part { table, at: entry.map_or(system.at, |e| e.key_at), path: &path };
        part.refuse_unknown(NicParams::FIELDS, &["qdisc"], &mut self.problems);
        let params = NicParams::read(&mut self.reader(part, NicParams::FIELDS));
        let mtu = head.mtu.0;
        let low_water_bytes = match params.low_water {
            Auto::Auto => Some(2 * mtu),
            Auto::Set(Limit::Bytes(n)) => Some(n),
            Auto::Set(Limit::Packets(n)) => Some(u64::from(n) * mtu),
            Auto::Set(Limit::Unlimited) => None,
        };
        parts.push(PartShown::bare("nic", NicParams::FIELDS, params.show()));

        // The switches' keys without their limit, and over them what the NIC says, unless it names a kind of its own.
        let own = table.get("qdisc").and_then(|e| Some((e.key_at, e.node.table()?)));
        let mut merged = match own {
            Some((_, own)) if own.get("kind").is_some() => Table::default(),
            _ => switch.table.clone(),
        };
        merged.remove("limit");
        for entry in own.iter().flat_map(|(_, own)| &own.entries) {
            merged.put(&entry.key, entry.key_at, entry.node.clone());
        }
        let path = part.name_of("qdisc");
        let at = own.map_or(system.at, |(at, _)| at);
        let qdisc = Part { table: &merged, at, path: &path };
        // Problems of the switches' own keys were reported with the switches.
        let mut silent = Vec::new();
        let problems = if own.is_some() { &mut self.problems } else { &mut silent };
        let kind = QDISC.kind(qdisc, problems)?;
        qdisc.refuse_unknown(kind.fields, &["kind"], problems);
        let instead = Some(("limit", Raw::Str("unlimited".into())));
        let mut reader = PartReader { part: qdisc, fields: kind.fields, problems, instead };
        let qdisc = fabric::qdisc::AnyParams::read(kind.name, &mut reader)?;
        parts.push(shown("nic.qdisc", kind, qdisc.show(), Vec::new()));
        Some(Nic { qdisc, low_water_bytes })
    }
}

impl SampleParams {
    /// As the run wants it on a network.
    pub fn sample(&self, net: &Net) -> Sample {
        let port = self.port.as_ref().and_then(|name| net.link_named(name));
        Sample { interval: self.interval, ports: self.ports, port, flows: self.flows, packets: self.packets }
    }
}

/// Whether a text can be the name of a folder everywhere.
pub(crate) fn is_plain_name(text: &str) -> bool {
    let ends = |c: char| c == '.' || c == ' ';
    !text.is_empty() && text.len() <= 100 && !text.starts_with(ends) && !text.ends_with(ends)
}

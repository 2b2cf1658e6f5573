//! Reading the top-level keys of a scenario, `[engine]`, `[measure]` and `[sample]`.

use super::section::Reading;
use crate::plan::draft::{SampleSection, Section, Variant};
use crate::plan::keys::{Head, SampleParams, is_plain_name};
use crate::plan::measure::{Measure, Moment};
use crate::plan::render::part_of_engine;
use crate::plan::seeds::{AUTO, AutoSeeds, Seeds};
use crate::system::engine::Engine;
use crate::system::ideal::IdealName;
use crate::text::diag::Item;
use crate::text::part::Part;
use crate::text::tree::{Table, Value};
use base::Time;
use base::params::{Param, Params as _};
use std::cmp::Ordering;

impl Reading<'_> {
    /// Reads the keys with a plain value. Returns `None` if the header does not fit into a packet.
    pub fn head(&mut self, whole: Part<'_>) -> Option<Head> {
        let keys = [
            "name", "seed", "ideal", "engine", "topology", "workload", "system", "measure", "sample", "event", "failure",
            "profile", "seek",
        ];
        let keys: Vec<&str> = keys.into_iter().chain(AutoSeeds::FIELDS.iter().map(|field| field.name)).collect();
        whole.refuse_unknown(Head::FIELDS, &keys, &mut self.problems);
        let head = Head::read(&mut self.reader(whole, Head::FIELDS));
        // With a larger header, most bytes on the wire would be headers.
        if 2 * head.header.0 > head.mtu.0 {
            let message = format!("`{}` is more than half of a packet of {} bytes", head.header, head.mtu.0);
            let hint = "write a larger `mtu` or a smaller `header`";
            self.problems.push(whole.problem("header", message, "at most half of `mtu`", hint));
            return None;
        }
        Some(head)
    }

    /// Reads the engine in all variants. The default is the packet engine.
    pub fn engine(&mut self, whole: Part<'_>) -> Section<Engine> {
        const NAME: &str = "engine";
        let default = |at| {
            let variant = Variant { table: Table::default(), value: Engine::defaults(), swept: Vec::new() };
            Section { name: NAME.to_owned(), at, table: Table::default(), variants: vec![variant] }
        };
        let Some(entry) = whole.table.get(NAME) else { return default(whole.at) };
        let Some(part) = self.table_of(entry.key_at, &entry.node, NAME, "kind = \"flow\"") else { return default(entry.key_at) };
        part.refuse_unknown(Engine::FIELDS, &[], &mut self.problems);
        self.section(part, NAME, NAME, |this, part| {
            let engine = Engine::read(&mut this.reader(part, Engine::FIELDS));
            let shown = part_of_engine(&engine);
            Some((engine, vec![shown]))
        })
    }

    /// Reads the measurement window. Returns the default window if none is given or if the given
    /// window is empty.
    pub fn measure(&mut self, whole: Part<'_>, latest_end: Option<Time>) -> Measure {
        let Some(entry) = whole.table.get("measure") else { return Measure::defaults() };
        let Some(part) = self.table_of(entry.key_at, &entry.node, "measure", "from = \"10%\"") else { return Measure::defaults() };
        part.refuse_unknown(Measure::FIELDS, &[], &mut self.problems);
        let measure = Measure::read(&mut self.reader(part, Measure::FIELDS));
        let Measure { from, until, .. } = measure;
        let mut refuse = |key: &str, message: String, hint: &str| {
            self.problems.push(part.problem(key, message, "the window is empty", hint));
            Measure::defaults()
        };
        match from {
            Moment::End => {
                return refuse("from", "a window from `end` has no length".to_owned(), "write a time, or a share like `10%`");
            }
            Moment::At(time) if latest_end.is_some_and(|end| time.0 >= end.0) => {
                return refuse("from", format!("`{}` is not before the `end` of the run", from.show()), "write an earlier time");
            }
            _ => {}
        }
        if until.partial_cmp(&from).is_some_and(|order| order != Ordering::Greater) && until != Moment::Auto {
            let message = format!("`{}` is not after `from`, which is `{}`", until.show(), from.show());
            return refuse("until", message, "write a later time or share, or remove `until`");
        }
        measure
    }

    /// Reads which time series are recorded.
    pub fn sample(&mut self, whole: Part<'_>) -> Option<SampleSection> {
        let entry = whole.table.get("sample")?;
        let part = self.table_of(entry.key_at, &entry.node, "sample", "interval = \"10us\"")?;
        part.refuse_unknown(SampleParams::FIELDS, &[], &mut self.problems);
        let params = SampleParams::read(&mut self.reader(part, SampleParams::FIELDS));
        Some(SampleSection { params, at: part.at, table: part.table.clone() })
    }

    pub fn name(&mut self, whole: Part<'_>) -> Option<String> {
        let entry = whole.table.get("name")?;
        match entry.node.text() {
            Some(text) if is_plain_name(text) => Some(text.to_owned()),
            _ => {
                let hint = "results go to a folder of this name: use letters, digits, `-`, `_`, inner dots and spaces, at most 100 characters";
                let message = format!("{} cannot be the name of a folder", entry.node.named());
                self.problems.push(whole.problem("name", message, "must be the name of a folder", hint));
                None
            }
        }
    }

    /// Returns the seeds of the command line, or else those of the file: at least one.
    pub fn seeds(&mut self, whole: Part<'_>) -> Seeds {
        if let Some(list) = self.seeds.clone() {
            return Seeds { list, auto: None, unused: None };
        }
        if whole.table.get("seed").is_some_and(|entry| entry.node.text() == Some(AUTO)) {
            let auto = AutoSeeds::read(&mut self.reader(whole, AutoSeeds::FIELDS));
            let list = (1..=u64::from(auto.max_seeds)).collect();
            return Seeds { list, auto: Some((auto, whole.at_of("metric"))), unused: None };
        }
        let unused = AutoSeeds::FIELDS.iter().find_map(|field| Some((field.name, whole.table.get(field.name)?.key_at)));
        Seeds { list: self.listed_seeds(whole), auto: None, unused }
    }

    fn listed_seeds(&mut self, whole: Part<'_>) -> Vec<u64> {
        const HINT: &str = "write `seed = 1`, a list of different numbers, `seed = [1, 2, 3]`, or `seed = \"auto\"`";
        let seeds = self.one_or_more(whole, "seed", "must be a whole number", HINT);
        if seeds.as_ref().is_some_and(|(given, _)| *given == 0) {
            self.problems.push(whole.problem("seed", "no seeds", "an empty list", HINT));
        }
        seeds.map(|(_, seeds)| seeds).filter(|seeds| !seeds.is_empty()).unwrap_or(vec![1])
    }

    /// Reads the ideal references.
    pub fn ideals(&mut self, whole: Part<'_>) -> Vec<IdealName> {
        const HINT: &str = "write `ideal = \"srpt\"`, or a list: `ideal = [\"srpt\", \"ps\"]`";
        self.one_or_more(whole, "ideal", "not an ideal reference", HINT).map_or(Vec::new(), |(_, ideals)| ideals)
    }

    /// Reads a value or a list of different values. Returns how many are given, and those that
    /// could be read.
    fn one_or_more<T: Param + PartialEq>(
        &mut self,
        whole: Part<'_>,
        key: &str,
        label: &str,
        hint: &str,
    ) -> Option<(usize, Vec<T>)> {
        let entry = whole.table.get(key)?;
        let nodes = match &entry.node.value {
            Value::List(nodes) => nodes.as_slice(),
            _ => std::slice::from_ref(&entry.node),
        };
        let mut found = Vec::new();
        for node in nodes {
            let (message, label) = match T::parse(&node.raw()) {
                Ok(value) if found.contains(&value) => (format!("{} is given twice", node.named()), "given before"),
                Ok(value) => {
                    found.push(value);
                    continue;
                }
                Err(why) => (format!("{} {why}", node.named()), label),
            };
            self.problems.push(Item::new(node.at, format!("`{key}`: {message}"), label, hint));
        }
        Some((nodes.len(), found))
    }
}

//! Reading `[workload.NAME]` with its deadlines.

use super::section::Reading;
use crate::deadline;
use crate::plan::draft::Section;
use crate::plan::render::parts_of_workload;
use crate::plan::spec::Demand;
use crate::read::short_forms::expand_deadline;
use crate::text::diag::Item;
use crate::text::part::{Part, kind_of};
use crate::text::tree::Value;
use crate::workload;
use base::units::parse_dur;

impl Reading<'_> {
    /// Reads all workloads in all variants.
    pub fn workloads(&mut self, whole: Part<'_>) -> Vec<Section<Demand>> {
        const EXAMPLE: &str = "add a table like [workload.web] with `kind = \"poisson\"`";
        let entry = whole.table.get("workload");
        let table = match entry.map(|e| (&e.node.value, e)) {
            Some((Value::Table(table), _)) if !table.entries.is_empty() => table,
            Some((Value::Table(_), entry)) => {
                self.problems.push(Item::new(entry.key_at, "the scenario has no workload", "this table is empty", EXAMPLE));
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
                // The keys of a workload are directly in [workload].
                let hint = "every workload needs a name: write [workload.web] instead of [workload]";
                self.problems.push(Item::new(entry.key_at, format!("`{path}` is not a table"), "must be a table", hint));
                return Vec::new();
            }
            let Some(part) = self.table_of(entry.key_at, &entry.node, &path, "kind = \"poisson\"") else { continue };
            let Some(kind) = kind_of(&workload::ROOM, None, part, &mut self.problems) else { continue };
            part.refuse_unknown(kind.fields, &["kind", "deadline"], &mut self.problems);
            // An incast lasts until a time or until the end of another workload.
            let until = part.table.get("until").and_then(|until| until.node.text());
            if let Some(name) = until.filter(|name| table.get(name).is_some() && (*name == "none" || parse_dur(name).is_ok())) {
                let message = format!("`{name}` is a time or a word, and the name of a workload");
                self.problems.push(part.problem("until", message, "ambiguous", "give the workload another name"));
            }
            let mut table = part.table.clone();
            if let Some(deadline) = table.get_mut("deadline") {
                expand_deadline(&mut deadline.node);
            }
            found.push(self.section(Part { table: &table, ..part }, &path, &path, |this, part| {
                let workload = workload::AnyParams::read(kind.name, &mut this.reader(part, kind.fields))?;
                let traffic = Demand { workload, deadline: this.deadline(part) };
                let parts = parts_of_workload(&traffic);
                Some((traffic, parts))
            }));
        }
        found
    }

    /// Reads the law of a workload's deadlines, if it has deadlines.
    fn deadline(&mut self, workload: Part<'_>) -> Option<deadline::AnyParams> {
        let entry = workload.table.get("deadline")?;
        let path = workload.name_of("deadline");
        let part = self.table_of(entry.key_at, &entry.node, &path, "kind = \"exponential\"")?;
        let kind = kind_of(&deadline::ROOM, None, part, &mut self.problems)?;
        part.refuse_unknown(kind.fields, &["kind"], &mut self.problems);
        let law = deadline::AnyParams::read(kind.name, &mut self.reader(part, kind.fields))?;
        self.problems.extend(part.problems(law.check(&())));
        Some(law)
    }
}

//! Reading `[[event]]` and `[failure]`.

use super::section::Reading;
use crate::event::params::{Event, EventParams, FailureParams, RandomParams, WhenUnreachable};
use crate::plan::draft::Section;
use crate::plan::render::{RenderedPart, parts_of_event};
use crate::text::diag::Item;
use crate::text::part::Part;
use crate::text::tree::Table;
use base::Time;
use base::params::Params as _;

impl Reading<'_> {
    /// Reads all events in all variants.
    pub fn events(&mut self, whole: Part<'_>, end: Option<Time>) -> Vec<Section<Event>> {
        let Some(entry) = whole.table.get("event") else { return Vec::new() };
        const EXAMPLE: &str = "write `[[event]]`, with two brackets, before each event: `at = \"10ms\"`, `link = [\"a\", \"b\"]`";
        let tables = entry.node.table().filter(|t| t.entries.iter().all(|e| e.node.table().is_some()));
        let Some(tables) = tables else {
            self.problems.push(Item::new(entry.key_at, "`event` is not a list of tables", "must be [[event]]", EXAMPLE));
            return Vec::new();
        };
        let mut found = Vec::new();
        for entry in &tables.entries {
            let path = format!("event.{}", entry.key);
            let part = Part { table: entry.node.table().expect("checked above"), at: entry.key_at, path: &path };
            part.refuse_unknown(EventParams::FIELDS, &["random"], &mut self.problems);
            if let Some(random) = part.table.get("random")
                && random.node.table().is_none()
            {
                let hint = "write `random = { count = 2, tier = \"fabric\" }`";
                let message = format!("`{}` is not a table", part.name_of("random"));
                self.problems.push(Item::new(random.node.at, message, "must be a table", hint));
                continue;
            }
            if let Some(random) = random_part(part.table, &format!("{path}.random")) {
                random.refuse_unknown(RandomParams::FIELDS, &[], &mut self.problems);
            }
            found.push(self.section(part, &path, &path, |this, part| {
                let before = this.problems.len();
                let params = EventParams::read(&mut this.reader(part, EventParams::FIELDS));
                let random = random_part(part.table, &format!("{}.random", part.path))
                    .map(|part| RandomParams::read(&mut this.reader(part, RandomParams::FIELDS)));
                let event = Event { name: entry.key.clone(), params, random };
                let fine = this.problems.len() == before;
                if fine {
                    this.problems.extend(part.problems(event.problems(end)));
                }
                // If the event could not be read, it is not known which of its keys have no effect.
                let parts = if fine { parts_of_event(&event) } else { Vec::new() };
                Some((event, parts))
            }));
        }
        found
    }

    /// Reads the table `[failure]` in all variants.
    pub fn failure(&mut self, whole: Part<'_>, events: bool, end: Option<Time>) -> Option<Section<FailureParams>> {
        let empty = Table::default();
        let part = match whole.table.get("failure") {
            Some(entry) if !events => {
                let hint = "[failure] says what follows an [[event]]: add an [[event]], or remove [failure]";
                self.problems.push(Item::new(entry.key_at, "`failure` has no effect without events", "ignored", hint));
                return None;
            }
            Some(entry) => self.table_of(entry.key_at, &entry.node, "failure", "converge = \"1ms\"")?,
            None if !events => return None,
            None => Part { table: &empty, ..whole },
        };
        part.refuse_unknown(FailureParams::FIELDS, &[], &mut self.problems);
        Some(self.section(part, "failure", "failure", |this, part| {
            let params = FailureParams::read(&mut this.reader(part, FailureParams::FIELDS));
            if params.unreachable == WhenUnreachable::Run && end.is_none() {
                let hint =
                    "a flow that is cut off never ends, and neither would the run: write `end = \"1s\"` at the top of the file";
                this.problems.push(part.problem("unreachable", "`run` needs an `end`", "the scenario has no `end`", hint));
            }
            let shown = RenderedPart::bare("", FailureParams::FIELDS, params.show());
            Some((params, vec![shown]))
        }))
    }
}

fn random_part<'a>(event: &'a Table, path: &'a str) -> Option<Part<'a>> {
    event.get("random").and_then(|e| Some(Part { table: e.node.table()?, at: e.key_at, path }))
}

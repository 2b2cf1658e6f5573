//! Reading a section in every variant that its sweeps produce.

use crate::files::Files;
use crate::memory::Memory;
use crate::plan::draft::{Section, Variant};
use crate::plan::keys::MAX_POINTS;
use crate::plan::render::RenderedPart;
use crate::text::diag::{Item, Place};
use crate::text::part::{Part, PartReader};
use crate::text::sweep::{Axis, axes, count, variants};
use crate::text::tree::Node;
use base::params::Field;
use std::sync::Arc;

/// The state that the readers of all sections share.
pub(crate) struct Reading<'a> {
    pub files: &'a Arc<Files>,
    pub problems: Vec<Item>,
    /// Seeds of the command line.
    pub seeds: Option<Vec<u64>>,
    pub memory: Memory,
}

impl Reading<'_> {
    pub(crate) fn reader<'b>(&'b mut self, part: Part<'b>, fields: &'b [Field]) -> PartReader<'b> {
        PartReader { part, fields, problems: &mut self.problems, instead: None, plugin: None }
    }

    /// Returns a node as a table, or reports a problem if it is not a table.
    pub(crate) fn table_of<'b>(&mut self, key_at: Place, node: &'b Node, path: &'b str, example: &str) -> Option<Part<'b>> {
        match node.table() {
            Some(table) => Some(Part { table, at: key_at, path }),
            None => {
                let hint = format!("write a table: [{path}] with `{example}`");
                self.problems.push(Item::new(node.at, format!("`{path}` is not a table"), "must be a table", hint));
                None
            }
        }
    }

    /// Reads a section in every variant. `read` returns the value of one variant, and the parts
    /// that represent it in the plan.
    pub(crate) fn section<T>(
        &mut self,
        part: Part<'_>,
        name: &str,
        prefix: &str,
        mut read: impl FnMut(&mut Self, Part<'_>) -> Option<(T, Vec<RenderedPart>)>,
    ) -> Section<T> {
        let axes = axes(part, &mut self.problems);
        let mut found = Vec::new();
        let mut ignored: Option<Vec<String>> = None;
        let n = count(&axes);
        let before = self.problems.len();
        if n > MAX_POINTS {
            let message = format!("`{}` sweeps {n} combinations, at most {MAX_POINTS} are allowed", part.path);
            self.problems.push(Item::new(part.at, message, "too many", "shorten the lists, or split the scenario"));
            return Section { name: name.to_owned(), at: part.at, table: part.table.clone(), variants: found };
        }
        for table in variants(part.table, &axes) {
            let Some((value, parts)) = read(self, Part { table: &table, ..part }) else { continue };
            let of = |path: &str| {
                let value = parts.iter().find_map(|p| p.value_at(path));
                value.unwrap_or_default()
            };
            let swept = axes.iter().map(|a| (format!("{prefix}.{}", a.path.join(".")), of(&a.path.join(".")))).collect();
            let here: Vec<String> = parts.iter().flat_map(RenderedPart::ignored_paths).collect();
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

    /// Reports equal values in one list: they would give equal points.
    fn refuse_repeated<T>(&mut self, axes: &[Axis], found: &[Variant<T>], prefix: &str) {
        if count(axes) != found.len() as u64 {
            return;
        }
        // The distance, in variants, between two neighbouring values of an axis.
        let mut stride = found.len();
        for (i, axis) in axes.iter().enumerate() {
            stride /= axis.nodes.len();
            // An unknown key has no value here; it is reported separately.
            let values: Vec<&str> = (0..axis.nodes.len()).map(|k| found[k * stride].swept[i].1.as_str()).collect();
            for (k, node) in axis.nodes.iter().enumerate() {
                if !values[k].is_empty() && values[..k].contains(&values[k]) {
                    let message = format!("`{prefix}.{}`: {} is given twice", axis.path.join("."), values[k]);
                    self.problems.push(Item::new(node.at, message, "given before", "the values of a sweep must differ"));
                }
            }
        }
    }

    /// Reports a key that is given and has no effect.
    fn refuse_ignored(&mut self, part: Part<'_>, key: &str) {
        let Some(entry) = part.table.get(key) else { return };
        let message = format!("`{}.{key}` has no effect with the values of the other keys", part.path);
        let hint = match part.table.get("size").and_then(|e| e.node.text()) {
            Some(size) if key == "cdf" => format!("`cdf` needs `size = \"cdf\"`, but the scenario has `size = \"{size}\"`"),
            None if key == "cdf" => "write `size = \"cdf\"` to use `cdf`".to_owned(),
            _ => format!("remove `{key}`, or change the key that disables it"),
        };
        self.problems.push(Item::new(entry.key_at, message, "ignored", hint));
    }
}

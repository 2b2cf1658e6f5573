//! Sweeps: a list in the place of a single value.

use crate::text::diag::Item;
use crate::text::part::Part;
use crate::text::tree::{Node, Table, Value};

/// A list in a section: the dotted path to it, and its values.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    pub path: Vec<String>,
    pub nodes: Vec<Node>,
}

/// Returns all lists of a section, sorted by path, so that the order of lines does not affect the
/// points. Lists that cannot be swept are reported and left out.
pub(crate) fn axes(part: Part<'_>, problems: &mut Vec<Item>) -> Vec<Axis> {
    let mut found = Vec::new();
    collect(part.table, &mut Vec::new(), part.path, &mut found, problems);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn collect(table: &Table, path: &mut Vec<String>, name: &str, found: &mut Vec<Axis>, problems: &mut Vec<Item>) {
    for entry in &table.entries {
        path.push(entry.key.clone());
        match &entry.node.value {
            Value::Table(inner) => collect(inner, path, name, found, problems),
            // Lists of kinds and labels are refused when they are read. The engine's kind can be
            // swept: all engines have the same keys.
            Value::List(nodes) if name == "engine" || !matches!(entry.key.as_str(), "kind" | "label") => {
                let key = format!("{name}.{}", path.join("."));
                let hint = "a list is a sweep: one value per run, like `load = [0.2, 0.5]`";
                if nodes.is_empty() {
                    let message = format!("`{key}`: nothing to sweep");
                    problems.push(Item::new(entry.node.at, message, "an empty list", hint).about(key));
                } else if let Some(bad) = nodes.iter().find(|n| !matches!(n.value, Value::Scalar(_))) {
                    let message = format!("`{key}`: only plain values can be swept");
                    problems.push(Item::new(bad.at, message, "not a plain value", hint).about(key));
                } else {
                    found.push(Axis { path: path.clone(), nodes: nodes.clone() });
                }
            }
            _ => {}
        }
        path.pop();
    }
}

/// Returns the number of tables that the axes produce.
pub(crate) fn count(axes: &[Axis]) -> u64 {
    axes.iter().fold(1u64, |n, a| n.saturating_mul(a.nodes.len() as u64))
}

/// Returns the table with each combination of the axes' values; the first axis changes slowest.
pub(crate) fn variants<'a>(table: &'a Table, axes: &'a [Axis]) -> impl Iterator<Item = Table> + 'a {
    (0..count(axes)).map(move |mut index| {
        let mut table = table.clone();
        for axis in axes.iter().rev() {
            let n = axis.nodes.len() as u64;
            if let Some(node) = table.at_path(&axis.path) {
                *node = axis.nodes[(index % n) as usize].clone();
            }
            index /= n;
        }
        table
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::diag::Place;
    use crate::text::tree::parse_file;

    #[test]
    fn the_first_axis_is_slowest() {
        let table = parse_file("b.c = [\"x\", \"y\"]\nb.d = 5\na = [1, 2]\n", &mut Vec::new());
        let part = Part { table: &table, at: Place::new(0, 0..0), path: "workload.web" };
        let mut problems = Vec::new();
        let axes = axes(part, &mut problems);
        assert!(problems.is_empty());
        assert_eq!(axes.iter().map(|a| a.path.join(".")).collect::<Vec<_>>(), ["a", "b.c"]);
        let all: Vec<String> = variants(&table, &axes)
            .map(|t| {
                format!(
                    "{:?} {:?}",
                    t.get("a").unwrap().node.raw(),
                    t.get("b").unwrap().node.table().unwrap().get("c").unwrap().node.raw()
                )
            })
            .collect();
        assert_eq!(all, ["Int(1) Str(\"x\")", "Int(1) Str(\"y\")", "Int(2) Str(\"x\")", "Int(2) Str(\"y\")"]);
    }

    #[test]
    fn lists_that_are_no_sweep_are_refused() {
        let table = parse_file("a = []\nb = [1, [2]]\nc = [{x = 1}]\n", &mut Vec::new());
        let mut problems = Vec::new();
        assert!(axes(Part { table: &table, at: Place::new(0, 0..0), path: "topology" }, &mut problems).is_empty());
        assert_eq!(problems.len(), 3, "{problems:?}");
    }
}

//! Problems that Python finds in a TOML file, with the places of their keys.

use super::diag::{Diagnostics, Item, Place, Sources};
use super::tree::{Node, Table, Value, parse_file};

/// A problem with the value of a key.
#[derive(Clone, Debug)]
pub struct Located {
    /// The dotted key; tables of a list have numbers: `seek.claim.0.metric`.
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// The text at the caret.
    pub label: String,
    /// What to do.
    pub hint: String,
}

/// Returns problems of a file as diagnostics. The place of a key that is not in the file is that of
/// its table.
pub fn located(text: &str, file: &str, problems: Vec<Located>) -> Diagnostics {
    let mut sources = Sources::default();
    sources.add(file, text);
    let root = parse_file(text, &mut Vec::new());
    let item = |Located { key, message, label, hint }| Item::new(place(&root, &key), format!("`{key}`: {message}"), label, hint);
    Diagnostics::new(sources, Vec::new(), problems.into_iter().map(item).collect())
}

fn place(root: &Table, key: &str) -> Place {
    let mut found = Place::new(0, 0..0);
    let mut node: Option<&Node> = None;
    for name in key.split('.') {
        let (at, next) = match node.map(|node| &node.value) {
            None => match root.get(name) {
                Some(entry) => (entry.key_at, &entry.node),
                None => return found,
            },
            Some(Value::Table(table)) => match table.get(name) {
                Some(entry) => (entry.node.at, &entry.node),
                None => return found,
            },
            Some(Value::List(nodes)) => match name.parse::<usize>().ok().and_then(|i| nodes.get(i)) {
                Some(node) => (node.at, node),
                None => return found,
            },
            Some(Value::Scalar(_)) => return found,
        };
        (found, node) = (at, Some(next));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_its_place_or_that_of_its_table() {
        let text = "a = 1\n[seek]\npoints = 4\n[[seek.claim]]\nid = \"x\"\n[[seek.claim]]\nid = \"y\"\n";
        let line = |key: &str| {
            let problem = Located { key: key.to_owned(), message: "wrong".into(), label: "here".into(), hint: "mend it".into() };
            let found = located(text, "f.toml", vec![problem]);
            (found.items()[0].line, found.items()[0].message.clone())
        };
        for (key, at) in [("a", 1), ("seek", 2), ("seek.points", 3), ("seek.metric", 2), ("seek.claim.1.id", 7), ("b.c", 1)] {
            assert_eq!(line(key), (at, format!("`{key}`: wrong")));
        }
        assert_eq!(line("seek.claim.1.kind").0, 6);
    }
}

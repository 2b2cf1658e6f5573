//! What the readers of `[seek]`, its settings and its claims share.

use super::params::Literal;
use super::range::Range;
use crate::text::diag::{Item, Place};
use crate::text::part::{Part, PartReader, listed};
use crate::text::tree::{Node, Table, Value};
use base::params::{Field, Param as _, nearest};

/// Returns a reader of a part's parameters.
pub(super) fn reader<'a>(part: Part<'a>, fields: &'a [Field], problems: &'a mut Vec<Item>) -> PartReader<'a> {
    PartReader { part, fields, problems, instead: None, plugin: None }
}

/// Returns the tables of a list like `[[seek.setting]]`, with their names in messages and their
/// places.
pub(super) fn listed_tables<'a>(table: &'a Table, key: &str, problems: &mut Vec<Item>) -> Vec<(String, &'a Table, Place)> {
    let Some(entry) = table.get(key) else { return Vec::new() };
    let nodes = match &entry.node.value {
        Value::List(nodes) if nodes.iter().all(|node| node.table().is_some()) => nodes,
        _ => {
            let hint = format!("write `[[seek.{key}]]`, with two brackets, before each {key}");
            problems.push(Item::new(
                entry.key_at,
                format!("`seek.{key}` is not a list of tables"),
                format!("must be [[seek.{key}]]"),
                hint,
            ));
            return Vec::new();
        }
    };
    let one = |(i, node): (usize, &'a Node)| Some((format!("seek.{key}.{i}"), node.table()?, node.at));
    nodes.iter().enumerate().filter_map(one).collect()
}

/// Reads a list of texts, or a single text, with their places.
pub(super) fn texts(part: Part<'_>, key: &str, expects: &str, problems: &mut Vec<Item>) -> Vec<(String, Place)> {
    let Some(entry) = part.table.get(key) else { return Vec::new() };
    let nodes = match &entry.node.value {
        Value::List(nodes) => nodes.as_slice(),
        _ => std::slice::from_ref(&entry.node),
    };
    let hint = || format!("`{key}` lists {expects}");
    if nodes.is_empty() {
        problems.push(part.problem(key, "is empty", "nothing is listed", hint()));
    }
    let mut found: Vec<(String, Place)> = Vec::new();
    for node in nodes {
        let mut refuse = |message: String, label: &str| {
            problems.push(Item::new(node.at, format!("`{}`: {} {message}", part.name_of(key), node.named()), label, hint()));
        };
        match Literal::parse(&node.raw()) {
            Ok(Literal(text)) if text.is_empty() => refuse("is empty".to_owned(), "no text"),
            Ok(text) if found.iter().any(|(first, _)| is_same(first, &text.0)) => {
                refuse("is given twice".to_owned(), "given before")
            }
            Ok(Literal(text)) => found.push((text, node.at)),
            Err(why) => refuse(why, "here"),
        }
    }
    found
}

/// Returns whether two texts are the same value: `1KB` and `1000B` are.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    one == other || Range::between(one, other).is_some_and(|range| range.low == range.high)
}

/// Returns the label of a problem with an unknown name.
pub(super) fn did_you_mean(name: &str, names: &[String]) -> String {
    nearest(name, names.iter().map(String::as_str)).map_or("unknown".to_owned(), |near| format!("did you mean `{near}`?"))
}

/// Returns the names in backticks.
pub(super) fn quoted(names: &[String]) -> String {
    listed(names.iter().map(String::as_str))
}

//! A scenario file as a tree: every key and value with its place and its origin.
//!
//! Values keep only the types that [`Raw`] has; the parameters that read a value say what it must be.

use crate::text::diag::{Item, LISTED, Place};
use base::params::Raw;
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The file.
    File,
    /// A chosen profile of the file, by its index among the chosen profiles.
    Profile(usize),
    /// The command line.
    Set,
}

/// A value with its place and its origin.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub value: Value,
    pub at: Place,
    pub origin: Origin,
}

/// A value of the tree.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Scalar(Raw),
    List(Vec<Node>),
    Table(Table),
}

/// A table; entries in the order of the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub entries: Vec<Entry>,
}

/// A key with its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub key: String,
    pub key_at: Place,
    pub node: Node,
}

impl Table {
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|e| e.key == key)
    }
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|e| e.key == key)
    }
    pub fn remove(&mut self, key: &str) -> Option<Entry> {
        let i = self.entries.iter().position(|e| e.key == key)?;
        Some(self.entries.remove(i))
    }
    /// Sets `key` to `node`, replacing any earlier value.
    pub fn put(&mut self, key: &str, key_at: Place, node: Node) {
        match self.get_mut(key) {
            Some(entry) => entry.node = node,
            None => self.entries.push(Entry { key: key.to_owned(), key_at, node }),
        }
    }
    /// Returns the node at a dotted path.
    pub fn at_path(&mut self, path: &[String]) -> Option<&mut Node> {
        let (first, rest) = path.split_first()?;
        let node = &mut self.get_mut(first)?.node;
        if rest.is_empty() {
            return Some(node);
        }
        node.table_mut()?.at_path(rest)
    }
}

impl Node {
    pub fn table(&self) -> Option<&Table> {
        match &self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }
    pub fn table_mut(&mut self) -> Option<&mut Table> {
        match &mut self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar(Raw::Str(text)) => Some(text),
            _ => None,
        }
    }
    /// Returns the value as messages name it.
    pub fn named(&self) -> String {
        match self.raw() {
            Raw::Int(n) => format!("`{n}`"),
            Raw::Float(text) | Raw::Str(text) => format!("`{text}`"),
            Raw::Bool(b) => format!("`{b}`"),
            Raw::Table(_) => "a table".to_owned(),
            Raw::Other(what) => what.to_owned(),
        }
    }
    /// Returns the value as a parameter sees it.
    pub fn raw(&self) -> Raw {
        match &self.value {
            Value::Scalar(raw) => raw.clone(),
            Value::List(_) => Raw::Other("a list"),
            Value::Table(table) => Raw::Table(table.entries.iter().map(|e| (e.key.clone(), e.node.raw())).collect()),
        }
    }
    /// Marks the whole subtree as written by `origin`.
    pub fn set_origin(&mut self, origin: Origin) {
        self.origin = origin;
        match &mut self.value {
            Value::Scalar(_) => {}
            Value::List(nodes) => nodes.iter_mut().for_each(|n| n.set_origin(origin)),
            Value::Table(table) => table.entries.iter_mut().for_each(|e| e.node.set_origin(origin)),
        }
    }
}

/// Parses the text of a file. The tree holds everything that could be parsed; every syntax error is
/// added to `problems`.
pub(crate) fn parse_file(text: &str, problems: &mut Vec<Item>) -> Table {
    let (document, errors) = DeTable::parse_recoverable(text);
    let more = errors.len().saturating_sub(LISTED);
    for error in errors.iter().take(LISTED) {
        let at = Place::new(0, error.span().unwrap_or(0..0));
        problems.push(syntax_error(text, at, error.message()));
    }
    if let Some(last) = problems.last_mut() {
        last.more = more;
    }
    table(document.get_ref(), 0, Origin::File)
}

/// Rewords an error of the TOML parser.
fn syntax_error(text: &str, at: Place, message: &str) -> Item {
    let piece = text.get(at.range()).unwrap_or("");
    if message.starts_with("duplicate key") {
        let hint = "write each key once in its table, and each table once in the file";
        return Item::new(at, format!("duplicate key `{piece}`"), "given before", hint);
    }
    if message.starts_with("string values must be quoted") && piece.is_empty() {
        return Item::new(at, "a value is missing", "nothing here", "write `key = value`");
    }
    if message.starts_with("invalid mantissa") || message.starts_with("invalid fraction") {
        let hint = "write digits on both sides of the decimal point: `0.5`, `5.0`";
        return Item::new(at, "not TOML: a digit is missing", "expected a digit", hint);
    }
    if message.starts_with("string values must be quoted") {
        let hint = format!("write texts and values with units in quotes: \"{piece}\"");
        return Item::new(at, format!("`{piece}` is not TOML: text must be quoted"), "quotes are missing", hint);
    }
    Item::new(
        at,
        format!("not TOML: {message}"),
        "here",
        "a scenario is a TOML file: `key = value`, `[table]`, `[[list of tables]]`",
    )
}

fn table(source: &DeTable<'_>, file: u32, origin: Origin) -> Table {
    let mut entries: Vec<Entry> = source
        .iter()
        .filter(|(key, _)| !key.get_ref().is_empty())
        .map(|(key, value)| Entry {
            key: key.get_ref().to_string(),
            key_at: Place::new(file, key.span()),
            node: node(value.get_ref(), value.span(), file, origin),
        })
        .collect();
    entries.sort_by_key(|e| (e.key_at.start, e.key.clone()));
    Table { entries }
}

fn node(value: &DeValue<'_>, span: Range<usize>, file: u32, origin: Origin) -> Node {
    let scalar = |raw| Value::Scalar(raw);
    let value = match value {
        DeValue::String(text) => scalar(Raw::Str(text.to_string())),
        DeValue::Boolean(b) => scalar(Raw::Bool(*b)),
        DeValue::Integer(n) => scalar(integer(n.as_str(), n.radix())),
        DeValue::Float(x) => scalar(Raw::Float(plain_decimal(x.as_str()))),
        DeValue::Datetime(_) => scalar(Raw::Other("a date")),
        DeValue::Array(items) => Value::List(items.iter().map(|i| node(i.get_ref(), i.span(), file, origin)).collect()),
        DeValue::Table(inner) => Value::Table(table(inner, file, origin)),
    };
    Node { value, at: Place::new(file, span), origin }
}

/// Parses a whole number. Beyond 64 bits the digits are kept, for the parameter to refuse.
fn integer(digits: &str, radix: u32) -> Raw {
    match i64::from_str_radix(digits, radix) {
        Ok(n) => Raw::Int(n),
        Err(_) => match u128::from_str_radix(digits, radix) {
            Ok(n) => Raw::Float(n.to_string()),
            Err(_) => Raw::Float(digits.to_owned()),
        },
    }
}

/// Returns a number without the sign `+` and, if it is short, without exponent, so that exact
/// decimals can be read from it.
fn plain_decimal(text: &str) -> String {
    let text = text.strip_prefix('+').unwrap_or(text);
    let Some((mantissa, exponent)) = text.split_once(['e', 'E']) else { return text.to_owned() };
    let Ok(exponent) = exponent.parse::<i32>() else { return text.to_owned() };
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |m| ("-", m));
    let (whole, decimals) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if exponent.unsigned_abs() > 25 || !whole.bytes().chain(decimals.bytes()).all(|b| b.is_ascii_digit()) {
        return text.to_owned();
    }
    let digits = format!("{whole}{decimals}");
    let point = whole.len() as i32 + exponent;
    let plain = if point <= 0 {
        format!("0.{}{digits}", "0".repeat(point.unsigned_abs() as usize))
    } else if point as usize >= digits.len() {
        format!("{digits}{}", "0".repeat(point as usize - digits.len()))
    } else {
        format!("{}.{}", &digits[..point as usize], &digits[point as usize..])
    };
    format!("{sign}{plain}")
}

/// Reads the value of `--set key=value`: TOML, or text without quotes, or a list of such texts.
pub(crate) fn parse_value(text: &str, file: u32, offset: usize) -> Node {
    let shift = |node: &mut Node| shift(node, offset);
    if let Ok(value) = DeValue::parse(text) {
        let mut node = node(value.get_ref(), value.span(), file, Origin::Set);
        shift(&mut node);
        return node;
    }
    let at = Place::new(file, offset..offset + text.len());
    let bare = |s: &str| Value::Scalar(Raw::Str(s.trim().trim_matches(['"', '\'']).to_owned()));
    let value = match text.trim().strip_prefix('[').and_then(|t| t.strip_suffix(']')) {
        Some(list) => Value::List(list.split(',').map(|item| Node { value: bare(item), at, origin: Origin::Set }).collect()),
        None => bare(text),
    };
    Node { value, at, origin: Origin::Set }
}

fn shift(node: &mut Node, by: usize) {
    node.at.start += by;
    node.at.end += by;
    match &mut node.value {
        Value::Scalar(_) => {}
        Value::List(nodes) => nodes.iter_mut().for_each(|n| shift(n, by)),
        Value::Table(table) => table.entries.iter_mut().for_each(|e| {
            e.key_at.start += by;
            e.key_at.end += by;
            shift(&mut e.node, by);
        }),
    }
}

/// Splits a dotted key. Parts that are not bare words are in quotes: `system."MERP 0.9".agent.alpha`.
pub(crate) fn parse_key(text: &str) -> Option<Vec<String>> {
    let mut path = Vec::new();
    let mut rest = text.trim();
    loop {
        let (part, after) = match rest.chars().next()? {
            quote @ ('"' | '\'') => {
                let (inside, after) = rest[1..].split_once(quote)?;
                (inside.to_owned(), after)
            }
            _ => {
                let end = rest.find('.').unwrap_or(rest.len());
                (rest[..end].trim().to_owned(), &rest[end..])
            }
        };
        if part.is_empty() {
            return None;
        }
        path.push(part);
        let after = after.trim_start();
        if after.is_empty() {
            return Some(path);
        }
        rest = after.strip_prefix('.')?.trim_start();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_keep_the_order_of_the_file() {
        let mut problems = Vec::new();
        let table = parse_file("z = 1\n[workload.b]\nx = 1\n[workload.a]\ny = 2\n[m]\n", &mut problems);
        assert!(problems.is_empty());
        let keys: Vec<&str> = table.entries.iter().map(|e| e.key.as_str()).collect();
        assert_eq!(keys, ["z", "workload", "m"]);
        let inner: Vec<&str> = table.entries[1].node.table().unwrap().entries.iter().map(|e| e.key.as_str()).collect();
        assert_eq!(inner, ["b", "a"]);
    }

    #[test]
    fn numbers_become_plain() {
        for (written, plain) in [
            ("1e-3", "0.001"),
            ("+0.5", "0.5"),
            ("2.5e2", "250"),
            ("-1.25e1", "-12.5"),
            ("1.234E1", "12.34"),
            ("nan", "nan"),
            ("1e99", "1e99"),
        ] {
            assert_eq!(plain_decimal(written), plain);
        }
        assert_eq!(integer("ff", 16), Raw::Int(255));
        assert_eq!(integer("99999999999999999999", 10), Raw::Float("99999999999999999999".into()));
    }

    #[test]
    fn keys_split_at_dots_outside_quotes() {
        assert_eq!(parse_key("system.\"MERP 0.9\".agent").unwrap(), ["system", "MERP 0.9", "agent"]);
        assert_eq!(parse_key("a.b").unwrap(), ["a", "b"]);
        for bad in ["", "a.", ".a", "a..b", "\"a", "\"a\"b"] {
            assert_eq!(parse_key(bad), None, "{bad}");
        }
    }

    #[test]
    fn values_of_the_command_line_need_no_quotes() {
        let scalar = |text: &str| match parse_value(text, 1, 0).value {
            Value::Scalar(raw) => raw,
            other => panic!("{other:?}"),
        };
        assert_eq!(scalar("0.8"), Raw::Float("0.8".into()));
        assert_eq!(scalar("10Gbps"), Raw::Str("10Gbps".into()));
        assert_eq!(scalar("\"10Gbps\""), Raw::Str("10Gbps".into()));
        let Value::List(list) = parse_value("[10Gbps, 40Gbps]", 1, 0).value else { panic!("not a list") };
        assert_eq!(list.iter().map(|n| n.text().unwrap()).collect::<Vec<_>>(), ["10Gbps", "40Gbps"]);
    }
}

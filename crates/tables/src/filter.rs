//! Filters of flows: `workload == "web" and size_bytes <= 100_000`.
//!
//! A filter compares columns of the flows with numbers, words, `true`, `false` or `null`, and joins
//! comparisons by `and`, `or`, `not` and parentheses, as in Python. Sizes and times may have a
//! unit: `size_bytes <= 100KB`, `start_ps >= 10ms`. A null is neither smaller nor larger than any
//! value, and equal only to `null`.

use crate::schema::{Column, FLOWS, Get};
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, UInt8Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use base::Bytes;
use base::Dur;
use base::params::{Param as _, Raw, nearest};
use sim::outcome::FlowRow;
use std::collections::BTreeSet;
use std::fmt;

/// A filter of flows.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    text: String,
    root: Node,
}

#[derive(Clone, Debug, PartialEq)]
enum Node {
    And(Box<Node>, Box<Node>),
    Or(Box<Node>, Box<Node>),
    Not(Box<Node>),
    /// A comparison: the index of a column of flows, the operator, the value and its position in bytes.
    Compare(usize, Order, Value, usize),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    More,
    MoreOrEqual,
}

#[derive(Clone, Debug, PartialEq)]
enum Value {
    Number(f64),
    Word(String),
    Bool(bool),
    Null,
}

/// An error in a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    text: String,
    /// The position of the error in characters.
    at: usize,
    message: String,
    hint: Option<String>,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Wrong { text, at, message, hint } = self;
        let general =
            "write a filter such as `workload == \"web\" and size_bytes <= 100_000`; docs/data.md describes the columns of flows";
        write!(f, "{message}\n  {text}\n  {}^\nhint: {}", " ".repeat(*at), hint.as_deref().unwrap_or(general))
    }
}

impl std::error::Error for Wrong {}

/// Maximum length of a filter, and how deep its parts may be nested: they must fit on the stack.
const MOST_BYTES: usize = 10_000;
const MOST_NESTED: u32 = 100;

impl Filter {
    /// Parses a filter.
    pub fn parse(text: &str) -> Result<Filter, Wrong> {
        let text = text.trim();
        if text.len() > MOST_BYTES {
            let message = format!("a filter has at most {MOST_BYTES} bytes, but this filter has {}", text.len());
            let text = format!("{}...", text.chars().take(60).collect::<String>());
            return Err(Wrong { text, at: 0, message, hint: None });
        }
        let wrong =
            |at: usize, message: String| Wrong { text: text.to_owned(), at: text[..at].chars().count(), message, hint: None };
        let tokens = tokens(text).map_err(|(at, message)| wrong(at, message))?;
        let mut reader = Reader { tokens: &tokens, at: 0, end: text.len(), nested: 0 };
        let root = reader.any().and_then(|root| match reader.peek() {
            None => Ok(root),
            Some((at, token)) => Err((at, format!("{token} is not expected here: join comparisons with `and` or `or`"))),
        });
        root.map(|root| Filter { text: text.to_owned(), root }).map_err(|(at, message)| wrong(at, message))
    }
    /// Returns the filter as written.
    pub fn text(&self) -> &str {
        &self.text
    }
    /// Returns the columns that the filter reads.
    pub fn columns(&self) -> BTreeSet<&'static str> {
        let mut found = BTreeSet::new();
        self.root.each(&mut |column, _, _, _| {
            found.insert(FLOWS.columns[column].name);
        });
        found
    }
    /// Returns the names and numbers that the filter expects in columns that name things: a workload, a host, a group or a flow.
    pub(crate) fn named(&self) -> Vec<Named<'_>> {
        let mut found = Vec::new();
        self.root.each(&mut |column, order, value, at| {
            let column = &FLOWS.columns[column];
            if matches!(order, Order::Equal | Order::Unequal) && (is_word(column) || NUMBERED.contains(&column.name)) {
                match value {
                    Value::Word(name) => found.push(Named { column: column.name, name: Name::Word(name), at }),
                    Value::Number(number) => found.push(Named { column: column.name, name: Name::Number(*number), at }),
                    Value::Bool(_) | Value::Null => {}
                }
            }
        });
        found
    }
    /// Returns an error about a name in the filter.
    pub(crate) fn wrong(&self, named: &Named<'_>, message: String, hint: String) -> Wrong {
        let at = self.text[..named.at].chars().count();
        Wrong { text: self.text.clone(), at, message, hint: Some(hint) }
    }
    /// Returns which rows of a batch match. `None` if a column is missing or has another type.
    pub fn rows(&self, batch: &RecordBatch) -> Option<Vec<bool>> {
        rows(&self.root, batch)
    }
}

/// The columns with numbers of things.
const NUMBERED: [&str; 4] = ["flow_id", "group_id", "src", "dst"];

/// A name or number that a filter expects in a column.
pub(crate) struct Named<'a> {
    pub column: &'static str,
    pub name: Name<'a>,
    at: usize,
}

/// The name or number.
pub(crate) enum Name<'a> {
    Word(&'a str),
    Number(f64),
}

impl Node {
    /// Calls `visit` with the parts of each comparison.
    fn each<'a>(&'a self, visit: &mut dyn FnMut(usize, Order, &'a Value, usize)) {
        match self {
            Node::And(a, b) | Node::Or(a, b) => [a, b].into_iter().for_each(|node| node.each(visit)),
            Node::Not(node) => node.each(visit),
            Node::Compare(column, order, value, at) => visit(*column, *order, value, *at),
        }
    }
}

fn rows(node: &Node, batch: &RecordBatch) -> Option<Vec<bool>> {
    let both = |a, b, join: fn(bool, bool) -> bool| {
        Some(rows(a, batch)?.into_iter().zip(rows(b, batch)?).map(|(a, b)| join(a, b)).collect())
    };
    match node {
        Node::And(a, b) => both(a, b, |a, b| a & b),
        Node::Or(a, b) => both(a, b, |a, b| a | b),
        Node::Not(node) => Some(rows(node, batch)?.into_iter().map(|is| !is).collect()),
        Node::Compare(column, order, value, _) => compare(batch.column_by_name(FLOWS.columns[*column].name)?, *order, value),
    }
}

fn compare(column: &dyn Array, order: Order, value: &Value) -> Option<Vec<bool>> {
    let all = 0..column.len();
    match value {
        Value::Null => Some(all.map(|i| column.is_null(i) == (order == Order::Equal)).collect()),
        Value::Bool(wanted) => {
            let column = column.as_boolean_opt()?;
            let is = |i| column.is_valid(i) && (column.value(i) == *wanted) == (order == Order::Equal);
            Some(all.map(is).collect())
        }
        Value::Word(wanted) => {
            let column = column.as_dictionary_opt::<Int32Type>()?;
            let words = column.values().as_string_opt::<i32>()?;
            let is = |i| column.is_valid(i) && (words.value(column.keys().value(i) as usize) == wanted) == (order == Order::Equal);
            Some(all.map(is).collect())
        }
        Value::Number(wanted) => {
            let is = |value: f64| match order {
                Order::Equal => value == *wanted,
                Order::Unequal => value != *wanted,
                Order::Less => value < *wanted,
                Order::LessOrEqual => value <= *wanted,
                Order::More => value > *wanted,
                Order::MoreOrEqual => value >= *wanted,
            };
            Some(all.zip(numbers(column)?).map(|(i, value)| column.is_valid(i) && is(value)).collect())
        }
    }
}

/// Reads a column of numbers of any width. Values at nulls are undefined.
fn numbers(column: &dyn Array) -> Option<Vec<f64>> {
    macro_rules! of {
        ($($ty:ty),*) => {
            $(if let Some(found) = column.as_primitive_opt::<$ty>() {
                return Some(found.values().iter().map(|x| *x as f64).collect());
            })*
        };
    }
    of!(UInt64Type, Int64Type, Float64Type, UInt32Type, UInt8Type);
    None
}

/// A token of a filter.
#[derive(Clone, Debug, PartialEq)]
enum Token {
    Name(String),
    Number(String),
    Text(String),
    Sign(&'static str),
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Token::Name(text) | Token::Number(text) => write!(f, "`{text}`"),
            Token::Text(text) => write!(f, "\"{text}\""),
            Token::Sign(sign) => write!(f, "`{sign}`"),
        }
    }
}

/// A position in bytes and what is there.
type At<T> = (usize, T);

const SIGNS: [&str; 10] = ["==", "!=", "<=", ">=", "<", ">", "=", "(", ")", "-"];

fn tokens(text: &str) -> Result<Vec<At<Token>>, At<String>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let while_ = |is: fn(char) -> bool| rest.find(|c: char| !is(c)).unwrap_or(rest.len());
        let length = if first.is_whitespace() {
            first.len_utf8()
        } else if first.is_ascii_digit() {
            let length = while_(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
            found.push((at, Token::Number(rest[..length].to_owned())));
            length
        } else if first.is_alphabetic() || first == '_' {
            let length = while_(|c| c.is_alphanumeric() || c == '_' || c == '.');
            found.push((at, Token::Name(rest[..length].to_owned())));
            length
        } else if first == '"' || first == '\'' {
            let end = rest[1..].find(first).ok_or_else(|| (at, "the text has no closing quote".to_owned()))?;
            found.push((at, Token::Text(rest[1..=end].to_owned())));
            end + 2
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            found.push((at, Token::Sign(sign)));
            sign.len()
        } else {
            return Err((at, format!("`{}` is not allowed in a filter", first.escape_debug())));
        };
        at += length;
    }
    Ok(found)
}

struct Reader<'a> {
    tokens: &'a [At<Token>],
    at: usize,
    end: usize,
    nested: u32,
}

impl Reader<'_> {
    fn peek(&self) -> Option<At<&Token>> {
        self.tokens.get(self.at).map(|(at, token)| (*at, token))
    }
    fn next(&mut self, expected: &str) -> Result<At<Token>, At<String>> {
        let found = self.tokens.get(self.at).cloned().ok_or_else(|| (self.end, format!("{expected} is missing")))?;
        self.at += 1;
        Ok(found)
    }
    fn takes(&mut self, wanted: &Token) -> bool {
        let found = self.peek().is_some_and(|(_, token)| token == wanted);
        self.at += usize::from(found);
        found
    }
    fn takes_word(&mut self, word: &str) -> bool {
        self.takes(&Token::Name(word.to_owned()))
    }
    /// Reads comparisons joined by `or`.
    fn any(&mut self) -> Result<Node, At<String>> {
        let mut found = self.all()?;
        while self.takes_word("or") {
            found = Node::Or(Box::new(found), Box::new(self.all()?));
        }
        Ok(found)
    }
    /// Reads comparisons joined by `and`.
    fn all(&mut self) -> Result<Node, At<String>> {
        let mut found = self.one()?;
        while self.takes_word("and") {
            found = Node::And(Box::new(found), Box::new(self.one()?));
        }
        Ok(found)
    }
    /// Reads a part that is nested in another part.
    fn inner(&mut self, read: fn(&mut Self) -> Result<Node, At<String>>) -> Result<Node, At<String>> {
        if self.nested == MOST_NESTED {
            let at = self.peek().map_or(self.end, |(at, _)| at);
            return Err((at, format!("parts are nested more than {MOST_NESTED} deep")));
        }
        self.nested += 1;
        let found = read(self)?;
        self.nested -= 1;
        Ok(found)
    }
    fn one(&mut self) -> Result<Node, At<String>> {
        if self.takes_word("not") {
            return Ok(Node::Not(Box::new(self.inner(Self::one)?)));
        }
        if self.takes(&Token::Sign("(")) {
            let found = self.inner(Self::any)?;
            return if self.takes(&Token::Sign(")")) { Ok(found) } else { Err((self.end, "`)` is missing".to_owned())) };
        }
        let (at, name) = self.next("a column")?;
        let Token::Name(name) = name else { return Err((at, format!("{name} is not a column of flows"))) };
        let Some(column) = FLOWS.columns.iter().position(|column| column.name == name) else {
            if ["point", "system", "seed"].contains(&name.as_str()) || name.contains('.') {
                let why =
                    "a filter chooses flows by their own columns; `at` (`--at`) chooses points by system, seed and swept keys";
                return Err((at, format!("`{name}` is not a column of single flows: {why}")));
            }
            let near = nearest(&name, FLOWS.columns.iter().map(|column| column.name));
            let did = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            return Err((at, format!("flows have no column `{name}`{did}")));
        };
        let order = match self.peek() {
            Some((_, Token::Sign("==" | "="))) => Order::Equal,
            Some((_, Token::Sign("!="))) => Order::Unequal,
            Some((_, Token::Sign("<"))) => Order::Less,
            Some((_, Token::Sign("<="))) => Order::LessOrEqual,
            Some((_, Token::Sign(">"))) => Order::More,
            Some((_, Token::Sign(">="))) => Order::MoreOrEqual,
            // A boolean column needs no comparison.
            _ if is_bool(&FLOWS.columns[column]) => return Ok(Node::Compare(column, Order::Equal, Value::Bool(true), at)),
            Some((at, token)) => {
                return Err((at, format!("{token} follows `{name}`: a comparison such as `==` or `<=` is missing")));
            }
            None => return Err((self.end, format!("a comparison of `{name}`, such as `==` or `<=`, is missing"))),
        };
        self.at += 1;
        let (at, value) = self.value(&FLOWS.columns[column])?;
        let ordered = !matches!(order, Order::Equal | Order::Unequal);
        match &value {
            Value::Number(_) if is_number(&FLOWS.columns[column]) => {}
            Value::Word(_) if is_word(&FLOWS.columns[column]) && !ordered => {}
            Value::Bool(_) if is_bool(&FLOWS.columns[column]) && !ordered => {}
            Value::Null if !ordered => {}
            _ if ordered && !is_number(&FLOWS.columns[column]) => {
                return Err((at, format!("`{name}` is not a number: compare it with `==` or `!=`")));
            }
            _ => {
                let kind = if is_number(&FLOWS.columns[column]) {
                    "a number"
                } else if is_bool(&FLOWS.columns[column]) {
                    "`true` or `false`"
                } else {
                    "a text in quotes"
                };
                return Err((at, format!("`{name}` must be compared with {kind}")));
            }
        }
        Ok(Node::Compare(column, order, value, at))
    }
    fn value(&mut self, column: &Column<FlowRow>) -> Result<At<Value>, At<String>> {
        let (at, token) = self.next("a value")?;
        let value = match token {
            Token::Text(text) => Value::Word(text),
            Token::Name(name) if name == "true" || name == "True" => Value::Bool(true),
            Token::Name(name) if name == "false" || name == "False" => Value::Bool(false),
            Token::Name(name) if name == "null" || name == "None" => Value::Null,
            Token::Name(name) if is_word(column) => return Err((at, format!("`{name}` is a text: write \"{name}\""))),
            Token::Number(text) => Value::Number(number(&text, column).ok_or_else(|| (at, unreadable(&text, column)))?),
            Token::Sign("-") => match self.next("a number")? {
                (_, Token::Number(text)) => Value::Number(-number(&text, column).ok_or_else(|| (at, unreadable(&text, column)))?),
                (at, token) => return Err((at, format!("{token} is not a number"))),
            },
            token => return Err((at, format!("{token} is not a value"))),
        };
        Ok((at, value))
    }
}

fn unreadable(text: &str, column: &Column<FlowRow>) -> String {
    match column.unit {
        "bytes" => format!("`{text}` is not a size, such as `100_000` or `100KB`"),
        "ps" => format!("`{text}` is not a time, such as `1_000_000` or `1us`"),
        _ => format!("`{text}` is not a number, such as `100_000` or `1.5`"),
    }
}

/// Parses a number, or a size or time with a unit, into the unit of the column.
fn number(text: &str, column: &Column<FlowRow>) -> Option<f64> {
    if let Ok(number) = text.replace('_', "").parse::<f64>() {
        return Some(number);
    }
    let raw = Raw::Str(text.to_owned());
    match column.unit {
        "bytes" => Bytes::parse(&raw).ok().map(|bytes| bytes.0 as f64),
        "ps" => Dur::parse(&raw).ok().map(|time| time.0 as f64),
        _ => None,
    }
}

fn is_word(column: &Column<FlowRow>) -> bool {
    matches!(column.get, Get::Word(_) | Get::Listed(_))
}
fn is_bool(column: &Column<FlowRow>) -> bool {
    matches!(column.get, Get::Bool(_) | Get::OptBool(_))
}
fn is_number(column: &Column<FlowRow>) -> bool {
    !is_word(column) && !is_bool(column)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrow;

    fn flows() -> RecordBatch {
        let flow = |workload, size_bytes, finish_ps: Option<u64>, terminated| FlowRow {
            workload,
            size_bytes,
            start_ps: Some(1_000_000),
            finish_ps,
            ideal_fct_ps: 1_000_000,
            terminated,
            deadline_ps: (size_bytes > 50_000).then_some(5_000_000),
            ..FlowRow::default()
        };
        let rows = [
            flow(0, 1_000, Some(2_000_000), false),
            flow(0, 100_000, Some(9_000_000), false),
            flow(1, 100_001, Some(4_000_000), false),
            flow(1, 64_000, None, true),
        ];
        arrow::batch(&FLOWS, &rows, &["web".to_owned(), "in cast".to_owned()], &[])
    }

    fn chosen(text: &str) -> Vec<usize> {
        let filter = Filter::parse(text).unwrap_or_else(|e| panic!("{e}"));
        filter.rows(&flows()).unwrap().into_iter().enumerate().filter(|(_, is)| *is).map(|(i, _)| i).collect()
    }

    #[test]
    fn filters_choose_rows() {
        for (text, rows) in [
            ("workload == \"web\" and size_bytes <= 100_000", vec![0, 1]),
            ("workload='in cast'", vec![2, 3]),
            ("size_bytes <= 100KB", vec![0, 1, 3]),
            ("size_bytes < 100kB or terminated", vec![0, 3]),
            ("not workload == \"web\" and not terminated", vec![2]),
            ("not (workload == \"web\" or terminated)", vec![2]),
            ("workload == \"web\" or workload == \"in cast\" and size_bytes > 1e5", vec![0, 1, 2]),
            ("fct_ps >= 3us", vec![1, 2]),
            ("fct_ps < 3us", vec![0]),
            ("fct_ps == null", vec![3]),
            ("fct_ps != None and slowdown > 1", vec![1, 2]),
            ("deadline_met == true", vec![2]),
            ("deadline_met == false", vec![1, 3]),
            ("deadline_met != true", vec![1, 3]),
            ("terminated != True", vec![0, 1, 2]),
            ("slowdown > -1", vec![0, 1, 2]),
        ] {
            assert_eq!(chosen(text), rows, "{text}");
        }
        let filter = Filter::parse("workload == \"web\" and (size_bytes < 3 or not terminated)").unwrap();
        assert_eq!(filter.columns().into_iter().collect::<Vec<_>>(), ["size_bytes", "terminated", "workload"]);
    }

    #[test]
    fn long_and_deeply_nested_filters_are_refused_or_read() {
        let nested = |n: usize| [&"(".repeat(n), "terminated == true", &")".repeat(n)].concat();
        let joined = |n: usize| vec!["terminated"; n].join(" or ");
        for text in [nested(100), joined(700), format!("{}terminated", "not ".repeat(100))] {
            assert_eq!(chosen(&text), chosen("terminated"));
        }
        for text in [nested(101), format!("{}terminated", "not ".repeat(101))] {
            let wrong = Filter::parse(&text).unwrap_err().to_string();
            assert!(wrong.starts_with("parts are nested more than 100 deep"), "{wrong}");
        }
        for text in [nested(200_000), joined(100_000), format!("{}terminated", "not ".repeat(100_000))] {
            let wrong = Filter::parse(&text).unwrap_err().to_string();
            assert!(wrong.starts_with("a filter has at most 10000 bytes, but this filter has"), "{wrong}");
            assert!(wrong.len() < 500, "{}", wrong.len());
        }
    }

    #[test]
    fn mistakes_are_explained() {
        for (text, at, message) in [
            ("", 0, "a column is missing"),
            ("size <= 3", 0, "flows have no column `size`"),
            ("system == 'TCP'", 0, "`at` (`--at`) chooses points"),
            ("workload.web.load > 0.3", 0, "`at` (`--at`) chooses points"),
            ("size_byte <= 3", 0, "did you mean `size_bytes`?"),
            ("size_bytes", 10, "a comparison of `size_bytes`"),
            ("size_bytes 3", 11, "`3` follows `size_bytes`"),
            ("size_bytes <=", 13, "a value is missing"),
            ("size_bytes <= big", 14, "`big` is not a value"),
            ("size_bytes <= 3us", 14, "`3us` is not a size"),
            ("slowdown <= 3us", 12, "`3us` is not a number"),
            ("workload == web", 12, "write \"web\""),
            ("workload < \"web\"", 11, "`workload` is not a number"),
            ("workload == 3", 12, "compared with a text in quotes"),
            ("terminated == 1", 14, "compared with `true` or `false`"),
            ("size_bytes == \"3\"", 14, "compared with a number"),
            ("(size_bytes > 3", 15, "`)` is missing"),
            ("size_bytes > 3 size_bytes < 9", 15, "join comparisons with `and` or `or`"),
            ("workload == \"web", 12, "the text has no closing quote"),
            ("ü < 3", 0, "flows have no column `ü`"),
            ("workload == \"ü\" & 3", 16, "`&` is not allowed"),
            ("size_bytes > 3 & 3", 15, "`&` is not allowed"),
        ] {
            let wrong = Filter::parse(text).unwrap_err();
            assert!(wrong.message.contains(message), "{text}: {}", wrong.message);
            assert_eq!(wrong.at, at, "{text}");
            assert!(wrong.to_string().contains("hint: "));
        }
    }
}

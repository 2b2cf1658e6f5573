//! Rows of a CSV file with a header line; problems name file and line.

use csv::{ReaderBuilder, StringRecord, Trim};
use std::rc::Rc;

/// Rows by column name, read one after another.
pub(crate) struct Rows<'a> {
    shape: Rc<Shape<'a>>,
    records: csv::StringRecordsIntoIter<&'a [u8]>,
}

/// One row.
pub(crate) struct Row<'a> {
    shape: Rc<Shape<'a>>,
    pub line: u64,
    record: StringRecord,
}

struct Shape<'a> {
    file: &'a str,
    text: &'a str,
    columns: Vec<&'static str>,
    /// Where each column stands, if it is there.
    places: Vec<Option<usize>>,
}

/// Reads a table whose header has all of `needed` and may have `optional` columns, and no others. Lines that begin with `#` are
/// skipped.
pub(crate) fn rows<'a>(
    file: &'a str,
    text: &'a str,
    needed: &[&'static str],
    optional: &[&'static str],
) -> Result<Rows<'a>, String> {
    renamed(file, text, needed, optional, None)
}

/// The same of a table in which columns are called otherwise: `names` has ours and the file's. Such a table may have more columns.
pub(crate) fn renamed<'a>(
    file: &'a str,
    text: &'a str,
    needed: &[&'static str],
    optional: &[&'static str],
    names: Option<&[(&'static str, String)]>,
) -> Result<Rows<'a>, String> {
    let of = |ours: &'static str| -> String {
        let given = names.into_iter().flatten().find(|(name, _)| *name == ours);
        given.map_or_else(|| ours.to_owned(), |(_, theirs)| theirs.clone())
    };
    let mut reader = ReaderBuilder::new().trim(Trim::All).comment(Some(b'#')).from_reader(text.as_bytes());
    let header = reader.headers().map_err(|e| wrong_csv(file, text, &e))?.clone();
    let all = || needed.iter().chain(optional).copied();
    let listed = |found: Vec<String>| found.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
    let known = if names.is_some() { header.iter().map(str::to_owned).collect() } else { all().map(of).collect() };
    if let Some(missing) = needed.iter().map(|n| of(n)).find(|n| !header.iter().any(|h| h == n)) {
        return Err(format!("{file}:1: the header has no column `{missing}`; columns are {}", listed(known)));
    }
    // A name that was given must be there.
    if let Some((_, missing)) = names.into_iter().flatten().find(|(_, theirs)| !header.iter().any(|h| h == theirs)) {
        return Err(format!("{file}:1: the header has no column `{missing}`; columns are {}", listed(known)));
    }
    if let Some(extra) = header.iter().find(|h| names.is_none() && !all().any(|n| n == *h)) {
        return Err(format!("{file}:1: unknown column `{extra}`; columns are {}", listed(known)));
    }
    if let Some(twice) = (0..header.len()).find(|i| header.iter().take(*i).any(|h| h == &header[*i])) {
        return Err(format!("{file}:1: the column `{}` is given twice", &header[twice]));
    }
    let columns: Vec<&'static str> = all().collect();
    let places = columns.iter().map(|c| header.iter().position(|h| h == of(c))).collect();
    Ok(Rows { shape: Rc::new(Shape { file, text, columns, places }), records: reader.into_records() })
}

/// The line of a record. The CSV reader reports the position at which the record before it ended.
fn line_of(text: &str, position: Option<&csv::Position>) -> u64 {
    let Some(position) = position else { return 1 };
    let rest = text.as_bytes().get(position.byte() as usize..).unwrap_or(&[]);
    let skipped = |line: &&[u8]| line.trim_ascii().is_empty() || line.first() == Some(&b'#');
    position.line() + rest.split(|b| *b == b'\n').take_while(skipped).count() as u64
}

fn wrong_csv(file: &str, text: &str, e: &csv::Error) -> String {
    let line = line_of(text, e.position());
    match e.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("{file}:{line}: {len} values, the header has {expected_len}")
        }
        _ => format!("{file}:{line}: {e}"),
    }
}

impl<'a> Iterator for Rows<'a> {
    type Item = Result<Row<'a>, String>;
    fn next(&mut self) -> Option<Self::Item> {
        let record = self.records.next()?.map_err(|e| wrong_csv(self.shape.file, self.shape.text, &e));
        Some(record.map(|record| {
            let line = line_of(self.shape.text, record.position());
            Row { shape: Rc::clone(&self.shape), line, record }
        }))
    }
}

impl Row<'_> {
    /// A value that may be missing: its cell is empty, or the file has no such column.
    pub fn optional(&self, column: &str) -> Option<&str> {
        let i = self.shape.columns.iter().position(|c| *c == column)?;
        self.record.get(self.shape.places[i]?).filter(|v| !v.is_empty())
    }
    /// A value.
    pub fn get(&self, column: &str) -> Result<&str, String> {
        self.optional(column).ok_or_else(|| self.wrong(column, &format!("`{column}` is empty")))
    }
    /// A value through a parser whose error completes a sentence that begins with the value.
    pub fn parse<T>(&self, column: &str, parser: impl Fn(&str) -> Result<T, String>) -> Result<T, String> {
        let text = self.get(column)?;
        parser(text).map_err(|why| self.wrong(column, &format!("`{text}` {why}")))
    }
    /// A problem in this row.
    pub fn wrong(&self, column: &str, why: &str) -> String {
        format!("{}:{}: column `{column}`: {why}", self.shape.file, self.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_by_name() {
        let table = rows("t.csv", "# note\nb, a\n1,\n\n3,4\n", &["b"], &["a", "c"]).unwrap();
        let all: Vec<(u64, String, Option<String>)> = table
            .map(Result::unwrap)
            .map(|r| (r.line, r.get("b").unwrap().to_owned(), r.optional("a").map(str::to_owned)))
            .collect();
        assert_eq!(all, [(3, "1".into(), None), (5, "3".into(), Some("4".into()))]);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let fail = |text: &str| {
            let read = || rows("t.csv", text, &["a", "b"], &[])?.collect::<Result<Vec<_>, String>>();
            read().err().unwrap()
        };
        assert!(fail("a\n").contains("no column `b`"));
        assert!(fail("a,b,c\n").contains("unknown column `c`"));
        assert!(fail("a,b,a\n").contains("twice"));
        assert_eq!(fail("a,b\n1,2\n1\n"), "t.csv:3: 1 values, the header has 2");
    }
}

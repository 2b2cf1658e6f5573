//! Rows of a table in a CSV file with a header line, or in a Parquet file. Error messages name file
//! and row.

mod csv;
mod parquet;

use parquet::Table;
use std::rc::Rc;
use std::sync::Arc;

/// Rows by column name, read one after another.
pub(crate) struct Rows<'a> {
    shape: Rc<Shape<'a>>,
    records: Records<'a>,
}

/// The rows of a file as texts, each with its number; an empty text means no value.
type Records<'a> = Box<dyn Iterator<Item = Result<(u64, Vec<String>), String>> + 'a>;

/// One row.
pub(crate) struct Row<'a> {
    shape: Rc<Shape<'a>>,
    /// Line in a CSV file, or number from 1 in a Parquet file.
    pub number: u64,
    record: Vec<String>,
}

struct Shape<'a> {
    file: &'a str,
    /// Text between the file and the number of a row in messages.
    before_number: &'static str,
    columns: Vec<&'static str>,
    /// Index of each column in the file, if the file has it.
    places: Vec<Option<usize>>,
}

/// The columns that are read from a table.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub needed: &'a [&'static str],
    pub optional: &'a [&'static str],
    /// Pairs of our name and the name in the file, for columns whose names differ. With this, the
    /// table may have further columns.
    pub names: Option<&'a [(&'static str, String)]>,
}

impl Wanted<'_> {
    fn all(&self) -> impl Iterator<Item = &'static str> {
        self.needed.iter().chain(self.optional).copied()
    }
    /// Returns the name of a column in the file.
    fn named(&self, ours: &str) -> String {
        let given = self.names.into_iter().flatten().find(|(name, _)| *name == ours);
        given.map_or_else(|| ours.to_owned(), |(_, theirs)| theirs.clone())
    }
    /// Returns the index of each column in a header.
    fn places(&self, at: &str, header: &[String]) -> Result<Vec<Option<usize>>, String> {
        let listed = |found: Vec<String>| found.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let known =
            || listed(if self.names.is_some() { header.to_vec() } else { self.all().map(|name| self.named(name)).collect() });
        let place = |name: &str| header.iter().position(|column| column == name);
        // A name that is given must exist.
        let given = self.names.into_iter().flatten().map(|(_, theirs)| theirs.clone());
        if let Some(missing) = self.needed.iter().map(|name| self.named(name)).chain(given).find(|name| place(name).is_none()) {
            return Err(format!("{at}: there is no column `{missing}`; the columns are {}", known()));
        }
        if let Some(extra) = header.iter().find(|column| self.names.is_none() && !self.all().any(|name| name == *column)) {
            return Err(format!("{at}: unknown column `{extra}`; the columns are {}", known()));
        }
        if let Some(twice) = header.iter().enumerate().find_map(|(i, column)| (place(column) != Some(i)).then_some(column)) {
            return Err(format!("{at}: the column `{twice}` is given twice"));
        }
        Ok(self.all().map(|name| place(&self.named(name))).collect())
    }
}

/// Reads a CSV table whose header has all `needed` columns, may have `optional` columns, and has no
/// other columns. Lines that begin with `#` are skipped.
pub(crate) fn rows<'a>(
    file: &'a str,
    text: &'a str,
    needed: &[&'static str],
    optional: &[&'static str],
) -> Result<Rows<'a>, String> {
    of_csv(file, text, Wanted { needed, optional, names: None })
}

/// Reads a CSV table.
pub(crate) fn of_csv<'a>(file: &'a str, text: &'a str, wanted: Wanted<'_>) -> Result<Rows<'a>, String> {
    let (header, records) = csv::read(file, text)?;
    let places = wanted.places(&format!("{file}:1"), &header)?;
    let shape = Shape { file, before_number: ":", columns: wanted.all().collect(), places };
    Ok(Rows { shape: Rc::new(shape), records })
}

/// A Parquet table; only some of its columns are read.
pub(crate) struct Parquet<'a> {
    shape: Rc<Shape<'a>>,
    table: Table<'a>,
    /// Indices of the columns that are read.
    read: Vec<usize>,
}

/// Returns the maximum number of rows of a Parquet table, from its header.
pub(crate) fn count_of_parquet(file: &str, bytes: Arc<[u8]>) -> Result<u64, String> {
    Table::new(file, bytes).map(|table| table.count())
}

/// Reads the header of a Parquet table. `wanted` gets the names of its columns.
pub(crate) fn of_parquet<'a, 'w>(
    file: &'a str,
    bytes: Arc<[u8]>,
    wanted: impl FnOnce(&[String]) -> Wanted<'w>,
) -> Result<Parquet<'a>, String> {
    let table = Table::new(file, bytes)?;
    let header = table.header();
    let wanted = wanted(&header);
    let mut places = wanted.places(file, &header)?;
    let read: Vec<usize> = places.iter().flatten().copied().collect();
    places.iter_mut().flatten().zip(0..).for_each(|(place, number)| *place = number);
    let shape = Shape { file, before_number: ": row ", columns: wanted.all().collect(), places };
    Ok(Parquet { shape: Rc::new(shape), table, read })
}

impl<'a> Parquet<'a> {
    /// Calls `each` with every row, up to the first error.
    pub fn each(&self, mut each: impl FnMut(Row<'a>) -> Result<(), String>) -> Result<(), String> {
        self.table.each(&self.read, &mut |number, record| each(Row { shape: Rc::clone(&self.shape), number, record }))
    }
}

impl<'a> Iterator for Rows<'a> {
    type Item = Result<Row<'a>, String>;
    fn next(&mut self) -> Option<Self::Item> {
        let read = self.records.next()?;
        Some(read.map(|(number, record)| Row { shape: Rc::clone(&self.shape), number, record }))
    }
}

impl Row<'_> {
    /// Returns a value, or `None` if the cell is empty or the file does not have this column.
    pub fn optional(&self, column: &str) -> Option<&str> {
        let i = self.shape.columns.iter().position(|c| *c == column)?;
        self.record.get(self.shape.places[i]?).map(String::as_str).filter(|v| !v.is_empty())
    }
    /// Returns a value. Fails if it is missing.
    pub fn get(&self, column: &str) -> Result<&str, String> {
        self.optional(column).ok_or_else(|| self.wrong(column, &format!("`{column}` is empty")))
    }
    /// Parses a value. The error of the parser completes a sentence that begins with the value.
    pub fn parse<T>(&self, column: &str, parser: impl Fn(&str) -> Result<T, String>) -> Result<T, String> {
        let text = self.get(column)?;
        parser(text).map_err(|why| self.wrong(column, &format!("`{text}` {why}")))
    }
    /// Returns a message about a column of this row, with its place.
    pub fn wrong(&self, column: &str, why: &str) -> String {
        format!("{}{}{}: column `{column}`: {why}", self.shape.file, self.shape.before_number, self.number)
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
            .map(|r| (r.number, r.get("b").unwrap().to_owned(), r.optional("a").map(str::to_owned)))
            .collect();
        assert_eq!(all, [(3, "1".into(), None), (5, "3".into(), Some("4".into()))]);
    }

    #[test]
    fn errors_name_the_line() {
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

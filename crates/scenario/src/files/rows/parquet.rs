//! Rows of a Parquet file.

use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use parquet::schema::types::Type;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Once};

/// A file whose header has been read.
pub(super) struct Table<'a> {
    file: &'a str,
    reader: SerializedFileReader<Bytes>,
}

impl<'a> Table<'a> {
    /// Reads the header of the table in these bytes.
    pub fn new(file: &'a str, bytes: Arc<[u8]>) -> Result<Self, String> {
        let reader = guarded(file, || SerializedFileReader::new(Bytes::from_owner(bytes)))?;
        Ok(Table { file, reader })
    }
    /// Returns the names of the columns.
    pub fn header(&self) -> Vec<String> {
        self.fields().iter().map(|field| field.name().to_owned()).collect()
    }
    /// Returns the maximum number of rows.
    pub fn count(&self) -> u64 {
        // Reading uses the row counts of the groups, not the total in the header of the file.
        self.reader.metadata().row_groups().iter().map(|group| u64::try_from(group.num_rows()).unwrap_or(0)).sum()
    }
    /// Calls `each` with every row and its number, from 1: the values of these columns as texts,
    /// numbers in decimal, missing values as empty texts.
    pub fn each(&self, columns: &[usize], each: &mut dyn FnMut(u64, Vec<String>) -> Result<(), String>) -> Result<(), String> {
        let file = self.file;
        // The library returns columns in the order of the file.
        let mut order = columns.to_vec();
        order.sort_unstable();
        let fields = order.iter().map(|place| Arc::clone(&self.fields()[*place])).collect();
        let name = self.reader.metadata().file_metadata().schema_descr().root_schema().name();
        let wanted = guarded(file, || Type::group_type_builder(name).with_fields(fields).build())?;
        let place: Vec<usize> = columns.iter().filter_map(|column| order.iter().position(|other| other == column)).collect();
        let mut number = 0;
        for group in 0..self.reader.num_row_groups() {
            let group = guarded(file, || self.reader.get_row_group(group))?;
            let mut rows = guarded(file, || group.get_row_iter(Some(wanted.clone())))?;
            while let Some(row) = guarded(file, || rows.next().transpose())? {
                number += 1;
                let texts = texts(&row).map_err(|why| format!("{file}: row {number}: {why}"))?;
                each(number, place.iter().map(|place| texts[*place].clone()).collect())?;
            }
        }
        Ok(())
    }
    fn fields(&self) -> &[Arc<Type>] {
        self.reader.metadata().file_metadata().schema_descr().root_schema().get_fields()
    }
}

thread_local! {
    /// Whether this thread is in a call of the library.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Installs the hook that suppresses the panic messages of the library: its panics become errors.
static SILENCED: Once = Once::new();

/// Calls the library, which panics on some damaged files.
fn guarded<T>(file: &str, run: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, String> {
    SILENCED.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !INSIDE.get() {
                report(info);
            }
        }));
    });
    INSIDE.set(true);
    let done = catch_unwind(AssertUnwindSafe(run));
    INSIDE.set(false);
    match done {
        Ok(done) => done.map_err(|e| format!("{file}: this is not a valid Parquet file: {e}")),
        Err(_) => Err(format!("{file}: this Parquet file is damaged")),
    }
}

fn texts(row: &Row) -> Result<Vec<String>, String> {
    row.get_column_iter()
        .map(|(name, field)| text(field).map_err(|kind| format!("column `{name}`: {kind} cannot be read")))
        .collect()
}

fn text(field: &Field) -> Result<String, &'static str> {
    match field {
        Field::Null => Ok(String::new()),
        Field::Str(text) => Ok(text.clone()),
        Field::Bytes(bytes) => bytes.as_utf8().map(str::to_owned).map_err(|_| "a value that is not UTF-8 text"),
        Field::Float(number) => Ok(number.to_string()),
        Field::Double(number) => Ok(number.to_string()),
        Field::Group(_) | Field::ListInternal(_) | Field::MapInternal(_) => Err("a nested value"),
        other => Ok(other.to_string()),
    }
}

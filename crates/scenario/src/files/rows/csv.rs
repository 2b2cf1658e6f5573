//! Rows of a CSV file.

use super::Records;
use csv::{ReaderBuilder, StringRecord, Trim};

/// Returns the names of the columns, and the rows with their lines. Lines that begin with `#` are
/// skipped.
pub(super) fn read<'a>(file: &'a str, text: &'a str) -> Result<(Vec<String>, Records<'a>), String> {
    let mut reader = ReaderBuilder::new().trim(Trim::All).comment(Some(b'#')).from_reader(text.as_bytes());
    let texts = |record: &StringRecord| record.iter().map(str::to_owned).collect::<Vec<String>>();
    let header = texts(reader.headers().map_err(|e| wrong(file, text, &e))?);
    let rows = reader.into_records().map(move |record| {
        let record = record.map_err(|e| wrong(file, text, &e))?;
        Ok((line_of(text, record.position()), texts(&record)))
    });
    Ok((header, Box::new(rows)))
}

/// Returns the line of a record. The reader reports the end of the previous record.
fn line_of(text: &str, position: Option<&csv::Position>) -> u64 {
    let Some(position) = position else { return 1 };
    let rest = text.as_bytes().get(position.byte() as usize..).unwrap_or(&[]);
    let skipped = |line: &&[u8]| line.trim_ascii().is_empty() || line.first() == Some(&b'#');
    position.line() + rest.split(|b| *b == b'\n').take_while(skipped).count() as u64
}

fn wrong(file: &str, text: &str, e: &csv::Error) -> String {
    let line = line_of(text, e.position());
    match e.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("{file}:{line}: {len} values, the header has {expected_len}")
        }
        _ => format!("{file}:{line}: {e}"),
    }
}

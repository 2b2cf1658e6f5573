//! Converts rows to Arrow.

use crate::schema::{Column, CounterColumn, Get, Table};
use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray, UInt8Array,
    UInt32Array, UInt64Array,
};
use std::sync::Arc;

/// Converts rows to a batch of `table`. `list` holds the words that [`Get::Listed`] indexes;
/// `counters` describes the counts of the rows.
pub fn batch<R>(table: &Table<R>, rows: &[R], list: &[String], counters: &[CounterColumn]) -> RecordBatch {
    let all = |row: &R| (table.counts)(row).len() == counters.len();
    assert!(rows.iter().all(all), "a row of `{}` does not have one count per counter", table.name);
    let own = table.columns.iter().map(|column| array(column, rows, list));
    let counts = (0..counters.len())
        .map(|i| Arc::new(UInt64Array::from_iter_values(rows.iter().map(|row| (table.counts)(row)[i]))) as ArrayRef);
    RecordBatch::try_new(table.schema(counters), own.chain(counts).collect()).expect("arrays and schema come from the same columns")
}

fn array<R>(column: &Column<R>, rows: &[R], list: &[String]) -> ArrayRef {
    match column.get {
        Get::U8(f) => Arc::new(UInt8Array::from_iter_values(rows.iter().map(f))),
        Get::U32(f) => Arc::new(UInt32Array::from_iter_values(rows.iter().map(f))),
        Get::U64(f) => Arc::new(UInt64Array::from_iter_values(rows.iter().map(f))),
        Get::OptU64(f) => Arc::new(rows.iter().map(f).collect::<UInt64Array>()),
        Get::Ps(f) => Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| signed(f(row))))),
        Get::OptPs(f) => Arc::new(rows.iter().map(|row| f(row).map(signed)).collect::<Int64Array>()),
        Get::F64(f) => Arc::new(Float64Array::from_iter_values(rows.iter().map(f))),
        Get::OptF64(f) => Arc::new(rows.iter().map(f).collect::<Float64Array>()),
        Get::Bool(f) => Arc::new(rows.iter().map(|row| Some(f(row))).collect::<BooleanArray>()),
        Get::OptBool(f) => Arc::new(rows.iter().map(f).collect::<BooleanArray>()),
        Get::Word(f) => words(rows.iter().map(|row| Some(f(row)))),
        Get::Listed(f) => {
            let keys = Int32Array::from_iter_values(rows.iter().map(|row| f(row) as i32));
            let values = StringArray::from_iter_values(list);
            Arc::new(DictionaryArray::<Int32Type>::try_new(keys, Arc::new(values)).expect("every index is in the list"))
        }
    }
}

/// Converts a time. Simulated times stay below 106 days; larger values, such as the end of time,
/// become the largest value.
fn signed(ps: u64) -> i64 {
    i64::try_from(ps).unwrap_or(i64::MAX)
}

/// Returns a dictionary array of words, which are indexed in the order of their first appearance.
pub fn words<'a>(words: impl Iterator<Item = Option<&'a str>>) -> ArrayRef {
    let mut builder = StringDictionaryBuilder::<Int32Type>::new();
    words.for_each(|word| builder.append_option(word));
    Arc::new(builder.finish())
}

/// Returns a dictionary array that repeats a word `n` times.
pub fn word(word: Option<&str>, n: usize) -> ArrayRef {
    let keys: Int32Array = std::iter::repeat_n(word.map(|_| 0), n).collect();
    let values = StringArray::from_iter_values(word);
    Arc::new(DictionaryArray::<Int32Type>::try_new(keys, Arc::new(values)).expect("one word, one index"))
}

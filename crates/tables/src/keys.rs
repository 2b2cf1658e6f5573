//! The columns that identify points: the point, its system, its seed and the values of the swept
//! keys.

use crate::arrow::{word, words};
use crate::manifest::{PointKey, RunManifest};
use crate::schema::{CounterColumn, FLOWS, KEYS, Note, field, schema, words as words_type};
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, UInt64Array, new_null_array};
use arrow_schema::{DataType, Field, SchemaRef};
use std::sync::Arc;

/// Returns the value of a swept key at a point.
pub(crate) fn swept<'a>(key: &'a PointKey, name: &str) -> Option<&'a str> {
    key.swept.iter().find(|(k, _)| k == name).map(|(_, value)| value.as_str())
}

/// The additional columns that the tables of flows of all points of a run have in common: the keys
/// of the point before the columns of flows, and the counters of the entries of all systems after
/// them.
#[derive(Clone, Debug, Default)]
pub struct FlowColumns {
    pub(crate) keys: KeyColumns,
    pub(crate) counters: Vec<CounterColumn>,
}

impl FlowColumns {
    /// Returns the columns of a run whose systems have these counters.
    pub fn new(run: &RunManifest, counted: impl IntoIterator<Item = CounterColumn>) -> FlowColumns {
        FlowColumns { keys: KeyColumns::new(run), counters: Vec::new() }.with(counted)
    }
    /// Adds the counters that are not yet included.
    #[must_use]
    pub fn with(mut self, counted: impl IntoIterator<Item = CounterColumn>) -> FlowColumns {
        for counter in counted {
            if self.counters.iter().all(|known| known.name != counter.name) {
                self.counters.push(counter);
            }
        }
        self
    }
    /// Returns the schema of the tables. A counter is null at points of systems that do not have it.
    pub fn schema(&self) -> SchemaRef {
        let more = self.counters.iter().map(|counter| counter.field(true));
        schema(self.keys.fields().into_iter().chain(FLOWS.fields()).chain(more).collect(), FLOWS.about)
    }
    /// Converts a batch of the flows of a point to this schema, by the names of columns. Counters
    /// that the batch does not have become null. Counters of the batch that are not in this schema
    /// are dropped. Fails if another column is missing or has another type.
    pub(crate) fn batch(&self, key: &PointKey, batch: &RecordBatch) -> std::result::Result<RecordBatch, String> {
        let schema = self.schema();
        let keys = self.keys.arrays(key, batch.num_rows());
        let array = |(place, field): (usize, &Arc<Field>)| match batch.column_by_name(field.name()) {
            Some(column) if column.data_type() == field.data_type() => Ok(column.clone()),
            Some(_) => Err(format!("its column `{}` has another type", field.name())),
            None if place < keys.len() => Ok(keys[place].clone()),
            None if place >= keys.len() + FLOWS.columns.len() => Ok(new_null_array(field.data_type(), batch.num_rows())),
            None => Err(format!("it has no column `{}`", field.name())),
        };
        let arrays = schema.fields().iter().enumerate().map(array).collect::<std::result::Result<Vec<_>, String>>()?;
        RecordBatch::try_new(schema, arrays).map_err(|e| e.to_string())
    }
}

/// The columns that identify points.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyColumns {
    pub swept: Vec<SweptColumn>,
}

/// The column of a swept key.
#[derive(Clone, Debug)]
pub(crate) struct SweptColumn {
    pub key: String,
    pub ty: DataType,
}

impl SweptColumn {
    /// Returns a column that can hold all `values`: integers, numbers or text.
    pub fn new<'a>(key: &str, values: impl Iterator<Item = &'a str> + Clone) -> SweptColumn {
        let all = |test: fn(&str) -> bool| values.clone().all(test);
        let ty = if all(|v| v.parse::<i64>().is_ok()) {
            DataType::Int64
        } else if all(|v| v.parse::<f64>().is_ok_and(f64::is_finite)) {
            DataType::Float64
        } else {
            words_type()
        };
        SweptColumn { key: key.to_owned(), ty }
    }
    pub fn field(&self) -> Field {
        field(&self.key, self.ty.clone(), true, "", "swept key of the scenario; null if the system does not have the key")
    }
    pub fn array<'a>(&self, values: impl Iterator<Item = Option<&'a str>>) -> ArrayRef {
        match self.ty {
            DataType::Int64 => Arc::new(values.map(|v| v.and_then(|v| v.parse().ok())).collect::<Int64Array>()),
            DataType::Float64 => Arc::new(values.map(|v| v.and_then(|v| v.parse().ok())).collect::<Float64Array>()),
            _ => words(values),
        }
    }
}

impl KeyColumns {
    pub fn new(manifest: &RunManifest) -> KeyColumns {
        let column = |key: &String| SweptColumn::new(key, manifest.points.iter().filter_map(|point| swept(point, key)));
        KeyColumns { swept: manifest.sweep_keys.iter().map(column).collect() }
    }
    pub fn fields(&self) -> Vec<Field> {
        KEYS.iter().map(Note::field).chain(self.swept.iter().map(SweptColumn::field)).collect()
    }
    /// Returns the columns for `n` rows of a point.
    pub fn arrays(&self, key: &PointKey, n: usize) -> Vec<ArrayRef> {
        let mut arrays: Vec<ArrayRef> = vec![
            word(Some(&key.id), n),
            word(Some(&key.system), n),
            Arc::new(UInt64Array::from_iter_values(std::iter::repeat_n(key.seed, n))),
        ];
        for column in &self.swept {
            let value = swept(key, &column.key);
            arrays.push(match column.ty {
                DataType::Dictionary(..) => word(value, n),
                _ => column.array(std::iter::repeat_n(value, n)),
            });
        }
        arrays
    }
}

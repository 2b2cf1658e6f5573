//! Refuses filters that expect names that the results do not have.

use crate::error::{Error, Result};
use crate::filter::{Filter, Name, Named};
use crate::manifest::PointManifest;
use crate::parquet;
use crate::results::Results;
use arrow_array::Array;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int32Type, UInt32Type, UInt64Type};
use base::params::nearest;

/// Fails if a filter expects a workload that no run has, or a number of a host, a group or a flow beyond those of all runs. A
/// filter that no flow matches for another reason is not refused: zero flows are an answer.
pub fn refuse_absent(runs: &[Results], filter: &Filter) -> Result<()> {
    let points: Vec<_> = runs.iter().flat_map(|run| run.done().map(move |point| (run, point))).collect();
    for named in filter.named() {
        let mut known = Known::default();
        for (run, point) in &points {
            known.read(run, point, named.column)?;
            if known.has(&named.name) {
                break;
            }
        }
        if !points.is_empty() && !known.has(&named.name) {
            let (message, hint) = known.refusal(&named);
            return Err(filter.wrong(&named, message, hint).into());
        }
    }
    Ok(())
}

/// The names or numbers of a column.
#[derive(Default)]
struct Known {
    words: Vec<String>,
    range: Option<(u64, u64)>,
}

impl Known {
    /// Adds those of a point.
    fn read(&mut self, run: &Results, point: &PointManifest, name: &str) -> Result<()> {
        let path = run.flows_file(point)?;
        for batch in parquet::read(&path, Some(&[name]))? {
            let batch = batch.map_err(|e| Error::damaged(&path, e))?;
            let column = batch.column_by_name(name).and_then(|column| self.add(column));
            column.ok_or_else(|| Error::damaged(&path, "its columns are not those of this program"))?;
        }
        Ok(())
    }
    /// Adds those of a column. `None` if the column has another type.
    fn add(&mut self, column: &dyn Array) -> Option<()> {
        if let Some(words) = column.as_dictionary_opt::<Int32Type>() {
            // The dictionary has all workloads of the scenario, also those without flows.
            for word in words.values().as_string_opt::<i32>()?.iter().flatten() {
                if !self.words.iter().any(|known| known == word) {
                    self.words.push(word.to_owned());
                }
            }
            return Some(());
        }
        let numbers: Vec<u64> = match column.as_primitive_opt::<UInt32Type>() {
            Some(numbers) => numbers.iter().flatten().map(u64::from).collect(),
            None => column.as_primitive_opt::<UInt64Type>()?.iter().flatten().collect(),
        };
        for number in numbers {
            let (low, high) = self.range.unwrap_or((number, number));
            self.range = Some((low.min(number), high.max(number)));
        }
        Some(())
    }
    fn has(&self, name: &Name<'_>) -> bool {
        match name {
            Name::Word(word) => self.words.iter().any(|known| known == word),
            Name::Number(number) => self.range.is_some_and(|(low, high)| (low as f64..=high as f64).contains(number)),
        }
    }
    /// Returns the message and the hint for a name that is not known.
    fn refusal(&self, named: &Named<'_>) -> (String, String) {
        let column = named.column;
        match named.name {
            Name::Word(word) => {
                let near = nearest(word, self.words.iter().map(String::as_str));
                let did = near.map_or(String::new(), |near| format!("; did you mean \"{near}\"?"));
                (format!("there is no {column} \"{word}\"{did}"), format!("`{column}` is one of {}", self.words.join(", ")))
            }
            Name::Number(number) => {
                let all = self.range.map_or("null in all flows".to_owned(), |(low, high)| format!("a number from {low} to {high}"));
                (format!("no flow has `{column}` = {number}"), format!("`{column}` is {all}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chosen::tests::results;

    #[test]
    fn names_that_no_flow_has_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let runs = [results(dir.path())];
        let absent = |text: &str| refuse_absent(&runs, &Filter::parse(text).unwrap()).map_err(|e| e.to_string());
        for known in
            ["workload != 'web'", "not workload == 'incast'", "group_id == 7", "group_id == null", "flow_id == 4", "src == 0"]
        {
            assert_eq!(absent(known), Ok(()), "{known}");
        }
        // Numbers that measure something may be any: no flow matches.
        assert_eq!(absent("size_bytes == 1 or timeouts == 99 or src > 1000"), Ok(()));
        let wrong = absent("size_bytes > 3 and workload == 'wbe'").unwrap_err();
        assert!(wrong.starts_with("there is no workload \"wbe\"; did you mean \"web\"?\n  size_bytes"), "{wrong}");
        assert!(wrong.ends_with(&format!("\n  {}^\nhint: `workload` is one of web, incast", " ".repeat(31))), "{wrong}");
        for (text, hint) in [
            ("workload != 'incats'", "did you mean \"incast\"?"),
            ("not (workload == 'xyz')", "is one of web, incast"),
            ("flow_id = 5", "`flow_id` is a number from 0 to 4"),
            ("group_id == 8", "`group_id` is a number from 7 to 7"),
            ("src != 99", "`src` is a number from"),
            ("dst == -1", "no flow has `dst` = -1"),
        ] {
            assert!(absent(text).unwrap_err().contains(hint), "{text}");
        }
    }
}

//! The table of groups of flows: when each group began and finished, and its goodput.

use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::grouped::{Group, groups};
use crate::manifest::{PointKey, PointManifest};
use crate::results::Results;
use crate::schema::GROUPS;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{Array as _, ArrayRef, Float64Array, Int64Array, RecordBatch, UInt64Array};
use sim::outcome::FlowRow;
use std::sync::Arc;

/// Returns one row per point and group that began, ordered by the group's number, over the flows
/// that count or that a filter chooses.
pub fn table(results: &Results, filter: Option<&Filter>) -> Result<RecordBatch> {
    let mut rows: Vec<(&PointKey, u64, Group)> = Vec::new();
    for point in results.done() {
        let flows = read(results, point, filter)?;
        let found = groups(&flows.iter().filter(|flow| flow.start_ps.is_some()).collect::<Vec<_>>());
        rows.extend(found.into_iter().map(|(id, group)| (&point.key, id, group)));
    }
    let count =
        |of: fn(&Group) -> u64| -> ArrayRef { Arc::new(UInt64Array::from_iter_values(rows.iter().map(|(.., group)| of(group)))) };
    let time = |of: fn(&Group) -> Option<u64>| -> ArrayRef {
        Arc::new(rows.iter().map(|(.., group)| of(group).map(|ps| ps as i64)).collect::<Int64Array>())
    };
    let own: Vec<ArrayRef> = vec![
        Arc::new(UInt64Array::from_iter_values(rows.iter().map(|(_, id, _)| *id))),
        count(|group| group.flows),
        count(|group| group.unfinished),
        time(|group| Some(group.first_start_ps)),
        time(|group| group.fct_ps().map(|fct| group.first_start_ps + fct)),
        time(Group::fct_ps),
        Arc::new(rows.iter().map(|(.., group)| group.goodput_bps()).collect::<Float64Array>()),
    ];
    let keys: Vec<&PointKey> = rows.iter().map(|(key, ..)| *key).collect();
    Ok(results.keyed(&keys, GROUPS, own, "one row per point and group of flows that began"))
}

/// Reads the flows of a point with the fields that groups need.
fn read(results: &Results, point: &PointManifest, filter: Option<&Filter>) -> Result<Vec<FlowRow>> {
    let path = &*results.flows_file(point)?;
    let mut found = Vec::new();
    for batch in results.chosen(point, &["group_id", "size_bytes", "start_ps", "finish_ps"], filter)? {
        let column = |name| batch.column_by_name(name).ok_or_else(|| Error::damaged(path, format!("it has no column `{name}`")));
        let (groups, sizes) =
            (column("group_id")?.as_primitive_opt::<UInt64Type>(), column("size_bytes")?.as_primitive_opt::<UInt64Type>());
        let (starts, ends) =
            (column("start_ps")?.as_primitive_opt::<Int64Type>(), column("finish_ps")?.as_primitive_opt::<Int64Type>());
        let (Some(groups), Some(sizes), Some(starts), Some(ends)) = (groups, sizes, starts, ends) else {
            return Err(Error::damaged(path, "its columns are not those of this program"));
        };
        let time = |times: &arrow_array::PrimitiveArray<Int64Type>, i| times.is_valid(i).then(|| times.value(i) as u64);
        found.extend((0..batch.num_rows()).map(|i| FlowRow {
            group_id: groups.is_valid(i).then(|| groups.value(i)),
            size_bytes: sizes.value(i),
            start_ps: time(starts, i),
            finish_ps: time(ends, i),
            ..FlowRow::default()
        }));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::FlowColumns;
    use crate::manifest::Ran;
    use crate::results::tests::{outcome, run_manifest};
    use crate::run_dir::RunDir;

    #[test]
    fn groups_begin_with_the_first_start_and_end_with_the_last_finish() {
        let dir = tempfile::tempdir().unwrap();
        let run = RunDir::take(dir.path()).unwrap();
        let key = PointKey { id: "a-1".into(), system: "A".into(), seed: 1, swept: Vec::new() };
        let mut outcome = outcome(5);
        let times = [(Some(10), Some(30)), (Some(20), Some(90)), (Some(40), None), (Some(50), Some(60)), (None, None)];
        for (flow, (group, (start, finish))) in outcome.flows.iter_mut().zip([1, 1, 2, 2, 3].into_iter().zip(times)) {
            (flow.group_id, flow.start_ps, flow.finish_ps, flow.size_bytes) = (Some(group), start, finish, 500);
        }
        run.write_point(&key, &outcome, &Ran::default(), (&["web".to_owned()], &FlowColumns::default())).unwrap();
        run.write_manifest(&run_manifest(&[key])).unwrap();
        let table = table(&Results::open(dir.path()).unwrap(), None).unwrap();
        let numbers = |name: &str| table.column_by_name(name).unwrap().as_primitive::<UInt64Type>().values().to_vec();
        let times = |name: &str| table.column_by_name(name).unwrap().as_primitive::<Int64Type>().iter().collect::<Vec<_>>();
        assert_eq!([numbers("group_id"), numbers("flows"), numbers("unfinished")], [[1, 2], [2, 2], [0, 1]]);
        assert_eq!(
            [times("start_ps"), times("finish_ps"), times("fct_ps")],
            [[Some(10), Some(40)], [Some(90), None], [Some(80), None]]
        );
        let goodput = table.column_by_name("goodput_bps").unwrap().as_primitive::<arrow_array::types::Float64Type>();
        assert_eq!(goodput.iter().collect::<Vec<_>>(), [Some(1000.0 * 8e12 / 80.0), None]);
    }
}

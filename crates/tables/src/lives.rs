//! Start and finish times of the flows of a run.

use crate::error::{Error, Result};
use crate::manifest::PointManifest;
use crate::parquet;
use crate::results::Results;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int64Type, UInt32Type};

/// The start and finish time of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowLife {
    /// The flow.
    pub flow_id: u32,
    /// The start time; `None` if the flow never began.
    pub start_ps: Option<u64>,
    /// The finish time; `None` if the flow did not finish.
    pub finish_ps: Option<u64>,
}

impl Results {
    /// Returns the start and finish times of all flows of a point, ordered by id.
    pub fn lives(&self, point: &PointManifest) -> Result<Vec<FlowLife>> {
        let path = self.flows_file(point)?;
        let mut found = Vec::new();
        for batch in parquet::read(&path, Some(&["flow_id", "start_ps", "finish_ps"]))? {
            let batch = batch.map_err(|e| Error::damaged(&path, e))?;
            let column =
                |name| batch.column_by_name(name).ok_or_else(|| Error::damaged(&path, format!("it has no column `{name}`")));
            let ids = column("flow_id")?.as_primitive_opt::<UInt32Type>();
            let starts = column("start_ps")?.as_primitive_opt::<Int64Type>();
            let finishes = column("finish_ps")?.as_primitive_opt::<Int64Type>();
            let (Some(ids), Some(starts), Some(finishes)) = (ids, starts, finishes) else {
                return Err(Error::damaged(&path, "its columns are not those of this program"));
            };
            let time = |ps: Option<i64>| ps.and_then(|ps| u64::try_from(ps).ok());
            let rows = ids.iter().zip(starts).zip(finishes);
            found.extend(rows.filter_map(|((id, start), finish)| {
                Some(FlowLife { flow_id: id?, start_ps: time(start), finish_ps: time(finish) })
            }));
        }
        found.sort_by_key(|life| life.flow_id);
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::FlowColumns;
    use crate::manifest::{PointKey, Ran};
    use crate::results::tests::{outcome, run_manifest};
    use crate::run_dir::RunDir;

    #[test]
    fn a_flow_that_did_not_finish_has_no_end() {
        let dir = tempfile::tempdir().unwrap();
        let run = RunDir::take(dir.path()).unwrap();
        let key = PointKey { id: "a-1".into(), system: "A".into(), seed: 1, swept: Vec::new() };
        let mut outcome = outcome(3);
        outcome.flows[1].finish_ps = None;
        (outcome.flows[2].start_ps, outcome.flows[2].finish_ps) = (None, None);
        run.write_point(&key, &outcome, &Ran::default(), (&["web".to_owned()], &FlowColumns::default())).unwrap();
        run.write_manifest(&run_manifest(&[key])).unwrap();
        let results = Results::open(dir.path()).unwrap();
        let lives = results.lives(&results.points[0]).unwrap();
        let rows =
            outcome.flows.iter().map(|row| FlowLife { flow_id: row.flow_id, start_ps: row.start_ps, finish_ps: row.finish_ps });
        assert_eq!(lives, rows.collect::<Vec<_>>());
        assert!(lives[0].finish_ps.is_some());
    }
}

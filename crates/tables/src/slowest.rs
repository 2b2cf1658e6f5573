//! The flows of a point with the largest slowdown.

use crate::error::{Error, Result};
use crate::manifest::PointManifest;
use crate::results::Results;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, UInt32Type};

impl Results {
    /// Returns the `n` flows of a point with the largest slowdown, among the flows that count and
    /// finished, as (slowdown, flow id). The slowest flow comes first; equally slow flows are
    /// ordered by id.
    pub fn slowest(&self, point: &PointManifest, n: usize) -> Result<Vec<(f64, u32)>> {
        let path = self.flows_file(point)?;
        let mut found: Vec<(f64, u32)> = Vec::new();
        for batch in self.chosen(point, &["flow_id", "slowdown"], None)? {
            let column =
                |name| batch.column_by_name(name).ok_or_else(|| Error::damaged(&path, format!("it has no column `{name}`")));
            let (ids, slowdowns) = (column("flow_id")?, column("slowdown")?);
            let (ids, slowdowns) = (ids.as_primitive_opt::<UInt32Type>(), slowdowns.as_primitive_opt::<Float64Type>());
            let (Some(ids), Some(slowdowns)) = (ids, slowdowns) else {
                return Err(Error::damaged(&path, "its columns are not those of this program"));
            };
            found.extend(slowdowns.iter().zip(ids).filter_map(|(slowdown, id)| Some((slowdown?, id?))));
            found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            found.truncate(n);
        }
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
    fn the_slowest_flows_come_first() {
        let dir = tempfile::tempdir().unwrap();
        let run = RunDir::take(dir.path()).unwrap();
        let key = PointKey { id: "a-1".into(), system: "A".into(), seed: 1, swept: Vec::new() };
        let mut outcome = outcome(5);
        outcome.flows[4].finish_ps = None;
        outcome.flows[1].finish_ps = outcome.flows[3].finish_ps;
        outcome.flows[2].measured = false;
        run.write_point(&key, &outcome, &Ran::default(), (&["web".to_owned()], &FlowColumns::default())).unwrap();
        run.write_manifest(&run_manifest(&[key])).unwrap();
        let results = Results::open(dir.path()).unwrap();
        let found = results.slowest(&results.points[0], 3).unwrap();
        assert_eq!(found, [(4000.0, 1), (4000.0, 3), (1000.0, 0)]);
    }
}

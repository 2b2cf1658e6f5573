//! The command `flowloom merge`.

use crate::args::MergeArgs;
use crate::text::{are, count};
use crate::{Console, Failure, Outcome, exit, python, sweep};

/// Joins the results of shards.
pub fn merge(args: &MergeArgs, console: &mut Console<'_>) -> Result<Outcome, Failure> {
    let merged = tables::merge(&args.dirs, &args.out).map_err(sweep::Error::from)?;
    let (done, all) = (merged.done().count(), merged.manifest.points.len());
    console.err(&format!("{} of {all} joined\nresults: {}\n", count(done, "point"), args.out.display()));
    let missing = all - done;
    if missing > 0 {
        let first = merged.manifest.points.iter().find(|key| merged.done().all(|point| point.key != **key));
        let first = first.map_or(String::new(), |key| format!(", such as `{}`", key.id));
        console.err(&format!(
            "incomplete: {} missing from all folders{first}; `flowloom run` with `--out {}` runs the missing points\n",
            are(missing, "point"),
            args.out.display()
        ));
    }
    let failed = args.strict && missing > 0;
    Ok(Outcome::Python(python::summary(&args.out, if failed { exit::CHECK } else { exit::DONE })))
}

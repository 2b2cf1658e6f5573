//! Runs a plan. With `seed = "auto"` it runs in rounds with more and more seeds, until the metric
//! has the requested precision.
//!
//! Whether a round is enough depends only on the metrics of its seeds. So the same seeds are run
//! for every value of `--jobs`, and a run that was stopped continues in the same round.

use crate::prepare::Prepared;
use crate::sweep::{self, Error, Report, Settings, Tick};
use crate::text::count;
use scenario::seeds::AutoSeedRule;
use scenario::{Diagnostics, Plan};
use sim::Continue;
use tables::Results;
use tables::results::{Of, SummaryRow};
use tables::stats::metric;

/// The error for a plan with `seed = "auto"` that should run in shards or on a cluster.
pub const NOT_APART: &str = "with `seed = \"auto\"` the number of seeds depends on the results of all points: the points cannot run in shards or on a cluster\n\
                             hint: write the seeds in the scenario, such as `seed = [1, 2, 3]`";

/// How a run with `seed = "auto"` ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    /// The number of seeds. Seeds 1 to this number were run.
    pub seeds: u32,
    /// Whether the metric has the requested precision. If not, the limit of seeds was reached.
    pub precise: bool,
    /// The message for the user.
    pub text: String,
}

/// Returns the error of a plan whose metric is unknown or depends on the machine.
pub fn no_such_metric(plan: &Plan) -> Option<&Diagnostics> {
    let auto = plan.auto.as_ref()?;
    metric(&auto.params.metric).is_none_or(|metric| metric.machine).then_some(&auto.no_such_metric)
}

/// Runs a plan like [`sweep::run`]. With `seed = "auto"` it runs as many seeds as are needed. The
/// second value is `None` without `seed = "auto"`, and if the run was stopped. `prepared` comes
/// from [`crate::prepare::prepare`]; with `seed = "auto"` each round prepares its own points.
pub fn run(
    plan: &Plan,
    prepared: &[Prepared],
    settings: &Settings<'_>,
    tick: &mut dyn FnMut(&Tick<'_>) -> Continue,
) -> Result<(Report, Option<Reached>), Error> {
    let Some(auto) = &plan.auto else { return Ok((sweep::run(plan, prepared, settings, tick)?, None)) };
    let settings = Settings { whole: Some(plan), ..settings.clone() };
    let (mut seeds, mut before): (u32, Option<Report>) = (0, None);
    loop {
        seeds = auto.next(seeds).unwrap_or(seeds);
        let drawn = sweep::prepare_patiently(plan.with_seeds(seeds), None, tick);
        if let (Err(Error::Stopped), Some(before)) = (&drawn, before.take_if(|_| drawn.is_err())) {
            return Ok((before, None));
        }
        let (part, prepared) = drawn?;
        let round = sweep::run(&part, &prepared, &settings, tick)?;
        let report = match before {
            None => round,
            Some(before) => Report {
                ran: before.ran + round.ran,
                kept: round.kept.saturating_sub(before.ran),
                events: before.events + round.events,
                hops: before.hops + round.hops,
                busy_s: before.busy_s + round.busy_s,
                wall_s: before.wall_s + round.wall_s,
                notes: [before.notes, round.notes].concat(),
                results: round.results,
            },
        };
        if !report.results.complete() {
            return Ok((report, None));
        }
        let reached = reached(auto, seeds, &report.results);
        if reached.precise || auto.next(seeds).is_none() {
            return Ok((report, Some(reached)));
        }
        before = Some(report);
    }
}

/// Returns whether the metric of every simulated system has the requested precision.
fn reached(auto: &AutoSeedRule, seeds: u32, results: &Results) -> Reached {
    let (name, precision) = (&auto.params.metric, auto.params.precision.0);
    let ideal = |system: &str| results.points.iter().any(|point| point.ideal && point.key.system == system);
    let rows = results.summary_rows(Of::All).expect("the metrics of all flows are in the manifests");
    let rows = rows.into_iter().filter(|row| row.metric.name == name && !ideal(&row.system));
    let widest = rows.map(|row| (width(&row), row)).max_by(|a, b| a.0.total_cmp(&b.0));
    let wanted = precision.0 as f64 / 1e9;
    let precise = widest.as_ref().is_some_and(|(width, _)| *width <= wanted);
    let (seeds_run, asked) = (count(seeds as usize, "seed"), 100.0 * wanted);
    let worst = widest.map_or("no system has a value".to_owned(), |(width, row)| match width.is_finite() {
        true => format!("the widest is {:.2} %, of {}", 100.0 * width, place(&row, results)),
        false => format!("{} has no value", place(&row, results)),
    });
    let text = match precise {
        true => format!("{seeds_run}: the 95 % intervals of `{name}` are within {asked} % of the mean; {worst}"),
        false => format!("{seeds_run}, the limit: the 95 % intervals of `{name}` are not within {asked} % of the mean; {worst}"),
    };
    Reached { seeds, precise, text }
}

/// Returns half the width of a confidence interval as a share of the mean. It is infinite if there
/// is no interval.
fn width(row: &SummaryRow) -> f64 {
    match (row.estimate.mean, row.estimate.ci95) {
        (_, Some((low, high))) if low == high => 0.0,
        (Some(mean), Some((low, high))) => (high - low) / 2.0 / mean.abs(),
        _ => f64::INFINITY,
    }
}

/// Formats a system and its swept values.
fn place(row: &SummaryRow, results: &Results) -> String {
    let keys = results.manifest.sweep_keys.iter().zip(&row.swept);
    let swept = keys.filter_map(|(key, value)| Some(format!(", {key} = {}", value.as_ref()?)));
    format!("`{}`{}", row.system, swept.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sim::EventOrder;
    use std::path::Path;

    fn plan(more: &str) -> Plan {
        let text = format!(
            "seed = \"auto\"\n{more}\n[topology]\nkind = \"star\"\nhosts = 4\n[workload.web]\nkind = \"poisson\"\nflows = 100\n\
             size = \"exponential\"\nmean = \"20KB\"\nload = [0.2, 0.6]\n[[system]]\ntransport = \"newreno\"\nqdisc = {{ kind = \"droptail\", limit = \"unlimited\" }}\n"
        );
        scenario::load(&text, "t.toml", ".".as_ref(), &scenario::Options::default()).unwrap_or_else(|e| panic!("{e}"))
    }
    fn run_in(dir: &Path, plan: &Plan, jobs: usize, tick: &mut dyn FnMut(&Tick<'_>) -> Continue) -> (Report, Option<Reached>) {
        run(plan, &[], &settings(dir, jobs), tick).unwrap()
    }
    fn settings(out: &Path, jobs: usize) -> Settings<'_> {
        Settings { jobs, threads: 1, order: EventOrder::Auto, out, profiles: &[], overwrite: false, whole: None, only: None }
    }
    /// Runs one round with this many seeds.
    fn run_part(dir: &Path, plan: &Plan, seeds: u32, jobs: usize) -> Report {
        let part = plan.with_seeds(seeds);
        let settings = Settings { whole: Some(plan), ..settings(dir, jobs) };
        sweep::run(&part, &crate::prepare::prepare(&part, None).unwrap(), &settings, &mut go_on).unwrap()
    }
    fn go_on(_: &Tick<'_>) -> Continue {
        Continue::Yes
    }

    #[test]
    fn seeds_are_added_until_the_metric_is_known_whatever_the_threads_do() {
        let plan = plan("precision = \"20%\"\nmetric = \"mean_fct_s\"");
        let [one, two] = [1, 3].map(|jobs| {
            let dir = tempfile::tempdir().unwrap();
            let (report, reached) = run_in(dir.path(), &plan, jobs, &mut go_on);
            let widths: Vec<f64> =
                report.results.summary_rows(Of::All).unwrap().iter().filter(|r| r.metric.name == "mean_fct_s").map(width).collect();
            assert!(widths.len() == 2 && widths.iter().all(|width| *width <= 0.20), "{widths:?}");
            let reached = reached.unwrap();
            assert!(reached.precise && reached.seeds > 3 && reached.seeds < 20, "{reached:?}");
            assert_eq!((report.results.points.len(), report.ran, report.kept), (2 * reached.seeds as usize, report.ran, 0));
            assert_eq!(report.ran, 2 * reached.seeds as usize);
            // The round before was not enough.
            let before = [3, 4, 6, 9, 13, 19].into_iter().rfind(|seeds| *seeds < reached.seeds).unwrap();
            let fewer = run_part(dir.path(), &plan, before, jobs);
            assert!(!super::reached(plan.auto.as_ref().unwrap(), before, &fewer.results).precise);
            reached
        });
        assert_eq!(one, two);
        assert!(one.text.contains("are within 20 % of the mean; the widest is "), "{}", one.text);
    }

    #[test]
    fn the_limit_ends_the_rounds_and_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let plan = plan("precision = \"0.1%\"\nmax_seeds = 5");
        let (report, reached) = run_in(dir.path(), &plan, 2, &mut go_on);
        let reached = reached.unwrap();
        assert_eq!((reached.precise, reached.seeds, report.results.points.len()), (false, 5, 10));
        assert!(
            reached.text.starts_with("5 seeds, the limit: the 95 % intervals of `mean_slowdown` are not within 0.1 %"),
            "{}",
            reached.text
        );
        assert!(reached.text.contains("`newreno`, workload.web.load = 0."), "{}", reached.text);
    }

    #[test]
    fn a_stopped_run_goes_on_and_ends_as_if_it_had_not_been_stopped() {
        let plan = plan("precision = \"0.1%\"\nmax_seeds = 6");
        let (whole, parts) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (_, wanted) = run_in(whole.path(), &plan, 1, &mut go_on);
        let (report, reached) = run_in(parts.path(), &plan, 1, &mut |tick| {
            if tick.points > 6 && tick.points_done > 6 { Continue::No } else { Continue::Yes }
        });
        assert!(reached.is_none() && !report.results.complete());
        let done = report.results.done().count();
        let (report, reached) = run_in(parts.path(), &plan, 1, &mut go_on);
        assert_eq!((report.kept, report.ran, reached), (done, 12 - done, wanted));
        for name in ["points.parquet", "summary.parquet"] {
            let [a, b] = [&whole, &parts].map(|dir| std::fs::read(dir.path().join(name)).unwrap());
            assert!(a == b, "{name}");
        }
    }

    #[test]
    fn a_signal_ends_the_drawing_of_flows() {
        let dir = tempfile::tempdir().unwrap();
        let text = plan("").resolved().replace("flows = 100", "flows = 3000000");
        let plan = scenario::load(&text, "t.toml", ".".as_ref(), &scenario::Options::default()).unwrap_or_else(|e| panic!("{e}"));
        let settings = settings(dir.path(), 1);
        let error = run(&plan, &[], &settings, &mut |_| Continue::No).unwrap_err();
        assert!(matches!(error, Error::Stopped), "{error}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_metric_must_exist_and_not_depend_on_the_machine() {
        for (name, known) in [("p99_slowdown", true), ("p98_slowdown", false), ("wall_s", false)] {
            let plan = plan(&format!("metric = \"{name}\""));
            let found = no_such_metric(&plan);
            assert_eq!(found.is_none(), known, "{name}");
            assert!(found.is_none_or(|found| found.to_string().contains("[t.toml:2:10]")), "{found:?}");
        }
    }
}

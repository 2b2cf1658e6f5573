//! The command `flowloom run`.

use crate::args::{RunArgs, Shard};
use crate::check::{load, warn};
use crate::clock::Watch;
use crate::prepare::prepare;
use crate::progress::Display;
use crate::rounds;
use crate::sweep::{Error, Report, Settings};
use crate::text::{are, count, duration, short};
use crate::{Console, Failure, Outcome, Signal, exit, python};
use scenario::{Memory, plain_name};
use sim::Continue;
use std::path::{Path, PathBuf};

/// Simulates a scenario and writes its results to a folder.
pub fn run(args: &RunArgs, console: &mut Console<'_>) -> Result<Outcome, Failure> {
    let mut planning = Display::new(console.terminal);
    let (scenario, style, watch) = (args.scenario.clone(), console.style(), Watch::start());
    let (shard, apart) = (args.shard, args.on.as_deref().filter(|on| *on != "local"));
    let is_apart = apart.is_some();
    let planned = move || {
        let mut plan = load(&scenario, style)?;
        if is_apart {
            // The points run on other machines, each with its own memory limit.
            plan.memory = Memory::UNLIMITED;
        }
        let only = shard.map(|shard| shard.points(plan.points.len()));
        // With `seed = "auto"` each round draws its own flows.
        let prepared = if plan.auto.is_some() { Vec::new() } else { prepare(&plan, only.as_deref()).map_err(Error::Input)? };
        Ok::<_, Failure>((plan, prepared, only))
    };
    let planned = console.patiently(planned, |err| planning.planning(watch.seconds(), err));
    planning.finish();
    let (plan, prepared, only) = planned??;
    warn(&plan, args.strict, console)?;
    let out = args.out.clone().unwrap_or_else(|| default_out(&plan.name, &args.scenario.profile, args.shard));
    if plan.auto.is_some() && (apart.is_some() || args.shard.is_some()) {
        return Err(Failure::input(rounds::NOT_APART));
    }
    if apart.is_some() {
        return Ok(Outcome::Python(python::run_on(args, &out)));
    }
    let settings = Settings {
        jobs: args.jobs.unwrap_or(0),
        threads: args.threads.0,
        order: args.engine.0,
        out: &out,
        profiles: &args.scenario.profile,
        overwrite: args.overwrite,
        whole: None,
        only: only.as_deref(),
    };
    let (mut display, mut stopped, mut noted) = (Display::new(console.terminal), None, 0);
    let ended = rounds::run(&plan, &prepared, &settings, &mut |tick| {
        tick.notes.iter().skip(noted).for_each(|note| console.err(&format!("{note}\n")));
        noted = noted.max(tick.notes.len());
        display.show(tick, console.err);
        stopped = (console.signals)().or(stopped);
        if stopped.is_some() { Continue::No } else { Continue::Yes }
    });
    display.finish();
    let (report, reached) = ended.map_err(|error| stopped_by(error.into(), stopped))?;
    let points = only.as_ref().map_or(report.results.manifest.points.len(), Vec::len);
    let left = points - report.ran - report.kept;
    report.notes.iter().skip(noted).for_each(|note| console.err(&format!("{note}\n")));
    console.err(&message(&report, &out, stopped.map_or(0, |_| left)));
    if let (Some(shard), Some(only)) = (args.shard, &only) {
        let (part, all) = (count(only.len(), "point"), plan.points.len());
        console.err(&format!("shard {} of {}: {part} of {all}; `flowloom merge` joins the shards\n", shard.number, shard.of));
    }
    console.err(&reached.as_ref().map_or(String::new(), |reached| format!("{}\n", reached.text)));
    // With `seed = "auto"`, a run that is stopped between two rounds has no points left, but it is
    // not precise yet.
    let unsure = plan.auto.is_some() && reached.is_none();
    if let Some(signal) = stopped.filter(|_| unsure || left > 0) {
        return Ok(Outcome::Exit(signal.exit()));
    }
    let unfinished: f64 = report.results.done().filter_map(|point| point.metric("unfinished")).sum();
    let imprecise = reached.is_some_and(|reached| !reached.precise);
    let failed = args.strict && (unfinished > 0.0 || imprecise);
    if args.strict && unfinished > 0.0 {
        console.err(&format!(
            "error: {} did not finish\nhint: write a later `end` in the scenario to give them more time\n",
            count(unfinished as usize, "flow")
        ));
    }
    Ok(Outcome::Python(python::summary(&out, if failed { exit::CHECK } else { exit::DONE })))
}

/// Returns a failure with the exit code of the signal that caused it, if a signal did.
fn stopped_by(failure: Failure, signal: Option<Signal>) -> Failure {
    match signal.filter(|_| failure.exit == exit::INTERRUPTED) {
        Some(signal) => Failure { exit: signal.exit(), ..failure },
        None => failure,
    }
}

/// Returns `results/<name>`, followed by the profiles and the shard.
pub fn default_out(name: &str, profiles: &[String], shard: Option<Shard>) -> PathBuf {
    let name = profiles.iter().fold(name.to_owned(), |name, profile| format!("{name}-{profile}"));
    let name = shard.map_or(name.clone(), |Shard { number, of }| format!("{name}-shard{number}of{of}"));
    Path::new("results").join(plain_name(&name))
}

/// Returns the message at the end of a run. `left` points were not run.
fn message(report: &Report, out: &Path, left: usize) -> String {
    let kept = if report.kept == 0 { String::new() } else { format!(", {} kept from an earlier run", report.kept) };
    let mut text = format!("{} run in {}{kept}", count(report.ran, "point"), duration(report.wall_s));
    if report.busy_s > 0.0 && report.events > 0 {
        let rate = |n: u64| short(n as f64 / report.busy_s);
        let (events, hops) = (rate(report.events), rate(report.hops));
        text.push_str(&format!(": {} events, {events} events/s and {hops} hops/s per core", short(report.events as f64)));
    }
    text.push_str(&format!("\nresults: {}\n", out.display()));
    for point in report.results.done() {
        if let Some(deadlock) = &point.deadlock {
            text.push_str(&format!("warning: deadlock in `{}`: {deadlock}\n", point.key.id));
        }
    }
    if left > 0 {
        text.push_str(&format!("stopped: {} left; run the same command again to continue\n", are(left, "point")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_go_to_a_folder_of_the_scenarios_name() {
        let out = |name, profiles: &[&str]| {
            let profiles: Vec<String> = profiles.iter().map(|name| (*name).to_owned()).collect();
            default_out(name, &profiles, None).display().to_string()
        };
        let share = default_out("demo", &["smoke".to_owned()], Some(Shard { number: 3, of: 10 }));
        assert_eq!(share, Path::new("results/demo-smoke-shard3of10"));
        assert_eq!(out("demo", &[]), "results/demo");
        assert_eq!(out("demo", &["smoke"]), "results/demo-smoke");
        assert_eq!(out("demo", &["literal", "smoke"]), "results/demo-literal-smoke");
        assert_eq!(out("a b", &[]), "results/a b");
        let odd = out("demo", &["../x"]);
        assert!(odd.starts_with("results/demo-..-x-") && odd != out("demo", &["..-x"]), "{odd}");
    }
}

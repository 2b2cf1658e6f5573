//! `flowloom run`

use crate::args::RunArgs;
use crate::check::{load, warn};
use crate::clock::Watch;
use crate::progress::Display;
use crate::rounds;
use crate::sweep::{self, Report, Settings};
use crate::text::{are, count, duration, short};
use crate::{Console, Failure, Outcome, Signal, exit, python};
use scenario::plain_name;
use sim::Continue;
use std::path::{Path, PathBuf};

/// Simulates a scenario and leaves its results in a folder.
pub fn run(args: &RunArgs, console: &mut Console<'_>) -> Result<Outcome, Failure> {
    let mut planning = Display::new(console.terminal);
    let (scenario, style, watch) = (args.scenario.clone(), console.style(), Watch::start());
    let planned = move || {
        let plan = load(&scenario, style)?;
        // With `seed = "auto"` each round draws its own flows.
        let prepared = if plan.auto.is_some() { Vec::new() } else { sweep::prepare(&plan)? };
        Ok::<_, Failure>((plan, prepared))
    };
    let planned = console.patiently(planned, |err| planning.planning(watch.seconds(), err));
    planning.finish();
    let (plan, prepared) = planned??;
    warn(&plan, args.strict, console)?;
    let out = args.out.clone().unwrap_or_else(|| default_out(&plan.name, &args.scenario.profile));
    let settings = Settings {
        jobs: args.jobs.unwrap_or(0),
        threads: args.threads.0,
        out: &out,
        profiles: &args.scenario.profile,
        overwrite: args.overwrite,
        whole: None,
    };
    let (mut display, mut stopped, mut begun) = (Display::new(console.terminal), None, false);
    let ended = rounds::run(&plan, &prepared, &settings, &mut |tick| {
        for note in tick.notes.iter().filter(|_| !begun) {
            console.err(&format!("{note}\n"));
        }
        begun |= !tick.notes.is_empty();
        display.show(tick, console.err);
        stopped = (console.signals)().or(stopped);
        if stopped.is_some() { Continue::No } else { Continue::Yes }
    });
    display.finish();
    let (report, reached) = ended.map_err(|error| stopped_by(error.into(), stopped))?;
    console.err(&told(&report, &out, stopped));
    console.err(&reached.as_ref().map_or(String::new(), |reached| format!("{}\n", reached.text)));
    // With `seed = "auto"` a run that is stopped between two rounds is complete as far as it went.
    let unsure = plan.auto.is_some() && reached.is_none();
    if let Some(signal) = stopped.filter(|_| unsure || !report.results.complete()) {
        return Ok(Outcome::Exit(signal.exit()));
    }
    let unfinished: f64 = report.results.done().filter_map(|point| point.metric("unfinished")).sum();
    let imprecise = reached.is_some_and(|reached| !reached.precise);
    let failed = args.strict && (unfinished > 0.0 || imprecise);
    if args.strict && unfinished > 0.0 {
        console.err(&format!(
            "error: {} did not finish\nhint: a later `end` in the scenario gives them more time\n",
            count(unfinished as usize, "flow")
        ));
    }
    Ok(Outcome::Python(python::summary(&out, if failed { exit::CHECK } else { exit::DONE })))
}

/// A failure with the exit code of the signal that came, if it came of one.
fn stopped_by(failure: Failure, signal: Option<Signal>) -> Failure {
    match signal.filter(|_| failure.exit == exit::INTERRUPTED) {
        Some(signal) => Failure { exit: signal.exit(), ..failure },
        None => failure,
    }
}

/// `results/<name>`, with the profiles behind it.
pub fn default_out(name: &str, profiles: &[String]) -> PathBuf {
    let name = profiles.iter().fold(name.to_owned(), |name, profile| format!("{name}-{profile}"));
    Path::new("results").join(plain_name(&name))
}

fn told(report: &Report, out: &Path, stopped: Option<Signal>) -> String {
    let kept = if report.kept == 0 { String::new() } else { format!(", {} kept from before", report.kept) };
    let mut text = format!("{} run in {}{kept}", count(report.ran, "point"), duration(report.wall_s));
    if report.busy_s > 0.0 && report.events > 0 {
        let rate = |n: u64| short(n as f64 / report.busy_s);
        let (events, hops) = (rate(report.events), rate(report.hops));
        text.push_str(&format!(": {} events, {events} events/s and {hops} hops/s per core", short(report.events as f64)));
    }
    text.push_str(&format!("\nresults: {}\n", out.display()));
    if stopped.is_some() && !report.results.complete() {
        let left = report.results.manifest.points.len() - report.results.done().count();
        text.push_str(&format!("stopped: {} left; the same command goes on from here\n", are(left, "point")));
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
            default_out(name, &profiles).display().to_string()
        };
        assert_eq!(out("demo", &[]), "results/demo");
        assert_eq!(out("demo", &["smoke"]), "results/demo-smoke");
        assert_eq!(out("demo", &["literal", "smoke"]), "results/demo-literal-smoke");
        assert_eq!(out("a b", &[]), "results/a b");
        let odd = out("demo", &["../x"]);
        assert!(odd.starts_with("results/demo-..-x-") && odd != out("demo", &["..-x"]), "{odd}");
    }
}

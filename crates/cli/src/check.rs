//! The command `flowloom check`.

use crate::args::{CheckArgs, CheckFormat, ScenarioArgs};
use crate::clock;
use crate::text::count;
use crate::{Console, Failure, Outcome, exit, prepare, rounds, sweep};
use base::params::Param as _;
use base::text::is_hidden;
use scenario::{Diagnostics, Options, Plan, QueueLength, Style};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

/// The reason why there is no plan.
enum Wrong {
    /// The scenario has errors.
    Scenario(Diagnostics),
    /// Another failure.
    Other(Failure),
}

impl Wrong {
    fn failure(self, style: Style) -> Failure {
        match self {
            Wrong::Scenario(found) => Failure { exit: exit::INPUT, text: found.render(style) },
            Wrong::Other(failure) => failure,
        }
    }
}

impl From<Failure> for Wrong {
    fn from(failure: Failure) -> Wrong {
        Wrong::Other(failure)
    }
}

impl From<sweep::Error> for Wrong {
    fn from(error: sweep::Error) -> Wrong {
        Wrong::Other(error.into())
    }
}

/// Checks a scenario and prints the whole plan, or errors and warnings as JSON.
pub fn check(args: &CheckArgs, console: &mut Console<'_>) -> Result<Outcome, Failure> {
    let (scenario, strict) = (args.scenario.clone(), args.strict);
    let plan = move || {
        let plan = read(&scenario)?;
        // With `--strict` a warning ends the check before any flow is drawn.
        if !strict || plan.warnings.items().is_empty() {
            prepare::prepare(&plan, None).map_err(sweep::Error::Input)?;
        }
        Ok::<_, Wrong>(plan)
    };
    let plan = console.patiently(plan, |_| {})?;
    if args.format == CheckFormat::Json {
        return print_json(args, plan, console);
    }
    let plan = plan.map_err(|wrong| wrong.failure(console.style()))?;
    warn(&plan, args.strict, console)?;
    console.out(plan.resolved())?;
    let ideals: BTreeSet<&str> = plan.points.iter().filter_map(|p| p.run.ideal.map(|ideal| ideal.label())).collect();
    let most = if plan.auto.is_some() { "at most " } else { "" };
    let mut parts = vec![format!("{most}{}", count(plan.points.len(), "point")), count(plan.labels.len() - ideals.len(), "system")];
    if !ideals.is_empty() {
        parts.push(count(ideals.len(), "ideal reference"));
    }
    console.err(&format!("`{}` is valid: {}\n", plan.name, parts.join(", ")));
    Ok(Outcome::Exit(exit::DONE))
}

/// Prints errors and warnings as one JSON object. The exit code is the same as with `--format text`.
fn print_json(args: &CheckArgs, plan: Result<Plan, Wrong>, console: &mut Console<'_>) -> Result<Outcome, Failure> {
    let (plan, found, more) = match plan {
        Ok(plan) => {
            let (found, more) = (diagnostics(&plan.warnings, "warning"), plan.warnings.more());
            (Some(plan), found, more)
        }
        Err(Wrong::Scenario(wrong)) => (None, diagnostics(&wrong, "error"), wrong.more()),
        Err(Wrong::Other(failure)) if failure.exit == exit::INPUT => (None, vec![without_place(&failure)], 0),
        Err(Wrong::Other(failure)) => return Err(failure),
    };
    let report = json!({
        "file": args.scenario.file.display().to_string(),
        "valid": plan.is_some(),
        "name": plan.as_ref().map(|plan| plan.name.as_str()),
        "points": plan.as_ref().map(|plan| plan.points.len()),
        "systems": plan.as_ref().map(|plan| plan.labels.as_slice()),
        "queues": plan.as_ref().map_or(Vec::new(), |plan| plan.queues.iter().map(queue).collect()),
        "diagnostics": found,
        "more": more,
    });
    console.out(&format!("{}\n", escaped_json(&report)))?;
    Ok(Outcome::Exit(match plan {
        None => exit::INPUT,
        Some(plan) if args.strict && !plan.warnings.items().is_empty() => exit::CHECK,
        Some(_) => exit::DONE,
    }))
}

/// Formats JSON with escapes for hidden characters, which names may contain.
fn escaped_json(value: &Value) -> String {
    let mut text = String::new();
    for c in format!("{value:#}").chars() {
        if is_hidden(c) && c != '\n' {
            text.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            text.push(c);
        }
    }
    text
}

/// A queue length that is set by a rule, as JSON.
fn queue(length: &QueueLength) -> Value {
    let swept: serde_json::Map<String, Value> = length.swept.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
    let at: Vec<Value> = length.at.iter().map(|(rate, limit)| json!({"rate_bps": rate.0, "length": limit.show()})).collect();
    json!({
        "system": length.system, "swept": swept, "qdisc": length.qdisc, "key": length.key, "rule": length.rule,
        "max_rtt_ps": length.max_rtt.0, "at": at,
    })
}

fn diagnostics(found: &Diagnostics, severity: &str) -> Vec<Value> {
    let one = |item: &scenario::Diagnostic| {
        let (end_line, end_col) = item.end;
        json!({
            "severity": severity, "file": item.file, "line": item.line, "col": item.col, "end_line": end_line, "end_col": end_col,
            "message": item.message, "label": item.label, "hint": item.hint,
        })
    };
    found.items().iter().map(one).collect()
}

/// An error without a place in the scenario, such as a missing file, as JSON.
fn without_place(failure: &Failure) -> Value {
    let (message, hint) = failure.text.split_once("\nhint: ").unwrap_or((&failure.text, ""));
    json!({"severity": "error", "message": message.trim_start_matches("error: "), "hint": hint})
}

/// Prints the warnings of a scenario. With `strict`, fails if there are any and reports them as
/// errors.
pub fn warn(plan: &Plan, strict: bool, console: &mut Console<'_>) -> Result<(), Failure> {
    if plan.warnings.items().is_empty() {
        return Ok(());
    }
    if strict {
        return Err(Failure { exit: exit::CHECK, text: plan.warnings.as_errors().render(console.style()) });
    }
    console.drawn(&format!("{}\n\n", plan.warnings.render(console.style())));
    Ok(())
}

/// Reads a scenario file.
pub fn load(args: &ScenarioArgs, style: Style) -> Result<Plan, Failure> {
    read(args).map_err(|wrong| wrong.failure(style))
}

/// Returns the keys that options set, with their values.
pub fn overrides(args: &ScenarioArgs) -> Vec<(String, String)> {
    let ideal = args.ideal.iter().map(|ideals| {
        let names = ideals.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
        ("ideal".to_owned(), format!("[{names}]"))
    });
    args.set.iter().cloned().chain(ideal).collect()
}

/// An example in the repository, for the hint if the command runs there.
const EXAMPLE: &str = "examples/demo.toml";

fn read(args: &ScenarioArgs) -> Result<Plan, Wrong> {
    let file = args.file.display().to_string();
    let text = std::fs::read(&args.file).map_err(|e| {
        let hint = if args.file.is_dir() {
            "give the scenario file, not its folder"
        } else if Path::new(EXAMPLE).is_file() {
            "give the path of a scenario, such as `examples/demo.toml`"
        } else {
            "give the path of a scenario; `flowloom examples demo` copies an example to this folder"
        };
        Failure::input(format!("cannot read `{file}`: {}\nhint: {hint}", e.kind()))
    })?;
    let text = String::from_utf8(text).map_err(|e| {
        Failure::input(format!("`{file}` is not UTF-8 text: byte {}\nhint: scenarios are TOML", e.utf8_error().valid_up_to()))
    })?;
    let memory = clock::memory(args.memory);
    let options = Options { set: overrides(args), seeds: args.seed.clone(), profiles: args.profile.clone(), memory };
    let dir = args.file.parent().unwrap_or(Path::new("."));
    let plan = scenario::load(&text, &file, dir, &options).map_err(Wrong::Scenario)?;
    match rounds::no_such_metric(&plan) {
        Some(found) => Err(Wrong::Scenario(found.clone())),
        None => Ok(plan),
    }
}

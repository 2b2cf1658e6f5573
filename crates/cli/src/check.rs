//! `flowloom check`

use crate::args::{CheckArgs, ScenarioArgs};
use crate::text::count;
use crate::{Console, Failure, Outcome, exit, rounds, sweep};
use scenario::{Diagnostics, Options, Plan, Style};
use std::collections::BTreeSet;
use std::path::Path;

/// Checks a scenario and prints the whole plan.
pub fn check(args: &CheckArgs, console: &mut Console<'_>) -> Result<Outcome, Failure> {
    let (scenario, style, strict) = (args.scenario.clone(), console.style(), args.strict);
    let plan = move || {
        let plan = load(&scenario, style)?;
        // With `--strict` a warning ends the check before any flow is drawn.
        if !strict || plan.warnings.items().is_empty() {
            sweep::prepare(&plan)?;
        }
        Ok::<_, Failure>(plan)
    };
    let plan = console.patiently(plan, |_| {})??;
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

/// Shows the warnings about a scenario, each once. They are errors if `strict`.
pub fn warn(plan: &Plan, strict: bool, console: &mut Console<'_>) -> Result<(), Failure> {
    if plan.warnings.items().is_empty() {
        return Ok(());
    }
    if strict {
        return Err(Failure { exit: exit::CHECK, text: plan.warnings.as_errors().render(console.style()) });
    }
    console.err(&format!("{}\n\n", plan.warnings.render(console.style())));
    Ok(())
}

/// Reads a scenario file.
pub fn load(args: &ScenarioArgs, style: Style) -> Result<Plan, Failure> {
    let file = args.file.display().to_string();
    let text = std::fs::read(&args.file).map_err(|e| {
        let hint =
            if args.file.is_dir() { "give the file itself" } else { "give the path of a scenario, such as `examples/demo.toml`" };
        Failure::input(format!("cannot read `{file}`: {}\nhint: {hint}", e.kind()))
    })?;
    let text = String::from_utf8(text).map_err(|e| {
        Failure::input(format!("`{file}` is not UTF-8 text: byte {}\nhint: scenarios are TOML", e.utf8_error().valid_up_to()))
    })?;
    let mut set = args.set.clone();
    if let Some(ideals) = &args.ideal {
        set.push((
            "ideal".to_owned(),
            format!("[{}]", ideals.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")),
        ));
    }
    let options = Options { set, seeds: args.seed.clone(), profiles: args.profile.clone() };
    let dir = args.file.parent().unwrap_or(Path::new("."));
    let wrong = |found: &Diagnostics| Failure { exit: exit::INPUT, text: found.render(style) };
    let plan = scenario::load(&text, &file, dir, &options).map_err(|found| wrong(&found))?;
    rounds::no_such_metric(&plan).map_or(Ok(()), |found| Err(wrong(found)))?;
    Ok(plan)
}

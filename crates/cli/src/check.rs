//! `flowloom check`

use crate::args::{CheckArgs, ScenarioArgs};
use crate::output::{self, count};
use crate::{Failure, Outcome, exit, sweep};
use scenario::{Options, Plan};
use std::path::Path;

/// Checks a scenario and prints the whole plan.
pub fn check(args: &CheckArgs) -> Result<Outcome, Failure> {
    let plan = load(&args.scenario)?;
    sweep::prepare(&plan)?;
    output::out(plan.resolved());
    let systems = count(plan.labels.len(), "system");
    output::err(&format!("`{}` is sound: {}, {systems}\n", plan.name, count(plan.points.len(), "point")));
    Ok(Outcome::Exit(exit::DONE))
}

/// Reads a scenario file.
pub fn load(args: &ScenarioArgs) -> Result<Plan, Failure> {
    let file = args.file.display().to_string();
    let text = std::fs::read(&args.file).map_err(|e| {
        let hint =
            if args.file.is_dir() { "give the file itself" } else { "give the path of a scenario, such as `examples/demo.toml`" };
        Failure::input(format!("cannot read `{file}`: {e}\nhint: {hint}"))
    })?;
    let text = String::from_utf8(text).map_err(|e| {
        Failure::input(format!("`{file}` is not UTF-8 text: byte {}\nhint: scenarios are TOML", e.utf8_error().valid_up_to()))
    })?;
    let options = Options { set: args.set.clone(), seeds: args.seed.clone(), profile: args.profile.clone() };
    let dir = args.file.parent().unwrap_or(Path::new("."));
    Ok(scenario::load(&text, &file, dir, &options)?)
}

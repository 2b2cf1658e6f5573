//! The commands that Python carries out, with their options as data.

use crate::args::{Command, CopiesArgs, RunArgs, ScenarioArgs};
use crate::check;
use clap::ValueEnum;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Returns the options of a command that Python carries out.
pub fn options(command: Command) -> Value {
    match command {
        Command::Report(a) => {
            json!({"command": "report", "dirs": texts(&a.dirs), "where": a.r#where, "out": a.out.as_deref().map(text)})
        }
        Command::Table(a) => {
            let out = a.out.as_deref().map(text);
            json!({"command": "table", "dirs": [text(&a.dir)], "format": name(a.format), "metrics": a.metrics, "where": a.r#where, "at": a.at, "out": out})
        }
        Command::Plot(a) => {
            let format: Vec<String> = a.format.iter().map(|f| name(*f)).collect();
            json!({
                "command": "plot", "dirs": texts(&a.dirs), "kind": a.kind, "at": a.at, "where": a.r#where, "format": format, "out": a.out.as_deref().map(text),
                "systems": a.systems, "metrics": a.metrics, "statistic": a.statistic, "workload": a.workload,
                "span": a.span, "by": a.by.map(name), "style": name(a.style), "width": a.width, "height": a.height, "font": a.font,
            })
        }
        Command::Why(a) => {
            let (files, out) = (a.files.as_deref().map(text), a.out.as_deref().map(text));
            json!({
                "command": "why", "dirs": [text(&a.dir)], "flow": a.flow, "slowest": a.slowest, "group": a.group,
                "collective": a.collective, "point": a.point, "at": a.at, "where": a.r#where, "tail": a.tail, "limit": a.limit, "trace": a.trace,
                "files": files, "out": out,
            })
        }
        Command::Compare(a) => json!({"command": "compare", "dirs": texts(&a.dirs), "where": a.r#where}),
        Command::Export(a) => {
            let out = a.out.as_deref().map(text);
            json!({"command": "export", "dirs": [text(&a.dir)], "format": a.format, "point": a.point, "out": out})
        }
        Command::Play(a) => {
            let (files, out) = (a.files.as_deref().map(text), a.out.as_deref().map(text));
            json!({
                "command": "play", "dirs": [text(&a.dir)], "at": a.at, "around": a.around, "point": a.point, "files": files, "out": out,
            })
        }
        Command::Pack(a) => {
            let (scenario, out) = (a.scenario.as_deref().map(text), a.out.as_deref().map(text));
            json!({"command": "pack", "dirs": [text(&a.dir)], "scenario": scenario, "out": out})
        }
        Command::Examples(a) => copies("examples", &a.copies),
        Command::Lab(a) => copies("lab", &a.copies),
        Command::New(a) => {
            let out = a.out.as_deref().map(text);
            json!({"command": "new", "part": name(a.part), "name": a.name, "lang": name(a.lang), "out": out, "overwrite": a.overwrite})
        }
        Command::Papers(a) => {
            let profile = a.profile.join(",");
            let out = a.out.as_deref().map(text);
            let own = || Path::new("docs/papers").join(a.name.as_deref().unwrap_or_default());
            let page = a.update.as_ref().map(|page| text(page.as_deref().unwrap_or(&own())));
            json!({
                "command": "papers", "name": a.name, "figure": a.figure, "profile": profile, "jobs": a.jobs, "out": out,
                "overwrite": a.overwrite, "update": page, "strict": a.strict,
            })
        }
        Command::Seek(a) => {
            let out = a.out.as_deref().map(text);
            json!({"command": "seek", "file": text(&a.file), "jobs": a.jobs, "on": a.on, "out": out})
        }
        Command::Check(_)
        | Command::Run(_)
        | Command::Merge(_)
        | Command::List(_)
        | Command::Explain(_)
        | Command::Schema(_)
        | Command::Completions(_) => {
            unreachable!("done in Rust")
        }
    }
}

fn copies(command: &str, a: &CopiesArgs) -> Value {
    json!({"command": command, "names": a.names, "out": a.out.as_deref().map(text), "overwrite": a.overwrite})
}

/// Returns the options of a run on a cluster.
pub fn run_on(a: &RunArgs, out: &Path) -> Value {
    let ScenarioArgs { file, profile, seed, memory, .. } = &a.scenario;
    let memory = memory.map(|bytes| format!("{bytes}B"));
    json!({
        "command": "run_on", "file": text(file), "set": check::overrides(&a.scenario), "profile": profile.join(","), "seed": seed,
        "on": a.on, "jobs": a.jobs, "out": text(out), "overwrite": a.overwrite, "strict": a.strict,
        "memory": memory,
    })
}

/// Returns the options with which Python prints the summary of a run and ends with the code `exit`.
pub fn summary(dir: &Path, exit: u8) -> Value {
    json!({"command": "run", "dirs": [text(dir)], "exit": exit})
}

/// Returns the name of a value as written on the command line.
fn name(value: impl ValueEnum) -> String {
    value.to_possible_value().map(|found| found.get_name().to_owned()).unwrap_or_default()
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
fn texts(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().map(|path| text(path)).collect()
}

//! From text to plan: parse, apply profiles and settings, add the settings that entries imply,
//! read, check, expand, write the plan.

use crate::checks::check::check;
use crate::checks::cut_off::cut_off;
use crate::checks::hosts;
use crate::checks::no_path;
use crate::checks::notes::notes;
use crate::checks::queues;
use crate::checks::warn::warnings;
use crate::expand::expand;
use crate::files::Files;
use crate::memory::Memory;
use crate::plan::draft::Draft;
use crate::plan::keys::plain_name;
use crate::plan::measure::CountedFlows;
use crate::plan::resolved::{Origins, of_events, of_plan};
use crate::plan::seeds::AutoSeedRule;
use crate::plan::spec::{Options, Plan, QueueLength};
use crate::read;
use crate::read::implied;
use crate::read::layers::Layers;
use crate::read::short_forms::expand_short_forms;
use crate::text::diag::{Diagnostics, Item, Place, Sources};
use crate::text::tree::{Node, Table, Value, parse_file};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// Reads and checks a scenario. `file` is its name in messages, `dir` the folder that its paths are relative to.
pub fn load(text: &str, file: &str, dir: &Path, options: &Options) -> Result<Plan, Diagnostics> {
    let mut sources = Sources::default();
    sources.add(file, text);
    let files = Arc::new(Files::new(dir));
    let mut syntax = Vec::new();
    let mut base = parse_file(text, &mut syntax);
    expand_short_forms(&mut base);
    let profiles = base.remove("profile").map(|e| e.node);

    let mut layers = Layers::new(base.clone());
    apply_profiles(&mut layers, profiles.as_ref(), &options.profiles, &mut sources);
    for (key, value) in &options.set {
        layers.set(key, value, &mut sources);
    }
    let Layers { mut root, problems: mut early, .. } = layers;
    implied::fill(&mut root, &files);
    let seeds = options.seeds.as_ref().map(|seeds| check_seeds(seeds, &mut sources, &mut early));
    let mut problems = early;
    let draft = read_and_check(&root, &files, seeds, options.memory, &mut problems);
    other_profiles(&base, profiles.as_ref(), options, &files, &mut problems);
    let draft = match draft {
        Some(draft) if syntax.is_empty() && problems.is_empty() => draft,
        _ => return Err(Diagnostics::new(sources, syntax, problems)),
    };
    let name = draft.name.clone().unwrap_or_else(|| stem(file));
    let origins = Origins { profiles: &options.profiles, name: &name, seeds_from_command_line: options.seeds.is_some() };
    let mut resolved = of_plan(&draft, &root, &origins);
    let warnings = warnings(&draft, &files);
    let notes = notes(&draft, &files);
    let hosts = hosts::lines(&draft);
    let queues = queues::lengths(&draft);
    let auto = draft.seeds.auto.clone();
    let places: Vec<Place> = draft.events.iter().map(|event| event.at).collect();
    let workloads: Vec<Place> = draft.workloads.iter().map(|workload| workload.at).collect();
    let apart = draft.topology.variants.iter().any(|variant| variant.value.apart);
    let mut plan = expand(draft, name, &files);
    let no_path = if apart { no_path::of_flows(&plan, &workloads) } else { None };
    if let Some(problem) = no_path.or_else(|| cut_off(&plan, &places)).or_else(|| never_steady(&plan, &root)) {
        return Err(Diagnostics::new(sources, Vec::new(), vec![problem]));
    }
    resolved.push_str(counted(&plan));
    resolved.push_str(&comments(&queues, hosts));
    resolved.push_str(&notes);
    resolved.push_str(&of_events(&plan));
    plan.resolved = resolved;
    plan.queues = queues;
    plan.auto = auto.map(|(params, at)| {
        let message = format!("`metric`: there is no metric `{}` whose precision can be measured", params.metric);
        let hint = "`flowloom list metrics` prints all metrics; metrics that depend on the machine cannot be used here";
        let item = Item::new(at, message, "must be a metric", hint);
        AutoSeedRule { params, no_such_metric: Diagnostics::new(sources.clone(), Vec::new(), vec![item]) }
    });
    plan.warnings = Diagnostics::new(sources, Vec::new(), warnings).into_warnings();
    Ok(plan)
}

/// Returns a comment that says which flows count, unless all flows count and the run starts in an
/// empty network.
fn counted(plan: &Plan) -> &'static str {
    match plan.points.iter().map(|point| point.run.counted()).find(|counted| *counted != CountedFlows::All) {
        Some(CountedFlows::Steady) => {
            "\n# flows: steady state: additional flows, open at the start (computed as fluids) and after the last flow, keep up the load and do\n\
             # not count; `[measure] flows = \"all\"` starts with an empty network\n"
        }
        Some(CountedFlows::Window) => {
            "\n# flows: only flows that start in the window of [measure] count; `flows = \"all\"` counts all flows\n"
        }
        _ => "",
    }
}

/// Returns an error for `flows = "steady"` if no workload is an open loop.
fn never_steady(plan: &Plan, root: &Table) -> Option<Item> {
    let entry = root.get("measure")?.node.table()?.get("flows")?;
    plan.points.first().filter(|point| point.run.measure.flows == CountedFlows::Steady && !point.run.has_open_loop())?;
    let message = "`flows`: no workload of `{}` can continue its load for ever".replace("{}", &plan.name);
    let hint = "add a `poisson` workload without `start` and `until`, or remove `flows`";
    Some(Item::new(entry.key_at, message, "there is no steady state", hint))
}

/// Returns queue lengths as comments, before the lines of hosts.
fn comments(queues: &[QueueLength], hosts: Vec<String>) -> String {
    const MOST: usize = 40;
    let mut lines: Vec<String> = queues.iter().take(MOST).map(queues::line).collect();
    if queues.len() > MOST {
        lines.push(format!("# and {} more lengths of queues\n", queues.len() - MOST));
    }
    lines.extend(hosts);
    if lines.is_empty() { String::new() } else { format!("\n{}", lines.concat()) }
}

/// Applies the chosen profiles to the file, in order.
fn apply_profiles(layers: &mut Layers, profiles: Option<&Node>, chosen: &[String], sources: &mut Sources) {
    const OPTION: &str = "--profile ";
    if chosen.is_empty() {
        return;
    }
    let source = sources.add("command line", format!("{OPTION}{}", chosen.join(",")));
    let mut start = OPTION.len();
    for (number, name) in chosen.iter().enumerate() {
        let at = Place::new(source, start..start + name.len());
        start += name.len() + 1;
        if chosen[..number].contains(name) {
            let hint = "profiles are applied in the order given: name each profile once";
            layers.problems.push(Item::new(at, format!("profile `{name}` is given twice"), "given before", hint));
        } else {
            layers.profile(profiles, name, number, at);
        }
    }
}

/// Reads and checks a scenario. Adds all problems to `problems`.
fn read_and_check(
    root: &Table,
    files: &Arc<Files>,
    seeds: Option<Vec<u64>>,
    memory: Memory,
    problems: &mut Vec<Item>,
) -> Option<Draft> {
    let draft = read::scenario(root, files, seeds, memory, problems)?;
    let found = check(&draft, files, !problems.is_empty());
    problems.extend(found);
    Some(draft)
}

/// Checks the seeds of the command line: at least one, all different.
fn check_seeds(seeds: &[u64], sources: &mut Sources, problems: &mut Vec<Item>) -> Vec<u64> {
    let text: Vec<String> = seeds.iter().map(u64::to_string).collect();
    let text = format!("--seed {}", text.join(","));
    let at = Place::new(sources.add("command line", &text), 7.min(text.len())..text.len());
    let different: BTreeSet<&u64> = seeds.iter().collect();
    if seeds.is_empty() || different.len() < seeds.len() {
        let message = if seeds.is_empty() { "no seeds" } else { "a seed is given twice" };
        problems.push(Item::new(at, message, "must be different numbers", "write `--seed 1,2,3`"));
        return vec![1];
    }
    seeds.to_vec()
}

/// Checks the profiles that are not chosen: with their keys, the scenario must be valid.
fn other_profiles(base: &Table, profiles: Option<&Node>, options: &Options, files: &Arc<Files>, problems: &mut Vec<Item>) {
    let Some(profiles) = profiles else { return };
    let Some(table) = profiles.table() else {
        let hint = "write a table [profile.smoke] with the keys to change";
        problems.push(Item::new(profiles.at, "`profile` is not a table", "must be a table of profiles", hint));
        return;
    };
    for entry in table.entries.iter().filter(|e| !options.profiles.contains(&e.key)) {
        let mut layers = Layers::new(base.clone());
        layers.profile(Some(profiles), &entry.key, 0, entry.key_at);
        implied::fill(&mut layers.root, files);
        read_and_check(&layers.root, files, None, options.memory, &mut layers.problems);
        let mut places = BTreeSet::from([entry.key_at, entry.node.at]);
        collect_places(&entry.node, &mut places);
        problems.extend(layers.problems.into_iter().filter(|p| places.contains(&p.at)));
    }
}

fn collect_places(node: &Node, places: &mut BTreeSet<Place>) {
    places.insert(node.at);
    match &node.value {
        Value::Scalar(_) => {}
        Value::List(nodes) => nodes.iter().for_each(|n| collect_places(n, places)),
        Value::Table(table) => table.entries.iter().for_each(|e| {
            places.insert(e.key_at);
            collect_places(&e.node, places);
        }),
    }
}

/// Returns the name of a scenario without `name`: the name of its file, without folder and extension.
fn stem(file: &str) -> String {
    let stem = Path::new(file).file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    if stem.is_empty() { "scenario".to_owned() } else { plain_name(&stem) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_comes_from_the_file() {
        for (file, name) in
            [("dir/merp tree.toml", "merp tree"), ("x", "x"), ("", "scenario"), (".toml", "toml-88451089"), ("a.b.toml", "a.b")]
        {
            assert_eq!(stem(file), name);
        }
    }
}

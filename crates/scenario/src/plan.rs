//! From text to plan: parse, lay profile and settings over, read, check, expand.

use crate::diag::{At, Diagnostics, Item, Sources};
use crate::event;
use crate::files::Files;
use crate::ideal::Ideal;
use crate::merge::{Layers, spell_out};
use crate::read::{Draft, Reading, is_plain_name};
use crate::resolved::{Voice, of_events, of_plan};
use crate::spec::{Options, Plan, Point, RunSpec, System, Traffic};
use crate::tree::{Node, Table, Value, parse_file};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// Reads and checks a scenario. `file` is its name in messages, `dir` the folder that its paths are relative to.
pub fn load(text: &str, file: &str, dir: &Path, options: &Options) -> Result<Plan, Diagnostics> {
    let mut sources = Sources::default();
    sources.add(file, text);
    let files = Arc::new(Files::new(dir));
    let mut syntax = Vec::new();
    let mut base = parse_file(text, &mut syntax);
    spell_out(&mut base);
    let profiles = base.remove("profile").map(|e| e.node);

    let mut layers = Layers::new(base.clone());
    if let Some(name) = &options.profile {
        let at = At::new(sources.add("command line", format!("--profile {name}")), 10..10 + name.len());
        layers.profile(profiles.as_ref(), name, at);
    }
    for (key, value) in &options.set {
        layers.set(key, value, &mut sources);
    }
    let Layers { root, problems: mut early, .. } = layers;
    let seeds = options.seeds.as_ref().map(|seeds| check_seeds(seeds, &mut sources, &mut early));
    let mut reading = Reading { files: &files, problems: early, seeds };
    let draft = reading.scenario(&root);
    let mut problems = reading.problems;
    other_profiles(&base, profiles.as_ref(), options.profile.as_deref(), &files, &mut problems);
    let draft = match draft {
        Some(draft) if syntax.is_empty() && problems.is_empty() => draft,
        _ => return Err(Diagnostics::new(sources, syntax, problems)),
    };
    let name = draft.name.clone().unwrap_or_else(|| stem(file));
    let voice =
        Voice { profile: options.profile.as_deref().unwrap_or(""), name: &name, seeds_from_command_line: options.seeds.is_some() };
    let mut resolved = of_plan(&draft, &root, &files, &voice);
    let places: Vec<At> = draft.events.iter().map(|event| event.at).collect();
    let mut plan = expand(draft, name, &files);
    if let Some(problem) = event::read::cut_off(&plan, &places) {
        return Err(Diagnostics::new(sources, Vec::new(), vec![problem]));
    }
    resolved.push_str(&of_events(&plan));
    plan.resolved = resolved;
    Ok(plan)
}

/// Seeds of the command line: at least one, all different.
fn check_seeds(seeds: &[u64], sources: &mut Sources, problems: &mut Vec<Item>) -> Vec<u64> {
    let text: Vec<String> = seeds.iter().map(u64::to_string).collect();
    let text = format!("--seed {}", text.join(","));
    let at = At::new(sources.add("command line", &text), 7.min(text.len())..text.len());
    let different: BTreeSet<&u64> = seeds.iter().collect();
    if seeds.is_empty() || different.len() < seeds.len() {
        let message = if seeds.is_empty() { "no seeds" } else { "a seed stands twice" };
        problems.push(Item::new(at, message, "must be different numbers", "write `--seed 1,2,3`"));
        return vec![1];
    }
    seeds.to_vec()
}

/// Profiles that were not chosen are checked too: their own keys must make a scenario that can run.
fn other_profiles(base: &Table, profiles: Option<&Node>, chosen: Option<&str>, files: &Arc<Files>, problems: &mut Vec<Item>) {
    let Some(profiles) = profiles else { return };
    let Some(table) = profiles.table() else {
        let hint = "write a table [profile.smoke] with the keys to change";
        problems.push(Item::new(profiles.at, "`profile` is not a table", "must be a table of profiles", hint));
        return;
    };
    for entry in table.entries.iter().filter(|e| Some(e.key.as_str()) != chosen) {
        let mut layers = Layers::new(base.clone());
        layers.profile(Some(profiles), &entry.key, entry.key_at);
        let mut reading = Reading { files, problems: layers.problems, seeds: None };
        reading.scenario(&layers.root);
        let mut places = BTreeSet::from([entry.key_at, entry.node.at]);
        collect_places(&entry.node, &mut places);
        problems.extend(reading.problems.into_iter().filter(|p| places.contains(&p.at)));
    }
}

fn collect_places(node: &Node, places: &mut BTreeSet<At>) {
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

/// The name of a scenario without `name`: its file's, without folder and extension.
fn stem(file: &str) -> String {
    let stem = Path::new(file).file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    let clean: String = stem.chars().map(|c| if c.is_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '-' }).collect();
    if is_plain_name(&clean) { clean } else { "scenario".to_owned() }
}

/// All points: systems by topologies by workloads by what a system sweeps, by seeds.
fn expand(draft: Draft, name: String, files: &Arc<Files>) -> Plan {
    let end = draft.head.latest_end();
    let mut plan = Plan { name, points: Vec::new(), sweep_keys: Vec::new(), labels: Vec::new(), resolved: String::new() };
    let traffic = workload_variants(&draft);
    let failures = event::read::variants(&draft);
    for section in &draft.systems {
        plan.labels.push(section.name.clone());
        for topology in &draft.topology.variants {
            let sample = draft.sample.as_ref().map(|(s, _)| s.sample(&topology.value.net));
            for ((workloads, offered), (failures, failing)) in traffic.iter().flat_map(|t| failures.iter().map(move |f| (t, f))) {
                for system in &section.variants {
                    let all = topology.swept.iter().chain(offered).chain(failing).chain(&system.swept).cloned();
                    let swept: Vec<(String, String)> = all.collect();
                    for &seed in &draft.seeds {
                        let run = RunSpec {
                            net: Arc::clone(&topology.value.net),
                            topology: topology.value.params.clone(),
                            mtu_bytes: draft.head.mtu.0 as u16,
                            header_bytes: draft.head.header.0 as u16,
                            end,
                            seed,
                            system: System::clone(&system.value),
                            workloads: workloads.clone(),
                            ideal: None,
                            failures: failures.clone(),
                            sample,
                            files: Arc::clone(files),
                        };
                        plan.points.push(Point { id: String::new(), label: section.name.clone(), seed, swept: swept.clone(), run });
                    }
                }
            }
        }
    }
    add_ideals(&mut plan, &draft.ideals);
    plan.sweep_keys = sweep_keys(&draft);
    name_points(&mut plan);
    plan
}

/// One point per ideal reference, network, workload and seed, behind those of the systems.
fn add_ideals(plan: &mut Plan, ideals: &[Ideal]) {
    let of_systems = plan.points.clone();
    for &ideal in ideals {
        let label = ideal.label().to_owned();
        let mut known = BTreeSet::new();
        for point in &of_systems {
            // What a system sweeps does not concern the flows.
            let swept: Vec<_> = point.swept.iter().filter(|(key, _)| !key.starts_with("system.")).cloned().collect();
            if known.insert((swept.clone(), point.seed)) {
                let run = RunSpec { ideal: Some(ideal), sample: None, failures: None, ..point.run.clone() };
                plan.points.push(Point { label: label.clone(), swept, run, ..point.clone() });
            }
        }
        plan.labels.push(label);
    }
}

type Named = Vec<(String, Traffic)>;

/// Every combination of the workloads' variants, the last workload fastest.
fn workload_variants(draft: &Draft) -> Vec<(Named, Vec<(String, String)>)> {
    let mut all = vec![(Named::new(), Vec::new())];
    for section in &draft.workloads {
        let name = section.name.trim_start_matches("workload.");
        let longer = all.into_iter().flat_map(|(workloads, swept)| {
            section.variants.iter().map(move |v| {
                let mut next = (workloads.clone(), swept.clone());
                next.0.push((name.to_owned(), v.value.clone()));
                next.1.extend(v.swept.iter().cloned());
                next
            })
        });
        all = longer.collect();
    }
    all
}

/// The swept keys of all sections, each once.
fn sweep_keys(draft: &Draft) -> Vec<String> {
    let topology = draft.topology.variants.iter().map(|v| &v.swept);
    let workloads = draft.workloads.iter().flat_map(|w| w.variants.iter().map(|v| &v.swept));
    let failure = draft.failure.iter().flat_map(|f| f.variants.iter().map(|v| &v.swept));
    let events = draft.events.iter().flat_map(|e| e.variants.iter().map(|v| &v.swept));
    let systems = draft.systems.iter().flat_map(|s| s.variants.iter().map(|v| &v.swept));
    let mut keys: Vec<String> = Vec::new();
    for (key, _) in topology.chain(workloads).chain(failure).chain(events).chain(systems).flatten() {
        if !keys.contains(key) {
            keys.push(key.clone());
        }
    }
    keys
}

/// Longest folder name.
const MAX_ID: usize = 120;

/// Gives every point its folder: `merp-load0.8-seed1`.
fn name_points(plan: &mut Plan) {
    let labels = unique(plan.labels.iter().map(|l| slug(l)).collect());
    let words: Vec<String> = plan.sweep_keys.iter().map(|key| short_key(key, &plan.sweep_keys)).collect();
    let mut used = BTreeSet::new();
    for point in &mut plan.points {
        let index = plan.labels.iter().position(|l| *l == point.label).expect("the label of a system");
        let mut id = labels[index].clone();
        for (key, value) in &point.swept {
            let word = plan.sweep_keys.iter().position(|k| k == key).map_or("", |i| words[i].as_str());
            id.push_str(&format!("-{word}{}", slug(value)));
        }
        id.push_str(&format!("-seed{}", point.seed));
        if id.len() > MAX_ID {
            let hash = xxh3_64(id.as_bytes());
            id.truncate(MAX_ID - 17);
            id.push_str(&format!("-{hash:016x}"));
        }
        let mut free = id.clone();
        for n in 2.. {
            if used.insert(free.clone()) {
                break;
            }
            free = format!("{id}-{n}");
        }
        point.id = free;
    }
}

/// The shortest end of a swept key that no other swept key has.
fn short_key(key: &str, all: &[String]) -> String {
    let ends = key.rmatch_indices('.').map(|(i, _)| &key[i + 1..]);
    let own = |end: &&str| all.iter().filter(|k| k.as_str() == *end || k.ends_with(&format!(".{end}"))).count() == 1;
    slug(ends.into_iter().find(own).unwrap_or(key))
}

/// Only `a-z`, `0-9`, `.`, `-` and `_`, and no dot or dash in front.
fn slug(text: &str) -> String {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '-' | '_');
    let mapped: String = text.to_lowercase().chars().map(|c| if fits(c) { c } else { '-' }).collect();
    let trimmed = mapped.trim_matches(['-', '.']);
    if trimmed.is_empty() { "x".to_owned() } else { trimmed.to_owned() }
}

/// Tells equal names apart by numbers.
fn unique(names: Vec<String>) -> Vec<String> {
    let mut used = BTreeSet::new();
    let mut out = Vec::new();
    for name in names {
        let mut free = name.clone();
        for n in 2.. {
            if used.insert(free.clone()) {
                break;
            }
            free = format!("{name}-{n}");
        }
        out.push(free);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_names_are_plain() {
        for (text, plain) in
            [("MERP", "merp"), ("0.8", "0.8"), ("../x", "x"), ("A b/ü", "a-b"), ("日本", "x"), ("10Gbps", "10gbps")]
        {
            assert_eq!(slug(text), plain);
        }
        assert_eq!(unique(vec!["a".into(), "a".into(), "a-2".into()]), ["a", "a-2", "a-2-2"]);
        let keys = ["workload.a.load", "workload.b.load", "system.agent.alpha"].map(str::to_owned);
        assert_eq!(keys.each_ref().map(|k| short_key(k, &keys)), ["a.load", "b.load", "alpha"]);
    }

    #[test]
    fn a_name_comes_from_the_file() {
        for (file, name) in
            [("dir/merp tree.toml", "merp-tree"), ("x", "x"), ("", "scenario"), (".toml", "scenario"), ("a.b.toml", "a.b")]
        {
            assert_eq!(stem(file), name);
        }
    }
}

//! Values that transports and policies derive from their parameters, the network and the workloads. `check` prints them as
//! comments after the plan.

use crate::files::Files;
use crate::plan::draft::{Draft, combinations};
use crate::system::envs::{self, ChosenValue, Envs};
use crate::system::slots::System;
use base::Offers;
use base::text::escaped;
use plugin::library::Code;
use proto::policy::Policy as _;
use std::collections::BTreeSet;

/// Returns a line for each note of each system, with the swept values that the note applies to.
pub(crate) fn notes(draft: &Draft, files: &Files) -> String {
    const MOST: usize = 40;
    let systems = draft.systems.iter().flat_map(|section| section.variants.iter().map(move |variant| (section, variant)));
    let systems: Vec<_> = systems.collect();
    let (mut lines, mut known) = (Vec::new(), BTreeSet::new());
    let by_packets = !draft.engine.variants.iter().all(|engine| engine.value.is_flow());
    for (workloads, swept) in combinations(&draft.workloads) {
        for topology in &draft.topology.variants {
            let offers = || {
                let each = workloads.iter().enumerate();
                each.map(|(i, demand)| envs::offered(&demand.workload, &draft.workload_env(&topology.value, files, i))).collect()
            };
            for (section, variant) in &systems {
                let envs = Envs::new(
                    draft.site(&topology.value),
                    variant.value.ports_and_router(),
                    variant.value.given(),
                    Offers::new(offers),
                );
                let with = topology.swept.iter().chain(&swept).chain(&variant.swept);
                let with: String = with.map(|(key, value)| format!(", {key} = {value}")).collect();
                let notes = of_policy(&variant.value, &envs);
                // Values that are equal for several swept values are listed once.
                let chosen = if by_packets { chosen(&variant.value, &envs, &notes) } else { Vec::new() };
                let chosen = chosen.into_iter().filter(|line| known.insert((section.name.clone(), line.clone())));
                lines
                    .extend(chosen.chain(notes).map(|line| format!("{}\n", escaped(&format!("# {}{with}: {line}", section.name)))));
            }
        }
    }
    let more = lines.len().saturating_sub(MOST);
    lines.truncate(MOST);
    if more > 0 {
        lines.push(format!("# and {more} more\n"));
    }
    lines.extend(code(draft));
    if lines.is_empty() { String::new() } else { format!("\n{}", lines.concat()) }
}

/// Returns a line for each plug-in that says where its code runs.
fn code(draft: &Draft) -> Vec<String> {
    let systems = draft.systems.iter().flat_map(|section| &section.variants).map(|variant| &variant.value);
    let plugins = systems.flat_map(System::plugins).filter(|plugin| !plugin.digest.is_empty());
    let mut lines: Vec<String> = Vec::new();
    for plugin in plugins {
        let line = match plugin.code {
            Code::Native => "native code, which runs with your rights: use only plug-ins that you trust",
            Code::Sandbox => "WebAssembly, which runs in a sandbox: no files, no clock",
            Code::Python => {
                "Python code, which runs with your rights, on one thread; a call takes longer than a packet of the simulator, so that runs take several times as long"
            }
        };
        let line = format!("# plug-in `{}` ({}): {line}\n", escaped(&plugin.file), plugin.name);
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// Returns the notes of a system's policy.
fn of_policy(system: &System, envs: &Envs<'_>) -> Vec<String> {
    let Some(policy) = &system.policy else { return Vec::new() };
    let notes = policy.build(&envs.transport(envs.fastest_host())).notes();
    notes.into_iter().map(|note| format!("{}: {note}", policy.name())).collect()
}

/// Returns a line for each entry with the values chosen for `auto`. The notes of a policy have its thresholds already.
fn chosen(system: &System, envs: &Envs<'_>, notes: &[String]) -> Vec<String> {
    let all = envs.chosen(&system.transport, system.policy.as_ref());
    let of_kind = |values: &[ChosenValue]| {
        let noted = |value: &&ChosenValue| notes.iter().any(|note| note.starts_with(&format!("{}: {} ", value.kind, value.key)));
        let values = values.iter().filter(|value| !noted(value)).map(|value| format!("{} = {}", value.key, value.value()));
        values.collect::<Vec<_>>().join("; ")
    };
    let lines = all.chunk_by(|a, b| a.kind == b.kind).map(|values| (values[0].kind, of_kind(values)));
    lines.filter(|(_, line)| !line.is_empty()).map(|(kind, line)| format!("{kind}: auto: {line}")).collect()
}

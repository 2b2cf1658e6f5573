//! Values that policies derive from their parameters and the workloads. `check` prints them as
//! comments after the plan.

use crate::files::Files;
use crate::plan::draft::{Draft, Section, Variant, combinations};
use crate::system::envs::{self, Envs};
use crate::system::slots::System;
use base::Offers;
use base::text::escaped;
use plugin::library::Code;
use proto::policy::Policy as _;

/// Returns a line for each note of each system, with the swept values that the note applies to.
pub(crate) fn notes(draft: &Draft, files: &Files) -> String {
    const MOST: usize = 40;
    let systems = draft.systems.iter().flat_map(|section| section.variants.iter().map(move |variant| (section, variant)));
    let systems: Vec<_> = systems.filter(|(_, variant)| variant.value.policy.is_some()).collect();
    let mut lines = Vec::new();
    for (workloads, swept) in if systems.is_empty() { Vec::new() } else { combinations(&draft.workloads) } {
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
                lines.extend(of_system(section, variant, &envs, with));
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

/// Returns the notes of a system in its environment.
fn of_system<'a>(
    section: &Section<System>,
    variant: &Variant<System>,
    envs: &Envs<'_>,
    swept: impl Iterator<Item = &'a (String, String)>,
) -> Vec<String> {
    let Some(policy) = &variant.value.policy else { return Vec::new() };
    let with: String = swept.map(|(key, value)| format!(", {key} = {value}")).collect();
    let notes = policy.build(&envs.transport(envs.fastest_host())).notes();
    notes.into_iter().map(|note| format!("# {}{with}: {}: {note}\n", section.name, policy.name())).collect()
}

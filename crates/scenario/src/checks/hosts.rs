//! How packets of each system reach the NIC: a comment line of the plan for each system, and a warning where systems with
//! different hosts are compared.

use crate::plan::draft::{Draft, Section, Variant, with_envs, with_slot};
use crate::system::slots::{HostKind, System};
use crate::text::diag::Item;
use crate::text::part::listed;
use base::text::escaped;
use proto::Transport as _;

/// A system and its first variant.
type FirstOf<'a> = (&'a Section<System>, &'a Variant<System>);

/// Returns a line that says which host each system has.
pub(crate) fn lines(draft: &Draft) -> Vec<String> {
    let mut lines = Vec::new();
    // The flow engine has no packets that wait.
    if draft.engine.variants.iter().all(|engine| engine.value.is_flow()) {
        return lines;
    }
    for (section, variant) in draft.systems.iter().flat_map(|section| section.variants.iter().map(move |v| (section, v))) {
        let line = format!("# {}: host: {}\n", escaped(&section.name), host(&variant.value, take_turns(draft, &variant.value)));
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

fn host(system: &System, turns: bool) -> &'static str {
    let classes = system.policy.as_ref().is_some_and(|policy| policy.meta().classes);
    match system.nic.kind {
        HostKind::Ns2 if system.nic.low_water_bytes.is_none() => {
            "`ns2`: all packets wait at the NIC, in a queue like those of switch ports"
        }
        _ if system.nic.low_water_bytes.is_none() => "all packets wait at the NIC, in a queue of its own limit",
        _ if !turns => "`pull`: the transport chooses the packet that the NIC asks for",
        HostKind::Pull if classes => "`pull`: the flow whose next packet has the best class or rank sends next",
        _ => "`pull`: flows take turns",
    }
}

/// Returns whether the flows of a host take turns, so that packets may wait at the NIC or with their flows. Other transports
/// choose packets in an order of their own.
fn take_turns(draft: &Draft, system: &System) -> bool {
    let built = draft.topology.variants.first();
    built.is_some_and(|built| {
        with_envs(draft, &built.value, system, |envs| {
            system.transport.build(&envs.transport(envs.fastest_host())).turns().is_some()
        })
    })
}

/// Warns of systems that are compared although the packets of one wait with their flows, and those of another at the NIC.
pub(super) fn warning(draft: &Draft) -> Option<Item> {
    let first = draft.systems.iter().filter_map(|section| Some((section, section.variants.first()?)));
    let turns = first.filter(|(_, variant)| take_turns(draft, &variant.value));
    let (push, pull): (Vec<FirstOf<'_>>, Vec<FirstOf<'_>>) =
        turns.partition(|(_, variant)| variant.value.nic.low_water_bytes.is_none());
    let (section, variant) = pull.first().filter(|_| !push.is_empty())?;
    let names = |some: &[FirstOf<'_>]| listed(some.iter().map(|(section, _)| section.name.as_str()));
    let message = format!("packets of {} wait with their flows, but packets of {} at the NIC", names(&pull), names(&push));
    let hint = "where packets wait at the sending host can decide the comparison: write the same `nic = \"ns2\"` or `nic = \"pull\"` \
                in all of these systems";
    Some(with_slot(section, variant, "nic", |part| Item::new(part.at_of("kind"), message, "not comparable", hint)))
}

//! Checks that the flow engine supports everything a scenario asks for. A system that needs packets
//! is an error, or runs under the packet engine only if the scenario sweeps both engines. A setting
//! that merely has no effect gives a warning.

use crate::plan::draft::{Draft, Section, Variant};
use crate::system::slots::{System, SystemPart};
use crate::text::diag::Item;
use crate::text::part::listed;
use base::Fraction;

/// The slots whose entries act on packets only.
const ON_PACKETS: [&str; 5] = ["qdisc", "buffer", "agent", "receiver", "nic"];

/// Returns the part of a system that the flow engine does not model, with message, label and hint.
pub(crate) fn refused(system: &System) -> Option<(SystemPart, [String; 3])> {
    // A router that needs an agent reads what the agent has recorded of packets.
    let why = |part: &SystemPart| match part.entry.meta.packets_only {
        "" if part.slot.name == "router" && !part.entry.meta.needs.agent.is_empty() => Some("it reads what agents see of packets"),
        // The flow engine has no packets for the calls of a policy, and packets of a policy would
        // not affect paths of flows.
        "" if part.slot.name == "policy" => Some("policies act on the packets that hosts send"),
        "" if part.entry.meta.many_paths => Some("hosts choose the paths of its packets, which the flow engine leaves to routers"),
        "" => None,
        why => Some(why),
    };
    let (part, why) = system.parts().into_iter().find_map(|part| Some((why(&part)?, part))).map(|(why, part)| (part, why))?;
    let noun = part.slot.room.noun;
    let message = format!("the flow engine does not model the {noun} `{}`: {why}", part.entry.name);
    let hint = format!("write `engine = \"packet\"`, or choose another {noun}");
    Some((part, [message, "needs the packet engine".to_owned(), hint]))
}

/// Returns warnings about systems that run under the packet engine only although the engine is
/// swept, or, if the scenario has no packet engine, about settings without effect.
pub(crate) fn without_effect(draft: &Draft) -> Vec<Item> {
    let engines = &draft.engine.variants;
    if !engines.iter().any(|variant| variant.value.is_flow()) {
        return Vec::new();
    }
    if !engines.iter().all(|variant| variant.value.is_flow()) {
        return draft.systems.iter().filter_map(packet_engine_only).collect();
    }
    let mut found: Vec<Item> = draft.systems.iter().filter_map(ignored_parts).collect();
    let lossy = |built: &Variant<crate::plan::draft::Built>| built.value.net.links().iter().any(|link| link.loss > Fraction(0));
    if draft.topology.variants.iter().any(lossy) {
        let hint = "remove `loss`, or write `engine = \"packet\"` to simulate losses";
        let message = "`topology.loss` has no effect: the flow engine has no packets to lose";
        found.push(Item::new(draft.topology.at, message, "no effect", hint));
    }
    let traced = draft.sample.as_ref().filter(|section| section.params.packets);
    found.extend(traced.map(|section| {
        let hint = "remove `packets`, or write `engine = \"packet\"` to trace packets";
        section.part().problem("packets", "the flow engine has no packets to trace", "no effect", hint)
    }));
    let tables = draft.sample.as_ref().filter(|section| section.params.agents);
    found.extend(tables.map(|section| {
        let hint = "remove `agents`, or write `engine = \"packet\"` to run the agents";
        section.part().problem("agents", "the flow engine runs no agents, so nothing is recorded", "no effect", hint)
    }));
    found
}

/// Returns a warning about a system if one of its variants needs packets.
fn packet_engine_only(section: &Section<System>) -> Option<Item> {
    let (part, [message, ..]) = section.variants.iter().find_map(|variant| refused(&variant.value))?;
    let at = section.variants.first()?.table.get(part.slot.name).map_or(section.at, |e| e.key_at);
    let message = format!("`{}` runs under the packet engine only: {message}", section.name);
    let hint = "results with `engine = \"flow\"` do not contain this system: to compare all systems, write `engine = \"packet\"`";
    Some(Item::new(at, message, "needs the packet engine", hint))
}

/// Returns a warning about the settings of a system that have no effect under the flow engine.
fn ignored_parts(section: &Section<System>) -> Option<Item> {
    let table = &section.variants.first()?.table;
    let kind_of = |slot: &str| Some(table.get(slot)?.node.table()?.get("kind")?.node.at);
    // A setting that an entry implies has the place of that entry's `kind`.
    let fillers: Vec<_> = ["transport", "policy", "agent"].into_iter().filter_map(kind_of).collect();
    let own = table.get("transport").and_then(|e| e.node.table()).into_iter().flat_map(|transport| &transport.entries);
    let own = own.filter(|e| e.key != "kind").map(|e| (format!("transport.{}", e.key), e.key_at));
    let parts = table.entries.iter().filter(|e| ON_PACKETS.contains(&e.key.as_str())).map(|e| (e.key.clone(), e.key_at));
    let written: Vec<_> = own.chain(parts).filter(|(_, at)| !fillers.contains(at)).collect();
    let (_, at) = written.first()?;
    let names = listed(written.iter().map(|(name, _)| name.as_str()));
    let message = format!("no effect under the flow engine: {names}");
    let hint = "the flow engine gives flows max-min fair rates, without transports or queues: remove these settings, or write \
                `engine = \"packet\"`";
    Some(Item::new(*at, message, "no effect", hint))
}

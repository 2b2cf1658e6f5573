//! What a scenario asks of the flow engine that this does not do. A system that needs packets is refused, or left to the packet engine if the scenario
//! sweeps both; what merely has no effect is a warning.

use crate::plan::draft::{Draft, Section, Variant};
use crate::system::slots::{System, SystemPart};
use crate::text::diag::Item;
use crate::text::part::listed;
use base::Fraction;

/// The slots that act on packets alone.
const ON_PACKETS: [&str; 5] = ["qdisc", "buffer", "agent", "receiver", "nic"];

/// The part of a system that means nothing to fluids, with what there is to say: message, label, hint.
pub(crate) fn refused(system: &System) -> Option<(SystemPart, [String; 3])> {
    // What needs an agent reads what the agent has seen of packets.
    let why = |part: &SystemPart| match part.entry.meta.packets_only {
        "" if part.slot.name == "router" && !part.entry.meta.needs.agent.is_empty() => Some("it reads what agents see of packets"),
        // Its packets would have no effect on the flow's path, and its calls no packets.
        "" if part.slot.name == "policy" => Some("policies act on the packets that hosts send"),
        "" if part.entry.meta.many_paths => Some("hosts choose the paths of its packets, which the flow engine leaves to routers"),
        "" => None,
        why => Some(why),
    };
    let (part, why) = system.parts().into_iter().find_map(|part| Some((why(&part)?, part))).map(|(why, part)| (part, why))?;
    let noun = part.slot.room.noun;
    let message = format!("the flow engine cannot stand for the {noun} `{}`: {why}", part.entry.name);
    let hint = format!("write `engine = \"packet\"`, or take another {noun}");
    Some((part, [message, "needs packets".to_owned(), hint]))
}

/// Warnings about systems that run by packets alone although the engine is swept, and about what has no effect where no variant runs by packets.
pub(crate) fn without_effect(draft: &Draft) -> Vec<Item> {
    let engines = &draft.engine.variants;
    if !engines.iter().any(|variant| variant.value.is_flow()) {
        return Vec::new();
    }
    if !engines.iter().all(|variant| variant.value.is_flow()) {
        return draft.systems.iter().filter_map(by_packets_alone).collect();
    }
    let mut found: Vec<Item> = draft.systems.iter().filter_map(ignored_parts).collect();
    let lossy = |built: &Variant<crate::plan::draft::Built>| built.value.net.links().iter().any(|link| link.loss > Fraction(0));
    if draft.topology.variants.iter().any(lossy) {
        let hint = "fluids lose nothing: leave `loss` out, or write `engine = \"packet\"`";
        let message = "`topology.loss` has no effect: the flow engine has no packets to lose";
        found.push(Item::new(draft.topology.at, message, "no effect", hint));
    }
    let traced = draft.sample.as_ref().filter(|section| section.params.packets);
    found.extend(traced.map(|section| {
        let hint = "leave `packets` out, or write `engine = \"packet\"`";
        section.part().problem("packets", "the flow engine has no packets to trace", "no effect", hint)
    }));
    let tables = draft.sample.as_ref().filter(|section| section.params.agents);
    found.extend(tables.map(|section| {
        let hint = "leave `agents` out, or write `engine = \"packet\"`";
        section.part().problem("agents", "agents of ports have nothing to do in the flow engine", "no effect", hint)
    }));
    found
}

/// A system of which some variant needs packets.
fn by_packets_alone(section: &Section<System>) -> Option<Item> {
    let (part, [message, ..]) = section.variants.iter().find_map(|variant| refused(&variant.value))?;
    let at = section.variants.first()?.table.get(part.slot.name).map_or(section.at, |e| e.key_at);
    let message = format!("`{}` runs by packets alone: {message}", section.name);
    Some(Item::new(at, message, "needs packets", "the flow engine leaves the system out: see that figures do not miss it"))
}

/// Parts of a system that are written and have no effect.
fn ignored_parts(section: &Section<System>) -> Option<Item> {
    let table = &section.variants.first()?.table;
    let kind_of = |slot: &str| Some(table.get(slot)?.node.table()?.get("kind")?.node.at);
    // What entries put beside themselves stands where they are named.
    let fillers: Vec<_> = ["transport", "policy", "agent"].into_iter().filter_map(kind_of).collect();
    let own = table.get("transport").and_then(|e| e.node.table()).into_iter().flat_map(|transport| &transport.entries);
    let own = own.filter(|e| e.key != "kind").map(|e| (format!("transport.{}", e.key), e.key_at));
    let parts = table.entries.iter().filter(|e| ON_PACKETS.contains(&e.key.as_str())).map(|e| (e.key.clone(), e.key_at));
    let written: Vec<_> = own.chain(parts).filter(|(_, at)| !fillers.contains(at)).collect();
    let (_, at) = written.first()?;
    let names = listed(written.iter().map(|(name, _)| name.as_str()));
    let message = format!("no effect under the flow engine: {names}");
    let hint = "flows have max-min fair rates there, whatever the transport, and no queues: leave these out, or write `engine = \"packet\"`";
    Some(Item::new(*at, message, "no effect", hint))
}

//! Rules that involve several sections of a scenario, and rules that depend on the network.

use crate::checks::flow_engine;
use crate::checks::no_path;
use crate::event::change::changes;
use crate::files::Files;
use crate::memory::gigabytes;
use crate::plan::draft::{Built, Draft, Section, Swept, Variant, combinations};
use crate::plan::keys::{MAX_POINTS, SampleParams};
use crate::plan::selection;
use crate::plan::spec::Demand;
use crate::system::envs::{self, Envs};
use crate::system::slots::{SLOTS, System, SystemPart};
use crate::text::diag::{Item, Place};
use crate::text::part::{Part, listed};
use crate::text::tree::Table;
use crate::workload::Workload as _;
use base::params::{Auto, nearest};
use base::{LinkId, Offers};
use fabric::net::Net;
use fabric::qdisc::Qdisc as _;

/// Estimated bytes of memory per flow: its metadata, its record, its state at both ends and its row
/// of the results.
const FLOW_BYTES: u64 = 640;

/// Checks a whole draft. `wrong`: it has problems already.
///
/// To read the flows of a large file takes long. Workloads that do so are checked only if nothing
/// else is wrong, so that a mistake in a system is reported at once.
pub(crate) fn check(draft: &Draft, files: &Files, wrong: bool) -> Vec<Item> {
    let mut found = Vec::new();
    ideal_labels(draft, &mut found);
    within_systems(&draft.systems, &mut found);
    points(draft, &mut found);
    sampled_time(draft, &mut found);
    draft.topology.variants.iter().for_each(|built| selections(draft, &built.value.net, &mut found));
    events(draft, &mut found);
    let reads = draft.workloads.iter().any(|section| section.table.get("path").is_some());
    if reads && (wrong || !found.is_empty()) {
        return found;
    }
    // A rule of a system may depend on the workloads. It reads their files then, and only then.
    for built in &draft.topology.variants {
        for section in &draft.systems {
            for variant in &section.variants {
                system(draft, files, &built.value, section, variant, &mut found);
            }
        }
    }
    if reads && !found.is_empty() {
        return found;
    }
    for built in &draft.topology.variants {
        for (index, section) in draft.workloads.iter().enumerate() {
            for variant in &section.variants {
                let part = Part { table: &variant.table, at: section.at, path: &section.name };
                let env = draft.workload_env(&built.value, files, index);
                let before = found.len();
                found.extend(part.problems(variant.value.workload.check(&env)));
                if found.len() == before {
                    found.extend(no_path::picked(&built.value, &env, &variant.value.workload.build(&env), part));
                }
                found.extend(until_other_workload(draft, built, files, index, part, &variant.value));
            }
        }
    }
    memory(draft, files, &mut found);
    found
}

/// Checks a workload whose `until` names another workload, so that it runs until the last flow of
/// that workload starts: the named workload must exist, and its own `until` must not name a
/// workload.
fn until_other_workload(
    draft: &Draft,
    built: &Variant<Built>,
    files: &Files,
    index: usize,
    part: Part<'_>,
    demand: &Demand,
) -> Option<Item> {
    let machine = demand.workload.build(&draft.workload_env(&built.value, files, index));
    let name = machine.until_workload()?;
    let names = || draft.workloads.iter().map(|section| section.name.trim_start_matches("workload."));
    let problem = |why: String, label: &str, hint: String| Some(part.problem("until", format!("`{name}` {why}"), label, hint));
    let Some(other) = names().position(|known| known == name) else {
        let near = nearest(name, names()).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        let hint = format!("write a time, or one of {}", listed(names()));
        return problem(format!("is neither a time nor a workload of this scenario{near}"), "unknown", hint);
    };
    let waits = draft.workloads[other]
        .variants
        .iter()
        .any(|variant| variant.value.workload.build(&draft.workload_env(&built.value, files, other)).until_workload().is_some());
    let why = "cannot be used here: its own `until` names a workload too";
    waits.then(|| {
        problem(why.to_owned(), "this workload has no end of its own", "write a time, like `until = \"20ms\"`".to_owned())
    })?
}

/// Checks that no system has the label of an ideal reference: tables name their rows by label.
fn ideal_labels(draft: &Draft, found: &mut Vec<Item>) {
    for ideal in draft.ideals.iter().filter(|ideal| draft.systems.iter().any(|system| system.name == ideal.label())) {
        let message = format!("`ideal`: a system has the label `{}`", ideal.label());
        let hint = "give the system another `label`: this label is reserved for the ideal reference";
        found.push(Item::new(draft.ideals_at, message, "tables would have two rows of this name", hint).about("ideal".to_owned()));
    }
}

/// Checks that the ports that `[sample]` selects exist.
fn selections(draft: &Draft, net: &Net, found: &mut Vec<Item>) {
    let Some(section) = &draft.sample else { return };
    let (part, SampleParams { port, only_ports, .. }) = (section.part(), &section.params);
    if let Some(name) = port.as_ref().filter(|name| net.link_named(name).is_none()) {
        let names: Vec<String> = (0..net.links().len() as u32).map(|l| net.link_name(LinkId(l))).collect();
        let near = nearest(name, names.iter().map(String::as_str)).unwrap_or(&names[0]);
        let hint = format!("a port is named after the ends of its link, like `{near}`");
        found.push(part.problem("port", format!("there is no port `{name}`"), "no such port", hint));
    }
    match selection::ports(net, only_ports) {
        Err(message) => {
            let hint = "write names like `leaf0->h3, spine1->*`, where `*` matches any characters, or `all`";
            found.push(part.problem("only_ports", message, "no such port", hint));
        }
        Ok(Some(_)) if port.is_some() => {
            let message = "`port` and `only_ports` both choose ports";
            found.push(part.problem("port", message, "two selections", "remove `port`: `only_ports` can name a single port too"));
        }
        Ok(_) => {}
    }
}

/// Checks that the time that `[sample]` selects lies in the run.
fn sampled_time(draft: &Draft, found: &mut Vec<Item>) {
    let Some(section) = &draft.sample else { return };
    let (part, SampleParams { start, end, .. }) = (section.part(), &section.params);
    let hint = "write an earlier `start`, or remove it";
    match end {
        Auto::Set(end) if start >= end => {
            found.push(part.problem(
                "start",
                format!("`{start}` is not before `end`, which is `{end}`"),
                "nothing is recorded",
                hint,
            ));
        }
        _ if draft.head.latest_end().is_some_and(|end| start.0 >= end.0) => {
            found.push(part.problem("start", format!("`{start}` is not before the `end` of the run"), "nothing is recorded", hint));
        }
        _ => {}
    }
}

/// Checks that the number of points is within the limit.
fn points(draft: &Draft, found: &mut Vec<Item>) {
    let shared =
        draft.workloads.iter().fold(draft.topology.variants.len() as u64, |n, w| n.saturating_mul(w.variants.len() as u64));
    let systems: u64 = draft.systems.iter().map(|s| s.variants.len() as u64).sum();
    let failures = draft.events.iter().map(|e| e.variants.len()).chain(draft.failure.iter().map(|f| f.variants.len()));
    let shared = failures.fold(shared, |n, variants| n.saturating_mul(variants as u64));
    let shared = shared.saturating_mul(draft.engine.variants.len() as u64);
    let points = shared.saturating_mul(systems).saturating_mul(draft.seeds.list.len() as u64);
    if points > MAX_POINTS {
        let message = format!("the scenario has {points} points, at most {MAX_POINTS} are allowed");
        let hint = "the number of points is systems x swept values x seeds: shorten the lists, or split the scenario";
        found.push(Item::new(draft.topology.at, message, "too many", hint));
    }
}

/// Checks that the flows of all workloads together fit into memory.
fn memory(draft: &Draft, files: &Files, found: &mut Vec<Item>) {
    let Some(built) = draft.topology.variants.first() else { return };
    let mut total = 0u64;
    for (index, section) in draft.workloads.iter().enumerate() {
        let flows = |v: &Variant<Demand>| v.value.workload.build(&draft.workload_env(&built.value, files, index)).flows();
        let most = section.variants.iter().map(flows).max().unwrap_or(0);
        total = total.saturating_add(most);
        let bytes = total.saturating_mul(FLOW_BYTES);
        if bytes > draft.memory.bytes || total > u64::from(u32::MAX) {
            let message = format!("`{}`: {total} flows would need {} of memory", section.name, gigabytes(bytes));
            let hint = format!("{}: use fewer flows, or raise the limit with `--memory`", draft.memory);
            found.push(Item::new(section.at, message, "too many flows", hint));
            return;
        }
    }
}

/// Checks one system on one network.
fn system(
    draft: &Draft,
    files: &Files,
    built: &Built,
    section: &Section<System>,
    variant: &Variant<System>,
    found: &mut Vec<Item>,
) {
    let empty = Table::default();
    let system = &variant.value;
    let parts = Parts::new(section, variant);
    let offers = || {
        // Of a swept workload, only the first variant is considered.
        let first = draft.workloads.iter().enumerate().filter_map(|(i, w)| Some((i, w.variants.first()?)));
        first.map(|(i, v)| envs::offered(&v.value.workload, &draft.workload_env(built, files, i))).collect()
    };
    let envs = Envs::new(draft.site(built), system.ports_and_router(), system.given(), Offers::new(offers));
    let before = found.len();
    system.check(&envs, &mut |slot, problems| found.extend(parts.part(slot.name).problems(problems)));
    if found.len() == before {
        found.extend(policy_with_workloads(draft, files, built, system, &parts));
    }
    if draft.engine.variants.iter().all(|variant| variant.value.is_flow())
        && let Some((part, [message, label, hint])) = flow_engine::refused(system)
    {
        found.push(Item::new(parts.part(part.slot.name).at_of("kind"), message, label, hint));
    }
    if system.router.duties(&envs.router()).decides.at_switches(false) {
        // If the router decides at switches, a host cannot choose the path of a packet.
        for part in system.parts().into_iter().filter(|part| part.entry.meta.many_paths) {
            let message = format!(
                "`{}` sends a flow over several planned paths, but the router `{}` chooses paths at switches",
                part.entry.name,
                system.router.name()
            );
            let hint = "choose a router that plans paths, like `router = \"ecmp\"`";
            found.push(Item::new(parts.part(part.slot.name).at_of("kind"), message, "needs planned paths", hint));
        }
    }
    reverse_path(system, &envs, &parts, found);
    held_back(system, &envs, section, variant, &parts, found);

    // Ports of hosts.
    let whole = Part { table: &variant.table, at: section.at, path: &parts.path };
    let path = whole.name_of("nic.qdisc");
    let own = whole.table.get("nic").and_then(|e| e.node.table()?.get("qdisc")).and_then(|e| Some((e.key_at, e.node.table()?)));
    let (at, table) = own.unwrap_or((whole.at, &empty));
    let nic = Part { table, at, path: &path };
    for env in envs.kinds_of_ports().into_iter().map(|port| envs.checked_qdisc(port)).filter(|env| env.host_port) {
        let mut problems = system.nic.qdisc.check(&env);
        // A problem with a value that the NIC inherits from the switches is reported for the
        // switches only.
        let known = system.qdisc.check(&fabric::qdisc::Env { host_port: false, ..env });
        problems.retain(|problem| !known.contains(problem));
        found.extend(nic.problems(problems));
    }
}

/// Checks a system with a part whose reverse packets must use the cables of a flow's data: each
/// flow then needs one planned path.
fn reverse_path(system: &System, envs: &Envs<'_>, parts: &Parts<'_>, found: &mut Vec<Item>) {
    let all = system.parts();
    let Some(needing) = all.iter().find(|part| part.entry.meta.needs.reverse_path) else { return };
    let name = needing.entry.name;
    let mut refuse = |part: &SystemPart, does: &str, hint: &str| {
        let message = format!("`{}` {does}, but `{name}` needs both directions of a flow on the same cables", part.entry.name);
        found.push(Item::new(parts.part(part.slot.name).at_of("kind"), message, format!("does not fit `{name}`"), hint));
    };
    for part in &all {
        // A part that knows the links of paths moves whole flows, and the reverse direction follows.
        if part.entry.meta.many_paths && !part.entry.meta.knows.contains(&"paths") {
            refuse(part, "spreads the packets of a flow over several paths", &format!("remove `{}`", part.slot.name));
        }
        if part.slot.name == "router" && system.router.duties(&envs.router()).decides.at_switches(false) {
            refuse(part, "chooses paths at switches", "choose a router that plans paths, like `router = \"ecmp\"`");
        }
    }
}

/// Checks that host ports have the queue discipline that the transport needs at switches, if that
/// discipline delays packets.
fn held_back(
    system: &System,
    envs: &Envs<'_>,
    section: &Section<System>,
    variant: &Variant<System>,
    parts: &Parts<'_>,
    found: &mut Vec<Item>,
) {
    let (kind, has) = (system.qdisc.name(), system.nic.qdisc.name());
    let entry = system.transport.name();
    let shapes = || system.qdisc.build(&envs.qdisc(LinkId(0))).is_shaped();
    if system.transport.meta().needs.qdisc.contains(&kind) && has != kind && shapes() {
        let path = format!("{}.nic.qdisc", parts.path);
        let table = variant.table.get("nic").and_then(|entry| entry.node.table()?.get("qdisc"));
        let at = table.map_or(section.at, |entry| entry.key_at);
        let message = format!("`{path}`: `{entry}` needs `{kind}` at the ports of hosts too, but these have `{has}`");
        let hint = format!("remove `nic.qdisc`, or set its `kind` to `{kind}`");
        found.push(Item::new(at, message, format!("needs `{kind}`"), hint));
    }
}

/// Checks that a policy, whose derived values depend on the workloads, accepts every combination of
/// their variants. Returns the problems of the first combination that it refuses.
fn policy_with_workloads(draft: &Draft, files: &Files, built: &Built, system: &System, parts: &Parts<'_>) -> Vec<Item> {
    let Some(policy) = &system.policy else { return Vec::new() };
    let of = |(demands, swept): (Vec<&Demand>, Swept)| {
        let offered = || demands.iter().enumerate().map(|(i, d)| envs::offered(&d.workload, &draft.workload_env(built, files, i)));
        let offers = Offers::new(|| offered().collect());
        let envs = Envs::new(draft.site(built), system.ports_and_router(), system.given(), offers);
        let mut problems = policy.check(&envs.transport(envs.fastest_host()));
        let with: Vec<String> = swept.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        problems.iter_mut().for_each(|problem| problem.message += &format!(", with {}", with.join(", ")));
        Some(problems).filter(|problems| !problems.is_empty())
    };
    let refused = combinations(&draft.workloads).into_iter().find_map(of);
    parts.part("policy").problems(refused.unwrap_or_default()).collect()
}

/// The parts of a system in one variant, with their places and their names in messages.
struct Parts<'a> {
    path: String,
    names: Vec<(&'static str, String)>,
    at: Place,
    table: &'a Table,
    empty: Table,
}

impl<'a> Parts<'a> {
    fn new(section: &'a Section<System>, variant: &'a Variant<System>) -> Parts<'a> {
        let path = format!("system.{}", section.name);
        let names = SLOTS.iter().map(|slot| (slot.name, format!("{path}.{}", slot.name))).collect();
        Parts { path, names, at: section.at, table: &variant.table, empty: Table::default() }
    }
    /// Returns the part in a slot.
    fn part(&self, slot: &str) -> Part<'_> {
        let path = self.names.iter().find(|(name, _)| *name == slot).map_or("", |(_, path)| path);
        match self.table.get(slot) {
            Some(e) => Part { table: e.node.table().unwrap_or(&self.empty), at: e.key_at, path },
            None => Part { table: &self.empty, at: self.at, path },
        }
    }
}

/// Checks the rules of each system that need no network.
fn within_systems(systems: &[Section<System>], found: &mut Vec<Item>) {
    for section in systems {
        for variant in &section.variants {
            let parts = Parts::new(section, variant);
            needs(&variant.value, &parts, found);
            equal_parameters(&variant.value, &parts, found);
            ranks(&variant.value, &parts, found);
        }
    }
}

/// Checks that each part finds the other parts that it needs.
fn needs(system: &System, parts: &Parts<'_>, found: &mut Vec<Item>) {
    let given = system.given();
    for SystemPart { slot: own, entry, .. } in system.parts() {
        for slot in SLOTS {
            let wanted = slot.wanted(&entry.meta.needs);
            let Some(first) = wanted.first() else { continue };
            let has = given.kind(slot.name);
            if has.is_some_and(|kind| wanted.contains(&kind)) {
                continue;
            }
            let (name, key, noun) = (entry.name, slot.name, slot.room.noun);
            let has = has.map_or(String::from("none"), |kind| format!("`{kind}`"));
            let message = format!("`{name}` needs the {noun} `{}`, but this system has {has}", wanted.join("` or `"));
            let hint = format!("write `{key} = {{ kind = \"{first}\" }}` in this [[system]]");
            found.push(Item::new(parts.part(own.name).at_of("kind"), message, format!("needs {key} `{first}`"), hint));
        }
    }
}

/// Checks the parameters that must have the same value in two parts.
fn equal_parameters(system: &System, parts: &Parts<'_>, found: &mut Vec<Item>) {
    let given = system.given();
    for part in system.parts() {
        for (other, key) in part.entry.meta.needs.alike {
            let own = part.values.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str());
            let (Some(own), Some(kind), Some(value)) = (own, given.kind(other), given.param(other, key)) else { continue };
            if own != value {
                let message = format!("`{own}` differs from `{value}`, the value in the {other} `{kind}`");
                let hint = format!("write `{key} = \"{value}\"` in both");
                found.push(parts.part(part.slot.name).problem(key, message, "must be equal", hint));
            }
        }
    }
}

/// Checks that only one part writes the rank of packets.
fn ranks(system: &System, parts: &Parts<'_>, found: &mut Vec<Item>) {
    let all: Vec<SystemPart> = system.parts().into_iter().filter(|part| part.entry.meta.ranks).collect();
    if let [first, .., last] = &all[..] {
        let (one, other) = (first.entry.name, last.entry.name);
        let message = format!("`{other}` sets the rank of packets, but the {} `{one}` sets it too", first.slot.room.noun);
        let hint = format!("choose another {}, or remove the {}", first.slot.room.noun, last.slot.room.noun);
        found.push(Item::new(parts.part(last.slot.name).at_of("kind"), message, "only one part can set the rank", hint));
    }
}

/// Checks events against the networks: the names exist, links join neighbours, and each target goes
/// down and up alternately.
fn events(draft: &Draft, found: &mut Vec<Item>) {
    for built in &draft.topology.variants {
        let net = &built.value.net;
        for (failures, _) in draft.failures() {
            let events = failures.map_or(Vec::new(), |failures| failures.events);
            // One seed is enough: random draws differ between seeds, but no problem depends on a
            // draw.
            if let Err((event, problem)) = changes(&events, net, draft.seeds.list[0]) {
                let section = &draft.events[event];
                let part = Part { table: &section.table, at: section.at, path: &section.name };
                found.extend(part.problems(vec![problem]));
            }
        }
    }
}

//! Rules between sections: what parts need of each other, and what only the network can tell.

use crate::diag::{At, Item};
use crate::merge::PARTS;
use crate::part::{Part, listed};
use crate::read::{Built, Draft, MAX_POINTS, Reading, SampleParams, Section, Variant};
use crate::spec::{System, Traffic};
use crate::topology::Size;
use crate::tree::Table;
use crate::workload::size::Packets;
use crate::workload::{self, Workload as _};
use base::params::{Param, nearest};
use base::registry::Needs;
use base::{LinkId, Rate};
use fabric::agent::merp::theta_problem;
use fabric::net::{HOST_TIER, Net};

/// Memory that a run may need by our estimate: 16 GB.
const MAX_BYTES: u64 = 16_000_000_000;
/// What the estimate counts for a flow: its metadata, its record, its state at both ends, its row of the results.
const FLOW_BYTES: u64 = 640;

/// Memory that a network needs: hosts, links in both directions, next hops between switches.
pub(crate) fn memory_of(size: Size) -> u64 {
    let tables = size.switches.saturating_mul(size.switches).saturating_mul(32);
    let links = size.cables.saturating_mul(2 * 1024);
    size.hosts.saturating_mul(4096).saturating_add(links).saturating_add(tables)
}

/// A network that would not fit, alone or with those of the same sweep.
pub(crate) fn too_large(part: Part<'_>, size: Size, bytes: u64) -> Option<Item> {
    (bytes > MAX_BYTES).then(|| {
        let Size { hosts, switches, cables } = size;
        let counts = format!("{hosts} hosts, {switches} switches and {cables} cables");
        let message = format!("a network of {counts} would need {} of memory", gigabytes(bytes));
        part.problem("kind", message, "too large", format!("at most {} are allowed: take fewer nodes", gigabytes(MAX_BYTES)))
    })
}

fn gigabytes(bytes: u64) -> String {
    format!("{:.1} GB", bytes as f64 / 1e9)
}

/// All rules between sections.
pub(crate) fn cross(draft: &Draft, reading: &mut Reading<'_>) {
    let mut found = Vec::new();
    points(draft, &mut found);
    for built in &draft.topology.variants {
        sampled_port(draft, &built.value.net, &mut found);
        for (index, section) in draft.workloads.iter().enumerate() {
            for variant in &section.variants {
                let part = Part { table: &variant.table, at: section.at, path: &section.name };
                let env = env(draft, reading, &built.value, index);
                found.extend(part.problems(variant.value.workload.check(&env)));
            }
        }
        for section in &draft.systems {
            for variant in &section.variants {
                system(draft, &built.value, section, variant, &mut found);
            }
        }
    }
    memory(draft, reading, &mut found);
    crate::event::read::against_networks(draft, &mut found);
    reading.problems.extend(found);
}

/// The port to look at must be there.
fn sampled_port(draft: &Draft, net: &Net, found: &mut Vec<Item>) {
    let Some((SampleParams { port: Some(name), .. }, at)) = &draft.sample else { return };
    if net.link_named(name).is_none() {
        let names: Vec<String> = (0..net.links().len() as u32).map(|l| net.link_name(LinkId(l))).collect();
        let near = nearest(name, names.iter().map(String::as_str)).unwrap_or(&names[0]);
        let hint = format!("a port is named after the ends of its link, like `{near}`");
        found.push(
            Item::new(*at, format!("`sample.port`: there is no port `{name}`"), "no such port", hint)
                .about("sample.port".to_owned()),
        );
    }
}

fn env<'a>(draft: &Draft, reading: &'a Reading<'_>, built: &'a Built, index: usize) -> workload::Env<'a> {
    let packets = Packets { mtu: draft.head.mtu.0, header: draft.head.header.0 };
    let end = draft.head.latest_end();
    workload::Env { net: &built.net, packets, end, files: reading.files, index: index as u64 }
}

/// How many points there are.
fn points(draft: &Draft, found: &mut Vec<Item>) {
    let shared =
        draft.workloads.iter().fold(draft.topology.variants.len() as u64, |n, w| n.saturating_mul(w.variants.len() as u64));
    let systems: u64 = draft.systems.iter().map(|s| s.variants.len() as u64).sum();
    let failures = draft.events.iter().map(|e| e.variants.len()).chain(draft.failure.iter().map(|f| f.variants.len()));
    let shared = failures.fold(shared, |n, variants| n.saturating_mul(variants as u64));
    let points = shared.saturating_mul(systems).saturating_mul(draft.seeds.len() as u64);
    if points > MAX_POINTS {
        let message = format!("the scenario has {points} points, at most {MAX_POINTS} are allowed");
        let hint = "points are systems x swept values x seeds: take shorter lists, or several scenarios";
        found.push(Item::new(draft.topology.at, message, "too many", hint));
    }
}

/// Flows and network together must fit into memory.
fn memory(draft: &Draft, reading: &Reading<'_>, found: &mut Vec<Item>) {
    let Some(built) = draft.topology.variants.first() else { return };
    let mut total = 0u64;
    for (index, section) in draft.workloads.iter().enumerate() {
        let flows = |v: &Variant<Traffic>| v.value.workload.build(&env(draft, reading, &built.value, index)).flows();
        let most = section.variants.iter().map(flows).max().unwrap_or(0);
        total = total.saturating_add(most);
        let bytes = total.saturating_mul(FLOW_BYTES);
        if bytes > MAX_BYTES || total > u64::from(u32::MAX) {
            let message = format!("`{}`: {total} flows would need {} of memory", section.name, gigabytes(bytes));
            let hint = format!("at most {} are allowed: take fewer flows", gigabytes(MAX_BYTES));
            found.push(Item::new(section.at, message, "too many flows", hint));
            return;
        }
    }
}

/// One system on one network.
fn system(draft: &Draft, built: &Built, section: &Section<System>, variant: &Variant<System>, found: &mut Vec<Item>) {
    let empty = Table::default();
    let system = &variant.value;
    let parts = Parts::new(section, variant);
    let sub = |i: usize| parts.part(i);
    let whole = Part { table: &variant.table, at: section.at, path: &parts.path };

    let net = &built.net;
    let nic_rate = net.hosts().iter().map(|h| net.link(LinkId(net.out_base(*h))).rate).max().unwrap_or(Rate(1));
    let mtu_bytes = draft.head.mtu.0 as u16;
    let transport = proto::transport::Env {
        nic_rate,
        mtu_bytes,
        header_bytes: draft.head.header.0 as u16,
        max_rtt: built.max_rtt,
        queue_limit: system.qdisc.limit(&fabric::qdisc::Env {
            rate: nic_rate,
            mtu_bytes,
            host_port: false,
            link: LinkId(0),
            seed: 0,
        }),
    };
    found.extend(sub(0).problems(system.transport.check(&transport)));
    found.extend(sub(2).problems(system.router.check(&fabric::router::Env { net, routes: &built.routes, seed: 0 })));
    let nic_path = whole.name_of("nic.qdisc");
    let nic_own = whole.table.get("nic").and_then(|e| e.node.table()?.get("qdisc")).and_then(|e| Some((e.key_at, e.node.table()?)));
    let nic =
        nic_own.map_or(Part { table: &empty, at: whole.at, path: &nic_path }, |(at, table)| Part { table, at, path: &nic_path });
    for link in kinds_of_ports(net) {
        let (rate, host_port) = (net.link(link).rate, net.node(net.link(link).from).tier == HOST_TIER);
        let (part, qdisc) = if host_port { (nic, &system.nic.qdisc) } else { (sub(1), &system.qdisc) };
        let env = fabric::qdisc::Env { rate, mtu_bytes, host_port, link, seed: 0 };
        let mut problems = qdisc.check(&env);
        if host_port {
            // What a NIC takes over from the switches is said of them.
            let known = system.qdisc.check(&fabric::qdisc::Env { host_port: false, ..env });
            problems.retain(|problem| !known.contains(problem));
        }
        found.extend(part.problems(problems));
        if let Some(agent) = &system.agent {
            let node = net.link(link).from;
            let header_bytes = draft.head.header.0 as u16;
            let env = fabric::agent::Env { link, node, rate, nic_rate, header_bytes, host_port };
            found.extend(sub(3).problems(agent.check(&env)));
        }
    }
    merp_threshold(system, nic_rate, &parts, found);
}

/// One link for each pair of rate and side: what a part may find wrong depends on no more.
fn kinds_of_ports(net: &Net) -> Vec<LinkId> {
    let key = |l: &LinkId| (net.link(*l).rate, net.node(net.link(*l).from).tier == HOST_TIER);
    let mut seen = std::collections::BTreeSet::new();
    (0..net.links().len() as u32).map(LinkId).filter(|l| seen.insert(key(l))).collect()
}

/// The parts of a system in one variant, as messages place and name them.
struct Parts<'a> {
    path: String,
    names: Vec<String>,
    at: At,
    table: &'a Table,
    empty: Table,
}

impl<'a> Parts<'a> {
    fn new(section: &'a Section<System>, variant: &'a Variant<System>) -> Parts<'a> {
        let path = format!("system.{}", section.name);
        let names = PARTS.iter().map(|p| format!("{path}.{p}")).collect();
        Parts { path, names, at: section.at, table: &variant.table, empty: Table::default() }
    }
    /// The part at a place of [`PARTS`].
    fn part(&self, i: usize) -> Part<'_> {
        match self.table.get(PARTS[i]) {
            Some(e) => Part { table: e.node.table().unwrap_or(&self.empty), at: e.key_at, path: &self.names[i] },
            None => Part { table: &self.empty, at: self.at, path: &self.names[i] },
        }
    }
}

/// Rules that need no network.
pub(crate) fn within_systems(systems: &[Section<System>], found: &mut Vec<Item>) {
    for section in systems {
        for variant in &section.variants {
            let parts = Parts::new(section, variant);
            needs(&variant.value, &parts, found);
            alike(&variant.value, &parts, found);
        }
    }
}

/// (place in [`PARTS`], name, what it needs) of every part of a system.
fn needs_of(system: &System) -> Vec<(usize, &'static str, Needs)> {
    let mut all = vec![
        (0, system.transport.name(), system.transport.meta().needs),
        (1, system.qdisc.name(), system.qdisc.meta().needs),
        (2, system.router.name(), system.router.meta().needs),
    ];
    all.extend(system.agent.as_ref().map(|a| (3, a.name(), a.meta().needs)));
    all
}

/// What each part needs of the others.
fn needs(system: &System, parts: &Parts<'_>, found: &mut Vec<Item>) {
    let agent = system.agent.as_ref().map(fabric::agent::AnyParams::name);
    for (i, name, needs) in needs_of(system) {
        let at = parts.part(i).at_of("kind");
        let present = [
            ("transport", "transport", needs.transport, Some(system.transport.name())),
            ("qdisc", "queue discipline", needs.qdisc, Some(system.qdisc.name())),
            ("agent", "agent", needs.agent, agent),
        ];
        for (key, noun, wanted, has) in present {
            let Some(first) = wanted.first() else { continue };
            if has.is_some_and(|h| wanted.contains(&h)) {
                continue;
            }
            let has = has.map_or(String::from("none"), |h| format!("`{h}`"));
            let message = format!("`{name}` needs the {noun} {}, this system has {has}", listed(wanted.iter().copied()));
            let hint = format!("write `{key} = {{ kind = \"{first}\" }}` in this [[system]]");
            found.push(Item::new(at, message, format!("needs {key} `{first}`"), hint));
        }
    }
}

/// MERP's threshold must lie below what ports grant (section 4.4).
fn merp_threshold(system: &System, nic_rate: Rate, parts: &Parts<'_>, found: &mut Vec<Item>) {
    use fabric::agent::AnyParams::Merp as Ports;
    use proto::transport::AnyParams::Merp as Hosts;
    if let (Hosts(hosts), Some(Ports(ports))) = (&system.transport, &system.agent) {
        let problem = theta_problem(hosts.theta.on(nic_rate), ports.alpha, nic_rate);
        found.extend(parts.part(0).problems(problem.into_iter().collect()));
    }
}

/// What hosts and ports must have alike: how MERP's echo expected rates, in which unit BOTCP's count.
fn alike(system: &System, parts: &Parts<'_>, found: &mut Vec<Item>) {
    use fabric::agent::AnyParams as Ports;
    use proto::transport::AnyParams as Hosts;
    let (key, here, there) = match (&system.transport, &system.agent) {
        (Hosts::Merp(hosts), Some(Ports::Merp(ports))) => ("esr_sync", hosts.esr_sync.show(), ports.esr_sync.show()),
        (Hosts::Botcp(hosts), Some(Ports::Bof(ports))) => ("bof_unit", hosts.bof_unit.show(), ports.bof_unit.show()),
        _ => return,
    };
    if here != there {
        let message = format!("hosts have `{here}`, ports have `{there}`");
        found.push(parts.part(0).problem(key, message, "must be alike", format!("write `{key} = \"{there}\"` in both")));
    }
}

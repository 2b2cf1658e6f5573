//! Flows that a transport sends as one sequence of packets, although they take several paths.

use crate::files::Files;
use crate::plan::draft::{Built, Draft, Section, with_slot};
use crate::plan::spec::Demand;
use crate::system::envs::Envs;
use crate::system::slots::System;
use crate::text::diag::Item;
use crate::workload::{Drawn, Workload as _};
use base::{HostId, Offers};
use fabric::paths::AllPaths;
use proto::{SharedSequence, Transport as _};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

/// The parameter of programs that says which messages have one source port.
const PORTS: &str = "ports";

/// Warns of a system whose transport sends flows with different source ports as one sequence of
/// packets, while its router plans the path of each flow by its port. Only programs are checked,
/// which send many messages between two hosts at a time; flows of other workloads rarely overlap.
pub(crate) fn warnings(draft: &Draft, files: &Files) -> Vec<Item> {
    let mut found: Vec<Option<Item>> = draft.systems.iter().map(|_| None).collect();
    for built in draft.topology.variants.iter().map(|variant| &variant.value) {
        let open = draft.systems.iter().zip(&mut found).filter(|(_, found)| found.is_none());
        let open: Vec<_> = open.filter_map(|(section, found)| Some((item_of(draft, built, section)?, found))).collect();
        if open.is_empty() {
            continue;
        }
        let Some(flows) = draft.workloads.iter().enumerate().find_map(|at| on_several_paths(draft, built, files, at)) else {
            continue;
        };
        open.into_iter().for_each(|(item, found)| *found = Some(item(&flows)));
    }
    found.into_iter().flatten().collect()
}

/// Flows from one host to another with several source ports, and several paths.
struct SplitFlows {
    /// The name of their workload, like `workload.train`.
    workload: String,
    /// The names of the hosts.
    ends: [String; 2],
}

/// Returns the warning about a system, if its flows may overtake each other on several paths.
fn item_of<'a>(
    draft: &'a Draft,
    built: &Built,
    section: &'a Section<System>,
) -> Option<impl FnOnce(&SplitFlows) -> Item + use<'a>> {
    let (variant, shared) = section.variants.iter().find_map(|variant| {
        let system = &variant.value;
        let envs = Envs::new(draft.site(built), system.ports_and_router(), system.given(), Offers::new(Vec::new));
        let shared = system.transport.build(&envs.transport(envs.fastest_host())).shared_sequence()?;
        let planned = !system.router.duties(&envs.router()).decides.at_switches(false);
        planned.then_some((variant, shared))
    })?;
    Some(move |flows: &SplitFlows| {
        let (SharedSequence { key, value, apart }, SplitFlows { workload, ends: [src, dst] }) = (shared, flows);
        let router = variant.value.router.name();
        let message = format!(
            "`{value}` sends all flows from one host to another as one sequence of packets, but flows of `{workload}` from `{src}` to \
             `{dst}` have different source ports, by which `{router}` chooses among several paths"
        );
        let hint = format!(
            "packets that arrive before those of an earlier flow cause retransmissions, so flows take longer: write `{PORTS} = \"peer\"` in \
             [{workload}], or `{key} = \"{apart}\"` here"
        );
        with_slot(section, variant, "transport", |part| part.problem(key, message, "flows overtake each other", hint))
    })
}

/// Returns the first flows of a workload from one host to another with several source ports and
/// several paths.
fn on_several_paths(
    draft: &Draft,
    built: &Built,
    files: &Files,
    (index, section): (usize, &Section<Demand>),
) -> Option<SplitFlows> {
    let env = draft.workload_env(built, files, index);
    let mut paths = AllPaths::new(Arc::clone(&built.net), Arc::clone(&built.routes));
    let mut programs = section.variants.iter().filter(|v| v.value.workload.entry().fields.iter().any(|field| field.name == PORTS));
    programs.find_map(|variant| {
        let machine = variant.value.workload.build(&env);
        let (src, dst) = several_ports(machine.planned()?, |src, dst| paths.count(src, dst) > 1)?;
        Some(SplitFlows {
            workload: section.name.clone(),
            ends: [src, dst].map(|host| built.net.node(built.net.hosts()[host.index()]).name.clone()),
        })
    })
}

/// Returns the ends of the first flow whose source port differs from that of an earlier flow
/// between the same hosts, of those ends that are `wanted`.
fn several_ports(flows: &[Drawn], mut wanted: impl FnMut(HostId, HostId) -> bool) -> Option<(HostId, HostId)> {
    // By ends: the connection of the first flow; `None`: a port of its own.
    let mut firsts: BTreeMap<(HostId, HostId), Option<u32>> = BTreeMap::new();
    let differs = |flow: &&Drawn| match firsts.entry((flow.src, flow.dst)) {
        Entry::Vacant(first) => {
            first.insert(flow.connection);
            false
        }
        Entry::Occupied(first) => (first.get().is_none() || *first.get() != flow.connection) && wanted(flow.src, flow.dst),
    };
    flows.iter().find(differs).map(|flow| (flow.src, flow.dst))
}

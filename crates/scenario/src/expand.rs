//! Expansion of a checked draft into the points of a plan, and the names of points.

use crate::checks::flow_engine;
use crate::files::Files;
use crate::plan::draft::{Draft, Swept, combinations};
use crate::plan::keys::SampleParams;
use crate::plan::selection;
use crate::plan::spec::{Demand, Plan, Point, RunSpec, Sample};
use crate::plan::state::Shared;
use crate::system::engine::Engine;
use crate::system::ideal::IdealName;
use crate::system::slots::System;
use crate::text::diag::Diagnostics;
use base::params::Params as _;
use base::{Dur, Time};
use fabric::net::Net;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// Returns the plan with all points: systems by topologies by engines by workloads by failures by
/// variants of the system, by seeds.
pub(crate) fn expand(draft: Draft, name: String, files: &Arc<Files>) -> Plan {
    let end = draft.head.latest_end();
    let mut plan = Plan {
        name,
        points: Vec::new(),
        sweep_keys: Vec::new(),
        labels: Vec::new(),
        auto: None,
        queues: Vec::new(),
        warnings: Diagnostics::default(),
        memory: draft.memory,
        resolved: String::new(),
    };
    let names = draft.workloads.iter().map(|section| section.name.trim_start_matches("workload.").to_owned());
    let names: Vec<String> = names.collect();
    let traffic: Vec<(Vec<(String, Demand)>, Swept)> = combinations(&draft.workloads)
        .into_iter()
        .map(|(values, swept)| (names.iter().cloned().zip(values.into_iter().cloned()).collect(), swept))
        .collect();
    let failures = draft.failures();
    let engines = combinations(std::slice::from_ref(&draft.engine));
    for section in &draft.systems {
        plan.labels.push(section.name.clone());
        for topology in &draft.topology.variants {
            let sample = draft.sample.as_ref().map(|section| sample(&section.params, &topology.value.net));
            let pairs = traffic.iter().flat_map(|t| failures.iter().map(move |f| (t, f)));
            let shared = engines.iter().flat_map(|e| pairs.clone().map(move |(t, f)| (e, t, f)));
            for ((engine, moving), (workloads, offered), (failures, failing)) in shared {
                for system in &section.variants {
                    // A system that needs packets has no points under the flow engine; `check`
                    // warns about it.
                    if engine[0].is_flow() && flow_engine::refused(&system.value).is_some() {
                        continue;
                    }
                    let all = [moving, &topology.swept, offered, failing, &system.swept].into_iter().flatten().cloned();
                    let swept: Vec<(String, String)> = all.collect();
                    for &seed in &draft.seeds.list {
                        let run = RunSpec {
                            net: Arc::clone(&topology.value.net),
                            topology: topology.value.params.clone(),
                            max_rtt: topology.value.max_rtt,
                            full_rtt: topology.value.full_rtt,
                            mtu_bytes: draft.head.mtu.0 as u16,
                            header_bytes: draft.head.header.0 as u16,
                            end,
                            seed,
                            system: System::clone(&system.value),
                            engine: engine[0].clone(),
                            workloads: workloads.clone(),
                            ideal: None,
                            failures: failures.clone(),
                            measure: draft.measure.clone(),
                            steady: Shared::default(),
                            sample: sample.clone(),
                            files: Arc::clone(files),
                        };
                        plan.points.push(Point { id: String::new(), label: section.name.clone(), seed, swept: swept.clone(), run });
                    }
                }
            }
        }
    }
    add_ideals(&mut plan, &draft.ideals);
    share_states(&mut plan);
    plan.sweep_keys = sweep_keys(&draft);
    name_points(&mut plan);
    plan
}

/// Lets points with the same network, workloads and seed share their steady state, so that it is
/// computed once.
fn share_states(plan: &mut Plan) {
    let mut known: BTreeMap<String, Shared> = BTreeMap::new();
    for Point { run, .. } in &mut plan.points {
        let (mtu, header) = (run.mtu_bytes, run.header_bytes);
        let traffic = format!("{:?} {mtu} {header} {:?} {}", run.topology, run.workloads, run.seed);
        run.steady = known.entry(traffic).or_default().clone();
    }
}

/// Returns the time series to record on a network.
fn sample(params: &SampleParams, net: &Net) -> Sample {
    let port = params.port.as_ref().and_then(|name| net.link_named(name));
    let only_ports = selection::ports(net, &params.only_ports).ok().flatten();
    let SampleParams { interval, ports, flows, switches, agents, packets, start, end, .. } = *params;
    let (start, end) = (Time(start.0), Time(end.or(Dur(Time::MAX.0)).0));
    Sample {
        interval,
        ports,
        port,
        flows,
        switches,
        agents,
        packets,
        start,
        end,
        only_ports,
        only_flows: params.only_flows.clone(),
    }
}

/// Adds a point per ideal reference, network, workload and seed, after the points of the systems.
fn add_ideals(plan: &mut Plan, ideals: &[IdealName]) {
    let of_systems = plan.points.clone();
    for &ideal in ideals {
        let label = ideal.label().to_owned();
        let mut known = BTreeSet::new();
        for point in &of_systems {
            // The flows do not depend on what a system sweeps, nor on the engine.
            let own = |key: &str| !key.starts_with("system.") && !key.starts_with("engine.");
            let swept: Vec<_> = point.swept.iter().filter(|(key, _)| own(key)).cloned().collect();
            if known.insert((swept.clone(), point.seed)) {
                let run =
                    RunSpec { ideal: Some(ideal), engine: Engine::defaults(), sample: None, failures: None, ..point.run.clone() };
                plan.points.push(Point { label: label.clone(), swept, run, ..point.clone() });
            }
        }
        plan.labels.push(label);
    }
}

/// Returns the swept keys of all sections, each once.
fn sweep_keys(draft: &Draft) -> Vec<String> {
    let engine = draft.engine.variants.iter().map(|v| &v.swept);
    let topology = draft.topology.variants.iter().map(|v| &v.swept);
    let workloads = draft.workloads.iter().flat_map(|w| w.variants.iter().map(|v| &v.swept));
    let failure = draft.failure.iter().flat_map(|f| f.variants.iter().map(|v| &v.swept));
    let events = draft.events.iter().flat_map(|e| e.variants.iter().map(|v| &v.swept));
    let systems = draft.systems.iter().flat_map(|s| s.variants.iter().map(|v| &v.swept));
    let mut keys: Vec<String> = Vec::new();
    for (key, _) in engine.chain(topology).chain(workloads).chain(failure).chain(events).chain(systems).flatten() {
        if !keys.contains(key) {
            keys.push(key.clone());
        }
    }
    keys
}

/// Maximum length of a folder name.
const MAX_ID: usize = 120;

/// Gives every point the name of its folder: `merp-load0.8-seed1`.
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

/// Returns the shortest suffix of a swept key that no other swept key has.
fn short_key(key: &str, all: &[String]) -> String {
    // For the kind of a part, the name of the part is used.
    let key = key.strip_suffix(".kind").unwrap_or(key);
    let ends = key.rmatch_indices('.').map(|(i, _)| &key[i + 1..]);
    let own = |end: &&str| all.iter().filter(|k| k.as_str() == *end || k.ends_with(&format!(".{end}"))).count() == 1;
    slug(ends.into_iter().find(own).unwrap_or(key))
}

/// Reduces a text to `a-z`, `0-9`, `.`, `-` and `_`, without dots or dashes at its ends.
fn slug(text: &str) -> String {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '-' | '_');
    let mapped: String = text.to_lowercase().chars().map(|c| if fits(c) { c } else { '-' }).collect();
    let trimmed = mapped.trim_matches(['-', '.']);
    if trimmed.is_empty() { "x".to_owned() } else { trimmed.to_owned() }
}

/// Appends numbers to equal names so that all names differ.
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
}

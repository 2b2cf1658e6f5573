//! Prepares the points of a plan before they run: hashes, expected work and memory.

use crate::clock;
use crate::text::{count, short};
use base::{Dur, FlowId, JoinId};
use proto::flow::Join;
use scenario::{Memory, Plan};
use sim::memory::{Course, MemoryEstimate};
use std::collections::BTreeMap;
use xxhash_rust::xxh3::Xxh3;

/// The properties of a point that are known before it runs.
#[derive(Clone, Debug, Default)]
pub struct Prepared {
    /// Hash of everything that its result depends on.
    pub config_hash: String,
    /// Hash of its flows.
    pub flows_hash: String,
    /// Expected work, in any unit.
    pub work: u64,
    /// Expected memory in bytes.
    pub bytes: u64,
}

/// Hashes everything that the result of each point depends on, and draws the flows of the points
/// that run, once per network, workload and seed. Fails if a workload cannot be drawn, or if a
/// point does not fit into memory.
pub fn prepare(plan: &Plan, only: Option<&[usize]>) -> Result<Vec<Prepared>, String> {
    let memory = clock::memory_now(plan.memory);
    let mut drawn: BTreeMap<String, (String, u64, Course)> = BTreeMap::new();
    let mut prepared = Vec::with_capacity(plan.points.len());
    for (i, point) in plan.points.iter().enumerate() {
        let (spec, config_hash) = (&point.run, hex(point.config_hash()));
        if only.is_some_and(|only| !only.contains(&i)) {
            prepared.push(Prepared { config_hash, ..Prepared::default() });
            continue;
        }
        // Everything that the flows depend on. The systems of a sweep share their flows.
        let (mtu, header) = (spec.mtu_bytes, spec.header_bytes);
        let traffic =
            format!("{:?} {mtu} {header} {:?} {} {:?} {:?}", spec.topology, spec.workloads, spec.seed, spec.end, spec.measure);
        if !drawn.contains_key(&traffic) {
            let own = spec.traffic()?;
            let work = own.flows.iter().fold(0u64, |sum, flow| sum.saturating_add(flow.size_wire_bytes));
            drawn.insert(traffic.clone(), (hex(hash_flows(&own.flows, &own.joins)), work, Course::of(spec, &own)));
        }
        let (flows_hash, work, course) = drawn[&traffic].clone();
        let last = spec.sample.as_ref().and_then(|sample| sample.only_flows.last());
        if let Some(flow) = last.filter(|flow| u64::from(*flow) >= course.flows()) {
            let all = count(course.flows() as usize, "flow");
            return Err(format!(
                "`sample.only_flows`: point `{}` has no flow {flow}\nhint: it has {all} with ids from 0",
                point.id
            ));
        }
        let estimate = course.estimate(spec);
        let bytes = estimate.total();
        if bytes > memory.bytes {
            return Err(too_large(&point.id, &estimate, memory));
        }
        prepared.push(Prepared { config_hash, flows_hash, work, bytes });
    }
    Ok(prepared)
}

/// Returns the message for a point that does not fit into memory.
fn too_large(point: &str, estimate: &MemoryEstimate, memory: Memory) -> String {
    let bytes = |bytes: u64| format!("{}B", short(bytes as f64));
    let (part, largest, change) = estimate.largest();
    let (all, largest) = (bytes(estimate.total()), bytes(largest));
    format!(
        "point `{point}` needs about {all} of memory, but {memory}: {largest} of it hold {part}\n\
         hint: {change}; `--memory` sets another limit"
    )
}

fn hex(hash: u64) -> String {
    format!("{hash:016x}")
}

fn hash_flows(flows: &[proto::Flow], joins: &[Join]) -> u64 {
    let mut hash = Xxh3::new();
    for flow in flows {
        let deadline = flow.deadline.map_or(u64::MAX, |time| time.0);
        let ends = u64::from(flow.src.0) << 32 | u64::from(flow.dst.0);
        let rest = u64::from(flow.workload) << 16 | u64::from(flow.src_port);
        for word in [ends, flow.size_bytes, flow.size_wire_bytes, flow.start.0, deadline, flow.group, rest] {
            hash.update(&word.to_le_bytes());
        }
        // A flow that waits has no start time yet. Its conditions are hashed instead.
        if let Some(wait) = &flow.wait {
            let on = wait.on.iter().map(|(id, _)| u64::from(id.0));
            let time = |time: Option<base::Dur>| time.map_or(u64::MAX, |time| time.0);
            let delay = wait.on.first().map_or(0, |(_, delay)| delay.0);
            let own = [wait.on.len() as u64, delay, time(wait.allowed)];
            let apart = wait.on.iter().any(|(_, other)| other.0 != delay) || wait.not_before > base::Time::ZERO;
            let rest = wait.on.iter().map(|(_, delay)| delay.0).chain([wait.not_before.0]).filter(|_| apart);
            for word in own.into_iter().chain(on).chain(rest).chain(wait.give_up_after.map(|after| after.0)) {
                hash.update(&word.to_le_bytes());
            }
            hash_waits(&mut hash, &[], &wait.joins);
        }
    }
    for join in joins {
        hash.update(&u64::from(join.host.0).to_le_bytes());
        hash_waits(&mut hash, &join.on, &join.joins);
    }
    hash.digest()
}

/// Hashes a list of flows and joins, if it is not empty.
fn hash_waits(hash: &mut Xxh3, flows: &[(FlowId, Dur)], joins: &[(JoinId, Dur)]) {
    let flows = flows.iter().map(|(flow, delay)| [0, u64::from(flow.0), delay.0]);
    let joins = joins.iter().map(|(join, delay)| [1, u64::from(join.0), delay.0]);
    flows.chain(joins).flatten().for_each(|word| hash.update(&word.to_le_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_that_waits_is_hashed_by_what_it_waits_for() {
        let text = "topology = \"star\"\n[workload.web]\nkind = \"poisson\"\nflows = 20\n[[system]]\ntransport = \"newreno\"\n";
        let plan = scenario::load(text, "t.toml", ".".as_ref(), &scenario::Options::default()).unwrap_or_else(|e| panic!("{e}"));
        let flows = plan.points[0].run.flows().unwrap();
        let hash = |on: &[u32], delay: u64, allowed: Option<u64>, give_up: Option<u64>| {
            let mut flows = flows.clone();
            let on: Vec<base::FlowId> = on.iter().map(|id| base::FlowId(*id)).collect();
            flows[9].start = base::Time::MAX;
            let (delay, allowed, give_up_after) = (base::Dur(delay), allowed.map(base::Dur), give_up.map(base::Dur));
            flows[9].wait = Some(Box::new(proto::flow::Wait { give_up_after, allowed, ..proto::flow::Wait::new(&on, delay) }));
            hash_flows(&flows, &[])
        };
        let one = hash(&[3], 5, None, None);
        assert_eq!(one, hash(&[3], 5, None, None));
        let others = [
            hash_flows(&flows, &[]),
            hash(&[4], 5, None, None),
            hash(&[3, 4], 5, None, None),
            hash(&[3], 6, None, None),
            hash(&[3], 5, Some(7), None),
            hash(&[3], 5, None, Some(7)),
        ];
        for other in others {
            assert_ne!(one, other);
        }
        // A flow that waits for the same flow through a join.
        let joined = |host: u32, on: u32, delay: u64| {
            let mut flows = flows.clone();
            flows[9].start = base::Time::MAX;
            flows[9].wait =
                Some(Box::new(proto::flow::Wait { joins: vec![(JoinId(0), Dur(5))], ..proto::flow::Wait::new(&[], Dur(0)) }));
            let join = Join { host: base::HostId(host), on: vec![(FlowId(on), Dur(delay))], joins: Vec::new() };
            hash_flows(&flows, &[join])
        };
        let join = joined(0, 3, 0);
        for other in [one, joined(1, 3, 0), joined(0, 4, 0), joined(0, 3, 1)] {
            assert_ne!(join, other);
        }
    }
}

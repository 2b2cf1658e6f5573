//! Flows of a workload that wait for other flows of the same workload.

use super::{Drawn, DrawnJoin};
use base::Time;

/// Returns by flow its own start, or if it waits, the earliest start of the flows without wait that
/// it depends on, directly or through joins. Fails if flows wait for each other in a cycle.
pub(crate) fn earliest_roots(drawn: &[Drawn], joins: &[DrawnJoin]) -> Result<Vec<Time>, String> {
    let mut roots: Vec<Time> = drawn.iter().map(|flow| if flow.after.is_some() { Time::MAX } else { flow.start }).collect();
    if drawn.iter().all(|flow| flow.after.is_none()) {
        return Ok(roots);
    }
    // Joins are numbered after the flows.
    let (flows, count) = (drawn.len(), drawn.len() + joins.len());
    roots.resize(count, Time::MAX);
    let waits = || {
        let of_flows = drawn.iter().map(|flow| flow.after.as_ref().map(|after| (&after.flows, &after.joins)));
        let of_joins = joins.iter().map(|join| Some((&join.flows, &join.joins)));
        of_flows.chain(of_joins).enumerate().flat_map(move |(number, on)| {
            let ends = on.into_iter().flat_map(|(ends, _)| ends).map(|(flow, _)| *flow as usize);
            let joins = on.into_iter().flat_map(|(_, joins)| joins).map(move |(join, _)| flows + *join as usize);
            ends.chain(joins).map(move |other| (number, other))
        })
    };
    // The flows and joins that wait for a flow or a join lie one after another in `next`, from its start.
    let (mut missing, mut starts) = (vec![0; count], vec![0; count + 1]);
    for (number, other) in waits() {
        missing[number] += 1;
        starts[other] += 1;
    }
    let mut sum = 0;
    for start in &mut starts {
        sum += *start;
        *start = sum;
    }
    let mut next = vec![0; sum];
    for (number, other) in waits() {
        starts[other] -= 1;
        next[starts[other]] = number;
    }
    let mut ready: Vec<usize> = (0..count).filter(|&number| missing[number] == 0).collect();
    let mut known = 0;
    while let Some(number) = ready.pop() {
        known += 1;
        for &waits in &next[starts[number]..starts[number + 1]] {
            roots[waits] = roots[waits].min(roots[number]);
            missing[waits] -= 1;
            if missing[waits] == 0 {
                ready.push(waits);
            }
        }
    }
    if known < count {
        let number = missing.iter().position(|missing| *missing > 0).unwrap_or_default();
        return Err(format!("flow {} waits for itself, through other flows that it waits for", number + 1));
    }
    roots.truncate(flows);
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use super::super::After;
    use super::*;
    use base::Dur;
    use base::HostId;

    fn drawn(start: u64, after: &[u32]) -> Drawn {
        let after = (!after.is_empty()).then(|| Box::new(After::new(after, Dur::ZERO)));
        Drawn {
            src: HostId(0),
            dst: HostId(1),
            size_bytes: 1,
            start: Time(start),
            deadline: None,
            group: None,
            connection: None,
            after,
        }
    }

    #[test]
    fn a_flow_that_waits_has_the_earliest_start_it_depends_on() {
        let flows = [drawn(0, &[1, 2]), drawn(50, &[]), drawn(0, &[3]), drawn(30, &[]), drawn(90, &[])];
        assert_eq!(earliest_roots(&flows, &[]).unwrap(), [30, 50, 30, 30, 90].map(Time));
    }

    #[test]
    fn a_flow_depends_on_the_flows_of_its_joins() {
        let join = |flows: &[u32], joins: &[u32]| {
            let [flows, joins] = [flows, joins].map(|list| list.iter().map(|number| (*number, Dur(1))).collect());
            DrawnJoin { host: HostId(0), flows, joins }
        };
        let wait = |join| Some(Box::new(After { joins: vec![(join, Dur::ZERO)], ..After::new(&[], Dur::ZERO) }));
        let mut flows = [drawn(50, &[]), drawn(30, &[]), drawn(0, &[]), drawn(0, &[2])];
        flows[2].after = wait(1);
        assert_eq!(earliest_roots(&flows, &[join(&[1], &[]), join(&[0], &[0])]).unwrap(), [50, 30, 30, 30].map(Time));
        let message = earliest_roots(&flows, &[join(&[1], &[]), join(&[3], &[0])]).unwrap_err();
        assert_eq!(message, "flow 3 waits for itself, through other flows that it waits for");
    }

    #[test]
    fn a_cycle_is_refused() {
        let flows = [drawn(5, &[]), drawn(0, &[0, 3]), drawn(0, &[1]), drawn(0, &[2])];
        assert_eq!(earliest_roots(&flows, &[]).unwrap_err(), "flow 2 waits for itself, through other flows that it waits for");
    }
}

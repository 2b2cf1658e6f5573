//! Flows of a workload that wait for other flows of the same workload.

use super::Drawn;
use base::Time;

/// Returns by flow its own start, or if it waits, the earliest start of the flows without wait that
/// it depends on, directly or not. Fails if flows wait for each other in a cycle.
pub(crate) fn earliest_roots(drawn: &[Drawn]) -> Result<Vec<Time>, String> {
    let mut roots: Vec<Time> = drawn.iter().map(|flow| if flow.after.is_some() { Time::MAX } else { flow.start }).collect();
    if drawn.iter().all(|flow| flow.after.is_none()) {
        return Ok(roots);
    }
    let waits = || {
        drawn.iter().enumerate().flat_map(|(number, flow)| {
            let on = flow.after.iter().flat_map(|after| &after.flows);
            on.map(move |(other, _)| (number, *other as usize))
        })
    };
    // The flows that wait for a flow lie one after another in `next`, from its start.
    let (mut missing, mut starts) = (vec![0; drawn.len()], vec![0; drawn.len() + 1]);
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
    let mut ready: Vec<usize> = (0..drawn.len()).filter(|&number| missing[number] == 0).collect();
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
    if known < drawn.len() {
        let number = missing.iter().position(|missing| *missing > 0).unwrap_or_default();
        return Err(format!("flow {} waits for itself, through other flows that it waits for", number + 1));
    }
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use super::super::After;
    use super::*;
    use base::Dur;
    use base::HostId;

    fn drawn(start: u64, after: &[u32]) -> Drawn {
        let after = (!after.is_empty()).then(|| After::new(after, Dur::ZERO));
        Drawn { src: HostId(0), dst: HostId(1), size_bytes: 1, start: Time(start), deadline: None, group: None, after }
    }

    #[test]
    fn a_flow_that_waits_has_the_earliest_start_it_depends_on() {
        let flows = [drawn(0, &[1, 2]), drawn(50, &[]), drawn(0, &[3]), drawn(30, &[]), drawn(90, &[])];
        assert_eq!(earliest_roots(&flows).unwrap(), [30, 50, 30, 30, 90].map(Time));
    }

    #[test]
    fn a_cycle_is_refused() {
        let flows = [drawn(5, &[]), drawn(0, &[0, 3]), drawn(0, &[1]), drawn(0, &[2])];
        assert_eq!(earliest_roots(&flows).unwrap_err(), "flow 2 waits for itself, through other flows that it waits for");
    }
}

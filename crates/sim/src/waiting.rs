//! Flows that wait: such a flow starts a delay after other flows have ended.
//!
//! A flow ends at its receiver, with the last byte, or at its sender, which gives the flow up. The source of a waiting flow learns of the
//! end after the waiting flow's delay. If the end is at another host, it learns of it no sooner than a bare header would arrive over an idle
//! network. The waiting flow starts when its source has learned of all the ends.

use base::{Dur, FlowId, HostId, Time};
use proto::Flow;

/// The ends that waiting flows still wait for.
pub struct Waiting {
    /// By flow: the flows that wait for its end.
    next: Vec<Vec<Next>>,
    /// By flow: the number of missing ends, and the earliest start that the known ends allow.
    missing: Vec<(u32, Time)>,
}

/// A flow that waits for another.
struct Next {
    flow: FlowId,
    /// The delay to the start from an end at the other flow's receiver, and from an end at the other flow's sender.
    delay: [Dur; 2],
}

impl Waiting {
    /// The state before a run of `flows`; `None` if no flow waits. `latency` is that of a bare header between two hosts.
    pub fn new(flows: &[Flow], latency: impl Fn(HostId, HostId) -> Dur) -> Option<Waiting> {
        if flows.iter().all(|flow| flow.wait.is_none()) {
            return None;
        }
        let mut next: Vec<Vec<Next>> = flows.iter().map(|_| Vec::new()).collect();
        let mut missing = vec![(0, Time::ZERO); flows.len()];
        for flow in flows {
            let Some(wait) = &flow.wait else { continue };
            missing[flow.id.index()].0 = wait.on.len() as u32;
            for other in &wait.on {
                let Flow { src, dst, .. } = flows[other.index()];
                let delay = |end: HostId| if end == flow.src { wait.delay } else { wait.delay.max(latency(end, flow.src)) };
                next[other.index()].push(Next { flow: flow.id, delay: [delay(dst), delay(src)] });
            }
        }
        Some(Waiting { next, missing })
    }

    /// `flow` ended at `now` at the host `at`. Returns the flows for which this was the last missing end, each with its start.
    pub fn on_end(&mut self, flow: &Flow, at: HostId, now: Time) -> Vec<(FlowId, Time)> {
        let mut starts = Vec::new();
        for next in &self.next[flow.id.index()] {
            let (missing, start) = &mut self.missing[next.flow.index()];
            *start = (*start).max(now + next.delay[usize::from(at != flow.dst)]);
            *missing -= 1;
            if *missing == 0 {
                starts.push((next.flow, *start));
            }
        }
        starts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::flow::Wait;
    use proto::kit::script;

    fn flow(id: u32, ends: [u32; 2], on: &[u32], delay: Dur) -> Flow {
        let wait = (!on.is_empty()).then(|| Box::new(Wait { on: on.iter().copied().map(FlowId).collect(), delay, allowed: None }));
        Flow { src: HostId(ends[0]), dst: HostId(ends[1]), wait, ..script::flow(id, 1000) }
    }

    #[test]
    fn a_flow_starts_with_the_last_end_it_waits_for() {
        let us = Dur::from_us;
        // Requests from hosts 0 and 2 to host 1. The answer of host 1 waits for both. The flow of host 3 waits for an end at host 1.
        let flows = [
            flow(0, [0, 1], &[], Dur::ZERO),
            flow(1, [2, 1], &[], Dur::ZERO),
            flow(2, [1, 0], &[0, 1], us(5)),
            flow(3, [3, 0], &[0], us(5)),
        ];
        let mut waiting = Waiting::new(&flows, |_, _| us(20)).unwrap();
        let at = |us: u64| Time::ZERO + Dur::from_us(us);
        assert_eq!(waiting.on_end(&flows[1], HostId(1), at(100)), []);
        let expected = [(FlowId(2), at(105)), (FlowId(3), at(110))];
        assert_eq!(waiting.on_end(&flows[0], HostId(1), at(90)), expected);
        assert!(Waiting::new(&flows[..2], |_, _| us(20)).is_none());
    }

    #[test]
    fn the_end_of_a_flow_that_was_given_up_is_known_at_its_sender() {
        let flows =
            [flow(0, [0, 1], &[], Dur::ZERO), flow(1, [0, 2], &[0], Dur::from_us(5)), flow(2, [1, 2], &[0], Dur::from_us(5))];
        let mut waiting = Waiting::new(&flows, |_, _| Dur::from_us(20)).unwrap();
        let at = |us: u64| Time::ZERO + Dur::from_us(us);
        assert_eq!(waiting.on_end(&flows[0], HostId(0), at(50)), [(FlowId(1), at(55)), (FlowId(2), at(70))]);
    }
}

//! Flows that wait: a waiting flow starts a delay after other flows have ended.
//!
//! A flow ends at its receiver, with the last byte, or at its sender, if the sender gives the flow up. The
//! source of a waiting flow learns of the end after the waiting flow's delay. If the end is at another host,
//! the source learns of it no sooner than a bare header would arrive over an idle network. The waiting flow
//! starts when its source has learned of all ends.
//!
//! If a waiting flow gives up on other flows after some time, a flow that has not ended by then counts as
//! ended at its receiver.

use base::{Dur, FlowId, HostId, Time};
use proto::Flow;
use std::mem::replace;

/// The ends that waiting flows still wait for.
#[derive(Clone)]
pub struct WaitingFlows {
    /// By flow: the flows that wait for its end.
    next: Vec<Vec<Next>>,
    /// By flow: the state of its start.
    turns: Vec<Turn>,
}

/// A flow that waits for another.
#[derive(Clone)]
struct Next {
    flow: FlowId,
    /// The index of the other flow in the list of flows that this flow waits for.
    place: u32,
    /// The delay to the start from an end at the other flow's receiver, and from an end at the other flow's sender.
    delay: [Dur; 2],
}

/// The state of the start of a flow that waits.
#[derive(Clone, Default)]
struct Turn {
    /// How long after the start of another flow this flow stops waiting for it.
    give_up_after: Option<Dur>,
    /// The earliest start.
    not_before: Time,
    /// The number of other flows that do not bound the start yet.
    missing: u32,
    /// By other flow: the time from which it no longer delays the start. Empty before the first of these times
    /// is known, and after the flow has started.
    latest: Vec<Time>,
    /// The start, once nothing is missing. It can only become earlier.
    start: Option<Time>,
}

/// The start of a flow that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// The flow.
    pub flow: FlowId,
    /// When the flow starts, unless another end moves the start to an earlier time.
    pub at: Time,
    /// The start that this one replaces.
    pub instead: Option<Time>,
}

impl WaitingFlows {
    /// Creates the state before a run of `flows`; `None` if no flow waits. `latency` is the latency of a bare
    /// header between two hosts.
    pub fn new(flows: &[Flow], latency: impl Fn(HostId, HostId) -> Dur) -> Option<WaitingFlows> {
        if flows.iter().all(|flow| flow.wait.is_none()) {
            return None;
        }
        let mut next: Vec<Vec<Next>> = flows.iter().map(|_| Vec::new()).collect();
        let mut turns = vec![Turn::default(); flows.len()];
        for flow in flows {
            let Some(wait) = &flow.wait else { continue };
            let turn = &mut turns[flow.id.index()];
            (turn.missing, turn.give_up_after) = (wait.on.len() as u32, wait.give_up_after);
            turn.not_before = wait.not_before;
            for (&(other, delay), place) in wait.on.iter().zip(0..) {
                let Flow { src, dst, .. } = flows[other.index()];
                let delay = |end: HostId| if end == flow.src { delay } else { delay.max(latency(end, flow.src)) };
                next[other.index()].push(Next { flow: flow.id, place, delay: [delay(dst), delay(src)] });
            }
        }
        Some(WaitingFlows { next, turns })
    }

    /// Handles the start of `flow` at `now`. Returns the flows that now have a start, since they give up on
    /// `flow` after some time.
    pub fn on_start(&mut self, flow: &Flow, now: Time) -> Vec<Start> {
        self.turns[flow.id.index()].latest = Vec::new();
        let given_up = |turn: &Turn, next: &Next| Some(now.after(turn.give_up_after?).after(next.delay[0]));
        self.learn(flow.id, given_up)
    }

    /// Handles the end of `flow` at `now` at the host `at`. Returns the flows that now have a start, or an
    /// earlier start than before.
    pub fn on_end(&mut self, flow: &Flow, at: HostId, now: Time) -> Vec<Start> {
        self.learn(flow.id, |_, next| Some(now.after(next.delay[usize::from(at != flow.dst)])))
    }

    /// Stores for each flow that waits for `flow` the time from which `flow` no longer delays its start, and
    /// returns the starts that change.
    fn learn(&mut self, flow: FlowId, allows: impl Fn(&Turn, &Next) -> Option<Time>) -> Vec<Start> {
        let mut starts = Vec::new();
        for next in &self.next[flow.index()] {
            let turn = &mut self.turns[next.flow.index()];
            let Some(at) = allows(turn, next) else { continue };
            if turn.latest.is_empty() {
                if turn.missing == 0 {
                    continue; // The waiting flow has started.
                }
                turn.latest = vec![Time::MAX; turn.missing as usize];
            }
            let latest = &mut turn.latest[next.place as usize];
            let before = replace(latest, at.min(*latest));
            turn.missing -= u32::from(before == Time::MAX);
            // The end changes the start only if no other flow delays it as long.
            if turn.missing > 0 || turn.start.is_some_and(|start| before < start) {
                continue;
            }
            let Some(at) = turn.latest.iter().copied().max().map(|at| at.max(turn.not_before)) else { continue };
            let instead = turn.start.replace(at);
            if instead != Some(at) {
                starts.push(Start { flow: next.flow, at, instead });
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
        let wait = (!on.is_empty()).then(|| Box::new(Wait::new(&on.iter().copied().map(FlowId).collect::<Vec<_>>(), delay)));
        Flow { src: HostId(ends[0]), dst: HostId(ends[1]), wait, ..script::flow(id, 1000) }
    }

    fn new(flow: u32, at: Time) -> Start {
        Start { flow: FlowId(flow), at, instead: None }
    }

    #[test]
    fn a_flow_starts_with_the_last_end_it_waits_for() {
        let us = Dur::from_us;
        // Requests from hosts 0 and 2 to host 1. The answer of host 1 waits for both requests. The flow of
        // host 3 waits for an end at host 1.
        let flows = [
            flow(0, [0, 1], &[], Dur::ZERO),
            flow(1, [2, 1], &[], Dur::ZERO),
            flow(2, [1, 0], &[0, 1], us(5)),
            flow(3, [3, 0], &[0], us(5)),
        ];
        let mut waiting = WaitingFlows::new(&flows, |_, _| us(20)).unwrap();
        let at = |us: u64| Time::ZERO + Dur::from_us(us);
        assert_eq!(waiting.on_end(&flows[1], HostId(1), at(100)), []);
        let expected = [new(2, at(105)), new(3, at(110))];
        assert_eq!(waiting.on_end(&flows[0], HostId(1), at(90)), expected);
        assert!(WaitingFlows::new(&flows[..2], |_, _| us(20)).is_none());
    }

    #[test]
    fn the_end_of_a_flow_that_was_given_up_is_known_at_its_sender() {
        let flows =
            [flow(0, [0, 1], &[], Dur::ZERO), flow(1, [0, 2], &[0], Dur::from_us(5)), flow(2, [1, 2], &[0], Dur::from_us(5))];
        let mut waiting = WaitingFlows::new(&flows, |_, _| Dur::from_us(20)).unwrap();
        let at = |us: u64| Time::ZERO + Dur::from_us(us);
        assert_eq!(waiting.on_end(&flows[0], HostId(0), at(50)), [new(1, at(55)), new(2, at(70))]);
    }
    /// Two answers to host 9, and a flow that waits for both, starts 5 us after them, and gives up on each
    /// answer 100 us after its start.
    fn two_answers() -> (Vec<Flow>, WaitingFlows) {
        let mut flows =
            vec![flow(0, [0, 9], &[], Dur::ZERO), flow(1, [1, 9], &[], Dur::ZERO), flow(2, [0, 9], &[0, 1], Dur::from_us(5))];
        flows[2].wait.as_mut().unwrap().give_up_after = Some(Dur::from_us(100));
        let waiting = WaitingFlows::new(&flows, |_, _| Dur::from_us(2)).unwrap();
        (flows, waiting)
    }

    #[test]
    fn a_flow_that_gives_up_starts_without_an_end_and_earlier_with_an_end() {
        let at = |us: u64| Time::ZERO + Dur::from_us(us);
        let (flows, mut waiting) = two_answers();
        assert_eq!(waiting.on_start(&flows[0], at(10)), []);
        assert_eq!(waiting.on_start(&flows[1], at(20)), [new(2, at(125))]);
        // The end of the first answer does not change the start: the second answer still delays it.
        assert_eq!(waiting.on_end(&flows[0], HostId(9), at(30)), []);
        let earlier = Start { flow: FlowId(2), at: at(65), instead: Some(at(125)) };
        assert_eq!(waiting.on_end(&flows[1], HostId(9), at(60)), [earlier]);

        // Only the first answer ends: the flow now starts 5 us after giving up on the second answer, which
        // started at 20 us. Later ends change nothing.
        let (flows, mut waiting) = two_answers();
        waiting.on_start(&flows[1], at(20));
        assert_eq!(waiting.on_start(&flows[0], at(50)), [new(2, at(155))]);
        let earlier = Start { flow: FlowId(2), at: at(125), instead: Some(at(155)) };
        assert_eq!(waiting.on_end(&flows[0], HostId(9), at(60)), [earlier]);
        assert_eq!(waiting.on_end(&flows[1], HostId(9), at(121)), []);
        assert_eq!(waiting.on_start(&flows[2], at(125)), []);
        assert_eq!(waiting.on_end(&flows[1], HostId(9), at(130)), []);
    }
}

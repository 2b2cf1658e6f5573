//! Flows that wait: a waiting flow starts a delay after other flows have ended.
//!
//! A flow ends at its receiver, with the last byte, or at its sender, if the sender gives the flow up. The
//! source of a waiting flow learns of the end after the waiting flow's delay. If the end is at another host,
//! the source learns of it no sooner than a bare header would arrive over an idle network. The waiting flow
//! starts when its source has learned of all ends.
//!
//! If a waiting flow gives up on other flows after some time, a flow that has not ended by then counts as
//! ended at its receiver.
//!
//! A waiting flow may also wait for joins of its source. A join needs no event: with the last of its ends its
//! time is known, perhaps in the future, and is passed on to the flows and joins that wait for it.

use base::{Dur, FlowId, HostId, JoinId, Time};
use proto::Flow;
use proto::flow::{Join, JoinTime};
use std::mem::{replace, take};

/// The ends that waiting flows still wait for.
#[derive(Clone)]
pub struct WaitingFlows {
    /// By flow: the flows that wait for its end.
    next: Vec<Vec<Next>>,
    /// By flow: the state of its start.
    turns: Vec<Turn>,
    /// By flow: the joins that wait for its end. Empty if there are no joins.
    ends: Vec<Vec<JoinEnd>>,
    /// By join: its state.
    joins: Vec<JoinState>,
}

/// A flow that waits for another flow or for a join.
#[derive(Clone)]
struct Next {
    flow: FlowId,
    /// The index of the other flow in the list of flows that this flow waits for. Joins follow the flows.
    place: u32,
    /// The delay to the start from an end at the other flow's receiver, and from an end at the other flow's sender;
    /// twice the delay after a join.
    delay: [Dur; 2],
}

/// A join that waits for the end of a flow.
#[derive(Clone)]
struct JoinEnd {
    join: JoinId,
    delay: Dur,
    /// The time in which the host of the join learns of an end at the flow's receiver, and of an end at its sender.
    latency: [Dur; 2],
}

/// The state of a join.
#[derive(Clone)]
struct JoinState {
    /// The number of ends and joins that it still waits for.
    missing: u32,
    /// Its time, as far as the ends and joins are known.
    time: JoinTime,
    /// The joins that wait for it, each with a delay.
    joins: Vec<(JoinId, Dur)>,
    /// The flows that wait for it.
    flows: Vec<Next>,
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
    /// Creates the state before a run of `flows` with the joins that they wait for; `None` if no flow waits.
    /// `latency` is the latency of a bare header between two hosts.
    pub fn new(flows: &[Flow], joins: &[Join], latency: impl Fn(HostId, HostId) -> Dur) -> Option<WaitingFlows> {
        if flows.iter().all(|flow| flow.wait.is_none()) {
            return None;
        }
        let mut next: Vec<Vec<Next>> = flows.iter().map(|_| Vec::new()).collect();
        let mut turns = vec![Turn::default(); flows.len()];
        let latency = |end: HostId, at: HostId| if end == at { Dur::ZERO } else { latency(end, at) };
        let (ends, mut states) = join_states(flows, joins, latency);
        for flow in flows {
            let Some(wait) = &flow.wait else { continue };
            let turn = &mut turns[flow.id.index()];
            (turn.missing, turn.give_up_after) = ((wait.on.len() + wait.joins.len()) as u32, wait.give_up_after);
            turn.not_before = wait.not_before;
            for (&(other, delay), place) in wait.on.iter().zip(0..) {
                let Flow { src, dst, .. } = flows[other.index()];
                let delay = |end: HostId| delay.max(latency(end, flow.src));
                next[other.index()].push(Next { flow: flow.id, place, delay: [delay(dst), delay(src)] });
            }
            for (&(join, delay), place) in wait.joins.iter().zip(wait.on.len() as u32..) {
                states[join.index()].flows.push(Next { flow: flow.id, place, delay: [delay; 2] });
            }
        }
        Some(WaitingFlows { next, turns, ends, joins: states })
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
        let at_sender = usize::from(at != flow.dst);
        let mut starts = self.learn(flow.id, |_, next| Some(now.after(next.delay[at_sender])));
        let ends = self.ends.get_mut(flow.id.index()).map_or(Vec::new(), take);
        let mut happened = Vec::new();
        for JoinEnd { join, delay, latency } in ends {
            let end = JoinTime { at: now, known: now.after(latency[at_sender]) };
            happened.extend(self.joins[join.index()].learn(end, delay).then_some(join));
        }
        while let Some(join) = happened.pop() {
            let JoinState { time, ref mut joins, ref mut flows, .. } = self.joins[join.index()];
            let (joins, flows) = (take(joins), take(flows));
            happened
                .extend(joins.into_iter().filter_map(|(join, delay)| self.joins[join.index()].learn(time, delay).then_some(join)));
            starts.extend(flows.iter().filter_map(|next| self.turns[next.flow.index()].learn(next, time.after(next.delay[0]))));
        }
        starts
    }

    /// Stores for each flow that waits for `flow` the time from which `flow` no longer delays its start, and
    /// returns the starts that change.
    fn learn(&mut self, flow: FlowId, allows: impl Fn(&Turn, &Next) -> Option<Time>) -> Vec<Start> {
        let mut starts = Vec::new();
        for next in &self.next[flow.index()] {
            let turn = &mut self.turns[next.flow.index()];
            starts.extend(allows(turn, next).and_then(|at| turn.learn(next, at)));
        }
        starts
    }
}

impl Turn {
    /// Stores the time from which a flow or a join no longer delays the start of `next.flow`, whose turn this is.
    /// Returns the start if it changes.
    fn learn(&mut self, next: &Next, at: Time) -> Option<Start> {
        if self.latest.is_empty() {
            if self.missing == 0 {
                return None; // The waiting flow has started.
            }
            self.latest = vec![Time::MAX; self.missing as usize];
        }
        let latest = &mut self.latest[next.place as usize];
        let before = replace(latest, at.min(*latest));
        self.missing -= u32::from(before == Time::MAX);
        // The end changes the start only if no other flow delays it as long.
        if self.missing > 0 || self.start.is_some_and(|start| before < start) {
            return None;
        }
        let at = self.latest.iter().copied().max()?.max(self.not_before);
        let instead = self.start.replace(at);
        (instead != Some(at)).then_some(Start { flow: next.flow, at, instead })
    }
}

impl JoinState {
    /// Stores the time of an end or a join that this join waits for. Returns whether it was the last.
    fn learn(&mut self, other: JoinTime, delay: Dur) -> bool {
        self.time = self.time.and(other, delay);
        self.missing -= 1;
        self.missing == 0
    }
}

/// Returns by flow the joins that wait for its end, and the states of all joins.
fn join_states(flows: &[Flow], joins: &[Join], latency: impl Fn(HostId, HostId) -> Dur) -> (Vec<Vec<JoinEnd>>, Vec<JoinState>) {
    if joins.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let state = |join: &Join| JoinState {
        missing: (join.on.len() + join.joins.len()) as u32,
        time: JoinTime::default(),
        joins: Vec::new(),
        flows: Vec::new(),
    };
    let (mut ends, mut states) = (vec![Vec::new(); flows.len()], joins.iter().map(state).collect::<Vec<_>>());
    for (join, id) in joins.iter().zip((0..).map(JoinId)) {
        for &(flow, delay) in &join.on {
            let latency = [false, true].map(|back| latency(flows[flow.index()].ends(back).1, join.host));
            ends[flow.index()].push(JoinEnd { join: id, delay, latency });
        }
        join.joins.iter().for_each(|(other, delay)| states[other.index()].joins.push((id, *delay)));
    }
    (ends, states)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;
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
        let mut waiting = WaitingFlows::new(&flows, &[], |_, _| us(20)).unwrap();
        let at = |us: u64| Time::ZERO + Dur::from_us(us);
        assert_eq!(waiting.on_end(&flows[1], HostId(1), at(100)), []);
        let expected = [new(2, at(105)), new(3, at(110))];
        assert_eq!(waiting.on_end(&flows[0], HostId(1), at(90)), expected);
        assert!(WaitingFlows::new(&flows[..2], &[], |_, _| us(20)).is_none());
    }

    #[test]
    fn the_end_of_a_flow_that_was_given_up_is_known_at_its_sender() {
        let flows =
            [flow(0, [0, 1], &[], Dur::ZERO), flow(1, [0, 2], &[0], Dur::from_us(5)), flow(2, [1, 2], &[0], Dur::from_us(5))];
        let mut waiting = WaitingFlows::new(&flows, &[], |_, _| Dur::from_us(20)).unwrap();
        let at = |us: u64| Time::ZERO + Dur::from_us(us);
        assert_eq!(waiting.on_end(&flows[0], HostId(0), at(50)), [new(1, at(55)), new(2, at(70))]);
    }
    /// Two answers to host 9, and a flow that waits for both, starts 5 us after them, and gives up on each
    /// answer 100 us after its start.
    fn two_answers() -> (Vec<Flow>, WaitingFlows) {
        let mut flows =
            vec![flow(0, [0, 9], &[], Dur::ZERO), flow(1, [1, 9], &[], Dur::ZERO), flow(2, [0, 9], &[0, 1], Dur::from_us(5))];
        flows[2].wait.as_mut().unwrap().give_up_after = Some(Dur::from_us(100));
        let waiting = WaitingFlows::new(&flows, &[], |_, _| Dur::from_us(2)).unwrap();
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

    fn at(us: u64) -> Time {
        Time::ZERO + Dur::from_us(us)
    }

    /// A join of a host. Delays are in microseconds.
    fn join(host: u32, on: &[(u32, u64)], joins: &[(u32, u64)]) -> Join {
        let on = on.iter().map(|(flow, delay)| (FlowId(*flow), Dur::from_us(*delay))).collect();
        Join { host: HostId(host), on, joins: joins.iter().map(|(join, delay)| (JoinId(*join), Dur::from_us(*delay))).collect() }
    }

    /// A flow that waits for joins, with delays in microseconds.
    fn joined(id: u32, ends: [u32; 2], on: &[u32], joins: &[(u32, u64)]) -> Flow {
        let joins = join(0, &[], joins).joins;
        let wait = Wait { joins, ..Wait::new(&on.iter().copied().map(FlowId).collect::<Vec<_>>(), Dur::ZERO) };
        Flow { wait: Some(Box::new(wait)), ..flow(id, ends, &[], Dur::ZERO) }
    }

    /// Flows 0 and 1 end at host 1, flow 2 ends at host 2. A host learns of ends at others after 20 us.
    fn with_joins(joins: &[Join], more: Vec<Flow>) -> (Vec<Flow>, WaitingFlows) {
        let mut flows = vec![flow(0, [0, 1], &[], Dur::ZERO), flow(1, [2, 1], &[], Dur::ZERO), flow(2, [0, 2], &[], Dur::ZERO)];
        flows.extend(more);
        let waiting = WaitingFlows::new(&flows, joins, |_, _| Dur::from_us(20)).unwrap();
        (flows, waiting)
    }

    #[test]
    fn flows_start_when_the_last_end_of_a_join_is_known() {
        // Two flows wait for a join of host 1, which has both ends, and one flow for a join of host 2 with the same ends.
        let more = vec![joined(3, [1, 0], &[], &[(0, 0)]), joined(4, [1, 0], &[], &[(0, 9)]), joined(5, [2, 0], &[], &[(1, 9)])];
        let joins = [join(1, &[(0, 3), (1, 5)], &[]), join(2, &[(0, 3), (1, 5)], &[])];
        let (flows, mut waiting) = with_joins(&joins, more);
        assert_eq!(waiting.on_end(&flows[1], HostId(1), at(90)), []);
        // 103 is later than 95. Host 2 learns of the end at 120, after 103 + 9.
        assert_eq!(waiting.on_end(&flows[0], HostId(1), at(100)), [new(5, at(120)), new(3, at(103)), new(4, at(112))]);
    }

    #[test]
    fn a_delay_begins_with_the_end_also_through_joins() {
        // The second join waits 15 us for the first join and for the end of flow 2 at host 2.
        let joins = [join(1, &[(0, 10), (2, 0)], &[]), join(1, &[(1, 0)], &[(0, 15)])];
        let more = |delay| vec![joined(3, [1, 0], &[], &[(1, delay)])];
        for (delay, start) in [(0, 125), (3, 128), (10, 135)] {
            let (flows, mut waiting) = with_joins(&joins, more(delay));
            assert_eq!(waiting.on_end(&flows[0], HostId(1), at(100)), []);
            assert_eq!(waiting.on_end(&flows[1], HostId(1), at(101)), []);
            // 100 + 10 + 15 plus the delay; host 1 learns of the end of flow 2 at 90 + 20.
            assert_eq!(waiting.on_end(&flows[2], HostId(2), at(90)), [new(3, at(start))], "{delay}");
        }
        for (delay, start) in [(0, 160), (3, 160), (10, 165)] {
            let (flows, mut waiting) = with_joins(&joins, more(delay));
            assert_eq!(waiting.on_end(&flows[0], HostId(1), at(100)), []);
            assert_eq!(waiting.on_end(&flows[2], HostId(2), at(140)), [], "the first join has happened");
            // 140 + 15 plus the delay; host 1 learns of the end at 160.
            assert_eq!(waiting.on_end(&flows[1], HostId(1), at(150)), [new(3, at(start))], "{delay}");
        }
    }

    /// The sender of flow 0 gives it up. Host 0 knows this end at once, and host 1 after 20 us.
    #[test]
    fn a_join_of_the_sender_knows_at_once_that_a_flow_was_given_up() {
        let more = vec![joined(3, [0, 2], &[], &[(0, 1)]), joined(4, [1, 2], &[], &[(1, 1)])];
        let (flows, mut waiting) = with_joins(&[join(0, &[(0, 2)], &[]), join(1, &[(0, 2)], &[])], more);
        assert_eq!(waiting.on_end(&flows[0], HostId(0), at(50)), [new(4, at(70)), new(3, at(53))]);
    }

    /// A flow gives up on flows, but not on joins.
    #[test]
    fn a_flow_that_gives_up_waits_for_its_joins() {
        let mut more = vec![joined(3, [1, 0], &[1], &[(0, 5)])];
        more[0].wait.as_mut().unwrap().give_up_after = Some(Dur::from_us(50));
        let (flows, mut waiting) = with_joins(&[join(1, &[(0, 0)], &[])], more);
        assert_eq!(waiting.on_start(&flows[0], at(0)), []);
        assert_eq!(waiting.on_start(&flows[1], at(60)), []);
        assert_eq!(waiting.on_end(&flows[0], HostId(1), at(80)), [new(3, at(110))], "until flow 1 is given up");
        let earlier = Start { flow: FlowId(3), at: at(90), instead: Some(at(110)) };
        assert_eq!(waiting.on_end(&flows[1], HostId(1), at(90)), [earlier]);
    }

    /// Returns all ends for which a list waits, those of its joins included.
    fn all_ends(on: &[(FlowId, Dur)], on_joins: &[(JoinId, Dur)], joins: &[Join]) -> Vec<(FlowId, Dur)> {
        let mut all = on.to_vec();
        for (join, delay) in on_joins {
            let Join { on, joins: others, .. } = &joins[join.index()];
            all.extend(all_ends(on, others, joins).into_iter().map(|(flow, gap)| (flow, gap + *delay)));
        }
        all
    }

    /// Flows that wait for joins start when flows start that wait for all ends of these joins.
    #[test]
    fn joins_have_the_effect_of_their_ends() {
        for n in 0..1000 {
            let rng = &mut Rng::stream(20, "joins", &[n]);
            // By flow that ends: the end, its hosts, and the host where it ends.
            let ended: Vec<(Time, [u32; 2], usize)> = (0..1 + rng.below(5))
                .map(|_| (at(rng.below(60)), [rng.below(3) as u32, rng.below(3) as u32], rng.below(2) as usize))
                .collect();
            let mut joins: Vec<Join> = Vec::new();
            // A condition of a host: up to three ends, and joins of the host if there are any.
            let draw = |rng: &mut Rng, joins: &[Join]| {
                let host = rng.below(3) as u32;
                let own: Vec<u32> = (0..).zip(joins).filter(|(_, join)| join.host == HostId(host)).map(|(id, _)| id).collect();
                let mut list = |of: &[u32], least: u64| -> Vec<(u32, u64)> {
                    let count = if of.is_empty() { 0 } else { least + rng.below(3) };
                    (0..count).map(|_| (of[rng.below(of.len() as u64) as usize], rng.below(30))).collect()
                };
                let flows: Vec<u32> = (0..ended.len() as u32).collect();
                let on = list(&own, 0);
                join(host, &list(&flows, u64::from(on.is_empty())), &on)
            };
            for _ in 0..1 + rng.below(7) {
                joins.push(draw(rng, &joins));
            }
            let mut flows: Vec<Flow> = ended.iter().zip(0..).map(|((_, ends, _), id)| flow(id, *ends, &[], Dur::ZERO)).collect();
            let mut flat = flows.clone();
            for id in 0..1 + rng.below(4) as u32 {
                let Join { host, on, joins: on_joins } = draw(rng, &joins);
                let plain = flow(ended.len() as u32 + id, [host.0, 9], &[], Dur::ZERO);
                let not_before = at(rng.below(100));
                let wait = |on, joins| Some(Box::new(Wait { on, joins, not_before, ..Wait::new(&[], Dur::ZERO) }));
                flat.push(Flow { wait: wait(all_ends(&on, &on_joins, &joins), Vec::new()), ..plain.clone() });
                flows.push(Flow { wait: wait(on, on_joins), ..plain });
            }
            let latency = |from: HostId, to: HostId| Dur::from_us(u64::from(from.0.abs_diff(to.0)) * 9);
            let starts = |flows: &[Flow], joins: &[Join]| {
                let mut waiting = WaitingFlows::new(flows, joins, latency).unwrap();
                let mut order: Vec<usize> = (0..ended.len()).collect();
                order.sort_by_key(|flow| ended[*flow].0);
                let mut starts: Vec<Start> = Vec::new();
                for flow in order {
                    let (now, ends, end) = ended[flow];
                    let found = waiting.on_end(&flows[flow], HostId(ends[end]), now);
                    assert!(found.iter().all(|start| start.at >= now));
                    starts.extend(found);
                }
                starts.sort_by_key(|start| start.flow);
                starts
            };
            assert_eq!(starts(&flows, &joins), starts(&flat, &[]), "{n}: {joins:?}");
        }
    }
}

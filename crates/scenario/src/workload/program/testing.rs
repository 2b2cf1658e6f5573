//! For tests: the plain way to plan a program. Every look-up is in a map, and lists are merged one by
//! one.

use super::moment::Search;
use super::*;
use crate::workload::{Drawn, DrawnJoin};
use std::collections::BTreeMap;

/// A moment with the list of all its flows.
#[derive(Clone, Debug)]
pub(super) struct PlainMoment {
    not_before: Dur,
    flows: Vec<(u32, Dur)>,
}

impl PlainMoment {
    fn later(&self, time: Dur) -> PlainMoment {
        let flows = self.flows.iter().map(|(flow, delay)| (*flow, *delay + time)).collect();
        PlainMoment { not_before: self.not_before + time, flows }
    }
    fn longest(&self) -> Dur {
        self.flows.iter().map(|(_, delay)| *delay).fold(self.not_before, Dur::max)
    }
    /// Returns the flow of a message that starts then.
    fn flow(&self, message: &Message, ends: (HostId, HostId)) -> Drawn {
        let later = self.flows.iter().any(|(_, delay)| *delay >= self.not_before);
        let not_before = Time::ZERO + if later { Dur::ZERO } else { self.not_before };
        let flow = message.flow(ends, MessagePorts::Message);
        if self.flows.is_empty() {
            return Drawn { start: not_before, ..flow };
        }
        Drawn { after: Some(Box::new(After { flows: self.flows.clone(), not_before, ..After::new(&[], Dur::ZERO) })), ..flow }
    }
}

/// The times of an operation.
struct PlainTimes {
    start: Rc<PlainMoment>,
    end: Rc<PlainMoment>,
    arrival: Option<Rc<PlainMoment>>,
}

/// Limits of the search for redundant waits, as in `moment.rs`.
pub(super) struct SearchLimits {
    pub most: usize,
    pub each: usize,
    pub at_once: usize,
    pub looked_at: usize,
}

impl SearchLimits {
    pub fn new() -> SearchLimits {
        SearchLimits { most: Search::FIRST, each: Search::EACH, at_once: Search::AT_ONCE, looked_at: 0 }
    }
}

/// Returns the flows of a program with its ranks placed.
pub(super) fn flows(
    program: &Program,
    placed: &Placed,
    start_of_program: Dur,
    unit: &str,
    limits: &mut SearchLimits,
) -> Result<Vec<Drawn>, String> {
    let taken = taken(program, unit)?;
    let mut flows: Vec<Drawn> = Vec::new();
    let mut waits = 0;
    let mut times: Vec<Vec<Option<PlainTimes>>> = program.ranks.iter().map(|ops| ops.iter().map(|_| None).collect()).collect();
    let begin = Rc::new(PlainMoment { not_before: start_of_program, flows: Vec::new() });
    for At { rank, op: number } in in_order(program, &taken, unit)? {
        let op = &program.ranks[rank as usize][number as usize];
        let known = |at: At| times[at.rank as usize][at.op as usize].as_ref();
        let own = |op: &u32| known(At { rank, op: *op });
        let ends = op.after.iter().filter_map(own).map(|times| &times.end);
        let start = last(ends.chain(op.with.iter().filter_map(own).map(|times| &times.start)), &flows, limits);
        let start = start.unwrap_or_else(|| Rc::clone(&begin));
        let (end, arrival) = match &op.act {
            Act::Compute(Dur::ZERO) => (Rc::clone(&start), None),
            Act::Compute(time) => (Rc::new(start.later(*time)), None),
            Act::Receive { .. } => {
                let arrival = taken.get(&At { rank, op: number }).and_then(|send| known(*send)?.arrival.as_ref());
                let end = last(arrival.into_iter().chain([&start]), &flows, limits);
                (end.unwrap_or_else(|| Rc::clone(&start)), None)
            }
            Act::Send(message) => {
                let arrival;
                if let Some(time) = placed.local(rank, message.to, message.bytes) {
                    arrival = Rc::new(start.later(time));
                } else {
                    let [src, dst] = [rank, message.to].map(|rank| placed.hosts[rank as usize]);
                    if start.longest() > MAX_TIME {
                        return Err(format!(
                            "rank {rank}, {unit} {}: starts more than {MAX_TIME} after the operations that it waits for",
                            op.place
                        ));
                    }
                    waits += start.flows.len();
                    let end = vec![(flows.len() as u32, Dur::ZERO)];
                    arrival = Rc::new(PlainMoment { not_before: Dur::ZERO, flows: end });
                    flows.push(start.flow(message, (src, dst)));
                }
                (if message.eager { Rc::clone(&start) } else { Rc::clone(&arrival) }, Some(arrival))
            }
        };
        if waits > MOST_WAITS || flows.len() > u32::MAX as usize {
            return Err(format!("its flows have more than {MOST_WAITS} dependencies, which do not fit into memory"));
        }
        times[rank as usize][number as usize] = Some(PlainTimes { start, end, arrival });
    }
    Ok(flows)
}

/// An operation: its rank, and its number within the rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct At {
    rank: u32,
    op: u32,
}

/// Returns for each receive the send whose message it takes: of all sends, the first that fits.
fn taken(program: &Program, unit: &str) -> Result<BTreeMap<At, At>, String> {
    let mut taken: BTreeMap<At, At> = BTreeMap::new();
    for (at, op) in all(program) {
        let Act::Receive { from, tag } = op.act else { continue };
        let fits =
            |op: &Op| matches!(&op.act, Act::Send(message) if message.to == at.rank && tag.is_none_or(|tag| tag == message.tag));
        let mut sends = all(program).filter(|(send, op)| send.rank == from && fits(op)).map(|(send, _)| send);
        let send = sends.find(|send| !taken.values().any(|other| other == send));
        let tagged = tag.map_or(String::new(), |tag| format!(" with tag {tag}"));
        let never =
            || format!("rank {}, {unit} {}: no message{tagged} from rank {from} is left for this receive", at.rank, op.place);
        taken.insert(at, send.ok_or_else(never)?);
    }
    Ok(taken)
}

fn all(program: &Program) -> impl Iterator<Item = (At, &Op)> {
    let ranks = program.ranks.iter().zip(0..);
    ranks.flat_map(|(ops, rank)| ops.iter().zip(0..).map(move |(op, number)| (At { rank, op: number }, op)))
}

/// Returns all operations, each after the operations that it waits for.
fn in_order(program: &Program, taken: &BTreeMap<At, At>, unit: &str) -> Result<Vec<At>, String> {
    let mut next: BTreeMap<At, Vec<At>> = BTreeMap::new();
    let mut missing: Vec<Vec<u32>> = program.ranks.iter().map(|ops| vec![0; ops.len()]).collect();
    for (at, op) in all(program) {
        let own = op.after.iter().chain(&op.with).map(|op| At { rank: at.rank, op: *op });
        for other in own.chain(taken.get(&at).copied()) {
            next.entry(other).or_default().push(at);
            missing[at.rank as usize][at.op as usize] += 1;
        }
    }
    let mut order: Vec<At> = all(program).map(|(at, _)| at).filter(|at| missing[at.rank as usize][at.op as usize] == 0).collect();
    let mut done = 0;
    while let Some(at) = order.get(done) {
        for waits in next.get(at).into_iter().flatten() {
            let missing = &mut missing[waits.rank as usize][waits.op as usize];
            *missing -= 1;
            if *missing == 0 {
                order.push(*waits);
            }
        }
        done += 1;
    }
    match all(program).find(|(at, _)| missing[at.rank as usize][at.op as usize] > 0) {
        None => Ok(order),
        Some((at, op)) => Err(format!("rank {}, {unit} {}: waits for itself, through other operations", at.rank, op.place)),
    }
}

/// Returns the last of some moments, as `WaitGraph::last` does.
fn last<'a>(
    moments: impl Iterator<Item = &'a Rc<PlainMoment>>,
    drawn: &[Drawn],
    limits: &mut SearchLimits,
) -> Option<Rc<PlainMoment>> {
    let mut distinct: Vec<&Rc<PlainMoment>> = moments.collect();
    distinct.dedup_by(|a, b| Rc::ptr_eq(a, b));
    if let [first] = distinct[..] {
        return Some(Rc::clone(first));
    }
    let not_before = distinct.iter().map(|moment| moment.not_before).max()?;
    if let [first] = distinct.iter().filter(|moment| !moment.flows.is_empty()).collect::<Vec<_>>()[..]
        && first.not_before == not_before
    {
        return Some(Rc::clone(first));
    }
    let mut flows = distinct.iter().fold(Vec::new(), |all, moment| merged(&all, &moment.flows));
    limits.most += limits.each;
    let most = (limits.most - limits.looked_at).min(limits.at_once);
    if distinct.iter().all(|moment| moment.flows.len() < flows.len()) {
        let waits = |flow: u32| drawn[flow as usize].after.as_ref().map_or(&[][..], |after| &after.flows);
        limits.looked_at += remove_redundant(&mut flows, waits, most);
    }
    Some(Rc::new(PlainMoment { not_before, flows }))
}

/// Merges two lists of flows, with the longer delay of each flow.
pub(super) fn merged(a: &[(u32, Dur)], b: &[(u32, Dur)]) -> Vec<(u32, Dur)> {
    let mut all = Vec::with_capacity(a.len() + b.len());
    let (mut a, mut b) = (a.iter().copied().peekable(), b.iter().copied().peekable());
    loop {
        match (a.peek(), b.peek()) {
            (Some(one), Some(other)) if one.0 == other.0 => all.extend(a.next().max(b.next())),
            (Some(one), Some(other)) if one.0 > other.0 => all.extend(b.next()),
            (Some(_), _) => all.extend(a.next()),
            (None, Some(_)) => all.extend(b.next()),
            (None, None) => return all,
        }
    }
}

/// Removes the flows of a moment that are redundant: another flow of the moment has waited for
/// them, so they end early enough. Examines at most `most` waits, and returns how many it has
/// examined.
///
/// A flow waits only for flows drawn before it. Therefore the longest delay of the newest flow that
/// is not yet examined is known, and flows older than the oldest flow of the moment do not matter.
pub(super) fn remove_redundant<'a>(flows: &mut Vec<(u32, Dur)>, waits: impl Fn(u32) -> &'a [(u32, Dur)], most: usize) -> usize {
    let (mut kept, mut oldest) = (vec![true; flows.len()], 0);
    // Flows that the flows of the moment have waited for, with the longest delay.
    let mut awaited: BTreeMap<u32, Dur> = BTreeMap::new();
    let (mut newest, mut looked_at) = (flows.len(), 0);
    'search: while oldest + 1 < flows.len() {
        let own = newest.checked_sub(1).map(|i| flows[i]);
        let other = awaited.last_key_value().map(|(flow, delay)| (*flow, *delay));
        let Some((flow, delay)) = own.max(other).filter(|(flow, _)| *flow > flows[oldest].0) else { break };
        newest -= usize::from(own.is_some_and(|own| own.0 == flow));
        awaited.remove(&flow);
        for (before, gap) in waits(flow) {
            if looked_at == most {
                break 'search;
            }
            looked_at += 1;
            if *before < flows[oldest].0 {
                continue;
            }
            let delay = Dur(delay.0.saturating_add(gap.0));
            if let Ok(i) = flows.binary_search_by_key(before, |(flow, _)| *flow) {
                kept[i] &= flows[i].1 > delay;
            }
            // The newest flow of the moment stays.
            oldest += kept[oldest..].iter().take_while(|kept| !**kept).count();
            let known = awaited.entry(*before).or_insert(delay);
            *known = (*known).max(delay);
        }
    }
    let mut kept = kept.into_iter();
    flows.retain(|_| kept.next().unwrap_or(true));
    looked_at
}

impl Program {
    /// Returns all operations: rank, number within the rank, action, and the operations of the rank
    /// that must end before.
    pub fn listed(&self) -> Vec<(u32, u32, &Act, &[u32])> {
        all(self).map(|(at, op)| (at.rank, at.op, &op.act, &op.after[..])).collect()
    }
}

/// Returns the latency of a packet between two of three hosts, which are on a line.
fn latency(from: HostId, to: HostId) -> u64 {
    let place = |host: HostId| [0u64, 2, 5][host.0 as usize];
    place(from).abs_diff(place(to))
}

/// Returns all ends for which a condition waits, those of its joins included.
fn ends(flows: &[(u32, Dur)], on: &[(u32, Dur)], joins: &[DrawnJoin], host: HostId) -> Vec<(u32, Dur)> {
    let mut all = flows.to_vec();
    for (join, delay) in on {
        let join = &joins[*join as usize];
        assert_eq!(join.host, host, "a join is of the host that waits for it");
        all.extend(ends(&join.flows, &join.joins, joins, host).into_iter().map(|(flow, gap)| (flow, gap + *delay)));
    }
    all
}

/// Returns when a condition is known to hold at a host.
fn known(after: &After, joins: &[DrawnJoin], host: HostId, finish: impl Fn(u32) -> (HostId, u64)) -> u64 {
    let learned = |(flow, delay): (u32, Dur)| {
        let (at, end) = finish(flow);
        end + delay.0.max(latency(at, host))
    };
    ends(&after.flows, &after.joins, joins, host).into_iter().map(learned).fold(after.not_before.0, u64::max)
}

/// Returns the starts of flows. A flow takes a time of `takes` longer than a packet.
pub(super) fn starts(flows: &[Drawn], joins: &[DrawnJoin], takes: &[u64]) -> Vec<u64> {
    let mut starts: Vec<u64> = Vec::new();
    for flow in flows {
        let start = flow.after.as_ref().map(|after| known(after, joins, flow.src, |other| finish(flows, &starts, takes, other)));
        starts.push(start.unwrap_or(flow.start.0));
    }
    starts
}

/// Returns where and when a flow ends.
fn finish(flows: &[Drawn], starts: &[u64], takes: &[u64], flow: u32) -> (HostId, u64) {
    let Drawn { src, dst, .. } = flows[flow as usize];
    (dst, starts[flow as usize] + latency(src, dst) + takes[flow as usize % takes.len()])
}

/// Returns when each part of a task begins and ends.
pub(super) fn parts(draw: &Draw, starts: &[u64], takes: &[u64]) -> Vec<[u64; 2]> {
    let part = |part: &TaskPart| {
        part.moments.map(|moment| {
            let after = &draw.tasks.moments[moment as usize];
            known(after, &draw.joins, part.host, |flow| finish(&draw.flows, starts, takes, flow))
        })
    };
    draw.tasks.parts.iter().map(part).collect()
}

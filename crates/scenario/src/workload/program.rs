//! Flows of programs: ranks that send, receive and compute. An operation may depend on other
//! operations of its rank.
//!
//! Each message is a flow. The computations between two messages become the delay between the flows.
//!
//! - An operation starts when all operations that it depends on have ended.
//! - A computation ends when its duration is over.
//! - A send starts a flow. It ends when the flow ends, or at once if its message is eager.
//! - A receive ends when it has started and the flow of its message has ended. It takes the first
//!   message, in the order of the sender's operations, from its source to its rank with its tag
//!   that no other receive has taken.
//! - A message between ranks of the same server takes its bytes over `local_rate`, and no time
//!   without this rate. It is not a flow. By default, each host is a server.
//!
//! Model: computations of a rank overlap unless a dependency orders them; sending and receiving
//! take no processor time; a message is sent when its send starts, whether a receive waits for it
//! or not. There is no contention inside a server: each message has the full `local_rate`. A rank
//! learns that its own message has arrived no sooner than a packet without payload could have come
//! back; the duration of computations in this time counts from the arrival.

mod moment;
mod placement;
mod wait_graph;

use super::listed::Hosts;
use super::tasks::{Task, TaskPart, Tasks};
use super::{After, Draw, Drawn, MAX_TIME};
use base::{Dur, HostId, Time};
use moment::Moment;
pub use placement::{MessagePorts, Placed, Ranks};
use std::rc::Rc;
use wait_graph::{FEW, Finished, WaitGraph};

/// A program: the operations of each rank.
#[derive(Default)]
pub struct Program {
    ranks: Vec<Vec<Op>>,
    tasks: Vec<Task>,
    /// The parts of ranks in tasks.
    spans: Vec<OpSpan>,
}

/// The part of a rank in a task: from the start of an operation to the end of an operation.
#[derive(Clone, Copy)]
struct OpSpan {
    task: u32,
    rank: u32,
    /// The first and the last operation.
    ops: [u32; 2],
}

/// An operation of a rank.
struct Op {
    act: Act,
    /// Operations of the same rank that must end before this operation starts.
    after: Vec<u32>,
    /// Operations of the same rank that must start before this operation starts.
    with: Vec<u32>,
    /// Number of its line or node, for error messages: `line 12`, `node 7`.
    place: u64,
}

/// The action of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Computes for a time.
    Compute(Dur),
    /// Sends a message.
    Send(Message),
    /// Waits for a message.
    Receive {
        /// The rank that sends the message.
        from: u32,
        /// The tag of the message; `None`: any tag.
        tag: Option<u64>,
    },
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The rank that receives the message.
    pub to: u32,
    /// Size in bytes; 0 counts as 1.
    pub bytes: u64,
    /// Tag that a receive must match.
    pub tag: u64,
    /// Whether the send ends at once.
    pub eager: bool,
    /// Number of the group of the message.
    pub group: Option<u32>,
    /// Number of its channel from rank to rank.
    pub channel: u32,
}

/// Maximum number of waits of all flows and joins together. More would not fit into memory.
const MOST_WAITS: usize = 50_000_000;

/// The times of an operation.
struct Times {
    start: Rc<Moment>,
    end: Rc<Moment>,
    /// For a send: arrival of the message.
    arrival: Option<Rc<Moment>>,
}

impl Program {
    /// Creates a program of `ranks` ranks without operations.
    pub fn new(ranks: usize) -> Program {
        Program { ranks: (0..ranks).map(|_| Vec::new()).collect(), ..Program::default() }
    }
    /// Returns the number of ranks.
    pub fn ranks(&self) -> u32 {
        self.ranks.len() as u32
    }
    /// Adds an operation that starts after the operations `after` of its rank have ended. Returns
    /// its number within the rank.
    pub fn add(&mut self, rank: u32, act: Act, after: Vec<u32>, place: u64) -> u32 {
        let ops = &mut self.ranks[rank as usize];
        ops.push(Op { act, after, with: Vec::new(), place });
        ops.len() as u32 - 1
    }
    /// Makes an operation start after another operation of its rank has ended.
    pub fn after_end(&mut self, rank: u32, op: u32, other: u32) {
        self.ranks[rank as usize][op as usize].after.push(other);
    }
    /// Makes an operation start after another operation of its rank has started.
    pub fn after_start(&mut self, rank: u32, op: u32, other: u32) {
        self.ranks[rank as usize][op as usize].with.push(other);
    }

    /// Adds a task. Returns its number, which is the group of its messages.
    pub fn task(&mut self, task: Task) -> u32 {
        self.tasks.push(task);
        self.tasks.len() as u32 - 1
    }
    /// Adds the part of a rank in a task: from the start of operation `first` to the end of
    /// operation `last`.
    pub fn span(&mut self, task: u32, rank: u32, first: u32, last: u32) {
        self.spans.push(OpSpan { task, rank, ops: [first, last] });
    }

    /// Returns the flows and tasks of the program. `unit` names the places of operations in error
    /// messages, like `line`. The error is a complete message.
    pub fn draw(&self, params: &Ranks, hosts: &Hosts<'_>, unit: &str) -> Result<Draw, String> {
        self.draw_by(params, hosts, unit, &mut WaitGraph::new(FEW))
    }

    fn draw_by(&self, params: &Ranks, hosts: &Hosts<'_>, unit: &str, waits: &mut WaitGraph) -> Result<Draw, String> {
        let placed = params.placed(self.ranks.len(), hosts)?;
        let operations = self.operations(unit)?;
        let (order, mut waiting) = operations.in_order(unit)?;
        // The times of the operations that others still wait for.
        let mut times: Vec<Option<Times>> = order.iter().map(|_| None).collect();
        let begin = Rc::new(Moment::at(params.start));
        let mut parts = Parts::new(&self.spans, &operations.first, operations.all.len());
        for number in order {
            let (rank, op) = operations.all[number];
            let first = operations.first[rank as usize];
            let own = |op: &u32| times[first + *op as usize].as_ref();
            let ends = op.after.iter().filter_map(own).map(|times| &times.end);
            let start = waits.last(ends.chain(op.with.iter().filter_map(own).map(|times| &times.start)));
            let start = start.unwrap_or_else(|| Rc::clone(&begin));
            let (end, arrival) = match &op.act {
                Act::Compute(Dur::ZERO) => (Rc::clone(&start), None),
                Act::Compute(time) => (Rc::new(start.later(*time)), None),
                Act::Receive { .. } => {
                    let arrival = operations.taken[number].and_then(|send| times[send].as_ref()?.arrival.as_ref());
                    let end = waits.last(arrival.into_iter().chain([&start]));
                    (end.unwrap_or_else(|| Rc::clone(&start)), None)
                }
                Act::Send(message) => {
                    let arrival = match placed.local(rank, message.to, message.bytes) {
                        Some(Dur::ZERO) => Rc::clone(&start),
                        Some(time) => Rc::new(start.later(time)),
                        None if start.longest() > MAX_TIME => {
                            return Err(format!(
                                "rank {rank}, {unit} {}: starts more than {MAX_TIME} after the operations that it waits for",
                                op.place
                            ));
                        }
                        None => {
                            let ends = (placed.hosts[rank as usize], placed.hosts[message.to as usize]);
                            Rc::new(waits.add(message.flow(ends, params.ports), &start))
                        }
                    };
                    (if message.eager { Rc::clone(&start) } else { Rc::clone(&arrival) }, Some(arrival))
                }
            };
            if waits.count() > MOST_WAITS || waits.len() > u32::MAX as usize / 2 {
                return Err(format!("its flows have more than {MOST_WAITS} dependencies, which do not fit into memory"));
            }
            parts.note(number, [&start, &end]);
            for needed in operations.needed_by(number) {
                waiting[needed] -= 1;
                if waiting[needed] == 0 {
                    times[needed] = None;
                }
            }
            if waiting[number] > 0 {
                times[number] = Some(Times { start, end, arrival });
            }
        }
        let Finished { flows, joins, moments } = waits.finish(&parts.of_hosts(&placed.hosts));
        Ok(Draw { flows, joins, tasks: parts.tasks(&self.tasks, &placed.hosts, moments) })
    }

    /// Numbers the operations, and finds for each receive the send whose message it takes.
    fn operations(&self, unit: &str) -> Result<Operations<'_>, String> {
        let all: Vec<(u32, &Op)> = (0..).zip(&self.ranks).flat_map(|(rank, ops)| ops.iter().map(move |op| (rank, op))).collect();
        let mut first = Vec::with_capacity(self.ranks.len());
        self.ranks.iter().fold(0, |number, ops| {
            first.push(number);
            number + ops.len()
        });
        let sends = || {
            let sent = |(number, (rank, op)): (usize, &(u32, &Op))| match &op.act {
                Act::Send(message) => Some((*rank, message.to, message.tag, number)),
                _ => None,
            };
            all.iter().enumerate().filter_map(sent)
        };
        let mut tagged = Sent::new(sends().map(|(from, to, tag, number)| ((from, to, tag), number)).collect());
        let mut any = Sent::new(sends().map(|(from, to, _, number)| ((from, to), number)).collect());
        let mut gone = vec![false; all.len()];
        let mut taken = vec![None; all.len()];
        for (number, (rank, op)) in all.iter().enumerate() {
            let Act::Receive { from, tag } = op.act else { continue };
            let send = match tag {
                Some(tag) => tagged.take((from, *rank, tag), &mut gone),
                None => any.take((from, *rank), &mut gone),
            };
            let with = || tag.map_or(String::new(), |tag| format!(" with tag {tag}"));
            let never =
                || format!("rank {rank}, {unit} {}: no message{} from rank {from} is left for this receive", op.place, with());
            taken[number] = Some(send.ok_or_else(never)?);
        }
        Ok(Operations { all, first, taken })
    }
}

/// Finds the moments at which parts of tasks begin and end.
struct Parts<'a> {
    spans: &'a [OpSpan],
    /// The bounds of spans, in the order of their operations: each the index of a span, and whether it
    /// begins (0) or ends (1) there.
    bounds: Vec<(u32, u8)>,
    /// By operation: the number of bounds at it and at the operations before it.
    ends: Vec<u32>,
    /// By span: the indices of the moments at which it begins and ends.
    found: Vec<[u32; 2]>,
    /// The moments, each with a rank that has parts that begin or end then.
    moments: Vec<(u32, Rc<Moment>)>,
}

impl<'a> Parts<'a> {
    /// `first` are the numbers of the ranks' first operations, and `count` is the number of all
    /// operations.
    fn new(spans: &'a [OpSpan], first: &[usize], count: usize) -> Self {
        let bound = |(span, at): (&OpSpan, u32)| {
            [0u8, 1].map(|end| (first[span.rank as usize] + span.ops[usize::from(end)] as usize, at, end))
        };
        let mut bounds: Vec<(usize, u32, u8)> = spans.iter().zip(0..).flat_map(bound).collect();
        bounds.sort_unstable();
        let mut ends = vec![0; count];
        bounds.iter().for_each(|(op, ..)| ends[*op] += 1);
        ends.iter_mut().fold(0, |sum, end| {
            *end += sum;
            *end
        });
        let bounds = bounds.into_iter().map(|(_, span, end)| (span, end)).collect();
        Parts { spans, bounds, ends, found: vec![[0; 2]; spans.len()], moments: Vec::new() }
    }
    /// Notes when an operation starts and ends.
    fn note(&mut self, number: usize, times: [&Rc<Moment>; 2]) {
        let from = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        for &(span, end) in &self.bounds[from as usize..self.ends[number] as usize] {
            let moment = times[usize::from(end)];
            let rank = self.spans[span as usize].rank;
            // Parts of a rank that follow one another often have one moment.
            if self.moments.last().is_none_or(|(of, last)| *of != rank || !Rc::ptr_eq(last, moment)) {
                self.moments.push((rank, Rc::clone(moment)));
            }
            self.found[span as usize][usize::from(end)] = self.moments.len() as u32 - 1;
        }
    }
    /// Returns the moments, each with its host.
    fn of_hosts(&self, placed: &[HostId]) -> Vec<(HostId, Rc<Moment>)> {
        self.moments.iter().map(|(rank, moment)| (placed[*rank as usize], Rc::clone(moment))).collect()
    }
    /// Returns the tasks with their parts. `moments` are the moments as conditions.
    fn tasks(self, tasks: &[Task], placed: &[HostId], moments: Vec<After>) -> Tasks {
        let part = |(span, moments): (&OpSpan, [u32; 2])| TaskPart {
            task: span.task,
            rank: span.rank,
            host: placed[span.rank as usize],
            moments,
        };
        Tasks { all: tasks.to_vec(), parts: self.spans.iter().zip(self.found).map(part).collect(), moments }
    }
}

/// The operations of a program, numbered rank after rank.
struct Operations<'a> {
    /// All operations, each with its rank.
    all: Vec<(u32, &'a Op)>,
    /// By rank: the number of its first operation.
    first: Vec<usize>,
    /// By operation: the send whose message it takes, if it is a receive.
    taken: Vec<Option<usize>>,
}

impl Operations<'_> {
    /// Returns the operations that an operation waits for.
    fn needed_by(&self, number: usize) -> impl Iterator<Item = usize> {
        let (rank, op) = self.all[number];
        let first = self.first[rank as usize];
        op.after.iter().chain(&op.with).map(move |op| first + *op as usize).chain(self.taken[number])
    }

    /// Returns all operations, each after the operations that it waits for, and by operation the
    /// number of times that others wait for it.
    fn in_order(&self, unit: &str) -> Result<(Vec<usize>, Vec<u32>), String> {
        let count = self.all.len();
        let (mut missing, mut waiting) = (vec![0u32; count], vec![0u32; count]);
        for (number, missing) in missing.iter_mut().enumerate() {
            for needed in self.needed_by(number) {
                *missing += 1;
                waiting[needed] += 1;
            }
        }
        // The operations that wait for an operation lie one after another in `next`, up to its end.
        let mut ends = Vec::with_capacity(count);
        let edges = waiting.iter().fold(0, |sum, waiting| {
            ends.push(sum);
            sum + *waiting as usize
        });
        let mut next = vec![0; edges];
        for number in 0..count {
            for needed in self.needed_by(number) {
                next[ends[needed]] = number;
                ends[needed] += 1;
            }
        }
        let mut order: Vec<usize> = (0..count).filter(|number| missing[*number] == 0).collect();
        let mut done = 0;
        while let Some(&number) = order.get(done) {
            for &waits in &next[ends[number] - waiting[number] as usize..ends[number]] {
                missing[waits] -= 1;
                if missing[waits] == 0 {
                    order.push(waits);
                }
            }
            done += 1;
        }
        match missing.iter().zip(&self.all).find(|(missing, _)| **missing > 0) {
            None => Ok((order, waiting)),
            Some((_, (rank, op))) => Err(format!("rank {rank}, {unit} {}: waits for itself, through other operations", op.place)),
        }
    }
}

/// The sends of a program by a key: its ranks, or its ranks and its tag.
struct Sent<K> {
    /// All sends, sorted by key and then in the order of the sender's operations.
    all: Vec<(K, usize)>,
    /// By place of the first send with a key: the number of sends with this key that are gone.
    passed: Vec<usize>,
}

impl<K: Ord> Sent<K> {
    fn new(mut all: Vec<(K, usize)>) -> Self {
        all.sort_unstable();
        Sent { passed: vec![0; all.len()], all }
    }
    /// Takes the first send with a key. `gone` are the sends that a receive has taken, by number.
    fn take(&mut self, key: K, gone: &mut [bool]) -> Option<usize> {
        let first = self.all.partition_point(|(other, _)| *other < key);
        loop {
            let passed = self.passed.get_mut(first)?;
            let (_, send) = self.all.get(first + *passed).filter(|(other, _)| *other == key)?;
            *passed += 1;
            if !std::mem::replace(&mut gone[*send], true) {
                return Some(*send);
            }
        }
    }
}

impl Message {
    /// Returns the flow of the message, from one host to another, without its start.
    fn flow(&self, (src, dst): (HostId, HostId), ports: MessagePorts) -> Drawn {
        let connection = match ports {
            MessagePorts::Message => None,
            MessagePorts::Channel => Some(self.channel),
            MessagePorts::Peer => Some(0),
        };
        Drawn {
            src,
            dst,
            size_bytes: self.bytes.max(1),
            start: Time::ZERO,
            deadline: None,
            group: self.group,
            connection,
            after: None,
        }
    }
}

#[cfg(test)]
mod testing;

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;
    use base::Rate;
    use base::params::Params as _;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn message(to: u32, tag: u64) -> Act {
        Act::Send(Message { to, bytes: 100_000, tag, eager: false, group: None, channel: 0 })
    }

    /// An all-reduce in a ring: each rank sends in each step the data received in the step before.
    fn ring(ranks: u32) -> Program {
        let mut program = Program::new(ranks as usize);
        for rank in 0..ranks {
            let mut before = Vec::new();
            for step in 0..2 * (ranks - 1) {
                let send = program.add(rank, message((rank + 1) % ranks, step.into()), before, 0);
                let from = (rank + ranks - 1) % ranks;
                let receive = program.add(rank, Act::Receive { from, tag: Some(step.into()) }, vec![send], 0);
                before = vec![send, receive];
            }
        }
        program
    }

    /// Draws a program whose ranks are on the hosts of a star.
    fn draw_on_star(program: &Program, waits: &mut WaitGraph) -> Draw {
        let hosts = program.ranks().to_string();
        let bench = Bench::new("star", &[("hosts", &hosts)]);
        program.draw_by(&Ranks::defaults(), &Hosts::of(&bench.env()), "line", waits).unwrap()
    }

    #[test]
    fn a_program_is_planned_in_time_in_proportion_to_its_size() {
        let of = |ranks: u32| {
            let mut waits = WaitGraph::new(FEW);
            let draw = draw_on_star(&ring(ranks), &mut waits);
            // Each flow waits for two flows of the step before: the rank's own message and the
            // message that it received.
            assert!(draw.flows.iter().flat_map(|flow| &flow.after).all(|after| after.flows.len() == 2 && after.joins.is_empty()));
            waits.looked_at() as f64 / draw.flows.len() as f64
        };
        let [small, large] = [of(8), of(32)];
        assert!(large < small * 1.5 && large < 10.0, "{small} and {large} waits are looked at for each flow");
    }

    /// A ring in which no flow ends when a message is sent: messages are eager, or each message is sent after a computation
    /// that waits only for the computation before and for the message received.
    fn overlapping(ranks: u32, eager: bool) -> Program {
        let mut program = Program::new(ranks as usize);
        for rank in 0..ranks {
            let mut before = Vec::new();
            for tag in 0..u64::from(2 * (ranks - 1)) {
                let time = if eager { Dur::ZERO } else { Dur(5) };
                let compute = program.add(rank, Act::Compute(time), before, 0);
                let message = Message { to: (rank + 1) % ranks, bytes: 9, tag, eager, group: None, channel: 0 };
                let send = program.add(rank, Act::Send(message), vec![compute], 0);
                let from = (rank + ranks - 1) % ranks;
                let receive = program.add(rank, Act::Receive { from, tag: Some(tag) }, Vec::new(), 0);
                before = vec![if eager { send } else { compute }, receive];
            }
        }
        program
    }

    #[test]
    fn waits_are_in_proportion_to_the_size_of_a_program() {
        for eager in [true, false] {
            let of = |ranks: u32, few: usize| {
                let Draw { flows, joins, .. } = draw_on_star(&overlapping(ranks, eager), &mut WaitGraph::new(few));
                assert_eq!(joins.is_empty(), few > FEW);
                let of_flows = flows.iter().flat_map(|flow| &flow.after).map(|after| after.flows.len() + after.joins.len());
                let waits = of_flows.chain(joins.iter().map(|join| join.flows.len() + join.joins.len())).sum::<usize>();
                waits as f64 / flows.len() as f64
            };
            assert!(of(8, FEW) < 4.0 && of(32, FEW) < 4.0, "{} and {} waits for each flow", of(8, FEW), of(32, FEW));
            assert!(of(32, usize::MAX) > 10.0, "lists without joins grow");
        }
    }

    #[test]
    fn a_receive_takes_the_first_message_that_fits() {
        let mut program = Program::new(2);
        for tag in [5, 6, 5, 7] {
            program.add(0, message(1, tag), Vec::new(), 0);
        }
        for (tag, send) in [(None, 0), (Some(5), 2), (None, 1), (None, 3)] {
            let receive = program.add(1, Act::Receive { from: 0, tag }, Vec::new(), 9);
            // Four operations of rank 0 come first.
            assert_eq!(program.operations("line").unwrap().taken[4 + receive as usize], Some(send));
        }
        program.add(1, Act::Receive { from: 0, tag: Some(6) }, Vec::new(), 9);
        let message = program.operations("line").err().unwrap();
        assert_eq!(message, "rank 1, line 9: no message with tag 6 from rank 0 is left for this receive");
    }

    #[test]
    fn a_part_of_a_task_lasts_from_the_start_of_an_operation_to_the_end_of_another() {
        let mut program = Program::new(2);
        let task = |name: &str| Task { name: name.to_owned(), iteration: 0, collective: None, parallelism: None };
        let (compute, exchange) = (program.task(task("compute")), program.task(task("exchange")));
        let first = program.add(0, Act::Compute(Dur(5)), Vec::new(), 0);
        let send = program.add(0, message(1, 0), vec![first], 0);
        let receive = program.add(1, Act::Receive { from: 0, tag: Some(0) }, Vec::new(), 0);
        let last = program.add(1, Act::Compute(Dur(3)), vec![receive], 0);
        for (task, rank, first, last) in [(compute, 0, first, first), (exchange, 0, send, send), (exchange, 1, receive, last)] {
            program.span(task, rank, first, last);
        }
        let bench = Bench::new("star", &[("hosts", "2")]);
        let params = Ranks { placement: "h1 h0".to_owned(), start: Dur(7), ..Ranks::defaults() };
        let Draw { flows, tasks, .. } = program.draw(&params, &Hosts::of(&bench.env()), "line").unwrap();
        assert_eq!((flows.len(), tasks.all.len()), (1, 2));
        let at = |time: u64| After { not_before: Time(time), ..After::new(&[], Dur::ZERO) };
        // The receive starts at 7, so that the last computation cannot end before 10.
        let end = |delay: u64, not_before| After { not_before: Time(not_before), ..After::new(&[0], Dur(delay)) };
        // The message is flow 0, which starts at 12.
        let expected = [(compute, 0, 1, at(7), at(12)), (exchange, 0, 1, at(12), end(0, 0)), (exchange, 1, 0, at(7), end(3, 10))];
        let found = tasks.parts.iter().map(|part| {
            let [start, end] = part.moments.map(|moment| tasks.moments[moment as usize].clone());
            (part.task, part.rank, part.host.0, start, end)
        });
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    /// Returns a program of these operations: by operation its rank, its kind, a number for its tag,
    /// size and destination, and numbers for the operations that it waits for. A few programs have
    /// cycles or receives without a message.
    fn random(ops: &[(u32, u32, u32, Vec<u32>)]) -> Program {
        let mut program = Program::new(3);
        let mut waits = Vec::new();
        for (place, (rank, kind, number, after)) in ops.iter().enumerate() {
            let (to, tag) = ((rank + 1 + number % 2) % 3, u64::from(number / 2 % 2));
            let mut add = |rank: u32, act: Act, after: &[u32]| {
                let op = program.add(rank, act, Vec::new(), place as u64);
                waits.extend(after.iter().map(|other| (rank, op, *other)));
            };
            if *kind == 0 {
                add(*rank, Act::Compute(Dur(u64::from(number % 5))), after);
                continue;
            }
            let message = Message { to, bytes: 1 + u64::from(*number), tag, eager: number % 3 == 0, group: None, channel: 0 };
            add(*rank, Act::Send(message), after);
            let tag = (*kind < 5).then_some(if *number == 99 { 7 } else { tag });
            add(to, Act::Receive { from: *rank, tag }, &after[..after.len() / 2]);
        }
        for (rank, op, other) in waits {
            // Of two hundred waits, one may be for a later operation.
            let other = if other < 199 { other % op.max(1) } else { op + 1 };
            if other == op || other as usize >= program.ranks[rank as usize].len() {
                continue;
            }
            if other % 4 == 3 { program.after_start(rank, op, other) } else { program.after_end(rank, op, other) }
        }
        program
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_program_has_the_same_flows_as_by_the_plain_way(
            ops in vec((0u32..3, 0u32..6, 0u32..100, vec(0u32..200, 0..4)), 1..25),
            placement in 0usize..3,
            per_server in 1u32..3,
            local in any::<bool>(),
        ) {
            let program = random(&ops);
            let bench = Bench::new("star", &[("hosts", "3")]);
            let placement = ["linear", "h2 h0 h1", "h1 h0 h1"][placement].to_owned();
            // 8 ps for each byte.
            let local_rate = local.then_some(Rate::from_gbps(1000));
            let params = Ranks { placement, start: Dur(7), per_server, local_rate, ..Ranks::defaults() };
            let placed = params.placed(3, &Hosts::of(&bench.env())).unwrap();
            let mut waits = WaitGraph::new(usize::MAX);
            let flows = program.draw_by(&params, &Hosts::of(&bench.env()), "line", &mut waits).map(|draw| draw.flows);
            let mut limits = testing::SearchLimits::new();
            prop_assert_eq!(flows, testing::flows(&program, &placed, Dur(7), "line", &mut limits));
            prop_assert_eq!(waits.looked_at(), limits.looked_at);
        }

        /// For any times of messages, flows and tasks of a program with joins begin when they begin by the plain way.
        #[test]
        fn joins_change_no_time(
            ops in vec((0u32..3, 0u32..6, 0u32..100, vec(0u32..200, 0..4)), 1..40),
            few in 0usize..4,
            placement in 0usize..3,
            per_server in 1u32..3,
            local in any::<bool>(),
            takes in vec(0u64..30, 40),
        ) {
            let mut program = random(&ops);
            let bench = Bench::new("star", &[("hosts", "3")]);
            let placement = ["linear", "h2 h0 h1", "h1 h0 h1"][placement].to_owned();
            let local_rate = local.then_some(Rate::from_gbps(1000));
            let params = Ranks { placement, start: Dur(7), per_server, local_rate, ..Ranks::defaults() };
            let placed = params.placed(3, &Hosts::of(&bench.env())).unwrap();
            let Ok(flows) = testing::flows(&program, &placed, Dur(7), "line", &mut testing::SearchLimits::new()) else {
                return Ok(());
            };
            let starts = testing::starts(&flows, &[], &takes);
            let draw = |program: &Program, few| {
                program.draw_by(&params, &Hosts::of(&bench.env()), "line", &mut WaitGraph::new(few)).unwrap()
            };
            let with_joins = draw(&program, few);
            prop_assert_eq!(&testing::starts(&with_joins.flows, &with_joins.joins, &takes), &starts);
            // The same with moments of tasks.
            let task = program.task(Task { name: "all".to_owned(), iteration: 0, collective: None, parallelism: None });
            for rank in 0..3 {
                (0..program.ranks[rank as usize].len() as u32).for_each(|op| program.span(task, rank, op, op));
            }
            let (plain, with_joins) = (draw(&program, usize::MAX), draw(&program, few));
            prop_assert_eq!(&testing::starts(&with_joins.flows, &with_joins.joins, &takes), &starts);
            prop_assert_eq!(testing::parts(&with_joins, &starts, &takes), testing::parts(&plain, &starts, &takes));
        }
    }
}

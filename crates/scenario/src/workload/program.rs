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
//! - A message between ranks on the same host takes no time.
//!
//! Model: computations of a rank overlap unless a dependency orders them; sending and receiving
//! take no processor time; a message is sent when its send starts, whether a receive waits for it
//! or not. A rank learns that its own message has arrived no sooner than a packet without payload
//! could have come back; the duration of computations in this time counts from the arrival.

mod moment;

use super::listed::Hosts;
use super::{After, Drawn, MAX_TIME};
use base::{Dur, HostId, Time};
use moment::{Moment, Search};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

base::params! {
    /// Hosts and start of a program.
    pub struct Ranks {
        /// The hosts of ranks 0, 1, 2 and so on, like `h0 h4 h8`; `linear`: rank n is on host n.
        placement: String = "linear", "LogGOPSim: ranks are nodes";
        /// Start of the program.
        start: Dur = "0s" in Dur(0)..=MAX_TIME, "flowloom: there is nothing before";
    }
}

/// A program: the operations of each rank.
#[derive(Default)]
pub struct Program {
    ranks: Vec<Vec<Op>>,
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
}

/// Maximum number of waits of all flows together. More would not fit into memory.
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
        Program { ranks: (0..ranks).map(|_| Vec::new()).collect() }
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

    /// Returns the flows of the program. `unit` names the places of operations in error messages,
    /// like `line`. The error is a complete message.
    pub fn flows(&self, params: &Ranks, hosts: &Hosts<'_>, unit: &str) -> Result<Vec<Drawn>, String> {
        self.flows_by(params, hosts, unit, &mut Search::new())
    }

    fn flows_by(&self, params: &Ranks, hosts: &Hosts<'_>, unit: &str, search: &mut Search) -> Result<Vec<Drawn>, String> {
        let placed = self.placed(&params.placement, hosts)?;
        let taken = self.taken(unit)?;
        let mut flows: Vec<Drawn> = Vec::new();
        let mut waits = 0;
        let mut times: Vec<Vec<Option<Times>>> = self.ranks.iter().map(|ops| ops.iter().map(|_| None).collect()).collect();
        let begin = Rc::new(Moment::at(params.start));
        for At { rank, op: number } in self.in_order(&taken, unit)? {
            let op = &self.ranks[rank as usize][number as usize];
            let known = |at: At| times[at.rank as usize][at.op as usize].as_ref();
            let own = |op: &u32| known(At { rank, op: *op });
            let ends = op.after.iter().filter_map(own).map(|times| &times.end);
            let start = moment::last(ends.chain(op.with.iter().filter_map(own).map(|times| &times.start)), &flows, search);
            let start = start.unwrap_or_else(|| Rc::clone(&begin));
            let (end, arrival) = match &op.act {
                Act::Compute(Dur::ZERO) => (Rc::clone(&start), None),
                Act::Compute(time) => (Rc::new(start.later(*time)), None),
                Act::Receive { .. } => {
                    let arrival = taken.get(&At { rank, op: number }).and_then(|send| known(*send)?.arrival.as_ref());
                    let end = moment::last(arrival.into_iter().chain([&start]), &flows, search);
                    (end.unwrap_or_else(|| Rc::clone(&start)), None)
                }
                Act::Send(message) => {
                    let (src, dst) = (placed[rank as usize], placed[message.to as usize]);
                    let mut arrival = Rc::clone(&start);
                    if src != dst {
                        if start.longest() > MAX_TIME {
                            return Err(format!(
                                "rank {rank}, {unit} {}: starts more than {MAX_TIME} after the operations that it waits for",
                                op.place
                            ));
                        }
                        waits += start.flows.len();
                        arrival = Rc::new(Moment::end_of(flows.len() as u32));
                        flows.push(message.flow((src, dst), &start));
                    }
                    (if message.eager { Rc::clone(&start) } else { Rc::clone(&arrival) }, Some(arrival))
                }
            };
            if waits > MOST_WAITS || flows.len() > u32::MAX as usize {
                return Err(format!("its flows have more than {MOST_WAITS} dependencies, which do not fit into memory"));
            }
            times[rank as usize][number as usize] = Some(Times { start, end, arrival });
        }
        Ok(flows)
    }

    /// Returns the hosts of the ranks.
    fn placed(&self, placement: &str, hosts: &Hosts<'_>) -> Result<Vec<HostId>, String> {
        let listed: Vec<HostId> = if placement == "linear" {
            (0..hosts.count()).map(HostId).collect()
        } else {
            let words = placement.split([' ', ',']).filter(|word| !word.is_empty());
            let host = |word: &str| hosts.named(word).ok_or_else(|| format!("`placement`: `{word}` is not a host of this network"));
            words.map(host).collect::<Result<_, String>>()?
        };
        if listed.len() < self.ranks.len() {
            return Err(format!("the program has {} ranks, but `placement` has hosts for {}", self.ranks.len(), listed.len()));
        }
        Ok(listed)
    }

    /// Returns for each receive the send whose message it takes.
    fn taken(&self, unit: &str) -> Result<BTreeMap<At, At>, String> {
        let mut sent: BTreeMap<(u32, u32), Sent> = BTreeMap::new();
        for (at, op) in self.all() {
            if let Act::Send(message) = &op.act {
                sent.entry((at.rank, message.to)).or_default().push(at, message.tag);
            }
        }
        let mut taken = BTreeMap::new();
        for (at, op) in self.all() {
            let Act::Receive { from, tag } = op.act else { continue };
            let send = sent.get_mut(&(from, at.rank)).and_then(|sent| sent.take(tag));
            let tagged = tag.map_or(String::new(), |tag| format!(" with tag {tag}"));
            let never =
                || format!("rank {}, {unit} {}: no message{tagged} from rank {from} is left for this receive", at.rank, op.place);
            taken.insert(at, send.ok_or_else(never)?);
        }
        Ok(taken)
    }

    fn all(&self) -> impl Iterator<Item = (At, &Op)> {
        let ranks = self.ranks.iter().zip(0..);
        ranks.flat_map(|(ops, rank)| ops.iter().zip(0..).map(move |(op, number)| (At { rank, op: number }, op)))
    }

    /// Returns all operations, each after the operations that it waits for.
    fn in_order(&self, taken: &BTreeMap<At, At>, unit: &str) -> Result<Vec<At>, String> {
        let mut next: BTreeMap<At, Vec<At>> = BTreeMap::new();
        let mut missing: Vec<Vec<u32>> = self.ranks.iter().map(|ops| vec![0; ops.len()]).collect();
        for (at, op) in self.all() {
            let own = op.after.iter().chain(&op.with).map(|op| At { rank: at.rank, op: *op });
            for other in own.chain(taken.get(&at).copied()) {
                next.entry(other).or_default().push(at);
                missing[at.rank as usize][at.op as usize] += 1;
            }
        }
        let mut order: Vec<At> = self.all().map(|(at, _)| at).filter(|at| missing[at.rank as usize][at.op as usize] == 0).collect();
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
        match self.all().find(|(at, _)| missing[at.rank as usize][at.op as usize] > 0) {
            None => Ok(order),
            Some((at, op)) => Err(format!("rank {}, {unit} {}: waits for itself, through other operations", at.rank, op.place)),
        }
    }
}

/// An operation: its rank, and its number within the rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct At {
    rank: u32,
    op: u32,
}

/// The sends from one rank to another rank that no receive has taken, in the order of the sender's
/// operations.
#[derive(Default)]
struct Sent {
    all: VecDeque<At>,
    by_tag: BTreeMap<u64, VecDeque<At>>,
    /// Sends that a receive has taken but that are still in the other queue.
    gone: BTreeSet<At>,
}

impl Sent {
    fn push(&mut self, at: At, tag: u64) {
        self.all.push_back(at);
        self.by_tag.entry(tag).or_default().push_back(at);
    }
    /// Takes the first send with a tag, or with any tag.
    fn take(&mut self, tag: Option<u64>) -> Option<At> {
        let queue = tag.map_or(Some(&mut self.all), |tag| self.by_tag.get_mut(&tag))?;
        loop {
            let at = queue.pop_front()?;
            // A send is in two queues; it is skipped in the second queue.
            if !self.gone.remove(&at) {
                self.gone.insert(at);
                return Some(at);
            }
        }
    }
}

impl Message {
    /// Returns the flow of the message, from one host to another.
    fn flow(&self, (src, dst): (HostId, HostId), start: &Moment) -> Drawn {
        // A flow cannot end before the run starts, so a delay at least as long makes `not_before`
        // redundant.
        let later = start.flows.iter().any(|(_, delay)| *delay >= start.not_before);
        let not_before = Time::ZERO + if later { Dur::ZERO } else { start.not_before };
        let after = (!start.flows.is_empty()).then(|| After { flows: start.flows.clone(), not_before, give_up_after: None });
        let at = if after.is_none() { not_before } else { Time::ZERO };
        Drawn { src, dst, size_bytes: self.bytes.max(1), start: at, deadline: None, group: self.group, after }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;

    fn message(to: u32, tag: u64) -> Act {
        Act::Send(Message { to, bytes: 100_000, tag, eager: false, group: None })
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

    #[test]
    fn a_program_is_planned_in_time_in_proportion_to_its_size() {
        let of = |ranks: u32| {
            let hosts = ranks.to_string();
            let (bench, mut search) = (Bench::new("star", &[("hosts", &hosts)]), Search::new());
            let params = Ranks { placement: "linear".to_owned(), start: Dur::ZERO };
            let flows = ring(ranks).flows_by(&params, &Hosts::of(&bench.env()), "line", &mut search).unwrap();
            // Each flow waits for two flows of the step before: the rank's own message and the
            // message that it received.
            assert!(flows.iter().flat_map(|flow| &flow.after).all(|after| after.flows.len() == 2));
            search.looked_at as f64 / flows.len() as f64
        };
        let [small, large] = [of(8), of(32)];
        assert!(large < small * 1.5 && large < 10.0, "{small} and {large} waits are looked at for each flow");
    }

    #[test]
    fn a_receive_takes_the_first_message_that_fits() {
        let at = |rank, op| At { rank, op };
        let mut program = Program::new(2);
        for tag in [5, 6, 5, 7] {
            program.add(0, message(1, tag), Vec::new(), 0);
        }
        for (tag, send) in [(None, 0), (Some(5), 2), (None, 1), (None, 3)] {
            let receive = program.add(1, Act::Receive { from: 0, tag }, Vec::new(), 9);
            assert_eq!(program.taken("line").unwrap()[&at(1, receive)], at(0, send));
        }
        program.add(1, Act::Receive { from: 0, tag: Some(6) }, Vec::new(), 9);
        let message = program.taken("line").unwrap_err();
        assert_eq!(message, "rank 1, line 9: no message with tag 6 from rank 0 is left for this receive");
    }
}

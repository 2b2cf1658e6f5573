//! Collectives as messages between their members.
//!
//! With n members and S bytes (`comm_size`), the size of a message is as in ASTRA-sim: S/n in
//! all-reduce, reduce-scatter and all-to-all; S in all-gather.
//!
//! | collective | messages |
//! |---|---|
//! | all-reduce | ring: 2(n-1) steps; direct: all to all twice; tree: up and down a binomial tree, S each |
//! | reduce-scatter, all-gather | ring: n-1 steps; direct: all to all |
//! | all-to-all | each member to all other members at the same time |
//! | broadcast, reduce | S down, or up, a binomial tree from the root |
//! | gather, scatter | S, or S/n, between the root and each other member |
//! | barrier | one byte to the members 1, 2, 4, ... positions ahead, round by round |
//!
//! A collective has ended for a member when its own messages have arrived and it has received all
//! messages for it.

use super::super::program::{Act, Message, Program};
use super::Algorithm;
use base::Dur;

/// `CollectiveCommType` of the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    AllReduce,
    Reduce,
    AllGather,
    Gather,
    Scatter,
    Broadcast,
    AllToAll,
    ReduceScatter,
    Barrier,
}

impl Kind {
    /// Returns the kind with this number in the schema.
    pub fn of(number: u64) -> Option<Kind> {
        use Kind::{AllGather, AllReduce, AllToAll, Barrier, Broadcast, Gather, Reduce, ReduceScatter, Scatter};
        let kinds = [AllReduce, Reduce, AllGather, Gather, Scatter, Broadcast, AllToAll, ReduceScatter, ReduceScatter, Barrier];
        kinds.get(usize::try_from(number).ok()?).copied()
    }
}

/// A collective.
pub struct Collective {
    pub kind: Kind,
    pub bytes: u64,
    /// Index of the root among the members.
    pub root: usize,
}

/// Adds the messages of a collective to a program.
struct Run<'a> {
    /// By member: its rank, the operation after which it begins, and the id of its node for error
    /// messages.
    members: &'a [(u32, u32, u64)],
    program: &'a mut Program,
    group: u32,
    /// By member: the operations that must end before its part has ended.
    ends: Vec<Vec<u32>>,
    /// Number of messages so far. Each message has its own tag.
    messages: u64,
}

impl Collective {
    /// Adds the messages of the collective to a program. Returns by member the operation that ends
    /// the collective for this member.
    pub fn run(&self, algorithm: Algorithm, group: u32, members: &[(u32, u32, u64)], program: &mut Program) -> Vec<u32> {
        let n = members.len();
        let mut run = Run { members, program, group, ends: members.iter().map(|member| vec![member.1]).collect(), messages: 0 };
        let part = (self.bytes / n as u64).max(1);
        let direct = algorithm == Algorithm::Direct;
        match self.kind {
            Kind::AllReduce if algorithm == Algorithm::Tree => {
                let up = run.tree(self.bytes, 0, true, None);
                run.tree(self.bytes, 0, false, Some(up));
            }
            Kind::AllReduce if direct => {
                run.all_to_all(part);
                run.meet();
                run.all_to_all(part);
            }
            Kind::AllReduce => run.ring(part, 2 * (n - 1)),
            Kind::ReduceScatter | Kind::AllGather => {
                let bytes = if self.kind == Kind::AllGather { self.bytes } else { part };
                if direct { run.all_to_all(bytes) } else { run.ring(bytes, n - 1) }
            }
            Kind::AllToAll => run.all_to_all(part),
            Kind::Broadcast => drop(run.tree(self.bytes, self.root, false, None)),
            Kind::Reduce => drop(run.tree(self.bytes, self.root, true, None)),
            Kind::Gather | Kind::Scatter => {
                for other in (0..n).filter(|other| *other != self.root) {
                    let to_root = self.kind == Kind::Gather;
                    let (src, dst, bytes) = if to_root { (other, self.root, self.bytes) } else { (self.root, other, part) };
                    run.message(src, dst, bytes, &[members[src].1]);
                }
            }
            Kind::Barrier => {
                let mut ready: Vec<u32> = members.iter().map(|member| member.1).collect();
                let steps = std::iter::successors(Some(1), |step| Some(2 * step)).take_while(|step| *step < n);
                for step in steps {
                    let before = ready.clone();
                    (0..n).for_each(|i| ready[(i + step) % n] = run.message(i, (i + step) % n, 1, &[before[i]]));
                }
            }
        }
        run.meet()
    }
}

impl Run<'_> {
    /// Adds a message that is sent after operations of its source. Returns the operation that
    /// receives it.
    fn message(&mut self, src: usize, dst: usize, bytes: u64, after: &[u32]) -> u32 {
        let ((from, _, place), (to, _, other)) = (self.members[src], self.members[dst]);
        // Tags of nodes are below 2^32, tags of collectives above.
        let tag = (u64::from(self.group) + 1) << 32 | self.messages;
        self.messages += 1;
        let message = Message { to, bytes, tag, eager: false, group: Some(self.group) };
        let sent = self.program.add(from, Act::Send(message), after.to_vec(), place);
        // Receives are posted from the start.
        let received = self.program.add(to, Act::Receive { from, tag: Some(tag) }, Vec::new(), other);
        self.ends[src].push(sent);
        self.ends[dst].push(received);
        received
    }

    fn ring(&mut self, bytes: u64, steps: usize) {
        let n = self.members.len();
        let mut ready: Vec<u32> = self.members.iter().map(|member| member.1).collect();
        for _ in 0..steps {
            let before = ready.clone();
            (0..n).for_each(|i| ready[(i + 1) % n] = self.message(i, (i + 1) % n, bytes, &[before[i]]));
        }
    }

    fn all_to_all(&mut self, bytes: u64) {
        let n = self.members.len();
        let begins: Vec<u32> = self.ends.iter().map(|ends| ends[0]).collect();
        for (src, dst) in (0..n).flat_map(|src| (1..n).map(move |step| (src, (src + step) % n))) {
            self.message(src, dst, bytes, &[begins[src]]);
        }
    }

    /// Adds messages along a binomial tree, down from its root or up to it. A member sends after
    /// `first`, if given, and after all messages that it has received. Returns by member an
    /// operation that ends when it has received all messages.
    fn tree(&mut self, bytes: u64, root: usize, up: bool, first: Option<Vec<u32>>) -> Vec<u32> {
        let n = self.members.len();
        let mut ready: Vec<Vec<u32>> = (0..n).map(|i| vec![first.as_ref().map_or(self.members[i].1, |first| first[i])]).collect();
        let mut steps: Vec<usize> = std::iter::successors(Some(1), |step| Some(2 * step)).take_while(|step| *step < n).collect();
        if !up {
            steps.reverse();
        }
        for step in steps {
            for upper in (0..n).step_by(2 * step).filter(|upper| upper + step < n) {
                let (upper, lower) = ((upper + root) % n, (upper + step + root) % n);
                let (src, dst) = if up { (lower, upper) } else { (upper, lower) };
                let received = self.message(src, dst, bytes, &ready[src].clone());
                ready[dst].push(received);
            }
        }
        (0..n).map(|i| self.program.add(self.members[i].0, Act::Compute(Dur::ZERO), ready[i].clone(), self.members[i].2)).collect()
    }

    /// Adds by member an operation that ends its part so far and starts the rest of its part.
    /// Returns these operations.
    fn meet(&mut self) -> Vec<u32> {
        let ends = std::mem::take(&mut self.ends);
        let end =
            |(ends, (rank, _, place)): (Vec<u32>, &(u32, u32, u64))| self.program.add(*rank, Act::Compute(Dur::ZERO), ends, *place);
        let met: Vec<u32> = ends.into_iter().zip(self.members).map(end).collect();
        self.ends = met.iter().map(|end| vec![*end]).collect();
        met
    }
}

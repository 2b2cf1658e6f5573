//! Collectives of a trace as messages between their members.
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
//! messages for it. Messages are not cut, and no window limits them.

use super::Algorithm;
use crate::workload::collectives::messages::{Begun, Member, Messages, SlicedData, Step, part};
use crate::workload::collectives::{self, CollectiveOp, Cutting, begins, tree};
use crate::workload::program::Program;
use crate::workload::tasks::Moved;
use base::Bytes;

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
    /// Returns what a collective of this kind moves, with `bytes` as `comm_size`.
    pub fn moved(self, bytes: u64, ranks: u32) -> Moved {
        let other = |operation| Moved { operation, bytes, bus_bytes: bytes };
        match self {
            Kind::AllReduce => CollectiveOp::AllReduce.moved(bytes, ranks),
            Kind::AllGather => CollectiveOp::AllGather.moved(bytes.saturating_mul(ranks.into()), ranks),
            Kind::Broadcast => CollectiveOp::Broadcast.moved(bytes, ranks),
            Kind::AllToAll => CollectiveOp::AllToAll.moved(bytes, ranks),
            Kind::ReduceScatter => CollectiveOp::ReduceScatter.moved(bytes, ranks),
            Kind::Reduce => other("reduce"),
            Kind::Gather => other("gather"),
            Kind::Scatter => other("scatter"),
            Kind::Barrier => other("barrier"),
        }
    }
}

/// A collective of a trace.
pub struct Collective {
    pub kind: Kind,
    pub bytes: u64,
    /// Index of the root among the members.
    pub root: u32,
}

impl Collective {
    /// Adds the messages of the collective to a program. Returns by member the operation that ends
    /// the collective for this member.
    pub fn run(&self, algorithm: Algorithm, group: u32, members: &[Member], program: &mut Program) -> Vec<u32> {
        let n = members.len() as u32;
        let shared = |op: CollectiveOp, bytes: u64, algorithm: collectives::Algorithm, program: &mut Program| {
            let cutting = Cutting { channels: 1, chunk: Bytes(u64::MAX), window: None };
            collectives::Collective { op, algorithm, bytes, sizes: Vec::new(), cutting }.add(program, group, members)
        };
        // In a ring, unless the trace asks for direct messages.
        let ring = if algorithm == Algorithm::Direct { collectives::Algorithm::Direct } else { collectives::Algorithm::Ring };
        match self.kind {
            Kind::AllReduce if algorithm != Algorithm::Tree => return shared(CollectiveOp::AllReduce, self.bytes, ring, program),
            Kind::ReduceScatter => return shared(CollectiveOp::ReduceScatter, self.bytes, ring, program),
            Kind::AllGather => return shared(CollectiveOp::AllGather, self.bytes.saturating_mul(n.into()), ring, program),
            Kind::AllToAll => return shared(CollectiveOp::AllToAll, self.bytes, collectives::Algorithm::Direct, program),
            _ => (),
        }
        let sizes = match self.kind {
            Kind::Scatter => (0..n).map(|block| part(self.bytes, block, n)).collect(),
            Kind::Barrier => vec![1],
            _ => vec![self.bytes],
        };
        let data = SlicedData { sizes, channels: 1, pieces: 1 };
        let mut messages = Messages::new(program, group, members, data, None);
        let first = begins(&messages);
        match self.kind {
            Kind::Broadcast => drop(tree::binomial(&mut messages, self.root, false, first)),
            Kind::Reduce => drop(tree::binomial(&mut messages, self.root, true, first)),
            Kind::Gather | Kind::Scatter => {
                for other in (0..n).filter(|other| *other != self.root) {
                    let to_root = self.kind == Kind::Gather;
                    let (src, dst) = if to_root { (other, self.root) } else { (self.root, other) };
                    send(&mut messages, src, dst, &[other], &[]);
                }
            }
            Kind::Barrier => {
                let mut ready = first;
                let steps = std::iter::successors(Some(1), |step| Some(2 * step)).take_while(|step| *step < n);
                for step in steps {
                    let before = ready.clone();
                    for i in 0..n {
                        let received = send(&mut messages, i, (i + step) % n, &[0], &before[i as usize]);
                        ready[((i + step) % n) as usize].push(received);
                    }
                }
            }
            _ => {
                let up = tree::binomial(&mut messages, 0, true, first);
                tree::binomial(&mut messages, 0, false, up);
            }
        }
        messages.end()
    }
}

/// Adds a message that is sent after operations of its source. Returns the operation that receives
/// it.
fn send(messages: &mut Messages<'_>, src: u32, dst: u32, blocks: &[u32], after: &[u32]) -> u32 {
    messages.send(Step { src, dst, slice: 0, blocks, sum: false, after, begun: Begun::Implied, lane: 0 })
}

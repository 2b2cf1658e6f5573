//! Tasks of programs: what a job does on several ranks at a time, such as the computation of a layer
//! or a collective, and when each rank begins and ends its part.

use super::After;
use base::HostId;

/// The tasks of a program, and the parts of its ranks in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tasks {
    /// The tasks. The number of a task is the group of its messages.
    pub all: Vec<Task>,
    /// The parts of ranks.
    pub parts: Vec<TaskPart>,
    /// The moments at which parts begin and end.
    pub moments: Vec<After>,
}

/// Something that a job does on several ranks at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// The name, like `forward 3` or `gradients 7`.
    pub name: String,
    /// The number of the iteration of the job, from 0.
    pub iteration: u32,
    /// What the task moves between its ranks; `None`: it is a computation.
    pub collective: Option<Moved>,
}

/// What a collective moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The operation.
    pub op: Operation,
    /// The size of nccl-tests in bytes: of the largest buffer of a rank.
    pub bytes: u64,
    /// The number of ranks.
    pub ranks: u32,
}

/// The operation of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Every rank gets the sum of the data of all ranks.
    AllReduce,
    /// Every rank gets the data of all ranks.
    AllGather,
    /// Every rank gets its share of the sum of the data of all ranks.
    ReduceScatter,
    /// Every rank sends a different share of its data to every rank.
    AllToAll,
    /// Every rank gets the data of one rank.
    Broadcast,
    /// One rank gets the sum of the data of all ranks.
    Reduce,
    /// A rank sends data to another rank.
    Send,
    /// Any other exchange.
    Other,
}

impl Operation {
    /// Returns the word in tables.
    pub fn name(self) -> &'static str {
        match self {
            Operation::AllReduce => "all_reduce",
            Operation::AllGather => "all_gather",
            Operation::ReduceScatter => "reduce_scatter",
            Operation::AllToAll => "all_to_all",
            Operation::Broadcast => "broadcast",
            Operation::Reduce => "reduce",
            Operation::Send => "send",
            Operation::Other => "other",
        }
    }
}

impl Moved {
    /// Returns the bytes that each rank must send or receive at least: what bus bandwidth counts.
    /// Source: nccl-tests, doc/PERFORMANCE.md.
    pub fn bus_bytes(&self) -> f64 {
        let (bytes, ranks) = (self.bytes as f64, f64::from(self.ranks));
        match self.op {
            Operation::AllReduce => bytes * 2.0 * (ranks - 1.0) / ranks,
            Operation::AllGather | Operation::ReduceScatter | Operation::AllToAll => bytes * (ranks - 1.0) / ranks,
            Operation::Broadcast | Operation::Reduce | Operation::Send | Operation::Other => bytes,
        }
    }
}

/// The part of a rank in a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskPart {
    /// The task, by number.
    pub task: u32,
    /// The rank.
    pub rank: u32,
    /// The host of the rank.
    pub host: HostId,
    /// When the part begins and ends: two of the moments, by index.
    pub moments: [u32; 2],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bus_bytes_are_those_of_nccl_tests() {
        let of = |op| Moved { op, bytes: 800, ranks: 8 }.bus_bytes();
        // doc/PERFORMANCE.md: all_reduce 2(n-1)/n, all_gather, reduce_scatter and all_to_all (n-1)/n, broadcast and reduce 1.
        assert_eq!(of(Operation::AllReduce), 1400.0);
        assert_eq!([Operation::AllGather, Operation::ReduceScatter, Operation::AllToAll].map(of), [700.0; 3]);
        assert_eq!([Operation::Broadcast, Operation::Reduce, Operation::Send].map(of), [800.0; 3]);
    }
}

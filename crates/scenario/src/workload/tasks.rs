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
    /// The moments at which parts begin and end. The joins of a moment are of the host of its parts.
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
    /// The parallelism of a training job that makes its ranks communicate; `None`: the task is a
    /// computation, or the workload does not know.
    pub parallelism: Option<Parallelism>,
}

/// A parallelism of a training job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Parallelism {
    /// The ranks of a tensor group reduce activations within a pass, which waits for them.
    Tensor,
    /// Ranks send tokens to experts and back within a pass, which waits for them.
    Expert,
    /// Replicas reduce gradients.
    Data,
    /// A stage sends the results of a pass to the next stage: a message, not a collective.
    Pipeline,
}

impl Parallelism {
    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Parallelism::Tensor => "tensor",
            Parallelism::Expert => "expert",
            Parallelism::Data => "data",
            Parallelism::Pipeline => "pipeline",
        }
    }
}

/// What a collective moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The operation, like `all_reduce`.
    pub operation: &'static str,
    /// The size of nccl-tests in bytes: of the largest buffer of a rank.
    pub bytes: u64,
    /// The bytes that bus bandwidth counts: those that each rank has to send or receive at least.
    pub bus_bytes: u64,
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

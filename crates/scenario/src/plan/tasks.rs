//! The tasks of a run: those of all workloads, whose parts of ranks begin and end with flows of the
//! run.

use crate::workload::After;
use crate::workload::tasks::{Task, TaskPart, Tasks};
use base::{Dur, FlowId, JoinId};
use proto::flow::Wait;

/// The tasks of a run.
#[derive(Clone, Debug, Default)]
pub struct RunTasks {
    /// The tasks, workload after workload.
    pub all: Vec<RunTask>,
    /// The parts of ranks in them; the number of a task is its index in `all`.
    pub parts: Vec<TaskPart>,
    /// The moments at which parts begin and end: the latest of a time, of the ends of flows and of joins,
    /// each plus a delay, as known at the host of the part.
    pub moments: Vec<Wait>,
}

/// A task of a run.
#[derive(Clone, Debug)]
pub struct RunTask {
    /// The workload, by index.
    pub workload: u16,
    /// The group of the flows of the task.
    pub group: u64,
    /// The task.
    pub task: Task,
}

/// Returns the group of a run with this number in its workload.
pub(super) fn group(workload: u16, number: u32) -> u64 {
    u64::from(workload) << 32 | u64::from(number)
}

/// The ids of a workload's flows and joins in the run.
#[derive(Clone, Debug, Default)]
pub(super) struct Ids {
    /// The ids of the flows, in the order of drawing.
    pub flows: Vec<FlowId>,
    /// The id of the first join. The others follow.
    pub first_join: JoinId,
}

impl Ids {
    /// Returns flows of the workload as flows of the run.
    pub fn flows(&self, flows: &[(u32, Dur)]) -> impl Iterator<Item = (FlowId, Dur)> {
        flows.iter().map(|(number, delay)| (self.flows[*number as usize], *delay))
    }
    /// Returns joins of the workload as joins of the run.
    pub fn joins(&self, joins: &[(u32, Dur)]) -> impl Iterator<Item = (JoinId, Dur)> {
        joins.iter().map(|(number, delay)| (JoinId(self.first_join.0 + number), *delay))
    }
    /// Returns a condition of the workload as a condition of the run, without a deadline.
    pub fn wait(&self, after: &After) -> Wait {
        Wait {
            on: self.flows(&after.flows).collect(),
            joins: self.joins(&after.joins).collect(),
            not_before: after.not_before,
            give_up_after: after.give_up_after,
            allowed: None,
        }
    }
}

impl RunTasks {
    /// Adds the tasks of a workload. `ids` are the ids of its flows and joins.
    pub(super) fn add(&mut self, workload: u16, tasks: Tasks, ids: &Ids) {
        let (first, moments) = (self.all.len() as u32, self.moments.len() as u32);
        let of = |(task, number): (Task, u32)| RunTask { workload, group: group(workload, number), task };
        self.all.extend(tasks.all.into_iter().zip(0..).map(of));
        let part =
            |part: TaskPart| TaskPart { task: first + part.task, moments: part.moments.map(|moment| moments + moment), ..part };
        self.parts.extend(tasks.parts.into_iter().map(part));
        self.moments.extend(tasks.moments.iter().map(|after| ids.wait(after)));
    }
}

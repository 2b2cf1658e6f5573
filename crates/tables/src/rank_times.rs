//! How the ranks of a job spend its time: the time of a job, and of each of its iterations, is split
//! by rank into computation, communication, and waiting. The parts add up exactly.
//!
//! At any time a rank is
//!
//! 1. in a collective of its tensor or expert group: the passes of training jobs wait for these;
//! 2. otherwise computing, if it is in a computation;
//! 3. otherwise in a collective of its data group, in a collective of another kind, or in a message from
//!    or to another stage of the pipeline, in this order;
//! 4. otherwise idle. A time in which a rank is idle is part of the pipeline bubble if it ends with a
//!    message from or to another stage, or if it is before the first or after the last work of the rank.
//!
//! Assumed: a rank is in a collective from when it begins its part until it ends it, also while it waits
//! for other ranks of its group. Both ends of a message are in it from when it is sent until it arrives.
//! A computation after a message that the rank itself has sent begins when the rank learns of its
//! arrival. Work that has not ended lasts to the end of the run, and so does its job.

use sim::tasks::{Parallelism, PartRow, TaskRow};
use std::collections::{BTreeMap, BTreeSet};

/// How a rank spends the time of its job or of an iteration, in ps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RankTime {
    /// The workload, by index.
    pub workload: u16,
    /// The number of the iteration; `None`: the whole job.
    pub iteration: Option<u32>,
    /// The rank.
    pub rank: u32,
    /// The time of the job or the iteration, from the first start of a task to the last end: the sum
    /// of all other times.
    pub time_ps: u64,
    /// Computation, which may hide communication.
    pub computation_ps: u64,
    /// Collectives of tensor groups.
    pub tensor_ps: u64,
    /// Collectives of expert groups.
    pub expert_ps: u64,
    /// Collectives of data groups that no computation hides.
    pub data_ps: u64,
    /// Messages between stages that no computation hides.
    pub pipeline_ps: u64,
    /// Collectives of other kinds that no computation hides.
    pub other_ps: u64,
    /// The pipeline bubble: idle before a message from or to another stage, and before the first and
    /// after the last work.
    pub bubble_ps: u64,
    /// Idle otherwise.
    pub waiting_ps: u64,
}

/// What a rank does at a time: the first of these that is going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Tensor,
    Expert,
    Computation,
    Data,
    Other,
    Pipeline,
}

impl RankTime {
    /// Returns the time of communication that no computation hides.
    pub fn exposed_ps(&self) -> u64 {
        self.tensor_ps + self.expert_ps + self.data_ps + self.pipeline_ps + self.other_ps
    }
}

impl Doing {
    const ALL: [Doing; 6] = [Doing::Tensor, Doing::Expert, Doing::Computation, Doing::Data, Doing::Other, Doing::Pipeline];

    fn of(task: &TaskRow) -> Doing {
        match task.parallelism {
            _ if task.collective.is_none() => Doing::Computation,
            Some(Parallelism::Tensor) => Doing::Tensor,
            Some(Parallelism::Expert) => Doing::Expert,
            Some(Parallelism::Data) => Doing::Data,
            Some(Parallelism::Pipeline) => Doing::Pipeline,
            None => Doing::Other,
        }
    }
}

/// A rank begins (1) or ends (-1) something at a time.
type Change = (u64, Doing, i32);

/// A time in which a rank does one thing, from the end of the segment before.
struct Segment {
    /// The end of the segment.
    until: u64,
    /// `None`: the rank is idle.
    doing: Option<Doing>,
    /// Whether a message from or to another stage begins at the end of the segment.
    before_message: bool,
}

/// The span of a job or of an iteration, in ps.
type Span = (u64, u64);

/// Returns how each rank spends the time of its job and of each iteration: for each workload in which
/// ranks compute, first the job and then its iterations, each by rank. The run ended at `end_ps`.
pub fn rank_times(tasks: &[TaskRow], parts: &[PartRow], end_ps: u64) -> Vec<RankTime> {
    let computes: BTreeSet<u16> = tasks.iter().filter(|task| task.collective.is_none()).map(|task| task.workload).collect();
    let tasks: BTreeMap<u64, &TaskRow> = tasks.iter().map(|task| (task.group_id, task)).collect();
    let mut spans: BTreeMap<(u16, Option<u32>), Span> = BTreeMap::new();
    let mut ranks: BTreeMap<(u16, u32), Vec<Change>> = BTreeMap::new();
    for part in parts.iter().filter(|part| computes.contains(&part.workload)) {
        let task = tasks[&part.group_id];
        let (start, finish) = (part.start_ps.unwrap_or(end_ps), part.finish_ps.unwrap_or(end_ps));
        for iteration in [None, Some(task.iteration)] {
            let all = spans.entry((part.workload, iteration)).or_insert((start, finish));
            *all = (all.0.min(start), all.1.max(finish));
        }
        let changes = ranks.entry((part.workload, part.rank)).or_default();
        if part.start_ps.is_some() {
            changes.extend([(start, Doing::of(task), 1), (finish.max(start), Doing::of(task), -1)]);
        }
    }
    let ranks: BTreeMap<(u16, u32), Vec<Segment>> = ranks.into_iter().map(|(rank, changes)| (rank, segments(changes))).collect();
    let of_span = |(&(workload, iteration), &span): (&(u16, Option<u32>), &Span)| {
        let own = ranks.range((workload, 0)..=(workload, u32::MAX));
        own.map(|(&(_, rank), segments)| RankTime { workload, iteration, rank, ..split(segments, span) }).collect::<Vec<_>>()
    };
    spans.iter().flat_map(of_span).collect()
}

/// Returns what a rank does from the start of the run to its last change.
fn segments(mut changes: Vec<Change>) -> Vec<Segment> {
    changes.sort_by_key(|(at, ..)| *at);
    let mut open = [0; Doing::ALL.len()];
    let segment = |at_once: &[Change]| {
        let doing = Doing::ALL.into_iter().find(|doing| open[*doing as usize] > 0);
        at_once.iter().for_each(|(_, doing, change)| open[*doing as usize] += change);
        let before_message = at_once.iter().any(|(_, doing, change)| *doing == Doing::Pipeline && *change > 0);
        Segment { until: at_once[0].0, doing, before_message }
    };
    changes.chunk_by(|a, b| a.0 == b.0).map(segment).collect()
}

/// Splits the time of a span for a rank with these segments.
fn split(segments: &[Segment], (start, end): Span) -> RankTime {
    let mut split = RankTime { time_ps: end - start, ..RankTime::default() };
    let (mut before, mut has_worked) = (start, false);
    let first = segments.partition_point(|segment| segment.until <= start);
    for segment in &segments[first..] {
        if before == end {
            break;
        }
        let until = segment.until.min(end);
        *match segment.doing {
            Some(Doing::Tensor) => &mut split.tensor_ps,
            Some(Doing::Expert) => &mut split.expert_ps,
            Some(Doing::Computation) => &mut split.computation_ps,
            Some(Doing::Data) => &mut split.data_ps,
            Some(Doing::Other) => &mut split.other_ps,
            Some(Doing::Pipeline) => &mut split.pipeline_ps,
            None if segment.before_message || !has_worked || until == end => &mut split.bubble_ps,
            None => &mut split.waiting_ps,
        } += until - before;
        has_worked |= segment.doing.is_some();
        before = until;
    }
    // After its last change a rank is idle.
    split.bubble_ps += end - before;
    split
}

#[cfg(test)]
mod tests;

//! The time line of programs: when each rank began and ended its part of each task.
//!
//! A part begins and ends at moments that depend on the ends of flows. They are computed after the
//! run from the flows, by the rule for flows that wait: an end at another host is known no sooner
//! than a bare header would arrive over an idle network.

use crate::outcome::{FlowRow, Outcome};
use crate::start::latency;
use crate::tasks::{Parallelism, PartRow, TaskRow};
use base::{Dur, FlowId, HostId, JoinId, Time};
use fabric::routes::Routes;
use proto::Flow;
use proto::flow::{Join, JoinTime, Wait};
use scenario::{RunSpec, RunTask, RunTasks};

/// The programs of a run, without their flows.
pub struct Timeline<'a> {
    /// The run.
    pub spec: &'a RunSpec,
    /// Routes of the network without failures.
    pub healthy: &'a Routes,
    /// The joins of the run.
    pub joins: &'a [Join],
    /// The tasks of the run.
    pub tasks: &'a RunTasks,
}

impl Timeline<'_> {
    /// Adds the rows of the time line to the outcome of the run.
    pub fn add(&self, outcome: Outcome) -> Outcome {
        if self.tasks.all.is_empty() {
            return outcome;
        }
        let (tasks, parts) = rows(self.joins, self.tasks, &outcome.flows, |src, dst| self.latency(src, dst));
        Outcome { tasks, parts, ..outcome }
    }
    /// Returns when the last part of a task ends, of those that end. `finish` returns when a flow has
    /// finished; `Time::MAX` if it has not.
    pub fn end(&self, flows: &[Flow], finish: impl Fn(FlowId) -> Time) -> Option<Time> {
        let arrival = |flow: FlowId| {
            let at = finish(flow);
            (at != Time::MAX).then_some((flows[flow.index()].dst, at))
        };
        let known = Known::new(self.joins, arrival, |src, dst| self.latency(src, dst));
        let ends = self.tasks.parts.iter().filter_map(|part| known.at(&self.tasks.moments[part.moments[1] as usize], part.host));
        ends.max().map(Time)
    }
    fn latency(&self, src: HostId, dst: HostId) -> Dur {
        latency(self.spec, self.healthy, src, dst)
    }
}

/// What hosts know of the ends of flows and joins.
struct Known<A, L> {
    /// Returns where and when a flow has ended.
    arrival: A,
    /// Returns the latency of a bare header between two hosts.
    latency: L,
    /// By join: its time.
    times: Vec<Option<JoinTime>>,
}

impl<A: Fn(FlowId) -> Option<(HostId, Time)>, L: Fn(HostId, HostId) -> Dur> Known<A, L> {
    fn new(joins: &[Join], arrival: A, latency: L) -> Self {
        let mut known = Known { arrival, latency, times: Vec::with_capacity(joins.len()) };
        for join in joins {
            // A join waits only for joins before it.
            let time = last(&join.on, &join.joins, |flow| known.end(flow, join.host), &known.times);
            known.times.push(time);
        }
        known
    }
    /// Returns the end of a flow as a host knows it.
    fn end(&self, flow: FlowId, host: HostId) -> Option<JoinTime> {
        let (dst, at) = (self.arrival)(flow)?;
        let known = if dst == host { at } else { at + (self.latency)(dst, host) };
        Some(JoinTime { at, known })
    }
    /// Returns a moment at a host in ps; `None` if it never comes.
    fn at(&self, wait: &Wait, host: HostId) -> Option<u64> {
        let time = last(&wait.on, &wait.joins, |flow| self.end(flow, host), &self.times)?;
        Some(time.after(Dur::ZERO).max(wait.not_before).0)
    }
}

/// Returns when a host has the last of some ends and joins; `None` if this never happens. `end`
/// returns when a flow has ended, and `times` are the times of joins.
pub fn last(
    on: &[(FlowId, Dur)],
    joins: &[(JoinId, Dur)],
    end: impl Fn(FlowId) -> Option<JoinTime>,
    times: &[Option<JoinTime>],
) -> Option<JoinTime> {
    let ends = on.iter().map(|(flow, delay)| Some((end(*flow)?, *delay)));
    let joins = joins.iter().map(|(join, delay)| Some((times[join.index()]?, *delay)));
    ends.chain(joins).try_fold(JoinTime::default(), |time, other| other.map(|(other, delay)| time.and(other, delay)))
}

/// Returns a row for each task and a row for each part of a rank. `latency` is the latency of a bare
/// header between two hosts.
fn rows(
    joins: &[Join],
    tasks: &RunTasks,
    flows: &[FlowRow],
    latency: impl Fn(HostId, HostId) -> Dur,
) -> (Vec<TaskRow>, Vec<PartRow>) {
    let arrival = |flow: FlowId| {
        let row = &flows[flow.index()];
        Some((HostId(row.dst), Time(row.finish_ps?)))
    };
    let known = Known::new(joins, arrival, latency);
    let mut rows: Vec<TaskRow> = tasks.all.iter().map(row).collect();
    // Tasks are in the order of their groups.
    for group in flows.iter().filter_map(|flow| flow.group_id) {
        if let Ok(task) = rows.binary_search_by_key(&group, |task| task.group_id) {
            rows[task].flows += 1;
        }
    }
    let parts: Vec<PartRow> = tasks
        .parts
        .iter()
        .map(|part| {
            let task = &mut rows[part.task as usize];
            let [start_ps, finish_ps] = part.moments.map(|moment| known.at(&tasks.moments[moment as usize], part.host));
            // The receiver of a message is ready from the start of the job. It takes part once the sender does.
            let receives = task.parallelism == Some(Parallelism::Pipeline) && task.parts > 0;
            let start_ps = if receives { task.start_ps } else { start_ps };
            task.add(part.rank, start_ps, finish_ps);
            PartRow { group_id: task.group_id, workload: task.workload, rank: part.rank, host: part.host.0, start_ps, finish_ps }
        })
        .collect();
    (rows, parts)
}

/// Returns the row of a task without parts.
fn row(task: &RunTask) -> TaskRow {
    let RunTask { workload, group, task } = task;
    TaskRow {
        group_id: *group,
        workload: *workload,
        name: task.name.clone(),
        iteration: task.iteration,
        collective: task.collective,
        parallelism: task.parallelism,
        ..TaskRow::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scenario::workload::tasks::{Moved, Task, TaskPart};

    fn wait(not_before: u64, on: &[(u32, u64)]) -> Wait {
        let on = on.iter().map(|(flow, delay)| (FlowId(*flow), Dur(*delay))).collect();
        Wait { on, not_before: Time(not_before), ..Wait::new(&[], Dur::ZERO) }
    }

    fn joined(join: u32, delay: u64) -> Wait {
        Wait { joins: vec![(JoinId(join), Dur(delay))], ..wait(0, &[]) }
    }

    #[test]
    fn a_part_ends_when_its_host_knows_of_the_ends_of_its_flows() {
        let collective = Some(Moved { operation: "all_reduce", bytes: 100, bus_bytes: 150 });
        let task = |name: &str, collective: Option<Moved>| RunTask {
            workload: 1,
            group: (1 << 32) + u64::from(collective.is_none()),
            task: Task { name: name.to_owned(), iteration: 3, collective, parallelism: None },
        };
        let part = |task, rank, moments| TaskPart { task, rank, host: HostId(rank + 10), moments };
        let tasks = RunTasks {
            all: vec![task("sum", collective), task("rest", None), task("joins", None)],
            // Rank 0 has host 10, and rank 1 host 11.
            parts: vec![part(0, 0, [0, 1]), part(0, 1, [2, 1]), part(1, 1, [1, 3]), part(2, 0, [4, 5]), part(2, 0, [6, 7])],
            moments: vec![
                wait(5, &[]),
                wait(0, &[(0, 7), (1, 0)]),
                wait(3, &[]),
                wait(0, &[(2, 0)]),
                joined(0, 1),
                joined(0, 9),
                joined(1, 2),
                joined(2, 0),
            ],
        };
        // Host 10 knows the end at host 11 at 110; 103 is the end at host 10 plus its delay.
        let join = |on: &[(u32, u64)], joins: &[(u32, u64)]| {
            let joins = joins.iter().map(|(join, delay)| (JoinId(*join), Dur(*delay))).collect();
            Join { host: HostId(10), on: wait(0, on).on, joins }
        };
        let joins = [join(&[(0, 3), (1, 2)], &[]), join(&[(0, 0)], &[(0, 4)]), join(&[(2, 0)], &[(0, 0)])];
        let flow = |dst, finish_ps| FlowRow { dst, finish_ps, group_id: Some(1 << 32), ..FlowRow::default() };
        let flows = [flow(10, Some(100)), flow(11, Some(90)), flow(11, None)];
        let (rows, parts) = rows(&joins, &tasks, &flows, |_, _| Dur(20));
        // Host 10 knows the end at itself after the delay of 7, and that at host 11 after 20; host 11 the former after 20.
        let times: Vec<_> = parts.iter().map(|part| (part.rank, part.start_ps, part.finish_ps)).collect();
        assert_eq!(times[..3], [(0, Some(5), Some(110)), (1, Some(3), Some(120)), (1, Some(120), None)]);
        // 103 plus a delay of 9 is 112. The second join is at 107, and the third never happens.
        assert_eq!(times[3..], [(0, Some(110), Some(112)), (0, Some(110), None)]);
        let of = |row: &TaskRow| (row.start_ps, row.first_finish_ps, row.finish_ps, row.last_rank, row.parts);
        assert_eq!(of(&rows[0]), (Some(3), Some(110), Some(120), 1, 2));
        assert_eq!(of(&rows[1]), (Some(120), None, None, 1, 1));
        assert_eq!(rows[0].bus_bandwidth_bps(), Some(150.0 * 8e12 / 117.0));
        assert_eq!((rows[0].flows, rows[1].flows), (3, 0));
        assert_eq!((rows[1].bus_bandwidth_bps(), rows[0].iteration), (None, 3));
        assert_eq!(TaskRow { flows: 0, ..rows[0].clone() }.bus_bandwidth_bps(), None, "within a server");
    }
    #[test]
    fn the_receiver_of_a_message_takes_part_from_when_it_is_sent() {
        let moved = Some(Moved { operation: "send", bytes: 100, bus_bytes: 100 });
        let task = Task { name: "send".to_owned(), iteration: 0, collective: moved, parallelism: Some(Parallelism::Pipeline) };
        let part = |rank, moments| TaskPart { task: 0, rank, host: HostId(rank + 10), moments };
        let tasks = |sent: Wait| RunTasks {
            all: vec![RunTask { workload: 0, group: 0, task: task.clone() }],
            parts: vec![part(0, [0, 2]), part(1, [1, 2])],
            // The receiver is ready at 1, and the message arrives at its host at 90.
            moments: vec![sent, wait(1, &[]), wait(0, &[(0, 0)])],
        };
        let flow = |finish_ps| FlowRow { dst: 11, finish_ps, group_id: Some(0), ..FlowRow::default() };
        let of = |sent: Wait| {
            let (_, parts) = rows(&[], &tasks(sent), &[flow(Some(90)), flow(None)], |_, _| Dur(20));
            parts.iter().map(|part| (part.start_ps, part.finish_ps)).collect::<Vec<_>>()
        };
        assert_eq!(of(wait(40, &[])), [(Some(40), Some(110)), (Some(40), Some(90))]);
        assert_eq!(of(wait(0, &[(1, 0)])), [(None, Some(110)), (None, Some(90))], "never sent");
    }
}

//! The time line of programs: when each rank began and ended its part of each task.
//!
//! A part begins and ends at moments that depend on the ends of flows. They are computed after the
//! run from the flows, by the rule for flows that wait: an end at another host is known no sooner
//! than a bare header would arrive over an idle network.

use crate::outcome::{FlowRow, Outcome};
use crate::start::latency;
use crate::tasks::{PartRow, TaskRow};
use base::{Dur, FlowId, HostId};
use fabric::routes::Routes;
use proto::flow::Wait;
use scenario::{RunSpec, RunTask, RunTasks};

/// Adds the rows of the time line to the outcome of a run. `healthy` are the routes of the network
/// without failures.
pub fn with_tasks(spec: &RunSpec, healthy: &Routes, tasks: &RunTasks, outcome: Outcome) -> Outcome {
    let (tasks, parts) = rows(tasks, &outcome.flows, |src, dst| latency(spec, healthy, src, dst));
    Outcome { tasks, parts, ..outcome }
}

/// Returns a row for each task and a row for each part of a rank. `latency` is the latency of a bare
/// header between two hosts.
fn rows(tasks: &RunTasks, flows: &[FlowRow], latency: impl Fn(HostId, HostId) -> Dur) -> (Vec<TaskRow>, Vec<PartRow>) {
    let known = |wait: &Wait, host: HostId| {
        let end = |(flow, delay): &(FlowId, Dur)| {
            let row = &flows[flow.index()];
            let beyond = if row.dst == host.0 { *delay } else { latency(HostId(row.dst), host).max(*delay) };
            Some(row.finish_ps? + beyond.0)
        };
        wait.on.iter().map(end).try_fold(wait.not_before.0, |last, end| Some(last.max(end?)))
    };
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
            let [start_ps, finish_ps] = part.moments.map(|moment| known(&tasks.moments[moment as usize], part.host));
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
        ..TaskRow::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Time;
    use scenario::workload::tasks::{Moved, Task, TaskPart};

    fn wait(not_before: u64, on: &[(u32, u64)]) -> Wait {
        let on = on.iter().map(|(flow, delay)| (FlowId(*flow), Dur(*delay))).collect();
        Wait { on, not_before: Time(not_before), give_up_after: None, allowed: None }
    }

    #[test]
    fn a_part_ends_when_its_host_knows_of_the_ends_of_its_flows() {
        let collective = Some(Moved { operation: "all_reduce", bytes: 100, bus_bytes: 150 });
        let task = |name: &str, collective: Option<Moved>| RunTask {
            workload: 1,
            group: (1 << 32) + u64::from(collective.is_none()),
            task: Task { name: name.to_owned(), iteration: 3, collective },
        };
        let part = |task, rank, moments| TaskPart { task, rank, host: HostId(rank + 10), moments };
        let tasks = RunTasks {
            all: vec![task("sum", collective), task("rest", None)],
            // Rank 0 has host 10, and rank 1 host 11.
            parts: vec![part(0, 0, [0, 1]), part(0, 1, [2, 1]), part(1, 1, [1, 3])],
            moments: vec![wait(5, &[]), wait(0, &[(0, 7), (1, 0)]), wait(3, &[]), wait(0, &[(2, 0)])],
        };
        let flow = |dst, finish_ps| FlowRow { dst, finish_ps, group_id: Some(1 << 32), ..FlowRow::default() };
        let flows = [flow(10, Some(100)), flow(11, Some(90)), flow(11, None)];
        let (rows, parts) = rows(&tasks, &flows, |_, _| Dur(20));
        // Host 10 knows the end at itself after the delay of 7, and that at host 11 after 20; host 11 the former after 20.
        let times: Vec<_> = parts.iter().map(|part| (part.rank, part.start_ps, part.finish_ps)).collect();
        assert_eq!(times, [(0, Some(5), Some(110)), (1, Some(3), Some(120)), (1, Some(120), None)]);
        let of = |row: &TaskRow| (row.start_ps, row.first_finish_ps, row.finish_ps, row.last_rank, row.parts);
        assert_eq!(of(&rows[0]), (Some(3), Some(110), Some(120), 1, 2));
        assert_eq!(of(&rows[1]), (Some(120), None, None, 1, 1));
        assert_eq!(rows[0].bus_bandwidth_bps(), Some(150.0 * 8e12 / 117.0));
        assert_eq!((rows[0].flows, rows[1].flows), (3, 0));
        assert_eq!((rows[1].bus_bandwidth_bps(), rows[0].iteration), (None, 3));
        assert_eq!(TaskRow { flows: 0, ..rows[0].clone() }.bus_bandwidth_bps(), None, "within a server");
    }
}

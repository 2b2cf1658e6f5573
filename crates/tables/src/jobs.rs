//! The work of programs: their iterations and collectives, and the communication that no
//! computation hides.

use sim::tasks::{PartRow, TaskRow};
use std::collections::{BTreeMap, BTreeSet};

/// The work of the programs of a point.
#[derive(Default)]
pub(crate) struct Jobs {
    /// The times of the iterations that ended, in seconds.
    pub iteration_s: Vec<f64>,
    /// The times of the collectives that ended, in seconds.
    pub collective_s: Vec<f64>,
    /// Their bus bandwidths, in bit/s.
    pub bus_bandwidth_bps: Vec<f64>,
    /// The times from the end of the first rank to the end of the last in a collective, in seconds.
    pub spread_s: Vec<f64>,
    /// For each rank that computes, the share of the time of its job in which it takes part in a
    /// collective and does not compute.
    pub exposed: Vec<f64>,
}

impl Jobs {
    /// Takes the tasks and the parts of a point.
    pub fn of(tasks: &[TaskRow], parts: &[PartRow]) -> Jobs {
        let seconds = |ps: u64| ps as f64 / 1e12;
        let mut iterations: BTreeMap<(u16, u32), Option<(u64, u64)>> = BTreeMap::new();
        for task in tasks {
            let own = task.start_ps.zip(task.finish_ps);
            let all = iterations.entry((task.workload, task.iteration)).or_insert(own);
            *all = all.zip(own).map(|(all, own)| (all.0.min(own.0), all.1.max(own.1)));
        }
        let collectives = || tasks.iter().filter(|task| task.collective.is_some());
        let spread = |task: &TaskRow| task.finish_ps.zip(task.first_finish_ps).map(|(last, first)| seconds(last - first));
        Jobs {
            iteration_s: iterations.into_values().flatten().map(|(start, finish)| seconds(finish - start)).collect(),
            collective_s: collectives().filter_map(TaskRow::time_ps).map(seconds).collect(),
            bus_bandwidth_bps: collectives().filter_map(TaskRow::bus_bandwidth_bps).collect(),
            spread_s: collectives().filter_map(spread).collect(),
            exposed: exposed(tasks, parts),
        }
    }
}

/// A rank of a workload.
type Rank = (u16, u32);

/// A part of a rank begins (1) or ends (-1) at a time. The index is 1 for collectives and 0 for
/// computations.
type Change = (u64, usize, i64);

/// Returns by rank that computes the share of its job in which it only communicates.
fn exposed(tasks: &[TaskRow], parts: &[PartRow]) -> Vec<f64> {
    let moves: BTreeSet<u64> = tasks.iter().filter(|task| task.collective.is_some()).map(|task| task.group_id).collect();
    let mut ranks: BTreeMap<Rank, Vec<Change>> = BTreeMap::new();
    let mut jobs: BTreeMap<u16, (u64, u64)> = BTreeMap::new();
    for part in parts {
        let Some((start, finish)) = part.start_ps.zip(part.finish_ps) else { continue };
        let job = jobs.entry(part.workload).or_insert((start, finish));
        *job = (job.0.min(start), job.1.max(finish));
        let kind = usize::from(moves.contains(&part.group_id));
        ranks.entry((part.workload, part.rank)).or_default().extend([(start, kind, 1), (finish, kind, -1)]);
    }
    let share = |((workload, _), mut changes): (Rank, Vec<Change>)| {
        let (start, finish) = jobs[&workload];
        changes.sort_unstable();
        let (mut open, mut before, mut only, mut computing) = ([0, 0], start, 0, 0);
        for (at, kind, change) in changes {
            only += if open[0] == 0 && open[1] > 0 { at - before } else { 0 };
            computing += if open[0] > 0 { at - before } else { 0 };
            open[kind] += change;
            before = at;
        }
        (computing > 0).then(|| only as f64 / (finish - start) as f64)
    };
    ranks.into_iter().filter_map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sim::tasks::Moved;

    const US: u64 = 1_000_000;

    fn task(group_id: u64, iteration: u32, moves: bool, times: [Option<u64>; 3]) -> TaskRow {
        let [start_ps, first_finish_ps, finish_ps] = times.map(|us| us.map(|us| us * US));
        let collective = moves.then_some(Moved { operation: "all_gather", bytes: 1000, bus_bytes: 750 });
        TaskRow { group_id, iteration, collective, flows: 1, start_ps, first_finish_ps, finish_ps, ..TaskRow::default() }
    }

    fn part(group_id: u64, rank: u32, start: u64, finish: u64) -> PartRow {
        PartRow { group_id, rank, start_ps: Some(start * US), finish_ps: Some(finish * US), ..PartRow::default() }
    }

    #[test]
    fn iterations_and_collectives_take_from_their_first_start_to_their_last_end() {
        let tasks = [
            task(0, 0, false, [Some(10), Some(20), Some(25)]),
            task(1, 0, true, [Some(20), Some(30), Some(40)]),
            task(2, 1, true, [Some(40), Some(44), Some(50)]),
            task(3, 2, true, [Some(50), Some(60), None]),
        ];
        let jobs = Jobs::of(&tasks, &[]);
        let micros = |seconds: &[f64]| seconds.iter().map(|s| (s * 1e6).round()).collect::<Vec<_>>();
        // The last iteration has not ended.
        assert_eq!(micros(&jobs.iteration_s), [30.0, 10.0]);
        assert_eq!((micros(&jobs.collective_s), micros(&jobs.spread_s)), (vec![20.0, 10.0], vec![10.0, 6.0]));
        assert_eq!(jobs.bus_bandwidth_bps, [750.0 * 8e12 / (20 * US) as f64, 750.0 * 8e12 / (10 * US) as f64]);
    }

    #[test]
    fn communication_is_exposed_while_a_rank_does_not_compute() {
        let tasks = [task(0, 0, false, [None; 3]), task(1, 0, true, [None; 3]), task(2, 0, true, [None; 3])];
        let parts = [
            // Rank 0 computes from 0 to 40, and communicates from 30 to 60 and from 50 to 70: 30 of 100 are exposed.
            part(0, 0, 0, 40),
            part(1, 0, 30, 60),
            part(2, 0, 50, 70),
            // Rank 1 computes all the time; rank 2 does not compute.
            part(0, 1, 0, 100),
            part(1, 1, 30, 60),
            part(1, 2, 30, 60),
        ];
        assert_eq!(Jobs::of(&tasks, &parts).exposed, [0.3, 0.0]);
        assert!(Jobs::of(&[], &[]).exposed.is_empty());
    }
}

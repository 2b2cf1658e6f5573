//! The work of programs: their iterations and collectives, and how their ranks spend the time.

use crate::rank_times::{RankTime, rank_times};
use sim::tasks::{Parallelism, PartRow, TaskRow};
use std::collections::BTreeMap;

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
    /// How each rank that computes spends the time of its job.
    ranks: Vec<RankTime>,
}

impl Jobs {
    /// Takes the tasks and the parts of a point whose run ended at `end_ps`.
    pub fn of(tasks: &[TaskRow], parts: &[PartRow], end_ps: u64) -> Jobs {
        let seconds = |ps: u64| ps as f64 / 1e12;
        let mut iterations: BTreeMap<(u16, u32), Option<(u64, u64)>> = BTreeMap::new();
        for task in tasks {
            let own = task.start_ps.zip(task.finish_ps);
            let all = iterations.entry((task.workload, task.iteration)).or_insert(own);
            *all = all.zip(own).map(|(all, own)| (all.0.min(own.0), all.1.max(own.1)));
        }
        // A message to the next stage of a pipeline is not a collective.
        let is_collective = |task: &&TaskRow| task.collective.is_some() && task.parallelism != Some(Parallelism::Pipeline);
        let collectives = || tasks.iter().filter(is_collective);
        let spread = |task: &TaskRow| task.finish_ps.zip(task.first_finish_ps).map(|(last, first)| seconds(last - first));
        Jobs {
            iteration_s: iterations.into_values().flatten().map(|(start, finish)| seconds(finish - start)).collect(),
            collective_s: collectives().filter_map(TaskRow::time_ps).map(seconds).collect(),
            bus_bandwidth_bps: collectives().filter_map(TaskRow::bus_bandwidth_bps).collect(),
            spread_s: collectives().filter_map(spread).collect(),
            ranks: rank_times(tasks, parts, end_ps)
                .into_iter()
                .filter(|rank| rank.iteration.is_none() && rank.computation_ps > 0)
                .collect(),
        }
    }
    /// Returns the share of the time of a job that ranks spend in some way, mean over the ranks that
    /// compute. `None` if no rank computes.
    pub fn share(&self, spent_ps: impl Fn(&RankTime) -> u64) -> Option<f64> {
        let shares: Vec<f64> = self.ranks.iter().map(|rank| spent_ps(rank) as f64 / rank.time_ps as f64).collect();
        (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
    }
    /// Returns [`Jobs::share`], or `None` if no rank spends any time in this way.
    pub fn share_if_any(&self, spent_ps: impl Fn(&RankTime) -> u64) -> Option<f64> {
        self.share(spent_ps).filter(|share| *share > 0.0)
    }
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

    #[test]
    fn iterations_and_collectives_take_from_their_first_start_to_their_last_end() {
        let tasks = [
            task(0, 0, false, [Some(10), Some(20), Some(25)]),
            task(1, 0, true, [Some(20), Some(30), Some(40)]),
            task(2, 1, true, [Some(40), Some(44), Some(50)]),
            task(3, 2, true, [Some(50), Some(60), None]),
            // A message between stages is no collective.
            TaskRow { parallelism: Some(Parallelism::Pipeline), ..task(4, 1, true, [Some(41), Some(42), Some(49)]) },
        ];
        let jobs = Jobs::of(&tasks, &[], 60 * US);
        let micros = |seconds: &[f64]| seconds.iter().map(|s| (s * 1e6).round()).collect::<Vec<_>>();
        // The last iteration has not ended.
        assert_eq!(micros(&jobs.iteration_s), [30.0, 10.0]);
        assert_eq!((micros(&jobs.collective_s), micros(&jobs.spread_s)), (vec![20.0, 10.0], vec![10.0, 6.0]));
        assert_eq!(jobs.bus_bandwidth_bps, [750.0 * 8e12 / (20 * US) as f64, 750.0 * 8e12 / (10 * US) as f64]);
    }
    #[test]
    fn shares_are_means_over_the_ranks_that_compute() {
        let part = |group_id, rank, start: u64, finish: u64| PartRow {
            group_id,
            rank,
            start_ps: Some(start * US),
            finish_ps: Some(finish * US),
            ..PartRow::default()
        };
        let tasks = [task(0, 0, false, [None; 3]), task(1, 0, true, [None; 3])];
        // Rank 0 computes for 50 of 100 and communicates for 25 after that; rank 1 computes for 75; rank 2 does not compute.
        let parts = [part(0, 0, 0, 50), part(1, 0, 30, 75), part(0, 1, 25, 100), part(1, 2, 0, 90)];
        let jobs = Jobs::of(&tasks, &parts, 100 * US);
        let shares = [jobs.share(|rank| rank.computation_ps), jobs.share(RankTime::exposed_ps), jobs.share(|rank| rank.bubble_ps)];
        assert_eq!(shares, [0.625, 0.125, 0.25].map(Some));
        assert_eq!((jobs.share(|rank| rank.waiting_ps), jobs.share_if_any(|rank| rank.tensor_ps)), (Some(0.0), None));
        assert_eq!(Jobs::of(&tasks[1..], &parts[3..], 100 * US).share(RankTime::exposed_ps), None, "nobody computes");
    }
}

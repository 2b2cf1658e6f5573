//! Decides how many points run at the same time, within the request and the memory, and how many
//! threads each of them gets.

use crate::text::{count, short};
use scenario::Memory;
use sim::Threads;

/// The requested parallelism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Points to run at the same time; 0: as many as the cores allow with `threads` threads each.
    pub jobs: usize,
    /// Threads per point; 0: uses idle cores.
    pub threads: usize,
    /// Cores of this machine.
    pub cores: usize,
}

impl Wanted {
    /// Returns the request with the number of cores of this machine.
    pub fn on_this_machine(jobs: usize, threads: usize) -> Wanted {
        Wanted { jobs, threads, cores: std::thread::available_parallelism().map_or(1, usize::from) }
    }
}

/// The parallelism that is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jobs {
    /// Points at the same time as requested, limited to the number of points.
    pub asked: usize,
    /// Points at the same time that fit into memory.
    pub jobs: usize,
    /// Threads per point.
    pub threads: Threads,
    /// Estimated memory of the largest `asked` points together, in bytes.
    pub need_bytes: u64,
    /// The memory that they may use.
    pub memory: Memory,
}

impl Jobs {
    /// Returns as many jobs as are requested and fit into memory, but at least one:
    /// [`prepare`](crate::prepare::prepare) already fails if one point alone does not fit. `sizes`
    /// are the memory estimates of all points, in bytes.
    pub fn that_fit(wanted: Wanted, mut sizes: Vec<u64>, memory: Memory) -> Jobs {
        let Wanted { jobs, threads, cores } = wanted;
        let asked = if jobs == 0 { (cores / threads.max(1)).max(1) } else { jobs };
        sizes.sort_unstable_by_key(|bytes| std::cmp::Reverse(*bytes));
        sizes.truncate(asked);
        // About a quarter of the memory of a run is not shared between its threads.
        let on = |threads: usize, bytes: u64| bytes.saturating_add((bytes / 4).saturating_mul(threads.max(1) as u64 - 1));
        let largest = sizes.first().copied().unwrap_or(0);
        let most = (1..=threads).rev().find(|threads| on(*threads, largest) <= memory.bytes).unwrap_or(threads.min(1));
        let (mut need_bytes, mut fit) = (0u64, 0);
        for bytes in &sizes {
            need_bytes = need_bytes.saturating_add(on(threads, *bytes));
            fit += usize::from(need_bytes <= memory.bytes);
        }
        let jobs = fit.max(1);
        let threads = if threads == 0 { Threads::UpTo(cores / jobs) } else { Threads::Exactly(most) };
        Jobs { asked: sizes.len().max(1), jobs, threads, need_bytes, memory }
    }
    /// Returns the note for the user if memory allows less than was requested.
    pub fn note(&self) -> Option<String> {
        let memory = Some(self.memory).filter(|memory| memory.bytes < self.need_bytes)?;
        let (asked, need) = (count(self.asked, "point"), short(self.need_bytes as f64));
        let jobs = count(self.jobs, "point");
        let threads = match self.threads {
            Threads::Exactly(threads) => format!(" on {}", count(threads, "thread")),
            Threads::UpTo(_) => String::new(),
        };
        Some(format!("note: {asked} at a time may need {need}B of memory, but {memory}: running {jobs} at a time{threads}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scenario::memory::Source;

    fn free(bytes: u64) -> Memory {
        Memory { bytes, source: Source::Free }
    }

    #[test]
    fn no_more_points_run_than_fit_into_memory() {
        let wanted = |jobs| Wanted { jobs, threads: 1, cores: 8 };
        let threads = Threads::Exactly(1);
        let jobs = |asked, memory| Jobs::that_fit(wanted(asked), vec![30, 10, 20, 40], memory);
        for (bytes, fit) in [(200, 3), (90, 3), (89, 2), (70, 2), (69, 1), (40, 1)] {
            let memory = free(bytes);
            assert_eq!(jobs(3, memory), Jobs { asked: 3, jobs: fit, threads, need_bytes: 90, memory });
        }
        assert_eq!(jobs(9, free(99)), Jobs { asked: 4, jobs: 3, threads, need_bytes: 100, memory: free(99) });
        assert_eq!(Jobs::that_fit(wanted(2), Vec::new(), free(1)).jobs, 1);
        assert_eq!(jobs(3, free(90)).note(), None);
        let note = |threads, free| Jobs::that_fit(Wanted { threads, ..wanted(2) }, vec![6_000_000_000; 2], free).note();
        assert_eq!(
            note(0, free(8_000_000_000)).as_deref(),
            Some("note: 2 points at a time may need 12.0 GB of memory, but 8.0 GB are free: running 1 point at a time")
        );
        assert_eq!(
            note(3, Memory { bytes: 8_000_000_000, source: Source::Given }).as_deref(),
            Some(
                "note: 2 points at a time may need 18.0 GB of memory, but 8.0 GB are allowed by `--memory`: running 1 point at a time on 2 threads"
            )
        );
    }

    #[test]
    fn cores_go_to_points_first_and_then_to_threads() {
        let jobs = |jobs, threads, points| Jobs::that_fit(Wanted { jobs, threads, cores: 8 }, vec![1; points], Memory::UNLIMITED);
        for (points, at_a_time, threads) in [(1, 1, 8), (2, 2, 4), (3, 3, 2), (8, 8, 1), (20, 8, 1)] {
            let jobs = jobs(0, 0, points);
            assert_eq!((jobs.jobs, jobs.threads), (at_a_time, Threads::UpTo(threads)), "{points} points");
        }
        assert_eq!((jobs(0, 3, 9).jobs, jobs(0, 3, 9).threads), (2, Threads::Exactly(3)));
        assert_eq!((jobs(0, 9, 9).jobs, jobs(0, 9, 9).threads), (1, Threads::Exactly(9)));
        assert_eq!((jobs(4, 3, 9).jobs, jobs(4, 3, 9).threads), (4, Threads::Exactly(3)));
        assert_eq!(Jobs::that_fit(Wanted { jobs: 1, threads: 3, cores: 8 }, vec![100], Memory::UNLIMITED).need_bytes, 150);
    }
}

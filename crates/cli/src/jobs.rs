//! How many points run at the same time: as many as were asked for, and as fit into memory.

use crate::text::{count, short};

/// How many points run at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jobs {
    /// What was asked for, but no more than there are points.
    pub asked: usize,
    /// What memory allows of it.
    pub jobs: usize,
    /// What the largest points would take together, as far as can be told, in bytes.
    pub need_bytes: u64,
    /// What they may take, in bytes, where the system tells.
    pub free_bytes: Option<u64>,
}

impl Jobs {
    /// As many of the `asked` points as fit into memory, one at least. `sizes` are those of all points, in bytes.
    pub fn that_fit(asked: usize, mut sizes: Vec<u64>, free_bytes: Option<u64>) -> Jobs {
        sizes.sort_unstable_by_key(|bytes| std::cmp::Reverse(*bytes));
        sizes.truncate(asked);
        let (mut need_bytes, mut fit) = (0u64, 0);
        for bytes in &sizes {
            need_bytes = need_bytes.saturating_add(*bytes);
            fit += usize::from(free_bytes.is_none_or(|free| need_bytes <= free));
        }
        Jobs { asked: sizes.len().max(1), jobs: fit.max(1), need_bytes, free_bytes }
    }
    /// What to tell when memory allows less than was asked for.
    pub fn note(&self) -> Option<String> {
        let free = self.free_bytes.filter(|free| *free < self.need_bytes)?;
        let (asked, need, free) = (count(self.asked, "point"), short(self.need_bytes as f64), short(free as f64));
        let jobs = count(self.jobs, "point");
        Some(format!("note: {asked} at a time may need {need}B of memory and {free}B are free: running {jobs} at a time"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_points_run_than_fit_into_memory() {
        let jobs = |asked, free| Jobs::that_fit(asked, vec![30, 10, 20, 40], free);
        assert_eq!(jobs(3, None), Jobs { asked: 3, jobs: 3, need_bytes: 90, free_bytes: None });
        for (free, fit) in [(200, 3), (90, 3), (89, 2), (70, 2), (69, 1), (40, 1), (0, 1)] {
            assert_eq!(jobs(3, Some(free)), Jobs { asked: 3, jobs: fit, need_bytes: 90, free_bytes: Some(free) });
        }
        assert_eq!(jobs(9, Some(99)), Jobs { asked: 4, jobs: 3, need_bytes: 100, free_bytes: Some(99) });
        assert_eq!(Jobs::that_fit(2, Vec::new(), Some(1)).jobs, 1);
        assert_eq!(jobs(3, Some(90)).note(), None);
        let note = Jobs::that_fit(2, vec![6_000_000_000; 2], Some(8_000_000_000)).note();
        assert_eq!(
            note.as_deref(),
            Some("note: 2 points at a time may need 12.0 GB of memory and 8.00 GB are free: running 1 point at a time")
        );
    }
}

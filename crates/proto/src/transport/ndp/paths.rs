//! Paths of one direction of a flow: a random permutation of all paths, drawn again after each
//! pass, without the paths that lose far more packets than others.

use base::Rng;

/// Counts of the answers to packets on one path.
#[derive(Clone, Copy, Debug, Default)]
struct Answers {
    acks: u64,
    nacks: u64,
}

/// NACKs that a returned packet counts for (ndp.cpp, count_feedback).
pub(super) const RETURNED_NACKS: u64 = 3;
/// A path is excluded only after more answers than this (ndp.cpp, count_feedback).
const LEAST_ANSWERS: u64 = 100;

/// The paths of one direction of a flow.
#[derive(Clone, Debug, Default)]
pub(super) struct Spray {
    /// Permutation of the path indices; the first `used` were taken in this pass.
    order: Vec<u16>,
    used: usize,
    /// Answers by path; empty if no path is excluded.
    answers: Vec<Answers>,
    all: Answers,
}

impl Spray {
    /// Returns the tag of the next path of `paths` paths; zero, the router's path, if there is only
    /// one.
    pub(super) fn next(&mut self, paths: u16, rng: &mut Rng) -> u16 {
        if paths <= 1 {
            return 0;
        }
        if self.order.len() != usize::from(paths) {
            self.order = (0..paths).collect();
            self.used = 0;
        }
        loop {
            if self.used == self.order.len() {
                self.used = 0;
            }
            let other = self.used + rng.below((self.order.len() - self.used) as u64) as usize;
            self.order.swap(self.used, other);
            let index = self.order[self.used];
            self.used += 1;
            if !self.is_bad(index) {
                return index + 1;
            }
        }
    }
    /// Counts the answer to a packet on the path with this tag: an ACK, or this many NACKs.
    pub(super) fn count(&mut self, tag: u16, acks: u64, nacks: u64) {
        let Some(index) = tag.checked_sub(1).map(usize::from) else { return };
        if self.answers.len() <= index {
            self.answers.resize(index + 1, Answers::default());
        }
        for answers in [&mut self.answers[index], &mut self.all] {
            answers.acks += acks;
            answers.nacks += nacks;
        }
    }
    /// Returns whether a path is excluded: it has more than 100 answers, more than 30 NACKs per 100
    /// ACKs, and 1.25 times the ratio of all paths together. At least one path is never excluded,
    /// since not all paths can exceed the common ratio.
    fn is_bad(&self, index: u16) -> bool {
        let Some(&Answers { acks, nacks }) = self.answers.get(usize::from(index)) else { return false };
        let than_all = 4 * u128::from(nacks) * u128::from(self.all.acks) > 5 * u128::from(acks) * u128::from(self.all.nacks);
        acks + nacks > LEAST_ANSWERS && 10 * nacks > 3 * acks && than_all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pass_takes_every_path_once_in_a_different_order() {
        let (mut spray, mut rng) = (Spray::default(), Rng::stream(1, "paths", &[]));
        let passes: Vec<Vec<u16>> = (0..20).map(|_| (0..8).map(|_| spray.next(8, &mut rng)).collect()).collect();
        for pass in &passes {
            let mut sorted = pass.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (1..=8).collect::<Vec<_>>());
        }
        assert!(passes.windows(2).all(|two| two[0] != two[1]));
        // Another number of paths, and a single path.
        let mut four: Vec<u16> = (0..4).map(|_| spray.next(4, &mut rng)).collect();
        four.sort_unstable();
        assert_eq!((four, spray.next(1, &mut rng)), (vec![1, 2, 3, 4], 0));
    }

    #[test]
    fn a_path_with_far_more_nacks_than_others_is_left_out() {
        let mut rng = Rng::stream(1, "paths", &[]);
        let mut seen = |acks: u64, nacks: u64, others: u64| {
            let mut spray = Spray::default();
            (1..=3).for_each(|tag| spray.count(tag, 100, others));
            spray.count(4, acks, nacks);
            (0..12).filter(|_| spray.next(4, &mut rng) == 4).count()
        };
        // 24 NACKs for 77 ACKs are 31 %; the other paths have none.
        assert_eq!(seen(77, 24, 0), 0);
        assert_eq!(seen(77, 23, 0), 3, "100 answers are too few");
        assert_eq!(seen(100, 30, 0), 3, "30 % is not above 30 %");
        assert_eq!(seen(100, 60, 50), 3, "others have nearly as many");
        assert_eq!(seen(0, 101, 100), 0);
        assert_eq!(seen(0, 99, 100), 3);
    }

    #[test]
    fn some_path_is_always_left() {
        let mut rng = Rng::stream(1, "paths", &[]);
        let mut spray = Spray::default();
        (1..=3).for_each(|tag| spray.count(tag, 0, 1000));
        assert!((1..=3).contains(&spray.next(3, &mut rng)));
    }
}

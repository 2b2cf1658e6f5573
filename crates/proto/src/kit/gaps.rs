//! Numbers of transmissions as the receiver of a flow sees them: on one path without reordering, a number that is left out is a lost packet.
//!
//! Each transmission of a flow has the next number, a retransmission too. A probe carries the number that the next transmission will have, so that it
//! shows the loss of the last ones.
//!
//! Assumed: a packet that comes after a later one counts as lost.

use crate::ranges::Ranges;
use std::ops::Range;

/// What has arrived of a flow's transmissions.
#[derive(Clone, Debug, Default)]
pub struct Gaps {
    /// The number that the next packet should have.
    expected: u64,
    /// The numbers that were left out.
    missing: Ranges,
}

impl Gaps {
    /// A packet of data arrives. Returns the numbers that were left out before it.
    pub fn on_data(&mut self, number: u64) -> Range<u64> {
        let gap = self.on_probe(number);
        self.expected = self.expected.max(number + 1);
        gap
    }
    /// A probe arrives behind all transmissions with smaller numbers. Returns those of them that were left out.
    pub fn on_probe(&mut self, number: u64) -> Range<u64> {
        let gap = self.expected.min(number)..number;
        if self.expected >= number {
            return number..number;
        }
        self.missing.insert(gap.clone());
        self.expected = number;
        gap
    }
    /// The sender waits for no transmission with a smaller number any more.
    pub fn settle_below(&mut self, number: u64) {
        self.missing.remove_below(number);
    }
    /// All numbers that were left out and are not settled, in rising order.
    pub fn missing(&self) -> impl Iterator<Item = &Range<u64>> {
        self.missing.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Golden vector: of the numbers 0 to 9 one is lost, and a probe with the number 10 follows.
    #[test]
    fn golden_gaps() {
        let gaps = |lost: u64| {
            let mut gaps = Gaps::default();
            let found = (0..10).filter(|n| *n != lost).map(|n| (n, gaps.on_data(n))).filter(|(_, gap)| !gap.is_empty());
            let found: Vec<_> = found.collect();
            (found, gaps.on_probe(10))
        };
        assert_eq!(gaps(7), (vec![(8, 7..8)], 10..10));
        assert_eq!(gaps(9), (vec![], 9..10));
        assert_eq!(gaps(10), (vec![], 10..10));
    }

    #[test]
    fn what_was_left_out_is_kept_until_it_is_settled() {
        let mut gaps = Gaps::default();
        assert_eq!([2, 3, 7, 5].map(|n| gaps.on_data(n)), [0..2, 3..3, 4..7, 5..5]);
        assert_eq!((gaps.on_probe(9), gaps.on_probe(9), gaps.on_probe(1)), (8..9, 9..9, 1..1));
        assert!(gaps.missing().eq(&[0..2, 4..7, 8..9]));
        gaps.settle_below(5);
        assert!(gaps.missing().eq(&[5..7, 8..9]));
        assert_eq!(gaps.on_data(9), 9..9);
    }
}

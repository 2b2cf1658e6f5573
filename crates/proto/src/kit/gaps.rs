//! Numbers of transmissions at the receiver of a flow: on one path without reordering, a missing
//! number is a lost packet.
//!
//! Each transmission of a flow has the next number, retransmissions included. A probe carries the
//! number of the next transmission, so that it reveals the loss of the last ones.
//!
//! Assumed: a packet that arrives after a later one counts as lost.

use crate::ranges::Ranges;
use std::ops::Range;

/// The numbers of a flow's transmissions that have arrived.
#[derive(Clone, Debug, Default)]
pub struct Gaps {
    /// The expected number of the next packet.
    expected: u64,
    /// The missing numbers.
    missing: Ranges,
}

impl Gaps {
    /// Handles a data packet. Returns the missing numbers directly before it.
    pub fn on_data(&mut self, number: u64) -> Range<u64> {
        let gap = self.on_probe(number);
        self.expected = self.expected.max(number + 1);
        gap
    }
    /// Handles a probe, sent after all transmissions with smaller numbers. Returns the missing
    /// numbers directly before it.
    pub fn on_probe(&mut self, number: u64) -> Range<u64> {
        let gap = self.expected.min(number)..number;
        if self.expected >= number {
            return number..number;
        }
        self.missing.insert(gap.clone());
        self.expected = number;
        gap
    }
    /// Forgets the missing numbers below `number`, which the sender has settled.
    pub fn settle_below(&mut self, number: u64) {
        self.missing.remove_below(number);
    }
    /// Returns all missing numbers that are not settled, in rising order.
    pub fn missing(&self) -> impl Iterator<Item = &Range<u64>> {
        self.missing.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Golden vector: one of the numbers 0 to 9 is lost, and a probe with the number 10 follows.
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
    fn missing_numbers_are_kept_until_they_are_settled() {
        let mut gaps = Gaps::default();
        assert_eq!([2, 3, 7, 5].map(|n| gaps.on_data(n)), [0..2, 3..3, 4..7, 5..5]);
        assert_eq!((gaps.on_probe(9), gaps.on_probe(9), gaps.on_probe(1)), (8..9, 9..9, 1..1));
        assert!(gaps.missing().eq(&[0..2, 4..7, 8..9]));
        gaps.settle_below(5);
        assert!(gaps.missing().eq(&[5..7, 8..9]));
        assert_eq!(gaps.on_data(9), 9..9);
    }
}

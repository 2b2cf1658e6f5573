//! Sets of byte ranges: the bytes that a sender knows to be received, or that a receiver holds out
//! of order.

use std::ops::Range;

/// A set of bytes as disjoint, non-touching ranges in rising order. Loss leaves few holes, so that
/// a sorted list is enough.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges(Vec<Range<u64>>);

impl Ranges {
    /// Adds `range` and returns how many of its bytes are new.
    pub fn insert(&mut self, range: Range<u64>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        // Ranges from `first` up to `last` overlap or touch the new one and are merged into it.
        let first = self.0.partition_point(|r| r.end < range.start);
        let last = self.0.partition_point(|r| r.start <= range.end);
        let known: u64 = self.0[first..last].iter().map(|r| r.end.min(range.end).saturating_sub(r.start.max(range.start))).sum();
        let start = self.0[first..last].first().map_or(range.start, |r| r.start.min(range.start));
        let end = self.0[first..last].last().map_or(range.end, |r| r.end.max(range.end));
        self.0.splice(first..last, std::iter::once(start..end));
        range.end - range.start - known
    }
    /// Forgets all bytes below `upto`.
    pub fn remove_below(&mut self, upto: u64) {
        let gone = self.0.partition_point(|r| r.end <= upto);
        self.0.drain(..gone);
        if let Some(first) = self.0.first_mut() {
            first.start = first.start.max(upto);
        }
    }
    /// Returns the ranges of `within` that are not in the set, in rising order.
    pub fn holes(&self, within: Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let first = self.0.partition_point(|r| r.end <= within.start);
        let known = self.0[first..].iter().take_while(move |r| r.start < within.end);
        let mut from = within.start;
        let end = within.end;
        let before = known.map(|r| r.start..r.end).chain(std::iter::once(end..end));
        before.map(move |r| std::mem::replace(&mut from, r.end)..r.start).filter(|hole| hole.start < hole.end)
    }
    /// Returns the range that contains `byte`.
    pub fn containing(&self, byte: u64) -> Option<Range<u64>> {
        let at = self.0.partition_point(|r| r.end <= byte);
        self.0.get(at).filter(|r| r.start <= byte).cloned()
    }
    /// Returns how many bytes the set holds.
    pub fn bytes(&self) -> u64 {
        self.0.iter().map(|r| r.end - r.start).sum()
    }
    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Returns the ranges in rising order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Range<u64>> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Compared with a plain set of bytes.
        #[test]
        fn is_a_set_of_bytes(steps in prop::collection::vec((0u64..60, 0u64..12, any::<bool>()), 0..40)) {
            let (mut ranges, mut bytes) = (Ranges::default(), BTreeSet::new());
            for (start, len, remove) in steps {
                if remove {
                    ranges.remove_below(start);
                    bytes.retain(|b| *b >= start);
                } else {
                    let before = bytes.len();
                    bytes.extend(start..start + len);
                    prop_assert_eq!(ranges.insert(start..start + len), (bytes.len() - before) as u64);
                }
                let listed: Vec<u64> = ranges.iter().flat_map(Clone::clone).collect();
                prop_assert_eq!(listed, bytes.iter().copied().collect::<Vec<_>>());
                prop_assert!(ranges.0.windows(2).all(|w| w[0].end < w[1].start));
                let holes: Vec<u64> = ranges.holes(start..start + 20).flatten().collect();
                prop_assert_eq!(holes, (start..start + 20).filter(|b| !bytes.contains(b)).collect::<Vec<_>>());
                for byte in 0..75 {
                    prop_assert_eq!(ranges.containing(byte).is_some(), bytes.contains(&byte));
                }
            }
            prop_assert_eq!(ranges.bytes(), bytes.len() as u64);
        }
    }
}

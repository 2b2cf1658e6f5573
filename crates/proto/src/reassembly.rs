//! Reassembly of one flow at its receiver: which bytes have arrived, each counted once.

use crate::ranges::Ranges;
use std::ops::Range;

/// Which payload bytes of a flow have arrived, and how far out of order.
#[derive(Clone, Debug, Default)]
pub struct Reassembly {
    next: u64,
    /// Whether bytes above `next` have arrived.
    gap: bool,
    reordered: u64,
    out_of_order: u64,
    /// State of flows with packets out of order.
    late: Option<Box<Late>>,
}

#[derive(Clone, Debug, Default)]
struct Late {
    early: Ranges,
    /// Bytes above `next` that arrived and were not delivered.
    undelivered: Ranges,
    gaps: u64,
    gap_bytes: u64,
    first_gap_bytes: u64,
}

impl Late {
    /// Counts a gap of this many bytes.
    fn open_gap(&mut self, missing: u64) {
        if self.gaps == 0 {
            self.first_gap_bytes = missing;
        }
        self.gaps += 1;
        self.gap_bytes += missing;
    }
}

/// Returns whether a set has bytes in a range that begins after `offset`.
fn later(set: &Ranges, offset: u64) -> bool {
    set.iter().next_back().is_some_and(|last| last.start > offset)
}

/// How far the packets of a flow arrived out of order. Packets without new bytes are not counted;
/// bytes that a receiver drops are new again when they return, but do not arrive late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disorder {
    /// Packets that arrived after a later byte of the flow.
    pub reordered: u64,
    /// Packets that arrived while bytes before theirs were missing.
    pub out_of_order: u64,
    /// Number of gaps that opened: arrivals of such a packet when no other was waiting for missing
    /// bytes.
    pub gaps: u64,
    /// Sum of the missing bytes before the packets that opened gaps.
    pub gap_bytes: u64,
    /// Missing bytes before the first of these packets.
    pub first_gap_bytes: u64,
}

/// The effect of one arrival.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// All bytes below this have arrived: the cumulative acknowledgment.
    pub next: u64,
    /// Bytes that had not arrived before.
    pub new_bytes: u64,
    /// The contiguous range around the arrived bytes: the first SACK block if it is above `next`.
    pub block: Range<u64>,
}

impl Reassembly {
    /// Adds `len` bytes from `offset` on.
    #[inline]
    pub fn on_bytes(&mut self, offset: u64, len: u64) -> Delivery {
        if offset == self.next && !self.gap {
            self.next += len;
            return Delivery { next: self.next, new_bytes: len, block: 0..self.next };
        }
        self.out_of_order(offset..offset + len)
    }

    #[cold]
    fn out_of_order(&mut self, range: Range<u64>) -> Delivery {
        let late = &mut **self.late.get_or_insert_default();
        let fresh = range.start.max(self.next)..range.end.max(self.next);
        let missing = range.start.saturating_sub(self.next);
        let reordered = later(&late.early, range.start) || later(&late.undelivered, range.start);
        let arrived = !late.undelivered.is_empty() && late.undelivered.insert(fresh.clone()) == 0;
        let new_bytes = late.early.insert(fresh);
        if new_bytes > 0 {
            self.reordered += u64::from(reordered && !arrived);
            self.out_of_order += u64::from(missing > 0);
        }
        if missing > 0 && !self.gap {
            late.open_gap(missing);
        }
        if let Some(first) = late.early.containing(self.next) {
            self.next = first.end;
            late.early.remove_below(first.end);
            late.undelivered.remove_below(first.end);
        }
        self.gap = !late.early.is_empty() || !late.undelivered.is_empty();
        let block = if range.start < self.next { 0..self.next } else { late.early.containing(range.start).unwrap_or(range) };
        Delivery { next: self.next, new_bytes, block }
    }
    /// Counts `len` bytes from `offset` on that arrived before earlier ones and are not delivered: the
    /// receiver drops them, or keeps them until their turn.
    #[cold]
    pub fn on_undelivered(&mut self, offset: u64, len: u64) {
        let late = &mut **self.late.get_or_insert_default();
        // What was missing when these bytes arrived, whatever the receiver dropped.
        let arrived = late.undelivered.containing(self.next).map_or(self.next, |range| range.end);
        let gap = later(&late.undelivered, arrived);
        let reordered = later(&late.undelivered, offset);
        if late.undelivered.insert(offset..offset + len) > 0 {
            self.reordered += u64::from(reordered);
        }
        self.out_of_order += 1;
        if offset > arrived && !gap {
            late.open_gap(offset - arrived);
        }
        self.gap = true;
    }
    /// Returns how far packets arrived out of order so far.
    pub fn disorder(&self) -> Disorder {
        let Reassembly { reordered, out_of_order, .. } = *self;
        let late = self.late.as_deref().map_or(Default::default(), |late| (late.gaps, late.gap_bytes, late.first_gap_bytes));
        let (gaps, gap_bytes, first_gap_bytes) = late;
        Disorder { reordered, out_of_order, gaps, gap_bytes, first_gap_bytes }
    }
    /// Returns the byte below which all bytes have arrived.
    pub fn next(&self) -> u64 {
        self.next
    }
    /// Returns the first range of bytes below `end` that have not arrived; empty if there are none.
    pub fn first_missing(&self, end: u64) -> Range<u64> {
        let early = self.late.as_deref().and_then(|late| late.early.iter().next());
        self.next.min(end)..early.map_or(end, |range| range.start.min(end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_each_byte_once_in_any_order() {
        let mut r = Reassembly::default();
        let mut reordered = Vec::new();
        let steps = [
            (0, 10, Delivery { next: 10, new_bytes: 10, block: 0..10 }),
            (20, 10, Delivery { next: 10, new_bytes: 10, block: 20..30 }),
            (30, 5, Delivery { next: 10, new_bytes: 5, block: 20..35 }),
            (20, 10, Delivery { next: 10, new_bytes: 0, block: 20..35 }),
            (5, 15, Delivery { next: 35, new_bytes: 10, block: 0..35 }),
            (0, 35, Delivery { next: 35, new_bytes: 0, block: 0..35 }),
            (35, 1, Delivery { next: 36, new_bytes: 1, block: 0..36 }),
        ];
        for (offset, len, delivery) in steps {
            assert_eq!(r.on_bytes(offset, len), delivery);
            reordered.push(r.disorder().reordered);
        }
        assert_eq!(reordered, [0, 0, 0, 0, 1, 1, 1]);
    }

    #[test]
    fn the_first_missing_bytes_are_before_early_ones() {
        let mut r = Reassembly::default();
        assert_eq!((r.first_missing(0), r.first_missing(9)), (0..0, 0..9));
        for (offset, len) in [(20, 10), (0, 10), (40, 10)] {
            r.on_bytes(offset, len);
        }
        assert_eq!((r.first_missing(60), r.first_missing(15)), (10..20, 10..15));
        assert!(r.first_missing(10).is_empty() && r.first_missing(5).is_empty());
        r.on_bytes(10, 10);
        assert_eq!(r.first_missing(60), 30..40);
        r.on_bytes(30, 10);
        assert_eq!((r.first_missing(60), r.first_missing(50)), (50..60, 50..50));
    }

    /// Packets of ten bytes. Gaps open at packets 3 (one missing), 8 (two missing) and 10 (one
    /// missing).
    #[test]
    fn a_gap_is_measured_where_it_opens() {
        let mut r = Reassembly::default();
        let step = |r: &mut Reassembly, packet: u64| {
            r.on_bytes(10 * packet, 10);
            let Disorder { out_of_order, gaps, gap_bytes, .. } = r.disorder();
            (out_of_order, gaps, gap_bytes)
        };
        let seen: Vec<_> = [0, 1, 3, 3, 4, 2, 2, 5, 8, 6, 7, 10, 9].map(|packet| step(&mut r, packet)).into();
        let (closed, first, second, third) = ((0, 0, 0), (1, 1, 10), (3, 2, 30), (4, 3, 40));
        let four = (2, 1, 10);
        assert_eq!(seen, [closed, closed, first, first, four, four, four, four, second, second, second, third, third]);
        assert_eq!(r.disorder(), Disorder { reordered: 4, out_of_order: 4, gaps: 3, gap_bytes: 40, first_gap_bytes: 10 });
    }

    /// Packets of ten bytes; the receiver drops whatever arrives early. Packet 3 arrives after 4 to 6,
    /// packet 7 while 4 to 6, which were dropped, are missing, and packet 9 before 8.
    #[test]
    fn packets_that_are_dropped_have_arrived_out_of_order() {
        let (mut r, mut seen) = (Reassembly::default(), Vec::new());
        for packet in [0, 1, 2, 4, 5, 6, 3, 7, 4, 5, 6, 7, 9, 8, 9, 10] {
            if r.next() == 10 * packet {
                assert_eq!(r.on_bytes(10 * packet, 10).next, 10 * packet + 10);
            } else {
                r.on_undelivered(10 * packet, 10);
            }
            let Disorder { reordered, out_of_order, gaps, .. } = r.disorder();
            seen.push((reordered, out_of_order, gaps));
        }
        let (none, first, late, second) = ((0, 0, 0), (1, 3, 1), (1, 4, 1), (1, 5, 2));
        let until_late = [none, none, none, (0, 1, 1), (0, 2, 1), (0, 3, 1), first];
        let rest = [late, late, late, late, late, second, (2, 5, 2), (2, 5, 2), (2, 5, 2)];
        assert_eq!(seen, [&until_late[..], &rest[..]].concat());
        assert_eq!(r.disorder(), Disorder { reordered: 2, out_of_order: 5, gaps: 2, gap_bytes: 20, first_gap_bytes: 10 });
        assert!(!r.gap, "later packets take the short way");
    }
}

//! Reassembly of one flow at its receiver: which bytes have arrived, each counted once.

use crate::ranges::Ranges;
use std::ops::Range;

/// Which payload bytes of a flow have arrived.
#[derive(Clone, Debug, Default)]
pub struct Reassembly {
    next: u64,
    early: Ranges,
}

/// The effect of one arrival.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// All bytes below this have arrived: the cumulative acknowledgment.
    pub next: u64,
    /// Bytes that had not arrived before.
    pub new_bytes: u64,
    /// The unbroken range around the arrived bytes: the first SACK block when it lies above `next`.
    pub block: Range<u64>,
    /// The bytes came after a later byte of the flow had come.
    pub reordered: bool,
}

impl Reassembly {
    /// Takes `len` bytes from `offset` on.
    #[inline]
    pub fn on_bytes(&mut self, offset: u64, len: u64) -> Delivery {
        if offset == self.next && self.early.is_empty() {
            self.next += len;
            return Delivery { next: self.next, new_bytes: len, block: 0..self.next, reordered: false };
        }
        self.out_of_order(offset..offset + len)
    }

    #[cold]
    fn out_of_order(&mut self, range: Range<u64>) -> Delivery {
        let fresh = range.start.max(self.next)..range.end.max(self.next);
        let reordered = self.early.iter().last().is_some_and(|last| last.start > range.start);
        let new_bytes = self.early.insert(fresh);
        if let Some(first) = self.early.containing(self.next) {
            self.next = first.end;
            self.early.remove_below(first.end);
        }
        let block = if range.start < self.next { 0..self.next } else { self.early.containing(range.start).unwrap_or(range) };
        Delivery { next: self.next, new_bytes, block, reordered: reordered && new_bytes > 0 }
    }
    /// All bytes below this have arrived.
    pub fn next(&self) -> u64 {
        self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_each_byte_once_in_any_order() {
        let mut r = Reassembly::default();
        assert_eq!(r.on_bytes(0, 10), Delivery { next: 10, new_bytes: 10, block: 0..10, reordered: false });
        assert_eq!(r.on_bytes(20, 10), Delivery { next: 10, new_bytes: 10, block: 20..30, reordered: false });
        assert_eq!(r.on_bytes(30, 5), Delivery { next: 10, new_bytes: 5, block: 20..35, reordered: false });
        assert_eq!(r.on_bytes(20, 10), Delivery { next: 10, new_bytes: 0, block: 20..35, reordered: false });
        assert_eq!(r.on_bytes(5, 15), Delivery { next: 35, new_bytes: 10, block: 0..35, reordered: true });
        assert_eq!(r.on_bytes(0, 35), Delivery { next: 35, new_bytes: 0, block: 0..35, reordered: false });
        assert_eq!(r.on_bytes(35, 1).next, 36);
    }
}

//! The scoreboard of a sender with selective acknowledgments (RFC 6675 section 4): the bytes that
//! arrived out of order, that are lost, in flight, and to be sent next. Positions are byte offsets;
//! an end is the first byte after a range.

use super::answer::Blocks;
use crate::ranges::Ranges;
use std::ops::Range;

/// Number of duplicate ACKs that reveal a loss.
pub(super) const DUP_THRESHOLD: u32 = 3;

/// The sender's knowledge beyond the cumulative acknowledgment.
#[derive(Clone, Debug, Default)]
pub(super) struct Sack {
    /// Bytes that the receiver has out of order.
    sacked: Ranges,
    /// Lost bytes below were retransmitted in this recovery (HighRxt).
    high_rxt: u64,
    /// No rescue retransmission before all bytes below are acknowledged (RescueRxt).
    rescue_rxt: u64,
    /// Retransmissions that are known to be lost.
    lost_again: Ranges,
}

/// The next transmission of a recovery.
pub(super) enum Next {
    /// Retransmits lost bytes (rules 1 and 3).
    Hole(Range<u64>),
    /// Sends new data (rule 2).
    New,
    /// Retransmits the last bytes in flight, once per recovery, in case they are lost (rule 4).
    Rescue(Range<u64>),
}

impl Sack {
    /// Update: adds the blocks of an ACK, as far as they are between its number and the bytes sent.
    /// Returns whether one of their bytes is new.
    pub fn update(&mut self, blocks: &Blocks, acked: u64, snd_max: u64) -> bool {
        let fresh = |block: Range<u64>| self.sacked.insert(block.start.max(acked)..block.end.min(snd_max));
        blocks.ranges().map(fresh).sum::<u64>() > 0
    }
    /// Removes bytes below `snd_una`, which are acknowledged.
    pub fn on_acked(&mut self, snd_una: u64) {
        self.sacked.remove_below(snd_una);
        self.lost_again.remove_below(snd_una);
        self.high_rxt = self.high_rxt.max(snd_una);
    }
    /// Forgets everything (RFC 2018 section 8): after a timeout the receiver may have dropped what it had.
    pub fn clear(&mut self) {
        *self = Sack::default();
    }
    /// Begins a recovery: the first segment, which is that at `first`, is retransmitted, whatever the window is (section 5
    /// step 4.3), and later all lost bytes, also those that the recovery before has retransmitted. For a sender that
    /// `finds_lost` retransmissions these are in flight until they are known to be lost (RFC 8985 section 3.2). Returns
    /// whether the first segment is retransmitted.
    pub fn begin(&mut self, first: Range<u64>, finds_lost: bool) -> bool {
        if !finds_lost {
            (self.high_rxt, self.rescue_rxt) = (first.end, first.end);
            return true;
        }
        self.rescue_rxt = self.rescue_rxt.max(first.end);
        let lost = self.high_rxt <= first.start || self.lost_again.iter().next().is_some_and(|range| range.start == first.start);
        if lost {
            self.on_resent(first.end);
        }
        lost
    }
    /// Records bytes retransmitted by [`Next::Hole`].
    pub fn on_resent(&mut self, end: u64) {
        self.high_rxt = self.high_rxt.max(end);
        self.lost_again.remove_below(end);
    }
    /// Records that the retransmission of `range` is lost: the range is retransmitted first.
    pub fn lose_again(&mut self, range: Range<u64>) {
        self.lost_again.insert(range);
    }
    /// Records a rescue retransmission in the recovery that ends at `recovery_point`.
    pub fn on_rescued(&mut self, recovery_point: u64) {
        self.rescue_rxt = recovery_point;
    }
    /// Returns the number of bytes below `end` that the receiver has out of order.
    pub fn bytes_below(&self, end: u64) -> u64 {
        self.sacked.iter().map(|r| r.end.min(end).saturating_sub(r.start)).sum()
    }
    /// Returns the first range from `from` on, up to `end`, that the receiver is not known to have.
    pub fn hole(&self, from: u64, end: u64) -> Option<Range<u64>> {
        self.sacked.holes(from..end).next()
    }
    /// Returns the byte below which IsLost holds for every byte that is not sacked: above it are
    /// three sacked ranges, or more than two segments of sacked bytes.
    pub fn lost_below(&self, smss: u64) -> u64 {
        let (mut stretches, mut bytes) = (0, 0);
        for range in self.sacked.iter().rev() {
            stretches += 1;
            bytes += range.end - range.start;
            if stretches >= DUP_THRESHOLD || bytes > u64::from(DUP_THRESHOLD - 1) * smss {
                return range.start;
            }
        }
        0
    }
    /// SetPipe: returns the bytes in flight of those sent so far.
    pub fn pipe(&self, snd_una: u64, snd_nxt: u64, smss: u64) -> u64 {
        let lost_below = self.lost_below(smss);
        let of = |hole: Range<u64>| {
            let not_lost = hole.end.saturating_sub(hole.start.max(lost_below));
            let resent = hole.end.min(self.high_rxt).saturating_sub(hole.start);
            not_lost + resent
        };
        let pipe: u64 = self.sacked.holes(snd_una..snd_nxt).map(of).sum();
        pipe.saturating_sub(self.lost_again.bytes())
    }
    /// NextSeg: returns the next transmission. `new`: there is unsent data, and the receive window
    /// allows it.
    pub fn next(&self, snd_una: u64, snd_nxt: u64, smss: u64, new: bool) -> Option<Next> {
        let top = self.sacked.iter().next_back().map_or(0, |last| last.start);
        let segment = |hole: Range<u64>| hole.start..hole.end.min(hole.start + smss);
        if let Some(hole) = self.lost_again.iter().find_map(|range| self.hole(range.start, range.end)) {
            return Some(Next::Hole(segment(hole)));
        }
        let from = self.high_rxt.max(snd_una);
        let hole = if from < top { self.hole(from, top).map(segment) } else { None };
        match hole {
            Some(hole) if hole.start < self.lost_below(smss) => Some(Next::Hole(hole)),
            _ if new => Some(Next::New),
            Some(hole) => Some(Next::Hole(hole)),
            None if snd_una > self.rescue_rxt => {
                let last = self.sacked.holes(snd_una..snd_nxt).last()?;
                // Every segment but the last of a flow is full, so that it starts at a multiple of
                // the segment size.
                Some(Next::Rescue(last.start.max((last.end - 1) / smss * smss)..last.end))
            }
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SMSS: u64 = 10;

    fn board(sacked: &[(u64, u64)], high_rxt: u64) -> Sack {
        let mut sack = Sack { high_rxt, ..Sack::default() };
        for &(start, end) in sacked {
            sack.sacked.insert(start..end);
        }
        sack
    }

    #[test]
    fn a_byte_is_lost_with_three_ranges_or_more_than_two_segments_above() {
        assert_eq!(board(&[(20, 30), (40, 50)], 0).lost_below(SMSS), 0);
        assert_eq!(board(&[(20, 30), (40, 50), (60, 61)], 0).lost_below(SMSS), 20);
        assert_eq!(board(&[(20, 40)], 0).lost_below(SMSS), 0);
        assert_eq!(board(&[(20, 41)], 0).lost_below(SMSS), 20);
        assert_eq!(board(&[(20, 30), (50, 71)], 0).lost_below(SMSS), 50);
    }

    fn what(next: Option<Next>) -> (char, u64, u64) {
        match next {
            Some(Next::Hole(hole)) => ('h', hole.start, hole.end),
            Some(Next::New) => ('n', 0, 0),
            Some(Next::Rescue(range)) => ('r', range.start, range.end),
            None => ('-', 0, 0),
        }
    }

    #[test]
    fn lost_holes_go_first_then_new_data_then_other_holes_then_a_rescue() {
        let mut board = board(&[(10, 20), (30, 60), (70, 80)], 0);
        let mut next = |rxt, new, una| {
            board.high_rxt = rxt;
            what(board.next(una, 100, SMSS, new))
        };
        assert_eq!(next(0, true, 0), ('h', 0, 10));
        assert_eq!(next(10, true, 0), ('h', 20, 30));
        assert_eq!((next(30, true, 0), next(30, false, 0)), (('n', 0, 0), ('h', 60, 70)));
        // Once per recovery.
        assert_eq!(next(70, false, 1), ('r', 90, 100));
        board.on_rescued(100);
        assert_eq!(what(board.next(20, 100, SMSS, false)), ('-', 0, 0));
    }

    #[test]
    fn a_lost_retransmission_goes_first_and_is_not_in_flight() {
        let mut board = board(&[(10, 20), (30, 60), (70, 80)], 30);
        // In flight: 0..10 and 20..30 again, 60..70 and 80..100.
        assert_eq!(board.pipe(0, 100, SMSS), 50);
        board.lose_again(0..10);
        assert_eq!((board.pipe(0, 100, SMSS), what(board.next(0, 100, SMSS, true))), (40, ('h', 0, 10)));
        board.on_resent(10);
        assert_eq!((board.pipe(0, 100, SMSS), what(board.next(0, 100, SMSS, true))), (50, ('n', 0, 0)));
        // It has arrived in the meantime.
        board.lose_again(20..30);
        board.sacked.insert(20..30);
        assert_eq!(what(board.next(0, 100, SMSS, true)), ('n', 0, 0));
        board.on_acked(30);
        assert!(board.lost_again.is_empty());
    }

    proptest! {
        /// Pipe and IsLost octet by octet, as defined in RFC 6675.
        #[test]
        fn pipe_is_what_the_definition_counts(
            sacked in prop::collection::vec((1u64..90, 1u64..25), 0..8),
            una in 0u64..30,
            high_rxt in 0u64..100,
        ) {
            let ranges: Vec<_> = sacked.iter().map(|&(start, len)| (start.max(una + 1), (start + len).min(100))).collect();
            let board = board(&ranges, high_rxt);
            let is_sacked = |byte: u64| board.sacked.containing(byte).is_some();
            let is_lost = |byte: u64| {
                let above: Vec<_> = board.sacked.iter().filter(|r| r.start > byte).collect();
                above.len() >= 3 || above.iter().map(|r| r.end - r.start).sum::<u64>() > 2 * SMSS
            };
            let count = |byte: u64| u64::from(!is_lost(byte)) + u64::from(byte < high_rxt);
            let pipe: u64 = (una..100).filter(|byte| !is_sacked(*byte)).map(count).sum();
            prop_assert_eq!(board.pipe(una, 100, SMSS), pipe);
            for byte in (una..100).filter(|byte| !is_sacked(*byte)) {
                prop_assert_eq!(byte < board.lost_below(SMSS), is_lost(byte));
            }
        }
    }
}

//! The nodes that have events in the coming windows of time.

use crate::nth::nth_mut;
use base::{Dur, Time};

/// Bits of the number of slots of a level.
const BITS: u32 = 6;
const SLOTS: u64 = 1 << BITS;
const LEVELS: usize = 7;

/// The nodes that have events in the coming windows: a hierarchy of wheels, each slot with a set of
/// nodes. A slot of a higher level spans all slots of the level below it.
pub struct Wheel {
    /// 2^64 divided by the length of a window in ps, rounded up.
    per_ps: u64,
    /// The present window.
    pub now: u64,
    /// Words of a set.
    words: usize,
    /// By level and slot.
    sets: Box<[u64]>,
    /// By level: the slots whose sets have nodes.
    full: [u64; LEVELS],
}

impl Wheel {
    pub fn new(nodes: usize, width: Dur) -> Wheel {
        let words = nodes.div_ceil(64);
        let per_ps = u64::MAX / width.0.max(2) + 1;
        Wheel { per_ps, now: 0, words, sets: vec![0; (words << BITS) * LEVELS].into(), full: [0; LEVELS] }
    }
    /// Returns the window of a time.
    #[inline(always)]
    pub fn window(&self, time: Time) -> u64 {
        ((u128::from(time.0) * u128::from(self.per_ps)) >> 64) as u64
    }
    /// Returns when a window starts.
    pub fn start(&self, window: u64) -> Time {
        let start = (u128::from(window) << 64).div_ceil(u128::from(self.per_ps));
        Time(u64::try_from(start).unwrap_or(u64::MAX))
    }
    /// Removes all nodes, and makes the window of `now` the present one.
    pub fn clear(&mut self, now: Time) {
        self.sets.fill(0);
        self.full = [0; LEVELS];
        self.now = self.window(now);
    }
    /// Marks that a node has an event at a time that is not before the present window.
    #[inline(always)]
    pub fn mark(&mut self, node: u32, time: Time) {
        let window = self.window(time);
        debug_assert!(window >= self.now, "window {window} at {time} has passed, it is {}", self.now);
        let ahead = window ^ self.now;
        let level = if ahead < SLOTS { 0 } else { (u64::BITS - 1 - ahead.leading_zeros()) / BITS };
        if level as usize >= LEVELS {
            // Later than any run lasts: 4 million million windows.
            return;
        }
        let slot = window >> (level * BITS) & (SLOTS - 1);
        self.full[level as usize] |= 1 << slot;
        let set = ((u64::from(level) << BITS | slot) as usize) * self.words;
        *nth_mut(&mut self.sets, set + node as usize / 64) |= 1 << (node % 64);
    }
    /// Takes the nodes out of a slot, in order.
    pub fn take(&mut self, level: usize, slot: u64, nodes: &mut Vec<u32>) {
        self.full[level] &= !(1 << slot);
        let from = (level << BITS | slot as usize) * self.words;
        for (word, first) in self.sets[from..from + self.words].iter_mut().zip((0..).step_by(64)) {
            while *word != 0 {
                nodes.push(first + word.trailing_zeros());
                *word &= *word - 1;
            }
        }
    }
    /// Returns the level and slot of the next nodes, and makes the first window of the slot the
    /// present one. At level 0 the nodes have events in this window; nodes of higher levels must be
    /// marked again.
    pub fn advance(&mut self) -> Option<(usize, u64)> {
        (0..LEVELS).find_map(|level| {
            let shift = level as u32 * BITS;
            let digit = self.now >> shift & (SLOTS - 1);
            let later = self.full[level] >> digit << digit;
            if later == 0 {
                return None;
            }
            let slot = u64::from(later.trailing_zeros());
            if slot != digit {
                self.now = (self.now >> shift & !(SLOTS - 1) | slot) << shift;
            }
            Some((level, slot))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// The wheel compared with an ordered set of windows and nodes.
        #[test]
        fn the_wheel_returns_every_mark_in_order(
            width in 2u64..5_000_000,
            marks in prop::collection::vec((0u32..200, 0u64..1 << 44, any::<bool>()), 1..60),
        ) {
            let mut wheel = Wheel::new(200, Dur(width));
            let mut left: BTreeSet<(u64, u32)> = BTreeSet::new();
            let mut marks = marks.into_iter();
            let (mut now, mut cascades) = (Time::ZERO, false);
            loop {
                // Some marks at a time, none before the present window.
                for (node, after, more) in marks.by_ref().take(if cascades { 0 } else { 60 }) {
                    let time = now.after(Dur(after >> (after % 44)));
                    wheel.mark(node, time);
                    left.insert((wheel.window(time), node));
                    if !more {
                        break;
                    }
                }
                let Some((level, slot)) = wheel.advance() else { break };
                let (mut nodes, window) = (Vec::new(), wheel.now);
                wheel.take(level, slot, &mut nodes);
                prop_assert!(nodes.is_sorted());
                cascades = level > 0;
                if cascades {
                    for node in nodes {
                        for (window, _) in left.iter().filter(|(_, other)| *other == node) {
                            wheel.mark(node, wheel.start(*window));
                        }
                    }
                    continue;
                }
                let expected: Vec<u32> = left.iter().filter(|(at, _)| *at == window).map(|(_, node)| *node).collect();
                prop_assert_eq!(nodes, expected);
                left.retain(|(at, _)| *at != window);
                prop_assert!(left.iter().all(|(at, _)| *at > window), "a window was left out");
                now = wheel.start(window);
            }
            prop_assert!(left.is_empty());
        }

        #[test]
        fn windows_cover_time_and_are_not_longer_than_their_width(width in 2u64..1 << 31, window in 0u64..1 << 30) {
            let wheel = Wheel::new(1, Dur(width));
            let (start, next) = (wheel.start(window), wheel.start(window + 1));
            prop_assert!((1..=width).contains(&(next.0 - start.0)));
            prop_assert_eq!((wheel.window(start), wheel.window(next.before(Dur(1)))), (window, window));
        }
    }
}

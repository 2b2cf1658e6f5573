//! A 4-ary winner tree over entities: the earliest event is at the root.
//!
//! A leaf holds `(time - base) << bits | leaf`, so that one comparison orders by time and then by leaf. Updates have no
//! data-dependent branch but the early stop of [`Tree::insert`].

use base::Time;

/// Node `i` has the children `4i ..= 4i+3`; the root is node 1; leaf `l` is node `first + l` with `first` a power of four.
#[derive(Clone, Debug)]
pub struct Tree {
    /// `2 * first` keys, a whole number of groups of four.
    nodes: Box<[u64]>,
    first: usize,
    bits: u32,
    /// Of the bits of a key that name its leaf.
    mask: u64,
    base: u64,
    /// Offsets from `base` at or above this do not fit a key: they stand as this and make a rebase due.
    far: u64,
}

/// The key of a node without leaves, and of leaves that were never set.
const IDLE: u64 = u64::MAX;

impl Tree {
    /// A tree of idle leaves.
    pub fn new(leaves: u32) -> Tree {
        let mut first = 4;
        while first < leaves as usize {
            first *= 4;
        }
        let bits = first.trailing_zeros();
        Tree {
            nodes: vec![IDLE; 2 * first].into_boxed_slice(),
            first,
            bits,
            mask: (1 << bits) - 1,
            base: 0,
            far: (1 << (64 - bits)) - 2,
        }
    }
    /// The smallest key.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub fn first(&self) -> u64 {
        // SAFETY: the smallest tree has eight nodes.
        unsafe { *self.nodes.get_unchecked(1) }
    }
    /// Time and leaf of a key that is not far.
    #[inline(always)]
    pub fn decode(&self, key: u64) -> (Time, u32) {
        (Time(self.base + (key >> self.bits)), (key & self.mask) as u32)
    }
    /// Keys at or above this are not before `end`, or are far.
    pub fn limit(&self, end: Time) -> u64 {
        end.0.saturating_sub(self.base).min(self.far) << self.bits
    }
    /// Whether a key stands for a time too far off to be held, or for none.
    pub fn is_far(&self, key: u64) -> bool {
        key >> self.bits >= self.far
    }
    /// An idle leaf is as far as can be.
    #[inline(always)]
    fn key(&self, leaf: u32, at: Time) -> u64 {
        (at.0 - self.base).min(self.far) << self.bits | u64::from(leaf)
    }
    /// The node of a leaf: inside the tree, as are all nodes above it and, in their groups of four, their siblings.
    #[inline(always)]
    fn node(&self, leaf: u32) -> usize {
        assert!((leaf as usize) < self.first, "no leaf {leaf}");
        self.first + leaf as usize
    }
    /// Sets a leaf; `Time::MAX` makes it idle.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub fn set(&mut self, leaf: u32, at: Time) {
        let mut winner = self.key(leaf, at);
        let mut node = self.node(leaf);
        let nodes = &mut *self.nodes;
        loop {
            // SAFETY: see `Tree::node`.
            unsafe {
                *nodes.get_unchecked_mut(node) = winner;
                if node == 1 {
                    return;
                }
                // The new value stays in a register and only its three siblings are loaded: reading the group back after the write
                // waits for the store.
                let sibling = |n: usize| *nodes.get_unchecked(node ^ n);
                winner = winner.min(sibling(1).min(sibling(2)).min(sibling(3)));
            }
            node >>= 2;
        }
    }
    /// Sets a leaf that was idle or later. Stops where it does not win.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub fn insert(&mut self, leaf: u32, at: Time) {
        let key = self.key(leaf, at);
        let mut node = self.node(leaf);
        let nodes = &mut *self.nodes;
        debug_assert!(nodes[node] >= key, "insert into a leaf that is earlier");
        // SAFETY: see `Tree::node`; zero is no node.
        while node > 0 && unsafe { *nodes.get_unchecked(node) } > key {
            unsafe { *nodes.get_unchecked_mut(node) = key };
            node >>= 2;
        }
    }
    /// Starts again from the true times of all leaves, with the earliest as base.
    #[cold]
    pub fn rebase(&mut self, times: &[Time]) {
        self.base = times.iter().min().map_or(0, |t| if *t == Time::MAX { self.base } else { t.0 });
        self.nodes.fill(IDLE);
        for (leaf, at) in times.iter().enumerate() {
            self.set(leaf as u32, *at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a plain array of times.
        #[test]
        fn the_root_is_the_earliest(leaves in 1u32..80, steps in prop::collection::vec((any::<u32>(), 0u64..50, any::<bool>()), 1..200)) {
            let mut tree = Tree::new(leaves);
            let mut times = vec![Time::MAX; leaves as usize];
            for (leaf, at, idle) in steps {
                let leaf = leaf % leaves;
                let at = if idle { Time::MAX } else { Time(at) };
                if at < times[leaf as usize] && at.0 % 2 == 0 {
                    tree.insert(leaf, at);
                } else {
                    tree.set(leaf, at);
                }
                times[leaf as usize] = at;
                let earliest = times.iter().enumerate().map(|(l, t)| (*t, l as u32)).min().filter(|(t, _)| *t != Time::MAX);
                let first = (!tree.is_far(tree.first())).then(|| tree.decode(tree.first()));
                prop_assert_eq!(first, earliest);
            }
        }
    }

    #[test]
    fn far_times_wait_for_a_rebase() {
        let mut tree = Tree::new(60);
        let late = Time(u64::MAX - 5);
        tree.set(3, late);
        assert!(tree.is_far(tree.first()));
        assert!(tree.first() >= tree.limit(Time::MAX));
        let mut times = vec![Time::MAX; 60];
        times[3] = late;
        tree.rebase(&times);
        assert_eq!(tree.decode(tree.first()), (late, 3));
        assert!(tree.first() < tree.limit(Time(u64::MAX - 4)));
    }
}

//! A 4-ary winner tree over entities: the earliest event is at the root.
//!
//! A leaf holds `(time - base) << bits | leaf`, so that one comparison orders by time and then by
//! leaf. Updates have no data-dependent branch except the early stop of [`Tree::insert`].
//!
//! Keys are stored as the bits of floating-point numbers, which are never calculated with. Of two
//! positive floating-point numbers the smaller one has the smaller bits, and processors compute the
//! minimum of a register and a memory location in one instruction, while integers need three. A bit
//! that is set in every key keeps all of them normal and finite.

use base::Time;

/// Node `i` has the children `4i ..= 4i+3`; the root is node 1; leaf `l` is node `first + l` with `first` a power of four.
#[derive(Clone, Debug)]
pub struct Tree {
    /// `2 * first` keys, which is a multiple of four.
    nodes: Box<[f64]>,
    first: usize,
    bits: u32,
    /// Mask of the bits of a key that name its leaf.
    mask: u64,
    base: u64,
    /// `base`, less the amount that [`NORMAL`] adds to the offset in a key.
    origin: u64,
    /// Offsets from `base` at or above this do not fit into a key. They are stored as this value,
    /// and a rebase becomes due.
    far: u64,
    /// The time that corresponds to that offset.
    far_at: u64,
    /// Whether the number of levels below the root is even.
    even: bool,
    /// The XOR masks that lead from a node to its siblings in turn: 1, 3, 1. The values are hidden
    /// from the compiler, which then updates the node's number in place. Computing each sibling's
    /// number from the node takes three more instructions per level.
    steps: [usize; 3],
}

/// Set in every key: the exponent of floating-point numbers from 2 up.
const NORMAL: u64 = 1 << 62;
/// No key has this bit or the sign bit set, so that no key is infinite or NaN.
const LARGE: u64 = 1 << 61;
/// The key of nodes without leaves, and of leaves that were never set: larger than all other keys.
const IDLE: f64 = f64::MAX;

/// Returns the earlier of two keys. Written like this it is one instruction; `f64::min` also checks
/// for NaN.
#[inline(always)]
fn earlier(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

impl Tree {
    /// Returns a tree of idle leaves.
    pub fn new(leaves: u32) -> Tree {
        // At least three levels: see `Tree::set`.
        let mut first = 64;
        while first < leaves as usize {
            first *= 4;
        }
        let bits = first.trailing_zeros();
        let mut tree = Tree {
            nodes: vec![IDLE; 2 * first].into_boxed_slice(),
            first,
            bits,
            mask: (1 << bits) - 1,
            base: 0,
            origin: 0,
            far: (LARGE >> bits) - 1,
            far_at: 0,
            even: bits % 4 == 0,
            steps: [1, 3, 1],
        };
        tree.set_base(0);
        tree
    }
    fn set_base(&mut self, base: u64) {
        (self.base, self.origin, self.far_at) = (base, base.wrapping_sub(NORMAL >> self.bits), base.saturating_add(self.far));
    }
    /// Returns the smallest key.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub fn first(&self) -> u64 {
        // SAFETY: the smallest tree has 128 nodes.
        unsafe { self.nodes.get_unchecked(1).to_bits() }
    }
    /// Returns the leaf of a key.
    #[inline(always)]
    pub fn leaf(&self, key: u64) -> u32 {
        (key & self.mask) as u32
    }
    /// Returns the time and leaf of a key that is not far.
    #[inline(always)]
    pub fn decode(&self, key: u64) -> (Time, u32) {
        (Time(self.origin.wrapping_add(key >> self.bits)), self.leaf(key))
    }
    /// Returns the limit of keys for an end time: keys at or above it are not before `end`, or are
    /// far.
    pub fn limit(&self, end: Time) -> u64 {
        NORMAL | end.0.saturating_sub(self.base).min(self.far) << self.bits
    }
    /// Returns whether a key represents a time too far off to be stored, or an idle leaf.
    pub fn is_far(&self, key: u64) -> bool {
        key >= NORMAL | self.far << self.bits
    }
    /// Returns the key of a leaf; an idle leaf gets the largest offset.
    #[inline(always)]
    fn key(&self, leaf: u32, at: Time) -> f64 {
        f64::from_bits(at.0.min(self.far_at).wrapping_sub(self.origin) << self.bits | u64::from(leaf))
    }
    /// Returns the node of a leaf. It is inside the tree, and so are all nodes above it and their
    /// siblings.
    #[inline(always)]
    fn node(&self, leaf: u32) -> usize {
        debug_assert!((leaf as usize) < self.first, "no leaf {leaf}");
        self.first | (u64::from(leaf) & self.mask) as usize
    }
    /// Sets a leaf; `Time::MAX` makes it idle.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub fn set(&mut self, leaf: u32, at: Time) {
        let (key, node) = (self.key(leaf, at), self.node(leaf));
        let ([one, two, three], nodes) = (self.steps, &mut *self.nodes);
        // Writes a node and returns its parent's key, with the number of the last sibling. The key
        // stays in a register and only the three siblings are loaded: reading the group back after
        // the write would wait for the store.
        let mut settle = |node: usize, key: f64| {
            // SAFETY: see `Tree::node` and `Tree::steps`.
            unsafe {
                *nodes.get_unchecked_mut(node) = key;
                let node = node ^ one;
                let first = *nodes.get_unchecked(node);
                let node = node ^ two;
                let second = *nodes.get_unchecked(node);
                let node = node ^ three;
                (node, earlier(earlier(earlier(first, second), *nodes.get_unchecked(node)), key))
            }
        };
        // The first step is separate, so that the key is moved to a floating-point register only
        // once.
        let (mut sibling, mut winner) = settle(node, key);
        // The other levels are in rounds of two, for fewer branches.
        if self.even {
            (sibling, winner) = settle(sibling >> 2, winner);
        }
        loop {
            (sibling, winner) = settle(sibling >> 2, winner);
            (sibling, winner) = settle(sibling >> 2, winner);
            // The children of the root.
            if sibling < 8 {
                break;
            }
        }
        // SAFETY: see `Tree::first`.
        unsafe { *nodes.get_unchecked_mut(1) = winner };
    }
    /// Sets a leaf that was idle or later. Stops at the first node where it does not win.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub fn insert(&mut self, leaf: u32, at: Time) {
        let key = self.key(leaf, at);
        let mut node = self.node(leaf);
        let nodes = &mut *self.nodes;
        debug_assert!(nodes[node] >= key, "insert into a leaf that is earlier");
        // SAFETY: see `Tree::node`; zero is not a node.
        while node > 0 && unsafe { *nodes.get_unchecked(node) } > key {
            unsafe { *nodes.get_unchecked_mut(node) = key };
            node >>= 2;
        }
    }
    /// Returns two leaves that were just behind `leaf` when it was set: the earliest of the group
    /// of four below the root, and the earliest of the group below that to which it belongs. They
    /// are likely to be next, a few events from now and a few more.
    #[inline(always)]
    pub fn upcoming(&self, leaf: u32) -> [u32; 2] {
        let node = self.first + leaf as usize;
        [2, 4].map(|level| self.leaf(self.nodes[node >> (self.bits.max(4) - level)].to_bits()))
    }
    /// Rebuilds the tree from the true times of all leaves, with the earliest time as base.
    #[cold]
    pub fn rebase(&mut self, times: &[Time]) {
        if let Some(first) = times.iter().min().filter(|first| **first != Time::MAX) {
            self.set_base(first.0);
        }
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
        /// Compared with a plain array of times.
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

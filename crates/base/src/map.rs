//! Maps whose order is deterministic.
//!
//! [`FlowMap`] is the map of every protocol and switch table: it maps flows to values, in dense
//! slots that are reused. The only iteration is [`FlowMap::iter`], in slot order, which depends
//! only on the order of calls.

use crate::FlowId;
/// A map from flows to values, in dense slots.
#[derive(Clone, Debug)]
pub struct FlowMap<T> {
    index: Index,
    slots: Vec<Option<(FlowId, T)>>,
    free: Vec<u32>,
}

impl<T> Default for FlowMap<T> {
    fn default() -> Self {
        FlowMap { index: Index::default(), slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> FlowMap<T> {
    /// Inserts a value. An earlier value of the same flow is replaced, and its slot is kept.
    pub fn insert(&mut self, flow: FlowId, value: T) {
        let slot = self.slot(flow);
        self.slots[slot] = Some((flow, value));
    }
    /// Returns the value of `flow`, mutable. Inserts a new value if the flow has none.
    #[inline]
    pub fn or_insert_with(&mut self, flow: FlowId, new: impl FnOnce() -> T) -> &mut T {
        let slot = self.slot(flow);
        &mut self.slots[slot].get_or_insert_with(|| (flow, new())).1
    }
    /// Returns the slot of `flow`. Assigns a free slot if the flow has none.
    #[inline]
    fn slot(&mut self, flow: FlowId) -> usize {
        self.find(flow).unwrap_or_else(|| self.new_slot(flow)) as usize
    }
    /// Returns the slot of a flow in the map. Checks slot 0 first: most maps have a single flow,
    /// whose entry is needed in the cache anyway.
    #[inline]
    fn find(&self, flow: FlowId) -> Option<u32> {
        match self.slots.first() {
            Some(Some((first, _))) if *first == flow => Some(0),
            _ => self.index.find(flow.0),
        }
    }
    #[cold]
    fn new_slot(&mut self, flow: FlowId) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            (self.slots.len() - 1) as u32
        });
        self.index.insert(flow.0, slot);
        slot
    }
    /// Removes and returns the value of `flow`.
    pub fn remove(&mut self, flow: FlowId) -> Option<T> {
        let slot = self.index.remove(flow.0)?;
        self.free.push(slot);
        self.slots[slot as usize].take().map(|(_, value)| value)
    }
    /// Returns the value of `flow`.
    #[inline]
    pub fn get(&self, flow: FlowId) -> Option<&T> {
        let slot = self.find(flow)?;
        self.slots[slot as usize].as_ref().map(|(_, value)| value)
    }
    /// Returns the value of `flow`, mutable.
    #[inline]
    pub fn get_mut(&mut self, flow: FlowId) -> Option<&mut T> {
        let slot = self.find(flow)?;
        self.slots[slot as usize].as_mut().map(|(_, value)| value)
    }
    /// Returns whether `flow` is in the map.
    pub fn contains(&self, flow: FlowId) -> bool {
        self.find(flow).is_some()
    }
    /// Returns the number of flows in the map.
    pub fn len(&self) -> usize {
        self.index.len
    }
    /// Returns whether the map is empty.
    pub fn is_empty(&self) -> bool {
        self.index.len == 0
    }
    /// Iterates over all entries in slot order.
    pub fn iter(&self) -> impl Iterator<Item = (FlowId, &T)> {
        self.slots.iter().flatten().map(|(flow, value)| (*flow, value))
    }
    /// Iterates over all entries in slot order, with mutable values.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (FlowId, &mut T)> {
        self.slots.iter_mut().flatten().map(|(flow, value)| (*flow, value))
    }
    /// Removes all entries.
    pub fn clear(&mut self) {
        self.index = Index::default();
        self.slots.clear();
        self.free.clear();
    }
}

/// A map from flows to slots: open addressing with linear probing, at most half full. A look-up
/// takes a few instructions, far fewer than with the general map of the standard library.
#[derive(Clone, Debug, Default)]
struct Index {
    /// (flow, slot); the number of cells is a power of two, or zero.
    cells: Vec<(u32, u32)>,
    len: usize,
}

/// The slot value of a free cell.
const FREE: u32 = u32::MAX;

impl Index {
    /// Returns the cell at which the search for a flow starts: the upper half of a product, which
    /// depends on all bits of the flow.
    #[inline(always)]
    fn home(flow: u32) -> usize {
        (u64::from(flow).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize
    }
    #[inline(always)]
    fn mask(&self) -> usize {
        self.cells.len().wrapping_sub(1)
    }
    #[inline(always)]
    fn find(&self, flow: u32) -> Option<u32> {
        let mut at = Self::home(flow);
        // An empty index has no cells.
        while let Some(&(held, slot)) = self.cells.get(at & self.mask()) {
            if held == flow && slot != FREE {
                return Some(slot);
            }
            if slot == FREE {
                return None;
            }
            at += 1;
        }
        None
    }
    /// Inserts a flow that is not in the map.
    fn insert(&mut self, flow: u32, slot: u32) {
        if 2 * (self.len + 1) > self.cells.len() {
            let size = (2 * self.cells.len()).max(4);
            let old = std::mem::replace(&mut self.cells, vec![(0, FREE); size]);
            old.into_iter().filter(|(_, slot)| *slot != FREE).for_each(|(flow, slot)| self.place(flow, slot));
        }
        self.place(flow, slot);
        self.len += 1;
    }
    fn place(&mut self, flow: u32, slot: u32) {
        let mask = self.mask();
        let mut at = Self::home(flow) & mask;
        while self.cells[at].1 != FREE {
            at = (at + 1) & mask;
        }
        self.cells[at] = (flow, slot);
    }
    fn remove(&mut self, flow: u32) -> Option<u32> {
        let mask = self.mask();
        let mut at = Self::home(flow) & mask;
        let removed = loop {
            let &(held, slot) = self.cells.get(at)?;
            if slot == FREE {
                return None;
            }
            if held == flow {
                break slot;
            }
            at = (at + 1) & mask;
        };
        // Entries that had been displaced past the gap move back into it, so that no search ends at
        // the gap too early.
        let mut gap = at;
        loop {
            at = (at + 1) & mask;
            let (held, slot) = self.cells[at];
            if slot == FREE {
                break;
            }
            let (from_home, from_gap) = (at.wrapping_sub(Self::home(held)) & mask, at.wrapping_sub(gap) & mask);
            if from_home >= from_gap {
                self.cells[gap] = self.cells[at];
                gap = at;
            }
        }
        self.cells[gap].1 = FREE;
        self.len -= 1;
        Some(removed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;
    use std::collections::BTreeMap;

    #[test]
    fn is_a_map() {
        for (seed, range) in [(1, 3), (2, 40), (3, 1 << 32)] {
            let mut rng = Rng::stream(seed, "map", &[]);
            let (mut map, mut plain) = (FlowMap::default(), BTreeMap::new());
            for n in 0..20_000 {
                let known = plain.keys().nth(rng.below(plain.len() as u64 + 1) as usize).copied();
                let flow = known.filter(|_| n % 3 != 0).unwrap_or(rng.below(range) as u32);
                match rng.below(4) {
                    0 if plain.len() < 600 => {
                        map.insert(FlowId(flow), n);
                        plain.insert(flow, n);
                    }
                    1 if plain.len() < 600 => {
                        assert_eq!(map.or_insert_with(FlowId(flow), || n), plain.entry(flow).or_insert(n));
                    }
                    2 => assert_eq!(map.remove(FlowId(flow)), plain.remove(&flow)),
                    _ => assert_eq!(map.get(FlowId(flow)), plain.get(&flow)),
                }
                assert_eq!((map.len(), map.contains(FlowId(flow))), (plain.len(), plain.contains_key(&flow)));
            }
            let mut all: Vec<(u32, i32)> = map.iter().map(|(flow, value)| (flow.0, *value)).collect();
            all.sort();
            assert_eq!(all, plain.into_iter().collect::<Vec<_>>());
            map.clear();
            assert!(map.is_empty() && map.get(FlowId(0)).is_none());
        }
    }

    #[test]
    fn slots_are_reused_and_walked_in_order() {
        let mut map = FlowMap::default();
        for id in [9, 4, 7] {
            map.insert(FlowId(id), id * 10);
        }
        assert_eq!(map.remove(FlowId(4)), Some(40));
        assert_eq!(map.remove(FlowId(4)), None);
        map.insert(FlowId(1), 10);
        map.insert(FlowId(7), 71);
        let seen: Vec<_> = map.iter().map(|(f, v)| (f.0, *v)).collect();
        assert_eq!(seen, [(9, 90), (1, 10), (7, 71)]);
        assert_eq!((map.len(), map.get(FlowId(7)), map.contains(FlowId(4))), (3, Some(&71), false));
    }
}

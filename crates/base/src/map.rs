//! Maps whose order can never reach a result.
//!
//! [`FlowMap`] is the map of every protocol and switch table: flow to value, in dense slots that are used again. Walk the slots
//! ([`FlowMap::iter`], in slot order, which depends only on the order of calls) or an explicit list; there is no other iteration.

use crate::FlowId;
use rustc_hash::FxBuildHasher;

#[allow(clippy::disallowed_types)] // Look-ups only: this file exposes no iteration over it.
type Index = std::collections::HashMap<u32, u32, FxBuildHasher>;

/// Flow to value, in dense slots.
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
    /// Puts a value in; an earlier one of the same flow is replaced and keeps its slot.
    pub fn insert(&mut self, flow: FlowId, value: T) {
        if let Some(&slot) = self.index.get(&flow.0) {
            self.slots[slot as usize] = Some((flow, value));
            return;
        }
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some((flow, value));
                slot
            }
            None => {
                self.slots.push(Some((flow, value)));
                (self.slots.len() - 1) as u32
            }
        };
        self.index.insert(flow.0, slot);
    }
    /// Takes the value of `flow` out.
    pub fn remove(&mut self, flow: FlowId) -> Option<T> {
        let slot = self.index.remove(&flow.0)?;
        self.free.push(slot);
        self.slots[slot as usize].take().map(|(_, value)| value)
    }
    /// The value of `flow`.
    #[inline]
    pub fn get(&self, flow: FlowId) -> Option<&T> {
        let slot = *self.index.get(&flow.0)?;
        self.slots[slot as usize].as_ref().map(|(_, value)| value)
    }
    /// The value of `flow`, to change.
    #[inline]
    pub fn get_mut(&mut self, flow: FlowId) -> Option<&mut T> {
        let slot = *self.index.get(&flow.0)?;
        self.slots[slot as usize].as_mut().map(|(_, value)| value)
    }
    /// Whether `flow` is in.
    pub fn contains(&self, flow: FlowId) -> bool {
        self.index.contains_key(&flow.0)
    }
    /// How many flows are in.
    pub fn len(&self) -> usize {
        self.index.len()
    }
    /// Whether no flow is in.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }
    /// All entries in slot order.
    pub fn iter(&self) -> impl Iterator<Item = (FlowId, &T)> {
        self.slots.iter().flatten().map(|(flow, value)| (*flow, value))
    }
    /// All entries in slot order, to change.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (FlowId, &mut T)> {
        self.slots.iter_mut().flatten().map(|(flow, value)| (*flow, value))
    }
    /// Takes every entry out.
    pub fn clear(&mut self) {
        self.index.clear();
        self.slots.clear();
        self.free.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

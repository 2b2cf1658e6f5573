//! The order in which a host's flows send: by a key per flow (SRPT: bytes left, EDF: deadline), or by a key
//! per packet. Flows that take turns have a queue of [`crate::turns`].

use base::{FlowId, FlowMap};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Flows by key, the smallest first, ties by flow id. An indexed binary heap.
#[derive(Clone, Debug, Default)]
pub struct ByKey {
    heap: Vec<(u64, FlowId)>,
    place: FlowMap<u32>,
}

impl ByKey {
    /// Adds `flow` with `key`, or changes its key.
    pub fn set(&mut self, flow: FlowId, key: u64) {
        // In most cases there is only one flow.
        if let [(held, only)] = &mut self.heap[..]
            && *only == flow
        {
            *held = key;
            return;
        }
        let at = match self.place.get(flow) {
            Some(&at) => {
                if self.heap[at as usize].0 == key {
                    return;
                }
                self.heap[at as usize].0 = key;
                at as usize
            }
            None => {
                self.heap.push((key, flow));
                self.place.insert(flow, self.heap.len() as u32 - 1);
                self.heap.len() - 1
            }
        };
        self.settle(at);
    }
    /// Removes `flow`, if it is in the heap.
    pub fn remove(&mut self, flow: FlowId) {
        let Some(at) = self.place.remove(flow) else { return };
        self.heap.swap_remove(at as usize);
        if let Some(&(_, moved)) = self.heap.get(at as usize) {
            self.place.insert(moved, at);
            self.settle(at as usize);
        }
    }
    /// Returns the flow with the smallest key, which stays in the heap.
    #[inline]
    pub fn first(&self) -> Option<FlowId> {
        self.heap.first().map(|&(_, flow)| flow)
    }
    /// Moves the entry at `at` up or down to the position of its key.
    fn settle(&mut self, mut at: usize) {
        while at > 0 && self.heap[at] < self.heap[(at - 1) / 2] {
            self.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
        loop {
            let children = (2 * at + 1)..(2 * at + 3).min(self.heap.len());
            let Some(child) = children.min_by_key(|&child| self.heap[child]) else { return };
            if self.heap[at] < self.heap[child] {
                return;
            }
            self.swap(at, child);
            at = child;
        }
    }
    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        for at in [a, b] {
            self.place.insert(self.heap[at].1, at as u32);
        }
    }
}

/// Places of packets by key, the smallest first, ties by arrival.
#[derive(Clone, Debug, Default)]
pub struct Places {
    heap: BinaryHeap<Reverse<RankPlace>>,
    arrived: u64,
}

/// The place of a packet, or of consecutive packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RankPlace {
    key: u64,
    arrived: u64,
    /// The flow.
    pub flow: FlowId,
    /// The caller's number for the purpose of the place.
    pub what: u8,
}

impl Places {
    /// Adds a place for `flow`, after all places with the same key.
    pub fn add(&mut self, flow: FlowId, what: u8, key: u64) {
        self.arrived += 1;
        self.heap.push(Reverse(RankPlace { key, arrived: self.arrived, flow, what }));
    }
    /// Removes the first place.
    pub fn take(&mut self) -> Option<RankPlace> {
        self.heap.pop().map(|Reverse(place)| place)
    }
    /// Puts back a place whose packets are not all sent, with another key: it keeps its arrival
    /// among places with the same key.
    pub fn put_back(&mut self, place: RankPlace, key: u64) {
        self.heap.push(Reverse(RankPlace { key, ..place }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn packets_go_by_key_and_arrival() {
        let mut places = Places::default();
        for (id, key) in [(1, 5), (2, 3), (1, 5), (3, 5), (4, 3)] {
            places.add(FlowId(id), 0, key);
        }
        let first = places.take().expect("five places");
        // The next packet of the flow goes before a later one with the same key.
        places.put_back(first, 3);
        let mut last = places.take().expect("five places");
        assert_eq!((first.flow, last), (FlowId(2), first));
        last = places.take().expect("four places");
        places.put_back(last, 6);
        let order: Vec<u32> = std::iter::from_fn(|| places.take()).map(|place| place.flow.0).collect();
        assert_eq!((last.flow.0, order), (4, vec![1, 1, 3, 4]));
    }

    proptest! {
        /// Compared with a plain map.
        #[test]
        fn the_first_has_the_smallest_key(steps in prop::collection::vec((0u32..20, prop::option::of(0u64..30)), 0..200)) {
            let (mut order, mut plain) = (ByKey::default(), BTreeMap::new());
            for (id, key) in steps {
                match key {
                    Some(key) => {
                        order.set(FlowId(id), key);
                        plain.insert(id, key);
                    }
                    None => {
                        order.remove(FlowId(id));
                        plain.remove(&id);
                    }
                }
                let first = plain.iter().map(|(id, key)| (*key, *id)).min();
                prop_assert_eq!(order.first().map(|f| f.0), first.map(|f| f.1));
            }
        }
    }
}

//! When each node has its next event.

use crate::nth::nth_mut;
use base::Time;

/// Nodes of a group.
const GROUP: usize = 64;

/// When each node has its next event, and the earliest of these times in each group of nodes.
#[derive(Default)]
pub struct Agenda {
    /// By node; `Time::MAX` for never. The last group is filled up.
    next: Box<[Time]>,
    /// By group: the earliest time.
    groups: Box<[Time]>,
}

impl Agenda {
    /// Returns the agenda of `nodes` nodes without events.
    pub fn new(nodes: usize) -> Agenda {
        let groups = nodes.div_ceil(GROUP);
        Agenda { next: vec![Time::MAX; groups * GROUP].into(), groups: vec![Time::MAX; groups].into() }
    }
    /// Returns the largest number of nodes that can be taken, and one more.
    pub fn most(&self) -> usize {
        self.next.len() + 1
    }
    /// Removes all times.
    pub fn clear(&mut self) {
        self.next.fill(Time::MAX);
        self.groups.fill(Time::MAX);
    }
    /// Notes an event of a node.
    #[inline(always)]
    pub fn note(&mut self, node: u32, at: Time) {
        let next = nth_mut(&mut self.next, node as usize);
        *next = at.min(*next);
        let first = nth_mut(&mut self.groups, node as usize / GROUP);
        *first = at.min(*first);
    }
    /// Returns the earliest time.
    pub fn first(&self) -> Time {
        self.groups.iter().copied().min().unwrap_or(Time::MAX)
    }
    /// Takes out the nodes that have an event before `stop` and puts them into `nodes`, which has room for all, in order. Their
    /// other events must be noted again. Returns their number.
    pub fn take(&mut self, stop: Time, nodes: &mut [u32]) -> usize {
        let mut count = 0;
        for (n, first) in self.groups.iter_mut().enumerate().filter(|(_, first)| **first < stop) {
            *first = Time::MAX;
            for node in n * GROUP..(n + 1) * GROUP {
                let next = nth_mut(&mut self.next, node);
                // It is overwritten if the node has no event before `stop`.
                nodes[count] = node as u32;
                let due = *next < stop;
                count += usize::from(due);
                *next = if due { Time::MAX } else { *next };
                *first = (*first).min(*next);
            }
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// The agenda compared with an ordered map of nodes.
        #[test]
        fn the_agenda_returns_every_node_in_order(steps in prop::collection::vec((0u32..200, 0u64..1000, 1u64..300), 1..200)) {
            let mut agenda = Agenda::new(200);
            let mut left: BTreeMap<u32, u64> = BTreeMap::new();
            let mut nodes = vec![0; agenda.most()];
            let mut now = 0;
            for (node, after, width) in steps {
                agenda.note(node, Time(now + after));
                left.entry(node).and_modify(|at| *at = (*at).min(now + after)).or_insert(now + after);
                prop_assert_eq!(Some(agenda.first().0), left.values().copied().min());
                if after % 3 == 0 {
                    now = agenda.first().0 + width;
                    let count = agenda.take(Time(now), &mut nodes);
                    let due: Vec<u32> = left.iter().filter(|(_, at)| **at < now).map(|(node, _)| *node).collect();
                    prop_assert_eq!(&nodes[..count], due);
                    left.retain(|_, at| *at >= now);
                }
            }
            agenda.clear();
            prop_assert_eq!(agenda.first(), Time::MAX);
        }
    }
}

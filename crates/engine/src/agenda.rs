//! When each node has its next event.

use crate::nth::nth_mut;
use base::Time;

/// Nodes of a group, and groups of a section.
const GROUP: usize = 16;

/// When each node has its next event, and the earliest of these times in each group of nodes and in each
/// section of groups.
#[derive(Default)]
pub struct Agenda {
    /// By node; `Time::MAX` for never. The last section is filled up.
    next: Box<[Time]>,
    /// By group.
    groups: Box<[Time]>,
    /// By section.
    sections: Box<[Time]>,
}

impl Agenda {
    /// Returns the agenda of `nodes` nodes without events.
    pub fn new(nodes: usize) -> Agenda {
        let sections = nodes.div_ceil(GROUP * GROUP);
        let never = |count: usize| vec![Time::MAX; count].into_boxed_slice();
        Agenda { next: never(sections * GROUP * GROUP), groups: never(sections * GROUP), sections: never(sections) }
    }
    /// Returns the largest number of nodes that can be taken, and one more.
    pub fn most(&self) -> usize {
        self.next.len() + 1
    }
    /// Removes all times.
    pub fn clear(&mut self) {
        [&mut self.next, &mut self.groups, &mut self.sections].into_iter().for_each(|times| times.fill(Time::MAX));
    }
    /// Notes an event of a node.
    #[inline(always)]
    pub fn note(&mut self, node: u32, at: Time) {
        let node = node as usize;
        let levels = [(&mut self.next, node), (&mut self.groups, node / GROUP), (&mut self.sections, node / (GROUP * GROUP))];
        for (times, n) in levels {
            let first = nth_mut(times, n);
            *first = at.min(*first);
        }
    }
    /// Returns the earliest time.
    pub fn first(&self) -> Time {
        self.sections.iter().copied().min().unwrap_or(Time::MAX)
    }
    /// Takes out the nodes that have an event before `stop` and puts them into `nodes`, which has room for all, in order. Their
    /// other events must be noted again. Returns their number.
    pub fn take(&mut self, stop: Time, nodes: &mut [u32]) -> usize {
        assert!(nodes.len() >= self.most(), "room for {} nodes, not {}", self.most(), nodes.len());
        let mut count = 0;
        for (n, section) in self.sections.iter_mut().enumerate().filter(|(_, section)| **section < stop) {
            *section = Time::MAX;
            for n in n * GROUP..(n + 1) * GROUP {
                let first = nth_mut(&mut self.groups, n);
                if *first < stop {
                    *first = Time::MAX;
                    for node in n * GROUP..(n + 1) * GROUP {
                        let next = nth_mut(&mut self.next, node);
                        // It is overwritten if the node has no event before `stop`.
                        *nth_mut(nodes, count) = node as u32;
                        let due = *next < stop;
                        count += usize::from(due);
                        *next = if due { Time::MAX } else { *next };
                        *first = (*first).min(*next);
                    }
                }
                *section = (*section).min(*first);
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
        fn the_agenda_returns_every_node_in_order(steps in prop::collection::vec((0u32..700, 0u64..1000, 1u64..300), 1..200)) {
            let mut agenda = Agenda::new(700);
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

//! Moments of a program: the start or end of an operation, expressed by times, by the ends of flows
//! and by joins.

use base::Dur;
use std::cell::Cell;
use std::collections::BinaryHeap;
use std::rc::Rc;

/// A moment: the latest of a time, of the ends of some flows and of some joins, each plus a delay.
#[derive(Clone, Debug)]
pub(super) struct Moment {
    /// The time, from the start of the run.
    pub not_before: Dur,
    /// The flows and joins.
    pub list: List,
    /// The longest time from the end of a flow, directly or through joins.
    longest: Dur,
}

/// Flows and joins by number, in order, each with a delay.
#[derive(Clone, Debug)]
pub(super) enum List {
    /// A list that is copied.
    Short(Vec<(u32, Dur)>),
    /// A list that moments share, and the time that is added to each delay.
    Long(Rc<LongList>, Dur),
}

/// A list of flows and joins that is too long to be copied more than once.
#[derive(Debug)]
pub(super) struct LongList {
    /// The flows and joins by number, in order, each with a delay.
    pub on: Vec<(u32, Dur)>,
    /// The number of the join that replaces the list when it is used a second time.
    pub join: u32,
    /// The use of the list so far.
    pub used: Cell<Use>,
}

/// The use of a list of flows and joins so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Use {
    /// No use.
    #[default]
    Unused,
    /// A flow or the moment of a task has a copy of the list: its number, and the time added to each
    /// delay.
    Copied(u32, Dur),
    /// A join has the list.
    Joined,
}

/// The search for redundant waits, which follow from other waits, and its limits. They keep planning
/// time proportional to the size of the program: a program whose operations each wait for very old
/// flows would otherwise take quadratic time.
pub(super) struct Search {
    /// Number of waits that the search may examine.
    most: usize,
    /// Number of waits that it has examined.
    pub looked_at: usize,
    /// Number of the current moment.
    moment: u32,
    /// By flow or join: what is known of it in the current moment.
    known: Vec<InSearch>,
    /// Flows and joins that those of the current moment have waited for and that are not yet examined.
    awaited: BinaryHeap<u32>,
    /// By flow or join of the current moment: whether it stays.
    kept: Vec<bool>,
}

/// What is known of a flow or a join in the search for redundant waits of a moment.
#[derive(Clone, Copy, Default)]
struct InSearch {
    /// Number of the moment; for any other moment, nothing is known.
    moment: u32,
    /// Place in the list of the moment, if it is there.
    place: Option<u32>,
    /// The longest delay with which flows and joins of the moment have waited for it, if they have.
    delay: Option<Dur>,
}

impl Search {
    /// Limit before the first operation.
    pub const FIRST: usize = 1 << 20;
    /// Increase of the limit with each operation.
    pub const EACH: usize = 64;
    /// Limit for a single operation.
    pub const AT_ONCE: usize = 4096;

    /// Creates the search of a program.
    pub fn new() -> Search {
        Search { most: Search::FIRST, looked_at: 0, moment: 0, known: Vec::new(), awaited: BinaryHeap::new(), kept: Vec::new() }
    }
    /// Returns the number of waits that the search may examine for the next operation.
    pub fn next(&mut self) -> usize {
        self.most += Search::EACH;
        (self.most - self.looked_at).min(Search::AT_ONCE)
    }

    /// Removes the flows and joins of a moment that are redundant: another flow or join of the moment
    /// has waited for them, so they end early enough. `waits` are the flows and joins that each flow
    /// and each join waits for. Examines at most `most` waits.
    ///
    /// A flow or a join waits only for those with smaller numbers. Therefore the longest delay of the
    /// newest that is not yet examined is known, and those older than the oldest of the moment do not
    /// matter.
    pub fn remove_redundant(&mut self, flows: &mut Vec<(u32, Dur)>, waits: &[Vec<(u32, Dur)>], most: usize) {
        let Search { moment, known, awaited, kept, .. } = self;
        *moment += 1;
        let blank = InSearch { moment: *moment, ..InSearch::default() };
        known.resize(waits.len(), InSearch::default());
        for ((flow, _), place) in flows.iter().zip(0..) {
            known[*flow as usize] = InSearch { place: Some(place), ..blank };
        }
        awaited.clear();
        kept.clear();
        kept.resize(flows.len(), true);
        let (mut oldest, mut newest, mut looked_at) = (0, flows.len(), 0);
        'search: while oldest + 1 < flows.len() {
            let own = newest.checked_sub(1).map(|i| flows[i]);
            let other = awaited.peek().map(|flow| (*flow, known[*flow as usize].delay.unwrap_or_default()));
            let Some((flow, delay)) = own.max(other).filter(|(flow, _)| *flow > flows[oldest].0) else { break };
            newest -= usize::from(own.is_some_and(|own| own.0 == flow));
            if other.is_some_and(|other| other.0 == flow) {
                awaited.pop();
            }
            for (before, gap) in &waits[flow as usize] {
                if looked_at == most {
                    break 'search;
                }
                looked_at += 1;
                if *before < flows[oldest].0 {
                    continue;
                }
                let delay = sum(delay, *gap);
                let known = &mut known[*before as usize];
                if known.moment != blank.moment {
                    *known = blank;
                }
                if let Some(place) = known.place {
                    let place = place as usize;
                    kept[place] &= flows[place].1 > delay;
                    // The newest flow of the moment stays.
                    oldest += kept[oldest..].iter().take_while(|kept| !**kept).count();
                }
                if known.delay.is_none() {
                    awaited.push(*before);
                }
                known.delay = known.delay.max(Some(delay));
            }
        }
        let mut kept = kept.iter().copied();
        flows.retain(|_| kept.next().unwrap_or(true));
        self.looked_at += looked_at;
    }
}

impl Moment {
    /// Returns the moment at a time.
    pub fn at(time: Dur) -> Moment {
        Moment::new(time, List::Short(Vec::new()), Dur::ZERO)
    }
    /// Returns the moment at the end of a flow.
    pub fn end_of(flow: u32) -> Moment {
        Moment::new(Dur::ZERO, List::Short(vec![(flow, Dur::ZERO)]), Dur::ZERO)
    }
    /// Returns a moment. `longest` is the longest time from the end of a flow.
    pub fn new(not_before: Dur, list: List, longest: Dur) -> Moment {
        Moment { not_before, list, longest }
    }
    /// Returns the moment a time later. Sums do not overflow: they stay at the largest time.
    pub fn later(&self, time: Dur) -> Moment {
        let list = match &self.list {
            List::Short(on) => List::Short(on.iter().map(|(number, delay)| (*number, sum(*delay, time))).collect()),
            List::Long(list, delay) => List::Long(Rc::clone(list), sum(*delay, time)),
        };
        Moment { not_before: sum(self.not_before, time), list, longest: sum(self.longest, time) }
    }
    /// Returns the last of the moment and a time that is not before the moment's own time.
    pub fn not_before(&self, time: Dur) -> Moment {
        Moment { not_before: time, ..self.clone() }
    }
    /// Returns the longest of the time and of the times from the end of a flow.
    pub fn longest(&self) -> Dur {
        self.not_before.max(self.longest)
    }
    /// Returns the time before which the moment cannot be, if this does not follow from its flows.
    pub fn earliest(&self) -> Dur {
        let only_time = matches!(&self.list, List::Short(on) if on.is_empty());
        // A flow cannot end before the run starts.
        if !only_time && self.longest >= self.not_before { Dur::ZERO } else { self.not_before }
    }
}

impl List {
    /// Returns a copy of the flows and joins with their delays.
    pub fn copied(&self) -> Vec<(u32, Dur)> {
        match self {
            List::Short(on) => on.clone(),
            List::Long(list, time) => list.on.iter().map(|(number, delay)| (*number, sum(*delay, *time))).collect(),
        }
    }
}

/// Returns the sum of two times, or the largest time if the sum is out of range.
pub(super) fn sum(a: Dur, b: Dur) -> Dur {
    Dur(a.0.saturating_add(b.0))
}

/// Sorts a list, and keeps each flow or join once, with its longest delay.
pub(super) fn sort(list: &mut Vec<(u32, Dur)>) {
    // The lists of moments are in order, so a stable sort merges them.
    list.sort();
    list.dedup_by(|later, first| {
        let same = later.0 == first.0;
        if same {
            first.1 = first.1.max(later.1);
        }
        same
    });
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Returns the list of a moment without its redundant flows. `waits` are the flows that each flow waits for.
    fn removed(list: &[(u32, u64)], waits: &[Vec<(u32, u64)>]) -> Vec<(u32, u64)> {
        let durations = |list: &[(u32, u64)]| list.iter().map(|(flow, delay)| (*flow, Dur(*delay))).collect::<Vec<_>>();
        let mut found = durations(list);
        Search::new().remove_redundant(&mut found, &waits.iter().map(|list| durations(list)).collect::<Vec<_>>(), usize::MAX);
        found.into_iter().map(|(flow, delay)| (flow, delay.0)).collect()
    }

    #[test]
    fn flows_that_others_have_waited_for_are_removed() {
        // 2 waits for 1, and 1 for 0, 10 after its end.
        let waits = [vec![], vec![(0, 10)], vec![(1, 0)]];
        assert_eq!(removed(&[(0, 14), (2, 4)], &waits), [(2, 4)]);
        assert_eq!(removed(&[(0, 15), (2, 4)], &waits), [(0, 15), (2, 4)], "it may be the last");
    }

    #[test]
    fn the_longest_delay_to_a_flow_counts() {
        // 3 waits for 0 directly and, with a longer delay, through 1 and 2.
        let mut waits = vec![vec![], vec![(0, 10)], vec![(1, 10)], vec![(0, 1), (2, 1)]];
        assert_eq!(removed(&[(0, 25), (3, 4)], &waits), [(3, 4)]);
        assert_eq!(removed(&[(0, 26), (3, 4)], &waits), [(0, 26), (3, 4)]);
        // Removed flows lead to further redundant flows.
        waits.push(vec![]);
        assert_eq!(removed(&[(0, 25), (2, 5), (3, 4), (4, 0)], &waits), [(3, 4), (4, 0)]);
    }

    #[test]
    fn a_later_moment_has_longer_delays() {
        let on = vec![(3, Dur(4)), (5, Dur(0))];
        let long = LongList { on: on.clone(), join: 7, used: Cell::default() };
        for list in [List::Short(on), List::Long(Rc::new(long), Dur::ZERO)] {
            let moment = |not_before| Moment::new(Dur(not_before), list.clone(), Dur(9));
            assert_eq!((moment(10).longest(), moment(10).earliest()), (Dur(10), Dur(10)));
            let later = moment(9).later(Dur(2));
            assert_eq!(later.list.copied(), [(3, Dur(6)), (5, Dur(2))]);
            assert_eq!((later.longest(), later.earliest()), (Dur(11), Dur::ZERO), "11 after the end of a flow is not before 11");
        }
        assert_eq!(Moment::at(Dur(7)).later(Dur(1)).earliest(), Dur(8));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        /// Also if the search ends early.
        #[test]
        fn the_search_removes_the_same_flows_as_a_search_with_maps(
            waits in vec(vec((0u32..12, 0u64..4), 0..4), 1..12),
            moments in vec(vec((0u32..12, 0u64..6), 0..5), 1..5),
            most in 0usize..30,
        ) {
            let count = waits.len() as u32;
            let ordered = |list: &[(u32, u64)], below: u32| -> Vec<(u32, Dur)> {
                let all: BTreeMap<u32, u64> = list.iter().filter(|_| below > 0).map(|(flow, delay)| (flow % below.max(1), *delay)).collect();
                all.into_iter().map(|(flow, delay)| (flow, Dur(delay))).collect()
            };
            let waits: Vec<Vec<(u32, Dur)>> = waits.iter().zip(0..).map(|(on, i)| ordered(on, i)).collect();
            let moments: Vec<Vec<(u32, Dur)>> = moments.iter().map(|flows| ordered(flows, count)).collect();
            let mut flows = moments.concat();
            sort(&mut flows);
            let mut other = moments.iter().fold(Vec::new(), |all, moment| testing::merged(&all, moment));
            prop_assert_eq!(&flows, &other);
            // What is known from the moment before must not matter.
            let mut search = Search::new();
            search.remove_redundant(&mut flows.clone(), &waits, 100);
            search.looked_at = 0;
            search.remove_redundant(&mut flows, &waits, most);
            prop_assert_eq!(search.looked_at, testing::remove_redundant(&mut other, |flow| &waits[flow as usize], most));
            prop_assert_eq!(flows, other);
        }
    }
}

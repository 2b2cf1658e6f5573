//! Moments of a program: the start or end of an operation, expressed by times and by the ends of
//! flows.

use super::{After, Drawn};
use base::{Dur, Time};
use std::collections::BinaryHeap;
use std::rc::Rc;

/// A moment: the latest of a time and of the ends of some flows, each plus a delay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Moment {
    /// The time, from the start of the run.
    pub not_before: Dur,
    /// Flows by index, in order, each with the delay after its end.
    pub flows: Vec<(u32, Dur)>,
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
    /// By flow: what is known of it in the current moment.
    known: Vec<InSearch>,
    /// Flows that flows of the current moment have waited for and that are not yet examined.
    awaited: BinaryHeap<u32>,
    /// By flow of the current moment: whether it stays.
    kept: Vec<bool>,
}

/// What is known of a flow in the search for redundant flows of a moment.
#[derive(Clone, Copy, Default)]
struct InSearch {
    /// Number of the moment; for any other moment, nothing is known.
    moment: u32,
    /// Place among the flows of the moment, if it is there.
    place: Option<u32>,
    /// The longest delay with which the flows of the moment have waited for it, if they have.
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
    fn next(&mut self) -> usize {
        self.most += Search::EACH;
        (self.most - self.looked_at).min(Search::AT_ONCE)
    }

    /// Removes the flows of a moment that are redundant: another flow of the moment has waited for
    /// them, so they end early enough. Examines at most `most` waits.
    ///
    /// A flow waits only for flows drawn before it. Therefore the longest delay of the newest flow
    /// that is not yet examined is known, and flows older than the oldest flow of the moment do not
    /// matter.
    fn remove_redundant(&mut self, flows: &mut Vec<(u32, Dur)>, drawn: &[Drawn], most: usize) {
        let Search { moment, known, awaited, kept, .. } = self;
        *moment += 1;
        let blank = InSearch { moment: *moment, ..InSearch::default() };
        known.resize(drawn.len(), InSearch::default());
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
            for (before, gap) in drawn[flow as usize].after.iter().flat_map(|after| after.flows.iter()) {
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
        Moment { not_before: time, flows: Vec::new() }
    }
    /// Returns the moment at the end of a flow.
    pub fn end_of(flow: u32) -> Moment {
        Moment { not_before: Dur::ZERO, flows: vec![(flow, Dur::ZERO)] }
    }
    /// Returns the moment a time later. Sums do not overflow: they stay at the largest time.
    pub fn later(&self, time: Dur) -> Moment {
        let flows = self.flows.iter().map(|(flow, delay)| (*flow, sum(*delay, time))).collect();
        Moment { not_before: sum(self.not_before, time), flows }
    }
    /// Returns the moment as a condition.
    pub fn after(&self) -> After {
        // A flow cannot end before the run starts, so a delay at least as long makes `not_before`
        // redundant.
        let later = self.flows.iter().any(|(_, delay)| *delay >= self.not_before);
        let not_before = Time::ZERO + if later { Dur::ZERO } else { self.not_before };
        After { flows: self.flows.clone(), not_before, give_up_after: None }
    }
    /// Returns the longest of the time and the delays.
    pub fn longest(&self) -> Dur {
        self.flows.iter().map(|(_, delay)| *delay).fold(self.not_before, Dur::max)
    }
}

fn sum(a: Dur, b: Dur) -> Dur {
    Dur(a.0.saturating_add(b.0))
}

/// Returns the last of some moments, or `None` if there are none. `drawn` are the flows that the
/// moments refer to.
pub(super) fn last<'a>(moments: impl Iterator<Item = &'a Rc<Moment>>, drawn: &[Drawn], search: &mut Search) -> Option<Rc<Moment>> {
    let mut distinct: Vec<&Rc<Moment>> = moments.collect();
    distinct.dedup_by(|a, b| Rc::ptr_eq(a, b));
    if let [first] = distinct[..] {
        return Some(Rc::clone(first));
    }
    let not_before = distinct.iter().map(|moment| moment.not_before).max()?;
    // Often only one has flows, and the others are earlier: the start of the program.
    distinct.retain(|moment| !moment.flows.is_empty());
    if let [first] = distinct[..]
        && first.not_before == not_before
    {
        return Some(Rc::clone(first));
    }
    let mut flows = merged(&distinct);
    let most = search.next();
    // The flows of each moment have been examined already.
    if distinct.iter().all(|moment| moment.flows.len() < flows.len()) {
        search.remove_redundant(&mut flows, drawn, most);
    }
    Some(Rc::new(Moment { not_before, flows }))
}

/// Merges the flows of moments, with the longer delay of each flow.
fn merged(moments: &[&Rc<Moment>]) -> Vec<(u32, Dur)> {
    let mut all: Vec<(u32, Dur)> = moments.iter().flat_map(|moment| &moment.flows).copied().collect();
    // Each list is in order, so a stable sort merges them.
    all.sort();
    all.dedup_by(|later, first| {
        let same = later.0 == first.0;
        if same {
            first.1 = first.1.max(later.1);
        }
        same
    });
    all
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;
    use base::HostId;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn flow(after: &[u32], delay: Dur) -> Drawn {
        let after = (!after.is_empty()).then(|| After::new(after, delay));
        Drawn { src: HostId(0), dst: HostId(1), size_bytes: 1, start: Time(0), deadline: None, group: None, after }
    }

    fn moment(not_before: u64, flows: &[(u32, u64)]) -> Rc<Moment> {
        Rc::new(Moment { not_before: Dur(not_before), flows: flows.iter().map(|(flow, delay)| (*flow, Dur(*delay))).collect() })
    }

    #[test]
    fn the_last_moment_has_the_longest_delay_of_each_flow() {
        let drawn = [flow(&[], Dur::ZERO), flow(&[], Dur::ZERO)];
        let both = last([&moment(5, &[(0, 7)]), &moment(9, &[(0, 3), (1, 1)])].into_iter(), &drawn, &mut Search::new());
        assert_eq!(both, Some(moment(9, &[(0, 7), (1, 1)])));
        assert_eq!(last([].into_iter(), &drawn, &mut Search::new()), None);
    }

    #[test]
    fn flows_that_others_have_waited_for_are_removed() {
        // 2 waits for 1, and 1 for 0, 10 after its end.
        let drawn = [flow(&[], Dur::ZERO), flow(&[0], Dur(10)), flow(&[1], Dur::ZERO)];
        let of = |first: u64| last([&moment(0, &[(0, first)]), &moment(0, &[(2, 4)])].into_iter(), &drawn, &mut Search::new());
        assert_eq!(of(14), Some(moment(0, &[(2, 4)])));
        assert_eq!(of(15), Some(moment(0, &[(0, 15), (2, 4)])), "it may be the last");
    }

    #[test]
    fn the_longest_delay_to_a_flow_counts() {
        // 3 waits for 0 directly and, with a longer delay, through 1 and 2.
        let mut drawn = vec![flow(&[], Dur::ZERO), flow(&[0], Dur(10)), flow(&[1], Dur(10)), flow(&[0, 2], Dur(1))];
        let of = |first: u64, drawn: &[Drawn]| {
            last([&moment(0, &[(0, first)]), &moment(0, &[(3, 4)])].into_iter(), drawn, &mut Search::new())
        };
        assert_eq!(of(25, &drawn), Some(moment(0, &[(3, 4)])));
        assert_eq!(of(26, &drawn), Some(moment(0, &[(0, 26), (3, 4)])));
        // Removed flows lead to further redundant flows.
        drawn.push(flow(&[], Dur::ZERO));
        let three = [&moment(0, &[(0, 25), (2, 5)]), &moment(0, &[(3, 4)]), &moment(0, &[(4, 0)])];
        assert_eq!(last(three.into_iter(), &drawn, &mut Search::new()), Some(moment(0, &[(3, 4), (4, 0)])));
    }

    /// Each flow waits for the flow before; each operation waits for the first and the newest flow.
    #[test]
    fn a_search_that_leads_far_back_is_limited() {
        let drawn: Vec<Drawn> =
            (0..5000u32).map(|i| flow(&i.checked_sub(1).into_iter().collect::<Vec<u32>>(), Dur::ZERO)).collect();
        let mut search = Search::new();
        for _ in 0..1000 {
            last([&moment(0, &[(0, 0)]), &moment(0, &[(4999, 0)])].into_iter(), &drawn, &mut search);
        }
        assert_eq!(search.looked_at, Search::FIRST + 1000 * Search::EACH);
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
            let drawn: Vec<Drawn> = waits
                .iter()
                .zip(0..)
                .map(|(on, i)| {
                    let flows = ordered(on, i);
                    let after = (!flows.is_empty()).then(|| After { flows, ..After::new(&[], Dur::ZERO) });
                    Drawn { after, ..flow(&[], Dur::ZERO) }
                })
                .collect();
            let moments: Vec<Rc<Moment>> =
                moments.iter().map(|flows| Rc::new(Moment { not_before: Dur::ZERO, flows: ordered(flows, count) })).collect();
            let mut flows = merged(&moments.iter().collect::<Vec<_>>());
            let mut other = moments.iter().fold(Vec::new(), |all, moment| testing::merged(&all, &moment.flows));
            prop_assert_eq!(&flows, &other);
            // What is known from the moment before must not matter.
            let mut search = Search::new();
            search.remove_redundant(&mut flows.clone(), &drawn, 100);
            search.looked_at = 0;
            search.remove_redundant(&mut flows, &drawn, most);
            prop_assert_eq!(search.looked_at, testing::remove_redundant(&mut other, &drawn, most));
            prop_assert_eq!(flows, other);
        }
    }
}

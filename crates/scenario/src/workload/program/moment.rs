//! Moments of a program: the start or end of an operation, expressed by times and by the ends of
//! flows.

use super::Drawn;
use base::Dur;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A moment: the latest of a time and of the ends of some flows, each plus a delay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Moment {
    /// The time, from the start of the run.
    pub not_before: Dur,
    /// Flows by index, in order, each with the delay after its end.
    pub flows: Vec<(u32, Dur)>,
}

/// The limits of the search for redundant waits, which follow from other waits. They keep planning
/// time proportional to the size of the program: a program whose operations each wait for very old
/// flows would otherwise take quadratic time.
pub(super) struct Search {
    /// Number of waits that the search may examine.
    most: usize,
    /// Number of waits that it has examined.
    pub looked_at: usize,
}

impl Search {
    /// Limit before the first operation.
    const FIRST: usize = 1 << 20;
    /// Increase of the limit with each operation.
    const EACH: usize = 64;
    /// Limit for a single operation.
    const AT_ONCE: usize = 4096;

    /// Creates the search of a program.
    pub fn new() -> Search {
        Search { most: Search::FIRST, looked_at: 0 }
    }
    /// Returns the number of waits that the search may examine for the next operation.
    fn next(&mut self) -> usize {
        self.most += Search::EACH;
        (self.most - self.looked_at).min(Search::AT_ONCE)
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
    let mut flows = distinct.iter().fold(Vec::new(), |all, moment| merged(&all, &moment.flows));
    search.looked_at += remove_redundant(&mut flows, drawn, search.next());
    Some(Rc::new(Moment { not_before, flows }))
}

/// Merges two lists of flows, with the longer delay of each flow.
fn merged(a: &[(u32, Dur)], b: &[(u32, Dur)]) -> Vec<(u32, Dur)> {
    let mut all = Vec::with_capacity(a.len() + b.len());
    let (mut a, mut b) = (a.iter().copied().peekable(), b.iter().copied().peekable());
    loop {
        match (a.peek(), b.peek()) {
            (Some(one), Some(other)) if one.0 == other.0 => all.extend(a.next().max(b.next())),
            (Some(one), Some(other)) if one.0 > other.0 => all.extend(b.next()),
            (Some(_), _) => all.extend(a.next()),
            (None, Some(_)) => all.extend(b.next()),
            (None, None) => return all,
        }
    }
}

/// Removes the flows of a moment that are redundant: another flow of the moment has waited for
/// them, so they end early enough. Examines at most `most` waits, and returns how many it has
/// examined.
///
/// A flow waits only for flows drawn before it. Therefore the longest delay of the newest flow that
/// is not yet examined is known, and flows older than the oldest flow of the moment do not matter.
fn remove_redundant(flows: &mut Vec<(u32, Dur)>, drawn: &[Drawn], most: usize) -> usize {
    let (mut kept, mut oldest) = (vec![true; flows.len()], 0);
    // Flows that the flows of the moment have waited for, with the longest delay.
    let mut awaited: BTreeMap<u32, Dur> = BTreeMap::new();
    let (mut newest, mut looked_at) = (flows.len(), 0);
    'search: while oldest + 1 < flows.len() {
        let own = newest.checked_sub(1).map(|i| flows[i]);
        let other = awaited.last_key_value().map(|(flow, delay)| (*flow, *delay));
        let Some((flow, delay)) = own.max(other).filter(|(flow, _)| *flow > flows[oldest].0) else { break };
        newest -= usize::from(own.is_some_and(|own| own.0 == flow));
        awaited.remove(&flow);
        for (before, gap) in drawn[flow as usize].after.iter().flat_map(|after| after.flows.iter()) {
            if looked_at == most {
                break 'search;
            }
            looked_at += 1;
            if *before < flows[oldest].0 {
                continue;
            }
            let delay = sum(delay, *gap);
            if let Ok(i) = flows.binary_search_by_key(before, |(flow, _)| *flow) {
                kept[i] &= flows[i].1 > delay;
            }
            // The newest flow of the moment stays.
            oldest += kept[oldest..].iter().take_while(|kept| !**kept).count();
            let known = awaited.entry(*before).or_insert(delay);
            *known = (*known).max(delay);
        }
    }
    let mut kept = kept.into_iter();
    flows.retain(|_| kept.next().unwrap_or(true));
    looked_at
}

#[cfg(test)]
mod tests {
    use super::super::super::After;
    use super::*;
    use base::{HostId, Time};

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
}

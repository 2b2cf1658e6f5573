//! Moments of a program: when an operation starts or ends, said by times and by the ends of flows.

use super::Drawn;
use base::Dur;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Not before a time, and not before some flows have ended, each with a delay after its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Moment {
    /// From the start of the run.
    pub not_before: Dur,
    /// Flows by their places, in order.
    pub flows: Vec<(u32, Dur)>,
}

/// The search for waits that follow from other waits. Its limits keep the time that planning takes in proportion to the program: a
/// program whose operations each wait for very old flows would otherwise take quadratic time.
pub(super) struct Search {
    /// Waits that it may look at in all.
    most: usize,
    /// Waits that it has looked at.
    pub looked_at: usize,
}

impl Search {
    /// The limit before the first operation.
    const FIRST: usize = 1 << 20;
    /// Each operation raises the limit by this.
    const EACH: usize = 64;
    /// The limit for one operation.
    const AT_ONCE: usize = 4096;

    /// The search of a program.
    pub fn new() -> Search {
        Search { most: Search::FIRST, looked_at: 0 }
    }
    /// How many waits it may look at for one more operation.
    fn next(&mut self) -> usize {
        self.most += Search::EACH;
        (self.most - self.looked_at).min(Search::AT_ONCE)
    }
}

impl Moment {
    /// At a time.
    pub fn at(time: Dur) -> Moment {
        Moment { not_before: time, flows: Vec::new() }
    }
    /// At the end of a flow.
    pub fn end_of(flow: u32) -> Moment {
        Moment { not_before: Dur::ZERO, flows: vec![(flow, Dur::ZERO)] }
    }
    /// A time later; times without end stay as they are.
    pub fn later(&self, time: Dur) -> Moment {
        let flows = self.flows.iter().map(|(flow, delay)| (*flow, sum(*delay, time))).collect();
        Moment { not_before: sum(self.not_before, time), flows }
    }
    /// The longest of its times.
    pub fn longest(&self) -> Dur {
        self.flows.iter().map(|(_, delay)| *delay).fold(self.not_before, Dur::max)
    }
}

fn sum(a: Dur, b: Dur) -> Dur {
    Dur(a.0.saturating_add(b.0))
}

/// The last of some moments; `None` if there are none. `drawn` are the flows that they speak of.
pub(super) fn last<'a>(moments: impl Iterator<Item = &'a Rc<Moment>>, drawn: &[Drawn], search: &mut Search) -> Option<Rc<Moment>> {
    let mut distinct: Vec<&Rc<Moment>> = moments.collect();
    distinct.dedup_by(|a, b| Rc::ptr_eq(a, b));
    if let [first] = distinct[..] {
        return Some(Rc::clone(first));
    }
    let not_before = distinct.iter().map(|moment| moment.not_before).max()?;
    let mut flows = distinct.iter().fold(Vec::new(), |all, moment| merged(&all, &moment.flows));
    search.looked_at += forget_what_follows(&mut flows, drawn, search.next());
    Some(Rc::new(Moment { not_before, flows }))
}

/// Both lists of flows, with the longer delay of each flow.
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

/// Leaves out the flows that have ended long enough before a moment because another flow of the moment has waited for them. Looks at
/// no more than `most` waits and returns how many it has looked at.
///
/// A flow waits only for flows drawn before it. So the newest flow that is not yet looked at has its longest delay, and nothing older
/// than the oldest flow of the moment matters.
fn forget_what_follows(flows: &mut Vec<(u32, Dur)>, drawn: &[Drawn], most: usize) -> usize {
    let (mut kept, mut oldest) = (vec![true; flows.len()], 0);
    // Flows that those of the moment have waited for, with the longest delay.
    let mut behind: BTreeMap<u32, Dur> = BTreeMap::new();
    let (mut newest, mut looked_at) = (flows.len(), 0);
    'search: while oldest + 1 < flows.len() {
        let own = newest.checked_sub(1).map(|i| flows[i]);
        let other = behind.last_key_value().map(|(flow, delay)| (*flow, *delay));
        let Some((flow, delay)) = own.max(other).filter(|(flow, _)| *flow > flows[oldest].0) else { break };
        newest -= usize::from(own.is_some_and(|own| own.0 == flow));
        behind.remove(&flow);
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
            let known = behind.entry(*before).or_insert(delay);
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
    fn flows_that_others_have_waited_for_are_forgotten() {
        // 2 waits for 1, and 1 for 0, 10 after its end.
        let drawn = [flow(&[], Dur::ZERO), flow(&[0], Dur(10)), flow(&[1], Dur::ZERO)];
        let of = |first: u64| last([&moment(0, &[(0, first)]), &moment(0, &[(2, 4)])].into_iter(), &drawn, &mut Search::new());
        assert_eq!(of(14), Some(moment(0, &[(2, 4)])));
        assert_eq!(of(15), Some(moment(0, &[(0, 15), (2, 4)])), "it may be the last");
    }

    #[test]
    fn the_longest_way_to_a_flow_counts() {
        // 3 waits for 0 directly and, longer, over 1 and 2.
        let mut drawn = vec![flow(&[], Dur::ZERO), flow(&[0], Dur(10)), flow(&[1], Dur(10)), flow(&[0, 2], Dur(1))];
        let of = |first: u64, drawn: &[Drawn]| {
            last([&moment(0, &[(0, first)]), &moment(0, &[(3, 4)])].into_iter(), drawn, &mut Search::new())
        };
        assert_eq!(of(25, &drawn), Some(moment(0, &[(3, 4)])));
        assert_eq!(of(26, &drawn), Some(moment(0, &[(0, 26), (3, 4)])));
        // Flows that are forgotten lead to others.
        drawn.push(flow(&[], Dur::ZERO));
        let three = [&moment(0, &[(0, 25), (2, 5)]), &moment(0, &[(3, 4)]), &moment(0, &[(4, 0)])];
        assert_eq!(last(three.into_iter(), &drawn, &mut Search::new()), Some(moment(0, &[(3, 4), (4, 0)])));
    }

    /// Each flow waits for the one before; each operation waits for the first and the newest flow.
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

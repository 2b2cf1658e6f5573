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

/// How many flows are looked at in search of those that follow from others.
const LOOKED_AT: usize = 4096;

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
pub(super) fn last<'a>(moments: impl Iterator<Item = &'a Rc<Moment>>, drawn: &[Drawn]) -> Option<Rc<Moment>> {
    let mut distinct: Vec<&Rc<Moment>> = moments.collect();
    distinct.dedup_by(|a, b| Rc::ptr_eq(a, b));
    if let [first] = distinct[..] {
        return Some(Rc::clone(first));
    }
    let not_before = distinct.iter().map(|moment| moment.not_before).max()?;
    let mut flows: BTreeMap<u32, Dur> = BTreeMap::new();
    for (flow, delay) in distinct.iter().flat_map(|moment| &moment.flows) {
        let known = flows.entry(*flow).or_insert(*delay);
        *known = (*known).max(*delay);
    }
    forget_what_follows(&mut flows, drawn);
    Some(Rc::new(Moment { not_before, flows: flows.into_iter().collect() }))
}

/// Leaves out the flows that have ended long enough before a moment because another flow of the moment has waited for them.
fn forget_what_follows(flows: &mut BTreeMap<u32, Dur>, drawn: &[Drawn]) {
    let mut left = LOOKED_AT;
    let mut newest_first: Vec<(u32, Dur)> = flows.iter().map(|(flow, delay)| (*flow, *delay)).collect();
    while let Some((flow, delay)) = newest_first.pop() {
        if !flows.contains_key(&flow) {
            continue;
        }
        let mut behind = vec![(flow, delay)];
        while let Some((flow, delay)) = behind.pop() {
            for (before, gap) in drawn[flow as usize].after.iter().flat_map(|after| &after.flows) {
                let Some(rest) = left.checked_sub(1) else { return };
                left = rest;
                let delay = sum(delay, *gap);
                if flows.get(before).is_some_and(|needed| *needed <= delay) {
                    flows.remove(before);
                }
                behind.push((*before, delay));
            }
        }
    }
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
        let both = last([&moment(5, &[(0, 7)]), &moment(9, &[(0, 3), (1, 1)])].into_iter(), &drawn);
        assert_eq!(both, Some(moment(9, &[(0, 7), (1, 1)])));
        assert_eq!(last([].into_iter(), &drawn), None);
    }

    #[test]
    fn flows_that_others_have_waited_for_are_forgotten() {
        // 2 waits for 1, and 1 for 0, 10 after its end.
        let drawn = [flow(&[], Dur::ZERO), flow(&[0], Dur(10)), flow(&[1], Dur::ZERO)];
        let of = |first: u64| last([&moment(0, &[(0, first)]), &moment(0, &[(2, 4)])].into_iter(), &drawn);
        assert_eq!(of(14), Some(moment(0, &[(2, 4)])));
        assert_eq!(of(15), Some(moment(0, &[(0, 15), (2, 4)])), "it may be the last");
    }
}

//! Max-min fair rates, updated while subflows start, end and move: after a change only the affected
//! links are solved again.
//!
//! A subflow is a path of a flow, with a weight. The path lists links, each with the fraction of
//! the subflow's rate that the link carries: 1 on every link of a single path, less where the
//! packets of the flow are spread over several links. Each link has a level: the rate per weight to
//! which it limits its subflows; infinite if the link is not full. The rate of a subflow is its
//! weight times the smallest level of its links. A link whose subflows have changed is solved
//! again: its level is the one at which its subflows fill it, each of them also limited by its
//! other links. When the level of a link has changed, those links of its subflows are solved again
//! that may be affected.
//!
//! Source: the condition that every subflow has a full link on which no subflow of the same weight
//! is faster (Bertsekas and Gallager, "Data Networks", section 6.5.2); that independent updates of
//! single links converge to it, Charny, Clark and Jain, ICC 1995.

use std::collections::VecDeque;

/// A level that changes by no more than this fraction counts as unchanged.
const CRUMB: f64 = 1e-12;

/// Maximum number of solutions per link and call; more indicate an error.
const PATIENCE: usize = 100_000;

/// The rates of subflows on links.
#[derive(Debug, Default)]
pub struct Rates {
    /// Capacity of each link, in the unit of rates.
    capacity: Vec<f64>,
    /// Level of each link.
    level: Vec<f64>,
    /// Subflows of each link.
    members: Vec<Vec<Member>>,
    /// The subflows by number; numbers are reused.
    subflows: Vec<Subflow>,
    free: Vec<u32>,
    /// Links to solve, in order, without duplicates.
    due: VecDeque<u32>,
    is_due: Vec<bool>,
    /// Subflows whose rate may have changed, without duplicates.
    touched: Vec<u32>,
    /// The limits of the present link's subflows on other links, with their loads.
    others: Vec<(f64, f64)>,
}

/// A subflow in the list of a link.
#[derive(Clone, Copy, Debug)]
struct Member {
    /// The number of the subflow.
    subflow: u32,
    /// The index of the link in the path of the subflow.
    hop: u32,
    /// The load of the subflow on the link at level 1: its weight times the fraction on the link.
    load: f64,
}

/// A link in the path of a subflow.
#[derive(Clone, Copy, Debug)]
struct Crossed {
    link: u32,
    /// The index of the subflow among the members of the link.
    place: u32,
    /// The fraction of the subflow's rate that the link carries.
    share: f64,
}

/// A path of a flow.
#[derive(Debug, Default)]
struct Subflow {
    weight: f64,
    path: Vec<Crossed>,
    /// The smallest level of its links, the link that has it, and the smallest level of the other
    /// links.
    least: f64,
    at: u32,
    second: f64,
    is_touched: bool,
}

impl Subflow {
    /// Returns the smallest level of its links except `link`.
    fn limit_but(&self, link: u32) -> f64 {
        if self.at == link { self.second } else { self.least }
    }
    /// Reads all its levels again.
    fn look(&mut self, level: &[f64]) {
        (self.least, self.at, self.second) = (f64::INFINITY, u32::MAX, f64::INFINITY);
        for &Crossed { link, .. } in &self.path {
            let here = level[link as usize];
            if here < self.least {
                (self.second, self.least, self.at) = (self.least, here, link);
            } else if here < self.second {
                self.second = here;
            }
        }
    }
}

/// Returns whether two levels differ by more than rounding.
fn differ(a: f64, b: f64) -> bool {
    let larger = a.max(b);
    // Infinity differs from every other value.
    a != b && (larger == f64::INFINITY || (a - b).abs() > CRUMB * larger)
}

impl Rates {
    /// Returns links without subflows.
    pub fn new(capacity: Vec<f64>) -> Rates {
        let links = capacity.len();
        Rates {
            capacity,
            level: vec![f64::INFINITY; links],
            members: vec![Vec::new(); links],
            is_due: vec![false; links],
            ..Rates::default()
        }
    }

    /// Adds a subflow over these links, each with the fraction of the rate that it carries, above
    /// 0; no link may occur twice. Returns the number of the subflow. Its rate is known after
    /// [`Rates::solve`].
    pub fn add(&mut self, links: impl Iterator<Item = (u32, f64)>, weight: f64) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.subflows.push(Subflow::default());
            self.subflows.len() as u32 - 1
        });
        let mut path = std::mem::take(&mut self.subflows[number as usize].path);
        path.clear();
        for (link, share) in links {
            let members = &mut self.members[link as usize];
            let (hop, place) = (path.len() as u32, members.len() as u32);
            path.push(Crossed { link, place, share });
            members.push(Member { subflow: number, hop, load: weight * share });
            self.mark(link);
        }
        let subflow = &mut self.subflows[number as usize];
        (subflow.path, subflow.weight) = (path, weight);
        subflow.look(&self.level);
        self.touch(number);
        number
    }

    /// Removes a subflow.
    pub fn remove(&mut self, number: u32) {
        let path = std::mem::take(&mut self.subflows[number as usize].path);
        for &Crossed { link, place, .. } in &path {
            let members = &mut self.members[link as usize];
            members.swap_remove(place as usize);
            if let Some(moved) = members.get(place as usize) {
                self.subflows[moved.subflow as usize].path[moved.hop as usize].place = place;
            }
            // A link that was not full is not full without the subflow either.
            if self.level[link as usize] < f64::INFINITY {
                self.mark(link);
            }
        }
        self.subflows[number as usize].path = path;
        self.subflows[number as usize].path.clear();
        self.free.push(number);
    }

    /// Changes the capacity of a link.
    pub fn set_capacity(&mut self, link: u32, capacity: f64) {
        self.capacity[link as usize] = capacity;
        self.mark(link);
    }

    /// Returns the links of a subflow, each with the fraction of the subflow's rate that it
    /// carries.
    pub fn links(&self, number: u32) -> impl Iterator<Item = (u32, f64)> {
        self.subflows[number as usize].path.iter().map(|crossed| (crossed.link, crossed.share))
    }

    /// Returns the rate of a subflow after the last solution. It is finite, since every link has a
    /// capacity and so some link of the subflow limits it.
    pub fn rate(&self, number: u32) -> f64 {
        let subflow = &self.subflows[number as usize];
        subflow.weight * subflow.least
    }

    /// Returns whether anything has changed since the last solution.
    pub fn is_due(&self) -> bool {
        !self.due.is_empty() || !self.touched.is_empty()
    }

    /// Solves all that has changed. Returns the subflows whose rates may have changed, including
    /// new ones. A subflow that was removed since may be among them.
    pub fn solve(&mut self) -> Vec<u32> {
        let mut left = PATIENCE * self.level.len();
        while let Some(link) = self.due.pop_front() {
            self.is_due[link as usize] = false;
            assert!(left > 0, "rates do not settle");
            left -= 1;
            let (before, now) = (self.level[link as usize], self.level_of(link));
            if differ(before, now) {
                self.level[link as usize] = now;
                self.spread(link, before);
            }
        }
        let touched = std::mem::take(&mut self.touched);
        touched.iter().for_each(|&number| self.subflows[number as usize].is_touched = false);
        touched
    }

    /// Returns the level at which the subflows of a link fill it.
    fn level_of(&mut self, link: u32) -> f64 {
        let Rates { subflows, members, others, .. } = self;
        let capacity = self.capacity[link as usize];
        others.clear();
        let (mut loads, mut wanted) = (0.0, 0.0);
        for &Member { subflow, load, .. } in &members[link as usize] {
            let limit = subflows[subflow as usize].limit_but(link);
            loads += load;
            wanted += load * limit;
            others.push((limit, load));
        }
        if wanted <= capacity * (1.0 + CRUMB) {
            return f64::INFINITY;
        }
        // The level increases as subflows turn out to be limited below it by other links. No
        // subflow is left only if rounding has filled the link before.
        let mut free = capacity;
        loop {
            let level = free.max(0.0) / loads;
            let before = others.len();
            others.retain(|&(limit, load)| {
                let cut = limit < level;
                if cut {
                    free -= load * limit;
                    loads -= load;
                }
                !cut
            });
            if others.len() == before || others.is_empty() {
                return level;
            }
            // Rounding must not leave load where no subflow is left.
            loads = others.iter().map(|(_, load)| load).sum();
        }
    }

    /// Handles a change of a link's level: updates its subflows, and marks those of their links for
    /// which a limit has changed.
    fn spread(&mut self, link: u32, before: f64) {
        let least = before.min(self.level[link as usize]);
        let members = std::mem::take(&mut self.members[link as usize]);
        for &Member { subflow: number, .. } in &members {
            let subflow = &mut self.subflows[number as usize];
            if least > subflow.second {
                continue; // Neither the smallest nor the second smallest level.
            }
            let (old_least, old_at, old_second) = (subflow.least, subflow.at, subflow.second);
            subflow.look(&self.level);
            let (new_least, new_at, new_second) = (subflow.least, subflow.at, subflow.second);
            if new_least != old_least {
                self.touch(number);
            }
            for place in 0..self.subflows[number as usize].path.len() {
                let other = self.subflows[number as usize].path[place].link;
                let old = if old_at == other { old_second } else { old_least };
                let new = if new_at == other { new_second } else { new_least };
                if other != link && differ(old, new) && old.min(new) < self.level[other as usize] {
                    self.mark(other);
                }
            }
        }
        self.members[link as usize] = members;
    }

    fn mark(&mut self, link: u32) {
        if !std::mem::replace(&mut self.is_due[link as usize], true) {
            self.due.push_back(link);
        }
    }

    fn touch(&mut self, number: u32) {
        if !std::mem::replace(&mut self.subflows[number as usize].is_touched, true) {
            self.touched.push(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    /// A subflow for plain filling: its links, each with the fraction of its rate there, and its
    /// weight.
    type Plain = (Vec<(u32, f64)>, f64);

    /// Plain progressive filling: all levels increase together, and subflows through a full link
    /// stop.
    fn fill(capacity: &[f64], subflows: &[Plain]) -> Vec<f64> {
        let mut rates = vec![None; subflows.len()];
        let share_on = |subflow: &Plain, link: usize| subflow.0.iter().find(|on| on.0 == link as u32).map_or(0.0, |on| on.1);
        while rates.contains(&None) {
            let share = |link: usize| {
                let (mut free, mut weights) = (capacity[link], 0.0);
                for (subflow, rate) in subflows.iter().zip(&rates) {
                    match rate {
                        Some(rate) => free -= rate * share_on(subflow, link),
                        None => weights += subflow.1 * share_on(subflow, link),
                    }
                }
                (weights > 0.0).then(|| free.max(0.0) / weights)
            };
            let full = (0..capacity.len()).filter_map(|link| Some((share(link)?, link))).min_by(|a, b| a.0.total_cmp(&b.0));
            let (level, link) = full.unwrap();
            for (subflow, rate) in subflows.iter().zip(&mut rates).filter(|(subflow, _)| share_on(subflow, link) > 0.0) {
                rate.get_or_insert(subflow.1 * level);
            }
        }
        rates.into_iter().flatten().collect()
    }

    #[test]
    fn rates_are_those_of_plain_progressive_filling() {
        compare("rates/random", &[1.0]);
    }

    #[test]
    fn rates_of_spread_subflows_are_those_of_plain_progressive_filling() {
        compare("rates/spread", &[1.0, 0.5, 0.25, 1.0 / 3.0, 1.0 / 6.0, 2.0 / 3.0, 1.0 / 144.0]);
    }

    /// Ten thousand networks, each after subflows have started, ended and moved and links have
    /// failed. Each link of a path has one of these fractions.
    fn compare(stream: &str, shares: &[f64]) {
        let mut rng = Rng::stream(1, stream, &[]);
        for case in 0..10_000 {
            let links = 1 + rng.below(12) as u32;
            // Equal capacities cause many ties, a few distinct capacities cause some.
            let mut capacity: Vec<f64> = (0..links).map(|_| (1 + rng.below(4)) as f64 * 1.25e-3).collect();
            let mut rates = Rates::new(capacity.clone());
            let mut known: Vec<(u32, Plain)> = Vec::new();
            for _ in 0..1 + rng.below(6) {
                for _ in 0..1 + rng.below(8) {
                    match rng.below(8) {
                        0 => {
                            let link = rng.below(links.into()) as u32;
                            capacity[link as usize] = rng.below(3) as f64 * 1.25e-3;
                            rates.set_capacity(link, capacity[link as usize]);
                        }
                        1 | 2 if !known.is_empty() => {
                            let (number, _) = known.swap_remove(rng.below(known.len() as u64) as usize);
                            rates.remove(number);
                        }
                        _ => {
                            let first = rng.below(links.into()) as u32;
                            let path: Vec<u32> = (0..links).filter(|&link| link == first || rng.below(3) == 0).collect();
                            let draw = |link| {
                                (link, if shares.len() == 1 { shares[0] } else { shares[rng.below(shares.len() as u64) as usize] })
                            };
                            let path: Vec<(u32, f64)> = path.into_iter().map(draw).collect();
                            let weight = [1.0, 1.0, 0.125, 1.0 / 3.0][rng.below(4) as usize];
                            known.push((rates.add(path.iter().copied(), weight), (path, weight)));
                        }
                    }
                }
                rates.solve();
                let plain: Vec<Plain> = known.iter().map(|(_, plain)| plain.clone()).collect();
                for ((number, subflow), expected) in known.iter().zip(fill(&capacity, &plain)) {
                    let rate = rates.rate(*number);
                    assert!((rate - expected).abs() <= 1e-9 * 5e-3, "case {case}: {subflow:?} has {rate}, not {expected}");
                }
            }
        }
    }

    #[test]
    fn only_what_has_changed_is_returned() {
        // Two subflows share link 0; a third has link 1 for itself.
        let mut rates = Rates::new(vec![6.0, 4.0, 1.0]);
        let [a, b, c] = [[0, 0], [0, 2], [1, 1]].map(|[from, to]| rates.add((from..=to).map(|link| (link, 1.0)), 1.0));
        // Subflow b crosses all three links.
        let mut changed = rates.solve();
        changed.sort_unstable();
        assert_eq!((changed, [a, b, c].map(|number| rates.rate(number))), (vec![a, b, c], [5.0, 1.0, 3.0]));
        rates.remove(c);
        // The subflow's link was full, and no other subflow was limited there.
        assert_eq!((rates.solve(), rates.rate(b), rates.is_due()), (vec![], 1.0, false));
        rates.set_capacity(2, 2.0);
        let mut changed = rates.solve();
        changed.sort_unstable();
        assert_eq!((changed, rates.rate(a), rates.rate(b)), (vec![a, b], 4.0, 2.0));
    }

    #[test]
    fn a_link_is_loaded_by_the_shares_of_rates() {
        // Subflow a takes links 0 and 1 by halves, b only link 1, and c links 1 and 2 by one and
        // three quarters.
        let mut rates = Rates::new(vec![1.0, 1.0, 3.0]);
        let a = rates.add([(0, 0.5), (1, 0.5)].into_iter(), 1.0);
        rates.solve();
        assert_eq!(rates.rate(a), 2.0);
        let [b, c] = [&[(1, 1.0)][..], &[(1, 0.25), (2, 0.75)]].map(|path| rates.add(path.iter().copied(), 1.0));
        rates.solve();
        // On link 1 they use 7/4 of their rate, which is equal.
        assert_eq!([a, b, c].map(|number| rates.rate(number)), [4.0 / 7.0; 3]);
        rates.remove(b);
        rates.set_capacity(2, 0.75);
        rates.solve();
        // Subflow c is limited to 1 on link 2, and a to 2 * 3/4 on link 1.
        assert_eq!([a, c].map(|number| rates.rate(number)), [1.5, 1.0]);
        assert_eq!(rates.links(c).collect::<Vec<_>>(), [(1, 0.25), (2, 0.75)]);
    }
}

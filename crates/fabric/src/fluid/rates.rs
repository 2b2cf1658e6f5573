//! Max-min fair rates, kept while subflows come, go and move: a change is solved again only as far as it reaches.
//!
//! A subflow is a path of a flow, with a weight. The path lists links, each with the share of the subflow's rate that the link carries: 1 on
//! every link of a single path, less where the packets of the flow are spread over several links. Each link has a level: the rate per weight to which it cuts its subflows, infinite while
//! the link is not full. The rate of a subflow is its weight times the least level of its links. A link whose subflows have changed is solved
//! anew: its level is that at which its subflows fill it, each cut also to what its other links allow. A link whose level has changed has
//! those links of its subflows solved that this may concern.
//!
//! Source: the condition that every subflow has a full link on which no subflow of the same weight is faster (Bertsekas and Gallager, "Data
//! Networks", section 6.5.2); that links which solve for themselves alone come to it, Charny, Clark and Jain, ICC 1995.

use std::collections::VecDeque;

/// A change of a level by no more than this share counts as none.
const CRUMB: f64 = 1e-12;

/// More solutions of links than this per link and call, and something is wrong.
const PATIENCE: usize = 100_000;

/// The rates of subflows on links.
#[derive(Debug, Default)]
pub struct Rates {
    /// By link: what it carries, in the unit of rates.
    capacity: Vec<f64>,
    /// By link.
    level: Vec<f64>,
    /// By link: its subflows.
    members: Vec<Vec<Member>>,
    /// By number of the subflow; numbers are used again.
    subflows: Vec<Subflow>,
    free: Vec<u32>,
    /// Links to solve, in order; none stands there twice.
    due: VecDeque<u32>,
    is_due: Vec<bool>,
    /// Subflows whose rate may have changed; none stands there twice.
    touched: Vec<u32>,
    /// What the subflows of the link that is being solved are cut to elsewhere, with their loads.
    others: Vec<(f64, f64)>,
}

/// A subflow as a link sees it.
#[derive(Clone, Copy, Debug)]
struct Member {
    /// The number of the subflow.
    subflow: u32,
    /// The place of the link in the path of the subflow.
    hop: u32,
    /// What the subflow puts on the link at level 1: its weight times the share of the link.
    load: f64,
}

/// A link as a subflow sees it.
#[derive(Clone, Copy, Debug)]
struct Crossed {
    link: u32,
    /// The place of the subflow among the members of the link.
    place: u32,
    /// The share of the subflow's rate that the link carries.
    share: f64,
}

/// A path of a flow.
#[derive(Debug, Default)]
struct Subflow {
    weight: f64,
    path: Vec<Crossed>,
    /// The least level of its links, the link that has it, and the least level of the others.
    least: f64,
    at: u32,
    second: f64,
    is_touched: bool,
}

impl Subflow {
    /// The least level of its links but one.
    fn limit_but(&self, link: u32) -> f64 {
        if self.at == link { self.second } else { self.least }
    }
    /// Looks at all its levels again.
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

/// Whether two levels differ by more than rounding.
fn differ(a: f64, b: f64) -> bool {
    let larger = a.max(b);
    // An infinity differs from all others by more than any share of it.
    a != b && (larger == f64::INFINITY || (a - b).abs() > CRUMB * larger)
}

impl Rates {
    /// Links without subflows.
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

    /// Adds a subflow over these links, none of them twice, each with the share of the rate that it carries, above 0. Returns the number of the
    /// subflow, whose rate is known after [`Rates::solve`].
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

    /// Takes a subflow away.
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

    /// Changes what a link carries.
    pub fn set_capacity(&mut self, link: u32, capacity: f64) {
        self.capacity[link as usize] = capacity;
        self.mark(link);
    }

    /// The links of a subflow, each with the share of the subflow's rate that it carries.
    pub fn links(&self, number: u32) -> impl Iterator<Item = (u32, f64)> {
        self.subflows[number as usize].path.iter().map(|crossed| (crossed.link, crossed.share))
    }

    /// The rate of a subflow after the last solution. A subflow without a full link would have no bound: every link has a capacity.
    pub fn rate(&self, number: u32) -> f64 {
        let subflow = &self.subflows[number as usize];
        subflow.weight * subflow.least
    }

    /// Whether anything has changed since the last solution.
    pub fn is_due(&self) -> bool {
        !self.due.is_empty() || !self.touched.is_empty()
    }

    /// Solves all that has changed. Returns the subflows whose rates may have changed, those that are new included; one that was taken away
    /// since may be among them.
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

    /// The level at which the subflows of a link fill it.
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
        // The level rises as subflows turn out to be cut below it elsewhere. Nobody is left only if rounding has filled the link before.
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

    /// The level of a link has changed: tells its subflows, and marks those of their links that see another limit than before.
    fn spread(&mut self, link: u32, before: f64) {
        let least = before.min(self.level[link as usize]);
        let members = std::mem::take(&mut self.members[link as usize]);
        for &Member { subflow: number, .. } in &members {
            let subflow = &mut self.subflows[number as usize];
            if least > subflow.second {
                continue; // Neither the least level nor the one behind it.
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

    /// A subflow as the plain filling sees it: its links, each with the share of its rate there, and its weight.
    type Plain = (Vec<(u32, f64)>, f64);

    /// Plain progressive filling: all levels rise together, and subflows through a full link stop.
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

    /// Ten thousand networks, each after subflows have come, gone and moved and links have failed. Each link of a path has one of these shares.
    fn compare(stream: &str, shares: &[f64]) {
        let mut rng = Rng::stream(1, stream, &[]);
        for case in 0..10_000 {
            let links = 1 + rng.below(12) as u32;
            // Equal capacities make ties, and few distinct ones some.
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
        // Two subflows share link 0; a third is alone on link 1.
        let mut rates = Rates::new(vec![6.0, 4.0, 1.0]);
        let [a, b, c] = [[0, 0], [0, 2], [1, 1]].map(|[from, to]| rates.add((from..=to).map(|link| (link, 1.0)), 1.0));
        // Subflow b crosses all three links.
        let mut changed = rates.solve();
        changed.sort_unstable();
        assert_eq!((changed, [a, b, c].map(|number| rates.rate(number))), (vec![a, b, c], [5.0, 1.0, 3.0]));
        rates.remove(c);
        // Its link was full, and nobody else was cut there.
        assert_eq!((rates.solve(), rates.rate(b), rates.is_due()), (vec![], 1.0, false));
        rates.set_capacity(2, 2.0);
        let mut changed = rates.solve();
        changed.sort_unstable();
        assert_eq!((changed, rates.rate(a), rates.rate(b)), (vec![a, b], 4.0, 2.0));
    }

    #[test]
    fn a_link_is_loaded_by_the_shares_of_rates() {
        // Subflow a takes links 0 and 1 by halves, b link 1 alone, and c links 1 and 2 by one and three quarters.
        let mut rates = Rates::new(vec![1.0, 1.0, 3.0]);
        let a = rates.add([(0, 0.5), (1, 0.5)].into_iter(), 1.0);
        rates.solve();
        assert_eq!(rates.rate(a), 2.0);
        let [b, c] = [&[(1, 1.0)][..], &[(1, 0.25), (2, 0.75)]].map(|path| rates.add(path.iter().copied(), 1.0));
        rates.solve();
        // On link 1 they fill 7/4 of their rate, which is equal.
        assert_eq!([a, b, c].map(|number| rates.rate(number)), [4.0 / 7.0; 3]);
        rates.remove(b);
        rates.set_capacity(2, 0.75);
        rates.solve();
        // Subflow c is cut to 1 on link 2, and a to 2 * 3/4 on link 1.
        assert_eq!([a, c].map(|number| rates.rate(number)), [1.5, 1.0]);
        assert_eq!(rates.links(c).collect::<Vec<_>>(), [(1, 0.25), (2, 0.75)]);
    }
}

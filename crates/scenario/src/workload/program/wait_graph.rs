//! The flows of a program and what they wait for, while they are drawn.
//!
//! An operation that starts no flow, such as an eager send, leaves the flows that it waits for to the
//! operations after it. If each of these operations had its own list of flows, the lists of a program
//! could be much longer than the program. Therefore a long list that is used twice becomes a join.

use super::moment::{self, List, LongList, Moment, Search, Use};
use crate::workload::{After, Drawn, DrawnJoin};
use base::{Dur, HostId, Time};
use std::cell::Cell;
use std::mem::take;
use std::rc::Rc;

/// A list with at most this number of flows and joins is copied. A longer list that is used twice
/// becomes a join. Each flow of a ring of 64 ranks with eager messages has on average 0.33 joins and 3.3
/// waits, those of joins included; 0.98 and 3.0 if longer lists than 1 become joins, 0.12 and 5.5 with 8.
pub(super) const FEW: usize = 3;

/// Flows and joins, numbered together. Each waits only for those with smaller numbers: a flow has its
/// number from its start on, and a join from the moment on whose list it replaces.
pub(super) struct WaitGraph {
    /// Maximum length of a list that is copied.
    few: usize,
    /// The flows, without what they wait for.
    flows: Vec<Drawn>,
    kinds: Vec<NodeKind>,
    /// By number: the flows and joins that it waits for, in order, each with a delay.
    waits: Vec<Vec<(u32, Dur)>>,
    /// By number: the longest time from the end of a flow to a join.
    longest: Vec<Dur>,
    /// Number of joins, with those that have no list yet.
    joins: u32,
    /// Whether a join has a list.
    joined: bool,
    /// Number of waits.
    count: usize,
    search: Search,
}

/// What a number of the graph refers to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NodeKind {
    /// A flow, by index.
    Flow(u32),
    /// A join, or a number kept for a join, by index.
    Join(u32),
    /// A moment of a task, by index. Nothing waits for it.
    Moment(u32),
}

/// The uses of a join.
#[derive(Clone, Default)]
struct JoinUses {
    /// Number of flows, or of joins of flows, that wait for it, and number of moments of tasks, or of their
    /// joins, that do.
    count: [u32; 2],
    /// The hosts of these flows and moments.
    users: [Vec<HostId>; 2],
    /// The hosts of the join, in order. None if it is not made.
    hosts: Vec<HostId>,
}

impl JoinUses {
    /// Returns whether the join is made for flows, or for the moments of tasks if `tasks` is 1. The flows
    /// of a program do not depend on its tasks.
    fn made(&self, tasks: usize) -> bool {
        self.count[..=tasks].iter().any(|count| *count > 1)
    }
    /// Counts a use by flows or moments of these hosts.
    fn add(&mut self, tasks: usize, hosts: &[HostId]) {
        self.count[tasks] += 1;
        let users = &mut self.users[tasks];
        if hosts.len() > 1 || users.last() != hosts.first() {
            users.extend_from_slice(hosts);
        }
    }
}

/// A finished graph.
pub(super) struct Finished {
    pub flows: Vec<Drawn>,
    pub joins: Vec<DrawnJoin>,
    /// The moments of tasks.
    pub moments: Vec<After>,
}

impl WaitGraph {
    /// Creates a graph without flows. Lists with at most `few` flows and joins are copied.
    pub fn new(few: usize) -> WaitGraph {
        WaitGraph {
            few,
            flows: Vec::new(),
            kinds: Vec::new(),
            waits: Vec::new(),
            longest: Vec::new(),
            joins: 0,
            joined: false,
            count: 0,
            search: Search::new(),
        }
    }
    /// Returns the number of flows and joins.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }
    /// Returns the number of waits.
    pub fn count(&self) -> usize {
        self.count
    }
    /// Returns the number of waits that the search for redundant waits has examined.
    #[cfg(test)]
    pub fn looked_at(&self) -> usize {
        self.search.looked_at
    }

    /// Adds a flow that starts at a moment. Returns the moment of its end.
    pub fn add(&mut self, flow: Drawn, start: &Moment) -> Moment {
        let number = self.number(NodeKind::Flow(self.flows.len() as u32), Dur::ZERO);
        self.start(number, start);
        let earliest = Time::ZERO + start.earliest();
        let waits = !self.waits[number as usize].is_empty();
        let after = waits.then(|| Box::new(After { not_before: earliest, ..After::new(&[], Dur::ZERO) }));
        self.flows.push(Drawn { start: if waits { Time::ZERO } else { earliest }, after, ..flow });
        Moment::end_of(number)
    }

    /// Returns the last of some moments, or `None` if there are none.
    pub fn last<'a>(&mut self, mut moments: impl Iterator<Item = &'a Rc<Moment>>) -> Option<Rc<Moment>> {
        // Most operations wait for one moment.
        let first = moments.next()?;
        let Some(second) = moments.find(|moment| !Rc::ptr_eq(first, moment)) else { return Some(Rc::clone(first)) };
        // Often only one has flows, and the others are earlier: the start of the program.
        let (mut not_before, mut with_flows, mut more) = (Dur::ZERO, None, Vec::new());
        for moment in [first, second].into_iter().chain(moments) {
            not_before = not_before.max(moment.not_before);
            match (&moment.list, with_flows) {
                (List::Short(on), _) if on.is_empty() => {}
                (_, None) => with_flows = Some(moment),
                (_, Some(only)) if more.is_empty() && Rc::ptr_eq(only, moment) => {}
                _ => more.push(moment),
            }
        }
        let only = with_flows.filter(|_| more.is_empty());
        if let Some(only) = only.filter(|only| only.not_before == not_before) {
            return Some(Rc::clone(only));
        }
        let most = self.search.next();
        if let Some(only) = only {
            return Some(Rc::new(only.not_before(not_before)));
        }
        let (mut on, mut longest_list) = (Vec::new(), 0);
        for moment in with_flows.into_iter().chain(more) {
            let before = on.len();
            match &moment.list {
                List::Short(list) => on.extend_from_slice(list),
                List::Long(list, delay) => on.push((self.join(list), *delay)),
            }
            longest_list = longest_list.max(on.len() - before);
        }
        moment::sort(&mut on);
        // The flows of each moment have been examined already.
        if longest_list < on.len() {
            self.search.remove_redundant(&mut on, &self.waits, most);
        }
        let longest =
            on.iter().map(|(number, delay)| moment::sum(self.longest[*number as usize], *delay)).max().unwrap_or_default();
        let list = if on.len() > self.few {
            let join = self.number(NodeKind::Join(self.joins), longest);
            self.joins += 1;
            let list = LongList { on, join, used: Cell::default() };
            List::Long(Rc::new(list), Dur::ZERO)
        } else {
            List::Short(on)
        };
        Some(Rc::new(Moment::new(not_before, list, longest)))
    }

    /// Returns the next number.
    fn number(&mut self, kind: NodeKind, longest: Dur) -> u32 {
        self.kinds.push(kind);
        self.waits.push(Vec::new());
        self.longest.push(longest);
        self.kinds.len() as u32 - 1
    }

    /// Makes a flow or the moment of a task wait for a moment.
    fn start(&mut self, number: u32, moment: &Moment) {
        let on = match &moment.list {
            List::Long(list, delay) if list.used.get() == Use::Unused => {
                list.used.set(Use::Copied(number, *delay));
                moment.list.copied()
            }
            List::Long(list, delay) => vec![(self.join(list), *delay)],
            List::Short(on) => on.clone(),
        };
        self.count += on.len();
        self.waits[number as usize] = on;
    }

    /// Gives a list to its join, if the join does not have the list yet, and returns the join. A flow that
    /// has a copy of the list then waits for the join instead.
    fn join(&mut self, list: &LongList) -> u32 {
        let join = list.join;
        match list.used.replace(Use::Joined) {
            Use::Joined => return join,
            Use::Unused => self.count += list.on.len(),
            Use::Copied(by, delay) => {
                self.waits[by as usize] = vec![(join, delay)];
                self.count += 1;
            }
        }
        self.joined = true;
        self.waits[join as usize].clone_from(&list.on);
        join
    }

    /// Takes all flows and joins, and the moments of tasks. Each moment is of a host.
    pub fn finish(&mut self, moments: &[(HostId, Rc<Moment>)]) -> Finished {
        for ((_, moment), index) in moments.iter().zip(0..) {
            let number = self.number(NodeKind::Moment(index), Dur::ZERO);
            self.start(number, moment);
        }
        let uses = self.uses(moments);
        self.expand(&uses);
        let kinds = &self.kinds;
        let hosts_of = |number: usize| match kinds[number] {
            NodeKind::Join(index) => &uses[index as usize].hosts[..],
            NodeKind::Flow(_) | NodeKind::Moment(_) => &[],
        };
        // The indices of the joins among all joins: a join for each host.
        let mut first = Vec::with_capacity(self.len());
        let count = (0..self.len()).fold(0, |count, number| {
            first.push(count as u32);
            count + hosts_of(number).len()
        });
        let mut made =
            Finished { flows: take(&mut self.flows), joins: Vec::with_capacity(count), moments: Vec::with_capacity(moments.len()) };
        let split = |waits: Vec<(u32, Dur)>, host: HostId| {
            let join = |(number, delay): &(u32, Dur)| {
                let place = hosts_of(*number as usize).binary_search(&host).ok()?;
                Some((first[*number as usize] + place as u32, *delay))
            };
            let joins: Vec<(u32, Dur)> = waits.iter().filter_map(join).collect();
            let flow = |(number, delay): (u32, Dur)| match kinds[number as usize] {
                NodeKind::Flow(index) => Some((index, delay)),
                NodeKind::Join(_) | NodeKind::Moment(_) => None,
            };
            (waits.into_iter().filter_map(flow).collect::<Vec<_>>(), joins)
        };
        for (number, waits) in take(&mut self.waits).into_iter().enumerate() {
            match kinds[number] {
                NodeKind::Flow(index) => {
                    let Drawn { src, after: Some(after), .. } = &mut made.flows[index as usize] else { continue };
                    (after.flows, after.joins) = split(waits, *src);
                }
                NodeKind::Moment(index) => {
                    let (host, moment) = &moments[index as usize];
                    let (flows, joins) = split(waits, *host);
                    let not_before = Time::ZERO + moment.earliest();
                    made.moments.push(After { flows, joins, not_before, give_up_after: None });
                }
                NodeKind::Join(_) => {
                    for host in hosts_of(number) {
                        let (flows, joins) = split(waits.clone(), *host);
                        made.joins.push(DrawnJoin { host: *host, flows, joins });
                    }
                }
            }
        }
        made
    }

    /// Returns the uses of each join. A use by a join that is not made counts as a use by what waits for
    /// that join.
    fn uses(&self, moments: &[(HostId, Rc<Moment>)]) -> Vec<JoinUses> {
        let mut uses = vec![JoinUses::default(); self.joins as usize];
        if !self.joined {
            return uses;
        }
        // All that waits for a join has larger numbers.
        for number in (0..self.len()).rev() {
            let own = match self.kinds[number] {
                NodeKind::Join(index) => take(&mut uses[index as usize]),
                NodeKind::Flow(_) | NodeKind::Moment(_) => JoinUses::default(),
            };
            let mut add = |tasks: usize, hosts: &[HostId]| {
                for (other, _) in &self.waits[number] {
                    if let NodeKind::Join(index) = self.kinds[*other as usize] {
                        uses[index as usize].add(tasks, hosts);
                    }
                }
            };
            match self.kinds[number] {
                NodeKind::Flow(index) => add(0, &[self.flows[index as usize].src]),
                NodeKind::Moment(index) => add(1, &[moments[index as usize].0]),
                NodeKind::Join(index) => {
                    let (made, count) = ([own.made(0), own.made(1)], own.count);
                    let sorted = |mut hosts: Vec<HostId>| {
                        hosts.sort_unstable();
                        hosts.dedup();
                        hosts
                    };
                    let hosts = if made[0] {
                        let hosts = sorted(own.users.concat());
                        add(0, &hosts);
                        hosts
                    } else {
                        let [of_flows, of_tasks] = own.users.map(sorted);
                        if count[0] > 0 {
                            add(0, &of_flows);
                        }
                        if count[1] > 0 {
                            add(1, &of_tasks);
                        }
                        if made[1] { of_tasks } else { Vec::new() }
                    };
                    uses[index as usize] = JoinUses { count, hosts, ..JoinUses::default() };
                }
            }
        }
        uses
    }

    /// Replaces each join that is not made by its list.
    fn expand(&mut self, uses: &[JoinUses]) {
        let count = if self.joined { self.len() } else { 0 };
        for number in 0..count {
            let tasks = match self.kinds[number] {
                NodeKind::Flow(_) => 0,
                NodeKind::Moment(_) => 1,
                NodeKind::Join(index) if uses[index as usize].made(0) => 0,
                NodeKind::Join(index) if uses[index as usize].made(1) => 1,
                NodeKind::Join(_) => continue,
            };
            let replaced = |other: u32| match self.kinds[other as usize] {
                NodeKind::Join(index) => !uses[index as usize].made(tasks),
                NodeKind::Flow(_) | NodeKind::Moment(_) => false,
            };
            if !self.waits[number].iter().any(|(other, _)| replaced(*other)) {
                continue;
            }
            let (mut rest, mut on) = (take(&mut self.waits[number]), Vec::new());
            while let Some((other, delay)) = rest.pop() {
                if replaced(other) {
                    let list = &self.waits[other as usize];
                    rest.extend(list.iter().map(|(number, gap)| (*number, moment::sum(*gap, delay))));
                } else {
                    on.push((other, delay));
                }
            }
            moment::sort(&mut on);
            self.waits[number] = on;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(src: u32, dst: u32) -> Drawn {
        let (src, dst) = (HostId(src), HostId(dst));
        Drawn { src, dst, size_bytes: 1, start: Time(0), deadline: None, group: None, connection: None, after: None }
    }

    /// Adds `count` flows of host 0, and returns the moment at which all have ended.
    fn many(graph: &mut WaitGraph, count: usize) -> Rc<Moment> {
        let ends: Vec<Rc<Moment>> = (0..count).map(|_| Rc::new(graph.add(flow(0, 1), &Moment::at(Dur(5))))).collect();
        graph.last(ends.iter()).unwrap()
    }

    fn on(list: &[(u32, u64)]) -> Vec<(u32, Dur)> {
        list.iter().map(|(number, delay)| (*number, Dur(*delay))).collect()
    }

    #[test]
    fn the_last_moment_has_the_longest_delay_of_each_flow() {
        let mut graph = WaitGraph::new(FEW);
        let [first, second] = [0, 1].map(|_| graph.add(flow(0, 1), &Moment::at(Dur(0))));
        let first = Rc::new(first);
        let early = graph.last([&first, &Rc::new(Moment::at(Dur(2)))].into_iter()).unwrap();
        let late = graph.last([&Rc::new(first.later(Dur(3))), &Rc::new(second.later(Dur(1)))].into_iter()).unwrap();
        let both = graph.last([&Rc::new(early.later(Dur(7))), &late].into_iter()).unwrap();
        assert_eq!((both.not_before, both.list.copied()), (Dur(9), on(&[(0, 7), (1, 1)])));
        assert!(graph.last([].into_iter()).is_none());
    }

    /// Each flow waits for the flow before; each operation waits for the first and the newest flow.
    #[test]
    fn a_search_that_leads_far_back_is_limited() {
        let mut graph = WaitGraph::new(FEW);
        let first = Rc::new(graph.add(flow(0, 1), &Moment::at(Dur(0))));
        let newest = Rc::new((1..5000).fold(Moment::clone(&first), |before, _| graph.add(flow(0, 1), &before)));
        for _ in 0..1000 {
            graph.last([&first, &newest].into_iter());
        }
        assert_eq!(graph.looked_at(), Search::FIRST + 1000 * Search::EACH);
    }

    #[test]
    fn a_long_list_that_is_used_twice_becomes_a_join() {
        for (count, uses, joins) in [(3, 2, 0), (4, 1, 0), (4, 2, 1), (4, 3, 1)] {
            let mut graph = WaitGraph::new(3);
            let moment = many(&mut graph, count);
            for delay in (0..uses).map(|i| Dur(10 + i)) {
                graph.add(flow(0, 1), &moment.later(delay));
            }
            let Finished { flows, joins: made, .. } = graph.finish(&[]);
            assert_eq!(made.len(), joins);
            assert!(made.iter().all(|join| join.host == HostId(0) && join.flows == on(&[(0, 0), (1, 0), (2, 0), (3, 0)])));
            for (flow, delay) in flows[count..].iter().zip(10..) {
                let after = flow.after.as_ref().unwrap();
                // Flows start at 5, but their ends are not before 0.
                assert_eq!(after.not_before, Time(0));
                if joins == 1 {
                    assert_eq!((&after.flows, &after.joins), (&vec![], &on(&[(0, delay)])));
                } else {
                    assert_eq!((after.flows.len(), after.flows[0], after.joins.len()), (count, (0, Dur(delay)), 0));
                }
            }
        }
    }

    /// The moment of five receives in turn has five flows, as if each receive had copied the list.
    #[test]
    fn a_join_that_is_used_once_is_replaced_by_its_list() {
        let mut graph = WaitGraph::new(1);
        let mut moment = Rc::new(Moment::at(Dur(0)));
        for _ in 0..5 {
            let end = Rc::new(graph.add(flow(0, 1), &Moment::at(Dur(0))));
            moment = Rc::new(graph.last([&moment, &end].into_iter()).unwrap().later(Dur(1)));
        }
        graph.add(flow(1, 2), &moment);
        let Finished { flows, joins, .. } = graph.finish(&[]);
        assert_eq!((flows[5].after.clone().unwrap().flows, joins), (on(&[(0, 5), (1, 4), (2, 3), (3, 2), (4, 1)]), vec![]));
    }

    /// Hosts learn of an end at different times, so a moment of two hosts has two joins.
    #[test]
    fn a_join_is_made_for_each_host_that_waits_for_it() {
        let mut graph = WaitGraph::new(1);
        let first = many(&mut graph, 2);
        let third = Rc::new(graph.add(flow(2, 1), &first));
        let second = graph.last([&first, &third].into_iter()).unwrap();
        for src in [1, 0, 1] {
            graph.add(flow(src, 2), &second.later(Dur(7)));
        }
        let tasks = [Rc::clone(&first), Rc::new(first.later(Dur(3))), second].map(|moment| (HostId(4), moment));
        let Finished { flows, joins, moments } = graph.finish(&tasks);
        // The third flow makes the other two redundant in `second`, which therefore is a short list.
        assert!(flows[3..].iter().all(|flow| flow.after.as_ref().unwrap().flows == on(&[(2, 7)])));
        assert_eq!(moments[2], After::new(&[2], Dur(0)));
        // Two moments of tasks wait for a join. The only flow with this list does not depend on tasks.
        assert_eq!(flows[2].after.as_ref().unwrap().flows, on(&[(0, 0), (1, 0)]));
        assert_eq!(joins, [DrawnJoin { host: HostId(4), flows: on(&[(0, 0), (1, 0)]), joins: vec![] }]);
        assert_eq!([0, 1].map(|i: usize| moments[i].joins.clone()), [on(&[(0, 0)]), on(&[(0, 3)])]);

        // Without an end that makes the others redundant, the second join waits for the first, of the same host.
        let mut graph = WaitGraph::new(1);
        let first = many(&mut graph, 2);
        let other = Rc::new(graph.add(flow(2, 1), &Moment::at(Dur(0))));
        graph.add(flow(0, 1), &first);
        let second = graph.last([&first, &other].into_iter()).unwrap();
        for src in [1, 3, 1] {
            graph.add(flow(src, 2), &second);
        }
        let Finished { joins, .. } = graph.finish(&[]);
        let hosts: Vec<u32> = joins.iter().map(|join| join.host.0).collect();
        assert_eq!(hosts, [0, 1, 3, 1, 3]);
        assert_eq!(
            [&joins[3], &joins[4]].map(|join| (&join.flows[..], &join.joins[..])),
            [(&on(&[(2, 0)])[..], &on(&[(1, 0)])[..]), (&on(&[(2, 0)])[..], &on(&[(2, 0)])[..]),]
        );
    }

    #[test]
    fn the_longest_time_counts_through_joins() {
        let mut graph = WaitGraph::new(1);
        let first = Rc::new(many(&mut graph, 2).later(Dur(10)));
        let other = Rc::new(graph.add(flow(2, 1), &Moment::at(Dur(0))));
        graph.add(flow(0, 1), &first);
        let both = graph.last([&first, &other].into_iter()).unwrap();
        assert_eq!((both.list.copied().len(), both.later(Dur(3)).longest()), (2, Dur(13)));
    }
}

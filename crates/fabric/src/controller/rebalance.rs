//! Rebalance: moves the largest flow off the busiest link, once per period.
//!
//! Source: flowloom. Al-Fares et al., "Hedera: Dynamic Flow Scheduling for Data Center Networks",
//! NSDI 2010, sections 3 and 4, has a controller that periodically moves large flows to other paths
//! of equal length; it estimates demands and places all large flows.
//!
//! Among all links between switches, and links of hosts with several NICs, it selects the link with
//! the highest utilisation since the last reading. Among the flows whose data crosses that link, it
//! selects the flow that delivered most, and moves it to the path whose busiest link would be least
//! busy, if the larger utilisation of the two links is lower after the move.
//!
//! Model: it has exact counts of every link and flow. It moves one flow at a time, and only the
//! flow's data.
//!
//! | parameter | default | from |
//! |---|---|---|
//! | `period`, `latency` | 1 ms | flowloom: some round trips of a data center; Hedera has 5 s |
//! | `threshold` | 0.5 | flowloom: a less busy link has room |
//!
//! Assumed:
//! - Among equally busy links, equally large flows and equally good paths it takes the first by id
//!   or index.
//! - After a move it waits until the flow has been on its new path for a whole period.
//! - The size of a flow is the payload that it has delivered: headers and retransmissions do not
//!   count.

use super::{Controller, Env, Move, OpenFlow, View, needs_planned_paths};
use crate::paths::is_live;
use base::params::Problem;
use base::registry::Meta;
use base::{Dur, Fraction, LinkId, Time};
use std::cmp::Reverse;

/// The description of this entry, for `list`, `explain` and `check`.
pub const META: Meta = Meta {
    summary: "moves the largest flow off the busiest link, once per period",
    source: "flowloom, after Al-Fares et al., NSDI 2010",
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of rebalancing.
    pub struct Params {
        /// Time between two readings of the network.
        period: Dur = "1ms" in Dur::from_us(1)..=Dur::from_secs(1000), "flowloom: some round trips; Hedera has 5 s";
        /// Time from a reading until the flow moves.
        latency: Dur = "1ms" in Dur(0)..=Dur::from_secs(1000), "flowloom: as the period";
        /// Links with a utilisation below this are not changed.
        threshold: Fraction = "0.5" in Fraction(0)..=Fraction::ONE, "flowloom: a less busy link has room";
    }
}

/// Returns the problems of parameters that depend on the network.
pub fn check(_params: &Params, env: &Env<'_>) -> Vec<Problem> {
    needs_planned_paths(env).into_iter().collect()
}

/// The controller.
pub struct Rebalance {
    params: Params,
    /// Until this time, counts include a period before the last move.
    settled: Time,
}

impl Rebalance {
    /// Returns the controller of a network.
    pub fn new(params: &Params, _env: &Env<'_>) -> Self {
        Rebalance { params: params.clone(), settled: Time::ZERO }
    }

    /// Returns the utilisation of a link that sends this many bytes in a period, in parts per
    /// billion.
    fn utilisation(&self, view: &View<'_>, link: LinkId, bytes: u64) -> u64 {
        let sent = u128::from(bytes) * 8 * 1_000_000_000_000 * u128::from(Fraction::ONE.0);
        (sent / (u128::from(view.net.link(link).rate.bps()) * u128::from(self.params.period.ps()))) as u64
    }

    /// Returns the largest flow whose data crosses a link, and the flow's links.
    fn largest(view: &mut View<'_>, crossed: LinkId) -> Option<(OpenFlow, Vec<LinkId>)> {
        let mut found: Option<(OpenFlow, Vec<LinkId>)> = None;
        for flow in view.flows {
            let larger = flow.delivered_bytes > found.as_ref().map_or(0, |(flow, _)| flow.delivered_bytes);
            let Some(index) = flow.paths[0].filter(|_| larger) else { continue };
            let Some(path) = view.paths.path(flow.src, flow.dst, index) else { continue };
            if path.links.contains(&crossed) {
                found = Some((*flow, path.links));
            }
        }
        found
    }

    fn find(&self, view: &mut View<'_>) -> Option<Move> {
        let load =
            |view: &View<'_>, link: LinkId, more: u64| self.utilisation(view, link, view.links[link.index()].sent_bytes + more);
        let net = view.net;
        let has_choice = |node| net.host(node).is_none_or(|host| net.nics(host).len() > 1);
        let inner = |link: &LinkId| has_choice(net.link(*link).from) && has_choice(net.link(*link).to);
        let all = (0..net.links().len() as u32).map(LinkId).filter(inner);
        let (busy, busiest) = all.map(|link| (load(view, link, 0), link)).max_by_key(|&(load, link)| (load, Reverse(link)))?;
        if busy < self.params.threshold.0 {
            return None;
        }
        let (flow, present) = Self::largest(view, busiest)?;
        let rest = view.links[busiest.index()].sent_bytes.saturating_sub(flow.delivered_bytes);
        let left = self.utilisation(view, busiest, rest);
        let mut best: Option<(u64, u16)> = None;
        for index in (0..view.paths.count(flow.src, flow.dst)).filter(|&index| Some(index) != flow.paths[0]) {
            let Some(path) = view.paths.path(flow.src, flow.dst, index) else { continue };
            if path.links.contains(&busiest) || !is_live(net, view.routes, &path.links, flow.dst) {
                continue;
            }
            let with_flow = |link: LinkId| load(view, link, if present.contains(&link) { 0 } else { flow.delivered_bytes });
            let most = path.links.iter().copied().filter(inner).map(with_flow).max().unwrap_or(0);
            if best.is_none_or(|(least, _)| most < least) {
                best = Some((most, index));
            }
        }
        let (most, index) = best?;
        (most.max(left) < busy).then_some(Move { flow: flow.id, back: false, path: Some(index) })
    }
}

impl Controller for Rebalance {
    fn period(&self) -> Dur {
        self.params.period
    }
    fn latency(&self) -> Dur {
        self.params.latency
    }
    fn decide(&mut self, view: &mut View<'_>, moves: &mut Vec<Move>) {
        if view.now < self.settled {
            return;
        }
        if let Some(found) = self.find(view) {
            self.settled = view.now + self.params.latency + self.params.period;
            moves.push(found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::LinkState;
    use crate::net::Net;
    use crate::paths::AllPaths;
    use crate::routes::Routes;
    use crate::testing::{dead, fat_tree};
    use base::params::Params as _;
    use base::{FlowId, Given, HostId};
    use std::sync::Arc;

    const MS: u64 = 1_000_000_000;
    /// Bytes that a link of 1 Gb/s sends in 1 ms.
    const FULL: u64 = 125_000;

    /// Flows between the first two pods of a fat tree with k = 4, where path i leads over core i.
    struct Bench {
        net: Arc<Net>,
        routes: Routes,
        paths: AllPaths,
        links: Vec<LinkState>,
        flows: Vec<OpenFlow>,
        rebalance: Rebalance,
    }

    impl Bench {
        fn new(change: impl FnOnce(&mut Params)) -> Bench {
            let mut params = Params::defaults();
            change(&mut params);
            let net = fat_tree(4);
            let routes = Routes::new(&net, &[]);
            let env = Env { net: &net, routes: &routes, seed: 1, max_rtt: base::Dur::ZERO, given: Given::none() };
            assert_eq!(check(&params, &env), []);
            let rebalance = Rebalance::new(&params, &env);
            let links = vec![LinkState::default(); net.links().len()];
            let net = Arc::new(net);
            let paths = AllPaths::new(Arc::clone(&net), Arc::new(routes.clone()));
            Bench { net, routes, paths, links, flows: Vec::new(), rebalance }
        }
        /// Adds a flow that delivered this many bytes over a path; all of them crossed every link
        /// of the path.
        fn flow(&mut self, id: u32, src: u32, dst: u32, path: u16, bytes: u64) {
            let (src, dst) = (HostId(src), HostId(dst));
            for link in self.paths.path(src, dst, path).unwrap().links {
                self.links[link.index()].sent_bytes += bytes;
            }
            self.flows.push(OpenFlow { id: FlowId(id), src, dst, paths: [Some(path), None], delivered_bytes: bytes });
        }
        fn look(&mut self, now: u64) -> Vec<Move> {
            let Bench { net, routes, paths, links, flows, rebalance } = self;
            let mut moves = Vec::new();
            rebalance.decide(&mut View { now: Time(now), net, routes, paths, links, flows, path_changes: &[] }, &mut moves);
            moves
        }
    }

    fn to(flow: u32, path: u16) -> [Move; 1] {
        [Move { flow: FlowId(flow), back: false, path: Some(path) }]
    }

    #[test]
    fn the_largest_flow_leaves_the_busiest_link_for_the_least_busy_path() {
        let mut b = Bench::new(|_| ());
        // Both flows cross edge0_0->agg0_0; only the smaller one also crosses core 1.
        b.flow(0, 0, 4, 0, FULL / 2);
        b.flow(1, 1, 5, 1, FULL / 4);
        b.flow(2, 2, 6, 3, FULL / 8);
        assert_eq!(b.look(MS), to(0, 2));
    }

    #[test]
    fn ties_go_to_the_first() {
        let mut b = Bench::new(|_| ());
        b.flow(3, 0, 4, 0, FULL / 2);
        b.flow(7, 1, 5, 0, FULL / 2);
        assert_eq!(b.look(MS), to(3, 2));
    }

    #[test]
    fn nothing_moves_without_gain() {
        // The flow's path has no other load.
        let mut b = Bench::new(|_| ());
        b.flow(0, 0, 4, 0, FULL);
        assert_eq!(b.look(MS), []);
        // Every other path is equally busy.
        let mut b = Bench::new(|_| ());
        b.flow(0, 0, 4, 0, FULL / 2);
        b.flow(1, 1, 5, 1, FULL / 2);
        b.flow(2, 0, 6, 2, FULL / 2);
        b.flow(3, 1, 7, 3, FULL / 2);
        assert_eq!(b.look(MS), []);
    }

    #[test]
    fn a_link_with_room_is_not_changed() {
        let flows = |b: &mut Bench| (0..2).for_each(|i| b.flow(i, i, 4 + i, 0, FULL / 5));
        let mut b = Bench::new(|_| ());
        flows(&mut b);
        assert_eq!(b.look(MS), []);
        let mut b = Bench::new(|p| p.threshold = Fraction(400_000_000));
        flows(&mut b);
        assert_eq!(b.look(MS), to(0, 2));
    }

    #[test]
    fn dead_paths_are_no_choice() {
        let mut b = Bench::new(|_| ());
        b.routes = Routes::new(&b.net, &dead(&b.net, &["agg0_1->core2"]));
        (0..2).for_each(|i| b.flow(i, i, 4 + i, 0, FULL / 2));
        assert_eq!(b.look(MS), to(0, 3));
    }

    #[test]
    fn it_waits_until_its_move_shows() {
        let mut b = Bench::new(|p| p.latency = Dur::from_us(1500));
        (0..2).for_each(|i| b.flow(i, i, 4 + i, 0, FULL / 2));
        assert_eq!(b.look(MS).len(), 1);
        // The flow moved at 2.5 ms, and the first whole period afterwards begins at 3 ms.
        assert_eq!((b.look(2 * MS), b.look(3 * MS)), (vec![], vec![]));
        assert_eq!(b.look(4 * MS).len(), 1);
    }

    #[test]
    fn flows_without_an_index_are_left_where_they_are() {
        let mut b = Bench::new(|_| ());
        (0..2).for_each(|i| b.flow(i, i, 4 + i, 0, FULL / 2));
        b.flows[0].paths[0] = None;
        assert_eq!(b.look(MS), to(1, 2));
    }

    #[test]
    fn a_router_that_decides_at_switches_is_refused() {
        let net = fat_tree(4);
        let routes = Routes::new(&net, &[]);
        let problems = |kind, values: &[(&'static str, &str)]| {
            let values = values.iter().map(|&(key, value)| (key, value.to_owned())).collect();
            let given = Given::new(vec![base::given::GivenPart { slot: "router", kind, values }]);
            check(&Params::defaults(), &Env { net: &net, routes: &routes, seed: 1, max_rtt: base::Dur::ZERO, given: &given }).len()
        };
        assert_eq!(
            [problems("ecmp", &[("mode", "hrw")]), problems("spray", &[("mode", "round_robin")]), problems("conga", &[])],
            [0, 1, 1]
        );
    }
}

//! Routing of packets: the present paths of all flows, planned by the router or set by index while
//! the flow runs, and the next hop of a packet that carries no path.

mod named;
mod plan;
pub mod switch;

pub(crate) use plan::choose;
pub use plan::{ask_always, plan};

use crate::net::Net;
use crate::paths::{ASK_ALWAYS, AllPaths, MAX_PATHS, Path, five_tuple, is_live};
use crate::router::{AnyRouter, Decides, Duties, Made, PortAccess};
use crate::routes::Routes;
use base::{FlowId, FlowMap, HostId, LinkId, NodeId, Rng, Timers};
use named::{Known, Named, Way};
use proto::packet::{ASK, ROUTE_HOPS};
use proto::{Flow, Kind, Packet};
use std::sync::Arc;

/// The present paths of a flow, as its packets need them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// The flow's source, which sends over the first path; the destination sends over the second
    /// path.
    src: HostId,
    /// Route bytes from the source and from the destination; [`ASK_ALWAYS`] if there is no path,
    /// the path is too long, or the router decides at switches.
    routes: [[u8; ROUTE_HOPS]; 2],
}

/// The parts of a run's routing.
pub struct Parts {
    /// The network.
    pub net: Arc<Net>,
    /// The next hops while all links are up.
    pub healthy: Arc<Routes>,
    /// The next hops at the start, if some links are down then.
    pub live: Option<Routes>,
    /// The router.
    pub router: AnyRouter,
    /// The calls that the router needs.
    pub duties: Duties,
    /// Number of packet kinds of the router's own.
    pub kinds: usize,
    /// Whether packets from the destination take the cables of packets from the source.
    pub reversed: bool,
    /// The seed of the run.
    pub seed: u64,
}

/// The routing of a run's packets.
pub struct Routing {
    /// The network.
    pub net: Arc<Net>,
    /// The live next hops.
    pub routes: Arc<Routes>,
    /// The router.
    pub router: AnyRouter,
    /// The paths of the healthy network, by index.
    pub paths: AllPaths,
    /// Whether the router decides at switches, for packets from the source and for packets from the
    /// destination.
    asked: [bool; 2],
    /// Whether the router decides only by [`Router::choose`](crate::router::Router::choose) and
    /// spreads packets evenly over all live next hops.
    pub spreads_evenly: bool,
    /// Whether no link ever goes down.
    pub fixed: bool,
    /// Whether the router reads the ports of switches.
    pub reads: bool,
    /// Whether the router reads the loads of candidates.
    pub measures: bool,
    /// Whether the router may hold packets in switches.
    pub holds: bool,
    /// Whether packets from the destination take the cables of packets from the source.
    reversed: bool,
    seed: u64,
    /// The present paths, by flow.
    planned: Vec<Planned>,
    /// The first links of each flow's present paths, from the source and from the destination;
    /// empty if all hosts have one NIC.
    firsts: Vec<[LinkId; 2]>,
    /// The flows for which a path was named.
    named: FlowMap<Named>,
    /// The timers of each node, if switches have timers.
    timers: Vec<Timers>,
    /// The packets that switches have created.
    made: Vec<Made>,
    /// Number of packet kinds of the router's own.
    kinds: u8,
}

/// A named path of a flow has failed or is alive again. Reported to the part that named it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathChange {
    /// The flow.
    pub flow: FlowId,
    /// Whether the path leads from the flow's destination back to its source.
    pub back: bool,
    /// The path's index.
    pub index: u16,
    /// Whether the path is alive again. If not, it is known to be dead from now on, and the flow
    /// takes the router's path instead.
    pub alive: bool,
}

impl Routing {
    /// Returns the routing with a planned path for each of `flows`, unless the router decides at
    /// switches.
    pub fn new(parts: Parts, flows: &[Flow]) -> Routing {
        let Parts { net, healthy, live, router, duties, kinds, reversed, seed } = parts;
        let mut routing = Routing {
            paths: AllPaths::new(Arc::clone(&net), Arc::clone(&healthy)),
            routes: live.map_or(healthy, Arc::new),
            router,
            asked: [false, true].map(|back| duties.decides.at_switches(back)),
            spreads_evenly: duties.decides == Decides::Evenly,
            fixed: false,
            reads: duties.ports >= PortAccess::Reads,
            measures: duties.ports == PortAccess::Measures,
            holds: duties.holds,
            reversed,
            seed,
            planned: Vec::with_capacity(flows.len()),
            firsts: Vec::new(),
            named: FlowMap::default(),
            timers: if duties.timers { vec![Timers::default(); net.nodes().len()] } else { Vec::new() },
            made: Vec::new(),
            kinds: kinds as u8,
            net,
        };
        let several = routing.net.multi_nic_host().is_some();
        for flow in flows {
            let (planned, firsts) = routing.plan(flow);
            routing.planned.push(planned);
            routing.firsts.extend(several.then_some(firsts));
        }
        routing
    }

    /// Returns the NIC by which packets of a flow leave their host now, if paths are planned.
    pub fn first_link(&self, flow: &Flow, back: bool) -> LinkId {
        let first = self.firsts.get(flow.id.index()).map(|firsts| firsts[usize::from(back)]);
        first.unwrap_or_else(|| self.net.first_nic(flow.ends(back).0))
    }

    /// Returns whether the router decides at switches for packets in this direction.
    #[inline]
    pub fn is_asked(&self, back: bool) -> bool {
        self.asked[usize::from(back)]
    }

    /// Writes the present path of its flow into a packet that a host sends.
    #[inline(always)]
    pub fn set_out(&mut self, packet: &mut Packet, from: HostId) {
        let planned = &self.planned[packet.flow.index()];
        let back = planned.src != from;
        packet.flags |= u16::from(back) * Packet::BACK;
        packet.route = planned.routes[usize::from(back)];
    }

    /// Writes the path that [`Packet::path_tag`] names into a packet that a host sends, if that
    /// path is alive. For packets of the router's own, the router decides at every switch. Must be
    /// called after [`Routing::set_out`] if paths may be named, or if the router has kinds of its
    /// own. Returns the first link of the named path, if the packet takes that path.
    #[inline(always)]
    pub fn set_out_again(&mut self, packet: &mut Packet, flows: &[Flow]) -> Option<LinkId> {
        let mut first = None;
        if packet.path_tag > 0 || !self.named.is_empty() {
            first = self.set_out_named(packet, &flows[packet.flow.index()], packet.has(Packet::BACK));
        }
        if self.is_own(packet) {
            packet.route = ASK_ALWAYS;
        }
        first
    }

    #[inline(never)]
    fn set_out_named(&mut self, packet: &mut Packet, flow: &Flow, back: bool) -> Option<LinkId> {
        if self.is_asked(back) {
            return None; // The router uses the field.
        }
        if packet.path_tag > 0
            && let Some(way) = self.know(flow, back, packet.path_tag)
            && way.alive
        {
            (packet.route, packet.path_tag) = (way.route, way.shown);
            return Some(way.first);
        }
        packet.path_tag = self.named.get(flow.id).map_or(0, |named| named.tags[usize::from(back)]);
        None
    }

    /// Sets the path of a flow's packets in one direction to the path with this index, or with
    /// `None` to the path that the router plans. The setting is kept when routes change; while the
    /// path is known to be dead the flow takes the router's path. Returns `false` if the path is
    /// not taken now: it is dead, no path has the index, the router decides at switches, or the
    /// direction follows the other direction.
    pub fn set(&mut self, flow: &Flow, back: bool, index: Option<u16>) -> bool {
        if self.is_asked(back) || back && self.reversed {
            return false;
        }
        let alive = match index {
            Some(index) if u32::from(index) >= MAX_PATHS => None,
            Some(index) => self.know(flow, back, index + 1).map(|way| way.alive),
            None => Some(true),
        };
        let Some(alive) = alive else { return false };
        self.named(flow).set[usize::from(back)] = index;
        self.refresh(flow);
        alive
    }

    /// Sets the path of a flow to a live path other than the present one, each with equal
    /// probability. Returns its index, or `None` if no other path is alive.
    pub fn request(&mut self, flow: &Flow, back: bool) -> Option<u16> {
        if self.is_asked(back) || back && self.reversed {
            return None;
        }
        let present = self.present(flow, back);
        let (src, dst) = flow.ends(back);
        let mut others: Vec<u16> = (0..self.paths.count(src, dst)).filter(|&index| Some(index) != present).collect();
        others.retain(|&index| self.path(flow, back, index).is_some_and(|path| is_live(&self.net, &self.routes, &path.links, dst)));
        let named = self.named(flow);
        let indices = [u64::from(flow.id.0), u64::from(back), named.requests];
        named.requests += 1;
        if others.is_empty() {
            return None;
        }
        let index = others[Rng::stream(self.seed, "paths/request", &indices).below(others.len() as u64) as usize];
        self.set(flow, back, Some(index)).then_some(index)
    }

    /// Returns the index of the path that packets of a flow take now; `None` if it has no index, or
    /// the router decides at switches.
    pub fn present(&mut self, flow: &Flow, back: bool) -> Option<u16> {
        // If one direction follows the other, both use the indices of the forward direction.
        let back = back && !self.reversed;
        if let Some(index) = self.named.get(flow.id).and_then(|named| named.live(back)) {
            return Some(index);
        }
        let (_, dst) = flow.ends(back);
        let (mut link, mut links) = (self.first_link(flow, back), Vec::new());
        for port in self.planned[flow.id.index()].routes[usize::from(back)].into_iter().map(Some).chain([None]) {
            links.push(link);
            let to = self.net.link(link).to;
            if self.net.host(to).is_some() {
                break;
            }
            link = LinkId(self.net.out_base(to) + u32::from(port.filter(|&port| port != ASK)?));
        }
        self.paths.index(&links, dst)
    }

    /// Returns whether [`Routing::links`] knows the links of packets in this direction: the router
    /// plans paths, or spreads packets evenly.
    pub fn has_links(&self, back: bool) -> bool {
        !self.is_asked(back) || self.spreads_evenly
    }

    /// Returns the fraction of a flow's packets that take each link now, in a direction whose
    /// [links are known](Routing::has_links). `None`: there is no path, or the path ends at a node
    /// without a next hop.
    pub fn links(&mut self, flow: &Flow, back: bool) -> Option<Vec<(LinkId, f64)>> {
        let (src, dst) = flow.ends(back);
        if self.is_asked(back) {
            return self.routes.spread_evenly(&self.net, src, dst);
        }
        let mut packet = Packet::new(flow.id, Kind::DATA, 0);
        self.set_out(&mut packet, src);
        packet.path_tag = self.named.get(flow.id).map_or(0, |named| named.tags[usize::from(back)]);
        let mut link = match self.routes.candidates(self.net.hosts()[src.index()], dst) {
            [] => return None,
            [only] => *only,
            _ => self.first_link(flow, back),
        };
        let mut links = vec![(link, 1.0)];
        loop {
            let at = self.net.link(link).to;
            if self.net.host(at).is_some() {
                return Some(links);
            }
            link = match packet.route[0] {
                ASK => self.planned_hop(flow, &packet, at)?,
                port => LinkId(self.net.out_base(at) + u32::from(port)),
            };
            links.push((link, 1.0));
            packet.step();
        }
    }

    /// Returns the next link from `at` of a packet whose route bytes do not name it, if the router
    /// does not decide at switches: the path is too long for route bytes, the planned path is dead,
    /// or a switch has created the packet. `None`: no link leads to the destination.
    pub fn planned_hop(&mut self, flow: &Flow, packet: &Packet, at: NodeId) -> Option<LinkId> {
        let back = packet.has(Packet::BACK);
        let (_, dst) = flow.ends(back);
        if let Some(index) = packet.path_tag.checked_sub(1)
            && let Some(path) = self.path(flow, back, index)
            && let Some(&link) = path.links.iter().find(|&&link| self.net.link(link).from == at)
            && self.routes.candidates(at, dst).contains(&link)
        {
            return Some(link);
        }
        if back
            && self.reversed
            && let Some(link) = self.reversed_hop(flow, at)
        {
            return Some(link);
        }
        choose(&self.routes, &mut self.router, || five_tuple(&self.net, flow, !back), at, dst)
    }

    /// Returns the next link from `at` on the reverse of the path that the router plans for a flow;
    /// `None` if `at` is not on that path, or there is no choice.
    #[cold]
    fn reversed_hop(&mut self, flow: &Flow, at: NodeId) -> Option<LinkId> {
        if self.asked[0] || self.routes.candidates(at, flow.src).len() < 2 {
            return None;
        }
        let Routing { net, routes, router, .. } = self;
        let there = plan(net, routes, router, &five_tuple(net, flow, true), flow.src, flow.dst).ok()?;
        there.links.iter().find(|&&link| net.link(link).to == at).map(|&link| net.link(link).reverse)
    }

    /// Installs new routes. Flows that are not done get the paths that they would get now, except
    /// for set paths that are alive. A switch whose set of next hops changed hashes its flows
    /// again, so some flows move although their path is alive (RFC 2992). Paths of other source
    /// ports are planned again when a packet names them. Returns which named paths have failed or
    /// are alive again.
    #[cold]
    pub fn reroute(&mut self, routes: Arc<Routes>, flows: &[Flow], is_done: impl Fn(FlowId) -> bool) -> Vec<PathChange> {
        self.routes = routes;
        let mut path_changes = Vec::new();
        for flow in flows.iter().filter(|flow| !is_done(flow.id)) {
            for place in 0..self.named.get(flow.id).map_or(0, |named| named.known.len()) {
                path_changes.extend(self.look_again(flow, place));
            }
            self.forget_ports(flow.id);
            self.refresh(flow);
        }
        path_changes
    }

    /// Discards the paths of a flow's other source ports. They are planned again when a packet names
    /// them.
    pub fn forget_ports(&mut self, flow: FlowId) {
        if let Some(named) = self.named.get_mut(flow) {
            named.forget_ports();
        }
    }

    /// Checks a path that was named by index against the present routes. Returns a change if the
    /// path has failed or is alive again.
    fn look_again(&mut self, flow: &Flow, place: usize) -> Option<PathChange> {
        let Known { back, index, way: before } = self.named.get(flow.id)?.known[place];
        let way = self.look(flow, back, index + 1)?;
        self.named.get_mut(flow.id)?.known[place].way = way;
        let change = PathChange { flow: flow.id, back, index, alive: way.alive };
        (way.alive != before.alive).then_some(change)
    }

    /// Returns the present meaning of a path tag; `None` if no path has the index.
    fn look(&mut self, flow: &Flow, back: bool, tag: u16) -> Option<Way> {
        if let Some(port) = tag.checked_sub(Packet::BY_PORT) {
            let dead = Way { shown: 0, first: self.first_link(flow, back), route: ASK_ALWAYS, alive: false };
            let Some((path, index)) = self.path_of_port(flow, back, port) else { return Some(dead) };
            let shown = index.map_or(0, |index| index + 1);
            return Some(Way { shown, first: path.links[0], route: path.route.unwrap_or(ASK_ALWAYS), alive: true });
        }
        let path = self.path(flow, back, tag - 1)?;
        let alive = is_live(&self.net, &self.routes, &path.links, flow.ends(back).1);
        Some(Way { shown: tag, first: path.links[0], route: path.route.unwrap_or(ASK_ALWAYS), alive })
    }

    /// Returns the path that the router plans for another source port of a flow, and the path's
    /// index if it has one.
    fn path_of_port(&mut self, flow: &Flow, back: bool, port: u16) -> Option<(Path, Option<u16>)> {
        // In the way in which the ports of flows are drawn.
        let indices = [u64::from(flow.id.0), u64::from(port)];
        let own = 1024 + Rng::stream(self.seed, "paths/port", &indices).below(65_536 - 1024) as u16;
        let there = !back || self.reversed;
        let (src, dst) = flow.ends(!there);
        let mut tuple = five_tuple(&self.net, flow, there);
        *(if there { &mut tuple.src_port } else { &mut tuple.dst_port }) = own;
        let path = plan(&self.net, &self.routes, &mut self.router, &tuple, src, dst).ok()?;
        // If one direction follows the other, both use the indices of the forward direction.
        let index = self.paths.index(&path.links, dst);
        Some((if back && self.reversed { path.reversed(&self.net) } else { path }, index))
    }

    /// Returns the path of a flow with this index. If one direction follows the other, both use the
    /// indices of the forward direction.
    fn path(&mut self, flow: &Flow, back: bool, index: u16) -> Option<Path> {
        if back && self.reversed {
            return Some(self.paths.path(flow.src, flow.dst, index)?.reversed(&self.net));
        }
        let (src, dst) = flow.ends(back);
        self.paths.path(src, dst, index)
    }

    fn named(&mut self, flow: &Flow) -> &mut Named {
        self.named.or_insert_with(flow.id, Named::default)
    }

    /// Returns the path that a tag names; `None` if no path has the index.
    #[inline]
    fn know(&mut self, flow: &Flow, back: bool, tag: u16) -> Option<Way> {
        let known = self.named.get(flow.id).and_then(|named| named.find(back, tag));
        if known.is_some() { known } else { self.learn(flow, back, tag) }
    }

    /// Records a path that is named by its tag for the first time, or by port for the first time
    /// since routes changed.
    #[cold]
    #[inline(never)]
    fn learn(&mut self, flow: &Flow, back: bool, tag: u16) -> Option<Way> {
        let way = self.look(flow, back, tag)?;
        let fresh = !self.named.contains(flow.id);
        self.named(flow).insert(back, tag, way);
        if fresh {
            self.retag(flow);
        }
        Some(way)
    }

    /// Gives a flow the paths that were set and are alive, otherwise the paths that the router
    /// plans.
    fn refresh(&mut self, flow: &Flow) {
        let (mut planned, mut firsts) = self.plan(flow);
        for back in [false, true] {
            let Some(index) = self.named.get(flow.id).and_then(|named| named.live(back)) else { continue };
            let mut set = |routing: &mut Routing, back| {
                let path = routing.path(flow, back, index);
                firsts[usize::from(back)] = path.as_ref().map_or(firsts[usize::from(back)], |path| path.links[0]);
                planned.routes[usize::from(back)] = path.and_then(|path| path.route).unwrap_or(ASK_ALWAYS);
            };
            set(self, back);
            if self.reversed && !self.asked[1] {
                set(self, true);
            }
        }
        self.planned[flow.id.index()] = planned;
        if let Some(before) = self.firsts.get_mut(flow.id.index()) {
            *before = firsts;
        }
        if self.named.contains(flow.id) {
            self.retag(flow);
        }
    }

    /// Updates the path tags of packets on the present paths.
    fn retag(&mut self, flow: &Flow) {
        let tags = [false, true].map(|back| self.present(flow, back).map_or(0, |index| index + 1));
        if let Some(named) = self.named.get_mut(flow.id) {
            named.tags = tags;
        }
    }

    /// Returns the paths that the router gives a flow, and their first links: the first NIC if
    /// there is no path or the router decides at switches.
    fn plan(&mut self, flow: &Flow) -> (Planned, [LinkId; 2]) {
        let Routing { net, routes, router, asked, reversed, .. } = self;
        let mut plan = |forward, src, dst| plan(net, routes, router, &five_tuple(net, flow, forward), src, dst).ok();
        let there = if asked[0] { None } else { plan(true, flow.src, flow.dst) };
        let back = match &there {
            _ if asked[1] => None,
            Some(there) if *reversed => Some(there.reversed(net)),
            _ => plan(false, flow.dst, flow.src),
        };
        let first = |path: &Option<Path>, host| path.as_ref().map_or(net.first_nic(host), |path| path.links[0]);
        let firsts = [first(&there, flow.src), first(&back, flow.dst)];
        let routes = [there, back].map(|path| path.and_then(|path| path.route).unwrap_or(ASK_ALWAYS));
        (Planned { src: flow.src, routes }, firsts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::NetBuilder;
    use crate::router::spray::Spray;
    use crate::testing::{DELAY, GBPS, dead, ecmp, fat_tree, flow, leaf_spine};

    /// Flows from host 0 to host 4 under ECMP.
    struct Bench {
        routing: Routing,
        flows: Vec<Flow>,
    }

    impl Bench {
        fn new(net: Net, dst: u32, reversed: bool) -> Bench {
            let port = |i: u32| Flow { id: FlowId(i), ..flow(0, dst, 2000 + 97 * i as u16) };
            let flows: Vec<Flow> = (0..32).map(port).collect();
            let healthy = Arc::new(Routes::new(&net, &[]));
            let (router, duties) = (AnyRouter::Ecmp(ecmp()), Duties::PLAN);
            let parts = Parts { net: Arc::new(net), healthy, live: None, router, duties, kinds: 0, reversed, seed: 1 };
            Bench { routing: Routing::new(parts, &flows), flows }
        }
        /// Returns a flow that the router sends over the path with this index.
        fn flow_on(&mut self, index: u16) -> usize {
            (0..32).find(|&i| self.routing.present(&self.flows[i], false) == Some(index)).expect("32 flows take all of 4 paths")
        }
        fn fail(&mut self, names: &[&str]) -> Vec<PathChange> {
            let routes = Routes::new(&self.routing.net, &dead(&self.routing.net, names));
            self.routing.reroute(Arc::new(routes), &self.flows, |_| false)
        }
        /// Returns a packet as it leaves its host, which named this path.
        fn packet(&mut self, flow: usize, back: bool, path_tag: u16) -> Packet {
            let mut packet = Packet { path_tag, ..Packet::new(FlowId(flow as u32), Kind::DATA, 1500) };
            let from = self.flows[flow].ends(back).0;
            self.routing.set_out(&mut packet, from);
            self.routing.set_out_again(&mut packet, &self.flows);
            assert_eq!(packet.has(Packet::BACK), back);
            packet
        }
        /// Returns the names of the switches that a packet crosses; the router decides where the
        /// route bytes say so.
        fn crossed(&mut self, mut packet: Packet) -> Vec<String> {
            let (flow, net) = (&self.flows[packet.flow.index()], Arc::clone(&self.routing.net));
            let (src, dst) = flow.ends(packet.has(Packet::BACK));
            let (mut at, mut names) = (net.link(net.first_nic(src)).to, Vec::new());
            while net.host(at) != Some(dst) {
                names.push(net.node(at).name.clone());
                let port = packet.route[0];
                packet.step();
                at = match port {
                    ASK => net.link(self.routing.planned_hop(flow, &packet, at).expect("a way on")).to,
                    port => net.link(LinkId(net.out_base(at) + u32::from(port))).to,
                };
            }
            names
        }
        fn core(&mut self, flow: usize, back: bool, path_tag: u16) -> String {
            let packet = self.packet(flow, back, path_tag);
            self.crossed(packet)[2].clone()
        }
    }

    /// Switches in a row, with two parallel switches between each two of them: paths of 2 n + 1
    /// switches.
    fn diamonds(n: usize) -> Net {
        let mut b = NetBuilder::default();
        let hosts = [b.host("h0", None), b.host("h1", None)];
        let row: Vec<NodeId> = (0..=n).map(|i| b.switch(format!("s{i}"), 1)).collect();
        b.cable(hosts[0], row[0], GBPS, DELAY);
        b.cable(hosts[1], row[n], GBPS, DELAY);
        for (i, ends) in row.windows(2).enumerate() {
            for side in ["a", "b"] {
                let middle = b.switch(format!("{side}{i}"), 1);
                ends.iter().for_each(|&end| b.cable(end, middle, GBPS, DELAY));
            }
        }
        b.build()
    }

    /// Packets of both directions cross the same switches whichever cable fails, even if the path
    /// is too long for route bytes.
    #[test]
    fn the_way_back_follows_the_way_there_after_any_single_failure() {
        for (net, dst, cables) in [(fat_tree(4), 4, 48), (leaf_spine(4, 3, 2), 7, 20), (diamonds(4), 1, 18)] {
            let links: Vec<(String, String)> = (0..net.links().len() as u32)
                .map(|link| [LinkId(link), net.link(LinkId(link)).reverse])
                .filter(|[there, back]| there < back)
                .map(|[there, back]| (net.link_name(there), net.link_name(back)))
                .collect();
            assert_eq!(links.len(), cables);
            let mut b = Bench::new(net, dst, true);
            for (there, back) in &links {
                b.fail(&[there, back]);
                for flow in 0..b.flows.len() {
                    let (there, back) = (b.packet(flow, false, 0), b.packet(flow, true, 0));
                    let connected = b.routing.routes.distance(b.routing.net.hosts()[0], HostId(dst)).is_some();
                    if connected {
                        let mut crossed = b.crossed(there);
                        crossed.reverse();
                        assert_eq!(b.crossed(back), crossed);
                    }
                }
            }
        }
    }

    /// Path i of a fat tree with k = 4 crosses core i.
    const CORE: [[&str; 2]; 4] = [
        ["agg0_0->core0", "core0->agg1_0"],
        ["agg0_0->core1", "core1->agg1_0"],
        ["agg0_1->core2", "core2->agg1_1"],
        ["agg0_1->core3", "core3->agg1_1"],
    ];

    #[test]
    fn packets_say_nothing_until_somebody_names_a_path() {
        let mut b = Bench::new(fat_tree(4), 4, false);
        let f = b.flow_on(2);
        assert_eq!((b.packet(f, false, 0).path_tag, b.core(f, false, 0)), (0, "core2".to_owned()));
        assert!(b.routing.set(&b.flows[f].clone(), false, Some(1)));
        assert_eq!((b.packet(f, false, 0).path_tag, b.core(f, false, 0)), (2, "core1".to_owned()));
        let other = b.flow_on(3);
        assert_eq!(b.packet(other, false, 0).path_tag, 0, "another flow");
    }

    /// The path for a named source port is the path that the router plans for a flow with that
    /// port, whatever path is set for the flow itself. It is planned again when routes change.
    #[test]
    fn packets_may_ask_for_the_path_of_another_port() {
        for (back, reversed) in [(false, false), (true, false), (true, true)] {
            let mut b = Bench::new(fat_tree(4), 4, reversed);
            let tags = || 1..40;
            let paths = |b: &mut Bench| tags().map(|n| b.packet(7, back, Packet::BY_PORT + n)).collect::<Vec<_>>();
            let before = paths(&mut b);
            for packet in &before {
                assert_eq!(b.crossed(*packet)[2], format!("core{}", packet.path_tag - 1));
            }
            let on = |packets: &[Packet], index: u16| packets.iter().filter(|packet| packet.path_tag == index + 1).count();
            assert!((0..4).all(|index| (4..=16).contains(&on(&before, index))), "{before:?}");
            b.routing.set(&b.flows[7].clone(), false, Some(1));
            assert_eq!(paths(&mut b), before);
            // No change is reported: the flow has not named a path by index, and has a path.
            let cable: Vec<&str> = ["agg0_1->core2", "core2->agg0_1", "agg1_1->core2", "core2->agg1_1"].to_vec();
            assert_eq!(b.fail(&cable), []);
            let moved = paths(&mut b);
            assert_eq!(on(&moved, 2), 0);
            assert!(
                before.iter().zip(&moved).all(|(old, new)| old.path_tag == 3 || old.path_tag == new.path_tag || old.path_tag == 4)
            );
            b.fail(&[]);
            assert_eq!(paths(&mut b), before);
        }
    }

    /// A flow has hundreds of entropy values. Their packets are lost on a dead path until the new
    /// routes are installed, and then each value is planned again when a packet carries it.
    #[test]
    fn paths_of_ports_are_planned_when_packets_name_them() {
        let mut b = Bench::new(fat_tree(4), 4, false);
        let name = |b: &mut Bench, n: u16| b.packet(3, false, Packet::BY_PORT + n).path_tag;
        let known = |b: &Bench| {
            let named = b.routing.named.get(FlowId(3)).unwrap();
            (0..256).filter(|n| named.find(false, Packet::BY_PORT + n).is_some()).collect::<Vec<_>>()
        };
        let before: Vec<u16> = (0..256).map(|n| name(&mut b, n)).collect();
        assert!((1..=4).all(|tag| (40..=90).contains(&before.iter().filter(|&&on| on == tag).count())), "{before:?}");
        assert_eq!((0..256).map(|n| name(&mut b, n)).collect::<Vec<_>>(), before);
        assert_eq!(known(&b).len(), 256);
        let dead: Vec<u16> = (0..256).filter(|&n| before[usize::from(n)] == 3).collect();
        b.fail(&CORE[2]);
        assert_eq!(known(&b), []);
        assert_ne!(name(&mut b, dead[5]), 3);
        assert_eq!(known(&b), [dead[5]]);
        assert!(dead.iter().all(|&n| name(&mut b, n) != 3));
        b.routing.forget_ports(FlowId(3));
        assert_eq!(known(&b), []);
    }

    #[test]
    fn a_set_path_outlives_a_change_of_routes_and_can_be_unset() {
        let mut b = Bench::new(fat_tree(4), 4, false);
        let f = b.flow_on(2);
        let flow = b.flows[f].clone();
        b.routing.set(&flow, false, Some(1));
        assert_eq!(b.fail(&CORE[2]), []);
        assert_eq!(b.core(f, false, 0), "core1");
        b.fail(&[]);
        assert!(b.routing.set(&flow, false, None));
        assert_eq!(b.core(f, false, 0), "core2");
    }

    #[test]
    fn a_dead_path_falls_back_and_returns_with_its_link() {
        let mut b = Bench::new(fat_tree(4), 4, false);
        let f = b.flow_on(2);
        let flow = b.flows[f].clone();
        b.routing.set(&flow, false, Some(1));
        let change = |alive| PathChange { flow: flow.id, back: false, index: 1, alive };
        assert_eq!(b.fail(&CORE[1]), [change(false)]);
        let planned = b.core(f, false, 0);
        assert_ne!(planned, "core1");
        // Indices are those of the healthy network.
        let tag = b.packet(f, false, 0).path_tag;
        assert_eq!(planned, format!("core{}", tag - 1));
        assert_eq!(b.fail(&[]), [change(true)]);
        assert_eq!((b.core(f, false, 0), b.routing.present(&flow, false)), ("core1".to_owned(), Some(1)));
        // The path is already dead when it is set.
        b.fail(&CORE[3]);
        assert!(!b.routing.set(&flow, false, Some(3)));
        assert_ne!(b.core(f, false, 0), "core3");
        b.fail(&[]);
        assert_eq!(b.core(f, false, 0), "core3");
    }

    #[test]
    fn a_sender_asks_for_paths_packet_by_packet() {
        let mut b = Bench::new(fat_tree(4), 4, false);
        let f = b.flow_on(2);
        for (tag, core) in [(1, "core0"), (4, "core3"), (2, "core1")] {
            assert_eq!((b.packet(f, false, tag).path_tag, b.core(f, false, tag)), (tag, core.to_owned()));
        }
        // The present path, and an index that does not exist: packets carry the tag of the path
        // they take.
        assert_eq!([0, 5, 300].map(|tag| b.packet(f, false, tag).path_tag), [3; 3]);
        let change = |index, alive| PathChange { flow: FlowId(f as u32), back: false, index, alive };
        assert_eq!(b.fail(&CORE[3]), [change(3, false)]);
        assert_eq!((b.packet(f, false, 4).path_tag, b.core(f, false, 4)), (3, "core2".to_owned()));
        assert_eq!(b.fail(&[]), [change(3, true)]);
        assert_eq!(b.core(f, false, 4), "core3");
    }

    #[test]
    fn the_two_directions_are_apart_unless_what_comes_back_follows() {
        let mut b = Bench::new(fat_tree(4), 4, false);
        let flow = b.flows[0].clone();
        let back = b.core(0, true, 0);
        b.routing.set(&flow, false, Some(3));
        assert_eq!((b.core(0, false, 0), b.core(0, true, 0)), ("core3".to_owned(), back));
        b.routing.set(&flow, true, Some(0));
        assert_eq!((b.core(0, false, 0), b.core(0, true, 0)), ("core3".to_owned(), "core0".to_owned()));

        let mut b = Bench::new(fat_tree(4), 4, true);
        assert!(b.routing.set(&flow, false, Some(3)) && !b.routing.set(&flow, true, Some(0)));
        assert_eq!((b.core(0, false, 0), b.core(0, true, 0), b.packet(0, true, 0).path_tag), ("core3".into(), "core3".into(), 4));
        assert_eq!([1, 2, 3].map(|tag| b.core(0, true, tag)), ["core0", "core1", "core2"]);
    }

    #[test]
    fn a_request_finds_another_live_path() {
        let mut b = Bench::new(fat_tree(4), 4, false);
        b.fail(&CORE[0]);
        let mut counts = [0; 4];
        for flow in b.flows.clone().iter().cycle().take(320) {
            let before = b.routing.present(flow, false);
            let index = b.routing.request(flow, false).expect("three paths are alive");
            assert!(Some(index) != before && b.routing.present(flow, false) == Some(index));
            counts[usize::from(index)] += 1;
        }
        assert!(counts[0] == 0 && counts[1..].iter().all(|&n| n > 70), "{counts:?}");
        let mut near = Bench::new(fat_tree(4), 1, false);
        assert_eq!(near.routing.request(&near.flows[0].clone(), false), None, "there is one path");
    }

    /// Eight switches in a row with two cables between neighbours: no path has route bytes.
    #[test]
    fn long_paths_are_taken_hop_by_hop() {
        let mut b = NetBuilder::default();
        let ends = [b.host("h0", None), b.host("h1", None)];
        let switches: Vec<NodeId> = (0..8).map(|i| b.switch(format!("s{i}"), 1)).collect();
        b.cable(ends[0], switches[0], GBPS, DELAY);
        for pair in switches.windows(2) {
            (0..2).for_each(|_| b.cable(pair[0], pair[1], GBPS, DELAY));
        }
        b.cable(switches[7], ends[1], GBPS, DELAY);
        let mut b = Bench::new(b.build(), 1, false);
        let flow = b.flows[0].clone();
        assert_eq!(b.routing.present(&flow, false), None);
        assert!(b.routing.set(&flow, false, Some(0b101_0011)));
        let packet = b.packet(0, false, 0);
        assert_eq!((packet.route, packet.path_tag), (ASK_ALWAYS, 0b101_0100));
        let links = b.routing.paths.path(flow.src, flow.dst, 0b101_0011).unwrap().links;
        for &link in &links[1..] {
            assert_eq!(b.routing.planned_hop(&flow, &packet, b.routing.net.link(link).from), Some(link));
        }
        // The lower of the two cables from the fourth switch is on the path, and fails: the
        // parallel cable is used there.
        let cut = links[4];
        let gone: Vec<bool> = (0..b.routing.net.links().len()).map(|link| link == cut.index()).collect();
        let routes = Routes::new(&b.routing.net, &gone);
        assert_eq!(b.routing.reroute(Arc::new(routes), &b.flows, |_| false).len(), 1);
        let next = b.routing.planned_hop(&flow, &packet, b.routing.net.link(cut).from).unwrap();
        assert!(next != cut && b.routing.net.link(next).to == b.routing.net.link(cut).to);
        assert_eq!(b.packet(0, false, 0).path_tag, 0, "the path that it takes now has no index that the host knows");
    }

    /// Two hosts with two NICs each, at the two switches of their leaf pairs, below two spines.
    fn two_nics() -> Net {
        let mut b = NetBuilder::default();
        let hosts = [b.host("h0", None), b.host("h1", None)];
        let leaves: Vec<NodeId> = (0..4).map(|i| b.switch(format!("leaf{i}"), 1)).collect();
        let spines = [b.switch("spine0", 2), b.switch("spine1", 2)];
        for (host, pair) in hosts.into_iter().zip(leaves.chunks(2)) {
            pair.iter().for_each(|&leaf| b.cable(host, leaf, GBPS, DELAY));
        }
        for &leaf in &leaves {
            spines.iter().for_each(|&spine| b.cable(leaf, spine, GBPS, DELAY));
        }
        b.build()
    }

    /// Returns the names of the first links of a packet that a host sends: the NIC, then the
    /// switches on the path.
    fn way(b: &mut Bench, flow: usize, back: bool, path_tag: u16) -> String {
        let (own, net) = (b.flows[flow].clone(), Arc::clone(&b.routing.net));
        let mut packet = Packet { path_tag, ..Packet::new(own.id, Kind::DATA, 1500) };
        b.routing.set_out(&mut packet, own.ends(back).0);
        let named = b.routing.set_out_again(&mut packet, &b.flows);
        let mut names = vec![net.link_name(named.unwrap_or(b.routing.first_link(&own, back)))];
        let mut at = net.link(named.unwrap_or(b.routing.first_link(&own, back))).to;
        for port in packet.route.into_iter().take(3) {
            let link = net.link(LinkId(net.out_base(at) + u32::from(port)));
            names.push(net.node(link.to).name.clone());
            at = link.to;
        }
        names.join(" ")
    }

    #[test]
    fn a_path_begins_with_a_nic() {
        for reversed in [false, true] {
            let mut b = Bench::new(two_nics(), 1, reversed);
            // Paths are numbered by NIC, spine, and leaf at the other end.
            let flow = b.flows[0].clone();
            assert_eq!(b.routing.paths.count(flow.src, flow.dst), 8);
            let nics = [0, 1].map(|nic| (0..32).filter(|&f| b.routing.first_link(&b.flows[f], false) == LinkId(nic)).count());
            assert!(nics[0] + nics[1] == 32 && nics.iter().all(|nic| *nic > 8), "{nics:?}");
            for (tag, there) in
                [(1, "h0->leaf0 spine0 leaf2 h1"), (4, "h0->leaf0 spine1 leaf3 h1"), (5, "h0->leaf1 spine0 leaf2 h1")]
            {
                assert_eq!(way(&mut b, 0, false, tag), there);
                assert!(b.routing.set(&flow, false, Some(tag - 1)));
                assert_eq!((way(&mut b, 0, false, 0), b.routing.present(&flow, false)), (there.to_owned(), Some(tag - 1)));
                let links = b.routing.links(&flow, false).unwrap();
                assert_eq!(links[0], (b.routing.first_link(&flow, false), 1.0));
            }
            if reversed {
                assert_eq!(way(&mut b, 0, true, 0), "h1->leaf2 spine0 leaf1 h0");
            }
        }
    }

    #[test]
    fn a_dead_nic_is_no_next_hop() {
        let mut b = Bench::new(two_nics(), 1, false);
        let on = |b: &Bench, back, link: &str| {
            let link = b.routing.net.link_named(link).unwrap();
            b.flows.iter().filter(|flow| b.routing.first_link(flow, back) == link).count()
        };
        let before: Vec<LinkId> = b.flows.iter().map(|flow| b.routing.first_link(flow, false)).collect();
        let flow = b.flows[0].clone();
        assert!(b.routing.set(&flow, false, Some(0)));
        let notices = b.fail(&["h0->leaf0", "leaf0->h0"]);
        assert_eq!(notices, [PathChange { flow: flow.id, back: false, index: 0, alive: false }]);
        assert_eq!((on(&b, false, "h0->leaf0"), on(&b, false, "h0->leaf1")), (0, 32));
        // Packets to the host arrive through the other leaf.
        assert!((0..32).all(|f| way(&mut b, f, true, 0).ends_with("leaf1 h0")));
        b.fail(&[]);
        b.routing.set(&flow, false, None);
        assert_eq!(b.flows.iter().map(|flow| b.routing.first_link(flow, false)).collect::<Vec<_>>(), before);
    }

    #[test]
    fn a_router_that_is_asked_has_the_field_to_itself() {
        let mut b = Bench::new(fat_tree(4), 4, false);
        b.routing.asked = [true, false];
        let flow = b.flows[0].clone();
        assert!(!b.routing.set(&flow, false, Some(1)) && b.routing.request(&flow, false).is_none());
        assert_eq!(b.packet(0, false, 0x8123).path_tag, 0x8123);
        assert!(b.routing.set(&flow, true, Some(1)));
    }

    #[test]
    fn packets_of_the_routers_own_ask_at_every_switch() {
        let mut b = Bench::new(fat_tree(4), 4, false);
        b.routing.kinds = 2;
        let route = |b: &mut Bench, kind| {
            let mut packet = Packet::new(FlowId(0), kind, 64);
            b.routing.set_out(&mut packet, HostId(0));
            b.routing.set_out_again(&mut packet, &b.flows);
            packet.route
        };
        assert_eq!([0, 1].map(|own| route(&mut b, Kind(Kind::ROUTER + own))), [ASK_ALWAYS; 2]);
        assert!([Kind::DATA, Kind(Kind::ROUTER - 1), Kind(Kind::ROUTER + 2)].iter().all(|&kind| route(&mut b, kind) != ASK_ALWAYS));
    }

    /// With spraying: the router decides at the edge switch and the aggregation switch; if links
    /// may fail, also at the three switches after them.
    #[test]
    fn switches_without_a_choice_are_not_asked_where_no_link_dies() {
        let net = fat_tree(4);
        let flows = [flow(0, 12, 2000)];
        for fixed in [false, true] {
            let spray = Spray::RoundRobin(vec![0; net.links().len()]);
            let duties = Duties { decides: Decides::Evenly, ..Duties::PLAN };
            let (healthy, router) = (Arc::new(Routes::new(&net, &[])), AnyRouter::Spray(spray));
            let parts =
                Parts { net: Arc::new(net.clone()), healthy, live: None, router, duties, kinds: 0, reversed: false, seed: 1 };
            let mut routing = Routing { fixed, ..Routing::new(parts, &flows) };
            let mut packet = Packet::new(FlowId(0), Kind::DATA, 1500);
            routing.set_out(&mut packet, flows[0].src);
            let (mut at, mut asked) = (net.link(net.first_nic(flows[0].src)).to, 0);
            while net.host(at).is_none() {
                let byte = packet.route[0];
                packet.step();
                let link = if byte == ASK {
                    asked += 1;
                    routing.chosen_hop(&flows[0], &mut packet, at).expect("all links are up")
                } else {
                    LinkId(net.out_base(at) + u32::from(byte))
                };
                at = net.link(link).to;
            }
            assert_eq!((net.host(at), asked), (Some(flows[0].dst), if fixed { 2 } else { 5 }));
        }
    }
}

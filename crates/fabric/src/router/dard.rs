//! DARD's switches: they count the elephants that leave through each port, and report the numbers
//! to hosts that query them. Paths are those of ECMP.
//!
//! Source: Wu and Yang, "DARD: Distributed Adaptive Routing for Datacenter Networks", ICDCS 2012.
//! The hosts that send queries have the policy `dard`.
//!
//! A query that names this switch ends here, and a reply with the numbers of elephants is sent to
//! the querying host, on the path that ECMP gives it. All other packets are routed as under `ecmp`,
//! with its parameters, or as their hosts specify.
//!
//! Model: a switch replies without delay.
//!
//! Assumed:
//! - A switch recognizes elephants by data packets that name their path: hosts set a path for
//!   elephants, and for no other flow. Where other parts of a system name paths, those flows count
//!   as well.
//! - An elephant that has sent nothing through a port for `expiry` is no longer counted there. 100
//!   ms are longer than a retransmission timeout, and short compared with the polling period, so
//!   that elephants that have moved away are forgotten in time.
//! - Once a switch has detected (`detect`) that one of its links is dead, its replies say so at
//!   once.

use super::ecmp::{self, Params as EcmpParams};
use super::{Duties, Env, PortAccess, Router, SwitchCx, needs_one_nic};
use crate::paths::FiveTuple;
use base::params::Problem;
use base::registry::Meta;
use base::{Dur, FlowId, FlowMap, LinkId, NodeId, Time};
use proto::policy::dard::{DOWN, PORTS, QUERY, Query, REPLY, Reply};
use proto::{Kind, Packet};

/// The description of this entry, for `list`, `explain` and `check`.
pub const META: Meta = Meta {
    summary: "DARD's switches: ECMP, and replies to hosts that query the number of elephants",
    source: "Wu and Yang, ICDCS 2012",
    kinds: &["dard_query", "dard_reply"],
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of DARD's switches.
    pub struct Params {
        ..ecmp: EcmpParams {}
        /// An elephant that has sent nothing for this long is not counted.
        expiry: Dur = "100ms" in Dur::from_us(1)..=Dur::from_secs(1000), "flowloom: longer than a retransmission timeout, short compared with the polling period";
        /// Size of a reply on the wire.
        reply_bytes: u16 = "64" in 40..=1500, "the smallest Ethernet frame";
    }
}

/// Returns the problems of parameters that depend on the network.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    let several = needs_one_nic(env, "dard", "a host queries the switches on its paths, which must all begin at the same switch");
    ecmp::check(&params.ecmp, env).into_iter().chain(several).collect()
}

/// The state of all switches.
pub struct Dard {
    params: Params,
    ecmp: ecmp::Ecmp,
    /// The ports, by link.
    ports: Vec<Port>,
}

/// The state of a port.
#[derive(Default)]
struct Port {
    /// When the last packet of each elephant left.
    elephants: FlowMap<Time>,
    /// Whether the switch knows that the link is dead.
    down: bool,
}

impl Dard {
    /// Returns the router of a network.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let ports = env.net.links().iter().map(|_| Port::default()).collect();
        Dard { params: params.clone(), ecmp: ecmp::Ecmp::new(&params.ecmp, env), ports }
    }
    /// Returns that paths are planned, and that the router sees the packets that leave ports
    /// between switches.
    pub fn duties(_params: &Params, _env: &Env<'_>) -> Duties {
        // With `Watches`, all packets that were due have left, and are counted, when a query
        // arrives.
        Duties { ports: PortAccess::Watches, ..Duties::PLAN }
    }

    /// Returns the value that a reply has for a port.
    fn count(&mut self, link: LinkId, now: Time) -> u8 {
        let Port { elephants, down } = &mut self.ports[link.index()];
        let gone: Vec<FlowId> =
            elephants.iter().filter(|(_, last)| now.since(**last) > self.params.expiry).map(|(flow, _)| flow).collect();
        for flow in gone {
            elephants.remove(flow);
        }
        if *down { DOWN } else { elephants.len().min(usize::from(DOWN) - 1) as u8 }
    }
}

impl Router for Dard {
    fn choose(&mut self, at: NodeId, path: &FiveTuple, candidates: &[LinkId]) -> u32 {
        self.ecmp.choose(at, path, candidates)
    }
    fn on_depart(&mut self, link: LinkId, packet: &mut Packet, now: Time) {
        if packet.kind == Kind::DATA && packet.path_tag != 0 {
            self.ports[link.index()].elephants.insert(packet.flow, now);
        }
    }
    fn on_link(&mut self, link: LinkId, up: bool, _cx: &mut SwitchCx<'_>) {
        self.ports[link.index()] = Port { down: !up, ..Port::default() };
    }
    fn take(&mut self, packet: &Packet, cx: &mut SwitchCx<'_>) -> bool {
        let query: Query = packet.get();
        if packet.kind != QUERY || query.switch != u64::from(cx.at.0) {
            return false;
        }
        let mut elephants = [0; PORTS as usize];
        for (count, link) in elephants.iter_mut().zip(cx.net.out_links(cx.at).skip(query.first as usize)) {
            *count = self.count(link, cx.now);
        }
        let mut reply = Packet::new(packet.flow, REPLY, self.params.reply_bytes);
        reply.flags = !packet.flags & Packet::BACK;
        reply.set_ext(Reply { switch: cx.at, first: query.first as u32, elephants }, cx.ext);
        cx.send(reply);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::router::{AnyRouter, Made, Ports};
    use crate::routes::Routes;
    use crate::routing::switch::Site;
    use crate::routing::{Parts, Routing};
    use crate::testing::{fat_tree, flow, leaf_spine};
    use base::params::Params as _;
    use base::{Given, Slab};
    use proto::Flow;
    use std::sync::Arc;

    const MS: u64 = 1_000_000_000;

    fn params_and_env<R>(act: impl FnOnce(&Params, &Env<'_>) -> R) -> R {
        let net = leaf_spine(2, 60, 2);
        let routes = Routes::new(&net, &[]);
        act(&Params::defaults(), &Env { net: &net, routes: &routes, seed: 1, max_rtt: base::Dur::ZERO, given: Given::none() })
    }

    /// Two leaves with two hosts each, 60 spines, and a flow from the first host to the third.
    struct Bench {
        routing: Routing,
        flows: Vec<Flow>,
        ext: Slab<proto::packet::Ext>,
        leaf: NodeId,
    }

    impl Bench {
        fn new() -> Bench {
            let net = leaf_spine(2, 60, 2);
            let (router, duties) =
                params_and_env(|params, env| (AnyRouter::Dard(Dard::new(params, env)), Dard::duties(params, env)));
            let leaf = net.link(net.first_nic(base::HostId(0))).to;
            let (healthy, flows) = (Routes::new(&net, &[]), vec![flow(0, 2, 1024)]);
            let parts = Parts {
                net: Arc::new(net),
                healthy: Arc::new(healthy),
                live: None,
                router,
                duties,
                kinds: META.kinds.len(),
                reversed: false,
                seed: 1,
            };
            Bench { routing: Routing::new(parts, &flows), flows, ext: Slab::default(), leaf }
        }
        fn with<R>(&mut self, now: u64, act: impl FnOnce(&mut Routing, Site<'_>) -> R) -> R {
            let site = Site {
                now: Time(now),
                flows: &self.flows,
                ext: &mut self.ext,
                ports: Ports::new(&[]),
                payload_bytes: 0,
                moved: None,
            };
            act(&mut self.routing, site)
        }
        /// Has a packet of a flow leave the first leaf through a port.
        fn depart(&mut self, now: u64, flow: u32, port: u32, change: impl FnOnce(&mut Packet)) {
            let mut packet = Packet { path_tag: 7, ..Packet::data(FlowId(flow), 0, 1460, 40) };
            change(&mut packet);
            let link = LinkId(self.routing.net.out_base(self.leaf) + port);
            self.routing.router.on_depart(link, &mut packet, Time(now));
        }
        /// Returns the reply of the first leaf to the first host about the ports from `first` on.
        fn ask(&mut self, now: u64, first: u32) -> Vec<u8> {
            let leaf = self.leaf;
            let mut query = Packet { path_tag: 1, ..Packet::new(FlowId(0), QUERY, 64) };
            query.set(Query { switch: leaf.0.into(), first: first.into() });
            assert!(self.with(now, |routing, site| routing.take(&query, leaf, None, site)));
            let made: Vec<Made> = self.routing.take_made().collect();
            let [Made { at, packet, via: None }] = made[..] else { panic!("{made:?}") };
            assert_eq!((at, packet.kind, packet.wire_len, packet.flow), (leaf, REPLY, 64, FlowId(0)));
            assert!(packet.has(Packet::BACK) && packet.path_tag == 0, "it goes back to the host on the router's path");
            let reply: Reply = packet.get_ext(&self.ext);
            packet.free(&mut self.ext);
            assert_eq!((reply.switch, reply.first), (leaf, first));
            reply.elephants.to_vec()
        }
    }

    /// The counts other than 0, by port.
    fn some(counts: &[u8]) -> Vec<(usize, u8)> {
        counts.iter().copied().enumerate().filter(|(_, count)| *count > 0).collect()
    }

    #[test]
    fn elephants_are_counted_by_port() {
        let mut b = Bench::new();
        for (flow, port) in [(3, 2), (4, 2), (3, 2), (5, 40)] {
            b.depart(0, flow, port, |_| ());
        }
        // A packet that names no path, and a packet without data, do not belong to an elephant.
        b.depart(0, 6, 2, |packet| packet.path_tag = 0);
        b.depart(0, 7, 2, |packet| packet.kind = Kind::ACK);
        assert_eq!(some(&b.ask(0, 0)), [(2, 2), (40, 1)]);
        // Two ports lead to hosts, 60 to spines: a reply covers 48 of these 62 ports.
        b.depart(0, 8, 61, |_| ());
        assert_eq!(some(&b.ask(0, 48)), [(13, 1)]);
    }

    #[test]
    fn silent_elephants_are_forgotten() {
        let mut b = Bench::new();
        b.depart(0, 3, 2, |_| ());
        b.depart(60 * MS, 4, 2, |_| ());
        b.depart(60 * MS, 3, 5, |_| ());
        assert_eq!(some(&b.ask(100 * MS, 0)), [(2, 2), (5, 1)]);
        assert_eq!(some(&b.ask(100 * MS + 1, 0)), [(2, 1), (5, 1)]);
        assert_eq!(some(&b.ask(161 * MS, 0)), []);
    }

    #[test]
    fn more_elephants_than_a_reply_can_say() {
        let mut b = Bench::new();
        (0..300).for_each(|flow| b.depart(0, flow, 2, |_| ()));
        assert_eq!(some(&b.ask(0, 0)), [(2, 254)]);
    }

    #[test]
    fn a_dead_port_is_reported_and_comes_back_empty() {
        let mut b = Bench::new();
        b.depart(0, 3, 4, |_| ());
        let link = LinkId(b.routing.net.out_base(b.leaf) + 4);
        b.with(MS, |routing, site| routing.on_link(link, false, site));
        assert_eq!(some(&b.ask(MS, 0)), [(4, DOWN)]);
        b.with(2 * MS, |routing, site| routing.on_link(link, true, site));
        assert_eq!(some(&b.ask(2 * MS, 0)), []);
    }

    #[test]
    fn other_packets_pass() {
        let mut b = Bench::new();
        let leaf = b.leaf;
        let mut query = Packet::new(FlowId(0), QUERY, 64);
        query.set(Query { switch: u64::from(leaf.0) + 1, first: 0 });
        assert!(!b.with(0, |routing, site| routing.take(&query, leaf, None, site)), "it names another switch");
        let mut reply = query;
        reply.kind = REPLY;
        reply.set(Query { switch: leaf.0.into(), first: 0 });
        assert!(!b.with(0, |routing, site| routing.take(&reply, leaf, None, site)));
        assert!(!b.routing.has_made());
    }

    /// Paths are those of ECMP with the same parameters.
    #[test]
    fn paths_are_those_of_ecmp() {
        let net = fat_tree(4);
        let routes = Routes::new(&net, &[]);
        let env = Env { net: &net, routes: &routes, seed: 1, max_rtt: base::Dur::ZERO, given: Given::none() };
        let links = [LinkId(1), LinkId(2), LinkId(3)];
        for seed in [ecmp::Seed::Mix, ecmp::Seed::Same] {
            let mut params = Params::defaults();
            params.ecmp.seed = seed;
            assert_eq!(check(&params, &env), []);
            let (mut own, mut plain) = (Dard::new(&params, &env), ecmp::Ecmp::new(&params.ecmp, &env));
            for port in 0..50 {
                let tuple = crate::paths::five_tuple(&net, &flow(0, 4, 1024 + 97 * port), true);
                assert_eq!(own.choose(NodeId(20), &tuple, &links), plain.choose(NodeId(20), &tuple, &links));
            }
        }
    }
}

//! Room: routers. Which of several next hops a packet takes.
//!
//! A router either plans the path of a flow before its first packet, which then rides in every packet and costs nothing on the way, or
//! is asked at each switch, packet by packet; [`Duties`] says which, for each direction. What it sees of a switch, and what it may do
//! there, is a [`SwitchCx`]: set timers and make packets. What it keeps belongs to one switch each.
//!
//! Packets of a router's own have the kinds that its `META` names. They are sent by the router at a switch, or by hosts; each carries a
//! flow and a direction, and follows that flow's path unless the router says otherwise. Where their route bytes do not name the next
//! link, which holds at every switch for packets from hosts, they are offered to the router, which takes them or lets them go on.

use crate::agent::AnyAgent;
use crate::net::Net;
use crate::paths::{ASK_ALWAYS, FiveTuple, five_tuple};
use crate::port::Port;
use crate::routes::Routes;
use base::params::Problem;
use base::{FlowId, Given, HostId, LinkId, NodeId, Slab, Time, TimerKey, Timers};
use proto::packet::{ASK, Ext, ROUTE_HOPS};
use proto::{Flow, Packet};

/// A router: one for the whole network, holding what each switch needs.
pub trait Router {
    /// Which of `candidates` (live next hops in rising port order, at least 2) the flow takes at switch `at`: an index.
    fn choose(&mut self, at: NodeId, path: &FiveTuple, candidates: &[LinkId]) -> u32;
    /// Which of `candidates` (live next hops in rising port order, at least 1) a packet takes that is decided at switches: an index. It may
    /// rewrite the packet, also the route bytes of the switches to come. A router that does not say otherwise chooses as it would plan.
    fn decide(&mut self, packet: &mut Packet, candidates: &[LinkId], cx: &mut SwitchCx<'_>) -> u32 {
        if candidates.len() == 1 { 0 } else { self.choose(cx.at, &cx.tuple(packet), candidates) }
    }
    /// The next link of a packet that is decided at switches, or of one of the router's own; `None`: it is lost. A router that keeps the links
    /// of flows need not look up the live next hops for every packet.
    fn next(&mut self, packet: &mut Packet, cx: &mut SwitchCx<'_>) -> Option<LinkId> {
        let (_, dst) = cx.ends(packet);
        let candidates = cx.routes.candidates(cx.at, dst);
        if candidates.is_empty() { None } else { Some(candidates[self.decide(packet, candidates, cx) as usize]) }
    }
    /// A packet's transmission on a watched port starts at `now`, which may lie before the event in hand. The router may rewrite the packet
    /// and what it keeps of that port, nothing else.
    fn on_depart(&mut self, _link: LinkId, _packet: &mut Packet, _now: Time) {}
    /// The run begins. Called at every switch, by node, if the router has timers.
    fn on_start(&mut self, _cx: &mut SwitchCx<'_>) {}
    /// A timer of the switch is due.
    fn on_timer(&mut self, _key: u32, _cx: &mut SwitchCx<'_>) {}
    /// The switch finds out that one of its links died or came up.
    fn on_link(&mut self, _link: LinkId, _up: bool, _cx: &mut SwitchCx<'_>) {}
    /// The live next hops have changed, here or elsewhere in the network. Called at every switch, by node, before [`Router::on_link`], if the
    /// router has timers.
    fn on_routes(&mut self, _cx: &mut SwitchCx<'_>) {}
    /// A packet of the router's own kinds came to the switch from another node. Returns whether it ends here; otherwise it is forwarded. The
    /// run frees its header.
    fn take(&mut self, _packet: &Packet, _cx: &mut SwitchCx<'_>) -> bool {
        false
    }
    /// What it has counted at a port, in the order of the [counters](base::registry::Meta) of its META.
    fn counts(&self, _link: LinkId) -> &[u64] {
        &[]
    }
}

/// What a router is called for. Calls that it does not ask for cost nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duties {
    /// Where it decides on packets.
    pub decides: Decides,
    /// What it does with the ports of a switch.
    pub ports: PortAccess,
    /// Switches have timers.
    pub timers: bool,
}

/// Where a router decides on packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decides {
    /// Nowhere: it plans their paths.
    Ahead,
    /// At every switch that has two next hops or more, by [`Router::choose`] alone. It spreads the packets of every flow evenly over the live next
    /// hops, whatever else happens there: an engine that carries flows loads the links of all shortest paths and does not ask the router.
    Evenly,
    /// At every switch for packets from a flow's source. It plans the paths of those from the destination.
    There,
    /// At every switch for packets of both directions.
    BothWays,
}

impl Decides {
    /// Whether it decides at switches for packets from a flow's source, or, with `back`, for those from its destination.
    pub fn at_switches(self, back: bool) -> bool {
        match self {
            Decides::Ahead => false,
            Decides::There => !back,
            Decides::Evenly | Decides::BothWays => true,
        }
    }
}

/// What a router does with the ports of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PortAccess {
    /// Nothing.
    None,
    /// It reads them: all that was due to leave has left when it is called there.
    Reads,
    /// It reads ports, and sees what leaves those between switches.
    Watches,
}

impl Duties {
    /// All paths are planned.
    pub const PLAN: Duties = Duties { decides: Decides::Ahead, ports: PortAccess::None, timers: false };
}

/// What a router or a controller knows from configuration.
#[derive(Clone, Copy)]
pub struct Env<'a> {
    /// The network.
    pub net: &'a Net,
    /// Its next hops while all links are up.
    pub routes: &'a Routes,
    /// The seed of the run.
    pub seed: u64,
    /// The other parts of the system.
    pub given: &'a Given,
}

/// The problem of a router that is defined for hosts with one NIC each, in a network with other hosts.
pub fn needs_one_nic(env: &Env<'_>, kind: &str, why: &str) -> Option<Problem> {
    let host = env.net.multi_nic_host()?;
    let (name, nics) = (&env.net.node(env.net.hosts()[host.index()]).name, env.net.nics(host).len());
    Some(Problem {
        key: "kind",
        message: format!("host `{name}` has {nics} NICs, and `{kind}` is defined for hosts with one: {why}"),
        hint: "take another router, or a topology whose hosts have one NIC".to_owned(),
    })
}

/// A switch, as a router sees it. Its ports are up to date if the router [reads](PortAccess::Reads) them.
pub struct SwitchCx<'a> {
    /// The present.
    pub now: Time,
    /// The switch.
    pub at: NodeId,
    /// The link that the packet in hand came over; `None` without such a packet, and for one that was to leave through a dead port.
    pub from: Option<LinkId>,
    /// All flows of the run, by id.
    pub flows: &'a [Flow],
    /// Blocks for large headers.
    pub ext: &'a mut Slab<Ext>,
    /// The network.
    pub net: &'a Net,
    /// Its live next hops.
    pub routes: &'a Routes,
    /// The ports of the network. A router may read those of this switch only.
    pub ports: Ports<'a>,
    /// The timers of the switch; `None` if the router has none.
    pub timers: Option<&'a mut Timers>,
    /// The packets that the switch makes, in their order.
    pub made: &'a mut Vec<Made>,
    /// Application bytes that pass the switch with the packet in hand, headers and ACKs apart. An engine that carries flows shows one packet for
    /// many.
    pub payload_bytes: u64,
    /// Takes the flows that the switch moves, if the engine wants to know them.
    pub moved: Option<&'a mut Vec<FlowId>>,
}

/// A packet that a switch makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Made {
    /// The switch.
    pub at: NodeId,
    /// The packet. Its flow and [`Packet::BACK`] say where it goes.
    pub packet: Packet,
    /// The port that it leaves through; `None`: the next one on its flow's path.
    pub via: Option<LinkId>,
}

/// What a router sees of ports.
#[derive(Clone, Copy)]
pub struct Ports<'a>(&'a [Option<Box<Port>>]);

impl<'a> Ports<'a> {
    /// Of these ports, by link.
    pub fn new(ports: &'a [Option<Box<Port>>]) -> Self {
        Ports(ports)
    }
    /// The agent of a port, if it has one.
    pub fn agent(self, link: LinkId) -> Option<&'a AnyAgent> {
        self.0.get(link.index())?.as_ref()?.agent.as_ref()
    }
}

impl SwitchCx<'_> {
    /// Where the packet comes from and where it goes.
    pub fn ends(&self, packet: &Packet) -> (HostId, HostId) {
        self.flows[packet.flow.index()].ends(packet.has(Packet::BACK))
    }
    /// What the packet shows of its flow.
    pub fn tuple(&self, packet: &Packet) -> FiveTuple {
        five_tuple(self.net, &self.flows[packet.flow.index()], !packet.has(Packet::BACK))
    }
    /// Says that packets of a flow leave this switch over another link from now on. A router that keeps links of flows calls it at every
    /// change but those that it makes with a packet of the flow in hand.
    pub fn rerouted(&mut self, flow: FlowId) {
        if let Some(moved) = &mut self.moved {
            moved.push(flow);
        }
    }
    /// Sets timer `key` of the switch, whether or not it was set. Timers that are due at once come by key.
    pub fn arm(&mut self, key: u32, at: Time) {
        self.timers().arm(timer(key), at);
    }
    /// Takes timer `key` of the switch away.
    pub fn disarm(&mut self, key: u32) {
        self.timers().disarm(timer(key));
    }
    fn timers(&mut self) -> &mut Timers {
        self.timers.as_mut().expect("a router with timers says so in its duties")
    }
    /// Sends a packet along the path of its flow. At every switch, this one first, the router decides on it, or chooses by the flow's
    /// five-tuple where it plans paths.
    pub fn send(&mut self, packet: Packet) {
        self.made.push(Made { at: self.at, packet: Packet { route: ASK_ALWAYS, ..packet }, via: None });
    }
    /// Sends a packet out of a port. Its route bytes are those of the switches to come; [`ASK`] leaves a switch to the
    /// router. The last byte is free, so that they name one switch less than those of a host's packet.
    pub fn send_via(&mut self, link: LinkId, mut packet: Packet) {
        packet.route[ROUTE_HOPS - 1] = ASK;
        self.made.push(Made { at: self.at, packet, via: Some(link) });
    }
}

/// The timer of a switch with this key.
fn timer(key: u32) -> TimerKey {
    TimerKey { kind: 0, flow: FlowId(key) }
}

pub mod conga;
pub mod dard;
pub mod difs;
pub mod ecmp;
pub mod fastest_path;
pub mod memr;
pub mod spray;

base::registry! {
    room AnyRouter: Router, env Env<'_>;
    named "router", "routers", "router": "which of several paths a flow takes";
    entries { ecmp: Ecmp, spray: Spray, memr: Memr, conga: Conga, dard: Dard, difs: Difs, fastest_path: FastestPath }
    methods {
        fn choose(&mut self, at: NodeId, path: &FiveTuple, candidates: &[LinkId]) -> u32;
        fn decide(&mut self, packet: &mut Packet, candidates: &[LinkId], cx: &mut SwitchCx<'_>) -> u32;
        fn next(&mut self, packet: &mut Packet, cx: &mut SwitchCx<'_>) -> Option<LinkId>;
        fn on_depart(&mut self, link: LinkId, packet: &mut Packet, now: Time);
        fn on_start(&mut self, cx: &mut SwitchCx<'_>);
        fn on_timer(&mut self, key: u32, cx: &mut SwitchCx<'_>);
        fn on_link(&mut self, link: LinkId, up: bool, cx: &mut SwitchCx<'_>);
        fn on_routes(&mut self, cx: &mut SwitchCx<'_>);
        fn take(&mut self, packet: &Packet, cx: &mut SwitchCx<'_>) -> bool;
        fn counts(&self, link: LinkId) -> &[u64];
    }
    statics {
        /// What the router wants to be called for.
        fn duties -> Duties;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{dead, ecmp, fat_tree, flow};

    #[test]
    fn a_switch_has_timers_by_key_and_sends_in_order() {
        let (net, mut ext, mut timers, mut made) = (Net::default(), Slab::default(), Timers::default(), Vec::new());
        let routes = &Routes::new(&net, &[]);
        let (now, at, from, ports) = (Time(5), NodeId(7), None, Ports::new(&[]));
        let timed = Some(&mut timers);
        let mut cx = SwitchCx {
            now,
            at,
            from,
            flows: &[],
            ext: &mut ext,
            net: &net,
            routes,
            ports,
            timers: timed,
            made: &mut made,
            payload_bytes: 0,
            moved: None,
        };
        [(9, 20), (2, 20), (4, 10), (4, 30), (1, 10)].into_iter().for_each(|(key, at)| cx.arm(key, Time(at)));
        cx.disarm(1);
        let packet = Packet { route: [3, 2, 1, ASK, ASK, ASK], ..Packet::new(FlowId(1), proto::Kind::DATA, 64) };
        cx.send_via(LinkId(8), packet);
        cx.send(packet);
        assert!(ports.agent(LinkId(0)).is_none());
        let due = std::iter::from_fn(|| timers.pop_due(Time(100))).map(|key| key.flow.0).collect::<Vec<_>>();
        assert_eq!(due, [2, 9, 4]);
        let to = |via, route| Made { at, packet: Packet { route, ..packet }, via };
        assert_eq!(made, [to(Some(LinkId(8)), packet.route), to(None, ASK_ALWAYS)]);
    }

    #[test]
    fn the_next_link_is_the_one_that_is_decided_on_among_those_alive() {
        let net = fat_tree(4);
        let (mut ext, mut made, flows, agg) = (Slab::default(), Vec::new(), [flow(0, 4, 2000)], NodeId(24));
        let mut packet = Packet::data(FlowId(0), 0, 1460, 40);
        let mut next = |router: &mut AnyRouter, gone: &[&str]| {
            let routes = &Routes::new(&net, &[]).without(&dead(&net, gone));
            let (ports, net, ext, made, flows) = (Ports::new(&[]), &net, &mut ext, &mut made, &flows);
            let mut cx = SwitchCx {
                now: Time(0),
                at: agg,
                from: None,
                flows,
                ext,
                net,
                routes,
                ports,
                timers: None,
                made,
                payload_bytes: 0,
                moved: None,
            };
            router.next(&mut packet, &mut cx).map(|link| net.link_name(link))
        };
        let mut router = AnyRouter::Ecmp(ecmp());
        let first = next(&mut router, &[]).unwrap();
        let second = next(&mut router, &[&first]).unwrap();
        assert!([&first, &second].iter().all(|name| name.starts_with("agg0_0->core")) && first != second);
        assert_eq!(next(&mut router, &[&first, &second]), None);
    }
}

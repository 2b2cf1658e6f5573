//! Room: routers. A router decides which of several next hops a packet takes.
//!
//! A router either plans the path of a flow before its first packet (the path then travels in every
//! packet and costs nothing on the way) or decides at each switch, packet by packet; [`Duties`]
//! says which, for each direction. A router sees a switch through a [`SwitchCx`], with which it may
//! also set timers and send packets. Its state is kept per switch.
//!
//! A router's own packets have the kinds that its `META` names. They are sent by the router at a
//! switch, or by hosts. Each carries a flow and a direction, and follows that flow's path unless
//! the router decides otherwise. Where the route bytes of these packets do not name the next link
//! (for packets from hosts: at every switch), the router either consumes the packet or lets it be
//! forwarded.

use crate::agent::AnyAgent;
use crate::net::Net;
use crate::paths::{ASK_ALWAYS, FiveTuple, five_tuple};
use crate::port::Port;
use crate::routes::Routes;
use base::params::Problem;
use base::{Dur, FlowId, Given, HostId, LinkId, NodeId, Slab, Time, TimerKey, Timers};
use proto::packet::{ASK, Ext, ROUTE_HOPS};
use proto::{Flow, Packet};

/// A router: a single state machine for the whole network, with the state of each switch.
pub trait Router {
    /// Returns the index of the candidate that the flow takes at switch `at`. `candidates` are the
    /// live next hops in rising port order, at least 2.
    fn choose(&mut self, at: NodeId, path: &FiveTuple, candidates: &[LinkId]) -> u32;
    /// Returns the index of the candidate that a packet takes, for packets that are routed at
    /// switches. `candidates` are the live next hops in rising port order, at least 1. May rewrite
    /// the packet, including the route bytes of later switches. By default the result is that of
    /// [`Router::choose`].
    fn decide(&mut self, packet: &mut Packet, candidates: &[LinkId], cx: &mut SwitchCx<'_>) -> u32 {
        if candidates.len() == 1 { 0 } else { self.choose(cx.at, &cx.tuple(packet), candidates) }
    }
    /// Returns the next link of a packet that is routed at switches, or of a packet of the router's
    /// own; `None`: the packet is lost. A router that stores the links of flows need not look up
    /// the live next hops for every packet.
    fn next(&mut self, packet: &mut Packet, cx: &mut SwitchCx<'_>) -> Option<LinkId> {
        let (_, dst) = cx.ends(packet);
        let candidates = cx.routes.candidates(cx.at, dst);
        if candidates.is_empty() { None } else { Some(candidates[self.decide(packet, candidates, cx) as usize]) }
    }
    /// The transmission of a packet on a watched port starts at `now`, which may be earlier than
    /// the current event. The router may rewrite the packet and its own state of that port, nothing
    /// else.
    fn on_depart(&mut self, _link: LinkId, _packet: &mut Packet, _now: Time) {}
    /// The run starts. Called at every switch in the order of nodes, if the router has timers.
    fn on_start(&mut self, _cx: &mut SwitchCx<'_>) {}
    /// A timer of the switch expires.
    fn on_timer(&mut self, _key: u32, _cx: &mut SwitchCx<'_>) {}
    /// The switch detects that one of its links has failed or come up.
    fn on_link(&mut self, _link: LinkId, _up: bool, _cx: &mut SwitchCx<'_>) {}
    /// The live next hops have changed, at this switch or another one. Called at every switch in
    /// the order of nodes, before [`Router::on_link`], if the router has timers.
    fn on_routes(&mut self, _cx: &mut SwitchCx<'_>) {}
    /// A packet of the router's own kinds arrives at the switch from another node. Returns whether
    /// the packet ends here; otherwise it is forwarded. The run frees the packet's header.
    fn take(&mut self, _packet: &Packet, _cx: &mut SwitchCx<'_>) -> bool {
        false
    }
    /// A packet arrives at the switch of its destination and asks for its next link. Returns whether
    /// the router holds the packet: it then stays in the switch until [`Router::next_release`] names
    /// its flow. May rewrite the packet. Called only if the router's duties include it, and not for
    /// packets of the router's own kinds.
    fn hold(&mut self, _packet: &mut Packet, _cx: &mut SwitchCx<'_>) -> bool {
        false
    }
    /// Removes and returns the next flow whose held packets leave now, in the order of their
    /// arrival. Called after every other call at a switch, and refers to that switch. To send the
    /// held packets after the packet that is being handled, a router releases them by a timer that
    /// expires at once.
    fn next_release(&mut self) -> Option<FlowId> {
        None
    }
    /// Returns the values of the counters at a port, in the order of the
    /// [counters](base::registry::Meta) of its META.
    fn counts(&self, _link: LinkId) -> &[u64] {
        &[]
    }
}

/// The calls that a router needs. Calls that it does not need cost nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duties {
    /// Where the router decides on packets.
    pub decides: Decides,
    /// How the router uses the ports of a switch.
    pub ports: PortAccess,
    /// Whether switches have timers.
    pub timers: bool,
    /// Whether the router may hold packets in the switch of their destination: see
    /// [`Router::hold`].
    pub holds: bool,
}

/// Where a router decides on packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decides {
    /// At no switch: it plans their paths.
    Ahead,
    /// At every switch with two or more next hops, by [`Router::choose`] only. The router spreads
    /// the packets of every flow evenly over the live next hops, whatever else happens at the
    /// switch, so the flow engine loads the links of all shortest paths without asking the router.
    Evenly,
    /// At every switch for packets from a flow's source. Paths of packets from the destination are
    /// planned.
    There,
    /// At every switch for packets in both directions.
    BothWays,
}

impl Decides {
    /// Returns whether the router decides at switches for packets from a flow's source, or, with
    /// `back`, from its destination.
    pub fn at_switches(self, back: bool) -> bool {
        match self {
            Decides::Ahead => false,
            Decides::There => !back,
            Decides::Evenly | Decides::BothWays => true,
        }
    }
}

/// How a router uses the ports of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PortAccess {
    /// Not at all.
    None,
    /// It reads them. When the router is called, all packets that were due to leave the switch have
    /// left.
    Reads,
    /// It reads ports, and the load of each candidate.
    Measures,
    /// It reads ports, and sees every packet that leaves a port between switches.
    Watches,
}

impl Duties {
    /// All paths are planned in advance.
    pub const PLAN: Duties = Duties { decides: Decides::Ahead, ports: PortAccess::None, timers: false, holds: false };
}

/// The environment of a router or controller, known from the configuration.
#[derive(Clone, Copy)]
pub struct Env<'a> {
    /// The network.
    pub net: &'a Net,
    /// The next hops of the network while all links are up.
    pub routes: &'a Routes,
    /// The seed of the run.
    pub seed: u64,
    /// The longest unloaded round trip between two hosts.
    pub max_rtt: Dur,
    /// The parameters of the other parts of the system.
    pub given: &'a Given,
}

/// Returns a problem if the network has hosts with several NICs, for a router that is defined only
/// for hosts with one.
pub fn needs_one_nic(env: &Env<'_>, kind: &str, why: &str) -> Option<Problem> {
    let host = env.net.multi_nic_host()?;
    let (name, nics) = (&env.net.node(env.net.hosts()[host.index()]).name, env.net.nics(host).len());
    Some(Problem {
        key: "kind",
        message: format!("host `{name}` has {nics} NICs, but `{kind}` is defined only for hosts with one NIC: {why}"),
        hint: "use another router, or a topology whose hosts have one NIC".to_owned(),
    })
}

/// A switch as a router sees it. The switch's ports are up to date if the router
/// [reads](PortAccess::Reads) them.
pub struct SwitchCx<'a> {
    /// The current time.
    pub now: Time,
    /// The switch.
    pub at: NodeId,
    /// The link over which the current packet arrived; `None` without a current packet, and for a
    /// packet that was sent to a port whose link is down.
    pub from: Option<LinkId>,
    /// All flows of the run, by id.
    pub flows: &'a [Flow],
    /// The slab of blocks for large headers.
    pub ext: &'a mut Slab<Ext>,
    /// The network.
    pub net: &'a Net,
    /// The live next hops of the network.
    pub routes: &'a Routes,
    /// The ports of the network. A router may read those of this switch only.
    pub ports: Ports<'a>,
    /// The timers of the switch; `None` if the router has no timers.
    pub timers: Option<&'a mut Timers>,
    /// The packets that the switch has created, in order.
    pub made: &'a mut Vec<Made>,
    /// Application bytes that pass the switch with the current packet; headers and ACKs count as 0.
    /// The flow engine passes one packet for many.
    pub payload_bytes: u64,
    /// The list to which flows are added that the switch reroutes, if the engine needs it.
    pub moved: Option<&'a mut Vec<FlowId>>,
}

/// A packet created by a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Made {
    /// The switch.
    pub at: NodeId,
    /// The packet. Its flow and [`Packet::BACK`] determine its destination.
    pub packet: Packet,
    /// The port through which it leaves; `None`: the next port on its flow's path.
    pub via: Option<LinkId>,
}

/// What a port has to send. Loads are compared by the bytes that wait; at equal numbers, a busy port
/// has the higher load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PortLoad {
    /// Bytes of the packets that wait, without the packet in transmission.
    pub waiting_bytes: u64,
    /// Whether a packet is in transmission.
    pub busy: bool,
}

/// The view of ports that a router has.
#[derive(Clone, Copy)]
pub struct Ports<'a> {
    ports: &'a [Option<Box<Port>>],
    loads: &'a [PortLoad],
}

impl<'a> Ports<'a> {
    /// Returns a view of these ports, which are indexed by link.
    pub fn new(ports: &'a [Option<Box<Port>>]) -> Self {
        Ports { ports, loads: &[] }
    }
    /// Returns the view with the loads of the current packet's candidates.
    pub fn with_loads(self, loads: &'a [PortLoad]) -> Self {
        Ports { loads, ..self }
    }
    /// Returns the load of the port of a candidate of the current packet, by the candidate's index.
    /// Only for a router that [measures](PortAccess::Measures) loads.
    pub fn load(self, candidate: usize) -> PortLoad {
        self.loads[candidate]
    }
    /// Returns the agent of a port, if the port has an agent.
    pub fn agent(self, link: LinkId) -> Option<&'a AnyAgent> {
        self.ports.get(link.index())?.as_ref()?.agent.as_ref()
    }
}

impl SwitchCx<'_> {
    /// Returns the hosts that the packet comes from and goes to.
    pub fn ends(&self, packet: &Packet) -> (HostId, HostId) {
        self.flows[packet.flow.index()].ends(packet.has(Packet::BACK))
    }
    /// Returns the five-tuple of the packet.
    pub fn tuple(&self, packet: &Packet) -> FiveTuple {
        five_tuple(self.net, &self.flows[packet.flow.index()], !packet.has(Packet::BACK))
    }
    /// Records that packets of a flow leave this switch over another link from now on. A router
    /// that stores the links of flows calls this at every change, except for changes that it makes
    /// while it decides on a packet of that flow.
    pub fn rerouted(&mut self, flow: FlowId) {
        if let Some(moved) = &mut self.moved {
            moved.push(flow);
        }
    }
    /// Sets timer `key` of the switch, or sets it to a new time. Timers that expire at the same
    /// time are handled in the order of keys.
    pub fn arm(&mut self, key: u32, at: Time) {
        self.timers().arm(timer(key), at);
    }
    /// Cancels timer `key` of the switch.
    pub fn disarm(&mut self, key: u32) {
        self.timers().disarm(timer(key));
    }
    fn timers(&mut self) -> &mut Timers {
        self.timers.as_mut().expect("a router with timers says so in its duties")
    }
    /// Sends a packet along the path of its flow. At every switch, starting with this one, the
    /// router decides on the packet; a router that plans paths chooses by the flow's five-tuple.
    pub fn send(&mut self, packet: Packet) {
        self.made.push(Made { at: self.at, packet: Packet { route: ASK_ALWAYS, ..packet }, via: None });
    }
    /// Sends a packet out of a port. The packet's route bytes are those of the later switches;
    /// [`ASK`] leaves the decision at a switch to the router. The route bytes that are free in a
    /// switch ([`route_room`](crate::paths::route_room)) are unused, so they name one switch less than those of a host's packet.
    pub fn send_via(&mut self, link: LinkId, mut packet: Packet) {
        packet.route[ROUTE_HOPS - 1] = ASK;
        self.made.push(Made { at: self.at, packet, via: Some(link) });
    }
}

/// Returns the timer of a switch with this key.
fn timer(key: u32) -> TimerKey {
    TimerKey { kind: 0, flow: FlowId(key) }
}

pub mod conga;
pub mod conweave;
pub mod dard;
pub mod difs;
pub mod drill;
pub mod ecmp;
pub mod fastest_path;
pub mod letflow;
pub mod memr;
pub mod plugin;
pub mod spray;

base::registry! {
    room AnyRouter: Router, env Env<'_>;
    named "router", "routers", "router": "which of several paths a flow takes";
    entries { ecmp: Ecmp, spray: Spray, memr: Memr, conga: Conga, dard: Dard, difs: Difs, fastest_path: FastestPath, letflow: LetFlow, drill: Drill, conweave: ConWeave, plugin: Plugin }
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
        fn hold(&mut self, packet: &mut Packet, cx: &mut SwitchCx<'_>) -> bool;
        fn next_release(&mut self) -> Option<FlowId>;
        fn counts(&self, link: LinkId) -> &[u64];
    }
    statics {
        /// The calls that the router needs.
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

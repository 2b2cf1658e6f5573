//! The router at a switch: the packets it decides on, its timers, and the packets that it sends and
//! consumes.

use crate::paths::five_tuple;
use crate::router::{Made, Ports, Router, SwitchCx};
use crate::routing::{Routing, choose};
use base::{FlowId, LinkId, NodeId, Slab, Time, Timers};
use proto::packet::{ASK, Ext};
use proto::{Flow, Kind, Packet};

/// The state of a run that a router may use at a switch: see [`SwitchCx`].
pub struct Site<'a> {
    /// The current time.
    pub now: Time,
    /// All flows, by id.
    pub flows: &'a [Flow],
    /// The slab of blocks for large headers.
    pub ext: &'a mut Slab<Ext>,
    /// All ports; those of the switch are up to date.
    pub ports: Ports<'a>,
    /// Application bytes that pass with the current packet.
    pub payload_bytes: u64,
    /// The list to which flows are added that the switch reroutes.
    pub moved: Option<&'a mut Vec<FlowId>>,
}

/// Returns the router and its context at a switch.
macro_rules! at_switch {
    ($routing:expr, $at:expr, $from:expr, $site:expr) => {{
        let Routing { net, routes, router, timers, made, .. } = $routing;
        let Site { now, flows, ext, ports, payload_bytes, moved } = $site;
        let timers = timers.get_mut($at.index());
        (router, SwitchCx { now, at: $at, from: $from, flows, ext, net, routes, ports, timers, made, payload_bytes, moved })
    }};
}

impl Routing {
    /// Returns the next link of a packet at a switch where the router decides; the packet arrived
    /// over `from`. `None`: no link leads to its destination.
    pub fn next(&mut self, packet: &mut Packet, at: NodeId, from: Option<LinkId>, site: Site<'_>) -> Option<LinkId> {
        let (router, mut cx) = at_switch!(self, at, from, site);
        router.next(packet, &mut cx)
    }

    /// Returns the next link for a router that decides only by [`Router::choose`]. If no link ever
    /// goes down, also writes the route bytes of the switches up to the next choice, so that no
    /// lookup is needed there.
    #[inline]
    pub fn chosen_hop(&mut self, flow: &Flow, packet: &mut Packet, at: NodeId) -> Option<LinkId> {
        let back = packet.has(Packet::BACK);
        let (_, dst) = flow.ends(back);
        let next = choose(&self.routes, &mut self.router, || five_tuple(&self.net, flow, !back), at, dst)?;
        if self.fixed {
            let (mut at, end) = (self.net.link(next).to, self.net.hosts()[dst.index()]);
            for byte in &mut packet.route {
                if at == end {
                    break;
                }
                let &[only] = self.routes.candidates(at, dst) else { break };
                *byte = u8::try_from(only.0 - self.net.out_base(at)).unwrap_or(ASK);
                at = self.net.link(only).to;
            }
        }
        Some(next)
    }

    /// Returns whether the router decides on the next link of a packet whose route bytes do not
    /// name it. A router that decides at switches for one direction does so for its own packets in
    /// both directions; own packets of a router that plans all paths follow the path of their flow.
    #[inline]
    pub fn asks_for(&self, packet: &Packet) -> bool {
        let back = packet.has(Packet::BACK);
        self.is_asked(back) || (self.is_asked(!back) && self.is_own(packet))
    }

    /// Returns whether a packet is of the router's own kinds. Such a packet is offered to the
    /// router where its route bytes do not name the next link.
    #[inline]
    pub fn is_own(&self, packet: &Packet) -> bool {
        packet.kind.0.wrapping_sub(Kind::ROUTER) < self.kinds
    }

    /// Offers a packet of the router's own kinds to the router. Returns whether the packet ends at this switch.
    pub fn take(&mut self, packet: &Packet, at: NodeId, from: Option<LinkId>, site: Site<'_>) -> bool {
        let (router, mut cx) = at_switch!(self, at, from, site);
        router.take(packet, &mut cx)
    }

    /// Offers a packet to the router that may hold it. Returns whether the packet stays in the switch.
    pub fn hold(&mut self, packet: &mut Packet, at: NodeId, from: Option<LinkId>, site: Site<'_>) -> bool {
        let (router, mut cx) = at_switch!(self, at, from, site);
        router.hold(packet, &mut cx)
    }

    /// Returns the next flow whose held packets leave now.
    pub fn next_release(&mut self) -> Option<FlowId> {
        self.router.next_release()
    }

    /// Starts the run at a switch. Called only if switches have timers.
    pub fn start(&mut self, at: NodeId, site: Site<'_>) {
        let (router, mut cx) = at_switch!(self, at, None, site);
        router.on_start(&mut cx);
    }

    /// Returns whether switches have timers.
    pub fn has_timers(&self) -> bool {
        !self.timers.is_empty()
    }

    /// Returns the next time at which a switch's timers must be checked: no timer is due before.
    pub fn next_wake(&self, at: NodeId) -> Time {
        self.timers.get(at.index()).map_or(Time::MAX, Timers::next_wake)
    }

    /// Calls the router for one timer of a switch that is due. Returns `false` if none is due.
    pub fn on_timer(&mut self, at: NodeId, site: Site<'_>) -> bool {
        let Some(key) = self.timers.get_mut(at.index()).and_then(|timers| timers.pop_due(site.now)) else { return false };
        let (router, mut cx) = at_switch!(self, at, None, site);
        router.on_timer(key.flow.0, &mut cx);
        true
    }

    /// The switch where a link starts detects that the link has failed or come up.
    pub fn on_link(&mut self, link: LinkId, up: bool, site: Site<'_>) {
        let at = self.net.link(link).from;
        let (router, mut cx) = at_switch!(self, at, None, site);
        router.on_link(link, up, &mut cx);
    }

    /// Reports a change of the live next hops to the router at a switch. Called only if switches
    /// have timers.
    pub fn on_routes(&mut self, at: NodeId, site: Site<'_>) {
        let (router, mut cx) = at_switch!(self, at, None, site);
        router.on_routes(&mut cx);
    }

    /// Returns whether switches have created packets since the last call of [`Routing::take_made`].
    #[inline]
    pub fn has_made(&self) -> bool {
        !self.made.is_empty()
    }

    /// Returns the packets that switches have created since the last call, in order.
    pub fn take_made(&mut self) -> impl Iterator<Item = Made> + use<> {
        std::mem::take(&mut self.made).into_iter()
    }
}

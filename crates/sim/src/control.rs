//! The controller of a run: it looks at the network at every multiple of its period, and its orders act a latency later.

use crate::global::Global;
use crate::open::OpenFlows;
use crate::probe::Probe;
use crate::world::{Carried, World};
use base::{Dur, FlowId, LinkId, Time};
use engine::Driver;
use fabric::controller::{AnyController, Controller, LinkState, Move, OpenFlow, View};
use fabric::qdisc::Qdisc;
use fabric::routing::{Notice, Routing};
use std::collections::VecDeque;

/// A controller, the time of its next look, and its orders that have not acted yet.
pub struct Control {
    controller: AnyController,
    next_look: Time,
    /// Decided moves, with the time at which they act.
    orders: VecDeque<(Time, Vec<Move>)>,
    /// By link: bytes sent at the last look.
    sent: Vec<u64>,
    open: OpenFlows,
    /// How often a path was set.
    pub moves: u64,
}

impl Control {
    /// A controller of a network with `links` links. Its first look is at the end of its first period.
    pub fn new(controller: AnyController, links: usize) -> Control {
        let next_look = Time::ZERO + controller.period();
        Control { controller, next_look, orders: VecDeque::new(), sent: vec![0; links], open: OpenFlows::default(), moves: 0 }
    }

    /// A link as it is just before the present.
    fn look_at_link<P: Probe>(&mut self, world: &mut World<P>, links: &mut impl Driver<Carried>, link: LinkId) -> LinkState {
        let now = links.now();
        links.catch_up(world, link, now.before(Dur(1)));
        // The counts of a first-in first-out port include the packets that wait.
        let (waiting, counted) = match &world.ports[link.index()] {
            Some(port) => (port.qdisc.backlog().bytes, 0),
            None => {
                let bytes = links.fifo_backlog(link).1;
                (bytes, bytes)
            }
        };
        let sent = links.stats(link).tx_bytes - counted;
        LinkState { sent_bytes: self.sent_since(link, sent), queue_bytes: waiting }
    }

    /// What a link has sent since the last look, given what it has sent by now.
    pub fn sent_since(&mut self, link: LinkId, sent: u64) -> u64 {
        sent - std::mem::replace(&mut self.sent[link.index()], sent)
    }

    /// When the controller looks next.
    pub fn looks_at(&self) -> Time {
        self.next_look
    }

    /// Shows the network to the controller, and keeps its orders.
    pub fn decide(&mut self, now: Time, routing: &mut Routing, links: &[LinkState], flows: &[OpenFlow], notices: &[Notice]) {
        let mut moves = Vec::new();
        let (net, routes, paths) = (&routing.net, &routing.routes, &mut routing.paths);
        self.controller.decide(&mut View { now, net, routes, paths, links, flows, notices }, &mut moves);
        if !moves.is_empty() {
            self.orders.push_back((now + self.controller.latency(), moves));
        }
        self.next_look = now + self.controller.period();
    }

    /// Takes the next orders that are due.
    pub fn due(&mut self, now: Time) -> Option<Vec<Move>> {
        self.orders.front().filter(|(at, _)| *at <= now)?;
        self.orders.pop_front().map(|(_, moves)| moves)
    }

    fn look<P: Probe>(&mut self, world: &mut World<P>, links: &mut impl Driver<Carried>) {
        let now = links.now();
        let states: Vec<LinkState> =
            (0..world.ports.len() as u32).map(|link| self.look_at_link(world, links, LinkId(link))).collect();
        let mut seen = self.open.look(world.seen(now), |flow| world.progress(flow));
        seen.retain(|(flow, _)| world.table.is_open(*flow));
        seen.sort_unstable();
        let flows: Vec<OpenFlow> = seen.into_iter().map(|(flow, bytes)| open_flow(world, flow, bytes)).collect();
        let notices = std::mem::take(&mut world.notices);
        self.decide(now, &mut world.routing, &states, &flows, &notices);
    }

    /// Carries out the orders that are due. Flows that are done are skipped.
    fn order<P: Probe>(&mut self, world: &mut World<P>, now: Time) {
        while let Some(moves) = self.due(now) {
            for Move { flow, back, path } in moves {
                if !world.table.is_done(flow) {
                    self.moves += 1;
                    world.set_path(flow, back, path);
                }
            }
        }
    }
}

fn open_flow<P>(world: &mut World<P>, id: FlowId, delivered_bytes: u64) -> OpenFlow {
    let flow = &world.flows[id.index()];
    let paths = [false, true].map(|back| world.routing.present(flow, back));
    OpenFlow { id, src: flow.src, dst: flow.dst, paths, delivered_bytes }
}

impl Global for Control {
    fn next(&self) -> Time {
        self.orders.front().map_or(self.next_look, |(at, _)| self.next_look.min(*at))
    }
    /// Orders act before the next look. Those without a latency act at once.
    fn act<P: Probe>(&mut self, world: &mut World<P>, links: &mut impl Driver<Carried>) {
        let now = links.now();
        self.order(world, now);
        if self.next_look <= now {
            self.look(world, links);
            self.order(world, now);
        }
    }
}

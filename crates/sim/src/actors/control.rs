//! The controller of a run. It looks at the network at every multiple of its period, and its orders take
//! effect a latency later.

use crate::actors::global::Global;
use crate::node::open::OpenFlows;
use crate::node::world::{Carried, World};
use crate::parallel::part::Part;
use crate::parallel::whole::Whole;
use crate::probe::Probe;
use base::{Dur, FlowId, LinkId, Time};
use engine::Driver;
use fabric::controller::{AnyController, Controller, LinkState, Move, OpenFlow, View};
use fabric::routing::{PathChange, Routing};
use std::collections::VecDeque;

/// A controller, the time of its next look, and its orders that have not taken effect yet.
pub struct Control {
    controller: AnyController,
    next_look: Time,
    /// Decided moves, with the time at which they take effect.
    orders: VecDeque<(Time, Vec<Move>)>,
    /// By link: bytes sent at the last look.
    sent: Vec<u64>,
    open: OpenFlows,
    /// How often the controller has set a path.
    pub moves: u64,
}

impl Control {
    /// Creates the controller of a network with `links` links. Its first look is at the end of its first
    /// period.
    pub fn new(controller: AnyController, links: usize) -> Control {
        let next_look = Time::ZERO + controller.period();
        Control { controller, next_look, orders: VecDeque::new(), sent: vec![0; links], open: OpenFlows::default(), moves: 0 }
    }

    /// Returns the state of a link just before the present.
    fn look_at_link<E: Driver<Carried>, P: Probe>(&mut self, whole: &mut Whole<E, P>, link: LinkId) -> LinkState {
        let Part { world, engine } = whole.at_port(link);
        let before = engine.now().before(Dur(1));
        engine.catch_up(world, link, before);
        let queue_bytes = world.waiting_bytes(engine, link, before);
        // The counts of a first-in first-out port include the packets that wait.
        let counted = if world.ports[link.index()].is_none() { queue_bytes } else { 0 };
        let sent = engine.stats(link).tx_bytes - counted;
        LinkState { sent_bytes: self.sent_since(link, sent), queue_bytes }
    }

    /// Returns the bytes that a link has sent since the last look, given the bytes that it has sent by now.
    pub fn sent_since(&mut self, link: LinkId, sent: u64) -> u64 {
        sent - std::mem::replace(&mut self.sent[link.index()], sent)
    }

    /// Returns when the controller looks next.
    pub fn looks_at(&self) -> Time {
        self.next_look
    }

    /// Shows the network to the controller, and keeps its orders.
    pub fn decide(
        &mut self,
        now: Time,
        routing: &mut Routing,
        links: &[LinkState],
        flows: &[OpenFlow],
        path_changes: &[PathChange],
    ) {
        let mut moves = Vec::new();
        let (net, routes, paths) = (&routing.net, &routing.routes, &mut routing.paths);
        self.controller.decide(&mut View { now, net, routes, paths, links, flows, path_changes }, &mut moves);
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

    fn look<E: Driver<Carried>, P: Probe>(&mut self, whole: &mut Whole<E, P>) {
        let now = whole.now();
        let states: Vec<LinkState> = whole.links().map(|link| self.look_at_link(whole, link)).collect();
        let mut seen = self.open.look(whole.seen(), |flow| whole.progress(flow));
        seen.retain(|(flow, _)| whole.is_open(*flow));
        seen.sort_unstable();
        let flows: Vec<OpenFlow> = seen.into_iter().map(|(flow, bytes)| open_flow(whole, flow, bytes)).collect();
        let path_changes = whole.take_path_changes();
        self.decide(now, &mut whole.parts[0].world.routing, &states, &flows, &path_changes);
    }

    /// Carries out the orders that are due. Flows that are done are skipped.
    fn order<E: Driver<Carried>, P: Probe>(&mut self, whole: &mut Whole<E, P>) {
        while let Some(moves) = self.due(whole.now()) {
            for Move { flow, back, path } in moves {
                if !whole.is_done(flow) {
                    self.moves += 1;
                    whole.parts.iter_mut().for_each(|part| part.world.set_path(flow, back, path));
                }
            }
        }
    }
}

fn open_flow<E: Driver<Carried>, P: Probe>(whole: &mut Whole<E, P>, id: FlowId, delivered_bytes: u64) -> OpenFlow {
    let paths = [false, true].map(|back| {
        let World { flows, routing, .. } = &mut whole.at_end(id, back).world;
        routing.present(&flows[id.index()], back)
    });
    let flow = &whole.parts[0].world.flows[id.index()];
    OpenFlow { id, src: flow.src, dst: flow.dst, paths, delivered_bytes }
}

impl Global for Control {
    fn next(&self) -> Time {
        self.orders.front().map_or(self.next_look, |(at, _)| self.next_look.min(*at))
    }
    /// Carries out due orders before the next look, and orders without a latency right after it.
    fn act<E: Driver<Carried>, P: Probe>(&mut self, whole: &mut Whole<E, P>) {
        self.order(whole);
        if self.next_look <= whole.now() {
            self.look(whole);
            self.order(whole);
        }
    }
}

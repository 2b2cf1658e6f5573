//! Links that go down and come up, and how the network finds out.
//!
//! A change happens at its time. `detect` later the nodes at the ends of the link know: their switches stop using the port and send what
//! would have left through it another way, if they have one. `converge` after that all switches have routes without it. Repairs spread
//! alike. What is down from the start is known from the start. Until they know, nodes send into a dead link, and what they send
//! is lost, as is what has no way at all.

use crate::probe::Probe;
use crate::world::{Carried, World};
use base::{Dur, LinkId, Time};
use engine::Driver;
use fabric::agent::Agent;
use fabric::net::Net;
use fabric::qdisc::Qdisc;
use fabric::routes::Routes;
use scenario::RunSpec;
use scenario::event::{Change, Holds};

/// All changes of a run, and how far they have got.
pub struct Failures {
    changes: Vec<Change>,
    happened: Front,
    detected: Front,
    converged: Front,
    /// By link: how long it was down before, and since when it is.
    down: Vec<(Dur, Option<Time>)>,
}

/// How many changes have reached some place, a delay after they happened.
struct Front {
    delay: Dur,
    passed: usize,
    links: Holds,
}

impl Front {
    fn new(net: &Net, delay: Dur) -> Front {
        Front { delay, passed: 0, links: Holds::new(net) }
    }
    /// When the next change arrives.
    fn next(&self, changes: &[Change]) -> Time {
        let arrives = |c: &Change| if c.at == Time::ZERO { c.at } else { c.at.after(self.delay) };
        changes.get(self.passed).map_or(Time::MAX, arrives)
    }
    /// The next change to have arrived by `now`, with the links that it takes down or brings up here.
    fn pop(&mut self, changes: &[Change], net: &Net, now: Time) -> Option<(Change, Vec<LinkId>)> {
        (self.next(changes) <= now).then(|| {
            let change = changes[self.passed];
            self.passed += 1;
            (change, self.links.apply(net, &change))
        })
    }
    /// Whether anything has arrived by `now`.
    fn advance(&mut self, changes: &[Change], net: &Net, now: Time) -> bool {
        std::iter::from_fn(|| self.pop(changes, net, now)).count() > 0
    }
}

impl Failures {
    /// Those of a run; `None` if nothing ever happens.
    pub fn new(spec: &RunSpec) -> Option<Failures> {
        let changes = spec.changes();
        let params = &spec.failures.as_ref().filter(|_| !changes.is_empty())?.params;
        let front = |delay| Front::new(&spec.net, delay);
        let (happened, detected) = (front(Dur::ZERO), front(params.detect));
        let converged = front(params.detect + params.converge);
        Some(Failures { changes, happened, detected, converged, down: vec![(Dur::ZERO, None); spec.net.links().len()] })
    }
    /// When something happens or becomes known next.
    pub fn next(&self) -> Time {
        [&self.happened, &self.detected, &self.converged]
            .map(|front| front.next(&self.changes))
            .into_iter()
            .min()
            .unwrap_or(Time::MAX)
    }
    /// How long a link has been down.
    pub fn down_time(&self, link: LinkId, now: Time) -> Dur {
        let (before, since) = self.down[link.index()];
        before + since.map_or(Dur::ZERO, |since| now.since(since))
    }
    /// Whether the nodes at its ends know that a link is down.
    pub fn is_known_down(&self, link: LinkId) -> bool {
        self.detected.links.is_down(link)
    }
    /// The routes by what is known at `now`, if anything more is known than before.
    pub fn routes(&mut self, net: &Net, now: Time) -> Option<Routes> {
        let news = [&mut self.detected, &mut self.converged].map(|front| front.advance(&self.changes, net, now));
        let dead = |front: &Front| -> Vec<bool> { (0..net.links().len() as u32).map(|l| front.links.is_down(LinkId(l))).collect() };
        news.contains(&true).then(|| Routes::new(net, &dead(&self.converged)).without(&dead(&self.detected)))
    }
}

/// Does what is due now: links first, in the order of the scenario's events, then routes.
pub fn act<P: Probe>(world: &mut World<P>, links: &mut impl Driver<Carried>) {
    let Some(mut failures) = world.failures.take() else { return };
    let (now, net) = (links.now(), std::sync::Arc::clone(&world.routing.net));
    while let Some((change, hit)) = failures.happened.pop(&failures.changes, &net, now) {
        for link in hit {
            if change.up {
                links.link_up(link);
                failures.down[link.index()] = (failures.down_time(link, now), None);
            } else {
                take_down(world, links, link);
                failures.down[link.index()].1 = Some(now);
            }
        }
    }
    if let Some(routes) = failures.routes(&net, now) {
        world.reroute(routes);
    }
    world.failures = Some(failures);
}

/// Everything at a port and on its wire is lost.
fn take_down<P: Probe>(world: &mut World<P>, links: &mut impl Driver<Carried>, link: LinkId) {
    let now = links.now();
    links.catch_up(world, link, now.before(Dur(1)));
    world.probe.on_link_down(link, now);
    for packet in links.link_down(link) {
        world.lose(link, now, &packet);
    }
    if let Some(mut port) = world.ports[link.index()].take() {
        while let Some(packet) = port.qdisc.dequeue(now) {
            let stats = links.stats_mut(link);
            stats.waited(u32::from(packet.wire_len), now - packet.arrival);
            stats.lost_unsent += 1;
            world.lose(link, now, packet);
        }
        if let Some(agent) = &mut port.agent {
            agent.on_link_down();
        }
        world.ports[link.index()] = Some(port);
    }
    if let Some(host) = world.routing.net.host(world.routing.net.link(link).from) {
        let host = &mut world.hosts[host.index()];
        host.drained_at = host.drained_at.min(now);
    }
}

//! Links that go down and come up, and how the network detects the changes.
//!
//! A link changes at the time of the event. After the time `detect`, the nodes at its ends know of the
//! change: a switch stops using the port and sends packets routed to the port another way, if there is
//! one. After a further time `converge`, all switches have routes without the link. Repairs spread in the
//! same two steps. Links that are down at the start are known from the start. Until the nodes know, they
//! send into the dead link. Packets sent into a dead link are lost, and so are packets without a path.

use crate::actors::global::Global;
use crate::node::world::Carried;
use crate::parallel::part::Part;
use crate::parallel::whole::Whole;
use crate::probe::Probe;
use base::{Dur, LinkId, Time};
use engine::Driver;
use fabric::agent::Agent;
use fabric::net::Net;
use fabric::qdisc::Qdisc;
use fabric::routes::Routes;
use proto::Packet;
use scenario::RunSpec;
use scenario::event::{Change, Holds};

/// All changes of a run, and how far the knowledge of them has spread.
pub struct FailureActor {
    changes: Vec<Change>,
    happened: Front,
    detected: Front,
    converged: Front,
    /// Changes (link, up) that the switches at the ends of the link have detected. The router is not notified
    /// of them yet.
    found_out: Vec<(LinkId, bool)>,
    /// By link: the total of its past down times, and the start of the present one.
    down: Vec<(Dur, Option<Time>)>,
}

/// The changes that have taken effect a given delay after they happened.
struct Front {
    delay: Dur,
    passed: usize,
    links: Holds,
}

impl Front {
    fn new(net: &Net, delay: Dur) -> Front {
        Front { delay, passed: 0, links: Holds::new(net) }
    }
    /// Returns when the next change takes effect.
    fn next(&self, changes: &[Change]) -> Time {
        let arrives = |c: &Change| if c.at == Time::ZERO { c.at } else { c.at.after(self.delay) };
        changes.get(self.passed).map_or(Time::MAX, arrives)
    }
    /// Takes the next change that takes effect by `now`, with the links that it takes down or brings up.
    fn pop(&mut self, changes: &[Change], net: &Net, now: Time) -> Option<(Change, Vec<LinkId>)> {
        (self.next(changes) <= now).then(|| {
            let change = changes[self.passed];
            self.passed += 1;
            (change, self.links.apply(net, &change))
        })
    }
    /// Returns, by link, whether it is down according to the changes in effect.
    fn dead(&self) -> Vec<bool> {
        self.links.all_down()
    }
    /// Returns the links (link, up) changed by all changes that take effect by `now`, in order; `None` if no
    /// change takes effect.
    fn advance(&mut self, changes: &[Change], net: &Net, now: Time) -> Option<Vec<(LinkId, bool)>> {
        let mut hit = None;
        while let Some((change, links)) = self.pop(changes, net, now) {
            hit.get_or_insert_with(Vec::new).extend(links.into_iter().map(|link| (link, change.up)));
        }
        hit
    }
}

impl FailureActor {
    /// Creates the failures of a run; `None` if the run has no failure events.
    pub fn new(spec: &RunSpec) -> Option<FailureActor> {
        let changes = spec.changes();
        let params = &spec.failures.as_ref().filter(|_| !changes.is_empty())?.params;
        let front = |delay| Front::new(&spec.net, delay);
        let (happened, detected) = (front(Dur::ZERO), front(params.detect));
        let converged = front(params.detect + params.converge);
        Some(FailureActor {
            changes,
            happened,
            detected,
            converged,
            found_out: Vec::new(),
            down: vec![(Dur::ZERO, None); spec.net.links().len()],
        })
    }
    /// Returns how long a link has been down.
    pub fn down_time(&self, link: LinkId, now: Time) -> Dur {
        let (before, since) = self.down[link.index()];
        before + since.map_or(Dur::ZERO, |since| now.since(since))
    }
    /// Applies the next change that happens by `now`. Returns the links that it changes, and whether they
    /// come up. The down times of these links begin or end now.
    pub fn happen(&mut self, net: &Net, now: Time) -> Option<(Vec<LinkId>, bool)> {
        let (change, links) = self.happened.pop(&self.changes, net, now)?;
        for &link in &links {
            self.down[link.index()] =
                if change.up { (self.down_time(link, now), None) } else { (self.down[link.index()].0, Some(now)) };
        }
        Some((links, change.up))
    }
    /// Returns, by link, whether the nodes at its ends know that it is down.
    pub fn known_down(&self) -> Vec<bool> {
        self.detected.dead()
    }
    /// Returns the routes that follow from the changes known at `now`; `None` if no change became known.
    pub fn routes(&mut self, net: &Net, now: Time) -> Option<Routes> {
        let found = [&mut self.detected, &mut self.converged].map(|front| front.advance(&self.changes, net, now));
        let changed = found.iter().any(Option::is_some);
        let [detected, _] = found;
        self.found_out = detected.unwrap_or_default();
        changed.then(|| Routes::new(net, &self.converged.dead()).without(&self.detected.dead()))
    }
    /// Takes the changes (link, up) that the switches at the ends of the link have detected since the last
    /// call.
    pub fn found_out(&mut self) -> Vec<(LinkId, bool)> {
        std::mem::take(&mut self.found_out)
    }
    /// Notifies the router, at the switches at the ends of each link, of the changes detected since the last
    /// call.
    pub fn notify_router<E: Driver<Carried>, P: Probe>(&mut self, whole: &mut Whole<E, P>) {
        for (link, up) in self.found_out() {
            let Part { world, engine } = whole.at_port(link);
            world.on_link(engine, link, up);
        }
    }
}

impl Global for FailureActor {
    /// Returns when a change happens or becomes known next.
    fn next(&self) -> Time {
        [&self.happened, &self.detected, &self.converged]
            .map(|front| front.next(&self.changes))
            .into_iter()
            .min()
            .unwrap_or(Time::MAX)
    }
    /// Changes links first, in the order of the scenario's events, then routes.
    fn act<E: Driver<Carried>, P: Probe>(&mut self, whole: &mut Whole<E, P>) {
        let (now, net) = (whole.now(), std::sync::Arc::clone(whole.net()));
        while let Some((hit, up)) = self.happen(&net, now) {
            for link in hit {
                let part = whole.at_port(link);
                if up {
                    part.engine.link_up(link);
                    if let Some(port) = &mut part.world.ports[link.index()] {
                        port.qdisc.on_link_up(now);
                    }
                } else {
                    take_down(part, link);
                }
            }
        }
        if let Some(routes) = self.routes(&net, now) {
            whole.reroute(&std::sync::Arc::new(routes), &self.known_down());
        }
        self.notify_router(whole);
    }
}

/// Takes a link down: all packets at its port and on its wire are lost.
fn take_down<E: Driver<Carried>, P: Probe>(part: &mut Part<E, P>, link: LinkId) {
    let Part { world, engine: links } = part;
    let now = links.now();
    links.catch_up(world, link, now.before(Dur(1)));
    world.probe.on_link_down(link, now);
    for packet in links.link_down(link) {
        world.lose(link, now, &packet);
    }
    if let Some(mut port) = world.ports[link.index()].take() {
        let waited: Vec<Packet> = std::iter::from_fn(|| port.drain(now)).collect();
        if let Some(agent) = &mut port.agent {
            agent.on_link_down();
        }
        port.state.queue = port.qdisc.backlog();
        if let Some(pausing) = &mut port.pausing {
            pausing.clear(now);
        }
        world.ports[link.index()] = Some(port);
        for packet in waited {
            let stats = links.stats_mut(link);
            stats.waited(u32::from(packet.wire_len), now - packet.arrival);
            stats.lost_unsent += 1;
            if world.pausing {
                world.leaves(link, &packet);
            }
            world.lose(link, now, &packet);
        }
        if world.pausing {
            world.on_dead_link(links, link);
        }
    }
    if let Some(host) = world.routing.net.host(world.routing.net.link(link).from)
        && let Some(nic) = world.hosts[host.index()].nic_mut(link)
    {
        nic.drained_at = nic.drained_at.min(now);
    }
}

//! The search for deadlocks: switches that pause each other so that none of them can ever send again. It
//! runs at a period, in systems in which neighbours pause each other.
//!
//! A port is stuck in a class if its neighbour pauses it, and would still pause it after the departure of
//! every packet that waits at the neighbour for a port that is not stuck. At first all paused ports count
//! as stuck. Then ports that could go on are removed until no such port is left. The remaining ports wait
//! for each other: none of them ever sends again unless a link fails, and each leads to a circle.

use crate::actors::global::Global;
use crate::node::world::Carried;
use crate::outcome::Deadlock;
use crate::parallel::whole::Whole;
use crate::probe::Probe;
use base::{Dur, LinkId, NodeId, Time};
use engine::Driver;
use fabric::buffer::Buffer;
use fabric::net::Net;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Time between two searches. Only the time at which a deadlock is found depends on it.
const PERIOD: Dur = Dur::from_us(100);

/// The search for deadlocks.
pub struct Deadlocks {
    next: Time,
    ends: bool,
    /// The first deadlock that was found.
    pub found: Option<Deadlock>,
}

/// Paused ports, by their links, and the paused class.
type Held = BTreeSet<(LinkId, u8)>;

impl Deadlocks {
    /// Creates the search. If `ends` is true, the run ends when a deadlock is found.
    pub fn new(ends: bool) -> Deadlocks {
        Deadlocks { next: Time::ZERO + PERIOD, ends, found: None }
    }
    /// Returns whether the run must end.
    pub fn ends_the_run(&self) -> bool {
        self.ends && self.found.is_some()
    }
}

impl Global for Deadlocks {
    fn next(&self) -> Time {
        self.next
    }
    fn act<E: Driver<Carried>, P: Probe>(&mut self, whole: &mut Whole<E, P>) {
        let (now, net) = (whole.now(), Arc::clone(whole.net()));
        self.next = now + PERIOD;
        let stuck = stuck(whole, &net);
        if let Some(first) = stuck.first() {
            let cycle = cycle(whole, &net, &stuck, *first);
            self.found = Some(Deadlock { at_ps: now.0, cycle, stuck: stuck.len() as u64 });
            self.next = Time::MAX;
        }
    }
}

/// Returns the link over which packets arrive at a port of a switch.
fn into(net: &Net, at: NodeId, port: u16) -> LinkId {
    net.link(LinkId(net.out_base(at) + u32::from(port))).reverse
}

/// Returns all ports that are stuck.
fn stuck<E: Driver<Carried>, P: Probe>(whole: &Whole<E, P>, net: &Net) -> Held {
    let pausing = |link: LinkId| whole.port(link).world.ports[link.index()].as_ref().and_then(|port| port.pausing.as_ref());
    let switches = (0..net.nodes().len() as u32).map(NodeId).filter(|node| net.host(*node).is_none());
    let switches: Vec<NodeId> = switches.filter(|at| !buffer(whole, net, *at).paused().is_empty()).collect();
    // Only ports to which no PAUSE frame is on its way: their state changes only by new PAUSE frames.
    let is_held = |(link, class): &(LinkId, u8)| {
        let ends = pausing(*link).zip(pausing(net.link(*link).reverse));
        ends.is_some_and(|(held, far)| held.is_held(*class) && !held.expects_orders(far))
    };
    let named = |at: &NodeId| {
        let at = *at;
        buffer(whole, net, at).paused().iter().map(move |(port, class)| (into(net, at, *port), *class))
    };
    let mut held: Held = switches.iter().flat_map(named).filter(is_held).collect();
    loop {
        let stay = |at: &NodeId| {
            let at = *at;
            let waits_for = |port: u16, class: u8| held.contains(&(LinkId(net.out_base(at) + u32::from(port)), class));
            buffer(whole, net, at).stay_paused(&waits_for).into_iter().map(move |(port, class)| (into(net, at, port), class))
        };
        let left: Held = switches.iter().flat_map(stay).filter(|port| held.contains(port)).collect();
        if left.len() == held.len() {
            return held;
        }
        held = left;
    }
}

fn buffer<'a, E: Driver<Carried>, P: Probe>(whole: &'a Whole<E, P>, net: &Net, at: NodeId) -> &'a fabric::buffer::AnyBuffer {
    &whole.port(LinkId(net.out_base(at))).world.buffers[at.index()]
}

/// Follows stuck ports from `first` to a circle. At each switch it takes the stuck port at which most of the
/// bytes wait that keep the port before paused.
fn cycle<E: Driver<Carried>, P: Probe>(whole: &Whole<E, P>, net: &Net, stuck: &Held, first: (LinkId, u8)) -> Vec<(u32, u8)> {
    let mut way = vec![first];
    loop {
        let (link, class) = *way.last().expect("`way` begins with `first`");
        let at = net.link(link).to;
        let back = net.link(net.link(link).reverse).port.0 as u16;
        let buffer = buffer(whole, net, at);
        let waits =
            |next: &&(LinkId, u8)| (buffer.waiting((back, class), net.link(next.0).port.0 as u16), std::cmp::Reverse(next.0));
        let onward = stuck.iter().filter(|(next, of)| net.link(*next).from == at && *of == class);
        let next = onward.max_by_key(waits).expect("packets that keep a stuck port paused wait at a stuck port");
        if let Some(place) = way.iter().position(|known| known == next) {
            return way[place..].iter().map(|(link, class)| (link.0, *class)).collect();
        }
        way.push(*next);
    }
}

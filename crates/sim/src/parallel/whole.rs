//! A whole run while no event is handled: its parts, each an engine and a world, and the owner of each
//! node.
//!
//! A run has one part, or several parts that run on different threads ([`crate::parallel::threads`]). A
//! part has state for the whole network, but uses only the state that its nodes own: their ports, hosts
//! and switches, and one end of each flow. Code that acts on the whole network, or reads it, finds the
//! owner here.

use crate::node::lossy;
use crate::node::open::SeenFlow;
use crate::node::share::PartShare;
use crate::node::world::{Carried, NodeCounts, TrafficCounts, World};
use crate::parallel::cut::Cut;
use crate::parallel::part::Part;
use crate::parallel::threads::{self, Stop, Team};
use crate::probe::Probe;
use base::{Dur, FlowId, LinkId, NodeId, Time};
use engine::{Driver, Engine, Pause};
use fabric::net::Net;
use fabric::routes::Routes;
use fabric::routing::PathChange;
use proto::Flow;
use proto::host::FlowRecord;
use proto::policy_host::PolicyHost;
use std::borrow::Cow;
use std::sync::Arc;

/// All parts of a run.
pub struct Whole<E, P> {
    /// The parts, by number.
    pub parts: Vec<Part<E, P>>,
    net: Arc<Net>,
    several: Option<Several<E, P>>,
}

type Run<E, P> = fn(&mut Team<P>, &mut Vec<Part<E, P>>, Time, u64) -> Stop;
type Step<E, P> = fn(&mut [Part<E, P>], &Cut, Time) -> Option<bool>;

/// The cut of a run in several parts, and the functions of [`crate::parallel::threads`] that run them.
/// They are stored as pointers, since only some engines can run parts.
struct Several<E, P> {
    cut: Arc<Cut>,
    team: Team<P>,
    /// Number of global actions, which count as events.
    actions: u64,
    run: Run<E, P>,
    step: Step<E, P>,
    recall: fn(&mut [Part<E, P>], &Cut),
    next: fn(&mut [Part<E, P>]) -> Time,
}

impl<E: Driver<Carried>, P: Probe> Whole<E, P> {
    /// Creates a run of one part.
    pub fn new(part: Part<E, P>) -> Whole<E, P> {
        Whole { net: Arc::clone(&part.world.routing.net), parts: vec![part], several: None }
    }
    /// Returns the present time, which all parts have reached.
    pub fn now(&self) -> Time {
        self.parts[0].engine.now()
    }
    /// Returns the network.
    pub fn net(&self) -> &Arc<Net> {
        &self.net
    }
    /// Returns whether the engines use windows.
    pub fn uses_windows(&self) -> bool {
        self.parts[0].engine.uses_windows()
    }
    /// Returns all links.
    pub fn links(&self) -> impl Iterator<Item = LinkId> + use<E, P> {
        (0..self.net.links().len() as u32).map(LinkId)
    }
    fn owner(&self, node: NodeId) -> usize {
        self.several.as_ref().map_or(0, |several| usize::from(several.cut.owners[node.index()]))
    }
    /// Returns the part that owns the port of a link, for changes.
    pub fn at_port(&mut self, link: LinkId) -> &mut Part<E, P> {
        let owner = self.owner(self.net.link(link).from);
        &mut self.parts[owner]
    }
    /// Returns the part that owns the port of a link.
    pub fn port(&self, link: LinkId) -> &Part<E, P> {
        &self.parts[self.owner(self.net.link(link).from)]
    }
    /// Returns the packets that a link has lost at random, which its far end counts.
    pub fn lost_at_random(&self, link: LinkId) -> u64 {
        lossy::lost(&self.parts[self.owner(self.net.link(link).to)].world.lossy, link)
    }
    fn owner_of_end(&self, flow: FlowId, back: bool) -> usize {
        let (host, _) = self.flows()[flow.index()].ends(back);
        self.owner(self.net.hosts()[host.index()])
    }
    /// Returns the part of the host that sends a flow's packets of one direction: from its source, or
    /// `back` to it.
    pub fn end(&self, flow: FlowId, back: bool) -> &Part<E, P> {
        &self.parts[self.owner_of_end(flow, back)]
    }
    /// Returns the part of [`Whole::end`], for changes.
    pub fn at_end(&mut self, flow: FlowId, back: bool) -> &mut Part<E, P> {
        let owner = self.owner_of_end(flow, back);
        &mut self.parts[owner]
    }

    /// Returns all flows, by id.
    pub fn flows(&self) -> &[Flow] {
        &self.parts[0].world.flows
    }
    /// Returns the record of a flow: the sum of the records of all parts.
    pub fn record(&self, flow: FlowId) -> Cow<'_, FlowRecord> {
        let [first, others @ ..] = &*self.parts else { unreachable!("a run has parts") };
        let record = first.world.table.get(flow);
        match others {
            [] => Cow::Borrowed(record),
            _ => {
                let received = self.end(flow, true).world.table.get(flow);
                Cow::Owned(received.plus(self.parts.iter().map(|part| part.world.table.get(flow))))
            }
        }
    }
    /// Returns the counters of a flow, summed over all parts.
    pub fn counts(&self, flow: FlowId) -> Vec<u64> {
        let mut sum = self.parts[0].world.table.counts(flow).to_vec();
        for part in &self.parts[1..] {
            sum.iter_mut().zip(part.world.table.counts(flow)).for_each(|(sum, count)| *sum += count);
        }
        sum
    }
    /// Returns the number of flows that have finished.
    pub fn finished(&self) -> usize {
        self.parts.iter().map(|part| part.world.flows.len() - part.world.table.unfinished()).sum()
    }
    /// Returns whether some flow has neither finished nor been given up.
    pub fn any_open(&self) -> bool {
        match &*self.parts {
            [one] => one.world.table.any_open(),
            parts => {
                // A flow may count twice: it finished in one part, and its sender gave it up in another.
                let given_up: usize = parts.iter().map(|part| part.world.table.hopeless()).sum();
                self.finished() + given_up < self.flows().len() || self.flows().iter().any(|flow| self.is_open(flow.id))
            }
        }
    }
    /// Returns whether every flow has finished, or was given up, and its sender has closed.
    pub fn all_done(&self) -> bool {
        match &*self.parts {
            [one] => one.world.table.all_done(),
            parts => {
                let closed: usize = parts.iter().map(|part| part.world.flows.len() - part.world.table.unclosed()).sum();
                closed == self.flows().len() && !self.any_open()
            }
        }
    }
    /// Runs until `end`, until the next global action, or for `budget` events.
    pub fn run(&mut self, action: Time, end: Time, budget: u64) -> Pause {
        if self.several.is_none() {
            let Part { engine, world } = &mut self.parts[0];
            engine.set_action(action);
            let pause = engine.run(world, end, budget);
            if self.uses_windows() {
                self.sort_started();
            }
            return pause;
        }
        match self.run_parts(action.min(end), budget) {
            Pause::End if action < end => {
                self.several.iter_mut().for_each(|several| several.actions += 1);
                Pause::Action
            }
            pause => pause,
        }
    }
    /// Runs several parts until `until`, or for `budget` events.
    fn run_parts(&mut self, until: Time, budget: u64) -> Pause {
        let last = self.events().saturating_add(budget);
        let mut windows = 16;
        loop {
            let left = last.saturating_sub(self.events()).max(1);
            let Whole { parts, several: Some(Several { cut, team, run, recall, next, .. }), .. } = self else {
                unreachable!("several parts")
            };
            match run(team, parts, until, left) {
                Stop::Careful => {
                    // Step for some windows, and for twice as many if this has just happened: towards the end
                    // there may be no flow that is sure to stay open.
                    windows *= 2;
                    recall(parts, cut);
                    let limit = next(parts).after(Dur(cut.window.0.saturating_mul(windows))).min(until);
                    self.sort_started();
                    if self.step_until(limit) {
                        return Pause::Stopped;
                    }
                }
                stop => {
                    self.sort_started();
                    assert!(!self.all_done(), "a flow ended that was expected to stay open");
                    return if stop == Stop::Until { Pause::End } else { Pause::Budget };
                }
            }
        }
    }
    /// Handles the events of all parts one by one until `limit`. Returns whether the run stops.
    fn step_until(&mut self, limit: Time) -> bool {
        loop {
            let Whole { parts, several: Some(Several { cut, step, .. }), .. } = self else { unreachable!("several parts") };
            match step(parts, cut, limit) {
                None => return false,
                Some(true) if self.stops() => return true,
                Some(_) => {}
            }
        }
    }
    /// Sorts the flows that waited and have started by their starts: a part learns later of starts in
    /// other parts, and in a window nodes act one after the other.
    fn sort_started(&mut self) {
        let World { flows, started, .. } = &mut self.parts[0].world;
        started.sort_by_key(|flow| (flows[flow.index()].start, flows[flow.index()].src));
    }
    /// Returns whether a run of several parts stops: all flows are done, or the flows have ended with which
    /// the measurement window ends.
    fn stops(&mut self) -> bool {
        let mut closing = std::mem::take(&mut self.parts[0].world.closing);
        let window_ends = closing.have_ended(|flow| self.is_open(flow));
        self.parts[0].world.closing = closing;
        if window_ends {
            self.parts.iter_mut().filter_map(|part| part.world.share.as_mut()).for_each(PartShare::on_window_end);
        }
        window_ends || self.all_done()
    }
    /// Returns the probe, joined from the probes of all parts.
    pub fn into_probe(self) -> P {
        let mut probes = self.parts.into_iter().map(|part| part.world.probe);
        let first = probes.next().expect("a run has parts");
        probes.fold(first, P::join)
    }
    /// Returns the delivered bytes of a flow, and whether it has finished.
    pub fn progress(&self, flow: FlowId) -> (u64, bool) {
        let record = self.end(flow, true).world.table.get(flow);
        (record.delivered_bytes, record.finish != Time::MAX)
    }
    /// Returns whether a flow has neither finished nor been given up.
    pub fn is_open(&self, flow: FlowId) -> bool {
        !self.progress(flow).1 && !self.end(flow, false).world.table.get(flow).terminated
    }
    /// Returns whether a flow has finished and its sender has closed.
    pub fn is_done(&self, flow: FlowId) -> bool {
        self.progress(flow).1 && self.end(flow, false).world.table.get(flow).closed
    }
    /// Returns the flows that have started, for [`OpenFlows::look`](crate::node::open::OpenFlows::look).
    pub fn seen(&self) -> SeenFlow<'_> {
        SeenFlow { flows: self.flows(), started: &self.parts[0].world.started, now: self.now() }
    }
    /// Takes the paths set by hosts or the controller that died or came back since the last call.
    pub fn take_path_changes(&mut self) -> Vec<PathChange> {
        self.parts.iter_mut().flat_map(|part| std::mem::take(&mut part.world.path_changes)).collect()
    }

    /// Sets new routes, and the dead links that nodes know of.
    pub fn reroute(&mut self, routes: &Arc<Routes>, known_down: &[bool]) {
        let done: Vec<bool> = self.flows().iter().map(|flow| self.is_done(flow.id)).collect();
        for Part { engine, world } in &mut self.parts {
            known_down.clone_into(&mut world.known_down);
            world.reroute(engine, routes, |flow| done[flow.index()]);
            world.on_routes(engine);
        }
    }

    /// Returns the number of events so far.
    pub fn events(&self) -> u64 {
        self.parts.iter().map(|part| part.engine.events()).sum::<u64>() + self.several.as_ref().map_or(0, |several| several.actions)
    }
    /// Returns the counts of packets that hosts sent and received, and of lost packets.
    pub fn traffic(&self) -> TrafficCounts {
        self.parts.iter().fold(TrafficCounts::default(), |sum, part| sum.plus(part.world.traffic))
    }
    /// Returns, by node, the counts of packets that the node made, consumed or lost.
    pub fn nodes(&self) -> Vec<NodeCounts> {
        (0..self.net.nodes().len()).map(|node| self.parts[self.owner(NodeId(node as u32))].world.nodes[node]).collect()
    }
    /// Returns the packets that switches and policies have created, and their bytes.
    pub fn made(&self) -> (u64, u64) {
        let switches = self.nodes().into_iter().map(|node| (node.made, node.made_bytes));
        let policies = self.parts.iter().flat_map(|part| part.world.policy_hosts.iter().map(PolicyHost::made));
        switches.chain(policies).fold((0, 0), |sum, made| (sum.0 + made.0, sum.1 + made.1))
    }
}

impl<P: Probe + Send + 'static> Whole<Engine<Carried>, P> {
    /// Creates a run of the parts of a cut, by number, on `on` threads.
    pub fn of(parts: Vec<Part<Engine<Carried>, P>>, cut: &Arc<Cut>, on: usize) -> Whole<Engine<Carried>, P> {
        let several = Several {
            cut: Arc::clone(cut),
            team: Team::new(cut, on),
            actions: 0,
            run: Team::run,
            step: threads::step,
            recall: threads::recall,
            next: threads::next,
        };
        Whole { net: Arc::clone(&parts[0].world.routing.net), parts, several: Some(several) }
    }
}

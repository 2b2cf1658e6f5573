//! All of a run, while nothing runs: its parts, each an engine and a world, and who owns what.
//!
//! A run has one part, or several that run on threads of their own ([`crate::parallel::threads`]). A part has the whole network by number and only what its
//! nodes own is alive in it: their ports, hosts and switches, one end of each flow. Whoever acts on the whole network, or reads it, finds the
//! owner here.

use crate::node::lossy;
use crate::node::open::SeenFlow;
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
    /// The parts.
    pub parts: Vec<Part<E, P>>,
    net: Arc<Net>,
    several: Option<Several<E, P>>,
}

type Run<E, P> = fn(&mut Team<P>, &mut Vec<Part<E, P>>, Time, u64) -> Stop;
type Step<E, P> = fn(&mut [Part<E, P>], &Cut, Time) -> Option<bool>;

/// That there are several parts, and how they run together: the functions of [`crate::parallel::threads`], for engines that can be parts.
struct Several<E, P> {
    cut: Arc<Cut>,
    team: Team<P>,
    /// Global actions, which count as events.
    actions: u64,
    run: Run<E, P>,
    step: Step<E, P>,
    recall: fn(&mut [Part<E, P>], &Cut),
    next: fn(&mut [Part<E, P>]) -> Time,
}

impl<E: Driver<Carried>, P: Probe> Whole<E, P> {
    /// A run of one part.
    pub fn new(part: Part<E, P>) -> Whole<E, P> {
        Whole { net: Arc::clone(&part.world.routing.net), parts: vec![part], several: None }
    }
    /// The present, between two events of every part.
    pub fn now(&self) -> Time {
        self.parts[0].engine.now()
    }
    /// The network.
    pub fn net(&self) -> &Arc<Net> {
        &self.net
    }
    /// All links.
    pub fn links(&self) -> impl Iterator<Item = LinkId> + use<E, P> {
        (0..self.net.links().len() as u32).map(LinkId)
    }
    fn owner(&self, node: NodeId) -> usize {
        self.several.as_ref().map_or(0, |several| usize::from(several.cut.owners[node.index()]))
    }
    /// The part that owns the port of a link.
    pub fn at_port(&mut self, link: LinkId) -> &mut Part<E, P> {
        let owner = self.owner(self.net.link(link).from);
        &mut self.parts[owner]
    }
    /// The part that owns the port of a link, to be read.
    pub fn port(&self, link: LinkId) -> &Part<E, P> {
        &self.parts[self.owner(self.net.link(link).from)]
    }
    /// Packets that a link has lost at random: its far end counts them.
    pub fn lost_at_random(&self, link: LinkId) -> u64 {
        lossy::lost(&self.parts[self.owner(self.net.link(link).to)].world.lossy, link)
    }
    fn owner_of_end(&self, flow: FlowId, back: bool) -> usize {
        let (host, _) = self.flows()[flow.index()].ends(back);
        self.owner(self.net.hosts()[host.index()])
    }
    /// The part of the host that sends a flow's packets: those from its source, or those back.
    pub fn end(&self, flow: FlowId, back: bool) -> &Part<E, P> {
        &self.parts[self.owner_of_end(flow, back)]
    }
    /// The same, to be changed.
    pub fn at_end(&mut self, flow: FlowId, back: bool) -> &mut Part<E, P> {
        let owner = self.owner_of_end(flow, back);
        &mut self.parts[owner]
    }

    /// All flows, by id.
    pub fn flows(&self) -> &[Flow] {
        &self.parts[0].world.flows
    }
    /// What happened to a flow.
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
    /// The counters of a flow.
    pub fn counts(&self, flow: FlowId) -> Vec<u64> {
        let mut sum = self.parts[0].world.table.counts(flow).to_vec();
        for part in &self.parts[1..] {
            sum.iter_mut().zip(part.world.table.counts(flow)).for_each(|(sum, count)| *sum += count);
        }
        sum
    }
    /// How many flows have finished.
    pub fn finished(&self) -> usize {
        self.parts.iter().map(|part| part.world.flows.len() - part.world.table.unfinished()).sum()
    }
    /// Whether some flow has neither finished nor been given up.
    pub fn any_open(&self) -> bool {
        match &*self.parts {
            [one] => one.world.table.any_open(),
            parts => {
                // A flow may have finished that its sender, in another part, gave up.
                let given_up: usize = parts.iter().map(|part| part.world.table.hopeless()).sum();
                self.finished() + given_up < self.flows().len() || self.flows().iter().any(|flow| self.is_open(flow.id))
            }
        }
    }
    /// Whether every flow has finished, or was given up, and its sender's state is done.
    pub fn all_done(&self) -> bool {
        match &*self.parts {
            [one] => one.world.table.all_done(),
            parts => {
                let closed: usize = parts.iter().map(|part| part.world.flows.len() - part.world.table.unclosed()).sum();
                closed == self.flows().len() && !self.any_open()
            }
        }
    }
    /// Goes on until `end`, the next global action, or for `budget` events.
    pub fn run(&mut self, action: Time, end: Time, budget: u64) -> Pause {
        if self.several.is_none() {
            let Part { engine, world } = &mut self.parts[0];
            engine.set_action(action);
            return engine.run(world, end, budget);
        }
        match self.run_parts(action.min(end), budget) {
            Pause::End if action < end => {
                self.several.iter_mut().for_each(|several| several.actions += 1);
                Pause::Action
            }
            pause => pause,
        }
    }
    /// The same for several parts, without an action.
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
                    // For some windows, and for more if that has just been so: towards the end no flow may be found that stays open.
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
                    assert!(!self.all_done(), "a flow that was to stay open has ended");
                    return if stop == Stop::Until { Pause::End } else { Pause::Budget };
                }
            }
        }
    }
    /// Handles event after event of all parts. Says whether the run stops.
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
    /// Puts the flows that waited and have started into the order of their starts: parts hear of each other's later.
    fn sort_started(&mut self) {
        let World { flows, started, .. } = &mut self.parts[0].world;
        started.sort_by_key(|flow| (flows[flow.index()].start, flows[flow.index()].src));
    }
    /// Whether the run is to stop, of several parts: all is done, or no flow is open any more and the run is to be told of that.
    fn stops(&mut self) -> bool {
        let last_finish = self.parts[0].world.last_finish && !self.any_open();
        if last_finish {
            self.parts.iter_mut().for_each(|part| part.world.last_finish = false);
        }
        last_finish || self.all_done()
    }
    /// What has watched.
    pub fn into_probe(self) -> P {
        let mut probes = self.parts.into_iter().map(|part| part.world.probe);
        let first = probes.next().expect("a run has parts");
        probes.fold(first, P::join)
    }
    /// The bytes of a flow that were delivered, and whether it has finished.
    pub fn progress(&self, flow: FlowId) -> (u64, bool) {
        let record = self.end(flow, true).world.table.get(flow);
        (record.delivered_bytes, record.finish != Time::MAX)
    }
    /// Whether a flow has neither finished nor been given up.
    pub fn is_open(&self, flow: FlowId) -> bool {
        !self.progress(flow).1 && !self.end(flow, false).world.table.get(flow).terminated
    }
    /// Whether a flow has finished and its sender's state is done.
    pub fn is_done(&self, flow: FlowId) -> bool {
        self.progress(flow).1 && self.end(flow, false).world.table.get(flow).closed
    }
    /// What a look at the open flows shows.
    pub fn seen(&self) -> SeenFlow<'_> {
        SeenFlow { flows: self.flows(), started: &self.parts[0].world.started, now: self.now() }
    }
    /// What became of the paths that were named, since this was last asked.
    pub fn take_path_changes(&mut self) -> Vec<PathChange> {
        self.parts.iter_mut().flat_map(|part| std::mem::take(&mut part.world.path_changes)).collect()
    }

    /// The routes have changed, and so has what nodes know of dead links.
    pub fn reroute(&mut self, routes: &Arc<Routes>, known_down: &[bool]) {
        let done: Vec<bool> = self.flows().iter().map(|flow| self.is_done(flow.id)).collect();
        for Part { engine, world } in &mut self.parts {
            known_down.clone_into(&mut world.known_down);
            world.reroute(engine, routes, |flow| done[flow.index()]);
            world.on_routes(engine);
        }
    }

    /// Events so far.
    pub fn events(&self) -> u64 {
        self.parts.iter().map(|part| part.engine.events()).sum::<u64>() + self.several.as_ref().map_or(0, |several| several.actions)
    }
    /// What hosts sent and received, and what was lost.
    pub fn traffic(&self) -> TrafficCounts {
        self.parts.iter().fold(TrafficCounts::default(), |sum, part| sum.plus(part.world.traffic))
    }
    /// What nodes made, took or lost by themselves, by node.
    pub fn nodes(&self) -> Vec<NodeCounts> {
        (0..self.net.nodes().len()).map(|node| self.parts[self.owner(NodeId(node as u32))].world.nodes[node]).collect()
    }
    /// Packets that switches and policies have made of their own, and their bytes.
    pub fn made(&self) -> (u64, u64) {
        let switches = self.nodes().into_iter().map(|node| (node.made, node.made_bytes));
        let policies = self.parts.iter().flat_map(|part| part.world.policy_hosts.iter().map(PolicyHost::made));
        switches.chain(policies).fold((0, 0), |sum, made| (sum.0 + made.0, sum.1 + made.1))
    }
}

impl<P: Probe + Send + 'static> Whole<Engine<Carried>, P> {
    /// A run of the parts of a cut, by number, on so many threads.
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

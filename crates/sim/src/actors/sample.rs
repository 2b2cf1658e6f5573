//! Time series: ports, flows and switches sampled at an interval, as global actions.
//!
//! Sampling does not change the run: flows and counters are the same as without samples.

use crate::actors::global::Global;
use crate::node::open::{OpenFlows, SeenFlow};
use crate::node::world::{Carried, NodeCounts};
use crate::outcome::{AgentRow, SampleRow};
use crate::parallel::part::Part;
use crate::parallel::whole::Whole;
use crate::probe::Probe;
use base::{Dur, FlowId, LinkId, Time};
use engine::Driver;
use fabric::agent::Agent as _;
use fabric::net::Net;
use proto::Transport as _;
use scenario::{FlowSet, Sample};
use std::ops::Range;

/// Samples ports, flows and switches at an interval, and keeps the samples.
pub struct Sampler {
    interval: Dur,
    next: Time,
    /// The recorded time.
    time: Range<Time>,
    /// The recorded flows.
    only_flows: FlowSet,
    /// The ports to sample, with the busy time of each at the last sample.
    ports: Vec<(LinkId, Dur)>,
    /// Open flows; `None` if flows are not sampled.
    open: Option<OpenFlows>,
    /// By node: packets made and consumed up to the last sample; empty if switches are not sampled.
    own: Vec<[u64; 2]>,
    /// The ports whose agents are sampled.
    agents: Vec<LinkId>,
    /// The samples, by time.
    pub rows: Vec<SampleRow>,
    /// The tables of agents, by time, port and flow.
    pub tables: Vec<AgentRow>,
}

impl Sampler {
    /// Creates a sampler. The first sample is at the end of the first interval, or one interval before the
    /// recorded time, since a rate is the difference of two samples.
    pub fn new(sample: &Sample, net: &Net) -> Sampler {
        let every = (0..net.links().len() as u32).map(LinkId).filter(|link| sample.has_port(*link));
        let chosen: Vec<LinkId> = every.filter(|link| sample.port.is_none_or(|only| only == *link)).collect();
        let first = Time::ZERO + sample.interval * sample.start.0.div_ceil(sample.interval.0).saturating_sub(1).max(1);
        let of = |wanted: bool| if wanted { chosen.clone() } else { Vec::new() };
        Sampler {
            interval: sample.interval,
            next: if first < sample.end { first } else { Time::MAX },
            time: sample.start..sample.end,
            only_flows: sample.only_flows.clone(),
            ports: of(sample.ports).into_iter().map(|link| (link, Dur::ZERO)).collect(),
            open: sample.flows.then(OpenFlows::default),
            own: if sample.switches { vec![[0; 2]; net.nodes().len()] } else { Vec::new() },
            agents: of(sample.agents),
            rows: Vec::new(),
            tables: Vec::new(),
        }
    }
    /// Returns when the next sample is due.
    pub fn next(&self) -> Time {
        self.next
    }
    /// Samples ports. `look` returns how long the transmitter of a link has been busy, and the bytes that
    /// wait, if the engine has queues.
    pub fn look_at_ports(&mut self, now: Time, mut look: impl FnMut(LinkId) -> (Dur, Option<u64>)) {
        for (link, before) in &mut self.ports {
            let (busy, waiting) = look(*link);
            let share = (busy - std::mem::replace(before, busy)).0 as f64 / self.interval.0 as f64;
            let row = |metric, value| SampleRow { time_ps: now.0, entity: link.0, metric, value };
            self.rows.extend(waiting.map(|bytes| row("port.queue_bytes", bytes as f64)));
            self.rows.push(row("port.utilisation", share.min(1.0)));
        }
    }
    /// Samples flows. `progress` returns the delivered bytes of a flow and whether it has finished; `sender`
    /// returns the state of its sender.
    pub fn look_at_flows(
        &mut self,
        seen: SeenFlow<'_>,
        progress: impl Fn(FlowId) -> (u64, bool),
        sender: impl Fn(FlowId) -> Option<proto::flow::Sample>,
    ) {
        let Some(open) = &mut self.open else { return };
        for (flow, delivered) in open.look(seen, progress).into_iter().filter(|(flow, _)| self.only_flows.has(*flow)) {
            let rate = delivered as f64 * 8.0 / self.interval.as_secs_f64();
            let row = |metric, value| SampleRow { time_ps: seen.now.0, entity: flow.0, metric, value };
            self.rows.push(row("flow.rate_bps", rate));
            if let Some(sample) = sender(flow) {
                self.rows.push(row("flow.cwnd_bytes", sample.cwnd_bytes as f64));
                // Zero means that the sender has no value.
                let others = [("flow.ssthresh_bytes", sample.ssthresh_bytes as f64), ("flow.srtt_s", sample.srtt.as_secs_f64())];
                self.rows.extend(others.into_iter().filter(|(_, value)| *value > 0.0).map(|(metric, value)| row(metric, value)));
            }
        }
    }
    /// Samples the tables of agents. `show` passes on the values of a port's agent.
    pub fn look_at_agents(&mut self, now: Time, mut show: impl FnMut(LinkId, &mut dyn FnMut(FlowId, &'static str, f64))) {
        for link in &self.agents {
            let first = self.tables.len();
            show(*link, &mut |flow, column, value| {
                if !self.only_flows.has(flow) {
                    return;
                }
                self.tables.push(AgentRow { time_ps: now.0, port_id: link.0, flow_id: flow.0, column, value });
            });
            // Values of a flow stay in the order in which the agent shows them.
            self.tables[first..].sort_by_key(|row| row.flow_id);
        }
    }
    /// Samples the packets that switches have made and consumed since the last sample, if there are any.
    /// Must be called last: it completes the sample.
    pub fn look_at_switches(&mut self, now: Time, nodes: &[NodeCounts]) {
        for (node, (before, counts)) in self.own.iter_mut().zip(nodes).enumerate() {
            let own = [counts.made, counts.taken];
            for (metric, new) in ["switch.made_packets", "switch.taken_packets"].into_iter().zip([0, 1].map(|i| own[i] - before[i]))
            {
                if new > 0 {
                    self.rows.push(SampleRow { time_ps: now.0, entity: node as u32, metric, value: new as f64 });
                }
            }
            *before = own;
        }
        if now < self.time.start {
            self.rows.clear();
            self.tables.clear();
        }
        let next = now + self.interval;
        self.next = if next < self.time.end { next } else { Time::MAX };
    }
}

impl Global for Sampler {
    fn next(&self) -> Time {
        self.next()
    }
    fn act<E: Driver<Carried>, P: Probe>(&mut self, whole: &mut Whole<E, P>) {
        let (now, before) = (whole.now(), whole.now().before(Dur(1)));
        self.look_at_ports(now, |link| {
            let Part { world, engine } = whole.at_port(link);
            engine.catch_up(world, link, before);
            (engine.busy(link), Some(world.waiting_bytes(engine, link, before)))
        });
        self.look_at_agents(now, |link, value| {
            let Part { world, engine } = whole.at_port(link);
            engine.catch_up(world, link, before);
            let agent = world.ports[link.index()].as_ref().and_then(|port| port.agent.as_ref());
            agent.into_iter().for_each(|agent| agent.show(value));
        });
        let sender = |flow: FlowId| {
            let world = &whole.end(flow, false).world;
            world.hosts[world.flows[flow.index()].src.index()].transport.sample(flow)
        };
        self.look_at_flows(whole.seen(), |flow| whole.progress(flow), sender);
        self.look_at_switches(now, &whole.nodes());
    }
}

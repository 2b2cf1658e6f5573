//! Flows of a run with their deadlines, and changes of its links; both are drawn before the run.

use crate::deadline::{self, Law as _};
use crate::event::change::{self, Change};
use crate::plan::measure::{CountedFlows, Programs, Window, WindowEnd};
use crate::plan::spec::{Demand, RunSpec};
use crate::plan::state::Steady;
use crate::plan::steady;
use crate::plan::tasks::{Ids, RunTasks, group};
use crate::workload::after::earliest_roots;
use crate::workload::{self, Draw, Drawn, DrawnJoin, Outside, Workload as _};
use base::{Dur, FlowId, HostId, JoinId, Rate, Rng, Streams, Time};
use fabric::routes::Routes;
use proto::Flow;
use proto::flow::{Join, Wait};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};

/// The flows of a run, and what belongs to them.
#[derive(Clone, Debug, Default)]
pub struct RunTraffic {
    /// The flows, by id.
    pub flows: Vec<Flow>,
    /// The joins for which flows wait, by id.
    pub joins: Vec<Join>,
    /// The tasks of programs.
    pub tasks: RunTasks,
}

impl RunSpec {
    /// Draws the flows of all workloads, sorted by (start, workload, order of drawing); the id of a
    /// flow is its row. A flow that waits is sorted by the earliest start of the flows that it
    /// depends on, directly or not. Flows depend on the workloads, the network and the seed, but
    /// not on the system. Round trip and bottleneck are zero here: they follow from the routes of
    /// the run. With a start in the steady state, the result contains the flows that are open at
    /// the start, and those after the last flow that counts.
    pub fn flows(&self) -> Result<Vec<Flow>, String> {
        self.traffic().map(|traffic| traffic.flows)
    }

    /// Draws the flows of all workloads, as [`RunSpec::flows`] does, the joins for which they wait, and
    /// the tasks of their programs.
    pub fn traffic(&self) -> Result<RunTraffic, String> {
        let mut streams = Streams::new(self.seed);
        let mut all: Vec<Numbered> = Vec::new();
        let routes = OnceCell::new();
        let steady = self.steady_state(&routes)?;
        let (mut drawn, rest): (Vec<Vec<Drawn>>, Vec<_>) =
            self.drawn(&mut streams)?.into_iter().map(|draw| (draw.flows, (draw.joins, draw.tasks))).unzip();
        let own: Vec<usize> = drawn.iter().map(Vec::len).collect();
        if let Some(steady) = steady {
            let last = |index: usize| drawn[index].iter().map(|flow| flow.start).max();
            let lasts: Vec<Option<Time>> = steady::open_loops(self).into_iter().map(last).collect();
            let until = lasts.iter().flatten().max().copied().unwrap_or_default().after(steady.lasting);
            for (index, from) in steady::open_loops(self).into_iter().zip(lasts) {
                let when = Outside { name: "workload/after", from: from.unwrap_or_default(), until };
                drawn[index].extend(steady::arrivals(self, index, &mut streams, &when)?.unwrap_or_default());
            }
        }
        for (index, ((name, traffic), mut drawn)) in self.workloads.iter().zip(drawn).enumerate() {
            let roots = earliest_roots(&drawn, &rest[index].0).map_err(|e| format!("workload `{name}`: {e}"))?;
            if let Some(deadline) = &traffic.deadline {
                self.set_deadlines(
                    deadline,
                    (&mut drawn, &roots),
                    &routes,
                    &mut streams.take("workload/deadlines", &[index as u64]),
                );
            }
            let mut ports = streams.take("workload/ports", &[index as u64]);
            let mut connections = ConnectionPorts::default();
            for (number, (flow, root)) in drawn.into_iter().zip(roots).enumerate() {
                let measured = number < own[index];
                let src_port = connections.port(&flow, port(&mut ports));
                all.push(Numbered { workload: index as u16, number, root, src_port, measured, flow });
            }
            let mut ports = streams.take("workload/before/ports", &[index as u64]);
            for flow in steady.map_or(&[][..], |steady| &steady.under_way[index]) {
                let (src_port, flow) = (port(&mut ports), flow.clone());
                all.push(Numbered {
                    workload: index as u16,
                    number: usize::MAX,
                    root: flow.start,
                    src_port,
                    measured: false,
                    flow,
                });
            }
        }
        // A stable sort: flows with the same start keep the order in which their workload drew them.
        all.sort_by_key(|flow| (flow.root, flow.workload));
        let mut ids = vec![Ids::default(); self.workloads.len()];
        let order = |workload: u16| all.iter().zip(0..).filter(move |(flow, _)| flow.workload == workload);
        if rest.iter().any(|(_, tasks)| !tasks.moments.is_empty()) || all.iter().any(|flow| flow.flow.after.is_some()) {
            for (workload, ids) in ids.iter_mut().enumerate() {
                let mut own: Vec<(usize, FlowId)> = order(workload as u16).map(|(flow, id)| (flow.number, FlowId(id))).collect();
                own.sort_unstable();
                ids.flows = own.into_iter().map(|(_, id)| id).collect();
            }
        }
        let (mut run_joins, mut run_tasks) = (Vec::new(), RunTasks::default());
        for ((joins, tasks), (ids, workload)) in rest.into_iter().zip(ids.iter_mut().zip(0..)) {
            ids.first_join = JoinId(run_joins.len() as u32);
            let join = |join: DrawnJoin| Join {
                host: join.host,
                on: ids.flows(&join.flows).collect(),
                joins: ids.joins(&join.joins).collect(),
            };
            run_joins.extend(joins.into_iter().map(join));
            run_tasks.add(workload, tasks, ids);
        }
        let roots: Vec<Time> = all.iter().map(|flow| flow.root).collect();
        let mut flows: Vec<Flow> = all.into_iter().enumerate().map(|(id, flow)| self.flow(FlowId(id as u32), flow, &ids)).collect();
        if self.counted() == CountedFlows::Window {
            let window = self.window_of(flows.iter(), &run_tasks);
            let before_end = |root: Time, end: &WindowEnd| !matches!(end, WindowEnd::At(until) if root > *until);
            let counts = |root: Time| window.as_ref().is_some_and(|w| root >= w.from && before_end(root, &w.until));
            flows.iter_mut().zip(roots).for_each(|(flow, root)| flow.measured = counts(root));
        }
        Ok(RunTraffic { flows, joins: run_joins, tasks: run_tasks })
    }

    /// Draws the flows of the scenario, by workload. Workloads that run until the last start of
    /// another workload are drawn last.
    fn drawn(&self, streams: &mut Streams) -> Result<Vec<Draw>, String> {
        let mut last_starts: Vec<(String, Time)> = Vec::new();
        let mut order: Vec<usize> = (0..self.workloads.len()).collect();
        order.sort_by_key(|index| self.workloads[*index].1.workload.build(&self.env(*index)).until_workload().is_some());
        let mut all = vec![Draw::default(); self.workloads.len()];
        for index in order {
            let (name, traffic) = &self.workloads[index];
            let env = workload::Env { last_starts: &last_starts, ..self.env(index) };
            let drawn = traffic.workload.build(&env).draw(&env, streams).map_err(|e| format!("workload `{name}`: {e}"))?;
            let last = drawn.flows.iter().filter(|flow| flow.after.is_none()).map(|flow| flow.start).max();
            last_starts.extend(last.map(|last| (name.clone(), last)));
            all[index] = drawn;
        }
        Ok(all)
    }

    /// Returns whether a workload is an open loop that could continue for ever.
    pub(crate) fn has_open_loop(&self) -> bool {
        !steady::open_loops(self).is_empty()
    }

    /// Returns which flows count in metrics.
    pub fn counted(&self) -> CountedFlows {
        self.measure.counted(self.has_open_loop(), self.end.is_some())
    }

    /// Returns the measurement window of a run with this traffic. Additional flows of the steady
    /// state are ignored.
    pub fn window(&self, traffic: &RunTraffic) -> Option<Window> {
        let steady = self.counted() == CountedFlows::Steady;
        self.window_of(traffic.flows.iter().filter(|flow| flow.measured || !steady), &traffic.tasks)
    }
    fn window_of<'a>(&self, flows: impl Iterator<Item = &'a Flow> + Clone, tasks: &RunTasks) -> Option<Window> {
        let is_clocked = |index: &u16| {
            let index = usize::from(*index);
            self.workloads[index].1.workload.build(&self.env(index)).clocked()
        };
        let clocked: Vec<u16> = (0..self.workloads.len() as u16).filter(is_clocked).collect();
        self.measure.window(flows.clone(), Programs::of(flows, tasks, &clocked))
    }

    /// Returns the steady state if the run starts in it.
    fn steady_state(&self, routes: &OnceCell<Routes>) -> Result<Option<&Steady>, String> {
        match self.counted() {
            CountedFlows::Steady => self.steady.get(|| steady::state(self, routes.get_or_init(|| Routes::new(&self.net, &[])))),
            _ => Ok(None),
        }
    }

    /// Returns a flow with its id in the run. `ids` are the ids of each workload's flows and joins.
    fn flow(&self, id: FlowId, numbered: Numbered, ids: &[Ids]) -> Flow {
        let Numbered { workload, src_port, measured, flow, .. } = numbered;
        let allowed = flow.deadline.map(|deadline| Dur(deadline.0));
        let wait = flow.after.map(|after| Box::new(Wait { allowed, ..ids[usize::from(workload)].wait(&after) }));
        Flow {
            id,
            src: flow.src,
            dst: flow.dst,
            size_bytes: flow.size_bytes,
            size_wire_bytes: self.packets().wire(flow.size_bytes),
            start: if wait.is_some() { Time::MAX } else { flow.start },
            deadline: flow.deadline.filter(|_| wait.is_none()),
            group: flow.group.map_or(u64::MAX, |number| group(workload, number)),
            workload,
            src_port,
            rtt: Dur::ZERO,
            bottleneck: Rate(0),
            switches: 0,
            measured,
            wait,
        }
    }

    /// Gives deadlines to flows without a deadline, as long as flows with a deadline have less than
    /// the law's share of the bytes. A deadline is drawn for every flow, so that the deadline of a
    /// flow does not depend on the share. Routes are computed when a law first needs them.
    fn set_deadlines(
        &self,
        deadline: &deadline::AnyParams,
        (drawn, roots): (&mut [Drawn], &[Time]),
        routes: &OnceCell<Routes>,
        rng: &mut Rng,
    ) {
        let (law, packets) = (deadline.build(&()), self.packets());
        let draw = |flow: &Drawn| {
            let ideal = || {
                let routes = routes.get_or_init(|| Routes::new(&self.net, &[]));
                routes.ideal_fct(&self.net, flow.src, flow.dst, flow.size_bytes, packets.mtu - packets.header, packets.header)
            };
            law.draw(&ideal, rng)
        };
        let allowed: Vec<Dur> = drawn.iter().map(draw).collect();
        let mut by_start: Vec<usize> = (0..drawn.len()).collect();
        by_start.sort_by_key(|&number| roots[number]);
        let (share, mut with, mut all) = (law.share(), 0, 0);
        for number in by_start {
            let flow = &mut drawn[number];
            let given = share.wants(with, all).then(|| flow.start.after(allowed[number]));
            flow.deadline = flow.deadline.or(given);
            with += if flow.deadline.is_some() { u128::from(flow.size_bytes) } else { 0 };
            all += u128::from(flow.size_bytes);
        }
    }

    /// Returns the changes of links and nodes, in order. Random failures are drawn by the seed.
    /// Changes do not depend on the system.
    pub fn changes(&self) -> Vec<Change> {
        let events = self.failures.as_ref().map_or(&[][..], |failures| &failures.events);
        change::changes(events, &self.net, self.seed).unwrap_or_else(|(_, p)| panic!("checked with the scenario: {}", p.message))
    }

    /// Returns the load that a sample of flows offers, by workload: wire bytes divided by the time
    /// to the last arrival, as a fraction of the reference. `None` for workloads without a load,
    /// and for samples in which all flows start at once.
    pub fn realised_loads(&self, flows: &[Flow]) -> Vec<(String, Option<f64>)> {
        let load = |(index, (name, traffic)): (usize, &(String, Demand))| {
            let env = self.env(index);
            let load = traffic.workload.build(&env).reference(&env).and_then(|(rate, start)| {
                // The start of a flow that waits depends on other flows, so it is not offered load.
                let own = || flows.iter().filter(|f| usize::from(f.workload) == index && f.wait.is_none() && f.measured);
                let bytes: u128 = own().map(|f| u128::from(f.size_wire_bytes)).sum();
                let span = own().map(|f| f.start).max()?.since(start).as_secs_f64();
                (span > 0.0 && rate.0 > 0).then(|| bytes as f64 * 8.0 / span / rate.0 as f64)
            });
            (name.clone(), load)
        };
        self.workloads.iter().enumerate().map(load).collect()
    }
    /// Returns the configured load, summed over the workloads with a load; `None` if no workload
    /// has a load.
    pub fn nominal_load(&self) -> Option<f64> {
        let load = |(index, (_, traffic)): (usize, &(String, Demand))| {
            let env = self.env(index);
            let machine = traffic.workload.build(&env);
            machine.reference(&env).and(machine.offered(&env).load).map(|load| load.0 as f64 / 1e9)
        };
        self.workloads.iter().enumerate().filter_map(load).reduce(|sum, load| sum + load)
    }
    /// Returns the sum of [`RunSpec::realised_loads`], or `None` if no workload has a load.
    pub fn realised_load(&self, flows: &[Flow]) -> Option<f64> {
        let loads: Vec<f64> = self.realised_loads(flows).into_iter().filter_map(|(_, l)| l).collect();
        if loads.is_empty() { None } else { Some(loads.iter().sum()) }
    }
}

/// A flow with its sort key, its number in its workload and its source port.
struct Numbered {
    workload: u16,
    number: usize,
    root: Time,
    src_port: u16,
    measured: bool,
    flow: Drawn,
}

/// The lowest source port: those below are well known.
const FIRST_PORT: u16 = 1024;

/// Draws a source port.
fn port(rng: &mut Rng) -> u16 {
    FIRST_PORT + rng.below(65_536 - u64::from(FIRST_PORT)) as u16
}

/// The source ports of the connections of a workload.
#[derive(Default)]
struct ConnectionPorts {
    /// By source, destination and number.
    ports: BTreeMap<(HostId, HostId, u32), u16>,
    /// All ports, by source and destination.
    taken: BTreeSet<(HostId, HostId, u16)>,
}

impl ConnectionPorts {
    /// Returns the port of a flow for which `drawn` was drawn. A connection has the port of its first flow,
    /// or the next port that no other connection of its hosts has.
    fn port(&mut self, flow: &Drawn, drawn: u16) -> u16 {
        let Drawn { src, dst, connection: Some(connection), .. } = *flow else { return drawn };
        let taken = &mut self.taken;
        *self.ports.entry((src, dst, connection)).or_insert_with(|| {
            let mut port = drawn;
            while !taken.insert((src, dst, port)) {
                port = port.checked_add(1).unwrap_or(FIRST_PORT);
            }
            port
        })
    }
}

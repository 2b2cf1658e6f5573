//! What is drawn before a run: its flows with their deadlines, in order, and the changes of its links.

use crate::deadline::{self, Law as _};
use crate::event::change::{self, Change};
use crate::spec::{Demand, RunSpec};
use crate::workload::after::earliest_roots;
use crate::workload::{Drawn, Workload as _};
use base::{Dur, FlowId, Rate, Rng, Streams, Time};
use fabric::routes::Routes;
use proto::Flow;
use proto::flow::Wait;
use std::cell::OnceCell;

impl RunSpec {
    /// Draws the flows of all workloads, sorted by (start, workload, order of drawing); a flow's id is its row. A flow that waits for others
    /// stands where the earliest of the flows would that it waits for, directly or not. Flows depend on the workloads, the network and
    /// the seed, and on nothing of the system. Round trip and bottleneck are left at zero: they follow from the routes of the run.
    pub fn flows(&self) -> Result<Vec<Flow>, String> {
        let mut streams = Streams::new(self.seed);
        let mut all: Vec<Numbered> = Vec::new();
        let routes = OnceCell::new();
        for (index, (name, traffic)) in self.workloads.iter().enumerate() {
            let env = self.env(index);
            let machine = traffic.workload.build(&env);
            let fail = |e| format!("workload `{name}`: {e}");
            let mut drawn = machine.draw(&env, &mut streams).map_err(fail)?;
            let roots = earliest_roots(&drawn).map_err(fail)?;
            if let Some(deadline) = &traffic.deadline {
                self.set_deadlines(
                    deadline,
                    (&mut drawn, &roots),
                    &routes,
                    &mut streams.take("workload/deadlines", &[index as u64]),
                );
            }
            let mut ports = streams.take("workload/ports", &[index as u64]);
            for (number, (flow, root)) in drawn.into_iter().zip(roots).enumerate() {
                // Ports below 1024 are well known.
                let src_port = 1024 + ports.below(65_536 - 1024) as u16;
                all.push(Numbered { workload: index as u16, number, root, src_port, flow });
            }
        }
        // Stable: flows of one instant stay in the order of their workload.
        all.sort_by_key(|flow| (flow.root, flow.workload));
        let mut ids: Vec<Vec<FlowId>> = vec![Vec::new(); self.workloads.len()];
        let order = |workload: u16| all.iter().zip(0..).filter(move |(flow, _)| flow.workload == workload);
        if all.iter().any(|flow| flow.flow.after.is_some()) {
            for (workload, ids) in ids.iter_mut().enumerate() {
                let mut own: Vec<(usize, FlowId)> = order(workload as u16).map(|(flow, id)| (flow.number, FlowId(id))).collect();
                own.sort_unstable();
                *ids = own.into_iter().map(|(_, id)| id).collect();
            }
        }
        Ok(all.into_iter().enumerate().map(|(id, flow)| self.flow(FlowId(id as u32), flow, &ids)).collect())
    }

    /// A flow under its number in the run. `ids` are those of a workload's flows, in the order of drawing.
    fn flow(&self, id: FlowId, numbered: Numbered, ids: &[Vec<FlowId>]) -> Flow {
        let Numbered { workload, src_port, flow, .. } = numbered;
        let on = |(number, delay): &(u32, Dur)| (ids[usize::from(workload)][*number as usize], *delay);
        let allowed = flow.deadline.map(|deadline| Dur(deadline.0));
        let wait = flow.after.map(|after| {
            let on = after.flows.iter().map(on).collect();
            Box::new(Wait { on, not_before: after.not_before, give_up_after: after.give_up_after, allowed })
        });
        Flow {
            id,
            src: flow.src,
            dst: flow.dst,
            size_bytes: flow.size_bytes,
            size_wire_bytes: self.packets().wire(flow.size_bytes),
            start: if wait.is_some() { Time::MAX } else { flow.start },
            deadline: flow.deadline.filter(|_| wait.is_none()),
            group: flow.group.map_or(u64::MAX, |g| u64::from(workload) << 32 | u64::from(g)),
            workload,
            src_port,
            rtt: Dur::ZERO,
            bottleneck: Rate(0),
            wait,
        }
    }

    /// Gives flows without a deadline one, while those with one have less than the law's share of the bytes. A deadline is drawn for every flow, so
    /// that a flow's deadline does not depend on the share. Routes are looked for when a law first needs them.
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

    /// What goes down and comes up, in order; random failures are drawn by the seed. Nothing of it depends on the system.
    pub fn changes(&self) -> Vec<Change> {
        let events = self.failures.as_ref().map_or(&[][..], |failures| &failures.events);
        change::changes(events, &self.net, self.seed).unwrap_or_else(|(_, p)| panic!("checked with the scenario: {}", p.message))
    }

    /// The load that a sample of flows offers, by workload: wire bytes over the time to its last arrival, as a fraction of the
    /// reference. `None` for workloads without a load, and for samples of no length.
    pub fn realised_loads(&self, flows: &[Flow]) -> Vec<(String, Option<f64>)> {
        let load = |(index, (name, traffic)): (usize, &(String, Demand))| {
            let env = self.env(index);
            let load = traffic.workload.build(&env).reference(&env).and_then(|(rate, start)| {
                // Flows that wait for others come when those end: they offer no load.
                let own = || flows.iter().filter(|f| usize::from(f.workload) == index && f.wait.is_none());
                let bytes: u128 = own().map(|f| u128::from(f.size_wire_bytes)).sum();
                let span = own().map(|f| f.start).max()?.since(start).as_secs_f64();
                (span > 0.0 && rate.0 > 0).then(|| bytes as f64 * 8.0 / span / rate.0 as f64)
            });
            (name.clone(), load)
        };
        self.workloads.iter().enumerate().map(load).collect()
    }
    /// The sum of [`RunSpec::realised_loads`]; `None` when no workload has a load.
    pub fn realised_load(&self, flows: &[Flow]) -> Option<f64> {
        let loads: Vec<f64> = self.realised_loads(flows).into_iter().filter_map(|(_, l)| l).collect();
        if loads.is_empty() { None } else { Some(loads.iter().sum()) }
    }
}

/// A flow with what it is sorted by, its number in its workload and its source port.
struct Numbered {
    workload: u16,
    number: usize,
    root: Time,
    src_port: u16,
    flow: Drawn,
}

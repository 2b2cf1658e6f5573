//! What a checked scenario is: a plan of points, and of each point all that its run depends on.

use crate::deadline::{self, Law};
use crate::event::{self, Change, Failures};
use crate::files::Files;
use crate::ideal::Ideal;
use crate::resolved;
use crate::topology;
use crate::workload::size::Packets;
use crate::workload::{self, Workload};
use base::{Dur, FlowId, LinkId, Rate, Rng, Streams, Time};
use fabric::net::Net;
use fabric::routes::Routes;
use proto::Flow;
use std::cell::OnceCell;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// What the command line adds to a file.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Settings as (dotted key, value): `("workload.web.load", "0.8")`, `("system.MERP.agent.alpha", "[0.9, 0.99]")`.
    pub set: Vec<(String, String)>,
    /// Seeds instead of those of the file.
    pub seeds: Option<Vec<u64>>,
    /// A profile of the file.
    pub profile: Option<String>,
}

/// A checked scenario with its sweeps expanded.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Its name: a plain file name.
    pub name: String,
    /// One run each: systems by swept values by seeds, the seed fastest.
    pub points: Vec<Point>,
    /// The swept keys in order: `topology.rate`, `workload.web.load`, `system.agent.alpha`.
    pub sweep_keys: Vec<String>,
    /// The systems' labels in order, then those of the ideal references.
    pub labels: Vec<String>,
    pub(crate) resolved: String,
}

/// One run of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Its folder: unique in the plan, of `a-z`, `0-9`, `.`, `-` and `_` only.
    pub id: String,
    /// Its system.
    pub label: String,
    /// Its seed.
    pub seed: u64,
    /// Its values of the swept keys that concern its system, as (key, value).
    pub swept: Vec<(String, String)>,
    /// What it runs.
    pub run: RunSpec,
}

/// All that a run depends on.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSpec {
    /// The network.
    pub net: Arc<Net>,
    /// What it was built from.
    pub topology: topology::AnyParams,
    /// Largest packet on the wire, headers included.
    pub mtu_bytes: u16,
    /// Header of every packet; also the size of a packet without payload.
    pub header_bytes: u16,
    /// Latest end of the run; without it a run ends when all flows are finished and closed.
    pub end: Option<Time>,
    /// The seed of all its random streams.
    pub seed: u64,
    /// What is under test; of an ideal reference: the scenario's first system, which it does not look at.
    pub system: System,
    /// The run is this ideal reference instead of a simulation.
    pub ideal: Option<Ideal>,
    /// The workloads by name.
    pub workloads: Vec<(String, Traffic)>,
    /// What goes down and comes up, if anything does.
    pub failures: Option<Failures>,
    /// Time series, if wanted.
    pub sample: Option<Sample>,
    /// The files that the scenario names.
    pub files: Arc<Files>,
}

/// What one workload of a scenario asks of the network.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// What draws its flows.
    pub workload: workload::AnyParams,
    /// The law of their deadlines. Flows that come with a deadline keep it.
    pub deadline: Option<deadline::AnyParams>,
}

/// One curve: what runs on hosts and in switches.
#[derive(Clone, Debug, PartialEq)]
pub struct System {
    /// Its name in tables and figures.
    pub label: String,
    /// On hosts.
    pub transport: proto::transport::AnyParams,
    /// At every switch port.
    pub qdisc: fabric::qdisc::AnyParams,
    /// At every host port.
    pub nic: Nic,
    /// Which of several next hops a flow takes.
    pub router: fabric::router::AnyParams,
    /// At every port, beside the queue.
    pub agent: Option<fabric::agent::AnyParams>,
}

/// A host's port.
#[derive(Clone, Debug, PartialEq)]
pub struct Nic {
    /// What holds the packets that wait.
    pub qdisc: fabric::qdisc::AnyParams,
    /// The transport is asked for more while no more than this waits; `None`: always.
    pub low_water_bytes: Option<u64>,
}

/// Time series to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// From one sample to the next.
    pub interval: Dur,
    /// Queue and utilisation of every port.
    pub ports: bool,
    /// Of this port only.
    pub port: Option<LinkId>,
    /// Rate and window of every open flow.
    pub flows: bool,
    /// Every packet.
    pub packets: bool,
}

impl System {
    /// Whether ACKs take the path of the data backwards: some part needs it.
    pub fn reverse_path(&self) -> bool {
        let agent = self.agent.as_ref().map(|agent| agent.meta());
        let parts = [self.transport.meta(), self.qdisc.meta(), self.router.meta()];
        parts.into_iter().chain(agent).any(|meta| meta.needs.reverse_path)
    }
}

impl Plan {
    /// The whole plan as TOML, every default written out, with who set what beside each line. Reads back as the same plan.
    pub fn resolved(&self) -> &str {
        &self.resolved
    }
}

impl Point {
    /// The point alone as TOML: no comments, no lists, and a line for each file that it reads.
    pub fn resolved(&self) -> String {
        resolved::of_point(self)
    }
    /// A hash of all that determines the results of the point but the program's version.
    pub fn config_hash(&self) -> u64 {
        xxh3_64(self.resolved().as_bytes())
    }
}

impl RunSpec {
    /// Sizes of packets.
    pub fn packets(&self) -> Packets {
        Packets { mtu: self.mtu_bytes.into(), header: self.header_bytes.into() }
    }
    pub(crate) fn env(&self, index: usize) -> workload::Env<'_> {
        workload::Env { net: &self.net, packets: self.packets(), end: self.end, files: &self.files, index: index as u64 }
    }
    /// Draws the flows of all workloads, sorted by (start, workload, order of drawing); a flow's id is its row. They depend on the
    /// workloads, the network and the seed, and on nothing of the system. Round trip and bottleneck are left at zero: they follow
    /// from the routes of the run.
    pub fn flows(&self) -> Result<Vec<Flow>, String> {
        let mut streams = Streams::new(self.seed);
        let mut drawn = Vec::new();
        let routes = OnceCell::new();
        for (index, (name, traffic)) in self.workloads.iter().enumerate() {
            let env = self.env(index);
            let machine = traffic.workload.build(&env);
            let mut drafts = machine.draw(&env, &mut streams).map_err(|e| format!("workload `{name}`: {e}"))?;
            if let Some(deadline) = &traffic.deadline {
                self.set_deadlines(deadline, &mut drafts, &routes, &mut streams.take("workload/deadlines", &[index as u64]));
            }
            let mut ports = streams.take("workload/ports", &[index as u64]);
            // Ports below 1024 are well known.
            drawn.extend(drafts.into_iter().map(|d| (index as u16, 1024 + ports.below(65_536 - 1024) as u16, d)));
        }
        // Stable: flows of one instant stay in the order of their workload.
        drawn.sort_by_key(|(workload, _, d)| (d.start, *workload));
        let packets = self.packets();
        let flow = |(id, &(workload, src_port, d)): (usize, &(u16, u16, workload::Draft))| Flow {
            id: FlowId(id as u32),
            src: d.src,
            dst: d.dst,
            size_bytes: d.size_bytes,
            size_wire_bytes: packets.wire(d.size_bytes),
            start: d.start,
            deadline: d.deadline,
            group: d.group.map_or(u64::MAX, |g| u64::from(workload) << 32 | u64::from(g)),
            workload,
            src_port,
            rtt: Dur::ZERO,
            bottleneck: Rate(0),
        };
        Ok(drawn.iter().enumerate().map(flow).collect())
    }
    /// What goes down and comes up, in order; random failures are drawn by the seed. Nothing of it depends on the system.
    pub fn changes(&self) -> Vec<Change> {
        let events = self.failures.as_ref().map_or(&[][..], |failures| &failures.events);
        event::changes(events, &self.net, self.seed).unwrap_or_else(|(_, p)| panic!("checked with the scenario: {}", p.message))
    }
    /// Draws a deadline for every flow that has none. Routes are looked for when a law first needs them.
    fn set_deadlines(
        &self,
        deadline: &deadline::AnyParams,
        drafts: &mut [workload::Draft],
        routes: &OnceCell<Routes>,
        rng: &mut Rng,
    ) {
        let (law, packets) = (deadline.build(&()), self.packets());
        for draft in drafts.iter_mut() {
            let ideal = || {
                let routes = routes.get_or_init(|| Routes::new(&self.net, &[]));
                routes.ideal_fct(&self.net, draft.src, draft.dst, draft.size_bytes, packets.mtu - packets.header, packets.header)
            };
            let allowed = law.draw(&ideal, rng);
            draft.deadline = draft.deadline.or(Some(draft.start.after(allowed)));
        }
    }
    /// The load that a sample of flows offers, by workload: wire bytes over the time to its last arrival, as a fraction of the
    /// reference. `None` for workloads without a load, and for samples of no length.
    pub fn realised_loads(&self, flows: &[Flow]) -> Vec<(String, Option<f64>)> {
        let load = |(index, (name, traffic)): (usize, &(String, Traffic))| {
            let env = self.env(index);
            let load = traffic.workload.build(&env).reference(&env).and_then(|(rate, start)| {
                let own = || flows.iter().filter(|f| usize::from(f.workload) == index);
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

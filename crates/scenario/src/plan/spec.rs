//! The plan of a checked scenario: its points, and for each point everything that its run depends on.

use crate::deadline;
use crate::event::params::Failures;
use crate::files::Files;
use crate::memory::Memory;
use crate::plan::measure::Measure;
use crate::plan::seeds::AutoSeedRule;
use crate::plan::selection::FlowSet;
use crate::plan::state::Shared;
use crate::system::engine::Engine;
use crate::system::envs::{self, Envs, Site};
use crate::system::ideal::IdealName;
use crate::system::slots::System;
use crate::text::diag::Diagnostics;
use crate::topology;
use crate::workload;
use crate::workload::size::Packets;
use base::{Dur, Limit, LinkId, Offers, Rate, Time};
use fabric::net::Net;
use fabric::routes::Routes;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Options of the command line.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Settings as (dotted key, value): `("workload.web.load", "0.8")`, `("system.MERP.agent.alpha", "[0.9, 0.99]")`.
    pub set: Vec<(String, String)>,
    /// Seeds that replace those of the file.
    pub seeds: Option<Vec<u64>>,
    /// Profiles of the file, applied in this order; see [`profiles`].
    pub profiles: Vec<String>,
    /// Limit of the memory of networks, flows and the results of a point.
    pub memory: Memory,
}

/// Returns the names of profiles in a text: `literal,smoke`.
pub fn profiles(text: &str) -> Vec<String> {
    text.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
}

/// A checked scenario with its sweeps expanded.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Its name: a plain file name.
    pub name: String,
    /// The runs: systems by swept values by seeds; the seed changes fastest.
    pub points: Vec<Point>,
    /// The swept keys in order: `topology.rate`, `workload.web.load`, `system.agent.alpha`.
    pub sweep_keys: Vec<String>,
    /// The systems' labels in order, then those of the ideal references.
    pub labels: Vec<String>,
    /// The rule by which seeds are added, with `seed = "auto"`; the points have all seeds up to the
    /// maximum.
    pub auto: Option<AutoSeedRule>,
    /// Warnings: the scenario can run, but its results may mislead.
    pub warnings: Diagnostics,
    /// Queue lengths that `auto` sets.
    pub queues: Vec<QueueLength>,
    /// Limit of memory.
    pub memory: Memory,
    pub(crate) resolved: String,
}

/// One run of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Name of its folder: unique in the plan, with only `a-z`, `0-9`, `.`, `-` and `_`.
    pub id: String,
    /// Label of its system.
    pub label: String,
    /// Its seed.
    pub seed: u64,
    /// The swept keys that concern its system, as (key, value).
    pub swept: Vec<(String, String)>,
    /// The run.
    pub run: RunSpec,
}

/// Everything that a run depends on.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSpec {
    /// The network.
    pub net: Arc<Net>,
    /// The parameters of the topology.
    pub topology: topology::AnyParams,
    /// Longest unloaded round trip of the network.
    pub max_rtt: Dur,
    /// The same with full packets in both directions.
    pub full_rtt: Dur,
    /// Largest packet on the wire, headers included.
    pub mtu_bytes: u16,
    /// Header of every packet; also the size of a packet without payload.
    pub header_bytes: u16,
    /// Latest end of the run; `None`: the run ends when all flows have finished and closed.
    pub end: Option<Time>,
    /// The seed of all random streams.
    pub seed: u64,
    /// The system under test. An ideal reference has the first system of the scenario here, but
    /// does not use it.
    pub system: System,
    /// The ideal reference, if the run is an ideal reference instead of a simulation.
    pub ideal: Option<IdealName>,
    /// The engine. An ideal reference does not use it.
    pub engine: Engine,
    /// The workloads by name.
    pub workloads: Vec<(String, Demand)>,
    /// The events and the reaction of the network, if the scenario has events.
    pub failures: Option<Failures>,
    /// The measurement window, and which flows count.
    pub measure: Measure,
    /// The steady state that the run starts in, if any.
    pub steady: Shared,
    /// Time series to record, if any.
    pub sample: Option<Sample>,
    /// The files that the scenario names.
    pub files: Arc<Files>,
}

/// A queue length of a system that `auto` sets.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueLength {
    /// The label of the system.
    pub system: String,
    /// The swept values that it applies to, as (key, value).
    pub swept: Vec<(String, String)>,
    /// The queue discipline.
    pub qdisc: &'static str,
    /// The parameter: `limit`, `mark`.
    pub key: &'static str,
    /// The rule, and its source.
    pub rule: &'static str,
    /// Longest unloaded round trip of the network.
    pub max_rtt: Dur,
    /// The length at switch ports, by their rate.
    pub at: BTreeMap<Rate, Limit>,
}

/// A workload of a scenario with its deadlines.
#[derive(Clone, Debug, PartialEq)]
pub struct Demand {
    /// The workload.
    pub workload: workload::AnyParams,
    /// The law of deadlines. Flows to which the workload gives a deadline keep it.
    pub deadline: Option<deadline::AnyParams>,
}

/// Time series to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Time between two samples.
    pub interval: Dur,
    /// Whether to record the queue length and utilisation of every port.
    pub ports: bool,
    /// The only port that is recorded, if set.
    pub port: Option<LinkId>,
    /// Whether to record the rate and window of every open flow.
    pub flows: bool,
    /// Whether to record how many packets of its router every switch has sent and received.
    pub switches: bool,
    /// Whether to record the tables of agents.
    pub agents: bool,
    /// Whether to record every packet.
    pub packets: bool,
    /// Start of the recording.
    pub start: Time,
    /// End of the recording; `Time::MAX` for the end of the run.
    pub end: Time,
    /// The ports that are recorded, in ascending order; `None` for all.
    pub only_ports: Option<Vec<LinkId>>,
    /// The flows that are recorded.
    pub only_flows: FlowSet,
}

impl Sample {
    /// Returns whether the selections include a port.
    pub fn has_port(&self, link: LinkId) -> bool {
        self.only_ports.as_ref().is_none_or(|ports| ports.binary_search(&link).is_ok())
    }
    /// Returns whether events at a time are recorded.
    pub fn covers(&self, at: Time) -> bool {
        self.start <= at && at < self.end
    }
}

impl Plan {
    /// Returns the whole plan as TOML with every default; the comment of a line says where its
    /// value comes from. Reading the text gives the same plan.
    pub fn resolved(&self) -> &str {
        &self.resolved
    }
    /// Returns the plan with only the seeds up to `most`.
    pub fn with_seeds(&self, most: u32) -> Plan {
        let points = self.points.iter().filter(|point| point.seed <= u64::from(most)).cloned().collect();
        Plan { points, ..self.clone() }
    }
}

impl RunSpec {
    /// Returns the sizes of packets.
    pub fn packets(&self) -> Packets {
        Packets { mtu: self.mtu_bytes.into(), header: self.header_bytes.into() }
    }
    /// Returns the environments of the system's parts. `routes` are those of the healthy network.
    pub fn envs<'a>(&'a self, routes: &'a Routes) -> Envs<'a> {
        let site = Site {
            net: &self.net,
            routes,
            max_rtt: self.max_rtt,
            full_rtt: self.full_rtt,
            packets: self.packets(),
            seed: self.seed,
        };
        let all =
            || self.workloads.iter().enumerate().map(|(i, (_, traffic))| envs::offered(&traffic.workload, &self.env(i))).collect();
        Envs::new(site, self.system.ports_and_router(), self.system.given(), Offers::new(all))
    }
    /// Returns the configured queue discipline of a port, and its environment.
    pub fn port(&self, link: LinkId) -> (&fabric::qdisc::AnyParams, fabric::qdisc::Env) {
        let env = envs::qdisc(&self.net, self.max_rtt, self.packets(), link, self.seed);
        (self.system.qdisc_at(env.host_port), env)
    }
    /// Returns the environment of the workload with this index.
    pub(crate) fn env(&self, index: usize) -> workload::Env<'_> {
        envs::workload(&self.net, self.packets(), self.end, &self.files, index)
    }
}

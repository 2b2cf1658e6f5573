//! What a checked scenario is: a plan of points, and of each point all that its run depends on.

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
    /// Seeds instead of those of the file.
    pub seeds: Option<Vec<u64>>,
    /// Profiles of the file, laid over it in this order; see [`profiles`].
    pub profiles: Vec<String>,
    /// How much memory networks, flows and the results of a point may take.
    pub memory: Memory,
}

/// The names of profiles in a text: `literal,smoke`.
pub fn profiles(text: &str) -> Vec<String> {
    text.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
}

/// A checked scenario with its sweeps expanded.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Its name: a plain file name.
    pub name: String,
    /// The runs: systems by swept values by seeds, the seed fastest.
    pub points: Vec<Point>,
    /// The swept keys in order: `topology.rate`, `workload.web.load`, `system.agent.alpha`.
    pub sweep_keys: Vec<String>,
    /// The systems' labels in order, then those of the ideal references.
    pub labels: Vec<String>,
    /// The rule by which seeds are added, with `seed = "auto"`; the points have all seeds that there may be.
    pub auto: Option<AutoSeedRule>,
    /// What can run and may mislead.
    pub warnings: Diagnostics,
    /// Lengths of queues that rules set.
    pub queues: Vec<QueueLength>,
    /// How much memory it may take.
    pub memory: Memory,
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
    /// Longest unloaded round trip of the network.
    pub max_rtt: Dur,
    /// Largest packet on the wire, headers included.
    pub mtu_bytes: u16,
    /// Header of every packet; also the size of a packet without payload.
    pub header_bytes: u16,
    /// Latest end of the run; without it a run ends when all flows are finished and closed.
    pub end: Option<Time>,
    /// The seed of all its random streams.
    pub seed: u64,
    /// The system under test. An ideal reference carries the first system of the scenario and does not read it.
    pub system: System,
    /// The run is this ideal reference instead of a simulation.
    pub ideal: Option<IdealName>,
    /// What moves the flows. An ideal reference does not read it.
    pub engine: Engine,
    /// The workloads by name.
    pub workloads: Vec<(String, Demand)>,
    /// What goes down and comes up, if anything does.
    pub failures: Option<Failures>,
    /// The measurement window, and which flows count.
    pub measure: Measure,
    /// The state that the run starts in, if that is a steady one.
    pub steady: Shared,
    /// Time series, if wanted.
    pub sample: Option<Sample>,
    /// The files that the scenario names.
    pub files: Arc<Files>,
}

/// A length of a system's queues that the scenario leaves to a rule.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueLength {
    /// The label of the system.
    pub system: String,
    /// The swept values for which it holds, as (key, value).
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

/// What one workload of a scenario asks of the network.
#[derive(Clone, Debug, PartialEq)]
pub struct Demand {
    /// What draws its flows.
    pub workload: workload::AnyParams,
    /// The law of their deadlines. Flows that come with a deadline keep it.
    pub deadline: Option<deadline::AnyParams>,
}

/// Time series to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Time between two samples.
    pub interval: Dur,
    /// Queue and utilisation of every port.
    pub ports: bool,
    /// Of this port only.
    pub port: Option<LinkId>,
    /// Rate and window of every open flow.
    pub flows: bool,
    /// Packets that every switch has made and taken.
    pub switches: bool,
    /// The tables of agents.
    pub agents: bool,
    /// Every packet.
    pub packets: bool,
    /// Time from which on anything is recorded.
    pub start: Time,
    /// Time from which on nothing is recorded; `Time::MAX` for the end of the run.
    pub end: Time,
    /// The ports that are recorded, in rising order; `None` for all.
    pub only_ports: Option<Vec<LinkId>>,
    /// The flows that are recorded.
    pub only_flows: FlowSet,
}

impl Sample {
    /// Whether the selections allow a port.
    pub fn has_port(&self, link: LinkId) -> bool {
        self.only_ports.as_ref().is_none_or(|ports| ports.binary_search(&link).is_ok())
    }
    /// Whether what happens at a time is recorded.
    pub fn covers(&self, at: Time) -> bool {
        self.start <= at && at < self.end
    }
}

impl Plan {
    /// The whole plan as TOML with every default, each line with a comment on who set its value. Reads back as the same plan.
    pub fn resolved(&self) -> &str {
        &self.resolved
    }
    /// The plan with seeds up to this one alone.
    pub fn with_seeds(&self, most: u32) -> Plan {
        let points = self.points.iter().filter(|point| point.seed <= u64::from(most)).cloned().collect();
        Plan { points, ..self.clone() }
    }
}

impl RunSpec {
    /// Sizes of packets.
    pub fn packets(&self) -> Packets {
        Packets { mtu: self.mtu_bytes.into(), header: self.header_bytes.into() }
    }
    /// The environments of the system's parts. `routes` are those of the healthy network.
    pub fn envs<'a>(&'a self, routes: &'a Routes) -> Envs<'a> {
        let site = Site { net: &self.net, routes, max_rtt: self.max_rtt, packets: self.packets(), seed: self.seed };
        let all =
            || self.workloads.iter().enumerate().map(|(i, (_, traffic))| envs::offered(&traffic.workload, &self.env(i))).collect();
        Envs::new(site, self.system.ports_and_router(), self.system.given(), Offers::new(all))
    }
    /// The discipline of a port, as configured, and its environment.
    pub fn port(&self, link: LinkId) -> (&fabric::qdisc::AnyParams, fabric::qdisc::Env) {
        let env = envs::qdisc(&self.net, self.max_rtt, self.packets(), link, self.seed);
        (self.system.qdisc_at(env.host_port), env)
    }
    /// The environment of the workload at this place.
    pub(crate) fn env(&self, index: usize) -> workload::Env<'_> {
        envs::workload(&self.net, self.packets(), self.end, &self.files, index)
    }
}

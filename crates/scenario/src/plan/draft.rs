//! The draft of a scenario as it was read: every section in every variant that its sweeps produce.

use crate::event::params::{Event, FailureParams, Failures};
use crate::files::Files;
use crate::memory::Memory;
use crate::plan::keys::{Head, SampleParams};
use crate::plan::measure::Measure;
use crate::plan::seeds::Seeds;
use crate::plan::spec::Demand;
use crate::system::engine::Engine;
use crate::system::envs::{self, Envs, Site};
use crate::system::ideal::IdealName;
use crate::system::slots::System;
use crate::text::diag::Place;
use crate::text::part::Part;
use crate::text::tree::Table;
use crate::topology;
use crate::workload;
use crate::workload::size::Packets;
use base::{Dur, Offers};
use fabric::net::Net;
use fabric::routes::Routes;
use std::sync::Arc;

/// A section in one of the variants that its sweeps produce.
#[derive(Clone, Debug)]
pub(crate) struct Variant<T> {
    pub table: Table,
    pub value: T,
    /// Its swept keys with their values.
    pub swept: Swept,
}

/// Swept keys as (key, value).
pub(crate) type Swept = Vec<(String, String)>;

/// A section in all its variants.
#[derive(Clone, Debug)]
pub(crate) struct Section<T> {
    /// `workload.web`, `topology`, or the label of a system.
    pub name: String,
    pub at: Place,
    /// The table as written, lists included.
    pub table: Table,
    pub variants: Vec<Variant<T>>,
}

/// A topology with its network, its routes and its longest unloaded round trip.
#[derive(Clone, Debug)]
pub(crate) struct Built {
    pub params: topology::AnyParams,
    pub net: Arc<Net>,
    pub routes: Arc<Routes>,
    pub max_rtt: Dur,
    pub full_rtt: Dur,
    /// Whether some pair of hosts has no path.
    pub apart: bool,
}

/// `[sample]` as it was read.
#[derive(Clone, Debug)]
pub(crate) struct SampleSection {
    pub params: SampleParams,
    pub at: Place,
    pub table: Table,
}

impl SampleSection {
    /// Returns the section as a part, with its place and its name in messages.
    pub fn part(&self) -> Part<'_> {
        Part { table: &self.table, at: self.at, path: "sample" }
    }
}

/// All sections of a scenario as they were read.
#[derive(Debug)]
pub(crate) struct Draft {
    pub memory: Memory,
    pub name: Option<String>,
    pub seeds: Seeds,
    pub ideals: Vec<IdealName>,
    pub ideals_at: Place,
    pub head: Head,
    /// Has an empty table if the scenario does not set the engine.
    pub engine: Section<Engine>,
    pub measure: Measure,
    pub sample: Option<SampleSection>,
    /// Has no variants if the topology could not be read.
    pub topology: Section<Built>,
    pub workloads: Vec<Section<Demand>>,
    pub systems: Vec<Section<System>>,
    pub events: Vec<Section<Event>>,
    /// `None` without events.
    pub failure: Option<Section<FailureParams>>,
}

/// Returns every combination of one variant of each section, with the swept keys. The last section
/// changes fastest.
pub(crate) fn combinations<T>(sections: &[Section<T>]) -> Vec<(Vec<&T>, Swept)> {
    let mut all = vec![(Vec::new(), Swept::new())];
    for section in sections {
        let longer = all.iter().flat_map(|(values, swept)| {
            section.variants.iter().map(move |variant| {
                let (mut values, mut swept): (Vec<&T>, Swept) = (values.clone(), swept.clone());
                values.push(&variant.value);
                swept.extend(variant.swept.iter().cloned());
                (values, swept)
            })
        });
        all = longer.collect();
    }
    all
}

/// Calls `then` with the part in a slot of a system in one variant.
pub(crate) fn with_slot<R>(
    section: &Section<System>,
    variant: &Variant<System>,
    slot: &str,
    then: impl FnOnce(Part<'_>) -> R,
) -> R {
    let (path, empty) = (format!("system.{}.{slot}", section.name), Table::default());
    match variant.table.get(slot) {
        Some(e) => then(Part { table: e.node.table().unwrap_or(&empty), at: e.key_at, path: &path }),
        None => then(Part { table: &empty, at: section.at, path: &path }),
    }
}

/// Runs `then` in the environments of a system on a network.
pub(crate) fn with_envs<R>(draft: &Draft, built: &Built, system: &System, then: impl FnOnce(&Envs<'_>) -> R) -> R {
    then(&Envs::new(draft.site(built), system.ports_and_router(), system.given(), Offers::new(Vec::new)))
}

impl Draft {
    pub fn packets(&self) -> Packets {
        Packets { mtu: self.head.mtu.0, header: self.head.header.0 }
    }
    /// Returns the data that the parts of all systems on a network share.
    pub fn site<'a>(&self, built: &'a Built) -> Site<'a> {
        Site {
            net: &built.net,
            routes: &built.routes,
            max_rtt: built.max_rtt,
            full_rtt: built.full_rtt,
            packets: self.packets(),
            seed: 0,
        }
    }
    /// Returns the environment of the workload with this index.
    pub fn workload_env<'a>(&self, built: &'a Built, files: &'a Files, index: usize) -> workload::Env<'a> {
        let env = envs::workload(&built.net, self.packets(), self.head.latest_end(), files, index);
        workload::Env { memory: self.memory, ..env }
    }
    /// Returns every combination of the events' variants, with the swept keys. The last event
    /// changes fastest.
    pub fn failures(&self) -> Vec<(Option<Failures>, Swept)> {
        let Some(failure) = &self.failure else { return vec![(None, Swept::new())] };
        let events = combinations(&self.events);
        let all = failure.variants.iter().flat_map(|variant| {
            events.iter().map(|(events, swept)| {
                let events = events.iter().copied().cloned().collect();
                let swept = variant.swept.iter().chain(swept).cloned().collect();
                (Some(Failures { events, params: variant.value.clone() }), swept)
            })
        });
        all.collect()
    }
}

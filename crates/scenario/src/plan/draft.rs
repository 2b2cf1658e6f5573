//! What was read: every section of a scenario in every variant that its sweeps make.

use crate::event::params::{Event, FailureParams, Failures};
use crate::files::Files;
use crate::memory::Memory;
use crate::plan::keys::{Head, SampleParams};
use crate::plan::measure::Measure;
use crate::plan::seeds::Seeds;
use crate::plan::spec::Demand;
use crate::system::engine::Engine;
use crate::system::envs::{self, Site};
use crate::system::ideal::IdealName;
use crate::system::slots::System;
use crate::text::diag::Place;
use crate::text::part::Part;
use crate::text::tree::Table;
use crate::topology;
use crate::workload;
use crate::workload::size::Packets;
use base::Dur;
use fabric::net::Net;
use fabric::routes::Routes;
use std::sync::Arc;

/// A section in one of the variants that its sweeps make.
#[derive(Clone, Debug)]
pub(crate) struct Variant<T> {
    pub table: Table,
    pub value: T,
    /// (key, value) of its swept keys.
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

/// A topology and what follows from it alone.
#[derive(Clone, Debug)]
pub(crate) struct Built {
    pub params: topology::AnyParams,
    pub net: Arc<Net>,
    pub routes: Arc<Routes>,
    pub max_rtt: Dur,
}

/// `[sample]` as it was read.
#[derive(Clone, Debug)]
pub(crate) struct SampleSection {
    pub params: SampleParams,
    pub at: Place,
    pub table: Table,
}

impl SampleSection {
    /// The section as messages place and name it.
    pub fn part(&self) -> Part<'_> {
        Part { table: &self.table, at: self.at, path: "sample" }
    }
}

/// Everything that was read.
#[derive(Debug)]
pub(crate) struct Draft {
    pub memory: Memory,
    pub name: Option<String>,
    pub seeds: Seeds,
    pub ideals: Vec<IdealName>,
    pub ideals_at: Place,
    pub head: Head,
    /// Without a table where none is given.
    pub engine: Section<Engine>,
    pub measure: Measure,
    pub sample: Option<SampleSection>,
    /// Without variants when it could not be read.
    pub topology: Section<Built>,
    pub workloads: Vec<Section<Demand>>,
    pub systems: Vec<Section<System>>,
    pub events: Vec<Section<Event>>,
    /// Only with events.
    pub failure: Option<Section<FailureParams>>,
}

/// Every combination of one variant of each section with its swept keys, the last section fastest.
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

/// The slot of a system in one variant.
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

impl Draft {
    pub fn packets(&self) -> Packets {
        Packets { mtu: self.head.mtu.0, header: self.head.header.0 }
    }
    /// What the parts of all systems on a network have in common.
    pub fn site<'a>(&self, built: &'a Built) -> Site<'a> {
        Site { net: &built.net, routes: &built.routes, max_rtt: built.max_rtt, packets: self.packets(), seed: 0 }
    }
    /// The environment of the workload at this place.
    pub fn workload_env<'a>(&self, built: &'a Built, files: &'a Files, index: usize) -> workload::Env<'a> {
        envs::workload(&built.net, self.packets(), self.head.latest_end(), files, index)
    }
    /// Every combination of the events' variants with their swept keys, the last event fastest.
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

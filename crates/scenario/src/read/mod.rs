//! From the tree to typed values, section by section.

mod event;
mod head;
pub mod implied;
pub mod layers;
mod section;
pub mod short_forms;
mod system;
mod topology;
mod workload;

use crate::files::Files;
use crate::memory::Memory;
use crate::plan::draft::Draft;
use crate::seek;
use crate::text::diag::Item;
use crate::text::diag::Place;
use crate::text::part::Part;
use crate::text::tree::Table;
use section::Reading;
use std::sync::Arc;

/// Reads a whole scenario. Seeds of the command line replace those of the file; `memory` limits the
/// size of the networks. Returns `None` if the header of the file cannot be read; after other
/// problems defaults are used.
pub(crate) fn scenario(
    root: &Table,
    files: &Arc<Files>,
    seeds: Option<Vec<u64>>,
    memory: Memory,
    problems: &mut Vec<Item>,
) -> Option<Draft> {
    let mut reading = Reading { files, problems: std::mem::take(problems), seeds, memory };
    let draft = read(&mut reading, root);
    *problems = reading.problems;
    draft
}

fn read(reading: &mut Reading<'_>, root: &Table) -> Option<Draft> {
    let whole = Part { table: root, at: Place::new(0, 0..0), path: "" };
    let head = reading.head(whole)?;
    let (name, seeds, ideals, sample) = (reading.name(whole), reading.seeds(whole), reading.ideals(whole), reading.sample(whole));
    let engine = reading.engine(whole);
    let measure = reading.measure(whole, head.latest_end());
    let topology = reading.topology(whole, &head);
    let workloads = reading.workloads(whole);
    let systems = reading.systems(whole, &head);
    let events = reading.events(whole, head.latest_end());
    let failure = reading.failure(whole, !events.is_empty(), head.latest_end());
    // A run does not need `[seek]`, but mistakes in it are reported.
    seek::read(root, "", &mut reading.problems);
    let ideals_at = whole.at_of("ideal");
    let memory = reading.memory;
    Some(Draft {
        memory,
        name,
        seeds,
        ideals,
        ideals_at,
        head,
        engine,
        measure,
        sample,
        topology,
        workloads,
        systems,
        events,
        failure,
    })
}

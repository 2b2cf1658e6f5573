//! Tests that `adding.rs` compiles and runs in a copy of the source tree with the examples of docs/adding.md: the page's scenario uses every
//! example, and the engine and the reference engine give the same rows.

#[path = "../../engine/tests/reference/mod.rs"]
mod reference;

use reference::Reference;
use scenario::{Options, ROOMS};
use sim::{Carried, Continue};
use std::path::Path;

/// The scenario of docs/adding.md.
const TEXT: &str = include_str!("adding/scenario.toml");
/// One line per example: the folder of its room and its name.
const EXAMPLES: &str = include_str!("adding/examples.txt");

#[test]
fn the_scenario_uses_every_example() {
    for (folder, name) in EXAMPLES.lines().filter_map(|line| line.split_once(' ')) {
        let room = ROOMS.iter().find(|room| room.folder() == folder).expect("a room");
        let entry = room.entry(name).unwrap_or_else(|| panic!("the room {} does not list `{name}`", room.name));
        assert!(entry.head().contains("Source:"), "`{name}` has no `Source:` in its header");
        assert!(!entry.meta.summary.is_empty() && !entry.meta.source.is_empty(), "`{name}`: empty META");
        assert!(TEXT.contains(&format!("\"{name}\"")), "the scenario of docs/adding.md does not use `{name}`");
    }
}

#[test]
fn the_scenario_runs_and_both_engines_agree() {
    let plan = scenario::load(TEXT, "docs/adding.md", Path::new("."), &Options::default()).unwrap_or_else(|e| panic!("{e}"));
    assert!(plan.points.len() > 1);
    for point in &plan.points {
        let fast = sim::run(&point.run, &mut |_| Continue::Yes).expect("the run ends well");
        assert!(fast.flows.iter().all(|flow| flow.fct_ps().is_some()), "{}: a flow is unfinished", point.id);
        if point.run.ideal.is_some() {
            continue; // An ideal schedule has no packets and uses neither engine.
        }
        let slow = sim::run_on::<Reference<Carried>>(&point.run, &mut |_| Continue::Yes).expect("the run ends well");
        assert_eq!(fast.flows, slow.flows, "{}", point.id);
    }
}

//! Runs a scenario in the engine and in the oracle, for test files that have `common` and the oracle's
//! `reference`.

use crate::common::plan;
use crate::reference::Reference;
use sim::outcome::PortRow;
use sim::{Carried, Continue, Outcome};

/// Returns the outcome of the engine. Asserts that the oracle has the same outcome.
pub fn both(text: &str) -> Outcome {
    let point = &plan(text).points[0];
    let fast = sim::run(&point.run, &mut |_| Continue::Yes).unwrap();
    let slow = sim::run_on::<Reference<Carried>>(&point.run, &mut |_| Continue::Yes).unwrap();
    assert_eq!(fast.flows, slow.flows, "{text}");
    for (a, b) in fast.ports.iter().zip(&slow.ports) {
        assert_eq!(*a, PortRow { busy_ps: a.busy_ps, ..b.clone() }, "{text}");
    }
    fast
}

//! Scenarios that are built in Rust, and the example of such a program.

use base::params::{Auto, Params as _};
use base::{Bytes, Dur, Limit, Rate};
use fabric::qdisc::ecn_threshold;
use proto::transport::dctcp;
use scenario::workload::long;
use scenario::workload::pairs::Pairs;
use scenario::{Outline, Scenario, topology::dumbbell};
use sim::Continue;
use std::path::Path;

/// A lone flow on an idle path of three links, in 40 full segments and with an initial window that exceeds the
/// bandwidth-delay product: the handshake, 39 segments at line rate, and three links for the last segment.
#[test]
fn a_lone_flow_of_a_scenario_built_in_rust_takes_its_closed_form() {
    const SEGMENTS: u64 = 40;
    let (rate, delay) = (Rate::from_gbps(10), Dur::from_us(1));
    let network = dumbbell::Params { rate, delay, ..dumbbell::Params::defaults() };
    let size = Auto::Set(Bytes(SEGMENTS * 1460));
    let flow = long::Params { pairs: Pairs::List("h0->h2".to_owned()), size, ..long::Params::defaults() };
    let system = Outline::named("DCTCP")
        .transport(dctcp::Params::of(&[("init_window", "64")]).unwrap())
        .qdisc(ecn_threshold::Params { mark: Auto::Set(Limit::Packets(65)), ..ecn_threshold::Params::defaults() });
    let plan = Scenario::new(network).workload("lone", flow).system(system).plan().unwrap();
    let outcome = sim::run(&plan.points[0].run, &mut |_| Continue::Yes).unwrap();

    let links = |bytes: u64| (rate.tx_time(bytes) + delay) * 3;
    let closed = links(40) * 2 + rate.tx_time(1500) * (SEGMENTS - 1) + links(1500);
    assert_eq!((outcome.flows.len(), outcome.flows[0].fct_ps()), (1, Some(closed.0)));
}

/// Running the example is the test of the crate's front page; this test keeps it short, and equal to that of docs/rust.md.
#[test]
fn the_example_has_twenty_lines_and_is_that_of_the_page() {
    let crate_root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |name: &str| std::fs::read_to_string(crate_root.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let example = read("examples/twenty_lines.rs");
    assert!(example.lines().count() <= 20, "{} lines", example.lines().count());
    assert!(!example.contains(".toml") && !example.contains("scenario::load"), "it needs no scenario file");
    assert!(read("../../docs/rust.md").contains(&format!("```rust\n{example}```\n")), "docs/rust.md has another example");
}

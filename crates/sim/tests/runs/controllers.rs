//! Controllers in real networks: what they see, when their orders take effect, and their effects.

use crate::common::{run, system, table};
use sim::Outcome;
use sim::outcome::StopReason;

/// Four long flows between two leaves with four spines, hashed to paths by ECMP.
fn four_flows(seed: u64, controller: &str, rest: &str) -> Outcome {
    let flows = table("controlled", &[0, 1, 2, 3].map(|i| (i, 4 + i, 3_000_000, 0)));
    let net = "kind = 'leaf_spine'\nleaves = 2\nspines = 4\nhosts_per_leaf = 4\nhost_rate = '1Gbps'\nspine_rate = '1Gbps'";
    let outcome = run(&format!("seed = {seed}\n[topology]\n{net}\n{flows}{}{controller}\n{rest}", system("newreno", "100pkt")));
    assert_eq!(outcome.stop_reason, StopReason::Finished);
    outcome
}

fn last(outcome: &Outcome) -> f64 {
    outcome.flows.iter().map(|flow| flow.finish_ps.expect("finished") as f64 / 1e9).fold(0.0, f64::max)
}

/// Unloaded on its path a flow takes 24.7 ms; two that share one take twice as long.
#[test]
fn rebalance_parts_flows_that_collide() {
    let mut collided = 0;
    for seed in 1..=8 {
        let hashed = last(&four_flows(seed, "", ""));
        let moved = last(&four_flows(seed, "controller = 'rebalance'", ""));
        assert!(moved < 35.0, "seed {seed}: {moved} ms, {hashed} ms by the hash alone");
        collided += u32::from(hashed > 45.0);
    }
    let moves = |rest| four_flows(1, rest, "").counters.moves;
    let late = "controller = { kind = 'rebalance', latency = '60s' }";
    assert!(moves("controller = 'rebalance'").is_some_and(|moves| moves > 0));
    assert_eq!((moves(late), moves("")), (Some(0), None));
    assert!(collided >= 4, "{collided} of 8 seeds send two flows or more over one spine");
}

/// The flows start together and lose packets before the first look, some for two timeouts; then each has a separate path.
#[test]
fn hedera_parts_flows_that_collide() {
    let hashed: Vec<f64> = (1..=8).map(|seed| last(&four_flows(seed, "", ""))).collect();
    for placement in ["gff", "annealing"] {
        let hedera = format!("controller = {{ kind = 'hedera', period = '2ms', latency = '100us', placement = '{placement}' }}");
        let moved: Vec<f64> = (1..=8).map(|seed| last(&four_flows(seed, &hedera, ""))).collect();
        assert!(moved.iter().zip(&hashed).all(|(moved, hashed)| moved < hashed), "{placement}: {moved:?}, {hashed:?}");
        assert!(moved.iter().sum::<f64>() < 0.6 * hashed.iter().sum::<f64>(), "{placement}: {moved:?}, {hashed:?}");
    }
}

/// Orders that are due after the end of the run never take effect, and looks of a controller do not change the run.
#[test]
fn orders_act_after_the_latency() {
    let without = four_flows(1, "", "");
    let late = four_flows(1, "controller = { kind = 'rebalance', latency = '60s' }", "");
    assert_eq!((without.flows, without.ports), (late.flows, late.ports));
}

/// A path that was set dies: its flow goes by the hash until the link is back.
#[test]
fn flows_that_were_moved_survive_failures() {
    for spine in 0..4 {
        let event = format!("[[event]]\nnode = 'spine{spine}'\nat = '8ms'\nuntil = '15ms'\n");
        for seed in 1..=4 {
            let outcome = four_flows(seed, "controller = { kind = 'rebalance', period = '500us', latency = '100us' }", &event);
            assert!(outcome.flows.iter().all(|flow| flow.finish_ps.is_some()));
        }
    }
}

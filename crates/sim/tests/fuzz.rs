//! Random scenarios over the whole space of topologies, workloads, systems and buffers, with every invariant on.
//!
//! 80 scenarios here, more with `FLOWLOOM_FUZZ=<count>` (`make slow`). A failure prints the scenario.

mod common;
use common::{fuzz_count, plan, random_scenario, run_point};
use sim::outcome::StopReason;

#[test]
fn random_scenarios_keep_every_invariant() {
    for n in 0..fuzz_count(80) {
        let (text, deep) = random_scenario(n);
        let one_path = !["spray", "conga"].iter().any(|router| text.contains(router));
        let check = || {
            let outcome = run_point(&plan(&text).points[0]);
            for flow in &outcome.flows {
                // Packets on several paths at once may beat the ideal, which has one.
                if let Some(fct) = flow.fct_ps().filter(|_| one_path) {
                    assert!(fct >= flow.ideal_fct_ps, "flow {} beats the ideal: {fct} < {} ps", flow.flow_id, flow.ideal_fct_ps);
                }
                assert!(flow.tx_packets >= flow.retx_packets);
            }
            if deep {
                assert_eq!(outcome.stop_reason, StopReason::Finished, "flows are left unfinished");
            }
        };
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(check));
        assert!(result.is_ok(), "scenario {n} failed:\n{text}");
    }
}

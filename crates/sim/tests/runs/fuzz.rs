//! Random scenarios over the whole space of topologies, workloads, systems and buffers, with all invariants checked.
//!
//! 80 scenarios by default, more with `FLOWLOOM_FUZZ=<count>` (`make slow`). A failure prints the scenario.

use crate::common::{fuzz_numbers, plan, random_scenario, run_point};
use sim::outcome::{FlowRow, StopReason};

/// A packet holds at most 1460 bytes of data, and each byte arrives, so each dropped packet was retransmitted.
fn every_loss_was_made_up_for(flow: &FlowRow) {
    assert!(flow.drops <= flow.tx_packets, "{flow:?}");
    if flow.finish_ps.is_some() {
        assert!(flow.tx_packets >= flow.size_bytes.div_ceil(1460) + flow.drops, "{flow:?}");
        assert!(flow.retx_packets > 0 || flow.drops == 0, "{flow:?}");
    }
}

#[test]
fn random_scenarios_keep_every_invariant() {
    for n in fuzz_numbers(80) {
        let (text, deep) = random_scenario(n);
        let check = || {
            let plan = plan(&text);
            let system = &plan.points[0].run.system;
            let one_path =
                system.router.name() == "ecmp" && system.controller.is_none() && !system.metas().iter().any(|meta| meta.many_paths);
            let net = &plan.points[0].run.net;
            let one_nic = net.hosts().iter().all(|host| net.out_links(*host).len() == 1);
            let outcome = run_point(&plan.points[0]);
            for flow in &outcome.flows {
                // A flow on several paths may be faster than the ideal, which uses one path, if a packet overtakes another
                // or if it leaves by several NICs at once.
                if let Some(fct) = flow.fct_ps().filter(|_| one_path || one_nic && flow.reordered == 0) {
                    assert!(fct >= flow.ideal_fct_ps, "flow {} beats the ideal: {fct} < {} ps", flow.flow_id, flow.ideal_fct_ps);
                }
                every_loss_was_made_up_for(flow);
            }
            let drops: u64 = outcome.flows.iter().map(|flow| flow.drops).sum();
            assert!(drops <= outcome.counters.dropped_packets, "flows lost {drops}, ports {}", outcome.counters.dropped_packets);
            if deep {
                assert_eq!(outcome.stop_reason, StopReason::Finished, "flows are left unfinished");
            }
        };
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(check));
        assert!(result.is_ok(), "scenario {n} failed:\n{text}");
    }
}

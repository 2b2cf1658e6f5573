//! What every registered transport must do in a real network: all bytes arrive once whatever is lost, and timers end.

mod common;
use common::{ROUTERS, SYSTEMS, plan, routers_for, run, run_point, system, table};
use sim::outcome::StopReason;

#[test]
fn every_transport_has_a_system_to_be_tested_in() {
    for entry in proto::transport::ENTRIES {
        assert!(SYSTEMS.iter().any(|s| s.0 == entry.name), "add `{}` to SYSTEMS in tests/common/mod.rs", entry.name);
    }
}

#[test]
fn every_router_is_among_those_to_be_tested() {
    for entry in fabric::router::ENTRIES {
        let quoted = format!("'{}'", entry.name);
        assert!(ROUTERS.iter().any(|r| r.0.contains(&quoted)), "add `{}` to ROUTERS in tests/common/mod.rs", entry.name);
    }
}

/// Heavy loss on many paths: with every router everything arrives, and the run ends by itself.
#[test]
fn every_router_delivers_everything_under_heavy_loss() {
    for (name, _) in SYSTEMS {
        for (number, router) in routers_for(name, "fat_tree").into_iter().enumerate() {
            let rows: Vec<_> = (0..48).map(|i| (i % 8, 15 - i % 3, 1 + 3919 * u64::from(i), u64::from(i / 8) * 500_000)).collect();
            let flows = table(&format!("routed-{name}-{number}"), &rows);
            let text = format!("end = '100s'\n[topology]\nkind = 'fat_tree'\n{flows}{}router = {router}\n", system(name, "6pkt"));
            let outcome = run(&text);
            assert_eq!(outcome.stop_reason, StopReason::Finished, "{name} with {router}");
            assert!(outcome.counters.dropped_packets > 0, "{name} with {router}: nothing was lost");
        }
    }
}

/// Many flows at once through ports of a few packets: heavy loss, everything finishes, and the run ends by itself.
#[test]
fn every_transport_delivers_everything_under_heavy_loss() {
    for (name, _) in SYSTEMS {
        for limit in ["4pkt", "12pkt", "18KB"] {
            let rows: Vec<_> = (0..24).map(|i| (i % 6, 8 - i % 3, 1 + 7919 * u64::from(i), u64::from(i / 6) * 500_000)).collect();
            let flows = table(&format!("loss-{name}-{limit}"), &rows);
            let text = format!("end = '100s'\n[topology]\nkind = 'single_tree'\n{flows}{}", system(name, limit));
            let outcome = run(&text);
            assert_eq!(outcome.stop_reason, StopReason::Finished, "{name} with {limit}");
            assert!(outcome.counters.dropped_packets > 0, "{name} with {limit}: nothing was lost");
            for flow in &outcome.flows {
                assert!(flow.finish_ps.is_some(), "{name} with {limit}: flow {} is unfinished", flow.flow_id);
            }
        }
    }
}

/// One byte, one segment, one segment and a byte.
#[test]
fn every_transport_delivers_the_smallest_flows() {
    for (name, _) in SYSTEMS {
        let rows = [(0, 8, 1, 0), (1, 7, 1460, 0), (2, 6, 1461, 0), (3, 0, 2, 10_000_000)];
        let flows = table(&format!("small-{name}"), &rows);
        let outcome = run(&format!("[topology]\nkind = 'single_tree'\n{flows}{}", system(name, "100pkt")));
        assert_eq!(outcome.stop_reason, StopReason::Finished);
        assert_eq!(outcome.counters.dropped_packets, 0);
    }
}

/// Paths of more than six switches have no room in the packet's route bytes and are looked up, or decided, at every hop.
#[test]
fn long_paths_work() {
    for (name, _) in SYSTEMS {
        for (number, router) in routers_for(name, "chain").into_iter().enumerate() {
            let flows = table(&format!("long-{name}-{number}"), &[(0, 11, 100_000, 0), (11, 0, 100_000, 0), (3, 8, 100_000, 0)]);
            let net = "[topology]\nkind = 'chain'\nswitches = 12\nhosts_per_switch = 1\n";
            let outcome = run(&format!("{net}{flows}{}router = {router}\n", system(name, "100pkt")));
            assert_eq!(outcome.flows[0].hops, 13);
            assert_eq!(outcome.stop_reason, StopReason::Finished, "{name} with {router}");
        }
    }
}

/// So are those of more than 127 switches.
#[test]
fn very_long_paths_work() {
    let flows = table("very-long", &[(0, 199, 10_000, 0)]);
    let net = "[topology]\nkind = 'chain'\nswitches = 200\nhosts_per_switch = 1\ndelay = '1us'\n";
    for router in ["'ecmp'", "'spray'"] {
        let outcome = run(&format!("{net}{flows}{}router = {router}\n", system("newreno", "100pkt")));
        assert_eq!((outcome.flows[0].hops, outcome.stop_reason), (201, StopReason::Finished));
    }
}

/// The latest end stops a run, and what is unfinished is reported as such.
#[test]
fn a_run_ends_at_its_end() {
    for (name, _) in SYSTEMS {
        let flows = table(&format!("end-{name}"), &[(0, 8, 10_000_000, 0), (1, 7, 1_000, 0)]);
        let outcome = run(&format!("end = '1ms'\n[topology]\nkind = 'single_tree'\n{flows}{}", system(name, "100pkt")));
        assert_eq!((outcome.stop_reason, outcome.counters.end_ps), (StopReason::End, 1_000_000_000));
        assert_eq!(outcome.flows[0].finish_ps, None);
        assert!(outcome.flows[1].finish_ps.is_some());
    }
}

/// Stopping from outside keeps an outcome that says that it is incomplete.
#[test]
fn a_stopped_run_says_so() {
    let flows = table("stopped", &[(0, 8, 400_000_000, 0)]);
    let plan = plan(&format!("[topology]\nkind = 'single_tree'\n{flows}{}", system("newreno", "100pkt")));
    let outcome = sim::run(&plan.points[0].run, &mut |_| sim::Continue::No).unwrap();
    assert_eq!((outcome.complete, outcome.stop_reason), (false, StopReason::Stopped));
    assert!(run_point(&plan.points[0]).complete);
}

//! Requirements on every registered transport in a network: all bytes arrive once under any loss, and all timers end.

use crate::common::{fits, kinds, label, plan, run, run_point, sized, system, systems_with, table};
use scenario::SLOTS;
use sim::Outcome;
use sim::outcome::StopReason;

/// Other tests skip systems that the check refuses. So this test asserts that the systems around entries are
/// never refused, and that each entry is in one of them.
#[test]
fn every_entry_is_tried() {
    let rest = format!("[topology]\nkind = 'fat_tree'\n{}", table("tried", &[(0, 8, 1, 0)]));
    for slot in SLOTS {
        let tried = systems_with(slot.name, "100pkt", &rest);
        for kind in kinds(slot.name) {
            let systems = tried.iter().filter(|system| system.get(&format!("{}.kind", slot.name)) == Some(kind));
            assert!(systems.count() > 0, "no system has `{kind}` as its {}", slot.name);
        }
        assert!(tried.iter().all(|system| fits(&rest, system)), "{}", slot.name);
    }
}

/// Packets that ports have dropped, and those that disciplines have trimmed, returned or dropped early.
fn refused(outcome: &Outcome) -> u64 {
    outcome.counters.dropped_packets + outcome.ports.iter().flat_map(|port| &port.counts).sum::<u64>()
}

/// Heavy loss on many paths: with every part everything arrives, and the run ends by itself.
#[test]
fn every_part_delivers_everything_under_heavy_loss() {
    let rows: Vec<_> = (0..48).map(|i| (i % 8, 15 - i % 3, 1 + 3919 * u64::from(i), u64::from(i / 8) * 500_000)).collect();
    let rest = format!("end = '100s'\n[topology]\nkind = 'fat_tree'\n{}", table("routed", &rows));
    for slot in SLOTS {
        // `make slow` tries all; routers that poll take most of the time.
        let step = sized(if slot.name == "router" { 5 } else { 3 }, 1);
        for system in systems_with(slot.name, "4pkt", &rest).into_iter().step_by(step) {
            let outcome = run(&format!("{rest}{}", system.toml()));
            assert_eq!(outcome.stop_reason, StopReason::Finished, "{}", label(&system));
            assert!(refused(&outcome) > 0, "{}: nothing was lost", label(&system));
        }
    }
}

/// Many flows at once through ports of a few packets: despite heavy loss all flows finish, and the run ends before `end`.
#[test]
fn every_transport_delivers_everything_under_heavy_loss() {
    for name in kinds("transport") {
        for limit in ["4pkt", "12pkt", "18KB"] {
            let rows: Vec<_> = (0..24).map(|i| (i % 6, 8 - i % 3, 1 + 7919 * u64::from(i), u64::from(i / 6) * 500_000)).collect();
            let flows = table(&format!("loss-{name}-{limit}"), &rows);
            let text = format!("end = '100s'\n[topology]\nkind = 'single_tree'\n{flows}{}", system(name, limit));
            let outcome = run(&text);
            assert_eq!(outcome.stop_reason, StopReason::Finished, "{name} with {limit}");
            assert!(refused(&outcome) > 0, "{name} with {limit}: nothing was lost");
            for flow in &outcome.flows {
                assert!(flow.finish_ps.is_some(), "{name} with {limit}: flow {} is unfinished", flow.flow_id);
            }
        }
    }
}

/// One byte, one segment, one segment and a byte.
#[test]
fn every_transport_delivers_the_smallest_flows() {
    for name in kinds("transport") {
        let rows = [(0, 8, 1, 0), (1, 7, 1460, 0), (2, 6, 1461, 0), (3, 0, 2, 10_000_000)];
        let flows = table(&format!("small-{name}"), &rows);
        let outcome = run(&format!("[topology]\nkind = 'single_tree'\n{flows}{}", system(name, "100pkt")));
        assert_eq!(outcome.stop_reason, StopReason::Finished);
        assert_eq!(outcome.counters.dropped_packets, 0);
    }
}

/// Paths of more than six switches do not fit into a packet's route bytes; the next hop is looked up, or decided, at every switch.
#[test]
fn long_paths_work() {
    let flows = table("long", &[(0, 11, 100_000, 0), (11, 0, 100_000, 0), (3, 8, 100_000, 0)]);
    let rest = format!("[topology]\nkind = 'chain'\nswitches = 12\nhosts_per_switch = 1\n{flows}");
    for slot in ["transport", "router"] {
        for system in systems_with(slot, "100pkt", &rest) {
            let outcome = run(&format!("{rest}{}", system.toml()));
            assert_eq!(outcome.flows[0].hops, 13);
            assert_eq!(outcome.stop_reason, StopReason::Finished, "{}", label(&system));
        }
    }
}

/// Paths of more than 127 switches work too.
#[test]
fn very_long_paths_work() {
    let flows = table("very-long", &[(0, 199, 10_000, 0)]);
    let net = "[topology]\nkind = 'chain'\nswitches = 200\nhosts_per_switch = 1\ndelay = '1us'\n";
    for router in ["'ecmp'", "'spray'"] {
        let outcome = run(&format!("{net}{flows}{}router = {router}\n", system("newreno", "100pkt")));
        assert_eq!((outcome.flows[0].hops, outcome.stop_reason), (201, StopReason::Finished));
    }
}

/// `end` stops a run, and flows that have not finished are reported as unfinished.
#[test]
fn a_run_ends_at_its_end() {
    for name in kinds("transport") {
        let flows = table(&format!("end-{name}"), &[(0, 8, 10_000_000, 0), (1, 7, 1_000, 0)]);
        let outcome = run(&format!("end = '1ms'\n[topology]\nkind = 'single_tree'\n{flows}{}", system(name, "100pkt")));
        assert_eq!((outcome.stop_reason, outcome.counters.end_ps), (StopReason::End, 1_000_000_000));
        assert_eq!(outcome.flows[0].finish_ps, None);
        assert!(outcome.flows[1].finish_ps.is_some());
    }
}

/// A run stopped from outside returns an outcome marked as incomplete.
#[test]
fn a_stopped_run_says_so() {
    let flows = table("stopped", &[(0, 8, 400_000_000, 0)]);
    let plan = plan(&format!("[topology]\nkind = 'single_tree'\n{flows}{}", system("newreno", "100pkt")));
    let outcome = sim::run(&plan.points[0].run, &mut |_| sim::Continue::No).unwrap();
    assert_eq!((outcome.complete, outcome.stop_reason), (false, StopReason::Stopped));
    assert!(run_point(&plan.points[0]).complete);
}

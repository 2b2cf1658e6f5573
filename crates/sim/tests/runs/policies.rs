//! Policies in whole runs: ports serve packets by the classes that a policy sets, over every transport that sets none itself.

use crate::common::{fits, kinds, label, plan, run_point, system, system_of, systems_with, table, with};
use scenario::Outline;
use sim::outcome::StopReason;

/// Four hosts send to one host through ports with classes; one flow is long.
fn network(name: &str) -> String {
    let rows = [(0, 3, 3_000_000, 0), (1, 3, 60_000, 2_000_000_000), (2, 3, 60_000, 4_000_000_000), (1, 3, 60_000, 6_000_000_000)];
    format!("end = '20s'\n[topology]\nkind = 'star'\nhosts = 4\nrate = '1Gbps'\n{}", table(name, &rows))
}

/// A long flow moves down a class after its first 100 KB, and short flows overtake it.
#[test]
fn short_flows_pass_the_long_one_under_pias() {
    let network = network("pias-newreno");
    let plain = with(&system_of("transport", "newreno", "100pkt"), "qdisc", "strict classes=2", "100pkt");
    let pias = with(&plain, "policy", "pias thresholds=100KB", "100pkt");
    let run = |system: &Outline| run_point(&plan(&format!("{network}{}", system.toml())).points[0]);
    let (plain, pias) = (run(&plain), run(&pias));
    for (a, b) in plain.flows[1..].iter().zip(&pias.flows[1..]) {
        assert!(3 * b.fct_ps().unwrap() < 2 * a.fct_ps().unwrap(), "{} {}", a.fct_ps().unwrap(), b.fct_ps().unwrap());
    }
    assert_eq!(pias.stop_reason, StopReason::Finished);
}

#[test]
fn every_transport_finishes_under_every_policy() {
    let network = network("policies");
    for system in systems_with("policy", "100pkt", &network) {
        let plan = plan(&format!("{network}{}", system.toml()));
        let (first, second) = (run_point(&plan.points[0]), run_point(&plan.points[0]));
        assert_eq!(first, second, "{}", label(&system));
        assert_eq!(first.stop_reason, StopReason::Finished, "{}", label(&system));
    }
}

/// Four long flows between two leaves with four spines. A flow takes 25 ms if no other flow is on its path; two flows that share
/// a path take twice as long. Hosts find free paths, also when a spine fails for a while.
#[test]
fn elephants_part_under_dard() {
    let flows = table("elephants", &[0, 1, 2, 3].map(|i| (i, 4 + i, 3_000_000, 0)));
    let net = "kind = 'leaf_spine'\nleaves = 2\nspines = 4\nhosts_per_leaf = 4\nhost_rate = '1Gbps'\nspine_rate = '1Gbps'";
    let plain = system_of("transport", "newreno", "100pkt");
    let dard =
        with(&plain, "policy", "dard interval=1ms jitter=1ms poll=300us elephant=100KB", "100pkt").set("router.expiry", "1ms");
    let run = |system: &Outline, seed: u32, event: &str| {
        let outcome = run_point(&plan(&format!("seed = {seed}\n[topology]\n{net}\n{flows}{}{event}", system.toml())).points[0]);
        let last = outcome.flows.iter().map(|flow| flow.finish_ps.expect("finished") as f64 / 1e9).fold(0.0, f64::max);
        (last, outcome)
    };
    let (mut hashed, mut moved, mut moves) = (0.0, 0.0, 0);
    for seed in 1..=8 {
        hashed += run(&plain, seed, "").0;
        moved += run(&dard, seed, "").0;
        let (last, outcome) = run(&dard, seed, "[[event]]\nnode = 'spine1'\nat = '6ms'\nuntil = '20ms'\n");
        let sum = |i: usize| outcome.flows.iter().map(|flow| flow.counts[i]).sum::<u64>();
        // Each host asks its own leaf and four spines once per poll.
        let (asked, replied, most) = (sum(0), sum(1), 4.0 * 5.0 * last / 0.3);
        assert!(asked as f64 <= most && replied <= asked && replied > asked / 2, "{asked} {replied} {most}");
        moves += sum(2);
    }
    assert!(moved < 0.75 * hashed && moves > 10, "{moved} {hashed} {moves}");
}

/// One flow uses all paths of a fat tree evenly, in both directions, and survives the failure of a core switch.
#[test]
fn hosts_spray_packets_over_all_paths() {
    let flows = table("sprayed-by-hosts", &[(0, 15, 3_000_000, 0)]);
    let dead = "[[event]]\nnode = 'core1'\nat = '5ms'\nuntil = '10ms'\n[failure]\ndetect = '10us'\nconverge = '200us'\n";
    for events in ["", dead] {
        let text = format!(
            "[topology]\nkind = 'fat_tree'\nrate = '1Gbps'\n{flows}{}policy = 'path_spray'\n{events}",
            system("newreno", "100pkt")
        );
        let outcome = run_point(&plan(&text).points[0]);
        assert_eq!(outcome.stop_reason, StopReason::Finished);
        for (from, to) in [("core", "agg3_"), ("core", "agg0_")] {
            let sent = |core: u32| {
                let name = format!("{from}{core}->{to}{}", core / 2);
                outcome.ports.iter().find(|port| port.name == name).unwrap().tx_packets as f64
            };
            let (all, mean) = ([0, 1, 2, 3].map(sent), [0, 1, 2, 3].map(sent).iter().sum::<f64>() / 4.0);
            let even = all.iter().all(|packets| (packets / mean - 1.0).abs() < 0.01);
            assert_eq!(even, events.is_empty(), "{all:?}");
        }
    }
}

/// Under a router that decides at switches a packet cannot name its path.
#[test]
fn spraying_by_hosts_is_refused_where_switches_decide() {
    let sprayed = with(&system_of("transport", "newreno", "100pkt"), "policy", "path_spray", "100pkt");
    assert!(fits(&network("refused"), &sprayed));
    let text = format!("{}{}", network("refused"), with(&sprayed, "router", "spray", "100pkt").toml());
    let problem =
        scenario::load(&text, "test.toml", std::path::Path::new(env!("CARGO_TARGET_TMPDIR")), &scenario::Options::default());
    assert!(problem.unwrap_err().to_string().contains("`path_spray` sends a flow over several planned paths"));
}

/// A policy that sets headers or ranks cannot be combined with a transport that sets ranks.
#[test]
fn the_rank_of_packets_belongs_to_one_part() {
    let network = network("ranks");
    let ranking = |place: &str| -> Vec<&str> {
        let room = scenario::ROOMS.iter().find(|room| room.name == place).unwrap();
        room.entries.iter().filter(|entry| entry.meta.ranks).map(|entry| entry.name).collect()
    };
    assert_eq!(ranking("transport"), ["pfabric"]);
    for policy in kinds("policy") {
        let system = with(&system_of("transport", "pfabric", "100pkt"), "policy", policy, "100pkt");
        assert_eq!(fits(&network, &system), !ranking("policy").contains(&policy), "{policy}");
    }
}

/// Eighteen flows that are due after 3 to 12 ms meet at a port that needs 7 ms for them. STAM's receiver decides in
/// rounds, its senders change classes, and flows are given up by the configured rule.
#[test]
fn receivers_class_flows_under_stam() {
    let network = "[topology]\nkind = 'star'\nhosts = 20\nrate = '10Gbps'\n[workload.due]\nkind = 'incast'\nsenders = 18\n\
        size = '500KB'\ndeadline = { kind = 'uniform', min = '3ms', max = '12ms' }\n[workload.other]\nkind = 'incast'\nsenders = 2\nsize = '1MB'\n";
    let plain = with(&system_of("transport", "dctcp", "240pkt"), "qdisc", "ecn_threshold mark=65pkt", "240pkt");
    let ended = ["never", "feasible", "paper"].map(|rule| {
        let stam = with(&plain, "policy", &format!("stam thresholds=100KB terminate={rule}"), "240pkt");
        let outcome = run_point(&plan(&format!("{network}{}", stam.toml())).points[0]);
        assert_eq!(outcome.stop_reason, StopReason::Finished, "{rule}");
        let sum = |name: &str| -> u64 {
            let at = outcome.flow_counters.iter().position(|counter| counter.column() == format!("stam.{name}")).unwrap();
            outcome.flows.iter().map(|flow| flow.counts[at]).sum()
        };
        let counted = ["las_packets", "decisions", "class_changes"].map(&sum);
        // By the rule of the paper most flows end with the first decision.
        assert!(counted[0] > 100 && counted[1] > 0 && (rule == "paper" || counted[2] >= 18), "{rule} {counted:?}");
        let given_up = outcome.flows.iter().filter(|flow| flow.terminated);
        assert!(given_up.clone().all(|flow| flow.deadline_met() == Some(false)), "{rule}");
        assert!(sum("ended") >= given_up.clone().count() as u64, "{rule}");
        given_up.count()
    });
    assert!(ended[0] == 0 && 0 < ended[1] && ended[1] < ended[2], "{ended:?}");
}

/// The TCP machine gives up late flows under any policy and any congestion controller. With the rule on, no flow
/// that was given up would have met its deadline, fewer packets are sent, and no fewer flows are in time.
#[test]
fn senders_give_up_late_flows_under_every_policy() {
    // 18 flows of 500 KB take 7.5 ms of the port, and are due after 3 to 7 ms.
    let network = "[topology]\nkind = 'star'\nhosts = 20\nrate = '10Gbps'\n[workload.due]\nkind = 'incast'\nsenders = 18\n\
        size = '500KB'\ndeadline = { kind = 'uniform', min = '3ms', max = '7ms' }\n";
    let (marking, classes) = ("ecn_threshold mark=65pkt", "strict classes=8 mark=65pkt");
    for (transport, policy, qdisc) in [
        ("dctcp", None, marking),
        ("d2tcp", None, marking),
        ("mcp", None, marking),
        ("aemon", None, marking),
        ("dctcp", Some("pias thresholds=100KB"), classes),
        ("dctcp", Some("edf_sjf"), "pifo mark=65pkt"),
        ("mcp", Some("karuna sizes=1MB"), classes),
        ("aemon", Some("aemon thresholds=100KB,200KB,300KB"), classes),
        ("dctcp", Some("stam thresholds=100KB terminate=never"), "strict classes=16 mark=65pkt"),
    ] {
        let run = |rule: &str| {
            let mut system =
                with(&system_of("transport", transport, "240pkt"), "qdisc", qdisc, "240pkt").set("transport.give_up", rule);
            if let Some(policy) = policy {
                system = with(&system, "policy", policy, "240pkt");
            }
            let outcome = run_point(&plan(&format!("{network}{}", system.toml())).points[0]);
            assert_eq!(outcome.stop_reason, StopReason::Finished, "{transport} {policy:?}");
            let given_up = outcome.flows.iter().filter(|flow| flow.terminated);
            assert!(given_up.clone().all(|flow| flow.deadline_met() == Some(false)), "{transport} {policy:?}");
            let in_time = outcome.flows.iter().filter(|flow| flow.deadline_met() == Some(true)).count();
            (given_up.count(), in_time, outcome.flows.iter().map(|flow| flow.tx_packets).sum::<u64>())
        };
        let (never, feasible) = (run("never"), run("feasible"));
        assert!(never.0 == 0 && feasible.0 > 0, "{transport} {policy:?} {never:?} {feasible:?}");
        assert!(feasible.1 >= never.1 && feasible.2 < never.2, "{transport} {policy:?} {never:?} {feasible:?}");
    }
}

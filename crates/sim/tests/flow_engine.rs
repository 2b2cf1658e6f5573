//! The flow engine in real networks, against closed forms and against the packet engine.

mod common;
use common::{plan, run, run_point, system, table, table_of};
use sim::Outcome;
use sim::outcome::StopReason;

const TREE: &str = "[topology]\nkind = 'fat_tree'\nk = 4\nrate = '1Gbps'\ndelay = '1us'\n";

/// A scenario under the flow engine.
fn fluid(rest: &str) -> Outcome {
    run(&format!("engine = 'flow'\n{rest}"))
}

/// How long a flow took, in ms.
fn took(outcome: &Outcome, flow: usize) -> f64 {
    outcome.flows[flow].fct_ps().expect("finished") as f64 / 1e9
}

#[test]
fn a_lone_flow_has_slowdown_one() {
    for (src, dst, size) in [(0, 1, 1), (0, 2, 1461), (0, 4, 3_000_000)] {
        let outcome = fluid(&format!("{TREE}{}{}", table("lone", &[(src, dst, size, 5_000_000)]), system("newreno", "100pkt")));
        let flow = &outcome.flows[0];
        assert_eq!((flow.slowdown(), flow.first_tx_ps, outcome.stop_reason), (Some(1.0), Some(5_000_000), StopReason::Finished));
        assert_eq!(outcome.counters.end_ps, flow.finish_ps.unwrap());
    }
}

/// Flow 0 shares the first link of host 0 with flow 1, until that ends after 1 MB each.
#[test]
fn flows_share_what_they_cross() {
    let flows = table("shared", &[(0, 1, 3_000_000, 0), (0, 2, 1_000_000, 0), (3, 1, 500_000, 20_000_000_000)]);
    let outcome = fluid(&format!("{TREE}{flows}{}[sample]\ninterval = '4ms'\nflows = true", system("newreno", "100pkt")));
    let ms = |payload: f64| payload * 1.5 / 1.46 * 8e-6;
    let tail = |flow: usize| outcome.flows[flow].ideal_fct_ps as f64 / 1e9 - outcome.flows[flow].size_wire_bytes as f64 * 8e-6;
    // 4 MB over the link of host 0, of which the last byte waits for half of flow 2.
    assert!((took(&outcome, 1) - ms(2e6) - tail(1)).abs() < 0.01, "{}", took(&outcome, 1));
    assert!((took(&outcome, 0) - ms(4.5e6) - tail(0)).abs() < 0.01, "{}", took(&outcome, 0));
    let rates: Vec<u64> = outcome
        .samples
        .iter()
        .filter(|row| (row.entity, row.metric) == (0, "flow.rate_bps"))
        .map(|row| (row.value / 1e6) as u64)
        .collect();
    assert_eq!(rates[..4], [486, 486, 486, 486], "{rates:?}");
    let nic = &outcome.ports[0];
    assert_eq!(
        (nic.name.as_str(), nic.tx_bytes),
        ("h0->edge0_0", outcome.flows[0].size_wire_bytes + outcome.flows[1].size_wire_bytes)
    );
    let window = outcome.counters.window.unwrap();
    assert_eq!((window.from_ps, window.until_ps), (0, 20_000_000_000));
}

/// Bytes over links are the flows' bytes over their hops.
#[test]
fn links_carry_what_flows_send() {
    let outcome = fluid(&format!(
        "{TREE}[workload.all]\nkind = 'poisson'\nload = 0.6\nflows = 400\nsize = 'cdf'\ncdf = 'websearch'\n{}",
        system("newreno", "100pkt")
    ));
    let sent: u64 = outcome.flows.iter().map(|flow| flow.size_wire_bytes * u64::from(flow.hops)).sum();
    let carried: u64 = outcome.ports.iter().map(|port| port.tx_bytes).sum();
    assert!(sent - carried < outcome.ports.len() as u64 + 1, "{sent} and {carried}");
    assert!(outcome.flows.iter().all(|flow| flow.slowdown().unwrap() >= 1.0));
    assert!(
        outcome.ports.iter().all(|port| port.window_busy_ps.unwrap() <= port.busy_ps && port.busy_ps <= outcome.counters.end_ps)
    );
}

#[test]
fn a_dead_link_stops_its_flows_until_the_network_knows() {
    let flows = table("dead", &[(0, 4, 1_250_000, 0)]);
    let rest = |event: &str| format!("{TREE}{flows}{}{event}", system("newreno", "100pkt"));
    let alone = took(&fluid(&rest("")), 0);
    let event = |node: &str, more: &str| {
        rest(&format!(
            "[[event]]\nnode = '{node}'\nat = '2ms'\nuntil = '5ms'\n[failure]\ndetect = '500us'\nconverge = '250us'\n{more}"
        ))
    };
    // One of these is on the path; the flow stands still until the switch before it knows.
    let times: Vec<f64> = (0..4).map(|core| took(&fluid(&event(&format!("core{core}"), "")), 0) - alone).collect();
    let hit: Vec<f64> = times.into_iter().filter(|late| *late > 0.0).collect();
    assert!(hit.len() == 1 && (hit[0] - 0.5).abs() < 0.001 || hit.len() == 1 && (hit[0] - 0.75).abs() < 0.001, "{hit:?}");
    // Without another way it stands still until all know that the link is back.
    let late = took(&fluid(&event("edge0_0", "")), 0) - alone;
    assert!((3.0..3.76).contains(&late), "{late}");
}

#[test]
fn a_flow_that_waits_starts_when_the_others_have_ended() {
    let csv = "src,dst,size_bytes,start,after\n0,4,1250000,0s,\n4,0,1250000,,1\n";
    let outcome = fluid(&format!("{TREE}{}{}", table_of("waits_as_fluid", csv), system("newreno", "100pkt")));
    let (first, second) = (&outcome.flows[0], &outcome.flows[1]);
    assert!(second.start_ps.unwrap() >= first.finish_ps.unwrap(), "{outcome:?}");
    assert_eq!(second.slowdown(), Some(1.0));
}

#[test]
fn a_run_is_a_function_of_plan_and_seed_and_samples_change_nothing() {
    let rest = format!(
        "{TREE}[workload.all]\nkind = 'poisson'\nload = 0.7\nflows = 300\nsize = 'cdf'\ncdf = 'websearch'\n{}controller = 'rebalance'\n",
        system("newreno", "100pkt")
    );
    let (one, other) = (fluid(&rest), fluid(&rest));
    assert_eq!(one, other);
    let watched = fluid(&format!("{rest}[sample]\ninterval = '100us'\nflows = true"));
    let ends = |outcome: &Outcome| outcome.flows.iter().map(|flow| flow.finish_ps.unwrap()).collect::<Vec<_>>();
    // Settling at other times rounds otherwise, by less than a nanosecond.
    for (a, b) in ends(&one).into_iter().zip(ends(&watched)) {
        assert!(a.abs_diff(b) < 1000, "{a} {b}");
    }
}

/// A step delays starts and moves by no more than itself.
#[test]
fn changes_within_a_step_are_dealt_with_together() {
    let scenario = |engine: &str| {
        format!(
            "{engine}\n{TREE}[workload.all]\nkind = 'poisson'\nload = 0.5\nflows = 300\nsize = 'fixed'\nmean = '1MB'\n{}",
            system("newreno", "100pkt")
        )
    };
    let mean = |outcome: &Outcome| (0..300).map(|flow| took(outcome, flow)).sum::<f64>() / 300.0;
    let exact = mean(&run(&scenario("engine = 'flow'")));
    let coarse = mean(&run(&scenario("[engine]\nkind = 'flow'\nstep = '100us'")));
    assert!((0.0..0.5).contains(&(coarse - exact)), "{coarse} and {exact}");
}

#[test]
fn both_engines_stand_side_by_side_in_a_sweep() {
    let plan = plan(&format!(
        "engine = ['packet', 'flow']\n{TREE}{}{}",
        table("side", &[(0, 4, 1_000_000, 0)]),
        system("newreno", "100pkt")
    ));
    let ids: Vec<&str> = plan.points.iter().map(|point| point.id.as_str()).collect();
    assert_eq!(ids, ["newreno-enginepacket-seed1", "newreno-engineflow-seed1"]);
    let outcomes: Vec<Outcome> = plan.points.iter().map(run_point).collect();
    assert!(outcomes[0].counters.hops > 0 && outcomes[1].counters.hops == 0);
    assert!((took(&outcomes[0], 0) / took(&outcomes[1], 0) - 1.0).abs() < 0.05);
}

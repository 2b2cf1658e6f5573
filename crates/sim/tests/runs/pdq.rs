//! PDQ in a network: flows one after another, deadlines, and ACKs on the reverse of the data path.

use crate::common::{plan, run, run_point, system, system_of, table, table_of};
use sim::Outcome;
use sim::outcome::{FlowRow, StopReason};

const TREE: &str = "[topology]\nkind = 'single_tree'\n";
const MS: u64 = 1_000_000_000;

fn fct(flow: &FlowRow) -> u64 {
    flow.fct_ps().expect("finished")
}

/// The SYN and its answer, 40 bytes in each direction over four links of 0.32 + 10 us; then a hundred packets back
/// to back, of 12 us each on the first link, and 22 us for the last packet on each link.
#[test]
fn a_lone_flow_takes_one_round_trip_more_than_the_ideal() {
    let flows = table("pdq-alone", &[(0, 8, 146_000, 0)]);
    let outcome = run(&format!("{TREE}{flows}{}", system("pdq", "100pkt")));
    let us = |ns: u64| ns * 1000;
    assert_eq!(fct(&outcome.flows[0]), us(2 * 4 * 10_320 + 99 * 12_000 + 4 * 22_000));
    assert_eq!(fct(&outcome.flows[0]) - outcome.flows[0].ideal_fct_ps, us(82_560));
}

/// Three flows to one host, each shorter than the previous flow: each preempts the earlier flows and then has the whole link.
#[test]
fn flows_run_one_after_another_the_shortest_first() {
    let sizes = [3_000_000, 2_000_000, 1_000_000];
    let flows = table("pdq-turns", &[(3, 0, sizes[0], 0), (4, 0, sizes[1], MS), (6, 0, sizes[2], 2 * MS)]);
    let outcome = run(&format!("{TREE}{flows}{}", system("pdq", "100pkt")));
    // From 2 ms on the shortest flow is served, then the rest of the next one.
    let mut expected = 2 * MS;
    for (flow, size) in outcome.flows.iter().zip(sizes).rev() {
        // Time on the wire, less the millisecond that the longer flows had at first. SYNs and changes of flow take
        // some round trips of 129 us.
        expected += size * 1500 / 1460 * 8_000 - if flow.flow_id == 2 { 0 } else { MS };
        let late = flow.finish_ps.expect("finished") as i64 - expected as i64;
        assert!((0..12 * 129_280_000).contains(&late), "flow {}: {late} ps late", flow.flow_id);
    }
    assert_eq!(outcome.counters.dropped_packets, 0);
}

/// A long flow is paused when a short one arrives, and resumes after it.
#[test]
fn a_shorter_flow_preempts() {
    let flows = table("pdq-preempt", &[(3, 0, 10_000_000, 0), (6, 5, 10_000_000, 0), (4, 0, 200_000, 20 * MS)]);
    let outcome = run(&format!("{TREE}{flows}{}", system("pdq", "100pkt")));
    // Unloaded the short flow takes 1.64 ms and a round trip for the SYN; with half of the link it would take 3.3 ms.
    assert!(fct(&outcome.flows[2]) < 2 * MS + MS / 5, "{:?}", outcome.flows[2]);
    let waited = fct(&outcome.flows[0]) - fct(&outcome.flows[1]);
    assert!((3 * MS / 2..5 * MS / 2).contains(&waited), "the long flow waited {waited} ps");
}

/// Both directions of a flow use the same cables in a fat-tree.
#[test]
fn acks_come_back_over_the_cables_of_the_data() {
    let rows: Vec<_> = (0..16).map(|src| (src, (src + 5) % 16, 30_000, u64::from(src) * 1_000_000)).collect();
    let flows = table("pdq-back", &rows);
    let text =
        format!("[topology]\nkind = 'fat_tree'\n{flows}{}[sample]\npackets = true\nports = false\n", system("pdq", "100pkt"));
    let plan = plan(&text);
    let (net, outcome) = (&plan.points[0].run.net, run_point(&plan.points[0]));
    for flow in &outcome.flows {
        let cables = |back: bool| {
            let mine = outcome.packets.iter().filter(|p| p.flow_id == flow.flow_id && (p.kind == "ack") == back);
            let mine = mine.filter(|p| ["data", "ack"].contains(&p.kind));
            let mut cables: Vec<u32> =
                mine.map(|p| if back { net.link(base::LinkId(p.port_id)).reverse.0 } else { p.port_id }).collect();
            cables.sort_unstable();
            cables.dedup();
            cables
        };
        assert_eq!(cables(false), cables(true), "flow {}", flow.flow_id);
        assert_eq!(cables(false).len(), usize::from(flow.hops));
    }
}

/// Share of flows that missed the deadlines of `due`.
fn missed(outcome: &Outcome, due: &Outcome) -> f64 {
    let late =
        |(flow, due): (&FlowRow, &FlowRow)| FlowRow { deadline_ps: due.deadline_ps, ..flow.clone() }.deadline_met() == Some(false);
    outcome.flows.iter().zip(&due.flows).filter(|pair| late(*pair)).count() as f64 / outcome.flows.len() as f64
}

/// The workload of PDQ section 5: small flows with exponential deadlines, here to one host.
#[test]
fn deadlines_are_met_more_often_when_ports_know_them() {
    let web = "[workload.web]\nkind = 'poisson'\nflows = 400\nload = 0.95\nload_ref = '1Gbps'\nsize = 'uniform'\nsrc = 'h1..h8'\ndst = 'h0'\n";
    let law = "deadline = { kind = 'exponential' }\n";
    let pdq = system("pdq", "4MB");
    let patient = system_of("transport", "pdq", "4MB").set("transport.early_termination", "false").toml();
    let with = run(&format!("{TREE}{web}{law}{pdq}"));
    let without = run(&format!("{TREE}{web}{pdq}"));
    let patient = run(&format!("{TREE}{web}{law}{patient}"));
    let tcp = run(&format!("{TREE}{web}{law}{}", system("newreno", "4MB")));
    let all = [&with, &without, &patient, &tcp];
    for outcome in all {
        assert_eq!(outcome.stop_reason, StopReason::Finished);
        assert!(outcome.flows.iter().all(|f| f.terminated == f.finish_ps.is_none()));
    }
    let rates = all.map(|outcome| missed(outcome, &with));
    assert!(rates[0] < rates[1] && rates[0] <= rates[2] && rates[2] < rates[3], "{rates:?}");
    // Only hopeless flows are terminated, and only with early termination.
    assert!(with.flows.iter().all(|f| !f.terminated || f.deadline_met() == Some(false)));
    assert!(with.flows.iter().any(|f| f.terminated) && patient.flows.iter().all(|f| !f.terminated));
}

/// A flow that cannot meet its deadline does not delay the others.
#[test]
fn hopeless_flows_do_not_hold_the_others_up() {
    let csv = "src,dst,size_bytes,start,deadline\nh3,h0,1000000,0s,5ms\nh4,h0,1000000,0s,10ms\nh6,h0,1000000,0s,12ms\n";
    let flows = table_of("pdq-hopeless", csv);
    let outcome = run(&format!("{TREE}{flows}{}", system("pdq", "100pkt")));
    // Each flow takes 8.2 ms.
    let [first, second, third] = &outcome.flows[..] else { panic!("three flows") };
    assert!(first.terminated && first.tx_packets == 0);
    assert_eq!(second.deadline_met(), Some(true));
    assert!(third.terminated && third.deadline_met() == Some(false));
    assert!(outcome.counters.end_ps < 12 * MS);
}

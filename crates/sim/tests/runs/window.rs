//! The measurement window: its measurements are exact, whatever discipline the ports have, and do not depend on when a
//! run ends.

use crate::common::{plan, systems_with, table};
use sim::cut::Cut;
use sim::outcome::{FlowRow, PortRow};
use sim::{Continue, EventOrder, Outcome, run_cut, run_in};
use std::sync::Arc;

const MS: u64 = 1_000_000_000;

fn run(text: &str) -> Outcome {
    sim::run(&plan(text).points[0].run, &mut |_| Continue::Yes).unwrap()
}

fn port<'a>(outcome: &'a Outcome, name: &str) -> &'a PortRow {
    outcome.ports.iter().find(|port| port.name == name).unwrap()
}

/// Waiting bytes over time in the whole run.
fn area(port: &PortRow, outcome: &Outcome) -> f64 {
    port.mean_queue_bytes * outcome.counters.end_ps as f64
}

/// A flow without its measurements in the window.
fn unmeasured(flow: FlowRow) -> FlowRow {
    FlowRow { window_delivered_bytes: None, ..flow }
}

#[test]
fn windows_side_by_side_add_up_to_the_run() {
    let rows: Vec<_> = (0..9).flat_map(|src| (1..4).map(move |hop| (src, (src + hop) % 9, 29_200 * u64::from(hop), 0))).collect();
    let rest = format!("[topology]\nkind = 'single_tree'\n{}", table("windows", &rows));
    for limit in ["6pkt", "100pkt"] {
        for system in systems_with("qdisc", limit, &rest) {
            let windows = [("0us", "347us"), ("347us", "1001us"), ("1001us", "100s")];
            let outcomes = windows
                .map(|(from, until)| run(&format!("{rest}[measure]\nfrom = '{from}'\nuntil = '{until}'\n{}", system.toml())));
            let whole = &outcomes[0];
            let name = system.get("label").unwrap_or_default();
            for (id, port) in whole.ports.iter().enumerate() {
                let (mut busy, mut queued) = (0, 0.0);
                for outcome in outcomes.iter().filter(|outcome| outcome.counters.window.is_some()) {
                    let [here, there] = [outcome, whole].map(|o| o.flows.iter().cloned().map(unmeasured).collect::<Vec<_>>());
                    assert_eq!(here, there, "{name}: the window is seen");
                    let window = outcome.counters.window.unwrap();
                    let row = &outcome.ports[id];
                    busy += row.window_busy_ps.unwrap();
                    queued += row.window_mean_queue_bytes.unwrap() * (window.until_ps - window.from_ps) as f64;
                }
                assert_eq!(busy, port.busy_ps, "{name}: {}", port.name);
                // A wait that is cut in two is rounded twice, to 1024 ps.
                let (error, rounding) = ((queued - area(port, whole)).abs(), 2.0 * 100.0 * 1500.0 * 1024.0 + 1e-9 * queued);
                assert!(error <= rounding, "{name}: {} off by {error} of {queued}", port.name);
            }
            for flow in &whole.flows {
                let of = |outcome: &Outcome| outcome.flows[flow.flow_id as usize].window_delivered_bytes.unwrap_or(0);
                assert_eq!(outcomes.iter().map(of).sum::<u64>(), flow.size_bytes, "{name}");
            }
            let delivered: u64 = outcomes.iter().filter_map(|outcome| outcome.counters.window).map(|w| w.delivered_bytes).sum();
            assert_eq!(delivered, whole.flows.iter().map(|flow| flow.size_bytes).sum::<u64>(), "{name}");
        }
    }
}

/// Columns that measure the same over the same time agree also if the run ends with full queues: those of the
/// run and those of a window as long as the run, transmitted bytes and busy time, those of ports and of flows.
#[test]
fn columns_over_a_whole_run_are_exact_at_its_end() {
    let rows: Vec<_> = (0..9).flat_map(|src| (1..4).map(move |hop| (src, (src + hop) % 9, 29_200 * u64::from(hop), 0))).collect();
    let mut in_transmission = 0;
    for end in ["31us", "347us", "1203us"] {
        let rest = format!(
            "end = '{end}'
[topology]\nkind = 'single_tree'\n{}",
            table("end", &rows)
        );
        let rest = format!("{rest}[measure]\nfrom = '0us'\nuntil = '{end}'\n");
        for system in systems_with("qdisc", "100pkt", &rest) {
            let outcome = run(&format!("{rest}{}", system.toml()));
            let name = format!("{} until {end}", system.get("label").unwrap_or_default());
            assert_eq!(outcome.counters.window.map(|window| window.until_ps), Some(outcome.counters.end_ps), "{name}");
            for port in &outcome.ports {
                let (mean, of_window) = (port.mean_queue_bytes, port.window_mean_queue_bytes.unwrap());
                assert_eq!(mean, of_window, "{name}: {}", port.name);
                assert!(mean <= port.max_queue_bytes as f64, "{name}: {port:?}");
                assert_eq!(Some(port.busy_ps), port.window_busy_ps, "{name}: {}", port.name);
                // The last packet may be in transmission.
                let to_send = port.tx_bytes * 8_000 / (port.rate_bps / 1_000_000_000) - port.busy_ps;
                assert!(to_send <= 1500 * 8_000, "{name}: {to_send} ps of transmission left at {port:?}");
                in_transmission += u64::from(outcome.counters.end_ps > port.busy_ps && to_send > 0);
            }
            let of_ports = |count: fn(&PortRow) -> u64| outcome.ports.iter().map(count).sum::<u64>();
            let of_flows = |count: fn(&FlowRow) -> u64| outcome.flows.iter().map(count).sum::<u64>();
            assert_eq!(of_ports(|port| port.data_drops), of_flows(|flow| flow.drops), "{name}");
            assert_eq!(of_ports(|port| port.drops), outcome.counters.dropped_packets, "{name}");
            assert_eq!(of_ports(|port| port.tx_packets), outcome.counters.hops, "{name}");
            let delivered = outcome.counters.window.map(|window| window.delivered_bytes);
            assert_eq!(Some(of_flows(|flow| flow.window_delivered_bytes.unwrap_or(0))), delivered, "{name}");
        }
    }
    assert!(in_transmission > 100, "few ports transmit when the run ends: {in_transmission}");
}

/// Two flows to one host keep its link busy for 24 ms. A short flow follows a second later.
#[test]
fn a_straggler_does_not_dilute_the_window() {
    let rows = [(0, 1, 1_460_000, 0), (2, 1, 1_460_000, 0), (3, 4, 1460, 1000 * MS)];
    let rest = format!("[topology]\nkind = 'star'\nhosts = 5\nrate = '1Gbps'\n{}", table("straggler", &rows));
    let system = "[[system]]\ntransport = 'pfabric'\nqdisc = 'pfabric'\n";
    let outcome = run(&format!("{rest}[measure]\nfrom = '5ms'\nuntil = '20ms'\n{system}"));
    let window = outcome.counters.window.unwrap();
    assert_eq!((window.from_ps, window.until_ps), (5 * MS, 20 * MS));
    let to_host = port(&outcome, "s0->h1");
    // All but a few microseconds, in which pFabric's senders take turns.
    let busy = to_host.window_busy_ps.unwrap();
    assert!((1499 * MS / 100..=15 * MS).contains(&busy), "{busy}");
    // 15 ms of 1460 bytes in 12 us, less the packets that pFabric sends twice.
    assert!(window.delivered_bytes.abs_diff(1460 * 1250) <= 20_000, "{}", window.delivered_bytes);
    assert!(to_host.mean_queue_bytes < 0.05 * to_host.window_mean_queue_bytes.unwrap(), "{to_host:?}");
    // By default up to the last start, which the straggler makes.
    let whole = run(&format!("{rest}{system}")).counters.window.unwrap();
    assert_eq!((whole.from_ps, whole.until_ps), (0, 1000 * MS));
}

#[test]
fn the_window_of_flows_that_start_together_ends_with_the_last_finish() {
    let rows = [(0, 1, 146_000, 0), (2, 1, 146_000, 0)];
    let rest = format!("[topology]\nkind = 'star'\nhosts = 5\nrate = '1Gbps'\n{}", table("together", &rows));
    let system = "[[system]]\ntransport = 'newreno'\n";
    let outcome = run(&format!("{rest}{system}"));
    let last = outcome.flows.iter().filter_map(|flow| flow.finish_ps).max().unwrap();
    let window = outcome.counters.window.unwrap();
    assert_eq!((window.from_ps, window.until_ps), (0, last));
    assert!(outcome.counters.end_ps > last, "the last ACK is on its way");
    // With flows unfinished: to the end of the run. A run that ends before its window has none.
    let cut = run(&format!("end = '1ms'\n{rest}{system}")).counters.window.unwrap();
    assert_eq!(cut.until_ps, MS);
    let never = run(&format!("{rest}[measure]\nfrom = '1s'\n{system}"));
    assert_eq!((never.counters.window, never.ports[0].window_busy_ps), (None, None));
}

/// A job of four ranks that trains in two stages, each a data group of two.
const JOB: &str = "[workload.job]\nkind = 'training'\ndata = 2\npipeline = 2\ntensor = 1\nlayers = 2\nhidden = 256\n\
                   sequence = 64\nvocabulary = 1000\nmicrobatches = 2\nteraflops = 1\nper_server = 1\niterations = 2\nstart = '7us'\n";
const STAR: &str = "[topology]\nkind = 'star'\nhosts = 6\nrate = '10Gbps'\ndelay = '1us'\n";

/// Returns the start and the end of the job by the rows of its parts.
fn job(outcome: &Outcome) -> (u64, u64) {
    let of = |time: fn(&sim::tasks::PartRow) -> Option<u64>| outcome.parts.iter().filter_map(time);
    (of(|part| part.start_ps).min().unwrap(), of(|part| part.finish_ps).max().unwrap())
}

#[test]
fn the_window_of_a_program_is_its_job() {
    for engine in ["packet", "flow"] {
        let outcome = run(&format!("engine = '{engine}'\n{STAR}{JOB}[[system]]\ntransport = 'dcqcn'\nbuffer = 'pfc'\n"));
        let window = outcome.counters.window.unwrap();
        assert_eq!((window.from_ps, window.until_ps), job(&outcome), "{engine}");
        assert_eq!(window.from_ps, 7_000_000, "the job computes before it sends");
        // All bytes of the job, at receivers and on all links but for ACKs after the end.
        assert_eq!(window.delivered_bytes, outcome.flows.iter().map(|flow| flow.size_bytes).sum::<u64>(), "{engine}");
        for port in &outcome.ports {
            let after = port.busy_ps - port.window_busy_ps.unwrap();
            assert!(after < 1_000_000, "{engine}: {} is busy for {after} ps after the end", port.name);
        }
    }
}

/// The last ACK of a job is lost: the sender's timer ends the run much later.
#[test]
fn a_timer_does_not_lengthen_the_window_of_a_program() {
    let rest = format!("{STAR}{JOB}[[system]]\ntransport = 'dcqcn'\nbuffer = 'pfc'\n");
    let healthy = run(&rest);
    let last = healthy.flows.iter().max_by_key(|flow| flow.finish_ps).unwrap();
    let down = last.finish_ps.unwrap() + 10_000;
    let link = format!("['h{}', 's0']", last.dst);
    let outcome = run(&format!("[[event]]\nat = '{down}ps'\nlink = {link}\nuntil = '{}ps'\n{rest}", down + 20_000_000));
    let window = outcome.counters.window.unwrap();
    assert_eq!((window.from_ps, window.until_ps), job(&healthy));
    assert!(outcome.counters.end_ps > 2 * window.until_ps, "{}", outcome.counters.end_ps);
}

/// Flows of other workloads do not change the window of a job, whichever starts or ends first, on one thread and on several.
#[test]
fn a_window_covers_the_program_and_not_other_flows() {
    let others = table("others", &[(4, 5, 146_000, 0), (5, 4, 14_600_000, MS / 2), (4, 5, 1460, 100 * MS)]);
    let net = "[topology]\nkind = 'leaf_spine'\nleaves = 3\nspines = 2\nhosts_per_leaf = 2\n";
    let text = format!("{net}{JOB}{others}[[system]]\ntransport = 'newreno'\n");
    let alone = run(&format!("{net}{JOB}[[system]]\ntransport = 'newreno'\n"));
    for engine in ["packet", "flow"] {
        let outcome = run(&format!("engine = '{engine}'\n{text}"));
        let window = outcome.counters.window.unwrap();
        assert_eq!((window.from_ps, window.until_ps), job(&outcome), "{engine}");
        let rest = outcome.flows.iter().filter(|flow| flow.finish_ps > Some(window.until_ps));
        assert_eq!(rest.count(), 2, "two other flows end later");
        let port = port(&outcome, "leaf2->h4");
        assert!(port.window_busy_ps.unwrap() < port.busy_ps / 2, "{port:?}");
        if engine == "packet" {
            assert_eq!(job(&outcome), job(&alone));
        }
    }
    let spec = &plan(&text).points[0].run;
    let whole = run(&text);
    for parts in 2..4 {
        let cut = Arc::new(Cut::new(&spec.net, parts).unwrap());
        let outcome = run_cut(spec, &cut, 2, EventOrder::Tree, &mut |_| Continue::Yes).unwrap();
        assert_eq!((&outcome.flows, &outcome.ports), (&whole.flows, &whole.ports), "{parts} parts");
        assert_eq!(outcome.counters.window, whole.counters.window);
    }
    let windows = run_in(EventOrder::Windows, spec, &mut |_| Continue::Yes).unwrap();
    assert_eq!((&windows.flows, &windows.ports), (&whole.flows, &whole.ports));
    // With `flows = "window"`, flows that start after the job do not count.
    let counted = run(&format!("[measure]\nflows = 'window'\n{text}"));
    let counts: Vec<bool> = counted.flows.iter().filter(|flow| flow.workload == 1).map(|flow| flow.measured).collect();
    assert_eq!(counts, [false, true, false], "one starts before the job, and one after it");
    assert!(counted.flows.iter().filter(|flow| flow.workload == 0).all(|flow| flow.measured));
}

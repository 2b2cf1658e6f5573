//! Hosts that are cabled to each other. Hosts do not forward, so they reach their neighbours only.

use crate::common::{all_systems, file, fits, plan, run, system, table};
use scenario::{Options, Style};
use std::path::Path;

/// Full packets of 1460 bytes of payload, which take 12 us on a NIC.
const MSS: u64 = 1460;

/// Three hosts in a line, in the form of HPCC's topologies: 0 and 2 have no path.
fn line() -> String {
    let path = file("cabled-line.txt", "3 0 2\n\n0 1 1Gbps 1us 0\n1 2 1Gbps 1us 0\n");
    format!("[topology]\nkind = 'hpcc'\npath = '{path}'\n")
}

/// Eight hosts with four cables each, as the GPUs of a DGX-1: two squares with their diagonals, and a
/// cable from each corner of a square to that of the other. Hosts 0 and 5 have no path.
fn dgx1() -> String {
    let quad = |base: u32| [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3)].map(|(a, b)| (base + a, base + b));
    let cables: Vec<(u32, u32)> = quad(0).into_iter().chain(quad(4)).chain((0..4).map(|i| (i, i + 4))).collect();
    let lines: String = cables.iter().map(|(a, b)| format!("{a} {b} 1Gbps 1us 0\n")).collect();
    let path = file("cabled-dgx1.txt", &format!("8 0 {}\n\n{lines}", cables.len()));
    format!("[topology]\nkind = 'hpcc'\npath = '{path}'\n")
}

/// The error of a scenario, as the command line prints it.
fn refused(text: &str) -> String {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    scenario::load(text, "t.toml", dir, &Options::default()).map(|_| ()).unwrap_err().render(Style::Plain)
}

#[test]
fn neighbours_in_a_line_send_to_each_other() {
    let flows = table("cabled-line", &[(0, 1, 10 * MSS, 0), (2, 1, 10 * MSS, 0), (1, 0, MSS, 0)]);
    let outcome = run(&format!("{}{flows}{}", line(), system("pfabric", "100pkt")));
    let fcts: Vec<Option<u64>> = outcome.flows.iter().map(|flow| flow.fct_ps()).collect();
    // Host 0 also sends the ACK of the third flow, of 40 bytes.
    assert_eq!(fcts, [Some(121_320_000), Some(121_000_000), Some(13_000_000)]);
    // Every system sends to neighbours.
    let mut systems = 0;
    for system in all_systems("100pkt") {
        if !fits(&format!("end = '1s'\n{}{flows}", line()), &system) {
            continue;
        }
        let outcome = run(&format!("end = '1s'\n{}{flows}{}", line(), system.toml()));
        assert!(outcome.flows.iter().all(|flow| flow.finish_ps.is_some()), "{}", system.toml());
        systems += 1;
    }
    assert!(systems > 20, "{systems}");
}

#[test]
fn a_pair_that_sends_without_a_path_is_refused_with_the_reason() {
    let error =
        refused(&format!("{}{}{}", line(), table("cabled-far", &[(0, 1, MSS, 0), (0, 2, MSS, 0)]), system("newreno", "100pkt")));
    for part in
        ["`workload.flows` needs paths that do not exist: from `0` to `2`", "hosts do not forward", "only switches forward packets"]
    {
        assert!(error.contains(part), "{part} in\n{error}");
    }
}

/// Pairs that the seed picks need a path, whatever this seed picks.
#[test]
fn workloads_that_pick_hosts_need_a_path_between_all_of_them() {
    for (workload, src, dst) in [
        ("kind = 'poisson'\nflows = 1", "0", "2"),
        ("kind = 'incast'\nsenders = 1\nsize = '1KB'\nreceiver = 'random'", "0", "2"),
        ("kind = 'incast'\nsenders = 1\nsize = '1KB'\nreceiver = '0'\nselect = 'random'", "2", "0"),
        ("kind = 'long'\nsize = '1KB'", "0", "2"),
        ("kind = 'long'\nsize = '1KB'\npairs = 'random'", "0", "2"),
    ] {
        let error = refused(&format!("{}[workload.x]\n{workload}\n{}", line(), system("newreno", "100pkt")));
        let message = format!("`workload.x` may pick `{src}` and `{dst}`, but there is no path between them");
        assert!(error.contains(&message) && error.contains("hosts do not forward"), "{workload}: {error}");
    }
    for workload in [
        "kind = 'poisson'\nflows = 3\nsrc = '0, 2'\ndst = '1'",
        "kind = 'incast'\nsenders = 2\nsize = '1KB'\nreceiver = '1'\nselect = 'random'",
        "kind = 'incast'\nsenders = 1\nsize = '1KB'\nreceiver = '0'",
        "kind = 'long'\nsize = '1KB'\npairs = '0->1, 2->1'",
        "kind = 'collective'\nop = 'broadcast'\nbytes = '9KB'\nranks = 2",
        "kind = 'requests'\nworkers = 1\nrepeat = 3\naggregator = '0'",
    ] {
        let outcome = run(&format!("end = '1s'\n{}[workload.x]\n{workload}\n{}", line(), system("newreno", "100pkt")));
        assert!(outcome.flows.iter().all(|flow| flow.finish_ps.is_some()), "{workload}");
    }
}

/// A flow starts when its source learns of the end of another flow, for which the source needs a path
/// from the receiver of that flow.
#[test]
fn hosts_that_wait_for_each_other_need_a_path() {
    let path = file("cabled-four.txt", "4 0 3\n\n0 1 1Gbps 1us 0\n1 2 1Gbps 1us 0\n2 3 1Gbps 1us 0\n");
    let of = |second: &str| {
        let flows =
            format!("0->1 id 1 start 0 size 1460 send_done_trigger 1\n{second} id 2 trigger 1 size 1460\ntrigger id 1 oneshot\n");
        let flows = file("cabled-wait.cm", &flows);
        format!(
            "[topology]\nkind = 'hpcc'\npath = '{path}'\n[workload.x]\nkind = 'htsim'\npath = '{flows}'\n{}",
            system("pfabric", "100pkt")
        )
    };
    // Host 2 learns of the end at host 1 when a bare header has crossed the cable.
    let outcome = run(&of("2->3"));
    let header = 8 * 40 * 1_000;
    assert_eq!(outcome.flows[1].start_ps, Some(13_000_000 + header + 1_000_000));
    let error = refused(&of("3->2"));
    assert!(error.contains("needs paths that do not exist: from `1` to `3` (to learn of the end of a flow)"), "{error}");
}

#[test]
fn a_ring_of_gpus_that_are_cabled_to_each_other_has_the_bandwidth_of_a_cable() {
    let ring = "placement = '0 1 2 3 7 6 5 4'";
    let job = |more: &str| format!("{}[workload.job]\nkind = 'collective'\nop = 'all_reduce'\nbytes = '8MB'\n{more}\n", dgx1());
    let outcome = run(&format!("{}{}", job(ring), system("pfabric", "1000pkt")));
    let ends = outcome.flows.iter().map(|flow| flow.finish_ps.expect("finished")).max().unwrap();
    // 2 (n - 1) / n of the bytes cross each cable, 1460 of 1500 bytes of a packet are payload.
    let least = 8e6 * 8.0 * 2.0 * 7.0 / 8.0 / 1e9 * 1e12 * 1500.0 / 1460.0;
    assert!((1.0..1.05).contains(&(ends as f64 / least)), "{ends} ps, and at least {least} ps");
    // In the order of their numbers, ranks 3 and 4 have no path.
    let error = refused(&format!("{}{}", job(""), system("pfabric", "1000pkt")));
    assert!(error.contains("needs paths that do not exist: from `3` to `4`") && error.contains("hosts do not forward"), "{error}");
}

/// Two racks without a cable between them.
#[test]
fn islands_send_within_themselves() {
    let path = file("cabled-islands.txt", "6 2 4\n4 5\n0 4 1Gbps 1us 0\n1 4 1Gbps 1us 0\n2 5 1Gbps 1us 0\n3 5 1Gbps 1us 0\n");
    let flows = table("cabled-islands", &[(0, 1, 10 * MSS, 0), (2, 3, 10 * MSS, 0)]);
    let whole = |flows: &str| format!("[topology]\nkind = 'hpcc'\npath = '{path}'\n{flows}{}", system("pfabric", "100pkt"));
    let plan = plan(&whole(&flows));
    for threads in [1, 2] {
        let exactly = sim::Threads::Exactly(threads);
        let outcome = sim::run_threads(&plan.points[0].run, exactly, sim::EventOrder::Auto, &mut |_| sim::Continue::Yes).unwrap();
        assert!(outcome.flows.iter().all(|flow| flow.fct_ps() == Some(134_000_000)), "{:?}", outcome.flows);
    }
    let error = refused(&whole(&table("cabled-islands-far", &[(0, 3, MSS, 0)])));
    assert!(error.contains("`0` to `3`") && error.contains("the network is not connected"), "{error}");
}

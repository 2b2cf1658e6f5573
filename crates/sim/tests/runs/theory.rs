//! Runs against closed forms.

use crate::common::{run, system, system_of, table};
use base::{Rate, Rng};
use scenario::Outline;
use sim::outcome::{Engine, FlowRow, Outcome};

/// Hosts on both sides of a four-link path of 1 Gb/s and 10 us: MERP's single tree across racks.
const TREE: &str = "[topology]\nkind = 'single_tree'\n";

/// 100 packets of 1500 B.
const HUNDRED: u64 = 100 * 1460;

fn lone_flow(transport: &str) -> sim::outcome::FlowRow {
    let flows = table(&format!("lone-{transport}"), &[(0, 8, HUNDRED, 1_000_000)]);
    run(&format!("{TREE}{flows}{}", system(transport, "100pkt"))).flows[0].clone()
}

/// The docs' vector U1: handshake 8 (0.32 + 10) us, 99 gaps of 12.012013 us, and 4 (12 + 10) us for the last packet.
#[test]
fn a_lone_merp_flow_takes_its_closed_form() {
    let flow = lone_flow("merp");
    let closed = 8 * 10_320_000 + 99 * 12_012_013 + 4 * 22_000_000;
    assert_eq!(flow.fct_ps(), Some(closed));
    assert!((closed as f64 / 1e6 - 1359.7492).abs() < 1e-3);
    assert!((flow.expansion_ratio().unwrap() - 1.13312).abs() < 1e-5);
}

/// The first window exceeds the bandwidth-delay product, so the sender never waits for ACKs.
#[test]
fn a_lone_pfabric_flow_takes_the_ideal_time() {
    let flow = lone_flow("pfabric");
    assert_eq!(flow.fct_ps(), Some(flow.ideal_fct_ps));
    // Store and forward: 99 packets at line rate, and four links for the last packet.
    assert_eq!(flow.ideal_fct_ps, 99 * 12_000_000 + 4 * 22_000_000);
}

/// Handshake, then slow start from 3 segments: the sender waits for the ACKs of rounds of 3 and 6 segments, and from the third window on
/// sends back to back, since the path holds 10.8 segments. The result is the same for a NIC that pulls packets and for a NIC that takes all of them at once.
#[test]
fn a_lone_newreno_flow_takes_its_closed_form() {
    let handshake = 8 * 10_320_000;
    let round = 4 * 22_000_000 + 4 * 10_320_000;
    // After two rounds 9 segments are acknowledged; the other 91 are sent back to back.
    let closed = handshake + 2 * round + 90 * 12_000_000 + 4 * 22_000_000;
    let system = system_of("transport", "newreno", "100pkt").set("transport.init_window", "3");
    let flows = table("lone-pushed", &[(0, 8, HUNDRED, 1_000_000)]);
    let alone = |system: &Outline| run(&format!("{TREE}{flows}{}", system.toml())).flows[0].fct_ps();
    assert_eq!(alone(&system), Some(closed));
    assert_eq!(alone(&system.set("nic.low_water", "unlimited")), Some(closed));
}

/// Completion time in ps of a lone flow in slow start at line rate: a handshake, then `window` segments, and two more
/// for each ACK. `tx` is the transmission time of a segment; `to` and `back` are the times from the start of the
/// transmission of a segment and of an ACK to its arrival.
fn slow_start(segments: usize, window: usize, (tx, to, back, handshake): (u64, u64, u64, u64)) -> u64 {
    let mut departures: Vec<u64> = Vec::with_capacity(segments);
    for i in 0..segments {
        let free = departures.last().map_or(handshake, |last| last + tx);
        // The segments with numbers below window + 2 n may leave once n ACKs have come.
        let acks = (i + 1).saturating_sub(window).div_ceil(2);
        departures.push(if acks == 0 { free } else { free.max(departures[acks - 1] + to + back) });
    }
    departures[segments - 1] + to
}

/// Lone flows through one switch, in full segments of 1448 bytes and with an initial window of 10, at 10 and at 100 Gb/s with 100 us of
/// propagation there and back. ns-3 takes 495, 1583 and 4532 us for the first three.
#[test]
fn lone_flows_are_in_slow_start_at_line_rate() {
    for (transport, gbps, sizes) in [
        ("dctcp", 10, &[144_800u64, 1_448_000, 5_000_000][..]),
        ("newreno", 10, &[144_800, 1_448_000]),
        ("newreno", 100, &[1_000_000]),
    ] {
        for &size in sizes {
            let bits = |bytes: u64| bytes * 8 * 1000 / gbps;
            let (full, bare, delay) = (bits(1500), bits(52), 25_000_000);
            let last = size % 1448;
            let segments = size.div_ceil(1448);
            let links = |tx: u64| 2 * (tx + delay);
            let mut closed = slow_start(segments as usize, 10, (full, links(full), links(bare), 2 * links(bare)));
            if last > 0 {
                closed -= links(full) - links(bits(last + 52));
            }
            let flows = table(&format!("lone-{transport}-{gbps}-{size}"), &[(0, 1, size, 0)]);
            let network = format!("header = '52B'\n[topology]\nkind = 'star'\nhosts = 2\nrate = '{gbps}Gbps'\ndelay = '25us'\n");
            let system = system_of("transport", transport, "unlimited").set("transport.init_window", "10");
            let system = if transport == "dctcp" { system.set("qdisc.mark", "10000pkt") } else { system };
            let found = run(&format!("{network}{flows}{}", system.toml())).flows[0].fct_ps().expect("the flow finishes");
            assert!(found.abs_diff(closed) * 3000 <= closed, "{transport}, {gbps} Gb/s, {size} B: {found} ps, not {closed}");
        }
    }
}

/// A lone flow has the ideal completion time under every ideal, on a tree and on a fat tree.
#[test]
fn a_lone_flow_of_an_ideal_reference_has_slowdown_one() {
    for topology in [TREE, "[topology]\nkind = 'fat_tree'\nk = 4\n"] {
        let flows = table("lone-ideal", &[(0, 8, HUNDRED, 1_000_000), (8, 0, 1, 900_000_000_000)]);
        let ideals = "ideal = ['srpt', 'ps', 'fcfs', 'edf', 'sjf', 'edf_sjf', 'stam', 'merp', 'big_switch']\n";
        let plan = crate::common::plan(&format!("{ideals}{topology}{flows}{}", system("newreno", "100pkt")));
        let ideals: Vec<_> = plan.points.iter().filter(|p| p.run.ideal.is_some()).collect();
        assert_eq!(ideals.len(), 9);
        for point in ideals {
            let outcome = crate::common::run_point(point);
            assert!(outcome.engine == Engine::Ideal && outcome.complete && outcome.ports.is_empty() && outcome.flows.len() == 2);
            for flow in &outcome.flows {
                let over = flow.fct_ps().unwrap() - flow.ideal_fct_ps;
                assert!(over <= 2, "{}: {over} ps too long", point.id);
            }
        }
    }
}

/// On one link no other schedule and no system has a smaller mean completion time than SRPT.
#[test]
fn no_system_beats_the_mean_of_ideal_srpt_on_one_link() {
    let text = "ideal = ['srpt', 'ps', 'fcfs', 'sjf', 'merp', 'big_switch']
        [topology]
        kind = 'star'
        hosts = 5
        rate = '1Gbps'
        [workload.web]
        kind = 'poisson'
        flows = 400
        load = 0.8
        load_ref = '1Gbps'
        size = 'pareto'
        mean = '60KB'
        shape = 1.5
        src = 'h1, h2, h3, h4'
        dst = 'h0'
        ";
    let systems: String = crate::common::kinds("transport").into_iter().map(|name| system(name, "100pkt")).collect();
    let plan = crate::common::plan(&format!("{text}\n{systems}"));
    let mean = |point: &scenario::Point| {
        let outcome = crate::common::run_point(point);
        let fct: Vec<u64> = outcome.flows.iter().map(|f| f.fct_ps().expect("all flows finish")).collect();
        assert!(outcome.flows.iter().all(|f| f.slowdown() >= Some(1.0)), "{}", point.label);
        fct.iter().sum::<u64>() as f64 / fct.len() as f64
    };
    let means: Vec<(String, f64)> = plan.points.iter().map(|p| (p.label.clone(), mean(p))).collect();
    let of = |label: &str| means.iter().find(|(l, _)| l == label).unwrap().1;
    let srpt = of("ideal SRPT");
    for (label, mean) in &means {
        assert!(*mean >= srpt * (1.0 - 1e-9), "{label}: {mean} below {srpt}, {means:?}");
    }
    assert!(of("ideal PS") > 1.2 * srpt && of("ideal FCFS") > of("ideal PS"), "{means:?}");
    for scheduler in ["pfabric", "merp"] {
        assert!(of(scheduler) < of("ideal PS"), "{scheduler}, with packets, beats fair sharing: {means:?}");
    }
    assert_eq!(of("ideal big switch"), srpt, "the only shared link is that of a host");
}

/// Single-packet flows from fast hosts arrive at a slow link as a Poisson stream: mean wait rho D / (2 (1 - rho)).
#[test]
fn waits_at_a_link_are_those_of_an_m_d_1_queue() {
    let service_us = 12.0;
    for (rho, transport) in [(0.5, "newreno"), (0.8, "newreno"), (0.8, "pfabric")] {
        let mut rng = Rng::stream(11, "m-d-1", &[(rho * 10.0) as u64]);
        let mut at = 0.0;
        let n = 60_000;
        let rows: Vec<(u32, u32, u64, u64)> = (0..n)
            .map(|i| {
                at += rng.exponential(service_us / rho * 1e6);
                (i % 64, 64, 1460, at as u64)
            })
            .collect();
        let flows = table(&format!("md1-{transport}-{rho}"), &rows);
        let patient = system_of("transport", transport, "unlimited");
        let text = format!(
            "[topology]\nkind = 'dumbbell'\nleft = 64\nright = 1\nrate = '400Gbps'\nbottleneck_rate = '1Gbps'\ndelay = '1us'\n{flows}{}",
            match transport {
                "newreno" => patient.set("transport.handshake", "false").toml(),
                _ => patient.set("transport.rto", "1s").toml(),
            }
        );
        let outcome = run(&text);
        let waits: f64 = outcome.flows.iter().map(|f| (f.fct_ps().unwrap() - f.ideal_fct_ps) as f64 * 1e-6).sum();
        let (measured, theory) = (waits / f64::from(n), rho * service_us / (2.0 * (1.0 - rho)));
        assert!((measured / theory - 1.0).abs() < 0.05, "{transport} at {rho}: {measured} us, theory {theory} us");
    }
}

/// Two flows with equal round trips share a link within 20 % over 100 round trips of congestion avoidance, and fill it. The NICs are faster
/// than the link: at equal rates, a sender limited by its NIC would stop growing just below loss and lock the other flow out.
#[test]
fn equal_newreno_flows_share_equally_and_fill_the_link() {
    let flows = table("pair", &[(0, 2, 30_000_000, 0), (1, 3, 30_000_000, 137_000)]);
    let text = format!(
        "end = '400ms'\n[topology]\nkind = 'dumbbell'\nleft = 2\nright = 2\nrate = '10Gbps'\nbottleneck_rate = '1Gbps'\ndelay = '100us'\n{flows}{}[sample]\ninterval = '10ms'\nflows = true\n",
        system("newreno", "60pkt")
    );
    let outcome = run(&text);
    let rates = |flow| -> f64 {
        let mine =
            outcome.samples.iter().filter(|s| s.metric == "flow.rate_bps" && s.entity == flow && s.time_ps > 100_000_000_000);
        mine.map(|s| s.value).sum::<f64>() / 30.0
    };
    let (a, b) = (rates(0), rates(1));
    assert!((a / b).max(b / a) < 1.2, "{a} and {b} bit/s");
    // Payload share of the wire is 1460/1500.
    assert!((a + b) * 1500.0 / 1460.0 > 0.94 * Rate::from_gbps(1).0 as f64, "{a} + {b} bit/s");
}

/// Two flows of the stack of Linux, without a limit in slow start, share 20 Mb/s and 30 packets of buffer, whenever the
/// second flow starts. The shares are those of the last 25 s of 30. Without time stamps the back-off of one flow
/// persists, since all packets that it sends after a timeout are retransmissions.
#[test]
fn no_flow_is_locked_out_by_its_timeouts() {
    let share = |timestamps: bool, offset_us: u64| {
        let flows = table(&format!("share-{offset_us}"), &[(0, 2, 1_000_000_000, 0), (1, 3, 1_000_000_000, offset_us * 1_000_000)]);
        let transport = format!("{{ kind = 'newreno', stack = 'linux', slow_start_limit = 1000000, timestamps = {timestamps} }}");
        let outcome = run(&format!(
            "end = '30s'\n[measure]\nfrom = '5s'\nuntil = '30s'\n[topology]\nkind = 'dumbbell'\nleft = 2\nright = 2\nrate = '1Gbps'\nbottleneck_rate = '20Mbps'\n\
             delay = '100us'\n{flows}[[system]]\ntransport = {transport}\nqdisc = {{ kind = 'droptail', limit = '30pkt' }}\n"
        ));
        let bytes: Vec<u64> =
            outcome.flows.iter().map(|flow| flow.window_delivered_bytes.expect("the window was measured")).collect();
        *bytes.iter().min().unwrap() as f64 / *bytes.iter().max().unwrap() as f64
    };
    let offsets = [0, 137, 1000, 5000, 20_000, 50_000, 123_456, 700_000];
    let shares = |timestamps| offsets.map(|offset| share(timestamps, offset));
    let (with, without) = (shares(true), shares(false));
    assert!(with.iter().all(|share| *share > 0.95), "{with:?}");
    assert!(without.iter().any(|share| *share < 0.1), "the case shows nothing: {without:?}");
}

/// 32 senders answer at once into a port of 100 packets: the burst overflows the port, and the slowest flows wait for a timeout of `min_rto`.
#[test]
fn incast_into_newreno_shows_timeouts() {
    let rows: Vec<_> = (1..33).map(|src| (src, 0, 64_000, 0)).collect();
    let text = |system: scenario::Outline| {
        format!(
            "[topology]\nkind = 'star'\nhosts = 33\nrate = '1Gbps'\ndelay = '10us'\n{}{}",
            table("incast", &rows),
            system.toml()
        )
    };
    let last = |outcome: &sim::Outcome| outcome.flows.iter().map(|f| f.fct_ps().unwrap()).max().unwrap();
    let newreno =
        run(&text(system_of("transport", "newreno", "100pkt").set("transport.min_rto", "200ms").set("transport.init_rto", "1s")));
    assert!(newreno.flows.iter().any(|f| f.timeouts > 0));
    assert!(last(&newreno) > 200_000_000_000, "a timeout lasts 200 ms");
    // MERP schedules one sender after another: no timeout, and little more than the transmission time of all packets.
    let merp = run(&text(system_of("transport", "merp", "100pkt")));
    let all = 32.0 * 64_000.0 * 1500.0 / 1460.0 * 8.0 * 1e3;
    assert_eq!(merp.flows.iter().map(|f| f.timeouts).sum::<u32>(), 0);
    assert!((last(&merp) as f64) < 1.25 * all, "{} ps for {all} ps of packets", last(&merp));
}

/// The mean slowdown of flows that share one link, and their mean time if they are served one after another, in a run of
/// 3000 flows near saturation. With a start in the steady state the means agree with the closed form; from an empty
/// network to an empty network they are too small. 40 seeds.
#[test]
fn short_runs_have_the_means_of_a_steady_state() {
    let run = |flows: &str, ideal: &str| -> Vec<Outcome> {
        let seeds: Vec<String> = (1..=40).map(|seed| seed.to_string()).collect();
        let text = format!(
            "seed = [{}]\nideal = '{ideal}'\n[measure]\nflows = '{flows}'\n[topology]\nkind = 'star'\nhosts = 2\nrate = '10Gbps'\ndelay = '1ns'\n\
             [workload.web]\nkind = 'poisson'\nflows = 3000\nload = 0.97\nload_ref = '10Gbps'\nsrc = 'h0'\ndst = 'h1'\nsize = 'exponential'\nmean = '1MB'\n\
             [[system]]\ntransport = 'newreno'\n",
            seeds.join(", ")
        );
        let plan = scenario::load(&text, "t.toml", ".".as_ref(), &scenario::Options::default()).unwrap_or_else(|e| panic!("{e}"));
        let points = plan.points.iter().filter(|point| point.run.ideal.is_some());
        points.map(|point| sim::run(&point.run, &mut |_| sim::Continue::Yes).unwrap()).collect()
    };
    // Half the 95 % interval by Student's t with 39 degrees of freedom.
    let interval = |values: &[f64]| {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
        (mean, 2.023 * (variance / n).sqrt())
    };
    let mean = |outcome: &Outcome, of: fn(&FlowRow) -> f64| {
        let own: Vec<f64> = outcome.flows.iter().filter(|flow| flow.measured).map(of).collect();
        assert_eq!(own.len(), 3000);
        own.iter().sum::<f64>() / own.len() as f64
    };
    // On the wire 1 MB is 1 MB and a header for each of its packets; half a packet is not full.
    let service_s = (1e6 + (1e6 / 1460.0 + 0.5) * 40.0) * 8.0 / 1e10;
    type Of = fn(&FlowRow) -> f64;
    let slowdown: Of = |flow| flow.slowdown().unwrap();
    let time_s: Of = |flow| flow.fct_ps().unwrap() as f64 * 1e-12;
    for (ideal, of, closed_form) in [("ps", slowdown, 1.0 / 0.03), ("fcfs", time_s, service_s / 0.03)] {
        for (flows, holds) in [("auto", true), ("all", false)] {
            let (mean, half) = interval(&run(flows, ideal).iter().map(|outcome| mean(outcome, of)).collect::<Vec<_>>());
            assert_eq!((mean - closed_form).abs() <= half, holds, "{ideal}, {flows}: {mean} +- {half}, not {closed_form}");
        }
    }
}

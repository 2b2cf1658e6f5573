//! Properties that the papers of routers claim, in networks.

use crate::both::both;
use crate::common::{file, plan, run, system, system_of, table};
use base::{FlowId, Rng, Time};
use sim::outcome::{FlowRow, StopReason};
use sim::why::{Life, TimePart, watch};
use sim::{Continue, Outcome};

/// Two leaves and two spines; the link from the second spine to the second leaf has half the rate.
fn lopsided(router: &str) -> Outcome {
    let mut cables = String::from("a,b,rate,delay\n");
    for i in 0..12 {
        cables += &format!("h{i},leaf{},1Gbps,1us\n", i / 6);
    }
    for (leaf, spine, rate) in [(0, 0, "1Gbps"), (0, 1, "1Gbps"), (1, 0, "1Gbps"), (1, 1, "500Mbps")] {
        cables += &format!("leaf{leaf},spine{spine},{rate},1us\n");
    }
    let cables = file("lopsided.csv", &cables);
    // 1.2 of 1.5 Gb/s from leaf to leaf, in flows of 100 KB.
    let rows: Vec<_> = (0..1500u64).map(|i| ((i % 6) as u32, (6 + i * 5 / 6 % 6) as u32, 100_000, i * 690_000_000)).collect();
    let flows = table("lopsided-flows", &rows);
    run(&format!("[topology]\nkind = 'file'\npath = '{cables}'\n{flows}{}router = {router}\n", system("newreno", "100pkt")))
}

fn sent(outcome: &Outcome, port: &str) -> f64 {
    outcome.ports.iter().find(|p| p.name == port).unwrap_or_else(|| panic!("no port {port}")).tx_bytes as f64
}

/// CONGA section 2.4: congestion-aware routing splits traffic in proportion to the capacities; hashing splits it in halves.
#[test]
fn conga_finds_the_better_path_and_ecmp_does_not() {
    let share = |router| {
        let outcome = lopsided(router);
        sent(&outcome, "leaf0->spine0") / sent(&outcome, "leaf0->spine1")
    };
    let (conga, ecmp) = (share("'conga'"), share("'ecmp'"));
    assert!((1.6..2.6).contains(&conga), "{conga}");
    // Packets lost on the slower path are retransmitted over the same path.
    assert!((0.7..1.15).contains(&ecmp), "{ecmp}");
}

/// A leaf without a cable to one of the spines, the case that CONGA section 2.4 is about: traffic to that leaf takes the other spine.
#[test]
fn conga_runs_without_one_cable() {
    let mut cables = String::from("a,b,rate,delay\n");
    for ends in ["h0,leaf0", "h1,leaf1", "h2,leaf2", "leaf0,spine1", "leaf1,spine0", "leaf1,spine1", "leaf2,spine0", "leaf2,spine1"]
    {
        cables += &format!("{ends},10Gbps,1us\n");
    }
    let cables = file("one-cable-less.csv", &cables);
    let rows: Vec<_> = (0..40u64).flat_map(|i| [(1, 0, 20_000, i * 60_000_000), (2, 0, 20_000, i * 60_000_000)]).collect();
    let flows = table("one-cable-less", &rows);
    let outcome =
        run(&format!("[topology]\nkind = 'file'\npath = '{cables}'\n{flows}[[system]]\ntransport = 'dctcp'\nrouter = 'conga'\n"));
    assert_eq!((outcome.stop_reason, outcome.counters.lost_packets), (StopReason::Finished, 0));
    // ACKs come back over the same spine: leaf0 has no other.
    assert!(outcome.ports.iter().filter(|port| port.name.contains("spine0")).all(|port| port.tx_bytes == 0));
    assert!(sent(&outcome, "spine1->leaf0") > 1.6e6);
}

/// Four leaves with four hosts each and four spines at 10 Gb/s, in which the first cable has 5 Gb/s: messages of 10 KB between hosts of
/// different leaves, 1.05 per microsecond.
fn slow_cable(seed: u64, router: &str) -> Outcome {
    let mut cables = String::from("a,b,rate,delay\n");
    (0..16).for_each(|host| cables += &format!("h{host},leaf{},10Gbps,1us\n", host / 4));
    for i in 0..16 {
        cables += &format!("leaf{},spine{},{}Gbps,1us\n", i / 4, i % 4, if i == 0 { 5 } else { 10 });
    }
    let cables = file("slow-cable.csv", &cables);
    let (mut rng, mut now) = (Rng::stream(seed, "test", &[]), 0);
    let rows: Vec<_> = (0..8000)
        .map(|_| {
            now += (rng.exponential(1e6 / 1.05)) as u64;
            let (src, hop) = (rng.below(16), rng.below(12));
            (src as u32, ((src / 4 * 4 + 4 + hop) % 16) as u32, 10_000, now)
        })
        .collect();
    let flows = table(&format!("slow-cable-{seed}"), &rows);
    let queue = "qdisc = { kind = 'red_ecn', limit = 'unlimited' }";
    run(&format!(
        "seed = {seed}\n[topology]\nkind = 'file'\npath = '{cables}'\n{flows}[[system]]\ntransport = 'dcqcn'\n{queue}\nrouter = {router}\n"
    ))
}

/// CONGA section 3.6 has one time constant. With a longer one for the slow cable alone, its path gets 0.168 of what arrives at its leaf; the
/// program of ConWeave's authors sends 0.136 +/- 0.004 over it, with 1/7 of the capacity.
#[test]
fn conga_compares_metrics_of_one_age() {
    let mut slow = [0.0; 2];
    for seed in 1..=3 {
        let [auto, given] = ["", ", dre_interval = '32us'"]
            .map(|interval| slow_cable(seed, &format!("{{ kind = 'conga', flowlet_gap = '50us'{interval} }}")));
        assert_eq!(auto.flows, given.flows, "seed {seed}");
        for spine in 0..4 {
            slow[usize::from(spine > 0)] += sent(&auto, &format!("spine{spine}->leaf0"));
        }
    }
    let share = slow[0] / (slow[0] + slow[1]);
    assert!((0.115..0.15).contains(&share), "{share}");
}

/// Go-back-N drops what arrives out of order: each NACK answers such a packet.
#[test]
fn packets_that_go_back_n_drops_count_as_out_of_order() {
    let mut cables = String::from("a,b,rate,delay\nh0,leaf0,10Gbps,1us\nh1,leaf1,10Gbps,1us\n");
    for i in 0..4 {
        cables += &format!("leaf{},spine{},{}Gbps,1us\n", i / 2, i % 2, if i == 1 { 2.5 } else { 10.0 });
    }
    let cables = file("reordering.csv", &cables);
    let flows = table("reordering", &[(1, 0, 1_000_000, 0)]);
    let counts = |recovery: &str| {
        let outcome = run(&format!(
            "[topology]\nkind = 'file'\npath = '{cables}'\n{flows}[[system]]\n\
             transport = {{ kind = 'dcqcn', nack_interval = '4us', recovery = '{recovery}' }}\n\
             router = {{ kind = 'letflow', flowlet_timeout = '500ns' }}\n"
        ));
        let flow = &outcome.flows[0];
        assert_eq!((outcome.stop_reason, flow.drops, flow.timeouts), (StopReason::Finished, 0, 0));
        [flow.fast_retransmits.into(), flow.retx_packets, flow.out_of_order, flow.reordered, flow.gaps]
    };
    let [nacks, resent, out_of_order, reordered, gaps] = counts("go_back_n");
    assert!(nacks > 50 && resent > 200, "{nacks} NACKs, {resent} retransmissions");
    assert!(out_of_order >= nacks && reordered > 0 && (1..=nacks).contains(&gaps), "{out_of_order}, {reordered}, {gaps}");
    let [.., out_of_order, reordered, gaps] = counts("irn");
    assert!(out_of_order > 300 && reordered > 300 && gaps > 0, "{out_of_order}, {reordered}, {gaps}");
}

/// LetFlow (NSDI 2017): flowlets of a slower path end sooner, so that random choices alone move traffic to the faster path.
#[test]
fn flowlets_at_random_find_the_better_path() {
    let share = |router| {
        let outcome = lopsided(router);
        sent(&outcome, "leaf0->spine0") / sent(&outcome, "leaf0->spine1")
    };
    let (auto, never) = (share("'letflow'"), share("{ kind = 'letflow', flowlet_timeout = '60s' }"));
    assert!(auto > 1.2, "{auto}");
    // Without flowlets every flow has a random path, as under ECMP.
    assert!((0.7..1.15).contains(&never), "{never}");
}

/// The flowlets of both directions count where they begin; those that change their path are moves.
#[test]
fn flowlets_and_moves_are_counted_at_uplinks() {
    for (router, kind) in [("'conga'", "conga"), ("'letflow'", "letflow")] {
        let outcome = lopsided(router);
        let [flowlets, moves] = ["flowlets", "moves"].map(|name| counted(&outcome, &format!("{kind}.{name}"), "leaf"));
        assert!(flowlets >= 2 * 1500 && (1..flowlets - 2 * 1500 + 1).contains(&moves), "{kind}: {flowlets}, {moves}");
        assert_eq!(counted(&outcome, &format!("{kind}.flowlets"), ""), flowlets, "spines and hosts have one way to each leaf");
    }
}

/// A flowlet gap longer than any difference between two paths keeps packets in order; a much shorter gap does not.
#[test]
fn flowlets_with_long_gaps_do_not_reorder() {
    let reordered = |gap: &str| {
        let text = format!(
            "[topology]\nkind = 'fat_tree'\n[workload.web]\nkind = 'poisson'\nflows = 400\nload = 0.6\nsize = 'exponential'\nmean = '100KB'\n{}router = {{ kind = 'conga', flowlet_gap = '{gap}' }}\n",
            system("newreno", "unlimited")
        );
        let outcome = run(&text);
        assert_eq!((outcome.stop_reason, outcome.counters.dropped_packets), (StopReason::Finished, 0));
        // No queue is longer than this, and a path has six queues.
        let worst = outcome.ports.iter().map(|p| p.max_queue_bytes * 8).max().unwrap_or(0) * 6;
        (outcome.flows.iter().map(|f| f.reordered).sum::<u64>(), worst)
    };
    let (long, worst_ns) = reordered("60ms");
    assert!(worst_ns < 60_000_000, "paths differ by up to {worst_ns} ns");
    assert_eq!(long, 0);
    assert!(reordered("1ns").0 > 1000);
}

/// MEMR knows the ports of flows; a hash does not. Under MEMR four long flows between two leaves over four spines never share a spine.
#[test]
fn memr_spreads_long_flows_over_all_paths() {
    let flows = table("four", &[0, 1, 2, 3].map(|i| (i, 4 + i, 1_000_000, u64::from(i) * 100_000_000)));
    let used = |router: &str, seed: u64| {
        let net = "kind = 'leaf_spine'\nleaves = 2\nspines = 4\nhosts_per_leaf = 4\nhost_rate = '1Gbps'\nspine_rate = '1Gbps'";
        let outcome = run(&format!("seed = {seed}\n[topology]\n{net}\n{flows}{}router = {router}\n", system("merp", "100pkt")));
        (0..4).filter(|i| sent(&outcome, &format!("leaf0->spine{i}")) > 1e6).count()
    };
    assert!((1..=8).all(|seed| used("'memr'", seed) == 4));
    assert!((1..=8).any(|seed| used("'ecmp'", seed) < 4));
}

/// Each packet takes its own path: one flow uses all paths, in turn or at random.
#[test]
fn sprayed_flows_use_all_paths() {
    for (mode, spread) in [("round_robin", 0.01), ("random", 0.2)] {
        let flows = table(&format!("sprayed-{mode}"), &[(0, 15, 1_000_000, 0)]);
        let router = format!("router = {{ kind = 'spray', mode = '{mode}' }}\n");
        let outcome = run(&format!("[topology]\nkind = 'fat_tree'\n{flows}{}{router}", system("newreno", "100pkt")));
        let cores: Vec<f64> = (0..4).map(|core| sent(&outcome, &format!("core{core}->agg3_{}", core / 2))).collect();
        let mean = cores.iter().sum::<f64>() / 4.0;
        assert!(cores.iter().all(|bytes| (bytes / mean - 1.0).abs() < spread), "{mode}: {cores:?}");
    }
}

/// A leaf of six hosts, three spines and a leaf of six hosts, under load.
fn six_by_three(router: &str, limit: &str, qdisc: &str) -> Outcome {
    let net = "kind = 'leaf_spine'\nleaves = 2\nspines = 3\nhosts_per_leaf = 6\nhost_rate = '1Gbps'\nspine_rate = '1Gbps'";
    let rows: Vec<_> = (0..600u64).map(|i| ((i % 6) as u32, (6 + i * 5 / 6 % 6) as u32, 100_000, i * 300_000_000)).collect();
    let flows = table(&format!("six-by-three-{qdisc}"), &rows);
    let system = system_of("transport", "newreno", limit).set("qdisc.kind", qdisc).set("qdisc.limit", limit).toml();
    run(&format!("[topology]\n{net}\n{flows}{system}router = {router}\n"))
}

/// DRILL (SIGCOMM 2017): two choices and one place of memory nearly balance the queues of a switch; random choices do not.
#[test]
fn drill_balances_queues_better_than_spraying() {
    let longest = |router: &str| {
        let outcome = six_by_three(router, "unlimited", "droptail");
        outcome
            .ports
            .iter()
            .filter(|port| port.name.starts_with("leaf0->spine"))
            .map(|port| port.max_queue_bytes)
            .collect::<Vec<_>>()
    };
    let (two, all, random) = (longest("'drill'"), longest("{ kind = 'drill', samples = 3 }"), longest("'spray'"));
    // Packets have at most 1500 bytes, and the next one goes to the shortest queue.
    assert!(all.iter().max().unwrap() - all.iter().min().unwrap() <= 1500, "{all:?}");
    let worst = |queues: &[u64]| queues.iter().copied().max().unwrap();
    assert!(worst(&two) <= 6000 && worst(&random) > 60_000, "{two:?}, {random:?}");
}

/// DRILL prefers an idle port to a busy one although no packet waits at either: a host of twice the rate fills two uplinks, without queues.
#[test]
fn drill_alternates_between_ports_without_queues() {
    let net = "kind = 'leaf_spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 1\nhost_rate = '2Gbps'\nspine_rate = '1Gbps'";
    let flows = table("alternating", &[(0, 1, 1000 * 1460, 0)]);
    let outcome = run(&format!("[topology]\n{net}\n{flows}{}router = 'drill'\n", system("newreno", "unlimited")));
    let ports: Vec<_> = outcome.ports.iter().filter(|port| port.name.starts_with("leaf0->spine")).collect();
    assert_eq!(ports.iter().map(|port| port.max_queue_bytes).collect::<Vec<_>>(), [0, 0]);
    assert!(ports.iter().all(|port| port.tx_packets > 480), "{ports:?}");
}

/// DRILL reads the queues of ports that the engine serves by itself as it reads those of a discipline that orders packets alike.
#[test]
fn drill_reads_the_same_queues_in_the_engine_and_in_disciplines() {
    let fcts = |qdisc: &str| {
        let outcome = six_by_three("'drill'", "30pkt", qdisc);
        assert!(outcome.counters.dropped_packets > 0);
        outcome.flows.iter().map(|flow| flow.fct_ps()).collect::<Vec<_>>()
    };
    assert_eq!(fcts("droptail"), fcts("strict"));
}

/// Two leaves of eight hosts and four spines with half the capacity of the hosts, on lossless Ethernet: DCQCN with go-back-N.
fn lossless(router: &str) -> String {
    let net = "kind = 'leaf_spine'\nleaves = 2\nspines = 4\nhosts_per_leaf = 8\nhost_rate = '10Gbps'\nspine_rate = '10Gbps'";
    let rows: Vec<_> = (0..160u64).map(|i| ((i % 8) as u32, (8 + i * 3 % 8) as u32, 100_000, i * 20_000_000)).collect();
    let flows = table("lossless-leaves", &rows);
    format!(
        "[topology]\n{net}\n{flows}[[system]]\ntransport = 'dcqcn'\nbuffer = {{ kind = 'pfc', total = '4MB' }}\nrouter = {router}\n"
    )
}

/// Sum of a counter over the ports whose names begin with `ports`.
fn counted(outcome: &Outcome, column: &str, ports: &str) -> u64 {
    let at = outcome.port_counters.iter().position(|known| known.column() == column).expect("a counter of this name");
    outcome.ports.iter().filter(|port| port.name.starts_with(ports)).map(|port| port.counts[at]).sum()
}

/// ConWeave (SIGCOMM 2023): flows change their paths, and packets reach their receiver in order if packets are held for
/// as long as ports may be paused. Nothing is lost, so go-back-N retransmits only where a packet arrives out of order.
#[test]
fn conweave_reroutes_without_reordering() {
    let resent = |outcome: &Outcome| outcome.flows.iter().map(|flow| flow.retx_packets).sum::<u64>();
    let outcome = both(&lossless("{ kind = 'conweave', resume_extra = '10ms' }"));
    assert_eq!((outcome.stop_reason, outcome.counters.dropped_packets, resent(&outcome)), (StopReason::Finished, 0, 0));
    let [rerouted, held, unheld] = ["rerouted", "held", "unheld"].map(|name| counted(&outcome, &format!("conweave.{name}"), ""));
    assert!(rerouted > 20 && held > 100 && unheld == 0, "{rerouted} flows rerouted, {held} packets held, {unheld} not held");
    let others = ["'conweave'", "{ kind = 'conweave', queues = 0 }", "'spray'"].map(|router| run(&lossless(router)));
    let [auto, unordered, sprayed] = others.each_ref().map(resent);
    assert!(auto < unordered && unordered < sprayed && sprayed > 1000, "{auto}, {unordered}, {sprayed}");
    assert!(others.iter().all(|outcome| outcome.counters.dropped_packets == 0));
}

/// The time in which packets are held is a part of the completion times of flows.
#[test]
fn held_packets_wait_for_their_order() {
    let point = &plan(&lossless("'conweave'")).points[0];
    let open = |flow: &FlowRow| Time(flow.start_ps.unwrap())..Time(flow.finish_ps.unwrap());
    let flows = run(&lossless("'conweave'")).flows;
    let lives: Vec<Life> = flows.iter().map(|flow| Life { flow: FlowId(flow.flow_id), open: open(flow) }).collect();
    let found = watch(&point.run, &lives, &mut |_| Continue::Yes).unwrap().breakdowns().unwrap();
    let mut waits = 0;
    for one in &found {
        assert_eq!(one.totals().iter().map(|(_, time)| time).sum::<u64>(), one.flow.fct_ps().unwrap());
        let port = format!("leaf1->h{}", one.flow.dst);
        let port = point.run.net.link_named(&port).unwrap();
        let reordering = one.totals().into_iter().filter(|(part, _)| matches!(part, TimePart::Reordering(_)));
        for (part, time) in reordering {
            assert_eq!(part, TimePart::Reordering(port));
            waits += u64::from(time > 0);
        }
    }
    assert!(waits > 5, "{waits} flows");
}

/// The path over the second spine is 100 us longer. Flows that begin there are rerouted, and their packets over the first
/// spine are held for that time: they fill the shared buffer, so the leaf pauses the first spine although the ports to the
/// hosts are idle.
#[test]
fn held_packets_count_in_the_buffer_of_the_switch() {
    let mut cables = String::from("a,b,rate,delay\n");
    for i in 0..8 {
        cables += &format!("h{i},leaf{},10Gbps,1us\n", i / 4);
    }
    for (leaf, spine, delay) in [(0, 0, "1us"), (0, 1, "1us"), (1, 0, "1us"), (1, 1, "100us")] {
        cables += &format!("leaf{leaf},spine{spine},10Gbps,{delay}\n");
    }
    let cables = file("long-path.csv", &cables);
    let flows = table("long-path", &[0, 1, 2, 3].map(|i| (i, 4 + i, 1_000_000, u64::from(i))));
    let outcome = |buffer: &str, queues: &str| {
        both(&format!(
            "[topology]\nkind = 'file'\npath = '{cables}'\n{flows}[[system]]\n\
             transport = {{ kind = 'dctcp', init_window = 1000, max_cwnd = 1000, handshake = false }}\n\
             qdisc = {{ kind = 'droptail', limit = 'unlimited' }}\nbuffer = {{ {buffer} }}\n\
             router = {{ kind = 'conweave', theta_reply = '30us'{queues} }}\n"
        ))
    };
    let lossless = |queues: &str| {
        let outcome = outcome("kind = 'pfc', total = '4MB', xoff = '30KB'", queues);
        assert_eq!((outcome.stop_reason, outcome.counters.dropped_packets), (StopReason::Finished, 0));
        let pauses = ["spine0->leaf1", "spine1->leaf1"].map(|port| counted(&outcome, "pfc.pauses", port));
        let reordered: u64 = outcome.flows.iter().map(|flow| flow.reordered).sum();
        (pauses, counted(&outcome, "conweave.held", ""), reordered)
    };
    let (held, unheld) = (lossless(""), lossless(", queues = 0"));
    assert!(held.0[0] > 0 && held.0[1] == 0 && held.1 > 20 && held.2 == 0, "{held:?}");
    assert!(unheld.0 == [0, 0] && unheld.1 == 0 && unheld.2 > 20, "{unheld:?}");
    // In a buffer without pauses, packets that find no room are dropped instead of held.
    let drops = |queues: &str| {
        let outcome = outcome("kind = 'complete', total = '60KB'", queues);
        assert_eq!(outcome.stop_reason, StopReason::Finished);
        outcome.ports.iter().filter(|port| port.name.starts_with("leaf1->")).map(|port| port.drops).sum::<u64>()
    };
    let [held, unheld] = ["", ", queues = 0"].map(drops);
    assert!(held > 100 && unheld < 50, "{held}, {unheld}");
}

/// MERP section 4.4: flow tables of 4 entries and 50 flows in a fat tree, with every router that MERP supports.
#[test]
fn flows_that_overflow_tables_finish() {
    let rows: Vec<_> = (0..50).map(|i| (i % 8, 8 + i * 3 % 8, 1000 + 4999 * u64::from(i), u64::from(i) * 20_000_000)).collect();
    for router in ["'ecmp'", "'memr'", "'conga'"] {
        let flows = table(&format!("overflow-{}", router.trim_matches('\'')), &rows);
        let merp = system_of("transport", "merp", "100pkt").set("agent.table_limit", "4").toml();
        let outcome = run(&format!("end = '20s'\n[topology]\nkind = 'fat_tree'\n{flows}{merp}router = {router}\n"));
        assert_eq!(outcome.stop_reason, StopReason::Finished, "{router}");
    }
}

/// The time series of packets that switches make and consume are complete, and do not change the run.
#[test]
fn packets_of_switches_are_sampled() {
    let flows = table("probed", &[(0, 15, 300_000, 0), (3, 9, 300_000, 0)]);
    let text = |sample: &str| {
        let system = system("newreno", "100pkt");
        format!("[topology]\nkind = 'fat_tree'\n{flows}{system}router = 'fastest_path'\n{sample}")
    };
    let sampled = run(&text("[sample]\ninterval = '50us'\nports = false\nswitches = true\n"));
    assert_eq!(sampled.counters.digest, run(&text("")).counters.digest);
    let of = |metric: &str, node: u32| -> f64 {
        sampled.samples.iter().filter(|row| row.metric == metric && row.entity == node).map(|row| row.value).sum()
    };
    let leaf = |name: &str| sampled.ports.iter().find(|port| port.name.starts_with(name)).map(|port| port.node).unwrap();
    // A probe over each of four paths, and an answer to each; both flows live for some periods of 100 us.
    let (from, to) = (leaf("edge0_0->"), leaf("edge3_1->"));
    assert!(of("switch.made_packets", from) >= 16.0 && of("switch.made_packets", to) >= 16.0);
    let (made, taken) = (of("switch.made_packets", to), of("switch.taken_packets", from));
    assert!(made - taken <= 4.0 && taken <= made, "{made} answers, {taken} arrived");
    assert_eq!(of("switch.made_packets", leaf("core0->")), 0.0);
    assert!(sampled.samples.iter().all(|row| row.value > 0.0));
}

/// A flow keeps the path of its start, so no packet overtakes another, whatever the probes report.
#[test]
fn flows_on_their_fastest_paths_stay_in_order() {
    let net = "[topology]\nkind = 'fat_tree'\n[workload.web]\nkind = 'poisson'\nflows = 400\nload = 0.6\nsize = 'exponential'\nmean = '100KB'";
    let outcome = run(&format!("{net}\n{}router = 'fastest_path'\n", system("newreno", "unlimited")));
    assert_eq!((outcome.stop_reason, outcome.counters.dropped_packets), (StopReason::Finished, 0));
    assert!(outcome.flows.iter().all(|flow| flow.reordered == 0));
}

/// Probes find the split that the capacities ask for, flow by flow; hashing splits traffic in halves.
#[test]
fn probes_find_the_faster_path() {
    let outcome = lopsided("'fastest_path'");
    let share = sent(&outcome, "leaf0->spine0") / sent(&outcome, "leaf0->spine1");
    assert!(share > 1.4, "{share}");
}

/// The router makes probes and answers; ECMP makes no packets.
#[test]
fn packets_that_switches_make_are_counted() {
    let flows = table("made", &[0, 1, 2, 3].map(|i| (i, 4 + i, 300_000, 0)));
    let net =
        "[topology]\nkind = 'leaf_spine'\nleaves = 2\nspines = 4\nhosts_per_leaf = 4\nhost_rate = '1Gbps'\nspine_rate = '1Gbps'";
    let of = |router: &str| {
        let counters = run(&format!("{net}\n{flows}{}router = '{router}'\n", system("newreno", "100pkt"))).counters;
        (counters.made_packets, counters.made_bytes)
    };
    let (Some(packets), Some(bytes)) = of("fastest_path") else { panic!("the router has packets of its own") };
    assert!(packets > 0 && bytes >= 40 * packets, "{packets} packets of {bytes} bytes");
    assert_eq!(of("ecmp"), (None, None));
}

//! Hosts with several NICs: the NIC that flows and packets leave through, their rates, and failures of a NIC's link.

use crate::common::{choices, file, fits, kinds, plan, run, run_point, system, system_of, systems_with, table, with};
use fabric::paths::five_tuple;
use fabric::router::Env;
use fabric::router::ecmp::{Ecmp, Params as EcmpParams};
use fabric::routes::Routes;
use fabric::routing;
use scenario::Outline;
use sim::outcome::StopReason;
use sim::why::{Life, watch};
use sim::{Continue, Outcome};

/// Full packets of 1460 bytes of payload, which take 12 us on a NIC.
const MSS: u64 = 1460;
const PACKET_PS: u64 = 12_000_000;

/// Servers with NICs at 1 Gb/s to as many rail switches: planes that do not meet.
fn planes(servers: u32, nics: u32) -> String {
    format!(
        "[topology]\nkind = 'rail'\npods = 1\nservers = {servers}\nnics = {nics}\nspines = 0\nnic_rate = '1Gbps'\ndelay = '10us'\n"
    )
}

/// Two pods of two servers with two NICs, whose rails meet at two spines.
const PODS: &str = "[topology]\nkind = 'rail'\npods = 2\nservers = 2\nnics = 2\nspines = 2\nspine_cables = 1\nnic_rate = '1Gbps'\ndelay = '10us'\n";

/// Two hosts with two cables each to one switch, from a file.
fn bonded() -> String {
    let cables = "a,b,rate,delay\nh0,s,1Gbps,10us\nh0,s,1Gbps,10us\nh1,s,1Gbps,10us\nh1,s,1Gbps,10us\n";
    let cables = file("nics-cables.csv", cables);
    let nodes = file("nics-nodes.csv", "name,kind\nh0,host\nh1,host\ns,switch\n");
    format!("[topology]\nkind = 'file'\npath = '{cables}'\nnodes = '{nodes}'\n")
}

/// The packets that left over each link of this name.
fn sent(outcome: &Outcome, link: &str) -> Vec<u64> {
    outcome.ports.iter().filter(|port| port.name == link).map(|port| port.tx_packets).collect()
}

fn fcts(outcome: &Outcome) -> Vec<u64> {
    outcome.flows.iter().map(|flow| flow.fct_ps().expect("finished")).collect()
}

/// From the start of a flow of full packets that never waits to the arrival of the last one over two links.
const fn back_to_back(packets: u64) -> u64 {
    (packets - 1) * PACKET_PS + 2 * (PACKET_PS + 10_000_000)
}

/// Two flows of 100 packets from one host to another, whose first window is as long as they are.
#[test]
fn flows_on_different_nics_have_a_link_each() {
    let flows = table("nics-two", &[(0, 1, 100 * MSS, 0), (0, 1, 100 * MSS, 0)]);
    let pfabric = system_of("transport", "pfabric", "1000pkt")
        .set("transport.init_cwnd", "200")
        .set("transport.max_cwnd", "200")
        .set("transport.rto", "50ms")
        .toml();
    for (network, switches) in [(planes(2, 2), ["rail0_0", "rail0_1"]), (bonded(), ["s", "s"])] {
        let mut apart = 0;
        for seed in 1..=8 {
            let outcome = run(&format!("seed = {seed}\n{network}{flows}{pfabric}"));
            // A flow has a single path, whatever the number of NICs.
            assert!(
                outcome.flows.iter().all(|flow| flow.ideal_fct_ps == back_to_back(100) && flow.bottleneck_bps == 1_000_000_000)
            );
            // The packets on each cable of the sender and of the receiver.
            let on = |link: [String; 2]| {
                if link[0] == link[1] {
                    sent(&outcome, &link[0])
                } else {
                    link.iter().flat_map(|link| sent(&outcome, link)).collect()
                }
            };
            let cables = [on(switches.map(|switch| format!("h0->{switch}"))), on(switches.map(|switch| format!("{switch}->h1")))];
            if cables == [[100, 100], [100, 100]] {
                apart += 1;
                assert_eq!(fcts(&outcome), [back_to_back(100); 2]);
            } else {
                assert!(cables.iter().all(|packets| packets.iter().sum::<u64>() == 200));
                assert_eq!(fcts(&outcome).into_iter().max(), Some(back_to_back(200)));
            }
        }
        assert!((1..8).contains(&apart), "{apart} of 8 seeds use both NICs");
    }
}

/// The NIC of a flow is the next hop that the hash chooses at the host.
#[test]
fn ecmp_chooses_the_nic_by_the_hash() {
    let rows: Vec<_> = (0..200).map(|flow| (0, 1, 1000, flow * 1_000_000_000)).collect();
    for network in [planes(2, 4), PODS.to_owned(), bonded()] {
        let plan = plan(&format!("end = '1s'\n{network}{}{}", table("nics-hash", &rows), system("pfabric", "100pkt")));
        let point = &plan.points[0];
        let (net, routes) = (&*point.run.net, Routes::new(&point.run.net, &[]));
        let mut ecmp = Ecmp::new(
            &<EcmpParams as base::params::Params>::defaults(),
            &Env { net, routes: &routes, seed: 1, max_rtt: base::Dur::ZERO, given: base::Given::none() },
        );
        let mut expected = vec![0; net.links().len()];
        for flow in point.run.flows().unwrap() {
            let path = routing::plan(net, &routes, &mut ecmp, &five_tuple(net, &flow, true), flow.src, flow.dst).unwrap();
            expected[path.links[0].index()] += 1;
        }
        let outcome = run_point(point);
        for nic in net.nics(base::HostId(0)) {
            assert_eq!(outcome.ports[nic.index()].tx_packets, expected[nic.index()], "{}", net.link_name(nic));
            assert!(expected[nic.index()] > 0);
        }
    }
}

/// A flow that is sprayed over two NICs is nearly twice as fast as its ideal, which is that of one path, and both NICs carry the same.
#[test]
fn spraying_uses_all_nics() {
    let flows = table("nics-spray", &[(0, 1, 1000 * MSS, 0)]);
    for network in [planes(2, 2), PODS.to_owned(), bonded()] {
        // NDP names the path of each packet.
        for (transport, router) in [("ndp", "ecmp"), ("pfabric", "spray mode=round_robin")] {
            let system = with(&system_of("transport", transport, "1000pkt"), "router", router, "1000pkt");
            let outcome = run(&format!("{network}{flows}{}", system.toml()));
            let flow = &outcome.flows[0];
            let gain = flow.ideal_fct_ps as f64 / flow.fct_ps().expect("finished") as f64;
            assert!((1.7..=2.0).contains(&gain), "{transport} takes 1/{gain} of the ideal");
            let nics: Vec<u64> =
                outcome.ports.iter().filter(|port| port.name.starts_with("h0->")).map(|port| port.tx_packets).collect();
            assert!(nics.len() == 2 && nics[0].abs_diff(nics[1]) <= 2 && nics[0] >= 499, "{transport}: {nics:?}");
        }
    }
}

/// Two pods of two servers with two NICs; each rail has spines of its own, so the two planes do not meet.
const PLANES: &str = "[topology]\nkind = 'rail'\npods = 2\nservers = 2\nnics = 2\nplanes = 'per_rail'\nspines = 2\nspine_cables = 1\nnic_rate = '1Gbps'\ndelay = '10us'\n";

/// The path of a source port begins with a NIC. The subflows of MPTCP, a port each, use both planes; if a cable of one
/// plane fails at the receiver, the hash of all ports is made again over the other plane.
#[test]
fn paths_of_ports_use_all_planes() {
    let flows = table("nics-ports", &[(0, 2, 2000 * MSS, 0)]);
    let system = system_of("transport", "mptcp", "100pkt").set("transport.paths", "port").set("transport.subflows", "16").toml();
    let event = "[[event]]\nlink = 'rail1_0--h2'\nat = '3ms'\n[failure]\ndetect = '500us'\nconverge = '500us'\n";
    let packets = |outcome: &Outcome, links: [&str; 2]| links.map(|link| sent(outcome, link)[0]);
    for seed in 1..=3 {
        let [whole, cut] = ["", event].map(|event| run(&format!("seed = {seed}\nend = '10s'\n{PLANES}{flows}{system}{event}")));
        let nics = packets(&whole, ["h0->rail0_0", "h0->rail0_1"]);
        assert!(nics.iter().all(|sent| *sent > 500), "seed {seed}: {nics:?}");
        assert_eq!(packets(&whole, ["rail1_0->h2", "rail1_1->h2"]), nics, "packets stay in their plane");
        // ACKs leave through both NICs of the receiver.
        let acks = packets(&whole, ["h2->rail1_0", "h2->rail1_1"]);
        assert!(acks.iter().all(|sent| *sent > 100), "seed {seed}: {acks:?}");
        let flow = &whole.flows[0];
        let gain = flow.ideal_fct_ps as f64 / flow.fct_ps().expect("finished") as f64;
        assert!((1.3..=2.0).contains(&gain), "seed {seed}: 1/{gain} of the ideal of one NIC");
        assert_eq!(cut.stop_reason, StopReason::Finished, "seed {seed}");
        let after = packets(&cut, ["h0->rail0_0", "h0->rail0_1"]);
        assert!(after[0] < nics[0] / 2 && after[1] > nics[1], "seed {seed}: {after:?}, {nics:?}");
    }
}

/// A policy that names the path of each packet spreads packets over the NICs.
#[test]
fn a_policy_chooses_the_nic_of_each_packet() {
    let flows = table("nics-policy", &[(0, 1, 1000 * MSS, 0)]);
    for network in [planes(2, 4), PODS.to_owned(), bonded()] {
        let system = with(&system_of("transport", "pfabric", "1000pkt"), "policy", "path_spray", "1000pkt");
        let outcome = run(&format!("{network}{flows}{}", system.toml()));
        let nics: Vec<u64> =
            outcome.ports.iter().filter(|port| port.name.starts_with("h0->")).map(|port| port.tx_packets).collect();
        let even = 1000 / nics.len() as u64;
        assert!(nics.len() >= 2 && nics.iter().all(|sent| sent.abs_diff(even) < even / 5), "{nics:?}");
    }
}

/// Flows that collide at a NIC are moved to the other by a controller, which names their paths.
#[test]
fn a_controller_moves_flows_to_another_nic() {
    let flows = table("nics-moved", &[(0, 1, 3_000_000, 0), (0, 1, 3_000_000, 0)]);
    let last = |controller: &str, seed: u32| {
        let outcome = run(&format!("seed = {seed}\n{}{flows}{}{controller}", planes(2, 2), system("newreno", "100pkt")));
        fcts(&outcome).into_iter().max().unwrap() as f64 / 1e9
    };
    // Unloaded a flow takes 24.7 ms.
    let collide: Vec<u32> = (1..=8).filter(|seed| last("", *seed) > 45.0).collect();
    assert!(!collide.is_empty() && collide.len() < 8, "{collide:?}");
    for seed in collide {
        for controller in ["kind = 'rebalance'", "kind = 'hedera', placement = 'gff'"] {
            let moved = last(&format!("controller = {{ {controller}, period = '2ms', latency = '100us' }}\n"), seed);
            assert!(moved < 35.0, "{controller}, seed {seed}: {moved} ms");
        }
    }
}

/// The link of a NIC fails permanently. The host detects it, and all flows go on over the other NIC, in both
/// directions.
#[test]
fn flows_go_on_over_the_other_nic() {
    let rows: Vec<_> = (0..16).map(|flow| (flow % 2, 1 - flow % 2, 100 * MSS, 0)).collect();
    let event = "[[event]]\nlink = 'h0--rail0_0'\nat = '3ms'\n[failure]\ndetect = '500us'\nconverge = '500us'\n";
    for transport in kinds("transport") {
        for router in ["ecmp", "spray"] {
            let system = with(&system_of("transport", transport, "100pkt"), "router", router, "100pkt");
            let text = |event: &str| format!("end = '10s'\n{}{}{}{event}", planes(2, 2), table("nics-fail", &rows), system.toml());
            if !fits(&text(""), &system) {
                continue;
            }
            let [whole, cut] = ["", event].map(|event| run(&text(event)));
            assert_eq!(cut.stop_reason, StopReason::Finished, "{transport}, {router}");
            let dead = ["h0->rail0_0", "rail0_0->h0"].map(|link| sent(&cut, link)[0]);
            let before = ["h0->rail0_0", "rail0_0->h0"].map(|link| sent(&whole, link)[0]);
            assert!(dead.iter().zip(before).all(|(dead, before)| *dead < before), "{transport}, {router}: {dead:?} of {before:?}");
            assert!(fcts(&cut).into_iter().max() > fcts(&whole).into_iter().max(), "{transport}, {router}");
        }
    }
}

/// In ideal schedules and in the flow engine a flow has one path, except for spraying in the flow engine.
#[test]
fn fluids_know_all_nics() {
    let flows = table("nics-fluid", &[(0, 1, 1000 * MSS, 0), (1, 0, 1000 * MSS, 0)]);
    let rate = |outcome: &Outcome| {
        outcome.flows.iter().map(|flow| flow.ideal_fct_ps as f64 / flow.fct_ps().unwrap() as f64).collect::<Vec<_>>()
    };
    for point in
        plan(&format!("ideal = ['srpt', 'ps', 'big_switch']\n{}{flows}{}", planes(2, 2), system("newreno", "100pkt"))).points
    {
        if point.run.ideal.is_some() {
            assert!(rate(&run_point(&point)).iter().all(|rate| (rate - 1.0).abs() < 1e-9), "{}", point.id);
        }
    }
    for (router, expected) in [("ecmp", 1.0), ("spray", 2.0)] {
        let system = with(&system_of("transport", "newreno", "100pkt"), "router", router, "100pkt");
        for network in [planes(2, 2), bonded(), PODS.to_owned()] {
            let outcome = run(&format!("engine = 'flow'\n{network}{flows}{}", system.toml()));
            assert!(rate(&outcome).iter().all(|rate| (rate - expected).abs() < 0.02), "{router}: {:?}", rate(&outcome));
        }
    }
}

/// The load is that of all NICs: two of 1 Gb/s at each of four servers.
#[test]
fn the_load_counts_all_nics() {
    let text = |load: &str| {
        format!(
            "end = '1s'\n{}[workload.web]\nkind = 'poisson'\nflows = 10\nload = {load}\nsize = 'fixed'\nmean = '100KB'\n{}",
            planes(4, 2),
            system("newreno", "100pkt")
        )
    };
    let nominal = run(&text("0.5")).counters.nominal_load;
    assert!((nominal.unwrap() - 0.5).abs() < 1e-9, "{nominal:?}");
    let span = |load: &str| plan(&text(load)).points[0].run.flows().unwrap().last().unwrap().start.0 as f64;
    // Ten flows of 105.5 kB on the wire, whose mean distance is that of a rate of 4 Gb/s.
    assert!((span("0.25") / span("0.5") - 2.0).abs() < 1e-6);
}

/// Every part that supports only hosts with one NIC refuses others with a message.
#[test]
fn parts_for_hosts_with_one_nic_refuse_others() {
    for (router, why) in [
        ("conga", "the leaf of the source"),
        ("dard", "a host queries"),
        ("difs", "the ports of a path"),
        ("fastest_path", "the leaf of the source"),
    ] {
        let system = system_of("router", router, "100pkt");
        let text = format!("{PODS}[workload.all]\nkind = 'long'\n{}", system.set("label", "x").toml());
        let error = scenario::load(&format!("end = '1ms'\n{text}"), "t.toml", ".".as_ref(), &scenario::Options::default())
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(&format!("host `h0` has 2 NICs, but `{router}` is defined only for hosts with one NIC: {why}")),
            "{error}"
        );
    }
}

/// Many ties, with every possible part of a system, NICs that hold packets back, and neighbours that pause each
/// other. Every run ends with the audit.
#[test]
fn every_part_works_at_hosts_with_several_nics() {
    let rows: Vec<_> = (0..4).flat_map(|src| (1..4).map(move |hop| (src, (src + hop) % 4, 14_600 * u64::from(hop), 0))).collect();
    let rest = format!("end = '10s'\n{PODS}{}", table("nics-parts", &rows));
    for place in ["router", "qdisc", "policy", "agent", "controller", "buffer"] {
        for system in systems_with(place, "20pkt", &rest) {
            let (first, second) = (run(&format!("{rest}{}", system.toml())), run(&format!("{rest}{}", system.toml())));
            assert_eq!(first, second, "{}", crate::common::label(&system));
            assert_eq!(first.stop_reason, StopReason::Finished, "{}", crate::common::label(&system));
        }
    }
    let sprayed = with(&system_of("transport", "newreno", "20pkt"), "router", "spray", "20pkt");
    let shaped = choices("nic.qdisc").into_iter().map(|qdisc| with(&sprayed, "nic.qdisc", qdisc, "20pkt"));
    let paused = ["0B", "unlimited"].map(|low| sprayed.clone().set("nic.low_water", low));
    for system in shaped.chain(paused).filter(|system| fits(&rest, system)) {
        assert_eq!(run(&format!("{rest}{}", system.toml())).stop_reason, StopReason::Finished, "{}", system.toml());
    }
}

/// The time of flows that leave by several NICs is explained to the last picosecond.
#[test]
fn the_parts_of_a_flow_are_its_completion_time() {
    let rows: Vec<_> = (0..4).flat_map(|src| (1..4).map(move |hop| (src, (src + hop) % 4, 146_000, 0))).collect();
    for router in ["ecmp", "spray"] {
        let system: Outline = with(&system_of("transport", "newreno", "10pkt"), "router", router, "10pkt");
        let plan = plan(&format!("{PODS}{}{}", table("nics-why", &rows), system.toml()));
        let point = &plan.points[0];
        let open = |flow: &sim::outcome::FlowRow| base::Time(flow.start_ps.unwrap())..base::Time(flow.finish_ps.unwrap());
        let lives: Vec<Life> =
            run_point(point).flows.iter().map(|flow| Life { flow: base::FlowId(flow.flow_id), open: open(flow) }).collect();
        let found = watch(&point.run, &lives, &mut |_| Continue::Yes).unwrap().breakdowns().unwrap();
        assert_eq!(found.len(), rows.len());
        for breakdown in &found {
            assert_eq!(breakdown.totals().into_iter().map(|(_, ps)| ps).sum::<u64>(), breakdown.flow.fct_ps().unwrap());
        }
    }
}

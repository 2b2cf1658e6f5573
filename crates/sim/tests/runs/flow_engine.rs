//! The flow engine in real networks, against closed forms and against the packet engine.

use crate::common::{plan, run, run_point, system, table, table_of};
use base::Rng;
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
    // 4 MB over the link of host 0. The last byte waits for half of flow 2.
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

/// The bytes on all links are the flows' bytes, each counted once per hop.
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
    // One of these core switches is on the path. The flow has no rate until the switch before it knows.
    let times: Vec<f64> = (0..4).map(|core| took(&fluid(&event(&format!("core{core}"), "")), 0) - alone).collect();
    let hit: Vec<f64> = times.into_iter().filter(|late| *late > 0.0).collect();
    assert!(hit.len() == 1 && (hit[0] - 0.5).abs() < 0.001 || hit.len() == 1 && (hit[0] - 0.75).abs() < 0.001, "{hit:?}");
    // Without another way the flow has no rate until all switches know that the link is back.
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
    // Samples settle flows at other times, which rounds differently, by less than a nanosecond.
    for (a, b) in ends(&one).into_iter().zip(ends(&watched)) {
        assert!(a.abs_diff(b) < 1000, "{a} {b}");
    }
}

/// A step delays starts and moves by at most its own length.
#[test]
fn changes_within_a_step_are_handled_together() {
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
fn both_engines_can_be_compared_in_a_sweep() {
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

/// Routers that are asked at switches find the paths of flows by sample packets, and the packets that switches make are real.
#[test]
fn routers_that_are_asked_at_switches_give_paths_to_flows() {
    let lone = fluid(&format!(
        "{TREE}{}{}router = 'fastest_path'\n",
        table("asked", &[(0, 4, 3_000_000, 0)]),
        system("newreno", "100pkt")
    ));
    let slowdown = lone.flows[0].slowdown().unwrap();
    assert!((1.0..1.000001).contains(&slowdown), "{slowdown}");
    assert!(lone.counters.sent_packets > 30 && lone.counters.hops > 100, "{:?}", lone.counters);
    let packets: u64 = lone.ports.iter().map(|port| port.tx_packets).sum();
    assert_eq!(packets, lone.counters.hops);
    let all = |router: &str, rest: &str| {
        fluid(&format!(
            "{TREE}[workload.all]\nkind = 'poisson'\nload = 0.5\nflows = 300\nsize = 'cdf'\ncdf = 'websearch'\n{}router = '{router}'\n{rest}",
            system("newreno", "100pkt")
        ))
    };
    let (one, other) = (all("fastest_path", ""), all("fastest_path", ""));
    assert_eq!(one, other);
    assert!(one.flows.iter().all(|flow| flow.slowdown().unwrap() >= 1.0));
    // Flows that a failure hits get other paths, and the other flows go on.
    let failed = all("fastest_path", "[[event]]\nnode = 'core1'\nat = '5ms'\nuntil = '40ms'\n");
    assert!(failed.flows.iter().all(|flow| flow.finish_ps.is_some()));
    assert!(failed.ports.iter().any(|port| port.down_ps == 35_000_000_000));
}

/// Under DiFS a traffic pattern that ECMP cannot carry gets the full capacity of the fabric, by requests from
/// switch to switch, also after a failure.
#[test]
fn difs_moves_fluids_as_it_moves_packets() {
    let stride: Vec<_> = (0..16).map(|src| (src, (src + 4) % 16, 1_000_000_000, 0)).collect();
    let with = |router: &str, more: &str| {
        let flows = table("fluid_stride", &stride);
        fluid(&format!(
            "end = '400ms'\n[measure]\nfrom = '200ms'\nuntil = '399ms'\n{TREE}{flows}[[system]]\ntransport = 'newreno'\nrouter = '{router}'\n{more}"
        ))
    };
    let gbps = |outcome: &Outcome| {
        let window = outcome.counters.window.unwrap();
        window.delivered_bytes as f64 * 8e3 / (window.until_ps - window.from_ps) as f64
    };
    let whole = 16.0 * 1460.0 / 1500.0;
    let (difs, ecmp) = (with("difs", ""), with("ecmp", ""));
    assert!((gbps(&difs) / whole - 1.0).abs() < 1e-6 && gbps(&ecmp) < 0.8 * whole, "{} and {}", gbps(&difs), gbps(&ecmp));
    assert_eq!(difs, with("difs", ""));
    let failed = with(
        "difs",
        "[[event]]\nlink = 'edge0_0--agg0_0'\nat = '50ms'\n[sample]\ninterval = '10ms'\nports = false\nflows = true\nswitches = true\n",
    );
    assert!(failed.samples.iter().any(|row| row.metric == "switch.made_packets"));
    assert!(failed.counters.sent_packets > 0 && failed.counters.hops >= failed.counters.sent_packets, "{:?}", failed.counters);
    // Two hosts share the remaining cable of their switch, in each direction: two sixteenths are gone. DiFS counts
    // the halved flows as whole flows, so a halved flow may share an uplink with a whole flow and halve it, once in
    // each direction.
    let share = gbps(&failed) / whole;
    assert!((13.0 / 16.0 - 0.01..14.0 / 16.0 + 0.01).contains(&share), "{share}");
}

/// Permanent flows on random small networks with deep buffers: the bytes that all receivers take in, compared with
/// the packet engine.
#[test]
fn totals_are_those_of_packets() {
    let mut errors = Vec::new();
    for case in 0..50 {
        let rng = &mut Rng::stream(7, "flow_engine/cases", &[case]);
        let mut draw = |n: u64| rng.below(n);
        let topology = match draw(3) {
            0 => "kind = 'fat_tree'\nk = 4\nrate = '1Gbps'\n",
            1 => "kind = 'single_tree'\nracks = 4\nhosts_per_rack = 4\nrate = '1Gbps'\n",
            _ => "kind = 'leaf_spine'\nleaves = 4\nspines = 2\nhosts_per_leaf = 4\nhost_rate = '1Gbps'\nspine_rate = '1Gbps'\n",
        };
        let delay = ["1us", "10us"][draw(2) as usize];
        let flow = |draw: &mut dyn FnMut(u64) -> u64| {
            let src = draw(16);
            (src as u32, ((src + 1 + draw(15)) % 16) as u32, 1_000_000_000, draw(1_000_000_000))
        };
        let flows: Vec<_> = (0..4 + draw(12)).map(|_| flow(&mut draw)).collect();
        let system = match draw(2) {
            0 => "transport = 'newreno'\nqdisc = { kind = 'droptail', limit = '200pkt' }\n",
            _ => "transport = 'dctcp'\nqdisc = { kind = 'ecn_threshold', limit = '200pkt', mark = '30pkt' }\n",
        };
        let rest = format!(
            "end = '120ms'\n[measure]\nfrom = '40ms'\nuntil = '119ms'\n[sample]\ninterval = '119ms'\nports = false\nflows = true\n\
             [topology]\n{topology}delay = '{delay}'\n{}[[system]]\n{system}",
            table(&format!("against_{case}"), &flows)
        );
        let [packets, fluids] = ["packet", "flow"].map(|engine| run(&format!("seed = {case}\nengine = '{engine}'\n{rest}")));
        let total = |outcome: &Outcome| outcome.counters.window.unwrap().delivered_bytes as f64;
        let error = total(&fluids) / total(&packets) - 1.0;
        let each: Vec<String> = fluids
            .samples
            .iter()
            .map(|b| {
                let a = packets.samples.iter().find(|a| (a.entity, a.metric) == (b.entity, b.metric)).unwrap();
                format!("{:+.0}", 100.0 * (b.value / a.value - 1.0))
            })
            .collect();
        println!("case {case}: {} flows, total {:+.2} %, each {} %", flows.len(), 100.0 * error, each.join(" "));
        errors.push(error);
    }
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    let worst = errors.iter().map(|error| error.abs()).fold(0.0, f64::max);
    println!("mean {:+.2} %, worst {:.2} %", 100.0 * mean, 100.0 * worst);
    assert!(mean.abs() < 0.05 && worst < 0.15, "mean {mean}, worst {worst}");
}

/// Large networks, to be timed from outside: `cargo test -p flowloom-sim --test runs -- --ignored --nocapture large`.
#[test]
#[ignore = "takes minutes: `make slow` runs it"]
fn large_networks_are_within_reach() {
    let took = |name: &str, text: &str| {
        let outcome = run(text);
        let (c, done) = (&outcome.counters, outcome.flows.iter().filter(|flow| flow.finish_ps.is_some()).count());
        println!("{name}: {} events, {} hops, {done} flows, {} ps", c.events, c.hops, c.end_ps);
    };
    let hosts = 8192;
    let pairs: Vec<_> = {
        let rng = &mut Rng::stream(1, "flow_engine/large", &[]);
        (0..hosts)
            .map(|src| {
                (src, (src + 1 + rng.below(u64::from(hosts) - 1) as u32) % hosts, 1_000_000_000_000, rng.below(1_000_000_000))
            })
            .collect()
    };
    let net = "[topology]\nkind = 'fat_tree'\nk = 32\nrate = '1Gbps'\ndelay = '10us'\n";
    let system = "[[system]]\ntransport = 'newreno'\n";
    let one_each = table("large", &pairs);
    for more in ["", "router = 'difs'"] {
        took(more, &format!("engine = 'flow'\nend = '10s'\n{net}{one_each}{system}{more}\n"));
    }
    // Each of 1024 hosts fetches from 977 others in a random order, one at a time.
    let rng = &mut Rng::stream(1, "flow_engine/shuffle", &[]);
    let mut rows = String::from("src,dst,size_bytes,start,after\n");
    for host in 0..1024u64 {
        let step = 1 + 2 * rng.below(512);
        for n in 0..977 {
            let (from, row) = ((host + step * (1 + n)) % 1024, 977 * host + n);
            let from = if from == host { (host + 1) % 1024 } else { from };
            rows += &if n == 0 { format!("{from},{host},1000000,0s,\n") } else { format!("{from},{host},1000000,,{row}\n") };
        }
    }
    let net = "[topology]\nkind = 'fat_tree'\nk = 16\nrate = '1Gbps'\ndelay = '10us'\n";
    took("shuffle", &format!("engine = 'flow'\n{net}{}{system}", table_of("shuffle", &rows)));
}

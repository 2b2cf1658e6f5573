//! Neighbours that pause each other: closed forms, lossless fabrics, threads, and the oracle.

use crate::both::both;
use crate::common::{file, plan, run_in_parts, table};
use base::{FlowId, Time};
use sim::outcome::{PortRow, StopReason};
use sim::why::{Life, TimePart, watch};
use sim::{Continue, Outcome};

/// Each flow, of at most 1000 packets, is sent at line rate: only the network can slow it down.
const BLAST: &str = "transport = { kind = 'dctcp', init_window = 1000, max_cwnd = 1000, handshake = false }\n";
const FIFO: &str = "qdisc = { kind = 'droptail', limit = 'unlimited' }\n";

/// Bytes on the wire of a flow of a megabyte, and its time at 10 Gb/s.
const WIRE: u64 = 1_000_000 + 685 * 40;
const ALONE_PS: u64 = WIRE * 800;

fn scenario(name: &str, topology: &str, rows: &[(u32, u32, u64, u64)], system: &str) -> String {
    format!(
        "end = '1s'\n[topology]\nrate = '10Gbps'\ndelay = '1us'\n{topology}\n{}[[system]]\nlabel = 'x'\n{BLAST}{system}\n",
        table(name, rows)
    )
}

fn port<'a>(outcome: &'a Outcome, name: &str) -> &'a PortRow {
    outcome.ports.iter().find(|port| port.name == name).expect("a port of this name")
}

fn pauses(outcome: &Outcome, name: &str) -> u64 {
    port(outcome, name).counts.first().copied().unwrap_or(0)
}

/// `n` senders of a megabyte each to `h0`.
fn incast(n: u32, system: &str) -> Outcome {
    let rows: Vec<_> = (0..n).map(|i| (1 + i, 0, 1_000_000, 0)).collect();
    both(&scenario(&format!("pfc-incast-{n}"), &format!("kind = 'star'\nhosts = {}", n + 1), &rows, system))
}

/// The receiver's link is never idle. The packets from each neighbour take its threshold and at most its headroom.
/// A sender is paused whenever it does not send.
#[test]
fn an_incast_fills_the_link_and_no_more_than_thresholds_and_headroom() {
    for n in [2, 4, 16] {
        let lossless = incast(n, &format!("{FIFO}buffer = {{ kind = 'pfc', total = '4MB', xoff = '30KB' }}"));
        let (last, n) = (lossless.flows.iter().filter_map(|flow| flow.finish_ps).max().unwrap(), u64::from(n));
        assert_eq!(lossless.counters.dropped_packets, 0, "{n} senders");
        // The first packet takes two delays of links and two transmissions; the others follow back to back.
        assert_eq!(last, n * ALONE_PS + 1_200_000 + 2_000_000, "{n} senders");
        let most = port(&lossless, "s0->h0").max_queue_bytes;
        assert!((n * 28_500..=n * (30_000 + 7065)).contains(&most), "{n} senders: {most} bytes");
        let paused: u64 = lossless.ports.iter().map(|port| port.counts[1]).sum();
        let most = lossless.ports.iter().map(|port| port.counts[1]).max();
        assert_eq!((lossless.counters.paused_ps, lossless.counters.max_paused_ps), (Some(paused), most));
        // All start at 0. What comes after the last byte, such as ACKs and timers, is not counted.
        assert!(lossless.counters.traffic_ps == last && lossless.counters.end_ps >= last);
        for sender in 1..=n {
            let paused = port(&lossless, &format!("h{sender}->s0")).counts[1];
            // Senders that have sent everything no longer wait for the remaining bytes of others.
            let rest = (n - 1) * ALONE_PS;
            assert!(paused.abs_diff(rest) < rest / 20, "{n} senders: {paused} of {rest} ps");
        }
    }
}

#[test]
fn without_pauses_the_same_incast_loses_packets() {
    let shared = incast(16, &format!("{FIFO}buffer = {{ kind = 'complete', total = '1MB' }}"));
    assert!(shared.counters.dropped_packets > 1000);
    let enough = incast(16, &format!("{FIFO}buffer = {{ kind = 'pfc', total = '1MB' }}"));
    assert_eq!(enough.counters.dropped_packets, 0);
}

/// Ports above 254 need two route bytes: in one switch, and on paths of up to six such switches.
#[test]
fn switches_of_any_number_of_ports_pause_their_neighbours() {
    let pfc = "transport = 'newreno'\nqdisc = { kind = 'droptail', limit = 'unlimited' }\nbuffer = { kind = 'pfc', total = '20MB', xoff = '6KB' }\n";
    let senders: Vec<_> = (1..300).map(|src| (src, 0, 15_000, 0)).collect();
    let star = format!("[topology]\nkind = 'star'\nhosts = 300\nrate = '10Gbps'\ndelay = '1us'\n{}", table("pfc-wide", &senders));
    // Hosts 0 to 299 are at the first switch, 300 to 599 at the second, and so on.
    let far: Vec<_> = (0..40).map(|i| (i % 5 * 300 + i, 1500 + i % 2, 30_000, 0)).collect();
    let net = "[topology]\nkind = 'chain'\nswitches = 6\nhosts_per_switch = 300\nrate = '10Gbps'\ndelay = '1us'\n";
    let chain = format!("{net}{}", table("pfc-wide-chain", &far));
    for (name, rest, pauses_at) in [("star", star, "h255->s0"), ("chain", chain, "s0->s1")] {
        let outcome = both(&format!("end = '1s'\n{rest}[[system]]\n{pfc}"));
        assert_eq!((outcome.counters.dropped_packets, outcome.stop_reason), (0, StopReason::Finished), "{name}");
        assert!(pauses(&outcome, pauses_at) > 0, "{name}: `{pauses_at}` is not paused");
    }
}

/// A NIC and a switch that divide packets into different classes: the NIC holds all of them, so that none is lost.
#[test]
fn a_nic_with_other_classes_than_its_switch_obeys_every_pause() {
    const STRICT: &str = "{ kind = 'strict', limit = 'unlimited' }";
    const DROPTAIL: &str = "{ kind = 'droptail', limit = 'unlimited' }";
    const FLOWS: &str = "{ kind = 'strict', class_of = 'flow', limit = 'unlimited' }";
    const TWO: &str = "{ kind = 'strict', classes = 2, limit = 'unlimited' }";
    for (transport, switch, nic, lossless) in
        [("phost", STRICT, DROPTAIL, 8), ("phost", STRICT, TWO, 8), ("newreno", DROPTAIL, FLOWS, 1)]
    {
        let rows: Vec<_> = (0..6).map(|i| (1 + i, 0, 200_000, 0)).collect();
        let outcome = both(&format!(
            "end = '1s'\n[topology]\nkind = 'star'\nhosts = 7\nrate = '10Gbps'\ndelay = '1us'\n{}[[system]]\ntransport = '{transport}'\n\
             qdisc = {switch}\nnic.qdisc = {nic}\nbuffer = {{ kind = 'pfc', total = '4MB', xoff = '3KB', lossless = {lossless} }}\n",
            table(&format!("pfc-classes-{lossless}-{}", nic.len()), &rows)
        ));
        assert_eq!((outcome.counters.dropped_packets, outcome.stop_reason), (0, StopReason::Finished), "{switch} {nic}");
        assert!((1..=6).any(|host| pauses(&outcome, &format!("h{host}->s0")) > 0), "{switch} {nic}: no pause");
    }
}

/// Four flows to one host have the cable between two switches paused, and with it a flow to another host. This flow
/// gets the rate of one of the four, a quarter of a link, although its own link is idle. In a separate class it is
/// not affected.
#[test]
fn a_flow_to_an_idle_host_is_held_back_with_others_of_its_class() {
    let topology = "kind = 'dumbbell'\nleft = 5\nright = 2\nbottleneck_rate = '50Gbps'";
    // By their ids the flow in question and small flows are in the first of two classes, flows to the busy host in
    // the second.
    let (victim, small) = ((4, 6, 1_000_000, 0), (3, 6, 1, 0));
    let busy = |src| (src, 5, 1_000_000, 0);
    let rows = [victim, busy(0), small, busy(1), small, busy(2), small, busy(3)];
    // Flows are numbered by their starts.
    let rows: Vec<_> = rows.into_iter().zip(0..).map(|((src, dst, size, _), start)| (src, dst, size, start)).collect();
    let run = |name: &str, system: &str| {
        let outcome = both(&scenario(name, topology, &rows, system));
        assert_eq!(outcome.counters.dropped_packets, 0);
        let victim = outcome.flows.iter().find(|flow| flow.src == 4).unwrap().fct_ps().unwrap();
        (victim as f64 / ALONE_PS as f64, pauses(&outcome, "s0->s1"))
    };
    let (together, paused) = run("pfc-victim", &format!("{FIFO}buffer = {{ kind = 'pfc', xoff = '30KB' }}"));
    assert!((together - 4.0).abs() < 0.2 && paused > 0, "{together} times as long as alone");
    let classes = "qdisc = { kind = 'strict', classes = 2, class_of = 'flow', limit = 'unlimited' }\n";
    let (apart, paused) = run("pfc-apart", &format!("{classes}buffer = {{ kind = 'pfc', xoff = '30KB', lossless = 2 }}"));
    assert!(apart < 1.05 && paused > 0, "{apart} times as long as alone");
    let (lossy, paused) = run("pfc-none", FIFO);
    assert!(lossy < 1.05 && paused == 0, "{lossy} times as long as alone");
}

/// The breakdown of a paused flow names the ports that were paused, among them the NIC of the sender.
#[test]
fn the_breakdown_of_a_flow_names_the_paused_ports() {
    let topology = "kind = 'dumbbell'\nleft = 2\nright = 1\nbottleneck_rate = '40Gbps'";
    let system = format!("{FIFO}buffer = {{ kind = 'pfc', xoff = '30KB' }}");
    let text = scenario("pfc-why", topology, &[(0, 2, 1_000_000, 0), (1, 2, 1_000_000, 0)], &system);
    let point = &plan(&text).points[0];
    let outcome = both(&text);
    let open = |flow: &sim::outcome::FlowRow| Time(flow.start_ps.unwrap())..Time(flow.finish_ps.unwrap());
    let lives: Vec<Life> = outcome.flows.iter().map(|flow| Life { flow: FlowId(flow.flow_id), open: open(flow) }).collect();
    for found in watch(&point.run, &lives, &mut |_| Continue::Yes).unwrap().breakdowns().unwrap() {
        let name = |part: TimePart| part.port().map(|port| outcome.ports[port.index()].name.clone());
        let paused = found.totals().into_iter().filter(|(part, _)| matches!(part, TimePart::Paused(_)));
        let by_port: Vec<(String, u64)> = paused.map(|(part, time)| (name(part).unwrap(), time)).collect();
        let nic = format!("h{}->s0", found.flow.src);
        let at_nic: u64 = by_port.iter().filter(|(port, _)| *port == nic).map(|(_, time)| time).sum();
        let all: u64 = by_port.iter().map(|(_, time)| time).sum();
        // The flow sends for half of the time, and waits in two switches behind the bytes that these hold at their
        // thresholds, 30 KB at 5 Gb/s each.
        let fct = found.flow.fct_ps().unwrap();
        assert!(at_nic * 10 > fct * 3 && all < fct * 6 / 10, "{by_port:?} of {fct}");
        assert_eq!(found.totals().iter().map(|(_, time)| time).sum::<u64>(), fct);
    }
}

/// The port to `h4` is too slow for two senders, and in the end a sender two switches away is paused.
#[test]
fn congestion_spreads_from_switch_to_switch() {
    let rows = [(0, 4, 1_000_000, 0), (5, 4, 1_000_000, 0)];
    let spreads = |xoff: &str| {
        let system = format!("{FIFO}buffer = {{ kind = 'pfc', xoff = '{xoff}' }}");
        let outcome = both(&scenario("pfc-spreads", "kind = 'chain'\nswitches = 3\nhosts_per_switch = 2", &rows, &system));
        assert_eq!(outcome.counters.dropped_packets, 0);
        ["h5->s2", "s1->s2", "s0->s1", "h0->s0", "h3->s1"].map(|name| pauses(&outcome, name) > 0)
    };
    assert_eq!(spreads("20KB"), [true, true, true, true, false]);
    // Half of the flow passes meanwhile. Of the rest the last switch holds 300 KB and the switch before it the others.
    assert_eq!(spreads("300KB"), [true, true, false, false, false]);
    assert_eq!(spreads("2MB"), [false; 5]);
}

/// Web search with incasts on a leaf-spine network, with links that fail meanwhile: the same bytes on any number of threads.
#[test]
fn threads_and_failures_give_the_same_bytes() {
    let text = format!(
        "end = '20ms'\n[topology]\nkind = 'leaf_spine'\nleaves = 8\nspines = 2\nhosts_per_leaf = 2\nhost_rate = '10Gbps'\nspine_rate = '10Gbps'\n\
         [workload.web]\nkind = 'poisson'\nflows = 40\nload = 0.8\n[workload.burst]\nkind = 'incast'\nreceiver = 'random'\nselect = 'random'\nsenders = 8\nsize = '100KB'\nload = 0.1\nuntil = 'web'\n\
         [[event]]\nat = '1ms'\nuntil = '2ms'\nlink = ['leaf0', 'spine0']\n[[system]]\nlabel = 'x'\n{BLAST}{FIFO}buffer = {{ kind = 'pfc', total = '1MB', xoff = '20KB' }}\n"
    );
    for point in plan(&text).points {
        let one = sim::run(&point.run, &mut |_| Continue::Yes).unwrap();
        assert!(one.ports.iter().map(|port| port.counts[0]).sum::<u64>() > 100);
        assert_eq!(one.counters.dropped_packets, 0);
        for (parts, threads) in [(2, 2), (3, 1), (7, 1)] {
            let several = run_in_parts(&point, parts, threads);
            assert_eq!((&one.flows, &one.ports), (&several.flows, &several.ports), "{parts} parts on {threads} threads");
        }
    }
}

/// RDMA over Ethernet, with the parts that each transport implies: data, ACKs and notifications all arrive, and nothing
/// is sent twice.
#[test]
fn transports_for_lossless_networks_lose_nothing() {
    let rows: Vec<_> = (0..16).flat_map(|src| (0..4).map(move |n| (1 + src, 0, 100_000, n * 50_000_000))).collect();
    let flows = table("pfc-roce", &rows);
    for name in ["dcqcn", "timely", "hpcc", "powertcp", "theta_powertcp"] {
        let net = "end = '1s'\n[topology]\nkind = 'star'\nhosts = 17\nrate = '100Gbps'\n";
        let outcome = both(&format!("{net}{flows}[[system]]\ntransport = '{name}'\nbuffer = 'pfc'\n"));
        assert_eq!((outcome.stop_reason, outcome.counters.dropped_packets), (StopReason::Finished, 0), "{name}");
        assert!(outcome.flows.iter().all(|flow| flow.retx_packets == 0 && flow.timeouts == 0), "{name}");
        // DCQCN reacts to marks.
        assert_eq!(outcome.flows.iter().any(|flow| flow.marks > 0), name == "dcqcn", "{name}");
    }
}

/// A ring of switches with three hosts each. Every host sends to a host that is `ahead` switches further on.
fn ring(switches: u32, ahead: u32, more: &str) -> String {
    let name = format!("pfc-ring-{switches}");
    let mut cables = String::from("a,b,rate,delay\n");
    for host in 0..3 * switches {
        cables += &format!("h{host},s{},10Gbps,1us\n", host / 3);
    }
    for at in 0..switches {
        cables += &format!("s{at},s{},10Gbps,1us\n", (at + 1) % switches);
    }
    let cables = file(&format!("{name}.csv"), &cables);
    let hosts = 3 * switches;
    // Two flows of each host, so that where there are two ways round both are taken.
    let rows: Vec<_> = (0..2 * hosts).map(|i| (i % hosts, (i % hosts + 3 * ahead) % hosts, 1_000_000, 0)).collect();
    let flows = table(&format!("{name}-{ahead}-flows"), &rows);
    format!("end = '20ms'\n[topology]\nkind = 'file'\npath = '{cables}'\n{flows}[[system]]\nlabel = 'x'\n{BLAST}{FIFO}{more}\n")
}

fn buffer(more: &str) -> String {
    format!("buffer = {{ kind = 'pfc', total = '1MB', xoff = '20KB'{more} }}")
}

/// With hosts that send two switches ahead, every port of the ring carries packets that leave the ring and packets
/// that stay on it. In the end only the latter wait.
#[test]
fn a_ring_of_four_switches_deadlocks_and_says_where() {
    let outcome = both(&ring(4, 2, &buffer("")));
    assert_eq!((outcome.stop_reason, outcome.complete, outcome.counters.dropped_packets), (StopReason::Deadlock, true, 0));
    let deadlock = outcome.deadlock.as_ref().unwrap();
    let mut names: Vec<&str> = deadlock.cycle.iter().map(|(link, _)| outcome.ports[*link as usize].name.as_str()).collect();
    let first = (0..names.len()).min_by_key(|i| names[*i]).unwrap();
    names.rotate_left(first);
    let rings = [["s0->s1", "s1->s2", "s2->s3", "s3->s0"], ["s0->s3", "s3->s2", "s2->s1", "s1->s0"]];
    assert!(rings.iter().any(|ring| ring[..] == names[..]), "{names:?}");
    // The deadlock is real: in a run that goes on, none of these ports sends anything more.
    let on = both(&ring(4, 2, &buffer(", on_deadlock = 'go_on'")));
    assert_eq!((on.stop_reason, on.deadlock.as_ref()), (StopReason::End, Some(deadlock)));
    assert!(on.counters.end_ps > deadlock.at_ps + 10_000_000_000);
    for (link, _) in &deadlock.cycle {
        let sent = |outcome: &Outcome| outcome.ports[*link as usize].tx_packets;
        // The counts are equal in both runs.
        assert_eq!(sent(&outcome), sent(&on));
    }
    for (parts, threads) in [(2, 2), (3, 1)] {
        let point = &plan(&ring(4, 2, &buffer(""))).points[0];
        let several = run_in_parts(point, parts, threads);
        assert_eq!((&several.flows, &several.ports, &several.deadlock), (&outcome.flows, &outcome.ports, &outcome.deadlock));
    }
}

/// With hosts that send one switch ahead, no packets stay on the ring: neighbours pause, and go on. The same holds
/// with buffers that drop packets instead, and on a ring that is cut.
#[test]
fn rings_that_do_not_wait_for_themselves_do_not_deadlock() {
    let finishes = |text: &str| {
        let outcome = both(text);
        assert_eq!((outcome.stop_reason, outcome.deadlock), (StopReason::Finished, None), "{text}");
        outcome.ports.iter().map(|port| port.counts.first().copied().unwrap_or(0)).sum::<u64>()
    };
    assert!(finishes(&ring(4, 1, &buffer(""))) > 100);
    finishes(&ring(4, 2, "buffer = { kind = 'complete', total = '1MB' }"));
    let cut = ring(4, 2, &buffer("")).replace("[topology]", "[[event]]\nat = '0s'\nlink = ['s3', 's0']\n[topology]");
    assert!(finishes(&cut) > 100);
}

/// A cable that fails can end a deadlock: the packets that wait at its ports are lost.
#[test]
fn a_deadlock_that_is_waited_for_ends_with_a_failure() {
    let text = ring(4, 2, &buffer(", on_deadlock = 'go_on'"));
    let text = text
        .replace("end = '20ms'", "end = '400ms'")
        .replace("[topology]", "[[event]]\nat = '5ms'\nlink = ['s3', 's0']\n[topology]");
    let outcome = both(&text);
    assert_eq!(outcome.stop_reason, StopReason::Finished);
    assert!(outcome.deadlock.is_some_and(|deadlock| deadlock.at_ps < 5_000_000_000));
}

//! Hosts that take packets in at a limited rate: closed forms, losses, hosts that pause their switch, threads, and the
//! oracle.

use crate::both::both;
use crate::common::{plan, run_in_parts, table};
use sim::outcome::FlowRow;
use sim::{Continue, Outcome};

/// Each flow is sent at line rate, of 10 Gb/s: only receivers slow it down.
const BLAST: &str = "transport = { kind = 'dctcp', init_window = 1000, max_cwnd = 1000, handshake = false }\nqdisc = { kind = 'droptail', limit = 'unlimited' }\n";

/// Bytes on the wire of a flow of a megabyte, and of its packets.
const WIRE: u64 = 1_000_000 + PACKETS * 40;
const PACKETS: u64 = 685;

fn scenario(name: &str, topology: &str, rows: &[(u32, u32, u64, u64)], system: &str) -> String {
    format!(
        "end = '1s'\n[topology]\nrate = '10Gbps'\ndelay = '1us'\n{topology}\n{}[[system]]\nlabel = 'x'\n{BLAST}{system}\n",
        table(name, rows)
    )
}

/// A counter of a port by its column.
fn count(outcome: &Outcome, port: &str, column: &str) -> u64 {
    let at = outcome.port_counters.iter().position(|counter| counter.column() == column).expect("a counter of this name");
    outcome.ports.iter().find(|row| row.name == port).expect("a port of this name").counts[at]
}

fn flow(outcome: &Outcome, src: u32) -> &FlowRow {
    outcome.flows.iter().find(|flow| flow.src == src).expect("a flow from this host")
}

const STAR: &str = "kind = 'star'\nhosts = 4";

/// Two links and the first packet on both, then all bytes at the rate of the host, and its time for each packet.
#[test]
fn a_flow_takes_as_long_as_its_receiver() {
    let run = |name: &str, receiver: &str| both(&scenario(name, STAR, &[(1, 0, 1_000_000, 0)], receiver));
    let first = 2 * 1_000_000 + 2 * 1_200_000;
    let plain = run("receiver-none", "").flows[0].fct_ps().unwrap();
    assert_eq!(plain, first - 1_200_000 + WIRE * 800);
    let slow = run("receiver-half", "receiver = { kind = 'receive_queue', rate = '5Gbps' }");
    assert_eq!(slow.flows[0].fct_ps(), Some(first + WIRE * 1600));
    assert_eq!(count(&slow, "h0->s0", "receive_queue.received"), PACKETS);
    // When the last packet arrives, about half of all packets have been taken in.
    let most = count(&slow, "h0->s0", "receive_queue.max_bytes");
    assert!(most.abs_diff(WIRE / 2) < 3000, "{most}");
    // At its own rate a packet of 1500 bytes takes 1.2 us; with 3 us for each the host is slower than the link.
    let each = run("receiver-packets", "receiver = { kind = 'receive_queue', per_packet = '3us' }");
    assert_eq!(each.flows[0].fct_ps(), Some(first + WIRE * 800 + PACKETS * 3_000_000));
    // A receiver as fast as the link only adds the time of the last packet.
    let last = 1_000_000 - 684 * 1460 + 40;
    let fast = run("receiver-rate", "receiver = 'receive_queue'");
    assert_eq!(fast.flows[0].fct_ps(), Some(first + WIRE * 800));
    assert!(last < 1500 && count(&fast, "h0->s0", "receive_queue.max_bytes") <= 3000);
}

/// A receiver does not affect other hosts.
#[test]
fn only_the_hosts_that_are_named_have_a_queue() {
    let rows = [(1, 0, 1_000_000, 0), (3, 2, 1_000_000, 0)];
    let with = |name: &str, system: &str| both(&scenario(name, STAR, &rows, system));
    let (plain, slow) =
        (with("receiver-plain", ""), with("receiver-one", "receiver = { kind = 'receive_queue', rate = '2Gbps', hosts = 'h0' }"));
    assert_eq!(flow(&plain, 3).fct_ps(), flow(&slow, 3).fct_ps());
    assert!(flow(&slow, 1).fct_ps().unwrap() > 4 * flow(&plain, 1).fct_ps().unwrap());
    // At a sender acknowledgments wait, and the flow has been sent before they come.
    let idle = with("receiver-idle", "receiver = { kind = 'receive_queue', rate = '1Mbps', hosts = 'h1..h1' }");
    assert!(count(&idle, "h1->s0", "receive_queue.received") > 0);
    assert_eq!(flow(&plain, 1).fct_ps(), flow(&idle, 1).fct_ps());
}

/// The host drops packets that it has no room for, the sender retransmits them, and the audit of the run holds.
#[test]
fn a_full_queue_loses_packets_and_the_flow_ends() {
    let system = "receiver = { kind = 'receive_queue', rate = '2Gbps', limit = '30KB' }";
    let outcome = both(&scenario("receiver-short", STAR, &[(1, 0, 1_000_000, 0), (2, 0, 1_000_000, 0)], system));
    assert!(count(&outcome, "h0->s0", "receive_queue.dropped") > 100);
    assert!(count(&outcome, "h0->s0", "receive_queue.max_bytes") <= 30_000);
    assert_eq!(outcome.counters.dropped_packets, 0, "no port drops");
    assert!(outcome.flows.iter().all(|flow| flow.finish_ps.is_some()));
}

/// A slow receiver of a lossless network pauses its switch, and this switch pauses the sender and a flow to a host that
/// is not slow: the symptom that Guo et al. (SIGCOMM 2016, section 4.4) saw in production. No packet is lost, and the
/// slow host receives at its own rate.
#[test]
fn slow_receivers_of_a_lossless_network_pause_their_switch() {
    let topology = "kind = 'dumbbell'\nleft = 2\nright = 2\nbottleneck_rate = '10Gbps'";
    let run = |name: &str, receiver: &str| {
        let buffer = "buffer = { kind = 'pfc', total = '1MB', xoff = '30KB' }";
        let outcome =
            both(&scenario(name, topology, &[(0, 2, 1_000_000, 0), (1, 3, 1_000_000, 0)], &format!("{buffer}\n{receiver}")));
        assert_eq!((outcome.counters.dropped_packets, outcome.deadlock.is_some()), (0, false));
        outcome
    };
    let slow = run("receiver-pfc", "receiver = { kind = 'receive_queue', rate = '2Gbps', hosts = 'h2' }");
    let names = ["s1->h2", "s0->s1", "h0->s0", "s1->h3"];
    assert_eq!(names.map(|port| count(&slow, port, "pfc.pauses") > 0), [true, true, true, false]);
    // The host is never idle: 4 ns for each byte, after the first packet's way over three links.
    assert_eq!(flow(&slow, 0).fct_ps(), Some(3 * (1_000_000 + 1_200_000) + WIRE * 4000));
    assert!(count(&slow, "h2->s1", "receive_queue.max_bytes") <= 30_000 + 3 * 1500 + 2500 + 64);
    // The other flow has half of the link, and then the rate that the slow flow leaves.
    let plain = run("receiver-pfc-none", "");
    let times = |outcome: &Outcome| flow(outcome, 1).fct_ps().unwrap() as f64 / (WIRE * 800) as f64;
    assert!((1.9..2.1).contains(&times(&plain)) && times(&slow) > 3.0, "{} and {}", times(&plain), times(&slow));
}

/// The same bytes on any number of threads, with a policy, losses at hosts, and retransmissions.
#[test]
fn threads_give_the_same_bytes() {
    let text = "end = '20ms'\n[topology]\nkind = 'leaf_spine'\nleaves = 4\nspines = 2\nhosts_per_leaf = 4\nhost_rate = '10Gbps'\nspine_rate = '10Gbps'\n\
         [workload.web]\nkind = 'poisson'\nflows = 60\nload = 0.8\n[[system]]\nlabel = 'x'\ntransport = 'dctcp'\npolicy = 'pias'\nqdisc = 'strict'\n\
         receiver = { kind = 'receive_queue', rate = '5Gbps', per_packet = '100ns', limit = '60KB', hosts = 'h0..h9' }\n";
    let point = &plan(text).points[0];
    let one = sim::run(&point.run, &mut |_| Continue::Yes).unwrap();
    assert!((0..10).map(|host| count(&one, &format!("h{host}->leaf{}", host / 4), "receive_queue.dropped")).sum::<u64>() > 0);
    for (parts, threads) in [(2, 2), (3, 1), (4, 1)] {
        let several = run_in_parts(point, parts, threads);
        assert_eq!((&one.flows, &one.ports), (&several.flows, &several.ports), "{parts} parts on {threads} threads");
    }
}

/// Swift measures the wait in a receive queue at both ends and keeps it at its target: 50 us at 5 Gb/s are 31 kB. With a
/// target that is never reached only the window's growth limits the queue.
#[test]
fn swift_keeps_the_wait_at_a_slow_receiver_at_its_target() {
    let most = |name: &str, target: &str| {
        let transport = format!("transport = {{ kind = 'swift', max_cwnd = 1000, endpoint_target = '{target}' }}");
        let receiver = "receiver = { kind = 'receive_queue', rate = '5Gbps' }";
        let head = "end = '1s'\n[topology]\nrate = '10Gbps'\ndelay = '1us'\nkind = 'star'\nhosts = 4\n";
        let system = format!("[[system]]\nlabel = 'x'\n{transport}\n{receiver}\n");
        let outcome = both(&format!("{head}{}{system}", table(name, &[(1, 0, 20_000_000, 0)])));
        assert!(outcome.flows[0].fct_ps().unwrap() < 40_000_000_000, "the receiver is busy");
        count(&outcome, "h0->s0", "receive_queue.max_bytes")
    };
    let (short, long) = (most("receiver-swift", "50us"), most("receiver-swift-long", "1s"));
    assert!((25_000..60_000).contains(&short), "{short}");
    assert!(long > 150_000, "{long}");
}

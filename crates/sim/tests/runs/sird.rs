//! SIRD in whole runs, against closed forms.

use crate::common::{run, system_of, table};
use sim::Outcome;

/// A packet time at 10 Gb/s, in picoseconds.
const PACKET: u64 = 1_200_000;

/// Messages between hosts of a star at 10 Gb/s. An unloaded round trip is 6.464 us: 8080 bytes, so that one BDP is
/// six packets and B is nine.
fn star(name: &str, sender_threshold: &str, rows: &[(u32, u32, u64, u64)]) -> Outcome {
    let flows = table(name, rows);
    let sird = system_of("transport", "sird", "unlimited").set("transport.unsched_threshold", "auto");
    let sird = sird.set("transport.sender_threshold", sender_threshold);
    run(&format!("[topology]\nkind = 'star'\nhosts = 12\nrate = '10Gbps'\ndelay = '1us'\n{flows}{}", sird.toml()))
}

/// A single receiver: its link is never idle from the first data to the last, and no more than B less one BDP waits
/// for it.
#[test]
fn one_receiver_is_fully_used() {
    let rows: Vec<_> = (1..9).map(|src| (src, 0, 146_000, 0)).collect();
    let outcome = star("sird-one", "auto", &rows);
    // A bare header takes 2.064 us to a host, and a full packet 4.4 us. The last of 800 GRANTs leaves 799 packet
    // times after the first.
    assert_eq!(last(&outcome), 2_064_000 + 799 * PACKET + 2_064_000 + 4_400_000);
    let port = outcome.ports.iter().find(|port| port.name == "s0->h0").expect("the port of the receiver");
    assert!(port.max_queue_bytes <= 3 * 1500, "{} bytes", port.max_queue_bytes);
    assert_eq!(outcome.counters.dropped_packets, 0);
}

fn last(outcome: &Outcome) -> u64 {
    outcome.flows.iter().filter_map(|flow| flow.finish_ps).max().expect("all messages finish")
}

/// Three receivers share six senders. The credit of a receiver is at most nine packets, and a round trip holds 5.4: no
/// more than four packets wait for its link. `csn` lets it give its credit to other senders.
#[test]
fn little_waits_for_receivers_that_share_senders() {
    let rows: Vec<_> = (3..9).flat_map(|src| (0..3).map(move |dst| (src, dst, 1_460_000, 0))).collect();
    let informed = star("sird-shared", "auto", &rows);
    for port in informed.ports.iter().filter(|port| ["s0->h0", "s0->h1", "s0->h2"].contains(&port.name.as_str())) {
        assert!(port.max_queue_bytes <= 4 * 1500, "{}: {} bytes", port.name, port.max_queue_bytes);
    }
    let (ideal, uninformed) = (6000 * PACKET, last(&star("sird-shared", "1GB", &rows)));
    let informed = last(&informed);
    assert!(informed < ideal * 6 / 5, "{informed} ps, at full use {ideal} ps");
    assert!(informed < uninformed, "{informed} ps, without `csn` {uninformed} ps");
}

/// Messages on the authors' star with the values of their scripts: 100 Gb/s, 1.9 us per cable, packets of 1538 bytes
/// with 1458 bytes of payload, B of 97 packets, buckets and UnschT of 65, SThr of 33.
fn as_in_ns2(name: &str, rows: &[(u32, u32, u64, u64)]) -> Vec<f64> {
    let packets = |n: u64| n * 1458;
    let flows = table(name, rows);
    let scenario = format!(
        "mtu = '1538B'\nheader = '80B'\n[topology]\nkind = 'star'\nhosts = 16\nrate = '100Gbps'\ndelay = '1.9us'\n{flows}\
         [[system]]\nlabel = 'SIRD'\nqdisc.mark = 'unlimited'\n\
         transport = {{ kind = 'sird', bucket = '{}B', sender_bucket = '{}B', unsched_threshold = '{}B', \
         unsched_bytes = '{}B', sender_threshold = '{}B' }}\n",
        packets(97),
        packets(65),
        packets(65),
        packets(65),
        packets(33)
    );
    run(&scenario)
        .flows
        .iter()
        .map(|flow| (flow.finish_ps.expect("all messages finish") - flow.start_ps.expect("all messages start")) as f64 / 1e6)
        .collect()
}

/// One sender and 2 or 8 receivers, whose messages have 650 packets and start 10 ns apart: the mean of the authors'
/// simulator, dalehuangzihan/SIRD-Simulator 116e981, in microseconds.
#[test]
fn outcasts_take_as_long_as_in_the_authors_simulator() {
    for (receivers, ns2) in [(2, 153.3), (8, 480.6)] {
        let rows: Vec<_> = (1..=receivers).map(|dst| (0, dst, 650 * 1458, 10_000 * u64::from(dst - 1))).collect();
        let times = as_in_ns2(&format!("sird-outcast-{receivers}"), &rows);
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        assert!((mean / ns2 - 1.0).abs() < 0.02, "{receivers} receivers: {mean} us, in ns-2 {ns2} us");
    }
}

/// Five messages to one receiver. With the bytes that are still to be granted as the key, the third takes 52.2 us.
#[test]
fn receivers_order_messages_by_the_bytes_that_have_not_arrived() {
    let rows = [
        (0, 1, 1_458_000, 0),
        (0, 1, 729_000, 5_000_000),
        (2, 1, 437_400, 20_000_000),
        (0, 1, 145_800, 50_000_000),
        (0, 1, 43_740, 60_000_000),
    ];
    let third = as_in_ns2("sird-srpt", &rows)[2];
    assert!((third / 55.1 - 1.0).abs() < 0.02, "{third} us, in ns-2 55.1 us");
}

/// With its defaults SIRD loses nothing when 15 hosts send a host as many unscheduled bytes as they may at the same
/// time, 15 BDP. The limit of other queues, 2 BDP, drops most of them.
#[test]
fn a_burst_of_unscheduled_messages_fits_the_default_queue() {
    let rows: Vec<_> = (1..16).map(|src| (src, 0, 66 * 1460, 0)).collect();
    let flows = table("sird-burst", &rows);
    let star = "[topology]\nkind = 'star'\nhosts = 16\nrate = '100Gbps'\ndelay = '1.9us'\n";
    let dropped = |qdisc: &str| {
        run(&format!("{star}{flows}[[system]]\nlabel = 'SIRD'\ntransport = 'sird'\n{qdisc}")).counters.dropped_packets
    };
    assert_eq!(dropped(""), 0);
    assert!(dropped("qdisc.limit = 'auto'\n") > 500);
}

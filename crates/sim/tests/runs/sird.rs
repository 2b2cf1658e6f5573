//! SIRD in whole runs, against closed forms.

use crate::common::{run, system_of, table};
use sim::Outcome;

/// A packet time at 10 Gb/s, in picoseconds.
const PACKET: u64 = 1_200_000;

/// Messages between hosts of a star at 10 Gb/s. An unloaded round trip is 6.464 us: 8080 bytes, so that one BDP is
/// six packets and B is nine.
fn star(name: &str, sender_threshold: &str, rows: &[(u32, u32, u64, u64)]) -> Outcome {
    let flows = table(name, rows);
    let sird = system_of("transport", "sird", "unlimited").set("transport.unsched_threshold", "auto").set("qdisc.mark", "auto");
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

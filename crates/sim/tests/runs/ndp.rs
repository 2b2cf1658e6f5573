//! NDP in a network: incasts, the fate of each packet, paths, headers that find no room, and links that lose half
//! of all packets.

use crate::common::{fits, run, system, system_of, table};
use sim::Outcome;
use sim::outcome::{FlowRow, PortRow, StopReason};

/// The sum of a counter over all ports.
fn at_ports(outcome: &Outcome, counter: &str) -> u64 {
    let place = outcome.port_counters.iter().position(|named| named.counter.name == counter).expect("a counter of `trim`");
    outcome.ports.iter().map(|port| port.counts[place]).sum()
}

/// The sum of a counter over all flows.
fn in_flows(outcome: &Outcome, counter: &str) -> u64 {
    let place = outcome.flow_counters.iter().position(|named| named.counter.name == counter).expect("a counter of `ndp`");
    outcome.flows.iter().map(|flow| flow.counts[place]).sum()
}

fn sum(outcome: &Outcome, of: impl Fn(&FlowRow) -> u64) -> u64 {
    outcome.flows.iter().map(of).sum()
}

fn star(hosts: u32) -> String {
    format!("end = '60s'\n[topology]\nkind = 'star'\nhosts = {hosts}\nrate = '10Gbps'\ndelay = '1us'\n")
}

/// `senders` flows of `size` bytes to host 0, all at once.
fn incast(senders: u32, size: u64, system: &str) -> Outcome {
    let rows: Vec<_> = (1..=senders).map(|src| (src, 0, size, 0)).collect();
    let outcome = run(&format!("{}{}{system}", star(senders + 1), table(&format!("ndp-incast-{senders}-{size}"), &rows)));
    assert_eq!(outcome.stop_reason, StopReason::Finished);
    outcome
}

/// All flows together take the time of their bytes at 0.99 of the last link's rate, the time of the headers of
/// trimmed packets, and about a round trip, which is 6.5 us with the last packet of the port's queue.
#[test]
fn an_incast_takes_the_time_of_its_bytes_and_about_a_round_trip() {
    for (senders, size) in [(8, 146_000), (32, 146_000), (64, 29_200), (400, 14_600)] {
        let outcome = incast(senders, size, &system("ndp", "8pkt"));
        let last = outcome.flows.iter().map(|flow| flow.finish_ps.expect("finished")).max().expect("flows");
        // 0.8 ns a byte.
        let wire = 800 * sum(&outcome, |flow| flow.size_wire_bytes);
        let paced = wire * 100 / 99;
        let headers = 800 * 64 * in_flows(&outcome, "trims");
        assert!(
            last > wire + 2_000_000 && last < paced + headers + 10_000_000,
            "{senders} of {size}: {last}, {wire}, {paced}, {headers}"
        );
        assert_eq!((outcome.counters.dropped_packets, sum(&outcome, |flow| flow.timeouts.into())), (0, 0));
    }
}

/// A gap between pulls is the time of a full packet at 0.99 of the link: long flows keep the downlink that busy.
#[test]
fn pulls_fill_ninety_nine_hundredths_of_the_downlink() {
    for senders in [1, 4] {
        let outcome = incast(senders, 10_000_000, &system("ndp", "8pkt"));
        let last = outcome.flows.iter().filter_map(|flow| flow.finish_ps).max().expect("finished");
        let busy = 800.0 * sum(&outcome, |flow| flow.size_wire_bytes) as f64 / last as f64;
        assert!((0.985..=0.9905).contains(&busy), "{senders} senders: {busy}");
    }
}

/// No payload is lost without a signal: each packet that is sent arrives whole, arrives as a header or comes back.
#[test]
fn each_packet_arrives_as_data_or_as_a_header_or_comes_back() {
    for (senders, size) in [(8, 146_000), (400, 14_600)] {
        let outcome = incast(senders, size, &system("ndp", "8pkt"));
        let [trims, pulls, nacks, returned, unasked] =
            ["trims", "pulls", "nacks", "returned", "first_window_bytes"].map(|counter| in_flows(&outcome, counter));
        let packets = sum(&outcome, |flow| flow.size_bytes.div_ceil(1460));
        let sent = sum(&outcome, |flow| flow.tx_packets);
        assert_eq!(sent, packets + trims + returned);
        assert_eq!(sum(&outcome, |flow| flow.retx_packets), trims + returned);
        assert_eq!((nacks, at_ports(&outcome, "returned"), at_ports(&outcome, "trimmed")), (trims, returned, trims + returned));
        assert_eq!(outcome.counters.trimmed_packets, Some(trims + returned));
        assert_eq!(returned > 0, senders == 400, "{senders}");
        assert!(trims > 0 && sent <= unasked / 1460 + pulls + returned, "{sent} packets, {pulls} pulls");
        // A pull takes 1.212122 us, and the last one leaves before the last packet comes.
        let last = outcome.flows.iter().filter_map(|flow| flow.finish_ps).max().expect("finished");
        assert!(pulls <= last / 1_212_122 + 1, "{pulls} pulls");
    }
}

/// Without room for headers, and without returned packets, timeouts detect losses.
#[test]
fn headers_may_be_lost() {
    let narrow = system_of("transport", "ndp", "8pkt").set("qdisc.full", "drop").set("qdisc.headers", "320B").toml();
    let outcome = incast(32, 58_400, &narrow);
    let timeouts = sum(&outcome, |flow| flow.timeouts.into());
    assert!(timeouts > 0 && outcome.counters.dropped_packets > 0, "{timeouts} timeouts");
    assert_eq!((at_ports(&outcome, "returned"), sum(&outcome, |flow| flow.drops)), (0, 0), "data is not lost");
    let by_kind = |count: fn(&PortRow) -> u64| outcome.ports.iter().map(count).sum::<u64>();
    let (data, trimmed, control) = (by_kind(|p| p.data_drops), by_kind(|p| p.trimmed_drops), by_kind(|p| p.control_drops));
    assert!(data == 0 && trimmed > 0, "{data} data packets and {trimmed} headers");
    assert_eq!(trimmed + control, outcome.counters.dropped_packets);
}

/// A single flow: each pass takes each of the four paths once, so the uplinks differ by at most one packet.
#[test]
fn packets_are_spread_evenly_over_all_paths() {
    let net = "end = '1s'\n[topology]\nkind = 'leaf_spine'\nleaves = 2\nspines = 4\nhosts_per_leaf = 4\nhost_rate = '10Gbps'\nspine_rate = '10Gbps'\n";
    let outcome = run(&format!("{net}{}{}", table("ndp-paths", &[(0, 4, 1_460_000, 0)]), system("ndp", "8pkt")));
    // 1000 packets out; ACKs and PULLs come back.
    let tier = |tier| outcome.ports.iter().filter(move |port| port.tier == tier && port.tx_packets > 0);
    let leaves: Vec<u64> = tier(1).map(|port| port.tx_packets).collect();
    assert_eq!(leaves.iter().filter(|sent| **sent == 250).count(), 4, "{leaves:?}");
    assert_eq!((outcome.flows[0].tx_packets, in_flows(&outcome, "trims")), (1000, 0));
}

#[test]
fn all_arrives_over_links_that_lose_half_of_all_packets() {
    let rows: Vec<_> = (0..24).map(|i: u32| (i % 4, (i + 1 + i / 4 % 3) % 4, 20_000, u64::from(i) * 10_000_000)).collect();
    let outcome = run(&format!("{}loss = 0.5\n{}{}", star(4), table("ndp-half", &rows), system("ndp", "8pkt")));
    assert_eq!(outcome.stop_reason, StopReason::Finished);
    assert!(outcome.flows.iter().all(|flow| flow.finish_ps.is_some()) && outcome.counters.lost_packets > 500);
}

#[test]
fn ports_must_trim_and_the_router_must_plan_paths() {
    let rest = format!("{}{}", star(4), table("ndp-bad", &[(0, 1, 1, 0)]));
    let ndp = || system_of("transport", "ndp", "8pkt");
    assert!(fits(&rest, &ndp()));
    assert!(!fits(&rest, &ndp().set("router.kind", "spray")));
    assert!(!fits(&rest, &ndp().without("qdisc").set("qdisc.kind", "droptail")));
    assert!(!fits(&rest, &ndp().set("transport.min_rto", "1us")));
    assert!(!fits(&rest, &ndp().set("transport.pull_rate", "1.01")));
    assert!(!fits(&rest, &ndp().set("transport.init_window", "0")));
}

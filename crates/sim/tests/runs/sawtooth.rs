//! The saw-tooth of TCP on a slow link, against closed forms. A pipe of `PIPE` packets and a buffer of `BUFFER` packets
//! hold a window of at most `PIPE + BUFFER`. With a window of half of this sum or more the link is never idle, since the
//! buffer is larger than the pipe.

use crate::common::{run, system_of};
use sim::Outcome;
use sim::outcome::SampleRow;

/// A packet of 1500 bytes takes 1.2 ms at 10 Mb/s.
const PACKET_S: f64 = 1.2e-3;
/// Packets in flight without a queue: 12 ms of propagation, and the packet in transmission.
const PIPE: f64 = 11.0;
const BUFFER: f64 = 20.0;
const SECONDS: f64 = 100.0;
const INTERVAL_S: f64 = 0.012;

/// Long flows from as many hosts over one slow link, for 100 s.
fn long(flows: u32, options: &[(&str, &str)]) -> Outcome {
    let slow = [("stack", "linux"), ("handshake", "false")];
    let system =
        slow.iter().chain(options).fold(system_of("transport", "newreno", &format!("{BUFFER}pkt")), |system, (key, value)| {
            system.set(&format!("transport.{key}"), value)
        });
    let system = system.without("transport.min_rto").without("transport.init_rto");
    let pairs: Vec<String> = (0..flows).map(|i| format!("h{i}->h{}", flows + i)).collect();
    run(&format!(
        "end = '{SECONDS}s'\n[sample]\ninterval = '{INTERVAL_S}s'\nports = false\nflows = true\n[topology]\nkind = 'dumbbell'\nleft = {flows}\n\
         right = {flows}\nrate = '1Gbps'\nbottleneck_rate = '10Mbps'\ndelay = '2ms'\n[workload.long]\nkind = 'long'\npairs = '{}'\n\
         stagger = '500ms'\n{}",
        pairs.join(", "),
        system.toml()
    ))
}

/// Packets whose payload a flow's receiver got for the first time.
fn delivered(outcome: &Outcome, flow: u32) -> f64 {
    let rates = outcome.samples.iter().filter(|row| row.metric == "flow.rate_bps" && row.entity == flow);
    rates.map(|row| row.value).sum::<f64>() * INTERVAL_S / 8.0 / 1460.0
}

/// The share of the time in which the link carried payload that was new.
fn goodput(outcome: &Outcome) -> f64 {
    (0..outcome.flows.len() as u32).map(|flow| delivered(outcome, flow)).sum::<f64>() * PACKET_S / SECONDS
}

/// Windows in packets, of one flow, after the first 20 s.
fn windows(outcome: &Outcome, flow: u32) -> Vec<f64> {
    let late = |row: &&SampleRow| row.metric == "flow.cwnd_bytes" && row.entity == flow && row.time_ps > 20_000_000_000_000;
    outcome.samples.iter().filter(late).map(|row| row.value / 1460.0).collect()
}

const OPTIONS: [(&str, &str); 2] = [("ack_every", "2"), ("sack", "true")];

/// Each set of options.
fn variants() -> impl Iterator<Item = Vec<(&'static str, &'static str)>> {
    (0..4).map(|set| OPTIONS.into_iter().enumerate().filter(|(i, _)| set >> i & 1 == 1).map(|(_, option)| option).collect())
}

#[test]
fn one_flow_swings_between_half_and_all_of_pipe_and_buffer() {
    for options in variants() {
        let outcome = long(1, &options);
        let full = PIPE + BUFFER;
        assert!((goodput(&outcome) - 1.0).abs() < 0.005, "{options:?}: {}", goodput(&outcome));
        let windows = windows(&outcome, 0);
        let (least, most) = windows.iter().fold((f64::MAX, 0.0f64), |(least, most), w| (least.min(*w), most.max(*w)));
        assert!(least > full / 2.0 - 1.0 && most < full + 2.0, "{options:?}: {least} to {most}, {full} fit");
        assert!(least < full / 2.0 + 2.0 && most > full - 2.0, "{options:?}: {least} to {most}, {full} fit");
        // The window grows from half of the sum to one more than the sum, by one packet per round trip, in which the link
        // sends a window: 3/8 of the square. With half the ACKs it grows half as fast. Then a round trip until the loss is
        // known, and a round trip of recovery.
        let rounds = if options.contains(&("ack_every", "2")) { 2.0 } else { 1.0 };
        let top = full + 1.0;
        let expected = SECONDS / ((rounds * 3.0 / 8.0 * top * top + 2.0 * top) * PACKET_S);
        let flow = &outcome.flows[0];
        let episodes = f64::from(flow.fast_retransmits);
        assert!((episodes / expected - 1.0).abs() < 0.05, "{options:?}: {episodes} losses, {expected} expected");
        assert!(flow.timeouts <= 1, "{options:?}: {} timeouts", flow.timeouts);
    }
}

#[test]
fn two_flows_share_a_slow_link_and_keep_it_busy() {
    for options in variants() {
        let outcome = long(2, &options);
        assert!((goodput(&outcome) - 1.0).abs() < 0.005, "{options:?}: {}", goodput(&outcome));
        let [a, b] = [0, 1].map(|flow| delivered(&outcome, flow));
        assert!((0.5..2.0).contains(&(a / b)), "{options:?}: {a} and {b} packets");
        for flow in [0, 1] {
            let most = windows(&outcome, flow).into_iter().fold(0.0, f64::max);
            assert!(most < PIPE + BUFFER + 2.0, "{options:?}: a window of {most}");
        }
    }
}

//! UET in a network, compared with the simulator of the Ultra Ethernet Consortium (uet-htsim at 40ccb05), which printed the
//! expected numbers: `htsim_uec` with its usual parameters, in a fat tree of 16 hosts at 100 Gb/s.

use crate::common::{run, table};
use sim::Outcome;
use sim::outcome::{FlowRow, StopReason};

/// The sum of a counter over all flows.
fn in_flows(outcome: &Outcome, counter: &str) -> u64 {
    let place = outcome.flow_counters.iter().position(|named| named.counter.name == counter).expect("a counter of `uet`");
    outcome.flows.iter().map(|flow| flow.counts[place]).sum()
}

fn sum(outcome: &Outcome, of: impl Fn(&FlowRow) -> u64) -> u64 {
    outcome.flows.iter().map(of).sum()
}

/// Runs messages (src, dst, bytes) that all start at once.
fn messages(name: &str, rows: &[(u32, u32, u64)], system: &str) -> Outcome {
    let rows: Vec<_> = rows.iter().map(|&(src, dst, size)| (src, dst, size, 0)).collect();
    let net =
        "end = '100ms'\nmtu = '4150B'\nheader = '64B'\n[topology]\nkind = 'fat_tree'\nk = 4\nrate = '100Gbps'\ndelay = '1us'\n";
    let outcome = run(&format!("{net}{}[[system]]\n{system}\n", table(&format!("uet-{name}"), &rows)));
    assert_eq!(outcome.stop_reason, StopReason::Finished);
    outcome
}

/// 15 messages of 500 KB to one host.
fn incast(system: &str) -> Outcome {
    messages("incast", &(1..16).map(|src| (src, 0, 500_000)).collect::<Vec<_>>(), system)
}

/// The mean time in microseconds until senders know that their messages have arrived: ACKs take 6.03 us over six links.
fn mean_us(outcome: &Outcome) -> f64 {
    let ends = outcome.flows.iter().map(|flow| flow.finish_ps.expect("finished") as f64 / 1e6 + 6.03);
    ends.sum::<f64>() / outcome.flows.len() as f64
}

fn near(found: f64, expected: f64, tolerance: f64) -> bool {
    (found / expected - 1.0).abs() < tolerance
}

#[test]
fn one_message_takes_as_long_as_in_the_program() {
    let outcome = messages("one", &[(0, 13, 2_000_000)], "transport = 'uet'");
    let flow = &outcome.flows[0];
    assert_eq!((flow.tx_packets, in_flows(&outcome, "acks")), (490, 124));
    assert!((mean_us(&outcome) - 176.2).abs() < 0.1, "{}", mean_us(&outcome));
}

/// perm_16n_16c_2MB.cm of the program: a mean of 192.97 us, and no packet is trimmed.
#[test]
fn a_permutation_takes_about_as_long_as_in_the_program() {
    let to = [8, 4, 13, 10, 12, 15, 0, 9, 14, 7, 5, 3, 11, 6, 2, 1];
    let rows: Vec<_> = (0..).zip(to).map(|(src, dst)| (src, dst, 2_000_000)).collect();
    let outcome = messages("permutation", &rows, "transport = 'uet'");
    assert_eq!((sum(&outcome, |flow| flow.tx_packets), in_flows(&outcome, "nacks")), (7840, 0));
    assert!(near(mean_us(&outcome), 192.97, 0.03), "{}", mean_us(&outcome));
}

/// The program: 762 NACKs and a mean of 524 us with NSCC, 760 and 605 us with RCCC.
#[test]
fn incasts_take_about_as_long_as_in_the_program() {
    for (cc, nacks, mean) in [("nscc", 762.0, 524.0), ("rccc", 760.0, 605.2)] {
        let outcome = incast(&format!("transport = {{ kind = 'uet', cc = '{cc}' }}"));
        let found = (in_flows(&outcome, "nacks") as f64, mean_us(&outcome));
        assert!(near(found.0, nacks, 0.05) && near(found.1, mean, 0.05), "{cc}: {found:?}");
        // Every trimmed packet is retransmitted once.
        assert_eq!(sum(&outcome, |flow| flow.retx_packets), in_flows(&outcome, "nacks"), "{cc}");
        assert_eq!((in_flows(&outcome, "duplicates"), outcome.counters.dropped_packets), (0, 0), "{cc}");
        assert_eq!(in_flows(&outcome, "pulls") > 0, cc == "rccc");
    }
}

/// With both controls the result is between the two, and with RCCC the last host is never idle for long: 7 538 670 bytes
/// take 603 us.
#[test]
fn credit_keeps_the_link_of_the_receiver_busy() {
    let last = |cc| {
        let outcome = incast(&format!("transport = {{ kind = 'uet', cc = '{cc}' }}"));
        outcome.flows.iter().filter_map(|flow| flow.finish_ps).max().expect("finished") as f64 / 1e6
    };
    assert!((603.0..625.0).contains(&last("rccc")), "{}", last("rccc"));
    assert!((603.0..660.0).contains(&last("both")), "{}", last("both"));
}

/// Without trimming: the program retransmits 432 packets, and takes a mean of 818 us, the timeout of 443 us included.
#[test]
fn without_trimming_timeouts_find_losses() {
    let outcome = incast("transport = 'uet'\nqdisc = { kind = 'trim', trims = false }");
    assert!(sum(&outcome, |flow| flow.timeouts.into()) > 0 && in_flows(&outcome, "nacks") == 0);
    let again = sum(&outcome, |flow| flow.retx_packets) as f64;
    assert!(near(again, 432.0, 0.05) && near(mean_us(&outcome), 818.0, 0.1), "{again}, {}", mean_us(&outcome));
    // The rules need no particular queue.
    let other = incast("transport = 'uet'\nqdisc = 'red_ecn'");
    assert!(other.flows.iter().all(|flow| flow.finish_ps.is_some()));
}

/// With SLEEK the program infers 434 losses and takes a mean of 580 us.
#[test]
fn sleek_finds_losses_before_the_timeout() {
    let outcome = incast("transport = { kind = 'uet', sleek = true }\nqdisc = { kind = 'trim', trims = false }");
    let (inferred, again) = (in_flows(&outcome, "inferred") as f64, sum(&outcome, |flow| flow.retx_packets) as f64);
    assert!(near(again, 434.0, 0.05) && near(inferred, again, 0.05), "{inferred} {again}");
    assert!(near(mean_us(&outcome), 580.0, 0.1), "{}", mean_us(&outcome));
}

/// A single message: every core switch carries about a quarter of its packets.
#[test]
fn packets_are_spread_over_all_paths() {
    for balancing in ["oblivious", "bitmap", "reps", "mixed"] {
        let system = format!("transport = {{ kind = 'uet', load_balancing = '{balancing}' }}");
        let outcome = messages("spread", &[(0, 13, 4_000_000)], &system);
        let core: Vec<u64> =
            outcome.ports.iter().filter(|port| port.tier == 3 && port.tx_packets > 100).map(|port| port.tx_packets).collect();
        assert!(core.len() == 4 && core.iter().all(|sent| (150..400).contains(sent)), "{balancing}: {core:?}");
    }
}

/// Without marks at ports to hosts, as in the program if receivers control congestion. The program: 749 to 761 NACKs, 1106 to
/// 1121 ACKs, and a mean of 600.3 to 605.0 us with both controls (four seeds); 765, 1100 and 603.3 us with RCCC.
#[test]
fn without_marks_at_ports_to_hosts_credit_limits_an_incast() {
    for (cc, nacks, acks, mean) in [("both", 756.0, 1111.0, 603.5), ("rccc", 765.0, 1100.0, 603.3)] {
        let system = format!("transport = {{ kind = 'uet', cc = '{cc}' }}\nqdisc = {{ kind = 'trim', marks_to_hosts = false }}");
        let outcome = incast(&system);
        let found = (in_flows(&outcome, "nacks") as f64, in_flows(&outcome, "acks") as f64, mean_us(&outcome));
        assert!(near(found.0, nacks, 0.05) && near(found.1, acks, 0.05) && near(found.2, mean, 0.02), "{cc}: {found:?}");
    }
}

const ORDERED: &str = "transport = { kind = 'uet', delivery = 'ordered' }";

/// One path suffices for one message. In an incast, packets after a trimmed one are dropped and retransmitted.
#[test]
fn ordered_messages_take_one_path() {
    let outcome = messages("ordered", &[(0, 13, 2_000_000)], ORDERED);
    let core: Vec<u64> = outcome.ports.iter().filter(|port| port.tier == 3).map(|port| port.tx_packets).collect();
    assert_eq!(core.iter().filter(|sent| **sent >= 490).count(), 1, "{core:?}");
    assert_eq!((sum(&outcome, |flow| flow.retx_packets), in_flows(&outcome, "out_of_order")), (0, 0));
    assert!((mean_us(&outcome) - 176.2).abs() < 0.1, "{}", mean_us(&outcome));
    let outcome = incast(ORDERED);
    let (again, trims, late) =
        (sum(&outcome, |flow| flow.retx_packets), in_flows(&outcome, "trims"), in_flows(&outcome, "out_of_order"));
    assert!(trims > 0 && late > 0 && again >= trims + late, "{again} {trims} {late}");
    // 7 538 670 bytes take 603 us.
    let last = outcome.flows.iter().filter_map(|flow| flow.finish_ps).max().expect("finished") as f64 / 1e6;
    assert!((603.0..1200.0).contains(&last), "{last}");
}

/// 685 packets. Each of two links loses one packet in a hundred. With ordered delivery every loss costs a window.
#[test]
fn losses_cost_ordered_messages_a_window() {
    let net = "seed = 3\nend = '60s'\n[topology]\nkind = 'star'\nhosts = 4\nrate = '1Gbps'\ndelay = '10us'\nloss = 0.01\n";
    let flows = table("uet-lossy", &[(0, 1, 1_000_000, 0)]);
    let [unordered, ordered] = ["transport = 'uet'", ORDERED].map(|system| run(&format!("{net}{flows}[[system]]\n{system}\n")));
    for outcome in [&unordered, &ordered] {
        assert_eq!(outcome.stop_reason, StopReason::Finished);
        assert_eq!(outcome.flows[0].tx_packets, 685 + outcome.flows[0].retx_packets);
    }
    let late = in_flows(&ordered, "out_of_order");
    let again = [&unordered, &ordered].map(|outcome| outcome.flows[0].retx_packets);
    assert!(late > 0 && again[1] >= late && again[1] > 2 * again[0], "{again:?}, {late}");
    assert_eq!(in_flows(&unordered, "out_of_order"), 0);
}

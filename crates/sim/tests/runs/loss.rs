//! Links that lose packets at random, in whole runs. The oracle tests and random scenarios have such links too.

use crate::common::{file, kinds, run, system, table};
use sim::Outcome;
use sim::outcome::StopReason;

fn star(loss: &str) -> String {
    format!("seed = 3\nend = '60s'\n[topology]\nkind = 'star'\nhosts = 4\nrate = '1Gbps'\ndelay = '10us'\nloss = {loss}\n")
}

fn rows(flows: u64, size: u64) -> Vec<(u32, u32, u64, u64)> {
    (0..flows).map(|i| ((i % 4) as u32, ((i + 1 + i / 4 % 3) % 4) as u32, size, i * 10_000_000)).collect()
}

/// With `n` packets and a probability `p`, losses are binomial: a fixed seed lands within four standard deviations.
#[test]
fn links_lose_the_configured_share_of_packets() {
    let flows = table("loss-share", &rows(400, 50_000));
    for p in [0.5f64, 0.05, 0.002] {
        let outcome = run(&format!("{}{flows}{}", star(&p.to_string()), system("newreno", "unlimited")));
        let (sent, lost) = outcome.ports.iter().fold((0, 0), |sum, port| (sum.0 + port.tx_packets, sum.1 + port.lost_link));
        let (mean, deviation) = (sent as f64 * p, (sent as f64 * p * (1.0 - p)).sqrt());
        assert!((lost as f64 - mean).abs() < 4.0 * deviation, "{p}: {lost} of {sent}");
        assert_eq!(outcome.counters.lost_packets, lost);
        assert_eq!(outcome.flows.iter().map(|flow| flow.lost_link).sum::<u64>(), lost);
        assert_eq!(outcome.counters.dropped_packets, 0);
    }
}

#[test]
fn every_transport_delivers_all_over_links_that_lose_packets() {
    let flows = table("loss-all", &rows(24, 20_000));
    for name in kinds("transport") {
        let text = format!("{}{flows}{}", star("0.05"), system(name, "100pkt"));
        let outcome = run(&text);
        assert_eq!(outcome.stop_reason, StopReason::Finished, "{name}");
        assert!(outcome.flows.iter().all(|flow| flow.terminated || flow.finish_ps.is_some()), "{name}");
        assert!(outcome.counters.lost_packets > 20, "{name}");
        assert_eq!(outcome, run(&text), "{name}");
    }
}

/// Two hosts behind a switch; their cables have different losses.
fn two_cables(first: &str, second: &str) -> Outcome {
    let name = format!("loss-{first}-{second}");
    let cables = format!("a,b,rate,delay,loss\nh0,s,1Gbps,1us,{first}\nh1,s,1Gbps,1us,{second}\nh2,s,10Gbps,1us,\n");
    let cables = file(&format!("{}.csv", name.replace('.', "_")), &cables);
    let flows = table("loss-cables", &[(0, 2, 1_000_000, 0), (1, 2, 1_000_000, 0)]);
    run(&format!("seed = 1\n[topology]\nkind = 'file'\npath = '{cables}'\n{flows}{}", system("newreno", "unlimited")))
}

#[test]
fn a_cable_may_have_a_loss_of_its_own() {
    let outcome = two_cables("0.02", "0");
    let lost = |name: &str| outcome.ports.iter().find(|port| port.name == name).expect("a port").lost_link;
    assert!(lost("h0->s") > 3 && lost("s->h0") > 3, "data one way and ACKs the other");
    assert_eq!([lost("h1->s"), lost("s->h1"), lost("h2->s"), lost("s->h2")], [0; 4]);
    assert!(outcome.flows[0].lost_link > 0 && outcome.flows[1].lost_link == 0);
}

/// The flows meet on no port that is slow enough to queue, so losses of one do not touch the other.
#[test]
fn losses_on_one_link_do_not_shift_those_on_another() {
    let of_second = |first| two_cables(first, "0.01").flows.remove(1);
    assert!(of_second("0").lost_link > 0);
    assert_eq!(of_second("0"), of_second("0.02"));
}

/// An agent that sees the packets which arrive over its port's cable does not see lost packets; the audit
/// holds.
#[test]
fn agents_see_only_packets_that_arrive() {
    let flows = table("loss-listen", &rows(40, 100_000));
    let outcome = run(&format!("{}{flows}{}", star("0.02"), system("botcp", "100pkt")));
    assert_eq!(outcome.stop_reason, StopReason::Finished);
    assert!(outcome.counters.lost_packets > 20);
}

#[test]
fn flows_that_the_end_cuts_off_have_counts_too() {
    let flows = table("loss-cut-off", &[(0, 1, 100_000_000, 0)]);
    for name in kinds("transport") {
        let outcome = run(&format!("{}{flows}{}", star("0.3").replace("60s", "80ms"), system(name, "100pkt")));
        let flow = &outcome.flows[0];
        // Where receivers ask for packets, a sender need neither time out nor have come to what was lost.
        let counted = flow.timeouts > 0 || flow.retx_packets > 0 || flow.counts.iter().any(|count| *count > 0);
        assert!(flow.finish_ps.is_none() && counted, "{name}: {flow:?}");
    }
}

/// With selective acknowledgments a packet is retransmitted when it is lost, and once per flow in case the last packets are
/// lost (a rescue, RFC 6675 section 4). BBR retransmitted lost packets again when one recovery followed another.
#[test]
fn as_many_packets_are_retransmitted_as_were_dropped() {
    for (name, flows) in [("bbr", 4u32), ("bbr", 8), ("swift", 4), ("swift", 8), ("newreno", 8), ("cubic", 8)] {
        let sack = if name == "swift" || name == "bbr" { "" } else { ", sack = true" };
        let pairs = (0..flows).map(|i| format!("h{i}->h{}", i + flows)).collect::<Vec<_>>().join(", ");
        let outcome = run(&format!(
            "seed = 1\n[topology]\nkind = 'dumbbell'\nleft = {flows}\nright = {flows}\nrate = '10Gbps'\ndelay = '10us'\n[workload.x]\nkind = 'long'\n\
             pairs = '{pairs}'\nsize = '5MB'\nstagger = '37us'\n[[system]]\nlabel = 'x'\ntransport = {{ kind = '{name}'{sack} }}\n\
             qdisc = {{ kind = 'droptail', limit = '60pkt' }}\n"
        ));
        let drops: u64 = outcome.flows.iter().map(|flow| flow.drops).sum();
        let resent: u64 = outcome.flows.iter().map(|flow| flow.retx_packets).sum();
        assert!(drops > 10, "{name}, {flows} flows: {drops} drops");
        assert!(
            (drops..=drops + u64::from(flows)).contains(&resent),
            "{name}, {flows} flows: {drops} drops, {resent} retransmissions"
        );
    }
}

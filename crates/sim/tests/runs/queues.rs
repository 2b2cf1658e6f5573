//! Queue lengths under transports that control queues, against closed forms and models.

use crate::common::{run, table};
use sim::Outcome;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// (time in us, bytes) of the queue of the port `name`, every sample.
fn queue(outcome: &Outcome, name: &str) -> Vec<(f64, f64)> {
    let port = outcome.ports.iter().find(|p| p.name == name).expect("a port of this name").port_id;
    let of_it = outcome.samples.iter().filter(|s| s.metric == "port.queue_bytes" && s.entity == port);
    of_it.map(|s| (s.time_ps as f64 * 1e-6, s.value)).collect()
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, n) = values.fold((0.0, 0), |(sum, n), v| (sum + v, n + 1));
    sum / f64::from(n)
}

/// Five bursts of 20 flows of 50 KB to one host, 200 us apart, through one 10 Gb/s port (BOTCP section 5.3).
fn extreme_load(name: &str, delay: &str, transport: &str) -> Outcome {
    let rows: Vec<_> = (0..100).map(|i| (1 + i, 0, 50_000, u64::from(i / 20) * 200_000_000)).collect();
    run(&format!(
        "end = '1s'\n[topology]\nkind = 'star'\nhosts = 101\ndelay = '{delay}'\n{}[sample]\ninterval = '2us'\nport = 's0->h0'\n[[system]]\nlabel = 'x'\n{transport}\nnic.low_water = 'unlimited'\n",
        table(name, &rows)
    ))
}

/// A model of section 5.3 with pacing as here, at 2 us per link, has 58.9 packets in the queue from 0.8 to 2.8 ms, at most 87, no drop, and FCTs
/// from 2.34 to 3.72 ms; at 1.5 and 5 us per link 58.7 and 56.4 packets.
#[test]
fn botcp_holds_the_queue_at_its_largest_occupancy() {
    let system = "transport = 'botcp'\nagent = 'bof'\nqdisc = { kind = 'droptail', limit = '131072B' }";
    for (n, (delay, model)) in [("2us", 58.9), ("1500ns", 58.7), ("5us", 56.4)].into_iter().enumerate() {
        let outcome = extreme_load(&format!("extreme-{n}"), delay, system);
        let seen = queue(&outcome, "s0->h0");
        let plateau = mean(seen.iter().filter(|s| (800.0..2800.0).contains(&s.0)).map(|s| s.1 / 1500.0));
        let peak = outcome.ports.iter().map(|p| p.max_queue_bytes).max().unwrap();
        let fct: Vec<f64> = outcome.flows.iter().filter_map(|f| f.fct_ps()).map(|t| t as f64 * 1e-9).collect();
        let (least, most) = fct.iter().fold((f64::MAX, 0.0f64), |(a, b), t| (a.min(*t), b.max(*t)));
        assert!((plateau - model).abs() < 1.5, "{delay}: {plateau} packets wait, {model} in the model");
        assert!((80.0..=87.0).contains(&(peak as f64 / 1500.0)), "{delay}: {peak} bytes at most");
        assert_eq!(outcome.counters.dropped_packets, 0, "{delay}");
        if delay == "2us" {
            assert!((least - 2.34).abs() < 0.05 && (most - 3.72).abs() < 0.05, "from {least} to {most} ms");
        }
    }
}

/// Alternating lows and highs of a saw-tooth: a turn counts when it exceeds a third of the whole range.
fn turns(seen: &[(f64, f64)]) -> (Vec<f64>, Vec<f64>) {
    let (least, most) = seen.iter().fold((f64::MAX, 0.0f64), |(a, b), s| (a.min(s.1), b.max(s.1)));
    let swing = (most - least) / 3.0;
    let (mut lows, mut highs, mut rising, mut extreme) = (Vec::new(), Vec::new(), true, seen[0].1);
    for &(_, q) in seen {
        let further = if rising { q >= extreme } else { q <= extreme };
        if further {
            extreme = q;
        } else if (q - extreme).abs() > swing {
            if rising {
                highs.push(extreme)
            } else {
                lows.push(extreme)
            }
            (rising, extreme) = (!rising, q);
        }
    }
    (lows, highs)
}

/// N flows that start together: the queue is a saw-tooth of sqrt(2 N (C RTT + K)) / 2 packets below K + N (Alizadeh et al., SIGCOMM 2010,
/// section 3.3, Eqs. 8 and 10). 10 Gb/s, 100 us, K = 40 as in its Fig. 12.
#[test]
fn dctcp_makes_the_sawtooth_of_the_analysis() {
    for n in [2, 10, 40] {
        let rows: Vec<_> = (0..n).map(|i| (1 + i, 0, 1_000_000_000, 0)).collect();
        let flows = table(&format!("sawtooth-{n}"), &rows);
        let outcome = run(&format!(
            "end = '60ms'\n[topology]\nkind = 'star'\nhosts = {}\ndelay = '24500ns'\n{flows}[sample]\ninterval = '5us'\nport = 's0->h0'\n[[system]]\nlabel = 'x'\ntransport = 'dctcp'\nqdisc = {{ kind = 'ecn_threshold', limit = 'unlimited', mark = '40pkt' }}\n",
            n + 1
        ));
        let seen: Vec<_> = queue(&outcome, "s0->h0").into_iter().filter(|s| s.0 > 20_000.0).map(|s| (s.0, s.1 / 1500.0)).collect();
        let (lows, highs) = turns(&seen);
        let (low, high) = (mean(lows.iter().copied()), mean(highs.iter().copied()));
        let swing = (2.0 * f64::from(n) * (83.3 + 40.0)).sqrt() / 2.0;
        let most = seen.iter().fold(0.0f64, |most, s| most.max(s.1));
        assert!((most - f64::from(40 + n)).abs() <= 1.0, "{n} flows: {most} packets at most, K + N = {}", 40 + n);
        assert!(
            ((high - low) / swing - 1.0).abs() < 0.15,
            "{n} flows: from {low} to {high} packets, the analysis has a swing of {swing}"
        );
        assert!(highs.len() > 30, "{n} flows: {} teeth", highs.len());
    }
}

/// A packet of the model: its flow, and whether it is marked.
type Marked = (usize, bool);

/// An event of the model: a packet reaches the queue, leaves it, or is acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Arrives(Marked),
    Leaves(Marked),
    Acknowledged(Marked),
}

/// A flow of the model, in packets.
#[derive(Clone)]
struct Modelled {
    window: f64,
    threshold: f64,
    alpha: f64,
    sent: u64,
    acked: u64,
    /// ACKs and marked ACKs since the last estimate of alpha, which ends at a packet.
    seen: (f64, f64),
    estimate_ends: u64,
    cut_ends: u64,
}

/// From the start of one flow to the next one.
const STAGGER_PS: u64 = 37_300_000;

/// A model of DCTCP (RFC 8257) without hosts, losses and timers: permanent flows send into one link of 10 Gb/s, whose
/// queue marks each packet that makes it longer than 40 packets. `base_ps` is the round-trip time without the queue
/// and the transmission at this link. Returns the waiting packets every 5 us.
fn dctcp_model(flows: usize, base_ps: u64, end_ps: u64) -> Vec<(f64, f64)> {
    const TX: u64 = 1_200_000;
    const GAIN: f64 = 1.0 / 16.0;
    let new =
        Modelled { window: 10.0, threshold: 1e9, alpha: 1.0, sent: 0, acked: 0, seen: (0.0, 0.0), estimate_ends: 0, cut_ends: 0 };
    let mut all = vec![new; flows];
    let (mut queue, mut busy, mut samples, mut number) = (VecDeque::<Marked>::new(), false, Vec::new(), 0u64);
    let mut steps = BinaryHeap::new();
    let mut push = |steps: &mut BinaryHeap<_>, at: u64, step: Step| {
        number += 1;
        steps.push(Reverse((at, number, step)));
    };
    let send = |flow: &mut Modelled| {
        let fit = (flow.window.floor() as u64).saturating_sub(flow.sent - flow.acked);
        flow.sent += fit;
        fit
    };
    for (id, flow) in all.iter_mut().enumerate() {
        let start = id as u64 * STAGGER_PS;
        (0..send(flow)).for_each(|_| push(&mut steps, start + base_ps / 2, Step::Arrives((id, false))));
    }
    while let Some(Reverse((now, _, step))) = steps.pop().filter(|Reverse((now, ..))| *now < end_ps) {
        while samples.len() as u64 * 5_000_000 <= now {
            samples.push((samples.len() as f64 * 5.0, queue.len() as f64));
        }
        match step {
            Step::Arrives(packet) if !busy => {
                busy = true;
                push(&mut steps, now + TX, Step::Leaves(packet));
            }
            Step::Arrives((id, _)) => queue.push_back((id, queue.len() + 1 > 40)),
            Step::Leaves(packet) => {
                push(&mut steps, now + base_ps / 2, Step::Acknowledged(packet));
                busy = !queue.is_empty();
                if let Some(next) = queue.pop_front() {
                    push(&mut steps, now + TX, Step::Leaves(next));
                }
            }
            Step::Acknowledged((id, marked)) => {
                let flow = &mut all[id];
                flow.acked += 1;
                flow.seen = (flow.seen.0 + 1.0, flow.seen.1 + f64::from(u8::from(marked)));
                if flow.acked > flow.estimate_ends {
                    flow.alpha += GAIN * (flow.seen.1 / flow.seen.0 - flow.alpha);
                    (flow.seen, flow.estimate_ends) = ((0.0, 0.0), flow.sent);
                }
                if marked && flow.acked > flow.cut_ends {
                    flow.window = (flow.window * (1.0 - flow.alpha / 2.0)).max(1.0);
                    (flow.threshold, flow.cut_ends) = (flow.window.max(2.0), flow.sent);
                } else {
                    flow.window += if flow.window < flow.threshold { 1.0 } else { 1.0 / flow.window };
                }
                (0..send(flow)).for_each(|_| push(&mut steps, now + base_ps / 2, Step::Arrives((id, false))));
            }
        }
    }
    samples
}

/// (largest, mean, mean swing) of a queue after 20 ms.
fn sawtooth(seen: &[(f64, f64)]) -> [f64; 3] {
    let seen: Vec<_> = seen.iter().copied().filter(|s| s.0 > 20_000.0).collect();
    let (lows, highs) = turns(&seen);
    assert!(highs.len() > 30, "{} teeth", highs.len());
    let most = seen.iter().fold(0.0f64, |most, s| most.max(s.1));
    [most, mean(seen.iter().map(|s| s.1)), mean(highs.into_iter()) - mean(lows.into_iter())]
}

/// The queue is that of a packet model of RFC 8257. The analysis of SIGCOMM 2010 assumes a small alpha, linear growth
/// and synchronised flows: its swings are 7.9, 24.8 and 49.7 packets for 1, 10 and 40 flows. For one flow its
/// equation 6 gives 8.0 without approximation. Two flows are left out: they cut their windows together or in turn,
/// depending on their phases, and their swing is 9.5 to 10.8 in both cases.
#[test]
fn dctcp_has_the_queue_of_a_packet_model() {
    // Three links of 16.333 us each way; a full packet takes 120 ns at 100 Gb/s, an ACK 3.2 and 32 ns.
    let base_ps = 6 * 16_333_000 + 2 * 120_000 + 2 * 3200 + 32_000;
    for n in [1u32, 3, 5, 10, 20, 40] {
        let flows =
            table(&format!("model-{n}"), &(0..n).map(|i| (i, n, 1_000_000_000, u64::from(i) * STAGGER_PS)).collect::<Vec<_>>());
        let outcome = run(&format!(
            "end = '60ms'\n[topology]\nkind = 'dumbbell'\nleft = {n}\nright = 1\nrate = '100Gbps'\nbottleneck_rate = '10Gbps'\ndelay = '16333ns'\n{flows}[sample]\ninterval = '5us'\nport = 's0->s1'\n[[system]]\nlabel = 'x'\ntransport = 'dctcp'\nqdisc = {{ kind = 'ecn_threshold', limit = 'unlimited', mark = '40pkt' }}\n",
        ));
        let seen: Vec<_> = queue(&outcome, "s0->s1").into_iter().map(|s| (s.0, s.1 / 1500.0)).collect();
        let (found, model) = (sawtooth(&seen), sawtooth(&dctcp_model(n as usize, base_ps, 60_000_000_000)));
        let off = |i: usize| (found[i] - model[i]).abs();
        assert!(
            off(0) <= 1.0 && off(1) < 0.02 * model[1] && off(2) < 0.05 * model[2],
            "{n} flows: {found:?}, in the model {model:?}"
        );
        if n == 1 {
            assert!((found[2] - 8.0).abs() < 0.1, "a swing of {}, not 8.0", found[2]);
        }
    }
}

/// Flows count the marks that arrive, ports the marks that they make: the counts agree with one bottleneck and without drops. Packets of
/// transports that are not ECN-capable are not marked.
#[test]
fn marks_are_counted_where_they_are_made_and_where_they_arrive() {
    let rows: Vec<_> = (0..8).map(|i| (1 + i, 0, 500_000, 0)).collect();
    for at in ["enqueue", "dequeue"] {
        for (transport, marked) in [("dctcp", true), ("tcp_ecn", true), ("newreno", false)] {
            let outcome = run(&format!(
                "end = '1s'\n[topology]\nkind = 'star'\nhosts = 9\n{}[[system]]\nlabel = 'x'\ntransport = '{transport}'\nqdisc = {{ kind = 'ecn_threshold', limit = 'unlimited', mark = '20pkt', at = '{at}' }}\n",
                table(&format!("marks-{transport}-{at}"), &rows)
            ));
            let (ports, flows): (u64, u64) =
                (outcome.ports.iter().map(|p| p.marks).sum(), outcome.flows.iter().map(|f| f.marks).sum());
            assert_eq!((ports, ports > 0), (flows, marked), "{transport}, {at}");
        }
    }
}

/// A NIC behind a token bucket of 0.3 Gb/s: the backlog stays at the low-water mark plus one packet, and the NIC always has a packet to send
/// when tokens arrive. All packets but the burst leave at that rate.
#[test]
fn a_shaped_nic_is_fed_in_time_and_no_earlier() {
    for (low_water, most) in [("0B", 1500), ("1B", 1500), ("3000B", 4500), ("10KB", 11_500)] {
        let outcome = run(&format!(
            "end = '1s'\n[topology]\nkind = 'star'\nhosts = 2\nrate = '1Gbps'\n{}[[system]]\nlabel = 'x'\ntransport = 'newreno'\nqdisc = 'droptail'\nnic = {{ low_water = '{low_water}', qdisc = {{ kind = 'token_bucket', rate = '0.3Gbps', burst = '3000B', limit = 'unlimited' }} }}\n",
            table(&format!("shaped-nic-{low_water}"), &[(0, 1, 1_000_000, 0)])
        ));
        let nic = outcome.ports.iter().find(|p| p.name == "h0->s0").expect("the NIC");
        assert!((most - 1500..=most).contains(&nic.max_queue_bytes), "{low_water}: {} bytes at most", nic.max_queue_bytes);
        let fct = outcome.flows[0].fct_ps().expect("it finishes") as f64 * 1e-6;
        let least = (nic.tx_bytes - 3000) as f64 * 8.0 / 300.0;
        // The rest: the handshake, a slow start of a few round trips, and the path of the last packet.
        assert!((least..least + 150.0).contains(&fct), "{low_water}: {fct} us, {least} us at 0.3 Gb/s");
    }
}

/// Incast into a port that trims: transports that know neither trimmed nor returned packets treat them as losses and
/// finish, and the ports' counters have their names. Bytes and packets are conserved, or the audit would fail.
#[test]
fn transports_survive_trimmed_and_returned_packets() {
    let rows: Vec<_> = (1..9).map(|src| (src, 0, 150_000, 0)).collect();
    for transport in ["newreno", "tcp_ecn", "dctcp"] {
        for (headers, returns) in [("auto", false), ("200B", true)] {
            let outcome = run(&format!(
                "end = '10s'\n[topology]\nkind = 'single_tree'\n{}[[system]]\nlabel = 'x'\ntransport = '{transport}'\nqdisc = {{ kind = 'trim', limit = '8pkt', headers = '{headers}' }}\n[sample]\ninterval = '1s'\npackets = true\n",
                table(&format!("trim-{transport}-{headers}"), &rows)
            ));
            let columns: Vec<String> = outcome.port_counters.iter().map(|counter| counter.column()).collect();
            assert_eq!(columns, ["trim.trimmed", "trim.returned"]);
            let sum = |n: usize| outcome.ports.iter().map(|port| port.counts[n]).sum::<u64>();
            assert!(sum(0) > 20 && (sum(1) > 0) == returns, "{transport}: {} trimmed, {} returned", sum(0), sum(1));
            assert!(outcome.flows.iter().all(|flow| flow.finish_ps.is_some() && flow.retx_packets > 0), "{transport}");
            // Returned packets travel back to their senders.
            let to_senders: Vec<u32> =
                outcome.ports.iter().filter(|p| p.name.contains("->h") && !p.name.ends_with("->h0")).map(|p| p.port_id).collect();
            let home = outcome.packets.iter().filter(|p| p.kind == "returned" && to_senders.contains(&p.port_id)).count() as u64;
            assert_eq!(home, sum(1), "{transport}");
        }
    }
}

/// Two ports of one switch that each could use a whole buffer of 120 packets. With a dynamic threshold of 1 each port
/// gets a third, with complete sharing a half. A single port gets a half and the whole buffer. Without a shared buffer
/// only the ports' own limits count.
#[test]
fn ports_share_the_buffer_of_their_switch() {
    let peak = |buffer: &str, receivers: u32| {
        // Twenty senders to each receiver, all windows open at once.
        let rows: Vec<_> = (0..20 * receivers).map(|n| (receivers + n, n % receivers, 200_000, 0)).collect();
        let outcome = run(&format!(
            "end = '20ms'\n[topology]\nkind = 'star'\nhosts = 42\n{}[[system]]\nlabel = 'x'\ntransport = {{ kind = 'newreno', init_window = 64 }}\nqdisc = {{ kind = 'droptail', limit = 'unlimited' }}\n{buffer}",
            table(&format!("shared-{receivers}"), &rows)
        ));
        let peaks: Vec<u64> =
            outcome.ports.iter().filter(|p| p.name.starts_with("s0->")).map(|p| p.max_queue_bytes / 1500).collect();
        peaks[..receivers as usize].to_vec()
    };
    let [dynamic, complete] = ["dynamic", "complete"].map(|kind| format!("buffer = {{ kind = '{kind}', total = '180KB' }}\n"));
    let near =
        |peaks: Vec<u64>, packets: u64| assert!(peaks.iter().all(|peak| peak.abs_diff(packets) <= 2), "{peaks:?}, not {packets}");
    near(peak(&dynamic, 1), 60);
    near(peak(&complete, 1), 120);
    assert!(peak("", 1)[0] > 300, "without a buffer to share nothing is dropped");
    let two = peak(&dynamic, 2);
    assert!(two.iter().all(|peak| (40..=60).contains(peak)), "{two:?}: from a third on, and a half before the other port fills");
    let two = peak(&complete, 2);
    assert!(two.iter().all(|peak| (50..=120).contains(peak)), "{two:?}");
}

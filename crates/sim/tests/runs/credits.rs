//! Transports with credits in whole networks, against each other and against closed forms.

use crate::common::{run, table};
use sim::outcome::{Outcome, PacketRow, PortRow, StopReason};

/// Six hosts around one switch, flows that meet at two receivers, and a trace of all packets.
fn meeting(system: &str) -> Outcome {
    let rows = [
        (0, 4, 300_000, 0),
        (1, 4, 200_000, 3_000_000),
        (2, 4, 400_000, 3_000_000),
        (2, 5, 250_000, 9_000_000),
        (3, 5, 500_000, 9_000_000),
        (4, 0, 350_000, 20_000_000),
    ];
    let flows = table("credits-meeting", &rows);
    let topology = "[topology]\nkind = 'star'\nhosts = 6\nrate = '10Gbps'\ndelay = '5us'\n";
    let sample = "[sample]\ninterval = '10ms'\npackets = true\n";
    run(&format!(
        "seed = 4\nend = '1s'\n{topology}{flows}[[system]]\nqdisc = {{ kind = 'credit', drop = 'unlimited' }}\n{system}{sample}"
    ))
}

/// Data and credits in the order of the trace, before a time.
fn traffic(outcome: &Outcome, before: u64) -> Vec<&PacketRow> {
    outcome.packets.iter().filter(|row| ["data", "credit"].contains(&row.kind) && row.time_ps < before).collect()
}

/// Without bursts, priorities and early drops SSP is ExpressPass, packet for packet, until the first flow has
/// sent its last packet. From there on the two protocols end a flow differently.
#[test]
fn ssp_without_its_own_rules_is_expresspass() {
    let ours = meeting("transport = { kind = 'ssp', unsched_bytes = '0B', sender_prio = 'off' }\n");
    let theirs = meeting("transport = 'expresspass'\n");
    assert_eq!([&ours, &theirs].map(|outcome| outcome.stop_reason), [StopReason::Finished; 2]);
    let last = |row: &&PacketRow| row.kind == "data" && row.offset + 1460 >= ours.flows[row.flow_id as usize].size_bytes;
    let end = ours.packets.iter().filter(last).map(|row| row.time_ps).min().expect("flows have last packets");
    let (ours, theirs) = (traffic(&ours, end), traffic(&theirs, end));
    let dropped = ours.iter().filter(|row| row.dropped).count();
    assert!(ours.len() > 2000 && dropped > 50, "{} packets, {dropped} dropped", ours.len());
    assert_eq!(ours, theirs);
}

/// A lone flow within the first round trip over six links of 4 us, with 1 us at each host: 26 us, the
/// transmission of all its bytes once, and the transmission of one packet at each of the other links. This
/// packet is a full packet, if there is one, since a short last packet waits behind it. The CREDIT_REQUEST goes
/// first.
#[test]
fn golden_times_of_small_flows() {
    for (size, ns) in [(1_000, 26_517), (10_000, 27_458), (100_000, 35_045)] {
        let flow = table(&format!("credits-lone-{size}"), &[(0, 4, size, 0)]);
        let topology =
            "[topology]\nkind = 'chain'\nswitches = 5\nhosts_per_switch = 1\nrate = '100Gbps'\ndelay = '4us'\nhost_delay = '1us'\n";
        for kind in ["ssp", "aeolus"] {
            let transport = format!("{{ kind = '{kind}', unsched_bytes = 'auto' }}");
            let system = format!("[[system]]\ntransport = {transport}\nqdisc = 'credit'\n");
            let outcome = run(&format!("mtu = '1538B'\nheader = '78B'\n{topology}{flow}{system}"));
            let fct = outcome.flows[0].finish_ps.expect("finished") / 1000;
            // A bare header has 6.24 ns.
            assert!((ns..ns + 8).contains(&fct), "{kind}, {size}: {fct} ns");
        }
    }
}

/// Bursts of sixteen senders meet at one port. SSP's unscheduled packets fill the buffer, and its scheduled
/// packets are dropped. Aeolus' unscheduled packets are dropped, and the queue stays short. All flows finish.
#[test]
fn classes_are_dropped_as_each_paper_says() {
    let rows: Vec<_> = (0..16).map(|src| (src, 16, 100_000, 0)).collect();
    let flows = table("credits-incast", &rows);
    let topology = "[topology]\nkind = 'star'\nhosts = 17\nrate = '100Gbps'\ndelay = '12us'\n";
    let result = |kind: &str| {
        let transport = format!("{{ kind = '{kind}', unsched_bytes = 'auto' }}");
        let system = format!("[[system]]\ntransport = {transport}\nqdisc = {{ kind = 'credit', limit = '250pkt' }}\n");
        let outcome = run(&format!("end = '1s'\n{topology}{flows}{system}"));
        assert_eq!(outcome.stop_reason, StopReason::Finished, "{kind}");
        let port = outcome.ports.iter().find(|port| port.name == "s0->h16").expect("a port");
        // credits_dropped, dropped_early, dropped_alone, dropped_protected.
        (port.counts.clone(), port.max_queue_bytes)
    };
    let ((ssp, ssp_queue), (aeolus, aeolus_queue)) = (result("ssp"), result("aeolus"));
    assert!(ssp[3] > 100 && aeolus[1] > 500 && aeolus[3] == 0, "{ssp:?} {aeolus:?}");
    assert!(ssp_queue > 300_000 && aeolus_queue < 60_000, "{ssp_queue} {aeolus_queue}");
}

/// 64 flows of ExpressPass begin at once at one receiver. At its port their CREDIT_REQUESTs wait, 63 of 40
/// bytes, and a data packet. If requests are repeated after two round trips, while flows wait for their first
/// credit, the queue is twice as long.
#[test]
fn an_incast_of_expresspass_leaves_short_queues() {
    let flows = table("credits-requests", &(1..=64).map(|src| (src, 0, 100_000, 0)).collect::<Vec<_>>());
    let result = |transport: &str| {
        let text = format!(
            "end = '1s'\n[topology]\nkind = 'star'\nhosts = 65\nrate = '10Gbps'\ndelay = '2us'\n{flows}[[system]]\ntransport = {transport}\nqdisc = 'credit'\n"
        );
        let outcome = run(&text);
        let port = outcome.ports.iter().find(|port| port.name == "s0->h0").expect("a port");
        (port.max_queue_bytes, outcome.flows.iter().map(|flow| u64::from(flow.timeouts)).sum::<u64>())
    };
    let (queue, timeouts) = result("'expresspass'");
    assert!(queue <= 63 * 40 + 1500 && timeouts < 64, "{queue} bytes, {timeouts} timeouts");
    let (hasty, repeated) = result("{ kind = 'expresspass', retx = '14us' }");
    assert!(hasty > 5000 && repeated > 300, "the case shows nothing: {hasty} bytes, {repeated} timeouts");
}

/// Credits are dropped on purpose; data is not.
#[test]
fn an_incast_drops_credits_and_no_data() {
    let rows: Vec<_> = (1..=16).map(|src| (src, 0, 200_000, 0)).collect();
    let topology = "end = '1s'\n[topology]\nkind = 'star'\nhosts = 17\nrate = '10Gbps'\ndelay = '5us'\n";
    let system = "[[system]]\ntransport = 'expresspass'\nqdisc = 'credit'\n";
    let outcome = run(&format!("{topology}{}{system}", table("credits-incast", &rows)));
    let [drops, data, credits] = [|p: &PortRow| p.drops, |p: &PortRow| p.data_drops, |p: &PortRow| p.credit_drops]
        .map(|count| outcome.ports.iter().map(count).sum::<u64>());
    let counted = outcome.port_counters.iter().position(|counter| counter.counter.name == "credits_dropped").expect("a counter");
    let by_queues: u64 = outcome.ports.iter().map(|port| port.counts[counted]).sum();
    assert!(outcome.flows.iter().all(|flow| flow.finish_ps.is_some()));
    assert!(credits > 0 && data == 0, "{credits} credits and {data} data packets");
    assert_eq!((credits, drops), (by_queues, outcome.counters.dropped_packets));
}

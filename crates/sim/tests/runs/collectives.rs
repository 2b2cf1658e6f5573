//! Collectives in idle networks against their closed forms, and the time line of their ranks.

use crate::common::{assert_equal, plan, run, run_in_parts, run_point, sized, system};

/// Hosts at 100 Gb/s around a switch, with cables of 500 ns.
const HOSTS: u64 = 8;
const MTU: u64 = 4096;
const HEADER: u64 = 64;

fn text(workload: &str) -> String {
    // Windows that never limit a sender.
    let transport = "{ kind = 'newreno', handshake = false, init_window = 1000000 }";
    text_of(workload, &format!("transport = {transport}\nqdisc = {{ kind = 'droptail', limit = 'unlimited' }}"))
}

fn text_of(workload: &str, system: &str) -> String {
    let net = format!("[topology]\nkind = 'star'\nhosts = {HOSTS}\nrate = '100Gbps'\ndelay = '500ns'\n");
    let own = format!("[workload.w]\nkind = 'collective'\n{workload}\n");
    format!("mtu = '{MTU}B'\nheader = '{HEADER}B'\n{net}{own}[[system]]\n{system}\n")
}

/// Returns the time in ps in which a host sends `bytes` of payload in messages of `messages`, and the ACKs for as many
/// packets that it receives.
fn wire_ps(bytes: u64) -> f64 {
    let packets = bytes.div_ceil(MTU - HEADER);
    (bytes + 2 * packets * HEADER) as f64 * 80.0
}

/// The time in ps of the first bit from host to host: two cables, and a full packet that the switch stores and forwards.
const LATENCY_PS: f64 = 1_000_000.0 + (MTU * 80) as f64;

/// The time of a bare header from host to host: two cables, and the header twice.
const ANSWER_PS: f64 = 1_000_000.0 + (2 * HEADER * 80) as f64;

fn assert_close(found: u64, expected: f64, what: &str) {
    let ratio = found as f64 / expected;
    assert!((0.99..1.01).contains(&ratio), "{what}: {ratio} times {expected} ps");
}

/// 2(n-1) steps of S/n bytes, each as long as a message alone. At the end a rank waits until it knows that its own last
/// message has arrived.
#[test]
fn a_ring_takes_the_time_of_its_steps() {
    let (n, sizes) = (HOSTS, sized(vec![1, 8, 64], vec![1, 8, 64, 256, 1000]));
    for megabytes in sizes {
        let bytes = megabytes * 1_000_000;
        for (op, steps) in [("all_reduce", 2 * (n - 1)), ("all_gather", n - 1), ("reduce_scatter", n - 1)] {
            let outcome = run(&text(&format!("op = '{op}'\nalgorithm = 'ring'\nbytes = '{bytes}B'\nchunk = '1GB'")));
            let expected = steps as f64 * (wire_ps(bytes / n) + LATENCY_PS) + ANSWER_PS;
            assert_close(outcome.tasks[0].time_ps().unwrap(), expected, &format!("{op} of {megabytes} MB"));
        }
    }
}

/// With messages that are short next to a step, the next one always waits at its sender: a rank sends all its bytes without a
/// gap, over one queue pair to the next rank, or over a queue pair for each channel.
#[test]
fn messages_of_a_queue_pair_fill_the_link() {
    let bytes = 8_000_000;
    for (queue_pairs, ports) in [("peer", "message"), ("peer", "peer"), ("port", "channel")] {
        for (chunk, channels) in [(8_000, 1), (8_000, 4), (50_000, 1), (50_000, 4)] {
            let workload = format!(
                "op = 'all_reduce'\nalgorithm = 'ring'\nbytes = '{bytes}B'\nchunk = '{chunk}B'\nchannels = {channels}\nports = '{ports}'"
            );
            let system = format!("transport = {{ kind = 'dcqcn', queue_pairs = '{queue_pairs}' }}\nbuffer = 'pfc'");
            let outcome = run(&text_of(&workload, &system));
            let steps = 2 * (HOSTS - 1);
            let messages = steps * (bytes / HOSTS).div_ceil(chunk * channels) * channels;
            let expected = messages as f64 * wire_ps(steps * bytes / HOSTS / messages) + LATENCY_PS + ANSWER_PS;
            let what = format!("{queue_pairs}, {ports}, {channels} channels, {chunk} bytes");
            assert_close(outcome.tasks[0].time_ps().unwrap(), expected, &what);
            assert_eq!(outcome.flows.iter().map(|flow| flow.retx_packets).sum::<u64>(), 0, "{what}");
        }
    }
}

/// HPCC sends at 95 % of the rate of the link, telemetry and ACKs with telemetry included, if its window does not limit it.
/// ACKs wait behind data of the ring, so that the default window, a round trip in an idle network, would.
#[test]
fn hpcc_fills_its_share_of_the_link() {
    let (bytes, header) = (8_000_000, HEADER + 42);
    for (chunk, options) in [(7_980, "window = 'none'"), (50_000, "window = 'none'"), (7_980, "base_rtt = '4us'")] {
        let workload = format!("op = 'all_reduce'\nalgorithm = 'ring'\nbytes = '{bytes}B'\nchunk = '{chunk}B'\nchannels = 1");
        let system = format!("transport = {{ kind = 'hpcc', queue_pairs = 'peer', {options} }}\nbuffer = 'pfc'");
        let outcome = run(&text_of(&workload, &system));
        let sent: u64 =
            outcome.flows.iter().map(|flow| flow.size_bytes + 2 * header * flow.size_bytes.div_ceil(MTU - header)).sum();
        let expected = (sent / HOSTS) as f64 * 80.0 / 0.95;
        assert_close(outcome.tasks[0].time_ps().unwrap(), expected, &format!("{options}, {chunk} bytes"));
    }
}

/// n-1 messages of S/n bytes, one after another or all at once. One after another, a rank waits until it knows that its own
/// message has arrived.
#[test]
fn an_all_to_all_takes_the_time_of_its_bytes() {
    let (n, sizes) = (HOSTS, sized(vec![1, 8, 64], vec![1, 8, 64, 256, 1000]));
    for megabytes in sizes {
        let bytes = megabytes * 1_000_000;
        let of = |algorithm: &str| {
            let outcome = run(&text(&format!("op = 'all_to_all'\nalgorithm = '{algorithm}'\nbytes = '{bytes}B'\nchunk = '1GB'")));
            outcome.tasks[0].time_ps().unwrap()
        };
        let steps = (n - 1) as f64;
        assert_close(of("pairwise"), steps * (wire_ps(bytes / n) + LATENCY_PS + ANSWER_PS), &format!("pairwise, {megabytes} MB"));
        assert_close(of("direct"), steps * wire_ps(bytes / n) + LATENCY_PS + ANSWER_PS, &format!("direct, {megabytes} MB"));
    }
}

/// Between two iterations each rank computes for 30 us after its own end.
#[test]
fn iterations_follow_one_another() {
    let outcome = run(&text("bytes = '1MB'\niterations = 3\ncompute = '30us'"));
    let (computations, collectives): (Vec<_>, Vec<_>) = outcome.tasks.iter().partition(|task| task.collective.is_none());
    let times: Vec<_> = collectives.iter().map(|task| (task.iteration, task.parts, task.collective.unwrap().operation)).collect();
    assert_eq!(times, [0, 1, 2].map(|iteration| (iteration, HOSTS as u32, "all_reduce")));
    let times: Vec<_> = computations.iter().map(|task| (task.iteration, task.parts, task.name.as_str())).collect();
    assert_eq!(times, [1, 2].map(|iteration| (iteration, HOSTS as u32, "compute")));
    for pair in collectives.windows(2) {
        let parts = |group| outcome.parts.iter().filter(move |part| part.group_id == group);
        for (before, after) in parts(pair[0].group_id).zip(parts(pair[1].group_id)) {
            assert_eq!(before.rank, after.rank);
            // A rank knows the end of its own message when an answer could have come back. The time in which it computes
            // counts from the end.
            let late = (before.finish_ps.unwrap() + 30_000_000).checked_sub(after.start_ps.unwrap());
            assert!(late.is_some_and(|late| late as f64 <= ANSWER_PS), "{late:?}");
        }
        assert_eq!(pair[0].finish_ps, parts(pair[0].group_id).map(|part| part.finish_ps).max().unwrap());
    }
    let moved = outcome.tasks[0].bus_bandwidth_bps().unwrap() * outcome.tasks[0].time_ps().unwrap() as f64 / 8e12;
    assert!((moved - 1_750_000.0).abs() < 1.0, "2 (n - 1) / n of a megabyte, but {moved} bytes");
}

/// The time line is that of the whole run, also if parts of the run are simulated on several threads.
#[test]
fn parts_of_a_run_have_one_time_line() {
    let net = "[topology]\nkind = 'leaf_spine'\nleaves = 4\nhosts_per_leaf = 2\nspines = 2\nhost_rate = '100Gbps'\n";
    let own = "[workload.w]\nkind = 'collective'\nbytes = '300KB'\niterations = 2\ncompute = '5us'\n";
    let plan = plan(&format!("{net}{own}{}", system("dctcp", "100pkt")));
    let one = run_point(&plan.points[0]);
    // Two collectives, and the computations between them.
    assert_eq!((one.tasks.len(), one.parts.len()), (3, 24));
    assert_equal(&one, &run_in_parts(&plan.points[0], 4, 2), "four parts");
}

/// A broadcast along a chain of n ranks, in order: the last of M messages arrives at the last rank after M + n - 2 times of a
/// message. Each message begins when the one before it has arrived, a few per cent later. Eight messages at a time would take
/// 60 % more.
#[test]
fn a_broadcast_sends_its_messages_in_order() {
    let (chunk, messages) = (524_288, 40);
    let workload = format!("op = 'broadcast'\nbytes = '{}B'", chunk * messages);
    let in_order = (messages + HOSTS - 2) as f64 * wire_ps(chunk);
    let systems = ["transport = 'dcqcn'\nbuffer = 'pfc'", "transport = 'swift'", "transport = 'ndp'\nqdisc = 'trim'"];
    for text in systems.map(|system| text_of(&workload, system)).into_iter().chain([text(&workload)]) {
        let ratio = run(&text).tasks[0].time_ps().unwrap() as f64 / in_order;
        assert!((1.0..1.06).contains(&ratio), "{ratio}\n{text}");
    }
}

/// A topology file of SimAI: each GPU has a link to the NVSwitch of its server, and one to the only switch of the network.
fn servers(servers: u32, gpus: u32) -> String {
    let (hosts, rack) = (servers * gpus, servers * gpus + servers);
    let switches: Vec<String> = (hosts..=rack).map(|node| node.to_string()).collect();
    let mut text = format!("{} {gpus} {servers} 1 {} H100\n{}\n", rack + 1, 2 * hosts, switches.join(" "));
    for gpu in 0..hosts {
        text += &format!("{gpu} {} 2400Gbps 0.000025ms 0\n", hosts + gpu / gpus);
        text += &format!("{gpu} {rack} 100Gbps 0.0005ms 0\n");
    }
    text
}

/// Messages within a server take its NVSwitch, although the way over the switch of the rack has as many links: an all-reduce takes
/// the same time as without the slow links.
#[test]
fn messages_within_a_server_take_its_own_switch() {
    let systems = [
        ("ecmp", "transport = 'dcqcn'\nbuffer = 'pfc'"),
        (
            "spraying",
            "transport = { kind = 'newreno', init_window = 10000 }\nrouter = 'spray'\nqdisc = { kind = 'droptail', limit = 'unlimited' }",
        ),
        ("uet", "transport = 'uet'"),
    ];
    for (count, gpus) in [(1, 2), (2, 8)] {
        let own = format!("op = 'all_reduce'\nbytes = '64MB'\nranks = {gpus}");
        for (name, system) in systems {
            let time = |text: &str| {
                let path = crate::common::file("servers.txt", text);
                let outcome = run(&format!(
                    "mtu = '4096B'\n[topology]\nkind = 'hpcc'\npath = '{path}'\n[workload.w]\nkind = 'collective'\n{own}\n[[system]]\n{system}\n"
                ));
                outcome.tasks[0].time_ps().unwrap()
            };
            let alone = time(&only_nvswitch(gpus));
            assert_close(time(&servers(count, gpus)), alone as f64, &format!("{count} servers of {gpus}, {name}"));
        }
    }
}

/// A server of GPUs with an NVSwitch and no other network.
fn only_nvswitch(gpus: u32) -> String {
    let mut text = format!("{} {gpus} 1 0 {gpus} H100\n{gpus}\n", gpus + 1);
    (0..gpus).for_each(|gpu| text += &format!("{gpu} {gpus} 2400Gbps 0.000025ms 0\n"));
    text
}

//! Whole transports as plug-ins.

use crate::common::assert_equal;
use crate::{c, changed_c, example, folder, load, outcome, root, rust, template_of};
use scenario::Plan;
use sim::{Outcome, RunError};

/// Stop and wait in C.
pub fn stop_and_wait() -> String {
    template_of("whole_transport", "c")
}

/// The text of a section of docs/plugins.md.
pub fn section(heading: &str) -> String {
    let page = std::fs::read_to_string(root().join("docs/plugins.md")).unwrap();
    let after = page.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("no section {heading}")).1;
    let level = heading.split(' ').next().unwrap();
    let end = (2..=level.len()).filter_map(|n| after.find(&format!("\n{} ", "#".repeat(n)))).min();
    after[..end.unwrap_or(after.len())].to_owned()
}

/// Flows between all hosts of racks, with losses.
const MIXED: &str =
    "end = '200ms'\n[topology]\nkind = 'leaf_spine'\nloss = 0.002\n[workload.web]\nkind = 'poisson'\nflows = 200\nload = 0.5\n";

fn plan(net: &str, transport: &str) -> Plan {
    let text = format!(
        "{net}[[system]]\ntransport = {{ kind = 'plugin', {transport} }}\nqdisc = {{ kind = 'droptail', limit = '400pkt' }}\n"
    );
    load(&text).unwrap_or_else(|problems| panic!("{problems}"))
}

fn finished(outcome: &Outcome) -> usize {
    outcome.flows.iter().filter(|flow| flow.finish_ps.is_some()).count()
}

#[test]
fn stop_and_wait_in_c_and_in_rust_give_the_same_bytes() {
    let in_c = c("stop_and_wait", &stop_and_wait());
    let in_rust = rust("rust_stop_and_wait", &template_of("whole_transport", "rust"));
    let reference = outcome(&plan(MIXED, &format!("path = '{in_c}', rto = '1ms'")), 1).unwrap();
    let repeats: u64 = reference.flows.iter().map(|flow| flow.counts[0]).sum();
    assert!(reference.counters.events > 50_000 && repeats > 10, "{} {repeats}", reference.counters.events);
    for (path, threads) in [(&in_c, 2), (&in_rust, 1), (&in_rust, 2)] {
        let outcome = outcome(&plan(MIXED, &format!("path = '{path}', rto = '1ms'")), threads).unwrap();
        assert_eq!(outcome.threads, threads as u32);
        assert_equal(&reference, &outcome, &format!("{path} on {threads} threads"));
    }
}

/// Each packet waits for the ACK of the packet before it: a round trip of store and forward.
#[test]
fn stop_and_wait_takes_a_round_trip_for_each_packet() {
    let path = c("round_trips", &stop_and_wait());
    let net = "[topology]\nkind = 'star'\nhosts = 2\nrate = '10Gbps'\ndelay = '1us'\n[workload.one]\nkind = 'incast'\nsenders = 1\nsize = '14600B'\n";
    let plan = plan(net, &format!("path = '{path}'"));
    let outcome = outcome(&plan, 1).unwrap();
    let [flow] = &outcome.flows[..] else { panic!("one flow") };
    // Packets of 1500 and ACKs of 40 bytes at 0.8 ns a byte, over two links of 1 us.
    let (packet, ack) = (2 * (1_200_000 + 1_000_000), 2 * (32_000 + 1_000_000));
    assert_eq!(flow.finish_ps.unwrap() - flow.start_ps.unwrap(), 10 * packet + 9 * ack);
    assert_eq!((flow.tx_packets, flow.retx_packets, flow.counts.as_slice()), (10, 0, &[0][..]));
}

#[test]
fn the_receiver_driven_example_gives_the_same_bytes_as_a_library() {
    let library = example("transport");
    let reference = outcome(&plan(MIXED, "path = 'example_transport'"), 1).unwrap();
    let again: u64 = reference.flows.iter().map(|flow| flow.counts[0]).sum();
    assert_eq!((finished(&reference), reference.flows.len(), again > 0), (200, 200, true), "{again}");
    for (path, threads) in [("example_transport", 2), (&library, 1), (&library, 2)] {
        let outcome = outcome(&plan(MIXED, &format!("path = '{path}'")), threads).unwrap();
        assert_equal(&reference, &outcome, &format!("{path} on {threads} threads"));
    }
}

/// Twenty senders fill the link of the receiver until the last byte has arrived.
#[test]
fn an_incast_takes_the_time_of_its_bytes_on_the_link() {
    let text = section("### A receiver-driven transport");
    let scenario = text.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let outcome = outcome(&load(scenario).unwrap_or_else(|problems| panic!("{problems}")), 1).unwrap();
    assert_eq!(finished(&outcome), 20);
    let last = outcome.flows.iter().filter_map(|flow| flow.finish_ps).max().unwrap();
    let wire: u64 = outcome.flows.iter().map(|flow| flow.size_wire_bytes).sum();
    let ideal = wire * 800 + 2 * (1_200_000 + 1_000_000);
    assert!(last >= wire * 800 && last * 100 <= ideal * 103, "{last} and {ideal}");
    assert_eq!(outcome.flows.iter().map(|flow| flow.retx_packets).sum::<u64>(), 0);
}

const IN: &str = "end = '50ms'\n[topology]\nkind = 'star'\nhosts = 4\nloss = 0.01\n[workload.in]\nkind = 'incast'\nsenders = 3\nsize = '100KB'\n";

/// Whatever is not allowed ends the run with a message that names the function.
#[test]
fn transports_that_misbehave_end_the_run_with_an_error() {
    let cases: [(&str, &str, &str, &str); 13] = [
        (
            "t_more",
            "packet->payload, &delivery",
            "packet->payload + 1, &delivery",
            "failed in `on_packet`: it calls `deliver`, but this packet",
        ),
        ("t_early", "packet->offset, packet->payload", "0, packet->payload", "it calls `deliver`"),
        ("t_forged", "packet->offset = flow->acked", "packet->offset = UINT64_MAX - 5", "failed in `poll`: its packet of flow"),
        ("t_foreign", "packet->flow = number", "packet->flow = number ^ 1", "is not an end of flow"),
        ("t_none", "packet->flow = number", "packet->flow = 77", "is not an end of flow 77"),
        ("t_kind", ".kind = FLOWLOOM_ACK", ".kind = FLOWLOOM_TRIMMED", "has kind 8, which transports do not send"),
        ("t_short", "(packet->payload + host->header)", "host->header", "bytes on the wire"),
        ("t_flags", "FLOWLOOM_RETX : 0", "FLOWLOOM_RETX : 32", "has the flags 32"),
        ("t_rank", "packet->flow = number", "packet->rank = 3; packet->flow = number", "has the rank 3"),
        ("t_timer", "number, RTO, cx", "number, 9, cx", "it calls `arm`, but the kind of the timer is 9"),
        (
            "t_twice",
            "return cx->calls->close(",
            "cx->calls->close(cx->handle, packet->flow); return cx->calls->close(",
            "is closed",
        ),
        ("t_count", "number, 0, 1)", "number, 1, 1)", "and no counter 1"),
        (
            "t_fails",
            "make_ready(own, cx, flow);\n    return FLOWLOOM_OK",
            "make_ready(own, cx, flow);\n    return FLOWLOOM_FAILED",
            "failed in `on_flow`",
        ),
    ];
    for (name, old, new, why) in cases {
        let text = stop_and_wait().replace(old, new);
        assert_ne!(text, stop_and_wait(), "{name}");
        let plan = plan(IN, &format!("path = '{}', rto = '1ms'", changed_c(name, &text)));
        for threads in [1, 2] {
            match outcome(&plan, threads).unwrap_err() {
                RunError::Plugin(message) => {
                    assert!(message.contains(why) && message.contains(&format!("{name}.so")), "{name}: {message}")
                }
                other => panic!("{name}: {other}"),
            }
        }
    }
}

/// Extreme values are bounded: the run goes to its end, and the audit holds.
#[test]
fn transports_with_extreme_values_run_to_the_end() {
    let cases = [
        // Timers that never come, and timers in the past.
        ("t_never", "cx->now_ps + host->rto", "UINT64_MAX"),
        ("t_past", "cx->now_ps + host->rto", "cx->now_ps < 1000000 ? 0 : cx->now_ps + host->rto"),
        ("t_class", "packet->flow = number", "packet->prio = 255; packet->flow = number"),
        (
            "t_path",
            "packet->flow = number",
            "packet->path_tag = 40000; packet->route[0] = 200; packet->arrival_ps = UINT64_MAX; packet->flow = number",
        ),
        ("t_total", "number, 0, 1)", "number, 0, UINT64_MAX)"),
        (
            "t_sample",
            "sample->cwnd = (",
            "sample->srtt_ps = UINT64_MAX; sample->rate_bps = UINT64_MAX; sample->cwnd = UINT64_MAX; (void)(",
        ),
        // Nothing is delivered, or no flow is ever closed.
        ("t_lazy", "cx->calls->deliver(cx->handle", "delivery.next = packet->offset + packet->payload; (void)(cx->handle"),
        ("t_open", "return cx->calls->close(cx->handle, packet->flow)", "return cx->calls->disarm(cx->handle, packet->flow, RTO)"),
    ];
    for (name, old, new) in cases {
        let text = stop_and_wait().replace(old, new);
        assert_ne!(text, stop_and_wait(), "{name}");
        let plan = plan(IN, &format!("path = '{}', rto = '1ms'", changed_c(name, &text)));
        let outcomes = [1, 2].map(|threads| outcome(&plan, threads).unwrap_or_else(|e| panic!("{name}: {e}")));
        assert_equal(&outcomes[0], &outcomes[1], name);
        let all = if ["t_never", "t_lazy"].contains(&name) { 0..3 } else { 3..4 };
        assert!(all.contains(&finished(&outcomes[0])), "{name}: {}", finished(&outcomes[0]));
    }
}

#[test]
fn transports_that_do_not_fit_are_refused() {
    let cases = [
        ("t_size", ".name =", ".size = 8, .name =", "its table has 8 bytes"),
        ("t_calls", ".name =", ".sizes[6] = 8, .name =", "its `flowloom_transport_calls` has 8 bytes"),
        ("t_poll", ".poll = poll,", "", "no function `poll`"),
        ("t_uses", ".create = create", ".uses = 64, .create = create", "its `uses` is 64"),
        ("t_room", ".name =", ".room = 1, .name =", "its table has"),
        ("t_key", "\"rto\"", "\"path\"", "already taken"),
    ];
    let load_with = |path: &str| load(&format!("{IN}[[system]]\ntransport = {{ kind = 'plugin', path = '{path}' }}\n"));
    for (name, old, new, why) in cases {
        let text = stop_and_wait().replacen(old, new, 1);
        assert_ne!(text, stop_and_wait(), "{name}");
        let message = load_with(&changed_c(name, &text)).unwrap_err();
        assert!(message.contains(why) && message.contains(&format!("{name}.so")), "{name}: {message}");
    }
    // The parameters of the TCP machine are not those of whole transports.
    let message =
        load(&format!("{IN}[[system]]\ntransport = {{ kind = 'plugin', path = 'example_transport', min_rto = '1ms' }}\n"));
    assert!(message.unwrap_err().contains("unknown key `min_rto`"));
    let whole = plan(IN, "path = 'example_transport', timeout = '2ms'");
    let resolved = whole.points[0].resolved();
    assert!(resolved.contains("path = \"example_transport\"\ntimeout = \"2ms\"") && !resolved.contains("min_rto"), "{resolved}");
    assert!(folder().exists());
}

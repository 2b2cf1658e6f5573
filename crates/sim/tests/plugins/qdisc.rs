//! Queue disciplines as plug-ins: a built-in one as a plug-in gives the same bytes; the template of `flowloom new`
//! divides a link as its paper says; what does not fit is refused, and what has no meaning ends the run.

use super::*;
use base::{FlowId, Time};
use fabric::qdisc::{AnyQdisc, Qdisc as _};
use fabric::refused::Refused;
use proto::Packet;

fn drr() -> String {
    template_of("qdisc", "c")
}

/// A marking queue in C: the rule of `ecn_threshold`.
const MARKING: &str = r#"
#include "flowloom.h"
struct own { uint64_t limit, mark; };
static const flowloom_parameter parameters[] = {
    {"mark", "20", "0", "1000", "DCTCP", "Packets that may wait without a mark.", FLOWLOOM_INTEGER, 0},
};
static int32_t create(const void *context, void *own, const flowloom_port *port, const flowloom_value *values) {
    struct own *o = own;
    (void)context;
    o->limit = port->limit_packets;
    o->mark = values[0].integer;
    return FLOWLOOM_OK;
}
static int32_t enqueue(void *own, uint64_t now, const flowloom_view *view, const flowloom_packet *packet, flowloom_place *place) {
    const struct own *o = own;
    (void)now, (void)packet;
    if (view->packets + 1 > o->limit)
        return FLOWLOOM_DROP;
    place->mark = view->packets + 1 > o->mark;
    return FLOWLOOM_OK;
}
static const flowloom_qdisc table = {
    .head = {FLOWLOOM_QDISC_HEAD, .name = "marking", .summary = "marks", .source = "none",
             .parameters = parameters, .parameter_count = 1, .own_size = sizeof(struct own)},
    .queues = 1, .marks = 1, .create = create, .enqueue = enqueue,
};
const flowloom_head *flowloom_plugin(void) { return &table.head; }
"#;

/// The benchmark of DCTCP with flows that end and another queue discipline. At the end of a run that is cut short, the
/// engine's own queues count packets that wait as sent, and disciplines do not.
fn bench_with(qdisc: &str) -> Plan {
    let text = std::fs::read_to_string(root().join("bench/dctcp.toml")).unwrap();
    let old = "kind = \"ecn_threshold\", limit = \"100pkt\", mark = \"65pkt\"";
    assert!(text.contains(old));
    let flows = "kind = \"poisson\"\nflows = 500\nload = 0.9\nsize = \"fixed\"\nmean = \"150KB\"";
    let text = text.replace("10ms", "1s").replace("kind = \"long\"", flows);
    load(&text.replace(old, qdisc)).unwrap_or_else(|problems| panic!("{problems}"))
}

#[test]
fn a_marking_queue_as_a_plug_in_gives_the_same_bytes() {
    let mut builtin = outcome(&bench_with("kind = \"ecn_threshold\", limit = \"20pkt\", mark = \"9pkt\""), 1).unwrap();
    assert!(builtin.complete && builtin.ports.iter().map(|port| port.marks).sum::<u64>() > 1000);
    assert!(builtin.ports.iter().map(|port| port.drops).sum::<u64>() > 0);
    // The table of ports has the threshold of a built-in discipline only. At the ends of the window, the engine's own queues
    // round the waiting time of a packet, whose parts disciplines round.
    let strip = |outcome: &mut Outcome| {
        outcome.ports.iter_mut().for_each(|port| (port.mark_bytes, port.window_mean_queue_bytes) = (None, None));
    };
    strip(&mut builtin);
    for path in ["example", &c("marking", MARKING), &example("qdisc")] {
        let plan = bench_with(&format!("kind = \"plugin\", path = \"{path}\", limit = \"20pkt\", mark = 9"));
        for threads in [1, 2] {
            let mut outcome = outcome(&plan, threads).unwrap();
            assert_eq!(outcome.threads, threads as u32);
            strip(&mut outcome);
            assert_equal(&builtin, &outcome, &format!("{path} on {threads} threads"));
        }
    }
}

const PORTS: &str = "end = '1s'\n[topology]\nkind = 'leaf_spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 4\n\
    [workload.in]\nkind = 'incast'\nsenders = 7\nsize = '300KB'\n";

fn ports(qdisc: &str) -> String {
    format!(
        "{PORTS}[[system]]\nlabel = 'P'\ntransport = 'newreno'\nnic = 'pull'\npolicy = {{ kind = 'pias', thresholds = '3KB,20KB' }}\nqdisc = {{ kind = 'plugin', {qdisc} }}\n"
    )
}

fn run_ports(qdisc: &str) -> Result<Plan, String> {
    load(&ports(qdisc))
}

fn built(plan: &Plan) -> AnyQdisc {
    let spec = &plan.points[0].run;
    let id = (0..).map(base::LinkId).find(|id| spec.net.host(spec.net.link(*id).from).is_none()).unwrap();
    let (params, env) = spec.port(id);
    params.build(&env)
}

fn packet(prio: u8, n: u64, wire_len: u16) -> Packet {
    Packet { prio, offset: n, wire_len, ..Packet::data(FlowId(prio.into()), 0, 1460, 40) }
}

/// Two queues that have packets differ by less than a quantum and a packet, whatever the lengths of their packets:
/// each has sent its quantum as often as the other or once more, and what it has kept is less than a packet.
#[test]
fn deficit_round_robin_divides_a_link_within_a_packet() {
    let (in_c, in_rust) = (c("drr", &drr()), rust("rust_drr", &template_of("qdisc", "rust")));
    for (path, quantum) in [(&in_c, 1500u64), (&in_c, 4000), (&in_rust, 1500), (&in_rust, 4000)] {
        let plan = run_ports(&format!("path = '{path}', limit = 'unlimited', quantum = '{quantum}B'")).unwrap();
        let mut port = built(&plan);
        // Queue 5 is empty. Lengths differ from queue to queue and from packet to packet.
        let queues = [0u8, 1, 2, 3, 4, 6, 7];
        let mut left = [0u64; 8];
        for n in 0..200 {
            for prio in queues {
                let len = 100 + 170 * u16::from(prio) + 37 * (n % 5) as u16;
                left[usize::from(prio)] += 1;
                assert!(port.enqueue(&mut packet(prio, n, len), Time(n), &mut Refused::new()));
            }
        }
        let (mut sent, mut next) = ([0u64; 8], [0u64; 8]);
        while queues.iter().all(|prio| left[usize::from(*prio)] > 0) {
            let packet = port.dequeue(Time(1000)).unwrap();
            let prio = usize::from(packet.prio);
            assert_eq!(packet.offset, next[prio], "in order of arrival");
            next[prio] += 1;
            left[prio] -= 1;
            sent[prio] += u64::from(packet.wire_len);
            let bytes = queues.map(|prio| sent[usize::from(prio)]);
            let apart = bytes.iter().max().unwrap() - bytes.iter().min().unwrap();
            assert!(apart < quantum + 1500, "{sent:?}");
        }
        assert!(sent.iter().max().unwrap() > &(8 * quantum));
        let turns = port.counts()[0];
        assert!(turns * quantum >= sent.iter().sum::<u64>() && turns > 8);
        // Without packets of others, a queue is served at once.
        while port.dequeue(Time(1000)).is_some() {}
        assert!(port.enqueue(&mut packet(5, 0, 1500), Time(2000), &mut Refused::new()));
        assert_eq!(port.dequeue(Time(2000)).map(|packet| packet.prio), Some(5));
        assert_eq!(port.backlog().packets, 0);
    }
}

#[test]
fn a_full_port_drops_the_last_packet_of_its_longest_queue() {
    for path in [c("drr_full", &drr()), rust("rust_drr_full", &template_of("qdisc", "rust"))] {
        let mut port = built(&run_ports(&format!("path = '{path}', limit = '3pkt'")).unwrap());
        let mut drops = Vec::new();
        for (n, prio) in [2, 2, 6, 6, 2, 7].into_iter().enumerate() {
            let mut refused = Refused::new();
            port.enqueue(&mut packet(prio, n as u64, 1500), Time(0), &mut refused);
            drops.extend(refused.dropped().map(|packet| packet.offset));
        }
        // Ties go to the smaller number: queues 2 and 6 have two packets each, then queue 2 has two.
        assert_eq!(drops, [1, 4, 3], "{path}");
    }
}

/// Priorities of a policy in queues of a plug-in, with a link that fails: the audit holds and the number of threads does
/// not matter.
#[test]
fn a_run_with_a_plug_in_is_the_same_on_two_threads() {
    let (in_c, in_rust) = (c("drr_runs", &drr()), rust("rust_drr_runs", &template_of("qdisc", "rust")));
    let failing = "[[event]]\nlink = ['leaf0', 'spine0']\nat = '200us'\nuntil = '900us'\n";
    for more in ["", failing] {
        let plan = |path| {
            let text = ports(&format!("path = '{path}', limit = '20pkt'"));
            load(&format!("{text}{more}")).unwrap_or_else(|e| panic!("{e}"))
        };
        let one = outcome(&plan(&in_c), 1).unwrap();
        assert!(one.flows.iter().all(|flow| flow.finish_ps.is_some()) && one.counters.dropped_packets > 0);
        assert!(one.port_counters.iter().any(|counter| counter.column() == "mine.turns"), "{:?}", one.port_counters);
        let turns: u64 = one.ports.iter().map(|port| port.counts[0]).sum();
        assert!(turns > 100, "{turns}");
        for path in [&in_c, &in_rust] {
            let two = outcome(&plan(path), 2).unwrap();
            assert_eq!(two.threads, 2);
            assert_equal(&one, &two, &format!("{path}{more}"));
        }
    }
}

#[test]
fn a_plug_in_of_nics_only_is_in_the_manifest_and_runs() {
    let path = c("nics", MARKING);
    let text = format!(
        "{PORTS}[[system]]\ntransport = 'newreno'\nqdisc = 'droptail'\nnic = {{ qdisc = {{ kind = 'plugin', path = '{path}', mark = 5 }} }}\n"
    );
    let plan = load(&text).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(plan.inputs().keys().collect::<Vec<_>>(), [&path]);
    assert!(plan.resolved().contains("native code, which runs with your rights"), "{}", plan.resolved());
    assert!(outcome(&plan, 1).is_ok());
    // The NICs have the plug-in of the switches, with its values and without its limit.
    let plan = run_ports(&format!("path = '{path}', mark = 7, limit = '9pkt'")).unwrap();
    let system = &plan.points[0].run.system;
    let shown = |params: &fabric::qdisc::AnyParams| {
        params.show().into_iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>()
    };
    assert_eq!(shown(&system.qdisc), ["limit=9pkt", &format!("path={path}"), "mark=7"]);
    assert_eq!(shown(&system.nic.qdisc), ["limit=unlimited", &format!("path={path}"), "mark=7"]);
}

#[test]
fn disciplines_that_do_not_fit_are_refused() {
    let cases = [
        ("q_version", ".name", ".version = 7, .name", "version 7 of plug-ins"),
        ("q_size", ".name", ".size = 8, .name", "its table has 8 bytes"),
        ("q_view", ".name", ".sizes[2] = 4, .name", "its `flowloom_view` has 4 bytes"),
        ("q_missing", "    .enqueue = enqueue,", "", "no function `enqueue`"),
        ("q_queues", ".queues = QUEUES", ".queues = 65", "its `queues` is 65: 1 to 64 are allowed"),
        ("q_taken", "\"quantum\", \"1500B\"", "\"limit\", \"1500B\"", "already taken"),
        ("q_counters", "    .count = count,", "", "no function `count`"),
    ];
    for (name, old, new, why) in cases {
        let text = drr().replacen(old, new, 1);
        assert_ne!(text, drr(), "{name}");
        let message = run_ports(&format!("path = '{}'", changed_c(name, &text))).unwrap_err();
        assert!(message.contains(why) && message.contains(&format!("{name}.so")), "{name}: {message}");
    }
    // Plug-ins of other rooms, in both directions.
    let message = run_ports(&format!("path = '{}'", c("q_other", &template()))).unwrap_err();
    assert!(message.contains("it is congestion control, a `transport`, and not for this part"), "{message}");
    let message = load(&with(&format!("path = '{}'", c("t_other", &drr())))).unwrap_err();
    assert!(message.contains("it is a queue discipline, a `qdisc`, and not for this part"), "{message}");
    let message = run_ports(&format!("path = '{}', quantum = '1B'", c("q_range", &drr()))).unwrap_err();
    assert!(message.contains("`quantum` goes from 64B to 1MB"), "{message}");
}

#[test]
fn hostile_disciplines_end_the_run_with_an_error() {
    let cases = [
        ("h_empty", "*queue = d->turn;", "*queue = (d->turn + 1) % QUEUES;", "failed in `dequeue`: queue"),
        ("h_none", "*queue = d->turn;", "*queue = 1u << 31;", "failed in `dequeue`: the port has no queue 2147483648: it has 8"),
        ("h_silent", "*queue = d->turn;", "", "failed in `dequeue`: the port has no queue 4294967295"),
        ("h_place", "QUEUES ? packet->prio", "0 ? packet->prio", ""),
        ("h_result", "QUEUES - 1;\n    return FLOWLOOM_OK", "QUEUES - 1;\n    return 99", "failed in `enqueue`: it returned 99"),
        ("h_trim", "QUEUES - 1;\n    return FLOWLOOM_OK", "QUEUES - 1;\n    return FLOWLOOM_TRIM", "only data is trimmed"),
        (
            "h_fails",
            "QUEUES - 1;\n    return FLOWLOOM_OK",
            "QUEUES - 1;\n    return FLOWLOOM_FAILED",
            "(`h_fails.so`) failed in `enqueue`",
        ),
        ("h_evict", "*queue = longest;", "*queue = 77;", "failed in `evict`: the port has no queue 77"),
    ];
    for (name, old, new, why) in cases {
        let text = drr().replacen(old, new, 1);
        assert_ne!(text, drr(), "{name}");
        let plan = run_ports(&format!("path = '{}', limit = '20pkt'", changed_c(name, &text))).unwrap_or_else(|e| panic!("{e}"));
        for threads in [1, 2] {
            match outcome(&plan, threads) {
                Ok(_) if why.is_empty() => {}
                Err(RunError::Plugin(message)) if !why.is_empty() => assert!(message.contains(why), "{name}: {message}"),
                other => panic!("{name}: {:?}", other.map(|_| ())),
            }
        }
    }
    let text = drr().replacen("    d->quantum = values", "    return FLOWLOOM_FAILED;\n    d->quantum = values", 1);
    let message = run_ports(&format!("path = '{}'", changed_c("h_create", &text))).unwrap_err();
    assert!(message.contains("failed in `create`"), "{message}");
}

/// Whatever is merely extreme is bounded: the audit holds, and the limit is kept.
#[test]
fn extreme_disciplines_are_bounded() {
    let cases = [
        // No eviction although the port is full; all packets at the last rank, then at ranks of garbage.
        ("e_full", "    .evict = evict,", ""),
        (
            "e_rank",
            "    (void)own, (void)now, (void)view;",
            "    place->rank = packet->offset * UINT64_C(0x9E3779B97F4A7C15); (void)own, (void)now, (void)view;",
        ),
        // Marks that the table does not declare.
        (
            "e_marks",
            "    (void)own, (void)now, (void)view;",
            "    place->mark = ~0u; place->reserved = ~0u; (void)own, (void)now, (void)view;",
        ),
        // Data trimmed to nothing.
        (
            "e_trim",
            "QUEUES - 1;\n    return FLOWLOOM_OK",
            "QUEUES - 1;\n    return packet->kind == FLOWLOOM_DATA && view->packets > 3 ? FLOWLOOM_TRIM : FLOWLOOM_OK",
        ),
    ];
    for (name, old, new) in cases {
        let text = drr().replacen(old, new, 1);
        assert_ne!(text, drr(), "{name}");
        let plan = run_ports(&format!("path = '{}', limit = '20pkt'", changed_c(name, &text))).unwrap_or_else(|e| panic!("{e}"));
        let outcome = outcome(&plan, 1).unwrap();
        assert!(outcome.flows.iter().all(|flow| flow.finish_ps.is_some()), "{name}");
        assert_eq!(outcome.ports.iter().map(|port| port.marks).sum::<u64>(), 0, "{name}");
        let most = outcome.ports.iter().filter(|port| port.limit_bytes.is_some()).map(|port| port.max_queue_bytes).max();
        assert!(most.is_some_and(|most| most <= 20 * 1500 && most > 10 * 1500 || name == "e_trim"), "{name}: {most:?}");
    }
}

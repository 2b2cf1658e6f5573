//! Routers as plug-ins: built-in ones as plug-ins give the same bytes; the template of `flowloom new` keeps flowlets together;
//! what does not fit is refused, and what has no meaning ends the run.

use super::*;
use base::{FlowId, HostId, LinkId, NodeId, Slab, Time};
use fabric::router::{PortLoad, Ports, Router as _, SwitchCx};
use proto::{Flow, Packet};

fn flowlets() -> String {
    template_of("router", "c")
}

/// ECMP with the defaults of `ecmp`, for planned paths.
const ECMP: &str = r#"
#include "flowloom.h"
static int32_t choose(const void *own, const flowloom_hop *hop, const flowloom_candidate *candidates, uint64_t count, uint64_t *index) {
    uint32_t x = hop->hash ^ (uint32_t)hop->node;
    uint64_t region;
    (void)own, (void)candidates;
    if (hop->now_ps != FLOWLOOM_NEVER || hop->flow != FLOWLOOM_NEVER || candidates->waiting || candidates->busy)
        return FLOWLOOM_FAILED;
    x *= UINT32_C(0x9E3779B1);
    x ^= x >> 15;
    x *= UINT32_C(0x85EBCA77);
    x ^= x >> 13;
    region = (UINT64_C(1) << 32) / count;
    *index = x / region < count ? x / region : count - 1;
    return FLOWLOOM_OK;
}
static const flowloom_router table = {
    .head = {FLOWLOOM_ROUTER_HEAD, .name = "hashing", .summary = "hashes", .source = "RFC 2992"},
    .decides = FLOWLOOM_AHEAD, .choose = choose,
};
const flowloom_head *flowloom_plugin(void) { return &table.head; }
"#;

/// The benchmark of DCTCP, cut short, with another router.
fn bench_with(router: &str) -> Plan {
    let text = std::fs::read_to_string(root().join("bench/dctcp.toml")).unwrap();
    load(&format!("{}\nrouter = {router}\n", text.replace("10ms", "500us"))).unwrap_or_else(|problems| panic!("{problems}"))
}

fn same(builtin: &str, plugins: &[String]) {
    let wanted = outcome(&bench_with(builtin), 1).unwrap();
    assert!(wanted.counters.events > 100_000);
    for path in plugins {
        let plan = bench_with(&format!("{{ kind = \"plugin\", path = \"{path}\" }}"));
        for threads in [1, 2] {
            let found = outcome(&plan, threads).unwrap();
            assert_eq!(found.threads, threads as u32);
            assert_equal(&wanted, &found, &format!("{path} on {threads} threads"));
        }
    }
}

#[test]
fn planned_paths_of_a_plug_in_are_the_same() {
    same("{ kind = \"ecmp\" }", &[c("r_ecmp", ECMP)]);
}

#[test]
fn decisions_of_a_plug_in_at_switches_are_the_same() {
    same("{ kind = \"spray\", mode = \"round_robin\" }", &["example".to_owned(), example("router")]);
}

const NETWORK: &str = "end = '1s'\n[topology]\nkind = 'leaf_spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 4\n\
    [workload.web]\nkind = 'poisson'\nflows = 60\nload = 0.6\nsize = 'fixed'\nmean = '60KB'\n";

fn system(router: &str) -> String {
    format!("{NETWORK}[[system]]\nlabel = 'P'\ntransport = 'newreno'\nrouter = {{ kind = 'plugin', {router} }}\n")
}

fn run_with(router: &str) -> Result<Plan, String> {
    load(&system(router))
}

/// The next hops of packets that leave a leaf at these times, as (time in ns, flow, bytes that wait at both ports).
fn chosen(plan: &Plan, packets: &[(u64, u32, [u64; 2])]) -> Vec<usize> {
    let spec = &plan.points[0].run;
    let healthy = fabric::routes::Routes::new(&spec.net, &[]);
    let envs = spec.envs(&healthy);
    let mut router = spec.system.router.build(&envs.router());
    let at = NodeId(spec.net.nodes().iter().position(|node| node.name == "leaf0").unwrap() as u32);
    let candidates: Vec<LinkId> = healthy.candidates(at, HostId(7)).to_vec();
    assert_eq!(candidates.len(), 2);
    let flow = |n| Flow { src: HostId(0), dst: HostId(7), src_port: 2000 + n as u16, ..proto::kit::script::flow(n, 1460) };
    let flows: Vec<Flow> = (0..4).map(flow).collect();
    let decide = |(now, flow, waiting): &(u64, u32, [u64; 2])| {
        let loads = waiting.map(|waiting_bytes| PortLoad { waiting_bytes, busy: waiting_bytes > 0 });
        let mut cx = SwitchCx {
            now: Time(*now * 1000),
            at,
            from: None,
            flows: &flows,
            ext: &mut Slab::default(),
            net: &spec.net,
            routes: &healthy,
            ports: Ports::new(&[]).with_loads(&loads),
            timers: None,
            made: &mut Vec::new(),
            payload_bytes: 0,
            moved: None,
        };
        router.decide(&mut Packet::data(FlowId(*flow), 0, 1460, 40), &candidates, &mut cx) as usize
    };
    packets.iter().map(decide).collect()
}

#[test]
fn flowlets_stay_together_and_begin_at_the_shorter_queue() {
    let packets = [
        (0, 0, [500, 9000]),      // the shorter queue
        (1_000, 0, [9000, 0]),    // the flowlet goes on
        (11_000, 0, [9000, 0]),   // a gap of exactly 10 us does not end it
        (11_500, 1, [9000, 100]), // another flow
        (21_001, 0, [9000, 0]),   // a new flowlet
        (21_002, 1, [0, 9000]),
    ];
    for path in [c("flowlets", &flowlets()), rust("rust_flowlets", &template_of("router", "rust"))] {
        let plan = run_with(&format!("path = '{path}', gap = '10us'")).unwrap();
        assert_eq!(chosen(&plan, &packets), [0, 0, 0, 1, 1, 1], "{path}");
    }
}

#[test]
fn a_run_with_flowlets_is_the_same_on_two_threads_and_survives_failures() {
    let (in_c, in_rust) = (c("r_runs", &flowlets()), rust("rust_r_runs", &template_of("router", "rust")));
    let failing = "[[event]]\nlink = ['leaf0', 'spine0']\nat = '200us'\nuntil = '900us'\n";
    for more in ["", failing] {
        let plan =
            |path| load(&format!("{}{more}", system(&format!("path = '{path}', gap = '5us'")))).unwrap_or_else(|e| panic!("{e}"));
        let one = outcome(&plan(&in_c), 1).unwrap();
        assert!(one.flows.iter().all(|flow| flow.finish_ps.is_some()));
        for path in [&in_c, &in_rust] {
            let two = outcome(&plan(path), 2).unwrap();
            assert_eq!(two.threads, 2);
            assert_equal(&one, &two, &format!("{path}{more}"));
        }
    }
}

#[test]
fn routers_that_do_not_fit_are_refused() {
    let cases = [
        ("r_version", ".name", ".version = 7, .name", "version 7 of plug-ins"),
        ("r_hop", ".name", ".sizes[1] = 4, .name", "its `flowloom_hop` has 4 bytes"),
        ("r_missing", "    .decide = decide,", "", "no function `decide`"),
        ("r_decides", "FLOWLOOM_BOTH_WAYS", "9", "its `decides` is 9: 0 to 2 are allowed"),
        ("r_plans", "FLOWLOOM_BOTH_WAYS", "FLOWLOOM_AHEAD", "no function `choose`"),
        ("r_knows", ".name", ".knows = 1, .name", "its `counter_count` and `knows` must be 0"),
        ("r_taken", "\"gap\"", "\"path\"", "already taken"),
    ];
    for (name, old, new, why) in cases {
        let text = flowlets().replacen(old, new, 1);
        assert_ne!(text, flowlets(), "{name}");
        let message = run_with(&format!("path = '{}'", changed_c(name, &text))).unwrap_err();
        assert!(message.contains(why) && message.contains(&format!("{name}.so")), "{name}: {message}");
    }
    let message = run_with(&format!("path = '{}'", c("r_other", &template()))).unwrap_err();
    assert!(message.contains("it is congestion control, a `transport`, and not for this part"), "{message}");
    let flow = format!("engine = 'flow'\n{}", system(&format!("path = '{}'", c("r_fluid", &flowlets()))));
    assert!(load(&flow).unwrap_err().contains("the plug-in decides on single packets"));
}

#[test]
fn hostile_routers_end_the_run_with_an_error() {
    let ends = |name: &str, text: &str, why: &str| {
        let plan = run_with(&format!("path = '{}'", changed_c(name, text))).unwrap_or_else(|e| panic!("{e}"));
        for threads in [1, 2] {
            match outcome(&plan, threads) {
                Err(RunError::Plugin(message)) => assert!(message.contains(why), "{name}: {message}"),
                other => panic!("{name}: {:?}", other.map(|_| ())),
            }
        }
    };
    let decides = [
        ("rh_index", "*index = best;", "*index = count;", "failed in `decide`: there is no next hop 2: there are 2"),
        ("rh_huge", "*index = best;", "*index = UINT64_MAX - 1;", "no next hop 18446744073709551614"),
        ("rh_silent", "*index = best;", "", "no next hop 18446744073709551615"),
        ("rh_fails", "*index = best;", "return FLOWLOOM_FAILED;", "(`rh_fails.so`) failed in `decide`"),
        ("rh_result", "*index = best;", "return 12;", "(`rh_result.so`) failed in `decide`"),
    ];
    for (name, old, new, why) in decides {
        let text = flowlets().replacen(old, new, 1);
        assert_ne!(text, flowlets(), "{name}");
        ends(name, &text, why);
    }
    // While paths are planned, before the first event.
    let text = ECMP.replace("    return FLOWLOOM_OK;", "    *index = 7;\n    return FLOWLOOM_OK;");
    ends("rh_plan", &text, "failed in `choose`: there is no next hop 7: there are 2");
    let text = flowlets().replacen("    r->gap", "    return FLOWLOOM_FAILED;\n    r->gap", 1);
    let message = run_with(&format!("path = '{}'", changed_c("rh_create", &text))).unwrap_err();
    assert!(message.contains("failed in `create`"), "{message}");
}

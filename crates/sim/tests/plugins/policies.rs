//! Policies as plug-ins.

use crate::common::assert_equal;
use crate::transports::stop_and_wait;
use crate::{c, changed_c, example, load, outcome, template_of};
use scenario::Plan;
use sim::RunError;

/// PIAS in C.
fn pias() -> String {
    template_of("policy", "c")
}

/// Long flows of all hosts in a short time, with losses.
const LONG: &str = "end = '4ms'\n[topology]\nkind = 'leaf_spine'\nloss = 0.002\n[workload.all]\nkind = 'long'\n";
const SYSTEM: &str = "[[system]]\ntransport = { kind = 'dctcp', handshake = false, min_rto = '200us', init_rto = '200us' }\n\
                      qdisc = { kind = 'strict', classes = 3, limit = '30pkt', mark = '20pkt' }\n";

fn plan(policy: &str) -> Plan {
    load(&format!("{LONG}{SYSTEM}nic = 'ns2'\npolicy = {{ {policy} }}\n")).unwrap_or_else(|problems| panic!("{problems}"))
}

#[test]
fn the_scenario_of_the_docs_runs() {
    let scenario = crate::transports::section("## Policies");
    let scenario = scenario.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let plan = load(scenario).unwrap_or_else(|problems| panic!("{problems}"));
    assert_eq!(plan.points.len(), 2);
}

#[test]
fn pias_as_a_plug_in_gives_the_same_bytes() {
    let (in_c, in_rust) = (c("pias", &pias()), example("policy"));
    // (parameters of PIAS, of its plug-ins)
    for (own, of_plugins) in [
        ("", ""),
        (", count = 'sent', aging = true, aging_after = 1", ", sent = true, aging = 1"),
        (", aging = true, aging_after = 2", ", aging = 2"),
    ] {
        let builtin = outcome(&plan(&format!("kind = 'pias', thresholds = '30pkt, 300pkt'{own}")), 1).unwrap();
        let timeouts: u32 = builtin.flows.iter().map(|flow| flow.timeouts).sum();
        assert!(builtin.counters.events > 100_000 && timeouts > 5, "{} {timeouts}", builtin.counters.events);
        for path in ["example", &in_c, &in_rust] {
            let plan = plan(&format!("kind = 'plugin', path = '{path}'{of_plugins}"));
            for threads in if own.is_empty() { 1..=2 } else { 1..=1 } {
                assert_equal(&builtin, &outcome(&plan, threads).unwrap(), &format!("{path}{own} on {threads} threads"));
            }
        }
    }
    // Classes have an effect, and imply ports that serve them.
    let other = outcome(&plan("kind = 'plugin', path = 'example', first = '1MB', classes = 2"), 1).unwrap();
    let usual = outcome(&plan("kind = 'plugin', path = 'example'"), 1).unwrap();
    assert_ne!(other.counters.digest, usual.counters.digest);
    let implied =
        load(&format!("{LONG}[[system]]\ntransport = 'dctcp'\npolicy = {{ kind = 'plugin', path = '{in_c}' }}\n")).unwrap();
    let resolved = implied.resolved();
    assert!(
        resolved.contains("kind = \"strict\"") && resolved.contains("classes = 8") && resolved.contains("native code"),
        "{resolved}"
    );
}

/// What is not allowed ends the run with a message that names the function.
#[test]
fn policies_that_misbehave_end_the_run_with_an_error() {
    let set = "    packet->prio = 0;\n";
    let cases: [(&str, &str, &str, &str); 13] = [
        (
            "p_length",
            set,
            "packet->wire_len = 9; return FLOWLOOM_OK;\n",
            "failed in `on_send`: it changes more of a packet of flow",
        ),
        ("p_flow", set, "packet->flow ^= 1; return FLOWLOOM_OK;\n", "it changes more"),
        ("p_payload", set, "packet->payload ^= 1; return FLOWLOOM_OK;\n", "it changes more"),
        ("p_flags", set, "packet->flags |= 32;\n", "it changes more"),
        ("p_marked", set, "packet->flags |= FLOWLOOM_CE;\n", "it changes more"),
        ("p_path", set, "packet->path_tag = 7;\n", "it changes more"),
        ("p_rank", set, "packet->rank = 7;\n", "it sets the rank 7, but `uses` does not declare ranks"),
        ("p_kind", set, "cx->calls->arm(cx->handle, packet->flow, 4, 0);\n", "it calls `arm`, but the kind of the timer is 4"),
        ("p_foreign", set, "cx->calls->terminate(cx->handle, 1 << 30);\n", "it calls `terminate`, but host"),
        ("p_ended", set, "cx->calls->terminate(cx->handle, packet->flow);\n", "it calls `terminate`, but flow"),
        ("p_count", set, "cx->calls->count(cx->handle, packet->flow, 0, 1);\n", "and no counter 0"),
        ("p_state", ".state_size = sizeof(struct flow)", ".state_size = 0", "it calls `state`, but its `state_size` is 0"),
        (
            "p_fails",
            "    const struct host *host = own;\n    packet",
            "    return FLOWLOOM_FAILED;\n    const struct host *host = own;\n    packet",
            "failed in `on_send`",
        ),
    ];
    for (name, old, new, why) in cases {
        let mut text = pias().replace(old, new);
        assert_ne!(text, pias(), "{name}");
        if name == "p_state" {
            text = text.replace("flow_of(cx, flow)->open = 1;", "if (flow_of(cx, flow)) flow_of(cx, flow)->open = 1;");
        }
        let plan = plan(&format!("kind = 'plugin', path = '{}'", changed_c(name, &text)));
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
fn policies_with_extreme_values_run_to_the_end() {
    let set = "    packet->prio = 0;\n";
    let cases = [
        ("p_class", set, "packet->prio = 255; return FLOWLOOM_OK;\n"),
        (
            "p_past",
            set,
            "cx->calls->arm(cx->handle, FLOWLOOM_NO_FLOW, 0, 0); cx->calls->arm(cx->handle, packet->flow, 3, UINT64_MAX);\n",
        ),
        ("p_ect", set, "packet->flags ^= FLOWLOOM_ECT;\n"),
        ("p_ranks", ".uses = FLOWLOOM_USES_CLASSES", ".uses = FLOWLOOM_USES_CLASSES | FLOWLOOM_USES_RANKS"),
    ];
    for (name, old, new) in cases {
        let text = pias().replace(old, new);
        assert_ne!(text, pias(), "{name}");
        let plan = plan(&format!("kind = 'plugin', path = '{}'", changed_c(name, &text)));
        let outcomes = [1, 2].map(|threads| outcome(&plan, threads).unwrap_or_else(|e| panic!("{name}: {e}")));
        assert_equal(&outcomes[0], &outcomes[1], name);
    }
}

/// Transports forget flows that a policy gives up, and the run ends.
#[test]
fn a_policy_may_give_up_flows_with_deadlines() {
    let set = "    packet->prio = 0;\n";
    let twice = "if (packet->payload && packet->offset > 100000)\n        for (int i = 0; i < 2; i++) cx->calls->terminate(cx->handle, packet->flow);\n";
    let path = changed_c("p_given_up", &pias().replace(set, twice));
    let net =
        "[topology]\nkind = 'star'\nhosts = 5\n[workload.in]\nkind = 'incast'\nsenders = 4\nsize = '300KB'\ndeadline = '1s'\n";
    let in_c = c("given_up", &stop_and_wait());
    for transport in
        ["'dctcp'", "{ kind = 'plugin', path = 'example_transport' }", &format!("{{ kind = 'plugin', path = '{in_c}' }}")]
    {
        let text = format!("{net}[[system]]\ntransport = {transport}\npolicy = {{ kind = 'plugin', path = '{path}' }}\n");
        let plan = load(&text).unwrap_or_else(|problems| panic!("{problems}"));
        let outcomes = [1, 2].map(|threads| outcome(&plan, threads).unwrap());
        assert_equal(&outcomes[0], &outcomes[1], transport);
        let given_up = outcomes[0].flows.iter().filter(|flow| flow.terminated && flow.finish_ps.is_none());
        assert_eq!((given_up.count(), outcomes[0].flows.len()), (4, 4), "{transport}");
    }
}

#[test]
fn policies_that_do_not_fit_are_refused() {
    let cases = [
        ("p_size", ".name =", ".size = 8, .name =", "its table has 8 bytes"),
        ("p_calls", ".name =", ".sizes[5] = 8, .name =", "its `flowloom_policy_calls` has 8 bytes"),
        ("p_send", ".on_send = on_send,", "", "no function `on_send`"),
        ("p_uses", ".uses = FLOWLOOM_USES_CLASSES", ".uses = 99", "its `uses` is 99"),
        ("p_room", ".name =", ".room = 2, .name =", "its table has"),
        ("p_refuses", "    (void)endpoint;\n", "    (void)endpoint;\n    return FLOWLOOM_FAILED;\n", "failed in `create`"),
    ];
    let load_with = |path: &str| load(&format!("{LONG}{SYSTEM}policy = {{ kind = 'plugin', path = '{path}' }}\n"));
    for (name, old, new, why) in cases {
        let text = pias().replacen(old, new, 1);
        assert_ne!(text, pias(), "{name}");
        let message = load_with(&changed_c(name, &text)).unwrap_err();
        assert!(message.contains(why) && message.contains(&format!("{name}.so")), "{name}: {message}");
    }
    let message = load(&format!("{LONG}{SYSTEM}policy = {{ kind = 'plugin', path = 'example', classes = 8 }}\n")).unwrap_err();
    assert!(message.contains("`classes` is 8, but the switches have 3"), "{message}");
    // Each room refuses the plug-ins of others, also those that are in use.
    load(&format!("{LONG}[[system]]\ntransport = {{ kind = 'plugin', path = 'example_transport' }}\n")).unwrap();
    let message = load_with("example_transport").unwrap_err();
    assert!(
        message.contains("cannot use the plug-in `example_transport` here: it is a transport, and not for this part of a system"),
        "{message}"
    );
    let path = c("pias_as_transport", &pias());
    let message = load(&format!("{LONG}[[system]]\ntransport = {{ kind = 'plugin', path = '{path}' }}\n")).unwrap_err();
    assert!(message.contains("here: it is a policy") && message.contains("plugins.toml:8:"), "{message}");
}

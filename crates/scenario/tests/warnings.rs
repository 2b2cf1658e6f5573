//! Warnings about scenarios that can run but may mislead; sensible scenarios have no warnings.

use scenario::{Options, Plan, Style};
use std::path::Path;

fn load(text: &str) -> Plan {
    scenario::load(text, "w.toml", Path::new("."), &Options::default()).unwrap_or_else(|e| panic!("{e}\nin\n{text}"))
}

/// (line, message) of each warning.
fn warned(text: &str) -> Vec<(usize, String)> {
    load(text).warnings.items().iter().map(|item| (item.line, item.message.clone())).collect()
}

/// A scenario without warnings; tests change lines of it.
const SOUND: &str = r#"
[topology]
kind = "single_tree"
[workload.web]
kind = "poisson"
load = [0.2, 0.4]
[[system]]
label = "TCP"
transport = { kind = "newreno", min_rto = "10ms", init_rto = "10ms" }
[[system]]
label = "DCTCP"
transport = { kind = "dctcp", min_rto = "10ms", init_rto = "10ms" }
qdisc = "ecn_threshold"
[[system]]
label = "pFabric"
transport = { kind = "pfabric", handshake = true }
qdisc = "pfabric"
[sample]
interval = "1ms"
"#;

fn changed(from: &str, to: &str) -> Vec<(usize, String)> {
    assert!(SOUND.contains(from), "{from}");
    warned(&SOUND.replace(from, to))
}

#[test]
fn a_sensible_scenario_has_no_warnings() {
    assert_eq!(warned(SOUND), []);
    assert_eq!(load(SOUND).warnings.render(Style::Plain), "");
}

#[test]
fn load_beyond_a_link_is_named_with_the_link() {
    // 6 of the 8 other hosts are in other racks: 0.75 of the hosts' 9 Gb/s cross 3 Gb/s of uplinks,
    // 2.25 times the load.
    let message = "`workload.web.load`: `0.8` offers the link `tor0->root` 1.80 times its rate of 1Gbps";
    assert_eq!(changed("[0.2, 0.4]", "[0.2, 0.8]"), [(6, message.to_owned())]);
    assert_eq!(changed("[0.2, 0.4]", "0.44"), []);
    assert_eq!(changed("[0.2, 0.4]", "0.45").len(), 1);
    // Loads of workloads add up; an incast without repetition has no load.
    let other = |more: &str| changed("[0.2, 0.4]", &format!("0.3\n[workload.other]\n{more}"));
    assert_eq!(other("kind = \"poisson\"\nload = 0.3").len(), 1);
    assert_eq!(other("kind = \"incast\"\nsenders = 8\nsize = \"10MB\""), []);
    let every = other("kind = \"incast\"\nsenders = 8\nsize = \"1MB\"\nrepeat = 3\ninterval = \"10ms\"");
    assert!(every[0].1.contains("`workload.other.interval`: `10ms` offers the link `tor0->h0`"), "{every:?}");
    // Of several networks, the one with the highest load is reported.
    let text = SOUND.replace("kind = \"single_tree\"", "kind = \"single_tree\"\nuplink_rate = [\"500Mbps\", \"300Mbps\"]");
    assert!(warned(&text)[0].1.ends_with("3.00 times its rate of 300Mbps"), "{:?}", warned(&text));
}

#[test]
fn ports_that_never_mark_are_reported_if_a_transport_needs_marks() {
    for qdisc in ["\"droptail\"", "{ kind = \"ecn_threshold\", mark = \"unlimited\" }", "{ kind = \"red_ecn\", chosen = \"drop\" }"]
    {
        let found = changed("qdisc = \"ecn_threshold\"", &format!("qdisc = {qdisc}"));
        assert!(
            found.len() == 1 && found[0].0 == 12 && found[0].1.starts_with("`dctcp` needs ECN marks, but no switch port sets them"),
            "{found:?}"
        );
    }
    assert_eq!(changed("qdisc = \"ecn_threshold\"", "qdisc = \"red_ecn\""), []);
}

/// If no flow has a deadline, there is a warning for every entry that needs deadlines, and for no
/// other entry.
#[test]
fn flows_without_deadlines_are_reported_if_an_entry_needs_deadlines() {
    let rest = "[topology]\nkind = 'leaf_spine'\n[workload.a]\nkind = 'poisson'\n[workload.b]\nkind = 'poisson'\nload = 0.1\n";
    let slots = scenario::SLOTS.iter();
    for (slot, entry) in slots.flat_map(|slot| slot.room.entries.iter().map(move |entry| (slot.name, entry))) {
        let system = scenario::system_of(slot, entry.name).toml();
        let about = |text: &str| warned(text).into_iter().filter(|(_, message)| message.contains("needs deadlines")).count();
        let parts = load(&format!("{rest}{system}")).points[0].run.system.parts();
        let needed = parts.iter().any(|part| part.entry.meta.needs.deadlines);
        assert_eq!(about(&format!("{rest}{system}")), usize::from(needed), "{system}");
        assert_eq!(about(&format!("{rest}deadline = '20ms'\n{system}")), 0, "{system}");
    }
}

#[test]
fn timeouts_that_are_too_long_or_differ_are_reported() {
    // The longest round trip of the tree is 2 x 4 x 10 us and 4 x 12.3 us of transmission.
    let all = |value: &str| warned(&SOUND.replace("10ms\", init_rto = \"10ms", value));
    assert_eq!(all("13ms\", init_rto = \"13ms"), []);
    let long = all("14ms\", init_rto = \"14ms");
    assert_eq!(long.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [9, 12]);
    assert!(long[0].1.ends_with("`14ms` is 108 times the longest unloaded round trip, which is 129.28us"), "{long:?}");
    // A timeout of at most a millisecond never gives a warning: the round trips here are 7.7 and
    // 9.7 us.
    let fast = |rto: &str| {
        let text = SOUND.replace("10ms\", init_rto = \"10ms", &format!("{rto}\", init_rto = \"{rto}"));
        warned(&text.replace(
            "kind = \"single_tree\"",
            "kind = \"single_tree\"\nrate = \"100Gbps\"\nuplink_rate = \"100Gbps\"\ndelay = \"1us\"",
        ))
    };
    assert_eq!(fast("1ms"), []);
    assert!(fast("1001us")[0].1.contains("`1.001ms` is "), "{:?}", fast("1001us"));
    // A timeout that expires before any ACK can arrive.
    let short = all("129us\", init_rto = \"129us");
    assert_eq!(short.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [9, 12]);
    assert!(short[0].1.ends_with("`129us` is less than the longest unloaded round trip, which is 129.28us"), "{short:?}");
    assert_eq!(all("130us\", init_rto = \"130us"), []);
    let one = changed("\"newreno\", min_rto = \"10ms\"", "\"newreno\", min_rto = \"1ms\"");
    assert_eq!(one, []);
    let one = changed("\"newreno\", min_rto = \"10ms\"", "\"newreno\", min_rto = \"500us\"");
    assert_eq!(
        one,
        [(12, "`system.DCTCP.transport.min_rto`: `10ms` is 20 times the `min_rto` of `TCP`, which is 500us".to_owned())]
    );
    // The variants of one system differ on purpose.
    assert_eq!(changed("\"newreno\", min_rto = \"10ms\"", "\"newreno\", min_rto = [\"10ms\", \"200us\"]"), []);
}

#[test]
fn timeouts_that_a_protocol_chose_are_reported_where_packets_can_be_lost() {
    let roce = |more: &str, system: &str| {
        let text = format!(
            "[topology]\nkind = 'star'\nhosts = 4\nrate = '100Gbps'\n[workload.web]\nkind = 'poisson'\nload = 0.2\n{more}\
             [[system]]\nlabel = 'D'\ntransport = 'dcqcn'\n{system}\n"
        );
        let long = warned(&text).into_iter().filter(|(_, message)| message.contains("times the longest unloaded round trip"));
        long.map(|(_, message)| message).collect::<Vec<_>>()
    };
    let pfc = "buffer = 'pfc'";
    // 4.096 us times 2^14.
    let message = "`system.D.transport.rto`: `67108.864us` is ";
    assert_eq!(roce("", pfc), [""; 0], "nothing is lost");
    let failing = roce("[[event]]\nat = '1ms'\nuntil = '2ms'\nlink = ['h0', 's0']\n", pfc);
    assert!(failing[0].starts_with(message), "{failing:?}");
    assert!(roce("", "qdisc = { kind = 'red_ecn', limit = '100KB' }")[0].starts_with(message));
    assert_eq!(roce("", "qdisc = { kind = 'red_ecn', limit = 'unlimited' }"), [""; 0]);
    let homa =
        "[topology]\nkind = 'star'\n[workload.web]\nkind = 'poisson'\nload = 0.2\n[[system]]\nlabel = 'H'\ntransport = 'homa'\n";
    assert!(warned(homa)[0].1.starts_with("`system.H.transport.resend_after`: `5ms` is "), "{:?}", warned(homa));
}

#[test]
fn different_handshakes_are_reported() {
    let found = changed(", handshake = true", "");
    assert_eq!(found, [(16, "flows of `pFabric` start without a handshake, but flows of `TCP`, `DCTCP` with one".to_owned())]);
}

/// A ring of hosts at different leaves, whose messages have source ports of their own.
const RING: &str = r#"
[topology]
kind = "leaf_spine"
leaves = 4
hosts_per_leaf = 1
spines = 2
[workload.train]
kind = "collective"
algorithm = "ring"
bytes = "1MB"
channels = 1
ports = "message"
chunk = "10KB"
[[system]]
label = "DCQCN"
transport = { kind = "dcqcn", queue_pairs = "peer" }
buffer = "pfc"
router = "ecmp"
"#;

#[test]
fn messages_of_a_queue_pair_on_several_paths_are_reported() {
    let with = |changes: &[(&str, &str)]| {
        let text = changes.iter().fold(RING.to_owned(), |text, (from, to)| {
            assert!(text.contains(from), "{from}");
            text.replace(from, to)
        });
        warned(&text)
    };
    let found = with(&[]);
    let message = "`system.DCQCN.transport.queue_pairs`: `peer` sends all flows from one host to another as one sequence of packets, but \
                   flows of `workload.train` from `h0` to `h1` have different source ports, by which `ecmp` chooses among several paths";
    assert_eq!(found, [(16, message.to_owned())]);
    let hint = load(RING).warnings.items()[0].hint.clone();
    assert!(hint.ends_with("write `ports = \"peer\"` in [workload.train], or `queue_pairs = \"port\"` here"), "{hint}");
    // Any variant of a workload or system may have the fault, and also with selective retransmission.
    for change in [
        ("queue_pairs = \"peer\"", "queue_pairs = [\"message\", \"peer\"]"),
        ("queue_pairs = \"peer\"", "queue_pairs = \"peer\", recovery = \"irn\""),
        ("ports = \"message\"", "ports = [\"peer\", \"message\"]"),
        ("spines = 2", "spines = [1, 2]"),
    ] {
        assert_eq!(with(&[change]).len(), 1, "{change:?}");
    }
    // Messages on two channels have two ports.
    let channel = ("ports = \"message\"", "ports = \"channel\"");
    assert_eq!((with(&[channel]).len(), with(&[channel, ("channels = 1", "channels = 2")]).len()), (0, 1));
    for change in [
        // One port from each host to another, or a queue pair for each port.
        ("ports = \"message\"", "ports = \"peer\""),
        ("queue_pairs = \"peer\"", "queue_pairs = \"port\""),
        ("queue_pairs = \"peer\"", "queue_pairs = \"message\""),
        // One message from each host to another.
        ("algorithm = \"ring\"\nbytes = \"1MB\"", "op = \"all_to_all\"\nbytes = \"40KB\""),
        // One path, or paths that do not follow from ports.
        ("spines = 2", "spines = 1"),
        ("leaves = 4\nhosts_per_leaf = 1", "leaves = 1\nhosts_per_leaf = 4"),
        ("router = \"ecmp\"", "router = \"spray\""),
    ] {
        assert_eq!(with(&[change]), [], "{change:?}");
    }
}

#[test]
fn tails_of_few_flows_are_reported() {
    assert_eq!(changed("load =", "flows = 1000\nload ="), []);
    let found = changed("load =", "flows = [2000, 200]\nload =");
    assert_eq!(found, [(4, "`workload.web`: of 200 flows, 2 are above the 99th percentile".to_owned())]);
    // The percentile is over all flows: two messages of an incast are among the flows that are counted.
    let two = "flows = 200\nload = 0.1\n[workload.burst]\nkind = \"incast\"\nsenders = 2\nsize = \"20KB\"\n[workload.web2]\nkind = \"poisson\"\nflows = 100\nload = 0.1";
    let found = changed("load = [0.2, 0.4]", two);
    let message = "`workload.web`, `workload.burst`, `workload.web2` together: of 302 flows, 3 are above the 99th percentile";
    assert_eq!(found.iter().map(|(_, message)| message.as_str()).collect::<Vec<_>>(), [message]);
    // An incast is not a random sample.
    let incast = "kind = \"incast\"\nsenders = 8\nsize = \"20KB\"";
    assert_eq!(changed("kind = \"poisson\"\nload = [0.2, 0.4]", incast), []);
}

#[test]
fn sampled_keys_that_record_nothing_are_reported() {
    for (more, key) in [
        ("ports = false", "ports"),
        ("ports = false\nflows = true\nport = \"tor0->root\"", "port"),
        ("ports = false\npackets = true", "interval"),
    ] {
        let found = warned(&format!("{SOUND}{more}\n"));
        assert!(found.len() == 1 && found[0].1.starts_with(&format!("`sample.{key}`: ")), "{found:?}");
    }
    assert!(warned(&format!("end = \"1ms\"\n{SOUND}"))[0].1.starts_with("`sample.interval`: "));
}

#[test]
fn a_controller_slower_than_the_run_is_reported() {
    let with = |end: &str, controller: &str| {
        warned(&format!(
            "{end}{}",
            SOUND.replace("[sample]", &format!("[[system]]\ntransport = \"newreno\"\n{controller}\n[sample]"))
        ))
    };
    let late = |end| with(end, "controller = { kind = \"rebalance\", latency = \"1s\", period = \"2s\" }");
    let message = "`system.newreno.controller.period`: `rebalance` first looks at the network after 2s and acts 1s later";
    assert_eq!(late("end = \"3s\"\n"), [(21, message.to_owned())]);
    assert_eq!((late("end = \"3001ms\"\n"), late("")), (vec![], vec![]));
    // With its defaults, the controller acts after 2 ms.
    let by_default = with("end = \"2ms\"\n", "controller = \"rebalance\"");
    assert!(by_default.len() == 1 && by_default[0].0 == 21, "{by_default:?}");
}

#[test]
fn a_precision_with_given_seeds_has_no_effect() {
    let found = warned(&format!("seed = [1, 2]\nprecision = \"5%\"{SOUND}"));
    assert_eq!(found, [(2, "`precision` has no effect: the seeds are given".to_owned())]);
    assert_eq!(warned(&format!("seed = \"auto\"\nprecision = \"5%\"{SOUND}")), []);
}

#[test]
fn systems_with_different_hosts_are_not_comparable() {
    let host = |label: &str, nic: &str| changed(&format!("label = \"{label}\""), &format!("label = \"{label}\"\nnic = \"{nic}\""));
    let message = "packets of `DCTCP` wait with their flows, but packets of `TCP` at the NIC";
    assert_eq!(host("TCP", "ns2"), [(11, message.to_owned())]);
    assert_eq!(host("TCP", "turns"), []);
    let all = SOUND.replace("[[system]]", "[[system]]\nnic = \"ns2\"");
    assert_eq!(warned(&all), []);
    // pFabric chooses its packets itself: how those of the others reach the NIC is no difference to it.
    assert_eq!(warned(&all.replacen("nic = \"ns2\"\nlabel = \"pFabric\"", "label = \"pFabric\"", 1)), []);
    for (line, kind) in [
        ("# TCP: host: `pull`: flows take turns\n", ""),
        ("# pFabric: host: `pull`: the transport chooses the packet that the NIC asks for\n", ""),
        ("# TCP: host: `ns2`: all packets wait at the NIC, in a queue like those of switch ports\n", "nic = \"ns2\""),
        (
            "# TCP: host: `pull`: the flow whose next packet has the best class or rank sends next\n",
            "nic = \"pull\"\npolicy = \"pias\"",
        ),
    ] {
        let plan = load(&SOUND.replace("label = \"TCP\"", &format!("label = \"TCP\"\n{kind}")));
        assert!(plan.resolved().contains(line), "{line}{}", plan.resolved());
    }
}

/// The flow engine has neither transports nor queues. A scenario that runs under both engines has
/// no warning.
#[test]
fn settings_that_the_flow_engine_ignores_are_reported() {
    let scenario = |engine: &str, more: &str| {
        format!(
            "engine = {engine}\n[topology]\nkind = \"single_tree\"\nloss = 0.01\n[workload.web]\nkind = \"poisson\"\nload = 0.4\n\
             [[system]]\ntransport = {{ kind = \"dctcp\", min_rto = \"10ms\" }}\nnic = {{ low_water = \"1B\" }}\n{more}"
        )
    };
    let expected = [
        (2, "`topology.loss` has no effect: the flow engine has no packets to lose"),
        (9, "no effect under the flow engine: `transport.min_rto`, `nic`"),
    ];
    let expected = expected.map(|(line, message)| (line, message.to_owned()));
    let mut found = warned(&scenario("\"flow\"", ""));
    found.sort();
    assert_eq!(found, expected);
    assert_eq!(warned(&scenario("\"packet\"", "")), []);
    assert_eq!(warned(&scenario("[\"packet\", \"flow\"]", "")), []);
    let traced = warned(&scenario("\"flow\"", "[sample]\nports = true\nagents = true\npackets = true\n"));
    for message in ["no packets to trace", "runs no agents"] {
        assert!(traced.iter().any(|(_, said)| said.contains(message)), "{traced:?}");
    }
}

#[test]
fn warnings_have_the_form_of_errors() {
    let plan = load(&SOUND.replace("[0.2, 0.4]", "0.9"));
    let shown = plan.warnings.render(Style::Plain);
    for part in
        ["warning: `workload.web.load`: `0.9` offers", "[w.toml:6:8]", "load = 0.9", "^^^", "hint: the queue of this link grows"]
    {
        assert!(shown.contains(part), "{part} in\n{shown}");
    }
    assert!(plan.warnings.as_errors().render(Style::Plain).contains("error: `workload.web.load`"));
    // Warnings do not change the points.
    assert_eq!(plan.points.len(), 3);
}

/// If the engine is swept, a system that needs packets has points under the packet engine only.
#[test]
fn a_system_that_needs_packets_runs_under_the_packet_engine_only() {
    let plan = load(&SOUND.replace("\n[topology]", "engine = [\"packet\", \"flow\"]\n[topology]"));
    let found: Vec<(usize, String)> = plan.warnings.items().iter().map(|item| (item.line, item.message.clone())).collect();
    let why = "the flow engine does not model the transport `pfabric`: its ports serve the flow with the fewest bytes left first";
    assert_eq!(found, [(16, format!("`pFabric` runs under the packet engine only: {why}"))]);
    let points =
        |label: &str, flow: bool| plan.points.iter().filter(|p| p.label == label && p.run.engine.is_flow() == flow).count();
    assert_eq!([("TCP", false), ("TCP", true), ("pFabric", false), ("pFabric", true)].map(|(l, f)| points(l, f)), [2, 2, 2, 0]);
}

/// Warnings about an incast on a leaf-spine network with hosts at 10 Gb/s, whose bandwidth-delay product is a little less than 40 packets.
fn fabric(system: &str) -> Vec<(usize, String)> {
    incast(32, system)
}

fn incast(senders: u32, system: &str) -> Vec<(usize, String)> {
    let topology = "[topology]\nkind = 'leaf_spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 20\ndelay = '5us'\n";
    warned(&format!(
        "{topology}[workload.burst]\nkind = 'incast'\nsenders = {senders}\nsize = '64KB'\njitter = '0s'\n[[system]]\n{system}"
    ))
}

fn about(found: &[(usize, String)], words: &str) -> usize {
    found.iter().filter(|(_, message)| message.contains(words)).count()
}

#[test]
fn queues_below_a_bandwidth_delay_product_are_reported() {
    let with = |limit: &str| {
        fabric(&format!(
            "transport = {{ kind = 'newreno', init_window = 1, stack = 'fine' }}\nqdisc = {{ kind = 'droptail', limit = {limit} }}"
        ))
    };
    let found = with("'20pkt'");
    assert_eq!(about(&found, "of what a link carries in the longest unloaded round trip"), 1, "{found:?}");
    assert!(found[0].1.starts_with("`system.newreno.qdisc.limit`: a port of 10Gbps holds 30KB"), "{found:?}");
    for enough in ["'40pkt'", "'auto'", "'unlimited'", "'64KB'"] {
        assert_eq!(with(enough), [], "{enough}");
    }
    // The worst of several values is reported; the place is the shared buffer if it holds less.
    assert_eq!(about(&with("['40pkt', '20pkt', '10pkt']"), "holds 15KB"), 1);
    let shared =
        "transport = { kind = 'newreno', init_window = 1, stack = 'fine' }\nbuffer = { kind = 'dynamic', total = '40KB' }\n";
    let found = fabric(shared);
    assert!(found.len() == 1 && found[0].1.starts_with("`system.newreno.buffer.total`: a port of 10Gbps holds 20KB"), "{found:?}");
    // No part of pFabric needs a minimum limit.
    assert_eq!(about(&fabric("transport = 'pfabric'\nqdisc = { kind = 'pfabric', limit = '9pkt' }"), "holds"), 0);
}

#[test]
fn marks_that_come_too_early_are_reported() {
    let with = |mark: &str| {
        fabric(&format!(
            "transport = {{ kind = 'dctcp', init_window = 1, stack = 'fine' }}\nqdisc = {{ kind = 'ecn_threshold', mark = {mark} }}"
        ))
    };
    // A seventh of the bandwidth-delay product of hosts.
    let found = with("'4pkt'");
    assert!(
        found.len() == 1
            && found[0]
                .1
                .contains("`4pkt` at 10Gbps is less than the 6 packets, 0.14 bandwidth-delay products, that `dctcp` needs"),
        "{found:?}"
    );
    assert_eq!((with("'6pkt'"), with("'auto'")), (vec![], vec![]));
    let red = |low: &str| {
        fabric(&format!(
            "transport = {{ kind = 'dctcp', init_window = 1, stack = 'fine' }}\nqdisc = {{ kind = 'red_ecn', th_min = {low} }}"
        ))
    };
    assert_eq!((about(&red("'4pkt'"), "`system.dctcp.qdisc.th_max`"), red("'6pkt'")), (1, vec![]));
}

/// 31 first windows of 10 packets wait at a port of 100 packets; 31 first windows of 3 packets fit.
#[test]
fn an_incast_beyond_the_queue_is_reported_if_losses_cost_timeouts() {
    let tcp = |more: &str, queue: &str| {
        about(&fabric(&format!("transport = {{ kind = 'newreno', stack = 'fine'{more} }}\n{queue}")), "can slow them down")
    };
    let plain = "qdisc = { kind = 'droptail', limit = '100pkt' }";
    // Timeouts of 200 us are less than ten round trips.
    assert_eq!(tcp("", plain), 0);
    assert_eq!(tcp(", min_rto = '1ms'", plain), 1);
    assert_eq!(tcp(", min_rto = '1ms', init_window = 3", plain), 0);
    assert_eq!(tcp(", min_rto = '1ms'", "qdisc = { kind = 'droptail', limit = '311pkt' }"), 0);
    assert_eq!(tcp(", min_rto = '1ms'", "qdisc = { kind = 'droptail', limit = 'unlimited' }"), 0);
    // Ports trim packets that do not fit, so that no flow waits for a timeout.
    assert_eq!(about(&fabric("transport = 'ndp'\nqdisc = 'trim'"), "can slow them down"), 0);
}

#[test]
fn queues_below_the_grants_of_homa_are_reported() {
    let homa = |senders, overcommitment: u32, limit: &str| {
        let transport = format!("transport = {{ kind = 'homa', overcommitment = {overcommitment}, resend_after = '1ms' }}");
        incast(senders, &format!("{transport}\nqdisc = {{ kind = 'strict', limit = {limit} }}"))
    };
    // Six bandwidth-delay products of a little less than 40 packets.
    let found = homa(3, 7, "'100pkt'");
    assert!(found.len() == 1 && found[0].1.contains("receivers of `homa` let up to"), "{found:?}");
    assert_eq!((homa(3, 7, "'240pkt'"), homa(3, 1, "'100pkt'")), (vec![], vec![]));
    let found = homa(32, 1, "'100pkt'");
    assert!(found.len() == 1 && found[0].1.contains("before `homa` can slow them down"), "{found:?}");
    assert_eq!(homa(32, 7, "'2500pkt'"), []);
}

#[test]
fn spraying_with_fast_retransmit_is_named() {
    let spray = |topology: &str, transport: &str, router: &str| {
        warned(&format!(
            "[topology]\nkind = '{topology}'\n[workload.web]\nkind = 'poisson'\nload = 0.2\n\
             [[system]]\nlabel = 'A'\ntransport = {{ kind = '{transport} }}\nrouter = '{router}'\n"
        ))
    };
    let message = "`system.A.transport.dup_threshold`: `spray` reorders packets, and 3 duplicate ACKs are a loss for `newreno`";
    assert_eq!(spray("leaf_spine", "newreno', stack = 'fine'", "spray"), [(8, message.to_owned())]);
    assert_eq!(spray("leaf_spine", "newreno', stack = 'fine', dup_threshold = 3", "spray"), [(8, message.to_owned())]);
    assert_eq!(spray("leaf_spine", "newreno', stack = 'fine', dup_threshold = 'never'", "spray"), []);
    // Flows keep their path, there is only one path, or the transport has no duplicate ACKs.
    assert_eq!(spray("leaf_spine", "newreno', stack = 'fine'", "ecmp"), []);
    assert_eq!(spray("star", "newreno', stack = 'fine'", "spray"), []);
    assert_eq!(spray("leaf_spine", "homa', resend_after = '1ms'", "spray"), []);
    let wrong = "[[system]]\nlabel = 'A'\ntransport = { kind = 'newreno', dup_threshold = 4 }\n";
    let error = scenario::load(wrong, "w.toml", Path::new("."), &Options::default()).unwrap_err().to_string();
    assert!(error.contains("`4` is not `3` or `never`"), "{error}");
}

/// Scenarios that users copy have no warnings.
#[test]
fn examples_and_the_readme_have_no_warnings() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = root.join("examples");
    let read = |path: &Path| std::fs::read_to_string(path).expect("a file of the tree");
    let names = std::fs::read_dir(&folder).expect("the examples").map(|entry| entry.expect("readable").path());
    let mut all: Vec<_> = names
        .filter(|path| path.extension().is_some_and(|end| end == "toml"))
        .map(|path| (path.display().to_string(), read(&path)))
        .collect();
    all.sort();
    let readme = read(&root.join("README.md"));
    let scenarios = readme.split("```toml\n").skip(1).filter_map(|block| block.split("```").next());
    all.extend(scenarios.filter(|block| block.contains("[[system]]")).map(|block| ("README.md".to_owned(), block.to_owned())));
    assert!(all.len() >= 14 && all.last().is_some_and(|(name, _)| name == "README.md"), "{}", all.len());
    for (name, text) in all {
        let plan = scenario::load(&text, &name, &folder, &Options::default()).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(plan.warnings.render(Style::Plain), "", "{name}");
    }
}

/// What a reader of a file leaves out is reported at the `path` that names the file.
#[test]
fn parts_of_files_that_are_not_read_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    write("topology.txt", "3 1 2\n2\n0 2 10Gbps 1us 0\n1 2 10Gbps 1us 0\n0 9 10Gbps 1us 0\n");
    write("flow.txt", "1\n0 1 3 5 2.0 9.5\n1 0 3 5 2.5 9.5\n");
    let text = "[topology]\nkind = 'hpcc'\npath = 'topology.txt'\n[workload.x]\nkind = 'hpcc'\npath = 'flow.txt'\n[[system]]\ntransport = 'newreno'\n";
    let plan = scenario::load(text, "w.toml", dir.path(), &Options::default()).unwrap_or_else(|e| panic!("{e}"));
    let all = plan.warnings.items().iter().filter(|item| item.label == "left out");
    let found: Vec<(usize, &str)> = all.map(|item| (item.line, item.message.as_str())).collect();
    let expected = [
        (3, "`topology.txt`: the file counts 2 links; from line 5 on, these are left out: 1 link"),
        (6, "`flow.txt`: the file counts 1 flow; from line 3 on, these are left out: 1 flow"),
        (6, "`flow.txt`: the stops of flows have no effect: a flow ends when all of its bytes have arrived"),
    ];
    assert_eq!(found, expected);
}
